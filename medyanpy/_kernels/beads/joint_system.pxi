# Rows, components and bodies of joint_constraints.pyx: tables, work space, matrices and places.

# Slots are what the rows of a component depend on, in this order: its beads, fixed ones included, the rotations of its
# bodies, and the places that are fixed to these. A row has an entry for each of its beads and places; behind these, for
# each of its bodies, one for the bead and one for the rotation.
cdef enum Kind:
    BEAD = 0
    TURN = 1
    PLACE = 2


cdef struct System:
    const int32_t* blocks     # (blocks + 1,) first component
    const int32_t* slots      # (components + 1,) first slot
    const int32_t* rows       # (components + 1,) first row; rows follow each other in the order of elimination
    const int32_t* place      # (slots,) that of the body for TURN and PLACE
    const int32_t* kind       # (slots,)
    const int32_t* turn       # (slots,) which rotation it is or follows; -1 of beads
    const double* arm         # (slots, 3) of places, in the frame of the body
    const int32_t* turns      # (components + 1,) first rotation
    const int32_t* first_turn  # (components,) its slot
    const int32_t* body       # (turns,) the slot of the bead
    const int32_t* parts      # (turns,) of free rotation
    const int32_t* into       # (entries,) of places, where their gradients go: the entry of the bead; -1 of others
    const int32_t* entries    # (rows + 1,) first entry
    const int32_t* slot       # (entries,)
    const int32_t* program    # (rows,)
    const double* scale       # (rows,) nm; how far from where it holds a constraint may be
    const int32_t* numbers    # (rows,) first of its own
    const double* number
    const int32_t* pattern    # (rows + 1,) where each row of the matrix starts
    const int32_t* column     # (nonzeros,) ascending
    const int32_t* diagonal   # (rows,)
    const int32_t* products   # (components + 1,)
    const int32_t* product    # (products, 4) nonzeros of rows i, j and j, i; entries of i and j with the same bead
    const int32_t* groups     # (blocks + 1,) first group: rows of a block with the same program
    const int32_t* group      # (groups, 3) program, first lane, one after the last
    const int32_t* lane       # (lanes,) row
    const int32_t* beads      # (programs,) in each row
    const int32_t* own        # (programs,) numbers of a row's own
    Function* functions       # (programs,) g and its gradient
    Py_ssize_t components
    # Work space:
    double* x                 # (slots, 3); of TURN the angular momentum that a flight starts with
    double* v                 # (slots, 3); of TURN the angular momentum, in the frame of the body
    double* q0                # (turns, 4) before the flight
    double* spin0             # (turns, 3)
    double* q                 # (turns, 4)
    double* R                 # (turns, 9)
    double* rate              # (turns, 3) inverse moments of inertia
    double* bent              # (turns, 9) the derivative of a rotation by the angular momentum, over h
    double* w                 # (slots,) inverse masses; of TURN 1 where it moves
    double* u                 # (slots, 3)
    double* value             # (rows,) g
    double* gradient          # (entries, 3) G
    double* start             # (entries, 3) D
    double* matrix            # (nonzeros,) and its factors
    double* inverse           # (rows,) of pivots
    double* right             # (rows,)
    double* multiplier        # (rows,) mu
    double* off               # (rows,) of a row that has failed: distance over scale
    int32_t* active           # (components,) 1: Newton's method goes on; 0: it has converged; -1: it has failed
    double* registers         # (threads, room)
    Py_ssize_t room
    double* dense             # (threads, longest)
    Py_ssize_t longest


cdef class JointSystem:
    """The tables of System, made by medyanpy.beads.joint, for all operations on these constraints."""
    cdef System system
    cdef list arrays
    cdef readonly Py_ssize_t blocks, rows, entries, turns
    cdef object functions
    # Of which world and positions gradients are, and factors.
    cdef long long world
    cdef long long positions
    cdef long long factored

    def __init__(self, tables, programs, int threads):
        cdef System* s = &self.system
        cdef Py_ssize_t n_slots, n_rows, n_entries, n_turns
        self.arrays = []
        self.world = self.positions = self.factored = 0
        s.blocks = self.whole(tables["blocks"])
        s.slots = self.whole(tables["slots"])
        s.rows = self.whole(tables["rows"])
        s.place = self.whole(tables["place"])
        s.kind = self.whole(tables["kind"])
        s.turn = self.whole(tables["turn"])
        s.arm = self.real(tables["arm"])
        s.turns = self.whole(tables["turns"])
        s.first_turn = self.whole(tables["first_turn"])
        s.body = self.whole(tables["body"])
        s.parts = self.whole(tables["parts"])
        s.into = self.whole(tables["into"])
        s.entries = self.whole(tables["entries"])
        s.slot = self.whole(tables["slot"])
        s.program = self.whole(tables["program"])
        s.scale = self.real(tables["scale"])
        s.numbers = self.whole(tables["numbers"])
        s.number = self.real(tables["number"])
        s.pattern = self.whole(tables["pattern"])
        s.column = self.whole(tables["column"])
        s.diagonal = self.whole(tables["diagonal"])
        s.products = self.whole(tables["products"])
        s.product = self.whole(tables["product"].ravel())
        s.groups = self.whole(tables["groups"])
        s.group = self.whole(tables["group"].ravel())
        s.lane = self.whole(tables["lane"])
        s.beads = self.whole(tables["beads"])
        s.own = self.whole(tables["own"])
        self.functions = Functions(programs)
        s.functions = (<Functions> self.functions).function
        s.components = len(tables["rows"]) - 1
        self.blocks = len(tables["blocks"]) - 1
        self.rows = n_rows = len(tables["program"])
        n_slots, n_entries = len(tables["place"]), len(tables["slot"])
        self.entries = n_entries
        self.turns = n_turns = len(tables["body"])
        s.q0 = self.work(4 * n_turns)
        s.spin0 = self.work(3 * n_turns)
        s.q = self.work(4 * n_turns)
        s.R = self.work(9 * n_turns)
        s.rate = self.work(3 * n_turns)
        s.bent = self.work(9 * n_turns)
        s.x = self.work(3 * n_slots)
        s.v = self.work(3 * n_slots)
        s.w = self.work(n_slots)
        s.u = self.work(3 * n_slots)
        s.value = self.work(n_rows)
        s.gradient = self.work(3 * n_entries)
        s.start = self.work(3 * n_entries)
        s.matrix = self.work(len(tables["column"]))
        s.inverse = self.work(n_rows)
        s.right = self.work(n_rows)
        s.multiplier = self.work(n_rows)
        s.off = self.work(n_rows)
        s.active = <int32_t*> self.whole(np.zeros(s.components, np.int32))
        s.room = WIDTH * (<Functions> self.functions).most_registers
        s.registers = self.work(threads * s.room)
        s.longest = int(np.diff(tables["rows"]).max())
        s.dense = self.work(threads * s.longest)

    cdef const int32_t* whole(self, const int32_t[::1] array) except? NULL:
        self.arrays.append(array)
        return &array[0] if array.shape[0] > 0 else NULL

    cdef const double* real(self, const double[::1] array) except? NULL:
        self.arrays.append(array)
        return &array[0] if array.shape[0] > 0 else NULL

    cdef double* work(self, Py_ssize_t n) except? NULL:
        cdef double[::1] array = np.zeros(max(1, n))
        self.arrays.append(array)
        return &array[0]


cdef class Functions:
    """Programs, as `Graph.program` gives them."""
    cdef list arrays
    cdef Function* function
    cdef Py_ssize_t most_registers
    cdef unsigned char[::1] memory

    def __init__(self, programs):
        cdef const int32_t[:, ::1] instructions
        cdef const double[::1] constants
        cdef const int32_t[::1] outputs
        cdef Py_ssize_t i
        self.arrays = []
        self.memory = np.zeros(max(1, len(programs)) * sizeof(Function), np.uint8)
        self.function = <Function*> &self.memory[0]
        self.most_registers = 0
        for i, (instructions, constants, outputs, registers) in enumerate(programs):
            self.arrays.append((instructions, constants, outputs))
            self.function[i].instructions = &instructions[0, 0] if instructions.shape[0] > 0 else NULL
            self.function[i].n = instructions.shape[0]
            self.function[i].constants = &constants[0] if constants.shape[0] > 0 else NULL
            self.function[i].n_constants = constants.shape[0]
            self.function[i].outputs = &outputs[0]
            self.function[i].n_registers = registers
            self.most_registers = max(self.most_registers, <Py_ssize_t> registers)


cdef void _load(const System* s, Py_ssize_t first, Py_ssize_t last, int program, const double* more,
                double* r) noexcept nogil:
    """The numbers of up to WIDTH rows: coordinates, numbers of their own, and vectors at entries if there are any;
    where there are no more rows, the last once again."""
    cdef Py_ssize_t row, entry, number
    cdef int beads = s.beads[program], own = s.own[program], k, j, c
    for k in range(WIDTH):
        row = s.lane[min(first + k, last - 1)]
        entry = s.entries[row]
        number = s.numbers[row]
        for j in range(beads):
            for c in range(3):
                r[WIDTH * (3 * j + c) + k] = s.x[3 * <Py_ssize_t> s.slot[entry + j] + c]
        for j in range(own):
            r[WIDTH * (3 * beads + j) + k] = s.number[number + j]
        if more != NULL:
            for j in range(3 * beads):
                r[WIDTH * (3 * beads + own + j) + k] = more[3 * entry + j]


cdef void _evaluate(const System* s, Py_ssize_t block, double* registers) noexcept nogil:
    """g and its gradient, of all rows of a block."""
    cdef const Function* f
    cdef Py_ssize_t g, chunk, first, last, row
    cdef int program, k, c
    for g in range(s.groups[block], s.groups[block + 1]):
        program = s.group[3 * g]
        last = s.group[3 * g + 2]
        f = s.functions + program
        prepare(f, registers)
        for chunk in range(n_blocks(last - s.group[3 * g + 1], WIDTH)):
            first = s.group[3 * g + 1] + WIDTH * chunk
            _load(s, first, last, program, NULL, registers + WIDTH * f.n_constants)
            evaluate(f, registers)
            for k in range(min(last - first, <Py_ssize_t> WIDTH)):
                row = s.lane[first + k]
                s.value[row] = registers[WIDTH * f.outputs[0] + k]
                for c in range(3 * s.beads[program]):
                    s.gradient[3 * <Py_ssize_t> s.entries[row] + c] = registers[WIDTH * f.outputs[1 + c] + k]
    for g in range(s.blocks[block], s.blocks[block + 1]):
        if s.turns[g] < s.turns[g + 1]:
            _pass_on(s, g)


cdef void _pass_on(const System* s, Py_ssize_t component) noexcept nogil:
    """Gradients of places to the beads of bodies and, as torques, to their rotations."""
    cdef double force[3]
    cdef double torque[3]
    cdef Py_ssize_t row, first, e, i, slot
    for row in range(s.rows[component], s.rows[component + 1]):
        first = s.entries[row] + s.beads[s.program[row]]
        for i in range(3 * first, 3 * s.entries[row + 1]):
            s.gradient[i] = 0.0
        for e in range(s.entries[row], first):
            i = s.into[e]
            if i < 0:
                continue
            slot = s.slot[e]
            into_body(s.R + 9 * <Py_ssize_t> s.turn[slot], s.gradient + 3 * e, force)
            cross(s.arm + 3 * slot, force, torque)
            add_scaled(1.0, s.gradient + 3 * e, s.gradient + 3 * i)
            add_scaled(1.0, torque, s.gradient + 3 * (i + 1))


cdef inline double _along_turn(const System* s, Py_ssize_t slot, const double* a, const double* b,
                               bint bent) noexcept nogil:
    """a times the angle by which an impulse b turns a body: at once, or `bent` by the flight between the two."""
    cdef const double* rate = s.rate + 3 * <Py_ssize_t> s.turn[slot]
    cdef const double* K = s.bent + 9 * <Py_ssize_t> s.turn[slot]
    if bent:
        return a[0] * dot(K, b) + a[1] * dot(K + 3, b) + a[2] * dot(K + 6, b)
    return a[0] * rate[0] * b[0] + a[1] * rate[1] * b[1] + a[2] * rate[2] * b[2]


cdef void _assemble(const System* s, Py_ssize_t component, const double* left, const double* right,
                    bint bent) noexcept nogil:
    """The matrix left M^-1 right^T; `bent` where a flight leads from the right to the left."""
    cdef Py_ssize_t i, p
    cdef const int32_t* q
    cdef double w
    cdef Py_ssize_t slot
    for i in range(s.pattern[s.rows[component]], s.pattern[s.rows[component + 1]]):
        s.matrix[i] = 0.0
    for p in range(s.products[component], s.products[component + 1]):
        q = s.product + 4 * p
        slot = s.slot[q[2]]
        if s.kind[slot] == TURN:
            s.matrix[q[0]] += _along_turn(
                s, slot, left + 3 * <Py_ssize_t> q[2], right + 3 * <Py_ssize_t> q[3], bent)
            if q[0] != q[1]:
                s.matrix[q[1]] += _along_turn(
                    s, slot, left + 3 * <Py_ssize_t> q[3], right + 3 * <Py_ssize_t> q[2], bent)
            continue
        w = s.w[slot]
        s.matrix[q[0]] += w * dot(left + 3 * <Py_ssize_t> q[2], right + 3 * <Py_ssize_t> q[3])
        if q[0] != q[1]:
            s.matrix[q[1]] += w * dot(left + 3 * <Py_ssize_t> q[3], right + 3 * <Py_ssize_t> q[2])


cdef Py_ssize_t _factorise(const System* s, Py_ssize_t component, double* dense) noexcept nogil:
    """L and U in place of the matrix; -1, or the first row that has no pivot."""
    cdef Py_ssize_t base = s.rows[component], i, j, p, q
    cdef double factor, whole
    for i in range(base, s.rows[component + 1]):
        for p in range(s.pattern[i], s.pattern[i + 1]):
            dense[s.column[p] - base] = s.matrix[p]
        whole = s.matrix[s.diagonal[i]]
        for p in range(s.pattern[i], s.diagonal[i]):
            j = s.column[p]
            factor = dense[j - base] * s.inverse[j]
            dense[j - base] = factor
            for q in range(s.diagonal[j] + 1, s.pattern[j + 1]):
                dense[s.column[q] - base] -= factor * s.matrix[q]
        for p in range(s.pattern[i], s.pattern[i + 1]):
            s.matrix[p] = dense[s.column[p] - base]
        if not (s.matrix[s.diagonal[i]] > LEAST_PIVOT * fabs(whole)):
            return i
        s.inverse[i] = 1.0 / s.matrix[s.diagonal[i]]
    return -1


cdef void _solve(const System* s, Py_ssize_t component, double* right) noexcept nogil:
    """The solution, in place of the right-hand side (rows,)."""
    cdef Py_ssize_t i, p
    cdef double sum
    for i in range(s.rows[component], s.rows[component + 1]):
        sum = right[i]
        for p in range(s.pattern[i], s.diagonal[i]):
            sum -= s.matrix[p] * right[s.column[p]]
        right[i] = sum
    for i in range(s.rows[component + 1] - 1, s.rows[component] - 1, -1):
        sum = right[i]
        for p in range(s.diagonal[i] + 1, s.pattern[i + 1]):
            sum -= s.matrix[p] * right[s.column[p]]
        right[i] = sum * s.inverse[i]


cdef void _push(const System* s, Py_ssize_t component, const double* gradient, const double* multiplier, double factor,
                double* vectors, double turning) noexcept nogil:
    """vectors (slots, 3) += factor M^-1 gradient^T multiplier; angular momenta += turning gradient^T multiplier."""
    cdef Py_ssize_t row, e, slot
    for row in range(s.rows[component], s.rows[component + 1]):
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = s.slot[e]
            if s.kind[slot] == TURN:
                add_scaled(turning * s.w[slot] * multiplier[row], gradient + 3 * e, vectors + 3 * slot)
            else:
                add_scaled(factor * s.w[slot] * multiplier[row], gradient + 3 * e, vectors + 3 * slot)


cdef void _rates(const System* s, Py_ssize_t component, const double* vectors) noexcept nogil:
    """right = G vectors: of velocities, and of angular momenta over moments of inertia."""
    cdef Py_ssize_t row, e, slot
    cdef double sum
    for row in range(s.rows[component], s.rows[component + 1]):
        sum = 0.0
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = s.slot[e]
            if s.kind[slot] == BEAD:
                sum += dot(s.gradient + 3 * e, vectors + 3 * slot)
            elif s.kind[slot] == TURN:
                sum += _along_turn(s, slot, s.gradient + 3 * e, vectors + 3 * slot, False)
        s.right[row] = sum


cdef double _beyond(const System* s, Py_ssize_t row) noexcept nogil:
    """How far it is to where a constraint holds, to first order, in units of how far it may be."""
    cdef double square = 0.0, largest = 0.0, scale = s.scale[row]
    cdef Py_ssize_t e
    cdef const double* x
    cdef int c
    for e in range(s.entries[row], s.entries[row] + s.beads[s.program[row]]):
        square += dot(s.gradient + 3 * e, s.gradient + 3 * e)
        x = s.x + 3 * <Py_ssize_t> s.slot[e]
        for c in range(3):
            largest = max(largest, fabs(x[c]))
    # Far from the origin coordinates have no better resolution.
    scale = max(scale, ROUNDING * largest)
    return fabs(s.value[row]) / (sqrt(square) * scale)


cdef bint _holds(const System* s, Py_ssize_t component) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(s.rows[component], s.rows[component + 1]):
        if not (_beyond(s, row) <= 1.0):
            return False
    return True


cdef void _gather(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    cdef Py_ssize_t slot, place, k
    cdef int c
    for slot in range(s.slots[component], s.slots[component + 1]):
        place = s.place[slot]
        if s.kind[slot] == PLACE:
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
        s.w[slot] = world.inverse_mass[place]
        for c in range(3):
            s.x[3 * slot + c] = world.x[3 * place + c]
            s.v[3 * slot + c] = world.v[3 * place + c]
    _find_places(s, component)


cdef void _find_places(const System* s, Py_ssize_t component) noexcept nogil:
    """Where the places of bodies are."""
    cdef Py_ssize_t k, slot
    cdef int c
    for k in range(s.turns[component], s.turns[component + 1]):
        matrix_of(s.q + 4 * k, s.R + 9 * k)
    slot = s.first_turn[component] + s.turns[component + 1] - s.turns[component]
    for slot in range(slot, s.slots[component + 1]):
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
    """Of beads that move."""
    cdef Py_ssize_t slot
    cdef int c
    for slot in range(s.slots[component], s.first_turn[component]):
        if s.w[slot] > 0.0:
            for c in range(3):
                out[3 * <Py_ssize_t> s.place[slot] + c] = vectors[3 * slot + c]
