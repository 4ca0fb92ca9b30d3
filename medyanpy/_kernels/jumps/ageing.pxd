"""States of the subunits of filaments, such as their nucleotides. See ageing.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation


cdef class SubunitStates:
    # (filaments, room): the i-th subunit from the minus end of a filament is at (first + i) mod room.
    cdef signed char[:, ::1] states
    cdef int64_t[::1] first
    cdef Py_ssize_t room
    cdef int n_states
    # How many subunits each filament has, which follows from those of its links: counted anew when arrays have been
    # written to from outside.
    cdef int64_t[::1] count
    cdef long long seen
    cdef const int32_t[:, ::1] nodes
    cdef const int32_t[::1] subunits

    cdef void recount(self) noexcept nogil
    # Count them again if need be; a jump that asks for more has called this in its letter.
    cdef void follow(self, World* world) noexcept nogil
    # The state of the subunit at an end.
    cdef int at_end(self, Py_ssize_t filament, bint plus) noexcept nogil
    # The state of the i-th subunit from the minus end.
    cdef int of(self, Py_ssize_t filament, int64_t i) noexcept nogil
    # What is behind the first `left` subunits of a filament is another one now.
    cdef void cut(self, Py_ssize_t filament, int64_t left, Py_ssize_t other) noexcept nogil
    # The subunits of another one follow those of a filament now.
    cdef void join(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil
    # A subunit has come, in the state 0, or has gone.
    cdef void come(self, Py_ssize_t filament, bint plus) noexcept nogil
    cdef void go(self, Py_ssize_t filament, bint plus) noexcept nogil


cdef class Ageing(JumpOperation):
    cdef object nodes
    cdef object subunits
    cdef readonly SubunitStates of
    cdef public object ids                # of the first node of each filament
    cdef const double[::1] rates
    cdef const double[::1] energies
    cdef double fastest

    cdef int attempt(
        self, World* world, double t, Py_ssize_t filament, Py_ssize_t i, Draws* draws) noexcept nogil
