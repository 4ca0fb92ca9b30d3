"""Shared report of the demos: the run with its files, and the table of measured against expected."""

import copy
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from medyanpy import units
from medyanpy._tools.threads import choose_threads
from medyanpy._tools.validation import seed as check_seed
from medyanpy._version import __version__
from medyanpy.beads import OrientedBeads
from medyanpy.context import Context
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError
from medyanpy.files.trajectory import Trajectory
from medyanpy.integrators import SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.reporters import Callback, CheckpointReporter, Reporter, StateDataReporter, TrajectoryReporter
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology
from medyanpy.visualize import draw, movie

OUTPUTS = ("trajectory.h5", "state.csv", "run.checkpoint", "summary.json", "picture.png")

TEMPERATURE = 300.0  # K
KT = TEMPERATURE * units.boltzmann  # pN nm
ENOUGH_FOR_SPEED = 1000
# A deviation of five standard errors happens once in two million. Where the error is that of the samples themselves,
# Student's t has longer tails: of 20 normal samples once in 12 000, of fewer there is no verdict.
LARGEST_Z = 5.0
FEWEST_SAMPLES = 20
SMALLEST_P = 5.7e-7


@dataclass
class Line:
    """Line of the table of measured against expected."""

    quantity: str
    measured: float | None
    error: float | None
    expected: float | None
    unit: str
    criterion: str
    verdict: str


@dataclass
class Demo:
    """Results of a demo.

    Attributes
    ----------
    mesh : TriangleMesh or None
        Of the demos that have one.
    topology : Topology
    lines : list of Line
    summary : dict
        The content of summary.json.
    """

    mesh: TriangleMesh | None
    topology: Topology
    lines: list[Line]
    summary: dict[str, Any]


class Report:
    """Options of a demo, checked before anything is written, its run, and all that it prints and writes: the files
    `outputs`."""

    steps: int  #: Number of steps of the run.

    def __init__(
        self, out: Any, *, threads: int | None, seed: int, overwrite: bool, stream: TextIO | None,
        outputs: Sequence[str] = OUTPUTS,
    ) -> None:
        self.started: float = time.perf_counter()
        self.out: Path = Path(out)
        self.seed: int = check_seed("seed", seed)
        self.threads: int = choose_threads(threads)
        self._may_choose = threads is None
        self._stream = stream
        self.outputs: tuple[str, ...] = tuple(outputs)
        existing = [name for name in self.outputs if (self.out / name).exists()]
        if existing and not overwrite:
            held = ", ".join(existing)
            raise ParameterError(f"{self.out} holds {held} already: choose another --out, or give --overwrite")
        if self.out.exists() and not self.out.is_dir():
            raise ParameterError(f"{self.out} is not a folder")

    def say(self, text: str) -> None:
        print(text, file=self._stream or sys.stdout, flush=True)

    def begin(self, about: str, what: str = "mesh") -> None:
        """Make the folder and print what there is; nothing else that was given is wrong."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.say(f"medyanpy {__version__}")
        self.say(f"{what:<10}{about}")

    def note(self, *notes: str) -> None:
        """Add a note to the line before."""
        for note in notes:
            self.say(f"          {note}")

    def run(
        self, system: System, integrator: SplittingIntegrator, start: State | None = None,
        reporters: Sequence[Reporter] = (), *, frames: int = 60, drawn_by: Callable[..., Any] = draw, **picture: Any,
    ) -> tuple[dict[str, Line], State]:
        """Run from where the topology or a state has the beads, write the files and the picture, and return lines on
        the temperature of each handle, by its name, and the last state. With a thermostat velocities are drawn at its
        temperature; without kelvin, numbers have no units."""
        thermal, in_kelvin = integrator.kT is not None, integrator.in_kelvin
        note, heat = "", ""
        if self._may_choose and self.threads > 1:
            self.threads, note = _faster(system, integrator, self.threads, start)
        dt = f"{integrator.timestep:g}"
        if thermal:
            heat = f" at {integrator.temperature:g} K" if in_kelvin else f" at kT = {integrator.kT:g}"
        if in_kelvin:
            name, unit = ("µs", units.microsecond) if integrator.timestep > 1e-8 else ("ns", units.nanosecond)
            dt = f"{integrator.timestep / unit:g} {name}"
        self.say(
            f"run       {self.steps} steps of {integrator.word.replace(' ', '')}{heat}, dt = {dt}, "
            f"{self.threads} thread{'s' * (self.threads > 1)}{note}"
        )
        self._about = {"temperature": integrator.temperature if in_kelvin else None, "timestep": integrator.timestep}
        temperatures: dict[str, list[float]] = {handle.name: [] for handle in system.topology.handles}

        def keep(simulation: Simulation, state: State) -> None:
            for name, temperature in state.temperatures.items():
                temperatures[name].append(temperature)

        interval = max(1, self.steps // frames)
        membranes = system.topology.membranes
        with Simulation(system, integrator, self.threads) as simulation:
            if start is not None:
                simulation.context.set_state(start)
            if thermal:
                simulation.context.set_velocities_to_temperature(kT=integrator.kT, seed=self.seed)
                simulation.reporters.append(Callback(sampling_interval(self.steps), keep, include="energy"))
            simulation.reporters += [
                *reporters,
                StateDataReporter(
                    self.out / "state.csv", interval, step=True, time=True, potential_energy=True, kinetic_energy=True,
                    temperature=in_kelvin, temperatures=in_kelvin, area=bool(membranes),
                    volume=bool(membranes) and all(m.mesh.is_closed for m in membranes), speed=True, overwrite=True,
                ),
                TrajectoryReporter(self.out / "trajectory.h5", interval, precision="single", overwrite=True),
                CheckpointReporter(self.out / "run.checkpoint", max(1, self.steps // 4), overwrite=True),
            ]
            started = time.perf_counter()
            simulation.step(self.steps)
            seconds = time.perf_counter() - started
            simulation.save_checkpoint(self.out / "run.checkpoint")
            self.say("picture   picture.png")
            drawn_by(simulation, self.out / "picture.png", overwrite=True, **picture)
        self._per_second = self.steps / seconds
        self._per_bead = 1e9 * seconds / (self.steps * system.topology.n_beads)
        spacing = sampling_interval(self.steps) * integrator.timestep
        lines: dict[str, Line] = {}
        if thermal:
            expected = integrator.temperature if in_kelvin else integrator.kT
            named = "K" if in_kelvin else "kT"
            assert expected is not None
            one = 1.0 if in_kelvin else units.boltzmann
            for handle in system.topology.handles:
                series = one * np.array(temperatures[handle.name])
                lines[handle.name] = temperature_line(handle, series, spacing, expected, named)
        return lines, simulation.context.get_state(positions=True)

    def movie(self, choose: Callable[[Trajectory], Sequence[Any]], **looks: Any) -> None:
        """Write movie.gif of some frames of the trajectory."""
        self.say("movie     movie.gif")
        with Trajectory(self.out / "trajectory.h5") as frames:
            movie(choose(frames), self.out / "movie.gif", overwrite=True, **looks)

    def finish(self, mesh: TriangleMesh | None, topology: Topology, lines: list[Line], /, **summary: Any) -> Demo:
        """Print the table, write the summary, and return both."""
        total = time.perf_counter() - self.started
        self.say("")
        for text in table(lines):
            self.say(text)
        self.say("")
        # With few beads it would be the time of looking at them.
        per_bead = f", {self._per_bead:.0f} ns per bead and step" if topology.n_beads >= ENOUGH_FOR_SPEED else ""
        self.say(f"speed     {self._per_second:.0f} steps/s{per_bead}; {total:.1f} s in all")
        self.say(f"files     {self.out}: {', '.join(self.outputs)}")
        summary = {
            "version": __version__, **self._about, **summary,
            "steps": self.steps, "threads": self.threads, "seed": self.seed,
            "speed": {
                "steps_per_second": self._per_second, "ns_per_bead_and_step": self._per_bead, "seconds_in_all": total,
            },
            "results": [asdict(line) for line in lines],
            "ok": all(line.verdict != "CHECK" for line in lines),
        }  # fmt: skip
        (self.out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        return Demo(mesh, topology, lines, summary)


def _faster(system: System, integrator: SplittingIntegrator, most: int, start: State | None) -> tuple[int, str]:
    """Choose one thread or as many as the machine offers, whichever is faster now, and give a remark: threads wait for
    each other many times a step, and on a busy machine for one that does not run."""
    contexts = {}
    for n in (1, most):
        contexts[n] = Context(system, copy.copy(integrator), n)
        if start is not None:
            contexts[n].set_state(start)
        contexts[n].step(5)
    seconds = dict.fromkeys(contexts, 0.0)
    for _ in range(3):
        for n, context in contexts.items():
            started = time.perf_counter()
            context.step(20)
            seconds[n] += time.perf_counter() - started
    if seconds[most] < seconds[1]:
        return most, ""
    return 1, f" ({most} would be slower now)"


def at_temperature(system: System, integrator: SplittingIntegrator, threads: int, seed: int | None = None) -> Context:
    """Make a context with velocities drawn at the temperature of its integrator, by default with its seed."""
    context = Context(system, integrator, threads)
    context.set_velocities_to_temperature(kT=integrator.kT, seed=integrator.seed if seed is None else seed)
    return context


def sampling_interval(steps: int) -> int:
    """Return the number of steps between samples of what the table needs."""
    return max(1, min(10, steps // 10))


def energy_missing(start: State, state: State) -> float:
    """Return the change of the energy without heat and work since a state, relative to the energy."""
    parts = ("heat", "shadow_work", "protocol_work", "chemical_work")
    taken = sum(getattr(state, part) - getattr(start, part) for part in parts)
    return float(abs(state.total_energy - start.total_energy - taken) / abs(state.total_energy))


def z_line(quantity: str, measured: float, error: float, expected: float, unit: str) -> Line:
    z = (measured - expected) / error
    verdict = "OK" if abs(z) < LARGEST_Z else "CHECK"
    return Line(quantity, measured, error, expected, unit, f"z = {z:+.1f}, |z| < {LARGEST_Z:g}", verdict)


def not_measured(quantity: str, expected: float | None, unit: str, why: str) -> Line:
    return Line(quantity, None, None, expected, unit, why, "--")


def bound_line(quantity: str, measured: float, bound: float, unit: str = "") -> Line:
    return Line(quantity, measured, None, None, unit, f"< {bound:g}", "OK" if measured < bound else "CHECK")


def near_line(quantity: str, measured: float, expected: float, within: float, unit: str = "") -> Line:
    """Compare a number that is computed without noise."""
    verdict = "OK" if abs(measured / expected - 1.0) < within else "CHECK"
    return Line(quantity, measured, None, expected, unit, f"within {100 * within:g} %", verdict)


def mean_line(quantity: str, samples: np.ndarray, expected: float, unit: str = "") -> Line:
    """Compare the mean of independent samples."""
    if len(samples) < FEWEST_SAMPLES:
        return not_measured(quantity, expected, unit, f"{len(samples)} samples, fewer than {FEWEST_SAMPLES}")
    error = float(samples.std(ddof=1)) / sqrt(len(samples))
    return z_line(quantity, float(samples.mean()), error, expected, unit)


def uniformity_line(counts: np.ndarray, expected: np.ndarray) -> Line:
    """Return chi-square of counts; their sum is given."""
    from scipy.special import gammaincc

    # The tail of the chi-square distribution (scipy.stats has it too, and takes seconds to import).
    p = float(gammaincc(0.5 * (len(expected) - 1), 0.5 * ((counts - expected) ** 2 / expected).sum()))
    verdict = "OK" if p > SMALLEST_P else "CHECK"
    return Line("uniformity, chi-square p", p, None, None, "", f"p > {SMALLEST_P:g}", verdict)


def temperature_line(
    handle: Handle, series: np.ndarray, spacing: float, expected: float = TEMPERATURE, unit: str = "K"
) -> Line:
    """Return the mean over the last two thirds of samples that are `spacing` (s) apart. Its error: degrees of freedom,
    and how many samples are independent."""
    name = f"temperature of {'proteins' if handle.kind.name == 'points' else handle.kind.name}"
    kept = series[len(series) // 3 :]
    # Integrated correlation time in samples: summed up to where it is lost in noise (Sokal's window).
    d = kept - kept.mean()
    tau = 0.5
    if len(kept) > 3 and d @ d > 0.0:
        for lag in range(1, len(kept) // 2):
            tau += float(d[:-lag] @ d[lag:]) / float(d @ d)
            if lag >= 5.0 * tau:
                break
    # A short series tells too little of that: friction alone takes m/2γ to change a kinetic energy.
    memory = _relaxation_time(handle) / (2.0 * spacing)
    independent = len(kept) / (2.0 * max(tau, memory, 0.5))
    if independent < 10.0:
        return not_measured(name, expected, unit, "too few independent samples: more --steps")
    error = expected * sqrt(2.0 / (handle.degrees_of_freedom * independent))
    return z_line(name, float(kept.mean()), error, expected, unit)


def _relaxation_time(handle: Handle) -> float:
    """Return how long friction lets velocities last, s; of oriented beads the longest lasting ones."""
    if not isinstance(handle, OrientedBeads):
        return float(np.mean(handle.mass / handle.friction))
    masses = np.sqrt(np.column_stack([handle.mass, handle.mass, handle.mass, handle.inertia]))
    rates = np.linalg.eigvalsh(handle.kind.friction_tensors / masses[:, :, None] / masses[:, None, :])
    return float(np.mean(1.0 / rates[:, 0]))


def table(lines: Sequence[Line], expected: str = "expected") -> list[str]:
    """Align the lines under a head that names what is expected."""

    def number(value: float | None, error: float | None = None) -> str:
        if value is None:
            return "-"
        return f"{value:.4g}" if error is None else f"{value:.{_decimals(error)}f} ± {error:.{_decimals(error)}f}"

    rows = [("", "measured", expected, "", "", "")]
    for line in lines:
        known = "-"
        if line.expected is not None:
            known = f"{line.expected:.4g}" if line.error is None else f"{line.expected:.{_decimals(line.error)}f}"
        rows.append((line.quantity, number(line.measured, line.error), known, line.unit, line.verdict, line.criterion))
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    return [
        "  ".join(
            text.rjust(width) if k in (1, 2) else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _decimals(error: float) -> int:
    """Return the decimals that show two digits of an error."""
    return max(0, 1 - int(np.floor(np.log10(error)))) if error > 0.0 else 3
