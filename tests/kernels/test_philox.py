"""Philox 4x32-10 against published answers and NumPy integers; distribution of the normal numbers."""
import hashlib
import math

import numpy as np
import pytest
from builders import refuses

from medyanpy._kernels.core import numerics

PURPOSES = numerics.PURPOSES

# Two-sided alpha = 1e-6 in every statistical test; seeds are fixed, so a test that passes cannot flake.
Z_ALPHA = 4.892  # quantile of the normal distribution
KS_ALPHA = 2.694  # of sqrt(n) D: sqrt(log(2 / alpha) / 2)
N_BEADS = 200_000

# kat_vectors of Random123: counter, key, answer
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def words(text):
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint32)


def philox(counter, key):
    out = np.empty_like(counter)
    numerics.philox(counter, key, out)
    return out


def philox_in_numpy(counter, key):
    """The definition in 64-bit integers, for an array of counters; from the paper, not from the kernel."""
    left0, right0, left1, right1 = (counter[:, i].astype(np.uint64) for i in (1, 0, 3, 2))
    low = np.uint64(0xFFFFFFFF)
    for number in range(10):
        key0 = np.uint64((int(key[0]) + number * 0x9E3779B9) % 2**32)
        key1 = np.uint64((int(key[1]) + number * 0xBB67AE85) % 2**32)
        product0 = right0 * np.uint64(0xD2511F53)
        product1 = right1 * np.uint64(0xCD9E8D57)
        right0 = (product1 >> np.uint64(32)) ^ left0 ^ key0
        right1 = (product0 >> np.uint64(32)) ^ left1 ^ key1
        left0, left1 = product1 & low, product0 & low
    return np.stack([right0, left0, right1, left1], axis=1).astype(np.uint32)


def draw(ids, seed=1, step=2, letter=3, substep=4, purpose=PURPOSES["test"], **other):
    ids = np.ascontiguousarray(ids, dtype=np.int64)
    out = np.full((len(ids), 3), np.nan)
    numerics.normals(out, ids, seed, step, letter, substep, purpose, **other)
    return out


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_answers(counter, key, answer):
    assert np.array_equal(philox(words(counter)[None], words(key))[0], words(answer))


def test_philox_agrees_with_numpy_integers():
    rng = np.random.default_rng(30)
    for n in [*range(1, 18), 1000]:
        counter = rng.integers(0, 2**32, (n, 4), dtype=np.uint32)
        key = rng.integers(0, 2**32, 2, dtype=np.uint32)
        assert np.array_equal(philox(counter, key), philox_in_numpy(counter, key))


@pytest.mark.parametrize("step", [0, 5, 2**32 - 1, 2**32 + 7, 2**48 - 1])
@pytest.mark.parametrize("seed", [0, 0x0123456789ABCDEF, 2**64 - 1])
def test_normals_are_box_and_muller_of_the_documented_counter(seed, step):
    # As many with all 48 bits of an id as with the lower ones alone.
    ids = np.random.default_rng(31).integers(0, [[2**31], [2**48]], (2, 150)).ravel()
    counter = np.empty((300, 4), dtype=np.uint32)
    counter[:, 0] = ids % 2**32
    counter[:, 1] = step % 2**32
    counter[:, 2] = (step >> 32) << 16 | 201 << 8 | 77
    counter[:, 3] = 255 << 24 | (ids >> 32) << 8 | 0x56
    w = philox_in_numpy(counter, np.array([seed % 2**32, seed >> 32], dtype=np.uint32))
    u = (w + 0.5) / 2.0**32
    first, second = np.sqrt(-2 * np.log(u[:, 0])), np.sqrt(-2 * np.log(u[:, 2]))
    turn = 2 * np.pi * u
    cosine, sine = np.cos(turn), np.sin(turn)
    expected = np.stack([first * cosine[:, 1], first * sine[:, 1], second * cosine[:, 3]], axis=1)
    got = draw(ids, seed=seed, step=step, letter=201, substep=77, purpose=255, draw=0x56)
    # 2 pi u is rounded here and not in the kernel: 6.8 (the largest radius) * 4.4e-16
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=4e-15)


def test_numbers_of_a_bead_do_not_depend_on_the_other_beads():
    ids = np.random.default_rng(32).permutation(3000).astype(np.int32)
    whole = draw(ids)
    for n in [*range(1, 18), 127, 128, 129, 255, 256, 257, 1000]:
        for start in (0, 1, 130):
            assert np.array_equal(draw(ids[start:start + n]), whole[start:start + n])
    order = np.argsort(ids)
    assert np.array_equal(draw(ids[order]), whole[order])


def test_one_field_changed_changes_every_number():
    ids = np.arange(500)
    base = {"seed": 2**40 + 1, "step": 2**33 + 2, "letter": 3, "substep": 4, "purpose": 1, "draw": 5}
    sets = [draw(ids, **base), draw(ids + 500, **base)]
    sets += [draw(ids + (1 << bit), **base) for bit in range(10, 48)]
    for field, bits in {"seed": 64, "step": 48, "letter": 8, "substep": 8, "purpose": 8, "draw": 8}.items():
        for bit in range(bits):
            sets.append(draw(ids, **{**base, field: base[field] ^ (1 << bit)}))
    numbers = np.concatenate(sets).ravel()
    # Each is a function of 64 random bits; of 270 000 numbers with 53 bits, 4e-6 pairs would agree by chance.
    assert len(np.unique(numbers)) == len(numbers)


def normal_cdf(x):
    return 0.5 * np.array([math.erfc(v) for v in -x / math.sqrt(2)])


def ks_statistic(probabilities):
    """sqrt(n) D of values that are uniform on (0, 1) under the null hypothesis."""
    n = len(probabilities)
    ordered = np.sort(probabilities)
    ranks = np.arange(n)
    return math.sqrt(n) * max(np.max(ordered - ranks / n), np.max((ranks + 1) / n - ordered))


def test_moments_are_those_of_the_normal_distribution():
    """Null: powers of independent standard normals; alpha 1e-6 for each of 13 numbers.

    Found with probability 0.999 (n = 200 000 per axis): a mean of 0.018, a relative error of the variance of
    2.5 %, a skewness of 0.07, an excess kurtosis of 0.18.
    """
    g = draw(np.arange(N_BEADS))
    variance_of_power = {1: 1, 2: 2, 3: 15, 4: 96}
    expected = {1: 0, 2: 1, 3: 0, 4: 3}
    for power, value in expected.items():
        z = (np.mean(g**power, axis=0) - value) * math.sqrt(N_BEADS / variance_of_power[power])
        assert np.all(np.abs(z) < Z_ALPHA), (power, z)
    assert np.max(np.abs(g)) <= math.sqrt(66 * math.log(2))  # the radius of w = 0


def test_numbers_are_normally_distributed():
    """Kolmogorov-Smirnov, alpha 1e-6 per test; a distance of 0.011 is found with probability 0.999.

    Null: each axis normal; the squared radius of the pair (x, y) exponential; its angle uniform.
    """
    g = draw(np.arange(N_BEADS))
    for axis in range(3):
        assert ks_statistic(normal_cdf(g[:, axis])) < KS_ALPHA
    assert ks_statistic(np.exp(-0.5 * (g[:, 0]**2 + g[:, 1]**2))) < KS_ALPHA
    assert ks_statistic(np.arctan2(g[:, 1], g[:, 0]) / (2 * np.pi) + 0.5) < KS_ALPHA


@pytest.mark.parametrize("other", [
    {"step": 3}, {"letter": 4}, {"substep": 5}, {"purpose": 1}, {"seed": 2}, {"draw": 1},
])
def test_numbers_of_different_uses_are_uncorrelated(other):
    """Null: products of independent normals, mean 0 and variance 1; alpha 1e-6 for each of 18 numbers.

    A correlation of 0.018, of the numbers or of their squares, is found with probability 0.999.
    """
    a, b = draw(np.arange(N_BEADS)), draw(np.arange(N_BEADS), **other)
    for f in (lambda g: g, lambda g: (g * g - 1) / math.sqrt(2)):
        z = f(a).T @ f(b) / math.sqrt(N_BEADS)
        assert np.all(np.abs(z) < Z_ALPHA), z


def test_axes_and_neighbouring_beads_are_uncorrelated():
    """Null, alpha and effect as above, for pairs of axes of a bead and for beads with successive ids."""
    g = draw(np.arange(N_BEADS))
    for f in (lambda g: g, lambda g: (g * g - 1) / math.sqrt(2)):
        y = f(g)
        axes = (y.T @ y / math.sqrt(N_BEADS))[np.triu_indices(3, 1)]
        successive = y[1:].T @ y[:-1] / math.sqrt(N_BEADS - 1)
        assert np.all(np.abs(axes) < Z_ALPHA), axes
        assert np.all(np.abs(successive) < Z_ALPHA), successive


def test_bits_are_those_of_every_other_cpu_and_version():
    digest = hashlib.sha256(draw(np.arange(10_000), seed=2**63 + 12345, step=2**35 + 17).tobytes())
    assert digest.hexdigest()[:16] == "4f3f072cc6ceae70"


def test_purposes_keep_their_numbers():
    assert PURPOSES == {"thermostat": 1, "velocities": 2, "placement": 3, "rotation": 5, "test": 255}


@pytest.mark.parametrize(("field", "value"), [
    ("step", -1), ("step", 2**48), ("letter", -1), ("letter", 256), ("substep", -1), ("substep", 256),
    ("purpose", -1), ("purpose", 256), ("draw", -1), ("draw", 256),
])
def test_fields_out_of_range_are_refused(field, value):
    refuses(ValueError, field, draw, np.arange(3), **{field: value})


def test_arrays_of_other_shapes_are_refused():
    ids = np.arange(3, dtype=np.int64)
    refuses(ValueError, "same length", numerics.normals, np.empty((2, 3)), ids, 1, 1, 1, 1, 255)
    refuses(ValueError, r"\(n, 3\)", numerics.normals, np.empty((3, 2)), ids, 1, 1, 1, 1, 255)
    with pytest.raises(ValueError, match="4 words"):
        numerics.philox(np.zeros((2, 3), np.uint32), np.zeros(2, np.uint32), np.zeros((2, 4), np.uint32))


def test_no_beads_are_not_an_error():
    assert draw([]).shape == (0, 3)
