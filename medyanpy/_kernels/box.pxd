"""The space that beads live in. Every displacement between two beads is asked for here, and nowhere else."""


cdef struct Box:
    # Open space has no parameters; a periodic box will hold its lengths here.
    int periodic


cdef inline void displacement(const Box* box, const double* a, const double* b, double* out) noexcept nogil:
    """out = b - a, the vector that leads from a to b."""
    out[0] = b[0] - a[0]
    out[1] = b[1] - a[1]
    out[2] = b[2] - a[2]


cdef inline void displacements(const Box* box, const double* a, const double* b, double* out, int n) noexcept nogil:
    """The same of n pairs at once, components one after another: a, b and out are (3, n) and do not overlap."""
    cdef int k
    for k in range(3 * n):
        out[k] = b[k] - a[k]
