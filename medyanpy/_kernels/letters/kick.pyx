"""The letter B: kick by the potential.

    free bead         v += h F / M
    oriented bead     the same, and L += h T, torque and angular momentum in the frame of the body
    other momenta     p += h f likewise, with what forces add for them
    in-triangle point p_lambda += h A^T f, that is, v += h P f / m with P the projection into its plane,
                      and lambda_i f on corner i of its triangle (the chain rule through r = sum_i lambda_i R_i)

Points cannot change triangle during B, so both parts follow from one evaluation of the forces.
Source: BAGOGAB, equations of motion, p_lambda' and P_i'.
"""
import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from medyanpy._kernels.core.accumulate cimport Accumulator, Groups, Sum, group_end, note, scale_at, to_grid
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.beads.points cimport Frame, frame_of, place, project
from medyanpy._kernels.core.program cimport (
    NOT_FINITE, PYTHON_EXCEPTION, WATCHED, Momenta, Operation, Program, Sequence, World, is_there,
)
from medyanpy._kernels.core.runs cimport next_run
from medyanpy._kernels.core.vec3 cimport all_finite, all_slow

cdef Py_ssize_t POINTS = 1024
# Evaluations that keep a part once more after it was of use.
cdef int KEEPING = 2


cdef struct PassOn:
    const double* f
    Groups groups
    Sum* sums
    Py_ssize_t n_sums


cdef int _largest_force(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Note the largest squared forces."""
    cdef PassOn* t = <PassOn*> task
    cdef const double* f
    cdef double square, largest
    cdef Py_ssize_t p, end
    while first < last:
        largest = 0.0
        end = group_end(&t.groups, first, last)
        for p in range(first, end):
            f = t.f + 3 * (world.n_cartesian + p)
            square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2]
            if not (square - square == 0.0):
                return record_fault(world, NOT_FINITE, world.n_cartesian + p, -1)
            if square > largest:
                largest = square
        note(&t.groups, thread, first, largest)
        first = end
    return 0


cdef int _pass_on(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    """Give lambda_i f of each point to the corners of its triangle."""
    cdef PassOn* t = <PassOn*> task
    cdef Sum* sums = t.sums + 3 * t.n_sums * thread
    cdef const double* f
    cdef const int32_t* corners
    cdef double weight[3]
    cdef double scale
    cdef Py_ssize_t p, end
    cdef int i, c
    while first < last:
        end = group_end(&t.groups, first, last)
        scale = scale_at(&t.groups, first)
        for p in range(first, end):
            f = t.f + 3 * (world.n_cartesian + p)
            corners = world.faces + 3 * <Py_ssize_t> world.triangle[p]
            weight[1] = world.barycentric[2 * p]
            weight[2] = world.barycentric[2 * p + 1]
            weight[0] = 1.0 - weight[1] - weight[2]
            for i in range(3):
                for c in range(3):
                    sums[3 * <Py_ssize_t> corners[i] + c] += to_grid(weight[i] * f[c], scale)
        first = end
    return 0


cdef void _keep(double* now, double* kept, Py_ssize_t n, bint back) noexcept nogil:
    if n > 0:
        memcpy(now if back else kept, kept if back else now, n * sizeof(double))


cdef class ForceSum(Operation):
    """The forces of one or more groups."""

    def __init__(self, list forces, double[:, ::1] f, list drives, double[:, ::1] chain, Accumulator corners):
        cdef double[:, ::1] a
        cdef Py_ssize_t k
        self.f = f
        self.drives = list(drives)
        self.drive = <double**> malloc((len(drives) + 1) * sizeof(double*))
        self.kept_drive = <double**> malloc((len(drives) + 1) * sizeof(double*))
        if self.drive == NULL or self.kept_drive == NULL:
            raise MemoryError
        self.kept_f = None
        for k in range(len(drives)):
            a = self.drives[k]
            self.drive[k] = &a[0, 0] if a.shape[0] > 0 else NULL
        self.chain = chain
        self.corners = corners
        self.take(forces)

    def __dealloc__(self):
        free(self.drive)
        free(self.kept_drive)

    def take(self, list forces):
        """Add up these forces from now on."""
        cdef Operation force
        cdef double[:, ::1] a
        cdef Py_ssize_t k
        self.forces = Sequence(forces)
        self.energies, self.kept_energies = np.zeros((2, len(forces) + 1))
        self.evaluated = self.measured = 0
        self.places = self.kept_at = 0
        self.keeps = self.n_lasting = 0
        for force in forces:
            if force.has_links:
                break
            self.n_lasting += 1
        else:
            self.n_lasting = 0
        if self.n_lasting > 0 and self.kept_f is None:
            self.kept_f = np.empty_like(self.f)
            self.kept_drives = [np.empty_like(a) for a in self.drives]
            for k in range(len(self.drives)):
                a = self.kept_drives[k]
                self.kept_drive[k] = &a[0, 0] if a.shape[0] > 0 else NULL
        self.acts_on_points = any(force.acts_on_points for force in forces)

    @property
    def f_array(self):
        """(n, 3) the sum as last evaluated, by place."""
        return np.asarray(self.f)

    @property
    def drive_arrays(self):
        """What drives each of the momenta beside m v, likewise: (n_oriented, 3) torques, in the frame of each body,
        first."""
        return list(self.drives)

    @property
    def arrays(self):
        """All that it has added up."""
        return [self.f_array, *self.drives, np.asarray(self.chain)]

    def refresh(self, Program program, bint want_energy):
        """Evaluate now if beads have moved, or in any case if energies are wanted."""
        if want_energy:
            self.evaluated = 0
        program.world.want_energy = want_energy
        try:
            program.perform(self, changes_state=False)
        finally:
            program.world.want_energy = 0

    def alone(self, Program program, Operation force):
        """Leave the contribution of one force in f. What was there is forgotten."""
        self.evaluated = 0
        self.clear(&program.world)
        program.perform(force, changes_state=False)

    cdef void point(self, World* world) noexcept nogil:
        """Let forces be added here."""
        cdef Py_ssize_t k
        world.f = &self.f[0, 0]
        for k in range(world.n_momenta):
            world.momenta[k].force = self.drive[k]
        if world.n_oriented > 0:
            world.torque = world.momenta[0].force

    cdef void clear(self, World* world) noexcept nogil:
        cdef Momenta* m
        cdef Py_ssize_t k
        self.point(world)
        memset(world.f, 0, 3 * world.n * sizeof(double))
        for k in range(world.n_momenta):
            m = &world.momenta[k]
            memset(m.force, 0, m.width * m.n * sizeof(double))

    cdef void exchange(self, World* world, bint back) noexcept nogil:
        """Keep what has been added up; or put it back."""
        cdef Py_ssize_t k
        _keep(&self.f[0, 0], &self.kept_f[0, 0], 3 * world.n, back)
        for k in range(world.n_momenta):
            _keep(self.drive[k], self.kept_drive[k], world.momenta[k].width * world.momenta[k].n, back)
        for k in range(self.n_lasting):
            if back:
                (<Operation> self.forces.items[k]).energy = self.kept_energies[k]
            else:
                self.kept_energies[k] = (<Operation> self.forces.items[k]).energy

    cdef int run(self, World* world) noexcept nogil:
        if self.forces.count == 0 or self.evaluated == world.positions:
            return 0
        return self.evaluate(world)

    cdef int evaluate(self, World* world) noexcept nogil:
        cdef int fault = 0, wanted = world.want_energy
        cdef Py_ssize_t k, first = 0
        if self.acts_on_points:
            place(world)
        world.want_energy |= world.soon
        if self.n_lasting > 0 and self.evaluated != 0 and self.places == world.places:
            # Links alone are others: from now on this is worth to be prepared for.
            self.keeps = KEEPING
            if self.kept_at == world.places and (self.has_kept_energies or not world.want_energy):
                self.point(world)
                self.exchange(world, True)
                first = self.n_lasting
        if first == 0:
            self.clear(world)
            if self.keeps > 0:
                first = self.n_lasting
                fault = self.forces.run_some(world, 0, first)
                if fault == 0:
                    self.exchange(world, False)
                    self.kept_at = world.places
                    self.has_kept_energies = world.want_energy
                    self.keeps -= 1
        if fault == 0:
            fault = self.forces.run_some(world, first, self.forces.count)
        if world.want_energy and fault == 0:
            for k in range(self.forces.count):
                self.energies[k] = (<Operation> self.forces.items[k]).energy
            self.measured = world.positions
        world.want_energy = wanted
        if fault == 0 and self.acts_on_points and world.membranes_move:
            fault = self.pass_on(world)
        if fault == 0:
            self.evaluated = world.positions
            self.places = world.places
        return fault

    cdef int pass_on(self, World* world) noexcept nogil:
        cdef PassOn task
        cdef int fault
        task.f = &self.f[0, 0]
        task.groups = self.corners.groups
        self.corners.forget_bounds()
        fault = over_blocks(_largest_force, &task, world, world.n_points, POINTS)
        if fault != 0:
            return fault
        self.corners.set_bounds()
        task.sums = self.corners.sums
        task.n_sums = self.corners.n
        over_blocks(_pass_on, &task, world, world.n_points, POINTS)
        self.corners.collect(world, &self.chain[0, 0], NULL, True)
        return 0


cdef struct KickTask:
    const double* f
    const double* chain       # NULL where no point has passed anything on
    const double* rate        # (n,) what a force changes velocities by: inverse masses, or others given
    const Momenta* momenta
    const double* drive
    double h
    const double* limit       # (n,) squared speed; NULL where nobody wants to know
    signed char* calm


cdef int _kick_beads(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef KickTask* t = <KickTask*> task
    cdef const double* f = t.f
    cdef const double* chain = t.chain
    cdef double* v = world.v
    cdef double s, h = t.h
    cdef Py_ssize_t i, k, end, first_plain, block = first // WATCHED
    cdef bint calm = t.limit != NULL
    cdef bint slow
    while first < last:
        end = next_run(world, &first, last)
        first_plain = first
        if chain != NULL and first < world.n_vertices:
            first_plain = min(end, world.n_vertices)
            for i in range(first, first_plain):
                s = h * t.rate[i]
                for k in range(3 * i, 3 * i + 3):
                    v[k] += s * (f[k] + chain[k])
        for i in range(first_plain, end):
            s = h * t.rate[i]
            for k in range(3 * i, 3 * i + 3):
                v[k] += s * f[k]
        slow = t.limit != NULL and all_slow(v + 3 * first, t.limit + first, end - first)
        calm = calm and slow
        # What is slow is finite.
        if not slow and not all_finite(v + 3 * first, 3 * (end - first)):
            for i in range(first, end):
                if not all_finite(v + 3 * i, 3):
                    return record_fault(world, NOT_FINITE, i, -1)
        first = end
    if t.limit != NULL:
        t.calm[block] = calm
    return 0


cdef int _kick_momenta(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef KickTask* t = <KickTask*> task
    cdef const double* drive = t.drive
    cdef const double* rate = t.momenta.inverse_mass
    cdef double* p = t.momenta.p
    cdef double h = t.h
    cdef Py_ssize_t i, width = t.momenta.width
    for i in range(width * first, width * last):
        p[i] += (h if rate[i] > 0.0 else 0.0) * drive[i]
    if all_finite(p + width * first, width * (last - first)):
        return 0
    for i in range(first, last):
        if not all_finite(p + width * i, width):
            return record_fault(world, NOT_FINITE, t.momenta.first + i, -1)
    return 0


cdef int _kick_points(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef KickTask* t = <KickTask*> task
    cdef const double* f
    cdef double* v
    cdef double u[3]
    cdef double s
    cdef Frame frame
    cdef Py_ssize_t p, i
    for p in range(first, last):
        i = world.n_cartesian + p
        if not is_there(world, i):
            continue
        f = t.f + 3 * i
        s = t.h * t.rate[i]
        v = world.v + 3 * i
        frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> world.triangle[p], &frame)
        u[0] = v[0] + s * f[0]
        u[1] = v[1] + s * f[1]
        u[2] = v[2] + s * f[2]
        # v is in the plane already; projecting the sum keeps rounding from building up across it.
        project(&frame, u)
        v[0] = u[0]
        v[1] = u[1]
        v[2] = u[2]
        if not (0.0 * (u[0] + u[1] + u[2]) == 0.0):
            return record_fault(world, NOT_FINITE, i, world.triangle[p])
    return 0


cdef class KickRule:
    cdef int replace(self, World* world, ForceSum forces, const double** f) noexcept nogil:
        f[0] = &forces.f[0, 0]
        return 0


cdef class Kick(Operation):
    """B for a time h by the forces of a ForceSum, or by what a rule makes of them; with other rates (n,) in place of
    inverse masses, where they are given."""

    def __init__(self, ForceSum forces, double h, KickRule rule=None, const double[::1] rates=None):
        self.forces = forces
        self.h = h
        self.rule = rule
        self.rates = rates
        self.tell(np.empty(0), np.empty(0, np.int8))

    def tell(self, const double[::1] limit, signed char[::1] calm):
        """Compare velocities on the way, for a watch that comes next; see there."""
        self.limit = limit
        self.calm = calm

    cdef int run(self, World* world) noexcept nogil:
        cdef KickTask task
        cdef Py_ssize_t k
        cdef int fault = self.forces.run(world)
        if fault != 0 or self.forces.forces.count == 0:
            return fault
        task.f = &self.forces.f[0, 0]
        if self.rule is not None:
            fault = self.rule.replace(world, self.forces, &task.f)
            if fault == PYTHON_EXCEPTION:
                with gil:
                    self.error = self.rule.error
            if fault != 0:
                return fault
        task.chain = NULL
        if self.forces.acts_on_points and world.membranes_move:
            task.chain = &self.forces.chain[0, 0]
        task.rate = world.inverse_mass
        if self.rates is not None:
            task.rate = &self.rates[0]
        task.h = self.h * world.pace
        task.limit = &self.limit[0] if self.limit.shape[0] > 0 else NULL
        task.calm = &self.calm[0] if self.limit.shape[0] > 0 else NULL
        fault = over_blocks(_kick_beads, &task, world, world.n_cartesian, WATCHED)
        for k in range(world.n_momenta):
            if fault == 0:
                task.momenta = &world.momenta[k]
                task.drive = self.forces.drive[k]
                fault = over_blocks(_kick_momenta, &task, world, task.momenta.n, WATCHED)
        if fault == 0 and self.forces.acts_on_points:
            fault = over_blocks(_kick_points, &task, world, world.n_points, POINTS)
        return fault


cdef class KickForce(Operation):
    """Let a rule find the force to kick by where beads are now."""

    def __init__(self, ForceSum forces, KickRule rule):
        self.forces = forces
        self.rule = rule

    cdef int run(self, World* world) noexcept nogil:
        cdef const double* f
        return self.find(world, &f)

    cdef int find(self, World* world, const double** f) noexcept nogil:
        cdef int fault = self.forces.run(world)
        if fault == 0:
            fault = self.rule.replace(world, self.forces, f)
        if fault == PYTHON_EXCEPTION:
            with gil:
                self.error = self.rule.error
        return fault
