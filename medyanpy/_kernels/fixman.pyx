"""The Fixman potential of filaments whose links keep their lengths. Notation and tables: joints.pxd.

    U = kT/2 ln det C,   C = D^-1/2 (J M^-1 J^T) D^-1/2,   D its diagonal

For the constraints on the lengths |d_l|, J has unit link vectors. J M^-1 J^T then has w_l + w_(l+1) in its diagonal,
constants that C leaves out (w: inverse masses of nodes), and C depends on angles alone:

    C_ll = 1,   C_(l,l+1) = o_l = -q c,   q = w_(l+1) / sqrt((w_l + w_(l+1)) (w_(l+1) + w_(l+2)))

with c the cosine of the joint between the links l and l + 1. The links of a ring have one joint more, between the
last and the first; it is bordered: its last row is carried along as f while the others are eliminated.

    p_0 = 1,  f_0 = corner;   a_l = o_l/p_l,  h_l = f_l/p_l;   p_(l+1) = 1 - o_l a_l,  f_(l+1) = -f_l a_l
    ln det C = sum ln p_l,   p of the last link N: 1 - sum f_l h_l;   f_(N-1) has o_(N-1) added

Of S = C^-1 only the elements beside the diagonal (and in the corner) are needed, because dU = kT sum S_(l,l+1) do_l.
From S = D^-1 L^-1 + (1 - L^T) S (Takahashi), from the last row upwards,

    S_NN = 1/p_N,                    S_(N,N-1) = -h_(N-1) S_NN
    S_(l+1,l) = -a_l S_(l+1,l+1) - h_l S_(N,l+1),   S_(N,l) = -a_l S_(N,l+1) - h_l S_NN
    S_ll = 1/p_l - a_l S_(l+1,l) - h_l S_(N,l)

Open filaments have f = 0 but for the last element. So a joint has dU/dc = -kT q S, and forces are those of bending.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.elementary cimport log_
from medyanpy._kernels.joints cimport BATCH, Chain, find_links, one_minus_cosine, push, ROW_BLOCK, Rows
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.program cimport NOT_FINITE, Operation, World


cdef struct FixmanTask:
    Rows rows
    const double* q           # of the joint in each row, 0: none
    const int32_t* start      # (filaments,) the row of each filament's first node
    const int32_t* nodes      # (filaments,) of each
    bint closed
    double kT
    double* cosine            # c of the joint in each row; then dU/dc
    double* pivot             # p of the link in each row
    double* a                 # a and h likewise
    double* h
    double* energy            # (filaments,)


cdef int _cosines(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FixmanTask* t = <FixmanTask*> task
    cdef Chain chain
    cdef double* cosine
    cdef Py_ssize_t batch, start
    cdef int k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        cosine = t.cosine + start - 2
        for k in range(2, n + 2):
            cosine[k] = 1.0 - one_minus_cosine(&chain, k)
    return 0


cdef int _filaments(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Slopes of all joints, and the energy."""
    cdef FixmanTask* t = <FixmanTask*> task
    # Of one filament: joint j + 1 is between the links j and j + 1.
    cdef double* cosine
    cdef const double* q
    cdef double* pivot
    cdef double* a
    cdef double* h
    cdef double p, p_last, f, o, lowest, energy, beside, across, before, diagonal, inverse_last
    cdef Py_ssize_t i, j, last_link
    cdef int fault = 0
    for i in range(first, last):
        t.energy[i] = 0.0
        cosine = t.cosine + t.start[i]
        q = t.q + t.start[i]
        pivot = t.pivot + t.start[i]
        a = t.a + t.start[i]
        h = t.h + t.start[i]
        last_link = t.nodes[i] - (1 if t.closed else 2)
        if last_link == 0:
            continue
        p = p_last = lowest = 1.0
        f = -q[0] * cosine[0] if t.closed else 0.0
        for j in range(last_link):
            o = -q[j + 1] * cosine[j + 1]
            if j == last_link - 1:
                f += o
            pivot[j] = p
            lowest = p if p < lowest else lowest
            a[j] = o / p
            h[j] = f / p
            p_last -= f * h[j]
            f = -f * a[j]
            p = 1.0 - o * a[j]
        if not (lowest > 0.0 and p_last > 0.0):
            # Held straight between fixed nodes: the links cannot move, and U has no lower bound.
            fault |= record_fault(world, NOT_FINITE, t.rows.node[t.start[i]], -1)
            continue
        if world.want_energy:
            energy = log_(p_last)
            for j in range(last_link):
                energy += log_(pivot[j])
            t.energy[i] = 0.5 * t.kT * energy
        j = last_link - 1
        inverse_last = 1.0 / p_last
        across = -h[j] * inverse_last
        diagonal = 1.0 / pivot[j] - h[j] * across
        cosine[j + 1] = -t.kT * q[j + 1] * across
        for j in range(last_link - 2, -1, -1):
            beside = -a[j] * diagonal - h[j] * across
            before = -a[j] * across - h[j] * inverse_last
            diagonal = 1.0 / pivot[j] - a[j] * beside - h[j] * before
            across = before
            cosine[j + 1] = -t.kT * q[j + 1] * beside
        if t.closed:
            cosine[0] = -t.kT * q[0] * across
            # The rows that repeat the ends.
            (cosine - 1)[0] = cosine[last_link]
            cosine[last_link + 1] = cosine[0]
    return fault


cdef int _forces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FixmanTask* t = <FixmanTask*> task
    cdef Chain chain
    cdef const double* slope
    cdef const double* q
    cdef Py_ssize_t batch, start
    cdef int k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        slope = t.cosine + start - 2
        q = t.q + start - 2
        for k in range(1, n + 3):
            chain.slope[k] = slope[k] if q[k] > 0.0 else 0.0
        push(&chain, world, &t.rows, start, n)
    return 0


cdef class Fixman(Operation):
    """node, owned, q (rows + 4,): the table, with two rows before the first and after the last; q is 0 where there is
    no joint. start, nodes (filaments,): row of the first node of each, and how many it has. kT: pN nm.
    """
    cdef const int32_t[::1] node
    cdef const int32_t[::1] owned
    cdef const double[::1] q
    cdef const int32_t[::1] start
    cdef const int32_t[::1] nodes
    cdef bint closed
    cdef double kT
    cdef double[:, ::1] work
    cdef double[::1] energies
    cdef Py_ssize_t block

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const double[::1] q,
                 const int32_t[::1] start, const int32_t[::1] nodes, bint closed, double kT):
        self.name = name
        self.acts_on_points = False
        self.node = node
        self.owned = owned
        self.q = q
        self.start = start
        self.nodes = nodes
        self.closed = closed
        self.kT = kT
        self.work = np.zeros((4, node.shape[0]))
        self.energies = np.zeros(start.shape[0])
        # Filaments per block: as many as have the rows of a block.
        self.block = max(1, ROW_BLOCK * start.shape[0] // node.shape[0])

    cdef int run(self, World* world) noexcept nogil:
        cdef FixmanTask task
        cdef Py_ssize_t rows = self.node.shape[0] - 4
        cdef Py_ssize_t filaments = self.start.shape[0]
        cdef int fault
        task.rows.node = &self.node[2]
        task.rows.owned = &self.owned[2]
        task.q = &self.q[2]
        task.start = &self.start[0]
        task.nodes = &self.nodes[0]
        task.closed = self.closed
        task.kT = self.kT
        task.cosine = &self.work[0, 2]
        task.pivot = &self.work[1, 2]
        task.a = &self.work[2, 2]
        task.h = &self.work[3, 2]
        task.energy = &self.energies[0]
        self.energy = 0.0
        over_blocks(_cosines, &task, world, rows, ROW_BLOCK)
        fault = over_blocks(_filaments, &task, world, filaments, self.block)
        if fault != 0:
            return fault
        over_blocks(_forces, &task, world, rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.energy, filaments)
        return 0
