"""Subunits of filaments that age, as those of actin do when they hydrolyse ATP."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.jumps.ageing import Ageing as Kernel
from medyanpy._tools.validation import array, plain_name
from medyanpy.beads import GrowingFilaments
from medyanpy.core.columns import SUBUNITS
from medyanpy.core.growing_sites import nodes_in
from medyanpy.errors import ParameterError, shown
from medyanpy.jumps._base import Given, Jump, argument, declared
from medyanpy.jumps._filament_ends import growing, longest_filament

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.state import State

__all__ = ["Ageing"]

# States of all subunits that there is room for, at one byte each.
_MOST = 2**31


@declared
class Ageing(Jump):
    r"""Ageing of the subunits of filaments: each goes from state to state, independently of all others.

    Subunits come in the first state when an end grows. Actin hydrolyses its ATP and then releases phosphate:

    .. math:: \mathrm{ATP} \to \mathrm{ADP\text{-}Pi} \to \mathrm{ADP} .

    With ``off_rates=`` of `jumps.Polymerization` an end loses subunits at a rate of the state of its outermost one.

    Parameters
    ----------
    filaments : GrowingFilaments
        Added with ``rise=``.

    Raises
    ------
    TopologyError
        Not the handle of filaments with subunits.
    ParameterError
        Fewer than two states, or two alike. Other numbers of rates or energies than steps from state to state, or such
        a number outside its domain. More room for subunits than 2³¹ in all.

    Notes
    -----
    The state of every subunit is kept, so that nothing is averaged: a filament of 1000 takes 1000 bytes, and a subunit
    that is t old is in a state with the probability that its chain of rates gives. No force and no length depends on
    it. ``ageing.ages(state)`` counts subunits by state, and ``state.jumps["Ageing"]["states"]``, (f, longest) int,
    has the state of each from the minus end on, -1 beyond. Both are in checkpoints, and not in trajectories.

    It is driven, since nothing goes back. The ``chemical_energy`` of its events is that of `energies`; inf where none
    are given.

    References
    ----------
    L. Blanchoin, T. D. Pollard, Biochemistry 41, 597 (2002): hydrolysis at 0.3 /s. M. F. Carlier, D. Pantaloni,
    Biochemistry 25, 7789 (1986): release of phosphate at 0.0026 /s.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filaments([[[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]]], 4e-12, 1e-6, rise=2.7)
    >>> system = mp.System(topology)
    >>> ageing = system.add_jump(mp.jumps.Ageing(actin, rates=(0.3, 0.0026)))
    >>> context = mp.Context(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0))
    >>> ageing.ages(context.get_state(positions=True))
    array([[ 0,  0, 20]])
    """

    driven = True
    moves_beads = False
    filaments: GrowingFilaments = argument(attribute="Filaments whose subunits age.")
    rates: Given["Sequence[float]", np.ndarray] = argument(
        "(s - 1,) float, 1/s, >= 0", "From each of s states to the next one.", attribute="From each state to the next."
    )
    states: Given["Sequence[str]", tuple[str, ...]] = argument(
        "(s,) of str", "Names of states, in order; subunits come in the first.", default=("ATP", "ADP-Pi", "ADP"),
        kw_only=True, attribute="Names of states, in order.",
    )  # fmt: skip
    start: Given[str | None, str] = argument(
        "str, optional", "State of all subunits at the start; the last where none is given.", default=None,
        kw_only=True, attribute="State of all subunits at the start.",
    )  # fmt: skip
    energies: Given["Sequence[float] | None", np.ndarray | None] = argument(
        "(s - 1,) float, pN nm, optional", "What drives each step from state to state, such as 20 kT.", default=None,
        kw_only=True, attribute="What drives each step from state to state.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._filaments = growing(self.name, given["filaments"])
        names = given["states"]
        if isinstance(names, str) or not isinstance(names, Sequence) or not 2 <= len(names) <= 127:
            raise ParameterError(f"{self.name}: states must be 2 to 127 names, not {shown(names)}")
        self._states = tuple(plain_name(f"{self.name}: states[{i}]", name) for i, name in enumerate(names))
        if len(set(self._states)) < len(self._states):
            raise ParameterError(f"{self.name}: two of the states {', '.join(self._states)} have the same name")
        self._start = self.known("start", self._states[-1] if given["start"] is None else given["start"])
        self._rates = self._of_steps("rates", given["rates"], "1/s")
        self._energies = None if given["energies"] is None else self._of_steps("energies", given["energies"], "pN nm")

    def _of_steps(self, name: str, given: Any, unit: str) -> np.ndarray:
        values = array(f"{self.name}: {name}", given, (None,))
        if len(values) != len(self._states) - 1:
            raise ParameterError(
                f"{self.name}: {name} has {len(values)} numbers, but there are {len(self._states) - 1} steps from one "
                f"of the states {', '.join(self._states)} to the next"
            )
        if name == "rates" and (values < 0.0).any():
            i = int(np.argmax(values < 0.0))
            raise ParameterError(f"{self.name}: rates[{i}] = {values[i]:g} {unit} but must be >= 0")
        values.flags.writeable = False
        return values

    def ages(self, state: "State") -> np.ndarray:
        """Return how many subunits of each filament are in each of the `states` in a State, (f, s) int.

        Raises
        ------
        TopologyError
            A State of a system without jumps.Ageing of these filaments.
        """
        return self._filaments.ages(state)

    def known(self, what: str, state: Any) -> str:
        """Return the name of a state; ParameterError naming `what` where there is no such state."""
        if state not in self._states:
            raise ParameterError(f"{self.name}: {what} = {shown(state)} but must be one of {', '.join(self._states)}")
        return str(state)

    @property
    def kinds(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"{a} to {b}" for a, b in zip(self._states[:-1], self._states[1:], strict=True))

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._filaments,)

    def bind(self, layout: "Layout", kT: float) -> Kernel:
        handle = self._filaments
        energies = np.full(len(self._rates), np.inf) if self._energies is None else self._energies
        nodes = nodes_in(handle, layout)
        operation = Kernel(
            self.name, self.every, self._rates, energies, nodes, layout.arrays[SUBUNITS.array]
        )  # fmt: skip
        operation.ids = handle.ids[handle.starts[:-1]]
        self.update(operation, kT)
        return operation

    def fastest(self, kT: float | None) -> float:
        return float(self._rates.max())

    def state_of(self, what: str, state: Any) -> int:
        """Return the number of a state; ParameterError naming `what` where there is no such state."""
        return self._states.index(self.known(what, state))

    def meet(self, operation: Any, others: Any) -> None:
        """Make room for the subunits of which the jumps that let these filaments grow can tell."""
        handle = self._filaments
        beside = [jump for jump, _ in others if jump.handles == (handle,)]
        if any(isinstance(jump, Ageing) and jump is not self for jump in beside):
            raise ParameterError(f"{self.name}: two jumps of one system let the subunits of {handle.name!r} age")
        room = longest_filament(handle, beside)
        if room * handle.kind.n_room > _MOST:
            raise ParameterError(
                f"{self.name}: {handle.kind.n_room} filaments of up to {room} subunits would have more than {_MOST} "
                "states: let the jumps that grow them have fewer, subunits=(fewest, most)"
            )
        operation.make(room, self._states.index(self._start))

    def carry(self, before: Any, operation: Any) -> None:
        then, now = before.arrays(), operation.arrays()
        for name in now.keys() - operation.of.arrays().keys():
            now[name][...] = then[name]
        row = {int(one): k for k, one in enumerate(before.ids)}
        subunits, room = before.of.in_order(), now["states"].shape[1]
        for i, one in enumerate(operation.ids.tolist()):
            if one not in row:
                continue
            k = row[one]
            if then["states"].shape[1] == room:
                # To the bit: which subunit is tried depends on where it is in its ring.
                now["states"][i], now["first"][i] = then["states"][k], then["first"][k]
            else:
                own = subunits[k][subunits[k] >= 0][:room]
                now["states"][i, : len(own)] = own

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT)

    def shown(self, operation: Any) -> dict[str, Any]:
        states = operation.of.in_order()
        states.flags.writeable = False
        return {"filaments": self._filaments.name, "names": self._states, "states": states}

    def check_state(self, operation: Any, arrays: Mapping[str, np.ndarray]) -> None:
        states, first = arrays["states"], arrays["first"]
        bad = (states < 0) | (states >= len(self._states))
        if bad.any():
            i, k = np.argwhere(bad)[0].tolist()
            raise ParameterError(
                f"{self.name}: states[{i}, {k}] = {states[i, k]}, but states are 0 to {len(self._states) - 1}"
            )
        if ((first < 0) | (first >= states.shape[1])).any():
            raise ParameterError(f"{self.name}: first subunits must be at 0 to {states.shape[1] - 1}")
