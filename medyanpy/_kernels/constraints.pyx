"""Filaments whose links keep their lengths: constraint impulses, solved jointly for each filament.

    sigma_l = (|D_l|^2 - L_l^2) / 2 = 0,   D_l = x_(l+1) - x_l

    A        x' = x + h v - M^-1 J(x)^T mu with mu such that sigma(x') = 0; then v' = v - M^-1 J(x)^T mu / h, and v' is
             made tangent at x'. Newton's method on mu: d sigma_l / d mu_k is tridiagonal, with the rows

                 -w_l D_l.d_(l-1),   (w_l + w_(l+1)) D_l.d_l,   -w_(l+1) D_l.d_(l+1)

             where d are the links before the flight, D those after it so far, and w inverse masses of nodes
    tangent  v - M^-1 J^T nu with J v = 0: one solve with the same matrix for d = D
    O        before it, the normal part of a Maxwell velocity is added to the tangent one, so that what O acts on has
             the full Maxwell distribution, of which the projection afterwards leaves the constrained one

Source: BAGOGAB, "Splitting strategy", A; Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen,
J. Comput. Phys. 52, 24 (1983).

Eight filaments are worked on at a time, one in each lane of a vector. A filament that is long is cut into eight
segments instead, and a ring is a segment that is its own neighbour: where a lane has a neighbour, the coefficients
that lead out of it are moved to the right-hand side, and what they multiply is found from a small system for the ends
of all lanes (the "spike" algorithm; Polizzi & Sameh, Parallel Comput. 32, 177 (2006)). Lanes are padded with links
that do nothing. Which lanes run together changes no bit of any: those that have converged take steps of length zero.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from medyanpy._kernels.box cimport displacement
from medyanpy._kernels.parallel cimport over_blocks, record_fault
from medyanpy._kernels.philox cimport CONSTRAINTS, NORMALS_BLOCK, normals_block
from medyanpy._kernels.program cimport NOT_CONVERGED, Operation, World

cdef extern from * nogil:
    """
    typedef double medyanpy_lanes __attribute__((vector_size(64), aligned(8)));
    #define MEDYANPY_LANES_OF(x) ((medyanpy_lanes) {0} + (x))
    /* Macros: a function that returns a vector would depend on the instruction set in how it does. */
    #define MEDYANPY_INVERSE(x) (1.0 / (x))
    #define MEDYANPY_DOT(a, b) ((a)[0] * (b)[0] + (a)[1] * (b)[1] + (a)[2] * (b)[2])
    """
    # Cython takes it for a number, and writes the operators that the compiler knows for vectors.
    ctypedef double Lanes "medyanpy_lanes"
    Lanes lanes_of "MEDYANPY_LANES_OF"(double x)
    Lanes inverse_of "MEDYANPY_INVERSE"(Lanes x)
    Lanes dot "MEDYANPY_DOT"(const Lanes* a, const Lanes* b)

cdef enum:
    LANES = 8
    # Newton's method has converged long before, or never does.
    MOST_ITERATIONS = 40
    # Vectors of work space for each link of a batch, and for the ends of its arrays.
    PER_LINK = 20
    FOR_ENDS = 32
    # Batches per block.
    BLOCK = 2

cdef enum Action:
    FLIGHT = 0                # after A
    TANGENT = 1               # after B and O
    NORMAL = 2                # before O
    SETTLE = 3                # bring positions from outside to where links have their lengths

LANE_COUNT = LANES
ACTIONS = {"flight": FLIGHT, "tangent": TANGENT, "normal": NORMAL, "settle": SETTLE}


cdef struct Filaments:
    const int32_t* links      # (batches,) in each lane, padding included
    const int32_t* start      # (batches,) first row of a batch, which has links + 1 rows
    const int32_t* node       # (rows, LANES) place of a node, -1 where there is none
    const double* square      # (rows, LANES) square of the length of the link from this node to the next, 0: none
    const double* scale       # (rows, LANES) one over it, 0: no link
    const int32_t* owned      # (rows, LANES) whether the lane moves the node: neighbours share the one between them
    const int32_t* next       # (batches, LANES) the lane that goes on where this one ends, -1: none
    const int32_t* coupled    # (batches,) whether any lane has a next
    double* residual          # (batches,) where a batch does not converge
    double* work
    Py_ssize_t room           # doubles of work space of one thread


cdef struct Task:
    Filaments table
    Action action
    double tolerance
    double h                  # FLIGHT: its time
    double kT                 # NORMAL: of the noise
    int letter


# One batch at work. Row l is link l and its first node; vectors have three components one after another. d, mu and
# delta have a row more at both ends, for the links of neighbouring lanes. Where a lane has fewer links than others, the
# next lane's first link follows on its last, in a row of padding.
cdef struct Batch:
    int m                     # links
    Lanes* D                  # links after the flight, as far as it is known
    Lanes* d                  # the directions of impulses
    Lanes* w                  # (m + 1,) inverse masses
    Lanes* v                  # (m + 1, 3)
    Lanes* noise              # (m + 1, 3)
    Lanes* mu                 # sums of delta
    Lanes* delta              # solution of the last linear system
    Lanes* real               # 1 where there is a link, 0 for padding
    Lanes* r                  # what is left of the constraints
    Lanes* upper              # of the matrix after elimination
    Lanes* left               # response of each link to the last of the lane before
    Lanes* right              # and to the first of the lane after
    const Lanes* square
    const Lanes* scale
    const int32_t* node
    const int32_t* owned
    const int32_t* next
    bint coupled
    int count[LANES]          # links of each lane


cdef inline double* _of(const Lanes* a) noexcept nogil:
    """The lanes of a vector, one by one."""
    return <double*> a


cdef void _join(Batch* b) noexcept nogil:
    """Correct the solutions of all lanes for their neighbours: delta -= left t + right u.

    Here t is the solution at the last link of the lane before and u at the first link of the lane after; these ends
    of all lanes solve 2 x 8 equations.
    """
    cdef double a[2 * LANES][2 * LANES + 1]
    cdef Lanes t, u
    cdef double factor
    cdef int k, j, i, e, last, n = 2 * LANES
    memset(a, 0, sizeof(a))
    # Unknowns: the first links of all lanes, then the last ones.
    for k in range(LANES):
        j = b.next[k]
        for e in range(2):
            i = e * LANES + k
            last = max(b.count[k] - 1, 0)
            a[i][i] += 1.0
            a[i][n] = _of(b.delta + e * last)[k]
            if j >= 0:
                a[i][j] += _of(b.right + e * last)[k]
                a[e * LANES + j][LANES + k] += _of(b.left + e * (b.count[j] - 1))[j]
    for j in range(n):
        for i in range(n):
            if i != j and a[i][j] != 0.0:
                factor = a[i][j] / a[j][j]
                for k in range(j, n + 1):
                    a[i][k] -= factor * a[j][k]
    t = lanes_of(0.0)
    u = lanes_of(0.0)
    for k in range(LANES):
        j = b.next[k]
        if j >= 0:
            _of(&u)[k] = a[j][n] / a[j][j]
            _of(&t)[j] = a[LANES + k][n] / a[LANES + k][LANES + k]
    for i in range(b.m):
        b.delta[i] = b.delta[i] - (b.left[i] * t + b.right[i] * u)
    (b.delta - 1)[0] = t
    b.delta[b.m] = u


cdef void _share_ends(Batch* b) noexcept nogil:
    """Put the directions at the ends of neighbouring lanes beside the first and last of each."""
    cdef int k, c
    for c in range(3):
        b.d[c - 3] = lanes_of(0.0)
        b.d[3 * b.m + c] = lanes_of(0.0)
    for k in range(LANES):
        if b.next[k] >= 0:
            for c in range(3):
                _of(b.d + 3 * b.count[k] + c)[k] = _of(b.d + c)[b.next[k]]
                _of(b.d + c - 3)[b.next[k]] = _of(b.d + 3 * b.count[k] - 3 + c)[k]


cdef inline void _eliminate(Batch* b, int at, const Lanes* r) noexcept nogil:
    """Row `at` of the matrix with the right-hand side r: what is left of it when the rows before it are done with."""
    cdef Lanes lower = -b.w[at] * dot(b.D + 3 * at, b.d + 3 * at - 3)
    cdef Lanes upper = -b.w[at + 1] * dot(b.D + 3 * at, b.d + 3 * at + 3)
    # Of padding, where all else is zero, the middle is 1.
    cdef Lanes middle = (b.w[at] + b.w[at + 1]) * dot(b.D + 3 * at, b.d + 3 * at) + (1.0 - b.real[at])
    cdef Lanes inverse
    if at == 0:
        inverse = inverse_of(middle)
        b.delta[0] = r[0] * inverse
        b.left[0] = lower * inverse
    else:
        inverse = inverse_of(middle - lower * b.upper[at - 1])
        b.delta[at] = (r[0] - lower * b.delta[at - 1]) * inverse
        if b.coupled:
            b.left[at] = -lower * b.left[at - 1] * inverse
    b.upper[at] = upper * inverse


cdef void _substitute(Batch* b) noexcept nogil:
    """The solution, in delta."""
    cdef int at
    if b.coupled:
        # Padding stands for the first link of the next lane: its response to that is -1, with the sign of the others.
        b.right[b.m - 1] = b.upper[b.m - 1] - (1.0 - b.real[b.m - 1])
        for at in range(b.m - 2, -1, -1):
            b.right[at] = -b.upper[at] * b.right[at + 1] - (1.0 - b.real[at])
            b.left[at] = b.left[at] - b.upper[at] * b.left[at + 1]
    for at in range(b.m - 2, -1, -1):
        b.delta[at] = b.delta[at] - b.upper[at] * b.delta[at + 1]
    if b.coupled:
        _join(b)
    else:
        (b.delta - 1)[0] = lanes_of(0.0)
        b.delta[b.m] = lanes_of(0.0)


cdef int _lengths(Batch* b, double tolerance, double* residual) noexcept nogil:
    """Find mu such that all links have their lengths; 0, or 1 + the first lane that does not converge."""
    cdef Lanes s, active, before, now, after
    cdef double worst
    cdef int at, c, k, _iteration, failed = 0
    active = lanes_of(1.0)
    s = lanes_of(0.0)
    for at in range(-1, b.m + 1):
        b.mu[at] = lanes_of(0.0)
    for at in range(b.m):
        b.r[at] = 0.5 * (dot(b.D + 3 * at, b.D + 3 * at) - b.square[at])
        s = s + (b.r[at] * b.scale[at]) * (b.r[at] * b.scale[at])
    for _iteration in range(MOST_ITERATIONS):
        failed = 0
        for k in range(LANES):
            worst = _of(&s)[k]
            if worst <= tolerance * tolerance:
                # This lane is done, however many turns others take.
                _of(&active)[k] = 0.0
            elif failed == 0:
                failed = 1 + k
                residual[0] = sqrt(worst)
        if failed == 0:
            return 0
        if b.next[0] > 0:
            # The segments of one filament are done together: they share nodes.
            active = lanes_of(1.0)
        for at in range(b.m):
            _eliminate(b, at, b.r + at)
        _substitute(b)
        s = lanes_of(0.0)
        before = active * (b.delta - 1)[0]
        now = active * b.delta[0]
        (b.mu - 1)[0] = (b.mu - 1)[0] + before
        for at in range(b.m):
            after = active * b.delta[at + 1]
            b.mu[at] = b.mu[at] + now
            for c in range(3):
                b.D[3 * at + c] = b.D[3 * at + c] - b.real[at] * (
                    b.w[at + 1] * (now * b.d[3 * at + c] - after * b.d[3 * at + 3 + c])
                    - b.w[at] * (before * b.d[3 * at - 3 + c] - now * b.d[3 * at + c]))
            b.r[at] = 0.5 * (dot(b.D + 3 * at, b.D + 3 * at) - b.square[at])
            s = s + (b.r[at] * b.scale[at]) * (b.r[at] * b.scale[at])
            before = now
            now = after
        b.mu[b.m] = b.mu[b.m] + now
    return failed


cdef inline void _impulse(Batch* b, const Lanes* multiplier, int at, int c, Lanes* out) noexcept nogil:
    """Component c of w J^T multiplier at node l."""
    out[0] = b.w[at] * (multiplier[at - 1] * b.d[3 * at - 3 + c] - multiplier[at] * b.d[3 * at + c])


cdef void _load(Batch* b, Task* t, World* world, Py_ssize_t which, int thread) noexcept nogil:
    """Lay out the work space, and fetch what nodes and links are now."""
    cdef Filaments* table = &t.table
    cdef Py_ssize_t row = table.start[which]
    cdef Lanes* work = <Lanes*> (table.work + thread * table.room)
    cdef double d[3]
    cdef const double* v
    cdef int m = table.links[which]
    cdef int at, k, c, i
    b.m = m
    b.square = <const Lanes*> (table.square + LANES * row)
    b.scale = <const Lanes*> (table.scale + LANES * row)
    b.node = table.node + LANES * row
    b.owned = table.owned + LANES * row
    b.next = table.next + LANES * which
    b.coupled = table.coupled[which]
    b.D = work
    b.d = b.D + 3 * m + 3
    b.w = b.d + 3 * m + 3
    b.v = b.w + m + 1
    b.noise = b.v + 3 * m + 3
    b.mu = b.noise + 3 * m + 4
    b.delta = b.mu + m + 2
    b.real = b.delta + m + 1
    b.r = b.real + m
    b.upper = b.r + m
    b.left = b.upper + m
    b.right = b.left + m
    for at in range(m + 1):
        for k in range(LANES):
            i = b.node[LANES * at + k]
            _of(b.w + at)[k] = world.inverse_mass[i] if i >= 0 else 0.0
            v = world.v + 3 * <Py_ssize_t> i
            for c in range(3):
                _of(b.v + 3 * at + c)[k] = v[c] if i >= 0 else 0.0
    for k in range(LANES):
        b.count[k] = 0
    for at in range(m):
        for k in range(LANES):
            d[0] = d[1] = d[2] = 0.0
            _of(b.real + at)[k] = 0.0
            if _of(b.scale + at)[k] > 0.0:
                _of(b.real + at)[k] = 1.0
                b.count[k] += 1
                displacement(
                    &world.box, world.x + 3 * <Py_ssize_t> b.node[LANES * at + k],
                    world.x + 3 * <Py_ssize_t> b.node[LANES * at + LANES + k], d)
            for c in range(3):
                _of(b.D + 3 * at + c)[k] = d[c]


cdef void _draw(Batch* b, Task* t, World* world) noexcept nogil:
    """A Maxwell velocity for every node."""
    cdef int ids[NORMALS_BLOCK]
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef double scale
    cdef int first, n, i, place
    cdef Lanes* out
    first = 0
    while first < LANES * (b.m + 1):
        n = min(NORMALS_BLOCK, LANES * (b.m + 1) - first)
        for i in range(n):
            place = b.node[first + i]
            ids[i] = world.id[place] if place >= 0 else 0
        normals_block(ids, n, world.seed, world.step, t.letter, 0, CONSTRAINTS, 0, gx, gy, gz)
        for i in range(n):
            out = b.noise + 3 * ((first + i) // LANES)
            scale = sqrt(t.kT * _of(b.w + (first + i) // LANES)[i % LANES])
            _of(out)[i % LANES] = scale * gx[i]
            _of(out + 1)[i % LANES] = scale * gy[i]
            _of(out + 2)[i % LANES] = scale * gz[i]
        first += n


cdef int _batch(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    cdef Batch b
    cdef Lanes p, r
    cdef const Lanes* u
    cdef double residual = 0.0, sign = -1.0 if t.action == NORMAL else 1.0
    cdef Py_ssize_t which
    cdef int at, k, c, failed, fault = 0
    for which in range(first, last):
        _load(&b, t, world, which, thread)
        if t.action == FLIGHT or t.action == SETTLE:
            for at in range(b.m):
                for c in range(3):
                    # Before the flight; where there was none, as they are.
                    r = b.v[3 * at + 3 + c] - b.v[3 * at + c]
                    b.d[3 * at + c] = b.D[3 * at + c] - b.real[at] * (t.h * r)
            _share_ends(&b)
            failed = _lengths(&b, t.tolerance, &residual)
            if failed > 0:
                t.table.residual[which] = residual
                fault |= record_fault(world, NOT_CONVERGED, b.node[failed - 1], -1)
                continue
            for at in range(b.m + 1):
                for c in range(3):
                    _impulse(&b, b.mu, at, c, &p)
                    for k in range(LANES):
                        if b.owned[LANES * at + k]:
                            world.x[3 * <Py_ssize_t> b.node[LANES * at + k] + c] -= _of(&p)[k]
                    if t.action == FLIGHT:
                        b.v[3 * at + c] = b.v[3 * at + c] - p * (1.0 / t.h)
        if t.action == SETTLE:
            continue
        if t.action == NORMAL:
            _draw(&b, t, world)
        u = b.noise if t.action == NORMAL else b.v
        for at in range(3 * b.m):
            b.d[at] = b.D[at]
        _share_ends(&b)
        for at in range(b.m):
            r = lanes_of(0.0)
            for c in range(3):
                r = r + b.D[3 * at + c] * (u[3 * at + 3 + c] - u[3 * at + c])
            _eliminate(&b, at, &r)
        _substitute(&b)
        # Of a number that is not finite, even 0 times it is not 0.
        r = lanes_of(0.0)
        for at in range(b.m):
            r = r + 0.0 * b.delta[at]
        failed = 0
        for k in range(LANES):
            if failed == 0 and not (_of(&r)[k] == 0.0):
                failed = 1 + k
        if failed > 0:
            # The links of this filament cannot push its nodes apart, folded onto itself or held straight.
            t.table.residual[which] = 1.0
            fault |= record_fault(world, NOT_CONVERGED, b.node[failed - 1], -1)
            continue
        for at in range(b.m + 1):
            for c in range(3):
                _impulse(&b, b.delta, at, c, &p)
                # What is normal is taken from velocities, and of the noise it is all that is wanted.
                r = b.v[3 * at + c] - sign * p
                for k in range(LANES):
                    if b.owned[LANES * at + k]:
                        world.v[3 * <Py_ssize_t> b.node[LANES * at + k] + c] = _of(&r)[k]
    return fault


cdef class LengthConstraints(Operation):
    """One of ACTIONS on the filaments of a handle; the tables are those of struct Filaments."""
    cdef Task task
    cdef Py_ssize_t batches
    cdef object arrays
    cdef double[::1] residual

    def __init__(self, const int32_t[::1] links, const int32_t[::1] start, const int32_t[:, ::1] node,
                 const double[:, ::1] square, const double[:, ::1] scale, const int32_t[:, ::1] owned,
                 const int32_t[:, ::1] next, const int32_t[::1] coupled, double[:, ::1] work,
                 str action, double tolerance, double h, double kT, int letter):
        cdef Filaments* table = &self.task.table
        self.arrays = (links, start, node, square, scale, owned, next, coupled, work)
        self.batches = links.shape[0]
        table.links = &links[0]
        table.start = &start[0]
        table.node = &node[0, 0]
        table.square = &square[0, 0]
        table.scale = &scale[0, 0]
        table.owned = &owned[0, 0]
        table.next = &next[0, 0]
        table.coupled = &coupled[0]
        table.work = &work[0, 0]
        table.room = work.shape[1]
        self.residual = np.zeros(self.batches)
        table.residual = &self.residual[0]
        self.task.action = ACTIONS[action]
        self.task.tolerance = tolerance
        self.task.h = h
        self.task.kT = kT
        self.task.letter = letter

    cdef int run(self, World* world) noexcept nogil:
        cdef Filaments* table = &self.task.table
        cdef Py_ssize_t i
        cdef int k, fault
        if self.task.action == SETTLE:
            world.positions += 1
        fault = over_blocks(_batch, &self.task, world, self.batches, BLOCK)
        if fault != 0:
            # Of several that fail, on any thread, the one that is named.
            for i in range(self.batches):
                for k in range(LANES):
                    if table.node[LANES * <Py_ssize_t> table.start[i] + k] == world.fault.bead:
                        world.fault.value = table.residual[i]
        return fault


def room_for(most_links):
    """Doubles of work space for one thread, for batches of up to so many links."""
    return LANES * (PER_LINK * most_links + FOR_ENDS)
