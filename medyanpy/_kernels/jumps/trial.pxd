"""Trial moves: what a change gains, and making it. See trial.pyx. Third parties write jumps against this file."""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t

from medyanpy._kernels.core.program cimport Change, Quad, World
from medyanpy._kernels.core.workspace cimport WorkSpace


# The forces of a context, as a jump asks them about changes.
cdef class Weights:
    # What to ask each, how to bind one again, and who takes those that were.
    cdef list forces
    cdef PyObject** items     # the same, borrowed
    cdef Py_ssize_t n_forces
    cdef Py_ssize_t n_rebound
    cdef int32_t[::1] asks
    cdef int32_t[::1] order   # in which they are asked: the first n_asked
    cdef Py_ssize_t n_asked
    # What each gains, in the order in which they are added up: that of the forces, but for those asked first.
    cdef double[::1] gained
    cdef int32_t[::1] rank    # of those in `order`
    cdef readonly bint may_stop   # whether the one asked last may tell early that it gains too much
    cdef object rebind
    cdef object hand_back
    cdef dict fresh           # of this attempt, and of this letter
    cdef dict rebound
    cdef PyObject* owner      # the jump, which keeps what Python code has raised (borrowed)
    cdef WorkSpace space

    # Work space for forces, and x of points, until `leave`.
    cdef int enter(self, World* world) noexcept nogil
    cdef int leave(self, World* world) noexcept nogil
    # The gain of the energy of all forces, pN nm: INFINITY where the change is impossible.
    cdef int gain(self, World* world, Change* change, double* energy) noexcept nogil
    # The same where nobody wants to know what is more than `most`: INFINITY may stand for that.
    cdef int gain_below(self, World* world, Change* change, double most, double* energy) noexcept nogil
    # Flips of these two triangles will be asked about soon.
    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil
    # Make the change that was asked about last.
    cdef int make(self, World* world, Change* change) noexcept nogil
    # The energy of all terms that depend on these n places, of all forces, and of those that it asks about changes, as
    # things are. Rows may be inactive. Asked before and after rows come and go or links grow, it tells the gain, if
    # every term that changes depends on one of the places. A force without a local form adds its whole energy.
    cdef int around(
        self, World* world, const int32_t* places, Py_ssize_t n, double* every, double* asked) noexcept nogil
    cdef int ask_rebound(self, World* world, Change* change, Py_ssize_t k, double* gained) noexcept
    cdef void keep_fresh(self) noexcept
    cdef int give_back(self, World* world) noexcept
    cdef int raised(self, World* world, error) noexcept


# A few Cartesian beads elsewhere.
cdef class Trial:
    cdef Change change
    cdef int32_t[::1] places
    cdef double[:, ::1] x

    # Room for n beads: write their `places` and `x`, then ask `Weights.gain` about `change`.
    cdef void begin(self, Py_ssize_t n) noexcept nogil
