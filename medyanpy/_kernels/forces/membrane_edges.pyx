"""Energies of the edges of a membrane by their lengths, with one set of numbers for all, so that edges may flip.

    x = l / L
    U(l) = b [exp(1 / (x_c0 - x)) / (x_max - x)   for x > x_c0]
         + b [exp(1 / (x - x_c1)) / (x - x_min)   for x < x_c1]

Source: the bond potentials of H. Noguchi and G. Gompper, Phys. Rev. E 72, 011901 (2005). With s = x - x_c0 and
w = x_max - x, the first is b exp(-1/s)/w, and its slope b exp(-1/s)/w (1/s^2 + 1/w) over L; the second is its mirror
image. All derivatives go to zero with s.

Whoever owns a vertex adds up the edges that leave it, in the order of its corners: each is that from a corner to the
next of its face, and at a border the one to the corner before as well.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_
from medyanpy._kernels.beads.membrane cimport Geometry, holds_face, is_one_flip, Membrane, MembraneForce, VERTEX_BLOCK
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport Change, OUT_OF_TETHER, Quad, World
from medyanpy._kernels.core.triangles cimport corner_after, corner_before
from medyanpy._kernels.core.vec3 cimport add_scaled, dot


cdef struct Tether:
    double strength           # b, pN nm
    double scale              # 1/L, 1/nm
    double least              # x_min
    double repelled           # x_c1
    double attracted          # x_c0
    double most               # x_max


cdef inline double wall(double strength, double s, double w, double* slope) noexcept nogil:
    """b exp(-1/s)/w, and its slope in x with s rising and w falling; s and w > 0."""
    cdef double over = 1.0 / s
    cdef double u = strength * exp_(-over) / w
    slope[0] = u * (over * over + 1.0 / w)
    return u


cdef inline double tether_at(const Tether* t, double r, double* slope) noexcept nogil:
    """U of an edge, inf where it cannot be, and dU/dr."""
    cdef double x = r * t.scale
    cdef double u
    slope[0] = 0.0
    if not t.least < x < t.most:
        return INFINITY
    if x > t.attracted:
        u = wall(t.strength, x - t.attracted, t.most - x, slope)
        slope[0] *= t.scale
        return u
    if x < t.repelled:
        u = wall(t.strength, t.repelled - x, x - t.least, slope)
        slope[0] *= -t.scale
        return u
    return 0.0


cdef struct TetherTask:
    const Membrane* membrane
    Tether tether
    double* partial


cdef inline int _pull(
    const TetherTask* t, World* world, Py_ssize_t v, int32_t other, double* f, double* energy,
) noexcept nogil:
    cdef double d[3]
    cdef double r, slope, u
    displacement(&world.box, world.x + 3 * v, world.x + 3 * <Py_ssize_t> other, d)
    r = sqrt(dot(d, d))
    u = tether_at(&t.tether, r, &slope)
    if u == INFINITY:
        return record_fault(world, OUT_OF_TETHER, min(v, <Py_ssize_t> other), max(v, <Py_ssize_t> other))
    # Half from each end: both see the same r.
    energy[0] += 0.5 * u
    if slope != 0.0:
        add_scaled(slope / r, d, f)
    return 0


cdef int _vertices(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef const TetherTask* t = <TetherTask*> task
    cdef const Membrane* m = t.membrane
    cdef double energy = 0.0
    cdef double f[3]
    cdef double* out
    cdef Py_ssize_t k, v, s, corner
    cdef int c, fault = 0
    for k in range(first, last):
        v = m.first_bead + k
        f[0] = f[1] = f[2] = 0.0
        for s in range(m.rings.starts[v], m.rings.ends[v]):
            corner = m.rings.corners[s]
            fault |= _pull(t, world, v, world.faces[corner_after(corner)], f, &energy)
            if world.opposite[corner_after(corner)] < 0:
                fault |= _pull(t, world, v, world.faces[corner_before(corner)], f, &energy)
        # Summed apart and added once: two equal forces give exactly twice one.
        out = world.f + 3 * v
        for c in range(3):
            out[c] += f[c]
    t.partial[first // VERTEX_BLOCK] = energy
    return fault


cdef class EdgeTether(MembraneForce):
    """strength: pN nm, > 0; length: nm, > 0; limits: x_min < x_c1 <= x_c0 < x_max."""
    cdef Tether tether
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, double strength, double length, double least, double repelled,
                 double attracted, double most):
        MembraneForce.__init__(self, name, geometry, 0)
        self.asked_first = True
        self.tether = Tether(strength, 1.0 / length, least, repelled, attracted, most)
        self.partial = np.zeros(n_blocks(self.membrane.n_vertices, VERTEX_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef TetherTask task
        cdef int fault
        task.membrane = self.membrane
        task.tether = self.tether
        task.partial = &self.partial[0]
        fault = over_blocks(_vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        self.energy = 0.0
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return fault

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        cdef const Quad* quad = change.quads
        cdef double before
        if is_one_flip(change):
            self.examined += 2
            out[0] = 0.0
            if holds_face(self.membrane, quad.first):
                before = self.between(world, quad.c, quad.d)
                out[0] = self.between(world, quad.a, quad.b) - before
            return 0
        return MembraneForce.difference(self, world, change, out)

    cdef double between(self, World* world, int32_t i, int32_t j) noexcept nogil:
        """The energy of an edge between two vertices."""
        cdef double d[3]
        cdef double slope
        displacement(&world.box, world.x + 3 * <Py_ssize_t> i, world.x + 3 * <Py_ssize_t> j, d)
        return tether_at(&self.tether, sqrt(dot(d, d)), &slope)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        """Edges of faces that are touched: inner ones from the corner of lower number."""
        cdef const Membrane* m = self.membrane
        cdef Py_ssize_t i, face, corner
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            face = m.first_face + self.geometry.faces[i]
            for corner in range(3 * face, 3 * face + 3):
                if self.geometry.is_first(world, <int32_t> corner):
                    out[0] += self.between(
                        world, world.faces[corner_after(corner)], world.faces[corner_before(corner)])
        return 0
