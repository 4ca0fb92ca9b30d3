"""Area and volume of a membrane. Notation: membrane.pxd.

    total area     E = sigma A + k (A - A0)^2 / (2 A0)        dE/dA = sigma + k (A - A0)/A0
    per triangle   E = sum_f k_f (A_f - A0_f)^2 / (2 A0_f)    dE/dA_f = k_f (A_f - A0_f)/A0_f
    volume         E = k (V - V0)^2 / (2 V0)                  dV/dx_v = sum_f N_f/6 over the faces at v
    pressure       E = -p V                                   dE/dV = -p
    osmotic        E = n kT (q - 1 - ln q),  q = c V/n        dE/dV = kT (c - n/V)
    of a pool      E = -n kT ln(V/V1)                         dE/dV = -n kT/V

V is the sum of the signed volumes of the tetrahedra from vertex 0 to each face. For a closed surface the
point they start from does not matter, nor does that it moves (dV along it is -sum_f N_f/6 = 0). One on the
surface keeps the terms as small as the surface, so that V loses no digits far from the origin; the gradient,
a sum of normals, never sees the point at all.

Second and third derivatives of areas: with t = dE/dA_f and dA_f/dx_i = (n x e_i)/2 in series along a line they are
coefficients of their product. As stiffness, K,

    k_f dA_f dA_f^T / A0_f                     what is left of the second derivative where A_f = A0_f
    z.K z = max(t, 0) |N| |n_1|^2/2            what a tension t does across the face: n_1 is Dn along z
    (K z)_i = max(t, 0) (n_1 x e_i)/2
    (z.K'.z)_i = max(t, 0) [2 n_1 x Dz_i - (2 L n_1/|N| + |n_1|^2 n) x e_i]/2,   L = D|N|,   Dz_i: e_i of z

where of a tension the part is left out by which edges give way to each other in the plane.

Of the volume, with z_0, z_1, z_2 at the corners of a face, (V'' z)_0 = sum_f (z_1 x x_2 + x_1 x z_2)/6 and
(z.V'''.z)_0 = sum_f (z_1 x z_2)/3. It has no definite sign: none of it is in a stiffness.

An energy E of the whole area or volume Q, with w = dQ/dx, has

    E''  z = E_Q Q'' z + E_QQ (w.z) w
    z.E'''.z = E_Q z.Q'''.z + 2 E_QQ (w.z) Q'' z + [E_QQ z.Q'' z + E_QQQ (w.z)^2] w

The part w w^T couples all vertices with each other: it is offered apart from the blocks.
"""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.beads.membrane cimport (
    area_vector_of, AREA_GRADIENTS, AREA_SUMS, AREAS, corners_of, FACE_BLOCK, Facet, facet_of, Flipped, Geometry,
    HESSIAN, KINDS, Membrane, MembraneForce, STIFFNESS, THIRD, THIRD_OF_STIFFNESS, VECTOR_SUMS, VOLUME,
)
from medyanpy._kernels.core.parallel cimport BlockFunction, n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport AddBlock, Change, NOT_FINITE, World, keep_diagonal
from medyanpy._kernels.core.series cimport add_scaled_at, crosses
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot


cdef struct AreaTask:
    const Membrane* membrane
    const double* modulus     # (F,) k, and A0: of forces per triangle, else NULL
    const double* area
    double tension            # dE/dA, or dE/dV
    const double* origin      # of volumes
    const double* a           # (V, 3)
    double* rows              # (F, 3, 3)


cdef inline void _along(
    const int kind, const AreaTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """What each face contributes to what is asked for along a, at its corners."""
    cdef const Membrane* m = t.membrane
    cdef int order = 2 if kind == THIRD else 1
    cdef Facet facet
    cdef double slope[9]
    cdef double pull[3]
    cdef double about[3]
    cdef double part[3]
    cdef double* row
    cdef double k, held
    cdef Py_ssize_t f
    cdef int c, i
    for f in range(first, last):
        row = t.rows + 9 * f
        for c in range(9):
            row[c] = 0.0
        if m.area_vectors[4 * f + 3] == 0.0:
            continue
        facet_of(order, m, world, t.a, corners_of(m, world, f), f, &facet)
        k = 0.0
        pull[0] = t.tension
        if t.modulus != NULL:
            k = t.modulus[f] / t.area[f]
            pull[0] = k * (0.5 * facet.length[0] - t.area[f])
        for i in range(1, order + 1):
            pull[i] = 0.5 * k * facet.length[i]
        held = max(t.tension, 0.0)
        if kind == STIFFNESS or kind == THIRD_OF_STIFFNESS:
            pull[0] = 0.0
        if kind == THIRD_OF_STIFFNESS:
            # 2 k A_1 dA_1; and of a tension the rest.
            pull[0] = 2.0 * pull[1]
            pull[1] = 0.0
            for c in range(3):
                about[c] = -held * (2.0 * facet.length[1] * facet.inverse[0] * facet.n[3 + c]
                                    + dot(facet.n + 3, facet.n + 3) * facet.n[c])
        for i in range(3):
            crosses(order, facet.n, facet.e[i], slope)
            add_scaled_at(order, pull, slope, row + 3 * i)
            if kind == STIFFNESS:
                cross(facet.n + 3, facet.e[i], part)
                add_scaled(held, part, row + 3 * i)
            if kind == THIRD_OF_STIFFNESS:
                cross(about, facet.e[i], part)
                add_scaled(1.0, part, row + 3 * i)
                cross(facet.n + 3, facet.e[i] + 3, part)
                add_scaled(2.0 * held, part, row + 3 * i)
        for c in range(9):
            # Of derivatives, not of coefficients.
            row[c] *= 1.0 if kind == THIRD else 0.5


cdef int _hessian(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _along(HESSIAN, <AreaTask*> task, world, first, last)
    return 0


cdef int _stiffness(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _along(STIFFNESS, <AreaTask*> task, world, first, last)
    return 0


cdef int _third(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _along(THIRD, <AreaTask*> task, world, first, last)
    return 0


cdef int _third_of_stiffness(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _along(THIRD_OF_STIFFNESS, <AreaTask*> task, world, first, last)
    return 0


cdef inline void _volumes_along(
    const int kind, const AreaTask* t, World* world, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    """The same of the volume."""
    cdef const Membrane* m = t.membrane
    cdef const int32_t* beads
    cdef const double* z[3]
    cdef double x[9]
    cdef double part[3]
    cdef double* row
    cdef Py_ssize_t f
    cdef int i, j, k
    for f in range(first, last):
        row = t.rows + 9 * f
        beads = corners_of(m, world, f)
        for i in range(3):
            z[i] = t.a + 3 * (beads[i] - m.first_bead)
            displacement(&world.box, t.origin, world.x + 3 * <Py_ssize_t> beads[i], x + 3 * i)
            row[3 * i] = row[3 * i + 1] = row[3 * i + 2] = 0.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            if kind == THIRD:
                cross(z[j], z[k], part)
                add_scaled(t.tension / 3.0, part, row + 3 * i)
            else:
                cross(z[j], x + 3 * k, part)
                add_scaled(t.tension / 6.0, part, row + 3 * i)
                cross(x + 3 * j, z[k], part)
                add_scaled(t.tension / 6.0, part, row + 3 * i)


cdef int _hessian_of_volume(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _volumes_along(HESSIAN, <AreaTask*> task, world, first, last)
    return 0


cdef int _third_of_volume(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _volumes_along(THIRD, <AreaTask*> task, world, first, last)
    return 0


cdef class FaceForce(MembraneForce):
    """A force that adds up what faces feel by themselves, with higher derivatives."""
    cdef BlockFunction loops[KINDS]   # NULL: nothing
    cdef double[:, :, ::1] rows
    cdef double[:, ::1] seed

    cdef void task_of(self, World* world, AreaTask* task) noexcept nogil:
        pass

    def offer(self):
        """Second and third derivatives."""
        self.derivatives = 3
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.seed = np.zeros((self.membrane.n_vertices, 3))
        self.loops[HESSIAN] = _hessian
        self.loops[STIFFNESS] = _stiffness
        self.loops[THIRD] = _third
        self.loops[THIRD_OF_STIFFNESS] = _third_of_stiffness

    cdef void prepare(self, World* world, AreaTask* task) noexcept nogil:
        task.membrane = self.membrane
        task.rows = &self.rows[0, 0, 0]
        task.a = &self.seed[0, 0]
        task.modulus = task.area = task.origin = NULL
        task.tension = 0.0
        self.task_of(world, task)

    cdef int along(self, World* world, int kind, const double* a, double* out) noexcept nogil:
        cdef AreaTask task
        self.prepare(world, &task)
        return self.add_along(world, &task, kind, a, out)

    cdef int add_along(self, World* world, AreaTask* task, int kind, const double* a, double* out) noexcept nogil:
        if self.loops[kind] == NULL:
            return 0
        task.a = a + 3 * self.membrane.first_bead
        over_blocks(self.loops[kind], task, world, self.membrane.n_faces, FACE_BLOCK)
        self.gather(world, task.rows, NULL, 1.0, out)
        return 0

    cdef int multiply(self, World* world, bint positive, const double* a, double* out) noexcept nogil:
        return self.along(world, STIFFNESS if positive else HESSIAN, a, out)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        return self.along(world, THIRD, a, out)

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        return self.along(world, THIRD_OF_STIFFNESS, a, out)

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.blocks(world, HESSIAN, add, sink)

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.blocks(world, STIFFNESS, add, sink)

    cdef int blocks(self, World* world, int kind, AddBlock add, void* sink) noexcept nogil:
        """Columns of each face, which are products with one component of one corner."""
        cdef const Membrane* m = self.membrane
        cdef AreaTask task
        cdef const int32_t* beads
        cdef double* seed
        cdef double h[81]
        cdef double block[9]
        cdef Py_ssize_t f
        cdef int c, d, i, j, fault
        self.prepare(world, &task)
        for f in range(m.n_faces if self.loops[kind] != NULL else 0):
            beads = corners_of(m, world, f)
            for j in range(9):
                seed = &self.seed[0, 0] + 3 * (beads[j // 3] - m.first_bead) + j % 3
                seed[0] = 1.0
                self.loops[kind](&task, world, f, f + 1, 0)
                seed[0] = 0.0
                for i in range(9):
                    h[9 * i + j] = task.rows[9 * f + i]
            for i in range(3):
                for j in range(i + 1):
                    for c in range(3):
                        for d in range(3):
                            # Only round-off is in between.
                            block[3 * c + d] = 0.5 * (h[9 * (3 * i + c) + 3 * j + d] + h[9 * (3 * j + d) + 3 * i + c])
                    fault = add(sink, beads[i], beads[j], block)
                    if fault != 0:
                        return fault
        return 0


cdef class TotalForce(FaceForce):
    """An energy E of the whole area or the volume, Q."""
    cdef double[:, ::1] w         # (places, 3) dQ/dx of the vertices
    cdef double[:, ::1] bent      # (places, 3) Q'' a, or what a stiffness has of it

    def offer(self):
        FaceForce.offer(self)
        self.w = np.zeros((self.membrane.first_bead + self.membrane.n_vertices, 3))
        self.bent = np.zeros_like(self.w)

    cdef void slopes(self, World* world, double* e) noexcept nogil:
        """The first three derivatives of E by Q."""
        e[0] = e[1] = e[2] = 0.0

    cdef void add_gradient(self, World* world, double* w) noexcept nogil:
        """w (n, 3) += dQ/dx."""
        pass

    cdef void task_of(self, World* world, AreaTask* task) noexcept nogil:
        cdef double e[3]
        self.slopes(world, e)
        task.tension = e[0]

    cdef double* vertices_of(self, double[:, ::1] array) noexcept nogil:
        return &array[0, 0] + 3 * self.membrane.first_bead

    cdef const double* gradient(self, World* world) noexcept nogil:
        """w of the vertices, as it is now."""
        cdef double* w = self.vertices_of(self.w)
        cdef Py_ssize_t i
        for i in range(3 * self.membrane.n_vertices):
            w[i] = 0.0
        self.add_gradient(world, &self.w[0, 0])
        return w

    cdef double share(self, World* world, const double* a) noexcept nogil:
        """w.a, with w."""
        cdef const double* w = self.gradient(world)
        cdef double total = 0.0
        cdef Py_ssize_t i
        a += 3 * self.membrane.first_bead
        for i in range(3 * self.membrane.n_vertices):
            total += w[i] * a[i]
        return total

    cdef double curvature(self, World* world, int kind, const double* a) noexcept nogil:
        """a.Q'' a, with Q'' a; or that of the stiffness."""
        cdef AreaTask task
        cdef double* bent = self.vertices_of(self.bent)
        cdef double total = 0.0
        cdef Py_ssize_t i
        for i in range(3 * self.membrane.n_vertices):
            bent[i] = 0.0
        self.prepare(world, &task)
        task.tension = 1.0
        self.add_along(world, &task, kind, a, &self.bent[0, 0])
        a += 3 * self.membrane.first_bead
        for i in range(3 * self.membrane.n_vertices):
            total += bent[i] * a[i]
        return total

    cdef void add(self, double[:, ::1] array, double factor, double* out) noexcept nogil:
        cdef const double* a = self.vertices_of(array)
        cdef Py_ssize_t i
        out += 3 * self.membrane.first_bead
        for i in range(3 * self.membrane.n_vertices):
            out[i] += factor * a[i]

    cdef int multiply(self, World* world, bint positive, const double* a, double* out) noexcept nogil:
        cdef double e[3]
        cdef int fault = self.along(world, STIFFNESS if positive else HESSIAN, a, out)
        if fault == 0 and self.dense > 0:
            self.slopes(world, e)
            self.add(self.w, e[1] * self.share(world, a), out)
        return fault

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        return self.third(world, HESSIAN, THIRD, a, out)

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        return self.third(world, STIFFNESS, THIRD_OF_STIFFNESS, a, out)

    cdef int third(self, World* world, int second, int kind, const double* a, double* out) noexcept nogil:
        cdef double e[3]
        cdef double share, along
        cdef int fault = self.along(world, kind, a, out)
        if fault != 0 or self.dense == 0:
            return fault
        self.slopes(world, e)
        # A tension below 0 is not in a stiffness.
        along = self.curvature(world, second, a) if second == HESSIAN or e[0] > 0.0 else 0.0
        if second != HESSIAN:
            self.curvature(world, HESSIAN, a)
        share = self.share(world, a)
        self.add(self.bent, 2.0 * e[1] * share, out)
        self.add(self.w, e[1] * along + e[2] * share * share, out)
        return 0

    cdef int apart(
        self, World* world, bint positive, AddBlock add, void* sink, double* w, double* strength,
    ) noexcept nogil:
        cdef double e[3]
        self.slopes(world, e)
        strength[0] = e[1]
        self.add_gradient(world, w)
        return self.blocks(world, STIFFNESS if positive else HESSIAN, add, sink)

    cdef int all_blocks(self, World* world, int kind, AddBlock add, void* sink) noexcept nogil:
        cdef const double* w
        cdef double e[3]
        cdef double block[9]
        cdef Py_ssize_t first = self.membrane.first_bead, i, j
        cdef int c, fault = self.blocks(world, kind, add, sink)
        if fault != 0 or self.dense == 0:
            return fault
        self.slopes(world, e)
        w = self.gradient(world)
        for i in range(self.membrane.n_vertices):
            for j in range(i + 1):
                for c in range(9):
                    block[c] = e[1] * w[3 * i + c // 3] * w[3 * j + c % 3]
                fault = add(sink, first + i, first + j, block)
                if fault != 0:
                    return fault
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.all_blocks(world, HESSIAN, add, sink)

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.all_blocks(world, STIFFNESS, add, sink)

    cdef int diagonal(self, World* world, double* out) noexcept nogil:
        cdef const double* w
        cdef double e[3]
        cdef Py_ssize_t i
        cdef int c, fault = self.blocks(world, STIFFNESS, keep_diagonal, out)
        if fault != 0 or self.dense == 0:
            return fault
        self.slopes(world, e)
        w = self.gradient(world)
        out += 9 * self.membrane.first_bead
        for i in range(self.membrane.n_vertices):
            for c in range(9):
                out[9 * i + c] += e[1] * w[3 * i + c // 3] * w[3 * i + c % 3]
        return 0


cdef class TotalArea(TotalForce):
    """modulus k and tension sigma: pN/nm; area A0: nm^2, > 0."""
    cdef double modulus
    cdef double area
    cdef double tension

    def __init__(self, str name, Geometry geometry, double modulus, double area, double tension):
        MembraneForce.__init__(self, name, geometry, AREA_SUMS)
        self.modulus = modulus
        self.area = area
        self.tension = tension
        self.offer()
        # Of tension alone there are blocks.
        self.dense = self.membrane.n_vertices if modulus > 0.0 else 0
        self.sees_flips = True

    cdef void slopes(self, World* world, double* e) noexcept nogil:
        self.geometry.measure(world, AREAS)
        e[0] = self.tension + self.modulus * ((self.geometry.total_area() - self.area) / self.area)
        e[1] = self.modulus / self.area
        e[2] = 0.0

    cdef void add_gradient(self, World* world, double* w) noexcept nogil:
        cdef World there = world[0]
        there.f = w
        self.geometry.pull(&there, AREA_SUMS, -1.0)

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

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        """Area."""
        cdef double big_n[3]
        cdef Py_ssize_t i
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            out[0] += 0.5 * area_vector_of(self.membrane, world, self.geometry.faces[i], big_n)
        return 0

    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil:
        cdef double more = after - before
        self.geometry.measure(world, AREAS)
        self.of_more(more, out)
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        self.of_more(self.geometry.flipped.area, out)

    cdef void of_more(self, double more, double* out) noexcept nogil:
        """By so much area more than there is."""
        cdef double strain = (self.geometry.total_area() + 0.5 * more - self.area) / self.area
        out[0] = (self.tension + self.modulus * strain) * more


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


cdef class TriangleAreas(FaceForce):
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
        self.offer()
        self.sees_flips = True

    cdef void task_of(self, World* world, AreaTask* task) noexcept nogil:
        self.geometry.measure(world, AREAS)
        task.modulus = &self.modulus[0]
        task.area = &self.area[0]

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

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef double big_n[3]
        cdef double excess
        cdef Py_ssize_t i, f
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            f = self.geometry.faces[i]
            excess = 0.5 * area_vector_of(self.membrane, world, f, big_n) - self.area[f]
            out[0] += 0.5 * self.modulus[f] * excess * excess / self.area[f]
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        cdef const Flipped* flip = &self.geometry.flipped
        cdef double before, after
        cdef Py_ssize_t f
        cdef int i
        out[0] = 0.0
        for i in range(2):
            f = (flip.quad.second if i else flip.quad.first) - self.membrane.first_face
            before = 0.5 * self.membrane.area_vectors[4 * f + 3] - self.area[f]
            after = 0.5 * flip.area_vectors[4 * i + 3] - self.area[f]
            out[0] += 0.5 * self.modulus[f] * (after - before) * (after + before) / self.area[f]


cdef class OfVolume(TotalForce):
    """An energy of the volume alone. The membrane is closed."""
    cdef double origin[3]

    def __init__(self, str name, Geometry geometry):
        MembraneForce.__init__(self, name, geometry, VOLUME | VECTOR_SUMS)
        self.offer()
        self.loops[HESSIAN] = _hessian_of_volume
        self.loops[THIRD] = _third_of_volume
        self.loops[STIFFNESS] = self.loops[THIRD_OF_STIFFNESS] = NULL
        self.dense = self.membrane.n_vertices
        self.sees_flips = True

    cdef double slope(self, double volume) noexcept nogil:
        """dE/dV."""
        return 0.0

    cdef void curve(self, double volume, double* e) noexcept nogil:
        """The second and third derivatives of E."""
        e[0] = e[1] = 0.0

    cdef void slopes(self, World* world, double* e) noexcept nogil:
        cdef double volume
        self.geometry.measure(world, VOLUME)
        volume = self.geometry.total_volume()
        e[0] = self.slope(volume)
        self.curve(volume, e + 1)

    cdef void task_of(self, World* world, AreaTask* task) noexcept nogil:
        TotalForce.task_of(self, world, task)
        task.origin = world.x + 3 * self.membrane.first_bead

    cdef void add_gradient(self, World* world, double* w) noexcept nogil:
        cdef World there = world[0]
        there.f = w
        self.geometry.pull(&there, VECTOR_SUMS, -1.0 / 6.0)

    cdef double energy_of(self, double volume) noexcept nogil:
        return 0.0

    cdef double gained(self, double volume, double more) noexcept nogil:
        """What E gains as V grows by `more`, without a difference of large numbers."""
        return 0.0

    cdef int run(self, World* world) noexcept nogil:
        cdef double total
        self.geometry.measure(world, VOLUME)
        total = self.geometry.total_volume()
        self.geometry.pull(world, VECTOR_SUMS, self.slope(total) / 6.0)
        self.energy = 0.0
        if world.want_energy:
            self.energy = self.energy_of(total)
        return 0

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        cdef int c
        # Where vertex 0 is now, also in the other state.
        for c in range(3):
            self.origin[c] = world.x[3 * self.membrane.first_bead + c]
        return MembraneForce.difference(self, world, change, out)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
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
        self.geometry.measure(world, VOLUME)
        out[0] = self.gained(self.geometry.total_volume(), after - before)
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        out[0] = self.gained(self.geometry.total_volume(), self.geometry.flipped.volume)


cdef class Volume(OfVolume):
    """modulus k: pN/nm^2; volume V0: nm^3, > 0."""
    cdef double modulus
    cdef double volume

    def __init__(self, str name, Geometry geometry, double modulus, double volume):
        OfVolume.__init__(self, name, geometry)
        self.modulus = modulus
        self.volume = volume

    cdef double slope(self, double volume) noexcept nogil:
        return self.modulus * ((volume - self.volume) / self.volume)

    cdef double energy_of(self, double volume) noexcept nogil:
        return 0.5 * self.modulus * ((volume - self.volume) / self.volume) * (volume - self.volume)

    cdef double gained(self, double volume, double more) noexcept nogil:
        return self.modulus * (volume + 0.5 * more - self.volume) / self.volume * more

    cdef void curve(self, double volume, double* e) noexcept nogil:
        e[0] = self.modulus / self.volume
        e[1] = 0.0


cdef class Pressure(OfVolume):
    """pressure p of the inside above the outside: pN/nm^2."""
    cdef double pressure

    def __init__(self, str name, Geometry geometry, double pressure):
        OfVolume.__init__(self, name, geometry)
        self.pressure = pressure
        self.dense = 0

    cdef double slope(self, double volume) noexcept nogil:
        return -self.pressure

    cdef double energy_of(self, double volume) noexcept nogil:
        return -self.pressure * volume

    cdef double gained(self, double volume, double more) noexcept nogil:
        return -self.pressure * more


cdef class OsmoticPressure(OfVolume):
    """n particles in a solution that is ideal, with c of them per nm^3 outside: n, c > 0; kT: pN nm."""
    cdef double n
    cdef double c
    cdef double kt

    def __init__(self, str name, Geometry geometry, double n, double c, double kt):
        OfVolume.__init__(self, name, geometry)
        self.n = n
        self.c = c
        self.kt = kt

    cdef double particles(self) noexcept nogil:
        return self.n

    cdef int run(self, World* world) noexcept nogil:
        self.geometry.measure(world, VOLUME)
        # An ideal gas is never pressed to nothing: such a membrane has been turned inside out by steps too long.
        if not self.geometry.total_volume() > 0.0:
            return record_fault(world, NOT_FINITE, self.membrane.first_bead, -1)
        return OfVolume.run(self, world)

    cdef double slope(self, double volume) noexcept nogil:
        return self.kt * (self.c - self.particles() / volume)

    cdef void curve(self, double volume, double* e) noexcept nogil:
        e[0] = self.kt * self.particles() / (volume * volume)
        e[1] = -2.0 * e[0] / volume

    cdef double energy_of(self, double volume) noexcept nogil:
        cdef double ratio = self.c * volume / self.n
        return self.n * self.kt * (ratio - 1.0 - log_(ratio))

    cdef double gained(self, double volume, double more) noexcept nogil:
        cdef double rise = more / volume
        cdef double growth = 1.0 + rise
        if not growth > 0.0:
            return INFINITY
        # ln(1 + rise) of a little rise (Kahan): what its sum with 1 has lost is in the ratio.
        if growth != 1.0:
            rise = log_(growth) * (rise / (growth - 1.0))
        return self.kt * (self.c * more - self.particles() * rise)


cdef class PoolPressure(OsmoticPressure):
    """Molecules that are counted, (n_species,), which jumps change; the volume V1: nm^3, > 0; kT: pN nm."""
    cdef const int64_t[::1] counts
    cdef double volume

    def __init__(self, str name, Geometry geometry, const int64_t[::1] counts, double volume, double kt):
        OsmoticPressure.__init__(self, name, geometry, 0.0, 0.0, kt)
        self.counts = counts
        self.volume = volume

    cdef double particles(self) noexcept nogil:
        cdef int64_t n = 0
        cdef Py_ssize_t s
        for s in range(self.counts.shape[0]):
            n += self.counts[s]
        return <double> n

    cdef double energy_of(self, double volume) noexcept nogil:
        return -(self.particles() * self.kt) * log_(volume / self.volume)
