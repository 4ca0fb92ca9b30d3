"""The shapes of filaments: end-to-end vectors, curvature, tangent correlations, persistence length.

Every function takes frames in one of these forms: a State, a Frame or Trajectory (or several states or frames in a
list), positions of shape (n, 3), or positions of many frames, (m, n, 3). Rows of positions are all beads of the
topology, or the nodes of the filaments alone. With one frame results have no axis of frames.
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

__all__ = [
    "TangentCorrelation",
    "contour_curvature",
    "end_to_end",
    "persistence_length",
    "tangent_correlation",
]


@dataclass(frozen=True)
class TangentCorrelation:
    """⟨t_i · t_(i+k)⟩ of links that are k apart on one filament.

    Attributes
    ----------
    separation : (K,) float array, nm
        Mean distance along the contour between the middles of the two links; K separations, from k = 0.
    value : (K,) float array
    error : (K,) float array
        Standard errors.
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
    TopologyError
        Not filaments, or rings, which have no ends; a state or frame in which one of them was not there.
    ParameterError
        Positions of wrong shape.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filament([[0.0, 0, 0], [27.0, 0, 0], [27.0, 27, 0]], node_mass=4e-12)
    >>> context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-9))
    >>> mp.analysis.end_to_end(context.get_state(positions=True), actin).tolist()
    [[27.0, 27.0, 0.0]]
    """
    filaments = _open("end_to_end", filaments)
    first, last = filaments.starts[:-1], filaments.starts[1:] - 1
    a, b = filaments.links.T

    def between(x: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        ends: np.ndarray = x[last] - x[first]
        if lengths is None:
            return ends
        # Link by link: a filament may be longer than the box.
        whole = np.add.reduceat(images_between(x[b] - x[a], lengths), filaments.kind.link_starts[:-1])
        return np.asarray(ends - whole)

    return _collect(source, "end_to_end", filaments, box, between)


def contour_curvature(source: Any, filaments: Filaments, *, box: Any = None) -> np.ndarray:
    r"""Return the curvature at every inner node; of rings, at every node.

    .. math:: \kappa = \frac{|t_b - t_a|}{\ell} = \frac{2 \sin(\theta/2)}{\ell}

    with the unit tangents t of the two links, the angle θ between them and the mean ℓ of their lengths: the bending
    energy of `FilamentBending` without a rest angle is :math:`\sum \tfrac12 B \kappa^2 \ell`.

    Parameters
    ----------
    source : frames; see the module
    filaments : Filaments
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: links are those to the nearest images.

    Returns
    -------
    (m, J) or (J,) float, 1/nm
        In the order of ``FilamentBending.joints``.

    Raises
    ------
    TopologyError, ParameterError
        As `end_to_end`.
    """
    filaments = _filaments("contour_curvature", filaments)
    before, after = filaments.kind.links_at_joints

    def at_joints(x: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        tangent, length = _tangents(x, filaments, lengths)
        turned = np.linalg.norm(tangent[after] - tangent[before], axis=1)
        curvature: np.ndarray = turned / (0.5 * (length[before] + length[after]))
        return curvature

    return _collect(source, "contour_curvature", filaments, box, at_joints)


def tangent_correlation(
    source: Any, filaments: Filaments, max_separation: float | None = None, *, box: Any = None
) -> TangentCorrelation:
    """Return the correlation of tangents along the contour of filaments.

    Parameters
    ----------
    source : frames; see the module
    filaments : Filaments
        Of any lengths. Links of rings are counted both ways round.
    max_separation : float, nm, optional
        Separations with a larger mean are left out; none where none is given.
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: links are those to the nearest images.

    Returns
    -------
    TangentCorrelation

    Raises
    ------
    TopologyError, ParameterError
        As `end_to_end`.

    Notes
    -----
    Pairs are grouped by the number of links between them. The cost is that of all pairs: of long filaments give a
    max_separation. Errors are those of the jackknife over filaments; of fewer than 20 filaments, over blocks of
    successive frames of each. Filaments, and blocks, are taken to be independent: give frames that are far enough
    apart, or blocks longer than the correlation time.
    """
    sums, counts, separation, pairs = _pair_sums("tangent_correlation", source, filaments, max_separation, box)
    lost, error = jackknife(sums, counts, lambda total, n: total / n)
    return TangentCorrelation(separation, 1.0 - lost, error, pairs)


def persistence_length(
    source: Any, filaments: Filaments, max_separation: float | None = None, *, box: Any = None
) -> Estimate:
    r"""Return the persistence length, from tangent correlations in three dimensions.

    The least-squares fit of :math:`\ln\langle t_i \cdot t_{i+k}\rangle = -s_k/\ell_p` over the separations s, with
    weights from the errors.

    Parameters
    ----------
    source : frames; see the module
    filaments : Filaments
        Of any lengths; not rings.
    max_separation : float, nm, optional
        The longest separation that is used. Where none is given: up to where the correlation falls to 1/e, or is not
        longer known to 20 %.
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: links are those to the nearest images.

    Returns
    -------
    Estimate, nm
        Standard error and the correction of the bias are those of the jackknife over filaments, or blocks of frames;
        see `tangent_correlation`.

    Raises
    ------
    TopologyError
        As `end_to_end`.
    ParameterError
        Positions of wrong shape, filaments of one link, filaments that are straight in all frames, or correlations
        that are not positive where they are needed.

    Notes
    -----
    Of a chain of links ℓ with the bending modulus B, :math:`\ell_p = -\ell/\ln u` with :math:`u = \coth a - 1/a`,
    :math:`a = B/\ell kT`: shorter than B/kT, by about ℓ/2 where that is large. Constraints without the Fixman
    potential change it a little.

    References
    ----------
    O. Kratky, G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949). Jackknife: B. Efron, C. Stein, Ann. Statist. 9,
    586 (1981).

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> rng = np.random.default_rng(1)
    >>> turns = rng.normal(0.0, 0.1, (200, 50, 3))     # 200 chains whose direction wanders
    >>> tangents = np.cumsum(turns, axis=1) + [10.0, 0.0, 0.0]
    >>> tangents /= np.linalg.norm(tangents, axis=2, keepdims=True)
    >>> nodes = np.concatenate([np.zeros((200, 1, 3)), np.cumsum(tangents, axis=1)], axis=1)
    >>> topology = mp.Topology()
    >>> chains = topology.add_filaments(list(nodes), node_mass=1.0)
    >>> estimate = mp.analysis.persistence_length(nodes.reshape(-1, 3), chains)
    >>> bool(abs(estimate.value - 1e4) < 5 * estimate.error)
    True
    """
    what = "persistence_length"
    filaments = _open(what, filaments)
    sums, counts, separation, _ = _pair_sums(what, source, filaments, max_separation, box)
    lost, error = jackknife(sums, counts, lambda total, n: total / n)
    use = np.arange(1, len(separation))
    if max_separation is None:
        short = (lost > 1.0 - np.exp(-1.0)) | ~(error < 0.2 * (1.0 - lost))
        use = use[: int(np.argmax(np.append(short[1:], True)))]
        # The nearest neighbours always count.
        use = use if len(use) else np.arange(1, min(2, len(separation)))
    if not len(use):
        raise ParameterError(f"{what}: no filament has two links within the longest separation")
    if (lost[use] >= 1.0).any():
        k = use[np.argmax(lost[use] >= 1.0)]
        raise ParameterError(
            f"{what}: the correlation at {separation[k]:g} nm is {1.0 - lost[k]:g}, not positive: choose a shorter "
            "max_separation"
        )
    if not lost[use].any():
        raise ParameterError(f"{what}: the filaments are straight in all frames")
    s = separation[use]
    # Var(ln C) = Var(C)/C²; a single part tells no errors.
    weight = ((1.0 - lost[use]) / error[use]) ** 2 if (error[use] > 0.0).all() else np.ones(len(use))

    def fitted(total: np.ndarray, n: np.ndarray) -> np.ndarray:
        logarithm = np.log1p(-np.minimum(total[..., use] / n[..., use], 1.0 - 1e-9))
        with np.errstate(divide="ignore"):
            fit: np.ndarray = -(weight * s * s).sum() / (weight * s * logarithm).sum(axis=-1)
        return fit

    value, spread = jackknife(sums, counts, fitted, correct_bias=True)
    if np.isnan(spread):
        warn_of_no_error(what, float(value), "the data are too few parts that do not depend on each other")
    return Estimate(float(value), float(spread))


# How it is done -----------------------------------------------------------------------------------------------


def _filaments(what: str, filaments: Any) -> Filaments:
    if not isinstance(filaments, Filaments):
        raise TopologyError(f"{what}: filaments must be the handle of filaments, not {filaments!r}")
    return filaments


def _open(what: str, filaments: Any) -> Filaments:
    checked = _filaments(what, filaments)
    if checked.closed:
        raise TopologyError(f"{what}: {filaments!r} are rings, which have no ends")
    return checked


def _frames(
    source: Any, what: str, filaments: Filaments, box: Any
) -> tuple[bool, Iterator[tuple[np.ndarray, np.ndarray | None]]]:
    """Tell whether there is one frame only; and iterate over the positions of the nodes and the lengths of the box."""
    frames = Source(what, source)
    if isinstance(source, Trajectory | Frames) or frames.states() is not None:
        each = (_nodes_of(frame, what, filaments) for frame in ([source] if frames.one else source))
    else:
        each = (_nodes(x, what, filaments) for x in frames.each(np.arange(frames.n_rows)))
    return frames.one, zip(each, frames.boxes(box), strict=True)


def _nodes_of(frame: Any, what: str, filaments: Filaments) -> np.ndarray:
    """Return the positions of the nodes in a state or frame; refuse one in which other beads have their rows."""
    ids, rows = getattr(frame, "ids", None), filaments.beads
    if ids is not None and len(ids) == filaments.topology.n_beads and not np.array_equal(ids[rows], filaments.ids):
        bead = int(rows[np.argmax(ids[rows] != filaments.ids)])
        raise TopologyError(
            f"{what}: at step {frame.step} {filaments.kind.describe(bead)} of {filaments.name!r} was not there, or is "
            "gone: give frames in which all of these filaments are there"
        )
    return _nodes(frame.positions, what, filaments)


def _nodes(x: Any, what: str, filaments: Filaments) -> np.ndarray:
    x = array(f"{what}: positions", x, (None, 3), nan=True)
    if len(x) == filaments.topology.n_beads:
        x = x[filaments.beads]
    elif len(x) != len(filaments):
        raise ParameterError(
            f"{what}: positions have {len(x)} rows, but the topology has {filaments.topology.n_beads} beads and "
            f"{filaments!r} {len(filaments)} nodes"
        )
    return array(f"{what}: positions", x, (None, 3))


def _collect(
    source: Any, what: str, filaments: Filaments, box: Any, compute: Callable[[np.ndarray, Any], np.ndarray]
) -> np.ndarray:
    one, frames = _frames(source, what, filaments, box)
    rows = [compute(x, lengths) for x, lengths in frames]
    if not rows:
        raise ParameterError(f"{what}: there are no frames")
    return rows[0] if one else np.stack(rows)


def _tangents(x: np.ndarray, filaments: Filaments, lengths: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (l, 3) and lengths (l,) of the links, in a box to the nearest images."""
    a, b = filaments.links.T
    d = displacement(x[a], x[b], lengths)
    length = np.linalg.norm(d, axis=1)
    return d / length[:, None], length


class _Pairs:
    """Pairs of links that are k apart on one filament."""

    def __init__(self, filaments: Filaments) -> None:
        self.closed = filaments.closed
        #: Links of each filament; for each link, its filament and its number there.
        self.links = np.diff(filaments.kind.link_starts)
        self.filament = filaments.kind.link_chains
        self._start = filaments.kind.link_starts[:-1][self.filament]
        self._number = np.arange(len(self.filament)) - self._start
        self._left = self.links[self.filament]
        end = np.cumsum(filaments.link_lengths)
        self._middle = end - 0.5 * filaments.link_lengths
        self._perimeter = np.add.reduceat(filaments.link_lengths, filaments.kind.link_starts[:-1])[self.filament]
        longest = int(self.links.max())
        #: Separations that there are, 0 among them.
        self.count = longest // 2 + 1 if self.closed else longest

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
    """Sum 1 - t·t (parts, K) and numbers of pairs, in independent parts of the data.

    Also returns mean separations (K,) and pairs in a frame.
    """
    filaments = _filaments(what, filaments)
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
    if not per_frame:
        raise ParameterError(f"{what}: there are no frames")
    in_frame = [np.bincount(pairs.filament[pairs.at(k)[0]], minlength=n_filaments) for k in range(len(separation))]
    counts = np.stack(in_frame, axis=1)
    blocks = cuts(len(per_frame), -(-PARTS // n_filaments))
    sums = np.concatenate([np.sum(per_frame[a:b], axis=0) for a, b in blocks])
    return sums, np.concatenate([counts * (b - a) for a, b in blocks]), np.array(separation), counts.sum(axis=0)
