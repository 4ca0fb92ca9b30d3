"""The flow of filaments: links that keep their lengths, friction along and across."""

from functools import cached_property, partial

import numpy as np

from medyanpy._kernels.selected import constraints, constraints_twistable, thermostat
from medyanpy.beads.chains import carried_along
from medyanpy.flows import Flow, Stage, ornstein_uhlenbeck

__all__ = ["AlongAcrossFlow", "FilamentFlow", "parallel_directors"]


class FilamentFlow(Flow):
    """Joint constraint solves around A, B and O (_kernels/constraints.pxi).

    Parameters
    ----------
    filaments : Filaments
    layout : Layout
    """

    def __init__(self, filaments, layout) -> None:
        self._filaments = filaments
        self._first = first = layout.slice_of(filaments).start
        #: c1 and c2 of every node along and across, and the time and kT of the O that they are for.
        self._coefficients: np.ndarray | None = None
        self._made_for: tuple = ()
        self._solve = self._tangent = None
        if filaments.constrained:
            directors = filaments.directors
            kernel = constraints if directors is None else constraints_twistable
            first_director = 0 if directors is None else layout.slice_of(directors).start
            tables = _tables(filaments, first, first_director, kernel)
            work = np.empty((layout.threads, max(map(kernel.room_for, *tables[:3]))))
            self._solve = partial(kernel.Constraints, *tables, work, tolerance=filaments.tolerance)
            self._tangent = self._solve(action="tangent", h=0.0, kT=0.0, letter=0)

    def after_a(self, stage: Stage):
        return (self._solve(action="flight", h=stage.h, kT=0.0, letter=0),) if self._solve else ()

    def after_b(self, _: Stage):
        return self.tangent()

    def before_o(self, stage: Stage):
        if self._solve and not self._is_even:
            return (self._solve(action="normal", h=0.0, kT=stage.kT, letter=stage.index),)
        return ()

    after_o = after_b

    @property
    def obstacle(self):
        return "its links are constraints" if self._solve else "its frictions along and across turn with its links"

    def tangent(self):
        return (self._tangent,) if self._tangent else ()

    def settle(self):
        return (self._solve(action="settle", h=0.0, kT=0.0, letter=0),) if self._solve else ()

    def arrays(self):
        return {} if self._coefficients is None else {f"friction of {self._filaments.name}": self._coefficients}

    @cached_property
    def _is_even(self) -> bool:
        """Whether friction over mass is one number along each filament. O then is the same factor for all velocities of
        a filament: it takes nothing from normal parts to tangent ones, so that nothing need be there before."""
        f = self._filaments
        if f.friction_along is not None:
            return False
        # Fixed nodes do not move, whatever their friction.
        rate, filament = (f.friction / f.mass)[~f.fixed_beads], f.node_chains[~f.fixed_beads]
        if f.directors is not None:
            rate = np.concatenate([rate, f.directors.friction / f.directors.mass])
            filament = np.concatenate([filament, f.link_chains])
        first = np.zeros(f.n_filaments)
        first[filament] = rate
        # Up to a rounding of a user's products.
        return bool((np.abs(rate - first[filament]) <= 1e-14 * rate).all())


class AlongAcrossFlow(FilamentFlow):
    """Filaments with another friction along them than across: an O of their own (_kernels/thermostat.pyx)."""

    def in_place_of_o(self, stage: Stage):
        f = self._filaments
        if self._made_for != (stage.h, stage.kT):
            self._made_for = stage.h, stage.kT
            inverse_mass = np.where(f.fixed_beads, 0.0, 1.0 / f.mass)
            friction = np.stack([f.friction_along, f.friction])
            self._coefficients = np.stack(ornstein_uhlenbeck(friction, stage.h, stage.kT, inverse_mass), axis=2)
        neighbors = np.full((2, len(f)), -1, np.int32)
        a, b = f.links.T
        neighbors[0, b], neighbors[1, a] = self._first + a, self._first + b
        return (thermostat.AlongAcross(stage.index, self._first, *neighbors, *self._coefficients),)


def _tables(filaments, first: int, first_director: int, kernel) -> tuple[np.ndarray, ...]:
    """How filaments are spread over the lanes of a kernel; the columns are those of `Filaments` there."""
    # The same for all contexts, and after each edit of the topology, but for the places of nodes and directors.
    kept = vars(filaments).setdefault("_lanes", {})
    if kernel not in kept:
        kept[kernel] = _spread(filaments, kernel)
    parts, step, links, start, node, director, *others = kept[kernel]
    return parts, step, links, start, node + np.int32(first), director + np.int32(first_director), *others


def _spread(filaments, kernel) -> tuple[np.ndarray, ...]:
    """The same, with nodes and directors counted from the first of these filaments."""
    n_lanes, n_segments = kernel.LANE_COUNT, kernel.SEGMENT_COUNT
    lengths, starts, link_starts = filaments.link_lengths, filaments.starts, filaments.link_starts
    # A lane: first node (among the filament's), links and filament.
    batches: list[list[tuple[int, int, int]]] = []
    short = []
    for i, n in enumerate(np.diff(link_starts).tolist()):
        if n > kernel.LINKS_IN_ONE_PIECE:
            # Cut into segments.
            cuts = np.linspace(0, n, n_segments + 1).round().astype(int)
            batches.append([(a, b - a, i) for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)])
        else:
            short.append((n, i))
    n_long = len(batches)
    # Filaments of similar length run together.
    short.sort(key=lambda pair: (-pair[0], pair[1]))
    lanes = [(0, n, i) for n, i in short]
    # Of those that are left over, each for itself takes about twice its share of a full vector.
    few = len(lanes) % n_lanes
    alone = few if 2 * few <= n_lanes and not filaments.closed else 0
    together = len(lanes) - alone
    batches += [lanes[k : min(k + n_lanes, together)] for k in range(0, together, n_lanes)]
    n_together = len(batches)
    batches += [[lane] for lane in lanes[together:]]

    parts = np.array([-(-len(batch) // n_lanes) for batch in batches], np.int32)
    step = np.where(np.arange(len(batches)) < n_together, n_lanes, 1).astype(np.int32)
    links = np.array([max(n for _, n, _ in batch) for batch in batches], np.int32)
    # In whole vectors.
    links[n_together:] = -(-links[n_together:] // n_lanes) * n_lanes
    entries = np.array([kernel.entries_of(*of) for of in zip(step, links, strict=True)])
    start = np.concatenate([[0], np.cumsum(parts * entries)]).astype(np.int32)
    node = np.empty(start[-1], np.int32)
    director = np.zeros(start[-1], np.int32)
    length = np.zeros(start[-1])
    owned = np.zeros(start[-1], np.int32)
    following = np.full((len(batches), n_segments), -1, np.int32)
    for b, batch in enumerate(batches):
        # Where there is nothing a place is read nevertheless, of the same filament.
        node[start[b] : start[b + 1]] = starts[batch[0][2]]
        director[start[b] : start[b + 1]] = link_starts[batch[0][2]]
        for k, (a, n, i) in enumerate(batch):
            part, lane = divmod(k, n_lanes)
            row = start[b] + part * entries[b] + lane
            node[row : row + entries[b] - lane : step[b]] = starts[i]
            director[row : row + entries[b] - lane : step[b]] = link_starts[i]
            rows = row + step[b] * np.arange(n + 1)
            n_nodes = starts[i + 1] - starts[i]
            nodes = np.arange(a, a + n + 1) % n_nodes if filaments.closed else np.arange(a, a + n + 1)
            node[rows] = starts[i] + nodes
            first_link = link_starts[i] + a
            length[rows[:-1]] = lengths[first_link : first_link + n]
            director[rows[:-1]] = first_link + np.arange(n)
            owned[rows] = 1
            goes_on = filaments.closed or (b < n_long and k < n_segments - 1)
            if goes_on:
                # The node between two lanes belongs to the one that starts with it.
                owned[rows[-1]] = 0
                following[b, k] = (k + 1) % n_segments if b < n_long else k
    coupled = (following >= 0).any(axis=1).astype(np.int32)
    scale = np.divide(1.0, length**2, out=np.zeros_like(length), where=length > 0.0)
    return parts, step, links, start[:-1].copy(), node, director, length**2, scale, owned, following, coupled


def parallel_directors(filaments) -> np.ndarray:
    """(l, 3) unit vectors perpendicular to the links of filaments, without twist; what a ring needs to close is spread
    evenly over its joints."""
    x, links = filaments.positions, filaments.links
    t = x[links[:, 1]] - x[links[:, 0]]
    t /= np.linalg.norm(t, axis=1)[:, None]
    return carried_along(t, filaments.link_starts, filaments.closed)
