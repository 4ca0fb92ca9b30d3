"""Linearly implicit kicks: forces that come from a linear solve, so that stiff modes do not bound the timestep.

With the masses M, the forces f = -V'(x), the Hessian H of all forces or of the stiff ones, and h the time between two
kicks,

    (M + beta h^2 H(x)) a = f(x)                            simplified Zhang-Skeel (18), (19): kick by M a
    the same, kick by M a - beta^2 h^4/2 a.V'''(x).a        Zhang-Skeel (3): the gradient of a function of x
    M a = f(x + beta h^2 a), by Newton's method             push-forward Newmark (14)

These depend on x alone: words around them keep their symmetry, and with the second and third they are symplectic. a is
found for plain beads that move; others are kicked by f. In the first two a stiffness K(x), without negative
eigenvalues, may stand for H. Then

    f - beta h^2 H a - beta^2 h^4/2 a.K'(x).a

is the gradient: of beta h^2/2 f.a - V, as (3) is.

Two things remember more, in words BAB alone. Newmark's gamma other than 1/2 adds (gamma - 1/2) h (a_(k+1) - a_k) to the
second kick. Newmark's method with one step of Newton's carries its a from step to step:

    (M + beta h^2 H(q)) d = M (h v - beta h^2 a) + beta h^2 f(q),    q <- q + d,    a <- a + (d - h v)/(beta h^2)

with v after the first kick; both kicks are by M a.

Equations are taken bead by bead in an order in which coupled beads are near each other, molecule by molecule: the
matrix of each has a band, and is factored as L D L^T in it. A molecule whose band would be too wide is solved by
conjugate gradients, and so is the whole where a block of the Hessian couples beads of two molecules, or others than it
did at first, or where a force couples all its beads (areas, volumes).

Source: Tao & Owhadi, "Variational and linearly-implicit integrators, with applications" (2016); Zhang & Skeel, Appl.
Numer. Math. 25, 297 (1997).
"""
import numpy as np

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memset

from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.letters.kick cimport ForceSum, KickForce, KickRule
from medyanpy._kernels.core.parallel cimport BlockFunction, n_blocks, over_blocks, record_fault
from medyanpy._kernels.core.program cimport NO_FAULT, NOT_SOLVED, OUT_OF_MEMORY, Operation, Sequence, World, mark_moved

cpdef enum Scheme:
    SIMPLIFIED = 0
    SYMPLECTIC = 1
    NEWTON = 2
    CARRIED = 3

cdef enum:
    # Newton's method converges within a few steps; with stiffnesses in place of Hessians it may take many.
    MOST_STEPS = 500
    # Molecules per parallel block.
    MOLECULES = 64

# Pivots below this, relative to what was subtracted to make them, are none.
cdef double TINY = 1e-13
# Newton's method takes Hessians where a step changes accelerations by no more than this part of them.
cdef double NEAR = 0.1
# Newton's method has converged when it moves beads by no more than a few roundings of where they are.
cdef double CONVERGED = 4e-15

include "conjugate_gradients.pxi"

# How the equations of a molecule are solved.
cdef enum Way:
    BAND = 0
    CHAIN = 1                 # a band in which each bead is coupled to the next alone
    WIDE = 2                  # by conjugate gradients


cdef struct Band:
    Py_ssize_t n              # beads
    const int32_t* place      # (n,) of each, in the order of solution
    const int32_t* order      # by place: where in that order, -1: not among them
    const int32_t* width      # (n,) how many beads before it its rows reach; -1: its molecule has no band
    const int32_t* molecule   # (n,)
    const int64_t* row        # (n,) where its three rows start, each of 3 (width + 1) numbers
    double* matrix
    double* pivot             # (3 n,) their inverses
    double scale              # beta h^2
    BlockRows rows            # of molecules without a band, or of all
    int whole                 # whether all blocks go there
    int outside               # whether one has fallen outside of its band, or of its molecule


cdef inline Py_ssize_t _across(const Band* band, Py_ssize_t p) noexcept nogil:
    """From one row of a bead to the next."""
    return 3 * (<Py_ssize_t> band.width[p] + 1)


cdef inline double* _diagonal(const Band* band, Py_ssize_t p) noexcept nogil:
    """The block of a bead with itself; that with the bead before is 3 numbers to the left."""
    return band.matrix + band.row[p] + 3 * <Py_ssize_t> band.width[p]


cdef int _into_band(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil:
    cdef Band* t = <Band*> sink
    cdef Py_ssize_t p = t.order[i]
    cdef Py_ssize_t q = t.order[j]
    cdef Py_ssize_t across
    cdef double* row
    cdef int a, b
    if p < 0 or q < 0:
        return 0
    if t.whole:
        return _into_rows(&t.rows, t.scale, p, q, block)
    if t.molecule[p] != t.molecule[q]:
        t.outside = True
        return 0
    if t.width[p] < 0:
        return _into_rows(&t.rows, t.scale, p, q, block)
    if p >= q:
        if p - q > t.width[p]:
            t.outside = True
            return 0
        across = _across(t, p)
        row = _diagonal(t, p) - 3 * (p - q)
        for a in range(3):
            for b in range(3):
                row[across * a + b] += t.scale * block[3 * a + b]
    else:
        if q - p > t.width[q]:
            t.outside = True
            return 0
        across = _across(t, q)
        row = _diagonal(t, q) - 3 * (q - p)
        for a in range(3):
            for b in range(3):
                row[across * a + b] += t.scale * block[3 * b + a]
    return 0


cdef inline void _take_out(
    const Band* band, const double* z, Py_ssize_t k, double* e, Py_ssize_t row, Py_ssize_t column, double* d,
    Py_ssize_t across, double* taken, double* r,
) noexcept nogil:
    """Take bead k, which is factored, out of the rows d, r of a bead coupled to it by the block e: e[row i + column j]
    is element (i, j), and becomes that of L."""
    cdef const double* known = _diagonal(band, k)
    cdef Py_ssize_t step = _across(band, k)
    cdef const double* inverse = band.pivot + 3 * k
    cdef double l10 = known[step], l20 = known[2 * step], l21 = known[2 * step + 1]
    cdef double w0[3]
    cdef double w1[3]
    cdef double w2[3]
    cdef double m0, m1, m2, t0, t1, t2
    cdef double* at
    cdef int i, j
    z += 3 * k
    for i in range(3):
        at = e + row * i
        w0[i] = at[0]
        w1[i] = at[column] - w0[i] * l10
        w2[i] = at[2 * column] - w0[i] * l20 - w1[i] * l21
    for i in range(3):
        at = e + row * i
        m0, m1, m2 = w0[i] * inverse[0], w1[i] * inverse[1], w2[i] * inverse[2]
        r[i] -= m0 * z[0] + m1 * z[1] + m2 * z[2]
        for j in range(i):
            d[across * i + j] -= m0 * w0[j] + m1 * w1[j] + m2 * w2[j]
        t0, t1, t2 = m0 * w0[i], m1 * w1[i], m2 * w2[i]
        d[across * i + i] -= t0 + t1 + t2
        taken[i] += fabs(t0) + fabs(t1) + fabs(t2)
        at[0], at[column], at[2 * column] = m0, m1, m2


cdef inline int _reduce(const Band* band, double* z, Py_ssize_t p, bint before, bint after) noexcept nogil:
    """L D L^T of a bead of a chain, less its neighbours that are factored; z <- L^-1 z. Whether all pivots are some."""
    cdef Py_ssize_t u = _across(band, p)
    cdef double* d = _diagonal(band, p)
    cdef double* inverse = band.pivot + 3 * p
    cdef double* r = z + 3 * p
    cdef double taken[3]
    cdef double b10, b20, b21, p1, p2
    taken[0], taken[1], taken[2] = fabs(d[0]), fabs(d[u + 1]), fabs(d[2 * u + 2])
    if before:
        _take_out(band, z, p - 1, d - 3, u, 1, d, u, taken, r)
    if after:
        _take_out(band, z, p + 1, _diagonal(band, p + 1) - 3, 1, _across(band, p + 1), d, u, taken, r)
    inverse[0] = 1.0 / d[0]
    b10, b20 = d[u], d[2 * u]
    d[u] = b10 * inverse[0]
    d[2 * u] = b20 * inverse[0]
    p1 = d[u + 1] - b10 * d[u]
    b21 = d[2 * u + 1] - b20 * d[u]
    inverse[1] = 1.0 / p1
    d[2 * u + 1] = b21 * inverse[1]
    p2 = d[2 * u + 2] - b20 * d[2 * u] - b21 * d[2 * u + 1]
    inverse[2] = 1.0 / p2
    r[1] -= d[u] * r[0]
    r[2] -= d[2 * u] * r[0] + d[2 * u + 1] * r[1]
    taken[1] += fabs(b10 * d[u])
    taken[2] += fabs(b20 * d[2 * u]) + fabs(b21 * d[2 * u + 1])
    # Of numbers that are none, too.
    return fabs(d[0]) > TINY * taken[0] and fabs(p1) > TINY * taken[1] and fabs(p2) > TINY * taken[2]


cdef inline void _substitute(const Band* band, double* z, Py_ssize_t p, bint before, bint after) noexcept nogil:
    """The solution of a bead of a chain, with that of the neighbour it was taken out of."""
    cdef Py_ssize_t u = _across(band, p)
    cdef const double* d = _diagonal(band, p)
    cdef const double* e
    cdef Py_ssize_t step
    cdef double* x = z + 3 * p
    cdef const double* y
    cdef int j
    for j in range(3):
        x[j] *= band.pivot[3 * p + j]
    if before:
        e = d - 3
        y = x - 3
        for j in range(3):
            x[j] -= e[u * j] * y[0] + e[u * j + 1] * y[1] + e[u * j + 2] * y[2]
    if after:
        step = _across(band, p + 1)
        e = _diagonal(band, p + 1) - 3
        y = x + 3
        for j in range(3):
            x[j] -= e[j] * y[0] + e[step + j] * y[1] + e[2 * step + j] * y[2]
    x[1] -= d[2 * u + 1] * x[2]
    x[0] -= d[u] * x[1] + d[2 * u] * x[2]


cdef Py_ssize_t _solve_chain(const Band* band, double* z, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """A molecule in which each bead is coupled to the next alone: from both ends to the middle, which are two chains of
    operations that do not wait for each other, and back. Returns -1, or the bead at which a pivot is lost."""
    cdef Py_ssize_t middle = start + (end - start) // 2
    cdef Py_ssize_t p, q
    for p in range(start, middle):
        q = end - 1 - (p - start)
        if not _reduce(band, z, p, p > start, False):
            return p
        if q > middle and not _reduce(band, z, q, False, q < end - 1):
            return q
    if not _reduce(band, z, middle, middle > start, middle < end - 1):
        return middle
    _substitute(band, z, middle, False, False)
    for p in range(middle - 1, start - 1, -1):
        q = 2 * middle - p
        _substitute(band, z, p, False, True)
        if q < end:
            _substitute(band, z, q, True, False)
    return -1


cdef Py_ssize_t _solve_band(const Band* band, double* z, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Any molecule, of beads first to last - 1. Returns -1, or the bead at which a pivot is lost."""
    cdef Py_ssize_t p, q, i, j, k, low, lowest, across, beyond
    cdef Py_ssize_t start = 3 * first, end = 3 * last
    cdef double* u
    cdef double* u0
    cdef double* u1
    cdef double* u2
    cdef const double* v
    cdef double s, s1, s2, taken, pivot
    # A row holds L D before the diagonal until it is done, then L; column j of it is u[j].
    for p in range(first, last):
        across = _across(band, p)
        lowest = 3 * (p - band.width[p])
        low = lowest if lowest > start else start
        u0 = band.matrix + band.row[p] - lowest
        u1 = u0 + across
        u2 = u1 + across
        # The three rows of a bead at a time, which do not wait for each other.
        for q in range(low // 3, p):
            beyond = _across(band, q)
            lowest = 3 * (q - band.width[q])
            v = band.matrix + band.row[q] - lowest
            lowest = lowest if lowest > low else low
            for j in range(3 * q, 3 * q + 3):
                s, s1, s2 = u0[j], u1[j], u2[j]
                for k in range(lowest, j):
                    s -= u0[k] * v[k]
                    s1 -= u1[k] * v[k]
                    s2 -= u2[k] * v[k]
                u0[j], u1[j], u2[j] = s, s1, s2
                v += beyond
        u = u0
        for i in range(3 * p, 3 * p + 3):
            v = u0
            for j in range(3 * p, i):
                s = u[j]
                for k in range(low, j):
                    s -= u[k] * v[k]
                u[j] = s
                v += across
            pivot = u[i]
            taken = fabs(pivot)
            s = z[i]
            for k in range(low, i):
                s1 = u[k]
                u[k] = s1 * band.pivot[k]
                s2 = s1 * u[k]
                pivot -= s2
                taken += fabs(s2)
                s -= u[k] * z[k]
            z[i] = s
            # Of a number that is none, too.
            if not (fabs(pivot) > TINY * taken):
                return p
            band.pivot[i] = 1.0 / pivot
            u += across
    for i in range(start, end):
        z[i] *= band.pivot[i]
    for i in range(end - 1, start - 1, -1):
        p = i // 3
        lowest = 3 * (p - band.width[p])
        u = band.matrix + band.row[p] + (i - 3 * p) * _across(band, p) - lowest
        low = lowest if lowest > start else start
        s = z[i]
        for k in range(low, i):
            z[k] -= u[k] * s
    return -1


cdef struct SolveTask:
    Band* band
    const int32_t* start      # (molecules + 1,) where molecules start
    const unsigned char* way  # (molecules,)
    double* z                 # (n, 3) the right side, then the solution, in the order of solution
    double* a                 # (n, 3) work space: the solution of molecules without a band


cdef int _solve(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Factor and solve the equations of molecules first to last - 1, but for the large ones without a band."""
    cdef SolveTask* t = <SolveTask*> task
    cdef Py_ssize_t molecule, start, n, lost
    cdef int fault = 0
    for molecule in range(first, last):
        start = t.start[molecule]
        n = t.start[molecule + 1] - start
        lost = -1
        if t.way[molecule] == CHAIN:
            lost = _solve_chain(t.band, t.z, start, start + n)
        elif t.way[molecule] == BAND:
            lost = _solve_band(t.band, t.z, start, start + n)
        elif n <= ROWS:
            fault |= _go_down(&t.band.rows, world, start, n, t.z, t.a)
        if lost >= 0:
            return record_fault(world, NOT_SOLVED, t.band.place[lost], -1)
    return fault


cdef class CoarseForces(KickRule):
    """The force of a linearly implicit kick.

    place (m,), start (molecules + 1,), width (m,): the beads solved for, in the order of solution, where each molecule
    of them starts, and how many beads before each its rows reach, -1 in molecules that shall have no band. tolerance
    is that of conjugate gradients.
    """
    cdef readonly int scheme
    cdef readonly double scale
    cdef Sequence stiff
    # Whether stiffnesses are asked for in the equations, not Hessians.
    cdef readonly bint positive
    cdef list arrays
    cdef Band band
    cdef SolveTask task
    cdef Py_ssize_t molecules
    cdef Py_ssize_t at_a_time      # molecules per parallel block
    cdef bint some_wide
    cdef double[:, ::1] right      # by order of solution
    cdef double[:, ::1] found      # likewise
    cdef double[:, ::1] a          # (n, 3) by place, 0 of beads that are not solved for
    cdef double[:, ::1] x          # kept, while Newton's method looks elsewhere
    cdef double[:, ::1] g          # (n, 3) the force to kick by
    cdef double[:, ::1] at         # (n, 3) where beads are whose a is carried from step to step
    cdef double[:, ::1] w          # (n, 3) of a force that couples all its beads; None: no force does
    cdef long long solved_at       # the value of world.positions that g and a are of

    def __init__(self, list stiff, int scheme, double scale, Py_ssize_t n, const int32_t[::1] place,
                 const int32_t[::1] start, const int32_t[::1] width, double tolerance, bint positive=False):
        order = np.full(n, -1, np.int32)
        order[np.asarray(place)] = np.arange(place.shape[0], dtype=np.int32)
        m = place.shape[0]
        cdef const unsigned char[::1] way
        first, reach = np.asarray(start)[: start.shape[0] - 1], np.asarray(width)
        wide = reach[first] < 0
        way = np.where(wide, WIDE, np.where(np.maximum.reduceat(reach, first) <= 1, CHAIN, BAND)).astype(np.uint8)
        molecule = np.repeat(np.arange(len(first), dtype=np.int32), np.diff(start))
        counts = 9 * (reach.astype(np.int64) + 1)
        row = np.cumsum(counts) - counts
        self.stiff = Sequence(stiff)
        self.positive = positive
        self.scheme = scheme
        self.scale = scale
        self.some_wide = wide.any()
        self.at_a_time = 1 if self.some_wide else MOLECULES
        self.arrays = []
        self.band.n = m
        self.band.place = vector(self.arrays, place)
        self.band.order = vector[int32_t](self.arrays, order)
        self.band.width = vector(self.arrays, width)
        self.band.molecule = vector[int32_t](self.arrays, molecule)
        self.band.row = vector[int64_t](self.arrays, row)
        self.band.matrix = zeros(self.arrays, counts.sum())
        self.band.pivot = zeros(self.arrays, 3 * m)
        self.band.scale = scale
        self.band.rows.n = m
        self.band.rows.place = self.band.place
        self.band.rows.tolerance = tolerance
        dense = sum(force.dense > 0 for force in stiff)
        self.w = np.zeros((n, 3)) if dense else None
        self.band.rows.dense = dense
        self.band.rows.w = zeros(self.arrays, dense * 3 * m)
        self.band.rows.strength = zeros(self.arrays, dense)
        self.band.rows.share = zeros(self.arrays, dense)
        self.right = np.empty((m, 3))
        self.found = np.empty((m, 3))
        self.molecules = start.shape[0] - 1
        self.task.band = &self.band
        self.task.start = vector(self.arrays, start)
        self.task.way = vector(self.arrays, way)
        self.task.z = &self.right[0, 0]
        self.task.a = &self.found[0, 0]
        self.a = np.zeros((n, 3))
        self.x = np.empty((n if scheme == NEWTON else 0, 3))
        self.g = np.empty((n, 3))
        self.solved_at = -1

    def __dealloc__(self):
        _free_rows(&self.band.rows)

    def carry(self, double[:, ::1] at, double[:, ::1] a):
        """Keep in these arrays, (n, 3) each, accelerations that steps hand on, and where beads are that have them."""
        self.at = at
        self.a = a

    @property
    def products(self):
        """Products with M + beta h^2 H that the last solution took, of the molecule with most; 0 without wide ones."""
        cdef Py_ssize_t k
        cdef int most = 0
        for k in range(self.band.n if self.band.rows.products != NULL else 0):
            most = max(most, self.band.rows.products[k])
        return most

    @property
    def acceleration(self):
        """(n, 3) a as last solved for, by place."""
        return np.asarray(self.a)

    cdef int replace(self, World* world, ForceSum forces, const double** f) noexcept nogil:
        cdef int fault
        f[0] = &self.g[0, 0]
        if self.solved_at == world.positions:
            return 0
        fault = self.find(world, forces)
        if fault == 0:
            self.solved_at = world.positions
        return fault

    cdef int assemble(self, World* world, bint positive) noexcept nogil:
        """M + beta h^2 H, or with stiffnesses, at the present positions, into the bands and rows."""
        cdef BlockRows* rows = &self.band.rows
        cdef bint any_rows = self.some_wide or self.band.whole
        cdef Py_ssize_t p, k
        cdef int fault = 0, dense = 0, c
        cdef double m
        cdef double* row
        self.band.outside = False
        if any_rows:
            fault = _begin_rows(rows, world)
        if fault != 0:
            return fault
        if self.size() > 0 and not self.band.whole:
            memset(self.band.matrix, 0, self.size() * sizeof(double))
            for p in range(self.band.n):
                m = world.mass[self.band.place[p]]
                row = _diagonal(&self.band, p)
                for c in range(3 if self.band.width[p] >= 0 else 0):
                    row[c * (_across(&self.band, p) + 1)] = m
        for k in range(self.stiff.count):
            if (<Operation> self.stiff.items[k]).dense > 0:
                fault = self.part(world, positive, <Operation> self.stiff.items[k], dense)
                dense += 1
            elif positive:
                fault = (<Operation> self.stiff.items[k]).stiffness(world, _into_band, &self.band)
            else:
                fault = (<Operation> self.stiff.items[k]).hessian(world, _into_band, &self.band)
            if fault != 0:
                return fault
        if not any_rows or self.band.outside or _in_place(rows):
            return 0
        # Other beads are coupled than before: once more, into their places.
        fault = _arrange(rows)
        return fault if fault != 0 else self.assemble(world, positive)

    cdef int part(self, World* world, bint positive, Operation force, int number) noexcept nogil:
        """Blocks of a force that couples all its beads, and the rest apart."""
        cdef BlockRows* rows = &self.band.rows
        cdef double* w = rows.w + 3 * rows.n * number
        cdef Py_ssize_t p
        cdef int c, fault
        memset(&self.w[0, 0], 0, 3 * world.n * sizeof(double))
        fault = force.apart(world, positive, _into_band, &self.band, &self.w[0, 0], rows.strength + number)
        rows.strength[number] *= self.scale
        for p in range(rows.n):
            for c in range(3):
                w[3 * p + c] = self.w[rows.place[p], c]
        return fault

    cdef Py_ssize_t size(self) noexcept nogil:
        cdef Py_ssize_t p = self.band.n - 1
        return self.band.row[p] + 3 * _across(&self.band, p)

    cdef int solve(self, World* world, bint positive) noexcept nogil:
        """right <- (M + beta h^2 H)^-1 right, or with stiffnesses in place of H."""
        cdef Py_ssize_t molecule, start, n
        cdef int fault
        self.band.whole = self.band.rows.dense > 0
        fault = self.assemble(world, positive)
        if fault == 0 and self.band.outside and not self.band.whole:
            self.band.whole = True
            fault = self.assemble(world, positive)
        if fault != 0:
            return fault
        if self.band.rows.products != NULL:
            memset(self.band.rows.products, 0, self.band.n * sizeof(int32_t))
        if self.band.whole:
            return self.go_down(world, 0, self.band.n)
        fault = over_blocks(_solve, &self.task, world, self.molecules, self.at_a_time)
        for molecule in range(self.molecules if self.some_wide else 0):
            start = self.task.start[molecule]
            n = self.task.start[molecule + 1] - start
            if fault == 0 and self.task.way[molecule] == WIDE and n > ROWS:
                fault = self.go_down(world, start, n)
        return fault

    cdef int go_down(self, World* world, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
        return _go_down(&self.band.rows, world, start, n, self.task.z, self.task.a)

    cdef int find(self, World* world, ForceSum forces) noexcept nogil:
        cdef Py_ssize_t p, i, n = world.n
        cdef const double* f = &forces.f[0, 0]
        cdef int fault, c
        if self.scheme == NEWTON:
            fault = self.newton(world, forces)
        elif self.scheme == CARRIED:
            fault = self.carried(world, f)
        else:
            fault = self.first(world, f)
        if fault != 0:
            return fault
        memcpy(&self.g[0, 0], f, 3 * n * sizeof(double))
        if self.scheme == SYMPLECTIC:
            return self.gradient(world, f)
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                self.g[i, c] = world.mass[i] * self.a[i, c]
        return 0

    cdef int gradient(self, World* world, const double* f) noexcept nogil:
        """g of the beads solved for, from a: the gradient of beta h^2/2 f.a - V."""
        cdef Py_ssize_t p, i, k
        cdef double weight = -0.5 * self.scale * self.scale
        cdef int fault, c
        for p in range(self.band.n):
            for c in range(3):
                self.g[self.band.place[p], c] = 0.0
        for k in range(self.stiff.count):
            if self.positive:
                fault = (<Operation> self.stiff.items[k]).contract_stiffness(world, &self.a[0, 0], &self.g[0, 0])
            else:
                fault = (<Operation> self.stiff.items[k]).contract(world, &self.a[0, 0], &self.g[0, 0])
            if fault != 0:
                return fault
        if self.positive:
            for p in range(self.band.n):
                for c in range(3):
                    self.g[self.band.place[p], c] *= 0.5 * self.scale
            for k in range(self.stiff.count):
                fault = (<Operation> self.stiff.items[k]).multiply(world, False, &self.a[0, 0], &self.g[0, 0])
                if fault != 0:
                    return fault
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                if self.positive:
                    self.g[i, c] = f[3 * i + c] - self.scale * self.g[i, c]
                else:
                    self.g[i, c] = world.mass[i] * self.a[i, c] + weight * self.g[i, c]
        return 0

    cdef int first(self, World* world, const double* f) noexcept nogil:
        """(M + beta h^2 H) a = f."""
        cdef Py_ssize_t p
        cdef int fault, c
        for p in range(self.band.n):
            for c in range(3):
                self.right[p, c] = f[3 * self.band.place[p] + c]
        fault = self.solve(world, self.positive)
        if fault != 0:
            return fault
        for p in range(self.band.n):
            for c in range(3):
                self.a[self.band.place[p], c] = self.right[p, c]
        return 0

    cdef int carried(self, World* world, const double* f) noexcept nogil:
        """a as the last step has left it, or that of the forces where beads are not where it left them."""
        cdef Py_ssize_t p, i
        cdef int c
        if memcmp(&self.at[0, 0], world.x, 3 * world.n * sizeof(double)) == 0:
            return 0
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                self.a[i, c] = f[3 * i + c] * world.inverse_mass[i]
        memcpy(&self.at[0, 0], world.x, 3 * world.n * sizeof(double))
        return 0

    cdef int one_newton_step(self, World* world, ForceSum forces, double h, double* v) noexcept nogil:
        """The velocities that lead to the next places in a time h, from v, which are those after the first kick; and a
        there."""
        cdef const double* f
        cdef Py_ssize_t p, i
        cdef int c, fault = self.replace(world, forces, &f)
        if fault != 0:
            return fault
        f = &forces.f[0, 0]
        memcpy(v, world.v, 3 * world.n * sizeof(double))
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                self.right[p, c] = world.mass[i] * (h * v[3 * i + c] - self.scale * self.a[i, c])
                self.right[p, c] += self.scale * f[3 * i + c]
        fault = self.solve(world, False)
        if fault != 0:
            return fault
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                self.a[i, c] += (self.right[p, c] - h * v[3 * i + c]) / self.scale
                world.v[3 * i + c] = self.right[p, c] / h
        return 0

    cdef int newton(self, World* world, ForceSum forces) noexcept nogil:
        """M a = f(x + beta h^2 a), from a = 0. With stiffnesses first, which go down to a solution without jumps to
        another; once it is near with Hessians, which are faster there."""
        cdef Py_ssize_t p, i, worst = -1
        cdef const double* f = &forces.f[0, 0]
        cdef double change, size, before = 0.0, farthest = 0.0
        cdef bint faster = True, positive = True
        cdef int step, c, fault = 0
        memcpy(&self.x[0, 0], world.x, 3 * world.n * sizeof(double))
        for p in range(self.band.n):
            for c in range(3):
                self.a[self.band.place[p], c] = 0.0
                farthest = max(farthest, fabs(world.x[3 * self.band.place[p] + c]))
        for step in range(MOST_STEPS):
            if step > 0:
                for p in range(self.band.n):
                    i = self.band.place[p]
                    for c in range(3):
                        world.x[3 * i + c] = self.x[i, c] + self.scale * self.a[i, c]
                mark_moved(world)
                fault = forces.run(world)
                if fault != 0:
                    break
            for p in range(self.band.n):
                i = self.band.place[p]
                for c in range(3):
                    self.right[p, c] = f[3 * i + c] - world.mass[i] * self.a[i, c]
            fault = self.solve(world, positive)
            if fault == NOT_SOLVED and not positive:
                world.fault.code = fault = NO_FAULT
                positive = True
                faster = False
                continue
            if fault != 0:
                break
            change = size = 0.0
            for p in range(self.band.n):
                i = self.band.place[p]
                for c in range(3):
                    self.a[i, c] += self.right[p, c]
                    size = max(size, fabs(self.a[i, c]))
                    if fabs(self.right[p, c]) > change:
                        change = fabs(self.right[p, c])
                        worst = i
            if self.scale * change <= CONVERGED * farthest:
                break
            if positive:
                positive = not (faster and change < NEAR * size)
            elif change > 0.5 * before:
                positive = True
                faster = False
            before = change
        else:
            fault = record_fault(world, NOT_SOLVED, worst, -1)
        memcpy(world.x, &self.x[0, 0], 3 * world.n * sizeof(double))
        # What is cached of elsewhere is stale.
        mark_moved(world)
        if fault == 0:
            # The forces of here, for beads that are not solved for and for whoever asks.
            fault = forces.run(world)
        return fault

    cdef void known(self, World* world, const double* f) noexcept nogil:
        """From where beads are to x, at which they are accelerated by the forces f here."""
        cdef Py_ssize_t p, i
        cdef int c
        memcpy(&self.g[0, 0], f, 3 * world.n * sizeof(double))
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                self.a[i, c] = f[3 * i + c] * world.inverse_mass[i]
                world.x[3 * i + c] -= self.scale * self.a[i, c]
        mark_moved(world)
        self.solved_at = world.positions

    cdef void move(self, World* world) noexcept nogil:
        """From x to where beads are."""
        cdef Py_ssize_t p, i
        cdef int c
        for p in range(self.band.n):
            i = self.band.place[p]
            for c in range(3):
                world.x[3 * i + c] += self.scale * self.a[i, c]
        mark_moved(world)


cdef class ToCoordinates(Operation):
    """From places q of beads to the coordinates x = q - beta h^2 a(q) of an implicit kick."""
    cdef ForceSum forces
    cdef CoarseForces rule

    def __init__(self, ForceSum forces, CoarseForces rule):
        self.forces = forces
        self.rule = rule

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = self.forces.run(world)
        if fault == 0:
            self.rule.known(world, &self.forces.f[0, 0])
        return fault


cdef class ToPlaces(KickForce):
    """From the coordinates x of an implicit kick to places q = x + beta h^2 a(x) of beads."""

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = KickForce.run(self, world)
        if fault == 0:
            (<CoarseForces> self.rule).move(world)
        return fault


cdef class OneNewtonStep(Operation):
    """One step of Newton's method for the places after a flight for a time h, which velocities then lead to; they are
    kept as they were in v (n, 3). a is that of the linear equations from now on."""
    cdef ForceSum forces
    cdef CoarseForces rule
    cdef double h
    cdef double[:, ::1] v

    def __init__(self, ForceSum forces, CoarseForces rule, double h, double[:, ::1] v):
        self.forces = forces
        self.rule = rule
        self.h = h
        self.v = v

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = self.forces.run(world)
        return fault if fault != 0 else self.rule.one_newton_step(world, self.forces, self.h, &self.v[0, 0])


cdef class AfterOneNewtonStep(Operation):
    """Velocities as they were before; here beads have the a that has been found."""
    cdef CoarseForces rule
    cdef double[:, ::1] v

    def __init__(self, CoarseForces rule, double[:, ::1] v):
        self.rule = rule
        self.v = v

    cdef int run(self, World* world) noexcept nogil:
        memcpy(world.v, &self.v[0, 0], 3 * world.n * sizeof(double))
        memcpy(&self.rule.at[0, 0], world.x, 3 * world.n * sizeof(double))
        return 0


cdef class KeepForce(KickForce):
    """Remember the force of a kick in kept (n, 3)."""
    cdef double[:, ::1] kept

    def __init__(self, ForceSum forces, KickRule rule, double[:, ::1] kept):
        KickForce.__init__(self, forces, rule)
        self.kept = kept

    cdef int run(self, World* world) noexcept nogil:
        cdef const double* f
        cdef int fault = self.find(world, &f)
        if fault == 0:
            memcpy(&self.kept[0, 0], f, 3 * world.n * sizeof(double))
        return fault


cdef class KickByChange(KeepForce):
    """Kick for a time h by the change of the force since it was kept."""
    cdef double h

    def __init__(self, ForceSum forces, KickRule rule, double[:, ::1] kept, double h):
        KeepForce.__init__(self, forces, rule, kept)
        self.h = h

    cdef int run(self, World* world) noexcept nogil:
        cdef const double* f
        cdef const double* before = &self.kept[0, 0]
        cdef double s
        cdef Py_ssize_t i, k
        cdef int fault = self.find(world, &f)
        for i in range(world.n if fault == 0 else 0):
            s = self.h * world.inverse_mass[i]
            for k in range(3 * i, 3 * i + 3):
                world.v[k] += s * (f[k] - before[k])
        return fault
