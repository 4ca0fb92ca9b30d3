"""The jumps of one Context: bound, compiled to letters, and read off."""

import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.jumps.jump import Jumps
from medyanpy.core.letters import LETTERS
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force
from medyanpy.jumps._balance import Company
from medyanpy.jumps._base import Counts, Jump
from medyanpy.kicks import Explicit

if TYPE_CHECKING:
    from medyanpy.core.flows import Stage
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.core.words import Letter
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Remark
    from medyanpy.forces.links import LinkEnds
    from medyanpy.integrators import SplittingIntegrator
    from medyanpy.system import System

__all__ = ["Event", "Jumping", "Listener"]

# Events of one bead or pair in the steps between two letters, of jumps that are driven.
_MOST_OFTEN = 0.1


class Event(NamedTuple):
    """Event of a jump.

    Attributes
    ----------
    step : int
        The step that it happened in, counted from 1.
    time : float, s
    jump, kind : str
        Name of the jump in the system, and one of its `kinds`.
    a, b : int
        Its place; of `LinkBinding` the rows of the sites `a` and `b`, of `TrialMoves` the first bead that moves. Of
        `Reactions` of beads their ids, in the order of the kind. -1 for none.
    energy : float, pN nm
        Change of the energy, potential and kinetic.
    chemical_energy : float, pN nm
        kT times the logarithm of the rates there and back, plus `energy`; inf of an irreversible event.
    kinetic_energy : float, pN nm
        The kinetic part of `energy`.
    c : int
        A third one: of A + B -> C and C -> A + B the id of what the kind names last; -1 of others.
    """

    step: int
    time: float
    jump: str
    kind: str
    a: int
    b: int
    energy: float
    chemical_energy: float
    kinetic_energy: float
    c: int


class Jumping:
    """Jumps of one Context, for its schedule and its states.

    Attributes
    ----------
    operations : list of JumpOperation
        In the order of the system.
    clock : (3,) float array
        A time, s, the step that it belongs to, and the length of steps since.
    """

    def __init__(self, system: "System", layout: "Layout", integrator: "SplittingIntegrator") -> None:
        self.names: tuple[str, ...] = system.jump_names
        self.jumps: tuple[Jump, ...] = system.jumps
        self.integrator: SplittingIntegrator = integrator
        self._layout = layout
        self.clock: np.ndarray = np.zeros(3)
        together = Company(self.jumps, system._pools)
        for jump in self.jumps:
            jump.beside(together)
        for name, jump in zip(self.names, self.jumps, strict=True):
            jump.check_forces(system.forces)
            swells = any(pool.inside is not None for pool in jump.pools)
            if (jump.moves_beads or swells) and not isinstance(integrator.kick, Explicit):
                raise ParameterError(
                    f"{name}: it changes forces between kicks, whose equations {integrator.kick!r} makes once: leave "
                    "kick= out"
                )
            _check_pace(name, jump, integrator)
            for handle in jump.remakes:
                _check_joint(name, handle)
            for handle in jump.births:
                _check_birth(name, handle, system)
        for name, pool in system._pools.items():
            pool.check_use(name, self.jumps, system.forces)
            pool.check_membranes(name, system.topology.membranes)
        self.operations: list[Any] = [jump.bind(layout, self.kT) for jump in self.jumps]
        for jump, operation in zip(self.jumps, self.operations, strict=True):
            operation.company = together
            operation.inside = next((layout.pools[pool] for pool in jump.pools if pool.inside is not None), None)
        self._versions = [jump.version for jump in self.jumps]
        self._letters: dict[tuple[str, int], Jumps] = {}
        #: Listeners to events.
        self.audience: Audience = Audience(self)
        bound = list(zip(self.jumps, self.operations, strict=True))
        for jump, operation in bound:
            jump.meet(operation, bound)

    def __bool__(self) -> bool:
        return bool(self.operations)

    @property
    def kT(self) -> float:  # noqa: N802 - the symbol of the papers
        return np.nan if self.integrator.kT is None else self.integrator.kT

    def joined(self, force: Force, operation: Any) -> Any:
        """Return the operation of a force, with the terms that jumps add; jumps follow its numbers."""
        for jump, own in zip(self.jumps, self.operations, strict=True):
            if any(force is one for one in jump.forces):
                jump.update(own, self.kT)
                operation = jump.joined(own, force, operation, self._layout)
        return operation

    def weigh(self, schedule: "Schedule") -> None:
        """Give jumps the forces that they need, after forces of the context have been bound, all or some of them."""
        for jump, operation in zip(self.jumps, self.operations, strict=True):
            jump.weigh(operation, schedule)

    def remarks(self, schedule: "Schedule") -> "list[Remark]":
        """Return remarks of jumps on the bound forces of the context."""
        pairs = zip(self.jumps, self.operations, strict=True)
        return [remark for jump, operation in pairs for remark in jump.remarks_on_cost(operation, schedule)]

    def at(self, stage: "Stage") -> list[Jumps]:
        """Return the operations of one letter J: in order, and in the later half of the word the other way round, so
        that the word is a palindrome."""
        if not self.operations:
            return []
        fractions = [letter.fraction for letter in self.integrator.letters if LETTERS[letter.kind].apart]
        before = sum(fractions[: stage.index])
        late = before >= 0.5
        order = list(range(len(self.operations)))[:: -1 if late else 1]
        operations = [self.operations[k] for k in order]
        before *= self.integrator.timestep
        jumps = Jumps(operations, order, stage.h, stage.index, before, late, self.clock)
        self._letters[stage.kind, stage.index] = jumps
        return [jumps]

    def chain(self, word: "list[tuple[Stage, Letter]]") -> None:
        """Let each letter J know those that meet the forces of the kicks after it."""
        letters = [self._letters.get((stage.kind, stage.index)) for stage, _ in word]
        asks = [LETTERS[stage.kind].forces for stage, _ in word]
        for at, jumps in enumerate(letters):
            if jumps is None:
                continue
            following: list[Jumps] = []
            later: list[int] = []
            for k in range(at + 1, at + 1 + len(word)):
                other = letters[k % len(word)]
                if other is not None:
                    following.append(other)
                    later.append(k // len(word))
                elif following and asks[k % len(word)]:
                    break
            jumps.precede(following, later)

    # Following changes --------------------------------------------------------------------------------------

    def stale(self) -> bool:
        return any(jump.version != version for jump, version in zip(self.jumps, self._versions, strict=True))

    def follow(self) -> None:
        """Follow changed numbers of jumps or a changed temperature."""
        for jump, operation in zip(self.jumps, self.operations, strict=True):
            jump.update(operation, self.kT)
        self._versions = [jump.version for jump in self.jumps]

    # State --------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what steps change, by the names that checkpoints use."""
        return {
            f"jump {name}, {key}": array
            for name, operation in zip(self.names, self.operations, strict=True)
            for key, array in operation.arrays().items()
        }

    def check(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays of the right shapes and types that are not a state; ParameterError."""
        for name, jump, operation in zip(self.names, self.jumps, self.operations, strict=True):
            jump.check_state(operation, {key: arrays[f"jump {name}, {key}"] for key in operation.arrays()})
        self.check_room(arrays)

    def check_shown(self, what: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays of a state that cannot be those of jumps of the same names here; ParameterError, and
        TopologyError where they are of other sites."""
        for name, jump, operation in zip(self.names, self.jumps, self.operations, strict=True):
            own = operation.arrays()
            places = {key: f"jump {name}, {key}" for key in own}
            given = {key: arrays[place] for key, place in places.items() if place in arrays}
            if not given:
                continue
            for key, array in own.items():
                there = given.get(key)
                if there is None or (there.shape, there.dtype) != (array.shape, array.dtype):
                    found = "missing" if there is None else f"{there.dtype} of shape {there.shape}"
                    raise TopologyError(
                        f"{what}: {key} of the jump {name} is {found} in the state, {array.dtype} of shape "
                        f"{array.shape} here: it is of other sites, or another jump"
                    )
            jump.check_state(operation, given)
        self.check_room(arrays)

    def check_room(self, arrays: "Mapping[str, np.ndarray] | None" = None) -> None:
        """Refuse more links and heads of several jumps at a place than it has room for, in such arrays, or where none
        are given at the start; ParameterError."""
        names = zip(self.names, self.jumps, self.operations, strict=True)
        of = {
            jump: {key: (arrays or {}).get(f"jump {name}, {key}", own) for key, own in operation.arrays().items()}
            for name, jump, operation in names
        }
        for jump, operation in zip(self.jumps, self.operations, strict=True):
            jump.check_room(operation, of, arrays is None)

    def with_shown(
        self, arrays: Mapping[str, np.ndarray], shown: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Return arrays of a state with those of jumps of which it holds nothing but what states show, as frames do."""
        out = dict(arrays)
        for name, jump, operation in zip(self.names, self.jumps, self.operations, strict=True):
            if name in shown and not any(f"jump {name}, {key}" in arrays for key in operation.arrays()):
                made = jump.arrays_shown(operation, shown[name])
                out |= {f"jump {name}, {key}": array for key, array in made.items()}
        return out

    def take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Resume from such arrays, which have been checked; jumps without arrays there stay as they are."""
        for key, own in self.arrays().items():
            own[...] = arrays.get(key, own)
        self.took_over()

    def carry(self, before: "Jumping") -> None:
        """Resume, after an edit of the topology, the jumps that have stayed, from where they were."""
        there = {id(jump): operation for jump, operation in zip(before.jumps, before.operations, strict=True)}
        for jump, operation in zip(self.jumps, self.operations, strict=True):
            if id(jump) in there:
                jump.carry(there[id(jump)], operation)

    def took_over(self) -> None:
        """Follow arrays that have been written to from outside."""
        for operation in self.operations:
            operation.took_over()

    def rewound(self) -> None:
        """Follow a return to an earlier state: events that had not happened by then are not reported."""
        for operation in self.operations:
            operation.rewound()

    # Events -------------------------------------------------------------------------------------------------

    def listen(self) -> "Listener":
        """Record events from now on, for as long as the returned listener is referenced."""
        self.gather()
        return self.audience.joined()

    def gather(self) -> None:
        """Give listeners the events that have happened, in the order of time."""
        events: list[Event] = []
        for name, jump, operation in zip(self.names, self.jumps, self.operations, strict=True):
            taken = operation.taken()
            a, b = jump.ids(operation, taken["a"], taken["b"])
            kinds = [jump.kinds[kind] for kind in taken["kind"]]
            named = (taken[key] for key in ("energy", "chemical", "kinetic", "c"))
            columns = ((taken["step"] + 1), taken["time"], a, b, *named)
            for kind, step, time, *numbers in zip(kinds, *(c.tolist() for c in columns), strict=True):
                events.append(Event(step, time, name, kind, *numbers))
        events.sort(key=lambda event: event[:2])
        for listener in self.audience.listeners:
            listener.events += events

    # Looking ------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, Counts]:
        return {
            name: Counts(operation.tried, operation.accepted)
            for name, operation in zip(self.names, self.operations, strict=True)
        }

    def entropy_production(self) -> float:
        """Return what has driven all events so far, in kT; inf where one had no way back."""
        return float(sum(operation.driven_so_far for operation in self.operations))

    def shown(self) -> dict[str, Mapping[str, Any]]:
        """Return what states hold of discrete states, by the name of the jump."""
        return {
            name: jump.shown(operation)
            for name, jump, operation in zip(self.names, self.jumps, self.operations, strict=True)
        }

    def name_of(self, operation: object) -> str | None:
        """Return the name of the jump that an operation belongs to; None where it belongs to none."""
        return next((name for name, own in zip(self.names, self.operations, strict=True) if own is operation), None)

    def links(self, forces: Iterable[Force], shown: Mapping[str, Mapping[str, Any]]) -> "dict[Force, LinkEnds]":
        """Return, for all forces with links, the links that users gave and those that are bound according to
        `shown`."""
        found = {}
        for force in forces:
            if force.has_links:
                own = [pair for pair in zip(self.jumps, self.names, strict=True) if force in pair[0].forces]
                bound = []
                for jump, name in own:
                    rows, (a, b) = shown[name]["links"], jump.beside_frames().values()
                    states = shown[name].get("states", np.zeros(len(rows), np.int32))
                    # Molecules that hold by one end alone are no links.
                    both = (rows >= 0).all(axis=1)
                    bound.append((a, b, rows[both], states[both]))
                found[force] = force.link_ends(bound)
        return found


def _check_joint(jump: str, handle: "Handle") -> None:
    """Refuse beads that constraints join, which name their rows and know their masses; TopologyError."""
    joint = handle.topology.joint
    if joint is not None and handle in joint.handles:
        raise TopologyError(f"{jump}: jumps cannot create, remove or change {handle!r}: {joint.first!r} holds some")


def _check_pace(name: str, jump: Jump, integrator: "SplittingIntegrator") -> None:
    """Refuse driven jumps that act so seldom that their fluxes are another's: in balance the law stays the same."""
    if jump.every == 1 or not jump.driven:
        return
    often = (jump.fastest(integrator.kT) or 0.0) * jump.every * integrator.timestep
    if often > _MOST_OFTEN:
        raise ParameterError(
            f"{name}: every = {jump.every}, and its fastest event comes {often:.3g} times in as many steps, but must "
            f"come at most {_MOST_OFTEN:g} times where rates are driven: take a smaller every="
        )


def _check_birth(jump: str, handle: "Handle", system: "System") -> None:
    """Refuse beads that a jump cannot add, since what they would be is not given.

    Raises
    ------
    TopologyError, ParameterError
    """
    if not handle.kind.comes_and_goes:
        raise TopologyError(f"{jump}: jumps cannot create {handle!r}, whose beads are joined to each other or held")
    if (name := handle.kind.differs()) is not None:
        raise ParameterError(
            f"{jump}: the beads of {handle.name!r} do not all have the same {name}: those that are created have none"
        )
    for name, force in zip(system.force_names, system.forces, strict=True):
        if handle in force.handles and (obstacle := force.obstacle_to_births()):
            raise ParameterError(
                f"{jump}: beads of {handle.name!r} cannot be created while {name} acts on them: {obstacle}"
            )
    rows = np.zeros(handle.topology.n_beads, bool)
    rows[np.append(handle.beads, handle._inactive)] = True
    everything = zip((*system.force_names, *system.jump_names), (*system.forces, *system.jumps), strict=True)
    for name, one in everything:
        for noun, named in one.naming(rows).items():
            if named.any():
                raise ParameterError(
                    f"{jump}: jumps cannot create or remove beads of {handle.name!r}: {noun} "
                    f"{int(np.argmax(named))} of {name} names one by its row, which may be inactive, or another "
                    "bead's: give it the handle, or beads of another one"
                )


class Audience:
    """Listeners to the jumps of one Context, whatever these are bound to."""

    def __init__(self, jumping: Jumping) -> None:
        self.jumping: Jumping = jumping
        self.listeners: weakref.WeakSet[Listener] = weakref.WeakSet()
        self._number = 0

    def joined(self) -> "Listener":
        listener = Listener(self)
        self.listeners.add(listener)
        self._count(1)
        weakref.finalize(listener, self._count, -1)
        return listener

    def goes_to(self, jumping: Jumping) -> None:
        """Listen to other jumps from now on."""
        self.jumping, jumping.audience = jumping, self
        self._count(0)

    def _count(self, more: int) -> None:
        """Change the number of listeners; events are recorded while there are any."""
        self._number += more
        for operation in self.jumping.operations:
            operation.recording = self._number > 0


class Listener:
    """Record of the events of jumps, made by `Context.events`.

    Attributes
    ----------
    events : list of Event
        Events read so far and not yet dropped.
    """

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self.events: list[Event] = []

    def heard(self) -> list[Event]:
        """Return all events until now that have not been dropped, in the order of time."""
        self._audience.jumping.gather()
        return self.events

    def forget(self, n: int) -> None:
        """Drop the first n events, which are not needed any more."""
        self.events = self.events[n:]
