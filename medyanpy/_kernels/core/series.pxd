"""Power series in t, cut after t^2: derivatives along a line x + t a, without differences and without their steps.

A number is a[0] + a[1] t + a[2] t^2, a three-vector has its coefficient of t^k in v[3 k] to v[3 k + 2]. A formula made
of products, quotients and roots is followed through by its steps, in each of which the coefficients up to t^k make that
of t^k: of a function f(x + t a) they are f, Df a and half of D2f[a, a], to round-off. `order` is how far a series goes;
where it is a constant to the compiler nothing is computed of what is beyond it, and at 0 the formula is left as it is.
"""
from libc.math cimport sqrt

from medyanpy._kernels.core.vec3 cimport cross, dot


cdef inline double product_at(int k, const double* a, const double* b) noexcept nogil:
    """The coefficient of t^k of a b."""
    if k == 0:
        return a[0] * b[0]
    if k == 1:
        return a[0] * b[1] + a[1] * b[0]
    return (a[0] * b[2] + a[2] * b[0]) + a[1] * b[1]


cdef inline void product(int order, const double* a, const double* b, double* out) noexcept nogil:
    """out = a b; out is neither."""
    cdef int k
    for k in range(order + 1):
        out[k] = product_at(k, a, b)


cdef inline void quotient(int order, const double* a, const double* b, double* out) noexcept nogil:
    """out = a / b; out may be a."""
    out[0] = a[0] / b[0]
    if order > 0:
        out[1] = (a[1] - out[0] * b[1]) / b[0]
    if order > 1:
        out[2] = (a[2] - (out[0] * b[2] + out[1] * b[1])) / b[0]


cdef inline void divided(int order, const double* v, const double* s, double* out) noexcept nogil:
    """out (3,) = v / s, a vector by a number; out may be v."""
    cdef int c, i, k
    for k in range(order + 1):
        for c in range(3):
            out[3 * k + c] = v[3 * k + c]
            for i in range(1, k + 1):
                out[3 * k + c] -= s[i] * out[3 * (k - i) + c]
            out[3 * k + c] /= s[0]


cdef inline double dot_at(int k, const double* a, const double* b) noexcept nogil:
    """The coefficient of t^k of the scalar product."""
    if k == 0:
        return dot(a, b)
    if k == 1:
        return dot(a, b + 3) + dot(a + 3, b)
    return (dot(a, b + 6) + dot(a + 6, b)) + dot(a + 3, b + 3)


cdef inline void dots(int order, const double* a, const double* b, double* out) noexcept nogil:
    cdef int k
    for k in range(order + 1):
        out[k] = dot_at(k, a, b)


cdef inline void cross_at(int k, const double* a, const double* b, double* out) noexcept nogil:
    """out (3,) = the coefficient of t^k of a x b."""
    cdef double part[3]
    cdef int c, i
    cross(a, b + 3 * k, out)
    for i in range(1, k + 1):
        cross(a + 3 * i, b + 3 * (k - i), part)
        for c in range(3):
            out[c] += part[c]


cdef inline void crosses(int order, const double* a, const double* b, double* out) noexcept nogil:
    cdef int k
    for k in range(order + 1):
        cross_at(k, a, b, out + 3 * k)


cdef inline void add_scaled_at(int k, const double* s, const double* v, double* out) noexcept nogil:
    """out (3,) += the coefficient of t^k of s v."""
    cdef int c, i
    for i in range(k + 1):
        for c in range(3):
            out[c] += s[i] * v[3 * (k - i) + c]


cdef inline void root(int order, const double* a, double* out) noexcept nogil:
    """out = the square root of a; out may be a."""
    out[0] = sqrt(a[0])
    if order > 0:
        out[1] = 0.5 * a[1] / out[0]
    if order > 1:
        out[2] = 0.5 * (a[2] - out[1] * out[1]) / out[0]
