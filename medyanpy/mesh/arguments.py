"""Checks of single arguments; each raises ParameterError naming object, argument, value and bound."""

import math
import numbers

import numpy as np

from medyanpy.errors import ParameterError, shown


def positive_number(owner: str, name: str, value: float) -> float:
    """Return a finite number above 0; a bool is refused as a mistake."""
    what = f"{owner}: {name} = {shown(value)}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise ParameterError(f"{what} but must be one number")
    try:
        number = float(value)
    except OverflowError:  # Whole numbers beyond the largest double.
        number = math.inf
    if not math.isfinite(number):
        raise ParameterError(f"{what} but must be finite")
    if number <= 0:
        raise ParameterError(f"{what} but must be > 0")
    return number


def whole_number(owner: str, name: str, value: int, low: int, high: int) -> int:
    """Return an integer with low <= value <= high."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not whole or not low <= value <= high:
        raise ParameterError(f"{owner}: {name} = {shown(value)} but must be an integer from {low} to {high}")
    return int(value)


def finite_vectors(owner: str, name: str, value: object, n_rows: int | None = None) -> np.ndarray:
    """Return a finite (n, 3) float64 array."""
    try:
        vectors = np.asarray(value, dtype=np.float64)
    except Exception as err:  # Foreign objects may raise anything.
        raise ParameterError(f"{owner}: {name} must be an array of numbers of shape (n, 3)") from err
    if vectors.ndim != 2 or vectors.shape[1] != 3 or (n_rows is not None and len(vectors) != n_rows):
        wanted = f"({'n' if n_rows is None else n_rows}, 3)"
        raise ParameterError(f"{owner}: {name} has shape {vectors.shape} but must have shape {wanted}")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ParameterError(f"{owner}: {name}[{bad[0]}] = {vectors[bad[0]].tolist()} but must be finite")
    return vectors
