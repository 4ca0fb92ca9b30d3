"""The step program: an array of operations, run without the GIL; and the last good state of what it moves.

While it runs, the program copies the state now and then. After a fault the copy is put back and, runs being
repeatable to the bit, the steps up to the one that failed are taken again: the state is the last good one, however
long ago the copy was made.
"""
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from medyanpy._kernels.core.box cimport set_lengths
from medyanpy._kernels.core.program cimport (
    CONSTRAINTS_LOST, DEGENERATE_TRIANGLE, IN_WALL, LOST_COUNT, LOST_SURFACE, NO_DENSITY, NO_GEODESIC, NO_ROOM,
    NO_ROOT, NOT_CONVERGED, NOT_FINITE, NOT_SOLVED, OUT_OF_MEMORY, OUT_OF_TETHER, PYTHON_EXCEPTION,
    RATE_ABOVE_BOUND, RUNAWAY, TOO_CROWDED, TOO_CURVED, TOO_FAR, TOO_MANY_CROSSINGS, TOO_MANY_JUMPS, TOO_WIDE,
)
from medyanpy._kernels.core.vec3 cimport all_finite

cdef extern from * nogil:
    """
    #include <time.h>
    static double monotonic_seconds(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
    }
    """
    double monotonic_seconds()

cdef extern from "instruction_sets.h" nogil:
    int instruction_sets()

# Signals are looked for at least this often (s), as far as one step allows.
cdef double SIGNAL_INTERVAL = 0.05
# Copies of the state are made when signals are looked for, but take no more than this share of the time.
cdef double COPYING_SHARE = 0.01

# Variants of the hot kernels that this processor can run, the best last.
SUPPORTED = ("baseline", "avx2", "avx512")[:1 + instruction_sets()]

FAULTS = {
    NOT_FINITE: "not finite",
    TOO_MANY_CROSSINGS: "too many crossings",
    DEGENERATE_TRIANGLE: "degenerate triangle",
    PYTHON_EXCEPTION: "python",
    OUT_OF_MEMORY: "out of memory",
    NOT_CONVERGED: "not converged",
    LOST_SURFACE: "lost surface",
    NOT_SOLVED: "not solved",
    RUNAWAY: "runaway",
    TOO_MANY_JUMPS: "too many jumps",
    NO_ROOM: "no room",
    IN_WALL: "in wall",
    NO_ROOT: "no root",
    CONSTRAINTS_LOST: "constraints lost",
    TOO_FAR: "too far",
    NO_GEODESIC: "no geodesic",
    TOO_CURVED: "too curved",
    OUT_OF_TETHER: "out of tether",
    LOST_COUNT: "lost count",
    TOO_WIDE: "too wide",
    NO_DENSITY: "no density",
    TOO_CROWDED: "too crowded",
    RATE_ABOVE_BOUND: "rate above bound",
}


class ProgramFault(Exception):
    """An operation could not go on. For the Context, which tells the user in the user's words."""

    def __init__(self, kind, operation, step, bead, triangle, value):
        super().__init__(kind, operation, step, bead, triangle, value)
        self.kind = kind
        self.operation = operation
        self.step = step
        self.bead = bead
        self.triangle = triangle
        self.value = value
        # Kept here: the operation forgets it when it is run again.
        self.cause = None if operation is None else operation.error


cdef struct Product:
    const double* a           # (n, 3) by place
    double* out


cdef int _multiply(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil:
    """out += H a, block by block; the mirror of a block with i != j is not given."""
    cdef Product* t = <Product*> sink
    cdef int c, d
    for c in range(3):
        for d in range(3):
            t.out[3 * i + c] += block[3 * c + d] * t.a[3 * j + d]
            if i != j:
                t.out[3 * j + d] += block[3 * c + d] * t.a[3 * i + c]
    return 0


cdef int keep_diagonal(void* sink, Py_ssize_t i, Py_ssize_t j, const double* block) noexcept nogil:
    cdef double* out = <double*> sink
    cdef int c
    if i == j:
        for c in range(9):
            out[9 * i + c] += block[c]
    return 0


cdef class Operation:
    """One piece of a step. Subclasses override `run`."""

    def __cinit__(self, *args, **kwargs):
        self.name = type(self).__name__
        self.acts_on_points = True
        self.derivatives = 1
        self.repeatable = True

    cdef int run(self, World* world) noexcept nogil:
        return NO_FAULT

    @property
    def has_local_difference(self):
        """Whether what a change of a few beads gains is found without its whole energy."""
        return self.is_local()

    @property
    def tells_single_beads(self):
        """Whether the energy of one bead that comes or goes is found without the whole energy."""
        return self.tells_beads()

    # Whoever asks has looked at `derivatives` first.
    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return NO_FAULT

    cdef int stiffness(self, World* world, AddBlock add, void* sink) noexcept nogil:
        return self.hessian(world, add, sink)

    cdef int apart(
        self, World* world, bint positive, AddBlock add, void* sink, double* w, double* strength,
    ) noexcept nogil:
        strength[0] = 0.0
        return self.stiffness(world, add, sink) if positive else self.hessian(world, add, sink)

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        return NO_FAULT

    cdef int contract_stiffness(self, World* world, const double* a, double* out) noexcept nogil:
        return self.contract(world, a, out)

    cdef int multiply(self, World* world, bint positive, const double* a, double* out) noexcept nogil:
        cdef Product product = Product(a, out)
        if positive:
            return self.stiffness(world, _multiply, &product)
        return self.hessian(world, _multiply, &product)

    cdef int diagonal(self, World* world, double* out) noexcept nogil:
        return self.stiffness(world, keep_diagonal, out)

    cdef int difference(self, World* world, Change* change, double* out) noexcept nogil:
        cdef int wanted = world.want_energy
        cdef bint local = self.touch(world, change)
        cdef double before = 0.0
        cdef double after = 0.0
        cdef int fault = 0, failed
        cdef bint stops = False
        world.want_energy = 1
        if local and self.asked_last:
            fault = self.local_energy_now(world, change.most, &before)
            stops = self.is_positive and -before > change.most
            if fault == 0 and not stops:
                fault = change.swap(world, change)
                if fault == 0:
                    fault = self.local_energy(world, &after)
                    failed = change.swap(world, change)
                    fault = failed if fault == 0 else fault
            world.want_energy = wanted
            self.release()
            out[0] = INFINITY if stops else after - before
            return fault
        # What is measured last stays measured: that is the state of now.
        fault = change.swap(world, change)
        if fault == 0:
            fault = self.local_energy(world, &after) if local else self.whole(world, &after)
            failed = change.swap(world, change)
            fault = failed if fault == 0 else fault
        if fault == 0:
            fault = self.local_energy(world, &before) if local else self.whole(world, &before)
        world.want_energy = wanted
        if local:
            self.release()
        return fault if fault != 0 else self.gain(world, before, after, out)

    cdef int whole(self, World* world, double* out) noexcept nogil:
        cdef int fault = self.run(world)
        out[0] = self.energy
        return fault

    cdef bint tells_beads(self) noexcept nogil:
        return False

    cdef int of_bead(self, World* world, Py_ssize_t place, double* out) noexcept nogil:
        cdef int32_t own = <int32_t> place
        cdef int fault = energy_around(self, world, &own, 1, out)
        if fault == NOT_LOCAL:
            # There was no memory for its terms.
            if world.fault.code == NO_FAULT:
                world.fault.code = OUT_OF_MEMORY
                world.fault.bead = place
            fault = world.fault.code
        return fault

    cdef bint touch(self, World* world, const Change* change) noexcept nogil:
        return False

    cdef void release(self) noexcept nogil:
        pass

    cdef int local_energy(self, World* world, double* out) noexcept nogil:
        return NO_FAULT

    cdef int local_energy_now(self, World* world, double most, double* out) noexcept nogil:
        return self.local_energy(world, out)

    cdef int gain(self, World* world, double before, double after, double* out) noexcept nogil:
        # inf less inf is not a number: what is impossible after the change stays so.
        out[0] = after if after == INFINITY else after - before
        return NO_FAULT

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        pass

    cdef bint is_local(self) noexcept nogil:
        return False

    cdef bint changed(self, World* world, const Change* change) noexcept nogil:
        return False


cdef int energy_around(Operation force, World* world, const int32_t* places, Py_ssize_t n, double* out) noexcept nogil:
    cdef Change here
    cdef int fault
    memset(&here, 0, sizeof(Change))
    here.moved = places
    here.n_moved = n
    if not force.touch(world, &here):
        return NOT_LOCAL
    fault = force.local_energy(world, out)
    force.release()
    return fault


cdef class Sequence(Operation):
    """Operations, one after another, until one fails."""

    def __init__(self, list operations):
        cdef Py_ssize_t i
        for operation in operations:
            if not isinstance(operation, Operation):
                raise TypeError(f"{operation!r} is not an Operation")
        # A copy that nobody else holds: the pointers below are borrowed from it.
        self.operations = list(operations)
        self.count = len(operations)
        self.items = <PyObject**> malloc((self.count + 1) * sizeof(PyObject*))
        if self.items == NULL:
            raise MemoryError
        for i in range(self.count):
            self.items[i] = <PyObject*> self.operations[i]

    def __dealloc__(self):
        free(self.items)

    cdef int run(self, World* world) noexcept nogil:
        return self.run_some(world, 0, self.count)

    cdef int run_some(self, World* world, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t i
        cdef int fault
        for i in range(first, last):
            fault = (<Operation> self.items[i]).run(world)
            if fault != NO_FAULT:
                if world.fault.operation == NULL:
                    world.fault.operation = self.items[i]
                return fault
        return NO_FAULT


cdef inline double* _doubles(double[:, ::1] a) noexcept:
    return &a[0, 0] if a.shape[0] > 0 else NULL


cdef inline double* _vector(double[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


cdef inline int32_t* _integers(int32_t[::1] a) noexcept:
    return &a[0] if a.shape[0] > 0 else NULL


cdef inline int32_t* _triples(int32_t[:, ::1] a) noexcept:
    return &a[0, 0] if a.shape[0] > 0 else NULL


# How many have been made. Programs may share arrays and operations, and come and go: their addresses do not tell them
# apart.
cdef long long worlds = 0


cdef class Program:
    """The arrays of one Context, and the operations that advance them.

    The caller has checked every shape and owns the arrays; they are used in place.
    """

    def __cinit__(
        self,
        *,
        double[:, ::1] x,
        double[:, ::1] v,
        double[::1] mass,
        double[::1] inverse_mass,
        int32_t[::1] bead,
        Py_ssize_t n_vertices,
        int32_t[:, ::1] faces,
        int32_t[:, ::1] opposite,
        int32_t[::1] triangle,
        double[:, ::1] barycentric,
        bint membranes_move,
        uint64_t seed,
        int threads,
        Py_ssize_t first_oriented=0,
        double[:, ::1] orientation=None,
        double[:, ::1] spin=None,
        double[:, ::1] inverse_inertia=None,
        momenta=(),
        Operation room=None,
        double[::1] box=None,
        int32_t[::1] subunits=None,
        int32_t[::1] material=None,
    ):
        cdef World* w = &self.world
        cdef double[:, ::1] p
        cdef double[:, ::1] inverse
        self.arrays = (
            x, v, mass, inverse_mass, bead, faces, opposite, triangle, barycentric, orientation, spin, inverse_inertia,
            momenta, box, subunits, material,
        )
        self.word = Sequence([])
        w.step = 0
        global worlds
        worlds += 1
        w.number = worlds
        w.positions = w.places = w.newest = 1
        w.written = 0
        w.placed = 0
        w.last = 0
        w.pace = 1.0
        w.threads = threads
        w.seed = seed
        w.box.periodic = 0
        for first in range(3):
            w.box.length[first] = w.box.inverse[first] = 0.0
        w.box_length = NULL if box is None else _vector(box)
        w.n = x.shape[0]
        w.n_points = triangle.shape[0]
        w.n_cartesian = w.n - w.n_points
        w.n_vertices = n_vertices
        w.first_oriented = first_oriented
        w.n_oriented = 0 if orientation is None else orientation.shape[0]
        w.orientation = NULL if orientation is None else _doubles(orientation)
        w.spin = NULL if spin is None else _doubles(spin)
        w.inverse_inertia = NULL if inverse_inertia is None else _doubles(inverse_inertia)
        w.n_momenta = 0
        w.momenta = <Momenta*> malloc((len(momenta) + 1) * sizeof(Momenta))
        if w.momenta == NULL:
            raise MemoryError
        if w.n_oriented > 0:
            w.momenta[0] = Momenta(first_oriented, w.n_oriented, 3, w.spin, w.inverse_inertia, NULL)
            w.n_momenta = 1
        for first, p, inverse in momenta:
            w.momenta[w.n_momenta] = Momenta(first, p.shape[0], p.shape[1], _doubles(p), _doubles(inverse), NULL)
            w.n_momenta += 1
        w.n_faces = faces.shape[0]
        w.x = _doubles(x)
        w.v = _doubles(v)
        w.mass = _vector(mass)
        w.inverse_mass = _vector(inverse_mass)
        w.bead = w.id = _integers(bead)
        w.id_high = NULL
        w.alive = NULL
        w.living = NULL
        w.row_changes = NULL
        w.species = NULL
        w.subunits = NULL if subunits is None else _integers(subunits)
        w.material = NULL if material is None else _integers(material)
        w.grown = 0
        self.room = room
        self.take_over()
        w.faces = _triples(faces)
        w.opposite = _triples(opposite)
        w.triangle = _integers(triangle)
        w.barycentric = _doubles(barycentric)
        w.membranes_move = membranes_move
        self.kept = NULL
        self.n_kept = 0
        self.kept_step = -1
        self.admit = None
        self.between = None
        self.remember([])
        w.f = NULL
        w.torque = NULL
        w.want_energy = 0

    @property
    def step(self):
        return self.world.step

    @step.setter
    def step(self, long long value):
        self.world.step = value
        self.kept_step = -1

    @property
    def operations(self):
        """Those that make up one step."""
        return list(self.word.operations)

    @property
    def threads(self):
        return self.world.threads

    @property
    def seed(self):
        return self.world.seed

    @seed.setter
    def seed(self, uint64_t value):
        self.world.seed = value

    def changed(self):
        """Say that somebody has written into the arrays of the state."""
        mark_moved(&self.world)
        self.world.written += 1
        self.kept_step = -1
        self.take_over()

    cdef int take_over(self) except -1:
        """The arrays have been written to: what the World holds of them beside is that of now."""
        if self.world.box_length != NULL:
            set_lengths(&self.world.box, self.world.box_length)
        if self.room is not None:
            self.check(self.room.run(&self.world))
        return 0

    def load(self, list operations):
        """Replace the operations that make up one step."""
        self.word = Sequence(operations)
        # A copy is of use only with the operations that led on from it.
        self.kept_step = -1

    # The last good state ------------------------------------------------------------------------------------

    def __dealloc__(self):
        self.free_copy()
        free(self.world.momenta)

    cdef void free_copy(self) noexcept:
        cdef Py_ssize_t k
        for k in range(self.n_kept):
            free(self.kept[k].copy)
        free(self.kept)
        self.kept = NULL
        self.n_kept = 0

    def remember(self, list arrays):
        """Name the arrays (C-contiguous, any type) that steps change: together with the step number, the state."""
        cdef unsigned char[::1] content
        cdef Py_ssize_t k
        arrays = [a for a in arrays if a.size]
        self.free_copy()
        self.kept_step = -1
        self.state = arrays
        self.kept = <Kept*> malloc((len(arrays) + 1) * sizeof(Kept))
        if self.kept == NULL:
            raise MemoryError
        for k, a in enumerate(arrays):
            content = a.reshape(-1).view("u1")
            self.kept[k].live = <char*> &content[0]
            self.kept[k].bytes = content.shape[0]
            self.kept[k].doubles = a.dtype == "f8"
            self.kept[k].copy = <char*> malloc(content.shape[0])
            if self.kept[k].copy == NULL:
                raise MemoryError
            self.n_kept = k + 1

    cdef bint is_finite(self) noexcept nogil:
        """Whether all numbers of the state are."""
        cdef Kept* kept
        cdef Py_ssize_t k
        for k in range(self.n_kept):
            kept = &self.kept[k]
            if kept.doubles and not all_finite(<const double*> kept.live, kept.bytes // sizeof(double)):
                return False
        return True

    def keep(self):
        """Copy the state, if it is one to go back to: a state with numbers that are not finite is not."""
        cdef double started = monotonic_seconds()
        cdef Py_ssize_t k
        with nogil:
            if self.is_finite():
                for k in range(self.n_kept):
                    memcpy(self.kept[k].copy, self.kept[k].live, self.kept[k].bytes)
                self.kept_step = self.world.step
            self.kept_at = monotonic_seconds()
            self.copying = self.kept_at - started

    def keep_if_due(self):
        """Copy the state if there is no copy, or if the last is old enough."""
        if self.kept_step < 0 or monotonic_seconds() - self.kept_at > max(
            SIGNAL_INTERVAL, self.copying / COPYING_SHARE
        ):
            self.keep()

    def restore(self):
        """Go back to the copy, if there is one."""
        cdef Py_ssize_t k
        # What failed may have been in the middle of a step.
        self.world.pace = 1.0
        if self.kept_step < 0:
            return
        for k in range(self.n_kept):
            memcpy(self.kept[k].live, self.kept[k].copy, self.kept[k].bytes)
        self.world.step = self.kept_step
        mark_moved(&self.world)
        self.world.written += 1
        self.take_over()

    def recover(self, bint replay):
        """After a fault of `run`: go back to the copy and, if asked, forward to the last good state.

        That is the state before the step that failed; a step earlier where that one is not finite, because nothing
        looks at positions after the last letter A of a step. `step` tells which it is. ProgramFault where what follows
        the state cannot: the state is the copy then.
        """
        cdef long long aim = self.world.step, bad = self.world.step + 1
        self.clear_fault()
        self.restore()
        # The state is good at the step of the copy, and not at `bad`: halved until these are neighbours.
        while replay and 0 <= self.kept_step < bad - 1:
            if self.go_on(aim - self.world.step) != NO_FAULT:
                # The run has not repeated itself. As far as it came, it was good.
                aim = self.world.step
                bad = aim + 1
                self.clear_fault()
                self.restore()
                continue
            if self.is_finite():
                self.keep()
            else:
                bad = aim
                self.restore()
            aim = (self.kept_step + bad) // 2

    # Running ------------------------------------------------------------------------------------------------

    cdef int clear_fault(self) except -1:
        self.world.fault.code = NO_FAULT
        self.world.fault.bead = -1
        self.world.fault.triangle = -1
        self.world.fault.value = 0.0
        self.world.fault.operation = NULL
        return 0

    cdef int check(self, int fault) except -1:
        cdef Operation operation = None
        if fault == NO_FAULT:
            return 0
        if self.world.fault.operation != NULL:
            operation = <Operation> self.world.fault.operation
        raise ProgramFault(
            FAULTS.get(fault, f"fault {fault}"), operation, self.world.step,
            self.world.fault.bead, self.world.fault.triangle, self.world.fault.value,
        )

    def perform(self, Operation operation, bint changes_state=True):
        """Run one operation now, outside any step."""
        cdef Sequence once = Sequence([operation])
        cdef int fault
        self.clear_fault()
        if changes_state:
            self.kept_step = -1
        with nogil:
            fault = once.run(&self.world)
        self.check(fault)

    def run(self, long long n):
        """Take n steps. Raises ProgramFault, or what a signal handler raises, between two steps."""
        self.clear_fault()
        self.check(self.go_on(n))

    cdef int go_on(self, long long n) except? -1:
        """`advance`, and on after steps that leave a bead with more energy than the watch passes, if `admit` does."""
        cdef long long target = self.world.step + n
        cdef Fault found
        cdef int fault
        while True:
            fault = self.advance(target - self.world.step)
            if fault != RUNAWAY or self.admit is None:
                return fault
            found = self.world.fault
            # The watch is the last operation: the step is done, also where `admit` is interrupted.
            self.clear_fault()
            self.world.step += 1
            if not self.admit(found.bead, found.value):
                self.world.step -= 1
                # Whoever asked may have run operations.
                self.world.fault = found
                return fault

    def trace(self, Py_ssize_t bead):
        """Run the word once, and tell what the kinetic energy of a bead is after each of its operations.

        Returns (k + 1,) floats, the first before any; shorter where an operation fails. The step is not counted: the
        caller has made a copy of the state, and goes back to it.
        """
        cdef list energies = [self.kinetic_energy(bead)]
        for operation in self.word.operations:
            try:
                self.perform(operation, changes_state=False)
            except ProgramFault:
                break
            energies.append(self.kinetic_energy(bead))
        return energies

    cdef double kinetic_energy(self, Py_ssize_t bead) noexcept:
        """Of one bead: of its motion, and of its other momenta."""
        cdef World* w = &self.world
        cdef Momenta* m
        cdef double energy = 0.0
        cdef Py_ssize_t k, i, row
        for i in range(3 * bead, 3 * bead + 3):
            energy += 0.5 * w.mass[bead] * w.v[i] * w.v[i]
        for k in range(w.n_momenta):
            m = &w.momenta[k]
            row = bead - m.first
            if 0 <= row < m.n:
                for i in range(m.width * row, m.width * (row + 1)):
                    energy += 0.5 * m.inverse_mass[i] * m.p[i] * m.p[i]
        return energy

    cdef int advance(self, long long n) except? -1:
        """Take n steps, or as many as go well: 0, or the code of the fault."""
        cdef Sequence word = self.word
        cdef long long done = 0, chunk = 1, end
        cdef int fault = NO_FAULT
        cdef double started
        try:
            while done < n:
                self.keep_if_due()
                end = min(n, done + chunk)
                with nogil:
                    started = monotonic_seconds()
                    while done < end:
                        self.world.last = done == n - 1
                        fault = word.run(&self.world)
                        if fault != NO_FAULT:
                            break
                        self.world.step += 1
                        done += 1
                    # Halve or double: the clock is read a few times per interval, however long a step takes.
                    if monotonic_seconds() - started < 0.25 * SIGNAL_INTERVAL:
                        chunk *= 2
                    elif chunk > 1:
                        chunk //= 2
                if fault != NO_FAULT:
                    return fault
                PyErr_CheckSignals()
                if self.between is not None:
                    self.between()
        finally:
            self.world.last = 0
        return NO_FAULT
