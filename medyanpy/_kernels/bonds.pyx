"""Bonds: radial energies of fixed pairs of sites.

    F_i = U'(r) d / r,   d = x_j - x_i,   F_j = -F_i

One thread owns a site and adds up its bonds in the order they were given; each bond is visited from both
ends, which costs arithmetic and saves the ordering of sums.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.derivatives cimport Derivative, SmoothForce
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.radial cimport PENALTY, derive, evaluate
from medyanpy._kernels.sites cimport LinkedSites, SiteArrays, SiteTable
from medyanpy._kernels.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 1024


cdef struct BondTask:
    int kind
    const SiteArrays* sites
    const int32_t* owner      # (rows,) site
    const int32_t* offset     # (rows + 1,) where the bonds of each row start
    const int32_t* other      # (2 bonds,) site at the other end
    const int32_t* term       # (2 bonds,) row of parameters
    const double* parameters  # (bonds, 2)
    double* partial


cdef int _bonds(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef BondTask* t = <BondTask*> task
    cdef const double* xi
    cdef double* f
    cdef double d[3]
    cdef double row[3]
    cdef double u[4]
    cdef double r, energy = 0.0
    cdef Py_ssize_t k, s
    for k in range(first, last):
        xi = t.sites.x + 3 * <Py_ssize_t> t.owner[k]
        row[0] = row[1] = row[2] = 0.0
        for s in range(t.offset[k], t.offset[k + 1]):
            displacement(&world.box, xi, t.sites.x + 3 * <Py_ssize_t> t.other[s], d)
            r = sqrt(dot(d, d))
            evaluate(t.kind, t.parameters + 2 * <Py_ssize_t> t.term[s], r, 1, u)
            # Half from each end: both see the same r, so the two halves make one whole exactly.
            energy += 0.5 * u[0]
            # Beads in one place have no direction to push in. Zero is the mean over all of them.
            add_scaled(u[1] / r if r > 0.0 else 0.0, d, row)
        # Summed apart and added once: two equal forces give exactly twice one.
        f = t.sites.f + 3 * <Py_ssize_t> t.owner[k]
        f[0] += row[0]
        f[1] += row[1]
        f[2] += row[2]
    t.partial[first // BLOCK] = energy
    return 0


cdef class Bonds(SmoothForce):
    """Radial energies of pairs of sites; the caller has checked numbers and sorted terms by owner."""
    cdef SiteTable sites
    cdef int kind
    cdef Py_ssize_t rows
    cdef const int32_t[::1] owner
    cdef const int32_t[::1] offset
    cdef const int32_t[::1] other
    cdef const int32_t[::1] term
    cdef const double[:, ::1] parameters
    cdef double[::1] partial

    def __init__(self, str name, int kind, const int32_t[::1] owner, const int32_t[::1] offset,
                 const int32_t[::1] other, const int32_t[::1] term, const double[:, ::1] parameters, SiteTable sites):
        self.name = name
        self.sites = sites
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.kind = kind
        self.rows = owner.shape[0]
        self.owner = owner
        self.offset = offset
        self.other = other
        self.term = term
        self.parameters = parameters
        self.partial = np.zeros(n_blocks(self.rows, BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef BondTask task
        cdef int fault
        self.energy = 0.0
        if self.rows == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        task.sites = &self.sites.now
        task.kind = self.kind
        task.owner = &self.owner[0]
        task.offset = &self.offset[0]
        task.other = &self.other[0]
        task.term = &self.term[0]
        task.parameters = &self.parameters[0, 0]
        task.partial = &self.partial[0]
        over_blocks(_bonds, &task, world, self.rows, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, n_blocks(self.rows, BLOCK))
        return self.sites.scatter(world)

    cdef double radial(self, World* world, Py_ssize_t k, Py_ssize_t s, double* d, double* u) noexcept nogil:
        """d, r = |d|, and U with its derivatives in r: of the bond in row k with entry s."""
        cdef const double* x = self.sites.now.x
        cdef double r
        displacement(&world.box, x + 3 * <Py_ssize_t> self.owner[k], x + 3 * <Py_ssize_t> self.other[s], d)
        r = sqrt(dot(d, d))
        evaluate(self.kind, &self.parameters[self.term[s], 0], r, 3, u)
        return r

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef double d[3]
        cdef double u[4]
        cdef double r
        cdef Py_ssize_t k, s
        cdef int fault = self.sites.gather(world)
        for k in range(self.rows):
            for s in range(self.offset[k], self.offset[k + 1]):
                # Each bond once: it is in the rows of both its ends.
                if fault == 0 and self.owner[k] < self.other[s]:
                    r = self.radial(world, k, s, d, u)
                    fault = derive(wanted, self.sites, self.owner[k], self.other[s], u, d, r, self.kind == PENALTY)
        return fault


cdef class PassingBonds(Bonds):
    """Bonds of one kind that come and go. The loops are those of bonds that stay, over what has some now.

    Parameters
    ----------
    parameters : (1, 2) float
    linked : LinkedSites
    """
    cdef LinkedSites linked

    def __init__(self, str name, int kind, parameters, LinkedSites linked):
        n, terms = len(linked.start_of) - 1, len(linked.partner_of)
        Bonds.__init__(
            self, name, kind, np.arange(n, dtype=np.int32), linked.start_of, linked.partner_of,
            np.zeros(terms, np.int32), parameters, linked.sites)
        self.linked = linked

    cdef void follow(self, World* world) noexcept nogil:
        self.linked.follow(world)
        self.rows = self.linked.n

    cdef int run(self, World* world) noexcept nogil:
        self.follow(world)
        return Bonds.run(self, world)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        self.follow(world)
        return Bonds.higher(self, world, wanted)
