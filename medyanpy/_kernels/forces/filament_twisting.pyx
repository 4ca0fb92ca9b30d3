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

Second and third derivatives come from this gradient G = dphi/d(d_a, d_b, p_a, p_b), in series in t (series.pxd) along
a line with the direction z: phi has the coefficients G_0.z of t and G_1.z/2 of t^2, and with delta = phi - phi0

    H z = k (phi_1 G_0 + delta G_1),   D3E[z, z] = 2 k (delta G_2 + phi_1 G_1 + phi_2 G_0)
    K = k G G^T,   z.K'.z = 2 k phi_1 G_1

where K, without negative eigenvalues, is what is left of H at rest.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.elementary cimport atan2_
from medyanpy._kernels.forces.joints cimport (
    BATCH, Chain, find_directors, find_links, push, push_directors, ROOM, ROW_BLOCK, Rows,
)
from medyanpy._kernels.core.local_terms cimport TermForce
from medyanpy._kernels.core.local_terms import in_rows
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.series cimport add_scaled_at, crosses, dots, quotient, root
from medyanpy._kernels.core.vec3 cimport cross, dot


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


# Higher derivatives -----------------------------------------------------------------------------------------------

cdef inline void _across(const int order, const double* u, const double* p, double* along, double* s) noexcept nogil:
    """u.p and s of a link, in series."""
    cdef double m[9]
    cdef double square[3]
    cdef double less[3]
    cdef double part[9]
    cdef int c, k
    dots(order, u, p, along)
    for k in range(order + 1):
        less[k] = -along[k]
    for k in range(order + 1):
        for c in range(3):
            m[3 * k + c] = p[3 * k + c]
        add_scaled_at(k, less, u, m + 3 * k)
    dots(order, m, m, square)
    less[0] = 1.0
    less[1] = less[2] = 0.0
    quotient(order, less, square, less)
    crosses(order, u, m, part)
    for k in range(order + 1):
        for c in range(3):
            s[3 * k + c] = 0.0
        add_scaled_at(k, less, part, s + 3 * k)


cdef inline void _gradient(const int order, const double* at, const double* z, double* g) noexcept nogil:
    """g (order + 1, 12) = dphi/d(d_a, d_b, p_a, p_b) at `at` (12,), along z (12,)."""
    cdef double d[4][9]
    cdef double inverse[2][3]
    cdef double along[2][3]
    cdef double s[2][9]
    cdef double h[9]
    cdef double w[9]
    cdef double both[3]
    cdef double over[3]
    cdef double part[9]
    cdef int c, i, k
    for i in range(4):
        for c in range(9):
            d[i][c] = 0.0
        for c in range(3):
            d[i][c] = at[3 * i + c]
            if order > 0:
                d[i][3 + c] = z[3 * i + c]
    for i in range(2):
        dots(order, d[i], d[i], both)
        root(order, both, both)
        inverse[i][0] = 1.0
        inverse[i][1] = inverse[i][2] = 0.0
        quotient(order, inverse[i], both, inverse[i])
        for k in range(order + 1):
            part[3 * k] = part[3 * k + 1] = part[3 * k + 2] = 0.0
            add_scaled_at(k, inverse[i], d[i], part + 3 * k)
        for c in range(3 * (order + 1)):
            d[i][c] = part[c]
        _across(order, d[i], d[2 + i], along[i], s[i])
    for c in range(3 * (order + 1)):
        h[c] = d[0][c] + d[1][c]
    dots(order, h, h, both)
    # 1/(1 + c)
    over[0] = 2.0
    over[1] = over[2] = 0.0
    quotient(order, over, both, over)
    crosses(order, d[0], d[1], h)
    for i in range(2):
        # Of the direction of the link first.
        for k in range(order + 1):
            if i == 1:
                along[i][k] = -along[i][k]
            w[3 * k] = w[3 * k + 1] = w[3 * k + 2] = 0.0
            add_scaled_at(k, over, h, w + 3 * k)
        for k in range(order + 1):
            add_scaled_at(k, along[i], s[i], w + 3 * k)
        for k in range(order + 1):
            part[0] = part[1] = part[2] = 0.0
            add_scaled_at(k, inverse[i], w, part)
            for c in range(3):
                g[12 * k + 3 * i + c] = part[c]
                g[12 * k + 6 + 3 * i + c] = s[i][3 * k + c] if i == 1 else -s[i][3 * k + c]


cdef inline double _scalar(const double* a, const double* b) noexcept nogil:
    return (dot(a, b) + dot(a + 3, b + 3)) + (dot(a + 6, b + 6) + dot(a + 9, b + 9))


cdef inline bint _excess(const double* at, double cosine, double sine, double* delta) noexcept nogil:
    """delta = phi - phi0; whether there is one."""
    cdef double u[6]
    cdef double m[6]
    cdef double h[3]
    cdef double part[3]
    cdef double length, along, both, x, y
    cdef int c, i
    for i in range(2):
        length = sqrt(dot(at + 3 * i, at + 3 * i))
        if length == 0.0:
            return False
        for c in range(3):
            u[3 * i + c] = at[3 * i + c] / length
        along = dot(u + 3 * i, at + 6 + 3 * i)
        for c in range(3):
            m[3 * i + c] = at[6 + 3 * i + c] - along * u[3 * i + c]
    for c in range(3):
        h[c] = u[c] + u[3 + c]
    both = 0.5 * dot(h, h)
    x = both * dot(m, m + 3) - dot(u + 3, m) * dot(u, m + 3)
    cross(m, m + 3, part)
    y = dot(h, part)
    delta[0] = atan2_(y * cosine - x * sine, x * cosine + y * sine)
    return both > 0.0 and (x != 0.0 or y != 0.0)


cdef class FilamentTwisting(TermForce):
    """Joint energies of twistable filaments.

    node, owned, director (rows + 4,): the table, with two rows before the first and after the last. modulus, pN nm,
    cosine, sine (rows + 4,): k of each row's joint, and of its phi0; 0 where there is none.
    """
    cdef TwistingTask task
    cdef list arrays
    cdef const int32_t[::1] node
    cdef const int32_t[::1] director
    cdef object joints        # rows of them
    cdef Py_ssize_t rows

    def __init__(self, str name, const int32_t[::1] node, const int32_t[::1] owned, const int32_t[::1] director,
                 const double[::1] modulus, const double[::1] cosine, const double[::1] sine):
        self.name = name
        self.acts_on_points = False
        self.derivatives = 3
        self.node = node
        self.director = director
        self.joints = np.flatnonzero((np.asarray(owned) != 0) & (np.asarray(modulus) > 0.0)) - 2
        self.rows = node.shape[0] - 4
        self.arrays = []
        self.task.rows.node = vector(self.arrays, node) + 2
        self.task.rows.owned = vector(self.arrays, owned) + 2
        self.task.rows.director = vector(self.arrays, director) + 2
        self.task.modulus = vector(self.arrays, modulus) + 2
        self.task.cosine = vector(self.arrays, cosine) + 2
        self.task.sine = vector(self.arrays, sine) + 2
        self.task.partial = zeros(self.arrays, n_blocks(self.rows, ROW_BLOCK))
        self.loops(_twisting, &self.task, self.task.partial, ROW_BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        self.energy = 0.0
        over_blocks(_twisting, &self.task, world, self.rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(self.rows, ROW_BLOCK))
        return 0

    def named(self):
        nodes, of_nodes, n = in_rows(self.node, (1, 2, 3), self.joints)
        directors, of_directors, _ = in_rows(self.director, (1, 2), self.joints)
        return np.append(nodes, directors), np.append(of_nodes, of_directors), n

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const Rows* rows = &self.task.rows
        # Two links and two directors, of five beads: d_a = x_1 - x_0, d_b = x_2 - x_1.
        cdef Py_ssize_t bead[5]
        cdef const double* a
        cdef double at[12]
        cdef double z[12]
        cdef double g[36]
        cdef double h[12]
        cdef double delta, slope
        cdef Py_ssize_t row
        cdef int c, i, fault
        for row in range(self.rows):
            if self.task.modulus[row] == 0.0 or not rows.owned[row]:
                continue
            for i in range(3):
                bead[i] = rows.node[row - 1 + i]
            bead[3] = rows.director[row - 1]
            bead[4] = rows.director[row]
            for i in range(2):
                displacement(&world.box, world.x + 3 * bead[i], world.x + 3 * bead[i + 1], at + 3 * i)
                for c in range(3):
                    at[6 + 3 * i + c] = world.x[3 * bead[3 + i] + c]
            if not _excess(at, self.task.cosine[row], self.task.sine[row], &delta):
                continue
            if wanted.add != NULL:
                fault = self.second(wanted, bead, at, self.task.modulus[row], delta)
                if fault != 0:
                    return fault
                continue
            a = wanted.a
            for i in range(2):
                for c in range(3):
                    z[3 * i + c] = a[3 * bead[i + 1] + c] - a[3 * bead[i] + c]
                    z[6 + 3 * i + c] = a[3 * bead[3 + i] + c]
            if wanted.positive:
                _gradient(1, at, z, g)
                slope = 2.0 * self.task.modulus[row] * _scalar(g, z)
                for c in range(12):
                    h[c] = slope * g[12 + c]
            else:
                _gradient(2, at, z, g)
                slope = _scalar(g, z)
                for c in range(12):
                    h[c] = (delta * g[24 + c] + slope * g[12 + c]) + 0.5 * _scalar(g + 12, z) * g[c]
                    h[c] *= 2.0 * self.task.modulus[row]
            for i in range(2):
                for c in range(3):
                    wanted.out[3 * bead[i] + c] -= h[3 * i + c]
                    wanted.out[3 * bead[i + 1] + c] += h[3 * i + c]
                    wanted.out[3 * bead[3 + i] + c] += h[6 + 3 * i + c]
        return 0

    cdef int second(
        self, const Derivative* wanted, const Py_ssize_t* bead, const double* at, double modulus, double delta,
    ) noexcept nogil:
        """Blocks of a joint: those of links and directors, then of beads."""
        cdef double unit[12]
        cdef double g[24]
        cdef double h[144]
        cdef double block[9]
        cdef double sign[5][4]
        cdef double sum
        cdef int c, d, i, j, k, m, fault
        for i in range(5):
            for k in range(4):
                sign[i][k] = 0.0
        sign[0][0] = sign[1][1] = -1.0
        sign[1][0] = sign[2][1] = sign[3][2] = sign[4][3] = 1.0
        for i in range(12):
            unit[i] = 0.0
        _gradient(1, at, unit, g)
        if wanted.positive:
            delta = 0.0
        for j in range(12):
            if delta != 0.0:
                unit[j] = 1.0
                _gradient(1, at, unit, g)
                unit[j] = 0.0
            for i in range(12):
                h[12 * i + j] = modulus * (g[i] * g[j] + delta * g[12 + i])
        for i in range(12):
            for j in range(i):
                h[12 * i + j] = h[12 * j + i] = 0.5 * (h[12 * i + j] + h[12 * j + i])
        for i in range(5):
            for j in range(i + 1):
                for c in range(3):
                    for d in range(3):
                        sum = 0.0
                        for k in range(4):
                            if sign[i][k] == 0.0:
                                continue
                            for m in range(4):
                                sum += sign[i][k] * sign[j][m] * h[12 * (3 * k + c) + 3 * m + d]
                        block[3 * c + d] = sum
                fault = wanted.add(wanted.sink, bead[i], bead[j], block)
                if fault != 0:
                    return fault
        return 0
