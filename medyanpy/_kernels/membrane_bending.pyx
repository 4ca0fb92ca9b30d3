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

With c = 2 S u and s = u (H - c_v) it is the sum over vertices with weights u: bending.pxd, which says what that is
for. Along a line all of this is in series; the rates of a, G and S are sums of those of faces.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint32_t

from medyanpy._kernels.bending cimport (
    Bending, BendingTask, CHANGES, follow, LONG, Loops, ONES, RESIDUALS, weights,
)
from medyanpy._kernels.membrane cimport (
    AREA_SUMS, FACE_BLOCK, Flipped, Geometry, HESSIAN, Membrane, STIFFNESS, THIRD, THIRD_OF_STIFFNESS, VECTOR_SUMS,
    VERTEX_BLOCK,
)
from medyanpy._kernels.parallel cimport ordered_sum, over_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.series cimport add_scaled_at, dots, product, quotient
from medyanpy._kernels.vec3 cimport add_scaled, dot
from medyanpy._kernels.vertex_form cimport curvature_now, rows_of_faces, WIDTH

cdef inline void _respond(
    const int lines, const int order, const int what, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Curvature and energy of each vertex, and the response to changes of a, G and S; along lines, where that is their
    order, series of the response up to `order`."""
    cdef const Membrane* m = t.membrane
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef const double* line
    cdef double* r
    cdef double a[9]
    cdef double g[9]
    cdef double area[3]
    cdef double gg[3]
    cdef double h[3]
    cdef double u[3]
    cdef double c[3]
    cdef double excess[3]
    cdef double s[3]
    cdef double w[9]
    cdef double energy = 0.0
    cdef Py_ssize_t v, at
    # Without a sign, which takes longer to divide.
    cdef uint32_t corner, face
    cdef int i, k
    for v in range(first, last):
        r = t.response + WIDTH * (order + 1) * v
        for i in range(WIDTH * (order + 1)):
            r[i] = 0.0
        if t.kappa[v] == 0.0:
            continue
        for i in range(3):
            a[i] = m.area_sums[3 * v + i]
            g[i] = m.vector_sums[4 * v + i]
        area[0] = m.vector_sums[4 * v + 3] * (1.0 / 6.0)
        if lines > 0:
            for k in range(1, lines + 1):
                area[k] = 0.0
                for i in range(3):
                    a[3 * k + i] = g[3 * k + i] = 0.0
            for at in range(starts[v], ends[v]):
                corner = <uint32_t> (corners[at] - begin)
                face = corner // 3
                line = t.lines + LONG * lines * <size_t> face
                for k in range(1, lines + 1):
                    area[k] += line[3]
                    add_scaled(1.0, line, g + 3 * k)
                    add_scaled(1.0, line + 4 + 3 * (corner - 3 * face), a + 3 * k)
                    line += LONG
            for k in range(1, lines + 1):
                area[k] *= 1.0 / 6.0
        dots(lines, g, g, gg)
        # A vertex whose faces' normals cancel (a cone closed to a spike, a ring folded flat) has no normal,
        # so its curvature has no sign: H grows without bound towards it and is + and - alike around it. Its
        # mean, zero, is taken, and nothing pulls along a direction that does not exist.
        if gg[0] > 0.0:
            dots(lines, a, g, h)
            for k in range(lines + 1):
                h[k] *= 3.0
            quotient(lines, h, gg, h)
        else:
            for k in range(lines + 1):
                h[k] = 0.0
        weights(order, what, t.kappa[v], t.c0[v], h, area, u)
        for k in range(order + 1):
            excess[k] = h[k]
        excess[0] -= t.c0[v]
        product(order, u, excess, s)
        energy += s[0] * area[0]
        for k in range(order + 1):
            r[WIDTH * k + 6] = s[k] * (1.0 / 6.0)
        if gg[0] > 0.0:
            product(order, area, u, c)
            for k in range(order + 1):
                c[k] *= 2.0
            quotient(order, c, gg, c)
            for k in range(order + 1):
                s[k] = 1.5 * c[k]
                excess[k] = -2.0 * h[k]
            for k in range(order + 1):
                add_scaled_at(k, s, g, r + WIDTH * k)
                for i in range(3):
                    w[3 * k + i] = 3.0 * a[3 * k + i]
                add_scaled_at(k, excess, g, w + 3 * k)
            for k in range(order + 1):
                add_scaled_at(k, c, w, r + WIDTH * k + 3)
    if lines == 0:
        t.partial[first // VERTEX_BLOCK] = energy


# Compiled for each order --------------------------------------------------------------------------------------

cdef int _lines_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    follow(1, True, <BendingTask*> task, world, first, last)
    return 0


cdef int _lines_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    follow(2, True, <BendingTask*> task, world, first, last)
    return 0


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(0, 0, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 1, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(2, 2, RESIDUALS, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_changes(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 0, CHANGES, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_changes_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(1, 1, CHANGES, <BendingTask*> task, first, last)
    return 0


cdef int _vertices_of_ones(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _respond(0, 0, ONES, <BendingTask*> task, first, last)
    return 0


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return rows_of_faces(0, <BendingTask*> task, world, first, last)


cdef int _faces_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return rows_of_faces(1, <BendingTask*> task, world, first, last)


cdef int _faces_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    return rows_of_faces(2, <BendingTask*> task, world, first, last)


cdef inline double _energy_of(double kappa, double c0, const double* a, const double* g, double lengths) noexcept nogil:
    """Of a vertex with these sums of its faces, the last of |N|."""
    cdef double gg = dot(g, g)
    cdef double excess = (3.0 * dot(a, g) / gg if gg > 0.0 else 0.0) - c0
    return 2.0 * kappa * excess * excess * (lengths * (1.0 / 6.0))


cdef class VertexBending(Bending):
    """Vertex form. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm."""

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0):
        Bending.__init__(self, name, geometry, kappa, c0, AREA_SUMS | VECTOR_SUMS, WIDTH, LONG)
        self.sees_flips = True
        self.ones = _vertices_of_ones
        self.faces = _faces
        self.loops[HESSIAN] = Loops(1.0, _lines_1, NULL, _vertices_1, _faces_1)
        self.loops[STIFFNESS] = Loops(1.0, _lines_1, NULL, _vertices_of_changes, _faces)
        self.loops[THIRD] = Loops(2.0, _lines_2, NULL, _vertices_2, _faces_2)
        self.loops[THIRD_OF_STIFFNESS] = Loops(2.0, _lines_1, NULL, _vertices_of_changes_1, _faces_1)

    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil:
        self.geometry.measure(world, AREA_SUMS | VECTOR_SUMS)

    cdef int run(self, World* world) noexcept nogil:
        cdef BendingTask task
        cdef int fault
        self.energy = 0.0
        self.task_of(&task)
        self.measured(world, &task)
        over_blocks(_vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(_faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault != 0:
            return fault
        self.gather(world, task.rows, NULL, -1.0, world.f)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int part(self, World* world, double* out) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef double h, area = 0.0
        cdef Py_ssize_t i, v
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            if self.kappa[v] == 0.0:
                continue
            h = curvature_now(m, world, v, &area)
            if area < 0.0:
                out[0] = INFINITY
                return 0
            out[0] += 2.0 * self.kappa[v] * (h - self.c0[v]) * (h - self.c0[v]) * area
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        """From the sums of the four corners before and after."""
        cdef const Membrane* m = self.membrane
        cdef const Flipped* flip = &self.geometry.flipped
        cdef int32_t corners[4]
        cdef double before = 0.0, after = 0.0
        cdef const double* g
        cdef Py_ssize_t v
        cdef int k
        corners[0], corners[1], corners[2], corners[3] = flip.quad.a, flip.quad.b, flip.quad.c, flip.quad.d
        for k in range(4):
            v = corners[k] - m.first_bead
            if self.kappa[v] == 0.0:
                continue
            # The first new face has all corners but one of c and d, the second all but the other.
            if ((flip.area_vectors[3] == 0.0 and k != (2 if flip.quad.rule else 3))
                    or (flip.area_vectors[7] == 0.0 and k != (3 if flip.quad.rule else 2))):
                out[0] = INFINITY
                return
            g = m.vector_sums + 4 * v
            before += _energy_of(self.kappa[v], self.c0[v], m.area_sums + 3 * v, g, g[3])
            g = flip.vector_sums + 4 * k
            after += _energy_of(self.kappa[v], self.c0[v], flip.area_sums + 3 * k, g, g[3])
        out[0] = after - before
