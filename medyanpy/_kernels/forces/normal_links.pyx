"""Angles between a direction, from one site to another, and the normal of a membrane at an in-triangle point.

    E = sum over terms of k (1 - c),   c = u.n,   u = d/|d|,   d = x_b - x_a
    n = m/|m|,   m = sum_i lambda_i G_i,   G_v = sum of N over the faces at vertex v

over the three corners i of the triangle that the point is in; N = e_0 x e_1 is twice the area of a face, along its
normal. m does not jump where the point crosses an edge: there the weight of the corner that changes is zero.

Derivative. With q = dE/dm = -k (u - c n)/|m| and p = dE/dd = -k (n - c u)/|d|,

    dE = p.dd + sum_i q.G_i dlambda_i + sum_i lambda_i sum_f q.dN_f,   q.dN = sum_j (q x e_j).dx_j

over the corners j of a face. What depends on weights is a force in the plane of the point and its opposite, by the same
weights, on its corners, which the chain rule of the letter B takes away again: see "Forces in lambda" in the
documentation. A direction without length and a point without a normal have the energy k and no force.

Terms are added up one after another, apart from everything else, and what a vertex gets is added once.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport vector
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.beads.membrane cimport edges_of
from medyanpy._kernels.beads.points cimport Frame, frame_of, with_rates
from medyanpy._kernels.core.face_points cimport FacePoints
from medyanpy._kernels.core.local_terms cimport Few, MovedSites, TermIndex
from medyanpy._kernels.core.program cimport Change, Operation, Quad, World
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.triangles cimport Rings, Triangles, corner_after, corner_before
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot


# A direction and the normal at a point.
cdef struct Sight:
    double weight[3]          # of the point in its triangle
    double g[3][3]            # G of its corners
    double u[3]
    double n[3]
    double length             # |d|
    double size               # |m|


cdef class NormalLinks(Operation):
    """The energy of angles to normals.

    sites : table with three rows for each term: from where the direction leads, to where, and the point.
    points (terms,) : places of the points. stiffness (terms,), pN nm.
    """
    cdef SiteTable sites
    cdef Triangles triangles
    cdef const Rings* rings
    cdef Py_ssize_t terms
    cdef const int32_t* point
    cdef const double* stiffness
    cdef list arrays
    cdef double[:, ::1] pull          # (n_vertices, 3) of vertices that have any
    cdef signed char[::1] marked      # (n_vertices,) whether they do
    cdef int32_t[::1] vertex          # these, in the order in which they were met
    cdef Py_ssize_t n_met
    # Of changes: points by face, and terms by the place of their point. The terms that one concerns.
    cdef FacePoints in_faces          # None before any change
    cdef Py_ssize_t first_point       # place of the first in-triangle point
    cdef TermIndex by_point
    cdef MovedSites moved
    cdef Few near

    def __init__(self, str name, SiteTable sites, Triangles triangles, const int32_t[::1] points,
                 const double[::1] stiffness):
        self.name = name
        self.sites = sites
        self.triangles = triangles
        self.rings = &triangles.rings
        self.terms = points.shape[0]
        self.arrays = []
        self.point = vector(self.arrays, points)
        self.stiffness = vector(self.arrays, stiffness)
        self.pull = np.zeros((triangles.n_vertices, 3))
        self.marked = np.zeros(triangles.n_vertices, np.int8)
        self.vertex = np.zeros(triangles.n_vertices, np.int32)
        self.moved = MovedSites()
        self.near = Few(self.terms)

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # Faces, rings and triangles of points are read anew.
        if self.in_faces is not None:
            self.in_faces.changed(world, change)
        return True

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef void index(self, World* world) noexcept nogil:
        if self.in_faces is None:
            with gil:
                points = np.asarray(<const int32_t[:self.terms]> self.point)
                self.by_point = TermIndex(points, np.arange(self.terms))
                self.in_faces = FacePoints(np.unique(points) - world.n_cartesian, world.n_points, world.n_faces)
        self.first_point = world.n_cartesian
        self.in_faces.follow(world)

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef const Quad* quad
        cdef Py_ssize_t i, s, corner
        if self.terms == 0:
            return True
        self.index(world)
        if not self.moved.take(world, self.sites, change):
            return False
        for i in range(self.moved.n):
            self.near.add(self.moved.site[i] // 3)
        # Points in faces at vertices whose rings change; these faces are the same in both states.
        for i in range(change.n_flips):
            quad = change.quads + i
            self.take_face(quad.first)
            self.take_face(quad.second)
            self.take_ring(quad.a)
            self.take_ring(quad.b)
            self.take_ring(quad.c)
            self.take_ring(quad.d)
        for i in range(change.n_beads):
            if change.beads[i] >= world.n_vertices:
                continue
            for s in range(self.rings.starts[change.beads[i]], self.rings.ends[change.beads[i]]):
                corner = self.rings.corners[s]
                self.take_ring(world.faces[corner_after(corner)])
                self.take_ring(world.faces[corner_before(corner)])
        return True

    cdef void take_ring(self, int32_t vertex) noexcept nogil:
        cdef Py_ssize_t s
        for s in range(self.rings.starts[vertex], self.rings.ends[vertex]):
            self.take_face(self.rings.corners[s] // 3)

    cdef void take_face(self, Py_ssize_t face) noexcept nogil:
        cdef int32_t p = self.in_faces.head[face]
        cdef Py_ssize_t _i
        for _i in range(self.in_faces.points.shape[0]):
            if p < 0:
                return
            self.by_point.add_terms(self.first_point + p, self.near)
            p = self.in_faces.next[p]

    cdef void release(self) noexcept nogil:
        self.near.clear()
        self.moved.release()

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Sight sight
        cdef double x[6]
        cdef Py_ssize_t i, k
        out[0] = 0.0
        self.examined += self.near.n
        for i in range(self.near.n):
            k = self.near.items[i]
            self.sites.place(world, 3 * k, x)
            self.sites.place(world, 3 * k + 1, x + 3)
            out[0] += self.look(world, k, x, &sight)
        return 0

    cdef void vector_sum(self, World* world, int32_t v, double* g) noexcept nogil:
        cdef double e[9]
        cdef double big_n[3]
        cdef Py_ssize_t s
        g[0] = g[1] = g[2] = 0.0
        for s in range(self.rings.starts[v], self.rings.ends[v]):
            edges_of(world, world.faces + 3 * (<Py_ssize_t> self.rings.corners[s] // 3), e)
            cross(e, e + 3, big_n)
            add_scaled(1.0, big_n, g)

    cdef void pull_at(self, int32_t v, double scale, const double* f) noexcept nogil:
        if not self.marked[v]:
            self.marked[v] = 1
            self.vertex[self.n_met] = v
            self.n_met += 1
        add_scaled(scale, f, &self.pull[v, 0])

    cdef void turn_ring(self, World* world, int32_t v, double weight, const double* q) noexcept nogil:
        """Pull on the corners of the faces at v: -weight dE/dG_v."""
        cdef const int32_t* beads
        cdef double e[9]
        cdef double f[3]
        cdef Py_ssize_t s
        cdef int j
        for s in range(self.rings.starts[v], self.rings.ends[v]):
            beads = world.faces + 3 * (<Py_ssize_t> self.rings.corners[s] // 3)
            edges_of(world, beads, e)
            for j in range(3):
                cross(q, e + 3 * j, f)
                self.pull_at(beads[j], -weight, f)

    cdef double look(self, World* world, Py_ssize_t k, const double* x, Sight* t) noexcept nogil:
        """The energy of a term whose direction leads between two places x (2, 3)."""
        cdef Py_ssize_t p = self.point[k] - world.n_cartesian
        cdef const int32_t* corner = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        cdef int i, c
        t.weight[1] = world.barycentric[2 * p]
        t.weight[2] = world.barycentric[2 * p + 1]
        t.weight[0] = (1.0 - t.weight[1]) - t.weight[2]
        t.n[0] = t.n[1] = t.n[2] = 0.0
        for i in range(3):
            self.vector_sum(world, corner[i], t.g[i])
            add_scaled(t.weight[i], t.g[i], t.n)
        displacement(&world.box, x, x + 3, t.u)
        t.length = sqrt(dot(t.u, t.u))
        t.size = sqrt(dot(t.n, t.n))
        if t.length == 0.0 or t.size == 0.0:
            return self.stiffness[k]
        for c in range(3):
            t.u[c] /= t.length
            t.n[c] /= t.size
        return 0.5 * self.stiffness[k] * _squared_difference(t.u, t.n)

    cdef double term(self, World* world, Py_ssize_t k) noexcept nogil:
        cdef const double* x = self.sites.now.x + 9 * k
        cdef double* f = self.sites.now.f + 9 * k
        cdef Py_ssize_t p = self.point[k] - world.n_cartesian
        cdef const int32_t* corner = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        cdef Frame frame
        cdef Sight t
        cdef double stiffness = self.stiffness[k]
        cdef double q[3]
        cdef double along[3]
        cdef double cosine, energy = self.look(world, k, x, &t)
        cdef int i, c
        if t.length == 0.0 or t.size == 0.0:
            return energy
        cosine = dot(t.u, t.n)
        for c in range(3):
            along[c] = stiffness * (t.n[c] - cosine * t.u[c]) / t.length
            q[c] = -stiffness * (t.u[c] - cosine * t.n[c]) / t.size
        add_scaled(-1.0, along, f)
        add_scaled(1.0, along, f + 3)
        for i in range(3):
            self.turn_ring(world, corner[i], t.weight[i], q)
        frame_of(&world.box, world.x, corner, &frame)
        with_rates(&frame, dot(q, t.g[0]) - dot(q, t.g[1]), dot(q, t.g[0]) - dot(q, t.g[2]), along)
        add_scaled(1.0, along, f + 6)
        for i in range(3):
            self.pull_at(corner[i], -t.weight[i], along)
        return energy

    cdef int run(self, World* world) noexcept nogil:
        cdef double energy = 0.0
        cdef Py_ssize_t k
        cdef int fault
        cdef int32_t v
        cdef int c
        self.energy = 0.0
        if self.terms == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        self.n_met = 0
        for k in range(self.terms):
            energy += self.term(world, k)
        for k in range(self.n_met):
            v = self.vertex[k]
            for c in range(3):
                world.f[3 * <Py_ssize_t> v + c] += self.pull[v, c]
                self.pull[v, c] = 0.0
            self.marked[v] = 0
        self.energy = energy
        return self.sites.scatter(world)


cdef inline double _squared_difference(const double* u, const double* n) noexcept nogil:
    """|u - n|^2 = 2 (1 - u.n), with all its digits where they are alike."""
    cdef double x = u[0] - n[0], y = u[1] - n[1], z = u[2] - n[2]
    return x * x + y * y + z * z
