"""Runs in folders of their own, which may be stopped, killed and called for again until they are done."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medyanpy._tools.deadlines import Deadline, in_words, seconds_of
from medyanpy._tools.names import plainly_called
from medyanpy._tools.progress import Progress
from medyanpy._tools.threads import threads_by_default
from medyanpy._tools.validation import file_path, whole_number
from medyanpy.errors import ParameterError, shown
from medyanpy.files.checkpoint import is_checkpoint
from medyanpy.files.documents import deserialize
from medyanpy.reporters import CheckpointReporter, Reporter, StateDataReporter, TrajectoryReporter
from medyanpy.simulation import Simulation

__all__ = ["CHECKPOINT", "FromDocument", "RunOutcome", "run"]

#: The name of the checkpoint in the folder of a run.
CHECKPOINT = "run.checkpoint"
# Without a CheckpointReporter one is saved so often (s), or as often as takes this part of the time.
_EVERY = 60.0
_PART = 0.01


@dataclass(frozen=True)
class RunOutcome:
    """How a call of `run` ended.

    Attributes
    ----------
    finished : bool
        Whether the run is at the step that was asked for. If not, time was up: call again.
    step : int
        Steps taken in all, those of calls before included; the checkpoint is of this step.
    directory : Path
        The folder of the run.
    action : {"started", "resumed", "was done"}
        What the call did: began a run, went on with one, or found that nothing was left to do.
    """

    finished: bool
    step: int
    directory: Path
    action: Literal["started", "resumed", "was done"]


@dataclass(frozen=True)
class FromDocument:
    """Makes simulations from a document, with reporters of the usual names; for `run`, and for whoever wants others of
    it than ``run(directory, document)`` has.

    Parameters
    ----------
    document : str or path
        Of a Simulation, as `medyanpy.serialize` writes it, or a file that holds one.
    trajectory : int or None
        Steps between frames of ``run.h5``; None for no such file.
    table : int or None
        Steps between rows of ``run.csv``: step, time, energies and temperature, as far as there is one.
    checkpoint : int or None
        Steps between checkpoints, ``run.checkpoint``; None for `run` to save them by the clock.
    functions : dict of str to callable, optional
        As of `medyanpy.deserialize`.

    Examples
    --------
    >>> import tempfile
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> pair = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0)
    >>> text = mp.serialize((mp.System(topology), mp.VerletIntegrator(0.01)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make = mp.runs.FromDocument(text, trajectory=10, table=None)
    ...     outcome = mp.run(folder, make, until=20)
    ...     len(mp.Trajectory(outcome.directory / "run.h5"))
    2
    """

    document: str | os.PathLike[str]
    trajectory: int | None = 1000
    table: int | None = 100
    checkpoint: int | None = None
    functions: Mapping[str, Callable[..., Any]] | None = None

    def __call__(self, directory: Path) -> Simulation:
        made = deserialize(self.document, functions=self.functions)
        if not isinstance(made, tuple):
            raise ParameterError(
                f"run: the document is of a {type(made).__name__}, not of a Simulation: write "
                "medyanpy.serialize((system, integrator))"
            )
        simulation = Simulation(*made)
        if self.trajectory is not None:
            simulation.reporters.append(TrajectoryReporter(directory / "run.h5", self.trajectory))
        if self.table is not None:
            warm = simulation.integrator.kT is not None
            simulation.reporters.append(
                StateDataReporter(
                    directory / "run.csv", self.table, step=True, time=True, potential_energy=True,
                    kinetic_energy=True, total_energy=True, temperature=warm,
                )
            )  # fmt: skip
        if self.checkpoint is not None:
            simulation.reporters.append(CheckpointReporter(directory / CHECKPOINT, self.checkpoint))
        return simulation


class _TimeUpError(BaseException):
    """Time is up before there is anything to save. Not an Exception, which somebody might take for a failure."""


@plainly_called
def run(
    directory: str | os.PathLike[str],
    make: Callable[[Path], Simulation] | str | os.PathLike[str],
    *,
    until: int,
    walltime: float | str | None = None,
    threads: int | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    progress: bool | None = None,
) -> RunOutcome:
    """Start a run in a folder of its own, go on with it, or find that it is done: the same call, as often as it takes.

    Parameters
    ----------
    directory : path
        The folder; made where it is not there. Its ``run.checkpoint`` is all that a later call goes by.
    make : callable, or document
        ``make(directory)`` is called where there is no checkpoint yet, with the folder as an absolute Path, and returns
        a `Simulation` whose reporters write into it: ``TrajectoryReporter(directory / "run.h5", 1000)``. Where none of
        them is a `CheckpointReporter` of ``directory / "run.checkpoint"``, one is saved every minute, or as rarely as
        keeps that to a hundredth of the time. A document (`medyanpy.serialize` of a Simulation, or the file) stands for
        ``FromDocument(document)``.
    until : int, >= 0
        The `Simulation.current_step` at which the run is done. To go on, call with a larger one.
    walltime : float, s, > 0, or str, optional
        How long this call may take, by the clock on the wall, as of `Simulation.run_until`. Building counts; saving
        the last checkpoint does not: leave it a moment.
    threads : int, optional
        As of `Simulation`, where `make` says nothing; any number gives the same bits.
    functions : dict of str to callable, optional
        Of Python forces, as of `Simulation.resume`: no file holds code.
    progress : bool, optional
        As of `Simulation.step`.

    Returns
    -------
    RunOutcome

    Raises
    ------
    ParameterError
        A folder that is a file, or whose run is farther than `until`, or is under way in another process, or has lost
        its checkpoint; what is no document of a Simulation; a `make` that returns something else, or whose reporters
        write elsewhere, or over what is there; a walltime too short for a single step: that one is saved nevertheless.
    SimulationError
        The run cannot go on. The checkpoint is the last that was saved.
    OutputError
        A file cannot be written.

    Notes
    -----
    When the call returns, a checkpoint of the step is saved. SIGTERM, which schedulers send before they kill, is time
    that is up (in the main thread; others get no signals); Ctrl-C saves a checkpoint too, and comes out as
    KeyboardInterrupt. Killed at any moment, as often as you like, a run ends with the files of one that nothing
    happened to, bit for bit, its checkpoint included: :doc:`/restarts`.

    Examples
    --------
    >>> import tempfile
    >>> import medyanpy as mp
    >>> def make(directory):
    ...     topology = mp.Topology()
    ...     topology.add_beads([[0.0, 0, 0]], mass=1.0)
    ...     simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01))
    ...     simulation.reporters.append(mp.reporters.TrajectoryReporter(directory / "run.h5", 100))
    ...     return simulation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for until in (500, 500, 1000):
    ...         outcome = mp.run(folder, make, until=until, walltime="1h30m")
    ...         print(outcome.action, outcome.step)
    started 500
    was done 500
    resumed 1000
    """
    until = whole_number("run: until", until, at_most=2**63 - 1)
    deadline = Deadline(None if walltime is None else seconds_of("run: walltime", walltime))
    if not callable(make) and not isinstance(make, str | os.PathLike):
        raise ParameterError(f"run: make must be a callable, a document or the path of one, not {shown(make)}")
    folder = _folder(directory)
    begin = make if callable(make) else FromDocument(make, functions=functions)
    path = folder / CHECKPOINT
    action: Literal["started", "resumed"] = "resumed" if path.exists() else "started"
    with _sigterm(deadline) as impatient:

        def start() -> Simulation:
            with impatient(), threads_by_default(threads):
                return _made(begin, folder, until)

        try:
            simulation = Simulation._gone_on("run", path, start, threads, functions, None, writer_needed=False)
        except _TimeUpError:
            return RunOutcome(False, 0, folder, action)
        with simulation:
            return _go(simulation, path, until, deadline, action, progress)


def _folder(directory: Any) -> Path:
    """The folder of a run, which is there when this returns."""
    folder = Path(os.path.abspath(file_path("run: directory", directory)))
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"run: {folder} is a file, not the folder of a run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ParameterError(f"run: the folder {folder} cannot be made: {cause.strerror}") from cause
    path = folder / CHECKPOINT
    if path.exists() and not is_checkpoint(path):
        raise ParameterError(f"run: {path} is no checkpoint, or has lost its end, and is not replaced by one")
    return folder


def _made(make: Callable[[Path], Any], folder: Path, until: int) -> Simulation:
    """A simulation that writes into the folder."""
    simulation = make(folder)
    if not isinstance(simulation, Simulation):
        raise ParameterError(f"run: make must return a Simulation, not {shown(simulation)}")
    try:
        for reporter in simulation.reporters:
            for file in reporter._paths() if isinstance(reporter, Reporter) else ():
                if not file.resolve().is_relative_to(folder.resolve()):
                    raise ParameterError(
                        f"run: the {type(reporter).__name__} of make writes {file}, outside of the folder of the run: "
                        "make is called with the folder as its argument, for names such as directory / 'run.h5'"
                    )
        if simulation.current_step > until:
            raise _past(folder, simulation.current_step, until)
    except BaseException:
        simulation._close_quietly()
        raise
    return simulation


def _past(folder: Path, step: int, until: int) -> ParameterError:
    return ParameterError(f"run: until = {until} but the run in {folder} is at step {step} already")


def _go(
    simulation: Simulation,
    path: Path,
    until: int,
    deadline: Deadline,
    action: Literal["started", "resumed"],
    progress: bool | None,
) -> RunOutcome:
    """Take steps, and leave a checkpoint of the last."""
    before = simulation.current_step
    if before > until:
        raise _past(path.parent, before, until)
    # Of a checkpoint that was written when not all had reported, the rest is to come.
    whole = before == until and not simulation._owed.plans
    if whole:
        return RunOutcome(True, before, path.parent, "was done" if action == "resumed" else action)
    by_clock = not any(isinstance(r, CheckpointReporter) and r.writes(path) for r in simulation.reporters)
    cost = 0.0
    with Progress(until - before, progress) as bar:
        try:
            while True:
                bar.within(Deadline(max(_EVERY, cost / _PART), deadline) if by_clock else deadline)
                simulation._go("run", until, bar)
                step = simulation.current_step
                if step == until or bar.late_for(deadline):
                    break
                cost = _save(simulation, path)
        except KeyboardInterrupt:
            with suppress(Exception):
                _save(simulation, path)
            raise
    _save(simulation, path)
    if step == before + 1 < until and deadline.left < 0.0 and not deadline.stopped:
        raise ParameterError(
            f"run: walltime = {in_words(deadline.seconds)} is shorter than what it takes to build the simulation and "
            f"take one step ({in_words(deadline.elapsed)}); the step is saved: give more time for others"
        )
    return RunOutcome(step == until, step, path.parent, action)


def _save(simulation: Simulation, path: Path) -> float:
    """How long it took, s."""
    begin = time.perf_counter()
    simulation.save_checkpoint(path)
    return time.perf_counter() - begin


@contextmanager
def _sigterm(deadline: Deadline) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A block in which SIGTERM is time that is up. Where it gives a block to be impatient in, that is raised at once:
    there is nothing to save yet, and building may take long."""
    raising = False

    def stop(number: int, frame: Any) -> None:
        deadline.stop()
        if raising:
            raise _TimeUpError

    @contextmanager
    def impatient() -> Iterator[None]:
        nonlocal raising
        raising = True
        try:
            if deadline.stopped:
                raise _TimeUpError
            yield
        finally:
            raising = False

    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGTERM)
    # One that was not installed by Python (None) could not be put back; who ignores it means it.
    taken = before is not None and before != signal.SIG_IGN
    try:
        if taken:
            signal.signal(signal.SIGTERM, stop)
        yield impatient
    finally:
        if taken:
            signal.signal(signal.SIGTERM, before)
