"""The space that beads live in. Every displacement between two beads is asked for here, and nowhere else."""


cdef struct Box:
    int periodic              # whether any direction is
    double[3] length          # nm; 0 of directions that are open
    double[3] inverse         # 1/nm; 0 likewise


# The longest edge, along each axis, that may flip or come to be by a flip, as a share of the box.
cdef extern from *:
    """
    #define MEDYANPY_LONGEST_FLIPPED 0.45
    """
    const double LONGEST_FLIPPED "MEDYANPY_LONGEST_FLIPPED"


cdef inline double nearest_whole(double y) noexcept nogil:
    """Of |y| < 2^51; of two, the even one."""
    # 3 * 2^51, added and taken away again: the same on any processor, in the time of two sums.
    return (y + 6755399441055744.0) - 6755399441055744.0


cdef inline void nearest_image(const Box* box, double* d) noexcept nogil:
    """Of all images of a vector, the one with the shortest components; of two, either way round the same."""
    cdef int c
    if box.periodic:
        for c in range(3):
            d[c] -= box.length[c] * nearest_whole(d[c] * box.inverse[c])


cdef inline void displacement(const Box* box, const double* a, const double* b, double* out) noexcept nogil:
    """out = b - a, the vector that leads from a to the nearest image of b."""
    out[0] = b[0] - a[0]
    out[1] = b[1] - a[1]
    out[2] = b[2] - a[2]
    nearest_image(box, out)


cdef inline void displacements(const Box* box, const double* a, const double* b, double* out, int n) noexcept nogil:
    """The same of n pairs at once, components one after another: a, b and out are (3, n) and do not overlap."""
    cdef int c, k
    cdef double d
    for c in range(3):
        if box.length[c] > 0.0:
            for k in range(n * c, n * (c + 1)):
                d = b[k] - a[k]
                out[k] = d - box.length[c] * nearest_whole(d * box.inverse[c])
        else:
            for k in range(n * c, n * (c + 1)):
                out[k] = b[k] - a[k]


cdef inline void displacements_from(
    const Box* box, const double* a, const double* b, double* out, int n,
) noexcept nogil:
    """The same, to the bit, from one place a to n others, b and out (3, n), all of them images next to the origin: none
    is further than one box away, and that on the other side of the origin."""
    cdef double d, half, length, x
    cdef int c, k
    for c in range(3):
        x = a[c]
        length = box.length[c]
        half = 0.5 * length
        if not length > 0.0:
            for k in range(n * c, n * (c + 1)):
                out[k] = b[k] - x
        elif x > 0.0:
            for k in range(n * c, n * (c + 1)):
                d = b[k] - x
                out[k] = d - (-length if d < -half else 0.0)
        else:
            for k in range(n * c, n * (c + 1)):
                d = b[k] - x
                out[k] = d - (length if d > half else 0.0)


cdef inline void set_lengths(Box* box, const double* length) noexcept nogil:
    """A box of these lengths, (3,) nm; 0 in directions that are open."""
    cdef int c
    box.periodic = 0
    for c in range(3):
        box.length[c] = length[c]
        box.inverse[c] = 1.0 / length[c] if length[c] > 0.0 else 0.0
        box.periodic |= length[c] > 0.0


cdef inline bint has_lengths(const Box* box, const double* length) noexcept nogil:
    """Whether these are its lengths: what was listed in a box of others is stale, though no bead has moved."""
    return box.length[0] == length[0] and box.length[1] == length[1] and box.length[2] == length[2]


cdef inline void sides_of(const Box* box, Box* out) noexcept nogil:
    """8 boxes, of which that of number b is periodic in those directions alone whose bits are in b: for pairs of which
    it is known that they lie across no other side of the box."""
    cdef int b, c
    for b in range(8):
        out[b].periodic = 0
        for c in range(3):
            out[b].length[c] = box.length[c] if b >> c & 1 else 0.0
            out[b].inverse[c] = box.inverse[c] if b >> c & 1 else 0.0
            out[b].periodic |= out[b].length[c] > 0.0
