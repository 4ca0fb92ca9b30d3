"""D and O of spheres and bodies that feel each other through the fluid.

    D  x <- x + h M F + h kT div M + sqrt(2 kT h) M^(1/2) xi
    O  u <- u - (1 - exp(-h/K)) u + sqrt(kT) sqrt(1 - exp(-2h/K)) xi,     u = m^(1/2) v,   K = m^(1/2) M m^(1/2)

with the mobility M of all of them at once: of pairs Rotne and Prager's (mobility.pxi), with a wall Blake's images
(images.pxi), in a periodic box those of the lattice (lattice.pxi), of each by itself the inverse of its own friction.
Nothing is factorised: both letters are functions of a matrix times a vector, by Lanczos' method (krylov.pxi). In D the
root is taken of B = E^T M E, where E E^T is the friction of each by itself, so that B is near 1, and M^(1/2) is
E^-T B^(1/2): any root will do.

Numbers of a body are in its own frame. Derived in docs/theory/hydrodynamic_interactions.md.
"""
from libc.math cimport INFINITY, M_PI, NAN, fabs, floor, fmax, fmin, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

import numpy as np

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport Box, nearest_whole, set_lengths
from medyanpy._kernels.core.elementary cimport exp_, inverse_root, log_
from medyanpy._kernels.letters.kick cimport ForceSum
from medyanpy._kernels.core.noise cimport normals_at
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK, ROTATION, THERMOSTAT
from medyanpy._kernels.core.program cimport IN_WALL, NO_ROOT, NOT_FINITE, OUT_OF_MEMORY, Operation, World, mark_moved
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of
from medyanpy._kernels.core.rotations cimport Turns, turn
from medyanpy._kernels.core.special cimport erfc_over_gauss, gauss_
from medyanpy._kernels.core.vec3 cimport add_scaled, cross, dot
from medyanpy._kernels.core.waves cimport (
    WaveRow, Waves, free_waves, list_waves, row_phase, set_phases, start_waves, wave_phase, wave_vector,
)

include "mean_distances.pxi"
include "mobility.pxi"
include "lattice.pxi"
include "krylov.pxi"


def mean_distances(int kind, const double[::1] r, const double[::1] a, const double[::1] b):
    """(4, n) derivatives h1 = H'/r, h2 = h1'/r and so on of the mean distance of points of two spheres at distances r
    >= 0, of radii a and b > 0: of both surfaces (kind 0), of the first's ball and the second's surface (1), of both
    balls (2)."""
    cdef Py_ssize_t i, n = r.shape[0]
    cdef double[:, ::1] out = np.empty((n, DERIVATIVES))
    with nogil:
        for i in range(n):
            _mean_distance(kind, r[i], a[i], b[i], &out[i, 0])
    return np.asarray(out).T


cdef Py_ssize_t _padded(Py_ssize_t n) noexcept:
    return (n + TARGETS - 1) // TARGETS * TARGETS


cdef int _make_spheres(Spheres* c, list arrays, Py_ssize_t n, Py_ssize_t n_turning, double viscosity,
                       bint walled, double accuracy, double splitting) except -1:
    c.n = n
    c.n_turning = n_turning
    c.stride = _padded(c.n)
    c.walled = walled
    c.lattice = False
    c.accuracy = accuracy
    c.chosen = splitting
    start_waves(&c.waves, n, c.stride, 24 if n_turning > 0 else 12)
    c.scale = 1.0 / (8.0 * np.pi * viscosity)
    c.radius = zeros(arrays, c.stride)
    c.x = zeros(arrays, 3 * c.stride)
    c.f = zeros(arrays, 12 * c.stride)
    c.u = zeros(arrays, 12 * c.stride)
    cdef Py_ssize_t[::1] begin = np.zeros(c.n + 1, np.intp)
    arrays.append(begin)
    c.begin = &begin[0]
    c.near = NULL
    c.n_near = c.room = 0
    return 0


cdef inline void _put(Spheres* c, Py_ssize_t i, const double* x, double radius) noexcept nogil:
    """Sphere i is there, and of this size; those that fill the last block are as the last one."""
    cdef Py_ssize_t lane
    cdef int k
    for k in range(3):
        c.x[k * c.stride + i] = x[k]
        if i == c.n - 1:
            for lane in range(c.n, c.stride):
                c.x[k * c.stride + lane] = x[k]
    c.radius[i] = radius
    if i == c.n - 1:
        for lane in range(c.n, c.stride):
            c.radius[lane] = radius


def motions(const double[:, ::1] x, const double[::1] radius, const double[:, :, ::1] load, Py_ssize_t n_turning,
            double viscosity, bint walled, const double[::1] lengths, double accuracy=1e-15, double splitting=0.0,
            int threads=1):
    """(2, n, 6) velocities and angular velocities of spheres at x (n, 3) by two loads (2, n, 6), forces and torques on
    all of them, but for those of each by its own in open space. The first n_turning also turn: of the others torques
    do nothing, and angular velocities are 0. Above a wall, the plane x[:, 2] = 0, with its images; in a box of these
    lengths (3,), 0 in open space, with all images, the own ones too. splitting, 1/nm: of the sum over these, where it
    is not to be chosen."""
    cdef Spheres c
    cdef World world
    cdef list arrays = []
    cdef Py_ssize_t i
    cdef int k, which, fault
    cdef double[:, :, ::1] out = np.zeros((2, x.shape[0], 6))
    _make_spheres(&c, arrays, radius.shape[0], n_turning, viscosity, walled, accuracy, splitting)
    memset(&world, 0, sizeof(World))
    world.threads = threads
    set_lengths(&world.box, &lengths[0])
    with nogil:
        for i in range(c.n):
            _put(&c, i, &x[i, 0], radius[i])
            for which in range(2):
                for k in range(6 if i < n_turning else 3):
                    c.f[(6 * which + k) * c.stride + i] = load[which, i, k]
        fault = place_spheres(&world, &c)
        if not fault:
            add_up_pairs(&world, &c, 2)
        free(c.near)
        free_waves(&c.waves)
        for i in range(c.n):
            for which in range(2):
                for k in range(6 if i < n_turning else 3):
                    out[which, i, k] = c.u[(6 * which + k) * c.stride + i]
    if fault:
        raise MemoryError
    return np.asarray(out)


cdef enum:
    # What is known of each species of turning bodies, (6, 6) each, row by row: E, E^T S E and E^-T, where S is its
    # mobility by itself; then how it drifts for kT = 1, in the first three.
    WEIGHT = 0
    OWN = 1
    BACK = 2
    DRIFT = 3
    NUMBERS = 4


cdef struct Task:
    int letter
    double h
    double noise              # sqrt(2 kT h) in D, sqrt(kT) in O
    double kT
    Spheres spheres
    const int32_t* place      # (n,)
    const double* radius      # (n,)
    const int32_t* row        # (n_turning,) among all oriented beads
    const int32_t* species    # (n_turning,)
    const double* numbers     # (species, NUMBERS, 36)
    const double* plain       # (n - n_turning, 3) the same three of the others
    double* frame             # (n_turning, 9) from that of the body into that of the spheres
    const double* axes        # (3, 3) of the frame of the spheres: of space, or of the wall; the third is its normal
    const double* origin      # (3,)
    const double* gradient    # (3, 3) of the flow that there is without beads: velocity c changes along d
    const double* wind        # (3,) and the flow at the origin of space
    int flows
    Py_ssize_t length         # of vectors: 6 numbers of each that turns, 3 of each other
    double* load              # (length,)
    double* random
    double* moved[2]
    Lanczos lanczos[2]


cdef inline Py_ssize_t _start(const Task* t, Py_ssize_t i) noexcept nogil:
    """Where the numbers of a sphere are in a vector."""
    return 6 * i if i < t.spheres.n_turning else 3 * (t.spheres.n_turning + i)


cdef int _take_places(Task* t, World* world) noexcept nogil:
    cdef Spheres* c = &t.spheres
    cdef double R[9]
    cdef double d[3]
    cdef double x[3]
    cdef double* frame
    cdef Py_ssize_t i
    cdef int k, m
    for i in range(c.n):
        if i < c.n_turning:
            frame = t.frame + 9 * i
            matrix_of(world.orientation + 4 * <Py_ssize_t> t.row[i], frame)
        if not c.walled:
            _put(c, i, world.x + 3 * <Py_ssize_t> t.place[i], t.radius[i])
            continue
        for k in range(3):
            d[k] = world.x[3 * <Py_ssize_t> t.place[i] + k] - t.origin[k]
        into_space(t.axes, d, x)
        # Not so either of what is no number.
        if not x[2] > t.radius[i]:
            world.fault.value = x[2]
            return record_fault(world, IN_WALL, t.place[i], -1)
        _put(c, i, x, t.radius[i])
        if i < c.n_turning:
            for k in range(9):
                R[k] = frame[k]
            for k in range(3):
                for m in range(3):
                    frame[3 * k + m] = (
                        t.axes[3 * k] * R[m] + t.axes[3 * k + 1] * R[3 + m] + t.axes[3 * k + 2] * R[6 + m])
    return place_spheres(world, c)


cdef inline void _times(const double* a, const double* v, double* out) noexcept nogil:
    """out = A v, of (6, 6)."""
    cdef int k
    for k in range(6):
        out[k] = (a[6 * k] * v[0] + a[6 * k + 1] * v[1] + a[6 * k + 2] * v[2]
                  + a[6 * k + 3] * v[3] + a[6 * k + 4] * v[4] + a[6 * k + 5] * v[5])


cdef inline void _transposed_times(const double* a, const double* v, double* out) noexcept nogil:
    """out = A^T v"""
    cdef int k
    for k in range(6):
        out[k] = (a[k] * v[0] + a[6 + k] * v[1] + a[12 + k] * v[2]
                  + a[18 + k] * v[3] + a[24 + k] * v[4] + a[30 + k] * v[5])


cdef void _apply(Task* t, World* world, int loads, const double** v, double** out) noexcept nogil:
    """out = E^T M E v of `loads` vectors."""
    cdef Spheres* c = &t.spheres
    cdef const double* own
    cdef const double* numbers
    cdef double y[6]
    cdef double w[6]
    cdef double moved[6]
    cdef Py_ssize_t i
    cdef int load, k
    for load in range(loads):
        for i in range(c.n):
            own = v[load] + _start(t, i)
            if i < c.n_turning:
                _times(t.numbers + 36 * NUMBERS * <Py_ssize_t> t.species[i], own, y)
                into_space(t.frame + 9 * i, y, w)
                into_space(t.frame + 9 * i, y + 3, w + 3)
                for k in range(6):
                    c.f[(6 * load + k) * c.stride + i] = w[k]
            else:
                for k in range(3):
                    y[k] = t.plain[3 * (i - c.n_turning)] * own[k]
                if c.walled:
                    into_space(t.axes, y, w)
                for k in range(3):
                    c.f[(6 * load + k) * c.stride + i] = w[k] if c.walled else y[k]
    add_up_pairs(world, c, loads)
    for load in range(loads):
        for i in range(c.n):
            own = v[load] + _start(t, i)
            if i < c.n_turning:
                numbers = t.numbers + 36 * NUMBERS * <Py_ssize_t> t.species[i]
                for k in range(6):
                    moved[k] = c.u[(6 * load + k) * c.stride + i]
                into_body(t.frame + 9 * i, moved, y)
                into_body(t.frame + 9 * i, moved + 3, y + 3)
                _transposed_times(numbers + 36 * WEIGHT, y, w)
                _times(numbers + 36 * OWN, own, y)
                for k in range(6):
                    out[load][_start(t, i) + k] = w[k] + y[k]
            else:
                for k in range(3):
                    moved[k] = c.u[(6 * load + k) * c.stride + i]
                if c.walled:
                    into_body(t.axes, moved, y)
                for k in range(3):
                    out[load][_start(t, i) + k] = (
                        t.plain[3 * (i - c.n_turning)] * (y[k] if c.walled else moved[k])
                        + t.plain[3 * (i - c.n_turning) + OWN] * own[k])


cdef void _draw(Task* t, World* world) noexcept nogil:
    cdef double g[6][NORMALS_BLOCK]
    cdef Py_ssize_t start, i, n
    cdef int k
    start = 0
    while start < t.spheres.n:
        n = min(<Py_ssize_t> NORMALS_BLOCK, t.spheres.n - start)
        normals_at(world, t.place + start, <int> n, t.letter, THERMOSTAT, 0, g[0], g[1], g[2])
        if start < t.spheres.n_turning:
            normals_at(world, t.place + start, <int> n, t.letter, ROTATION, 0, g[3], g[4], g[5])
        for i in range(n):
            for k in range(6 if start + i < t.spheres.n_turning else 3):
                t.random[_start(t, start + i) + k] = g[k][i]
        start += n


cdef void _flow_at(const Task* t, const double* x, double* u, double* turning) noexcept nogil:
    """Velocity and angular velocity of the flow that there is without beads; 0 where there is none."""
    cdef int k
    for k in range(3):
        u[k] = t.wind[k] + dot(t.gradient + 3 * k, x)
    turning[0] = 0.5 * (t.gradient[7] - t.gradient[5])
    turning[1] = 0.5 * (t.gradient[2] - t.gradient[6])
    turning[2] = 0.5 * (t.gradient[3] - t.gradient[1])


cdef int _unsettled(World* world, const Lanczos* a) noexcept nogil:
    world.fault.value = a.change
    return record_fault(world, NO_ROOT, -1, -1)


cdef class _Interacting(Operation):
    """What D and O have in common.

    place (n,), row (n_turning,): of spheres, those that turn first, as beads and among all oriented beads; radius (n,);
    species (n_turning,), numbers (species, 4, 36), plain (n - n_turning, 3): see above. axes (3, 3), origin (3,): of
    the wall, if there is one; gradient (3, 3), wind (3,): of the flow. most: vectors of Lanczos' method.
    """
    cdef Task task
    cdef list arrays

    def __init__(self, int letter, double h, double kT, const int32_t[::1] place, const int32_t[::1] row,
                 const double[::1] radius, const int32_t[::1] species, const double[:, ::1] numbers,
                 const double[:, ::1] plain, double viscosity, bint walled, const double[:, ::1] axes,
                 const double[::1] origin, const double[:, ::1] gradient, const double[::1] wind, double tolerance,
                 Py_ssize_t most):
        cdef Task* t = &self.task
        cdef Lanczos* a
        cdef int k
        self.arrays = []
        t.letter = letter
        t.h = h
        t.kT = kT
        # Sums over images are to be right also of motions much slower than those of one sphere.
        _make_spheres(&t.spheres, self.arrays, radius.shape[0], row.shape[0], viscosity, walled,
                      fmax(1e-4 * tolerance, 1e-15), 0.0)
        t.place = vector(self.arrays, place)
        t.radius = vector(self.arrays, radius)
        t.row = vector(self.arrays, row)
        t.species = vector(self.arrays, species)
        t.numbers = table(self.arrays, numbers)
        t.plain = table(self.arrays, plain)
        t.axes = table(self.arrays, axes)
        t.origin = vector(self.arrays, origin)
        t.gradient = table(self.arrays, gradient)
        t.wind = vector(self.arrays, wind)
        t.flows = bool(np.any(gradient) or np.any(wind))
        t.frame = zeros(self.arrays, 9 * row.shape[0])
        t.length = 3 * (t.spheres.n + t.spheres.n_turning)
        t.load = zeros(self.arrays, t.length)
        t.random = zeros(self.arrays, t.length)
        most = min(most, t.length)
        for k in range(2):
            t.moved[k] = zeros(self.arrays, t.length)
            a = &t.lanczos[k]
            a.n = t.length
            a.most = <int> most
            a.tolerance = tolerance
        work = zeros(self.arrays, (most + 2) * most)
        for k in range(2):
            a = &t.lanczos[k]
            a.work = work
            a.q = zeros(self.arrays, most * t.length) if k < self.vectors() else NULL
            a.alpha = zeros(self.arrays, most)
            a.beta = zeros(self.arrays, most)
            a.y = zeros(self.arrays, most)

    def __dealloc__(self):
        free(self.task.spheres.near)
        free_waves(&self.task.spheres.waves)

    cdef int vectors(self):
        """How many times Lanczos' method runs in a letter."""
        return 1

    @property
    def iterations(self):
        """Vectors that Lanczos' method needed the last time."""
        return max(self.task.lanczos[0].m, self.task.lanczos[1].m)

    @property
    def change(self):
        """By how much, relatively, the last of them changed the result."""
        return max(self.task.lanczos[k].change for k in range(self.vectors()))


cdef class Displacement(_Interacting):
    """D, by forces that have been added up."""
    cdef ForceSum forces

    def __init__(self, ForceSum forces, *numbers):
        _Interacting.__init__(self, *numbers)
        self.forces = forces
        self.task.noise = sqrt(2.0 * self.task.kT * self.task.h)

    cdef int run(self, World* world) noexcept nogil:
        cdef Task* t = &self.task
        cdef Lanczos* a = &t.lanczos[0]
        cdef const double* v[2]
        cdef double* w[2]
        cdef bint driven = self.forces.forces.count > 0
        cdef Py_ssize_t i
        cdef int fault = _take_places(t, world)
        if fault:
            return fault
        _draw(t, world)
        lanczos_start(a, ROOT, t.h, t.random)
        # The forces go along with the first vector: both need the same distances.
        v[0] = lanczos_next(a)
        w[0] = t.random
        if driven:
            self.take_forces(world)
            v[1] = t.load
            w[1] = t.moved[1]
        if driven or not a.done:
            _apply(t, world, 2 if driven else 1, v, w)
        while not a.done:
            if lanczos_take(a, t.random):
                return _unsettled(world, a)
            if not a.done:
                v[0] = lanczos_next(a)
                _apply(t, world, 1, v, w)
        lanczos_result(a, t.moved[0])
        for i in range(t.length):
            t.moved[0][i] = t.noise * t.moved[0][i] + (t.h * t.moved[1][i] if driven else 0.0)
        mark_moved(world)
        return self.move(world)

    cdef void take_forces(self, World* world) noexcept nogil:
        """E^-1 times forces and torques."""
        cdef Task* t = &self.task
        cdef Spheres* c = &t.spheres
        cdef const double* f
        cdef double R[9]
        cdef double g[6]
        cdef Py_ssize_t i
        cdef int k
        for i in range(c.n):
            f = &self.forces.f[0, 0] + 3 * <Py_ssize_t> t.place[i]
            if i < c.n_turning:
                matrix_of(world.orientation + 4 * <Py_ssize_t> t.row[i], R)
                into_body(R, f, g)
                for k in range(3):
                    g[3 + k] = self.forces.drive[0][3 * <Py_ssize_t> t.row[i] + k]
                _transposed_times(
                    t.numbers + 36 * (NUMBERS * <Py_ssize_t> t.species[i] + BACK), g, t.load + _start(t, i))
            else:
                for k in range(3):
                    t.load[_start(t, i) + k] = t.plain[3 * (i - c.n_turning) + BACK] * f[k]

    cdef int move(self, World* world) noexcept nogil:
        """By what has been computed, the drift, and the flow."""
        cdef Task* t = &self.task
        cdef Spheres* c = &t.spheres
        cdef Turns b
        cdef double R[9]
        cdef double d[6]
        cdef double out[3]
        cdef double u[3]
        cdef double turning[3]
        cdef double* x
        cdef double* q
        cdef double z, a2, lift
        cdef Py_ssize_t i, start, j
        cdef int k, n
        start = 0
        while start < c.n:
            n = <int> min(<Py_ssize_t> NORMALS_BLOCK, (c.n_turning if start < c.n_turning else c.n) - start)
            for j in range(n):
                i = start + j
                x = world.x + 3 * <Py_ssize_t> t.place[i]
                if t.flows:
                    _flow_at(t, x, u, turning)
                if i < c.n_turning:
                    q = world.orientation + 4 * <Py_ssize_t> t.row[i]
                    matrix_of(q, R)
                    _times(t.numbers + 36 * (NUMBERS * <Py_ssize_t> t.species[i] + BACK), t.moved[0] + 6 * i, d)
                    for k in range(3):
                        d[k] += t.h * t.kT * t.numbers[36 * (NUMBERS * <Py_ssize_t> t.species[i] + DRIFT) + k]
                    into_space(R, d, out)
                    for k in range(4):
                        b.q[k][j] = q[k]
                    if t.flows:
                        into_body(R, turning, d)
                        for k in range(3):
                            d[3 + k] += t.h * d[k]
                    for k in range(3):
                        b.r[k][j] = d[3 + k]
                else:
                    for k in range(3):
                        out[k] = t.plain[3 * (i - c.n_turning) + BACK] * t.moved[0][_start(t, i) + k]
                if t.flows:
                    add_scaled(t.h, u, out)
                if c.walled:
                    # kT times the derivative by height of the mobility towards the wall.
                    z = c.x[2 * c.stride + i]
                    a2 = c.radius[i] * c.radius[i]
                    lift = 1.0 / (z * z)
                    lift = c.scale * lift * (1.5 + lift * a2 * (-2.0 + lift * a2 * (5.0 / 6.0)))
                    add_scaled(t.h * t.kT * lift, t.axes + 6, out)
                for k in range(3):
                    x[k] += out[k]
            if start < c.n_turning:
                turn(&b, n)
                for j in range(n):
                    for k in range(4):
                        world.orientation[4 * <Py_ssize_t> t.row[start + j] + k] = b.q[k][j]
            for j in range(n):
                x = world.x + 3 * <Py_ssize_t> t.place[start + j]
                z = x[0] + x[1] + x[2]
                if start < c.n_turning:
                    z += world.orientation[4 * <Py_ssize_t> t.row[start + j]]
                if not (0.0 * z == 0.0):
                    return record_fault(world, NOT_FINITE, t.place[start + j], -1)
            start += n
        return 0


cdef class Thermostat(_Interacting):
    """O."""

    def __init__(self, *numbers):
        _Interacting.__init__(self, *numbers)
        self.task.noise = sqrt(self.task.kT)

    cdef int vectors(self):
        return 2

    cdef int run(self, World* world) noexcept nogil:
        cdef Task* t = &self.task
        cdef const double* v[2]
        cdef double* w[2]
        cdef Lanczos* running[2]
        cdef Py_ssize_t i
        cdef int k, n
        cdef int fault = _take_places(t, world)
        if fault:
            return fault
        _draw(t, world)
        self.take_velocities(world)
        lanczos_start(&t.lanczos[0], DECAY, t.h, t.load)
        lanczos_start(&t.lanczos[1], NOISE, t.h, t.random)
        while True:
            # Both go along with each other: they need the same distances.
            n = 0
            for k in range(2):
                if not t.lanczos[k].done:
                    running[n] = &t.lanczos[k]
                    v[n] = lanczos_next(running[n])
                    w[n] = t.moved[n]
                    n += 1
            if n == 0:
                break
            _apply(t, world, n, v, w)
            for k in range(n):
                if lanczos_take(running[k], w[k]):
                    return _unsettled(world, running[k])
        lanczos_result(&t.lanczos[0], t.moved[0])
        lanczos_result(&t.lanczos[1], t.moved[1])
        for i in range(t.length):
            t.load[i] += t.noise * t.moved[1][i] - t.moved[0][i]
        return self.give_velocities(world)

    cdef void take_velocities(self, World* world) noexcept nogil:
        """Relative to the flow, times the roots of masses and moments of inertia."""
        cdef Task* t = &self.task
        cdef Spheres* c = &t.spheres
        cdef double R[9]
        cdef double v[3]
        cdef double body[6]
        cdef double u[3]
        cdef double turning[3]
        cdef const double* weight
        cdef double* load
        cdef Py_ssize_t i
        cdef int k
        u[0] = u[1] = u[2] = turning[0] = turning[1] = turning[2] = 0.0
        for i in range(c.n):
            if t.flows:
                _flow_at(t, world.x + 3 * <Py_ssize_t> t.place[i], u, turning)
            load = t.load + _start(t, i)
            for k in range(3):
                v[k] = world.v[3 * <Py_ssize_t> t.place[i] + k] - u[k]
            if i < c.n_turning:
                matrix_of(world.orientation + 4 * <Py_ssize_t> t.row[i], R)
                into_body(R, v, body)
                into_body(R, turning, body + 3)
                weight = t.numbers + 36 * NUMBERS * <Py_ssize_t> t.species[i]
                for k in range(3):
                    load[k] = weight[7 * k] * body[k]
                    load[3 + k] = (
                        world.spin[3 * <Py_ssize_t> t.row[i] + k] / weight[21 + 7 * k]
                        - weight[21 + 7 * k] * body[3 + k])
            else:
                for k in range(3):
                    load[k] = t.plain[3 * (i - c.n_turning)] * v[k]

    cdef int give_velocities(self, World* world) noexcept nogil:
        cdef Task* t = &self.task
        cdef Spheres* c = &t.spheres
        cdef double R[9]
        cdef double v[3]
        cdef double body[6]
        cdef double u[3]
        cdef double turning[3]
        cdef const double* weight
        cdef const double* load
        cdef double check
        cdef Py_ssize_t i
        cdef int k
        u[0] = u[1] = u[2] = turning[0] = turning[1] = turning[2] = 0.0
        for i in range(c.n):
            if t.flows:
                _flow_at(t, world.x + 3 * <Py_ssize_t> t.place[i], u, turning)
            load = t.load + _start(t, i)
            check = 0.0
            if i < c.n_turning:
                matrix_of(world.orientation + 4 * <Py_ssize_t> t.row[i], R)
                weight = t.numbers + 36 * NUMBERS * <Py_ssize_t> t.species[i]
                for k in range(3):
                    body[k] = load[k] / weight[7 * k]
                into_space(R, body, v)
                into_body(R, turning, body + 3)
                for k in range(3):
                    world.spin[3 * <Py_ssize_t> t.row[i] + k] = weight[21 + 7 * k] * (
                        load[3 + k] + weight[21 + 7 * k] * body[3 + k])
                    check += 0.0 * world.spin[3 * <Py_ssize_t> t.row[i] + k]
            else:
                for k in range(3):
                    v[k] = load[k] / t.plain[3 * (i - c.n_turning)]
            for k in range(3):
                world.v[3 * <Py_ssize_t> t.place[i] + k] = v[k] + u[k]
                check += 0.0 * v[k]
            if not (check == 0.0):
                return record_fault(world, NOT_FINITE, t.place[i], -1)
        return 0
