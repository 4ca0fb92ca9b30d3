"""Displacements in periodic boxes, for what is computed with NumPy."""

from typing import Any

import numpy as np

from medyanpy._tools.validation import array
from medyanpy.errors import ParameterError, foreign_errors, shown

__all__ = ["box_lengths", "expect_room", "nearest_image"]


def box_lengths(what: str, box: Any) -> np.ndarray | None:
    """(3,) float, nm, nan in directions that are open; None where all are.

    Parameters
    ----------
    what : str
        For messages.
    box : None, or three lengths
        Each a number > 0, or None or nan where space is open; of two, the third is open.

    Raises
    ------
    ParameterError
    """
    if box is None:
        return None
    with foreign_errors(f"{what} must be three lengths, None where space is open, not {shown(box)}"):
        lengths = [np.nan if one is None else float(one) for one in box]
    if len(lengths) == 2:
        lengths.append(np.nan)
    found = array(what, lengths, (3,), nan=True)
    closed = ~np.isnan(found)
    if (found[closed] <= 0.0).any():
        i = int(np.flatnonzero(closed & ~(found > 0.0))[0])
        raise ParameterError(f"{what}[{i}] = {found[i]:g} but must be > 0, or None where space is open")
    return found if closed.any() else None


def nearest_image(d: np.ndarray, box: np.ndarray | None) -> np.ndarray:
    """(..., 3) displacements, each to the nearest of the periodic images of its end; box as of `box_lengths`."""
    if box is None:
        return np.asarray(d)
    lengths = np.where(np.isnan(box), np.inf, box)
    turns = np.round(d / lengths)
    # Of open directions 0 times infinity is none.
    return np.asarray(d - np.where(turns == 0.0, 0.0, turns * np.where(np.isinf(lengths), 0.0, lengths)))


def expect_room(what: str, reach: float, box: np.ndarray | None) -> None:
    """Refuse distances beyond half of a box, up to which the nearest image is the only one.

    Raises
    ------
    ParameterError
    """
    if box is not None and reach > 0.5 * np.nanmin(box):
        raise ParameterError(
            f"{what} = {reach:g} but must be at most half of the box, {0.5 * np.nanmin(box):g}: beyond it a bead is "
            "near several images of another"
        )
