"""Energies of Gaussian curvature and of the difference in area of the two sides of a membrane. Notation: membrane.pxd.

Gaussian curvature, with the angles theta of triangles:

    E = sum_v k_v (2 pi - sum_f theta_f,v)          over the vertices that are not on a border; k_v = 0 on borders
    dtheta_i/dx_(i+1) = -q_(i+2),   dtheta_i/dx_(i+2) = -q_(i+1),   q_k = n x e_k/|e_k|^2

so that a face contributes (k_(j+2) - k_j) q_(j+1) + (k_(j+1) - k_j) q_(j+2) at its corner j: nothing, to the bit, where
k is the same all around. That is the theorem of Gauss and Bonnet.

Difference in area, with the integral M of the mean curvature over a closed membrane:

    E = a (M - M0)^2,   M = sum_v H_v S_v  (vertex form: membrane_bending.pyx)   or   sum_e l_e phi_e/2  (dihedral form)

Of the first, E changes by 2 a (M - M0) [p.da + q.dG + s dS] with

    p = 3 S G/(G.G),   q = S (3 a - 2 H G)/(G.G),   s = H

from which the gradient follows as in membrane_bending.pyx; of the second sum_e l_e dphi_e = 0 (Schlaefli), which leaves
dM = sum_e phi_e dl_e/2. What each vertex or face has of M is kept, and mended where triangles change, so that the gain
of one flip is known without a pass over all.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.elementary cimport atan2_
from medyanpy._kernels.beads.membrane cimport (
    area_gradients, area_vector_of, AREAS, corners_of, edges_of, FACE_BLOCK, faces_of_flip, Flipped, Geometry, Membrane,
    MembraneForce, VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport Change, DEGENERATE_TRIANGLE, World
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot

cdef double PI = 3.141592653589793238462643383280
cdef double TWO_PI = 6.283185307179586476925286766559

cdef enum:
    # Of what M is added up from: few, as one flip has each of its blocks added up anew.
    M_BLOCK = 128


# Gaussian curvature ---------------------------------------------------------------------------------------------------

cdef struct GaussTask:
    const Membrane* membrane
    const double* modulus     # (V,)
    double* rows              # (F, 3, 3)
    double* partial


cdef int _turns(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What each face contributes to the gradient at its corners."""
    cdef GaussTask* t = <GaussTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* big_n
    cdef double e[9]
    cdef double q[9]
    cdef double k[3]
    cdef double square, scale
    cdef double* row
    cdef Py_ssize_t f
    cdef int i, c, after, before
    for f in range(first, last):
        beads = corners_of(m, world, f)
        row = t.rows + 9 * f
        for i in range(3):
            k[i] = t.modulus[beads[i] - m.first_bead]
        for c in range(9):
            row[c] = 0.0
        if k[0] == k[1] and k[0] == k[2]:
            continue
        edges_of(world, beads, e)
        big_n = m.area_vectors + 4 * f
        for i in range(3):
            square = dot(e + 3 * i, e + 3 * i) * big_n[3]
            cross(big_n, e + 3 * i, q + 3 * i)
            # A face without area has no plane in which its angles could open: zero is the mean over all.
            scale = 1.0 / square if square > 0.0 else 0.0
            for c in range(3):
                q[3 * i + c] *= scale
        for i in range(3):
            after = (i + 1) % 3
            before = (i + 2) % 3
            add_scaled(k[before] - k[i], q + 3 * after, row + 3 * i)
            add_scaled(k[after] - k[i], q + 3 * before, row + 3 * i)
    return 0


cdef inline double _angle(const double* e, double length, int c) noexcept nogil:
    """The angle at corner c of a triangle with these edges, and |N|."""
    return atan2_(length, -dot(e + 3 * ((c + 1) % 3), e + 3 * ((c + 2) % 3)))


cdef inline double _deficit(const Membrane* m, World* world, Py_ssize_t v) noexcept nogil:
    """2 pi less the angles of the triangles round a vertex."""
    cdef const int32_t* corners = m.rings.corners
    cdef double e[9]
    cdef double big_n[3]
    cdef double out = TWO_PI
    cdef Py_ssize_t s, face
    cdef int c
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        face = corners[s] // 3 - m.first_face
        c = corners[s] % 3
        edges_of(world, corners_of(m, world, face), e)
        cross(e, e + 3, big_n)
        out -= _angle(e, sqrt(dot(big_n, big_n)), c)
    return out


cdef int _deficits(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef GaussTask* t = <GaussTask*> task
    cdef double energy = 0.0
    cdef Py_ssize_t v
    for v in range(first, last):
        if t.modulus[v] != 0.0:
            energy += t.modulus[v] * _deficit(t.membrane, world, v)
    t.partial[first // VERTEX_BLOCK] = energy
    return 0


cdef class GaussianCurvature(MembraneForce):
    """modulus k (V,): pN nm, 0 on borders."""
    cdef const double[::1] modulus
    cdef double[:, :, ::1] rows
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, const double[::1] modulus):
        MembraneForce.__init__(self, name, geometry, AREAS)
        self.modulus = modulus
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(self.membrane.n_vertices, VERTEX_BLOCK))
        self.sees_flips = True

    cdef int run(self, World* world) noexcept nogil:
        cdef GaussTask task
        task.membrane = self.membrane
        task.modulus = &self.modulus[0]
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        self.geometry.measure(world, AREAS)
        over_blocks(_turns, &task, world, self.membrane.n_faces, FACE_BLOCK)
        self.gather(world, task.rows, NULL, -1.0, world.f)
        self.energy = 0.0
        if world.want_energy:
            # Angles are wanted for nothing else.
            over_blocks(_deficits, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Py_ssize_t i, v
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            if self.modulus[v] != 0.0:
                out[0] += self.modulus[v] * _deficit(self.membrane, world, v)
        return 0

    cdef double turn_of(self, World* world, const int32_t* beads) noexcept nogil:
        """sum_i k_i theta_i of a face."""
        cdef double e[9]
        cdef double big_n[3]
        cdef double k[3]
        cdef double length, out = 0.0
        cdef int i
        for i in range(3):
            k[i] = self.modulus[beads[i] - self.membrane.first_bead]
        if k[0] == k[1] and k[0] == k[2]:
            # The theorem of Gauss and Bonnet, to the bit.
            return PI * k[0]
        edges_of(world, beads, e)
        cross(e, e + 3, big_n)
        length = sqrt(dot(big_n, big_n))
        for i in range(3):
            out += k[i] * _angle(e, length, i)
        return out

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        cdef const Flipped* flip = &self.geometry.flipped
        cdef int32_t beads[6]
        faces_of_flip(&flip.quad, beads)
        out[0] = self.turn_of(world, world.faces + 3 * flip.quad.first)
        out[0] += self.turn_of(world, world.faces + 3 * flip.quad.second)
        out[0] -= self.turn_of(world, beads) + self.turn_of(world, beads + 3)


# Difference in area ---------------------------------------------------------------------------------------------------

cdef struct DifferenceTask:
    const Membrane* membrane
    double* value             # of each item, a vertex or a face
    double* partial           # of each block of items
    double* response          # (V, 7) p, q and s of the vertex form
    double* rows              # (F, 3, 3) dM/dx of each corner


cdef inline double _value_of_vertex(const Membrane* m, World* world, Py_ssize_t v, double* r) noexcept nogil:
    """H S of a vertex; r: p, q, s. inf where a triangle has no area."""
    cdef const int32_t* corners = m.rings.corners
    cdef double e[9]
    cdef double row[9]
    cdef double n[3]
    cdef double a[3]
    cdef double g[3]
    cdef double big_n[3]
    cdef double length, area = 0.0, gg, h, scale
    cdef Py_ssize_t s, face
    cdef int c, i
    for i in range(3):
        a[i] = g[i] = 0.0
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        face = corners[s] // 3 - m.first_face
        c = corners[s] % 3
        edges_of(world, corners_of(m, world, face), e)
        cross(e, e + 3, big_n)
        length = sqrt(dot(big_n, big_n))
        if length == 0.0:
            return INFINITY
        for i in range(3):
            n[i] = big_n[i] / length
        area_gradients(n, e, 0.5, row)
        add_scaled(1.0, row + 3 * c, a)
        add_scaled(1.0, big_n, g)
        area += length
    area *= 1.0 / 6.0
    gg = dot(g, g)
    for i in range(7):
        r[i] = 0.0
    if gg == 0.0:
        # As in the bending energy: no normal, and the mean of H with either sign.
        return 0.0
    h = 3.0 * dot(a, g) / gg
    scale = area / gg
    add_scaled(3.0 * scale, g, r)
    add_scaled(3.0 * scale, a, r + 3)
    add_scaled(-2.0 * h * scale, g, r + 3)
    r[6] = h
    return h * area


cdef int _values_of_vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef DifferenceTask* t = <DifferenceTask*> task
    cdef double total = 0.0
    cdef Py_ssize_t v
    for v in range(first, last):
        t.value[v] = _value_of_vertex(t.membrane, world, v, t.response + 7 * v)
        total += t.value[v]
    t.partial[first // M_BLOCK] = total
    return 0


cdef int _rows_of_vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """As in membrane_bending.pyx, of one power of t."""
    cdef DifferenceTask* t = <DifferenceTask*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* r[3]
    cdef double* row
    cdef double e[9]
    cdef double n[3]
    cdef double big_n[3]
    cdef double big_t[3]
    cdef double big_c[3]
    cdef double u[3]
    cdef double length, s
    cdef Py_ssize_t f
    cdef int i, c
    for f in range(first, last):
        beads = corners_of(m, world, f)
        row = t.rows + 9 * f
        edges_of(world, beads, e)
        cross(e, e + 3, big_n)
        length = sqrt(dot(big_n, big_n))
        if length == 0.0:
            return record_fault(world, DEGENERATE_TRIANGLE, beads[0], m.first_face + f)
        s = 0.0
        for c in range(3):
            n[c] = big_n[c] / length
            big_t[c] = big_c[c] = 0.0
        for i in range(3):
            r[i] = t.response + 7 * <Py_ssize_t> (beads[i] - m.first_bead)
            cross(e + 3 * i, r[i], u)
            add_scaled(0.5, u, big_t)
            add_scaled(1.0, r[i] + 3, big_c)
            s += r[i][6] * (1.0 / 6.0)
        s -= dot(n, big_t) / length
        add_scaled(1.0 / length, big_t, big_c)
        add_scaled(s, n, big_c)
        for i in range(2):
            cross(big_c, e + 3 * i, row + 3 * i)
            for c in range(3):
                u[c] = 0.5 * (r[i + 1][c] - r[(i + 2) % 3][c])
            cross(u, n, big_t)
            add_scaled(1.0, big_t, row + 3 * i)
        # What is missing to zero, since M does not change when a face is moved.
        for c in range(3):
            row[6 + c] = -(row[c] + row[3 + c])
    return 0


cdef inline double _turn(
    const Membrane* m, World* world, Py_ssize_t face, int c, double* e, double* angle,
) noexcept nogil:
    """l phi of the edge opposite corner c of a face, and phi; e: that edge. inf where a triangle has no area."""
    cdef const int32_t* opposite = world.opposite + 3 * (m.first_face + face)
    cdef double edges[9]
    cdef double one[3]
    cdef double other[3]
    cdef double u[3]
    cdef double length
    cdef int i
    edges_of(world, corners_of(m, world, face), edges)
    cross(edges, edges + 3, one)
    for i in range(3):
        e[i] = edges[3 * c + i]
    if dot(one, one) == 0.0 or area_vector_of(m, world, opposite[c] // 3 - m.first_face, other) == 0.0:
        angle[0] = 0.0
        return INFINITY
    cross(one, other, u)
    length = sqrt(dot(e, e))
    angle[0] = atan2_(dot(e, u), length * dot(one, other))
    return length * angle[0]


cdef inline double _value_of_face(const Membrane* m, World* world, Py_ssize_t face, double* row) noexcept nogil:
    """Half of what its three edges have of M: the other half is of the faces across. And dM/dx, if row is not NULL."""
    cdef double e[9]
    cdef double angle[3]
    cdef double out = 0.0, length
    cdef int c
    for c in range(3):
        out += 0.25 * _turn(m, world, face, c, e + 3 * c, angle + c)
    if row == NULL:
        return out
    for c in range(9):
        row[c] = 0.0
    for c in range(3):
        length = sqrt(dot(e + 3 * c, e + 3 * c))
        length = 0.25 * angle[c] / length if length > 0.0 else 0.0
        add_scaled(length, e + 3 * c, row + 3 * ((c + 2) % 3))
        add_scaled(-length, e + 3 * c, row + 3 * ((c + 1) % 3))
    return out


cdef int _values_of_faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef DifferenceTask* t = <DifferenceTask*> task
    cdef double total = 0.0
    cdef Py_ssize_t f
    for f in range(first, last):
        t.value[f] = _value_of_face(t.membrane, world, f, t.rows + 9 * f)
        if t.value[f] - t.value[f] != 0.0:
            return record_fault(
                world, DEGENERATE_TRIANGLE, corners_of(t.membrane, world, f)[0], t.membrane.first_face + f
            )
        total += t.value[f]
    t.partial[first // M_BLOCK] = total
    return 0


cdef class AreaDifference(MembraneForce):
    """E = a (M - M0)^2; scale a: pN/nm; reference M0: nm. The membrane is closed."""
    cdef double scale
    cdef double reference
    cdef double[::1] value
    cdef double[::1] partial
    cdef double[:, ::1] response
    cdef double[:, :, ::1] rows
    # Of which World, and where beads were, when M was last measured.
    cdef long long world
    cdef long long positions

    def __init__(self, str name, Geometry geometry, double scale, double reference):
        MembraneForce.__init__(self, name, geometry, 0)
        self.scale = scale
        self.reference = reference
        self.world = -1
        n = self.n_items()
        self.value = np.zeros(n)
        self.partial = np.zeros(n_blocks(n, M_BLOCK))
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.response = np.zeros((self.membrane.n_vertices, 7))

    cdef Py_ssize_t n_items(self) noexcept nogil:
        return 0

    cdef int measure(self, World* world, DifferenceTask* task) noexcept nogil:
        return 0

    cdef int derive(self, World* world, DifferenceTask* task) noexcept nogil:
        """Rows of faces, where `measure` has not found them."""
        return 0

    cdef double mean_curvature(self, World* world) noexcept nogil:
        """M; inf where it has none."""
        cdef DifferenceTask task
        if self.world != world.number or self.positions != world.positions:
            self.task_of(&task)
            if self.measure(world, &task) != 0:
                return INFINITY
            self.world = world.number
            self.positions = world.positions
        return ordered_sum(&self.partial[0], self.partial.shape[0])

    cdef void task_of(self, DifferenceTask* task) noexcept nogil:
        task.membrane = self.membrane
        task.value = &self.value[0]
        task.partial = &self.partial[0]
        task.response = &self.response[0, 0]
        task.rows = &self.rows[0, 0, 0]

    cdef int run(self, World* world) noexcept nogil:
        cdef DifferenceTask task
        cdef double excess
        cdef int fault
        self.energy = 0.0
        self.task_of(&task)
        fault = self.measure(world, &task)
        if fault == 0:
            fault = self.derive(world, &task)
        if fault != 0:
            self.world = -1
            return fault
        self.world = world.number
        self.positions = world.positions
        excess = self.mean_curvature(world) - self.reference
        self.gather(world, task.rows, NULL, -2.0 * self.scale * excess, world.f)
        if world.want_energy:
            self.energy = self.scale * excess * excess
        return 0

    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil:
        cdef double more = after - before
        if after - after != 0.0:
            out[0] = INFINITY
            return 0
        out[0] = self.scale * (2.0 * (self.mean_curvature(world) - self.reference) + more) * more
        return 0

    cdef void mend(self, World* world) noexcept nogil:
        pass

    cdef void add_up(self, Py_ssize_t item) noexcept nogil:
        """The block of an item, as the pass over all adds it up."""
        cdef Py_ssize_t block = item // M_BLOCK, i
        cdef double total = 0.0
        for i in range(M_BLOCK * block, min(M_BLOCK * (block + 1), self.value.shape[0])):
            total += self.value[i]
        self.partial[block] = total

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # Whoever has no World wants to know whether it can be mended.
        if world != NULL and self.world == world.number and self.positions == change.positions:
            # It was right before the change.
            self.geometry.touch(world, change)
            self.mend(world)
            self.geometry.let_go()
            self.positions = world.positions
        else:
            self.world = -1
        return True


cdef class VertexAreaDifference(AreaDifference):
    cdef Py_ssize_t n_items(self) noexcept nogil:
        return self.membrane.n_vertices

    cdef int measure(self, World* world, DifferenceTask* task) noexcept nogil:
        return over_blocks(_values_of_vertices, task, world, self.membrane.n_vertices, M_BLOCK)

    cdef int derive(self, World* world, DifferenceTask* task) noexcept nogil:
        return over_blocks(_rows_of_vertices, task, world, self.membrane.n_faces, FACE_BLOCK)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef double r[7]
        cdef Py_ssize_t i
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            out[0] += _value_of_vertex(self.membrane, world, self.geometry.vertices[i], r)
        return 0

    cdef void mend(self, World* world) noexcept nogil:
        cdef Py_ssize_t i, v
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            self.value[v] = _value_of_vertex(self.membrane, world, v, &self.response[v, 0])
        for i in range(self.geometry.n_touched):
            self.add_up(self.geometry.vertices[i])


cdef class DihedralAreaDifference(AreaDifference):
    cdef Py_ssize_t n_items(self) noexcept nogil:
        return self.membrane.n_faces

    cdef int measure(self, World* world, DifferenceTask* task) noexcept nogil:
        return over_blocks(_values_of_faces, task, world, self.membrane.n_faces, M_BLOCK)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        """Of every edge of the faces that are touched, once."""
        cdef const Membrane* m = self.membrane
        cdef double e[3]
        cdef double angle, share
        cdef Py_ssize_t i, f, other
        cdef int c
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            for c in range(3):
                other = world.opposite[3 * (m.first_face + f) + c] // 3 - m.first_face
                share = 0.25 if self.geometry.marks[m.n_vertices + other] else 0.5
                out[0] += share * _turn(m, world, f, c, e, &angle)
        return 0

    cdef void mend(self, World* world) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef Py_ssize_t i, f, other
        cdef int c
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            self.value[f] = _value_of_face(m, world, f, NULL)
            for c in range(3):
                other = world.opposite[3 * (m.first_face + f) + c] // 3 - m.first_face
                self.value[other] = _value_of_face(m, world, other, NULL)
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            self.add_up(f)
            for c in range(3):
                self.add_up(world.opposite[3 * (m.first_face + f) + c] // 3 - m.first_face)
