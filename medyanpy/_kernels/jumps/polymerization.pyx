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

Attempts come at bounded rates, each with draws of its own. C is that of the cell of the pool where the end of the
shorter of the two filaments is, both ways. See docs/theory/growth.md.
"""
import numpy as np

from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t

from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.elementary cimport acos_, atan2_, exp_, log_, sincos_
from medyanpy._kernels.core.program cimport World
from medyanpy._kernels.jumps.jump cimport MOST_DRAWS, Draws, JumpOperation, draw_exponential, draw_two
from medyanpy._kernels.jumps.pools cimport PoolCounts
from medyanpy._kernels.jumps.trial cimport Trial, Weights

cdef enum:
    # Of the integral of a joint, by Gauss' formula of five points in each.
    PANELS = 12

# Beyond so many kT joints are not integrated.
cdef double MOST_ENERGY = 30.0
cdef double PI = 3.141592653589793
cdef double[5] NODES = [-0.9061798459386640, -0.5384693101056831, 0.0, 0.5384693101056831, 0.9061798459386640]
cdef double[5] SHARES = [0.2369268850561891, 0.4786286704993665, 0.5688888888888889, 0.4786286704993665,
                         0.2369268850561891]


# By place; `link` is that of the node from which the last link leads on, `inner` of the link before it, -1: none.
cdef struct End:
    int32_t node
    int32_t before
    int32_t link
    int32_t inner


# Of all joints, times their mean length, pN nm^2; 0 without bending.
cdef struct Joint:
    double modulus
    double straight
    double bent


cdef double log_integral(const Joint* joint, double length, double kT, double q) noexcept nogil:
    """The logarithm of z."""
    cdef double stiffness = sqrt(joint.straight * joint.straight + joint.bent * joint.bent)
    cdef double a = stiffness / (length * kT)
    cdef double rest, width, low, high, half, theta, total = 0.0
    cdef double sine, cosine, sine_off, cosine_off
    cdef int panel, i
    if not a > 0.0:
        return -joint.modulus / (length * kT)
    rest = atan2_(joint.bent, joint.straight)
    width = acos_(1.0 - MOST_ENERGY / a) if MOST_ENERGY < 2.0 * a else PI
    low = max(0.0, rest - width)
    high = min(PI, rest + width)
    half = (high - low) / (2 * PANELS)
    for panel in range(PANELS):
        for i in range(5):
            theta = low + half * (2 * panel + 1 + NODES[i])
            sincos_(theta, &sine, &cosine)
            sincos_(0.5 * (theta - rest), &sine_off, &cosine_off)
            total += SHARES[i] * exp_(-2.0 * a * sine_off * sine_off) * sqrt(1.0 - q * cosine * cosine) * sine
    return log_(half * total) - (joint.modulus - stiffness) / (length * kT)


def log_integral_of(double modulus, double straight, double bent, double length, double kT, double q):
    """For tests: the logarithm of z."""
    cdef Joint joint = Joint(modulus, straight, bent)
    return log_integral(&joint, length, kT, q)


cdef class Polymerization(JumpOperation):
    """Growth of the ends of the filaments of one handle.

    Parameters
    ----------
    name, every
        See `JumpOperation`.
    ends : (n, 4) int32
        See `End`.
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
    cdef const int32_t[:, ::1] ends
    cdef const int32_t[::1] which
    cdef const double[::1] shares
    # (m, longest + 1) logarithms of z by the subunits of both links, nan where they are not known yet.
    cdef double[:, ::1] known
    cdef Py_ssize_t n_ends
    cdef double rise
    cdef int32_t least, most
    cdef PoolCounts pool
    cdef Py_ssize_t species
    cdef double on, off       # nm^3/s and 1/s
    cdef Joint joint
    cdef bint metric          # whether q counts
    cdef readonly Weights weights
    cdef Trial trial
    cdef int32_t link         # of a change
    cdef int32_t subunits
    # Most molecules in a cell, and for what state of the pool.
    cdef double crowd
    cdef long long version
    cdef long long written

    def __init__(self, str name, int every, const int32_t[:, ::1] ends not None, const int32_t[::1] which not None,
                 const double[::1] shares not None, int longest, double rise, int least, int most,
                 PoolCounts pool not None, Py_ssize_t species, Py_ssize_t n, momenta):
        self.describe(name, NAN, False, every)
        self.ends = ends
        self.which = which
        self.shares = shares
        self.known = np.full((shares.shape[0], longest + 1), NAN)
        self.n_ends = which.shape[0]
        self.rise = rise
        self.least = least
        self.most = most
        self.pool = pool
        self.species = species
        self.joint = Joint(0.0, 0.0, 0.0)
        self.metric = False
        self.weights = Weights(self, n, momenta)
        self.trial = Trial(1)
        self.trial.change.links = &self.link
        self.trial.change.subunits = &self.subunits
        self.version = self.written = -1

    def set(self, double kT, bint driven, double on, double off):
        if not kT == self.kT:
            self.known[:, :] = NAN
        self.kT = kT
        self.driven = driven
        self.on = on
        self.off = off

    def bend(self, double modulus, double straight, double bent, bint metric):
        """Joints have these numbers, and the metric of constraints counts or not."""
        self.joint = Joint(modulus, straight, bent)
        self.metric = metric
        self.known[:, :] = NAN

    def log_integrals(self, const int64_t[::1] both, const double[::1] shares, double kT):
        """The sum of the logarithms of z of joints whose links have so many subunits together."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(both.shape[0]):
            total += log_integral(&self.joint, 0.5 * self.rise * both[k], kT, shares[k] if self.metric else 0.0)
        return total

    @property
    def temperature(self):
        """kT, pN nm."""
        return self.kT

    @property
    def rate(self):
        """Attempts in a second, of all ends."""
        self.written = -1
        self.look(0)
        return self.n_ends * (self.on * self.crowd / self.pool.volume + self.off)

    cdef void look(self, long long written) noexcept nogil:
        """See how many molecules there are."""
        cdef Py_ssize_t cell
        if self.version == self.pool.version and self.written == written:
            return
        self.version = self.pool.version
        self.written = written
        self.crowd = self.pool.amount(0, self.species)
        if self.species < self.pool.n_species:
            for cell in range(1, self.pool.n_cells):
                self.crowd = max(self.crowd, self.pool.amount(cell, self.species))

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double on, each, t = 0.0
        cdef bint inside = False
        cdef int failed, fault = 0
        while fault == 0 and draws.next <= MOST_DRAWS:
            self.look(world.written)
            on = self.on * self.crowd / self.pool.volume
            each = on + self.off
            if not each * self.n_ends > 0.0:
                break
            draw_two(draws, u)
            t += draw_exponential(u[0]) / (each * self.n_ends)
            if t >= h:
                break
            if not inside:
                inside = True
                fault = self.weights.enter(world)
            if fault == 0:
                self.counts[0] += 1
                fault = self.attempt(world, t, u[1] * self.n_ends, on / each, draws)
        if inside:
            failed = self.weights.leave(world)
            fault = failed if fault == 0 else fault
        return fault

    cdef int attempt(self, World* world, double t, double which, double share, Draws* draws) noexcept nogil:
        """Try the end of this number: its fraction is below `share` where a subunit is to come."""
        cdef Py_ssize_t k = min(<Py_ssize_t> which, self.n_ends - 1)
        cdef const End* end = <const End*> &self.ends[k, 0]
        cdef bint grows = which - k < share
        cdef int32_t now = world.subunits[end.link]
        cdef int32_t then = now + 1 if grows else now - 1
        cdef const double* x = world.x + 3 * <Py_ssize_t> end.node
        cdef double d[3]
        cdef double u[2]
        cdef double most = 1.0, excess, energy = 0.0, chemical = 0.0
        cdef Py_ssize_t cell
        cdef int c, fault
        if then < self.least or then > self.most:
            return 0
        self.trial.begin(1)
        self.trial.places[0] = end.node
        displacement(&world.box, world.x + 3 * <Py_ssize_t> end.before, x, d)
        for c in range(3):
            self.trial.x[0, c] = x[c] + (then - now) * d[c] / now
        cell = self.pool.cell_of(x if grows else &self.trial.x[0, 0])
        if grows:
            most = self.pool.amount(cell, self.species) / self.crowd
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
        if end.inner >= 0:
            excess += self.log_joint(world, end, k, then) - self.log_joint(world, end, k, now)
        if excess > 0.0 and not u[0] < most * exp_(-excess):
            return 0
        fault = self.weights.make(world, &self.trial.change)
        if fault != 0:
            return fault
        if not grows:
            self.pool.put(cell, self.species, 1)
        if self.driven:
            chemical = INFINITY
            if self.on > 0.0 and self.off > 0.0:
                # Of the concentration with the subunit in the pool, whichever way it goes.
                chemical = self.kT * log_(
                    self.on * self.pool.amount(cell, self.species) / (self.off * self.pool.volume))
                chemical = chemical if grows else -chemical
        if grows:
            self.pool.take(cell, self.species, 1)
        return self.happened(world, t, 0 if grows else 1, world.bead[end.node], -1, energy, 0.0, chemical)

    cdef double log_joint(self, World* world, const End* end, Py_ssize_t k, int32_t subunits) noexcept nogil:
        """The logarithm of z with so many subunits in the last link."""
        cdef int32_t both = world.subunits[end.inner] + subunits
        cdef int32_t which = self.which[k]
        cdef double found = self.known[which, both] if both < self.known.shape[1] else NAN
        if not found == found:
            found = log_integral(
                &self.joint, 0.5 * self.rise * both, self.kT, self.shares[which] if self.metric else 0.0)
            if both < self.known.shape[1]:
                self.known[which, both] = found
        return found
