"""Context: owns the arrays of one simulation and compiles its word into a step program."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from medyanpy import units
from medyanpy._kernels.accumulate import Accumulator
from medyanpy._kernels.derivatives import Contraction, HessianBlocks
from medyanpy._kernels.kick import ForceSum, Kick, KickForce
from medyanpy._kernels.kinetic import KineticEnergies
from medyanpy._kernels.numerics import PURPOSES, normals
from medyanpy._kernels.points import Flatten, Place
from medyanpy._kernels.program import Program, ProgramFault
from medyanpy._kernels.program import Sequence as Operations
from medyanpy._kernels.selected import brownian, drift, geodesic, rotation, thermostat, watch
from medyanpy._kernels.virial import Virial
from medyanpy._tools.hessians import entries
from medyanpy._tools.names import Guarded
from medyanpy._tools.threads import choose_threads
from medyanpy._tools.turns import Turn, one_at_a_time
from medyanpy._tools.validation import array, thermal_energy, whole_number, words
from medyanpy._tools.validation import seed as check_seed
from medyanpy.beads import InTrianglePoints
from medyanpy.beads.intriangle_points import check_places
from medyanpy.beads.oriented import unit_quaternions
from medyanpy.engine import worksheet
from medyanpy.engine.needles import Degradation, flattest, heights
from medyanpy.engine.runaway import SLOW, Account
from medyanpy.engine.work import WorkMeter
from medyanpy.errors import ParameterError, SimulationError, TopologyError, shown
from medyanpy.flows import Flow, Stage, euler_maruyama, ornstein_uhlenbeck
from medyanpy.integrators import Letter, SplittingIntegrator
from medyanpy.kicks import Explicit
from medyanpy.layout import Layout
from medyanpy.state import InTriangle, State
from medyanpy.system import System

__all__ = ["Context"]


class Context(Guarded):
    """One running system: its beads, its forces bound to them, and its word compiled to a program.

    Parameters
    ----------
    system : System
        Frozen while the context lives: numbers of its forces may change (`Force.set`), their list may not.
    integrator : SplittingIntegrator
        Drives this context alone. Timestep and temperature may change (`SplittingIntegrator.set`), its word may not.
    threads : int, optional
        As many as the machine offers where none is given; any number gives the same bits.

    Raises
    ------
    TopologyError
        No beads, or bead numbers in a force that do not exist.
    ParameterError
        An integrator in use, in-triangle points under a word without G, a force group that no letter kicks; beads
        that `BrownianIntegrator` cannot move.
    """

    _remedy = "make a new Context"

    def __init__(self, system: System, integrator: SplittingIntegrator, threads: int | None = None) -> None:
        if not isinstance(system, System):
            raise ParameterError(f"Context: system must be a System, not {type(system).__name__}")
        if not isinstance(integrator, SplittingIntegrator):
            raise ParameterError(f"Context: integrator must be an integrator, not {type(integrator).__name__}")
        topology = system.topology
        if topology.n_beads == 0:
            raise TopologyError("Context: the topology has no beads")
        self._check_word(system, integrator)
        #: Who uses the context now.
        self.turn = Turn()
        self.system = system
        self.integrator = integrator
        self._threads = choose_threads(threads)
        self.layout = layout = Layout(topology, self._threads)

        n = layout.n
        self._x = np.zeros((n, 3))
        self._v = np.zeros((n, 3))
        self._mass = layout.gather("mass")
        self._inverse_mass = 1.0 / self._mass
        for handle in layout.handles:
            self._inverse_mass[layout.slice_of(handle)][layout.in_order(handle, handle.fixed_beads)] = 0.0
        self._orientation = np.empty((layout.n_oriented, 4))
        self._spin = np.zeros((layout.n_oriented, 3))
        self._inertia = np.ones((layout.n_oriented, 3))
        self._inverse_inertia = np.empty((layout.n_oriented, 3))
        for handle in layout.oriented:
            self._orientation[handle.rows] = handle.orientations
            self._inertia[handle.rows] = handle.inertia
            self._inverse_inertia[handle.rows] = np.where(handle.held[:, 1:], 0.0, 1.0 / handle.inertia)
        self._triangle = np.empty(layout.n_points, np.int32)
        self._barycentric = np.empty((layout.n_points, 2))
        self._faces, self._opposite = self._join_meshes()
        self._membranes_move = moving = any(not p.membrane.fixed for p in topology.point_handles)
        self._program = self.make_program(
            self._v, self._mass, self._inverse_mass, self._spin, self._inverse_inertia
        )
        #: What points push on the corners of their triangles is added up here.
        self.corners = Accumulator(layout.n_vertices if moving else 0, self._threads)
        self._before = np.empty((layout.n_vertices if moving else 0, 3))
        self._place_initially()

        self._ranges = np.array(
            [(layout.slice_of(h).start, layout.slice_of(h).stop) for h in layout.handles], np.int64
        )
        #: Kinetic energies by handle after the word's last O in the last step of a run; nan if not measured.
        self._after_o = np.full(len(layout.handles), np.nan)
        self._now = np.empty(len(layout.handles))
        self._kinetic_now = KineticEnergies(self._ranges, self._now, True)
        self._place = Place()
        self._flatten = Flatten()
        self._take_numbers_of_integrator()
        #: The time at a step since which steps have lasted what they last now.
        self._since = (0.0, 0)
        #: What the letters do to beads of some kinds, by their handle.
        self.flows = {handle: flow for handle in layout.handles if (flow := handle.bind(layout)) is not None}
        if integrator.overdamped:
            self._check_displacement()
        self._meter: WorkMeter | None = None
        integrator.kick.check_context(self)
        self._account = Account()
        self._degradation = Degradation(layout)
        self._length = self._shortest_length()
        self._bind_forces()
        self._compile()
        # Last: an error names forces.
        self._settle()
        worksheet.warn(self)
        integrator.bind(self)
        system._contexts.add(self)
        topology._contexts.add(self)

    # Compiling ----------------------------------------------------------------------------------------------

    @staticmethod
    def _check_word(system: System, integrator: SplittingIntegrator) -> None:
        kinds = {letter.kind for letter in integrator.letters}
        points = system.topology.point_handles
        if points and integrator.overdamped:
            raise ParameterError(f"BrownianIntegrator cannot move {points[0]!r}: it moves by G alone, with velocities")
        if points and "G" not in kinds:
            raise ParameterError(
                f"the word {integrator.word!r} has no G, but {points[0]!r} moves by G alone: "
                "use BAGOGAB instead of BAOAB, BAGAB instead of BAB"
            )
        groups = {letter.group for letter in integrator.letters if letter.kind in "BD"}
        if groups != {None}:
            for name, force in zip(system.force_names, system.forces, strict=True):
                if force.group not in groups:
                    raise ParameterError(
                        f"the word {integrator.word!r} never kicks group {force.group}, to which {name} belongs"
                    )

    def _check_displacement(self) -> None:
        """Beads that move without velocities have friction, and nothing holds them."""
        for handle in self.layout.handles:
            flow = self.flows.get(handle)
            if flow is not None and flow.obstacle:
                raise ParameterError(f"BrownianIntegrator cannot move {handle!r}: {flow.obstacle}")
            still = ~handle.fixed_beads & (handle.friction == 0.0)
            if flow is None and still.any():
                i = int(np.argmax(still))
                raise ParameterError(
                    f"BrownianIntegrator: bead {handle.first_bead + i} ({handle.name!r}): friction[{i}] = 0 but must "
                    "be > 0: the bead would move without bound"
                )

    def _join_meshes(self) -> tuple[np.ndarray, np.ndarray]:
        """Faces and opposite corners of all membranes together."""
        faces = [np.empty((0, 3), np.int32)]
        opposite = [np.empty((0, 3), np.int32)]
        for membrane in self.layout.topology.membranes:
            faces.append(self.layout.faces(membrane))
            corners = membrane.mesh.opposite_corners
            opposite.append(np.where(corners < 0, corners, corners + 3 * membrane.first_face).astype(np.int32))
        return np.concatenate(faces), np.concatenate(opposite)

    def _place_initially(self) -> None:
        for handle in self.layout.handles:
            rows = self.layout.slice_of(handle)
            if isinstance(handle, InTrianglePoints):
                self._put_points(handle, handle.triangles, handle._weights)
            else:
                self._x[rows] = handle.positions

    def _put_points(self, handle: InTrianglePoints, triangles: np.ndarray, weights: np.ndarray) -> None:
        """Write faces (n,) of the handle's own mesh and the weights (n, 2) of their second and third corners."""
        rows = self.layout.points_of(handle)
        self._triangle[rows] = triangles + handle.membrane.first_face
        self._barycentric[rows] = weights

    def _thermostat_coefficients(self) -> tuple[np.ndarray, np.ndarray] | None:
        """c1 and c2 of every bead for one O or D, or None where the word has none."""
        letters = [letter for letter in self.integrator.letters if letter.kind in "DO"]
        if not letters:
            return None
        h = letters[0].fraction * self.integrator.timestep
        friction = self.layout.gather("scalar_friction")
        if self.integrator.overdamped:
            return euler_maruyama(friction, h, self.integrator.kT, self._movable_beads())
        return ornstein_uhlenbeck(friction, h, self.integrator.kT, self._inverse_mass)

    def _take_numbers_of_integrator(self) -> None:
        """Timestep and temperature as they are now."""
        self._integrator_version = self.integrator.version
        self._timestep = self.integrator.timestep
        self._coefficients = self._thermostat_coefficients()

    def _bind_forces(self) -> None:
        """The operation of every force, and their sums by the group that a kick names."""
        forces = self.system.forces
        self._versions = [force.version for force in forces]
        self._bound = [force.bind(self.layout) for force in forces]
        groups = dict.fromkeys(letter.group for letter in self.integrator.letters if letter.kind in "BD")
        self._force_sums = {group: self.make_force_sum(self._of_group(group)) for group in groups}

    def _of_group(self, group: int | None) -> list:
        """The bound forces of a group; all of them for None."""
        return [b for b, f in zip(self._bound, self.system.forces, strict=True) if group is None or f.group == group]

    @property
    def bound_forces(self) -> dict[str, Any]:
        """The operation of every force, by the force's name."""
        return dict(zip(self.system.force_names, self._bound, strict=True))

    def _compile(self) -> None:
        """Turn the word into operations."""
        operations: list[Any] = []
        self._rules: dict[float, Any] = {}
        word = self._word()
        last_o = max((stage.index for stage, _ in word if stage.kind == "O"), default=None)
        around = self.integrator.kick.flows(self, [stage for stage, _ in word])
        flows = [*self.flows.values(), *around, *self._instruments()]
        for stage, letter in word:
            operations += self.around(stage, self._operations_of(letter, stage), flows)
            if stage.index == last_o:
                operations.append(KineticEnergies(self._ranges, self._after_o, False))
        if not self.integrator.overdamped:
            looks = self._watch()
            flights = (drift.Drift, rotation.Rotation)
            last = next((operation for operation in reversed(operations) if not isinstance(operation, flights)), None)
            if isinstance(last, Kick) and not self.layout.n_points:
                # The kick has the velocities at hand, which free flight leaves, and compares them on its way.
                last.tell(looks.limit, looks.calm)
            operations.append(looks)
        self._program.load(operations)
        self._program.admit = self._admit
        self._program.between = self._serve
        # The kinetic energies after O are nan until they are measured, and work is once an energy overflows, which
        # says nothing of the state: they are remembered as bits.
        moving = self._moving_arrays() | {"after_o": self._after_o}
        self._program.remember(
            [a.view(np.int64) if name in ("after_o", "work") else a for name, a in moving.items()]
        )

    def _watch(self) -> Any:
        """The last operation of a step: looks for beads that have run away."""
        slow = SLOW / self.integrator.timestep
        speeds = slow * self._length / self._step_lengths()
        return watch.Watch(self._account.bound, speeds**2, slow**2)

    def _word(self) -> list[tuple[Stage, Letter]]:
        """The letters that do something here. G does nothing where there are no in-triangle points; two As that then
        meet are one flight. Not As of different parts of a composition: of constrained beads, and of beads that turn,
        A(s) A(t) is A(s + t) to second order only, and the composition would be no better."""
        word: list[tuple[Stage, Letter]] = []
        for i, letter in enumerate(self.integrator.letters):
            stage = Stage(i, letter.kind, letter.fraction * self.integrator.timestep, self.integrator.kT)
            if letter.kind == "G" and not self.around(stage, self._operations_of(letter, stage)):
                continue
            meets = word and word[-1][0].kind == letter.kind and word[-1][1].substep == letter.substep
            if letter.kind == "A" and meets:
                before, letter = word.pop()
                stage = replace(before, h=before.h + stage.h)
            word.append((stage, letter))
        return word

    def _instruments(self) -> list[Flow]:
        """Flows that only measure."""
        return [] if self._meter is None else [self._meter]

    def _operations_of(self, letter: Letter, stage: Stage) -> list:
        """What a letter does to all beads."""
        if letter.kind == "B":
            return [Kick(self._force_sums[letter.group], stage.h, self._rule(letter))]
        if letter.kind == "A":
            return [self.drift(stage.h)]
        if letter.kind == "G":
            return self.flight(stage.h)
        if letter.kind == "D":
            return self._displacement(stage, self._force_sums[letter.group])
        return [thermostat.Thermostat(stage.index, *self._coefficients)]

    def _rule(self, letter: Letter) -> Any:
        """What the kick of a letter makes of the forces; one for all letters of the same sub-step."""
        if letter.substep not in self._rules:
            self._rules[letter.substep] = self.integrator.kick.bind(self, letter.substep * self.integrator.timestep)
        return self._rules[letter.substep]

    def kicks(self) -> tuple[ForceSum, Any] | None:
        """Force sum and kick rule of the first B of a step; None where kicks are explicit."""
        letter = next((letter for letter in self.integrator.letters if letter.kind == "B"), None)
        rule = None if letter is None or not self._bound else self._rule(letter)
        return None if rule is None else (self._force_sums[letter.group], rule)

    @one_at_a_time
    def physical_positions(self) -> np.ndarray:
        """As ``get_state(physical_positions=True).physical_positions``, which is the name to use.

        Raises
        ------
        SimulationError
            The equations for a have no solution where beads are.
        """
        self._refresh()
        kicks = self.kicks()
        self.perform(self._place, changes_state=False)
        x = self._x
        if self.integrator.kick.coordinates and kicks is not None:
            self.perform(KickForce(*kicks), changes_state=False)
            x = x + kicks[1].scale * kicks[1].acceleration
        return _frozen(x[self.layout.rank])

    def _displacement(self, stage: Stage, forces: ForceSum) -> list:
        """D by forces: first they are added up."""
        plain = (c[: self.layout.first_oriented] for c in self._coefficients)
        own = [operation for flow in self.flows.values() for operation in flow.displace(stage, forces)]
        return [forces, brownian.Displacement(stage.index, forces, *plain), *own]

    def drift(self, h: float) -> Any:
        """A for a time h."""
        return drift.Drift(h, self._before)

    def flight(self, h: float) -> list:
        """G for a time h; nothing where there are no in-triangle points."""
        return [geodesic.Geodesic(h, self.layout.n_points, self.corners)] if self.layout.n_points else []

    def around(self, stage: Stage, operations: Sequence, flows: Sequence[Flow] | None = None) -> list:
        """Operations of a letter with those of flows around them: of the kinds of beads where none are given."""
        flows = list(self.flows.values()) if flows is None else flows
        before = [operation for flow in reversed(flows) for operation in flow.before(stage)]
        after = [operation for flow in flows for operation in flow.after(stage)]
        return [*before, *operations, *after]

    def make_program(
        self,
        v: np.ndarray,
        mass: np.ndarray,
        inverse_mass: np.ndarray,
        spin: np.ndarray,
        inverse_inertia: np.ndarray,
    ) -> Program:
        """A program that moves the beads of this context, with velocities, angular momenta and masses of its own."""
        return Program(
            x=self._x,
            v=v,
            mass=mass,
            inverse_mass=inverse_mass,
            id=self.layout.order,
            n_vertices=self.layout.n_vertices,
            faces=self._faces,
            opposite=self._opposite,
            triangle=self._triangle,
            barycentric=self._barycentric,
            membranes_move=self._membranes_move,
            seed=self.integrator.seed,
            threads=self._threads,
            first_oriented=self.layout.first_oriented,
            orientation=self._orientation,
            spin=spin,
            inverse_inertia=inverse_inertia,
        )

    def make_force_sum(self, forces: list) -> ForceSum:
        """A sum of bound forces with arrays of its own."""
        passes_on = forces and self.layout.n_points and self._membranes_move
        return ForceSum(
            forces,
            np.zeros((self.layout.n if forces else 0, 3)),
            np.zeros((self.layout.n_oriented if forces else 0, 3)),
            np.zeros((self.layout.n_vertices if passes_on else 0, 3)),
            self.layout.n_points,
            self.corners,
        )

    def _refresh(self) -> None:
        """Follow changes of forces and of the integrator: nothing is ever silently stale."""
        # Asked in every call of `step`: the numbers themselves, not the properties that show them.
        if self.integrator._version != self._integrator_version:
            self._follow_integrator()
        forces, versions = self.system._forces, self._versions
        stale = [i for i, force in enumerate(forces) if force._version != versions[i]]
        if not stale:
            return
        # Bound first: a change that cannot be bound leaves all as it was.
        bound = {i: forces[i].bind(self.layout) for i in stale}
        worksheet.warn_of_timesteps(self, [forces[i] for i in stale])
        with self.counted_as_protocol():
            for i, operation in bound.items():
                self._bound[i] = operation
                self._versions[i] = forces[i].version
            for group, force_sum in self._force_sums.items():
                force_sum.take(self._of_group(group))
            self._program.changed()
            if any(rule is not None for rule in self._rules.values()):
                # The equations of implicit kicks are made of what is bound.
                self._compile()

    def _follow_integrator(self) -> None:
        """Timestep or temperature have changed: all that was made of them is made anew."""
        longer = self.integrator.timestep > self._timestep
        self._set_time(self.time, self.integrator.timestep)
        self._take_numbers_of_integrator()
        self._compile()
        worksheet.warn_of_integrator(self, longer)

    # Running ------------------------------------------------------------------------------------------------

    @property
    def threads(self) -> int:
        return self._threads

    @property
    def step_count(self) -> int:
        """Steps taken so far."""
        return self._program.step

    @property
    def time(self) -> float:
        """s; of all steps taken, the timestep that each was taken with."""
        time, step = self._since
        return time + (self._program.step - step) * self._timestep

    def _set_time(self, time: float, timestep: float) -> None:
        """It is now `time`, and steps last `timestep` from now on."""
        step = self._program.step
        # Where all steps might have been of this length, time is their number times it, to the last bit.
        self._since = (0.0, 0) if time == step * timestep else (time, step)

    @one_at_a_time(in_reports=False)
    def step(self, n: int) -> None:
        """Take n steps.

        Raises
        ------
        SimulationError
            The run cannot go on; it says at which step, and names bead, object and force. The Context is then at
            the last good state and can be used: looked at, changed, and run on with the cause mended.
        ContextInUseError
            Called by a reporter or a `PythonForce` of this context, or while another thread uses it. So does
            everything else that looks at a context or changes it, but for reporters, which may look.
        """
        n = whole_number("step: n", n, at_most=2**63 - 1 - self.step_count)
        self._refresh()
        self._open_account()
        try:
            with self.turn.running("step"):
                self._program.run(n)
        except ProgramFault as fault:
            with self.turn.running("step"):
                error = self._recovered(fault)
            raise error from (None if error is fault.cause else fault.cause)
        self._degradation.look(self.step_count, self._x)

    @property
    def runaway(self) -> float | None:
        """How many times faster than its thermal speed √(kT/m) a bead must be to end a run; 20 where nobody says
        otherwise, None for never.

        Without a thermostat, or where beads are faster already when the run starts, the fastest at the start (by
        kinetic energy) takes the place of kT. Kinetic energy that comes from potential energy released since then ends
        no run, whatever the speed; systems with a force whose energy does not tell its work (`PythonForce`, couples
        and loads that turn with a rod) are therefore not watched. A run starts anew whenever numbers of forces,
        positions or velocities are set.
        Checkpoints hold the number, documents do not.
        """
        return self._account.factor

    @runaway.setter
    @one_at_a_time
    def runaway(self, factor: float | None) -> None:
        self._account.factor = factor

    def _open_account(self) -> None:
        """Note what beads and forces have before the first step after a change, for the watch."""
        if self.integrator.overdamped or self._account.is_open(self.integrator.kT):
            return
        if not self.runaway or not all(force.energy_tells_work for force in self.system.forces):
            self._account.open(self.integrator.kT, np.inf, 0.0)  # no bound
            return
        try:
            _, potential = self._energies()
            added = 0.0 if isinstance(self.integrator.kick, Explicit) else self._added_forces()
        except (SimulationError, MemoryError):
            return  # The step will fail likewise, and say what it was doing.
        with np.errstate(over="ignore"):
            speed = np.einsum("ij,ij->i", self._v, self._v)
            turning = 0.5 * np.einsum("ij,ij,ij->i", self._inverse_inertia, self._spin, self._spin)
            # Linearly implicit kicks conserve another energy: a step under the forces here is admitted.
            kick = self.integrator.timestep * self._inverse_mass[:, None] * added
            speed = np.maximum(speed, np.einsum("ij,ij->i", kick, kick))
            kinetic = max(float((0.5 * self._mass * speed).max()), float(turning.max(initial=0.0)))
        self._account.open(self.integrator.kT, kinetic, potential)

    def _added_forces(self) -> np.ndarray:
        """(n, 3) pN; by place, as last evaluated."""
        total = np.zeros((self.layout.n, 3))
        for force_sum in self._force_sums.values():
            if force_sum.forces.operations:
                total += force_sum.f_array
        return total

    def _serve(self) -> None:
        """Between two steps: other threads may be waiting for a look."""
        if self.turn.requests:
            self.turn.serve()

    def _admit(self, bead: int, kinetic: float) -> bool:
        """Whether the run goes on after the watch has found so much kinetic energy in a bead."""
        try:
            _, potential = self._energies()
        except SimulationError:
            return False
        return self._account.admits(kinetic, potential)

    def perform(self, operation: Any, program: Program | None = None, changes_state: bool = True) -> None:
        """Run one operation, now."""
        with self._explained():
            (program or self._program).perform(operation, changes_state)

    def _movable_beads(self) -> np.ndarray:
        """(n,) whether each bead, by place, is free to move."""
        return self._inverse_mass > 0.0

    def _masses(self) -> np.ndarray:
        """(n,) pN s²/nm; by place."""
        return self._mass.copy()

    def _coupled_places(self, operations: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """(k,), (k,) pairs of places that the Hessians of bound forces couple, where beads were when they were added:
        whatever has happened since, it is the same."""
        now = self._x.copy()
        try:
            for handle in self.layout.handles:
                if not isinstance(handle, InTrianglePoints):
                    self._x[self.layout.slice_of(handle)] = handle.positions
            self._program.changed()
            pairs = [np.empty((2, 0), np.int64)]
            for operation in operations:
                collected = HessianBlocks(operation)
                self.perform(collected, changes_state=False)
                pairs.append(np.array(collected.blocks()[:2]))
        finally:
            self._x[:] = now
            self._program.changed()
        return tuple(np.concatenate(pairs, axis=1))

    def _turning_axes(self) -> np.ndarray:
        """(m, 3) whether each oriented bead is free to turn about each of its axes."""
        return self._inverse_inertia > 0.0

    def _step_lengths(self) -> np.ndarray:
        """(n,) nm; how far each bead, by place, moves while its coordinates change by 1."""
        return self.layout.gather("step_lengths")

    def _gyration_radii(self) -> np.ndarray:
        """(m, 3) nm; how far mass is from each axis of the oriented beads: what turning by 1 radian moves it."""
        return np.sqrt(self._inertia / self._mass[self.layout.oriented_places, None])

    def _shortest_length(self) -> float:
        """nm; the shortest edge of meshes and link of filaments, or, without any, roughly the distance of beads."""
        edges = []
        for handle in self.layout.handles:
            joined = handle.joined
            if len(joined):
                x = self._x[self.layout.slice_of(handle)]
                edges.append(np.linalg.norm(x[joined[:, 1]] - x[joined[:, 0]], axis=1).min())
        if edges:
            return float(min(edges))
        with np.errstate(over="ignore"):
            extent = float(np.linalg.norm(np.ptp(self._x, axis=0)))
        return extent / self.layout.n ** (1 / 3) if 0.0 < extent < np.inf else 1.0

    # Looking ------------------------------------------------------------------------------------------------

    @one_at_a_time
    def get_state(
        self,
        positions: bool = False,
        velocities: bool = False,
        forces: bool = False,
        energy: bool = False,
        virial: bool = False,
        multipliers: bool = False,
        physical_positions: bool = False,
    ) -> State:
        """A snapshot of what is asked for. Taking one changes nothing, not even the last bit of a later step.

        Raises
        ------
        ParameterError
            Multipliers of a surface without second derivatives (`PythonSurface` needs ``hessian=``).
        SimulationError
            A force that cannot be computed at the present positions.
        """
        self._refresh()
        return self._look(positions, velocities, forces, energy, virial, multipliers, physical_positions)

    def snapshot(self, **what: bool) -> State:
        """As `get_state`, from any thread, also while another one runs `step`: it is taken between two steps.

        It waits for that, at most some 50 ms and a step. Where numbers of forces or of the integrator have been set
        since `step` was called, it shows what that run is made with. It costs the run the time of one look.

        Parameters
        ----------
        **what : bool
            The arguments of `get_state`.

        Raises
        ------
        ContextInUseError
            Called from inside a step, by a `PythonForce`: there is nothing between two steps to wait for.
        ParameterError, SimulationError
            As `get_state`.
        """
        call = inspect.signature(self.get_state).bind(**what)
        call.apply_defaults()
        return self.turn.ask(lambda: self._look(*call.args))

    def _look(
        self,
        positions: bool,
        velocities: bool,
        forces: bool,
        energy: bool,
        virial: bool,
        multipliers: bool,
        physical_positions: bool,
    ) -> State:
        """As `get_state`, with forces as they are bound."""
        parts: dict[str, Any] = {}
        layout = self.layout
        if positions:
            self.perform(self._place, changes_state=False)
            parts["positions"] = _frozen(self._x[layout.rank])
            parts["intriangle"] = self._intriangle()
            parts["orientations"] = _frozen(self._orientation.copy())
        if velocities:
            parts["velocities"] = _frozen(self._v[layout.rank])
            parts["angular_momenta"] = _frozen(self._spin.copy())
        if physical_positions:
            parts["physical_positions"] = self.physical_positions()
        if virial:
            # Before forces: it leaves those of single forces where their sum belongs.
            parts["virials"] = self._virials()
        if forces or energy or multipliers:
            for force_sum in self._force_sums.values():
                with self._explained():
                    force_sum.refresh(self._program, energy)
        if forces or multipliers:
            total = np.zeros((layout.n, 3))
            torques = np.zeros((layout.n_oriented, 3))
            for force_sum in self._force_sums.values():
                if force_sum.forces.operations:
                    total += force_sum.f_array
                    torques += force_sum.torque_array
            total = total[layout.rank]
            if forces:
                parts["forces"] = _frozen(total)
                parts["torques"] = _frozen(torques)
            if multipliers:
                parts["multipliers"] = self._multipliers(total)
        if energy:
            parts["energies"] = {name: operation.energy for name, operation in self.bound_forces.items()}
            self.perform(self._kinetic_now, changes_state=False)
            names = [handle.name for handle in layout.handles]
            parts["kinetic_energies"] = dict(zip(names, self._now.tolist(), strict=True))
            parts.update(self._temperatures())
            if self._meter is not None:
                parts.update(self._meter.readings(sum(parts["energies"].values())))
        return State(self.step_count, self.time, parts)

    def _multipliers(self, forces: np.ndarray) -> dict[str, np.ndarray]:
        """Those of every handle that has any; `forces` in topology order."""
        x, v = self._x[self.layout.rank], self._v[self.layout.rank]
        found = {
            h.name: h.multipliers(x[h.beads], v[h.beads], forces[h.beads]) for h in self.layout.topology.handles
        }
        return {name: _frozen(values) for name, values in found.items() if values is not None}

    def _virials(self) -> dict[str, np.ndarray]:
        """The virial of every force."""
        self.perform(self._place, changes_state=False)
        # About a bead, since places far from the origin would cost digits; then moved to the origin.
        origin = self._x[0].copy()
        tensor = np.empty((3, 3))
        directors = self.layout.directors
        measure = Virial(origin, tensor, self.layout.n, directors.start, directors.stop)
        virials = {}
        for (name, operation), force in zip(self.bound_forces.items(), self.system.forces, strict=True):
            force_sum = self._force_sum_of(operation)
            with self._explained():
                force_sum.alone(self._program, operation)
            self.perform(measure, changes_state=False)
            out = tensor.copy()
            if not force.conserves_momentum:
                f = np.asarray(force_sum.f_array)
                out += np.outer(origin, f[: directors.start].sum(axis=0) + f[directors.stop :].sum(axis=0))
            virials[name] = _frozen(out)
        return virials

    def _force_sum_of(self, operation: Any) -> ForceSum:
        return next(s for s in self._force_sums.values() if operation in s.forces.operations)

    @one_at_a_time
    def hessian(self, forces: Iterable[str] | None = None, positive: bool = False):
        """The matrix of second derivatives of the potential energy.

        Parameters
        ----------
        forces : names of forces, optional
            All forces where none are given.
        positive : bool
            Of bonds, links, pair forces and penalties what comes near it without negative eigenvalues: the stiffness
            that linearly implicit kicks take with ``positive_definite=True``.

        Returns
        -------
        (3n, 3n) scipy.sparse.csr_array, pN/nm
            In terms of the 3D positions of all beads in topology order; row 3 i + c is component c of bead i.

        Raises
        ------
        ParameterError
            A force that offers no second derivatives (it is named), or a name that is no force's.
        SimulationError
            A force that cannot be computed at the present positions.
        """
        from scipy import sparse

        self._refresh()
        self.perform(self._place, changes_state=False)
        n = self.layout.n
        parts = [(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))]
        for operation in self._differentiable(forces, 2):
            collected = HessianBlocks(operation, positive)
            self.perform(collected, changes_state=False)
            i, j, h = collected.blocks()
            parts.append(entries(self.layout.order[i], self.layout.order[j], h))
        values, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sparse.coo_array((values, (rows, columns)), shape=(3 * n, 3 * n)).tocsr()

    @one_at_a_time
    def third_derivative(self, direction: Any, forces: Iterable[str] | None = None) -> np.ndarray:
        r"""The third derivative of the potential energy, twice along a direction a:
        :math:`g_k = \sum_{ij} a_i a_j\, \partial^3 U / \partial x_i \partial x_j \partial x_k`.

        Parameters
        ----------
        direction : (n, 3) float, nm
            a, in topology order; of any length.
        forces : names of forces, optional
            All forces where none are given.

        Returns
        -------
        (n, 3) float array
            pN

        Raises
        ------
        ParameterError
            A force that offers no third derivatives (it is named), or a name that is no force's.
        TopologyError
            A direction of the wrong shape.
        """
        a = array("third_derivative: direction", direction, (self.layout.n, 3), error=TopologyError)
        self._refresh()
        self.perform(self._place, changes_state=False)
        out = np.zeros((self.layout.n, 3))
        by_place = np.ascontiguousarray(a[self.layout.order])
        for operation in self._differentiable(forces, 3):
            self.perform(Contraction(operation, by_place, out), changes_state=False)
        return out[self.layout.rank]

    def _differentiable(self, names: Iterable[str] | None, derivatives: int) -> list:
        """Bound forces by name, if they offer so many derivatives."""
        bound = self.bound_forces
        names = list(bound) if names is None else words("forces", names)
        for name in names:
            if name not in bound:
                raise ParameterError(f"there is no force {name!r}; there are: {', '.join(bound) or 'none'}")
            if bound[name].derivatives < derivatives:
                which = {2: "second", 3: "third"}[derivatives]
                raise ParameterError(f"{name} offers no {which} derivatives of its energy")
        return [bound[name] for name in names]

    def _intriangle(self) -> InTriangle:
        triangles = np.empty(self.layout.n_points, np.int32)
        barycentric = np.empty((self.layout.n_points, 3))
        for handle in self.layout.topology.point_handles:
            rows = self.layout.points_of(handle)
            triangles[handle.points] = self._triangle[rows] - handle.membrane.first_face
            barycentric[handle.points, 1:] = self._barycentric[rows]
        barycentric[:, 0] = (1.0 - barycentric[:, 1]) - barycentric[:, 2]
        return InTriangle(_frozen(triangles), _frozen(barycentric))

    def _temperatures(self) -> dict[str, Any]:
        handles = self.layout.handles
        measured = self._now if np.isnan(self._after_o).any() else self._after_o
        energies = np.zeros(len(handles))
        for handle, energy in zip(handles, measured, strict=True):
            energies[handles.index(handle.moves_with)] += energy
        freedom = np.array([handle.degrees_of_freedom for handle in handles])
        by_handle = {
            handle.name: float(2.0 * e / (f * units.boltzmann))
            for handle, e, f in zip(handles, energies, freedom, strict=True)
            if f
        }
        total, energy = freedom.sum(), energies.sum()
        if self._momentum_is_conserved():
            # Three degrees of freedom are frozen at what they started with: neither they nor their energy count.
            rows = slice(0, self.layout.directors.start)
            momentum = self._mass[rows] @ self._v[rows]
            total -= 3
            energy -= 0.5 * float(momentum @ momentum) / float(self._mass[rows].sum())
        mean = float(2.0 * energy / (total * units.boltzmann)) if total > 0 else float("nan")
        if self.integrator.overdamped:
            # There are no velocities to measure it by.
            mean, by_handle = float("nan"), dict.fromkeys(by_handle, float("nan"))
        return {"temperature": mean, "temperatures": by_handle}

    def _momentum_is_conserved(self) -> bool:
        """Whether nothing changes the total momentum of the Cartesian beads."""
        frictionless = self._coefficients is None or not any(h.has_friction for h in self.layout.handles)
        return (
            frictionless
            and self.layout.n_cartesian > 0
            and not any(handle.fixed_beads.any() for handle in self.layout.handles)
            and all(force.conserves_momentum for force in self.system.forces)
        )

    # Setting ------------------------------------------------------------------------------------------------

    @one_at_a_time
    def set_positions(self, positions: Any) -> None:
        """Move all Cartesian beads; in-triangle points follow their triangles, and their rows are ignored.

        Parameters
        ----------
        positions : (n, 3) float, nm
            In topology order.

        Raises
        ------
        TopologyError
            Wrong shape, or a coordinate that is not finite.
        SimulationError
            Positions that a kind of bead cannot have, such as of filaments whose links have other lengths; they are
            then as they were. (Small deviations are put right.)
        """
        x = array("set_positions: positions", positions, (self.layout.n, 3), error=TopologyError)
        rows = slice(0, self.layout.n_cartesian)
        before = self._x[rows].copy()
        with self.counted_as_protocol():
            self._x[rows] = x[self.layout.order[rows]]
            try:
                self._settle()
                # Velocities belonged to the old triangles and links.
                self._admit_velocities()
            except SimulationError:
                self._x[rows] = before
                raise
            finally:
                self.positions_changed()

    @one_at_a_time
    def set_intriangle(self, triangles: Any, barycentric: Any) -> None:
        """Move the in-triangle points.

        Parameters
        ----------
        triangles : (n,) int
            Faces, numbered as in the mesh of each point's own membrane; all points of the topology, in its order.
        barycentric : (n, 3) float, >= 0, sum 1

        Raises
        ------
        TopologyError
            Wrong shapes, a triangle that does not exist, a point outside its triangle.
        """
        n = self.layout.n_points
        faces = array("set_intriangle: triangles", triangles, (n,), dtype=np.int64, error=TopologyError)
        weights = array("set_intriangle: barycentric", barycentric, (n, 3), error=TopologyError)
        places = []
        for handle in self.layout.topology.point_handles:
            what = f"set_intriangle: {handle.name}"
            places.append(check_places(what, handle.membrane.mesh, faces[handle.points], weights[handle.points]))
        with self.counted_as_protocol():
            for handle, (f, w) in zip(self.layout.topology.point_handles, places, strict=True):
                self._put_points(handle, f, w[:, 1:])
            self.positions_changed()
            self.perform(self._flatten)

    @one_at_a_time
    def set_velocities(self, velocities: Any) -> None:
        """Set the velocity of every bead.

        Rows of in-triangle points are velocities relative to their triangles and are projected into their
        planes; rows of fixed beads are taken as zero.

        Parameters
        ----------
        velocities : (n, 3) float, nm/s
            In topology order.

        Raises
        ------
        TopologyError
            Wrong shape, or a number that is not finite.
        """
        v = array("set_velocities: velocities", velocities, (self.layout.n, 3), error=TopologyError)
        with self.counted_as_protocol():
            self._v[:] = v[self.layout.order]
            self._admit_velocities()

    @one_at_a_time
    def set_orientations(self, orientations: Any) -> None:
        """Turn the oriented beads.

        Parameters
        ----------
        orientations : (m, 4) float, dimensionless
            Unit quaternions to 1e-6, scalar first, body to space, of all oriented beads of the topology in its order.

        Raises
        ------
        TopologyError
            Wrong shape, or a quaternion that is not of length 1.
        """
        q = unit_quaternions("set_orientations: orientations", orientations, self.layout.n_oriented)
        with self.counted_as_protocol():
            self._orientation[:] = q
            self.positions_changed()

    @one_at_a_time
    def set_angular_momenta(self, angular_momenta: Any) -> None:
        """Set the angular momenta of the oriented beads about their centres.

        Parameters
        ----------
        angular_momenta : (m, 3) float, pN nm s
            In the frame of each body, in topology order; rows of fixed beads are taken as zero.

        Raises
        ------
        TopologyError
            Wrong shape, or a number that is not finite.
        """
        shape = self._spin.shape
        spin = array("set_angular_momenta: angular_momenta", angular_momenta, shape, error=TopologyError)
        with self.counted_as_protocol():
            self._spin[:] = spin
            self._admit_velocities()

    @one_at_a_time
    def set_velocities_to_temperature(
        self, temperature: float | None = None, seed: int = 0, *, kT: float | None = None
    ) -> None:
        """Draw velocities and angular momenta from the Maxwell distribution; of in-triangle points, in their planes.

        Parameters
        ----------
        temperature : float, kelvin, > 0
        seed : int
        kT : float, pN nm, > 0
            Instead of `temperature`.

        Raises
        ------
        ParameterError
            A number outside its domain, or neither or both of temperature and kT.
        """
        energy = thermal_energy(temperature, kT)
        if energy is None:
            raise ParameterError("set_velocities_to_temperature: give temperature= (kelvin) or kT= (pN nm)")
        seed = check_seed("seed", seed)
        with self.counted_as_protocol():
            normals(self._v, self.layout.order, seed, 0, 0, 0, PURPOSES["velocities"])
            self._v *= np.sqrt(energy / self._mass)[:, None]
            oriented = self.layout.order[self.layout.oriented_places]
            normals(self._spin, oriented, seed, 0, 0, 1, PURPOSES["velocities"])
            self._spin *= np.sqrt(energy * self._inertia)
            self._admit_velocities()

    @one_at_a_time(in_reports=False)
    def set_state(self, state: State) -> None:
        """Take over positions and velocities of a state, of which it must hold both, with orientations and angular
        momenta; and its step and time.

        Raises
        ------
        ParameterError
            What is no State, or one without positions or velocities.
        TopologyError
            A state of another topology.
        """
        if not isinstance(state, State):
            made = "a State, as get_state(positions=True, velocities=True) gives"
            raise ParameterError(f"set_state: state must be {made}, not {shown(state)}")
        x, v, places = state.positions, state.velocities, state.intriangle
        self.set_positions(x)
        if self.layout.n_points:
            self.set_intriangle(places.triangles, places.barycentric)
        if self.layout.n_oriented:
            self.set_orientations(state.orientations)
            self.set_angular_momenta(state.angular_momenta)
        self.set_velocities(v)
        self._program.step = state.step
        self._set_time(state.time, self._timestep)

    def _moving_arrays(self) -> dict[str, np.ndarray]:
        """What steps change: with the step number, the state."""
        arrays = {
            "x": self._x[: self.layout.n_cartesian],
            "v": self._v,
            "triangle": self._triangle,
            "barycentric": self._barycentric,
        }
        if self.layout.n_oriented:
            arrays |= {"orientation": self._orientation, "spin": self._spin}
        arrays["runaway"] = self._account.array
        for flow in [*self.flows.values(), *self._instruments()]:
            arrays.update(flow.arrays())
        return arrays

    def _check_finite(self) -> None:
        """Refuse a state that no file is to hold.

        Raises
        ------
        SimulationError
            A number of it is not finite.
        """
        oriented = self.layout.first_oriented
        first = {"x": 0, "v": 0, "barycentric": self.layout.n_cartesian, "orientation": oriented, "spin": oriented}
        for name, numbers in self._moving_arrays().items():
            if name in first and not np.isfinite(numbers).all():
                place = first[name] + int(np.argmin(np.isfinite(numbers).all(axis=1)))
                bead = int(self.layout.order[place])
                handle = self.layout.topology.handle_of(bead)
                raise SimulationError(
                    f"step {self.step_count}: bead {bead} ({handle.name!r}) has numbers that are not finite; no file "
                    "is written of this state",
                    step=self.step_count,
                    object=handle.name,
                    bead=bead,
                )

    def _positions(self) -> list[np.ndarray]:
        """The arrays that say where everything is."""
        arrays = self._moving_arrays()
        return [arrays[name] for name in ("x", "triangle", "barycentric", "orientation") if name in arrays]

    @one_at_a_time
    def _dynamical_arrays(self) -> dict[str, np.ndarray]:
        """All that a step reads and is not given by topology, forces and word: the content of a checkpoint."""
        self._refresh()
        arrays = {**self._moving_arrays(), "after_o": self._after_o}
        if self._coefficients is not None:
            arrays["c1"], arrays["c2"] = self._coefficients
        return arrays

    @one_at_a_time(in_reports=False)
    def _set_dynamical_arrays(
        self, arrays: dict[str, np.ndarray], step: int, since: tuple[float, int] = (0.0, 0)
    ) -> None:
        """Take over the content of a checkpoint; work goes on being measured if it was measured there.

        Parameters
        ----------
        arrays : dict of str to array
            As of `_dynamical_arrays`.
        step : int
        since : (float, int)
            The time, s, at a step since which the timestep has been what it is.

        Raises
        ------
        ParameterError
            Arrays that are missing or have another shape or type; then nothing changes.
        """
        targets = self._dynamical_arrays()
        measured_here = targets.pop("work", None) is not None
        if "runaway" not in arrays:
            # Written before there was one.
            del targets["runaway"]
        wanted = dict(targets)
        if "work" in arrays:
            wanted |= WorkMeter(self._ranges, self.integrator.overdamped).arrays()
        for name, target in wanted.items():
            if name not in arrays:
                raise ParameterError(f"checkpoint: {name} is missing")
            if (arrays[name].shape, arrays[name].dtype) != (target.shape, target.dtype):
                raise ParameterError(
                    f"checkpoint: {name} is {arrays[name].dtype} of shape {arrays[name].shape}, "
                    f"not {target.dtype} of shape {target.shape}"
                )
        for name, target in targets.items():
            target[...] = arrays[name]
        if "runaway" not in arrays:
            self._account.close()
        self._program.changed()
        self._program.step = step
        self._since = since
        if "work" in arrays:
            self.report_work = True
            self._meter.arrays()["work"][...] = arrays["work"]
        elif measured_here:
            self._meter.start(*self._energies())

    def _admit_velocities(self) -> None:
        """Velocities have been set from outside: leave of them what each kind of bead can have."""
        none = self.integrator.overdamped
        self._v[none | (self._inverse_mass == 0.0)] = 0.0
        self._spin[none | (self._inverse_inertia == 0.0)] = 0.0
        self._after_o[:] = np.nan
        self.perform(self._flatten)
        for flow in self.flows.values():
            for operation in flow.tangent():
                self.perform(operation)

    def _settle(self) -> None:
        """Positions have been set from outside: bring beads to where their kinds can be."""
        for flow in self.flows.values():
            for operation in flow.settle():
                self.perform(operation)

    def positions_changed(self) -> None:
        """Positions have been set from outside."""
        self._program.changed()
        self._after_o[:] = np.nan

    # Work ---------------------------------------------------------------------------------------------------

    @property
    def report_work(self) -> bool:
        """Whether heat, shadow work and protocol work are measured; see `Simulation.report_work`."""
        return self._meter is not None

    @report_work.setter
    @one_at_a_time
    def report_work(self, on: bool) -> None:
        if bool(on) == self.report_work:
            return
        self._refresh()
        self._meter = WorkMeter(self._ranges, self.integrator.overdamped) if on else None
        self._compile()
        if on:
            self._meter.start(*self._energies())

    def _energies(self) -> tuple[float, float]:
        """Kinetic and potential energy, pN nm, by the forces as they are bound now."""
        for force_sum in self._force_sums.values():
            with self._explained():
                force_sum.refresh(self._program, True)
        self.perform(self._kinetic_now, changes_state=False)
        return sum(self._now.tolist()), sum(operation.energy for operation in self._bound)

    @contextmanager
    def counted_as_protocol(self) -> Iterator[None]:
        """What the block does to the energy is protocol work; and steps start from another account of it."""
        self._account.close()
        if self._meter is None:
            yield
            return
        before = self._energies()
        try:
            yield
        finally:
            self._meter.intervene(before, self._energies())

    def __reduce__(self):
        raise TypeError(
            "a Context cannot be pickled or copied: Simulation.save_checkpoint(path) writes it, and "
            "mp.Simulation.resume(path) makes it anew"
        )

    # Explaining ---------------------------------------------------------------------------------------------

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Faults of kernels leave as SimulationError, with the exception of Python code as their cause."""
        try:
            with self.turn.running():
                yield
        except ProgramFault as fault:
            if isinstance(fault.cause, KeyboardInterrupt):
                raise fault.cause from None
            raise self._explain(fault, self._culprits(fault)[:1]) from fault.cause

    def _recovered(self, fault: ProgramFault) -> BaseException:
        """Go back to the last good state, and say what happened. An interrupt in Python code is one of the run."""
        culprits = self._culprits(fault)
        repeatable = all(operation.repeatable for operation in self._bound)
        self._program.recover(repeatable)
        if isinstance(fault.cause, KeyboardInterrupt):
            return fault.cause
        if fault.kind == "runaway":
            culprits = self._accelerated_by(fault) if repeatable else []
        elif len(culprits) > 1:
            # Numbers that overflow spread within one step. One step earlier the cause is the strongest.
            culprits = [self._strongest(culprits, fault.bead)]
        back = f". The simulation is back at step {self.step_count}, "
        back += "the last good state" if repeatable else "the last state that was kept"
        return self._explain(fault, culprits, back)

    def _explain(self, fault: ProgramFault, culprits: list[str], back: str = "") -> SimulationError:
        """The fault of a kernel in the user's words."""
        force = culprits[0] if culprits else None
        bead = handle = triangle = None
        if fault.bead >= 0:
            bead = int(self.layout.order[fault.bead])
            handle = self.layout.topology.handle_of(bead)
        place = "" if bead is None else handle.describe(bead)
        where = "" if bead is None else f", bead {bead} ({handle.name!r}, {place or handle.kind})"
        of_force = "" if force is None else f", force {force}"
        error = f"{type(fault.cause).__name__}: {fault.cause}"
        if fault.kind == "runaway":
            row = fault.bead - self.layout.n_cartesian
            if row >= 0:
                face = int(self._triangle[row])
                found = face, float(heights(self._x[self._faces[face]]))
            else:
                found = flattest(self._x, self._faces, fault.bead)
            if found is not None:
                face, height = found
                triangle = face - max(m.first_face for m in self.layout.topology.membranes if m.first_face <= face)
                where += f", triangle {triangle} (height {height:.3g} nm)"
        energy = self._in_words(fault.value)
        cause = _CAUSES.get(fault.kind, fault.kind).format(value=fault.value, error=error, energy=energy)
        if fault.kind == "runaway":
            cause += _RUNAWAYS[force is None, triangle is None]
        message = f"step {fault.step}{where}{of_force}: {cause}{back}"
        return SimulationError(
            message,
            step=fault.step,
            bead=bead,
            object=None if handle is None else handle.name,
            force=force,
            triangle=triangle,
        )

    def _in_words(self, energy: float) -> str:
        kT = self.integrator.kT
        return f"{energy:.3g} pN nm" + ("" if kT is None else f" = {energy / kT:.3g} kT")

    def _accelerated_by(self, fault: ProgramFault) -> list[str]:
        """The strongest force on a bead that has run away; none where it was a flight that gave it its energy.

        From the last good state on, the step that failed is taken again, letter by letter; then the state is put back.
        """
        program, operations = self._program, self._program.operations
        program.keep()
        try:
            gained = np.diff(program.trace(fault.bead))
            most = int(np.argmax(gained)) if gained.max(initial=0.0) > 0.0 else None
            if most is None or not isinstance(operations[most], Kick):
                return []
            # Where beads were at that kick.
            program.restore()
            program.perform(Operations(operations[:most]), changes_state=False)
            return [self._strongest(list(self.bound_forces), fault.bead)]
        finally:
            program.restore()

    def _strongest(self, names: list[str], place: int) -> str:
        return max(names, key=lambda name: self._strength(name, place))

    def _culprits(self, fault: ProgramFault) -> list[str]:
        """The force that failed; or those that, computed alone, give the bead a force that is not finite."""
        # What collects derivatives of a force fails for that force.
        failed = getattr(fault.operation, "force", fault.operation)
        names = [name for name, operation in self.bound_forces.items() if operation is failed]
        if names or fault.kind != "not finite" or fault.bead < 0:
            return names
        return [name for name in self.bound_forces if not np.isfinite(self._strength(name, fault.bead))]

    def _strength(self, name: str, place: int) -> float:
        """How strongly one force alone pulls at a bead, pN, or turns it, pN nm; inf where that is not a number, or not
        to be computed."""
        operation = self.bound_forces[name]
        if not operation.repeatable:
            return 0.0
        force_sum = self._force_sum_of(operation)
        try:
            force_sum.alone(self._program, operation)
        except ProgramFault:
            return np.inf
        with np.errstate(over="ignore"):
            strength = float(np.linalg.norm(force_sum.f_array[place]))
            row = place - self.layout.first_oriented
            if 0 <= row < self.layout.n_oriented:
                strength += float(np.linalg.norm(force_sum.torque_array[row]))
        return strength if np.isfinite(strength) else np.inf


_CAUSES = {
    "not finite": "the velocity or force is no longer a finite number. The timestep is too large for the "
    "stiffest force, or beads start on top of each other: try a smaller timestep or minimize_energy() first",
    "too many crossings": "an in-triangle point crosses edges without end. Its speed times the timestep is far "
    "larger than a triangle: try a smaller timestep, or a larger mass",
    "degenerate triangle": "a triangle here has lost its area. The membrane needs a force "
    "that keeps its triangles in shape (MembraneEdgeSprings, MembraneArea(per_triangle=True)) or a smaller timestep",
    "not solved": "the equations of a linearly implicit kick have no solution here, or Newton's method does not find "
    "it. The timestep is too large, or the stiff forces push outwards: try a smaller timestep or another kick "
    "(positive_definite=True)",
    "not converged": "its links cannot keep their lengths: the constraint solve did not converge (relative residual "
    "{value:.1e}). The timestep is too large for the forces or velocities here, or the filament is folded onto itself",
    "lost surface": "it does not come back to its surface (distance {value:.1e} nm): Newton's method finds no root "
    "near by, the gradient vanishes there, or another sheet was reached. The timestep is too large for the forces or "
    "velocities here and for the curvature of the surface; or positions from outside were too far from it, and must "
    "be brought onto it first: surface.project(positions)",
    "runaway": "it has run away: its kinetic energy, {energy}, is more than the thermostat, the start of the run and "
    "the forces can have given it. ",
    "python": "Python code called from the step raised {error}",
    "out of memory": "no memory for the neighbour list or the Hessian: are the beads far denser than the cutoff "
    "suggests?",
}

#: What is likely wrong where a bead has run away: by whether it was a force, and whether it has a triangle.
_SMALLER = "The timestep is too large for the stiffest force here: try a smaller one"
_MEANT = ". If it is meant to be so fast, simulation.context.runaway = None lets it"
_RUNAWAYS = {
    (False, False): f"{_SMALLER}, a larger mass, or a force that keeps triangles in shape (MembraneEdgeSprings, "
    f"MembraneArea(per_triangle=True)){_MEANT}",
    (False, True): f"{_SMALLER}, or minimize_energy() first{_MEANT}",
    (True, False): "No force gave it that but the flight of points in a triangle that has become flat: its height is "
    "not large against speeds times the timestep. Try a smaller timestep, a larger mass, or a force that keeps "
    f"triangles in shape (MembraneEdgeSprings, MembraneArea(per_triangle=True)){_MEANT}",
    (True, True): f"{_SMALLER}{_MEANT}",
}


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a
