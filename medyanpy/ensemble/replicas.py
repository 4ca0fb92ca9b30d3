"""One replica of an ensemble: how it is made, run, looked at, and found again. All of it happens in a worker."""

import functools
import inspect
import json
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medyanpy._tools.described import made_anew
from medyanpy._tools.outputs import Lock, remove_left_over, write_atomically
from medyanpy._tools.threads import threads_by_default
from medyanpy.ensemble.shipping import text_of_values, values_of_text
from medyanpy.errors import ParameterError, shortened, shown
from medyanpy.files.checkpoint import read_head
from medyanpy.files.documents import deserialize, serialize
from medyanpy.integrators import SplittingIntegrator
from medyanpy.runs import CHECKPOINT, FromDocument
from medyanpy.runs import run as run_in_folder
from medyanpy.simulation import Simulation

__all__ = ["Common", "FromDocumentWith", "Replica", "apply", "begun", "outcome_of", "recorded", "wait_for", "work"]

#: In the folder of a replica.
PARAMETERS, DONE, ERROR = "params.json", "done.json", "error.txt"
# A process that was killed, or whose client was, may hold a folder for so long (s).
_PATIENCE = 30.0


class _DamagedError(ParameterError):
    """Error of a folder of a replica, or a file in it, that cannot be resumed from; other replicas are run."""


@dataclass(frozen=True)
class Replica:
    """One run: its place in the ensemble, and all that it depends on."""

    index: tuple[int, int]
    parameters: dict[str, Any]
    seed: int
    folder: Path | None


@dataclass(frozen=True)
class Common:
    """Data that all replicas have in common: `make`, `analyse` and `functions` as `shipping.Shipped`, the `key` of the
    analysis, and a deadline as a time of day (s since 1970), which machines agree on well enough."""

    make: Any
    analyse: Any
    functions: Any
    key: str | None
    until: int
    threads: int
    deadline: float | None

    @property
    def left(self) -> float | None:
        """Time that is left, s."""
        return None if self.deadline is None else self.deadline - time.time()


class FromDocumentWith:
    """Makes simulations from the text of a document, with another seed and with numbers changed."""

    def __init__(self, text: str, functions: Any = None) -> None:
        self.text = text
        self.functions = functions

    def __call__(self, seed: int, directory: Path | None = None, **parameters: Any) -> Simulation:
        system, integrator = self.read()
        arguments = integrator._arguments_now()
        if "seed" in arguments:
            integrator = made_anew(type(integrator), {**arguments, "seed": seed}, integrator._rest_now())
        apply(system, integrator, parameters)
        if directory is None:
            simulation = Simulation(system, integrator)
        else:
            simulation = FromDocument(serialize((system, integrator)), functions=self.functions)(directory)
        if integrator.kT is not None and not integrator.overdamped:
            simulation.context.set_velocities_to_temperature(kT=integrator.kT, seed=seed)
        return simulation

    def read(self) -> Any:
        made = deserialize(self.text, functions=self.functions)
        if not isinstance(made, tuple):
            raise ParameterError(
                f"the document is of a {type(made).__name__}, not of a Simulation: write "
                "medyanpy.serialize((system, integrator))"
            )
        return made

    def check(self, parameters: dict[str, Any]) -> None:
        """Refuse what cannot be set."""
        system, integrator = self.read()
        apply(system, integrator, parameters)


def apply(system: Any, integrator: SplittingIntegrator, numbers: dict[str, Any]) -> None:
    """Set numbers by name: ``"timestep"``, ``"temperature"`` and ``"kT"``, and ``"FORCE.NUMBER"`` of forces."""
    of_integrator = {name: value for name, value in numbers.items() if "." not in name}
    unknown = [name for name in of_integrator if name not in integrator.changeable]
    if unknown:
        raise ParameterError(
            f"{unknown[0]!r} is not a number that can be set: {', '.join(integrator.changeable)} are, and "
            "'FORCE.NUMBER', such as 'MembraneBending.bending_modulus'"
        )
    if of_integrator:
        integrator.set(**of_integrator)
    by_force: dict[str, dict[str, Any]] = {}
    for name, value in numbers.items():
        force, dot, number = name.rpartition(".")
        if dot:
            by_force.setdefault(force, {})[number] = value
    for force, values in by_force.items():
        system[force].set(**values)


def _parameters_of(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a function; none where its signature is not known."""
    try:
        return _asked(function)
    except TypeError:  # It has no hash.
        return _asked.__wrapped__(function)


@functools.lru_cache(maxsize=16)
def _asked(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except ValueError:
        return ()


def begun(make: Any, replica: Replica, folder: Path | None) -> Simulation:
    """Return the simulation of a replica at its start."""
    given = {"seed": replica.seed, "directory": folder}
    if not isinstance(make, FromDocumentWith):
        taken = _parameters_of(make)
        everything = any(p.kind is p.VAR_KEYWORD for p in taken)
        given = {name: value for name, value in given.items() if everything or any(p.name == name for p in taken)}
    simulation = make(**given, **replica.parameters)
    if not isinstance(simulation, Simulation):
        raise ParameterError(f"make must return a Simulation, not {shown(simulation)}")
    return simulation


# The work -------------------------------------------------------------------------------------------------------------


def work(common: Common, replicas: list[Replica]) -> list[dict[str, Any]]:
    """Run replicas one after the other, and report `outcome` of each; what a replica raises is its own."""
    return [_one(common, replica) for replica in replicas]


def outcome_of(status: str, steps: int | None = None, error: str | None = None, result: Any = None) -> dict[str, Any]:
    """Return the outcome of a replica."""
    return {"status": status, "steps": steps, "error": error, "traceback": None, "result": result, "seconds": 0.0}


def _one(common: Common, replica: Replica) -> dict[str, Any]:
    begin = time.perf_counter()
    out = outcome_of("failed")
    try:
        with threads_by_default(common.threads):
            (_in_memory if replica.folder is None else _in_folder)(common, replica, out)
    except (Exception, SystemExit) as error:
        out.update(status="failed", error=f"{type(error).__name__}: {error}", traceback=traceback.format_exc())
        if replica.folder is not None and not isinstance(error, _DamagedError):
            with suppress(OSError):
                replica.folder.mkdir(parents=True, exist_ok=True)
                text = out["traceback"].encode(errors="replace")
                write_atomically("ensemble", replica.folder / ERROR, lambda file: file.write(text), links=False)
    out["seconds"] = time.perf_counter() - begin
    return out


def _in_memory(common: Common, replica: Replica, out: dict[str, Any]) -> None:
    left = common.left
    if left is not None and left <= 0.0:
        out.update(status="unfinished", steps=0)
        return
    with begun(common.make.get(), replica, None) as simulation:
        out["steps"] = simulation.current_step
        try:
            finished = simulation.run_until(common.until, walltime=left, progress=False)
        finally:
            out["steps"] = simulation.current_step
        if finished:
            out["result"] = _analysed(common.analyse.get(), simulation, None)
    out["status"] = "done" if finished else "unfinished"


def _in_folder(common: Common, replica: Replica, out: dict[str, Any]) -> None:
    folder = replica.folder
    assert folder is not None
    left = common.left
    check_own(folder)
    folder.mkdir(parents=True, exist_ok=True)
    wait_for(folder)
    if not (folder / PARAMETERS).exists():
        _write(folder / PARAMETERS, described(replica))
    functions = common.functions.get()
    if left is not None and left <= 0.0:
        out.update(status="unfinished", steps=_steps_of(folder))
        return
    try:
        with _passing_on_sigterm():
            outcome = run_in_folder(
                folder,
                lambda directory: begun(common.make.get(), replica, directory),
                until=common.until, walltime=left, threads=common.threads, functions=functions, progress=False,
            )  # fmt: skip
    except BaseException:
        out["steps"] = _steps_of(folder)
        raise
    out["steps"] = outcome.step
    if not outcome.finished:
        out["status"] = "unfinished"
        return
    analyse = common.analyse.get()
    if analyse is not None:
        with Simulation.resume(folder / CHECKPOINT, common.threads, functions, False) as simulation:
            out["result"] = _analysed(analyse, simulation, folder)
    out["status"] = "done"
    _write(folder / DONE, {"steps": out["steps"], "analyse": common.key, "result": out["result"]})
    (folder / ERROR).unlink(missing_ok=True)


@contextmanager
def _passing_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end a run in its folder, with a checkpoint; afterwards it is for the worker, which it is to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    # Every signal with a Python handler, wherever it was set, writes its number.
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    came = b""
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        with suppress(BlockingIOError):
            came = os.read(read, 4096)
        os.close(read)
        os.close(write)
        if signal.SIGTERM in came:
            signal.raise_signal(signal.SIGTERM)


def _steps_of(folder: Path) -> int | None:
    """Return the step that a replica has reached; None where that is not known."""
    try:
        return int(read_head(folder / CHECKPOINT)["step"])
    except Exception:
        return None


def wait_for(folder: Path) -> None:
    """Give a worker that is about to end, as its parent has, the time to let go of a folder."""
    until = time.perf_counter() + _PATIENCE
    while True:
        try:
            Lock("ensemble", folder / CHECKPOINT).release()
            return
        except ParameterError:
            if time.perf_counter() > until:
                raise
            time.sleep(0.05)


def _analysed(analyse: Callable[..., Any] | None, simulation: Simulation, folder: Path | None) -> str | None:
    if analyse is None:
        return None
    # The folder is given where a second argument must be, or is called so.
    by_place = [p for p in _parameters_of(analyse) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    two = len(by_place) > 1 and (by_place[1].default is inspect.Parameter.empty or by_place[1].name == "directory")
    return text_of_values("analyse returned", analyse(*((simulation, folder) if two else (simulation,))))


# Files that are there -----------------------------------------------------------------------------------------------


def described(replica: Replica) -> dict[str, Any]:
    """Return the content of `PARAMETERS`."""
    return {"parameters": replica.parameters, "replica": replica.index[1], "seed": replica.seed}


def check_own(folder: Path) -> None:
    """Refuse a link in place of a folder of an ensemble: what is written there would go elsewhere."""
    if folder.is_symlink():
        raise _DamagedError(f"ensemble.run: {folder} is a link, which is not followed out of the ensemble; remove it")


def recorded(common: Common, replica: Replica) -> dict[str, Any] | None:
    """Return the outcome of a replica that is done already, at the step asked for and by the same analysis; one whose
    files are damaged has failed. Refuse a folder of another replica."""
    try:
        return _recorded(common, replica)
    except _DamagedError as error:
        return outcome_of("failed", error=f"ParameterError: {error}")


def _recorded(common: Common, replica: Replica) -> dict[str, Any] | None:
    folder = replica.folder
    if folder is None:
        return None
    check_own(folder)
    if not folder.exists():
        return None
    said = _read(folder / PARAMETERS)
    if said is not None and said != described(replica):
        differing = next((name for name, value in described(replica).items() if said.get(name) != value), None)
        if differing is None:
            raise _damaged(folder / PARAMETERS, f"it says {shown(said)}")
        raise ParameterError(
            f"ensemble.run: {folder} is of another replica, whose {differing} is {said.get(differing)!r}, not "
            f"{described(replica)[differing]!r}: keep the order of parameters and append new ones, or give another "
            "directory"
        )
    done = _read(folder / DONE)
    if done is None:
        return None
    if not {"steps", "analyse", "result"} <= done.keys():
        raise _damaged(folder / DONE, f"it says {shown(done)}")
    if done["steps"] != common.until or done["analyse"] != common.key:
        return None
    if done["result"] is not None:
        try:
            values_of_text(done["result"])
        except Exception as cause:
            raise _damaged(folder / DONE, f"its result is {shown(done['result'])}") from cause
    return outcome_of("done", done["steps"], result=done["result"])


def _write(path: Path, tree: Any) -> None:
    text = json.dumps(tree, indent=1)
    write_atomically("ensemble", path, lambda file: file.write(text.encode()), links=False)
    # Afterwards: a process that was killed while it wrote the same may have ended since this worker began.
    remove_left_over(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as cause:
        raise _damaged(path, shortened(str(cause))) from cause
    if not isinstance(tree, dict):
        raise _damaged(path, f"it says {shown(tree)}")
    return tree


def _damaged(path: Path, why: str) -> _DamagedError:
    return _DamagedError(f"ensemble.run: {path} cannot be read, or is damaged: {why}; remove it, or {path.parent}")
