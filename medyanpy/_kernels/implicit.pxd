"""Functions of x, y, z as straight-line programs: how implicit surfaces and fields are evaluated, WIDTH points at a
time.

An instruction is (operation, target, a, b), all but the first the numbers of registers. A register holds one number
for each of WIDTH points. The first registers hold the constants, then come x, y, z, then other numbers of the points
if there are any, then what instructions write.
What a point gets depends on its own coordinates alone.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.elementary cimport exp_, log_, sincos_
from medyanpy._kernels.lanes cimport Lanes, lanes_of

cdef extern from * nogil:
    enum:
        # Vectors in a register, which make WIDTH lanes.
        VECTORS "(16 / MEDYANPY_LANES)"

cdef enum:
    # With fewer, the cost of reading an instruction is not small beside its work.
    WIDTH = 16

cdef enum Code:
    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    SQRT = 4
    SINCOS = 5                # sine to the target, cosine to b
    EXP = 6
    LOG = 7


cdef struct Function:
    const int32_t* instructions    # (n, 4)
    Py_ssize_t n
    const double* constants
    Py_ssize_t n_constants
    const int32_t* outputs         # registers in which the results are
    Py_ssize_t n_registers


cdef inline void prepare(const Function* f, double* registers) noexcept nogil:
    """Write the constants; instructions leave them alone."""
    cdef Lanes* r = <Lanes*> registers
    cdef Py_ssize_t i, k
    for i in range(f.n_constants):
        for k in range(VECTORS):
            r[VECTORS * i + k] = lanes_of(f.constants[i])


cdef inline void evaluate(const Function* f, double* registers) noexcept nogil:
    """From the coordinates in their registers, the results in theirs."""
    cdef const int32_t* at = f.instructions
    cdef const int32_t* end = at + 4 * f.n
    cdef Lanes* target
    cdef Lanes* a
    cdef Lanes* b
    cdef double s[WIDTH]
    cdef double c[WIDTH]
    cdef double* u
    cdef double* w
    cdef int k
    while at != end:
        target = (<Lanes*> registers) + VECTORS * <Py_ssize_t> at[1]
        a = (<Lanes*> registers) + VECTORS * <Py_ssize_t> at[2]
        b = (<Lanes*> registers) + VECTORS * <Py_ssize_t> at[3]
        if at[0] == MULTIPLY:
            for k in range(VECTORS):
                target[k] = a[k] * b[k]
        elif at[0] == ADD:
            for k in range(VECTORS):
                target[k] = a[k] + b[k]
        elif at[0] == SUBTRACT:
            for k in range(VECTORS):
                target[k] = a[k] - b[k]
        elif at[0] == DIVIDE:
            for k in range(VECTORS):
                target[k] = a[k] / b[k]
        elif at[0] == SQRT:
            u = <double*> a
            for k in range(WIDTH):
                s[k] = sqrt(u[k])
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
        elif at[0] == SINCOS:
            u = <double*> a
            for k in range(WIDTH):
                sincos_(u[k], s + k, c + k)
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
            w = <double*> b
            for k in range(WIDTH):
                w[k] = c[k]
        elif at[0] == EXP:
            u = <double*> a
            for k in range(WIDTH):
                s[k] = exp_(u[k])
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
        else:
            u = <double*> a
            for k in range(WIDTH):
                s[k] = log_(u[k])
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
        at += 4
