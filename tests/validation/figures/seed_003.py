"""Billiards on surfaces: an essay with a program, on particles that stay on an inflated lemniscate of Bernoulli.

Everything is the essay's: a = 1, r = a/6, 25 particles from the top at unit speed under unit gravity, a timestep of
0.01, 2000 steps; then those of every hundredth place of the third path, at rest, with Ricker's potential. Its three
slips are not repeated: the position goes on by +δt M⁻¹p, holes need r < a/4, and the force is minus the derivative.
"""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy.context import Context
from medyanpy.demo.report import bound_line, near_line
from medyanpy.demo.surface import SURFACE, TIMESTEP, TOLERANCE, billiards
from medyanpy.forces import Ricker
from medyanpy.integrators import SplittingIntegrator
from medyanpy.simulation import Simulation
from medyanpy.surfaces import Polynomial
from medyanpy.system import System
from medyanpy.topology import Topology
from medyanpy.visualize import movie

from .plates import PUBLISHED, Made, Plate, Row, Work, above_line, letters, panels

STEPS = 2000
# Ricker's potential, and of which path the interacting particles are taken.
DEPTH, DISTANCE = 0.5, SURFACE.a / 6.0
PATH, SKIP = 3, 100
VIEW = (38.0, -20.0)


# Paths ------------------------------------------------------------------------------------------------------


@cache
def _paths(timestep: float, end: float) -> dict[str, np.ndarray]:
    """Of the 25: times, positions and velocities (steps + 1, 25, 3), and multipliers (steps + 1, 25)."""
    system, start = billiards(timestep)
    context = Context(system, SplittingIntegrator("BAB", timestep), threads=1)
    context.set_state(start)
    steps = round(end / timestep)
    x, v, multipliers = [], [], []
    for _ in range(steps + 1):
        state = context.get_state(positions=True, velocities=True, multipliers=True)
        x.append(state.positions)
        v.append(state.velocities)
        multipliers.append(next(iter(state.multipliers.values())))
        context.step(1)
    return {
        "t": timestep * np.arange(steps + 1),
        "x": np.array(x),
        "v": np.array(v),
        "multipliers": np.array(multipliers),
    }


def _energies(paths: dict[str, np.ndarray]) -> np.ndarray:
    """(k, 25) (E - E0) / <K> of each particle."""
    kinetic = 0.5 * (paths["v"] ** 2).sum(axis=2)
    energy = kinetic + paths["x"][:, :, 2]
    return np.asarray((energy - energy[0]) / kinetic.mean(axis=0))


# The plane curve --------------------------------------------------------------------------------------------


def lemniscate(work: Work) -> Made:
    """Bernoulli's lemniscate by its parameter, on the contour of the polynomial; and what is inflated around it."""
    t = np.linspace(0.0, 2.0 * np.pi, 256)
    x, y = np.sin(t) / (1.0 + np.cos(t) ** 2), np.sin(t) * np.cos(t) / (1.0 + np.cos(t) ** 2)
    curve = Polynomial("(x^2 + y^2)^2 - a^2*(x^2 - y^2)", a=SURFACE.a)
    off = curve.value(np.column_stack([x, y, 0.0 * t]))
    u, v = np.meshgrid(np.linspace(-1.25, 1.25, 251), np.linspace(-0.6, 0.6, 121))
    f = curve.value(np.column_stack([u.ravel(), v.ravel(), 0.0 * u.ravel()])).reshape(u.shape)
    figure, axes = panels(1, 2, (7.2, 2.6))
    axes[0].plot(x[::4], y[::4], "o", color="C0", markerfacecolor="none", label="parameter $t$")
    axes[0].contour(u, v, f, levels=[0.0], colors="0.25", linewidths=1.0)
    axes[0].plot([], [], **PUBLISHED, label="$f(x, y) = 0$")
    axes[0].legend(loc="upper center", ncols=2)
    for r, color in ((1.0 / 6.0, "C0"), (0.24, "C1"), (0.3, "C3")):
        axes[1].contour(u, v, np.abs(f), levels=[r], colors=color, linewidths=1.0)
        axes[1].plot([], [], color=color, label=f"r = {r:.3g}")
    axes[1].legend(loc="upper center", ncols=3)
    for axis in axes:
        axis.set(xlabel="$x/a$", ylabel="$y/a$", aspect="equal", ylim=(-0.65, 0.85))
    letters(axes, ("the curve", "cuts $z = 0$: holes for $r < a/4$"))
    # The middle of a lobe is where f is lowest: a hole is left where r does not reach it.
    middle = curve.project(np.array([[1.0, 0.0, 0.0]]))[0]
    lobes = np.linspace(0.0, 1.0, 100_001)
    deepest = -float(curve.value(np.column_stack([lobes, 0.0 * lobes, 0.0 * lobes])).min())
    rows = [
        Row(bound_line("largest |f| along the parameter", float(np.abs(off).max()), 1e-14), "f = 0"),
        Row(near_line("reach of the curve", float(middle[0]), SURFACE.a, 1e-12, "a"), "x = a at t = π/2"),
        Row(near_line("largest r with two holes", deepest, 1.0 / np.sqrt(2.0), 1e-6, "a")).but(
            "the essay guesses a/√2, and that it could be much less: it is a/4, f at the middle of a lobe"
        ),
    ]
    return Made(figure, rows, "a = 1; 256 values of the parameter")


# Energies ---------------------------------------------------------------------------------------------------


def energy(work: Work) -> Made:
    """Energies of all 25 paths over the mean kinetic energy, and with half the timestep."""
    end = 20.0
    found = {n: _paths(TIMESTEP / n, end) for n in (1, 2)}
    off = {n: 100.0 * _energies(paths) for n, paths in found.items()}
    figure, axes = panels(1, 2, (7.2, 2.9), sharex=True, sharey=True)
    for axis, n in zip(axes, found, strict=True):
        axis.plot(found[n]["t"], off[n], linewidth=0.6)
        axis.set(xlabel="$t$", ylabel="$(E - E_0)/\\langle K\\rangle$, %" if n == 1 else "")
    letters(axes, (f"δt = {TIMESTEP:g}", f"δt = {TIMESTEP / 2:g}"))
    largest = {n: float(np.abs(e).max()) for n, e in off.items()}
    rms = float(np.divide(*(np.sqrt(np.mean(e**2)) for e in off.values())))
    ratio = float(np.divide(*(np.median(np.abs(e).max(axis=0)) for e in off.values())))
    x = found[1]["x"].reshape(-1, 3)
    distance = np.abs(SURFACE.value(x)) / np.linalg.norm(SURFACE.gradient(x), axis=1)
    rows = [
        Row(near_line("largest deviation of an energy", largest[1], 1.0, 0.5, "%"), "on the order of 1%"),
        Row(near_line("rms deviation: δt over δt/2", rms, 4.0, 0.15), "cut by a factor of four with half the timestep")
        .but("larger, and still 4.8 from δt/2 to δt/4: paths that turn closely are not yet in the lowest order of δt"),
        Row(near_line("the median of the 25 largest deviations: δt over δt/2", ratio, 4.0, 0.15),
            "cut by a factor of four with half the timestep"),
        Row(near_line("the largest of all: δt over δt/2", largest[1] / largest[2], 4.0, 0.25), "the same"),
        Row(bound_line("largest distance from the surface", float(distance.max()), 2.0 * TOLERANCE, "a"), "0 = g(q)"),
    ]  # fmt: skip
    return Made(figure, rows, f"25 particles, RATTLE (word BAB) to t = {end:g}")


# Multipliers ------------------------------------------------------------------------------------------------


def multipliers(work: Work) -> Made:
    """The multiplier of one path against time, the one that the package reports and RATTLE's of each step."""
    end, which = 20.0, 6
    paths = _paths(TIMESTEP, end)
    t, x, v, reported = paths["t"], paths["x"][:, which], paths["v"][:, which], paths["multipliers"][:, which]
    gradient, hessian = SURFACE.gradient(x), SURFACE.hessian(x)
    square = (gradient**2).sum(axis=1)
    gravity = np.array([0.0, 0.0, -1.0])
    # q' - q = δt v + δt²/2 (f - λ∇g), in the essay's own words.
    step = x[1:] - x[:-1] - TIMESTEP * v[:-1] - 0.5 * TIMESTEP**2 * gravity
    rattle = -2.0 / TIMESTEP**2 * np.einsum("ij,ij->i", step, gradient[:-1]) / square[:-1]
    bend = np.einsum("ki,kij,kj->k", v, hessian, v) / square
    law = bend + gradient @ gravity / square
    halved = _paths(0.5 * TIMESTEP, end)["multipliers"][:, which]
    # Up to where the paths of the two timesteps have not come apart.
    change = [
        float(np.abs(np.diff(m[: round(4.0 / h)])).max()) for m, h in ((reported, TIMESTEP), (halved, 0.5 * TIMESTEP))
    ]
    figure, axes = panels(2, 1, (7.0, 4.4), sharex=True)
    axes[0].plot(t[:-1], rattle, "-", color="C1", linewidth=2.2, alpha=0.5, label="λ of RATTLE's steps")
    axes[0].plot(t, reported, color="C0", linewidth=0.8, label="λ as the package reports it")
    axes[0].set(ylabel="λ", ylim=(None, 1.3 * reported.max()))
    axes[0].legend(ncols=2)
    norm = np.sqrt(square)
    axes[1].plot(t, bend * norm, color="C2", linewidth=2.2, alpha=0.5, label="$-\\kappa_n |v|^2$")
    axes[1].plot(t, reported * norm - gradient @ gravity / norm, color="C0", linewidth=0.8,
                 label="$\\lambda |\\nabla g| - f\\cdot n$")  # fmt: skip
    axes[1].set(xlabel="$t$", ylabel="force per mass", ylim=(None, 1.3 * (bend * norm).max()))
    axes[1].legend(ncols=2)
    letters(axes, ("the multiplier of path 6", "the force that it stands for is the curvature along the path"))

    def rms(a: Any) -> Any:
        return float(np.sqrt(np.mean(a**2)))

    rows = [
        Row(bound_line("reported λ against (m vᵀHv + f·∇g)/|∇g|², rms, relative",
                       rms(reported - law) / rms(law), 1e-9), "an indicator of the local curvature"),
        Row(bound_line("λ of RATTLE's steps against this, rms, relative",
                       rms(rattle - reported[:-1]) / rms(reported), 0.15), "0 = g(q'), solved for λ"),
        Row(near_line("largest change of λ in a step: δt over δt/2", change[0] / change[1], 2.0, 0.1),
            "not smooth, pretty sharp transitions: steep, but smooth, as it halves with the step"),
    ]  # fmt: skip
    return Made(figure, rows, f"particle 6 of 25, δt = {TIMESTEP:g}, to t = {end:g}")


# Ricker's potential -----------------------------------------------------------------------------------------


def ricker(work: Work) -> Made:
    """The potential between particles: energies and forces of a pair."""
    r = np.linspace(0.0, 3.0 * DISTANCE, 61)
    topology = Topology()
    pair = topology.add_beads([[0.0, 0.0, 0.0], [DISTANCE, 0.0, 0.0]], mass=1.0)
    system = System(topology)
    system.add_force(Ricker(pair, pair, depth=DEPTH, distance=DISTANCE))
    context = Context(system, SplittingIntegrator("BAB", TIMESTEP), threads=1)
    energies: Any = []
    forces: Any = []
    for distance in r:
        context.set_positions([[0.0, 0.0, 0.0], [distance, 0.0, 0.0]])
        state = context.get_state(forces=True, energy=True)
        energies.append(state.potential_energy)
        forces.append(state.forces[1, 0])
    energies, forces = np.array(energies), np.array(forces)

    def law(rho: Any) -> Any:
        return 0.5 * DEPTH * (1.0 - 3.0 * rho**2) * np.exp(1.5 * (1.0 - rho**2))

    def slope(rho: Any) -> Any:
        return 0.5 * DEPTH * (9.0 * rho**3 - 9.0 * rho) * np.exp(1.5 * (1.0 - rho**2)) / DISTANCE

    rho, fine = r / DISTANCE, np.linspace(0.0, 3.0, 300)
    figure, axes = panels(1, 2, (7.0, 2.8))
    axes[0].plot(fine, law(fine), **PUBLISHED, label="essay")
    axes[0].plot(rho, energies, "o", color="C0", markerfacecolor="none", markersize=3, label="pair of beads")
    axes[1].plot(fine, -slope(fine), **PUBLISHED, label="$-dU/dr$")
    axes[1].plot(rho, forces, "o", color="C0", markerfacecolor="none", markersize=3, label="pair of beads")
    axes[1].plot(fine, slope(fine), ":", color="C3", linewidth=0.8, label="as in the essay's program: $+dU/dr$")
    axes[0].set(xlabel="distance / equilibrium", ylabel="potential")
    axes[1].set(xlabel="distance / equilibrium", ylabel="force")
    for axis in axes:
        axis.axhline(0.0, color="0.8", linewidth=0.5, zorder=0)
        axis.legend()
    letters(axes, ("Ricker's potential", "its force: repels below equilibrium"))
    deepest = int(np.argmin(energies))
    rows = [
        Row(bound_line("largest difference from the essay's formula", float(np.abs(energies - law(rho)).max()), 1e-8),
            "U_e/2 (1 - 3ρ²) exp(3/2 (1 - ρ²))"),
        Row(near_line("where it is lowest", float(rho[deepest]), 1.0, 1e-12, "r_e"), "equilibrium"),
        Row(near_line("depth", -float(energies[deepest]), DEPTH, 1e-7), "U_e = 0.5"),
        Row(near_line("at zero distance", float(energies[0]), 0.5 * DEPTH * np.exp(1.5), 1e-7), "finite"),
        Row(bound_line("largest difference of the force from -dU/dr", float(np.abs(forces + slope(rho)).max()), 1e-6),
            "the essay's program has the other sign"),
    ]  # fmt: skip
    return Made(figure, rows, f"U_e = {DEPTH:g}, r_e = a/6, 61 distances")


# Interacting particles --------------------------------------------------------------------------------------


def _interacting(timestep: float) -> Simulation:
    """At rest at every hundredth place of one of the paths."""
    start = _paths(TIMESTEP, 20.0)["x"][::SKIP, PATH]
    topology = Topology()
    beads = topology.add_surface_points(SURFACE, start, mass=1.0, tolerance=TOLERANCE, name="beads")
    system = System(topology)
    system.add_force(Ricker(beads, beads, depth=DEPTH, distance=DISTANCE))
    return Simulation(system, SplittingIntegrator("BAB", timestep), threads=1)


def interacting(work: Work) -> Made:
    """Particles that attract each other, from rest: energy, and which of them are bound."""
    end = 20.0
    energies: dict[Any, Any] = {}
    x: Any = []
    for n in (1, 2):
        context, found = _interacting(TIMESTEP / n).context, []
        for _ in range(round(end / TIMESTEP) + 1):
            state = context.get_state(positions=True, energy=True)
            found.append((state.potential_energy, state.kinetic_energy))
            if n == 1:
                x.append(state.positions)
            context.step(n)
        energies[n] = np.array(found)
    x, t = np.array(x), TIMESTEP * np.arange(len(x))
    apart = np.linalg.norm(x[:, :, None] - x[:, None, :], axis=3) / DISTANCE
    nearest = (apart + np.where(np.eye(x.shape[1]), np.inf, 0.0)).min(axis=2)
    # Bound: for the last quarter never farther from all others than where a twentieth of the well is left.
    bound = nearest[3 * len(t) // 4 :].max(axis=0) < 2.0
    figure, axes = panels(1, 3, (8.0, 2.9))
    total = energies[1].sum(axis=1)
    axes[0].plot(t, energies[1][:, 0], linewidth=0.8, label="potential")
    axes[0].plot(t, energies[1][:, 1], linewidth=0.8, label="kinetic")
    axes[0].plot(t, total, color="k", linewidth=0.8, label="total")
    axes[0].set(xlabel="$t$", ylabel="energy", ylim=(None, 55.0))
    axes[0].legend(loc="upper left")
    for n, color in ((1, "C0"), (2, "C1")):
        e = energies[n].sum(axis=1)
        axes[1].plot(t, e - e[0], color=color, linewidth=0.6, label=f"δt = {TIMESTEP / n:g}")
    axes[1].set(xlabel="$t$", ylabel="$E - E_0$")
    axes[1].legend()
    first, second = np.triu_indices(x.shape[1], 1)
    pairs = int((apart[3 * len(t) // 4 :, first, second].max(axis=0) < 2.0).sum())
    order = np.argsort(nearest[3 * len(t) // 4 :].max(axis=0))
    for k, color, name in ((order[0], "C0", "bound"), (order[2], "C2", None), (order[-1], "0.6", "free")):
        axes[2].plot(t, nearest[:, k], color=color, linewidth=0.7, label=name)
    axes[2].set(xlabel="$t$", ylabel="distance to the nearest / $r_e$")
    axes[2].legend()
    letters(axes, ("energies", "change of the total", f"{int(bound.sum())} of {len(bound)} are bound"))
    # Their motion is chaotic: the order shows before the paths of two timesteps have come apart.
    errors = {n: np.abs(e.sum(axis=1) - e.sum(axis=1)[0]) / energies[1][:, 1].mean() for n, e in energies.items()}
    early = t <= 1.5
    rows = [
        Row(near_line("particles", x.shape[1], 21, 1e-9), "every 100th point of one trajectory of 2000 steps"),
        Row(bound_line("largest |E - E0| over the mean kinetic energy", float(errors[1].max()), 0.05),
            "not said"),
        Row(near_line("the same up to t = 1.5: δt over δt/2",
                      float(errors[1][early].max() / errors[2][early].max()), 4.0, 0.15),
            "second order"),
        Row(near_line("the same to t = 20", float(errors[1].max() / errors[2].max()), 4.0, 0.15), "second order")
        .but("chaotic: the paths of the two timesteps have come apart, and meet different encounters"),
        Row(above_line("pairs never farther apart than 2 r_e in the last quarter", float(pairs), 0.0),
            "two particles bind").but(
            "there are none that stay pairs: particles are bound to a crowd, whose members change places"),
        Row(near_line("never alone in the last quarter are some, not all",
                      float(bound.any() and not bound.all()), 1.0, 1e-9),
            f"some become bound, others remain free; here {bound.sum()} and {(~bound).sum()}"),
    ]  # fmt: skip
    return Made(figure, rows, f"21 particles at rest, δt = {TIMESTEP:g}, 2000 steps, force -dU/dr")


# Movies -----------------------------------------------------------------------------------------------------


def _film(simulation: Simulation, n: int, every: int, trail: int, size: tuple[int, int]) -> Made:
    def frames() -> Iterator[Simulation]:
        for _ in range(n):
            simulation.step(every)
            yield simulation

    def write(path: Path) -> None:
        movie(frames(), path, trail=trail, fps=20, size=size, view=VIEW, unit="", point_radius=0.022, overwrite=True)

    sample = f"{n} frames, {every} steps apart (essay: 1900, one)"
    if find_spec("skimage") is None:
        sample += "; without the surface, for want of scikit-image: pip install 'medyanpy[surfaces]'"
    return Made(write, [], sample)


def _length(work: Work) -> tuple[int, int, int, tuple[int, int]]:
    """Frames, steps between them, those that a trail shows (the essay's has 100 steps), and pixels."""
    frames, every = work.of(20, 150), work.of(8, 13)
    return frames, every, 100 // every, work.of((240, 160), (480, 320))


def film(work: Work) -> Made:
    """The 25 particles, each with the way behind it."""
    system, start = billiards(TIMESTEP)
    simulation = Simulation(system, SplittingIntegrator("BAB", TIMESTEP), threads=1)
    simulation.context.set_state(start)
    return _film(simulation, *_length(work))


def film_interacting(work: Work) -> Made:
    """The particles that attract each other."""
    return _film(_interacting(TIMESTEP), *_length(work))


FIGURES: tuple[Plate, ...] = (
    Plate("003_lemniscate.png", "first plot", "Bernoulli's lemniscate", lemniscate, (1.0, 1.0)),
    Plate("003_energy.png", "second plot", "energies of 25 particles", energy, (1.0, 2.0)),
    Plate("003_film.gif", "first movie", "25 particles fall from the top", film, (2.0, 40.0)),
    Plate("003_multipliers.png", "third plot", "the multiplier against time", multipliers, (1.0, 1.0)),
    Plate("003_ricker.png", "fourth plot", "Ricker's potential", ricker, (1.0, 1.0)),
    Plate("003_interacting.png", "of the second movie", "particles that interact", interacting, (1.0, 2.0)),
    Plate("003_film_interacting.gif", "second movie", "particles that interact", film_interacting, (2.0, 40.0)),
)
