"""Free rotation of up to LANES bodies, one in each lane of a vector: by parts, or exactly; see letters/rotation.pyx.

What is in one lane changes no bit of another.
"""
from libc.math cimport sqrt

from medyanpy._kernels.core.elementary cimport sincos_, sincos_small
from medyanpy._kernels.core.quaternion cimport scale_to_unit

cdef enum:
    # Bodies that are turned together, one in each lane.
    LANES = 16
    # Highest order of the series of free rotation: enough for steps of 1/PIECES, in the unit of `_plan`.
    ORDER = 17
    PIECES = 8


cdef struct Bodies:
    double q[4][LANES]
    double spin[3][LANES]
    double rate[3][LANES]     # inverse inertia


cdef inline void _turn(Bodies* b, int k, double h, bint small) noexcept nogil:
    """All of them about their axis k for a time h; `small` where all angles are."""
    cdef int i = (k + 1) % 3
    cdef int j = (k + 2) % 3
    cdef double s[LANES]
    cdef double c[LANES]
    cdef double w, qk, qi, qj, a, sine, cosine
    cdef int lane
    if small:
        for lane in range(LANES):
            sincos_small(0.5 * h * b.rate[k][lane] * b.spin[k][lane], s + lane, c + lane)
    else:
        for lane in range(LANES):
            sincos_(0.5 * h * b.rate[k][lane] * b.spin[k][lane], s + lane, c + lane)
    for lane in range(LANES):
        w = b.q[0][lane]
        qk = b.q[k + 1][lane]
        qi = b.q[i + 1][lane]
        qj = b.q[j + 1][lane]
        b.q[0][lane] = c[lane] * w - s[lane] * qk
        b.q[k + 1][lane] = c[lane] * qk + s[lane] * w
        b.q[i + 1][lane] = c[lane] * qi + s[lane] * qj
        b.q[j + 1][lane] = c[lane] * qj - s[lane] * qi
        sine = 2.0 * s[lane] * c[lane]
        cosine = 1.0 - 2.0 * s[lane] * s[lane]
        a = b.spin[i][lane]
        b.spin[i][lane] = cosine * a + sine * b.spin[j][lane]
        b.spin[j][lane] = cosine * b.spin[j][lane] - sine * a


cdef inline void turn_by_parts(Bodies* b, double h, bint small) noexcept nogil:
    _turn(b, 0, 0.5 * h, small)
    _turn(b, 1, 0.5 * h, small)
    _turn(b, 2, h, small)
    _turn(b, 1, 0.5 * h, small)
    _turn(b, 0, 0.5 * h, small)


cdef inline double fastest(Bodies* b) noexcept nogil:
    """Square of a rate that no turn about an axis exceeds: turns leave the length of angular momenta."""
    cdef double largest = 0.0, square, rate
    cdef int lane
    for lane in range(LANES):
        rate = b.rate[0][lane] if b.rate[0][lane] > b.rate[1][lane] else b.rate[1][lane]
        rate = rate if rate > b.rate[2][lane] else b.rate[2][lane]
        square = b.spin[0][lane] * b.spin[0][lane] + b.spin[1][lane] * b.spin[1][lane]
        square = (square + b.spin[2][lane] * b.spin[2][lane]) * (rate * rate)
        # Of no number: that one, so that it is not taken for small.
        largest = largest if square <= largest else square
    return largest


cdef struct Series:
    double h[LANES]                     # of a piece
    double turn[LANES]                  # half the rate about the momentum, over its size
    double spin[ORDER + 1][3][LANES]
    double q[ORDER + 1][4][LANES]
    int pieces[LANES]
    int order[LANES]


cdef inline void _plan(Bodies* b, Series* s, double h) noexcept nogil:
    """Cut the flight of each body into pieces, each of which a series of its own order gives to 2^-53.

    With D the range of its inverse inertia, c the middle of it and u = h D |L| / 2 the coefficients of t^n in a piece
    of time 1 are at most |L| u^n and (-1/2 over n) u^n: |L x J L| <= D/2 |L|^2.
    """
    cdef double largest, least, size, u, power
    cdef int lane, order
    for lane in range(LANES):
        largest = b.rate[0][lane] if b.rate[0][lane] > b.rate[1][lane] else b.rate[1][lane]
        largest = largest if largest > b.rate[2][lane] else b.rate[2][lane]
        least = b.rate[0][lane] if b.rate[0][lane] < b.rate[1][lane] else b.rate[1][lane]
        least = least if least < b.rate[2][lane] else b.rate[2][lane]
        size = b.spin[0][lane] * b.spin[0][lane] + b.spin[1][lane] * b.spin[1][lane]
        size = sqrt(size + b.spin[2][lane] * b.spin[2][lane])
        s.turn[lane] = 0.25 * (largest + least)
        u = 0.5 * (largest - least) * size * (h if h >= 0.0 else -h)
        # Of more than 2^20, or not a number, the turn about the momentum is not a number either.
        s.pieces[lane] = 1 + (<int> (PIECES * u) if u <= 1048576.0 else 0)
        s.h[lane] = h / s.pieces[lane]
        u /= s.pieces[lane]
        order = 1
        power = u * u
        while order < ORDER and not power < 4e-16:
            power *= u
            order += 1
        s.order[lane] = order


cdef inline void _multiply(Bodies* b, double* w, double* x, double* y, double* z) noexcept nogil:
    """q <- q (w, x, y, z), of all of them."""
    cdef double q0, q1, q2, q3
    cdef int lane
    for lane in range(LANES):
        q0 = b.q[0][lane]
        q1 = b.q[1][lane]
        q2 = b.q[2][lane]
        q3 = b.q[3][lane]
        b.q[0][lane] = q0 * w[lane] - (q1 * x[lane] + q2 * y[lane] + q3 * z[lane])
        b.q[1][lane] = q0 * x[lane] + q1 * w[lane] + (q2 * z[lane] - q3 * y[lane])
        b.q[2][lane] = q0 * y[lane] + q2 * w[lane] + (q3 * x[lane] - q1 * z[lane])
        b.q[3][lane] = q0 * z[lane] + q3 * w[lane] + (q1 * y[lane] - q2 * x[lane])


cdef inline void _turn_about_momentum(Bodies* b, Series* s, double h) noexcept nogil:
    """By c h about L, which stays."""
    cdef double q[4][LANES]
    cdef double size, sine, cosine
    cdef int lane
    for lane in range(LANES):
        size = b.spin[0][lane] * b.spin[0][lane] + b.spin[1][lane] * b.spin[1][lane]
        size = sqrt(size + b.spin[2][lane] * b.spin[2][lane])
        sincos_(h * s.turn[lane] * size, &sine, &cosine)
        q[0][lane] = cosine
        sine = sine / (size if size > 0.0 else 1.0)
        q[1][lane] = sine * b.spin[0][lane]
        q[2][lane] = sine * b.spin[1][lane]
        q[3][lane] = sine * b.spin[2][lane]
    _multiply(b, q[0], q[1], q[2], q[3])


cdef inline void _fly(Bodies* b, Series* s, int highest) noexcept nogil:
    """One piece of the flight of all of them, seen from their turning frames: series up to the order `highest`, of
    which each takes its own."""
    cdef double x[LANES]
    cdef double y[LANES]
    cdef double z[LANES]
    cdef double w[4][LANES]
    cdef double q[4][LANES]
    cdef double c[3][LANES]
    cdef double d[3][LANES]
    cdef double i, j, k, scale, a0, a1, a2
    cdef int lane, n, m
    for lane in range(LANES):
        i = b.rate[0][lane] - 2.0 * s.turn[lane]
        j = b.rate[1][lane] - 2.0 * s.turn[lane]
        k = b.rate[2][lane] - 2.0 * s.turn[lane]
        c[0][lane] = 0.5 * s.h[lane] * i
        c[1][lane] = 0.5 * s.h[lane] * j
        c[2][lane] = 0.5 * s.h[lane] * k
        d[0][lane] = s.h[lane] * (b.rate[2][lane] - b.rate[1][lane])
        d[1][lane] = s.h[lane] * (b.rate[0][lane] - b.rate[2][lane])
        d[2][lane] = s.h[lane] * (b.rate[1][lane] - b.rate[0][lane])
        s.q[0][0][lane] = 1.0
        s.q[0][1][lane] = 0.0
        s.q[0][2][lane] = 0.0
        s.q[0][3][lane] = 0.0
    for m in range(3):
        for lane in range(LANES):
            s.spin[0][m][lane] = b.spin[m][lane]
    for n in range(highest):
        for lane in range(LANES):
            x[lane] = 0.0
            y[lane] = 0.0
            z[lane] = 0.0
            w[0][lane] = 0.0
            w[1][lane] = 0.0
            w[2][lane] = 0.0
            w[3][lane] = 0.0
        for m in range(n + 1):
            for lane in range(LANES):
                a0 = s.spin[n - m][0][lane]
                a1 = s.spin[n - m][1][lane]
                a2 = s.spin[n - m][2][lane]
                x[lane] += s.spin[m][1][lane] * a2
                y[lane] += s.spin[m][2][lane] * a0
                z[lane] += s.spin[m][0][lane] * a1
                a0 = c[0][lane] * a0
                a1 = c[1][lane] * a1
                a2 = c[2][lane] * a2
                w[0][lane] -= s.q[m][1][lane] * a0 + s.q[m][2][lane] * a1 + s.q[m][3][lane] * a2
                w[1][lane] += s.q[m][0][lane] * a0 + s.q[m][2][lane] * a2 - s.q[m][3][lane] * a1
                w[2][lane] += s.q[m][0][lane] * a1 + s.q[m][3][lane] * a0 - s.q[m][1][lane] * a2
                w[3][lane] += s.q[m][0][lane] * a2 + s.q[m][1][lane] * a1 - s.q[m][2][lane] * a0
        scale = 1.0 / (n + 1)
        for lane in range(LANES):
            s.spin[n + 1][0][lane] = scale * d[0][lane] * x[lane]
            s.spin[n + 1][1][lane] = scale * d[1][lane] * y[lane]
            s.spin[n + 1][2][lane] = scale * d[2][lane] * z[lane]
        for m in range(4):
            for lane in range(LANES):
                s.q[n + 1][m][lane] = scale * w[m][lane]
    # The smallest first. Coefficients beyond its own order would change the last bits of a body beside faster ones.
    for m in range(4):
        for lane in range(LANES):
            q[m][lane] = 0.0
        for n in range(highest, -1, -1):
            for lane in range(LANES):
                q[m][lane] += s.q[n][m][lane] if n <= s.order[lane] else 0.0
    for lane in range(LANES):
        scale = scale_to_unit(q[0][lane], q[1][lane], q[2][lane], q[3][lane])
        q[0][lane] *= scale
        q[1][lane] *= scale
        q[2][lane] *= scale
        q[3][lane] *= scale
    _multiply(b, q[0], q[1], q[2], q[3])
    # L turns back by what the frame has turned, so that R(q) L stays: L + 2 v x (v x L - q0 L) for q = (q0, v).
    for lane in range(LANES):
        a0 = q[2][lane] * b.spin[2][lane] - q[3][lane] * b.spin[1][lane] - q[0][lane] * b.spin[0][lane]
        a1 = q[3][lane] * b.spin[0][lane] - q[1][lane] * b.spin[2][lane] - q[0][lane] * b.spin[1][lane]
        a2 = q[1][lane] * b.spin[1][lane] - q[2][lane] * b.spin[0][lane] - q[0][lane] * b.spin[2][lane]
        b.spin[0][lane] += 2.0 * (q[2][lane] * a2 - q[3][lane] * a1)
        b.spin[1][lane] += 2.0 * (q[3][lane] * a0 - q[1][lane] * a2)
        b.spin[2][lane] += 2.0 * (q[1][lane] * a1 - q[2][lane] * a0)


cdef inline void turn_exactly(Bodies* b, double h) noexcept nogil:
    """Free rotation of all of them for a time h, to rounding."""
    cdef Series s
    cdef int piece, pieces, order, lane
    _plan(b, &s, h)
    _turn_about_momentum(b, &s, h)
    pieces = 0
    for lane in range(LANES):
        pieces = max(pieces, s.pieces[lane])
    for piece in range(pieces):
        order = 0
        for lane in range(LANES):
            if piece == s.pieces[lane]:
                # Those that have arrived stay, to the last bit.
                s.h[lane] = 0.0
                s.order[lane] = 0
            order = max(order, s.order[lane])
        _fly(b, &s, order)


cdef inline void turn_freely(Bodies* b, double h, int parts) noexcept nogil:
    """Free rotation of all of them, `parts` times for a time h each; with none, exactly, for a time h."""
    cdef bint small
    cdef int _
    if parts == 0:
        turn_exactly(b, h)
    # Half angles up to 0.78, where sincos_small serves; the same bits either way.
    small = 0.25 * h * h * fastest(b) <= 0.78 * 0.78
    for _ in range(parts):
        if small:
            turn_by_parts(b, h, True)
        else:
            turn_by_parts(b, h, False)
