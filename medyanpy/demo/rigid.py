"""Rigid bodies: ellipsoids that crowd in a trap, and theory of bodies that turn.

The ellipsoids, rods and discs that repel each other, have the size, friction and temperature of proteins in water.
Their masses are not those of proteins: inertia is immeasurably small, it only sets how long velocities last, here a
nanosecond. Spinning tops, and the ellipse that diffuses in a plane, have no units.

Tops are prolate where the moment about the axis of symmetry is the smallest (long bodies), and oblate where it is the
largest (flat ones). Slides from which these examples are taken have it the other way round: Ix = Iy < Iz is oblate.
"""

from dataclasses import replace
from math import tanh
from typing import Any

import numpy as np

from medyanpy import forces, presets, rigid, units
from medyanpy._tools import quaternions
from medyanpy.beads import RigidBodies
from medyanpy.context import Context
from medyanpy.demo.report import (
    TEMPERATURE,
    Demo,
    Line,
    Option,
    Report,
    at_temperature,
    demo,
    mean_line,
    near_line,
    random_turns,
)  # fmt: skip
from medyanpy.integrators import BrownianIntegrator, SplittingIntegrator, VerletIntegrator
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

# Semi-axes (nm), the axis of symmetry first; names are those of the handles.
SHAPES = {"rods": (5.0, 2.0, 2.0), "discs": (1.0, 4.0, 4.0)}
# pN s²/nm and s: velocities last for about 1 ns.
MASS, TIMESTEP = 5e-17, 2e-10
# pN/nm, and the distance of the bodies at the start, nm.
TRAP, SPACING = 0.05, 11.0
# Bodies of each shape in the measurements, for each body in the trap.
FREE = 3
# Steps between looks at free bodies, looks in a block, blocks; and steps before the first.
LOOK, BLOCK, BLOCKS, START = 10, 40, 20, 100
# An ellipse in a plane: diffusion along and across, and of its angle; the angle at the start, timestep, steps, and how
# many of them for each body in the trap.
ELLIPSE, ANGLE = (1.5, 1.0, 1.0), np.pi / 6.0
ELLIPSE_TIMESTEP, ELLIPSE_STEPS, ELLIPSES = 1e-3, 250, 75
# Field on the dipoles of rods, in kT; steps until they have turned to it, and between looks.
FIELD, FIELD_START, FIELD_STEPS, FIELD_LOOKS = 2.0, 3000, 600, 5
# Principal moments of tops, and how far their axes lean from the angular momentum, radians; of a body that flips.
TOPS = {"prolate": (3.0, 3.0, 1.0), "oblate": (1.0, 1.0, 1.8)}
LEAN, FLIPPING = 0.6, (1.0, 2.0, 3.0)


@demo(
    "rigid",
    "ellipsoids in a trap, and spinning tops",
    bodies=Option(400, "ellipsoids in the trap, half of them rods; measurements take three times as many", 20, 10_000),
    steps=Option(8000, "time steps"),
)
def run_rigid_demo(report: Report, bodies: int) -> Demo:
    system = _trapped(bodies, report.seed)
    report.begin(f"{bodies} ellipsoids in water, {_about_shapes()}", "bodies")
    report.note(f"in a harmonic trap of {TRAP:g} pN/nm; they repel each other")
    integrator = SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, _ = report.run(system, integrator, semi_axes=SHAPES)
    report.say(f"free      {FREE * bodies} rods and discs each: diffusion, temperature; rods in a field")
    lines = [replace(line, quantity=f"temperature of {name}") for name, line in temperatures.items()]
    lines += _diffusion(FREE * bodies, report.seed, report.threads)
    lines.append(_field(FREE * bodies, report.seed, report.threads))
    report.say(f"plane     {ELLIPSES * bodies} ellipses without inertia, all from {np.degrees(ANGLE):g} degrees")
    lines += _ellipse(ELLIPSES * bodies, report.seed, report.threads)
    report.say("tops      spinning freely; energy at two timesteps")
    for name, inertia in TOPS.items():
        lines += _precession(name, np.array(inertia))
    lines += [_flips(np.array(FLIPPING)), _order()]
    return report.finish(None, system.topology, lines, shapes=SHAPES, bodies=bodies, free=2 * FREE * bodies)


def _about_shapes() -> str:
    return " and ".join(f"{name} of semi-axes {', '.join(f'{a:g}' for a in axes)} nm" for name, axes in SHAPES.items())


# Ellipsoids -------------------------------------------------------------------------------------------------


def _add(topology: Topology, name: str, positions: np.ndarray, rng: np.random.Generator) -> RigidBodies:
    axes = SHAPES[name]
    return topology.add_rigid_bodies(
        positions,
        random_turns(len(positions), rng),
        MASS,
        rigid.ellipsoid_inertia(axes, MASS),
        rigid.ellipsoid_friction(axes, presets.WATER),
        name=name,
    )


def _trapped(n: int, seed: int) -> System:
    """Place bodies on a lattice, nearest to the middle; in random order and orientations."""
    rng = np.random.default_rng(seed)
    side = np.arange(-12, 13)
    lattice = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    places = SPACING * lattice[np.argsort((lattice**2).sum(axis=1), kind="stable")[:n]]
    order = rng.permutation(n)
    topology = Topology()
    handles = [_add(topology, name, places[order[k::2]], rng) for k, name in enumerate(SHAPES)]
    system = System(topology)
    system.add_force(forces.HarmonicTrap(handles, TRAP, [0.0, 0.0, 0.0]))
    axes = np.concatenate([np.broadcast_to(SHAPES[h.name], (len(h), 3)) for h in handles])
    system.add_force(forces.EllipsoidRepulsion(handles, handles, TEMPERATURE * units.boltzmann, axes))
    return system


def _dipoles(handle: RigidBodies, field: float) -> forces.UniformField:
    """Make dipoles of the moment 1 along the first axes of bodies, in a field along z, pN."""
    poles = handle.sites([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    return forces.UniformField(poles, np.tile([[0.0, 0.0, field], [0.0, 0.0, -field]], (len(handle), 1)))


def _free(
    n: int, seed: int, threads: int, names: list[str], field: float | None = None
) -> tuple[Context, list[RigidBodies]]:
    """Build n bodies of each of the shapes, which do not see each other; with dipoles in a field, pN."""
    rng = np.random.default_rng(seed)
    topology = Topology()
    handles = [_add(topology, name, np.zeros((n, 3)), rng) for name in names]
    system = System(topology)
    if field is not None:
        for handle in handles:
            system.add_force(_dipoles(handle, field))
    integrator = SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed)
    return at_temperature(system, integrator, threads), handles


def _axes(state: State, handle: RigidBodies) -> np.ndarray:
    """Return axes of symmetry in space, (n, 3)."""
    return quaternions.turned(state.orientations[handle.rows], np.tile([1.0, 0.0, 0.0], (len(handle), 1)))


# Measured against expected ----------------------------------------------------------------------------------


def _expected(friction: float, inertia: float, time: float) -> float:
    """Compute <x²>/2t of Langevin dynamics after a time, of a coordinate with this friction and mass.

    kT/γ, times x coth x for the timestep (x = γ dt/2m), less what is missing while it gets up to speed.
    """
    x = 0.5 * friction * TIMESTEP / inertia
    return TEMPERATURE * units.boltzmann / friction * x / tanh(x) * (1.0 - inertia / friction / time)


def _diffusion(n: int, seed: int, threads: int) -> list[Line]:
    """Measure bodies without forces: diffusion along and across their axes, <P1>, temperature of translation and
    rotation.

    Displacements between looks are turned into the body frame, as it is halfway between two orientations, and added up
    over blocks.
    """
    context, handles = _free(n, seed + 10, threads, list(SHAPES))
    context.step(START)
    block = LOOK * BLOCK * TIMESTEP
    squares = {h.name: np.zeros((2, n)) for h in handles}
    cosines = {h.name: np.zeros(n) for h in handles}
    kinetic = np.zeros((2, 2 * n))
    state = context.get_state(positions=True, velocities=True)
    moments = np.concatenate([h.inertia for h in handles])
    for _ in range(BLOCKS):
        start, moved = state, {h.name: np.zeros((n, 3)) for h in handles}
        for _ in range(BLOCK):
            before = state
            context.step(LOOK)
            state = context.get_state(positions=True, velocities=True)
            for h in handles:
                step = state.positions[h.beads] - before.positions[h.beads]
                middle = state.orientations[h.rows] + before.orientations[h.rows] * _same_sign(state, before, h)
                middle /= np.linalg.norm(middle, axis=1)[:, None]
                moved[h.name] += quaternions.turned(middle * [1.0, -1.0, -1.0, -1.0], step)
        for h in handles:
            squares[h.name] += [moved[h.name][:, 0] ** 2, 0.5 * (moved[h.name][:, 1:] ** 2).sum(axis=1)]
            cosines[h.name] += np.einsum("ij,ij->i", _axes(start, h), _axes(state, h)) / BLOCKS
        kinetic[0] += MASS * (state.velocities**2).sum(axis=1)
        kinetic[1] += (state.angular_momenta**2 / moments).sum(axis=1)
    lines = []
    for h in handles:
        friction = np.diag(h.friction_tensors[0])
        for way, k, square in zip(("along", "across"), (0, 1), squares[h.name], strict=True):
            lines.append(
                mean_line(
                    f"{h.name}: diffusion {way} the axis",
                    square / (2.0 * BLOCKS * block * units.micrometer2_per_second),
                    _expected(friction[k], MASS, block) / units.micrometer2_per_second,
                    "µm²/s",
                )
            )
        turn = _expected(friction[4], h.inertia[0, 1], block) * block
        lines.append(
            mean_line(f"{h.name}: <P1> after {block / units.nanosecond:g} ns", cosines[h.name], np.exp(-2.0 * turn))
        )
    for what, energy in zip(("translation", "rotation"), kinetic, strict=True):
        lines.append(mean_line(f"temperature of {what}", energy / (3.0 * BLOCKS * units.boltzmann), TEMPERATURE, "K"))
    return lines


def _same_sign(state: State, before: State, h: RigidBodies) -> np.ndarray:
    """Return the sign of q and -q, which are one rotation, that is nearer to the orientation before."""
    sign: np.ndarray = np.sign(np.einsum("ij,ij->i", state.orientations[h.rows], before.orientations[h.rows]))
    return sign[:, None]


def _field(n: int, seed: int, threads: int) -> Line:
    """Measure rods with a dipole along their axis in a field: <cos> is Langevin's function."""
    context, (rods,) = _free(n, seed + 20, threads, ["rods"], FIELD * TEMPERATURE * units.boltzmann)
    context.step(FIELD_START)
    cosine = np.zeros(n)
    for _ in range(FIELD_LOOKS):
        context.step(FIELD_STEPS)
        cosine += _axes(context.get_state(positions=True), rods)[:, 2] / FIELD_LOOKS
    return mean_line(f"rods in a field of {FIELD:g} kT: <cos θ>", cosine, 1.0 / tanh(FIELD) - 1.0 / FIELD)


def _ellipse(n: int, seed: int, threads: int) -> list[Line]:
    """Measure Brownian ellipses in the plane z = 0, without units: <x²>/2t and so on of those that start at one angle
    φ.

    Along the axes they start with, they diffuse by D1 and D2; later by the mean of both. The angle spreads by D3: <cos
    2θ> = cos 2φ exp(-4 D3 t). (D1 - D2)/2 of it, averaged over time, adds to the mean of both for x, is taken from it
    for y, and with the sine is the correlation of x and y.
    """
    # Motions that would leave the plane have a friction that stops them.
    friction = np.diag([1.0 / ELLIPSE[0], 1.0 / ELLIPSE[1], 1e12, 1e12, 1e12, 1.0 / ELLIPSE[2]])
    q = np.tile([np.cos(0.5 * ANGLE), 0.0, 0.0, np.sin(0.5 * ANGLE)], (n, 1))
    topology = Topology()
    topology.add_rigid_bodies(np.zeros((n, 3)), q, 1.0, [1.0, 1.0, 1.0], friction)
    context = Context(System(topology), BrownianIntegrator(ELLIPSE_TIMESTEP, kT=1.0, seed=seed + 30), threads)
    context.step(ELLIPSE_STEPS)
    x, y, _ = context.get_state(positions=True).positions.T
    time = ELLIPSE_STEPS * ELLIPSE_TIMESTEP
    mean, half = 0.5 * (ELLIPSE[0] + ELLIPSE[1]), 0.5 * (ELLIPSE[0] - ELLIPSE[1])
    half *= (1.0 - np.exp(-4.0 * ELLIPSE[2] * time)) / (4.0 * ELLIPSE[2] * time)
    expected = (mean + half * np.cos(2.0 * ANGLE), mean - half * np.cos(2.0 * ANGLE), half * np.sin(2.0 * ANGLE))
    return [
        mean_line(f"ellipse in a plane: {name}", square / (2.0 * time), float(known))
        for name, square, known in zip(("D_xx", "D_yy", "D_xy"), (x * x, y * y, x * y), expected, strict=True)
    ]


# Tops -------------------------------------------------------------------------------------------------------


def _spun(inertia: np.ndarray, spin: Any, timestep: float) -> Context:
    """Make a body without forces, with an angular momentum in its own frame, which at the start is that of space."""
    topology = Topology()
    topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], 1.0, inertia)
    context = Context(System(topology), VerletIntegrator(timestep), threads=1)
    context.set_angular_momenta([spin])
    return context


def _precession(name: str, inertia: np.ndarray, timestep: float = 0.005, steps: int = 2000) -> list[Line]:
    """Measure a symmetric top: its axis goes round the angular momentum at |L|/I1, and, seen from the body, the angular
    momentum round the axis at (1/I3 - 1/I1) L3 (Euler), backwards if the top is prolate."""
    size = 2.0
    spin = size * np.array([np.sin(LEAN), 0.0, np.cos(LEAN)])
    context = _spun(inertia, spin, timestep)
    # Two directions across the angular momentum in space.
    one, other = np.array([np.cos(LEAN), 0.0, -np.sin(LEAN)]), np.array([0.0, 1.0, 0.0])
    in_space, in_body = [], []
    for _ in range(steps):
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        axis = quaternions.turned(state.orientations, np.array([[0.0, 0.0, 1.0]]))[0]
        in_space.append(np.arctan2(axis @ other, axis @ one))
        in_body.append(np.arctan2(state.angular_momenta[0, 1], state.angular_momenta[0, 0]))
    time = timestep * np.arange(1, steps + 1)
    rates = [np.polyfit(time, np.unwrap(angle), 1)[0] for angle in (in_space, in_body)]
    expected = [size / inertia[0], -(1.0 / inertia[2] - 1.0 / inertia[0]) * spin[2]]
    return [
        near_line(f"{name} top: rate {where}", float(rate), float(known), 1e-4)
        for where, rate, known in zip(("in space", "in its frame"), rates, expected, strict=True)
    ]


def _flips(inertia: np.ndarray, timestep: float = 0.005) -> Line:
    """Measure turning about the middle axis (Dzhanibekov): the time from flip to flip and back, by Jacobi's functions.

    Landau and Lifshitz, Mechanics, section 37: with moments 1 < 2 < 3 and M² > 2 E I2, and 1 and 3 exchanged below.
    """
    from scipy.special import ellipk

    spin = np.array([0.02, 4.0, 0.01])
    context = _spun(inertia, spin, timestep)
    energy, square = 0.5 * float((spin**2 / inertia).sum()), float((spin**2).sum())
    i1, i2, i3 = inertia if square > 2.0 * energy * inertia[1] else inertia[::-1]
    k2 = (i2 - i1) * (2.0 * energy * i3 - square) / ((i3 - i2) * (square - 2.0 * energy * i1))
    period = 4.0 * ellipk(k2) * np.sqrt(i1 * i2 * i3 / ((i3 - i2) * (square - 2.0 * energy * i1)))
    momenta = []
    for _ in range(round(2.2 * period / timestep)):
        context.step(1)
        momenta.append(context.get_state(velocities=True).angular_momenta[0, 1])
    middle = np.array(momenta)
    at = np.flatnonzero((middle[:-1] < 0.0) & (middle[1:] >= 0.0))
    up = at + middle[at] / (middle[at] - middle[at + 1])
    return near_line("flips about the middle axis: period", float(timestep * (up[1] - up[0])), float(period), 1e-3)


def _order() -> Line:
    """Measure asymmetric tops with a dipole in a field: halving the timestep divides the largest error of the energy by
    4."""
    errors = []
    for timestep in (0.02, 0.01):
        rng = np.random.default_rng(1)
        topology = Topology()
        tops = topology.add_rigid_bodies(np.zeros((30, 3)), random_turns(30, rng), 1.0, [1.0, 2.0, 2.6])
        system = System(topology)
        system.add_force(_dipoles(tops, 1.5))
        context = Context(system, VerletIntegrator(timestep), threads=1)
        context.set_velocities_to_temperature(kT=1.0, seed=1)
        energy = []
        for _ in range(round(4.0 / timestep)):
            energy.append(context.get_state(energy=True).total_energy)
            context.step(1)
        errors.append(np.abs(np.array(energy) - energy[0]).max())
    return near_line("energy error: dt over dt/2", float(errors[0] / errors[1]), 4.0, 0.1)
