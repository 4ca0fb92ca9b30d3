"""Base of jumps that bind sites by links."""

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.core.neighbors import NeighborList
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.jumps.link_binding import Joined
from medyanpy._kernels.selected import bonds
from medyanpy._tools.sums import total as total_of
from medyanpy.core import growing_sites
from medyanpy.core.handles import bead_numbers, handles_in
from medyanpy.core.sites import Sites, as_sites
from medyanpy.errors import ParameterError, SitesWarning, TopologyError, warn_outside
from medyanpy.forces._base import bead_rows
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Jump
from medyanpy.jumps._site_tables import SiteTable, chains_of, made_apart, too_near

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.forces import Force
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["LinkingJump"]

# Share of the reach. Wider means fewer builds of the list and longer rows; see tests/benchmarks/bench_jumps.py.
_SKIN = 0.75
# Logarithm of how far the bound of a link's rate may exceed the rate. More means more attempts that are refused, and
# links that are measured less often.
EXCESS = 3.0
# Quadrature nodes for the volume that a bound link explores, on each side of its relaxed length.
_NODES = 200


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights, cached, since they take most of the time of a change of temperature."""
    return np.polynomial.legendre.leggauss(_NODES)


class LinkingJump(Jump):
    """Base of jumps that bind sites of two groups by links of one force."""

    #: Arguments with the sites of the two groups.
    sides: ClassVar[tuple[str, str]] = ("a", "b")

    def _take_sites(self, given: dict[str, Any]) -> None:
        """Keep links, sites and what may be bound; before this `_partners` is set."""
        links, (one, other) = given["links"], self.sides
        if not isinstance(links, Links):
            raise ParameterError(f"{self.name}: links must be a Links force, not {type(links).__name__}")
        if links.states and not self._has_states:
            raise ParameterError(
                f"{self.name}: {links.name} has states, which links of a LinkBinding alone have; heads come and go at "
                "rates of their own"
            )
        self._links, self._reach, self._same_filament = links, given["reach"], bool(given["same_filament"])
        self._a = as_sites(f"{self.name}: {one}", given[one])
        self._own_b = None if given[other] is None else as_sites(f"{self.name}: {other}", given[other])
        self._table = SiteTable(self.name, self._a, self._own_b)
        self._bound = self._checked_pairs(given["bound"])
        self._expect_there()
        self._nodes_counted = growing_sites.counted_from(self._a, self._b)

    def _expect_there(self) -> None:
        """Refuse what is bound at the start at places that filaments that grow do not have then."""
        for side, sites in enumerate((self._a, self._b)):
            if sites.growth is None:
                continue
            missing = np.append(~growing_sites.at_start(sites.growth, sites.handles), False)[self._bound[:, side]]
            if missing.any():
                i = int(np.argmax(missing))
                raise TopologyError(
                    f"{self.name}: bound[{i}, {side}] = {self._bound[i, side]} of {self.sides[side]} is a place that "
                    "its filament does not have at the start"
                )

    _partners: int
    _reach: float
    _same_filament: bool
    #: Most links that may be bound; None: without limit.
    _most_links: int | None = None
    #: Least distance of bound sites along a filament, nm.
    _separation: float = 0.0
    #: Whether a row of what is bound at the start may be -1: an end that holds nothing.
    _may_be_free = False
    #: Whether links may have states.
    _has_states = False

    @property
    def _b(self) -> Sites:
        return self._a if self._own_b is None else self._own_b

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (*self._a.handles, *self._b.handles)

    @property
    def _held_places(self) -> Sites:
        return self._table.sites

    @property
    def forces(self) -> "tuple[Force, ...]":
        return (self._links,)

    def _checked_pairs(self, bound: Any) -> np.ndarray:
        given = np.empty((0, 2), np.int64) if len(bound) == 0 else bound
        pairs = bead_rows(f"{self.name}: bound", given, (None, 2))
        for side, sites in enumerate((self._a, self._b)):
            bad = (pairs[:, side] < (-1 if self._may_be_free else 0)) | (pairs[:, side] >= len(sites))
            if bad.any():
                i = int(np.argmax(bad))
                there = f"{self.sides[side]} has sites 0 to {len(sites) - 1}"
                raise TopologyError(f"{self.name}: bound[{i}, {side}] = {pairs[i, side]}, but {there}")
        return pairs

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        b = np.zeros(0, bool) if self._own_b is None else self._own_b.naming(gone)
        return {f"site of {name}": own for name, own in zip(self.sides, (self._a.naming(gone), b), strict=True)}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        a, b = (terms[f"site of {name}"] for name in self.sides)
        b = a if self._own_b is None else b
        # Behind the last is what -1 stands for: an end that is free.
        left = ~(np.append(a, False)[self._bound[:, 0]] | np.append(b, False)[self._bound[:, 1]])
        numbers = np.append(np.cumsum(~a) - 1, -1), np.append(np.cumsum(~b) - 1, -1)
        bound = np.column_stack([number[rows] for number, rows in zip(numbers, self._bound[left].T, strict=True)])
        self._a, self._own_b = self._a[~a], None if self._own_b is None else self._own_b[~b]
        self._table = SiteTable(self.name, self._a, self._own_b)
        self._bound = self._checked_pairs(bound)
        self._was_cut = True
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        now = super()._arguments_now()
        own = dict(zip(self.sides, (self._a, self._own_b), strict=True))
        if not (self._was_cut or any(self._has_other_sites(name, sites) for name, sites in own.items())):
            return now
        return now | own | {"bound": self._bound}

    def _has_other_sites(self, name: str, own: Sites | None) -> bool:
        """True if a handle that was given has other beads now than when sites were made from it."""
        given = self._arguments[name]
        return bool(handles_in(given)) and not np.array_equal(bead_numbers(given), cast(Sites, own).bead_numbers)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        growing_sites.expect_counted(self.name, self._nodes_counted)
        self._a.check(f"{self.name}: {self.sides[0]}", topology, grows=True)
        self._b.check(f"{self.name}: {self.sides[1]}", topology, grows=True)

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return a remark on a group without sites."""
        empty = [name for name, sites in zip(self.sides, (self._a, self._b), strict=True) if not len(sites)]
        return [(SitesWarning, f"{self.name}: {empty[0]} has no sites, so that nothing binds")] if empty else []

    def _spring(self) -> tuple[Any, Any, Any]:
        """Kind, stiffness and length of the links that bind."""
        found = self._links._defaults
        for name, value in found.items():
            if value is None:
                raise ParameterError(
                    f"{self.name}: the links of {self._links.name} do not all have the same {name}, so that those that "
                    "bind have none"
                )
        if found["stiffness"] == 0.0:
            what = f"{self.name}: {self._links.name}"
            raise ParameterError(f"{what} has stiffness = 0 but must be > 0: its reach is endless")
        kind = Radial.ROPE if self._links.one_sided else Radial.HARMONIC
        return kind, found["stiffness"], found["length"]

    def window(self, kT: float) -> tuple[float, float]:
        """Return the lengths at which pairs bind, nm."""
        return self._within_reach(kT)

    def _within_reach(self, kT: float) -> tuple[float, float]:
        _, stiffness, length = self._spring()
        half = float(np.sqrt(2.0 * self._reach * kT / stiffness))
        return 0.0 if self._links.one_sided else max(0.0, length - half), length + half

    def volume(self, kT: float) -> float:
        """Return the integral of exp(-U/kT) over the vector between the ends, as far as the reach goes, nm³."""
        (_, stiffness, length), (low, high) = self._spring(), self._within_reach(kT)
        nodes, weights = _quadrature()
        total = 0.0
        for start, end in ((low, length), (length, high)):
            r = start + 0.5 * (end - start) * (nodes + 1.0)
            slack = self._links.one_sided and end == length
            u = 0.0 * r if slack else 0.5 * stiffness * (r - length) ** 2
            total += 0.5 * (end - start) * total_of(weights * (4.0 * np.pi * r**2 * np.exp(-u / kT)))
        return total

    def _slack(self, kT: float, share: float, catch_share: float, slip: float, catch: float) -> float:
        """Find how far the length of a link may change until its bound of the rate is exp(EXCESS) times the rate, nm.

        That is where it is stretched by 3 (kT/stiffness)^(1/2), or of driven rates by any force; slip and catch are
        1/F_s and 1/F_c.
        """
        _, stiffness, _ = self._spring()
        steepest = max(slip * (catch_share < 1.0), catch * (catch_share > 0.0))
        if steepest > 0.0:
            return EXCESS / (steepest * float(stiffness))
        # λ (3 x + x²/2) = EXCESS, x in units of that length.
        x = math.sqrt(9.0 + 2.0 * EXCESS / share) - 3.0 if share > 0.0 else math.inf
        return x * math.sqrt(kT / stiffness)

    def _follow_links(
        self, operation: Any, kT: float, on: float, off: float, law: tuple[float, ...], slack: float, driven: bool,
        average: float | None = None,
    ) -> None:  # fmt: skip
        """Give an operation its rates (1/s), its law and the present links; see `set_rule` of the kernel."""
        kind, stiffness, length = self._spring()
        springs, (low, high) = self._links._springs(stiffness, length), self.window(kT)
        operation.layout.expect_width(self.name, max(high, float(springs[:, 1].max())))
        n = len(self._table.sites)
        rows, none = np.arange(n, dtype=np.int32), (np.zeros(n + 1, np.int32), np.zeros(0, np.int32))
        near = NeighborList(rows, self._table.groups, np.full(n, 0.5 * high), high, _SKIN * high, *none)
        # Rates of averages do not change with lengths: bounds are those of pairs alone.
        slack = slack if average is None else math.inf
        rule = kT, near, int(kind), springs, low, high, on, off, *law, slack, driven
        operation.set_rule(*rule, average or 0.0)

    def _labels(self, topology: "Topology") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels (n,) of sites that are not bound to each other, and which are too near to each; see the
        kernel."""
        label, along, length = chains_of(self._table.sites, topology)
        start, near = too_near(label, along, length, self._separation)
        return (np.full(len(label), -1, np.int32) if self._same_filament else label), start, near

    def joined(self, operation: "JumpOperation", force: "Force", bound: "Operation", layout: "Layout") -> "Operation":
        kind, stiffness, length = self._spring()
        coming = bonds.PassingBonds(force.name, kind, self._links._springs(stiffness, length), operation.linked)
        coming.acts_on_points = operation.on_points
        return Joined(force.name, bound, coming)

    def carry(self, before: "JumpOperation", operation: "JumpOperation") -> None:
        # Links with both sites still there.
        row = self._table.rows_of(before.table)
        ids, pairs = before.links()
        left = (row[pairs] >= 0).all(axis=1)
        operation.take_over(before, ids[left], row[pairs[left]].astype(np.int64), row)

    def _held_in(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return how many links, or heads without one, hold each of its sites, (n,)."""
        links = arrays["end"] - self._partners * np.arange(len(arrays["end"]))
        return links if "holding" not in arrays else np.maximum(links, arrays["holding"] > 0)

    def check_room(
        self, operation: "JumpOperation", arrays: "Mapping[Jump, Mapping[str, np.ndarray]]", is_start: bool
    ) -> None:
        if not operation.sharers:
            return
        held = [self._held_in(arrays[self])]
        room = np.where(held[0] > 0, self._partners, 0)
        for jump, row in operation.sharers:
            held.append(np.append(jump._held_in(arrays[jump]), 0)[row])
            room = np.maximum(room, np.where(held[-1] > 0, jump._partners, 0))
        # Of any jumps, who has bound last has found room.
        over = (held[0] > 0) & (np.sum(held, axis=0) > room)
        if not over.any():
            return
        site = int(np.argmax(over))
        side = int(self._table.row_a[site] < 0)
        where = f"{(self._table.row_a, self._table.row_b)[side][site]} of {self.sides[side]}, which it is said to hold,"
        for i, rows in enumerate(self._bound.tolist() if is_start else []):
            for k, of in enumerate((self._table.of_a, self._table.of_b)):
                if rows[k] >= 0 and of[rows[k]] == site:
                    where = f"bound[{i}, {k}] = {rows[k]} of {self.sides[k]}"
        names = [jump.name for (jump, _), theirs in zip(operation.sharers, held[1:], strict=True) if theirs[site]]
        raise ParameterError(
            f"{self.name}: {where} is held by {' and '.join(names)}: that place has room for {room[site]}. Give other "
            "places"
        )

    def meet(self, operation: "JumpOperation", others: "list[tuple[Jump, JumpOperation]]") -> None:
        mine = self._table
        shared: list[Any] = []
        apart: list[Jump] = []
        earlier: list[tuple[LinkingJump, np.ndarray]] = []
        met = False
        for jump, other in others:
            met = met or jump is self
            if isinstance(jump, LinkingJump) and other is not operation:
                row = jump._table.rows_of(mine)
                if (row >= 0).any():
                    shared.append((other, row))
                    earlier += [(jump, row)] * (not met)
                    apart += [jump] * made_apart(jump._table, mine, row)
        operation.share(shared)
        operation.sharers = earlier
        # The first of them is asked.
        if apart and next(jump for jump, _ in others if jump is self or jump in apart) is self:
            names = [jump.name for jump in apart]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            warn_outside(
                f"{self.name}: it has an anchor at the same place as {', '.join(names[:3])}{more}: anchors with "
                f"equal coordinates are one site, with {self._partners} link{'s' * (self._partners > 1)} in all. For "
                "sites of their own put them 0.001 nm apart; for one site give all jumps the same Sites",
                SitesWarning,
            )

    @abstractmethod
    def _put(self, operation: Any, a: int, b: int) -> str:
        """Bind sites now, one of which may be -1 where an end may be free: why not, or an empty string."""

    def _put_all(self, operation: Any, what: str, rows: np.ndarray, error: type[Exception]) -> None:
        for i, (a, b) in enumerate(rows.tolist()):
            sites = [-1 if row < 0 else int(of[row]) for row, of in ((a, self._table.of_a), (b, self._table.of_b))]
            why = self._put(operation, *sites)
            if why:
                raise error(f"{self.name}: {what}[{i}] = ({a}, {b}) cannot be: {why}")

    def take_links(self, operation: Any, links: Any, states: Any, look: "Callable[[], State]") -> None:
        """Bind these pairs, (k, 2) rows of both groups, and no others, in states, or where none are given in those that
        they have; after an error nothing has changed."""
        rows = self._checked_pairs(links)
        numbers = None if states is None else self._links._state_numbers(f"{self.name}: states", states, len(rows))
        own = {**operation.arrays(), **self._arrays_of_pools(operation)}
        before = {name: array.copy() for name, array in own.items()}
        try:
            for name, array in self.arrays_shown(operation, {"links": rows[:0], "states": ()}).items():
                own[name][...] = array
            self._put_all(operation, "links", rows, TopologyError)
            self._keep_known(operation, before, look)
        except BaseException:
            operation.forget_all()
            # Places of lists among them: bits of a run are those without the call.
            for name, array in before.items():
                own[name][...] = array
            raise
        operation.forget_all()
        if numbers is not None:
            p = self._partners
            slots = {(s // p, int(j)): s for s, j in enumerate(own["other"]) if j >= 0}
            for (a, b), number in zip(rows.tolist(), numbers, strict=True):
                i, j = self._table.of_a[a], self._table.of_b[b]
                own["state"][[slots[i, j], slots[j, i]]] = number

    def _arrays_of_pools(self, operation: Any) -> dict[str, np.ndarray]:
        """Return the counts from which what it binds comes, beside its own arrays."""
        return {}

    def _keep_known(self, operation: Any, before: Mapping[str, np.ndarray], look: "Callable[[], State]") -> None:
        """Let links between the same two sites keep what was known of them."""
        p, own = self._partners, operation.arrays()
        known = {(s // p, int(j)): s for s, j in enumerate(before["other"]) if j >= 0}
        for s, j in enumerate(own["other"]):
            if (s // p, int(j)) in known:
                for name in {"mean", "state"} & set(own):
                    own[name][s] = before[name][known[s // p, int(j)]]

    def shown(self, operation: "JumpOperation") -> Mapping[str, Any]:
        _, pairs = operation.links()
        out = {"links": np.column_stack(self.ids(operation, *pairs.T))}
        if operation.n_states > 1:
            out["states"] = operation.states()
        for array in out.values():
            array.flags.writeable = False
        return out

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        pairs = self._checked_pairs(shown["links"])
        arrays = {name: array.copy() for name, array in operation.arrays().items()}
        n, p = len(self._table.sites), self._partners
        arrays["other"][...], arrays["id"][...], arrays["end"][...] = -1, -1, p * np.arange(n)
        if "mean" in arrays:
            arrays["mean"][...] = 0.0
        if "state" in arrays:
            arrays["state"][...] = 0
            if "states" not in shown:
                raise TopologyError(f"{self.name}: {self._links.name} has states, but not those of the links there")
            states = np.asarray(shown["states"]).tolist()
        # In their order, as the letter binds them: each is at both of its ends.
        ends = np.column_stack([self._table.of_a[pairs[:, 0]], self._table.of_b[pairs[:, 1]]])
        for link, (i, j) in enumerate(ends.tolist()):
            for site, other in ((i, j), (j, i)):
                slot = int(arrays["end"][site])
                if slot == p * (site + 1):
                    raise TopologyError(f"{self.name}: a site is said to have more than {p} links")
                arrays["other"].ravel()[slot], arrays["id"].ravel()[slot] = other, link
                if "state" in arrays:
                    arrays["state"][slot] = states[link]
                arrays["end"][site] += 1
        arrays["numbers"][...] = len(ends), max(len(ends), int(arrays["numbers"][1]))
        # Pairs in reach are listed again.
        arrays["listed"][...] = 0
        return arrays

    def beside_frames(self) -> Mapping[str, Sites]:
        return {"a": self._a, "b": self._b}

    def ids(self, operation: "JumpOperation", a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of `a` and `b`."""
        table = operation.table
        straight = (table.row_a[a] >= 0) & (table.row_b[b] >= 0)
        return np.where(straight, table.row_a[a], table.row_a[b]), np.where(straight, table.row_b[b], table.row_b[a])

    def check_state(self, operation: "JumpOperation", arrays: Mapping[str, np.ndarray]) -> None:
        n, p = len(self._table.sites), self._partners
        end, other, ids = arrays["end"].astype(np.int64), arrays["other"].reshape(n, p), arrays["id"].reshape(n, p)
        filled = end - p * np.arange(n)
        ok = bool(((filled >= 0) & (filled <= p)).all())
        if ok:
            here = np.arange(p) < filled[:, None]
            site = np.nonzero(here)[0]
            ok = bool((other[here] >= 0).all() and (other[here] < n).all() and (other[here] != site).all())
            # Each link is at both of its ends, under one number and in one state.
            state = arrays.get("state", np.zeros(n * p, np.int32))[: n * p].reshape(n, p)
            forth = np.column_stack([ids[here], site, other[here], state[here]])
            back = forth[:, [0, 2, 1, 3]]
            known = (state >= 0) & (state < max(1, len(self._links.states)))
            ok = ok and bool(known.all()) and not state[~here].any()
            ok = ok and np.array_equal(forth[np.lexsort(forth.T)], back[np.lexsort(back.T)])
            ok = ok and (np.unique(ids[here], return_counts=True)[1] == 2).all()
            bound, ever = arrays["numbers"].tolist()
            ok = ok and 2 * bound == here.sum() and int(ids[here].max(initial=-1)) < ever
            ok = ok and bool((ids[here] >= 0).all()) and (self._most_links is None or bound <= self._most_links)
            ok = ok and bool(np.isfinite(arrays.get("mean", np.zeros(1))).all())
            ok = ok and arrays["listed"].tolist() in ([0, 0], [1, 0], [1, 1])
        if not ok:
            raise ParameterError(f"{self.name}: the links that are said to be bound cannot be")
