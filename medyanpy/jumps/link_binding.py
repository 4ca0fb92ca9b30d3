"""Binding and unbinding of links between sites."""

import functools
import math
from collections.abc import Mapping
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.core.neighbors import NeighborList
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.jumps import link_binding as kernel
from medyanpy._kernels.jumps.link_binding import Joined
from medyanpy._kernels.selected import bonds
from medyanpy._tools.sums import total as total_of
from medyanpy._tools.validation import whole_number
from medyanpy.beads.chains import Chains
from medyanpy.core.handles import bead_numbers, handles_in
from medyanpy.core.sites import Sites, as_sites
from medyanpy.errors import ParameterError, SitesWarning, TopologyError, warn_outside
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces._base import bead_rows
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Given, Jump, argument, declared, number
from medyanpy.jumps.rates import DrivenRates

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.forces import Force
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["LinkBinding"]

# Share of the reach. Wider means fewer builds of the list and longer rows; see tests/benchmarks/bench_jumps.py.
_SKIN = 0.75
# Logarithm of how far the bound of a link's rate may exceed the rate. More means more attempts that are refused, and
# links that are measured less often.
_EXCESS = 3.0
# Quadrature nodes for the volume that a bound link explores, on each side of its relaxed length.
_NODES = 200


@functools.cache
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights, cached, since they take most of the time of a change of temperature."""
    return np.polynomial.legendre.leggauss(_NODES)


@declared
class LinkBinding(Jump):
    r"""Binding of pairs of sites by links, and unbinding: crosslinkers, adhesion molecules.

    A pair of free sites binds, and a bound one lets go, at the rates

    .. math:: k_\mathrm{on}\, e^{-(1-\lambda) U/kT}, \qquad k_\mathrm{off}\, e^{\lambda U/kT}

    with the energy U(r) >= 0 of a link of this length. They are in detailed balance for every λ: a pair alone is bound
    with the probability w/(1 + w), :math:`w = (k_\mathrm{on}/k_\mathrm{off})\, e^{-U/kT}`, and of many sites with one
    partner each every matching has the weight ∏ w. Waiting times are exact: results depend on the timestep only through
    positions. The probability of a network is :math:`e^{-H/kT}` times :math:`(k_\mathrm{on}/k_\mathrm{off})^n` for n
    links, with a pool of N also times N!/[(N-n)! N^n].

    Parameters
    ----------
    a, b : Sites, handle, list of handles, or (n,) int
        The sites that may be bound to each other; where no `b` is given, those of `a` among themselves. Sites may be in
        both. See `Sites`: ``filaments.sites`` gives places along filaments. Of a handle the beads that it has now:
        those that are added later are not sites of this jump. Without sites, as after an edit that removes all, nothing
        binds; `Simulation.check` says so.

    Raises
    ------
    TopologyError
        Sites of several topologies; or (by a Context) beads that do not exist.
    ParameterError
        A number outside its domain. Neither or both of on_rate and dissociation_constant. One site twice in a group.
        Links of different stiffness or length, or of stiffness 0, where the reach would be infinite. Initial links that
        are not allowed.

    Notes
    -----
    ``state.links(links)`` has the bound links; ``links.lengths(state)`` and ``links.tensions(state)`` measure it.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> pair = topology.add_beads([[0.0, 0, 0], [30.0, 0, 0]], mass=1.0, friction=1.0)
    >>> sites = mp.Sites.beads(pair)
    >>> system = mp.System(topology)
    >>> links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=30.0))
    >>> binding = system.add_jump(mp.jumps.LinkBinding(links, sites[:1], sites[1:], off_rate=1.0, on_rate=1e6))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=4.1, seed=1))
    >>> context.step(10)
    >>> context.get_state(positions=True).links(links)
    LinkEnds(1: 0 given, 1 bound)
    """

    kinds: ClassVar[tuple[str, ...]] = ("bind", "unbind")
    links: Links = argument(
        "Links", "The force of the links: springs or ropes, of one stiffness > 0 and one length. Its given terms stay; "
        "links that bind are added to them. It must be in the system.", attribute="The force of the links.",
    )  # fmt: skip
    a: Given["Beads", Sites] = argument(attribute="The first group of sites.")
    b: Given["Beads | None", Sites] = argument(
        default=None, attribute="The second group of sites; `a` where none was given."
    )
    off_rate: float = number("1/s", "Rate at which a relaxed link unbinds.", kw_only=True, above=0.0)
    on_rate: float | None = number(
        "1/s", "Rate at which a pair at the relaxed length binds.", default=None, kw_only=True, at_least=0.0
    )
    dissociation_constant: float | None = number(
        "1/nm³",
        "Instead of `on_rate`: K_D of the two sites, "
        r":math:`k_\mathrm{on} = k_\mathrm{off} / (K_D \int e^{-U/kT}\,d^3r)`. ``mp.units.molar`` is 0.602 per nm³.",
        default=None, kw_only=True, above=0.0,
    )  # fmt: skip
    load_sharing: float = number(
        "", "λ: the share of the energy that speeds up unbinding; the rest slows down binding.",
        default=0.5, kw_only=True, at_least=0.0, at_most=1.0,
    )  # fmt: skip
    rates: InitVar[DrivenRates | None] = argument(
        "Bell, CatchSlip or FlatWindow, optional", "Rates that are not in balance, by their authors' names, instead. "
        "Such a jump is driven: its changes of the energy are chemical energy, not heat.", default=None, kw_only=True,
    )  # fmt: skip
    reach: InitVar[float] = number(
        "kT", "Pairs that would have a link of more energy are not tried, and links with more energy do not unbind "
        "until they have less; for driven ones only the former holds.",
        default=25.0, kw_only=True, at_least=10.0, at_most=200.0, fixed=True,
    )  # fmt: skip
    partners: int = argument(
        "int, >= 1", "Links that a site may have at a time, those of other jumps at the same sites counted.",
        default=1, kw_only=True, attribute="Links that a site may have at a time.",
    )  # fmt: skip
    pool: int | None = argument(
        "int, >= 0, optional", "Number of links, bound or free: binding is slower by the share that is free. None: "
        "without limit.", default=None, kw_only=True, attribute="Number of links, bound or free; None without limit.",
    )  # fmt: skip
    separation: InitVar[float] = number(
        "nm", "The least distance of bound sites along one filament or rod.",
        default=0.0, kw_only=True, at_least=0.0, fixed=True,
    )  # fmt: skip
    same_filament: InitVar[bool] = argument(
        "bool", "Allow links between two sites of one filament or rod.", default=False, kw_only=True
    )
    bound: InitVar["Rows"] = argument(
        "(k, 2) int", "Links bound at the start: rows of `a` and `b`.", default=(), kw_only=True
    )

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        links, rates, pool = given["links"], given["rates"], given["pool"]
        if not isinstance(links, Links):
            raise ParameterError(f"{self.name}: links must be a Links force, not {type(links).__name__}")
        if rates is not None and not isinstance(rates, DrivenRates):
            raise ParameterError(f"{self.name}: rates must be Bell, CatchSlip or FlatWindow, not {rates!r}")
        self._links = links
        self._a = as_sites(f"{self.name}: a", given["a"])
        self._own_b = None if given["b"] is None else as_sites(f"{self.name}: b", given["b"])
        self._rates = rates
        self.driven: bool = rates is not None
        self._partners = whole_number(f"{self.name}: partners", given["partners"], at_least=1, at_most=64)
        self._pool = None if pool is None else whole_number(f"{self.name}: pool", pool, at_most=2**31 - 1)
        self._reach: float = given["reach"]
        self._separation: float = given["separation"]
        self._same_filament = bool(given["same_filament"])
        self._table = _Sites(self.name, self._a, self._own_b)
        self._bound = self._checked_pairs(given["bound"])

    @property
    def _b(self) -> Sites:
        return self._a if self._own_b is None else self._own_b

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (*self._a.handles, *self.b.handles)

    @property
    def forces(self) -> "tuple[Force, ...]":
        return (self._links,)

    def set(self, **numbers: Any) -> None:
        # One of the two replaces the other.
        for name, other in (("on_rate", "dissociation_constant"), ("dissociation_constant", "on_rate")):
            if numbers.get(name) is not None:
                numbers.setdefault(other, None)
        super().set(**numbers)

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        if (numbers["on_rate"] is None) == (numbers["dissociation_constant"] is None):
            raise ParameterError(f"{self.name}: give on_rate= (1/s) or dissociation_constant= (1/nm³), one of the two")
        return numbers

    def _checked_pairs(self, bound: Any) -> np.ndarray:
        given = np.empty((0, 2), np.int64) if len(bound) == 0 else bound
        pairs = bead_rows(f"{self.name}: bound", given, (None, 2))
        for side, sites in enumerate((self._a, self.b)):
            bad = (pairs[:, side] < 0) | (pairs[:, side] >= len(sites))
            if bad.any():
                i = int(np.argmax(bad))
                there = f"{'ab'[side]} has sites 0 to {len(sites) - 1}"
                raise TopologyError(f"{self.name}: bound[{i}, {side}] = {pairs[i, side]}, but {there}")
        return pairs

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        b = np.zeros(0, bool) if self._own_b is None else self._own_b.naming(gone)
        return {"site of a": self._a.naming(gone), "site of b": b}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        a, b = terms["site of a"], terms["site of a"] if self._own_b is None else terms["site of b"]
        left = ~(a[self._bound[:, 0]] | b[self._bound[:, 1]])
        numbers = np.cumsum(~a) - 1, np.cumsum(~b) - 1
        bound = np.column_stack([number[rows] for number, rows in zip(numbers, self._bound[left].T, strict=True)])
        self._a, self._own_b = self._a[~a], None if self._own_b is None else self._own_b[~b]
        self._table = _Sites(self.name, self._a, self._own_b)
        self._bound = self._checked_pairs(bound)
        self._was_cut = True
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        now = super()._arguments_now()
        if not (self._was_cut or self._has_other_sites("a", self._a) or self._has_other_sites("b", self._own_b)):
            return now
        return now | {"a": self._a, "b": self._own_b, "bound": self._bound}

    def _has_other_sites(self, name: str, own: Sites | None) -> bool:
        """True if a handle that was given has other beads now than when sites were made from it."""
        given = self._arguments[name]
        return bool(handles_in(given)) and not np.array_equal(bead_numbers(given), cast(Sites, own).bead_numbers)

    def check(self, topology: "Topology", forces: "tuple[Force, ...]") -> None:
        super().check(topology, forces)
        self._a.check(f"{self.name}: a", topology)
        self.b.check(f"{self.name}: b", topology)

    def fastest(self, kT: float | None) -> float | None:
        if self._rates is not None or kT is None:
            return None
        return max(self._binding_rate(kT), float(self._numbers["off_rate"]))

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return a remark on a group without sites."""
        empty = [name for name, sites in (("a", self._a), ("b", self._b)) if not len(sites)]
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
        if self._rates is not None and self._rates.window is not None:
            return self._rates.window
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
        """Find how far the length of a link may change until its bound of the rate is exp(_EXCESS) times the rate, nm.

        That is where it is stretched by 3 (kT/stiffness)^(1/2), or of driven rates by any force; slip and catch are
        1/F_s and 1/F_c.
        """
        _, stiffness, _ = self._spring()
        steepest = max(slip * (catch_share < 1.0), catch * (catch_share > 0.0))
        if steepest > 0.0:
            return _EXCESS / (steepest * float(stiffness))
        # λ (3 x + x²/2) = _EXCESS, x in units of that length.
        x = math.sqrt(9.0 + 2.0 * _EXCESS / share) - 3.0 if share > 0.0 else math.inf
        return x * math.sqrt(kT / stiffness)

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        table, topology = self._table, layout.topology
        label, along, length = _chains_of(table.sites, topology)
        apart_from, apart = _too_near(label, along, length, self._separation)
        label = np.full(len(table.sites), -1, np.int32) if self._same_filament else label
        operation = kernel.LinkBinding(
            self.name, kT, self.driven, self.every, table.sites.bind(layout), table.sites.on_points(layout), label,
            apart_from, apart, self._partners, -1 if self._pool is None else self._pool, self._table.most_pairs,
        )  # fmt: skip
        operation.table, operation.layout = table, layout
        self.update(operation, kT)
        for i, (row_a, row_b) in enumerate(self._bound):
            why = operation.bind(table.of_a[row_a], table.of_b[row_b])
            if why:
                raise ParameterError(f"{self.name}: bound[{i}] = ({row_a}, {row_b}) cannot be: {why}")
        return operation

    def _binding_rate(self, kT: float) -> float:
        """Return on_rate, also where a dissociation constant was given, 1/s."""
        on: float | None = self._numbers["on_rate"]
        if on is not None:
            return on
        volume: float = self._numbers["dissociation_constant"] * self.volume(kT)
        return float(self._numbers["off_rate"] / volume)

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float | None:
        if self.driven:
            return None
        n = int(operation.arrays()["numbers"][0])
        if not n:
            return 0.0
        each = self._binding_rate(kT) / self._numbers["off_rate"]
        return n * math.log(each) if each > 0.0 else -math.inf

    def update(self, operation: "JumpOperation", kT: float) -> None:
        kind, stiffness, length = self._spring()
        low, high = self.window(kT)
        operation.layout.expect_width(self.name, high)
        on = self._binding_rate(kT)
        share, rates = self._numbers["load_sharing"], self._rates
        law = (1.0 - share, share, 0.0, 0.0, 0.0)
        if rates is not None:
            law = float(rates.window is None), 0.0, rates.catch_share, 1.0 / rates.slip, 1.0 / rates.catch
        n = len(self._table.sites)
        rows, none = np.arange(n, dtype=np.int32), (np.zeros(n + 1, np.int32), np.zeros(0, np.int32))
        near = NeighborList(rows, self._table.groups, np.full(n, 0.5 * high), high, _SKIN * high, *none)
        spring = int(kind), (stiffness, length)
        slack = self._slack(kT, *law[1:])
        operation.set_rule(kT, near, *spring, low, high, on, self._numbers["off_rate"], *law, slack)

    def joined(self, operation: "JumpOperation", force: "Force", bound: "Operation", layout: "Layout") -> "Operation":
        kind, stiffness, length = self._spring()
        coming = bonds.PassingBonds(force.name, kind, np.array([[stiffness, length]]), operation.linked)
        coming.acts_on_points = operation.on_points
        return Joined(force.name, bound, coming)

    def carry(self, before: "JumpOperation", operation: "JumpOperation") -> None:
        # Links with both sites still there.
        row = self._table.rows_of(before.table)
        ids, pairs = before.links()
        left = (row[pairs] >= 0).all(axis=1)
        operation.take_over(before, ids[left], row[pairs[left]].astype(np.int64), row)

    def meet(self, operation: "JumpOperation", others: "list[tuple[Jump, JumpOperation]]") -> None:
        mine = self._table
        shared: list[Any] = []
        apart: list[Jump] = []
        for jump, other in others:
            if isinstance(jump, LinkBinding) and other is not operation:
                row = jump._table.rows_of(mine)
                if (row >= 0).any():
                    shared.append((other, row))
                    apart += [jump] * _made_apart(jump._table, mine, row)
        operation.share(shared)
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

    def shown(self, operation: "JumpOperation") -> Mapping[str, Any]:
        _, pairs = operation.links()
        rows = np.column_stack(self.ids(operation, *pairs.T))
        rows.flags.writeable = False
        return {"links": rows}

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        pairs = self._checked_pairs(shown["links"])
        arrays = {name: array.copy() for name, array in operation.arrays().items()}
        n, p = len(self._table.sites), self._partners
        arrays["other"][...], arrays["id"][...], arrays["end"][...] = -1, -1, p * np.arange(n)
        # In their order, as the letter binds them: each is at both of its ends.
        ends = np.column_stack([self._table.of_a[pairs[:, 0]], self._table.of_b[pairs[:, 1]]])
        for link, (i, j) in enumerate(ends.tolist()):
            for site, other in ((i, j), (j, i)):
                slot = int(arrays["end"][site])
                if slot == p * (site + 1):
                    raise TopologyError(f"{self.name}: a site is said to have more than {p} links")
                arrays["other"].ravel()[slot], arrays["id"].ravel()[slot] = other, link
                arrays["end"][site] += 1
        arrays["numbers"][...] = len(ends), max(len(ends), int(arrays["numbers"][1]))
        # Pairs in reach are listed again.
        arrays["listed"][...] = 0
        return arrays

    def in_frames(self) -> tuple[str, int] | None:
        one, other = len(self._a), len(self.b)
        most = self._partners * (one // 2 + one % 2 if self._own_b is None else min(one, other))
        # Files keep room for one, also where there can be none.
        return "links", max(1, most if self._pool is None else min(most, self._pool))

    def beside_frames(self) -> Mapping[str, Sites]:
        return {"a": self._a, "b": self.b}

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
            # Each link is at both of its ends, under one number.
            forth = np.column_stack([ids[here], site, other[here]])
            back = forth[:, [0, 2, 1]]
            ok = ok and np.array_equal(forth[np.lexsort(forth.T)], back[np.lexsort(back.T)])
            ok = ok and (np.unique(ids[here], return_counts=True)[1] == 2).all()
            bound, ever = arrays["numbers"].tolist()
            ok = ok and 2 * bound == here.sum() and int(ids[here].max(initial=-1)) < ever
            ok = ok and bool((ids[here] >= 0).all()) and (self._pool is None or bound <= self._pool)
            ok = ok and arrays["listed"].tolist() in ([0, 0], [1, 0], [1, 1])
        if not ok:
            raise ParameterError(f"{self.name}: the links that are said to be bound cannot be")


class _Sites:
    """Sites of two groups, each once, in the order in which they come.

    `of_a` (n_a,) and `of_b` (n_b,) are rows of the sites of each group, `row_a` and `row_b` (n,) the inverse, -1 of
    those that are not in it. `groups` (n,) are 1: in a only, 2: in b only, 3: in both. `keys` (n, k) identify each
    site. No more than `most_pairs` pairs may be bound.
    """

    def __init__(self, what: str, a: Sites, b: Sites | None) -> None:
        both = a if b is None else a + b
        keys = _keys(both)
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

    def rows_of(self, other: "_Sites") -> np.ndarray:
        """Find for each site of others its row here, -1 where it is not here, (n,) int32."""
        width = max(self.keys.shape[1], other.keys.shape[1])
        here, there = (_padded(keys, width) for keys in (self.keys, other.keys))
        _, which = np.unique(np.concatenate([here, there]), axis=0, return_inverse=True)
        which = which.ravel()
        place = np.full(which.max(initial=-1) + 1, -1, np.int32)
        place[which[: len(here)]] = np.arange(len(here), dtype=np.int32)
        return place[which[len(here) :]]


def _made_apart(here: _Sites, there: _Sites, row: np.ndarray) -> bool:
    """Tell whether an anchor of both was made by different calls; `row` has the rows of those of `there`."""
    made = []
    for sites in (here.sites, there.sites):
        made.append(np.full(len(sites), -1))
        made[-1][np.diff(sites.start) == 0] = sites._made
    both = np.flatnonzero(row >= 0)
    one, other = made[0][row[both]], made[1][both]
    return bool(((one >= 0) & (other >= 0) & (one != other)).any())


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


def _padded(keys: np.ndarray, width: int) -> np.ndarray:
    more = np.tile([-1.0, 0.0], (len(keys), (width - keys.shape[1]) // 2))
    return np.column_stack([keys, more])


def _chains_of(sites: Sites, topology: "Topology") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find for each site its filament or rod (int32, -1: none), arc length to it, and perimeter of a ring, or 0.

    Lengths are nm, of the start.
    """
    n = len(sites)
    label, along, ring = np.full(n, -1, np.int32), np.zeros(n), np.zeros(n)
    row = np.repeat(np.arange(n), np.diff(sites.start))
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
        own = (number[sites.bead_numbers] >= 0) & (sites.weights != 0.0)
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
        chains += handle.kind.n_chains
    return label, along, ring


def _too_near(label: np.ndarray, along: np.ndarray, ring: np.ndarray, separation: float) -> tuple[np.ndarray, ...]:
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
