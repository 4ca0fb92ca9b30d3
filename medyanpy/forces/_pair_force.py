"""Base of pair forces: members, exclusions, neighbour lists and bounds of the timestep."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.core.neighbors import NeighborList, near_pairs
from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.forces.radial import Radial
from medyanpy._kernels.selected import all_pairs, pairs
from medyanpy._tools.images import box_lengths, displacement, wrapped
from medyanpy.core.handles import bead_numbers, handles_in
from medyanpy.core.sites import Sites, as_sites
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._along_surface import along_surface, expect_on_surface
from medyanpy.forces._arguments import Beads, Rows
from medyanpy.forces._base import Given, argument, bead_rows, declared, number
from medyanpy.forces._on_species import OnSpecies
from medyanpy.forces._stiffness import Start

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

# Neighbours of a bead, beyond which a start is a heap that will be parted first, and is not representative of a run.
_CROWDED = 200
# With more members than these together, so many neighbourhoods of so many are used when a Context is made: the check of
# the timestep must not cost as much as a run's first steps.
_NEIGHBORHOODS = 4
_NEIGHBORHOOD = 4096
# Share of the range. Wider means fewer builds of the list and longer rows; see tests/benchmarks/bench_pairs.py.
_SKIN = 0.4


@dataclass(frozen=True)
class Profile:
    """Energies of pairs of members of a force, for single evaluations.

    Attributes
    ----------
    values : callable (distances (P,), pairs of members (P, 2)) -> (P, k >= 3) energies and their derivatives
    end : float or None, nm
        Distance at which all of them have ended; None if there is no such distance.
    strongest : int or None
        A member of which a pair of two repels as strongly as any; None where that is not known.
    axes : (members, 3) float or None, nm
        Semi-axes of ellipsoids: distances are then factors by which two grow until they touch.
    """

    values: Callable[[np.ndarray, np.ndarray], np.ndarray]
    end: float | None
    strongest: int | None = 0
    axes: np.ndarray | None = None


@declared
class PairForce(OnSpecies):
    """A radial energy of all pairs of two groups that are within range.

    Raises
    ------
    ParameterError
        A number outside its domain. No radius or diameter of some beads. A switch that is not below the cutoff, or
        without one.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice, an exclusion of a bead from itself;
        with `along_surface`, beads that do not live on one surface, or on one of Python functions.
    """

    # Names of its groups in the constructor.
    _group_names = ("group_a", "group_b")
    exclusions: Given["Rows | None", np.ndarray] = argument(
        "(E, 2) int, optional", "As in `SoftSphere`.", default=None, kw_only=True,
        attribute="(E, 2) pairs of bead numbers that do not interact; where groups are sites, of numbers of sites.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._along_surface = bool(given.get("along_surface"))
        self.of_positions_alone: bool = not self._along_surface
        groups = [(f"{self.name}: {which}", given[which]) for which in self._group_names]
        if any(isinstance(beads, Sites) for _, beads in groups):
            self._groups: tuple[Any, ...] = tuple(as_sites(*group) for group in groups)
        else:
            self._groups = tuple(handles_in(beads) or bead_rows(what, beads, (None,)) for what, beads in groups)
        if self._along_surface:
            for which, beads in zip(self._group_names, self._groups, strict=True):
                expect_on_surface(f"{self.name}: {which}", handles_in(beads) or beads)
        self._exclusions = exclusion_pairs(self.name, given["exclusions"])

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return tuple(h for g in self._groups for h in (g.handles if isinstance(g, Sites) else handles_in(g)))

    @property
    def conserves_momentum(self) -> bool:  # type: ignore[override]
        """True if no site is an anchor, and no fixed surface is there along which distances are measured."""
        if self._along_surface and not (self.handles and all(handle.kind.keeps_momentum for handle in self.handles)):
            return False
        return not any(isinstance(g, Sites) and len(g.anchor_positions) for g in self._groups)

    @property
    def along_surface(self) -> bool:
        """True if distances are measured along the surface that the beads live on."""
        return self._along_surface

    @property
    def _beads_a(self) -> Any:
        """Beads of the first group by their numbers, or its sites, in the order of numbers given for each."""
        return _numbered(self._groups[0])

    @property
    def _beads_b(self) -> Any:
        return _numbered(self._groups[1])

    def _keys(self, per: str) -> np.ndarray | None:
        handles = handles_in(self._groups[("_beads_a", "_beads_b").index(per)])
        return np.concatenate([handle.ids for handle in handles]) if handles else None

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        a, b = (
            group.naming(gone) if isinstance(group, Sites) else np.zeros(0, bool) if handles_in(group) else gone[group]
            for group in self._groups
        )
        # Exclusions between sites number these.
        excluded = np.zeros(0, bool) if isinstance(self._groups[0], Sites) else gone[self._exclusions].any(axis=1)
        return {"exclusion": excluded, f"member of {self._group_names[0]}": a, f"member of {self._group_names[1]}": b}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        excluded, masks = terms["exclusion"], [terms[f"member of {which}"] for which in self._group_names]
        per, numbers = ("_beads_a", "_beads_b"), dict(self._numbers)
        for name, value in numbers.items():
            if self._per(name) in per and np.ndim(value) >= self._dimensions(name):
                mask = masks[per.index(self._per(name))]
                numbers[name] = value[~mask] if len(mask) else value
            if name in self._of_all:
                numbers[name] = self._of_all[name]
        one = self._is_one
        if isinstance(self._groups[0], Sites):
            self._exclusions = _renumbered(self._exclusions, masks[0], None if one else masks[1])
        elif len(excluded):
            self._exclusions = exclusion_pairs(self.name, self._exclusions[~excluded])
        groups = [group[~mask] if len(mask) else group for group, mask in zip(self._groups, masks, strict=True)]
        for group in groups:
            if isinstance(group, np.ndarray):
                group.flags.writeable = False
        self._groups = (groups[0], groups[0]) if one else tuple(groups)
        self._was_cut = True
        self._declare(**numbers)
        self._version += 1

    @property
    def _is_one(self) -> bool:
        """True if both groups are the same object, which makes a difference for sites."""
        return self._groups[0] is self._groups[1]

    def _arguments_now(self) -> dict[str, Any]:
        now = super()._arguments_now()
        if self._was_cut:
            named = zip(self._group_names, self._groups, strict=True)
            now |= {"exclusions": self._exclusions} | {w: group for w, group in named if not handles_in(group)}
        return now

    def _members(self, layout: "Layout") -> "_Members":
        if isinstance(self._groups[0], Sites):
            return self._members_of_sites(layout)
        topology = layout.topology
        named = [(f"{self.name}: {which}", beads) for which, beads in zip(self._group_names, self._groups, strict=True)]
        in_a, in_b = (topology.bead_indices(*one) for one in named)
        for (what, _), beads in zip(named, (in_a, in_b), strict=True):
            topology.expect_places(what, beads)
        # 1: in A only, 2: in B only, 3: in both.
        membership = np.zeros(layout.n, np.int32)
        if len(in_a) and len(in_b):
            membership[layout.internal(in_a)] += 1
            membership[layout.internal(in_b)] += 2
        row = np.flatnonzero(membership).astype(np.int32)
        bead, on_points = layout.order[row], bool((row >= layout.n_cartesian).any())
        return _Members(SiteTable(), row, membership[row], bead, bead, layout.n, "beads", on_points)

    def _members_of_sites(self, layout: "Layout") -> "_Members":
        a, b = self._groups
        for which, sites in zip(self._group_names, (a, b), strict=True):
            sites.check(f"{self.name}: {which}", layout.topology)
        same = a is b
        sites = a if same else a + b
        membership = np.repeat(np.array([3 if same else 1, 2], np.int32), [len(a), 0 if same else len(b)])
        beads = sites.single_beads
        twice = np.sort(beads[beads >= 0])
        twice = twice[1:][twice[1:] == twice[:-1]]
        if len(twice):
            i, k = np.flatnonzero(beads == twice[0])[:2]
            raise TopologyError(
                f"{self.name}: sites {i} and {k} are both bead {twice[0]}; give one Sites object for both groups, "
                "or groups that share no bead"
            )
        row = np.arange(len(sites) if len(a) and len(b) else 0, dtype=np.int32)
        on_points = sites.on_points(layout)
        return _Members(sites.bind(layout), row, membership[row], beads[row], row, len(sites), "sites", on_points)

    def _profile(self, layout: "Layout", members: "_Members") -> Profile | None:
        """Return the energies of its pairs; None of a force without them."""
        return None

    def _that_meet(self, members: "_Members", pairs: np.ndarray) -> np.ndarray:
        """Select from pairs of members (P, 2) those that interact."""
        g = members.group[pairs]
        met = ((g[:, 0] & 1) & (g[:, 1] >> 1)) | ((g[:, 0] >> 1) & (g[:, 1] & 1))
        keys = np.sort(members.number[pairs], axis=1) @ [members.n_numbers, 1]
        left_out = np.isin(keys, np.sort(self._exclusions, axis=1) @ [members.n_numbers, 1])
        out: np.ndarray = pairs[(met > 0) & ~left_out]
        return out

    def _frequencies(
        self, start: Start, reach: float, stiffness: Callable[..., Any], least: float
    ) -> np.ndarray | None:
        """Return squared frequencies of touching members, of samples of very many; None for a crowded start.

        `stiffness` is a function of distances and members (P,); it counts for at most `least`: nearer pairs are parted
        first.
        """
        members = self._members(start.layout)
        a, b = self._groups
        if not isinstance(a, Sites) and not start.there.all():
            members = members.chosen(start.there[members.bead])
        if isinstance(a, Sites):
            sites = a if a is b else a + b
            coordinates, x = start.sites(sites)[members.row], start.site_positions(sites)[members.row]
        else:
            coordinates, x = start.coordinates(members.bead), start.positions[members.bead]
        if not np.abs(x).max(initial=0.0) < 1e100:
            return None  # too far apart for their distances
        lengths = None
        if start.box is not None:
            lengths, x = box_lengths(start.box), wrapped(x, start.box)
        found = [np.empty(0, int)]
        for near in _neighborhoods(x):
            pairs = near_pairs(x[near], reach, lengths)
            if 2 * len(pairs) > _CROWDED * len(near):
                return None
            found.append(near[pairs] @ [len(x), 1])
        touching = np.column_stack(np.divmod(np.unique(np.concatenate(found)), max(1, len(x))))
        touching = self._that_meet(members, touching)
        distance = np.linalg.norm(displacement(x[touching[:, 0]], x[touching[:, 1]], lengths), axis=1)
        k = np.clip(stiffness(distance, members.bead[touching]), 0.0, least)
        return start.contacts(coordinates, members.group, touching, k, least)

    def _bind(
        self, layout: "Layout", kind: Radial, parameters: tuple[float, ...], radius_of: Callable[..., np.ndarray]
    ) -> Operation:
        """Make the operation for one radial function; `radius_of` gives half the range of members by bead number."""
        members = self._members(layout)
        radius = radius_of(members.bead) if len(members.row) else np.zeros(0)
        # Two points are never nearer to each other along a surface than in space: the same list serves both.
        arguments = self.name, kind, parameters, self._neighbors(layout, members, radius), members.table
        if self._along_surface and len(members.row):
            return along_surface(layout, members.bead, members.group, 2.0 * radius.max(), *arguments)
        operation = pairs.Pairs(*arguments)
        operation.acts_on_points = members.on_points
        return operation

    def _bind_all(
        self, layout: "Layout", kind: Radial, parameters: tuple[float, ...],
        weight_of: Callable[..., np.ndarray] | None = None,
    ) -> Operation:  # fmt: skip
        """Make the operation for all pairs at any distance; `weight_of` gives factors by row and bead number."""
        self._expect_wholes("give a cutoff, or the handle")
        if layout.is_periodic:
            raise ParameterError(
                f"{self.name} acts at any distance, which has no meaning among images in a periodic box: give a cutoff"
            )
        members = self._members(layout)
        # Those in A only, in both and in B only: the partners of each are a range.
        members = members.chosen(np.argsort(np.array([0, 0, 2, 1])[members.group], kind="stable"))
        n = len(members.row)
        only_a, only_b = (members.group == 1).sum(), (members.group == 2).sum()
        first = np.where(members.group == 1, only_a, 0).astype(np.int32)
        last = np.where(members.group == 2, n - only_b, n).astype(np.int32)
        start, ignored = self._excluded(members)
        place = np.full(members.n_numbers, -1)
        place[members.number] = np.arange(n)
        # A member is not a partner of itself.
        owner = np.concatenate([np.repeat(np.arange(n), np.diff(start)), np.arange(n)])
        ignored = np.concatenate([place[ignored], np.arange(n)])
        ignored = ignored[np.lexsort((ignored, owner))].astype(np.int32)
        weight = np.ones(n) if weight_of is None else weight_of(members.row, members.bead)
        row, start = members.row, (start + np.arange(n + 1)).astype(np.int32)
        lists = first, last, start, ignored
        operation = all_pairs.AllPairs(self.name, kind, parameters, row, weight, *lists, members.table)
        operation.acts_on_points = members.on_points
        return operation

    def _excluded(self, members: "_Members") -> tuple[np.ndarray, np.ndarray]:
        """List the numbers that each member does not interact with: starts of the lists, and the sorted lists."""
        return _excluded(self.name, self._exclusions, members)

    def _neighbors(self, layout: "Layout", members: "_Members", radius: np.ndarray) -> NeighborList:
        """Make the neighbour list of members, given half the range of each."""
        reach = 0.0
        if len(members.row):
            reach = float(radius[members.group != 2].max() + radius[members.group != 1].max())
        layout.expect_width(self.name, reach)
        skin = _SKIN * reach if (given := self._numbers["skin"]) is None else given
        excluded = self._excluded(members)
        return NeighborList(members.row, members.group, radius, reach, skin, *excluded, self._wanted(layout, members))

    def _expect_wholes(self, remedy: str) -> None:
        """Refuse beads of one species in what acts at any distance; ParameterError."""
        if any(self._of_species):
            raise ParameterError(f"{self.name} acts at any distance, and cannot tell species apart: {remedy}")

    def _wanted(self, layout: "Layout", members: "_Members") -> np.ndarray | None:
        """Return for each member the bits of the species that count in either group; None where all do."""
        return self._species_bits(layout, members.row) if any(self._of_species) and len(members.row) else None


@declared
class TwoGroups(PairForce):
    """A radial energy of all pairs with one bead in each of two groups, along a surface or in space."""

    group_a: InitVar["Beads"] = argument("handle, list of handles, (n,) int, or Sites", "As in `SoftSphere`.")
    group_b: InitVar["Beads"] = argument("handle, list of handles, (n,) int, or Sites", "As in `SoftSphere`.")
    exclusions: Given["Rows | None", np.ndarray] = argument(
        "(E, 2) int, optional", "As in `SoftSphere`.", default=None, kw_only=True
    )
    skin: float | None = number(
        "nm", "As in `SoftSphere`; 0.4 times the cutoff where none is given.", default=None, kw_only=True, at_least=0.0
    )
    along_surface: bool = argument("bool", "As in `SoftSphere`.", default=False, kw_only=True)


def _neighborhoods(x: np.ndarray) -> list[np.ndarray]:
    """Return rows of x (n, 3), ascending in each: all of them, or those around a few that are spread over the list."""
    n = len(x)
    if n <= _NEIGHBORHOODS * _NEIGHBORHOOD:
        return [np.arange(n)]
    centers = (np.arange(_NEIGHBORHOODS) + 0.5) * (n / _NEIGHBORHOODS)
    ways = (x - x[int(center)] for center in centers)
    squares = (np.einsum("ij,ij->i", way, way) for way in ways)
    return [np.sort(np.argpartition(s, _NEIGHBORHOOD)[:_NEIGHBORHOOD]) for s in squares]


class _Members(NamedTuple):
    """Sites of both groups of a force, in the arrays of one Context."""

    table: SiteTable
    row: np.ndarray  # in the table, ascending
    group: np.ndarray  # 1: in A only, 2: in B only, 3: in both
    bead: np.ndarray  # topology number, -1 of sites that are not a single bead
    number: np.ndarray  # what users call it, and sums are ordered by
    n_numbers: int
    noun: str
    on_points: bool

    def chosen(self, rows: np.ndarray) -> "_Members":
        return self._replace(**{name: getattr(self, name)[rows] for name in ("row", "group", "bead", "number")})


def _numbered(group: Any) -> Any:
    """Return sites as they are, beads by their rows; of handles the beads that are there."""
    return group if isinstance(group, Sites) else bead_numbers(group)


def _renumbered(exclusions: np.ndarray, a: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    """Return pairs of numbers of sites, without those that go, (n_a,) and (n_b,) bool; b is None for one group."""
    gone = a if b is None else np.append(a, b)
    left = np.cumsum(~gone) - 1
    return exclusion_pairs("exclusions", left[exclusions[~gone[exclusions].any(axis=1)]])


def exclusion_pairs(force: str, exclusions: "Rows | None") -> np.ndarray:
    """Return pairs of numbers as a user gives them: (E, 2), read-only."""
    given = np.empty((0, 2), np.int64) if exclusions is None else exclusions
    return bead_rows(f"{force}: exclusions", given, (None, 2))


def excluded_beads(force: str, pairs: np.ndarray, layout: "Layout") -> tuple[np.ndarray, np.ndarray]:
    """List for every place the beads excluded from the one there: starts of the lists, and the sorted lists."""
    row, order = np.arange(layout.n, dtype=np.int32), layout.order
    return _excluded(force, pairs, _Members(SiteTable(), row, row, order, order, layout.n, "beads", True))


def _excluded(force: str, pairs: np.ndarray, members: _Members) -> tuple[np.ndarray, np.ndarray]:
    """List for every member the numbers excluded from it: starts of the lists, and the sorted lists."""
    n, noun = members.n_numbers, members.noun
    bad = ((pairs < 0) | (pairs >= n)).any(axis=1)
    if bad.any():
        e = int(np.argmax(bad))
        owner = "topology has beads" if noun == "beads" else "groups have sites"
        raise TopologyError(f"{force}: exclusions[{e}] names {noun} {pairs[e].tolist()}, but the {owner} 0 to {n - 1}")
    bad = pairs[:, 0] == pairs[:, 1]
    if bad.any():
        e = int(np.argmax(bad))
        raise TopologyError(f"{force}: exclusions[{e}] excludes {noun[:-1]} {pairs[e, 0]} from itself")
    member = np.full(n, -1)
    member[members.number] = np.arange(len(members.row))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[(member[both] >= 0).all(axis=1)]
    owner, ignored = member[both[:, 0]], both[:, 1]
    order = np.lexsort((ignored, owner))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(members.row)))])
    return start.astype(np.int32), ignored[order].astype(np.int32)
