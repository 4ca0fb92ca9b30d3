"""Energies of in-triangle points that are functions of their triangle and weights alone: U(triangle, lambda).

    p_lambda' = -dU/dlambda,    P' = 0

A force on a point's place r is passed on to its corners, as lambda_i f. With
A^T dr = A^T sum_i lambda_i dR_i + G dlambda, U as a function of r (in the plane of the triangle) and of the corners as
places of their own has the gradients

    -f,    f = -A G^-1 dU/d(lambda_2, lambda_3),      on the point,
    lambda_i f                                        on corner i:

the point is given f, and its corners -lambda_i f, which is what they get from it the other way round. So whoever kicks,
minimises, or asks for a virial need not know that there are such energies.

Of changes that are proposed only those points matter that are in faces at flipped edges: nothing here depends on where
vertices are.

Bits: what points give to corners is added up free of any order (accumulate.pxd).
"""
import numpy as np

from cpython.exc cimport PyErr_SetInterrupt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.accumulate cimport Accumulator, Sum, note, scale_at, to_grid
from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.expressions cimport Compiled, WIDTH, evaluate
from medyanpy._kernels.forces.membrane_fields cimport FieldTask, POINTS_BLOCK
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, record_fault, sum_in_blocks
from medyanpy._kernels.beads.points cimport Frame, frame_of, with_rates
from medyanpy._kernels.core.program cimport (
    DEGENERATE_TRIANGLE, NO_FAULT, NOT_FINITE, PYTHON_EXCEPTION, Change, Operation, World, is_one_of,
)
from medyanpy._kernels.core.vec3 cimport dot


cdef int _linear(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Energies and slopes of values at vertices, linear in every triangle."""
    cdef FieldTask* t = <FieldTask*> task
    cdef const int32_t* corners
    cdef const double* weight
    cdef double u
    cdef Py_ssize_t k, p
    for k in range(first, last):
        p = t.place[k] - world.n_cartesian
        corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        weight = world.barycentric + 2 * p
        u = t.value[corners[0] - t.first]
        t.slope[2 * k] = t.value[corners[1] - t.first] - u
        t.slope[2 * k + 1] = t.value[corners[2] - t.first] - u
        t.energy[k] = u + (weight[0] * t.slope[2 * k] + weight[1] * t.slope[2 * k + 1])
        if not is_one_of(world, t.place[k], t.wanted):
            t.energy[k] = 0.0
    return 0


cdef int _written(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Energies and slopes of functions of q fields, each of which is linear in every triangle."""
    cdef FieldTask* t = <FieldTask*> task
    cdef double* registers = t.registers + (first // POINTS_BLOCK) * WIDTH * t.function.n_registers
    cdef double* r = registers + WIDTH * t.function.n_constants
    cdef const int32_t* out = t.function.outputs
    cdef const int32_t* corners
    cdef const double* weight
    cdef const double* value
    cdef double u, slope
    cdef Py_ssize_t chunk, i, k, p, j
    cdef int fault = 0
    for chunk in range(n_blocks(last - first, WIDTH)):
        i = first + WIDTH * chunk
        for k in range(WIDTH):
            # Where there are no more, the last once again.
            p = t.place[min(i + k, last - 1)] - world.n_cartesian
            corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
            weight = world.barycentric + 2 * p
            for j in range(t.q):
                value = t.value + t.n_vertices * j - t.first
                u = value[corners[0]]
                r[WIDTH * j + k] = u + (weight[0] * (value[corners[1]] - u) + weight[1] * (value[corners[2]] - u))
        evaluate(t.function, registers)
        for k in range(min(last - i, <Py_ssize_t> WIDTH)):
            t.energy[i + k] = t.slope[2 * (i + k)] = t.slope[2 * (i + k) + 1] = 0.0
            if not is_one_of(world, t.place[i + k], t.wanted):
                continue
            u = registers[WIDTH * out[0] + k]
            t.energy[i + k] = u
            # As of fields in space: derivatives may look like numbers where the energy is none.
            if not (0.0 * u == 0.0):
                fault |= record_fault(world, NOT_FINITE, t.place[i + k], -1)
            corners = world.faces + 3 * <Py_ssize_t> world.triangle[t.place[i + k] - world.n_cartesian]
            for j in range(t.q):
                value = t.value + t.n_vertices * j - t.first
                slope = registers[WIDTH * out[1 + j] + k]
                t.slope[2 * (i + k)] += slope * (value[corners[1]] - value[corners[0]])
                t.slope[2 * (i + k) + 1] += slope * (value[corners[2]] - value[corners[0]])
    return fault


cdef int _forces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """On points, from their slopes."""
    cdef FieldTask* t = <FieldTask*> task
    cdef double* f
    cdef double square, largest = 0.0
    cdef Frame frame
    cdef Py_ssize_t k, p
    cdef int c
    for k in range(first, last):
        f = t.f + 3 * k
        f[0] = f[1] = f[2] = 0.0
        if not is_one_of(world, t.place[k], t.wanted):
            continue
        p = t.place[k] - world.n_cartesian
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> world.triangle[p], &frame)
        with_rates(&frame, -t.slope[2 * k], -t.slope[2 * k + 1], f)
        for c in range(3):
            world.f[3 * <Py_ssize_t> t.place[k] + c] += f[c]
        square = dot(f, f)
        # Slopes are numbers: it is the triangle.
        if frame.nn == 0.0 or not (square - square == 0.0):
            return record_fault(world, DEGENERATE_TRIANGLE, t.place[k], world.triangle[p])
        largest = max(largest, square)
    note(&t.groups, thread, t.place[first] - world.n_cartesian, largest)
    return 0


cdef int _corners(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What corners are given, so that they have nothing of these forces."""
    cdef FieldTask* t = <FieldTask*> task
    cdef Sum* sums = t.sums + 3 * t.n_sums * thread
    cdef const int32_t* corners
    cdef double weight[3]
    cdef double scale
    cdef Py_ssize_t k, p
    cdef int i, c
    scale = scale_at(&t.groups, t.place[first] - world.n_cartesian)
    for k in range(first, last):
        p = t.place[k] - world.n_cartesian
        corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        weight[1] = world.barycentric[2 * p]
        weight[2] = world.barycentric[2 * p + 1]
        weight[0] = 1.0 - weight[1] - weight[2]
        for i in range(3):
            for c in range(3):
                sums[3 * <Py_ssize_t> corners[i] + c] -= to_grid(weight[i] * t.f[3 * k + c], scale)
    return 0


cdef class WeightForce(Operation):
    """An energy of some points of one membrane in their weights. Subclasses find slopes and energies in `measure`.

    Parameters
    ----------
    name : str
    place : (n,) int32
        Of the points, in the order in which their energies are added up.
    first : int
        Place of the first vertex of their membrane.
    corners : Accumulator
        Of all vertices.
    wanted : int
        Bits of the species that count, -1 for all points.
    """

    def __cinit__(self, str name, const int32_t[::1] place, Py_ssize_t first, Accumulator corners, int64_t wanted,
                  *rest):
        cdef FieldTask* t = &self.task
        self.name = name
        self.corners = corners
        self.arrays = []
        self.n = place.shape[0]
        t.place = vector(self.arrays, place)
        t.first = first
        t.wanted = wanted
        t.energy = zeros(self.arrays, self.n)
        t.slope = zeros(self.arrays, 2 * self.n)
        t.f = zeros(self.arrays, 3 * self.n)
        t.groups = corners.groups
        t.sums = corners.sums
        t.n_sums = corners.n
        self.partial = zeros(self.arrays, n_blocks(self.n, SUM_BLOCK))
        self.total = zeros(self.arrays, 3 * corners.n)
        rows = np.full(max(place, default=0) + 1, -1, np.int32)
        rows[place] = np.arange(self.n)
        self.row_of = rows

    cdef int measure(self, World* world) noexcept nogil:
        return over_blocks(self.loop, &self.task, world, self.n, POINTS_BLOCK)

    cdef bint is_local(self) noexcept nogil:
        return self.loop != NULL

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        self.change = change
        return self.loop != NULL

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef const Change* change = self.change
        cdef Py_ssize_t i, k, place
        cdef int fault = 0
        out[0] = 0.0
        for i in range(change.n_points):
            place = world.n_cartesian + change.points[i]
            k = self.row_of[place] if place < self.row_of.shape[0] else -1
            if k >= 0:
                self.examined += 1
                fault |= self.loop(&self.task, world, k, k + 1, 0)
                out[0] += self.task.energy[k]
        return fault

    cdef bint tells_beads(self) noexcept nogil:
        return self.loop != NULL

    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil:
        cdef Py_ssize_t k = self.row_of[place] if place < self.row_of.shape[0] else -1
        cdef int fault = 0
        out[0] = 0.0
        if k >= 0:
            self.examined += 1
            fault = self.loop(&self.task, world, k, k + 1, 0)
            out[0] = self.task.energy[k]
        return fault

    cdef int bend(self, World* world) noexcept nogil:
        return NO_FAULT

    cdef int run(self, World* world) noexcept nogil:
        cdef FieldTask* t = &self.task
        cdef Py_ssize_t k
        cdef int fault
        self.energy = 0.0
        if self.n == 0:
            return 0
        fault = self.measure(world)
        if fault != 0:
            return fault
        self.corners.forget_bounds()
        fault = over_blocks(_forces, t, world, self.n, POINTS_BLOCK)
        if fault != 0:
            return fault
        self.corners.set_bounds()
        over_blocks(_corners, t, world, self.n, POINTS_BLOCK)
        self.corners.collect(world, self.total, NULL, True)
        fault = self.bend(world)
        if fault != 0:
            return fault
        for k in range(3 * t.n_sums):
            world.f[k] += self.total[k]
        if world.want_energy:
            self.energy = sum_in_blocks(world, t.energy, self.n, self.partial)
        return 0

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        # Nothing is kept of triangles.
        return True


cdef class VertexField(WeightForce):
    """rest: (V,) the energy of a point at each vertex; in a triangle it is linear."""

    def __init__(self, str name, place, Py_ssize_t first, Accumulator corners, int64_t wanted,
                 const double[::1] value):
        self.task.value = vector(self.arrays, value)
        self.loop = _linear


cdef class WrittenField(WeightForce):
    """rest: (q, V) fields at the vertices; and the program of the energy of a point and of its derivatives in them, as
    instructions, constants, outputs, and number of registers."""
    cdef Compiled program

    def __init__(self, str name, place, Py_ssize_t first, Accumulator corners, int64_t wanted,
                 const double[:, ::1] values, program):
        self.program = Compiled(*program, max(1, n_blocks(self.n, POINTS_BLOCK)))
        self.task.value = table(self.arrays, values)
        self.task.q = values.shape[0]
        self.task.n_vertices = values.shape[1]
        self.task.function = &self.program.function
        self.task.registers = &self.program.registers[0, 0]
        self.loop = _written


cdef class PythonField(WeightForce):
    """rest: a checked function (triangles (m,), weights (m, 3)) -> (energies (m,), dU/dweights (m, 3)) of the points
    that are there, the number of the first triangle of their membrane, whether it is given the vertices (m, 3) at the
    corners of triangles in place of their numbers, and whether it may be called again."""
    cdef object function
    cdef Py_ssize_t first_face
    cdef bint by_corners

    def __init__(self, str name, place, Py_ssize_t first, Accumulator corners, int64_t wanted, function,
                 Py_ssize_t first_face, bint by_corners, bint repeatable):
        self.function = function
        self.first_face = first_face
        self.by_corners = by_corners
        self.repeatable = repeatable

    cdef int measure(self, World* world) noexcept nogil:
        with gil:
            return self.call(world)

    cdef int call(self, World* world) noexcept:
        self.error = None
        try:
            try:
                self.ask(world)
            except KeyboardInterrupt:
                # As in python_force.pyx.
                if not self.repeatable:
                    raise
                self.ask(world)
                PyErr_SetInterrupt()
            return NO_FAULT
        except BaseException as error:
            self.error = error
        return PYTHON_EXCEPTION

    cdef int ask(self, World* world) except -1:
        cdef FieldTask* t = &self.task
        cdef int32_t[::1] triangle
        cdef double[:, ::1] weight
        cdef const double[::1] energy
        cdef const double[:, ::1] slope
        cdef Py_ssize_t k, p, m = 0
        cdef int32_t[:, ::1] corner
        cdef int c
        for k in range(self.n):
            m += is_one_of(world, t.place[k], t.wanted)
        triangles, weights = np.empty(m, np.int32), np.empty((m, 3))
        corners = np.empty((m, 3), np.int32)
        triangle, corner, weight = triangles, corners, weights
        m = 0
        for k in range(self.n):
            if is_one_of(world, t.place[k], t.wanted):
                p = t.place[k] - world.n_cartesian
                triangle[m] = world.triangle[p] - <int32_t> self.first_face
                for c in range(3):
                    corner[m, c] = world.faces[3 * <Py_ssize_t> world.triangle[p] + c] - <int32_t> t.first
                weight[m, 1] = world.barycentric[2 * p]
                weight[m, 2] = world.barycentric[2 * p + 1]
                weight[m, 0] = (1.0 - weight[m, 1]) - weight[m, 2]
                m += 1
        triangles.flags.writeable = corners.flags.writeable = weights.flags.writeable = False
        energies, slopes = self.function(corners if self.by_corners else triangles, weights)
        energy, slope = energies, slopes
        m = 0
        for k in range(self.n):
            t.energy[k] = 0.0
            if is_one_of(world, t.place[k], t.wanted):
                t.energy[k] = energy[m]
                t.slope[2 * k] = slope[m, 1] - slope[m, 0]
                t.slope[2 * k + 1] = slope[m, 2] - slope[m, 0]
                m += 1
        return 0
