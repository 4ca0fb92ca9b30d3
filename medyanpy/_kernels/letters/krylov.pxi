# Functions of a symmetric matrix K, times a vector, by Lanczos' method: K is known by what it makes of vectors.
# Included by hydrodynamics.pyx.
#
# In the space of v, K v, K^2 v, ..., with the orthonormal basis Q that Lanczos' recursion makes of it, K is a
# tridiagonal matrix T, and f(K) v comes near |v| Q f(T) e1; with as many vectors as numbers it is exact. Vectors are
# made orthogonal to all before, twice, so that rounding does not bring old ones back. The last change of the result
# measures the error. Of a root it ends up in the eigenvectors of the smallest eigenvalues, the slowest motions, so it
# is measured beside what the result is along one of those: min f times the root mean square of the numbers of v. Of
# the other functions it is measured beside the root mean square of the numbers of the result.

cdef enum:
    # What is computed of an eigenvalue x >= 0.
    ROOT = 0                  # sqrt(x)
    DECAY = 1                 # 1 - exp(-h / x)
    NOISE = 2                 # sqrt(1 - exp(-2 h / x))
    # Numbers added up side by side: fixed, since the order of sums decides their last bits.
    SIDE_BY_SIDE = 16
    # Up to here every change is looked at, from there on every fourth one: the look costs m^3.
    EVERY = 12


cdef struct Lanczos:
    Py_ssize_t n
    int most                  # vectors there is room for, at most n
    int m                     # vectors that K has been applied to
    int done
    int function
    double h
    double tolerance
    double norm
    double change             # of the result at the last look, relative to it along one motion
    double* q                 # (most, n)
    double* alpha             # (most,)
    double* beta              # (most,)
    double* y                 # (most,) the result in the basis
    double* work              # (most + 2, most)


cdef double _product(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    cdef double part[SIDE_BY_SIDE]
    cdef double total = 0.0
    cdef Py_ssize_t i, whole = n - n % SIDE_BY_SIDE
    cdef int k
    for k in range(SIDE_BY_SIDE):
        part[k] = 0.0
    i = 0
    while i < whole:
        for k in range(SIDE_BY_SIDE):
            part[k] += a[i + k] * b[i + k]
        i += SIDE_BY_SIDE
    for i in range(whole, n):
        total += a[i] * b[i]
    for k in range(SIDE_BY_SIDE):
        total += part[k]
    return total


cdef void _subtract(double s, const double* a, double* out, Py_ssize_t n) noexcept nogil:
    """out -= s a"""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] -= s * a[i]


cdef double _one_minus_exp(double y) noexcept nogil:
    """1 - exp(-y) for y >= 0, without cancellation."""
    cdef double term = y, total = 0.0
    cdef int k
    if y > 0.125:
        return 1.0 - exp_(-y)
    for k in range(2, 14):
        total += term
        term *= -y / k
    return total


cdef double _function(int which, double h, double x) noexcept nogil:
    """Of an eigenvalue, which rounding may have made less than 0."""
    if which == ROOT:
        return sqrt(x) if x > 0.0 else 0.0
    if not x > 0.0:
        return 1.0
    if which == DECAY:
        return _one_minus_exp(h / x)
    return sqrt(_one_minus_exp(2.0 * h / x))


cdef int _eigenvectors(int m, double* d, double* e, double* z) noexcept nogil:
    """Of a symmetric tridiagonal matrix with diagonal d (m,) and e (m,) beside it, the last of which is not used: d is
    left with the eigenvalues, row i of z (m, m) with the vector of d[i]. By implicit QL steps with Wilkinson's shift
    (Bowdler, Martin, Reinsch and Wilkinson 1968). 0, or 1 where one does not converge."""
    cdef int low, high, i, k, steps
    cdef double shift, r, s, c, f, b, g, p
    cdef bint split
    for i in range(m * m):
        z[i] = 0.0
    for i in range(m):
        z[i * m + i] = 1.0
    for low in range(m):
        steps = 0
        while True:
            high = low
            while high < m - 1 and not fabs(e[high]) <= 2.3e-16 * (fabs(d[high]) + fabs(d[high + 1])):
                high += 1
            if high == low:
                break
            steps += 1
            if steps > 60:
                return 1
            shift = (d[low + 1] - d[low]) / (2.0 * e[low])
            r = sqrt(shift * shift + 1.0)
            g = d[high] - d[low] + e[low] / (shift + (r if shift >= 0.0 else -r))
            s = c = 1.0
            p = 0.0
            split = False
            i = high - 1
            while i >= low:
                f = s * e[i]
                b = c * e[i]
                r = sqrt(f * f + g * g)
                e[i + 1] = r
                if r == 0.0:
                    d[i + 1] -= p
                    e[high] = 0.0
                    split = True
                    break
                s = f / r
                c = g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                for k in range(m):
                    f = z[(i + 1) * m + k]
                    z[(i + 1) * m + k] = s * z[i * m + k] + c * f
                    z[i * m + k] = c * z[i * m + k] - s * f
                i -= 1
            if not split:
                d[low] -= p
                e[low] = g
                e[high] = 0.0
    return 0


cdef void lanczos_start(Lanczos* a, int function, double h, const double* v) noexcept nogil:
    """v (n,)"""
    cdef Py_ssize_t i
    a.function = function
    a.h = h
    a.m = 0
    a.change = 1.0
    a.y[0] = 0.0
    a.norm = sqrt(_product(v, v, a.n))
    # Then the result is v: zeros, or what is no number, for others to find.
    a.done = not a.norm > 0.0
    for i in range(a.n):
        a.q[i] = v[i] / a.norm if not a.done else v[i]


cdef const double* lanczos_next(Lanczos* a) noexcept nogil:
    """What K is to be applied to next."""
    return a.q + a.m * a.n


cdef int lanczos_take(Lanczos* a, double* w) noexcept nogil:
    """w (n,) is what K has made of it, and is used up. 0, or 1: the result has not settled, and there is no room for
    more vectors, or K is not positive."""
    cdef double* d = a.work
    cdef double* e = a.work + a.most
    cdef double* z = a.work + 2 * a.most
    cdef double largest, least, total, changed, value
    cdef int m = a.m, k, i, again
    cdef Py_ssize_t r
    a.alpha[m] = _product(a.q + m * a.n, w, a.n)
    for again in range(2):
        for k in range(m, -1, -1):
            value = _product(a.q + k * a.n, w, a.n)
            _subtract(value, a.q + k * a.n, w, a.n)
    a.beta[m] = sqrt(_product(w, w, a.n))
    a.m = m = m + 1
    largest = 0.0
    for k in range(m):
        largest = max(largest, fabs(a.alpha[k]) + a.beta[k])
    # Then nothing is left outside.
    a.done = m == a.n or a.beta[m - 1] <= 1e-14 * largest
    if a.done or m == a.most or m <= EVERY or m % 4 == 0:
        for k in range(m):
            d[k] = a.alpha[k]
            e[k] = a.beta[k]
        e[m - 1] = 0.0
        if _eigenvectors(m, d, e, z):
            return 1
        least = INFINITY
        for k in range(m):
            if not d[k] >= -1e-10 * largest:
                return 1
            value = _function(a.function, a.h, d[k])
            least = fmin(least, value)
            d[k] = a.norm * value * z[k * m]
        total = changed = 0.0
        for i in range(m):
            value = 0.0
            for k in range(m):
                value += d[k] * z[k * m + i]
            changed += (value - a.y[i]) * (value - a.y[i])
            total += value * value
            a.y[i] = value
        value = least * a.norm if a.function == ROOT else sqrt(total)
        # Nothing is left to find where rounding is all that changes.
        a.change = sqrt(changed) / fmax(value / sqrt(<double> a.n), 1e-14 * a.norm)
        a.done |= m > 1 and a.change <= a.tolerance
        if not a.done and m == a.most:
            return 1
    if not a.done:
        a.y[m] = 0.0
        for r in range(a.n):
            a.q[m * a.n + r] = w[r] / a.beta[m - 1]
    return 0


cdef void lanczos_result(const Lanczos* a, double* out) noexcept nogil:
    """f(K) v (n,)"""
    cdef Py_ssize_t r
    cdef int k
    for r in range(a.n):
        out[r] = 0.0 if a.m else a.q[r]
    for k in range(a.m):
        for r in range(a.n):
            out[r] += a.y[k] * a.q[k * a.n + r]
