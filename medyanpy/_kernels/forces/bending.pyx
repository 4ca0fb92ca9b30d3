"""Second and third derivatives of the bending energy of a membrane; see bending.pxd.

Products with a direction are found for all vertices at once: lines of faces, responses of vertices, rows of faces, and
a sum round each vertex, in the blocks and orders of the force, so that bits depend on no thread. A column of the
Hessian is the product with one component of one vertex; it needs the faces at this vertex, the responses of their
corners, and the faces at those: the same loops, over these alone. Blocks of the stiffness are those of dr_v dr_v^T.
"""
import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from medyanpy._kernels.core.arrays cimport large_zeros
from medyanpy._kernels.beads.membrane cimport (
    corners_of, FACE_BLOCK, Geometry, HESSIAN, Membrane, MembraneForce, STIFFNESS, THIRD, THIRD_OF_STIFFNESS,
    VERTEX_BLOCK,
)
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks
from medyanpy._kernels.core.program cimport AddBlock, OUT_OF_MEMORY, World


cdef class Bending(MembraneForce):
    """A bending energy. kappa, c0 (V,): pN nm, >= 0, zero at the border; 1/nm.

    width, line: how many numbers a response has, and a face along a line; asks: what is measured of the geometry.
    """

    def __init__(self, str name, Geometry geometry, const double[::1] kappa, const double[::1] c0, int asks, int width,
                 int line):
        MembraneForce.__init__(self, name, geometry, asks)
        self.derivatives = 3
        self.kappa = kappa
        self.c0 = c0
        self.width = width
        self.line = line
        self.components = 1
        self.response = large_zeros((kappa.shape[0], width))
        self.rows = large_zeros((self.membrane.n_faces, 3, 3))
        self.partial = np.zeros(n_blocks(kappa.shape[0], VERTEX_BLOCK))

    def __dealloc__(self):
        self.forget()

    cdef void forget(self) noexcept nogil:
        free(self.lines)
        free(self.turns)
        free(self.responses)
        free(self.seed)
        free(self.columns)
        self.lines = self.turns = self.responses = self.seed = self.columns = NULL

    cdef void task_of(self, BendingTask* task) noexcept nogil:
        task.membrane = self.membrane
        task.kappa = &self.kappa[0]
        task.c0 = &self.c0[0]
        task.turn = NULL
        task.projected = False
        task.component = 0
        task.response = &self.response[0, 0]
        task.rows = &self.rows[0, 0, 0]
        task.partial = &self.partial[0]
        task.a = NULL
        task.lines = NULL
        task.turns = NULL

    cdef void measured(self, World* world, const BendingTask* task) noexcept nogil:
        pass

    cdef int run(self, World* world) noexcept nogil:
        cdef BendingTask task
        cdef int fault
        self.energy = 0.0
        self.task_of(&task)
        self.measured(world, &task)
        over_blocks(self.vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(self.faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault != 0:
            return fault
        self.gather(world, task.rows, NULL, -1.0, world.f)
        if world.want_energy:
            self.energy = ordered_sum(task.partial, self.partial.shape[0])
        return 0

    cdef int prepare(self, World* world, BendingTask* task) noexcept nogil:
        """The task of a line. 0, or a fault."""
        cdef size_t n_faces = self.membrane.n_faces
        cdef size_t n_vertices = self.membrane.n_vertices
        if self.columns == NULL:
            self.lines = <double*> calloc(2 * self.line * n_faces, sizeof(double))
            self.turns = <double*> calloc(2 * 3 * n_faces, sizeof(double))
            self.responses = <double*> calloc(3 * self.width * n_vertices, sizeof(double))
            self.seed = <double*> calloc(3 * n_vertices, sizeof(double))
            self.columns = <double*> calloc(12 * n_vertices, sizeof(double))
            if not (self.lines and self.turns and self.responses and self.seed and self.columns):
                self.forget()
                return OUT_OF_MEMORY
        self.task_of(task)
        task.lines = self.lines
        task.turns = self.turns
        task.response = self.responses
        self.measured(world, task)
        return 0

    cdef int along(self, World* world, int kind, const double* a, double* out) noexcept nogil:
        """out += what is asked for along a, both (n, 3) by place."""
        cdef const Loops* loops = &self.loops[kind]
        cdef BendingTask task
        cdef int fault = self.prepare(world, &task)
        if fault != 0:
            return fault
        task.a = a + 3 * self.membrane.first_bead
        over_blocks(loops.lines, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if loops.edges != NULL:
            over_blocks(loops.edges, &task, world, self.membrane.n_faces, FACE_BLOCK)
        over_blocks(loops.vertices, &task, world, self.membrane.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(loops.faces, &task, world, self.membrane.n_faces, FACE_BLOCK)
        if fault == 0:
            self.gather(world, task.rows, NULL, loops.factor, out)
        return fault

    cdef int multiply(self, World* world, bint positive, const double* a, double* out) noexcept nogil:
        return self.along(world, STIFFNESS if positive else HESSIAN, a, out)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        return self.along(world, THIRD, a, out)

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        return self.along(world, THIRD_OF_STIFFNESS, a, out)

    # Blocks ---------------------------------------------------------------------------------------------------

    cdef void around(self, World* world, BendingTask* task, Py_ssize_t v, Py_ssize_t n) noexcept nogil:
        """Lines of the faces at a vertex, and responses of their corners: the first n vertices touched."""
        cdef const Loops* loops = &self.loops[HESSIAN]
        cdef const Membrane* m = self.membrane
        cdef Py_ssize_t i, s, f
        for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
            f = m.rings.corners[s] // 3 - m.first_face
            loops.lines(task, world, f, f + 1, 0)
        if loops.edges != NULL:
            for i in range(self.geometry.n_faces_touched):
                f = self.geometry.faces[i]
                loops.edges(task, world, f, f + 1, 0)
        for i in range(n):
            loops.vertices(task, world, self.geometry.vertices[i], self.geometry.vertices[i] + 1, 0)

    cdef int columns_of(self, World* world, BendingTask* task, Py_ssize_t v) noexcept nogil:
        """The three columns of a vertex in the Hessian, of rows of all vertices touched, added to `columns`. 0, or a
        fault."""
        cdef const Membrane* m = self.membrane
        cdef const int32_t* beads
        cdef double* column
        cdef Py_ssize_t i, f, s, n, place
        cdef int c, corner, row
        # The corners of its faces, the faces at those, and their corners.
        for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
            beads = corners_of(m, world, m.rings.corners[s] // 3 - m.first_face)
            for corner in range(3):
                self.geometry.touch_vertex(beads[corner] - m.first_bead)
        n = self.geometry.n_touched
        for i in range(n):
            place = m.first_bead + self.geometry.vertices[i]
            for s in range(m.rings.starts[place], m.rings.ends[place]):
                self.geometry.touch_face(m.rings.corners[s] // 3 - m.first_face)
        for i in range(self.geometry.n_faces_touched):
            beads = corners_of(m, world, self.geometry.faces[i])
            for corner in range(3):
                self.geometry.touch_vertex(beads[corner] - m.first_bead)
        for c in range(3):
            self.seed[3 * v + c] = 1.0
            self.around(world, task, v, n)
            for i in range(self.geometry.n_faces_touched):
                f = self.geometry.faces[i]
                beads = corners_of(m, world, f)
                if self.loops[HESSIAN].faces(task, world, f, f + 1, 0) != 0:
                    return world.fault.code
                for corner in range(3):
                    column = self.columns + 9 * (beads[corner] - m.first_bead)
                    for row in range(3):
                        column[3 * row + c] += task.rows[9 * f + 3 * corner + row]
            self.seed[3 * v + c] = 0.0
        # As they were.
        self.around(world, task, v, n)
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef const Membrane* m = self.membrane
        cdef BendingTask task
        cdef double* column
        cdef Py_ssize_t i, v, w
        cdef int c, d
        cdef int fault = self.prepare(world, &task)
        if fault != 0:
            return fault
        # Where nothing moves along.
        task.a = self.seed
        memset(self.columns, 0, 9 * m.n_vertices * sizeof(double))
        memset(self.seed, 0, 3 * m.n_vertices * sizeof(double))
        memset(self.lines, 0, 2 * self.line * m.n_faces * sizeof(double))
        memset(self.turns, 0, 2 * 3 * m.n_faces * sizeof(double))
        over_blocks(self.loops[HESSIAN].vertices, &task, world, m.n_vertices, VERTEX_BLOCK)
        for v in range(m.n_vertices):
            fault = self.columns_of(world, &task, v)
            # Only round-off is in between.
            column = self.columns + 9 * v
            for c in range(3):
                for d in range(c):
                    column[3 * c + d] = column[3 * d + c] = 0.5 * (column[3 * c + d] + column[3 * d + c])
            for i in range(self.geometry.n_touched):
                w = self.geometry.vertices[i]
                column = self.columns + 9 * w
                if fault == 0 and w >= v:
                    fault = add(sink, m.first_bead + w, m.first_bead + v, column)
                memset(column, 0, 9 * sizeof(double))
            self.geometry.let_go()
            if fault != 0:
                return fault
        return 0

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.squares(world, add, sink, NULL)

    cdef int diagonal(self, World* world, double* out) noexcept nogil:
        return self.squares(world, NULL, NULL, out)

    cdef int squares(self, World* world, AddBlock add, void* sink, double* diagonal) noexcept nogil:
        """Blocks of dr_v dr_v^T of every vertex, for the sink; or, where there is none, those of vertices with
        themselves, added to (n, 3, 3) numbers. Of several residuals of a vertex, the sum."""
        cdef const Membrane* m = self.membrane
        cdef BendingTask task
        cdef const int32_t* beads
        cdef double* slope
        cdef double* a
        cdef double* b
        cdef double block[9]
        cdef Py_ssize_t i, j, f, s, v
        cdef int c, d, k, corner
        cdef int fault = self.prepare(world, &task)
        if fault != 0:
            return fault
        # Of one vertex at a time, among others without weight.
        memset(self.responses, 0, self.width * m.n_vertices * sizeof(double))
        memset(self.columns, 0, 12 * m.n_vertices * sizeof(double))
        for v in range(m.n_vertices):
            if self.kappa[v] == 0.0:
                continue
            for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
                beads = corners_of(m, world, m.rings.corners[s] // 3 - m.first_face)
                for corner in range(3):
                    self.geometry.touch_vertex(beads[corner] - m.first_bead)
            for k in range(self.components):
                task.component = k
                self.ones(&task, world, v, v + 1, 0)
                for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
                    f = m.rings.corners[s] // 3 - m.first_face
                    if self.faces(&task, world, f, f + 1, 0) != 0:
                        fault = world.fault.code
                    beads = corners_of(m, world, f)
                    for corner in range(3):
                        slope = self.columns + 12 * (beads[corner] - m.first_bead) + 3 * k
                        for c in range(3):
                            slope[c] += task.rows[9 * f + 3 * corner + c]
            memset(self.responses + self.width * v, 0, self.width * sizeof(double))
            for i in range(self.geometry.n_touched):
                a = self.columns + 12 * <Py_ssize_t> self.geometry.vertices[i]
                for j in range(i if add == NULL else 0, i + 1):
                    b = self.columns + 12 * <Py_ssize_t> self.geometry.vertices[j]
                    for c in range(3):
                        for d in range(3):
                            block[3 * c + d] = a[c] * b[d]
                            for k in range(1, self.components):
                                block[3 * c + d] += a[3 * k + c] * b[3 * k + d]
                    if add != NULL and fault == 0:
                        f = m.first_bead + self.geometry.vertices[j]
                        fault = add(sink, m.first_bead + self.geometry.vertices[i], f, block)
                    elif add == NULL:
                        for c in range(9):
                            diagonal[9 * (m.first_bead + self.geometry.vertices[i]) + c] += block[c]
            for i in range(self.geometry.n_touched):
                memset(self.columns + 12 * <Py_ssize_t> self.geometry.vertices[i], 0, 12 * sizeof(double))
            self.geometry.let_go()
            if fault != 0:
                return fault
        return 0
