"""Adenylate kinase in water near a membrane: three rigid domains, joined by linkers, that feel each other through the
fluid.

A protein of several bodies has as much friction as its parts together, and would diffuse at half its speed; with the
water between the domains it diffuses as one body of all its residues does. Masses are ten times those of the protein,
which changes neither equilibrium nor diffusion; a step of 2 ps resolves the linkers.
"""

from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.beads.rigid_bodies import solid_semi_axes
from medyanpy.demo.membrane import about_forces, add_membrane_forces, facts_of, size_of
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import KT, TEMPERATURE, Demo, Line, Report, at_temperature, bound_line, mean_line
from medyanpy.demo.rigid import random_turns
from medyanpy.rigid.molecules import RigidMolecule

# nm; s; and by how much proteins are heavier than they are.
RADIUS, SUBDIVISIONS, TIMESTEP, HEAVIER = 36.0, 3, 2e-12, 10.0
# Numbers of a vertex: the lipids around it, and a disc of them in water. Numbers of a lipid that a protein holds on to.
VERTEX_MASS, VERTEX_FRICTION, LIPID_MASS, LIPID_FRICTION = 5e-20, 5e-8, 2e-20, 2e-8
# nm: middles of the proteins from the membrane; half its thickness; pN/nm and nm of what ties a protein to a lipid.
HEIGHT, HALF_THICKNESS, TETHER, TETHER_LENGTH = 7.0, 2.0, 10.0, 5.0
# Proteins whose linkers are weighed, how far from each other, steps before the first look and between looks, and looks.
FREE, SPACING, START, LOOK, LOOKS = 30, 60.0, 200, 40, 40


@demo(
    "protein",
    "adenylate kinases of three rigid domains in water, around a vesicle",
    proteins=Option(12, "proteins, every second one tied to a lipid", 2, 40),
    steps=Option(8000, "time steps"),
)
def run_protein_demo(report: Report, proteins: int) -> Demo:
    kinase = mp.presets.adenylate_kinase()
    mesh = mp.TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
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
        about_forces(mesh),
    )
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    integrator = mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator, semi_axes={bodies.name: axes}, point_radius=1.0)
    inside = mesh.with_vertices(state.positions[vesicle.beads]).contains(state.positions[bodies.beads])
    lines = [temperatures[handle.name] for handle in (vesicle, bodies)]
    lines.append(bound_line("bodies inside the vesicle", float(inside.sum()), 0.5))
    report.say(f"free      {FREE} proteins {SPACING:g} nm apart: energy of their linkers")
    lines.append(_energy_of_linkers(kinase, report.seed, report.threads))
    return report.finish(mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), proteins=proteins)


def _with_proteins(topology: mp.Topology, kinase: RigidMolecule, places: np.ndarray, turns: np.ndarray) -> mp.System:
    """Build a system of membranes and of proteins with their linkers, in water."""
    bodies = topology.add_rigid_bodies(**kinase.arguments(places, turns, mass_scale=HEAVIER), name="kinases")
    system = mp.System(topology)
    for membrane in topology.membranes:
        add_membrane_forces(system, membrane)
    system.add_force(mp.forces.Links(**kinase.links(bodies), name="linkers"))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(mp.presets.WATER, bodies))
    return system


def _near_a_membrane(kinase: RigidMolecule, mesh: mp.TriangleMesh, n: int, seed: int) -> mp.System:
    """Place proteins evenly around a vesicle; the lipids are below the proteins that are tied to them."""
    k = np.arange(n) + 0.5  # Fibonacci's lattice on a sphere.
    z, angle = 1.0 - 2.0 * k / n, np.pi * (1.0 + np.sqrt(5.0)) * k
    directions = np.column_stack([np.sqrt(1.0 - z * z) * np.cos(angle), np.sqrt(1.0 - z * z) * np.sin(angle), z])
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, VERTEX_MASS, VERTEX_FRICTION, name="vesicle")
    below = np.argmax(directions[::2] @ mesh.vertices[mesh.faces].mean(axis=1).T, axis=1)
    lipids = topology.add_intriangle_points(
        vesicle, triangles=below, barycentric=np.full((len(below), 3), 1.0 / 3.0), mass=LIPID_MASS,
        friction=LIPID_FRICTION, name="lipids",
    )  # fmt: skip
    turns = random_turns(n, np.random.default_rng(seed))
    system = _with_proteins(topology, kinase, (RADIUS + HEIGHT) * directions, turns)
    bodies: Any = topology["kinases"]
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    own = bodies.beads.reshape(n, -1)
    pairs = np.concatenate([own[:, [a, b]] for a in range(own.shape[1]) for b in range(a)])
    system.add_force(mp.forces.EllipsoidRepulsion(bodies, bodies, KT, axes, exclusions=pairs))
    system.add_force(mp.forces.EllipsoidCollisions(bodies, vesicle, 10.0 * KT, axes, HALF_THICKNESS, form="soft"))
    length = TETHER_LENGTH + HALF_THICKNESS
    system.add_force(mp.forces.Links(own[::2, 0], lipids.beads, stiffness=TETHER, length=length, name="tethers"))
    return system


def _energy_of_linkers(kinase: RigidMolecule, seed: int, threads: int) -> Line:
    """Measure the energy of linkers: of n bodies, 6 (n - 1) coordinates have ½kT each. All molecules are alike and
    independent but for the water between them, so that samples far enough apart count as independent."""
    side = int(np.ceil(FREE ** (1.0 / 3.0)))
    places = SPACING * np.stack(np.unravel_index(np.arange(FREE), (side,) * 3), axis=1)
    system = _with_proteins(mp.Topology(), kinase, places, random_turns(FREE, np.random.default_rng(seed + 10)))
    integrator = mp.SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed + 10)
    context = at_temperature(system, integrator, threads, seed)
    context.step(START)
    found = []
    for _ in range(LOOKS):
        context.step(LOOK)
        found.append(context.get_state(energy=True).energies["linkers"] / (FREE * KT))
    return mean_line("energy of the linkers of a protein", np.array(found), 3.0 * (len(kinase.bodies) - 1), "kT")
