"""The shapes of filaments: end-to-end vectors, curvature, tangent correlations, persistence length.

Frames are as in `analysis.frames`; rows of positions are all beads, or the nodes of the filaments alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.images import displacement, images_between
from medyanpy._tools.validation import array, number
from medyanpy.analysis.estimates import PARTS, Estimate, cuts, jackknife, warn_of_no_error
from medyanpy.analysis.frames import Source
from medyanpy.beads import Filaments
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.files.trajectory import Frames, Trajectory

__all__ = ["TangentCorrelation", "contour_curvature", "end_to_end", "persistence_length", "tangent_correlation"]


@dataclass(frozen=True)
class TangentCorrelation:
    """⟨t_i · t_(i+k)⟩ of links that are k apart on one filament.

    Attributes
    ----------
    separation : (K,) float array, nm
        Mean distance along the contour between the middles of the two links; K separations, from k = 0.
    value, error : (K,) float array
        Correlation, and standard errors.
    pairs : (K,) int array
        Pairs of links in a frame.
    """

    separation: np.ndarray
    value: np.ndarray
    error: np.ndarray
    pairs: np.ndarray


def end_to_end(source: Any, filaments: Filaments, *, box: Any = None) -> np.ndarray:
    """Return the vector from the first to the last node of every filament.

    Parameters
    ----------
    source : frames; see the module
    filaments : Filaments
        Of f filaments; not rings.
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: links are those to the nearest images.

    Returns
    -------
    (m, f, 3) or (f, 3) float, nm

    Raises
    ------
    ParameterError, TopologyError
        Positions of wrong shape. Not filaments, or rings, which have no ends. A state or frame in which one of them was
        not there.
    """
    filaments = _checked("end_to_end", filaments, rings=False)
    first, last = filaments.starts[:-1], filaments.starts[1:] - 1
    a, b = filaments.links.T

    def between(x: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        # Link by link: a filament may be longer than the box.
        starts = filaments.kind.link_starts[:-1]
        whole = 0.0 if lengths is None else np.add.reduceat(images_between(x[b] - x[a], lengths), starts)
        return np.asarray(x[last] - x[first] - whole)

    return _collect(source, "end_to_end", filaments, box, between)


def contour_curvature(source: Any, filaments: Filaments, *, box: Any = None) -> np.ndarray:
    r"""Return the curvature at every inner node; of rings, at every node.

    .. math:: \kappa = \frac{|t_b - t_a|}{\ell} = \frac{2 \sin(\theta/2)}{\ell}

    with the unit tangents t of the two links, the angle θ between them and the mean ℓ of their lengths: the bending
    energy of `FilamentBending` without a rest angle is :math:`\sum \tfrac12 B \kappa^2 \ell`.

    Parameters
    ----------
    source, filaments, box
        As of `end_to_end`, and so are errors; rings too.

    Returns
    -------
    (m, J) or (J,) float, 1/nm
        In the order of ``FilamentBending.joints``.
    """
    filaments = _checked("contour_curvature", filaments)
    before, after = filaments.kind.links_at_joints

    def at_joints(x: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        tangent, length = _tangents(x, filaments, lengths)
        turned = np.linalg.norm(tangent[after] - tangent[before], axis=1)
        return np.asarray(turned / (0.5 * (length[before] + length[after])))

    return _collect(source, "contour_curvature", filaments, box, at_joints)


def tangent_correlation(
    source: Any, filaments: Filaments, max_separation: float | None = None, *, box: Any = None
) -> TangentCorrelation:
    """Return the correlation of tangents along the contour of filaments.

    Parameters
    ----------
    source, filaments, box
        As of `end_to_end`, and so are errors; filaments of any lengths. Links of rings are counted both ways round.
    max_separation : float, nm, optional
        Separations with a larger mean are left out; none where none is given.

    Notes
    -----
    The cost is that of all pairs: of long filaments give a max_separation. Errors are those of the jackknife over
    filaments; of fewer than 20 filaments, over blocks of successive frames of each, taken to be independent.
    """
    sums, counts, separation, pairs = _pair_sums("tangent_correlation", source, filaments, max_separation, box)
    lost, error = jackknife(sums, counts)
    return TangentCorrelation(separation, 1.0 - lost, error, pairs)


def persistence_length(
    source: Any, filaments: Filaments, max_separation: float | None = None, *, box: Any = None
) -> Estimate:
    r"""Return the persistence length, from tangent correlations in three dimensions.

    The least-squares fit of :math:`\ln\langle t_i \cdot t_{i+k}\rangle = -s_k/\ell_p` over the separations s, with
    weights from the errors.

    Parameters
    ----------
    source, filaments, box
        As of `end_to_end`; filaments of any lengths.
    max_separation : float, nm, optional
        The longest separation that is used. Where none is given: up to where the correlation falls to 1/e, or is not
        longer known to 20 %.

    Returns
    -------
    Estimate, nm
        Error and correction of the bias are those of the jackknife; see `tangent_correlation`.

    Raises
    ------
    ParameterError, TopologyError
        As `end_to_end`; filaments of one link, filaments that are straight in all frames, or correlations that are not
        positive where they are needed.

    Notes
    -----
    Of a chain of links ℓ with the bending modulus B it is :math:`-\ell/\ln u` with :math:`u = \coth a - 1/a`, :math:`a
    = B/\ell kT`: shorter than B/kT, by about ℓ/2 where that is large. Source: O. Kratky, G. Porod, Recl. Trav. Chim.
    Pays-Bas 68, 1106 (1949). Jackknife: B. Efron, C. Stein, Ann. Statist. 9, 586 (1981).
    """
    what = "persistence_length"
    filaments = _checked(what, filaments, rings=False)
    sums, counts, separation, _ = _pair_sums(what, source, filaments, max_separation, box)
    lost, error = jackknife(sums, counts)
    use = np.arange(1, len(separation))
    if max_separation is None:
        short = (lost > 1.0 - np.exp(-1.0)) | ~(error < 0.2 * (1.0 - lost))
        use = use[: int(np.argmax(np.append(short[1:], True)))]
        use = use if len(use) else np.arange(1, min(2, len(separation)))  # The nearest neighbours always count.
    if not len(use):
        raise ParameterError(f"{what}: no filament has two links within the longest separation")
    if (lost[use] >= 1.0).any():
        k = use[np.argmax(lost[use] >= 1.0)]
        said = f"the correlation at {separation[k]:g} nm is {1.0 - lost[k]:g}, not positive"
        raise ParameterError(f"{what}: {said}: choose a shorter max_separation")
    if not lost[use].any():
        raise ParameterError(f"{what}: the filaments are straight in all frames")
    s = separation[use]
    # Var(ln C) = Var(C)/C²; a single part tells no errors.
    weight = ((1.0 - lost[use]) / error[use]) ** 2 if (error[use] > 0.0).all() else np.ones(len(use))

    def fitted(total: np.ndarray, n: np.ndarray) -> np.ndarray:
        logarithm = np.log1p(-np.minimum(total[..., use] / n[..., use], 1.0 - 1e-9))
        with np.errstate(divide="ignore"):
            return np.asarray(-(weight * s * s).sum() / (weight * s * logarithm).sum(axis=-1))

    value, spread = jackknife(sums, counts, fitted, correct_bias=True)
    if np.isnan(spread):
        warn_of_no_error(what, float(value))
    return Estimate(float(value), float(spread))


def _checked(what: str, filaments: Any, rings: bool = True) -> Filaments:
    if not isinstance(filaments, Filaments):
        raise TopologyError(f"{what}: filaments must be the handle of filaments, not {filaments!r}")
    if filaments.closed and not rings:
        raise TopologyError(f"{what}: {filaments!r} are rings, which have no ends")
    return filaments


def _frames(
    source: Any, what: str, filaments: Filaments, box: Any
) -> tuple[bool, Iterator[tuple[np.ndarray, np.ndarray | None]]]:
    """Tell whether there is one frame only; and iterate over the positions of the nodes and the lengths of the box."""
    frames = Source(what, source)
    if isinstance(source, Trajectory | Frames) or frames.states() is not None:
        each = (_nodes(frame.positions, what, filaments, frame) for frame in ([source] if frames.one else source))
    else:
        each = (_nodes(x, what, filaments) for x in frames.each(np.arange(frames.n_rows)))
    return frames.one, zip(each, frames.boxes(box), strict=True)


def _nodes(x: Any, what: str, filaments: Filaments, frame: Any = None) -> np.ndarray:
    """Return the positions of the nodes; refuse a state or frame in which other beads have their rows."""
    ids, rows, n = getattr(frame, "ids", None), filaments.beads, filaments.topology.n_beads
    if ids is not None and len(ids) == n and not np.array_equal(ids[rows], filaments.ids):
        bead = int(rows[np.argmax(ids[rows] != filaments.ids)])
        raise TopologyError(
            f"{what}: at step {frame.step} {filaments.kind.describe(bead)} of {filaments.name!r} was not there, or is "
            "gone: give frames in which all of these filaments are there"
        )
    x = array(f"{what}: positions", x, (None, 3), nan=True)
    if len(x) not in (n, len(filaments)):
        there = f"the topology has {n} beads and {filaments!r} {len(filaments)} nodes"
        raise ParameterError(f"{what}: positions have {len(x)} rows, but {there}")
    return array(f"{what}: positions", x[rows] if len(x) == n else x, (None, 3))


def _collect(
    source: Any, what: str, filaments: Filaments, box: Any, compute: Callable[[np.ndarray, Any], np.ndarray]
) -> np.ndarray:
    one, frames = _frames(source, what, filaments, box)
    found = [compute(x, lengths) for x, lengths in frames]
    return found[0] if one else np.stack(found)


def _tangents(x: np.ndarray, filaments: Filaments, lengths: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (l, 3) and lengths (l,) of the links, in a box to the nearest images."""
    a, b = filaments.links.T
    d = displacement(x[a], x[b], lengths)
    length = np.linalg.norm(d, axis=1)
    return d / length[:, None], length


class _Pairs:
    """Pairs of links that are k apart on one filament."""

    def __init__(self, filaments: Filaments) -> None:
        starts, lengths, self.closed = filaments.kind.link_starts[:-1], filaments.link_lengths, filaments.closed
        links = np.diff(filaments.kind.link_starts)
        #: Of each link its filament; the start of that, its own number there, and how many links there are.
        self.filament = filaments.kind.link_chains
        self._start, self._left = starts[self.filament], links[self.filament]
        self._number = np.arange(len(self.filament)) - self._start
        self._middle = np.cumsum(lengths) - 0.5 * lengths
        self._perimeter = np.add.reduceat(lengths, starts)[self.filament]
        #: Separations that there are, 0 among them.
        self.count = int(links.max()) // 2 + 1 if self.closed else int(links.max())

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return links, and those k further along."""
        if self.closed:
            first = np.flatnonzero(k < self._left)
            return first, self._start[first] + (self._number[first] + k) % self._left[first]
        first = np.flatnonzero(self._number + k < self._left)
        return first, first + k

    def separation(self, k: int) -> float:
        """Return the mean distance along the contour at rest between their middles, nm."""
        i, j = self.at(k)
        return float(np.mean(self._middle[j] - self._middle[i] + np.where(j < i, self._perimeter[i], 0.0)))


def _pair_sums(
    what: str, source: Any, filaments: Any, max_separation: float | None, box: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sum 1 - t·t (parts, K) and numbers of pairs, in independent parts of the data; also return mean separations (K,)
    and pairs in a frame."""
    filaments = _checked(what, filaments)
    if not filaments.kind.n_chains:
        raise TopologyError(f"{what}: there are no filaments in {filaments!r}")
    pairs, n_filaments = _Pairs(filaments), filaments.kind.n_chains
    separation = []
    longest = np.inf if max_separation is None else number(f"{what}: max_separation", max_separation, at_least=0.0)
    for k in range(pairs.count):
        separation.append(pairs.separation(k))
        if separation[-1] > longest * (1.0 + 1e-12):
            separation.pop()
            break
    _, frames = _frames(source, what, filaments, box)
    per_frame = []
    for x, lengths in frames:
        tangent, _ = _tangents(x, filaments, lengths)
        sums = np.empty((n_filaments, len(separation)))
        for k in range(len(separation)):
            i, j = pairs.at(k)
            # Differences keep the digits of filaments that are almost straight.
            lost = 0.5 * np.sum((tangent[j] - tangent[i]) ** 2, axis=1)
            sums[:, k] = np.bincount(pairs.filament[i], lost, minlength=n_filaments)
        per_frame.append(sums)
    in_frame = [np.bincount(pairs.filament[pairs.at(k)[0]], minlength=n_filaments) for k in range(len(separation))]
    counts = np.stack(in_frame, axis=1)
    blocks = cuts(len(per_frame), -(-PARTS // n_filaments))
    sums = np.concatenate([np.sum(per_frame[a:b], axis=0) for a, b in blocks])
    return sums, np.concatenate([counts * (b - a) for a, b in blocks]), np.array(separation), counts.sum(axis=0)
