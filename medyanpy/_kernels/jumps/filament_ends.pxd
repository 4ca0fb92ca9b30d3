"""Ends of filaments that grow: where they are, and whether they are capped. See filament_ends.pyx."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.program cimport World
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


cdef class FilamentEnds:
    cdef Py_ssize_t n
    cdef int32_t[:, ::1] rows
    cdef int32_t[:, ::1] at
    # Where nodes come and go: places (filaments, width) that they may have in order, and what `rows` were made for.
    cdef Room room
    cdef const int32_t[:, ::1] slots
    cdef double[:, ::1] room_for
    cdef long long living
    cdef long long seen
    # By place: 0 of an end that grows, else the number of the jump that has capped it, from 1 on.
    cdef int32_t[::1] caps

    # Ends as they are now; the caller asks before it looks at them.
    cdef void find(self, World* world) noexcept nogil
    cdef const End* end(self, Py_ssize_t k) noexcept nogil
    cdef const Place* place(self, Py_ssize_t k) noexcept nogil
    # Of filaments whose nodes come and go. Move one within its room, so that it can grow by a step outwards: False
    # where there is no room behind it. Move a node to another row of its handle, which has none, with its id. Ends are
    # to be found again.
    cdef bint shift(self, World* world, Py_ssize_t filament, int step) noexcept nogil
    cdef void move(self, World* world, int32_t source, int32_t target) noexcept nogil
    # The kinetic energy of a filament; and velocities from Maxwell's distribution, on what is tangent to its links.
    cdef double kinetic(self, World* world, Py_ssize_t filament) noexcept nogil
    cdef void draw_velocities(self, World* world, Py_ssize_t filament, double kT, Draws* draws) noexcept nogil
    # A filament that is not there, the first; -1 without any. Ends have been found, of all filaments, as many of each.
    cdef Py_ssize_t free_filament(self) noexcept nogil
