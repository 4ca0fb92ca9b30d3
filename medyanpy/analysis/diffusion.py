"""Mean-square displacements of beads, and diffusion coefficients from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from medyanpy._tools.images import box_lengths, displacement, images_between
from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import array, number, one_or_many, whole_number
from medyanpy.analysis.estimates import PARTS, Estimate, cuts, jackknife, warn_of_no_error
from medyanpy.analysis.frames import Source
from medyanpy.errors import ParameterError

__all__ = [
    "MeanSquareDisplacement", "averaged", "axes_of", "diffusion_coefficient", "lags_of", "mean_square_displacement",
]  # fmt: skip

_MOST_PARTS = 64  # The most groups of beads that are parts of the data.
# Blocks of origins are at least so many lags long: neighbours then share so little that errors are 7 % too small most
# (Brownian motion). Fewer parts than these give no error.
_LAGS_IN_BLOCK = 2
_FEWEST_PARTS = 4
_AT_ONCE = 1 << 17  # Frames of beads of which transforms are taken at once.


@dataclass(frozen=True)
class MeanSquareDisplacement:
    """Mean-square displacement of beads by lag.

    Attributes
    ----------
    lags, time : (K,) int array, and (K,) float array, s
        Times as numbers of frames, and in seconds.
    value, error : (K,) float array, nm²
        Mean over beads and origins, and standard errors; nan where no bead or too few parts determine them.
    pairs : (K,) int array
        Number of pairs of frames of a bead that each mean is over.
    axes : str
        Which coordinates were summed; ``"uv"`` along a surface, those of the plane that it is rolled on.
    """

    lags: np.ndarray
    time: np.ndarray
    value: np.ndarray
    error: np.ndarray
    pairs: np.ndarray
    axes: str
    _parts: "_Parts" = field(repr=False)


class Paths(Protocol):
    """Positions of beads in m frames; len() is m."""

    def __len__(self) -> int: ...

    def columns(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        """Yield parts of the positions, as `Source.columns`."""
        ...


@dataclass(frozen=True)
class _Parts:
    """Sums (p, b, K) over displacements of groups of beads from blocks of origins, and their numbers; `length` is the
    number of frames in the shortest block."""

    sums: np.ndarray
    counts: np.ndarray
    length: int

    def for_lag(self, lag: int) -> int:
        """Return the number of blocks to merge into one that is long enough for a lag."""
        merged = 1
        while merged < self.sums.shape[1] and merged * self.length < _LAGS_IN_BLOCK * lag:
            merged *= 2
        return merged

    def merged(self, how_many: int) -> tuple[np.ndarray, np.ndarray]:
        """Sum (parts, K) displacements and their numbers over so many blocks together."""
        p, _, k = self.sums.shape
        shape = (p, -1, how_many, k)
        sums, counts = (a.reshape(shape).sum(axis=2).reshape(-1, k) for a in (self.sums, self.counts))
        return sums, counts


@plainly_called
def mean_square_displacement(
    source: Any, beads: Any = None, lags: Any = None, *, axes: str = "xyz", interval: float | None = None,
    sphere: Any = None, box: Any = None, scaled: bool = False,
) -> MeanSquareDisplacement:
    r"""Return the mean-square displacement :math:`\langle |x(s + t) - x(s)|^2\rangle` of beads by lag t.

    The mean is over beads and origins s.

    Parameters
    ----------
    source : Trajectory or slice of one, list of states or frames, or (m, n, 3) float, nm
        At equal distances in time.
    beads : handle or its name, list of these, (k,) int or int, optional
        Rows, or handles; all beads where none are given. A bead that is added, removed or taken away counts while it is
        there; one that takes its row later is another bead.
    lags : (K,) int or int, >= 0, optional
        Times as numbers of frames; 1 to half of the frames where none are given.
    axes : str
        Which coordinates are summed: ``"xyz"``, or ``"xy"`` for a flat sheet, ``"z"`` and so on.
    interval : float, s, > 0, optional
        Between frames, for arrays of positions; the others know their times.
    sphere : (3,) or (m, 3) float, nm, optional
        Middle of a sphere, at rest or in each frame, on which beads are. Displacements are then arcs of great circles:
        the angle between both places (in a box, nearest to the middle) times the mean of their distances from the
        middle.
    box : (3,) float or None, nm, or one for each frame, optional
        Lengths of the periodic box of arrays of positions, which may then be wrapped: from one frame to the next, beads
        get to the nearest image.
    scaled : bool
        Of a box that changes, displacements in units of its lengths, times :math:`\langle L^{-2}\rangle^{-1/2}` over
        all frames. A bead that only moves with the box is then at rest, and one that diffuses with D in it has
        :math:`2dDt`.

    Raises
    ------
    ParameterError
        One frame, frames at unequal distances, lags beyond the frames, an array without interval. A box that changes
        along these axes, without `scaled` (or a middle of the sphere in each frame): beads are moved with it, by more
        the further they are from the origin. A box that is given to frames which have their own, ``scaled=True``
        without a box or with a sphere.
    TopologyError
        Rows that do not exist, or that are named twice; beads without places in space.

    Notes
    -----
    Sums of products are convolutions, computed by fast Fourier transforms, right to about 1e-15 of the largest square
    of a distance from the middle of a bead's path. A bead that moves straight for 10⁵ frames loses ten digits of its
    shortest lag.

    Errors are those of the jackknife over beads, 64 groups of successive beads at most. With fewer than 20 beads it is
    over blocks of origins of each, at least twice as long as the lag; with fewer than four of these there is none.
    Beads, or blocks, are taken to be independent: of beads that all move together, such as those of one body, give one.

    On a sphere, with diffusion alone, :math:`\langle\cos\theta\rangle = e^{-2Dt/R^2}`, so that squares of arcs are
    :math:`4Dt` for :math:`t \ll R^2/D` alone, and end at :math:`R^2(\pi^2/2 - 2)`. In units of a box that changes,
    nodes of filaments and rods keep the relative change of its length, times their distance from their centre. Source:
    V. Calandrini, E. Pellegrini, P. Calligari, K. Hinsen, G. R. Kneller, Collection SFN 12, 201 (2011).

    Examples
    --------
    >>> import medyanpy as mp
    >>> straight = np.arange(5.0)[:, None, None] * [[3.0, 4.0, 0.0]]     # 5 nm a frame
    >>> mp.analysis.mean_square_displacement(straight, interval=0.1, lags=[1, 2]).value.round(9).tolist()
    [25.0, 100.0]
    """
    what = "mean_square_displacement"
    frames = Source(what, source)
    dt = frames.interval(interval)
    rows = frames.rows("beads", beads)
    chosen = axes_of(what, axes)
    m = len(frames)
    wanted = lags_of(what, lags, m)
    middle = None
    if sphere is not None:
        if axes != "xyz":
            raise ParameterError(f"{what}: along a sphere all axes count: give no axes=")
        middle = array(f"{what}: sphere", sphere, (3,) if np.ndim(sphere) == 1 else (m, 3))
        middle = np.broadcast_to(middle, (m, 3))
    if not len(rows):
        raise ParameterError(f"{what}: there are no beads")
    # With a middle in each frame it is known where beads are relative to that.
    fixed = sphere is None or np.ndim(sphere) == 1
    paths = _in_boxes(frames, box, chosen, middle, scaled, fixed)
    return averaged(paths, rows, wanted, dt, axes, chosen, sphere is not None)


def lags_of(what: str, lags: Any, frames: int) -> np.ndarray:
    """Return the lags (K,) that a user gives, or all up to half of the frames."""
    wanted = np.arange(1, frames // 2 + 1) if lags is None else one_or_many(f"{what}: lags", lags, dtype=np.int64)
    wrong = (wanted < 0) | (wanted >= frames)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ParameterError(f"{what}: lags[{i}] = {wanted[i]} but must be >= 0 and < {frames}, the number of frames")
    if not len(wanted):
        raise ParameterError(f"{what}: there are no lags")
    return wanted


def averaged(
    paths: Paths, rows: np.ndarray, lags: np.ndarray, interval: float, axes: str, columns: list[int],
    arcs: bool = False,
) -> MeanSquareDisplacement:
    """Average over beads and origins, with errors, along coordinates of paths, or over arcs about the origin."""
    parts = _sums(paths, rows, lags, columns, arcs)
    counts = parts.counts.sum(axis=(0, 1))
    with np.errstate(invalid="ignore"):
        value = parts.sums.sum(axis=(0, 1)) / counts
    merges = np.array([parts.for_lag(int(lag)) for lag in lags])
    error = np.full(len(lags), np.nan)
    for how_many in np.unique(merges):
        mine = merges == how_many
        sums, numbers = (a[:, mine] for a in parts.merged(how_many))
        some = (numbers > 0).sum(axis=0) >= _FEWEST_PARTS
        mine[mine] = some
        if some.any():
            error[mine] = jackknife(sums[:, some], numbers[:, some])[1]
    return MeanSquareDisplacement(lags, interval * lags, value, error, counts.astype(np.int64), axes, parts)


@plainly_called
def diffusion_coefficient(
    moved: MeanSquareDisplacement, shortest: float = 0.0, longest: float = np.inf, *, dimensions: int | None = None,
    offset: bool = True,
) -> Estimate:
    r"""Return the diffusion coefficient, from the slope of a mean-square displacement.

    The least-squares fit of :math:`c + 2 d D t` over the times from `shortest` to `longest`, weighted by the errors.
    Source: X. Michalet, Phys. Rev. E 82, 041914 (2010).

    Parameters
    ----------
    moved : MeanSquareDisplacement
    shortest, longest : float, s, >= 0
        The times that are used. A diffusion coefficient must not depend on them: look at the curve.
    dimensions : int, >= 1, optional
        Number d of dimensions in which beads move; by default the number of axes. 2 for diffusion along a surface in
        space, at times over which it is flat.
    offset : bool
        Fit c, which a ballistic start or an error of the positions makes; otherwise it is 0, with a smaller error.

    Returns
    -------
    Estimate, nm²/s
        The error is that of the jackknife over the parts of `mean_square_displacement`, as long as the longest time
        needs them: not that of the fit, whose points come from the same paths. nan where there are too few.

    Raises
    ------
    ParameterError
        Fewer than two times to fit (without offset, one).
    """
    what = "diffusion_coefficient"
    if not isinstance(moved, MeanSquareDisplacement):
        raise ParameterError(f"{what}: {moved!r} is not a MeanSquareDisplacement")
    first = number(f"{what}: shortest", shortest, at_least=0.0)
    last = np.inf if longest == np.inf else number(f"{what}: longest", longest, above=0.0)
    d = len(moved.axes) if dimensions is None else whole_number(f"{what}: dimensions", dimensions, at_least=1)
    t, slack = moved.time, 1e-9
    use = (t >= first * (1.0 - slack)) & (t <= last * (1.0 + slack)) & (moved.pairs > 0) & (t > 0.0)
    needed = 2 if offset else 1
    if len(np.unique(t[use])) < needed:
        raise ParameterError(
            f"{what}: {len(np.unique(t[use]))} of the times are from {first:g} to {last:g} s, and {needed} are needed"
        )
    t, error = t[use], moved.error[use]
    # The fit ignores times whose error is not known (the longest), as long as others are.
    known = np.isfinite(error) & (error > 0.0)
    weight = np.where(known, 1.0 / np.where(known, error, 1.0) ** 2, 0.0)
    if len(np.unique(t[known])) < needed:
        weight = np.ones(len(t))
    middle = (weight @ t) / weight.sum() if offset else 0.0
    slope = weight * (t - middle) / (weight @ (t - middle) ** 2)  # The slope is this times the values.
    parts = moved._parts
    used = weight > 0.0
    sums, counts = (a[:, use][:, used] for a in parts.merged(parts.for_lag(int(moved.lags[use][used].max()))))
    total, n = sums.sum(axis=0), counts.sum(axis=0)
    value = float(slope[used] @ (total / n)) / (2.0 * d)
    parts_there = int((counts > 0).all(axis=1).sum())
    if parts_there < _FEWEST_PARTS:
        why = f"it comes of {parts_there} parts of the data, and {_FEWEST_PARTS} are needed"
        warn_of_no_error(what, value, why)
        return Estimate(value, np.nan)
    _, spread = jackknife(sums, counts, lambda total, n: (total / n) @ slope[used])
    return Estimate(value, float(spread) / (2.0 * d))


def axes_of(what: str, axes: Any) -> list[int]:
    """Return the numbers of coordinates that are named by letters."""
    if not isinstance(axes, str) or not axes or set(axes) - set("xyz") or len(set(axes)) != len(axes):
        raise ParameterError(f"{what}: axes = {axes!r} but must be some of the letters xyz, each once")
    return ["xyz".index(axis) for axis in axes]


def _in_boxes(frames: Source, box: Any, axes: list[int], middle: np.ndarray | None, scaled: bool, fixed: bool) -> Paths:
    """Return paths as frames have them, or continued through a periodic box; `fixed` is their middle, if any."""
    what = frames.what
    if box is not None and frames.times is not None:
        raise ParameterError(f"{what}: box is for arrays of positions: these frames have their own")
    boxes = frames.boxes(box)
    if scaled and middle is not None:
        raise ParameterError(f"{what}: arcs about a middle are not measured in units of the box: give no scaled=")
    if scaled and all(cell is None for cell in boxes):
        raise ParameterError(f"{what}: scaled is of a periodic box, and these frames have none")
    lengths = np.array([box_lengths(cell) for cell in boxes])
    changed = (lengths != lengths[0])[:, axes]
    if fixed and not scaled and changed.any():
        k = int(np.argmax(changed.any(axis=1)))
        c = axes[int(np.argmax(changed[k]))]
        remedy = "sphere= with a middle in each frame" if middle is not None else "scaled=True, which leaves that out"
        raise ParameterError(
            f"{what}: the box is {lengths[0, c]:.6g} nm long along {'xyz'[c]} in frame 0 and {lengths[k, c]:.6g} in "
            f"frame {k}, and beads are moved with it, by more the further they are from the origin: give {remedy}"
        )
    if middle is not None:
        start, sides = middle[:, None], lengths[:, None]
        return _Moved(frames, lambda x: displacement(start, x, sides))
    wrapped = frames.times is None and box is not None
    if not scaled and not wrapped:
        return frames
    periodic = lengths[0] > 0.0
    mean = np.mean(np.where(periodic, lengths, 1.0) ** -2.0, axis=0) ** -0.5 if scaled else lengths[0]
    side = np.where(periodic, mean, 0.0)
    growth = np.divide(side, lengths, out=np.ones_like(lengths), where=scaled & periodic)[:, None]

    def continued(x: np.ndarray) -> np.ndarray:
        out = x * growth
        if wrapped:
            # From one frame to the next beads move to the nearest image; where they are not there they go nowhere.
            steps = np.nan_to_num(images_between(np.diff(out, axis=0), side))
            out[1:] -= np.cumsum(steps, axis=0)
        return np.asarray(out)

    return _Moved(frames, continued)


class _Moved:
    """Paths of frames, each with its positions (m, k, 3) replaced by a function of them."""

    def __init__(self, frames: Source, place: Callable[[np.ndarray], np.ndarray]) -> None:
        self._frames, self._place = frames, place

    def __len__(self) -> int:
        return len(self._frames)

    def columns(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        for some, x, ids in self._frames.columns(rows):
            yield some, self._place(x), ids


def _sums(frames: Paths, rows: np.ndarray, lags: np.ndarray, axes: list[int], arcs: bool = False) -> _Parts:
    m, k = len(frames), len(rows)
    if k < PARTS:
        # A power of two, so that blocks can be merged in pairs.
        blocks = 1
        while blocks * k < PARTS and 2 * blocks <= m:
            blocks *= 2
        part_of, parts = np.arange(k), k
    else:
        blocks, parts = 1, min(k, _MOST_PARTS)
        part_of = np.arange(k) * parts // k
    origins = cuts(m, blocks)
    sums, counts = np.zeros((parts, blocks, len(lags))), np.zeros((parts, blocks, len(lags)))
    # Transforms are taken of as much as fits into the cache.
    step = max(1, _AT_ONCE // m)
    for some, x, ids in frames.columns(rows):
        for first in range(0, x.shape[1], step):
            few = slice(first, first + step)
            coordinates, there, own = _paths(x[:, few], None if ids is None else ids[:, few], axes, not arcs)
            # Paths are in the order of their rows, so that those of a part follow each other.
            which, begin = np.unique(part_of[some][few][own], return_index=True)
            for b, (start, end) in enumerate(origins):
                summed = _arcs if arcs else _convolved
                for into, found in zip((sums, counts), summed(coordinates, there, start, end, lags), strict=True):
                    found = np.broadcast_to(found, (len(own), len(lags)))
                    into[which, b] += np.add.reduceat(found, begin, axis=0)
    counts = np.rint(counts)
    # Rounding of transforms where the result is zero.
    sums[counts == 0.0] = 0.0
    return _Parts(sums, counts, min(end - start for start, end in origins))


def _paths(
    x: np.ndarray, ids: np.ndarray | None, axes: list[int], centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split positions (m, k, 3) into paths of single beads, from their middles if `centred`; a bead that takes
    another's row has its own. Return coordinates (q, d, m), 0 where the bead is not there, a mask of where it is,
    (q, m) or (1, m) of beads that are always there, and the numbers (q,) of rows."""
    x = np.ascontiguousarray(np.moveaxis(x, 0, 2))
    there = ~np.isnan(x.sum(axis=1))  # A coordinate that is nan makes the sum nan.
    own = np.arange(len(x))
    x = x[:, axes]
    if ids is not None:
        there &= ids.T >= 0
    if there.all() and (ids is None or (ids == ids[:1]).all()):
        return x - x.mean(axis=2, keepdims=True) if centred else x, np.ones((1, x.shape[2]), bool), own
    if ids is not None:
        who = [(i, bead) for i in own.tolist() for bead in np.unique(ids[there[i], i]).tolist()]
        own = np.array([i for i, _ in who], np.int64)
        there = there[own] & (ids.T[own] == np.array([bead for _, bead in who], np.int64)[:, None])
    x = np.where(there[:, None], x[own], 0.0)
    if not centred:
        return x, there, own
    middle = x.sum(axis=2) / np.maximum(there.sum(axis=1), 1)[:, None]
    return np.where(there[:, None], x - middle[..., None], 0.0), there, own


def _convolved(
    x: np.ndarray, there: np.ndarray, start: int, end: int, lags: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sum |x(s + lag) - x(s)|² (q, K) over origins from start to end, of beads that are there at both times, and count
    these."""
    from scipy import fft

    longest = int(lags.max())
    n = end - start
    later = slice(start, min(end + longest, there.shape[1]))
    length = fft.next_fast_len(n + longest, real=True)

    def transform(a: np.ndarray, origins: bool) -> np.ndarray:
        return np.asarray(fft.rfft(a[..., start:end] if origins else a[..., later], length))

    everything = start == 0 and end == there.shape[1]
    square = np.sum(x * x, axis=1)
    mask = there.astype(float)
    ones, squares = transform(mask, False), transform(square, False)
    first_ones, first_squares = (ones, squares) if everything else (transform(mask, True), transform(square, True))
    total = np.conj(first_squares) * ones + np.conj(first_ones) * squares
    for axis in range(x.shape[1]):
        coordinate = transform(x[:, axis], False)
        first = coordinate if everything else transform(x[:, axis], True)
        total -= 2.0 * np.conj(first) * coordinate
    sums = np.maximum(fft.irfft(total, length)[:, lags], 0.0)
    counts = fft.irfft(np.conj(first_ones) * ones, length)[:, lags]
    return sums, counts


def _arcs(x: np.ndarray, there: np.ndarray, start: int, end: int, lags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum squared arcs about the origin, as `_convolved` sums squared distances."""
    sums, counts = np.zeros((len(x), len(lags))), np.zeros((len(x), len(lags)))
    radius = np.linalg.norm(x, axis=1)
    there = np.broadcast_to(there, radius.shape)
    for k, lag in enumerate(lags.tolist()):
        first = slice(start, max(start, min(end, x.shape[2] - lag)))
        later = slice(first.start + lag, first.stop + lag)
        a, b = x[:, :, first], x[:, :, later]
        angle = np.arctan2(np.linalg.norm(np.cross(a, b, axis=1), axis=1), np.einsum("qdt,qdt->qt", a, b))
        both = there[:, first] & there[:, later]
        arc = 0.5 * (radius[:, first] + radius[:, later]) * angle
        sums[:, k], counts[:, k] = np.sum(arc**2, axis=1, where=both), both.sum(axis=1)
    return sums, counts
