"""What the forces of a membrane share: its geometry, and adding up what each corner feels.

Corner i of face f has the number 3 f + i. The edge "of" a corner is the opposite one:

    e_i = x_(i+2) - x_(i+1)  (indices modulo 3),   N = e_0 x e_1 = e_1 x e_2 = e_2 x e_0,   A = |N|/2

With n = N/|N|, every first derivative that is needed follows from

    dN = sum_i e_i x dx_i  =>  dA = n.dN/2,  dA/dx_i = (n x e_i)/2,  dn = (1 - n n^T) dN/|N|

and of the area A and the volume V of the membrane, over the faces f at vertex v,

    dA/dx_v = a = sum_f dA_f/dx_v,   dV/dx_v = G/6,   G = sum_f N_f
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport Box, displacement
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.prefetch cimport prefetch_doubles
from medyanpy._kernels.core.program cimport Change, DEGENERATE_TRIANGLE, Operation, Quad, World
from medyanpy._kernels.core.series cimport cross_at
from medyanpy._kernels.core.triangles cimport Rings, Triangles
from medyanpy._kernels.core.vec3 cimport cross, dot

# Sizes of blocks: short enough that a small cell of 5 000 vertices still feeds several threads.
cdef enum:
    FACE_BLOCK = 512
    VERTEX_BLOCK = 256

# What can be measured of a membrane.
cdef enum:
    AREA_VECTORS = 1          # N of each face
    AREAS = 2                 # |N|, and the sum as `total_area`
    NORMALS = 4
    AREA_GRADIENTS = 8
    VOLUME = 16               # as `total_volume`
    AREA_SUMS = 32            # over the corners of each vertex
    VECTOR_SUMS = 64
    OF_FACES = 31             # what a pass over faces measures
    OF_RINGS = 96             # and one over vertices, after it

# What is asked of higher derivatives. Of each there are loops of its own, compiled for the orders of their series.
cdef enum:
    HESSIAN = 0
    STIFFNESS = 1
    THIRD = 2
    THIRD_OF_STIFFNESS = 3
    KINDS = 4


cdef struct Membrane:
    Py_ssize_t n_vertices
    Py_ssize_t n_faces
    Py_ssize_t first_bead     # vertex 0, among all beads
    Py_ssize_t first_face     # face 0, among the faces of all membranes
    const Rings* rings        # of the vertices of all membranes, by place; corners as in `Triangles`
    # As far as they have been measured.
    double* area_vectors      # (n_faces, 4) N and |N|
    double* normals           # (n_faces, 3) n; 0 where |N| = 0
    double* area_gradients    # (n_faces, 3, 3) dA/dx_i of each corner
    double* area_sums         # (n_vertices, 3) a
    double* vector_sums       # (n_vertices, 4) G and the sum of |N|
    double* area_partial      # one number for each block of faces
    double* volume_partial


cdef inline const int32_t* corners_of(const Membrane* m, const World* world, Py_ssize_t face) noexcept nogil:
    """The three beads of a face."""
    return world.faces + 3 * (m.first_face + face)


cdef inline void edges_of(const World* world, const int32_t* beads, double* e) noexcept nogil:
    """e[0:3], e[3:6], e[6:9]: the edges opposite the three corners."""
    cdef const double* x0 = world.x + 3 * <Py_ssize_t> beads[0]
    cdef const double* x1 = world.x + 3 * <Py_ssize_t> beads[1]
    cdef const double* x2 = world.x + 3 * <Py_ssize_t> beads[2]
    displacement(&world.box, x1, x2, e)
    displacement(&world.box, x2, x0, e + 3)
    displacement(&world.box, x0, x1, e + 6)


cdef inline double area_vector_of(const Membrane* m, const World* world, Py_ssize_t face, double* big_n) noexcept nogil:
    """N of a face, measured now; returns |N|."""
    cdef double e[9]
    edges_of(world, corners_of(m, world, face), e)
    cross(e, e + 3, big_n)
    return sqrt(dot(big_n, big_n))


cdef inline void faces_of_flip(const Quad* quad, int32_t* beads) noexcept nogil:
    """beads (2, 3): the corners of the faces that a flip makes; see triangles.pyx."""
    cdef int32_t* first = beads
    cdef int32_t* second = beads + 3
    cdef int i = quad.at_a
    cdef int j = quad.at_b
    if quad.rule:
        first[i], first[(i + 1) % 3], first[(i + 2) % 3] = quad.d, quad.a, quad.b
        second[j], second[(j + 1) % 3], second[(j + 2) % 3] = quad.c, quad.b, quad.a
    else:
        first[i], first[(i + 1) % 3], first[(i + 2) % 3] = quad.c, quad.b, quad.a
        second[j], second[(j + 1) % 3], second[(j + 2) % 3] = quad.d, quad.a, quad.b


cdef inline void area_gradients(const double* n, const double* e, double scale, double* row) noexcept nogil:
    """row[i] = scale n x e_i: with scale = 1/2 the gradients of the area. The third closes the sum."""
    cdef int c
    cross(n, e, row)
    cross(n, e + 3, row + 3)
    for c in range(6):
        row[c] *= scale
    for c in range(3):
        row[6 + c] = -(row[c] + row[3 + c])


cdef inline double normal_of(const double* big_n, double* n) noexcept nogil:
    """n of a face that has an area, from its row of `area_vectors`; returns 1/|N|."""
    cdef double inverse = 1.0 / big_n[3]
    cdef int c
    for c in range(3):
        n[c] = big_n[c] * inverse
    return inverse


# A face that has an area, along a line.
cdef struct Facet:
    double e[3][9]            # edges
    double big_n[9]
    double n[9]
    double length[3]          # |N|
    double inverse[3]


cdef inline void facet_of(
    const int order, const Membrane* m, const World* world, const double* a, const int32_t* beads, Py_ssize_t face,
    Facet* out,
) noexcept nogil:
    cdef const double* big_n = m.area_vectors + 4 * face
    cdef const double* a0
    cdef const double* a1
    cdef const double* a2
    cdef double e[9]
    cdef int c, i, k
    edges_of(world, beads, e)
    for i in range(3):
        for c in range(3):
            out.e[i][c] = e[3 * i + c]
    out.length[0] = big_n[3]
    out.inverse[0] = normal_of(big_n, out.n)
    if order == 0:
        return
    a0 = a + 3 * (beads[0] - m.first_bead)
    a1 = a + 3 * (beads[1] - m.first_bead)
    a2 = a + 3 * (beads[2] - m.first_bead)
    for c in range(3):
        out.big_n[c] = big_n[c]
        out.e[0][3 + c] = a2[c] - a1[c]
        out.e[1][3 + c] = a0[c] - a2[c]
        out.e[2][3 + c] = a1[c] - a0[c]
        if order > 1:
            out.e[0][6 + c] = out.e[1][6 + c] = out.e[2][6 + c] = 0.0
    for k in range(1, order + 1):
        cross_at(k, out.e[0], out.e[1], out.big_n + 3 * k)
        # Of N = |N| n, with n.n = 1; of t^2, n.n_2 = -n_1.n_1/2.
        out.length[k] = dot(out.n, out.big_n + 3 * k)
        if k == 2:
            out.length[2] += 0.5 * out.length[0] * dot(out.n + 3, out.n + 3)
        for c in range(3):
            out.n[3 * k + c] = out.big_n[3 * k + c]
            for i in range(1, k + 1):
                out.n[3 * k + c] -= out.length[i] * out.n[3 * (k - i) + c]
            out.n[3 * k + c] *= out.inverse[0]
        out.inverse[k] = 0.0
        for i in range(1, k + 1):
            out.inverse[k] -= out.length[i] * out.inverse[k - i]
        out.inverse[k] *= out.inverse[0]


cdef inline int bend_no_area(
    const Membrane* m, World* world, const double* kappa, const int32_t* beads, Py_ssize_t face, double* row,
) noexcept nogil:
    """A face without area in a bending energy: a fault if any of its corners bends, else it pulls at nothing.

    Curvature has no limit there: the angle to each neighbour depends on the way the face collapsed.
    """
    cdef int i
    if kappa[beads[0] - m.first_bead] + kappa[beads[1] - m.first_bead] + kappa[beads[2] - m.first_bead] > 0.0:
        return record_fault(world, DEGENERATE_TRIANGLE, beads[0], m.first_face + face)
    for i in range(9):
        row[i] = 0.0
    return 0


# What a flip does to what has been measured. Faces are in the order of the Quad, the first and the second, and so are
# corners: a, b, c, d.
cdef struct Flipped:
    Quad quad
    double area_vectors[8]    # of the two faces that it makes
    double normals[6]
    double area_gradients[18]
    double area_sums[12]      # of the four corners
    double vector_sums[16]
    double area               # by how much the totals grow
    double volume


cdef inline bint is_one_flip(const Change* change) noexcept nogil:
    """Whether a change puts one edge in the place of another, and is nothing else, and not made yet: energies of edges
    by their lengths need not look at triangles."""
    return change.n_flips == 1 and change.n_beads == 0 and not change.there


cdef inline bint holds_face(const Membrane* m, Py_ssize_t face) noexcept nogil:
    """Whether a face, by its number among all, is one of the membrane."""
    return m.first_face <= face < m.first_face + m.n_faces


cdef inline void fetch_beyond(const Membrane* m, const World* world, const Quad* quad) noexcept nogil:
    """Ask for the normals of the faces round a square, and its own."""
    cdef Py_ssize_t across
    cdef int k
    for k in range(6):
        across = world.opposite[3 * <Py_ssize_t> (quad.first if k < 3 else quad.second) + k % 3]
        if across >= 0:
            prefetch_doubles(m.normals + 3 * (across // 3 - m.first_face), 3)


cdef inline bint lacks_area(const Flipped* flip, int k) noexcept nogil:
    """Whether a face that the flip makes at corner k, of a, b, c, d, has no area: the first has all of them but one of
    c and d, the second all but the other."""
    return ((flip.area_vectors[3] == 0.0 and k != (2 if flip.quad.rule else 3))
            or (flip.area_vectors[7] == 0.0 and k != (3 if flip.quad.rule else 2)))


cdef class Geometry:
    cdef Membrane membrane
    # What the forces bound to it ask for, and what has been measured where beads are.
    cdef int asked
    cdef int known
    # Where that was: of which World, at which value of its `positions`.
    cdef long long world
    cdef long long positions
    # How often, for whoever wants to know.
    cdef readonly long long face_passes
    cdef readonly long long ring_passes
    cdef readonly Triangles triangles
    cdef double[:, ::1] area_vectors
    cdef double[:, ::1] normals
    cdef double[:, :, ::1] area_gradients
    cdef double[:, ::1] area_sums
    cdef double[:, ::1] vector_sums
    cdef double[::1] area_partial
    cdef double[::1] volume_partial
    # What a change touches.
    cdef char[::1] marks              # (n_vertices + n_faces,)
    cdef int32_t[::1] vertices        # the first n_touched of them, by their own numbers
    cdef int32_t[::1] faces
    cdef Py_ssize_t n_touched
    cdef Py_ssize_t n_faces_touched
    # What the flip of that `number` would do.
    cdef Flipped flipped
    cdef long long seen
    # Whether the totals have been followed, flip by flip, since they were measured; and these.
    cdef bint followed
    cdef double area
    cdef double volume

    # The edge, by its first corner, of the quad whose memory has been asked for last.
    cdef Py_ssize_t fetched
    cdef bint see(self, World* world, const Change* change) noexcept nogil
    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil
    cdef double area_of(self, Py_ssize_t face) noexcept nogil
    cdef void see_sums(self, const Quad* quad) noexcept nogil
    cdef void mend(self, World* world, const Change* change) noexcept nogil
    cdef void touch(self, World* world, const Change* change) noexcept nogil
    cdef void touch_vertex(self, Py_ssize_t vertex) noexcept nogil
    cdef void touch_face(self, Py_ssize_t face) noexcept nogil
    # Whether the edge opposite a corner of a face that is touched is seen from that corner first.
    cdef bint is_first(self, World* world, int32_t corner) noexcept nogil
    cdef void let_go(self) noexcept nogil
    cdef int ask(self, int what) except -1
    cdef void measure(self, World* world, int what) noexcept nogil
    cdef void pull(self, World* world, int sums, double scale) noexcept nogil
    cdef double total_area(self) noexcept nogil
    cdef double total_volume(self) noexcept nogil


cdef class MembraneForce(Operation):
    cdef Geometry geometry
    cdef const Membrane* membrane   # the geometry's

    cdef void gather(
        self, World* world, const double* rows, const double* weight, double factor, double* out,
    ) noexcept nogil
    # `local_energy` is that of what the geometry has touched, or what it depends on; inf where a triangle that bends
    # has no area.
    # Whether `of_flip` is there.
    cdef bint sees_flips
    # What the energy gains by the flip that the geometry has seen, by what it has measured.
    cdef void of_flip(self, World* world, double* out) noexcept nogil
    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil
    cdef bint changed(self, World* world, const Change* change) noexcept nogil
