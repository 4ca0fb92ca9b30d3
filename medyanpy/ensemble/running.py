"""`run`: replicas that know nothing of each other."""

import inspect
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from medyanpy._tools.deadlines import seconds_of
from medyanpy._tools.names import plainly_called
from medyanpy._tools.outputs import Lock, folder_path, write_atomically
from medyanpy._tools.progress import Bar
from medyanpy._tools.threads import choose_threads
from medyanpy._tools.validation import file_path, whole_number
from medyanpy._tools.validation import seed as check_seed
from medyanpy.ensemble.executors import Died, Workers
from medyanpy.ensemble.replicas import Common, FromDocumentWith, Replica, outcome_of, recorded, work
from medyanpy.ensemble.seeds import seed_of
from medyanpy.ensemble.shipping import Shipped, name_of, source_of, values_of_text
from medyanpy.ensemble.table import FIXED, Table
from medyanpy.errors import MedyanError, ParameterError, shortened, shown
from medyanpy.simulation import Simulation

__all__ = ["maker", "own_folder", "packed", "run", "sets_of_parameters"]

#: The file that marks a folder as an ensemble's.
ENSEMBLE = "ensemble.json"
FORMAT, VERSION = "medyanpy ensemble", 1
# s of work that are sent at once.
_PIECE = 0.2


@plainly_called
def run(
    make: Callable[..., Simulation] | str | os.PathLike[str], *, until: int,
    parameters: Sequence[Mapping[str, Any]] | None = None, n_replicas: int = 1,
    directory: str | os.PathLike[str] | None = None, executor: Any = None, threads: int = 1, seed: int = 0,
    walltime: float | str | None = None, analyse: Callable[..., Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None, progress: bool | None = None
) -> Table:  # fmt: skip
    """Run many simulations at once: some replicas of each set of parameters.

    Parameters
    ----------
    make : callable, or document
        ``make(seed=..., **parameters)`` returns a `Simulation`, whose noise and first velocities are drawn with the
        seed. One that takes ``directory`` is given the folder of the replica, and its reporters write there. Of a
        document (`medyanpy.serialize` of a Simulation, or the file) numbers are changed by names such as
        ``"temperature"``, ``"timestep"`` or ``"MembraneBending.bending_modulus"``, the noise has the seed of the
        replica, and first velocities are drawn at its temperature.
    until : int, >= 0
        The step at which a replica is done.
    parameters : list of dict, optional
        One set each, of what JSON holds: numbers, text, lists, dicts. One set without any, where it is not given.
    n_replicas : int, >= 1
        Of each set of parameters.
    directory : path, optional
        Where each replica has a folder, named by the numbers of its parameters and of itself (``0002-0000``), with
        ``params.json``, checkpoint, outputs, and ``done.json`` or ``error.txt``. Called again, replicas resume, and
        those that are done are not run again; parameters, replicas and steps may have been added. Without a directory
        nothing is written: a replica whose worker ends begins again.
    executor : Executor, Client of dask.distributed, int or str, optional
        What runs them, with the same bits: any `concurrent.futures.Executor`, a Client or the address of its
        scheduler, or a number of processes. By default as many new (spawned) processes as there are processors. What is
        given stays open.
    threads : int, >= 1
        Of each replica.
    seed : int, 0 to 2^64 - 1
        That of each replica is made of this and its place, by `seed_of`.
    walltime : float, s, > 0, or str, optional
        How long all of it may take, such as ``"1h30m"``. Replicas that are under way then save a checkpoint.
    analyse : callable, optional
        ``analyse(simulation)`` or ``analyse(simulation, directory)``, called in the worker when a replica is done,
        returns a number, text or an array, or a dict of these, a column for each. After its text has changed, replicas
        that are done are analysed again, from their last checkpoint.
    functions : dict of str to callable, optional
        Of Python forces, as of `Simulation.resume`.
    progress : bool, optional
        Show a bar of replicas; where not given, in a terminal or notebook.

    Returns
    -------
    Table

    Raises
    ------
    ParameterError
        Parameters that are not dicts of what JSON holds, or that `make` does not take; two sets that are the same. A
        folder that holds something else, or another ensemble, or one that is run by another process; a function that
        cannot be sent to other processes. Nothing has been run.
    ExecutorError
        Processes that do not start; an executor that was given, and ends or is shut down.
    ImportError
        The address of a scheduler without Dask: ``pip install 'medyanpy[dask]'``.
    OutputError
        The directory cannot be written to.

    Notes
    -----
    A replica that raises is a row with its error; the others continue, and it is tried again when all is called again.
    A replica whose worker ended is resumed by another worker, with the same bits as if nothing had happened.

    Processes import the script that starts them: what it does belongs under ``if __name__ == "__main__":``.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import medyanpy as mp
    >>> def make(seed, stiffness):
    ...     topology = mp.Topology()
    ...     pair = topology.add_beads([[0.0, 0, 0], [1.5, 0, 0]], mass=1.0, friction=1.0)
    ...     system = mp.System(topology)
    ...     system.add_force(mp.forces.HarmonicBonds([pair.beads], stiffness=stiffness, length=1.0))
    ...     return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=seed))
    >>> table = mp.ensemble.run(
    ...     make, parameters=[{"stiffness": 1.0}, {"stiffness": 2.0}], n_replicas=2, until=50,
    ...     executor=ThreadPoolExecutor(2), analyse=lambda s: {"time": s.context.time},
    ... )
    >>> table[["stiffness", "replica", "steps", "status", "time"]]
    stiffness  replica  steps  status  time
    1          0        50     done    0.5
    1          1        50     done    0.5
    2          0        50     done    0.5
    2          1        50     done    0.5
    """
    what = "ensemble.run"
    until = whole_number(f"{what}: until", until, at_least=0, at_most=2**63 - 1)
    n_replicas = whole_number(f"{what}: n_replicas", n_replicas, at_least=1)
    seed = check_seed(f"{what}: seed", seed)
    threads = choose_threads(whole_number(f"{what}: threads", threads, at_least=1))
    deadline = None if walltime is None else time.time() + seconds_of(f"{what}: walltime", walltime)
    sets = [{}] if parameters is None else sets_of_parameters(what, parameters)
    if analyse is not None and not callable(analyse):
        raise ParameterError(f"{what}: analyse must be a function, not {shown(analyse)}")
    making, name = maker(what, make, functions, sets)
    with ExitStack() as stack:
        folder = None
        if directory is not None:
            folder = own_folder(what, directory, {"seed": seed, "make": name}, stack)
        replicas = [
            Replica((i, j), numbers, seed_of(seed, i, j), None if folder is None else folder / f"{i:04d}-{j:04d}")
            for i, numbers in enumerate(sets)
            for j in range(n_replicas)
        ]
        shipped = {"make": making, "analyse": analyse, "functions": functions}
        common = Common(
            **{of: Shipped(f"{what}: {of}", function) for of, function in shipped.items()},
            key=source_of(analyse), until=until, threads=threads, deadline=deadline,
        )  # fmt: skip
        records = [recorded(common, replica) for replica in replicas]
        waiting = [i for i, record in enumerate(records) if record is None]
        bar = stack.enter_context(Bar(len(replicas), "replica", progress))
        bar.update(len(replicas) - len(waiting))
        if waiting:
            workers = Workers(what, executor, threads, len(waiting))
            packed(common, workers)
            places = {replicas[i].index: i for i in waiting}
            pieces = _Pieces([replicas[i] for i in waiting], None if folder else workers.window)
            with workers:
                for replica, outcome in workers.each(work, common, pieces):
                    record = outcome_of("failed", error=f"Died: {outcome}") if isinstance(outcome, Died) else outcome
                    records[places[replica.index]] = record
                    pieces.took(record["seconds"])
                    bar.update(1)
        return _table(sets, replicas, [record for record in records if record is not None])


class _Pieces:
    """Replicas, some at a time where each is short: sending one costs half a millisecond. One at a time without a
    window."""

    def __init__(self, replicas: list[Replica], window: int | None) -> None:
        self._replicas, self._window = replicas, window
        self._seconds: float | None = None

    def took(self, seconds: float) -> None:
        """Record the time that one took; the last few count."""
        self._seconds = seconds if self._seconds is None else 0.9 * self._seconds + 0.1 * seconds

    def __iter__(self) -> Iterator[list[Replica]]:
        at = 0
        while at < len(self._replicas):
            size = 1
            if self._window is not None and self._seconds is not None:
                # No worker is to wait for the last of others.
                most = (len(self._replicas) - at) // (2 * self._window)
                size = max(1, min(most, int(_PIECE / max(self._seconds, 1e-6))))
            yield self._replicas[at : at + size]
            at += size


def packed(common: Common, workers: Workers) -> None:
    """Prepare functions to be sent to workers, where these are other processes."""
    if not workers.in_threads:
        for function in (common.make, common.analyse, common.functions):
            function.pack(workers.import_main)


def sets_of_parameters(what: str, parameters: Any, called: str = "parameters") -> list[dict[str, Any]]:
    """Return sets of parameters, checked, as they come back from a file."""
    if isinstance(parameters, Mapping) or not hasattr(parameters, "__iter__") or isinstance(parameters, str):
        raise ParameterError(f"{what}: {called} must be a list of dicts, not {shown(parameters)}")
    sets: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    for i, numbers in enumerate(parameters):
        if not isinstance(numbers, Mapping) or not all(isinstance(name, str) for name in numbers):
            raise ParameterError(f"{what}: {called}[{i}] must be a dict with names as keys, not {shown(numbers)}")
        taken = next((name for name in numbers if name in (*FIXED, "directory")), None)
        if taken is not None:
            raise ParameterError(
                f"{what}: {called}[{i}] has the name {taken!r}, which is not for parameters: a replica has its own"
            )
        try:
            text = json.dumps(dict(numbers), allow_nan=False, sort_keys=True, default=_of_numpy, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError) as cause:
            raise ParameterError(
                f"{what}: {called}[{i}] = {shown(dict(numbers))} is not of numbers, text, lists and dicts, which "
                f"JSON holds: {cause}"
            ) from cause
        if text in places:
            repeated = ": n_replicas= repeats them" if called == "parameters" else ""
            raise ParameterError(f"{what}: {called}[{i}] is the same as {called}[{places[text]}]{repeated}")
        places[text] = i
        read = json.loads(text)
        sets.append({name: read[name] for name in numbers})
    if not sets:
        raise ParameterError(f"{what}: {called} has no entry")
    return sets


def _of_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not; of an array take .tolist()")


def maker(what: str, make: Any, functions: Any, sets: list[dict[str, Any]]) -> tuple[Any, str]:
    """Return the function that makes simulations, and its name; refuse one that does not take all sets of
    parameters."""
    if callable(make):
        try:
            signature = inspect.signature(make)
        except ValueError as cause:
            raise ParameterError(f"{what}: make must take seed and parameters, not be {shown(make)}") from cause
        takes = signature.parameters
        given = {"seed": 0, **({"directory": None} if "directory" in takes else {})}
        for i, numbers in enumerate(sets):
            try:
                signature.bind(**given, **numbers)
            except TypeError as cause:
                raise ParameterError(
                    f"{what}: make{signature} cannot be called with seed= and parameters[{i}] = {shown(numbers)}: "
                    f"{cause}"
                ) from cause
        return make, name_of(make)
    if not isinstance(make, str | os.PathLike):
        raise ParameterError(
            f"{what}: make must be a function of seed and parameters that returns a Simulation, or a document, not "
            f"{shown(make)}"
        )
    text = os.fspath(make)
    if not text.lstrip().startswith("{"):
        path = file_path(f"{what}: make", make)
        if not path.is_file():
            raise ParameterError(f"{what}: the document {path} does not exist")
        text = path.read_text(encoding="utf-8")
    made = FromDocumentWith(text, functions)
    for i, numbers in enumerate(sets):
        try:
            made.check(numbers)
        except MedyanError as cause:
            raise ParameterError(f"{what}: parameters[{i}] = {shown(numbers)}: {cause}") from cause
    import hashlib

    return made, f"document {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def own_folder(what: str, directory: Any, said: dict[str, Any], stack: ExitStack) -> Path:
    """Make and lock the folder of an ensemble, until the stack is left; refuse any other folder."""
    folder = folder_path(what, directory)
    place = folder / ENSEMBLE
    said = {"format": FORMAT, "version": VERSION, "kind": what, **said}
    if folder.exists() and not place.exists() and any(not name.startswith(".") for name in os.listdir(folder)):
        raise ParameterError(f"{what}: {folder} exists and is not an ensemble's: give an empty folder, or a new one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ParameterError(f"{what}: the folder {folder} cannot be made: {cause.strerror}") from cause
    stack.callback(Lock(what, place).release)
    if not place.exists():
        text = json.dumps(said, indent=1)
        write_atomically("ensemble", place, lambda file: file.write(text.encode()), links=False)
        return folder
    try:
        there = json.loads(place.read_text(encoding="utf-8"))
        differing = [name for name, value in said.items() if there.get(name) != value]
    except (OSError, ValueError, AttributeError, RecursionError) as cause:
        raise ParameterError(f"{what}: {place} cannot be read: {shortened(str(cause))}") from cause
    if differing:
        name = differing[0]
        raise ParameterError(
            f"{what}: {folder} is of another ensemble, whose {name} is {there.get(name)!r}, not {said[name]!r}: give "
            "another directory"
        )
    return folder


def _table(sets: list[dict[str, Any]], replicas: list[Replica], records: list[dict[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for numbers in sets for name in numbers))
    results: list[str] = []
    rows = []
    for replica, record in zip(replicas, records, strict=True):
        row = {**replica.parameters, "replica": replica.index[1], "seed": replica.seed}
        row |= {name: record[name] for name in ("steps", "status", "error")}
        if record["result"] is not None:
            result = values_of_text(record["result"])
            result = result if isinstance(result, dict) else {"result": result}
            taken = [name for name in result if name in names or name in FIXED]
            if taken:
                row.update(status="failed", error=f"ParameterError: analyse returned {taken[0]!r}, which is a column")
            row.update((name, value) for name, value in result.items() if name not in taken)
            results.extend(name for name in result if name not in taken and name not in results)
        rows.append(row)
    folders = [replica.folder for replica in replicas if replica.folder is not None]
    return Table([*names, *FIXED, *results], rows, folders or None, [record["traceback"] for record in records])
