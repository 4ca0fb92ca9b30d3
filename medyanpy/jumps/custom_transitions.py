"""Transitions of beads and links at rates that a user writes as text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError
from medyanpy.forces.links import Links
from medyanpy.jumps._base import Domain, domain_table
from medyanpy.jumps._formed import FormedJump
from medyanpy.jumps._transition_texts import Transition, read_transitions
from medyanpy.jumps._written_forms import BeadForm, LinkForm
from medyanpy.surfaces.expressions import Graph, check_length, check_names, parse

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation

__all__ = ["CustomTransitions"]

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
      place, towards the plus end or from it, if that is free;
    - ``"weak -> strong; rate = ..."``: where the links have states, ``Links(states=["weak", "strong"])``, one changes;
      with ``<->`` there and back, as beads between species. Where springs differ by state, a change is accepted with
      :math:`\min\{1, e^{-\Delta U/kT}\}`.

    ``"strong: unbind; rate = ..."`` is of links in one state, and so are ``"strong: step; ..."`` and
    ``"strong: step back; ..."``. By ``"strong: bind; ..."`` links bind in another state than the first. The rates of
    the `LinkBinding` are those of links in the first state; others let go by text alone.

    Parameters
    ----------
    subject : handle of beads with species, or Links
        What changes, of the system. Links are those of one `LinkBinding` of the same system.
    transitions : str or list of str
        One on each line. Rates (1/s) and energies (pN nm) of beads are of x, y, z (nm) and n_A, how many there are of
        species A. Those of links are of

        - length (nm), tension (pN, negative of springs that push) and energy (pN nm), of ``bind`` as they would be;
        - mean_tension (pN), where the `LinkBinding` averages it: ``rates=Bell(..., average=...)``;
        - gain (pN nm), the change of the energy by a step, or by a change of the state;
        - links, how many are bound, and n_weak, how many in the state weak.

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
        another meaning. Links of no `LinkBinding`, or of several; links of heads. Steps without a lattice. A state that
        the links have not, or one transition twice.
    TopologyError
        Beads that are neither points in a membrane nor free beads or balls.

    Notes
    -----
    Waiting times are exact (thinning): attempts are made at the bound, and accepted with the share rate/`at_most`. The
    position is that at the letter J, in a periodic box of the image nearest to the origin.

    It is balanced, and its changes of the energy are heat, where each transition goes both ways, energies (or `k_on`
    and `k_off`) depend on no coordinate, and their sum around each cycle, also through other jumps, is 0. There `rate`
    may depend on anything that the transition leaves as it is. Otherwise `driven` is True, and they are chemical
    energy. Energies that depend on the place drive beads that move, since no force goes with them: write those as a
    force that names the species.
    ``chemical_energy`` of an event is kT times the logarithm of the rates there and back; its sum along a cycle is what
    drives the cycle. It is inf without a way back, and of links that bind, let go or step, which are driven. Links that
    change their states have the probability :math:`e^{-(U + E)/kT}` in balance, with the energies U of springs and E of
    texts.

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

    _form: BeadForm | LinkForm

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
