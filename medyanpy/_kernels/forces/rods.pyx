"""Elastic rods: shear, extension, bending and twist between successive nodes, and loads on nodes.

Joint n lies between the nodes a and b = a + 1. With q = (q_a + q_b)/|q_a + q_b|, its rotation D (columns d_i), and
d_q = q_b - q_a, where q_b has the sign that is nearer to q_a,

    E = l/2 sum_i [C_i (G_i - G0_i)^2 + B_i (O_i - O0_i)^2],   G = D^T (x_b - x_a)/l,   O = v/l,   v = 2 q^-1 d_q

(48). With F_i = C_i (G_i - G0_i), M_i = B_i (O_i - O0_i), c = |q_a + q_b|/2, N = l G x F and T = M x v/2, the exact
derivatives by small rotations s_a, s_b of the nodes about their own axes are

    dE/d(s_a + s_b) = P = T - N/2,    dE/d(s_b - s_a) = Q = c M + (T - N) x v/(8 c)
    torques Q - P on a, -(P + Q) on b;    forces D F on a, -D F on b

which is (53) and (54) in the frames of the nodes. Derivation: "Elastic rods" in the documentation.

A table has a row for every node, rod after rod; row r also stands for the joint between its node and that of row r + 1.
A ring has one row more at both ends, which repeats the node found there, and so has the whole table. Each row is
computed from its neighbours alone and owned by one block: bits depend on no thread.

Units: nm, pN, pN nm^2. Source: Ladd & Misra, "A symplectic integration method for elastic filaments" (2009).
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.local_terms cimport ExactTermForce
from medyanpy._kernels.core.local_terms import in_rows
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport Operation, World
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef enum:
    # Joints are worked on this many at a time, in loops that the compiler turns into vectors.
    BATCH = 64
    # With the one before: joint k of a batch is in row first - 1 + k.
    ROOM = 65
    # Rows per block.
    ROW_BLOCK = 512
    # What a joint is made of: stiffnesses, then rest strains, each of shear, extension, bending, twist.
    NUMBERS = 12


cdef struct RodTask:
    const int32_t* node       # row among oriented beads; from row -1 to one after the last
    const int32_t* owned      # whether the row is where its node gets its force
    const double* length      # of the joint of each row, 0: none
    const double* numbers     # (rows, NUMBERS), or one for all joints
    bint alike                # whether they are the same
    double* partial


cdef struct Joints:
    double d[3][ROOM]         # x_b - x_a
    double p[4][ROOM + 1]     # orientations of nodes
    double c[NUMBERS][ROOM]
    double length[ROOM]
    double f[3][ROOM]         # force on a
    double on_a[3][ROOM]      # torques
    double on_b[3][ROOM]
    double energy[ROOM]


cdef inline void _find(Joints* j, World* world, const RodTask* t, Py_ssize_t first, int n) noexcept nogil:
    """The n + 1 joints of rows first - 1 to first + n - 1."""
    cdef const int32_t* node = t.node + first - 1
    cdef const double* x = world.x + 3 * world.first_oriented
    cdef const double* numbers
    cdef const double* q
    cdef double d[3]
    cdef int k, i
    for k in range(n + 2):
        q = world.orientation + 4 * <Py_ssize_t> node[k]
        for i in range(4):
            j.p[i][k] = q[i]
    for k in range(n + 1):
        displacement(&world.box, x + 3 * <Py_ssize_t> node[k], x + 3 * <Py_ssize_t> node[k + 1], d)
        for i in range(3):
            j.d[i][k] = d[i]
        j.length[k] = t.length[first - 1 + k]
    if not t.alike:
        numbers = t.numbers + NUMBERS * (first - 1)
        for k in range(n + 1):
            for i in range(NUMBERS):
                j.c[i][k] = numbers[NUMBERS * k + i]


cdef inline void _strain(Joints* j, int n) noexcept nogil:
    """Forces, torques and energies of the first n joints; zero where there is none."""
    cdef double w, x, y, z, sign, square, inverse, c, there, rate, length, a0, a1, a2, a3, b0, b1, b2, b3
    cdef double g0, g1, g2, v0, v1, v2, f0, f1, f2, m0, m1, m2, n0, n1, n2, t0, t1, t2, p0, p1, p2, s0, s1, s2
    cdef double r00, r01, r02, r10, r11, r12, r20, r21, r22, d0, d1, d2, energy
    cdef int k
    for k in range(n):
        a0 = j.p[0][k]
        a1 = j.p[1][k]
        a2 = j.p[2][k]
        a3 = j.p[3][k]
        b0 = j.p[0][k + 1]
        b1 = j.p[1][k + 1]
        b2 = j.p[2][k + 1]
        b3 = j.p[3][k + 1]
        # q and -q are the same orientation.
        sign = 1.0 if (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3) >= 0.0 else -1.0
        b0 *= sign
        b1 *= sign
        b2 *= sign
        b3 *= sign
        w = a0 + b0
        x = a1 + b1
        y = a2 + b2
        z = a3 + b3
        square = (w * w + x * x) + (y * y + z * z)
        inverse = 1.0 / sqrt(square)
        c = 0.5 * square * inverse
        w *= inverse
        x *= inverse
        y *= inverse
        z *= inverse
        b0 = 2.0 * (b0 - a0)
        b1 = 2.0 * (b1 - a1)
        b2 = 2.0 * (b2 - a2)
        b3 = 2.0 * (b3 - a3)
        v0 = ((w * b1 - x * b0) + z * b2) - y * b3
        v1 = ((w * b2 - y * b0) + x * b3) - z * b1
        v2 = ((w * b3 - z * b0) + y * b1) - x * b2
        r00 = 1.0 - 2.0 * (y * y + z * z)
        r01 = 2.0 * (x * y - w * z)
        r02 = 2.0 * (x * z + w * y)
        r10 = 2.0 * (x * y + w * z)
        r11 = 1.0 - 2.0 * (x * x + z * z)
        r12 = 2.0 * (y * z - w * x)
        r20 = 2.0 * (x * z - w * y)
        r21 = 2.0 * (y * z + w * x)
        r22 = 1.0 - 2.0 * (x * x + y * y)
        d0 = j.d[0][k]
        d1 = j.d[1][k]
        d2 = j.d[2][k]
        g0 = (r00 * d0 + r10 * d1) + r20 * d2
        g1 = (r01 * d0 + r11 * d1) + r21 * d2
        g2 = (r02 * d0 + r12 * d1) + r22 * d2
        length = j.length[k]
        there = 1.0 if length > 0.0 else 0.0
        rate = 1.0 / (length if length > 0.0 else 1.0)
        a0 = g0 * rate - j.c[6][k]
        a1 = g1 * rate - j.c[7][k]
        a2 = g2 * rate - j.c[8][k]
        f0 = there * j.c[0][k] * a0
        f1 = there * j.c[1][k] * a1
        f2 = there * j.c[2][k] * a2
        energy = (f0 * a0 + f1 * a1) + f2 * a2
        a0 = v0 * rate - j.c[9][k]
        a1 = v1 * rate - j.c[10][k]
        a2 = v2 * rate - j.c[11][k]
        m0 = there * j.c[3][k] * a0
        m1 = there * j.c[4][k] * a1
        m2 = there * j.c[5][k] * a2
        j.energy[k] = 0.5 * length * (energy + ((m0 * a0 + m1 * a1) + m2 * a2))
        n0 = g1 * f2 - g2 * f1
        n1 = g2 * f0 - g0 * f2
        n2 = g0 * f1 - g1 * f0
        t0 = 0.5 * (m1 * v2 - m2 * v1)
        t1 = 0.5 * (m2 * v0 - m0 * v2)
        t2 = 0.5 * (m0 * v1 - m1 * v0)
        p0 = t0 - 0.5 * n0
        p1 = t1 - 0.5 * n1
        p2 = t2 - 0.5 * n2
        t0 -= n0
        t1 -= n1
        t2 -= n2
        rate = 0.125 / c
        s0 = c * m0 + rate * (t1 * v2 - t2 * v1)
        s1 = c * m1 + rate * (t2 * v0 - t0 * v2)
        s2 = c * m2 + rate * (t0 * v1 - t1 * v0)
        j.on_a[0][k] = s0 - p0
        j.on_a[1][k] = s1 - p1
        j.on_a[2][k] = s2 - p2
        j.on_b[0][k] = -(p0 + s0)
        j.on_b[1][k] = -(p1 + s1)
        j.on_b[2][k] = -(p2 + s2)
        j.f[0][k] = (r00 * f0 + r01 * f1) + r02 * f2
        j.f[1][k] = (r10 * f0 + r11 * f1) + r12 * f2
        j.f[2][k] = (r20 * f0 + r21 * f1) + r22 * f2


cdef int _rods(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef RodTask* t = <RodTask*> task
    cdef Joints j
    cdef double total = 0.0
    cdef double* f
    cdef double* torque
    cdef Py_ssize_t batch, start, node
    cdef int k, i, n
    if t.alike:
        for i in range(NUMBERS):
            for k in range(ROOM):
                j.c[i][k] = t.numbers[i]
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = <int> min(<Py_ssize_t> BATCH, last - start)
        _find(&j, world, t, start, n)
        _strain(&j, n + 1)
        for k in range(1, n + 1):
            if not t.owned[start - 1 + k]:
                continue
            node = t.node[start - 1 + k]
            f = world.f + 3 * (world.first_oriented + node)
            torque = world.torque + 3 * node
            for i in range(3):
                f[i] += j.f[i][k] - j.f[i][k - 1]
                torque[i] += j.on_a[i][k] + j.on_b[i][k - 1]
            total += j.energy[k]
    t.partial[first // ROW_BLOCK] = total
    return 0


cdef class RodElasticity(ExactTermForce):
    """The elastic energy of rods.

    first: place of the first oriented bead. node, owned (rows + 2,): the table, with one row before the first and after
    the last. length (rows + 2,): of the joint of each row, 0 where there is none; numbers (rows + 2, 12), or (1, 12):
    C, B, G0, O0 of each, or of all.
    """
    cdef RodTask task
    cdef list arrays
    cdef object places        # of nodes, by row from -1 on
    cdef object joints        # rows of them
    cdef Py_ssize_t rows

    def __init__(self, str name, Py_ssize_t first, const int32_t[::1] node, const int32_t[::1] owned,
                 const double[::1] length, const double[:, ::1] numbers):
        self.name = name
        self.acts_on_points = False
        self.rows = node.shape[0] - 2
        self.places = first + np.asarray(node)
        self.joints = np.flatnonzero((np.asarray(owned) != 0) & (np.asarray(length) > 0.0)) - 1
        self.arrays = []
        self.task.node = vector(self.arrays, node) + 1
        self.task.owned = vector(self.arrays, owned) + 1
        self.task.length = vector(self.arrays, length) + 1
        self.task.alike = numbers.shape[0] == 1
        self.task.numbers = table(self.arrays, numbers) + (0 if self.task.alike else NUMBERS)
        self.task.partial = zeros(self.arrays, n_blocks(self.rows, ROW_BLOCK))
        self.loops(_rods, &self.task, self.task.partial, ROW_BLOCK)

    def named(self):
        return in_rows(self.places, (1, 2), self.joints)

    cdef int run(self, World* world) noexcept nogil:
        over_blocks(_rods, &self.task, world, self.rows, ROW_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(self.rows, ROW_BLOCK))
        return 0


cdef class Loads(Operation):
    """A force and a couple on points fixed to oriented beads.

    node, arm: rows (m,) among oriented beads and the points (m, 3) in their frames; force, couple (3,), in space or,
    where `follows`, in the frames of the beads. A force in space has the energy -F.r; couples, and forces that
    follow, have none.
    """
    cdef const int32_t[::1] node
    cdef const double[:, ::1] arm
    cdef double force[3]
    cdef double couple[3]
    cdef bint follows

    def __init__(self, str name, const int32_t[::1] node, const double[:, ::1] arm, const double[::1] force,
                 const double[::1] couple, bint follows):
        cdef int c
        self.name = name
        self.acts_on_points = False
        self.node = node
        self.arm = arm
        self.follows = follows
        for c in range(3):
            self.force[c] = force[c]
            self.couple[c] = couple[c]

    cdef int run(self, World* world) noexcept nogil:
        cdef double R[9]
        cdef double force[3]      # in the frame of the bead
        cdef double couple[3]
        cdef double moment[3]
        cdef double space[3]
        cdef double* f
        cdef double* torque
        cdef double energy = 0.0
        cdef Py_ssize_t k, node
        cdef int c
        for k in range(self.node.shape[0]):
            node = self.node[k]
            matrix_of(world.orientation + 4 * node, R)
            for c in range(3):
                space[c] = force[c] = self.force[c]
                couple[c] = self.couple[c]
            if self.follows:
                into_space(R, self.force, space)
            else:
                into_body(R, self.force, force)
                into_body(R, self.couple, couple)
                energy -= dot(space, world.x + 3 * (world.first_oriented + node)) + dot(force, &self.arm[k, 0])
            cross(&self.arm[k, 0], force, moment)
            f = world.f + 3 * (world.first_oriented + node)
            torque = world.torque + 3 * node
            for c in range(3):
                f[c] += space[c]
                torque[c] += couple[c] + moment[c]
        self.energy = energy
        return 0
