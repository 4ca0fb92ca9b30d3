"""Daniel Shapero, Billiards on surfaces (2021): an essay with a program, on particles that stay on an inflated
lemniscate of Bernoulli.

Everything is the essay's: a = 1, r = a/6, 25 particles from the top at unit speed under unit gravity, a timestep of
0.01, 2000 steps; then those of every hundredth place of the third path, at rest, with Ricker's potential. Two of its
slips are not repeated: the position goes on by +δt M⁻¹p, and holes need r < a/4. Its program has the force with the
other sign, +dU/dr: what it says of particles that bind is shown with that, beside what -dU/dr does.
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
from medyanpy.forces import CustomPair, Ricker, UniformField
from medyanpy.integrators import SplittingIntegrator
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.steps import AdaptiveSteps
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


def _interacting(timestep: float, sign: int) -> Simulation:
    """At rest at every hundredth place of one of the paths, with the force sign · dU/dr: +1 in the essay's program."""
    start = _paths(TIMESTEP, 20.0)["x"][::SKIP, PATH]
    topology = Topology()
    beads = topology.add_surface_points(SURFACE, start, mass=1.0, tolerance=TOLERANCE, name="beads")
    system = System(topology)
    if sign < 0:
        system.add_force(Ricker(beads, beads, depth=DEPTH, distance=DISTANCE))
    else:
        well = "-d/2*(1 - 3*s)*exp(1.5*(1 - s)); s = (r/e)^2"
        system.add_force(CustomPair(beads, beads, well, cutoff=2.5 * SURFACE.a, d=DEPTH, e=DISTANCE))
    return Simulation(system, SplittingIntegrator("BAB", timestep), threads=1)


def _run(timestep: float, end: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (k, 21, 3) and potential and kinetic energies (k, 2), at every TIMESTEP."""
    context = _interacting(timestep, sign).context
    x: Any = []
    energies: Any = []
    for _ in range(round(end / TIMESTEP) + 1):
        state = context.get_state(positions=True, energy=True)
        energies.append((state.potential_energy, state.kinetic_energy))
        x.append(state.positions)
        context.step(round(TIMESTEP / timestep))
    return np.array(x), np.array(energies)


def _company(x: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    """How many pairs stay within 2 r_e in the last quarter; each particle's distance to its nearest, (k, 21) r_e; and
    the largest of these in the last quarter, (21,): below 2, where a twentieth of the well is left, it is bound."""
    apart = np.linalg.norm(x[:, :, None] - x[:, None, :], axis=3) / DISTANCE
    nearest = (apart + np.where(np.eye(x.shape[1]), np.inf, 0.0)).min(axis=2)
    first, second = np.triu_indices(x.shape[1], 1)
    last = slice(3 * len(x) // 4, None)
    pairs = int((apart[last, first, second].max(axis=0) < 2.0).sum())
    return pairs, nearest, nearest[last].max(axis=0)


def interacting(work: Work) -> Made:
    """Particles from rest, with the essay's own force and with minus the derivative: energy, and which are bound."""
    end = 20.0
    x: dict[int, np.ndarray] = {}
    energies: dict[Any, np.ndarray] = {}
    for sign in (1, -1):
        x[sign], energies[sign, 1] = _run(TIMESTEP, end, sign)
    _, energies[-1, 2] = _run(0.5 * TIMESTEP, end, -1)
    t = TIMESTEP * np.arange(len(x[1]))
    found = {sign: _company(places) for sign, places in x.items()}
    figure, axes = panels(2, 2, (7.6, 5.0), sharex=True)
    own, known = energies[1, 1], energies[-1, 1]
    for axis, both in ((axes[0], own), (axes[2], known)):
        for part, name in ((both[:, 0], "potential"), (both[:, 1], "kinetic")):
            axis.plot(t, part, linewidth=0.8, label=name)
        axis.plot(t, both.sum(axis=1), color="k", linewidth=0.8, label="total")
        low, high = axis.get_ylim()
        axis.set(ylabel="energy", ylim=(low, high + 0.3 * (high - low)))
        axis.legend(loc="upper center", ncols=3)
    for axis, sign in ((axes[1], 1), (axes[3], -1)):
        _, nearest, farthest = found[sign]
        order = np.argsort(farthest)
        for k, color, name in ((order[0], "C0", "the closest"), (order[-1], "0.6", "the freest")):
            axis.plot(t, nearest[:, k], color=color, linewidth=0.7, label=name)
        axis.axhline(2.0, color="C3", linewidth=0.6, linestyle="--", label="bound below")
        axis.set(ylabel="distance to the nearest / $r_e$", ylim=(0.0, 1.3 * nearest[:, order[[0, -1]]].max()))
        axis.legend(loc="upper center", ncols=3)
    for axis in axes[2:]:
        axis.set(xlabel="$t$")
    bound = {sign: farthest < 2.0 for sign, (_, _, farthest) in found.items()}
    letters(axes, ("the essay's force, $+dU/dr$", f"{found[1][0]} pairs stay, {bound[1].sum()} of 21 never alone",
                   "$-dU/dr$", f"{found[-1][0]} pairs stay, {bound[-1].sum()} of 21 never alone"))  # fmt: skip
    # Their motion is chaotic: the order shows before the paths of two timesteps have come apart.
    errors = {
        key: np.abs(e.sum(axis=1) - e.sum(axis=1)[0]) / energies[key[0], 1][:, 1].mean() for key, e in energies.items()
    }
    early = t <= 1.5
    rows = [
        Row(near_line("particles", x[1].shape[1], 21, 1e-9), "every 100th point of one trajectory of 2000 steps"),
        Row(above_line("pairs never farther apart than 2 r_e in the last quarter", float(found[1][0]), 0.0),
            "two particles bind; with the essay's own force, 3 to 5 in starts that differ by rounding"),
        Row(near_line("never alone in the last quarter are some, not all",
                      float(bound[1].any() and not bound[1].all()), 1.0, 1e-9),
            f"some become bound, others remain free; with the essay's own force {bound[1].sum()} and "
            f"{(~bound[1]).sum()}"),
        Row(bound_line("such pairs with -dU/dr", float(found[-1][0]), 0.5),
            f"not said; that force repels below r_e, so that pairs come apart when others pass; {bound[-1].sum()} "
            "particles are never alone"),
        Row(bound_line("largest |E - E0| over the mean kinetic energy, +dU/dr", float(errors[1, 1].max()), 0.05),
            "not said"),
        Row(bound_line("the same, -dU/dr", float(errors[-1, 1].max()), 0.05), "not said"),
        Row(near_line("the same up to t = 1.5: δt over δt/2",
                      float(errors[-1, 1][early].max() / errors[-1, 2][early].max()), 4.0, 0.15),
            "second order"),
        Row(near_line("the same to t = 20", float(errors[-1, 1].max() / errors[-1, 2].max()), 4.0, 0.15),
            "second order").but(
            "chaotic: the paths of the two timesteps have come apart, and meet different encounters"),
    ]  # fmt: skip
    return Made(figure, rows, f"21 particles at rest, δt = {TIMESTEP:g}, 2000 steps, both signs of the force")


# Adaptive steps ---------------------------------------------------------------------------------------------

# The sum of the squared principal curvatures of g = f² + z² - r² at a = 1: its gradient is (2 u, 2 v, 2 z).
CURVATURE = """
    ((4*f1*f1 + 8*m*m + 4*f2*f2 + 4) - 2*(p*p + q*q + 4*z*z)/n + ((u*p + v*q + 2*z*z)/n)^2)/(4*n);
    p = 2*f1*u + 2*m*v; q = 2*m*u + 2*f2*v; n = u*u + v*v + z*z;
    f1 = a*a + f*(12*x*x + 4*y*y - 2); f2 = b*b + f*(4*x*x + 12*y*y + 2); m = a*b + 8*f*x*y;
    u = f*a; v = f*b; a = 4*x*s - 2*x; b = 4*y*s + 2*y; f = s*s - x*x + y*y; s = x*x + y*y
"""


def _worst(system: System, start: State, integrator: Any, end: float) -> tuple[int, float, np.ndarray, np.ndarray]:
    """Steps taken to a time; the largest |E - E0|; times; and E - E0."""
    context = Context(system, integrator, threads=1)
    context.set_state(start)
    before = context.get_state(energy=True).total_energy
    times: Any = [0.0]
    off: Any = [0.0]
    while context.time < end * (1.0 - 1e-9):
        context.step(1)
        times.append(context.time)
        off.append(context.get_state(energy=True).total_energy - before)
    return context.step_count, float(np.abs(off).max()), np.array(times), np.array(off)


def _orbit() -> tuple[System, State]:
    """Two bodies on a Kepler orbit of eccentricity 0.9, at their farthest; the period is 2π."""
    topology = Topology()
    one, two = (topology.add_beads([[0.5 * x, 0.0, 0.0]], mass=1.0) for x in (-1.9, 1.9))
    system = System(topology)
    system.add_force(CustomPair(one, two, "-0.5/r", cutoff=40.0))
    context = Context(system, SplittingIntegrator("BAB", TIMESTEP), threads=1)
    v = 0.5 * np.sqrt(0.1 / 1.9)
    context.set_velocities([[0.0, -v, 0.0], [0.0, v, 0.0]])
    return system, context.get_state(positions=True, velocities=True)


def adaptive(work: Work) -> Made:
    """Adaptive steps on close encounters and on the essay's surface, beside equal ones."""
    from matplotlib.ticker import NullFormatter

    system, start = _orbit()
    near = AdaptiveSteps(pairs="1/r^3", cutoff=40.0)
    step, end = 0.04, 4.0 * np.pi
    n, bound, times, off = _worst(system, start, SplittingIntegrator("BAB", step, steps=near), end)
    figure, axes = panels(1, 3, (8.4, 3.0))
    found = {k: _worst(system, start, SplittingIntegrator("BAB", end / (k * n)), end) for k in (4, 8, 16)}
    for factor, color in ((4, "C3"), (16, "C1")):
        _, _, t, e = found[factor]
        axes[0].semilogy(t[1:] / (2.0 * np.pi), np.abs(e[1:]) + 1e-8, color=color, linewidth=0.8,
                         label=f"equal, {factor} times as many")  # fmt: skip
    axes[0].semilogy(times[1:] / (2.0 * np.pi), np.abs(off[1:]) + 1e-8, color="C0", linewidth=0.8, label="adaptive")
    axes[0].set(xlabel="periods", ylabel="$|E - E_0|$", ylim=(1e-7, 30.0))
    axes[0].legend(loc="upper center")
    many = np.array(sorted(found))
    errors = np.array([found[k][1] for k in many])
    # Of order 2: how many times as many equal steps have this error.
    factor = float(np.exp(np.interp(-np.log(bound), -np.log(errors), np.log(many))))
    axes[1].semilogy(times[1:] / (2.0 * np.pi), np.diff(times), color="C0", linewidth=0.8)
    axes[1].axhline(step, **PUBLISHED)
    axes[1].set(xlabel="periods", ylabel="step", ylim=(None, 2.0 * step))
    axes[1].yaxis.set_minor_formatter(NullFormatter())
    axes[1].text(0.02, 1.15 * step, "$\\Delta t$", fontsize=7.5)
    # Each particle alone: steps are of all beads.
    _, all_of_them = billiards(TIMESTEP)
    curved = AdaptiveSteps(field=f"1/36*{CURVATURE.strip()}")
    paths: Any = []
    for k in range(0, 25, work.of(5, 1)):
        topology = Topology()
        beads = topology.add_surface_points(
            SURFACE, all_of_them.positions[[k]], mass=1.0, tolerance=TOLERANCE
        )
        system = System(topology)
        system.add_force(UniformField(beads, [0.0, 0.0, -1.0]))
        context = Context(system, SplittingIntegrator("BAB", TIMESTEP), threads=1)
        context.set_velocities(all_of_them.velocities[[k]])
        start = context.get_state(positions=True, velocities=True)
        taken, own, _, _ = _worst(system, start, SplittingIntegrator("BAB", 0.02, steps=curved), 20.0)
        _, equal, _, _ = _worst(system, start, SplittingIntegrator("BAB", 20.0 / taken), 20.0)
        paths.append((own, equal))
    own, equal = np.array(paths).T
    axes[2].loglog(equal, own, "o", color="C0", markerfacecolor="none")
    low, high = 0.7 * min(own.min(), equal.min()), 1.4 * max(own.max(), equal.max())
    axes[2].text(0.97, 0.05, "below: adaptive is better", fontsize=7.0, ha="right", transform=axes[2].transAxes)
    axes[2].plot([low, high], [low, high], **PUBLISHED)
    axes[2].set(xlabel="equal steps: largest $|E - E_0|$", ylabel="adaptive, as many steps", xlim=(low, high),
                ylim=(low, high), aspect="equal")  # fmt: skip
    letters(axes, ("Kepler, e = 0.9", "the steps", f"{len(own)} paths of the essay"))
    rows = [
        Row(near_line("equal steps over adaptive ones at the same largest error, e = 0.9", factor, 12.0, 0.1),
            "there don't appear to be any simple structure-preserving adaptive schemes: this one is reversible"),
        Row(above_line("equal over adaptive steps, largest error on the surface, median of the paths",
                       float(np.median(equal / own)), 1.5), "the same; as many steps, shorter where the surface bends"),
    ]  # fmt: skip
    sample = (
        f"Kepler: {n} adaptive steps in two periods, Δt = {step:g}, c = 1/r³; surface: to t = 20, Δt = 0.02, c = sum "
        "of squared curvatures over 36; (1 + c)^½"
    )
    return Made(figure, rows, sample)


# Movies -----------------------------------------------------------------------------------------------------


def _film(simulation: Simulation, n: int, every: int, trail: int, size: tuple[int, int]) -> Made:
    """A film of n frames, so many steps apart. Trails have a place every third step: chords between frames would cut
    through the surface."""
    apart = every // SPACING

    def frames() -> Iterator[Simulation]:
        for _ in range((n - 1) * apart + 1):
            simulation.step(SPACING)
            yield simulation

    def write(path: Path) -> None:
        movie(
            frames(), path, trail=trail // SPACING, every=apart, fps=20, size=size, view=VIEW, unit="",
            point_radius=0.022, overwrite=True,
        )  # fmt: skip

    sample = f"{n} frames, {every} steps apart (essay: 1900, one)"
    if find_spec("skimage") is None:
        sample += "; without the surface, for want of scikit-image: pip install 'medyanpy[surfaces]'"
    return Made(write, [], sample)


# Steps between the places of a trail.
SPACING = 3


def _length(work: Work) -> tuple[int, int, int, tuple[int, int]]:
    """Frames, steps between them, those that a trail shows (the essay's has 100), and pixels."""
    return work.of(20, 160), work.of(9, 12), 100, work.of((240, 160), (480, 320))


def film(work: Work) -> Made:
    """The 25 particles, each with the way behind it."""
    system, start = billiards(TIMESTEP)
    simulation = Simulation(system, SplittingIntegrator("BAB", TIMESTEP), threads=1)
    simulation.context.set_state(start)
    return _film(simulation, *_length(work))


def film_interacting(work: Work) -> Made:
    """The particles with the essay's own force."""
    return _film(_interacting(TIMESTEP, 1), *_length(work))


def film_repelling(work: Work) -> Made:
    """The same with minus the derivative of the potential."""
    return _film(_interacting(TIMESTEP, -1), *_length(work))


FIGURES: tuple[Plate, ...] = (
    Plate("003_lemniscate.png", "first plot", "Bernoulli's lemniscate", lemniscate, (1.0, 1.0)),
    Plate("003_energy.png", "second plot", "energies of 25 particles", energy, (1.0, 2.0)),
    Plate("003_film.gif", "first movie", "25 particles fall from the top", film, (3.0, 60.0)),
    Plate("003_multipliers.png", "third plot", "the multiplier against time", multipliers, (1.0, 1.0)),
    Plate("003_ricker.png", "fourth plot", "Ricker's potential", ricker, (1.0, 1.0)),
    Plate("003_interacting.png", "of the second movie", "particles that interact", interacting, (2.0, 4.0)),
    Plate("003_adaptive.png", "conclusion", "adaptive steps", adaptive, (3.0, 8.0)),
    Plate("003_film_interacting.gif", "second movie", "particles that interact", film_interacting, (3.0, 60.0)),
    Plate("003_film_minus.gif", "beside it", "the same with the force -dU/dr", film_repelling, (3.0, 60.0)),
)
