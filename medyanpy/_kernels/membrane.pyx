"""The passes that the forces of a membrane share; see membrane.pxd for the notation.

A force is a few passes, each over faces or over vertices. Whoever owns a face writes its row, whoever owns a
vertex reads the rows of its corners in ascending order: no two threads ever write in one place, and sums have
one order. Faces and vertices of the mesh have been checked by TriangleMesh.
"""
import numpy as np

from libc.math cimport sqrt

from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.vec3 cimport cross, dot


cdef inline double _normal(const double* e, double* n) noexcept nogil:
    """Unit normal into n[0:3], |N| into n[3]; returns |N|."""
    cdef double length, inverse
    cross(e, e + 3, n)
    length = sqrt(dot(n, n))
    # A face without area has no normal. Zero is the mean over all directions: such a face then pulls at
    # nothing. Forces that cannot go on without it look at |N|.
    inverse = 1.0 / length if length > 0.0 else 0.0
    n[0] *= inverse
    n[1] *= inverse
    n[2] *= inverse
    n[3] = length
    return length


cdef int _normals(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Membrane* m = (<MembraneTask*> task).membrane
    cdef double e[9]
    cdef Py_ssize_t f
    for f in range(first, last):
        edges_of(world, corners_of(m, world, f), e)
        _normal(e, m.normals + 4 * f)
    return 0


cdef int _areas(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Membrane* m = (<MembraneTask*> task).membrane
    cdef double e[9]
    cdef double twice = 0.0
    cdef Py_ssize_t f
    for f in range(first, last):
        edges_of(world, corners_of(m, world, f), e)
        twice += _normal(e, m.normals + 4 * f)
        area_gradients(m.normals + 4 * f, e, 0.5, m.rows + 9 * f)
    m.face_partial[first // FACE_BLOCK] = 0.5 * twice
    return 0


cdef struct GatherTask:
    Membrane* membrane
    double scale


cdef int _gather(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef GatherTask* t = <GatherTask*> task
    cdef Membrane* m = t.membrane
    cdef const double* row
    cdef double* f
    cdef double s0, s1, s2
    cdef Py_ssize_t v, s
    for v in range(first, last):
        s0 = s1 = s2 = 0.0
        for s in range(m.offsets[v], m.offsets[v + 1]):
            row = m.rows + 3 * <Py_ssize_t> m.corners[s]
            s0 += row[0]
            s1 += row[1]
            s2 += row[2]
        # Summed apart and added once: two equal forces give exactly twice one.
        f = world.f + 3 * (m.first_bead + v)
        f[0] -= t.scale * s0
        f[1] -= t.scale * s1
        f[2] -= t.scale * s2
    return 0


cdef class MembraneForce(Operation):
    """A force on the vertices of one membrane.

    Parameters
    ----------
    name : str
    first_bead, first_face : int
        Vertex 0 and face 0 of the membrane, in the arrays of the Context.
    offsets, corners : (V + 1,), (3F,) int32
        ``mesh.vertex_faces``.
    """

    def __init__(self, str name, Py_ssize_t first_bead, Py_ssize_t first_face, const int32_t[::1] offsets,
                 const int32_t[::1] corners):
        cdef Membrane* m = &self.membrane
        self.name = name
        self.acts_on_points = False
        m.n_vertices = offsets.shape[0] - 1
        m.n_faces = corners.shape[0] // 3
        m.first_bead = first_bead
        m.first_face = first_face
        self.offsets = offsets
        self.corners = corners
        self.normals = np.zeros((m.n_faces, 4))
        self.rows = np.zeros((m.n_faces, 3, 3))
        self.face_partial = np.zeros(n_blocks(m.n_faces, FACE_BLOCK))
        self.vertex_partial = np.zeros(n_blocks(m.n_vertices, VERTEX_BLOCK))
        m.offsets = &self.offsets[0]
        m.corners = &self.corners[0]
        m.normals = &self.normals[0, 0]
        m.rows = &self.rows[0, 0, 0]
        m.face_partial = &self.face_partial[0]
        m.vertex_partial = &self.vertex_partial[0]

    cdef int measure_normals(self, World* world) noexcept nogil:
        """Normals of all faces."""
        cdef MembraneTask task
        task.membrane = &self.membrane
        return over_blocks(_normals, &task, world, self.membrane.n_faces, FACE_BLOCK)

    cdef int measure_areas(self, World* world) noexcept nogil:
        """Normals of all faces, gradients of their areas as rows, and areas as `sum_over_faces`."""
        cdef MembraneTask task
        task.membrane = &self.membrane
        return over_blocks(_areas, &task, world, self.membrane.n_faces, FACE_BLOCK)

    cdef int gather(self, World* world, double scale) noexcept nogil:
        """f -= scale times the rows of each vertex's corners: rows are gradients of the energy."""
        cdef GatherTask task
        task.membrane = &self.membrane
        task.scale = scale
        return over_blocks(_gather, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)

    cdef double sum_over_faces(self) noexcept nogil:
        return ordered_sum(self.membrane.face_partial, n_blocks(self.membrane.n_faces, FACE_BLOCK))

    cdef double sum_over_vertices(self) noexcept nogil:
        return ordered_sum(self.membrane.vertex_partial, n_blocks(self.membrane.n_vertices, VERTEX_BLOCK))
