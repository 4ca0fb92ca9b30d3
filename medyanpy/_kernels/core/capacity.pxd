"""Which beads are there, and room for more. See capacity.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.program cimport RowChange, ROW_CHANGES, Operation, World


# Numbers by place that depend on whether a bead is there, and on its species.
cdef struct Waking:
    double* now               # (m, width)
    # (m, width) what they are of a bead that is there; behind these, for each handle with species, of a bead of each of
    # them.
    const double* awake
    double asleep             # and of a row asleep
    Py_ssize_t first          # of the places that have such numbers, which are m; all others have none
    Py_ssize_t m
    Py_ssize_t width


cdef class Room(Operation):
    cdef signed char[::1] alive
    cdef int64_t[::1] ids
    cdef int64_t[::1] next_id
    cdef int32_t[::1] low
    cdef int32_t[::1] high
    cdef long long[::1] living
    cdef RowChange[ROW_CHANGES] row_changes
    cdef int32_t[::1] species
    cdef const int32_t[::1] table
    cdef object kept
    cdef Waking* waking
    cdef Py_ssize_t n_waking

    # The first of n places where nobody is; -1: there is none.
    cdef Py_ssize_t free_place(self, const int32_t* places, Py_ssize_t n) noexcept nogil
    # A bead is born at a place that is asleep: with mass, friction and noise of its handle, a permanent id that nobody
    # has had, this position (not of in-triangle points: triangle and weights are the caller's) and this velocity.
    # 0, or a fault.
    cdef int wake(self, World* world, Py_ssize_t place, const double* x, const double* v) noexcept nogil
    # The bead at a place, which is there or will be, is of another species of its handle.
    cdef void become(self, World* world, Py_ssize_t place, int32_t species) noexcept nogil
    # The bead at a place is gone.
    cdef void put_to_sleep(self, World* world, Py_ssize_t place) noexcept nogil
    cdef void settle(self, World* world, Py_ssize_t place) noexcept nogil
    # The bead at a place has come, gone, or become another: what is kept of beads learns it from `World.row_changes`.
    cdef void note(self, World* world, Py_ssize_t place) noexcept nogil
    # A free bead moves to another row of its handle, where none is, with its id.
    cdef void move(self, World* world, Py_ssize_t source, Py_ssize_t target) noexcept nogil
