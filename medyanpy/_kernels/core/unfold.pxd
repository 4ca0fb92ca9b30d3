"""Triangles laid out in a plane, one after the other, as straight lines cross them.

On a polyhedron a straight line goes on straight in the unfolded plane: through an edge into the next triangle, which is
laid out beside the one before; at a border into the mirror image of the same triangle, which is how points reflect.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.beads.points cimport Frame, frame_of
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.vec3 cimport cross, dot


# A face in the plane: corner c of it is at (x[c], y[c]).
cdef struct Flat:
    int32_t face
    double x[3]
    double y[3]


cdef inline void axes_of(const Frame* frame, double* ex, double* ey) noexcept nogil:
    """Two unit vectors in the plane of a triangle."""
    cdef double a = 1.0 / sqrt(dot(frame.e1, frame.e1))
    cdef double b = 1.0 / sqrt(frame.nn)
    cdef double n[3]
    cdef int c
    for c in range(3):
        ex[c] = a * frame.e1[c]
        n[c] = b * frame.n[c]
    cross(n, ex, ey)


cdef inline void lay_out(const World* world, int32_t face, double second, double third, Flat* out) noexcept nogil:
    """A face whose point with these weights is the origin."""
    cdef Frame frame
    cdef double a, x, y
    frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> face, &frame)
    a = sqrt(dot(frame.e1, frame.e1))
    x = dot(frame.e1, frame.e2) / a
    y = sqrt(frame.nn) / a
    out.face = face
    out.x[0] = -(second * a + third * x)
    out.y[0] = -third * y
    out.x[1] = out.x[0] + a
    out.y[1] = out.y[0]
    out.x[2] = out.x[0] + x
    out.y[2] = out.y[0] + y


cdef inline int go_across(const World* world, const Flat* flat, int i, Flat* out) noexcept nogil:
    """The face beyond the edge opposite corner i: returns which corner of it is not on that edge."""
    cdef int j = (i + 1) % 3, k = (i + 2) % 3, apex
    cdef int32_t code = world.opposite[3 * <Py_ssize_t> flat.face + i]
    cdef const int32_t* corners = world.faces + 3 * <Py_ssize_t> flat.face
    cdef const double* origin = world.x + 3 * <Py_ssize_t> corners[j]
    cdef double e[3]
    cdef double u[3]
    cdef double a[3]
    cdef double ee, along, beside, x = flat.x[k] - flat.x[j], y = flat.y[k] - flat.y[j]
    cdef double side = x * (flat.y[i] - flat.y[j]) - y * (flat.x[i] - flat.x[j])
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> corners[k], e)
    apex = i if code < 0 else code % 3
    out.face = flat.face if code < 0 else code // 3
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> out.face + apex], u)
    ee = dot(e, e)
    along = dot(u, e) / ee
    cross(e, u, a)
    beside = sqrt(dot(a, a)) / ee
    if side > 0.0:
        beside = -beside
    out.x[apex] = flat.x[j] + along * x - beside * y
    out.y[apex] = flat.y[j] + along * y + beside * x
    if code < 0:
        out.x[j] = flat.x[j]
        out.y[j] = flat.y[j]
        out.x[k] = flat.x[k]
        out.y[k] = flat.y[k]
    else:
        # The neighbour runs along the edge the other way round.
        out.x[(apex + 1) % 3] = flat.x[k]
        out.y[(apex + 1) % 3] = flat.y[k]
        out.x[(apex + 2) % 3] = flat.x[j]
        out.y[(apex + 2) % 3] = flat.y[j]
    return apex


cdef inline void weights_at(const Flat* flat, double x, double y, double* second, double* third) noexcept nogil:
    """Weights of the corners of a place in a face, within it to rounding: all three are >= 0 when the first is read as
    (1 - second) - third."""
    cdef double ax = flat.x[1] - flat.x[0], ay = flat.y[1] - flat.y[0]
    cdef double bx = flat.x[2] - flat.x[0], by = flat.y[2] - flat.y[0]
    cdef double area = ax * by - ay * bx
    cdef double a, b
    x -= flat.x[0]
    y -= flat.y[0]
    a = min(max((x * by - y * bx) / area, 0.0), 1.0)
    b = min(max((ax * y - ay * x) / area, 0.0), 1.0)
    if (1.0 - a) - b < 0.0:
        b = 1.0 - a
    second[0] = a
    third[0] = b


cdef inline int fly_straight(
    const World* world, int32_t* face, double* weights, double x, double y, int most,
) noexcept nogil:
    """Move a point, of a face and the weights of its second and third corner, by (x, y) in the plane of `lay_out`:
    tells whether it took at most so many crossings."""
    cdef Flat flat, next
    cdef int came = -1, i, j, k, leaves
    cdef double side, d
    lay_out(world, face[0], weights[0], weights[1], &flat)
    while most > 0:
        most -= 1
        leaves = -1
        for i in range(3):
            if i == came:
                continue
            j = (i + 1) % 3
            k = (i + 2) % 3
            # The target is beyond this edge, and the line goes through it.
            d = (flat.x[k] - flat.x[j]) * (flat.y[i] - flat.y[j]) - (flat.y[k] - flat.y[j]) * (flat.x[i] - flat.x[j])
            side = (flat.x[k] - flat.x[j]) * (y - flat.y[j]) - (flat.y[k] - flat.y[j]) * (x - flat.x[j])
            if (side < 0.0) == (d < 0.0) or side == 0.0:
                continue
            if (flat.x[j] * y - flat.y[j] * x < 0.0) != (flat.x[k] * y - flat.y[k] * x < 0.0) or leaves < 0:
                leaves = i
        if leaves < 0:
            face[0] = flat.face
            weights_at(&flat, x, y, weights, weights + 1)
            return True
        came = go_across(world, &flat, leaves, &next)
        # The edge that it came through is opposite the corner that is new.
        flat = next
    return False
