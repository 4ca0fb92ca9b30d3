"""Energies of two beads that depend on their distance alone, with up to three derivatives.

One branch a function: its energy and derivatives in r, and how many parameters it reads. The loops over
bonds and over neighbours are written once and know nothing else.
"""
from libc.math cimport sqrt


cdef enum Radial:
    HARMONIC = 0       # p = (k, r0):          k/2 (r - r0)^2
    SOFT_SPHERE = 1    # p = (k, d):           k/2 (d - r)^2 for r < d, else 0
    WCA = 2            # p = (epsilon, sigma): 4 epsilon [(sigma/r)^12 - (sigma/r)^6] + epsilon for r < 2^(1/6) sigma


cdef extern from * nogil:
    """
    /* 2^(1/3): WCA ends at r^2 = 2^(1/3) sigma^2. */
    #define MEDYANPY_WCA_END_SQUARED 1.2599210498948732
    """
    const double WCA_END_SQUARED "MEDYANPY_WCA_END_SQUARED"


cdef inline void evaluate(int kind, const double* p, double r, int order, double* u) noexcept nogil:
    """u[0..order]: energy and derivatives at distance r >= 0."""
    cdef double s, s2, s6, e
    if kind == HARMONIC or kind == SOFT_SPHERE:
        s = r - p[1]
        if kind == SOFT_SPHERE and s >= 0.0:
            u[0] = u[1] = 0.0
            if order > 1:
                u[2] = u[3] = 0.0
            return
        u[0] = 0.5 * p[0] * s * s
        u[1] = p[0] * s
        if order > 1:
            u[2] = p[0]
            u[3] = 0.0
    else:
        s2 = p[1] * p[1]
        if r * r >= WCA_END_SQUARED * s2:
            u[0] = u[1] = 0.0
            if order > 1:
                u[2] = u[3] = 0.0
            return
        s = 1.0 / r
        s2 = s2 * s * s
        s6 = s2 * s2 * s2
        e = 4.0 * p[0]
        u[0] = e * (s6 * s6 - s6) + p[0]
        u[1] = -e * s * (12.0 * s6 * s6 - 6.0 * s6)
        if order > 1:
            u[2] = e * s * s * (156.0 * s6 * s6 - 42.0 * s6)
            u[3] = -e * s * s * s * (2184.0 * s6 * s6 - 336.0 * s6)


cdef inline double pull(int kind, double a, double b, double rr, double* u) noexcept nogil:
    """U'(r) / r of two beads within range, and u[0] = U(r); from r^2 and p = (a, b).

    What a sum over neighbours needs and no more: no root for WCA, and no branch that depends on r. Within
    range means r < b (SOFT_SPHERE) or r^2 < WCA_END_SQUARED b^2 (WCA); the caller skips other pairs.
    """
    cdef double r, s, q
    if kind == WCA:
        q = 1.0 / rr
        s = b * b * q
        s = s * s * s
        u[0] = 4.0 * a * (s * s - s) + a
        # At r = 0 this is -inf, and times a displacement of 0 no number: the run stops, as it should.
        return -24.0 * a * (s * (s + s) - s) * q
    r = sqrt(rr)
    s = r - b
    u[0] = 0.5 * a * s * s
    # Beads in one place have no direction to push in. Zero is the mean over all of them.
    return a * s / r if r > 0.0 else 0.0
