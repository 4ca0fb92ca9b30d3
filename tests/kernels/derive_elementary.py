"""Derive the polynomial coefficients and split constants of ``_kernels/core/elementary.pxd`` and ``special.pxd``.

``python derive_elementary.py`` prints every table with its error in exact arithmetic;
``python derive_elementary.py --check FILE ...`` also fails if a number printed is in none of the files.  Needs mpmath.

Each function is its exactly known leading terms plus a remainder with a polynomial factor P.  P is the
minimax polynomial (Remez exchange on a Chebyshev grid), the error weighted so that what is minimised is
the relative error of the *function*.  Coefficients are then rounded to double, and the error is
measured again.
"""
import re
import sys

import mpmath as mp

mp.mp.dps = 60
GRID = 600  # Chebyshev points of the exchange; 600 against 2400 changes the errors printed by less than 0.1 %


def chebyshev_grid(a, b, n):
    """Zeros of the Chebyshev polynomial on (a, b): an open interval, since remainders are 0 / 0 at 0."""
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]


def weighted_errors(coefficients, xs, fs, ws):
    return [w * (mp.polyval(coefficients[::-1], x) - f) for x, f, w in zip(xs, fs, ws, strict=True)]


def remez(target, weight, a, b, degree):
    """Polynomial of the degree given minimising max |weight (P - target)|, lowest coefficient first."""
    xs = chebyshev_grid(a, b, GRID)
    fs = [target(x) for x in xs]
    ws = [weight(x) for x in xs]
    n = degree + 2
    nodes = [round((GRID - 1) * (1 - mp.cos(mp.pi * i / (n - 1))) / 2) for i in range(n)]
    nodes = sorted({int(i) for i in nodes})
    while len(nodes) < n:  # two extrema fell on one grid point: take any free one
        nodes = sorted(set(nodes) | {next(i for i in range(GRID) if i not in nodes)})
    coefficients = None
    for _ in range(40):
        rows = mp.matrix(n, n)
        right = mp.matrix(n, 1)
        for row, i in enumerate(nodes):
            for j in range(n - 1):
                rows[row, j] = ws[i] * xs[i] ** j
            rows[row, n - 1] = (-1) ** row
            right[row] = ws[i] * fs[i]
        solution = mp.lu_solve(rows, right)
        coefficients = [solution[j] for j in range(n - 1)]
        errors = weighted_errors(coefficients, xs, fs, ws)
        extrema = []  # the largest error of every run of one sign
        for i, error in enumerate(errors):
            if extrema and (error > 0) == (errors[extrema[-1]] > 0):
                if abs(error) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > n:  # a stray alternation at one end
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < n or extrema == nodes:
            break
        nodes = extrema
    return coefficients


def rounded_table(name, target, weight, a, b, degree):
    coefficients = [float(c) for c in remez(target, weight, a, b, degree)]
    xs = chebyshev_grid(a, b, 4 * GRID)
    errors = weighted_errors([mp.mpf(c) for c in coefficients], xs, [target(x) for x in xs], [weight(x) for x in xs])
    worst = max(abs(e) for e in errors)
    print(f"{name}: degree {degree}, relative error of the function 2**{float(mp.log(worst, 2)):.1f}")
    for j, c in enumerate(coefficients):
        print(f"    c{j:<2d} {c!r}")
    return coefficients


def split(name, value, bits_of_parts):
    """``value`` as a sum of doubles, the i-th rounded to the bits given (53: a plain double)."""
    parts = []
    rest = mp.mpf(value)
    print(name)
    for bits in bits_of_parts:
        with mp.workprec(bits):
            part = float(+rest)
        rest -= mp.mpf(part)
        parts.append(part)
        print(f"    {bits} bits {part!r}")
    return parts


def sqrt_of(z, function):
    s = mp.sqrt(z)
    return function(s) / s


def scaled_erfc(t):
    """(1 + 2 a) exp(a^2) erfc(a) where t = (a - 4) / (a + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def derive():
    """All numbers, name -> list of float."""
    a = mp.mpf(0)
    s_max = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    # A little beyond pi/4 and ln2/2: the rounding of the multiple may choose either neighbour at the middle.
    z_quadrant = (mp.pi / 4 + mp.mpf(2) ** -20) ** 2
    r_exp = mp.log(2) / 2 + mp.mpf(2) ** -20
    numbers = {
        # log(1 + f) = 2 s + s z P(z), s = f / (2 + f), z = s^2, sqrt(1/2) <= 1 + f < sqrt(2)
        "log": rounded_table("log", lambda z: (2 * sqrt_of(z, mp.atanh) - 2) / z,
                             lambda z: z / (2 * sqrt_of(z, mp.atanh)), a, s_max**2, 6),
        # sin r = r + r z P(z), z = r^2
        "sin": rounded_table("sin", lambda z: (sqrt_of(z, mp.sin) - 1) / z,
                             lambda z: z / sqrt_of(z, mp.sin), a, z_quadrant, 5),
        # cos r = 1 - z / 2 + z^2 P(z)
        "cos": rounded_table("cos", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
                             lambda z: z**2 / mp.cos(mp.sqrt(z)), a, z_quadrant, 5),
        # exp r = 1 + r + r^2 P(r)
        "exp": rounded_table("exp", lambda r: (mp.exp(r) - 1 - r) / r**2,
                             lambda r: r**2 / mp.exp(r), -r_exp, r_exp, 9),
        # asin s = s + s z P(z), z = s^2 <= 1/4
        "asin": rounded_table("asin", lambda z: (sqrt_of(z, mp.asin) - 1) / z,
                              lambda z: z / sqrt_of(z, mp.asin), a, mp.mpf(1) / 4, 12),
        # atan t = t + t z P(z), z = t^2 <= 1/4
        "atan": rounded_table("atan", lambda z: (sqrt_of(z, mp.atan) - 1) / z,
                              lambda z: z / sqrt_of(z, mp.atan), a, mp.mpf(1) / 4, 11),
        # sinh r = r + r z P(z), z = r^2 <= 1
        "sinh": rounded_table("sinh", lambda z: (sqrt_of(z, mp.sinh) - 1) / z,
                              lambda z: z / sqrt_of(z, mp.sinh), a, mp.mpf(1), 7),
        # tanh r = r + r z P(z), z = r^2 <= 0.55^2
        "tanh": rounded_table("tanh", lambda z: (sqrt_of(z, mp.tanh) - 1) / z,
                              lambda z: z / sqrt_of(z, mp.tanh), a, mp.mpf("0.55") ** 2, 9),
        # erf r = r + r P(z), z = r^2 <= 1
        "erf": rounded_table("erf", lambda z: sqrt_of(z, mp.erf) - 1, lambda z: 1 / sqrt_of(z, mp.erf), a, mp.mpf(1),
                             12),
        # erfc a = exp(-a^2) P(t) / (1 + 2 a), t = (a - 4) / (a + 4), 0 <= a <= 28
        "erfc": rounded_table("erfc", scaled_erfc, lambda t: 1 / scaled_erfc(t), mp.mpf(-1), mp.mpf(24) / 32, 22),
        "2/pi": split("2/pi", 2 / mp.pi, [53]),
        "pi/2 for products with integers below 2**20": split("pi/2 in four", mp.pi / 2, [33, 33, 33, 53]),
        "pi/2 for products with 26-bit numbers": split("pi/2 in two", mp.pi / 2, [27, 53]),
        "pi/4 for products with 0..4": split("pi/4 in two", mp.pi / 4, [50, 53]),
        "log 2 for products with 11-bit integers": split("log 2 in two", mp.log(2), [41, 53]),
        "1/log 2": split("1/log 2", 1 / mp.log(2), [53]),
    }
    return numbers


def missing_from(paths, numbers):
    """Numbers that no file of ``paths`` contains (signs apart: the source may subtract)."""
    literals = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            literals |= {float(text) for text in re.findall(r"\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+", file.read())}
    return [(name, c) for name, values in numbers.items() for c in values if abs(c) not in literals]


if __name__ == "__main__":
    derived = derive()
    if "--check" in sys.argv:
        missing = missing_from(sys.argv[sys.argv.index("--check") + 1 :], derived)
        print("in no file:", missing if missing else "none")
        sys.exit(bool(missing))
