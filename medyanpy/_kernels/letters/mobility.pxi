# Velocities of spheres by forces and torques on all of them: sums over pairs, nothing stored. Included by
# hydrodynamics.pyx.
#
# In units of 1/8 pi eta, with d from the second sphere to the first and (...)* where spheres overlap, by
# mean_distances.pxi:
#     v_i = (1/r + c/r^3) F + (1/r^3 - 3c/r^5) d (d . F) + T x d / r^3,     c = (a_i^2 + a_j^2) / 3
#     w_i = F x d / r^3 + (3 d (d . T) / r^5 - T / r^3) / 2
# Above a wall (images.pxi) everything is in its frame: the third axis points into the fluid, places are heights. In a
# periodic box (lattice.pxi) pairs of images within range take the place of all pairs, and waves do the rest.

cdef enum:
    # Spheres whose velocities are summed together, one in each lane: vectors as wide as any instruction set has.
    TARGETS = 16
    # Where a sphere's own numbers are in those of its row: forces and torques, or velocities and angular velocities.
    FORCE = 0
    TORQUE = 3


# What one sphere does to another that overlaps it, or is within range of it:
# v = tt F + (tt_d) d (d . F) + tr T x d, w = rt F x d + rr T + ...
cdef struct Near:
    Py_ssize_t other
    double d[3]
    double tt, tt_d, tr, rt, rr, rr_d


cdef struct Spheres:
    Py_ssize_t n              # spheres; the first n_turning of them also turn
    Py_ssize_t n_turning
    Py_ssize_t stride         # n, up to whole blocks of TARGETS
    int walled
    int lattice               # whether they are in a periodic box
    double accuracy           # of the sums over their images, relative to the mobility of a sphere
    double chosen             # the splitting, 1/nm; 0: that of `_split`
    double splitting, range, cutoff
    Waves waves
    double scale              # 1 / 8 pi eta
    double* radius            # (stride,)
    double* x                 # (3, stride)
    double* f                 # (2, 6, stride): of two loads
    double* u                 # (2, 6, stride): the motions of each
    Near* near                # pairs that overlap or are in range, by the first; made for where spheres are
    Py_ssize_t n_near, room
    Py_ssize_t* begin         # (n + 1,) where those of a sphere begin


# Of a block of spheres.
cdef struct Targets:
    double x[3][TARGETS]
    double a[TARGETS]
    double u[2][6][TARGETS]


include "images.pxi"


cdef void _set_near(Spheres* c, Py_ssize_t i, Py_ssize_t j, const double* d, Near* p) noexcept nogil:
    cdef double h[DERIVATIVES]
    cdef double ai = c.radius[i], aj = c.radius[j]
    cdef double r2 = dot(d, d), r = sqrt(r2)
    cdef int k
    p.other = j
    for k in range(3):
        p.d[k] = d[k]
    _mean_distance(SURFACE_SURFACE, r, ai, aj, h)
    p.tt = 2.0 * h[0] + r2 * h[1]
    p.tt_d = -h[1]
    p.tr = p.rt = p.rr = p.rr_d = 0.0
    if c.n_turning == 0:
        return
    _mean_distance(BALL_SURFACE, r, aj, ai, h)
    p.tr = -0.5 * (5.0 * h[1] + r2 * h[2])
    _mean_distance(BALL_SURFACE, r, ai, aj, h)
    p.rt = -0.5 * (5.0 * h[1] + r2 * h[2])
    _mean_distance(BALL_BALL, r, ai, aj, h)
    p.rr_d = 0.25 * (7.0 * h[2] + r2 * h[3])
    p.rr = -0.5 * (5.0 * h[1] + r2 * h[2]) - p.rr_d * r2


cdef bint _add_room(Spheres* c) noexcept nogil:
    """Room for one more pair. False: there is no memory."""
    cdef Py_ssize_t room
    cdef void* more
    if c.n_near == c.room:
        room = 64 + 2 * c.room
        more = realloc(c.near, room * sizeof(Near))
        if more == NULL:
            return False
        c.near = <Near*> more
        c.room = room
    return True


cdef int _find_near(Spheres* c) noexcept nogil:
    """Which spheres overlap, and what they do to each other. 0, or OUT_OF_MEMORY."""
    cdef double a[TARGETS]
    cdef double x[3][TARGETS]
    cdef double d[3]
    cdef double dx, dy, dz, s
    cdef Py_ssize_t first, i, j
    cdef long long any_near
    cdef int lane, k
    c.n_near = 0
    for i in range(c.n):
        c.begin[i] = c.n_near
        # All others at a time, TARGETS in a row; those that fill the last block are where the last one is.
        first = 0
        while first < c.n:
            for lane in range(TARGETS):
                dx = c.x[i] - c.x[first + lane]
                dy = c.x[c.stride + i] - c.x[c.stride + first + lane]
                dz = c.x[2 * c.stride + i] - c.x[2 * c.stride + first + lane]
                s = c.radius[i] + c.radius[first + lane]
                a[lane] = dx * dx + dy * dy + dz * dz - s * s
            any_near = 0
            for lane in range(TARGETS):
                any_near |= a[lane] < 0.0
            if any_near:
                for lane in range(<int> min(<Py_ssize_t> TARGETS, c.n - first)):
                    j = first + lane
                    for k in range(3):
                        d[k] = c.x[k * c.stride + i] - c.x[k * c.stride + j]
                    s = c.radius[i] + c.radius[j]
                    if j == i or not dot(d, d) < s * s:
                        continue
                    if not _add_room(c):
                        return OUT_OF_MEMORY
                    _set_near(c, i, j, d, c.near + c.n_near)
                    c.n_near += 1
            first += TARGETS
    c.begin[c.n] = c.n_near
    return 0


cdef inline void _add_near(Spheres* c, Targets* b, Py_ssize_t first, int loads, bint turn) noexcept nogil:
    """Of spheres near those of a block from `first` on."""
    cdef double f[3]
    cdef double t[3]
    cdef double fd[3]
    cdef double td[3]
    cdef const Near* p
    cdef double along, around
    cdef Py_ssize_t i, m, j
    cdef int k, load
    for i in range(first, min(first + TARGETS, c.n)):
        for m in range(c.begin[i], c.begin[i + 1]):
            p = c.near + m
            j = p.other
            for load in range(loads):
                for k in range(3):
                    f[k] = c.f[(6 * load + k) * c.stride + j]
                along = p.tt_d * dot(p.d, f)
                if not turn:
                    for k in range(3):
                        b.u[load][k][i - first] += p.tt * f[k] + along * p.d[k]
                    continue
                for k in range(3):
                    t[k] = c.f[(6 * load + TORQUE + k) * c.stride + j]
                cross(f, p.d, fd)
                cross(t, p.d, td)
                around = p.rr_d * dot(p.d, t)
                for k in range(3):
                    b.u[load][k][i - first] += p.tt * f[k] + along * p.d[k] + p.tr * td[k]
                    b.u[load][TORQUE + k][i - first] += p.rt * fd[k] + p.rr * t[k] + around * p.d[k]


cdef inline void _add_pairs(
    Spheres* c, Targets* b, Py_ssize_t begin, Py_ssize_t end, int loads, bint sources_turn, bint targets_turn,
) noexcept nogil:
    """Of spheres `begin` to `end` on those of a block."""
    cdef double sx, sy, sz, sa, dx, dy, dz, r2, s, q, i1, i2, i3, i5, third, alpha, beta, along, turn
    cdef double f[2][6]
    cdef Py_ssize_t j
    cdef int lane, load, k
    for j in range(begin, end):
        sx, sy, sz = c.x[j], c.x[c.stride + j], c.x[2 * c.stride + j]
        sa = c.radius[j]
        for load in range(loads):
            for k in range(6 if sources_turn else 3):
                f[load][k] = c.f[(6 * load + k) * c.stride + j]
        for lane in range(TARGETS):
            dx = b.x[0][lane] - sx
            dy = b.x[1][lane] - sy
            dz = b.x[2][lane] - sz
            r2 = dx * dx + dy * dy + dz * dz
            s = b.a[lane] + sa
            # Of those that overlap, nothing: they follow by themselves.
            q = r2 if r2 >= s * s else 1.0
            i1 = inverse_root(q)
            i1 = i1 if r2 >= s * s else 0.0
            i2 = i1 * i1
            i3 = i1 * i2
            i5 = i3 * i2
            third = (b.a[lane] * b.a[lane] + sa * sa) * (1.0 / 3.0)
            alpha = i1 + third * i3
            beta = i3 - 3.0 * third * i5
            for load in range(loads):
                along = beta * (dx * f[load][0] + dy * f[load][1] + dz * f[load][2])
                b.u[load][0][lane] += alpha * f[load][0] + along * dx
                b.u[load][1][lane] += alpha * f[load][1] + along * dy
                b.u[load][2][lane] += alpha * f[load][2] + along * dz
                if sources_turn:
                    b.u[load][0][lane] += i3 * (f[load][4] * dz - f[load][5] * dy)
                    b.u[load][1][lane] += i3 * (f[load][5] * dx - f[load][3] * dz)
                    b.u[load][2][lane] += i3 * (f[load][3] * dy - f[load][4] * dx)
                if targets_turn:
                    b.u[load][3][lane] += i3 * (f[load][1] * dz - f[load][2] * dy)
                    b.u[load][4][lane] += i3 * (f[load][2] * dx - f[load][0] * dz)
                    b.u[load][5][lane] += i3 * (f[load][0] * dy - f[load][1] * dx)
                if sources_turn and targets_turn:
                    turn = 1.5 * i5 * (dx * f[load][3] + dy * f[load][4] + dz * f[load][5])
                    b.u[load][3][lane] += turn * dx - 0.5 * i3 * f[load][3]
                    b.u[load][4][lane] += turn * dy - 0.5 * i3 * f[load][4]
                    b.u[load][5][lane] += turn * dz - 0.5 * i3 * f[load][5]


cdef struct SumTask:
    Spheres* spheres
    int loads


cdef int place_spheres(World* world, Spheres* c) noexcept nogil:
    """Find which spheres are near each other: they are elsewhere than before. 0, or a fault."""
    c.lattice = world.box.periodic
    return find_images(world, c) if c.lattice else _find_near(c)


cdef int _pairs(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef SumTask* t = <SumTask*> task
    cdef Spheres* c = t.spheres
    cdef Targets b
    cdef Py_ssize_t start, i
    cdef int k, load, lane
    start = first
    while start < last:
        for lane in range(TARGETS):
            i = start + lane
            for k in range(3):
                b.x[k][lane] = c.x[k * c.stride + i]
            b.a[lane] = c.radius[i]
            for load in range(2):
                for k in range(6):
                    b.u[load][k][lane] = 0.0
        # One function for each case: the compiler writes out the short loops, and leaves out what is not there.
        if c.lattice:
            _add_waves(c, &b, start, t.loads)
        elif start < c.n_turning:
            if t.loads == 2:
                _add_pairs(c, &b, 0, c.n_turning, 2, True, True)
                _add_pairs(c, &b, c.n_turning, c.n, 2, False, True)
            else:
                _add_pairs(c, &b, 0, c.n_turning, 1, True, True)
                _add_pairs(c, &b, c.n_turning, c.n, 1, False, True)
        elif t.loads == 2:
            _add_pairs(c, &b, 0, c.n_turning, 2, True, False)
            _add_pairs(c, &b, c.n_turning, c.n, 2, False, False)
        else:
            _add_pairs(c, &b, 0, c.n_turning, 1, True, False)
            _add_pairs(c, &b, c.n_turning, c.n, 1, False, False)
        if c.n_near > 0 and c.n_turning > 0:
            _add_near(c, &b, start, t.loads, True)
        elif c.n_near > 0:
            _add_near(c, &b, start, t.loads, False)
        if c.walled:
            _add_images(c, &b, t.loads)
        for load in range(t.loads):
            for k in range(6 if start < c.n_turning else 3):
                for lane in range(TARGETS):
                    c.u[(6 * load + k) * c.stride + start + lane] = c.scale * b.u[load][k][lane]
        start += TARGETS
    return 0


cdef int add_up_pairs(World* world, Spheres* c, int loads) noexcept nogil:
    """The motions u by the forces and torques f of `loads` loads, 1 or 2, but for those of each sphere by its own;
    which spheres are near each other has been found."""
    cdef SumTask task
    # About ten microseconds of work.
    cdef Py_ssize_t blocks = 1 + 4096 // (TARGETS * (c.n + 1))
    task.spheres = c
    task.loads = loads
    if c.lattice:
        over_blocks(_wave_rows, &task, world, c.waves.n_rows, 1 + 1024 // (c.n + 1))
    return over_blocks(_pairs, &task, world, c.stride, TARGETS * blocks)
