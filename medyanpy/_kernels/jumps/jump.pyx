"""The letter J: jumps of one context, one after another, each for the time of the letter.

A jump is a Markov process on discrete states (which links are bound, which edges there are) with everything else
still: in a letter of time h it runs for h, with exponential waiting times. These are drawn anew in each letter, which
changes nothing, since what is left of an exponential waiting time is distributed as all of it; so that there are no
clocks to keep, and results do not depend on how time is cut.

Random numbers are a function of seed, step, letter, number of the jump in its system, and how many have been drawn.
"""
import numpy as np

from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.core.elementary cimport log_core, sincos2pi
from medyanpy._kernels.core.philox cimport JUMP, counter_word2, counter_word3, philox4x32
from medyanpy._kernels.core.program cimport (
    OUT_OF_MEMORY, TOO_MANY_JUMPS, Operation, Sequence, World, mark_moved, mark_relinked,
)
from medyanpy._kernels.core.work cimport add


EVENT = np.dtype([
    ("step", "i8"), ("time", "f8"), ("kind", "i8"), ("a", "i8"), ("b", "i8"), ("c", "i8"), ("energy", "f8"),
    ("kinetic", "f8"), ("chemical", "f8"),
])


cdef void draw_two(Draws* draws, double* u) noexcept nogil:
    cdef uint32_t w[4]
    cdef int i
    w[0] = draws.next
    w[1] = draws.word1
    w[2] = draws.word2
    w[3] = counter_word3(JUMP, 0)
    draws.next += 1
    philox4x32(w, draws.key0, draws.key1)
    for i in range(2):
        # 32 and 20 bits, and a half: exact, never 0 and never 1.
        u[i] = ((w[2 * i] * 1048576.0 + (w[2 * i + 1] >> 12)) + 0.5) * 2.220446049250313e-16


cdef double draw_exponential(double u) noexcept nogil:
    return -log_core(u)


cdef void draw_maxwell(Draws* draws, double variance, double* v) noexcept nogil:
    cdef double u[4]
    cdef double size, last
    draw_two(draws, u)
    draw_two(draws, u + 2)
    size = sqrt(-2.0 * log_core(u[0]) * variance)
    sincos2pi(u[1], &v[1], &v[0])
    v[0] *= size
    v[1] *= size
    sincos2pi(u[3], &last, &v[2])
    v[2] *= sqrt(-2.0 * log_core(u[2]) * variance)


cdef bint wait(Draws* draws, double rate, double h, double* t, double* u) noexcept nogil:
    if draws.next > MOST_DRAWS or not rate > 0.0:
        return False
    draw_two(draws, u)
    t[0] += draw_exponential(u[0]) / rate
    return t[0] < h


cdef class JumpOperation(Operation):
    """One jump of one context.

    Parameters
    ----------
    name : str
    kT : float, pN nm
    driven : bool
        Whether its rates are not in balance: its energy is chemical, not heat.
    every : int, >= 1
    """

    def __cinit__(self, *args, **kwargs):
        cdef long long[::1] counts
        cdef double[::1] driving
        self.kept_driving = np.zeros(3)
        driving = self.kept_driving
        self.driving = &driving[0]
        self.kept_counts = np.zeros(3, np.int64)
        counts = self.kept_counts
        self.counts = &counts[0]
        self.kT = NAN
        self.driven = False
        self.moves = True
        self.relinks = False
        self.every = 1
        self.energy = self.kinetic = 0.0
        self.recording = False
        self.third = -1
        self.events = NULL
        self.room = 0
        self.first = 0

    def __dealloc__(self):
        free(self.events)

    def describe(self, str name, double kT, bint driven, int every):
        self.name = name
        self.kT = kT
        self.driven = driven
        self.every = every

    @property
    def tried(self):
        return self.counts[0]

    @property
    def accepted(self):
        return self.counts[1]

    @property
    def temperature(self):
        """kT, pN nm."""
        return self.kT

    @property
    def driven_so_far(self):
        """The sum of what has driven its events, kT; infinite once one had no way back."""
        return INFINITY if self.driving[2] > 0.0 else self.driving[0] + self.driving[1]

    def arrays(self):
        """What steps change, by name: part of the state. Classes with more of it override this."""
        return {"counts": self.kept_counts, "driving": self.kept_driving}

    def took_over(self):
        """Its arrays have been written to from outside."""
        self.forget()

    def rewound(self):
        """The state is an earlier one."""
        self.first = min(self.first, self.counts[2])

    def forget(self):
        """Nobody wants the events until now."""
        self.first = self.counts[2]

    def taken(self):
        """Events since they were last taken, as an array of EVENT; and forget them."""
        cdef Py_ssize_t n = max(0, self.counts[2] - self.first)
        out = np.zeros(n, EVENT)
        cdef Py_ssize_t i
        for i in range(n):
            e = self.events[i]
            out[i] = (e.step, e.time, e.kind, e.a, e.b, e.c, e.energy, e.kinetic, e.chemical)
        self.forget()
        return out

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        return 0

    cdef bint measures(self, World* world, double h, Draws* draws) noexcept nogil:
        return False

    cdef void drive(self, double affinity) noexcept nogil:
        if affinity == INFINITY:
            # Numbers of a state are finite.
            self.driving[2] += 1.0
        elif affinity != 0.0:
            add(self.driving, affinity)

    cdef int happened(self, World* world, double after, int kind, int64_t a, int64_t b, double energy,
                      double kinetic, double chemical) noexcept nogil:
        # Without a temperature energies are in no ratio to kT.
        return self.happened_by(
            world, after, kind, a, b, energy, kinetic, chemical, chemical / self.kT if self.kT > 0.0 else 0.0)

    cdef int happened_by(self, World* world, double after, int kind, int64_t a, int64_t b, double energy,
                         double kinetic, double chemical, double affinity) noexcept nogil:
        self.energy += energy
        self.kinetic += kinetic
        if self.driven:
            self.drive(affinity)
        return self.record(world, after, kind, a, b, energy, kinetic, chemical)

    cdef int record(self, World* world, double after, int kind, int64_t a, int64_t b, double energy, double kinetic,
                    double chemical) noexcept nogil:
        cdef Event* grown
        cdef int64_t c = self.third
        cdef Py_ssize_t at = self.counts[2] - self.first
        self.third = -1
        self.counts[1] += 1
        self.counts[2] += 1
        if not self.recording:
            self.first = self.counts[2]
            return 0
        if at < 0:
            # It has been taken before: these steps are taken again after a fault.
            return 0
        if at == self.room:
            grown = <Event*> realloc(self.events, (2 * self.room + 64) * sizeof(Event))
            if grown == NULL:
                return OUT_OF_MEMORY
            self.events = grown
            self.room = 2 * self.room + 64
        self.events[at] = Event(world.step, self.start + after, kind, a, b, c, energy, kinetic, chemical)
        return 0


cdef class Jumps(Operation):
    """One letter J.

    Parameters
    ----------
    jumps : list of JumpOperation
        In the order in which they act.
    numbers : list of int
        Of each, in its system.
    h : float, s
    letter : int
        Of all Js of the word, which.
    before : float, s
        How long Js before it in the word run.
    late : bool
        Whether it stands in the later half of the word: a jump with ``every`` acts there in the last of its steps.
    clock : (3,) float array
        A time, s, the step that it belongs to, and the length of steps since.
    """
    cdef Sequence jumps
    cdef uint32_t[::1] numbers
    cdef double h
    cdef uint32_t letter
    cdef double before
    cdef bint late
    cdef double[::1] clock
    cdef Sequence following   # the Js that come next, until forces are evaluated again
    cdef int32_t[::1] later   # of each, in how many steps

    def __init__(self, list jumps, numbers, double h, int letter, double before, bint late, double[::1] clock):
        self.jumps = Sequence(jumps)
        self.numbers = np.array(numbers, np.uint32)
        self.h = h
        self.letter = letter
        self.before = before
        self.late = late
        self.clock = clock
        self.precede([], [])

    def precede(self, list following, later):
        """Let kicks between this letter and the next ones, so many steps later, compute energies if these are to ask
        for them."""
        self.following = Sequence(following)
        self.later = np.array([*later, 0], np.int32)

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t k
        cdef int fault
        for k in range(self.jumps.count):
            fault = self.act(world, <JumpOperation> self.jumps.items[k], self.numbers[k])
            if fault != 0:
                if world.fault.operation == NULL:
                    world.fault.operation = self.jumps.items[k]
                return fault
        world.soon = 0
        for k in range(self.following.count):
            world.soon |= (<Jumps> self.following.items[k]).measures(world, world.step + self.later[k])
        return 0

    cdef bint measures(self, World* world, long long step) noexcept nogil:
        """Whether a jump asks for the energies of all forces in this letter of a step."""
        cdef Draws draws
        cdef Py_ssize_t k
        cdef int every
        for k in range(self.jumps.count):
            every = (<JumpOperation> self.jumps.items[k]).every
            if (step + self.late) % every == 0:
                self.begin(world, step, self.numbers[k], &draws)
                if (<JumpOperation> self.jumps.items[k]).measures(world, every * self.h, &draws):
                    return True
        return False

    cdef void begin(self, World* world, long long step, uint32_t number, Draws* draws) noexcept nogil:
        draws.key0 = <uint32_t> world.seed
        draws.key1 = <uint32_t> (world.seed >> 32)
        draws.word1 = <uint32_t> step
        draws.word2 = counter_word2(step, self.letter, number)
        draws.next = 0

    cdef int act(self, World* world, JumpOperation jump, uint32_t number) noexcept nogil:
        cdef Draws draws
        cdef long long events = jump.counts[2]
        cdef long long step = world.step + self.late
        cdef double more
        cdef int fault
        jump.energy = jump.kinetic = 0.0
        if step % jump.every != 0:
            return 0
        # Of the `every` steps, this letter does its share of their time; earlier Js have done theirs.
        jump.start = self.clock[0] + (step - self.clock[1]) * self.clock[2] + jump.every * self.before
        if self.late:
            jump.start -= jump.every * self.clock[2]
        if jump.inside is not None:
            fault = jump.inside.measure(world)
            if fault != 0:
                return fault
        self.begin(world, world.step, number, &draws)
        fault = jump.act(world, jump.every * self.h, &draws)
        if jump.counts[2] != events:
            # Forces are others now.
            if jump.relinks:
                mark_relinked(world)
            elif jump.moves:
                mark_moved(world)
        if jump.inside is not None and jump.inside.gained(&more) != 0:
            # And so is the pressure of its molecules.
            jump.energy += more
            mark_moved(world)
        if fault == 0 and draws.next > MOST_DRAWS:
            world.fault.value = MOST_DRAWS
            return TOO_MANY_JUMPS
        return fault


cdef class Books(Operation):
    """Books what a letter J has done to the energy: heat of balanced jumps, chemical energy of driven ones.

    Parameters
    ----------
    jumps : list of JumpOperation
    heat, chemical : (2,) float arrays, pN nm
        Sums and their rests.
    kinetic : (1,) float array, pN nm
        The kinetic energy as last seen: what jumps have done to it is no work of the next letter.
    potential : (2,) float array, pN nm
        Likewise, a sum and its rest.
    """
    cdef Sequence jumps
    cdef double[::1] heat
    cdef double[::1] chemical
    cdef double[::1] kinetic
    cdef double[::1] potential

    def __init__(self, list jumps, double[::1] heat, double[::1] chemical, double[::1] kinetic, double[::1] potential):
        self.jumps = Sequence(jumps)
        self.heat = heat
        self.chemical = chemical
        self.kinetic = kinetic
        self.potential = potential

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.jumps.count):
            self.book(<JumpOperation> self.jumps.items[k])
        return 0

    cdef void book(self, JumpOperation jump) noexcept nogil:
        add(&self.chemical[0] if jump.driven else &self.heat[0], jump.energy)
        add(&self.potential[0], jump.energy - jump.kinetic)
        self.kinetic[0] += jump.kinetic
