"""Constraints of any form on several beads each, g_r(x) = 0, solved jointly for all that share beads.

    A        x' = x + h v - M^-1 D^T mu with impulses mu such that all g(x') = 0, D the gradients before the flight;
             then v' = v - M^-1 D^T mu / h, made tangent at x' (RATTLE). Newton's method on mu
    tangent  v - M^-1 G^T nu with G v = 0, G the gradients at x: after B, and after O
    normal   before O: the normal part of a Maxwell velocity is added, see constraints.pxi

Constraints are rows; a component is the rows that movable beads join, directly or through others. Its equations have
the sparse matrix G M^-1 D^T, with an entry where two rows have a bead in common. It is factorised without pivoting, in
an order and with a pattern of fill that the caller has found once: near the constraints it is symmetric and positive
definite. Functions are programs of core/expressions.pxd in the coordinates of the beads of a row and of numbers of its
own; those of WIDTH rows are evaluated at a time, of all components of a block. Which components share a block changes
no bit of any: one that has converged is left alone.

Gradients, and the factors of the matrix at the present positions, are kept with the number of the positions they
belong to: computing them again gives the same bits, so they are not part of the state.

Source: Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen, J. Comput. Phys. 52, 24 (1983).
"""
import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.expressions cimport Function, WIDTH, evaluate, prepare
from medyanpy._kernels.core.noise cimport normals_at
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.philox cimport CONSTRAINTS, NORMALS_BLOCK
from medyanpy._kernels.core.program cimport CONSTRAINTS_LOST, Operation, World, mark_moved
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef enum:
    # Newton's method has converged long before, or never does.
    MOST_ITERATIONS = 40

# How differently a flight may leave the tangent space of a row at its start and meet that at its end; see
# surface_constraints.pyx.
cdef double LARGEST_SINE = 0.25
# No coordinate is better known, relative to its size.
cdef double ROUNDING = 1e-15
# A pivot that has lost so much of its element of the matrix is that of a row which depends on those before.
cdef double LEAST_PIVOT = 1e-14

cdef enum Action:
    START = 0                 # before A: the gradients there
    FLIGHT = 1                # after A
    TANGENT = 2               # after B and O
    NORMAL = 3                # before O
    ADMIT = 4                 # TANGENT when velocities come from outside
    SETTLE = 5                # bring positions from outside to where constraints hold

ACTIONS = {
    "start": START, "flight": FLIGHT, "tangent": TANGENT, "normal": NORMAL, "admit": ADMIT, "settle": SETTLE,
}


# Slots are the beads of a component, fixed ones included; entries the beads of a row.
cdef struct System:
    const int32_t* blocks     # (blocks + 1,) first component
    const int32_t* slots      # (components + 1,) first slot
    const int32_t* rows       # (components + 1,) first row; rows follow each other in the order of elimination
    const int32_t* place      # (slots,)
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
    double* x                 # (slots, 3)
    double* v
    double* w                 # (slots,) inverse masses
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
    cdef readonly Py_ssize_t blocks, rows, entries
    cdef object functions
    # Of which world and positions gradients are, and factors.
    cdef long long world
    cdef long long positions
    cdef long long factored

    def __init__(self, tables, programs, int threads):
        cdef System* s = &self.system
        cdef Py_ssize_t n_slots, n_rows, n_entries
        self.arrays = []
        self.world = self.positions = self.factored = 0
        s.blocks = self.whole(tables["blocks"])
        s.slots = self.whole(tables["slots"])
        s.rows = self.whole(tables["rows"])
        s.place = self.whole(tables["place"])
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


cdef void _assemble(const System* s, Py_ssize_t component, const double* left, const double* right) noexcept nogil:
    """The matrix left M^-1 right^T."""
    cdef Py_ssize_t i, p
    cdef const int32_t* q
    cdef double w
    for i in range(s.pattern[s.rows[component]], s.pattern[s.rows[component + 1]]):
        s.matrix[i] = 0.0
    for p in range(s.products[component], s.products[component + 1]):
        q = s.product + 4 * p
        w = s.w[s.slot[q[2]]]
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
                double* vectors) noexcept nogil:
    """vectors (slots, 3) += factor M^-1 gradient^T multiplier."""
    cdef Py_ssize_t row, e, slot
    for row in range(s.rows[component], s.rows[component + 1]):
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = s.slot[e]
            add_scaled(factor * s.w[slot] * multiplier[row], gradient + 3 * e, vectors + 3 * slot)


cdef void _rates(const System* s, Py_ssize_t component, const double* vectors) noexcept nogil:
    """right = G vectors."""
    cdef Py_ssize_t row, e
    cdef double sum
    for row in range(s.rows[component], s.rows[component + 1]):
        sum = 0.0
        for e in range(s.entries[row], s.entries[row + 1]):
            sum += dot(s.gradient + 3 * e, vectors + 3 * <Py_ssize_t> s.slot[e])
        s.right[row] = sum


cdef double _beyond(const System* s, Py_ssize_t row) noexcept nogil:
    """How far it is to where a constraint holds, to first order, in units of how far it may be."""
    cdef double square = 0.0, largest = 0.0, scale = s.scale[row]
    cdef Py_ssize_t e
    cdef const double* x
    cdef int c
    for e in range(s.entries[row], s.entries[row + 1]):
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


cdef struct Task:
    System* system
    int action
    bint known                # whether gradients belong to the positions
    bint factored             # whether factors do
    double h
    double kT
    int letter


cdef void _gather(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    cdef Py_ssize_t slot, place
    cdef int c
    for slot in range(s.slots[component], s.slots[component + 1]):
        place = s.place[slot]
        s.w[slot] = world.inverse_mass[place]
        for c in range(3):
            s.x[3 * slot + c] = world.x[3 * place + c]
            s.v[3 * slot + c] = world.v[3 * place + c]


cdef void _scatter(const System* s, Py_ssize_t component, const double* vectors, double* out) noexcept nogil:
    """Of beads that move."""
    cdef Py_ssize_t slot
    cdef int c
    for slot in range(s.slots[component], s.slots[component + 1]):
        if s.w[slot] > 0.0:
            for c in range(3):
                out[3 * <Py_ssize_t> s.place[slot] + c] = vectors[3 * slot + c]


cdef int _lost(const System* s, World* world, Py_ssize_t row, double off) noexcept nogil:
    """Record that a row cannot be kept: by the first of its beads that moves."""
    cdef Py_ssize_t e = s.entries[row]
    while s.w[s.slot[e]] == 0.0 and e + 1 < s.entries[row + 1]:
        e += 1
    s.off[row] = off
    return record_fault(world, CONSTRAINTS_LOST, s.place[s.slot[e]], row)


cdef void _newton(const System* s, Py_ssize_t block, double* registers, double* dense) noexcept nogil:
    """Find mu of all components of a block such that their constraints hold, and move x to there."""
    cdef Py_ssize_t component, row
    cdef int _
    cdef bint any_active
    for component in range(s.blocks[block], s.blocks[block + 1]):
        s.active[component] = 1
        for row in range(s.rows[component], s.rows[component + 1]):
            s.multiplier[row] = 0.0
    for _ in range(MOST_ITERATIONS):
        _evaluate(s, block, registers)
        any_active = False
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if s.active[component] != 1:
                continue
            if _holds(s, component):
                s.active[component] = 0
                continue
            _assemble(s, component, s.gradient, s.start)
            if _factorise(s, component, dense) >= 0:
                s.active[component] = -1
                continue
            any_active = True
            for row in range(s.rows[component], s.rows[component + 1]):
                s.right[row] = s.value[row]
            _solve(s, component, s.right)
            for row in range(s.rows[component], s.rows[component + 1]):
                s.multiplier[row] += s.right[row]
            _push(s, component, s.start, s.right, -1.0, s.x)
        if not any_active:
            return


cdef int _blame(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    """Of a component that has not converged: its row that is furthest off."""
    cdef Py_ssize_t row, worst = s.rows[component]
    cdef double off, largest = -1.0
    for row in range(s.rows[component], s.rows[component + 1]):
        off = _beyond(s, row)
        if not (off <= largest):
            worst = row
            largest = off
            if not (off == off):
                break
    return _lost(s, world, worst, largest)


cdef int _check_flight(const System* s, Py_ssize_t component, World* world, double h) noexcept nogil:
    """Whether each row has come back on the sheet it started from: its gradient has not turned round, and the chord
    leaves its tangent space as it meets that at the end, see surface_constraints.pyx."""
    cdef Py_ssize_t row, e, slot, place
    cdef double chord[3]
    cdef double leaves, meets, before, after, turned, square, near
    cdef int c, fault = 0
    for row in range(s.rows[component], s.rows[component + 1]):
        leaves = meets = before = after = turned = square = 0.0
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = s.slot[e]
            place = s.place[slot]
            turned += s.w[slot] * dot(s.start + 3 * e, s.gradient + 3 * e)
            before += dot(s.start + 3 * e, s.start + 3 * e)
            after += dot(s.gradient + 3 * e, s.gradient + 3 * e)
            if s.w[slot] == 0.0:
                continue
            for c in range(3):
                chord[c] = (s.x[3 * slot + c] - world.x[3 * place + c]) + h * s.v[3 * slot + c]
            leaves += dot(chord, s.start + 3 * e)
            meets += dot(chord, s.gradient + 3 * e)
            square += dot(chord, chord)
        leaves = leaves / sqrt(before) + meets / sqrt(after)
        # Beads at rest move by what they were off.
        near = 16.0 * s.scale[row] * s.scale[row]
        if not (turned > 0.0 and leaves * leaves <= LARGEST_SINE * LARGEST_SINE * square + near):
            fault |= _lost(s, world, row, fabs(leaves) / s.scale[row])
    return fault


cdef void _draw(const System* s, Py_ssize_t component, World* world, const Task* t) noexcept nogil:
    """u: a Maxwell velocity for each bead."""
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef Py_ssize_t first = s.slots[component], slot
    cdef double scale
    cdef int count, i
    while first < s.slots[component + 1]:
        count = <int> min(<Py_ssize_t> NORMALS_BLOCK, s.slots[component + 1] - first)
        normals_at(world, s.place + first, count, t.letter, CONSTRAINTS, 0, gx, gy, gz)
        for i in range(count):
            slot = first + i
            scale = sqrt(t.kT * s.w[slot])
            s.u[3 * slot] = scale * gx[i]
            s.u[3 * slot + 1] = scale * gy[i]
            s.u[3 * slot + 2] = scale * gz[i]
        first += count


cdef int _one_block(const Task* t, World* world, Py_ssize_t block, double* registers, double* dense) noexcept nogil:
    cdef System* s = t.system
    cdef Py_ssize_t component, i, failed
    cdef int fault = 0
    for component in range(s.blocks[block], s.blocks[block + 1]):
        _gather(s, component, world)
    if t.action == FLIGHT or t.action == SETTLE:
        if t.action == SETTLE:
            _evaluate(s, block, registers)
        for i in range(3 * s.entries[s.rows[s.blocks[block]]], 3 * s.entries[s.rows[s.blocks[block + 1]]]):
            s.start[i] = s.gradient[i]
        _newton(s, block, registers, dense)
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if s.active[component] != 0:
                fault |= _blame(s, component, world)
            elif t.action == FLIGHT:
                fault |= _check_flight(s, component, world, t.h)
        if fault != 0:
            return fault
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _scatter(s, component, s.x, world.x)
            if t.action == FLIGHT:
                _push(s, component, s.start, s.multiplier, -1.0 / t.h, s.v)
    elif not t.known:
        _evaluate(s, block, registers)
    if t.action == START or t.action == SETTLE:
        return 0
    for component in range(s.blocks[block], s.blocks[block + 1]):
        if not t.factored:
            _assemble(s, component, s.gradient, s.gradient)
            failed = _factorise(s, component, dense)
            if failed >= 0:
                fault |= _lost(s, world, failed, 0.0)
                continue
        if t.action == NORMAL:
            _draw(s, component, world, t)
            _rates(s, component, s.u)
            _solve(s, component, s.right)
            _push(s, component, s.gradient, s.right, 1.0, s.v)
        else:
            _rates(s, component, s.v)
            _solve(s, component, s.right)
            _push(s, component, s.gradient, s.right, -1.0, s.v)
        _scatter(s, component, s.v, world.v)
    return fault


cdef int _blocks(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    cdef System* s = t.system
    cdef Py_ssize_t block
    cdef int fault = 0
    for block in range(first, last):
        fault |= _one_block(t, world, block, s.registers + thread * s.room, s.dense + thread * s.longest)
    return fault


cdef class JointConstraints(Operation):
    """One of ACTIONS on all rows of a JointSystem; `names(row)` says what a row is, for messages."""
    cdef JointSystem joint
    cdef Task task
    cdef double h
    cdef readonly object names

    def __init__(self, JointSystem joint, str action, names, double h=0.0, double kT=0.0, int letter=0):
        self.joint = joint
        self.names = names
        self.task.system = &joint.system
        self.task.action = ACTIONS[action]
        self.h = h
        self.task.kT = kT
        self.task.letter = letter

    cdef int run(self, World* world) noexcept nogil:
        cdef int action = self.task.action, fault
        # Whoever writes from outside tells of it only afterwards; a flight leads away from what is known.
        self.task.known = (
            self.joint.world == world.number and self.joint.positions == world.positions
            and (action == START or action == TANGENT or action == NORMAL)
        )
        self.task.factored = self.task.known and self.joint.factored == world.positions
        if action == START and self.task.known:
            return 0
        self.task.h = self.h * world.pace
        if action == SETTLE:
            mark_moved(world)
        fault = over_blocks(_blocks, &self.task, world, self.joint.blocks, 1)
        if fault != 0 or action == SETTLE:
            # The numbers of positions start with 1.
            self.joint.positions = self.joint.factored = 0
        else:
            self.joint.world = world.number
            self.joint.positions = world.positions
            self.joint.factored = 0 if action == START else world.positions
        if fault == CONSTRAINTS_LOST:
            world.fault.value = self.joint.system.off[world.fault.triangle]
        return fault


# The Fixman potential ------------------------------------------------------------------------------------------------
#
#     U = kT/2 [ln det T - sum_r ln |G_r|^2],   T = G M^-1 G^T,   G_r of the beads that move
#     dU/dx = kT sum_r H_r z_r,   z_r = M^-1 sum_k (T^-1)_rk G_k - G_r/|G_r|^2
#
# with the second derivatives H_r of row r. Programs give H_r z_r from coordinates and z_r.


cdef struct MetricTask:
    System* system
    const Function* functions
    const unsigned char* counts    # (components,) which have the potential
    double kT
    double* z                 # (entries, 3)
    double* energy            # (components,)
    double* registers         # (threads, room)
    Py_ssize_t room


cdef int _metric(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef MetricTask* t = <MetricTask*> task
    cdef System* s = t.system
    cdef double* registers = s.registers + thread * s.room
    cdef double* dense = s.dense + thread * s.longest
    cdef const Function* f
    cdef double energy, square
    cdef Py_ssize_t block, component, row, r, e, g, chunk, lane, lanes, failed, slot
    cdef int c, k, program, fault = 0
    for block in range(first, last):
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _gather(s, component, world)
        _evaluate(s, block, registers)
        for component in range(s.blocks[block], s.blocks[block + 1]):
            t.energy[component] = 0.0
            if not t.counts[component]:
                continue
            _assemble(s, component, s.gradient, s.gradient)
            failed = _factorise(s, component, dense)
            if failed >= 0:
                fault |= _lost(s, world, failed, 0.0)
                continue
            energy = 0.0
            for row in range(s.rows[component], s.rows[component + 1]):
                square = 0.0
                for e in range(s.entries[row], s.entries[row + 1]):
                    if s.w[s.slot[e]] > 0.0:
                        square += dot(s.gradient + 3 * e, s.gradient + 3 * e)
                if world.want_energy:
                    energy += log_(s.matrix[s.diagonal[row]]) - log_(square)
                for r in range(s.rows[component], s.rows[component + 1]):
                    s.right[r] = 1.0 if r == row else 0.0
                _solve(s, component, s.right)
                for slot in range(3 * s.slots[component], 3 * s.slots[component + 1]):
                    s.u[slot] = 0.0
                _push(s, component, s.gradient, s.right, 1.0, s.u)
                for e in range(s.entries[row], s.entries[row + 1]):
                    for c in range(3):
                        t.z[3 * e + c] = 0.0
                        if s.w[s.slot[e]] > 0.0:
                            t.z[3 * e + c] = s.u[3 * <Py_ssize_t> s.slot[e] + c] - s.gradient[3 * e + c] / square
            t.energy[component] = 0.5 * t.kT * energy
        registers = t.registers + thread * t.room
        for g in range(s.groups[block], s.groups[block + 1]):
            program = s.group[3 * g]
            f = t.functions + program
            prepare(f, registers)
            lanes = s.group[3 * g + 2]
            for chunk in range(n_blocks(lanes - s.group[3 * g + 1], WIDTH)):
                lane = s.group[3 * g + 1] + WIDTH * chunk
                _load(s, lane, lanes, program, t.z, registers + WIDTH * f.n_constants)
                evaluate(f, registers)
                for k in range(min(lanes - lane, <Py_ssize_t> WIDTH)):
                    row = s.lane[lane + k]
                    for c in range(3 * s.beads[program]):
                        t.z[3 * <Py_ssize_t> s.entries[row] + c] = registers[WIDTH * f.outputs[c] + k]
        registers = s.registers + thread * s.room
        for component in range(s.blocks[block], s.blocks[block + 1]):
            for slot in range(3 * s.slots[component], 3 * s.slots[component + 1]):
                s.u[slot] = 0.0
            if not t.counts[component]:
                continue
            for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
                add_scaled(-t.kT, t.z + 3 * e, s.u + 3 * <Py_ssize_t> s.slot[e])
            for slot in range(s.slots[component], s.slots[component + 1]):
                # One number added once: two equal forces give exactly twice one.
                if s.w[slot] > 0.0:
                    add_scaled(1.0, s.u + 3 * slot, world.f + 3 * <Py_ssize_t> s.place[slot])
    return fault


cdef class JointMetric(Operation):
    """The potential of those components that `counts`; programs give H z of each program of the system, `names` is as
    of JointConstraints. still (m,): slots of beads that do not move, sorted by place."""
    cdef JointSystem joint
    cdef MetricTask task
    cdef Functions functions
    cdef const unsigned char[::1] counts
    cdef const int32_t[::1] still
    cdef readonly object names

    def __init__(self, str name, JointSystem joint, programs, const unsigned char[::1] counts,
                 const int32_t[::1] still, double kT, int threads, names):
        self.name = name
        self.still = still
        self.names = names
        self.acts_on_points = False
        self.joint = joint
        self.functions = Functions(programs)
        self.counts = counts
        self.task.system = &joint.system
        self.task.functions = self.functions.function
        self.task.counts = &counts[0]
        self.task.kT = kT
        self.task.z = joint.work(3 * joint.entries)
        self.task.energy = joint.work(joint.system.components)
        self.task.room = WIDTH * self.functions.most_registers
        self.task.registers = joint.work(threads * self.task.room)

    cdef int run(self, World* world) noexcept nogil:
        cdef System* s = self.task.system
        cdef double sum[3]
        cdef Py_ssize_t i, k
        cdef int fault = over_blocks(_metric, &self.task, world, self.joint.blocks, 1)
        # Beads that do not move may be in several components: of each its slots, one after another.
        for i in range(self.still.shape[0]):
            if i == 0 or s.place[self.still[i]] != s.place[self.still[i - 1]]:
                sum[0] = sum[1] = sum[2] = 0.0
                k = i
                while k < self.still.shape[0] and s.place[self.still[k]] == s.place[self.still[i]]:
                    add_scaled(1.0, s.u + 3 * <Py_ssize_t> self.still[k], sum)
                    k += 1
                add_scaled(1.0, sum, world.f + 3 * <Py_ssize_t> s.place[self.still[i]])
        # A system of its own: what it holds is of no use to any other operation.
        self.energy = ordered_sum(self.task.energy, self.joint.system.components) if world.want_energy else 0.0
        return fault
