"""Billiards on a surface with two holes.

Beads that stay on an implicit surface, the inflated lemniscate of Bernoulli: 25 of them fall from its top in all
directions, as in the essay that this is after. Nothing here has a unit: mass, gravity and kT are 1, and so is the reach
of the lemniscate.
"""

from importlib.util import find_spec
from math import exp, tanh
from typing import Any

import numpy as np

from medyanpy import forces, units
from medyanpy.context import Context
from medyanpy.demo.report import (
    Demo,
    Line,
    Option,
    Report,
    at_temperature,
    bound_line,
    demo,
    mean_line,
    near_line,
    temperature_line,
    uniformity_line,
)  # fmt: skip
from medyanpy.integrators import SplittingIntegrator
from medyanpy.reporters import Reporter
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.surfaces import Lemniscate, Sphere, Surface, Torus
from medyanpy.system import System
from medyanpy.topology import Topology

SURFACE = Lemniscate(2, a=1.0, r=1.0 / 6.0)
BILLIARDS, TIMESTEP, DURATION = 25, 0.01, 20.0
# Largest deviation of the energy over the mean kinetic energy, %, with the timestep and a half and a quarter of it,
# by a program written for that alone; and how far from it others may be. Paths are chaotic: directions changed by 1e-13
# give 1.229 to 1.241, 0.269 to 0.308 and 0.066 to 0.076.
DEVIATIONS, WITHIN = (1.23, 0.28, 0.066), (0.02, 0.2, 0.2)
# Frames of the trajectory, and of the movie, which shows the first of them.
FRAMES, MOVIE_FRAMES = 400, 60
# Steps between positions along the trails of the picture, and how many of them.
TRAIL_INTERVAL, TRAIL = 4, 25
# Distance to which beads are kept to a surface of size 1.
TOLERANCE = 1e-12
VIEW = (38.0, -20.0)
LOOKS: dict[str, Any] = {"unit": "", "point_radius": 0.022}


@demo(
    "surface",
    "beads that fall along a surface with two holes, without units",
    walkers=Option(4000, "Brownian points of the measurements", 100),
    steps=Option(2000, "time steps"),
    more_outputs=["movie.gif"],
)
def run_surface_demo(report: Report, walkers: int) -> Demo:
    about = f"lemniscate of genus {SURFACE.foci}, a = {SURFACE.a:g}, r = {SURFACE.r:.3g}; no units"
    report.begin(about, "surface")
    if find_spec("skimage") is None:
        report.note("not in the pictures, for want of scikit-image: pip install 'medyanpy[surfaces]'")
    report.note(f"{BILLIARDS} beads start at its top with speed 1 in all directions, under gravity")
    system, start = billiards(TIMESTEP)
    watch = _Watch()
    report.run(
        system, SplittingIntegrator("BAB", TIMESTEP), start, [watch], frames=FRAMES, view=VIEW, size=(1200, 800),
        trails=watch.past, **LOOKS,
    )  # fmt: skip
    report.movie(lambda frames: frames[:MOVIE_FRAMES], trail=20, fps=15, size=(480, 320), view=VIEW, **LOOKS)
    report.say("laws      energy at three timesteps; Brownian points; diffusion on a sphere; geodesics of a torus")
    lines = [
        near_line(f"energy error, dt{part}", 100.0 * _energy_error(TIMESTEP / n), expected, within, "%")
        for part, n, expected, within in zip(("", "/2", "/4"), (1, 2, 4), DEVIATIONS, WITHIN, strict=True)
    ]
    lines.append(bound_line("largest distance from the surface, relative", watch.off, 1.02 * TOLERANCE))
    lines += _spread(walkers, report.seed, report.threads)
    lines += [_diffusion(walkers, report.seed, report.threads), _clairaut()]
    surface = {"genus": SURFACE.foci, "a": SURFACE.a, "r": SURFACE.r}
    return report.finish(None, system.topology, lines, surface=surface, beads=BILLIARDS, walkers=walkers)


# The run that is drawn --------------------------------------------------------------------------------------


def billiards(timestep: float) -> tuple[System, State]:
    angle = np.linspace(0.0, 2.0 * np.pi, BILLIARDS)
    topology = Topology()
    beads = topology.add_surface_points(
        SURFACE, np.tile([0.0, 0.0, SURFACE.r], (BILLIARDS, 1)), mass=1.0, tolerance=TOLERANCE, name="beads"
    )
    system = System(topology)
    system.add_force(forces.UniformField([beads], [0.0, 0.0, -1.0]))
    context = Context(system, SplittingIntegrator("BAB", timestep), threads=1)
    context.set_velocities(np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]))
    return system, context.get_state(positions=True, velocities=True)


def _off(x: np.ndarray) -> np.ndarray:
    """Return distances from the surface, (n,), to first order and relative as the tolerance is."""
    distance = np.abs(SURFACE.value(x)) / np.linalg.norm(SURFACE.gradient(x), axis=1)
    off: np.ndarray = distance / np.maximum(SURFACE.length, np.linalg.norm(x, axis=1))
    return off


class _Watch(Reporter):
    """Keeps the largest distance from the surface, and the last positions."""

    include = ("positions",)

    def __init__(self) -> None:
        super().__init__(TRAIL_INTERVAL)
        self.off = 0.0
        self.past: list[np.ndarray] = []

    def report(self, simulation: Simulation, state: State) -> None:
        self.off = max(self.off, float(_off(state.positions).max()))
        self.past.append(state.positions)
        del self.past[:-TRAIL]


# Measured against expected ----------------------------------------------------------------------------------


def _energy_error(timestep: float) -> float:
    """Compute the largest deviation of any bead's energy, over its mean kinetic energy."""
    system, start = billiards(timestep)
    context = Context(system, SplittingIntegrator("BAB", timestep), threads=1)
    context.set_state(start)
    kinetic, energy = [], []
    for _ in range(round(DURATION / timestep)):
        state = context.get_state(positions=True, velocities=True)
        kinetic.append(0.5 * (state.velocities**2).sum(axis=1))
        energy.append(kinetic[-1] + state.positions[:, 2])
        context.step(1)
    return float(np.max(np.abs(np.array(energy) - energy[0]) / np.mean(kinetic, axis=0)))


def _brownian(
    surface: Surface, x: np.ndarray, friction: float, timestep: float, seed: int, threads: int
) -> tuple[Context, Any]:
    """Build points of mass 1 at kT = 1."""
    topology = Topology()
    points = topology.add_surface_points(surface, x, mass=1.0, friction=friction)
    integrator = SplittingIntegrator("BAOAB", timestep, kT=1.0, seed=seed)
    return at_temperature(System(topology), integrator, threads), points


def _spread(n: int, seed: int, threads: int) -> list[Line]:
    """Measure points that all start at the top, and have long forgotten it: how many are where, against areas; and
    their temperature."""
    # The smallest radius of curvature is 0.04: the fastest beads fly half as far at a time.
    timestep, every = 0.01, 25
    context, points = _brownian(SURFACE, np.tile([0.0, 0.0, SURFACE.r], (n, 1)), 2.0, timestep, seed + 10, threads)
    context.step(1500)
    temperatures = []
    for _ in range(60):
        context.step(every)
        temperatures.append(context.get_state(energy=True).temperature * units.boltzmann)
    x = context.get_state(positions=True).positions
    where, area = _areas()
    share = np.bincount(_cell(where), area, minlength=CELLS) / area.sum()
    # Boxes that follow each other in groups of about the same area.
    groups = min(60, n // 20)
    group = np.unique(np.minimum((groups * np.cumsum(share)).astype(int), groups - 1), return_inverse=True)[1]
    counts = np.bincount(group, np.bincount(_cell(x), minlength=CELLS))
    return [
        temperature_line(points, np.array(temperatures), every * timestep, 1.0, "kT"),
        uniformity_line(counts, n * np.bincount(group, share)),
    ]


CELLS = 120


def _cell(x: np.ndarray) -> np.ndarray:
    """Number the boxes of space."""
    i, j, k = np.floor((x - [-1.2, -0.5, 0.0]) / [0.2, 0.2, 1.0]).astype(int).T
    cell: np.ndarray = 24 * j.clip(0, 4) + 2 * i.clip(0, 11) + (k >= 0)
    return cell


def _areas(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the surface and the area that each stands for.

    Lines along each axis, in a square lattice of spacing h, meet a piece of the surface with the area dA and the
    normal n in |n_i| dA/h² points. Weighted with h² |n_i|, the points of all three axes add up to the sum of n_i² dA,
    dA. Where a line meets the surface is known in closed form, since f = c is quadratic in x² and in y²:

        (x² + y²)² - x² + y² = c,  c = ±√(r² - z²).
    """
    r, reach = SURFACE.r, np.array([1.2, 0.6, SURFACE.r])
    found, areas = [], []
    for axis in range(3):
        across = [k for k in range(3) if k != axis]
        spacing = 2.0 * reach[across] / n
        sides = [(np.arange(n) + 0.5) * h - reach[k] for k, h in zip(across, spacing, strict=True)]
        p, q = (u.ravel() for u in np.meshgrid(*sides, indexing="ij"))
        if axis == 2:
            f = (p**2 + q**2) ** 2 - p**2 + q**2
            inside = np.abs(f) < r
            z = np.sqrt(r**2 - f[inside] ** 2)
            points = [np.column_stack([p[inside], q[inside], sign * z]) for sign in (1.0, -1.0)]
        else:
            # u² + 2bu + (p² ± 1) p² - c = 0 for u the square of the coordinate along the line.
            b, rest = (p**2 + 0.5, (p**2 - 1.0) * p**2) if axis == 1 else (p**2 - 0.5, (p**2 + 1.0) * p**2)
            points = []
            for c in (np.sqrt(r**2 - q**2), -np.sqrt(r**2 - q**2)):
                for root in (1.0, -1.0):
                    with np.errstate(invalid="ignore"):
                        s = np.sqrt(-b + root * np.sqrt(b**2 - rest + c))
                    there = np.isfinite(s) & (s > 0.0)
                    for sign in (1.0, -1.0):
                        x = np.empty((there.sum(), 3))
                        x[:, axis], x[:, across[0]], x[:, across[1]] = sign * s[there], p[there], q[there]
                        points.append(x)
        x = np.concatenate(points)
        square = x[:, 0] ** 2 + x[:, 1] ** 2
        f = square**2 - x[:, 0] ** 2 + x[:, 1] ** 2
        gradient = np.column_stack(
            [f * (4.0 * square - 2.0) * x[:, 0], f * (4.0 * square + 2.0) * x[:, 1], x[:, 2]]
        )
        areas.append(np.prod(spacing) * np.abs(gradient[:, axis]) / np.linalg.norm(gradient, axis=1))
        found.append(x)
    return np.concatenate(found), np.concatenate(areas)


def _diffusion(n: int, seed: int, threads: int) -> Line:
    """Measure points that start at the pole of a sphere: <cos θ> = exp(-2Dt/R²), with D = (kT/γ) x coth x and x = γ
    dt/2m.

    The friction is so strong that they turn round within a hundredth of the radius.
    """
    friction, timestep, steps = 100.0, 0.01, 2500
    sphere = Sphere(1.0)
    context, _ = _brownian(sphere, np.tile([0.0, 0.0, 1.0], (n, 1)), friction, timestep, seed + 20, threads)
    context.step(steps)
    cosine = context.get_state(positions=True).positions[:, 2]
    x = 0.5 * friction * timestep
    D = x / tanh(x) / friction
    return mean_line("diffusion on a sphere, <cos θ>", cosine, exp(-2.0 * D * steps * timestep))


def _clairaut() -> Line:
    """Measure free flight on a torus: the angular momentum about its axis, the distance from it times the speed around
    it, changes on no geodesic (Clairaut), and on none of their approximations, as constraints have no torque about
    it."""
    torus = Torus(3.0, 1.0)
    topology = Topology()
    topology.add_surface_points(torus, torus.sample(50, seed=1), mass=1.0)
    context = Context(System(topology), SplittingIntegrator("BAB", 0.05), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    first, largest = None, 0.0
    for _ in range(200):
        state = context.get_state(positions=True, velocities=True)
        (x, y, _), (vx, vy, _) = state.positions.T, state.velocities.T
        constant = x * vy - y * vx
        first = constant if first is None else first
        largest = max(largest, float(np.abs(constant - first).max()))
        context.step(5)
    return bound_line("geodesics: change of Clairaut's constant", largest, 1e-10)
