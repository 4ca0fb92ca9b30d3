"""The geometry of a membrane, which its forces share; see membrane.pxd for the notation.

What is measured is measured in two passes, one over faces and one over vertices, once where beads are, however many
forces ask. Whoever owns a face writes its rows, whoever owns a vertex reads the rows of its corners in ascending order:
no two threads ever write in one place, and sums have one order. Faces and vertices of the mesh have been checked by
TriangleMesh.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport uint32_t

from medyanpy._kernels.core.arrays cimport large_zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.prefetch cimport FACES_AHEAD, prefetch, prefetch_doubles, VERTICES_AHEAD
from medyanpy._kernels.core.program cimport Change, Quad
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot

cdef enum:
    # Roots and divisions are taken this many at a time, in a loop of their own that the compiler turns into vectors: of
    # one face alone, all that follows waits for them.
    BATCH = 64


cdef struct GeometryTask:
    const Membrane* membrane
    int what


cdef inline int _measured(
    const Membrane* m, const int what, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """N of some faces, and what else is wanted; volumes are of the tetrahedra from vertex 0."""
    cdef const double* origin = world.x + 3 * m.first_bead
    cdef const int32_t* beads
    cdef double* big_n
    cdef double edges[9]
    cdef double e[BATCH][6]
    cdef double length[BATCH]
    cdef double inverse[BATCH]
    cdef double n[3]
    cdef double d[3]
    cdef double twice = 0.0, six = 0.0
    cdef Py_ssize_t batch, start, count, k
    cdef int c
    for batch in range(n_blocks(last - first, BATCH)):
        start = first + batch * BATCH
        count = min(<Py_ssize_t> BATCH, last - start)
        for k in range(count):
            beads = corners_of(m, world, min(start + k + FACES_AHEAD, last - 1))
            for c in range(3):
                prefetch(world.x + 3 * <Py_ssize_t> beads[c])
            beads = corners_of(m, world, start + k)
            edges_of(world, beads, edges)
            big_n = m.area_vectors + 4 * (start + k)
            cross(edges, edges + 3, big_n)
            if what & VOLUME:
                displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> beads[0], d)
                six += dot(d, big_n)
            if what & AREAS:
                length[k] = dot(big_n, big_n)
            if what & AREA_GRADIENTS:
                for c in range(6):
                    e[k][c] = edges[c]
        if not what & AREAS:
            continue
        for k in range(count):
            length[k] = sqrt(length[k])
            inverse[k] = 1.0 / length[k]
            # A face without area has no normal. Zero is the mean over all directions: such a face then pulls at
            # nothing. Forces that cannot go on without it look at |N|.
            inverse[k] = inverse[k] if length[k] > 0.0 else 0.0
        for k in range(count):
            big_n = m.area_vectors + 4 * (start + k)
            big_n[3] = length[k]
            twice += length[k]
            for c in range(3):
                n[c] = big_n[c] * inverse[k]
            if what & NORMALS:
                for c in range(3):
                    m.normals[3 * (start + k) + c] = n[c]
            if what & AREA_GRADIENTS:
                area_gradients(n, e[k], 0.5, m.area_gradients + 9 * (start + k))
    m.area_partial[first // FACE_BLOCK] = 0.5 * twice
    m.volume_partial[first // FACE_BLOCK] = six / 6.0
    return 0


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef GeometryTask* t = <GeometryTask*> task
    if t.what & AREAS:
        return _measured(t.membrane, t.what, world, first, last)
    # Compiled apart: a volume alone shall not pay for what it does not want.
    return _measured(t.membrane, VOLUME, world, first, last)


cdef inline void _fetch_ring(const Membrane* m, int what, Py_ssize_t v) noexcept nogil:
    """Ask for the rows that the sums of vertex v are made of."""
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef uint32_t corner
    cdef Py_ssize_t s
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        corner = <uint32_t> (corners[s] - begin)
        if what & AREA_SUMS:
            prefetch_doubles(m.area_gradients + 3 * <size_t> corner, 3)
        if what & VECTOR_SUMS:
            prefetch(m.area_vectors + 4 * <size_t> (corner // 3))


cdef int _rings(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Sums over the corners of each vertex, in the order of their numbers."""
    cdef const Membrane* m = (<GeometryTask*> task).membrane
    cdef int what = (<GeometryTask*> task).what
    cdef const double* big_n
    cdef double a[3]
    cdef double g[4]
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef Py_ssize_t v, s
    # Without a sign, which takes longer to divide.
    cdef uint32_t corner
    cdef int c
    for v in range(first, last):
        _fetch_ring(m, what, min(v + VERTICES_AHEAD, last - 1))
        a[0] = a[1] = a[2] = g[0] = g[1] = g[2] = g[3] = 0.0
        for s in range(starts[v], ends[v]):
            corner = <uint32_t> (corners[s] - begin)
            if what & AREA_SUMS:
                add_scaled(1.0, m.area_gradients + 3 * <size_t> corner, a)
            if what & VECTOR_SUMS:
                big_n = m.area_vectors + 4 * <size_t> (corner // 3)
                for c in range(4):
                    g[c] += big_n[c]
        if what & AREA_SUMS:
            for c in range(3):
                m.area_sums[3 * v + c] = a[c]
        if what & VECTOR_SUMS:
            for c in range(4):
                m.vector_sums[4 * v + c] = g[c]
    return 0


cdef struct PullTask:
    const Membrane* membrane
    const double* sums
    int width
    double scale


cdef int _pull(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PullTask* t = <PullTask*> task
    cdef double* f = world.f + 3 * t.membrane.first_bead
    cdef Py_ssize_t v
    for v in range(first, last):
        add_scaled(-t.scale, t.sums + t.width * v, f + 3 * v)
    return 0


cdef inline int _with_parts(int what) noexcept nogil:
    """And what that is made of."""
    if what & AREA_SUMS:
        what |= AREA_GRADIENTS
    if what & (AREA_GRADIENTS | NORMALS):
        what |= AREAS
    return what | AREA_VECTORS


cdef class Geometry:
    """Areas, normals and volume of one membrane in one Context, and their sums round each vertex.

    Measured when a force asks and beads have moved since; then at once all that the forces bound to it ask for, so that
    there is one pass over faces, and one over vertices, however many they are.

    Parameters
    ----------
    first_bead, first_face : int
        Vertex 0 and face 0 of the membrane, in the arrays of the Context.
    n_vertices, n_faces : int
    triangles : Triangles
        Of all membranes: the corners of each vertex.

    Attributes
    ----------
    face_passes, ring_passes : int
        How often faces have been measured, and sums been taken.
    """

    def __init__(self, Py_ssize_t first_bead, Py_ssize_t first_face, Py_ssize_t n_vertices, Py_ssize_t n_faces,
                 Triangles triangles not None):
        cdef Membrane* m = &self.membrane
        m.n_vertices = n_vertices
        m.n_faces = n_faces
        m.first_bead = first_bead
        m.first_face = first_face
        self.triangles = triangles
        m.rings = &triangles.rings
        self.marks = np.zeros(n_vertices + n_faces, np.int8)
        self.vertices = np.zeros(n_vertices, np.int32)
        self.faces = np.zeros(n_faces, np.int32)
        self.n_touched = self.n_faces_touched = 0
        self.seen = 0
        self.fetched = -1
        self.followed = False
        self.area_partial = np.zeros(n_blocks(m.n_faces, FACE_BLOCK))
        self.volume_partial = np.zeros(n_blocks(m.n_faces, FACE_BLOCK))
        m.area_partial = &self.area_partial[0]
        m.volume_partial = &self.volume_partial[0]

    cdef int ask(self, int what) except -1:
        """A force will want this: make room for it."""
        cdef Membrane* m = &self.membrane
        what = _with_parts(what)
        if m.area_vectors == NULL:
            self.area_vectors = large_zeros((m.n_faces, 4))
            m.area_vectors = &self.area_vectors[0, 0]
        if what & NORMALS and m.normals == NULL:
            self.normals = large_zeros((m.n_faces, 3))
            m.normals = &self.normals[0, 0]
        if what & AREA_GRADIENTS and m.area_gradients == NULL:
            self.area_gradients = large_zeros((m.n_faces, 3, 3))
            m.area_gradients = &self.area_gradients[0, 0, 0]
        if what & AREA_SUMS and m.area_sums == NULL:
            self.area_sums = large_zeros((m.n_vertices, 3))
            m.area_sums = &self.area_sums[0, 0]
        if what & VECTOR_SUMS and m.vector_sums == NULL:
            self.vector_sums = large_zeros((m.n_vertices, 4))
            m.vector_sums = &self.vector_sums[0, 0]
        self.asked |= what
        return 0

    cdef void measure(self, World* world, int what) noexcept nogil:
        """See that `what`, of all that has been asked for, is that of where beads are now."""
        cdef GeometryTask task
        # Two programs may move the same beads, each with a count of its own.
        if self.world != world.number or self.positions != world.positions:
            self.known = 0
            self.world = world.number
            self.positions = world.positions
        what = _with_parts(what) & ~self.known
        if what == 0:
            return
        task.membrane = &self.membrane
        if what & OF_FACES:
            task.what = self.asked & OF_FACES
            over_blocks(_faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
            self.known = task.what
            self.followed = False
            self.face_passes += 1
        if what & OF_RINGS:
            task.what = self.asked & OF_RINGS
            over_blocks(_rings, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
            self.known |= task.what
            self.ring_passes += 1

    cdef void pull(self, World* world, int sums, double scale) noexcept nogil:
        """f -= scale times one of the sums of each vertex, AREA_SUMS or VECTOR_SUMS."""
        cdef PullTask task
        self.measure(world, sums)
        task.membrane = &self.membrane
        task.sums = self.membrane.area_sums if sums == AREA_SUMS else self.membrane.vector_sums
        task.width = 3 if sums == AREA_SUMS else 4
        task.scale = scale
        over_blocks(_pull, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)

    # What a change touches ------------------------------------------------------------------------------------

    cdef void touch_face(self, Py_ssize_t face) noexcept nogil:
        if not self.marks[self.membrane.n_vertices + face]:
            self.marks[self.membrane.n_vertices + face] = 1
            self.faces[self.n_faces_touched] = <int32_t> face
            self.n_faces_touched += 1

    cdef void touch_vertex(self, Py_ssize_t vertex) noexcept nogil:
        if not self.marks[vertex]:
            self.marks[vertex] = 1
            self.vertices[self.n_touched] = <int32_t> vertex
            self.n_touched += 1

    cdef void touch(self, World* world, const Change* change) noexcept nogil:
        """Faces with corners that move or are exchanged; vertices of such faces, whose rings are then others."""
        cdef const Membrane* m = &self.membrane
        cdef const int32_t* beads
        cdef const Quad* quad
        cdef Py_ssize_t i, s, v, face
        cdef int c
        for i in range(change.n_beads):
            v = change.beads[i]
            if v < m.first_bead or v >= m.first_bead + m.n_vertices:
                continue
            for s in range(m.rings.starts[v], m.rings.ends[v]):
                face = m.rings.corners[s] // 3 - m.first_face
                beads = corners_of(m, world, face)
                self.touch_face(face)
                for c in range(3):
                    self.touch_vertex(beads[c] - m.first_bead)
        for i in range(change.n_flips):
            quad = change.quads + i
            if not holds_face(m, quad.first):
                continue
            self.touch_face(quad.first - m.first_face)
            self.touch_face(quad.second - m.first_face)
            self.touch_vertex(quad.a - m.first_bead)
            self.touch_vertex(quad.b - m.first_bead)
            self.touch_vertex(quad.c - m.first_bead)
            self.touch_vertex(quad.d - m.first_bead)

    cdef bint is_first(self, World* world, int32_t corner) noexcept nogil:
        cdef int32_t across = world.opposite[corner]
        return not 0 <= across < corner or not self.marks[
            self.membrane.n_vertices + across // 3 - self.membrane.first_face]

    cdef void let_go(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_touched):
            self.marks[self.vertices[i]] = 0
        for i in range(self.n_faces_touched):
            self.marks[self.membrane.n_vertices + self.faces[i]] = 0
        self.n_touched = self.n_faces_touched = 0

    # Flips one after another, while beads stay -----------------------------------------------------------------

    cdef bint see(self, World* world, const Change* change) noexcept nogil:
        """Find out what one flip would do to all that is measured; False of other changes."""
        cdef const Membrane* m = &self.membrane
        cdef Flipped* flip = &self.flipped
        cdef const Quad* quad
        cdef int32_t beads[6]
        cdef double e[9]
        cdef double d[3]
        cdef double* big_n
        cdef double inverse
        cdef Py_ssize_t i
        cdef int c, known
        if change.number == 0 or change.n_flips != 1 or change.n_beads != 0:
            return False
        if self.seen == change.number:
            return True
        quad = change.quads
        if not holds_face(m, quad.first):
            return False
        self.measure(world, self.asked)
        known = self.known
        if not self.followed:
            self.area = self.total_area() if known & AREAS else 0.0
            self.volume = self.total_volume() if known & VOLUME else 0.0
            self.followed = True
        flip.quad = quad[0]
        faces_of_flip(quad, beads)
        for i in range(2):
            big_n = flip.area_vectors + 4 * i
            edges_of(world, beads + 3 * i, e)
            cross(e, e + 3, big_n)
            big_n[3] = 0.0
            if known & AREAS:
                big_n[3] = sqrt(dot(big_n, big_n))
                inverse = 1.0 / big_n[3] if big_n[3] > 0.0 else 0.0
                for c in range(3):
                    flip.normals[3 * i + c] = big_n[c] * inverse
                if known & AREA_GRADIENTS:
                    area_gradients(flip.normals + 3 * i, e, 0.5, flip.area_gradients + 9 * i)
        if known & AREAS:
            flip.area = 0.5 * ((flip.area_vectors[3] + flip.area_vectors[7])
                               - (self.area_of(quad.first) + self.area_of(quad.second)))
        if known & VOLUME:
            # Seen from a, only one of the four faces spans a volume.
            displacement(&world.box, world.x + 3 * <Py_ssize_t> quad.a, world.x + 3 * <Py_ssize_t> quad.b, d)
            flip.volume = -dot(d, m.area_vectors + 4 * (quad.second - m.first_face)) / 6.0
        if known & OF_RINGS:
            self.see_sums(quad)
        self.seen = change.number
        return True

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        """Ask for the memory that `see` will read."""
        cdef const Membrane* m = &self.membrane
        cdef int32_t corners[4]
        cdef Py_ssize_t faces[2]
        cdef Py_ssize_t v, corner = 3 * <Py_ssize_t> quad.first + quad.at_a
        cdef int i, k
        if self.fetched == corner or not holds_face(m, quad.first):
            # Of several forces, the first asks.
            return
        self.fetched = corner
        corners[0], corners[1], corners[2], corners[3] = quad.a, quad.b, quad.c, quad.d
        for k in range(4):
            v = corners[k] - m.first_bead
            prefetch_doubles(world.x + 3 * <Py_ssize_t> corners[k], 3)
            if m.area_sums != NULL:
                prefetch_doubles(m.area_sums + 3 * v, 3)
            if m.vector_sums != NULL:
                prefetch_doubles(m.vector_sums + 4 * v, 4)
        faces[0], faces[1] = quad.first - m.first_face, quad.second - m.first_face
        for i in range(2):
            prefetch_doubles(m.area_vectors + 4 * faces[i], 4)
            if m.normals != NULL:
                prefetch_doubles(m.normals + 3 * faces[i], 3)
            if m.area_gradients != NULL:
                prefetch_doubles(m.area_gradients + 9 * faces[i], 9)

    cdef double area_of(self, Py_ssize_t face) noexcept nogil:
        """|N| as measured, of a face by its number among all."""
        return self.membrane.area_vectors[4 * (face - self.membrane.first_face) + 3]

    cdef void see_sums(self, const Quad* quad) noexcept nogil:
        """The sums of the four corners: less the faces that go, and more those that come."""
        cdef const Membrane* m = &self.membrane
        cdef Flipped* flip = &self.flipped
        cdef int32_t corners[4]
        cdef Py_ssize_t faces[2]
        cdef Py_ssize_t v
        # By corner, where each of the faces has it: of old and of new, -1 where it does not.
        cdef int old[4][2]
        cdef int new[4][2]
        cdef int at[2]
        cdef double* a
        cdef double* g
        cdef int k, i, c, with_c
        corners[0], corners[1], corners[2], corners[3] = quad.a, quad.b, quad.c, quad.d
        faces[0], faces[1] = quad.first - m.first_face, quad.second - m.first_face
        at[0], at[1] = quad.at_a, quad.at_b
        old[0][0], old[0][1] = at[0], -1
        old[1][0], old[1][1] = -1, at[1]
        # (a, c, d) and (b, d, c).
        old[2][0], old[2][1] = (at[0] + 1) % 3, (at[1] + 2) % 3
        old[3][0], old[3][1] = (at[0] + 2) % 3, (at[1] + 1) % 3
        # (d, a, b) and (c, b, a), one in the first and the other in the second.
        with_c = 1 if quad.rule else 0
        new[2][with_c], new[2][1 - with_c] = at[with_c], -1
        new[3][1 - with_c], new[3][with_c] = at[1 - with_c], -1
        new[0][with_c], new[0][1 - with_c] = (at[with_c] + 2) % 3, (at[1 - with_c] + 1) % 3
        new[1][with_c], new[1][1 - with_c] = (at[with_c] + 1) % 3, (at[1 - with_c] + 2) % 3
        for k in range(4):
            v = corners[k] - m.first_bead
            if self.known & AREA_SUMS:
                a = flip.area_sums + 3 * k
                for c in range(3):
                    a[c] = m.area_sums[3 * v + c]
                for i in range(2):
                    if old[k][i] >= 0:
                        add_scaled(-1.0, m.area_gradients + 9 * faces[i] + 3 * old[k][i], a)
                    if new[k][i] >= 0:
                        add_scaled(1.0, flip.area_gradients + 9 * i + 3 * new[k][i], a)
            if self.known & VECTOR_SUMS:
                g = flip.vector_sums + 4 * k
                for c in range(4):
                    g[c] = m.vector_sums[4 * v + c]
                    for i in range(2):
                        if old[k][i] >= 0:
                            g[c] -= m.area_vectors[4 * faces[i] + c]
                        if new[k][i] >= 0:
                            g[c] += flip.area_vectors[4 * i + c]

    cdef void mend(self, World* world, const Change* change) noexcept nogil:
        """The flip that was seen last has been made: rows and sums are those that would be measured, to the bit. Totals
        are followed, until beads have moved."""
        cdef Membrane* m = &self.membrane
        cdef const Flipped* flip = &self.flipped
        cdef const Quad* quad = &flip.quad
        cdef GeometryTask task
        cdef int32_t corners[4]
        cdef Py_ssize_t faces[2]
        cdef Py_ssize_t v
        cdef int c, i, k
        if change.number == 0 or self.seen != change.number or self.world != world.number:
            return
        self.seen = 0
        if self.positions != change.positions:
            return
        corners[0], corners[1], corners[2], corners[3] = quad.a, quad.b, quad.c, quad.d
        faces[0], faces[1] = quad.first - m.first_face, quad.second - m.first_face
        for i in range(2):
            for c in range(4):
                m.area_vectors[4 * faces[i] + c] = flip.area_vectors[4 * i + c]
            if self.known & NORMALS:
                for c in range(3):
                    m.normals[3 * faces[i] + c] = flip.normals[3 * i + c]
            if self.known & AREA_GRADIENTS:
                for c in range(9):
                    m.area_gradients[9 * faces[i] + c] = flip.area_gradients[9 * i + c]
        if self.known & OF_RINGS:
            task.membrane = m
            task.what = self.known & OF_RINGS
            for k in range(4):
                _fetch_ring(m, task.what, corners[k] - m.first_bead)
            for k in range(4):
                v = corners[k] - m.first_bead
                _rings(&task, world, v, v + 1, 0)
        self.area += flip.area
        self.volume += flip.volume
        self.positions = world.positions

    # ----------------------------------------------------------------------------------------------------------

    cdef double total_area(self) noexcept nogil:
        if self.followed:
            return self.area
        return ordered_sum(self.membrane.area_partial, n_blocks(self.membrane.n_faces, FACE_BLOCK))

    cdef double total_volume(self) noexcept nogil:
        if self.followed:
            return self.volume
        return ordered_sum(self.membrane.volume_partial, n_blocks(self.membrane.n_faces, FACE_BLOCK))


cdef struct GatherTask:
    const Membrane* membrane
    const double* rows
    const double* weight
    double factor
    double* out


cdef int _gather(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef GatherTask* t = <GatherTask*> task
    cdef const Membrane* m = t.membrane
    cdef double total[3]
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef Py_ssize_t v, s, ahead
    cdef uint32_t corner
    for v in range(first, last):
        ahead = min(v + VERTICES_AHEAD, last - 1)
        for s in range(starts[ahead], ends[ahead]):
            prefetch_doubles(t.rows + 3 * <size_t> <uint32_t> (corners[s] - begin), 3)
        total[0] = total[1] = total[2] = 0.0
        for s in range(starts[v], ends[v]):
            corner = <uint32_t> (corners[s] - begin)
            add_scaled(1.0 if t.weight == NULL else t.weight[corner // 3], t.rows + 3 * <size_t> corner, total)
        # Summed apart and added once: two equal forces give exactly twice one.
        add_scaled(t.factor, total, t.out + 3 * (m.first_bead + v))
    return 0


cdef class MembraneForce(Operation):
    """A force on the vertices of one membrane, made of what its Geometry measures."""

    def __init__(self, str name, Geometry geometry, int asks):
        self.name = name
        self.acts_on_points = False
        self.geometry = geometry
        self.membrane = &geometry.membrane
        geometry.ask(asks)

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        self.geometry.fetch(world, quad)

    cdef void gather(
        self, World* world, const double* rows, const double* weight, double factor, double* out,
    ) noexcept nogil:
        """out (n, 3) += factor times the sum of the rows (F, 3, 3) of each vertex's corners, times the weights (F,) of
        their faces if any. Rows are gradients of the energy, and -1 the factor of forces."""
        cdef GatherTask task
        task.membrane = self.membrane
        task.rows = rows
        task.weight = weight
        task.factor = factor
        task.out = out
        over_blocks(_gather, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        pass

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        if self.sees_flips and self.geometry.see(world, change):
            self.of_flip(world, out)
            return 0
        return Operation.difference(self, world, change, out)

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        # The same in both states: faces and neighbours that a vertex comes by are those at flipped edges.
        self.geometry.touch(world, change)
        self.examined += 2 * (self.geometry.n_touched + self.geometry.n_faces_touched)
        return True

    cdef void release(self) noexcept nogil:
        self.geometry.let_go()

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # All that is measured is measured anew, by the faces and rings of the World, or has been mended.
        self.geometry.mend(world, change)
        return True
