"""Bending of filaments. Notation and tables: joints.pxd.

    E = sum over joints of k (1 - cos(theta - theta0)) = (k - p) + p e - s sin theta
    p = k cos theta0,   s = k sin theta0,   e = 1 - cos theta,   sin theta = |u_b - c u_a|
    dE/dc = -p + s c / sin theta

At theta = 0 and pi the second term has no direction; it is left out there, the mean over all directions. A link
without length has no angle: its joints have the energy k and no force. Second and third derivatives: cosine.pxd.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.beads.present cimport PresentRows
from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.cosine cimport derive_joint
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.forces.joints cimport (
    BATCH, Chain, find_links, one_minus_cosine, pull, push, ROOM, ROW_BLOCK, Rows,
)
from medyanpy._kernels.core.local_terms cimport TermForce
from medyanpy._kernels.core.local_terms import in_rows
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport World


cdef struct BendingTask:
    Rows rows
    const double* modulus     # k of the joint in each row, 0: none
    const double* straight    # p
    const double* bent        # s
    bint is_bent              # whether any s is not zero
    double rise               # nm of a subunit: the three are per mean length of both links as it is; 0: they are not
    double* partial


cdef inline double _per_length(const BendingTask* t, const World* world, Py_ssize_t row) noexcept nogil:
    """What the numbers of the joint in a row are multiplied by: 0 where there is room for it only."""
    cdef const int32_t* node = t.rows.node + row - 1
    if t.rise == 0.0:
        return 1.0
    if world.subunits[node[0]] <= 0 or world.subunits[node[1]] <= 0:
        return 0.0
    return 2.0 / (t.rise * (world.subunits[node[0]] + world.subunits[node[1]]))


cdef inline void _angles(
    Chain* chain, const double* modulus, const double* straight, const double* bent, int n, bint is_bent,
    double* energy,
) noexcept nogil:
    """Slope and energy of joints 1 to n + 2 of a batch."""
    cdef double e, x, y, z, sine, slope, value
    cdef bint there
    cdef int k
    for k in range(1, n + 3):
        e = one_minus_cosine(chain, k)
        slope = -straight[k]
        value = (modulus[k] - straight[k]) + straight[k] * e
        if is_bent:
            x = (chain.u[0][k] - chain.u[0][k - 1]) + e * chain.u[0][k - 1]
            y = (chain.u[1][k] - chain.u[1][k - 1]) + e * chain.u[1][k - 1]
            z = (chain.u[2][k] - chain.u[2][k - 1]) + e * chain.u[2][k - 1]
            sine = sqrt((x * x + y * y) + z * z)
            slope += bent[k] * (1.0 - e) / sine if sine > 0.0 else 0.0
            value -= bent[k] * sine
        there = (chain.inverse[k - 1] > 0.0) & (chain.inverse[k] > 0.0)
        chain.slope[k] = slope if modulus[k] > 0.0 else 0.0
        value = value if there else modulus[k]
        energy[k] = value if modulus[k] > 0.0 else 0.0


cdef int _bending(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef BendingTask* t = <BendingTask*> task
    cdef Chain chain
    cdef double energy[ROOM]
    cdef double present[3][ROOM]
    cdef const double* modulus
    cdef const double* straight
    cdef const double* bent
    cdef double total = 0.0
    cdef double share
    cdef Py_ssize_t batch, start
    cdef int k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        modulus = t.modulus + start - 2
        straight = t.straight + start - 2
        bent = t.bent + start - 2
        if t.rise > 0.0:
            for k in range(1, n + 3):
                share = _per_length(t, world, start - 2 + k)
                present[0][k] = share * modulus[k]
                present[1][k] = share * straight[k]
                present[2][k] = share * bent[k]
            modulus = present[0]
            straight = present[1]
            bent = present[2]
        if t.is_bent:
            _angles(&chain, modulus, straight, bent, n, True, energy)
        else:
            _angles(&chain, modulus, straight, bent, n, False, energy)
        pull(&chain, n)
        push(&chain, world, &t.rows, start, n)
        if world.want_energy:
            for k in range(2, n + 2):
                if t.rows.owned[start - 2 + k]:
                    total += energy[k]
    t.partial[first // ROW_BLOCK] = total
    return 0


cdef class FilamentBending(TermForce):
    """Joint energies of filaments.

    node, owned (rows + 4,): the table, with two rows before the first and after the last. modulus, straight, bent
    (rows + 4,), pN nm: k, p, s of each row's joint, 0 where there is none. With a rise, nm of a subunit of links that
    grow, they are in pN nm^2, and the joint has them over the mean length of its links. present: of filaments with room
    for more nodes than they have; all their joints have the same numbers.
    """
    cdef BendingTask task
    # The same of the nodes that are there, where there is room for more.
    cdef BendingTask of_present
    cdef PresentRows present
    cdef list arrays
    cdef const int32_t[::1] node
    cdef object joints        # rows of them
    cdef Py_ssize_t rows

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const double[::1] modulus,
                 const double[::1] straight, const double[::1] bent, double rise=0.0,
                 PresentRows present=None):
        self.name = name
        self.acts_on_points = False
        self.derivatives = 3
        self.node = node
        self.joints = np.flatnonzero((np.asarray(owned) != 0) & (np.asarray(modulus) > 0.0)) - 2
        self.rows = node.shape[0] - 4
        self.arrays = []
        self.task.rows.node = vector(self.arrays, node) + 2
        self.task.rows.owned = vector(self.arrays, owned) + 2
        self.task.modulus = vector(self.arrays, modulus) + 2
        self.task.straight = vector(self.arrays, straight) + 2
        self.task.bent = vector(self.arrays, bent) + 2
        self.task.rise = rise
        self.task.is_bent = bool(np.any(bent))
        self.task.partial = zeros(self.arrays, n_blocks(self.rows, ROW_BLOCK))
        self.loops(_bending, &self.task, self.task.partial, ROW_BLOCK)
        self.present = present
        if present is not None:
            self.of_present = self.task
            self.of_present.rows.node = &present.node[2]
            # Which of these rows have joints, subunits tell.
            ones = np.ones(node.shape[0], np.int32)
            self.of_present.rows.owned = vector[int32_t](self.arrays, ones) + 2
            self.of_present.modulus = self.alike(modulus)
            self.of_present.straight = self.alike(straight)
            self.of_present.bent = self.alike(bent)

    cdef const double* alike(self, const double[::1] numbers) except NULL:
        """That of the first joint for all rows, two before the first included."""
        one = np.asarray(numbers)[self.joints[:1] + 2].sum()
        return vector[double](self.arrays, np.full(numbers.shape[0], one)) + 2

    cdef int run(self, World* world) noexcept nogil:
        cdef BendingTask* task = &self.task
        cdef Py_ssize_t rows = self.rows
        self.energy = 0.0
        if self.present is not None:
            self.present.list_rows(world)
            task = &self.of_present
            rows = self.present.rows
        over_blocks(_bending, task, world, rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(rows, ROW_BLOCK))
        return 0

    def named(self):
        return in_rows(self.node, (1, 2, 3), self.joints)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const BendingTask* t = &self.task
        cdef double a[3]
        cdef double b[3]
        cdef const int32_t* node
        cdef const double* x
        cdef double share
        cdef Py_ssize_t k
        cdef int fault = 0
        for k in range(self.rows):
            if fault != 0:
                break
            # Of a ring, the rows that repeat others are not owned.
            if t.rows.owned[k] and t.modulus[k] > 0.0:
                node = t.rows.node + k - 1
                x = world.x + 3 * <Py_ssize_t> node[1]
                displacement(&world.box, world.x + 3 * <Py_ssize_t> node[0], x, a)
                displacement(&world.box, x, world.x + 3 * <Py_ssize_t> node[2], b)
                share = _per_length(t, world, k)
                fault = derive_joint(wanted, node, share * t.straight[k], share * t.bent[k], a, b)
        return fault
