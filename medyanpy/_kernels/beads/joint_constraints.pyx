"""Constraints of any form on several beads each, g_r(x) = 0, solved jointly for all that share beads.

    A        x' = x + h v - M^-1 D^T mu with impulses mu such that all g(x') = 0, D the gradients before the flight;
             then v' = v - M^-1 D^T mu / h, made tangent at x' (RATTLE). Newton's method on mu
    tangent  v - M^-1 G^T nu with G v = 0, G the gradients at x: after B, and after O
    normal   before O: the normal part of a Maxwell velocity is added, see constraints.pxi

Constraints are rows; a component is the rows that movable beads join, directly or through others. Its equations have
the sparse matrix G M^-1 D^T, with an entry where two rows have a bead in common. It is factorised without pivoting, in
an order and with a pattern of fill that the caller has found once: near the constraints it is symmetric and positive
definite. Functions are programs of core/expressions.pxd in the coordinates of the beads of a row and of numbers of its
own; those of WIDTH rows are evaluated at a time, of all components of a block. Which components share a block changes
no bit of any: one that has converged is left alone.

Places fixed to bodies, x + R(q) r, take part as beads do. Their gradients act on the bead of the body and, as torques
r x R^T G in its frame, on its rotation. A flies bodies freely with the impulses of the start, L - D^T mu / h, again in
each iteration; what bends the derivative of a rotation by L is known to the order h^2.

Gradients, and the factors of the matrix at the present positions, are kept with the number of the positions they
belong to: computing them again gives the same bits, so they are not part of the state.

Source: Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen, J. Comput. Phys. 52, 24 (1983).
"""
import numpy as np

from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.elementary cimport log_
from medyanpy._kernels.core.expressions cimport Function, WIDTH, evaluate, prepare
from medyanpy._kernels.core.free_rotation cimport Bodies, LANES, turn_freely
from medyanpy._kernels.core.noise cimport normals_at
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.philox cimport CONSTRAINTS, NORMALS_BLOCK
from medyanpy._kernels.core.program cimport CONSTRAINTS_LOST, Operation, World, mark_moved
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of, scale_to_unit
from medyanpy._kernels.core.rotations cimport Turns, turn
from medyanpy._kernels.beads.flight cimport fly
from medyanpy._kernels.beads.points cimport Frame, frame_of, place as place_points, with_rates
from medyanpy._kernels.core.box cimport nearest_whole
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot

include "joint_system.pxi"
include "joint_places.pxi"

cdef enum:
    # Newton's method has converged long before, or never does.
    MOST_ITERATIONS = 40
    # Most flights of points need fewer.
    FEW_ITERATIONS = 5

# How differently a flight may leave the tangent space of a row at its start and meet that at its end; see
# surface_constraints.pyx.
cdef double LARGEST_SINE = 0.25
# No coordinate is better known, relative to its size.
cdef double ROUNDING = 1e-15
# A pivot that has lost so much of its element of the matrix is that of a row which depends on those before.
cdef double LEAST_PIVOT = 1e-14

cdef enum Action:
    START = 0                 # before A: the gradients there
    FLIGHT = 1                # after A
    TANGENT = 2               # after B and O
    NORMAL = 3                # before O
    ADMIT = 4                 # TANGENT when velocities come from outside
    SETTLE = 5                # bring positions from outside to where constraints hold
    LAUNCH = 6                # before A, with points: the impulses of a flight of A and G

ACTIONS = {
    "start": START, "flight": FLIGHT, "tangent": TANGENT, "normal": NORMAL, "admit": ADMIT, "settle": SETTLE,
    "launch": LAUNCH,
}


cdef struct Task:
    System* system
    int action
    bint known                # whether gradients belong to the positions
    bint factored             # whether factors do
    double h
    double kT
    int letter
    bint exact                # whether bodies turn exactly, or by parts
    bint has_points
    bint after_g              # of LAUNCH: whether G comes before A, and START before G


cdef int _lost(const System* s, World* world, Py_ssize_t row, double off) noexcept nogil:
    """Record that a row cannot be kept: by the first of its beads that moves."""
    cdef Py_ssize_t e = s.entries[row]
    while s.w[s.slot[e]] == 0.0 and e + 1 < s.entries[row + 1]:
        e += 1
    s.off[row] = off
    return record_fault(world, CONSTRAINTS_LOST, s.place[s.slot[e]], row)


cdef void _newton(const Task* t, Py_ssize_t block, double* registers, double* dense) noexcept nogil:
    """Find mu of all components of a block such that their constraints hold, and move x to there."""
    cdef const System* s = t.system
    # Without a flight impulses turn bodies at once.
    cdef double h = t.h if t.action == FLIGHT else 0.0
    cdef double turning = -1.0 / h if t.action == FLIGHT else -1.0
    cdef Py_ssize_t component, row
    cdef int _
    cdef bint any_active
    for component in range(s.blocks[block], s.blocks[block + 1]):
        s.active[component] = 1
        for row in range(s.rows[component], s.rows[component + 1]):
            s.multiplier[row] = 0.0
    for _ in range(MOST_ITERATIONS):
        _evaluate(s, block, registers)
        any_active = False
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if s.active[component] != 1:
                continue
            if _holds(s, component):
                s.active[component] = 0
                continue
            _assemble(s, component, s.gradient, s.start, True)
            if _factorise(s, component, dense) >= 0:
                s.active[component] = -1
                continue
            any_active = True
            for row in range(s.rows[component], s.rows[component + 1]):
                s.right[row] = s.value[row]
            _solve(s, component, s.right)
            for row in range(s.rows[component], s.rows[component + 1]):
                s.multiplier[row] += s.right[row]
            _push(s, component, s.start, s.right, -1.0, s.x, turning, s.slot)
        if not any_active:
            return
        _fly_bodies(s, block, h, t.exact)


cdef int _blame(const System* s, Py_ssize_t component, World* world) noexcept nogil:
    """Of a component that has not converged: its row that is furthest off."""
    cdef Py_ssize_t row, worst = s.rows[component]
    cdef double off, largest = -1.0
    for row in range(s.rows[component], s.rows[component + 1]):
        off = _beyond(s, row)
        if not (off <= largest):
            worst = row
            largest = off
            if not (off == off):
                break
    return _lost(s, world, worst, largest)


cdef int _check_flight(const System* s, Py_ssize_t component, World* world, double h) noexcept nogil:
    """Whether each row has come back on the sheet it started from: its gradient has not turned round, and the chord
    leaves its tangent space as it meets that at the end, see surface_constraints.pyx."""
    cdef Py_ssize_t row, e, last, slot, bead, k
    cdef double chord[3]
    cdef double R[9]
    cdef double there[3]
    cdef double leaves, meets, before, after, turned, square, near
    cdef int c, fault = 0
    for row in range(s.rows[component], s.rows[component + 1]):
        leaves = meets = before = after = turned = square = 0.0
        last = s.entries[row] + s.beads[s.program[row]]
        for e in range(s.entries[row], s.entries[row + 1]):
            slot = s.slot[e]
            if s.kind[slot] == TURN:
                turned += _along_turn(s, slot, s.start + 3 * e, s.gradient + 3 * e, False)
            elif s.into[e] != -2:
                turned += s.w[slot] * dot(s.start + 3 * e, s.gradient + 3 * e)
            if e >= last:
                continue
            before += dot(s.start + 3 * e, s.start + 3 * e)
            after += dot(s.gradient + 3 * e, s.gradient + 3 * e)
            bead = s.body[s.turn[slot]] if s.kind[slot] == PLACE else slot
            if s.kind[slot] == SPOT:
                k = s.turn[slot]
                turned += s.w[s.motion[k]] * dot(s.start + 3 * e, s.gradient + 3 * e)
                for c in range(3):
                    chord[c] = s.x[3 * slot + c] - s.x0[3 * k + c]
                leaves += dot(chord, s.start + 3 * e)
                meets += dot(chord, s.gradient + 3 * e)
                square += dot(chord, chord)
                continue
            if s.w[slot] == 0.0 and bead == slot:
                continue
            for c in range(3):
                chord[c] = (s.x[3 * bead + c] - world.x[3 * <Py_ssize_t> s.place[slot] + c]) + h * s.v[3 * bead + c]
            if bead != slot:
                matrix_of(s.q0 + 4 * <Py_ssize_t> s.turn[slot], R)
                into_space(R, s.arm + 3 * slot, there)
                for c in range(3):
                    chord[c] += (s.x[3 * slot + c] - s.x[3 * bead + c]) - there[c]
            leaves += dot(chord, s.start + 3 * e)
            meets += dot(chord, s.gradient + 3 * e)
            square += dot(chord, chord)
        leaves = leaves / sqrt(before) + meets / sqrt(after)
        # Beads at rest move by what they were off.
        near = 16.0 * s.scale[row] * s.scale[row]
        if not (turned > 0.0 and leaves * leaves <= LARGEST_SINE * LARGEST_SINE * square + near):
            fault |= _lost(s, world, row, fabs(leaves) / s.scale[row])
    return fault


cdef void _draw(const System* s, Py_ssize_t component, World* world, const Task* t) noexcept nogil:
    """u: a Maxwell velocity for each bead, and an angular momentum for each rotation."""
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef Py_ssize_t first = s.slots[component], last = s.vertices[component], slot, k, e
    cdef double scale
    cdef int count, i, c
    while first < last:
        count = <int> min(<Py_ssize_t> NORMALS_BLOCK, last - first)
        normals_at(world, s.place + first, count, t.letter, CONSTRAINTS, 0, gx, gy, gz)
        for i in range(count):
            slot = first + i
            scale = sqrt(t.kT * s.w[slot])
            s.u[3 * slot] = scale * gx[i]
            s.u[3 * slot + 1] = scale * gy[i]
            s.u[3 * slot + 2] = scale * gz[i]
        first += count
    if last < s.first_turn[component]:
        for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
            slot = s.slot[e]
            if _is_under_points(s, component, slot):
                # For a vertex in several rows the same each time.
                normals_at(world, s.place + slot, 1, t.letter, CONSTRAINTS, 0, gx, gy, gz)
                scale = sqrt(t.kT * s.w[slot])
                s.u[3 * slot], s.u[3 * slot + 1], s.u[3 * slot + 2] = scale * gx[0], scale * gy[0], scale * gz[0]
    first = s.first_turn[component]
    last = first + s.turns[component + 1] - s.turns[component]
    while first < last:
        count = <int> min(<Py_ssize_t> NORMALS_BLOCK, last - first)
        normals_at(world, s.place + first, count, t.letter, CONSTRAINTS, 1, gx, gy, gz)
        for i in range(count):
            slot = first + i
            k = 3 * <Py_ssize_t> s.turn[slot]
            s.u[3 * slot] = gx[i]
            s.u[3 * slot + 1] = gy[i]
            s.u[3 * slot + 2] = gz[i]
            for c in range(3):
                s.u[3 * slot + c] *= sqrt(t.kT / s.rate[k + c]) if s.w[slot] > 0.0 else 0.0
        first += count


include "joint_points.pxi"


cdef int _one_block(const Task* t, World* world, Py_ssize_t block, double* registers, double* dense) noexcept nogil:
    cdef System* s = t.system
    cdef Py_ssize_t component, i, failed
    cdef int fault = 0
    for component in range(s.blocks[block], s.blocks[block + 1]):
        _gather(s, component, world, t.action == LAUNCH or t.action == SETTLE)
    if t.has_points and (t.action == START or t.action == LAUNCH or t.action == SETTLE):
        return _launch(t, world, block, registers, dense)
    if t.action == FLIGHT or t.action == SETTLE:
        if t.action == SETTLE:
            _evaluate(s, block, registers)
        for i in range(3 * s.entries[s.rows[s.blocks[block]]], 3 * s.entries[s.rows[s.blocks[block + 1]]]):
            s.start[i] = s.gradient[i]
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if t.action == SETTLE:
                for i in range(3 * s.turns[component], 3 * s.turns[component + 1]):
                    s.spin0[i] = 0.0
                for i in range(4 * s.turns[component], 4 * s.turns[component + 1]):
                    s.q0[i] = s.q[i]
            _bend(s, component, t.h)
        _newton(t, block, registers, dense)
        for component in range(s.blocks[block], s.blocks[block + 1]):
            if s.active[component] != 0:
                fault |= _blame(s, component, world)
            elif t.action == FLIGHT:
                fault |= _check_flight(s, component, world, t.h)
        if fault != 0:
            return fault
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _scatter(s, component, s.x, world.x)
            _scatter_turns(s, component, world, True)
            if t.action == FLIGHT:
                # Angular momenta have flown with their impulses.
                _push(s, component, s.start, s.multiplier, -1.0 / t.h, s.v, 0.0, s.slot)
    elif not t.known:
        _evaluate(s, block, registers)
    if t.action == START:
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _keep_bodies(s, component)
    if t.action == START or t.action == SETTLE:
        return 0
    for component in range(s.blocks[block], s.blocks[block + 1]):
        if not t.factored:
            _assemble(s, component, s.gradient, s.gradient, False)
            failed = _factorise(s, component, dense)
            if failed >= 0:
                fault |= _lost(s, world, failed, 0.0)
                continue
        if t.action == NORMAL:
            _draw(s, component, world, t)
            _rates(s, component, s.u)
            _solve(s, component, s.right)
            _push(s, component, s.gradient, s.right, 1.0, s.v, 1.0, s.slot)
        else:
            _rates(s, component, s.v)
            _solve(s, component, s.right)
            _push(s, component, s.gradient, s.right, -1.0, s.v, -1.0, s.slot)
        _scatter(s, component, s.v, world.v)
        _scatter_turns(s, component, world, False)
    return fault


cdef int _blocks(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    cdef System* s = t.system
    cdef Py_ssize_t block
    cdef int fault = 0
    for block in range(first, last):
        fault |= _one_block(t, world, block, s.registers + thread * s.room, s.dense + thread * s.longest)
    return fault


cdef class JointConstraints(Operation):
    """One of ACTIONS on all rows of a JointSystem; `names(row)` says what a row is, for messages."""
    cdef JointSystem joint
    cdef Task task
    cdef double h
    cdef readonly object names

    def __init__(self, JointSystem joint, str action, names, double h=0.0, double kT=0.0, int letter=0,
                 bint exact=False, bint after_g=False):
        self.joint = joint
        self.names = names
        self.task.system = &joint.system
        self.task.action = ACTIONS[action]
        self.h = h
        self.task.kT = kT
        self.task.letter = letter
        self.task.exact = exact
        self.task.after_g = after_g
        self.task.has_points = joint.points > 0

    cdef int run(self, World* world) noexcept nogil:
        cdef int action = self.task.action, fault
        # Whoever writes from outside tells of it only afterwards; a flight leads away from what is known.
        self.task.known = (
            self.joint.world == world.number and self.joint.positions == world.positions
            and (action == START or action == TANGENT or action == NORMAL or action == LAUNCH)
        )
        self.task.factored = self.task.known and self.joint.factored == world.positions
        if action == START and self.task.known and self.joint.turns == 0 and self.joint.points == 0:
            return 0
        if self.joint.points > 0 and not self.task.after_g:
            place_points(world)
        self.task.h = self.h * world.pace
        if action == SETTLE:
            mark_moved(world)
        fault = over_blocks(_blocks, &self.task, world, self.joint.blocks, 1)
        if fault != 0 or action == SETTLE or action == LAUNCH:
            # The numbers of positions start with 1.
            self.joint.positions = self.joint.factored = 0
        else:
            self.joint.world = world.number
            self.joint.positions = world.positions
            self.joint.factored = 0 if action == START else world.positions
        if fault == CONSTRAINTS_LOST:
            world.fault.value = self.joint.system.off[world.fault.triangle]
        return fault


# The Fixman potential ------------------------------------------------------------------------------------------------
#
#     U = kT/2 [ln det T - sum_r ln |G_r|^2],   T = G M^-1 G^T,   G_r of the beads that move
#     dU/dx = kT sum_r H_r z_r,   z_r = M^-1 sum_k (T^-1)_rk G_k - G_r/|G_r|^2
#
# with the second derivatives H_r of row r. Programs give H_r z_r from coordinates and z_r.


cdef struct MetricTask:
    System* system
    const Function* functions
    const unsigned char* counts    # (components,) which have the potential
    double kT
    double* z                 # (entries, 3)
    double* energy            # (components,)
    double* registers         # (threads, room)
    Py_ssize_t room


cdef int _metric(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef MetricTask* t = <MetricTask*> task
    cdef System* s = t.system
    cdef double* registers = s.registers + thread * s.room
    cdef double* dense = s.dense + thread * s.longest
    cdef const Function* f
    cdef double energy, square
    cdef Py_ssize_t block, component, row, r, e, g, chunk, lane, lanes, failed, slot
    cdef int c, k, program, fault = 0
    for block in range(first, last):
        for component in range(s.blocks[block], s.blocks[block + 1]):
            _gather(s, component, world, False)
        _evaluate(s, block, registers)
        for component in range(s.blocks[block], s.blocks[block + 1]):
            t.energy[component] = 0.0
            if not t.counts[component]:
                continue
            _assemble(s, component, s.gradient, s.gradient, False)
            failed = _factorise(s, component, dense)
            if failed >= 0:
                fault |= _lost(s, world, failed, 0.0)
                continue
            energy = 0.0
            for row in range(s.rows[component], s.rows[component + 1]):
                square = 0.0
                for e in range(s.entries[row], s.entries[row + 1]):
                    if s.w[s.slot[e]] > 0.0:
                        square += dot(s.gradient + 3 * e, s.gradient + 3 * e)
                if world.want_energy:
                    energy += log_(s.matrix[s.diagonal[row]]) - log_(square)
                for r in range(s.rows[component], s.rows[component + 1]):
                    s.right[r] = 1.0 if r == row else 0.0
                _solve(s, component, s.right)
                for slot in range(3 * s.slots[component], 3 * s.slots[component + 1]):
                    s.u[slot] = 0.0
                _push(s, component, s.gradient, s.right, 1.0, s.u, 0.0, s.slot)
                for e in range(s.entries[row], s.entries[row + 1]):
                    for c in range(3):
                        t.z[3 * e + c] = 0.0
                        if s.w[s.slot[e]] > 0.0:
                            t.z[3 * e + c] = s.u[3 * <Py_ssize_t> s.slot[e] + c] - s.gradient[3 * e + c] / square
            t.energy[component] = 0.5 * t.kT * energy
        registers = t.registers + thread * t.room
        for g in range(s.groups[block], s.groups[block + 1]):
            program = s.group[3 * g]
            f = t.functions + program
            prepare(f, registers)
            lanes = s.group[3 * g + 2]
            for chunk in range(n_blocks(lanes - s.group[3 * g + 1], WIDTH)):
                lane = s.group[3 * g + 1] + WIDTH * chunk
                _load(s, lane, lanes, program, t.z, registers + WIDTH * f.n_constants)
                evaluate(f, registers)
                for k in range(min(lanes - lane, <Py_ssize_t> WIDTH)):
                    row = s.lane[lane + k]
                    for c in range(3 * s.beads[program]):
                        t.z[3 * <Py_ssize_t> s.entries[row] + c] = registers[WIDTH * f.outputs[c] + k]
        registers = s.registers + thread * s.room
        for component in range(s.blocks[block], s.blocks[block + 1]):
            for slot in range(3 * s.slots[component], 3 * s.slots[component + 1]):
                s.u[slot] = 0.0
            if not t.counts[component]:
                continue
            for e in range(s.entries[s.rows[component]], s.entries[s.rows[component + 1]]):
                add_scaled(-t.kT, t.z + 3 * e, s.u + 3 * <Py_ssize_t> s.slot[e])
            for slot in range(s.slots[component], s.slots[component + 1]):
                # One number added once: two equal forces give exactly twice one.
                if s.w[slot] > 0.0:
                    add_scaled(1.0, s.u + 3 * slot, world.f + 3 * <Py_ssize_t> s.place[slot])
    return fault


cdef class JointMetric(Operation):
    """The potential of those components that `counts`; programs give H z of each program of the system, `names` is as
    of JointConstraints. still (m,): slots of beads that do not move, sorted by place."""
    cdef JointSystem joint
    cdef MetricTask task
    cdef Functions functions
    cdef const unsigned char[::1] counts
    cdef const int32_t[::1] still
    cdef readonly object names

    def __init__(self, str name, JointSystem joint, programs, const unsigned char[::1] counts,
                 const int32_t[::1] still, double kT, int threads, names):
        self.name = name
        self.still = still
        self.names = names
        self.acts_on_points = False
        self.joint = joint
        self.functions = Functions(programs)
        self.counts = counts
        self.task.system = &joint.system
        self.task.functions = self.functions.function
        self.task.counts = &counts[0]
        self.task.kT = kT
        self.task.z = joint.work(3 * joint.entries)
        self.task.energy = joint.work(joint.system.components)
        self.task.room = WIDTH * self.functions.most_registers
        self.task.registers = joint.work(threads * self.task.room)

    cdef int run(self, World* world) noexcept nogil:
        cdef System* s = self.task.system
        cdef double sum[3]
        cdef Py_ssize_t i, k
        cdef int fault = over_blocks(_metric, &self.task, world, self.joint.blocks, 1)
        # Beads that do not move may be in several components: of each its slots, one after another.
        for i in range(self.still.shape[0]):
            if i == 0 or s.place[self.still[i]] != s.place[self.still[i - 1]]:
                sum[0] = sum[1] = sum[2] = 0.0
                k = i
                while k < self.still.shape[0] and s.place[self.still[k]] == s.place[self.still[i]]:
                    add_scaled(1.0, s.u + 3 * <Py_ssize_t> self.still[k], sum)
                    k += 1
                add_scaled(1.0, sum, world.f + 3 * <Py_ssize_t> s.place[self.still[i]])
        # A system of its own: what it holds is of no use to any other operation.
        self.energy = ordered_sum(self.task.energy, self.joint.system.components) if world.want_energy else 0.0
        return fault
