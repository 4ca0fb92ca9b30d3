"""Actin inside a vesicle.

Lengths, stiffnesses, temperature and the thickness of actin are those of cells (`presets.actin`), friction is that of
a cytoplasm a hundred times more viscous than water. Masses are not: inertia is immeasurably small, so they only set
the timestep. The stiffest motion is that of two shapes that collide. Nodes and vertices get the mass that keeps it
slow against the timestep. The fastest zigzag of a filament is then some four times slower, that of the membrane about
ten times; links do not vibrate, they are constrained.
"""

from math import tanh
from typing import Any

import numpy as np

from medyanpy import forces, presets, units
from medyanpy.analysis import contour_curvature, end_to_end, persistence_length
from medyanpy.beads import Filaments, Membrane
from medyanpy.demo.membrane import about_membrane_forces, add_membrane_forces
from medyanpy.demo.report import (
    TEMPERATURE,
    Demo,
    Line,
    Option,
    Report,
    at_temperature,
    bound_line,
    demo,
    facts_of,
    mean_line,
    sampling_interval,
    size_of,
    z_line,
)
from medyanpy.integrators import BAGOGABIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.reporters import Reporter
from medyanpy.simulation import Simulation
from medyanpy.state import State
from medyanpy.system import System
from medyanpy.topology import Topology

ACTIN = presets.actin()
# Links of 27.5 nm: 0.33 µm, filaments of the cortex.
N_LINKS = 12
# nm, and 5120 triangles with edges of 38 nm.
RADIUS, SUBDIVISIONS = 500.0, 4
# Half the thickness of a bilayer, nm.
MEMBRANE_RADIUS = 2.0
# pN s/nm²
VISCOSITY = 100.0 * presets.WATER
# s
TIMESTEP = 2e-7
# ω dt of two shapes of equal mass that collide.
LARGEST_PHASE = 0.35
# nm²/s: a membrane protein that diffuses freely; and γ dt / 2m, a mass with which ties have ω dt = 0.28.
PROTEIN_DIFFUSION, PROTEIN_X = 1e6, 0.1
# Share of the filaments that are tied to a protein, and of the proteins that hold one.
TIED, BUSY = 0.25, 0.5
# pN/nm and nm: the stiffness that models of actin give to proteins that link filaments, the length of a small one.
TIE_STIFFNESS, TIE_LENGTH = 8.0, 10.0
# Room (nm) that is left to the membrane at the start.
MARGIN = 15.0
# Links keep their lengths as well as that, relative.
LENGTH_TOLERANCE = 1e-10
# Filaments of the side run, steps before it is looked at, and steps between looks: the slowest bend of a filament
# forgets in 500.
SIDE_FILAMENTS, SIDE_START, SIDE_INTERVAL, SIDE_LOOKS = 200, 2000, 200, 10


@demo(
    "filaments",
    "actin filaments inside a vesicle, some of them tied to proteins of its membrane",
    filaments=Option(300, "actin filaments of 0.33 µm", 1, 1000),
    steps=Option(10_000, "time steps"),
)
def run_filament_demo(report: Report, filaments: int) -> Demo:
    mesh = TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(f"vesicle: {size_of(mesh)}")
    system, notes = _build(mesh, filaments, report.seed)
    report.note(*notes)
    start, relaxed = relax(system, report.threads)
    report.say(relaxed)
    lines, _, end = measured(report, system, start, "links")
    report.say("free      filaments without collisions, each tied to a vesicle held still: shapes and ties")
    lines += _shapes_and_ties(report.seed, report.threads)
    return report.finish(
        mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), notes=notes, filaments=filaments,
        proteins=len(system.topology["proteins"]), at_the_end={"area": end.area, "volume": end.volume},
    )  # fmt: skip


# The vesicle and what is in it ------------------------------------------------------------------------------


def _build(mesh: TriangleMesh, filaments: int, seed: int) -> tuple[System, list[str]]:
    """Build topology and forces, and describe them."""
    tied = int(np.ceil(TIED * filaments))
    system = with_actin(mesh, filaments, tied, round(tied / BUSY), seed)
    handles: tuple[Any, ...] = system.topology.handles
    vesicle, proteins, actin = handles
    add_cell_forces(system, vesicle, actin)
    length = N_LINKS * ACTIN.link_length
    return system, [
        f"{filaments} actin filaments of {length:.0f} nm, persistence length "
        f"{ACTIN.persistence_length(TEMPERATURE) / units.micrometer:.3g} µm, {tied} of them tied to one of "
        f"{len(proteins)} proteins; all collide with each other and with the membrane",
        about_membrane_forces(mesh),
    ]


def add_cell_forces(system: System, vesicle: Membrane, actin: Filaments) -> None:
    """Add the forces of the membrane, and collisions of filaments with each other and with it."""
    add_membrane_forces(system, vesicle)
    system.add_force(
        forces.SoftCollisions([actin, vesicle], ACTIN.collision_stiffness, radius=[ACTIN.radius, MEMBRANE_RADIUS])
    )


def with_actin(
    mesh: TriangleMesh, filaments: int, tied: int, proteins: int, seed: int, *, held: bool = False
) -> System:
    """Build a vesicle with proteins, the first of which hold the first filaments by their first nodes; no collisions.
    Without proteins, without ties."""
    kT = TEMPERATURE * units.boltzmann
    # Two shapes of mass m that collide, each with the stiffness K: ω² = (K/2) (2/m).
    mass = ACTIN.collision_stiffness * (TIMESTEP / LARGEST_PHASE) ** 2
    topology = Topology()
    # Stokes friction of a ball as wide as an edge is long.
    friction = 3.0 * np.pi * VISCOSITY * float(mesh.edge_lengths.mean())
    vesicle = topology.add_membrane(mesh, mass, friction, fixed=held, name="vesicle")
    feet = np.empty((0, 3))
    if proteins:
        friction = kT / PROTEIN_DIFFUSION
        mass_of_points = friction * TIMESTEP / (2.0 * PROTEIN_X)
        points = topology.add_intriangle_points(
            vesicle, proteins, mass=mass_of_points, friction=friction, seed=seed, name="proteins"
        )
        feet = mesh.positions(points.triangles[:tied], points.barycentric[:tied])
    length = N_LINKS * ACTIN.link_length
    relaxation_time = mass / (ACTIN.friction_per_length(length, VISCOSITY)[1] * ACTIN.link_length)
    nodes = _straight(feet, filaments, np.random.default_rng(seed))
    actin = topology.add_filaments(
        **ACTIN.arguments(nodes, viscosity=VISCOSITY, relaxation_time=relaxation_time), name="actin"
    )
    system = System(topology)
    system.add_force(forces.FilamentBending(actin, ACTIN.bending_modulus))
    system.add_force(forces.FixmanPotential(actin, temperature=TEMPERATURE))
    if tied:
        ends = actin.sites(np.arange(tied), 0, 0.0)
        system.add_force(forces.Links(points.beads[:tied], ends, TIE_STIFFNESS, TIE_LENGTH, name="ties"))
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


def relax(system: System, threads: int) -> tuple[State, str]:
    """Push apart what overlaps; the state at rest, and a line on the energy of collisions before and after."""
    simulation = Simulation(system, BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE), threads)
    before = simulation.context.get_state(energy=True).energies["SoftCollisions"]
    # Thermal contacts have forces of √(kT K/2), 40 pN.
    simulation.minimize_energy(tolerance=10.0, max_iterations=1000)
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    kT = TEMPERATURE * units.boltzmann
    before, after = before / kT, state.energies["SoftCollisions"] / kT
    return state, f"relax     pushed apart what overlapped: collisions from {before:.0f} kT to {after:.1f} kT"


def measured(report: Report, system: System, start: State, links: str) -> tuple[list[Line], State, TriangleMesh]:
    """Run; temperatures, lengths of links, and nodes outside; the last state and the vesicle in it."""
    handles: tuple[Any, ...] = system.topology.handles
    vesicle, *others, actin = handles
    errors = LinkErrors(sampling_interval(report.steps), actin)
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator, start, [errors], inside=True, point_radius=7.0)
    end = vesicle.mesh.with_vertices(state.positions[vesicle.beads])
    lines = [temperatures[handle.name] for handle in (vesicle, actin, *others)]
    lines.append(bound_line(f"largest error of {links}, relative", errors.largest, LENGTH_TOLERANCE))
    return [*lines, outside(end, state.positions[actin.beads])], state, end


class LinkErrors(Reporter):
    """Keeps the largest relative error of the lengths of links."""

    include: tuple[str, ...] = ("positions",)

    def __init__(self, interval: int, filaments: Filaments) -> None:
        super().__init__(interval)
        self._filaments = filaments
        self.largest: float = 0.0

    def report(self, simulation: Simulation, state: State) -> None:
        filaments = self._filaments
        a, b = filaments.beads[filaments.links.T]
        lengths = np.linalg.norm(state.positions[b] - state.positions[a], axis=1)
        self.largest = max(self.largest, float(np.abs(lengths / filaments.link_lengths - 1.0).max()))


# Measured against expected ----------------------------------------------------------------------------------


def outside(mesh: TriangleMesh, nodes: np.ndarray) -> Line:
    outside = int((~mesh.contains(nodes)).sum())
    return Line("nodes outside the vesicle", outside, None, 0, "", "none", "OK" if outside == 0 else "CHECK")


def _shapes_and_ties(seed: int, threads: int) -> list[Line]:
    """Measure filaments that do not collide, each tied by one end to a protein of a vesicle that is held still.

    Theory is exact for them. The shapes are those of the worm-like chain of Kratky and Porod, of N links ℓ with the
    energy (B/ℓ)(1 - cos θ) at each joint: with a = B/ℓkT and u = <cos θ> = coth a - 1/a,

        <R²> = ℓ² (N (1 + u)/(1 - u) - 2u (1 - u^N)/(1 - u)²),

    constraints notwithstanding, thanks to the Fixman potential. A tie does not change that, since each filament may be
    moved as a whole; nor do shapes and membrane matter to the tie, a spring of stiffness k and length L in space:

        <U> = kT/2 (L² + 3s²)/(L² + s²), s² = kT/k,

    3/2 kT for L = 0 and 1/2 kT for L much longer than s. Only collisions would. So the triangles may be large.
    """
    kT = TEMPERATURE * units.boltzmann
    mesh = TriangleMesh.icosphere(RADIUS, 1)
    system = with_actin(mesh, SIDE_FILAMENTS, SIDE_FILAMENTS, SIDE_FILAMENTS, seed + 10, held=True)
    handles: tuple[Any, ...] = system.topology.handles
    _, proteins, actin = handles
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=seed + 10)
    context = at_temperature(system, integrator, threads)
    context.step(SIDE_START)
    looks = []
    for _ in range(SIDE_LOOKS):
        context.step(SIDE_INTERVAL)
        looks.append(context.get_state(positions=True).positions)
    x = np.array(looks)

    length = ACTIN.link_length
    a = ACTIN.bending_modulus / (length * kT)
    lost = 1.0 - 1.0 / tanh(a) + 1.0 / a
    bends = 0.5 * (length * contour_curvature(x, actin)) ** 2
    expected_p = -length / np.log1p(-lost)
    measured_p = persistence_length(x, actin)
    u, contour = 1.0 - lost, N_LINKS * length
    square = length**2 * (N_LINKS * (1.0 + u) / lost - 2.0 * u * (1.0 - u**N_LINKS) / lost**2)
    shorter = 1.0 - (end_to_end(x, actin) ** 2).sum(axis=2) / contour**2
    reach = np.linalg.norm(x[:, actin.beads[actin.starts[:-1]]] - x[:, proteins.beads], axis=2)
    ties = 0.5 * TIE_STIFFNESS * (reach - TIE_LENGTH) ** 2 / kT
    s2 = kT / TIE_STIFFNESS
    return [
        mean_line("bend of a joint, <1 - cos>", bends.reshape(SIDE_LOOKS, SIDE_FILAMENTS, -1).mean(axis=(0, 2)), lost),
        z_line(
            "persistence length", measured_p.value / units.micrometer, measured_p.error / units.micrometer,
            expected_p / units.micrometer, "µm",
        ),
        mean_line("end to end, 1 - <R²>/L²", shorter.mean(axis=0), 1.0 - square / contour**2),
        mean_line(
            "energy of a tie", ties.mean(axis=0), 0.5 * (TIE_LENGTH**2 + 3.0 * s2) / (TIE_LENGTH**2 + s2), "kT"
        ),
    ]
