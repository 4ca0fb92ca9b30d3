"""Which terms of an energy a change concerns.

A force is asked what its energy gains by a change of a few places. Its terms are found by these places: from an index
of the terms that name each place, made when it is first asked for, or from the sites that move.
"""
import numpy as np

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from medyanpy._kernels.core.neighbors cimport Neighbors
from medyanpy._kernels.core.program cimport AddBlock
from medyanpy._kernels.core.sites cimport SiteRows


cdef class Few:
    """Room for some of the numbers below `size`."""

    def __init__(self, Py_ssize_t size):
        self.has = np.zeros(size + 1, np.int8)
        self.items = np.zeros(size + 1, np.int32)

    cdef void add(self, Py_ssize_t item) noexcept nogil:
        if not self.has[item]:
            self.has[item] = 1
            self.items[self.n] = <int32_t> item
            self.n += 1

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            self.has[self.items[k]] = 0
        self.n = 0


cdef class TermIndex:
    """Terms by place.

    Parameters
    ----------
    places, terms : (m,) int32
        Each pair: the term depends on the bead at the place. A pair may occur twice.
    """

    def __init__(self, places, terms):
        order = np.argsort(places, kind="stable")
        size = int(np.max(places, initial=-1)) + 1
        self.start = np.searchsorted(np.asarray(places)[order], np.arange(size + 1)).astype(np.int32)
        self.entry = np.append(np.asarray(terms, np.int32)[order], np.int32(0))

    cdef void add_terms(self, Py_ssize_t place, Few terms) noexcept nogil:
        cdef Py_ssize_t e
        if place + 1 < self.start.shape[0]:
            for e in range(self.start[place], self.start[place + 1]):
                terms.add(self.entry[e])


def at_sites(SiteTable sites not None, rows, terms):
    """(places, terms) of a `TermIndex`, of terms that depend on sites: rows and terms (m,)."""
    cdef const SiteRows* t = &sites.rows
    rows, terms = np.asarray(rows), np.asarray(terms)
    if sites.are_beads:
        return rows, terms
    start = np.asarray(<const int32_t[:t.n + 1]> t.start)
    counts = np.diff(start)[rows]
    if not counts.sum():
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    beads = np.asarray(<const int32_t[:t.start[t.n]]> t.bead)
    first = np.repeat(start[rows] - (np.cumsum(counts) - counts), counts)
    return beads[first + np.arange(len(first))], np.repeat(terms, counts)


def in_rows(rows, steps, terms):
    """(places, terms, how many) of a `TermIndex`, of the terms in some rows of a table of places: each depends on the
    beads so many steps from its row."""
    return np.concatenate([np.asarray(rows)[terms + step] for step in steps]), np.tile(terms, len(steps)), len(rows)


cdef class TermForce(SmoothForce):

    def named(self):
        """The arguments of the `TermIndex` of all terms, and how many there are."""
        raise NotImplementedError

    cdef void loops(self, BlockFunction loop, void* task, const double* energies, Py_ssize_t block) noexcept:
        self.loop = loop
        self.task_of_loop = task
        self.energies = energies
        self.block = block

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef void know_terms(self) noexcept nogil:
        """The index, where it is not there yet."""
        if self.index_of_terms is None:
            with gil:
                places, terms, n = self.named()
                self.index_of_terms = TermIndex(places, terms)
                self.near = Few(n)

    cdef bint tells_beads(self) noexcept nogil:
        return True

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef Py_ssize_t i
        self.know_terms()
        for i in range(change.n_moved):
            self.index_of_terms.add_terms(change.moved[i], self.near)
        return True

    cdef void release(self) noexcept nogil:
        self.near.clear()

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        return 0

    cdef int of_term(self, World* world, Py_ssize_t term, double* out) noexcept nogil:
        cdef int fault = self.look(world, term)
        if fault == 0:
            fault = self.loop(self.task_of_loop, world, term, term + 1, 0)
        out[0] = self.energies[term // self.block]
        return fault

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Py_ssize_t k
        cdef double energy
        cdef int fault = 0
        out[0] = 0.0
        self.examined += self.near.n
        for k in range(self.near.n):
            energy = 0.0
            fault |= self.of_term(world, self.near.items[k], &energy)
            out[0] += energy
        return fault

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # Terms stay what they are wherever their beads go.
        return True


cdef class ExactTermForce(TermForce):

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.hessian(world, add, sink)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        return 0

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        return self.contract(world, a, out)


cdef class SiteForce(ExactTermForce):

    def named(self):
        n = self.row.shape[0]
        return *at_sites(self.sites, self.row, np.arange(n, dtype=np.int32)), n


cdef class MovedSites:

    def __dealloc__(self):
        free(self.rank)
        free(self.site)
        free(self.x)

    cdef bint add(self, int32_t site) noexcept nogil:
        cdef void* grown
        if self.rank[site] >= 0:
            return True
        if self.n == self.room:
            grown = realloc(self.site, (2 * self.room + 16) * sizeof(int32_t))
            if grown == NULL:
                return False
            self.site = <int32_t*> grown
            grown = realloc(self.x, 3 * (2 * self.room + 16) * sizeof(double))
            if grown == NULL:
                return False
            self.x = <double*> grown
            self.room = 2 * self.room + 16
        self.rank[site] = <int32_t> self.n
        self.site[self.n] = site
        self.n += 1
        return True

    cdef bint take(self, World* world, SiteTable sites, const Change* change) noexcept nogil:
        cdef const SiteRows* t = &sites.rows
        cdef Py_ssize_t size = world.n if sites.are_beads else t.n
        cdef Py_ssize_t i, owner, s
        cdef int32_t place
        if self.size != size:
            free(self.rank)
            self.size = 0
            self.rank = <int32_t*> malloc((size + 1) * sizeof(int32_t))
            if self.rank == NULL:
                return False
            memset(self.rank, 255, (size + 1) * sizeof(int32_t))
            self.size = size
        for i in range(change.n_moved):
            place = change.moved[i]
            if sites.are_beads:
                if not self.add(place):
                    self.release()
                    return False
                continue
            owner = sites.owner_of(place)
            if owner < 0:
                continue
            for s in range(t.owner_start[owner], t.owner_start[owner + 1]):
                if not self.add(t.owner_site[s]):
                    self.release()
                    return False
        return True

    cdef void follow(self, World* world, SiteTable sites) noexcept nogil:
        """`x` of the state of the World."""
        cdef Py_ssize_t k
        for k in range(self.n):
            sites.place(world, self.site[k], self.x + 3 * k)

    cdef void release(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            self.rank[self.site[k]] = -1
        self.n = 0


cdef class NeighborForce(SmoothForce):

    cdef void watch(self, NeighborList neighbors, SiteTable sites) noexcept:
        self.neighbors = neighbors
        self.sites = sites
        self.moved = MovedSites()
        self.member = np.zeros(16, np.int32)
        neighbors.list.mends = 1

    cdef int look(self, World* world) noexcept nogil:
        """Sites and their neighbours as they are now."""
        cdef int fault = self.sites.gather(world)
        return fault if fault != 0 else self.neighbors.follow(world, &self.sites.now)

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef Neighbors* near = &self.neighbors.list
        cdef Py_ssize_t k
        cdef int fault = 0
        if near.n_members == 0:
            return True
        if not self.neighbors.is_current(world):
            fault = self.sites.gather(world)
        if fault == 0:
            fault = self.neighbors.locate(world, &self.sites.now)
        if fault != 0 or not self.moved.take(world, self.sites, change):
            return False
        if self.moved.n > self.member.shape[0]:
            with gil:
                self.member = np.zeros(2 * self.moved.n, np.int32)
        for k in range(self.moved.n):
            self.member[k] = self.neighbors.member_of(self.moved.site[k])
        return True

    cdef void release(self) noexcept nogil:
        self.moved.release()

    cdef bint tells_beads(self) noexcept nogil:
        return self.sites.are_beads

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        cdef Neighbors* near = &self.neighbors.list
        cdef Py_ssize_t k
        if world == NULL or near.n_members == 0:
            return True
        if near.valid and near.world == world.number and near.positions == change.positions and (
                near.indexed == near.builds) and self.moved.take(world, self.sites, change):
            self.moved.follow(world, self.sites)
            for k in range(self.moved.n):
                self.neighbors.put(world, self.neighbors.member_of(self.moved.site[k]), self.moved.x + 3 * k)
            near.positions = world.positions
            self.moved.release()
        return True
