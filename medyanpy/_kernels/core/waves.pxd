"""Plane waves that fit into a periodic box: phases of points, and the list of all waves up to some number per length.

    e^(i k.x),   k = 2 pi (m_x / L_x, m_y / L_y, m_z / L_z),   0 < |k| <= cutoff

Of each two opposite waves one is listed: sums of real numbers take it twice. Waves follow each other in rows of one
m_x and m_y. Phases along each axis are kept for every point, and multiplied.

Derived in docs/theory/lattice_sums.md.
"""
from libc.math cimport M_PI, floor, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc

from medyanpy._kernels.core.box cimport nearest_whole
from medyanpy._kernels.core.elementary cimport sincos2pi


cdef enum:
    # Points whose phases are multiplied together, one in each lane: vectors as wide as any instruction set has.
    LANES = 16


cdef struct WaveRow:
    int x, y                  # m_x >= 0, and m_y
    int first, last           # m_z, the last one past the end
    Py_ssize_t wave           # the number of the first


cdef struct Waves:
    Py_ssize_t n              # points
    Py_ssize_t stride         # n, up to whole LANES
    double length[3]          # of the box that waves are listed for
    double cutoff
    int most[3]               # largest m along each axis
    Py_ssize_t at[3]          # where phases of each axis begin, in units of 2 * stride
    double* phase             # of m from 0 on cosines, then sines: (.., 2, stride)
    Py_ssize_t room_phase
    WaveRow* rows             # (n_rows,)
    Py_ssize_t n_rows, room_rows
    Py_ssize_t n_waves
    double* sum               # (n_waves, width) work space
    Py_ssize_t width, room_sum


cdef inline void start_waves(Waves* w, Py_ssize_t n, Py_ssize_t stride, Py_ssize_t width) noexcept nogil:
    w.n = n
    w.stride = stride
    w.width = width
    w.length[0] = w.length[1] = w.length[2] = 0.0
    w.phase = NULL
    w.rows = NULL
    w.sum = NULL
    w.n_rows = w.n_waves = w.room_phase = w.room_rows = w.room_sum = 0


cdef inline void free_waves(Waves* w) noexcept nogil:
    free(w.phase)
    free(w.rows)
    free(w.sum)


cdef inline bint grown(void** array, Py_ssize_t* room, Py_ssize_t n, size_t size) noexcept nogil:
    """Make room for n items. False: there is no memory."""
    cdef void* more
    if n > room[0]:
        more = realloc(array[0], n * size)
        if more == NULL:
            return False
        array[0] = more
        room[0] = n
    return True


cdef inline bint list_waves(Waves* w, const double* length, double cutoff) noexcept nogil:
    """Waves of this box up to |k| = cutoff. False: there is no memory."""
    cdef double k[3]
    cdef double rest
    cdef int c, x, y, top
    cdef WaveRow* row
    if (w.length[0] == length[0] and w.length[1] == length[1] and w.length[2] == length[2] and w.cutoff == cutoff):
        return True
    # If there is no memory, what is listed is of nothing.
    w.cutoff = 0.0
    for c in range(3):
        w.length[c] = length[c]
        w.most[c] = <int> floor(cutoff * length[c] / (2.0 * M_PI))
    w.at[0] = 0
    w.at[1] = w.most[0] + 1
    w.at[2] = w.at[1] + w.most[1] + 1
    w.n_rows = w.n_waves = 0
    if not grown(<void**> &w.phase, &w.room_phase, 2 * w.stride * (w.at[2] + w.most[2] + 1), sizeof(double)):
        return False
    if not grown(<void**> &w.rows, &w.room_rows, (w.most[0] + 1) * (2 * w.most[1] + 1), sizeof(WaveRow)):
        return False
    for x in range(w.most[0] + 1):
        for y in range(-w.most[1] if x > 0 else 0, w.most[1] + 1):
            k[0] = 2.0 * M_PI * x / length[0]
            k[1] = 2.0 * M_PI * y / length[1]
            rest = cutoff * cutoff - k[0] * k[0] - k[1] * k[1]
            if rest < 0.0:
                continue
            top = <int> floor(sqrt(rest) * length[2] / (2.0 * M_PI))
            top = top if top < w.most[2] else w.most[2]
            row = w.rows + w.n_rows
            row.x = x
            row.y = y
            row.first = -top if x > 0 or y > 0 else 1
            row.last = top + 1
            row.wave = w.n_waves
            if row.last > row.first:
                w.n_waves += row.last - row.first
                w.n_rows += 1
    if not grown(<void**> &w.sum, &w.room_sum, w.n_waves * w.width, sizeof(double)):
        return False
    w.cutoff = cutoff
    return True


cdef inline void set_phases(Waves* w, const double* x, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Of points first to last, whole LANES; x (3, stride)."""
    cdef double* own
    cdef double c1, s1, turn
    cdef Py_ssize_t i
    cdef int c, m
    for c in range(3):
        own = w.phase + 2 * w.stride * w.at[c]
        for i in range(first, last):
            turn = x[c * w.stride + i] / w.length[c]
            own[i] = 1.0
            own[w.stride + i] = 0.0
            if w.most[c] > 0:
                sincos2pi(turn - nearest_whole(turn), &own[3 * w.stride + i], &own[2 * w.stride + i])
        for m in range(2, w.most[c] + 1):
            own = w.phase + 2 * w.stride * (w.at[c] + m)
            for i in range(first, last):
                c1 = w.phase[2 * w.stride * (w.at[c] + 1) + i]
                s1 = w.phase[2 * w.stride * (w.at[c] + 1) + w.stride + i]
                own[i] = own[i - 2 * w.stride] * c1 - own[i - w.stride] * s1
                own[w.stride + i] = own[i - 2 * w.stride] * s1 + own[i - w.stride] * c1


cdef inline void row_phase(const Waves* w, const WaveRow* row, Py_ssize_t start, double* c, double* s) noexcept nogil:
    """Cosines and sines of k_x x + k_y y of LANES points."""
    cdef const double* a = w.phase + 2 * w.stride * row.x + start
    cdef const double* b = w.phase + 2 * w.stride * (w.at[1] + (row.y if row.y >= 0 else -row.y)) + start
    cdef double sign = 1.0 if row.y >= 0 else -1.0, sine
    cdef int lane
    for lane in range(LANES):
        sine = sign * b[w.stride + lane]
        c[lane] = a[lane] * b[lane] - a[w.stride + lane] * sine
        s[lane] = a[lane] * sine + a[w.stride + lane] * b[lane]


cdef inline void wave_phase(
    const Waves* w, int z, Py_ssize_t start, const double* c, const double* s, double* cosine, double* sine,
) noexcept nogil:
    """Of these, those of k.x of the wave with m_z = z."""
    cdef const double* a = w.phase + 2 * w.stride * (w.at[2] + (z if z >= 0 else -z)) + start
    cdef double sign = 1.0 if z >= 0 else -1.0, own
    cdef int lane
    for lane in range(LANES):
        own = sign * a[w.stride + lane]
        cosine[lane] = c[lane] * a[lane] - s[lane] * own
        sine[lane] = c[lane] * own + s[lane] * a[lane]


cdef inline void wave_vector(const Waves* w, const WaveRow* row, int z, double* k) noexcept nogil:
    k[0] = 2.0 * M_PI * row.x / w.length[0]
    k[1] = 2.0 * M_PI * row.y / w.length[1]
    k[2] = 2.0 * M_PI * z / w.length[2]
