"""Energies of the angle between two vectors a and b: their second and third derivatives.

    E = -p c - s S,   c = u.v,   u = a/|a|,   v = b/|b|,   S = |v - c u| = sqrt(1 - c^2)
    E' = -p + s c/S,   E'' = s/S^3,   E''' = 3 s c/S^5         in c

With A = 1 - u u^T, du = A da/|a|, and so, for w = A v = v - c u,

    dc/da = w/|a|
    d2c/da2 = -(u w^T + w u^T + c A)/|a|^2
    d2c/da db = A (1 - v v^T)/(|a| |b|) = (1 - u u^T - v v^T + c u v^T)/(|a| |b|)

and likewise with a and b exchanged. D3E[x, x] is twice the second coefficient of the gradient E' dc/da along
a + t x_a, b + t x_b: series in t, cut after t^2, go through its formula, which is exact.

With g = 1 where c >= 0, else -1, and m = v - g u, e = |m|^2 / 2: w = m + g e u and c = g (1 - e), the same bits as in
the forces, which have their digits where directions are almost parallel, or opposite.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.series cimport product
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.vec3 cimport dot


cdef inline void slopes(double p, double s, double c, double square, double* slope) noexcept nogil:
    """slope (3,) = E', E'', E''' in c, of S^2 = square."""
    cdef double inverse
    slope[0] = -p
    slope[1] = slope[2] = 0.0
    # Where the angle is 0 or pi exactly, the part in s has no direction: it is left out, as in the force.
    if s != 0.0 and square > 0.0:
        inverse = 1.0 / sqrt(square)
        slope[0] += s * c * inverse
        slope[1] = s * inverse * inverse * inverse
        slope[2] = 3.0 * slope[1] * c * inverse * inverse


cdef inline bint second(double p, double s, const double* a, const double* b, double* k) noexcept nogil:
    """k (3, 3, 3) = d2E/da2, d2E/da db, d2E/db2. Whether there is an angle: not where a or b has no length."""
    cdef double slope[3]
    cdef double u[3]
    cdef double v[3]
    cdef double wu[3]
    cdef double wv[3]
    cdef double ha = dot(a, a)
    cdef double hb = dot(b, b)
    cdef double g, e, c, aa, ab, bb, one
    cdef int i, j
    if ha == 0.0 or hb == 0.0:
        return False
    ha = 1.0 / sqrt(ha)
    hb = 1.0 / sqrt(hb)
    for i in range(3):
        u[i] = ha * a[i]
        v[i] = hb * b[i]
    g = 1.0 if dot(u, v) >= 0.0 else -1.0
    for i in range(3):
        wu[i] = v[i] - g * u[i]
    e = 0.5 * dot(wu, wu)
    c = g * (1.0 - e)
    for i in range(3):
        wv[i] = g * (e * v[i] - wu[i])
        wu[i] += g * e * u[i]
    slopes(p, s, c, dot(wu, wu), slope)
    aa = ha * ha
    ab = ha * hb
    bb = hb * hb
    for i in range(3):
        for j in range(3):
            one = 1.0 if i == j else 0.0
            k[3 * i + j] = aa * (
                slope[1] * (wu[i] * wu[j]) - slope[0] * ((u[i] * wu[j] + wu[i] * u[j]) + c * (one - u[i] * u[j])))
            k[9 + 3 * i + j] = ab * (
                slope[1] * (wu[i] * wv[j]) + slope[0] * ((one - (u[i] * u[j] + v[i] * v[j])) + c * u[i] * v[j]))
            k[18 + 3 * i + j] = bb * (
                slope[1] * (wv[i] * wv[j]) - slope[0] * ((v[i] * wv[j] + wv[i] * v[j]) + c * (one - v[i] * v[j])))
    return True


cdef struct Line:
    double u[3][3]            # coefficients of t^0, t^1, t^2 of each component of a unit vector
    double inverse[3]         # and of one over the length


cdef inline bint follow(const double* d, const double* x, Line* line) noexcept nogil:
    """The direction and length of d + t x. Whether d has a length."""
    cdef double along[3]
    cdef double square = dot(d, d)
    cdef double first, second
    cdef int i
    if square == 0.0:
        return False
    # |d + t x|^2 = |d|^2 (1 + 2 first t + second t^2)
    first = dot(d, x) / square
    second = dot(x, x) / square
    line.inverse[0] = 1.0 / sqrt(square)
    line.inverse[1] = -line.inverse[0] * first
    line.inverse[2] = line.inverse[0] * (1.5 * first * first - 0.5 * second)
    along[2] = 0.0
    for i in range(3):
        along[0] = d[i]
        along[1] = x[i]
        product(2, along, line.inverse, line.u[i])
    return True


cdef inline void third(double p, double s, const Line* a, const Line* b, double* out) noexcept nogil:
    """out (2, 3) = the parts by a and by b of D3E[x, x]."""
    cdef double slope[3]
    cdef double part[3]
    cdef double e[3]
    cdef double w[3][3]
    cdef double factor[3]
    cdef const Line* own = a
    cdef const Line* other = b
    cdef double g, square
    cdef int i, k, n
    g = 1.0 if (a.u[0][0] * b.u[0][0] + a.u[1][0] * b.u[1][0]) + a.u[2][0] * b.u[2][0] >= 0.0 else -1.0
    for n in range(2):
        e[0] = e[1] = e[2] = 0.0
        for i in range(3):
            for k in range(3):
                w[i][k] = other.u[i][k] - g * own.u[i][k]
            product(2, w[i], w[i], part)
            for k in range(3):
                e[k] += 0.5 * part[k]
        square = 0.0
        for i in range(3):
            product(2, e, own.u[i], part)
            for k in range(3):
                w[i][k] += g * part[k]
            square += w[i][0] * w[i][0]
        slopes(p, s, g * (1.0 - e[0]), square, slope)
        # E' as a series: a function of c = g (1 - e).
        slope[2] = 0.5 * slope[2] * e[1] * e[1] - g * slope[1] * e[2]
        slope[1] *= -g * e[1]
        product(2, slope, own.inverse, factor)
        for i in range(3):
            product(2, factor, w[i], part)
            out[3 * n + i] = 2.0 * part[2]
        own = b
        other = a


cdef inline int derive(
    const Derivative* wanted, SiteTable sites, const Py_ssize_t* ends, double p, double s, const double* a,
    const double* b,
) noexcept nogil:
    """The contribution of the angle between a, from site ends[0] to ends[1], and b, from ends[2] to ends[3]. 0, or the
    fault of the sink."""
    cdef double k[27]
    cdef double along[6]
    cdef Line lines[2]
    cdef int fault
    if wanted.add != NULL:
        if not second(p, s, a, b, k):
            return 0
        fault = sites.add_pair(ends[0], ends[1], k, wanted.add, wanted.sink)
        if fault == 0:
            fault = sites.add_mixed(ends, k + 9, wanted.add, wanted.sink)
        if fault == 0:
            fault = sites.add_pair(ends[2], ends[3], k + 18, wanted.add, wanted.sink)
        return fault
    sites.difference(ends[0], ends[1], wanted.a, along)
    sites.difference(ends[2], ends[3], wanted.a, along + 3)
    if follow(a, along, &lines[0]) and follow(b, along + 3, &lines[1]):
        third(p, s, &lines[0], &lines[1], k)
        sites.share(ends[0], ends[1], k, wanted.out)
        sites.share(ends[2], ends[3], k + 3, wanted.out)
    return 0


cdef inline int derive_joint(
    const Derivative* wanted, const int32_t* bead, double p, double s, const double* a, const double* b,
) noexcept nogil:
    """The same of three beads in a row, a = x_1 - x_0 and b = x_2 - x_1: each block once, half as many as of sites."""
    cdef double k[27]
    cdef double block[6][9]
    cdef double along[6]
    cdef Line lines[2]
    cdef Py_ssize_t at[3]
    cdef double mixed
    cdef int c, d, i, j, fault
    for i in range(3):
        at[i] = bead[i]
    if wanted.add != NULL:
        if not second(p, s, a, b, k):
            return 0
        for c in range(3):
            for d in range(3):
                i = 3 * c + d
                # d2E/db da
                mixed = k[9 + 3 * d + c]
                block[0][i] = k[i]
                block[1][i] = mixed - k[i]
                block[2][i] = (k[i] + k[18 + i]) - (mixed + k[9 + i])
                block[3][i] = -mixed
                block[4][i] = mixed - k[18 + i]
                block[5][i] = k[18 + i]
        fault = 0
        for i in range(3):
            for j in range(i + 1):
                if fault == 0:
                    fault = wanted.add(wanted.sink, at[i], at[j], block[i * (i + 1) // 2 + j])
        return fault
    for c in range(3):
        along[c] = wanted.a[3 * at[1] + c] - wanted.a[3 * at[0] + c]
        along[3 + c] = wanted.a[3 * at[2] + c] - wanted.a[3 * at[1] + c]
    if follow(a, along, &lines[0]) and follow(b, along + 3, &lines[1]):
        third(p, s, &lines[0], &lines[1], k)
        for c in range(3):
            wanted.out[3 * at[0] + c] -= k[c]
            wanted.out[3 * at[1] + c] += k[c] - k[3 + c]
            wanted.out[3 * at[2] + c] += k[3 + c]
    return 0
