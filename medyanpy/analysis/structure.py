"""Structure factors: scattering from the places of beads."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import number, whole_number
from medyanpy.analysis.diffusion import axes_of
from medyanpy.analysis.estimates import means_of
from medyanpy.analysis.frames import Source
from medyanpy.errors import ParameterError

__all__ = ["StructureFactor", "structure_factor", "wave_orders"]

_AT_ONCE = 1 << 20  # Distances of which sines are taken at once.


@dataclass(frozen=True)
class StructureFactor:
    """S(q), by wave number.

    Attributes
    ----------
    wave_number : (K,) float array, 1/nm
        In a box the mean over the wave vectors of each bin that has some.
    value, error : (K,) float array, dimensionless
        Mean over wave vectors and frames, and its standard error, correlations of frames included (`average`); nan
        where these are too long, and of one frame.
    modes : (K,) int array
        Number of wave vectors in each bin; q and -q are one. 0 in open space, where all directions are averaged.
    """

    wave_number: np.ndarray
    value: np.ndarray
    error: np.ndarray
    modes: np.ndarray


@plainly_called
def structure_factor(
    source: Any, beads: Any = None, *, q_max: float, bins: int = 50, box: Any = None, axes: str = "xyz"
) -> StructureFactor:
    r"""Return the structure factor of a group of beads.

    .. math:: S(q) = \frac1N \Bigl\langle \Bigl|\sum_j e^{-i q \cdot x_j}\Bigr|^2 \Bigr\rangle

    In a periodic box, over its wave vectors :math:`q_i = 2\pi n_i/L_i`, without 0; in one that changes, with wave
    numbers in the mean box. In open space, over all directions (Debye): :math:`S(q) = 1 + \frac1N \sum_{i \ne j}
    \frac{\sin q r_{ij}}{q r_{ij}}`, with :math:`J_0(q r)` for two axes and :math:`\cos q r` for one; there, a group has
    the scattering of its shape as well. Source: P. Debye, Ann. Phys. 351, 809 (1915).

    Parameters
    ----------
    source, box
        As of `radial_distribution`.
    beads : handle or its name, list of these, (k,) int or int, optional
        Which beads; all, where none are given.
    q_max : float, 1/nm, > 0
        The largest wave number.
    bins : int, >= 1
        Of equal width; in open space, so many wave numbers from q_max/bins to q_max.
    axes : str
        Which coordinates count: ``"xyz"``, or ``"xy"`` for beads spread over a sheet.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; a box that is open in some of the axes and closed in others, a q_max below its
        longest wave, frames without beads.

    Examples
    --------
    >>> import medyanpy as mp
    >>> places = 2.0 * np.stack(np.meshgrid(range(4), range(4), range(4)), axis=-1).reshape(-1, 3)
    >>> crystal = mp.analysis.structure_factor(places, q_max=3.2, bins=16, box=(8.0, 8.0, 8.0))
    >>> np.round(crystal.value[-2:], 9).tolist()                     # Bragg's peak at q = π: the number of beads
    [0.0, 64.0]
    """
    what = "structure_factor"
    frames = Source(what, source)
    rows = frames.rows("beads", beads)
    chosen = axes_of(what, axes)
    longest = number(f"{what}: q_max", q_max, above=0.0)
    k = whole_number(f"{what}: bins", bins, at_least=1)
    boxes = frames.boxes(box)
    closed = [0 if cell is None else int((cell[chosen] > 0.0).sum()) for cell in boxes]
    if set(closed) not in ({0}, {len(chosen)}):
        problem = "the box is closed in some directions and open in others: choose axes= of one kind"
        raise ParameterError(f"{what}: along {axes} {problem}")
    if closed[0] == 0:
        q, modes = longest * np.arange(1, k + 1) / k, np.zeros(k, np.int64)
        found = [_debye(_there(what, x)[:, chosen], q) for x in frames.each(rows)]
    else:
        lengths = np.array([cell[chosen] for cell in boxes if cell is not None])
        mean = lengths.mean(axis=0)
        orders = wave_orders(mean, longest)
        if not len(orders):
            raise ParameterError(
                f"{what}: q_max = {longest:g} but the longest wave in the box has {2.0 * np.pi / mean.max():g}"
            )
        size = np.linalg.norm(2.0 * np.pi * orders / mean, axis=1)
        _, label = np.unique(np.minimum((size * k / longest).astype(int), k - 1), return_inverse=True)
        modes = np.bincount(label)
        q = np.bincount(label, size) / modes
        found = []
        for x, cell in zip(frames.each(rows), lengths, strict=True):
            own = _there(what, x)[:, chosen] / cell
            found.append(np.bincount(label, _powers(own, orders)) / modes / len(own))
    return StructureFactor(q, *means_of(np.array(found)), modes)


def _there(what: str, x: np.ndarray) -> np.ndarray:
    here = x[~np.isnan(x).any(axis=1)]
    if not len(here):
        raise ParameterError(f"{what}: a frame has none of these beads")
    return np.asarray(here)


def wave_orders(lengths: np.ndarray, longest: float) -> np.ndarray:
    """Return whole numbers (M, d) of waves along the sides up to a wave number: half of the space, without 0."""
    most = np.floor(longest * lengths / (2.0 * np.pi) * (1.0 + 1e-9)).astype(int)
    grids = np.meshgrid(np.arange(most[0] + 1), *(np.arange(-n, n + 1) for n in most[1:]), indexing="ij")
    orders = np.stack([grid.ravel() for grid in grids], axis=1)
    near = np.linalg.norm(2.0 * np.pi * orders / lengths, axis=1) <= longest * (1.0 + 1e-9)
    # Of q and -q, the one whose first number that is not 0 is positive.
    first = np.take_along_axis(orders, np.argmax(orders != 0, axis=1)[:, None], axis=1)[:, 0]
    return np.asarray(orders[near & (first > 0)])


def _powers(places: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Return |Σ e^iqx|² of places in units of the box, (M,)."""
    d = places.shape[1]
    low, high = orders.min(axis=0), orders.max(axis=0)
    # Powers of one wave along each side; of directions that do not count, one.
    along = [np.exp(2j * np.pi * places[:, i : i + 1]) ** np.arange(low[i], high[i] + 1) for i in range(d)]
    along += [np.ones((len(places), 1))] * (3 - d)
    at = np.concatenate([orders - low, np.zeros((len(orders), 3 - d), int)], axis=1)
    out = np.empty(len(orders))
    for i in np.unique(at[:, 0]).tolist():
        own = at[:, 0] == i
        sums = (along[0][:, i : i + 1] * along[1]).T @ along[2]
        out[own] = np.abs(sums[at[own, 1], at[own, 2]]) ** 2
    return out


def _debye(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the structure factor averaged over all directions, (K,)."""
    from scipy import special
    from scipy.spatial import distance

    r = distance.pdist(x)
    sums = np.zeros(len(q))
    step = max(1, _AT_ONCE // len(q))
    for start in range(0, len(r), step):
        phase = q[:, None] * r[start : start + step]
        if x.shape[1] == 3:
            sums += np.sinc(phase / np.pi).sum(axis=1)
        else:
            sums += (special.j0(phase) if x.shape[1] == 2 else np.cos(phase)).sum(axis=1)
    return np.asarray(1.0 + 2.0 * sums / len(x))
