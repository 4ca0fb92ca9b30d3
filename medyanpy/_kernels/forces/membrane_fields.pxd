"""What energies of in-triangle points in their weights have in common. See membrane_fields.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.accumulate cimport Accumulator, Groups, Sum
from medyanpy._kernels.core.expressions cimport Function
from medyanpy._kernels.core.parallel cimport BlockFunction
from medyanpy._kernels.core.program cimport Change, Operation, World


cdef struct FieldTask:
    const int32_t* place      # (n,) of points of one membrane
    int64_t wanted            # bits of the species that count
    const double* value       # (q, V) at its vertices
    Py_ssize_t q
    Py_ssize_t n_vertices
    Py_ssize_t first          # place of its first vertex
    double* energy            # (n,)
    double* slope             # (n, 2) dU/d(lambda_2, lambda_3)
    double* f                 # (n, 3)
    Groups groups
    Sum* sums
    Py_ssize_t n_sums
    # Of what is written: u and its derivatives in the q fields.
    const Function* function
    double* registers         # (blocks, WIDTH * n_registers)


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
    # What finds slopes and energies of some points; NULL where all of them are asked for at once.
    cdef BlockFunction loop
    cdef int32_t[::1] row_of  # (points,) -1: not of this force

    cdef const Change* change  # that `local_energy` belongs to
    cdef int measure(self, World* world) noexcept nogil
    # Add to `total` what vertices feel of the energy at fixed weights.
    cdef int bend(self, World* world) noexcept nogil
