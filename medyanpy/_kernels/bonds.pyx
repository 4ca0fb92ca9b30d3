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
from medyanpy._kernels.sites cimport SiteArrays, SiteTable
from medyanpy._kernels.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 1024


cdef struct BondTask:
    int kind
    const SiteArrays* sites
    const int32_t* row        # those that have bonds; NULL: all of them
    const int32_t* owner      # (rows,) site
    const int32_t* offset     # (rows,) where the bonds of each row start
    const int32_t* end        # (rows,) and end
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
    cdef Py_ssize_t i, k, s
    for i in range(first, last):
        k = i if t.row == NULL else t.row[i]
        xi = t.sites.x + 3 * <Py_ssize_t> t.owner[k]
        row[0] = row[1] = row[2] = 0.0
        for s in range(t.offset[k], t.end[k]):
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
    """Radial energies of fixed pairs of sites; the caller has checked numbers and sorted terms by owner.

    Where bonds come and go, `end` says where those of each row end now: what is behind is not read.
    """
    cdef SiteTable sites
    cdef int kind
    cdef const int32_t[::1] owner
    cdef const int32_t[::1] offset
    cdef const int32_t[::1] end
    cdef const int32_t[::1] other
    cdef const int32_t[::1] term
    cdef const double[:, ::1] parameters
    cdef double[::1] partial

    def __init__(self, str name, int kind, const int32_t[::1] owner, const int32_t[::1] offset,
                 const int32_t[::1] other, const int32_t[::1] term, const double[:, ::1] parameters,
                 SiteTable sites, const int32_t[::1] end=None):
        self.name = name
        self.sites = sites
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.kind = kind
        self.owner = owner
        self.offset = offset
        # No conditional expression: Cython miscounts who holds its result.
        if end is None:
            self.end = offset[1:]
        else:
            self.end = end
        self.other = other
        self.term = term
        self.parameters = parameters
        self.partial = np.zeros(n_blocks(owner.shape[0], BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef BondTask task
        cdef Py_ssize_t rows = self.owner.shape[0]
        cdef int fault
        self.energy = 0.0
        if rows == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        task.sites = &self.sites.now
        task.kind = self.kind
        task.owner = &self.owner[0]
        task.offset = &self.offset[0]
        task.end = &self.end[0]
        task.other = &self.other[0]
        task.term = &self.term[0]
        task.parameters = &self.parameters[0, 0]
        task.partial = &self.partial[0]
        task.row = NULL
        if self.sites.rows.end != NULL:
            # Here rows are sites.
            task.row = self.sites.rows.active
            rows = self.sites.rows.n_active
        over_blocks(_bonds, &task, world, rows, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, n_blocks(rows, BLOCK))
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
        for k in range(self.owner.shape[0]):
            for s in range(self.offset[k], self.end[k]):
                # Each bond once: it is in the rows of both its ends.
                if fault == 0 and self.owner[k] < self.other[s]:
                    r = self.radial(world, k, s, d, u)
                    fault = derive(wanted, self.sites, self.owner[k], self.other[s], u, d, r, self.kind == PENALTY)
        return fault
