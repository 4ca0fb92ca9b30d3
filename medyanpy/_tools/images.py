"""Periodic boxes: what users give, and vectors to the nearest image."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._tools.validation import number
from medyanpy.errors import ParameterError, TopologyError

__all__ = [
    "Box", "box_lengths", "box_shown", "checked_box", "displacement", "expect_near", "expect_room", "images_between",
    "images_within", "in_words", "nearest_image", "next_to_each_other", "wrapped",
]  # fmt: skip

#: nm; None in directions that are open.
Box = tuple[float | None, float | None, float | None]


def checked_box(what: str, box: Any, error: type[Exception] = ParameterError) -> Box | None:
    """Return a box as users give it: three lengths (nm, > 0), None for open directions; None where all are."""
    if box is None:
        return None
    if isinstance(box, str | bytes) or not isinstance(box, Sequence | np.ndarray) or len(box) != 3:
        raise error(f"{what}: box must be three lengths, None in open directions, not {box!r}")
    x, y, z = (
        None if side is None else number(f"{what}: box[{c}]", side, above=0.0, error=error)
        for c, side in enumerate(box)
    )
    return None if x is None and y is None and z is None else (x, y, z)


def box_lengths(box: Sequence[float | None] | np.ndarray | None) -> np.ndarray:
    """Return the lengths of a box as kernels and files have them, (3,) nm, 0 in open directions."""
    if box is None:
        return np.zeros(3)
    lengths = np.array([0.0 if side is None else side for side in box])
    return np.where(np.isfinite(lengths), lengths, 0.0)


def box_shown(lengths: np.ndarray | None) -> Box | None:
    """Return a box as users give it, from its lengths: the inverse of `box_lengths`."""
    if lengths is None or not np.any(lengths):
        return None
    x, y, z = (float(side) if side > 0.0 else None for side in lengths)
    return x, y, z


def images_between(d: np.ndarray, box: Sequence[float | None] | np.ndarray | None) -> np.ndarray:
    """Return what to take from vectors d to have their nearest images, (..., 3): whole numbers of lengths."""
    lengths = box if isinstance(box, np.ndarray) and box.ndim > 1 else box_lengths(box)
    inverse = np.divide(1.0, lengths, out=np.zeros(lengths.shape), where=lengths > 0.0)
    # The inverse is used as in kernels: the same image of two at half a box.
    out: np.ndarray = lengths * np.rint(d * inverse)
    return out


def displacement(start: np.ndarray, end: np.ndarray, box: Sequence[float | None] | np.ndarray | None) -> np.ndarray:
    """Return vectors from places to others, (..., 3) nm, in a box to the nearest images, as
    `_kernels.box.displacement`."""
    return nearest_image(end - start, box)


def nearest_image(d: np.ndarray, box: Sequence[float | None] | np.ndarray | None) -> np.ndarray:
    """Return vectors (..., 3), each the image of d with the shortest components; d itself in open directions."""
    return d if box is None else d - images_between(d, box)


def images_within(
    x: np.ndarray, low: np.ndarray, high: np.ndarray, box: Sequence[float | None] | np.ndarray | None
) -> np.ndarray:
    """Return all images (k, 3) of a place (3,) from `low` to `high`, (3,) nm each; in open directions the place
    itself."""
    sides = []
    for at, least, most, side in zip(x, low, high, box_lengths(box), strict=True):
        first = at if side == 0.0 else at + side * np.ceil((least - at) / side)
        number = int(first <= most) if side == 0.0 else int(np.floor((most - first) / side)) + 1
        sides.append(first + side * np.arange(number) if first >= least else np.empty(0))
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)


def next_to_each_other(
    x: np.ndarray, joined: np.ndarray, box: Sequence[float | None] | np.ndarray | None
) -> np.ndarray:
    """Return the image of each place, (n, 3), next to one that it is joined to by pairs (k, 2), from the first of those
    that hang together on. Where these close through the sides of the box, some still lie across them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, dijkstra

    if box is None or not len(joined):
        return x
    n = len(x)
    graph = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(n, n)).tocsr()
    _, label = connected_components(graph, directed=False)
    first = np.unique(label, return_index=True)[1]
    depth, before, _ = dijkstra(
        graph, directed=False, indices=first, unweighted=True, min_only=True, return_predecessors=True
    )
    out: np.ndarray = np.array(x, np.float64)
    # All at one distance are placed at once, since each is placed by one that is nearer.
    order = np.argsort(depth, kind="stable")
    for ring in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[1:]:
        out[ring] -= images_between(out[ring] - out[before[ring]], box)
    return out


def wrapped(x: np.ndarray, box: Sequence[float | None] | np.ndarray | None) -> np.ndarray:
    """Return the images in the box, (..., 3), from 0 to below its length; in open directions x."""
    lengths = box_lengths(box)
    out: np.ndarray = np.array(x, np.float64)
    for c in np.flatnonzero(lengths):
        own = out[..., c] % lengths[c]
        # The rest of a number a little below 0 is the length itself.
        out[..., c] = np.where(own < lengths[c], own, 0.0)
    return out


def expect_room(what: str, reach: float, box: Sequence[float | None] | np.ndarray | None) -> None:
    """Refuse distances beyond half of a box, up to which the nearest image is the only one."""
    lengths = box_lengths(box)
    half = 0.5 * float(np.min(lengths, initial=np.inf, where=lengths > 0.0))
    if reach > half:
        raise ParameterError(
            f"{what} = {reach:g} but must be at most half of the box, {half:g}: beyond it a bead is near several "
            "images of another"
        )


def expect_near(what: str, x: np.ndarray, slopes: np.ndarray, box: Sequence[float | None] | np.ndarray | None) -> None:
    """Refuse functions of positions as they are, with gradients (m, k, 3), of beads at (m, k, 3) that are not next to
    each other: along a direction that counts they are within half of the box."""
    lengths = box_lengths(box)
    counts = (slopes != 0.0) & (lengths > 0.0)
    spread = x.max(axis=1, where=counts, initial=-np.inf) - x.min(axis=1, where=counts, initial=np.inf)
    far = spread > 0.5 * lengths
    if far.any():
        i, c = (int(one) for one in np.argwhere(far)[0])
        raise TopologyError(
            f"{what}: the beads of row {i} are {spread[i, c]:.6g} nm apart along {'xyz'[c]}, more than half of the box "
            f"of {lengths[c]:.6g} nm: it is a function of positions as they are, so give images that are next to each "
            "other"
        )


def in_words(box: Box) -> str:
    """Return the lengths of a box as messages have them."""
    return " × ".join("open" if side is None else f"{side:.6g}" for side in box)
