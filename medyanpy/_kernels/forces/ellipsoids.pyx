"""Repulsion of ellipsoids that come near each other, by the contact function of Perram and Wertheim.

    mu^2 = F = max over x > 0 of x d.(S_A + x S_B)^-1 d / (1 + x),     d = x_B - x_A,   S = R diag(a^2) R^T

    U = V(F),    force on A = V' dF/dd,    torques = -V' dF/d(turn),    V: contact.pxd

mu is the factor by which both have to grow (or shrink) until they touch. At the maximum over x only what d and R do
to F directly counts. With s = 1/(1 + x), t = x/(1 + x) and y = (s S_A + t S_B)^-1 d

    dF/dd = 2 s t y,    dF/d(turn of A) = 2 s^2 t y x S_A y,    dF/d(turn of B) = 2 s t^2 y x S_B y

In the frame of A, in units of its semi-axes, u = d and S_B = M; with the adjugate of the matrix s + t M,

    y ~ w / Q,   w = s^2 u + s t N u + t^2 L u,   N = tr M - M,   L = adj M = det(M) M^-1
    Q = s^3 + s^2 t tr M + s t^2 tr L + t^3 det M

and the maximum is where x^2 = w.w / w.Mw: a ratio of two polynomials of degree 4 in x, all of whose coefficients are
positive. Its root g(x) rises from g(0) to g(inf), between which x is. Newton's method for x = g(x), within the bounds
that each g gives, doubles its digits with every step.

Which of two ellipsoids is A is decided by their numbers: both ends compute the same, so that forces are exactly
opposite. A thread writes to the members it owns, each of which adds up its row in ascending order of numbers.

Shapes: semi-axes (n, 3) by member, or of its species. Units: nm, pN nm. The caller has checked them, that members that
do not turn are spheres, and that the range of the list is (a_max + a_max') times the mu where U ends.
Source: J. W. Perram, M. S. Wertheim, J. Comput. Phys. 58, 409 (1985), F; the way to its maximum is our own.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memset

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.forces.contact cimport SOFT, contact_energy, end_squared
from medyanpy._kernels.core.local_terms cimport NeighborForce
from medyanpy._kernels.core.neighbors cimport ROWS_PER_BLOCK, NeighborList, Neighbors
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, record_fault, sum_in_blocks
from medyanpy._kernels.core.program cimport OUT_OF_MEMORY, World
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

cdef enum:
    # Pairs that are worked on together, one in each lane.
    LANES = 32
    # More than bisection needs; 4 are the rule, 13 the most of 10^5 pairs of needles and discs of 1 : 100.
    MOST = 64

# Newton's last step, relative: its square is below rounding.
cdef double SMALL = 1e-8


cdef struct Body:
    double R[9]               # columns: axes in space
    double a[3]
    double inverse[3]         # 1 / a
    Py_ssize_t oriented       # row, -1 of what does not turn


cdef struct EllipsoidTask:
    const Neighbors* list
    int form
    double epsilon
    double end                # F where U ends
    double mu                 # its root
    const double* axes        # (n, 3) by member, and behind these of species
    const int32_t* entry      # by member: the row of its first species, -1 of members with axes of their own
    const int32_t* oriented   # by member
    Body* body                # by slot
    double* energy            # by member


cdef struct Lanes:
    int n
    const Body* A[LANES]
    const Body* B[LANES]
    int owner[LANES]          # whose row the pair is in, counted in the block
    int is_A[LANES]           # whether that is A
    double d[3][LANES]
    double R[9][LANES]        # of A
    double a[3][LANES]
    double inverse_a[3][LANES]
    double Q[9][LANES]        # of B
    double b[3][LANES]
    double inverse_b[3][LANES]
    double u[3][LANES]
    double Nu[3][LANES]
    double Lu[3][LANES]
    double trace_M[LANES]
    double trace_L[LANES]
    double det[LANES]
    double uLu[LANES]
    double E[9][LANES]
    double H[9][LANES]
    double half[3][LANES]
    double Mu[3][LANES]
    double MNu[3][LANES]
    # w.w and w.Mw for s = 1, t = x.
    double ww[5][LANES]
    double wMw[5][LANES]
    double x[LANES]
    double low[LANES]
    double high[LANES]
    double open[LANES]        # 1 until the maximum is found
    double F[LANES]
    # What the members of a block get.
    double f[3 * ROWS_PER_BLOCK]
    double torque[3 * ROWS_PER_BLOCK]
    double energy[ROWS_PER_BLOCK]


cdef int _frames(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """What is needed of each member, by slot."""
    cdef EllipsoidTask* t = <EllipsoidTask*> task
    cdef Body* body
    cdef Py_ssize_t s, m
    cdef int c
    for s in range(first, last):
        m = t.list.member[s]
        body = t.body + s
        body.oriented = t.oriented[m]
        if t.entry[m] >= 0:
            m = t.entry[m] + world.species[t.list.row[s]]
        for c in range(3):
            body.a[c] = t.axes[3 * m + c]
            body.inverse[c] = 1.0 / body.a[c]
        if body.oriented >= 0:
            matrix_of(world.orientation + 4 * body.oriented, body.R)
        else:
            for c in range(9):
                body.R[c] = 1.0 if c % 4 == 0 else 0.0
    return 0


cdef inline double _width(const Body* body, const double* d) noexcept nogil:
    """|d| times how far the body reaches along d."""
    cdef double e[3]
    cdef double sum = 0.0
    cdef int i
    into_body(body.R, d, e)
    for i in range(3):
        e[i] *= body.a[i]
        sum += e[i] * e[i]
    return sqrt(sum)


cdef inline void _put(Lanes* p, const Body* A, const Body* B, const double* d, int owner, bint is_A) noexcept nogil:
    """One more pair."""
    cdef int k = p.n
    cdef int c
    p.A[k] = A
    p.B[k] = B
    p.owner[k] = owner
    p.is_A[k] = is_A
    for c in range(9):
        p.R[c][k] = A.R[c]
        p.Q[c][k] = B.R[c]
    for c in range(3):
        p.d[c][k] = d[c]
        p.a[c][k] = A.a[c]
        p.b[c][k] = B.a[c]
        p.inverse_a[c][k] = A.inverse[c]
        p.inverse_b[c][k] = B.inverse[c]
    p.n += 1


cdef inline void _twice(
    double[9][LANES] E, double[3][LANES] v, double[3][LANES] half, double[3][LANES] out,
) noexcept nogil:
    """out = E E^T v"""
    cdef int i, k
    for i in range(3):
        for k in range(LANES):
            half[i][k] = E[i][k] * v[0][k] + E[3 + i][k] * v[1][k] + E[6 + i][k] * v[2][k]
    for i in range(3):
        for k in range(LANES):
            out[i][k] = E[3 * i][k] * half[0][k] + E[3 * i + 1][k] * half[1][k] + E[3 * i + 2][k] * half[2][k]


cdef inline void _dots(double factor, double[3][LANES] v, double[3][LANES] w, double* out) noexcept nogil:
    cdef int k
    for k in range(LANES):
        out[k] = factor * (v[0][k] * w[0][k] + v[1][k] * w[1][k] + v[2][k] * w[2][k])


cdef void _begin(Lanes* p) noexcept nogil:
    """Everything but where the maximum is."""
    cdef double c
    cdef int i, j, k
    for i in range(3):
        for k in range(LANES):
            p.u[i][k] = p.inverse_a[i][k] * (
                p.R[i][k] * p.d[0][k] + p.R[3 + i][k] * p.d[1][k] + p.R[6 + i][k] * p.d[2][k]
            )
        for j in range(3):
            for k in range(LANES):
                c = p.R[i][k] * p.Q[j][k] + p.R[3 + i][k] * p.Q[3 + j][k] + p.R[6 + i][k] * p.Q[6 + j][k]
                # M = E E^T and its inverse H H^T: nothing cancels.
                p.E[3 * i + j][k] = p.inverse_a[i][k] * c * p.b[j][k]
                p.H[3 * i + j][k] = p.a[i][k] * c * p.inverse_b[j][k]
    for k in range(LANES):
        p.trace_M[k] = p.trace_L[k] = 0.0
        c = p.inverse_a[0][k] * p.b[0][k] * p.inverse_a[1][k] * p.b[1][k] * p.inverse_a[2][k] * p.b[2][k]
        p.det[k] = c * c
    for i in range(9):
        for k in range(LANES):
            p.trace_M[k] += p.E[i][k] * p.E[i][k]
            p.trace_L[k] += p.det[k] * p.H[i][k] * p.H[i][k]
    _twice(p.E, p.u, p.half, p.Mu)
    _twice(p.H, p.u, p.half, p.Lu)
    for i in range(3):
        for k in range(LANES):
            p.Nu[i][k] = p.trace_M[k] * p.u[i][k] - p.Mu[i][k]
            p.Lu[i][k] *= p.det[k]
    _twice(p.E, p.Nu, p.half, p.MNu)
    _dots(1.0, p.u, p.u, p.ww[0])
    _dots(2.0, p.u, p.Nu, p.ww[1])
    _dots(1.0, p.u, p.Lu, p.uLu)
    _dots(1.0, p.Nu, p.Nu, p.ww[2])
    _dots(2.0, p.Nu, p.Lu, p.ww[3])
    _dots(1.0, p.Lu, p.Lu, p.ww[4])
    _dots(1.0, p.u, p.Mu, p.wMw[0])
    _dots(2.0, p.Nu, p.Mu, p.wMw[1])
    _dots(1.0, p.Nu, p.MNu, p.wMw[2])
    for k in range(LANES):
        p.ww[2][k] += 2.0 * p.uLu[k]
        # M L = det M
        p.wMw[2][k] += 2.0 * p.det[k] * p.ww[0][k]
        p.wMw[3][k] = p.det[k] * p.ww[1][k]
        p.wMw[4][k] = p.det[k] * p.uLu[k]
        p.low[k] = sqrt(p.ww[0][k] / p.wMw[0][k])
        p.high[k] = sqrt(p.ww[4][k] / p.wMw[4][k])
        p.x[k] = sqrt(p.low[k] * p.high[k])


cdef void _values(Lanes* p) noexcept nogil:
    """F at x."""
    cdef double x, uw, q
    cdef int k
    for k in range(LANES):
        x = p.x[k]
        # u.w and Q for s = 1, t = x.
        uw = p.ww[0][k] + x * (0.5 * p.ww[1][k] + x * p.uLu[k])
        q = 1.0 + x * (p.trace_M[k] + x * (p.trace_L[k] + x * p.det[k]))
        p.F[k] = x * uw / (q * (1.0 + x))


cdef void _maximise(Lanes* p) noexcept nogil:
    """x of all lanes. One that is done stays as it is, whoever its neighbours are."""
    cdef double x, v, w, dv, dw, g, slope, new, low, high, middle, left
    cdef int k, _step
    for _step in range(MOST):
        for k in range(LANES):
            x = p.x[k]
            dv = p.ww[4][k]
            dw = p.wMw[4][k]
            v = dv * x + p.ww[3][k]
            w = dw * x + p.wMw[3][k]
            dv = dv * x + v
            dw = dw * x + w
            v = v * x + p.ww[2][k]
            w = w * x + p.wMw[2][k]
            dv = dv * x + v
            dw = dw * x + w
            v = v * x + p.ww[1][k]
            w = w * x + p.wMw[1][k]
            dv = dv * x + v
            dw = dw * x + w
            v = v * x + p.ww[0][k]
            w = w * x + p.wMw[0][k]
            g = sqrt(v / w)
            slope = 0.5 * g * (dv * w - dw * v) / (v * w)
            # Where g > x the maximum is beyond g, elsewhere before it.
            low = g if g > x else p.low[k]
            high = p.high[k] if g > x else g
            middle = 0.5 * (low + high)
            new = x - (x - g) / (1.0 - slope)
            new = new if new >= low else middle
            new = new if new <= high else middle
            p.low[k] = low
            p.high[k] = high
            new = new if p.open[k] > 0.5 else x
            p.x[k] = new
            v = new - x
            v = v if v >= 0.0 else -v
            # This way round, so that what is not a number is done.
            p.open[k] = p.open[k] if v > SMALL * x else 0.0
        left = 0.0
        for k in range(LANES):
            left += p.open[k]
        if left == 0.0:
            return


cdef inline void _finish(const EllipsoidTask* t, Lanes* p, int k) noexcept nogil:
    """Energy of pair k, and force and torque on the owner of its row."""
    cdef const Body* A = p.A[k]
    cdef const Body* me = A if p.is_A[k] else p.B[k]
    cdef double* torque = p.torque + 3 * p.owner[k]
    cdef double y[3]
    cdef double z[3]
    cdef double F = p.F[k]
    cdef double x = p.x[k]
    cdef double s = 1.0 / (1.0 + x)
    cdef double mu = sqrt(F)
    cdef double q, u, slope
    cdef int c
    u = contact_energy(t.form, t.epsilon, mu, &slope)
    # V' in F from here on.
    slope *= 0.5 / mu
    # Half from each end: both compute the same, so the two halves make one whole exactly.
    p.energy[p.owner[k]] += 0.5 * u
    slope *= 2.0 * x * s * s
    # y, in the frame of A; s, which w and Q have in common, is divided out.
    q = s * (1.0 + x * (p.trace_M[k] + x * (p.trace_L[k] + x * p.det[k])))
    for c in range(3):
        z[c] = A.inverse[c] * (p.u[c][k] + x * (p.Nu[c][k] + x * p.Lu[c][k])) / q
    into_space(A.R, z, y)
    add_scaled(slope if p.is_A[k] else -slope, y, p.f + 3 * p.owner[k])
    slope *= s if p.is_A[k] else x * s
    into_body(me.R, y, z)
    torque[0] += slope * (me.a[1] * me.a[1] - me.a[2] * me.a[2]) * z[1] * z[2]
    torque[1] += slope * (me.a[2] * me.a[2] - me.a[0] * me.a[0]) * z[2] * z[0]
    torque[2] += slope * (me.a[0] * me.a[0] - me.a[1] * me.a[1]) * z[0] * z[1]


cdef void _pairs(const EllipsoidTask* t, Lanes* p) noexcept nogil:
    """All pairs that are there."""
    cdef int k
    _begin(p)
    _values(p)
    for k in range(LANES):
        # F is at least what it is anywhere. This way round, so that what is not a number is seen by all.
        p.open[k] = 0.0 if p.F[k] >= t.end or k >= p.n else 1.0
    _maximise(p)
    _values(p)
    for k in range(p.n):
        if not (p.F[k] >= t.end):
            _finish(t, p, k)
    p.n = 0


cdef inline void _consider(
    const EllipsoidTask* t, World* world, Lanes* p, Py_ssize_t s, Py_ssize_t other, const double* x, const double* y,
    int own,
) noexcept nogil:
    """Take the pair of two slots, at x and y, unless they are too far apart."""
    cdef const Neighbors* near = t.list
    cdef double d[3]
    cdef double reach, rr
    if near.id[s] < near.id[other]:
        displacement(&world.box, x, y, d)
    else:
        displacement(&world.box, y, x, d)
    rr = dot(d, d)
    reach = near.now[4 * s + 3] + near.now[4 * other + 3]
    if rr >= reach * reach:
        return
    if rr == 0.0 and t.form == SOFT:
        # In one place there is no direction to push in.
        p.energy[own] += 0.5 * t.epsilon
        return
    # A plane across d is between them, and remains so until they have grown by this.
    reach = t.mu * (_width(t.body + s, d) + _width(t.body + other, d))
    if rr > reach:
        return
    if near.id[s] < near.id[other]:
        _put(p, t.body + s, t.body + other, d, own, True)
    else:
        _put(p, t.body + other, t.body + s, d, own, False)
    if p.n == LANES:
        _pairs(t, p)


cdef int _ellipsoids(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef EllipsoidTask* t = <EllipsoidTask*> task
    cdef const Neighbors* near = t.list
    cdef const int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef Lanes p
    cdef double* f
    cdef Py_ssize_t s, other
    cdef int c, i, own
    memset(&p, 0, sizeof(Lanes))
    for s in range(first, last):
        own = <int> (s - first)
        for i in range(near.count[s]):
            other = row[i]
            _consider(t, world, &p, s, other, near.now + 4 * s, near.now + 4 * other, own)
        row += near.count[s]
    if p.n > 0:
        _pairs(t, &p)
    for s in range(first, last):
        # Summed apart and added once: two equal forces give exactly twice one.
        own = <int> (s - first)
        f = near.sites.f + 3 * <Py_ssize_t> near.row[s]
        for c in range(3):
            f[c] += p.f[3 * own + c]
        if t.body[s].oriented >= 0:
            f = world.torque + 3 * t.body[s].oriented
            for c in range(3):
                f[c] += p.torque[3 * own + c]
        t.energy[near.member[s]] = p.energy[own]
    return 0


cdef class Ellipsoids(NeighborForce):
    """A repulsion of all neighbours; the caller has made the list for its range.

    Parameters
    ----------
    name : str
    form : int
        WCA or SOFT, as above.
    epsilon : float
    neighbors : NeighborList
        Of beads.
    axes : (n + s, 3) float
        Semi-axes by member, and of species.
    entry : (n,) int32
        Where the first species of the handle of a member is in `axes`; -1 of members whose own they are.
    oriented : (n,) int32
        Row of the oriented bead that a member is, -1 of others.
    sites : SiteTable
        The beads.
    """
    cdef EllipsoidTask task
    cdef list arrays
    cdef double* partial

    def __init__(self, str name, int form, double epsilon, NeighborList neighbors, const double[:, ::1] axes,
                 const int32_t[::1] entry, const int32_t[::1] oriented, SiteTable sites):
        self.name = name
        self.derivatives = 1
        self.watch(neighbors, sites)
        self.arrays = []
        self.task.list = &neighbors.list
        self.task.form = form
        self.task.epsilon = epsilon
        self.task.end = end_squared(form)
        self.task.mu = sqrt(self.task.end)
        self.task.axes = table(self.arrays, axes)
        self.task.entry = vector(self.arrays, entry)
        self.task.oriented = vector(self.arrays, oriented)
        self.task.body = <Body*> zeros(self.arrays, neighbors.list.n_members * sizeof(Body) // sizeof(double))
        self.task.energy = zeros(self.arrays, neighbors.list.n_members)
        self.partial = zeros(self.arrays, n_blocks(neighbors.list.n_members, SUM_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef Py_ssize_t n = near.n_members
        cdef int fault
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.look(world)
        if fault != 0:
            return fault
        if near.n < n:
            # Of those that are asleep there is none.
            memset(self.task.energy, 0, n * sizeof(double))
        over_blocks(_frames, &self.task, world, near.n, ROWS_PER_BLOCK)
        over_blocks(_ellipsoids, &self.task, world, near.n, ROWS_PER_BLOCK)
        if world.want_energy:
            # In the order of members: that of slots depends on when the list was built.
            self.energy = sum_in_blocks(world, self.task.energy, n, self.partial)
        return 0

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef Lanes p
        cdef const double* x
        cdef Py_ssize_t i, k, n, own, other
        out[0] = 0.0
        memset(&p, 0, sizeof(Lanes))
        self.moved.follow(world, self.sites)
        for k in range(self.moved.n):
            if self.member[k] < 0:
                continue
            x = self.moved.x + 3 * k
            own = near.slot_of[self.member[k]]
            _frames(&self.task, world, own, own + 1, 0)
            n = self.neighbors.near_place(world, self.member[k], x)
            if n < 0:
                return record_fault(world, OUT_OF_MEMORY, -1, -1)
            for i in range(n):
                other = self.neighbors.found[i]
                if self.moved.rank[near.row[other]] >= 0:
                    continue
                self.examined += 1
                _frames(&self.task, world, other, other + 1, 0)
                _consider(&self.task, world, &p, own, other, x, near.now + 4 * other, 0)
            for i in range(k):
                if self.member[i] >= 0 and self.neighbors.interact(self.member[k], self.member[i]):
                    self.examined += 1
                    _consider(&self.task, world, &p, own, near.slot_of[self.member[i]], x, self.moved.x + 3 * i, 0)
        if p.n > 0:
            _pairs(&self.task, &p)
        # Of each pair there is one half here.
        out[0] = 2.0 * p.energy[0]
        return 0
