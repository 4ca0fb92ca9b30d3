"""Adenylate kinase in water near a membrane: three rigid domains, joined by linkers, that feel each other through the
fluid.

A protein of several bodies has as much friction as its parts together, and would diffuse at half its speed; with the
water between the domains it diffuses as one body of all its residues does. Masses are ten times those of the protein,
which changes neither equilibrium nor diffusion; a step of 2 ps resolves the linkers.
"""

from typing import Any

import numpy as np

from medyanpy import forces, presets, units
from medyanpy._tools import quaternions
from medyanpy.beads import RigidBodies
from medyanpy.beads.rigid_bodies import solid_semi_axes
from medyanpy.context import Context
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
    near_line,
    random_turns,
    size_of,
)  # fmt: skip
from medyanpy.hydrodynamics import RotnePrager, mobility_matrix
from medyanpy.integrators import BAGOGABIntegrator, BrownianIntegrator, SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.rigid import center_of_diffusion, friction_to_diffusion, move_diffusion
from medyanpy.rigid.molecules import RigidMolecule
from medyanpy.system import System
from medyanpy.topology import Topology

# nm; s; and by how much proteins are heavier than they are.
RADIUS, SUBDIVISIONS, TIMESTEP, HEAVIER = 36.0, 3, 2e-12, 10.0
# Numbers of a vertex: the lipids around it, and a disc of them in water. Numbers of a lipid that a protein holds on to.
VERTEX_MASS, VERTEX_FRICTION, LIPID_MASS, LIPID_FRICTION = 5e-20, 5e-8, 2e-20, 2e-8
# nm: middles of the proteins from the membrane; half its thickness; pN/nm and nm of what ties a protein to a lipid.
HEIGHT, HALF_THICKNESS, TETHER, TETHER_LENGTH = 7.0, 2.0, 10.0, 5.0
#: pN s/nm: of the whole protein as one rigid body of 214 spheres (4AKE, `rigid.from_structure`, residues).
WHOLE = 4.6583e-8
# The side runs: proteins, how far from each other, steps and looks; Brownian ones, and those whose linkers are weighed.
FREE, SPACING = 30, 60.0
FREE_TIMESTEP, FREE_LOOK, FREE_LOOKS = 1e-12, 200, 30
WEIGHED_START, WEIGHED_LOOK, WEIGHED_LOOKS = 200, 40, 40


@demo(
    "protein",
    "adenylate kinases of three rigid domains in water, around a vesicle",
    proteins=Option(12, "proteins, every second one tied to a lipid", 2, 40),
    steps=Option(8000, "time steps"),
)
def run_protein_demo(report: Report, proteins: int) -> Demo:
    kinase = presets.adenylate_kinase()
    mesh = TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(f"vesicle: {size_of(mesh)}")
    system = _near_a_membrane(kinase, mesh, proteins, report.seed)
    handles: Any = system.topology.handles
    vesicle, lipids, bodies = handles
    assert system.hydrodynamics is not None
    assert kinase.linkers is not None
    radius = system.hydrodynamics.radius(bodies)[: len(kinase.bodies)]
    report.note(
        f"{proteins} adenylate kinases of {len(kinase.bodies)} rigid domains and {len(kinase.linkers.stiffness)} "
        f"linkers each; {len(lipids)} are tied to lipids",
        "domains feel each other through the water as spheres of " + ", ".join(f"{a:.2f}" for a in radius) + " nm",
        about_membrane_forces(mesh),
    )
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator, semi_axes={bodies.name: axes}, point_radius=1.0)
    lines = [temperatures[handle.name] for handle in (vesicle, bodies)]
    inside = mesh.with_vertices(state.positions[vesicle.beads]).contains(state.positions[bodies.beads])
    lines.append(bound_line("bodies inside the vesicle", float(inside.sum()), 0.5))
    report.say(f"free      {FREE} proteins {SPACING:g} nm apart: energy of their linkers, diffusion without inertia")
    lines.append(_energy_of_linkers(kinase, report.seed, report.threads))
    lines += _diffusion(kinase, report.seed, report.threads)
    return report.finish(mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), proteins=proteins)


def _near_a_membrane(kinase: RigidMolecule, mesh: TriangleMesh, n: int, seed: int) -> System:
    """Place proteins evenly around a vesicle; the lipids are below the proteins that are tied to them."""
    rng = np.random.default_rng(seed)
    # Fibonacci's lattice on a sphere.
    k = np.arange(n) + 0.5
    z, angle = 1.0 - 2.0 * k / n, np.pi * (1.0 + np.sqrt(5.0)) * k
    directions = np.column_stack([np.sqrt(1.0 - z * z) * np.cos(angle), np.sqrt(1.0 - z * z) * np.sin(angle), z])
    topology = Topology()
    vesicle = topology.add_membrane(mesh, VERTEX_MASS, VERTEX_FRICTION, name="vesicle")
    middles = mesh.vertices[mesh.faces].mean(axis=1)
    below = np.argmax(directions[::2] @ middles.T, axis=1)
    lipids = topology.add_intriangle_points(
        vesicle, triangles=below, barycentric=np.full((len(below), 3), 1.0 / 3.0), mass=LIPID_MASS,
        friction=LIPID_FRICTION, name="lipids",
    )  # fmt: skip
    bodies = topology.add_rigid_bodies(
        **kinase.arguments((RADIUS + HEIGHT) * directions, random_turns(n, rng), mass_scale=HEAVIER), name="kinases"
    )
    system = System(topology)
    add_membrane_forces(system, vesicle)
    system.add_force(forces.Links(**kinase.links(bodies), name="linkers"))
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    kT = TEMPERATURE * units.boltzmann
    own = bodies.beads.reshape(n, -1)
    pairs = [np.column_stack([own[:, a], own[:, b]]) for a in range(own.shape[1]) for b in range(a)]
    system.add_force(forces.EllipsoidRepulsion(bodies, bodies, kT, axes, exclusions=np.concatenate(pairs)))
    system.add_force(forces.EllipsoidCollisions(bodies, vesicle, 10.0 * kT, axes, HALF_THICKNESS, form="soft"))
    length = TETHER_LENGTH + HALF_THICKNESS
    system.add_force(forces.Links(own[::2, 0], lipids.beads, stiffness=TETHER, length=length, name="tethers"))
    system.add_hydrodynamics(RotnePrager(presets.WATER, bodies))
    return system


# Measured against expected ----------------------------------------------------------------------------------


def _alone(kinase: RigidMolecule, seed: int, **how: Any) -> tuple[System, RigidBodies]:
    """Build proteins far from each other."""
    side = int(np.ceil(FREE ** (1.0 / 3.0)))
    places = SPACING * np.stack(np.unravel_index(np.arange(FREE), (side,) * 3), axis=1)
    topology = Topology()
    turns = random_turns(FREE, np.random.default_rng(seed))
    bodies = topology.add_rigid_bodies(**kinase.arguments(places, turns, **how))
    system = System(topology)
    system.add_force(forces.Links(**kinase.links(bodies), name="linkers"))
    system.add_hydrodynamics(RotnePrager(presets.WATER, bodies))
    return system, bodies


def _energy_of_linkers(kinase: RigidMolecule, seed: int, threads: int) -> Line:
    """Measure the energy of linkers: of n bodies, 6 (n - 1) coordinates have ½kT each. All molecules are alike and
    independent but for the water between them, so that samples far enough apart count as independent."""
    system, _ = _alone(kinase, seed + 10, mass_scale=HEAVIER)
    integrator = SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed + 10)
    context = at_temperature(system, integrator, threads, seed)
    context.step(WEIGHED_START)
    kT, found = TEMPERATURE * units.boltzmann, []
    for _ in range(WEIGHED_LOOKS):
        context.step(WEIGHED_LOOK)
        found.append(context.get_state(energy=True).energies["linkers"] / (FREE * kT))
    return mean_line("energy of the linkers of a protein", np.array(found), 3.0 * (len(kinase.bodies) - 1), "kT")


def _diffusion(kinase: RigidMolecule, seed: int, threads: int) -> list[Line]:
    """Measure diffusion without inertia: a third of the trace at the centre of diffusion, of three bodies that the
    water joins and the linkers hold together; and that of one body of all residues. Linkers give, which makes proteins
    2 % faster than bodies held rigidly: less than a run of this length sees."""
    system, bodies = _alone(kinase, seed + 20)
    integrator = BrownianIntegrator(FREE_TIMESTEP, temperature=TEMPERATURE, seed=seed + 20)
    context = Context(system, integrator, threads)
    own = bodies.beads.reshape(FREE, -1)
    assert system.hydrodynamics is not None
    expected, alone = _coefficients(kinase, system.hydrodynamics.radius(bodies)[: own.shape[1]])
    # Their middle by friction: what the linkers do to each other hardly moves it.
    weight = bodies.friction[: own.shape[1]] / bodies.friction[: own.shape[1]].sum()
    squares = np.zeros(FREE)
    before = None
    for _ in range(FREE_LOOKS + 1):
        now = weight @ context.get_state(positions=True).positions[own]
        if before is not None:
            squares += ((now - before) ** 2).sum(axis=1)
        before = now
        context.step(FREE_LOOK)
    unit = units.micrometer2_per_second
    measured = squares / (6.0 * FREE_LOOKS * FREE_LOOK * FREE_TIMESTEP)
    whole = TEMPERATURE * units.boltzmann / WHOLE
    return [
        mean_line("diffusion of proteins", measured / unit, expected / unit, "µm²/s"),
        near_line("the same, and of one body of 214 spheres", expected / unit, whole / unit, 0.05, "µm²/s"),
        near_line("without the water between domains, half", alone / expected, 0.5, 0.1),
    ]


def _coefficients(kinase: RigidMolecule, radius: np.ndarray) -> tuple[float, float]:
    """Return diffusion coefficients, nm²/s, with and without the water between domains, which are held together."""
    given = kinase.arguments()
    x, q = given["positions"], given["orientations"]
    n, kT = len(x), TEMPERATURE * units.boltzmann
    together = mobility_matrix(x, radius, presets.WATER, rotation=True)
    apart = np.zeros_like(together)
    motions = np.zeros((6 * n, 6))
    for i in range(n):
        turn = np.kron(np.eye(2), quaternions.turned(np.tile(q[i], (3, 1)), np.eye(3)).T)
        block = slice(6 * i, 6 * i + 6)
        together[block, block] = apart[block, block] = turn @ np.linalg.inv(given["friction"][i]) @ turn.T
        motions[block] = np.eye(6)
        motions[6 * i : 6 * i + 3, 3:] = np.cross(np.eye(3), x[i]).T
    out = []
    for mobility in (together, apart):
        friction = motions.T @ np.linalg.solve(mobility, motions)
        diffusion = friction_to_diffusion(0.5 * (friction + friction.T), kT=kT)
        center = center_of_diffusion(diffusion)
        out.append(float(np.trace(move_diffusion(diffusion, center)[:3, :3])) / 3.0)
    return out[0], out[1]
