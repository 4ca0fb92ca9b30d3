"""Energies of single sites that are functions of x, y, z, given as programs of _kernels/core/expressions.pxd.

    U = sum_i u(x_i; p_i),   F_i = -grad u

In a periodic box x is that of the image that is nearest to the origin. Three programs: u and its gradient; the six
second derivatives xx, xy, xz, yy, yz, zz; the ten third ones. Each is exact, for they were made by rules. Sites are
worked on WIDTH at a time, one in each lane; what a site gets depends on its own numbers alone.

Shapes: m rows of a table of sites; others (m, q) numbers of each, which follow x, y, z in the registers. The caller has
checked rows, that none occurs twice, and programs.
"""
from libc.stdint cimport int32_t

from medyanpy._kernels.core.arrays cimport table, vector, zeros
from medyanpy._kernels.core.box cimport Box, nearest_image
from medyanpy._kernels.core.expressions cimport Compiled, Function, WIDTH, evaluate
from medyanpy._kernels.core.local_terms cimport SiteForce
from medyanpy._kernels.core.parallel cimport n_blocks, ordered_sum, over_blocks, record_fault
from medyanpy._kernels.core.program cimport AddBlock, NOT_FINITE, World
from medyanpy._kernels.core.sites cimport SiteArrays, SiteTable, is_asleep

cdef Py_ssize_t BLOCK = 2048

# Which of the six second derivatives that by i, j is, and which of the ten third ones that by i, j, k.
cdef int[9] SIX = [0, 1, 2, 1, 3, 4, 2, 4, 5]
cdef int[27] TEN = [0, 1, 2, 1, 3, 4, 2, 4, 5, 1, 3, 4, 3, 6, 7, 4, 7, 8, 2, 4, 5, 4, 7, 8, 5, 8, 9]


cdef struct FieldTask:
    SiteArrays sites
    const int32_t* row
    const double* others      # (m, q)
    Py_ssize_t q
    const Function* function
    double* registers         # (blocks, WIDTH * n_registers)
    double* partial


cdef inline void _load(
    const FieldTask* t, const Box* box, Py_ssize_t first, Py_ssize_t last, double* registers,
) noexcept nogil:
    """The numbers of up to WIDTH sites; where there are no more, the last once again."""
    cdef double* r = registers + WIDTH * t.function.n_constants
    cdef const double* x
    cdef double image[3]
    cdef Py_ssize_t i, p
    cdef int k, c
    for k in range(WIDTH):
        i = min(first + k, last - 1)
        x = t.sites.x + 3 * <Py_ssize_t> t.row[i]
        for c in range(3):
            image[c] = x[c]
        nearest_image(box, image)
        for c in range(3):
            r[c * WIDTH + k] = image[c]
        for p in range(t.q):
            r[WIDTH * (3 + p) + k] = t.others[t.q * i + p]


cdef int _field(void* task, World* world, Py_ssize_t first, Py_ssize_t last, int thread) noexcept nogil:
    cdef FieldTask* t = <FieldTask*> task
    cdef double* r = t.registers + (first // BLOCK) * WIDTH * t.function.n_registers
    cdef const int32_t* out = t.function.outputs
    cdef double* f
    cdef double u, energy = 0.0
    cdef Py_ssize_t bead, chunk, i, k
    cdef int c, fault = 0
    for chunk in range((last - first + WIDTH - 1) // WIDTH):
        i = first + WIDTH * chunk
        _load(t, &world.box, i, last, r)
        evaluate(t.function, r)
        for k in range(min(last - i, <Py_ssize_t> WIDTH)):
            if is_asleep(world, &t.sites, t.row[i + k]):
                continue
            f = t.sites.f + 3 * <Py_ssize_t> t.row[i + k]
            u = r[WIDTH * out[0] + k]
            energy += u
            # Beyond a pole u is not a number, but its derivatives may look like some: -log(x) has the force 1/x.
            if not (0.0 * u == 0.0):
                bead = t.row[i + k]
                fault |= record_fault(world, NOT_FINITE, bead if t.sites.bead == NULL else t.sites.bead[bead], -1)
            for c in range(3):
                f[c] -= r[WIDTH * out[1 + c] + k]
    t.partial[first // BLOCK] = energy
    return fault


cdef class ExpressionField(SiteForce):
    """A field on single sites. programs: three, each of instructions, constants, outputs, and number of registers."""
    cdef FieldTask task
    cdef list arrays
    cdef Compiled first, second, third

    def __init__(self, str name, SiteTable sites, const int32_t[::1] row, const double[:, ::1] others, programs):
        blocks = n_blocks(row.shape[0], BLOCK)
        self.name = name
        # How a body turns is not among the positions that derivatives are taken in.
        self.derivatives = 1 if sites.has_arms else 3
        self.sites = sites
        self.row = row
        self.first = Compiled(*programs[0], blocks)
        self.second = Compiled(*programs[1], 1)
        self.third = Compiled(*programs[2], 1)
        self.arrays = []
        self.task.row = vector(self.arrays, row)
        self.task.others = table(self.arrays, others)
        self.task.q = others.shape[1]
        self.task.partial = zeros(self.arrays, blocks)
        self.loops(_field, &self.task, self.task.partial, BLOCK)

    cdef int begin(self, World* world, Compiled program) noexcept nogil:
        cdef int fault = self.sites.gather(world)
        self.use(program)
        return fault

    cdef void use(self, Compiled program) noexcept nogil:
        self.task.sites = self.sites.now
        self.task.function = &program.function
        self.task.registers = &program.registers[0, 0]

    cdef int run(self, World* world) noexcept nogil:
        cdef Py_ssize_t n = self.row.shape[0]
        cdef int fault
        self.energy = 0.0
        if n == 0:
            return 0
        fault = self.begin(world, self.first)
        if fault != 0:
            return fault
        fault = over_blocks(_field, &self.task, world, n, BLOCK)
        if fault != 0:
            return fault
        if world.want_energy:
            self.energy = ordered_sum(self.task.partial, n_blocks(n, BLOCK))
        return self.sites.scatter(world)

    cdef int look(self, World* world, Py_ssize_t term) noexcept nogil:
        self.sites.refresh(world, self.row[term])
        self.use(self.first)
        return 0

    cdef int hessian(self, World* world, AddBlock add, void* sink) noexcept nogil:
        cdef FieldTask* t = &self.task
        cdef double block[9]
        cdef Py_ssize_t n = self.row.shape[0], chunk, i, k
        cdef int c, fault
        if n == 0:
            return 0
        fault = self.begin(world, self.second)
        for chunk in range((n + WIDTH - 1) // WIDTH):
            i = WIDTH * chunk
            _load(t, &world.box, i, n, t.registers)
            evaluate(t.function, t.registers)
            for k in range(min(n - i, <Py_ssize_t> WIDTH)):
                if fault == 0 and not is_asleep(world, &t.sites, self.row[i + k]):
                    for c in range(9):
                        block[c] = t.registers[WIDTH * t.function.outputs[SIX[c]] + k]
                    fault = self.sites.add_single(self.row[i + k], block, add, sink)
        return fault

    cdef int contract(self, World* world, const double* a, double* out) noexcept nogil:
        cdef FieldTask* t = &self.task
        cdef double b[3]
        cdef double sum[3]
        cdef Py_ssize_t n = self.row.shape[0], chunk, i, k
        cdef int c, d, e, fault
        if n == 0:
            return 0
        fault = self.begin(world, self.third)
        for chunk in range((n + WIDTH - 1) // WIDTH):
            i = WIDTH * chunk
            _load(t, &world.box, i, n, t.registers)
            evaluate(t.function, t.registers)
            for k in range(min(n - i, <Py_ssize_t> WIDTH)):
                if is_asleep(world, &t.sites, self.row[i + k]):
                    continue
                self.sites.mean(self.row[i + k], a, b)
                for c in range(3):
                    sum[c] = 0.0
                    for d in range(3):
                        for e in range(3):
                            sum[c] += t.registers[WIDTH * t.function.outputs[TEN[9 * c + 3 * d + e]] + k] * b[d] * b[e]
                self.sites.share_single(self.row[i + k], sum, out)
        return fault
