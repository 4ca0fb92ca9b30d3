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
from medyanpy._tools.outputs import folder_path, is_lock
from medyanpy._tools.progress import Progress
from medyanpy._tools.threads import threads_by_default
from medyanpy._tools.validation import file_path, whole_number
from medyanpy.errors import ParameterError, WalltimeError, shown
from medyanpy.files.checkpoint import is_checkpoint, read_head
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
    """Outcome of a call of `run`.

    Attributes
    ----------
    finished : bool
        Whether the run is at the step that was asked for. If not, time was up: call again.
    step : int
        Steps taken in all, those of calls before included; the checkpoint is of this step.
    directory : Path
        The folder of the run.
    action : {"started", "resumed", "was done"}
        What the call did: began a run, resumed one, or found that nothing was left to do.
    """

    finished: bool
    step: int
    directory: Path
    action: Literal["started", "resumed", "was done"]


@dataclass(frozen=True)
class FromDocument:
    """Makes simulations from a document, with reporters of the usual names; for `run`, also where other reporters are
    wanted than ``run(directory, document)`` has.

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
    """End of the time before there is anything to save. It is not an Exception, which could be taken for a failure."""


@plainly_called
def run(
    directory: str | os.PathLike[str],
    make: Callable[[Path], Simulation] | str | os.PathLike[str] | None = None,
    *,
    until: int,
    walltime: float | str | None = None,
    threads: int | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    progress: bool | None = None,
) -> RunOutcome:
    """Start a run in a folder of its own, resume it, or find that it is done: the same call, as often as it takes.

    Parameters
    ----------
    directory : path
        The folder; made where it is not there. Its ``run.checkpoint`` is all that a later call goes by. Without `make`
        also a checkpoint, in the place of which that of the last step is saved; for one that a `CheckpointReporter`
        with ``{step}`` has written, in the place that this reporter has for it.
    make : callable, or document, optional
        ``make(directory)`` is called where there is no checkpoint yet, with the folder as an absolute Path, and returns
        a `Simulation` whose reporters write into it: ``TrajectoryReporter(directory / "run.h5", 1000)``. Where none of
        them is a `CheckpointReporter` of ``directory / "run.checkpoint"``, one is saved every minute, or as rarely as
        keeps that to a hundredth of the time. A document (`medyanpy.serialize` of a Simulation, or the file) stands for
        ``FromDocument(document)``. Without it the call resumes a run that has begun.
    until : int, >= 0
        The `Simulation.current_step` at which the run is done. To continue, call with a larger one.
    walltime : float, s, > 0, or str, optional
        As of `Simulation.run_until`. Building counts; saving the last checkpoint does not.
    threads : int, optional
        As of `Simulation`, where `make` does not set it.
    functions : dict of str to callable, optional
        Of Python forces, as of `Simulation.resume`.
    progress : bool, optional
        As of `Simulation.step`.

    Returns
    -------
    RunOutcome

    Raises
    ------
    ParameterError
        A folder that is a file, or whose run is farther than `until`, or is under way in another process, or has lost
        its checkpoint, or without `make` has none. A text that is not the document of a Simulation; a `make` that
        returns something else, or whose reporters write elsewhere, or over what is there.
    WalltimeError
        A walltime too short for a single step; that step is saved.
    SimulationError
        The run cannot continue. The checkpoint is the last that was saved.
    OutputError
        A file cannot be written.

    Notes
    -----
    When the call returns, a checkpoint of the step is saved. SIGTERM ends the time (in the main thread); Ctrl-C saves a
    checkpoint and raises KeyboardInterrupt. A run that is killed at any moments ends with the same files, bit for bit,
    as one that was not: :doc:`/restarts`.

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
    begin = _beginning(make, functions)
    path = _begun(directory) if begin is None else _folder(directory) / CHECKPOINT
    action: Literal["started", "resumed"] = "resumed" if path.exists() else "started"
    if path.exists() and _was_done(path, until):
        return RunOutcome(True, until, path.parent, "was done")
    with _sigterm(deadline) as impatient:

        def start() -> Simulation:
            if begin is None:
                raise ParameterError(f"run: {path} has just gone")
            with impatient(), threads_by_default(threads):
                return _made(begin, path.parent, until)

        try:
            simulation = Simulation._resumed_or_started("run", path, start, threads, functions, None, False)
        except _TimeUpError:
            return RunOutcome(False, 0, path.parent, action)
        with simulation:
            outcome = _go(simulation, path, until, deadline, action, progress)
    if outcome.finished:
        # The checkpoint of a run that is done is its newest file, also when the others have been closed after it.
        now = time.time_ns()
        with suppress(OSError):
            os.utime(path, ns=(now, now))
    return outcome


def _beginning(make: Any, functions: Any) -> Callable[[Path], Any] | None:
    """Return what makes the simulation, if there is anything."""
    if make is None or callable(make):
        begin: Callable[[Path], Any] | None = make
        return begin
    if not isinstance(make, str | os.PathLike):
        raise ParameterError(f"run: make must be a callable, a document or the path of one, not {shown(make)}")
    return FromDocument(make, functions=functions)


def _begun(directory: Any) -> Path:
    """Return the checkpoint of a run that has begun: this file, or that in this folder."""
    path = Path(os.path.abspath(file_path("run: directory", directory)))
    if path.is_dir():
        path /= CHECKPOINT
    if not is_checkpoint(path):
        how = "is not a checkpoint" if path.exists() else "does not exist: give `make` to start a run"
        raise ParameterError(f"run: {path} {how}")
    return path


def _was_done(path: Path, until: int) -> bool:
    """Tell whether nothing is left to do, so that no file is touched: no steps, no reports, and no frames to cut off
    after a run that was to go farther. Files left open by a run that was killed after its last step count as work to
    do.

    Raises
    ------
    ParameterError
        The run is farther.
    """
    head = read_head(path)
    if head["step"] > until:
        raise _past(path, head["step"], until)
    if head["step"] < until or any(isinstance(tree, dict) and tree.get("owes") for tree in head.get("reporters", [])):
        return False
    newest = os.stat(path).st_mtime_ns
    there = [os.path.join(folder, name) for folder, _, names in os.walk(path.parent) for name in names]
    if any(is_lock(name) for name in there):
        # A writer that closes a file removes its lock. Other programs refuse an HDF5 file that was not closed.
        return False
    return all(os.stat(name).st_mtime_ns < newest for name in there if name != str(path))


def _folder(directory: Any) -> Path:
    """Make the folder of a run, and return it."""
    folder = folder_path("run", directory, "the folder of a run")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ParameterError(f"run: the folder {folder} cannot be made: {cause.strerror}") from cause
    path = folder / CHECKPOINT
    if path.exists() and not is_checkpoint(path):
        raise ParameterError(f"run: {path} is not a checkpoint, or has lost its end, and is not replaced by one")
    return folder


def _made(make: Callable[[Path], Any], folder: Path, until: int) -> Simulation:
    """Make a simulation that writes into the folder."""
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
        for reporter in simulation.reporters:
            if isinstance(reporter, Reporter):
                reporter._withdraw()
        raise
    return simulation


def _past(where: Path, step: int, until: int) -> ParameterError:
    return ParameterError(f"run: until = {until} but {where} is at step {step} already")


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
        raise _past(path, before, until)
    # After a checkpoint that was written when not all had reported, the rest is to come.
    whole = before == until and not simulation._owed.plans
    if whole:
        return RunOutcome(True, before, path.parent, "was done" if action == "resumed" else action)
    reporters = [r for r in simulation.reporters if isinstance(r, CheckpointReporter)]
    # The reporter of the checkpoint; with {step} in the name, a checkpoint of another step is elsewhere.
    writer = next((r for r in reporters if _same(r.path_at(before), path)), None)
    by_clock, cost = writer is None, 0.0

    def save() -> None:
        simulation.save_checkpoint(path if writer is None else writer.path_at(simulation.current_step))

    with Progress(until - before, progress) as bar:
        try:
            while True:
                bar.within(Deadline(max(_EVERY, cost / _PART), deadline) if by_clock else deadline)
                simulation._go("run", until, bar)
                step = simulation.current_step
                if step == until or bar.late_for(deadline):
                    break
                begin = time.perf_counter()
                save()
                cost = time.perf_counter() - begin
        except KeyboardInterrupt:
            with suppress(Exception):
                save()
            raise
    save()
    if step == before + 1 < until and deadline.left < 0.0 and not deadline.stopped:
        raise WalltimeError(
            f"run: walltime = {in_words(deadline.seconds)} is shorter than what it takes to build the simulation "
            f"and take one step ({in_words(deadline.elapsed)}); the step is saved: give more time for others"
        )
    return RunOutcome(step == until, step, path.parent, action)


def _same(one: Path, other: Path) -> bool:
    return one.parent.resolve() / one.name == other.parent.resolve() / other.name


@contextmanager
def _sigterm(deadline: Deadline) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Surround a block in which SIGTERM is time that is up. Where it gives a block to be impatient in, that is raised
    at once: there is nothing to save yet, and building may take long."""
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
    # A handler that was not set in Python (None) could not be put back; a process that ignores the signal means it.
    taken = before is not None and before != signal.SIG_IGN
    try:
        if taken:
            signal.signal(signal.SIGTERM, stop)
        yield impatient
    finally:
        if taken:
            signal.signal(signal.SIGTERM, before)
