"""Filaments that are cut in two.

Each subunit, or each in one state, is cut at the same rate, and the filament parts at the node nearest to it that is
not an end. What is behind that node becomes a filament of its own, with its ids, caps and the states of its subunits;
its first node is new. It is half a rise beside the old one, by a turn of its link into a random direction, so that the
two do not lie in one place. Filaments of one link have no such node. Velocities of both are drawn from Maxwell's
distribution, tangent to their links, and the change is booked with the energy of forces as chemical energy.

Attempts come as if all places for links had the most subunits. Where bending helps they come faster by the most that
it may do, and are thinned by what it does at the node.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.program cimport NO_ROOM, World, mark_grown
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.filament_ends cimport FilamentEnds, Joint, joint_energy
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.nucleation cimport beside
from medyanpy._kernels.jumps.trial cimport Weights


cdef class Severing(JumpOperation):
    """Cuts of the filaments of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    ends : FilamentEnds
        Of each filament that there is room for, one after the other.
    rise : float, nm
        Of a subunit.
    state : int
        That subunits must have; -1: any.
    n, momenta
        See `WorkSpace`.
    """

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, Py_ssize_t n, momenta):
        self.describe(name, 0.0, True, every)
        self.ends = ends
        self.room = ends.room
        self.rise = rise
        self.state = -1
        self.most = 0
        self.ageing = None
        self.weights = Weights(self, n, momenta)
        self.places = np.zeros(2 * ends.slots.shape[1] + 1, np.int32)

    def set(self, double kT, double rate, double share, double most_faster):
        self.kT = kT
        self.rate = rate
        self.share = share
        self.most_faster = most_faster

    def bend(self, double modulus, double straight, double bent):
        self.joint = Joint(modulus, straight, bent)

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0, n = self.attempts()
        cdef double rate = self.rate * self.most_faster if self.share > 0.0 else self.rate
        cdef bint inside = False
        cdef int failed, fault = 0
        while fault == 0 and wait(draws, rate * n, h, &t, u):
            fault = self.begin_attempt(world, &inside)
            if fault == 0:
                fault = self.attempt_one(world, t, min(<Py_ssize_t> (u[1] * n), <Py_ssize_t> n - 1), draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int begin_attempt(self, World* world, bint* inside) noexcept nogil:
        cdef int fault = 0
        if not inside[0]:
            inside[0] = True
            fault = self.weights.enter(world)
        if fault == 0:
            self.ends.find(world)
            if self.ageing is not None:
                self.ageing.of.follow(world)
            self.counts[0] += 1
        return fault

    cdef double attempts(self) noexcept nogil:
        return <double> self.ends.slots.shape[0] * self.ends.slots.shape[1] * self.most

    cdef int attempt_one(self, World* world, double t, Py_ssize_t which, Draws* draws) noexcept nogil:
        cdef Py_ssize_t width = self.ends.slots.shape[1], link = which // self.most
        return self.attempt(world, t, link // width, link % width, <int32_t> (which % self.most), draws)

    cdef int attempt(self, World* world, double t, Py_ssize_t filament, Py_ssize_t link, int32_t i,
                     Draws* draws) noexcept nogil:
        """Try a subunit of the link that leads on from a place of a filament."""
        cdef const int32_t* slot = &self.ends.slots[filament, 0]
        cdef Py_ssize_t first, last, at, k
        cdef int64_t along = i
        cdef double u[2]
        if not self.room.alive[slot[link]] or world.subunits[slot[link]] <= i:
            return 0
        self.ends.find_chain(filament, &first, &last)
        if last - first < 2:
            return 0
        for k in range(first, link):
            along += world.subunits[slot[k]]
        if self.state >= 0 and self.ageing.of.of(filament, along) != self.state:
            return 0
        at = link if 2 * i < world.subunits[slot[link]] else link + 1
        at = min(max(at, first + 1), last - 1)
        if self.share > 0.0:
            draw_two(draws, u)
            if u[0] * self.most_faster >= self.faster(world, filament, at):
                return 0
        return self.cut(world, t, filament, at, last, draws)

    cdef double energy_of_joint(self, World* world, Py_ssize_t filament, Py_ssize_t at) noexcept nogil:
        cdef const int32_t* slot = &self.ends.slots[filament, at - 1]
        cdef double before[3]
        cdef double after[3]
        displacement(&world.box, world.x + 3 * <Py_ssize_t> slot[0], world.x + 3 * <Py_ssize_t> slot[1], before)
        displacement(&world.box, world.x + 3 * <Py_ssize_t> slot[1], world.x + 3 * <Py_ssize_t> slot[2], after)
        return joint_energy(
            &self.joint, 0.5 * self.rise * (world.subunits[slot[0]] + world.subunits[slot[1]]), before, after)

    cdef double faster(self, World* world, Py_ssize_t filament, Py_ssize_t at) noexcept nogil:
        """How many times faster a filament parts for its bending, at a node."""
        cdef double energy = self.energy_of_joint(world, filament, at)
        return exp_(min(self.share * energy / self.kT, log_(self.most_faster)))

    cdef int cut(self, World* world, double t, Py_ssize_t filament, Py_ssize_t at, Py_ssize_t last,
                 Draws* draws) noexcept nogil:
        cdef const int32_t* slot = &self.ends.slots[filament, 0]
        cdef const int32_t* there
        cdef double x[3]
        cdef double u[2]
        cdef double d[3]
        cdef double across[3]
        cdef double v[3]
        cdef double before = 0.0, after = 0.0, asked = 0.0, kinetic, length, sine, cosine
        cdef Py_ssize_t other = self.ends.free_filament(), start, k, n = 0
        cdef int fault, q
        if other < 0:
            world.fault.bead = slot[at]
            return NO_ROOM
        start = (self.ends.slots.shape[1] - (last - at + 1)) // 2
        there = &self.ends.slots[other, start]
        for k in range(at, last + 1):
            self.places[n] = slot[k]
            self.places[n + 1] = there[k - at]
            n += 2
        fault = self.weights.around(world, &self.places[0], n, &before, &asked)
        if fault != 0:
            return fault
        kinetic = -self.ends.kinetic(world, filament)
        # The new node, on a circle of half a rise around the old one.
        displacement(&world.box, world.x + 3 * slot[at], world.x + 3 * slot[at + 1], d)
        length = sqrt(dot(d, d))
        for q in range(3):
            d[q] /= length
            v[q] = world.v[3 * slot[at] + q]
        draw_two(draws, u)
        beside(d, u[0], across)
        sine = 0.5 * self.rise / length
        cosine = sqrt(1.0 - sine * sine)
        for q in range(3):
            x[q] = world.x[3 * slot[at] + q] + length * ((1.0 - cosine) * d[q] + sine * across[q])
        fault = self.part(world, filament, at, last, other, start, 0, x, v)
        if fault != 0:
            return fault
        self.settle(world, filament, other)
        self.ends.draw_velocities(world, filament, self.kT, draws)
        self.ends.draw_velocities(world, other, self.kT, draws)
        kinetic += self.ends.kinetic(world, filament) + self.ends.kinetic(world, other)
        fault = self.weights.around(world, &self.places[0], n, &after, &asked)
        if fault != 0:
            return fault
        return self.happened(world, t, 0, world.bead[slot[at]], world.bead[there[0]], after - before + kinetic, kinetic,
                             INFINITY)

    cdef int part(self, World* world, Py_ssize_t filament, Py_ssize_t at, Py_ssize_t last, Py_ssize_t other,
                  Py_ssize_t start, int64_t by, const double* x, const double* v) noexcept nogil:
        cdef const int32_t* slot = &self.ends.slots[filament, 0]
        cdef const int32_t* there = &self.ends.slots[other, start]
        cdef Py_ssize_t k
        cdef int fault = self.room.wake(world, there[0], x, v)
        if fault != 0:
            return fault
        world.subunits[there[0]] = world.subunits[slot[at]]
        world.material[there[0]] = world.material[slot[at]] + <int32_t> by
        # What is at the cut stays with what is before it.
        self.ends.hand_over(world, filament, world.material[slot[at]] + 1, world.material[slot[last]], other, by)
        world.subunits[slot[at]] = self.ends.caps[there[0]] = 0
        for k in range(at + 1, last + 1):
            self.ends.move(world, slot[k], there[k - at])
            world.material[there[k - at]] += <int32_t> by
        mark_grown(world, slot[at])
        mark_grown(world, there[0])
        return 0

    cdef void settle(self, World* world, Py_ssize_t filament, Py_ssize_t other) noexcept nogil:
        if self.ageing is not None:
            self.ageing.of.cut(filament, self.ends.subunits_of(world, filament), other)
