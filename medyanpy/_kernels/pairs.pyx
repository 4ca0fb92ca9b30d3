"""Radial energies of all pairs within range of each other.

    F_i = sum_j U'(r) d / r,   d = x_j - x_i,   r < range of the pair

Every pair is in the neighbour rows of both its ends and computed twice, with the same bits but for the sign:
the forces of a pair are exactly opposite, a thread writes to its own sites only, and each site adds up its
row in ascending order of numbers, so that the sum depends neither on threads nor on the age of the list.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from medyanpy._kernels.arrays cimport zeros
from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.derivatives cimport Derivative, SmoothForce
from medyanpy._kernels.neighbors cimport AHEAD, ROWS_PER_BLOCK, NeighborList, Neighbors, prefetch
from medyanpy._kernels.parallel cimport SUM_BLOCK, n_blocks, over_blocks, sum_in_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.radial cimport (
    LENNARD_JONES, RICKER, SOFT_SPHERE, WCA, derive, evaluate, lennard_jones_end, pull, ricker, slope,
)
from medyanpy._kernels.sites cimport SiteTable
from medyanpy._kernels.vec3 cimport dot

cdef enum:
    # Entries of a row that are worked on at a time; most rows are shorter.
    PART = 64
    # In place of a kind: any that has no shortcut.
    ANY = -1


cdef struct PairTask:
    const Neighbors* list
    int kind
    const double* p           # parameters of the radial function
    double a                  # the first two of them
    double b                  # for SOFT_SPHERE: the sum of two radii, where all are equal
    double end                # what `pull` takes off the energy
    double end_squared        # square of the range; not of SOFT_SPHERE with radii that differ
    double* energy            # by member


cdef inline void _block(
    int kind, bint equal, PairTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """The rows of one block; `kind` and `equal` are literals where this is called, and compiled in."""
    cdef const Neighbors* near = t.list
    cdef const int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef const double* me
    cdef const double* other
    cdef double* f
    cdef double* force = near.sites.f
    cdef double d[3 * PART]
    cdef double rr[PART]
    cdef double b[PART]
    cdef double c[PART]
    cdef double total[3]
    cdef double energy, u, end_squared = t.end_squared
    cdef Py_ssize_t s
    cdef int left, part, k, n
    for s in range(first, last):
        prefetch(force + 3 * <Py_ssize_t> near.row[min(s + AHEAD, last - 1)])
        me = near.now + 4 * s
        total[0] = total[1] = total[2] = 0.0
        energy = 0.0
        left = near.count[s]
        while left > 0:
            part = min(left, PART)
            n = 0
            for k in range(part):
                other = near.now + 4 * <Py_ssize_t> row[k]
                displacement(&world.box, me, other, d + 3 * n)
                rr[n] = dot(d + 3 * n, d + 3 * n)
                if not equal:
                    b[n] = me[3] + other[3]
                    end_squared = b[n] * b[n]
                # Written always and kept by counting on: which entries are in range is beyond a branch
                # predictor.
                n += rr[n] < end_squared
            for k in range(n):
                if kind == ANY:
                    c[k] = slope(t.kind, t.p, rr[k], &u)
                else:
                    c[k] = pull(kind, t.a, t.b if equal else b[k], t.end, rr[k], &u)
            for k in range(n):
                total[0] += c[k] * d[3 * k]
                total[1] += c[k] * d[3 * k + 1]
                total[2] += c[k] * d[3 * k + 2]
            if world.want_energy:
                for k in range(n):
                    if kind == ANY:
                        slope(t.kind, t.p, rr[k], &u)
                    else:
                        pull(kind, t.a, t.b if equal else b[k], t.end, rr[k], &u)
                    # Half from each end: both see the same r, so the two halves make one whole exactly.
                    energy += 0.5 * u
            row += part
            left -= part
        # Summed apart and added once: two equal forces give exactly twice one.
        f = force + 3 * <Py_ssize_t> near.row[s]
        f[0] += total[0]
        f[1] += total[1]
        f[2] += total[2]
        if world.want_energy:
            t.energy[near.member[s]] = energy


cdef int _pairs(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PairTask* t = <PairTask*> task
    if t.kind == WCA or t.kind == LENNARD_JONES:
        # They differ in where they end.
        _block(WCA, True, t, world, first, last)
    elif t.kind == RICKER:
        _block(RICKER, True, t, world, first, last)
    elif t.kind != SOFT_SPHERE:
        _block(ANY, True, t, world, first, last)
    elif t.list.equal:
        _block(SOFT_SPHERE, True, t, world, first, last)
    else:
        _block(SOFT_SPHERE, False, t, world, first, last)
    return 0


cdef class Pairs(SmoothForce):
    """A radial energy of all neighbours; the caller has made the list for the range of the function.

    Parameters
    ----------
    name : str
    kind : Radial
        The radial function: one that ends.
    parameters : sequence of 2 or 3 float
        Those of the function. For SOFT_SPHERE the second is not read: beads touch at the sum of their radii.
    neighbors : NeighborList
    sites : SiteTable
        What the rows of the list are rows of.
    """
    cdef SiteTable sites
    cdef readonly NeighborList neighbors
    cdef PairTask task
    cdef list arrays
    cdef double[3] p
    cdef double* partial

    def __init__(self, str name, int kind, parameters, NeighborList neighbors, SiteTable sites):
        cdef PairTask* t = &self.task
        cdef double e
        cdef int k
        self.name = name
        self.sites = sites
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.neighbors = neighbors
        for k in range(len(parameters)):
            self.p[k] = parameters[k]
        if kind == SOFT_SPHERE and neighbors.list.n_members > 0:
            # Where all radii are equal; where not, the loop adds up those of each pair.
            self.p[1] = neighbors.list.radius[0] + neighbors.list.radius[0]
        t.list = &neighbors.list
        t.kind = kind
        t.p = self.p
        t.a = self.p[0]
        t.b = self.p[1]
        t.end = 0.0
        t.end_squared = self.p[2] * self.p[2]
        if kind == SOFT_SPHERE:
            t.end_squared = self.p[1] * self.p[1]
        elif kind == WCA or kind == LENNARD_JONES:
            t.end = lennard_jones_end(kind, self.p, &t.end_squared)
        elif kind == RICKER:
            t.end = ricker(self.p[0], t.end_squared / (self.p[1] * self.p[1]), &e)
        self.arrays = []
        t.energy = zeros(self.arrays, t.list.n_members)
        self.partial = zeros(self.arrays, n_blocks(t.list.n_members, SUM_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef Py_ssize_t n = near.n_members
        cdef int fault
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.look(world)
        if fault != 0:
            return fault
        if near.n < n:
            # Of those that are asleep there is none.
            memset(self.task.energy, 0, n * sizeof(double))
        over_blocks(_pairs, &self.task, world, near.n, ROWS_PER_BLOCK)
        if world.want_energy:
            # In the order of members: that of slots depends on when the list was built.
            self.energy = sum_in_blocks(world, self.task.energy, n, self.partial)
        return self.sites.scatter(world)

    cdef int look(self, World* world) noexcept nogil:
        """Sites and their neighbours as they are now."""
        cdef int fault = self.sites.gather(world)
        return fault if fault != 0 else self.neighbors.follow(world, &self.sites.now)

    # Higher derivatives: members in ascending row, so that no result depends on the age of the list. ---------------

    cdef double radial(self, World* world, int32_t own, int32_t other, double* d, double* u) noexcept nogil:
        """d, r = |d|, and U with its derivatives in r, of the sites in two slots; r < 0: leave the pair out."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef const double* me = near.now + 4 * <Py_ssize_t> own
        cdef const double* you = near.now + 4 * <Py_ssize_t> other
        cdef double p[3]
        cdef double r, end_squared = self.task.end_squared
        # Each pair once: it is in the rows of both its ends.
        if near.row[own] > near.row[other]:
            return -1.0
        p[0] = self.p[0]
        p[1] = self.p[1]
        p[2] = self.p[2]
        if self.task.kind == SOFT_SPHERE:
            p[1] = me[3] + you[3]
            end_squared = p[1] * p[1]
        displacement(&world.box, me, you, d)
        r = dot(d, d)
        if r >= end_squared:
            return -1.0
        r = sqrt(r)
        evaluate(self.task.kind, p, r, 3, u)
        return r

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef double d[3]
        cdef double u[4]
        cdef double r
        cdef Py_ssize_t m
        cdef int32_t own, other
        cdef int k, fault
        if near.n_members == 0:
            return 0
        fault = self.look(world)
        if fault == 0:
            fault = self.neighbors.index(world)
        for m in range(near.n_members if fault == 0 else 0):
            own = near.slot_of[m]
            for k in range(near.count[own] if own >= 0 else 0):
                other = near.row_of[m][k]
                r = self.radial(world, own, other, d, u)
                if fault == 0 and r >= 0.0:
                    fault = derive(wanted, self.sites, near.row[own], near.row[other], u, d, r, False)
        return fault
