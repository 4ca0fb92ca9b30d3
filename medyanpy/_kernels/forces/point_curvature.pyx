"""In-triangle points that are curved: U = sum_p u(H_p), with the mean curvature H of the membrane where each point is.

H is that of the vertex form at vertices (vertex_form.pxd). In a triangle with the corners i = 0, 1, 2 it is

    H = sum_i lambda_i h_i + sum_i beta_i D_i,   beta_i = lambda_i b_i,   b_i = q_i/(q_0 + q_1 + q_2),
    q_i = (lambda_(i+1) lambda_(i+2))^2

where D_i belongs to the edge opposite corner i. With both triangles at it laid flat, the line between the corners A and
A' opposite to it crosses the edge from B to C at a share s* of that, and is crossed at a share mu of its own length:

    D = [(1 - s*) h_B + s* h_C] - [(1 - mu) h_A + mu h_A']

On the edge b_i = 1 and its derivatives are 0, so that H has there the values and the gradient of
(linear) + lambda_i D_i, the one linear function of the two triangles laid flat that is h_B and h_C at the ends of the
edge and (1 - mu) h_A + mu h_A' where the diagonal crosses: the same seen from either triangle. At a border D = 0.

With heights eta, eta' over the edge and feet s, s' of the corners A, A' along it,

    mu = eta/(eta + eta'),   s* = (1 - mu) s + mu s'

which vertices change by d eta = nu.(dA - (1 - s) dB - s dC), with nu the unit vector of the height in its triangle, and
ds = [E.(dA - dB) + (u - 2 s E).(dC - dB)]/E.E, E = C - B, u = A - B.

Vertices on borders have no ring: h is the mean over their neighbours inside.

Directed points have a curvature C = H + s cos(2 theta) along a direction of their own under the angle theta to that of
the larger principal curvature, s^2 = H^2 - K. That direction is as often where it is as exp(-u/kT) says; without it

    U(H, K) = -kT ln < exp(-m (g)^2/kT) >,   g = H + s cos phi - c,   < > the mean over phi = 2 theta
    dU/dH at fixed s = < 2 m g >_w,   dU/d(s^2) = m < sin^2 phi (1 - 2 m g^2/kT) >_w

with the weights w of the directions; the second by parts, without dividing by s. K is the angle that is missing round a
vertex over its area, interpolated as H is. Where that gives s^2 < 0, which no surface has, U goes on straight in s^2.

Forces on points are in membrane_fields.pyx. What vertices feel at fixed weights is dU/dR by D, and dU/dh of all points
added up for each vertex, handed on to faces like the response of a bending energy.

Bits: what points give to vertices is added up free of any order (accumulate.pxd).
"""
import numpy as np

from libc.math cimport INFINITY, M_PI as pi, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from medyanpy._kernels.core.accumulate cimport Sum, note, scale_at, to_grid
from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.forces.bending cimport BendingTask
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport atan2_, exp_, log_
from medyanpy._kernels.core.face_points cimport FacePoints
from medyanpy._kernels.beads.membrane cimport (
    AREA_SUMS, corners_of, edges_of, FACE_BLOCK, Geometry, Membrane, MembraneForce, normal_of, VECTOR_SUMS,
    VERTEX_BLOCK,
)
from medyanpy._kernels.forces.membrane_fields cimport FieldTask, POINTS_BLOCK, WeightForce
from medyanpy._kernels.core.parallel cimport over_blocks
from medyanpy._kernels.core.program cimport Change, World, is_one_of
from medyanpy._kernels.core.vec3 cimport cross, dot
from medyanpy._kernels.forces.vertex_form cimport curvature_now, rows_of_faces, WIDTH

cdef enum:
    # Vertices that the curvature at a point depends on: the corners of its triangle, and those opposite to them across
    # its edges.
    SIX = 6
    # Of a half turn of phi; the mean over them is exact for what does not change from one to the next by much.
    DIRECTIONS = 32


# One triangle at an edge from B to C, A opposite.
cdef struct Side:
    double u[3]               # A - B
    double nu[3]
    double eta
    double s


cdef struct Patch:
    int32_t vertex[SIX]       # of the membrane; -1: there is none, beyond a border
    double h[SIX]
    double value              # H
    double slope[2]           # dH/d(lambda_2, lambda_3)
    double weight[SIX]        # dH/dh
    double pull[3 * SIX]      # dH/dR at fixed h


cdef struct CurvatureTask:
    FieldTask* field
    const Membrane* m
    double modulus            # 2 kappa a: u = modulus (H - c)^2; directed, kappa a/2
    double c
    double kT                 # directed; else 0
    const double* cosine      # (DIRECTIONS,) of phi
    double* gauss             # (V,) K, directed
    const int32_t* border     # (n_border,) vertices on borders
    const signed char* at_border    # (V,)
    signed char* near         # (V,) whether the curvature at any point depends on this vertex
    double* h                 # (V,)
    double* share             # (V,) of a vertex on a border: 1 over how many corners inside its faces have
    double* response          # (V,) how much U depends on a vertex; 0: nothing that is near it has to be known
    double* turn              # (V, 2) dU/dK over the area, and that times K
    Patch* patch              # (n,) with dU/dR in place of dH/dR
    double* drive             # (n,) dU/dH
    double* drive_gauss       # (n,) dU/dK
    BendingTask bending
    double* total             # (vertices, 3) by place


cdef inline void _side(
    const World* world, const double* b, const double* edge, double ee, int32_t a, Side* out,
) noexcept nogil:
    cdef double inverse
    cdef int c
    displacement(&world.box, b, world.x + 3 * <Py_ssize_t> a, out.u)
    out.s = dot(out.u, edge) / ee if ee > 0.0 else 0.0
    for c in range(3):
        out.nu[c] = out.u[c] - out.s * edge[c]
    out.eta = sqrt(dot(out.nu, out.nu))
    inverse = 1.0 / out.eta if out.eta > 0.0 else 0.0
    for c in range(3):
        out.nu[c] *= inverse


cdef inline void _pull_side(
    const Side* side, const double* edge, double by_eta, double by_s, double* on_a, double* on_b, double* on_c,
) noexcept nogil:
    """What a number that changes by these with eta and s of one side gains with A, B and C; by_s is over E.E."""
    cdef double to_a, to_c
    cdef int c
    for c in range(3):
        to_a = by_eta * side.nu[c] + by_s * edge[c]
        to_c = by_s * (side.u[c] - 2.0 * side.s * edge[c]) - by_eta * side.s * side.nu[c]
        on_a[c] += to_a
        on_c[c] += to_c
        on_b[c] -= to_a + to_c


cdef inline void _around(const World* world, const Membrane* m, Py_ssize_t face, Patch* out) noexcept nogil:
    """The vertices of a face, counted among those of all membranes, and around it."""
    cdef const int32_t* corners = world.faces + 3 * face
    cdef int32_t across
    cdef int i
    for i in range(3):
        across = world.opposite[3 * face + i]
        out.vertex[i] = corners[i] - <int32_t> m.first_bead
        out.vertex[3 + i] = world.faces[across] - <int32_t> m.first_bead if across >= 0 else -1


cdef inline void _interpolate(
    const World* world, const Membrane* m, const double* weight, bint derivatives, Patch* out,
) noexcept nogil:
    """H where a point is, of h at six vertices."""
    cdef double w[3]
    cdef double q[3]
    cdef double by_sum[3]
    cdef double by[3]
    cdef double edge[3]
    cdef Side near, far
    cdef double sum, b, beta, ee, height, mu, cross_at, bulge, along, across, x
    cdef const double* origin
    cdef int i, j, k
    w[1] = weight[0]
    w[2] = weight[1]
    w[0] = (1.0 - w[1]) - w[2]
    out.value = 0.0
    for i in range(3):
        out.value += w[i] * out.h[i]
        by[i] = out.h[i]
    if derivatives:
        for i in range(SIX):
            out.weight[i] = w[i] if i < 3 else 0.0
        for i in range(3 * SIX):
            out.pull[i] = 0.0
    sum = 0.0
    for i in range(3):
        x = w[(i + 1) % 3] * w[(i + 2) % 3]
        q[i] = x * x
        sum += q[i]
    # At a corner the gradient depends on where one comes from; the linear part stands for its mean.
    if sum > 0.0:
        for i in range(3):
            j = (i + 1) % 3
            k = (i + 2) % 3
            by_sum[i] = 2.0 * w[i] * (w[j] * w[j] + w[k] * w[k])
        for i in range(3):
            if out.vertex[3 + i] < 0:
                continue
            j = (i + 1) % 3
            k = (i + 2) % 3
            origin = world.x + 3 * (m.first_bead + out.vertex[j])
            displacement(&world.box, origin, world.x + 3 * (m.first_bead + out.vertex[k]), edge)
            ee = dot(edge, edge)
            _side(world, origin, edge, ee, <int32_t> m.first_bead + out.vertex[i], &near)
            _side(world, origin, edge, ee, <int32_t> m.first_bead + out.vertex[3 + i], &far)
            height = near.eta + far.eta
            mu = near.eta / height if height > 0.0 else 0.5
            cross_at = (1.0 - mu) * near.s + mu * far.s
            bulge = (1.0 - cross_at) * out.h[j] + cross_at * out.h[k] - ((1.0 - mu) * out.h[i] + mu * out.h[3 + i])
            b = q[i] / sum
            beta = w[i] * b
            out.value += beta * bulge
            if not derivatives:
                continue
            by[i] += bulge * (b - beta * by_sum[i] / sum)
            by[j] += bulge * w[i] * (2.0 * w[j] * w[k] * w[k] - b * by_sum[j]) / sum
            by[k] += bulge * w[i] * (2.0 * w[k] * w[j] * w[j] - b * by_sum[k]) / sum
            out.weight[j] += beta * (1.0 - cross_at)
            out.weight[k] += beta * cross_at
            out.weight[i] -= beta * (1.0 - mu)
            out.weight[3 + i] -= beta * mu
            along = beta * (out.h[k] - out.h[j])
            across = beta * (out.h[i] - out.h[3 + i]) + along * (far.s - near.s)
            across = across / height if height > 0.0 else 0.0
            along = along / ee if ee > 0.0 else 0.0
            _pull_side(&near, edge, across * (1.0 - mu), along * (1.0 - mu), out.pull + 3 * i, out.pull + 3 * j,
                       out.pull + 3 * k)
            _pull_side(&far, edge, -across * mu, along * mu, out.pull + 9 + 3 * i, out.pull + 3 * j, out.pull + 3 * k)
    if derivatives:
        out.slope[0] = by[1] - by[0]
        out.slope[1] = by[2] - by[0]


cdef inline double _energy(const CurvatureTask* t, double h, double k, double* by_h, double* by_k) noexcept nogil:
    """Of a point where the membrane has these curvatures, and its derivatives."""
    cdef double g = h - t.c
    cdef double m = t.modulus
    cdef double square, s, lowest, total, weight, along, across, by_square, u
    cdef double e[DIRECTIONS]
    cdef int i
    if t.kT == 0.0:
        by_h[0] = 2.0 * m * g
        by_k[0] = 0.0
        return m * g * g
    square = h * h - k
    if square <= 0.0:
        by_square = m * (0.5 - m * g * g / t.kT)
        u = m * g * g + by_square * square
        by_h[0] = 2.0 * m * g * (1.0 - m * square / t.kT) + 2.0 * h * by_square
        by_k[0] = -by_square
        return u
    s = sqrt(square)
    lowest = INFINITY
    for i in range(DIRECTIONS):
        u = g + s * t.cosine[i]
        e[i] = m * u * u
        lowest = min(lowest, e[i])
    total = along = across = 0.0
    for i in range(DIRECTIONS):
        weight = exp_((lowest - e[i]) / t.kT)
        u = g + s * t.cosine[i]
        total += weight
        along += weight * u
        across += weight * (1.0 - t.cosine[i] * t.cosine[i]) * (1.0 - 2.0 * e[i] / t.kT)
    by_square = m * across / total
    by_h[0] = 2.0 * m * along / total + 2.0 * h * by_square
    by_k[0] = -by_square
    return lowest - t.kT * log_(total / DIRECTIONS)


# Curvature at vertices ------------------------------------------------------------------------------------------

cdef double _missing_angle(const Membrane* m, const World* world, Py_ssize_t v) noexcept nogil:
    """K of a vertex inside, measured now."""
    cdef double e[9]
    cdef double big_n[3]
    cdef double angle = 2.0 * pi, area = 0.0, length
    cdef Py_ssize_t s
    cdef int corner
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        corner = m.rings.corners[s] % 3
        edges_of(world, world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3), e)
        cross(e, e + 3, big_n)
        length = sqrt(dot(big_n, big_n))
        area += length
        angle -= atan2_(length, -dot(e + 3 * ((corner + 1) % 3), e + 3 * ((corner + 2) % 3)))
    return angle / (area * (1.0 / 6.0)) if area > 0.0 else 0.0


cdef int _inside(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """H of vertices that have a ring, as it has been measured."""
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef const double* g
    cdef double gg
    cdef Py_ssize_t v
    for v in range(first, last):
        if not t.near[v]:
            continue
        g = t.m.vector_sums + 4 * v
        gg = dot(g, g)
        # As in membrane_bending.pyx.
        t.h[v] = 3.0 * dot(t.m.area_sums + 3 * v, g) / gg if gg > 0.0 else 0.0
        if t.at_border[v]:
            t.h[v] = 0.0
        elif t.kT > 0.0:
            t.gauss[v] = _missing_angle(t.m, world, v)
    return 0


cdef inline double _at_border(
    const CurvatureTask* t, const World* world, Py_ssize_t v, const double* h, double* share
) noexcept nogil:
    """The mean of h over the neighbours inside; each is a corner of two faces. share: 1 over how often one is met."""
    cdef const Membrane* m = t.m
    cdef const int32_t* beads
    cdef double total = 0.0
    cdef Py_ssize_t s, u
    cdef int i, n = 0
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        beads = world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3)
        for i in range(3):
            u = beads[i] - m.first_bead
            if not t.at_border[u]:
                total += h[u]
                n += 1
    share[0] = 1.0 / n if n > 0 else 0.0
    return share[0] * total


cdef int _borders(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef Py_ssize_t i, v
    for i in range(first, last):
        v = t.border[i]
        if not t.near[v]:
            continue
        t.h[v] = _at_border(t, world, v, t.h, t.share + v)
        if t.kT > 0.0:
            t.gauss[v] = _at_border(t, world, v, t.gauss, t.share + v)
    return 0


# Points ---------------------------------------------------------------------------------------------------------

cdef int _points(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef FieldTask* field = t.field
    cdef Patch* patch
    cdef Patch other
    cdef double by_h, by_k
    cdef Py_ssize_t k, p
    cdef int i
    other.value = 0.0
    for k in range(first, last):
        field.energy[k] = field.slope[2 * k] = field.slope[2 * k + 1] = t.drive[k] = t.drive_gauss[k] = 0.0
        if not is_one_of(world, field.place[k], field.wanted):
            continue
        p = field.place[k] - world.n_cartesian
        patch = t.patch + k
        _around(world, t.m, world.triangle[p], patch)
        for i in range(SIX):
            patch.h[i] = t.h[patch.vertex[i]] if patch.vertex[i] >= 0 else 0.0
        _interpolate(world, t.m, world.barycentric + 2 * p, True, patch)
        if t.kT > 0.0:
            _around(world, t.m, world.triangle[p], &other)
            for i in range(SIX):
                other.h[i] = t.gauss[other.vertex[i]] if other.vertex[i] >= 0 else 0.0
            _interpolate(world, t.m, world.barycentric + 2 * p, True, &other)
        field.energy[k] = _energy(t, patch.value, other.value, &by_h, &by_k)
        t.drive[k] = by_h
        for i in range(2):
            field.slope[2 * k + i] = by_h * patch.slope[i]
        for i in range(3 * SIX):
            patch.pull[i] *= by_h
        if t.kT > 0.0:
            t.drive_gauss[k] = by_k
            for i in range(2):
                field.slope[2 * k + i] += by_k * other.slope[i]
            for i in range(3 * SIX):
                patch.pull[i] += by_k * other.pull[i]
    return 0


cdef int _bound_pulls(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef const double* pull
    cdef double largest = 0.0
    cdef Py_ssize_t k
    cdef int i
    for k in range(first, last):
        if t.drive[k] != 0.0 or t.drive_gauss[k] != 0.0:
            for i in range(SIX):
                pull = t.patch[k].pull + 3 * i
                largest = max(largest, dot(pull, pull))
    note(&t.field.groups, thread, t.field.place[first] - world.n_cartesian, largest)
    return 0


cdef int _add_pulls(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef Sum* sums = t.field.sums + 3 * t.field.n_sums * thread
    cdef const Patch* patch
    cdef double scale = scale_at(&t.field.groups, t.field.place[first] - world.n_cartesian)
    cdef Py_ssize_t k
    cdef int i, c
    for k in range(first, last):
        patch = t.patch + k
        if t.drive[k] == 0.0 and t.drive_gauss[k] == 0.0:
            continue
        for i in range(SIX):
            if patch.vertex[i] < 0:
                continue
            for c in range(3):
                sums[3 * (t.m.first_bead + patch.vertex[i]) + c] += to_grid(-patch.pull[3 * i + c], scale)
    return 0


cdef inline void _bound(
    const CurvatureTask* t, const double* drive, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil:
    cdef double largest = 0.0, x
    cdef Py_ssize_t k
    cdef int i
    for k in range(first, last):
        if drive[k] != 0.0:
            for i in range(SIX):
                x = drive[k] * t.patch[k].weight[i]
                largest = max(largest, x * x)
    note(&t.field.groups, thread, t.field.place[first] - world.n_cartesian, largest)


cdef inline void _add(
    const CurvatureTask* t, const double* drive, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil:
    """What U gains with the number of each vertex that it is interpolated from."""
    cdef Sum* sums = t.field.sums + 3 * t.field.n_sums * thread
    cdef const Patch* patch
    cdef double scale = scale_at(&t.field.groups, t.field.place[first] - world.n_cartesian)
    cdef Py_ssize_t k
    cdef int i
    for k in range(first, last):
        patch = t.patch + k
        if drive[k] == 0.0:
            continue
        for i in range(SIX):
            if patch.vertex[i] >= 0:
                sums[3 * (t.m.first_bead + patch.vertex[i])] += to_grid(drive[k] * patch.weight[i], scale)


cdef int _bound_mean(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _bound(<CurvatureTask*> task, (<CurvatureTask*> task).drive, world, first, last, thread)
    return 0


cdef int _add_mean(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _add(<CurvatureTask*> task, (<CurvatureTask*> task).drive, world, first, last, thread)
    return 0


cdef int _bound_gauss(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _bound(<CurvatureTask*> task, (<CurvatureTask*> task).drive_gauss, world, first, last, thread)
    return 0


cdef int _add_gauss(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    _add(<CurvatureTask*> task, (<CurvatureTask*> task).drive_gauss, world, first, last, thread)
    return 0


# Vertices -------------------------------------------------------------------------------------------------------

cdef double _drive_of(const CurvatureTask* t, const World* world, Py_ssize_t v) noexcept nogil:
    """Of a vertex inside, with what those on borders hand on to it; `total` has what points give, one number each."""
    cdef const Membrane* m = t.m
    cdef const int32_t* beads
    cdef double drive = t.total[3 * (m.first_bead + v)]
    cdef Py_ssize_t s, u
    cdef int i
    if t.border == NULL:
        return drive
    for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
        beads = world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3)
        for i in range(3):
            u = beads[i] - m.first_bead
            if t.at_border[u]:
                drive += t.share[u] * t.total[3 * (m.first_bead + u)]
    return drive


cdef int _respond(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """dU/dh of each vertex inside, and what it hands to its faces."""
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef const Membrane* m = t.m
    cdef const double* a
    cdef const double* g
    cdef double* r
    cdef double gg, drive, c
    cdef Py_ssize_t v
    cdef int i
    for v in range(first, last):
        r = t.bending.response + WIDTH * v
        for i in range(WIDTH):
            r[i] = 0.0
        drive = _drive_of(t, world, v) if t.near[v] and not t.at_border[v] else 0.0
        t.response[v] = drive if drive >= 0.0 else -drive
        if drive == 0.0:
            continue
        a = m.area_sums + 3 * v
        g = m.vector_sums + 4 * v
        gg = dot(g, g)
        if gg == 0.0:
            continue
        c = drive / gg
        for i in range(3):
            r[i] = 1.5 * c * g[i]
            r[3 + i] = c * (3.0 * a[i] - 2.0 * t.h[v] * g[i])
    return 0


cdef int _turn(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Likewise of K."""
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef double drive, area
    cdef Py_ssize_t v
    for v in range(first, last):
        t.turn[2 * v] = t.turn[2 * v + 1] = 0.0
        if not t.near[v] or t.at_border[v]:
            continue
        drive = _drive_of(t, world, v)
        area = t.m.vector_sums[4 * v + 3] * (1.0 / 6.0)
        t.response[v] += drive if drive >= 0.0 else -drive
        t.turn[2 * v] = drive / area if area > 0.0 else 0.0
        t.turn[2 * v + 1] = t.turn[2 * v] * t.gauss[v]
    return 0


cdef inline void _add_angles(const CurvatureTask* t, const World* world, Py_ssize_t f, double* row) noexcept nogil:
    """What a face contributes by K of its corners: dK = -(d angle + K dA)/A, a third of the face's area in A.

    Of the angle at x_i between b to the next corner and c to the one after, -n x b/b.b goes with the former and
    n x c/c.c with the latter.
    """
    cdef const Membrane* m = t.m
    cdef const int32_t* beads = corners_of(m, world, f)
    cdef double e[9]
    cdef double n[3]
    cdef double u[3]
    cdef double tension = 0.0, scale
    cdef const double* b
    cdef const double* c
    cdef int i, j, k, d
    if m.area_vectors[4 * f + 3] == 0.0:
        return
    edges_of(world, beads, e)
    normal_of(m.area_vectors + 4 * f, n)
    for i in range(3):
        tension += t.turn[2 * (beads[i] - m.first_bead) + 1] * (1.0 / 3.0)
    for d in range(9):
        row[d] -= tension * m.area_gradients[9 * f + d]
    for i in range(3):
        j = (i + 1) % 3
        k = (i + 2) % 3
        b = e + 3 * k
        # Towards x_i.
        c = e + 3 * j
        scale = t.turn[2 * (beads[i] - m.first_bead)]
        cross(n, b, u)
        for d in range(3):
            u[d] *= scale / dot(b, b)
            row[3 * j + d] += u[d]
            row[3 * i + d] -= u[d]
        cross(n, c, u)
        for d in range(3):
            u[d] *= scale / dot(c, c)
            row[3 * k + d] += u[d]
            row[3 * i + d] -= u[d]


cdef int _faces(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Rows of the faces near points; most have none near."""
    cdef CurvatureTask* t = <CurvatureTask*> task
    cdef const int32_t* beads
    cdef Py_ssize_t f
    cdef int c, fault = 0
    for f in range(first, last):
        beads = corners_of(t.m, world, f)
        if (
            t.response[beads[0] - t.m.first_bead] + t.response[beads[1] - t.m.first_bead]
            + t.response[beads[2] - t.m.first_bead] != 0.0
        ):
            fault |= rows_of_faces(0, &t.bending, world, f, f + 1)
            if t.kT > 0.0:
                _add_angles(t, world, f, t.bending.rows + 9 * f)
        else:
            for c in range(9):
                t.bending.rows[9 * f + c] = 0.0
    return fault


cdef class PointCurvature(WeightForce):
    """rest: the Geometry of the membrane, how many points all membranes have, the vertices on borders (m,) int32, the
    modulus times the area of a point (pN nm³), its curvature (1/nm), and kT of directed points, else 0."""
    cdef CurvatureTask curved
    cdef Geometry geometry
    cdef MembraneForce bent
    cdef object patches
    cdef const int32_t[::1] borders
    cdef signed char[::1] at_border
    cdef signed char[::1] is_near
    cdef FacePoints in_faces  # None before any change
    cdef int32_t[::1] number  # (n_points,) of points of all membranes, -1 for others
    # Of one difference: which vertices have been measured in which state.
    cdef double[::1] h_now
    cdef double[::1] gauss_now
    cdef long long[::1] measured
    cdef long long state
    cdef int32_t[::1] near    # points that it concerns
    cdef Py_ssize_t n_near

    def __init__(self, str name, const int32_t[::1] place, Py_ssize_t first, corners, int64_t wanted,
                 Geometry geometry, Py_ssize_t n_points, const int32_t[::1] borders, double modulus, double c,
                 double kT):
        cdef CurvatureTask* t = &self.curved
        cdef Py_ssize_t n_vertices = geometry.membrane.n_vertices
        cdef Py_ssize_t n_faces = geometry.membrane.n_faces
        cdef Py_ssize_t i
        cdef char[::1] patches
        self.geometry = geometry
        self.bent = MembraneForce(name, geometry, AREA_SUMS | VECTOR_SUMS)
        t.field = &self.task
        t.m = &geometry.membrane
        t.modulus = 0.5 * modulus if kT > 0.0 else 2.0 * modulus
        t.c = c
        t.kT = kT
        t.cosine = vector[double](self.arrays, np.cos((np.arange(DIRECTIONS) + 0.5) * (np.pi / DIRECTIONS)))
        t.gauss = zeros(self.arrays, n_vertices)
        t.turn = zeros(self.arrays, 2 * n_vertices)
        self.borders = borders
        t.border = &borders[0] if borders.shape[0] > 0 else NULL
        self.at_border = np.zeros(n_vertices, np.int8)
        for i in range(borders.shape[0]):
            self.at_border[borders[i]] = 1
        t.at_border = &self.at_border[0]
        self.is_near = np.zeros(n_vertices, np.int8)
        t.near = &self.is_near[0]
        t.h = zeros(self.arrays, n_vertices)
        t.share = zeros(self.arrays, n_vertices)
        t.response = zeros(self.arrays, n_vertices)
        t.drive = zeros(self.arrays, self.n)
        t.drive_gauss = zeros(self.arrays, self.n)
        patches = self.patches = np.zeros(max(1, self.n * sizeof(Patch)), np.int8)
        t.patch = <Patch*> &patches[0]
        t.total = zeros(self.arrays, 3 * self.corners.n)
        t.bending.membrane = t.m
        # A triangle without area is a fault where points are near.
        t.bending.kappa = t.response
        t.bending.response = zeros(self.arrays, WIDTH * n_vertices)
        t.bending.rows = zeros(self.arrays, 9 * n_faces)
        self.number = np.full(max(1, n_points), -1, np.int32)
        self.near = np.zeros(max(1, self.n), np.int32)
        self.h_now = np.zeros(n_vertices)
        self.gauss_now = np.zeros(n_vertices)
        self.measured = np.zeros(n_vertices, np.int64)

    cdef void mark(self, World* world) noexcept nogil:
        """Which vertices are near points."""
        cdef CurvatureTask* t = &self.curved
        cdef const Membrane* m = t.m
        cdef const int32_t* beads
        cdef Patch patch
        cdef Py_ssize_t k, s, v
        cdef int i
        memset(t.near, 0, m.n_vertices)
        for k in range(self.n):
            if is_one_of(world, t.field.place[k], t.field.wanted):
                _around(world, m, world.triangle[t.field.place[k] - world.n_cartesian], &patch)
                for i in range(SIX):
                    if patch.vertex[i] >= 0:
                        t.near[patch.vertex[i]] = 1
        for k in range(self.borders.shape[0]):
            v = m.first_bead + self.borders[k]
            if not t.near[self.borders[k]]:
                continue
            for s in range(m.rings.starts[v], m.rings.ends[v]):
                beads = world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3)
                for i in range(3):
                    if not t.at_border[beads[i] - m.first_bead]:
                        t.near[beads[i] - m.first_bead] = 1

    cdef int measure(self, World* world) noexcept nogil:
        cdef CurvatureTask* t = &self.curved
        self.mark(world)
        self.geometry.measure(world, AREA_SUMS | VECTOR_SUMS)
        over_blocks(_inside, t, world, t.m.n_vertices, VERTEX_BLOCK)
        over_blocks(_borders, t, world, self.borders.shape[0], VERTEX_BLOCK)
        return over_blocks(_points, t, world, self.n, POINTS_BLOCK)

    cdef int bend(self, World* world) noexcept nogil:
        cdef CurvatureTask* t = &self.curved
        cdef int fault
        self.corners.forget_bounds()
        over_blocks(_bound_pulls, t, world, self.n, POINTS_BLOCK)
        self.corners.set_bounds()
        over_blocks(_add_pulls, t, world, self.n, POINTS_BLOCK)
        self.corners.collect(world, self.total, NULL, False)
        self.corners.forget_bounds()
        over_blocks(_bound_mean, t, world, self.n, POINTS_BLOCK)
        self.corners.set_bounds()
        over_blocks(_add_mean, t, world, self.n, POINTS_BLOCK)
        self.corners.collect(world, t.total, NULL, True)
        over_blocks(_respond, t, world, t.m.n_vertices, VERTEX_BLOCK)
        if t.kT > 0.0:
            self.corners.forget_bounds()
            over_blocks(_bound_gauss, t, world, self.n, POINTS_BLOCK)
            self.corners.set_bounds()
            over_blocks(_add_gauss, t, world, self.n, POINTS_BLOCK)
            self.corners.collect(world, t.total, NULL, True)
            over_blocks(_turn, t, world, t.m.n_vertices, VERTEX_BLOCK)
        fault = over_blocks(_faces, t, world, t.m.n_faces, FACE_BLOCK)
        if fault == 0:
            self.bent.gather(world, t.bending.rows, NULL, -1.0, self.total)
        return fault

    # Where a few edges or beads change ------------------------------------------------------------------------

    cdef void index(self, World* world) noexcept nogil:
        """Which points are in each face."""
        cdef CurvatureTask* t = &self.curved
        cdef Py_ssize_t k
        if self.in_faces is None:
            for k in range(self.n):
                self.number[t.field.place[k] - world.n_cartesian] = <int32_t> k
            with gil:
                own = np.flatnonzero(np.asarray(self.number) >= 0)
                self.in_faces = FacePoints(own, world.n_points, world.n_faces)
        self.in_faces.follow(world)

    cdef double curvature_at(self, World* world, Py_ssize_t v) noexcept nogil:
        """H of a vertex in this state, measured once; inf where it cannot be."""
        cdef CurvatureTask* t = &self.curved
        cdef const Membrane* m = t.m
        cdef const int32_t* beads
        cdef double unused = 0.0
        cdef Py_ssize_t s
        cdef int i
        if self.measured[v] == self.state:
            return self.h_now[v]
        self.measured[v] = self.state
        if not t.at_border[v]:
            self.h_now[v] = curvature_now(m, world, v, &unused)
            if unused < 0.0:
                self.h_now[v] = INFINITY
            elif t.kT > 0.0:
                self.gauss_now[v] = _missing_angle(m, world, v)
            return self.h_now[v]
        for s in range(m.rings.starts[m.first_bead + v], m.rings.ends[m.first_bead + v]):
            beads = world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3)
            for i in range(3):
                if not t.at_border[beads[i] - m.first_bead]:
                    self.curvature_at(world, beads[i] - m.first_bead)
        self.h_now[v] = _at_border(t, world, v, &self.h_now[0], &unused)
        if t.kT > 0.0:
            self.gauss_now[v] = _at_border(t, world, v, &self.gauss_now[0], &unused)
        return self.h_now[v]

    cdef double energy_near(self, World* world) noexcept nogil:
        """Of the points that a change concerns, as the World is now."""
        cdef CurvatureTask* t = &self.curved
        cdef Patch patch
        cdef double unused[2]
        cdef double total = 0.0, h
        cdef Py_ssize_t i, p
        cdef int j
        self.state += 1
        for i in range(self.n_near):
            p = t.field.place[self.near[i]] - world.n_cartesian
            _around(world, t.m, world.triangle[p], &patch)
            for j in range(SIX):
                patch.h[j] = 0.0
                if patch.vertex[j] >= 0:
                    patch.h[j] = self.curvature_at(world, patch.vertex[j])
                    if patch.h[j] == INFINITY:
                        return INFINITY
            _interpolate(world, t.m, world.barycentric + 2 * p, False, &patch)
            h = patch.value
            if t.kT > 0.0:
                for j in range(SIX):
                    patch.h[j] = self.gauss_now[patch.vertex[j]] if patch.vertex[j] >= 0 else 0.0
                _interpolate(world, t.m, world.barycentric + 2 * p, False, &patch)
            total += _energy(t, h, patch.value, unused, unused + 1)
        return total

    cdef void reach(self, World* world) noexcept nogil:
        """From vertices whose curvature or place changes to the faces whose points feel it, and those points."""
        cdef CurvatureTask* t = &self.curved
        cdef const Membrane* m = t.m
        cdef const int32_t* beads
        cdef int32_t across
        cdef Py_ssize_t i, s, v
        cdef int32_t p
        cdef int c
        if self.borders.shape[0] > 0:
            for i in range(self.geometry.n_touched):
                v = m.first_bead + self.geometry.vertices[i]
                for s in range(m.rings.starts[v], m.rings.ends[v]):
                    beads = world.faces + 3 * <Py_ssize_t> (m.rings.corners[s] // 3)
                    for c in range(3):
                        if t.at_border[beads[c] - m.first_bead]:
                            self.geometry.touch_vertex(beads[c] - m.first_bead)
        for i in range(self.geometry.n_touched):
            v = m.first_bead + self.geometry.vertices[i]
            for s in range(m.rings.starts[v], m.rings.ends[v]):
                self.geometry.touch_face(m.rings.corners[s] // 3 - m.first_face)
                across = world.opposite[m.rings.corners[s]]
                if across >= 0:
                    self.geometry.touch_face(across // 3 - m.first_face)
        self.n_near = 0
        for i in range(self.geometry.n_faces_touched):
            p = self.in_faces.head[m.first_face + self.geometry.faces[i]]
            while p >= 0 and self.n_near < self.n:
                if is_one_of(world, world.n_cartesian + p, t.field.wanted):
                    self.near[self.n_near] = self.number[p]
                    self.n_near += 1
                p = self.in_faces.next[p]

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef bint tells_beads(self) noexcept nogil:
        return True

    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil:
        self.n_near = 0
        if place < self.row_of.shape[0] and self.row_of[place] >= 0 and (
                is_one_of(world, place, self.curved.field.wanted)):
            self.index(world)
            self.near[0] = <int32_t> self.row_of[place]
            self.n_near = 1
        return self.local_energy(world, out)

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        self.n_near = 0
        if self.n == 0:
            return True
        self.index(world)
        self.geometry.touch(world, change)
        # The same points in both states: those that are carried stay in the two faces at their edge.
        self.reach(world)
        self.geometry.let_go()
        return True

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        self.examined += self.n_near
        out[0] = self.energy_near(world) if self.n_near > 0 else 0.0
        return 0

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        """All is measured anew; points that were carried are found where they are now."""
        if self.in_faces is not None:
            self.in_faces.changed(world, change)
        return True
