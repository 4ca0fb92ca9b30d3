"""Three beads as the columns of a matrix Q that is held near rotations and reflections.

    U = w/2 |E|_F^2,   E = Q^T Q - l^2 1,   w >= 0
    dU/dq_i = 2 w sum_j E_ij q_j
    d2U/dq_i dq_j = 2 w [ E_ij 1 + q_j q_i^T + delta_ij sum_k q_k q_k^T ]
    (D3U[a, a])_i = 4 w sum_j [ (a_i.q_j + q_i.a_j) a_j + (a_i.a_j) q_j ]

a polynomial of the positions themselves, about the origin. The caller has checked that no bead is in two matrices.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, zeros
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.local_terms cimport TermForce
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport AddBlock, World
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 512


cdef struct FramesTask:
    const int32_t* column     # (frames, 3)
    const double* numbers     # (frames, 2) w, l^2
    double* partial


cdef inline void _metric(
    const double* x, const int32_t* column, double square, const double** q, double* e,
) noexcept nogil:
    """The columns, and e (3, 3) = Q^T Q - l^2 1."""
    cdef int i, j
    for i in range(3):
        q[i] = x + 3 * <Py_ssize_t> column[i]
    for i in range(3):
        for j in range(3):
            e[3 * i + j] = dot(q[i], q[j])
        e[4 * i] -= square


cdef int _frames(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FramesTask* t = <FramesTask*> task
    cdef const double* q[3]
    cdef double e[9]
    cdef double force[3]
    cdef double* f
    cdef double w, sum, energy = 0.0
    cdef Py_ssize_t m
    cdef int i, j
    for m in range(first, last):
        w = t.numbers[2 * m]
        _metric(world.x, t.column + 3 * m, t.numbers[2 * m + 1], q, e)
        sum = 0.0
        for i in range(3):
            force[0] = force[1] = force[2] = 0.0
            for j in range(3):
                sum += e[3 * i + j] * e[3 * i + j]
                add_scaled(e[3 * i + j], q[j], force)
            f = world.f + 3 * <Py_ssize_t> t.column[3 * m + i]
            add_scaled(-2.0 * w, force, f)
        energy += 0.5 * w * sum
    t.partial[first // BLOCK] = energy
    return 0


cdef class Frames(TermForce):
    """Penalties on matrices. column (frames, 3): places of beads; numbers (frames, 2): w, pN/nm^3, and l^2, nm^2."""
    cdef const int32_t[:, ::1] column
    cdef const double[:, ::1] numbers
    cdef FramesTask task
    cdef list arrays

    def __init__(self, str name, const int32_t[:, ::1] column, const double[:, ::1] numbers):
        self.name = name
        self.derivatives = 3
        self.column = column
        self.numbers = numbers
        self.arrays = []
        self.task.column = table(self.arrays, column)
        self.task.numbers = table(self.arrays, numbers)
        self.task.partial = zeros(self.arrays, n_blocks(column.shape[0], BLOCK))
        self.loops(_frames, &self.task, self.task.partial, BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t n = self.column.shape[0]
        self.energy = 0.0
        over_blocks(_frames, &self.task, world, n, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(n, BLOCK))
        return 0

    def named(self):
        n = self.column.shape[0]
        return np.ravel(self.column), np.repeat(np.arange(n), 3), n

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        # Of a stiffness what is left is 2 w (dE)^T dE, where U = w/2 |E|^2.
        cdef double bent = 0.0 if wanted.positive else 1.0
        if wanted.add != NULL:
            return self.second(world, wanted.add, wanted.sink, bent)
        self.third(world, wanted.a, wanted.out, bent)
        return 0

    cdef int second(self, World* world, AddBlock add, void* sink, double bent) noexcept nogil:
        """Blocks of the Hessian, with `bent` times its part that is linear in E."""
        cdef const double* q[3]
        cdef double e[9]
        cdef double block[9]
        cdef Py_ssize_t m
        cdef int c, d, i, j, k, fault
        for m in range(self.column.shape[0]):
            _metric(world.x, &self.column[m, 0], self.numbers[m, 1], q, e)
            for i in range(3):
                for j in range(i + 1):
                    for c in range(3):
                        for d in range(3):
                            block[3 * c + d] = q[j][c] * q[i][d]
                            if c == d:
                                block[3 * c + d] += bent * e[3 * i + j]
                            if i == j:
                                for k in range(3):
                                    block[3 * c + d] += q[k][c] * q[k][d]
                            block[3 * c + d] *= 2.0 * self.numbers[m, 0]
                    fault = add(sink, self.column[m, i], self.column[m, j], block)
                    if fault != 0:
                        return fault
        return 0

    cdef void third(self, World* world, const double* a, double* out, double bent) noexcept nogil:
        """The derivative of what `second` gives, twice along a."""
        cdef const double* q[3]
        cdef const double* b[3]
        cdef double e[9]
        cdef double sum[3]
        cdef Py_ssize_t m
        cdef int i, j
        for m in range(self.column.shape[0]):
            _metric(world.x, &self.column[m, 0], self.numbers[m, 1], q, e)
            for i in range(3):
                b[i] = a + 3 * <Py_ssize_t> self.column[m, i]
            for i in range(3):
                sum[0] = sum[1] = sum[2] = 0.0
                for j in range(3):
                    add_scaled(dot(b[i], q[j]) + dot(q[i], b[j]), b[j], sum)
                    add_scaled(bent * dot(b[i], b[j]), q[j], sum)
                add_scaled(4.0 * self.numbers[m, 0], sum, out + 3 * <Py_ssize_t> self.column[m, i])
