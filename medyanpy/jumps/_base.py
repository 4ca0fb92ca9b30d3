"""Base classes of jumps."""

import weakref
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from medyanpy._kernels.program import Operation
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.parameters import Parameterized
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces import Force
from medyanpy.handles import Handle
from medyanpy.sites import Sites

if TYPE_CHECKING:
    from medyanpy._kernels.jumps import JumpOperation
    from medyanpy.context import Context
    from medyanpy.engine.schedule import Schedule
    from medyanpy.layout import Layout
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["Counts", "Domain", "Jump", "domain_table"]


class Counts(NamedTuple):
    """Numbers of tries of a jump, and of tries that changed something."""

    tried: int
    accepted: int


class Jump(Parameterized):
    """Something that happens at once, at random times: a link binds, an edge flips.

    A jump only describes, as a force does: each Context makes of it an operation of its own with `bind`, which holds
    the discrete state (which links are bound) of that context. To write one, see "How to add a jump" in the
    documentation.

    Parameters
    ----------
    every : int, >= 1
        Acts at each so many steps only, for as many steps' time: the same on average, and cheaper, as long as beads
        hardly move in between.
    name : str, optional
        By which events and counts go; the class name where none is given.
    """

    _remedy = "make a new jump, and a new System with it; only jump.changeable can be set"
    #: What its events are called, by the number that the kernel gives.
    kinds: ClassVar[tuple[str, ...]] = ()
    #: Whether it must know kT; words without a temperature are refused then.
    needs_temperature = True
    #: Whether rates are not in balance with the energy on purpose: then what events do to it is chemical energy, not
    #: heat.
    driven = False

    def __init__(self, *, every: int = 1, name: str | None = None) -> None:
        super().__init__(name=name)
        self.every: int = whole_number(f"{self.name}: every", every, at_least=1, at_most=2**31 - 1)
        self._contexts: weakref.WeakSet[Context] = weakref.WeakSet()

    # For users ----------------------------------------------------------------------------------------------

    @property
    def counts(self) -> Counts:
        """Numbers of tries and of accepted tries in the one Context that uses it.

        With several contexts, ask ``state.counts[name]``.

        Raises
        ------
        ParameterError
            No context uses it, or several do.
        """
        contexts = list(self._contexts)
        if len(contexts) != 1:
            raise ParameterError(
                f"{self.name}: counts belong to a Context, and {len(contexts) or 'none'} use it: ask "
                "context.get_state().counts"
            )
        out: Counts = contexts[0].get_state().counts[contexts[0].system.name_of(self)]
        return out

    # For authors of jumps -----------------------------------------------------------------------------------

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The handles this jump was given: a System refuses those of another topology."""
        return ()

    @property
    def births(self) -> tuple[Handle, ...]:
        """Handles whose beads it bears: they have room, one mass and one friction, and forces on them one of each of
        their numbers."""
        return ()

    @property
    def forces(self) -> tuple[Force, ...]:
        """The forces whose terms it changes: they must be in the system."""
        return ()

    @abstractmethod
    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        """The operation that does this jump on the arrays of one Context, at its start; kT, pN nm, is nan without a
        thermostat."""

    @abstractmethod
    def update(self, operation: "JumpOperation", kT: float) -> None:
        """Give an operation the numbers as they are now, those of its forces included; its state stays."""

    def joined(
        self, operation: "JumpOperation", force: Force, bound: Operation, layout: "Layout"
    ) -> Operation:
        """The operation of one of its `forces`, with the terms that this jump adds."""
        return bound

    def meet(self, operation: "JumpOperation", others: "list[tuple[Jump, JumpOperation]]") -> None:
        """Called when all jumps of a context are bound: with those of the same kind, it may share what they have."""

    def weigh(self, operation: "JumpOperation", schedule: "Schedule") -> None:
        """Called whenever forces of the context have been bound: a jump that asks all of them what it does to their
        energies takes ``schedule.bound`` here, in the order of ``schedule.system.forces``."""

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float | None:
        """The logarithm of what the target distribution weighs a state by beside exp(-U/kT), with the numbers of now.

        Replica exchange compares it between states of a ladder: factors that are the same for all numbers and
        temperatures are left out. Beads that jumps create count with normalised Maxwell distributions of their momenta.

        Parameters
        ----------
        operation : JumpOperation
            That of the context.
        state : State
            Of that context, with positions and energy.
        kT : float, pN nm
            Of the target distribution, which need not be that of the context.

        Returns
        -------
        float or None
            None, unless a class overrides this: replica exchange then refuses the jump.
        """
        return None

    def carry(self, before: "JumpOperation", operation: "JumpOperation") -> None:
        """The topology has been edited: let an operation, at its start, take over the state of the one before that.

        Raises
        ------
        TopologyError
            What the jump is about has changed, and it does not say what becomes of its state: it needs a method of its
            own.
        """
        theirs, own = before.arrays(), operation.arrays()
        for name, array in own.items():
            if name not in theirs or theirs[name].shape != array.shape:
                raise TopologyError(
                    f"edit: {self.name} cannot go on: its {name} have another shape now, and {type(self).__name__} "
                    "does not say what becomes of them: remove_jump it first"
                )
            array[...] = theirs[name]

    def shown(self, operation: "JumpOperation") -> Mapping[str, Any]:
        """Return what a State holds of the discrete state, by name: arrays that do not change afterwards."""
        return {}

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        """Return the arrays of a state that `shown` would describe so, as frames of trajectories hold it.

        For `Context.set_state`; empty where they are not determined: then the state stays as it is.

        Raises
        ------
        TopologyError
            What cannot be of this jump.
        """
        return {}

    def in_frames(self) -> "tuple[str, int] | None":
        """Name the array of `shown`, (k, 2) int32, that trajectories hold of every frame, and its most rows."""
        return None

    def beside_frames(self) -> "Mapping[str, Sites]":
        """Return the sites counted by the numbers of `in_frames`, one for each column.

        Pictures draw a line between two.
        """
        return {}

    def ids(self, operation: "JumpOperation", a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the permanent numbers of the two objects of each event."""
        return a, b

    def check_state(self, operation: "JumpOperation", arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays, by the names and of the shapes and types that ``operation.arrays()`` has, that are no state.

        Raises
        ------
        ParameterError
        """

    def check(self, topology: "Topology", forces: tuple[Force, ...]) -> None:
        """Refuse a system that this jump cannot act in.

        Raises
        ------
        ParameterError, TopologyError
        """
        for force in self.forces:
            if not any(force is one for one in forces):
                raise ParameterError(f"{self.name}: {force!r} must be in the system first: system.add_force(...)")

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "every": self.every}
