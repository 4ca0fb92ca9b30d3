"""Adhesion of a membrane to surfaces and to beads: a potential of distance per area. Notation: membrane.pxd.

    E = sum_v S_v w_v sum_t U(d_vt),   U(d) = q^2 - 2 q,   q = exp(-(d - d0)/rho)

with the areas S_v = sum_f |N_f|/6 and the distance d of a vertex from each target t, negative behind its surface. U has
its minimum -1 at d0 (Morse). Areas change, too:

    dE/dx_v = S_v w_v sum_t U'(d_vt) grad d + sum_(f at v) (D_0 + D_1 + D_2)/3 dA_f/dx_v,   D_v = w_v sum_t U(d_vt)

over the corners 0, 1, 2 of each face. Targets are planes, and what is round: all that has the distance r from a segment
(a ball where both its ends are one), with the membrane outside (side 1) or inside (side -1). Beads feel what the
membrane feels by them.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.beads.membrane cimport (
    AREA_GRADIENTS, area_vector_of, corners_of, Flipped, Geometry, Membrane, MembraneForce, VECTOR_SUMS, VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport Change, is_there, World
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

# In ranges: beyond that U is less than 1e-17.
cdef double FAR = 40.0


cdef struct Adhesion:
    const Membrane* membrane
    const double* strength    # (V,)
    double range
    double distance
    Py_ssize_t n_planes
    const double* planes      # (n, 6) a point of each, and its normal of length 1
    Py_ssize_t n_rounds
    const double* rounds      # (n, 9) where its segment starts, its direction of length 1, its length, r, and the side
    Py_ssize_t n_beads
    const int32_t* beads      # (n,) places
    const double* radius      # (n,)
    double* density           # (V,) D
    double* pull              # (V, 3) S w U' grad d, summed
    double* reaction          # (blocks of vertices, n_beads, 3)
    double* partial


cdef inline double _well(const Adhesion* t, double d, double* slope) noexcept nogil:
    cdef double s = (d - t.distance) / t.range
    cdef double q
    if s > FAR:
        slope[0] = 0.0
        return 0.0
    q = exp_(-s)
    slope[0] = 2.0 * (q - q * q) / t.range
    return q * q - 2.0 * q


cdef inline double _round(const double* d, double radius, double side, double* n) noexcept nogil:
    """The distance from a round surface with its middle at -d, and n, its gradient."""
    cdef double r = sqrt(dot(d, d))
    cdef int c
    for c in range(3):
        # The middle has no direction.
        n[c] = side * d[c] / r if r > 0.0 else 0.0
    return side * (r - radius)


cdef inline double _feel(
    const Adhesion* t, World* world, Py_ssize_t place, double weight, double* pull, double* reaction,
) noexcept nogil:
    """sum_t U of one vertex; pull += weight sum_t U' grad d, and of beads that to `reaction`, if these are not NULL."""
    cdef const double* x = world.x + 3 * place
    cdef const double* own
    cdef double d[3]
    cdef double n[3]
    cdef double slope, along, total = 0.0
    cdef Py_ssize_t k
    for k in range(t.n_planes):
        own = t.planes + 6 * k
        displacement(&world.box, own, x, d)
        total += _well(t, dot(own + 3, d), &slope)
        if pull != NULL:
            add_scaled(weight * slope, own + 3, pull)
    for k in range(t.n_rounds):
        own = t.rounds + 9 * k
        displacement(&world.box, own, x, d)
        along = min(max(dot(own + 3, d), 0.0), own[6])
        add_scaled(-along, own + 3, d)
        total += _well(t, _round(d, own[7], own[8], n), &slope)
        if pull != NULL:
            add_scaled(weight * slope, n, pull)
    for k in range(t.n_beads):
        if not is_there(world, t.beads[k]):
            continue
        displacement(&world.box, world.x + 3 * <Py_ssize_t> t.beads[k], x, d)
        along = t.distance + FAR * t.range + t.radius[k]
        if dot(d, d) > along * along:
            continue
        total += _well(t, _round(d, t.radius[k], 1.0, n), &slope)
        if pull != NULL:
            add_scaled(weight * slope, n, pull)
            add_scaled(weight * slope, n, reaction + 3 * k)
    return total


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Adhesion* t = <Adhesion*> task
    cdef const Membrane* m = t.membrane
    cdef double* reaction = t.reaction + 3 * t.n_beads * (first // VERTEX_BLOCK)
    cdef double area, energy = 0.0
    cdef Py_ssize_t v, k
    for k in range(3 * t.n_beads):
        reaction[k] = 0.0
    for v in range(first, last):
        area = m.vector_sums[4 * v + 3] * (1.0 / 6.0)
        for k in range(3):
            t.pull[3 * v + k] = 0.0
        t.density[v] = t.strength[v] * _feel(
            t, world, m.first_bead + v, area * t.strength[v], t.pull + 3 * v, reaction
        )
        energy += area * t.density[v]
    t.partial[first // VERTEX_BLOCK] = energy
    return 0


cdef int _forces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Adhesion* t = <Adhesion*> task
    cdef const Membrane* m = t.membrane
    cdef const int32_t* starts = m.rings.starts + m.first_bead
    cdef const int32_t* ends = m.rings.ends + m.first_bead
    cdef const int32_t* corners = m.rings.corners
    cdef const int32_t* beads
    cdef double total[3]
    cdef double density
    cdef Py_ssize_t v, s, corner
    cdef int c
    for v in range(first, last):
        # Summed apart and added once: two equal forces give exactly twice one.
        for c in range(3):
            total[c] = t.pull[3 * v + c]
        for s in range(starts[v], ends[v]):
            corner = corners[s] - 3 * m.first_face
            beads = corners_of(m, world, corner // 3)
            density = 0.0
            for c in range(3):
                density += t.density[beads[c] - m.first_bead]
            add_scaled(density * (1.0 / 3.0), m.area_gradients + 3 * corner, total)
        add_scaled(-1.0, total, world.f + 3 * (m.first_bead + v))
    return 0


cdef class MembraneAdhesion(MembraneForce):
    """strength w (V,): pN/nm; range rho > 0 and distance d0: nm; targets as in the struct above."""
    cdef Adhesion task
    cdef list arrays
    cdef double[::1] density
    cdef double[:, ::1] pull_of
    cdef double[:, :, ::1] reaction
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, const double[::1] strength, double reach, double distance,
                 const double[:, ::1] planes, const double[:, ::1] rounds, const int32_t[::1] beads,
                 const double[::1] radius):
        MembraneForce.__init__(self, name, geometry, AREA_GRADIENTS | VECTOR_SUMS)
        cdef Adhesion* t = &self.task
        n = self.membrane.n_vertices
        blocks = n_blocks(n, VERTEX_BLOCK)
        self.arrays = []
        t.membrane = self.membrane
        t.strength = vector(self.arrays, strength)
        t.range = reach
        t.distance = distance
        t.n_planes = planes.shape[0]
        t.planes = table(self.arrays, planes)
        t.n_rounds = rounds.shape[0]
        t.rounds = table(self.arrays, rounds)
        t.n_beads = beads.shape[0]
        t.beads = vector(self.arrays, beads)
        t.radius = vector(self.arrays, radius)
        self.density = np.zeros(n)
        self.pull_of = np.zeros((n, 3))
        self.reaction = np.zeros((blocks, t.n_beads + 1, 3))
        self.partial = np.zeros(blocks)
        t.density = &self.density[0]
        t.pull = &self.pull_of[0, 0]
        t.reaction = &self.reaction[0, 0, 0]
        t.partial = &self.partial[0]
        self.sees_flips = True

    cdef int run(self, World* world) noexcept nogil:
        cdef Adhesion* t = &self.task
        cdef double total[3]
        cdef Py_ssize_t k, block
        self.geometry.measure(world, AREA_GRADIENTS | VECTOR_SUMS)
        over_blocks(_vertices, t, world, self.membrane.n_vertices, VERTEX_BLOCK)
        over_blocks(_forces, t, world, self.membrane.n_vertices, VERTEX_BLOCK)
        for k in range(t.n_beads):
            total[0] = total[1] = total[2] = 0.0
            for block in range(self.partial.shape[0]):
                add_scaled(1.0, t.reaction + 3 * (t.n_beads * block + k), total)
            add_scaled(1.0, total, world.f + 3 * <Py_ssize_t> t.beads[k])
        self.energy = 0.0
        if world.want_energy:
            self.energy = ordered_sum(t.partial, self.partial.shape[0])
        return 0

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        cdef Py_ssize_t i, k
        for i in range(change.n_moved):
            for k in range(self.task.n_beads):
                if change.moved[i] == self.task.beads[k]:
                    # All vertices feel it.
                    return False
        return MembraneForce.touch(self, world, change)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef double big_n[3]
        cdef double area
        cdef Py_ssize_t i, v, s
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            v = self.geometry.vertices[i]
            area = 0.0
            for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
                area += area_vector_of(m, world, m.rings.corners[s] // 3 - m.first_face, big_n)
            area *= 1.0 / 6.0
            out[0] += area * self.task.strength[v] * _feel(&self.task, world, m.first_bead + v, 0.0, NULL, NULL)
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        """Vertices stay where they are: only their shares of the area are others."""
        cdef const Flipped* flip = &self.geometry.flipped
        cdef int32_t corners[4]
        cdef double density[4]
        cdef double ends, both
        cdef int k
        corners[0], corners[1], corners[2], corners[3] = flip.quad.a, flip.quad.b, flip.quad.c, flip.quad.d
        for k in range(4):
            density[k] = self.task.strength[corners[k] - self.membrane.first_bead]
            if density[k] != 0.0:
                density[k] *= _feel(&self.task, world, corners[k], 0.0, NULL, NULL)
        # Faces (a, c, d) and (b, d, c) go; of those that come one has a, b and c, and the other d.
        both = density[0] + density[1]
        ends = density[2] + density[3]
        k = 1 if flip.quad.rule else 0
        out[0] = flip.area_vectors[4 * k + 3] * (both + density[2])
        out[0] += flip.area_vectors[4 * (1 - k) + 3] * (both + density[3])
        out[0] -= self.geometry.area_of(flip.quad.first) * (ends + density[0])
        out[0] -= self.geometry.area_of(flip.quad.second) * (ends + density[1])
        out[0] *= 1.0 / 6.0
