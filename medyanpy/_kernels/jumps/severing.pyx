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
from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.program cimport NO_ROOM, World, mark_grown
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.ageing cimport Ageing
from medyanpy._kernels.jumps.filament_ends cimport FilamentEnds, Joint
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
    cdef readonly FilamentEnds ends
    cdef Room room
    cdef double rise
    cdef public int state
    cdef public int32_t most  # subunits of a link
    cdef double rate          # 1/s
    # Share of the energy of bending that speeds cuts, up to so many times.
    cdef double share
    cdef double most_faster
    cdef Joint joint
    cdef public Ageing ageing
    cdef readonly Weights weights
    cdef int32_t[::1] places  # of a filament from a cut on, and of what becomes of it

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
        cdef double t = 0.0, n = <double> self.ends.slots.shape[0] * self.ends.slots.shape[1] * self.most
        cdef double rate = self.rate * self.most_faster if self.share > 0.0 else self.rate
        cdef Py_ssize_t which, width = self.ends.slots.shape[1]
        cdef bint inside = False
        cdef int failed, fault = 0
        while fault == 0 and wait(draws, rate * n, h, &t, u):
            if not inside:
                inside = True
                fault = self.weights.enter(world)
            if fault == 0:
                self.ends.find(world)
                if self.ageing is not None:
                    self.ageing.of.follow(world)
                self.counts[0] += 1
                which = min(<Py_ssize_t> (u[1] * n), <Py_ssize_t> n - 1)
                fault = self.attempt(world, t, which // self.most // width, which // self.most % width,
                                     <int32_t> (which % self.most), draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int attempt(self, World* world, double t, Py_ssize_t filament, Py_ssize_t link, int32_t i,
                     Draws* draws) noexcept nogil:
        """Try a subunit of the link that leads on from a place of a filament."""
        cdef const int32_t* slot = &self.ends.slots[filament, 0]
        cdef Py_ssize_t first = 0, last = self.ends.slots.shape[1] - 1, at, k
        cdef int64_t along = i
        cdef double u[2]
        if not self.room.alive[slot[link]] or world.subunits[slot[link]] <= i:
            return 0
        while not self.room.alive[slot[first]]:
            first += 1
        while not self.room.alive[slot[last]]:
            last -= 1
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
            if u[0] * self.most_faster >= self.faster(world, slot + at - 1):
                return 0
        return self.cut(world, t, filament, at, last, draws)

    cdef double faster(self, World* world, const int32_t* slot) noexcept nogil:
        """How many times faster a filament parts for its bending, at the second of three nodes."""
        cdef double before[3]
        cdef double after[3]
        cdef double cosine, sine, lengths, energy
        displacement(&world.box, world.x + 3 * slot[0], world.x + 3 * slot[1], before)
        displacement(&world.box, world.x + 3 * slot[1], world.x + 3 * slot[2], after)
        lengths = sqrt(dot(before, before) * dot(after, after))
        cosine = max(-1.0, min(1.0, dot(before, after) / lengths))
        sine = sqrt(1.0 - cosine * cosine)
        energy = self.joint.modulus - self.joint.straight * cosine - self.joint.bent * sine
        energy /= 0.5 * self.rise * (world.subunits[slot[0]] + world.subunits[slot[1]])
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
        cdef int64_t left = 0
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
        fault = self.room.wake(world, there[0], x, v)
        if fault != 0:
            return fault
        for k in range(self.ends.slots.shape[1]):
            if k < at and self.room.alive[slot[k]]:
                left += world.subunits[slot[k]]
        world.subunits[there[0]] = world.subunits[slot[at]]
        world.material[there[0]] = world.material[slot[at]]
        # What is at the cut stays with what is before it.
        self.ends.hand_over(world, filament, world.material[slot[at]] + 1, world.material[slot[last]], other)
        world.subunits[slot[at]] = self.ends.caps[there[0]] = 0
        for k in range(at + 1, last + 1):
            self.ends.move(world, slot[k], there[k - at])
        mark_grown(world, slot[at])
        mark_grown(world, there[0])
        if self.ageing is not None:
            self.ageing.of.cut(filament, left, other)
        self.ends.draw_velocities(world, filament, self.kT, draws)
        self.ends.draw_velocities(world, other, self.kT, draws)
        kinetic += self.ends.kinetic(world, filament) + self.ends.kinetic(world, other)
        fault = self.weights.around(world, &self.places[0], n, &after, &asked)
        if fault != 0:
            return fault
        return self.happened(world, t, 0, world.bead[slot[at]], world.bead[there[0]], after - before + kinetic, kinetic,
                             INFINITY)
