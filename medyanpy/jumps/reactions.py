"""Reactions."""

from math import inf, isfinite, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy.beads import InTrianglePoints
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError
from medyanpy.jumps import _point_reactions as points_
from medyanpy.jumps._base import Jump, argument, declared, number
from medyanpy.jumps._reaction_texts import Reaction, read_reactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.state import State

__all__ = ["Reactions"]

# What texts may give of a reaction, in place of the arguments of these names.
_NUMBERS = {"k_on": "on_rate", "k_off": "off_rate", "rate": "on_rate", "K_D": "dissociation_constant",
            "k_macro": "macroscopic_rate"}  # fmt: skip


@declared
class Reactions(Jump):
    r"""Reactions of points that live in the triangles of a membrane.

    Two points A and B react at the rate λ for each straight line between them that is shorter than R. C comes apart at
    the rate μ, along a line of uniform direction and of length :math:`R\sqrt{\xi}`. In balance

    .. math:: \frac{\rho_A \rho_B}{\rho_C} = K_D = \frac{\mu}{\lambda \pi R^2}

    of ideal points, on any mesh, and of A + A <-> D twice that.

    Raises
    ------
    TopologyError
        Not the handle of points in a membrane.
    ParameterError
        A text that is not understood, species that the points do not have, reactions that points cannot do, rates that
        are missing or given twice, numbers outside their domains.

    Notes
    -----
    Reactions are A -> B, A + B -> C, C -> A + B, A + B -> C + D, 0 -> A and A -> 0; with ``<->`` both ways. In A + B ->
    C + D places stay, and so does a species on both sides.

    Points stay where they are in A -> B, with velocities scaled by :math:`\sqrt{m_A/m_B}`. Created points draw theirs
    from Maxwell's distribution. What an event changes of the energy of forces on the points enters by
    :math:`\min\{1, e^{-\Delta U/kT}\}`; this takes two evaluations of their energy for each attempt, and none where no
    force acts on points that come and go.

    Rates of one way back each that agree around every cycle are in balance, and changes of energy are heat. Otherwise
    the jump is driven, and they are chemical work.

    References
    ----------
    M. Doi, J. Phys. A 9, 1479 (1976): a rate within a distance.
    """

    points: Handle = argument("handle", "Points of a membrane, with species.", attribute="Points that react.")
    reactions: "str | Reaction | Sequence[str | Reaction]" = argument(
        "str, Reaction or list of these",
        "One on each line, as ``\"A + B <-> C; k_on = 2.0, k_off = 1.0\"``; see Notes. ``k_on`` or ``rate``, "
        "``k_off``, ``K_D`` and ``k_macro`` stand for the arguments below.",
    )
    reach: float | None = number("nm", "R of reactions of two points.", default=None, kw_only=True, above=0.0)
    on_rate: float | None = number(
        "1/s", "Forward: for each point, of two points λ for each line, and 1/(nm² s) of 0 -> A.", default=None,
        kw_only=True, at_least=0.0,
    )  # fmt: skip
    off_rate: float | None = number("1/s", "Backward; likewise.", default=None, kw_only=True, at_least=0.0)
    dissociation_constant: float | None = number(
        "1/nm²", "K_D of A + B <-> C, which sets the backward rate, or the forward one where that is not given.",
        default=None, kw_only=True, above=0.0,
    )  # fmt: skip
    macroscopic_rate: float | None = number(
        "nm²/s", "In place of the forward rate of two points: the rate constant at `density`, for which λ is found.",
        default=None, kw_only=True, above=0.0,
    )  # fmt: skip
    density: float | None = number(
        "1/nm²", "At which `macroscopic_rate` holds, of either species; that of the more frequent one at the start "
        "where none is given.", default=None, kw_only=True, above=0.0,
    )  # fmt: skip
    placement: float = number(
        "", "Where C stands on the line from A to B: 0 at A, 1 at B.", default=0.5, kw_only=True, at_least=0.0,
        at_most=1.0,
    )  # fmt: skip
    most_partners: int | None = argument(
        "int, optional", "Most lines to partners that a point may have: more are a fault. From the number of points "
        "where none is given; a smaller number saves attempts.", default=None, kw_only=True,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._read = read_reactions(self.name, given["reactions"])
        self._ways = points_.ways_of(self.name, given["points"], self._read)
        self._points = self._handle = given["points"]
        self.kinds = tuple(way.text for way in self._ways)  # type: ignore[misc]
        most = given["most_partners"]
        self._most = None if most is None else int(most)
        if self._meets and given["reach"] is None:
            raise ParameterError(f"{self.name}: give reach=, within which two points react")

    def _declare(self, **numbers: Any) -> None:
        super()._declare(**numbers)
        # Everything but kT is known now: what is missing or twice is told at once.
        self._found(1.0)

    _handle: InTrianglePoints

    @property
    def _meets(self) -> bool:
        return any(way.kind in (points_.MEET, points_.PASS, points_.PART) for way in self._ways)

    @property
    def handles(self) -> tuple[Handle, ...]:
        return (self._handle,)

    @property
    def births(self) -> tuple[Handle, ...]:
        stay = all(way.kind in (points_.TURN, points_.PASS) for way in self._ways)
        return () if stay else (self._handle,)

    @property
    def driven(self) -> bool:  # type: ignore[override]
        return any(affinity != 0.0 for affinity in self._found(1.0).affinities)

    def _found(self, kT: float) -> points_.Rates:
        """Return the rates of all directions."""
        rates: list[float] = []
        for reaction in self._read:
            forward = self._ways[len(rates)]
            numbers = self._given_for(reaction)
            on, off = self._both(reaction, forward, numbers, kT)
            rates.append(on)
            if reaction.reversible:
                rates.append(off)
        reach = self._numbers["reach"] or 1.0
        return points_.balanced(self._ways, rates, reach, len(self._handle.species))

    def _given_for(self, reaction: Reaction) -> dict[str, float]:
        """Return the numbers of one reaction, by the names of arguments."""
        where = f"{self.name}: {reaction.equation}"
        given = {name: value for name in _NUMBERS.values() if (value := self._numbers[name]) is not None}
        if given and len(self._read) > 1:
            raise ParameterError(
                f"{self.name}: {', '.join(given)} is one number for {len(self._read)} reactions: write each behind its "
                'own, as "A <-> B; k_on = 2.0, k_off = 1.0"'
            )
        for name, value in reaction.numbers.items():
            if name not in _NUMBERS:
                raise ParameterError(f"{where}: {name} = {value:g}, but a number is one of {', '.join(_NUMBERS)}")
            if _NUMBERS[name] in given:
                raise ParameterError(f"{where}: {_NUMBERS[name]} is given twice")
            if not value >= 0.0:
                raise ParameterError(f"{where}: {name} = {value:g} but must be >= 0")
            given[_NUMBERS[name]] = value
        return given

    def _both(self, reaction: Reaction, way: "points_.OneWay", numbers: dict[str, float], kT: float) -> tuple[float, float]:
        """Return forward and backward rate."""
        where = f"{self.name}: {reaction.equation}"
        on, off, k_d = (numbers.get(name) for name in ("on_rate", "off_rate", "dissociation_constant"))
        macro = numbers.get("macroscopic_rate")
        if macro is not None:
            if on is not None or len(way.reactants) != 2:
                raise ParameterError(f"{where}: macroscopic_rate is in place of the forward rate of two points")
            on = self._microscopic(way, macro, kT)
        if k_d is not None:
            if way.kind != points_.MEET or not reaction.reversible or (on is not None and off is not None):
                raise ParameterError(
                    f"{where}: dissociation_constant is that of A + B <-> C, and in place of one of the two rates"
                )
            if on is None and off is None:
                raise ParameterError(f"{where}: give one of the rates, beside dissociation_constant")
            ratio = k_d * pi * self._numbers["reach"] ** 2 * (0.5 if way.reactants[0] == way.reactants[1] else 1.0)
            on, off = (off / ratio, off) if on is None and off is not None else (on, (on or 0.0) * ratio)
        if on is None or (reaction.reversible and off is None):
            missing = "on_rate" if on is None else "off_rate"
            raise ParameterError(f"{where}: give {missing}, or its number behind the reaction: {_hint(reaction)}")
        if not reaction.reversible and off is not None:
            raise ParameterError(f"{where}: off_rate is given, but the reaction goes one way: write <->")
        return on, 0.0 if off is None else off

    def _microscopic(self, way: "points_.OneWay", k: float, kT: float) -> float:
        """Return λ for a rate constant of two points that diffuse."""
        handle = self._handle
        friction = [handle.species[i].friction for i in way.reactants]
        if min(friction) == 0.0:
            raise ParameterError(f"{self.name}: macroscopic_rate needs friction of {way.text.split(' -> ')[0]}")
        density = self._numbers["density"]
        if density is None:
            most = max(int(np.count_nonzero(handle._of_species == i)) for i in way.reactants)
            if most == 0:
                raise ParameterError(f"{self.name}: give density= to macroscopic_rate: no points are there at the start")
            density = most / handle.membrane.mesh.area
        diffusion = kT * sum(1.0 / f for f in friction)
        return points_.microscopic_rate(k, self._numbers["reach"], diffusion, density) if isfinite(kT) else inf

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        if self._meets:
            layout.expect_width(self.name, self._numbers["reach"])
        operation = points_.bind(self.name, kT, self.driven, self.every, self._handle, layout)
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        reach = self._numbers["reach"] or 1.0
        most = points_.partners_expected(self._handle, reach) if self._most is None else self._most
        given = points_.numbers_for_kernel(self._ways, self._found(kT), float(self._numbers["placement"]))
        operation.set(kT, reach, most, given)

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        operation.feel(points_.forces_on(schedule, self._handle, self._ways))

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float | None:
        found = self._found(kT)
        if any(found.affinities):
            return None
        counts = np.array(list(self._handle.counts(state).values()))
        return float(counts @ found.activities)


def _hint(reaction: Reaction) -> str:
    rates = "k_on = 2.0, k_off = 1.0" if reaction.reversible else "rate = 2.0"
    return f'"{reaction.equation}; {rates}"'
