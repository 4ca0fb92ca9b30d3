"""What keeps neighbouring triangles of a membrane from folding onto each other. Notation: membrane.pxd.

    E = b sum_e s^3 / (1 + X)   over edges with two faces and s = X_0 - X > 0,   X = n1.n2

X is the cosine of the angle between the normals: 1 where the edge is flat, -1 where its faces lie on each other. With
1 + X = |n1 + n2|^2/2 nothing cancels near a fold. First and second derivatives are zero where s is, and

    dE/dX = -b s^2/(1 + X) (3 + s/(1 + X)),   dX = w.dN1 + ...,   w = (n2 - X n1)/|N1|
    w.dN1 = sum_i (w x e_i).dx_i

so that a face contributes dE/dX (w x e_i) to the gradient at its corner i, for each of its edges.

Folds are rare. One pass over the faces finds them; only where there are any do rows follow.
"""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from medyanpy._kernels.beads.membrane cimport (
    area_vector_of, corners_of, edges_of, FACE_BLOCK, fetch_beyond, Flipped, Geometry, Membrane, MembraneForce, NORMALS,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport DEGENERATE_TRIANGLE, NOT_FINITE, Quad, World
from medyanpy._kernels.core.vec3 cimport add_scaled, cross


cdef struct Fold:
    double strength           # b, pN nm
    double onset              # 1 + X_0


cdef struct FoldTask:
    const Membrane* membrane
    Fold fold
    double* rows              # (F, 3, 3)
    double* partial


cdef inline double fold_at(
    const Fold* fold, const double* n1, const double* n2, double* slope, double* x,
) noexcept nogil:
    """E of an edge, inf where it is folded flat; dE/dX and X."""
    cdef double flat = 0.0
    cdef double sum, s, u
    cdef int c
    for c in range(3):
        sum = n1[c] + n2[c]
        flat += sum * sum
    flat *= 0.5
    slope[0] = 0.0
    x[0] = flat - 1.0
    s = fold.onset - flat
    if s <= 0.0:
        return 0.0
    if flat == 0.0:
        return INFINITY
    u = fold.strength * s * s / flat
    slope[0] = -u * (3.0 + s / flat)
    return u * s


cdef int _find(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Energies, half of an edge's from each of its faces."""
    cdef const FoldTask* t = <FoldTask*> task
    cdef const Membrane* m = t.membrane
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef double slope, x, u, energy = 0.0
    cdef Py_ssize_t f
    cdef int32_t across
    cdef int c, fault = 0
    for f in range(first, last):
        if m.area_vectors[4 * f + 3] == 0.0:
            fault |= record_fault(world, DEGENERATE_TRIANGLE, corners_of(m, world, f)[0], m.first_face + f)
            continue
        for c in range(3):
            across = world.opposite[begin + 3 * f + c]
            if across < 0:
                continue
            u = fold_at(&t.fold, m.normals + 3 * f, m.normals + 3 * <Py_ssize_t> ((across - begin) // 3), &slope, &x)
            if u == INFINITY:
                fault |= record_fault(world, NOT_FINITE, corners_of(m, world, f)[(c + 1) % 3], m.first_face + f)
            energy += 0.5 * u
    t.partial[first // FACE_BLOCK] = energy
    return fault


cdef int _rows(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef const FoldTask* t = <FoldTask*> task
    cdef const Membrane* m = t.membrane
    cdef int32_t begin = <int32_t> (3 * m.first_face)
    cdef const double* n1
    cdef const double* n2
    cdef double* row
    cdef double e[9]
    cdef double w[3]
    cdef double turn[3]
    cdef double slope, x
    cdef Py_ssize_t f
    cdef int32_t across
    cdef int c, i
    for f in range(first, last):
        row = t.rows + 9 * f
        for i in range(9):
            row[i] = 0.0
        n1 = m.normals + 3 * f
        for c in range(3):
            across = world.opposite[begin + 3 * f + c]
            if across < 0:
                continue
            n2 = m.normals + 3 * <Py_ssize_t> ((across - begin) // 3)
            fold_at(&t.fold, n1, n2, &slope, &x)
            if slope == 0.0:
                continue
            edges_of(world, corners_of(m, world, f), e)
            for i in range(3):
                w[i] = (n2[i] - x * n1[i]) / m.area_vectors[4 * f + 3]
            for i in range(3):
                cross(w, e + 3 * i, turn)
                add_scaled(slope, turn, row + 3 * i)
    return 0


cdef class FoldRepulsion(MembraneForce):
    """strength b: pN nm, > 0; onset X_0, the cosine of the angle where it begins."""
    cdef Fold fold
    cdef double[:, :, ::1] rows
    cdef double[::1] partial

    def __init__(self, str name, Geometry geometry, double strength, double onset):
        MembraneForce.__init__(self, name, geometry, NORMALS)
        self.fold = Fold(strength, 1.0 + onset)
        self.rows = np.zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(self.membrane.n_faces, FACE_BLOCK))
        self.sees_flips = True

    cdef int run(self, World* world) noexcept nogil:
        cdef FoldTask task
        cdef int fault
        self.geometry.measure(world, NORMALS)
        task.membrane = self.membrane
        task.fold = self.fold
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        self.energy = 0.0
        fault = over_blocks(_find, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault != 0:
            return fault
        self.energy = ordered_sum(task.partial, self.partial.shape[0])
        if self.energy > 0.0:
            over_blocks(_rows, &task, world, self.membrane.n_faces, FACE_BLOCK)
            self.gather(world, task.rows, NULL, -1.0, world.f)
        return 0

    cdef double between(self, const double* n1, const double* n2) noexcept nogil:
        cdef double slope, x
        return fold_at(&self.fold, n1, n2, &slope, &x)

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        """Edges of faces that are touched, once; normals are of now."""
        cdef const Membrane* m = self.membrane
        cdef double n1[3]
        cdef double n2[3]
        cdef double u
        cdef Py_ssize_t i, face, other, corner, across
        out[0] = 0.0
        for i in range(self.geometry.n_faces_touched):
            face = self.geometry.faces[i]
            if not self.normal(world, face, n1):
                out[0] = INFINITY
                return 0
            for corner in range(3 * (m.first_face + face), 3 * (m.first_face + face) + 3):
                across = world.opposite[corner]
                if across < 0:
                    continue
                other = across // 3 - m.first_face
                # From the other side, if that is touched too.
                if across < corner and self.geometry.marks[m.n_vertices + other]:
                    continue
                if not self.normal(world, other, n2):
                    out[0] = INFINITY
                    return 0
                u = self.between(n1, n2)
                if u == INFINITY:
                    out[0] = INFINITY
                    return 0
                out[0] += u
        return 0

    cdef bint normal(self, World* world, Py_ssize_t face, double* n) noexcept nogil:
        """That of a face, measured now; whether it has one."""
        cdef double length = area_vector_of(self.membrane, world, face, n)
        cdef int c
        if length == 0.0:
            return False
        for c in range(3):
            n[c] /= length
        return True

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        MembraneForce.fetch(self, world, quad)
        fetch_beyond(self.membrane, world, quad)

    cdef void of_flip(self, World* world, double* out) noexcept nogil:
        """The edge itself and the four round it, each with one of the two faces, old and new."""
        cdef const Membrane* m = self.membrane
        cdef const Flipped* flip = &self.geometry.flipped
        cdef const double* old[2]
        cdef const double* new[2]
        cdef const double* beyond
        cdef double before, after
        cdef Py_ssize_t corner, across
        cdef int i, k, at, with_c
        if flip.area_vectors[3] == 0.0 or flip.area_vectors[7] == 0.0:
            out[0] = INFINITY
            return
        old[0] = m.normals + 3 * (flip.quad.first - m.first_face)
        old[1] = m.normals + 3 * (flip.quad.second - m.first_face)
        # With (c, b, a) and with (d, a, b).
        with_c = 1 if flip.quad.rule else 0
        new[0] = flip.normals + 3 * with_c
        new[1] = flip.normals + 3 * (1 - with_c)
        before = self.between(old[0], old[1])
        after = self.between(new[0], new[1])
        for i in range(2):
            at = flip.quad.at_b if i else flip.quad.at_a
            for k in range(1, 3):
                corner = 3 * (flip.quad.second if i else flip.quad.first) + (at + k) % 3
                across = world.opposite[corner]
                if across < 0:
                    continue
                beyond = m.normals + 3 * (across // 3 - m.first_face)
                before += self.between(old[i], beyond)
                # (a, c, d): opposite c is the edge da, opposite d ac; (b, d, c): opposite d is cb, opposite c bd. What
                # holds c goes to the face with c.
                after += self.between(new[1 if (k == 1) == (i == 0) else 0], beyond)
        out[0] = INFINITY if after == INFINITY else after - before
