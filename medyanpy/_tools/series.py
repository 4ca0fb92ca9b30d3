"""Time series."""

from typing import Any

import numpy as np

from medyanpy._tools.validation import array
from medyanpy.errors import ParameterError

__all__ = ["statistical_inefficiency"]


def statistical_inefficiency(samples: Any) -> float:
    """Compute how many samples of a time series count as one: g = 1 + 2 Σ (1 - t/n) ρ(t), at least 1.

    It is 2τ for a correlation time of τ samples. The standard error of the mean is that of independent samples times
    √g. Correlations ρ are added up in pairs, until a pair is not positive: of a reversible chain all pairs are
    positive, so what follows is noise (Geyer 1992).

    Parameters
    ----------
    samples : (n,) float, finite
        Looks at one run, in order, at even distances; n at least 1.

    Raises
    ------
    ParameterError
        No samples, or such as are not finite.
    """
    what = "statistical_inefficiency"
    values = array(f"{what}: samples", samples, (None,))
    n = len(values)
    if not n:
        raise ParameterError(f"{what}: there are no samples")
    off = values - values.mean()
    # Equal samples differ by round-off of their mean at the most.
    if np.abs(off).max() <= 1e-14 * np.abs(values).max():
        return 1.0
    spectrum = np.fft.rfft(off, 2 * n)
    rho = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n)[:n]
    # The sum over n - t products, divided by n: the factor 1 - t/n is in it.
    rho /= rho[0]
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    end = np.argmax(pairs <= 0.0) if (pairs <= 0.0).any() else len(pairs)
    return float(max(2.0 * pairs[:end].sum() - 1.0, 1.0))
