"""Reactions of beads with species. See point_reactions.pyx."""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.program cimport Sequence, World
from medyanpy._kernels.core.workspace cimport WorkSpace
from medyanpy._kernels.jumps.grounds cimport Ground, Spot
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation
from medyanpy._kernels.jumps.pools cimport PoolCounts


# Reactions by what they do; each is one way.
cdef enum:
    TURN = 0                  # A -> B: the place stays
    PART = 1                  # C -> A + B: both fly apart along one straight line
    MEET = 2                  # A + B -> C: by straight lines between the two
    PASS = 3                  # A + B -> C + D: by straight lines; both places stay
    COME = 4                  # 0 -> A: uniform by area or volume
    GO = 5                    # A -> 0


cdef struct Reaction:
    int kind
    int32_t from_a, from_b    # species; -1: none
    int32_t to_a, to_b
    # Of the pool: which species an event takes a molecule of, and which it gives one of; -1: none.
    int32_t taken, given
    # 1/s, of attempts; of MEET and PASS by straight line, of COME by area or volume; by concentration of `taken`
    double rate
    double fraction           # of MEET and PART: where on the line from A to B the one stands
    double affinity           # kT: what drives it round cycles; 0 in balance, infinite where there is no way back
    double share              # how much of a change of energy is in this rate, -1: see `log_accepted`
    double limit              # kT, up to which it is


cdef enum:
    ROWS = 256                # of a block, in which a free one is looked for


# What a bead was before an attempt.
cdef struct Kept:
    int32_t place
    signed char alive
    int64_t id
    int32_t species
    double v[3]
    Spot spot


# Reactions of the beads of one handle; jumps that bring beads of several handles together have one without reactions
# for each.
cdef class PointReactions(JumpOperation):
    cdef Room room
    cdef const int32_t[::1] places
    cdef const double[::1] masses
    cdef int most
    cdef bint together                    # C takes the momentum of A and B, and hands it on
    cdef readonly Ground ground
    cdef WorkSpace space
    cdef PoolCounts pool
    # Forces that tell the energy of one bead, and others, of which the whole energy is computed.
    cdef Sequence telling
    cdef readonly Sequence forces
    cdef double gained                    # what one attempt has changed of the former
    cdef bint thins                       # whether `thin` tells the logarithm of the rates there and back
    cdef bint decides                     # whether attempts are weighed without forces, too
    cdef double share, limit              # of the reaction that is attempted
    cdef Reaction* reactions
    cdef Py_ssize_t n_reactions
    cdef readonly long long[::1] done     # events of each reaction since the start
    # Beads by species, of the letter that has begun; counts of the state `seen`.
    cdef int32_t[:, ::1] members
    cdef int32_t[::1] rank
    cdef int32_t[::1] numbers
    # Which row a place is, and how many rows of each block are free, in the letter that has begun.
    cdef int32_t[::1] row
    cdef int32_t[::1] vacant
    cdef long long seen, world, written
    cdef double potential                 # of the forces on the beads, as they are now; infinite: not known

    # How many there are of each species, `numbers`.
    cdef void count(self, World* world) noexcept nogil
    # A letter begins in which something is tried: beads by species, by row, and by where they are.
    cdef void sort(self, World* world) noexcept nogil
    # One of the beads of a species, which there are; and another random number.
    cdef int32_t choose(self, Draws* draws, int32_t species, double* second) noexcept nogil
    # Remove a bead, and create one, of which what was there before goes to `before`: 0, or a fault. Energies go to
    # `gained`, the kinetic one to K.
    cdef int remove(self, World* world, int32_t place, Kept* before, Py_ssize_t* n, double* K) noexcept nogil
    cdef int create(self, World* world, int32_t species, const Spot* spot, const double* given, Draws* draws,
                    Kept* before, Py_ssize_t* n, double* K) noexcept nogil
    # The whole energy of the forces that do not tell that of one bead; kept until `potential` is infinite.
    cdef int energy_now(self, World* world, double* out) noexcept nogil
    # Whether what has been done to beads, the first of them at a place, stays: by `gained`, and the whole energy now in
    # place of the old one. 0, or a fault.
    cdef int decide(self, World* world, int32_t place, double old, Draws* draws, bint* accepted) noexcept nogil
    # The logarithm of the share of attempts that go on, of those that gain so much energy, kT.
    cdef double log_accepted(self, double w) noexcept nogil
    # Bring back what a bead was.
    cdef void restore(self, World* world, const Kept* was) noexcept nogil
    cdef void enter(self, World* world, int32_t place) noexcept nogil
    cdef void admit(self, World* world, int32_t place) noexcept nogil
    cdef void leave(self, World* world, int32_t place) noexcept nogil
    cdef Py_ssize_t free_place(self, World* world) noexcept nogil
    cdef double rate_of(self, World* world, const Reaction* r) noexcept nogil
    cdef int attempt(self, World* world, double t, Py_ssize_t which, Draws* draws) noexcept nogil
    # For classes whose beads come, go and turn more rarely than they are tried: whether one goes on, and the logarithm
    # of its rates there and back, to which the affinity of the reaction is added then.
    cdef int thin(self, World* world, Py_ssize_t which, int32_t place, const Spot* spot, Draws* draws,
                  double* chemical, bint* goes) noexcept nogil
    cdef int weigh_bead(self, World* world, int32_t place, double sign) noexcept nogil
    cdef void keep(self, World* world, int32_t place, Kept* out) noexcept nogil
    cdef int turn(self, World* world, int32_t place, int32_t species, Kept* before, Py_ssize_t* n) noexcept nogil
    cdef void hand_on(self, World* world, const Reaction* r, int32_t a, int32_t b, const Spot* spot, Draws* draws,
                      double* v) noexcept nogil
