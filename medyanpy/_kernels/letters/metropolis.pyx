"""Blocks M( ) of a word: some letters, accepted or rejected on what they have done to the total energy.

A block is a map that is its own inverse once momenta are reversed, and that keeps phase volume: a palindrome of flows
that do so each. Followed by a reversal of all momenta it is a proposal of Metropolis', accepted with probability
min(1, exp(-dH/kT)); and momenta are reversed once more, so that accepted ones go on, and rejected ones go back the way
they came: positions are those at the start, momenta minus those at the start. Either leaves exp(-H/kT) as it is,
whatever the timestep (Horowitz, Phys. Lett. B 268, 247 (1991); Lelievre, Rousset & Stoltz, Free Energy Computations
(2010), 2.1.3).

A block that cannot be carried out (lost triangles, crossings without end, forces that are not finite, constraints that
are not found) is a rejection: its way back meets the same obstacle. Newton's method for constraints may lead to another
solution than the one that leads back: `ThereAndBack` looks (Zappa, Holmes-Cerfon & Goodman, Comm. Pure Appl. Math. 71,
2609 (2018)).
"""
import numpy as np

from libc.math cimport fabs, isfinite
from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from medyanpy._kernels.core.elementary cimport log_core
from medyanpy._kernels.letters.kick cimport ForceSum
from medyanpy._kernels.core.philox cimport METROPOLIS, counter_word2, counter_word3, philox4x32
from medyanpy._kernels.core.program cimport (
    CONSTRAINTS_LOST, DEGENERATE_TRIANGLE, LOST_SURFACE, NO_FAULT, NO_GEODESIC, NOT_CONVERGED, NOT_FINITE, NOT_SOLVED,
    PYTHON_EXCEPTION, TOO_CURVED, TOO_FAR, TOO_MANY_CROSSINGS, TOO_WIDE, Operation, Sequence, World, mark_back,
    mark_moved,
)


cdef struct Copied:
    char* live
    char* copy
    size_t bytes
    bint is_momentum          # doubles that change their sign with the direction of time


cdef class Copies:
    """Copies of arrays, which may come back with momenta reversed.

    Parameters
    ----------
    arrays : list of arrays
        C-contiguous, of any type.
    momenta : list of bool
        Which of them are momenta.
    """
    cdef object arrays
    cdef Copied* parts
    cdef Py_ssize_t n

    def __cinit__(self, list arrays, list momenta):
        cdef unsigned char[::1] content
        self.arrays = arrays
        self.n = 0
        self.parts = <Copied*> malloc((len(arrays) + 1) * sizeof(Copied))
        if self.parts == NULL:
            raise MemoryError
        for array, is_momentum in zip(arrays, momenta, strict=True):
            if not array.size:
                continue
            content = array.reshape(-1).view("u1")
            self.parts[self.n].live = <char*> &content[0]
            self.parts[self.n].bytes = content.shape[0]
            self.parts[self.n].is_momentum = is_momentum
            self.parts[self.n].copy = <char*> malloc(content.shape[0])
            if self.parts[self.n].copy == NULL:
                raise MemoryError
            self.n += 1

    def __dealloc__(self):
        cdef Py_ssize_t k
        for k in range(self.n):
            free(self.parts[k].copy)
        free(self.parts)

    cdef void keep(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n):
            memcpy(self.parts[k].copy, self.parts[k].live, self.parts[k].bytes)

    cdef void put_back(self, bint reversed) noexcept nogil:
        """As copied, or with momenta reversed."""
        cdef double* live
        cdef const double* copy
        cdef size_t k
        cdef Py_ssize_t part
        for part in range(self.n):
            if reversed and self.parts[part].is_momentum:
                live = <double*> self.parts[part].live
                copy = <const double*> self.parts[part].copy
                for k in range(self.parts[part].bytes // sizeof(double)):
                    live[k] = -copy[k]
            else:
                memcpy(self.parts[part].live, self.parts[part].copy, self.parts[part].bytes)


cdef class ThereAndBack(Operation):
    """A letter around which constraints are solved for, or a pair of these: a fault where it does not lead back to
    where it started.

    Parameters
    ----------
    letter, mirrored : list of Operation
        Forth and, with reversed momenta, back.
    start, end : Copies
        Room for the state before and after it; positions come first, then velocities.
    h : float, s
        How long it runs.
    nearness : float, nm
        What counts as back; of velocities, times h.
    """
    cdef Sequence letter
    cdef Sequence mirrored
    cdef Copies start
    cdef Copies end
    cdef double h
    cdef double nearness

    def __init__(self, list letter, list mirrored, Copies start, Copies end, double h, double nearness):
        self.letter = Sequence(letter)
        self.mirrored = Sequence(mirrored)
        self.start = start
        self.end = end
        self.h = h
        self.nearness = nearness

    cdef bint is_back(self, World* world) noexcept nogil:
        cdef const double* x = <const double*> self.start.parts[0].copy
        cdef const double* v = <const double*> self.start.parts[1].copy
        cdef double off = 0.0, turned
        cdef Py_ssize_t k
        for k in range(3 * world.n_cartesian):
            turned = max(fabs(world.x[k] - x[k]), fabs(self.h * (world.v[k] + v[k])))
            # A number that is none is off.
            off = off if turned <= off else turned
        for k in range(3 * world.n_cartesian, 3 * world.n):
            # Of in-triangle points velocities tell of triangles too.
            turned = fabs(self.h * (world.v[k] + v[k]))
            off = off if turned <= off else turned
        return off <= self.nearness

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        cdef bint is_back
        self.start.keep()
        fault = self.letter.run(world)
        if fault != 0:
            return fault
        self.end.keep()
        self.end.put_back(True)
        fault = self.mirrored.run(world)
        is_back = fault == 0 and self.is_back(world)
        self.end.put_back(False)
        mark_moved(world)
        return NO_FAULT if is_back else NOT_CONVERGED


cdef class Metropolis(Operation):
    """A block M( ).

    Parameters
    ----------
    moving, kicks : list of Operation
        Its letters: up to the last that moves anything, and kicks after that.
    force_sums : list of ForceSum
        All forces of the context, each once.
    kinetic : Operation
        Writes kinetic energies to `energies`.
    energies : (m,) float array, pN nm
    state : Copies
        Of all that the block changes.
    forces : Copies
        Of the arrays of the force sums.
    kT : float, pN nm
    letter : int
        Place of its first letter in the word, by which its random number is keyed.
    counts : (3,) int array
        How often it was tried; how often accepted; how often it could not be carried out.
    """
    cdef Sequence moving
    cdef Sequence kicks
    cdef Sequence sums
    cdef Operation kinetic
    cdef double[::1] energies
    cdef Copies state
    cdef Copies forces
    cdef long long[::1] evaluated
    cdef double kT
    cdef uint32_t letter
    cdef long long[::1] counts
    # The potential energy, and the value of world.positions that it belongs to.
    cdef double potential
    cdef long long known_at

    def __init__(self, list moving, list kicks, list force_sums, Operation kinetic, double[::1] energies, Copies state,
                 Copies forces, double kT, int letter, long long[::1] counts):
        self.moving = Sequence(moving)
        self.kicks = Sequence(kicks)
        self.sums = Sequence(force_sums)
        self.kinetic = kinetic
        self.energies = energies
        self.state = state
        self.forces = forces
        self.evaluated = np.zeros(max(1, len(force_sums)), np.int64)
        self.kT = kT
        self.letter = letter
        self.counts = counts
        self.potential = 0.0
        self.known_at = 0

    @property
    def operations(self):
        """What it runs."""
        return [*self.moving.operations, *self.kicks.operations]

    cdef int find_potential(self, World* world, double* out) noexcept nogil:
        """Of all forces, where beads are now; kicks that come next find their forces known."""
        cdef Py_ssize_t k, i
        cdef int wanted = world.want_energy, fault = NO_FAULT
        cdef double total = 0.0
        world.want_energy = 1
        for k in range(self.sums.count):
            if fault == NO_FAULT:
                if (<ForceSum> self.sums.items[k]).measured != world.positions:
                    (<ForceSum> self.sums.items[k]).evaluated = 0
                fault = (<ForceSum> self.sums.items[k]).run(world)
                for i in range((<ForceSum> self.sums.items[k]).forces.count):
                    total += (<ForceSum> self.sums.items[k]).energies[i]
        world.want_energy = wanted
        out[0] = total
        return fault

    cdef double find_kinetic(self, World* world) noexcept nogil:
        cdef double total = 0.0
        cdef Py_ssize_t k
        self.kinetic.run(world)
        for k in range(self.energies.shape[0]):
            total += self.energies[k]
        return total

    cdef bint is_drawn(self, World* world, double energy) noexcept nogil:
        """Whether a change of the energy is accepted; never one that is not a number."""
        cdef uint32_t w[4]
        cdef double u
        w[0] = 0
        w[1] = <uint32_t> world.step
        w[2] = counter_word2(world.step, self.letter, 0)
        w[3] = counter_word3(METROPOLIS, 0)
        philox4x32(w, <uint32_t> world.seed, <uint32_t> (world.seed >> 32))
        # 53 bits, never 0 and never 1.
        u = ((w[0] * 1048576.0 + (w[1] >> 12)) + 0.5) * 2.220446049250313e-16
        return energy <= -self.kT * log_core(u)

    cdef int go(self, World* world, double* potential) noexcept nogil:
        cdef int fault = self.moving.run(world)
        if fault == 0:
            fault = self.find_potential(world, potential)
        if fault == 0:
            fault = self.kicks.run(world)
        return fault

    cdef bint ends_the_run(self, World* world, int fault, long long start) noexcept nogil:
        """Whether a fault is one of the state that the block starts from, or of the machine; others its way back meets
        as well."""
        if fault in (TOO_MANY_CROSSINGS, DEGENERATE_TRIANGLE, NOT_CONVERGED, LOST_SURFACE, CONSTRAINTS_LOST):
            return False
        if fault in (NOT_FINITE, NOT_SOLVED, TOO_FAR, NO_GEODESIC, TOO_CURVED, TOO_WIDE):
            return world.positions == start
        if fault == PYTHON_EXCEPTION:
            return world.positions == start or not self.returned_no_number(world)
        return True

    cdef bint returned_no_number(self, World* world) noexcept nogil:
        """Whether Python code failed for an energy or a force that is not finite."""
        with gil:
            if world.fault.operation == NULL:
                return False
            return bool(getattr((<Operation> world.fault.operation).error, "not_finite", False))

    cdef int run(self, World* world) noexcept nogil:
        cdef long long start = world.positions
        cdef double kinetic, potential = 0.0
        cdef bint accepted = False
        cdef Py_ssize_t k
        cdef int fault
        if self.known_at != start:
            fault = self.find_potential(world, &self.potential)
            if fault != 0:
                return fault
            self.known_at = start
        kinetic = self.find_kinetic(world)
        if not isfinite(kinetic + self.potential):
            return self.is_not_finite(world)
        self.state.keep()
        self.forces.keep()
        for k in range(self.sums.count):
            self.evaluated[k] = (<ForceSum> self.sums.items[k]).evaluated
        fault = self.go(world, &potential)
        if fault != 0:
            if self.ends_the_run(world, fault, start):
                return fault
            self.counts[2] += 1
            world.fault.code = NO_FAULT
            world.fault.bead = world.fault.triangle = -1
            world.fault.operation = NULL
        else:
            accepted = self.is_drawn(world, (potential - self.potential) + (self.find_kinetic(world) - kinetic))
        self.counts[0] += 1
        if accepted:
            self.counts[1] += 1
            self.potential = potential
            self.known_at = world.positions
            return NO_FAULT
        self.state.put_back(True)
        self.forces.put_back(False)
        for k in range(self.sums.count):
            (<ForceSum> self.sums.items[k]).evaluated = self.evaluated[k]
        # Rows of points in x are those that belong to the start, but nobody has noted so: they are derived once more.
        mark_back(world, start)
        return NO_FAULT

    cdef int is_not_finite(self, World* world) noexcept nogil:
        """At the start there is no energy to compare with."""
        world.fault.code = NOT_FINITE
        return NOT_FINITE
