"""Numbers with their errors: means of correlated samples, and estimates from parts of the data."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from medyanpy._tools.series import statistical_inefficiency
from medyanpy._tools.validation import array, dimensions, whole_number
from medyanpy.errors import ParameterError, StatisticsWarning, warn_outside

__all__ = ["PARTS", "Estimate", "autocorrelation", "average", "cuts", "jackknife", "statistical_inefficiency"]

PARTS = 20  #: Errors are estimated from about this many independent parts of the data at least.


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error.

    Attributes
    ----------
    value, error : float, unit of what was measured (nm, pN nm, ...)
        The error is nan where the data do not determine it; a `StatisticsWarning` is issued when the estimate is made.
    """

    value: float
    error: float

    def __repr__(self) -> str:
        return f"Estimate({self.value:.6g} ± {self.error:.2g})"


def average(samples: Any) -> Estimate:
    r"""Return the mean of a time series, with the standard error of correlated samples.

    .. math:: \sigma^2 = \frac{g}{n}\,\frac{s^2}{1 - g/n}

    with the variance s² of the n samples and their `statistical_inefficiency` g. The second denominator makes up for
    the variance that correlated samples do not show: their mean follows them.

    Parameters
    ----------
    samples : (n,) float, finite
        Samples of one run in equilibrium, in order, at equal distances in time; n at least 2.

    Returns
    -------
    Estimate
        In the unit of the samples. The error is nan where samples are correlated, g > 1, for longer than a fifth of the
        run, as with a drift.

    Raises
    ------
    ParameterError
        Fewer than two samples, or samples that are not finite.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.analysis.average([1.0, 3.0, 2.0, 2.0])
    Estimate(2 ± 0.41)
    """
    return mean_of(samples)


def mean_of(samples: Any, warn: bool = True) -> Estimate:
    """Average as `average`; `warn` of an error that is not a number."""
    values = array("average: samples", samples, (None,))
    if len(values) < 2:
        raise ParameterError(f"average: {len(values)} samples have no error: give two or more")
    inefficiency = statistical_inefficiency(values)
    share = inefficiency / len(values)
    known = inefficiency == 1.0 or share < 0.2
    error = np.sqrt(share * values.var() / (1.0 - share)) if known else np.nan
    if warn and np.isnan(error):
        why = f"{len(values)} samples remember each other for {inefficiency:.3g} of them"
        warn_of_no_error("average", values.mean(), f"{why}: the run is too short to tell it")
    return Estimate(float(values.mean()), float(error))


def means_of(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means (K,) of series (m, K), and their errors; nan of one frame."""
    if len(series) < 2:
        return series.mean(axis=0), np.full(series.shape[1], np.nan)
    found = [mean_of(one, warn=False) for one in series.T]
    return np.array([one.value for one in found]), np.array([one.error for one in found])


def warn_of_no_error(
    what: str, value: float, why: str = "the data are too few parts that do not depend on each other"
) -> None:
    """Issue a StatisticsWarning for an estimate without an error."""
    text = f"{what}: the error of {value:.6g} is not a number, as {why}. How far the value is off is not known"
    warn_outside(text, StatisticsWarning)


def autocorrelation(samples: Any, max_lag: int | None = None) -> np.ndarray:
    r"""Return the normalized autocorrelation of a time series by lag.

    .. math:: C_k = \frac{\langle \delta x_t\,\delta x_{t+k}\rangle}{\langle \delta x^2\rangle}, \qquad
              \delta x = x - \bar x

    Parameters
    ----------
    samples : (n,) or (n, k) float, finite
        At equal distances in time; of k alike quantities, such as a coordinate of k beads, the means are over all.
        :math:`\bar x` is the mean of all samples.
    max_lag : int, >= 0 and < n, optional
        The longest lag; n / 2 where none is given.

    Returns
    -------
    (max_lag + 1,) float
        1 at lag 0.

    Raises
    ------
    ParameterError
        No samples, samples that are not finite or all equal, or a lag outside its domain.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.analysis.autocorrelation([1.0, -1.0, 1.0, -1.0], max_lag=2).round(12).tolist()
    [1.0, -1.0, 1.0]
    """
    from scipy import fft

    what = "autocorrelation"
    one = dimensions(f"{what}: samples", samples, "(n,) or (n, k)") == 1
    x = array(f"{what}: samples", samples, (None,) if one else (None, None))
    if not x.size:
        raise ParameterError(f"{what}: there are no samples")
    n, x = len(x), x.reshape(len(x), -1)
    longest = n // 2 if max_lag is None else whole_number(f"{what}: max_lag", max_lag, at_most=n - 1)
    off = x - x.mean()
    if not off.any():
        raise ParameterError(f"{what}: all samples are equal: they have no correlation")
    length = fft.next_fast_len(n + longest, real=True)
    power = np.sum(np.abs(fft.rfft(off, length, axis=0)) ** 2, axis=1)
    covariance = fft.irfft(power, length)[: longest + 1] / (n - np.arange(longest + 1))
    return np.asarray(covariance / covariance[0])


def cuts(n: int, parts: int) -> list[tuple[int, int]]:
    """Return the bounds of at most n parts of about the same size into which n things in order are cut."""
    return list(pairwise(np.linspace(0, n, min(n, parts) + 1).round().astype(int).tolist()))


def jackknife(
    sums: np.ndarray, counts: np.ndarray, estimate: Callable[[np.ndarray, np.ndarray], Any] = np.divide,
    correct_bias: bool = False,
) -> tuple[Any, Any]:
    """Estimate from totals of independent parts (p, ...), by default sums over counts; the error of one part is nan."""
    total, n = sums.sum(axis=0), counts.sum(axis=0)
    whole = estimate(total, n)
    parts = len(sums)
    # Parts that hold no pair of some separation change nothing there; without the others nothing may be left.
    rest = n - counts
    left = np.where(rest > 0, total - sums, total)
    without = estimate(left, np.where(rest > 0, rest, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = without.mean(axis=0)
        error = np.sqrt((parts - 1) / parts * ((without - mean) ** 2).sum(axis=0)) if parts > 1 else np.nan * whole
    # The error of a separation that occurs in one part only cannot be estimated.
    if np.ndim(whole):
        error = np.where((counts > 0).sum(axis=0) > 1, error, np.nan)
    if correct_bias and parts > 1 and np.isfinite(mean):
        whole = parts * whole - (parts - 1) * mean
    return whole, error
