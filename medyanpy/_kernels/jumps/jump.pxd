"""The letter J: what happens at once. See jump.pyx. Third parties write jumps against this file."""
from libc.stdint cimport int64_t, uint32_t

from medyanpy._kernels.core.program cimport Operation, World
from medyanpy._kernels.jumps.pools cimport PoolCounts


# Random numbers of one jump in one letter of one step: the n-th four words are a function of these and of n.
cdef struct Draws:
    uint32_t key0
    uint32_t key1
    uint32_t word1
    uint32_t word2
    uint32_t next             # how many have been drawn


# More draws in one letter than these are a mistake in rates or their unit, and would take for ever: who draws stops
# there, and the letter says so.
cdef enum:
    MOST_DRAWS = 20000000


# Uniform in (0, 1), with 53 bits: rates of 1e-12 per step come out right. Two of them at a time.
cdef void draw_two(Draws* draws, double* u) noexcept nogil
# A waiting time of rate 1, > 0.
cdef double draw_exponential(double u) noexcept nogil
# A velocity (3,) of Maxwell's distribution, with components of the variance kT/m.
cdef void draw_maxwell(Draws* draws, double variance, double* v) noexcept nogil
# Whether something that happens at a rate, 1/s, does so before h: t, from when on it is waited for, becomes when, and
# u[1] is a number for what it is. False also where too much has been drawn.
cdef bint wait(Draws* draws, double rate, double h, double* t, double* u) noexcept nogil


cdef struct Event:
    int64_t step              # steps done before the one it happened in
    double time               # s
    int64_t kind              # an index of the jump's `kinds`
    int64_t a                 # ids, of what its kind says; -1: none
    int64_t b
    int64_t c
    double energy             # pN nm: by how much potential and kinetic energy have changed
    double kinetic            # pN nm: the kinetic part
    double chemical           # pN nm: what drives it, kT ln(rate there / rate back) + energy


cdef class JumpOperation(Operation):
    # Tried, accepted, and events that have happened since the first step; and who keeps them.
    cdef long long* counts
    cdef object kept_counts
    # Sum and rest of what has driven its events, kT, and how many of them had no way back.
    cdef double* driving
    cdef object kept_driving
    cdef double kT            # pN nm; nan without a thermostat
    cdef readonly bint driven
    # Whether its events change what forces depend on; if so, whether that is which links are bound and nothing else.
    cdef bint moves
    cdef bint relinks
    cdef public PoolCounts inside  # the pool that it takes from, where that is the inside of a membrane; else None
    cdef public object company     # all jumps of the context, a `Company`; None as long as it is not known
    cdef readonly int every   # acts at each so many steps, for as many steps' time
    # What `act` has done to the energy (pN nm), added up until somebody has booked it: in all, and the kinetic part.
    cdef double energy
    cdef double kinetic
    # Whether somebody wants events written down.
    cdef public bint recording
    cdef int64_t third        # the id c of the next event, -1 as long as nobody says
    cdef Event* events
    cdef Py_ssize_t room
    cdef long long first      # number of the first event that is kept
    cdef double start         # s: when the letter begins

    # The jump process for a time h (s) with everything else still: 0, or a fault.
    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil
    # Whether `act` with these draws would ask for the energies of all forces.
    cdef bint measures(self, World* world, double h, Draws* draws) noexcept nogil
    # For `act`: an event has happened, `after` (s) the beginning. A fault where there is no memory.
    cdef int happened(self, World* world, double after, int kind, int64_t a, int64_t b, double energy,
                      double kinetic, double chemical) noexcept nogil
    # The same, where not `chemical` drives it, but this affinity, kT, of which the sum over a turn of a cycle is what
    # drives the cycle.
    cdef int happened_by(self, World* world, double after, int kind, int64_t a, int64_t b, double energy,
                         double kinetic, double chemical, double affinity) noexcept nogil
    # The parts of it: what drives, and the record of an event.
    cdef void drive(self, double affinity) noexcept nogil
    cdef int record(self, World* world, double after, int kind, int64_t a, int64_t b, double energy, double kinetic,
                    double chemical) noexcept nogil
