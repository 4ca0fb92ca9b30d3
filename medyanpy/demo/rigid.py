"""Rigid bodies: ellipsoids that crowd in a trap, rods in a field, and spinning tops.

The ellipsoids have the size, friction and temperature of proteins in water. Their masses only set how long velocities
last, here a nanosecond. Spinning tops have no units, and are prolate where the moment about the axis of symmetry is the
smallest (long bodies), oblate where it is the largest. (Slides have it the other way round: Ix = Iy < Iz is oblate.)
"""

from dataclasses import replace
from math import tanh
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import KT, TEMPERATURE, Demo, Line, Report, at_temperature, mean_line, near_line

# Semi-axes (nm), the axis of symmetry first; names are those of the handles.
SHAPES = {"rods": (5.0, 2.0, 2.0), "discs": (1.0, 4.0, 4.0)}
MASS, TIMESTEP = 5e-17, 2e-10  # pN s²/nm and s: velocities last for about 1 ns.
TRAP, SPACING = 0.05, 11.0  # pN/nm, and the distance of the bodies at the start, nm.
# Rods in the field for each body in the trap; field on their dipoles, kT; steps until they have turned, between looks.
FREE, FIELD, FIELD_START, FIELD_STEPS, FIELD_LOOKS = 3, 2.0, 3000, 600, 5
# Principal moments of tops, and how far their axes lean from the angular momentum, radians.
TOPS, LEAN = {"prolate": (3.0, 3.0, 1.0), "oblate": (1.0, 1.0, 1.8)}, 0.6


@demo(
    "rigid",
    "ellipsoids in a trap, and spinning tops",
    bodies=Option(400, "ellipsoids in the trap, half of them rods; measurements take three times as many", 20, 10_000),
    steps=Option(8000, "time steps"),
)
def run_rigid_demo(report: Report, bodies: int) -> Demo:
    system = _trapped(bodies, report.seed)
    shapes = (f"{name} of semi-axes {', '.join(f'{a:g}' for a in axes)} nm" for name, axes in SHAPES.items())
    report.begin(f"{bodies} ellipsoids in water, {' and '.join(shapes)}", "bodies")
    report.note(f"in a harmonic trap of {TRAP:g} pN/nm; they repel each other")
    integrator = mp.SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, _ = report.run(system, integrator, semi_axes=SHAPES)
    report.say(f"free      {FREE * bodies} rods in a field; spinning tops")
    lines = [replace(line, quantity=f"temperature of {name}") for name, line in temperatures.items()]
    lines += [_field(FREE * bodies, report.seed + 20, report.threads)]
    for name, inertia in TOPS.items():
        lines += _precession(name, np.array(inertia))
    return report.finish(None, system.topology, lines, shapes=SHAPES, bodies=bodies, free=FREE * bodies)


def random_turns(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw unit quaternions (n, 4), uniform over rotations."""
    q = rng.normal(size=(n, 4))
    return np.asarray(q / np.linalg.norm(q, axis=1)[:, None])


def _add(topology: mp.Topology, name: str, positions: np.ndarray, rng: np.random.Generator) -> Any:
    turns, inertia = random_turns(len(positions), rng), mp.rigid.ellipsoid_inertia(SHAPES[name], MASS)
    friction = mp.rigid.ellipsoid_friction(SHAPES[name], mp.presets.WATER)
    return topology.add_rigid_bodies(positions, turns, MASS, inertia, friction, name=name)


def _trapped(n: int, seed: int) -> mp.System:
    """Place bodies on a lattice, nearest to the middle; in random order and orientations."""
    rng = np.random.default_rng(seed)
    side = np.arange(-12, 13)
    lattice = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    places = SPACING * lattice[np.argsort((lattice**2).sum(axis=1), kind="stable")[:n]]
    order = rng.permutation(n)
    topology = mp.Topology()
    handles = [_add(topology, name, places[order[k::2]], rng) for k, name in enumerate(SHAPES)]
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(handles, TRAP, [0.0, 0.0, 0.0]))
    axes = np.concatenate([np.broadcast_to(SHAPES[h.name], (len(h), 3)) for h in handles])
    system.add_force(mp.forces.EllipsoidRepulsion(handles, handles, KT, axes))
    return system


def _field(n: int, seed: int, threads: int) -> Line:
    """Measure rods with a dipole along their axis in a field along z: <cos> is Langevin's function."""
    topology = mp.Topology()
    rods = _add(topology, "rods", np.zeros((n, 3)), np.random.default_rng(seed))
    system = mp.System(topology)
    poles = rods.sites([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    system.add_force(mp.forces.UniformField(poles, np.outer(np.tile([1.0, -1.0], n), [0.0, 0.0, FIELD * KT])))
    integrator = mp.SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed)
    context = at_temperature(system, integrator, threads)
    context.step(FIELD_START)
    cosine = np.zeros(n)
    for _ in range(FIELD_LOOKS):
        context.step(FIELD_STEPS)
        q = context.get_state(positions=True).orientations
        cosine += quaternions.turned(q, np.tile([1.0, 0.0, 0.0], (n, 1)))[:, 2] / FIELD_LOOKS
    return mean_line(f"rods in a field of {FIELD:g} kT: <cos θ>", cosine, 1.0 / tanh(FIELD) - 1.0 / FIELD)


def _precession(name: str, inertia: np.ndarray, timestep: float = 0.005, steps: int = 2000) -> list[Line]:
    """Measure a symmetric top: its axis goes round the angular momentum at |L|/I1, and, seen from the body, the angular
    momentum round the axis at (1/I3 - 1/I1) L3 (Euler), backwards if the top is prolate."""
    size = 2.0
    spin = size * np.array([np.sin(LEAN), 0.0, np.cos(LEAN)])
    topology = mp.Topology()
    topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], 1.0, inertia)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(timestep), threads=1)
    context.set_angular_momenta([spin])
    in_space, in_body = [], []
    for _ in range(steps):
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        x, y, z = quaternions.turned(state.orientations, np.array([[0.0, 0.0, 1.0]]))[0]
        in_space.append(np.arctan2(y, np.cos(LEAN) * x - np.sin(LEAN) * z))
        in_body.append(np.arctan2(state.angular_momenta[0, 1], state.angular_momenta[0, 0]))
    rates = [np.polyfit(timestep * np.arange(steps), np.unwrap(angle), 1)[0] for angle in (in_space, in_body)]
    expected = [size / inertia[0], -(1.0 / inertia[2] - 1.0 / inertia[0]) * spin[2]]
    return [
        near_line(f"{name} top: rate {where}", float(rate), float(known), 1e-4)
        for where, rate, known in zip(("in space", "in its frame"), rates, expected, strict=True)
    ]
