# Flights of in-triangle points in joint_constraints.pyx: the impulses with which A and then G, or G and then A, lead
# from where constraints hold to where they hold.
#
# Neither letter alone keeps them. Impulses -D^T mu / h at the start, of forces on points as B passes these on, are
# found by Newton's method with all that rows depend on flown again in each iteration. The letters then fly all that
# moves.
#
#   A, G   Impulses move vertices, with what rides on them, and points fly over the mesh at its new place. Recoils
#          change velocities after that alone: no other point matters.
#   G, A   Points fly over the mesh of the start, and other points do as they have done. Recoils of points in rows
#          differ from what G has given: vertices get the difference.
#
# A step d of a point in the plane of its triangle becomes T d. A ride keeps the inner products with the edges e1, e2,
# so with the reciprocal edges e1*, e2* of the moved triangle it is the sum of e_i* (e_i . d). A flight turns the plane
# with what is in it into that of its last triangle, as it turns the velocity; borders reflect it. `carried` has the
# two pairs of vectors of T = p r^T + q s^T.


cdef inline void _reciprocal(const Frame* frame, double* first, double* second) noexcept nogil:
    """The vectors in the plane of a triangle with the inner products 1, 0 and 0, 1 with its edges."""
    with_rates(frame, 1.0, 0.0, first)
    with_rates(frame, 0.0, 1.0, second)


cdef inline void _turned(const double* v0, const double* n0, const double* v1, const double* n1, double sign,
                         const double* y, double* out) noexcept nogil:
    """y in a plane with the unit normal n0 where the flight has turned v0 to v1; without a velocity y itself."""
    cdef double a[3]
    cdef double b[3]
    cdef double along, across, square = dot(v0, v0)
    cdef int c
    cross(n0, v0, a)
    cross(n1, v1, b)
    along = dot(y, v0) / square
    across = sign * dot(y, a) / square
    for c in range(3):
        out[c] = along * v1[c] + across * b[c]


cdef void _unit_normal(const Frame* frame, double* out) noexcept nogil:
    cdef int c
    for c in range(3):
        out[c] = frame.n[c] / sqrt(frame.nn)


cdef bint _fly_point(const System* s, World* world, Py_ssize_t k, const Task* t, double h,
                     const double* u) noexcept nogil:
    """Fly a point from where it was, with the velocity u in the triangle of the start; whether that leads anywhere."""
    cdef Py_ssize_t place = s.place[s.spot[k]]
    cdef const double* mesh = world.x
    cdef double* pushes = NULL
    cdef double* T = s.carried + 12 * k
    cdef double sense = 1.0 if h >= 0.0 else -1.0
    cdef double v[3]
    cdef double w[3]
    cdef double n0[3]
    cdef double n1[3]
    cdef double edges[6]
    cdef double back[6]
    cdef Frame before
    cdef Frame after
    cdef int crossed, reflected, c
    cdef double sign
    if s.rides[k]:
        if t.after_g:
            pushes = s.push + 3 * <Py_ssize_t> s.shift[k]
        else:
            mesh = s.x + 3 * <Py_ssize_t> s.shift[k]
    s.face[k] = s.face0[k]
    for c in range(2):
        s.weights[2 * k + c] = s.weights0[2 * k + c]
    # The ride of A before G.
    frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> s.face[k], &before)
    frame_of(&world.box, mesh, world.faces + 3 * <Py_ssize_t> s.face[k], &after)
    if not (before.nn > 0.0 and after.nn > 0.0):
        return False
    with_rates(&after, sense * dot(before.e1, u), sense * dot(before.e2, u), v)
    for c in range(3):
        w[c] = v[c]
        edges[c] = before.e1[c]
        edges[3 + c] = before.e2[c]
    _reciprocal(&after, back, back + 3)
    _unit_normal(&after, n0)
    if fly(world, mesh, fabs(h), s.face + k, s.weights + 2 * k, w, NULL, pushes, sense * world.mass[place],
           &crossed, &reflected) != 0:
        return False
    for c in range(3):
        s.v1[3 * k + c] = sense * w[c]
    frame_of(&world.box, mesh, world.faces + 3 * <Py_ssize_t> s.face[k], &after)
    if crossed > 0:
        _unit_normal(&after, n1)
        sign = -1.0 if reflected % 2 == 1 else 1.0
        for c in range(2):
            _turned(v, n0, w, n1, sign, back + 3 * c, T + 6 * c)
    else:
        for c in range(6):
            T[(c // 3) * 6 + c % 3] = back[c]
    for c in range(6):
        T[(c // 3) * 6 + 3 + c % 3] = edges[c]
    return True


cdef bint _put_point(const System* s, World* world, Py_ssize_t k, const Task* t) noexcept nogil:
    """Place of a point that has flown, on the mesh at the end; whether its triangle has an area."""
    cdef const double* mesh = world.x
    cdef const double* origin
    cdef double* x = s.x + 3 * <Py_ssize_t> s.spot[k]
    cdef double* T = s.carried + 12 * k
    cdef double back[6]
    cdef double a, b
    cdef double old[6]
    cdef Frame before
    cdef Frame after
    cdef int c, i
    cdef double near
    if s.rides[k]:
        mesh = s.x + 3 * <Py_ssize_t> s.shift[k]
    frame_of(&world.box, mesh, world.faces + 3 * <Py_ssize_t> s.face[k], &after)
    if not after.nn > 0.0:
        return False
    if t.after_g and s.rides[k]:
        # The ride of A after G: p and q, which the flight has given, ride on.
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> s.face[k], &before)
        _reciprocal(&after, back, back + 3)
        for i in range(2):
            for c in range(3):
                old[3 * i + c] = T[6 * i + c]
            a = dot(before.e1, old + 3 * i)
            b = dot(before.e2, old + 3 * i)
            for c in range(3):
                T[6 * i + c] = a * back[c] + b * back[3 + c]
    origin = mesh + 3 * <Py_ssize_t> world.faces[3 * <Py_ssize_t> s.face[k]]
    for c in range(3):
        near = origin[c] + (s.weights[2 * k] * after.e1[c] + s.weights[2 * k + 1] * after.e2[c])
        if world.box.periodic:
            near += world.box.length[c] * nearest_whole((s.x0[3 * k + c] - near) * world.box.inverse[c])
        x[c] = near
    _take_normal(s, k, world, mesh)
    return True


cdef bint _fly_component(const System* s, Py_ssize_t component, World* world, const Task* t, double h) noexcept nogil:
    """Fly all but bodies, whose momenta are set; whether that leads anywhere."""
    cdef Py_ssize_t slot, k, place
    cdef int c
    for slot in range(3 * s.vertices[component], 3 * s.first_turn[component]):
        s.push[slot] = 0.0
    if t.after_g:
        for k in range(s.points[component], s.points[component + 1]):
            if not _fly_point(s, world, k, t, h, s.u + 3 * <Py_ssize_t> s.motion[k]):
                return False
    for slot in range(s.slots[component], s.first_turn[component]):
        place = s.place[slot]
        for c in range(3):
            s.x[3 * slot + c] = world.x[3 * place + c] + h * (s.u[3 * slot + c] + s.w[slot] * s.push[3 * slot + c])
    for k in range(s.points[component], s.points[component + 1]):
        if not t.after_g and not _fly_point(s, world, k, t, h, s.u + 3 * <Py_ssize_t> s.motion[k]):
            return False
        if not _put_point(s, world, k, t):
            return False
    _find_corners(s, component, world)
    for slot in range(s.first_turn[component], s.first_turn[component] + s.turns[component + 1] - s.turns[component]):
        for c in range(3):
            s.x[3 * slot + c] = s.u[3 * slot + c]
    return True


cdef void _carry_back(const System* s, Py_ssize_t component) noexcept nogil:
    """Gradients at the end of a flight by steps of points in the plane of the start: T^T G."""
    cdef Py_ssize_t row, e
    cdef const double* T
    cdef double* G
    cdef double a, b
    cdef int c
    for row in range(s.rows[component], s.rows[component + 1]):
        for e in range(s.entries[row], s.entries[row] + s.beads[s.program[row]]):
            if s.kind[s.slot[e]] == SPOT:
                T = s.carried + 12 * <Py_ssize_t> s.turn[s.slot[e]]
                G = s.gradient + 3 * <Py_ssize_t> s.into[e]
                a = dot(T, G)
                b = dot(T + 6, G)
                for c in range(3):
                    G[c] = a * T[3 + c] + b * T[9 + c]


cdef void _keep_start(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    """What a flight starts with."""
    cdef Py_ssize_t e, k
    cdef int c
    for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
        s.slot0[e] = s.slot[e]
        for c in range(3):
            s.start[3 * e + c] = s.gradient[3 * e + c]
    for k in range(s.points[component], s.points[component + 1]):
        s.face0[k] = s.face[k]
        for c in range(2):
            s.weights0[2 * k + c] = s.weights[2 * k + c]
        for c in range(3):
            s.v0[3 * k + c] = s.v[3 * <Py_ssize_t> s.motion[k] + c]
            s.x0[3 * k + c] = s.x[3 * <Py_ssize_t> s.spot[k] + c]
    _keep_bodies(s, component)


cdef void _begin(const System* s, Py_ssize_t component, World* world, const Task* t) noexcept nogil:
    """u: the velocities of a flight without impulses."""
    cdef Py_ssize_t slot, k, i
    cdef int c
    for slot in range(s.slots[component], s.first_turn[component]):
        for c in range(3):
            s.u[3 * slot + c] = 0.0 if t.action == SETTLE else s.v[3 * slot + c]
            s.push[3 * slot + c] = 0.0
    for k in range(s.points[component], s.points[component + 1]):
        for c in range(3):
            s.u[3 * <Py_ssize_t> s.motion[k] + c] = 0.0 if t.action == SETTLE else s.v0[3 * k + c]
    for i in range(s.turns[component], s.turns[component + 1]):
        slot = s.first_turn[component] + i - s.turns[component]
        for c in range(3):
            if t.action == SETTLE:
                s.spin0[3 * i + c] = 0.0
            s.u[3 * slot + c] = s.spin0[3 * i + c]
    _bend(s, component, t.h)
    if t.after_g:
        # Without the recoils that G has given vertices from these points; it has flown each, so this cannot fail.
        for k in range(s.points[component], s.points[component + 1]):
            _fly_point(s, world, k, t, t.h, s.v0 + 3 * k)
        for slot in range(s.vertices[component], s.first_turn[component]):
            for c in range(3):
                s.u[3 * slot + c] -= s.w[slot] * s.push[3 * slot + c]


cdef void _quicken(const System* s, Py_ssize_t component, int turn) noexcept nogil:
    """Let late steps take a part of the step before along, as the secant method has it (Anderson's with one step
    before). The matrix leaves out how the strain of a mesh changes flights, and edges bend them: where a flight is
    about as long as its triangle, Newton's method alone may creep towards the solution, or swing about it."""
    cdef Py_ssize_t row
    cdef double part = 0.0, whole = 0.0, step
    for row in range(s.rows[component], s.rows[component + 1]):
        part += s.right[row] * (s.value[row] - s.last_value[row])
        whole += (s.right[row] - s.last_right[row]) * (s.value[row] - s.last_value[row])
    part = max(-5.0, min(1.0, part / whole)) if turn > FEW_ITERATIONS and whole > 0.0 else 0.0
    for row in range(s.rows[component], s.rows[component + 1]):
        step = s.right[row]
        s.right[row] -= part * (s.last_step[row] + step - s.last_right[row])
        s.last_step[row] = s.right[row]
        s.last_right[row] = step
        s.last_value[row] = s.value[row]


cdef void _find_impulses(const Task* t, World* world, Py_ssize_t block, double* registers,
                         double* dense) noexcept nogil:
    """Find mu of all components of a block, and u, the velocities with its impulses."""
    cdef const System* s = t.system
    cdef double h = 1.0 if t.action == SETTLE else t.h
    cdef Py_ssize_t component, row
    cdef int turn
    cdef bint any_active
    for component in range(s.blocks[block], s.blocks[block + 1]):
        s.active[component] = 1
        _begin(s, component, world, t)
    for turn in range(MOST_ITERATIONS):
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if s.active[component] == 1 and not _fly_component(s, component, world, t, h):
                s.active[component] = -1
        _fly_bodies(s, block, 0.0 if t.action == SETTLE else h, t.exact)
        _evaluate(s, block, registers)
        any_active = False
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _carry_back(s, component)
            if s.active[component] != 1:
                continue
            if _holds(s, component):
                s.active[component] = 0
                continue
            _assemble(s, component, s.gradient, s.start, True)
            if _factorise(s, component, dense) >= 0:
                s.active[component] = -1
                continue
            any_active = True
            for row in range(s.rows[component], s.rows[component + 1]):
                s.right[row] = s.value[row]
            _solve(s, component, s.right)
            _quicken(s, component, turn)
            _push(s, component, s.start, s.right, -1.0 / h, s.u, -1.0 / h, s.slot0)
        if not any_active:
            return


cdef void _give_impulses(const System* s, Py_ssize_t component, World* world, const Task* t) noexcept nogil:
    """To the World: velocities with impulses, and points where these lead in G; of SETTLE the places alone."""
    cdef Py_ssize_t slot, k, p
    cdef bint settles = t.action == SETTLE
    cdef int c
    for k in range(s.points[component], s.points[component + 1]):
        slot = s.motion[k]
        p = s.place[slot] - world.n_cartesian
        for c in range(3):
            s.x[3 * slot + c] = s.x[3 * <Py_ssize_t> s.spot[k] + c]
            if t.after_g:
                s.u[3 * slot + c] = s.v1[3 * k + c]
        if settles or t.after_g:
            world.triangle[p] = s.face[k]
            for c in range(2):
                world.barycentric[2 * p + c] = s.weights[2 * k + c]
    for slot in range(s.slots[component], s.first_turn[component]):
        if settles:
            _scatter_bead(s, slot, s.x, world.x)
            continue
        for c in range(3):
            s.u[3 * slot + c] += s.w[slot] * s.push[3 * slot + c]
        _scatter_bead(s, slot, s.u, world.v)
    if not settles:
        for slot in range(3 * s.first_turn[component],
                          3 * (s.first_turn[component] + s.turns[component + 1] - s.turns[component])):
            s.v[slot] = s.u[slot]
    _scatter_turns(s, component, world, settles)


cdef int _launch(const Task* t, World* world, Py_ssize_t block, double* registers, double* dense) noexcept nogil:
    """START, LAUNCH and SETTLE of components with points."""
    cdef const System* s = t.system
    cdef Py_ssize_t component
    cdef int fault = 0
    if not (t.action == LAUNCH and t.after_g):
        if not t.known:
            _evaluate(s, block, registers)
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _keep_start(s, component, world)
    if t.action == START:
        return 0
    _find_impulses(t, world, block, registers, dense)
    for component in range(s.blocks[block], s.blocks[block + 1]):
        if s.active[component] != 0:
            fault |= _blame(s, component, world)
        elif t.action == LAUNCH:
            fault |= _check_flight(s, component, world, 0.0)
    if fault != 0:
        return fault
    for component in range(s.blocks[block], s.blocks[block + 1]):
        _give_impulses(s, component, world, t)
    return 0
