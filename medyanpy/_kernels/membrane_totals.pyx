"""Area and volume of a membrane. Notation: membrane.pxd.

    total area     E = sigma A + k (A - A0)^2 / (2 A0)        dE/dA = sigma + k (A - A0)/A0
    per triangle   E = sum_f k_f (A_f - A0_f)^2 / (2 A0_f)    dE/dA_f = k_f (A_f - A0_f)/A0_f
    volume         E = k (V - V0)^2 / (2 V0)                  dV/dx_v = sum_f N_f/6 over the faces at v

V is the sum of the signed volumes of the tetrahedra from vertex 0 to each face. For a closed surface the
point they start from does not matter, nor does that it moves (dV along it is -sum_f N_f/6 = 0). One on the
surface keeps the terms as small as the surface, so that V loses no digits far from the origin; the gradient,
a sum of normals, never sees the point at all.
"""
from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.membrane cimport (
    FACE_BLOCK, Membrane, MembraneForce, MembraneTask, corners_of, edges_of,
)
from medyanpy._kernels.parallel cimport over_blocks
from medyanpy._kernels.program cimport World
from medyanpy._kernels.vec3 cimport cross, dot

from libc.stdint cimport int32_t


cdef class TotalArea(MembraneForce):
    """modulus k and tension sigma: pN/nm; area A0: nm^2, > 0."""
    cdef double modulus
    cdef double area
    cdef double tension

    def __init__(self, str name, Py_ssize_t first_bead, Py_ssize_t first_face, const int32_t[::1] offsets,
                 const int32_t[::1] corners, double modulus, double area, double tension):
        MembraneForce.__init__(self, name, first_bead, first_face, offsets, corners)
        self.modulus = modulus
        self.area = area
        self.tension = tension

    cdef int run(self, World* world) noexcept nogil:
        cdef double total, strain
        self.measure_areas(world)
        total = self.sum_over_faces()
        strain = (total - self.area) / self.area
        self.gather(world, self.tension + self.modulus * strain)
        self.energy = 0.0
        if world.want_energy:
            self.energy = self.tension * total + 0.5 * self.modulus * strain * (total - self.area)
        return 0


cdef struct TriangleTask:
    Membrane* membrane
    const double* modulus     # (F,)
    const double* area        # (F,)


cdef int _triangles(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Scale the rows of area gradients to gradients of the energy."""
    cdef TriangleTask* t = <TriangleTask*> task
    cdef Membrane* m = t.membrane
    cdef double excess, tension, energy = 0.0
    cdef Py_ssize_t f
    cdef int i
    for f in range(first, last):
        excess = 0.5 * m.normals[4 * f + 3] - t.area[f]
        tension = t.modulus[f] * excess / t.area[f]
        energy += 0.5 * tension * excess
        for i in range(9):
            m.rows[9 * f + i] *= tension
    m.face_partial[first // FACE_BLOCK] = energy
    return 0


cdef class TriangleAreas(MembraneForce):
    """modulus k (F,): pN/nm; area A0 (F,): nm^2, > 0."""
    cdef const double[::1] modulus
    cdef const double[::1] area

    def __init__(self, str name, Py_ssize_t first_bead, Py_ssize_t first_face, const int32_t[::1] offsets,
                 const int32_t[::1] corners, const double[::1] modulus, const double[::1] area):
        MembraneForce.__init__(self, name, first_bead, first_face, offsets, corners)
        self.modulus = modulus
        self.area = area

    cdef int run(self, World* world) noexcept nogil:
        cdef TriangleTask task
        task.membrane = &self.membrane
        task.modulus = &self.modulus[0]
        task.area = &self.area[0]
        self.measure_areas(world)
        over_blocks(_triangles, &task, world, self.membrane.n_faces, FACE_BLOCK)
        self.gather(world, 1.0)
        self.energy = 0.0
        if world.want_energy:
            self.energy = self.sum_over_faces()
        return 0


cdef int _volumes(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """N of each face as the row of all its corners, and the volume of its tetrahedron."""
    cdef Membrane* m = (<MembraneTask*> task).membrane
    cdef const double* origin = world.x + 3 * m.first_bead
    cdef const int32_t* beads
    cdef double* row
    cdef double e[9]
    cdef double d[3]
    cdef double six = 0.0
    cdef Py_ssize_t f
    cdef int i
    for f in range(first, last):
        beads = corners_of(m, world, f)
        edges_of(world, beads, e)
        row = m.rows + 9 * f
        cross(e, e + 3, row)
        for i in range(6):
            row[3 + i] = row[i]
        displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> beads[0], d)
        six += dot(d, row)
    m.face_partial[first // FACE_BLOCK] = six / 6.0
    return 0


cdef class Volume(MembraneForce):
    """modulus k: pN/nm^2; volume V0: nm^3, > 0. The membrane is closed."""
    cdef double modulus
    cdef double volume

    def __init__(self, str name, Py_ssize_t first_bead, Py_ssize_t first_face, const int32_t[::1] offsets,
                 const int32_t[::1] corners, double modulus, double volume):
        MembraneForce.__init__(self, name, first_bead, first_face, offsets, corners)
        self.modulus = modulus
        self.volume = volume

    cdef int run(self, World* world) noexcept nogil:
        cdef MembraneTask task
        cdef double total, strain
        task.membrane = &self.membrane
        over_blocks(_volumes, &task, world, self.membrane.n_faces, FACE_BLOCK)
        total = self.sum_over_faces()
        strain = (total - self.volume) / self.volume
        self.gather(world, self.modulus * strain / 6.0)
        self.energy = 0.0
        if world.want_energy:
            self.energy = 0.5 * self.modulus * strain * (total - self.volume)
        return 0
