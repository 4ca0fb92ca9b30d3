"""Energies of two beads that depend on their distance alone, with up to three derivatives.

One number and one function each: the energy and its derivatives in r. The loops over bonds and over neighbours are
written once and know nothing else, but for shortcuts of those that are used most, in `pull`.
"""
from libc.math cimport NAN, sqrt

from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.core.sites cimport SiteTable


# All are proportional to p[0]. Those that may end at a distance have it in p[END], are 0 from there on, are switched
# off from p[SWITCH] on, and less p[OFF] before; `ending` of radial.pyx makes such parameters.
cpdef enum Radial:
    HARMONIC = 0       # p = (k, r0):          k/2 (r - r0)^2
    SOFT_SPHERE = 1    # p = (k, d):           k/2 (d - r)^2 for r < d, else 0
    WCA = 2            # p = (epsilon, sigma): 4 epsilon [(sigma/r)^12 - (sigma/r)^6] + epsilon for r < 2^(1/6) sigma
    ROPE = 3           # p = (k, L):           k/2 (r - L)^2 for r > L, else 0
    RICKER = 4         # p = (U_e, r_e, ...):  `ricker`; ends
    PENALTY = 5        # p = (w, L):           w/2 (r^2 - L^2)^2
    LENNARD_JONES = 6  # p = (epsilon, sigma, ...): as WCA, without + epsilon; ends
    COULOMB = 7        # p = (k,):             k / r
    MORSE = 8          # p = (D, a, ..., r0):  D (e^2 - 2 e),   e = exp(-a (r - r0)); ends
    YUKAWA = 9         # p = (A, l, ...):      A exp(-r/l) / r; ends
    TABULATED = 10     # p = (1, n, ..., r_1 ... r_n, cubics): p[0] times a cubic between each two of n distances; ends


cdef enum:
    # Of energies that end: where the distance is, that from which they are switched off, what is taken off them, one
    # more number of their own, and where a table begins.
    END = 2
    SWITCH = 3
    OFF = 4
    THIRD = 5
    TABLE = 6


cdef extern from * nogil:
    """
    /* 2^(1/3): WCA ends at r^2 = 2^(1/3) sigma^2. */
    #define MEDYANPY_WCA_END_SQUARED 1.2599210498948732
    """
    const double WCA_END_SQUARED "MEDYANPY_WCA_END_SQUARED"


cdef inline double ricker(double depth, double s, double* e) noexcept nogil:
    """U_e/2 (1 - 3 s) exp(3/2 (1 - s)),   s = (r/r_e)^2; and e = U_e exp(3/2 (1 - s))."""
    e[0] = depth * exp_(1.5 - 1.5 * s)
    return (0.5 - 1.5 * s) * e[0]


cdef inline double lennard_jones_end(int kind, const double* p, double* end_squared) noexcept nogil:
    """The square of the range of WCA or LENNARD_JONES, and what is taken off their common function."""
    if kind == WCA:
        end_squared[0] = WCA_END_SQUARED * (p[1] * p[1])
        return -p[0]
    end_squared[0] = p[END] * p[END]
    return p[OFF]


cdef inline void nothing(int order, double* u) noexcept nogil:
    u[0] = u[1] = 0.0
    if order > 1:
        u[2] = u[3] = 0.0


cdef inline void spring_at(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    cdef double s = r - p[1]
    # At r = L, where the second derivative jumps, a rope has that of its taut side: with L = 0 it is a spring.
    if (kind == SOFT_SPHERE and s >= 0.0) or (kind == ROPE and s < 0.0):
        nothing(order, u)
        return
    u[0] = 0.5 * p[0] * s * s
    u[1] = p[0] * s
    if order > 1:
        # Of a spring without length U'' is U'/r, to the bit: `third` divides what is left of it by r.
        u[2] = u[1] / r if p[1] == 0.0 and r > 0.0 else p[0]
        u[3] = 0.0


cdef inline void penalty_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double s = r * r - p[1] * p[1]
    cdef double q = 2.0 * p[0]
    u[0] = 0.5 * p[0] * s * s
    u[1] = q * s * r
    if order > 1:
        # U'/r + r (U'/r)': `third` divides what the first leaves by r, so its bits must be the same there, however
        # short r is: 4 w r^2 or nothing.
        u[2] = (u[1] / r if r > 0.0 else q * s) + 2.0 * q * r * r
        u[3] = 6.0 * q * r


cdef inline void ricker_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double s, e, q
    q = 1.0 / (p[1] * p[1])
    s = r * r * q
    u[0] = ricker(p[0], s, &e)
    q = 4.5 * e * q
    u[1] = q * (s - 1.0) * r
    if order > 1:
        # U'/r + r (U'/r)', as above.
        u[2] = (u[1] / r if r > 0.0 else -q) + q * s * (5.0 - 3.0 * s)
        u[3] = q * r / (p[1] * p[1]) * (15.0 - 30.0 * s + 9.0 * s * s)


cdef inline void lennard_jones_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double s, s2, s6, e
    s = 1.0 / r
    s2 = p[1] * p[1] * s * s
    s6 = s2 * s2 * s2
    e = 4.0 * p[0]
    u[0] = e * (s6 * s6 - s6)
    u[1] = -e * s * (12.0 * s6 * s6 - 6.0 * s6)
    if order > 1:
        u[2] = e * s * s * (156.0 * s6 * s6 - 42.0 * s6)
        u[3] = -e * s * s * s * (2184.0 * s6 * s6 - 336.0 * s6)


cdef inline void wca_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double square
    cdef double off = lennard_jones_end(WCA, p, &square)
    if r * r >= square:
        nothing(order, u)
        return
    lennard_jones_at(p, r, order, u)
    u[0] -= off


cdef inline void morse_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double e = exp_(-p[1] * (r - p[THIRD]))
    cdef double q = 2.0 * p[0] * p[1]
    u[0] = p[0] * (e - 2.0) * e
    u[1] = -q * (e - 1.0) * e
    if order > 1:
        u[2] = q * p[1] * (2.0 * e - 1.0) * e
        u[3] = -q * p[1] * p[1] * (4.0 * e - 1.0) * e


cdef inline void yukawa_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double q = 1.0 / p[1]
    cdef double s = 1.0 / r
    u[0] = p[0] * exp_(-r * q) * s
    u[1] = -u[0] * (q + s)
    if order > 1:
        u[2] = u[0] * (q * q + 2.0 * s * (q + s))
        u[3] = -u[0] * (q * q * q + 3.0 * s * (q * q + 2.0 * s * (q + s)))


cdef inline void tabulated_at(const double* p, double r, int order, double* u) noexcept nogil:
    """The cubic of the interval that r is in, in powers of what r is beyond its lower end; no number before all."""
    cdef const double* at = p + TABLE
    cdef const double* c
    cdef Py_ssize_t n = <Py_ssize_t> p[1], low = 0, high = n - 1, middle
    cdef double s
    while high - low > 1:
        middle = (low + high) // 2
        if r < at[middle]:
            high = middle
        else:
            low = middle
    c = at + n + 4 * low
    s = r - at[low] if r >= at[0] else NAN
    u[0] = p[0] * (c[0] + s * (c[1] + s * (c[2] + s * c[3])))
    u[1] = p[0] * (c[1] + s * (2.0 * c[2] + 3.0 * s * c[3]))
    if order > 1:
        u[2] = p[0] * (2.0 * c[2] + 6.0 * s * c[3])
        u[3] = p[0] * 6.0 * c[3]


cdef inline void fade(const double* p, double r, int order, double* u) noexcept nogil:
    """Times S = 1 - 10 x^3 + 15 x^4 - 6 x^5, x = (r - r_s) / (r_c - r_s): at both ends it has no first or second
    derivative."""
    cdef double w = 1.0 / (p[END] - p[SWITCH])
    cdef double x = (r - p[SWITCH]) * w
    cdef double y = 1.0 - x
    cdef double s0 = y * y * y * (1.0 + x * (3.0 + 6.0 * x))
    cdef double s1 = -30.0 * w * (x * x) * (y * y)
    cdef double s2, s3
    if order > 1:
        s2 = -60.0 * w * w * x * y * (1.0 - 2.0 * x)
        s3 = -60.0 * w * w * w * (1.0 - 6.0 * x * y)
        u[3] = u[3] * s0 + 3.0 * u[2] * s1 + 3.0 * u[1] * s2 + u[0] * s3
        u[2] = u[2] * s0 + 2.0 * u[1] * s1 + u[0] * s2
    u[1] = u[1] * s0 + u[0] * s1
    u[0] = u[0] * s0


cdef inline void endless_at(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    """One of those that end, as if it did not."""
    if kind == RICKER:
        ricker_at(p, r, order, u)
    elif kind == LENNARD_JONES:
        lennard_jones_at(p, r, order, u)
    elif kind == MORSE:
        morse_at(p, r, order, u)
    elif kind == YUKAWA:
        yukawa_at(p, r, order, u)
    else:
        tabulated_at(p, r, order, u)


cdef inline void ending_at(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    if r >= p[END]:
        nothing(order, u)
        return
    endless_at(kind, p, r, order, u)
    if r > p[SWITCH]:
        fade(p, r, order, u)
    u[0] -= p[OFF]


cdef inline void coulomb_at(const double* p, double r, int order, double* u) noexcept nogil:
    cdef double s = 1.0 / r
    u[0] = p[0] * s
    u[1] = -u[0] * s
    if order > 1:
        u[2] = -2.0 * u[1] * s
        u[3] = -3.0 * u[2] * s


cdef inline void evaluate(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    """u[0..order]: energy and derivatives at distance r >= 0; order is 1 or 3."""
    if kind == HARMONIC or kind == SOFT_SPHERE or kind == ROPE:
        spring_at(kind, p, r, order, u)
    elif kind == PENALTY:
        penalty_at(p, r, order, u)
    elif kind == COULOMB:
        coulomb_at(p, r, order, u)
    elif kind == WCA:
        wca_at(p, r, order, u)
    else:
        ending_at(kind, p, r, order, u)


cdef inline double slope(int kind, const double* p, double rr, double* energy) noexcept nogil:
    """U'(r) / r of two beads, and U(r), from r^2: of any kind."""
    cdef double u[4]
    cdef double r = sqrt(rr)
    evaluate(kind, p, r, 1, u)
    energy[0] = u[0]
    # Beads in one place have no direction to push in. Zero is the mean over all of them, where the energy is a number.
    return u[1] / r if r > 0.0 else 0.0 * u[1]


cdef inline double pull(int kind, double a, double b, double end, double rr, double* u) noexcept nogil:
    """`slope` of two beads within range, from p = (a, b), for the kinds that have this shortcut: SOFT_SPHERE, RICKER,
    WCA and LENNARD_JONES, COULOMB.

    What a sum over neighbours needs and no more: no root where it can be done without, and no branch that depends on
    r. Within range means r < b (SOFT_SPHERE), r < p[END] (RICKER), or what `lennard_jones_end` gives; the caller skips
    other pairs. `end` is taken off the energy: p[OFF], or what `lennard_jones_end` gives. None of them is switched off:
    those that are have no shortcut.
    """
    cdef double r, s, q
    if kind == WCA or kind == LENNARD_JONES:
        q = 1.0 / rr
        s = b * b * q
        s = s * s * s
        u[0] = 4.0 * a * (s * s - s) - end
        # At r = 0 this is -inf, and times a displacement of 0 no number: the run stops, as it should.
        return -24.0 * a * (s * (s + s) - s) * q
    if kind == COULOMB:
        q = 1.0 / sqrt(rr)
        u[0] = a * q
        return -u[0] * (q * q)
    if kind == RICKER:
        q = 1.0 / (b * b)
        s = rr * q
        u[0] = ricker(a, s, &r) - end
        return 4.5 * r * q * (s - 1.0)
    r = sqrt(rr)
    s = r - b
    u[0] = 0.5 * a * s * s
    # Beads in one place have no direction to push in. Zero is the mean over all of them.
    return a * s / r if r > 0.0 else 0.0


cdef inline void second(const double* u, const double* d, double r, double* out) noexcept nogil:
    """out (3, 3) = d2U/dd2 = U'' n n^T + U'/r (1 - n n^T),   n = d / r;   u holds U and its derivatives in r = |d|."""
    cdef double along, across
    cdef int i, j
    if r > 0.0:
        across = u[1] / r
        along = (u[2] - across) / (r * r)
        for i in range(3):
            for j in range(3):
                out[3 * i + j] = along * d[i] * d[j]
            out[4 * i] += across
        return
    for i in range(9):
        out[i] = 0.0
    # An energy with U'(0) = 0 is isotropic there. Others have a cusp: zero, like the force.
    if u[1] == 0.0:
        out[0] = out[4] = out[8] = u[2]


cdef inline double soften(const double* u, double r, bint squares, double* v) noexcept nogil:
    """v[1..3] for u[1..3] of a stiffness: U'' and t = U'/r replaced by numbers that are not negative, and are the same
    at rest, t = 0. U'' or 0, or of energies quadratic in r^2 U'' - t, which is that of Gauss and Newton; of t its
    square over U'' while it is less than that, so that it has a derivative at 0, and 0 where two beads push each other
    away. It has no other value where U is quadratic in d, t = U''. v[2] and v[1] / r are these numbers, v[3] is the
    derivative of the first in r, and what is returned that of the second."""
    cdef double t, slope
    v[1] = u[1]
    v[2], v[3] = u[2], u[3]
    if not squares and u[2] <= 0.0:
        v[2] = v[3] = 0.0
    if r == 0.0:
        if squares:
            v[2] = 0.0
        return 0.0
    t = u[1] / r
    slope = (u[2] - t) / r
    if squares:
        v[2] -= t
        v[3] -= slope
    if t < 0.0:
        v[1] = 0.0
        return 0.0
    if t < u[2]:
        v[1] = t * t / u[2] * r
        return t / u[2] * (2.0 * slope - t / u[2] * u[3])
    return slope


cdef inline void third(
    const double* u, double slope, const double* d, double r, const double* a, double* out,
) noexcept nogil:
    """out (3,) = D[a.H.a],   H = u2 n n^T + u1/r (1 - n n^T): with s = n.a,
    u3 s^2 n + (u2/r - u1/r^2) 2 s (a - s n) + slope (a^2 - s^2) n, where slope = (u1/r)'."""
    cdef double n[3]
    cdef double s, aa, bend
    cdef int c
    out[0] = out[1] = out[2] = 0.0
    if r == 0.0:
        return
    for c in range(3):
        n[c] = d[c] / r
    s = n[0] * a[0] + n[1] * a[1] + n[2] * a[2]
    aa = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    bend = (u[2] - u[1] / r) / r
    for c in range(3):
        out[c] = u[3] * s * s * n[c] + (bend * (2.0 * s * (a[c] - s * n[c])) + slope * (aa - s * s) * n[c])


cdef inline int derive(
    const Derivative* wanted, SiteTable sites, Py_ssize_t i, Py_ssize_t j, const double* u, const double* d, double r,
    bint squares,
) noexcept nogil:
    """The contribution of two sites d apart; u from `evaluate`, order 3; squares: of an energy quadratic in r^2. 0, or
    the fault of the sink."""
    cdef double block[9]
    cdef double apart[3]
    cdef double t[3]
    cdef double v[4]
    cdef double slope = (u[2] - u[1] / r) / r if r > 0.0 else 0.0
    if wanted.positive:
        slope = soften(u, r, squares, v)
        u = v
    if wanted.add != NULL:
        second(u, d, r, block)
        return sites.add_pair(i, j, block, wanted.add, wanted.sink)
    sites.difference(i, j, wanted.a, apart)
    third(u, slope, d, r, apart, t)
    sites.share(i, j, t, wanted.out)
    return 0
