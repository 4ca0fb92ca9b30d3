"""Vesicle with actin inside, of the demos of filaments and of networks.

Lengths, stiffnesses, temperature and the thickness of actin are those of cells (`presets.actin`), friction is that of a
cytoplasm a hundred times more viscous than water. Masses are not: inertia is immeasurably small, so they only set the
timestep. The stiffest motion is that of two shapes that collide. Nodes and vertices get the mass that keeps it slow
against the timestep. The fastest zigzag of a filament is then some four times slower, that of the membrane about ten
times; links do not vibrate, they are constrained.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import add_membrane_forces
from medyanpy.demo.report import KT, TEMPERATURE, Line, Report, bound_line, sampling_interval

ACTIN = mp.presets.actin()
N_LINKS = 12  # Links of 27.5 nm: 0.33 µm, filaments of the cortex.
RADIUS, SUBDIVISIONS = 500.0, 4  # nm, and 5120 triangles with edges of 38 nm.
MEMBRANE_RADIUS = 2.0  # Half the thickness of a bilayer, nm.
# pN s/nm²; s; and ω dt of two shapes of equal mass that collide.
VISCOSITY, TIMESTEP, LARGEST_PHASE = 100.0 * mp.presets.WATER, 2e-7, 0.35
# nm²/s: a membrane protein that diffuses freely; and γ dt / 2m, a mass with which ties have ω dt = 0.28.
PROTEIN_DIFFUSION, PROTEIN_X = 1e6, 0.1
# pN/nm and nm: the stiffness that models of actin give to proteins that link filaments, the length of a small one.
TIE_STIFFNESS, TIE_LENGTH = 8.0, 10.0
MARGIN = 15.0  # Room (nm) that is left to the membrane at the start.
LENGTH_TOLERANCE = 1e-10  # Links keep their lengths as well as that, relative.


def with_actin(
    mesh: mp.TriangleMesh, filaments: int, tied: int, proteins: int, seed: int, *, held: bool = False
) -> mp.System:
    """Build a vesicle with proteins, the first of which hold the first filaments by their first nodes; without
    proteins, no ties. In a vesicle that is held filaments meet neither it nor each other."""
    # Two shapes of mass m that collide, each with the stiffness K: ω² = (K/2) (2/m).
    mass = ACTIN.collision_stiffness * (TIMESTEP / LARGEST_PHASE) ** 2
    topology = mp.Topology()
    # Stokes friction of a ball as wide as an edge is long.
    friction = 3.0 * np.pi * VISCOSITY * float(mesh.edge_lengths.mean())
    vesicle = topology.add_membrane(mesh, mass, friction, fixed=held, name="vesicle")
    feet = np.empty((0, 3))
    if proteins:
        friction = KT / PROTEIN_DIFFUSION
        mass_of_points = friction * TIMESTEP / (2.0 * PROTEIN_X)
        points = topology.add_intriangle_points(
            vesicle, proteins, mass=mass_of_points, friction=friction, seed=seed, name="proteins"
        )
        feet = mesh.positions(points.triangles[:tied], points.barycentric[:tied])
    across = ACTIN.friction_per_length(N_LINKS * ACTIN.link_length, VISCOSITY)[1]
    nodes = _straight(feet, filaments, np.random.default_rng(seed))
    actin = topology.add_filaments(
        **ACTIN.arguments(nodes, viscosity=VISCOSITY, relaxation_time=mass / (across * ACTIN.link_length)), name="actin"
    )
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(actin, ACTIN.bending_modulus))
    system.add_force(mp.forces.FixmanPotential(actin, temperature=TEMPERATURE))
    if tied:
        ends = actin.sites(np.arange(tied), 0, 0.0)
        system.add_force(mp.forces.Links(points.beads[:tied], ends, TIE_STIFFNESS, TIE_LENGTH, name="ties"))
    if not held:
        add_membrane_forces(system, vesicle)
        radii = [ACTIN.radius, MEMBRANE_RADIUS]
        system.add_force(mp.forces.SoftCollisions([actin, vesicle], ACTIN.collision_stiffness, radius=radii))
    return system


def _straight(feet: np.ndarray, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw nodes of n straight filaments in random directions inside the vesicle: the first start below the feet of
    their ties, the others anywhere."""
    start, direction = np.empty((n, 3)), np.empty((n, 3))
    start[: len(feet)] = feet * (1.0 - TIE_LENGTH / np.linalg.norm(feet, axis=1, keepdims=True))
    length, room = N_LINKS * ACTIN.link_length, RADIUS - MARGIN
    left = np.arange(n)
    while len(left):
        d = rng.normal(size=(len(left), 3))
        direction[left] = d / np.linalg.norm(d, axis=1, keepdims=True)
        free = left[left >= len(feet)]
        start[free] = rng.uniform(-room, room, (len(free), 3))
        ends = np.linalg.norm(start[left] + length * direction[left], axis=1)
        left = left[(ends > room) | ((left >= len(feet)) & (np.linalg.norm(start[left], axis=1) > room))]
    along = ACTIN.link_length * np.arange(N_LINKS + 1)
    return list(start[:, None] + along[:, None] * direction[:, None])


def relax(system: mp.System, threads: int) -> tuple[mp.State, str]:
    """Push apart what overlaps; the state at rest, and a line on the energy of collisions before and after."""
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE), threads)
    before = simulation.context.get_state(energy=True).energies["SoftCollisions"] / KT
    # Thermal contacts have forces of √(kT K/2), 40 pN.
    simulation.minimize_energy(tolerance=10.0, max_iterations=1000)
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    after = state.energies["SoftCollisions"] / KT
    return state, f"relax     pushed apart what overlapped: collisions from {before:.0f} kT to {after:.1f} kT"


def measured(
    report: Report, system: mp.System, start: mp.State, links: str
) -> tuple[list[Line], mp.State, mp.TriangleMesh]:
    """Run and report temperatures, lengths of links, and nodes outside; return the last state and its vesicle."""
    handles: tuple[Any, ...] = system.topology.handles
    vesicle, *others, actin = handles
    errors: list[float] = []

    def look(simulation: mp.Simulation, state: mp.State) -> None:
        errors.append(link_error(actin, state))

    watch = mp.reporters.Callback(sampling_interval(report.steps), look, include="positions")
    integrator = mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator, start, [watch], inside=True, point_radius=7.0)
    end = vesicle.mesh.with_vertices(state.positions[vesicle.beads])
    lines = [temperatures[handle.name] for handle in (vesicle, actin, *others)]
    lines.append(bound_line(f"largest error of {links}, relative", max(errors), LENGTH_TOLERANCE))
    return [*lines, outside(end, state.positions[actin.beads])], state, end


def link_error(actin: Any, state: mp.State) -> float:
    """Return the largest relative error of the lengths of links."""
    a, b = actin.beads[actin.links.T]
    lengths = np.linalg.norm(state.positions[b] - state.positions[a], axis=1)
    return float(np.abs(lengths / actin.link_lengths - 1.0).max())


def outside(mesh: mp.TriangleMesh, nodes: np.ndarray) -> Line:
    outside = int((~mesh.contains(nodes)).sum())
    return Line("nodes outside the vesicle", outside, None, 0, "", "none", "OK" if outside == 0 else "CHECK")
