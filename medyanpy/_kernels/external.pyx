"""Energies of single beads, quadratic and linear in their positions.

    U = sum_i sum_c  k_c/2 (x_ic - o_ic)^2 - g_ic x_ic
    F_ic = g_ic - k_c (x_ic - o_ic)

Shapes: m beads; o and g have m rows, or one that is the same for all. Units: nm, pN, pN/nm. The caller has
checked bead numbers, that no bead occurs twice, and shapes.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport AddBlock, Operation, World

cdef Py_ssize_t BLOCK = 2048


cdef struct FieldTask:
    const int32_t* bead
    const double* stiffness   # (3,)
    const double* center
    const double* force
    Py_ssize_t next_center    # doubles from one row to the next: 0 or 3
    Py_ssize_t next_force
    double* partial


cdef int _field(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FieldTask* t = <FieldTask*> task
    cdef const double* x
    cdef const double* g
    cdef double* f
    cdef double d[3]
    cdef double energy = 0.0
    cdef Py_ssize_t i
    cdef int c
    for i in range(first, last):
        x = world.x + 3 * <Py_ssize_t> t.bead[i]
        f = world.f + 3 * <Py_ssize_t> t.bead[i]
        g = t.force + i * t.next_force
        displacement(&world.box, t.center + i * t.next_center, x, d)
        for c in range(3):
            # One number added once: two equal forces give exactly twice one.
            f[c] += g[c] - t.stiffness[c] * d[c]
            energy += 0.5 * t.stiffness[c] * d[c] * d[c] - g[c] * x[c]
    t.partial[first // BLOCK] = energy
    return 0


cdef class Field(Operation):
    """A trap and a constant force on single beads."""
    cdef const int32_t[::1] bead
    cdef const double[::1] stiffness
    cdef const double[:, ::1] center
    cdef const double[:, ::1] force
    cdef double[::1] partial

    def __init__(self, str name, const int32_t[::1] bead, const double[::1] stiffness,
                 const double[:, ::1] center, const double[:, ::1] force):
        self.name = name
        # The third derivative of a quadratic energy is zero: `contract` adds nothing.
        self.derivatives = 3
        self.bead = bead
        self.stiffness = stiffness
        self.center = center
        self.force = force
        self.partial = np.zeros(n_blocks(bead.shape[0], BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef FieldTask task
        cdef Py_ssize_t n = self.bead.shape[0]
        self.energy = 0.0
        if n == 0:
            return 0
        task.bead = &self.bead[0]
        task.stiffness = &self.stiffness[0]
        task.center = &self.center[0, 0]
        task.force = &self.force[0, 0]
        task.next_center = 0 if self.center.shape[0] == 1 else 3
        task.next_force = 0 if self.force.shape[0] == 1 else 3
        task.partial = &self.partial[0]
        over_blocks(_field, &task, world, n, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, n_blocks(n, BLOCK))
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef double block[9]
        cdef Py_ssize_t i
        cdef int c, fault = 0
        for c in range(9):
            block[c] = 0.0
        for c in range(3):
            block[4 * c] = self.stiffness[c]
        for i in range(self.bead.shape[0]):
            fault = add(sink, self.bead[i], self.bead[i], block)
            if fault != 0:
                return fault
        return 0
