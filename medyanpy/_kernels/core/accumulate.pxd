"""Sums whose result does not depend on the order of their terms.

In-triangle points push on the vertices of triangles that change as they move, so no thread can own a
vertex. Terms are rounded to a grid and added as 128-bit integers, each thread into an array of its own; integer
addition commutes, so the total has the same bits for any number of threads and any order of the points.
The grid is a power of two, chosen from a bound on a single term; 128 bits hold 2^64 terms of that size,
so no system can overflow it, and a term is resolved to 2^-62 of the largest. Each group of points and of the slots that
they push on, a membrane, has a grid of its own: what happens on one changes no bit of another.
"""
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.program cimport World

cdef extern from * nogil:
    """
    typedef __int128 medyanpy_sum;
    """
    ctypedef long long Sum "medyanpy_sum"


# What those who add need: the grids, and where each thread notes the largest square of a term's bound.
cdef struct Groups:
    const int32_t* of_point   # (n_points,); NULL where there is one group only
    double* largest           # (threads, stride), the first n_groups of each row are of groups
    Py_ssize_t stride
    const double* scale       # (n_groups,) multiply a term by this to get its integer


cdef class Accumulator:
    """Totals of three-vectors over `n` slots, one array for each thread; zero whenever nobody is adding."""
    cdef Py_ssize_t n
    cdef int threads
    cdef Py_ssize_t n_groups
    cdef Sum* sums            # (threads, n, 3)
    cdef Groups groups
    cdef list arrays
    cdef double* scale
    cdef double* unit         # (n_groups,) multiply an integer by this to get back
    cdef const int32_t* of_slot     # NULL likewise

    cdef void forget_bounds(self) noexcept nogil
    cdef void set_bounds(self) noexcept nogil

    cdef void collect(self, World* world, double* out, const double* factor, bint overwrite) noexcept nogil


cdef inline int64_t to_grid(double term, double scale) noexcept nogil:
    # Towards zero: odd, so that a time-reversed term is exactly the opposite integer.
    return <int64_t> (term * scale)


cdef inline Py_ssize_t group_end(const Groups* groups, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Up to where points from `first` on are of one group; they are where nothing else is said up to `last`."""
    cdef Py_ssize_t end = first + 1
    if groups.of_point == NULL:
        return last
    while end < last and groups.of_point[end] == groups.of_point[first]:
        end += 1
    return end


cdef inline double scale_at(const Groups* groups, Py_ssize_t point) noexcept nogil:
    return groups.scale[0 if groups.of_point == NULL else groups.of_point[point]]


cdef inline void note(const Groups* groups, int thread, Py_ssize_t point, double square) noexcept nogil:
    """The squares of the bounds of some terms of this point's group are not larger than this."""
    cdef double* largest = groups.largest + groups.stride * thread
    if groups.of_point != NULL:
        largest += groups.of_point[point]
    if square > largest[0]:
        largest[0] = square
