"""Where beads react: who is near whom, where products stand, and how much room there is. See grounds.pyx."""
from libc.stdint cimport int32_t, uint64_t

from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.jump cimport Draws


# Where a bead stands.
cdef struct Spot:
    double x[3]
    int32_t face              # of points, with the weights of its second and third corner
    double weights[2]
    double q[4]               # of bodies: how it is turned, and its angular momentum in the frame of the body
    double spin[3]


# A straight line from a bead to another.
cdef struct Line:
    int32_t place
    double d[3]               # of points in the plane of `unfold.lay_out`, where the third is 0


cdef class Ground:
    cdef double reach
    cdef readonly int dimensions
    cdef public object layout             # of the context, for who sets the reach
    # What `lines_from` has found.
    cdef Line* found
    cdef Py_ssize_t found_room
    cdef readonly long long looked        # windows or cells looked at so far

    # Take where all beads at n places are that are there.
    cdef void begin(self, World* world, const int32_t* places, Py_ssize_t n) noexcept nogil
    cdef void enter(self, World* world, int32_t place) noexcept nogil
    # The bead is still where it has entered.
    cdef void leave(self, World* world, int32_t place) noexcept nogil
    # How much room there is: nm^2 or nm^3.
    cdef double measure(self, World* world) noexcept nogil
    # All straight lines shorter than the reach from a bead to beads of a species, -1: of any, in space alone: how many;
    # -1: no memory, -2: there is no end of them.
    cdef Py_ssize_t lines_from(self, World* world, int32_t place, int32_t species) noexcept nogil
    cdef bint note(self, Py_ssize_t n, int32_t place, double x, double y, double z) noexcept nogil
    # A line whose end is uniform within the reach.
    cdef void draw_line(self, Draws* draws, double* d) noexcept nogil
    # Go a share of a line from a spot, which becomes its end; False: that does not end.
    cdef bint go(self, World* world, double share, const double* d, Spot* spot) noexcept nogil
    # Uniform by measure.
    cdef void draw_spot(self, World* world, Draws* draws, Spot* out) noexcept nogil
    # The place (3,) of a spot, nm.
    cdef void where(self, World* world, const Spot* spot, double* x) noexcept nogil
    # From Maxwell's distribution, with components of the variance kT/m.
    cdef void draw_velocity(
        self, World* world, Draws* draws, const Spot* spot, double variance, double* v) noexcept nogil
    # Of a bead that has just come to a place: a rotation that is uniform, and an angular momentum from Maxwell's
    # distribution; nothing where beads do not turn.
    cdef void draw_turn(self, World* world, Draws* draws, int32_t place, double kT, Spot* out) noexcept nogil
    # Angular momenta over the roots of the moments of inertia, (3,), and the kinetic energy that they are; and momenta
    # that are made of them, with the moments that there are now.
    cdef double turning(self, World* world, int32_t place, double* roots) noexcept nogil
    cdef void turn_by(self, World* world, int32_t place, const double* roots) noexcept nogil
    # Where a bead is; the same again, to the bit; and a bead that is there now, put at a spot.
    cdef void read(self, World* world, int32_t place, Spot* out) noexcept nogil
    cdef void write(self, World* world, int32_t place, const Spot* spot) noexcept nogil
    cdef void put(self, World* world, int32_t place, const Spot* spot) noexcept nogil


cdef class InSpace(Ground):
    cdef Py_ssize_t first
    # Beads by cell: chains by the hash of its numbers, which are whole.
    cdef int32_t[::1] head
    cdef int32_t[::1] following
    cdef double[:, ::1] cell
    cdef uint64_t mask
    cdef double per_cell                  # 1/nm, of open directions
    cdef double around[3]                 # cells in a period; 0 in open directions

    cdef void find_cell(self, World* world, const double* x, double* out) noexcept nogil
    cdef int32_t* chain(self, const double* cell) noexcept nogil
    # Beads of a species, -1: any, within reach of x (3,) in this cell, except for one: how many; -1: no memory.
    cdef Py_ssize_t lines_to(
        self, World* world, const double* x, const double* own, int32_t place, int32_t species) noexcept nogil
    cdef double beside(self, int c, double number) noexcept nogil
    cdef bint look(self, World* world, const double* x, const double* cell, int32_t own, int32_t species,
                   Py_ssize_t* n) noexcept nogil
