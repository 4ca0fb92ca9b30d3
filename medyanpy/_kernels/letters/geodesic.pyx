"""The letter G: straight flight of in-triangle points over the frozen mesh.

Inside a triangle the weights move at constant rates, lambda' = G^-1 p_lambda / m, and the point pushes
each corner i with the recoil m lambda_i' v. At an edge the flight continues in the neighbour, unfolded into the
same plane; at a border it is reflected.

With n = e1 x e2 the rates of the second and third weight are (v x e2).n/|n|^2 and (e1 x v).n/|n|^2. For a
crossing call i the corner whose weight has run out, (j, k) the edge opposite, E = R_k - R_j, u = R_i - R_j, and
u' = R_i' - R_j for the new apex i'. Height over E times |E| is |E x u|, so equal speed across the edge
and along it mean

    rate_i' = -rate_i |E x u| / |E x u'|,      rate_k' = rate_k + (rate_i E.u - rate_i' E.u') / E.E,

and v' = rate_i' u' + rate_k' E. A reflection is the case i' = i. Recoil of a stay of length tau is exactly
m rate_i tau v = m (change of lambda_i) v, never more than m |v|: the bound that the order-free sums need.

Back in time: the inverse of a flight for h is the flight for h of reversed points over reversed vertices. It is flown
with v' = -v. A vertex has the momentum -P then and gets the recoil m (change of lambda_i) v'; turned back it is left
with P - m (change of lambda_i) v': recoils are subtracted.
Source: BAGOGAB, "Splitting strategy", G.
"""
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.accumulate cimport Accumulator, Groups, Sum, group_end, note, scale_at, to_grid
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.beads.points cimport Frame, frame_of
from medyanpy._kernels.core.program cimport (
    DEGENERATE_TRIANGLE, NOT_FINITE, Operation, TOO_MANY_CROSSINGS, World, is_there, mark_moved,
)
from medyanpy._kernels.core.vec3 cimport cross, dot

cdef Py_ssize_t BLOCK = 256
# Looking for the largest momentum is a hundred times quicker.
cdef Py_ssize_t LOOKED_AT = 8192
# A point that crosses this many edges in one G circles in a sliver or flies with a nonsensical speed.
cdef int MAX_CROSSINGS = 100_000


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


cdef inline void _recoil(
    Sum* sums, const int32_t* corner, const double* v, double scaled_mass, double d1, double d2,
) noexcept nogil:
    """Push the corners 0, 1, 2 by m v times the changes -(d1 + d2), d1, d2 of their weights."""
    cdef int64_t second, third
    cdef double q
    cdef int c
    for c in range(3):
        q = scaled_mass * v[c]
        second = to_grid(d1, q)
        third = to_grid(d2, q)
        # The first corner takes what is left: the three add up to nothing in integers, so the momentum of the
        # membrane is conserved exactly.
        sums[3 * <Py_ssize_t> corner[0] + c] -= second + third
        sums[3 * <Py_ssize_t> corner[1] + c] += second
        sums[3 * <Py_ssize_t> corner[2] + c] += third


cdef inline int _fly_one(FlightTask* t, World* world, Py_ssize_t p, Sum* sums) noexcept nogil:
    # Corners are known by roles 0, 1, 2; role r is corner (base + r) % 3 of the face.
    cdef Py_ssize_t bead = world.n_cartesian + p
    cdef int32_t face = world.triangle[p]
    cdef int32_t code
    cdef int base = 0, i, j, k, r, crossings = 0
    cdef const int32_t* corners = world.faces + 3 * <Py_ssize_t> face
    cdef int32_t corner[3]
    cdef double weight[3]
    cdef double rate[3]
    cdef double moved[3]
    cdef double v[3]
    cdef double a[3]
    cdef double u[3]
    cdef double E[3]
    cdef Frame frame
    cdef double inverse, nn, nn_new, tau, tau_r, EE, uE, uE_new, rate_i, rate_k, weight_j, weight_k
    cdef double rest = t.h
    cdef double scaled_mass = 0.0
    cdef int32_t corner_j, corner_k
    cdef double* out

    corner[0] = corners[0]
    corner[1] = corners[1]
    corner[2] = corners[2]
    weight[1] = world.barycentric[2 * p]
    weight[2] = world.barycentric[2 * p + 1]
    weight[0] = (1.0 - weight[1]) - weight[2]
    v[0] = t.sense * world.v[3 * bead]
    v[1] = t.sense * world.v[3 * bead + 1]
    v[2] = t.sense * world.v[3 * bead + 2]
    frame_of(&world.box, world.x, corners, &frame)
    nn = frame.nn
    inverse = 1.0 / nn
    cross(v, frame.e2, a)
    rate[1] = dot(a, frame.n) * inverse
    cross(frame.e1, v, a)
    rate[2] = dot(a, frame.n) * inverse
    rate[0] = -(rate[1] + rate[2])
    if sums != NULL:
        scaled_mass = world.mass[bead] * t.scale

    while True:
        moved[0] = weight[0] + rate[0] * rest
        moved[1] = weight[1] + rate[1] * rest
        moved[2] = weight[2] + rate[2] * rest
        if moved[0] >= 0.0 and moved[1] >= 0.0 and moved[2] >= 0.0:
            if sums != NULL:
                _recoil(sums, corner, v, scaled_mass, rate[1] * rest, rate[2] * rest)
            break
        # The edge that is reached first. A weight of zero with a falling rate is reached at once: that is a
        # start on an edge, and at a vertex the fan of triangles is walked through, one unfolding at a time.
        i = -1
        tau = rest
        for r in range(3):
            if moved[r] < 0.0:
                tau_r = -weight[r] / rate[r]
                if i < 0 or tau_r < tau:
                    tau = tau_r
                    i = r
        if i < 0:
            return record_fault(world, DEGENERATE_TRIANGLE, bead, face)
        crossings += 1
        if crossings > MAX_CROSSINGS:
            return record_fault(world, TOO_MANY_CROSSINGS, bead, face)
        if sums != NULL:
            _recoil(sums, corner, v, scaled_mass, rate[1] * tau, rate[2] * tau)
        rest = max(rest - tau, 0.0)
        j = (i + 1) % 3
        k = (i + 2) % 3
        # Rounding may leave a weight a hair below zero: it is zero.
        weight_j = max(weight[j] + rate[j] * tau, 0.0)
        weight_k = max(weight[k] + rate[k] * tau, 0.0)
        corner_j = corner[j]
        corner_k = corner[k]
        rate_i = rate[i]
        rate_k = rate[k]
        displacement(&world.box, world.x + 3 * <Py_ssize_t> corner_j, world.x + 3 * <Py_ssize_t> corner_k, E)
        displacement(&world.box, world.x + 3 * <Py_ssize_t> corner_j, world.x + 3 * <Py_ssize_t> corner[i], u)
        EE = dot(E, E)
        uE = dot(u, E)
        code = world.opposite[3 * <Py_ssize_t> face + (base + i) % 3]
        if code >= 0:
            face = code // 3
            base = code % 3
            corner[0] = world.faces[code]
            displacement(&world.box, world.x + 3 * <Py_ssize_t> corner_j, world.x + 3 * <Py_ssize_t> corner[0], u)
            cross(E, u, a)
            nn_new = dot(a, a)
            rate[0] = -rate_i * sqrt(nn / nn_new)
            nn = nn_new
            uE_new = dot(u, E)
            rate_k = rate_k + (rate_i * uE - rate[0] * uE_new) / EE
            # The neighbour runs along the shared edge the other way round.
            corner[1] = corner_k
            corner[2] = corner_j
            weight[1] = weight_k
            weight[2] = weight_j
            rate[1] = rate_k
            rate[2] = -(rate[0] + rate_k)
        else:
            base = (base + i) % 3
            corner[0] = corner[i]
            rate[0] = -rate_i
            rate_k = rate_k + 2.0 * rate_i * uE / EE
            corner[1] = corner_j
            corner[2] = corner_k
            weight[1] = weight_j
            weight[2] = weight_k
            rate[1] = -(rate[0] + rate_k)
            rate[2] = rate_k
        weight[0] = 0.0
        v[0] = rate[0] * u[0] + rate_k * E[0]
        v[1] = rate[0] * u[1] + rate_k * E[1]
        v[2] = rate[0] * u[2] + rate_k * E[2]

    if crossings > 0:
        world.triangle[p] = face
        world.v[3 * bead] = t.sense * v[0]
        world.v[3 * bead + 1] = t.sense * v[1]
        world.v[3 * bead + 2] = t.sense * v[2]
    # Corner c of the face has role (c - base) mod 3.
    weight[1] = moved[(4 - base) % 3]
    weight[2] = moved[(5 - base) % 3]
    # Kept: all three weights are >= 0 when the first is read as (1 - second) - third.
    if (1.0 - weight[1]) - weight[2] < 0.0:
        weight[1] = min(weight[1], 1.0)
        weight[2] = 1.0 - weight[1]
    out = world.barycentric + 2 * p
    out[0] = weight[1]
    out[1] = weight[2]
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
