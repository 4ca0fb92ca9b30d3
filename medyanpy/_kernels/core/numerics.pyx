# cython: language_level=3
"""The elementary functions and random numbers of the kernels over arrays, for tests and set-up in Python.

Every function fills ``out`` (made by the caller; it may be the argument itself) and returns nothing.
"""
import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t

from medyanpy._kernels.core cimport elementary
from medyanpy._kernels.core cimport special
from medyanpy._kernels.core cimport philox as _philox
from medyanpy._kernels.core.philox cimport NORMALS_BLOCK, normals_block

# The purposes by name, for Python code that draws numbers.
PURPOSES = {
    "thermostat": <int>_philox.THERMOSTAT,
    "velocities": <int>_philox.VELOCITIES,
    "placement": <int>_philox.PLACEMENT,
    "rotation": <int>_philox.ROTATION,
    "test": <int>_philox.TEST,
}


cdef int check_length(Py_ssize_t n, Py_ssize_t n_out) except -1:
    if n != n_out:
        raise ValueError(f"arrays of {n} and {n_out} elements: they must have the same length")
    return 0


def log(const double[::1] x not None, double[::1] out not None):
    """``out[i] = log(x[i])``, within 0.88 ulp; NaN unless ``x[i]`` is positive, normal and finite."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.log_(x[i])


def exp(const double[::1] x not None, double[::1] out not None):
    """``out[i] = exp(x[i])``, within 0.75 ulp (subnormal results: one spacing)."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.exp_(x[i])


def inverse_root(const double[::1] x not None, double[::1] out not None):
    """``out[i] = 1 / sqrt(x[i])``, within 1.3 ulp for ``1e-300 <= x[i] <= 1e300``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.inverse_root(x[i])


def acos(const double[::1] x not None, double[::1] out not None):
    """``out[i] = acos(x[i])``, within 0.65 ulp; NaN for ``|x[i]| > 1``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.acos_(x[i])


def atan2(const double[::1] y not None, const double[::1] x not None, double[::1] out not None):
    """``out[i]`` is the angle of the point ``(x[i], y[i])``, within 0.75 ulp; NaN for infinite arguments."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(y.shape[0], n)
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.atan2_(y[i], x[i])


def sincos(const double[::1] x not None, double[::1] s not None, double[::1] c not None):
    """``s[i], c[i]`` are sine and cosine of ``x[i]``, within 0.85 ulp for ``|x[i]| <= 2**20``, else NaN."""
    cdef Py_ssize_t i, n = x.shape[0]
    cdef double si, ci
    check_length(n, s.shape[0])
    check_length(n, c.shape[0])
    with nogil:
        for i in range(n):
            elementary.sincos_(x[i], &si, &ci)
            s[i] = si
            c[i] = ci


def sincos_small(const double[::1] x not None, double[::1] s not None, double[::1] c not None):
    """``s[i], c[i]`` as of `sincos`, for ``|x[i]| <= 0.78`` only."""
    cdef Py_ssize_t i, n = x.shape[0]
    cdef double si, ci
    check_length(n, s.shape[0])
    check_length(n, c.shape[0])
    with nogil:
        for i in range(n):
            elementary.sincos_small(x[i], &si, &ci)
            s[i] = si
            c[i] = ci


def sincos2pi(const double[::1] u not None, double[::1] s not None, double[::1] c not None):
    """``s[i], c[i]`` are sine and cosine of ``2 pi u[i]``, within 0.85 ulp for ``|u[i]| < 2**31``."""
    cdef Py_ssize_t i, n = u.shape[0]
    cdef double si, ci
    check_length(n, s.shape[0])
    check_length(n, c.shape[0])
    with nogil:
        for i in range(n):
            elementary.sincos2pi(u[i], &si, &ci)
            s[i] = si
            c[i] = ci


def asin(const double[::1] x not None, double[::1] out not None):
    """``out[i] = asin(x[i])``, within 0.8 ulp; NaN for ``|x[i]| > 1``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = elementary.asin_(x[i])


def tanh(const double[::1] x not None, double[::1] out not None):
    """``out[i] = tanh(x[i])``, within 1.8 ulp``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.tanh_(x[i])


def erf(const double[::1] x not None, double[::1] out not None):
    """``out[i] = erf(x[i])``, within 1.5 ulp``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.erf_(x[i])


def erfc(const double[::1] x not None, double[::1] out not None):
    """``out[i] = 1 - erf(x[i])``, within 5 ulp``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.erfc_(x[i])


def gauss(const double[::1] x not None, double[::1] out not None):
    """``out[i] = exp(-x[i]**2)``, within 1.2 ulp``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.gauss_(x[i])


def log1p(const double[::1] x not None, double[::1] out not None):
    """``out[i] = log(1 + x[i])``, within 1.6 ulp``."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.log1p_(x[i])


def floor(const double[::1] x not None, double[::1] out not None):
    """``out[i] = floor(x[i])``, exactly."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.floor_(x[i])


def sinhcosh(const double[::1] x not None, double[::1] s not None, double[::1] c not None):
    """``s[i], c[i]`` are the hyperbolic sine and cosine of ``x[i]``, within 1.6 ulp."""
    cdef Py_ssize_t i, n = x.shape[0]
    cdef double si, ci
    check_length(n, s.shape[0])
    check_length(n, c.shape[0])
    with nogil:
        for i in range(n):
            special.sinhcosh_(x[i], &si, &ci)
            s[i] = si
            c[i] = ci


def power(const double[::1] x not None, const double[::1] y not None, double[::1] out not None,
          double less=0.0):
    """``out[i] = x[i]**(y[i] - less)``, within 1.2 ulp where ``|y log x| < 10``, else 30 ulp; NaN for negative
    ``x[i]``, unless ``y[i]`` is whole."""
    cdef Py_ssize_t i, n = x.shape[0]
    check_length(y.shape[0], n)
    check_length(n, out.shape[0])
    with nogil:
        for i in range(n):
            out[i] = special.power_(x[i], y[i], less)


def philox(const uint32_t[:, ::1] counter not None, const uint32_t[::1] key not None,
           uint32_t[:, ::1] out not None):
    """Philox 4x32-10: ``out`` (n, 4) are the random words of ``counter`` (n, 4) under ``key`` (2,)."""
    cdef Py_ssize_t i, j, n = counter.shape[0]
    cdef uint32_t words[4]
    check_length(n, out.shape[0])
    if counter.shape[1] != 4 or out.shape[1] != 4 or key.shape[0] != 2:
        raise ValueError("a counter has 4 words and a key has 2")
    with nogil:
        for i in range(n):
            for j in range(4):
                words[j] = counter[i, j]
            _philox.philox4x32(words, key[0], key[1])
            for j in range(4):
                out[i, j] = words[j]


def normals(double[:, ::1] out not None, const int64_t[::1] ids not None, uint64_t seed, long long step,
            int letter, int substep, int purpose, int draw=0):
    """Three standard normals for each bead: a pure function of its id and of the arguments after ``ids``.

    Parameters
    ----------
    out : (n, 3) float64
        Filled.
    ids : (n,) int64, 0 <= id < 2**48
        Permanent bead ids.
    seed : int, 0 <= seed < 2**64
    step : int, 0 <= step < 2**48
    letter, substep, purpose : int, 0..255
        Index of the letter in the word, sub-step, and one of the values of ``PURPOSES``.
    draw : int, 0 <= draw < 256
        Tells apart repeated draws for the same bead, step and purpose.

    Raises
    ------
    ValueError
        If shapes differ or a field of the counter is out of range (it would repeat another field's numbers).

    Notes
    -----
    Bits are equal on every x86-64 CPU, and do not depend on the order or number of the ids.
    """
    cdef Py_ssize_t i, start = 0, n = ids.shape[0]
    cdef int64_t high
    cdef int m
    cdef int low[NORMALS_BLOCK]
    cdef double gx[NORMALS_BLOCK]
    cdef double gy[NORMALS_BLOCK]
    cdef double gz[NORMALS_BLOCK]
    check_length(n, out.shape[0])
    if out.shape[1] != 3:
        raise ValueError(f"out must be (n, 3), not (n, {out.shape[1]})")
    if not 0 <= step < 1LL << 48:
        raise ValueError(f"step {step} is outside 0 .. 2**48 - 1")
    if not 0 <= letter < 256:
        raise ValueError(f"letter {letter} is outside 0 .. 255")
    if not 0 <= substep < 256:
        raise ValueError(f"substep {substep} is outside 0 .. 255")
    if not 0 <= purpose < 256:
        raise ValueError(f"purpose {purpose} is outside 0 .. 255")
    if not 0 <= draw < 256:
        raise ValueError(f"draw {draw} is outside 0 .. 255")
    if n > 0 and not (np.min(ids) >= 0 and np.max(ids) < 1 << 48):
        raise ValueError("an id is outside 0 .. 2**48 - 1")
    with nogil:
        while start < n:
            # As many at a time as share the upper bits of their ids.
            m = 0
            high = ids[start] >> 32
            while m < NORMALS_BLOCK and start + m < n and ids[start + m] >> 32 == high:
                low[m] = <int> ids[start + m]  # its lower bits
                m += 1
            normals_block(low, m, seed, step, letter, substep, purpose, <uint32_t> high << 8 | draw, gx, gy, gz)
            for i in range(m):
                out[start + i, 0] = gx[i]
                out[start + i, 1] = gy[i]
                out[start + i, 2] = gz[i]
            start += m
