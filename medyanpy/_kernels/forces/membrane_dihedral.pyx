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
    area_vector_of, bend_no_area, corners_of, Facet, facet_of, fetch_beyond, Flipped, Geometry, HESSIAN,
    holds_face, lacks_area, Membrane, NORMALS, STIFFNESS, THIRD, THIRD_OF_STIFFNESS, VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport BlockFunction, n_blocks, over_blocks
from medyanpy._kernels.core.prefetch cimport FACES_AHEAD, prefetch, prefetch_doubles, VERTICES_AHEAD
from medyanpy._kernels.core.program cimport Change, Quad, World
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
    # Of how many flips, of which World, and where beads were, when angles were last measured or mended.
    cdef long long turned
    cdef long long world
    cdef long long positions

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0):
        Bending.__init__(self, name, geometry, kappa, c0, NORMALS, WIDTH, SHORT)
        self.sees_flips = True
        _set_loops(self, _turns_1, _turns_2)
        self.pairs = np.zeros((3 * self.membrane.n_faces // 2 + 1, 2), np.int32)
        self.flips = self.turned = -1
        self.world = -1
        self.turn = large_zeros((self.membrane.n_faces, 3))

    cdef void task_of(self, BendingTask* task) noexcept nogil:
        Bending.task_of(self, task)
        task.turn = &self.turn[0, 0]

    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil:
        cdef EdgeTask edges
        cdef long long flips = self.geometry.triangles.flips
        self.geometry.measure(world, NORMALS)
        if self.turned == flips and self.world == world.number and self.positions == world.positions:
            return
        if self.flips != flips:
            self.find_pairs(world, &self.pairs[0, 0], task.turn)
        self.turned = flips
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
        cdef double n1[3]
        cdef double n2[3]
        cdef double length, other, area, turn
        cdef int32_t bead
        cdef Py_ssize_t i, s, corner, face
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            bead = <int32_t> (m.first_bead + self.geometry.vertices[i])
            if self.kappa[bead - m.first_bead] == 0.0:
                continue
            turn = area = 0.0
            for s in range(m.rings.starts[bead], m.rings.ends[bead]):
                # That of the edge that leaves the vertex in this face, which has another one beyond it.
                corner = corner_before(m.rings.corners[s])
                face = corner // 3 - m.first_face
                beads = corners_of(m, world, face)
                length = area_vector_of(m, world, face, n1)
                other = area_vector_of(m, world, world.opposite[corner] // 3 - m.first_face, n2)
                if length == 0.0 or other == 0.0:
                    out[0] = INFINITY
                    return 0
                area += length
                turn += _turn_of(world, bead, beads[corner_before(corner) % 3], n1, n2)
            out[0] += self.of_vertex(bead, turn, area)
        return 0

    # Flips one after another, while beads stay -----------------------------------------------------------------

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        Bending.fetch(self, world, quad)
        fetch_beyond(self.membrane, world, quad)

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        """From l phi of the edge and of the four round it, before and after, and the sums over the rings of the four
        corners."""
        cdef const Membrane* m = self.membrane
        cdef const Flipped* flip = &self.geometry.flipped
        cdef const Quad* quad = &flip.quad
        cdef const double* new_c = flip.normals + (3 if quad.rule else 0)
        cdef const double* new_d = flip.normals + (0 if quad.rule else 3)
        cdef int32_t corners[4]
        # l phi of ab or cd, da, ac, cb and bd; and of the rings, with |N|.
        cdef double old[5]
        cdef double new[5]
        cdef double turn[4]
        cdef double area[4]
        cdef double first, second, with_c, with_d
        cdef BendingTask task
        cdef int k
        corners[0], corners[1], corners[2], corners[3] = quad.a, quad.b, quad.c, quad.d
        out[0] = 0.0
        for k in range(4):
            if self.kappa[corners[k] - m.first_bead] != 0.0 and lacks_area(flip, k):
                out[0] = INFINITY
                return
        self.task_of(&task)
        self.measured(world, &task)
        old[0] = self.turn[quad.first - m.first_face, quad.at_a]
        new[0] = _turn_of(world, quad.a, quad.b, new_d, new_c)
        old[1] = self.beyond(world, quad.first, (quad.at_a + 1) % 3, quad.d, quad.a, new_d, new + 1)
        old[2] = self.beyond(world, quad.first, (quad.at_a + 2) % 3, quad.a, quad.c, new_c, new + 2)
        old[3] = self.beyond(world, quad.second, (quad.at_b + 1) % 3, quad.c, quad.b, new_c, new + 3)
        old[4] = self.beyond(world, quad.second, (quad.at_b + 2) % 3, quad.b, quad.d, new_d, new + 4)
        for k in range(4):
            self.add_ring(corners[k], turn + k, area + k)
            out[0] -= self.of_vertex(corners[k], turn[k], area[k])
        first, second = self.geometry.area_of(quad.first), self.geometry.area_of(quad.second)
        with_c, with_d = flip.area_vectors[7 if quad.rule else 3], flip.area_vectors[3 if quad.rule else 7]
        turn[0] += new[0] + (new[1] - old[1]) + (new[2] - old[2])
        turn[1] += new[0] + (new[3] - old[3]) + (new[4] - old[4])
        turn[2] += (new[2] - old[2]) + (new[3] - old[3]) - old[0]
        turn[3] += (new[1] - old[1]) + (new[4] - old[4]) - old[0]
        area[0] += with_c + with_d - first
        area[1] += with_c + with_d - second
        area[2] += with_c - first - second
        area[3] += with_d - first - second
        for k in range(4):
            out[0] += self.of_vertex(corners[k], turn[k], area[k])

    cdef double beyond(
        self, World* world, Py_ssize_t face, int at, int32_t i, int32_t j, const double* n, double* new,
    ) noexcept nogil:
        """l phi of an edge ij of the square, and as `new` that with a face of normal n on this side."""
        cdef const Membrane* m = self.membrane
        cdef Py_ssize_t across = world.opposite[3 * face + at]
        new[0] = 0.0
        if across >= 0:
            new[0] = _turn_of(world, i, j, n, m.normals + 3 * (across // 3 - m.first_face))
        return self.turn[face - m.first_face, at]

    cdef void add_ring(self, int32_t bead, double* turn, double* area) noexcept nogil:
        """The sums of l phi and of |N| at a vertex."""
        cdef const Membrane* m = self.membrane
        cdef const double* rows = &self.turn[0, 0]
        cdef Py_ssize_t s, corner
        turn[0] = area[0] = 0.0
        for s in range(m.rings.starts[bead], m.rings.ends[bead]):
            corner = m.rings.corners[s] - 3 * m.first_face
            # Of the edge that leaves the vertex in this face.
            turn[0] += rows[corner_before(corner)]
            area[0] += m.area_vectors[4 * (corner // 3) + 3]

    cdef double of_vertex(self, int32_t bead, double turn, double area) noexcept nogil:
        """The energy of a vertex, from the sums of l phi and of |N| over its ring."""
        cdef Py_ssize_t v = bead - self.membrane.first_bead
        cdef double h
        if self.kappa[v] == 0.0:
            return 0.0
        area *= 1.0 / 6.0
        h = 0.25 * turn / area
        return 2.0 * self.kappa[v] * (h - self.c0[v]) * (h - self.c0[v]) * area

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        """Angles of one flip are mended, to the bit."""
        cdef const Membrane* m = self.membrane
        cdef const Quad* quad = change.quads
        cdef int32_t begin = <int32_t> (3 * m.first_face)
        cdef int32_t pairs[12]
        cdef int32_t corner, across
        cdef EdgeTask edges
        cdef Py_ssize_t n = 0
        cdef int k
        cdef bint follows = (change.number != 0 and change.n_flips == 1 and change.n_beads == 0
                             and self.world == world.number and self.positions == change.positions
                             and self.turned == self.geometry.triangles.flips - 1)
        Bending.changed(self, world, change)
        if not follows:
            return True
        self.turned += 1
        self.positions = world.positions
        if not holds_face(m, quad.first):
            return True
        for k in range(6):
            corner = <int32_t> (3 * <Py_ssize_t> (quad.first if k < 3 else quad.second) + k % 3) - begin
            across = world.opposite[begin + corner] - begin
            if across < 0:
                self.turn[corner // 3, corner % 3] = 0.0
            elif not (across < corner and (across // 3 == quad.first - m.first_face)):
                # The new edge once.
                pairs[2 * n], pairs[2 * n + 1] = min(corner, across), max(corner, across)
                n += 1
        edges.membrane = m
        edges.pairs = pairs
        edges.turn = &self.turn[0, 0]
        _edges(&edges, world, 0, n, 0)
        return True


cdef double _turn_of(World* world, int32_t i, int32_t j, const double* n1, const double* n2) noexcept nogil:
    """l phi of an edge from i to j, anticlockwise in the face of normal n1; normals of any length."""
    cdef double e[3]
    cdef double u[3]
    cdef double length
    displacement(&world.box, world.x + 3 * <Py_ssize_t> i, world.x + 3 * <Py_ssize_t> j, e)
    cross(n1, n2, u)
    length = sqrt(dot(e, e))
    return length * atan2_(dot(e, u), length * dot(n1, n2))
