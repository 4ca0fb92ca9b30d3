"""Ends of filaments that take subunits from a pool, and give them back.

The end node moves along its link by the length of a subunit; directions and velocities of all nodes stay, and with them
kinetic energy, momentum and all constraints. With n subunits in the last link, and z(n) the integral of its joint,

    n -> n + 1    k_on C  min(1, exp(-dU/kT) z(n) / z(n + 1))
    n + 1 -> n    k_off   min(1, exp(-dU/kT) z(n + 1) / z(n))

with dU of all forces. In a constrained chain the last link has the measure l^2 du of its length l and direction u; the
weight 1/l^2 of the number of subunits cancels it, so that lengths are in no rate. z(n), 1 without a joint, is

    z = int exp(-E(theta)/kT) sqrt(1 - q cos^2 theta) sin theta d theta,   E = (k - p cos theta - s sin theta)/l

with l the mean length of the two links: free filaments have the weight (C k_on/k_off)^n however stiff they are and
wherever their nodes are. The root is what the joint has of the determinant of the constraints' metric:
q = w_1^2/(d (w_0 + w_1)), with the inverse masses w_0 of the end node and w_1 of the one before, and the last pivot d
of the rest of the chain, taken where that is straight. It is exact for two links; with the Fixman force, where q is 0,
for any number.

Where nodes come and go, the subunit that would be more than the most of the last link splits it: its end node goes
back to n_full subunits, and a new one comes at the least behind it, in a direction of the joint's own law exp(-E/kT).
The reverse, where the link before has n_full, merges both. Energies are then those of all forces but the new joint's
and the Fixman force; velocities of the filament are drawn again, tangent to its links. Without a Fixman force the law
of the joint has the root above, with the pivot d of the chain as it is, and its integral is a factor of the rate. So is
the ratio of the integrals Z of both chains over all directions, in place of those of one joint: each number of
subunits has the weight 1/Z.

A law that reads a force has exp(-f/F) in place of the energies, on the way there alone: f is the force that pushes an
end back along its link, by the energies of two places close to it, averaged over a time; see `GrowthLaw`.

Where both ends split and merge, n subunits can be divided among links in g(n) ways: the rates have g(n)/g(n + 1) in
place of the weight 1 of each, so that free filaments have the weight (C k_on/k_off)^n for all ways together.

Attempts come at bounded rates, each with draws of its own. C is that of the cell of the pool where the end of the
shorter of the two filaments is, both ways. See docs/theory/growth.md.
"""
import numpy as np

from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.capacity cimport Room
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.core.program cimport NO_ROOM, World, mark_grown
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.jumps.ageing cimport Ageing
from medyanpy._kernels.jumps.filament_ends cimport End, FilamentEnds, Joint, Place, log_integral
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.jumps.nucleation cimport aslant
from medyanpy._kernels.jumps.pools cimport PoolCounts
from medyanpy._kernels.jumps.trial cimport Trial, Weights

# How far from an end its energy is asked for, in rises.
cdef double APART = 1e-4
# How often a direction is drawn at most until it is kept.
cdef enum:
    TRIES = 200


def log_integral_of(double modulus, double straight, double bent, double length, double kT, double q):
    """For tests: the logarithm of z."""
    cdef Joint joint = Joint(modulus, straight, bent)
    return log_integral(&joint, length, kT, q)


# Of the links of a filament, from its far end on: the subunits of the first, how many there are, and the last pivot of
# their metric.
cdef struct Chain:
    int32_t first
    int32_t links
    double pivot


cdef class Polymerization(JumpOperation):
    """Growth of the ends of the filaments of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    ends : FilamentEnds
        n of them.
    which : (n,) int32
        For each the number of its q,
    shares : (m,) float
        among these.
    longest : int
        Most subunits of two successive links.
    rise : float, nm
        Of a subunit.
    least, most : int
        Subunits of the last link.
    pool : PoolCounts
    species : int
    n, momenta
        See `WorkSpace`.
    """
    cdef readonly FilamentEnds ends
    cdef const int32_t[::1] which
    # Where nodes come and go: of these the room, and the subunits of full links.
    cdef const int32_t[:, ::1] slots
    cdef Room room
    cdef int32_t full
    # By the subunits of a filament, the last for all above: logarithms of how many ways there are to divide them among
    # links, where both ends grow.
    cdef double[::1] ways
    cdef const double[::1] shares
    # (m, longest + 1) logarithms of z by the subunits of both links, nan where they are not known yet.
    cdef double[:, ::1] known
    cdef Py_ssize_t n_ends
    cdef double rise
    cdef int32_t least, most
    cdef public int32_t alone             # fewest of a link that is a filament by itself
    cdef PoolCounts pool
    cdef Py_ssize_t species
    cdef double on, off       # nm^3/s and 1/s
    cdef double affinity      # kT: what drives a subunit onto an end
    # Where subunits have states: these, the rate back of the outermost one by its state, and the highest, else `off`.
    cdef public Ageing ageing
    cdef double[::1] off_of
    cdef double most_off
    # Of a law that reads a force: F, pN, 0 without one; the time of its average, s; and the average of each end, pN.
    cdef double force
    cdef double average
    cdef double[::1] load
    cdef Joint joint
    cdef readonly bint metric          # whether q counts
    # Where nodes come and go and it does: `log_chains`.
    cdef const double[:, :, ::1] chains
    cdef readonly Weights weights
    cdef Trial trial
    cdef int32_t link         # of a change
    cdef int32_t subunits

    def __init__(self, str name, int every, FilamentEnds ends not None, const int32_t[::1] which not None,
                 const double[::1] shares not None, int longest, double rise, int least, int most,
                 PoolCounts pool not None, Py_ssize_t species, Py_ssize_t n, momenta):
        self.describe(name, NAN, False, every)
        self.ends = ends
        self.which = which
        self.shares = shares
        self.known = np.full((shares.shape[0], longest + 1), NAN)
        self.n_ends = ends.n
        self.rise = rise
        self.least = self.alone = least
        self.most = most
        self.pool = pool
        self.species = species
        self.joint = Joint(0.0, 0.0, 0.0)
        self.metric = False
        self.force = self.average = 0.0
        self.load = np.zeros(ends.n)
        self.ageing = None
        self.off_of = np.zeros(1)
        self.ways = np.zeros(1)
        self.slots = ends.slots
        self.room = ends.room
        self.weights = Weights(self, n, momenta)
        self.trial = Trial(1)
        self.trial.change.links = &self.link
        self.trial.change.subunits = &self.subunits

    def split(self, int full, double[::1] ways not None):
        """Let nodes come and go: a link has `full` subunits where another one begins behind it. `ways` (m,) are
        logarithms of the ways to divide 0 to m - 1 subunits among links; one 0 where there is one."""
        self.full = full
        self.ways = ways

    def set(self, double kT, bint driven, double on, double off, double affinity):
        """Take the rates, and what drives a subunit onto an end, kT, beyond energies and what laws do."""
        if not kT == self.kT:
            self.known[:, :] = NAN
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = self.most_off = off
        self.affinity = affinity

    def read_force(self, double force, double average):
        """Take rates from the force on an end, averaged over a time, and not from energies."""
        self.force = force
        self.average = average

    def arrays(self):
        own = {"load": np.asarray(self.load)} if self.force > 0.0 else {}
        return {**super().arrays(), **own}

    def age(self, double[::1] off not None):
        """Subunits have states, and these rates back, (n_states,) 1/s; the first is `off`."""
        self.off_of = off
        self.most_off = max(off)

    def bend(self, double modulus, double straight, double bent, bint metric):
        """Joints have these numbers, and the metric of constraints counts or not."""
        self.joint = Joint(modulus, straight, bent)
        self.metric = metric
        self.known[:, :] = NAN

    def weigh_chains(self, const double[:, :, ::1] chains not None):
        """Take the logarithms of integrals over all directions of a chain, by the subunits of the first link, the
        number of links and the subunits of the last."""
        self.chains = chains

    @property
    def bending_modulus(self):
        return self.joint.modulus

    def log_integrals(self, const int64_t[::1] both, const double[::1] shares, double kT):
        """The sum of the logarithms of z of joints whose links have so many subunits together."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(both.shape[0]):
            total += log_integral(&self.joint, 0.5 * self.rise * both[k], kT, shares[k] if self.metric else 0.0)
        return total

    def log_joint_of(self, Py_ssize_t k, int both):
        """For tests: the logarithm of z of the last joint of an end, with so many subunits in both links."""
        return self.log_of(k, both)

    @property
    def rate(self):
        """Attempts in a second, of all ends."""
        # Counts may have been written to since.
        self.pool.top_written = -1
        return self.n_ends * (self.on * self.pool.most(self.species, 0) / self.pool.volume + self.most_off)

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double on, each, t = 0.0
        cdef bint inside = False
        cdef int failed, fault = 0
        if self.force > 0.0:
            inside = True
            fault = self.weights.enter(world)
            if fault == 0:
                fault = self.measure(world, h)
        while fault == 0:
            on = self.on * self.pool.most(self.species, world.written) / self.pool.volume
            each = on + self.most_off
            if not wait(draws, each * self.n_ends, h, &t, u):
                break
            if not inside:
                inside = True
                fault = self.weights.enter(world)
            if fault == 0:
                self.ends.find(world)
                if self.ageing is not None:
                    self.ageing.of.follow(world)
                self.counts[0] += 1
                fault = self.attempt(world, t, u[1] * self.n_ends, on / each, draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int measure(self, World* world, double h) noexcept nogil:
        """Average the forces that push ends back."""
        cdef const End* end
        cdef const double* x
        cdef double d[3]
        cdef double energy, step = APART * self.rise, length, force
        cdef double share = 1.0 - exp_(-h / self.average) if self.average > 0.0 else 1.0
        cdef Py_ssize_t k
        cdef int c, way, fault = 0
        self.ends.find(world)
        for k in range(self.n_ends):
            end = self.ends.end(k)
            if end.node < 0:
                self.load[k] = 0.0
                continue
            x = world.x + 3 * <Py_ssize_t> end.node
            displacement(&world.box, world.x + 3 * <Py_ssize_t> end.before, x, d)
            length = sqrt(dot(d, d))
            force = 0.0
            for way in range(-1, 2, 2):
                self.trial.begin(1)
                self.trial.change.n_links = 0
                self.trial.places[0] = end.node
                for c in range(3):
                    self.trial.x[0, c] = x[c] + way * step * d[c] / length
                fault = self.weights.gain(world, &self.trial.change, &energy)
                if fault != 0:
                    return fault
                force += way * energy / (2.0 * step)
            if force - force == 0.0:
                self.load[k] += share * (force - self.load[k])
        return 0

    cdef int attempt(self, World* world, double t, double which, double share, Draws* draws) noexcept nogil:
        """Try the end of this number: its fraction is below `share` where a subunit is to come."""
        cdef Py_ssize_t k = min(<Py_ssize_t> which, self.n_ends - 1)
        cdef const End* end = self.ends.end(k)
        cdef bint grows = which - k < share
        cdef int32_t now, then
        cdef const double* x
        cdef double d[3]
        cdef double u[2]
        cdef double most = 1.0, excess, energy = 0.0
        cdef Chain chain
        cdef Py_ssize_t cell
        cdef int c, fault
        if end.node < 0 or self.ends.caps[end.node] != 0:
            return 0
        if not grows and self.ends.is_blocked(self.ends.place(k).filament, world.material[end.node]):
            return 0
        now = world.subunits[end.link]
        then = now + 1 if grows else now - 1
        x = world.x + 3 * <Py_ssize_t> end.node
        if then < (self.least if end.inner >= 0 else self.alone) or then > self.most:
            if self.slots is None or (not grows and (end.inner < 0 or world.subunits[end.inner] != self.full)):
                return 0
            return self.change_chain(world, t, k, grows, draws)
        self.trial.begin(1)
        self.trial.places[0] = end.node
        displacement(&world.box, world.x + 3 * <Py_ssize_t> end.before, x, d)
        for c in range(3):
            self.trial.x[0, c] = x[c] + (then - now) * d[c] / now
        cell = self.pool.cell_of(x if grows else &self.trial.x[0, 0])
        if grows:
            most = self.pool.amount(cell, self.species) / self.pool.most(self.species, world.written)
        elif self.ageing is not None:
            most = self.share_off(k)
        draw_two(draws, u)
        if not u[0] < most:
            return 0
        self.link = end.link
        self.subunits = then
        self.trial.change.n_links = 1
        fault = self.weights.gain(world, &self.trial.change, &energy)
        if fault != 0 or energy == INFINITY:
            return fault
        excess = energy / self.kT
        if end.inner >= 0 and not self.counts_chains():
            excess += self.log_joint(world, end, k, then) - self.log_joint(world, end, k, now)
        elif end.inner >= 0:
            self.follow(world, k, 0, &chain)
            excess += self.log_chain(chain.first, chain.links, then) - self.log_chain(chain.first, chain.links, now)
        excess += self.log_ways(world, k, then - now)
        if self.force > 0.0:
            excess = self.hindrance(k, grows)
        if excess > 0.0 and not u[0] < most * exp_(-excess):
            return 0
        fault = self.weights.make(world, &self.trial.change)
        if fault != 0:
            return fault
        return self.book(world, t, k, grows, cell, end.node, energy, 0.0)

    cdef bint counts_chains(self) noexcept nogil:
        """Whether numbers of subunits have weights by the metric of the whole chain."""
        return self.metric and self.slots is not None

    cdef void follow(self, World* world, Py_ssize_t k, int within, Chain* out) noexcept nogil:
        """Follow a chain from its far end to an end, or to so many links within it."""
        cdef const Place* one = self.ends.place(k)
        cdef const int32_t* slot = &self.slots[one.filament, 0]
        cdef Py_ssize_t width = self.slots.shape[1], at = one.at, last = one.at - within * one.step
        cdef double d[3]
        cdef double before[3]
        cdef double along
        while 0 <= at - one.step < width and self.room.alive[slot[at - one.step]]:
            at -= one.step
        out.first = world.subunits[slot[at] if one.step > 0 else slot[at + one.step]]
        out.links = 0
        out.pivot = 2.0
        while at != last:
            displacement(&world.box, world.x + 3 * <Py_ssize_t> slot[at],
                         world.x + 3 * <Py_ssize_t> slot[at + one.step], d)
            if out.links > 0:
                along = dot(before, d)
                out.pivot = 2.0 - along * along / (dot(before, before) * dot(d, d) * out.pivot)
            before[0], before[1], before[2] = d[0], d[1], d[2]
            out.links += 1
            at += one.step

    cdef double log_chain(self, int32_t first, int32_t links, int32_t last) noexcept nogil:
        """The logarithm of the integral over all directions; of one link 0."""
        cdef int32_t most = <int32_t> self.chains.shape[0] - 1
        return self.chains[min(first, most), links, min(last, most)]

    cdef double log_split(self, const Chain* chain) noexcept nogil:
        """Of such a chain, as long as it can be before it splits: the logarithm of its integral and that of the new
        joint, with its pivot, over the integral of the chain that is split."""
        cdef int32_t first = self.full if chain.links == 1 else chain.first
        cdef double joint = log_integral(
            &self.joint, 0.5 * self.rise * (self.full + self.least), self.kT, 0.5 / chain.pivot)
        return joint + self.log_chain(chain.first, chain.links, self.most) \
            - self.log_chain(first, chain.links + 1, self.least)

    cdef double log_ways(self, World* world, Py_ssize_t k, int change) noexcept nogil:
        """By how much the logarithm of the ways to divide the subunits of a filament among links grows."""
        cdef int64_t n, most = self.ways.shape[0] - 1
        if most == 0:
            return 0.0
        n = self.ends.subunits_of(world, self.ends.place(k).filament)
        return self.ways[min(n + change, most)] - self.ways[min(n, most)]

    cdef double hindrance(self, Py_ssize_t k, bint grows) noexcept nogil:
        """By a law that reads a force: minus the logarithm of the factor of a rate."""
        return max(0.0, self.load[k]) / self.force if grows else 0.0

    cdef double share_off(self, Py_ssize_t k) noexcept nogil:
        """The share of the highest rate back that the outermost subunit of an end has."""
        cdef const Place* one = self.ends.place(k)
        return self.off_of[self.ageing.of.at_end(one.filament, one.step > 0)] / self.most_off

    cdef int book(self, World* world, double t, Py_ssize_t k, bint grows, Py_ssize_t cell, Py_ssize_t node,
                  double energy, double kinetic) noexcept nogil:
        """A subunit has come or gone."""
        cdef const Place* one = self.ends.place(k)
        cdef double chemical = 0.0, affinity = 0.0, own
        cdef bint aged = False
        cdef int n_gone = 0
        if not grows:
            # Of the place that the end has left.
            n_gone = self.ends.let_go(world, self.start, t, one.filament, world.material[node] + one.step, &energy)
        if self.ageing is not None:
            if grows:
                self.ageing.of.come(one.filament, one.step > 0)
            else:
                aged = self.ageing.of.at_end(one.filament, one.step > 0) != 0
                self.ageing.of.go(one.filament, one.step > 0)
        if not grows:
            self.pool.put(cell, self.species, 1)
        if self.driven:
            chemical = affinity = INFINITY
            # Subunits come in the first state only.
            if self.on > 0.0 and self.off > 0.0 and not aged and n_gone == 0:
                # Of the concentration with the subunit in the pool, whichever way it goes.
                chemical = self.kT * log_(
                    self.on * self.pool.amount(cell, self.species) / (self.off * self.pool.volume))
                affinity = self.affinity
                if self.force > 0.0:
                    # Rates do not know what is gained, so that it drives.
                    own = self.hindrance(k, True)
                    chemical -= self.kT * own
                    affinity -= own
                if not grows:
                    chemical, affinity = -chemical, -affinity
                if self.force > 0.0:
                    chemical += energy
                    affinity += energy / self.kT
        if grows:
            self.pool.take(cell, self.species, 1)
        return self.happened_by(
            world, t, 0 if grows else 1, world.bead[node], -1, energy + kinetic, kinetic, chemical, affinity)

    cdef double log_joint(self, World* world, const End* end, Py_ssize_t k, int32_t subunits) noexcept nogil:
        """The logarithm of z with so many subunits in the last link."""
        return self.log_of(k, world.subunits[end.inner] + subunits)

    cdef double log_of(self, Py_ssize_t k, int32_t both) noexcept nogil:
        """The same of so many in both links of a joint."""
        cdef int32_t which = self.which[k]
        cdef double found = self.known[which, both] if both < self.known.shape[1] else NAN
        if not found == found:
            found = log_integral(
                &self.joint, 0.5 * self.rise * both, self.kT, self.shares[which] if self.metric else 0.0)
            if both < self.known.shape[1]:
                self.known[which, both] = found
        return found

    cdef int change_chain(self, World* world, double t, Py_ssize_t k, bint splits, Draws* draws) noexcept nogil:
        """Split the last link, or merge the last two.

        The node `stays` moves along its link from `far`; beyond it `other` comes or goes.
        """
        cdef const Place* one = self.ends.place(k)
        cdef const int32_t* slot = &self.slots[one.filament, 0]
        cdef Py_ssize_t at = one.at if splits else one.at - one.step
        cdef Py_ssize_t width = self.slots.shape[1], beyond = at - 2 * one.step
        cdef Py_ssize_t stays = slot[at], far = slot[at - one.step], other, link, outer, cell
        cdef int32_t now = self.most if splits else self.full
        cdef int32_t then = self.full if splits else self.most
        cdef double u[2]
        cdef double d[3]
        cdef double x[3]
        cdef double before[3]
        cdef double out[3]
        cdef double still[3]
        cdef double v[3]
        cdef double most = 1.0, length, cosine = 1.0, excess, kinetic, every = 0.0, counted = 0.0, chance
        cdef double every_before = 0.0, counted_before = 0.0, ways
        cdef double bending = self.joint.modulus / (0.5 * self.rise * (self.full + self.least))
        cdef double* there = world.x + 3 * stays
        cdef int32_t change[2]
        cdef int64_t kept = -1
        cdef Chain chain
        cdef int c, fault
        if splits and not 0 <= at + one.step < width:
            if not self.ends.shift(world, one.filament, one.step):
                world.fault.bead = stays
                return NO_ROOM
            self.ends.find(world)
            return self.change_chain(world, t, k, splits, draws)
        other = slot[at + one.step]
        # A link is counted at the node from which it leads on.
        link, outer = (far, stays) if one.step > 0 else (stays, other)
        displacement(&world.box, world.x + 3 * far, there, d)
        for c in range(3):
            before[c] = there[c]
            x[c] = there[c] + (then - now) * d[c] / now
            still[c] = 0.0
        cell = self.pool.cell_of(&before[0] if splits else &x[0])
        if splits:
            most = self.pool.amount(cell, self.species) / self.pool.most(self.species, world.written)
        elif self.ageing is not None:
            most = self.share_off(k)
        draw_two(draws, u)
        chance = u[0]
        if not chance < most:
            return 0
        # Each joint and place that changes has one of these.
        change[0], change[1] = <int32_t> stays, <int32_t> other
        fault = self.weights.around(world, change, 2, &every_before, &counted_before)
        if fault != 0:
            return fault
        ways = self.log_ways(world, k, 1 if splits else -1)
        kinetic = -self.ends.kinetic(world, one.filament)
        if self.counts_chains():
            self.follow(world, k, 0 if splits else 1, &chain)
        length = sqrt(dot(d, d))
        for c in range(3):
            d[c] /= length
        if splits:
            self.draw_direction(bending, 0.5 / chain.pivot if self.counts_chains() else 0.0, d, &cosine, out, draws)
            for c in range(3):
                out[c] = x[c] + self.least * self.rise * out[c]
            fault = self.room.wake(world, other, out, still)
            if fault != 0:
                return fault
            world.subunits[other] = self.ends.caps[other] = 0
            world.subunits[outer] = self.least
            world.material[other] = world.material[stays] + one.step * (then - now + self.least)
        else:
            displacement(&world.box, before, world.x + 3 * other, out)
            cosine = dot(d, out) / sqrt(dot(out, out))
            kept = self.room.ids[other]
            for c in range(3):
                v[c] = world.v[3 * other + c]
            self.room.put_to_sleep(world, other)
            world.subunits[outer] = world.material[other] = 0
        world.subunits[link] = then
        world.material[stays] += one.step * (then - now)
        for c in range(3):
            there[c] = x[c]
        mark_grown(world, stays)
        self.room.note(world, stays)
        fault = self.weights.around(world, change, 2, &every, &counted)
        if fault != 0:
            return fault
        # Without the joint that comes or goes: its directions are drawn by its energy.
        excess = (counted - counted_before) / self.kT + ways
        excess += (-1.0 if splits else 1.0) * bending * (1.0 - cosine) / self.kT
        if self.counts_chains():
            excess += (-1.0 if splits else 1.0) * self.log_split(&chain)
        elif 0 <= beyond < width and self.room.alive[slot[beyond]]:
            beyond = world.subunits[slot[beyond] if one.step > 0 else far]
            excess += self.log_of(k, <int32_t> (beyond + then)) - self.log_of(k, <int32_t> (beyond + now))
        if self.force > 0.0:
            excess = self.hindrance(k, splits)
        if every - every == 0.0 and (excess <= 0.0 or chance < most * exp_(-excess)):
            self.ends.draw_velocities(world, one.filament, self.kT, draws)
            kinetic += self.ends.kinetic(world, one.filament)
            return self.book(world, t, k, splits, cell, stays, every - every_before, kinetic)
        world.subunits[link] = now
        world.material[stays] -= one.step * (then - now)
        mark_grown(world, stays)
        for c in range(3):
            there[c] = before[c]
        if splits:
            world.subunits[outer] = world.subunits[other] = world.material[other] = 0
            self.room.put_to_sleep(world, other)
            self.room.next_id[0] -= 1
        else:
            world.subunits[outer] = self.least
            world.material[other] = world.material[stays] + one.step * self.least
            self.room.alive[other] = 1
            self.room.ids[other] = kept
            for c in range(3):
                world.v[3 * other + c] = v[c]
            self.room.settle(world, other)
            self.room.note(world, other)
        self.room.note(world, stays)
        return 0

    cdef void draw_direction(self, double bending, double q, const double* d, double* cosine, double* out,
                             Draws* draws) noexcept nogil:
        """A unit vector from the law of a joint behind a link of direction d; q is 0 where no metric counts."""
        cdef double u[2]
        cdef double again[2]
        cdef double c
        cdef int _
        for _ in range(TRIES):
            draw_two(draws, u)
            c = 1.0 - 2.0 * u[0]
            if bending > 0.0:
                c = 1.0 + self.kT / bending * log_(1.0 - u[0] * (1.0 - exp_(-2.0 * bending / self.kT)))
            if q == 0.0:
                break
            # Of cosines the root keeps 0.7 and more.
            draw_two(draws, again)
            if again[0] * again[0] < 1.0 - q * c * c:
                break
        cosine[0] = min(1.0, max(-1.0, c))
        aslant(d, cosine[0], u[1], out)
