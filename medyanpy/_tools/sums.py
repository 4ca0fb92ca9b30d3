"""Sums whose bits depend on neither the version of NumPy nor the processor: for what reaches a run.

NumPy and BLAS add in an order of their own choice, which differs between versions, instruction sets and layouts.
"""

import math

import numpy as np

__all__ = ["lengths", "mean", "row_products", "total"]


def total(values: np.ndarray) -> float:
    """Return the sum of (n,) numbers, rounded once: in any order the same. Not finite ones give what addition does."""
    try:
        return math.fsum(np.asarray(values).tolist())
    except (OverflowError, ValueError):
        return float(sum(np.asarray(values).tolist()))


def mean(values: np.ndarray) -> float:
    """Return the mean of (n,) numbers, n > 0."""
    return total(values) / len(values)


def row_products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return scalar products (...) of vectors a and b (..., 3), the second component last."""
    products = a * b
    out: np.ndarray = products[..., 0] + products[..., 2] + products[..., 1]
    return out


def lengths(vectors: np.ndarray) -> np.ndarray:
    """Return lengths (...) of vectors (..., 3), the components in order."""
    squares = vectors * vectors
    out: np.ndarray = np.sqrt(squares[..., 0] + squares[..., 1] + squares[..., 2])
    return out
