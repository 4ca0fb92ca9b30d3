"""Sites: the places that forces act on, as one table over beads.

    X_s = x_0 + sum_k w_k (x_k - x_0) + R(q) arm,    sum_k w_k = 1
    f_k += w_k F_s,    torque += arm x (R(q)^T F_s) in the frame of the body

or a place that does not move, without beads: an anchor. Because weights sum to 1, X_s = sum_k w_k x_k moves with its
beads, and depends on displacements alone, as a box asks for.

Forces on sites go to beads by owner: each bead adds up the sites that it takes part in, in ascending order, apart
from everything else, and the sum is added once. The bits depend on neither threads nor other forces.

Units: nm, pN. The caller has checked bead numbers, weights, and that no site names a bead twice.
"""
cimport cython

import numpy as np

from libc.string cimport memmove, memset

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.parallel cimport over_blocks
from medyanpy._kernels.core.program cimport GROWN
from medyanpy._kernels.core.vec3 cimport add_scaled, cross

cdef Py_ssize_t BLOCK = 1024
# Subunits beyond an end at which sites are known already: lists of pairs hold until one has grown so far.
cdef int64_t MARGIN = 16
MARGIN_OF_PLACES = MARGIN


cdef int _gather(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef SiteRows* t = <SiteRows*> task
    cdef Py_ssize_t i
    memset(t.f + 3 * first, 0, 3 * (last - first) * sizeof(double))
    for i in range(first, last):
        where(t, world, i, t.x + 3 * i)
    return 0


cdef int _scatter(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef SiteRows* t = <SiteRows*> task
    cdef double* f
    cdef double sum[3]
    cdef Py_ssize_t k, s
    for k in range(first, last):
        sum[0] = sum[1] = sum[2] = 0.0
        for s in range(t.owner_start[k], t.owner_start[k + 1]):
            add_scaled(t.owner_weight[s], t.f + 3 * <Py_ssize_t> t.owner_site[s], sum)
        # Summed apart and added once: two equal forces give exactly twice one.
        f = world.f + 3 * <Py_ssize_t> t.owner[k]
        f[0] += sum[0]
        f[1] += sum[1]
        f[2] += sum[2]
    return 0


cdef int _torques(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef SiteRows* t = <SiteRows*> task
    cdef const double* q
    cdef double* torque
    cdef double back[3]
    cdef double f[3]
    cdef double turn[3]
    cdef double sum[3]
    cdef Py_ssize_t k, s
    cdef int c
    for k in range(first, last):
        q = world.orientation + 4 * <Py_ssize_t> t.body[k]
        for c in range(3):
            back[c] = -q[1 + c]
            sum[c] = 0.0
        for s in range(t.body_start[k], t.body_start[k + 1]):
            rotate(q[0], back, t.f + 3 * <Py_ssize_t> t.body_site[s], f)
            cross(t.arm + 3 * <Py_ssize_t> t.body_site[s], f, turn)
            add_scaled(1.0, turn, sum)
        torque = world.torque + 3 * <Py_ssize_t> t.body[k]
        for c in range(3):
            torque[c] += sum[c]
    return 0


def _by_owner(owner_of):
    """Rows that belong to the same owner: (owners ascending, where the rows of each start, rows in order)."""
    order = np.argsort(owner_of, kind="stable").astype(np.int32)
    owner, start = np.unique(owner_of[order], return_index=True)
    return owner.astype(np.int32), np.append(start, len(order)).astype(np.int32), order


cdef inline int64_t _floored(int64_t a, int64_t b) noexcept nogil:
    """a / b, rounded down; b > 0."""
    return a // b if a >= 0 else -((b - 1 - a) // b)


cdef class Places:
    """Places at equal distances on the filaments of one handle that grow.

    Parameters
    ----------
    nodes : (filaments, n) int32
        Places of the beads that may be nodes, in order; -1 beyond.
    site : (filaments, width) int32
        Rows of sites, by the number of a place modulo the width; -1 of none.
    spacing : int, >= 1
        Subunits from each place to the next.
    n_beads : int
    """

    def __init__(self, const int32_t[:, ::1] nodes not None, const int32_t[:, ::1] site not None, int64_t spacing,
                 Py_ssize_t n_beads):
        filament = np.full(n_beads, -1, np.int32)
        own = np.asarray(nodes)
        filament[own[own >= 0]] = np.nonzero(own >= 0)[0]
        self.nodes, self.site, self.spacing, self.filament = nodes, site, spacing, filament
        self.nodes_of, self.site_of = np.asarray(nodes), np.asarray(site)

    @property
    def all_nodes(self):
        """All that may be nodes, (n,)."""
        return self.nodes_of[self.nodes_of >= 0]

    cdef int64_t first(self, int64_t low) noexcept nogil:
        return -_floored(-low, self.spacing)

    cdef int64_t window(self, int64_t low, int64_t high) noexcept nogil:
        return _floored(low + high, 2 * self.spacing) - self.site.shape[1] // 2

    cdef Py_ssize_t row(self, Py_ssize_t filament, int64_t m) noexcept nogil:
        return self.site[filament, m - self.site.shape[1] * _floored(m, self.site.shape[1])]


cdef class SiteTable:
    """n sites; or, made without arguments, the beads themselves: then nothing is copied.

    Parameters
    ----------
    start : (n + 1,) int32
        Where the beads of each site start; a site without beads is an anchor.
    bead : (m,) int32
        Places of beads.
    weight : (m,) float
        Sum 1 over each site.
    anchors : (a, 3) float, nm
        Places of the sites without beads, in their order.
    oriented : (n,) int32, optional
        Row of the oriented bead that carries the arm, -1 where there is none. The site has beads.
    arm : (n, 3) float, nm, optional
        In the frame of that body.
    places : list of Places
        Those whose sites, of two beads each, follow filaments that grow.
    """

    def __cinit__(self, const int32_t[::1] start=None, const int32_t[::1] bead=None, const double[::1] weight=None,
                  anchors=None, const int32_t[::1] oriented=None, const double[:, ::1] arm=None, places=()):
        cdef SiteRows* t = &self.rows
        memset(t, 0, sizeof(SiteRows))
        memset(&self.now, 0, sizeof(SiteArrays))
        self.rank = None
        self.are_beads = start is None
        self.has_arms = oriented is not None
        self.places = list(places)
        self.world = self.written = self.grown = -1
        self.version = 0
        if self.are_beads:
            return
        n = start.shape[0] - 1
        counts = np.diff(start)
        firsts = np.full(n, -1, np.int32)
        firsts[counts > 0] = np.asarray(bead)[np.asarray(start)[:n][counts > 0]]
        # Positions come first: `positions` and anchors look for them there.
        self.arrays = []
        t.n = n
        t.x = zeros(self.arrays, 3 * n)
        t.f = zeros(self.arrays, 3 * n)
        np.asarray(self.arrays[0]).reshape(n, 3)[counts == 0] = anchors
        t.start = vector(self.arrays, start)
        t.bead = vector(self.arrays, bead)
        t.weight = vector(self.arrays, weight)
        owners, starts, order = _by_owner(np.asarray(bead))
        if self.places:
            # Any node of these filaments may come to be one.
            owners = np.unique(np.concatenate([owners, *(own.all_nodes for own in self.places)])).astype(np.int32)
            starts = np.append(np.searchsorted(np.asarray(bead)[order], owners), len(order)).astype(np.int32)
            there = np.full(n, STAYS, np.uint8)
            for own in self.places:
                there[own.site_of[own.site_of >= 0]] = HERE
            t.there = vector[cython.uchar](self.arrays, there)
            t.along = vector[double](self.arrays, np.zeros(n))
            self.now.there = t.there
        t.n_owners = len(owners)
        t.owner = vector[int32_t](self.arrays, owners)
        t.owner_start = vector[int32_t](self.arrays, starts)
        t.owner_site = vector[int32_t](self.arrays, np.repeat(np.arange(n, dtype=np.int32), counts)[order])
        t.owner_weight = vector[double](self.arrays, np.asarray(weight)[order])
        if self.has_arms:
            with_arm = np.flatnonzero(np.asarray(oriented) >= 0)
            bodies, starts, order = _by_owner(np.asarray(oriented)[with_arm])
            t.n_bodies = len(bodies)
            t.oriented = vector(self.arrays, oriented)
            t.arm = table(self.arrays, arm)
            t.body = vector[int32_t](self.arrays, bodies)
            t.body_start = vector[int32_t](self.arrays, starts)
            t.body_site = vector[int32_t](self.arrays, with_arm[order].astype(np.int32))
        self.now.x = t.x
        self.now.f = t.f
        self.now.id = vector[int32_t](self.arrays, np.arange(n, dtype=np.int32))
        self.now.bead = vector[int32_t](self.arrays, firsts)

    def choose(self, const int64_t[::1] wanted):
        """Let beads count while they are of these species: bits by place (n,), all of them set for any."""
        self.arrays = []
        self.now.wanted = vector[int64_t](self.arrays, wanted)

    @staticmethod
    def room_for(SiteTable other):
        """A table without sites, with room for all of another, which are not beads themselves."""
        cdef SiteTable self = SiteTable()
        cdef const SiteRows* all = &other.rows
        cdef SiteRows* t = &self.rows
        cdef Py_ssize_t m = all.start[all.n]
        self.are_beads = False
        self.has_arms = other.has_arms
        self.arrays = []
        t.x = zeros(self.arrays, 3 * all.n)
        t.f = zeros(self.arrays, 3 * all.n)
        t.start = vector[int32_t](self.arrays, np.zeros(all.n + 1, np.int32))
        t.bead = vector[int32_t](self.arrays, np.zeros(m, np.int32))
        t.weight = vector[double](self.arrays, np.zeros(m))
        t.owner = vector[int32_t](self.arrays, np.zeros(all.n_owners, np.int32))
        t.owner_start = vector[int32_t](self.arrays, np.zeros(all.n_owners + 1, np.int32))
        t.owner_site = vector[int32_t](self.arrays, np.zeros(m, np.int32))
        t.owner_weight = vector[double](self.arrays, np.zeros(m))
        if all.there != NULL:
            t.there = vector[cython.uchar](self.arrays, np.zeros(all.n, np.uint8))
            t.along = vector[double](self.arrays, np.zeros(all.n))
            self.now.there = t.there
        if self.has_arms:
            t.oriented = vector[int32_t](self.arrays, np.zeros(all.n, np.int32))
            t.arm = vector[double](self.arrays, np.zeros(3 * all.n))
            t.body = vector[int32_t](self.arrays, np.zeros(all.n_bodies, np.int32))
            t.body_start = vector[int32_t](self.arrays, np.zeros(all.n_bodies + 1, np.int32))
            t.body_site = vector[int32_t](self.arrays, np.zeros(all.n, np.int32))
        self.now.x = t.x
        self.now.f = t.f
        self.now.id = vector[int32_t](self.arrays, np.arange(all.n, dtype=np.int32))
        self.now.bead = vector[int32_t](self.arrays, np.full(all.n, -1, np.int32))
        return self

    cdef void take(
        self, const SiteRows* whole, const int32_t* site, Py_ssize_t n, const int32_t* slot, const int32_t* rank,
        int32_t* count,
    ) noexcept nogil:
        cdef SiteRows* t = &self.rows
        cdef int32_t* start = <int32_t*> t.start
        cdef int32_t* first = <int32_t*> self.now.bead
        cdef int32_t* bead = <int32_t*> t.bead
        cdef double* weight = <double*> t.weight
        cdef int32_t* owner_start = <int32_t*> t.owner_start
        cdef Py_ssize_t i, k, m, s, at = 0
        cdef int c
        start[0] = 0
        for m in range(n):
            i = site[m]
            first[m] = whole.bead[whole.start[i]] if whole.start[i] < whole.start[i + 1] else -1
            for k in range(whole.start[i], whole.start[i + 1]):
                bead[at] = whole.bead[k]
                weight[at] = whole.weight[k]
                count[rank[bead[at]]] += 1
                at += 1
            start[m + 1] = <int32_t> at
            for c in range(3):
                # Anchors are where they were put.
                t.x[3 * m + c] = whole.x[3 * i + c]
            if t.there != NULL:
                (<unsigned char*> t.there)[m] = whole.there[i]
                (<double*> t.along)[m] = whole.along[i]
            if t.oriented != NULL:
                (<int32_t*> t.oriented)[m] = whole.oriented[i]
                for c in range(3):
                    (<double*> t.arm)[3 * m + c] = whole.arm[3 * i + c]
        t.n = n
        # Of each owner its sites, ascending: where they start, then which.
        t.n_owners = 0
        owner_start[0] = 0
        for k in range(whole.n_owners):
            if count[k] > 0:
                (<int32_t*> t.owner)[t.n_owners] = whole.owner[k]
                owner_start[t.n_owners + 1] = owner_start[t.n_owners] + count[k]
                count[k] = owner_start[t.n_owners]
                t.n_owners += 1
        for m in range(n):
            for k in range(start[m], start[m + 1]):
                s = count[rank[bead[k]]]
                (<int32_t*> t.owner_site)[s] = <int32_t> m
                (<double*> t.owner_weight)[s] = weight[k]
                count[rank[bead[k]]] += 1
        for k in range(start[n]):
            count[rank[bead[k]]] = 0
        if t.oriented != NULL:
            t.n_bodies = 0
            at = 0
            for k in range(whole.n_bodies):
                for s in range(whole.body_start[k], whole.body_start[k + 1]):
                    if slot[whole.body_site[s]] >= 0:
                        (<int32_t*> t.body_site)[at] = slot[whole.body_site[s]]
                        at += 1
                if at > t.body_start[t.n_bodies]:
                    (<int32_t*> t.body)[t.n_bodies] = whole.body[k]
                    t.n_bodies += 1
                    (<int32_t*> t.body_start)[t.n_bodies] = <int32_t> at

    cdef void follow(self, World* world) noexcept nogil:
        if self.rows.there == NULL:
            return
        if self.world != world.number or self.written != world.written or self.grown != world.grown:
            with gil:
                self.catch_up(world)

    cdef void catch_up(self, World* world) noexcept:
        cdef Places own
        cdef Py_ssize_t i, k
        cdef int32_t node
        cdef long long e
        cdef bint other = self.world != world.number or self.written != world.written
        for own in self.places:
            if not other and world.grown - self.grown <= GROWN:
                for e in range(self.grown, world.grown):
                    i = own.filament[world.grown_at[e % GROWN]]
                    if i >= 0:
                        self.settle(world, own, i)
                continue
            for i in range(own.nodes.shape[0]):
                for k in range(own.nodes.shape[1] - 1):
                    # A first node and subunits tell where all other nodes are.
                    node = own.nodes[i, k]
                    if node >= 0 and world.subunits[node] > 0:
                        world.material[own.nodes[i, k + 1]] = world.material[node] + world.subunits[node]
                self.settle(world, own, i)
        self.world = world.number
        self.written = world.written
        self.grown = world.grown
        self.version += 1

    cdef void settle(self, World* world, Places places, Py_ssize_t filament) noexcept nogil:
        """Where sites are on a filament."""
        cdef const SiteRows* t = &self.rows
        cdef unsigned char* there = <unsigned char*> t.there
        cdef int32_t* bead
        cdef double* weight
        cdef Py_ssize_t k, site, width = places.site.shape[1], first = -1, last = -1
        cdef int64_t m, c, begin, low = 0, high = 0
        cdef int32_t node
        for k in range(places.nodes.shape[1]):
            node = places.nodes[filament, k]
            if node >= 0 and is_there(world, node):
                first = k if first < 0 else first
                last = k
        if first < last:
            low = world.material[places.nodes[filament, first]]
            high = world.material[places.nodes[filament, last]]
        begin = places.window(low, high)
        k = first
        for m in range(begin, begin + width):
            site = places.row(filament, m)
            c = m * places.spacing
            if site < 0:
                continue
            there[site] = PARKED
            if first == last or not low - MARGIN <= c <= high + MARGIN:
                continue
            there[site] = HERE if low <= c <= high else BEYOND
            while k + 1 < last and world.material[places.nodes[filament, k + 1]] <= c:
                k += 1
            bead = <int32_t*> t.bead + t.start[site]
            weight = <double*> t.weight + t.start[site]
            bead[0] = places.nodes[filament, k]
            bead[1] = places.nodes[filament, k + 1]
            (<double*> t.along)[site] = <double> c
            weight[1] = <double> (c - world.material[bead[0]])
            weight[1] /= <double> (world.material[bead[1]] - world.material[bead[0]])
            weight[0] = 1.0 - weight[1]
            (<int32_t*> self.now.bead)[site] = bead[0]

    cdef bint is_here(self, Py_ssize_t site) noexcept nogil:
        return self.rows.there == NULL or self.rows.there[site] <= HERE

    cdef void regroup(self) noexcept nogil:
        cdef SiteRows* t = &self.rows
        cdef int32_t* start = <int32_t*> t.owner_start
        cdef int32_t* rank
        cdef Py_ssize_t i, k
        if self.rank.shape[0] == 0:
            with gil:
                self.rank = np.zeros(1 + t.owner[t.n_owners - 1], np.int32)
                np.asarray(self.rank)[np.asarray(<const int32_t[:t.n_owners]> t.owner)] = np.arange(t.n_owners)
        rank = &self.rank[0]
        memset(start, 0, (t.n_owners + 1) * sizeof(int32_t))
        for i in range(t.n):
            start[rank[t.bead[i]] + 1] += 1
        for k in range(t.n_owners):
            start[k + 1] += start[k]
        # Each start is moved to the end of its owner, which is the start of the next, and back.
        for i in range(t.n):
            k = rank[t.bead[i]]
            (<int32_t*> t.owner_site)[start[k]] = <int32_t> i
            start[k] += 1
            (<int32_t*> self.now.bead)[i] = t.bead[i]
        memmove(start + 1, start, t.n_owners * sizeof(int32_t))
        start[0] = 0

    @property
    def positions(self):
        """(n, 3) where sites were when last gathered; of a table of its own."""
        return np.array(self.arrays[0]).reshape(-1, 3)

    cdef int gather(self, World* world) noexcept nogil:
        if self.are_beads:
            # Asked for anew each time: forces may be evaluated in several worlds.
            self.now.x = world.x
            self.now.f = world.f
            self.now.id = world.bead
            return 0
        return over_blocks(_gather, &self.rows, world, self.rows.n, BLOCK)

    cdef void refresh(self, World* world, Py_ssize_t site) noexcept nogil:
        if self.are_beads:
            self.gather(world)
        else:
            where(&self.rows, world, site, self.rows.x + 3 * site)

    cdef void place(self, World* world, Py_ssize_t site, double* out) noexcept nogil:
        cdef int c
        if not self.are_beads:
            where(&self.rows, world, site, out)
            return
        for c in range(3):
            out[c] = world.x[3 * site + c]

    cdef Py_ssize_t owner_of(self, int32_t place) noexcept nogil:
        cdef const SiteRows* t = &self.rows
        cdef Py_ssize_t low = 0, high = t.n_owners, middle
        while low < high:
            middle = (low + high) // 2
            if t.owner[middle] < place:
                low = middle + 1
            else:
                high = middle
        return low if low < t.n_owners and t.owner[low] == place else -1

    cdef int scatter(self, World* world) noexcept nogil:
        cdef int fault
        if self.are_beads:
            return 0
        fault = over_blocks(_scatter, &self.rows, world, self.rows.n_owners, BLOCK)
        if fault == 0 and self.rows.n_bodies > 0:
            fault = over_blocks(_torques, &self.rows, world, self.rows.n_bodies, BLOCK)
        return fault

    # Higher derivatives ---------------------------------------------------------------------------------------

    cdef Py_ssize_t n_terms(self, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """How many terms c_i x_i the vector from site a to site b has; a bead of both sites is in two of them."""
        if self.are_beads:
            return 2
        return self.rows.start[a + 1] - self.rows.start[a] + self.rows.start[b + 1] - self.rows.start[b]

    cdef double term(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t p, Py_ssize_t* bead) noexcept nogil:
        """c_i of one term, and the place of its bead."""
        cdef Py_ssize_t s
        if self.are_beads:
            bead[0] = a if p == 0 else b
            return -1.0 if p == 0 else 1.0
        s = self.rows.start[a] + p
        if s < self.rows.start[a + 1]:
            bead[0] = self.rows.bead[s]
            return -self.rows.weight[s]
        s += self.rows.start[b] - self.rows.start[a + 1]
        bead[0] = self.rows.bead[s]
        return self.rows.weight[s]

    cdef int add_single(self, Py_ssize_t site, const double* k, AddBlock add, void* sink) noexcept nogil:
        cdef double block[9]
        cdef const SiteRows* t = &self.rows
        cdef Py_ssize_t p, q
        cdef int e, fault
        if self.are_beads:
            return add(sink, site, site, k)
        for p in range(t.start[site], t.start[site + 1]):
            for q in range(t.start[site], p + 1):
                for e in range(9):
                    block[e] = t.weight[p] * t.weight[q] * k[e]
                fault = add(sink, t.bead[p], t.bead[q], block)
                if fault != 0:
                    return fault
        return 0

    cdef int add_pair(self, Py_ssize_t a, Py_ssize_t b, const double* k, AddBlock add, void* sink) noexcept nogil:
        cdef double block[9]
        cdef double cp, c
        cdef Py_ssize_t p, q, i, j
        cdef int e, fault
        if self.are_beads:
            for e in range(9):
                block[e] = -k[e]
            fault = add(sink, a, a, k)
            if fault == 0:
                fault = add(sink, b, a, block)
            return add(sink, b, b, k) if fault == 0 else fault
        for p in range(self.n_terms(a, b)):
            cp = self.term(a, b, p, &i)
            for q in range(p + 1):
                c = cp * self.term(a, b, q, &j)
                if i == j and p != q:
                    # (p, q) and (q, p) are both in the one block (i, i).
                    c *= 2.0
                for e in range(9):
                    block[e] = c * k[e]
                fault = add(sink, i, j, block)
                if fault != 0:
                    return fault
        return 0

    cdef int add_mixed(self, const Py_ssize_t* ends, const double* k, AddBlock add, void* sink) noexcept nogil:
        cdef double block[9]
        cdef double cp, c
        cdef Py_ssize_t p, q, i, j
        cdef int d, e, fault
        for p in range(self.n_terms(ends[0], ends[1])):
            cp = self.term(ends[0], ends[1], p, &i)
            for q in range(self.n_terms(ends[2], ends[3])):
                c = cp * self.term(ends[2], ends[3], q, &j)
                for d in range(3):
                    for e in range(3):
                        # A bead of both vectors: K and its transpose are in the one block (i, i).
                        block[3 * d + e] = c * (k[3 * d + e] + k[3 * e + d] if i == j else k[3 * d + e])
                fault = add(sink, i, j, block)
                if fault != 0:
                    return fault
        return 0

    cdef void difference(self, Py_ssize_t a, Py_ssize_t b, const double* v, double* out) noexcept nogil:
        cdef Py_ssize_t p, i
        cdef double c
        cdef int e
        if self.are_beads:
            for e in range(3):
                out[e] = v[3 * b + e] - v[3 * a + e]
            return
        out[0] = out[1] = out[2] = 0.0
        for p in range(self.n_terms(a, b)):
            c = self.term(a, b, p, &i)
            add_scaled(c, v + 3 * i, out)

    cdef void share(self, Py_ssize_t a, Py_ssize_t b, const double* t, double* out) noexcept nogil:
        cdef Py_ssize_t p, i
        cdef double c
        cdef int e
        if self.are_beads:
            for e in range(3):
                out[3 * a + e] -= t[e]
                out[3 * b + e] += t[e]
            return
        for p in range(self.n_terms(a, b)):
            c = self.term(a, b, p, &i)
            add_scaled(c, t, out + 3 * i)

    cdef void mean(self, Py_ssize_t site, const double* v, double* out) noexcept nogil:
        cdef const SiteRows* t = &self.rows
        cdef Py_ssize_t p
        out[0] = out[1] = out[2] = 0.0
        if self.are_beads:
            add_scaled(1.0, v + 3 * site, out)
            return
        for p in range(t.start[site], t.start[site + 1]):
            add_scaled(t.weight[p], v + 3 * <Py_ssize_t> t.bead[p], out)

    cdef void share_single(self, Py_ssize_t site, const double* t, double* out) noexcept nogil:
        cdef const SiteRows* rows = &self.rows
        cdef Py_ssize_t p
        if self.are_beads:
            add_scaled(1.0, t, out + 3 * site)
            return
        for p in range(rows.start[site], rows.start[site + 1]):
            add_scaled(rows.weight[p], t, out + 3 * <Py_ssize_t> rows.bead[p])


cdef class SomeSites:
    """Table of some of many sites, which is filled again whenever others are wanted, so that no caller goes over all.

    Parameters
    ----------
    whole : SiteTable
        All sites, which are not beads themselves.
    """

    def __init__(self, SiteTable whole not None):
        cdef const SiteRows* rows = &whole.rows
        cdef Py_ssize_t n = rows.n
        self.held = []
        self.whole = whole
        self.sites = SiteTable.room_for(whole)
        owners = np.asarray(<int32_t[:rows.n_owners]> <int32_t*> rows.owner) if rows.n_owners else np.zeros(0, int)
        rank = np.zeros(1 + owners.max(initial=0), np.int32)
        rank[owners] = np.arange(len(owners))
        self.rank = vector[int32_t](self.held, rank)
        self.count = <int32_t*> vector[int32_t](self.held, np.zeros(rows.n_owners, np.int32))
        self.slot = <int32_t*> vector[int32_t](self.held, np.full(n, -1, np.int32))
        self.site = <int32_t*> vector[int32_t](self.held, np.zeros(n, np.int32))

    cdef void follow(self, World* world) noexcept nogil:
        pass

    cdef void empty(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            self.slot[self.site[k]] = -1
        self.n = 0

    cdef void fill(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            self.slot[self.site[k]] = <int32_t> k
        self.sites.take(&self.whole.rows, self.site, self.n, self.slot, self.rank, self.count)


cdef class LinkedSites(SomeSites):
    """Of many sites that may have links to each other, those that have some.

    Parameters
    ----------
    whole : SiteTable
        All n sites.
    other, end : (n p,), (n,) int32
        Site i has links to other[p i], ..., other[end[i] - 1].
    changes : (1,) int64
        Another number whenever these have changed.
    states : (n p,) int32, optional
        The states of links, 0 without.
    """

    def __init__(self, SiteTable whole, const int32_t[::1] other, const int32_t[::1] end, const int64_t[::1] changes,
                 const int32_t[::1] states=None):
        cdef Py_ssize_t n = end.shape[0]
        SomeSites.__init__(self, whole)
        self.others = other
        self.ends = end
        self.changes = changes
        self.slots = other.shape[0] // max(n, 1)
        self.start_of, self.partner_of = np.zeros(n + 1, np.int32), np.zeros(other.shape[0], np.int32)
        self.start = <int32_t*> vector[int32_t](self.held, self.start_of)
        self.partner = <int32_t*> vector[int32_t](self.held, self.partner_of)
        self.states = states
        self.state_of = np.zeros(other.shape[0], np.int32)
        self.state = <int32_t*> vector[int32_t](self.held, self.state_of)
        self.world = -1

    cdef void follow(self, World* world) noexcept nogil:
        cdef Py_ssize_t i, k, s, at = 0
        self.whole.follow(world)
        if self.seen == self.changes[0] and self.world == world.number and self.written == world.written and (
                self.version == self.whole.version):
            return
        self.empty()
        for i in range(self.ends.shape[0]):
            if self.ends[i] > self.slots * i:
                self.site[self.n] = <int32_t> i
                self.n += 1
        self.fill()
        for k in range(self.n):
            i = self.site[k]
            for s in range(self.slots * i, self.ends[i]):
                self.partner[at] = self.slot[self.others[s]]
                if self.states is not None:
                    self.state[at] = self.states[s]
                at += 1
            self.start[k + 1] = <int32_t> at
        self.seen = self.changes[0]
        self.version = self.whole.version
        self.world = world.number
        self.written = world.written
