"""Helfrich energy of a membrane, vertex form. Notation: membrane.pxd.

    E = sum_v 2 kappa_v (H_v - c_v)^2 S_v
    H_v = a.g / (2 g.g),   a = dA/dx_v,   g = dV/dx_v = G/6,   G = sum_f N_f,   S_v = sum_f |N_f| / 6

over the faces f at v. A vertex with kappa_v = 0 has no energy; the caller sets it for border vertices, around
which the faces make no full ring.

Derivative. With G for g, H = 3 a.G/(G.G). What E gains from small changes of a, G and S of vertex v is
p.da + q.dG + s dS,

    p = c 3 G/(G.G),   q = c (3 a - 2 H G)/(G.G),   s = 2 kappa (H - c_v)^2,   c = 4 kappa (H - c_v) S

Held fixed, these make E a sum over faces of sum_i [p_i.(n x e_i)/2 + q_i.N + s_i |N|/6], i over the corners.
Its first part is n.T, T = sum_i e_i x p_i/2, so that a face contributes to the gradient at its corner i

    C x e_i + (p_(i+1) - p_(i+2)) x n / 2,   C = (T - (n.T) n)/|N| + sum_i q_i + n sum_i s_i/6

where C collects what comes with dN (through n, N and |N|) and the rest is dT at fixed n.
"""
import numpy as np

from medyanpy._kernels.membrane cimport (
    AREA_SUMS, bend_no_area, corners_of, edges_of, FACE_BLOCK, Geometry, Membrane, MembraneForce, normal_of,
    VECTOR_SUMS, VERTEX_BLOCK,
)
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.vec3 cimport add_scaled, cross, dot

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t


# What the energy of one vertex hands to its faces; 64 bytes.
cdef struct Response:
    double p[3]     # p/2
    double q[3]
    double s        # s/6
    double unused


cdef struct BendingTask:
    const Membrane* membrane
    const double* kappa       # (V,)
    const double* c0          # (V,)
    Response* response        # (V,)
    double* rows              # (F, 3, 3) dE/dx of each corner
    double* partial           # energy of each block of vertices


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Curvature and energy of each vertex, and the response to changes of a, G and S."""
    cdef BendingTask* t = <BendingTask*> task
    cdef const Membrane* m = t.membrane
    cdef Response* r
    cdef const double* a
    cdef const double* g
    cdef double gg, h, c, area, excess, energy = 0.0
    cdef Py_ssize_t v
    cdef int i
    for v in range(first, last):
        r = t.response + v
        r.p[0] = r.p[1] = r.p[2] = r.q[0] = r.q[1] = r.q[2] = r.s = 0.0
        if t.kappa[v] == 0.0:
            continue
        a = m.area_sums + 3 * v
        g = m.vector_sums + 4 * v
        area = g[3] * (1.0 / 6.0)
        gg = dot(g, g)
        # A vertex whose faces' normals cancel (a cone closed to a spike, a ring folded flat) has no normal,
        # so its curvature has no sign: H grows without bound towards it and is + and - alike around it. Its
        # mean, zero, is taken, and nothing pulls along a direction that does not exist.
        h = 3.0 * dot(a, g) / gg if gg > 0.0 else 0.0
        excess = t.kappa[v] * (h - t.c0[v])
        r.s = 2.0 * excess * (h - t.c0[v])
        energy += r.s * area
        r.s *= 1.0 / 6.0
        if gg > 0.0:
            c = 4.0 * excess * area / gg
            for i in range(3):
                r.p[i] = 1.5 * c * g[i]
                r.q[i] = c * (3.0 * a[i] - 2.0 * h * g[i])
    t.partial[first // VERTEX_BLOCK] = energy
    return 0


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What each face contributes to the gradient at its corners."""
    cdef BendingTask* t = <BendingTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* big_n
    cdef const Response* r0
    cdef const Response* r1
    cdef const Response* r2
    cdef double* row
    cdef double e[9]
    cdef double n[3]
    cdef double u[3]
    cdef double big_t[3]
    cdef double big_c[3]
    cdef double inverse, s
    cdef Py_ssize_t f, v0, v1, v2
    cdef int i, fault = 0
    for f in range(first, last):
        beads = corners_of(m, world, f)
        v0 = beads[0] - m.first_bead
        v1 = beads[1] - m.first_bead
        v2 = beads[2] - m.first_bead
        big_n = m.area_vectors + 4 * f
        row = t.rows + 9 * f
        if big_n[3] == 0.0:
            fault |= bend_no_area(m, world, t.kappa, beads, f, row)
            continue
        r0 = t.response + v0
        r1 = t.response + v1
        r2 = t.response + v2
        inverse = normal_of(big_n, n)
        edges_of(world, beads, e)
        cross(e, r0.p, big_t)
        cross(e + 3, r1.p, u)
        add_scaled(1.0, u, big_t)
        cross(e + 6, r2.p, u)
        add_scaled(1.0, u, big_t)
        s = (r0.s + r1.s + r2.s) - dot(n, big_t) * inverse
        for i in range(3):
            big_c[i] = inverse * big_t[i] + (r0.q[i] + r1.q[i] + r2.q[i]) + s * n[i]
        # Corners 0 and 1; the third is what is missing to zero, since E does not change when a face is moved.
        cross(big_c, e, row)
        cross(big_c, e + 3, row + 3)
        for i in range(3):
            big_t[i] = r1.p[i] - r2.p[i]
        cross(big_t, n, u)
        add_scaled(1.0, u, row)
        for i in range(3):
            big_t[i] = r2.p[i] - r0.p[i]
        cross(big_t, n, u)
        add_scaled(1.0, u, row + 3)
        for i in range(3):
            row[6 + i] = -(row[i] + row[3 + i])
    return fault


cdef class VertexBending(MembraneForce):
    """Vertex form. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm."""
    cdef const double[::1] kappa
    cdef const double[::1] c0
    cdef double[:, ::1] response
    cdef double[:, :, ::1] rows
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0):
        MembraneForce.__init__(self, name, geometry, AREA_SUMS | VECTOR_SUMS)
        self.kappa = kappa
        self.c0 = c0
        self.response = np.zeros((kappa.shape[0], sizeof(Response) // sizeof(double)))
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(kappa.shape[0], VERTEX_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef BendingTask task
        cdef int fault
        task.membrane = self.membrane
        task.kappa = &self.kappa[0]
        task.c0 = &self.c0[0]
        task.response = <Response*> &self.response[0, 0]
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        self.energy = 0.0
        self.geometry.measure(world, AREA_SUMS | VECTOR_SUMS)
        over_blocks(_vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(_faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault != 0:
            return fault
        self.gather(world, task.rows, NULL)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int part(self, World* world, double* out) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef const int32_t* beads
        cdef double a[3]
        cdef double g[3]
        cdef double e[9]
        cdef double big_n[3]
        cdef double u[3]
        cdef double length, area, gg, h
        cdef Py_ssize_t i, v, s, face
        cdef int corner
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            if self.kappa[v] == 0.0:
                continue
            a[0] = a[1] = a[2] = g[0] = g[1] = g[2] = area = 0.0
            for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
                face = m.rings.corners[s] // 3 - m.first_face
                corner = m.rings.corners[s] % 3
                beads = corners_of(m, world, face)
                edges_of(world, beads, e)
                cross(e, e + 3, big_n)
                length = sqrt(dot(big_n, big_n))
                if length == 0.0:
                    out[0] = INFINITY
                    return 0
                cross(big_n, e + 3 * corner, u)
                add_scaled(0.5 / length, u, a)
                add_scaled(1.0, big_n, g)
                area += length
            area *= 1.0 / 6.0
            gg = dot(g, g)
            h = 3.0 * dot(a, g) / gg if gg > 0.0 else 0.0
            out[0] += 2.0 * self.kappa[v] * (h - self.c0[v]) * (h - self.c0[v]) * area
        return 0
