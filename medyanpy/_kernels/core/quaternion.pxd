"""Unit quaternions (scalar first), and their rotations (3, 3) of the body frame into space, as bare pointers."""


cdef inline void matrix_of(const double* q, double* R) noexcept nogil:
    """The rotation, row by row."""
    cdef double w = q[0], x = q[1], y = q[2], z = q[3]
    # A product with -w is added, not one with w subtracted: of a difference and a sum of products that are stored next
    # to each other gcc 12 makes one instruction with one rounding (vfmaddsub), even with -ffp-contract=off.
    cdef double m = -w
    R[0] = 1.0 - 2.0 * (y * y + z * z)
    R[1] = 2.0 * (x * y + m * z)
    R[2] = 2.0 * (x * z + w * y)
    R[3] = 2.0 * (x * y + w * z)
    R[4] = 1.0 - 2.0 * (x * x + z * z)
    R[5] = 2.0 * (y * z + m * x)
    R[6] = 2.0 * (x * z + m * y)
    R[7] = 2.0 * (y * z + w * x)
    R[8] = 1.0 - 2.0 * (x * x + y * y)


cdef inline void into_space(const double* R, const double* v, double* out) noexcept nogil:
    """out = R v; out must not be v."""
    cdef int c
    for c in range(3):
        out[c] = R[3 * c] * v[0] + R[3 * c + 1] * v[1] + R[3 * c + 2] * v[2]


cdef inline void into_body(const double* R, const double* v, double* out) noexcept nogil:
    """out = R^T v; out must not be v."""
    cdef int c
    for c in range(3):
        out[c] = R[c] * v[0] + R[3 + c] * v[1] + R[6 + c] * v[2]


cdef inline double scale_to_unit(double w, double x, double y, double z) noexcept nogil:
    """By what to multiply a quaternion that rounding has moved away from length 1: a step of Newton's method for 1/|q|,
    so that rounding does not add up."""
    return 1.5 - 0.5 * (w * w + x * x + y * y + z * z)
