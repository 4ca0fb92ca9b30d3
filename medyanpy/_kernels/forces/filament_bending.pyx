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

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.cosine cimport derive_joint
from medyanpy._kernels.core.derivatives cimport Derivative, SmoothForce
from medyanpy._kernels.forces.joints cimport (
    BATCH, Chain, find_links, one_minus_cosine, pull, push, ROOM, ROW_BLOCK, Rows,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport World


cdef struct BendingTask:
    Rows rows
    const double* modulus     # k of the joint in each row, 0: none
    const double* straight    # p
    const double* bent        # s
    bint is_bent              # whether any s is not zero
    double* partial


cdef inline void _angles(
    Chain* chain, const BendingTask* t, Py_ssize_t first, int n, bint is_bent, double* energy,
) noexcept nogil:
    """Slope and energy of joints 1 to n + 2 of a batch."""
    cdef const double* modulus = t.modulus + first - 2
    cdef const double* straight = t.straight + first - 2
    cdef const double* bent = t.bent + first - 2
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
    cdef double total = 0.0
    cdef Py_ssize_t batch, start
    cdef int k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        if t.is_bent:
            _angles(&chain, t, start, n, True, energy)
        else:
            _angles(&chain, t, start, n, False, energy)
        pull(&chain, n)
        push(&chain, world, &t.rows, start, n)
        if world.want_energy:
            for k in range(2, n + 2):
                if t.rows.owned[start - 2 + k]:
                    total += energy[k]
    t.partial[first // ROW_BLOCK] = total
    return 0


cdef class FilamentBending(SmoothForce):
    """Joint energies of filaments.

    node, owned (rows + 4,): the table, with two rows before the first and after the last. modulus, straight, bent
    (rows + 4,), pN nm: k, p, s of each row's joint, 0 where there is none.
    """
    cdef const int32_t[::1] node
    cdef const int32_t[::1] owned
    cdef const double[::1] modulus
    cdef const double[::1] straight
    cdef const double[::1] bent
    cdef bint is_bent
    cdef double[::1] partial

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const double[::1] modulus,
                 const double[::1] straight, const double[::1] bent):
        self.name = name
        self.acts_on_points = False
        self.derivatives = 3
        self.node = node
        self.owned = owned
        self.modulus = modulus
        self.straight = straight
        self.bent = bent
        self.is_bent = bool(np.any(bent))
        self.partial = np.zeros(max(1, n_blocks(node.shape[0] - 4, ROW_BLOCK)))

    cdef int run(self, World* world) noexcept nogil:
        cdef BendingTask task
        cdef Py_ssize_t rows = self.node.shape[0] - 4
        task.rows.node = &self.node[2]
        task.rows.owned = &self.owned[2]
        task.modulus = &self.modulus[2]
        task.straight = &self.straight[2]
        task.bent = &self.bent[2]
        task.is_bent = self.is_bent
        task.partial = &self.partial[0]
        self.energy = 0.0
        over_blocks(_bending, &task, world, rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, n_blocks(rows, ROW_BLOCK))
        return 0

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const int32_t* node = &self.node[0]
        cdef double a[3]
        cdef double b[3]
        cdef const double* x
        cdef Py_ssize_t k
        cdef int fault = 0
        for k in range(2, self.node.shape[0] - 2):
            if fault != 0:
                break
            # Of a ring, the rows that repeat others are not owned.
            if self.owned[k] and self.modulus[k] > 0.0:
                x = world.x + 3 * <Py_ssize_t> node[k]
                displacement(&world.box, world.x + 3 * <Py_ssize_t> node[k - 1], x, a)
                displacement(&world.box, x, world.x + 3 * <Py_ssize_t> node[k + 1], b)
                fault = derive_joint(wanted, node + k - 1, self.straight[k], self.bent[k], a, b)
        return fault
