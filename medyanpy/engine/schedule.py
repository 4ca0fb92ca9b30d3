"""The schedule: letters, kinds of beads and forces, compiled to a program. It knows no users."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._kernels.beads.box_edges import LookAtEdges
from medyanpy._kernels.beads.points import Flatten
from medyanpy._kernels.core.derivatives import HessianBlocks
from medyanpy._kernels.core.kinetic import KineticEnergies
from medyanpy._kernels.core.program import Program
from medyanpy._kernels.letters.kick import ForceSum, Kick
from medyanpy._kernels.selected import drift, kinetic_watch, rotation
from medyanpy.core.flows import Flow, Stage, paired
from medyanpy.core.kinds import Block
from medyanpy.core.letters import LETTERS
from medyanpy.core.words import Letter
from medyanpy.engine.flipping import Flipping
from medyanpy.engine.jumping import Jumping
from medyanpy.engine.kinetic_watch import SLOW, Account
from medyanpy.engine.metropolis import Proposing
from medyanpy.engine.store import Store
from medyanpy.engine.work import TALLIES, WorkMeter
from medyanpy.errors import ParameterError
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System

if TYPE_CHECKING:
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.faults import Faults
    from medyanpy.hydrodynamics.flow import HydrodynamicFlow

__all__ = ["Schedule", "check_word"]


class Coefficients(NamedTuple):
    """Coefficients c1 and c2 of a thermal letter, (n,) by place, and the numbers that they are made of. They are kept
    as they are now, as they are for beads that are there and, where beads come and go, for an inactive row."""

    now: tuple[np.ndarray, np.ndarray]
    living: tuple[np.ndarray, np.ndarray]
    asleep: list[float]
    kT: float | None  # noqa: N815 - the symbol of the papers
    friction: np.ndarray
    of_beads: np.ndarray


class Schedule:
    """Operations that make up a step of one Context.

    Attributes
    ----------
    store : Store
    system : System
    integrator : SplittingIntegrator
    flows : dict of handle to Flow
        What the letters do to beads of some kinds.
    fluid : HydrodynamicFlow or None
        What they do to all beads at once that feel each other through the fluid.
    bound : list
        The operation of every force, in the order of the system.
    force_sums : dict of group to ForceSum
        As kicks name them; None is the sum of all.
    jumping : Jumping
    flipping : Flipping
    proposing : Proposing
    meter : WorkMeter or None
    account : Account
        What kinetic energy a bead may have, for the watch.
    """

    def __init__(
        self, store: Store, system: System, integrator: SplittingIntegrator, faults: "Faults"
    ) -> None:
        self.store = store
        self.system = system
        self.integrator = integrator
        self.explained: Callable[[], AbstractContextManager[None]] = faults.explained
        faults.schedule = self
        layout = store.layout
        self.jumping: Jumping = Jumping(system, layout, integrator)
        self.flipping: Flipping = Flipping(self)
        if store.rejoined is not None:
            store.rejoined.told = self.flipping.restored
        self.proposing: Proposing = Proposing(integrator.blocks)
        #: The time at a step since which steps have lasted what they last now.
        self.since: tuple[float, int] = (0.0, 0)
        self._take_numbers_of_integrator()
        # Constraints come last: what moves bodies and vertices has moved them.
        handles = sorted(layout.handles, key=lambda handle: handle.kind.block is Block.NONE)
        self.flows: dict[Handle, Flow] = {
            handle: flow for handle in handles if (flow := handle.kind.bind(layout)) is not None
        }
        self.fluid: HydrodynamicFlow | None = None
        if system.hydrodynamics is not None:
            self.fluid = system.hydrodynamics.bind(layout)
        if self.fluid is not None:
            # Constraints may tie beads in it to others.
            for flow in self.flows.values():
                flow.mixed = True
        if integrator.overdamped:
            self.check_displacement()
        self.meter: WorkMeter | None = None
        #: What kicks remember from step to step, by name.
        self.remembered: dict[str, np.ndarray] = {}
        integrator.kick.check_context(self)
        self.account: Account = Account()
        #: The step at which the run resumed after the last change from outside.
        self.started = 0
        self.length: float = store.shortest_length()
        self._bind_forces()
        steps = integrator.steps
        self.control: ForceSum | None = None if steps is None else self.make_force_sum(steps.bind(layout))
        self.compile()

    @property
    def layout(self) -> "Layout":
        return self.store.layout

    def check_displacement(self) -> None:
        """Check that beads that move without velocities have friction, and that nothing holds them."""
        if self.integrator._in_flights and self.fluid is not None:
            raise ParameterError(
                "BrownianIntegrator: hydrodynamic interactions need scheme='Euler-Maruyama', and no constraints"
            )
        for handle in self.layout.handles:
            flow = self.flows.get(handle)
            in_flights = self.integrator._in_flights
            if flow is not None and (obstacle := flow.obstacle_to_flights if in_flights else flow.obstacle):
                raise ParameterError(f"BrownianIntegrator cannot move {handle!r}: {obstacle}")
            plain = flow is None or in_flights
            still = ~handle.kind.fixed_beads & (handle.friction == 0.0)
            if plain and still.any():
                i = int(np.argmax(still))
                raise ParameterError(
                    f"BrownianIntegrator: bead {handle.beads[i]} ({handle.name!r}): friction[{i}] = 0 but must "
                    "be > 0: the bead would move without bound"
                )
            for one in handle._species:
                if plain and one.friction == 0.0:
                    raise ParameterError(
                        f"BrownianIntegrator: species {one.name!r} of {handle.name!r}: friction = 0 but must be > 0: "
                        "beads that become one would move without bound"
                    )

    def coefficients(
        self, stage: Stage, formula: Callable[..., tuple[np.ndarray, np.ndarray]], of_beads: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return c1 and c2 of every bead for a thermal letter, by ``formula(friction, h, kT, of_beads)``. In it
        `of_beads` are inverse masses of all that may be there, 0 of those that stay. Beads with such a letter of their
        own count as without friction. Made once for each letter and time, and kept by checkpoints, since NumPy's last
        bits may differ elsewhere."""
        key = stage.kind, stage.h
        if key not in self._coefficients:
            own = [handle for handle, flow in self.flows.items() if flow.replaces(stage.kind)]
            own += self._in_fluid(stage.kind)
            friction = self.layout.gather(lambda h: h.friction, zero=own)
            if self.store.room is not None:
                friction = self.store.of_the_living("friction", friction, zero=own)
            made = living = formula(friction, stage.h, stage.kT, of_beads)
            asleep = [float(c[0]) for c in formula(np.zeros(1), stage.h, stage.kT, np.zeros(1, of_beads.dtype))]
            if self.store.room is not None:
                there, entries = self.store.alive != 0, self.store.entries()
                first, second = (np.where(there, c[entries], rest) for c, rest in zip(living, asleep, strict=True))
                made = first, second
                for follows in zip(made, living, asleep, strict=True):
                    self.store.follow(*follows)
            self._coefficients[key] = Coefficients(made, living, asleep, stage.kT, friction, of_beads)
        return self._coefficients[key].now

    def coefficient_arrays(
        self, alive: np.ndarray | None = None, species: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Return the coefficients made so far, by name; or what they would be with other beads there, of other species,
        (n,) by place."""
        arrays: dict[str, np.ndarray] = {}
        for k, made in enumerate(self._coefficients.values()):
            for c in range(2):
                name = f"c{c + 1}" + (f" of time {k}" if k else "")
                arrays[name] = made.now[c]
                if alive is not None:
                    living = made.living[c][self.store.entries(species)]
                    arrays[name] = np.where(alive != 0, living, made.asleep[c])
        return arrays

    def take_coefficients(self, before: "Schedule", then: np.ndarray, now: np.ndarray) -> None:
        """Carry coefficients over an edit, from places `then` to places `now`, as long as they are made of the same
        numbers: whether beads feel each other through the fluid, and kT, may have changed."""
        for key, made in self._coefficients.items():
            theirs = before._coefficients.get(key)
            if theirs is None or theirs.kT != made.kT:
                continue
            same = (made.friction[now] == theirs.friction[then]) & (made.of_beads[now] == theirs.of_beads[then])
            for own, other in ((made.now, theirs.now), (made.living, theirs.living)):
                for c in range(2):
                    own[c][now[same]] = other[c][then[same]]

    def _take_numbers_of_integrator(self) -> None:
        """Take timestep and temperature as they are now."""
        self._integrator_version = self.integrator.version
        self._timestep = self.integrator.timestep
        self._coefficients: dict[tuple[str, float], Coefficients] = {}
        self.store.forget_coefficients()
        self.wind()

    def wind(self) -> None:
        """Let jumps know the time of their events."""
        self.jumping.clock[:] = *self.since, self._timestep

    def bind(self, force: Any) -> Any:
        """Return the operation of a force as it is now."""
        self.proposing.check_force(self.system.name_of(force), force)
        return self.jumping.joined(force, force.bind(self.layout))

    def _bind_forces(self) -> None:
        """Bind every force, and make their sums by the group that a kick names."""
        forces = self.system.forces
        self._versions = [force.version for force in forces]
        self.bound: list[Any] = [self.bind(force) for force in forces]
        groups = dict.fromkeys(letter.group for letter in self.integrator.letters if LETTERS[letter.kind].forces)
        self.force_sums: dict[int | None, Any] = {group: self.make_force_sum(self._of_group(group)) for group in groups}
        self.jumping.weigh(self)

    def _of_group(self, group: int | None) -> list[Any]:
        """Return the bound forces of a group; all of them for None."""
        return [b for b, f in zip(self.bound, self.system.forces, strict=True) if group is None or f.group == group]

    @property
    def bound_forces(self) -> dict[str, Any]:
        """The operation of every force, by the force's name."""
        return dict(zip(self.system.force_names, self.bound, strict=True))

    def compile(self) -> None:
        """Turn the word into operations."""
        operations: list[Any] = []
        self._rules: dict[float, Any] = {}
        word = self._word()
        last_o = max((stage.index for stage, _ in word if stage.kind == "O"), default=None)
        around = self.integrator.kick.flows(self, [stage for stage, _ in word])
        flows = [*self._all_flows(), *around, *self._instruments()]
        silent = [*self._all_flows(), *around]
        for block, letters in groupby(word, lambda pair: pair[1].block):
            if block is not None:
                inside = [(stage, self.operations(stage, letter, silent)) for stage, letter in letters]
                operations += self.proposing.compile(self, block, inside, silent)
                # Its change of the energy is recorded at its end: that of a rejected block is nothing.
                operations += self.around(inside[-1][0], [], self._instruments())
                continue
            for stage, letter in letters:
                operations += self.operations(stage, letter, flows)
                if stage.index == last_o:
                    operations.append(KineticEnergies(self.store.ranges, self.store.after_o, False, self.store.by_row))
        if not self.integrator.overdamped:
            looks = self._watch()
            flights = (drift.Drift, rotation.Rotation, LookAtEdges)
            last = next((operation for operation in reversed(operations) if not isinstance(operation, flights)), None)
            if isinstance(last, Kick) and not self.layout.n_points:
                # The kick has the velocities at hand, which free flight leaves, and compares them on its way.
                last.tell(looks.limit, looks.calm)
            if self.integrator.steps is not None:
                first, last = self.integrator.steps.around(self.control, self.store.pacing, self._timestep)
                operations = [first, *operations, last]
            operations.append(looks)
        self.jumping.chain(word)
        self.store.program.load(operations)
        # The kinetic energies after O are nan until they are measured, and work is once an energy overflows, which
        # tells nothing of the state: they are remembered as bits.
        moving = self.moving_arrays() | {"after_o": self.store.after_o}
        self.store.program.remember(
            [a.view(np.int64) if name in ("after_o", "work") else a for name, a in moving.items()]
        )

    def _watch(self) -> Any:
        """Return the last operation of a step, which looks for beads that have run away."""
        slow = SLOW / self.integrator.timestep
        speeds = slow * self.length / self.store.step_lengths()
        return kinetic_watch.Watch(self.account.bound, speeds**2, slow**2, self.store.heaviest, self.store.quickest)

    def _word(self) -> list[tuple[Stage, Letter]]:
        """Return the letters that do something here. G does nothing where there are no in-triangle points; two As that
        then meet are one flight. As of different parts of a composition are not joined: for constrained beads, and for
        beads that turn, A(s) A(t) is A(s + t) to second order only, and the composition would not be better."""
        word: list[tuple[Stage, Letter]] = []
        # Letters that stand apart are numbered apart.
        numbers = {True: count(), False: count()}
        for letter in self.integrator.letters:
            number = next(numbers[LETTERS[letter.kind].apart])
            h = letter.fraction * self.integrator.timestep
            stage = Stage(number, letter.kind, h, self.integrator.kT, self.integrator.rotation)
            if not LETTERS[letter.kind].operations(self, letter, stage) and not self.operations(stage, letter):
                continue
            meets = word and word[-1][0].kind == letter.kind and word[-1][1].substep == letter.substep
            meets = meets and word[-1][1].block == letter.block
            if LETTERS[letter.kind].adds_up and meets:
                before, letter = word.pop()
                stage = replace(before, h=before.h + stage.h)
            word.append((stage, letter))
        who = next((flow.asks_for_pairs for flow in self.flows.values() if flow.asks_for_pairs), "")
        return paired(word, who, self.integrator.word) if who else word

    def jumps_at(self, stage: Stage) -> list[Any]:
        """Return the operations of a letter J."""
        return self.jumping.at(stage)

    def _instruments(self) -> list[Flow]:
        """Return flows that only measure."""
        return [] if self.meter is None else [self.meter]

    def rule(self, letter: Letter) -> Any:
        """Return the rule by which the kick of a letter applies the forces; one for all letters of the same
        sub-step."""
        if letter.substep not in self._rules:
            self._rules[letter.substep] = self.integrator.kick.bind(self, letter.substep * self.integrator.timestep)
        return self._rules[letter.substep]

    def kicks(self) -> tuple[ForceSum, Any] | None:
        """Return force sum and kick rule of the first B of a step; None where kicks are explicit."""
        letter = next((letter for letter in self.integrator.letters if letter.kind == "B"), None)
        if letter is None or not self.bound:
            return None
        rule = self.rule(letter)
        return None if rule is None else (self.force_sums[letter.group], rule)

    def operations(self, stage: Stage, letter: Letter | None = None, flows: Sequence[Flow] | None = None) -> list[Any]:
        """Return the operations of a letter: on all beads, on beads that have a letter of their own, and those of flows
        around it; flows are those of the kinds of beads where no others are given."""
        letter = Letter(stage.kind, 1.0) if letter is None else letter
        common = LETTERS[stage.kind].operations(self, letter, stage)
        given = (self.force_sums[letter.group],) if LETTERS[stage.kind].forces else ()
        flows = self._all_flows() if flows is None else flows
        together = [self.flows.get(handle) for handle in self._in_fluid(stage.kind)]
        own = [operation for flow in flows if flow not in together for operation in flow.in_place(stage, *given)]
        return self.around(stage, [*common, *own], flows)

    def around(self, stage: Stage, operations: Sequence[Any], flows: Sequence[Flow] | None = None) -> list[Any]:
        """Return operations with those of flows before and after a letter around them."""
        flows = self._all_flows() if flows is None else flows
        before = [operation for flow in reversed(flows) for operation in flow.before(stage)]
        after = [operation for flow in flows for operation in flow.after(stage)]
        return [*before, *operations, *after]

    def _all_flows(self) -> list[Flow]:
        """Return the flows of kinds of beads, and that of beads that feel each other through the fluid."""
        return [*self.flows.values(), *([] if self.fluid is None else [self.fluid])]

    def _in_fluid(self, letter: str) -> "Sequence[Handle]":
        """Return handles whose beads do a letter together."""
        return self.fluid.handles if self.fluid is not None and self.fluid.replaces(letter) else ()

    def make_force_sum(self, forces: list[Any]) -> ForceSum:
        """Return a sum of bound forces with arrays of its own."""
        passes_on = forces and self.layout.n_points and self.store.membranes_move
        return ForceSum(
            forces, np.zeros((self.layout.n if forces else 0, 3)),
            [np.zeros(m.p.shape if forces else (0, m.p.shape[1])) for m in self.store.momenta.values()],
            np.zeros((self.layout.n_vertices if passes_on else 0, 3)), self.store.corners,
        )  # fmt: skip

    # Following changes --------------------------------------------------------------------------------------

    def stale(self) -> list[int]:
        """Return forces, by number, whose numbers have changed since they were bound."""
        # Asked in every call of `step`: the numbers themselves, not the properties that show them.
        forces, versions = self.system._forces, self._versions
        return [i for i, force in enumerate(forces) if force._version != versions[i]]

    def bind_before_the_next_step(self, forces: Sequence[int]) -> None:
        """Mark these forces, by number, to be bound again before the next step if nothing binds them earlier."""
        for i in forces:
            self._versions[i] = -1

    @property
    def follows_integrator(self) -> bool:
        """True if timestep and temperature are those that this was made for."""
        return self.integrator._version == self._integrator_version

    def take_forces(self, bound: dict[int, Any]) -> None:
        """Put operations of forces, by number, in the place of those there were."""
        self.put_forces(bound)
        self.store.program.changed()
        if any(rule is not None for rule in self._rules.values()):
            # The equations of implicit kicks are made of what is bound.
            self.compile()

    def put_forces(self, bound: dict[int, Any]) -> None:
        """Put operations of forces in place, within a step or for a state that has changed anyway."""
        for i, operation in bound.items():
            self.bound[i] = operation
            self._versions[i] = self.system.forces[i].version
        for group, force_sum in self.force_sums.items():
            force_sum.take(self._of_group(group))
        self.jumping.weigh(self)

    def follow_integrator(self) -> bool:
        """Make again all that depends on timestep or temperature, which have changed; tell whether steps are longer."""
        time, longer = self.time, self.integrator.timestep > self._timestep
        self._take_numbers_of_integrator()
        self.set_time(time)
        self.jumping.follow()
        self.compile()
        return longer

    @property
    def time(self) -> float:
        """Time, s: the sum over all steps taken of the timestep that each was taken with."""
        if self.integrator.steps is not None:
            return float(self.store.pacing[1] + self.store.pacing[2])
        time, step = self.since
        return time + (self.store.step - step) * self._timestep

    def set_time(self, time: float) -> None:
        """Set the time; steps last what they last now from now on."""
        step = self.store.step
        self.store.pacing[1:] = time, 0.0
        # Where all steps might have been of this length, time is their number times it, to the last bit.
        self.since = (0.0, 0) if time == step * self._timestep else (time, step)
        self.wind()

    def go_on_from(self, before: "Schedule") -> None:
        """Take the time of another schedule, in whose place this one comes."""
        if self._timestep == before._timestep and self.integrator.steps is None:
            self.since = before.since
            self.wind()
        else:
            self.set_time(before.time)

    def perform(self, operation: Any, program: Program | None = None, changes_state: bool = True) -> None:
        """Run one operation, now."""
        with self.explained():
            (program or self.store.program).perform(operation, changes_state)

    def coupled_places(self, operations: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of places, (k,) and (k,), that the Hessians of bound forces couple, where beads were when
        they were added: whatever has happened since, it is the same."""
        now = self.store.x.copy()
        try:
            self.store.place_at_start()
            self.store.program.changed()
            pairs = [np.empty((2, 0), np.int64)]
            for operation in operations:
                collected = HessianBlocks(operation, sparse=self.layout.n)
                self.perform(collected, changes_state=False)
                pairs.append(np.array(collected.blocks()[:2]))
        finally:
            self.store.x[:] = now
            self.store.program.changed()
        return tuple(np.concatenate(pairs, axis=1))

    def force_sum_of(self, operation: Any) -> ForceSum:
        return next(s for s in self.force_sums.values() if operation in s.forces.operations)

    def moving_arrays(self) -> dict[str, np.ndarray]:
        """Return what steps change: with the step number, the state."""
        arrays = self.store.moving() | self.jumping.arrays() | self.proposing.arrays()
        arrays |= {"runaway": self.account.array} | self.remembered
        if self.integrator.steps is not None:
            arrays["pacing"] = self.store.pacing
        for flow in [*self._all_flows(), *self._instruments()]:
            arrays.update(flow.arrays())
        return arrays

    def dynamical_arrays(self) -> dict[str, np.ndarray]:
        """Return all that a step reads and is not given by topology, forces and word: what checkpoints hold."""
        return {**self.moving_arrays(), "after_o": self.store.after_o, **self.coefficient_arrays()}

    def take_arrays(self, arrays: dict[str, np.ndarray], step: int, since: tuple[float, int]) -> None:
        """Take over such arrays, at a step, but for the work measured so far.

        Raises
        ------
        ParameterError
            Arrays that are missing or have another shape or type; then nothing changes.
        """
        targets = self.dynamical_arrays()
        targets.pop("work", None)
        # Where no edge had been flipped there are none, and they are those of the meshes.
        targets.pop("faces", None)
        triangulation = self.layout.triangulation
        faces = arrays.get("faces", triangulation.at_first())
        wanted = targets | ({"faces": triangulation.faces} if "faces" in arrays else {})
        if "work" in arrays:
            wanted["work"] = np.empty(TALLIES)
        for name, target in wanted.items():
            if name not in arrays and target.size:
                raise ParameterError(f"checkpoint: {name} is missing")
            given = arrays.get(name, target)
            if (given.shape, given.dtype) != (target.shape, target.dtype):
                raise ParameterError(
                    f"checkpoint: {name} is {given.dtype} of shape {given.shape}, "
                    f"not {target.dtype} of shape {target.shape}"
                )
        self.jumping.check(arrays)
        self.store.check_room(arrays)
        self.store.check_counts(arrays)
        if "faces" in arrays:
            triangulation.check("checkpoint: faces", faces)
        for name, target in targets.items():
            target[...] = arrays.get(name, target)
        if self.store.room is not None:
            there, entries = self.store.alive != 0, self.store.entries()
            for made in self._coefficients.values():
                # Coefficients of beads that are there are the file's; those of beads that may be added are known here.
                for own, living in zip(made.now, made.living, strict=True):
                    living[entries[there]] = own[there]
        self.flipping.take(faces)
        self.jumping.took_over()
        self.store.program.changed()
        self.store.program.step = step
        self.since = since
        self.wind()

    def admit_velocities(self) -> None:
        """Project velocities and momenta that have been set from outside to what each kind of bead can have."""
        none = self.integrator.overdamped
        self.store.v[none | (self.store.inverse_mass == 0.0)] = 0.0
        for momenta in self.store.momenta.values():
            momenta.p[none | (momenta.inverse_mass == 0.0)] = 0.0
        self.store.after_o[:] = np.nan
        self.flatten()
        for flow in self.flows.values():
            for operation in flow.tangent():
                self.perform(operation)

    def flatten(self) -> None:
        """Leave of the velocities of in-triangle points what is in the planes of their triangles."""
        self.perform(Flatten())

    def settle(self) -> None:
        """Bring beads, whose positions have been set from outside, to where their kinds can be."""
        for flow in self.flows.values():
            for operation in flow.settle():
                self.perform(operation)


def check_word(system: System, integrator: SplittingIntegrator) -> None:
    kinds = {letter.kind for letter in integrator.letters}
    points = system.topology.point_handles
    if points and integrator.overdamped:
        _check_overdamped_points(system, integrator)
    elif points and "G" not in kinds:
        raise ParameterError(
            f"the word {integrator.word!r} has no G, but {points[0]!r} moves by G alone: "
            "use BAGOGAB instead of BAOAB, BAGAB instead of BAB"
        )
    _check_jumps(system, integrator)
    _check_fluid(system)
    _check_rotation(system, integrator)
    groups = {letter.group for letter in integrator.letters if LETTERS[letter.kind].forces}
    if groups != {None}:
        for name, force in zip(system.force_names, system.forces, strict=True):
            if force.group not in groups:
                raise ParameterError(
                    f"the word {integrator.word!r} never kicks group {force.group}, to which {name} belongs"
                )


def _check_overdamped_points(system: System, integrator: SplittingIntegrator) -> None:
    """Check that in-triangle points can move without velocities.

    The recoil of flights over a membrane that moves goes by masses, so that friction over mass must be one number for
    its vertices and all points in it.
    """
    for points in system.topology.point_handles:
        if not integrator._in_flights:
            raise ParameterError(
                f"BrownianIntegrator cannot move {points!r}: its points fly over triangles: give "
                "scheme='Leimkuhler-Matthews'"
            )
        membrane = points.membrane
        for jump in system.jumps:
            if jump.flips_edges_of is membrane:
                raise ParameterError(
                    f"BrownianIntegrator cannot move {points!r}: {jump.name} flips edges of {membrane!r}, and the "
                    "noise kept from the step before belongs to the triangles there were: use BAGOGAB"
                )
        free = ~membrane.kind.fixed_beads
        if not free.any():
            continue
        own = points._species or [points]
        rates = np.concatenate(
            [np.ravel(one.friction / one.mass) for one in own] + [(membrane.friction / membrane.mass)[free]]
        )
        low, high = rates.min(), rates.max()
        if high - low > 1e-9 * high:
            raise ParameterError(
                f"BrownianIntegrator cannot move {points!r} in a membrane that moves: friction over mass is from "
                f"{low:.6g} to {high:.6g} 1/s among these points and the vertices of {membrane!r}, and must be one "
                "number: masses have no other effect, so give masses in this ratio"
            )


def _check_jumps(system: System, integrator: SplittingIntegrator) -> None:
    if system.jumps and not any(LETTERS[letter.kind].apart for letter in integrator.letters):
        word = integrator.word.replace(" ", "")
        raise ParameterError(
            f"the word {integrator.word!r} has no J, but {system.jump_names[0]} happens in J alone: put one at each "
            f"end, 'J{word}J'"
        )
    for name, jump in zip(system.jump_names, system.jumps, strict=True):
        if jump.needs_temperature and integrator.kT is None:
            raise ParameterError(
                f"{name} needs a temperature, which the word {integrator.word!r} does not keep: add O, as in 'JBAOABJ'"
            )


def _check_rotation(system: System, integrator: SplittingIntegrator) -> None:
    if integrator.rotation == "split":
        return
    turning = system.topology.oriented_handles
    if not turning:
        raise ParameterError(
            f"rotation={integrator.rotation!r} is for rigid bodies and nodes of rods, of which there are none: leave "
            "it out"
        )
    for handle in turning:
        if handle.kind.rotation_parts > 1:
            raise ParameterError(
                f"{handle!r} has rotation_parts = {handle.kind.rotation_parts}, into which rotation='exact' need not "
                "be cut: leave one of them out"
            )


def _check_fluid(system: System) -> None:
    for name, jump in zip(system.jump_names, system.jumps, strict=True):
        for handle in () if system.hydrodynamics is None else system.hydrodynamics.handles:
            if any(handle is one for one in jump.remakes):
                raise ParameterError(
                    f"{name} creates, removes or changes beads of {handle.name!r}, which feel each other through the "
                    "fluid: those must stay the same"
                )
