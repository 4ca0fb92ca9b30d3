"""Trial moves of jumps: what a change of a few beads or edges gains, and making it.

A jump describes the other state by a Change, asks `Weights.gain`, and where it accepts calls `Weights.make`. What a
force is asked (`ASK`...) is found by who binds it. Forces that cannot mend what they hold of triangles are bound again
for each attempt, in Python; those that have been are handed back at the end of the letter.
"""
import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport INFINITY
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from medyanpy._kernels.beads.points cimport place
from medyanpy._kernels.core.changes cimport swap
from medyanpy._kernels.core.parallel cimport record_fault
from medyanpy._kernels.core.program cimport (
    NOT_FINITE, NOT_LOCAL, Operation, Program, PYTHON_EXCEPTION, Quad, World, energy_around, mark_grown,
)
from medyanpy._kernels.jumps.jump cimport Draws, JumpOperation, draw_two, wait
from medyanpy._kernels.core.elementary cimport exp_


# What a force is asked for each attempt.
cpdef enum Ask:
    NOTHING = 0               # it does not depend on what changes
    OF_POINTS = 1             # it depends on where points are
    DIFFERENCE = 2            # it knows itself what the change does to it, and mends what it holds
    REBIND = 3                # it holds what it cannot mend: it is bound again


def can_mend(Program program not None, Operation force not None):
    """Whether an operation follows flips by itself; asked with a change of nothing."""
    cdef Change change
    memset(&change, 0, sizeof(Change))
    change.swap = swap
    return force.changed(&program.world, &change)


cdef class Weights:
    """The operations of all forces of a context, and what to ask each; `rebind(k)` binds one again, and
    `hand_back({k: operation})` takes those that have been.

    Parameters
    ----------
    owner : JumpOperation
        That holds this.
    n, momenta
        See `WorkSpace`.
    """

    def __init__(self, JumpOperation owner not None, Py_ssize_t n, momenta):
        self.owner = <PyObject*> owner
        self.space = WorkSpace(n, momenta)
        self.take([], [], None, None)

    def __dealloc__(self):
        free(self.items)

    def take(self, list forces, list asks, rebind, hand_back):
        cdef PyObject** items = <PyObject**> realloc(self.items, (len(forces) + 1) * sizeof(PyObject*))
        cdef Operation last
        cdef Py_ssize_t k
        if items == NULL:
            raise MemoryError
        self.items = items
        self.n_forces = len(forces)
        self.n_rebound = sum(ask == REBIND for ask in asks)
        self.forces = list(forces)
        for k in range(self.n_forces):
            items[k] = <PyObject*> self.forces[k]
        self.asks = np.array([*asks, 0], np.int32)
        # Those that take longest last: what is impossible need not be asked further.
        added = [k for k, ask in enumerate(asks) if ask != NOTHING]
        added.sort(key=lambda k: (asks[k] == REBIND, not (<Operation> self.forces[k]).asked_first))
        order = sorted(added, key=lambda k: (asks[k] == REBIND, (<Operation> self.forces[k]).asked_last))
        self.n_asked = len(order)
        self.order = np.array([*order, 0], np.int32)
        self.rank = np.array([*map(added.index, order), 0], np.int32)
        self.gained = np.zeros(self.n_asked + 1)
        self.may_stop = False
        if order and asks[order[len(order) - 1]] != REBIND:
            last = self.forces[order[len(order) - 1]]
            self.may_stop = last.asked_last and last.is_positive
        self.fresh = {}
        self.rebound = {}
        self.rebind = rebind
        self.hand_back = hand_back

    cdef int enter(self, World* world) noexcept nogil:
        self.space.enter(world)
        return place(world)

    cdef int leave(self, World* world) noexcept nogil:
        cdef int fault = 0
        self.space.leave(world)
        if self.n_rebound > 0:
            with gil:
                fault = self.give_back(world) if self.rebound else 0
        return fault

    cdef int gain(self, World* world, Change* change, double* energy) noexcept nogil:
        return self.gain_below(world, change, INFINITY, energy)

    cdef int gain_below(self, World* world, Change* change, double most, double* energy) noexcept nogil:
        cdef double gained
        cdef double* all = &self.gained[0]
        cdef Py_ssize_t i, k
        cdef int fault, ask
        cdef bint flips
        energy[0] = 0.0
        for i in range(self.n_asked):
            k = self.order[i]
            ask = self.asks[k]
            all[self.rank[i]] = gained = 0.0
            if ask == OF_POINTS and change.n_moved == 0:
                continue
            # Of the last alone it is known what all others gain.
            change.most = most - energy[0] if i == self.n_asked - 1 else INFINITY
            if ask == REBIND:
                with gil:
                    fault = self.ask_rebound(world, change, k, &gained)
            else:
                fault = (<Operation> self.items[k]).difference(world, change, &gained)
            if fault != 0:
                if world.fault.operation == NULL:
                    world.fault.operation = self.items[k]
                return fault
            if gained == INFINITY:
                energy[0] = INFINITY
                return 0
            if not (gained - gained == 0.0):
                world.fault.operation = self.items[k]
                flips = change.n_flips > 0
                return record_fault(world, NOT_FINITE, change.quads[0].c if flips else change.moved[0],
                                    change.quads[0].first if flips else -1)
            energy[0] += gained
            all[self.rank[i]] = gained
        energy[0] = 0.0
        for i in range(self.n_asked):
            energy[0] += all[i]
        return 0

    cdef void fetch(self, World* world, const Quad* quad) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_forces):
            if self.asks[k] == DIFFERENCE:
                (<Operation> self.items[k]).fetch(world, quad)

    cdef int make(self, World* world, Change* change) noexcept nogil:
        cdef Py_ssize_t k
        cdef int ask, fault = change.swap(world, change)
        if fault != 0:
            return fault
        for k in range(change.n_links):
            mark_grown(world, change.links[k])
        for k in range(self.n_forces):
            ask = self.asks[k]
            # Also where no bead has moved: what is kept of neighbours holds for this state too.
            if ask == DIFFERENCE or ask == OF_POINTS:
                (<Operation> self.items[k]).changed(world, change)
        if self.n_rebound > 0:
            with gil:
                self.keep_fresh()
        return 0

    cdef int around(
        self, World* world, const int32_t* places, Py_ssize_t n, double* every, double* asked,
    ) noexcept nogil:
        cdef double energy
        cdef Py_ssize_t k
        cdef int wanted = world.want_energy, fault = 0
        world.want_energy = 1
        every[0] = asked[0] = 0.0
        for k in range(self.n_forces):
            energy = 0.0
            if fault == 0:
                fault = energy_around(<Operation> self.items[k], world, places, n, &energy)
                if fault == NOT_LOCAL:
                    fault = (<Operation> self.items[k]).whole(world, &energy)
                if fault != 0 and world.fault.operation == NULL:
                    world.fault.operation = self.items[k]
            every[0] += energy
            asked[0] += energy if self.asks[k] != NOTHING else 0.0
        world.want_energy = wanted
        return fault

    cdef int ask_rebound(self, World* world, Change* change, Py_ssize_t k, double* gained) noexcept:
        """The whole energy before, and that of the force bound again after."""
        cdef Operation now = self.forces[k]
        cdef Operation then
        cdef int wanted = world.want_energy
        cdef int fault, failed
        world.want_energy = 1
        fault = now.run(world)
        if fault == 0:
            fault = change.swap(world, change)
            if fault == 0:
                try:
                    then = self.rebind(k)
                    fault = then.run(world)
                    gained[0] = then.energy - now.energy
                    self.fresh[k] = then
                except BaseException as error:
                    fault = self.raised(world, error)
                failed = change.swap(world, change)
                fault = failed if fault == 0 else fault
        world.want_energy = wanted
        return fault

    cdef void keep_fresh(self) noexcept:
        """These hold the triangles that there are now."""
        for k, operation in self.fresh.items():
            self.forces[k] = operation
            self.items[k] = <PyObject*> operation
            self.rebound[k] = operation
        self.fresh.clear()

    cdef int give_back(self, World* world) noexcept:
        try:
            rebound, self.rebound = self.rebound, {}
            self.hand_back(rebound)
            return 0
        except BaseException as error:
            return self.raised(world, error)

    cdef int raised(self, World* world, error) noexcept:
        (<Operation> self.owner).error = error
        world.fault.operation = self.owner
        return PYTHON_EXCEPTION


cdef class Trial:
    """Room for moves of up to n beads."""

    def __init__(self, Py_ssize_t n):
        self.places = np.zeros(n + 1, np.int32)
        self.x = np.zeros((n + 1, 3))
        memset(&self.change, 0, sizeof(Change))
        self.change.swap = swap
        self.change.beads = self.change.moved = &self.places[0]
        self.change.x = &self.x[0, 0]

    cdef void begin(self, Py_ssize_t n) noexcept nogil:
        self.change.n_beads = self.change.n_moved = n
        self.change.there = 0
        self.change.positions = 0


cdef class PythonTrials(JumpOperation):
    """Moves that a Python function proposes.

    Parameters
    ----------
    function : callable (positions (n, 3), uniform (4,)) -> None, or (rows (k,) int32, x (k, 3), log_ratio)
        Checked results; positions of the beads, read-only.
    places : (n,) int32
        Of all rows, also those without a bead now.
    n, momenta
        See `WorkSpace`.
    """
    cdef object function
    cdef int32_t[::1] places  # of beads that are there
    cdef int32_t[::1] rows    # of all rows
    cdef long long living     # `World.living` of these places
    cdef double rate
    cdef readonly Weights weights
    cdef Trial trial

    def __init__(self, str name, double kT, int every, function, int32_t[::1] places, Py_ssize_t n,
                 momenta):
        self.describe(name, kT, False, every)
        self.function = function
        self.places = self.rows = places
        self.living = -1
        self.weights = Weights(self, n, momenta)
        self.trial = Trial(places.shape[0])

    def set(self, double kT, double rate):
        self.kT = kT
        self.rate = rate

    cdef int act(self, World* world, double h, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double t = 0.0
        cdef int failed, fault = 0
        if not self.rate > 0.0:
            return 0
        fault = self.weights.enter(world)
        while fault == 0 and wait(draws, self.rate, h, &t, u):
            self.counts[0] += 1
            fault = self.attempt(world, t, draws)
        failed = self.weights.leave(world)
        return failed if fault == 0 else fault

    cdef int attempt(self, World* world, double t, Draws* draws) noexcept nogil:
        cdef double u[2]
        cdef double energy, log_ratio = 0.0
        cdef Py_ssize_t n
        cdef int fault, raised = 0
        with gil:
            n = self.propose(world, draws, &log_ratio)
            if n < 0:
                raised = self.weights.raised(world, self.error)
        if n <= 0:
            return raised
        self.trial.begin(n)
        fault = self.weights.gain(world, &self.trial.change, &energy)
        if fault != 0 or energy == INFINITY:
            return fault
        log_ratio -= energy / self.kT
        if log_ratio < 0.0:
            draw_two(draws, u)
            if not u[0] < exp_(log_ratio):
                return 0
        fault = self.weights.make(world, &self.trial.change)
        return fault if fault != 0 else self.happened(
            world, t, 0, world.bead[self.trial.places[0]], -1, energy, 0.0, 0.0)

    cdef Py_ssize_t propose(self, World* world, Draws* draws, double* log_ratio) noexcept:
        """How many beads are to move, -1 where the function has raised."""
        cdef double u[2]
        cdef Py_ssize_t i
        cdef int c
        cdef double[:, ::1] x
        cdef const int32_t[::1] rows
        cdef const double[:, ::1] to
        self.error = None
        try:
            if world.living != NULL and world.living[0] != self.living:
                self.living = world.living[0]
                self.places = np.array([i for i in self.rows if world.alive[<Py_ssize_t> i]], np.int32)
            positions, uniform = np.empty((self.places.shape[0], 3)), []
            x = positions
            for i in range(self.places.shape[0]):
                for c in range(3):
                    x[i, c] = world.x[3 * <Py_ssize_t> self.places[i] + c]
            positions.flags.writeable = False
            for _ in range(2):
                draw_two(draws, u)
                uniform += [u[0], u[1]]
            found = self.function(positions, np.array(uniform))
            if found is None:
                return 0
            rows, to, log_ratio[0] = found
            for i in range(rows.shape[0]):
                self.trial.places[i] = self.places[rows[i]]
                for c in range(3):
                    self.trial.x[i, c] = to[i, c]
            return rows.shape[0]
        except BaseException as error:
            self.error = error
        return -1
