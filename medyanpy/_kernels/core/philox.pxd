# cython: language_level=3
"""Philox 4x32-10 and the normal random numbers made from it: a pure function of what the number is for.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.

Layout of key and counter, decided here and nowhere else:

====  ============================================================================================
key   the seed: key0 its low, key1 its high 32 bits
c0    permanent bead id, bits 0..31
c1    step, bits 0..31
c2    step, bits 32..47, in the high half; index of the letter in the word, 8 bits; sub-step, 8 bits
c3    purpose, 8 bits, in the high byte; draw, 24 bits, of which the upper 16 are bits 32..47 of the bead id
====  ============================================================================================

No two uses share a counter as long as 0 <= step < 2**48, letter < 256, sub-step < 256 and draw < 2**24;
callers see to it.  Fields are masked, since one too large would otherwise run into its neighbour.
"""
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t

from medyanpy._kernels.core.elementary cimport double_of, log_core, sincos2pi


cdef enum Purpose:
    # What a number is for, the high byte of c3.  Never renumber: runs would no longer repeat.
    THERMOSTAT = 1
    VELOCITIES = 2
    PLACEMENT = 3
    CONSTRAINTS = 4
    ROTATION = 5
    JUMP = 6
    METROPOLIS = 7
    TEST = 255

cdef enum:
    # Beads per call of normals_block: all its arrays are 7 KiB, which stay in the first-level cache.
    NORMALS_BLOCK = 128


cdef inline void philox_round(uint32_t* c0, uint32_t* c1, uint32_t* c2, uint32_t* c3,
                              uint32_t k0, uint32_t k1) noexcept nogil:
    """One round; pointers to local variables, which vanish when this is inlined."""
    cdef uint64_t p0 = <uint64_t>c0[0] * <uint64_t>0xD2511F53
    cdef uint64_t p1 = <uint64_t>c2[0] * <uint64_t>0xCD9E8D57
    c0[0] = <uint32_t>(p1 >> 32) ^ c1[0] ^ k0
    c1[0] = <uint32_t>p1
    c2[0] = <uint32_t>(p0 >> 32) ^ c3[0] ^ k1
    c3[0] = <uint32_t>p0


cdef inline void philox_rounds(uint32_t* c0, uint32_t* c1, uint32_t* c2, uint32_t* c3,
                               uint32_t k0, uint32_t k1) noexcept nogil:
    """The ten rounds, written out: gcc vectorises a loop over beads only if there is no loop inside it."""
    cdef uint32_t w0 = 0x9E3779B9
    cdef uint32_t w1 = 0xBB67AE85
    philox_round(c0, c1, c2, c3, k0, k1)
    philox_round(c0, c1, c2, c3, k0 + w0, k1 + w1)
    philox_round(c0, c1, c2, c3, k0 + 2 * w0, k1 + 2 * w1)
    philox_round(c0, c1, c2, c3, k0 + 3 * w0, k1 + 3 * w1)
    philox_round(c0, c1, c2, c3, k0 + 4 * w0, k1 + 4 * w1)
    philox_round(c0, c1, c2, c3, k0 + 5 * w0, k1 + 5 * w1)
    philox_round(c0, c1, c2, c3, k0 + 6 * w0, k1 + 6 * w1)
    philox_round(c0, c1, c2, c3, k0 + 7 * w0, k1 + 7 * w1)
    philox_round(c0, c1, c2, c3, k0 + 8 * w0, k1 + 8 * w1)
    philox_round(c0, c1, c2, c3, k0 + 9 * w0, k1 + 9 * w1)


cdef inline void philox4x32(uint32_t* counter, uint32_t key0, uint32_t key1) noexcept nogil:
    """Replace the four words of the counter by the four random words they stand for."""
    philox_rounds(&counter[0], &counter[1], &counter[2], &counter[3], key0, key1)


cdef inline uint32_t counter_word2(int64_t step, uint32_t letter, uint32_t substep) noexcept nogil:
    return <uint32_t>((<uint64_t>step >> 32) & 0xFFFF) << 16 | (letter & 0xFF) << 8 | (substep & 0xFF)


cdef inline uint32_t counter_word3(uint32_t purpose, uint32_t draw) noexcept nogil:
    return (purpose & 0xFF) << 24 | (draw & 0xFFFFFF)


cdef inline double unit_interval(uint32_t w) noexcept nogil:
    """(w + 1/2) / 2**32, exact: 2**52 + w by its bits, minus 2**52 - 1/2 (SSE2 cannot convert uint32)."""
    return (double_of(<uint64_t>0x4330000000000000 | w) - 4503599627370495.5) * 2.3283064365386963e-10


cdef inline void normals_block(const int* ids, int n, uint64_t seed, int64_t step, uint32_t letter,
                               uint32_t substep, uint32_t purpose, uint32_t draw,
                               double* gx, double* gy, double* gz) noexcept nogil:
    """Three independent standard normals for each of n <= NORMALS_BLOCK beads; gx, gy, gz (n,) are written.

    One Philox call per bead gives words w0..w3.  Box and Muller: with u_i = (w_i + 1/2) / 2**32,
    sqrt(-2 log u_0) (cos, sin)(2 pi u_1) and sqrt(-2 log u_2) cos(2 pi u_3).  The radius has 32 bits, so
    |g| <= 6.77 (= sqrt(66 log 2)), exceeded by a true normal once in 7e10.

    A bead's numbers depend on its id and the other arguments alone, not on n, its place or its neighbours.
    """
    cdef uint32_t key0 = <uint32_t>seed
    cdef uint32_t key1 = <uint32_t>(seed >> 32)
    cdef uint32_t start1 = <uint32_t>step
    cdef uint32_t start2 = counter_word2(step, letter, substep)
    cdef uint32_t start3 = counter_word3(purpose, draw)
    # Words w0 and w2 behind one another, for the radii; w1 and w3, for the angles.
    cdef uint32_t radius_words[2 * NORMALS_BLOCK]
    cdef uint32_t angle_words[2 * NORMALS_BLOCK]
    cdef double radius[2 * NORMALS_BLOCK]
    cdef uint32_t c0, c1, c2, c3
    cdef double s, c
    cdef int i
    # Short loops over local arrays: gcc vectorises each, already for SSE2.  Logarithm and sine in one loop
    # need more than the 16 registers of SSE2 and cost 3 ns per bead more.
    for i in range(n):
        c0 = <uint32_t>ids[i]
        c1 = start1
        c2 = start2
        c3 = start3
        philox_rounds(&c0, &c1, &c2, &c3, key0, key1)
        radius_words[i] = c0
        angle_words[i] = c1
        radius_words[i + n] = c2
        angle_words[i + n] = c3
    for i in range(2 * n):
        radius[i] = sqrt(-2.0 * log_core(unit_interval(radius_words[i])))
    for i in range(n):
        sincos2pi(unit_interval(angle_words[i]), &s, &c)
        gx[i] = radius[i] * c
        gy[i] = radius[i] * s
    for i in range(n):
        sincos2pi(unit_interval(angle_words[i + n]), &s, &c)
        gz[i] = radius[i + n] * c
