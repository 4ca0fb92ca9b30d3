"""Transitions of beads and links at rates that a user writes as text."""

from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.jumps.transitions import LinkTransitions, WrittenTurns
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, shown
from medyanpy.forces.links import Links
from medyanpy.jumps._balance import Balance, log_activities_of
from medyanpy.jumps._base import Domain, domain_table
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._linking import LinkingJump
from medyanpy.jumps._point_reactions import TURN, PointForm, Rates, numbers_for_kernel
from medyanpy.jumps._reaction_texts import read_reactions
from medyanpy.jumps._transition_texts import Transition, read_transitions
from medyanpy.jumps.link_binding import LinkBinding
from medyanpy.surfaces.expressions import Graph, check_length, check_names, parse

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.jumps._base import Jump
    from medyanpy.state import State

__all__ = ["CustomTransitions"]

_PLACE, _LINK = ("x", "y", "z"), ("length", "tension", "energy")


class CustomTransitions(FormedJump):
    r"""Transitions of a user's own: beads that change their species, and links that let go, at rates written as text.

    *Beads with species*: points in triangles, free beads and balls. ``"A -> B; rate = k*exp(-z/l)"`` is one way;
    ``"A <-> B; rate = k, energy = e"`` goes there and back at the rates

    .. math:: k\, e^{-\Delta E/2kT}, \qquad k\, e^{\Delta E/2kT}

    with the energy ΔE of B less that of A, 0 where none is given; ``"A <-> B; k_on = ..., k_off = ..."`` at two rates.
    Where forces tell the species apart, a transition is accepted with :math:`\min\{1, e^{-\Delta U/kT}\}`, as in
    `Reactions`.

    *Links* that `LinkBinding` has bound: ``"unbind; rate = k*exp(tension/f)"``, beside the `off_rate` of that jump. The
    two act one after another in each letter J.

    Parameters
    ----------
    subject : handle of beads with species, or Links
        What changes, of the system. Links are those of one `LinkBinding` of the same system.
    transitions : str or list of str
        One on each line. Rates (1/s) and energies (pN nm) are those of x, y, z (nm) for beads; of length (nm), tension
        (pN, negative of springs that push) and energy (pN nm) for links. Further names are kT (pN nm) and parameters.
        Grammar and functions are those of :doc:`/forces/fields`.
    at_most : float, 1/s, > 0
        Bound of all rates: the number of attempts of a bead or link in a second. A rate above it ends the run with a
        `SimulationError` that tells the rate.
    every, name
        See `Jump`.
    **parameters : float, finite
        The numbers that expressions name. Change them with `set`.

    Raises
    ------
    ParameterError
        Texts that cannot be read, expressions that are missing or too many, species that the beads have not, actions
        that other jumps have (the message names these). A parameter that is missing, is not in an expression, or has a
        name with another meaning. Links of no `LinkBinding`, or of several; links of heads.
    TopologyError
        Beads that are neither points in a membrane nor free beads or balls.

    Notes
    -----
    Waiting times are exact (thinning): attempts are made at the bound, and accepted with the share rate/`at_most`. The
    position is that at the letter J, in a periodic box of the image nearest to the origin.

    It is balanced, and its changes of the energy are heat, where each transition goes both ways, energies (or `k_on`
    and `k_off`) depend on no coordinate, and their sum around each cycle is 0; `rate` may depend on anything. Otherwise
    `driven` is True, and they are chemical energy. Energies that depend on the place drive beads that move, since no
    force goes with them: write those as a force that names the species. ``chemical_energy`` of an event is kT times
    the logarithm of the rates there and back; its sum along a cycle is what drives the cycle. It is inf without a way
    back, and of links that unbind.

    ``state.jumps[name]`` holds ``"events"``, (n,) numbers of events in the order of `kinds`.

    References
    ----------
    P. A. W. Lewis, G. S. Shedler, Nav. Res. Logist. Q. 26, 403 (1979): thinning.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> species = {name: {"mass": 1.0, "friction": 1.0} for name in "AB"}
    >>> beads = topology.add_beads([[0.0, 0, 0], [0.0, 0, 5]], species=species, of_species="A")
    >>> system = mp.System(topology)
    >>> text = "A -> B; rate = k*exp(-z/l)"
    >>> switch = system.add_jump(mp.jumps.CustomTransitions(beads, text, at_most=20.0, k=2.0, l=3.0))
    >>> switch.driven, switch.kinds
    (True, ('A -> B',))
    """

    _form: "BeadForm | LinkForm"

    def __init__(
        self, subject: Handle | Links, transitions: Any, *, at_most: float, every: int = 1, name: str | None = None,
        **parameters: float,
    ) -> None:  # fmt: skip
        for taken in ("at_most", "kT"):
            if taken in parameters:
                raise ParameterError(f"{name or type(self).__name__}: {taken} cannot be a parameter")
        self.domains: Mapping[str, Domain] = domain_table(
            at_most=Domain("1/s", above=0.0), **dict.fromkeys(parameters, Domain())
        )
        self.changeable: tuple[str, ...] = tuple(self.domains)
        self._take({"every": every, "name": name})
        self._subject, self._read = subject, read_transitions(self.name, transitions)
        self._form = LinkForm(self, subject) if isinstance(subject, Links) else BeadForm(self, subject)
        text = " ".join(part for one in self._read for part in one.expressions.values())
        check_length(self.name, text)
        check_names(self.name, text, (*self._form.coordinates, "kT"), tuple(parameters))
        self._declare(at_most=at_most, **parameters)

    def _declare(self, **numbers: Any) -> None:
        super()._declare(**numbers)
        # Errors of the texts are told at once.
        self._form.programs(1.0)

    def expressions(self, one: Transition, kT: float, names: tuple[str, ...]) -> tuple[Graph, dict[str, int]]:
        """Return a graph of coordinates with these names, and the nodes of the expressions of a transition."""
        graph = Graph()
        at = dict(zip(names, graph.coordinates, strict=True))
        given = {"kT": kT, **{p: v for p, v in self._numbers.items() if p != "at_most"}}
        # A text may not name what it does not have, but need not name all.
        inputs = {p: graph.number(float(v)) for p, v in given.items()}
        found = {}
        for name, text in one.expressions.items():
            what = f"{self.name}: {one.equation}: {name}"
            found[name] = parse(what, text, graph, inputs, polynomial=False, coordinates=at)
        return graph, found

    @property
    def subject(self) -> Handle | Links:
        """Beads or links that change."""
        return self._subject

    @property
    def transitions(self) -> tuple[str, ...]:
        """Texts of the transitions."""
        return tuple(
            f"{one.equation}; {', '.join(f'{name} = {text}' for name, text in one.expressions.items())}"
            for one in self._read
        )

    def ids(self, operation: "JumpOperation", a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._form.ids(operation, a, b)

    def _acts_on(self) -> str:
        return str(self._subject.name)

    def _row(self) -> tuple[str, str]:
        return self._acts_on(), ", ".join(self.transitions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._acts_on()}: {'; '.join(one.equation for one in self._read)})"


class BeadForm(PointForm):
    """Transitions of beads between species."""

    coordinates = _PLACE
    _jump: CustomTransitions

    def __init__(self, jump: CustomTransitions, handle: Any) -> None:
        if not isinstance(handle, Handle):
            raise ParameterError(
                f"{jump.name}: subject must be the handle of beads with species, or a Links force, not {shown(handle)}"
            )
        reactions = tuple(one for t in jump._read for one in read_reactions(jump.name, t.equation))
        super().__init__(jump, handle, reactions)
        for way in self._ways:
            if way.kind != TURN:
                raise ParameterError(
                    f"{jump.name}: {way.text}: transitions of beads are A -> B and A <-> B. Reactions has all others, "
                    "at rates that are numbers"
                )
        self._balance: tuple[Any, bool] = None, False

    def ids(self, operation: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return permanent ids of beads, as the kernel gives them."""
        return a, b

    def programs(self, kT: float) -> list[Any]:
        """Return, of each direction, a program of the rates there and back."""
        programs: list[Any] = []
        for one in self._jump._read:
            graph, nodes = self._jump.expressions(one, kT, _PLACE)
            if not one.goes_back:
                programs.append(graph.program([nodes["rate"], graph.number(0.0)]))
                continue
            there, back = nodes.get("k_on"), nodes.get("k_off")
            if there is None or back is None:
                there = back = nodes["rate"]
                if "energy" in nodes:
                    half = graph.divide(nodes["energy"], graph.number(2.0 * kT))
                    there = graph.multiply(nodes["rate"], graph.exp(graph.subtract(graph.number(0.0), half)))
                    back = graph.multiply(nodes["rate"], graph.exp(half))
            programs += [graph.program([there, back]), graph.program([back, there])]
        return programs

    def _ratios(self, kT: float) -> list[float] | None:
        """Return, of each transition, the logarithm of the rate there over that back; None where one goes one way, or
        they depend on the place."""
        logs: list[float] = []
        for one in self._jump._read:
            graph, nodes = self._jump.expressions(one, kT, _PLACE)
            numbers = {name: node for name, node in nodes.items() if name != "rate"}
            if not one.goes_back or any(graph.jumps(node) for node in numbers.values()):
                return None
            origin = [np.zeros(1)] * len(_PLACE)
            values = {name: float(graph.evaluate([node], origin)[0][0]) for name, node in numbers.items()}
            on, off = values.get("k_on", 1.0), values.get("k_off", 1.0)
            if not (on > 0.0 and off > 0.0):
                return None
            logs.append(log(on / off) - values.get("energy", 0.0) / kT)
        return logs

    def _balances_of(self, logs: list[float]) -> list[Balance]:
        ways = [way for i, way in enumerate(self._ways) if way.back > i]
        return [
            Balance({(self._handle, way.products[0]): 1.0, (self._handle, way.reactants[0]): -1.0}, log)
            for way, log in zip(ways, logs, strict=True)
        ]

    @property
    def driven(self) -> bool:
        version = self._jump.version
        if self._balance[0] != version:
            # At two temperatures: at all of them.
            ratios = [self._ratios(1.0), self._ratios(2.0)]
            closed = all(
                logs is not None and not log_activities_of(self._balances_of(logs))[1].any() for logs in ratios
            )
            self._balance = version, not closed
        return self._balance[1]

    def found(self, kT: float | None) -> Rates:
        """Return the bound as the rate of each attempt; the kernel finds what drives an event."""
        n = len(self._ways)
        return Rates((self._jump._numbers["at_most"],) * n, (0.0,) * n)

    def bind(self, layout: "Layout", kT: float) -> Any:
        return self.bound_by(WrittenTurns, layout, kT)

    def update(self, operation: Any, kT: float) -> None:
        given = numbers_for_kernel(self._ways, self.found(kT), 0.5)
        operation.set(kT, self.driven, 1.0, 1, False, given)
        operation.set_rates(self._jump._numbers["at_most"], self.programs(kT))

    def balances(self, kT: float) -> list[Balance] | None:
        logs = None if self.driven else self._ratios(kT)
        return None if logs is None else self._balances_of(logs)


class LinkForm:
    """Links of a `LinkBinding` that let go."""

    coordinates = _LINK
    kinds = ("unbind",)
    driven = needs_temperature = True
    handles: tuple[Handle, ...] = ()
    births: tuple[Handle, ...] = ()
    remakes: tuple[Handle, ...] = ()
    pools: tuple[Any, ...] = ()
    stirs: tuple[Any, ...] = ()

    def __init__(self, jump: CustomTransitions, links: Links) -> None:
        self._jump, self._links = jump, links
        wrong = [one.equation for one in jump._read if one.equation != "unbind"]
        if wrong or len(jump._read) > 1:
            said = repr(wrong[0]) if wrong else f"{len(jump._read)} of them"
            raise ParameterError(
                f'{jump.name}: transitions of links are one text, "unbind; rate = ...", not {said}: LinkBinding binds, '
                "and links have no species"
            )

    def programs(self, kT: float) -> list[Any]:
        """Return the program of the rate."""
        graph, nodes = self._jump.expressions(self._jump._read[0], kT, _LINK)
        return [graph.program([nodes["rate"]])]

    def bind(self, layout: "Layout", kT: float) -> Any:
        operation = LinkTransitions(self._jump.name, kT, self._jump.every)
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        operation.set_rates(kT, self._jump._numbers["at_most"], self.programs(kT)[0])

    def meet(self, operation: Any, others: "list[tuple[Jump, Any]]") -> None:
        """Find the jump whose links let go."""
        found = [pair for pair in others if isinstance(pair[0], LinkingJump) and pair[0]._links is self._links]
        if len(found) != 1 or not isinstance(found[0][0], LinkBinding):
            names = ", ".join(f"{jump.name} ({type(jump).__name__})" for jump, _ in found) or "none"
            raise ParameterError(
                f"{self._jump.name}: the links of {self._links.name} must be those of one LinkBinding in the system, "
                f"not of {names}. Links that are given from the start can be its bound=, with on_rate=0; heads let go "
                "at rates of their own"
            )
        operation.partner, binding = found[0]
        operation.act_on(binding)

    def ids(self, operation: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of the sites of the jump that bound the link."""
        out: tuple[np.ndarray, np.ndarray] = operation.partner.ids(operation.binding, a, b)
        return out

    def log_weight(self, operation: Any, state: "State", kT: float) -> float | None:
        return None

    def shown(self, operation: Any) -> Mapping[str, Any]:
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
