"""Filaments that part, and join end to end.

A filament parts at a joint, at the rate s for each subunit that is nearest to it, and one of the two moves as a whole
by a vector r that is uniform in a ball of the reach R. The reverse brings a plus end and a minus end together that are
r apart. A free filament has the factor K of the dissociation constant, its first direction 1/(4 pi), and each of its
joints the law g(u'|u) = exp(-E/kT)/(2 pi z). So ends join at the rate

    (s/K) c/V 4 pi g(u'|u) w(n) w(m)/w(n + m),   V = 4 pi R^3/3

with the c subunits that are nearest to the joint, and in w(n) ways to divide n subunits among links, where both ends
grow. Both ways have min(1, exp(-dU/kT)) of all forces but the joint's own and the Fixman force. Velocities of all that
take part are drawn again, tangent to their links.

Only those join of which the joint could part again: links that are to have others on both sides are full.
"""
import numpy as np

from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.core.program cimport NO_ROOM, OUT_OF_MEMORY, World, mark_grown
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds, joint_energy, log_integral
from medyanpy._kernels.jumps.grounds cimport Ground
from medyanpy._kernels.jumps.jump cimport Draws, draw_two, wait
from medyanpy._kernels.jumps.severing cimport Severing


# Of a plus end and a minus end within reach: their filaments, and the sum of the rates up to them, 1/s.
cdef struct Pair:
    Py_ssize_t filament
    Py_ssize_t other
    double total


# Two filaments that are to be one, or are to come of one, by where in their rooms they begin and end: `at` is the last
# node of the first, and `start` the first of the other, which come together in one.
cdef struct Two:
    Py_ssize_t filament
    Py_ssize_t first
    Py_ssize_t at
    Py_ssize_t other
    Py_ssize_t start
    Py_ssize_t last
    int64_t by                # what is added to numbers of subunits on the other


cdef class Annealing(Severing):
    """Filaments of one handle that part and join.

    Parameters
    ----------
    name, every, rise, n, momenta
        See `Severing`.
    ends : FilamentEnds
        Both of each filament that there is room for: plus end and minus end, one after the other.
    ground : InSpace
        For the places of the handle; its reach is set.
    """
    cdef readonly Ground ground
    cdef double on            # nm^3/s
    cdef double affinity      # pN nm: what drives two ends to join, beyond energies
    # What links of filaments may be: `full` where another is on both sides, 0: any; else from the fewest to the most at
    # ends that grow.
    cdef int32_t full, fewest, most_last
    cdef bint[2] grows        # the plus end, the minus end
    cdef double[::1] ways     # logarithms, as of `Polymerization`
    cdef int32_t[::1] waiting         # places of ends that may join
    cdef double[:, ::1] kept          # places (nm) of nodes of one filament, and velocities
    cdef double[::1] known            # logarithms of z by the subunits of both links, nan where they are not known yet
    cdef Pair* pairs
    cdef Py_ssize_t n_pairs
    cdef Py_ssize_t room_pairs

    def __cinit__(self, *args, **kwargs):
        self.pairs = NULL
        self.n_pairs = self.room_pairs = 0

    def __dealloc__(self):
        free(self.pairs)

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, Py_ssize_t n, momenta,
                 Ground ground not None):
        Severing.__init__(self, name, every, ends, rise, n, momenta)
        slots = np.asarray(ends.slots)
        width = slots.shape[1]
        self.ground = ground
        self.places = np.zeros(3 * width + 1, np.int32)
        self.waiting = np.zeros(2 * len(slots) + 1, np.int32)
        self.kept = np.zeros((2 * width + 1, 6))
        self.known = np.full(1, NAN)
        self.links_are(0, 1, 1, False, False, np.zeros(1))

    def set_rates(self, double kT, double on, double off, double reach, double affinity):
        """In nm^3/s and 1/s; nm; pN nm, infinite where there is no way back."""
        Severing.set(self, kT, off, 0.0, 1.0)
        self.on = on
        self.ground.reach = reach
        self.affinity = affinity
        self.driven = affinity != 0.0
        self.known[:] = NAN

    def bend(self, double modulus, double straight, double bent):
        Severing.bend(self, modulus, straight, bent)
        self.known = np.full(2 * self.most + 1, NAN)

    def links_are(self, int full, int fewest, int most_last, bint plus, bint minus, double[::1] ways not None):
        """What links of filaments may be, see `Annealing`."""
        self.full, self.fewest, self.most_last = full, fewest, most_last
        self.grows[0], self.grows[1] = plus, minus
        self.ways = ways

    # Which pairs there are --------------------------------------------------------------------------------------------

    cdef bint fits(self, int32_t subunits, bint alone, bint minus) noexcept nogil:
        """Whether a link with so many may be at a joint, where it is the only one up to the plus or the minus end."""
        if self.full == 0 or subunits == self.full:
            return True
        return alone and self.grows[minus] and self.fewest <= subunits <= self.most_last

    cdef bint is_ready(self, World* world, Py_ssize_t k) noexcept nogil:
        """Whether an end may join one."""
        cdef const End* end = self.ends.end(k)
        if end.node < 0 or self.ends.caps[end.node] != 0:
            return False
        # The far end of a filament of one link is the other one.
        return self.fits(world.subunits[end.link], end.inner < 0, k % 2 == 0)

    cdef int find_pairs(self, World* world) noexcept nogil:
        cdef Py_ssize_t k, n = 0, i, m, filament
        cdef double rate, total = 0.0
        cdef int32_t place
        cdef Pair* grown
        self.n_pairs = 0
        self.ends.find(world)
        for k in range(self.ends.n):
            if self.is_ready(world, k):
                self.waiting[n] = self.ends.end(k).node
                n += 1
        self.ground.begin(world, &self.waiting[0], n)
        for i in range(n):
            place = self.waiting[i]
            filament = self.ends.filament_of[place]
            if self.ends.end(2 * filament).node != place:
                continue
            m = self.ground.lines_from(world, place, -1)
            if m < 0:
                return OUT_OF_MEMORY
            for k in range(m):
                rate = self.rate_of(world, filament, self.ground.found[k].place)
                if not rate > 0.0:
                    continue
                if self.n_pairs == self.room_pairs:
                    grown = <Pair*> realloc(self.pairs, (2 * self.room_pairs + 64) * sizeof(Pair))
                    if grown == NULL:
                        return OUT_OF_MEMORY
                    self.pairs = grown
                    self.room_pairs = 2 * self.room_pairs + 64
                total += rate
                self.pairs[self.n_pairs] = Pair(
                    filament, self.ends.filament_of[self.ground.found[k].place], total)
                self.n_pairs += 1
        return 0

    cdef double rate_of(self, World* world, Py_ssize_t filament, int32_t place) noexcept nogil:
        """At which a plus end joins the end at a place, but for energies, 1/s."""
        cdef Py_ssize_t other = self.ends.filament_of[place]
        cdef const End* plus = self.ends.end(2 * filament)
        cdef const End* minus = self.ends.end(2 * other + 1)
        cdef double before[3]
        cdef double after[3]
        cdef double rate, length
        cdef int32_t p, q
        cdef int64_t n, m
        cdef Two two
        if other == filament or minus.node != place:
            return 0.0
        self.describe_two(world, filament, other, &two)
        if two.at - two.first + two.last - two.start + 1 > self.ends.slots.shape[1]:
            return 0.0
        if not self.ends.is_in_step(two.by):
            return 0.0
        if self.ends.is_held(other, world.material[place], world.material[place]):
            return 0.0
        if self.ends.are_linked(filament, other):
            return 0.0
        p, q = world.subunits[plus.link], world.subunits[minus.link]
        # Those nearest to the joint, as `attempt` has it.
        rate = (p if plus.inner < 0 else p // 2) + (q if minus.inner < 0 else (q + 1) // 2)
        rate *= self.on / (4.1887902047863910 * self.ground.reach * self.ground.reach * self.ground.reach)
        if self.joint.straight != 0.0 or self.joint.bent != 0.0:
            displacement(&world.box, world.x + 3 * <Py_ssize_t> plus.before, world.x + 3 * <Py_ssize_t> plus.node,
                         before)
            displacement(&world.box, world.x + 3 * <Py_ssize_t> minus.node, world.x + 3 * <Py_ssize_t> minus.before,
                         after)
            length = 0.5 * self.rise * (p + q)
            if not self.known[p + q] == self.known[p + q]:
                self.known[p + q] = log_integral(&self.joint, length, self.kT, 0.0)
            rate *= 2.0 * exp_(-joint_energy(&self.joint, length, before, after) / self.kT - self.known[p + q])
        if self.ways.shape[0] > 1:
            n, m = self.ends.subunits_of(world, filament), self.ends.subunits_of(world, other)
            rate *= exp_(self.log_ways(n) + self.log_ways(m) - self.log_ways(n + m))
        return rate

    cdef double log_ways(self, int64_t n) noexcept nogil:
        return self.ways[min(n, <int64_t> (self.ways.shape[0] - 1))]

    cdef void describe_two(self, World* world, Py_ssize_t filament, Py_ssize_t other, Two* two) noexcept nogil:
        """Of two that are there, the plus end of the first and the minus end of the other."""
        cdef Py_ssize_t ends[2]
        two.filament, two.other = filament, other
        self.ends.find_chain(filament, &ends[0], &ends[1])
        two.first, two.at = ends[0], ends[1]
        self.ends.find_chain(other, &ends[0], &ends[1])
        two.start, two.last = ends[0], ends[1]
        two.by = (<int64_t> world.material[self.ends.slots[filament, two.at]]
                  - world.material[self.ends.slots[other, two.start]])

    # Events -----------------------------------------------------------------------------------------------------------

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0, n = self.attempts(), parts = self.rate * n, joins = 0.0, x
        cdef long long events = self.counts[2]
        cdef bint inside = False
        cdef int failed, fault = 0
        if self.on > 0.0:
            fault = self.find_pairs(world)
        while fault == 0:
            joins = self.pairs[self.n_pairs - 1].total if self.n_pairs > 0 else 0.0
            if not wait(draws, parts + joins, h, &t, u):
                break
            fault = self.begin_attempt(world, &inside)
            if fault != 0:
                break
            x = u[1] * (parts + joins)
            if x < parts:
                fault = self.attempt_one(world, t, min(<Py_ssize_t> (x / self.rate), <Py_ssize_t> n - 1), draws)
            else:
                fault = self.join(world, t, x - parts, draws)
            if fault == 0 and self.counts[2] != events and self.on > 0.0:
                events = self.counts[2]
                fault = self.find_pairs(world)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int measure(self, World* world, const Two* two, bint first_moves, double* energy,
                     double* asked) noexcept nogil:
        """The energy of all terms that depend on the nodes that move to other places or rows."""
        cdef Py_ssize_t k, n = 0
        # All rows that nodes of the other may have, in both.
        for k in range(two.start, two.last + 1):
            self.places[n] = self.ends.slots[two.other, k]
            self.places[n + 1] = self.ends.slots[two.filament, two.at + k - two.start]
            n += 2
        if first_moves:
            for k in range(two.first, two.at):
                self.places[n] = self.ends.slots[two.filament, k]
                n += 1
        return self.weights.around(world, &self.places[0], n, energy, asked)

    cdef void keep(self, World* world, Py_ssize_t filament, Py_ssize_t first, Py_ssize_t last,
                   Py_ssize_t row) noexcept nogil:
        """Keep where nodes are, and their velocities, in rows from this one on."""
        cdef Py_ssize_t k, place
        cdef int c
        for k in range(first, last + 1):
            place = self.ends.slots[filament, k]
            for c in range(3):
                self.kept[row + k - first, c] = world.x[3 * place + c]
                self.kept[row + k - first, 3 + c] = world.v[3 * place + c]

    cdef void bring_back(self, World* world, Py_ssize_t filament, Py_ssize_t first, Py_ssize_t last,
                         Py_ssize_t row) noexcept nogil:
        cdef Py_ssize_t k, place
        cdef int c
        for k in range(first, last + 1):
            place = self.ends.slots[filament, k]
            for c in range(3):
                world.x[3 * place + c] = self.kept[row + k - first, c]
                world.v[3 * place + c] = self.kept[row + k - first, 3 + c]
            self.room.note(world, place)

    cdef void move_by(self, World* world, Py_ssize_t filament, Py_ssize_t first, Py_ssize_t last, const double* d,
                      ) noexcept nogil:
        cdef Py_ssize_t k, place
        cdef int c
        for k in range(first, last + 1):
            place = self.ends.slots[filament, k]
            for c in range(3):
                world.x[3 * place + c] += d[c]
            self.room.note(world, place)

    cdef void unite(self, World* world, const Two* two) noexcept nogil:
        """The other follows the first: the reverse of `part`."""
        cdef const int32_t* slot = &self.ends.slots[two.filament, two.at]
        cdef const int32_t* there = &self.ends.slots[two.other, two.start]
        cdef Py_ssize_t k
        self.ends.hand_over(world, two.other, world.material[there[0]] + 1,
                            world.material[there[two.last - two.start]], two.filament, two.by)
        world.subunits[slot[0]] = world.subunits[there[0]]
        world.subunits[there[0]] = world.material[there[0]] = 0
        self.room.put_to_sleep(world, there[0])
        for k in range(1, two.last - two.start + 1):
            self.ends.move(world, there[k], slot[k])
            world.material[slot[k]] += <int32_t> two.by
        mark_grown(world, slot[0])
        mark_grown(world, there[0])

    cdef int cut(self, World* world, double t, Py_ssize_t filament, Py_ssize_t at, Py_ssize_t last,
                 Draws* draws) noexcept nogil:
        cdef const int32_t* slot = &self.ends.slots[filament, 0]
        cdef double x[3]
        cdef double d[3]
        cdef double u[2]
        cdef double before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic, joint
        cdef Py_ssize_t end
        cdef int64_t next_id
        cdef bint first_moves
        cdef Two two
        cdef int fault, c
        two.filament, two.at, two.other, two.by = filament, at, self.ends.free_filament(), 0
        self.ends.find_chain(filament, &two.first, &end)
        if not (self.fits(world.subunits[slot[at - 1]], at - 1 == two.first, True)
                and self.fits(world.subunits[slot[at]], at + 1 == last, False)):
            return 0
        if two.other < 0:
            world.fault.bead = slot[at]
            return NO_ROOM
        two.start = (self.ends.slots.shape[1] - (last - at + 1)) // 2
        two.last = two.start + last - at
        # Of both the shorter one moves.
        first_moves = at - two.first < last - at
        self.ground.draw_line(draws, d)
        draw_two(draws, u)
        fault = self.measure(world, &two, first_moves, &before, &asked_before)
        if fault != 0:
            return fault
        kinetic = -self.ends.kinetic(world, filament)
        joint = self.energy_of_joint(world, filament, at)
        self.keep(world, filament, two.first, last, 0)
        for c in range(3):
            x[c] = world.x[3 * slot[at] + c] + (0.0 if first_moves else d[c])
        next_id = self.room.next_id[0]
        fault = self.part(world, filament, at, last, two.other, two.start, 0, x, &self.kept[at - two.first, 3])
        if fault != 0:
            return fault
        if first_moves:
            for c in range(3):
                d[c] = -d[c]
            self.move_by(world, filament, two.first, at, d)
        else:
            self.move_by(world, two.other, two.start + 1, two.last, d)
        fault = self.measure(world, &two, first_moves, &after, &asked)
        if fault != 0:
            return fault
        # Without the joint that goes: its directions have its law.
        excess = (asked - asked_before + joint) / self.kT
        if after - after == 0.0 and (excess <= 0.0 or u[0] < exp_(-excess)):
            self.settle(world, filament, two.other)
            self.ends.draw_velocities(world, filament, self.kT, draws)
            self.ends.draw_velocities(world, two.other, self.kT, draws)
            kinetic += self.ends.kinetic(world, filament) + self.ends.kinetic(world, two.other)
            return self.happened(world, t, 0, world.bead[slot[at]],
                                 world.bead[self.ends.slots[two.other, two.start]], after - before + kinetic, kinetic,
                                 -self.affinity if self.affinity - self.affinity == 0.0 else INFINITY)
        self.unite(world, &two)
        self.room.next_id[0] = next_id
        self.bring_back(world, filament, two.first, last, 0)
        return 0

    cdef int join(self, World* world, double t, double x, Draws* draws) noexcept nogil:
        """Try the first pair up to which rates add up to more than x."""
        cdef double u[2]
        cdef double d[3]
        cdef double before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic
        cdef Py_ssize_t low = 0, high = self.n_pairs - 1, k, width = self.ends.slots.shape[1]
        cdef Py_ssize_t joint, start
        cdef int64_t own_id, next_id
        cdef bint first_moves
        cdef Two two
        cdef int fault, c
        while low < high:
            k = (low + high) // 2
            if self.pairs[k].total > x:
                high = k
            else:
                low = k + 1
        self.describe_two(world, self.pairs[low].filament, self.pairs[low].other, &two)
        k = two.at + two.last - two.start - (width - 1)
        if k > 0:
            # There is room, but not behind it.
            self.ends.shift_by(world, two.filament, k, 1)
            two.first, two.at = two.first - k, two.at - k
        joint, start = self.ends.slots[two.filament, two.at], self.ends.slots[two.other, two.start]
        first_moves = two.at - two.first < two.last - two.start
        draw_two(draws, u)
        fault = self.measure(world, &two, first_moves, &before, &asked_before)
        if fault != 0:
            return fault
        kinetic = -self.ends.kinetic(world, two.filament) - self.ends.kinetic(world, two.other)
        self.keep(world, two.filament, two.first, two.at, 0)
        self.keep(world, two.other, two.start, two.last, two.at + 1)
        if first_moves:
            displacement(&world.box, world.x + 3 * joint, world.x + 3 * start, d)
            self.move_by(world, two.filament, two.first, two.at, d)
        # Between images, too: nodes of one filament follow each other.
        for c in range(3):
            d[c] = world.x[3 * joint + c] - world.x[3 * start + c]
        self.move_by(world, two.other, two.start, two.last, d)
        own_id, next_id = self.room.ids[start], self.room.next_id[0]
        self.unite(world, &two)
        fault = self.measure(world, &two, first_moves, &after, &asked)
        if fault != 0:
            return fault
        # Without the joint that comes: its law is in the rate.
        excess = (asked - asked_before - self.energy_of_joint(world, two.filament, two.at)) / self.kT
        if after - after == 0.0 and (excess <= 0.0 or u[0] < exp_(-excess)):
            if self.ageing is not None:
                self.ageing.of.join(two.filament, two.other)
            self.ends.draw_velocities(world, two.filament, self.kT, draws)
            kinetic += self.ends.kinetic(world, two.filament)
            return self.happened(world, t, 1, world.bead[joint], world.bead[start], after - before + kinetic, kinetic,
                                 self.affinity)
        fault = self.part(world, two.filament, two.at, two.at + two.last - two.start, two.other, two.start, -two.by,
                          &self.kept[two.at + 1, 0], &self.kept[two.at + 1, 3])
        if fault != 0:
            return fault
        self.room.ids[start] = own_id
        self.room.next_id[0] = next_id
        self.room.settle(world, start)
        self.bring_back(world, two.filament, two.first, two.at, 0)
        self.bring_back(world, two.other, two.start, two.last, two.at + 1)
        return 0
