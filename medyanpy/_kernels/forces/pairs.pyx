"""Radial energies of all pairs within range of each other.

    F_i = sum_j U'(r) d / r,   d = x_j - x_i,   r < range of the pair

Every pair is in the neighbour rows of both its ends and computed twice, with the same bits but for the sign:
the forces of a pair are exactly opposite, a thread writes to its own sites only, and each site adds up its
row in ascending order of numbers, so that the sum depends neither on threads nor on the age of the list.

Entries of rows are worked on by batches, whichever rows they are of: places of both ends are fetched, then come all
displacements, then those in range move together, then all slopes, then the sums of rows. But for the last, each is a
loop without branches over as many numbers as vectors are good for; rows alone are too short for that.
"""
import numpy as np

from libc.math cimport M_PI, NAN, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from medyanpy._kernels.core.arrays cimport table, zeros
from medyanpy._kernels.core.box cimport Box, displacement, displacements_from, nearest_image, nearest_whole, sides_of
from medyanpy._kernels.core.derivatives cimport Derivative
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH
from medyanpy._kernels.core.expressions cimport evaluate as run_program
from medyanpy._kernels.core.neighbors cimport (
    AHEAD, ROWS_PER_BLOCK, NeighborList, Neighbors, group_now, prefetch, sort_by_id,
)
from medyanpy._kernels.core.local_terms cimport NeighborForce
from medyanpy._kernels.core.parallel cimport SUM_BLOCK, n_blocks, over_blocks, record_fault, sum_in_blocks
from medyanpy._kernels.core.program cimport NOT_FINITE, OUT_OF_MEMORY, World
from medyanpy._kernels.forces.radial cimport (
    END, LENNARD_JONES, OFF, RICKER, SOFT_SPHERE, SWITCH, WCA, derive, evaluate, lennard_jones_end, pull, slope,
)
from medyanpy._kernels.core.sites cimport SiteTable
from medyanpy._kernels.core.special cimport erfc_over_gauss, gauss_
from medyanpy._kernels.core.simd_gather cimport SHORT_ROW, TOGETHER, add_rows, fetch, keep, number, sort_short
from medyanpy._kernels.core.vec3 cimport dot

cdef enum:
    # Entries of a row that are looked at at a time, and of a batch; these are fewer than PART below its room.
    PART = 96
    ROOM = 320
    PLANE = 328               # ROOM and TOGETHER
    # In place of a kind: any that has no shortcut; and energies that are programs, of radial.pxd's kinds none.
    ANY = -1
    WRITTEN = -2
    # Charges with their screens: what Ewald's sum has of pairs within range.
    SCREENED = -3
    # Sites that move are looked at together while they are in a box of so many cells, in each direction.
    CELLS_OF_A_BOX = 4


cdef struct PairTask:
    const Neighbors* list
    int kind
    const double* p           # parameters of the radial function
    double a                  # the first two of them
    double b                  # for SOFT_SPHERE: the sum of two radii, where all are equal
    double end                # what `pull` takes off the energy
    double end_squared        # square of the range; not of SOFT_SPHERE with radii that differ
    double* energy            # by member
    # Of WRITTEN; `of_first` of SCREENED are charges.
    const Function* function  # of r and the numbers of both ends: the energy and its derivative
    double* registers
    Py_ssize_t stride         # of the registers of a thread
    const double* of_first    # (n_members, n_first)
    const double* of_second   # (n_members, n_second)
    Py_ssize_t n_first, n_second
    int by_group              # whether the first of two is that in group A; else the one with the lower number


# Entries of rows in range, on their way to forces.
cdef struct Batch:
    int n
    Py_ssize_t begun          # the first row of these
    int32_t[ROWS_PER_BLOCK] ends  # of each row from `begun` on, after its last entry
    double[4 * PLANE] d       # components of displacements, and then of forces; and squares of distances
    double[PLANE] b           # sums of radii, where they differ; of SCREENED, products of charges
    double[PLANE] c           # of WRITTEN, U'/r and U; and the slots of both ends
    double[PLANE] u
    int32_t[PLANE] slot
    int32_t[PLANE] partner
    double[3 * ROWS_PER_BLOCK] total
    double[ROWS_PER_BLOCK] energy


cdef inline bint _is_first(const PairTask* t, const World* world, Py_ssize_t own, Py_ssize_t other) noexcept nogil:
    """Whether the member `own` is the first of two: the same seen from both ends."""
    cdef const Neighbors* near = t.list
    cdef int32_t a = near.site[own], b = near.site[other]
    if t.by_group:
        return group_now(near, world, own) == 1
    if near.sites.id[a] != near.sites.id[b]:
        return near.sites.id[a] < near.sites.id[b]
    return a < b


cdef inline void _fetch(
    const PairTask* t, const Function* function, double* registers, int lane, Py_ssize_t first, Py_ssize_t second,
    double r,
) noexcept nogil:
    """What a program is given of two members."""
    cdef double* at = registers + WIDTH * function.n_constants + lane
    cdef const double* a = t.of_first + t.n_first * first
    cdef const double* b = t.of_second + t.n_second * second
    cdef Py_ssize_t k
    at[0] = r
    for k in range(t.n_first):
        at += WIDTH
        at[0] = a[k]
    for k in range(t.n_second):
        at += WIDTH
        at[0] = b[k]


cdef int _run(PairTask* t, World* world, Batch* at, int n, int thread) noexcept nogil:
    """Energies and slopes of the first n entries, by the program."""
    cdef const Neighbors* near = t.list
    cdef double* registers = t.registers + t.stride * thread
    cdef int chunk, lane, k, fault = 0
    cdef double first
    cdef Py_ssize_t row, a, b
    chunk = 0
    while chunk < n:
        for lane in range(WIDTH):
            # Where there are no more, the last once again.
            k = min(chunk + lane, n - 1)
            a, b = near.member[at.slot[k]], near.member[at.partner[k]]
            if not _is_first(t, world, a, b):
                a, b = b, a
            _fetch(t, t.function, registers, lane, a, b, sqrt(at.d[3 * PLANE + k]))
        run_program(t.function, registers)
        for k in range(chunk, min(chunk + <int> WIDTH, n)):
            at.u[k] = registers[WIDTH * t.function.outputs[0] + k - chunk]
            first = registers[WIDTH * t.function.outputs[1] + k - chunk]
            # Beads in one place have no direction to push in. Zero is the mean over all of them.
            at.c[k] = first / sqrt(at.d[3 * PLANE + k]) if at.d[3 * PLANE + k] > 0.0 else 0.0
            # As of fields: derivatives may look like numbers where the energy is none.
            if not (0.0 * at.u[k] == 0.0):
                row = near.row[at.slot[k]]
                row = row if near.sites.bead == NULL else near.sites.bead[row]
                fault |= record_fault(world, NOT_FINITE, row, -1)
        chunk += WIDTH
    return fault


cdef inline double _screened(const PairTask* t, double rr, double product, double* u) noexcept nogil:
    """U'/r and U = k q1 q2 (erfc(a r)/r - end), p = (k, a, ..); nothing of what has no charge, wherever it is."""
    cdef double r = sqrt(rr if product != 0.0 else 1.0)
    cdef double x = t.b * r
    cdef double e = gauss_(x)
    cdef double i = 1.0 / r
    cdef double v = e * erfc_over_gauss(x if x < 28.0 else 28.0) * i
    cdef double factor = t.a * product
    u[0] = factor * (v - t.end)
    return -factor * (v + t.b * (2.0 / sqrt(M_PI)) * e) * (i * i)


cdef inline double _slope(int kind, bint equal, const PairTask* t, const Batch* at, int k, double* u) noexcept nogil:
    if kind == SCREENED:
        return _screened(t, at.d[3 * PLANE + k], at.b[k], u)
    if kind == SOFT_SPHERE or kind == WCA or kind == RICKER:
        return pull(kind, t.a, t.b if equal else at.b[k], t.end, at.d[3 * PLANE + k], u)
    return slope(t.kind if kind == ANY else kind, t.p, at.d[3 * PLANE + k], u)


cdef inline int _empty(
    int kind, bint equal, PairTask* t, World* world, Batch* at, Py_ssize_t first, Py_ssize_t s, int thread,
) noexcept nogil:
    """Entries of rows `begun` to s go into the sums of these."""
    cdef double u, pulled, energy
    cdef double* d = at.d
    cdef int c, k, n = at.n, q, rows = <int> (s + 1 - at.begun), fault = 0
    if kind == WRITTEN:
        fault = _run(t, world, at, n, thread)
        for k in range(n):
            for c in range(3):
                d[PLANE * c + k] *= at.c[k]
    else:
        for k in range(n):
            pulled = _slope(kind, equal, t, at, k, &u)
            d[k] *= pulled
            d[PLANE + k] *= pulled
            d[2 * PLANE + k] *= pulled
    add_rows(d, PLANE, at.ends, rows, at.total + 3 * (at.begun - first))
    if world.want_energy:
        k = 0
        for q in range(rows):
            energy = at.energy[at.begun + q - first]
            while k < at.ends[q]:
                if kind == WRITTEN:
                    u = at.u[k]
                else:
                    _slope(kind, equal, t, at, k, &u)
                # Half from each end: both see the same r, so the two halves make one whole exactly.
                energy += 0.5 * u
                k += 1
            at.energy[at.begun + q - first] = energy
    at.begun = s
    at.n = 0
    return fault


cdef inline int _block(
    int kind, bint equal, PairTask* t, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil:
    """The rows of one block; `kind` and `equal` are literals where this is called, and compiled in."""
    cdef const Neighbors* near = t.list
    cdef const int32_t* row = near.rows[first // ROWS_PER_BLOCK]
    cdef const double* me
    cdef double* f
    cdef double other[3 * PART]
    cdef double d[3 * PART]
    cdef Batch at
    cdef Box sides[8]
    cdef double radii, end_squared = t.end_squared
    cdef Py_ssize_t s
    cdef int left, part, width, k, c, n, fault = 0
    sides_of(&world.box, sides)
    at.n = 0
    at.begun = first
    memset(at.total, 0, sizeof(at.total))
    memset(at.energy, 0, sizeof(at.energy))
    for s in range(first, last):
        me = near.now + 4 * s
        left = near.count[s]
        while left > 0:
            if at.n > ROOM - PART:
                at.ends[s - at.begun] = at.n
                fault |= _empty(kind, equal, t, world, &at, first, s, thread)
            part = min(left, <int> PART)
            width = (part + TOGETHER - 1) & ~(TOGETHER - 1)
            fetch(near.now, row, part, width, other)
            displacements_from(&sides[near.across[s]], me, other, d, width)
            if equal and kind != WRITTEN and kind != SCREENED:
                at.n += keep(d, part, width, end_squared, at.d + at.n, PLANE)
            else:
                n = at.n
                for k in range(part):
                    for c in range(3):
                        at.d[PLANE * c + n] = d[width * c + k]
                    at.d[3 * PLANE + n] = (
                        d[k] * d[k] + d[width + k] * d[width + k] + d[2 * width + k] * d[2 * width + k])
                    if not equal:
                        radii = me[3] + near.now[4 * <Py_ssize_t> row[k] + 3]
                        at.b[n] = radii
                        end_squared = radii * radii
                    if kind == WRITTEN:
                        at.slot[n] = <int32_t> s
                        at.partner[n] = row[k]
                    elif kind == SCREENED:
                        at.b[n] = t.of_first[near.member[s]] * t.of_first[near.member[row[k]]]
                    n += at.d[3 * PLANE + n] < end_squared
                at.n = n
            row += part
            left -= part
        at.ends[s - at.begun] = at.n
    fault |= _empty(kind, equal, t, world, &at, first, last - 1, thread)
    for s in range(first, last):
        prefetch(near.sites.f + 3 * <Py_ssize_t> near.row[min(s + AHEAD, last - 1)])
        # Summed apart and added once: two equal forces give exactly twice one.
        f = near.sites.f + 3 * <Py_ssize_t> near.row[s]
        for c in range(3):
            f[c] += at.total[3 * (s - first) + c]
        if world.want_energy:
            t.energy[near.member[s]] = at.energy[s - first]
    return fault


cdef int _pairs(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PairTask* t = <PairTask*> task
    if t.kind == WRITTEN:
        return _block(WRITTEN, True, t, world, first, last, thread)
    if t.kind == SCREENED:
        return _block(SCREENED, True, t, world, first, last, thread)
    if t.kind == SOFT_SPHERE:
        if t.list.equal:
            return _block(SOFT_SPHERE, True, t, world, first, last, thread)
        return _block(SOFT_SPHERE, False, t, world, first, last, thread)
    if t.kind == WCA or (t.kind == LENNARD_JONES and t.p[SWITCH] >= t.p[END]):
        # They differ in where they end.
        return _block(WCA, True, t, world, first, last, thread)
    if t.kind == RICKER and t.p[SWITCH] >= t.p[END]:
        return _block(RICKER, True, t, world, first, last, thread)
    return _block(ANY, True, t, world, first, last, thread)


cdef class Pairs(NeighborForce):
    """A radial energy of all neighbours; the caller has made the list for the range of the function.

    Parameters
    ----------
    name : str
    kind : Radial
        The radial function: one that ends.
    parameters : sequence of float
        Those of the function. For SOFT_SPHERE the second is not read: beads touch at the sum of their radii.
    neighbors : NeighborList
    sites : SiteTable
        What the rows of the list are rows of.
    """
    cdef PairTask task
    cdef list arrays
    cdef double[::1] p
    cdef double* partial
    cdef double* places       # (4, n) of those found near them
    cdef int32_t* partners
    cdef Py_ssize_t room

    def __init__(self, str name, int kind, parameters, NeighborList neighbors, SiteTable sites):
        cdef PairTask* t = &self.task
        self.name = name
        self.watch(neighbors, sites)
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.p = np.array(parameters, float)
        if kind == SOFT_SPHERE and neighbors.list.n_members > 0:
            # Where all radii are equal; where not, the loop adds up those of each pair.
            self.p[1] = neighbors.list.radius[0] + neighbors.list.radius[0]
        self.asked_last = True
        self.is_positive = (kind == SOFT_SPHERE or kind == WCA) and self.p[0] >= 0.0
        neighbors.list.images = 1
        neighbors.list.renews = sites.are_beads
        t.list = &neighbors.list
        t.kind = kind
        t.p = &self.p[0]
        t.a = self.p[0]
        t.b = self.p[1]
        t.end = 0.0
        if kind == SOFT_SPHERE:
            t.end_squared = self.p[1] * self.p[1]
        elif kind == WCA:
            t.end = lennard_jones_end(kind, t.p, &t.end_squared)
        else:
            t.end = self.p[OFF]
            t.end_squared = self.p[END] * self.p[END]
        self.arrays = []
        t.energy = zeros(self.arrays, t.list.n_members)
        self.partial = zeros(self.arrays, n_blocks(t.list.n_members, SUM_BLOCK))

    def __dealloc__(self):
        free(self.places)
        free(self.partners)

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
        fault = over_blocks(_pairs, &self.task, world, near.n, ROWS_PER_BLOCK)
        if fault != 0:
            return fault
        if world.want_energy:
            # In the order of members: that of slots depends on when the list was built.
            self.energy = sum_in_blocks(world, self.task.energy, n, self.partial)
        return self.sites.scatter(world)

    # Where a few sites move: pairs among them, and those with neighbours of their places. Sums are in the order of
    # sites and of numbers, whatever the age of the list. --------------------------------------------------------------

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        cdef Neighbors* near = &self.neighbors.list
        cdef double low[3]
        cdef double high[3]
        cdef double image[3]
        cdef double most = CELLS_OF_A_BOX / near.per_cell if near.n > 0 else 0.0
        cdef Py_ssize_t k = 0, after, n
        cdef bint apart
        cdef int c
        out[0] = 0.0
        self.moved.follow(world, self.sites)
        while k < self.moved.n:
            # Those that follow and are close enough are looked at together.
            for c in range(3):
                low[c] = self.moved.x[3 * k + c]
            nearest_image(&world.box, low)
            for c in range(3):
                high[c] = low[c]
            after = k
            apart = False
            while after < self.moved.n and not apart:
                displacement(&world.box, low, self.moved.x + 3 * after, image)
                for c in range(3):
                    image[c] += low[c]
                    apart |= max(high[c], image[c]) - min(low[c], image[c]) > most
                if not apart or after == k:
                    for c in range(3):
                        low[c] = min(low[c], image[c])
                        high[c] = max(high[c], image[c])
                    after += 1
            n = self.neighbors.near_box(world, low, high, 3)
            if n < 0 or not self.load(n):
                return record_fault(world, OUT_OF_MEMORY, -1, -1)
            while k < after:
                if self.member[k] >= 0:
                    self.add_partners(world, k, n, out)
                k += 1
        return 0

    cdef bint load(self, Py_ssize_t n) noexcept nogil:
        """The places of sites that are found and do not move, (3, n), and squared distances behind these."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef double* grown
        cdef int32_t* entries
        cdef const double* now
        cdef int32_t slot
        cdef Py_ssize_t i
        cdef int c
        if self.room < n + TOGETHER:
            grown = <double*> realloc(self.places, 8 * (n + TOGETHER) * sizeof(double))
            if grown == NULL:
                return False
            self.places = grown
            entries = <int32_t*> realloc(self.partners, 2 * (n + TOGETHER) * sizeof(int32_t))
            if entries == NULL:
                return False
            self.partners = entries
            self.room = 2 * (n + TOGETHER)
        for i in range(n):
            slot = self.neighbors.found[i]
            now = near.now + 4 * <Py_ssize_t> slot
            for c in range(3):
                # What moves is near nothing here.
                self.places[n * c + i] = now[c] if self.moved.rank[near.row[slot]] < 0 else NAN
        return True

    cdef void add_partners(self, World* world, Py_ssize_t k, Py_ssize_t n, double* out) noexcept nogil:
        """Add the energy of one site that moves with those of the n places, in the order of numbers, and with those
        that move and come before it."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef const double* x = self.moved.x + 3 * k
        cdef const double* a = self.places
        cdef double* square = self.places + 3 * n
        cdef const double* length = world.box.length
        cdef const double* inverse = world.box.inverse
        cdef double d, e, f, x0 = x[0], x1 = x[1], x2 = x[2]
        cdef double end_squared = self.task.end_squared
        cdef int32_t* partner = self.partners
        cdef int32_t own = self.member[k]
        # Whether all of them interact, so that none is asked.
        cdef bint all_do = near.excluded == NULL and not near.present[0] and not near.present[1]
        cdef Py_ssize_t i, j, m
        if self.task.kind == SOFT_SPHERE and not near.equal:
            end_squared = near.reach * near.reach
        if world.box.periodic:
            for i in range(n):
                d = a[i] - x0
                e = a[n + i] - x1
                f = a[2 * n + i] - x2
                d -= length[0] * nearest_whole(d * inverse[0])
                e -= length[1] * nearest_whole(e * inverse[1])
                f -= length[2] * nearest_whole(f * inverse[2])
                square[i] = d * d + e * e + f * f
        else:
            for i in range(n):
                d = a[i] - x0
                e = a[n + i] - x1
                f = a[2 * n + i] - x2
                square[i] = d * d + e * e + f * f
        m = number(square, <int> n, end_squared, 0, -1, partner)
        for i in range(m):
            partner[i] = self.neighbors.found[partner[i]]
        if m <= SHORT_ROW:
            sort_short(near.id, partner, <int> m)
        else:
            sort_by_id(near.id, partner, m)
        for i in range(m):
            if all_do or self.neighbors.interact(own, near.member[partner[i]]):
                self.add_pair(
                    world, near, own, near.member[partner[i]], x, near.now + 4 * <Py_ssize_t> partner[i], out)
        for j in range(k):
            if self.member[j] >= 0 and self.neighbors.interact(own, self.member[j]):
                self.add_pair(world, near, own, self.member[j], x, self.moved.x + 3 * j, out)

    cdef bint tells_beads(self) noexcept nogil:
        return self.sites.are_beads and self.task.kind != SCREENED

    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef Py_ssize_t own = self.neighbors.member_at[place] if place < self.neighbors.member_at.shape[0] else -1
        cdef Py_ssize_t k, n
        cdef int32_t other
        cdef int fault = 0
        out[0] = 0.0
        if own < 0:
            return 0
        if self.neighbors.behind(world) < 0:
            fault = self.sites.gather(world)
            if fault == 0:
                fault = self.neighbors.locate(world, &self.sites.now)
            if fault != 0:
                return fault
        n = self.neighbors.partners(world, place)
        if n < 0:
            return record_fault(world, OUT_OF_MEMORY, place, -1)
        for k in range(n):
            other = self.neighbors.found[k]
            self.add_pair(world, near, own, self.neighbors.member_at[other], world.x + 3 * place,
                          world.x + 3 * <Py_ssize_t> other, out)
        return fault

    cdef void add_pair(
        self, World* world, const Neighbors* near, Py_ssize_t own, Py_ssize_t other, const double* x, const double* y,
        double* out,
    ) noexcept nogil:
        """Add the energy of the sites of two members, at places of their own."""
        cdef double d[3]
        cdef double rr, radii = self.task.b, end_squared = self.task.end_squared
        displacement(&world.box, x, y, d)
        rr = dot(d, d)
        if self.task.kind == SOFT_SPHERE and not near.equal:
            radii = near.radius[own] + near.radius[other]
            end_squared = radii * radii
        if rr >= end_squared:
            return
        self.examined += 1
        # What is not a number is found where gains are added up.
        out[0] += self.pair_energy(world, own, other, radii, rr)

    cdef double pair_energy(
        self, World* world, Py_ssize_t own, Py_ssize_t other, double radii, double rr,
    ) noexcept nogil:
        """U of two members at a squared distance within range, as `run` has it."""
        cdef const PairTask* t = &self.task
        cdef double u
        if t.kind == SOFT_SPHERE or t.kind == WCA:
            pull(t.kind, t.a, radii, t.end, rr, &u)
        elif (t.kind == LENNARD_JONES or t.kind == RICKER) and t.p[SWITCH] >= t.p[END]:
            pull(t.kind, t.a, t.b, t.end, rr, &u)
        else:
            slope(t.kind, t.p, rr, &u)
        return u

    # Higher derivatives: members in ascending row, so that no result depends on the age of the list. ---------------

    cdef double radial(self, World* world, int32_t own, int32_t other, double* d, double* u) noexcept nogil:
        """d, r = |d|, and U with its derivatives in r, of the sites in two slots; r < 0: leave the pair out."""
        cdef const Neighbors* near = &self.neighbors.list
        cdef const double* me = near.now + 4 * <Py_ssize_t> own
        cdef const double* you = near.now + 4 * <Py_ssize_t> other
        cdef double r, radii = 0.0, end_squared = self.task.end_squared
        # Each pair once: it is in the rows of both its ends.
        if near.row[own] > near.row[other]:
            return -1.0
        if self.task.kind == SOFT_SPHERE:
            radii = me[3] + you[3]
            end_squared = radii * radii
        displacement(&world.box, me, you, d)
        r = dot(d, d)
        if r >= end_squared:
            return -1.0
        r = sqrt(r)
        self.of_pair(world, near.member[own], near.member[other], radii, r, u)
        return r

    cdef void of_pair(
        self, World* world, Py_ssize_t own, Py_ssize_t other, double radii, double r, double* u,
    ) noexcept nogil:
        """U with its derivatives of two members at the distance r."""
        cdef double p[2]
        if self.task.kind == SOFT_SPHERE:
            p[0] = self.p[0]
            p[1] = radii
            evaluate(SOFT_SPHERE, p, r, 3, u)
        else:
            evaluate(self.task.kind, self.task.p, r, 3, u)

    cdef int higher(self, World* world, const Derivative* wanted) noexcept nogil:
        cdef const Neighbors* near = &self.neighbors.list
        cdef double d[3]
        cdef double u[4]
        cdef double r
        cdef Py_ssize_t m
        cdef int32_t own, other
        cdef int k, fault
        if near.n_members == 0:
            return 0
        fault = self.look(world)
        if fault == 0:
            fault = self.neighbors.index(world)
        for m in range(near.n_members if fault == 0 else 0):
            own = near.slot_of[m]
            for k in range(near.count[own] if own >= 0 else 0):
                other = near.row_of[m][k]
                r = self.radial(world, own, other, d, u)
                if fault == 0 and r >= 0.0:
                    fault = derive(wanted, self.sites, near.row[own], near.row[other], u, d, r, False)
        return fault


cdef class WrittenPairs(Pairs):
    """The same of an energy that is a function of r and of numbers of both ends, given as programs of expressions.pxd.

    Parameters
    ----------
    cutoff : float
        Where it ends.
    of_first, of_second : (n_members, ...) float
        The numbers of members where they are the first, and the second, of two; they follow r in the registers.
    by_group : bool
        Whether the first of two is that in group A; else it is the one with the lower number.
    programs : two
        The energy and its derivative; and up to the third. Each of instructions, constants, outputs, and number of
        registers.
    threads : int
    """
    cdef Compiled first, third

    def __init__(self, str name, double cutoff, const double[:, ::1] of_first, const double[:, ::1] of_second,
                 bint by_group, programs, int threads, NeighborList neighbors, SiteTable sites):
        cdef PairTask* t = &self.task
        Pairs.__init__(self, name, WRITTEN, [0.0, 0.0, cutoff, np.inf, 0.0], neighbors, sites)
        self.first = Compiled(*programs[0], threads)
        self.third = Compiled(*programs[1], 1)
        t.function = &self.first.function
        t.registers = &self.first.registers[0, 0]
        t.stride = self.first.registers.shape[1]
        t.of_first = table(self.arrays, of_first)
        t.of_second = table(self.arrays, of_second)
        t.n_first = of_first.shape[1]
        t.n_second = of_second.shape[1]
        t.by_group = by_group

    cdef double pair_energy(
        self, World* world, Py_ssize_t own, Py_ssize_t other, double radii, double rr,
    ) noexcept nogil:
        cdef const Function* f = &self.first.function
        cdef bint first = _is_first(&self.task, world, own, other)
        cdef int lane
        for lane in range(WIDTH):
            _fetch(&self.task, f, self.task.registers, lane, own if first else other, other if first else own, sqrt(rr))
        run_program(f, self.task.registers)
        return self.task.registers[WIDTH * f.outputs[0]]

    cdef void of_pair(
        self, World* world, Py_ssize_t own, Py_ssize_t other, double radii, double r, double* u,
    ) noexcept nogil:
        cdef const Function* f = &self.third.function
        cdef double* registers = &self.third.registers[0, 0]
        cdef bint first = _is_first(&self.task, world, own, other)
        cdef int lane, k
        for lane in range(WIDTH):
            _fetch(&self.task, f, registers, lane, own if first else other, other if first else own, r)
        run_program(f, registers)
        for k in range(4):
            u[k] = registers[WIDTH * f.outputs[k]]


cdef class ScreenedCharges(Pairs):
    """Charges with their screens, k q1 q2 erfc(a r)/r less its value at the cutoff: pairs within range of Ewald's sum.
    Derivatives beyond the first are not offered.

    Parameters
    ----------
    constant, splitting, cutoff : float
        k; a, 1/nm.
    charge : (n_members,) float
    """
    def __init__(self, str name, double constant, double splitting, double cutoff, const double[:, ::1] charge,
                 NeighborList neighbors, SiteTable sites):
        cdef double u[2]
        Pairs.__init__(self, name, SCREENED, [constant, splitting, cutoff, np.inf, 0.0], neighbors, sites)
        self.derivatives = 1
        self.task.of_first = table(self.arrays, charge)
        self.task.n_first = 1
        # What it would be at the end.
        _screened(&self.task, cutoff * cutoff, 1.0, u)
        self.task.end = u[0] / constant

    cdef double pair_energy(
        self, World* world, Py_ssize_t own, Py_ssize_t other, double radii, double rr,
    ) noexcept nogil:
        cdef double u
        _screened(&self.task, rr, self.task.of_first[own] * self.task.of_first[other], &u)
        return u
