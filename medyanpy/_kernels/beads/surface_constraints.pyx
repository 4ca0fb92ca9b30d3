"""Beads on an implicit surface g(x) = 0: one scalar constraint each.

    A        x' = x + h v - lambda G with lambda such that g(x') = 0, by Newton's method (SHAKE); then
             v' = v - lambda G / h, made tangent at x' (RATTLE). G is the gradient of g at x, before the flight.
    tangent  v - n (n.v), n the normal at x: after B, and after O

O needs nothing before it: it multiplies all components of the velocity of a bead by the same c1 and adds c2 times
three independent normal numbers, so that after the projection there is c1 times the tangent velocity and c2 times
two. Mass and friction of a bead are one number each and drop out of everything here.

Beads are worked on WIDTH at a time, one in each lane. One that has converged takes steps of length zero, so that
no bead changes the bits of another. Gradients at the present positions are kept, with the number of the positions
they belong to: evaluating them again gives the same bits, so they are not part of the state.

Source: Ryckaert, Ciccotti & Berendsen, J. Comput. Phys. 23, 327 (1977); Andersen, J. Comput. Phys. 52, 24 (1983);
Leimkuhler & Reich, Simulating Hamiltonian Dynamics (2004), chapter 7.
"""
import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.expressions cimport Function, WIDTH, evaluate, prepare
from medyanpy._kernels.core.parallel cimport n_blocks, over_blocks, record_fault
from medyanpy._kernels.core.program cimport LOST_SURFACE, Operation, PYTHON_EXCEPTION, World

cdef enum:
    # Newton's method has converged long before, or never does.
    MOST_ITERATIONS = 40
    # Chunks of WIDTH beads per block.
    BLOCK = 16

# How differently a flight may leave the tangent plane at its start and meet that at its end: beyond, it has led to
# another sheet or round a bend that the timestep is too large for.
cdef double LARGEST_SINE = 0.25

cdef enum Action:
    START = 0                 # before A: the gradient there
    FLIGHT = 1                # after A
    TANGENT = 2               # after B and O
    ADMIT = 3                 # the same when velocities come from outside
    SETTLE = 4                # bring positions from outside onto the surface

ACTIONS = {"start": START, "flight": FLIGHT, "tangent": TANGENT, "admit": ADMIT, "settle": SETTLE}


cdef class Evaluator:
    """Some functions of x, y, z: a program of core/expressions.pxd, or two Python functions for value and gradient.

    The caller has made the instructions (n, 4) such that all registers exist. The first result is the value, the
    next three are the gradient.
    """
    cdef Function function
    cdef readonly object instructions, constants, outputs
    cdef object python
    cdef int asks_python
    cdef readonly object error

    def __init__(self, const int32_t[:, ::1] instructions, const double[::1] constants, const int32_t[::1] outputs,
                 Py_ssize_t n_registers, python=None):
        self.instructions = instructions
        self.constants = constants
        self.outputs = outputs
        self.function.instructions = &instructions[0, 0] if instructions.shape[0] > 0 else NULL
        self.function.n = instructions.shape[0]
        self.function.constants = &constants[0] if constants.shape[0] > 0 else NULL
        self.function.n_constants = constants.shape[0]
        self.function.outputs = &outputs[0]
        self.function.n_registers = n_registers
        self.python = python
        self.asks_python = python is not None

    cdef int ask(self, double* registers) noexcept:
        """Python's value and gradient of the points in the registers."""
        cdef double[:, ::1] x
        cdef const double[:] value
        cdef const double[:, :] gradient
        cdef const int32_t* out = self.function.outputs
        cdef double* r = registers + WIDTH * self.function.n_constants
        cdef Py_ssize_t k
        cdef int c
        self.error = None
        try:
            points = np.empty((WIDTH, 3))
            x = points
            for k in range(WIDTH):
                for c in range(3):
                    x[k, c] = r[WIDTH * c + k]
            points.flags.writeable = False
            value, gradient = self.python(points)
            for k in range(WIDTH):
                registers[WIDTH * out[0] + k] = value[k]
                for c in range(3):
                    registers[WIDTH * out[1 + c] + k] = gradient[k, c]
        except BaseException as error:
            self.error = error
            return PYTHON_EXCEPTION
        return 0

    def __call__(self, const double[:, ::1] inputs):
        """(n, m) all m results at points, of which each row has x, y, z and the other numbers of a point."""
        cdef Py_ssize_t n = inputs.shape[0], n_out = len(self.outputs), chunk, first, k, i
        cdef const Function* f = &self.function
        cdef int c
        results = np.empty((n, n_out))
        cdef double[:, ::1] out = results
        cdef double[::1] work = np.zeros(WIDTH * f.n_registers)
        cdef double* registers = &work[0]
        cdef double* x = registers + WIDTH * f.n_constants
        with nogil:
            prepare(f, registers)
            for chunk in range((n + WIDTH - 1) // WIDTH):
                first = WIDTH * chunk
                for k in range(WIDTH):
                    # Where there are no more, the last once again.
                    i = min(first + k, n - 1)
                    for c in range(inputs.shape[1]):
                        x[WIDTH * c + k] = inputs[i, c]
                evaluate(f, registers)
                for c in range(n_out):
                    for k in range(min(n - first, <Py_ssize_t> WIDTH)):
                        out[first + k, c] = registers[WIDTH * f.outputs[c] + k]
        return results

    def land(self, const double[:, ::1] points, double tolerance, double length):
        """Points moved along the gradient they start with to where g = 0; how far they are from it (n,); and whether
        that has failed (n,). An error of Python functions is raised."""
        cdef Py_ssize_t n = points.shape[0], chunk, first, k
        cdef const Function* f = &self.function
        cdef Work w
        cdef int c, fault = 0
        landed = np.empty((n, 3))
        distances = np.empty(n)
        cdef double[:, ::1] out = landed
        cdef double[::1] left = distances
        failed = np.zeros(n, np.int32)
        cdef int32_t[::1] lost = failed
        cdef double[::1] work = np.zeros(WIDTH * (f.n_registers + FOR_WORK))
        w.registers = &work[0]
        divide(&w, f)
        with nogil:
            for chunk in range((n + WIDTH - 1) // WIDTH):
                first = WIDTH * chunk
                _load(&points[first, 0], min(n - first, <Py_ssize_t> WIDTH), w.x)
                fault = _gradient(&w, self)
                if fault == 0:
                    _copy(3 * WIDTH, w.gradient, w.start)
                    fault = _newton(&w, self, tolerance, length)
                if fault != 0:
                    break
                for k in range(min(n - first, <Py_ssize_t> WIDTH)):
                    left[first + k] = w.off[k]
                    lost[first + k] = w.lost[k]
                    for c in range(3):
                        out[first + k, c] = w.x[WIDTH * c + k]
        if fault != 0:
            raise self.error
        return landed, distances, failed != 0


cdef enum:
    # Registers of work space beside those of the function: start, gradient, v, lambda, off.
    FOR_WORK = 11


cdef struct Work:
    double* registers
    double* x                 # (3, WIDTH), in the registers that the function reads
    double* start             # (3, WIDTH) direction in which points may be moved
    double* gradient          # (3, WIDTH) at x
    double* v                 # (3, WIDTH)
    double* multiplier        # (WIDTH,) lambda
    double* off               # (WIDTH,) distance from the surface, to first order
    int lost[WIDTH]           # whether a bead is not where it should be


cdef inline void divide(Work* w, const Function* f) noexcept nogil:
    """Share out the work space, and make it ready for the function."""
    w.x = w.registers + WIDTH * f.n_constants
    w.start = w.registers + WIDTH * f.n_registers
    w.gradient = w.start + 3 * WIDTH
    w.v = w.gradient + 3 * WIDTH
    w.multiplier = w.v + 3 * WIDTH
    w.off = w.multiplier + WIDTH
    prepare(f, w.registers)


cdef inline void _copy(int n, const double* a, double* out) noexcept nogil:
    cdef int k
    for k in range(n):
        out[k] = a[k]


cdef inline void _load(const double* vectors, Py_ssize_t n, double* out) noexcept nogil:
    """Vectors (n, 3) as (3, WIDTH); where there are no more, the last once again."""
    cdef Py_ssize_t k, i
    if n == WIDTH:
        for k in range(WIDTH):
            out[k] = vectors[3 * k]
            out[WIDTH + k] = vectors[3 * k + 1]
            out[2 * WIDTH + k] = vectors[3 * k + 2]
    else:
        for k in range(WIDTH):
            i = 3 * min(k, n - 1)
            out[k] = vectors[i]
            out[WIDTH + k] = vectors[i + 1]
            out[2 * WIDTH + k] = vectors[i + 2]


cdef inline void _store(const double* columns, Py_ssize_t n, double* vectors) noexcept nogil:
    """The first n of them back."""
    cdef Py_ssize_t k
    for k in range(n):
        vectors[3 * k] = columns[k]
        vectors[3 * k + 1] = columns[WIDTH + k]
        vectors[3 * k + 2] = columns[2 * WIDTH + k]


cdef inline int _gradient(Work* w, Evaluator surface) noexcept nogil:
    """Value (left in its register) and gradient at x."""
    cdef const Function* f = &surface.function
    cdef int c, fault
    if surface.asks_python:
        with gil:
            fault = surface.ask(w.registers)
        if fault != 0:
            return fault
    else:
        evaluate(f, w.registers)
    for c in range(3):
        _copy(WIDTH, w.registers + WIDTH * f.outputs[1 + c], w.gradient + WIDTH * c)
    return 0


cdef inline int _newton(Work* w, Evaluator surface, double tolerance, double length) noexcept nogil:
    """Move x along `start` onto the surface; its gradient there, lambda, and how far off x is."""
    cdef const double* value = w.registers + WIDTH * surface.function.outputs[0]
    cdef double g[WIDTH]
    cdef double square[WIDTH]
    cdef double slope[WIDTH]
    cdef double size[WIDTH]
    cdef double step[WIDTH]
    cdef double limit, moving
    cdef double* x = w.x
    cdef double* d = w.start
    cdef double* G = w.gradient
    cdef int k, _, fault
    for k in range(WIDTH):
        w.multiplier[k] = 0.0
    for _ in range(MOST_ITERATIONS):
        fault = _gradient(w, surface)
        if fault != 0:
            return fault
        for k in range(WIDTH):
            g[k] = value[k]
            square[k] = G[k] * G[k] + G[WIDTH + k] * G[WIDTH + k] + G[2 * WIDTH + k] * G[2 * WIDTH + k]
            slope[k] = d[k] * G[k] + d[WIDTH + k] * G[WIDTH + k] + d[2 * WIDTH + k] * G[2 * WIDTH + k]
            size[k] = x[k] * x[k] + x[WIDTH + k] * x[WIDTH + k] + x[2 * WIDTH + k] * x[2 * WIDTH + k]
        moving = 0.0
        for k in range(WIDTH):
            # Far from the origin coordinates have no better resolution than that.
            limit = length * length
            limit = tolerance * tolerance * (size[k] if size[k] > limit else limit)
            step[k] = 0.0 if g[k] * g[k] <= limit * square[k] else g[k] / slope[k]
            moving += 0.0 if step[k] == 0.0 else 1.0
        if moving == 0.0:
            break
        for k in range(WIDTH):
            w.multiplier[k] += step[k]
            x[k] -= step[k] * d[k]
            x[WIDTH + k] -= step[k] * d[WIDTH + k]
            x[2 * WIDTH + k] -= step[k] * d[2 * WIDTH + k]
    for k in range(WIDTH):
        # A gradient that has vanished, or turned round: that is another sheet of the surface.
        w.lost[k] = not (step[k] == 0.0 and slope[k] > 0.0)
        w.off[k] = sqrt(g[k] * g[k] / square[k])
    return 0


cdef class Gradients:
    """Gradients at the positions of the beads of one handle: (chunks, 3, WIDTH), and which positions these are."""
    cdef double[:, :, ::1] values
    cdef double[:, ::1] work
    # The minimiser's program moves the same beads, and counts its own positions.
    cdef long long world
    cdef long long positions

    def __init__(self, Evaluator surface, Py_ssize_t n, int threads):
        self.values = np.zeros(((n + WIDTH - 1) // WIDTH, 3, WIDTH))
        self.work = np.zeros((threads, WIDTH * (surface.function.n_registers + FOR_WORK)))
        self.world = self.positions = 0


cdef struct Task:
    void* surface             # Evaluator
    void* gradients           # Gradients
    Py_ssize_t first
    Py_ssize_t n
    int action
    int known                 # whether the gradients belong to the positions
    double h
    double tolerance
    double length
    double reach              # how far beads that come from outside may be from the surface
    double* off               # (n,) of beads that have failed


cdef inline void _check_flight(Work* w, const Task* t) noexcept nogil:
    """Whether beads are still on the sheet they started from.

    On one smooth sheet the chord c from start to end leaves the tangent plane at the start and meets that at the end
    under the same angle, to second order in its length: c.(n + n') = 0 with the normals n and n'. A chord to another
    sheet leaves and meets them on the same side.
    """
    cdef double* d = w.start
    cdef double* G = w.gradient
    cdef double* v = w.v
    cdef double* x = w.x
    cdef double near = t.tolerance * t.tolerance * t.length * t.length
    cdef double leaves[WIDTH]
    cdef double square[WIDTH]
    cdef double c0, c1, c2, size
    cdef int k
    for k in range(WIDTH):
        c0 = t.h * v[k] - w.multiplier[k] * d[k]
        c1 = t.h * v[WIDTH + k] - w.multiplier[k] * d[WIDTH + k]
        c2 = t.h * v[2 * WIDTH + k] - w.multiplier[k] * d[2 * WIDTH + k]
        square[k] = c0 * c0 + c1 * c1 + c2 * c2
        leaves[k] = (
            (c0 * d[k] + c1 * d[WIDTH + k] + c2 * d[2 * WIDTH + k])
            / sqrt(d[k] * d[k] + d[WIDTH + k] * d[WIDTH + k] + d[2 * WIDTH + k] * d[2 * WIDTH + k])
            + (c0 * G[k] + c1 * G[WIDTH + k] + c2 * G[2 * WIDTH + k])
            / sqrt(G[k] * G[k] + G[WIDTH + k] * G[WIDTH + k] + G[2 * WIDTH + k] * G[2 * WIDTH + k])
        )
        # Beads at rest move by what they were off the surface.
        size = x[k] * x[k] + x[WIDTH + k] * x[WIDTH + k] + x[2 * WIDTH + k] * x[2 * WIDTH + k]
        size = t.tolerance * t.tolerance * size
        square[k] = LARGEST_SINE * LARGEST_SINE * square[k] + 16.0 * (size if size > near else near)
    for k in range(WIDTH):
        w.lost[k] |= not (leaves[k] * leaves[k] <= square[k])


cdef inline void _check_settled(Work* w, const Task* t) noexcept nogil:
    """Whether beads were near the surface."""
    cdef double* d = w.start
    cdef double square
    cdef int k
    for k in range(WIDTH):
        square = d[k] * d[k] + d[WIDTH + k] * d[WIDTH + k] + d[2 * WIDTH + k] * d[2 * WIDTH + k]
        square = square * w.multiplier[k] * w.multiplier[k]
        if not (square <= t.reach * t.reach):
            w.lost[k] = 1
            w.off[k] = sqrt(square)


cdef int _chunks(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef Task* t = <Task*> task
    cdef Work w
    cdef Py_ssize_t which, bead, there, k
    cdef double* kept
    cdef double* G
    cdef double* d
    cdef double* v
    cdef double along[WIDTH]
    cdef int c, fault = 0, failed, any_lost
    w.registers = &(<Gradients> t.gradients).work[thread, 0]
    divide(&w, &(<Evaluator> t.surface).function)
    G = w.gradient
    d = w.start
    v = w.v
    for which in range(first, last):
        kept = &(<Gradients> t.gradients).values[which, 0, 0]
        bead = t.first + WIDTH * which
        there = min(<Py_ssize_t> WIDTH, t.n - WIDTH * which)
        _load(world.v + 3 * bead, there, v)
        if t.action != TANGENT or not t.known:
            _load(world.x + 3 * bead, there, w.x)
        if t.action == FLIGHT:
            _copy(3 * WIDTH, kept, d)
        elif t.known:
            _copy(3 * WIDTH, kept, G)
        else:
            failed = _gradient(&w, <Evaluator> t.surface)
            if failed != 0:
                return record_fault(world, failed, bead, -1)
            _copy(3 * WIDTH, G, kept)
        if t.action == START:
            continue
        if t.action == FLIGHT or t.action == SETTLE:
            if t.action == SETTLE:
                _copy(3 * WIDTH, G, d)
            failed = _newton(&w, <Evaluator> t.surface, t.tolerance, t.length)
            if failed != 0:
                return record_fault(world, failed, bead, -1)
            if t.action == FLIGHT:
                _check_flight(&w, t)
            else:
                _check_settled(&w, t)
            any_lost = 0
            for k in range(WIDTH):
                any_lost |= w.lost[k]
            if any_lost:
                for k in range(there):
                    if w.lost[k]:
                        t.off[WIDTH * which + k] = w.off[k]
                        fault |= record_fault(world, LOST_SURFACE, bead + k, -1)
            _copy(3 * WIDTH, G, kept)
            _store(w.x, there, world.x + 3 * bead)
        if t.action == SETTLE:
            continue
        if t.action == FLIGHT:
            for k in range(WIDTH):
                along[k] = w.multiplier[k] / t.h
            for c in range(3):
                for k in range(WIDTH):
                    v[WIDTH * c + k] -= along[k] * d[WIDTH * c + k]
        for k in range(WIDTH):
            along[k] = (
                (G[k] * v[k] + G[WIDTH + k] * v[WIDTH + k] + G[2 * WIDTH + k] * v[2 * WIDTH + k])
                / (G[k] * G[k] + G[WIDTH + k] * G[WIDTH + k] + G[2 * WIDTH + k] * G[2 * WIDTH + k])
            )
        for c in range(3):
            for k in range(WIDTH):
                v[WIDTH * c + k] -= along[k] * G[WIDTH * c + k]
        _store(v, there, world.v + 3 * bead)
    return fault


cdef class SurfaceConstraints(Operation):
    """One of ACTIONS on n beads from place `first` on."""
    cdef Evaluator surface
    cdef Gradients gradients
    cdef double[::1] off
    cdef double h
    cdef Task task

    def __init__(self, Evaluator surface, Gradients gradients, Py_ssize_t first, Py_ssize_t n, str action,
                 double tolerance, double length, double reach, double h=0.0):
        self.surface = surface
        self.gradients = gradients
        self.off = np.zeros(n)
        self.task.surface = <void*> surface
        self.task.gradients = <void*> gradients
        self.task.first = first
        self.task.n = n
        self.task.action = ACTIONS[action]
        self.task.tolerance = tolerance
        self.task.length = length
        self.task.reach = reach
        self.h = h
        self.task.off = &self.off[0]

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        cdef long long bead
        # Whoever writes from outside tells of it only afterwards.
        self.task.known = (
            self.gradients.world == world.number and self.gradients.positions == world.positions
            and self.task.action != ADMIT and self.task.action != SETTLE
        )
        if self.task.action == START and self.task.known:
            return 0
        self.task.h = self.h * world.pace
        fault = over_blocks(_chunks, &self.task, world, n_blocks(self.task.n, WIDTH), BLOCK)
        if fault == 0:
            self.gradients.world = world.number
            self.gradients.positions = world.positions
        else:
            # The numbers of positions start with 1.
            self.gradients.positions = 0
            if fault == PYTHON_EXCEPTION:
                with gil:
                    self.error = self.surface.error
            bead = world.fault.bead
            world.fault.value = self.off[bead - self.task.first]
        return fault
