"""Vectors of doubles as wide as the instruction set that a kernel is compiled for; one number in each of their LANES.

Wider ones would go through memory: gcc makes nothing better of a vector that is wider than its registers. Kernels are
translated once and compiled once for each instruction set, so that LANES is the compiler's to say, not Cython's. What
a lane holds never depends on how many there are.
"""
from libc.stdint cimport int32_t

cdef extern from * nogil:
    """
    #ifndef MEDYANPY_LANES
    #if defined(__AVX512F__)
    #define MEDYANPY_LANES 8
    #elif defined(__AVX2__)
    #define MEDYANPY_LANES 4
    #else
    #define MEDYANPY_LANES 2
    #endif
    #define MEDYANPY_PICK_1(x, stride, at, k) (x)[(stride) * (Py_ssize_t) (at)[k]]
    #define MEDYANPY_PICK_2(x, stride, at, k) MEDYANPY_PICK_1(x, stride, at, k), MEDYANPY_PICK_1(x, stride, at, k + 1)
    #define MEDYANPY_PICK_4(x, stride, at, k) MEDYANPY_PICK_2(x, stride, at, k), MEDYANPY_PICK_2(x, stride, at, k + 2)
    #if MEDYANPY_LANES == 8
    #define MEDYANPY_PICK(x, stride, at) \
        ((medyanpy_lanes) {MEDYANPY_PICK_4(x, stride, at, 0), MEDYANPY_PICK_4(x, stride, at, 4)})
    #elif MEDYANPY_LANES == 4
    #define MEDYANPY_PICK(x, stride, at) ((medyanpy_lanes) {MEDYANPY_PICK_4(x, stride, at, 0)})
    #else
    #define MEDYANPY_PICK(x, stride, at) ((medyanpy_lanes) {MEDYANPY_PICK_2(x, stride, at, 0)})
    #endif
    typedef double medyanpy_lanes __attribute__((vector_size(8 * MEDYANPY_LANES), aligned(8)));
    typedef long long medyanpy_masks __attribute__((vector_size(8 * MEDYANPY_LANES), aligned(8)));
    /* Macros: a function that returns a vector would depend on the instruction set in how it does. */
    #define MEDYANPY_LANES_OF(x) ((medyanpy_lanes) {0} + (x))
    #define MEDYANPY_IS_POSITIVE(x) \
        ((medyanpy_lanes) (((x) > MEDYANPY_LANES_OF(0.0)) & (medyanpy_masks) MEDYANPY_LANES_OF(1.0)))
    #define MEDYANPY_INVERSE(x) (1.0 / (x))
    #define MEDYANPY_AT(a) (*(const medyanpy_lanes*) (a))
    #define MEDYANPY_DOT(a, b, plane) \
        (MEDYANPY_AT(a) * MEDYANPY_AT(b) + MEDYANPY_AT((a) + (plane)) * MEDYANPY_AT((b) + (plane)) \
         + MEDYANPY_AT((a) + 2 * (plane)) * MEDYANPY_AT((b) + 2 * (plane)))
    #endif
    """
    # Of a vector, at most 8.
    enum:
        LANES "MEDYANPY_LANES"
    # Cython takes it for a number, another one than double, and writes operators, which the compiler knows for vectors.
    ctypedef long double Lanes "medyanpy_lanes"
    Lanes lanes_of "MEDYANPY_LANES_OF"(double x)
    # x[stride at[k]] in lane k. Lanes written one by one would have to be in memory before they are a vector.
    Lanes pick "MEDYANPY_PICK"(const double* x, int stride, const int32_t* at)
    # 1 where it is, 0 elsewhere.
    Lanes is_positive "MEDYANPY_IS_POSITIVE"(Lanes x)
    Lanes inverse_of "MEDYANPY_INVERSE"(Lanes x)
    # Of vectors in space, whose components are `plane` doubles apart.
    Lanes dot "MEDYANPY_DOT"(const double* a, const double* b, Py_ssize_t plane)


# What a formula is written for that is used one by one as well.
ctypedef fused Number:
    double
    Lanes


cdef inline Lanes* lanes_at(const double* a) noexcept nogil:
    """The LANES doubles from a on; they need not be aligned."""
    return <Lanes*> a


cdef inline double* each_of(const Lanes* a) noexcept nogil:
    """The lanes of a vector, one by one."""
    return <double*> a
