# cython: language_level=3
"""Further functions of expressions, in the manner of elementary.pxd: the same bits everywhere, neither branches nor
tables, vectorised by gcc in any loop over them.

Errors are bounds on what was measured, in units of the last place; see ``docs/elementary.md``.
"""
from libc.math cimport sqrt
from libc.stdint cimport uint64_t

from medyanpy._kernels.core.elementary cimport bits_of, double_of, exp_core, log_


cdef inline double size_of(double x) noexcept nogil:
    return double_of(bits_of(x) & <uint64_t>0x7FFFFFFFFFFFFFFF)


cdef inline double with_sign_of(double x, double of) noexcept nogil:
    """x >= 0, or minus it."""
    return double_of(bits_of(x) | (bits_of(of) & <uint64_t>0x8000000000000000))


cdef inline double floor_(double x) noexcept nogil:
    """The largest whole number <= x, exactly."""
    cdef double a = size_of(x)
    # 2**52: below it, adding it leaves no bits for fractions; from there on every number is whole.
    cdef double r = with_sign_of((a + 4503599627370496.0) - 4503599627370496.0, x)
    r = r - (1.0 if r > x else 0.0)
    return r if a < 4503599627370496.0 else x


cdef inline double log1p_(double x) noexcept nogil:
    """log(1 + x) for x > -1, within 1.6 ulp; NaN for x <= -1, infinite x, and NaN."""
    cdef double u = 1.0 + x
    cdef double v = u - 1.0
    # What the sum lost, whichever of its terms is the larger.
    cdef double c = (1.0 - (u - v)) + (x - v)
    return log_(u) + c / u


cdef inline void sinhcosh_(double x, double* s, double* c) noexcept nogil:
    """sinh and cosh, within 1.6 ulp; infinite from 710.48 on, where the exact values are."""
    cdef double a = size_of(x)
    cdef double e = exp_core(a, 0.0, False, -1)  # half of exp a
    cdef double q = 0.25 / e
    cdef double z = a * a
    cdef double p
    p = 2.8482330692417173e-15
    p = p * z + 7.646482893690314e-13
    p = p * z + 1.6059050601288112e-10
    p = p * z + 2.5052108346508853e-08
    p = p * z + 2.755731922411629e-06
    p = p * z + 0.000198412698412696
    p = p * z + 0.008333333333333333
    p = p * z + 0.16666666666666666
    p = a + a * z * p
    c[0] = e + q
    s[0] = with_sign_of(p if a < 1.0 else e - q, x)


cdef inline double tanh_(double x) noexcept nogil:
    """Within 1.8 ulp."""
    cdef double a = size_of(x)
    cdef double z = a * a
    cdef double p
    p = 5.102158052655842e-05
    p = p * z - 0.00021030255341347604
    p = p * z + 0.0005791371127695289
    p = p * z - 0.0014532167897431056
    p = p * z + 0.003591719704002856
    p = p * z - 0.008863194504823644
    p = p * z + 0.021869485974844748
    p = p * z - 0.053968253876080015
    p = p * z + 0.13333333333168707
    p = p * z - 0.33333333333332316
    p = a + a * z * p
    z = 1.0 - 2.0 / (exp_core(2.0 * a, 0.0, False, 0) + 1.0)
    return with_sign_of(p if a < 0.55 else z, x)


cdef inline double gauss_(double x) noexcept nogil:
    """exp(-x**2) within 1.2 ulp for normal results: the square to twice the precision."""
    cdef double a = size_of(x)
    a = 40.0 if a > 40.0 else a
    cdef double h = double_of(bits_of(a) & <uint64_t>0xFFFFFFFFF8000000)
    cdef double p = a * a
    return exp_core(-p, (p - h * h) - (a - h) * (a + h), True, 0)


cdef inline double erfc_over_gauss(double a) noexcept nogil:
    """erfc(a) exp(a**2) for 0 <= a <= 28."""
    cdef double t = (a - 4.0) / (a + 4.0)
    cdef double p
    p = -1.7175958202432276e-09
    p = p * t - 1.3386297820478645e-08
    p = p * t - 7.779207220468122e-09
    p = p * t + 1.1456116137403329e-07
    p = p * t + 6.23897323628499e-08
    p = p * t - 8.342398831149463e-07
    p = p * t + 3.019558758185607e-07
    p = p * t + 5.717294636047478e-06
    p = p * t - 1.1225282843449422e-05
    p = p * t - 2.44029411366279e-05
    p = p * t + 0.0001506224715552326
    p = p * t - 0.00019925556139234913
    p = p * t - 0.0007577734048732502
    p = p * t + 0.0050319697635951574
    p = p * t - 0.016197734048420374
    p = p * t + 0.03716751556184964
    p = p * t - 0.06633036581256445
    p = p * t + 0.09373283499682397
    p = p * t - 0.10103906603630111
    p = p * t + 0.0680970542547366
    p = p * t + 0.015379652102619764
    p = p * t - 0.1396211168405629
    p = p * t + 1.2329951186255526
    return p / (1.0 + 2.0 * a)


cdef inline double erfc_(double x) noexcept nogil:
    """1 - erf x, within 5 ulp for normal results, of any sign and size of x."""
    cdef double a = size_of(x)
    a = 28.0 if a > 28.0 else a  # the result rounds to 0 from 27.3 on
    cdef double p = gauss_(a) * erfc_over_gauss(a)
    return p if x >= 0.0 else 2.0 - p


cdef inline double erf_(double x) noexcept nogil:
    """The integral of 2/sqrt(pi) exp(-t**2) from 0 to x, within 1.5 ulp."""
    cdef double a = size_of(x)
    cdef double z = a * a
    cdef double p
    p = 5.945254923277616e-11
    p = p * z - 1.1365661644367267e-09
    p = p * z + 1.4657878650325638e-08
    p = p * z - 1.6350025034086767e-07
    p = p * z + 1.646097279815068e-06
    p = p * z - 1.4925593505645053e-05
    p = p * z + 0.000120553310368449
    p = p * z - 0.0008548326978740622
    p = p * z + 0.005223977624780838
    p = p * z - 0.026866170645072893
    p = p * z + 0.11283791670954857
    p = p * z - 0.3761263890318375
    p = p * z + 0.1283791670955126
    p = a + a * p
    return with_sign_of(p if a < 1.0 else 1.0 - erfc_(a), x)


cdef inline double power_(double x, double exponent, double less) noexcept nogil:
    """x**y of finite numbers, y = exponent - less, within 1.2 ulp where |y log x| < 10, and 30 ulp for all normal
    results. `less` is a small whole number: the difference is not rounded.

    A negative x takes a y that is whole and below 2**51 in size, x = 0 a y >= 0 (1 for y = 0; infinite below); else
    NaN, as for arguments that are not finite.
    """
    cdef double y = exponent - less
    cdef double a = size_of(x)
    cdef double whole, even, k, f, v, vh, s, sh, sl, z, p, t, u, lo, q, qh, yh, low, r
    cdef uint64_t b, e
    # Subnormal numbers are scaled by 2**54.
    k = 54.0 if a < 2.2250738585072014e-308 else 0.0
    a = a * 18014398509481984.0 if k > 0.0 else a
    # The logarithm of a = 2**k (1 + f), as q + lo: k log 2 + 2 s + s z P(z) as in log_core, s = f / (2 + f) = sh + sl.
    b = bits_of(a)
    e = b + <uint64_t>0x0009_5F61_9980_C433
    k = (double_of((e >> 52) | <uint64_t>0x4330000000000000) - 4503599627371519.0) - k
    f = double_of(b - (e & <uint64_t>0xFFF0000000000000) + <uint64_t>0x3FF0000000000000) - 1.0
    v = 2.0 + f
    vh = double_of(bits_of(v) & <uint64_t>0xFFFFFFFFF8000000)
    z = 1.0 / v
    sh = double_of(bits_of(f * z) & <uint64_t>0xFFFFFFFFF8000000)
    # Exact products of leading halves; v - vh and what the sum v lost.
    sl = ((f - sh * vh) - sh * ((v - vh) + ((2.0 - v) + f))) * z
    s = sh + sl
    z = s * s
    p = 0.147954722809468
    p = p * z + 0.1531409911071214
    p = p * z + 0.1818356239517753
    p = p * z + 0.22222198610948699
    p = p * z + 0.28571428742014354
    p = p * z + 0.39999999999416375
    p = p * z + 0.6666666666666734
    u = k * 0.6931471805601177
    t = u + 2.0 * sh
    lo = ((u - t) + 2.0 * sh) + (s * z * p + (2.0 * sl + k * -1.7239444525614835e-13))
    q = t + lo
    lo = (t - q) + lo
    # What the difference lost, whichever of its terms is the larger.
    sh = y + less
    sl = (exponent - sh) - (less - (sh - y))
    # Times y, as u + low.
    qh = double_of(bits_of(q) & <uint64_t>0xFFFFFFFFF8000000)
    yh = double_of(bits_of(y) & <uint64_t>0xFFFFFFFFF8000000)
    u = y * q
    low = ((((qh * yh - u) + qh * (y - yh)) + (q - qh) * yh) + (q - qh) * (y - yh)) + (y * lo + sl * q)
    low = low if size_of(u) < 1000.0 else 0.0
    r = exp_core(u, low, True, 0)
    # 1.5 * 2**52 leaves no bits for fractions below 2**51.
    whole = (y + 6755399441055744.0) - 6755399441055744.0
    even = 0.5 * y
    even = (even + 6755399441055744.0) - 6755399441055744.0
    s = r if 2.0 * even == y else -r
    s = s if whole == y and size_of(y) < 2251799813685248.0 else double_of(<uint64_t>0x7FF8000000000000)
    r = r if x >= 0.0 else s
    # Zero, and what is not finite.
    s = double_of(<uint64_t>0x7FF0000000000000) if y < 0.0 else (1.0 if y == 0.0 else 0.0)
    r = r if x != 0.0 else s
    r = r if size_of(x) <= 1.7976931348623157e308 else double_of(<uint64_t>0x7FF8000000000000)
    return r if size_of(y) <= 1.7976931348623157e308 else double_of(<uint64_t>0x7FF8000000000000)
