"""Flow of filaments: links that keep their lengths, friction along and across."""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._kernels.beads.present import PresentLanes
from medyanpy._kernels.selected import constraints, constraints_twistable, thermostat
from medyanpy.beads.chains import carried_along
from medyanpy.beads.constraint_rows import Rows
from medyanpy.core.flows import ConstraintFlow, Flow, Stage, ornstein_uhlenbeck
from medyanpy.surfaces.forms import of_text

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.beads.filaments import Filaments
    from medyanpy.core.layout import Layout

__all__ = ["AlongAcrossFlow", "FilamentFlow", "filament_rows", "parallel_directors"]

# Constraints of a link and its director, where they are solved together with others.
_LENGTH = of_text("length", "((x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - L^2)/2", 2, {}, ["L"])
_RIGHT_ANGLE = of_text("right angle", "(x2-x1)*x3 + (y2-y1)*y3 + (z2-z1)*z3", 3, {}, [])
_UNIT = of_text("unit", "(x^2 + y^2 + z^2 - 1)/2", 1, {}, [])


class FilamentFlow(ConstraintFlow, holds="its links are constraints"):
    """Joint constraint solves around A, B and O (_kernels/beads/constraints.pxi).

    Parameters
    ----------
    filaments : Filaments
    layout : Layout
    """

    def __init__(self, filaments: "Filaments", layout: "Layout") -> None:
        self._filaments = filaments
        if filaments.friction_along is not None:
            self.obstacle = self.obstacle_to_flights = "its frictions along and across turn with its links"
        elif filaments.directors is not None:
            self.obstacle = self.obstacle_to_flights = "its directors move with velocities"
        elif not self._is_even:
            self.obstacle_to_flights = self.UNEVEN
        self._first = first = layout.slice_of(filaments).start
        #: c1 and c2 of every node along and across, and the time and kT of the O that they are for.
        self._coefficients: np.ndarray | None = None
        self._made_for: tuple[float | None, ...] = ()
        self._solve: Callable[..., Operation] | None = None
        self._tangent: Operation | None = None
        joint = layout.topology.joint
        #: Filaments that are solved here, and not together with constraints written by a user.
        own = np.ones(filaments.kind.n_room, bool)
        if joint is not None:
            own &= ~joint.taken(filaments, filaments.kind.n_room)
        if filaments.constrained and own.any():
            directors = filaments.directors
            kernel = constraints if directors is None else constraints_twistable
            first_director = 0 if directors is None else layout.slice_of(directors).start
            slots, present = filaments.kind.slots, None
            if slots is None:
                tables = _tables(filaments, own, first, first_director, kernel)
                room = max(map(kernel.room_for, *tables[:3]))
            else:
                present = PresentLanes(layout.rank[slots].astype(np.int32), kernel.LANE_COUNT, kernel.SEGMENT_COUNT)
                tables = present.tables
                room = max(kernel.room_for(1, step, slots.shape[1]) for step in (1, kernel.LANE_COUNT))
            self._solve = partial(
                kernel.Constraints, *tables, np.empty((layout.threads, room)), tolerance=filaments.kind.tolerance,
                rise=filaments._rise or 0.0, present=present,
            )  # fmt: skip
            self._tangent = self._solve(action="tangent", h=0.0, kT=0.0, letter=0)

    def after_a(self, stage: Stage) -> "Sequence[Operation]":
        return (self._solve(action="flight", h=stage.h, kT=0.0, letter=0),) if self._solve else ()

    def after_b(self, _: Stage) -> "Sequence[Operation]":
        return self.tangent()

    def before_o(self, stage: Stage) -> "Sequence[Operation]":
        if self._solve and (self.mixed or not self._is_even):
            return (self._solve(action="normal", h=0.0, kT=stage.kT, letter=stage.index),)
        return ()

    def after_o(self, stage: Stage) -> "Sequence[Operation]":
        return self.after_b(stage)

    def tangent(self) -> "Sequence[Operation]":
        return (self._tangent,) if self._tangent else ()

    def settle(self) -> "Sequence[Operation]":
        return (self._solve(action="settle", h=0.0, kT=0.0, letter=0),) if self._solve else ()

    def arrays(self) -> dict[str, np.ndarray]:
        return {} if self._coefficients is None else {f"friction of {self._filaments.name}": self._coefficients}

    def carry(self, before: Flow, then: np.ndarray, now: np.ndarray) -> None:
        old = cast(FilamentFlow, before)
        mine, theirs = self._coefficients, old._coefficients
        if mine is not None and theirs is not None and self._made_for == old._made_for:
            mine[:, now] = theirs[:, then]

    @cached_property
    def _is_even(self) -> bool:
        """True if friction over mass is one number along each filament.

        O is then the same factor for all velocities of a filament. It takes nothing from normal parts to tangent
        ones, so that the normal parts need not be there before it.
        """
        f = self._filaments
        if f.friction_along is not None:
            return False
        # Fixed nodes do not move, whatever their friction.
        rate, filament = (f.friction / f.mass)[~f.kind.fixed_beads], f.kind.node_chains[~f.kind.fixed_beads]
        if f.directors is not None:
            rate = np.concatenate([rate, f.directors.friction / f.directors.mass])
            filament = np.concatenate([filament, f.kind.link_chains])
        first = np.zeros(f.kind.n_chains)
        first[filament] = rate
        # Up to the rounding of products in user input.
        return bool((np.abs(rate - first[filament]) <= 1e-14 * rate).all())


class AlongAcrossFlow(FilamentFlow):
    """Flow of filaments with different friction along and across: an O of their own (letters/thermostat.pyx)."""

    def in_place_of_o(self, stage: Stage) -> "Sequence[Operation]":
        f = self._filaments
        coefficients = self._coefficients
        if coefficients is None or self._made_for != (stage.h, stage.kT):
            self._made_for = stage.h, stage.kT
            inverse_mass = np.where(f.kind.fixed_beads, 0.0, 1.0 / f.mass)
            friction = np.stack([cast(np.ndarray, f.friction_along), f.friction])
            # O is not compiled without a temperature.
            kT = cast(float, stage.kT)
            coefficients = np.stack(ornstein_uhlenbeck(friction, stage.h, kT, inverse_mass), axis=2)
            self._coefficients = coefficients
        neighbors = np.full((2, len(f)), -1, np.int32)
        a, b = f.links.T
        neighbors[0, b], neighbors[1, a] = self._first + a, self._first + b
        return (thermostat.AlongAcross(stage.index, self._first, *neighbors, *coefficients),)


def filament_rows(filaments: "Filaments") -> list[Rows]:
    """List the constraints on the nodes of filaments, and on their directors."""
    nodes, length, chain = filaments.beads[filaments.links], filaments.link_lengths, filaments.kind.link_chains
    tolerance, nothing = filaments.kind.tolerance, np.empty((len(length), 0))

    def label(what: str) -> Callable[[int], str]:
        return lambda i: f"the {what} of link {i}"

    # |g| over the gradient's length is compared: with these scales the errors are those of constraints.pxi.
    rows = [Rows(_LENGTH, nodes, length[:, None], tolerance * length / np.sqrt(2.0), chain, label("length"), 0.5)]
    if filaments.directors is not None:
        director = filaments.directors.beads[:, None]
        scale = tolerance * length / np.sqrt(2.0 + length**2)
        rows += [
            Rows(_RIGHT_ANGLE, np.hstack([nodes, director]), nothing, scale, chain, label("right angle")),
            Rows(_UNIT, director, nothing, np.full(len(length), tolerance), chain, label("director")),
        ]
    return rows


def _tables(
    filaments: "Filaments", own: np.ndarray, first: int, first_director: int, kernel: Any
) -> tuple[np.ndarray, ...]:
    """Spread the filaments marked in `own` (f,) over the lanes of a kernel; columns are those of `Filaments` there."""
    # The same for all contexts, and after each edit of the topology, but for the places of nodes and directors.
    kept = vars(filaments).setdefault("_lanes", {})
    key = kernel, None if own.all() else own.tobytes()
    if key not in kept:
        kept[key] = _spread(filaments, own, kernel)
    parts, step, links, start, node, director, *others = kept[key]
    return parts, step, links, start, node + np.int32(first), director + np.int32(first_director), *others


def _spread(filaments: "Filaments", own: np.ndarray, kernel: Any) -> tuple[np.ndarray, ...]:
    """Spread filaments as `_tables`, with nodes and directors counted from the first of these filaments."""
    n_lanes, n_segments = kernel.LANE_COUNT, kernel.SEGMENT_COUNT
    lengths, starts, link_starts = filaments.link_lengths, filaments.starts, filaments.kind.link_starts
    n_links = np.diff(link_starts)
    # Long ones are cut into segments, of which each batch is one filament.
    long = np.flatnonzero(own & (n_links > kernel.LINKS_IN_ONE_PIECE))
    cuts = np.linspace(0, n_links[long], n_segments + 1, axis=1).round().astype(int)
    n_long = len(long)
    # Filaments of similar length run together.
    short = np.flatnonzero(own & (n_links <= kernel.LINKS_IN_ONE_PIECE))
    short = short[np.argsort(-n_links[short], kind="stable")]
    # Each of the remaining filaments alone takes about twice its share of a full vector.
    few = len(short) % n_lanes
    alone = few if 2 * few <= n_lanes and not filaments.closed else 0
    together = len(short) - alone
    n_together = n_long + -(-together // n_lanes)

    # For every lane its batch, its place in that, the first node of its filament and how many links.
    k = np.arange(len(short))
    batch_of = np.where(k < together, n_long + k // n_lanes, n_together + k - together)
    place_in = np.where(k < together, k % n_lanes, 0)
    batch = np.concatenate([np.repeat(np.arange(n_long), n_segments), batch_of])
    place = np.concatenate([np.tile(np.arange(n_segments), n_long), place_in])
    first = np.concatenate([cuts[:, :-1].ravel(), np.zeros(len(short), int)])
    n = np.concatenate([np.diff(cuts, axis=1).ravel(), n_links[short]])
    filament = np.concatenate([np.repeat(long, n_segments), short])

    n_batches = n_together + alone
    parts = -(-np.bincount(batch, minlength=n_batches) // n_lanes)
    step = np.where(np.arange(n_batches) < n_together, n_lanes, 1)
    links = np.zeros(n_batches, int)
    np.maximum.at(links, batch, n)
    # In whole vectors.
    links[n_together:] = -(-links[n_together:] // n_lanes) * n_lanes
    entries = np.array([kernel.entries_of(*of) for of in zip(step.tolist(), links.tolist(), strict=True)], int)
    start = np.concatenate([[0], np.cumsum(parts * entries)])
    part, lane = np.divmod(place, n_lanes)
    row, hop = start[batch] + part * entries[batch] + lane, step[batch]

    # An empty lane reads a place nevertheless: of the same filament, or of the first of the batch.
    leader = np.zeros(n_batches, int)
    leader[batch[::-1]] = filament[::-1]
    node, director = (np.repeat(values[leader], parts * entries).astype(np.int32) for values in (starts, link_starts))
    at, of, _ = _counted(row, hop, -(-(entries[batch] - lane) // hop))
    node[at], director[at] = starts[filament[of]], link_starts[filament[of]]
    length, owned = np.zeros(start[-1]), np.zeros(start[-1], np.int32)
    at, of, k = _counted(row, hop, n + 1)
    number = first[of] + k
    if filaments.closed:
        number %= np.diff(starts)[filament[of]]
    node[at], owned[at] = starts[filament[of]] + number, 1
    at, of, k = _counted(row, hop, n)
    link = link_starts[filament[of]] + first[of] + k
    length[at], director[at] = lengths[link], link
    following = np.full((n_batches, n_segments), -1, np.int32)
    goes_on = np.flatnonzero(filaments.closed | ((batch < n_long) & (place < n_segments - 1)))
    # The node between two lanes belongs to the one that starts with it.
    owned[row[goes_on] + hop[goes_on] * n[goes_on]] = 0
    next_one = np.where(batch < n_long, (place + 1) % n_segments, place)
    following[batch[goes_on], place[goes_on]] = next_one[goes_on]
    coupled = (following >= 0).any(axis=1)
    scale = np.divide(1.0, length**2, out=np.zeros_like(length), where=length > 0.0)
    tables = (parts, step, links, start[:-1])
    return (
        *(a.astype(np.int32) for a in tables), node, director, length**2, scale, owned, following,
        coupled.astype(np.int32),
    )  # fmt: skip


def _counted(first: np.ndarray, step: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the numbers first + step k, k < count, of each of several (m,), one after another.

    Also returns the owner of each number, and its k.
    """
    of = np.repeat(np.arange(len(count)), count)
    k = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    return first[of] + step[of] * k, of, k


def parallel_directors(filaments: "Filaments") -> np.ndarray:
    """Return unit vectors (l, 3) perpendicular to the links of filaments, without twist.

    The twist that a ring needs to close is spread evenly over its joints.
    """
    x, links = filaments.positions, filaments.links
    t = x[links[:, 1]] - x[links[:, 0]]
    t /= np.linalg.norm(t, axis=1)[:, None]
    return carried_along(t, filaments.kind.link_starts, filaments.closed)
