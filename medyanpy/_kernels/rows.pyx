"""How a row of a neighbour list is found: who is near one member, sorted; for the instruction set of this machine.

Everything else of neighbour search is in neighbors.pyx, which others cimport, so that it is compiled once for all.
"""
from libc.stdint cimport int32_t, uintptr_t

from medyanpy._kernels.box cimport Box, displacements
from medyanpy._kernels.neighbors cimport MARGIN, FindRow, Neighbors, Ranges
from medyanpy._kernels.together cimport SHORT_ROW, TOGETHER, fetch, number, sort_short

cdef enum:
    # Candidates that are looked at at a time.
    PART = 64


cdef inline int _near(
    Neighbors* near, const Box* box, Py_ssize_t own, const Ranges* ranges, bint equal, int32_t* out,
) noexcept nogil:
    """Slots within reach of slot `own`; `out` has room for all candidates."""
    cdef const double* me = near.built + 4 * own
    cdef double mine[3 * PART]
    cdef double other[3 * PART]
    cdef double d[3 * PART]
    cdef double square = near.reach * near.reach
    cdef double reach
    cdef Py_ssize_t s
    cdef int c, i, k, part, width, filled = 0, n = 0
    for k in range(ranges.n):
        s = ranges.begin[k]
        while s < ranges.end[k]:
            part = <int> min(ranges.end[k] - s, <Py_ssize_t> PART)
            width = (part + TOGETHER - 1) & ~(TOGETHER - 1)
            if width != filled:
                filled = width
                for c in range(3):
                    for i in range(width):
                        mine[width * c + i] = me[c]
            fetch(near.built + 4 * s, NULL, part, width, other)
            displacements(box, mine, other, d, width)
            if equal:
                n += number(d, part, width, square, <int32_t> s, <int32_t> own, out + n)
            else:
                for i in range(part):
                    reach = (me[3] + near.built[4 * (s + i) + 3] + near.skin) * (1.0 + MARGIN)
                    # Written always and kept by counting on: which candidates are near is beyond a branch predictor.
                    out[n] = <int32_t> (s + i)
                    n += (
                        d[i] * d[i] + d[width + i] * d[width + i] + d[2 * width + i] * d[2 * width + i] <= reach * reach
                    ) & (s + i != own)
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
