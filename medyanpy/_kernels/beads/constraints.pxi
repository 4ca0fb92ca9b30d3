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
# for the ends of all lanes (the "spike" algorithm; Polizzi & Sameh, Parallel Comput. 32, 177 (2006)). Of a filament
# that has no company, LANES rows share a vector, and they go one by one only where each waits for the one before. Lanes
# are padded with links that do nothing. Which lanes run together, and how many, changes no bit of any: those that have
# converged take steps of length zero.
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from medyanpy._kernels.core.box cimport displacements
from medyanpy._kernels.core.simd cimport (
    LANES, Lanes, Number, dot, each_of, inverse_of, is_positive, lanes_at, lanes_of, pick,
)
from medyanpy._kernels.core.noise cimport normals_at
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.core.philox cimport CONSTRAINTS, NORMALS_BLOCK
from medyanpy._kernels.core.program cimport NOT_CONVERGED, Operation, World, mark_moved
from medyanpy._kernels.beads.present cimport PresentLanes

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
    # Numbers of work space for each row.
    NUMBERS = 10 + 9 * WAYS + 2 * WAYS * WAYS + 9 * (WAYS - 1)
    # Of a filament in one piece.
    MOST_LINKS = 256
    # One number of all rows of a filament without company: room for its links, and for what is read beyond them.
    PLANE_ALONE = MOST_LINKS + 40
    # Of the squares of what is left of a link's constraints.
    TERMS = 2 * WAYS - 1

cdef enum Action:
    FLIGHT = 0                # after A
    TANGENT = 1               # after B and O
    NORMAL = 2                # before O
    SETTLE = 3                # bring positions from outside to where links have their lengths

LANE_COUNT = LANES
SEGMENT_COUNT = SEGMENTS
LINKS_IN_ONE_PIECE = MOST_LINKS
ACTIONS = {"flight": FLIGHT, "tangent": TANGENT, "normal": NORMAL, "settle": SETTLE}


# Entries are numbers of a row, `step` to a row: LANES, or 1 where a filament has no company. A batch has those of
# links + 1 rows for its first part, made up to whole vectors, then as many for the next.
cdef struct Filaments:
    const int32_t* parts      # (batches,) how many vectors its lanes fill
    const int32_t* step       # (batches,) from a row to the next
    const int32_t* links      # (batches,) in each lane, padding included; times step, whole vectors
    const int32_t* start      # (batches,) first entry
    const int32_t* node       # (entries,) place of a node; where there is none, of another of the same filament
    const int32_t* director   # (entries,) of the director of the link from this node likewise, if WAYS is 2
    const double* square      # (entries,) square of the length of the link from this node to the next, 0: none
    double rise               # nm of a subunit: links have those of `World.subunits` in place of these; 0: they do not
    const double* scale       # (entries,) one over it, 0: no link
    const int32_t* owned      # (entries,) whether the lane moves the node: neighbours share the one between them
    const int32_t* next       # (batches, SEGMENTS) the lane that goes on where this one ends, -1: none
    const int32_t* coupled    # (batches,) whether any lane has a next; step is LANES then
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


# One vector of lanes of a batch at work. Row l is link l and its first node. Arrays point to numbers of row 0: in a row
# of a vector are all NUMBERS of it, each a vector, one after another; of a filament alone each has a plane, one double
# to a row. So much are they apart: rows `_step`, vectors `_hop`, components and what else belongs together `_plane`.
# Of blocks, it is rows that are one after another. D, d, mu and delta have a link more at both ends, for those of
# neighbouring lanes. Where a lane has fewer links than others, the next lane's first link follows on its last, in a row
# of padding.
cdef struct Part:
    Py_ssize_t vectors        # of links
    Py_ssize_t node_vectors
    Py_ssize_t end            # where the row after the last link is, or a vector of them
    double* D                 # (WAYS, 3) links, and their directors, after the flight as far as it is known
    double* d                 # (WAYS, 3) the directions of impulses on nodes
    double* w                 # inverse masses of nodes
    double* v                 # (3,)
    double* noise             # (3,); while links are fetched, positions
    double* mu                # (WAYS,) sums of delta
    double* delta             # (WAYS,) solution of the last linear system
    double* real              # 1 where there is a link, 0 for padding
    double* r                 # (WAYS,) what is left of the constraints
    double* upper             # (WAYS, WAYS) of the matrix after elimination
    double* left              # (WAYS, WAYS) likewise, of the response to the last link of the lane before
    # The first link of each lane is first - first_left t - first_right u, where t is the last link of the lane before
    # and u the link after those that are eliminated.
    Lanes first[WAYS]
    Lanes first_left[WAYS * WAYS]
    Lanes first_right[WAYS * WAYS]
    Lanes t[WAYS]             # at the last link of the lane before each
    Lanes u[WAYS]             # at the first link of the lane after
    Lanes sum                 # of the squares of what is left
    Lanes active              # 1 where a lane goes on, 0 where it has converged
    # Of directors:
    double* a                 # inverse masses
    double* spin              # (3,) velocities
    double* spin_noise        # (3,)
    double* excess            # what is left of their unit length
    double* shrink            # sums of a nu
    double* square
    double* scale
    # Entries of tables:
    const int32_t* node
    const int32_t* director
    const int32_t* owned
    int count[LANES]          # links of each lane


cdef struct Batch:
    int links
    int step
    int parts
    int lanes
    bint coupled
    const int32_t* next
    Part part[MOST_PARTS]


include "constraints_rows.pxi"


cdef inline void _solve_forward(Batch* b, int parts, bint alone, bint coupled) noexcept nogil:
    """Elimination; all parts side by side, for in each a row waits for the one before."""
    cdef Rows rows
    cdef Lanes delta[MOST_PARTS][WAYS]
    cdef Lanes upper[MOST_PARTS][WAYS * WAYS]
    cdef Lanes left[MOST_PARTS][WAYS * WAYS]
    cdef double delta_alone[WAYS]
    cdef double upper_alone[WAYS * WAYS]
    cdef double left_alone[WAYS * WAYS]
    cdef Py_ssize_t vector, at
    cdef int i, k
    for vector in range(b.part[0].vectors):
        at = _hop(alone) * vector
        for i in range(parts):
            _set_up(&b.part[i], alone, at, &rows)
            if alone:
                for k in range(LANES):
                    _eliminate[double](&b.part[0], at + k, &rows, k, False, delta_alone, upper_alone, left_alone)
            else:
                _eliminate[Lanes](&b.part[i], at, &rows, 0, coupled, delta[i], upper[i], left[i])


cdef inline void _solve_backward(Part* b, bint alone, bint coupled, bint moves) noexcept nogil:
    """The solution, in delta, which is finite where the sum is 0.

    Or else, if it `moves` links, 0 where lanes are not active, and the sum is that of the squares of what is left then.
    """
    cdef Lanes after[WAYS]
    cdef double after_alone[WAYS]
    cdef Lanes pulled[3]
    cdef Lanes pulled_after[3]
    cdef Lanes impulse[3]
    cdef Lanes impulse_after[3]
    cdef Lanes terms[TERMS]
    cdef Py_ssize_t at, plane = _plane(alone), step = _step(alone), hop = _hop(alone)
    cdef int i, k, c
    b.sum = lanes_of(0.0)
    for i in range(WAYS):
        after[i] = b.u[i]
        after_alone[i] = 0.0
        lanes_at(b.delta + i * plane + b.end)[0] = b.active * b.u[i]
    if moves and not alone:
        _pull(b, alone, b.delta, b.end, pulled_after)
    at = b.end - hop
    while at >= -hop:
        if at < 0:
            for i in range(WAYS):
                lanes_at(b.delta + i * plane + at)[0] = b.active * b.t[i]
                if not moves:
                    b.sum = b.sum + 0.0 * b.t[i]
        elif alone:
            for k in range(LANES):
                _substitute[double](b, at + LANES - 1 - k, False, moves, after_alone, each_of(&b.sum))
        else:
            _substitute[Lanes](b, at, coupled, moves, after, &b.sum)
        if moves:
            # The links after these, now that their neighbours on both sides are known.
            at += hop
            if not alone:
                # What they themselves pull is known from the turn before.
                _pull(b, alone, b.delta, at - hop, pulled)
                _impulse(b, alone, at, pulled, pulled_after, impulse)
                for c in range(3):
                    pulled_after[c] = pulled[c]
            elif at < b.end:
                _pull(b, alone, b.delta, at + step, pulled_after)
                _pull(b, alone, b.delta, at, pulled)
                _impulse(b, alone, at + step, pulled, pulled_after, impulse_after)
                _pull(b, alone, b.delta, at - step, pulled_after)
                _impulse(b, alone, at, pulled_after, pulled, impulse)
            if at < b.end:
                _move(b, alone, at, impulse, impulse_after)
                _left_over(b, alone, at, terms)
                _add_up(b, terms, alone, True)
            for c in range(3):
                impulse_after[c] = impulse[c]
            for i in range(WAYS):
                lanes_at(b.mu + i * plane + at)[0] = lanes_at(b.mu + i * plane + at)[0] + lanes_at(
                    b.delta + i * plane + at)[0]
            at -= hop
        at -= hop
    if moves:
        for i in range(WAYS):
            lanes_at(b.mu + i * plane - hop)[0] = lanes_at(b.mu + i * plane - hop)[0] + lanes_at(
                b.delta + i * plane - hop)[0]


cdef inline void _solve_parts(Batch* b, int parts, bint alone, bint coupled, bint moves) noexcept nogil:
    cdef int i
    _solve_forward(b, parts, alone, coupled)
    if coupled:
        _join(b)
    for i in range(parts):
        _solve_backward(&b.part[i], alone, coupled, moves)


cdef inline void _solve_linear(Batch* b, bint alone, bint moves) noexcept nogil:
    """delta of all parts from their r and excess; see `_solve_backward`."""
    # Each written out with its numbers by the compiler.
    if alone:
        _solve_parts(b, 1, True, False, moves)
    elif not b.coupled:
        _solve_parts(b, 1, False, False, moves)
    elif b.parts == 1:
        _solve_parts(b, 1, False, True, moves)
    else:
        _solve_parts(b, MOST_PARTS, False, True, moves)


cdef inline bint _solve(Batch* b, bint alone, double tolerance, double* residual) noexcept nogil:
    """Find mu such that all constraints hold; whether all lanes do, and what is left where one does not."""
    cdef Part* p
    cdef Lanes terms[TERMS]
    cdef bint converged
    cdef double worst
    cdef Py_ssize_t vector, at
    cdef int i, j, k, iteration
    for i in range(b.parts):
        p = &b.part[i]
        p.sum = lanes_of(0.0)
        p.active = lanes_of(1.0)
        for j in range(WAYS):
            for vector in range(-1, p.vectors + 1):
                at = _hop(alone) * vector
                lanes_at(p.mu + j * _plane(alone) + at)[0] = lanes_of(0.0)
        for vector in range(p.vectors):
            at = _hop(alone) * vector
            _left_over(p, alone, at, terms)
            _add_up(p, terms, alone, False)
            if WAYS == 2:
                lanes_at(p.shrink + at)[0] = lanes_of(0.0)
    for iteration in range(MOST_ITERATIONS):
        converged = True
        for k in range(b.lanes):
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
        _solve_linear(b, alone, True)
    return False


cdef inline void _fetch(const int32_t* place, const double* rows, double* out, Py_ssize_t plane) noexcept nogil:
    """Vectors of beads."""
    cdef int c
    for c in range(3):
        lanes_at(out + c * plane)[0] = pick(rows + c, 3, place)


cdef void _take_lengths(
    Part* b, bint alone, const Filaments* table, const World* world, Py_ssize_t start,
) noexcept nogil:
    """The lengths of links that grow, in place of those at the start."""
    cdef Py_ssize_t vector, entry
    cdef double length
    cdef int k
    for vector in range(b.node_vectors):
        entry = LANES * vector
        for k in range(LANES):
            if table.square[start + entry + k] > 0.0:
                length = table.rise * world.subunits[b.node[entry + k]]
                (b.square + _hop(alone) * vector)[k] = length * length
                (b.scale + _hop(alone) * vector)[k] = 1.0 / (length * length)


cdef inline void _load(
    Part* b, bint alone, Task* t, World* world, Py_ssize_t start, int m, bint coupled, double* work,
) noexcept nogil:
    """Lay out the work space, and fetch what nodes and links are now."""
    cdef Filaments* table = &t.table
    cdef double* x
    cdef Lanes x_before[3]
    cdef Lanes x_after[3]
    cdef Lanes d[3]
    cdef Lanes real, real_before
    cdef Py_ssize_t vector, at, entry, step = _step(alone), hop = _hop(alone), plane = _plane(alone)
    cdef int k, c
    b.vectors = m // LANES if alone else m
    b.node_vectors = b.vectors + 1
    b.end = hop * b.vectors
    b.node = table.node + start
    b.owned = table.owned + start
    # First what every turn of Newton's method needs: of long filaments, the rest then stays out of the cache.
    b.D = work + hop
    b.d = b.D + 3 * WAYS * plane
    b.w = b.d + 3 * WAYS * plane
    b.mu = b.w + plane
    b.delta = b.mu + WAYS * plane
    b.real = b.delta + WAYS * plane
    b.square = b.real + plane
    b.scale = b.square + plane
    b.r = b.scale + plane
    b.upper = b.r + WAYS * plane
    b.left = b.upper + WAYS * WAYS * plane
    b.v = b.left + WAYS * WAYS * plane
    b.noise = b.v + 3 * plane
    if WAYS == 2:
        b.director = table.director + start
        b.a = b.v
        b.excess = b.a + plane
        b.shrink = b.excess + plane
        b.v = b.shrink + plane
        b.noise = b.v + 3 * plane
        b.spin = b.noise + 3 * plane
        b.spin_noise = b.spin + 3 * plane
    else:
        # Never read; but addresses in them are computed, and must exist.
        b.director = b.node
        b.a = b.spin = b.spin_noise = b.excess = b.shrink = work
    for k in range(LANES):
        b.count[k] = 0
    for k in range(WAYS):
        b.t[k] = lanes_of(0.0)
        b.u[k] = lanes_of(0.0)
    x = b.noise
    lanes_at(b.real - hop)[0] = lanes_of(0.0)
    for vector in range(b.node_vectors):
        at = hop * vector
        entry = LANES * vector
        lanes_at(b.square + at)[0] = lanes_at(table.square + start + entry)[0]
        lanes_at(b.scale + at)[0] = lanes_at(table.scale + start + entry)[0]
        lanes_at(b.real + at)[0] = is_positive(lanes_at(b.scale + at)[0])
    if table.rise > 0.0:
        _take_lengths(b, alone, table, world, start)
    for vector in range(b.node_vectors):
        at = hop * vector
        entry = LANES * vector
        real = lanes_at(b.real + at)[0]
        # A node is real where it has a link.
        real_before = lanes_at(b.real + at - step)[0]
        lanes_at(b.w + at)[0] = pick(world.inverse_mass, 1, b.node + entry) * (real + (1.0 - real) * real_before)
        _fetch(b.node + entry, world.v, b.v + at, plane)
        _fetch(b.node + entry, world.x, x + at, plane)
    for vector in range(b.vectors):
        at = hop * vector
        entry = LANES * vector
        real = lanes_at(b.real + at)[0]
        for c in range(3):
            x_before[c] = lanes_at(x + c * plane + at)[0]
            x_after[c] = lanes_at(x + c * plane + at + step)[0]
        displacements(&world.box, each_of(x_before), each_of(x_after), each_of(d), LANES)
        for c in range(3):
            lanes_at(b.D + c * plane + at)[0] = real * d[c]
        if WAYS == 2:
            lanes_at(b.a + at)[0] = pick(world.inverse_mass, 1, b.director + entry) * real
            _fetch(b.director + entry, world.v, b.spin + at, plane)
            _fetch(b.director + entry, world.x, b.D + 3 * plane + at, plane)
            for c in range(3):
                lanes_at(b.D + (3 + c) * plane + at)[0] = real * lanes_at(b.D + (3 + c) * plane + at)[0]
                lanes_at(b.spin + c * plane + at)[0] = real * lanes_at(b.spin + c * plane + at)[0]
        if coupled:
            for k in range(LANES):
                b.count[k] += each_of(&real)[k] > 0.0


cdef inline void _draw(
    bint alone, const int32_t* place, Py_ssize_t n, const double* w, double* out, Task* t, World* world,
) noexcept nogil:
    """A Maxwell velocity for each of n beads of inverse masses w."""
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef double scale
    cdef Py_ssize_t first = 0, at, plane = _plane(alone)
    cdef int count, i
    while first < n:
        count = <int> min(<Py_ssize_t> NORMALS_BLOCK, n - first)
        normals_at(world, place + first, count, t.letter, CONSTRAINTS, 0, gx, gy, gz)
        for i in range(count):
            at = (first + i) // LANES * _hop(alone) + (first + i) % LANES
            scale = sqrt(t.kT * w[at])
            out[at] = scale * gx[i]
            (out + plane)[at] = scale * gy[i]
            (out + 2 * plane)[at] = scale * gz[i]
        first += count


cdef inline void _put(const Part* b, bint alone, Py_ssize_t vector, double* rows, const double* values) noexcept nogil:
    """Write vectors where directors have theirs."""
    cdef Py_ssize_t plane = _plane(alone)
    cdef int k, c
    for k in range(LANES):
        if b.real[_hop(alone) * vector + k] > 0.0:
            for c in range(3):
                rows[3 * <Py_ssize_t> b.director[LANES * vector + k] + c] = values[c * plane + k]


cdef inline void _find_directions(Part* b, bint alone, double h) noexcept nogil:
    """d before a flight of a time h; where there was none, as they are."""
    cdef Py_ssize_t vector, at, plane = _plane(alone), step = _step(alone)
    cdef Lanes r
    cdef int c
    for vector in range(b.vectors):
        at = _hop(alone) * vector
        for c in range(3):
            r = lanes_at(b.v + c * plane + at + step)[0] - lanes_at(b.v + c * plane + at)[0]
            lanes_at(b.d + c * plane + at)[0] = lanes_at(b.D + c * plane + at)[0] - lanes_at(b.real + at)[0] * (h * r)
            if WAYS == 2:
                lanes_at(b.d + (3 + c) * plane + at)[0] = lanes_at(b.D + (3 + c) * plane + at)[0] - h * lanes_at(
                    b.spin + c * plane + at)[0]


cdef inline void _take_off(Part* b, bint alone, const double* multiplier, Py_ssize_t at, Lanes* out) noexcept nogil:
    """w J^T multiplier at the nodes of a vector."""
    cdef Py_ssize_t step = _step(alone)
    cdef Lanes before[3]
    cdef Lanes after[3]
    _pull(b, alone, multiplier, at - step, before)
    _pull(b, alone, multiplier, at, after)
    _impulse(b, alone, at, before, after, out)


cdef inline void _write_positions(Part* b, bint alone, Task* t, World* world) noexcept nogil:
    """And, of a flight, the velocities that it leaves."""
    cdef Lanes change[3]
    cdef Lanes p
    cdef double* x
    cdef Py_ssize_t vector, at, entry, plane = _plane(alone), hop = _hop(alone)
    cdef int c, k
    for vector in range(b.node_vectors):
        at = hop * vector
        entry = LANES * vector
        _take_off(b, alone, b.mu, at, change)
        for k in range(LANES):
            if b.owned[entry + k]:
                x = world.x + 3 * <Py_ssize_t> b.node[entry + k]
                for c in range(3):
                    x[c] -= each_of(change + c)[k]
        if t.action == FLIGHT:
            for c in range(3):
                lanes_at(b.v + c * plane + at)[0] = lanes_at(b.v + c * plane + at)[0] - change[c] * (1.0 / t.h)
    if WAYS == 2:
        for vector in range(b.vectors):
            at = hop * vector
            _put(b, alone, vector, world.x, b.D + 3 * plane + at)
            if t.action == FLIGHT:
                for c in range(3):
                    _turn(b, alone, b.mu, at, c, lanes_at(b.shrink + at), &p)
                    lanes_at(b.spin + c * plane + at)[0] = lanes_at(b.spin + c * plane + at)[0] - p * (1.0 / t.h)


cdef inline void _find_rates(Part* b, bint alone, const double* u, const double* spin) noexcept nogil:
    """r: at which rates velocities u, and `spin` of directors, break the constraints."""
    cdef Lanes rest
    cdef Py_ssize_t vector, at, plane = _plane(alone), step = _step(alone)
    cdef int c, i
    for vector in range(b.vectors):
        at = _hop(alone) * vector
        for i in range(WAYS):
            rest = lanes_of(0.0)
            for c in range(3):
                rest = rest + lanes_at(b.D + (3 * i + c) * plane + at)[0] * (
                    lanes_at(u + c * plane + at + step)[0] - lanes_at(u + c * plane + at)[0])
            lanes_at(b.r + i * plane + at)[0] = rest
        if WAYS == 2:
            lanes_at(b.r + plane + at)[0] = lanes_at(b.r + plane + at)[0] + dot(b.D + at, spin + at, plane)
            lanes_at(b.excess + at)[0] = dot(b.D + 3 * plane + at, spin + at, plane)


cdef inline void _write_velocities(Part* b, bint alone, World* world, double sign) noexcept nogil:
    """What is normal is taken from velocities, and of the noise it is all that is wanted."""
    cdef Lanes change[3]
    cdef Lanes p, shrink
    cdef double* v
    cdef Py_ssize_t vector, at, entry, plane = _plane(alone), hop = _hop(alone)
    cdef int c, k
    for vector in range(b.node_vectors):
        at = hop * vector
        entry = LANES * vector
        _take_off(b, alone, b.delta, at, change)
        for c in range(3):
            change[c] = lanes_at(b.v + c * plane + at)[0] - sign * change[c]
        for k in range(LANES):
            if b.owned[entry + k]:
                v = world.v + 3 * <Py_ssize_t> b.node[entry + k]
                for c in range(3):
                    v[c] = each_of(change + c)[k]
    if WAYS == 2:
        for vector in range(b.vectors):
            at = hop * vector
            _shrink(b, alone, b.delta, at, &shrink)
            for c in range(3):
                _turn(b, alone, b.delta, at, c, &shrink, &p)
                lanes_at(b.spin + c * plane + at)[0] = lanes_at(b.spin + c * plane + at)[0] - sign * p
            _put(b, alone, vector, world.v, b.spin + at)


cdef int fail_lanes(Batch* b, const double* residual, World* world) noexcept nogil:
    """Every lane that failed records its fault: which is named then depends on no other."""
    cdef int k, fault = 0
    for k in range(b.lanes):
        if residual[k] != 0.0:
            fault |= record_fault(world, NOT_CONVERGED, b.part[k // LANES].node[k % LANES], -1)
    return fault


cdef inline int _one_batch(Batch* b, bint alone, Task* t, World* world, Py_ssize_t which, double* work) noexcept nogil:
    cdef double* residual = t.table.residual + SEGMENTS * which
    cdef Py_ssize_t start = t.table.start[which]
    cdef Py_ssize_t vector, at, plane = _plane(alone)
    cdef Part* p
    cdef bint finite = True
    cdef int c, i, k
    for i in range(b.parts):
        _load(&b.part[i], alone, t, world, start, b.links, b.coupled, work)
        work += _room_of(b.step, b.links)
        start += LANES * b.part[i].node_vectors
    if t.action == FLIGHT or t.action == SETTLE:
        for i in range(b.parts):
            _find_directions(&b.part[i], alone, t.h)
        _share_ends(b, alone)
        if not _solve(b, alone, t.tolerance, residual):
            return fail_lanes(b, residual, world)
        for i in range(b.parts):
            _write_positions(&b.part[i], alone, t, world)
    if t.action == SETTLE:
        return 0
    for i in range(b.parts):
        p = &b.part[i]
        p.active = lanes_of(1.0)
        if t.action == NORMAL:
            _draw(alone, p.node, LANES * p.node_vectors, p.w, p.noise, t, world)
            if WAYS == 2:
                _draw(alone, p.director, LANES * p.vectors, p.a, p.spin_noise, t, world)
        _find_rates(p, alone, p.noise if t.action == NORMAL else p.v, p.spin_noise if t.action == NORMAL else p.spin)
        if b.coupled:
            for vector in range(p.vectors):
                at = _hop(alone) * vector
                for c in range(3 * WAYS):
                    lanes_at(p.d + c * plane + at)[0] = lanes_at(p.D + c * plane + at)[0]
        else:
            p.d = p.D
    _share_ends(b, alone)
    _solve_linear(b, alone, False)
    for k in range(b.lanes):
        # The links of such a filament cannot push its nodes apart, folded onto itself or held straight.
        residual[k] = 0.0 if each_of(&b.part[k // LANES].sum)[k % LANES] == 0.0 else 1.0
        finite = finite and residual[k] == 0.0
    if not finite:
        return fail_lanes(b, residual, world)
    for i in range(b.parts):
        _write_velocities(&b.part[i], alone, world, -1.0 if t.action == NORMAL else 1.0)
    return 0


cdef int _batches(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    # Else every other vector would be in two lines of the cache.
    cdef double* work = <double*> ((<size_t> (t.table.work + thread * t.table.room) + 63) // 64 * 64)
    cdef Batch b
    cdef Py_ssize_t which
    cdef int fault = 0
    for which in range(first, last):
        b.parts = t.table.parts[which]
        b.step = t.table.step[which]
        b.links = t.table.links[which]
        b.lanes = b.step * b.parts
        b.coupled = t.table.coupled[which]
        b.next = t.table.next + SEGMENTS * which
        if b.step == 1:
            fault |= _one_batch(&b, True, t, world, which, work)
        else:
            fault |= _one_batch(&b, False, t, world, which, work)
    return fault


cdef class Constraints(Operation):
    """One of ACTIONS on the filaments of a handle; the tables are those of struct Filaments."""
    cdef Task task
    cdef double h
    cdef Py_ssize_t batches
    cdef object arrays
    cdef double[:, ::1] residual
    cdef PresentLanes present  # of filaments with room for links, whose tables they are

    def __init__(self, const int32_t[::1] parts, const int32_t[::1] step, const int32_t[::1] links,
                 const int32_t[::1] start, const int32_t[::1] node, const int32_t[::1] director,
                 const double[::1] square, const double[::1] scale, const int32_t[::1] owned,
                 const int32_t[:, ::1] next, const int32_t[::1] coupled, double[:, ::1] work,
                 str action, double tolerance, double h, double kT, int letter, double rise=0.0,
                 PresentLanes present=None):
        cdef Filaments* table = &self.task.table
        self.arrays = (parts, step, links, start, node, director, square, scale, owned, next, coupled, work)
        self.batches = links.shape[0]
        table.parts = &parts[0]
        table.step = &step[0]
        table.links = &links[0]
        table.start = &start[0]
        table.node = &node[0]
        if WAYS == 2:
            table.director = &director[0]
        table.square = &square[0]
        table.rise = rise
        table.scale = &scale[0]
        table.owned = &owned[0]
        table.next = &next[0, 0]
        table.coupled = &coupled[0]
        table.work = &work[0, 0]
        table.room = work.shape[1]
        self.residual = np.zeros((self.batches, SEGMENTS))
        table.residual = &self.residual[0, 0]
        self.task.action = ACTIONS[action]
        self.task.tolerance = tolerance
        self.h = h
        self.task.kT = kT
        self.task.letter = letter
        self.present = present

    cdef int run(self, World* world) noexcept nogil:
        cdef Filaments* table = &self.task.table
        cdef Py_ssize_t i, first
        cdef int k, fault
        self.task.h = self.h * world.pace
        if self.task.action == SETTLE:
            mark_moved(world)
        if self.present is not None:
            self.present.spread(world)
            self.batches = self.present.batches
        fault = over_blocks(_batches, &self.task, world, self.batches, BLOCK)
        if fault != 0:
            # Of several that fail, on any thread, the one that is named.
            for i in range(self.batches):
                for k in range(table.step[i] * table.parts[i]):
                    first = table.start[i] + (k // LANES) * _entries_of(table.step[i], table.links[i]) + k % LANES
                    # Lanes without a filament have the first node of another.
                    if table.node[first] == world.fault.bead and table.residual[SEGMENTS * i + k] != 0.0:
                        world.fault.value = table.residual[SEGMENTS * i + k]
        return fault


def entries_of(step, links):
    """Of tables, for a part of a batch."""
    return _entries_of(step, links)


def room_for(parts, step, links):
    """Doubles of work space for one thread, for a batch."""
    return parts * _room_of(step, links) + 8
