"""Energies of the angles between successive links of filaments: what their kernels share.

A table has a row for every node, filament after filament; row r also stands for the link from its node to that of row
r + 1, and for the joint between the links r - 1 and r. A ring has two rows more at both ends, which repeat the nodes
found there, and so has the whole table: what a row needs is always in the two before it and the two after it. Links
between different filaments are in no joint.

    c = u_a.u_b of the links a, b of a joint, u = d/|d|,   e = 1 - c = |u_b - u_a|^2 / 2
    dc/dd_a = (u_b - c u_a)/|d_a|,   u_b - c u_a = (u_b - u_a) + e u_a
    dc/dd_b = (u_a - c u_b)/|d_b|,   u_a - c u_b = (u_a - u_b) + e u_b
    F_i = t_i - t_(i-1),   t_l = dE/dd_l,   d_l = x_(l+1) - x_l

Links of twistable filaments have directors p_l, which get forces -g_l, g_l = dE/dp_l.

Differences of unit vectors keep their digits where links are almost parallel. Each row is computed from its
neighbours alone and owned by one block: bits depend on no thread, and nothing is stored between passes.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.program cimport World

cdef enum:
    # Rows are worked on this many at a time, in loops that the compiler turns into vectors.
    BATCH = 128
    # With those before and after: links k and joints k of a batch are in row first - 2 + k.
    ROOM = 132
    # Rows per block.
    ROW_BLOCK = 512


cdef struct Rows:
    const int32_t* node       # place of the node; from row -2 to two after the last
    const int32_t* owned      # whether the row is where its node and link get their forces
    const int32_t* director   # place of the director of the row's link, -1: none; for kernels that ask for directors


cdef struct Chain:
    double u[3][ROOM]         # unit vectors along the links; 0 where a link has no length
    double inverse[ROOM]      # one over their lengths; likewise
    double slope[ROOM]        # dE/dc of each joint, 0 where there is none
    double t[3][ROOM]         # dE/dd of each link
    # Parts of t of the two links of a joint.
    double a[3][ROOM]
    double b[3][ROOM]
    # Of twistable filaments:
    double p[3][ROOM]         # directors; 0 where there is none
    double g[3][ROOM]         # dE/dp of each link


cdef inline void find_links(Chain* chain, World* world, const Rows* rows, Py_ssize_t first, int n) noexcept nogil:
    """The links of rows first - 2 to first + n."""
    cdef const int32_t* node = rows.node + first - 2
    cdef double d[3]
    cdef double square, inverse
    cdef int k
    for k in range(n + 3):
        displacement(
            &world.box, world.x + 3 * <Py_ssize_t> node[k], world.x + 3 * <Py_ssize_t> node[k + 1], d)
        chain.u[0][k] = d[0]
        chain.u[1][k] = d[1]
        chain.u[2][k] = d[2]
    for k in range(n + 3):
        square = (chain.u[0][k] * chain.u[0][k] + chain.u[1][k] * chain.u[1][k]) + chain.u[2][k] * chain.u[2][k]
        inverse = 1.0 / sqrt(square)
        # Two nodes in one place have no direction. With zero for it, joints there pull at nothing: the mean over all.
        inverse = inverse if square > 0.0 else 0.0
        chain.inverse[k] = inverse
        chain.u[0][k] *= inverse
        chain.u[1][k] *= inverse
        chain.u[2][k] *= inverse


cdef inline double one_minus_cosine(const Chain* chain, int k) noexcept nogil:
    """e of joint k."""
    cdef double x = chain.u[0][k] - chain.u[0][k - 1]
    cdef double y = chain.u[1][k] - chain.u[1][k - 1]
    cdef double z = chain.u[2][k] - chain.u[2][k - 1]
    return 0.5 * ((x * x + y * y) + z * z)


cdef inline void find_directors(Chain* chain, World* world, const Rows* rows, Py_ssize_t first, int n) noexcept nogil:
    """Those of the same links as `find_links`."""
    cdef const int32_t* director = rows.director + first - 2
    cdef const double* p
    cdef int k, c
    for k in range(n + 3):
        if director[k] >= 0:
            p = world.x + 3 * <Py_ssize_t> director[k]
            for c in range(3):
                chain.p[c][k] = p[c]
        else:
            for c in range(3):
                chain.p[c][k] = 0.0


cdef inline void pull(Chain* chain, int n) noexcept nogil:
    """t of links 1 to n + 1 of a batch, from the slopes of its joints 1 to n + 2."""
    cdef double e, before, after, w
    cdef bint there
    cdef int k, c
    for k in range(1, n + 3):
        e = one_minus_cosine(chain, k)
        before = chain.slope[k] * chain.inverse[k - 1]
        after = chain.slope[k] * chain.inverse[k]
        there = (before != 0.0) & (after != 0.0)
        for c in range(3):
            w = chain.u[c][k] - chain.u[c][k - 1]
            chain.a[c][k] = before * (w + e * chain.u[c][k - 1]) if there else 0.0
            chain.b[c][k] = after * (e * chain.u[c][k] - w) if there else 0.0
    for c in range(3):
        for k in range(1, n + 2):
            chain.t[c][k] = chain.a[c][k + 1] + chain.b[c][k]


cdef inline void push(Chain* chain, World* world, const Rows* rows, Py_ssize_t first, int n) noexcept nogil:
    """Add the forces on the nodes of rows first to first + n - 1."""
    cdef Py_ssize_t row
    cdef double* f
    cdef int k
    for k in range(2, n + 2):
        row = first - 2 + k
        if rows.owned[row]:
            f = world.f + 3 * <Py_ssize_t> rows.node[row]
            f[0] += chain.t[0][k] - chain.t[0][k - 1]
            f[1] += chain.t[1][k] - chain.t[1][k - 1]
            f[2] += chain.t[2][k] - chain.t[2][k - 1]


cdef inline void push_directors(
    Chain* chain, World* world, const Rows* rows, Py_ssize_t first, int n,
) noexcept nogil:
    """Add the forces on the directors of the links of rows first to first + n - 1."""
    cdef Py_ssize_t row
    cdef double* f
    cdef int k
    for k in range(2, n + 2):
        row = first - 2 + k
        if rows.owned[row] and rows.director[row] >= 0:
            f = world.f + 3 * <Py_ssize_t> rows.director[row]
            f[0] -= chain.g[0][k]
            f[1] -= chain.g[1][k]
            f[2] -= chain.g[2][k]
