"""Filaments that are cut in two. See severing.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.ageing cimport Ageing
from medyanpy._kernels.jumps.filament_ends cimport FilamentEnds, Joint
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation
from medyanpy._kernels.jumps.trial cimport Weights


cdef class Severing(JumpOperation):
    cdef readonly FilamentEnds ends
    cdef Room room
    cdef double rise
    cdef public int state
    cdef public int32_t most  # subunits of a link
    cdef double rate          # 1/s
    # Share of the energy of bending that speeds cuts, up to so many times.
    cdef double share
    cdef double most_faster
    cdef Joint joint
    cdef public Ageing ageing
    cdef readonly Weights weights
    cdef int32_t[::1] places  # of a filament from a cut on, and of what becomes of it

    # How many attempts there are at the rate of one subunit; and one of them, at a time t after the start of a letter.
    cdef double attempts(self) noexcept nogil
    cdef int attempt_one(self, World* world, double t, Py_ssize_t which, Draws* draws) noexcept nogil
    cdef int attempt(self, World* world, double t, Py_ssize_t filament, Py_ssize_t link, int32_t i,
                     Draws* draws) noexcept nogil
    # What stands before each attempt of a letter, of which `inside` tells whether there has been one.
    cdef int begin_attempt(self, World* world, bint* inside) noexcept nogil
    # The energy of the bending at a node, and how many times faster a filament parts there for it.
    cdef double energy_of_joint(self, World* world, Py_ssize_t filament, Py_ssize_t at) noexcept nogil
    cdef double faster(self, World* world, Py_ssize_t filament, Py_ssize_t at) noexcept nogil
    # A filament parts at one of its nodes; `last` is its last.
    cdef int cut(self, World* world, double t, Py_ssize_t filament, Py_ssize_t at, Py_ssize_t last,
                 Draws* draws) noexcept nogil
    # What is from a node on becomes another filament, which begins at `start` in its room: a node at x with the
    # velocity v is created there. Its subunits are counted by so many more from where they began.
    cdef int part(self, World* world, Py_ssize_t filament, Py_ssize_t at, Py_ssize_t last, Py_ssize_t other,
                  Py_ssize_t start, int64_t by, const double* x, const double* v) noexcept nogil
    # The states of subunits of a filament that has parted are those of both.
    cdef void settle(self, World* world, Py_ssize_t filament, Py_ssize_t other) noexcept nogil
