"""Sums whose result does not depend on the order of their terms.

In-triangle points push on the vertices of triangles that change as they move, so no thread can own a
vertex. Terms are rounded to a grid and added as 128-bit integers, each thread into an array of its own; integer
addition commutes, so the total has the same bits for any number of threads and any order of the points.
The grid is a power of two, chosen from a bound on a single term; 128 bits hold 2^64 terms of that size,
so no system can overflow it, and a term is resolved to 2^-62 of the largest.
"""
from libc.stdint cimport int64_t

from medyanpy._kernels.program cimport World

cdef extern from * nogil:
    """
    typedef __int128 medyanpy_sum;
    """
    ctypedef long long Sum "medyanpy_sum"


cdef class Accumulator:
    """Totals of three-vectors over `n` slots, one array for each thread; zero whenever nobody is adding."""
    cdef Py_ssize_t n
    cdef int threads
    cdef Sum* sums            # (threads, n, 3)
    cdef double scale         # multiply a term by this to get its integer
    cdef double unit          # multiply an integer by this to get back

    cdef void set_bound(self, double bound) noexcept nogil

    cdef void collect(self, World* world, double* out, const double* factor, bint overwrite) noexcept nogil

    cdef inline Sum* of_thread(self, int thread) noexcept nogil:
        return self.sums + 3 * self.n * thread


cdef inline int64_t to_grid(double term, double scale) noexcept nogil:
    # Towards zero: odd, so that a time-reversed term is exactly the opposite integer.
    return <int64_t> (term * scale)
