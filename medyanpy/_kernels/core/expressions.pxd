"""Functions of x, y, z as straight-line programs: how implicit surfaces and fields are evaluated, WIDTH points at a
time.

An instruction is (operation, target, a, b), all but the first the numbers of registers. A register holds one number
for each of WIDTH points. The first registers hold the constants, then come x, y, z, then other numbers of the points
if there are any, then what instructions write.
What a point gets depends on its own coordinates alone.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t

from medyanpy._kernels.core.elementary cimport acos_, asin_, atan2_, exp_, log_, sincos_
from medyanpy._kernels.core.simd cimport Lanes, lanes_of
from medyanpy._kernels.core.special cimport (
    erf_, erfc_, floor_, gauss_, log1p_, power_, sinhcosh_, size_of, tanh_,
)

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
    # Those of `further`.
    SINHCOSH = 8              # sinh to the target, cosh to b
    TANH = 9
    ASIN = 10
    ACOS = 11
    ATAN2 = 12                # the angle of the point (b, a)
    ERF = 13
    ERFC = 14
    GAUSS = 15                # exp(-a^2)
    LOG1P = 16                # log(1 + a)
    FLOOR = 17
    ABS = 18
    MIN = 19
    MAX = 20
    STEP = 21                 # 1 where a >= 0, else 0
    # A choice is a sum of two, of which one is 0: what is not chosen may be no number.
    KEEP = 22                 # b where a is not 0, else 0
    DROP = 23                 # 0 where a is not 0, else b
    # a^(b - k) is POWER + k: derivatives have exponents that would round.
    POWER = 32


cdef struct Function:
    const int32_t* instructions    # (n, 4)
    Py_ssize_t n
    const double* constants
    Py_ssize_t n_constants
    const int32_t* outputs         # registers in which the results are
    Py_ssize_t n_registers


cdef class Compiled:
    cdef Function function
    cdef list arrays
    cdef double[:, ::1] registers  # (blocks, WIDTH * n_registers)


cdef inline void prepare(const Function* f, double* registers) noexcept nogil:
    """Write the constants; instructions leave them alone."""
    cdef Lanes* r = <Lanes*> registers
    cdef Py_ssize_t i, k
    for i in range(f.n_constants):
        for k in range(VECTORS):
            r[VECTORS * i + k] = lanes_of(f.constants[i])


cdef inline void further(int code, const double* a, const double* b, double* s, double* c) noexcept nogil:
    """What is less often asked for: s of WIDTH points, and c where there are two results. No number stays none."""
    cdef double t
    cdef int k
    if code == SINHCOSH:
        for k in range(WIDTH):
            sinhcosh_(a[k], s + k, c + k)
    elif code == TANH:
        for k in range(WIDTH):
            s[k] = tanh_(a[k])
    elif code == ASIN:
        for k in range(WIDTH):
            s[k] = asin_(a[k])
    elif code == ACOS:
        for k in range(WIDTH):
            s[k] = acos_(a[k])
    elif code == ATAN2:
        for k in range(WIDTH):
            s[k] = atan2_(a[k], b[k])
    elif code == ERF:
        for k in range(WIDTH):
            s[k] = erf_(a[k])
    elif code == ERFC:
        for k in range(WIDTH):
            s[k] = erfc_(a[k])
    elif code == GAUSS:
        for k in range(WIDTH):
            s[k] = gauss_(a[k])
    elif code == LOG1P:
        for k in range(WIDTH):
            s[k] = log1p_(a[k])
    elif code >= POWER:
        t = code - POWER
        for k in range(WIDTH):
            s[k] = power_(a[k], b[k], t)
    elif code == FLOOR:
        for k in range(WIDTH):
            s[k] = floor_(a[k])
    elif code == ABS:
        for k in range(WIDTH):
            s[k] = size_of(a[k])
    elif code == MIN:
        for k in range(WIDTH):
            t = a[k] if a[k] <= b[k] else b[k]
            s[k] = t if a[k] == a[k] else a[k]
    elif code == MAX:
        for k in range(WIDTH):
            t = a[k] if a[k] >= b[k] else b[k]
            s[k] = t if a[k] == a[k] else a[k]
    elif code == STEP:
        for k in range(WIDTH):
            t = 1.0 if a[k] >= 0.0 else 0.0
            s[k] = t if a[k] == a[k] else a[k]
    elif code == KEEP:
        for k in range(WIDTH):
            t = b[k] if a[k] != 0.0 else 0.0
            s[k] = t if a[k] == a[k] else a[k]
    else:
        for k in range(WIDTH):
            t = b[k] if a[k] == 0.0 else 0.0
            s[k] = t if a[k] == a[k] else a[k]


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
        elif at[0] == LOG:
            u = <double*> a
            for k in range(WIDTH):
                s[k] = log_(u[k])
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
        else:
            further(at[0], <double*> a, <double*> b, s, c)
            w = <double*> target
            for k in range(WIDTH):
                w[k] = s[k]
            if at[0] == SINHCOSH:
                w = <double*> b
                for k in range(WIDTH):
                    w[k] = c[k]
        at += 4
