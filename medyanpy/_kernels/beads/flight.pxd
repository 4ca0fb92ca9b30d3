"""The straight flight of one in-triangle point over a frozen mesh: of G, and of constraints that hold points.

With n = e1 x e2 the rates of the second and third weight are (v x e2).n/|n|^2 and (e1 x v).n/|n|^2. For a
crossing call i the corner whose weight has run out, (j, k) the edge opposite, E = R_k - R_j, u = R_i - R_j, and
u' = R_i' - R_j for the new apex i'. Height over E times |E| is |E x u|, so equal speed across the edge
and along it mean

    rate_i' = -rate_i |E x u| / |E x u'|,      rate_k' = rate_k + (rate_i E.u - rate_i' E.u') / E.E,

and v' = rate_i' u' + rate_k' E. A reflection is the case i' = i. Recoil of a stay of length tau is exactly
m rate_i tau v = m (change of lambda_i) v, never more than m |v|: the bound that the order-free sums need.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.beads.points cimport Frame, frame_of
from medyanpy._kernels.core.accumulate cimport Sum, to_grid
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.program cimport DEGENERATE_TRIANGLE, TOO_MANY_CROSSINGS, World
from medyanpy._kernels.core.vec3 cimport cross, dot

# A point that crosses this many edges in one G circles in a sliver or flies with a nonsensical speed.
cdef enum:
    MAX_CROSSINGS = 100_000


cdef inline void _recoil(
    Sum* sums, double* pushes, const int32_t* corner, const double* v, double mass, double d1, double d2,
) noexcept nogil:
    """Push the corners 0, 1, 2 by m v times the changes -(d1 + d2), d1, d2 of their weights: on the grid of `sums`, or
    in `pushes`, or not at all where both are NULL."""
    cdef int64_t second, third
    cdef double q, r, s
    cdef int c
    if sums == NULL and pushes == NULL:
        return
    for c in range(3):
        q = mass * v[c]
        if sums == NULL:
            r = q * d1
            s = q * d2
            pushes[3 * <Py_ssize_t> corner[0] + c] -= r + s
            pushes[3 * <Py_ssize_t> corner[1] + c] += r
            pushes[3 * <Py_ssize_t> corner[2] + c] += s
            continue
        second = to_grid(d1, q)
        third = to_grid(d2, q)
        # The first corner takes what is left: the three add up to nothing in integers, so the momentum of the
        # membrane is conserved exactly.
        sums[3 * <Py_ssize_t> corner[0] + c] -= second + third
        sums[3 * <Py_ssize_t> corner[1] + c] += second
        sums[3 * <Py_ssize_t> corner[2] + c] += third


cdef inline int fly(
    const World* world, const double* x, double h, int32_t* triangle, double* barycentric, double* velocity,
    Sum* sums, double* pushes, double mass, int* crossed, int* reflected,
) noexcept nogil:
    """Fly a point for a time h >= 0 over the mesh whose vertices are at x; 0, or a fault, after which it is where it
    was. Recoils times `mass` are added to `sums`, on their grid, or to `pushes`, or to neither where both are NULL; x,
    sums and pushes have rows for vertices by place. Also tell how often it has crossed an edge or a border, and how
    often of these a border."""
    # Corners are known by roles 0, 1, 2; role r is corner (base + r) % 3 of the face.
    cdef int32_t face = triangle[0]
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
    cdef double rest = h
    cdef int32_t corner_j, corner_k
    crossed[0] = reflected[0] = 0
    corner[0] = corners[0]
    corner[1] = corners[1]
    corner[2] = corners[2]
    weight[1] = barycentric[0]
    weight[2] = barycentric[1]
    weight[0] = (1.0 - weight[1]) - weight[2]
    v[0] = velocity[0]
    v[1] = velocity[1]
    v[2] = velocity[2]
    frame_of(&world.box, x, corners, &frame)
    nn = frame.nn
    inverse = 1.0 / nn
    cross(v, frame.e2, a)
    rate[1] = dot(a, frame.n) * inverse
    cross(frame.e1, v, a)
    rate[2] = dot(a, frame.n) * inverse
    rate[0] = -(rate[1] + rate[2])

    while True:
        moved[0] = weight[0] + rate[0] * rest
        moved[1] = weight[1] + rate[1] * rest
        moved[2] = weight[2] + rate[2] * rest
        if moved[0] >= 0.0 and moved[1] >= 0.0 and moved[2] >= 0.0:
            _recoil(sums, pushes, corner, v, mass, rate[1] * rest, rate[2] * rest)
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
            return DEGENERATE_TRIANGLE
        crossings += 1
        if crossings > MAX_CROSSINGS:
            return TOO_MANY_CROSSINGS
        _recoil(sums, pushes, corner, v, mass, rate[1] * tau, rate[2] * tau)
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
        displacement(&world.box, x + 3 * <Py_ssize_t> corner_j, x + 3 * <Py_ssize_t> corner_k, E)
        displacement(&world.box, x + 3 * <Py_ssize_t> corner_j, x + 3 * <Py_ssize_t> corner[i], u)
        EE = dot(E, E)
        uE = dot(u, E)
        code = world.opposite[3 * <Py_ssize_t> face + (base + i) % 3]
        if code >= 0:
            face = code // 3
            base = code % 3
            corner[0] = world.faces[code]
            displacement(&world.box, x + 3 * <Py_ssize_t> corner_j, x + 3 * <Py_ssize_t> corner[0], u)
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
            reflected[0] += 1
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
        triangle[0] = face
        velocity[0] = v[0]
        velocity[1] = v[1]
        velocity[2] = v[2]
    crossed[0] = crossings
    # Corner c of the face has role (c - base) mod 3.
    weight[1] = moved[(4 - base) % 3]
    weight[2] = moved[(5 - base) % 3]
    # Kept: all three weights are >= 0 when the first is read as (1 - second) - third.
    if (1.0 - weight[1]) - weight[2] < 0.0:
        weight[1] = min(weight[1], 1.0)
        weight[2] = 1.0 - weight[1]
    barycentric[0] = weight[1]
    barycentric[1] = weight[2]
    return 0
