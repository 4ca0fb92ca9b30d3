"""Sums whose result does not depend on the order of their terms."""
from libc.math cimport frexp, ldexp
from libc.stdlib cimport calloc, free

from medyanpy._kernels.parallel cimport over_blocks
from medyanpy._kernels.program cimport World

cdef Py_ssize_t BLOCK = 2048

cdef struct Collect:
    Sum* sums
    Py_ssize_t n
    int threads
    double unit
    const double* factor
    double* out
    bint overwrite


cdef int _collect(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Collect* t = <Collect*> task
    cdef Py_ssize_t i, c, k
    cdef Sum total
    cdef double value
    cdef int other
    for i in range(first, last):
        for c in range(3):
            k = 3 * i + c
            total = t.sums[k]
            t.sums[k] = 0
            for other in range(1, t.threads):
                total = total + t.sums[3 * t.n * other + k]
                t.sums[3 * t.n * other + k] = 0
            value = <double> total * t.unit
            if t.factor != NULL:
                value = value * t.factor[i]
            if t.overwrite:
                t.out[k] = value
            else:
                t.out[k] += value
    return 0


cdef class Accumulator:
    """Totals of three-vectors over `n` slots, added up by several threads in any order."""

    def __cinit__(self, Py_ssize_t n, int threads):
        self.n = n
        self.threads = threads
        self.sums = <Sum*> calloc(max(1, 3 * n * threads), sizeof(Sum))
        if self.sums == NULL:
            raise MemoryError
        self.scale = self.unit = 1.0

    def __dealloc__(self):
        free(self.sums)

    cdef void set_bound(self, double bound) noexcept nogil:
        """Choose the grid so that terms up to `bound` in magnitude fit."""
        cdef int exponent = 0
        frexp(bound, &exponent)     # bound < 2^exponent
        # 2^62 leaves room for the sign and for rounding in the bound itself; the limits keep both scales
        # normal numbers, at the price of resolution for terms below 1e-290.
        exponent = min(max(62 - exponent, -1000), 1000)
        self.scale = ldexp(1.0, exponent)
        self.unit = ldexp(1.0, -exponent)

    cdef void collect(self, World* world, double* out, const double* factor, bint overwrite) noexcept nogil:
        """Write (or add) factor[i] times the total of every slot to out, and start again from zero."""
        cdef Collect task
        task.sums = self.sums
        task.n = self.n
        task.threads = self.threads
        task.unit = self.unit
        task.factor = factor
        task.out = out
        task.overwrite = overwrite
        over_blocks(_collect, &task, world, self.n, BLOCK)
