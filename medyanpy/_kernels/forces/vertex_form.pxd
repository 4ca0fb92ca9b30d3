"""Formulas that forces share whose energy depends on the sums a, G and S round each vertex (membrane.pxd).

What an energy gains from small changes of these, p.da + q.dG + s dS of each vertex, is its response. With responses
held fixed it is a sum over faces of sum_i [p_i.(n x e_i)/2 + q_i.N + s_i |N|/6], i over the corners. Its first part is
n.T, T = sum_i e_i x p_i/2, so that a face contributes to the gradient at its corner i

    C x e_i + (p_(i+1) - p_(i+2)) x n / 2,   C = (T - (n.T) n)/|N| + sum_i q_i + n sum_i s_i/6

where C collects what comes with dN (through n, N and |N|) and the rest is dT at fixed n.

The curvature of a vertex is H = a.g/(2 g.g) = 3 a.G/(G.G), with g = dV/dx = G/6.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.forces.bending cimport BendingTask
from medyanpy._kernels.beads.membrane cimport bend_no_area, corners_of, edges_of, Facet, facet_of, Membrane
from medyanpy._kernels.core.prefetch cimport FACES_AHEAD, prefetch, prefetch_doubles
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.series cimport add_scaled_at, cross_at, crosses, dots, product
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot

cdef enum:
    # What the energy of one vertex hands to its faces, for each power of t: p/2, q, s/6, and one that is not used.
    WIDTH = 8


cdef inline double sums_now(const Membrane* m, const World* world, Py_ssize_t v, double* a, double* g) noexcept nogil:
    """Sum of |N| over the faces at a vertex, measured now, with a (3,) and G (3,); < 0 where one of these has no
    area."""
    cdef const int32_t* beads
    cdef double e[9]
    cdef double big_n[3]
    cdef double u[3]
    cdef double length, lengths = 0.0
    cdef Py_ssize_t s, face
    cdef int corner
    a[0] = a[1] = a[2] = g[0] = g[1] = g[2] = 0.0
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        face = m.rings.corners[s] // 3 - m.first_face
        corner = m.rings.corners[s] % 3
        beads = corners_of(m, world, face)
        edges_of(world, beads, e)
        cross(e, e + 3, big_n)
        length = sqrt(dot(big_n, big_n))
        if length == 0.0:
            return -1.0
        cross(big_n, e + 3 * corner, u)
        add_scaled(0.5 / length, u, a)
        add_scaled(1.0, big_n, g)
        lengths += length
    return lengths


cdef inline double curvature_of(const double* a, const double* g) noexcept nogil:
    """H of a vertex. A vertex whose faces' normals cancel (a cone closed to a spike, a ring folded flat) has no normal,
    so that H has no sign, and grows without bound towards it: its mean, zero, is taken."""
    cdef double gg = dot(g, g)
    return 3.0 * dot(a, g) / gg if gg > 0.0 else 0.0


cdef inline double curvature_now(const Membrane* m, const World* world, Py_ssize_t v, double* area) noexcept nogil:
    """H of one vertex inside, and its area, measured now from the faces at it; the area is < 0 where one of these has
    none."""
    cdef double a[3]
    cdef double g[3]
    area[0] = sums_now(m, world, v, a, g) * (1.0 / 6.0)
    return curvature_of(a, g) if area[0] >= 0.0 else 0.0


cdef inline int rows_of_faces(
    const int order, const BendingTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """What each face contributes to the gradient at its corners: the coefficient of t^order."""
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* r
    cdef double* row
    cdef Facet facet
    cdef double p[3][9]
    cdef double q[9]
    cdef double s[3]
    cdef double big_t[9]
    cdef double big_c[9]
    cdef double u[9]
    cdef Py_ssize_t f
    cdef int i, k, corner, fault = 0
    for f in range(first, last):
        if order == 0:
            beads = corners_of(m, world, min(f + FACES_AHEAD, last - 1))
            for corner in range(3):
                prefetch(world.x + 3 * <Py_ssize_t> beads[corner])
                prefetch_doubles(t.response + WIDTH * (beads[corner] - m.first_bead), WIDTH)
        beads = corners_of(m, world, f)
        row = t.rows + 9 * f
        if m.area_vectors[4 * f + 3] == 0.0:
            fault |= bend_no_area(m, world, t.kappa, beads, f, row)
            continue
        facet_of(order, m, world, t.a, beads, f, &facet)
        for corner in range(3):
            r = t.response + WIDTH * (order + 1) * (beads[corner] - m.first_bead)
            for k in range(order + 1):
                for i in range(3):
                    p[corner][3 * k + i] = r[WIDTH * k + i]
                    q[3 * k + i] = r[WIDTH * k + 3 + i] if corner == 0 else q[3 * k + i] + r[WIDTH * k + 3 + i]
                s[k] = r[WIDTH * k + 6] if corner == 0 else s[k] + r[WIDTH * k + 6]
        crosses(order, facet.e[0], p[0], big_t)
        for corner in range(1, 3):
            crosses(order, facet.e[corner], p[corner], u)
            for i in range(3 * (order + 1)):
                big_t[i] += u[i]
        dots(order, facet.n, big_t, u)
        product(order, u, facet.inverse, u + 3)
        for k in range(order + 1):
            s[k] -= u[3 + k]
        for k in range(order + 1):
            for i in range(3):
                big_c[3 * k + i] = 0.0
            add_scaled_at(k, facet.inverse, big_t, big_c + 3 * k)
            add_scaled(1.0, q + 3 * k, big_c + 3 * k)
            add_scaled_at(k, s, facet.n, big_c + 3 * k)
        # Corners 0 and 1; the third is what is missing to zero, since E does not change when a face is moved.
        cross_at(order, big_c, facet.e[0], row)
        cross_at(order, big_c, facet.e[1], row + 3)
        for i in range(3 * (order + 1)):
            u[i] = p[1][i] - p[2][i]
            big_t[i] = p[2][i] - p[0][i]
        cross_at(order, u, facet.n, big_c)
        cross_at(order, big_t, facet.n, big_c + 3)
        for i in range(6):
            row[i] += big_c[i]
        for i in range(3):
            row[6 + i] = -(row[i] + row[3 + i])
    return fault
