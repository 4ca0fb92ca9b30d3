"""The closest points of points, segments and triangles, from the displacements between their corners.

Each function looks for the place inside the shapes where their lines or planes come closest and, where there is none,
for the nearest place of their borders: right for degenerate shapes too, for then the borders are all there is. For the
cases, see C. Ericson, Real-Time Collision Detection (2005), chapter 5.1.
"""
from libc.math cimport INFINITY

from medyanpy._kernels.core.vec3 cimport cross, dot


cdef struct Closest:
    double rr                 # square of the distance
    double d[3]               # from the first shape towards the second; its length is not the distance, and 0 where
    double dd                 # there is no direction; dd = d · d
    double a[3]               # weights of the corners of the first shape, sum 1
    double b[3]


cdef inline double along(const double* w, const double* e) noexcept nogil:
    """Where the point of the segment from 0 to e that is closest to w lies: from 0 to 1."""
    cdef double we = dot(w, e)
    cdef double ee = dot(e, e)
    # Also where e = 0.
    if not we > 0.0:
        return 0.0
    return we / ee if we < ee else 1.0


cdef inline void _between(
    const double* r, double s, const double* p, double t, const double* q, Closest* c,
) noexcept nogil:
    """r - s p + t q as what leads from one shape to the other."""
    cdef int k
    for k in range(3):
        c.d[k] = r[k] - s * p[k] + t * q[k]
    c.rr = c.dd = dot(c.d, c.d)


cdef inline void _perpendicular(const double* n, double nn, Closest* c) noexcept nogil:
    """d along n or against it: to rounding the direction that it has, and one even where the distance is 0."""
    cdef double side = 1.0 if dot(c.d, n) >= 0.0 else -1.0
    cdef int k
    for k in range(3):
        c.d[k] = side * n[k]
    c.dd = nn


cdef inline void point_to_segment(const double* r, const double* q, Closest* c) noexcept nogil:
    """From the point 0 to the segment from r to r + q."""
    cdef double minus[3]
    cdef double t
    minus[0], minus[1], minus[2] = -r[0], -r[1], -r[2]
    t = along(minus, q)
    _between(r, 0.0, q, t, q, c)
    c.a[0] = 1.0
    c.b[0], c.b[1] = 1.0 - t, t


cdef inline void point_to_triangle(const double* r, const double* p, const double* q, Closest* c) noexcept nogil:
    """From the point 0 to the triangle with the corners r, r + p, r + q; along its normal p x q where that is to its
    inside."""
    cdef double n[3]
    cdef double m[3]
    cdef double corner[3]
    cdef double side[3]
    cdef double nn, s, t
    cdef Closest edge
    cdef int k
    c.a[0] = 1.0
    # Weights of the foot of the perpendicular, times |n|².
    cross(p, q, n)
    nn = dot(n, n)
    cross(q, r, m)
    s = dot(m, n)
    cross(r, p, m)
    t = dot(m, n)
    if s > 0.0 and t > 0.0 and s + t < nn:
        s /= nn
        t /= nn
        _between(r, -s, p, t, q, c)
        _perpendicular(n, nn, c)
        c.b[0], c.b[1], c.b[2] = 1.0 - s - t, s, t
        return
    # What is beyond one side alone is closest to that side. A triangle without area has three.
    c.rr = INFINITY
    if not t > 0.0:
        point_to_segment(r, p, c)
        c.b[2] = 0.0
    if not s > 0.0:
        point_to_segment(r, q, &edge)
        if edge.rr < c.rr:
            c[0] = edge
            c.b[2], c.b[1] = edge.b[1], 0.0
    if not s + t < nn:
        for k in range(3):
            corner[k] = r[k] + p[k]
            side[k] = q[k] - p[k]
        point_to_segment(corner, side, &edge)
        if edge.rr < c.rr:
            c[0] = edge
            c.b[2], c.b[1], c.b[0] = edge.b[1], edge.b[0], 0.0


cdef inline void segment_to_segment(
    const double* r, const double* p, const double* q, const double* n, Closest* five,
) noexcept nogil:
    """From the segment from 0 to p to the one from r to r + q, with n = p x q.

    five[0] and five[1]: from the two ends of the first; five[2] and five[3]: to the two ends of the second; five[4]:
    between the closest points of all, along n where it is at the end of neither.
    """
    cdef double end[3]
    cdef double nn, s, t
    cdef Closest inside
    cdef Closest* c = five + 4
    cdef int k
    for k in range(3):
        end[k] = r[k] - p[k]
    point_to_segment(r, q, five)
    five[0].a[1] = 0.0
    point_to_segment(end, q, five + 1)
    five[1].a[0], five[1].a[1] = 0.0, 1.0
    s = along(r, p)
    _between(r, s, p, 0.0, q, five + 2)
    five[2].a[0], five[2].a[1], five[2].b[0], five[2].b[1] = 1.0 - s, s, 1.0, 0.0
    for k in range(3):
        end[k] = r[k] + q[k]
    s = along(end, p)
    _between(end, s, p, 0.0, q, five + 3)
    five[3].a[0], five[3].a[1], five[3].b[0], five[3].b[1] = 1.0 - s, s, 0.0, 1.0
    c[0] = five[0]
    for k in range(1, 4):
        if five[k].rr < c.rr:
            c[0] = five[k]
    # Inside both: r + t q - s p is along n.
    nn = dot(n, n)
    cross(r, q, end)
    s = dot(end, n)
    cross(r, p, end)
    t = dot(end, n)
    if not (0.0 < s < nn and 0.0 < t < nn):
        return
    s /= nn
    t /= nn
    _between(r, s, p, t, q, &inside)
    # Almost parallel, s and t are rounded to anything; then it is no closer than the ends are.
    if inside.rr < c.rr:
        c[0] = inside
        _perpendicular(n, nn, c)
        c.a[0], c.a[1], c.b[0], c.b[1] = 1.0 - s, s, 1.0 - t, t
