"""The box of a system, which changes its lengths at a constant tension or pressure: a jump.

The target is exp[-(U + K + P V - tau A)/kT] times the measure of coordinates and of the lengths; A is Lx Ly and V the
volume of the box. A trial draws one of the moves that there are, and a new measure of its directions, uniformly around
that of now: A for x and y together, V for all three, a length for one. All lengths of the move grow by one factor s
each. Units (free beads and vertices; filaments, rods, bodies and all that constraints join as a whole) go with their
centres, x -> s x, so that coordinates relative to the box are what is kept, with the measure prod_c s_c^N for N units.
Units with fixed beads go with the centre of these, which is not a coordinate, and have no measure. In-triangle points
keep lambda and the momentum m A^T v, so that their measure is the same and their kinetic energy is not. Accepted with

    min{1, exp[-(dU + dK + P dV - tau dA)/kT] prod_c s_c^N}.
"""
import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from medyanpy._kernels.core.box cimport Box, displacement, set_lengths
from medyanpy._kernels.core.elementary cimport exp_, log_
from medyanpy._kernels.letters.kick cimport ForceSum
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_exponential, draw_two, wait
from medyanpy._kernels.beads.points cimport Frame, frame_of, place, with_rates
from medyanpy._kernels.core.program cimport (
    NO_FAULT, OUT_OF_MEMORY, PYTHON_EXCEPTION, Operation, Sequence, World, is_there, mark_back,
    mark_moved,
)
from medyanpy._kernels.core.vec3 cimport dot
from medyanpy._kernels.core.workspace cimport WorkSpace


cdef class BoxArea(JumpOperation):
    """See `jumps.BoxArea`.

    Parameters
    ----------
    name, kT, every
        See `JumpOperation`.
    starts : (u + 1,) int32
        Where the beads of each unit start in
    beads : (b,) int32
        their places, and
    n_fixed : (u,) int32
        how many of each unit, from its first on, are fixed.
    n : int
        Places of all beads.
    momenta : sequence of int
        How many numbers there are of each of the momenta beside m v.
    least : (1,) float, nm
        What no side of the box may be shorter than; read at each trial.
    """
    cdef double rate
    cdef double tension
    cdef double pressure
    cdef const double[::1] least    # (1,) nm; no side of the box is shorter: as forces and jumps have it by now
    cdef int n_moves
    cdef int32_t[::1] moves   # which directions go together, as bits
    cdef double[::1] steps    # the largest change of the measure of each
    cdef int32_t[::1] starts
    cdef int32_t[::1] beads
    cdef int32_t[::1] n_fixed
    cdef double[:, ::1] kept_x
    cdef double[:, ::1] kept_v
    cdef Sequence forces
    # Of each, the sum of forces of a kick that it is in, -1 where it is in none, and its place there.
    cdef Sequence sums
    cdef int32_t[:, ::1] in_sum
    cdef WorkSpace space
    # For who made it: the box at the start.
    cdef public object start

    def __init__(self, str name, double kT, int every, const int32_t[::1] starts, const int32_t[::1] beads,
                 const int32_t[::1] n_fixed, Py_ssize_t n, momenta, const double[::1] least):
        self.describe(name, kT, False, every)
        self.starts = np.array(starts)
        self.beads = np.array(beads)
        self.n_fixed = np.array(n_fixed)
        self.kept_x = np.empty((n + 1, 3))
        self.kept_v = np.empty((n + 1, 3))
        self.space = WorkSpace(n, momenta)
        self.least = least
        self.take_forces([], [])

    def set(self, double kT, double rate, double tension, double pressure, moves, steps):
        """Numbers as they are now; moves as bits, and the largest change of the measure of each."""
        self.kT = kT
        self.rate = rate
        self.tension = tension
        self.pressure = pressure
        self.moves = np.array([*moves, 0], np.int32)
        self.steps = np.array([*steps, 0.0])
        self.n_moves = len(moves)

    def take_forces(self, list forces, list sums):
        """All of the context, whose energies are added in this order; and the sums of them by which kicks kick."""
        cdef ForceSum force_sum
        self.forces = Sequence(forces)
        self.sums = Sequence(sums)
        self.in_sum = np.full((len(forces) + 1, 2), -1, np.int32)
        places = {id(force): k for k, force in enumerate(forces)}
        for s, force_sum in enumerate(sums):
            for k, force in enumerate(force_sum.forces.operations):
                if id(force) in places:
                    self.in_sum[places[id(force)], 0] = s
                    self.in_sum[places[id(force)], 1] = k

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0, potential = 0.0
        cdef bint ready = False
        cdef int fault = 0
        while wait(draws, self.rate, h, &t, u):
            self.counts[0] += 1
            if not ready:
                ready = True
                self.space.enter(world)
                fault = place(world)
                if fault == 0:
                    fault = self.add_up(world, True, &potential)
                if fault != 0:
                    break
            fault = self.attempt(world, t, u[1], draws, &potential)
            if fault != 0:
                break
        if ready:
            self.space.leave(world)
        return fault

    cdef bint measures(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        if not self.rate > 0.0:
            return False
        draw_two(draws, u)
        return draw_exponential(u[0]) / self.rate < h

    cdef int add_up(self, World* world, bint known, double* potential) noexcept nogil:
        """The energies of all forces; as they are known from the last kick, if the state is still that of then."""
        cdef int wanted = world.want_energy
        cdef int fault = 0
        cdef Py_ssize_t k
        potential[0] = 0.0
        world.want_energy = 1
        for k in range(self.forces.count):
            if known and self.in_sum[k, 0] >= 0 and self.is_known(
                    world, <ForceSum> self.sums.items[self.in_sum[k, 0]], self.in_sum[k, 1], potential):
                continue
            fault = (<Operation> self.forces.items[k]).run(world)
            if fault != 0:
                if world.fault.operation == NULL:
                    world.fault.operation = self.forces.items[k]
                break
            potential[0] += (<Operation> self.forces.items[k]).energy
        world.want_energy = wanted
        return fault

    cdef bint is_known(self, World* world, ForceSum force_sum, Py_ssize_t k, double* potential) noexcept nogil:
        """Whether the last kick has computed the energy of its k-th force for the state of now; it is added then."""
        if force_sum.measured != world.positions:
            return False
        potential[0] += force_sum.energies[k]
        return True

    cdef int attempt(self, World* world, double t, double which, Draws* draws, double* potential) noexcept nogil:
        cdef int move = min(<int> (which * self.n_moves), self.n_moves - 1)
        cdef int directions = self.moves[move]
        cdef double u[2]
        cdef double growth[3]
        cdef double length[3]
        cdef double before[3]
        cdef double measure = 1.0, factor, exponent, gained = 0.0, kinetic = 0.0, energy = 0.0, n = 0.0
        cdef double area, volume
        cdef long long moved_before = world.positions, placed = world.placed
        cdef int c, k = 0, fault
        for c in range(3):
            before[c] = length[c] = world.box.length[c]
            growth[c] = 1.0
            if directions >> c & 1:
                measure *= before[c]
                k += 1
        draw_two(draws, u)
        factor = 1.0 + self.steps[move] * (2.0 * u[0] - 1.0) / measure
        if not factor > 0.0:
            return 0
        # Of all directions together.
        factor = factor if k == 1 else (sqrt(factor) if k == 2 else exp_(log_(factor) / 3.0))
        for c in range(3):
            if directions >> c & 1:
                growth[c] = factor
                length[c] = factor * before[c]
                if length[c] < self.least[0]:
                    return 0
        memcpy(&self.kept_x[0, 0], world.x, 3 * world.n * sizeof(double))
        memcpy(&self.kept_v[0, 0], world.v, 3 * world.n * sizeof(double))
        n = self.grow(world, growth)
        self.set_box(world, length)
        mark_moved(world)
        fault = place(world)
        if fault == 0:
            kinetic = self.carry(world, before)
            fault = self.add_up(world, False, &energy)
        if fault != 0 and fault != OUT_OF_MEMORY and fault != PYTHON_EXCEPTION:
            # There and back alike: a state that forces cannot have is not in the target.
            world.fault.code = NO_FAULT
            world.fault.operation = NULL
            world.fault.bead = world.fault.triangle = -1
            fault = 0
            energy = INFINITY
        if fault == 0:
            gained = energy - potential[0]
            area = length[0] * length[1] - before[0] * before[1]
            volume = length[0] * length[1] * length[2] - before[0] * before[1] * before[2]
            exponent = (gained + kinetic + self.pressure * volume - self.tension * area) / self.kT
            for c in range(3):
                if growth[c] != 1.0:
                    exponent -= n * log_(growth[c])
            draw_two(draws, u)
            if exponent <= 0.0 or u[0] < exp_(-exponent):
                potential[0] = energy
                return self.happened(world, t, 0, directions, 0, gained + kinetic, kinetic, 0.0)
        memcpy(world.x, &self.kept_x[0, 0], 3 * world.n * sizeof(double))
        memcpy(world.v, &self.kept_v[0, 0], 3 * world.n * sizeof(double))
        self.set_box(world, before)
        mark_back(world, moved_before)
        world.placed = placed
        return fault

    cdef void set_box(self, World* world, const double* length) noexcept nogil:
        memcpy(world.box_length, length, 3 * sizeof(double))
        set_lengths(&world.box, length)

    cdef double grow(self, World* world, const double* growth) noexcept nogil:
        """Move units with the box; how many there are whose place is a coordinate."""
        cdef Py_ssize_t k, i, end
        cdef double centre[3]
        cdef double mass, total, n = 0.0
        cdef double* x
        cdef int c
        for k in range(self.starts.shape[0] - 1):
            total = 0.0
            centre[0] = centre[1] = centre[2] = 0.0
            end = self.starts[k] + self.n_fixed[k] if self.n_fixed[k] else self.starts[k + 1]
            for i in range(self.starts[k], end):
                if not is_there(world, self.beads[i]):
                    continue
                mass = world.mass[self.beads[i]]
                x = world.x + 3 * <Py_ssize_t> self.beads[i]
                total += mass
                for c in range(3):
                    centre[c] += mass * x[c]
            if not total > 0.0:
                continue
            if not self.n_fixed[k]:
                n += 1.0
            for i in range(self.starts[k], self.starts[k + 1]):
                x = world.x + 3 * <Py_ssize_t> self.beads[i]
                for c in range(3):
                    x[c] += (growth[c] - 1.0) * (centre[c] / total)
        for k in range(world.n_cartesian, world.n):
            # They follow their triangles, at the images that they are at.
            for c in range(3):
                world.x[3 * k + c] *= growth[c]
        return n

    cdef double carry(self, World* world, const double* before) noexcept nogil:
        """Velocities of in-triangle points, whose momenta m A^T v stay; and what that does to their kinetic energy,
        inf where a triangle has lost its area."""
        cdef Box old
        cdef Frame frame
        cdef const int32_t* corners
        cdef double* v
        cdef double a, b, square, kinetic = 0.0
        cdef double e[3]
        cdef Py_ssize_t p
        set_lengths(&old, before)
        for p in range(world.n_points):
            if not is_there(world, world.n_cartesian + p):
                continue
            corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
            v = world.v + 3 * (world.n_cartesian + p)
            square = dot(v, v)
            displacement(&old, &self.kept_x[corners[0], 0], &self.kept_x[corners[1], 0], e)
            a = dot(e, v)
            displacement(&old, &self.kept_x[corners[0], 0], &self.kept_x[corners[2], 0], e)
            b = dot(e, v)
            frame_of(&world.box, world.x, corners, &frame)
            if not frame.nn > 0.0:
                return INFINITY
            with_rates(&frame, a, b, v)
            kinetic += 0.5 * world.mass[world.n_cartesian + p] * (dot(v, v) - square)
        return kinetic
