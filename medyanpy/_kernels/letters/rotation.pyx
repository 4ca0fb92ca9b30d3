"""Rotation of oriented beads in A and O.

    A  free rotation: exact rotations about the body axes 1, 2, 3, 2, 1 for h/2, h/2, h, h/2, h/2, `parts` times
       for h / parts. About axis k by the angle phi = h L_k / I_k,
           q <- q (cos phi/2, e_k sin phi/2),    L <- R_k(-phi) L
       which leaves the angular momentum R(q) L in space as it is, and each part of the energy.
       Or all of it at once, to rounding: seen from a frame that turns with cL about the momentum, which is fixed in
       space, L' = L x J L and q' = 1/2 q J L with J = 1/I - c, whose power series are summed.
    O  exact Ornstein-Uhlenbeck step of the six momenta p = (m R^T v, L) with a friction tensor G in the body frame:
           p <- C1 p + C2 xi,    C1 = exp(-h G M^-1),   C2 C2^T = kT (M - C1 M C1^T)

q turns vectors of the body frame into space, L is in the body frame, whose axes are the principal axes of inertia.
Source: Miller et al., J. Chem. Phys. 116, 8649 (2002), the splitting (there on the conjugates of quaternions; with L
it is the same map); van Zon & Schofield, J. Comput. Phys. 225, 145 (2007), the exact flow, there by elliptic functions;
Davidchack, Ouldridge & Tretyakov, J. Chem. Phys. 142, 144114 (2015), O.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport vector
from medyanpy._kernels.core.free_rotation cimport Bodies, LANES, turn_freely
from medyanpy._kernels.core.noise cimport six_normals_of
from medyanpy._kernels.core.parallel cimport over_blocks, record_fault
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK
from medyanpy._kernels.core.program cimport NOT_FINITE, Operation, World, is_there
from medyanpy._kernels.core.quaternion cimport into_body, into_space, matrix_of, scale_to_unit

cdef enum:
    # Columns of the matrices of O: rows of 6, padded to whole vectors.
    PADDED = 8

# Bodies per parallel block: whole vectors, and whole blocks of normals.
cdef Py_ssize_t BLOCK = 8 * NORMALS_BLOCK


cdef struct RotationTask:
    Py_ssize_t first          # row of the first body
    double h                  # of each part
    int parts                 # 0: all at once, exactly


cdef int _rotate(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef RotationTask* t = <RotationTask*> task
    cdef Bodies b
    cdef double* q
    cdef double* spin
    cdef const double* rate
    cdef double scale[LANES]
    cdef double check
    cdef Py_ssize_t chunk, start, n, lane, i
    cdef int c
    for chunk in range((last - first + LANES - 1) // LANES):
        start = first + LANES * chunk
        n = min(<Py_ssize_t> LANES, last - start)
        q = world.orientation + 4 * (t.first + start)
        spin = world.spin + 3 * (t.first + start)
        rate = world.inverse_inertia + 3 * (t.first + start)
        for lane in range(LANES):
            # Where there are no more, the last once again.
            i = lane if lane < n else n - 1
            for c in range(4):
                b.q[c][lane] = q[4 * i + c]
            for c in range(3):
                b.spin[c][lane] = spin[3 * i + c]
                b.rate[c][lane] = rate[3 * i + c]
        turn_freely(&b, t.h, t.parts)
        check = 0.0
        for lane in range(LANES):
            scale[lane] = scale_to_unit(b.q[0][lane], b.q[1][lane], b.q[2][lane], b.q[3][lane])
            check += 0.0 * (scale[lane] + b.spin[0][lane] + b.spin[1][lane] + b.spin[2][lane])
        for c in range(4):
            for lane in range(LANES):
                b.q[c][lane] *= scale[lane]
        for lane in range(n):
            for c in range(4):
                q[4 * lane + c] = b.q[c][lane]
            for c in range(3):
                spin[3 * lane + c] = b.spin[c][lane]
        if not (check == 0.0):
            for lane in range(n):
                if not (0.0 * (scale[lane] + b.spin[0][lane] + b.spin[1][lane] + b.spin[2][lane]) == 0.0):
                    return record_fault(world, NOT_FINITE, world.first_oriented + t.first + start + lane, -1)
    return 0


cdef class Rotation(Operation):
    """Free rotation of n bodies from row `first` on, for a time h: in `parts` parts, or exactly with none."""
    cdef RotationTask task
    cdef double h
    cdef Py_ssize_t n

    def __init__(self, Py_ssize_t first, Py_ssize_t n, double h, int parts):
        self.task.first = first
        self.h = h / max(parts, 1)
        self.task.parts = parts
        self.n = n

    cdef int run(self, World* world) noexcept nogil:
        self.task.h = self.h * world.pace
        return over_blocks(_rotate, &self.task, world, self.n, BLOCK)


cdef struct TensorTask:
    int letter
    Py_ssize_t first
    const int32_t* species    # (n,); NULL: those of the state
    const double* c           # (species, 2, 6, PADDED): column j of C1, and of C2, in row j


cdef int _stir(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef TensorTask* t = <TensorTask*> task
    cdef double g[6][NORMALS_BLOCK]
    cdef double R[9]
    cdef double p[6]
    cdef double out[PADDED]
    cdef const double* c
    cdef double* v
    cdef double* spin
    cdef double mass, scale
    cdef Py_ssize_t start, k, n, row, i, kind
    cdef int a, j
    start = first
    while start < last:
        n = min(<Py_ssize_t> NORMALS_BLOCK, last - start)
        six_normals_of(world, world.first_oriented + t.first + start, <int> n, t.letter, g)
        for k in range(n):
            row = t.first + start + k
            i = world.first_oriented + row
            if not is_there(world, i):
                continue
            v = world.v + 3 * i
            spin = world.spin + 3 * row
            mass = world.mass[i]
            matrix_of(world.orientation + 4 * row, R)
            into_body(R, v, p)
            for a in range(3):
                p[a] *= mass
                p[3 + a] = spin[a]
            kind = t.species[start + k] if t.species != NULL else world.species[i]
            c = t.c + 12 * PADDED * kind
            for a in range(PADDED):
                out[a] = 0.0
            for j in range(6):
                for a in range(PADDED):
                    out[a] += c[PADDED * j + a] * p[j] + c[PADDED * (6 + j) + a] * g[j][k]
            into_space(R, out, v)
            scale = 1.0 / mass
            for a in range(3):
                v[a] *= scale
                spin[a] = out[3 + a]
        start += n
    return 0


cdef class TensorThermostat(Operation):
    """O for n bodies from row `first` on, as the letter number `letter` of its word.

    species (n,): which matrices a body has; None: those of its species now. c (species, 2, 6, 8): C1 and C2, row j
    holding column j, padded by 0.
    """
    cdef TensorTask task
    cdef list arrays
    cdef Py_ssize_t n

    def __init__(self, int letter, Py_ssize_t first, Py_ssize_t n, const int32_t[::1] species,
                 const double[:, :, :, ::1] c):
        self.n = n
        self.arrays = [c]
        self.task.letter = letter
        self.task.first = first
        self.task.species = NULL
        if species is not None:
            self.task.species = vector(self.arrays, species)
        self.task.c = &c[0, 0, 0, 0]

    cdef int run(self, World* world) noexcept nogil:
        return over_blocks(_stir, &self.task, world, self.n, BLOCK)
