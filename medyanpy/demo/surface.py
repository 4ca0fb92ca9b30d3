"""Billiards on a surface with two holes, the inflated lemniscate of Bernoulli: 25 beads fall from its top in all
directions. Nothing here has a unit: mass, gravity and kT are 1, and so is the reach of the lemniscate.
"""

from importlib.util import find_spec
from math import exp, tanh
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import Demo, Line, Report, at_temperature, bound_line, mean_line, near_line

SURFACE = mp.surfaces.Lemniscate(2, a=1.0, r=1.0 / 6.0)
BILLIARDS, TIMESTEP, DURATION = 25, 0.01, 20.0
# Largest deviation of the energy over the mean kinetic energy, %, with the timestep and a half and a quarter of it,
# by a program written for that alone; and how far from it others may be. Paths are chaotic: directions changed by 1e-13
# give 1.229 to 1.241, 0.269 to 0.308 and 0.066 to 0.076.
DEVIATIONS, WITHIN = (1.23, 0.28, 0.066), (0.02, 0.2, 0.2)
# Frames of the trajectory, and of the movie, which shows the first of them; steps between positions along the trails of
# the picture, and how many of them; and the distance to which beads are kept to a surface of size 1.
FRAMES, MOVIE_FRAMES, TRAIL_INTERVAL, TRAIL, TOLERANCE = 400, 60, 4, 25, 1e-12
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
    off, past = [0.0], list[np.ndarray]()

    def look(simulation: mp.Simulation, state: mp.State) -> None:
        off.append(float(_off(state.positions).max()))
        past.append(state.positions)
        del past[:-TRAIL]

    watch = mp.reporters.Callback(TRAIL_INTERVAL, look, include="positions")
    report.run(
        system, mp.SplittingIntegrator("BAB", TIMESTEP), start, [watch], frames=FRAMES, view=VIEW, size=(1200, 800),
        trails=past, **LOOKS,
    )  # fmt: skip
    report.movie(lambda frames: frames[:MOVIE_FRAMES], trail=20, fps=15, size=(480, 320), view=VIEW, **LOOKS)
    report.say("laws      energy at three timesteps; diffusion on a sphere")
    lines = [
        near_line(f"energy error, dt{part}", 100.0 * _energy_error(TIMESTEP / n), expected, within, "%")
        for part, n, expected, within in zip(("", "/2", "/4"), (1, 2, 4), DEVIATIONS, WITHIN, strict=True)
    ]
    lines.append(bound_line("largest distance from the surface, relative", max(off), 1.02 * TOLERANCE))
    lines.append(_diffusion(walkers, report.seed, report.threads))
    surface = {"genus": SURFACE.foci, "a": SURFACE.a, "r": SURFACE.r}
    return report.finish(None, system.topology, lines, surface=surface, beads=BILLIARDS, walkers=walkers)


def billiards(timestep: float) -> tuple[mp.System, mp.State]:
    angle = np.linspace(0.0, 2.0 * np.pi, BILLIARDS)
    topology = mp.Topology()
    beads = topology.add_surface_points(
        SURFACE, np.tile([0.0, 0.0, SURFACE.r], (BILLIARDS, 1)), mass=1.0, tolerance=TOLERANCE, name="beads"
    )
    system = mp.System(topology)
    system.add_force(mp.forces.UniformField([beads], [0.0, 0.0, -1.0]))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", timestep), threads=1)
    context.set_velocities(np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]))
    return system, context.get_state(positions=True, velocities=True)


def _off(x: np.ndarray) -> np.ndarray:
    """Return distances from the surface, (n,), to first order and relative as the tolerance is."""
    distance = np.abs(SURFACE.value(x)) / np.linalg.norm(SURFACE.gradient(x), axis=1)
    return np.asarray(distance / np.maximum(SURFACE.length, np.linalg.norm(x, axis=1)))


def _energy_error(timestep: float) -> float:
    """Compute the largest deviation of any bead's energy, over its mean kinetic energy."""
    system, start = billiards(timestep)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", timestep), threads=1)
    context.set_state(start)
    kinetic, energy = [], []
    for _ in range(round(DURATION / timestep)):
        state = context.get_state(positions=True, velocities=True)
        kinetic.append(0.5 * (state.velocities**2).sum(axis=1))
        energy.append(kinetic[-1] + state.positions[:, 2])
        context.step(1)
    return float(np.max(np.abs(np.array(energy) - energy[0]) / np.mean(kinetic, axis=0)))


def _brownian(
    surface: mp.surfaces.Surface, x: np.ndarray, friction: float, timestep: float, seed: int, threads: int
) -> tuple[mp.Context, Any]:
    """Build points of mass 1 at kT = 1."""
    topology = mp.Topology()
    points = topology.add_surface_points(surface, x, mass=1.0, friction=friction)
    integrator = mp.SplittingIntegrator("BAOAB", timestep, kT=1.0, seed=seed)
    return at_temperature(mp.System(topology), integrator, threads), points


def _diffusion(n: int, seed: int, threads: int) -> Line:
    """Measure points from the pole of a sphere: <cos θ> = exp(-2Dt/R²), D = (kT/γ) x coth x, x = γ dt/2m. The friction
    is so strong that they turn round within a hundredth of the radius."""
    friction, timestep, steps = 100.0, 0.01, 2500
    pole = np.tile([0.0, 0.0, 1.0], (n, 1))
    context, _ = _brownian(mp.surfaces.Sphere(1.0), pole, friction, timestep, seed + 20, threads)
    context.step(steps)
    x = 0.5 * friction * timestep
    law = exp(-2.0 * x / tanh(x) / friction * steps * timestep)
    return mean_line("diffusion on a sphere, <cos θ>", context.get_state(positions=True).positions[:, 2], law)
