"""Transitions at rates that are written as text: of beads that come, go and change their species, and of links that
bind, let go and step.

Rates are programs of core/expressions.pxd. Attempts come at the bound that a user gives, `most`, for each bead of the
species, area or volume, link, end of a link or pair in reach, and each goes on with the share rate/most (thinning):
waiting times are exact, and nothing is done for beads and links at which nothing is tried. A rate above the bound ends
the run.
"""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.arrays cimport table
from medyanpy._kernels.core.box cimport nearest_image
from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH, evaluate
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport RATE_ABOVE_BOUND, World
from medyanpy._kernels.jumps.grounds cimport Spot
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.jumps.link_binding cimport Binding, LinkBinding, Pair, distance_of, energy_of, slope_of
from medyanpy._kernels.jumps.point_reactions cimport COME, PointReactions

cdef enum:
    # What links may do.
    UNBIND = 0
    BIND = 1
    FORTH = 2
    BACK = 3
    ACTIONS = 4
    # Numbers of a link that rates are of: length, tension, its mean, energy, what a step changes of it, how many there
    # are.
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
        self.given = np.zeros(3 + self.numbers.shape[0])

    cdef int thin(self, World* world, Py_ssize_t which, int32_t place, const Spot* spot, Draws* draws,
                  double* affinity, bint* goes) noexcept nogil:
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
        affinity[0] = log_(rate / back) if goes[0] and back > 0.0 else INFINITY
        return 0


cdef class LinkTransitions(JumpOperation):
    """Links of another jump that let go, bind or step, each at a rate of `OF_LINKS` numbers.

    Parameters
    ----------
    name, kT, every
        See `JumpOperation`.
    actions : (m,) int
        Of each transition.
    """
    cdef readonly LinkBinding binding
    cdef public object partner   # the jump that it belongs to
    cdef list actions            # of transitions
    cdef list kept
    cdef list held
    cdef Written[ACTIONS] laws   # by action; without a function: not one of its own
    cdef int[ACTIONS] kind       # which transition it is
    cdef double highest          # 1/s
    cdef const int32_t* beside   # (n, 2) sites ahead and behind, -1: none

    def __init__(self, str name, double kT, int every, actions):
        cdef int k
        self.describe(name, kT, True, every)
        self.relinks = True
        self.held = []
        for k in range(ACTIONS):
            self.laws[k].function = NULL
        self.actions = list(actions)
        for k, action in enumerate(self.actions):
            self.kind[<int> action] = k

    def set_rates(self, double kT, double most, list programs):
        """Take the bound (1/s), and a program of the rate of each transition."""
        cdef Compiled one
        self.kT = kT
        self.highest = most
        self.kept = [Compiled(*program, 1) for program in programs]
        for action, one in zip(self.actions, self.kept, strict=True):
            self.laws[<int> action] = Written(&one.function, &one.registers[0, 0])

    def act_on(self, LinkBinding binding not None, beside):
        """Take the jump that holds the links, and for each of its sites the ones ahead and behind, (n, 2)."""
        self.binding = binding
        self.beside = table[int32_t](self.held, beside)

    cdef bint has(self, int action) noexcept nogil:
        return self.laws[action].function != NULL

    cdef double chances(self, int action, double pairs) noexcept nogil:
        """At how many links, ends or pairs an action may happen."""
        if not self.has(action):
            return 0.0
        return pairs if action == BIND else self.binding.numbers[0] * (1.0 if action == UNBIND else 2.0)

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
                if self.has(BIND):
                    self.binding.look(world)
                    fault = self.binding.follow(world, h)
                    if fault != 0:
                        return fault
                else:
                    self.binding.sites.follow(world)
                pairs = self.binding.pairs_listed()
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

    cdef int attempt(self, World* world, double t, int action, double share, Draws* draws) noexcept nogil:
        """Try a link, an end or a pair, of which the share is uniform."""
        cdef const Binding* task = &self.binding.task
        cdef const Pair* pair
        cdef int64_t chances = <int64_t> self.chances(action, <double> self.binding.pairs_listed())
        cdef int64_t k = min(<int64_t> (share * chances), chances - 1)
        cdef double x[OF_LINKS]
        cdef double u[2]
        cdef double rate, tension
        cdef Py_ssize_t s = -1, i, j, next = -1
        cdef int fault
        if action == BIND:
            pair = &self.binding.pair[k]
            i, j = pair.i, pair.j
            x[0] = distance_of(task, world, i, j)
            if not task.rule.low <= x[0] <= task.rule.high or self.binding.refused(i, j) != 0:
                return 0
        else:
            s = self.binding.slot_of(k if action == UNBIND else k // 2)
            i, j = s // task.partners, task.other[s]
            if action != UNBIND and k % 2 == 1:
                i, j = j, i
            x[0] = distance_of(task, world, i, j)
        x[1] = slope_of(&task.rule, x[0])
        x[2] = 0.0 if s < 0 or task.mean == NULL else task.mean[s]
        x[3] = energy_of(&task.rule, x[0], &tension)
        x[4] = 0.0
        x[5] = <double> self.binding.numbers[0]
        if action >= FORTH:
            next = self.beside[2 * i + action - FORTH]
            if next < 0 or not self.binding.may_step(i, j, next):
                return 0
            x[4] = energy_of(&task.rule, distance_of(task, world, next, j), &tension) - x[3]
        _compute(&self.laws[action], x, OF_LINKS)
        rate = _result(&self.laws[action], 0)
        fault = _checked(world, rate, self.highest, -1)
        if fault != 0:
            return fault
        if action == BIND:
            # A pool has fewer the more are bound.
            rate *= self.binding.share_of(i, j)
        draw_two(draws, u)
        if not u[0] * self.highest < rate:
            return 0
        if action == BIND:
            self.binding.join(i, j)
            self.binding.changed_at(world, i, j)
            return self.happened(world, t, self.kind[action], i, j, x[3], 0.0, INFINITY)
        if action == UNBIND:
            self.binding.part(i, s)
            self.binding.changed_at(world, i, j)
            return self.happened(world, t, self.kind[action], i, j, -x[3], 0.0, INFINITY)
        self.binding.step_end(world, i, j, next)
        return self.happened(world, t, self.kind[action], i, next, x[4], 0.0, INFINITY)
