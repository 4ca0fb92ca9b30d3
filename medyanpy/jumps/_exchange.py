"""Exchange of beads in space with a membrane: the form of `Adsorption` and `Absorption` for these."""

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.workspace import WorkSpace
from medyanpy._kernels.jumps.exchange import Exchange, Feet
from medyanpy._kernels.jumps.point_reactions import PointReactions
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import whole_number
from medyanpy.beads import Membrane
from medyanpy.core.handles import Handle
from medyanpy.core.species import OfSpecies
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.jumps._balance import Balance, SpeciesForm
from medyanpy.jumps._reaction_grounds import InSpace, ground_of, on_membrane
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Remark
    from medyanpy.forces import Force
    from medyanpy.jumps._formed import FormedJump

__all__ = ["ExchangeForm"]

#: Feet that a bead may have where nothing is said.
_MOST_FEET = 8
_SIDES = ("outside", "inside", "both")


class ExchangeForm(SpeciesForm):
    """Exchange of beads in space with a membrane, as `Adsorption` and `Absorption` ask for it.

    Parameters
    ----------
    jump : Jump
        With the numbers on_rate or rate, and layer.
    beads : OfSpecies
    points : OfSpecies, optional
        None where the membrane absorbs.
    membrane : Membrane
    words : (str, str)
        Names of events down and up.
    """

    pools: tuple[MoleculePool, ...] = ()

    def __init__(
        self, jump: "FormedJump", beads: OfSpecies, points: OfSpecies | None, membrane: Membrane,
        words: tuple[str, str], side: Any, most_feet: Any, momenta: Any = None,
    ) -> None:  # fmt: skip
        if not isinstance(ground_of(jump.name, beads.handle), InSpace):
            raise TopologyError(f"{jump.name}: beads must move in space, not {beads!r}")
        self._jump, self._beads, self._points, self._membrane = jump, beads, points, membrane
        self.side: str = look_up({name: name for name in _SIDES}, side, f"side ({jump.name})", ParameterError)
        self.momenta: str = "maxwell"
        if momenta is not None:
            known = {name: name for name in ("maxwell", "conserved")}
            self.momenta = look_up(known, momenta, f"momenta ({jump.name})", ParameterError)
        if self.momenta == "conserved" and membrane.kind.fixed_beads.any():
            raise TopologyError(
                f'{jump.name}: momenta = "conserved", but vertex {int(membrane.kind.fixed_beads.argmax())} of '
                f"{membrane.name!r} is fixed and takes none: leave momenta= out"
            )
        given = _MOST_FEET if most_feet is None else most_feet
        self._most: int = whole_number(f"{jump.name}: most_feet", given, at_least=1, at_most=2**16)
        names = [beads.name, "0" if points is None else points.name]
        both = [" -> ".join(names), " -> ".join(names[::-1])]
        self.kinds: tuple[str, ...] = tuple(
            f"{word} {side}: {what}" for word, what in zip(words, both, strict=True) for side in _SIDES[:2]
        )

    @property
    def handles(self) -> tuple[Handle, ...]:
        points = () if self._points is None else (self._points.handle,)
        return (self._beads.handle, *points, self._membrane)

    @property
    def births(self) -> tuple[Handle, ...]:
        return self.handles[:-1]

    @property
    def remakes(self) -> tuple[Handle, ...]:
        return self.handles[:-1]

    @property
    def _heights(self) -> tuple[float, float]:
        """Lowest and highest place of the layer along normals, nm."""
        layer = self._jump._numbers["layer"]
        return (0.0 if self.side == "outside" else -layer, 0.0 if self.side == "inside" else layer)

    @property
    def rates(self) -> tuple[float, float]:
        """Rates down, 1/s for each foot, and up, 1/s for each point, or of a reservoir 1/(nm² s)."""
        numbers = self._jump._numbers
        low, high = self._heights
        if self._points is None:
            return numbers["rate"] / (high - low), numbers["rate"] * (numbers["concentration"] or 0.0)
        return numbers["on_rate"] / (high - low), numbers["off_rate"]

    @property
    def one_way(self) -> bool:
        down, up = self.rates
        return (down == 0.0) != (up == 0.0)

    def bind(self, layout: "Layout", kT: float) -> Exchange:
        room, n, name = layout.room, layout.n, self._jump.name
        membrane = on_membrane(self._membrane, layout)

        def populated(of: OfSpecies, ground: Any) -> PointReactions:
            masses = np.array([one.mass for one in of.handle._species])
            space = WorkSpace(0, ())
            return PointReactions(name, kT, False, 1, room, layout.places_by_row(of.handle), masses, n, ground, space)

        faces = self._membrane.first_face, self._membrane.first_face + len(self._membrane.mesh.faces)
        beads = populated(self._beads, ground_of(name, self._beads.handle).bind(layout))
        points = None if self._points is None else populated(self._points, membrane)
        operation = Exchange(
            name, kT, self._jump.every, beads, points, membrane, Feet(faces, self._most),
            WorkSpace(n, layout.momenta_sizes), self.momenta == "conserved",
        )  # fmt: skip
        operation.layout = layout
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        operation.layout.expect_width(self._jump.name, self._jump._numbers["layer"])
        point = -1 if self._points is None else self._points.number
        driven, (own,) = self._jump.affinities(operation, kT) if 0.0 not in self.rates else (self.one_way, (inf,))
        back = inf if self.one_way else -own
        operation.set(kT, driven, self._beads.number, point, *self.rates, (own, back), self._heights)

    def balances(self, kT: float | None) -> list[Balance]:
        numbers = self._jump._numbers
        if 0.0 in self.rates:
            return []
        bead = self._beads.handle, self._beads.number
        if self._points is None:
            return [Balance({bead: 1.0}, log(numbers["concentration"]))]
        point = self._points.handle, self._points.number
        return [Balance({point: 1.0, bead: -1.0}, log(numbers["on_rate"] / numbers["off_rate"]))]

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        named = zip(schedule.system.forces, schedule.bound, strict=True)
        operation.feel([bound for force, bound in named if self._acts_on_births(force)])

    def _acts_on_births(self, force: "Force") -> bool:
        return any(one in force.handles for one in self.births)

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        def is_slow(force: "Force", bound: Any) -> bool:
            return self._acts_on_births(force) and not bound.tells_single_beads

        rate = self.rates[0] * len(self._beads.handle)
        return self._jump._remarks_on_whole_energies(schedule, rate, "an event", is_slow)

    def fastest(self, kT: float | None) -> float:
        return float(self.rates[0] if self._points is None else max(self.rates))

    def notes(self, look: Any) -> list[str]:
        """Return how often a bead of the layer is tried in a step."""
        often = self.rates[0] * look.integrator.timestep * self._jump.every
        return [f"{self._jump.name}: a bead in the layer lands {often:.3g} times a step"] if often > 0.0 else []
