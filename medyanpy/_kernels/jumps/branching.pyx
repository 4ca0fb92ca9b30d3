"""Branches: seeds of filaments that begin at places of others, and are held there by a spring and an angle.

A molecule of a pool and n subunits become a branch at a free place at the rate k C_m C^n, and a branch that is a seed
dissolves at k_off; both for each point near the place, where points are asked for, and multiplied by
min(1, exp(-dU/kT)) of the energy that all other forces gain. The vector r from the place to the first node, and the
direction of the seed, come from the laws of the spring and of the angle,

    r^2 exp(-k (r - l)^2 / 2 kT),   any direction of r
    sin(theta) exp(-k (1 - cos(theta - theta0)) / kT),   any turn about the mother

so that M branches have the weight (k C_m C^n / k_off)^M, wherever they point. A branch lets go at a rate of its own,
and is a free filament then: that is not undone. The minus end of a branch is capped.

Attempts come as if every place were near every bead that activates, and cost little each. A letter in which there would
be many counts the beads near each place first, and attempts come at the rates of these. Which of the two it is depends
on rates and numbers alone.

Mothers may grow, and be daughters as well: then places follow their subunits, and a place that is held blocks an end
that would leave it.

State: the daughter at each place, -1 of none. Terms of the two forces follow from it, from which nodes the
daughters have, and from where the places are; they are laid out again once any of these may be others.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.beads.points cimport place as derive_places
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.core.program cimport OUT_OF_MEMORY, World
from medyanpy._kernels.core.sites cimport LinkedSites, Places, SiteRows, SiteTable, SomeSites
from medyanpy._kernels.core.vec3 cimport add_scaled, dot
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds, PlaceKeeper
from medyanpy._kernels.jumps.grounds cimport InSpace
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, draw_maxwell, draw_two
from medyanpy._kernels.jumps.nucleation cimport Seeds, aslant, on_sphere
from medyanpy._kernels.jumps.pools cimport PoolCounts


# Attempts for each place and each bead that activates, which take as long as to count beads near places.
cdef double MANY = 4.0
# Cells know beads up to just beyond the reach, and leave out none at it.
cdef double BEYOND = 1.0 + 1e-12


cdef class Branching(Seeds)


cdef class Held(LinkedSites):
    """Places, and the first nodes of branches."""
    cdef Branching jump

    cdef void follow(self, World* world) noexcept nogil:
        self.jump.lay_out(world)
        LinkedSites.follow(self, world)


cdef class Turned(SomeSites):
    """Of each branch, the nodes of the mother's link and of its own first one."""
    cdef Branching jump

    cdef void follow(self, World* world) noexcept nogil:
        self.jump.lay_out(world)


cdef class Branching(Seeds):
    """Branches of one handle.

    Parameters
    ----------
    name, every, ends, rise, size, pool, species, n, momenta
        See `Seeds`.
    molecule : int
        The species of what holds branches.
    whole : SiteTable
        Sites: m places, the first and the second node of the link of each, and all nodes that daughters may have, of
        one filament after another. The nodes of links follow the places.
    places : int
        m.
    """
    cdef Py_ssize_t molecule
    cdef SiteTable whole
    cdef Py_ssize_t n_places
    cdef double release
    cdef double length, spread        # nm, of the spring: at rest, and (kT/k)^(1/2)
    cdef double angle[3]              # k, p, s of `Angles` over kT
    # Which cap is that of a branch.
    cdef public int number
    cdef int32_t[::1] branch_at       # (m,) the state: which filament is at each place, -1: none
    cdef int32_t[::1] site            # (filaments,) the same by filament
    cdef Py_ssize_t trying            # the place of the seed that is created or dissolved
    cdef public object layout
    cdef int32_t[::1] other, end      # see `LinkedSites`
    cdef int64_t[::1] changes
    cdef readonly Held held
    cdef readonly Turned turned
    # In letters with many attempts: beads that activate within reach of each place, -1 where it is not; and the sums of
    # these, of places that are free, and by filament of those with a branch.
    cdef InSpace ground
    cdef bint counting
    cdef int64_t counted             # events
    cdef int32_t[::1] close
    cdef int64_t[::1] free_up_to
    cdef int64_t[::1] held_up_to
    # Of what the terms have been laid out.
    cdef bint laid_out
    cdef long long world, living, written, version

    def __init__(self, str name, int every, FilamentEnds ends not None, double rise, int size,
                 PoolCounts pool not None, Py_ssize_t species, Py_ssize_t molecule, SiteTable whole not None,
                 Py_ssize_t places, const int32_t[::1] near, int kind, double reach, Py_ssize_t n, momenta):
        Seeds.__init__(self, name, every, ends, rise, size, pool, species, n, momenta, near, kind, reach)
        sites = places * 3 + ends.slots.shape[0] * ends.slots.shape[1]
        self.molecule = molecule
        self.whole = whole
        self.n_places = places
        self.number = 1
        self.site = np.full(ends.slots.shape[0], -1, np.int32)
        self.branch_at = np.full(places, -1, np.int32)
        self.other = np.zeros(sites, np.int32)
        self.end = np.arange(sites, dtype=np.int32)
        self.changes = np.zeros(1, np.int64)
        self.held = Held(whole, self.other, self.end, self.changes)
        self.held.jump = self
        self.turned = Turned(whole)
        self.turned.jump = self
        self.laid_out = False
        self.counting = False
        self.ground = None
        if near is not None and near.shape[0] > 0:
            self.ground = InSpace(np.min(near), np.ptp(near) + 1)
            self.ground.reach = reach * BEYOND
            self.close = np.zeros(places + 1, np.int32)
            self.free_up_to = np.zeros(places + 1, np.int64)
            self.held_up_to = np.zeros(ends.slots.shape[0] + 1, np.int64)

    def set(self, double kT, bint driven, double on, double off, double release, spring, angle):
        """Rates in nm^(3 size + 3)/s and 1/s; spring: stiffness, pN/nm, and length, nm; angle: k, p and s of
        `Angles`, pN nm."""
        cdef int c
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = off
        self.release = release
        self.spread = sqrt(kT / spring[0])
        self.length = spring[1]
        for c in range(3):
            self.angle[c] = angle[c] / kT

    def arrays(self):
        return {**Seeds.arrays(self), "branch": np.asarray(self.branch_at)}

    def rows(self):
        """Branches (k, 2): the place of each, and its first node among all that daughters may have."""
        branch_at = np.asarray(self.branch_at)
        places = np.flatnonzero(branch_at >= 0)
        places = places[np.argsort(branch_at[places])]
        branches = branch_at[places]
        there = np.asarray(self.room.alive)[np.asarray(self.ends.slots)[branches]] != 0
        first = branches * self.ends.slots.shape[1] + np.argmax(there, axis=1)
        return np.column_stack([places, first])

    def took_over(self):
        Seeds.took_over(self)
        self.laid_out = False

    def keepers_of(self, const int32_t[:, ::1] nodes not None, unbinds):
        """Those who know which places on filaments with these nodes have branches."""
        return [BranchPlaces(self, own) for own in self.whole.places if np.array_equal(own.nodes_of, nodes)]

    # Terms ----------------------------------------------------------------------------------------------------

    cdef void lay_out(self, World* world) noexcept nogil:
        """Rows of the terms of both forces, where they are not those of now."""
        cdef const SiteRows* t = &self.whole.rows
        cdef Py_ssize_t f, i, p, node, k = 0
        cdef int32_t* row
        self.whole.follow(world)
        if (self.laid_out and self.world == world.number and self.living == self.room.living[0]
                and self.written == world.written and self.version == self.whole.version):
            return
        self.ends.find(world)
        for i in range(self.end.shape[0]):
            self.end[i] = <int32_t> i
        self.site[:] = -1
        for i in range(self.n_places):
            if self.branch_at[i] >= 0:
                self.site[self.branch_at[i]] = <int32_t> i
        self.turned.empty()
        for f in range(self.site.shape[0]):
            p = self.site[f]
            if p < 0 or self.ends.end(2 * f + 1).node < 0:
                continue
            node = 3 * self.n_places + f * self.ends.slots.shape[1] + self.ends.place(2 * f + 1).at
            self.other[p] = <int32_t> node
            self.other[node] = <int32_t> p
            self.end[p] += 1
            self.end[node] += 1
            row = self.turned.site + 4 * k
            for i in range(2):
                row[i] = <int32_t> ((1 + i) * self.n_places + p)
                (<int32_t*> t.bead)[t.start[row[i]]] = t.bead[t.start[p] + i]
            row[2] = <int32_t> node
            row[3] = <int32_t> (node + 1)
            k += 1
        self.turned.n = 4 * k
        self.turned.fill()
        self.changes[0] += 1
        self.laid_out = True
        self.world = world.number
        self.living = self.room.living[0]
        self.written = world.written
        self.version = self.whole.version

    cdef void hold(self, World* world, Py_ssize_t filament, bint holds) noexcept nogil:
        self.ends.find(world)
        self.ends.caps[self.ends.end(2 * filament + 1).node] = self.number if holds else 0
        if not holds:
            self.trying = self.site[filament]
        self.site[filament] = <int32_t> (self.trying if holds else -1)
        self.branch_at[self.trying] = <int32_t> (filament if holds else -1)
        self.laid_out = False

    cdef void shift(self, Py_ssize_t place, Py_ssize_t to) noexcept nogil:
        """The branch at a place is at another one."""
        if self.branch_at[place] >= 0 and to != place:
            self.branch_at[to] = self.branch_at[place]
            self.site[self.branch_at[to]] = <int32_t> to
            self.branch_at[place] = -1
            self.laid_out = False

    cdef void book(self, Py_ssize_t cell, int n) noexcept nogil:
        Seeds.book(self, cell, n)
        self.pool.put(cell, self.molecule, -n)

    # Events ---------------------------------------------------------------------------------------------------

    cdef double most_ways(self, World* world) noexcept nogil:
        return (self.pool.most(self.molecule, world.written) / self.pool.volume
                * self.ways(self.pool.most(self.species, world.written)))

    cdef int look(self, World* world, double h) noexcept nogil:
        cdef int fault
        self.counting = False
        if self.ground is None or not self.rate(world) * h > MANY * (self.n_places + self.near.shape[0]):
            return 0
        fault = derive_places(world)
        if fault != 0:
            return fault
        self.ground.begin(world, &self.near[0], self.near.shape[0])
        self.close[:] = -1
        self.counting = True
        return self.count(world)

    cdef int count(self, World* world) noexcept nogil:
        """Beads that activate near places that are there now, and were not at the last count of this letter."""
        cdef double x[3]
        cdef double cell[3]
        cdef Py_ssize_t p, f, n
        self.lay_out(world)
        for p in range(self.n_places):
            if not self.whole.is_here(p):
                self.close[p] = -1
            elif self.close[p] < 0:
                self.whole.place(world, p, x)
                self.ground.find_cell(world, x, cell)
                n = self.ground.lines_to(world, x, cell, -1, self.kind)
                if n < 0:
                    return OUT_OF_MEMORY
                self.close[p] = <int32_t> n
            self.free_up_to[p + 1] = self.free_up_to[p]
            if self.branch_at[p] < 0:
                self.free_up_to[p + 1] += max(self.close[p], 0)
        for f in range(self.site.shape[0]):
            self.held_up_to[f + 1] = self.held_up_to[f]
            if self.site[f] >= 0:
                self.held_up_to[f + 1] += max(self.close[self.site[f]], 0)
        self.counted = self.counts[2]
        return 0

    cdef double pairs(self, bint held) noexcept nogil:
        """Pairs of a place, or a filament that may be a branch, and a bead that activates, which are tried."""
        if self.counting:
            return <double> (self.held_up_to[self.site.shape[0]] if held else self.free_up_to[self.n_places])
        return self.points() * (self.site.shape[0] if held else self.n_places)

    cdef double rate(self, World* world) noexcept nogil:
        return (self.on * self.most_ways(world) * self.pairs(False) + self.off * self.pairs(True)
                + self.release * self.site.shape[0])

    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        cdef double each = self.on * self.most_ways(world)
        cdef double on = each * self.pairs(False), off = self.off * self.pairs(True)
        cdef Py_ssize_t which, point = -1
        cdef Py_ssize_t m = <Py_ssize_t> self.points()
        cdef int fault
        self.lay_out(world)
        if x < on + off:
            which = min(<Py_ssize_t> (x / each), <Py_ssize_t> self.pairs(False) - 1) if x < on else min(
                <Py_ssize_t> ((x - on) / self.off), <Py_ssize_t> self.pairs(True) - 1)
            if self.counting:
                which = _last_up_to(self.free_up_to if x < on else self.held_up_to, which)
            else:
                point, which = which % m, which // m
            if x < on:
                fault = self.branch(world, t, which, point, draws)
            elif self.site[which] >= 0 and self.is_near(world, self.site[which], point) and (
                    self.is_seed(world, which, self.number)):
                fault = self.dissolve(world, t, which, draws)
            else:
                fault = 0
            if fault == 0 and self.counting and self.counted != self.counts[2]:
                fault = self.count(world)
            return fault
        which = min(<Py_ssize_t> ((x - on - off) / self.release), self.site.shape[0] - 1)
        if self.site[which] < 0:
            return 0
        fault = self.let_go(world, t, which)
        return self.count(world) if fault == 0 and self.counting else fault

    cdef bint is_near(self, World* world, Py_ssize_t place, Py_ssize_t point) noexcept nogil:
        cdef double x[3]
        if self.near is None or point < 0:
            # All places are active; or it is one of those that are near.
            return True
        self.whole.place(world, place, x)
        return self.acts_at(world, point, x)

    cdef int branch(self, World* world, double t, Py_ssize_t place, Py_ssize_t point, Draws* draws) noexcept nogil:
        cdef double x[3]
        cdef double out[3]
        cdef double along[3]
        cdef const int32_t* link = self.whole.rows.bead + self.whole.rows.start[place]
        cdef double u[2]
        cdef double most
        cdef Py_ssize_t cell
        cdef int c
        if self.branch_at[place] >= 0 or not self.whole.is_here(place) or not self.is_near(world, place, point):
            return 0
        displacement(&world.box, world.x + 3 * <Py_ssize_t> link[0], world.x + 3 * <Py_ssize_t> link[1], along)
        most = 1.0 / sqrt(dot(along, along))
        for c in range(3):
            along[c] *= most
        self.draw_first_node(world, place, x, draws)
        self.draw_direction(along, out, draws)
        for c in range(3):
            out[c] = x[c] + self.size * self.rise * out[c]
        cell = self.pool.cell_of(x)
        most = (self.pool.amount(cell, self.molecule) / self.pool.volume
                * self.ways(self.pool.amount(cell, self.species)) / self.most_ways(world))
        draw_two(draws, u)
        if not u[0] < most:
            return 0
        self.trying = place
        return self.create(world, t, u[0], most, cell, x, out, draws)

    cdef void draw_first_node(self, World* world, Py_ssize_t place, double* x, Draws* draws) noexcept nogil:
        """Where a branch begins, from the law of the spring: with y = r - l, under 2 (l^2 + y^2) exp(-y^2/2 s^2)."""
        cdef double v[3]
        cdef double u[2]
        cdef double r[3]
        cdef double y = 0.0, rest = self.length, s = self.spread
        while draws.next <= MOST_DRAWS:
            draw_maxwell(draws, s * s, v)
            draw_two(draws, u)
            y = v[0]
            if not u[0] * (rest * rest + s * s) < rest * rest:
                y = sqrt(dot(v, v)) * (1.0 if v[0] > 0.0 else -1.0)
            if rest + y > 0.0 and u[1] * 2.0 * (rest * rest + y * y) < (rest + y) * (rest + y):
                break
        draw_two(draws, u)
        on_sphere(u[0], u[1], r)
        self.whole.place(world, place, x)
        add_scaled(rest + y, r, x)

    cdef void draw_direction(self, const double* along, double* out, Draws* draws) noexcept nogil:
        """That of a branch, from the law of the angle to the unit vector along its mother."""
        cdef double u[4]
        cdef double cosine = 0.0, sine
        draw_two(draws, u)
        while draws.next <= MOST_DRAWS:
            draw_two(draws, u + 2)
            cosine = 1.0 - 2.0 * u[2]
            sine = sqrt(max(0.0, 1.0 - cosine * cosine))
            if u[3] < exp_(self.angle[1] * cosine + self.angle[2] * sine - self.angle[0]):
                break
        aslant(along, cosine, u[0], out)

    cdef int let_go(self, World* world, double t, Py_ssize_t filament) noexcept nogil:
        cdef double before = 0.0, after = 0.0, asked = 0.0
        cdef const End* end = self.ends.end(2 * filament + 1)
        cdef const double* x = world.x + 3 * <Py_ssize_t> end.node
        cdef int32_t nodes[2]
        cdef int fault
        nodes[0], nodes[1] = end.node, end.before
        fault = self.weights.around(world, nodes, 2, &before, &asked)
        if fault != 0:
            return fault
        self.hold(world, filament, False)
        fault = self.weights.around(world, nodes, 2, &after, &asked)
        if fault != 0:
            return fault
        self.pool.put(self.pool.cell_of(x), self.molecule, 1)
        return self.happened(world, t, 2, world.bead[self.ends.end(2 * filament + 1).node], -1, after - before, 0.0,
                             INFINITY)


cdef Py_ssize_t _last_up_to(const int64_t[::1] up_to, int64_t k) noexcept nogil:
    """The last of those whose sums are up to k: what has one of its own is found, k from 0."""
    cdef Py_ssize_t low = 0, high = up_to.shape[0] - 1, middle
    while high - low > 1:
        middle = (low + high) // 2
        if up_to[middle] <= k:
            low = middle
        else:
            high = middle
    return low


cdef class BranchPlaces(PlaceKeeper):
    """Which places of one lattice have branches."""
    cdef Branching jump

    def __init__(self, Branching jump not None, Places places not None):
        self.jump = jump
        self.places = places
        self.unbinds = False

    cdef bint is_taken(self, Py_ssize_t row) noexcept nogil:
        return self.jump.branch_at[row] >= 0

    cdef void shift(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil:
        self.jump.shift(row, to)
