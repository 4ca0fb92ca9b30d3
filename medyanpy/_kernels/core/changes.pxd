"""Changes of a state that are proposed before they are made; see changes.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport Change, Quad, World


cdef void keep_point(World* world, Py_ssize_t p, int32_t* triangle, double* weights, double* v) noexcept nogil
cdef void carry(World* world, const Quad* quad, int32_t* triangle, double* weights, double* v) noexcept nogil
cdef int swap(World* world, Change* change) noexcept nogil
