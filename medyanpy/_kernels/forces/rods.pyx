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


cdef struct Vector:
    double x
    double y
    double z


cdef struct Middle:
    Vector row0               # of the rotation of q = (q_a + q_b)/|q_a + q_b|
    Vector row1
    Vector row2
    Vector v                  # 2 q^-1 (q_b - q_a)
    double c                  # |q_a + q_b|/2


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


cdef inline Vector _of(const double* rows, int k) noexcept nogil:
    """Column k of three rows."""
    return Vector(rows[k], rows[ROOM + k], rows[2 * ROOM + k])


cdef inline void _write(double* rows, int k, double x, double y, double z) noexcept nogil:
    rows[k] = x
    rows[ROOM + k] = y
    rows[2 * ROOM + k] = z


cdef inline Vector _cross(Vector a, Vector b) noexcept nogil:
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


cdef inline double _dot(Vector a, Vector b) noexcept nogil:
    return (a.x * b.x + a.y * b.y) + a.z * b.z


cdef inline Middle _middle(const Joints* j, int k) noexcept nogil:
    """The orientation halfway between nodes k and k + 1, and how far these are apart."""
    cdef Middle m
    cdef double a0 = j.p[0][k], a1 = j.p[1][k], a2 = j.p[2][k], a3 = j.p[3][k]
    cdef double b0 = j.p[0][k + 1], b1 = j.p[1][k + 1], b2 = j.p[2][k + 1], b3 = j.p[3][k + 1]
    # q and -q are the same orientation.
    cdef double sign = 1.0 if (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3) >= 0.0 else -1.0
    b0 *= sign
    b1 *= sign
    b2 *= sign
    b3 *= sign
    cdef double w = a0 + b0, x = a1 + b1, y = a2 + b2, z = a3 + b3
    cdef double square = (w * w + x * x) + (y * y + z * z)
    cdef double inverse = 1.0 / sqrt(square)
    m.c = 0.5 * square * inverse
    w *= inverse
    x *= inverse
    y *= inverse
    z *= inverse
    b0 = 2.0 * (b0 - a0)
    b1 = 2.0 * (b1 - a1)
    b2 = 2.0 * (b2 - a2)
    b3 = 2.0 * (b3 - a3)
    m.v = Vector(
        ((w * b1 - x * b0) + z * b2) - y * b3,
        ((w * b2 - y * b0) + x * b3) - z * b1,
        ((w * b3 - z * b0) + y * b1) - x * b2,
    )
    m.row0 = Vector(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y))
    m.row1 = Vector(2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x))
    m.row2 = Vector(2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))
    return m


cdef inline Vector _into(Middle m, Vector d) noexcept nogil:
    """The components of d along the directors of the middle."""
    return Vector(
        (m.row0.x * d.x + m.row1.x * d.y) + m.row2.x * d.z,
        (m.row0.y * d.x + m.row1.y * d.y) + m.row2.y * d.z,
        (m.row0.z * d.x + m.row1.z * d.y) + m.row2.z * d.z,
    )


cdef inline Vector _beyond(Vector g, double rate, Vector rest) noexcept nogil:
    """The strain g rate, beyond the strain at rest."""
    return Vector(g.x * rate - rest.x, g.y * rate - rest.y, g.z * rate - rest.z)


cdef inline Vector _stress(double there, Vector stiffness, Vector strain) noexcept nogil:
    return Vector(
        there * stiffness.x * strain.x, there * stiffness.y * strain.y, there * stiffness.z * strain.z
    )


cdef inline void _strain(Joints* j, int n) noexcept nogil:
    """Forces, torques and energies of the first n joints; zero where there is none."""
    cdef Middle m
    cdef Vector g, strain, turn, f, moment, arm, t, p, s
    cdef double length, there, rate
    cdef int k
    for k in range(n):
        m = _middle(j, k)
        g = _into(m, _of(&j.d[0][0], k))
        length = j.length[k]
        there = 1.0 if length > 0.0 else 0.0
        rate = 1.0 / (length if length > 0.0 else 1.0)
        strain = _beyond(g, rate, _of(&j.c[6][0], k))
        f = _stress(there, _of(&j.c[0][0], k), strain)
        turn = _beyond(m.v, rate, _of(&j.c[9][0], k))
        moment = _stress(there, _of(&j.c[3][0], k), turn)
        j.energy[k] = 0.5 * length * (_dot(f, strain) + _dot(moment, turn))
        arm = _cross(g, f)
        t = _cross(moment, m.v)
        t = Vector(0.5 * t.x, 0.5 * t.y, 0.5 * t.z)
        p = Vector(t.x - 0.5 * arm.x, t.y - 0.5 * arm.y, t.z - 0.5 * arm.z)
        s = _cross(Vector(t.x - arm.x, t.y - arm.y, t.z - arm.z), m.v)
        rate = 0.125 / m.c
        s = Vector(m.c * moment.x + rate * s.x, m.c * moment.y + rate * s.y, m.c * moment.z + rate * s.z)
        _write(&j.on_a[0][0], k, s.x - p.x, s.y - p.y, s.z - p.z)
        _write(&j.on_b[0][0], k, -(p.x + s.x), -(p.y + s.y), -(p.z + s.z))
        _write(&j.f[0][0], k, _dot(m.row0, f), _dot(m.row1, f), _dot(m.row2, f))


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
