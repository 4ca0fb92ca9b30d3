"""Energies of single sites, quadratic and linear in their positions.

    U = sum_i sum_c  k_c/2 (x_ic - o_ic)^2 - g_ic x_ic
    F_ic = g_ic - k_c (x_ic - o_ic)

Shapes: m rows of a table of sites; o and g have m rows, or one that is the same for all. Units: nm, pN, pN/nm. The
caller has checked rows, that none occurs twice, and shapes.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.local_terms cimport SiteForce
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport AddBlock, World
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, is_asleep

cdef Py_ssize_t BLOCK = 2048


cdef struct FieldTask:
    SiteArrays sites
    const int32_t* row
    const double* stiffness   # (3,)
    const double* center
    const double* force
    Py_ssize_t next_center    # doubles from one row to the next: 0 or 3
    Py_ssize_t next_force
    double* partial


cdef inline void _pull(FieldTask* t, World* world, Py_ssize_t i, double* energy) noexcept nogil:
    cdef const double* x = t.sites.x + 3 * <Py_ssize_t> t.row[i]
    cdef double* f = t.sites.f + 3 * <Py_ssize_t> t.row[i]
    cdef const double* g = t.force + i * t.next_force
    cdef double d[3]
    cdef int c
    displacement(&world.box, t.center + i * t.next_center, x, d)
    for c in range(3):
        # One number added once: two equal forces give exactly twice one.
        f[c] += g[c] - t.stiffness[c] * d[c]
        energy[0] += 0.5 * t.stiffness[c] * d[c] * d[c] - g[c] * x[c]


cdef int _field(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FieldTask* t = <FieldTask*> task
    cdef double energy = 0.0
    cdef Py_ssize_t i
    if world.alive == NULL:
        for i in range(first, last):
            _pull(t, world, i, &energy)
    else:
        for i in range(first, last):
            if not is_asleep(world, &t.sites, t.row[i]):
                _pull(t, world, i, &energy)
    t.partial[first // BLOCK] = energy
    return 0


cdef class Field(SiteForce):
    """A trap and a constant force on single sites."""
    cdef FieldTask task
    cdef list arrays
    cdef const double[::1] stiffness

    def __init__(self, str name, SiteTable sites, const int32_t[::1] row, const double[::1] stiffness,
                 const double[:, ::1] center, const double[:, ::1] force):
        self.name = name
        # The third derivative of a quadratic energy is zero: `contract` adds nothing. With arms it is not quadratic.
        self.derivatives = 1 if sites.has_arms else 3
        self.sites = sites
        self.row = row
        self.stiffness = stiffness
        self.arrays = []
        self.task.row = vector(self.arrays, row)
        self.task.stiffness = vector(self.arrays, stiffness)
        self.task.center = table(self.arrays, center)
        self.task.force = table(self.arrays, force)
        self.task.next_center = 0 if center.shape[0] == 1 else 3
        self.task.next_force = 0 if force.shape[0] == 1 else 3
        self.task.partial = zeros(self.arrays, n_blocks(row.shape[0], BLOCK))
        self.loops(_field, &self.task, self.task.partial, BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t n = self.row.shape[0]
        cdef int fault
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        self.task.sites = self.sites.now
        over_blocks(_field, &self.task, world, n, BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(n, BLOCK))
        return self.sites.scatter(world)

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        self.sites.refresh(world, self.row[term])
        self.task.sites = self.sites.now
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef double block[9]
        cdef Py_ssize_t i
        cdef int c, fault = 0
        for c in range(9):
            block[c] = 0.0
        for c in range(3):
            block[4 * c] = self.stiffness[c]
        for i in range(self.row.shape[0]):
            if is_asleep(world, &self.sites.now, self.row[i]):
                continue
            fault = self.sites.add_single(self.row[i], block, add, sink)
            if fault != 0:
                return fault
        return 0
