"""The letter G: straight flight of in-triangle points over the frozen mesh.

Inside a triangle the weights move at constant rates, lambda' = G^-1 p_lambda / m, and the point pushes
each corner i with the recoil m lambda_i' v. At an edge the flight continues in the neighbour, unfolded into the
same plane; at a border it is reflected.

The flight itself is in beads/flight.pxd.

Back in time: the inverse of a flight for h is the flight for h of reversed points over reversed vertices. It is flown
with v' = -v. A vertex has the momentum -P then and gets the recoil m (change of lambda_i) v'; turned back it is left
with P - m (change of lambda_i) v': recoils are subtracted.
Source: BAGOGAB, "Splitting strategy", G.
"""
from libc.math cimport fabs

from medyanpy._kernels.beads.flight cimport fly
from medyanpy._kernels.core.accumulate cimport Accumulator, Groups, Sum, group_end, note, scale_at
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.core.program cimport NOT_FINITE, Operation, World, is_there, mark_moved
from medyanpy._kernels.core.vec3 cimport dot

cdef Py_ssize_t BLOCK = 256
# Looking for the largest momentum is a hundred times quicker.
cdef Py_ssize_t LOOKED_AT = 8192


cdef struct FlightTask:
    double h                  # >= 0
    double sense              # 1, or -1 for a flight back in time
    Groups groups             # of points, whose momenta are the bounds
    Sum* sums                 # NULL where no vertex can move
    Py_ssize_t n_sums
    double scale              # of recoils of the points that are flown, with the sign of `sense`


cdef int _largest_momentum(
    void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil:
    """Note the largest squared momenta."""
    cdef FlightTask* t = <FlightTask*> task
    cdef const double* v
    cdef double m, square, largest
    cdef Py_ssize_t p, i, end
    while first < last:
        largest = 0.0
        end = group_end(&t.groups, first, last)
        for p in range(first, end):
            i = world.n_cartesian + p
            v = world.v + 3 * i
            m = world.mass[i]
            square = m * m * dot(v, v)
            if not (square - square == 0.0):
                return record_fault(world, NOT_FINITE, i, world.triangle[p])
            largest = square if square > largest else largest
        note(&t.groups, thread, first, largest)
        first = end
    return 0


cdef inline int _fly_one(FlightTask* t, World* world, Py_ssize_t p, Sum* sums) noexcept nogil:
    cdef Py_ssize_t bead = world.n_cartesian + p
    cdef double* own = world.v + 3 * bead
    cdef double v[3]
    cdef int c, fault, crossings, reflections
    for c in range(3):
        v[c] = t.sense * own[c]
    fault = fly(
        world, world.x, t.h, world.triangle + p, world.barycentric + 2 * p, v,
        sums, NULL, world.mass[bead] * t.scale if sums != NULL else 0.0, &crossings, &reflections)
    if fault != 0:
        return record_fault(world, fault, bead, world.triangle[p])
    if crossings > 0:
        for c in range(3):
            own[c] = t.sense * v[c]
    return 0


cdef int _fly(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FlightTask* t = <FlightTask*> task
    cdef Sum* sums = NULL
    cdef Py_ssize_t p
    cdef int fault = 0
    if t.sums != NULL:
        sums = t.sums + 3 * t.n_sums * thread
    for p in range(first, last):
        if is_there(world, world.n_cartesian + p):
            fault |= _fly_one(t, world, p, sums)
    return fault


cdef int _fly_groups(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Of several membranes, each with a grid of its own."""
    cdef FlightTask t = (<FlightTask*> task)[0]
    cdef Py_ssize_t end
    cdef int fault = 0
    while first < last:
        end = group_end(&t.groups, first, last)
        t.scale = t.sense * scale_at(&t.groups, first)
        fault |= _fly(&t, world, first, end, thread)
        first = end
    return fault


cdef class Geodesic(Operation):
    """G for a time h, which may be negative: then back in time."""
    cdef FlightTask task
    cdef double h
    cdef Accumulator corners

    def __init__(self, double h, Accumulator corners):
        self.corners = corners
        self.h = fabs(h)
        self.task.sense = 1.0 if h >= 0.0 else -1.0
        self.task.groups = corners.groups

    cdef int run(self, World* world) noexcept nogil:
        cdef FlightTask* t = &self.task
        cdef int fault
        if world.n_points == 0:
            return 0
        t.h = self.h * world.pace
        t.sums = NULL
        self.corners.forget_bounds()
        fault = over_blocks(_largest_momentum, t, world, world.n_points, LOOKED_AT)
        if fault != 0:
            return fault
        if world.membranes_move:
            self.corners.set_bounds()
            t.sums = self.corners.sums
            t.n_sums = self.corners.n
            t.scale = t.sense * scale_at(&t.groups, 0)
        fault = over_blocks(_fly if t.groups.of_point == NULL else _fly_groups, t, world, world.n_points, BLOCK)
        mark_moved(world)
        if world.membranes_move:
            self.corners.collect(world, world.v, world.inverse_mass, False)
        return fault
