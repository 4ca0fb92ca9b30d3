"""Elementary functions of the kernels: errors against mpmath, special arguments, equal bits in every lane."""
import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses

from medyanpy._kernels.core import numerics

mp = pytest.importorskip("mpmath")

# Units in the last place: the largest of 80 000 points per interval (docs/elementary.md) and a margin.
BOUND = {"log": 0.88, "exp": 0.75, "acos": 0.65, "asin": 0.8, "atan2": 0.75, "sincos": 0.85, "sincos2pi": 0.85,
         "inverse_root": 1.3, "sinhcosh": 1.6, "tanh": 1.8, "erf": 1.5, "erfc": 5.0, "gauss": 1.2, "log1p": 1.6,
         "floor": 0.0, "power": 1.2}  # fmt: skip
POINTS = 4000
HERE = Path(__file__).parent
SOURCES = [HERE.parents[1] / "medyanpy" / "_kernels" / "core" / name for name in ("elementary.pxd", "special.pxd")]


@pytest.fixture(autouse=True)
def precision():
    with mp.workprec(200):  # sines near multiples of pi/2 lose 60 bits
        yield


def call(name, *arguments):
    """Results of a kernel function, one array or two, as a list."""
    arguments = [np.ascontiguousarray(a, dtype=float) for a in arguments]
    outs = [np.empty_like(arguments[0]) for _ in range(2 if name.startswith("sin") else 1)]
    getattr(numerics, name)(*arguments, *outs)
    return outs


EXACT = {
    "log": [mp.log],
    "exp": [mp.exp],
    "inverse_root": [lambda x: 1 / mp.sqrt(x)],
    "acos": [mp.acos],
    "atan2": [mp.atan2],
    "sincos": [mp.sin, mp.cos],
    "sincos2pi": [lambda u: mp.sinpi(2 * u), lambda u: mp.cospi(2 * u)],
    "asin": [mp.asin],
    "sinhcosh": [mp.sinh, mp.cosh],
    "tanh": [mp.tanh],
    "erf": [mp.erf],
    "erfc": [mp.erfc],
    "gauss": [lambda x: mp.exp(-x * x)],
    "log1p": [mp.log1p],
    "floor": [mp.floor],
    "power": [mp.power],
}


def worst_error(name, *arguments):
    """Largest error in units of the spacing at the exact value."""
    worst = mp.mpf(0)
    for got, exact in zip(call(name, *arguments), EXACT[name], strict=True):
        for value, *point in zip(got, *arguments, strict=True):
            true = exact(*[mp.mpf(float(p)) for p in point])
            error = abs(mp.mpf(float(value)) - true) / mp.mpf(float(np.spacing(abs(float(true)))))
            assert mp.isfinite(error), (name, point, value)
            worst = max(worst, error)
    return float(worst)


def near(rng, points):
    """Points approached from both sides, at distances from 2**-1 to 2**-52."""
    return rng.choice(points, POINTS) + rng.uniform(-1, 1, POINTS) * 2.0 ** -rng.integers(1, 53, POINTS)


def signed_powers(rng, lowest, highest):
    mantissa = rng.uniform(0.5, 1, POINTS) * rng.choice([-1, 1], POINTS)
    return mantissa * 2.0 ** rng.integers(lowest, highest, POINTS)


def multiples(period, numbers):
    return np.array([float(int(k) * period) for k in numbers])


ARGUMENTS = {
    "log": {
        "around 1": lambda rng: rng.uniform(0.3, 3, POINTS),
        "near 1": lambda rng: near(rng, [1.0]),
        "where the exponent is split off": lambda rng: rng.uniform(1.40, 1.4143, POINTS),
        "all magnitudes": lambda rng: 2.0 ** rng.uniform(-1022, 1023.99, POINTS),
        "ends": lambda rng: np.array([2.2250738585072014e-308, 1.7976931348623157e308, 1.0, 2.0**-33]),
    },
    "exp": {
        "small": lambda rng: rng.uniform(-1, 1, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1070, -1),
        "all magnitudes": lambda rng: rng.uniform(-708.39, 709.78, POINTS),
        "ends": lambda rng: np.array([0.0, 709.782712893384, -708.3964185322641]),
    },
    "inverse_root": {
        "two octaves": lambda rng: rng.uniform(1, 4, POINTS),
        "all magnitudes": lambda rng: 2.0 ** rng.uniform(-996, 996, POINTS),
        "next to powers of 4": lambda rng: near(rng, [1.0, 4.0, 16.0]),
        "ends": lambda rng: np.array([1e-300, 1e300, 1.0, 4.0]),
    },
    "acos": {
        "all": lambda rng: rng.uniform(-1, 1, POINTS),
        "near 1, 1/2 and their negatives": lambda rng: np.clip(near(rng, [-1.0, -0.5, 0.5, 1.0]), -1, 1),
        "near 0": lambda rng: signed_powers(rng, -1070, -1),
        "special": lambda rng: np.array([-1.0, -0.5, -0.0, 0.0, 0.5, 1.0 - 2.0**-53]),
    },
    "sincos": {
        "a turn": lambda rng: rng.uniform(-7, 7, POINTS),
        "to 1e5": lambda rng: rng.uniform(-1e5, 1e5, POINTS),
        "to 2**20": lambda rng: rng.uniform(-(2.0**20), 2.0**20, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1020, -1),
        "doubles next to multiples of pi/2":
            lambda rng: multiples(mp.pi / 2, rng.integers(1, 667_000, POINTS)),
        "doubles next to odd multiples of pi/4":
            lambda rng: multiples(mp.pi / 4, 2 * rng.integers(0, 667_000, POINTS) + 1),
    },
    "sincos2pi": {
        "one turn": lambda rng: rng.uniform(0, 1, POINTS),
        "as Box and Muller use it": lambda rng: (rng.integers(0, 2**32, POINTS) + 0.5) * 2.0**-32,
        "all magnitudes": lambda rng: signed_powers(rng, -1010, 31),
        "near multiples of 1/8": lambda rng: near(rng, np.arange(-8, 9) / 8),
    },
    "asin": {
        "all": lambda rng: rng.uniform(-1, 1, POINTS),
        "near 1, 1/2 and their negatives": lambda rng: np.clip(near(rng, [-1.0, -0.5, 0.5, 1.0]), -1, 1),
        "near 0": lambda rng: signed_powers(rng, -1020, -1),
    },
    "sinhcosh": {
        "around the change of formula": lambda rng: rng.uniform(-1.5, 1.5, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1020, -1),
        "all magnitudes": lambda rng: rng.uniform(-708, 708, POINTS),
        "ends": lambda rng: np.array([709.9, -710.4758, 710.4758]),
    },
    "tanh": {
        "around the change of formula": lambda rng: rng.uniform(-1.0, 1.0, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1020, -1),
        "to where it is 1": lambda rng: rng.uniform(-22, 22, POINTS),
        "large": lambda rng: signed_powers(rng, 4, 1023),
    },
    "erf": {
        "around the change of formula": lambda rng: rng.uniform(-1.5, 1.5, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1020, -1),
        "to where it is 1": lambda rng: rng.uniform(-6.5, 6.5, POINTS),
        "large": lambda rng: signed_powers(rng, 3, 1023),
    },
    "erfc": {
        "around 0": lambda rng: rng.uniform(-1.0, 1.0, POINTS),
        "to where it is 2": lambda rng: rng.uniform(-6.5, 0.0, POINTS),
        "to where it is subnormal": lambda rng: rng.uniform(0.0, 26.54, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1070, -1),
    },
    "gauss": {
        "around 1": lambda rng: rng.uniform(-2, 2, POINTS),
        "to where it is subnormal": lambda rng: rng.uniform(-26.6, 26.6, POINTS),
        "tiny": lambda rng: signed_powers(rng, -1070, -1),
    },
    "log1p": {
        "tiny": lambda rng: signed_powers(rng, -1020, -1),
        "around 0": lambda rng: rng.uniform(-0.9, 3.0, POINTS),
        "near -1": lambda rng: -1.0 + 2.0 ** rng.uniform(-53, -1, POINTS),
        "large": lambda rng: 2.0 ** rng.uniform(0, 1020, POINTS),
    },
    "floor": {
        "all magnitudes": lambda rng: signed_powers(rng, -1070, 1023),
        "with fractions": lambda rng: rng.choice([-1, 1], POINTS) * 2.0 ** rng.uniform(40, 53, POINTS),
        "whole and half": lambda rng: np.arange(-40, 41) / 4,
    },
}


@pytest.mark.parametrize(("name", "interval"), [(f, i) for f, kinds in ARGUMENTS.items() for i in kinds])
def test_error_is_within_the_stated_bound(name, interval):
    arguments = ARGUMENTS[name][interval](np.random.default_rng(20))
    assert worst_error(name, arguments) <= BOUND[name]


def test_sincos_is_within_its_bound_at_the_doubles_closest_to_multiples_of_a_quarter_turn():
    """All below 2**20 looked at, by integers; the closest differ by 6e-19 and need all four parts of pi/2."""
    quarter = int(mp.pi / 2 * 2**150)
    multiples_of_it = [quarter * k for k in range(1, 667_000)]
    closest = sorted(multiples_of_it, key=lambda m: abs(m - int(float(m))))[:200]
    assert worst_error("sincos", np.ldexp([float(m) for m in closest], -150)) <= BOUND["sincos"]


def test_small_angles_need_no_reduction_for_the_same_bits():
    """Up to 0.78, also of either zero and of subnormal numbers; not beyond."""
    rng = np.random.default_rng(22)
    x = np.concatenate([
        rng.uniform(-0.78, 0.78, POINTS), np.clip(signed_powers(rng, -1074, 0), -0.78, 0.78), [0.0, -0.0, 0.78, -0.78]
    ])  # fmt: skip
    for ours, theirs in zip(call("sincos_small", x), call("sincos", x), strict=True):
        assert np.array_equal(ours.view(np.int64), theirs.view(np.int64))
    assert not np.array_equal(call("sincos_small", [1.5])[0], call("sincos", [1.5])[0])


@pytest.mark.parametrize("lowest", [-1, -20, -300, -1073])
def test_atan2_is_within_its_bound_in_all_quadrants_and_at_all_magnitudes(lowest):
    rng = np.random.default_rng(21)
    highest = min(-lowest, 1024)
    y, x = signed_powers(rng, lowest, highest), signed_powers(rng, lowest, highest)
    y, x = (np.where(np.abs(a) > 0, a, 5e-324) for a in (y, x))
    # Below 1e-300 what a subnormal intermediate result rounds off is seen: the bound there is one spacing.
    tiny = (x > 0) & (np.log2(np.abs(y)) - np.log2(np.abs(x)) < -996)
    assert worst_error("atan2", y[~tiny], x[~tiny]) <= BOUND["atan2"]
    assert not tiny.any() or worst_error("atan2", y[tiny], x[tiny]) <= 1.0


def test_atan2_is_within_its_bound_where_its_reductions_meet_and_for_close_arguments():
    rng = np.random.default_rng(22)
    scale = 2.0 ** rng.integers(-1000, 1000, POINTS)
    assert worst_error("atan2", scale * near(rng, [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]), scale) <= BOUND["atan2"]
    assert worst_error("atan2", rng.uniform(0.4, 0.51, POINTS), np.ones(POINTS)) <= BOUND["atan2"]


@pytest.mark.parametrize(
    ("x", "y", "bound"),
    [
        ("0.1 to 3", lambda rng: rng.uniform(-4, 4, POINTS), BOUND["power"]),
        ("near 1", lambda rng: rng.uniform(-500, 500, POINTS), BOUND["power"]),
        ("subnormal", lambda rng: rng.uniform(-0.01, 0.01, POINTS), BOUND["power"]),
        ("all magnitudes", lambda rng: rng.uniform(-1, 1, POINTS), 30),
        ("0.1 to 3", lambda rng: rng.uniform(-300, 300, POINTS), 30),
        ("root of 2", lambda rng: rng.choice([-1, 1], POINTS) * rng.uniform(1500, 2040, POINTS), 30),
    ],
    ids=["small", "near 1", "subnormal", "all magnitudes", "large exponents", "far from powers of 2"],
)  # fmt: skip
def test_powers_are_within_their_bound(x, y, bound):
    rng = np.random.default_rng(24)
    x = {
        "0.1 to 3": lambda: rng.uniform(0.1, 3, POINTS),
        "near 1": lambda: 1 + rng.uniform(-0.02, 0.02, POINTS),
        "subnormal": lambda: 2.0 ** rng.uniform(-1074, -1022, POINTS),
        "all magnitudes": lambda: 2.0 ** rng.uniform(-1000, 1000, POINTS),
        "root of 2": lambda: rng.uniform(1.39, 1.4143, POINTS),
    }[x]()
    y = y(rng)
    normal = np.abs(y * np.log(x)) < (10 if bound < 2 else 708)
    assert normal.sum() > POINTS / 3
    assert worst_error("power", x[normal], y[normal]) <= bound


def test_exponents_that_lose_a_whole_number_are_not_rounded():
    """x**(y - k) where y - k is no double, and x so far from 1 that the nearest one would tell."""
    rng = np.random.default_rng(25)
    x, y = 2.0 ** rng.uniform(-60, 60, POINTS), rng.uniform(-8, 8, POINTS)
    for k in (1.0, 2.0, 3.0):
        out = np.empty(POINTS)
        numerics.power(x, y, out, k)
        for value, a, b in zip(out[::4], x[::4], y[::4], strict=True):
            true = mp.power(mp.mpf(float(a)), mp.mpf(float(b)) - int(k))
            assert abs(mp.mpf(float(value)) - true) <= 30 * mp.mpf(float(np.spacing(float(true))))


def test_powers_of_what_is_not_positive():
    """A negative number has whole powers; zero has those that are not negative."""
    x = [-2.0, -2.0, -2.0, -2.0, -2.0, 0.0, -0.0, 0.0, 0.0, -3.0, 1.0, -1.0]
    y = [3.0, 2.0, -1.0, 0.0, 0.5, 2.5, 3.0, 0.0, -1.0, 2.0**52, 1e300, 2.0**30 + 1]
    nan, inf = np.nan, np.inf
    expected = [-8.0, 4.0, -0.5, 1.0, nan, 0.0, 0.0, 1.0, inf, nan, 1.0, -1.0]
    np.testing.assert_array_equal(call("power", x, y)[0], expected)
    out = np.empty(2)
    numerics.power(np.array([-2.0, -2.0]), np.array([3.0, 4.0]), out, 1.0)
    assert out.tolist() == [4.0, -8.0]
    bad = [(np.inf, 1.0), (1.0, np.inf), (np.nan, 1.0), (1.0, np.nan), (0.0, np.nan), (-np.inf, 2.0)]
    assert np.isnan(call("power", *np.array(bad).T)[0]).all()
    assert call("power", [10.0, 10.0, 1e-300], [309.0, -400.0, 1e300])[0].tolist() == [np.inf, 0.0, 0.0]


def same_bits(got, expected):
    expected = np.asarray(expected, dtype=float)
    np.testing.assert_array_equal(got.view(np.uint64), expected.view(np.uint64))


def test_atan2_of_axes_and_signed_zeros_is_that_of_numpy():
    values = np.array([0.0, -0.0, 1.0, -1.0, 3e-310, -3e-310, 1.7e308, -1.7e308])
    y, x = (a.ravel() for a in np.meshgrid(values, values))
    simple = (y == 0) | (x == 0) | (np.abs(y) == np.abs(x))
    same_bits(call("atan2", y[simple], x[simple])[0], np.arctan2(y[simple], x[simple]))


def test_exact_values_and_signed_zeros():
    same_bits(call("log", [1.0])[0], [0.0])
    same_bits(call("exp", [0.0, -0.0])[0], [1.0, 1.0])
    same_bits(call("acos", [1.0, 0.0, -0.0, -1.0])[0], [0.0, np.pi / 2, np.pi / 2, np.pi])
    same_bits(call("asin", [1.0, 0.0, -0.0, -1.0])[0], [np.pi / 2, 0.0, -0.0, -np.pi / 2])
    for name in ("tanh", "erf"):
        same_bits(call(name, [0.0, -0.0, 1e300, -np.inf, np.inf])[0], [0.0, -0.0, 1.0, -1.0, 1.0])
    same_bits(call("erfc", [0.0, -0.0, 30.0, -30.0, np.inf, -np.inf])[0], [1.0, 1.0, 0.0, 2.0, 0.0, 2.0])
    same_bits(call("gauss", [0.0, -0.0, 30.0, -np.inf])[0], [1.0, 1.0, 0.0, 0.0])
    same_bits(call("log1p", [0.0, 1.0])[0], [0.0, np.log(2.0)])
    sine, cosine = call("sinhcosh", [0.0, -0.0, 711.0, -711.0, np.inf])
    same_bits(sine, [0.0, -0.0, np.inf, -np.inf, np.inf])
    same_bits(cosine, [1.0, 1.0, np.inf, np.inf, np.inf])
    sine, cosine = call("sincos", [0.0, -0.0])
    same_bits(sine, [0.0, -0.0])
    same_bits(cosine, [1.0, 1.0])
    sine, cosine = call("sincos2pi", np.arange(-8, 9) / 4)
    assert np.array_equal(sine, np.tile([0.0, 1.0, 0.0, -1.0], 5)[:17])
    assert np.array_equal(cosine, np.tile([1.0, 0.0, -1.0, 0.0], 5)[:17])


@pytest.mark.parametrize(("name", "bad"), [
    ("log", [0.0, -0.0, 5e-324, 2.2e-308, -1.0, np.inf, -np.inf, np.nan]),
    ("acos", [1.0 + 2.0**-52, -1.0 - 2.0**-52, 2.0, np.inf, -np.inf, np.nan]),
    ("asin", [1.0 + 2.0**-52, -1.0 - 2.0**-52, 2.0, np.inf, -np.inf, np.nan]),
    ("log1p", [-1.0, -2.0, np.inf, -np.inf, np.nan]),
    *((name, [np.nan]) for name in ("exp", "sinhcosh", "tanh", "erf", "erfc", "gauss", "floor")),
    ("sincos", [2.0**20 + 1, -(2.0**20) - 1, 1e300, np.inf, -np.inf, np.nan]),
])
def test_arguments_outside_the_domain_give_nan(name, bad):
    for out in call(name, bad):
        assert np.isnan(out).all()


def test_atan2_of_an_infinite_argument_is_nan():
    pairs = [(np.inf, 1.0), (1.0, np.inf), (np.inf, -np.inf), (-np.inf, 0.0), (np.nan, 1.0), (1.0, np.nan)]
    assert np.isnan(call("atan2", *np.array(pairs).T)[0]).all()


def test_exp_over_and_underflows_like_the_exact_value():
    same_bits(call("exp", [709.79, 1e4, np.inf, -745.2, -1e4, -np.inf])[0], [np.inf] * 3 + [0.0] * 3)
    assert worst_error("exp", np.linspace(-745.1, -708.4, POINTS)) <= 1.0  # subnormal results: one spacing


@pytest.mark.parametrize("name", list(BOUND))
def test_vector_lanes_and_single_calls_give_the_same_bits(name):
    """Any length from 1 to 17 and any alignment: full vectors, epilogues and scalar remainders."""
    rng = np.random.default_rng(23)
    n_arguments = 2 if name in ("atan2", "power") else 1
    low, high = {"log": (0.01, 3), "acos": (-1, 1), "asin": (-1, 1), "log1p": (-0.9, 3)}.get(name, (-20, 20))
    pool = rng.uniform(low, high, (n_arguments, 64))
    calls = [call(name, *pool[:, i:i + 1]) for i in range(64)]
    single = [np.concatenate(parts) for parts in zip(*calls, strict=True)]
    for length in range(1, 18):
        for start in range(4):
            window = slice(start, start + length)
            for got, expected in zip(call(name, *pool[:, window]), single, strict=True):
                same_bits(got, expected[window])
    for got, expected in zip(call(name, *pool), single, strict=True):
        same_bits(got, expected)


def test_bits_are_those_of_every_other_cpu():
    """One number for all functions on a fixed grid, the same in the baseline, AVX2 and AVX-512 builds."""
    grid = (np.arange(20_000) + 0.5) / 20_000  # exact operations only, no random generator
    digest = hashlib.sha256()
    for name, arguments in {
        "log": [grid * 8],
        "exp": [(grid - 0.5) * 1400],
        "acos": [2 * grid - 1],
        "sincos": [(grid - 0.5) * 2e5],
        "sincos2pi": [(grid - 0.5) * 64],
        "atan2": [(grid - 0.3) * 4, grid[::-1] - 0.6],
    }.items():
        for out in call(name, *arguments):
            digest.update(out.tobytes())
    assert digest.hexdigest()[:16] == "ee1cb31b75e9f1b9"
    for name, arguments in {
        "asin": [2 * grid - 1],
        "sinhcosh": [(grid - 0.5) * 1420],
        "tanh": [(grid - 0.5) * 8],
        "erf": [(grid - 0.5) * 8],
        "erfc": [(grid - 0.2) * 30],
        "gauss": [(grid - 0.5) * 60],
        "log1p": [grid * 8 - 0.99],
        "floor": [(grid - 0.5) * 100],
        "power": [grid * 8, (grid[::-1] - 0.4) * 30],
    }.items():
        for out in call(name, *arguments):
            digest.update(out.tobytes())
    assert digest.hexdigest()[:16] == "207364a280eb1ef5"


def test_lengths_that_differ_are_refused():
    refuses(ValueError, "same length", numerics.log, np.ones(3), np.ones(2))
    refuses(ValueError, "same length", numerics.atan2, np.ones(3), np.ones(2), np.ones(3))
    refuses(ValueError, "same length", numerics.sincos, np.ones(3), np.ones(3), np.ones(2))


@pytest.mark.slow
@pytest.mark.skipif(not all(source.exists() for source in SOURCES), reason="needs the source tree")
def test_coefficients_are_those_the_script_derives():
    command = [sys.executable, str(HERE / "derive_elementary.py"), "--check", *map(str, SOURCES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
