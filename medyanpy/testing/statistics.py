"""Statistical checks that say how often they would be wrong.

Every check fails a correct program with probability `FALSE_ALARM_RATE`, two-sided, and says in its message how
large the deviation was. SciPy is needed.
"""

import numpy as np

__all__ = ["FALSE_ALARM_RATE", "check_chi_square", "check_mean", "check_variance"]

FALSE_ALARM_RATE = 1e-6


def check_mean(what: str, samples: np.ndarray, expected: float) -> float:
    """Student's t: independent samples have the mean `expected`. Returns the p-value.

    An effect of d standard errors is found with probability 0.999 for d = 8.
    """
    from scipy import stats

    samples = np.asarray(samples, float)
    n = len(samples)
    error = samples.std(ddof=1) / np.sqrt(n)
    t = (samples.mean() - expected) / error
    p = 2.0 * stats.t.sf(abs(t), n - 1)
    assert p > FALSE_ALARM_RATE, (
        f"{what}: mean {samples.mean():.6g} ± {error:.2g}, expected {expected:.6g} ({t:+.1f} standard errors)"
    )
    return float(p)


def check_variance(what: str, sum_of_squares: float, degrees_of_freedom: int, expected: float) -> float:
    """Chi-square: independent normal samples of mean 0 have the variance `expected`. Returns the p-value.

    A relative error e is found with probability 0.999 from about 129 / e² degrees of freedom on.
    """
    from scipy import stats

    q = sum_of_squares / expected
    p = 2.0 * min(stats.chi2.sf(q, degrees_of_freedom), stats.chi2.cdf(q, degrees_of_freedom))
    assert p > FALSE_ALARM_RATE, (
        f"{what}: variance {sum_of_squares / degrees_of_freedom:.6g}, expected {expected:.6g} "
        f"({degrees_of_freedom} degrees of freedom)"
    )
    return float(p)


def check_chi_square(what: str, counts: np.ndarray, expected: np.ndarray) -> float:
    """Pearson's chi-square of counts against expectations (each at least 5). Returns the p-value."""
    from scipy import stats

    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    if expected.min() < 5.0:
        raise ValueError(f"{what}: an expectation of {expected.min():.2g} is too small for this test: merge bins")
    q = float(((counts - expected) ** 2 / expected).sum())
    p = float(stats.chi2.sf(q, len(counts) - 1))
    assert p > FALSE_ALARM_RATE, f"{what}: chi-square {q:.1f} for {len(counts) - 1} degrees of freedom, p = {p:.1g}"
    return p
