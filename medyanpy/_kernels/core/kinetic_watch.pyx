"""The watch: at the end of every step, whether a bead has more kinetic energy than it can have come by.

What it can have come by follows from a bound on the kinetic energy, the same for all beads, which is part of the state;
see `medyanpy.engine.kinetic_watch`. Blocks of beads are compared at once; the bead is looked for where one does
not pass.
"""
import numpy as np

from libc.math cimport INFINITY

from medyanpy._kernels.core.parallel cimport n_blocks, over_blocks, record_fault
from medyanpy._kernels.core.program cimport RUNAWAY, WATCHED, Operation, World
from medyanpy._kernels.core.vec3 cimport all_below, all_slow


cdef struct WatchTask:
    const double* limit       # (n,) squared speed
    const double* turning     # per block: squared component of an angular momentum with which no body is beyond `bound`
    double bound              # of the kinetic energy of rotation
    double slow               # squared angular velocity that is never too large


cdef inline double _square(const World* world, Py_ssize_t i) noexcept nogil:
    cdef const double* v = world.v + 3 * i
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2]


cdef int _look(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef WatchTask* t = <WatchTask*> task
    cdef Py_ssize_t i
    if all_slow(world.v + 3 * first, t.limit + first, last - first):
        return 0
    for i in range(first, last):
        if not all_slow(world.v + 3 * i, t.limit + i, 1):
            return record_fault(world, RUNAWAY, i, -1)
    return 0


cdef inline double _of_rotation(const World* world, Py_ssize_t row, double* square) noexcept nogil:
    """Kinetic energy of rotation of a body, and its squared angular velocity."""
    cdef const double* spin = world.spin + 3 * row
    cdef const double* w = world.inverse_inertia + 3 * row
    cdef double energy = 0.0
    cdef int c
    square[0] = 0.0
    for c in range(3):
        energy += 0.5 * w[c] * spin[c] * spin[c]
        square[0] += (w[c] * spin[c]) * (w[c] * spin[c])
    return energy


cdef int _look_at_rotation(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef WatchTask* t = <WatchTask*> task
    cdef double square
    cdef Py_ssize_t row
    if all_below(world.spin + 3 * first, 3 * (last - first), t.turning[first // WATCHED]):
        return 0
    for row in range(first, last):
        if not (_of_rotation(world, row, &square) <= t.bound or square <= t.slow):
            return record_fault(world, RUNAWAY, world.first_oriented + row, -1)
    return 0


cdef class Watch(Operation):
    """Fault RUNAWAY of the bead with the most kinetic energy, where any has more than a bound.

    bound (1,): pN nm; negative, none. slow (n,): squared speeds, by place, that are never too large; slow_turns: the
    squared angular velocity. mass (n,), and rates (3 n_oriented,), inverse moments of inertia: also of those that may
    be born.
    """
    cdef double[::1] bound
    cdef const double[::1] slow
    cdef const double[::1] mass
    cdef const double[::1] rates
    # By place; and per block, whether the kick before has found all within it. It is asked no second time.
    cdef readonly double[::1] limit
    cdef readonly signed char[::1] calm
    cdef double[::1] turning
    cdef double slow_turns
    cdef double made_for      # the bound that `limit` follows from

    def __init__(self, double[::1] bound, const double[::1] slow, double slow_turns, const double[::1] mass,
                 const double[::1] rates):
        self.bound = bound
        self.mass = mass
        self.rates = rates
        self.slow = slow
        self.slow_turns = slow_turns
        self.limit = np.full(len(slow), -1.0)
        self.calm = np.zeros(n_blocks(len(slow), WATCHED), np.int8)
        # There are no more bodies than beads.
        self.turning = np.empty(len(self.calm))
        self.made_for = -INFINITY

    cdef void make_limits(self, World* world) noexcept nogil:
        cdef Py_ssize_t i
        self.made_for = self.bound[0]
        for i in range(world.n):
            # Below infinity, which is not slow, whatever the bound.
            self.limit[i] = min(1e300, max(2.0 * self.made_for / self.mass[i], self.slow[i]))
        for i in range(self.turning.shape[0]):
            self.turning[i] = 1e300
        for i in range(3 * world.n_oriented):
            # About an axis without inertia nothing turns.
            if self.rates[i] > 0.0:
                self.turning[i // (3 * WATCHED)] = min(
                    self.turning[i // (3 * WATCHED)], 2.0 / 3.0 * self.made_for / self.rates[i])

    cdef void blame(self, World* world, WatchTask* t) noexcept nogil:
        """Name the bead with the most kinetic energy of those beyond their limits."""
        cdef double largest = -1.0, energy, square
        cdef Py_ssize_t i, row
        for i in range(world.n):
            square = _square(world, i)
            energy = 0.5 * world.mass[i] * square if not square <= t.limit[i] else 0.0
            row = i - world.first_oriented
            if 0 <= row < world.n_oriented and not (_of_rotation(world, row, &square) <= t.bound or square <= t.slow):
                energy = max(energy, _of_rotation(world, row, &square))
            if not energy <= largest and largest < INFINITY:
                # What is not a number is the most.
                largest = energy if energy == energy else INFINITY
                world.fault.bead = i
        world.fault.value = largest
        if world.fault.bead >= world.n_cartesian:
            world.fault.triangle = world.triangle[world.fault.bead - world.n_cartesian]

    cdef int run(self, World* world) noexcept nogil:
        cdef WatchTask task
        cdef int fault = 0
        cdef bint calm = True
        cdef Py_ssize_t b
        if self.bound[0] < 0.0:
            return 0
        for b in range(self.calm.shape[0]):
            calm &= self.calm[b]
            self.calm[b] = False
        if self.bound[0] != self.made_for:
            self.make_limits(world)
            calm = False
        task.limit = &self.limit[0]
        task.turning = &self.turning[0]
        task.bound = self.bound[0]
        task.slow = self.slow_turns
        if not calm:
            fault = over_blocks(_look, &task, world, world.n, WATCHED)
        if fault == 0 and world.n_oriented > 0:
            fault = over_blocks(_look_at_rotation, &task, world, world.n_oriented, WATCHED)
        if fault != 0:
            self.blame(world, &task)
        return fault
