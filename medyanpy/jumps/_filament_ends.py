"""Base class of jumps in which ends of filaments take something from a pool, and give it back."""

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.filament_ends import FilamentEnds
from medyanpy._kernels.jumps.trial import Ask
from medyanpy.beads import GrowingFilaments
from medyanpy.core.columns import CAPS
from medyanpy.core.growing_sites import HANDLE, SPACING, UNBINDS, WIDTH, nodes_in, room_in, unbinding
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.forces import EllipsoidCollisions
from medyanpy.forces.filaments import FilamentBending, FixmanPotential, _sincos
from medyanpy.jumps._base import Jump, argument, declared, number
from medyanpy.pools import MoleculePool, Species, pool_species

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Remark
    from medyanpy.forces import Force

__all__ = [
    "EndJump", "TurnoverJump", "TwoRates", "asked", "bound_ends", "expect_metric", "follow_places", "growing",
    "joint_of", "lets_go", "longest_filament", "longest_link", "most_at_start",
]  # fmt: skip

_ENDS = {"plus": ("plus",), "minus": ("minus",), "both": ("plus", "minus")}


def growing(what: str, filaments: Any) -> GrowingFilaments:
    """Return the handle of filaments with subunits; TopologyError for others."""
    if not isinstance(filaments, GrowingFilaments):
        raise TopologyError(
            f"{what}: filaments must be the handle of filaments with subunits, added with rise=, not {filaments!r}"
        )
    return filaments


def _places_held(handle: GrowingFilaments, jump: Jump) -> np.ndarray | None:
    """Return the rows of places of these filaments at which a jump holds something; None: there are none."""
    sites = jump._held_places
    if sites is None or sites.growth is None or handle not in sites.handles:
        return None
    own: np.ndarray = sites.growth[sites.growth[:, HANDLE] == sites.handles.index(handle)]
    return own


def lets_go(handle: GrowingFilaments, jumps: "Sequence[Jump]") -> bool:
    """Tell whether ends of filaments let go what one of these jumps holds at a place that they leave."""
    held = (_places_held(handle, jump) for jump in jumps)
    return any(rows is not None and bool(rows[:, UNBINDS].any()) for rows in held)


def follow_places(jump: Jump, handle: GrowingFilaments, operation: Any, others: Any, most: int) -> None:
    """Let the ends of an operation know what other jumps hold at places of their filaments, of up to so many subunits.
    ParameterError for lattices without room for these."""
    keepers: list[Any] = []
    for other, own in others:
        own_rows = _places_held(handle, other)
        if own_rows is None:
            continue
        for spacing, width in np.unique(own_rows[:, [SPACING, WIDTH]], axis=0).tolist():
            if most > (room := room_in(width, spacing)):
                raise ParameterError(
                    f"{jump.name}: filaments may come to have {most} subunits, but the lattice of {other.name} has "
                    f"places for {room}: make it by filaments.lattice(..., most_subunits={most})"
                )
        keepers += own.keepers_of(nodes_in(handle, own.layout), unbinding(other._held_places.growth))
    operation.ends.keep(keepers)


class TwoRates(Jump):
    """Base of jumps with a rate there and a rate back, of which a constant may give one."""

    def set(self, **numbers: Any) -> None:
        # Of a rate and the constant, one replaces the other.
        if numbers.get("dissociation_constant") is not None and "on_rate" not in numbers:
            numbers.setdefault("off_rate", None)
        elif numbers.get("off_rate") is not None and numbers.get("on_rate", self._numbers["on_rate"]) is not None:
            numbers.setdefault("dissociation_constant", None)
        super().set(**numbers)

    def _checked(self, **given: Any) -> dict[str, Any]:
        numbers = super()._checked(**given)
        if sum(numbers[name] is None for name in ("on_rate", "off_rate", "dissociation_constant")) != 1:
            raise ParameterError(
                f"{self.name}: give two of on_rate= (nm³/s), off_rate= (1/s) and dissociation_constant= (1/nm³)"
            )
        return numbers

    @property
    def rates(self) -> tuple[float, float]:
        """Rates there, nm³/s, and back, 1/s, also where the dissociation constant is given."""
        on, off, k_d = (self._numbers[name] for name in ("on_rate", "off_rate", "dissociation_constant"))
        return (off / k_d if on is None else on), (on * k_d if off is None else off)


@declared
class EndJump(TwoRates):
    """Base of jumps between ends of filaments and a pool, at two rates of which a constant may give one."""

    filaments: GrowingFilaments = argument(attribute="Filaments whose ends take part.")
    species: Species = argument(attribute="What their ends take from a pool.")
    on_rate: float | None = number(
        "nm³/s", "Of an end that nothing hinders, per concentration: ``mp.units.per_micromolar_second`` is 1.66e6.",
        default=None, at_least=0.0, kw_only=True,
    )  # fmt: skip
    off_rate: float | None = number(
        "1/s", "Of an end at which nothing pulls.", default=None, at_least=0.0, kw_only=True
    )
    dissociation_constant: float | None = number(
        "1/nm³", "K_D, in place of one of the two rates.", default=None, above=0.0, kw_only=True
    )
    end: str = argument(
        '"plus", "minus" or "both"', "The ends that take part: at the last node, the first, or both.", default="plus",
        kw_only=True, attribute="The ends that take part.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        filaments, species, end = (given[name] for name in ("filaments", "species", "end"))
        self._filaments = growing(self.name, filaments)
        self._species = pool_species(f"{self.name}: species must be one", species, "G-actin")
        if not isinstance(end, str) or end not in _ENDS:
            raise ParameterError(f'{self.name}: end must be "plus", "minus" or "both", not {shown(end)}')
        self._end = end

    def __repr__(self) -> str:
        name, _, numbers = super().__repr__().partition("(")
        return f"{name}({self._filaments.name!r}, {self._species!r}, end={self._end!r}, {numbers}"

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "end": self._end}

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._filaments,)

    @property
    def longest_link(self) -> int:
        """Most subunits of a link that it may lead to; 0: it adds none."""
        return 0

    def fastest(self, kT: float | None) -> float:
        on, off = self.rates
        return max(on * most_at_start(self._species), off)

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return (self._species.pool,)

    @property
    def most_subunits(self) -> int:
        """Most subunits of a filament that it may lead to; 0: it adds none."""
        return 0

    @property
    def end_rows(self) -> np.ndarray:
        """Nodes (n, 4) of the ends at the start, as the kernel takes them, among those of the handle; -1 of none."""
        return _rows(self._filaments, self._end)

    def bind_ends(self, layout: "Layout") -> FilamentEnds:
        """Return these ends on the arrays of one Context."""
        return bound_ends(self._filaments, self._end, layout)


class TurnoverJump(Jump):
    """Base of jumps that create and remove whole filaments."""

    _filaments: GrowingFilaments
    #: Argument with the filaments.
    _argument: ClassVar[str] = "filaments"
    #: Most subunits of a link that it may lead to; 0: it creates none.
    longest_link: int = 0

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._filaments = with_room(self.name, given[self._argument])

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._filaments,)

    @property
    def births(self) -> "tuple[Handle, ...]":
        return (self._filaments,)

    #: True if two filaments become one by it.
    joins: ClassVar[bool] = False

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        operation.weights.take(schedule.bound, asked(schedule, self.forces), None, None)

    def _trials(self, operation: Any, schedule: "Schedule") -> float:
        """Return how often energies are asked for at the start, 1/s."""
        raise NotImplementedError

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        return self._remarks_on_whole_energies(schedule, self._trials(operation, schedule), "an event", _is_slow)


def _is_slow(force: "Force", bound: Any) -> bool:
    # An ellipsoid near nodes that come is another one in each state.
    return not bound.has_local_difference or isinstance(force, EllipsoidCollisions)


def longest_link(handle: GrowingFilaments, jumps: "Sequence[Jump]") -> int:
    """Return the most subunits that a link of filaments may have, beside these jumps on them."""
    ends = (jump.longest_link for jump in jumps if isinstance(jump, EndJump | TurnoverJump))
    return max(int(handle.kind.subunits.max(initial=1)), *ends, 1)


def longest_filament(handle: GrowingFilaments, jumps: "Sequence[Jump]") -> int:
    """Return the most subunits that a filament may have, beside these jumps on them."""
    now = int(np.add.reduceat(handle.kind.subunits, handle.kind.link_starts[:-1]).max(initial=1))
    most = [jump.most_subunits for jump in jumps if isinstance(jump, EndJump)]
    link = longest_link(handle, jumps)
    if any(isinstance(jump, TurnoverJump) and jump.joins for jump in jumps):
        most.append(int(handle.capacity_links or 1) * link)
    return max(now, link, *most, 1)


def most_at_start(species: Species) -> float:
    """Return the concentration of a species at the start, 1/nm³, where it is highest."""
    fixed = species.pool.concentrations.get(species.name)
    return float(np.max(species.pool._start[species.name])) / species.pool.cell_volume if fixed is None else fixed


def _rows(filaments: GrowingFilaments, which: str) -> np.ndarray:
    ends, starts = [], filaments.starts
    for first, behind in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        for end in _ENDS[which]:
            last, step = (behind - 1, -1) if end == "plus" else (first, 1)
            # The first node of the last link, and of the one before.
            link, inner = (last - 1, last - 2) if end == "plus" else (first, first + 1)
            ends.append((last, last + step, link, -1 if behind - first == 2 else inner))
    return np.array(ends, np.int32).reshape(-1, 4)


def bound_ends(filaments: GrowingFilaments, which: str, layout: "Layout") -> FilamentEnds:
    """Return ends of all filaments that there is room for, on the arrays of one Context."""
    caps, slots = layout.arrays[CAPS.array], filaments.kind.slots
    n = filaments.kind.n_room
    # Which filament, and the step outwards.
    each = np.repeat(np.arange(n), len(_ENDS[which]))
    steps = np.tile([1 if end == "plus" else -1 for end in _ENDS[which]], n)
    at = np.column_stack([each, np.zeros_like(each), steps]).astype(np.int32)
    if slots is None:
        rows = _rows(filaments, which)
        places = np.where(rows < 0, -1, rows + layout.slice_of(filaments).start).astype(np.int32)
        return FilamentEnds(places, caps, at)
    found = np.full((len(at), 4), -1, np.int32)
    return FilamentEnds(found, caps, at, layout.room, layout.rank[slots].astype(np.int32))


def expect_metric(what: str, handle: GrowingFilaments, forces: "Sequence[Force]") -> None:
    """Refuse filaments whose nodes come and go without a Fixman potential; ParameterError."""
    if not any(isinstance(force, FixmanPotential) and force.filaments is handle for force in forces):
        raise ParameterError(
            f"{what}: filaments with capacity_links= need a FixmanPotential, without which the directions of links "
            "depend on how many there are: system.add_force(mp.forces.FixmanPotential(filaments, temperature=...))"
        )


def joint_of(handle: GrowingFilaments, forces: "Sequence[Force]") -> list[float]:
    """Return the bending of all joints as kernels take it, `Joint`: zeros without `FilamentBending`."""
    joint = np.zeros(3)
    for force in forces:
        if isinstance(force, FilamentBending) and force.filaments is handle:
            modulus, rest = (force._number_of_all(name) or 0.0 for name in ("bending_modulus", "rest_angle"))
            sine, cosine = _sincos(np.full(1, rest, float))
            joint += float(modulus) * np.array([1.0, cosine[0], sine[0]])
    return [float(x) for x in joint]


def asked(schedule: "Schedule", own: "Sequence[Force]" = ()) -> list[Ask]:
    """Return what jumps on filaments ask each force: the Fixman potential depends on directions alone, and new terms of
    its `own` are drawn from their law."""
    apart = [isinstance(force, FixmanPotential) or any(force is one for one in own) for force in schedule.system.forces]
    return [Ask.NOTHING if alone else Ask.DIFFERENCE for alone in apart]


def with_room(what: str, filaments: Any) -> GrowingFilaments:
    """Return the handle of filaments of which nodes come and go; TopologyError for others."""
    handle = growing(what, filaments)
    if handle.capacity_links is None:
        raise TopologyError(
            f"{what}: filaments must come and go: add {handle.name!r} with capacity_links= and capacity_filaments="
        )
    return handle
