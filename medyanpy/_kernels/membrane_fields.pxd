"""What energies of in-triangle points in their weights have in common. See membrane_fields.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.accumulate cimport Accumulator, Groups, Sum
from medyanpy._kernels.program cimport Operation, World


cdef struct FieldTask:
    const int32_t* place      # (n,) of points of one membrane
    const double* value       # (V,) at its vertices
    Py_ssize_t first          # place of its first vertex
    double* energy            # (n,)
    double* slope             # (n, 2) dU/d(lambda_2, lambda_3)
    double* f                 # (n, 3)
    Groups groups
    Sum* sums
    Py_ssize_t n_sums


# Points in one block, however many there are.
cdef enum:
    POINTS_BLOCK = 1024


cdef class WeightForce(Operation):
    cdef FieldTask task
    cdef Accumulator corners
    cdef list arrays
    cdef Py_ssize_t n
    cdef double* partial
    cdef double* total        # (vertices, 3)

    cdef int measure(self, World* world) noexcept nogil
    # Add to `total` what vertices feel of the energy at fixed weights.
    cdef int bend(self, World* world) noexcept nogil
