"""Radial energies of all pairs within range of each other.

    F_i = sum_j U'(r) d / r,   d = x_j - x_i,   r < range of the pair

Every pair is in the neighbour rows of both its ends and computed twice, with the same bits but for the sign:
the forces of a pair are exactly opposite, a thread writes to its own beads only, and each bead adds up its
row in ascending order of bead numbers, so that the sum depends neither on threads nor on the age of the list.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.neighbors cimport AHEAD, ROWS_PER_BLOCK, NeighborList, Neighbors, prefetch
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport Operation, World
from medyanpy._kernels.radial cimport SOFT_SPHERE, WCA, WCA_END_SQUARED, pull
from medyanpy._kernels.vec3 cimport dot

# Entries of a row that are worked on at a time; most rows are shorter.
cdef enum:
    PART = 64
# Members whose energies are added up before their sum is added to the others.
cdef Py_ssize_t BLOCK = 1024


cdef struct PairTask:
    const Neighbors* list
    int kind
    double a                  # parameters of the radial function
    double b                  # for SOFT_SPHERE: the sum of two radii, where all are equal
    double end_squared        # square of the range, where it is the same for all pairs
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
    cdef double d[3 * PART]
    cdef double rr[PART]
    cdef double b[PART]
    cdef double c[PART]
    cdef double total[3]
    cdef double energy, u, end_squared = t.end_squared
    cdef Py_ssize_t s
    cdef int left, part, k, n
    for s in range(first, last):
        prefetch(world.f + 3 * <Py_ssize_t> near.place[min(s + AHEAD, last - 1)])
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
                c[k] = pull(kind, t.a, t.b if equal else b[k], rr[k], &u)
            for k in range(n):
                total[0] += c[k] * d[3 * k]
                total[1] += c[k] * d[3 * k + 1]
                total[2] += c[k] * d[3 * k + 2]
            if world.want_energy:
                for k in range(n):
                    pull(kind, t.a, t.b if equal else b[k], rr[k], &u)
                    # Half from each end: both see the same r, so the two halves make one whole exactly.
                    energy += 0.5 * u
            row += part
            left -= part
        # Summed apart and added once: two equal forces give exactly twice one.
        f = world.f + 3 * <Py_ssize_t> near.place[s]
        f[0] += total[0]
        f[1] += total[1]
        f[2] += total[2]
        if world.want_energy:
            t.energy[near.member[s]] = energy


cdef int _pairs(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PairTask* t = <PairTask*> task
    if t.kind == WCA:
        _block(WCA, True, t, world, first, last)
    elif t.list.equal:
        _block(SOFT_SPHERE, True, t, world, first, last)
    else:
        _block(SOFT_SPHERE, False, t, world, first, last)
    return 0


cdef int _sums(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Energy of a block of members, into its first."""
    cdef PairTask* t = <PairTask*> task
    t.energy[first] = ordered_sum(t.energy + first, last - first)
    return 0


cdef class Pairs(Operation):
    """A radial energy of all neighbours; the caller has made the list for the range of the function.

    Parameters
    ----------
    name : str
    kind : int
        Number of the radial function in radial.pxd: SOFT_SPHERE or WCA.
    a, b : float
        Its parameters. For SOFT_SPHERE b is not read: beads touch at the sum of their radii.
    neighbors : NeighborList
    """
    cdef readonly NeighborList neighbors
    cdef int kind
    cdef double a
    cdef double b
    cdef double[::1] energies

    def __init__(self, str name, int kind, double a, double b, NeighborList neighbors):
        self.name = name
        self.kind = kind
        self.a = a
        self.b = b
        if kind == SOFT_SPHERE and neighbors.list.n > 0:
            # Where all radii are equal; where not, the loop adds up those of each pair.
            self.b = neighbors.list.radius[0] + neighbors.list.radius[0]
        self.neighbors = neighbors
        self.energies = np.zeros(max(1, neighbors.list.n))

    cdef int run(self, World* world) noexcept nogil:
        cdef PairTask task
        cdef Py_ssize_t block, n = self.neighbors.list.n
        cdef int fault
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.neighbors.follow(world)
        if fault != 0:
            return fault
        task.list = &self.neighbors.list
        task.kind = self.kind
        task.a = self.a
        task.b = self.b
        task.end_squared = self.b * self.b
        if self.kind == WCA:
            task.end_squared *= WCA_END_SQUARED
        task.energy = &self.energies[0]
        over_blocks(_pairs, &task, world, n, ROWS_PER_BLOCK)
        if world.want_energy:
            # In the order of members: that of slots depends on when the list was built.
            over_blocks(_sums, &task, world, n, BLOCK)
            for block in range(n_blocks(n, BLOCK)):
                self.energy += task.energy[block * BLOCK]
        return 0
