"""How a row of a neighbour list is found: who is near one member, sorted; for the instruction set of this machine.

Everything else of neighbour search is in neighbors.pyx, which others cimport, so that it is compiled once for all.
"""
from libc.stdint cimport int32_t, uintptr_t

from medyanpy._kernels.core.box cimport Box, nearest_whole
from medyanpy._kernels.core.neighbors cimport MARGIN, FindRow, Neighbors, Ranges
from medyanpy._kernels.core.simd_gather cimport SHORT_ROW, TOGETHER, number, sort_short

cdef enum:
    # Candidates that are looked at at a time.
    PART = 64


cdef inline void _squares(
    const Neighbors* near, const Box* box, const double* me, Py_ssize_t s, int n, double* out,
) noexcept nogil:
    """Squares of the distances of n slots from s on, a multiple of TOGETHER, from a place."""
    cdef const double* x = near.built + s
    cdef const double* y = x + near.apart
    cdef const double* z = y + near.apart
    cdef double d, e, f
    cdef int k
    if box.periodic:
        for k in range(n):
            d = x[k] - me[0]
            e = y[k] - me[1]
            f = z[k] - me[2]
            d -= box.length[0] * nearest_whole(d * box.inverse[0])
            e -= box.length[1] * nearest_whole(e * box.inverse[1])
            f -= box.length[2] * nearest_whole(f * box.inverse[2])
            out[k] = d * d + e * e + f * f
        return
    for k in range(n):
        d = x[k] - me[0]
        e = y[k] - me[1]
        f = z[k] - me[2]
        out[k] = d * d + e * e + f * f


cdef inline int _near(
    Neighbors* near, const Box* box, Py_ssize_t own, const Ranges* ranges, bint equal, int32_t* out,
) noexcept nogil:
    """Slots within reach of slot `own`; `out` has room for all candidates."""
    cdef double me[3]
    cdef double square[PART]
    cdef const double* radius = near.built + 3 * near.apart
    cdef double end = near.reach * near.reach
    cdef double reach
    cdef Py_ssize_t s
    cdef int c, i, k, part, n = 0
    for k in range(ranges.n):
        for c in range(3):
            me[c] = near.built[near.apart * c + own] + ranges.shift[3 * k + c]
        s = ranges.begin[k]
        while s < ranges.end[k]:
            part = <int> min(ranges.end[k] - s, <Py_ssize_t> PART)
            _squares(near, box, me, s, (part + TOGETHER - 1) & ~(TOGETHER - 1), square)
            if equal:
                n += number(square, part, end, <int32_t> s, <int32_t> own, out + n)
            else:
                for i in range(part):
                    reach = (radius[own] + radius[s + i] + near.skin) * (1.0 + MARGIN)
                    # Written always and kept by counting on: which candidates are near is beyond a branch predictor.
                    out[n] = <int32_t> (s + i)
                    n += (square[i] <= reach * reach) & (s + i != own)
            s += part
    return n


cdef inline void _sift(const int32_t* id, int32_t* row, Py_ssize_t root, Py_ssize_t n) noexcept nogil:
    cdef int32_t moving = row[root]
    cdef Py_ssize_t child = 2 * root + 1
    while child < n:
        if child + 1 < n and id[row[child]] < id[row[child + 1]]:
            child += 1
        if id[row[child]] <= id[moving]:
            break
        row[root] = row[child]
        root = child
        child = 2 * root + 1
    row[root] = moving


cdef void _sort_long(const int32_t* id, int32_t* row, Py_ssize_t n) noexcept nogil:
    """Heap sort: in place and n log n whatever comes."""
    cdef Py_ssize_t k
    cdef int32_t largest
    for k in range(n // 2 - 1, -1, -1):
        _sift(id, row, k, n)
    for k in range(n - 1, 0, -1):
        largest = row[0]
        row[0] = row[k]
        row[k] = largest
        _sift(id, row, 0, k)


cdef int _find_row(
    Neighbors* near, const Box* box, Py_ssize_t own, const Ranges* ranges, int32_t* out,
) noexcept nogil:
    """The row of slot `own`, sorted by the numbers of sites; `out` has room for all candidates."""
    cdef int n
    if near.equal:
        n = _near(near, box, own, ranges, True, out)
    else:
        n = _near(near, box, own, ranges, False, out)
    if n <= SHORT_ROW:
        sort_short(near.id, out, n)
    else:
        _sort_long(near.id, out, n)
    return n


def find_row():
    """Where `_find_row` is, for lists to call."""
    cdef FindRow function = _find_row
    return <uintptr_t> function
