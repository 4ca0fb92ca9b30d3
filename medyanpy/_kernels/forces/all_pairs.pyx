"""Radial energies of all pairs of two groups, however far apart.

    F_i = sum_j w_i w_j U'(r) d / r,   d = x_j - x_i

Members are those in A only, those in both, and those in B only, each by number: so the partners of each are a range of
them, less some. They are looked at in parts of fixed size, in which a partner has one and the same place for everybody;
what is no partner has no weight there. Sums over partners are made place by place first, then over places: their order,
and with it every bit, is the same on any number of threads and with vectors of any width. Every pair is computed from
both its ends, with the same bits but for the sign.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from medyanpy._kernels.core.arrays cimport vector, zeros
from medyanpy._kernels.core.box cimport displacement, displacements
from medyanpy._kernels.core.derivatives cimport Derivative, SmoothForce
from medyanpy._kernels.core.local_terms cimport MovedSites
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, sum_in_blocks
from medyanpy._kernels.core.program cimport Change, World
from medyanpy._kernels.forces.radial cimport COULOMB, LENNARD_JONES, derive, evaluate, pull, slope
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, is_asleep
from medyanpy._kernels.core.vec3 cimport dot

cdef enum:
    # Partners that are worked on at a time; a power of two.
    PART = 32
    # Members of a block.
    ROWS = 16
    # In place of a kind: any that has no shortcut.
    ANY = -1


cdef struct AllTask:
    SiteArrays sites
    int kind
    const double* p           # parameters of the radial function
    double a                  # the first two of them
    double b
    const int32_t* row        # (n,) of the table of sites
    const int32_t* first      # (n,) of the range of partners
    const int32_t* last       # (n,)
    const int32_t* ignored_from  # (n + 1,)
    const int32_t* ignored    # members that a member ignores, itself among them, ascending
    const double* given       # (n,)
    double* weight            # (parts, PART) the same, 0 of what is asleep
    double* x                 # (parts, 3, PART)
    double* energy            # (n,)


cdef int _copy(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Positions of now, by parts."""
    cdef AllTask* t = <AllTask*> task
    cdef Py_ssize_t m
    cdef int c
    for m in range(first, last):
        if world.alive != NULL:
            t.weight[m] = 0.0 if is_asleep(world, &t.sites, t.row[m]) else t.given[m]
        for c in range(3):
            t.x[3 * (m - m % PART) + PART * c + m % PART] = t.sites.x[3 * <Py_ssize_t> t.row[m] + c]
    return 0


cdef inline double _sum(double* places) noexcept nogil:
    cdef int width = PART // 2
    cdef int k
    while width > 0:
        for k in range(width):
            places[k] += places[width + k]
        width //= 2
    return places[0]


cdef inline void _row(int kind, const AllTask* t, World* world, Py_ssize_t m) noexcept nogil:
    """All partners of member m; `kind` is a literal where this is called, and compiled in."""
    cdef double me[3 * PART]
    cdef double d[3 * PART]
    cdef double total[3 * PART]
    cdef double energy[PART]
    cdef double rr[PART]
    cdef double w[PART]
    cdef double s, u
    cdef const double* weight
    cdef double own = t.weight[m]
    cdef double* f = t.sites.f + 3 * <Py_ssize_t> t.row[m]
    cdef Py_ssize_t first = t.first[m], last = t.last[m], base = first - first % PART
    cdef int32_t e = t.ignored_from[m]
    cdef int k, c
    memset(total, 0, sizeof(total))
    memset(energy, 0, sizeof(energy))
    for c in range(3):
        for k in range(PART):
            me[PART * c + k] = t.x[3 * (m - m % PART) + PART * c + m % PART]
    while base < last:
        displacements(&world.box, me, t.x + 3 * base, d, PART)
        weight = t.weight + base
        for k in range(PART):
            rr[k] = d[k] * d[k] + d[PART + k] * d[PART + k] + d[2 * PART + k] * d[2 * PART + k]
            w[k] = own * weight[k]
            # Without weight: at some distance, wherever they are.
            rr[k] = rr[k] if w[k] != 0.0 else 1.0
        # Whatever is no partner: of no weight, at some distance.
        for k in range(<int> (first - base)):
            rr[k] = 1.0
            w[k] = 0.0
        for k in range(<int> (last - base), PART):
            rr[k] = 1.0
            w[k] = 0.0
        while e < t.ignored_from[m + 1] and t.ignored[e] < base + PART:
            if t.ignored[e] >= base:
                rr[t.ignored[e] - base] = 1.0
                w[t.ignored[e] - base] = 0.0
            e += 1
        for k in range(PART):
            s = w[k] * (slope(t.kind, t.p, rr[k], &u) if kind == ANY else pull(kind, t.a, t.b, 0.0, rr[k], &u))
            total[k] += s * d[k]
            total[PART + k] += s * d[PART + k]
            total[2 * PART + k] += s * d[2 * PART + k]
        if world.want_energy:
            for k in range(PART):
                if kind == ANY:
                    slope(t.kind, t.p, rr[k], &u)
                else:
                    pull(kind, t.a, t.b, 0.0, rr[k], &u)
                energy[k] += w[k] * u
        base += PART
    # Summed apart and added once: two equal forces give exactly twice one.
    for c in range(3):
        f[c] += _sum(total + PART * c)
    if world.want_energy:
        # Half from each end.
        t.energy[m] = 0.5 * _sum(energy)


cdef inline bint _ignores(const AllTask* t, Py_ssize_t m, Py_ssize_t other, int32_t* e) noexcept nogil:
    """Whether a member ignores another; e goes along as others come in ascending order, from ignored_from[m] on."""
    while e[0] < t.ignored_from[m + 1] and t.ignored[e[0]] < other:
        e[0] += 1
    return e[0] < t.ignored_from[m + 1] and t.ignored[e[0]] == other


cdef int _rows(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef const AllTask* t = <const AllTask*> task
    cdef Py_ssize_t m
    for m in range(first, last):
        if t.kind == COULOMB:
            _row(COULOMB, t, world, m)
        elif t.kind == LENNARD_JONES:
            _row(LENNARD_JONES, t, world, m)
        else:
            _row(ANY, t, world, m)
    return 0


cdef class AllPairs(SmoothForce):
    """A radial energy of all pairs.

    Parameters
    ----------
    name : str
    kind : Radial
        The radial function.
    parameters : sequence of float
        Those of the function; without a cutoff.
    row : (n,) int32
        Of each member, in the table of sites.
    weight : (n,) float
    first, last : (n,) int32
        Of the partners of each member among members.
    ignored_from, ignored : (n + 1,), (...) int32
        Those that each member ignores, in ascending order, itself among them.
    sites : SiteTable
    """
    cdef SiteTable sites
    cdef AllTask task
    cdef double[::1] p
    cdef Py_ssize_t n
    cdef list arrays
    cdef double* partial
    cdef MovedSites moved
    cdef int32_t[::1] member_of   # by site, -1 of others

    def __init__(
        self, str name, int kind, parameters, const int32_t[::1] row, weight, const int32_t[::1] first,
        const int32_t[::1] last, const int32_t[::1] ignored_from, const int32_t[::1] ignored, SiteTable sites,
    ):
        cdef AllTask* t = &self.task
        cdef Py_ssize_t parts = n_blocks(row.shape[0], PART)
        self.name = name
        self.sites = sites
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.n = row.shape[0]
        self.p = np.array(parameters, float)
        t.kind = kind
        t.p = &self.p[0]
        t.a = self.p[0]
        t.b = self.p[1] if len(parameters) > 1 else 0.0
        weights = np.zeros(parts * PART)
        weights[:self.n] = weight
        self.moved = MovedSites()
        member_of = np.full(int(np.max(row, initial=-1)) + 1, -1, np.int32)
        member_of[np.asarray(row)] = np.arange(self.n, dtype=np.int32)
        self.member_of = member_of
        self.arrays = []
        t.row = vector(self.arrays, row)
        t.first = vector(self.arrays, first)
        t.last = vector(self.arrays, last)
        t.ignored_from = vector(self.arrays, ignored_from)
        t.ignored = vector(self.arrays, ignored)
        t.given = vector[double](self.arrays, weights)
        t.weight = zeros(self.arrays, parts * PART)
        if parts > 0:
            memcpy(t.weight, t.given, parts * PART * sizeof(double))
        t.x = zeros(self.arrays, 3 * parts * PART)
        t.energy = zeros(self.arrays, self.n)
        self.partial = zeros(self.arrays, n_blocks(self.n, SUM_BLOCK))

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        self.energy = 0.0
        if self.n == 0:
            return 0
        fault = self.sites.gather(world)
        if fault != 0:
            return fault
        self.task.sites = self.sites.now
        over_blocks(_copy, &self.task, world, self.n, PART * ROWS)
        over_blocks(_rows, &self.task, world, self.n, ROWS)
        if world.want_energy:
            self.energy = sum_in_blocks(world, self.task.energy, self.n, self.partial)
        return self.sites.scatter(world)

    # Where a few sites move: each with all of its partners.

    cdef bint is_local(self) noexcept nogil:
        return True

    cdef bint tells_beads(self) noexcept nogil:
        return self.sites.are_beads

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        return self.moved.take(world, self.sites, change)

    cdef void release(self) noexcept nogil:
        self.moved.release()

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef AllTask* t = &self.task
        cdef double d[3]
        cdef double other_x[3]
        cdef double u[4]
        cdef double w
        cdef Py_ssize_t k, m, other
        cdef int32_t e, site
        out[0] = 0.0
        self.sites.refresh(world, 0)
        t.sites = self.sites.now
        self.moved.follow(world, self.sites)
        for k in range(self.moved.n):
            site = self.moved.site[k]
            m = self.member_of[site] if site < self.member_of.shape[0] else -1
            if m < 0 or is_asleep(world, &t.sites, site):
                continue
            e = t.ignored_from[m]
            for other in range(t.first[m], t.last[m]):
                if _ignores(t, m, other, &e) or is_asleep(world, &t.sites, t.row[other]):
                    continue
                w = t.given[m] * t.given[other]
                # Pairs that move as a whole are counted once.
                if w == 0.0 or 0 <= self.moved.rank[t.row[other]] < k:
                    continue
                self.examined += 1
                self.sites.place(world, t.row[other], other_x)
                displacement(&world.box, self.moved.x + 3 * k, other_x, d)
                self.weigh(w, sqrt(dot(d, d)), 1, u)
                out[0] += u[0]
        return 0

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        return True

    cdef void weigh(self, double weight, double r, int order, double* u) noexcept nogil:
        """The energy of two members and its derivatives: all energies are proportional to their first parameter."""
        cdef double first = self.p[0]
        self.p[0] = first * weight
        evaluate(self.task.kind, self.task.p, r, order, u)
        self.p[0] = first

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        """Higher derivatives: each pair once, in the order of members."""
        cdef const AllTask* t = &self.task
        cdef const double* x
        cdef double d[3]
        cdef double u[4]
        cdef double r
        cdef Py_ssize_t m, other
        cdef int32_t e
        cdef int fault
        if self.n == 0:
            return 0
        fault = self.sites.gather(world)
        self.task.sites = self.sites.now
        over_blocks(_copy, &self.task, world, self.n, PART * ROWS)
        x = self.sites.now.x
        for m in range(self.n if fault == 0 else 0):
            e = t.ignored_from[m]
            for other in range(max(m + 1, <Py_ssize_t> t.first[m]), t.last[m]):
                if _ignores(t, m, other, &e) or fault != 0:
                    continue
                if t.weight[m] * t.weight[other] == 0.0:
                    continue
                displacement(&world.box, x + 3 * <Py_ssize_t> t.row[m], x + 3 * <Py_ssize_t> t.row[other], d)
                r = sqrt(dot(d, d))
                self.weigh(t.weight[m] * t.weight[other], r, 3, u)
                fault = derive(wanted, self.sites, t.row[m], t.row[other], u, d, r, False)
        return fault
