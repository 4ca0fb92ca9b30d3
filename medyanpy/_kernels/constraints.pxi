# Constraint impulses of filaments, solved jointly for each filament: the source of constraints.pyx and of
# constraints_twistable.pyx, which say how many WAYS a link has to pull at its nodes.
#
#     D_l = x_(l+1) - x_l,   p_l the director of link l, where WAYS is 2
#     length          (|D_l|^2 - L_l^2) / 2 = 0     impulse mu     along D on the nodes
#     right angle     D_l.p_l = 0                   impulse kappa  along p on the nodes, along D on the director
#     unit director   (|p_l|^2 - 1) / 2 = 0         impulse nu     along p on the director
#
#     A        x' = x + h v - M^-1 J(x)^T mu with impulses mu such that all sigma(x') = 0; then
#              v' = v - M^-1 J(x)^T mu / h, and v' is made tangent at x'. Newton's method on mu.
#     tangent  v - M^-1 J^T nu with J v = 0: one solve with the same matrix
#     O        before it, the normal part of a Maxwell velocity is added to the tangent one, so that what O acts on has
#              the full Maxwell distribution, of which the projection afterwards leaves the constrained one
#
# With the directions g = (d, e) of the impulses on nodes, link and director before the flight, and X = (D, p), these
# after it so far, the matrix is block-tridiagonal, with blocks of WAYS x WAYS:
#
#     -w_l X_l.g_(l-1),   (w_l + w_(l+1)) X_l.g_l + [director],   -w_(l+1) X_l.g_(l+1)
#
# where w are inverse masses of nodes. A director is in the constraints of its own link only: nu is eliminated there,
# and with the inverse mass a of the director [director] is a (D.d - (D.e)(p.d)/(p.e)) for the right angle, else 0.
#
# Source: BAGOGAB, "Splitting strategy", A; Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen,
# J. Comput. Phys. 52, 24 (1983).
#
# Filaments are worked on together, LANES at a time, one in each lane of a vector. A filament that is long is cut into
# SEGMENTS segments instead, and a ring is a segment that is its own neighbour: where a lane has a neighbour, the
# coefficients that lead out of it are moved to the right-hand side, and what they multiply is found from a small system
# for the ends of all lanes (the "spike" algorithm; Polizzi & Sameh, Parallel Comput. 32, 177 (2006)). Lanes are padded
# with links that do nothing. Which lanes run together, and how many, changes no bit of any: those that have converged
# take steps of length zero.
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from medyanpy._kernels.box cimport displacements
from medyanpy._kernels.lanes cimport LANES, Lanes, dot, each_of, inverse_of, lanes_of, pick
from medyanpy._kernels.parallel cimport over_blocks, record_fault
from medyanpy._kernels.philox cimport CONSTRAINTS, NORMALS_BLOCK, normals_block
from medyanpy._kernels.program cimport NOT_CONVERGED, Operation, World

cdef extern from * nogil:
    """
    #define MEDYANPY_SEGMENTS 8
    /* What is `inline` below is so however long it is: gcc would call it once a row, and all of a row would go through
       memory. */
    #undef CYTHON_INLINE
    #define CYTHON_INLINE inline __attribute__((always_inline))
    """
    enum:
        # Of a long filament, in every instruction set: bits depend on where it is cut.
        SEGMENTS "MEDYANPY_SEGMENTS"
        # Vectors that they fill, and batches per block.
        MOST_PARTS "(MEDYANPY_SEGMENTS / MEDYANPY_LANES)"
        BLOCK "(16 / MEDYANPY_LANES)"

cdef enum:
    # Newton's method has converged long before, or never does.
    MOST_ITERATIONS = 40
    # Vectors of work space for each link of a part, and for the ends of its arrays.
    PER_LINK = 8 + 9 * WAYS + 2 * WAYS * WAYS + 9 * (WAYS - 1)
    FOR_ENDS = 64

cdef enum Action:
    FLIGHT = 0                # after A
    TANGENT = 1               # after B and O
    NORMAL = 2                # before O
    SETTLE = 3                # bring positions from outside to where links have their lengths

LANE_COUNT = LANES
SEGMENT_COUNT = SEGMENTS
ACTIONS = {"flight": FLIGHT, "tangent": TANGENT, "normal": NORMAL, "settle": SETTLE}


# Rows are those of vectors: of each batch, links + 1 for its first part, then as many for the next.
cdef struct Filaments:
    const int32_t* parts      # (batches,) how many vectors its lanes fill
    const int32_t* links      # (batches,) in each lane, padding included
    const int32_t* start      # (batches,) first row
    const int32_t* node       # (rows, LANES) place of a node; where there is none, of another of the same filament
    const int32_t* director   # (rows, LANES) of the director of the link from this node likewise, if WAYS is 2
    const double* square      # (rows, LANES) square of the length of the link from this node to the next, 0: none
    const double* scale       # (rows, LANES) one over it, 0: no link
    const int32_t* owned      # (rows, LANES) whether the lane moves the node: neighbours share the one between them
    const int32_t* next       # (batches, SEGMENTS) the lane that goes on where this one ends, -1: none
    const int32_t* coupled    # (batches,) whether any lane has a next
    double* residual          # (batches, SEGMENTS) where a lane does not converge
    double* work
    Py_ssize_t room           # doubles of work space of one thread


cdef struct Task:
    Filaments table
    Action action
    double tolerance
    double h                  # FLIGHT: its time
    double kT                 # NORMAL: of the noise
    int letter


# LANES of a batch at work. Row l is link l and its first node; vectors have three components one after another, and
# blocks their rows. D, d, mu and delta have a link more at both ends, for those of neighbouring lanes. Where a lane has
# fewer links than others, the next lane's first link follows on its last, in a row of padding.
cdef struct Part:
    int m                     # links
    Lanes* D                  # (m, WAYS, 3) links, and their directors, after the flight as far as it is known
    Lanes* d                  # (m, WAYS, 3) the directions of impulses on nodes
    Lanes* w                  # (m + 1,) inverse masses
    Lanes* v                  # (m + 1, 3)
    Lanes* noise              # (m + 1, 3)
    Lanes* mu                 # (m, WAYS) sums of delta
    Lanes* delta              # (m, WAYS) solution of the last linear system
    Lanes* real               # (m,) 1 where there is a link, 0 for padding
    Lanes* r                  # (m, WAYS) what is left of the constraints
    Lanes* upper              # (m, WAYS, WAYS) of the matrix after elimination
    Lanes* left               # (m, WAYS, WAYS) likewise, of the response to the last link of the lane before
    # The first link of each lane is first - first_left t - first_right u, where t is the last link of the lane before
    # and u the link after those that are eliminated.
    Lanes first[WAYS]
    Lanes first_left[WAYS][WAYS]
    Lanes first_right[WAYS][WAYS]
    Lanes t[WAYS]             # at the last link of the lane before each
    Lanes u[WAYS]             # at the first link of the lane after
    Lanes sum                 # of the squares of what is left
    Lanes active              # 1 where a lane goes on, 0 where it has converged
    # Of directors:
    Lanes* a                  # (m,) inverse masses
    Lanes* spin               # (m, 3) velocities
    Lanes* spin_noise         # (m, 3)
    Lanes* excess             # (m,) what is left of their unit length
    Lanes* shrink             # (m,) sums of a nu
    const Lanes* square
    const Lanes* scale
    const int32_t* node
    const int32_t* director
    const int32_t* owned
    int count[LANES]          # links of each lane


# The last row that was eliminated, kept in registers: each waits for the one before.
cdef struct Row:
    Lanes delta[WAYS]
    Lanes upper[WAYS][WAYS]
    Lanes left[WAYS][WAYS]


cdef struct Batch:
    int m                     # links of every part
    int parts
    bint coupled
    const int32_t* next
    Part part[MOST_PARTS]


cdef void _join(Batch* b) noexcept nogil:
    """t and u of all lanes: what is at their ends solves 2 WAYS equations for each of them."""
    cdef double a[2 * WAYS * SEGMENTS][2 * WAYS * SEGMENTS + 1]
    cdef double factor
    cdef Part* p
    cdef int lanes = LANES * b.parts, ends = 2 * WAYS * lanes
    cdef int k, j, i, q, row, last, here, there
    # Unknowns: the first links of all lanes, then the last ones.
    memset(a, 0, ends * sizeof(a[0]))
    for k in range(lanes):
        j = b.next[k]
        p = &b.part[k // LANES]
        here = k % LANES
        last = max(p.count[here] - 1, 0)
        for i in range(WAYS):
            row = WAYS * k + i
            a[row][row] += 1.0
            a[row][ends] = each_of(p.first + i)[here]
            a[WAYS * lanes + row][WAYS * lanes + row] += 1.0
            a[WAYS * lanes + row][ends] = each_of(p.delta + WAYS * last + i)[here]
            for q in range(WAYS if j >= 0 else 0):
                a[row][WAYS * j + q] += each_of(&p.first_right[i][q])[here]
                a[WAYS * lanes + row][WAYS * j + q] += each_of(p.upper + WAYS * (WAYS * last + i) + q)[here]
        if j >= 0:
            # Of the lane after, in terms of this one.
            p = &b.part[j // LANES]
            there = j % LANES
            for i in range(WAYS):
                row = WAYS * j + i
                for q in range(WAYS):
                    a[row][WAYS * (lanes + k) + q] += each_of(&p.first_left[i][q])[there]
                    a[WAYS * lanes + row][WAYS * (lanes + k) + q] += each_of(
                        p.left + WAYS * (WAYS * (p.count[there] - 1) + i) + q)[there]
    for j in range(ends):
        for i in range(ends):
            if i != j and a[i][j] != 0.0:
                factor = a[i][j] / a[j][j]
                for k in range(j, ends + 1):
                    a[i][k] -= factor * a[j][k]
    for i in range(WAYS):
        for k in range(lanes):
            j = b.next[k]
            if j >= 0:
                row = WAYS * j + i
                each_of(&b.part[k // LANES].u[i])[k % LANES] = a[row][ends] / a[row][row]
                row = WAYS * (lanes + k) + i
                each_of(&b.part[j // LANES].t[i])[j % LANES] = a[row][ends] / a[row][row]


cdef void _share_ends(Batch* b) noexcept nogil:
    """Put the directions at the ends of neighbouring lanes beside the first and last of each."""
    cdef Part* p
    cdef Part* after
    cdef int i, k, c, here, there
    for i in range(b.parts):
        p = &b.part[i]
        for c in range(3 * WAYS):
            (p.d - 3 * WAYS)[c] = lanes_of(0.0)
            p.d[3 * WAYS * b.m + c] = lanes_of(0.0)
    if b.coupled:
        for k in range(LANES * b.parts):
            if b.next[k] >= 0:
                p = &b.part[k // LANES]
                after = &b.part[b.next[k] // LANES]
                here = k % LANES
                there = b.next[k] % LANES
                for c in range(3 * WAYS):
                    each_of(p.d + 3 * WAYS * p.count[here] + c)[here] = each_of(after.d + c)[there]
                    each_of(after.d - 3 * WAYS + c)[there] = each_of(p.d + 3 * WAYS * (p.count[here] - 1) + c)[here]


cdef inline void _follow_first(Part* b, int at) noexcept nogil:
    """The first links in terms of link at + 1 instead of `at`."""
    cdef const Lanes* upper = b.upper + WAYS * WAYS * at
    cdef const Lanes* left = b.left + WAYS * WAYS * at
    cdef Lanes right[WAYS]
    cdef Lanes value
    cdef int i, j, q
    for i in range(WAYS):
        if at == 0:
            b.first[i] = b.delta[i]
            for j in range(WAYS):
                b.first_left[i][j] = left[WAYS * i + j]
                b.first_right[i][j] = upper[WAYS * i + j]
        else:
            for q in range(WAYS):
                right[q] = b.first_right[i][q]
                b.first[i] = b.first[i] - right[q] * b.delta[WAYS * at + q]
            for j in range(WAYS):
                value = lanes_of(0.0)
                for q in range(WAYS):
                    b.first_left[i][j] = b.first_left[i][j] - right[q] * left[WAYS * q + j]
                    value = value - right[q] * upper[WAYS * q + j]
                # Padding is the first link of the lane after.
                b.first_right[i][j] = b.real[at] * value + (1.0 - b.real[at]) * right[j]


cdef inline void _eliminate(Part* b, int at, bint coupled, Row* row) noexcept nogil:
    """Rows `at` of the matrix with the right-hand side r: what is left of them when the rows before are done with.

    `row` holds the one before, and then this one.
    """
    cdef const Lanes* D = b.D + 3 * WAYS * at
    cdef const Lanes* d = b.d + 3 * WAYS * at
    cdef Lanes lower[WAYS][WAYS]
    cdef Lanes upper[WAYS][WAYS]
    cdef Lanes middle[WAYS][WAYS]
    cdef Lanes inverse[WAYS][WAYS]
    cdef Lanes rest[WAYS]
    cdef Lanes ratio, value
    cdef int i, j, q
    for i in range(WAYS):
        rest[i] = b.r[WAYS * at + i]
        for j in range(WAYS):
            lower[i][j] = -b.w[at] * dot(D + 3 * i, d + 3 * (j - WAYS))
            upper[i][j] = -b.w[at + 1] * dot(D + 3 * i, d + 3 * (j + WAYS))
            middle[i][j] = (b.w[at] + b.w[at + 1]) * dot(D + 3 * i, d + 3 * j)
            if i == j:
                # Of padding, where all else is zero, the middle is 1.
                middle[i][j] = middle[i][j] + (1.0 - b.real[at])
    if WAYS == 2:
        ratio = dot(D, d + 3) * inverse_of(dot(D + 3, d + 3) + (1.0 - b.real[at]))
        rest[WAYS - 1] = rest[WAYS - 1] - ratio * b.excess[at]
        middle[WAYS - 1][WAYS - 1] = middle[WAYS - 1][WAYS - 1] + b.a[at] * (dot(D, d) - ratio * dot(D + 3, d))
    if at > 0:
        for i in range(WAYS):
            for q in range(WAYS):
                rest[i] = rest[i] - lower[i][q] * row.delta[q]
                for j in range(WAYS):
                    middle[i][j] = middle[i][j] - lower[i][q] * row.upper[q][j]
    if WAYS == 1:
        inverse[0][0] = inverse_of(middle[0][0])
    else:
        value = inverse_of(middle[0][0] * middle[1][1] - middle[0][1] * middle[1][0])
        inverse[0][0] = middle[1][1] * value
        inverse[0][1] = -middle[0][1] * value
        inverse[1][0] = -middle[1][0] * value
        inverse[1][1] = middle[0][0] * value
    if coupled and at > 0:
        # What leads out of the lane, handed on from row to row.
        for i in range(WAYS):
            for j in range(WAYS):
                middle[i][j] = -lower[i][0] * row.left[0][j]
                for q in range(1, WAYS):
                    middle[i][j] = middle[i][j] - lower[i][q] * row.left[q][j]
    for i in range(WAYS):
        value = inverse[i][0] * rest[0]
        for q in range(1, WAYS):
            value = value + inverse[i][q] * rest[q]
        row.delta[i] = b.delta[WAYS * at + i] = value
        for j in range(WAYS):
            value = inverse[i][0] * upper[0][j]
            for q in range(1, WAYS):
                value = value + inverse[i][q] * upper[q][j]
            row.upper[i][j] = b.upper[WAYS * (WAYS * at + i) + j] = value
            if coupled:
                value = inverse[i][0] * (middle[0][j] if at > 0 else lower[0][j])
                for q in range(1, WAYS):
                    value = value + inverse[i][q] * (middle[q][j] if at > 0 else lower[q][j])
                row.left[i][j] = b.left[WAYS * (WAYS * at + i) + j] = value
    if coupled:
        _follow_first(b, at)


cdef inline void _pull(const Part* b, const Lanes* multiplier, int at, Lanes* out) noexcept nogil:
    """The impulse of link l on its nodes."""
    cdef int c, j
    for c in range(3):
        out[c] = multiplier[WAYS * at] * b.d[3 * WAYS * at + c]
        for j in range(1, WAYS):
            out[c] = out[c] + multiplier[WAYS * at + j] * b.d[3 * (WAYS * at + j) + c]


cdef inline void _impulse(const Part* b, int at, const Lanes* before, const Lanes* after, Lanes* out) noexcept nogil:
    """w J^T multiplier at node l, from what the links before and after it pull."""
    cdef int c
    for c in range(3):
        out[c] = b.w[at] * (before[c] - after[c])


cdef inline void _shrink(
    const Part* b, const Lanes* multiplier, int at, const Lanes* excess, Lanes* out,
) noexcept nogil:
    """a nu of director l, which its own constraint then leaves no other value."""
    cdef const Lanes* p = b.D + 6 * at + 3
    cdef const Lanes* d = b.d + 6 * at
    out[0] = (excess[0] - b.a[at] * multiplier[2 * at + 1] * dot(p, d)) * inverse_of(
        dot(p, d + 3) + (1.0 - b.real[at]))


cdef inline void _turn(
    const Part* b, const Lanes* multiplier, int at, int c, const Lanes* shrink, Lanes* out,
) noexcept nogil:
    """Component c of a J^T multiplier at director l."""
    out[0] = shrink[0] * b.d[6 * at + 3 + c] + b.a[at] * multiplier[2 * at + 1] * b.d[6 * at + c]


cdef inline void _left_over(Part* b, int at, Lanes* sum_of_squares) noexcept nogil:
    """What is left of the constraints of link l; its square, relative to what they shall be, is added to the sum."""
    cdef const Lanes* D = b.D + 3 * WAYS * at
    cdef Lanes value = 0.5 * (dot(D, D) - b.square[at])
    b.r[WAYS * at] = value
    value = value * b.scale[at]
    sum_of_squares[0] = sum_of_squares[0] + value * value
    if WAYS == 2:
        value = dot(D, D + 3)
        b.r[WAYS * at + WAYS - 1] = value
        sum_of_squares[0] = sum_of_squares[0] + (value * value) * b.scale[at]
        value = 0.5 * (dot(D + 3, D + 3) - b.real[at])
        b.excess[at] = value
        sum_of_squares[0] = sum_of_squares[0] + value * value


cdef inline void _move(Part* b, int at, const Lanes* stretch) noexcept nogil:
    """Let the impulses delta change link l, by `stretch`, and its director."""
    cdef Lanes* D = b.D + 3 * WAYS * at
    cdef Lanes change, shrink
    cdef int c
    if WAYS == 2:
        _shrink(b, b.delta, at, b.excess + at, &shrink)
        shrink = b.active * shrink
        b.shrink[at] = b.shrink[at] + shrink
        for c in range(3):
            _turn(b, b.delta, at, c, &shrink, &change)
            D[3 + c] = D[3 + c] - change
    for c in range(3):
        D[c] = D[c] - b.real[at] * stretch[c]


cdef inline void _substitute(Part* b, bint coupled, bint moves) noexcept nogil:
    """The solution, in delta, which is finite where the sum is 0.

    Or else, if it `moves` links, 0 where lanes are not active, and the sum is that of the squares of what is left then.
    """
    cdef Lanes after[WAYS]
    cdef Lanes now[WAYS]
    cdef Lanes pulled[3]
    cdef Lanes pulled_after[3]
    cdef Lanes impulse[3]
    cdef Lanes stretch[3]
    cdef Lanes sum = lanes_of(0.0)
    cdef int at, i, q, c, here
    for i in range(WAYS):
        after[i] = b.u[i]
        b.delta[WAYS * b.m + i] = b.active * b.u[i]
        if moves:
            b.mu[WAYS * b.m + i] = b.mu[WAYS * b.m + i] + b.delta[WAYS * b.m + i]
    if moves:
        _pull(b, b.delta, b.m, pulled_after)
    for at in range(b.m - 1, -2, -1):
        here = WAYS * at
        for i in range(WAYS):
            if at >= 0:
                now[i] = b.delta[here + i]
                for q in range(WAYS):
                    now[i] = now[i] - b.upper[WAYS * (here + i) + q] * after[q]
                if coupled:
                    for q in range(WAYS):
                        now[i] = now[i] - b.left[WAYS * (here + i) + q] * b.t[q]
                    # Padding is the first link of the lane after.
                    now[i] = now[i] + (1.0 - b.real[at]) * b.u[i]
            else:
                now[i] = b.t[i]
        for i in range(WAYS):
            after[i] = now[i]
            if moves:
                (b.delta + here)[i] = b.active * now[i]
                (b.mu + here)[i] = (b.mu + here)[i] + (b.delta + here)[i]
            else:
                (b.delta + here)[i] = now[i]
                # Of a number that is not finite, even 0 times it is not 0.
                sum = sum + 0.0 * now[i]
        if moves:
            _pull(b, b.delta, at, pulled)
            for c in range(3):
                stretch[c] = impulse[c]
            _impulse(b, at + 1, pulled, pulled_after, impulse)
            for c in range(3):
                pulled_after[c] = pulled[c]
            if at + 1 < b.m:
                for c in range(3):
                    stretch[c] = stretch[c] - impulse[c]
                _move(b, at + 1, stretch)
                _left_over(b, at + 1, &sum)
    b.sum = sum


cdef inline void _solve_parts(Batch* b, int parts, bint coupled, bint moves) noexcept nogil:
    cdef Row rows[MOST_PARTS]
    cdef int at, i
    for at in range(b.m):
        for i in range(parts):
            _eliminate(&b.part[i], at, coupled, rows + i)
    if coupled:
        _join(b)
    for i in range(parts):
        _substitute(&b.part[i], coupled, moves)


cdef void _solve_linear(Batch* b, bint moves) noexcept nogil:
    """delta of all parts from their r and excess; see `_substitute`."""
    # Each written out with its numbers by the compiler.
    if not b.coupled:
        _solve_parts(b, 1, False, moves)
    elif b.parts == 1:
        _solve_parts(b, 1, True, moves)
    else:
        _solve_parts(b, MOST_PARTS, True, moves)


cdef bint _solve(Batch* b, double tolerance, double* residual) noexcept nogil:
    """Find mu such that all constraints hold; whether all lanes do, and what is left where one does not."""
    cdef Part* p
    cdef bint converged
    cdef double worst
    cdef int at, i, k, iteration
    for i in range(b.parts):
        p = &b.part[i]
        p.sum = lanes_of(0.0)
        p.active = lanes_of(1.0)
        for at in range(-WAYS, WAYS * (b.m + 1)):
            p.mu[at] = lanes_of(0.0)
        for at in range(b.m):
            _left_over(p, at, &p.sum)
            if WAYS == 2:
                p.shrink[at] = lanes_of(0.0)
    for iteration in range(MOST_ITERATIONS):
        converged = True
        for k in range(LANES * b.parts):
            p = &b.part[k // LANES]
            worst = each_of(&p.sum)[k % LANES]
            residual[k] = 0.0
            if worst <= tolerance * tolerance:
                # This lane is done, however many turns others take.
                each_of(&p.active)[k % LANES] = 0.0
            else:
                converged = False
                residual[k] = sqrt(worst)
        if converged:
            return True
        if b.next[0] > 0:
            # The segments of one filament are done together: they share nodes.
            for i in range(b.parts):
                b.part[i].active = lanes_of(1.0)
        _solve_linear(b, True)
    return False


cdef inline void _fetch(const int32_t* place, const double* rows, Lanes* out) noexcept nogil:
    """Vectors of the beads of a row."""
    cdef int c
    for c in range(3):
        out[c] = pick(rows + c, 3, place)


cdef void _load(Part* b, Task* t, World* world, Py_ssize_t row, int m, bint coupled, Lanes* work) noexcept nogil:
    """Lay out the work space, and fetch what nodes and links from this row on are now."""
    cdef Filaments* table = &t.table
    cdef Lanes before[3]
    cdef Lanes now[3]
    cdef Lanes d[3]
    cdef Lanes real, real_before, nodes
    cdef int at, k, c
    b.m = m
    b.square = <const Lanes*> (table.square + LANES * row)
    b.scale = <const Lanes*> (table.scale + LANES * row)
    b.node = table.node + LANES * row
    b.owned = table.owned + LANES * row
    b.D = work + 3 * WAYS
    b.d = b.D + 3 * WAYS * (m + 2)
    b.w = b.d + 3 * WAYS * (m + 1)
    b.v = b.w + m + 1
    b.noise = b.v + 3 * m + 3
    b.mu = b.noise + 3 * m + 3 + WAYS
    b.delta = b.mu + WAYS * (m + 2)
    b.real = b.delta + WAYS * (m + 1)
    b.r = b.real + m
    b.upper = b.r + WAYS * m
    b.left = b.upper + WAYS * WAYS * m
    if WAYS == 2:
        b.director = table.director + LANES * row
        b.a = b.left + WAYS * WAYS * m
        b.spin = b.a + m
        b.spin_noise = b.spin + 3 * m
        b.excess = b.spin_noise + 3 * m
        b.shrink = b.excess + m
    else:
        # Never read; but addresses in them are computed, and must exist.
        b.director = b.node
        b.a = b.spin = b.spin_noise = b.excess = b.shrink = work
    for k in range(LANES):
        b.count[k] = 0
    for k in range(WAYS):
        b.t[k] = lanes_of(0.0)
        b.u[k] = lanes_of(0.0)
    real_before = lanes_of(0.0)
    for at in range(m + 1):
        real = lanes_of(0.0)
        for k in range(LANES if at < m else 0):
            each_of(&real)[k] = 1.0 if each_of(b.scale + at)[k] > 0.0 else 0.0
        # A node is real where it has a link.
        nodes = real + (1.0 - real) * real_before
        b.w[at] = pick(world.inverse_mass, 1, b.node + LANES * at) * nodes
        _fetch(b.node + LANES * at, world.v, b.v + 3 * at)
        _fetch(b.node + LANES * at, world.x, now)
        if at > 0:
            displacements(&world.box, each_of(before), each_of(now), each_of(d), LANES)
            for c in range(3):
                b.D[3 * WAYS * (at - 1) + c] = real_before * d[c]
        for c in range(3):
            before[c] = now[c]
        if at < m:
            b.real[at] = real
            if WAYS == 2:
                b.a[at] = pick(world.inverse_mass, 1, b.director + LANES * at) * real
                _fetch(b.director + LANES * at, world.v, b.spin + 3 * at)
                _fetch(b.director + LANES * at, world.x, d)
                for c in range(3):
                    b.D[3 * WAYS * at + 3 + c] = real * d[c]
                    b.spin[3 * at + c] = real * b.spin[3 * at + c]
            if coupled:
                for k in range(LANES):
                    b.count[k] += each_of(&real)[k] > 0.0
        real_before = real


cdef void _draw(const int32_t* place, int n, const Lanes* w, Lanes* out, Task* t, World* world) noexcept nogil:
    """A Maxwell velocity for each of n rows of beads of inverse masses w."""
    cdef int ids[NORMALS_BLOCK]
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef double scale
    cdef int first = 0, count, i, at, k
    while first < LANES * n:
        count = min(NORMALS_BLOCK, LANES * n - first)
        for i in range(count):
            ids[i] = world.id[place[first + i]]
        normals_block(ids, count, world.seed, world.step, t.letter, 0, CONSTRAINTS, 0, gx, gy, gz)
        for i in range(count):
            at = (first + i) // LANES
            k = (first + i) % LANES
            scale = sqrt(t.kT * each_of(w + at)[k])
            each_of(out + 3 * at)[k] = scale * gx[i]
            each_of(out + 3 * at + 1)[k] = scale * gy[i]
            each_of(out + 3 * at + 2)[k] = scale * gz[i]
        first += count


cdef inline void _put(const int32_t* place, const Lanes* real, double* rows, const Lanes* values) noexcept nogil:
    """Write vectors where the beads of a row have theirs."""
    cdef int k, c
    for k in range(LANES):
        if each_of(real)[k] > 0.0:
            for c in range(3):
                rows[3 * <Py_ssize_t> place[k] + c] = each_of(values + c)[k]


cdef inline void _find_directions(Part* b, double h) noexcept nogil:
    """d before a flight of a time h; where there was none, as they are."""
    cdef Lanes r
    cdef int at, c, i
    for at in range(b.m):
        for c in range(3):
            r = b.v[3 * at + 3 + c] - b.v[3 * at + c]
            b.d[3 * WAYS * at + c] = b.D[3 * WAYS * at + c] - b.real[at] * (h * r)
            if WAYS == 2:
                i = 3 * WAYS * at + 3 + c
                b.d[i] = b.D[i] - h * b.spin[3 * at + c]


cdef inline void _write_positions(Part* b, Task* t, World* world) noexcept nogil:
    """And, of a flight, the velocities that it leaves."""
    cdef Lanes before[3]
    cdef Lanes after[3]
    cdef Lanes change[3]
    cdef Lanes p
    cdef double* x
    cdef int at, c, k
    _pull(b, b.mu, -1, before)
    for at in range(b.m + 1):
        _pull(b, b.mu, at, after)
        _impulse(b, at, before, after, change)
        for k in range(LANES):
            if b.owned[LANES * at + k]:
                x = world.x + 3 * <Py_ssize_t> b.node[LANES * at + k]
                for c in range(3):
                    x[c] -= each_of(change + c)[k]
        for c in range(3):
            before[c] = after[c]
            if t.action == FLIGHT:
                b.v[3 * at + c] = b.v[3 * at + c] - change[c] * (1.0 / t.h)
    if WAYS == 2:
        for at in range(b.m):
            _put(b.director + LANES * at, b.real + at, world.x, b.D + 3 * WAYS * at + 3)
            if t.action == FLIGHT:
                for c in range(3):
                    _turn(b, b.mu, at, c, b.shrink + at, &p)
                    b.spin[3 * at + c] = b.spin[3 * at + c] - p * (1.0 / t.h)


cdef inline void _find_rates(Part* b, const Lanes* u, const Lanes* spin) noexcept nogil:
    """r: at which rates velocities u, and `spin` of directors, break the constraints."""
    cdef Lanes rest
    cdef int at, c, i
    for at in range(b.m):
        for i in range(WAYS):
            rest = lanes_of(0.0)
            for c in range(3):
                rest = rest + b.D[3 * (WAYS * at + i) + c] * (u[3 * at + 3 + c] - u[3 * at + c])
            b.r[WAYS * at + i] = rest
        if WAYS == 2:
            b.r[WAYS * at + WAYS - 1] = b.r[WAYS * at + WAYS - 1] + dot(b.D + 3 * WAYS * at, spin + 3 * at)
            b.excess[at] = dot(b.D + 3 * WAYS * at + 3, spin + 3 * at)


cdef inline void _write_velocities(Part* b, World* world, double sign) noexcept nogil:
    """What is normal is taken from velocities, and of the noise it is all that is wanted."""
    cdef Lanes before[3]
    cdef Lanes after[3]
    cdef Lanes change[3]
    cdef Lanes p, shrink
    cdef double* v
    cdef int at, c, k
    _pull(b, b.delta, -1, before)
    for at in range(b.m + 1):
        _pull(b, b.delta, at, after)
        _impulse(b, at, before, after, change)
        for c in range(3):
            before[c] = after[c]
            change[c] = b.v[3 * at + c] - sign * change[c]
        for k in range(LANES):
            if b.owned[LANES * at + k]:
                v = world.v + 3 * <Py_ssize_t> b.node[LANES * at + k]
                for c in range(3):
                    v[c] = each_of(change + c)[k]
    if WAYS == 2:
        for at in range(b.m):
            _shrink(b, b.delta, at, b.excess + at, &shrink)
            for c in range(3):
                _turn(b, b.delta, at, c, &shrink, &p)
                b.spin[3 * at + c] = b.spin[3 * at + c] - sign * p
            _put(b.director + LANES * at, b.real + at, world.v, b.spin + 3 * at)


cdef int _fail(Batch* b, const double* residual, World* world) noexcept nogil:
    """Every lane that failed records its fault: which is named then depends on no other."""
    cdef int k, fault = 0
    for k in range(LANES * b.parts):
        if residual[k] != 0.0:
            fault |= record_fault(world, NOT_CONVERGED, b.part[k // LANES].node[k % LANES], -1)
    return fault


cdef int _batch(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    cdef Batch b
    cdef Part* p
    cdef Lanes* work
    cdef double* residual
    cdef bint finite
    cdef Py_ssize_t which, room
    cdef int at, i, k, fault = 0
    for which in range(first, last):
        b.parts = t.table.parts[which]
        b.m = t.table.links[which]
        b.coupled = t.table.coupled[which]
        b.next = t.table.next + SEGMENTS * which
        residual = t.table.residual + SEGMENTS * which
        work = <Lanes*> (t.table.work + thread * t.table.room)
        room = PER_LINK * b.m + FOR_ENDS
        for i in range(b.parts):
            _load(&b.part[i], t, world, t.table.start[which] + i * (b.m + 1), b.m, b.coupled, work + i * room)
        if t.action == FLIGHT or t.action == SETTLE:
            for i in range(b.parts):
                _find_directions(&b.part[i], t.h)
            _share_ends(&b)
            if not _solve(&b, t.tolerance, residual):
                fault |= _fail(&b, residual, world)
                continue
            for i in range(b.parts):
                _write_positions(&b.part[i], t, world)
        if t.action == SETTLE:
            continue
        for i in range(b.parts):
            p = &b.part[i]
            p.active = lanes_of(1.0)
            if t.action == NORMAL:
                _draw(p.node, b.m + 1, p.w, p.noise, t, world)
                if WAYS == 2:
                    _draw(p.director, b.m, p.a, p.spin_noise, t, world)
                _find_rates(p, p.noise, p.spin_noise)
            else:
                _find_rates(p, p.v, p.spin)
            if b.coupled:
                for at in range(3 * WAYS * b.m):
                    p.d[at] = p.D[at]
            else:
                p.d = p.D
        _share_ends(&b)
        _solve_linear(&b, False)
        finite = True
        for k in range(LANES * b.parts):
            # The links of such a filament cannot push its nodes apart, folded onto itself or held straight.
            residual[k] = 0.0 if each_of(&b.part[k // LANES].sum)[k % LANES] == 0.0 else 1.0
            finite = finite and residual[k] == 0.0
        if not finite:
            fault |= _fail(&b, residual, world)
            continue
        for i in range(b.parts):
            _write_velocities(&b.part[i], world, -1.0 if t.action == NORMAL else 1.0)
    return fault


cdef class Constraints(Operation):
    """One of ACTIONS on the filaments of a handle; the tables are those of struct Filaments."""
    cdef Task task
    cdef Py_ssize_t batches
    cdef object arrays
    cdef double[:, ::1] residual

    def __init__(self, const int32_t[::1] parts, const int32_t[::1] links, const int32_t[::1] start,
                 const int32_t[:, ::1] node, const int32_t[:, ::1] director, const double[:, ::1] square,
                 const double[:, ::1] scale, const int32_t[:, ::1] owned, const int32_t[:, ::1] next,
                 const int32_t[::1] coupled, double[:, ::1] work,
                 str action, double tolerance, double h, double kT, int letter):
        cdef Filaments* table = &self.task.table
        self.arrays = (parts, links, start, node, director, square, scale, owned, next, coupled, work)
        self.batches = links.shape[0]
        table.parts = &parts[0]
        table.links = &links[0]
        table.start = &start[0]
        table.node = &node[0, 0]
        if WAYS == 2:
            table.director = &director[0, 0]
        table.square = &square[0, 0]
        table.scale = &scale[0, 0]
        table.owned = &owned[0, 0]
        table.next = &next[0, 0]
        table.coupled = &coupled[0]
        table.work = &work[0, 0]
        table.room = work.shape[1]
        self.residual = np.zeros((self.batches, SEGMENTS))
        table.residual = &self.residual[0, 0]
        self.task.action = ACTIONS[action]
        self.task.tolerance = tolerance
        self.task.h = h
        self.task.kT = kT
        self.task.letter = letter

    cdef int run(self, World* world) noexcept nogil:
        cdef Filaments* table = &self.task.table
        cdef Py_ssize_t i, row
        cdef int k, fault
        if self.task.action == SETTLE:
            world.positions += 1
        fault = over_blocks(_batch, &self.task, world, self.batches, BLOCK)
        if fault != 0:
            # Of several that fail, on any thread, the one that is named.
            for i in range(self.batches):
                for k in range(LANES * table.parts[i]):
                    row = table.start[i] + (k // LANES) * (table.links[i] + 1)
                    if table.node[LANES * row + k % LANES] == world.fault.bead:
                        # Lanes without a filament have the first node of the first one.
                        if table.residual[SEGMENTS * i + k] != 0.0:
                            world.fault.value = table.residual[SEGMENTS * i + k]
        return fault


def room_for(links):
    """Doubles of work space for one thread, for batches of up to so many links, in all of their parts."""
    return LANES * (PER_LINK * links + MOST_PARTS * FOR_ENDS)
