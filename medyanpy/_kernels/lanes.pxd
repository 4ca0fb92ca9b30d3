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
    #define MEDYANPY_PICK_2(x, stride, at, k) (x)[(stride) * (Py_ssize_t) (at)[k]], (x)[(stride) * (Py_ssize_t) (at)[k + 1]]
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
    /* Macros: a function that returns a vector would depend on the instruction set in how it does. */
    #define MEDYANPY_LANES_OF(x) ((medyanpy_lanes) {0} + (x))
    #define MEDYANPY_INVERSE(x) (1.0 / (x))
    #define MEDYANPY_DOT(a, b) ((a)[0] * (b)[0] + (a)[1] * (b)[1] + (a)[2] * (b)[2])
    #endif
    """
    # Of a vector, at most 8.
    enum:
        LANES "MEDYANPY_LANES"
    # Cython takes it for a number, and writes the operators that the compiler knows for vectors.
    ctypedef double Lanes "medyanpy_lanes"
    Lanes lanes_of "MEDYANPY_LANES_OF"(double x)
    # x[stride at[k]] in lane k. Lanes written one by one would have to be in memory before they are a vector.
    Lanes pick "MEDYANPY_PICK"(const double* x, int stride, const int32_t* at)
    Lanes inverse_of "MEDYANPY_INVERSE"(Lanes x)
    # Of vectors in space, their components one after another.
    Lanes dot "MEDYANPY_DOT"(const Lanes* a, const Lanes* b)


cdef inline double* each_of(const Lanes* a) noexcept nogil:
    """The lanes of a vector, one by one."""
    return <double*> a
