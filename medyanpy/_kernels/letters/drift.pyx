"""The letter A: free flight of Cartesian beads, with what rides on them.

    free bead         x += h v
    in-triangle point lambda and p_lambda = m A^T v stay. The vertices, and with them A, have moved, so v is
                      rebuilt: the in-plane vector with A'^T v' = A^T v.

With n = e1 x e2 of the moved triangle and w = A^T v, v' = (w1 (e2 x n) + w2 (n x e1)) / |n|^2.
Source: BAGOGAB, "Splitting strategy", A.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.beads.points cimport Frame, frame_of
from medyanpy._kernels.core.program cimport DEGENERATE_TRIANGLE, Operation, World, is_there, mark_moved
from medyanpy._kernels.core.runs cimport next_run
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef Py_ssize_t BEADS = 8192
cdef Py_ssize_t POINTS = 1024


cdef struct DriftTask:
    double h
    double* before            # (n_vertices, 3) positions at the start of the flight, or NULL


cdef int _drift(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef DriftTask* t = <DriftTask*> task
    cdef double h = t.h
    cdef double* x = world.x
    cdef double* v = world.v
    cdef Py_ssize_t k, end
    if t.before != NULL:
        for k in range(3 * first, 3 * min(last, world.n_vertices)):
            t.before[k] = x[k]
    while first < last:
        end = next_run(world, &first, last)
        for k in range(3 * first, 3 * end):
            x[k] += h * v[k]
        first = end
    return 0


cdef int _ride(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef DriftTask* t = <DriftTask*> task
    cdef const double* origin
    cdef const int32_t* corners
    cdef double* v
    cdef double e1[3]
    cdef double e2[3]
    cdef double a[3]
    cdef double b[3]
    cdef double w1, w2
    cdef Frame frame
    cdef Py_ssize_t p
    cdef int c
    for p in range(first, last):
        if not is_there(world, world.n_cartesian + p):
            continue
        corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
        origin = t.before + 3 * <Py_ssize_t> corners[0]
        displacement(&world.box, origin, t.before + 3 * <Py_ssize_t> corners[1], e1)
        displacement(&world.box, origin, t.before + 3 * <Py_ssize_t> corners[2], e2)
        v = world.v + 3 * (world.n_cartesian + p)
        w1 = dot(e1, v)
        w2 = dot(e2, v)
        frame_of(&world.box, world.x, corners, &frame)
        if not frame.nn > 0.0:
            return record_fault(world, DEGENERATE_TRIANGLE, world.n_cartesian + p, world.triangle[p])
        cross(frame.e2, frame.n, a)
        cross(frame.n, frame.e1, b)
        w1 = w1 / frame.nn
        w2 = w2 / frame.nn
        for c in range(3):
            v[c] = w1 * a[c] + w2 * b[c]
    return 0


cdef class Drift(Operation):
    """A for a time h. `before` has a row per vertex where moving membranes carry points, else none."""
    cdef double h
    cdef double[:, ::1] before

    def __init__(self, double h, double[:, ::1] before):
        self.h = h
        self.before = before

    cdef int run(self, World* world) noexcept nogil:
        cdef DriftTask task
        cdef bint ride = world.membranes_move and world.n_points > 0
        task.h = self.h * world.pace
        task.before = &self.before[0, 0] if ride else NULL
        over_blocks(_drift, &task, world, world.n_cartesian, BEADS)
        mark_moved(world)
        if ride:
            return over_blocks(_ride, &task, world, world.n_points, POINTS)
        return 0


cdef class NoteVertices(Operation):
    """Take down in `before` (n_vertices, 3) where vertices are."""
    cdef double[:, ::1] before

    def __init__(self, double[:, ::1] before):
        self.before = before

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(3 * world.n_vertices):
            (&self.before[0, 0])[k] = world.x[k]
        return 0


cdef class Ride(Operation):
    """Let points ride on vertices that constraints have moved on from `before`: A^T v stays, as in A."""
    cdef double[:, ::1] before

    def __init__(self, double[:, ::1] before):
        self.before = before

    cdef int run(self, World* world) noexcept nogil:
        cdef DriftTask task
        task.h = 0.0
        task.before = &self.before[0, 0]
        return over_blocks(_ride, &task, world, world.n_points, POINTS)
