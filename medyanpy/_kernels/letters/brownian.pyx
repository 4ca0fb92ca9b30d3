"""The letter D: Brownian displacement without velocities. Euler and Maruyama's step,

    plain bead      x += h F / gamma + sqrt(2 kT h / gamma) xi
    oriented bead   d = (h / kT) D (F, T) + h b + sqrt(2 h) D^(1/2) xi,    x += R d_t,    q <- q exp(d_r / 2)

with force, torque, D (6x6, about the centre of mass) and d in the frame of the body as it is before the step. Where the
coupling block of D is not symmetric, the bead turns while it moves and the other way round, and a mean step is left:
b_k = sum_ij eps_kji D_ij over translations i and rotations j. Derived in docs/theory/brownian.md.

Leimkuhler and Matthews' step, of plain beads, which constraints may hold, and of in-triangle points, in two flights of
h/2:

    v = kept + 2 F / gamma,    x += h/2 v,    v = sqrt(2 kT / (gamma h)) xi,    x += h/2 v,    kept = v

Kicks, noise and flights are those of B, O, A and G, with other numbers; here is what keeps the noise between steps.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport vector
from medyanpy._kernels.beads.points cimport Frame, frame_of, project
from medyanpy._kernels.letters.kick cimport ForceSum
from medyanpy._kernels.core.noise cimport normals_of, six_normals_of
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK, THERMOSTAT
from medyanpy._kernels.core.program cimport NOT_FINITE, Operation, World, is_there, mark_moved
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of
from medyanpy._kernels.core.rotations cimport Turns, turn

cdef enum:
    # Rows of the numbers of a species, and their columns: rows of 6, padded to whole vectors.
    ROWS = 13
    PADDED = 8

# Beads per parallel block: whole blocks of normals.
cdef Py_ssize_t BLOCK = 8 * NORMALS_BLOCK


cdef struct PlainTask:
    int letter
    const double* f           # NULL where there are no forces
    const double* c1
    const double* c2


cdef int _displace(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef PlainTask* t = <PlainTask*> task
    cdef double g[3][NORMALS_BLOCK]
    cdef double* x
    cdef double check
    cdef Py_ssize_t start, k, n, i
    cdef int c
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        normals_of(world, start, <int> n, t.letter, THERMOSTAT, 0, g[0], g[1], g[2])
        check = 0.0
        for k in range(n):
            i = start + k
            x = world.x + 3 * i
            for c in range(3):
                x[c] += t.c2[i] * g[c][k]
                if t.f != NULL:
                    x[c] += t.c1[i] * t.f[3 * i + c]
                check += 0.0 * x[c]
        if not (check == 0.0):
            for i in range(start, start + n):
                x = world.x + 3 * i
                if not (0.0 * (x[0] + x[1] + x[2]) == 0.0):
                    return record_fault(world, NOT_FINITE, i, -1)
        start += n
    return 0


cdef class Displacement(Operation):
    """D for the first n beads, as the letter number `letter` of its word, by forces that have been added up.

    c1, c2 (n,): h / gamma and sqrt(2 kT h / gamma); 0 for beads that stay.
    """
    cdef PlainTask task
    cdef ForceSum forces
    cdef list arrays
    cdef Py_ssize_t n

    def __init__(self, int letter, ForceSum forces, const double[::1] c1, const double[::1] c2):
        self.n = c1.shape[0]
        self.forces = forces
        self.arrays = []
        self.task.letter = letter
        self.task.c1 = vector(self.arrays, c1)
        self.task.c2 = vector(self.arrays, c2)

    cdef int run(self, World* world) noexcept nogil:
        if self.n == 0:
            return 0
        self.task.f = &self.forces.f[0, 0] if self.forces.forces.count > 0 else NULL
        mark_moved(world)
        return over_blocks(_displace, &self.task, world, self.n, BLOCK)


cdef int _restore(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef const double* kept = <const double*> task
    cdef Frame frame
    cdef Py_ssize_t i
    cdef int c
    for i in range(first, last):
        for c in range(3):
            world.v[3 * i + c] = kept[3 * i + c]
        if i >= world.n_cartesian and is_there(world, i):
            # Where an edit has changed its triangle, the noise kept may lead out of that.
            frame_of(&world.box, world.x, world.faces + 3 * <Py_ssize_t> world.triangle[i - world.n_cartesian], &frame)
            project(&frame, world.v + 3 * i)
    return 0


cdef int _keep(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef double* kept = <double*> task
    cdef double check
    cdef Py_ssize_t i
    cdef int c
    for i in range(first, last):
        check = 0.0
        for c in range(3):
            kept[3 * i + c] = world.v[3 * i + c]
            world.v[3 * i + c] = 0.0
            check += 0.0 * (world.x[3 * i + c] + kept[3 * i + c])
        if not (check == 0.0):
            return record_fault(world, NOT_FINITE, i, -1)
    return 0


cdef class _Kept(Operation):
    """What is kept (n, 3) of the velocities of flights."""
    cdef double[:, ::1] kept

    def __init__(self, double[:, ::1] kept):
        self.kept = kept


cdef class Restore(_Kept):
    """Velocities are those kept."""

    cdef int run(self, World* world) noexcept nogil:
        if self.kept.shape[0] == 0:
            return 0
        return over_blocks(_restore, &self.kept[0, 0], world, self.kept.shape[0], BLOCK)


cdef class Keep(_Kept):
    """Velocities are kept, and beads have none."""

    cdef int run(self, World* world) noexcept nogil:
        if self.kept.shape[0] == 0:
            return 0
        return over_blocks(_keep, &self.kept[0, 0], world, self.kept.shape[0], BLOCK)


cdef struct TensorTask:
    int letter
    Py_ssize_t first          # row of the first body
    const int32_t* species    # NULL: those of the state
    const double* c           # (species, ROWS, PADDED)
    const double* f           # NULL where there are no forces
    const double* torque


cdef int _displace_and_turn(
    void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread,
) noexcept nogil:
    cdef TensorTask* t = <TensorTask*> task
    cdef Turns b
    cdef double g[6][NORMALS_BLOCK]
    cdef double R[9]
    cdef double p[6]
    cdef double d[PADDED]
    cdef double moved[3]
    cdef const double* c
    cdef const double* f
    cdef double* x
    cdef double* q
    cdef double check
    cdef Py_ssize_t start, k, n, row, i, kind
    cdef int a, j
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        six_normals_of(world, world.first_oriented + t.first + start, <int> n, t.letter, g)
        check = 0.0
        for k in range(n):
            row = t.first + start + k
            i = world.first_oriented + row
            q = world.orientation + 4 * row
            for a in range(4):
                b.q[a][k] = q[a]
            if not is_there(world, i):
                for a in range(3):
                    b.r[a][k] = 0.0
                continue
            matrix_of(q, R)
            kind = t.species[start + k] if t.species != NULL else world.species[i]
            c = t.c + ROWS * PADDED * kind
            for a in range(PADDED):
                d[a] = c[12 * PADDED + a]
            for j in range(6):
                for a in range(PADDED):
                    d[a] += c[PADDED * (6 + j) + a] * g[j][k]
            if t.f != NULL:
                f = t.f + 3 * i
                into_body(R, f, p)
                for a in range(3):
                    p[3 + a] = t.torque[3 * row + a]
                for j in range(6):
                    for a in range(PADDED):
                        d[a] += c[PADDED * j + a] * p[j]
            x = world.x + 3 * i
            into_space(R, d, moved)
            for a in range(3):
                x[a] += moved[a]
                b.r[a][k] = d[3 + a]
                check += 0.0 * x[a]
        check += turn(&b, n)
        q = world.orientation + 4 * (t.first + start)
        for k in range(n):
            for a in range(4):
                q[4 * k + a] = b.q[a][k]
        if not (check == 0.0):
            for k in range(n):
                i = world.first_oriented + t.first + start + k
                x = world.x + 3 * i
                if not (0.0 * (x[0] + x[1] + x[2] + q[4 * k]) == 0.0):
                    return record_fault(world, NOT_FINITE, i, -1)
        start += n
    return 0


cdef class TensorDisplacement(Operation):
    """D for n oriented beads from row `first` on, as the letter number `letter` of its word.

    species (n,): which numbers a bead has; None: those of its species now. c (species, 13, 8): the columns of h D / kT,
    those of the root of 2 h D, and h b, padded by 0.
    """
    cdef TensorTask task
    cdef ForceSum forces
    cdef list arrays
    cdef Py_ssize_t n

    def __init__(self, int letter, ForceSum forces, Py_ssize_t first, Py_ssize_t n, const int32_t[::1] species,
                 const double[:, :, ::1] c):
        self.n = n
        self.forces = forces
        self.arrays = [c]
        self.task.letter = letter
        self.task.first = first
        self.task.species = NULL
        if species is not None:
            self.task.species = vector(self.arrays, species)
        self.task.c = &c[0, 0, 0]

    cdef int run(self, World* world) noexcept nogil:
        self.task.f = self.task.torque = NULL
        if self.forces.forces.count > 0:
            self.task.f = &self.forces.f[0, 0]
            self.task.torque = self.forces.drive[0]
        mark_moved(world)
        return over_blocks(_displace_and_turn, &self.task, world, self.n, BLOCK)
