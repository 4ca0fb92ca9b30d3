"""The letter O: Ornstein-Uhlenbeck, exact.

    v <- c1 v + c2 xi,   c1 = exp(-gamma h / M),   c2^2 = (kT / M)(1 - c1^2)

with xi a fresh standard normal vector for each bead. In-triangle points take the same step and are then
projected into their planes: with p_lambda = m A^T v that is the exact step of p_lambda, for the noise
A^T xi has the covariance A^T A = G that it needs.
Source: BAGOGAB, "Splitting strategy", O.
"""

from medyanpy._kernels.parallel cimport over_blocks
from medyanpy._kernels.philox cimport NORMALS_BLOCK, THERMOSTAT, normals_block
from medyanpy._kernels.points cimport Frame, frame_of, project
from medyanpy._kernels.program cimport Operation, World

# Beads per parallel block: a whole number of blocks of normals.
cdef Py_ssize_t BLOCK = 8 * NORMALS_BLOCK


cdef struct ThermostatTask:
    int letter
    const double* c1
    const double* c2


cdef int _thermostat(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef ThermostatTask* t = <ThermostatTask*> task
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    cdef double* v
    cdef Frame frame
    cdef Py_ssize_t start, i, k, n
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        normals_block(
            <const int*> (world.id + start), <int> n, world.seed, world.step, t.letter, 0, THERMOSTAT, 0, gx, gy, gz)
        for k in range(n):
            i = start + k
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
    cdef int letter
    cdef double[::1] c1
    cdef double[::1] c2

    def __init__(self, int letter, double[::1] c1, double[::1] c2):
        self.letter = letter
        self.c1 = c1
        self.c2 = c2

    cdef int run(self, World* world) noexcept nogil:
        cdef ThermostatTask task
        task.letter = self.letter
        task.c1 = &self.c1[0]
        task.c2 = &self.c2[0]
        return over_blocks(_thermostat, &task, world, world.n, BLOCK)
