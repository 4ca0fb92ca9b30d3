# The Fixman potential of filaments: the source of fixman.pyx and of fixman_twistable.pyx, which say how many WAYS a
# link has to pull at its nodes. Notation and tables: joints.pxd.
#
#     U = kT/2 ln det C,   C = D^-1/2 (J M^-1 J^T) D^-1/2,   D its diagonal
#
# For the constraints on the lengths |d_l|, J has unit link vectors u. J M^-1 J^T then has w_l + w_(l+1) in its
# diagonal, constants that C leaves out (w: inverse masses of nodes), and C depends on angles alone. Where WAYS is 2,
# the constraints d_l.p_l = 0 as well, whose directions are the directors p; their diagonal is
# w_l + w_(l+1) + a_l |d_l|^2 (a: inverse masses of directors). That directors have unit length adds constants only.
# With the directions e_0 = u, e_1 = p of a link, C has unit blocks in its diagonal, and beside it the blocks
#
#     o_l[i][k] = -q[i][k] (e_i.e'_k),   q[i][k] = w_(l+1) / sqrt(D_i D'_k)      (' of the next link)
#
# The links of a ring have one joint more, between the last and the first; it is bordered: its last row is carried along
# as f while the others are eliminated.
#
#     p_0 = 1,  f_0 = corner;   a_l = p_l^-1 o_l,  h_l = f_l p_l^-1;   p_(l+1) = 1 - o_l^T a_l,  f_(l+1) = -f_l a_l
#     ln det C = sum ln det p_l,   p of the last link N: 1 - sum h_l f_l^T;   f_(N-1) has o_(N-1)^T added
#
# Of S = C^-1 only the blocks beside the diagonal (and in the corner) are needed, because dU = kT sum S_(l,l+1):do_l.
# From S = D^-1 L^-1 + (1 - L^T) S (Takahashi), from the last row upwards,
#
#     S_NN = p_N^-1,                   S_(N,N-1) = -S_NN h_(N-1)
#     S_(l,l+1) = -a_l S_(l+1,l+1) - h_l^T S_(N,l+1),   S_(N,l) = -S_(N,l+1) a_l^T - S_NN h_l
#     S_ll = p_l^-1 - a_l S_(l,l+1)^T - h_l^T S_(N,l)
#
# Open filaments have f = 0 but for the last element. So a joint has dU/d(e_i.e'_k) = -kT q S, and with i = k = 0 forces
# are those of bending.
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.beads.present cimport PresentRows
from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.local_terms cimport TermForce
from medyanpy._kernels.forces.joints cimport (
    BATCH, Chain, find_directors, find_links, one_minus_cosine, pull, push, push_directors, ROOM, ROW_BLOCK, Rows,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport NOT_FINITE, World

cdef enum:
    # Numbers of a block, row by row.
    BLOCK = WAYS * WAYS


cdef struct FixmanTask:
    Rows rows
    const double* q           # (rows, BLOCK) of the joint in each row, 0: none
    const int32_t* start      # (filaments,) the row of each filament's first node
    const int32_t* nodes      # (filaments,) of each
    bint closed
    bint grows                # whether links have subunits, and are there where they have some
    double kT
    double* cosine            # (rows, BLOCK) e_i.e'_k of the joint in each row; then dU/d of them
    double* pivot             # (rows, BLOCK) p of the link in each row
    double* a                 # a and h likewise
    double* h
    double* energy            # (filaments,)


cdef inline double _determinant(const double* p) noexcept nogil:
    return p[0] if WAYS == 1 else p[0] * p[3] - p[1] * p[2]


cdef inline void _invert(const double* p, double* out) noexcept nogil:
    cdef double factor = 1.0 / _determinant(p)
    if WAYS == 1:
        out[0] = factor
    else:
        out[0] = factor * p[3]
        out[1] = -factor * p[1]
        out[2] = -factor * p[2]
        out[3] = factor * p[0]


cdef inline void _divide(const double* b, const double* p, double* out) noexcept nogil:
    """out = p^-1 b."""
    cdef double determinant = _determinant(p)
    if WAYS == 1:
        out[0] = b[0] / determinant
    else:
        out[0] = (p[3] * b[0] - p[1] * b[2]) / determinant
        out[1] = (p[3] * b[1] - p[1] * b[3]) / determinant
        out[2] = (p[0] * b[2] - p[2] * b[0]) / determinant
        out[3] = (p[0] * b[3] - p[2] * b[1]) / determinant


cdef inline void _transpose(const double* a, double* out) noexcept nogil:
    cdef int i, k
    for i in range(WAYS):
        for k in range(WAYS):
            out[WAYS * i + k] = a[WAYS * k + i]


cdef inline void _subtract(const double* a, const double* b, double* out) noexcept nogil:
    """out -= a b."""
    cdef int i, k, j
    for i in range(WAYS):
        for k in range(WAYS):
            for j in range(WAYS):
                out[WAYS * i + k] -= a[WAYS * i + j] * b[WAYS * j + k]


cdef inline void _set(double value, double* out) noexcept nogil:
    """`value` in the diagonal."""
    cdef int i, k
    for i in range(WAYS):
        for k in range(WAYS):
            out[WAYS * i + k] = value if i == k else 0.0


cdef inline double _dot(const double* a, Py_ssize_t i, const double* b, Py_ssize_t k) noexcept nogil:
    """Of vectors i and k of arrays of Chain."""
    return (a[i] * b[k] + a[ROOM + i] * b[ROOM + k]) + a[2 * ROOM + i] * b[2 * ROOM + k]


cdef int _cosines(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FixmanTask* t = <FixmanTask*> task
    cdef Chain chain
    cdef double* cosine
    cdef const int32_t* node
    cdef const double* u = &chain.u[0][0]
    cdef const double* p = &chain.p[0][0]
    cdef Py_ssize_t batch, start
    cdef int k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        cosine = t.cosine + BLOCK * (start - 2)
        for k in range(2, n + 2):
            cosine[BLOCK * k] = 1.0 - one_minus_cosine(&chain, k)
        if t.grows:
            for k in range(2, n + 2):
                node = t.rows.node + start - 3 + k
                if world.subunits[node[0]] <= 0 or world.subunits[node[1]] <= 0:
                    # There is no joint.
                    cosine[BLOCK * k] = 0.0
        if WAYS == 2:
            find_directors(&chain, world, &t.rows, start, n)
            for k in range(2, n + 2):
                cosine[BLOCK * k + 1] = _dot(u, k - 1, p, k)
                cosine[BLOCK * k + 2] = _dot(p, k - 1, u, k)
                cosine[BLOCK * k + 3] = _dot(p, k - 1, p, k)
    return 0


cdef inline void _beside(const FixmanTask* t, Py_ssize_t row, double* out) noexcept nogil:
    """o of the joint in a row."""
    cdef int i
    for i in range(BLOCK):
        out[i] = -t.q[BLOCK * row + i] * t.cosine[BLOCK * row + i]


cdef inline void _slopes(FixmanTask* t, Py_ssize_t row, const double* inverse) noexcept nogil:
    """dU/d(e_i.e'_k) of the joint in a row, in place of the products."""
    cdef int i
    for i in range(BLOCK):
        t.cosine[BLOCK * row + i] = -t.kT * t.q[BLOCK * row + i] * inverse[i]


cdef int _filaments(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Slopes of all joints, and the energy."""
    cdef FixmanTask* t = <FixmanTask*> task
    cdef double p[BLOCK]
    cdef double p_last[BLOCK]
    cdef double f[BLOCK]
    cdef double o[BLOCK]
    cdef double turned[BLOCK]
    cdef double inverse_last[BLOCK]
    cdef double across[BLOCK]
    cdef double before[BLOCK]
    cdef double beside[BLOCK]
    cdef double diagonal[BLOCK]
    # Of one filament: joint j + 1 is between the links j and j + 1.
    cdef double* pivot
    cdef double* a
    cdef double* h
    cdef double determinant, lowest, energy
    cdef Py_ssize_t filament, j, start, last_link
    cdef int i, fault = 0
    for filament in range(first, last):
        t.energy[filament] = 0.0
        start = t.start[filament]
        pivot = t.pivot + BLOCK * start
        a = t.a + BLOCK * start
        h = t.h + BLOCK * start
        last_link = t.nodes[filament] - (1 if t.closed else 2)
        if last_link == 0:
            continue
        _set(1.0, p)
        _set(1.0, p_last)
        _set(0.0, f)
        lowest = 1.0
        if t.closed:
            _beside(t, start, f)
        for j in range(last_link):
            _beside(t, start + j + 1, o)
            _transpose(o, turned)
            if j == last_link - 1:
                for i in range(BLOCK):
                    f[i] += turned[i]
            determinant = _determinant(p)
            lowest = p[0] if p[0] < lowest else lowest
            lowest = determinant if determinant < lowest else lowest
            for i in range(BLOCK):
                pivot[BLOCK * j + i] = p[i]
            _divide(o, p, a + BLOCK * j)
            _set(1.0, p)
            _subtract(turned, a + BLOCK * j, p)
            _transpose(f, turned)
            _divide(turned, pivot + BLOCK * j, o)
            _transpose(o, h + BLOCK * j)
            _subtract(h + BLOCK * j, turned, p_last)
            _transpose(turned, o)
            _set(0.0, f)
            _subtract(o, a + BLOCK * j, f)
        determinant = _determinant(p_last)
        if not (lowest > 0.0 and p_last[0] > 0.0 and determinant > 0.0):
            # Held straight between fixed nodes: the links cannot move, and U has no lower bound.
            fault |= record_fault(world, NOT_FINITE, t.rows.node[start], -1)
            continue
        if world.want_energy:
            energy = log_(determinant)
            for j in range(last_link):
                energy += log_(_determinant(pivot + BLOCK * j))
            t.energy[filament] = 0.5 * t.kT * energy
        _invert(p_last, inverse_last)
        j = last_link - 1
        _set(0.0, across)
        _subtract(inverse_last, h + BLOCK * j, across)
        _invert(pivot + BLOCK * j, diagonal)
        _transpose(h + BLOCK * j, turned)
        _subtract(turned, across, diagonal)
        _transpose(across, beside)
        _slopes(t, start + j + 1, beside)
        for j in range(last_link - 2, -1, -1):
            _transpose(h + BLOCK * j, turned)
            _set(0.0, beside)
            _subtract(a + BLOCK * j, diagonal, beside)
            _subtract(turned, across, beside)
            _slopes(t, start + j + 1, beside)
            _transpose(a + BLOCK * j, o)
            _set(0.0, before)
            _subtract(across, o, before)
            _subtract(inverse_last, h + BLOCK * j, before)
            _invert(pivot + BLOCK * j, diagonal)
            _transpose(beside, o)
            _subtract(a + BLOCK * j, o, diagonal)
            _subtract(turned, before, diagonal)
            for i in range(BLOCK):
                across[i] = before[i]
        if t.closed:
            _slopes(t, start, across)
            # The rows that repeat the ends.
            for i in range(BLOCK):
                (t.cosine + BLOCK * (start - 1))[i] = t.cosine[BLOCK * (start + last_link) + i]
                t.cosine[BLOCK * (start + last_link + 1) + i] = t.cosine[BLOCK * start + i]
    return fault


cdef int _forces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FixmanTask* t = <FixmanTask*> task
    cdef Chain chain
    cdef double slopes[4][ROOM]
    cdef double force[3]
    cdef double along
    cdef const double* slope
    cdef const double* q
    cdef Py_ssize_t batch, start
    cdef int c, i, k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        slope = t.cosine + BLOCK * (start - 2)
        q = t.q + BLOCK * (start - 2)
        for k in range(1, n + 3):
            for i in range(BLOCK):
                slopes[i][k] = slope[BLOCK * k + i] if q[BLOCK * k] > 0.0 else 0.0
            chain.slope[k] = slopes[0][k]
        pull(&chain, n)
        if WAYS == 2:
            find_directors(&chain, world, &t.rows, start, n)
            for k in range(1, n + 2):
                for c in range(3):
                    force[c] = slopes[2][k] * chain.p[c][k - 1] + slopes[1][k + 1] * chain.p[c][k + 1]
                    chain.g[c][k] = (
                        slopes[1][k] * chain.u[c][k - 1] + slopes[3][k] * chain.p[c][k - 1]
                    ) + (slopes[2][k + 1] * chain.u[c][k + 1] + slopes[3][k + 1] * chain.p[c][k + 1])
                along = (force[0] * chain.u[0][k] + force[1] * chain.u[1][k]) + force[2] * chain.u[2][k]
                for c in range(3):
                    chain.t[c][k] += chain.inverse[k] * (force[c] - along * chain.u[c][k])
            push_directors(&chain, world, &t.rows, start, n)
        push(&chain, world, &t.rows, start, n)
    return 0


cdef class Fixman(TermForce):
    """node, owned, director (rows + 4,): the table, with two rows before the first and after the last. q (rows + 4,
    BLOCK) is 0 where there is no joint. start, nodes (filaments,): row of the first node of each, and how many it has.
    kT: pN nm. present: of filaments whose links have subunits and are there where they have some, with room for more;
    all joints have the same q.
    """
    cdef FixmanTask task
    # The same of the nodes that are there, where there is room for more.
    cdef FixmanTask of_present
    cdef PresentRows present
    cdef list arrays
    cdef Py_ssize_t rows
    cdef Py_ssize_t filaments

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const int32_t[::1] director,
                 const double[:, ::1] q, const int32_t[::1] start, const int32_t[::1] nodes, bint closed, double kT,
                 PresentRows present=None):
        self.name = name
        self.acts_on_points = False
        self.rows = node.shape[0] - 4
        self.filaments = start.shape[0]
        self.arrays = []
        self.task.rows.node = vector(self.arrays, node) + 2
        self.task.rows.owned = vector(self.arrays, owned) + 2
        self.task.rows.director = vector(self.arrays, director) + 2
        self.task.q = table(self.arrays, q) + 2 * BLOCK
        self.task.start = vector(self.arrays, start)
        self.task.nodes = vector(self.arrays, nodes)
        self.task.closed = closed
        self.task.grows = present is not None
        self.task.kT = kT
        self.task.cosine = zeros(self.arrays, BLOCK * node.shape[0]) + 2 * BLOCK
        self.task.pivot = zeros(self.arrays, BLOCK * node.shape[0]) + 2 * BLOCK
        self.task.a = zeros(self.arrays, BLOCK * node.shape[0]) + 2 * BLOCK
        self.task.h = zeros(self.arrays, BLOCK * node.shape[0]) + 2 * BLOCK
        self.task.energy = zeros(self.arrays, self.filaments)
        # A term is a filament.
        self.loops(_filaments, &self.task, self.task.energy, 1)
        self.present = present
        if present is not None:
            self.of_present = self.task
            self.of_present.rows.node = &present.node[2]
            ones = np.ones(node.shape[0], np.int32)
            self.of_present.rows.owned = vector[int32_t](self.arrays, ones) + 2
            # Where there is no joint, its cosine is 0.
            alike = np.full((node.shape[0], BLOCK), np.max(q, initial=0.0))
            self.of_present.q = table[double](self.arrays, alike) + 2 * BLOCK
            self.of_present.start = &present.start[0]
            self.of_present.nodes = &present.nodes[0]

    def named(self):
        starts = np.asarray(<const int32_t[:self.filaments]> self.task.start)
        nodes = np.asarray(<const int32_t[:self.filaments]> self.task.nodes)
        terms = np.repeat(np.arange(self.filaments, dtype=np.int32), nodes)
        rows = np.repeat(starts - (np.cumsum(nodes) - nodes), nodes) + np.arange(len(terms))
        return np.asarray(<const int32_t[:self.rows]> self.task.rows.node)[rows], terms, self.filaments

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        cdef Py_ssize_t first = self.task.start[term]
        return _cosines(&self.task, world, first, first + self.task.nodes[term], 0)

    cdef int run(self, World* world) noexcept nogil:
        cdef FixmanTask* task = &self.task
        cdef Py_ssize_t rows = self.rows, filaments = self.filaments
        cdef int fault
        self.energy = 0.0
        if self.present is not None:
            self.present.list_rows(world)
            task = &self.of_present
            rows = self.present.rows
            filaments = self.present.filaments
        over_blocks(_cosines, task, world, rows, ROW_BLOCK)
        # As many filaments in a block as have the rows of one.
        fault = over_blocks(_filaments, task, world, filaments, max(1, ROW_BLOCK * filaments // max(1, rows)))
        if fault != 0:
            return fault
        over_blocks(_forces, task, world, rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.energy, filaments)
        return 0
