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
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, uint32_t

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.elementary cimport atan2_
from medyanpy._kernels.membrane cimport (
    area_gradients, area_vector_of, bend_no_area, corners_of, edges_of, FACE_BLOCK, Geometry, Membrane, MembraneForce,
    normal_of, NORMALS, VERTEX_BLOCK,
)
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.triangles cimport corner_before
from medyanpy._kernels.vec3 cimport add_scaled, cross, dot

cdef enum:
    EDGE_BLOCK = 1024
    # Angles are computed this many at a time, in a loop of their own that the compiler turns into vectors.
    BATCH = 64


cdef struct DihedralTask:
    const Membrane* membrane
    int32_t* pairs            # (E, 2) the two corners, counted from its first, of each edge with two faces
    const double* kappa       # (V,)
    const double* c0          # (V,)
    double* turn              # (F, 3) l phi of the edge opposite each corner; 0 at a border
    double* response          # (V, 2) m and s/6
    double* rows              # (F, 3, 3) dE/dx of each corner
    double* partial           # energy of each block of vertices


cdef int _edges(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """l phi of each edge, for both its faces."""
    cdef DihedralTask* t = <DihedralTask*> task
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


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Curvature and energy of each vertex, and the response to changes of M and S."""
    cdef DihedralTask* t = <DihedralTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef double h, area, turn, excess, energy = 0.0
    cdef Py_ssize_t v, s
    # Without a sign, which takes longer to divide.
    cdef uint32_t corner, face
    for v in range(first, last):
        t.response[2 * v] = t.response[2 * v + 1] = 0.0
        if t.kappa[v] == 0.0:
            continue
        turn = area = 0.0
        for s in range(starts[v], ends[v]):
            corner = <uint32_t> (corners[s] - begin)
            face = corner // 3
            area += m.area_vectors[4 * <size_t> face + 3]
            # The edge that leaves v in this face, opposite the corner before it: round v, each edge once.
            turn += t.turn[corner - 1 if corner > 3 * face else corner + 2]
        area *= 1.0 / 6.0
        # Without area nothing is left of the ring, which `_faces` reports.
        h = 0.25 * turn / area if area > 0.0 else 0.0
        excess = t.kappa[v] * (h - t.c0[v])
        energy += 2.0 * excess * (h - t.c0[v]) * area
        t.response[2 * v] = excess
        t.response[2 * v + 1] = excess * (h + t.c0[v]) * (-1.0 / 3.0)
    t.partial[first // VERTEX_BLOCK] = energy
    return 0


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What each face contributes to the gradient at its corners."""
    cdef DihedralTask* t = <DihedralTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* big_n
    cdef const double* turn
    cdef double* row
    cdef double e[9]
    cdef double n[3]
    cdef double w[3]
    cdef double b[3]
    cdef double big_y[3]
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
        edges_of(world, beads, e)
        w[0] = t.response[2 * v1] + t.response[2 * v2]
        w[1] = t.response[2 * v2] + t.response[2 * v0]
        w[2] = t.response[2 * v0] + t.response[2 * v1]
        s = t.response[2 * v0 + 1] + t.response[2 * v1 + 1] + t.response[2 * v2 + 1]
        turn = t.turn + 3 * f
        inverse = normal_of(big_n, n)
        for i in range(3):
            big_y[i] = (w[0] * e[i] + w[1] * e[3 + i] + w[2] * e[6 + i]) * inverse
            b[i] = 0.5 * w[i] * turn[i] / dot(e + 3 * i, e + 3 * i)
        # Corners 0 and 1; the third is what is missing to zero, since E does not change when a face is moved.
        area_gradients(n, e, s, row)
        add_scaled(-dot(e, big_y), n, row)
        add_scaled(b[1], e + 3, row)
        add_scaled(-b[2], e + 6, row)
        add_scaled(-dot(e + 3, big_y), n, row + 3)
        add_scaled(b[2], e + 6, row + 3)
        add_scaled(-b[0], e, row + 3)
        for i in range(3):
            row[6 + i] = -(row[i] + row[3 + i])
    return fault


cdef class DihedralBending(MembraneForce):
    """Dihedral form. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm."""
    cdef const double[::1] kappa
    cdef const double[::1] c0
    # Found anew after edges have been flipped: of how many flips these are.
    cdef int32_t[:, ::1] pairs
    cdef Py_ssize_t n_pairs
    cdef long long flips
    cdef double[:, ::1] turn
    cdef double[:, ::1] response
    cdef double[:, :, ::1] rows
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0):
        MembraneForce.__init__(self, name, geometry, NORMALS)
        self.kappa = kappa
        self.c0 = c0
        self.pairs = np.zeros((3 * self.membrane.n_faces // 2 + 1, 2), np.int32)
        self.flips = -1
        self.turn = np.zeros((self.membrane.n_faces, 3))
        self.response = np.zeros((kappa.shape[0], 2))
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(kappa.shape[0], VERTEX_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef DihedralTask task
        cdef int fault
        task.membrane = self.membrane
        task.pairs = &self.pairs[0, 0]
        task.kappa = &self.kappa[0]
        task.c0 = &self.c0[0]
        task.turn = &self.turn[0, 0]
        task.response = &self.response[0, 0]
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        self.energy = 0.0
        self.geometry.measure(world, NORMALS)
        if self.flips != self.geometry.triangles.flips:
            self.find_pairs(world, task.pairs, task.turn)
        over_blocks(_edges, &task, world, self.n_pairs, EDGE_BLOCK)
        over_blocks(_vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(_faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault != 0:
            return fault
        self.gather(world, task.rows, NULL)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

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

    cdef int part(self, World* world, double* out) noexcept nogil:
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
