"""Sites of two groups as one table, and where they are along their filaments."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy.beads.chains import Chains
from medyanpy.core.growing_sites import FILAMENT, HANDLE, ROW, SPACING
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy.topology import Topology

__all__ = ["SiteTable", "chains_of", "made_apart", "too_near"]


class SiteTable:
    """Sites of two groups, each once, in the order in which they come.

    `of_a` (n_a,) and `of_b` (n_b,) are rows of the sites of each group, `row_a` and `row_b` (n,) the inverse, -1 of
    those that are not in it. `groups` (n,) are 1: in a only, 2: in b only, 3: in both. `keys` (n, k) identify each
    site. No more than `most_pairs` pairs may be bound.
    """

    def __init__(self, what: str, a: Sites, b: Sites | None) -> None:
        both = a if b is None else a + b
        keys = np.column_stack([_places(both), _keys(both)])
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        number = np.empty(len(first), np.int64)
        number[order] = np.arange(len(first))
        number = number[which.ravel()]
        self.sites = both[first[order]]
        self.keys = keys[first[order]]
        self.of_a = number[: len(a)]
        self.of_b = self.of_a if b is None else number[len(a) :]
        self.most_pairs: float = float(len(a) * len(b)) if b is not None else 0.5 * len(a) * (len(a) - 1)
        self.row_a, self.row_b = (self._inverse(what, name, of) for name, of in (("a", self.of_a), ("b", self.of_b)))
        self.groups = ((self.row_a >= 0) + 2 * (self.row_b >= 0)).astype(np.int32)

    def _inverse(self, what: str, name: str, of: np.ndarray) -> np.ndarray:
        row = np.full(len(self.sites), -1, np.int64)
        row[of] = np.arange(len(of))
        twice = np.flatnonzero(row[of] != np.arange(len(of)))
        if len(twice):
            i = int(twice[0])
            raise ParameterError(
                f"{what}: {name}[{i}] and {name}[{row[of[i]]}] are one site; partners= says how many links it may have"
            )
        return row

    def rows_of(self, other: "SiteTable") -> np.ndarray:
        """Find for each site of others its row here, -1 where it is not here, (n,) int32."""
        width = max(self.keys.shape[1], other.keys.shape[1])
        here, there = (_padded(keys, width) for keys in (self.keys, other.keys))
        _, which = np.unique(np.concatenate([here, there]), axis=0, return_inverse=True)
        which = which.ravel()
        place = np.full(which.max(initial=-1) + 1, -1, np.int32)
        place[which[: len(here)]] = np.arange(len(here), dtype=np.int32)
        return place[which[len(here) :]]


def made_apart(here: SiteTable, there: SiteTable, row: np.ndarray) -> bool:
    """Tell whether an anchor of both was made by different calls; `row` has the rows of those of `there`."""
    made = []
    for sites in (here.sites, there.sites):
        made.append(np.full(len(sites), -1))
        made[-1][np.diff(sites.start) == 0] = sites._made
    both = np.flatnonzero(row >= 0)
    one, other = made[0][row[both]], made[1][both]
    return bool(((one >= 0) & (other >= 0) & (one != other)).any())


def _places(sites: Sites) -> np.ndarray:
    """Return numbers (n, 4) that are equal for equal places on filaments that grow, and -1 of all other sites."""
    if sites.growth is None:
        return np.full((len(sites), 4), -1)
    out = sites.growth[:, [HANDLE, SPACING, FILAMENT, ROW]].copy()
    handles = sites.handles[0].topology.handles
    out[:, 0] = np.array([*(handles.index(h) for h in sites.handles), -1])[out[:, 0]]
    return out


def _keys(sites: Sites) -> np.ndarray:
    """Return numbers (n, k) that are equal for equal sites: arm or place, beads in order, and their weights, if not
    0."""
    n, counts = len(sites), np.diff(sites.start)
    most = int(counts.max(initial=0))
    beads, weights = np.full((n, most), np.inf), np.zeros((n, most))
    rows = np.repeat(np.arange(n), counts)
    columns = np.arange(len(rows)) - np.repeat(sites.start[:-1], counts)
    used = sites.weights != 0.0
    beads[rows[used], columns[used]] = sites.bead_numbers[used]
    weights[rows[used], columns[used]] = sites.weights[used]
    order = np.argsort(beads, axis=1, kind="stable")
    beads, weights = (np.take_along_axis(values, order, axis=1) for values in (beads, weights))
    place = np.zeros((n, 3)) if sites.arms is None else sites.arms.copy()
    place[counts == 0] = sites.anchor_positions
    pairs = np.stack([np.where(np.isinf(beads), -1.0, beads), weights], axis=2).reshape(n, 2 * most)
    return np.column_stack([place, pairs])


def put_steps(beside: np.ndarray, lattice: Any, of: np.ndarray, steps: int) -> None:
    """Write for the sites of a lattice, `of` by its rows, which are so many places ahead and behind, (n, 2)."""
    for k, by in enumerate((steps, -steps)):
        row = lattice.beside(by)
        beside[of, k] = np.where(row >= 0, of[row], -1)


def _padded(keys: np.ndarray, width: int) -> np.ndarray:
    more = np.tile([-1.0, 0.0], (len(keys), (width - keys.shape[1]) // 2))
    return np.column_stack([keys, more])


def chains_of(sites: Sites, topology: "Topology") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find for each site its filament or rod (int32, -1: none), arc length to it, and perimeter of a ring, or 0.

    Lengths are nm, of the start.
    """
    n = len(sites)
    label, along, ring = np.full(n, -1, np.int32), np.zeros(n), np.zeros(n)
    row = np.repeat(np.arange(n), np.diff(sites.start))
    grows = np.zeros(n, bool) if sites.growth is None else sites.growth[:, HANDLE] >= 0
    chains = 0
    chained: list[Any] = [handle for handle in topology.handles if isinstance(handle, Chains)]
    for handle in chained:
        first, last = handle.links.T
        length = np.linalg.norm(handle.positions[last] - handle.positions[first], axis=1)
        starts, node_of = handle.starts, handle.kind.node_chains
        counts = np.diff(handle.kind.link_starts)
        total = np.bincount(np.repeat(np.arange(len(counts)), counts), length, len(counts))
        s = np.zeros(len(handle))
        # All chains one after another, counted from the start of each.
        inner = last == first + 1
        s[last[inner]] = length[inner]
        s = np.cumsum(s)
        s -= s[starts[:-1]][node_of]
        number = np.full(topology.n_beads, -1)
        number[handle.beads] = np.arange(len(handle))
        own = (number[sites.bead_numbers] >= 0) & (sites.weights != 0.0) & ~grows[row]
        node = number[sites.bead_numbers[own]]
        where, w = s[node].copy(), sites.weights[own]
        if handle.closed:
            # On the link from the last node back to the first, the first is at the end.
            last_node = np.zeros(n, bool)
            last_node[row[own][np.isin(node, starts[1:] - 1)]] = True
            back = np.isin(node, starts[:-1]) & last_node[row[own]]
            where[back] = total[node_of[node[back]]]
            ring[row[own]] = total[node_of[node]]
        label[row[own]] = chains + node_of[node]
        np.add.at(along, row[own], w * where)
        if grows.any() and handle in sites.handles:
            mine = cast(np.ndarray, sites.growth)[:, HANDLE] == sites.handles.index(handle)
            _, spacing, filament, place, width, _ = cast(np.ndarray, sites.growth)[mine].T
            label[mine] = chains + filament
            # Places are those of a ring, of which a filament has a part.
            along[mine], ring[mine] = handle._rise * spacing * place, handle._rise * spacing * width
        chains += getattr(handle.kind, "n_room", handle.kind.n_chains)
    return label, along, ring


def too_near(label: np.ndarray, along: np.ndarray, ring: np.ndarray, separation: float) -> tuple[np.ndarray, ...]:
    """List sites nearer to each site along its filament than the separation: starts (n + 1,), sites (m,), int32."""
    # All filaments one behind another, too far apart to be near each other; rings go around once more.
    site = np.flatnonzero((label >= 0) & (separation > 0.0))
    again = site[ring[site] > 0.0]
    site, place = np.append(site, again), np.append(along[site], along[again] + ring[again])
    gap = 2.0 * separation + float(place.max(initial=0.0))
    place += gap * label[site]
    order = np.argsort(place, kind="stable")
    site, place = site[order], place[order]
    following = np.arange(1, len(site) + 1)
    n_near = np.maximum(np.searchsorted(place, place + separation, side="left") - following, 0)
    first = np.repeat(np.arange(len(site)), n_near)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(n_near) - n_near, n_near)
    pairs = np.column_stack([site[first], site[second]])
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    start = np.searchsorted(pairs[:, 0], np.arange(len(label) + 1))
    return start.astype(np.int32), pairs[:, 1].astype(np.int32)
