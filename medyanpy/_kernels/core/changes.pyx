"""Changes of a state that are proposed before they are made: a few beads elsewhere, links longer, edges flipped.

A point in one of the two faces at a flipped edge keeps its place s in the unit square that both are mapped to, one
triangle each, with the corners a, c, b, d at (0,0), (1,0), (1,1), (0,1); either diagonal splits it. And it keeps the
momentum m J^T v that belongs to s, J = dx/ds: so volume in phase space is kept.
"""
import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.beads.points cimport place, place_one
from medyanpy._kernels.core.program cimport (
    Change, LOST_COUNT, mark_back, mark_moved, Operation, Program, Quad, World,
)
from medyanpy._kernels.core.triangles cimport CAN_FLIP, NO_EDGE, Triangles
from medyanpy._kernels.core.vec3 cimport cross, dot
from medyanpy._kernels.core.workspace cimport WorkSpace


cdef void keep_point(World* world, Py_ssize_t p, int32_t* triangle, double* weights, double* v) noexcept nogil:
    """What a flip changes of a point, as it is."""
    cdef int i
    triangle[0] = world.triangle[p]
    for i in range(2):
        weights[i] = world.barycentric[2 * p + i]
    for i in range(3):
        v[i] = world.v[3 * (world.n_cartesian + p) + i]


cdef void carry(World* world, const Quad* quad, int32_t* triangle, double* weights, double* v) noexcept nogil:
    """Take a point along as an edge is flipped, if it is in one of the two faces; vertices stay where they are."""
    cdef const double* xa = world.x + 3 * <Py_ssize_t> quad.a
    cdef const double* xb = world.x + 3 * <Py_ssize_t> quad.b
    cdef const double* xc = world.x + 3 * <Py_ssize_t> quad.c
    cdef const double* xd = world.x + 3 * <Py_ssize_t> quad.d
    cdef Py_ssize_t face = triangle[0]
    cdef double w[3]
    cdef double by_x[3]
    cdef double by_y[3]
    cdef double n[3]
    cdef double x, y, p, q, xx, xy, yy, area
    cdef bint with_c
    cdef int at, i
    if face != quad.first and face != quad.second:
        return
    w[0] = (1.0 - weights[0]) - weights[1]
    w[1] = weights[0]
    w[2] = weights[1]
    if face == quad.first:
        at = quad.at_a
        x = w[(at + 1) % 3]
        y = w[(at + 2) % 3]
        displacement(&world.box, xa, xc, by_x)
        displacement(&world.box, xa, xd, by_y)
    else:
        at = quad.at_b
        x = w[at] + w[(at + 2) % 3]
        y = w[at] + w[(at + 1) % 3]
        displacement(&world.box, xd, xb, by_x)
        displacement(&world.box, xc, xb, by_y)
    p = dot(by_x, v)
    q = dot(by_y, v)
    with_c = x >= y
    # The face with c is (c, b, a), the other (d, a, b).
    if with_c == (quad.rule == 0):
        triangle[0] = <int32_t> quad.first
        at = quad.at_a
    else:
        triangle[0] = <int32_t> quad.second
        at = quad.at_b
    if with_c:
        w[at] = x - y
        w[(at + 1) % 3] = y
        w[(at + 2) % 3] = 1.0 - x
        displacement(&world.box, xa, xc, by_x)
        displacement(&world.box, xc, xb, by_y)
    else:
        w[at] = y - x
        w[(at + 1) % 3] = 1.0 - y
        w[(at + 2) % 3] = x
        displacement(&world.box, xd, xb, by_x)
        displacement(&world.box, xa, xd, by_y)
    # Sums of weights may have been rounded to above 1; all three are >= 0 when the first is read as above.
    weights[0] = min(max(w[1], 0.0), 1.0)
    weights[1] = min(max(w[2], 0.0), 1.0)
    if (1.0 - weights[0]) - weights[1] < 0.0:
        weights[1] = 1.0 - weights[0]
    # v = J (J^T J)^-1 (p, q); the determinant from the cross product, as in `frame_of`.
    xx = dot(by_x, by_x)
    xy = dot(by_x, by_y)
    yy = dot(by_y, by_y)
    cross(by_x, by_y, n)
    area = dot(n, n)
    x = (yy * p - xy * q) / area if area > 0.0 else 0.0
    y = (xx * q - xy * p) / area if area > 0.0 else 0.0
    for i in range(3):
        v[i] = x * by_x[i] + y * by_y[i]


cdef inline void _exchange(double* a, double* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        a[i], b[i] = b[i], a[i]


cdef int swap(World* world, Change* change) noexcept nogil:
    """`swap` of a Change."""
    cdef const Quad* quads = change.back if change.there else change.quads
    cdef Py_ssize_t i, p
    cdef int32_t grows
    cdef long long before = world.positions
    cdef bint placed = world.placed == before
    for i in range(change.n_flips):
        (<Triangles> change.triangles).flip(quads + i)
        if (<Triangles> change.triangles).lost:
            return record_fault(world, LOST_COUNT, quads[i].c, quads[i].first)
    for i in range(change.n_points):
        p = change.points[i]
        world.triangle[p], change.triangle[i] = change.triangle[i], world.triangle[p]
        _exchange(world.barycentric + 2 * p, change.barycentric + 2 * i, 2)
        _exchange(world.v + 3 * (world.n_cartesian + p), change.v + 3 * i, 3)
    for i in range(change.n_links):
        p = change.links[i]
        # Places are counted from the first node on.
        grows = change.subunits[i] - world.subunits[p]
        world.material[change.beads[i]] += grows if p != change.beads[i] else -grows
        world.subunits[p], change.subunits[i] = change.subunits[i], world.subunits[p]
    for i in range(change.n_beads):
        _exchange(world.x + 3 * <Py_ssize_t> change.beads[i], change.x + 3 * i, 3)
    change.there = not change.there
    if change.positions == 0:
        mark_moved(world)
    else:
        mark_back(world, change.positions)
    change.positions = before
    if placed:
        # All other points are where they were.
        for i in range(change.n_points):
            place_one(world, change.points[i])
        world.placed = world.positions
    return place(world)


cdef class Proposal:
    """Another state of a Program.

    Parameters
    ----------
    program : Program
    triangles : Triangles
        Of the same Context.
    edges : (k, 2) int32
        Places of both ends of edges to be flipped, one after the other: of later ones as they are once the earlier ones
        have been.
    points : (p,) int32
        All in-triangle points in the faces concerned, and in those with a corner that moves; others may be among them.
    beads : (n,) int32
        Cartesian beads that are elsewhere, by place.
    x : (n, 3) float
        Where.

    Attributes
    ----------
    made : (k, 2) int32 array
        The edges in the places of those that are flipped.

    Raises
    ------
    ValueError
        An edge that cannot be flipped: its number, what `Triangles.quad_at` found, its ends and the corners across it.
    """
    cdef Change change
    cdef Program program
    cdef Triangles triangles
    cdef readonly object made
    cdef object arrays
    cdef WorkSpace space
    cdef long long flips

    def __init__(self, Program program not None, Triangles triangles not None, const int32_t[:, ::1] edges not None,
                 points, beads, x):
        cdef Py_ssize_t n = edges.shape[0]
        cdef Py_ssize_t i, j, corner
        cdef int found = CAN_FLIP
        cdef World* world = &program.world
        cdef Change* change = &self.change
        cdef unsigned char[::1] quads = np.zeros((n + 1) * sizeof(Quad), np.uint8)
        cdef unsigned char[::1] back = np.zeros((n + 1) * sizeof(Quad), np.uint8)
        cdef Quad* forth = <Quad*> &quads[0]
        cdef Quad* again = <Quad*> &back[0]
        cdef int32_t[:, ::1] made = np.zeros((n, 2), np.int32)
        # One more row each, so that there is something to point to.
        cdef int32_t[::1] moving = np.append(beads, 0).astype(np.int32)
        cdef int32_t[::1] points_ = np.append(points, 0).astype(np.int32)
        cdef int32_t[::1] triangle = np.zeros(len(points) + 1, np.int32)
        cdef double[:, ::1] barycentric = np.zeros((len(points) + 1, 2))
        cdef double[:, ::1] v = np.zeros((len(points) + 1, 3))
        cdef double[:, ::1] to = np.zeros((len(beads) + 1, 3))
        np.asarray(to)[:len(beads)] = x
        self.program = program
        self.triangles = triangles
        self.made = np.asarray(made)
        cdef int32_t[::1] moved = np.append(np.append(beads, np.asarray(points, int) + world.n_cartesian), 0).astype(
            np.int32)
        self.arrays = quads, back, moving, points_, triangle, barycentric, v, to, moved
        for i in range(len(points)):
            keep_point(world, points_[i], &triangle[i], &barycentric[i, 0], &v[i, 0])
        for i in range(n):
            corner = triangles.corner_of(edges[i, 0], edges[i, 1])
            forth[i].a = forth[i].b = -1
            found = triangles.quad_at(corner, &forth[i]) if corner >= 0 else NO_EDGE
            if found != CAN_FLIP:
                break
            triangles.make_room(&forth[i])
            triangles.flip(&forth[i])
            # Its faces stay where they are, and the edge across the same corner.
            triangles.quad_at(3 * forth[i].first + forth[i].at_a, &again[n - 1 - i])
            made[i, 0] = min(forth[i].a, forth[i].b)
            made[i, 1] = max(forth[i].a, forth[i].b)
            for j in range(len(points)):
                carry(world, &forth[i], &triangle[j], &barycentric[j, 0], &v[j, 0])
        else:
            i = n
        for j in range(n - i, n):
            triangles.flip(&again[j])
        if found != CAN_FLIP:
            raise ValueError(i, found, edges[i, 0], edges[i, 1], forth[i].a, forth[i].b)
        change.swap = swap
        change.n_beads = len(beads)
        change.beads = &moving[0]
        change.x = &to[0, 0]
        change.n_flips = n
        change.quads = forth
        change.back = again
        change.n_points = len(points)
        change.points = &points_[0]
        change.triangle = &triangle[0]
        change.barycentric = &barycentric[0, 0]
        change.v = &v[0, 0]
        change.triangles = <PyObject*> triangles
        change.n_moved = len(beads) + len(points)
        change.moved = &moved[0]
        change.there = 0
        change.positions = 0
        change.most = INFINITY
        change.number = 0
        self.flips = triangles.flips

    def swap(self):
        """Make the change; once more, take it back."""
        self.expect_same()
        self.program.kept_step = -1
        self.program.check(swap(&self.program.world, &self.change))
        self.flips = self.triangles.flips

    cdef int expect_same(self) except -1:
        """Faces are those for which the change was proposed, and there is room for all of its flips."""
        if self.flips != self.triangles.flips:
            raise ValueError("triangles have changed since this was proposed")
        return 0

    def difference(self, Operation force not None):
        """What the energy of a force gains by the change, pN nm; inf where a triangle that bends would lose its area.

        Raises
        ------
        ProgramFault
            A force that cannot be computed.
        """
        cdef World* world = &self.program.world
        cdef double out = 0.0
        cdef int fault
        self.expect_same()
        fault = self.enter(world)
        if fault == 0:
            with nogil:
                fault = force.difference(world, &self.change, &out)
        self.space.leave(world)
        self.flips = self.triangles.flips
        self.check(force, fault)
        return out

    def energy(self, Operation force not None):
        """The energy of a force as things are, pN nm. ProgramFault where it cannot be computed."""
        cdef World* world = &self.program.world
        cdef int fault = self.enter(world)
        if fault == 0:
            world.want_energy = 1
            with nogil:
                fault = force.run(world)
            world.want_energy = 0
        self.space.leave(world)
        self.check(force, fault)
        return force.energy

    cdef int enter(self, World* world) except -1:
        """Space for forces that nobody wants, until it is left, and x of points."""
        cdef Py_ssize_t k
        if self.space is None:
            self.space = WorkSpace(world.n, [world.momenta[k].n * world.momenta[k].width
                                             for k in range(world.n_momenta)])
        self.program.clear_fault()
        self.space.enter(world)
        return place(world)

    cdef int check(self, Operation force, int fault) except -1:
        if fault != 0 and self.program.world.fault.operation == NULL:
            self.program.world.fault.operation = <PyObject*> force
        return self.program.check(fault)

    def mended(self, Operation force not None):
        """After the change has been made to triangles: whether the operation of a force is right again."""
        return force.changed(&self.program.world, &self.change)
