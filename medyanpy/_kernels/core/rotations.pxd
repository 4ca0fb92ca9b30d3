"""Quaternions of many bodies, turned by rotation vectors of their own frames; vectorised over a block of them."""
from libc.math cimport sqrt

from medyanpy._kernels.core.elementary cimport sincos_
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK
from medyanpy._kernels.core.quaternion cimport scale_to_unit


# Orientations of a block, and the rotation vectors by which they turn.
cdef struct Turns:
    double q[4][NORMALS_BLOCK]
    double r[3][NORMALS_BLOCK]
    double s[NORMALS_BLOCK]
    double c[NORMALS_BLOCK]


cdef inline double turn(Turns* b, Py_ssize_t n) noexcept nogil:
    """q <- q (cos, sin) of half the angle, for n of them; 0, or no number where one of them is none."""
    cdef double w, x, y, z, s, c, angle, check = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        b.c[k] = sqrt(b.r[0][k] * b.r[0][k] + b.r[1][k] * b.r[1][k] + b.r[2][k] * b.r[2][k])
    for k in range(n):
        angle = b.c[k]
        sincos_(0.5 * angle, &s, &c)
        b.c[k] = c
        # sin(angle / 2) / angle
        b.s[k] = s / (angle if angle > 0.0 else 1.0)
        b.s[k] = b.s[k] if angle > 0.0 else 0.5
    for k in range(n):
        s = b.s[k]
        c = b.c[k]
        w = c * b.q[0][k] - s * (b.q[1][k] * b.r[0][k] + b.q[2][k] * b.r[1][k] + b.q[3][k] * b.r[2][k])
        x = c * b.q[1][k] + s * (b.q[0][k] * b.r[0][k] + b.q[2][k] * b.r[2][k] - b.q[3][k] * b.r[1][k])
        y = c * b.q[2][k] + s * (b.q[0][k] * b.r[1][k] + b.q[3][k] * b.r[0][k] - b.q[1][k] * b.r[2][k])
        z = c * b.q[3][k] + s * (b.q[0][k] * b.r[2][k] + b.q[1][k] * b.r[1][k] - b.q[2][k] * b.r[0][k])
        s = scale_to_unit(w, x, y, z)
        b.q[0][k] = s * w
        b.q[1][k] = s * x
        b.q[2][k] = s * y
        b.q[3][k] = s * z
    for k in range(n):
        check += 0.0 * b.q[0][k]
    return check
