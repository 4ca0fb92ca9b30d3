"""Energies of some beads each that are functions of all their coordinates, as programs of core/expressions.pxd.

    U = sum_t u(x_1, ..., x_k; p_t)

Programs: u and its gradient; the second derivatives, of the upper triangle row by row; and the gradient of a.H.a in
coordinates, numbers of a term and the vectors a. Each is exact, for they were made by rules. Terms are worked on WIDTH
at a time; then one thread owns a bead and adds up what acts on it, in the order of terms.

Shapes: beads (terms, k) places, others (terms, q) numbers of each. The caller has checked them, and that no term names
a bead twice.
"""
import numpy as np

from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH, evaluate, prepare
from medyanpy._kernels.core.local_terms cimport ExactTermForce
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport AddBlock, NOT_FINITE, World

cdef Py_ssize_t BLOCK = 512
# Beads per block of the sums.
cdef Py_ssize_t SUM_BLOCK = 2048


cdef struct TermsTask:
    const int32_t* beads      # (terms, k)
    const double* others      # (terms, q)
    Py_ssize_t k, q
    Function first, second, third
    double* registers         # (blocks, room)
    Py_ssize_t room
    double* gradient          # (terms, k, 3)
    double* partial
    const int32_t* owner      # (owners,) places
    const int32_t* start      # (owners + 1,)
    const int32_t* entry      # (terms k,) of each owner, ascending
    const double* a           # (n, 3), or NULL


cdef void _load(const TermsTask* t, const World* world, Py_ssize_t first, Py_ssize_t last, double* r) noexcept nogil:
    """The numbers of up to WIDTH terms; where there are no more, the last once again."""
    cdef Py_ssize_t i, j, place
    cdef int k, c
    for k in range(WIDTH):
        i = min(first + k, last - 1)
        for j in range(t.k):
            place = t.beads[t.k * i + j]
            for c in range(3):
                r[WIDTH * (3 * j + c) + k] = world.x[3 * place + c]
                if t.a != NULL:
                    r[WIDTH * (3 * t.k + t.q + 3 * j + c) + k] = t.a[3 * place + c]
        for j in range(t.q):
            r[WIDTH * (3 * t.k + j) + k] = t.others[t.q * i + j]


cdef int _terms(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef TermsTask* t = <TermsTask*> task
    cdef double* r = t.registers + (first // BLOCK) * t.room
    cdef const int32_t* out = t.first.outputs
    cdef double u, energy = 0.0
    cdef Py_ssize_t chunk, i, k, c
    cdef int fault = 0
    prepare(&t.first, r)
    for chunk in range(n_blocks(last - first, WIDTH)):
        i = first + WIDTH * chunk
        _load(t, world, i, last, r + WIDTH * t.first.n_constants)
        evaluate(&t.first, r)
        for k in range(min(last - i, <Py_ssize_t> WIDTH)):
            u = r[WIDTH * out[0] + k]
            energy += u
            # As of fields: derivatives may look like numbers where u is none.
            if not (0.0 * u == 0.0):
                fault |= record_fault(world, NOT_FINITE, t.beads[t.k * (i + k)], -1)
            for c in range(3 * t.k):
                t.gradient[3 * t.k * (i + k) + c] = r[WIDTH * out[1 + c] + k]
    t.partial[first // BLOCK] = energy
    return fault


cdef int _sums(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef TermsTask* t = <TermsTask*> task
    cdef double sum[3]
    cdef const double* g
    cdef double* f
    cdef Py_ssize_t i, e
    cdef int c
    for i in range(first, last):
        sum[0] = sum[1] = sum[2] = 0.0
        for e in range(t.start[i], t.start[i + 1]):
            g = t.gradient + 3 * <Py_ssize_t> t.entry[e]
            for c in range(3):
                sum[c] += g[c]
        f = world.f + 3 * <Py_ssize_t> t.owner[i]
        for c in range(3):
            f[c] -= sum[c]
    return 0


cdef class Terms(ExactTermForce):
    """programs: three, each of instructions, constants, outputs, and number of registers."""
    cdef TermsTask task
    cdef Py_ssize_t terms, owners
    cdef list arrays, programs

    def __init__(self, str name, const int32_t[:, ::1] beads, const double[:, ::1] others, const int32_t[::1] owner,
                 const int32_t[::1] start, const int32_t[::1] entry, programs):
        cdef TermsTask* t = &self.task
        self.name = name
        self.derivatives = 3
        self.arrays = []
        self.terms = beads.shape[0]
        self.owners = owner.shape[0]
        t.beads = table(self.arrays, beads)
        t.others = table(self.arrays, others)
        t.k = beads.shape[1]
        t.q = others.shape[1]
        t.owner = vector(self.arrays, owner)
        t.start = vector(self.arrays, start)
        t.entry = vector(self.arrays, entry)
        self.programs = [Compiled(*program, 0) for program in programs]
        t.first = (<Compiled> self.programs[0]).function
        t.second = (<Compiled> self.programs[1]).function
        t.third = (<Compiled> self.programs[2]).function
        t.room = WIDTH * max(t.first.n_registers, t.second.n_registers, t.third.n_registers)
        t.registers = zeros(self.arrays, max(1, n_blocks(self.terms, BLOCK)) * t.room)
        t.gradient = zeros(self.arrays, 3 * t.k * self.terms)
        t.partial = zeros(self.arrays, n_blocks(self.terms, BLOCK))
        self.loops(_terms, t, t.partial, BLOCK)

    cdef int run(self, World* world) noexcept nogil:
        cdef int fault
        self.energy = 0.0
        if self.terms == 0:
            return 0
        self.task.a = NULL
        fault = over_blocks(_terms, &self.task, world, self.terms, BLOCK)
        if fault != 0:
            return fault
        over_blocks(_sums, &self.task, world, self.owners, SUM_BLOCK)
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(self.terms, BLOCK))
        return 0

    def named(self):
        if self.terms == 0:
            return (), (), 0
        beads = np.asarray(<const int32_t[:self.task.k * self.terms]> self.task.beads)
        return beads, np.arange(len(beads)) // self.task.k, self.terms

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        self.task.a = NULL
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef TermsTask* t = &self.task
        cdef double block[9]
        cdef Py_ssize_t chunk, i, k, a, b, m, n = 3 * t.k
        cdef int c, d, fault
        t.a = NULL
        prepare(&t.second, t.registers)
        for chunk in range(n_blocks(self.terms, WIDTH)):
            i = WIDTH * chunk
            _load(t, world, i, self.terms, t.registers + WIDTH * t.second.n_constants)
            evaluate(&t.second, t.registers)
            for k in range(min(self.terms - i, <Py_ssize_t> WIDTH)):
                for a in range(t.k):
                    for b in range(a, t.k):
                        for c in range(3):
                            for d in range(3):
                                m = min(3 * a + c, 3 * b + d)
                                # Where row m of the upper triangle starts, and how far along it.
                                m = m * n - m * (m - 1) // 2 + (max(3 * a + c, 3 * b + d) - m)
                                block[3 * c + d] = t.registers[WIDTH * t.second.outputs[m] + k]
                        fault = add(sink, t.beads[t.k * (i + k) + a], t.beads[t.k * (i + k) + b], block)
                        if fault != 0:
                            return fault
        return 0

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        cdef TermsTask* t = &self.task
        cdef Py_ssize_t chunk, i, j, k
        cdef int c
        t.a = a
        prepare(&t.third, t.registers)
        for chunk in range(n_blocks(self.terms, WIDTH)):
            i = WIDTH * chunk
            _load(t, world, i, self.terms, t.registers + WIDTH * t.third.n_constants)
            evaluate(&t.third, t.registers)
            for k in range(min(self.terms - i, <Py_ssize_t> WIDTH)):
                for j in range(t.k):
                    for c in range(3):
                        out[3 * <Py_ssize_t> t.beads[t.k * (i + k) + j] + c] += t.registers[
                            WIDTH * t.third.outputs[3 * j + c] + k]
        return 0
