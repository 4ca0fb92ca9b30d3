"""Beads and links whose transitions users write as text, as `CustomTransitions` asks for them."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.jumps.transitions import LinkTransitions, WrittenTurns
from medyanpy.beads import Lattice
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, shown
from medyanpy.forces.links import Links
from medyanpy.jumps._balance import Balance, SpeciesForm
from medyanpy.jumps._linking import LinkingJump
from medyanpy.jumps._point_reactions import COME, GO, TURN, PointForm, numbers_for_kernel
from medyanpy.jumps._reaction_texts import read_reactions
from medyanpy.jumps._site_tables import put_steps
from medyanpy.jumps._transition_texts import Transition
from medyanpy.jumps.link_binding import LinkBinding

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.jumps._base import Jump
    from medyanpy.jumps.custom_transitions import CustomTransitions

__all__ = ["BeadForm", "LinkForm", "WrittenForm"]

_PLACE = ("x", "y", "z")
# In the order of the kernel.
_LINK = ("length", "tension", "mean_tension", "energy", "gain", "links")
_ACTIONS = ("unbind", "bind", "step", "step back")
_CHANGE = len(_ACTIONS)
_ACTION = re.compile(r"(?:(\w+) ?: ?)?(.*)")
_STATES = re.compile(r"(\w+) ?(->|<->) ?(\w+)")


class WrittenForm(SpeciesForm):
    """Base of forms with written transitions: of beads between species, and of links between states."""

    _jump: "CustomTransitions"
    #: Names of what rates depend on.
    coordinates: tuple[str, ...]

    @abstractmethod
    def kept_by(self, one: Transition) -> set[str]:
        """Return the names of what is the same before and after a transition."""

    @abstractmethod
    def makes(self, one: Transition) -> Mapping[Any, float]:
        """Return how much a transition makes of each species or state."""

    def both(self, one: Transition, kT: float) -> tuple[Any, Any]:
        """Return, of a transition that goes both ways, programs of the rates there and back, and back and there."""
        graph, nodes = self._jump.expressions(one, kT)
        there, back = nodes.get("k_on"), nodes.get("k_off")
        if there is None or back is None:
            there = back = nodes["rate"]
            if "energy" in nodes:
                half = graph.divide(nodes["energy"], graph.number(2.0 * kT))
                there = graph.multiply(nodes["rate"], graph.exp(graph.subtract(graph.number(0.0), half)))
                back = graph.multiply(nodes["rate"], graph.exp(half))
        return graph.program([there, back]), graph.program([back, there])

    def _ratio(self, one: Transition, kT: float) -> float | None:
        """Return the logarithm of the rate of a transition there over that back; None where it goes one way, or that
        depends on anything, or the rate on what it changes."""
        if not one.goes_back:
            return None
        graph, nodes = self._jump.expressions(one, kT)
        used = {name: {self.coordinates[i] for i in graph.inputs(node)} for name, node in nodes.items()}
        free = used.pop("rate", set()) <= self.kept_by(one)
        if not free or any(used.values()):
            return None
        origin = [np.zeros(1)] * len(self.coordinates)
        values = {name: float(graph.evaluate([nodes[name]], origin)[0][0]) for name in used}
        on, off = values.get("k_on", 1.0), values.get("k_off", 1.0)
        return log(on / off) - values.get("energy", 0.0) / kT if on > 0.0 and off > 0.0 else None

    @property
    def one_way(self) -> bool:
        return any(self._ratio(one, 1.0) is None for one in self._jump._read)

    def balances(self, kT: float | None) -> list[Balance]:
        found: list[Balance] = []
        for one in self._jump._read:
            # At two temperatures: at all of them.
            ratios = [self._ratio(one, own) for own in ((1.0, 2.0) if kT is None else (kT, kT))]
            if None not in ratios:
                found.append(Balance(self.makes(one), ratios))
        return found

    def shift(self, one: Transition, operation: Any, kT: float) -> float:
        """Return what drives a transition there, kT, less the logarithm of its rates there and back."""
        z = self._jump._together(operation).activities(kT)
        return -sum(n * z.get(species, 0.0) for species, n in self.makes(one).items())


class BeadForm(WrittenForm, PointForm):
    """Transitions of beads between species, of which each may be nothing."""

    def __init__(self, jump: "CustomTransitions", handle: Any) -> None:
        if not isinstance(handle, Handle):
            raise ParameterError(
                f"{jump.name}: subject must be the handle of beads with species, or a Links force, not {shown(handle)}"
            )
        reactions = tuple(one for t in jump._read for one in read_reactions(jump.name, t.equation))
        super().__init__(jump, handle, reactions)
        self.coordinates = (*_PLACE, *(f"n_{one.name}" for one in handle._species))
        for way in self._ways:
            if way.kind not in (TURN, COME, GO):
                raise ParameterError(
                    f"{jump.name}: {way.text}: transitions of beads are A -> B, A -> 0 and 0 -> A, and there and back. "
                    "Reactions has all others, at rates that are numbers"
                )
        for one, reaction in zip(jump._read, reactions, strict=True):
            if one.goes_back and "rate" in one.expressions and not (reaction.reactants and reaction.products):
                raise ParameterError(
                    f"{jump.name}: {one.equation}: give k_on and k_off: one is by area or volume, the other by bead"
                )
        creates = any(way.kind == COME for way in self._ways)
        if creates != ("at_most_created" in jump.domains):
            raise ParameterError(
                f"{jump.name}: at_most_created, 1/(s nm²) on membranes or 1/(s nm³) in space, is "
                + ("needed: it bounds the rates at which beads are created" if creates else
                   "given, but no transition creates beads")
            )  # fmt: skip
        #: The first direction of each.
        self._first = {one.equation: sum(1 + other.goes_back for other in jump._read[:i])
                       for i, one in enumerate(jump._read)}  # fmt: skip

    def ids(self, operation: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return permanent ids of beads, as the kernel gives them."""
        return a, b

    def _paired(self, ways: Any) -> Any:
        """Leave ways as they are: several that do the same may have different rates."""
        return ways

    def kept_by(self, one: Transition) -> set[str]:
        return set(self.coordinates) - {f"n_{self._handle._species[k].name}" for _, k in self.makes(one)}

    def makes(self, one: Transition) -> Mapping[Any, float]:
        way = self._ways[self._first[one.equation]]
        pairs = zip(way[1:3], (-1.0, 1.0), strict=True)
        return {(self._handle, k): n for side, n in pairs for k in side}

    def programs(self, kT: float) -> list[Any]:
        """Return, of each direction, a program of the rates there and back."""
        programs: list[Any] = []
        for one in self._jump._read:
            if one.goes_back:
                programs += self.both(one, kT)
                continue
            graph, nodes = self._jump.expressions(one, kT)
            programs.append(graph.program([nodes["rate"], graph.number(0.0)]))
        return programs

    def found(self, kT: float | None) -> list[float]:
        """Return the bound as the rate of each attempt."""
        return [self._jump._numbers["at_most_created" if way.kind == COME else "at_most"] for way in self._ways]

    def bind(self, layout: "Layout", kT: float) -> Any:
        return self.bound_by(WrittenTurns, layout, kT)

    def update(self, operation: Any, kT: float) -> None:
        driven, _ = self._jump.affinities(operation, kT)
        shifts: list[float] = []
        for one in self._jump._read:
            own = self.shift(one, operation, kT)
            shifts += [own, -own] if one.goes_back else [own]
        given = numbers_for_kernel(self._ways, self.found(kT), shifts, 0.5)
        operation.set(kT, driven, 1.0, 1, False, given)
        numbers = self._jump._numbers
        operation.set_rates(numbers["at_most"], numbers.get("at_most_created", 0.0), self.programs(kT))


class Way(NamedTuple):
    """One direction of a transition of links: its action, the states before and after, -1: any, and whether it is the
    way back."""

    text: str
    action: int
    before: int
    after: int
    back: bool
    one: Transition


class LinkForm(WrittenForm):
    """Links of a `LinkBinding` that let go, bind, step and change their states."""

    handles: tuple[Handle, ...] = ()
    births: tuple[Handle, ...] = ()
    remakes: tuple[Handle, ...] = ()
    pools: tuple[Any, ...] = ()

    def __init__(self, jump: "CustomTransitions", links: Links) -> None:
        self._jump, self._links = jump, links
        self.coordinates = (*_LINK, *(f"n_{state}" for state in links.states))
        self._ways = [way for one in jump._read for way in self._ways_of(one)]
        self.kinds: tuple[str, ...] = tuple(way.text for way in self._ways)
        seen: set[tuple[int, int, int]] = set()
        for way in self._ways:
            # Of what goes anywhere, or from any state, there is one.
            at = {(way.action, s, way.after if way.action in (1, _CHANGE) else 0) for s in self._from(way)}
            if at & seen:
                raise ParameterError(f"{jump.name}: {way.text} is there twice")
            seen |= at
        if "at_most_created" in jump.domains:
            raise ParameterError(f"{jump.name}: at_most_created is of beads: pairs bind at rates of at_most at most")

    def _from(self, way: Way) -> list[int]:
        return [way.before] if way.before >= 0 else list(range(max(1, len(self._links.states))))

    def _ways_of(self, one: Transition) -> list[Way]:
        if found := _STATES.fullmatch(one.equation):
            a, sign, b = found.groups()
            before, after = self._state(one, a), self._state(one, b)
            if before == after:
                raise ParameterError(f"{self._jump.name}: {one.equation}: it changes nothing")
            there, back = (f"{a} -> {b}", before, after), (f"{b} -> {a}", after, before)
            both = [there, back] if sign == "<->" else [there]
            return [Way(text, _CHANGE, i, j, k > 0, one) for k, (text, i, j) in enumerate(both)]
        state, action = _ACTION.fullmatch(one.equation).groups()  # type: ignore[union-attr]
        if action not in _ACTIONS:
            raise ParameterError(
                f"{self._jump.name}: transitions of links are {', '.join(_ACTIONS)}, of one state with its name before "
                f"them, 'weak: unbind', and changes of the state, 'weak -> strong'; not {one.equation!r}"
            )
        at = -1 if state is None else self._state(one, state)
        number = _ACTIONS.index(action)
        return [Way(one.equation, number, 0, max(at, 0), False, one) if action == "bind" else
                Way(one.equation, number, at, at, False, one)]  # fmt: skip

    def _state(self, one: Transition, name: str) -> int:
        if name not in self._links.states:
            known = ", ".join(self._links.states) or "it has none: give it states="
            raise ParameterError(
                f"{self._jump.name}: {one.equation}: {name} is not a state of the links of {self._links.name}: {known}"
            )
        return self._links.states.index(name)

    def kept_by(self, one: Transition) -> set[str]:
        kept = {"length", "links"} | {f"n_{state}" for state in self._links.states}
        if not any(self._links._own_numbers.values()):
            kept |= set(_LINK)
        return kept - {f"n_{self._links.states[k]}" for _, k in self.makes(one)}

    def makes(self, one: Transition) -> Mapping[Any, float]:
        way = next(way for way in self._ways if way.one is one)
        return {(self._links, way.before): -1.0, (self._links, way.after): 1.0}

    def _sorted(self) -> list[Way]:
        """Return all ways in the order of the kernel."""
        return sorted(self._ways, key=lambda way: way[1:3])

    def programs(self, kT: float) -> list[Any]:
        """Return programs of the rates."""
        programs: list[Any] = []
        for way in self._sorted():
            if way.one.goes_back:
                programs.append(self.both(way.one, kT)[way.back])
                continue
            graph, nodes = self._jump.expressions(way.one, kT)
            programs.append(graph.program([nodes["rate"]]))
        return programs

    def bind(self, layout: "Layout", kT: float) -> Any:
        ways, rows = self._sorted(), []
        for way in ways:
            pair = [k for k, other in enumerate(ways) if other.one is way.one and other is not way]
            rows.append((*way[1:4], *(pair or [-1]), self._ways.index(way)))
        named = self._named()
        counting = any(f"n_{state}" in named for state in self._links.states)
        jump, states = self._jump, max(1, len(self._links.states))
        operation = LinkTransitions(jump.name, kT, False, jump.every, rows, states, counting)
        self.update(operation, kT)
        return operation

    def _named(self) -> set[str]:
        """Return all names in expressions."""
        return set(re.findall(r"\w+", " ".join(text for one in self._jump._read for text in one.expressions.values())))

    def update(self, operation: Any, kT: float) -> None:
        driven, _ = self._jump.affinities(operation, kT)
        shifts = [self.shift(way.one, operation, kT) * (-1.0 if way.back else 1.0) if way.action == _CHANGE else 0.0
                  for way in self._sorted()]  # fmt: skip
        operation.set_rates(kT, driven, self._jump._numbers["at_most"], self.programs(kT), shifts)

    def meet(self, operation: Any, others: "list[tuple[Jump, Any]]") -> None:
        """Find the jump whose links these are."""
        binding_links: list[tuple[Any, Any]] = [pair for pair in others if isinstance(pair[0], LinkingJump)]
        found = [pair for pair in binding_links if pair[0]._links is self._links]
        if len(found) != 1 or not isinstance(found[0][0], LinkBinding):
            names = ", ".join(f"{jump.name} ({type(jump).__name__})" for jump, _ in found) or "none"
            raise ParameterError(
                f"{self._jump.name}: the links of {self._links.name} must be those of one LinkBinding in the system, "
                f"not of {names}. Links that are given from the start can be its bound=, with on_rate=0; heads let go "
                "at rates of their own"
            )
        jump, binding = found[0]
        sides = [(jump._a, jump._table.of_a)] + ([] if jump._own_b is None else [(jump._own_b, jump._table.of_b)])
        beside = np.full((len(jump._table.sites), 2), -1, np.int32)
        for lattice, of in sides:
            if isinstance(lattice, Lattice):
                put_steps(beside, lattice, of, 1)
        steps = [way.text for way in self._ways if "step" in way.text.split(":")[-1].split()]
        if steps and not any(isinstance(sites, Lattice) for sites, _ in sides):
            raise ParameterError(
                f"{self._jump.name}: {steps[0]}: neither end of the links of {jump.name} is on a lattice, as "
                "filaments.lattice(spacing=...) makes it"
            )
        if "mean_tension" in self._named() and (jump._rates is None or jump._rates.average is None):
            raise ParameterError(
                f"{self._jump.name}: mean_tension: {jump.name} averages none; give it rates=Bell(..., average=...)"
            )
        operation.partner = jump
        operation.act_on(binding, beside)

    def ids(self, operation: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the sites of the jump that bound the link."""
        out: tuple[np.ndarray, np.ndarray] = operation.partner.ids(operation.binding, a, b)
        return out

    def shown(self, operation: Any) -> dict[str, Any]:
        return {}

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        pass

    def weigh(self, operation: Any, schedule: Any) -> None:
        pass

    def fastest(self, kT: float | None) -> float | None:
        rate: float = self._jump._numbers["at_most"]
        return rate

    def notes(self, look: Any) -> list[str]:
        return []
