"""Area and volume of a membrane. Notation: membrane.pxd.

    total area     E = sigma A + k (A - A0)^2 / (2 A0)        dE/dA = sigma + k (A - A0)/A0
    per triangle   E = sum_f k_f (A_f - A0_f)^2 / (2 A0_f)    dE/dA_f = k_f (A_f - A0_f)/A0_f
    volume         E = k (V - V0)^2 / (2 V0)                  dV/dx_v = sum_f N_f/6 over the faces at v

V is the sum of the signed volumes of the tetrahedra from vertex 0 to each face. For a closed surface the
point they start from does not matter, nor does that it moves (dV along it is -sum_f N_f/6 = 0). One on the
surface keeps the terms as small as the surface, so that V loses no digits far from the origin; the gradient,
a sum of normals, never sees the point at all.
"""
import numpy as np

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.membrane cimport (
    area_vector_of, AREA_GRADIENTS, AREA_SUMS, AREAS, corners_of, FACE_BLOCK, Geometry, Membrane, MembraneForce,
    VECTOR_SUMS, VOLUME,
)
from medyanpy._kernels.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.program cimport Change, World
from medyanpy._kernels.vec3 cimport dot


cdef class TotalArea(MembraneForce):
    """modulus k and tension sigma: pN/nm; area A0: nm^2, > 0."""
    cdef double modulus
    cdef double area
    cdef double tension

    def __init__(self, str name, Geometry geometry, double modulus, double area, double tension):
        MembraneForce.__init__(self, name, geometry, AREA_SUMS)
        self.modulus = modulus
        self.area = area
        self.tension = tension

    cdef int run(self, World* world) noexcept nogil:
        cdef double total, strain
        self.geometry.measure(world, AREA_GRADIENTS)
        total = self.geometry.total_area()
        strain = (total - self.area) / self.area
        self.geometry.pull(world, AREA_SUMS, self.tension + self.modulus * strain)
        self.energy = 0.0
        if world.want_energy:
            self.energy = self.tension * total + 0.5 * self.modulus * strain * (total - self.area)
        return 0

    cdef int part(self, World* world, double* out) noexcept nogil:
        """Area."""
        cdef double big_n[3]
        cdef Py_ssize_t i
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            out[0] += 0.5 * area_vector_of(self.membrane, world, self.geometry.faces[i], big_n)
        return 0

    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil:
        cdef double more = after - before
        cdef double strain
        self.geometry.measure(world, AREAS)
        strain = (self.geometry.total_area() + 0.5 * more - self.area) / self.area
        out[0] = (self.tension + self.modulus * strain) * more
        return 0


cdef struct TriangleTask:
    const Membrane* membrane
    const double* modulus     # (F,)
    const double* area        # (F,)
    double* tension           # (F,) dE/dA
    double* partial           # energy of each block of faces


cdef int _triangles(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef TriangleTask* t = <TriangleTask*> task
    cdef double excess, energy = 0.0
    cdef Py_ssize_t f
    for f in range(first, last):
        excess = 0.5 * t.membrane.area_vectors[4 * f + 3] - t.area[f]
        t.tension[f] = t.modulus[f] * excess / t.area[f]
        energy += 0.5 * t.tension[f] * excess
    t.partial[first // FACE_BLOCK] = energy
    return 0


cdef class TriangleAreas(MembraneForce):
    """modulus k (F,): pN/nm; area A0 (F,): nm^2, > 0."""
    cdef const double[::1] modulus
    cdef const double[::1] area
    cdef double[::1] tension
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, const double[::1] modulus, const double[::1] area):
        MembraneForce.__init__(self, name, geometry, AREA_GRADIENTS)
        self.modulus = modulus
        self.area = area
        self.tension = np.zeros(modulus.shape[0])
        self.partial = np.zeros(n_blocks(modulus.shape[0], FACE_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef TriangleTask task
        task.membrane = self.membrane
        task.modulus = &self.modulus[0]
        task.area = &self.area[0]
        task.tension = &self.tension[0]
        task.partial = &self.partial[0]
        self.geometry.measure(world, AREA_GRADIENTS)
        over_blocks(_triangles, &task, world, self.membrane.n_faces, FACE_BLOCK)
        self.gather(world, self.membrane.area_gradients, task.tension, -1.0, world.f)
        self.energy = 0.0
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int part(self, World* world, double* out) noexcept nogil:
        cdef double big_n[3]
        cdef double excess
        cdef Py_ssize_t i, f
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            excess = 0.5 * area_vector_of(self.membrane, world, f, big_n) - self.area[f]
            out[0] += 0.5 * self.modulus[f] * excess * excess / self.area[f]
        return 0


cdef class Volume(MembraneForce):
    """modulus k: pN/nm^2; volume V0: nm^3, > 0. The membrane is closed."""
    cdef double modulus
    cdef double volume
    cdef double origin[3]

    def __init__(self, str name, Geometry geometry, double modulus, double volume):
        MembraneForce.__init__(self, name, geometry, VOLUME | VECTOR_SUMS)
        self.modulus = modulus
        self.volume = volume

    cdef int run(self, World* world) noexcept nogil:
        cdef double total, strain
        self.geometry.measure(world, VOLUME)
        total = self.geometry.total_volume()
        strain = (total - self.volume) / self.volume
        self.geometry.pull(world, VECTOR_SUMS, self.modulus * strain / 6.0)
        self.energy = 0.0
        if world.want_energy:
            self.energy = 0.5 * self.modulus * strain * (total - self.volume)
        return 0

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        cdef int c
        # Where vertex 0 is now, also in the other state.
        for c in range(3):
            self.origin[c] = world.x[3 * self.membrane.first_bead + c]
        return MembraneForce.difference(self, world, change, out)

    cdef int part(self, World* world, double* out) noexcept nogil:
        """Volume."""
        cdef double big_n[3]
        cdef double d[3]
        cdef Py_ssize_t i, f
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            area_vector_of(self.membrane, world, f, big_n)
            displacement(
                &world.box, self.origin, world.x + 3 * <Py_ssize_t> corners_of(self.membrane, world, f)[0], d
            )
            out[0] += dot(d, big_n) / 6.0
        return 0

    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil:
        cdef double more = after - before
        self.geometry.measure(world, VOLUME)
        out[0] = self.modulus * (self.geometry.total_volume() + 0.5 * more - self.volume) / self.volume * more
        return 0
