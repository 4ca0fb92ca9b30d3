"""Base classes of jumps."""

import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from medyanpy._kernels.core.program import Operation
from medyanpy._tools.declared import Given, argument, declared, number
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.parameters import Parameterized
from medyanpy._tools.validation import whole_number
from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, PerformanceWarning, TopologyError
from medyanpy.forces import Force
from medyanpy.jumps._balance import Balance, Company
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.context import Context
    from medyanpy.core.layout import Layout
    from medyanpy.core.sites import Sites
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["Counts", "Domain", "Given", "Jump", "argument", "declared", "domain_table", "number"]


# Trials a step below which a whole energy for each costs less than the step.
_FEW = 0.5


class Counts(NamedTuple):
    """Numbers of tries of a jump, and of tries that changed something."""

    tried: int
    accepted: int


@declared
class Jump(Parameterized):
    """A sudden change at random times: a link binds, an edge flips.

    A jump only describes, as a force does: each Context makes its own operation from it with `bind`, which holds the
    discrete state (which links are bound) of that context. To write one, see "How to add a jump" in the documentation.

    Parameters
    ----------
    every : int, >= 1
        Act only once in so many steps, for as many steps' time: the same on average, and cheaper, as long as beads
        hardly move in between.
    name : str, optional
        Name of its events and counts; the class name where none is given.
    """

    _remedy = "make a new jump, and a new System with it; only jump.changeable can be set"
    #: Names of its events, by the number that the kernel gives.
    kinds: ClassVar[tuple[str, ...]] = ()
    #: True if it needs kT; words without a temperature are refused then.
    needs_temperature = True
    #: True if rates are deliberately not in balance with the energy: its changes by events are then chemical energy,
    #: not heat.
    driven = False

    #: True if its events move, create or remove beads, or change what forces act on.
    moves_beads = True

    #: For authors: help() of other jumps leaves these out.
    _hooks = frozenset(
        "arrays_shown balances beside beside_frames bind births carry changed_box check check_forces "
        "check_room check_state domains driven fastest flips_edges_of forces ids in_frames joined kinds "
        "log_weight meet moves_beads naming needs_temperature notes pools remakes remarks remarks_on_cost "
        "shown stirs update weigh without".split()
    )

    every: int = argument("", "See `Jump`.", default=1, kw_only=True)
    name: Given[str | None, str] = argument("", "See `Jump`.", default=None, kw_only=True)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self.every = whole_number(f"{self.name}: every", given["every"], at_least=1, at_most=2**31 - 1)
        self._contexts: weakref.WeakSet[Context] = weakref.WeakSet()
        #: All jumps of the system that it was last added to; None before.
        self._company: Company | None = None

    @property
    def counts(self) -> Counts:
        """Numbers of tries and of accepted tries in the one Context that uses it.

        With several contexts, or none, that is a ParameterError: ask ``state.counts[name]``.
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
        """Handles that it was given; a System refuses those of another topology."""
        return ()

    @property
    def births(self) -> tuple[Handle, ...]:
        """Handles to which it adds beads: with room, one mass and friction, and one of each number of forces on
        them."""
        return ()

    @property
    def remakes(self) -> tuple[Handle, ...]:
        """Handles of which beads may have another mass and friction after its events: those to which it adds beads, and
        others."""
        return self.births

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        """Pools whose molecules it takes, gives or counts: they must be in the system."""
        return ()

    @property
    def stirs(self) -> tuple[MoleculePool, ...]:
        """Pools whose molecules it moves from cell to cell."""
        return ()

    @property
    def _held_places(self) -> "Sites | None":
        """Sites at which it holds something, if filaments that grow may have them; None without any."""
        return None

    @property
    def forces(self) -> tuple[Force, ...]:
        """Forces of which it changes the terms: they must be in the system."""
        return ()

    @abstractmethod
    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        """Return the operation that does this jump on the arrays of one Context, at its start; kT, pN nm, may be
        nan."""

    @abstractmethod
    def update(self, operation: "JumpOperation", kT: float) -> None:
        """Update the numbers of an operation, those of its forces included; its state stays."""

    def joined(self, operation: "JumpOperation", force: Force, bound: Operation, layout: "Layout") -> Operation:
        """Return the operation of one of its `forces`, with the terms that this jump adds."""
        return bound

    def meet(self, operation: "JumpOperation", others: "list[tuple[Jump, JumpOperation]]") -> None:
        """Meet the other jumps of a context once all are bound, to share data with those of the same kind."""

    def weigh(self, operation: "JumpOperation", schedule: "Schedule") -> None:
        """Take the bound forces of the context, whenever they have been bound.

        They are ``schedule.bound``, in the order of ``schedule.system.forces``.
        """

    def remarks_on_cost(self, operation: "JumpOperation", schedule: "Schedule") -> "list[Remark]":
        """Return remarks on bound forces that make its trials slow."""
        return []

    def _remarks_on_whole_energies(
        self, schedule: "Schedule", rate: float, what: str,
        is_slow: Callable[[Force, Operation], bool] = lambda _, bound: not bound.has_local_difference,
    ) -> "list[Remark]":
        """Return a remark on forces whose whole energy each trial evaluates twice, at so many trials in a second."""
        named = zip(schedule.system.force_names, schedule.system.forces, schedule.bound, strict=True)
        slow = [name for name, force, bound in named if is_slow(force, bound)]
        trials = rate * schedule.integrator.timestep
        if not slow or trials < _FEW:
            return []
        text = (
            f"{self.name}: {', '.join(slow)} cannot tell what {what} changes without the whole energy: {trials:.3g} "
            f"trials a step evaluate it {2.0 * trials:.3g} times. Take a lower rate, or a force with a local "
            "difference (docs: Fluid membranes, Cost per force)"
        )
        return [(PerformanceWarning, text)]

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float | None:
        """Return the logarithm of the weight of a state beside exp(-U/kT), with present numbers; None: it has none.

        Replica exchange compares it between states of a ladder, at a kT that need not be that of the context, and
        refuses jumps without. Factors that are the same for all numbers and temperatures are left out. Beads that jumps
        add count with normalised Maxwell distributions of their momenta. The state has positions and energy.
        """
        return None

    def carry(self, before: "JumpOperation", operation: "JumpOperation") -> None:
        """Copy to an operation, at its start, the state of the one before an edit of the topology.

        Raises TopologyError where its objects have changed, and it has no rule for its state: it needs its own method.
        """
        theirs, own = before.arrays(), operation.arrays()
        for name, array in own.items():
            if name not in theirs or theirs[name].shape != array.shape:
                raise TopologyError(
                    f"edit: {self.name} cannot continue: its {name} have another shape now, and {type(self).__name__} "
                    "does not say what becomes of them: remove_jump it first"
                )
            array[...] = theirs[name]

    def shown(self, operation: "JumpOperation") -> Mapping[str, Any]:
        """Return what a State holds of the discrete state, by name: arrays that do not change afterwards."""
        return {}

    def arrays_shown(self, operation: "JumpOperation", shown: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        """Return the arrays of a state that `shown` would describe so, for `Context.set_state`.

        Empty where they are not determined: then the state stays as it is. TopologyError if they cannot belong to this
        jump.
        """
        return {}

    def in_frames(self) -> "tuple[tuple[str, ...], int] | None":
        """Name what of `shown` trajectories hold of every frame, and its most rows: ``"links"``, (k, 2) int32, and
        where links have states ``"states"``, (k,)."""
        return None

    def beside_frames(self) -> "Mapping[str, Sites]":
        """Return the sites counted by each column of `in_frames`; pictures draw a line between two."""
        return {}

    def ids(self, operation: "JumpOperation", a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the permanent numbers of the two objects of each event."""
        return a, b

    def check_state(self, operation: "JumpOperation", arrays: Mapping[str, np.ndarray]) -> None:
        """Raise a ParameterError for arrays that are not a state; they are like those of ``operation.arrays()``."""

    def check_room(
        self, operation: "JumpOperation", arrays: "Mapping[Jump, Mapping[str, np.ndarray]]", is_start: bool
    ) -> None:
        """Raise a ParameterError where it holds places that jumps before it hold, with more than there is room for.

        The arrays are those of all jumps, which have been checked; at the start with what is bound then.
        """

    def check(self, topology: "Topology", forces: tuple[Force, ...]) -> None:
        """Raise a ParameterError or TopologyError for a system in which this jump cannot act, when it is added."""
        for force in self.forces:
            if not any(force is one for one in forces):
                raise ParameterError(f"{self.name}: {force!r} must be in the system first: system.add_force(...)")

    def check_forces(self, forces: tuple[Force, ...]) -> None:
        """Raise a ParameterError for forces with which it cannot act, or where one is missing, when a Context is made:
        forces may be added after it."""

    def beside(self, jumps: "Sequence[Jump]") -> None:
        """Know all jumps of its system, itself among them: whenever one is added or removed, or a Context is made.

        Raises a ParameterError, before anything is changed, if it cannot act beside these.
        """
        self._company = Company(jumps)

    def _together(self, operation: "JumpOperation | None" = None) -> Company:
        """Return all jumps of the context of an operation, or of the system that it was last added to."""
        found = self._company if operation is None or operation.company is None else operation.company
        return Company((self,)) if found is None else found

    def balances(self, kT: float | None) -> Sequence[Balance]:
        """Return what it does both ways to species that other jumps may change too; kT, pN nm, is None as long as no
        temperature is known. Affinities, `Company.affinities`, are in the same order."""
        return ()

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return what is wrong or unlikely about it in a system, for `Simulation.check` and warnings."""
        return []

    def notes(self, look: "Look") -> list[str]:
        """Return sentences on its numbers in a system that `Simulation.check` prints, and that are no warnings."""
        return []

    def fastest(self, kT: float | None) -> float | None:
        """Return the rate of its fastest event or attempt of one bead, pair, site or end, 1/s; None: it has no beads,
        or cannot tell."""
        return None

    def changed_box(self, box: np.ndarray) -> np.ndarray | None:
        """Return lengths, (3,) nm, that it may give a box; None where it does not change boxes."""
        return None

    @property
    def flips_edges_of(self) -> Handle | None:
        """Membrane whose edges it flips."""
        return None

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "every": self.every}
