"""Pairs of beads by their distance: pair correlations, contacts, and how long these last."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.images import expect_room, wrapped
from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import number, whole_number
from medyanpy.analysis.estimates import PARTS, Estimate, cuts, jackknife, warn_of_no_error
from medyanpy.analysis.frames import Source, tree
from medyanpy.errors import ParameterError, TopologyError

__all__ = ["ContactTimes", "Contacts", "RadialDistribution", "contact_counts", "contact_times", "radial_distribution"]


@dataclass(frozen=True)
class RadialDistribution:
    """Pair correlation g(r): number of pairs at a distance over that without interactions.

    Attributes
    ----------
    edges, distance : (E,) and (K,) float array, nm
        Of the K = E - 1 bins, and their middles: pairs at their lower edge count in the bin below, those at distance 0
        in the first.
    value, error : (K,) float array, dimensionless
        g, nan where the reference has no pairs, and standard errors from blocks of frames, nan of one frame.
    pairs : (K,) int array
        In all frames. Where both groups are one, each pair counts twice: from either end.
    """

    edges: np.ndarray
    distance: np.ndarray
    value: np.ndarray
    error: np.ndarray
    pairs: np.ndarray


@dataclass(frozen=True)
class Contacts:
    """Contacts of the beads of one group with those of another.

    Attributes
    ----------
    beads : (k,) int array
        Rows of the beads of the first group.
    per_bead : (m, k) or (k,) int array
        Number of beads of the second group in contact with each; -1 for rows without a bead.
    total : (m,) int array, or int
        Number of pairs in contact. A pair of two beads that are in both groups is one.
    """

    beads: np.ndarray
    per_bead: np.ndarray
    total: Any


@dataclass(frozen=True)
class ContactTimes:
    """Times at which contacts of pairs begin and end.

    Attributes
    ----------
    pairs : (c, 2) int array
        Permanent ids of the beads of each contact, of the first group and of the second; where both are in both
        groups, the lower first.
    start, end : (c,) float array, s
        Of each contact: the first frame that shows it, and the first that no longer does, or the last of all.
    started, ended : (c,) bool array
        True if it was seen to begin, and to end: others were there in the first frame, or still are in the last.
    lifetime : Estimate, s
        Mean lifetime; see `contact_times`.
    """

    pairs: np.ndarray
    start: np.ndarray
    end: np.ndarray
    started: np.ndarray
    ended: np.ndarray
    lifetime: Estimate


@plainly_called
def radial_distribution(
    source: Any, a: Any = None, b: Any = None, *, r_max: float, bins: int = 100, volume: float | None = None,
    area: float | None = None, ball: float | None = None, sphere: float | None = None, ideal: Any = None,
    box: Any = None, along_surface: bool = False,
) -> RadialDistribution:
    r"""Return the pair correlation g(r) of the beads of one group, or between two groups.

    .. math:: g(r) = \frac{\text{pairs at distance } r}{\text{pairs at distance } r \text{ of an ideal gas}}

    In a periodic box with three lengths, the ideal gas fills the box; with two lengths, it is spread over their area,
    as over a sheet. In open space the region that the gas fills must be given in one of the five ways below, which
    override the box.

    Parameters
    ----------
    source : frames; see `mean_square_displacement`, here also a single State or Frame, or (n, 3) float, nm
    a, b : handle or its name, list of these, (k,) int or int, optional
        The groups: without b, pairs within a; without a, of all beads. A bead is not a pair with itself, also where it
        is in both groups.
    r_max : float, nm, > 0
        The largest distance.
    bins : int, >= 1
        Of equal width.
    volume : float, nm³, > 0
        The gas has the density of the beads in this volume, everywhere around each. Right for distances that are small
        beside the region in which beads are: near its border, g is smaller than inside.
    area : float, nm², > 0
        As `volume`, for beads on a flat sheet.
    ball : float, nm, > 0
        The gas fills a ball of this radius, evenly, and its borders are accounted for.
    sphere : float, nm, > 0
        The gas is spread over a sphere of this radius: a vesicle. Distances are chords.
    ideal : frames, as source
        The gas itself: points without interactions, spread over any place, or frames of a run without the forces
        between them. Give many: their errors are not in the result's.
    box : (3,) float or None, nm, or one for each frame, optional
        Lengths of a periodic box, None where space is open; distances are those of nearest images. That of states and
        trajectories where none is given.
    along_surface : bool
        With `sphere`, distances along it: arcs of great circles in place of chords.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`. Several of the five, or none without a box of two or three lengths; numbers out
        of bounds. An r_max beyond half of the box, or with a sphere larger than the volume (or a circle larger than the
        area). No frame with a pair.

    Notes
    -----
    g is 1 without interactions for any N, and has no bias of 1/N. Errors are those of the jackknife over 20 blocks of
    frames, or single frames, where there are fewer: blocks must be longer than the correlation time. Of two random
    points of a ball of radius R, distances up to r have the share :math:`s^3 - \tfrac{9}{16} s^4 + \tfrac{1}{32} s^6`,
    s = r/R (Hammersley); on a sphere :math:`s^2/4`. Source: J. M. Hammersley, Ann. Math. Statist. 21, 447 (1950).

    Examples
    --------
    >>> import medyanpy as mp
    >>> places = np.random.default_rng(1).normal(size=(20, 400, 3))
    >>> places *= 300.0 / np.linalg.norm(places, axis=2, keepdims=True)      # on a sphere, without interactions
    >>> g = mp.analysis.radial_distribution(places, r_max=100.0, bins=5, sphere=300.0)
    >>> bool((abs(g.value - 1.0) < 5 * g.error).all())
    True
    """
    what = "radial_distribution"
    frames = Source(what, source)
    groups = _Groups(frames, a, b, box)
    longest = number(f"{what}: r_max", r_max, above=0.0)
    groups.expect_room("r_max", longest)
    edges = np.linspace(0.0, longest, whole_number(f"{what}: bins", bins, at_least=1) + 1)
    given = {"volume": volume, "area": area, "ball": ball, "sphere": sphere, "ideal": ideal}
    named = [name for name, value in given.items() if value is not None]
    sizes = None if named else groups.sizes_of_boxes()
    if len(named) != 1 and sizes is None:
        raise ParameterError(
            f"{what}: give one of volume=, area=, ball=, sphere= and ideal=, which says what g is relative to, not "
            f"{' and '.join(named) or 'none'}"
        )
    chords = edges
    if along_surface:
        if sphere is None:
            raise ParameterError(f"{what}: along_surface is of a sphere: give sphere=")
        # Two points are at most half the circumference apart.
        chords = 2.0 * sphere * np.sin(np.minimum(edges / sphere, np.pi) / 2.0)
    if sizes is not None:
        share = np.array([_shares(what, sizes[0], size, edges) for size in sizes[1]])
    elif ideal is None:
        share = _shares(what, named[0], number(f"{what}: {named[0]}", given[named[0]], above=0.0), chords)
    else:
        gas = Source(f"{what}: ideal", ideal)
        counted, pairs = _counted(_Groups(gas, None, None, None if box is None else groups.boxes[0]), edges)
        if not pairs.sum():
            raise ParameterError(f"{what}: ideal has no frame with two points")
        share = counted.sum(axis=0) / pairs.sum()
    counts, pairs = _counted(groups, chords)
    if not pairs.sum():
        raise ParameterError(f"{what}: no frame has a pair of beads of these groups")
    return distribution(edges, counts, pairs[:, None] * share, counts.sum(axis=0))


def distribution(edges: np.ndarray, counts: np.ndarray, expected: np.ndarray, pairs: np.ndarray) -> RadialDistribution:
    """Divide counts of pairs (m, K) by those expected, block of frames by block."""
    blocks = cuts(len(counts), PARTS)
    sums, ideal = (np.array([a[i:j].sum(axis=0) for i, j in blocks], float) for a in (counts, expected))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = jackknife(sums, ideal)
    value, error = (np.where(ideal.sum(axis=0) > 0.0, one, np.nan) for one in found)
    return RadialDistribution(edges, 0.5 * (edges[1:] + edges[:-1]), value, error, pairs)


def contact_counts(source: Any, a: Any = None, b: Any = None, *, cutoff: float, box: Any = None) -> Contacts:
    """Count the beads within a distance of each bead.

    Parameters
    ----------
    source, box
        As of `radial_distribution`.
    a, b : handle or its name, list of these, (k,) int or int, optional
        The groups, as in `radial_distribution`; a bead is not in contact with itself.
    cutoff : float, nm, > 0
        Beads are in contact at this distance and below.

    Returns
    -------
    Contacts
        With an axis of frames, unless one is given.

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; a cutoff outside its domain or beyond half of the box.

    Examples
    --------
    >>> import medyanpy as mp
    >>> contacts = mp.analysis.contact_counts([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [9, 0, 0]], cutoff=1.5)
    >>> contacts.per_bead.tolist(), contacts.total
    ([1, 2, 1, 0], 2)
    """
    frames, groups, reach = _within("contact_counts", source, a, b, cutoff, box)
    per_bead, total = np.full((len(frames), len(groups.a)), -1), np.zeros(len(frames), np.int64)
    for k, (x, cell) in enumerate(groups.each()):
        there, others = groups.there(x)
        near = np.zeros(len(there), np.int64)
        if len(others):
            near = tree(x[others], cell).query_ball_point(_inside(x[there], cell), reach, return_length=True)
        near = near - groups.is_both[there]  # Itself is always within reach.
        per_bead[k, groups.number_in_a[there]] = near
        both = there[groups.is_both[there]]
        own = tree(x[both], cell) if len(both) else None
        twice = 0 if own is None else own.count_neighbors(own, reach) - len(both)
        total[k] = near.sum() - twice // 2
    return Contacts(groups.a, *((per_bead[0], int(total[0])) if frames.one else (per_bead, total)))


def contact_times(
    source: Any, a: Any = None, b: Any = None, *, cutoff: float, interval: float | None = None, box: Any = None
) -> ContactTimes:
    r"""Find when pairs of beads are in contact, and the mean lifetime of contacts.

    Parameters
    ----------
    source, interval
        As of `mean_square_displacement`, and so are errors.
    a, b, cutoff, box
        As of `contact_counts`.

    Returns
    -------
    ContactTimes
        Its lifetime τ is the most likely one if contacts end at random, at a rate that does not depend on their age: of
        those in one frame, the share 1 - exp(-Δt/τ) is gone in the next. Contacts that were there from the start or
        outlast the run count as long as they were seen. nan where none was seen to end; the error is nan where none
        outlasts a frame.

    Notes
    -----
    Contacts and gaps between two frames are not seen: lifetimes grow with the time between frames where beads leave and
    come back.
    """
    frames, groups, reach = _within("contact_times", source, a, b, cutoff, box)
    dt = frames.interval(interval)
    times = frames.times if frames.times is not None else dt * np.arange(len(frames))
    began: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int, int, int]] = []
    for k, (x, cell) in enumerate(groups.each()):
        ids = frames.ids(slice(k, k + 1), groups.all)
        now = groups.close(x, groups.all if ids is None else ids[0], reach, cell)
        for pair in [pair for pair in began if pair not in now]:
            found.append((*pair, began.pop(pair), k))
        for pair in now:
            began.setdefault(pair, k)
    last = len(frames)
    found += [(*pair, start, last) for pair, start in began.items()]
    table = np.array(sorted(found, key=lambda row: (row[2], *row)), np.int64).reshape(-1, 4)
    first, end = table[:, 2], table[:, 3]
    ended = end < last
    end = np.minimum(end, last - 1)
    lifetime = _lifetime(int(ended.sum()), int((end - first).sum()), dt)
    return ContactTimes(table[:, :2], times[first], times[end], first > 0, ended, lifetime)


def _within(what: str, source: Any, a: Any, b: Any, cutoff: Any, box: Any) -> "tuple[Source, _Groups, float]":
    """Return the frames, the groups, and the checked cutoff."""
    frames = Source(what, source)
    groups = _Groups(frames, a, b, box)
    reach = number(f"{what}: cutoff", cutoff, above=0.0)
    groups.expect_room("cutoff", reach)
    return frames, groups, reach


class _Groups:
    """Beads of two groups, of which some may be in both: rows `a` and `b`; `all` (q,) are those of either, ascending,
    and the other attributes have a row for each."""

    def __init__(self, frames: Source, a: Any, b: Any, box: Any = None) -> None:
        self.frames = frames
        self.boxes = frames.boxes(box)
        self.a = frames.rows("a", a)
        if a is None and b is not None:
            raise TopologyError(f"{frames.what}: give a= with b=")
        self.b = self.a if b is None else frames.rows("b", b)
        self.all = np.union1d(self.a, self.b)
        self.is_a, self.is_b = np.isin(self.all, self.a), np.isin(self.all, self.b)
        self.is_both = self.is_a & self.is_b
        self.number_in_a = np.full(len(self.all), -1)
        self.number_in_a[np.searchsorted(self.all, self.a)] = np.arange(len(self.a))

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield positions (q, 3) and boxes, frame by frame."""
        return zip(self.frames.each(self.all), self.boxes, strict=True)

    def expect_room(self, name: str, reach: float) -> None:
        for cell in self.boxes:
            expect_room(f"{self.frames.what}: {name}", reach, cell)

    def sizes_of_boxes(self) -> tuple[str, list[float]] | None:
        """Return volumes of the boxes of all frames or, where one direction is open, areas; None of others."""
        closed = [0 if cell is None else int((cell > 0.0).sum()) for cell in self.boxes]
        name = {3: "volume", 2: "area"}.get(closed[0])
        if name is None or len(set(closed)) > 1:
            return None
        return name, [float(np.prod(cell[cell > 0.0])) for cell in self.boxes if cell is not None]

    def there(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the beads of either group that are there."""
        here = ~np.isnan(x).any(axis=1)
        return np.flatnonzero(here & self.is_a), np.flatnonzero(here & self.is_b)

    def close(self, x: np.ndarray, who: np.ndarray, reach: float, cell: np.ndarray | None) -> set[tuple[int, int]]:
        """Return pairs within a distance, by their ids."""
        first, second = self.there(x)
        if not len(first) or not len(second):
            return set()
        lists = tree(x[second], cell).query_ball_point(_inside(x[first], cell), reach)
        i = np.repeat(first, [len(one) for one in lists])
        j = second[np.concatenate([np.empty(0, np.int64), *map(np.asarray, lists)]).astype(np.int64)]
        # A bead is not a pair with itself; pairs within both groups were found from either end.
        keep = (i != j) & ~(self.is_both[i] & self.is_both[j] & (who[i] > who[j]))
        return set(zip(who[i[keep]].tolist(), who[j[keep]].tolist(), strict=True))


def _inside(x: np.ndarray, cell: np.ndarray | None) -> np.ndarray:
    return x if cell is None else wrapped(x, cell)


def _lifetime(ends: int, looks: int, dt: float) -> Estimate:
    """Estimate the lifetime from `looks` at contacts after the time dt, of which `ends` found them gone."""
    if not ends:
        return Estimate(np.nan, np.nan)
    if ends == looks:
        warn_of_no_error("contact_times", 0.0, "all contacts were gone at the next look: look more often")
        return Estimate(0.0, np.nan)
    gone = ends / looks
    rate = -np.log1p(-gone) / dt
    error = np.sqrt(gone / (1.0 - gone) / looks) / (rate**2 * dt)
    return Estimate(float(1.0 / rate), float(error))


def _counted(groups: _Groups, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count pairs (m, K) in bins, from a to b, and pairs (m,) at all distances, frame by frame."""
    counts, pairs = [], []
    for x, cell in groups.each():
        first, second = groups.there(x)
        within = np.zeros(len(edges), np.int64)
        same = int(groups.is_both[first].sum())
        if len(first) and len(second):
            one = tree(x[first], cell)
            other = one if first is second or np.array_equal(first, second) else tree(x[second], cell)
            # The same bead is at distance 0 of itself; others at 0 are in the first bin.
            within = np.asarray(one.count_neighbors(other, edges)) - same
        counts.append(np.concatenate([within[1:2], np.diff(within)[1:]]))
        pairs.append(len(first) * len(second) - same)
    return np.array(counts), np.array(pairs)


def _shares(what: str, name: str, size: float, edges: np.ndarray) -> np.ndarray:
    """Return the shares (K,) of the pairs of an ideal gas in each bin."""
    if name == "volume":
        within = 4.0 / 3.0 * np.pi * edges**3 / size
    elif name == "area":
        within = np.pi * edges**2 / size
    elif name == "ball":
        s = np.minimum(edges / size, 2.0)
        within = s**3 - 9.0 / 16.0 * s**4 + s**6 / 32.0
    else:
        within = np.minimum(edges / size, 2.0) ** 2 / 4.0
    if name in ("volume", "area") and within[-1] > 1.0:
        raise ParameterError(
            f"{what}: r_max = {edges[-1]:g} reaches beyond the {name} of {size:g}: choose a shorter one, or say by "
            "ball=, sphere= or ideal= where beads are"
        )
    return np.diff(within)
