"""Three-vectors as bare pointers."""


cdef inline double dot(const double* a, const double* b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline void cross(const double* a, const double* b, double* out) noexcept nogil:
    """out = a x b; out must be neither a nor b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


cdef inline void add_scaled(double s, const double* a, double* out) noexcept nogil:
    """out += s a"""
    out[0] += s * a[0]
    out[1] += s * a[1]
    out[2] += s * a[2]


cdef inline bint all_slow(const double* v, const double* limit, Py_ssize_t n) noexcept nogil:
    """Whether the square of each of n velocities is at most its limit; what is not a number is not."""
    cdef Py_ssize_t i, slow = 0
    for i in range(n):
        slow += v[3 * i] * v[3 * i] + v[3 * i + 1] * v[3 * i + 1] + v[3 * i + 2] * v[3 * i + 2] <= limit[i]
    return slow == n


cdef inline bint all_below(const double* a, Py_ssize_t n, double square) noexcept nogil:
    """Whether the square of each of n numbers is at most `square`; what is not a number is not."""
    cdef Py_ssize_t i, below = 0
    for i in range(n):
        below += a[i] * a[i] <= square
    return below == n


cdef inline bint all_finite(const double* a, Py_ssize_t n) noexcept nogil:
    """Whether each of n numbers is one. Counted, as sums cannot be vectorised: additions wait for each other."""
    cdef Py_ssize_t i, finite = 0
    for i in range(n):
        finite += a[i] - a[i] == 0.0
    return finite == n
