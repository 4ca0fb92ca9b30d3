"""Seeds of filaments: n subunits of a pool become a filament of one link, and dissolve again.

A seed is created at the rate k C^n for each volume, its first node at a uniform place of a region and its direction
uniform on the sphere; one of exactly n subunits and one link, whose first node is in the region, dissolves at k_off. Or
there is a ball about each of some beads in place of the region, and both rates are as many times that as there are
balls around the first node.
Both are multiplied by min(1, exp(-dU/kT)) of the energy that all forces gain. C^n is N!/(N - n)!/V^n of a pool that
counts, of the cell where the first node is. So M seeds that do not see each other have the weight
(k V C^n/k_off)^M / M!. Velocities are those of Maxwell's distribution, tangent to the link, and are heat.

Attempts come at bounded rates: for the whole region as if all of it were the fullest cell, and for all filaments that
there is room for as if each were such a seed.
"""
from libc.math cimport INFINITY, M_PI, floor, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_, sincos2pi
from medyanpy._kernels.core.program cimport NO_ROOM, World, is_there, mark_grown
from medyanpy._kernels.core.vec3 cimport cross, dot
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.pools cimport PoolCounts
from medyanpy._kernels.jumps.trial cimport Weights


cdef void on_sphere(double u, double turn, double* out) noexcept nogil:
    cdef double sine
    out[2] = 1.0 - 2.0 * u
    sincos2pi(turn, &out[1], &out[0])
    sine = sqrt(max(0.0, 1.0 - out[2] * out[2]))
    out[0] *= sine
    out[1] *= sine


cdef void beside(const double* d, double turn, double* out) noexcept nogil:
    cdef double axis[3]
    cdef double across[3]
    cdef double root, s, c
    cdef int i
    across[0] = across[1] = across[2] = 0.0
    across[0 if d[0] * d[0] < 0.4 else 1] = 1.0
    cross(d, across, axis)
    root = 1.0 / sqrt(dot(axis, axis))
    for i in range(3):
        axis[i] *= root
    cross(d, axis, across)
    sincos2pi(turn, &s, &c)
    for i in range(3):
        out[i] = c * axis[i] + s * across[i]


cdef void aslant(const double* d, double cosine, double turn, double* out) noexcept nogil:
    cdef double sine = sqrt(max(0.0, 1.0 - cosine * cosine))
    cdef int i
    beside(d, turn, out)
    for i in range(3):
        out[i] = cosine * d[i] + sine * out[i]


cdef class Seeds(JumpOperation):
    """Seeds of the filaments of one handle: what creates and dissolves them has in common.

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
    n, momenta
        See `WorkSpace`.
    near : (k,) int32, optional
        Places of beads near which seeds begin and dissolve, at rates for each; inactive rows among them do nothing.
    kind : int
        Their species; -1: any.
    reach : float, nm
        How near.
    """

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, int size,
                 PoolCounts pool not None, Py_ssize_t species, Py_ssize_t n, momenta,
                 const int32_t[::1] near=None, int kind=-1, double reach=0.0):
        self.describe(name, 0.0, False, every)
        self.ends = ends
        self.room = ends.room
        self.rise = rise
        self.size = size
        self.pool = pool
        self.species = species
        self.ageing = None
        self.weights = Weights(self, n, momenta)
        self.near = near
        self.kind = kind
        self.reach = reach

    cdef double points(self) noexcept nogil:
        return 1.0 if self.near is None else <double> self.near.shape[0]

    cdef bint acts(self, World* world, Py_ssize_t point) noexcept nogil:
        cdef Py_ssize_t bead = self.near[point]
        return is_there(world, bead) and (self.kind < 0 or world.species[bead] == self.kind)

    cdef bint acts_at(self, World* world, Py_ssize_t point, const double* x) noexcept nogil:
        cdef double d[3]
        if self.near is None:
            return True
        if not self.acts(world, point):
            return False
        displacement(&world.box, x, world.x + 3 * <Py_ssize_t> self.near[point], d)
        return dot(d, d) <= self.reach * self.reach

    cdef double ways(self, double amount) noexcept nogil:
        cdef double out = 1.0
        cdef int i
        for i in range(self.size):
            out *= max(0.0, amount - (i if self.species < self.pool.n_species else 0)) / self.pool.volume
        return out

    cdef int look(self, World* world, double h) noexcept nogil:
        return 0

    cdef double rate(self, World* world) noexcept nogil:
        return 0.0

    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        return 0

    cdef void hold(self, World* world, Py_ssize_t filament, bint holds) noexcept nogil:
        pass

    cdef void book(self, Py_ssize_t cell, int n) noexcept nogil:
        self.pool.put(cell, self.species, -n * self.size)

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double total, t = 0.0
        cdef bint inside = False
        cdef int failed, fault = self.look(world, h)
        while fault == 0:
            total = self.rate(world)
            if not wait(draws, total, h, &t, u):
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
            fault = self.attempt(world, u[1] * total, t, draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int create(self, World* world, double t, double u, double most, Py_ssize_t cell, const double* x,
                    const double* out, Draws* draws) noexcept nogil:
        cdef double still[3]
        cdef double before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic
        cdef Py_ssize_t filament = self.ends.free_filament(), at, c, _k
        cdef const int32_t* slot
        cdef int fault
        if filament < 0:
            world.fault.bead = self.ends.slots[0, 0]
            return NO_ROOM
        still[0] = still[1] = still[2] = 0.0
        at = (self.ends.slots.shape[1] - 2) // 2
        slot = &self.ends.slots[filament, at]
        fault = self.weights.around(world, slot, 2, &before, &asked_before)
        if fault != 0:
            return fault
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
        self.hold(world, filament, True)
        fault = self.weights.around(world, slot, 2, &after, &asked)
        if fault != 0:
            return fault
        excess = (asked - asked_before) / self.kT
        if after - after == 0.0 and (excess <= 0.0 or u < most * exp_(-excess)):
            self.ends.draw_velocities(world, filament, self.kT, draws)
            kinetic = self.ends.kinetic(world, filament)
            self.book(cell, 1)
            if self.ageing is not None:
                for _k in range(self.size):
                    self.ageing.of.come(filament, True)
            return self.happened(world, t, 0, world.bead[slot[0]], world.bead[slot[1]], after - before + kinetic,
                                 kinetic, INFINITY if self.driven else 0.0)
        self.hold(world, filament, False)
        for c in range(2):
            world.subunits[slot[c]] = world.material[slot[c]] = 0
            self.room.put_to_sleep(world, slot[c])
        mark_grown(world, slot[0])
        self.room.next_id[0] -= 2
        return 0

    cdef bint is_seed(self, World* world, Py_ssize_t filament, int32_t cap) noexcept nogil:
        cdef const End* plus = self.ends.end(2 * filament)
        cdef const End* minus = self.ends.end(2 * filament + 1)
        if minus.node < 0 or minus.before != plus.node or world.subunits[minus.node] != self.size:
            return False
        if self.ends.caps[minus.node] != cap or self.ends.caps[plus.node] != 0:
            return False
        return not self.ends.is_held(filament, world.material[minus.node], world.material[plus.node])

    cdef int dissolve(self, World* world, double t, Py_ssize_t filament, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double v[6]
        cdef int64_t ids[2]
        cdef double before = 0.0, after = 0.0, asked_before = 0.0, asked = 0.0, excess, kinetic
        cdef int32_t node[2]
        cdef Py_ssize_t cell, i, c, _k
        cdef int fault
        node[0], node[1] = self.ends.end(2 * filament + 1).node, self.ends.end(2 * filament).node
        draw_two(draws, u)
        fault = self.weights.around(world, node, 2, &before, &asked_before)
        if fault != 0:
            return fault
        kinetic = -self.ends.kinetic(world, filament)
        self.hold(world, filament, False)
        for i in range(2):
            ids[i] = self.room.ids[node[i]]
            for c in range(3):
                v[3 * i + c] = world.v[3 * node[i] + c]
            world.subunits[node[i]] = 0
            self.room.put_to_sleep(world, node[i])
        mark_grown(world, node[0])
        fault = self.weights.around(world, node, 2, &after, &asked)
        if fault != 0:
            return fault
        excess = (asked - asked_before) / self.kT
        if excess <= 0.0 or u[0] < exp_(-excess):
            world.material[node[0]] = world.material[node[1]] = 0
            cell = self.pool.cell_of(world.x + 3 * <Py_ssize_t> node[0])
            self.book(cell, -1)
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
            self.room.note(world, node[i])
        world.subunits[node[0]] = self.size
        mark_grown(world, node[0])
        self.hold(world, filament, True)
        return 0


cdef class Nucleation(Seeds):
    """Seeds that begin anywhere in a region, or near beads: in a ball about each.

    Parameters
    ----------
    name, every, ends, rise, size, pool, species, n, momenta, near, kind, reach
        See `Seeds`.
    low, lengths : (3,) float, nm
        The region; without lengths, it is the periodic box, or space where there are beads.
    """
    cdef double low[3]
    cdef double lengths[3]
    cdef bint everywhere

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, int size,
                 PoolCounts pool not None, Py_ssize_t species, low, lengths, Py_ssize_t n, momenta, near, int kind,
                 double reach):
        cdef int c
        Seeds.__init__(self, name, every, ends, rise, size, pool, species, n, momenta, near, kind, reach)
        self.everywhere = lengths is None
        for c in range(3):
            self.low[c] = low[c]
            self.lengths[c] = 0.0 if self.everywhere else lengths[c]

    def set(self, double kT, bint driven, double on, double off):
        """Rates in nm^(3 size - 3)/s and 1/s."""
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = off

    cdef double span(self, const World* world, int c) noexcept nogil:
        return world.box_length[c] if self.everywhere else self.lengths[c]

    cdef double rate_of_seeds(self, World* world) noexcept nogil:
        """Of attempts at new ones, 1/s."""
        cdef double volume
        if self.near is None:
            volume = self.span(world, 0) * self.span(world, 1) * self.span(world, 2)
        else:
            volume = self.points() * (4.0 * M_PI / 3.0) * self.reach * self.reach * self.reach
        return self.on * volume * self.ways(self.pool.most(self.species, world.written))

    cdef double rate(self, World* world) noexcept nogil:
        return self.rate_of_seeds(world) + self.off * self.points() * self.ends.slots.shape[0]

    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        cdef double on = self.rate_of_seeds(world)
        cdef double u[6]
        cdef double place[3]
        cdef double out[3]
        cdef double most, off
        cdef Py_ssize_t cell, filament, m = <Py_ssize_t> self.points(), point = 0
        cdef int32_t node
        cdef int c
        if x < on:
            for c in range(3):
                draw_two(draws, u + 2 * c)
            # Two for the direction and one to decide, three for the place.
            if self.near is None:
                for c in range(3):
                    place[c] = self.low[c] + u[3 + c] * self.span(world, c)
            else:
                point = min(<Py_ssize_t> (x / on * m), m - 1)
                if not self.acts(world, point):
                    return 0
                # Uniform in a ball: its radius is the largest of three.
                most = self.reach * max(u[3], max(u[4], u[5]))
                draw_two(draws, u + 4)
                on_sphere(u[4], u[5], place)
                for c in range(3):
                    place[c] = world.x[3 * self.near[point] + c] + most * place[c]
            cell = self.pool.cell_of(place)
            most = self.ways(self.pool.amount(cell, self.species))
            most /= self.ways(self.pool.most(self.species, world.written))
            if not u[0] < most:
                return 0
            on_sphere(u[1], u[2], out)
            for c in range(3):
                out[c] = place[c] + self.size * self.rise * out[c]
            return self.create(world, t, u[0], most, cell, place, out, draws)
        filament = min(<Py_ssize_t> ((x - on) / self.off), self.ends.slots.shape[0] * m - 1)
        filament, point = filament // m, filament % m
        if not self.is_seed(world, filament, 0):
            return 0
        node = self.ends.end(2 * filament + 1).node
        if self.near is not None:
            return self.dissolve(world, t, filament, draws) if self.acts_at(world, point, world.x + 3 * node) else 0
        for c in range(3):
            off = world.x[3 * node + c] - self.low[c]
            if world.box_length != NULL and 0.0 < world.box_length[c] < INFINITY:
                off -= world.box_length[c] * floor(off / world.box_length[c])
            if not self.everywhere and not 0.0 <= off < self.lengths[c]:
                return 0
        return self.dissolve(world, t, filament, draws)
