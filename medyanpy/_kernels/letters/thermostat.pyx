"""The letter O: Ornstein-Uhlenbeck, exact.

    v <- c1 v + c2 xi,   c1 = exp(-gamma h / M),   c2^2 = (kT / M)(1 - c1^2)

with xi a fresh standard normal vector for each bead. In-triangle points take the same step and are then
projected into their planes: with p_lambda = m A^T v that is the exact step of p_lambda, for the noise
A^T xi has the covariance A^T A = G that it needs. Nodes of filaments may have a friction along the filament and
another across it: then c1 and c2 are tensors with the tangent as an axis, and the step is as exact.
Source: BAGOGAB, "Splitting strategy", O.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector
from medyanpy._kernels.core.box cimport displacement
from medyanpy._kernels.core.noise cimport normals_at, normals_of
from medyanpy._kernels.core.parallel cimport over_blocks
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK, THERMOSTAT
from medyanpy._kernels.beads.points cimport Frame, frame_of, project
from medyanpy._kernels.core.program cimport Operation, World
from medyanpy._kernels.core.vec3 cimport add_scaled, dot

# Beads per parallel block: a whole number of blocks of normals.
cdef Py_ssize_t BLOCK = 8 * NORMALS_BLOCK


cdef struct ThermostatTask:
    int letter
    const double* c1
    const double* c2


cdef inline bint _is_idle(const ThermostatTask* t, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """Whether O does nothing to these beads: without friction, or because their flow does it."""
    cdef double sum = 0.0
    cdef Py_ssize_t i
    for i in range(first, first + n):
        sum += (1.0 - t.c1[i]) + t.c2[i]
    return sum == 0.0


cdef int _thermostat(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef ThermostatTask* t = <ThermostatTask*> task
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef int32_t place[NORMALS_BLOCK]
    cdef double* v
    cdef Frame frame
    cdef Py_ssize_t start, i, k, n, count
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        if _is_idle(t, start, n):
            start += n
            continue
        count = n
        if world.alive == NULL:
            normals_of(world, start, <int> n, t.letter, THERMOSTAT, 0, gx, gy, gz)
        else:
            # Rows that are inactive draw nothing, however many there are.
            count = 0
            for i in range(start, start + n):
                place[count] = <int32_t> i
                count += world.alive[i] != 0 and not _is_idle(t, i, 1)
            normals_at(world, place, <int> count, t.letter, THERMOSTAT, 0, gx, gy, gz)
        for k in range(count):
            i = start + k if world.alive == NULL else place[k]
            v = world.v + 3 * i
            v[0] = t.c1[i] * v[0] + t.c2[i] * gx[k]
            v[1] = t.c1[i] * v[1] + t.c2[i] * gy[k]
            v[2] = t.c1[i] * v[2] + t.c2[i] * gz[k]
            if i >= world.n_cartesian:
                frame_of(
                    &world.box, world.x,
                    world.faces + 3 * <Py_ssize_t> world.triangle[i - world.n_cartesian], &frame)
                project(&frame, v)
        start += n
    return 0


cdef class Thermostat(Operation):
    """O, as the letter number `letter` of its word, with c1 and c2 (n,) for each bead."""
    cdef ThermostatTask task
    cdef list arrays

    def __init__(self, int letter, const double[::1] c1, const double[::1] c2):
        self.arrays = []
        self.task.letter = letter
        self.task.c1 = vector(self.arrays, c1)
        self.task.c2 = vector(self.arrays, c2)

    cdef int run(self, World* world) noexcept nogil:
        return over_blocks(_thermostat, &self.task, world, world.n, BLOCK)


cdef struct AlongTask:
    int letter
    Py_ssize_t first          # place of the first node
    const int32_t* before     # (n,) place of the node before, -1 at the start of a filament
    const int32_t* after
    const double* along       # (n, 2) c1 and c2 along the tangent
    const double* across


cdef inline void _tangent(World* world, Py_ssize_t i, int before, int after, double* t) noexcept nogil:
    """Unit tangent: the mean direction of the links at a node; at a hairpin, where that is zero, the next link's."""
    cdef double d[3]
    cdef double square
    cdef int c
    t[0] = t[1] = t[2] = 0.0
    if before >= 0:
        displacement(&world.box, world.x + 3 * <Py_ssize_t> before, world.x + 3 * i, d)
        square = dot(d, d)
        add_scaled(1.0 / sqrt(square) if square > 0.0 else 0.0, d, t)
    if after >= 0:
        displacement(&world.box, world.x + 3 * i, world.x + 3 * <Py_ssize_t> after, d)
        square = dot(d, d)
        add_scaled(1.0 / sqrt(square) if square > 0.0 else 0.0, d, t)
        if not dot(t, t) > 0.0:
            t[0], t[1], t[2] = d[0], d[1], d[2]
    square = dot(t, t)
    square = 1.0 / sqrt(square) if square > 0.0 else 0.0
    for c in range(3):
        t[c] *= square


cdef int _along(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef AlongTask* a = <AlongTask*> task
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef double t[3]
    cdef double g[3]
    cdef double* v
    cdef double extra
    cdef Py_ssize_t start, k, i, n
    cdef int c
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        normals_of(world, a.first + start, <int> n, a.letter, THERMOSTAT, 0, gx, gy, gz)
        for k in range(n):
            i = start + k
            v = world.v + 3 * (a.first + i)
            g[0], g[1], g[2] = gx[k], gy[k], gz[k]
            _tangent(world, a.first + i, a.before[i], a.after[i], t)
            extra = (a.along[2 * i] - a.across[2 * i]) * dot(t, v)
            extra += (a.along[2 * i + 1] - a.across[2 * i + 1]) * dot(t, g)
            for c in range(3):
                v[c] = a.across[2 * i] * v[c] + a.across[2 * i + 1] * g[c] + extra * t[c]
        start += n
    return 0


cdef class AlongAcross(Operation):
    """O for n nodes of filaments from place `first` on, as the letter number `letter` of its word.

    before, after (n,): places of neighbours, -1 where there is none; along, across (n, 2): c1 and c2.
    """
    cdef AlongTask task
    cdef list arrays
    cdef Py_ssize_t n

    def __init__(self, int letter, Py_ssize_t first, const int32_t[::1] before, const int32_t[::1] after,
                 const double[:, ::1] along, const double[:, ::1] across):
        self.n = before.shape[0]
        self.arrays = []
        self.task.letter = letter
        self.task.first = first
        self.task.before = vector(self.arrays, before)
        self.task.after = vector(self.arrays, after)
        self.task.along = table(self.arrays, along)
        self.task.across = table(self.arrays, across)

    cdef int run(self, World* world) noexcept nogil:
        return over_blocks(_along, &self.task, world, self.n, BLOCK)
