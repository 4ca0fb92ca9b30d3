"""How often a double strand of DNA opens and closes (Tao and Owhadi, section 4.4), and what it costs.

    python tests/validation/coarse/dna.py [--quick] [--out DIR] [--data DIR]

The chain is (31): angles θ of N = 200 bases, each tied to its neighbours, in a ring as in Mezić (2006), by springs
without length and to the other strand by a Morse potential. An angle is the x of a bead of mass 1. --data keeps the
statistics as soon as they are there, and a later call resumes with the next method. Figure 8 is made by
`tests/validation/figures --seed 001`.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from medyanpy import forces, kicks
from medyanpy.context import Context
from medyanpy.errors import SimulationError
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System
from medyanpy.topology import Topology

N, A, X0, DEPTH = 200, 7.0, 0.3, 1.0 / 1400.0
CLOSED = np.arccos(1.0 - X0)
# The mean angle has come to a closed state within this distance of one of the two, and belongs to it until it comes
# as near to the other.
NEAR = 0.7
METHODS: dict[Any, Any] = {
    "Verlet, h = 0.2": (0.2, None),
    "Verlet, h = 0.8": (0.8, None),
    "Zhang & Skeel, h = 1": (1.0, kicks.ZhangSkeel(beta=0.3)),
    "Zhang & Skeel, h = 1.5": (1.5, kicks.ZhangSkeel(beta=0.3)),
    "Zhang & Skeel, h = 2": (2.0, kicks.ZhangSkeel(beta=0.3)),
    "simplified, h = 2": (2.0, kicks.ZhangSkeelSimplified(beta=0.3)),
    "Newmark, h = 2": (2.0, kicks.PushForwardNewmark(beta=0.3)),
}
FIGURE = ("Verlet, h = 0.2", "Verlet, h = 0.8", "Zhang & Skeel, h = 2")


# The chain ---------------------------------------------------------------------------------------------------------


def start(seed: int, n: Any = N) -> Any:
    """Angles 0.8 + 0.1 ξ and momenta cos(4πk/N)/√N, k = 1 to N."""
    k = np.arange(1, n + 1)
    return 0.8 + 0.1 * np.random.default_rng(seed).normal(size=n), np.cos(4.0 * np.pi * k / n) / np.sqrt(n)


def chain(theta: np.ndarray, momenta: np.ndarray, h: float, kick: Any = None) -> Any:
    """A Context of velocity Verlet, with one kick or another."""
    topology = Topology()
    angles = topology.add_beads(np.column_stack([theta, np.zeros((len(theta), 2))]), mass=1.0)
    system = System(topology)
    ring = np.column_stack([angles.beads, np.roll(angles.beads, -1)])
    system.add_force(forces.HarmonicBonds(ring, stiffness=1.0, length=0.0, name="neighbours"))
    pairing = forces.ExternalField(angles, "depth*(exp(-a*(1 - cos(x) - x0)) - 1)^2", depth=DEPTH, a=A, x0=X0,
                                   name="pairing")  # fmt: skip
    system.add_force(pairing)
    context = Context(system, SplittingIntegrator("BAB", h, kick=kick), threads=1)
    context.set_velocities(np.column_stack([momenta, np.zeros((len(theta), 2))]))
    return context


def closed_angle() -> Any:
    """Where a chain of equal angles has the least energy, below π."""
    context = chain(np.zeros(3), np.zeros(3), 0.1)

    def energy(theta: np.ndarray) -> Any:
        context.set_positions([[theta, 0.0, 0.0]] * 3)
        return context.get_state(energy=True).potential_energy

    return float(minimize_scalar(energy, bounds=(0.1, 3.0), method="bounded", options={"xatol": 1e-8}).x)


def energies(context: Any) -> Any:
    """H, and what Zhang and Skeel's method keeps nearly in its place: with V - (q - x).F/2 for V."""
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    shift = context.physical_positions() - state.positions
    return state.total_energy, state.total_energy - 0.5 * np.sum(shift * state.forces)


def highest_stiffness(theta: np.ndarray) -> Any:
    """The largest eigenvalue of V'' (mass 1): ω² of the stiffest mode."""
    context = chain(theta, np.zeros_like(theta), 0.1)
    return float(np.linalg.eigvalsh(context.hessian().toarray()[::3, ::3]).max())


# Runs --------------------------------------------------------------------------------------------------------------


def run(method: str, seed: int, end: float, every: float = 10.0) -> Any:
    """t, mean angle, its velocity, and energies (k, 2); ends early where the run is lost."""
    h, kick = METHODS[method]
    theta, momenta = start(seed)
    context = chain(theta, momenta, h, kick)
    steps = max(1, round(every / h))
    rows: Any = []
    for k in range(int(end / (steps * h)) + 1):
        try:
            context.step(steps if k else 0)
        except SimulationError:
            break
        state = context.get_state(positions=True, velocities=True)
        theta, v = state.positions[:, 0].mean(), state.velocities[:, 0].mean()
        rows.append((k * steps * h, theta, v, *energies(context)))
    rows = np.array(rows)
    return {"t": rows[:, 0], "mean": rows[:, 1], "velocity": rows[:, 2], "energies": rows[:, 3:]}


def changes(mean: Any) -> Any:
    """Numbers of the rows at which the mean angle has come from one closed state to the other."""
    state = np.where(np.abs(mean - CLOSED) < NEAR, -1, np.where(np.abs(mean - (2.0 * np.pi - CLOSED)) < NEAR, 1, 0))
    visits = np.flatnonzero(state)
    return visits[1:][np.diff(state[visits]) != 0]


def microseconds(method: str, span: float = 40.0, repeats: int = 15) -> Any:
    """What a unit of time costs: the least of repeated spans, others on the machine only add."""
    h, kick = METHODS[method]
    theta, momenta = start(0)
    context = chain(theta, momenta, h, kick)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        context.step(round(span / h))
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / span


# Statistics ----------------------------------------------------------------------------------------------------

# What the paper says its two runs took.
PAPER = {"Verlet, h = 0.2": 23.26, "Zhang & Skeel, h = 2": 3.24}

def mean_and_error(values):
    values = np.asarray(values, float)
    return (values.mean(), values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else (np.nan, np.nan)


def statistics(shelf, method, seeds, end):
    """Of runs with several starts: how often the state changes, when first, how long it lasts between two changes;
    H in the first and the last fifth; how long the runs last, and what they cost."""
    runs = [shelf(method, seed, end) for seed in range(seeds)]
    when = [r["t"][changes(r["mean"])] for r in runs]
    fifth = [max(1, len(r["t"]) // 5) for r in runs]
    return {
        "changes": mean_and_error([len(w) for w in when]),
        "first": mean_and_error([w[0] for w in when if len(w)]),
        "stays": mean_and_error(np.concatenate([np.diff(w) for w in when])),
        "late": sum(np.sum(w > 4000.0) for w in when),
        "when": np.sort(np.concatenate(when)),
        "open": np.mean([len(w) % 2 for w in when]),
        "early energy": np.mean([r["energies"][:n, 0].mean() for n, r in zip(fifth, runs, strict=True)]),
        "last energy": np.median([r["energies"][-n:, 0].mean() for n, r in zip(fifth, runs, strict=True)]),
        "lost": int(sum(r["t"][-1] < 0.99 * end for r in runs)),
        "lasted": mean_and_error([r["t"][-1] for r in runs]),
        "microseconds": microseconds(method),
        "runs": seeds,
    }


class Shelf:
    """Runs that were made, in memory and in files."""

    def __init__(self, folder):
        self._folder, self._known = folder, {}

    def __call__(self, method, seed, end):
        key = f"{method}_{seed}_{end:g}".replace(" ", "").replace(",", "_").replace("&", "")
        if key not in self._known:
            file = self._folder / f"{key}.npz" if self._folder else None
            if file is not None and file.exists():
                with np.load(file) as stored:
                    self._known[key] = dict(stored)
            else:
                self._known[key] = run(method, seed, end)
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    np.savez(file, **self._known[key])
        return self._known[key]


# Figures and tables ------------------------------------------------------------------------------------------------


def figure_statistics(tables, out, end):
    """Changes of state up to t, in the mean over starts, and what a unit of time costs."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9.5, 3.2), layout="constrained", width_ratios=(1.4, 1.0))
    for k, (method, s) in enumerate(tables.items()):
        axes[0].step(np.append(s["when"], end), np.append(np.arange(1, len(s["when"]) + 1), len(s["when"])) / s["runs"],
                     where="post", color=f"C{k}", label=method)  # fmt: skip
        axes[1].barh(k, s["microseconds"], color=f"C{k}", height=0.6)
    axes[0].set(xlabel="t", ylabel="changes of state up to t", xlim=(0.0, end), ylim=(0.0, None))
    axes[0].legend(fontsize=7)
    axes[1].set_yticks(range(len(tables)), tables, fontsize=8)
    axes[1].invert_yaxis()
    axes[1].set(xlabel="µs per unit of time")
    save(figure, out, "coarse_dna_statistics.png")


def save(figure, out, name):
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        figure.savefig(out / name, dpi=90)
        print(f"# {out / name}")


def table(tables, end):
    runs = next(iter(tables.values()))["runs"]
    print(f"{runs} runs to t = {end:g}; two closed states at {CLOSED:.3f} and {2 * np.pi - CLOSED:.3f}")
    print(f"{'method':22s} {'changes':>12s} {'first at':>12s} {'between two':>12s} {'late':>5s} {'other':>6s} "
          f"{'H, first and last fifth':>24s} {'lost':>5s} {'lasted':>6s} {'µs':>6s} {'paper, s':>8s}")  # fmt: skip
    for method, s in tables.items():
        numbers = [f"{m:6.{d}f} ± {e:4.{d}f}" for (m, e), d in ((s["changes"], 2), (s["first"], 0), (s["stays"], 0))]
        print(f"{method:22s} {' '.join(numbers)} {s['late']:5d} {s['open']:6.2f} {s['early energy']:12.2f} "
              f"{s['last energy']:11.2f} {s['lost']:5d} {s['lasted'][0]:6.0f} {s['microseconds']:6.1f} "
              f"{PAPER.get(method, np.nan):8.2f}")  # fmt: skip


def limits():
    """Where explicit kicks become unstable: in the closed state, and where the pairing is stiffest."""
    ring = highest_stiffness(np.full(N, CLOSED))
    theta = np.linspace(0.0, np.pi, 4001)
    pairing = chain(theta, np.zeros_like(theta), 0.1).hessian().toarray()[::3, ::3]
    own = np.diag(pairing) - 2.0
    print(f"2/ω of the stiffest mode in the closed state: {2.0 / np.sqrt(ring):.3f}")
    low, high = own.argmin(), own.argmax()
    print(f"εU'' from {own[low]:.3f} at θ = {theta[low]:.2f} to {own[high]:.3f} at {theta[high]:.2f}")
    print(f"2/ω if all were there: {2.0 / np.sqrt(4.0 + own[high]):.3f}")
    print(f"least of 1 + βh²U'' at h = 2, β = 0.3: {1.0 + 1.2 * own.min():.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short runs of few starts")
    parser.add_argument("--out", type=Path, help="folder for pictures")
    parser.add_argument("--data", type=Path, help="folder in which runs are kept")
    options = parser.parse_args()
    shelf = Shelf(options.data)
    limits()
    # Nearly all changes are in the beginning.
    for end, seeds in ((1000.0, 3),) if options.quick else ((10_000.0, 24), (2000.0, 96)):
        tables = {method: statistics(shelf, method, seeds, end) for method in METHODS}
        table(tables, end)
    if options.out is not None:
        import matplotlib

        matplotlib.use("Agg")
        figure_statistics(tables, options.out, end)


if __name__ == "__main__":
    main()
