"""Statistical checks with known rates of false alarms and known sensitivity.

Every check returns its p-value, fails a correct program with probability `FALSE_ALARM_RATE`, two-sided, and reports in
its message how large the deviation was. With ``sees=`` it also fails a sample that is too small, or spread too widely,
to find the error that the test claims to find with probability `POWER`. `what` names the samples in messages. SciPy is
needed.
"""

import numpy as np

from medyanpy._tools.series import statistical_inefficiency
from medyanpy.errors import ParameterError

__all__ = [
    "FALSE_ALARM_RATE", "POWER", "check_chi_square", "check_mean", "check_same_distribution", "check_same_mean",
    "check_variance", "statistical_inefficiency",
]  # fmt: skip

FALSE_ALARM_RATE = 1e-6
POWER = 0.999

# A standard error made by m members is itself known to 1 in 2 √m only: 11 % for 20.
_FEWEST_MEMBERS = 20
# Blocks of so many statistical inefficiencies are independent enough: their spread is 1 % too small.
_BLOCK = 20


def check_mean(
    what: str, samples: np.ndarray, expected: float, *, sees: float | None = None, time_series: bool = False
) -> float:
    """Check by Student's t that independent samples have the mean `expected`; return the two-sided p-value.

    Parameters
    ----------
    what : str
    samples : (n,) array
        Independent of each other, in any order; n at least 2.
    expected : float
        The mean of the law.
    sees : float, optional
        The error of the mean that the test claims to find with probability `POWER`, in the samples' unit. It is 8 of
        their standard errors (more for fewer than a hundred samples), and asserted.
    time_series : bool
        Samples are looks at one run, in order, so that they may be correlated. The means of blocks of 20 statistical
        inefficiencies are tested then.

    Raises
    ------
    AssertionError
        If the mean is not the expected one; if the sample is blind (see `sees`) or not finite. If fewer than 20 members
        make the spread, as after a blow-up (unless the largest deviation is one of a normal sample of this size, by
        Grubbs' test); if successive samples are correlated, without `time_series`.
    ParameterError
        If there are too few samples.

    Notes
    -----
    Shares s of the squared deviations from the mean are carried by 1/Σs² members: n/3 of a normal sample, n/15 of the
    squares of normal numbers, 1 where one copy has exploded. With m of them the standard error is known to 1 in 2√m.
    Samples of squares of normal numbers are refused in one of four cases with n = 100, in one of 600 with n = 1000, and
    hardly ever from n = 2000 on.
    """
    from scipy import stats

    values = _usable(what, samples, time_series)
    n = len(values)
    error = values.std(ddof=1) / np.sqrt(n)
    t = (values.mean() - expected) / error
    p = 2.0 * stats.t.sf(abs(t), n - 1)
    assert p > FALSE_ALARM_RATE, (
        f"{what}: mean {values.mean():.6g} ± {error:.2g}, expected {expected:.6g} ({t:+.1f} standard errors)"
    )
    _assert_seen(what, _standard_errors(n - 1) * error, sees, f"{n} samples")
    return float(p)


def check_same_mean(what: str, one: np.ndarray, other: np.ndarray, *, sees: float | None = None) -> float:
    """Check by Welch's t that two independent samples have the same mean; return the two-sided p-value.

    Parameters
    ----------
    what : str
    one, other : (n,), (m,) arrays
        Independent samples, each as in `check_mean`.
    sees : float, optional
        The difference of the means that the test claims to find with probability `POWER`; asserted.

    Raises
    ------
    AssertionError, ParameterError
        As `check_mean`, for each of the samples.
    """
    from scipy import stats

    one, other = _usable(f"{what} (one)", one, False), _usable(f"{what} (other)", other, False)
    squares = one.var(ddof=1) / len(one), other.var(ddof=1) / len(other)
    error = np.sqrt(sum(squares))
    # Welch and Satterthwaite's degrees of freedom.
    freedom = error**4 / sum(s * s / (len(x) - 1) for s, x in zip(squares, (one, other), strict=True))
    t = (one.mean() - other.mean()) / error
    p = 2.0 * stats.t.sf(abs(t), freedom)
    assert p > FALSE_ALARM_RATE, (
        f"{what}: mean {one.mean():.6g} against {other.mean():.6g} ± {error:.2g} ({t:+.1f} standard errors)"
    )
    _assert_seen(what, _standard_errors(freedom) * error, sees, f"{len(one)} against {len(other)} samples")
    return float(p)


def check_same_distribution(what: str, one: np.ndarray, other: np.ndarray, *, sees: float | None = None) -> float:
    """Check by Kolmogorov and Smirnov that two independent samples have the same distribution; return the p-value.

    It looks at ranks only, so that a few wild members can neither fail it nor blind it.

    Parameters
    ----------
    what : str
    one, other : (n,), (m,) arrays
        Independent samples.
    sees : float, optional
        The largest difference of the two distribution functions (0 to 1) that the test claims to find with probability
        `POWER`; asserted. It is 4.24 √(1/n + 1/m).

    Raises
    ------
    AssertionError
        If the distributions differ, or the samples are too small for `sees`.
    """
    from scipy import stats

    one, other = np.asarray(one, float), np.asarray(other, float)
    for samples in (one, other):
        assert np.isfinite(samples).all(), f"{what}: sample {np.argmin(np.isfinite(samples))} is not finite"
    result = stats.ks_2samp(one, other, method="asymp")
    assert result.pvalue > FALSE_ALARM_RATE, (
        f"{what}: distribution functions differ by {result.statistic:.3g} at {result.statistic_location:.6g}, "
        f"p = {result.pvalue:.1g}"
    )
    # Critical distance, and the quantile of a share of at most 1/2 about its mean.
    units = np.sqrt(0.5 * np.log(2.0 / FALSE_ALARM_RATE)) + 0.5 * stats.norm.ppf(POWER)
    seen = units * np.sqrt(1.0 / len(one) + 1.0 / len(other))
    _assert_seen(what, seen, sees, f"{len(one)} against {len(other)} samples")
    return float(result.pvalue)


def check_variance(
    what: str, sum_of_squares: float, degrees_of_freedom: int, expected: float, *, sees: float | None = None
) -> float:
    """Check by chi-square that normal samples of mean 0 have the variance `expected`; return the two-sided p-value.

    Parameters
    ----------
    what : str
    sum_of_squares : float
        The sum of the squares of the samples.
    degrees_of_freedom : int
        How many samples there are.
    expected : float
        The variance of the law.
    sees : float, optional
        The relative error of the variance, above 0, that the test claims to find with probability `POWER`; asserted.
        Some 129 / sees² degrees of freedom are needed.

    Raises
    ------
    AssertionError
        If the variance is not the expected one, or there are too few samples for `sees`.
    """
    from scipy import stats

    law = stats.chi2(degrees_of_freedom)
    q = sum_of_squares / expected
    p = 2.0 * min(law.sf(q), law.cdf(q))
    assert p > FALSE_ALARM_RATE, (
        f"{what}: variance {sum_of_squares / degrees_of_freedom:.6g}, expected {expected:.6g} "
        f"({degrees_of_freedom} degrees of freedom)"
    )
    seen = law.isf(0.5 * FALSE_ALARM_RATE) / law.ppf(1.0 - POWER) - 1.0
    _assert_seen(what, seen, sees, f"{degrees_of_freedom} degrees of freedom")
    return float(p)


def check_chi_square(what: str, counts: np.ndarray, expected: np.ndarray, *, sees: float | None = None) -> float:
    """Check counts against expectations by Pearson's chi-square; return the p-value.

    Parameters
    ----------
    what : str
    counts, expected : (n,) arrays
        Independent counts, and what the law expects, each at least 5 and of the same sum.
    sees : float, optional
        The relative error of the expectations (root mean square, each weighted with its share) that the test claims to
        find with probability `POWER`; asserted.

    Raises
    ------
    AssertionError
        If the counts do not follow the law, or there are too few of them for `sees`.
    ParameterError
        If an expectation is below 5.
    """
    from scipy import special, stats

    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    if expected.min() < 5.0:
        raise ParameterError(f"{what}: an expectation of {expected.min():.2g} is too small for this test: merge bins")
    q = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(counts) - 1
    p = float(stats.chi2.sf(q, freedom))
    assert p > FALSE_ALARM_RATE, f"{what}: chi-square {q:.1f} for {freedom} degrees of freedom, p = {p:.1g}"
    # If shares have relative errors δ, q is noncentral by N Σ share δ².
    noncentral = special.chndtrinc(stats.chi2.isf(FALSE_ALARM_RATE, freedom), freedom, 1.0 - POWER)
    _assert_seen(what, np.sqrt(noncentral / expected.sum()), sees, f"{expected.sum():.0f} counts")
    return p


def _usable(what: str, samples: np.ndarray, time_series: bool) -> np.ndarray:
    """Return the samples that a t-test may be given, or their means over blocks."""
    from scipy import stats

    values = np.asarray(samples, float)
    if values.ndim != 1 or len(values) < 2:
        raise ParameterError(f"{what}: samples of shape {values.shape}, expected (n,) with n at least 2")
    assert np.isfinite(values).all(), f"{what}: sample {np.argmin(np.isfinite(values))} is not finite"
    if time_series:
        inefficiency = statistical_inefficiency(values)
        length = int(np.ceil(_BLOCK * inefficiency)) if inefficiency > 1.0 else 1
        blocks = len(values) // length
        if blocks < 2:
            raise ParameterError(
                f"{what}: {len(values)} samples with a statistical inefficiency of {inefficiency:.1f} make {blocks} "
                f"blocks of {length}: run longer, or look at independent copies"
            )
        values = values[len(values) % length :].reshape(blocks, length).mean(axis=1)
    n = len(values)
    squares = (values - values.mean()) ** 2
    # Equal samples differ by round-off of their mean at the most.
    assert squares.max() > (1e-14 * np.abs(values).max()) ** 2, f"{what}: all {n} samples are equal"
    squares /= squares.sum()
    members = 1.0 / (squares**2).sum()
    if members < _FEWEST_MEMBERS and n > 2:
        # Grubbs: the largest deviation of a normal sample is not above this.
        t2 = stats.t.isf(0.5 * FALSE_ALARM_RATE / n, n - 2) ** 2
        largest = squares.max()
        assert largest < (n - 1) / n * t2 / (n - 2 + t2), (
            f"{what}: {members:.1f} of {n} samples make the spread, one of them {largest:.0%} of the variance: sample "
            f"{squares.argmax()} is {values[squares.argmax()]:.6g}, the median {np.median(values):.6g}"
        )
    if not time_series and n > 2:
        off = values - values.mean()
        correlation = (off[1:] @ off[:-1]) / (off @ off)
        assert correlation * np.sqrt(n) < stats.norm.isf(FALSE_ALARM_RATE), (
            f"{what}: the correlation of successive samples is {correlation:.2f}, so their spread says too little "
            f"(statistical inefficiency {statistical_inefficiency(values):.1f}): look at independent copies, look less "
            f"often, or say time_series=True"
        )
    return values


def _standard_errors(freedom: float) -> float:
    """Return how many standard errors off the mean must be to be found with `POWER`: 8 for large samples."""
    from scipy import stats

    return float(stats.t.isf(0.5 * FALSE_ALARM_RATE, freedom) + stats.t.isf(1.0 - POWER, freedom))


def _assert_seen(what: str, seen: float, sees: float | None, of: str) -> None:
    assert sees is None or seen <= sees, (
        f"{what}: the test claims to see an error of {sees:.3g}, but {of} see one of {seen:.3g} "
        f"(with probability {POWER})"
    )
