"""Ends of filaments that grow: where they are, and whether they are capped. See filament_ends.pyx."""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.sites cimport Places
from medyanpy._kernels.jumps.jump cimport Draws


# By place; `link` is that of the node from which the last link leads on, `inner` of the link before it, -1: none.
# Without a filament all are -1.
cdef struct End:
    int32_t node
    int32_t before
    int32_t link
    int32_t inner


# Where an end is: its filament, the place of its node in the room of that, and the step to the next one outwards.
cdef struct Place:
    int32_t filament
    int32_t at
    int32_t step


# Of the bending of all joints of some filaments, pN nm^2: the energy of one is modulus - straight cos(theta) - bent
# sin(theta), over the mean length of its links; 0 without bending.
cdef struct Joint:
    double modulus
    double straight
    double bent


# With links of this mean length: the energy of a joint where the directions d, before and after, are unit vectors or
# not; and the logarithm of the integral z of `polymerization.pyx`, where it bends.
cdef double joint_energy(const Joint* joint, double length, const double* before, const double* after) noexcept nogil
cdef double log_integral(const Joint* joint, double length, double kT, double q) noexcept nogil


# Who knows what is held at the places of one lattice: those from `low` to `high` subunits from where a filament began.
cdef class PlaceKeeper:
    cdef bint unbinds         # whether ends that leave these let go what is held, and are not blocked by it
    cdef Places places
    # Of one place, by its row: whether anything is held there; and what is held is held at another one from now on.
    cdef bint is_taken(self, Py_ssize_t row) noexcept nogil
    cdef void shift(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil
    cdef bint holds(self, Py_ssize_t filament, int64_t low, int64_t high) noexcept nogil
    # What is held at a place is let go, at a time after the start of a letter: how many, whose energy is taken away.
    cdef int let_go(self, World* world, double start, double after, Py_ssize_t filament, int64_t at,
                    double* energy) noexcept nogil
    # What is held at these is held on another filament from now on, at places so many subunits further on.
    cdef void move(self, World* world, Py_ssize_t filament, int64_t low, int64_t high,
                   Py_ssize_t other, int64_t by) noexcept nogil
    # Whether something holds two filaments together that is not held on one.
    cdef bint links(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil


cdef class FilamentEnds:
    cdef Py_ssize_t n
    cdef int32_t[:, ::1] rows
    cdef int32_t[:, ::1] at
    # Where nodes come and go: places (filaments, width) that they may have in order, and what `rows` were made for.
    cdef Room room
    cdef const int32_t[:, ::1] slots
    cdef const int32_t[::1] filament_of   # by place, -1 of other beads
    cdef double[:, ::1] room_for
    cdef long long living
    cdef long long seen
    # By place: 0 of an end that grows, else the number of the jump that has capped it, from 1 on.
    cdef int32_t[::1] caps
    cdef list keepers
    cdef PyObject** kept      # the same, borrowed
    cdef Py_ssize_t n_keepers

    # Ends as they are now; the caller asks before it looks at them.
    cdef void find(self, World* world) noexcept nogil
    cdef void find_end(self, Py_ssize_t k) noexcept nogil
    cdef const End* end(self, Py_ssize_t k) noexcept nogil
    cdef const Place* place(self, Py_ssize_t k) noexcept nogil
    # Of filaments whose nodes come and go. Move one within its room, so that it can grow by a step outwards: False
    # where there is no room behind it. Move a node to another row of its handle, which has none, with its id. Ends are
    # to be found again.
    cdef bint shift(self, World* world, Py_ssize_t filament, int step) noexcept nogil
    cdef void shift_by(self, World* world, Py_ssize_t filament, Py_ssize_t by, int step) noexcept nogil
    # Where in its room a filament that is there begins and ends.
    cdef void find_chain(self, Py_ssize_t filament, Py_ssize_t* first, Py_ssize_t* last) noexcept nogil
    cdef void move(self, World* world, int32_t source, int32_t target) noexcept nogil
    # The subunits of a filament.
    cdef int64_t subunits_of(self, World* world, Py_ssize_t filament) noexcept nogil
    # The kinetic energy of a filament; and velocities from Maxwell's distribution, on what is tangent to its links.
    cdef double kinetic(self, World* world, Py_ssize_t filament) noexcept nogil
    cdef void draw_velocities(self, World* world, Py_ssize_t filament, double kT, Draws* draws) noexcept nogil
    # A filament that is not there, the first; -1 without any. Ends have been found, of all filaments, as many of each.
    cdef Py_ssize_t free_filament(self) noexcept nogil
    # Whether anything is held at places from `low` to `high`; and whether it blocks an end that would leave this one.
    cdef bint is_held(self, Py_ssize_t filament, int64_t low, int64_t high) noexcept nogil
    cdef bint is_blocked(self, Py_ssize_t filament, int64_t at) noexcept nogil
    # An end has left a place: how many have been let go, and energy is what that adds, pN nm.
    cdef int let_go(self, World* world, double start, double after, Py_ssize_t filament, int64_t at,
                    double* energy) noexcept nogil
    # What is held at places becomes held on another filament, at places so many subunits further on; whether all
    # lattices have places there; and whether something holds both that is not held on one filament.
    cdef void hand_over(self, World* world, Py_ssize_t filament, int64_t low, int64_t high,
                        Py_ssize_t other, int64_t by) noexcept nogil
    cdef bint is_in_step(self, int64_t by) noexcept nogil
    cdef bint are_linked(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil
