"""Molecules of two heads, of which one or both hold places on lattices, and heads that walk along these.

A molecule is in its pool (U), holds a place by one head (S), or two places by both (D), with a link between them:

    U -> S    k_h C                                    S -> U    off_h
    S -> D    off_h / (K_h V_0) exp(-(1 - s) U / kT)   D -> S    off_h exp(s U / kT)

for head h = 1, 2, with k_h = off_h / K_h, and V_0 the integral of exp(-U/kT) over the vector between the two ends. The
weights C/K_h and C/(K_1 K_2) exp(-U/kT) / V_0 keep all of them in balance, whatever s is. A place has room for one
head. D is a link: links and their bounds are those of link_binding.pyx. A molecule in S tries places of its other
head, any of all, each at the rate of a relaxed link. Few molecules are in S, and most places are out of reach: that
costs less than a list of the pairs of places. Where in a letter there would be more than PER_PLACE such attempts for
each place, pairs are those of link_binding.pyx, tried at the larger rate of both heads, and refused unless one end is
that of a head alone, and the other one has room.

Or one end of a link is carried by a site, and the other one is a head that binds places: a link binds and lets go as
there, and no molecule is in a pool.

A head steps to the next place ahead or behind, where that is free, at

    forth   k exp(-q dU/kT)          back   k exp(-[b e + (1 - q) dU]/kT),      k = v / {d [1 - exp(-b e/kT)]}

with the gain dU of the link's energy, and e the stall force times the step d: rates are in the ratio
exp[(b e - dU)/kT], so that a load of b e/d stalls it, whatever the link is. Without e it slides, at k exp(-dU/2kT)
either way, which keeps the weights above. Of a link of stiffness c, k is larger by
exp[q (1 - q) c d^2 / 2kT], which is what thermal motion of its other end takes.

Each end may be a bundle of N heads, b of which hold: one holds on at k_a (N - b), and lets go at off_h b; the last one
as above.

Laws by name step forth alone, at a velocity by the force of the moment along the filament.

State: those of link_binding.pyx, and of each site which head is there and how many of its bundle hold.
"""
import numpy as np

from libc.math cimport INFINITY, fmax, fmin, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy, memmove

from medyanpy._kernels.core.arrays cimport table, vector
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.core.sites cimport SiteTable, where
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.jump cimport Draws, draw_two
from medyanpy._kernels.jumps.link_binding cimport (
    BIND, UNBIND, LinkBinding, Rule, Walk, distance_of, energy_of, off_rate_at, slope_of)
from medyanpy._kernels.jumps.pools cimport PoolCounts

cdef double LARGEST_EXPONENT = 230.0
# Attempts of molecules in S per place and letter, up to which pairs need no list: it takes that long to make.
cdef double PER_PLACE = 1.0

cdef enum:
    # Events, after those of links.
    ATTACH = 2
    DETACH = 3
    FORTH = 4
    BACK = 5
    OFF_END = 6
    HOLD_ON = 7
    LET_GO = 8

cdef enum:
    # Velocities by the force of the moment.
    NO_LAW = 0
    LINEAR = 1
    HILL = 2


# What may happen at one end of a link: the rates of letting go, and of going forth and back.
cdef struct Ways:
    double off
    double[2] walk
    double[2] gain            # pN nm, of the energy


cdef class Heads(LinkBinding):
    """The jump of one context.

    Parameters
    ----------
    name, kT, driven, every, sites, on_points, label, most_pairs
        See `LinkBinding`.
    groups : (n,) int32
        1: head 1 may hold the site, 2: head 2, 3: either; where a site carries it, 2 are those that carry.
    places : two int32 arrays
        The sites of each head.
    pool : PoolCounts or None
        None: sites of the group 2 carry links, whose other ends are heads 1.
    species : int
    most : int
        Heads of a bundle.
    beside : (n, 2) int32
        Sites ahead and behind, -1: none; -2, twice: what is there does not walk.
    """
    cdef const int32_t* groups
    cdef const int32_t* places[2]
    cdef Py_ssize_t n_places[2]
    cdef readonly PoolCounts molecules
    cdef bint carried
    cdef Py_ssize_t species
    cdef int most
    # State: 1 or 2, which head is at a site, 0 none; and how many of its bundle hold.
    cdef int32_t[::1] head
    cdef int32_t[::1] holding
    # Molecules that hold with one head.
    cdef int64_t[::1] alone
    cdef double on[2]         # nm^3/s
    cdef double off[2]        # 1/s
    cdef double closing[2]    # 1/s: of the second head, at U = 0
    cdef double reaching      # 1/s: of all its places, the larger of both heads
    # Sites of the molecules in S, ascending; whether they are known.
    cdef int32_t[::1] lone
    cdef bint lone_known
    cdef double hold_on       # 1/s
    cdef double[:, ::1] rates  # (most + 1, 2) forth and back, of heads that no link pulls
    cdef double correction    # of those that one pulls
    cdef readonly bint walking
    cdef double stall         # e, pN nm
    cdef double fuel          # pN nm, of a step
    cdef double step          # nm
    cdef int law
    cdef double velocity      # nm/s
    cdef double stall_force   # pN
    cdef double alpha

    def __init__(self, str name, double kT, bint driven, int every, SiteTable sites, bint on_points, label,
                 double most_pairs, groups, places, PoolCounts pool, Py_ssize_t species, int most, beside):
        n = sites.rows.n
        LinkBinding.__init__(
            self, name, kT, driven, every, sites, on_points, label, np.zeros(n + 1, np.int32), np.zeros(0, np.int32),
            1, -1, most_pairs)
        cdef int k
        self.groups = vector[int32_t](self.held, groups)
        for k in range(2):
            self.places[k] = vector[int32_t](self.held, places[k])
            self.n_places[k] = len(places[k])
        self.molecules = pool
        self.carried = pool is None
        self.species = species
        self.most = most
        self.head, self.holding = np.zeros((2, n), np.int32)
        self.alone = np.zeros(1, np.int64)
        self.lone = np.zeros(n, np.int32)
        self.rates = np.zeros((most + 1, 2))
        self.task.held = vector[int32_t](self.held, self.holding)
        self.task.head = vector[int32_t](self.held, self.head)
        self.task.walk.beside = table[int32_t](self.held, beside)
        self.law = NO_LAW

    def set_heads(self, on, off, closing, double hold_on):
        """Rates; see above. To be set before those of `set_rule`."""
        cdef double all_off = off[0] if self.carried else off[0] + off[1]
        cdef int k
        for k in range(2):
            self.on[k], self.off[k], self.closing[k] = on[k], off[k], closing[k]
            if self.task.off_part[k] != off[k] / all_off:
                self.task.off_part[k] = off[k] / all_off
                # Bounds of links are others: `set_rule` is to compute them again.
                self.neighbors = None
        self.hold_on = hold_on
        self.reaching = max(self.closing[k] * self.n_places[k] for k in range(2))

    def set_walk(self, double kT, double step, double velocity, double stall_force, double share, double stiffness,
                 double fuel, bint leaves, int law, double alpha):
        """Let heads walk: step (nm), velocity (nm/s), share q of the gain in energy. To be set before `set_rule`.

        Without a stall force they slide: the velocity over the step is k, either way.
        """
        cdef double e = stall_force * step / kT
        cdef Walk before
        cdef int b
        # Byte by byte, what is between its numbers included.
        memcpy(&before, &self.task.walk, sizeof(Walk))
        self.walking = self.task.walks = True
        self.step, self.velocity, self.stall_force, self.alpha = step, velocity, stall_force, alpha
        self.stall, self.fuel, self.law = stall_force * step, fuel, law
        for b in range(1, self.most + 1):
            self.rates[b, 0] = velocity / step
            self.rates[b, 1] = 0.0
            if law == NO_LAW:
                if e > 0.0:
                    self.rates[b, 0] /= 1.0 - exp_(-fmin(b * e, LARGEST_EXPONENT))
                self.rates[b, 1] = self.rates[b, 0] * exp_(-fmin(b * e, LARGEST_EXPONENT))
        self.correction = 1.0
        if law == NO_LAW:
            self.correction = exp_(fmin(0.5 * share * (1.0 - share) * stiffness * step * step / kT, LARGEST_EXPONENT))
        # No bundle goes faster than one head.
        self.task.walk.forth = self.rates[1, 0] * self.correction
        self.task.walk.back = self.rates[1, 1] * self.correction
        self.task.walk.ahead_share = 0.0 if law != NO_LAW else share / kT
        self.task.walk.behind_share = (1.0 - share) / kT
        self.task.walk.leaves = leaves
        if memcmp(&before, &self.task.walk, sizeof(Walk)) != 0:
            # Bounds of links are others: `set_rule` is to compute them again.
            self.neighbors = None

    # For Python -----------------------------------------------------------------------------------------------------

    def arrays(self):
        return {**super().arrays(), "head": np.asarray(self.head), "holding": np.asarray(self.holding),
                "alone": np.asarray(self.alone)}

    def put_head(self, Py_ssize_t i, int head, int holding, Py_ssize_t other=-1):
        """Put a molecule with a head at a site, at the start; and the other head, or what carries it, at another. Why
        not, or an empty string."""
        cdef Py_ssize_t s
        if self.carried:
            return self.bind(i, other)
        for s in (i, other):
            if s >= 0 and self.is_full(s):
                return "there is a head at that place"
        self.head[i], self.holding[i] = head, holding
        self.lone_known = False
        self.alone[0] += 1
        if other >= 0:
            why = self.bind(i, other)
            if why:
                return why
        return ""

    def give_back(self, int64_t n):
        """Molecules whose places are gone go to the pool: why not, or an empty string."""
        if n > 0 and self.molecules.n_cells > 1:
            return "it is not known to which cell of the pool molecules go whose places are removed"
        self.molecules.put(0, self.species, n)
        return ""

    # The state ------------------------------------------------------------------------------------------------------

    cdef bint is_alone(self, Py_ssize_t i) noexcept nogil:
        """Whether a head is here whose other one holds nothing."""
        return self.head[i] != 0 and self.end[i] == i

    cdef bint has_no_room(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef bint one, other
        if self.carried:
            return self.is_full(i) or self.is_full(j)
        one, other = self.is_alone(i), self.is_alone(j)
        if one == other or self.is_full(j if one else i):
            return True
        return self.groups[j if one else i] & (3 - self.head[i if one else j]) == 0

    cdef double share_of(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        if self.carried:
            return 1.0
        return self.closing[2 - self.head[i if self.is_alone(i) else j]] / self.task.rule.k_on

    cdef void join(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t new = j if self.head[i] != 0 else i
        if self.carried:
            # Which of the two is a place.
            new = i if self.groups[i] == 1 else j
            self.head[new] = 1
        else:
            self.head[new] = 3 - self.head[j if new == i else i]
            self.less_alone(j if new == i else i)
        self.holding[new] = max(1, self.holding[new])
        LinkBinding.join(self, i, j)

    cdef void compute_anew(self) noexcept nogil:
        self.lone_known = False
        LinkBinding.compute_anew(self)

    cdef int bind_pair(self, World* world, double t, Py_ssize_t i, Py_ssize_t j, double energy, double there,
                       double back) noexcept nogil:
        cdef Py_ssize_t new = j if self.is_alone(i) else i
        cdef double ratio
        cdef int h
        if self.carried or self.task.rule.driven:
            return LinkBinding.bind_pair(self, world, t, i, j, energy, there, back)
        self.join(i, j)
        self.changed_at(world, i, j)
        h = self.head[new] - 1
        ratio = self.closing[h] / self.off[h]
        return self.happened(world, t, BIND, i, j, energy, 0.0, self.kT * log_(ratio))

    cdef void know_alone(self) noexcept nogil:
        """Sites of the molecules in S."""
        cdef Py_ssize_t i, k = 0
        if not self.lone_known:
            for i in range(self.task.n):
                if self.is_alone(i):
                    self.lone[k] = <int32_t> i
                    k += 1
            self.lone_known = True

    cdef int32_t* from_alone(self, Py_ssize_t i) noexcept nogil:
        """Of these sites the first that does not come before a site, in the list."""
        cdef Py_ssize_t low = 0, high = self.alone[0], middle
        while low < high:
            middle = (low + high) // 2
            if self.lone[middle] < i:
                low = middle + 1
            else:
                high = middle
        return &self.lone[0] + low

    cdef void more_alone(self, Py_ssize_t i) noexcept nogil:
        """One more molecule in S."""
        cdef int32_t* at
        if self.lone_known:
            at = self.from_alone(i)
            memmove(at + 1, at, (&self.lone[0] + self.alone[0] - at) * sizeof(int32_t))
            at[0] = <int32_t> i
        self.alone[0] += 1

    cdef void less_alone(self, Py_ssize_t i) noexcept nogil:
        """The one of a site no more."""
        cdef int32_t* at
        self.alone[0] -= 1
        if self.lone_known:
            at = self.from_alone(i)
            memmove(at, at + 1, (&self.lone[0] + self.alone[0] - at) * sizeof(int32_t))

    cdef double most_on(self, double h) noexcept nogil:
        self.needs_pairs = self.carried or self.alone[0] * self.reaching * h > PER_PLACE * self.task.n
        return LinkBinding.most_on(self, h) if self.needs_pairs else 0.0

    cdef double other_rate(self, World* world) noexcept nogil:
        return self.rate_of(world, 0) + self.rate_of(world, 1) + self.rate_of(world, 2) + self.rate_of(world, 3) \
            + self.rate_of(world, 4) + self.rate_of(world, 5)

    cdef double rate_of(self, World* world, int kind) noexcept nogil:
        """Attempts of one kind in a second: heads 1 and 2 out of the pool; of those alone to let go and to step; of all
        sites to change how many of a bundle hold; of those alone to take hold."""
        cdef Py_ssize_t n = self.task.n
        if kind < 2:
            if self.carried:
                return 0.0
            return self.n_places[kind] * self.on[kind] * self.molecules.most(self.species, world.written) \
                / self.molecules.volume
        if kind == 4:
            if self.most == 1 or self.alone[0] + self.numbers[0] == 0:
                return 0.0
            return n * self.most * fmax(self.hold_on, fmax(self.off[0], self.off[1]))
        if self.alone[0] == 0:
            return 0.0
        if kind == 5:
            return 0.0 if self.needs_pairs else self.alone[0] * self.reaching
        if kind == 2:
            return self.alone[0] * fmax(self.off[0], self.off[1])
        return self.alone[0] * (self.rates[1, 0] + self.rates[1, 1]) if self.walking else 0.0

    cdef int attempt_other(self, World* world, double x, double t, Draws* draws) noexcept nogil:
        cdef double rate = 0.0, each
        cdef Py_ssize_t i, n
        cdef int kind = 0, last = -1
        for kind in range(6):
            rate = self.rate_of(world, kind)
            if rate > 0.0:
                last = kind
                if x < rate:
                    break
                x -= rate
        if last < 0:
            return 0
        rate = self.rate_of(world, last)
        if last == 5:
            return self.close(world, t, x / rate, draws)
        n = self.n_places[last] if last < 2 else self.task.n if last == 4 else self.alone[0]
        each = rate / n
        # Sums round: past the end it is the last.
        i = min(<Py_ssize_t> (x / each), n - 1)
        x = fmin(fmax(x - i * each, 0.0), each)
        if last < 2:
            return self.attach(world, t, self.places[last][i], last, draws)
        if last == 4:
            return self.change_bundle(world, t, i, x) if self.head[i] != 0 else 0
        self.know_alone()
        i = self.lone[i]
        if last == 2:
            if self.holding[i] > 1 or not x < self.off[self.head[i] - 1]:
                return 0
            return self.detach(world, t, i, DETACH)
        return self.walk_alone(world, t, i, x)

    cdef int close(self, World* world, double t, double x, Draws* draws) noexcept nogil:
        """The molecule in S at the share x of them tries a place of its other head."""
        cdef double u[2]
        cdef Py_ssize_t i, j, k
        cdef int h
        self.know_alone()
        k = self.alone[0]
        i = self.lone[min(<Py_ssize_t> (x * k), k - 1)]
        h = 2 - self.head[i]
        draw_two(draws, u)
        if self.n_places[h] == 0:
            return 0
        j = self.places[h][min(<Py_ssize_t> (u[0] * self.n_places[h]), self.n_places[h] - 1)]
        return self.try_pair(
            world, t, min(i, j), max(i, j), u[1], self.task.rule.k_on * self.n_places[h] / self.reaching, 1.0)

    cdef Py_ssize_t cell_at(self, World* world, Py_ssize_t i) noexcept nogil:
        cdef double x[3]
        where(self.task.rows, world, i, x)
        return self.molecules.cell_of(x)

    cdef int attach(self, World* world, double t, Py_ssize_t i, int h, Draws* draws) noexcept nogil:
        """A molecule of the pool takes hold with head h, of 0 and 1."""
        cdef double u[2]
        cdef double amount
        cdef Py_ssize_t cell
        if self.is_full(i):
            return 0
        cell = self.cell_at(world, i)
        amount = self.molecules.amount(cell, self.species)
        if self.molecules.n_cells > 1:
            draw_two(draws, u)
            if not u[0] * self.molecules.most(self.species, world.written) < amount:
                return 0
        self.molecules.take(cell, self.species, 1)
        self.head[i] = h + 1
        self.holding[i] = 1
        self.more_alone(i)
        return self.happened(world, t, ATTACH, i if h == 0 else -1, i if h == 1 else -1, 0.0, 0.0,
                             self.affinity(h, amount))

    cdef double affinity(self, int h, double amount) noexcept nogil:
        """What drives a head out of a pool with so many, pN nm."""
        return self.kT * log_(self.on[h] * amount / (self.off[h] * self.molecules.volume))

    cdef int detach(self, World* world, double t, Py_ssize_t i, int kind) noexcept nogil:
        """The molecule of a head that is alone goes to the pool."""
        cdef int h = self.head[i] - 1
        cdef Py_ssize_t cell = self.cell_at(world, i)
        cdef double chemical = INFINITY
        self.molecules.put(cell, self.species, 1)
        if kind == DETACH:
            chemical = -self.affinity(h, self.molecules.amount(cell, self.species))
        self.head[i] = self.holding[i] = 0
        self.less_alone(i)
        return self.happened(world, t, kind, i if h == 0 else -1, i if h == 1 else -1, 0.0, 0.0, chemical)

    cdef int change_bundle(self, World* world, double t, Py_ssize_t i, double x) noexcept nogil:
        """One more head of a bundle holds, or one of several lets go."""
        cdef int b = self.holding[i], h = self.head[i] - 1
        cdef double less = b * self.off[h] if b > 1 else 0.0, more = (self.most - b) * self.hold_on
        cdef double chemical
        if x < less:
            self.hold_by(world, i, b - 1)
            chemical = self.kT * log_(b * self.off[h] / ((self.most - b + 1) * self.hold_on))
            return self.happened(world, t, LET_GO, i, -1, 0.0, 0.0, chemical)
        if x < less + more:
            self.hold_by(world, i, b + 1)
            chemical = self.kT * log_((self.most - b) * self.hold_on / ((b + 1) * self.off[h]))
            return self.happened(world, t, HOLD_ON, i, -1, 0.0, 0.0, chemical)
        return 0

    cdef void hold_by(self, World* world, Py_ssize_t i, int n) noexcept nogil:
        """So many of a bundle hold: one of its link may let go, or no more."""
        cdef bint matters = self.end[i] != i and min(n, <int> self.holding[i]) == 1
        self.holding[i] = n
        if matters:
            self.rate_at(world, i, self.other[i])

    # Walking --------------------------------------------------------------------------------------------------------

    cdef int walk_alone(self, World* world, double t, Py_ssize_t i, double x) noexcept nogil:
        """A head that no link pulls goes one way at which the sum of the rates passes x; or not."""
        cdef const double* rate = &self.rates[self.holding[i], 0]
        cdef int back = x >= rate[0]
        cdef int32_t next = self.task.walk.beside[2 * i + back]
        if not x < rate[0] + rate[1] or next == -2:
            return 0
        if next == -1 or not self.sites.is_here(next):
            return self.detach(world, t, i, OFF_END) if self.task.walk.leaves and not back else 0
        if self.is_full(next):
            return 0
        self.move_head(i, next)
        return self.stepped(world, t, i, next, back, 0.0)

    cdef void loosen(self, World* world, double t, Py_ssize_t i, double* energy) noexcept nogil:
        cdef int h = self.head[i] - 1
        cdef bint alone = self.is_alone(i)
        LinkBinding.loosen(self, world, t, i, energy)
        self.head[i] = self.holding[i] = 0
        self.lone_known = False
        if alone:
            self.molecules.put(self.cell_at(world, i), self.species, 1)
            self.alone[0] -= 1
            self.record(world, t, OFF_END, i if h == 0 else -1, i if h == 1 else -1, 0.0, 0.0, INFINITY)
        elif not self.carried:
            self.alone[0] += 1

    cdef void shift(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        LinkBinding.shift(self, i, j)
        self.lone_known = False
        if self.head[i] != 0:
            self.move_head(i, j)

    cdef void move_head(self, Py_ssize_t i, Py_ssize_t next) noexcept nogil:
        if self.is_alone(i):
            self.less_alone(i)
            self.more_alone(next)
        self.head[next], self.holding[next] = self.head[i], self.holding[i]
        self.head[i] = self.holding[i] = 0

    cdef int stepped(self, World* world, double t, Py_ssize_t i, Py_ssize_t next, int back,
                     double energy) noexcept nogil:
        cdef double fuel = INFINITY
        if self.law == NO_LAW:
            fuel = self.holding[next] * (-self.fuel if back else self.fuel) if self.fuel > 0.0 else 0.0
        return self.happened(world, t, BACK if back else FORTH, i, next, energy, 0.0, fuel)

    cdef double velocity_at(self, double load) noexcept nogil:
        """By a law with a name, nm/s."""
        if self.law == LINEAR:
            return self.velocity * fmin(fmax(1.0 - load / self.stall_force, 0.0), 1.0)
        load = fmax(load, 0.0)
        return self.velocity * fmax(self.stall_force - load, 0.0) / (self.stall_force + load / self.alpha)

    cdef void ways_of(self, World* world, Py_ssize_t i, Py_ssize_t other, double r, double energy,
                      Ways* ways) noexcept nogil:
        """What the end i of a link of this length may do."""
        cdef const Rule* rule = &self.task.rule
        cdef const int32_t* beside = self.task.walk.beside + 2 * i
        cdef double x[3]
        cdef double ahead[3]
        cdef double d[3]
        cdef double u, tension, load, share
        cdef int k, h = self.head[i] - 1
        ways.off = ways.walk[0] = ways.walk[1] = ways.gain[0] = ways.gain[1] = 0.0
        if h < 0:
            # It is carried.
            return
        if self.holding[i] <= 1:
            # off_rate_of is that of both heads.
            ways.off = off_rate_at(&self.task, i, r) * (self.off[h] / rule.k_off)
        if not self.walking:
            return
        for k in range(2):
            if beside[k] < 0 or not self.sites.is_here(beside[k]):
                if beside[k] != -2 and k == 0 and self.task.walk.leaves:
                    ways.walk[0] = self.rates[self.holding[i], 0]
                continue
            u = energy_of(rule, distance_of(&self.task, world, beside[k], other), &tension)
            ways.gain[k] = u - energy
            if self.law == NO_LAW:
                share = self.task.walk.behind_share if k else self.task.walk.ahead_share
                ways.walk[k] = self.rates[self.holding[i], k] * self.correction \
                    * exp_(fmin(-share * ways.gain[k], LARGEST_EXPONENT))
            elif k == 0:
                # The load is the pull of the link backwards.
                where(self.task.rows, world, i, x)
                where(self.task.rows, world, beside[k], ahead)
                displacement(&world.box, x, ahead, ahead)
                where(self.task.rows, world, other, d)
                displacement(&world.box, x, d, d)
                u = slope_of(rule, r) if self.task.mean == NULL else self.task.mean[i]
                load = -u * dot(ahead, d) / fmax(r * sqrt(dot(ahead, ahead)), 1e-300)
                ways.walk[0] = self.velocity_at(load) / self.step

    cdef int leave(self, World* world, double x, double t, Py_ssize_t slot) noexcept nogil:
        cdef Ways[2] ways
        cdef Py_ssize_t[2] ends = [slot, self.task.other[slot]]
        cdef double r = distance_of(&self.task, world, ends[0], ends[1])
        cdef double tension, total = 0.0, energy = energy_of(&self.task.rule, r, &tension)
        cdef int e, k
        for e in range(2):
            self.ways_of(world, ends[e], ends[1 - e], r, energy, &ways[e])
            total += ways[e].off + ways[e].walk[0] + ways[e].walk[1]
        if not total <= self.task.rate[slot]:
            return self.lost(world)
        for e in range(2):
            if x < ways[e].off:
                return self.drop(world, t, slot, ends[e], ends[1 - e], energy, UNBIND, r)
            x -= ways[e].off
            for k in range(2):
                if x < ways[e].walk[k]:
                    return self.walk_linked(world, t, slot, ends[e], ends[1 - e], k, energy, ways[e].gain[k], r)
                x -= ways[e].walk[k]
        return 0

    cdef int drop(self, World* world, double t, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t other, double energy,
                  int kind, double r) noexcept nogil:
        """The head at the end i of a link lets go."""
        cdef const Rule* rule = &self.task.rule
        cdef int h = self.head[i] - 1
        cdef double chemical = INFINITY, on
        if kind == UNBIND and rule.low <= r <= rule.high:
            on = rule.k_on * exp_(-fmin(rule.on_share * energy, LARGEST_EXPONENT))
            on *= 1.0 if self.carried else self.closing[h] / rule.k_on
            if on > 0.0:
                chemical = self.kT * log_(off_rate_at(&self.task, i, r) * (self.off[h] / rule.k_off) / on) - energy
        self.part(slot, slot)
        self.head[i] = self.holding[i] = 0
        if not self.carried:
            self.more_alone(other)
        self.changed_at(world, i, other)
        return self.happened(world, t, kind, min(i, other), max(i, other), -energy, 0.0, chemical)

    cdef int walk_linked(self, World* world, double t, Py_ssize_t slot, Py_ssize_t i, Py_ssize_t other, int back,
                         double energy, double gain, double r) noexcept nogil:
        """The head at the end i of a link goes forth or back, where there is room."""
        cdef int32_t next = self.task.walk.beside[2 * i + back]
        if next == -1 or not self.sites.is_here(next):
            return self.drop(world, t, slot, i, other, energy, OFF_END, r)
        if not self.may_step(i, other, next):
            return 0
        self.move_head(i, next)
        self.step_end(world, i, other, next)
        return self.stepped(world, t, i, next, back, gain)
