"""Simulation: a context, and reporters that look at it while it runs."""

import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from medyanpy._tools.deadlines import Deadline, in_words, seconds_of
from medyanpy._tools.interrupts import Interrupts
from medyanpy._tools.names import Guarded, plainly_called
from medyanpy._tools.outputs import Lock
from medyanpy._tools.progress import Progress
from medyanpy._tools.tables import Displayed, Page
from medyanpy._tools.validation import file_path, whole_number
from medyanpy.beads.units import FixedBeads
from medyanpy.context import Context
from medyanpy.engine.minimize import Minimization, minimize
from medyanpy.engine.summary import said_of, table_of_reporters, tables_of
from medyanpy.engine.worksheet import Worksheet, look
from medyanpy.errors import MedyanError, ParameterError, SimulationError, TopologyError, WalltimeError, shown
from medyanpy.files.checkpoint import load_into, read_checkpoint, write_checkpoint
from medyanpy.integrators import SplittingIntegrator
from medyanpy.reporters import CheckpointReporter, Reporter
from medyanpy.reporters._base import new_file
from medyanpy.reporters._restarts import bring_back, calls_of, written_down
from medyanpy.reporters.checkpoint import checkpoints_of
from medyanpy.reporters.ramp import INTEGRATOR, Ramp
from medyanpy.system import System
from medyanpy.topology import Topology

__all__ = ["Simulation"]

# 63 bits.
_MOST = 2**63 - 1


@dataclass
class _Owed:
    """Reporters that are to report at a step, and what they need; those that have reported are taken off."""

    at: int = -1
    plans: list[tuple[Reporter, dict[str, Any]]] = field(default_factory=list)


class Simulation(Displayed, Guarded):
    """A system, an integrator and a context, run together and reported on.

    Parameters
    ----------
    system : System
    integrator : SplittingIntegrator
    threads : int, optional
        As many as the machine offers where none is given; any number gives the same bits.

    Attributes
    ----------
    context : Context
    reporters : list of Reporter
        Append to it, or assign a list; all are flushed when `step` ends with an exception, and closed by `close`.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> pair = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> spring = system.add_force(mp.forces.HarmonicBonds([pair.beads], stiffness=1.0, length=1.0))
    >>> simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    >>> simulation.step(100)
    >>> round(simulation.context.get_state(energy=True).total_energy, 4)
    0.125
    """

    _remedy = "make a new Simulation"

    def __init__(self, system: System, integrator: SplittingIntegrator, threads: int | None = None) -> None:
        self.context: Context = Context(system, integrator, threads)
        self._reporters: list[Reporter] = []
        self._owed = _Owed()
        # Gives back what `resume` has locked.
        self._free: Callable[[], Any] = lambda: None

    @property
    def reporters(self) -> list[Reporter]:
        """Reporters, in the order in which they report; a list that can be changed."""
        return self._reporters

    @reporters.setter
    def reporters(self, reporters: Iterable[Reporter]) -> None:
        if not isinstance(reporters, list | tuple):
            raise ParameterError(
                f"reporters must be a list, not {type(reporters).__name__}: simulation.reporters.append(reporter)"
            )
        self._reporters = list(reporters)

    @property
    def system(self) -> System:
        """The `System` that is simulated."""
        return self.context.system

    @property
    def topology(self) -> Topology:
        """The `Topology` of the system."""
        return self.context.system.topology

    @property
    def integrator(self) -> SplittingIntegrator:
        """The integrator of the context."""
        return self.context.integrator

    @property
    def current_step(self) -> int:
        """Number of steps taken since the start of the run."""
        return self.context.step_count

    @property
    def report_work(self) -> bool:
        """Setting of whether to measure heat and work; off by default.

        While it is on, states with ``energy=True`` hold three sums since then, pN nm: ``heat`` of O, ``shadow_work`` of
        all other letters (zero for an exact integrator), and ``protocol_work`` of changes between steps. Their sum is
        the change of the total energy, to round-off. It costs a kinetic energy per letter and changes no bit of a run.

        Source: Sivak, Chodera & Crooks, Phys. Rev. X 3, 011007 (2013).
        """
        return self.context.report_work

    @report_work.setter
    def report_work(self, on: bool) -> None:
        self.context.report_work = on

    def step(self, n: int, *, progress: bool | None = None) -> None:
        """Take n steps, reporting on the way.

        Parameters
        ----------
        n : int, >= 0
        progress : bool, optional
            Show a progress bar; where not given, in notebooks, and if standard error is a terminal.

        Raises
        ------
        SimulationError
            The run cannot continue. Reporters are flushed, and the simulation is back at the last good state: mend the
            cause (forces, velocities, positions, or ``integrator.set(timestep=...)``) and step again.
        OutputError
            A reporter cannot write. It keeps its data in memory; mend the cause and step again.

        Notes
        -----
        Where a reporter raises, the others still report before the error comes out, except checkpoints. A reporter that
        has not reported at this step is asked again before the next. Signals come during steps, not during reports.
        """
        n = whole_number("step: n", n, at_least=0)
        with Progress(n, progress) as bar:
            self._go("step", self.current_step + n, bar)

    def run_until(self, step: int, *, walltime: float | str | None = None, progress: bool | None = None) -> bool:
        """Take steps until so many have been taken in all, or time is up.

        Parameters
        ----------
        step : int, >= current_step
            The `current_step` to reach.
        walltime : float, s, > 0, or str, optional
            Real time from now: seconds, or text such as ``"50m"``, ``"1h30m"`` or ``"1-02:30:00"``. No step is begun
            that would end too late, judging by those before. At least one is taken.
        progress : bool, optional
            As of `step`.

        Returns
        -------
        bool
            True if the step has been reached. If not, all due reporters have reported, and the run can be resumed.

        Raises
        ------
        ParameterError
            A step that is past, or a walltime that cannot be read.
        WalltimeError
            A walltime shorter than a single step with its reports: that step has been taken and reported by then.
        SimulationError, OutputError
            As of `step`.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> pair = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0)
        >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01))
        >>> simulation.run_until(100, walltime="1h30m")
        True
        """
        target = whole_number("run_until: step", step, at_least=0, at_most=_MOST)
        if target < self.current_step:
            raise ParameterError(
                f"run_until: step = {target} but the simulation is at step {self.current_step} already"
            )
        deadline = None if walltime is None else Deadline(seconds_of("run_until: walltime", walltime))
        self._go_in_time("run_until", target, deadline, target - self.current_step, progress)
        return self.current_step == target

    def run_for(self, walltime: float | str, *, progress: bool | None = None) -> int:
        """Take as many steps as there is time for.

        Parameters
        ----------
        walltime, progress
            As of `run_until`.

        Returns
        -------
        int
            Steps taken, at least one.

        Raises
        ------
        ParameterError, SimulationError, OutputError
            As of `run_until`.
        """
        before = self.current_step
        self._go_in_time("run_for", _MOST, Deadline(seconds_of("run_for: walltime", walltime)), None, progress)
        return self.current_step - before

    def ramp(
        self, target: Any, *, steps: int, start: int | None = None, every: int = 1, progress: bool | None = None,
        fixed_beads: FixedBeads = "refuse", **numbers: Any,
    ) -> Ramp:  # fmt: skip
        """Take steps while numbers change: of a force, a jump, the integrator or the box, or of several of them.

        Parameters
        ----------
        target : Force, Jump, integrator or name, or a dict of these to dicts
            Whose numbers change; ``"box"`` has the lengths ``x``, ``y`` and ``z`` of a periodic box. Several at once:
            ``{trap: {"stiffness": (1.0, 2.0)}, bond: {"length": (1.0, 3.0)}}``.
        steps : int, >= 1
            How many steps it takes.
        start : int, >= 0, optional
            The `current_step` at which it starts, or started; by default now. With it the call can be repeated after
            a resume: it takes the steps that are left, and returns the work of all.
        every : int, >= 1
            Steps between changes, each of which costs as much as some steps (`Ramp`).
        progress : bool, optional
            As of `step`.
        fixed_beads : "refuse" or "scale"
            What a ramp of the box does with fixed beads, as `Context.set_box`.
        **numbers : (value, value, ...) or callable
            By name, linearly from the first value to the last: ``stiffness=(1.0, 2.0)``, ``volume=(v0, v1)``; or a
            function of the fraction of the steps.

        Returns
        -------
        Ramp
            ``ramp.work`` is the protocol work, pN nm. It stays in `reporters`, for checkpoints.

        Raises
        ------
        ParameterError
            A target that the simulation does not have, names and values that it does not take; then no step is taken.
        SimulationError, OutputError
            As of `step`. The same call with `start` takes the steps that are left.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
        >>> system = mp.System(topology)
        >>> trap = system.add_force(mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
        >>> simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
        >>> ramp = simulation.ramp(trap, stiffness=(1.0, 2.0), steps=100)
        >>> trap.stiffness.tolist(), round(ramp.work, 3)
        ([2.0, 2.0, 2.0], 0.34)
        """
        if isinstance(target, Mapping) and numbers:
            raise ParameterError(f"ramp: numbers of several targets are in the dict: {', '.join(numbers)} is beside it")
        each = target if isinstance(target, Mapping) else {target: numbers}
        named = {self._name_of(one): own for one, own in each.items()}
        first = self.current_step if start is None else start
        ramp = Ramp(named, steps, start=first, every=every, fixed_beads=fixed_beads)
        there = [one for one in self._reporters if isinstance(one, Ramp) and one.is_that_of(ramp)]
        if not there:
            ramp.check(self)
            self._reporters.append(ramp)
            return self._ramp(ramp, progress)
        return self._run_ramp(there[0], progress)

    def _ramp(self, ramp: Ramp, progress: bool | None) -> Ramp:
        """Take the steps of a ramp that has just been added; if it is refused before the first, nothing of it stays."""
        before, numbers = self.current_step, ramp.numbers_now(self)
        try:
            return self._run_ramp(ramp, progress)
        except (ParameterError, TopologyError):
            if self.current_step == before:
                self._reporters.remove(ramp)
                for target, own in numbers:
                    target.set(**own)
            raise

    def _run_ramp(self, ramp: Ramp, progress: bool | None) -> Ramp:
        if self.current_step < ramp.end:
            self.run_until(ramp.end, progress=progress)
        elif self.current_step == ramp.end:
            # Come here from a checkpoint, or without.
            ramp.describe_next_report(self)
        return ramp

    def _name_of(self, target: Any) -> str:
        """Return the name of a force, a jump or the integrator."""
        if target is self.integrator:
            return INTEGRATOR
        for name, one in self.system._named():
            if target is one:
                return name
        if isinstance(target, str):
            return target
        raise ParameterError(
            f"ramp: {target!r} is not a force or jump of this system, nor the integrator: of several give a dict"
        )

    def _go_in_time(
        self, name: str, target: int, deadline: Deadline | None, total: int | None, progress: bool | None
    ) -> None:
        before = self.current_step
        with Progress(total, progress, deadline) as bar:
            self._go(name, target, bar)
        if deadline is not None and deadline.left < 0.0 and self.current_step == before + 1 < target:
            raise WalltimeError(
                f"{name}: walltime = {in_words(deadline.seconds)} is shorter than one step with its reports, which "
                f"took {in_words(deadline.elapsed)}; that one has been taken: give more time for others"
            )

    def _go(self, name: str, target: int, bar: Progress) -> None:
        """Take steps up to the target, or until the deadline of the bar, reporting on the way."""
        with self.context.turn.taken(name, in_reports=False), Interrupts(wanted=bool(self.reporters)) as interrupts:
            try:
                self._report()
                while self.current_step < target and not bar.time_is_up:
                    self._plan(target)
                    try:
                        interrupts.let_through()
                        bar.advance(self.context, self._owed.at - self.current_step)
                    finally:
                        # Also after the last step a signal may come.
                        interrupts.hold()
                        self._report()
            except BaseException:
                self._flush()
                raise

    def _plan(self, target: int) -> None:
        """Find the reporters that are due next, and at which step."""
        for k, reporter in enumerate(self.reporters):
            if not hasattr(reporter, "describe_next_report"):
                raise ParameterError(f"reporters[{k}] must be a Reporter, not {shown(reporter)}")
        plans = [(reporter, reporter.describe_next_report(self)) for reporter in self.reporters]
        due_in = min([target - self.current_step, *(int(plan["steps"]) for _, plan in plans)])
        self._owed.plans = [(reporter, plan) for reporter, plan in plans if int(plan["steps"]) == due_in]
        self._owed.at = self.current_step + due_in

    def _report(self) -> None:
        """Make one state for all reporters that are due now and have not reported, with the union of what they want."""
        if not self._owed.plans or self._owed.at != self.current_step:
            return
        there = {id(reporter) for reporter in self.reporters}
        owed = [(reporter, plan) for reporter, plan in self._owed.plans if id(reporter) in there]
        try:
            self.context._measure.check_finite()
        except SimulationError:
            # The step after it reports what has happened, and goes back to the last good state.
            self.context.step(1)
            raise
        wanted = {keyword for _, plan in owed for keyword in plan["include"]}
        state = self.context.get_state(**dict.fromkeys(wanted, True))
        if "energy" in wanted and not math.isfinite(state.total_energy):
            raise SimulationError(
                f"step {state.step}: kinetic energy {state.kinetic_energy:g}, potential energy "
                f"{state.potential_energy:g} pN nm: no file is written of this state",
                step=state.step,
            )
        left: list[tuple[Reporter, dict[str, Any]]] = []
        first: BaseException | None = None
        coming = sorted(owed, key=lambda pair: pair[0].reports_last)
        while coming:
            reporter, plan = coming.pop(0)
            # A checkpoint that is written now holds which reporters have yet to report.
            self._owed.plans = [*left, *coming]
            if first is not None and reporter.reports_last:
                left.append((reporter, plan))
                continue
            try:
                with self.context.turn.reporting():
                    reporter.report(self, state)
            except BaseException as error:
                left.append((reporter, plan))
                if first is None:
                    first = error
                else:
                    first.add_note(f"and {type(reporter).__name__}: {type(error).__name__}: {error}")
        self._owed.plans = left
        if first is not None:
            raise first

    def _flush(self) -> None:
        """Flush all reporters on the way out with an error, which others are not to hide: what cannot be written now is
        kept."""
        for reporter in self.reporters:
            with suppress(Exception):
                reporter.flush()

    def check(self) -> Worksheet:
        """Make the worksheet of this simulation: diffusion, relaxation times and thermal steps of each kind of bead,
        and the longest stable timestep of each force, where beads start.

        Returns
        -------
        Worksheet
            ``print(simulation.check())`` is a table (:doc:`/parameters`). Remarks at its end were warnings when the
            Context was made; those of overlaps are of where beads are now.
        """
        context = self.context
        return look(context.system, context.integrator, context._store.layout.box, context._overlaps())

    def minimize_energy(
        self, tolerance: float | None = None, max_iterations: int = 10_000, *, progress: bool | None = None
    ) -> Minimization:
        """Move beads to where forces are small, and set no velocities.

        Parameters
        ----------
        tolerance : float, pN, > 0, optional
            Stop when no force component on a movable bead is larger. By default 0.01 kT over a length: the shortest
            edge or link, else the distance to which heat brings two beads of a pair force, else the mean distance of
            beads. Without a temperature: 0.001 of the root mean square force at the start or, with pair forces that
            keep beads apart, what moves the lightest bead by 1e-7 of that length in a timestep.
        max_iterations : int, >= 0
            Stop after so many evaluations of the forces; 0 for no bound.
        progress : bool, optional
            As of `step`.

        Returns
        -------
        Minimization
            The largest force component left, pN, with ``converged``, ``tolerance``, ``iterations``, ``energy_before``
            and ``energy_after``. A `ConvergenceWarning` names the bead with the largest, and the strongest force there.

        Raises
        ------
        SimulationError
            A force that cannot be computed, such as of beads on top of each other.

        Notes
        -----
        Beads may overlap at the start: forces on single beads are cut to 1000 kT over that length until all are parted
        (without a temperature, to a hundred times those on most beads). Beads in one place are first put apart, in
        directions drawn with a fixed seed.

        In-triangle points slide over the mesh as in G. At edges their energy has kinks: a point pushed onto an edge
        from both sides is at rest where no force along the edge exceeds the tolerance, one at a vertex where no edge
        pulls by more, whatever ``state.forces`` says. At a vertex the force in space counts; of energies that are not
        functions of places (`MembraneField`, `PointCurvature`) that of the triangle which holds the point.
        """
        with self.context.turn.taken("minimize_energy", in_reports=False):
            return minimize(self.context, tolerance, max_iterations, progress)

    def save_checkpoint(self, path: Any) -> None:
        """Write all that is needed to resume with the same bits, on any number of threads, here or elsewhere.

        The file holds description, state and progress of reporters: `resume` needs nothing else. Reporters are flushed
        first. It is written under another name and then renamed, so that a crash leaves the old one whole.

        Raises
        ------
        ParameterError
            An argument that documents cannot hold (`medyanpy.serialize`), or a file of a reporter that is refused.
        SimulationError
            Positions or velocities are not finite. After any error the old file is as it was.
        OutputError
            The file, or that of a reporter, cannot be written.
        """
        path = file_path("save_checkpoint: path", path)
        with self.context.turn.taken("save_checkpoint"):
            # Reporters that begin now may switch something on, which is to be in the file.
            owing = [reporter for reporter, _ in self._owed.plans if self._owed.at == self.current_step]
            write_checkpoint(self.context, path, written_down(self, path.parent, owing))

    def load_checkpoint(self, path: Any) -> None:
        """Resume from a checkpoint of the same topology, forces and integrator.

        Raises
        ------
        ParameterError
            A file that is not a checkpoint, is damaged, or belongs to another simulation: the message tells how they
            differ. The simulation is left as it was.
        """
        with self.context.turn.taken("load_checkpoint", in_reports=False):
            load_into(self.context, file_path("load_checkpoint: path", path))

    @classmethod
    @plainly_called
    def resume(
        cls, path: Any, threads: int | None = None, functions: Mapping[str, Callable[..., Any]] | None = None,
        reporters: bool | None = None,
        *,
        start: "Callable[[], Simulation] | None" = None,
    ) -> "Simulation":
        """Make a simulation from a checkpoint alone, and continue with the same bits, also in the files of its
        reporters; with `start`, for scripts that may be killed and are started again, also where there is none yet.

        Parameters
        ----------
        path : path
            With `start` that of the checkpoints that a `CheckpointReporter` of the simulation writes, also one with
            ``{step}``: then the run resumes from the newest.
        threads : int, optional
            As in `Simulation`; need not be what it was.
        functions : dict of str to callable, optional
            The functions of Python forces, by the names of the forces: no file holds code.
        reporters : bool, optional
            None brings back the reporters, if all of their files are in the folder of the checkpoint or below. True
            brings them back from wherever they are, which is for checkpoints of your own; False none.
        start : callable, optional
            Called without arguments where there is no checkpoint; returns a simulation that has its reporters. Their
            first checkpoint is written at once.

        Returns
        -------
        Simulation
            With the reporters that it had; what their files hold beyond the checkpoint is cut off. Its `current_step`
            tells how far the run is: ``simulation.step(total - simulation.current_step)``.

        Raises
        ------
        ParameterError
            A file that is not a checkpoint, is damaged, or has another version. A function that is missing.
            A force or reporter of a package that has not been imported. A file of a reporter that is elsewhere, gone,
            shorter than it was or another, or that another process is writing: then no file is changed. With `start`,
            the same refusals come before the run. So do a path that no reporter writes checkpoints to, and one for
            which another process has called this, whose simulation is not closed.
        OutputError
            A file of a reporter, or the first checkpoint, cannot be written.

        Warns
        -----
        ReporterWarning
            Reporters that cannot be resumed: with streams other than ``sys.stdout`` and ``sys.stderr``, or whose class
            does not tell how (:doc:`/add_a_reporter`; :doc:`/restarts` has a whole script).
        """
        if start is not None:
            return cls._resumed_or_started("Simulation.resume", path, start, threads, functions, reporters)
        checkpoint = read_checkpoint(file_path("resume: path", path))
        simulation = cls(*checkpoint.rebuild(functions), threads)
        checkpoint.restore(simulation.context)
        if reporters is None or reporters:
            try:
                simulation._reporters, owing = bring_back(simulation, checkpoint, bool(reporters))
            except MedyanError as error:
                error.add_note("reporters=False resumes from the checkpoint without its reporters")
                raise
            plans = [(reporter, reporter.describe_next_report(simulation)) for reporter in owing]
            simulation._owed = _Owed(simulation.current_step, plans)
        return simulation

    @classmethod
    def _resumed_or_started(
        cls,
        what: str,
        path: Any,
        start: Callable[[], "Simulation"],
        threads: int | None,
        functions: Mapping[str, Callable[..., Any]] | None,
        reporters: bool | None,
        writer_needed: bool = True,
    ) -> "Simulation":
        """Do what `resume` does with `start`, also for callers that write checkpoints without a reporter."""
        path = new_file(what, path, overwrite=True)
        lock = Lock(what, path)
        with ExitStack() as stack:
            stack.callback(lock.release)
            there = checkpoints_of(path)
            simulation = cls.resume(there[-1], threads, functions, reporters) if there else start()
            if not isinstance(simulation, Simulation):
                raise ParameterError(f"{what}: start must return a Simulation, not {type(simulation).__name__}")
            stack.callback(simulation._close_quietly)
            writers = [r for r in simulation.reporters if isinstance(r, CheckpointReporter) and r.writes(path)]
            if writer_needed and not writers:
                raise ParameterError(
                    f"{what}: no reporter of {'the checkpoint' if there else 'what start returned'} writes checkpoints "
                    f"to {path}; without one a run that is killed starts from there each time: append "
                    f"mp.reporters.CheckpointReporter({str(path)!r}, interval) in start"
                )
            if not there:
                first = writers[0].path_at(simulation.current_step) if writers else path
                simulation.save_checkpoint(first)
                try:
                    # Reporters that would be refused when the script is started again are refused now.
                    calls_of(read_checkpoint(first), bool(reporters))
                except BaseException:
                    first.unlink()
                    raise
            stack.pop_all()
        simulation._free = weakref.finalize(simulation, lock.release)
        return simulation

    def _page(self) -> Page:
        tables, notes = tables_of(self.context)
        return Page("Simulation", said_of(self.context), [*tables, table_of_reporters(self._reporters)], notes)

    def __repr__(self) -> str:
        reporters = ", ".join(type(reporter).__name__ for reporter in self._reporters) or "none"
        return f"Simulation({said_of(self.context)}; {self.system!r}, {self.integrator!r}, reporters: {reporters})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Simulation cannot be pickled or copied: save_checkpoint(path) writes it, and "
            "mp.Simulation.resume(path) makes it again"
        )

    def close(self) -> None:
        """Close all reporters; those that cannot be closed raise when the others are, and can be closed again."""
        with Interrupts(), ExitStack() as stack:
            stack.callback(self._free)
            for reporter in reversed(self.reporters):
                if hasattr(reporter, "close"):
                    stack.callback(reporter.close)

    def _close_quietly(self) -> None:
        """Close on the way out with an error."""
        with suppress(Exception):
            self.close()

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
