"""Which nodes filaments with room for more have. See present.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport World


cdef class PresentChains:
    cdef const int32_t[:, ::1] slots
    cdef int32_t[::1] first               # (filaments,) where in its room each begins,
    cdef int32_t[::1] count               # and how many nodes it has; 0: it is not there
    cdef const int32_t[::1] filament_of   # by place from `low` on, -1 of other beads
    cdef Py_ssize_t low
    cdef long long living, written        # what they were found for

    # Find them as they are now; whether any may be another than the last time.
    cdef bint find(self, World* world) noexcept nogil
    cdef void look(self, World* world, Py_ssize_t filament) noexcept nogil


cdef class PresentRows(PresentChains):
    # The table of joints.pxd of those that are there, with two rows more at both ends, and rows of it.
    cdef int32_t[::1] node
    cdef int32_t[::1] start               # (filaments,) the row of each one's first node
    cdef int32_t[::1] nodes
    cdef Py_ssize_t rows, filaments

    # The table as it is now.
    cdef void list_rows(self, World* world) noexcept nogil


cdef class PresentLanes(PresentChains):
    # Those of struct Filaments, constraints.pxi.
    cdef int lanes
    cdef readonly object tables
    cdef int32_t[::1] step, links, start, node, owned, order, starts
    cdef double[::1] square
    cdef Py_ssize_t batches

    cdef void spread(self, World* world) noexcept nogil
    cdef void fill(self, Py_ssize_t batch, Py_ssize_t leader, int lanes, Py_ssize_t entries) noexcept nogil
