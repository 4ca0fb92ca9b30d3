"""Kinetic energy, object by object."""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport Momenta, Operation, World

cdef Py_ssize_t BLOCK = 4096


cdef struct KineticTask:
    Py_ssize_t start
    const int32_t* order      # places in the order of rows, or NULL
    double* partial


cdef int _kinetic(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef KineticTask* t = <KineticTask*> task
    cdef const double* v
    cdef const double* w
    cdef const Momenta* m
    cdef double twice, total = 0.0
    cdef Py_ssize_t i, j, k, c
    for j in range(t.start + first, t.start + last):
        i = j if t.order == NULL else t.order[j]
        v = world.v + 3 * i
        total += 0.5 * world.mass[i] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    for k in range(world.n_momenta):
        m = &world.momenta[k]
        # All beads of a handle have such momenta, or none.
        if m.first <= t.start + first < m.first + m.n:
            for j in range(t.start + first, t.start + last):
                i = (j if t.order == NULL else t.order[j]) - m.first
                v = m.p + m.width * i
                w = m.inverse_mass + m.width * i
                twice = 0.0
                for c in range(m.width):
                    twice += w[c] * v[c] * v[c]
                total += 0.5 * twice
    t.partial[first // BLOCK] = total
    return 0


cdef class KineticEnergies(Operation):
    """Kinetic energy of every range [start, end) of beads, written to `energies`.

    Where beads come and go, `order` (n,) int32 has the places in the order of rows: an edit may move beads to other
    places, and sums stay the same to the last digit.

    As part of a step it works in the last step of a run only: that is when somebody may look.
    """
    cdef long long[:, ::1] ranges
    cdef double[::1] energies
    cdef double[::1] partial
    cdef bint always
    cdef const int32_t[::1] order

    def __init__(self, long long[:, ::1] ranges, double[::1] energies, bint always, const int32_t[::1] order=None):
        self.ranges = ranges
        self.energies = energies
        self.always = always
        self.order = order
        longest = max((end - start for start, end in np.asarray(ranges)), default=0)
        self.partial = np.zeros(max(1, n_blocks(longest, BLOCK)))

    cdef int run(self, World* world) noexcept nogil:
        cdef KineticTask task
        cdef Py_ssize_t r, n
        if not (self.always or world.last):
            return 0
        task.partial = &self.partial[0]
        task.order = NULL
        if self.order is not None and self.order.shape[0] > 0:
            task.order = &self.order[0]
        for r in range(self.ranges.shape[0]):
            task.start = self.ranges[r, 0]
            n = self.ranges[r, 1] - task.start
            over_blocks(_kinetic, &task, world, n, BLOCK)
            self.energies[r] = ordered_sum(task.partial, n_blocks(n, BLOCK))
        return 0
