"""Helfrich energy of a membrane, dihedral form. Notation: membrane.pxd.

    E = sum_v 2 kappa_v (H_v - c_v)^2 S_v,   H_v = M_v/(4 S_v)
    M_v = sum_e l_e phi_e,   S_v = sum_f |N_f| / 6

over the edges e and faces f at v; phi is the angle from one face's normal to the other's, positive where the
surface is convex seen from the side the normals point to. A vertex with kappa_v = 0 has no energy; the caller
sets it for border vertices. The edges of the others all have two faces.

    phi = atan2(t.(n1 x n2), n1.n2),   t along the edge, anticlockwise in face 1

Derivative. dE/dM_v = m_v = kappa_v (H_v - c_v),   dE/dS_v = s_v = 2 kappa_v (c_v^2 - H_v^2). With
W_e = m_i + m_j over the ends of e,

    dE = sum_e W_e (phi_e dl_e + l_e dphi_e) + sum_v s_v dS_v

phi changes as each of its two faces turns about the edge. A face whose corners rise by u_c = n.dx_c along its
normal changes the phi of its edge e_k by -sum_c u_c (e_c.e_k)/(|N| |e_k|), minus the slope of the linear
function u along the height on e_k. So for all its three edges together, with Y = sum_k W_k e_k, a face
contributes to the gradient at its corner c

    -n (e_c.Y)/|N| + (s_0 + s_1 + s_2)/6 n x e_c + b_(c+1) e_(c+1) - b_(c+2) e_(c+2),
    b_k = W_k l_k phi_k / (2 l_k^2)

the last two being half of each dl: the other half comes from the face across. If all W are one, Y = 0: this
is Schlaefli's formula, sum_e l_e dphi_e = 0.

With m = u/2 and s = -u (H + c_v) it is the sum over vertices with weights u: bending.pxd, which says what that is
for. Along a line all of this is in series. Of an angle with cos phi = X, sin phi = Y, where X^2 + Y^2 = 1, the
coefficients of t and t^2 are phi_k = X Y_k - Y X_k.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, uint32_t

from medyanpy._kernels.core.arrays cimport large_zeros
from medyanpy._kernels.forces.bending cimport (
    Bending, BendingTask, CHANGES, follow, Loops, ONES, RESIDUALS, SHORT, weights,
)
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport atan2_
from medyanpy._kernels.beads.membrane cimport (
    area_vector_of, bend_no_area, corners_of, Facet, facet_of, Geometry, HESSIAN, Membrane, NORMALS, STIFFNESS, THIRD,
    THIRD_OF_STIFFNESS, VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport BlockFunction, n_blocks, over_blocks
from medyanpy._kernels.core.prefetch cimport FACES_AHEAD, prefetch, prefetch_doubles, VERTICES_AHEAD
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.series cimport add_scaled_at, crosses, dots, product, quotient, root
from medyanpy._kernels.core.triangles cimport corner_before
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef enum:
    EDGE_BLOCK = 1024
    # Angles are computed this many at a time, in a loop of their own that the compiler turns into vectors.
    BATCH = 64
    # What the energy of one vertex hands to its faces, for each power of t: m and s/6.
    WIDTH = 2
    CORNERS = 0


cdef struct EdgeTask:
    const Membrane* membrane
    const int32_t* pairs      # (E, 2) the two corners, counted from its first, of each edge with two faces
    double* turn              # (F, 3) l phi of the edge opposite each corner; 0 at a border


cdef int _edges(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """l phi of each edge, for both its faces."""
    cdef EdgeTask* t = <EdgeTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* pair
    cdef const int32_t* beads
    cdef const double* n1
    cdef const double* n2
    cdef double y[BATCH]
    cdef double x[BATCH]
    cdef double length[BATCH]
    cdef double e[3]
    cdef double u[3]
    cdef Py_ssize_t batch, start, k, n, face
    cdef int corner
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        n = min(<Py_ssize_t> BATCH, last - start)
        for k in range(n):
            pair = t.pairs + 2 * min(start + k + FACES_AHEAD, last - 1)
            prefetch_doubles(m.normals + 3 * <Py_ssize_t> (pair[1] // 3), 3)
            pair = t.pairs + 2 * (start + k)
            face = pair[0] // 3
            corner = pair[0] - 3 * <int> face
            beads = corners_of(m, world, face)
            displacement(
                &world.box,
                world.x + 3 * <Py_ssize_t> beads[corner + 1 if corner < 2 else 0],
                world.x + 3 * <Py_ssize_t> beads[corner - 1 if corner > 0 else 2],
                e,
            )
            n1 = m.normals + 3 * face
            n2 = m.normals + 3 * <Py_ssize_t> (pair[1] // 3)
            cross(n1, n2, u)
            length[k] = sqrt(dot(e, e))
            # Both arguments times the length: nothing to divide by.
            y[k] = dot(e, u)
            x[k] = length[k] * dot(n1, n2)
        for k in range(n):
            y[k] = length[k] * atan2_(y[k], x[k])
        for k in range(n):
            pair = t.pairs + 2 * (start + k)
            t.turn[pair[0]] = y[k]
            t.turn[pair[1]] = y[k]
    return 0


cdef inline void _turns(
    const int order, const BendingTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """l phi along a line, of each edge that has two faces by the corner with the lower number; 0 at a border."""
    cdef const Membrane* m = t.membrane
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef const int32_t* beads
    cdef const int32_t* opposite
    cdef double e[9]
    cdef double n[2][9]
    cdef double u[9]
    cdef double length[3]
    cdef double x[3]
    cdef double y[3]
    cdef double angle[3]
    cdef double* turn
    cdef Py_ssize_t f, face, other, side
    cdef int c, i, k, at
    for f in range(first, last):
        beads = corners_of(m, world, f)
        opposite = world.opposite + begin + 3 * f
        for at in range(3):
            if opposite[at] < 0:
                for k in range(order):
                    t.turns[3 * (order * f + k) + at] = 0.0
                continue
            other = opposite[at] - begin
            if other < 3 * f + at:
                continue
            c = beads[at + 1 if at < 2 else 0]
            i = beads[at - 1 if at > 0 else 2]
            displacement(&world.box, world.x + 3 * <Py_ssize_t> c, world.x + 3 * <Py_ssize_t> i, e)
            for k in range(3):
                e[3 + k] = t.a[3 * (i - m.first_bead) + k] - t.a[3 * (c - m.first_bead) + k]
                if order > 1:
                    e[6 + k] = 0.0
            face = f
            for side in range(2):
                for c in range(3):
                    n[side][c] = m.normals[3 * face + c]
                    for k in range(1, order + 1):
                        n[side][3 * k + c] = t.lines[SHORT * (order * face + k - 1) + c]
                face = other // 3
            crosses(order, n[0], n[1], u)
            dots(order, n[0], n[1], x)
            dots(order, e, e, length)
            root(order, length, length)
            dots(order, e, u, y)
            quotient(order, y, length, y)
            angle[0] = t.turn[3 * f + at] / length[0]
            for k in range(1, order + 1):
                angle[k] = x[0] * y[k] - y[0] * x[k]
            product(order, length, angle, x)
            for k in range(1, order + 1):
                turn = t.turns + 3 * (k - 1)
                turn[3 * order * f + at] = turn[3 * order * (other // 3) + other % 3] = x[k]


cdef inline void _respond(
    const int lines, const int order, const int what, BendingTask* t, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """Curvature and energy of each vertex, and the response to changes of M and S; along lines, where that is their
    order, series of the response up to `order`."""
    cdef const Membrane* m = t.membrane
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef double area[3]
    cdef double h[3]
    cdef double u[3]
    cdef double s[3]
    cdef double energy = 0.0
    cdef double* r
    cdef Py_ssize_t v, at, row, ahead
    # Without a sign, which takes longer to divide.
    cdef uint32_t corner, face, leaving
    cdef int k
    for v in range(first, last):
        if lines == 0:
            ahead = min(v + VERTICES_AHEAD, last - 1)
            for at in range(starts[ahead], ends[ahead]):
                corner = <uint32_t> (corners[at] - begin)
                prefetch(m.area_vectors + 4 * <size_t> (corner // 3) + 3)
                prefetch(t.turn + corner)
        r = t.response + WIDTH * (order + 1) * v
        for k in range(WIDTH * (order + 1)):
            r[k] = 0.0
        if t.kappa[v] == 0.0:
            continue
        for k in range(lines + 1):
            h[k] = area[k] = 0.0
        for at in range(starts[v], ends[v]):
            corner = <uint32_t> (corners[at] - begin)
            face = corner // 3
            area[0] += m.area_vectors[4 * <size_t> face + 3]
            # The edge that leaves v in this face, opposite the corner before it: round v, each edge once.
            leaving = corner - 1 if corner > 3 * face else corner + 2
            h[0] += t.turn[leaving]
            for k in range(1, lines + 1):
                row = lines * <size_t> face + k - 1
                area[k] += t.lines[SHORT * row + 3]
                h[k] += t.turns[3 * row + (leaving - 3 * face)]
        for k in range(lines + 1):
            area[k] *= 1.0 / 6.0
            h[k] *= 0.25
        # Without area nothing is left of the ring, which `_rows` reports.
        if area[0] > 0.0:
            quotient(lines, h, area, h)
        else:
            for k in range(lines + 1):
                h[k] = 0.0
        weights(order, what, t.kappa[v], t.c0[v], h, area, u)
        energy += u[0] * (h[0] - t.c0[v]) * area[0]
        h[0] += t.c0[v]
        for k in range(order + 1):
            u[k] *= 0.5
        product(order, u, h, s)
        for k in range(order + 1):
            r[WIDTH * k] = u[k]
            r[WIDTH * k + 1] = s[k] * (-1.0 / 3.0)
    if lines == 0:
        t.partial[first // VERTEX_BLOCK] = energy


cdef inline int _rows(
    const int order, const BendingTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """What each face contributes to the gradient at its corners: the coefficient of t^order."""
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* r
    cdef double* row
    cdef Facet facet
    cdef double each[3][3]
    cdef double w[3]
    cdef double b[3][3]
    cdef double s[3]
    cdef double square[3]
    cdef double big_y[9]
    cdef double u[9]
    cdef Py_ssize_t f
    cdef int c, i, k, fault = 0
    for f in range(first, last):
        if order == 0:
            beads = corners_of(m, world, min(f + FACES_AHEAD, last - 1))
            for c in range(3):
                prefetch(world.x + 3 * <Py_ssize_t> beads[c])
                prefetch(t.response + WIDTH * (beads[c] - m.first_bead))
        beads = corners_of(m, world, f)
        row = t.rows + 9 * f
        if m.area_vectors[4 * f + 3] == 0.0:
            fault |= bend_no_area(m, world, t.kappa, beads, f, row)
            continue
        facet_of(order, m, world, t.a, beads, f, &facet)
        for c in range(3):
            r = t.response + WIDTH * (order + 1) * (beads[c] - m.first_bead)
            for k in range(order + 1):
                each[c][k] = r[WIDTH * k]
                s[k] = r[WIDTH * k + 1] if c == 0 else s[k] + r[WIDTH * k + 1]
        for i in range(3 * (order + 1)):
            u[i] = 0.0
        for c in range(3):
            for k in range(order + 1):
                w[k] = each[(c + 1) % 3][k] + each[(c + 2) % 3][k]
            for k in range(order + 1):
                add_scaled_at(k, w, facet.e[c], u + 3 * k)
            square[0] = t.turn[3 * f + c]
            for k in range(1, order + 1):
                square[k] = t.turns[3 * (order * f + k - 1) + c]
            product(order, w, square, b[c])
            dots(order, facet.e[c], facet.e[c], square)
            for k in range(order + 1):
                b[c][k] *= 0.5
            quotient(order, b[c], square, b[c])
        for k in range(order + 1):
            for i in range(3):
                big_y[3 * k + i] = 0.0
            add_scaled_at(k, facet.inverse, u, big_y + 3 * k)
        # Corners 0 and 1; the third is what is missing to zero, since E does not change when a face is moved.
        for c in range(2):
            for i in range(3):
                row[3 * c + i] = 0.0
            crosses(order, facet.n, facet.e[c], u)
            add_scaled_at(order, s, u, row + 3 * c)
            dots(order, facet.e[c], big_y, square)
            for k in range(order + 1):
                square[k] = -square[k]
            add_scaled_at(order, square, facet.n, row + 3 * c)
            add_scaled_at(order, b[c + 1], facet.e[c + 1], row + 3 * c)
            for k in range(order + 1):
                square[k] = -b[(c + 2) % 3][k]
            add_scaled_at(order, square, facet.e[(c + 2) % 3], row + 3 * c)
        for i in range(3):
            row[6 + i] = -(row[i] + row[3 + i])
    return fault


# Compiled for each order --------------------------------------------------------------------------------------

include "bending_loops.pxi"


cdef int _turns_1(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _turns(1, <BendingTask*> task, world, first, last)
    return 0


cdef int _turns_2(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _turns(2, <BendingTask*> task, world, first, last)
    return 0


cdef class DihedralBending(Bending):
    """Dihedral form. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm."""
    # Found anew after edges have been flipped: of how many flips these are.
    cdef int32_t[:, ::1] pairs
    cdef Py_ssize_t n_pairs
    cdef long long flips
    cdef double[:, ::1] turn
    # Of which World, and where beads were, when angles were last measured.
    cdef long long world
    cdef long long positions

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0):
        Bending.__init__(self, name, geometry, kappa, c0, NORMALS, WIDTH, SHORT)
        _set_loops(self, _turns_1, _turns_2)
        self.pairs = np.zeros((3 * self.membrane.n_faces // 2 + 1, 2), np.int32)
        self.flips = -1
        self.world = -1
        self.turn = large_zeros((self.membrane.n_faces, 3))

    cdef void task_of(self, BendingTask* task) noexcept nogil:
        Bending.task_of(self, task)
        task.turn = &self.turn[0, 0]

    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil:
        cdef EdgeTask edges
        self.geometry.measure(world, NORMALS)
        if self.flips != self.geometry.triangles.flips:
            self.find_pairs(world, &self.pairs[0, 0], task.turn)
        elif self.world == world.number and self.positions == world.positions:
            return
        self.world = world.number
        self.positions = world.positions
        edges.membrane = self.membrane
        edges.pairs = &self.pairs[0, 0]
        edges.turn = task.turn
        over_blocks(_edges, &edges, world, self.n_pairs, EDGE_BLOCK)

    cdef void find_pairs(self, World* world, int32_t* pairs, double* turn) noexcept nogil:
        """The corners of edges with two faces, lower number first and ascending; l phi is 0 at a border."""
        cdef int32_t begin = <int32_t> (3 * self.membrane.first_face)
        cdef const int32_t* opposite = world.opposite + begin
        cdef Py_ssize_t corner
        self.n_pairs = 0
        for corner in range(3 * self.membrane.n_faces):
            if opposite[corner] < 0:
                turn[corner] = 0.0
            elif opposite[corner] - begin > corner:
                pairs[2 * self.n_pairs] = <int32_t> corner
                pairs[2 * self.n_pairs + 1] = opposite[corner] - begin
                self.n_pairs += 1
        self.flips = self.geometry.triangles.flips

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef const int32_t* beads
        cdef double e[3]
        cdef double n1[3]
        cdef double n2[3]
        cdef double u[3]
        cdef double length, other, edge, area, turn, h
        cdef Py_ssize_t i, v, s, corner, face
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            if self.kappa[v] == 0.0:
                continue
            turn = area = 0.0
            for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
                # That of the edge that leaves the vertex in this face, which has another one beyond it.
                corner = corner_before(m.rings.corners[s])
                face = corner // 3 - m.first_face
                beads = corners_of(m, world, face)
                displacement(
                    &world.box, world.x + 3 * (m.first_bead + v),
                    world.x + 3 * <Py_ssize_t> beads[corner_before(corner) % 3], e,
                )
                length = area_vector_of(m, world, face, n1)
                other = area_vector_of(m, world, world.opposite[corner] // 3 - m.first_face, n2)
                if length == 0.0 or other == 0.0:
                    out[0] = INFINITY
                    return 0
                area += length
                cross(n1, n2, u)
                edge = sqrt(dot(e, e))
                turn += edge * atan2_(dot(e, u), edge * dot(n1, n2))
            area *= 1.0 / 6.0
            h = 0.25 * turn / area
            out[0] += 2.0 * self.kappa[v] * (h - self.c0[v]) * (h - self.c0[v]) * area
        return 0
