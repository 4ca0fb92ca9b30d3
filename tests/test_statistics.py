"""The statistical checks themselves: what they pass, what they find, and which samples they refuse."""

import ast
from pathlib import Path

import numpy as np
import pytest
from builders import refuses
from scipy import signal, stats

import medyanpy as mp
from medyanpy.testing import (
    FALSE_ALARM_RATE,
    check_chi_square,
    check_mean,
    check_same_distribution,
    check_same_mean,
    check_variance,
    statistical_inefficiency,
)


def chain(rng, n, memory):
    """A time series of variance 1 whose correlation falls by `memory` per sample."""
    noise = np.sqrt(1.0 - memory**2) * rng.normal(size=n)
    noise[0] /= np.sqrt(1.0 - memory**2)
    return signal.lfilter([1.0], [1.0, -memory], noise)


def test_p_values_are_those_of_scipy(rng):
    x, y = rng.normal(1.0, 2.0, 300), rng.normal(1.2, 0.5, 80)
    assert check_mean("x", x, 1.3) == pytest.approx(stats.ttest_1samp(x, 1.3).pvalue, rel=1e-12)
    assert check_same_mean("x", x, y) == pytest.approx(stats.ttest_ind(x, y, equal_var=False).pvalue, rel=1e-12)
    assert check_same_distribution("x", y, y + 0.1) == stats.ks_2samp(y, y + 0.1, method="asymp").pvalue
    counts = np.array([30, 40, 50])
    assert check_chi_square("x", counts, [40.0] * 3) == pytest.approx(stats.chisquare(counts).pvalue, rel=1e-12)


def exploded(rng, n, copies):
    x = rng.chisquare(3, n)
    x[rng.choice(n, copies, replace=False)] = 1e8
    return x


@pytest.mark.parametrize(("n", "copies"), [(8, 1), (100, 1), (1000, 11), (20_000, 2), (20_000, 15)])
def test_a_sample_whose_spread_a_few_members_make_is_refused(rng, n, copies):
    """Its own spread would excuse any mean. That of 20 000 free triangles was made by two of them."""
    x = exploded(rng, n, copies)
    assert stats.ttest_1samp(x, 40.0).pvalue > FALSE_ALARM_RATE  # the mean should be 3
    refuses(AssertionError, f"of {n} samples make the spread", check_mean, "area", x, 3.0)
    if n > 8:
        for pair in ((x, rng.chisquare(3, n)), (rng.chisquare(3, n), x)):
            refuses(AssertionError, f"of {n} samples make the spread", check_same_mean, "area", *pair)


def test_a_few_wild_members_neither_blind_nor_fail_the_comparison_of_distributions(rng):
    x = exploded(rng, 20_000, 2)
    check_same_distribution("area", x, rng.chisquare(3, 20_000), sees=0.05)
    with pytest.raises(AssertionError, match="distribution functions differ"):
        check_same_distribution("area", x, 1.15 * rng.chisquare(3, 20_000))


@pytest.mark.parametrize(
    ("law", "n"),
    [("normal", 3), ("normal", 8), ("normal", 30), ("normal", 2000), ("laplace", 2000), ("squares", 2000),
     ("exponential", 1000), ("cubes", 50_000), ("one in ten", 1000), ("one in a hundred", 10_000)],
)  # fmt: skip
def test_honest_samples_pass(rng, law, n):
    """Light tails of any size, heavier ones that are large enough, and counts: 60 samples of each."""
    draw = {
        "normal": lambda: rng.normal(size=n),
        "laplace": lambda: rng.laplace(size=n),
        "squares": lambda: rng.normal(size=n) ** 2 - 1.0,
        "cubes": lambda: rng.normal(size=n) ** 3,
        "exponential": lambda: rng.exponential(size=n) - 1.0,
        "one in ten": lambda: (rng.uniform(size=n) < 0.1) - 0.1,
        "one in a hundred": lambda: (rng.uniform(size=n) < 0.01) - 0.01,
    }[law]
    for _ in range(60):
        check_mean(law, draw(), 0.0)


def test_effect_that_a_mean_detects(rng):
    """8 standard errors of a large sample, more of a small one whose spread is not known well."""
    x = stats.norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    rng.shuffle(x)
    check_mean("x", x, 0.0, sees=0.08)
    with pytest.raises(AssertionError, match=r"see an error of 0\.0797, but 10000 samples see one of 0\.0799"):
        check_mean("x", x, 0.0, sees=0.0797)
    few = rng.permutation(x)[:6]
    error = few.std(ddof=1) / np.sqrt(6)
    check_mean("x", few, 0.0, sees=35.0 * error)
    refuses(AssertionError, "6 samples", check_mean, "x", few, 0.0, sees=34.0 * error)
    check_same_mean("x", x, x[::-1], sees=0.1130)
    refuses(AssertionError, "10000 against 10000 samples", check_same_mean, "x", x, x[::-1], sees=0.1125)


@pytest.mark.parametrize("seen", ["mean", "two means", "variance", "counts", "distribution"])
def test_an_error_of_the_stated_size_is_found(rng, seen):
    """200 faulty samples each, wrong by what the check says that it sees: all of them found (one in a thousand is not,
    so that two of 200 escape once in 60)."""
    n = 2000
    found = 0
    for _ in range(200):
        try:
            if seen == "mean":
                check_mean(seen, rng.normal(0.18, 1.0, n), 0.0)
            elif seen == "two means":
                check_same_mean(seen, rng.normal(0.18 * np.sqrt(2.0), 1.0, n), rng.normal(size=n))
            elif seen == "variance":
                x = rng.normal(0.0, np.sqrt(1.29), n)
                check_variance(seen, x @ x, n, 1.0)
            elif seen == "counts":
                share = np.array([1.21, 0.79] * 5) / 10.0
                check_chi_square(seen, rng.multinomial(n, share), np.full(10, n / 10.0))
            else:
                check_same_distribution(seen, rng.uniform(size=n) ** (1.0 / 1.45), rng.uniform(size=n))
        except AssertionError:
            found += 1
    assert found >= 198
    # And these are the stated sizes: the checks say so of samples of this size, and of none smaller.
    x = rng.normal(size=n)
    for sees, wide in ((0.19, True), (0.17, False)):
        check = {
            "mean": lambda s: check_mean(seen, x, x.mean(), sees=s),
            "two means": lambda s: check_same_mean(seen, x, rng.permutation(x), sees=s * np.sqrt(2.0)),
            "variance": lambda s: check_variance(seen, n, n, 1.0, sees=s + 0.11),
            "counts": lambda s: check_chi_square(seen, np.full(10, n / 10), np.full(10, n / 10), sees=s + 0.03),
            "distribution": lambda s: check_same_distribution(seen, x, rng.permutation(x), sees=s - 0.045),
        }[seen]
        if wide:
            check(sees)
        else:
            refuses(AssertionError, "claims to see", check, sees)


@pytest.mark.parametrize(("memory", "tolerance"), [(0.0, 0.3), (0.5, 0.7), (0.9, 4.0)])
def test_statistical_inefficiency_of_a_chain(rng, memory, tolerance):
    """(1 + a)/(1 - a) of correlations a^t; mean of 20 series of 5000."""
    measured = np.mean([statistical_inefficiency(chain(rng, 5000, memory)) for _ in range(20)])
    assert measured == pytest.approx((1.0 + memory) / (1.0 - memory), abs=0.5 * tolerance)
    assert statistical_inefficiency(np.full(7, 3.0)) == 1.0
    assert statistical_inefficiency(np.tile([1.0, -1.0], 50)) == 1.0


def test_correlated_samples_are_refused_or_treated_as_such(rng):
    """Spread and number of looks at one run say too little; means of blocks say what is true."""
    x = chain(rng, 20_000, 0.7)
    refuses(AssertionError, r"correlation of successive samples is 0\.7.*time_series=True", check_mean, "run", x, 0.0)
    refuses(AssertionError, "correlation of successive samples", check_same_mean, "run", x, rng.normal(size=100))
    p = check_mean("run", x, 0.0, time_series=True, sees=0.17)
    refuses(AssertionError, "claims to see", check_mean, "run", x, 0.0, time_series=True, sees=8.0 / np.sqrt(len(x)))
    assert p > 1e-3
    refuses(mp.ParameterError, "make 1 blocks of", check_mean, "run", x[:200], 0.0, time_series=True)
    # A time series without memory is a sample like any other.
    check_mean("run", rng.normal(size=100), 0.0, time_series=True)


def test_block_means_of_a_time_series_keep_the_rate_of_false_alarms(rng):
    """p-values of 400 chains are uniform: as they are with independent samples, and are not if memory is ignored."""
    series = [chain(rng, 3000, 0.6) for _ in range(400)]
    p = [check_mean("run", x, 0.0, time_series=True) for x in series]
    assert stats.kstest(p, "uniform").pvalue > FALSE_ALARM_RATE
    ignored = [stats.ttest_1samp(x, 0.0).pvalue for x in series]
    assert stats.kstest(ignored, "uniform").pvalue < FALSE_ALARM_RATE


def test_samples_that_no_test_can_use_are_refused(rng):
    for bad in (np.nan, np.inf):
        refuses(AssertionError, "sample 3 is not finite", check_mean, "x", [1.0, 2.0, 3.0, bad, 5.0], 1.0)
        refuses(AssertionError, "not finite", check_same_distribution, "x", [1.0, bad], [1.0, 2.0])
    refuses(AssertionError, "all 9 samples are equal", check_mean, "x", np.full(9, 0.1), 0.1)
    for few in ([], [1.0], np.ones((3, 2))):
        refuses(mp.ParameterError, "expected", check_mean, "x", few, 1.0)
    refuses(mp.ParameterError, "merge bins", check_chi_square, "x", [4, 20], [4.0, 20.0])


CHECKS = ("check_mean", "check_same_mean", "check_same_distribution", "check_variance", "check_chi_square")


@pytest.mark.slow
def test_every_check_of_the_tests_says_what_it_sees():
    """`sees` is optional for users; here a check without it would be one that may be blind."""
    found = 0
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        if path == Path(__file__):
            continue
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in CHECKS:
                found += 1
                assert any(word.arg == "sees" for word in call.keywords), f"{path.name}:{call.lineno} needs sees="
    assert found > 80
