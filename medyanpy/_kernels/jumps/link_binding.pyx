"""Links that bind and let go: springs between sites of two groups, as a jump.

A pair of sites that may be bound is tried at the rate k_on, which is accepted with

    min(1, 1 - n / pool) exp(-c U / kT),   low <= r <= high

for n links that are bound already, and a bound link lets go at

    k_off exp(s U / kT),   low <= r <= high                       (balanced: c = 1 - s)
    k_off [(1 - w) exp(F / F_s) + w exp(-F / F_c)]                (driven)

with the energy U(r) >= 0 of the link and its tension F = max(U'(r), 0); or with the mean m of U' in place of U', which
in each letter of length h becomes m e^(-h/T) + U' (1 - e^(-h/T)), from 0 when it binds. Rates are then known, without
bounds: they are computed in each letter.

Links may have states, each with a spring of its own. They bind in the first, of which all rates here are: in others
they let go by other jumps.

Neither is looked at one by one (thinning). Where sites were when pairs were last listed, each pair that may come into
reach has a weight, an upper bound of exp(-c U / kT) for as long as no site has gone further than half the skin of the
list. Where sites were when links were last measured, each link has an upper bound of its rate, for as long as no site
has gone further than the slack. Attempts come at k_on times the sum of weights, and at the sum of the bounds; each
picks a pair or a link in proportion, measures it, and is accepted with what the bound was too large by, so that waiting
times are those of the process with the rates above, exactly. A pair is refused where a site is full or it may not be
bound. Weights are whole numbers, whose sums are the same in any order; bounds are added up by blocks of sites.

Beads are compared with where they were when links were measured. Only if one has gone further than the slack, links are
measured again, and only then those places are compared with where beads were when pairs were listed.

Where bounds would bring more attempts than there are links, the rates themselves serve as bounds, without slack.

State: every site has p slots, the first of which are filled, in the order in which links were bound; what is known of
a link is at both of its ends. With other bounds
other random numbers would be drawn: the two sets of places, and whether the slack is 0, are part of the state.

Caches, and when they are computed again:

    pairs and their weights   pairs have been listed; a box of other lengths, with the places of then; arrays of the
                              state have been written to; another World
    bounds of links           links have been measured; and as above; those of the two sites of each event
"""
import numpy as np

cimport cython
from libc.math cimport INFINITY, ceil, fabs, fmax, fmin, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from medyanpy._kernels.core.arrays cimport table, vector
from medyanpy._kernels.core.box cimport displacement, has_lengths
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.jumps.filament_ends cimport PlaceKeeper
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.core.neighbors cimport ROWS_PER_BLOCK, NeighborList, Neighbors
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_max, over_blocks, record_fault
from medyanpy._kernels.beads.points cimport place
from medyanpy._kernels.core.program cimport Change, LOST_COUNT, OUT_OF_MEMORY, AddBlock, Operation, World
from medyanpy._kernels.forces.radial cimport evaluate
from medyanpy._kernels.core.sites cimport (
    BEYOND, HERE, LinkedSites, PARKED, Places, SiteArrays, SiteRows, SiteTable, is_on_growing, where)
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

# Items of a block of any loop; slots whose bounds are added up at each event, near the root of how many there may be.
cdef Py_ssize_t BLOCK = 256
# Ways, shares of the skin, for which bounds of pairs are made.
cdef int WAYS = 8
# Exponents beyond are as good as for ever, and still numbers.
cdef double LARGEST_EXPONENT = 230.0
# All coordinates of sites that were nowhere: a number, as states hold.
cdef double NOWHERE = 1e300

# 2^-c.
cdef double[CLASSES] SHARE
for number in range(CLASSES):
    SHARE[number] = 0.5**number


cdef inline double _halved(double x, int c) noexcept nogil:
    """x 2^-c, exactly."""
    return x * SHARE[c]


cdef double energy_of(const Rule* rule, double r, double* tension) noexcept nogil:
    cdef double u[4]
    evaluate(rule.kind, rule.p, r, 1, u)
    tension[0] = fmax(u[1], 0.0)
    return u[0]


cdef double slope_of(const Rule* rule, double r) noexcept nogil:
    cdef double u[4]
    evaluate(rule.kind, rule.p, r, 1, u)
    return u[1]


cdef int state_of(const Binding* t, Py_ssize_t slot) noexcept nogil:
    return 0 if t.state == NULL else t.state[slot]


cdef double energy_in(const Binding* t, int state, double r, double* slope) noexcept nogil:
    cdef double u[4]
    evaluate(t.rule.kind, t.spring + 2 * state, r, 1, u)
    slope[0] = u[1]
    return u[0]


cdef inline double _driven_rate(const Rule* rule, double tension) noexcept nogil:
    return rule.k_off * (
        (1.0 - rule.catch_share) * exp_(fmin(tension * rule.slip, LARGEST_EXPONENT))
        + rule.catch_share * exp_(-fmin(tension * rule.catch, LARGEST_EXPONENT))
    )


cdef double off_rate_at(const Binding* t, Py_ssize_t slot, double r) noexcept nogil:
    if t.mean == NULL:
        return off_rate_of(&t.rule, r)
    return _driven_rate(&t.rule, fmax(t.mean[slot], 0.0))


cdef double off_rate_of(const Rule* rule, double r) noexcept nogil:
    cdef double tension, u = 0.0
    if rule.driven or rule.off_share != 0.0:
        u = energy_of(rule, r, &tension)
    if rule.driven:
        return _driven_rate(rule, tension)
    if not rule.low <= r <= rule.high:
        return 0.0
    return rule.k_off if rule.off_share == 0.0 else rule.k_off * exp_(rule.off_share * u)


cdef inline double _off_bound(const Rule* rule, double r, double slack) noexcept nogil:
    """The largest rate at lengths that differ from r by the slack at most.

    It is at one end: U is convex in the length, and driven rates are convex in the tension, which does not fall with
    the length.
    """
    cdef double near = fmax(r - slack, 0.0) * (1.0 - 1e-9), far = (r + slack) * (1.0 + 1e-9)
    if not rule.driven:
        near = fmax(near, rule.low)
        far = fmin(far, rule.high)
        if not near <= far:
            return 0.0
    return fmax(off_rate_of(rule, near), off_rate_of(rule, far)) * (1.0 + 1e-9)


cdef double _walk_bound(
    const Binding* t, const World* world, Py_ssize_t foot, const double* other, double r,
) noexcept nogil:
    """The largest rate at which one end of a link of length r goes to the next sites, or lets go beyond the last. The
    other end was there."""
    cdef const Walk* walk = &t.walk
    cdef double x[3]
    cdef double d[3]
    cdef double tension, q, least, most, rate, share, total = 0.0
    cdef int32_t next
    cdef bint grows
    cdef int k
    most = fmax(energy_of(&t.rule, fmax(r - t.slack, 0.0), &tension), energy_of(&t.rule, r + t.slack, &tension))
    for k in range(2):
        rate = walk.back if k else walk.forth
        share = walk.behind_share if k else walk.ahead_share
        next = walk.beside[2 * foot + k]
        grows = next >= 0 and is_on_growing(t.rows, next)
        if next == -1 or grows:
            # At the end of a filament; of one that grows it may come to be there.
            total += rate if k == 0 and walk.leaves else 0.0
        if next < 0 or (grows and t.rows.there[next] != HERE):
            continue
        _where_then(t, world, t.measured, next, x)
        displacement(&world.box, x, other, d)
        q = sqrt(dot(d, d))
        # Nearest to the length of no energy.
        q = fmin(fmax(t.rule.p[1], q - t.slack), q + t.slack)
        least = energy_of(&t.rule, q, &tension)
        total += rate * exp_(fmin(share * (most - least), LARGEST_EXPONENT))
    return total * (1.0 + 1e-9)


cdef double distance_of(const Binding* t, const World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    cdef double a[3]
    cdef double b[3]
    cdef double d[3]
    where(t.rows, world, i, a)
    where(t.rows, world, j, b)
    displacement(&world.box, a, b, d)
    return sqrt(dot(d, d))


cdef inline void _where_then(
    const Binding* t, const World* world, const double* then, Py_ssize_t i, double* out,
) noexcept nogil:
    """As `where`, for those watched in their places `then`, (n_watched, 3)."""
    cdef const SiteRows* rows = t.rows
    cdef const double* origin = rows.x + 3 * i
    cdef double d[3]
    cdef double sum[3]
    cdef Py_ssize_t k
    cdef int c
    sum[0] = sum[1] = sum[2] = 0.0
    if t.watched == NULL:
        origin = then + 3 * i
    elif rows.start[i] < rows.start[i + 1]:
        origin = then + 3 * <Py_ssize_t> t.number[rows.start[i]]
        for k in range(rows.start[i] + 1, rows.start[i + 1]):
            displacement(&world.box, origin, then + 3 * <Py_ssize_t> t.number[k], d)
            add_scaled(rows.weight[k], d, sum)
    for c in range(3):
        out[c] = origin[c] + sum[c]


cdef inline Py_ssize_t _holding(
    Py_ssize_t i, const int32_t* end, const int32_t* held, Py_ssize_t partners,
) noexcept nogil:
    """Links at a site, or a head without one."""
    cdef Py_ssize_t links = end[i] - partners * i
    return 1 if links == 0 and held != NULL and held[i] > 0 else links


cdef inline bint _is_live(const Binding* t, Py_ssize_t s) noexcept nogil:
    """Whether a slot is that of a link at its lower site."""
    cdef Py_ssize_t i = s // t.partners
    return s < t.end[i] and i < t.other[s]


cdef inline double _part_of(const Binding* t, Py_ssize_t i) noexcept nogil:
    """What the end i of a link has of the rate at which links let go: nothing while several of its bundle hold."""
    return t.off_part[t.head[i] - 1] if t.head[i] > 0 and t.held[i] <= 1 else 0.0


cdef inline double _parts_of(const Binding* t, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    cdef double one, other
    if t.held == NULL:
        return 1.0
    one, other = _part_of(t, i), _part_of(t, j)
    # Without rounding where it is all.
    return 1.0 if one > 0.0 and other > 0.0 else one + other


cdef void _rate_slot(Binding* t, const World* world, Py_ssize_t s) noexcept nogil:
    """A bound of the rate at which the link in a slot lets go or walks; 0 where it is none, or not the lower one, or in
    another state than the first."""
    cdef double a[3]
    cdef double b[3]
    cdef double d[3]
    cdef double r, part
    cdef Py_ssize_t i = s // t.partners
    t.rate[s] = 0.0
    if not _is_live(t, s) or state_of(t, s) != 0:
        return
    part = _parts_of(t, i, t.other[s])
    if t.mean != NULL:
        t.rate[s] = part * off_rate_at(t, s, 0.0) * (1.0 + 1e-9)
    if t.mean == NULL or t.walks:
        _where_then(t, world, t.measured, i, a)
        _where_then(t, world, t.measured, t.other[s], b)
        displacement(&world.box, a, b, d)
        r = sqrt(dot(d, d))
        if t.mean == NULL:
            t.rate[s] = part * _off_bound(&t.rule, r, t.slack)
        if t.walks:
            t.rate[s] += _walk_bound(t, world, i, b, r)
            t.rate[s] += _walk_bound(t, world, t.other[s], a, r)


cdef void _add(Binding* t, Py_ssize_t block) noexcept nogil:
    """The sum of the bounds of one block, always in the same order."""
    cdef Py_ssize_t s
    cdef double total = 0.0
    for s in range(BLOCK * block, min(t.n * t.partners, BLOCK * (block + 1))):
        total += t.rate[s]
    t.rates[block] = total


cdef void _find(Binding* t, Py_ssize_t block) noexcept nogil:
    """Slots of links in a block."""
    cdef Py_ssize_t s, first = BLOCK * block
    t.n_live[block] = 0
    for s in range(first, min(t.n * t.partners, first + BLOCK)):
        if _is_live(t, s):
            t.live[first + t.n_live[block]] = <int32_t> (s - first)
            t.n_live[block] += 1


cdef int _rate(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Bounds of the links of one block, and their sum: as of `_add`, since all others are 0."""
    cdef Binding* t = <Binding*> task
    cdef Py_ssize_t b = first // BLOCK, s, k
    cdef double total = 0.0
    if not t.found:
        memset(t.rate + first, 0, (last - first) * sizeof(double))
        _find(t, b)
    for k in range(t.n_live[b]):
        s = first + t.live[first + k]
        _rate_slot(t, world, s)
        total += t.rate[s]
    t.rates[b] = total
    return 0


cdef int _average(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Means of the tensions of links, at both of their ends alike."""
    cdef Binding* t = <Binding*> task
    cdef Py_ssize_t s, i
    cdef double r, slope
    for s in range(first, last):
        i = s // t.partners
        if s < t.end[i]:
            r = distance_of(t, world, min(i, <Py_ssize_t> t.other[s]), max(i, <Py_ssize_t> t.other[s]))
            energy_in(t, state_of(t, s), r, &slope)
            t.mean[s] = t.passed * t.mean[s] + (1.0 - t.passed) * slope
    return 0


cdef int _watch(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """How far any of a block has gone, squared."""
    cdef Binding* t = <Binding*> task
    cdef const double* x
    cdef double site[3]
    cdef double d[3]
    cdef double r, far = 0.0
    cdef Py_ssize_t i
    for i in range(first, last):
        if t.now != NULL:
            x = t.now + 3 * i
            if x[0] == NOWHERE:
                # It was nowhere when links were measured.
                continue
        elif t.watched == NULL and is_on_growing(t.rows, i) and t.rows.there[i] != HERE:
            continue
        elif t.watched != NULL:
            x = world.x + 3 * <Py_ssize_t> t.watched[i]
        else:
            where(t.rows, world, i, site)
            x = site
        displacement(&world.box, t.since + 3 * i, x, d)
        r = dot(d, d) if t.since[3 * i] != NOWHERE else INFINITY
        # This way round, so that a position that is not a number counts as far.
        if not r <= far:
            far = r if r == r else INFINITY
    t.far[first // BLOCK] = far
    return 0


cdef int _copy(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Where those watched are now."""
    cdef Binding* t = <Binding*> task
    cdef Py_ssize_t i
    for i in range(first, last):
        if t.watched == NULL:
            where(t.rows, world, i, t.measured + 3 * i)
            if is_on_growing(t.rows, i) and t.rows.there[i] > (BEYOND if t.beyond else HERE):
                t.measured[3 * i] = t.measured[3 * i + 1] = t.measured[3 * i + 2] = NOWHERE
        else:
            memcpy(t.measured + 3 * i, world.x + 3 * <Py_ssize_t> t.watched[i], 3 * sizeof(double))
    return 0


cdef int _place(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Where sites were when pairs were listed."""
    cdef Binding* t = <Binding*> task
    cdef Py_ssize_t i
    for i in range(first, last):
        _where_then(t, world, t.built, i, t.then + 3 * i)
        if is_on_growing(t.rows, i):
            t.listed[i] = PARKED if t.then[3 * i] == NOWHERE else HERE
    return 0


cdef int _list(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Of the rows of slots the pairs that may ever be bound, each with its lower site: how many, then which."""
    cdef Binding* t = <Binding*> task
    cdef const Neighbors* near = t.near
    cdef const int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef double d[3]
    cdef int32_t i, j
    cdef Py_ssize_t s
    cdef long long at
    cdef int k
    for s in range(first, last):
        i = near.row[s]
        at = t.start[i] if t.pair != NULL else 0
        for k in range(near.count[s]):
            j = near.row[row[k]]
            if j > i and (t.label[i] < 0 or t.label[i] != t.label[j]):
                if t.pair != NULL:
                    displacement(&world.box, t.then + 3 * <Py_ssize_t> i, t.then + 3 * <Py_ssize_t> j, d)
                    t.pair[at] = Pair(i, j, min(BINS - 1, <int> (dot(d, d) * t.per_bin)))
                at += 1
        if t.pair == NULL:
            t.start[i + 1] = at
        row += near.count[s]
    return 0


cdef class LinkBinding(JumpOperation):
    """The jump of one context.

    Parameters
    ----------
    name, kT, driven, every
        See `JumpOperation`.
    sites : SiteTable
        n sites; `on_points`: whether some of them ride on in-triangle points.
    label : (n,) int32
        Sites of the same label are not bound to each other; -1: of none.
    apart_from, apart : (n + 1,), (m,) int32
        The sites too near to each for both to be bound.
    partners : int
        Links that a site may have.
    pool : int
        How many links there are, bound or not; -1: without end.
    most_pairs : float
        No more pairs than these can be bound.
    states : int
        Which a link may have.
    """
    def __init__(self, str name, double kT, bint driven, int every, SiteTable sites, bint on_points,
                 label, apart_from, apart, int partners, long long pool, double most_pairs, Py_ssize_t states=1):
        cdef Py_ssize_t n = sites.rows.n
        cdef int[::1] class_of
        cdef int32_t[::1] live
        cdef int32_t[::1] n_live
        cdef double[::1] rate
        cdef double[::1] rates
        cdef long long[::1] start
        cdef double[::1] far
        cdef double[:, ::1] then
        cdef int64_t[::1] changes
        self.describe(name, kT, driven, every)
        self.relinks = True
        self.sites = sites
        self.on_points = on_points
        self.pool = pool
        self.needs_pairs = True
        self.most_pairs = most_pairs
        self.held = []
        self.task.n = n
        self.task.partners = partners
        self.task.label = vector[int32_t](self.held, label)
        self.apart_from = vector[int32_t](self.held, apart_from)
        self.apart = vector[int32_t](self.held, apart)
        self.other = np.full(n * partners, -1, np.int32)
        self.end = np.arange(0, n * partners, partners, dtype=np.int32)
        self.id = np.full(n * partners, -1, np.int64)
        self.numbers = np.zeros(2, np.int64)
        self.mean = np.zeros(0)
        self.task.mean = NULL
        self.n_states = states
        self.state = np.zeros(max(1, n * partners) if states > 1 else 0, np.int32)
        self.spring = np.zeros((states, 2))
        self.task.state = <int32_t*> vector[int32_t](self.held, self.state) if states > 1 else NULL
        self.task.spring = table[double](self.held, self.spring)
        self.watch()
        self.listed = np.zeros(2, np.int64)
        # Room for one more: without sites each still has a first element.
        work = [
            np.zeros(n * partners + 1, np.int32), np.zeros(n_blocks(n * partners, BLOCK) + 1, np.int32),
            np.zeros(n * partners + 1), np.zeros(n_blocks(n * partners, BLOCK) + 1),
            np.zeros(n_blocks(self.task.n_watched, BLOCK) + 1), np.zeros(n + 1, np.int64),
            np.zeros(BINS, np.intc), np.zeros((n + 1, 3)), np.zeros(1, np.int64),
        ]
        self.held += work
        live, n_live, rate, rates, far, start, class_of, then, changes = work
        self.task.other = <int32_t*> vector[int32_t](self.held, self.other)
        self.task.end = <int32_t*> vector[int32_t](self.held, self.end)
        self.task.live = &live[0]
        self.task.n_live = &n_live[0]
        self.task.found = False
        self.found_at = -1
        self.task.rate = &rate[0]
        self.task.rates = &rates[0]
        self.task.rows = &sites.rows
        self.task.held = self.task.head = NULL
        self.task.walks = False
        self.task.far = &far[0]
        self.task.then = &then[0, 0]
        self.task.start = &start[0]
        self.task.pair = NULL
        self.task.class_of = &class_of[0]
        self.pair = NULL
        self.n_changes = &changes[0]
        self.linked = LinkedSites(sites, self.other, self.end, changes, self.state if states > 1 else None)
        self.sharing = NULL
        self.n_sharing = 0
        self.sharers = []
        self.world = self.written = -1
        self.forget_all()

    def __dealloc__(self):
        free(self.sharing)
        free(self.task.pair)
        free(self.pair)

    cdef watch(self):
        """Beads, where all sites lie between theirs."""
        cdef const SiteRows* rows = &self.sites.rows
        cdef Py_ssize_t i, k, m = rows.start[rows.n]
        cdef double total, most = 0.0
        cdef const int32_t[::1] number
        for i in range(rows.n):
            total = 0.0
            for k in range(rows.start[i], rows.start[i + 1]):
                total += fabs(rows.weight[k])
            most = fmax(most, total)
        self.task.n_watched, self.task.watched = rows.n, NULL
        self.task.listed = NULL
        if rows.there != NULL:
            # Weights follow how their links grow.
            self.task.listed = <unsigned char*> vector[cython.uchar](self.held, np.zeros(rows.n, np.uint8))
        elif not self.sites.has_arms and most < 1.0 + 1e-9 and rows.n_owners > 0:
            self.task.n_watched, self.task.watched = rows.n_owners, rows.owner
            number = np.searchsorted(
                np.asarray(<int32_t[:rows.n_owners]> <int32_t*> rows.owner),
                np.asarray(<int32_t[:m]> <int32_t*> rows.bead)).astype(np.int32)
            self.held.append(number)
            self.task.number = &number[0]
        self.built, self.measured = np.zeros((2, self.task.n_watched, 3))
        self.task.built = <double*> table[double](self.held, self.built)
        self.task.measured = <double*> table[double](self.held, self.measured)

    def set_rule(self, double kT, NeighborList neighbors, int kind, parameters, double low, double high,
                 double k_on, double k_off, double on_share, double off_share, double catch_share, double slip,
                 double catch, double slack, bint driven, double average=0.0):
        """Numbers as they are now, and the neighbours of all sites for this reach; see above, and c and s over kT.

        parameters (states, 2): of the springs of links in each state; pairs bind in the first.
        slack (nm): how far the length of a link may change until links are measured again; less where the list of pairs
        would not hold for as long. driven: whether links let go by their tension.
        """
        cdef Rule* rule = &self.task.rule
        cdef Rule before
        cdef bint is_same = self.neighbors is not None and self.kT == kT
        cdef int b
        # Byte by byte, what is between its numbers included.
        memcpy(&before, rule, sizeof(Rule))
        self.kT = kT
        rule.kind = kind
        changed = not np.array_equal(self.spring, parameters)
        np.asarray(self.spring)[:] = parameters
        rule.p[0], rule.p[1] = parameters[0]
        rule.low = low
        rule.high = high
        rule.k_on = k_on
        rule.k_off = k_off
        rule.on_share = on_share / self.kT
        rule.off_share = off_share / self.kT
        rule.catch_share = catch_share
        rule.slip = slip
        rule.catch = catch
        rule.average = average
        rule.driven = driven
        if average > 0.0 and self.task.mean == NULL:
            self.mean = np.zeros(max(1, self.task.n * self.task.partners))
            self.task.mean = <double*> vector[double](self.held, self.mean)
        if is_same and not changed and memcmp(&before, rule, sizeof(Rule)) == 0:
            # Who sets numbers to what they are, as a ramp does where a run is cut, changes nothing.
            return
        self.neighbors = neighbors
        self.task.near = &neighbors.list
        # Of the way that sites may go while a list of pairs holds, a quarter at most.
        self.slack = fmin(slack, 0.25 * neighbors.list.skin)
        self.most_off = INFINITY
        if not driven and not self.task.walks:
            self.most_off = max(off_rate_of(rule, low), off_rate_of(rule, high))
        # A little less, for the rounding of distances. A pair changes by the ways of two sites.
        self.step = (1.0 - 1e-6) * (0.5 * self.slack)**2
        self.reach = (1.0 - 1e-6) * (0.5 * (neighbors.list.skin - self.slack))**2
        self.task.per_bin = BINS / (high + neighbors.list.skin)**2
        self.way, self.bounded = neighbors.list.skin, -1.0
        self.bound_pairs()
        for b in range(BINS):
            self.task.class_of[b] = -1
            if self.bound[b] > 0.0:
                self.task.class_of[b] = max(0, min(CLASSES - 1, -int(np.frexp(self.bound[b])[1])))
        self.forget_all()

    cdef void bound_pairs(self) noexcept nogil:
        """Bounds of exp(-c U / kT) of pairs, by bin, while distances differ from those listed by `way` at most."""
        cdef double way = self.way
        cdef const Rule* rule = &self.task.rule
        # Where the energy is least.
        cdef double relaxed = fmin(fmax(rule.p[1], rule.low), rule.high)
        cdef double near, far, tension, u
        cdef int b
        if way == self.bounded:
            return
        self.bounded = way
        for b in range(BINS):
            near = fmax((sqrt(b / self.task.per_bin) - way) * (1.0 - 1e-9), rule.low)
            far = fmin((sqrt((b + 1) / self.task.per_bin) + way) * (1.0 + 1e-9), rule.high)
            self.bound[b] = 0.0
            if near <= far:
                u = energy_of(rule, fmin(fmax(relaxed, near), far), &tension)
                self.bound[b] = fmin(exp_(-fmin(rule.on_share * u, LARGEST_EXPONENT)) * (1.0 + 1e-9), 1.0)

    def share(self, list jumps):
        """Other jumps at the same sites: (jump, (n,) its row of each site, -1 of none)."""
        cdef LinkBinding jump
        free(self.sharing)
        self.sharing = <Site*> calloc(len(jumps) + 1, sizeof(Site))
        if self.sharing == NULL:
            raise MemoryError
        self.n_sharing = 0
        for jump, rows in jumps:
            self.sharing[self.n_sharing] = Site(
                vector[int32_t](self.held, rows), jump.task.end, jump.task.held, jump.task.partners)
            self.n_sharing += 1

    # For Python -----------------------------------------------------------------------------------------------------

    def forget_all(self):
        """Everything is computed anew, from where sites are then: numbers or links have been set from outside."""
        self.listed[:] = 0
        self.compute_anew()

    cdef void compute_anew(self) noexcept nogil:
        self.looked_at = -1
        self.moved = self.made = self.rated = self.within = False
        self.n_changes[0] += 1

    def arrays(self):
        out = {
            **super().arrays(), "other": np.asarray(self.other), "end": np.asarray(self.end),
            "id": np.asarray(self.id), "numbers": np.asarray(self.numbers), "built": np.asarray(self.built),
            "measured": np.asarray(self.measured), "listed": np.asarray(self.listed),
        }
        if self.task.mean != NULL:
            out["mean"] = np.asarray(self.mean)
        if self.task.state != NULL:
            out["state"] = np.asarray(self.state)
        return out

    def took_over(self):
        self.forget()
        self.written = -1

    @property
    def n_bound(self):
        return self.numbers[0]

    @property
    def pairs_in_reach(self):
        """How many there were when pairs were last listed."""
        cdef const Binding* t = &self.task
        cdef long long k, n = 0
        if not self.made:
            return 0
        then = np.asarray(<double[:t.n, :3]> t.then)
        for k in range(sum(self.n_pairs)):
            n += t.rule.low <= np.linalg.norm(then[self.pair[k].i] - then[self.pair[k].j]) <= t.rule.high
        return n

    @property
    def partners(self):
        return self.task.partners

    def links(self):
        """(k,) ids and (k, 2) sites of the links that are bound, by id: the lower site first."""
        slot = self.slots()
        pairs = np.column_stack([slot // self.task.partners, np.asarray(self.other)[slot].astype(np.int64)])
        return np.asarray(self.id)[slot], pairs

    def states(self):
        """(k,) their states."""
        return np.asarray(self.state)[self.slots()]

    cdef slots(self):
        """(k,) those of links at their lower sites, by id."""
        cdef Py_ssize_t n = self.task.n, p = self.task.partners
        slot = np.flatnonzero(np.arange(n * p) < np.repeat(np.asarray(self.end), p))
        slot = slot[slot // p < np.asarray(self.other)[slot]]
        return slot[np.argsort(np.asarray(self.id)[slot])]

    def take_over(self, LinkBinding before, const int64_t[::1] ids, const int64_t[:, ::1] pairs, row):
        """The state of another, with the links, ascending by id, that it has between these sites. row (m,): where each
        of its sites is here, -1 of those that are gone."""
        cdef Py_ssize_t k, s
        there = row >= 0
        if there.sum() == self.task.n and (before.task.watched == NULL) == (self.task.watched == NULL):
            self.take_places(before, np.flatnonzero(there), row[there])
            self.listed[:] = before.listed
        for k in range(self.task.n):
            self.end[k] = <int32_t> (self.task.partners * k)
        self.other[:] = -1
        self.id[:] = -1
        for k in range(ids.shape[0]):
            self.put(pairs[k, 0], pairs[k, 1], ids[k])
            s = before.slot_with(ids[k])
            if self.task.mean != NULL and before.task.mean != NULL:
                self.mean[self.end[pairs[k, 0]] - 1] = before.mean[s]
            if self.task.state != NULL:
                self.state[self.end[pairs[k, 0]] - 1] = before.state[s]
            self.put(pairs[k, 1], pairs[k, 0], ids[k])
        self.numbers[0] = ids.shape[0]
        self.numbers[1] = before.numbers[1]
        for k in range(3):
            self.counts[k] = before.counts[k]
            self.driving[k] = before.driving[k]

    cdef Py_ssize_t slot_with(self, int64_t id):
        """A slot of a link, by its number."""
        return np.flatnonzero(np.asarray(self.id) == id)[0]

    cdef take_places(self, LinkBinding before, theirs, here):
        """Where those watched were, by the sites that both have."""
        cdef const SiteRows* now = &self.sites.rows
        cdef const SiteRows* then = &before.sites.rows
        cdef Py_ssize_t i, j, k
        for i, j in zip(theirs, here):
            for k in range(now.start[j + 1] - now.start[j] if self.task.watched != NULL else 1):
                mine, its = j, i
                if self.task.watched != NULL:
                    mine, its = self.task.number[now.start[j] + k], before.task.number[then.start[i] + k]
                self.built[mine, :] = before.built[its, :]
                self.measured[mine, :] = before.measured[its, :]

    def keepers_of(self, const int32_t[:, ::1] nodes not None, unbinds):
        """Those who know what it holds on filaments with these nodes, as of `Places`; and for all places of its sites
        whether ends that leave them let go what is held there."""
        return [
            LinkPlaces(self, places, own) for places, own in zip(self.sites.places, unbinds, strict=True)
            if np.array_equal(places.nodes_of, nodes)
        ]

    def bind(self, Py_ssize_t i, Py_ssize_t j):
        """Bind two sites now, whatever their distance: the reason why that may not be, or an empty string."""
        why = self.refused(i, j)
        if why == 0:
            self.join(i, j)
        self.forget_all()
        return ("", "they are one site", "one has as many links as it may have", "they are bound to each other",
                "one is too near to a bound site of its filament", "they are on one filament", "the pool is empty")[why]

    # The state ------------------------------------------------------------------------------------------------------

    cdef bint is_full(self, Py_ssize_t i) noexcept nogil:
        return self.held_at(i) >= self.task.partners or not self.sites.is_here(i)

    cdef Py_ssize_t held_at(self, Py_ssize_t i) noexcept nogil:
        cdef const Site* s
        cdef Py_ssize_t k, total = _holding(i, self.task.end, self.task.held, self.task.partners)
        for k in range(self.n_sharing):
            s = &self.sharing[k]
            if s.row[i] >= 0:
                total += _holding(s.row[i], s.end, s.held, s.partners)
        return total

    cdef bint has_no_room(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return self.is_full(i) or self.is_full(j)

    cdef double share_of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return 1.0 if self.pool < 0 else 1.0 - (<double> self.numbers[0]) / self.pool

    cdef int refused(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        if i == j:
            return 1
        if self.has_no_room(i, j):
            return 2
        if self.is_bound(i, j):
            return 3
        if self.is_crowded(i, j, -1) or self.is_crowded(j, i, -1):
            return 4
        if self.task.label[i] >= 0 and self.task.label[i] == self.task.label[j]:
            return 5
        if 0 <= self.pool <= self.numbers[0]:
            return 6
        return 0

    cdef bint is_bound(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t s
        for s in range(self.task.partners * i, self.end[i]):
            if self.other[s] == j:
                return True
        return False

    cdef bint is_crowded(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t but) noexcept nogil:
        """Whether a bound site is too near to i on its filament, or j is, to which it is to be bound. One link at the
        site `but` does not count."""
        cdef Py_ssize_t k
        for k in range(self.apart_from[i], self.apart_from[i + 1]):
            if self.apart[k] == j or self.held_at(self.apart[k]) > (self.apart[k] == but):
                return True
        return False

    cdef void put(self, Py_ssize_t i, Py_ssize_t j, int64_t id) noexcept nogil:
        cdef Py_ssize_t s, at = self.end[i]
        self.clear(at)
        # What is known at its other end, where the link is there already.
        for s in range(self.task.partners * j, self.end[j]):
            if self.id[s] == id:
                self.move(s, at)
        self.other[at] = <int32_t> j
        self.id[at] = id
        self.end[i] += 1

    cdef void move(self, Py_ssize_t slot, Py_ssize_t to) noexcept nogil:
        self.other[to] = self.other[slot]
        self.id[to] = self.id[slot]
        if self.task.mean != NULL:
            self.mean[to] = self.mean[slot]
        if self.task.state != NULL:
            self.state[to] = self.state[slot]

    cdef void clear(self, Py_ssize_t slot) noexcept nogil:
        self.other[slot] = -1
        self.id[slot] = -1
        if self.task.mean != NULL:
            self.mean[slot] = 0.0
        if self.task.state != NULL:
            self.state[slot] = 0

    cdef void take(self, Py_ssize_t i, int64_t id) noexcept nogil:
        cdef Py_ssize_t s, at = self.task.partners * i
        for s in range(at, self.end[i]):
            if self.id[s] != id:
                self.move(s, at)
                at += 1
        for s in range(at, self.end[i]):
            self.clear(s)
        self.end[i] = <int32_t> at

    cdef void join(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        self.put(i, j, self.numbers[1])
        self.put(j, i, self.numbers[1])
        self.numbers[0] += 1
        self.numbers[1] += 1

    cdef void part(self, Py_ssize_t i, Py_ssize_t slot) noexcept nogil:
        cdef int64_t id = self.id[slot]
        self.take(self.other[slot], id)
        self.take(i, id)
        self.numbers[0] -= 1

    cdef void turn(self, Py_ssize_t i, Py_ssize_t slot, int state) noexcept nogil:
        cdef Py_ssize_t j = self.other[slot], s
        for s in range(self.task.partners * j, self.end[j]):
            if self.id[s] == self.id[slot]:
                self.state[s] = state
        self.state[slot] = state

    cdef void loosen(self, World* world, double t, Py_ssize_t i, double* energy) noexcept nogil:
        cdef double slope, u
        cdef Py_ssize_t slot, j
        while self.end[i] > self.task.partners * i:
            slot = self.end[i] - 1
            j = self.other[slot]
            u = energy_in(&self.task, state_of(&self.task, slot), distance_of(&self.task, world, i, j), &slope)
            self.part(i, slot)
            energy[0] -= u
            self.record(world, t, UNBIND, i, j, -u, 0.0, INFINITY)
        self.rated = False
        self.n_changes[0] += 1

    cdef void shift(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t s, k, to
        for s in range(self.task.partners * i, self.end[i]):
            k = self.other[s]
            for to in range(self.task.partners * k, self.end[k]):
                if self.id[to] == self.id[s]:
                    self.other[to] = <int32_t> j
            self.move(s, self.end[j])
            self.clear(s)
            self.end[j] += 1
        self.end[i] = <int32_t> (self.task.partners * i)
        self.rated = False
        self.n_changes[0] += 1

    # The process ----------------------------------------------------------------------------------------------------

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef const Rule* rule = &self.task.rule
        cdef double u[2]
        cdef double t = 0.0
        cdef double on, most_on, other, total, x
        cdef long long events = self.counts[2]
        cdef double most_off = 1.0001 * self.most_off * self.numbers[0] if self.numbers[0] > 0 else 0.0
        cdef int fault
        self.begin(world)
        draw_two(draws, u)
        most_on = self.most_on(h)
        other = self.other_rate(world)
        # An attempt too late for the largest rates that there can be is too late for those of now, wherever sites are.
        if draw_exponential(u[0]) >= (1.0001 * (most_on + other) + most_off) * h:
            return 0
        self.look(world)
        if self.task.mean != NULL:
            self.task.passed = exp_(-h / rule.average)
            over_blocks(_average, &self.task, world, self.task.n * self.task.partners, BLOCK)
            self.rated = False
        fault = self.follow(world, h)
        if fault != 0:
            return fault
        on = rule.k_on * self.weight if self.needs_pairs else 0.0
        while draws.next <= MOST_DRAWS:
            total = on + self.off_rate + other
            if not total > 0.0:
                break
            t += draw_exponential(u[0]) / total
            if t >= h:
                break
            self.counts[0] += 1
            x = u[1] * total
            if x < on:
                fault = self.attempt(world, x / on * self.weight, t, draws)
            elif other == 0.0 or x < total - other:
                fault = self.let_go(world, x - on, t, draws)
            else:
                fault = self.attempt_other(world, x - (total - other), t, draws)
            if fault != 0:
                return fault
            other = self.other_rate(world)
            draw_two(draws, u)
        if self.counts[2] != events:
            # The letter marks what has happened: sites are where they were.
            self.looked_at = world.newest + 1
        return 0

    cdef void begin(self, World* world) noexcept nogil:
        """What is cached is of another world, or another state of it."""
        if self.world != world.number or self.written != world.written:
            self.compute_anew()
            self.world = world.number
            self.written = world.written

    cdef void look(self, World* world) noexcept nogil:
        """Whether links are to be measured again."""
        self.sites.follow(world)
        if self.looked_at == world.positions:
            return
        if self.on_points:
            place(world)
        self.moved = not self.gone(world, NULL, self.task.measured) <= (0.0 if self.listed[1] else self.step)
        self.looked_at = world.positions

    cdef double gone(self, World* world, const double* now, const double* since) noexcept nogil:
        """How far any has gone, squared: from `since` to `now`, or to where it is in the world."""
        cdef Binding* t = &self.task
        t.now, t.since = now, since
        over_blocks(_watch, t, world, t.n_watched, BLOCK)
        return ordered_max(t.far, n_blocks(t.n_watched, BLOCK))

    cdef void rate_links(self, World* world) noexcept nogil:
        """Bounds of the rates of all links, from where sites were when links were measured."""
        self.task.slack = 0.0 if self.listed[1] else self.slack
        self.task.found = self.found_at == self.n_changes[0]
        self.found_at = self.n_changes[0]
        over_blocks(_rate, &self.task, world, self.task.n * self.task.partners, BLOCK)
        self.add_rates()
        self.rated = True

    cdef void add_rates(self) noexcept nogil:
        cdef Py_ssize_t b
        self.off_rate = 0.0
        for b in range(n_blocks(self.task.n * self.task.partners, BLOCK)):
            self.off_rate += self.task.rates[b]

    cdef int follow(self, World* world, double h) noexcept nogil:
        """Measure links and list pairs, with bounds of rates, where the last do not hold any more or are another's."""
        cdef Binding* t = &self.task
        cdef bint moved = self.moved or self.listed[0] == 0
        cdef double far, unit
        cdef int fault
        if not has_lengths(&world.box, self.made_in):
            self.made = self.rated = False
        if not moved and self.listed[1] == 0 and t.mean == NULL:
            if not self.rated:
                self.rate_links(world)
            moved = self.off_rate * h > self.numbers[0]
        if moved:
            self.copy(world, False)
            self.moved = self.rated = self.within = False
            self.listed[1] = 0
        if self.listed[0] == 0 or (self.needs_pairs and not (self.within and self.made)):
            # In a box of other lengths, and after a restart, it is found once more that these still hold.
            far = INFINITY if self.listed[0] == 0 else self.gone(world, t.measured, t.built)
            if not far <= self.reach:
                far = 0.0
                if t.listed != NULL:
                    self.copy(world, True)
                    self.rated = False
                memcpy(t.built, t.measured, 3 * t.n_watched * sizeof(double))
                if t.listed != NULL:
                    self.copy(world, False)
                self.listed[0] = 1
                self.made = False
            self.within = True
            # Rounded up: pairs that are bounded by more than need be are refused when they are measured.
            unit = t.near.skin / WAYS
            self.way = unit * ceil((2.0 * sqrt(far) + self.slack) / unit) * (1.0 + 1e-6)
        if self.needs_pairs:
            if not self.made:
                fault = self.list_pairs(world)
                if fault != 0:
                    return fault
            self.bound_pairs()
        if not self.rated:
            self.rate_links(world)
            # Rates of now in place of bounds, if these would bring more attempts than there are links.
            if moved and self.off_rate * h > self.numbers[0] and t.mean == NULL:
                self.listed[1] = 1
                self.rate_links(world)
        memcpy(self.made_in, world.box.length, sizeof(self.made_in))
        return 0

    cdef void copy(self, World* world, bint beyond) noexcept nogil:
        self.task.beyond = beyond
        over_blocks(_copy, &self.task, world, self.task.n_watched, BLOCK)

    cdef int list_pairs(self, World* world) noexcept nogil:
        cdef Binding* t = &self.task
        cdef SiteArrays then = self.sites.now
        cdef Py_ssize_t i
        cdef int fault
        over_blocks(_place, t, world, t.n, BLOCK)
        self.neighbors.list.valid = 0
        then.x = t.then
        if t.listed != NULL:
            then.there = t.listed
        fault = self.neighbors.follow(world, &then)
        if fault != 0:
            return fault
        free(t.pair)
        free(self.pair)
        t.pair = self.pair = NULL
        # Of sites that are nowhere there are no rows.
        memset(t.start, 0, (t.n + 1) * sizeof(long long))
        over_blocks(_list, t, world, t.near.n, ROWS_PER_BLOCK)
        for i in range(t.n):
            t.start[i + 1] += t.start[i]
        t.pair = <Pair*> malloc((t.start[t.n] + 1) * sizeof(Pair))
        self.pair = <Pair*> malloc((t.start[t.n] + 1) * sizeof(Pair))
        if t.pair == NULL or self.pair == NULL:
            return OUT_OF_MEMORY
        over_blocks(_list, t, world, t.near.n, ROWS_PER_BLOCK)
        self.sort_pairs()
        free(t.pair)
        t.pair = NULL
        self.made = True
        return 0

    cdef void sort_pairs(self) noexcept nogil:
        """By class, and without those that do not come into reach."""
        cdef Binding* t = &self.task
        cdef long long[CLASSES] at
        cdef long long k, first = 0
        cdef int c
        memset(self.n_pairs, 0, sizeof(self.n_pairs))
        for k in range(t.start[t.n]):
            c = t.class_of[t.pair[k].bin]
            if c >= 0:
                self.n_pairs[c] += 1
        self.weight = 0.0
        for c in range(CLASSES):
            at[c] = first
            first += self.n_pairs[c]
            self.weight += _halved(<double> self.n_pairs[c], c)
        for k in range(t.start[t.n]):
            c = t.class_of[t.pair[k].bin]
            if c >= 0:
                self.pair[at[c]] = t.pair[k]
                at[c] += 1

    cdef int attempt(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        """Try the pair at which the sum of 2^-c passes x."""
        cdef const Pair* pair
        cdef long long first = 0, next = 0
        cdef double u[2]
        cdef double w
        cdef int c, last = -1
        for c in range(CLASSES):
            if self.n_pairs[c] > 0:
                last, first = c, next
                w = _halved(<double> self.n_pairs[c], c)
                if x < w:
                    break
                x -= w
            next += self.n_pairs[c]
        if last < 0:
            return self.lost(world)
        # Sums round: past the end it is the last.
        pair = &self.pair[first + min(<long long> (x * <double> (<long long> 1 << last)), self.n_pairs[last] - 1)]
        draw_two(draws, u)
        w = _halved(u[0], last)
        if w >= self.bound[pair.bin]:
            return 0
        return self.try_pair(world, t, pair.i, pair.j, w, 1.0, min(self.bound[pair.bin], _halved(1.0, last)))

    cdef int try_pair(self, World* world, double t, Py_ssize_t i, Py_ssize_t j, double x, double factor,
                      double most) noexcept nogil:
        cdef const Rule* rule = &self.task.rule
        cdef double r, energy, tension, there
        if self.has_no_room(i, j):
            return 0
        r = distance_of(&self.task, world, i, j)
        if not rule.low <= r <= rule.high or self.refused(i, j) != 0:
            return 0
        energy = energy_of(rule, r, &tension)
        there = exp_(-fmin(rule.on_share * energy, LARGEST_EXPONENT))
        if not there <= most:
            return self.lost(world)
        if not x < factor * self.share_of(i, j) * there:
            return 0
        return self.bind_pair(
            world, t, i, j, energy, there, rule.k_off if self.task.mean != NULL else off_rate_of(rule, r))

    cdef int bind_pair(self, World* world, double t, Py_ssize_t i, Py_ssize_t j, double energy, double there,
                       double back) noexcept nogil:
        self.join(i, j)
        self.changed_at(world, i, j)
        return self.happened(
            world, t, BIND, i, j, energy, 0.0,
            self.kT * log_(self.task.rule.k_on * there / back) + energy if back > 0.0 else INFINITY)

    cdef double most_on(self, double h) noexcept nogil:
        return self.task.rule.k_on * self.most_pairs

    cdef double other_rate(self, World* world) noexcept nogil:
        return 0.0

    cdef int attempt_other(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        return 0

    cdef int lost(self, World* world) noexcept nogil:
        return record_fault(world, LOST_COUNT, -1, -1)

    cdef int let_go(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        """Try the link at which the sum of bounds passes x."""
        cdef const Binding* task = &self.task
        cdef const double* rate = task.rate
        cdef const double* rates = task.rates
        cdef Py_ssize_t b, s, last = -1
        for b in range(n_blocks(task.n * task.partners, BLOCK)):
            if rates[b] > 0.0:
                last = b
                if x < rates[b]:
                    break
                x -= rates[b]
        if last < 0:
            return self.lost(world)
        b = last
        last = -1
        for s in range(BLOCK * b, min(task.n * task.partners, BLOCK * (b + 1))):
            if rate[s] > 0.0:
                # Sums round: past the end it is the last.
                last = s
                if x < rate[s]:
                    break
                x -= rate[s]
        if last < 0:
            return self.lost(world)
        # What is left of x lies anywhere below the bound.
        return self.leave(world, x, t, last)

    cdef int leave(self, World* world, double x, double t, Py_ssize_t slot) noexcept nogil:
        cdef const Rule* rule = &self.task.rule
        cdef Py_ssize_t i = slot // self.task.partners, j = self.task.other[slot]
        cdef double r = distance_of(&self.task, world, i, j), off = off_rate_at(&self.task, slot, r)
        cdef double energy, tension, on
        if not off <= self.task.rate[slot]:
            return self.lost(world)
        if not x < off:
            return 0
        energy = energy_of(rule, r, &tension)
        on = 0.0
        if rule.low <= r <= rule.high:
            on = rule.k_on * exp_(-fmin(rule.on_share * energy, LARGEST_EXPONENT))
        on = self.kT * log_(off / on) - energy if on > 0.0 else INFINITY
        self.part(i, slot)
        self.changed_at(world, i, j)
        return self.happened(world, t, UNBIND, i, j, -energy, 0.0, on)

    cdef Py_ssize_t slot_of(self, int64_t k) noexcept nogil:
        cdef Binding* t = &self.task
        cdef Py_ssize_t b = 0, n = n_blocks(t.n * t.partners, BLOCK)
        if self.found_at != self.n_changes[0]:
            # Rates are made again when they are needed.
            self.rated = False
            memset(t.rate, 0, t.n * t.partners * sizeof(double))
            for b in range(n):
                _find(t, b)
            self.found_at = self.n_changes[0]
            b = 0
        while b < n - 1 and k >= t.n_live[b]:
            k -= t.n_live[b]
            b += 1
        return BLOCK * b + t.live[BLOCK * b + k]

    cdef int64_t pairs_listed(self) noexcept nogil:
        cdef int64_t n = 0
        cdef int c
        if self.made:
            for c in range(CLASSES):
                n += self.n_pairs[c]
        return n

    cdef bint may_step(self, Py_ssize_t i, Py_ssize_t j, Py_ssize_t next) noexcept nogil:
        if next == j or self.is_full(next):
            return False
        return not (self.is_bound(next, j) or self.is_crowded(next, j, i))

    cdef void step_end(self, World* world, Py_ssize_t i, Py_ssize_t j, Py_ssize_t next) noexcept nogil:
        cdef Py_ssize_t to = self.task.partners * j
        while self.other[to] != i:
            to += 1
        self.take(i, self.id[to])
        self.other[to] = <int32_t> next
        self.put(next, j, self.id[to])
        self.changed_at(world, i, next)
        self.changed_at(world, next, j)

    cdef void rate_at(self, World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Binding* t = &self.task
        cdef Py_ssize_t[2] sites = [i, j]
        cdef Py_ssize_t b, s, first, last
        cdef int k
        for k in range(2):
            first = t.partners * sites[k]
            last = first + t.partners
            for s in range(first, last):
                _rate_slot(t, world, s)
            for b in range(first // BLOCK, n_blocks(last, BLOCK)):
                _add(t, b)
                _find(t, b)
        self.add_rates()

    cdef void changed_at(self, World* world, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        self.rate_at(world, i, j)
        self.found_at += self.found_at == self.n_changes[0]
        self.n_changes[0] += 1


cdef class LinkPlaces(PlaceKeeper):
    """What a jump holds at the places of one lattice."""
    cdef LinkBinding jump

    def __init__(self, LinkBinding jump not None, Places places not None, bint unbinds):
        self.jump = jump
        self.places = places
        self.unbinds = unbinds

    cdef int let_go(self, World* world, double start, double after, Py_ssize_t filament, int64_t at,
                    double* energy) noexcept nogil:
        cdef Py_ssize_t site = -1
        if at % self.places.spacing == 0:
            site = self.places.row(filament, self.places.first(at))
        if site < 0 or not self.holds(filament, at, at):
            return 0
        # It is straight on from the end, where it was.
        self.jump.sites.follow(world)
        self.jump.start = start
        self.jump.loosen(world, after, site, energy)
        return 1

    cdef bint links(self, Py_ssize_t filament, Py_ssize_t other) noexcept nogil:
        cdef const SiteRows* t = &self.jump.sites.rows
        cdef Py_ssize_t i, row, s, k
        for i in range(self.places.site.shape[1]):
            row = self.places.site[filament, i]
            if row < 0 or self.jump.task.label[row] < 0:
                # Of none, or of those that hold one filament too.
                continue
            for s in range(self.jump.task.partners * row, self.jump.end[row]):
                k = self.jump.other[s]
                if t.start[k] < t.start[k + 1] and self.places.filament[t.bead[t.start[k]]] == other:
                    return True
        return False

    cdef bint is_taken(self, Py_ssize_t row) noexcept nogil:
        cdef Binding* t = &self.jump.task
        return _holding(row, t.end, t.held, t.partners) > 0

    cdef void shift(self, Py_ssize_t row, Py_ssize_t to) noexcept nogil:
        self.jump.shift(row, to)


cdef class Joined(Operation):
    """The terms of a force that stay, and those that come and go: two operations that are one force."""
    cdef Operation first
    cdef Operation second

    def __init__(self, str name, Operation first, Operation second):
        self.name = name
        self.first = first
        self.second = second
        self.derivatives = min(first.derivatives, second.derivatives)
        self.acts_on_points = first.acts_on_points or second.acts_on_points
        self.has_links = True

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault = self.first.run(world)
        if fault == 0:
            fault = self.second.run(world)
        self.energy = self.first.energy + self.second.energy
        return fault

    cdef bint is_local(self) noexcept nogil:
        return self.first.is_local() and self.second.is_local()

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        if not self.first.touch(world, change):
            return False
        if not self.second.touch(world, change):
            self.first.release()
            return False
        return True

    cdef void release(self) noexcept nogil:
        self.first.release()
        self.second.release()

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef double more = 0.0
        cdef int fault = self.first.local_energy(world, out)
        if fault == 0:
            fault = self.second.local_energy(world, &more)
        out[0] += more
        return fault

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        cdef bint first = self.first.changed(world, change)
        return self.second.changed(world, change) and first

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef int fault = self.first.hessian(world, add, sink)
        return fault if fault != 0 else self.second.hessian(world, add, sink)

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef int fault = self.first.stiffness(world, add, sink)
        return fault if fault != 0 else self.second.stiffness(world, add, sink)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        cdef int fault = self.first.contract(world, a, out)
        return fault if fault != 0 else self.second.contract(world, a, out)

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        cdef int fault = self.first.contract_stiffness(world, a, out)
        return fault if fault != 0 else self.second.contract_stiffness(world, a, out)
