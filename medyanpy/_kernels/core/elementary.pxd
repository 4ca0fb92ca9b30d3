# cython: language_level=3
"""Elementary functions with the same bits on every x86-64 instruction set.

libm chooses its variant by CPU, so a kernel that called it would not repeat its bits on another machine.
The functions here are + - * / sqrt, comparisons and integer operations only, without branches and tables:
gcc -O3 vectorises any loop over them, and a vector lane does exactly what a scalar call does.  This holds
only with ``-ffp-contract=off`` and without ``-ffast-math``, which would remove the compensated sums.

``-fno-math-errno -fno-trapping-math`` are what lets gcc use sqrtpd and turn the selects into masks.
The coefficients come from ``tests/kernels/derive_elementary.py``; how, and the errors measured, is in
``docs/elementary.md``.  "Within u ulp" means |result - exact| <= u * spacing of the doubles at the exact
value, when the rounding mode is to nearest.
"""
cimport cython
from libc.math cimport sqrt
from libc.stdint cimport uint64_t

# Cython has no bit cast.  memcpy is the one that C defines, and gcc makes it one register move.
cdef extern from *:
    """
    #ifndef MEDYANPY_BIT_CASTS
    #define MEDYANPY_BIT_CASTS
    #include <stdint.h>
    #include <string.h>
    static inline uint64_t medyanpy_bits_of(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
    static inline double medyanpy_double_of(uint64_t b) { double x; memcpy(&x, &b, sizeof x); return x; }
    #endif
    """
    uint64_t bits_of "medyanpy_bits_of"(double x) noexcept nogil
    double double_of "medyanpy_double_of"(uint64_t b) noexcept nogil

# Numbers that recur below.  SSE2 has neither conversions between 64-bit integers and doubles nor 64-bit
# arithmetic shifts and compares, so integers go through the mantissa of a double:
#   6755399441055744.0   1.5 * 2**52: x + it - it is x rounded to an integer (half to even) for |x| < 2**51,
#                        and the low bits of x + it are that integer in two's complement
#   0x4330000000000000   the bits of 2**52: or-ing an integer below 2**52 in gives 2**52 + integer
#   0xFFFFFFFFF8000000   keeps the leading 26 bits of a mantissa: products of two such numbers are exact
#   0x7FF8000000000000   the NaN; 0.0 / 0.0 would be one whose sign depends on the CPU


@cython.cdivision(True)  # the check of the divisor would be a branch
cdef inline double log_core(double x) noexcept nogil:
    """log_ without its check of the domain: finite nonsense for x that is not positive, finite and normal."""
    cdef uint64_t b = bits_of(x)
    # Shifted by 1 - sqrt(1/2) in bits, so that the exponent field is that of the m in [sqrt(1/2), sqrt(2)).
    cdef uint64_t e = b + <uint64_t>0x0009_5F61_9980_C433
    # minus 2**52 + 1023
    cdef double k = double_of((e >> 52) | <uint64_t>0x4330000000000000) - 4503599627371519.0
    cdef double m = double_of(b - (e & <uint64_t>0xFFF0000000000000) + <uint64_t>0x3FF0000000000000)
    cdef double f = m - 1.0
    cdef double s = f / (2.0 + f)
    cdef double z = s * s
    # log(1 + f) = 2 s + s z P(z), and 2 s = f - h + s h exactly: the large term f then carries no rounding.
    cdef double h = 0.5 * f * f
    cdef double p, t, kl
    p = 0.147954722809468
    p = p * z + 0.1531409911071214
    p = p * z + 0.1818356239517753
    p = p * z + 0.22222198610948699
    p = p * z + 0.28571428742014354
    p = p * z + 0.39999999999416375
    p = p * z + 0.6666666666666734
    kl = k * 0.6931471805601177  # log 2 to 41 bits: exact product, |k| < 2**11
    t = kl + f
    # (kl - t) + f is what the sum t lost: |kl| >= log 2 > |f|, or kl = 0 and it is 0.
    return t + (((kl - t) + f) - (h - (s * (h + p * z) + k * -1.7239444525614835e-13)))


cdef inline double log_(double x) noexcept nogil:
    """Natural logarithm of positive, finite, normal x, within 0.88 ulp.

    NaN for everything else (zero, subnormal, negative, infinite, NaN): no kernel meets one of them silently.
    """
    cdef double r = log_core(x)
    r = r if x >= 2.2250738585072014e-308 else double_of(<uint64_t>0x7FF8000000000000)
    return r if x <= 1.7976931348623157e308 else double_of(<uint64_t>0x7FF8000000000000)


cdef inline void sincos_near_zero(double r, double rl, double* sr, double* cr) noexcept nogil:
    """sin and cos of r + rl, |r| <= pi/4 (and a rounding), |rl| <= ulp(r)."""
    cdef double z = r * r
    cdef double h = 0.5 * z
    cdef double w = 1.0 - h
    cdef double p
    p = 1.5896229728964537e-10
    p = p * z - 2.5050747754819517e-08
    p = p * z + 2.7557313621328463e-06
    p = p * z - 0.00019841269829589346
    p = p * z + 0.008333333333322118
    p = p * z - 0.1666666666666663
    # rl * w stands for rl * cos(r): their difference is below 0.02 |rl|.
    sr[0] = r + (r * z * p + rl * w)
    p = -1.1358536483896564e-11
    p = p * z + 2.0875700841624783e-09
    p = p * z - 2.7557314179297534e-07
    p = p * z + 2.480158728885172e-05
    p = p * z - 0.0013888888888873056
    p = p * z + 0.041666666666666595
    cr[0] = w + (((1.0 - w) - h) + (z * z * p - r * rl))


cdef inline void sincos_small(double x, double* s, double* c) noexcept nogil:
    """What sincos_ gives, to the bit, where |x| <= 0.78: nothing is to be reduced there."""
    cdef uint64_t sign = bits_of(x) & <uint64_t>0x8000000000000000
    cdef double sa
    sincos_near_zero(double_of(bits_of(x) ^ sign), 0.0, &sa, c)
    s[0] = double_of(bits_of(sa) ^ sign)


cdef inline void sincos_quadrant(double r, double rl, uint64_t q, double* s, double* c) noexcept nogil:
    """sin and cos of q * pi/2 + r + rl, |r| <= pi/4 (and a rounding), |rl| <= ulp(r); q counts modulo 4."""
    cdef double sr, cr
    cdef uint64_t bs, bc, swap
    sincos_near_zero(r, rl, &sr, &cr)
    # Odd quadrants exchange sine and cosine; then the signs.
    bs = bits_of(sr)
    bc = bits_of(cr)
    swap = (bs ^ bc) & (<uint64_t>0 - (q & 1))
    s[0] = double_of(bs ^ swap ^ ((q & 2) << 62))
    c[0] = double_of(bc ^ swap ^ (((q + 1) & 2) << 62))


cdef inline void sincos_(double x, double* s, double* c) noexcept nogil:
    """sin and cos of x in radians, |x| <= 2**20, each within 0.85 ulp; sin(-0.0) is -0.0; else NaN."""
    cdef uint64_t sign = bits_of(x) & <uint64_t>0x8000000000000000
    cdef double a = double_of(bits_of(x) ^ sign)
    # Beyond 2**20 the products below would no longer be exact.
    a = a if a <= 1048576.0 else double_of(<uint64_t>0x7FF8000000000000)
    cdef double t = a * 0.6366197723675814 + 6755399441055744.0
    cdef double n = t - 6755399441055744.0
    cdef double r0, r1, r2, w, v, lo, r, rl
    cdef double sa
    # pi/2 in four parts of which three give exact products with n.  Doubles near a multiple of pi/2 lose 60
    # bits and more in the subtractions: each keeps what it rounded off (whichever term is the larger).
    r0 = a - n * 1.5707963267341256
    w = n * 6.077100506303966e-11
    r1 = r0 - w
    v = r1 - r0
    lo = (r0 - (r1 - v)) - (w + v)
    w = n * 2.0222662487111665e-21
    r2 = r1 - w
    v = r2 - r1
    lo = lo + ((r1 - (r2 - v)) - (w + v))
    lo = lo - n * 8.4784276603689e-32
    r = r2 + lo
    rl = (r2 - r) + lo
    sincos_quadrant(r, rl, bits_of(t), &sa, c)
    s[0] = double_of(bits_of(sa) ^ sign)


cdef inline void sincos2pi(double u, double* s, double* c) noexcept nogil:
    """sin and cos of 2 pi u (u in turns), |u| < 2**31, each within 0.85 ulp; no error in the reduction."""
    cdef double v = 4.0 * u
    cdef double t = v + 6755399441055744.0
    cdef double d = v - (t - 6755399441055744.0)  # exact: quarter turns, |d| <= 1/2
    # d * pi/2 as the sum r + rl: leading halves multiplied exactly.
    cdef double dh = double_of(bits_of(d) & <uint64_t>0xFFFFFFFFF8000000)
    cdef double hi = dh * 1.570796325802803  # pi/2 to 27 bits
    cdef double lo = (d - dh) * 1.570796325802803 + d * 9.920935796805404e-10
    cdef double r = hi + lo
    sincos_quadrant(r, (hi - r) + lo, bits_of(t), s, c)


cdef inline double exp_core(double x, double low, bint has_low, int shift) noexcept nogil:
    """exp(x + low) 2**shift: what exp_ says of x, and low a few units in the last place of x at most.

    Without `has_low`, low is left out; that and `shift` are constants to the compiler. A shift from -1 to 0 costs no
    range: where the result is finite, so are the factors.
    """
    # The comparisons this way round let a NaN through.
    cdef double a = -746.0 if x < -746.0 else x
    a = 711.0 if a > 711.0 else a
    cdef double t = a * 1.4426950408889634 + 6755399441055744.0
    cdef double n = t - 6755399441055744.0
    cdef double w = a - n * 0.6931471805601177  # exact
    cdef double w_lo = n * -1.7239444525614835e-13
    cdef double r = w - w_lo
    cdef double rl = (w - r) - w_lo
    cdef double p, y, e, half
    cdef uint64_t b1, b2
    p = 2.5000072593696615e-08
    p = p * r + 2.7630234571540703e-07
    p = p * r + 2.7557586270675935e-06
    p = p * r + 2.4801493134417604e-05
    p = p * r + 0.00019841269506765802
    p = p * r + 0.0013888888943599286
    p = p * r + 0.008333333333494345
    p = p * r + 0.04166666666653026
    p = p * r + 0.16666666666666413
    p = p * r + 0.5000000000000011
    y = 1.0 + r
    e = (1.0 - y) + r
    y = y + (e + (r * r * p + rl))
    if has_low:
        y = y + y * low
    if shift != 0:
        n = n + shift
    # 2**n in two factors: n reaches -1076 and 1024, which no single double of the form 2**n does.
    half = 0.5 * n + 6755399441055744.0
    b1 = bits_of(half)
    b2 = bits_of(t) + <uint64_t> shift - b1
    return y * double_of((b1 + 1023) << 52) * double_of((b2 + 1023) << 52)


cdef inline double exp_(double x) noexcept nogil:
    """Exponential of any x, within 0.75 ulp for normal results, 1 spacing (2**-1074) for subnormal ones.

    exp(-inf) = 0, exp(inf) = inf, NaN gives NaN; 0 and inf where the exact value rounds to them.
    """
    return exp_core(x, 0.0, False, 0)


@cython.cdivision(True)  # the check of the divisor would be a branch
cdef inline double inverse_root(double x) noexcept nogil:
    """1/sqrt(x), within 1.3 ulp, for x from 1e-300 to 1e300: less than half the time of a division and a root.

    Half the exponent with the other sign, taken from the bits, is right to 3.5 %; each step of Newton's method squares
    that (with 3/2 before): 2e-3, 5e-6, 4e-11, 2e-21.
    """
    cdef double y = double_of(<uint64_t>0x5FE6EB50C7B537A9 - (bits_of(x) >> 1))
    cdef double half = 0.5 * x
    y = y * (1.5 - half * y * y)
    y = y * (1.5 - half * y * y)
    y = y * (1.5 - half * y * y)
    return y + y * (0.5 - half * y * y)


cdef inline void asin_parts(double x, double a, double* s, double* rest) noexcept nogil:
    """asin of x as s + rest where a = |x| <= 1/2; above, s + rest is half the angle acos(a)."""
    # |x| <= 1/2: asin x.  Else 2 asin s with s = sqrt((1 - |x|) / 2) <= 1/2.
    cdef double y = 0.5 * (1.0 - a)  # exact where it is used
    cdef double root = sqrt(y)
    cdef double rh = double_of(bits_of(root) & <uint64_t>0xFFFFFFFFF8000000)
    # What the rounding of the root lost; 1e-300 changes nothing but 0 / 0 at |x| = 1.
    cdef double tail = (y - rh * rh) / ((root + rh) + 1e-300) - (root - rh)
    cdef double z = x * x if a <= 0.5 else y
    cdef double p
    tail = 0.0 if a <= 0.5 else tail
    p = 0.032628469732966695
    p = p * z - 0.020998811963824988
    p = p * z + 0.021707267147863227
    p = p * z + 0.003706483669873535
    p = p * z + 0.010780232836923538
    p = p * z + 0.011398915751936326
    p = p * z + 0.013980820130150416
    p = p * z + 0.017351612046386716
    p = p * z + 0.022372214985985652
    p = p * z + 0.030381942707835265
    p = p * z + 0.044642857174610986
    p = p * z + 0.07499999999970801
    p = p * z + 0.1666666666666676
    s[0] = x if a <= 0.5 else root
    rest[0] = s[0] * z * p + tail


cdef inline double acos_(double x) noexcept nogil:
    """Inverse cosine in [0, pi], |x| <= 1, within 0.65 ulp; NaN for |x| > 1.  acos(1) = +0."""
    cdef double a = double_of(bits_of(x) & <uint64_t>0x7FFFFFFFFFFFFFFF)
    cdef double s, rest, lead, base, base_lo, t
    asin_parts(x, a, &s, &rest)
    # pi/2 - asin x, 2 asin s, or pi minus it.
    lead = -s if a <= 0.5 else (2.0 * s if x > 0.0 else -2.0 * s)
    rest = -rest if a <= 0.5 else (2.0 * rest if x > 0.0 else -2.0 * rest)
    # 0, pi/2 or pi, in two doubles
    base = 2.0 if a <= 0.5 else (0.0 if x > 0.0 else 4.0)
    base_lo = base * 3.061616997868383e-17
    base = base * 0.7853981633974483
    t = base + lead
    return t + (((base - t) + lead) + (base_lo + rest))


cdef inline double asin_(double x) noexcept nogil:
    """Inverse sine in [-pi/2, pi/2], |x| <= 1, within 0.8 ulp; NaN for |x| > 1.  asin(-0.0) is -0.0."""
    cdef uint64_t sign = bits_of(x) & <uint64_t>0x8000000000000000
    cdef double a = double_of(bits_of(x) ^ sign)
    cdef double s, rest, t, lead
    asin_parts(a, a, &s, &rest)
    # pi/2 - 2 asin s where x is not small.
    lead = 2.0 * s
    t = 1.5707963267948966 - lead
    t = t + (((1.5707963267948966 - t) - lead) + (6.123233995736766e-17 - 2.0 * rest))
    t = s + rest if a <= 0.5 else t
    return double_of(bits_of(t) ^ sign)


@cython.cdivision(True)  # the check of the divisor would be a branch
cdef inline double atan2_(double y, double x) noexcept nogil:
    """Angle of the point (x, y) in [-pi, pi], within 0.75 ulp (results below 1e-300: 1 spacing).

    Signed zeros as in C: atan2(+-0, x) is +-0 for x > 0 or +0, and +-pi for x < 0 or -0.
    An infinite argument gives NaN: no angle of finite vectors has one.
    """
    cdef uint64_t sign_y = bits_of(y) & <uint64_t>0x8000000000000000
    cdef uint64_t sign_x = bits_of(x) & <uint64_t>0x8000000000000000
    cdef double ay = double_of(bits_of(y) ^ sign_y)
    cdef double ax = double_of(bits_of(x) ^ sign_x)
    cdef double num = ax if ay > ax else ay
    cdef double den = ay if ay > ax else ax
    cdef double scale = 1.0
    cdef double k, flip, side, dl, rcp, q, qh, dh, ql, t, z, p, base
    # Powers of two that keep 1 / den and the exact products below from under- and overflowing.
    scale = 1.6069380442589903e60 if den < 1.0 else scale  # 2**200
    scale = 0.0625 if den > 1e306 else scale
    num = num * scale
    den = den * scale
    den = 1.0 if den == 0.0 else den  # both are zero, and so is the quotient
    # num / den > 1/2: pi/4 + atan((num - den) / (num + den)); this difference is exact, the sum leaves dl.
    flip = 1.0 if num > 0.5 * den else 0.0
    t = den + num
    dl = ((den - t) + num) * flip
    q = num - den
    num = q if flip > 0.0 else num
    den = t if flip > 0.0 else den
    # The quotient to twice the precision, t + ql: a leading half qh, and what qh leaves of num, over den.
    rcp = 1.0 / den
    qh = double_of(bits_of(num * rcp) & <uint64_t>0xFFFFFFFFF8000000)
    dh = double_of(bits_of(den) & <uint64_t>0xFFFFFFFFF8000000)
    ql = (((num - qh * dh) - qh * (den - dh)) - qh * dl) * rcp
    t = qh + ql
    ql = (qh - t) + ql
    z = t * t
    p = 0.010117140614555617
    p = p * z - 0.02743539392626354
    p = p * z + 0.041865338456470336
    p = p * z - 0.051220170860272536
    p = p * z + 0.05858301660755193
    p = p * z - 0.06663811058324891
    p = p * z + 0.07692073959969098
    p = p * z - 0.09090896248091122
    p = p * z + 0.1111111065978639
    p = p * z - 0.142857142763898
    p = p * z + 0.19999999999903162
    p = p * z - 0.3333333333333298
    # (1 - z) is within 0.05 of the derivative 1 / (1 + z) where z <= 1/4.
    q = t * z * p + ql * (1.0 - z)
    # angle = k pi/4 + or - atan(quotient)
    k = 2.0 - flip if ay > ax else flip
    flip = -1.0 if ay > ax else 1.0
    # Minus one for x < 0 and x = -0; SSE2 compares no 64-bit integers, so the sign bit becomes a double.
    side = double_of(sign_x | <uint64_t>0x3FF0000000000000)
    k = 4.0 - k if side < 0.0 else k
    flip = flip * side
    t = t * flip
    base = k * 0.7853981633974483  # exact: three trailing zeros
    rcp = base + t
    rcp = rcp + (((base - rcp) + t) + (k * 3.061616997868383e-17 + q * flip))
    return double_of(bits_of(rcp) | sign_y)
