"""How far groups of beads spread."""

from typing import Any

import numpy as np

from medyanpy._tools.validation import per_item
from medyanpy.analysis.frames import Source, displacement
from medyanpy.errors import ParameterError

__all__ = ["gyration_tensor", "radius_of_gyration"]


def gyration_tensor(source: Any, beads: Any = None, *, weights: Any = None) -> np.ndarray:
    r"""How a group of beads spreads in space.

    .. math:: S = \sum_i w_i\,(x_i - \bar x) \otimes (x_i - \bar x), \qquad \bar x = \sum_i w_i x_i,
              \qquad \sum_i w_i = 1

    Parameters
    ----------
    source : frames; see `radial_distribution`
    beads : handle or its name, list of these, (k,) int or int, optional
        Which beads; all, where none are given. Those that are not there in a frame do not count in it.
    weights : (k,) float, > 0, optional
        Of the beads, such as their masses, in any unit; all the same where none are given.

    Returns
    -------
    (m, 3, 3) or (3, 3) float, nm²
        With one frame there is no axis of frames; nan of a frame in which nobody is. Square roots of eigenvalues are
        the spreads along the principal axes.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; no beads, or weights that are none.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.analysis.gyration_tensor([[1.0, 0, 0], [-1, 0, 0], [0, 2, 0], [0, -2, 0]]).diagonal().tolist()
    [0.5, 2.0, 0.0]
    """
    what = "gyration_tensor"
    frames = Source(what, source)
    rows = frames.rows("beads", beads)
    if not len(rows):
        raise ParameterError(f"{what}: there are no beads")
    weight = per_item(f"{what}: weights", 1.0 if weights is None else weights, len(rows), above=0.0)
    found = np.full((len(frames), 3, 3), np.nan)
    for k, x in enumerate(frames.each(rows)):
        here = ~np.isnan(x).any(axis=1)
        if here.any():
            w = weight[here] / weight[here].sum()
            # From one of them, so that places far from the origin keep their digits.
            off = displacement(x[here][0], x[here])
            off = off - w @ off
            found[k] = (w * off.T) @ off
    return found[0] if frames.one else found


def radius_of_gyration(source: Any, beads: Any = None, *, weights: Any = None) -> np.ndarray:
    """The root mean square distance of beads from their middle: of filaments, clusters or whole cells.

    Parameters
    ----------
    source, beads, weights
        As of `gyration_tensor`.

    Returns
    -------
    (m,) or () float, nm
        The root of the trace of `gyration_tensor`.

    Raises
    ------
    ParameterError, TopologyError
        As `gyration_tensor`.

    Examples
    --------
    >>> import medyanpy as mp
    >>> float(mp.analysis.radius_of_gyration([[3.0, 0, 0], [-3, 0, 0]]))
    3.0
    """
    return np.asarray(np.sqrt(np.trace(gyration_tensor(source, beads, weights=weights), axis1=-2, axis2=-1)))
