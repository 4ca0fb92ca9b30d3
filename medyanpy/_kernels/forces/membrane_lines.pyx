"""Lines on a membrane that are under tension. Notation: membrane.pxd.

    borders      E = lambda sum_e |e|                          over the edges that have one face
    two phases   E = (lambda/2) sum_f |E_f|,   E_f = sum_i phi_i e_i

with phi_v the phase of vertex v, linear in triangles: grad phi = sum_i phi_i n x e_i/|N|, so that |E_f|/2 is the
integral of |grad phi| over the face. For phi = 0 and 1 it is half the edge opposite the odd corner: the line through
the middles of the edges between the two phases. With u = E_f/|E_f| a face contributes at corner j

    (lambda/2) (phi_(j+1) - phi_(j+2)) u

Border edges are never flipped, so that each border vertex has the same two neighbours along the border for ever.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.beads.membrane cimport (
    corners_of, edges_of, FACE_BLOCK, faces_of_flip, Flipped, Geometry, Membrane, MembraneForce,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef Py_ssize_t BLOCK = 1024


cdef struct BorderTask:
    const int32_t* beads      # (B, 3) a vertex of the border, the next one along it, and the one before
    double tension
    double* partial


cdef int _border(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef BorderTask* t = <BorderTask*> task
    cdef const int32_t* bead
    cdef double d[3]
    cdef double pull[3]
    cdef double length, total = 0.0
    cdef Py_ssize_t k
    cdef int side
    for k in range(first, last):
        bead = t.beads + 3 * k
        pull[0] = pull[1] = pull[2] = 0.0
        for side in range(1, 3):
            displacement(&world.box, world.x + 3 * <Py_ssize_t> bead[0], world.x + 3 * <Py_ssize_t> bead[side], d)
            length = sqrt(dot(d, d))
            total += length if side == 1 else 0.0
            # Beads in one place have no direction to pull in.
            add_scaled(1.0 / length if length > 0.0 else 0.0, d, pull)
        add_scaled(t.tension, pull, world.f + 3 * <Py_ssize_t> bead[0])
    t.partial[first // BLOCK] = t.tension * total
    return 0


cdef class BorderTension(MembraneForce):
    """tension lambda: pN; beads (B, 3), by place: each border vertex, the next one along its border, the one before."""
    cdef double tension
    cdef const int32_t[:, ::1] beads
    cdef int32_t[::1] row_of          # (V,) row of each vertex, -1 inside
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, double tension, const int32_t[:, ::1] beads):
        MembraneForce.__init__(self, name, geometry, 0)
        self.tension = tension
        self.beads = beads
        rows = np.full(self.membrane.n_vertices, -1, np.int32)
        rows[np.asarray(beads)[:, 0] - self.membrane.first_bead] = np.arange(len(beads))
        self.row_of = rows
        self.partial = np.zeros(n_blocks(beads.shape[0], BLOCK))
        self.sees_flips = True

    cdef int run(self, World* world) noexcept nogil:
        cdef BorderTask task
        task.beads = &self.beads[0, 0]
        task.tension = self.tension
        task.partial = &self.partial[0]
        over_blocks(_border, &task, world, self.beads.shape[0], BLOCK)
        self.energy = 0.0
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        """Of every edge along the border one end of which is touched, once."""
        cdef const int32_t* bead
        cdef double d[3]
        cdef Py_ssize_t i, k, other
        cdef int side
        out[0] = 0.0
        for i in range(self.geometry.n_touched):
            k = self.row_of[self.geometry.vertices[i]]
            if k < 0:
                continue
            bead = &self.beads[k, 0]
            for side in range(1, 3):
                other = bead[side] - self.membrane.first_bead
                # Of two that are touched, the one before has it.
                if side == 1 or not self.geometry.marks[other]:
                    displacement(
                        &world.box, world.x + 3 * <Py_ssize_t> bead[0], world.x + 3 * <Py_ssize_t> bead[side], d
                    )
                    out[0] += self.tension * sqrt(dot(d, d))
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        out[0] = 0.0


cdef struct PhaseTask:
    const Membrane* membrane
    const double* phase       # (V,)
    double tension
    double* rows              # (F, 3, 3)
    double* partial


cdef inline bint _across(
    const Membrane* m, const double* phase, World* world, const int32_t* beads, double* p, double* out,
) noexcept nogil:
    """p: phases of the corners of a face; out: E_f. Whether they differ."""
    cdef double e[9]
    cdef int i
    for i in range(3):
        p[i] = phase[beads[i] - m.first_bead]
        out[i] = 0.0
    if p[0] == p[1] and p[0] == p[2]:
        return False
    edges_of(world, beads, e)
    # sum_i e_i = 0: of phases only differences count.
    add_scaled(p[1] - p[0], e + 3, out)
    add_scaled(p[2] - p[0], e + 6, out)
    return True


cdef int _phases(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PhaseTask* t = <PhaseTask*> task
    cdef double p[3]
    cdef double across[3]
    cdef double length, scale, total = 0.0
    cdef double* row
    cdef Py_ssize_t f
    cdef int j, c
    for f in range(first, last):
        row = t.rows + 9 * f
        for c in range(9):
            row[c] = 0.0
        if not _across(t.membrane, t.phase, world, corners_of(t.membrane, world, f), p, across):
            continue
        length = sqrt(dot(across, across))
        total += length
        scale = 0.5 * t.tension / length if length > 0.0 else 0.0
        for j in range(3):
            add_scaled(scale * (p[(j + 1) % 3] - p[(j + 2) % 3]), across, row + 3 * j)
    t.partial[first // FACE_BLOCK] = 0.5 * t.tension * total
    return 0


cdef class PhaseTension(MembraneForce):
    """tension lambda: pN; phase phi (V,)."""
    cdef double tension
    cdef const double[::1] phase
    cdef double[:, :, ::1] rows
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, double tension, const double[::1] phase):
        MembraneForce.__init__(self, name, geometry, 0)
        self.tension = tension
        self.phase = phase
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(self.membrane.n_faces, FACE_BLOCK))
        self.sees_flips = True

    cdef int run(self, World* world) noexcept nogil:
        cdef PhaseTask task
        task.membrane = self.membrane
        task.phase = &self.phase[0]
        task.tension = self.tension
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        over_blocks(_phases, &task, world, self.membrane.n_faces, FACE_BLOCK)
        self.gather(world, task.rows, NULL, -1.0, world.f)
        self.energy = 0.0
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef double of_face(self, World* world, const int32_t* beads) noexcept nogil:
        cdef double p[3]
        cdef double across[3]
        if not _across(self.membrane, &self.phase[0], world, beads, p, across):
            return 0.0
        return 0.5 * self.tension * sqrt(dot(across, across))

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Py_ssize_t i
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            out[0] += self.of_face(world, corners_of(self.membrane, world, self.geometry.faces[i]))
        return 0

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        cdef const Flipped* flip = &self.geometry.flipped
        cdef int32_t beads[6]
        faces_of_flip(&flip.quad, beads)
        out[0] = self.of_face(world, beads) + self.of_face(world, beads + 3)
        out[0] -= self.of_face(world, world.faces + 3 * flip.quad.first)
        out[0] -= self.of_face(world, world.faces + 3 * flip.quad.second)
