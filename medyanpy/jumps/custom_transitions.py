"""Transitions of beads and links at rates that a user writes as text."""

import re
from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.jumps.transitions import LinkTransitions, WrittenTurns
from medyanpy.beads import Lattice
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, shown
from medyanpy.forces.links import Links
from medyanpy.jumps._balance import Balance, log_activities_of
from medyanpy.jumps._base import Domain, domain_table
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._linking import LinkingJump
from medyanpy.jumps._point_reactions import COME, GO, TURN, PointForm, Rates, numbers_for_kernel
from medyanpy.jumps._reaction_texts import read_reactions
from medyanpy.jumps._site_tables import put_steps
from medyanpy.jumps._transition_texts import Transition, read_transitions
from medyanpy.jumps.link_binding import LinkBinding
from medyanpy.surfaces.expressions import Graph, check_length, check_names, parse

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.jumps._base import Jump
    from medyanpy.state import State

__all__ = ["CustomTransitions"]

_PLACE = ("x", "y", "z")
# In the order of the kernel.
_LINK = ("length", "tension", "mean_tension", "energy", "gain", "links")
_ACTIONS = ("unbind", "bind", "step", "step back")


class CustomTransitions(FormedJump):
    r"""Transitions of a user's own, at rates written as text: of beads with species, and of links.

    *Beads with species* are points in triangles, free beads and balls. ``"A -> B; rate = k*exp(-z/l)"`` is one way;
    ``"A <-> B; rate = k, energy = e"`` goes there and back at the rates

    .. math:: k\, e^{-\Delta E/2kT}, \qquad k\, e^{\Delta E/2kT}

    with the energy ΔE of B less that of A, 0 where none is given; ``"A <-> B; k_on = ..., k_off = ..."`` at two rates.
    ``"A -> 0; rate = ..."`` removes beads, ``"0 -> A; rate = ..."`` creates them anywhere on the membrane or in the
    box, and ``"0 <-> A; k_on = ..., k_off = ..."`` does both. Where forces tell the species apart, a transition is
    accepted with :math:`\min\{1, e^{-\Delta U/kT}\}`, as in `Reactions`.

    *Links* are those of a `LinkBinding`, beside whose own rates these act, one jump after another in each letter J:

    - ``"unbind; rate = k*exp(tension/f)"``: a link lets go;
    - ``"bind; rate = k*exp(-energy/kT)"``: two free sites within the reach of that jump, and as it allows them, bind;
    - ``"step; rate = k*exp(-gain/(2*kT))"`` and ``"step back; rate = ..."``: an end on a lattice goes to the next
      place, towards the plus end or from it, if that is free.

    Parameters
    ----------
    subject : handle of beads with species, or Links
        What changes, of the system. Links are those of one `LinkBinding` of the same system.
    transitions : str or list of str
        One on each line. Rates (1/s) and energies (pN nm) of beads are of x, y, z (nm) and n_A, how many there are of
        species A. Those of links are of

        - length (nm), tension (pN, negative of springs that push) and energy (pN nm), of ``bind`` as they would be;
        - mean_tension (pN), where the `LinkBinding` averages it: ``rates=Bell(..., average=...)``;
        - gain (pN nm), the change of the energy by a step;
        - links, how many are bound.

        Further names are kT (pN nm) and parameters. Grammar and functions are those of :doc:`/forces/fields`.
    at_most : float, 1/s, > 0
        Bound of all rates: the number of attempts of a bead, link, end of a link or pair in a second. A rate above it
        ends the run with a `SimulationError` that tells the rate.
    at_most_created : float, 1/(s nm²) on membranes or 1/(s nm³) in space, > 0, optional
        The same of ``0 -> A``, by area or volume. Needed for it, and refused without.
    every, name
        See `Jump`.
    **parameters : float, finite
        The numbers that expressions name. Change them with `set`.

    Raises
    ------
    ParameterError
        Texts that cannot be read, expressions that are missing or too many, species that the beads have not. Reactions
        of two beads: `Reactions` has these. A parameter that is missing, is not in an expression, or has a name with
        another meaning. Links of no `LinkBinding`, or of several; links of heads. Steps without a lattice.
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
    back. Those of links are driven, and each inf.

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
        self, subject: Handle | Links, transitions: Any, *, at_most: float, at_most_created: float | None = None,
        every: int = 1, name: str | None = None, **parameters: float,
    ) -> None:  # fmt: skip
        if "kT" in parameters:
            raise ParameterError(f"{name or type(self).__name__}: kT cannot be a parameter")
        bounds = {"at_most": at_most} | ({} if at_most_created is None else {"at_most_created": at_most_created})
        self.domains: Mapping[str, Domain] = domain_table(
            **dict.fromkeys(bounds, Domain("1/s", above=0.0)), **dict.fromkeys(parameters, Domain())
        )
        self.changeable: tuple[str, ...] = tuple(self.domains)
        self._take({"every": every, "name": name})
        self._subject, self._read = subject, read_transitions(self.name, transitions)
        self._form = LinkForm(self, subject) if isinstance(subject, Links) else BeadForm(self, subject)
        text = " ".join(part for one in self._read for part in one.expressions.values())
        check_length(self.name, text)
        check_names(self.name, text, (*self._form.coordinates, "kT"), tuple(parameters))
        self._declare(**bounds, **parameters)

    def _declare(self, **numbers: Any) -> None:
        super()._declare(**numbers)
        # Errors of the texts are told at once.
        self._form.programs(1.0)

    def expressions(self, one: Transition, kT: float) -> tuple[Graph, dict[str, int]]:
        """Return a graph of the coordinates of the form, and the nodes of the expressions of a transition."""
        names = self._form.coordinates
        graph = Graph(len(names) - 3, len(names))
        at = dict(zip(names, (*graph.coordinates, *graph.others), strict=True))
        given = {"kT": kT, **{p: v for p, v in self._numbers.items() if not p.startswith("at_most")}}
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
    """Transitions of beads between species, of which each may be nothing."""

    _jump: CustomTransitions

    def __init__(self, jump: CustomTransitions, handle: Any) -> None:
        if not isinstance(handle, Handle):
            raise ParameterError(
                f"{jump.name}: subject must be the handle of beads with species, or a Links force, not {shown(handle)}"
            )
        reactions = tuple(one for t in jump._read for one in read_reactions(jump.name, t.equation))
        super().__init__(jump, handle, reactions)
        #: Names of what rates depend on.
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
        self._balance: tuple[Any, bool] = None, False

    def ids(self, operation: Any, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return permanent ids of beads, as the kernel gives them."""
        return a, b

    def programs(self, kT: float) -> list[Any]:
        """Return, of each direction, a program of the rates there and back."""
        programs: list[Any] = []
        for one in self._jump._read:
            graph, nodes = self._jump.expressions(one, kT)
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
            graph, nodes = self._jump.expressions(one, kT)
            numbers = {name: node for name, node in nodes.items() if name != "rate"}
            if not one.goes_back or any(graph.jumps(node) for node in numbers.values()):
                return None
            origin = [np.zeros(1)] * len(self.coordinates)
            values = {name: float(graph.evaluate([node], origin)[0][0]) for name, node in numbers.items()}
            on, off = values.get("k_on", 1.0), values.get("k_off", 1.0)
            if not (on > 0.0 and off > 0.0):
                return None
            logs.append(log(on / off) - values.get("energy", 0.0) / kT)
        return logs

    def _balances_of(self, logs: list[float]) -> list[Balance]:
        ways = [way for i, way in enumerate(self._ways) if way.back > i]
        return [
            Balance({(self._handle, k): n for side, n in zip(way[1:3], (-1.0, 1.0), strict=True) for k in side}, log)
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
        bounds = [self._jump._numbers["at_most_created" if way.kind == COME else "at_most"] for way in self._ways]
        return Rates(tuple(bounds), (0.0,) * len(bounds))

    def bind(self, layout: "Layout", kT: float) -> Any:
        return self.bound_by(WrittenTurns, layout, kT)

    def update(self, operation: Any, kT: float) -> None:
        given = numbers_for_kernel(self._ways, self.found(kT), 0.5)
        operation.set(kT, self.driven, 1.0, 1, False, given)
        numbers = self._jump._numbers
        operation.set_rates(numbers["at_most"], numbers.get("at_most_created", 0.0), self.programs(kT))

    def balances(self, kT: float) -> list[Balance] | None:
        logs = None if self.driven else self._ratios(kT)
        return None if logs is None else self._balances_of(logs)


class LinkForm:
    """Links of a `LinkBinding` that let go, bind and step."""

    coordinates = _LINK
    driven = needs_temperature = True
    handles: tuple[Handle, ...] = ()
    births: tuple[Handle, ...] = ()
    remakes: tuple[Handle, ...] = ()
    pools: tuple[Any, ...] = ()
    stirs: tuple[Any, ...] = ()

    def __init__(self, jump: CustomTransitions, links: Links) -> None:
        self._jump, self._links = jump, links
        self.kinds: tuple[str, ...] = tuple(one.equation for one in jump._read)
        for i, kind in enumerate(self.kinds):
            if kind not in _ACTIONS or kind in self.kinds[:i]:
                said = f"{kind!r} is there twice" if kind in _ACTIONS else f"not {kind!r}: links have no species"
                raise ParameterError(f"{jump.name}: transitions of links are {', '.join(_ACTIONS)}, once each; {said}")
        if "at_most_created" in jump.domains:
            raise ParameterError(f"{jump.name}: at_most_created is of beads: pairs bind at rates of at_most at most")

    def programs(self, kT: float) -> list[Any]:
        """Return programs of the rates."""
        programs = []
        for one in self._jump._read:
            graph, nodes = self._jump.expressions(one, kT)
            programs.append(graph.program([nodes["rate"]]))
        return programs

    def bind(self, layout: "Layout", kT: float) -> Any:
        operation = LinkTransitions(self._jump.name, kT, self._jump.every, map(_ACTIONS.index, self.kinds))
        self.update(operation, kT)
        return operation

    def update(self, operation: Any, kT: float) -> None:
        operation.set_rates(kT, self._jump._numbers["at_most"], self.programs(kT))

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
        steps = [kind for kind in self.kinds if kind.startswith("step")]
        if steps and not any(isinstance(sites, Lattice) for sites, _ in sides):
            raise ParameterError(
                f"{self._jump.name}: {steps[0]}: neither end of the links of {jump.name} is on a lattice, as "
                "filaments.lattice(spacing=...) makes it"
            )
        named = set(re.findall(r"\w+", " ".join(text for one in self._jump._read for text in one.expressions.values())))
        if "mean_tension" in named and (jump._rates is None or jump._rates.average is None):
            raise ParameterError(
                f"{self._jump.name}: mean_tension: {jump.name} averages none; give it rates=Bell(..., average=...)"
            )
        operation.partner = jump
        operation.act_on(binding, beside)

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
