"""The one parallel loop of the package."""
import os
import warnings

from cython.parallel cimport prange, threadid

from medyanpy._kernels.core.program cimport NO_FAULT, World

cdef extern from * nogil:
    """
    #include <omp.h>
    #if !defined(_OPENMP)
    #error "medyanpy is built with OpenMP or not at all"
    #endif
    /* Keeps the fault of the lowest bead, whatever thread found it: messages do not depend on threads. */
    static void keep_lowest(int* code, long long* bead, long long* triangle,
                            int new_code, long long new_bead, long long new_triangle) {
        #pragma omp critical(medyanpy_fault)
        {
            if (*bead < 0 || new_bead < *bead) {
                *code = new_code;
                *bead = new_bead;
                *triangle = new_triangle;
            }
        }
    }
    static int openmp_version(void) { return _OPENMP; }
    """
    void keep_lowest(
        int* code, long long* bead, long long* triangle, int new_code, long long new_bead, long long new_triangle)
    int openmp_version()

# libgomp's threads do not survive a fork, and its first region in the child would wait for them for ever.
cdef bint forked = False
cdef bint region_entered = False

OPENMP_VERSION = openmp_version()

# Fewer blocks than this run on one thread. A region costs microseconds on a quiet machine and much more on a busy
# one; kernels choose blocks of about ten microseconds of work.
cdef enum:
    FEWEST_BLOCKS = 4


def _after_fork_in_child():
    global forked
    if region_entered and not forked:
        forked = True
        warnings.warn(
            "medyanpy runs on one thread in this process: it was forked from one that had already used several. "
            "Start processes with the 'spawn' method to use threads in them.",
            RuntimeWarning, stacklevel=2,
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


cdef inline int _one_block(
    BlockFunction function, void* task, World* world, Py_ssize_t n, Py_ssize_t block, Py_ssize_t b, int thread,
) noexcept nogil:
    return function(task, world, b * block, min(n, (b + 1) * block), thread)


cdef int over_blocks(
    BlockFunction function, void* task, World* world, Py_ssize_t n, Py_ssize_t block,
) noexcept nogil:
    """Call `function` for every block of `block` items; 0, or the code of the fault with the lowest bead."""
    cdef Py_ssize_t blocks, b
    cdef int failed = 0
    global region_entered
    if n <= block:
        # Small systems do not even divide.
        return world.fault.code if n > 0 and function(task, world, 0, n, 0) else NO_FAULT
    blocks = n_blocks(n, block)
    if world.threads == 1 or blocks < FEWEST_BLOCKS or forked:
        for b in range(blocks):
            failed |= _one_block(function, task, world, n, block, b, 0)
    else:
        region_entered = True
        for b in prange(blocks, schedule="static", num_threads=world.threads):
            failed |= _one_block(function, task, world, n, block, b, threadid())
    if failed:
        return world.fault.code
    return NO_FAULT


cdef struct SumTask:
    const double* items
    double* partial


cdef int _sums(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef SumTask* t = <SumTask*> task
    t.partial[first // SUM_BLOCK] = ordered_sum(t.items + first, last - first)
    return 0


cdef double sum_in_blocks(World* world, const double* items, Py_ssize_t n, double* partial) noexcept nogil:
    cdef SumTask task
    task.items = items
    task.partial = partial
    over_blocks(_sums, &task, world, n, SUM_BLOCK)
    return ordered_sum(partial, n_blocks(n, SUM_BLOCK))


cdef int record_fault(World* world, int code, Py_ssize_t bead, Py_ssize_t triangle) noexcept nogil:
    """Note a fault of one bead and return its code. Of several in one operation the lowest bead's is kept."""
    keep_lowest(&world.fault.code, &world.fault.bead, &world.fault.triangle, code, bead, triangle)
    return code
