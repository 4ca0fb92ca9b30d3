# Where beads, bodies and points of joint_constraints.pyx are: taken from the World, flown, and given back.


cdef void _gather(const System* s, Py_ssize_t component, World* world, bint all_vertices) noexcept nogil:
    """What slots are in the World; of vertices under points those that rows depend on, or all."""
    cdef Py_ssize_t slot, place, k, e
    cdef int c
    if s.points[component] < s.points[component + 1]:
        _stand(s, component, world)
        if not all_vertices:
            for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
                if _is_under_points(s, component, s.slot[e]):
                    _gather_bead(s, s.slot[e], world)
    for slot in range(s.slots[component], s.slots[component + 1]):
        place = s.place[slot]
        if s.kind[slot] >= PLACE:
            break
        if s.kind[slot] == TURN:
            k = s.turn[slot]
            place -= world.first_oriented
            for c in range(4):
                s.q[4 * k + c] = world.orientation[4 * place + c]
            for c in range(3):
                s.rate[3 * k + c] = world.inverse_inertia[3 * place + c]
                s.v[3 * slot + c] = world.spin[3 * place + c]
            s.w[slot] = 1.0 if s.rate[3 * k] > 0.0 else 0.0
            continue
        if all_vertices or slot < s.vertices[component]:
            _gather_bead(s, slot, world)
    _find_places(s, component)


cdef void _gather_bead(const System* s, Py_ssize_t slot, World* world) noexcept nogil:
    cdef Py_ssize_t place = s.place[slot]
    cdef int c
    s.w[slot] = world.inverse_mass[place]
    for c in range(3):
        s.x[3 * slot + c] = world.x[3 * place + c]
        s.v[3 * slot + c] = world.v[3 * place + c]


cdef void _stand(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    """Where points are in the World."""
    cdef Py_ssize_t k, p
    cdef int c
    for k in range(s.points[component], s.points[component + 1]):
        p = s.place[s.spot[k]] - world.n_cartesian
        s.face[k] = world.triangle[p]
        for c in range(2):
            s.weights[2 * k + c] = world.barycentric[2 * p + c]
        for c in range(3):
            s.x[3 * <Py_ssize_t> s.spot[k] + c] = world.x[3 * (world.n_cartesian + p) + c]
        _take_normal(s, k, world, world.x)
    _find_corners(s, component, world)


cdef void _take_normal(const System* s, Py_ssize_t k, World* world, const double* x) noexcept nogil:
    """Of the triangle of a point, with vertices at x by place."""
    cdef Frame frame
    cdef double size
    cdef int c
    frame_of(&world.box, x, world.faces + 3 * <Py_ssize_t> s.face[k], &frame)
    # One without area has no normal.
    size = 1.0 / sqrt(frame.nn) if frame.nn > 0.0 else 0.0
    for c in range(3):
        s.normal[3 * k + c] = size * frame.n[c]


cdef void _find_corners(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    """Let the entries of corners be those of the triangles in which points are."""
    cdef Py_ssize_t row, e, k
    cdef int c
    for row in range(s.rows[component], s.rows[component + 1]):
        for e in range(s.entries[row], s.entries[row] + s.beads[s.program[row]]):
            if s.kind[s.slot[e]] != SPOT:
                continue
            k = s.turn[s.slot[e]]
            for c in range(3 if s.rides[k] else 0):
                s.slot[s.into[e] + 1 + c] = world.faces[3 * <Py_ssize_t> s.face[k] + c] + s.shift[k]


cdef void _find_places(const System* s, Py_ssize_t component) noexcept nogil:
    """Where the places of bodies are."""
    cdef Py_ssize_t k, slot
    cdef int c
    for k in range(s.turns[component], s.turns[component + 1]):
        matrix_of(s.q + 4 * k, s.R + 9 * k)
    slot = s.first_turn[component] + s.turns[component + 1] - s.turns[component]
    for slot in range(slot, s.slots[component + 1]):
        if s.kind[slot] == SPOT:
            break
        k = s.turn[slot]
        into_space(s.R + 9 * k, s.arm + 3 * slot, s.x + 3 * slot)
        for c in range(3):
            s.x[3 * slot + c] += s.x[3 * <Py_ssize_t> s.body[k] + c]


cdef void _keep_bodies(const System* s, Py_ssize_t component) noexcept nogil:
    """Orientations and angular momenta as a flight starts with them."""
    cdef Py_ssize_t k, slot
    cdef int c
    for k in range(s.turns[component], s.turns[component + 1]):
        slot = s.first_turn[component] + k - s.turns[component]
        for c in range(4):
            s.q0[4 * k + c] = s.q[4 * k + c]
        for c in range(3):
            s.spin0[3 * k + c] = s.v[3 * slot + c]


cdef void _bend(const System* s, Py_ssize_t component, double h) noexcept nogil:
    """What angle at the end of a flight comes of an impulse at its start, over h: with w = W L in the frame of the body

        W + h/2 (W [L] W - W [w] - [w] W),   [a] b = a x b,

    to first order in h; from L' = L x w and the angle (1 - [h w]/2) d(h w). Also set L, before any impulse."""
    cdef double L[9]
    cdef double w[9]
    cdef const double* rate
    cdef double* x
    cdef Py_ssize_t k
    cdef int i, j, c
    for k in range(s.turns[component], s.turns[component + 1]):
        rate = s.rate + 3 * k
        x = s.x + 3 * (s.first_turn[component] + k - s.turns[component])
        for c in range(3):
            x[c] = s.spin0[3 * k + c]
        for i in range(3):
            L[4 * i] = w[4 * i] = 0.0
            j = (i + 1) % 3
            c = (i + 2) % 3
            L[3 * i + j] = -x[c]
            L[3 * j + i] = x[c]
            w[3 * i + j] = -rate[c] * x[c]
            w[3 * j + i] = rate[c] * x[c]
        for i in range(3):
            for j in range(3):
                s.bent[9 * k + 3 * i + j] = 0.5 * h * (
                    rate[i] * L[3 * i + j] * rate[j] - rate[i] * w[3 * i + j] - w[3 * i + j] * rate[j])
            s.bent[9 * k + 4 * i] += rate[i]


cdef void _turn_lanes(const System* s, const Py_ssize_t* slots, int n, double h, int parts) noexcept nogil:
    """Fly n rotations, with the angular momenta in x; without time by these momenta over moments of inertia."""
    cdef Bodies b
    cdef Turns t
    cdef double scale
    cdef Py_ssize_t slot, k
    cdef int lane, c
    if h == 0.0:
        for lane in range(n):
            k = s.turn[slots[lane]]
            for c in range(4):
                t.q[c][lane] = s.q0[4 * k + c]
            for c in range(3):
                t.r[c][lane] = s.rate[3 * k + c] * s.x[3 * slots[lane] + c]
        turn(&t, n)
        for lane in range(n):
            for c in range(4):
                s.q[4 * <Py_ssize_t> s.turn[slots[lane]] + c] = t.q[c][lane]
        return
    for lane in range(LANES):
        slot = slots[lane if lane < n else n - 1]
        k = s.turn[slot]
        for c in range(4):
            b.q[c][lane] = s.q0[4 * k + c]
        for c in range(3):
            b.spin[c][lane] = s.x[3 * slot + c]
            b.rate[c][lane] = s.rate[3 * k + c]
    turn_freely(&b, h / max(parts, 1), parts)
    for lane in range(n):
        slot = slots[lane]
        k = s.turn[slot]
        scale = scale_to_unit(b.q[0][lane], b.q[1][lane], b.q[2][lane], b.q[3][lane])
        for c in range(4):
            s.q[4 * k + c] = b.q[c][lane] * scale
        for c in range(3):
            s.v[3 * slot + c] = b.spin[c][lane]


cdef void _fly_bodies(const System* s, Py_ssize_t block, double h, bint exact) noexcept nogil:
    """Turn the bodies of those components of a block that Newton's method has moved."""
    cdef Py_ssize_t slots[LANES]
    cdef Py_ssize_t component, k
    cdef int n = 0, parts = 0, own
    for component in range(s.blocks[block], s.blocks[block + 1]):
        if s.active[component] != 1:
            continue
        for k in range(s.turns[component], s.turns[component + 1]):
            own = 0 if exact else s.parts[k]
            if n == LANES or (n > 0 and own != parts):
                _turn_lanes(s, slots, n, h, parts)
                n = 0
            parts = own
            slots[n] = s.first_turn[component] + k - s.turns[component]
            n += 1
    if n > 0:
        _turn_lanes(s, slots, n, h, parts)
    for component in range(s.blocks[block], s.blocks[block + 1]):
        if s.active[component] == 1 and s.turns[component] < s.turns[component + 1]:
            _find_places(s, component)


cdef void _scatter_turns(const System* s, Py_ssize_t component, World* world, bint moved) noexcept nogil:
    """Angular momenta, and orientations if the bodies have moved."""
    cdef Py_ssize_t k, slot, row
    cdef int c
    for k in range(s.turns[component], s.turns[component + 1]):
        slot = s.first_turn[component] + k - s.turns[component]
        if s.w[slot] == 0.0:
            continue
        row = s.place[slot] - world.first_oriented
        if moved:
            for c in range(4):
                world.orientation[4 * row + c] = s.q[4 * k + c]
        for c in range(3):
            world.spin[3 * row + c] = s.v[3 * slot + c]


cdef void _scatter(const System* s, Py_ssize_t component, const double* vectors, double* out) noexcept nogil:
    """Of beads that move; of vertices under points those that rows depend on."""
    cdef Py_ssize_t slot, e
    for slot in range(s.slots[component], s.vertices[component]):
        _scatter_bead(s, slot, vectors, out)
    if s.vertices[component] < s.first_turn[component]:
        for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
            if _is_under_points(s, component, s.slot[e]):
                _scatter_bead(s, s.slot[e], vectors, out)


cdef void _scatter_bead(const System* s, Py_ssize_t slot, const double* vectors, double* out) noexcept nogil:
    cdef int c
    if s.w[slot] > 0.0:
        for c in range(3):
            out[3 * <Py_ssize_t> s.place[slot] + c] = vectors[3 * slot + c]
