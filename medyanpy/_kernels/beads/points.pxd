"""In-triangle points: the frame of the triangle under a point, and the rows of x that follow from it."""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.box cimport Box, displacement, nearest_whole
from medyanpy._kernels.core.program cimport Operation, World
from medyanpy._kernels.core.vec3 cimport cross, dot


cdef struct Frame:
    double e1[3]      # edges from the first corner: the columns of A
    double e2[3]
    double n[3]       # e1 x e2, not normalised
    double nn         # |n|^2 = det(A^T A)


cdef inline void frame_of(const Box* box, const double* x, const int32_t* corners, Frame* out) noexcept nogil:
    cdef const double* origin = x + 3 * <Py_ssize_t> corners[0]
    displacement(box, origin, x + 3 * <Py_ssize_t> corners[1], out.e1)
    displacement(box, origin, x + 3 * <Py_ssize_t> corners[2], out.e2)
    cross(out.e1, out.e2, out.n)
    # From the cross product, not as ac - b^2: that would cancel in needle triangles.
    out.nn = dot(out.n, out.n)


cdef inline void project(const Frame* frame, double* u) noexcept nogil:
    """Take from u what is normal to the triangle. One without area has no normal: nothing is taken."""
    cdef double s = dot(frame.n, u) / frame.nn if frame.nn > 0.0 else 0.0
    u[0] -= s * frame.n[0]
    u[1] -= s * frame.n[1]
    u[2] -= s * frame.n[2]


cdef inline void with_rates(const Frame* frame, double a, double b, double* f) noexcept nogil:
    """f in the plane of the triangle, with f.e1 = a and f.e2 = b: A G^-1 (a, b) = (a e2 x n + b n x e1)/n.n. 0 without
    area."""
    cdef double u[3]
    cdef double w[3]
    cdef double inverse = 1.0 / frame.nn if frame.nn > 0.0 else 0.0
    cdef int c
    cross(frame.e2, frame.n, u)
    cross(frame.n, frame.e1, w)
    for c in range(3):
        f[c] = inverse * (a * u[c] + b * w[c])


cdef inline void place_one(World* world, Py_ssize_t p) noexcept nogil:
    """Derive x of one in-triangle point; in a periodic box, of the image that it has been at."""
    cdef const int32_t* corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
    cdef const double* origin = world.x + 3 * <Py_ssize_t> corners[0]
    cdef double* out = world.x + 3 * (world.n_cartesian + p)
    cdef double e1[3]
    cdef double e2[3]
    cdef double l2 = world.barycentric[2 * p]
    cdef double l3 = world.barycentric[2 * p + 1]
    cdef double x
    cdef int c
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> corners[1], e1)
    displacement(&world.box, origin, world.x + 3 * <Py_ssize_t> corners[2], e2)
    for c in range(3):
        x = origin[c] + (l2 * e1[c] + l3 * e2[c])
        if world.box.periodic:
            # The first corner is one of many images, and another one in the next triangle.
            x += world.box.length[c] * nearest_whole((out[c] - x) * world.box.inverse[c])
        out[c] = x


cdef int place(World* world) noexcept nogil
