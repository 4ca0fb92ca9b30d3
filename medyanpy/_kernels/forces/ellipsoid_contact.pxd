"""How much an ellipsoid and a point, segment or triangle with a thickness have to grow until they touch.

In the frame of the ellipsoid, with its centre at 0 and A = diag(a^2), a place p at the thickness R has

    mu(p) = max over unit n of  n.p / (h(n) + R),    h(n) = sqrt(n.A n)

a norm whose unit ball is the ellipsoid swept by a sphere of radius R: the contact function of Perram and Wertheim for
an ellipsoid and a sphere. Of a shape it is the least mu(p) of its places p: a convex function over a convex set. At
the maximum

    p ~ (A + h R) n,    so that with y = (A + u R)^-1 p,    n = y/|y|,    u = h(n)

What is looked for is u, which is between the least and the largest semi-axis. For any u the place of a segment where
p.(A + u R)^-1 p is least is known, and

    u >= h(n(u)) from the largest semi-axis down to the root, u <= h(n(u)) before it

since F(u) = u/(R + u) p.y, maximised over u and minimised over p, is concave in u/(R + u) for any p, and so is its
least value over p. Newton's method for u = h(n(u)) within these bounds. Where the place is inside a triangle, n is the
normal of the triangle, and nothing is to be looked for.

    dmu/dp = n / (h + R),    dmu/d(turn of the ellipsoid) = -mu / (h (h + R)) A n x n

In a force, p may be taken to be where it is in the shape: moving it along the shape does not change mu to first order.
"""
from libc.math cimport INFINITY, sqrt

from medyanpy._kernels.core.vec3 cimport cross, dot

cdef enum:
    # More than bisection needs.
    MOST_STEPS = 64


cdef struct Ellipsoid:
    double square[3]          # of the semi-axes
    double least
    double most


cdef struct Touch:
    double mu
    double n[3]               # from the ellipsoid to the shape, of length 1; 0 where there is no direction
    double reach              # h + R
    double size               # p = size (A + h R) n
    double w[3]               # weights of the corners of the shape, sum 1


cdef inline double half_width(const Ellipsoid* a, const double* n) noexcept nogil:
    """|n| times how far the ellipsoid reaches along n."""
    return sqrt(a.square[0] * n[0] * n[0] + a.square[1] * n[1] * n[1] + a.square[2] * n[2] * n[2])


cdef inline void touch_segment(
    const Ellipsoid* a, double R, double u, const double* v, const double* e, Touch* out,
) noexcept nogil:
    """The segment from v to v + e, which may have no length; u is a guess."""
    cdef double y[3]
    cdef double inverse[3]
    cdef double low = a.least, high = a.most
    cdef double t, turn, ee, ve, yy, ay, g, slope, yd, ayd, ey, new, d
    cdef bint last = False
    cdef int c, _step
    if not (u >= low and u <= high):
        u = high
    for _step in range(MOST_STEPS):
        ee = ve = 0.0
        for c in range(3):
            inverse[c] = 1.0 / (a.square[c] + R * u)
            ee += e[c] * e[c] * inverse[c]
            ve -= v[c] * e[c] * inverse[c]
        t = 0.0
        if ve > 0.0:
            t = ve / ee if ve < ee else 1.0
        yy = ay = 0.0
        for c in range(3):
            y[c] = (v[c] + t * e[c]) * inverse[c]
            yy += y[c] * y[c]
            ay += a.square[c] * y[c] * y[c]
        # This way round, so that what is not a number is done.
        if last or not yy > 0.0:
            break
        g = sqrt(ay / yy)
        if g > u:
            low = u
        else:
            high = u
        turn = 0.0
        if t > 0.0 and t < 1.0:
            # The place moves, too.
            ey = 0.0
            for c in range(3):
                ey += e[c] * y[c] * inverse[c]
            turn = R * ey / ee
        yd = ayd = 0.0
        for c in range(3):
            d = (turn * e[c] - R * y[c]) * inverse[c]
            yd += y[c] * d
            ayd += a.square[c] * y[c] * d
        slope = (ayd - g * g * yd) / (g * yy)
        new = u - (u - g) / (1.0 - slope)
        if not (new >= low and new <= high):
            new = 0.5 * (low + high)
        d = new - u if new > u else u - new
        # The square of a last step is below rounding.
        last = d <= 1e-8 * u
        u = new
    out.w[0] = 1.0 - t
    out.w[1] = t
    out.w[2] = 0.0
    if not yy > 0.0:
        # Its centre is on the segment; or something is not a number.
        out.mu = yy
        out.n[0] = out.n[1] = out.n[2] = out.size = 0.0
        out.reach = 1.0
        return
    out.size = sqrt(yy)
    ay = 0.0
    for c in range(3):
        out.n[c] = y[c] / out.size
        ay += (v[c] + t * e[c]) * out.n[c]
    out.reach = half_width(a, out.n) + R
    out.mu = ay / out.reach


cdef inline void touch_triangle(
    const Ellipsoid* a, double R, double u, const double* v, const double* p, const double* q, Touch* out,
) noexcept nogil:
    """The triangle with the corners v, v + p and v + q; u is a guess."""
    cdef double n[3]
    cdef double d[3]
    cdef double m[3]
    cdef double h, nn, along, weight, s = 0.0, t = 0.0
    cdef Touch edge
    cdef int c
    cross(p, q, n)
    nn = dot(n, n)
    if nn > 0.0:
        h = half_width(a, n) / sqrt(nn)
        along = dot(n, v)
        weight = 0.0
        for c in range(3):
            d[c] = (a.square[c] + h * R) * n[c]
            weight += d[c] * n[c]
        # Where its plane is touched, seen from the first corner.
        for c in range(3):
            d[c] = along / weight * d[c] - v[c]
        cross(d, q, m)
        s = dot(m, n)
        cross(p, d, m)
        t = dot(m, n)
        if s > 0.0 and t > 0.0 and s + t < nn:
            s /= nn
            t /= nn
            weight = 1.0 / sqrt(nn) if along >= 0.0 else -1.0 / sqrt(nn)
            for c in range(3):
                out.n[c] = weight * n[c]
            out.reach = h + R
            out.mu = weight * along / out.reach
            out.size = out.mu / h
            out.w[0], out.w[1], out.w[2] = 1.0 - s - t, s, t
            return
    # On a side that the place in the plane is beyond. A triangle without area has three.
    out.mu = INFINITY
    if not t > 0.0:
        touch_segment(a, R, u, v, p, out)
    if not s > 0.0:
        touch_segment(a, R, u, v, q, &edge)
        if not edge.mu >= out.mu:
            out[0] = edge
            out.w[1], out.w[2] = 0.0, edge.w[1]
    if not s + t < nn:
        for c in range(3):
            d[c] = v[c] + p[c]
            m[c] = q[c] - p[c]
        touch_segment(a, R, u, d, m, &edge)
        if not edge.mu >= out.mu:
            out[0] = edge
            out.w[0], out.w[1], out.w[2] = 0.0, edge.w[0], edge.w[1]
