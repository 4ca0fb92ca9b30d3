"""Sums whose result does not depend on the order of their terms."""
import numpy as np

from libc.math cimport frexp, ldexp, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.parallel cimport over_blocks
from medyanpy._kernels.core.program cimport World

cdef Py_ssize_t BLOCK = 2048

cdef struct Collect:
    Sum* sums
    Py_ssize_t n
    int threads
    const double* unit
    const int32_t* of_slot
    const double* factor
    double* out
    bint overwrite


cdef int _collect(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Collect* t = <Collect*> task
    cdef Py_ssize_t i, c, k
    cdef Sum total
    cdef double value, unit
    cdef int other
    for i in range(first, last):
        unit = t.unit[0 if t.of_slot == NULL else t.of_slot[i]]
        for c in range(3):
            k = 3 * i + c
            total = t.sums[k]
            t.sums[k] = 0
            for other in range(1, t.threads):
                total = total + t.sums[3 * t.n * other + k]
                t.sums[3 * t.n * other + k] = 0
            value = <double> total * unit
            if t.factor != NULL:
                value = value * t.factor[i]
            if t.overwrite:
                t.out[k] = value
            else:
                t.out[k] += value
    return 0


cdef class Accumulator:
    """Totals of three-vectors over `n` slots, added up by several threads in any order.

    of_slot (n,), of_point (n_points,): to which group, counted from 0, a slot and a point belong. Points push on slots
    of their own group.
    """

    def __cinit__(self, Py_ssize_t n, int threads, of_slot=(), of_point=()):
        self.n = n
        self.threads = threads
        self.arrays = []
        slots = np.ascontiguousarray(of_slot, np.int32)
        if len(slots) != n:
            raise ValueError(f"{n} slots, and groups of {len(slots)}")
        points = np.ascontiguousarray(of_point, np.int32)
        self.n_groups = 1 + max(int(slots.max(initial=0)), int(points.max(initial=0)))
        # A cache line for each thread.
        self.groups.stride = (self.n_groups + 7) // 8 * 8
        self.groups.largest = zeros(self.arrays, self.groups.stride * threads)
        self.groups.scale = self.scale = zeros(self.arrays, self.n_groups)
        self.unit = zeros(self.arrays, self.n_groups)
        if self.n_groups > 1:
            self.groups.of_point = vector[int32_t](self.arrays, points)
            self.of_slot = vector[int32_t](self.arrays, slots)
        self.sums = <Sum*> calloc(max(1, 3 * n * threads), sizeof(Sum))
        if self.sums == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.sums)

    cdef void forget_bounds(self) noexcept nogil:
        memset(self.groups.largest, 0, self.groups.stride * self.threads * sizeof(double))

    cdef void set_bounds(self) noexcept nogil:
        """Choose the grids so that terms up to the bounds that have been noted fit."""
        cdef Py_ssize_t g
        cdef int exponent, other
        cdef double largest
        for g in range(self.n_groups):
            largest = 0.0
            for other in range(self.threads):
                largest = max(largest, self.groups.largest[self.groups.stride * other + g])
            exponent = 0
            frexp(sqrt(largest), &exponent)     # bound < 2^exponent
            # 2^62 leaves room for the sign and for rounding in the bound itself; the limits keep both scales
            # normal numbers, at the price of resolution for terms below 1e-290.
            exponent = min(max(62 - exponent, -1000), 1000)
            self.scale[g] = ldexp(1.0, exponent)
            self.unit[g] = ldexp(1.0, -exponent)

    cdef void collect(self, World* world, double* out, const double* factor, bint overwrite) noexcept nogil:
        """Write (or add) factor[i] times the total of every slot to out, and start again from zero."""
        cdef Collect task
        task.sums = self.sums
        task.n = self.n
        task.threads = self.threads
        task.unit = self.unit
        task.of_slot = self.of_slot
        task.factor = factor
        task.out = out
        task.overwrite = overwrite
        over_blocks(_collect, &task, world, self.n, BLOCK)
