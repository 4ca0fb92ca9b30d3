"""The virial of a force: minus the derivative of its energy in a homogeneous strain of space.

    W_ab = -dU/d(strain)_ab = sum_i (x_i - o)_a F_ib,   strain: x -> x + (strain)^T (x - o)

over all beads that have a place in space: a strain leaves directors alone. In-triangle points move with their
triangles under a strain, so that the force on their 3D position is all that counts; what they pass on to corners is
the same work once more and is left out.
"""
import numpy as np

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport n_blocks, over_blocks
from medyanpy._kernels.core.program cimport Operation, World

cdef Py_ssize_t BLOCK = 4096


cdef struct VirialTask:
    const double* origin
    double* partial           # (blocks, 9)
    Py_ssize_t first_director
    Py_ssize_t last_director


cdef int _virial(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef VirialTask* t = <VirialTask*> task
    cdef double* out = t.partial + 9 * (first // BLOCK)
    cdef const double* f
    cdef double d[3]
    cdef Py_ssize_t i
    cdef int a, b
    for a in range(9):
        out[a] = 0.0
    for i in range(first, last):
        if t.first_director <= i < t.last_director:
            continue
        f = world.f + 3 * i
        displacement(&world.box, t.origin, world.x + 3 * i, d)
        for a in range(3):
            for b in range(3):
                out[3 * a + b] += d[a] * f[b]
    return 0


cdef class Virial(Operation):
    """The virial of the forces that are in world.f, about `origin` (3,), written to `tensor` (3, 3), pN nm.

    Of n beads; directors are those from first_director to last_director - 1.
    """
    cdef const double[::1] origin
    cdef double[:, ::1] tensor
    cdef double[:, ::1] partial
    cdef Py_ssize_t first_director
    cdef Py_ssize_t last_director

    def __init__(self, const double[::1] origin, double[:, ::1] tensor, Py_ssize_t n, Py_ssize_t first_director,
                 Py_ssize_t last_director):
        self.first_director = first_director
        self.last_director = last_director
        self.origin = origin
        self.tensor = tensor
        self.partial = np.zeros((max(1, n_blocks(n, BLOCK)), 9))

    cdef int run(self, World* world) noexcept nogil:
        cdef VirialTask task
        cdef Py_ssize_t block
        cdef int a
        task.origin = &self.origin[0]
        task.partial = &self.partial[0, 0]
        task.first_director = self.first_director
        task.last_director = self.last_director
        over_blocks(_virial, &task, world, world.n, BLOCK)
        for a in range(9):
            self.tensor[a // 3, a % 3] = 0.0
            for block in range(n_blocks(world.n, BLOCK)):
                self.tensor[a // 3, a % 3] += self.partial[block, a]
        return 0
