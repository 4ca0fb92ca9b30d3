"""An elastic rod that is bent into a circle and let go, after Ladd and Misra (2009), and thermal rods.

The rod has the diameter d = 1, the density ρ = 1, Young's modulus Y = 1 and Poisson's ratio 0.3, and is 20 π d long.
The unit of time is t0 = d √(ρ/Y), in which sound crosses the diameter.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.beads import Rods
from medyanpy.demo.pictures import draw_rod
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import Demo, Line, Report, at_temperature, mean_line, near_line

SECTION = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
LENGTH, SEGMENTS = 20.0 * np.pi, 63
# Bending and twist of the circle, once around, and of a helix of four turns, 1/d.
CIRCLE, HELIX = (0.0, 0.1, 0.0), (0.4, 0.0, 0.1)
# Timestep for 63 segments, in t0; how long the rod that is drawn is followed, and frames of it.
TIMESTEP, DURATION, FRAMES = 0.2, 1500.0, 300
# The energy of the circle at the start, and the largest |ΔE/E| up to 300 t0 with the timestep, a half and a quarter of
# it: of a program written for that alone.
ENERGY, SHORT, DEVIATIONS = 0.015177500195207, 300.0, {1: 2.979e-4, 2: 7.333e-5, 4: 1.838e-5}
# Thermal rods: mass, length of segments and kT are 1. Moments of inertia per length; friction along and across, and of
# rotation; steps before the first look, between looks, and looks.
NODES, THERMAL_TIMESTEP = 16, 0.025
INERTIA, FRICTION, TURNING = (0.4, 0.4, 0.6), (0.3, 0.6), 0.2
STIFFNESS: dict[str, Any] = {"shear": 40.0, "extension": 60.0, "bending": 5.0, "twist": 4.0}
START, LOOK, LOOKS = 2000, 50, 60


@demo(
    "rod",
    "an elastic rod, bent into a circle and let go, without units",
    segments=Option(SEGMENTS, "segments of the rod that is drawn; more of them need a shorter timestep", 20, 2000),
    rods=Option(200, "thermal rods of the measurements", 20),
    steps=Option(None, "time steps", usual=f"{DURATION:g} t0"),
)
def run_rod_demo(report: Report, segments: int, rods: int) -> Demo:
    timestep = _timestep(segments)
    report.steps = report.steps or round(DURATION / timestep)
    report.begin(f"{LENGTH:.4g} long, 1 thick, {segments} segments; lengths in d, times in t0, no other units", "rod")
    report.note("bent into a circle and let go; nothing damps it")
    energies = {TIMESTEP / n: _energies(TIMESTEP / n) for n in DEVIATIONS}
    system, _, _ = _rod(CIRCLE, segments)
    states: list[mp.State] = []
    every = max(1, report.steps // FRAMES)
    watch = mp.reporters.Callback(every, lambda _, state: states.append(state), include=["positions", "energy"])
    report.run(
        system, mp.SplittingIntegrator("ABA", timestep), reporters=[watch], frames=FRAMES,
        drawn_by=lambda simulation, path, **_: draw_rod(simulation, path, states, energies, SECTION),
    )  # fmt: skip
    report.say(f"circle    of {SEGMENTS} segments: energy at three timesteps")
    lines = [near_line("circle: energy at the start", float(energies[TIMESTEP][0]), ENERGY, 1e-12, "Y d³")]
    largest = [float(np.abs(energy / energy[0] - 1.0).max()) for energy in energies.values()]
    for part, found, expected in zip(("Δt", "Δt/2", "Δt/4"), largest, DEVIATIONS.values(), strict=True):
        lines.append(near_line(f"circle: largest |ΔE/E| to {SHORT:g} t0, {part}", found, expected, 1e-3))
    lines.append(near_line("circle: |ΔE/E| at Δt over Δt/2", largest[0] / largest[1], 4.0, 0.05))
    lines.append(near_line("circle: |ΔE/E| at Δt/2 over Δt/4", largest[1] / largest[2], 4.0, 0.05))
    report.say(f"thermal   {rods} rods of {NODES} nodes; mass, segment and kT are 1")
    lines += _thermal(rods, report.seed, report.threads)
    return report.finish(None, system.topology, lines, segments=segments, rods=rods)


def _timestep(segments: int) -> float:
    return TIMESTEP * min(1.0, SEGMENTS / segments)


def _rod(curvature: Any, segments: int = SEGMENTS) -> tuple[mp.System, Rods, mp.forces.RodElasticity]:
    """Build the rod of the paper, bent, with free ends; straight is where it has no stress."""
    topology = mp.Topology()
    nodes, orientations = mp.rods.uniform(segments, LENGTH / segments, curvature)
    rod = topology.add_rod(
        nodes, orientations, LENGTH / segments, SECTION.linear_density, SECTION.inertia_density, name="rod"
    )
    system = mp.System(topology)
    return system, rod, system.add_force(mp.forces.RodElasticity(rod, **SECTION.stiffness))


def _energies(timestep: float) -> np.ndarray:
    """Return the energy of the circle at the start and after every step up to 300 t0."""
    context = mp.Context(_rod(CIRCLE)[0], mp.SplittingIntegrator("ABA", timestep), threads=1)
    energy = [context.get_state(energy=True).total_energy]
    for _ in range(round(SHORT / timestep)):
        context.step(1)
        energy.append(context.get_state(energy=True).total_energy)
    return np.array(energy)


def _bath(n: int) -> tuple[mp.System, Rods]:
    """Build n straight rods with friction."""
    topology = mp.Topology()
    nodes, orientations = mp.rods.uniform(NODES, 1.0)
    handle = topology.add_rods(
        np.tile(nodes, (n, 1)), np.tile(orientations, (n, 1)), 1.0, 1.0, INERTIA, FRICTION,
        rotational_friction=TURNING, starts=NODES * np.arange(n + 1),
    )  # fmt: skip
    system = mp.System(topology)
    system.add_force(mp.forces.RodElasticity(handle, **STIFFNESS))
    return system, handle


def _thermal(n: int, seed: int, threads: int) -> list[Line]:
    """Measure the energies of shear and stretch of rods in a bath, one number for each rod."""
    system, handle = _bath(n)
    integrator = mp.SplittingIntegrator("BAOAB", THERMAL_TIMESTEP, kT=1.0, seed=seed + 10)
    context = at_temperature(system, integrator, threads)
    context.step(START)
    strain = np.zeros((3, n))
    for _ in range(LOOKS):
        context.step(LOOK)
        state = context.get_state(positions=True)
        gamma, _ = handle.strains(state.positions, state.orientations)
        strain += ((gamma - [0.0, 0.0, 1.0]) ** 2).reshape(n, NODES - 1, 3).mean(axis=1).T / LOOKS
    return [
        mean_line("shear of a joint, twice its energy", STIFFNESS["shear"] * strain[:2].mean(axis=0), 1.0, "kT"),
        mean_line("stretch of a joint, twice its energy", STIFFNESS["extension"] * strain[2], 1.0, "kT"),
    ]
