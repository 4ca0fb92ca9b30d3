"""Seeds of filaments: n subunits of a pool become a filament of one link, and dissolve again.

A seed is created at the rate k C^n for each volume, its first node at a uniform place of a region and its direction
uniform on the sphere; one of exactly n subunits and one link, whose first node is in the region, dissolves at k_off.
Both are multiplied by min(1, exp(-dU/kT)) of the energy that all forces gain. C^n is N!/(N - n)!/V^n of a pool that
counts, of the cell where the first node is. So M seeds that do not see each other have the weight
(k V C^n/k_off)^M / M!. Velocities are those of Maxwell's distribution, tangent to the link, and are heat.

Attempts come at bounded rates: for the whole region as if all of it were the fullest cell, and for all filaments that
there is room for as if each were such a seed.
"""
from libc.math cimport INFINITY, floor, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport exp_, sincos2pi
from medyanpy._kernels.core.program cimport NO_ROOM, World, mark_grown, mark_moved
from medyanpy._kernels.jumps.ageing cimport Ageing
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.pools cimport PoolCounts
from medyanpy._kernels.jumps.trial cimport Weights


cdef class Nucleation(JumpOperation):
    """Seeds of the filaments of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    ends : FilamentEnds
        Both of each filament that there is room for: plus end and minus end, one after the other.
    rise : float, nm
        Of a subunit.
    size : int
        Subunits of a seed.
    pool : PoolCounts
    species : int
    low, lengths : (3,) float, nm
        The region; without lengths, it is the periodic box.
    n, momenta
        See `WorkSpace`.
    """
    cdef readonly FilamentEnds ends
    cdef Room room
    cdef double rise
    cdef int32_t size
    cdef PoolCounts pool
    cdef Py_ssize_t species
    cdef double low[3]
    cdef double lengths[3]
    cdef bint everywhere
    cdef double on, off       # nm^(3 size - 3)/s and 1/s
    cdef public Ageing ageing
    cdef readonly Weights weights

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, int size,
                 PoolCounts pool not None, Py_ssize_t species, low, lengths, Py_ssize_t n, momenta):
        cdef int c
        self.describe(name, 0.0, False, every)
        self.ends = ends
        self.room = ends.room
        self.rise = rise
        self.size = size
        self.pool = pool
        self.species = species
        self.everywhere = lengths is None
        for c in range(3):
            self.low[c] = low[c]
            self.lengths[c] = 0.0 if self.everywhere else lengths[c]
        self.ageing = None
        self.weights = Weights(self, n, momenta)

    def set(self, double kT, bint driven, double on, double off):
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = off

    cdef double ways(self, double amount) noexcept nogil:
        """C^n where the pool has this amount, with each molecule taken once."""
        cdef double out = 1.0
        cdef int i
        for i in range(self.size):
            out *= max(0.0, amount - (i if self.species < self.pool.n_species else 0)) / self.pool.volume
        return out

    cdef double span(self, const World* world, int c) noexcept nogil:
        return world.box_length[c] if self.everywhere else self.lengths[c]

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double on, off, t = 0.0, volume = self.span(world, 0) * self.span(world, 1) * self.span(world, 2)
        cdef bint inside = False
        cdef int failed, fault = 0
        while fault == 0:
            on = self.on * volume * self.ways(self.pool.most(self.species, world.written))
            off = self.off * self.ends.slots.shape[0]
            if not wait(draws, on + off, h, &t, u):
                break
            if not inside:
                inside = True
                fault = self.weights.enter(world)
            if fault != 0:
                break
            self.ends.find(world)
            if self.ageing is not None:
                self.ageing.of.follow(world)
            self.counts[0] += 1
            u[1] *= on + off
            if u[1] < on:
                fault = self.create(world, t, draws)
            else:
                fault = self.dissolve(world, t, min(<Py_ssize_t> ((u[1] - on) / self.off),
                                                    self.ends.slots.shape[0] - 1), draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int create(self, World* world, double t, Draws* draws) noexcept nogil:
        cdef double u[6]
        cdef double x[3]
        cdef double out[3]
        cdef double still[3]
        cdef double most, before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic, cosine, sine
        cdef Py_ssize_t filament = 0, cell, at, c, _k
        cdef const int32_t* slot
        cdef int fault
        for c in range(3):
            draw_two(draws, u + 2 * c)
        # Two for the direction and one to decide, three for the place.
        for c in range(3):
            x[c] = self.low[c] + u[3 + c] * self.span(world, <int> c)
            still[c] = 0.0
        cell = self.pool.cell_of(x)
        most = self.ways(self.pool.amount(cell, self.species))
        most /= self.ways(self.pool.most(self.species, world.written))
        if not u[0] < most:
            return 0
        cosine = 1.0 - 2.0 * u[1]
        sincos2pi(u[2], &out[1], &out[0])
        sine = sqrt(max(0.0, 1.0 - cosine * cosine))
        out[0] *= sine
        out[1] *= sine
        out[2] = cosine
        for c in range(3):
            out[c] = x[c] + self.size * self.rise * out[c]
        filament = self.ends.free_filament()
        if filament < 0:
            world.fault.bead = self.ends.slots[0, 0]
            return NO_ROOM
        fault = self.weights.whole(world, &before, &asked_before)
        if fault != 0:
            return fault
        at = (self.ends.slots.shape[1] - 2) // 2
        slot = &self.ends.slots[filament, at]
        fault = self.room.wake(world, slot[0], x, still)
        if fault == 0:
            fault = self.room.wake(world, slot[1], out, still)
        if fault != 0:
            return fault
        world.subunits[slot[0]] = self.size
        world.material[slot[0]] = 0
        world.material[slot[1]] = self.size
        mark_grown(world, slot[0])
        world.subunits[slot[1]] = self.ends.caps[slot[0]] = self.ends.caps[slot[1]] = 0
        fault = self.weights.whole(world, &after, &asked)
        if fault != 0:
            return fault
        excess = (asked - asked_before) / self.kT
        if after - after == 0.0 and (excess <= 0.0 or u[0] < most * exp_(-excess)):
            self.ends.draw_velocities(world, filament, self.kT, draws)
            kinetic = self.ends.kinetic(world, filament)
            self.pool.put(cell, self.species, -self.size)
            if self.ageing is not None:
                for _k in range(self.size):
                    self.ageing.of.come(filament, True)
            return self.happened(world, t, 0, world.bead[slot[0]], world.bead[slot[1]], after - before + kinetic,
                                 kinetic, INFINITY if self.driven else 0.0)
        for c in range(2):
            world.subunits[slot[c]] = world.material[slot[c]] = 0
            self.room.put_to_sleep(world, slot[c])
        mark_grown(world, slot[0])
        self.room.next_id[0] -= 2
        return 0

    cdef int dissolve(self, World* world, double t, Py_ssize_t filament, Draws* draws) noexcept nogil:
        cdef const End* plus = self.ends.end(2 * filament)
        cdef const End* minus = self.ends.end(2 * filament + 1)
        cdef double u[2]
        cdef double v[6]
        cdef int64_t ids[2]
        cdef double before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic, off
        cdef int32_t node[2]
        cdef Py_ssize_t cell, i, c, _k
        cdef int fault
        node[0], node[1] = minus.node, plus.node
        if node[0] < 0 or minus.before != node[1] or world.subunits[node[0]] != self.size:
            return 0
        if self.ends.caps[node[0]] != 0 or self.ends.caps[node[1]] != 0:
            return 0
        if self.ends.is_held(filament, world.material[node[0]], world.material[node[1]]):
            return 0
        for c in range(3):
            off = world.x[3 * node[0] + c] - self.low[c]
            if world.box_length != NULL and 0.0 < world.box_length[c] < INFINITY:
                off -= world.box_length[c] * floor(off / world.box_length[c])
            if not self.everywhere and not 0.0 <= off < self.lengths[c]:
                return 0
        draw_two(draws, u)
        fault = self.weights.whole(world, &before, &asked_before)
        if fault != 0:
            return fault
        kinetic = -self.ends.kinetic(world, filament)
        for i in range(2):
            ids[i] = self.room.ids[node[i]]
            for c in range(3):
                v[3 * i + c] = world.v[3 * node[i] + c]
            world.subunits[node[i]] = 0
            self.room.put_to_sleep(world, node[i])
        mark_grown(world, node[0])
        fault = self.weights.whole(world, &after, &asked)
        if fault != 0:
            return fault
        excess = (asked - asked_before) / self.kT
        if excess <= 0.0 or u[0] < exp_(-excess):
            world.material[node[0]] = world.material[node[1]] = 0
            cell = self.pool.cell_of(world.x + 3 * <Py_ssize_t> node[0])
            self.pool.put(cell, self.species, self.size)
            if self.ageing is not None:
                for _k in range(self.size):
                    self.ageing.of.go(filament, True)
            return self.happened(world, t, 1, world.bead[node[0]], world.bead[node[1]], after - before + kinetic,
                                 kinetic, INFINITY if self.driven else 0.0)
        for i in range(2):
            self.room.alive[node[i]] = 1
            self.room.ids[node[i]] = ids[i]
            for c in range(3):
                world.v[3 * node[i] + c] = v[3 * i + c]
            self.room.settle(world, node[i])
        world.subunits[node[0]] = self.size
        mark_grown(world, node[0])
        self.room.living[0] += 1
        mark_moved(world)
        return 0
