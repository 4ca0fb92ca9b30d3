# Spheres and all their images in a periodic box: Ewald's sum of the tensor of Rotne and Prager. Included by
# hydrodynamics.pyx.
#
# In units of 1/8 pi eta a point force has the flow (laplacian - grad grad) g F with g = r, of which waves take the part
#     -8 pi / k^4 (1 + k^2/4 s^2) exp(-k^2/4 s^2)        (Hasimoto; s is the splitting),
# and pairs of images what is left, g = r erfc(s r) - exp(-s^2 r^2)/(s sqrt(pi)), up to a range. A sphere of radius a
# feels and makes flows averaged by 1 + a^2/6 laplacian, in waves 1 - a^2 k^2/6: as tensors of spheres that are apart
# say. A torque is half a curl. Pairs that overlap have the difference to their own tensor besides.
#
# The average velocity of the whole box, beads and fluid, is 0: no wave has k = 0. Derived in
# docs/theory/lattice_sums.md.

cdef enum:
    # At most about so many pairs are kept, by a larger share of waves: 80 bytes each.
    MOST_PAIRS = 10000000
    # Points whose phases of a row are kept while its waves are summed.
    CHUNK = 256
    # Terms of the power series of what waves do to near pairs.
    TERMS = 34
    # Derivatives of g, (1/r d/dr)^n for n = 1 to 6.
    SLOPES = 6


cdef inline void _mobilities(
    double g1, double g2, double g3, double g4, double g5, double g6, double rr, double a, double b, double* out,
    int stride,
) noexcept nogil:
    """tt, tt_d, tr, rt, rr and rr_d of two spheres of radii a and b, from derivatives of g, rr = r^2."""
    # Those of its laplacian: D^n L g = (3 + 2n) D^(n+1) g + r^2 D^(n+2) g.
    cdef double f1 = 5.0 * g2 + rr * g3
    cdef double f2 = 7.0 * g3 + rr * g4
    cdef double f3 = 9.0 * g4 + rr * g5
    cdef double f4 = 11.0 * g5 + rr * g6
    cdef double e1 = 5.0 * f2 + rr * f3
    cdef double e2 = 7.0 * f3 + rr * f4
    cdef double p = a * a * (1.0 / 6.0), q = b * b * (1.0 / 6.0)
    cdef double h1 = g1 + (p + q) * f1 + p * q * e1
    cdef double h2 = g2 + (p + q) * f2 + p * q * e2
    out[0] = 2.0 * h1 + rr * h2
    out[stride] = -h2
    out[2 * stride] = -0.5 * (f1 + p * e1)
    out[3 * stride] = -0.5 * (f1 + q * e1)
    out[4 * stride] = -0.5 * f1 - 0.25 * f2 * rr
    out[5 * stride] = 0.25 * f2


cdef inline void _screened(double s, double r, double* g, int stride) noexcept nogil:
    """Derivatives of r erfc(s r) - exp(-s^2 r^2)/(s sqrt(pi)): erfc(s r)/r and so on."""
    cdef double i2 = 1.0 / (r * r), w = 2.0 * s * s
    cdef double x = s * r
    cdef double e = gauss_(x)
    cdef double b = e * erfc_over_gauss(x if x < 28.0 else 28.0) / r
    e /= s * sqrt(M_PI)
    g[0] = b
    b = (b + w * e) * i2
    g[stride] = -b
    e = w * e
    b = (3.0 * b + w * e) * i2
    g[2 * stride] = b
    e = w * e
    b = (5.0 * b + w * e) * i2
    g[3 * stride] = -b
    e = w * e
    b = (7.0 * b + w * e) * i2
    g[4 * stride] = b
    e = w * e
    b = (9.0 * b + w * e) * i2
    g[5 * stride] = -b


cdef void _of_waves(double s, double rr, double* g) noexcept nogil:
    """Derivatives of r less these: of what waves make of two points."""
    cdef double t = s * s * rr
    cdef double r = sqrt(rr), term, factor, whole
    cdef int n, m
    if t > 2.0:
        _screened(s, r, g, 1)
        whole = 1.0 / r
        for n in range(SLOPES):
            g[n] = whole - g[n]
            whole *= -(2 * n + 1) / rr
        return
    # 1/(s sqrt(pi)) times the sum over m of -(-t)^m / (m! (2m - 1)).
    for n in range(SLOPES):
        # Of the n + 1st derivative, from m = n + 1 on: m (m - 1) .. (m - n) (2 s^2)^(n + 1) t^(m - n - 1).
        factor = 1.0 / (s * sqrt(M_PI))
        for m in range(n + 1):
            factor *= 2.0 * s * s
        factor = factor if n % 2 == 0 else -factor
        g[n] = 0.0
        term = factor
        for m in range(n + 1, n + 1 + TERMS):
            # -(-1)^m / (m - n - 1)! / (2m - 1)
            g[n] += term / (2 * m - 1)
            term *= -t / (m - n)


cdef inline void _set(Near* p, const double* value, int stride) noexcept nogil:
    p.tt = value[0]
    p.tt_d = value[stride]
    p.tr = value[2 * stride]
    p.rt = value[3 * stride]
    p.rr = value[4 * stride]
    p.rr_d = value[5 * stride]


cdef int _fill_near(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What the pairs of spheres first to last do to each other."""
    cdef Spheres* c = (<SumTask*> task).spheres
    cdef double r[TARGETS]
    cdef double rr[TARGETS]
    cdef double b[TARGETS]
    cdef double g[SLOPES][TARGETS]
    cdef double value[6][TARGETS]
    cdef double near[SLOPES]
    cdef double own[6]
    cdef Near* p
    cdef Py_ssize_t i, m
    cdef int lane, n, k
    for i in range(first, last):
        m = c.begin[i]
        while m < c.begin[i + 1]:
            n = <int> min(<Py_ssize_t> TARGETS, c.begin[i + 1] - m)
            for lane in range(TARGETS):
                p = c.near + m + min(lane, n - 1)
                rr[lane] = dot(p.d, p.d)
                b[lane] = c.radius[p.other]
            for lane in range(TARGETS):
                r[lane] = sqrt(rr[lane]) if rr[lane] > 0.0 else 1.0
                _screened(c.splitting, r[lane], &g[0][lane], TARGETS)
            for lane in range(TARGETS):
                _mobilities(g[0][lane], g[1][lane], g[2][lane], g[3][lane], g[4][lane], g[5][lane], rr[lane],
                            c.radius[i], b[lane], &value[0][lane], TARGETS)
            for lane in range(n):
                p = c.near + m + lane
                if not rr[lane] < (c.radius[i] + b[lane]) * (c.radius[i] + b[lane]):
                    _set(p, &value[0][lane], TARGETS)
                    continue
                # The waves have them as if they were apart: that is taken away, and what they do is put in its place.
                _of_waves(c.splitting, rr[lane], near)
                _mobilities(near[0], near[1], near[2], near[3], near[4], near[5], rr[lane], c.radius[i], b[lane],
                            own, 1)
                for k in range(6):
                    own[k] = -own[k]
                if p.other == i:
                    # Its own mobility is known apart.
                    _set(p, own, 1)
                    continue
                _set_near(c, i, p.other, p.d, p)
                p.tt += own[0]
                p.tt_d += own[1]
                p.tr += own[2]
                p.rt += own[3]
                p.rr += own[4]
                p.rr_d += own[5]
            m += n
    return 0


cdef void _split(Spheres* c, const Box* box) noexcept nogil:
    """How the sum is split: a function of the number of spheres, the largest, and the box alone."""
    cdef double volume = box.length[0] * box.length[1] * box.length[2], largest = 0.0, reach, least
    cdef double edge = exp_(log_(volume) / 3.0)
    cdef Py_ssize_t i
    cdef int k
    for i in range(c.n):
        largest = fmax(largest, c.radius[i])
    # As many pairs as waves: both take about the same time.
    c.splitting = exp_(log_(2.0 * M_PI * M_PI * M_PI * c.n) / 6.0) / edge
    reach = sqrt(-log_(c.accuracy))
    least = exp_(log_(4.0 * M_PI / 3.0 * c.n * c.n / MOST_PAIRS) / 3.0) * reach / edge
    c.splitting = fmin(fmax(c.splitting, least), 1.0 / largest)
    if c.chosen > 0.0:
        c.splitting = c.chosen
    # What is left out, relative to the mobility of a sphere: at the end of waves averages over the largest are large.
    for k in range(20):
        least = 1.0 + reach * reach * c.splitting * c.splitting * largest * largest * (2.0 / 3.0)
        reach = sqrt(1.0 - log_(c.accuracy) + 2.0 * log_(least))
    c.range = reach / c.splitting
    c.cutoff = 2.0 * reach * c.splitting


cdef int _find_images(Spheres* c, const Box* box) noexcept nogil:
    """Which images of which spheres are within range of each other, and each with itself."""
    cdef double d[3][TARGETS]
    cdef double square[TARGETS]
    cdef double shift[3]
    cdef int most[3]
    cdef double end = c.range * c.range
    cdef Py_ssize_t first, i, j
    cdef long long any_near
    cdef int lane, k, x, y, z
    cdef Near* p
    for k in range(3):
        most[k] = <int> floor(c.range * box.inverse[k] + 0.5)
    c.n_near = 0
    for i in range(c.n):
        c.begin[i] = c.n_near
        first = 0
        while first < c.n:
            for k in range(3):
                for lane in range(TARGETS):
                    d[k][lane] = c.x[k * c.stride + i] - c.x[k * c.stride + first + lane]
                    d[k][lane] -= box.length[k] * nearest_whole(d[k][lane] * box.inverse[k])
            for x in range(-most[0], most[0] + 1):
                shift[0] = x * box.length[0]
                for y in range(-most[1], most[1] + 1):
                    shift[1] = y * box.length[1]
                    for z in range(-most[2], most[2] + 1):
                        shift[2] = z * box.length[2]
                        any_near = 0
                        for lane in range(TARGETS):
                            square[lane] = ((d[0][lane] + shift[0]) * (d[0][lane] + shift[0])
                                            + (d[1][lane] + shift[1]) * (d[1][lane] + shift[1])
                                            + (d[2][lane] + shift[2]) * (d[2][lane] + shift[2]))
                        for lane in range(TARGETS):
                            any_near |= square[lane] < end
                        if not any_near:
                            continue
                        for lane in range(<int> min(<Py_ssize_t> TARGETS, c.n - first)):
                            if not square[lane] < end:
                                continue
                            if not _add_room(c):
                                return OUT_OF_MEMORY
                            p = c.near + c.n_near
                            p.other = first + lane
                            for k in range(3):
                                p.d[k] = d[k][lane] + shift[k]
                            c.n_near += 1
            first += TARGETS
    c.begin[c.n] = c.n_near
    return 0


cdef int _phases(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Spheres* c = (<SumTask*> task).spheres
    set_phases(&c.waves, c.x, first, last)
    return 0


cdef int find_images(World* world, Spheres* c) noexcept nogil:
    """All that sums over a lattice need, for where spheres are. 0, or a fault."""
    cdef SumTask task
    cdef int fault
    task.spheres = c
    _split(c, &world.box)
    if not list_waves(&c.waves, world.box.length, c.cutoff):
        return OUT_OF_MEMORY
    over_blocks(_phases, &task, world, c.stride, 16 * TARGETS)
    fault = _find_images(c, &world.box)
    if not fault:
        over_blocks(_fill_near, &task, world, c.n, TARGETS)
    return fault


cdef inline void _sum_wave(
    const Spheres* c, const WaveRow* row, int z, Py_ssize_t start, const double* exy, const double* own, double square,
    int loads, bint turn, double* total,
) noexcept nogil:
    """Of forces, and torques, of up to CHUNK spheres: sums of f exp(-i k.x), real and imaginary parts."""
    cdef double part[24][TARGETS]
    cdef double cosine[TARGETS]
    cdef double sine[TARGETS]
    cdef double size, f
    cdef Py_ssize_t i, end = min(<Py_ssize_t> CHUNK, c.stride - start)
    cdef int lane, load, k, n = 12 if turn else 6
    for k in range(n * loads):
        for lane in range(TARGETS):
            part[k][lane] = 0.0
    i = 0
    while i < end:
        wave_phase(&c.waves, z, start + i, exy + i, exy + CHUNK + i, cosine, sine)
        if turn:
            for load in range(loads):
                for k in range(3):
                    for lane in range(TARGETS):
                        f = c.f[(6 * load + TORQUE + k) * c.stride + start + i + lane]
                        part[12 * load + 6 + 2 * k][lane] += f * cosine[lane]
                        part[12 * load + 7 + 2 * k][lane] -= f * sine[lane]
        for lane in range(TARGETS):
            size = 1.0 - own[i + lane] * square
            cosine[lane] *= size
            sine[lane] *= size
        for load in range(loads):
            for k in range(3):
                for lane in range(TARGETS):
                    f = c.f[(6 * load + k) * c.stride + start + i + lane]
                    part[n * load + 2 * k][lane] += f * cosine[lane]
                    part[n * load + 1 + 2 * k][lane] -= f * sine[lane]
        i += TARGETS
    for k in range(n * loads):
        for lane in range(TARGETS):
            total[k] += part[k][lane]


cdef void _flow_of_wave(const Spheres* c, const double* k, double square, bint turn, double* total) noexcept nogil:
    """Of its sums of forces and torques the flow, and half of its curl."""
    cdef double e[3]
    cdef double f[2][3]
    cdef double u[3]
    cdef double q = square / (4.0 * c.splitting * c.splitting), factor, along
    cdef int n, m
    for n in range(2):
        for m in range(3):
            f[n][m] = total[2 * m + n]
    if turn:
        # f += (i k x t)/2
        for n in range(2):
            for m in range(3):
                u[m] = total[6 + 2 * m + n]
            cross(k, u, e)
            for m in range(3):
                f[1 - n][m] += (0.5 if n == 0 else -0.5) * e[m]
    factor = (16.0 * M_PI * (1.0 + q) * exp_(-q)
              / (square * (c.waves.length[0] * c.waves.length[1] * c.waves.length[2])))
    for n in range(2):
        along = dot(k, f[n]) / square
        for m in range(3):
            u[m] = factor * (f[n][m] - along * k[m])
            total[2 * m + n] = u[m]
        if turn:
            # (i k x u)/2
            cross(k, u, e)
            for m in range(3):
                total[6 + 2 * m + 1 - n] = (0.5 if n == 0 else -0.5) * e[m]


cdef int _wave_rows(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Flows of the waves of rows first to last."""
    cdef SumTask* t = <SumTask*> task
    cdef Spheres* c = t.spheres
    cdef Waves* w = &c.waves
    cdef bint turn = c.n_turning > 0
    cdef double exy[2 * CHUNK]
    cdef double own[CHUNK]
    cdef double k[3]
    cdef double* total
    cdef const WaveRow* row
    cdef Py_ssize_t r, start, i, n = w.width
    cdef int z, load
    for r in range(first, last):
        row = w.rows + r
        for i in range(n * (row.last - row.first)):
            w.sum[n * row.wave + i] = 0.0
        start = 0
        while start < c.stride:
            i = 0
            while i < min(<Py_ssize_t> CHUNK, c.stride - start):
                row_phase(w, row, start + i, exy + i, exy + CHUNK + i)
                i += TARGETS
            for i in range(min(<Py_ssize_t> CHUNK, c.stride - start)):
                own[i] = c.radius[start + i] * c.radius[start + i] * (1.0 / 6.0)
            for z in range(row.first, row.last):
                wave_vector(w, row, z, k)
                total = w.sum + n * (row.wave + z - row.first)
                # One function for each case: the compiler writes out the short loops.
                if turn and t.loads == 2:
                    _sum_wave(c, row, z, start, exy, own, dot(k, k), 2, True, total)
                elif turn:
                    _sum_wave(c, row, z, start, exy, own, dot(k, k), 1, True, total)
                elif t.loads == 2:
                    _sum_wave(c, row, z, start, exy, own, dot(k, k), 2, False, total)
                else:
                    _sum_wave(c, row, z, start, exy, own, dot(k, k), 1, False, total)
            start += CHUNK
        for z in range(row.first, row.last):
            wave_vector(w, row, z, k)
            for load in range(t.loads):
                _flow_of_wave(c, k, dot(k, k), turn,
                              w.sum + n * (row.wave + z - row.first) + (12 if turn else 6) * load)
    return 0


cdef inline void _add_waves_of(
    const Spheres* c, Targets* b, Py_ssize_t first, int loads, int width, bint targets_turn,
) noexcept nogil:
    """What the flows of all waves do to a block of spheres."""
    cdef const Waves* w = &c.waves
    cdef const WaveRow* row
    cdef const double* u
    cdef double own[TARGETS]
    cdef double cx[TARGETS]
    cdef double sx[TARGETS]
    cdef double cosine[TARGETS]
    cdef double sine[TARGETS]
    cdef double k[3]
    cdef double square, size
    cdef Py_ssize_t r
    cdef int lane, load, m, z
    for lane in range(TARGETS):
        own[lane] = b.a[lane] * b.a[lane] * (1.0 / 6.0)
    for r in range(w.n_rows):
        row = w.rows + r
        row_phase(w, row, first, cx, sx)
        for z in range(row.first, row.last):
            wave_vector(w, row, z, k)
            square = dot(k, k)
            wave_phase(w, z, first, cx, sx, cosine, sine)
            u = w.sum + w.width * (row.wave + z - row.first)
            if targets_turn:
                for load in range(loads):
                    for m in range(3):
                        for lane in range(TARGETS):
                            b.u[load][TORQUE + m][lane] += (
                                u[width * load + 6 + 2 * m] * cosine[lane] - u[width * load + 7 + 2 * m] * sine[lane])
            for lane in range(TARGETS):
                size = 1.0 - own[lane] * square
                cosine[lane] *= size
                sine[lane] *= size
            for load in range(loads):
                for m in range(3):
                    for lane in range(TARGETS):
                        b.u[load][m][lane] += (
                            u[width * load + 2 * m] * cosine[lane] - u[width * load + 1 + 2 * m] * sine[lane])


cdef void _add_waves(const Spheres* c, Targets* b, Py_ssize_t first, int loads) noexcept nogil:
    if first < c.n_turning:
        if loads == 2:
            _add_waves_of(c, b, first, 2, 12, True)
        else:
            _add_waves_of(c, b, first, 1, 12, True)
    elif c.n_turning > 0:
        _add_waves_of(c, b, first, loads, 12, False)
    elif loads == 2:
        _add_waves_of(c, b, first, 2, 6, False)
    else:
        _add_waves_of(c, b, first, 1, 6, False)
