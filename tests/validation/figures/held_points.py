"""Points held to a moving mesh by local corrections, which the page on BAGOGAB has for a future direction.

held/local_corrections.py beside this folder has them, and the points of BAGOGAB in the same program.
"""

import time
from typing import Any

import numpy as np
from held import local_corrections as held

from medyanpy.demo.report import mean_line, near_line, z_line
from medyanpy.mesh import TriangleMesh

from .plates import PUBLISHED, Made, Row, Work, above_line, letters, log_ticks, panels

SIDE = 4.0
TRIANGLE = TriangleMesh(SIDE * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.75**0.5, 0.0]]), [[0, 1, 2]])
# Points and masses of each over that of a vertex: a vertex carries 0.1, 1 and 10 times its own mass on average.
LOADS = ((1, 0.1), (1, 1.0), (3, 10.0 / 3.0))
POINTS = 12


def _spread(mesh: TriangleMesh, copies: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, len(mesh.faces), (copies, p)), rng.dirichlet([1.0, 1.0, 1.0], (copies, p))


def _sweeps(level: int, per: int, m: float, most: int) -> np.ndarray:
    """(most + 1,) rms velocities off the mesh after each sweep, over that of the start."""
    mesh = TriangleMesh.icosphere(3.0, level)
    s = held.Held(mesh, 1, *_spread(mesh, 1, per * len(mesh.vertices), 1), m=m, sweeps=0)
    s.heat()
    off = [np.sqrt((s.off() ** 2).mean())]
    for _ in range(most):
        s.hold(1)
        off.append(np.sqrt((s.off() ** 2).mean()))
    return np.array(off) / off[0]


def _losses(m: float, h: float, copies: int, end: float, **options: Any) -> tuple[float, float]:
    """Energy that a crossing takes, in kT: mean and standard error. Twelve points on an icosahedron of springs, from
    equilibrium, without O."""
    mesh = TriangleMesh.icosphere(3.0, 0)
    s = held.Held(mesh, copies, *_spread(mesh, copies, POINTS, 2), m=m, seed=3, **options)
    s.heat()
    s.step(0.04, 40)
    before, crossings = s.energy(), 0
    for _ in range(round(end / h)):
        face = s.face.copy()
        s.step(h, thermostat=False)
        crossings += int((s.face != face).sum())
    lost = before - s.energy()
    return lost.sum() / crossings, lost.std(ddof=1) * copies**0.5 / crossings


def _equilibrium(kind: Any, m: float, copies: int, seed: int) -> np.ndarray:
    """(copies,) means of Σλ² of a point in a triangle of springs, with O."""
    start = _spread(TRIANGLE, copies, 1, seed)[1]
    s = kind(TRIANGLE, copies, [0], start, m=m, stiffness=2.0, rate=0.3, seed=seed)
    s.heat()
    s.step(0.06, 80)
    looks = []
    for _ in range(4):
        s.step(0.06, 40)
        looks.append((s.weight[:, 0] ** 2).sum(axis=1))
    return np.asarray(np.mean(looks, axis=0))


def _law(ratios: np.ndarray) -> np.ndarray:
    """Mean of Σλ² with a density √(1 + (m/M) Σλ²) in the triangle, for each m/M, by sums over a grid."""
    a, b = np.meshgrid(*[(np.arange(400) + 0.5) / 400.0] * 2)
    square = (a**2 + (b * (1.0 - a)) ** 2 + ((1.0 - b) * (1.0 - a)) ** 2).ravel()
    each = (1.0 - a).ravel() * np.sqrt(1.0 + np.outer(ratios, square))
    return np.asarray(each @ square / each.sum(axis=1))


def _cost(copies: int) -> dict[Any, float]:
    """Processor time of a step, by sweeps; 0 are the points of BAGOGAB."""
    mesh, times = TriangleMesh.icosphere(3.0, 0), {}
    for sweeps in (0, 1, 2, 4, 8):
        where = _spread(mesh, copies, POINTS, 6)
        s = held.Held(mesh, copies, *where, sweeps=sweeps) if sweeps else held.Riders(mesh, copies, *where)
        s.heat()
        s.step(0.04)
        each = []
        for _ in range(5):
            begun = time.process_time()
            s.step(0.04, 2)
            each.append(time.process_time() - begun)
        times[sweeps] = float(np.median(each))
    return times


def held_points(work: Work) -> Made:
    """Sweeps that corrections take, energy that they lose at edges, and where points are then."""
    figure, axes = panels(1, 3, (8.4, 2.9))
    levels, most = (2, 3), work.of(9, 16)
    found = {(level, load): _sweeps(level, *load, most) for level in levels for load in LOADS}
    for k, load in enumerate(LOADS):
        for level, style in zip(levels, ("-", "o"), strict=True):
            label = f"{load[0] * load[1]:g}" if style == "-" else None
            axes[0].semilogy(found[level, load], style, color=f"C{k}", markersize=3, markerfacecolor="none",
                             label=label)  # fmt: skip
    axes[0].set(xlabel="sweeps", ylabel="velocity off the mesh", ylim=(1e-16, 1e6))
    axes[0].legend(title="mass of points over vertices", title_fontsize=7.5, loc="upper right", ncols=3)

    masses = np.array([0.1, 0.3, 1.0])
    copies, end = work.of(40, 100), work.of(0.4, 1.0)
    losses = np.array([_losses(m, 0.02, copies, end) for m in masses])
    half = _losses(1.0, 0.01, copies, end)
    stopped = _losses(1.0, 0.02, copies, end, turned=False)
    axes[1].errorbar(masses, losses[:, 0], 2.0 * losses[:, 1], fmt="o", color="C0", markerfacecolor="none",
                     label="dt = 0.02")  # fmt: skip
    # Beside the circle that it would lie on.
    axes[1].plot(1.08, half[0], "x", color="C1", label="dt = 0.01")
    axes[1].plot(masses, losses[-1, 0] * masses**2, **PUBLISHED, linestyle="--", label="$(m/M)^2$")
    axes[1].plot(1.0, stopped[0], "s", color="C3", markerfacecolor="none", label="stopped at edges")
    axes[1].set(yscale="log", xlabel="$m/M$", ylabel="energy lost at a crossing, $kT$")
    log_ticks(axes[1], masses)
    axes[1].set_ylim(1e-4, 30.0)
    axes[1].legend(loc="upper left", ncols=2, columnspacing=0.8)

    ratios, copies = work.of(np.array([3.0]), np.array([1.0, 3.0])), work.of(400, 5000)
    kept = [_equilibrium(held.Held, m, copies, 10 + k) for k, m in enumerate(ratios)]
    riding = [_equilibrium(held.Riders, m, copies, 20 + k) for k, m in enumerate(ratios)]
    fine = np.geomspace(0.5, 5.0, 40)
    axes[2].semilogx(fine, _law(fine), **PUBLISHED, label="$\\sqrt{1 + (m/M)\\Sigma\\lambda^2}$")
    axes[2].axhline(0.5, **(PUBLISHED | {"linestyle": "--"}), label="uniform per area")
    for values, color, name in ((kept, "C0", "held"), (riding, "C2", "BAGOGAB")):
        error = [2.0 * x.std(ddof=1) / len(x) ** 0.5 for x in values]
        axes[2].errorbar(ratios, [x.mean() for x in values], error, fmt="o", color=color, markerfacecolor="none",
                         label=name)  # fmt: skip
    axes[2].set(xlabel="$m/M$", ylabel="$\\langle\\Sigma\\lambda^2\\rangle$ of a point", ylim=(0.495, 0.522))
    log_ticks(axes[2], ratios)
    axes[2].legend(loc="upper left")
    letters(axes, ("corrections converge", "a kink takes energy", "and inertia draws to corners"))

    def reached(values: np.ndarray) -> float:
        """How fast the residual falls in the end, by its logarithm for each sweep."""
        return float(np.log(values[2] / values[8]) / 6.0)

    heavy = LOADS[1]
    slope = float(np.log(losses[-1, 0] / losses[1, 0]) / np.log(masses[-1] / masses[1]))
    costs = _cost(work.of(50, 100))
    rows = [
        Row(near_line("rate of sweeps, finer over coarser mesh", reached(found[levels[1], heavy])
                      / reached(found[levels[0], heavy]), 1.0, 0.25), "avoids the global iteration"),
        *([] if work.quick else [Row(above_line("power of m/M in the energy lost at a crossing, 0.3 to 1", slope, 1.0),
            "own law: 2 for light points, whose impulses drive others off the mesh")]),
        Row(z_line("energy lost at a crossing, m = M, dt = 0.01, kT", half[0], np.hypot(half[1], losses[-1, 1]),
                   losses[-1, 0], ""), "own law: the same for any timestep, here of 0.02"),
        *(Row(mean_line(f"held, m = {m:g} M: <Σλ²>", x, float(_law(np.array([m]))[0])),
              "own law: density √(1 + (m/M) Σλ²)") for m, x in zip(ratios, kept, strict=True)),
        *(Row(mean_line(f"BAGOGAB, m = {m:g} M: <Σλ²>", x, 0.5), "exp(-PE/kT) dA, PE = 0")
          for m, x in zip(ratios, riding, strict=True)),
        *(Row(above_line(f"time of a step over BAGOGAB, {k} sweep{'s' * (k > 1)}", costs[k] / costs[0], 1.0),
              "BAGOGAB: a cheap per-particle operation with no global solve") for k in (1, 2, 4, 8)),
    ]  # fmt: skip
    sample = (
        f"a, spheres of {' and '.join(str(10 * 4**level + 2) for level in levels)} vertices (lines, dots); b, {POINTS} "
        f"points on an icosahedron of springs to t = {end:g}; c, one in a triangle, {copies} of them"
    )
    return Made(figure, rows, sample)
