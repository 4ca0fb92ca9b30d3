"""Replica exchange: walkers that swap temperatures, or numbers of forces, by Metropolis' rule."""

import json
import math
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from medyanpy._tools.deadlines import seconds_of
from medyanpy._tools.names import plainly_called
from medyanpy._tools.outputs import writing
from medyanpy._tools.progress import Bar
from medyanpy._tools.threads import choose_threads, threads_by_default
from medyanpy._tools.validation import seed as check_seed
from medyanpy._tools.validation import thermal_energy, whole_number
from medyanpy.ensemble.executors import Died, Workers
from medyanpy.ensemble.replicas import Common, Replica, apply, begun, check_own, wait_for
from medyanpy.ensemble.running import maker, own_folder, packed, sets_of_parameters
from medyanpy.ensemble.seeds import EXCHANGES, drawn, seed_of
from medyanpy.ensemble.shipping import Shipped, text_of_values, values_of_text
from medyanpy.ensemble.table import Table
from medyanpy.errors import ExecutorError, ParameterError, SimulationError
from medyanpy.forces import Force, PythonForce
from medyanpy.kicks import Explicit
from medyanpy.runs import CHECKPOINT
from medyanpy.simulation import Simulation
from medyanpy.state import State

__all__ = ["Exchanges", "replica_exchange"]

HISTORY = "history.jsonl"
_WHAT = "replica_exchange"


@dataclass(frozen=True)
class Exchanges:
    """Result of a replica exchange, up to now.

    With K states (entries of the ladder) and as many walkers, and n exchanges done:

    Attributes
    ----------
    ladder : list of dict
        The numbers of each state.
    done : bool
        Whether all exchanges are done; if not, time was up: call again.
    states : (n + 1, K) int array
        The state of each walker, before each exchange and after the last.
    energies : (n, K) float array, pN nm
        The potential energy in each state, with its numbers, at each exchange (before it).
    attempted, accepted : (K - 1,) int arrays
        How often states k and k + 1 were to be swapped, and were.
    observed : list of list
        What ``observe`` returned at each exchange, by state; empty without it.
    directories : list of Path, or None
        The folders of the walkers.
    """

    ladder: list[dict[str, Any]]
    done: bool
    states: np.ndarray
    energies: np.ndarray
    attempted: np.ndarray
    accepted: np.ndarray
    observed: list[list[Any]]
    directories: list[Path] | None

    @property
    def walkers(self) -> np.ndarray:
        """Walker in each state, (n + 1, K) int, before each exchange and after the last."""
        return np.argsort(self.states, axis=1)

    @property
    def acceptance(self) -> np.ndarray:
        """Part, (K - 1,) float, of the swaps of states k and k + 1 that was accepted; nan before the first."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.accepted / self.attempted)

    @property
    def round_trips(self) -> np.ndarray:
        """Number of times that each walker has gone from the first state to the last and back, (K,) int."""
        last = self.states.shape[1] - 1
        out = np.zeros(last + 1, int)
        for walker, path in enumerate(self.states.T):
            ends = path[(path == 0) | (path == last)]
            # The walk is to and fro when repetitions are taken out.
            ends = ends[np.flatnonzero(np.diff(ends, prepend=-1))]
            first = int(len(ends) > 0 and ends[0] != 0)
            out[walker] = max(0, len(ends) - first - 1) // 2
        return out

    @property
    def table(self) -> Table:
        """Table with a row for each state: its numbers, mean energy, and the acceptance of swaps with the next."""
        rows = [
            {
                "state": k, **numbers,
                "mean energy": float(self.energies[:, k].mean()) if len(self.energies) else None,
                "acceptance": float(self.acceptance[k]) if k < len(self.acceptance) else None,
            }
            for k, numbers in enumerate(self.ladder)
        ]  # fmt: skip
        return Table(["state", *self.ladder[0], "mean energy", "acceptance"], rows)

    def __repr__(self) -> str:
        n = len(self.energies)
        return f"{n} exchange{'s' * (n != 1)}{', not done' * (not self.done)}\n{self.table!r}"

    def _repr_html_(self) -> str | None:
        return self.table._repr_html_()


@plainly_called
def replica_exchange(
    make: Callable[..., Simulation] | str | os.PathLike[str], *, ladder: Sequence[Mapping[str, Any]], every: int,
    n_exchanges: int, directory: str | os.PathLike[str] | None = None, executor: Any = None, threads: int = 1,
    seed: int = 0, walltime: float | str | None = None, observe: Callable[..., Any] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None, progress: bool | None = None
) -> Exchanges:  # fmt: skip
    """Run a walker in each of several states, and let neighbours swap their states now and then.

    Parameters
    ----------
    make : callable, or document
        ``make(seed=...)``, as described at `run`: it is called once for each walker.
    ladder : list of dict
        The states, two or more, all with the same names: ``{"temperature": 310.0}`` (or ``"kT"``), and numbers of
        forces and jumps, ``{"springs.stiffness": 0.2}``, ``{"BoxArea.tension": 0.1}``; also both together, as for a
        `FixmanPotential`, whose kT is a number. Walker k starts in state k.
    every : int, >= 1
        Steps between exchanges.
    n_exchanges : int, >= 0
        How many in all, those of calls before included.
    directory : path, optional
        Where each walker has a folder (``0003``) with its checkpoint and outputs, and ``history.jsonl`` a line for each
        exchange. Called again, it resumes, whichever process was killed. Without it nothing is written.
    executor, threads, seed, walltime, functions, progress
        As of `run`. Results are the same bits whatever the executor.
    observe : callable, optional
        ``observe(simulation)``, called in the worker before each exchange, returns numbers, text or arrays.

    Returns
    -------
    Exchanges

    Raises
    ------
    ParameterError
        A ladder of fewer than two states, or of different or unknown names. A word without thermostat, a linearly
        implicit kick, or jumps that are driven or have no `Jump.log_weight`: there is no known distribution to exchange
        in. Folders and functions as of `run`.
    SimulationError
        A walker that cannot continue: it is named, and the others wait.
    ExecutorError
        As of `run`; or a walker whose worker ends again and again.

    Notes
    -----
    At exchange c the states (0, 1), (2, 3), ... or (1, 2), (3, 4), ... are paired, by turns. Walkers a in i and b in j
    swap states with probability min(1, exp(-Δ)), :math:`\\Delta = u_i(b) - u_i(a) + u_j(a) - u_j(b)`, where
    :math:`u_i = \\beta_i U_i - \\ln W_i`: the potential energy by the numbers of state i, and the weight that jumps
    give to boxes, bound links and numbers of beads. A walker that changes temperature has all its velocities multiplied
    by √(T'/T) (`Context.scale_velocities`), so that kinetic energies drop out; that and the change of numbers is
    protocol work. The numbers that decide are drawn by seed, exchange and pair alone. What is exact, and the rates to
    expect: :doc:`/theory/replica_exchange`.

    Source: Sugita & Okamoto, Chem. Phys. Lett. 314, 141 (1999), for temperatures; Fukunishi, Watanabe & Takada,
    J. Chem. Phys. 116, 9058 (2002), for numbers of the energy.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import medyanpy as mp
    >>> def make(seed):
    ...     topology = mp.Topology()
    ...     beads = topology.add_beads([[0.0, 0, 0]] * 5, mass=1.0, friction=2.0)
    ...     system = mp.System(topology)
    ...     system.add_force(mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0]))
    ...     return mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.2, kT=1.0, seed=seed))
    >>> ladder = [{"kT": 1.0}, {"kT": 1.3}, {"kT": 1.7}]
    >>> swaps = mp.ensemble.replica_exchange(
    ...     make, ladder=ladder, every=20, n_exchanges=50, executor=ThreadPoolExecutor(1)
    ... )
    >>> swaps.states.shape
    (51, 3)
    >>> bool((swaps.acceptance > 0.2).all())
    True
    """
    every = whole_number(f"{_WHAT}: every", every, at_least=1)
    n_exchanges = whole_number(f"{_WHAT}: n_exchanges", n_exchanges, at_least=0, at_most=(2**63 - 1) // every)
    seed = check_seed(f"{_WHAT}: seed", seed)
    threads = choose_threads(whole_number(f"{_WHAT}: threads", threads, at_least=1))
    deadline = None if walltime is None else time.time() + seconds_of(f"{_WHAT}: walltime", walltime)
    states = sets_of_parameters(_WHAT, ladder, "ladder")
    if len(states) < 2:
        raise ParameterError(f"{_WHAT}: ladder has one state; two or more can be exchanged")
    for k, numbers in enumerate(states):
        if set(numbers) != set(states[0]):
            raise ParameterError(
                f"{_WHAT}: ladder[{k}] has the names {', '.join(numbers)}, ladder[0] {', '.join(states[0])}: a state "
                "sets all numbers that another one does"
            )
        if "timestep" in numbers:
            raise ParameterError(f"{_WHAT}: ladder[{k}] sets a timestep, which is not part of a distribution")
    if observe is not None and not callable(observe):
        raise ParameterError(f"{_WHAT}: observe must be a function, not {observe!r}")
    making, name = maker(_WHAT, make, functions, [{}])
    with ExitStack() as stack:
        folder = None
        if directory is not None:
            said = {"seed": seed, "make": name, "ladder": states, "every": every}
            folder = own_folder(_WHAT, directory, said, stack)
        shipped = {"make": making, "analyse": observe, "functions": functions}
        common = Common(
            **{of: Shipped(f"{_WHAT}: {of}", function) for of, function in shipped.items()},
            key=None, until=every, threads=threads, deadline=deadline,
        )  # fmt: skip
        walkers = [
            Replica((0, w), {}, seed_of(seed, 0, w), None if folder is None else folder / f"{w:04d}")
            for w in range(len(states))
        ]
        history = _History(folder, len(states), stack)
        bar = stack.enter_context(Bar(n_exchanges, "exchange", progress))
        bar.update(min(n_exchanges, len(history.lines)))
        if len(history.lines) < n_exchanges:
            workers = Workers(_WHAT, executor, threads, len(walkers))
            packed(common, workers)
            held: list[Any] = [None] * len(walkers)
            stack.callback(_close, held)
            with workers:
                while len(history.lines) < n_exchanges and (deadline is None or time.time() < deadline):
                    line = _exchange(workers, common, walkers, held, states, history, seed)
                    history.append(line)
                    bar.update(1)
        folders = None if folder is None else [walker.folder for walker in walkers if walker.folder is not None]
        return history.result(states, n_exchanges, folders)


def _close(held: list[Any]) -> None:
    """Close simulations that threads have kept."""
    for simulation in held:
        if isinstance(simulation, Simulation):
            simulation._close_quietly()


def _exchange(
    workers: Workers, common: Common, walkers: list[Replica], held: list[Any], states: list[dict[str, Any]],
    history: "_History", seed: int
) -> dict[str, Any]:  # fmt: skip
    """Let all walkers take their steps, and swap neighbours or not: a line of the history."""
    n = len(history.lines)
    now = history.states
    walker_in = {state: walker for walker, state in enumerate(now)}
    pairs = _pairs(n, len(states))
    partner = {k: k + 1 for k in pairs} | {k + 1: k for k in pairs}
    other = [states[partner[k]] if k in partner else None for k in now]
    until, in_threads = (n + 1) * common.until, workers.in_threads
    tasks = [[(w, walkers[w], held[w], states[now[w]], other[w], until, in_threads)] for w in range(len(walkers))]
    seen: list[dict[str, Any]] = [{} for _ in walkers]
    for (w, *_), outcome in workers.each(advance, common, tasks):
        if isinstance(outcome, Died):
            raise ExecutorError(f"{_WHAT}: walker {w}, before exchange {n}: {outcome}")
        if "error" in outcome:
            kind = ParameterError if outcome["unfit"] else SimulationError
            error = kind(f"{_WHAT}: walker {w} in state {now[w]}, before exchange {n}: {outcome['error']}")
            error.add_note(outcome["traceback"])
            raise error
        seen[w] = outcome
        held[w] = outcome.pop("held")
    accepted = []
    for k in pairs:
        a, b = seen[walker_in[k]], seen[walker_in[k + 1]]
        delta = (b["other"] - a["own"]) / a["kT"] + (a["other"] - b["own"]) / b["kT"]
        delta -= (b["other weight"] - a["own weight"]) + (a["other weight"] - b["own weight"])
        chance = drawn(seed, EXCHANGES, n, k) / 2.0**64
        accepted.append(delta <= 0.0 or chance < math.exp(-delta))
    after = list(now)
    for k, swapped in zip(pairs, accepted, strict=True):
        if swapped:
            after[walker_in[k]], after[walker_in[k + 1]] = k + 1, k
    in_order = [seen[walker_in[k]] for k in range(len(states))]
    return {
        "exchange": n, "states": after, "pairs": pairs, "accepted": accepted,
        "energies": [outcome["own"] for outcome in in_order],
        "observed": [outcome["observed"] for outcome in in_order],
    }  # fmt: skip


def _pairs(exchange: int, n_states: int) -> list[int]:
    """Return the lower states of those that are paired: of two always, of more by turns."""
    return list(range(exchange % 2 if n_states > 2 else 0, n_states - 1, 2))


# In a worker ----------------------------------------------------------------------------------------------------------


def advance(common: Common, tasks: list[Any]) -> list[dict[str, Any]]:
    """Take walkers to a step, each in a state, and look at its energies there and by the numbers of another state."""
    out = []
    for _, *task in tasks:
        try:
            with threads_by_default(common.threads):
                out.append(_advanced(common, *task))
        except (Exception, SystemExit) as error:
            unfit = isinstance(error, ParameterError)
            said = f"{type(error).__name__}: {error}"
            out.append({"error": said, "traceback": traceback.format_exc(), "unfit": unfit})
    return out


def _advanced(
    common: Common, walker: Replica, held: Any, state: dict[str, Any], partner: dict[str, Any] | None, until: int,
    in_threads: bool
) -> dict[str, Any]:  # fmt: skip
    simulation = _found(common, walker, held)
    try:
        if simulation.current_step > until:
            raise ParameterError(
                f"it is at step {simulation.current_step} already, beyond {until}: {HISTORY} has lost its end"
            )
        if simulation.current_step < until:
            check_canonical(simulation)
            enter(simulation, state)
            simulation.run_until(until, progress=False)
            if walker.folder is not None:
                simulation.save_checkpoint(walker.folder / CHECKPOINT)
        kept: Any = simulation if in_threads else None
        if kept is None and walker.folder is None:
            kept = _bytes_of(simulation)
        weighed = weights(simulation, state, partner)
        observe = common.analyse.get()
        seen = None if observe is None else text_of_values("observe returned", observe(simulation))
    except BaseException:
        simulation._close_quietly()
        raise
    if not in_threads:
        simulation.close()
    return {"held": kept, **weighed, "kT": simulation.integrator.kT, "observed": seen}


def _found(common: Common, walker: Replica, held: Any) -> Simulation:
    """Return the walker as it was left, or at its start."""
    if isinstance(held, Simulation):
        return held
    functions = common.functions.get()
    if walker.folder is not None:
        check_own(walker.folder)
        walker.folder.mkdir(parents=True, exist_ok=True)
        wait_for(walker.folder)
        there = walker.folder
        return Simulation._resumed_or_started(
            _WHAT, there / CHECKPOINT, lambda: begun(common.make.get(), walker, there), common.threads, functions, None,
            writer_needed=False,
        )  # fmt: skip
    if held is None:
        return begun(common.make.get(), walker, None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CHECKPOINT
        path.write_bytes(held)
        resumed: Simulation = Simulation.resume(path, common.threads, functions, False)
        return resumed


def _bytes_of(simulation: Simulation) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CHECKPOINT
        simulation.save_checkpoint(path)
        return path.read_bytes()


def check_canonical(simulation: Simulation) -> None:
    """Refuse what has no canonical distribution to exchange in."""
    integrator = simulation.integrator
    if integrator.kT is None:
        raise ParameterError(f"the word {integrator.word!r} keeps no temperature: add O, as in 'BAOAB'")
    if not isinstance(integrator.kick, Explicit):
        raise ParameterError(
            f"{type(integrator.kick).__name__} moves beads by other forces than those of the "
            "energy, by which walkers are swapped"
        )
    system = simulation.system
    if system.hydrodynamics is not None and system.hydrodynamics.flows:
        raise ParameterError(f"the fluid of {system.hydrodynamics!r} flows, and keeps no canonical distribution")
    for name, force in zip(system.force_names, system.forces, strict=True):
        # A function may leave the energy out, or be as good as any other force.
        if not force.energy_tells_work and not isinstance(force, PythonForce):
            raise ParameterError(
                f"{name} ({type(force).__name__}) does work that its energy does not tell, and keeps no canonical "
                "distribution"
            )
    for name, jump in zip(system.jump_names, system.jumps, strict=True):
        if jump.driven:
            raise ParameterError(f"{name} is driven, and keeps no canonical distribution")
    log_weight(simulation, integrator.kT, simulation.context.get_state(positions=True, energy=True))


def log_weight(simulation: Simulation, kT: float, state: State) -> float:
    """Return the logarithm of the weight that all jumps give to a state, as they are now, for a temperature."""
    total = 0.0
    jumping = simulation.context._schedule.jumping
    for name, jump, operation in zip(jumping.names, jumping.jumps, jumping.operations, strict=True):
        own = jump.log_weight(operation, state, kT)
        if own is None:
            raise ParameterError(
                f"{name}: {type(jump).__name__} does not tell what it weighs states by, so that walkers cannot be "
                "swapped: it needs a method log_weight"
            )
        if math.isnan(own):
            raise SimulationError(f"{name}: the weight of its state is nan", step=simulation.current_step)
        total += own
    return total


def enter(simulation: Simulation, state: dict[str, Any]) -> None:
    """Give a simulation the numbers of a state, and velocities the temperature; nothing where it has them."""
    before = simulation.integrator.kT
    apply(simulation.system, simulation.integrator, state)
    after = simulation.integrator.kT
    if after != before and before is not None and after is not None and not simulation.integrator.overdamped:
        simulation.context.scale_velocities(math.sqrt(after / before))


def weights(simulation: Simulation, state: dict[str, Any], partner: dict[str, Any] | None) -> dict[str, float | None]:
    """Return weights of a simulation in the distribution of its state, and of another one: potential energies ("own"
    and "other"), pN nm, and logarithms of the weights of jumps ("own weight" and "other weight")."""
    kT = cast(float, simulation.integrator.kT)
    here = simulation.context.get_state(positions=True, energy=True)
    if not math.isfinite(here.potential_energy):
        raise SimulationError(f"its potential energy is {here.potential_energy} pN nm", step=simulation.current_step)
    out: dict[str, float | None] = {
        "own": here.potential_energy, "own weight": log_weight(simulation, kT, here), "other": None,
        "other weight": None,
    }  # fmt: skip
    if partner is None:
        return out
    kT_there = thermal_energy(partner.get("temperature"), partner.get("kT")) or kT
    numbers = {name: value for name, value in partner.items() if "." in name and value != state[name]}
    if not numbers:
        return out | {"other": out["own"], "other weight": log_weight(simulation, kT_there, here)}
    back = {name: state[name] for name in numbers}
    # Energies are those of forces.
    others = any(isinstance(simulation.system[name.rpartition(".")[0]], Force) for name in numbers)
    there = here
    with _unbooked(simulation):
        apply(simulation.system, simulation.integrator, numbers)
        try:
            if others:
                there = simulation.context.get_state(positions=True, energy=True)
            weight = log_weight(simulation, kT_there, there)
        finally:
            apply(simulation.system, simulation.integrator, back)
            if others:
                # Follows, so that what is booked is put back afterwards.
                simulation.context.get_state(energy=True)
    if math.isnan(there.potential_energy):
        raise SimulationError(f"by {numbers} its potential energy is nan", step=simulation.current_step)
    # Infinite where the other state cannot be there: refused.
    return out | {"other": there.potential_energy, "other weight": weight}


@contextmanager
def _unbooked(simulation: Simulation) -> Iterator[None]:
    """Surround a block that leaves heat and work as they are: there and back is round-off, which resumed walkers have
    not."""
    meter = simulation.context._schedule.meter
    before = None if meter is None else meter.arrays()["work"].copy()
    try:
        yield
    finally:
        if meter is not None and before is not None:
            meter.take(before)


# Files that are there -----------------------------------------------------------------------------------------------


class _History:
    """All exchanges that are done, in memory and, line by line, in a file."""

    def __init__(self, folder: Path | None, n_states: int, stack: ExitStack) -> None:
        self.lines: list[dict[str, Any]] = []
        self._n = n_states
        self._file: Any = None
        if folder is None:
            return
        path = folder / HISTORY
        with writing(_WHAT, path):
            number = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            self._file = stack.enter_context(open(number, "a+b"))
        self._path = path
        self._file.seek(0)
        end = 0
        for line in self._file:
            # A process was killed while it wrote this line.
            if not line.endswith(b"\n"):
                break
            try:
                tree = json.loads(line)
                fits = tree["exchange"] == len(self.lines) and sorted(tree["states"]) == list(range(n_states))
                fits = fits and tree["pairs"] == _pairs(len(self.lines), n_states)
                fits = fits and len(tree["energies"]) == len(tree["observed"]) == n_states
            except (ValueError, KeyError, TypeError, RecursionError) as cause:
                raise self._damaged() from cause
            if not fits:
                raise self._damaged()
            self.lines.append(tree)
            end += len(line)
        self._file.truncate(end)
        self._file.seek(end)

    def _damaged(self) -> ParameterError:
        return ParameterError(f"{_WHAT}: {self._path}, line {len(self.lines) + 1}, is not of this exchange, or damaged")

    @property
    def states(self) -> list[int]:
        """The state of each walker now."""
        return list(self.lines[-1]["states"]) if self.lines else list(range(self._n))

    def append(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            with writing(_WHAT, self._path, "call again when it can be"):
                self._file.write(json.dumps(line).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
        self.lines.append(line)

    def result(self, ladder: list[dict[str, Any]], n_exchanges: int, folders: list[Path] | None) -> Exchanges:
        lines = self.lines[:n_exchanges]
        attempted, accepted = np.zeros(self._n - 1, int), np.zeros(self._n - 1, int)
        for line in lines:
            attempted[line["pairs"]] += 1
            accepted[[k for k, swapped in zip(line["pairs"], line["accepted"], strict=True) if swapped]] += 1
        observed = [
            [values_of_text(text) for text in line["observed"]] for line in lines if line["observed"][0] is not None
        ]
        states = [list(range(self._n)), *(line["states"] for line in lines)]
        return Exchanges(
            ladder, len(lines) == n_exchanges, np.array(states, int),
            np.array([line["energies"] for line in lines], float).reshape(-1, self._n),
            attempted, accepted, observed, folders,
        )  # fmt: skip
