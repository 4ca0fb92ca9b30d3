"""Twisting of filaments. Notation and tables: joints.pxd.

    E = sum over joints of k/2 (phi - phi0)^2,   -pi < phi - phi0 <= pi

phi turns the director p_a of the link before, carried along from u_a to u_b, about u_b to the director p_b of the link
after. With the parts of directors across their links, m = p - (u.p) u, and c = u_a.u_b,

    cos phi ~ x = (1 + c) m_a.m_b - (u_b.m_a)(u_a.m_b),   sin phi ~ y = (u_a + u_b).(m_a x m_b)
    x^2 + y^2 = ((1 + c) |m_a| |m_b|)^2

which are turned by -phi0 before the angle is taken. The gradient, with s = u x p / |m|^2 of each link:

    dphi/dp_a = -s_a,   dphi/dp_b = s_b
    dphi/du_a = (u_a x u_b)/(1 + c) + (u_a.p_a) s_a,   dphi/du_b = (u_a x u_b)/(1 + c) - (u_b.p_b) s_b

All four are across the links. Of a joint that is folded back exactly, or has a director along its link, there is no
angle: it has no energy and no force.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.arrays cimport vector, zeros
from medyanpy._kernels.elementary cimport atan2_
from medyanpy._kernels.joints cimport (
    BATCH, Chain, find_directors, find_links, push, push_directors, ROOM, ROW_BLOCK, Rows,
)
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport Operation, World


cdef struct TwistingTask:
    Rows rows
    const double* modulus     # k of the joint in each row, 0: none
    const double* cosine      # of phi0
    const double* sine
    double* partial


# What is found of the links of a batch, and of the joints.
cdef struct Across:
    double m[3][ROOM]
    double s[3][ROOM]
    double along[ROOM]        # u.p
    double w[3][ROOM]         # slope (u_a x u_b)/(1 + c)


cdef inline void _directions(const Chain* chain, Across* a, int n) noexcept nogil:
    """m, s and along of links 0 to n + 2 of a batch."""
    cdef double along, square, inverse
    cdef int k, c
    for k in range(n + 3):
        along = (chain.u[0][k] * chain.p[0][k] + chain.u[1][k] * chain.p[1][k]) + chain.u[2][k] * chain.p[2][k]
        a.along[k] = along
        for c in range(3):
            a.m[c][k] = chain.p[c][k] - along * chain.u[c][k]
        square = (a.m[0][k] * a.m[0][k] + a.m[1][k] * a.m[1][k]) + a.m[2][k] * a.m[2][k]
        inverse = 1.0 / square
        inverse = inverse if square > 0.0 else 0.0
        a.s[0][k] = inverse * (chain.u[1][k] * a.m[2][k] - chain.u[2][k] * a.m[1][k])
        a.s[1][k] = inverse * (chain.u[2][k] * a.m[0][k] - chain.u[0][k] * a.m[2][k])
        a.s[2][k] = inverse * (chain.u[0][k] * a.m[1][k] - chain.u[1][k] * a.m[0][k])


cdef inline void _angles(
    Chain* chain, Across* a, const TwistingTask* t, Py_ssize_t first, int n, double* energy,
) noexcept nogil:
    """Slope, dE/dphi, w and energy of joints 1 to n + 2 of a batch."""
    cdef const double* modulus = t.modulus + first - 2
    cdef const double* cosine = t.cosine + first - 2
    cdef const double* sine = t.sine + first - 2
    cdef double h0, h1, h2, mm, um, mu, both, x, y, angle, slope, w
    cdef bint there
    cdef int k
    for k in range(1, n + 3):
        h0 = chain.u[0][k - 1] + chain.u[0][k]
        h1 = chain.u[1][k - 1] + chain.u[1][k]
        h2 = chain.u[2][k - 1] + chain.u[2][k]
        # 1 + c, with its digits at folded joints too.
        both = 0.5 * ((h0 * h0 + h1 * h1) + h2 * h2)
        mm = (a.m[0][k - 1] * a.m[0][k] + a.m[1][k - 1] * a.m[1][k]) + a.m[2][k - 1] * a.m[2][k]
        um = (chain.u[0][k] * a.m[0][k - 1] + chain.u[1][k] * a.m[1][k - 1]) + chain.u[2][k] * a.m[2][k - 1]
        mu = (chain.u[0][k - 1] * a.m[0][k] + chain.u[1][k - 1] * a.m[1][k]) + chain.u[2][k - 1] * a.m[2][k]
        x = both * mm - um * mu
        y = (
            h0 * (a.m[1][k - 1] * a.m[2][k] - a.m[2][k - 1] * a.m[1][k])
            + h1 * (a.m[2][k - 1] * a.m[0][k] - a.m[0][k - 1] * a.m[2][k])
        ) + h2 * (a.m[0][k - 1] * a.m[1][k] - a.m[1][k - 1] * a.m[0][k])
        angle = atan2_(y * cosine[k] - x * sine[k], x * cosine[k] + y * sine[k])
        there = (modulus[k] > 0.0) & (both > 0.0) & ((x != 0.0) | (y != 0.0))
        slope = modulus[k] * angle if there else 0.0
        chain.slope[k] = slope
        energy[k] = 0.5 * slope * angle if there else 0.0
        w = slope / both if there else 0.0
        a.w[0][k] = w * (chain.u[1][k - 1] * chain.u[2][k] - chain.u[2][k - 1] * chain.u[1][k])
        a.w[1][k] = w * (chain.u[2][k - 1] * chain.u[0][k] - chain.u[0][k - 1] * chain.u[2][k])
        a.w[2][k] = w * (chain.u[0][k - 1] * chain.u[1][k] - chain.u[1][k - 1] * chain.u[0][k])


cdef int _twisting(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef TwistingTask* t = <TwistingTask*> task
    cdef Chain chain
    cdef Across a
    cdef double energy[ROOM]
    cdef double total = 0.0
    cdef Py_ssize_t batch, start
    cdef int c, k, n
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        find_links(&chain, world, &t.rows, start, n)
        find_directors(&chain, world, &t.rows, start, n)
        _directions(&chain, &a, n)
        _angles(&chain, &a, t, start, n, energy)
        for c in range(3):
            for k in range(1, n + 2):
                chain.g[c][k] = (chain.slope[k] - chain.slope[k + 1]) * a.s[c][k]
                chain.t[c][k] = chain.inverse[k] * ((a.w[c][k] + a.w[c][k + 1]) - a.along[k] * chain.g[c][k])
        push(&chain, world, &t.rows, start, n)
        push_directors(&chain, world, &t.rows, start, n)
        if world.want_energy:
            for k in range(2, n + 2):
                if t.rows.owned[start - 2 + k]:
                    total += energy[k]
    t.partial[first // ROW_BLOCK] = total
    return 0


cdef class FilamentTwisting(Operation):
    """Joint energies of twistable filaments.

    node, owned, director (rows + 4,): the table, with two rows before the first and after the last. modulus, pN nm,
    cosine, sine (rows + 4,): k of each row's joint, and of its phi0; 0 where there is none.
    """
    cdef TwistingTask task
    cdef list arrays
    cdef Py_ssize_t rows

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const int32_t[::1] director,
                 const double[::1] modulus, const double[::1] cosine, const double[::1] sine):
        self.name = name
        self.acts_on_points = False
        self.rows = node.shape[0] - 4
        self.arrays = []
        self.task.rows.node = vector(self.arrays, node) + 2
        self.task.rows.owned = vector(self.arrays, owned) + 2
        self.task.rows.director = vector(self.arrays, director) + 2
        self.task.modulus = vector(self.arrays, modulus) + 2
        self.task.cosine = vector(self.arrays, cosine) + 2
        self.task.sine = vector(self.arrays, sine) + 2
        self.task.partial = zeros(self.arrays, n_blocks(self.rows, ROW_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        self.energy = 0.0
        over_blocks(_twisting, &self.task, world, self.rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(self.rows, ROW_BLOCK))
        return 0
