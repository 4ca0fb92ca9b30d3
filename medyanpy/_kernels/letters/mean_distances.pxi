# Mean distances of points of two spheres, and their derivatives: what mobilities of pairs are made of. Included by
# hydrodynamics.pyx.
#
# H(r) is the mean of |x + s - t| over s and t, each drawn from the surface of its sphere or from its ball. P = r H is
# r^2 + c apart; overlapping, a polynomial in s = a + b - r is added, whose lowest power makes the change smooth. At
# distances small beside the radii the terms of that sum cancel; there the two radii are alike, since the difference of
# them is smaller yet, and P is used in powers of r, with coefficients that hold powers of a - b. Derived in
# docs/theory/hydrodynamics.md; apart it is the tensor of Rotne and Prager, the rest that of Wajnryb, Mizerski, Zuk and
# Szymczak (J. Fluid Mech. 731, R3, 2013) and of Zuk and others for unequal spheres (J. Fluid Mech. 741, R5, 2014).

cdef enum:
    SURFACE_SURFACE = 0
    BALL_SURFACE = 1          # the ball is the first
    BALL_BALL = 2

# (r d/dr)/r^2 ... : h1 = H'/r, h2 = h1'/r, h3 and h4 likewise.
cdef enum:
    DERIVATIVES = 4


cdef struct Polynomials:
    double c                  # apart, P = r^2 + c
    double denominator        # of the polynomials
    int lowest                # power of s = a + b - r that `of_s` begins with
    double of_s[3]
    double of_r[9]            # from power 0 on
    double within[2]          # h1 and h2 where one is within the other


cdef inline double _power(double x, int n) noexcept nogil:
    cdef double out = 1.0
    cdef int k
    for k in range(n if n > 0 else -n):
        out *= x
    return out if n >= 0 else 1.0 / out


cdef void _polynomials(int kind, double a, double b, Polynomials* p) noexcept nogil:
    cdef double e = a - b, f = a + b, outer = a if a > b else b
    cdef int k
    for k in range(9):
        p.of_r[k] = 0.0
    p.of_s[1] = p.of_s[2] = 0.0
    if kind == SURFACE_SURFACE:
        p.c = (a * a + b * b) / 3.0
        p.denominator = 24.0 * a * b
        p.lowest = 4
        p.of_s[0] = -1.0
        p.of_r[0] = -_power(e, 4)
        p.of_r[1] = 4.0 * _power(f, 3)
        p.of_r[2] = -6.0 * e * e
        p.of_r[3] = 4.0 * f
        p.of_r[4] = -1.0
        p.within[0] = 2.0 / (3.0 * outer)
        p.within[1] = 0.0
    elif kind == BALL_SURFACE:
        p.c = a * a / 5.0 + b * b / 3.0
        p.denominator = 240.0 * _power(a, 3) * b
        p.lowest = 5
        p.of_s[0] = -6.0 * a
        p.of_s[1] = 1.0
        p.of_r[0] = -_power(e, 5) * (5.0 * a + b)
        p.of_r[1] = 6.0 * _power(f, 4) * (4.0 * a - b)
        p.of_r[2] = -15.0 * _power(e, 3) * (3.0 * a + b)
        p.of_r[3] = 20.0 * f * f * (2.0 * a - b)
        p.of_r[4] = -15.0 * e * f
        p.of_r[5] = -6.0 * b
        p.of_r[6] = 1.0
        # H = 3/4 a + <s^2>/2a - <s^4>/20a^3 in a ball. Of h1 nothing but mobilities of translation is made.
        p.within[0] = NAN
        p.within[1] = -0.4 / _power(outer, 3) if a >= b else 0.0
    else:
        p.c = (a * a + b * b) / 5.0
        p.denominator = 4480.0 * _power(a * b, 3)
        p.lowest = 6
        p.of_s[0] = -56.0 * a * b
        p.of_s[1] = 8.0 * f
        p.of_s[2] = -1.0
        p.of_r[0] = 7.0 * _power(e, 6) * (a * a + 6.0 * a * b + b * b)
        p.of_r[1] = -48.0 * _power(f, 5) * (a * a - 5.0 * a * b + b * b)
        p.of_r[2] = 140.0 * _power(e, 4) * (a * a + 4.0 * a * b + b * b)
        p.of_r[3] = -224.0 * _power(f, 3) * (a * a - 3.0 * a * b + b * b)
        p.of_r[4] = 210.0 * _power(e * f, 2)
        p.of_r[5] = -112.0 * f * (a * a - a * b + b * b)
        p.of_r[6] = 28.0 * (a * a + b * b)
        p.of_r[8] = -1.0
        p.within[0] = NAN
        p.within[1] = -0.4 / _power(outer, 3)


cdef void _mean_distance(int kind, double r, double a, double b, double* h) noexcept nogil:
    """The four derivatives of H at a distance r >= 0 of spheres of radii a, b > 0."""
    cdef Polynomials p
    cdef double C[DERIVATIVES + 1]
    cdef double outer = a if a > b else b
    cdef double s = a + b - r, i, i2, i3, term, inverse
    cdef int k, order, exponent
    _polynomials(kind, a, b, &p)
    for order in range(DERIVATIVES):
        h[order] = 0.0
    if r <= (a - b if a > b else b - a):
        h[0], h[1] = p.within[0], p.within[1]
        return
    inverse = 1.0 / p.denominator
    if s > 0.0 and r < 0.5 * outer:
        for k in range(9):
            term = p.of_r[k] * inverse
            exponent = k - 1
            for order in range(DERIVATIVES):
                term = term * exponent
                exponent -= 2
                if term == 0.0:
                    break
                h[order] += term * _power(r, exponent)
        return
    i = 1.0 / r
    i2 = i * i
    i3 = i2 * i
    h[0] = i - p.c * i3
    h[1] = (3.0 * p.c * i2 - 1.0) * i3
    h[2] = (3.0 - 15.0 * p.c * i2) * i3 * i2
    h[3] = (105.0 * p.c * i2 - 15.0) * i3 * i2 * i2
    if s > 0.0:
        # C and its derivatives by r.
        for order in range(DERIVATIVES + 1):
            C[order] = 0.0
        for k in range(3):
            term = p.of_s[k] * inverse
            for order in range(DERIVATIVES + 1):
                C[order] += term * _power(s, p.lowest + k - order)
                term = -term * (p.lowest + k - order)
        h[0] += (C[1] * r - C[0]) * i3
        h[1] += (C[2] * r * r - 3.0 * C[1] * r + 3.0 * C[0]) * i3 * i2
        h[2] += (C[3] * _power(r, 3) - 6.0 * C[2] * r * r + 15.0 * (C[1] * r - C[0])) * i3 * i2 * i2
        h[3] += (
            C[4] * _power(r, 4) - 10.0 * C[3] * _power(r, 3) + 45.0 * C[2] * r * r - 105.0 * (C[1] * r - C[0])
        ) * i3 * i3 * i3
