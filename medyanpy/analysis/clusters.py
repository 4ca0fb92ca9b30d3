"""Clusters of beads, joined by their distance, by links, or by both."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from medyanpy._tools.images import expect_room
from medyanpy._tools.validation import number
from medyanpy.analysis.estimates import PARTS, Estimate, cuts, jackknife, warn_of_no_error
from medyanpy.analysis.frames import Source, tree
from medyanpy.errors import ParameterError, TopologyError

__all__ = ["ClusterSizes", "Clusters", "cluster_sizes", "clusters"]


@dataclass(frozen=True)
class Clusters:
    """Clusters of connected beads in one frame.

    Attributes
    ----------
    beads : (k,) int array
        Their rows.
    labels : (k,) int array
        The number of each one's cluster; -1 for rows without a bead. The largest cluster is 0; of clusters of the same
        size, the one with the lowest row comes first.
    sizes : (c,) int array
        Number of beads in each cluster, in the order of their numbers. A bead by itself is a cluster of one.
    """

    beads: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray

    def __len__(self) -> int:
        return len(self.sizes)

    def members(self, label: int) -> np.ndarray:
        """Return the rows (s,) of the beads of one cluster."""
        return np.asarray(self.beads[self.labels == label])


@dataclass(frozen=True)
class ClusterSizes:
    """Distribution of cluster sizes over many frames.

    Attributes
    ----------
    size : (S,) int array
        The sizes that occur, ascending.
    number, error : (S,) float array, >= 0
        Mean number of clusters of each size in a frame, and standard errors.
    mean, weighted_mean, largest : Estimate
        Mean size of a cluster, beads over clusters. That of the cluster that a bead is in, ⟨Σ s²⟩/⟨Σ s⟩. That of the
        largest cluster of a frame.
    """

    size: np.ndarray
    number: np.ndarray
    error: np.ndarray
    mean: Estimate
    weighted_mean: Estimate
    largest: Estimate


def clusters(
    source: Any, beads: Any = None, cutoff: float | None = None, *, links: Any = None, box: Any = None
) -> Clusters | list[Clusters]:
    """Find clusters of beads, connected by steps within the cutoff or along links.

    Parameters
    ----------
    source : frames; see `radial_distribution`
    beads : handle or its name, list of these, (k,) int or int, optional
        Which beads; all, where none are given. Others connect nothing.
    cutoff : float, nm, > 0, optional
        Beads at this distance and below are connected.
    links : (l, 2) int, or a list of such arrays for each frame, optional
        Rows of beads that are connected, however far apart they are. Those that are not among `beads`, or not there,
        connect nothing.
    box : (3,) float or None, nm, or one for each frame, optional
        As of `radial_distribution`: clusters continue through the sides.

    Returns
    -------
    Clusters, or a list of them, unless one frame is given

    Raises
    ------
    ParameterError, TopologyError
        As `mean_square_displacement`; neither cutoff nor links, links for another number of frames, or of rows that do
        not exist, a cutoff beyond half of the box.

    Examples
    --------
    >>> import medyanpy as mp
    >>> places = [[0.0, 0, 0], [9, 0, 0], [1, 0, 0], [2, 0, 0], [10, 0, 0], [50, 0, 0]]
    >>> found = mp.analysis.clusters(places, cutoff=1.5)
    >>> found.labels.tolist(), found.sizes.tolist()
    ([0, 1, 0, 0, 1, 2], [3, 2, 1])
    """
    frames = Source("clusters", source)
    found = _clusters(frames, beads, cutoff, links, box)
    return found[0] if frames.one else found


def cluster_sizes(
    source: Any, beads: Any = None, cutoff: float | None = None, *, links: Any = None, box: Any = None
) -> ClusterSizes:
    """Return the distribution and mean of the sizes of clusters.

    Parameters
    ----------
    source, beads, cutoff, links, box
        As of `clusters`.

    Returns
    -------
    ClusterSizes
        Errors are those of the jackknife over 20 blocks of frames, or single frames where there are fewer; nan of one
        frame. Blocks must be longer than the time over which clusters are correlated.

    Raises
    ------
    ParameterError, TopologyError
        As of `clusters`; or no frame has any of the beads.

    Examples
    --------
    >>> import medyanpy as mp
    >>> places = [[0.0, 0, 0], [9, 0, 0], [1, 0, 0], [2, 0, 0], [10, 0, 0], [50, 0, 0]]
    >>> sizes = mp.analysis.cluster_sizes(places, cutoff=1.5)
    >>> sizes.size.tolist(), sizes.number.tolist(), sizes.mean.value
    ([1, 2, 3], [1.0, 1.0, 1.0], 2.0)
    """
    what = "cluster_sizes"
    found = [one.sizes for one in _clusters(Source(what, source), beads, cutoff, links, box)]
    size = np.unique(np.concatenate(found))
    if not len(size):
        raise ParameterError(f"{what}: there are no beads in these frames")
    each = np.zeros((len(found), len(size)))
    for k, sizes in enumerate(found):
        np.add.at(each[k], np.searchsorted(size, sizes), 1.0)
    largest = np.array([sizes.max(initial=0) for sizes in found], float)
    blocks = cuts(len(found), PARTS)

    def ratio(above: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Divide sums over all frames, (m, q) each; return the ratios and their errors."""
        sums, counts = (np.array([a[i:j].sum(axis=0) for i, j in blocks], float) for a in (above, below))
        value, error = jackknife(sums, counts)
        return np.asarray(value), np.asarray(error)

    count, beads_there = each.sum(axis=1), each @ size
    above, below = [beads_there, each @ size**2, largest], [count, beads_there, np.ones(len(found))]
    summary = ratio(np.column_stack(above), np.column_stack(below))
    if len(found) > 1 and np.isnan(summary[1]).any():
        warn_of_no_error(what, float(summary[0][0]))
    mean, weighted, widest = (Estimate(float(value), float(error)) for value, error in zip(*summary, strict=True))
    return ClusterSizes(size, *ratio(each, np.ones_like(each)), mean, weighted, widest)


def _clusters(frames: Source, beads: Any, cutoff: float | None, links: Any, box: Any) -> list[Clusters]:
    what = frames.what
    rows = frames.rows("beads", beads)
    if cutoff is None and links is None:
        raise ParameterError(f"{what}: give cutoff= (nm), or links=, or both")
    reach = None if cutoff is None else number(f"{what}: cutoff", cutoff, above=0.0)
    joined, boxes = _links(frames, links), frames.boxes(box)
    for cell in boxes:
        expect_room(f"{what}: cutoff", reach or 0.0, cell)
    each = enumerate(frames.each(rows))
    return [_connected(rows, x, reach, joined[k % len(joined)], frames.n_rows, boxes[k]) for k, x in each]


def _links(frames: Source, links: Any) -> list[np.ndarray]:
    """Return the checked links of every frame, or one array for all frames."""
    what = f"{frames.what}: links"
    if links is None:
        return [np.empty((0, 2), np.int64)]
    found = frames.arrays("links", links, 2)
    for one in found:
        wrong = (one < 0) | (one >= frames.n_rows)
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise TopologyError(
                f"{what}[{i}] = {one[i].tolist()}, but there is no bead {one[i, j]}: positions have {frames.n_rows} "
                "rows, counted from 0"
            )
    return found


def _connected(
    rows: np.ndarray, x: np.ndarray, reach: float | None, links: np.ndarray, n_rows: int, cell: np.ndarray | None
) -> Clusters:
    from scipy import sparse
    from scipy.sparse import csgraph

    here = np.flatnonzero(~np.isnan(x).any(axis=1))
    number_of = np.full(n_rows, -1)
    number_of[rows[here]] = np.arange(len(here))
    own = number_of[links]
    edges = [own[(own >= 0).all(axis=1)]]
    if reach is not None and len(here):
        edges.append(tree(x[here], cell).query_pairs(reach, output_type="ndarray"))
    i, j = np.concatenate(edges).T
    graph = sparse.coo_array((np.ones(len(i), bool), (i, j)), shape=(len(here), len(here)))
    count, label = csgraph.connected_components(graph, directed=False) if len(here) else (0, here)
    size, lowest = np.bincount(label, minlength=count), np.full(count, n_rows)
    np.minimum.at(lowest, label, rows[here])
    order = np.lexsort((lowest, -size))
    labels = np.full(len(rows), -1)
    labels[here] = np.argsort(order)[label]
    return Clusters(rows, labels, size[order])
