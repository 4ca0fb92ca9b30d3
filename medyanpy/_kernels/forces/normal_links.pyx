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
from medyanpy._kernels.core.program cimport Change, Operation, World
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.triangles cimport Rings, Triangles
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot


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

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # Faces, rings and triangles of points are read anew.
        return True

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

    cdef double term(self, World* world, Py_ssize_t k) noexcept nogil:
        cdef const double* x = self.sites.now.x + 9 * k
        cdef double* f = self.sites.now.f + 9 * k
        cdef Py_ssize_t p = self.point[k] - world.n_cartesian
        cdef const int32_t* corner = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        cdef Frame frame
        cdef double stiffness = self.stiffness[k]
        cdef double g[3][3]
        cdef double weight[3]
        cdef double u[3]
        cdef double n[3]
        cdef double q[3]
        cdef double along[3]
        cdef double length, size, cosine
        cdef int i, c
        weight[1] = world.barycentric[2 * p]
        weight[2] = world.barycentric[2 * p + 1]
        weight[0] = (1.0 - weight[1]) - weight[2]
        n[0] = n[1] = n[2] = 0.0
        for i in range(3):
            self.vector_sum(world, corner[i], g[i])
            add_scaled(weight[i], g[i], n)
        displacement(&world.box, x, x + 3, u)
        length = sqrt(dot(u, u))
        size = sqrt(dot(n, n))
        if length == 0.0 or size == 0.0:
            return stiffness
        for c in range(3):
            u[c] /= length
            n[c] /= size
        cosine = dot(u, n)
        for c in range(3):
            along[c] = stiffness * (n[c] - cosine * u[c]) / length
            q[c] = -stiffness * (u[c] - cosine * n[c]) / size
        add_scaled(-1.0, along, f)
        add_scaled(1.0, along, f + 3)
        for i in range(3):
            self.turn_ring(world, corner[i], weight[i], q)
        frame_of(&world.box, world.x, corner, &frame)
        with_rates(&frame, dot(q, g[0]) - dot(q, g[1]), dot(q, g[0]) - dot(q, g[2]), along)
        add_scaled(1.0, along, f + 6)
        for i in range(3):
            self.pull_at(corner[i], -weight[i], along)
        return 0.5 * stiffness * _squared_difference(u, n)

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
