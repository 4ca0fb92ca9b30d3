"""Arrays that the task of an operation points to. See arrays.pyx."""
from libc.stdint cimport int32_t, int64_t

ctypedef fused Number:
    double
    int32_t
    int64_t
    unsigned char

# Where an array of one or two dimensions starts; NULL where it is empty.
cdef const Number* vector(list arrays, const Number[::1] array) except? NULL
cdef const Number* table(list arrays, const Number[:, ::1] array) except? NULL
cpdef large_zeros(shape, dtype=*)
# Where n new zeros start.
cdef double* zeros(list arrays, Py_ssize_t n) except? NULL
