"""Radial energies of pairs of beads on an implicit surface g(x) = 0, by the length of the geodesic between them.

    F_a = U'(L) t_a,   F_b = -U'(L) t_b

with the length L, and the unit tangents t_a and t_b at its ends, of the geodesic from a to b, parametrised from 0 to 1:

    x'' = f(x, x') = -(x'.H x') G / |G|^2,   x(0) = a,   x(1) = b

G and H are the gradient and the second derivatives of g. Its unknown is q = x'', a polynomial through n Gauss points.
Place and speed at these points are linear in q, and q <- f(x, x') is repeated until it stays the same. What the ends
and the length get of q are integrals by Gauss' rule, with twice as many digits as q has; how many digits q has, its
two highest coefficients tell. Where they tell of too few, there are more points. See docs/theory/surfaces.md.

A program of _kernels/core/expressions.pxd works on WIDTH points at a time: those of 4, 2 or 1 pairs, or half of those of one.
What a pair gets depends on it alone. The end with the lower place is a. Every pair is worked on once; then each bead
adds up its row of the neighbour list, as _kernels/forces/pairs.pyx does.

The caller has seen to it that no principal curvature of the surface is above pi over the cutoff: then two geodesics
between the same ends are never both shorter than it, and this one is the shortest path if it is.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import numpy as np

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport acos_
from medyanpy._kernels.core.expressions cimport Function, WIDTH, evaluate as evaluate_program, prepare
from medyanpy._kernels.core.neighbors cimport ROWS_PER_BLOCK, NeighborList, Neighbors
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, record_fault, sum_in_blocks
from medyanpy._kernels.core.program cimport LOST_COUNT, NO_GEODESIC, Operation, OUT_OF_MEMORY, TOO_CURVED, World
from medyanpy._kernels.forces.radial cimport evaluate
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.vec3 cimport dot

cdef enum:
    # Gauss points of a geodesic: FEWEST, and twice as many as often as it takes; with MOST once more, at half the pace.
    FEWEST = 4
    RULES = 4
    MOST = 32
    TRIES = 5
    # Pairs of one call of `_solve`.
    TOGETHER = 4
    MOST_ITERATIONS = 400
    # Pairs per block: tens of microseconds.
    BLOCK = 32

# A geodesic is at rest where one more iteration would change q by less, relative to the chord, as the last two tell; or
# where the last has changed it by no less than the one before, and by less than the second.
cdef double AT_REST = 1e-13
cdef double AT_REST_BY_ROUNDING = 1e-9
# The least that is believed of how an iteration makes changes smaller; a square.
cdef double LEAST_GAIN = 1e-4
# Nothing that is found later comes from so far away: squares, of the same.
cdef double FAR_OFF = 1e6
# The largest that the last two coefficients of q may be, relative to the chord: lengths and tangents then have errors
# of some 1e-4 of its square.
cdef double RESOLVED = 3e-5
# Of the last polynomial it is enough that they are no larger than this, if the way is longer than the cutoff by more
# than such a share of it.
cdef double NEARLY_RESOLVED = 1e-2
cdef double BEYOND = 1e-3
# Sines and cosines by which beads may miss the bounds that tell that they are on different sheets; and the share of the
# cutoff that they may be off the surface.
cdef double SLACK = 1e-6
cdef double OFF = 1e-6

cdef double PI = 3.141592653589793

# How it went with a pair.
cdef enum State:
    GOING = 0
    FOUND = 1
    COARSE = 2                # its polynomial has too few points
    APART = 3                 # no curve on the surface that is shorter than the cutoff
    LOST = 4                  # unknown


cdef struct Rule:
    const double* s           # (n,) Gauss points, from 0 to 1
    const double* w           # (n,) their weights
    const double* place       # (n, n) what q at point j adds to the place of point i: [j, i]
    const double* speed       # (n, n) the same of x'
    const double* last        # (2, n) q gives its two highest coefficients


cdef struct Line:             # one pair at work
    const double* a
    double d[3]
    double chord_squared
    double square             # of the length
    double before             # square of the last change
    const double* normal[2]   # at the ends
    double bend[2]            # along these: what q begins with
    double start[3]           # x' at the ends
    double end[3]
    int state


cdef struct Pair:
    int32_t a                 # slots
    int32_t b
    int state
    double on_a[3]            # forces
    double on_b[3]
    double energy


cdef struct AlongTask:
    const Neighbors* list
    const Function* function
    double* registers         # (threads, WIDTH n_registers)
    Py_ssize_t stride
    Rule rules[RULES]
    int kind
    const double* p
    double cutoff
    double curvature          # the largest that there is on the surface
    double least_cosine       # of the angle between the normals at the ends of a way shorter than the cutoff
    double* normal            # (n, 3) by slot
    double* value             # (n,) by slot: what a fault of its bead tells
    double* energy            # by member
    Py_ssize_t n_pairs
    Pair* pairs
    int32_t* pair_of          # of every entry of every row
    Py_ssize_t* first         # (n + 1,) by slot: where its entries start


# Gauss' rule ---------------------------------------------------------------------------------------------------------


def legendre(int n, double x):
    """P_0 to P_n at x."""
    values = [1.0, x]
    for k in range(1, n):
        values.append(((2 * k + 1) * x * values[k] - k * values[k - 1]) / (k + 1))
    return values


def gauss(int n):
    """Points from 0 to 1, weights, and three matrices, by Gauss' rule for even n: q (n,) at the points gives, as
    place.T q and speed.T q, what x'' = q with x(0) = x(1) = 0 has there, and as last q its two highest coefficients.

    In + - * / alone, so that every machine makes the same.
    """
    positive = []
    # Between one root and the next there are more than so many steps.
    steps = 2 * n * n
    for k in range(steps):
        low, high = k / steps, (k + 1) / steps
        sign = legendre(n, low)[n] < 0.0
        if (legendre(n, high)[n] < 0.0) == sign:
            continue
        for _ in range(60):
            middle = 0.5 * (low + high)
            if (legendre(n, middle)[n] < 0.0) == sign:
                low = middle
            else:
                high = middle
        positive.append(low)
    x = [-u for u in reversed(positive)] + positive
    s = np.array([0.5 + 0.5 * u for u in x])
    w = np.empty(n)
    coefficient = np.empty((n, n))          # of P_k, from q_j
    once, twice = np.empty((n, n)), np.empty((n, n))   # the integral of P_k from 0 to s_i, and the integral of that
    for i, u in enumerate(x):
        P = legendre(n + 2, u)
        slope = n * (u * P[n] - P[n - 1]) / (u * u - 1.0)
        w[i] = 1.0 / ((1.0 - u * u) * slope * slope)
        integral = [s[i]] + [(P[k + 1] - P[k - 1]) / (4 * k + 2) for k in range(1, n + 1)]
        for k in range(n):
            coefficient[k, i] = (2 * k + 1) * w[i] * P[k]
            once[i, k] = integral[k]
            twice[i, k] = 0.5 * s[i] * s[i] if k == 0 else (integral[k + 1] - integral[k - 1]) / (4 * k + 2)
        # Of P_0 it is s, and not what the rule for the others would give: less by a constant.
        twice[i, 1] = (integral[2] - (integral[0] - 0.5)) / 6.0 - 1.0 / 12.0
    place, speed = np.zeros((n, n)), np.zeros((n, n))
    for j in range(n):
        missed = w[j] * (1.0 - s[j])        # of the way to b, by q_j
        for i in range(n):
            for k in range(n):
                place[j, i] += twice[i, k] * coefficient[k, j]
                speed[j, i] += once[i, k] * coefficient[k, j]
            place[j, i] -= missed * s[i]
            speed[j, i] -= missed
    return s, w, place, speed, np.ascontiguousarray(coefficient[n - 2:])


# One geodesic, or a few ----------------------------------------------------------------------------------------------


cdef inline double _bend(double sine_squared) noexcept nogil:
    """An arc of a circle with the angle w has chords of length c, which leave its tangents under the angle w/2 and rise
    c sin(w/2) above them, and x'' = w^2/(2 sin(w/2)) c: this times that rise; up to half of a circle."""
    cdef double sine = sqrt(sine_squared)
    cdef double w
    # Towards 0 it is 2 (1 + sine^2/3).
    if sine < 1e-3:
        return 2.0 + sine_squared / 1.5
    w = PI - 2.0 * acos_(min(sine, 1.0))
    return 0.5 * w * w / sine_squared


cdef inline void _arc(const Line* line, double s, double* q) noexcept nogil:
    """What q begins with: along a normal in between. Arrays are (3, MOST)."""
    cdef double n[3]
    cdef double size
    cdef int c
    for c in range(3):
        n[c] = (1.0 - s) * line.normal[0][c] + s * line.normal[1][c]
    size = dot(n, n)
    size = ((1.0 - s) * line.bend[0] + s * line.bend[1]) / sqrt(size) if size > 0.0 else 0.0
    for c in range(3):
        q[MOST * c] = size * n[c]


cdef inline void _advance(const Rule* rule, int n, const double* bends, double* q, const double* speed, Line* line,
                          double cutoff, bint is_first, double pace, bint is_finest, bint is_last) noexcept nogil:
    """The next q of one pair; bends (3, n) are f; arrays are (3, MOST)."""
    cdef double change = 0.0, square = 0.0, unresolved = 0.0, gain, e, v, sum
    cdef int i, c, r
    for c in range(3):
        line.start[c] = line.end[c] = line.d[c]
    for i in range(n):
        e = v = 0.0
        for c in range(3):
            e += (bends[MOST * c + i] - q[MOST * c + i]) * (bends[MOST * c + i] - q[MOST * c + i])
            v += speed[MOST * c + i] * speed[MOST * c + i]
            q[MOST * c + i] += pace * (bends[MOST * c + i] - q[MOST * c + i])
            line.start[c] -= rule.w[i] * (1.0 - rule.s[i]) * q[MOST * c + i]
            line.end[c] += rule.w[i] * rule.s[i] * q[MOST * c + i]
        change += rule.w[i] * e
        square += rule.w[i] * v
    for r in range(2):
        for c in range(3):
            sum = 0.0
            for i in range(n):
                sum += rule.last[n * r + i] * q[MOST * c + i]
            unresolved += sum * sum
    line.square = square
    if not (unresolved <= RESOLVED * RESOLVED * line.chord_squared) and not is_finest:
        line.state = COARSE
        return
    if not (change <= FAR_OFF * line.chord_squared):
        line.state = LOST if is_last else COARSE
        return
    gain = 1.0 if is_first else change / line.before
    if change * max(gain, LEAST_GAIN) <= AT_REST * AT_REST * line.chord_squared or (
        change <= AT_REST_BY_ROUNDING * AT_REST_BY_ROUNDING * line.chord_squared and gain >= 1.0 and not is_first
    ):
        if unresolved <= RESOLVED * RESOLVED * line.chord_squared:
            line.state = FOUND
        elif (
            unresolved <= NEARLY_RESOLVED * NEARLY_RESOLVED * line.chord_squared
            and square > (1.0 + BEYOND) * (1.0 + BEYOND) * cutoff * cutoff
        ):
            line.state = APART
        else:
            line.state = LOST
    line.before = change


cdef inline void _solve_with(int n, const AlongTask* t, double* registers, const Rule* rule, Line* lines, int there,
                             double pace, bint is_last) noexcept nogil:
    """With n points each, a literal where this is called, and compiled in."""
    cdef const Function* f = &t.function[0]
    cdef const int32_t* out = f.outputs
    cdef double* at = registers + WIDTH * f.n_constants
    cdef const double* G[3]
    cdef const double* H[6]
    cdef double q[TOGETHER][3 * MOST]
    cdef double x[TOGETHER][3 * MOST]
    cdef double speed[TOGETHER][3 * MOST]
    cdef double bends[TOGETHER][3 * MOST]
    cdef int together = max(1, WIDTH // n), part = min(n, <int> WIDTH)
    cdef double qj, factor, u, v, w
    cdef Line* line
    cdef int k, i, j, c, turn, turns, chunk, going
    for c in range(3):
        G[c] = registers + WIDTH * out[1 + c]
    for c in range(6):
        H[c] = registers + WIDTH * out[4 + c]
    for k in range(there):
        lines[k].state = GOING
        for i in range(n):
            _arc(lines + k, rule.s[i], q[k] + i)
    for turns in range(MOST_ITERATIONS):
        going = 0
        for k in range(there):
            line = lines + k
            for c in range(3):
                for i in range(n):
                    x[k][MOST * c + i] = line.a[c] + rule.s[i] * line.d[c]
                    speed[k][MOST * c + i] = line.d[c]
                for j in range(n):
                    qj = q[k][MOST * c + j]
                    for i in range(n):
                        x[k][MOST * c + i] += rule.place[n * j + i] * qj
                        speed[k][MOST * c + i] += rule.speed[n * j + i] * qj
        for turn in range(n // part):
            chunk = part * turn
            # Where there are no more pairs, the last once again.
            for k in range(together):
                j = min(k, there - 1)
                for c in range(3):
                    for i in range(part):
                        at[WIDTH * c + part * k + i] = x[j][MOST * c + chunk + i]
            evaluate_program(f, registers)
            for k in range(there):
                for i in range(part):
                    j = part * k + i
                    u = speed[k][chunk + i]
                    v = speed[k][MOST + chunk + i]
                    w = speed[k][2 * MOST + chunk + i]
                    factor = -(
                        u * (u * H[0][j] + 2.0 * v * H[1][j] + 2.0 * w * H[2][j])
                        + v * (v * H[3][j] + 2.0 * w * H[4][j]) + w * w * H[5][j]
                    ) / (G[0][j] * G[0][j] + G[1][j] * G[1][j] + G[2][j] * G[2][j])
                    for c in range(3):
                        bends[k][MOST * c + chunk + i] = factor * G[c][j]
        for k in range(there):
            if lines[k].state == GOING:
                _advance(rule, n, bends[k], q[k], speed[k], lines + k, t.cutoff, turns == 0,
                         pace, n == MOST, is_last)
                going += lines[k].state == GOING
        if going == 0:
            return
    for k in range(there):
        if lines[k].state == GOING:
            lines[k].state = LOST if is_last else COARSE


cdef void _solve(const AlongTask* t, double* registers, int which, Line* lines, int there) noexcept nogil:
    """One of TRIES for as many pairs as fit into WIDTH, or one."""
    if which == 0:
        _solve_with(FEWEST, t, registers, t.rules, lines, there, 1.0, False)
    elif which == 1:
        _solve_with(2 * FEWEST, t, registers, t.rules + 1, lines, there, 1.0, False)
    elif which == 2:
        _solve_with(4 * FEWEST, t, registers, t.rules + 2, lines, there, 1.0, False)
    else:
        _solve_with(MOST, t, registers, t.rules + 3, lines, there, 1.0 if which == 3 else 0.5, which == 4)


# Pairs ---------------------------------------------------------------------------------------------------------------


cdef int _normals(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """The unit normal at every bead, and whether the surface is as flat there as it should be."""
    cdef AlongTask* t = <AlongTask*> task
    cdef const Function* f = t.function
    cdef double* registers = t.registers + t.stride * thread
    cdef double* at = registers + WIDTH * f.n_constants
    cdef const double* x
    cdef double g[3]
    cdef double h[6]
    cdef double n[3]
    cdef double hn[3]
    cdef double size, along, trace, sum
    cdef Py_ssize_t turn, s, slot
    cdef int k, c, fault = 0
    for turn in range((last - first + WIDTH - 1) // WIDTH):
        s = first + WIDTH * turn
        for k in range(WIDTH):
            x = t.list.now + 4 * min(s + k, last - 1)
            for c in range(3):
                at[WIDTH * c + k] = x[c]
        evaluate_program(f, registers)
        for k in range(min(last - s, <Py_ssize_t> WIDTH)):
            slot = s + k
            for c in range(3):
                g[c] = registers[WIDTH * f.outputs[1 + c] + k]
            for c in range(6):
                h[c] = registers[WIDTH * f.outputs[4 + c] + k]
            size = sqrt(dot(g, g))
            for c in range(3):
                n[c] = g[c] / size
                t.normal[3 * slot + c] = n[c]
            hn[0] = h[0] * n[0] + h[1] * n[1] + h[2] * n[2]
            hn[1] = h[1] * n[0] + h[3] * n[1] + h[4] * n[2]
            hn[2] = h[2] * n[0] + h[4] * n[1] + h[5] * n[2]
            along = dot(n, hn)
            # Sum of the principal curvatures, and of their squares.
            trace = (h[0] + h[3] + h[5] - along) / size
            sum = h[0] * h[0] + h[3] * h[3] + h[5] * h[5] + 2.0 * (h[1] * h[1] + h[2] * h[2] + h[4] * h[4])
            sum = (sum - 2.0 * dot(hn, hn) + along * along) / (size * size)
            sum = 2.0 * sum - trace * trace
            sum = 0.5 * ((-trace if trace < 0.0 else trace) + (sqrt(sum) if sum > 0.0 else 0.0))
            if sum > t.curvature:
                t.value[slot] = 1.0 / sum
                fault |= record_fault(world, TOO_CURVED, t.list.row[slot], slot)
    return fault


cdef inline int _begin(const AlongTask* t, const Pair* pair, Line* line) noexcept nogil:
    """APART if no curve on the surface that is shorter than the cutoff can join two beads; else GOING.

    A curve with curvatures up to k, shorter than pi/k, is no longer than the arc of a circle of radius 1/k over the
    same chord c (Schwarz). Over it normals turn by no more than the arc does, nor by more than k times the cutoff, and
    the chord leaves the tangent planes at its ends under no more than half of the angle of the arc, whose sine is
    k c/2.
    """
    cdef const double* n = t.normal + 3 * <Py_ssize_t> pair.a
    cdef const double* m = t.normal + 3 * <Py_ssize_t> pair.b
    cdef double square = line.chord_squared
    cdef double curved = t.curvature * t.curvature * square
    cdef double rise = 0.5 * t.curvature * square + SLACK * sqrt(square) + OFF * t.cutoff
    cdef double u = dot(n, line.d), v = dot(m, line.d)
    if dot(n, m) < max(1.0 - 0.5 * curved, t.least_cosine) - SLACK or u * u > rise * rise or v * v > rise * rise:
        return APART
    line.normal[0] = n
    line.normal[1] = m
    line.bend[0] = u * _bend(u * u / square)
    line.bend[1] = -v * _bend(v * v / square)
    return GOING


cdef void _keep(const AlongTask* t, Pair* pair, Line* line) noexcept nogil:
    """What a pair gets of its geodesic."""
    cdef const double* n = t.normal + 3 * <Py_ssize_t> pair.a
    cdef const double* m = t.normal + 3 * <Py_ssize_t> pair.b
    cdef double u[4]
    cdef double along, size
    cdef int c
    pair.state = line.state
    if line.state != FOUND:
        return
    evaluate(t.kind, t.p, sqrt(line.square), 1, u)
    pair.energy = u[0]
    along = dot(n, line.start)
    for c in range(3):
        line.start[c] -= along * n[c]
    size = sqrt(dot(line.start, line.start))
    # Beads in one place have no direction to push in. Zero is the mean over all of them.
    size = u[1] / size if size > 0.0 else 0.0 * u[1]
    for c in range(3):
        pair.on_a[c] = size * line.start[c]
    along = dot(m, line.end)
    for c in range(3):
        line.end[c] -= along * m[c]
    size = sqrt(dot(line.end, line.end))
    size = u[1] / size if size > 0.0 else 0.0 * u[1]
    for c in range(3):
        pair.on_b[c] = -size * line.end[c]


cdef int _pairs(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef AlongTask* t = <AlongTask*> task
    cdef double* registers = t.registers + t.stride * thread
    cdef Line lines[BLOCK]
    cdef Line some[TOGETHER]
    cdef int32_t which[BLOCK]
    cdef Line* line
    cdef Pair* pair
    cdef const double* b
    cdef double square
    cdef Py_ssize_t i
    cdef int left = 0, still, there, k, r, c, n = FEWEST
    for i in range(first, last):
        pair = t.pairs + i
        line = lines + left
        line.a = t.list.now + 4 * <Py_ssize_t> pair.a
        b = t.list.now + 4 * <Py_ssize_t> pair.b
        displacement(&world.box, line.a, b, line.d)
        square = dot(line.d, line.d)
        pair.state = APART
        pair.energy = 0.0
        for c in range(3):
            pair.on_a[c] = pair.on_b[c] = 0.0
        if not (square < t.cutoff * t.cutoff):
            continue
        line.chord_squared = line.square = square
        if square == 0.0:
            line.state = FOUND
            for c in range(3):
                line.start[c] = line.end[c] = 0.0
            _keep(t, pair, line)
        elif _begin(t, pair, line) == GOING:
            which[left] = <int32_t> (i - first)
            left += 1
    for r in range(TRIES):
        still = 0
        k = 0
        while k < left:
            there = min(left - k, max(1, WIDTH // n))
            for c in range(there):
                some[c] = lines[k + c]
            _solve(t, registers, r, some, there)
            for c in range(there):
                if some[c].state == COARSE:
                    # Behind what is still to be read.
                    lines[still] = some[c]
                    which[still] = which[k + c]
                    still += 1
                else:
                    _keep(t, t.pairs + first + which[k + c], some + c)
            k += there
        left = still
        n = min(2 * n, <int> MOST)
    return 0


cdef int _gather(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What every bead gets of its pairs, in the order of its row."""
    cdef AlongTask* t = <AlongTask*> task
    cdef const Neighbors* near = t.list
    cdef Pair* pair
    cdef double* mine
    cdef double* f
    cdef double d[3]
    cdef double total[3]
    cdef double energy
    cdef Py_ssize_t s, e
    cdef int c, fault = 0
    for s in range(first, last):
        total[0] = total[1] = total[2] = 0.0
        energy = 0.0
        for e in range(t.first[s], t.first[s + 1]):
            pair = t.pairs + t.pair_of[e]
            if pair.state == LOST and fault == 0:
                displacement(&world.box, near.now + 4 * <Py_ssize_t> pair.a, near.now + 4 * <Py_ssize_t> pair.b, d)
                t.value[s] = sqrt(dot(d, d))
                fault = record_fault(world, NO_GEODESIC, near.row[s], pair.b if pair.a == s else pair.a)
            mine = &pair.on_a[0] if pair.a == s else &pair.on_b[0]
            for c in range(3):
                total[c] += mine[c]
            # Half from each end: the two halves make one whole exactly.
            energy += 0.5 * pair.energy
        # Summed apart and added once: two equal forces give exactly twice one.
        f = near.sites.f + 3 * <Py_ssize_t> near.row[s]
        for c in range(3):
            f[c] += total[c]
        t.energy[near.member[s]] = energy
    return fault


cdef class PairsAlongSurface(Operation):
    """A radial energy of all neighbours on one surface; the caller has made the list for the range of the function.

    Parameters
    ----------
    name : str
    kind : Radial
        The radial function: one that ends.
    parameters : sequence of float
        Those of the function.
    neighbors : NeighborList
        With the range of the function, the same for all pairs.
    sites : SiteTable
        What the rows of the list are rows of: beads.
    program : tuple
        Of g, its gradient and its six second derivatives; see `Graph.program`.
    curvature : float
        No principal curvature of the surface is larger.
    threads : int
    """
    cdef SiteTable sites
    cdef readonly NeighborList neighbors
    cdef AlongTask task
    cdef Function function
    cdef list arrays
    cdef double* partial
    cdef long long built      # `builds` of the list that the pairs are of; -1: of none
    cdef Py_ssize_t room      # for so many entries there is memory

    def __init__(self, str name, int kind, parameters, NeighborList neighbors, SiteTable sites, program,
                 double curvature, int threads):
        cdef AlongTask* t = &self.task
        cdef Function* f = &self.function
        cdef const int32_t[:, ::1] instructions = program[0]
        cdef const double[::1] constants = program[1]
        cdef const int32_t[::1] outputs = program[2]
        cdef const double[::1] s, w
        cdef const double[:, ::1] place, speed, last
        cdef Py_ssize_t n = neighbors.list.n_members
        cdef int k
        self.name = name
        self.sites = sites
        self.neighbors = neighbors
        self.arrays = []
        f.instructions = table(self.arrays, instructions)
        f.n = instructions.shape[0]
        f.constants = vector(self.arrays, constants)
        f.n_constants = constants.shape[0]
        f.outputs = vector(self.arrays, outputs)
        f.n_registers = program[3]
        for k in range(RULES):
            s, w, place, speed, last = gauss(FEWEST << k)
            t.rules[k].s = vector(self.arrays, s)
            t.rules[k].w = vector(self.arrays, w)
            t.rules[k].place = table(self.arrays, place)
            t.rules[k].speed = table(self.arrays, speed)
            t.rules[k].last = table(self.arrays, last)
        t.list = &neighbors.list
        t.function = f
        # A line of memory between threads.
        t.stride = WIDTH * (f.n_registers + 1)
        t.registers = zeros(self.arrays, threads * t.stride)
        for k in range(threads):
            prepare(f, t.registers + k * t.stride)
        t.kind = kind
        t.p = vector[double](self.arrays, np.array(parameters, float))
        t.cutoff = neighbors.list.radius[0] + neighbors.list.radius[0] if n > 0 else 0.0
        t.curvature = curvature
        t.least_cosine = np.cos(min(np.pi, curvature * t.cutoff))
        t.normal = zeros(self.arrays, 3 * n)
        t.value = zeros(self.arrays, n)
        t.energy = zeros(self.arrays, n)
        self.partial = zeros(self.arrays, n_blocks(n, SUM_BLOCK))
        first = np.zeros(n + 1, np.intp)
        t.first = _sizes(first)
        self.arrays.append(first)
        self.built = -1

    def __dealloc__(self):
        free(self.task.pairs)
        free(self.task.pair_of)

    cdef int run(self, World* world) noexcept nogil:
        cdef AlongTask* t = &self.task
        cdef const Neighbors* near = t.list
        cdef int fault
        self.energy = 0.0
        if near.n_members == 0:
            return 0
        fault = self.sites.gather(world)
        if fault == 0:
            fault = self.neighbors.follow(world, &self.sites.now)
        if fault == 0:
            fault = self.number(world)
        if fault == 0:
            fault = over_blocks(_normals, t, world, near.n, ROWS_PER_BLOCK)
        if fault != 0:
            return self.tell(world, fault)
        if near.n < near.n_members:
            # Of those that are asleep there is none.
            memset(t.energy, 0, near.n_members * sizeof(double))
        over_blocks(_pairs, t, world, t.n_pairs, BLOCK)
        fault = over_blocks(_gather, t, world, near.n, ROWS_PER_BLOCK)
        if fault != 0:
            return self.tell(world, fault)
        if world.want_energy:
            # In the order of members: that of slots depends on when the list was built.
            self.energy = sum_in_blocks(world, t.energy, near.n_members, self.partial)
        return self.sites.scatter(world)

    cdef int tell(self, World* world, int fault) noexcept nogil:
        """Of a slot that was noted, what users know: the partner by its place, and a number."""
        cdef Py_ssize_t s
        if fault == NO_GEODESIC or fault == TOO_CURVED:
            world.fault.triangle = self.task.list.row[world.fault.triangle]
            for s in range(self.task.list.n):
                if self.task.list.row[s] == world.fault.bead:
                    world.fault.value = self.task.value[s]
        return fault

    cdef int number(self, World* world) noexcept nogil:
        """The pairs of a list that has been built anew, each once, and which of them every entry is."""
        cdef AlongTask* t = &self.task
        cdef const Neighbors* near = t.list
        cdef const int32_t* row = NULL
        cdef const int32_t* theirs
        cdef Py_ssize_t s, o, e, low, high, middle, used
        cdef void* pairs
        cdef void* pair_of
        cdef int fault
        if near.n == 0:
            # Nor is that counted as a list.
            t.n_pairs = 0
            self.built = -1
            return 0
        if self.built == near.builds:
            return 0
        self.built = -1
        for s in range(near.n):
            t.first[s + 1] = t.first[s] + near.count[s]
        if t.first[near.n] > self.room:
            # With room for more, so that it is seldom.
            used = t.first[near.n] + t.first[near.n] // 4
            pairs = realloc(t.pairs, (used // 2 + 1) * sizeof(Pair))
            t.pairs = <Pair*> pairs if pairs != NULL else t.pairs
            pair_of = realloc(t.pair_of, used * sizeof(int32_t))
            t.pair_of = <int32_t*> pair_of if pair_of != NULL else t.pair_of
            if pairs == NULL or pair_of == NULL:
                return record_fault(world, OUT_OF_MEMORY, near.row[0], -1)
            self.room = used
        used = 0
        for s in range(near.n):
            if s % ROWS_PER_BLOCK == 0:
                row = near.rows[s // ROWS_PER_BLOCK]
            for e in range(near.count[s]):
                if near.row[s] < near.row[row[e]]:
                    t.pairs[used].a = <int32_t> s
                    t.pairs[used].b = row[e]
                    t.pair_of[t.first[s] + e] = <int32_t> used
                    used += 1
            row += near.count[s]
        t.n_pairs = used
        # The other ends.
        fault = self.neighbors.index(world)
        if fault != 0:
            return fault
        for s in range(near.n):
            if s % ROWS_PER_BLOCK == 0:
                row = near.rows[s // ROWS_PER_BLOCK]
            for e in range(near.count[s]):
                o = row[e]
                if near.row[s] > near.row[o]:
                    # Rows are sorted by number; of those with the same, beyond 2^32 beads, the last is found.
                    theirs = near.row_of[near.member[o]]
                    low = 0
                    high = near.count[o]
                    while high - low > 1:
                        middle = (low + high) // 2
                        if near.id[theirs[middle]] <= near.id[s]:
                            low = middle
                        else:
                            high = middle
                    while low >= 0 and theirs[low] != s:
                        low -= 1
                    if low < 0:
                        return record_fault(world, LOST_COUNT, near.row[s], -1)
                    t.pair_of[t.first[s] + e] = t.pair_of[t.first[o] + low]
            row += near.count[s]
        self.built = near.builds
        return 0


cdef Py_ssize_t* _sizes(Py_ssize_t[::1] a) noexcept:
    return &a[0]
