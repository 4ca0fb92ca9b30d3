"""Base of jumps whose molecules hold places by heads."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.jumps.heads import Heads
from medyanpy.beads import Lattice
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.jumps._linking import EXCESS, LinkingJump
from medyanpy.jumps._site_tables import put_steps
from medyanpy.pools import MoleculePool, Species, pool_species

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.state import State

__all__ = ["HeadsJump"]


class HeadsJump(LinkingJump):
    """Base of jumps whose molecules hold a place by each of two heads, or by one that a site carries."""

    kinds: ClassVar[tuple[str, ...]] = (
        "bind", "unbind", "attach", "detach", "step", "step back", "leave end", "hold on", "let go"
    )  # fmt: skip
    sides: ClassVar[tuple[str, str]] = ("lattice_a", "lattice_b")
    _partners = 1
    #: Heads of a bundle.
    _heads = 1
    _species: Species | None

    def _take_species(self, species: Any) -> Species:
        return pool_species(f"{self.name}: pool must be a species", species, "alpha-actinin")

    @property
    def _may_be_free(self) -> bool:  # type: ignore[override]
        return self._species is not None

    def _take_sites(self, given: dict[str, Any]) -> None:
        super()._take_sites(given)
        free = (self._bound < 0).all(axis=1)
        if free.any():
            raise ParameterError(
                f"{self.name}: bound[{int(np.argmax(free))}] = (-1, -1), but a molecule that holds nothing is in the "
                "pool"
            )

    @property
    def _pool(self) -> Species | None:
        return self._species

    @property
    def _lattice_a(self) -> Sites:
        return self._a

    @property
    def _lattice_b(self) -> Sites:
        return self._b

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return () if self._species is None else (self._species.pool,)

    def _beside(self) -> np.ndarray:
        """Return the sites ahead and behind to which heads walk, (n, 2) int32: -1 where there is none, -2 twice where
        heads stay."""
        table = self._table
        beside = np.full((len(table.sites), 2), -2, np.int32)
        b = self._own_b if self._species is not None else None
        for lattice, of in ((self._a, table.of_a), (b, table.of_b)):
            if isinstance(lattice, Lattice):
                put_steps(beside, lattice, of, self._steps_on(lattice))
        return beside

    @abstractmethod
    def _steps_on(self, lattice: Lattice) -> int:
        """Return how many places further a head goes."""

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        table, species = self._table, self._species
        label, *_ = self._labels(layout.topology)
        pool = None if species is None else layout.pools[species.pool]
        places = [of.astype(np.int32) for of in (table.of_a, table.of_b)]
        operation = Heads(
            self.name, kT, self.driven, self.every, table.sites.bind(layout), table.sites.on_points(layout), label,
            table.most_pairs, table.groups, places, pool, -1 if species is None else species.number, self._heads,
            self._beside(),
        )  # fmt: skip
        operation.table, operation.layout = table, layout
        self.update(operation, kT)
        self._put_all(operation, "bound", self._bound, ParameterError)
        return operation

    def _put(self, operation: Any, a: int, b: int) -> str:
        if max(a, b) < 0:
            return "a molecule that holds nothing is in the pool"
        why: str = operation.put_head(a, 1, 1, b) if a >= 0 else operation.put_head(b, 2, 1)
        return why

    def _arrays_of_pools(self, operation: Any) -> dict[str, np.ndarray]:
        return {} if self._species is None else {" pool": operation.molecules.array}

    def _keep_known(self, operation: Any, before: Mapping[str, np.ndarray], look: "Callable[[], State]") -> None:
        super()._keep_known(operation, before, look)
        own = operation.arrays()
        stay = (before["head"] == own["head"]) & (own["head"] > 0)
        own["holding"][stay] = before["holding"][stay]
        if self._species is None or self._species.number >= operation.molecules.n_species:
            # Reservoirs give and take without end.
            return
        # A molecule that still holds a place by the same head is the same.
        then, now = (self._pairs_in(arrays).tolist() for arrays in (before, own))
        of = {(k, site): m for m, pair in enumerate(then) for k, site in enumerate(pair) if site >= 0}
        left, new = set(range(len(then))), []
        for pair in now:
            same = [of[end] for end in enumerate(pair) if of.get(end) in left]
            left.difference_update(same[:1])
            new += [] if same else [pair]
        counts = operation.molecules.array[:, self._species.number]
        for sign, pairs in ((-1, new), (1, [then[m] for m in sorted(left)])):
            if len(pairs) and len(counts) > 1:
                x = self._table.sites.positions(look())
                cells = [operation.molecules.cell_at(x[max(pair)]) for pair in pairs]
            else:
                cells = [0] * len(pairs)
            np.add.at(counts, cells, sign)
        if (counts < 0).any():
            cell = int(np.argmin(counts))
            raise ParameterError(
                f"{self.name}: links= take {-counts[cell]} more of {self._species.name} from the pool than there are"
                f"{f' in its cell {cell}' * (len(counts) > 1)}: give fewer, or call set_pools before"
            )

    def _set_rates(
        self, operation: Any, kT: float, off: tuple[float, float], constants: "np.ndarray | None", on_rate: float,
        hold_on: float = 0.0,
    ) -> tuple[float, float]:  # fmt: skip
        """Give an operation the rates of its heads; return those of pairs, at most, and of links, 1/s.

        Heads take hold at the `on_rate` of a relaxed link, or where there are constants at the rate that they say.
        """
        if self._species is None:
            operation.set_heads((0.0, 0.0), off, (0.0, 0.0), hold_on)
            return on_rate, off[0]
        volume, closing = self.volume(kT), self._closing(kT, off, constants, on_rate)
        operation.set_heads([rate * volume for rate in closing], off, closing, hold_on)
        return max(closing), sum(off)

    def _closing(
        self, kT: float, off: tuple[float, float], constants: "np.ndarray | None", on_rate: float
    ) -> list[float]:
        """Return the rates at which the heads of a molecule take hold where a link would be relaxed, 1/s."""
        if constants is None or self._species is None:
            return [on_rate, on_rate]
        volume = self.volume(kT)
        return [rate / (constant * volume) for rate, constant in zip(off, constants.tolist(), strict=True)]

    # What states and files hold -----------------------------------------------------------------------------

    def _molecules(self, operation: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the sites of head 1 and head 2 of each molecule, -1: none, and how many hold of each bundle."""
        arrays = operation.arrays()
        pairs, holding = self._pairs_in(arrays), arrays["holding"]
        return pairs, np.where(pairs >= 0, np.append(holding, 0)[pairs], 0).astype(np.int32)

    def _pairs_in(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the sites of head 1 and head 2 of each molecule, (k, 2), -1: none; of links by their numbers."""
        head, other, ids = arrays["head"], arrays["other"], arrays["id"]
        lower = np.flatnonzero(np.arange(len(other)) < other)
        lower = lower[np.argsort(ids[lower])]
        pairs = np.column_stack([lower, other[lower]])
        if self._species is None:
            # What carries a head is at the second place.
            pairs = np.where((head[pairs[:, :1]] == 0), pairs[:, ::-1], pairs)
        else:
            pairs = np.where((head[pairs[:, :1]] == 2), pairs[:, ::-1], pairs)
            alone = np.flatnonzero((head > 0) & (arrays["end"] == np.arange(len(head))))
            ends = [np.where(head[alone] == k, alone, -1) for k in (1, 2)]
            pairs = np.concatenate([pairs, np.column_stack(ends)])
        return pairs

    def shown(self, operation: "JumpOperation") -> Mapping[str, Any]:
        pairs, holding = self._molecules(operation)
        table = cast(Any, operation).table
        rows = np.column_stack([np.append(table.row_a, -1)[pairs[:, 0]], np.append(table.row_b, -1)[pairs[:, 1]]])
        out = {"links": rows} if self._heads == 1 else {"links": rows, "heads": holding}
        for array in out.values():
            array.flags.writeable = False
        return out

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        rows = self._checked_pairs(shown["links"])
        both = (rows >= 0).all(axis=1)
        arrays = dict(super().arrays_shown(operation, {**shown, "links": rows[both]}))
        for name in ("head", "holding", "alone"):
            arrays[name][...] = 0
        holding = np.ones_like(rows) if "heads" not in shown else np.asarray(shown["heads"])
        for k, of in enumerate((self._table.of_a, self._table.of_b)):
            if k == 1 and self._species is None:
                continue
            here = rows[:, k] >= 0
            site = of[rows[here, k]]
            if arrays["head"][site].any() or len(np.unique(site)) < len(site):
                raise TopologyError(f"{self.name}: a place is said to have more than 1 head")
            arrays["head"][site], arrays["holding"][site] = k + 1, holding[here, k]
        arrays["alone"][0] = np.count_nonzero(~both)
        return arrays

    def in_frames(self) -> tuple[tuple[str, ...], int] | None:
        # Each may hold by one head.
        most = len(self._table.sites) if self._species is not None else min(len(self._a), len(self._b))
        return ("links",), max(1, most)

    def ids(self, operation: "JumpOperation", a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the first and the second lattice; -1 where one end is free. Steps are between two of one."""
        table = cast(Any, operation).table
        row_a, row_b = (np.append(row, -1) for row in (table.row_a, table.row_b))
        straight = (row_a[a] >= 0) & (row_b[b] >= 0)
        turned = (row_a[b] >= 0) & (row_b[a] >= 0)
        either = [np.where(row_a[x] >= 0, row_a[x], row_b[x]) for x in (a, b)]
        first = np.where(straight, row_a[a], np.where(turned, row_a[b], either[0]))
        second = np.where(straight, row_b[b], np.where(turned, row_b[a], either[1]))
        return first, second

    def check_state(self, operation: "JumpOperation", arrays: Mapping[str, np.ndarray]) -> None:
        super().check_state(operation, arrays)
        head, holding, linked = arrays["head"], arrays["holding"], arrays["end"] != np.arange(len(arrays["end"]))
        groups = self._table.groups
        ok = bool(((head >= 0) & (head <= 2) & ((head == 0) == (holding == 0)) & (holding <= self._heads)).all())
        ok = ok and bool(((head == 0) | ((groups & head) != 0)).all())
        if self._species is None:
            ok = ok and bool(((head == 1) == (linked & (groups == 1))).all()) and not arrays["alone"].any()
        else:
            partner = arrays["other"][linked]
            ok = ok and bool((head[linked] + head[partner] == 3).all())
            ok = ok and int(arrays["alone"][0]) == np.count_nonzero((head > 0) & ~linked)
        if not ok:
            raise ParameterError(f"{self.name}: the heads that are said to hold places cannot hold them")

    def carry(self, before: "JumpOperation", operation: "JumpOperation") -> None:
        super().carry(before, operation)
        row, then, now = self._table.rows_of(cast(Any, before).table), before.arrays(), operation.arrays()
        stays = row >= 0
        for name in ("head", "holding"):
            now[name][...] = 0
            now[name][row[stays]] = then[name][stays]
        linked = now["end"] != np.arange(len(now["end"]))
        if self._species is None:
            # Heads go with what carries them.
            for name in ("head", "holding"):
                now[name][~linked] = 0
            return
        now["alone"][0] = np.count_nonzero((now["head"] > 0) & ~linked)
        molecules = [int(a["alone"][0] + a["numbers"][0]) for a in (then, now)]
        why = cast(Any, operation).give_back(molecules[0] - molecules[1])
        if why:
            raise TopologyError(f"edit: {self.name}: {why}: remove the jump first")

    def log_weight(self, operation: "JumpOperation", state: Any, kT: float) -> float | None:
        if self.driven:
            return None
        numbers, (pairs, _) = self._numbers, self._molecules(operation)
        held = np.count_nonzero(pairs >= 0, axis=0)
        # Volumes and factorials of the pool are the same for all numbers.
        log_z = 0.0
        if self._species is not None:
            log_z = self._together(operation).activities(kT).get((self._species.pool, self._species.name), 0.0)
        n_both = np.count_nonzero((pairs >= 0).all(axis=1))
        weight = held @ np.log(numbers["dissociation_constants"]) + n_both * math.log(self.volume(kT))
        return float(log_z * len(pairs) - weight)

    def _slack_of_walks(self, kT: float, share: float, step: float) -> float:
        """Find how far the length of a link may change until its bound of the rate of a step is exp(EXCESS) times the
        rate, nm: both lengths, before and after, change by it."""
        _, stiffness, _ = self._spring()
        steepest = max(share, 1.0 - share) * float(stiffness) * abs(step) / kT
        return 0.5 * EXCESS / steepest if steepest > 0.0 else math.inf


def check_lattices(name: str, sides: Mapping[str, Any], step: float) -> None:
    """Refuse a step that does not lead from place to place."""
    for side, lattice in sides.items():
        if not isinstance(lattice, Lattice):
            raise TopologyError(
                f"{name}: {side} must be a lattice, as filaments.lattice(spacing=...) makes it, not {lattice!r}"
            )
        n = abs(step) / lattice.spacing
        if round(n) < 1 or abs(n - round(n)) > 1e-6 * n:
            raise ParameterError(
                f"{name}: step = {step:g} nm but must be a multiple of the spacing of {side}, {lattice.spacing:g} nm"
            )
