"""Networks of reactions between molecules that are counted, in a pool or on a grid of cells.

A channel is one reaction in one direction. With n molecules of its reactants in a cell of volume V it happens at the
rate ("propensity")

    a = k V^(1 - order) n (n - 1) ..        one factor for each reactant, the falling ones where one is there twice

to which a reservoir contributes its concentration times V. On a grid each molecule also hops through each face of its
cell at D/h^2. One clock runs for all: the waiting time is exponential at the rate of everything, and what happens is
picked in proportion (Gillespie's direct method).

Picking goes down a tree of sums: each node is the sum of eight below, the leaves are the channels of a pool, or the
cells of a grid, within which channels are looked at one after the other. An event costs a walk to a leaf and the sums
above the leaves that it changes. That is the logarithm of their number, as with a heap of times (Gibson & Bruck; Elf &
Ehrenberg), but no time is kept from one letter to the next, for which each letter would have to draw one for each leaf.

Every leaf is a function of the counts in its cell, and every node of its leaves, added up in one order: the tree does
not depend on how counts have come about, so that bits are the same after a restart.

Caches, and when they are computed again:

    rates       of the inside of a membrane: its volume is another one
    the tree    of these; another jump has changed the counts (PoolCounts.version); arrays of the state have been
                written to (World.written); other rates or kT; another World
"""
import numpy as np

cimport cython
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free

from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.jumps.pools cimport PoolCounts

cdef enum:
    WIDTH = 8                 # children of a node
    MOST_LEVELS = 21          # enough for 2^63 leaves
    MOST_FACTORS = 3
    FACES = 6


# One reaction in one direction: rate times the product of scale n - minus. Factors that it has not are 0 n + 1, so that
# no branch depends on how many there are.
cdef struct Channel:
    double rate
    int32_t species[MOST_FACTORS]
    double scale[MOST_FACTORS]
    double minus[MOST_FACTORS]


@cython.final
cdef class SumTree:
    """Numbers >= 0, their sum, and which of them a number below the sum falls on."""
    cdef double[::1] kept
    cdef double* values
    cdef Py_ssize_t n
    cdef int depth            # levels of sums above the leaves
    cdef Py_ssize_t offset[MOST_LEVELS]

    def __init__(self, Py_ssize_t n):
        cdef Py_ssize_t room = 0, wide = n
        self.n = n
        self.depth = 0
        self.offset[0] = 0
        while self.depth == 0 or wide > 1:
            wide = max(1, (wide + WIDTH - 1) // WIDTH)
            room += wide * WIDTH
            self.depth += 1
            self.offset[self.depth] = room
        self.kept = np.zeros(room + 1)
        self.values = &self.kept[0]

    cdef inline double total(self) noexcept nogil:
        return self.values[self.offset[self.depth]]

    cdef inline void sum_up(self, int level, Py_ssize_t node) noexcept nogil:
        """The value of one node of a level above the leaves."""
        cdef const double* v = self.values + self.offset[level - 1] + WIDTH * node
        self.values[self.offset[level] + node] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))

    cdef inline void refresh(self, Py_ssize_t leaf) noexcept nogil:
        """The sums above a leaf."""
        cdef Py_ssize_t node = leaf
        cdef int level
        for level in range(1, self.depth + 1):
            node //= WIDTH
            self.sum_up(level, node)

    cdef void refresh_all(self) noexcept nogil:
        cdef Py_ssize_t node, wide = self.n
        cdef int level
        for level in range(1, self.depth + 1):
            wide = (wide + WIDTH - 1) // WIDTH
            for node in range(wide):
                self.sum_up(level, node)

    cdef inline Py_ssize_t pick(self, double* x) noexcept nogil:
        """The leaf on which x < total() falls; x becomes what is left of it within the leaf."""
        cdef Py_ssize_t node = 0, last
        cdef const double* v
        cdef int level, c
        for level in range(self.depth - 1, -1, -1):
            v = self.values + self.offset[level] + WIDTH * node
            last = -1
            for c in range(WIDTH):
                if v[c] > 0.0:
                    last = c
                    if x[0] < v[c]:
                        break
                    x[0] -= v[c]
            else:
                # Rounding has lost what is beyond the last.
                x[0] = 0.0
            node = WIDTH * node + last
        return node


@cython.final
cdef class Network(JumpOperation):
    """The reactions of one pool or grid.

    Parameters
    ----------
    name, every
        As of JumpOperation.
    pool : PoolCounts
    factors, minus : (n, 3) int32 arrays
        Of each channel the species whose number is a factor, -1 for none, and what is taken from it.
    changes : list of (species, by) int32 arrays
        Of each channel.
    reverse : (n,) int32 array
        The channel that takes back what one does; -1 where there is none.
    """
    cdef PoolCounts pool
    cdef Py_ssize_t n
    cdef Channel* channels                # (n,)
    # Of the inside of a membrane: rates (n,) at the volume `start`, the power of the volume in each, at most 1, and the
    # volume that those of `channels` are of.
    cdef const double[::1] base
    cdef const int32_t[::1] powers
    cdef double volume
    cdef const int32_t[::1] reverse
    cdef const double[::1] affinity       # kT, of each channel: see `drive`
    # Of channel r, items changed[r] to changed[r + 1]: what it changes, and likewise whose rates it changes.
    cdef const int32_t[::1] changed, species, by
    cdef const int32_t[::1] first_touched, touched
    cdef double[::1] diffusion            # (n_species,) nm^2/s, all 0 where another jump does it
    cdef bint on_grid
    cdef bint hopping
    cdef const int32_t[:, ::1] beside     # (n_cells, 6) the cell through each face, -1 for none
    cdef double face[FACES]               # 1/nm^2: 1/h^2
    cdef const double[::1] open_faces     # (n_cells,) the sum of these over the faces of a cell that lead to others
    cdef SumTree tree
    cdef object kept_fired
    cdef int64_t[::1] fired               # events of each channel, and hops
    cdef long long seen, written, world

    def __cinit__(self, *args, **kwargs):
        self.channels = NULL

    def __dealloc__(self):
        free(self.channels)

    def __init__(self, str name, int every, PoolCounts pool, const int32_t[:, ::1] factors,
                 const int32_t[:, ::1] minus, list changes, reverse):
        cdef Py_ssize_t r, k
        self.describe(name, float("nan"), False, every)
        # No force knows how many molecules there are.
        self.moves = False
        self.pool = pool
        self.n = len(reverse)
        self.reverse = reverse
        self.channels = <Channel*> calloc(max(self.n, 1), sizeof(Channel))
        if self.channels == NULL:
            raise MemoryError
        for r in range(self.n):
            for k in range(MOST_FACTORS):
                self.channels[r].minus[k] = -1.0
                if factors[r, k] >= 0:
                    self.channels[r].species[k] = factors[r, k]
                    self.channels[r].scale[k] = 1.0
                    self.channels[r].minus[k] = minus[r, k]
        self.changed = np.cumsum([0, *(len(species) for species, _ in changes)], dtype=np.int32)
        self.species = np.array([s for species, _ in changes for s in species], np.int32)
        self.by = np.array([b for _, by in changes for b in by], np.int32)
        reads = [set(np.asarray(factors[r]).tolist()) - {-1} for r in range(self.n)]
        touched = [[r for r in range(self.n) if reads[r] & set(np.asarray(s).tolist())] for s, _ in changes]
        self.first_touched = np.cumsum([0, *map(len, touched)], dtype=np.int32)
        self.touched = np.array([r for own in touched for r in own], np.int32)
        self.on_grid = pool.n_cells > 1
        self.hopping = False
        self.diffusion = np.zeros(pool.n_species)
        self.tree = SumTree(pool.n_cells if self.on_grid else self.n)
        self.kept_fired = np.zeros(self.n + 1, np.int64)
        self.fired = self.kept_fired
        self.seen = -1

    def hop(self, diffusion, faces, beside, open_faces):
        """Let molecules hop: diffusion (n_species,) nm^2/s; faces (6,), 1/h^2; as described above."""
        cdef int f
        self.diffusion, self.beside, self.open_faces = diffusion, beside, open_faces
        for f in range(FACES):
            self.face[f] = faces[f]
        self.hopping = True
        self.seen = -1

    def set(self, double kT, bint driven, const double[::1] rates, const int32_t[::1] powers,
            const double[::1] affinity):
        """Take rates (n,) of channels, with powers of the volume and what reservoirs contribute in them, which power
        that is, and what drives each."""
        cdef Py_ssize_t r
        self.kT = kT
        self.driven = driven
        self.affinity = affinity
        self.base, self.powers = rates, powers
        self.volume = 0.0
        for r in range(self.n):
            self.channels[r].rate = rates[r]
        self.seen = -1

    cdef void swell(self) noexcept nogil:
        """Rates at the volume of now."""
        cdef double ratio = self.pool.volume / self.pool.start
        cdef Py_ssize_t r
        cdef int power
        self.volume = self.pool.volume
        self.seen = -1
        for r in range(self.n):
            power = self.powers[r]
            self.channels[r].rate = self.base[r] * (ratio if power > 0 else 1.0)
            while power < 0:
                self.channels[r].rate /= ratio
                power += 1

    def arrays(self):
        return {**super().arrays(), "fired": self.kept_fired}

    cdef inline double propensity(self, const int64_t* n, Py_ssize_t r) noexcept nogil:
        cdef const Channel* c = &self.channels[r]
        cdef double a = c.rate
        cdef int k
        for k in range(MOST_FACTORS):
            a *= c.scale[k] * <double> n[c.species[k]] - c.minus[k]
        return a

    cdef inline double of_cell(self, Py_ssize_t cell) noexcept nogil:
        """The rate of everything that happens in a cell: hops, then channels."""
        cdef const int64_t* n = self.pool.counts + cell * self.pool.n_species
        cdef double sum = 0.0
        cdef Py_ssize_t k
        if self.hopping:
            for k in range(self.pool.n_species):
                sum += self.diffusion[k] * <double> n[k]
            sum *= self.open_faces[cell]
        for k in range(self.n):
            sum += self.propensity(n, k)
        return sum

    cdef void measure(self, World* world) noexcept nogil:
        """The tree, where it is stale."""
        cdef Py_ssize_t k
        if self.inside is not None and self.volume != self.pool.volume:
            self.swell()
        if self.seen == self.pool.version and self.written == world.written and self.world == world.number:
            return
        for k in range(self.tree.n):
            self.tree.values[k] = self.of_cell(k) if self.on_grid else self.propensity(self.pool.counts, k)
        self.tree.refresh_all()
        self.seen, self.written, self.world = self.pool.version, world.written, world.number

    cdef int fire(self, World* world, double t, Py_ssize_t cell, Py_ssize_t r) noexcept nogil:
        """Let channel r happen in a cell."""
        cdef int64_t* n = self.pool.counts + cell * self.pool.n_species
        cdef double there, back, chemical = INFINITY
        cdef Py_ssize_t k
        if self.recording:
            there = self.propensity(n, r)
        for k in range(self.changed[r], self.changed[r + 1]):
            n[self.species[k]] += self.by[k]
        self.fired[r] += 1
        self.drive(self.affinity[r])
        if not self.recording:
            # What `record` does then.
            self.counts[1] += 1
            self.counts[2] += 1
            self.first = self.counts[2]
            return 0
        if self.reverse[r] >= 0:
            back = self.propensity(n, self.reverse[r])
            if back > 0.0:
                chemical = self.kT * (log_(there) - log_(back))
        return self.record(world, t, <int> r, cell, -1, 0.0, 0.0, chemical)

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef int fault
        cdef long long events = draws.next
        self.measure(world)
        fault = self.on_cells(world, h, draws) if self.on_grid else self.mixed(world, h, draws)
        if draws.next != events + 1:
            self.pool.changed()
        self.seen = self.pool.version
        return fault

    cdef inline void draw(self, Draws* draws, double* next) noexcept nogil:
        """Draw a waiting time of rate 1, and a number that picks what happens. This is done for the next event while
        the one at hand is still worked on: neither depends on the other, and a processor does both at once."""
        cdef double u[2]
        draw_two(draws, u)
        next[0] = draw_exponential(u[0])
        next[1] = u[1]

    cdef inline bint next_time(self, double h, Draws* draws, double* next, double* t, double* x) noexcept nogil:
        """Whether something happens within h: when, and a number below the rate of everything."""
        cdef double total = self.tree.total()
        if draws.next > MOST_DRAWS or not total > 0.0:
            return False
        if total > 1e300:
            # Beyond all numbers, or nearly: the letter says so.
            draws.next = MOST_DRAWS + 1
            return False
        t[0] += next[0] / total
        x[0] = next[1] * total
        if not t[0] < h:
            return False
        self.draw(draws, next)
        return True

    cdef int mixed(self, World* world, double h, Draws* draws) noexcept nogil:
        """A pool that is well mixed."""
        cdef double next[2]
        cdef double t = 0.0, x = 0.0
        cdef Py_ssize_t r, k, q
        cdef int fault
        self.draw(draws, next)
        while self.next_time(h, draws, next, &t, &x):
            self.counts[0] += 1
            r = self.tree.pick(&x)
            fault = self.fire(world, t, 0, r)
            if fault != 0:
                return fault
            for k in range(self.first_touched[r], self.first_touched[r + 1]):
                q = self.touched[k]
                self.tree.values[q] = self.propensity(self.pool.counts, q)
                if self.tree.depth > 1:
                    self.tree.refresh(q)
            if self.tree.depth == 1:
                self.tree.sum_up(1, 0)
        return 0

    cdef inline void follow(self, Py_ssize_t cell) noexcept nogil:
        self.tree.values[cell] = self.of_cell(cell)
        self.tree.refresh(cell)

    cdef int on_cells(self, World* world, double h, Draws* draws) noexcept nogil:
        """A grid."""
        cdef double next[2]
        cdef double t = 0.0, x = 0.0
        cdef Py_ssize_t cell, other, r
        cdef int fault
        self.draw(draws, next)
        while self.next_time(h, draws, next, &t, &x):
            cell = self.tree.pick(&x)
            other = self.hopped(cell, &x)
            if other < 0:
                r = self.channel_at(cell, x)
                self.counts[0] += 1
                fault = self.fire(world, t, cell, r)
                if fault != 0:
                    return fault
            else:
                self.fired[self.n] += 1
                self.follow(other)
            self.follow(cell)
        return 0

    cdef inline Py_ssize_t hopped(self, Py_ssize_t cell, double* x) noexcept nogil:
        """The cell that a molecule has hopped to; -1 where x falls on a channel, and becomes what is left of it."""
        cdef int64_t* n = self.pool.counts + cell * self.pool.n_species
        cdef double sum = 0.0, own, y
        cdef Py_ssize_t s, last = -1, to = -1
        cdef int f
        if not self.hopping or not self.open_faces[cell] > 0.0:
            return -1
        for s in range(self.pool.n_species):
            sum += self.diffusion[s] * <double> n[s]
        y = x[0] / self.open_faces[cell]
        if not (y < sum):
            if self.n > 0:
                x[0] -= sum * self.open_faces[cell]
                if self.has_channel(cell):
                    return -1
            y = 0.0
        for s in range(self.pool.n_species):
            own = self.diffusion[s] * <double> n[s]
            if own > 0.0:
                last = s
                if y < own:
                    break
                y -= own
        else:
            y = 0.0
        y = y / (self.diffusion[last] * <double> n[last]) * self.open_faces[cell]
        for f in range(FACES):
            if self.beside[cell, f] >= 0:
                to = self.beside[cell, f]
                if y < self.face[f]:
                    break
                y -= self.face[f]
        self.pool.take(cell, last, 1)
        self.pool.put(to, last, 1)
        return to

    cdef inline bint has_channel(self, Py_ssize_t cell) noexcept nogil:
        """Whether any reaction can happen in a cell."""
        cdef const int64_t* n = self.pool.counts + cell * self.pool.n_species
        cdef Py_ssize_t r
        for r in range(self.n):
            if self.propensity(n, r) > 0.0:
                return True
        return False

    cdef inline Py_ssize_t channel_at(self, Py_ssize_t cell, double x) noexcept nogil:
        cdef const int64_t* n = self.pool.counts + cell * self.pool.n_species
        cdef Py_ssize_t r, last = -1
        cdef double own
        for r in range(self.n):
            own = self.propensity(n, r)
            if own > 0.0:
                last = r
                if x < own:
                    break
                x -= own
        return last
