"""Context: one running system, as users see it; `medyanpy.engine` is what it is made of."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import numpy as np

from medyanpy._kernels.core.program import ProgramFault
from medyanpy._tools.locking import EDIT, Turn, one_at_a_time
from medyanpy._tools.names import bound_call
from medyanpy._tools.tables import Displayed, Page
from medyanpy._tools.threads import choose_threads
from medyanpy._tools.validation import array, whole_number
from medyanpy.engine import worksheet
from medyanpy.engine.box_changes import check_space
from medyanpy.engine.editing import Engine, Undo, describe_places, describe_the_living, edited
from medyanpy.engine.faults import Faults
from medyanpy.engine.jumping import Listener
from medyanpy.engine.measure import Measure
from medyanpy.engine.mesh_quality import Degradation
from medyanpy.engine.overlaps import Overlap, overlaps_now
from medyanpy.engine.schedule import Schedule, check_word
from medyanpy.engine.setting import Settable
from medyanpy.engine.store import Store
from medyanpy.engine.summary import said_of, tables_of
from medyanpy.engine.work import WorkMeter
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.integrators import SplittingIntegrator
from medyanpy.state import State
from medyanpy.system import System

__all__ = ["Context"]

# Steps after which a failure is no longer that of a start in which beads overlap.
_PARTED = 1000


class Context(Displayed, Settable):
    """Running system: its beads, its forces bound to them, and its word compiled to a program.

    Parameters
    ----------
    system : System
        Frozen while the context exists: numbers of its forces may change (`Force.set`), their list may not.
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
        if topology.is_edited:
            raise TopologyError("Context: the topology is being edited: make it after the block")
        #: The turn of using the context.
        self.turn: Turn = Turn()
        self.system = system
        self.integrator = integrator
        self._take(self._engine(choose_threads(threads)))
        self._schedule.jumping.check_room()
        #: Warnings that users have had, and need not have again when there are more.
        self._said: set[worksheet.Remark] = set()
        self._looked = worksheet.Looked()
        found = overlaps_now(self._schedule)
        self._faults.overlapping = bool(found)
        worksheet.warn(system, integrator, self._said, self.layout.box, found)
        worksheet.warn_once(self._schedule.jumping.remarks(self._schedule), self._said)
        integrator.bind(self)
        system._contexts.add(self)
        for jump in system.jumps:
            jump._contexts.add(self)
        topology._contexts.add(self)

    def _engine(self, threads: int) -> Engine:
        """Return everything that the topology, the system and the integrator are compiled to."""
        check_space(self.system)
        check_word(self.system, self.integrator)
        store = Store(self.system.topology, threads, self.integrator.seed, self.system.box, self.system._pools)
        for handle in store.layout.handles:
            handle.kind.demand_box(store.layout)
        faults = Faults(store, self.turn)
        schedule = Schedule(store, self.system, self.integrator, faults)
        engine = Engine(store, faults, schedule, Measure(store, schedule), Degradation(store.layout, self.system))
        store.program.admit, store.program.between = engine.measure.admit, self._serve
        # Last: an error names forces.
        schedule.settle()
        return engine

    def _take(self, engine: Engine) -> None:
        self._store, self._faults, self._schedule, self._measure, self._degradation = engine

    @contextmanager
    def _following_an_edit(self) -> Iterator[None]:
        """Surround a block in which topology and system change, after which this context continues with them; see
        `Topology.edit`."""
        with self.turn.taken(EDIT, in_reports=False):
            self._refresh()
            before = Engine(self._store, self._faults, self._schedule, self._measure, self._degradation)
            energies = self._measure.energies() if self.report_work else None
            jumps = set(self.system.jumps)
            # Events are reported with the numbers of the topology in which they happened.
            before.schedule.jumping.gather()
            with Undo(self.system, self.integrator):
                describe_the_living(self._store)
                self.system.topology._describe = partial(describe_places, self._store)
                with self.turn.running(EDIT):
                    yield
                self._take(edited(before, self._engine(self.threads), energies))
                try:
                    worksheet.warn(
                        self.system, self.integrator, self._said, self.layout.box, overlaps_now(self._schedule)
                    )
                except BaseException:
                    # Warnings may be errors.
                    self._take(before)
                    raise
            before.schedule.jumping.audience.goes_to(self._schedule.jumping)
            for jump in jumps - set(self.system.jumps):
                jump._contexts.discard(self)
            for jump in self.system.jumps:
                jump._contexts.add(self)

    def _refresh(self) -> None:
        """Follow changes of forces and of the integrator: nothing is ever silently stale."""
        schedule = self._schedule
        if not schedule.follows_integrator:
            worksheet.warn_of_integrator(self.system, self.integrator, schedule.follow_integrator())
        if schedule.jumping.stale():
            schedule.jumping.follow()
            # A copy from before would be run on with other rates.
            self._store.program.changed()
        stale = schedule.stale()
        if not stale:
            return
        # Bound first: a change that cannot be bound leaves all as it was.
        forces = self.system.forces
        bound = {i: schedule.bind(forces[i]) for i in stale}
        worksheet.warn_of_timesteps(self.system, self.integrator, self._looked.anew([forces[i] for i in stale]))
        with self._counted_as_protocol():
            schedule.take_forces(bound)

    @one_at_a_time
    def _overlaps(self) -> list[Overlap]:
        """Return pairs that overlap where beads are now."""
        self._refresh()
        return overlaps_now(self._schedule)

    # Running ------------------------------------------------------------------------------------------------

    @property
    def threads(self) -> int:
        return self._store.threads

    @property
    def time(self) -> float:
        """Time, s: the sum over all steps taken of the timestep that each was taken with."""
        return self._schedule.time

    @one_at_a_time(in_reports=False)
    def step(self, n: int) -> None:
        """Take n steps.

        Raises
        ------
        SimulationError
            The run cannot continue; the error names step, bead, object and force. The Context is then at the last good
            state, and can be used.
        ContextInUseError
            Called by a reporter or a `PythonForce` of this context, or while another thread uses it. All other methods
            do so too, but reporters may look.
        """
        n = whole_number("step: n", n, at_most=2**63 - 1 - self.step_count)
        self._refresh()
        self._measure.open_account()
        try:
            with self.turn.running("step"):
                self._store.program.run(n)
        except ProgramFault as fault:
            with self.turn.running("step"):
                error = self._faults.recovered(fault)
            raise error from (None if error is fault.cause else fault.cause)
        if self.step_count - self._schedule.started > _PARTED:
            self._faults.overlapping = False
        self._degradation.look(self.step_count, self._store.x)
        if self.integrator.blocks:
            self._schedule.proposing.look(self.integrator.timestep)

    @property
    def runaway(self) -> float | None:
        """Ratio of a bead's speed to its thermal speed √(kT/m) that ends a run; 20 by default, None for never.

        Without a thermostat, or where a bead is faster at the start, the largest kinetic energy there replaces kT.
        Kinetic energy from potential energy released since then ends no run, so that systems with a force whose energy
        does not tell its work (`PythonForce`, couples and loads that turn with a rod) are not watched. The account
        starts again when numbers of forces, positions or velocities are set. Checkpoints hold the number.
        """
        return self._schedule.account.factor

    @runaway.setter
    @one_at_a_time
    def runaway(self, factor: float | None) -> None:
        self._schedule.account.factor = factor

    def _serve(self) -> None:
        """Let other threads that wait for a look have it, between two steps."""
        if self.turn.requests:
            self.turn.serve()

    # Looking ------------------------------------------------------------------------------------------------

    @one_at_a_time
    def get_state(
        self, positions: bool = False, velocities: bool = False, forces: bool = False, energy: bool = False,
        virial: bool = False, multipliers: bool = False, physical_positions: bool = False,
    ) -> State:  # fmt: skip
        """Return a snapshot of what is asked for. Taking one changes nothing, not even the last bit of a later step.

        Raises
        ------
        ParameterError
            Multipliers of a surface without second derivatives (`PythonSurface` needs ``hessian=``).
        SimulationError
            A force that cannot be computed at the present positions.
        """
        self._refresh()
        return self._measure.look(positions, velocities, forces, energy, virial, multipliers, physical_positions)

    def snapshot(self, **what: bool) -> State:
        """Return what `get_state` does, between two steps, from any thread, also while another one runs `step`.

        It waits at most some 50 ms and a step, and shows numbers of forces and of the integrator as `step` has them.

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
        call = bound_call("snapshot", self.get_state, what)
        state: State = self.turn.ask(lambda: self._measure.look(*call.args))
        return state

    @one_at_a_time
    def events(self) -> Listener:
        """Record the events of jumps from now on, for as long as what is returned is referenced.

        Returns
        -------
        Listener
            ``heard()`` returns all events until now, in the order of time, and ``forget(n)`` drops the first n. An
            event is a named tuple ``(step, time, jump, kind, a, b, energy, chemical_energy, kinetic_energy, c)``, as in
            `EventReporter`.
        """
        return self._schedule.jumping.listen()

    @one_at_a_time
    def hessian(self, forces: Iterable[str] | None = None, positive: bool = False) -> Any:
        """Return the matrix of second derivatives of the potential energy.

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
            A force that offers no second derivatives (it is named), or that couples all of more than 1500 vertices
            (`MembraneArea`, `MembraneVolume`); or a name that is not that of a force.
        SimulationError
            A force that cannot be computed at the present positions.
        """
        self._refresh()
        return self._measure.hessian(forces, positive)

    @one_at_a_time
    def third_derivative(self, direction: Any, forces: Iterable[str] | None = None) -> np.ndarray:
        r"""Return the third derivative of the potential energy, twice along a direction a:
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
            A force that offers no third derivatives (it is named), or a name that is not that of a force.
        TopologyError
            A direction of the wrong shape.
        """
        a = array("third_derivative: direction", direction, (self.layout.n, 3), error=TopologyError)
        self._refresh()
        return self._measure.third_derivative(a, forces)

    @one_at_a_time
    def physical_positions(self) -> np.ndarray:
        """Return ``get_state(physical_positions=True).physical_positions``, which is the name to use.

        Raises
        ------
        SimulationError
            The equations for a have no solution where beads are.
        """
        self._refresh()
        return self._measure.physical_positions()

    @one_at_a_time
    def _dynamical_arrays(self) -> dict[str, np.ndarray]:
        """Return all that a step reads and is not given by topology, forces and word: the content of a checkpoint."""
        self._refresh()
        return self._schedule.dynamical_arrays()

    @one_at_a_time(in_reports=False)
    def _set_dynamical_arrays(
        self, arrays: dict[str, np.ndarray], step: int, since: tuple[float, int] = (0.0, 0)
    ) -> None:
        """Take over the content of a checkpoint; work is still measured if it was measured there.

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
        self._refresh()
        self._schedule.take_arrays(arrays, step, since)
        self._warn_of_box()
        measured = arrays.get("work")
        if measured is not None:
            self.report_work = True
            self._meter.take(measured)
        elif self.report_work:
            self._meter.start(*self._measure.energies())

    # Work ---------------------------------------------------------------------------------------------------

    @property
    def report_work(self) -> bool:
        """True if heat, shadow work and protocol work are measured; see `Simulation.report_work`."""
        return self._schedule.meter is not None

    @report_work.setter
    @one_at_a_time
    def report_work(self, on: bool) -> None:
        if bool(on) == self.report_work:
            return
        self._refresh()
        schedule = self._schedule
        schedule.meter = (
            WorkMeter(self._store.ranges, self.integrator.overdamped, schedule.jumping.operations) if on else None
        )
        self._schedule.compile()
        if on:
            self._meter.start(*self._measure.energies())

    @property
    def _meter(self) -> WorkMeter:
        """Meter of work."""
        assert self._schedule.meter is not None
        return self._schedule.meter

    def _page(self) -> Page:
        return Page("Context", said_of(self), *tables_of(self))

    def __repr__(self) -> str:
        return f"Context({said_of(self)}; {self.system!r}, {self.integrator!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Context cannot be pickled or copied: Simulation.save_checkpoint(path) writes it, and "
            "mp.Simulation.resume(path) makes it again"
        )
