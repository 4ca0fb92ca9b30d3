"""Transitions at rates that are written as text: of beads that come, go and change their species, and of links that
bind, let go, step and change their states.

Rates are programs of core/expressions.pxd. Attempts come at the bound that a user gives, `most`, for each bead of the
species, area or volume, link, end of a link or pair in reach, and each goes on with the share rate/most (thinning):
waiting times are exact, and nothing is done for beads and links at which nothing is tried. A rate above the bound ends
the run.
"""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc

from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.arrays cimport table
from medyanpy._kernels.core.box cimport nearest_image
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH, evaluate
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport RATE_ABOVE_BOUND, World
from medyanpy._kernels.jumps.grounds cimport Spot
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.jumps.link_binding cimport Binding, LinkBinding, Pair, distance_of, energy_in, state_of
from medyanpy._kernels.jumps.point_reactions cimport COME, PointReactions

cdef enum:
    # What links may do.
    UNBIND = 0
    BIND = 1
    FORTH = 2
    BACK = 3
    CHANGE = 4
    ACTIONS = 5
    # States of links, at most.
    MOST_STATES = 32
    # Numbers of a link that rates are of: length, tension, its mean, energy, what a step or a change of the state
    # changes of it, how many there are; and behind these how many in each state.
    OF_LINKS = 6

# How far a rate may be above its bound by rounding.
cdef double ROUNDING = 1e-9


cdef struct Written:
    const Function* function
    double* registers


cdef void _compute(const Written* written, const double* given, int n) noexcept nogil:
    """Evaluate a program of n numbers."""
    cdef double* r = written.registers + WIDTH * written.function.n_constants
    cdef int c, k
    for c in range(n):
        for k in range(WIDTH):
            r[WIDTH * c + k] = given[c]
    evaluate(written.function, written.registers)


cdef double _result(const Written* written, int which) noexcept nogil:
    return written.registers[WIDTH * written.function.outputs[which]]


cdef int _checked(World* world, double rate, double most, long long bead) noexcept nogil:
    """0, or a fault where a rate is not from 0 to its bound."""
    if 0.0 <= rate <= most * (1.0 + ROUNDING):
        return 0
    world.fault.value = rate
    return record_fault(world, RATE_ABOVE_BOUND, bead, -1)


cdef class WrittenTurns(PointReactions):
    """Beads that come, go and change their species, each at a rate of x, y, z and of how many there are of each
    species. See `PointReactions`."""
    cdef list kept
    cdef Written* laws        # by reaction: programs of the rates there and back
    cdef double highest       # 1/s
    cdef double highest_new   # 1/s by area or volume: of beads that come
    cdef double[::1] given    # of a program

    def __dealloc__(self):
        free(self.laws)

    def set_rates(self, double most, double most_new, list programs):
        """Take the bounds of all rates, and for each reaction a program of its rate and that of its way back, 0
        without."""
        cdef Compiled one
        cdef Py_ssize_t i
        cdef Written* grown = <Written*> realloc(self.laws, (len(programs) + 1) * sizeof(Written))
        if grown == NULL:
            raise MemoryError
        self.laws = grown
        self.kept = [Compiled(*program, 1) for program in programs]
        for i, one in enumerate(self.kept):
            grown[i] = Written(&one.function, &one.registers[0, 0])
        self.highest, self.highest_new = most, most_new
        self.thins = True
        self.given = np.zeros(3 + self.numbers.shape[0])

    cdef int thin(self, World* world, Py_ssize_t which, int32_t place, const Spot* spot, Draws* draws,
                  double* chemical, bint* goes) noexcept nogil:
        cdef const Written* law = &self.laws[which]
        cdef double u[2]
        cdef double rate, back, most = self.highest_new if self.reactions[which].kind == COME else self.highest
        cdef Py_ssize_t k
        cdef int fault
        self.ground.where(world, spot, &self.given[0])
        nearest_image(&world.box, &self.given[0])
        for k in range(self.numbers.shape[0]):
            self.given[3 + k] = self.numbers[k]
        _compute(law, &self.given[0], 3 + <int> self.numbers.shape[0])
        rate = _result(law, 0)
        fault = _checked(world, rate, most, place)
        if fault != 0:
            return fault
        draw_two(draws, u)
        goes[0] = u[0] * most < rate
        back = _result(law, 1)
        chemical[0] = log_(rate / back) if goes[0] and back > 0.0 else INFINITY
        return 0


cdef struct Way:
    int after                 # state
    int back                  # of a change the way back, -1: none
    int kind                  # which transition it is
    double shift              # kT: what drives a change of the state, less the logarithm of the rates there and back
    Written law


cdef class LinkTransitions(JumpOperation):
    """Links of another jump that let go, bind, step or change their states, each at a rate of `OF_LINKS` numbers and of
    how many links there are in each state.

    A change of the state by which the spring gains the energy w is accepted with min(1, exp(-w / kT)).

    Parameters
    ----------
    name, kT, every
        See `JumpOperation`.
    ways : (m, 5) int
        Of each transition the action, the states before and after (of pairs that bind 0 before; -1: any), which of
        these goes back, -1: none, and its kind; ascending by action and state before.
    states : int
    counting : bool
        Whether rates are of how many links there are in a state.
    """
    cdef readonly LinkBinding binding
    cdef public object partner   # the jump that it belongs to
    cdef list kept
    cdef list held
    cdef Way* ways
    cdef int n_states
    # By action and state, which ways are those; and the most of any state.
    cdef int first[ACTIONS][MOST_STATES]
    cdef int many[ACTIONS][MOST_STATES]
    cdef int most[ACTIONS]
    cdef bint counting           # whether rates are of how many there are in a state
    cdef double[OF_LINKS + MOST_STATES] given
    cdef double highest          # 1/s
    cdef const int32_t* beside   # (n, 2) sites ahead and behind, -1: none

    def __init__(self, str name, double kT, bint driven, int every, ways, int states, bint counting):
        cdef int k, action, before, after, back, kind, state
        self.describe(name, kT, driven, every)
        self.relinks = True
        self.held = []
        self.n_states = states
        self.ways = <Way*> calloc(len(ways) + 1, sizeof(Way))
        if self.ways == NULL:
            raise MemoryError
        self.counting = counting
        for k, (action, before, after, back, kind) in enumerate(ways):
            self.ways[k].after, self.ways[k].back, self.ways[k].kind = after, back, kind
            for state in range(states) if before < 0 else [before]:
                if self.many[action][state] == 0:
                    self.first[action][state] = k
                self.many[action][state] += 1
                self.most[action] = max(self.most[action], self.many[action][state])

    def __dealloc__(self):
        free(self.ways)

    def set_rates(self, double kT, bint driven, double most, list programs, list shifts):
        """Take the bound (1/s), and of each way a program of the rate and the shift of what drives it."""
        cdef Compiled one
        cdef int k
        self.kT = kT
        self.driven = driven
        self.highest = most
        self.kept = [Compiled(*program, 1) for program in programs]
        for k, one in enumerate(self.kept):
            self.ways[k].law = Written(&one.function, &one.registers[0, 0])
            self.ways[k].shift = shifts[k]

    def act_on(self, LinkBinding binding not None, beside):
        """Take the jump that holds the links, and for each of its sites the ones ahead and behind, (n, 2)."""
        self.binding = binding
        self.beside = table[int32_t](self.held, beside)

    cdef double chances(self, int action, double pairs) noexcept nogil:
        """At how many links, ends or pairs an action may happen, once for each of its ways."""
        cdef double each = 2.0 if action == FORTH or action == BACK else 1.0
        return self.most[action] * (pairs if action == BIND else self.binding.numbers[0] * each)

    cdef void count(self) noexcept nogil:
        """Links in each state."""
        cdef const Binding* task = &self.binding.task
        cdef int64_t k
        for k in range(self.n_states):
            self.given[OF_LINKS + k] = 0.0
        for k in range(self.binding.numbers[0] if self.counting else 0):
            self.given[OF_LINKS + state_of(task, self.binding.slot_of(k))] += 1.0

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double total, left, pairs = self.binding.most_pairs, t = 0.0
        cdef bint begun = False
        cdef int action, last, fault
        while draws.next <= MOST_DRAWS:
            total = 0.0
            for action in range(ACTIONS):
                total += self.highest * self.chances(action, pairs)
            if not begun:
                # An attempt that is too late for all pairs that there can be is too late for those in reach.
                total *= 1.0001
            if not total > 0.0:
                return 0
            if not begun:
                draw_two(draws, u)
                if draw_exponential(u[0]) >= total * h:
                    return 0
                begun = True
                if self.binding.on_points:
                    fault = derive_places(world)
                    if fault != 0:
                        return fault
                self.binding.begin(world)
                if self.most[BIND] > 0:
                    self.binding.look(world)
                    fault = self.binding.follow(world, h)
                    if fault != 0:
                        return fault
                else:
                    self.binding.sites.follow(world)
                pairs = self.binding.pairs_listed()
                self.count()
                continue
            t += draw_exponential(u[0]) / total
            if t >= h:
                return 0
            self.counts[0] += 1
            left = u[1] * total
            last = -1
            for action in range(ACTIONS):
                total = self.highest * self.chances(action, pairs)
                if total > 0.0:
                    last = action
                    if left < total:
                        break
                    left -= total
            fault = self.attempt(world, t, last, left / total, draws)
            if fault != 0:
                return fault
            draw_two(draws, u)
        return 0

    cdef double measure(self, int state, double r, double mean) noexcept nogil:
        """The numbers of a link of length r in a state, of which this is the averaged tension; its energy."""
        cdef double* x = self.given
        x[0] = r
        x[3] = energy_in(&self.binding.task, state, r, &x[1])
        x[2] = mean
        x[4] = 0.0
        x[5] = <double> self.binding.numbers[0]
        return x[3]

    cdef double rate_of(self, const Written* law) noexcept nogil:
        # Texts have the numbers of states where there are several.
        _compute(law, self.given, OF_LINKS + (self.n_states if self.n_states > 1 else 0))
        return _result(law, 0)

    cdef int attempt(self, World* world, double t, int action, double share, Draws* draws) noexcept nogil:
        """Try a link, an end or a pair, and one of its ways, of which the share is uniform."""
        cdef const Binding* task = &self.binding.task
        cdef const Pair* pair
        cdef const Way* way
        cdef int64_t chances = <int64_t> self.chances(action, <double> self.binding.pairs_listed())
        cdef int64_t k = min(<int64_t> (share * chances), chances - 1)
        cdef int which = <int> (k % self.most[action])
        cdef double u[2]
        cdef double r, rate, energy, gain = 0.0, slope, mean = 0.0
        cdef Py_ssize_t s = -1, i, j, next = -1
        cdef int fault, state = 0
        k //= self.most[action]
        if action == BIND:
            pair = &self.binding.pair[k]
            i, j = pair.i, pair.j
        else:
            s = self.binding.slot_of(k // 2 if action == FORTH or action == BACK else k)
            i, j = s // task.partners, task.other[s]
            if (action == FORTH or action == BACK) and k % 2 == 1:
                i, j = j, i
            state = state_of(task, s)
            mean = 0.0 if task.mean == NULL else task.mean[s]
        if which >= self.many[action][state]:
            return 0
        way = &self.ways[self.first[action][state] + which]
        r = distance_of(task, world, i, j)
        if action == BIND:
            if not task.rule.low <= r <= task.rule.high or self.binding.refused(i, j) != 0:
                return 0
            state = way.after
        energy = self.measure(state, r, mean)
        if action == FORTH or action == BACK:
            next = self.beside[2 * i + action - FORTH]
            if next < 0 or not self.binding.may_step(i, j, next):
                return 0
            gain = energy_in(task, state, distance_of(task, world, next, j), &slope) - energy
        elif action == CHANGE:
            gain = energy_in(task, way.after, r, &slope) - energy
        self.given[4] = gain
        rate = self.rate_of(&way.law)
        fault = _checked(world, rate, self.highest, -1)
        if fault != 0:
            return fault
        draw_two(draws, u)
        if action == BIND:
            # A pool has fewer the more are bound.
            rate *= self.binding.share_of(i, j)
        elif action == CHANGE and gain > 0.0:
            rate *= exp_(-min(gain / self.kT, 700.0))
        if not u[0] * self.highest < rate:
            return 0
        return self.do(world, t, action, way, i, j, s, next, energy, gain, mean)

    cdef int do(self, World* world, double t, int action, const Way* way, Py_ssize_t i, Py_ssize_t j, Py_ssize_t s,
                Py_ssize_t next, double energy, double gain, double mean) noexcept nogil:
        cdef double there, back
        cdef int before = state_of(&self.binding.task, s) if s >= 0 else 0
        if action == BIND:
            self.binding.join(i, j)
            if way.after > 0:
                self.binding.turn(i, self.binding.end[i] - 1, way.after)
            self.binding.changed_at(world, i, j)
            self.given[OF_LINKS + way.after] += 1.0
            return self.happened(world, t, way.kind, i, j, energy, 0.0, INFINITY)
        if action == UNBIND:
            self.binding.part(i, s)
            self.binding.changed_at(world, i, j)
            self.given[OF_LINKS + before] -= 1.0
            return self.happened(world, t, way.kind, i, j, -energy, 0.0, INFINITY)
        if action != CHANGE:
            self.binding.step_end(world, i, j, next)
            return self.happened(world, t, way.kind, i, next, gain, 0.0, INFINITY)
        self.binding.turn(i, s, way.after)
        self.binding.changed_at(world, i, j)
        self.given[OF_LINKS + before] -= 1.0
        self.given[OF_LINKS + way.after] += 1.0
        if way.back < 0:
            return self.happened(world, t, way.kind, i, j, gain, 0.0, INFINITY)
        # Those of this very event, and of its way back from where it leads.
        there = _result(&way.law, 0)
        self.measure(way.after, self.given[0], mean)
        self.given[4] = -gain
        back = self.rate_of(&self.ways[way.back].law)
        there = log_(there / back) if back > 0.0 else INFINITY
        return self.happened_by(world, t, way.kind, i, j, gain, 0.0, self.kT * there, there + way.shift)
