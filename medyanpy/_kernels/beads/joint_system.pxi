# Rows, components and bodies of joint_constraints.pyx: tables, work space and matrices. Places: joint_places.pxi.

# Slots are what the rows of a component depend on, in this order: its beads, fixed ones included, the rotations of its
# bodies, and the places that are fixed to these. A row has an entry for each of its beads and places; behind these, for
# each of its bodies, one for the bead and one for the rotation.
#
# Of an in-triangle point there are two slots: a bead, which is its motion in the plane of its triangle, and after all
# others a spot, which is where it is. A row has an entry for the spot; behind, one for the motion and, where its
# membrane moves, three for the corners of its triangle, whose slots change as it crosses edges. All vertices of such a
# membrane are slots, the last of the beads.
cdef enum Kind:
    BEAD = 0
    TURN = 1
    PLACE = 2
    SPOT = 3


cdef struct System:
    const int32_t* blocks     # (blocks + 1,) first component
    const int32_t* slots      # (components + 1,) first slot
    const int32_t* rows       # (components + 1,) first row; rows follow each other in the order of elimination
    const int32_t* place      # (slots,) that of the body for TURN and PLACE, of the point for SPOT
    const int32_t* kind       # (slots,)
    const int32_t* turn       # (slots,) which rotation it is or follows, of SPOT which point it is; -1 of beads
    const double* arm         # (slots, 3) of places, in the frame of the body
    const int32_t* turns      # (components + 1,) first rotation
    const int32_t* first_turn  # (components,) its slot
    const int32_t* body       # (turns,) the slot of the bead
    const int32_t* parts      # (turns,) of free rotation
    # (entries,) of places and spots, where their gradients go: the entry of the bead. -1 of others, -2 of entries
    # behind for points.
    const int32_t* into
    const int32_t* entries    # (rows + 1,) first entry
    int32_t* slot             # (entries,) those of corners as points are now
    const int32_t* points     # (components + 1,) first in-triangle point
    const int32_t* motion     # (points,) its slot as a bead
    const int32_t* spot       # (points,) its slot as a spot
    const int32_t* rides      # (points,) whether its membrane moves
    const int32_t* shift      # (points,) from places to slots of vertices of this
    const int32_t* vertices   # (components,) first slot of vertices; they end where rotations begin
    const int32_t* row_of     # (entries,)
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
    double* push              # (slots, 3) recoils of points on vertices
    int32_t* slot0            # (entries,) as before a flight
    int32_t* head             # (slots,) of vertices: their entries, as lists; -1 without
    int32_t* next             # (entries,)
    int32_t* face             # (points,)
    double* weights           # (points, 2)
    double* normal            # (points, 3) of unit length
    int32_t* face0            # (points,) the same before a flight, with the velocity and the place in space
    double* weights0
    double* v0                # (points, 3)
    double* x0                # (points, 3)
    double* v1                # (points, 3) and after it
    double* carried           # (points, 12) what becomes of steps in the plane: see joint_points.pxi
    double* last_value        # (rows,) of the iteration before, with the step that was found and the one taken
    double* last_right
    double* last_step
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
    cdef readonly Py_ssize_t blocks, rows, entries, turns, points
    cdef object functions
    # Of which world and positions gradients are, and factors.
    cdef long long world
    cdef long long positions
    cdef long long factored

    def __init__(self, tables, programs, int threads):
        cdef System* s = &self.system
        cdef Py_ssize_t n_slots, n_rows, n_entries, n_turns, n_points
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
        s.slot = <int32_t*> self.whole(tables["slot"])
        s.points = self.whole(tables["points"])
        s.motion = self.whole(tables["motion"])
        s.spot = self.whole(tables["spot"])
        s.rides = self.whole(tables["rides"])
        s.shift = self.whole(tables["shift"])
        s.vertices = self.whole(tables["vertices"])
        s.row_of = self.whole(tables["row_of"])
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
        self.points = n_points = len(tables["motion"])
        s.push = self.work(3 * n_slots if n_points else 0)
        s.slot0 = self.integers(n_entries if n_points else 0)
        s.head = self.integers(n_slots if n_points else 0)
        s.next = self.integers(n_entries if n_points else 0)
        s.face = self.integers(n_points)
        s.weights = self.work(2 * n_points)
        s.normal = self.work(3 * n_points)
        s.face0 = self.integers(n_points)
        s.weights0 = self.work(2 * n_points)
        s.v0 = self.work(3 * n_points)
        s.x0 = self.work(3 * n_points)
        s.v1 = self.work(3 * n_points)
        s.carried = self.work(12 * n_points)
        s.value = self.work(n_rows)
        s.last_value = self.work(n_rows if n_points else 0)
        s.last_right = self.work(n_rows if n_points else 0)
        s.last_step = self.work(n_rows if n_points else 0)
        s.gradient = self.work(3 * n_entries)
        s.start = self.work(3 * n_entries)
        s.matrix = self.work(len(tables["column"]))
        s.inverse = self.work(n_rows)
        s.right = self.work(n_rows)
        s.multiplier = self.work(n_rows)
        s.off = self.work(n_rows)
        s.active = self.integers(s.components)
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

    cdef int32_t* integers(self, Py_ssize_t n) except? NULL:
        return <int32_t*> self.whole(np.full(max(1, n), -1, np.int32))


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


cdef inline bint _is_under_points(const System* s, Py_ssize_t component, Py_ssize_t slot) noexcept nogil:
    """Whether a slot is a vertex of a membrane that moves under points."""
    return s.vertices[component] <= slot < s.first_turn[component]


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
        if s.turns[g] < s.turns[g + 1] or s.points[g] < s.points[g + 1]:
            _pass_on(s, g)


cdef void _pass_on(const System* s, Py_ssize_t component) noexcept nogil:
    """Gradients of places to the beads of bodies and, as torques, to their rotations; of spots, as forces on points, to
    the motion in the plane and to the corners of triangles."""
    cdef double force[3]
    cdef double torque[3]
    cdef const double* normal
    cdef Py_ssize_t row, first, e, i, slot, k
    for row in range(s.rows[component], s.rows[component + 1]):
        first = s.entries[row] + s.beads[s.program[row]]
        for i in range(3 * first, 3 * s.entries[row + 1]):
            s.gradient[i] = 0.0
        for e in range(s.entries[row], first):
            i = s.into[e]
            if i < 0:
                continue
            slot = s.slot[e]
            if s.kind[slot] == SPOT:
                k = s.turn[slot]
                normal = s.normal + 3 * k
                add_scaled(1.0, s.gradient + 3 * e, s.gradient + 3 * i)
                add_scaled(-dot(normal, s.gradient + 3 * e), normal, s.gradient + 3 * i)
                if s.rides[k]:
                    add_scaled((1.0 - s.weights[2 * k]) - s.weights[2 * k + 1],
                               s.gradient + 3 * e, s.gradient + 3 * (i + 1))
                    add_scaled(s.weights[2 * k], s.gradient + 3 * e, s.gradient + 3 * (i + 2))
                    add_scaled(s.weights[2 * k + 1], s.gradient + 3 * e, s.gradient + 3 * (i + 3))
                continue
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
    if s.points[component] < s.points[component + 1]:
        _add_vertices(s, component, left, right, s.slot0 if bent else s.slot)


cdef void _add_vertices(const System* s, Py_ssize_t component, const double* left, const double* right,
                        const int32_t* slots) noexcept nogil:
    """The part of vertices, which rows have in common as points are on the same triangles; `slots` are of the right."""
    cdef Py_ssize_t first = s.entries[s.rows[component]], last = s.entries[s.rows[component + 1]], e, f, at, before, end
    cdef Py_ssize_t column
    cdef int32_t slot
    # Lists begin with the first entry.
    for e in range(last - 1, first - 1, -1):
        slot = slots[e]
        if _is_under_points(s, component, slot):
            s.next[e] = s.head[slot]
            s.head[slot] = <int32_t> e
    for e in range(first, last):
        slot = s.slot[e]
        if not _is_under_points(s, component, slot) or s.w[slot] == 0.0:
            continue
        f = s.head[slot]
        while f >= 0:
            # The pattern has all pairs of such rows.
            column = s.row_of[f]
            before = s.pattern[s.row_of[e]]
            end = s.pattern[s.row_of[e] + 1]
            while before < end - 1:
                at = (before + end) // 2
                if s.column[at] <= column:
                    before = at
                else:
                    end = at
            s.matrix[before] += s.w[slot] * dot(left + 3 * e, right + 3 * f)
            f = s.next[f]
    for e in range(first, last):
        slot = slots[e]
        if _is_under_points(s, component, slot):
            s.head[slot] = -1


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
            if factor == 0.0:
                # Most rows of points that are far from each other.
                continue
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
                double* vectors, double turning, const int32_t* slots) noexcept nogil:
    """vectors (slots, 3) += factor M^-1 gradient^T multiplier; angular momenta += turning gradient^T multiplier."""
    cdef Py_ssize_t row, e, slot
    for row in range(s.rows[component], s.rows[component + 1]):
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = slots[e]
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
