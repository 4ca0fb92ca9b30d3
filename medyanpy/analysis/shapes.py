"""Spread of groups of beads in space."""

from typing import Any

import numpy as np

from medyanpy._tools.images import box_shown, images_between, in_words, next_to_each_other
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import per_item
from medyanpy.analysis.frames import Source
from medyanpy.errors import ParameterError
from medyanpy.mesh.connectivity import connected

__all__ = ["gyration_tensor", "radius_of_gyration"]


def gyration_tensor(
    source: Any, beads: Any = None, *, weights: Any = None, box: Any = None, images: str = "near"
) -> np.ndarray:
    r"""Return the gyration tensor of a group of beads.

    .. math:: S = \sum_i w_i\,(x_i - \bar x) \otimes (x_i - \bar x), \qquad \bar x = \sum_i w_i x_i,
              \qquad \sum_i w_i = 1

    Parameters
    ----------
    source, box
        As of `radial_distribution`.
    beads : handle or its name, list of these, (k,) int or int, optional
        Which beads; all, where none are given. Those that are not there in a frame do not count in it.
    weights : (k,) float, > 0, optional
        Of the beads, such as their masses, in any unit; all the same where none are given.
    images : {"near", "given"}
        Images that count in a periodic box. ``"near"``: of beads joined in a mesh or a chain those next to each other,
        of all others those nearest to the first, all within half of the box. ``"given"``: positions as they are.

    Returns
    -------
    (m, 3, 3) or (3, 3) float, nm²
        With one frame there is no axis of frames; nan of a frame without any of the beads. Square roots of eigenvalues
        are the spreads along the principal axes.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; no beads, or weights outside their domain. In a box, beads that are not all
        joined and reach over half of it, or that are joined through its sides: such a group has a shape only with
        ``images="given"``.

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
    near = look_up({"near": True, "given": False}, images, f"{what}: images", ParameterError)
    boxes = frames.boxes(box)
    number = np.full(frames.n_rows, -1)
    number[rows] = np.arange(len(rows))
    weight = per_item(f"{what}: weights", 1.0 if weights is None else weights, len(rows), above=0.0)
    found = np.full((len(frames), 3, 3), np.nan)
    for k, x in enumerate(frames.each(rows)):
        here = ~np.isnan(x).any(axis=1)
        if here.any():
            w = weight[here] / weight[here].sum()
            if near and boxes[k] is not None:
                joined = number[frames.joined(beads, k)]
                x = _near(f"{what}: frame {k}", x, here, joined[(joined >= 0).all(axis=1)], boxes[k])
            # From one of them, so that places far from the origin keep their digits.
            off = x[here] - x[here][0]
            off = off - w @ off
            found[k] = (w * off.T) @ off
    return found[0] if frames.one else found


def radius_of_gyration(
    source: Any, beads: Any = None, *, weights: Any = None, box: Any = None, images: str = "near"
) -> np.ndarray:
    """Return the root mean square distance of beads from their middle: of filaments, clusters or whole cells.

    Parameters
    ----------
    source, beads, weights, box, images
        As of `gyration_tensor`, and so are errors.

    Returns
    -------
    (m,) or () float, nm
        The root of the trace of `gyration_tensor`.

    Examples
    --------
    >>> import medyanpy as mp
    >>> float(mp.analysis.radius_of_gyration([[3.0, 0, 0], [-3, 0, 0]]))
    3.0
    """
    tensor = gyration_tensor(source, beads, weights=weights, box=box, images=images)
    return np.asarray(np.sqrt(np.trace(tensor, axis1=-2, axis2=-1)))


def _near(what: str, x: np.ndarray, here: np.ndarray, joined: np.ndarray, box: Any) -> np.ndarray:
    """Return the images (n, 3), in a box, of beads that make one group, some of which may not be there; ParameterError
    if undetermined."""
    joined = joined[here[joined].all(axis=1)]
    x = next_to_each_other(x, joined, box)
    piece = connected(len(x), joined[:, 0], joined[:, 1])
    first = np.unique(piece, return_index=True)[1]
    start = x[first]
    x = x - images_between(start - x[here][0], box)[piece]
    room = f"{what}: in the box of {in_words(box_shown(box) or (None, None, None))} nm "
    a, b = x[joined[:, 0]], x[joined[:, 1]]
    across = (images_between(b - a, box) != 0.0).any(axis=0)
    if across.any():
        raise ParameterError(
            f"{room}these beads are joined through the sides along {'xyz'[int(np.argmax(across))]}, so that they have "
            'no middle: images="given" takes positions as they are'
        )
    size = np.ptp(x[here], axis=0)
    wide = (box > 0.0) & (size >= 0.5 * box)
    if wide.any() and len(np.unique(piece[here])) > 1:
        c = int(np.argmax(wide))
        raise ParameterError(
            f"{room}beads that are not joined are {size[c]:.6g} nm apart along {'xyz'[c]}, half of it or more, and "
            'nothing says which of their images are one group: images="given" takes positions as they are'
        )
    return np.asarray(x)
