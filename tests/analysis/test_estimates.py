"""Means and their errors, correlation functions, and how far beads spread."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import analysis
from medyanpy.testing import check_mean


def remembering(rng, n, keep, copies=1):
    """(n, copies) of an autoregressive process of variance 1: each sample keeps so much of the one before."""
    x = np.empty((n, copies))
    x[0] = rng.normal(size=copies)
    for k in range(1, n):
        x[k] = keep * x[k - 1] + np.sqrt(1.0 - keep**2) * rng.normal(size=copies)
    return x


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.0, 0.8])
def test_errors_of_averages_are_those_of_repeated_experiments(keep, rng):
    """1e-6; errors wrong by 25 % would be seen. Without memory as with one of 9 samples."""
    found = [analysis.average(x) for x in remembering(rng, 2000, keep, 200).T]
    z = np.array([one.value / one.error for one in found])
    check_mean("average", z, 0.0, sees=0.7)
    # χ² of 200 degrees of freedom, 1e-6: 0.56 to 1.57; g is known to 10 % or so.
    assert 0.5 < np.mean(z**2) < 1.65


def test_averages_of_independent_samples(rng):
    x = rng.normal(2.0, 3.0, 50)
    x -= np.arange(50) * 1e-9
    g = analysis.statistical_inefficiency(x)
    found = analysis.average(x)
    assert found.value == x.mean()
    assert found.error == pytest.approx(np.sqrt(g / 50 * x.var() / (1.0 - g / 50)))
    assert analysis.average([1.0, 3.0]) == analysis.Estimate(2.0, 1.0)
    assert analysis.average([5.0, 5.0, 5.0]) == analysis.Estimate(5.0, 0.0)
    # Of which the mean is not quite one.
    assert analysis.average([0.1] * 3).error < 1e-16
    # A drift tells no error.
    with pytest.warns(mp.StatisticsWarning):
        assert np.isnan(analysis.average(np.arange(100.0)).error)
    refuses(mp.ParameterError, "1 samples have no error", analysis.average, [1.0])
    refuses(mp.ParameterError, r"samples\[1\] = nan but must be finite", analysis.average, [1.0, np.nan])


@pytest.mark.parametrize("shape", [(1,), (2,), (17,), (40, 3)])
def test_autocorrelation_by_hand(shape, rng):
    x = rng.normal(size=shape) + 100.0
    n = len(x)
    if n == 1:
        refuses(mp.ParameterError, "all samples are equal", analysis.autocorrelation, x)
        return
    off = x - x.mean()
    expected = np.array([np.mean(off[: n - k] * off[k:]) for k in range(n)]) / np.mean(off**2)
    np.testing.assert_allclose(analysis.autocorrelation(x, n - 1), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(analysis.autocorrelation(x), expected[: n // 2 + 1], rtol=1e-11, atol=1e-12)


def test_autocorrelation_of_what_remembers(rng):
    """keep^k, of many copies; within 4.9 of the scatter of groups of these."""
    x = remembering(rng, 400, 0.7, 600)
    each = np.array([analysis.autocorrelation(x[:, k : k + 20], 8) for k in range(0, 600, 20)])
    for k in (1, 3, 8):
        check_mean(f"lag {k}", each[:, k], 0.7**k, sees=0.05)


def test_refused_samples():
    refuses(mp.ParameterError, "statistical_inefficiency: there are no samples", analysis.statistical_inefficiency, [])
    with pytest.raises(mp.ParameterError, match=r"statistical_inefficiency: samples\[0\] = inf but must be finite"):
        analysis.statistical_inefficiency([np.inf])
    refuses(mp.ParameterError, "there are no samples", analysis.autocorrelation, [])
    with pytest.raises(mp.ParameterError, match="max_lag = 2 but must be a whole number >= 0 and <= 1"):
        analysis.autocorrelation([1.0, 2.0], 2)
    refuses(mp.ParameterError, "must have shape", analysis.autocorrelation, np.zeros((2, 2, 2)))


# How far beads spread ------------------------------------------------------------------------------------------


def test_gyration_by_hand(rng):
    x = rng.normal(size=(5, 9, 3)) * [1.0, 2.0, 3.0] + [1e6, 0, 0]
    x[1, 3] = x[2] = np.nan
    rows, weights = rng.permutation(9)[:6], rng.uniform(1.0, 5.0, 6)
    for w in (None, weights):
        found = analysis.gyration_tensor(x, rows, weights=w)
        radii = analysis.radius_of_gyration(x, rows, weights=w)
        for k in range(5):
            here = ~np.isnan(x[k, rows, 0])
            if not here.any():
                assert np.isnan(found[k]).all()
                assert np.isnan(radii[k])
                continue
            one = x[k, rows][here] - [1e6, 0, 0]
            cov = np.cov(one.T, aweights=None if w is None else w[here], ddof=0)
            np.testing.assert_allclose(found[k], cov, rtol=1e-8)
            assert radii[k] == pytest.approx(np.sqrt(np.trace(cov)), rel=1e-8)
        np.testing.assert_array_equal(analysis.gyration_tensor(x[0], rows, weights=w), found[0])
        assert float(analysis.radius_of_gyration(x[0], rows, weights=w)) == radii[0]


def test_gyration_refused():
    refuses(mp.ParameterError, "there are no beads", analysis.radius_of_gyration, np.zeros((2, 3)), [])
    with pytest.raises(mp.ParameterError, match=r"weights\[1\] = 0\.0 but must be finite and > 0"):
        analysis.gyration_tensor(np.zeros((2, 3)), weights=[1.0, 0.0])
