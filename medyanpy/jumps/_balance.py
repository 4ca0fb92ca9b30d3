"""Detailed balance of reactions: activities with which flows both ways are equal."""

import numpy as np

__all__ = ["log_activities_of"]

# Logarithms of rates, which users give with some digits, may miss balance around a cycle by so much.
_SAME = 1e-9


def log_activities_of(rows: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ln z (s,) of species, and what each reaction misses balance by, (r,), 0 within rounding.

    Parameters
    ----------
    rows : (r, s) float
        Molecules of each species that a reaction makes.
    logs : (r,) float
        Logarithms of the flows there over those back, at activities of 1.
    """
    z = np.linalg.lstsq(rows, logs, rcond=None)[0]
    left = logs - rows @ z
    left[np.abs(left) <= _SAME * max(1.0, float(np.abs(logs).max()))] = 0.0
    return z, left
