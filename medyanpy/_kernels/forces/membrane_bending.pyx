"""Helfrich energy of a membrane, vertex form. Notation: membrane.pxd and vertex_form.pxd.

    E = sum_v kappa_v b_v^2/(2 |g|),   b_v = a - 2 c_v g

with a = dA/dx_v and g = dV/dx_v = G/6, G = sum_f N_f, over the faces f at v. On a smooth surface a = 2 H S n and
g = S n, with the area S of the vertex, so that E = 2 kappa (H - c)^2 S. A vertex with kappa_v = 0 has no energy; the
caller sets it for border vertices, around which the faces make no full ring.

With b = a - c G/3 it is E = 3 kappa b.b/|G|, and the response (vertex_form.pxd) is

    p = u,   q = -c u/3 - (u.b) G/(2 G.G),   s = 0,   u = 6 kappa b/|G|

Where the faces' normals cancel E has no bound, and neither have its forces: a fault, as of all that is not finite.

Its stiffness is that of four residuals of each vertex, E = (r.r + r_0^2)/2. A turn of the membrane changes them by no
more than a is across g:

    r_0 = D N,   r = D T,   N = a.g - 2 c g.g,   T = g x a,   D = sqrt(kappa) |g|^(-3/2)

With weights y_0, y held fixed, and Y = D y, the response of y_0 r_0 + y.r is

    p = Y_0 g + Y x g,   q = (Y_0 (a - 4 c g) + a x Y - 3/2 (Y_0 N + Y.T) g/(g.g))/6,   DY = -3/2 (g.Dg)/(g.g) Y

and along a line Y is kappa |g|^(-3) (DN - 3/2 (g.Dg)/(g.g) N), with T likewise, of y = Dr: no root is left.

*Projected* is the form of the one number H_v = 3 a.G/(G.G), the part of a along G:

    E = sum_v 2 kappa_v (H_v - c_v)^2 S_v
    p = 3 w G/(G.G),   q = w (3 a - 2 H G)/(G.G),   s = u (H - c_v),   w = 2 S u

and u = 2 kappa (H - c) of y = r. Where a ring is crumpled a turns away from G, so that this energy almost vanishes.

What u is for: bending.pxd. Along a line all of this is in series; the rates of a, G and S are sums of those of faces.
"""
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, uint32_t

from medyanpy._kernels.forces.bending cimport (
    Bending, BendingTask, CHANGES, follow, LONG, Loops, ONES, RESIDUALS, weights,
)
from medyanpy._kernels.beads.membrane cimport (
    AREA_SUMS, Flipped, Geometry, HESSIAN, lacks_area, Membrane, STIFFNESS, THIRD, THIRD_OF_STIFFNESS, VECTOR_SUMS,
    VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport BlockFunction
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.series cimport add_scaled_at, divided, dots, product, quotient, root
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot
from medyanpy._kernels.forces.vertex_form cimport curvature_of, rows_of_faces, sums_now, WIDTH

cdef enum:
    CORNERS = 1


cdef inline void _sums(
    const int lines, const BendingTask* t, Py_ssize_t v, double* a, double* g, double* area,
) noexcept nogil:
    """Of one vertex, along lines if any."""
    cdef const Membrane* m = t.membrane
    cdef const double* line
    cdef Py_ssize_t at
    # Without a sign, which takes longer to divide.
    cdef uint32_t corner, face
    cdef int i, k
    for i in range(3):
        a[i] = m.area_sums[3 * v + i]
        g[i] = m.vector_sums[4 * v + i]
    area[0] = m.vector_sums[4 * v + 3] * (1.0 / 6.0)
    if lines == 0:
        return
    for k in range(1, lines + 1):
        area[k] = 0.0
        for i in range(3):
            a[3 * k + i] = g[3 * k + i] = 0.0
    for at in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        corner = <uint32_t> (m.rings.corners[at] - <int32_t> (3 * m.first_face))
        face = corner // 3
        line = t.lines + LONG * lines * <size_t> face
        for k in range(1, lines + 1):
            area[k] += line[3]
            add_scaled(1.0, line, g + 3 * k)
            add_scaled(1.0, line + 4 + 3 * (corner - 3 * face), a + 3 * k)
            line += LONG
    for k in range(1, lines + 1):
        area[k] *= 1.0 / 6.0


cdef inline double* _cleared(const int order, const BendingTask* t, Py_ssize_t v) noexcept nogil:
    """Where the response of a vertex is written: zeros."""
    cdef double* r = t.response + WIDTH * (order + 1) * v
    cdef int i
    for i in range(WIDTH * (order + 1)):
        r[i] = 0.0
    return r


cdef inline void _respond_by_vectors(
    const int lines, const int order, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef double* r
    cdef double b[9]
    cdef double g[9]
    cdef double area[3]
    cdef double gg[3]
    cdef double length[3]
    cdef double u[9]
    cdef double share[3]
    cdef double kappa, third, energy = 0.0
    cdef Py_ssize_t v
    cdef int i, k
    for v in range(first, last):
        r = _cleared(order, t, v)
        kappa = t.kappa[v]
        if kappa == 0.0:
            continue
        third = t.c0[v] * (1.0 / 3.0)
        _sums(lines, t, v, b, g, area)
        for i in range(3 * (lines + 1)):
            b[i] -= third * g[i]
        dots(lines, g, g, gg)
        root(lines, gg, length)
        divided(order, b, length, u)
        for i in range(3 * (order + 1)):
            u[i] *= 6.0 * kappa
        dots(order, u, b, share)
        energy += 0.5 * share[0]
        quotient(order, share, gg, share)
        for k in range(order + 1):
            share[k] *= -0.5
            for i in range(3):
                r[WIDTH * k + i] = 0.5 * u[3 * k + i]
                r[WIDTH * k + 3 + i] = -third * u[3 * k + i]
        for k in range(order + 1):
            add_scaled_at(k, share, g, r + WIDTH * k + 3)
    if lines == 0:
        t.partial[first // VERTEX_BLOCK] = energy


cdef inline void _respond_stiffly(
    const int order, const int what, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Of the four residuals: of CHANGES along a line, or of ONES, the one that is asked for."""
    cdef double* r
    cdef double a[6]
    cdef double g[6]
    cdef double area[2]
    cdef double big_t[6]
    cdef double y[6]
    cdef double big_n[2]
    cdef double y0[2]
    cdef double share[2]
    cdef double u[3]
    # squared: D^2
    cdef double c, gg, squared, along, slope
    cdef Py_ssize_t v
    cdef int i, k
    for v in range(first, last):
        r = _cleared(order, t, v)
        if t.kappa[v] == 0.0:
            continue
        _sums(what == CHANGES, t, v, a, g, area)
        for i in range(6 if what == CHANGES else 3):
            g[i] *= 1.0 / 6.0
        gg = dot(g, g)
        if gg == 0.0:
            continue
        c = t.c0[v]
        big_n[0] = dot(a, g) - 2.0 * c * gg
        cross(g, a, big_t)
        squared = t.kappa[v] / (gg * sqrt(gg))
        slope = along = 0.0
        if what == ONES:
            y0[0] = y[0] = y[1] = y[2] = 0.0
            if t.component == 0:
                y0[0] = sqrt(squared)
            else:
                y[t.component - 1] = sqrt(squared)
        else:
            along = dot(g, g + 3)
            slope = -1.5 * along / gg
            big_n[1] = dot(a + 3, g) + dot(a, g + 3) - 4.0 * c * along
            cross(g + 3, a, big_t + 3)
            cross(g, a + 3, u)
            y0[0] = squared * (big_n[1] + slope * big_n[0])
            y0[1] = slope * y0[0]
            for i in range(3):
                big_t[3 + i] += u[i]
                y[i] = squared * (big_t[3 + i] + slope * big_t[i])
                y[3 + i] = slope * y[i]
        # -3/2 (Y_0 N + Y.T)/(g.g)
        share[0] = -1.5 * (y0[0] * big_n[0] + dot(y, big_t)) / gg
        if order == 1:
            share[1] = y0[1] * big_n[0] + y0[0] * big_n[1] + dot(y + 3, big_t) + dot(y, big_t + 3)
            share[1] = -1.5 * share[1] / gg - 2.0 * share[0] * along / gg
        for k in range(order + 1):
            # Products of series; of the lowest power there is one term.
            for i in range(k + 1):
                cross(y + 3 * i, g + 3 * (k - i), u)
                add_scaled(0.5, u, r + WIDTH * k)
                add_scaled(0.5 * y0[i], g + 3 * (k - i), r + WIDTH * k)
                cross(a + 3 * (k - i), y + 3 * i, u)
                add_scaled(1.0 / 6.0, u, r + WIDTH * k + 3)
                add_scaled(y0[i] / 6.0, a + 3 * (k - i), r + WIDTH * k + 3)
                add_scaled((share[i] - 4.0 * c * y0[i]) / 6.0, g + 3 * (k - i), r + WIDTH * k + 3)


cdef inline void _respond_projected(
    const int lines, const int order, const int what, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
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
    cdef Py_ssize_t v
    cdef int i, k
    for v in range(first, last):
        r = _cleared(order, t, v)
        if t.kappa[v] == 0.0:
            continue
        _sums(lines, t, v, a, g, area)
        dots(lines, g, g, gg)
        # Where `curvature_of` has no normal, nothing pulls along a direction that does not exist.
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


cdef inline void _respond(
    const int lines, const int order, const int what, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Energy of each vertex, and its response to changes of a, G and S; along lines, where that is their order, series
    of the response up to `order`."""
    if t.projected:
        _respond_projected(lines, order, what, t, first, last)
    elif what == RESIDUALS:
        _respond_by_vectors(lines, order, t, first, last)
    else:
        _respond_stiffly(order, what, t, first, last)


cdef inline int _rows(
    const int order, const BendingTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    return rows_of_faces(order, t, world, first, last)


include "bending_loops.pxi"


cdef inline double _energy_of(
    bint projected, double kappa, double c0, const double* a, const double* g, double lengths,
) noexcept nogil:
    """Of a vertex with these sums of its faces, the last of |N|."""
    cdef double excess
    cdef double b[3]
    if projected:
        excess = curvature_of(a, g) - c0
        return 2.0 * kappa * excess * excess * (lengths * (1.0 / 6.0))
    b[0], b[1], b[2] = a[0], a[1], a[2]
    add_scaled(-c0 * (1.0 / 3.0), g, b)
    return 3.0 * kappa * dot(b, b) / sqrt(dot(g, g))


cdef class VertexBending(Bending):
    """Vertex form. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm. projected: the form of one number."""
    cdef bint projected

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0, bint projected):
        Bending.__init__(self, name, geometry, kappa, c0, AREA_SUMS | VECTOR_SUMS, WIDTH, LONG)
        self.sees_flips = True
        self.projected = projected
        self.components = 1 if projected else 4
        _set_loops(self, NULL, NULL)

    cdef void task_of(self, BendingTask* task) noexcept nogil:
        Bending.task_of(self, task)
        task.projected = self.projected

    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil:
        self.geometry.measure(world, AREA_SUMS | VECTOR_SUMS)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef double a[3]
        cdef double g[3]
        cdef double lengths
        cdef Py_ssize_t i, v
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            if self.kappa[v] == 0.0:
                continue
            lengths = sums_now(self.membrane, world, v, a, g)
            if lengths < 0.0:
                out[0] = INFINITY
                return 0
            out[0] += _energy_of(self.projected, self.kappa[v], self.c0[v], a, g, lengths)
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
            if lacks_area(flip, k):
                out[0] = INFINITY
                return
            g = m.vector_sums + 4 * v
            before += _energy_of(self.projected, self.kappa[v], self.c0[v], m.area_sums + 3 * v, g, g[3])
            g = flip.vector_sums + 4 * k
            after += _energy_of(self.projected, self.kappa[v], self.c0[v], flip.area_sums + 3 * k, g, g[3])
        out[0] = after - before
