"""The one parallel loop of the package, and the one place where a fault is recorded.

Work on n items is cut into blocks of a fixed size. What a block does depends on its bounds alone, so results
have the same bits for any number of threads. A block function runs its items in a plain inlined loop, which
the compiler can vectorise; the cost of a call through the pointer is shared by the whole block.
"""
from medyanpy._kernels.core.program cimport World

ctypedef int (*BlockFunction)(
    void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil

cdef int over_blocks(
    BlockFunction function, void* task, World* world, Py_ssize_t n, Py_ssize_t block,
) noexcept nogil

cdef int record_fault(World* world, int code, Py_ssize_t bead, Py_ssize_t triangle) noexcept nogil

cdef inline Py_ssize_t n_blocks(Py_ssize_t n, Py_ssize_t block) noexcept nogil:
    return (n + block - 1) // block

# Sums over blocks: every block writes its own partial sum, then they are added in order.
cdef inline double ordered_sum(const double* partial, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += partial[i]
    return total


# Items of a block of `sum_in_blocks`.
cdef enum:
    SUM_BLOCK = 1024

# The sum of n items by blocks; partial (n_blocks(n, SUM_BLOCK),) is work space.
cdef double sum_in_blocks(World* world, const double* items, Py_ssize_t n, double* partial) noexcept nogil


# Maxima over blocks, likewise; of numbers >= 0.
cdef inline double ordered_max(const double* partial, Py_ssize_t n) noexcept nogil:
    cdef double largest = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        largest = partial[i] if partial[i] > largest else largest
    return largest
