"""Adenylate kinase in water near a membrane: three rigid domains, joined by linkers, that feel each other through the
fluid.

A protein of several bodies has as much friction as its parts together, and would diffuse at half its speed; with the
water between the domains it diffuses as one body of all its residues does. Masses are ten times those of the protein,
which changes neither equilibrium nor diffusion; a step of 2 ps resolves the linkers.
"""

from typing import Any

import numpy as np

from medyanpy import presets, units
from medyanpy._tools import quaternions
from medyanpy._tools.validation import whole_number
from medyanpy.beads import RigidBodies
from medyanpy.beads.rigid_bodies import solid_semi_axes
from medyanpy.context import Context
from medyanpy.demo.membrane import about_membrane_forces, add_membrane_forces
from medyanpy.demo.report import (
    TEMPERATURE,
    Demo,
    Line,
    Report,
    bound_line,
    demo,
    facts_of,
    mean_line,
    near_line,
    size_of,
)
from medyanpy.forces import EllipsoidCollisions, EllipsoidRepulsion, Links
from medyanpy.hydrodynamics import RotnePrager, mobility_matrix
from medyanpy.integrators import BAGOGABIntegrator, BrownianIntegrator, SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.rigid import center_of_diffusion, friction_to_diffusion, move_diffusion
from medyanpy.rigid.molecules import RigidMolecule
from medyanpy.system import System
from medyanpy.topology import Topology

# nm; s; and by how much proteins are heavier than they are.
RADIUS, SUBDIVISIONS, TIMESTEP, HEAVIER = 36.0, 3, 2e-12, 10.0
# Of a vertex: the lipids around it, and a disc of them in water. Of a lipid that a protein holds on to.
VERTEX_MASS, VERTEX_FRICTION, LIPID_MASS, LIPID_FRICTION = 5e-20, 5e-8, 2e-20, 2e-8
# nm: middles of the proteins from the membrane; half its thickness; pN/nm and nm of what ties a protein to a lipid.
HEIGHT, HALF_THICKNESS, TETHER, TETHER_LENGTH = 7.0, 2.0, 10.0, 5.0
#: pN s/nm: of the whole protein as one rigid body of 214 spheres (4AKE, `rigid.from_structure`, residues).
WHOLE = 4.6583e-8
# The side runs: proteins, how far from each other, steps and looks; Brownian ones, and those whose linkers are weighed.
FREE, SPACING = 30, 60.0
FREE_TIMESTEP, FREE_LOOK, FREE_LOOKS = 1e-12, 200, 30
WEIGHED_START, WEIGHED_LOOK, WEIGHED_LOOKS = 200, 40, 40


@demo("medyanpy-demo-protein")
def run_protein_demo(report: Report, *, proteins: int = 12, steps: int = 8000) -> Demo:
    """Run the demo of proteins in water near a membrane and write its files.

    proteins : int, 2 to 40
        Adenylate kinases of three bodies around a vesicle of 36 nm; every second one is tied to a lipid.
    steps : int, >= 1
    """
    proteins = whole_number("proteins", proteins, at_least=2, at_most=40)
    kinase = presets.adenylate_kinase()
    mesh = TriangleMesh.icosphere(RADIUS, SUBDIVISIONS)
    report.begin(steps, f"vesicle: {size_of(mesh)}")
    system = _near_a_membrane(kinase, mesh, proteins, report.seed)
    handles: Any = system.topology.handles
    vesicle, lipids, bodies = handles
    assert system.hydrodynamics is not None
    assert kinase.linkers is not None
    radius = system.hydrodynamics.radius(bodies)[: len(kinase.bodies)]
    for note in (
        f"{proteins} adenylate kinases of {len(kinase.bodies)} rigid domains and {len(kinase.linkers.stiffness)} "
        f"linkers each; {len(lipids)} are tied to lipids",
        "domains feel each other through the water as spheres of " + ", ".join(f"{a:.2f}" for a in radius) + " nm",
        about_membrane_forces(mesh),
    ):
        report.say(f"          {note}")
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator, semi_axes={bodies.name: axes}, point_radius=1.0)
    lines = [temperatures[handle.name] for handle in (vesicle, bodies)]
    inside = _inside(mesh.with_vertices(state.positions[vesicle.beads]), state.positions[bodies.beads])
    lines.append(bound_line("bodies inside the vesicle", inside, 0.5))
    report.say(f"free      {FREE} proteins {SPACING:g} nm apart: energy of their linkers, diffusion without inertia")
    lines.append(_energy_of_linkers(kinase, report.seed, report.threads))
    lines += _diffusion(kinase, report.seed, report.threads)
    return report.finish(
        mesh, system.topology, lines, mesh=facts_of(mesh, "vesicle"), proteins=proteins, timestep=TIMESTEP
    )


def _turns(n: int, rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=(n, 4))
    turns: np.ndarray = q / np.linalg.norm(q, axis=1)[:, None]
    return turns


def _near_a_membrane(kinase: RigidMolecule, mesh: TriangleMesh, n: int, seed: int) -> System:
    """All around it, evenly; the lipids are below the proteins that are tied to them."""
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
        **kinase.arguments((RADIUS + HEIGHT) * directions, _turns(n, rng), mass_scale=HEAVIER), name="kinases"
    )
    system = System(topology)
    add_membrane_forces(system, vesicle)
    system.add_force(Links(**kinase.links(bodies), name="linkers"))
    axes = solid_semi_axes(bodies.mass, bodies.inertia)
    kT = TEMPERATURE * units.boltzmann
    own = bodies.beads.reshape(n, -1)
    pairs = [np.column_stack([own[:, a], own[:, b]]) for a in range(own.shape[1]) for b in range(a)]
    system.add_force(EllipsoidRepulsion(bodies, bodies, kT, axes, exclusions=np.concatenate(pairs)))
    system.add_force(EllipsoidCollisions(bodies, vesicle, 10.0 * kT, axes, HALF_THICKNESS, form="soft"))
    length = TETHER_LENGTH + HALF_THICKNESS
    system.add_force(Links(own[::2, 0], lipids.beads, stiffness=TETHER, length=length, name="tethers"))
    system.add_hydrodynamics(RotnePrager(presets.WATER, bodies))
    return system


def _inside(mesh: TriangleMesh, x: np.ndarray) -> float:
    """How many places are inside a closed mesh: by the solid angles of its triangles (van Oosterom and Strackee)."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] - x[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
    volume = np.einsum("...k,...k", a, np.cross(b, c))
    edges = [np.einsum("...k,...k", *pair) for pair in ((a, b), (b, c), (c, a))]
    angle = 2.0 * np.arctan2(volume, la * lb * lc + edges[0] * lc + edges[1] * la + edges[2] * lb)
    return float((np.abs(angle.sum(axis=1)) > 2.0 * np.pi).sum())


# Measured against expected ----------------------------------------------------------------------------------


def _alone(kinase: RigidMolecule, seed: int, **how: Any) -> tuple[System, RigidBodies]:
    """Proteins far from each other."""
    side = int(np.ceil(FREE ** (1.0 / 3.0)))
    places = SPACING * np.stack(np.unravel_index(np.arange(FREE), (side,) * 3), axis=1)
    topology = Topology()
    bodies = topology.add_rigid_bodies(**kinase.arguments(places, _turns(FREE, np.random.default_rng(seed)), **how))
    system = System(topology)
    system.add_force(Links(**kinase.links(bodies), name="linkers"))
    system.add_hydrodynamics(RotnePrager(presets.WATER, bodies))
    return system, bodies


def _energy_of_linkers(kinase: RigidMolecule, seed: int, threads: int) -> Line:
    """Of n bodies, 6 (n - 1) coordinates have ½kT each. All molecules are alike and independent but for the water
    between them, so that looks far enough apart count as samples."""
    system, _ = _alone(kinase, seed + 10, mass_scale=HEAVIER)
    integrator = SplittingIntegrator("BAOAB", TIMESTEP, temperature=TEMPERATURE, seed=seed + 10)
    context = Context(system, integrator, threads)
    context.set_velocities_to_temperature(TEMPERATURE, seed=seed)
    context.step(WEIGHED_START)
    kT, found = TEMPERATURE * units.boltzmann, []
    for _ in range(WEIGHED_LOOKS):
        context.step(WEIGHED_LOOK)
        found.append(context.get_state(energy=True).energies["linkers"] / (FREE * kT))
    return mean_line("energy of the linkers of a protein", np.array(found), 3.0 * (len(kinase.bodies) - 1), "kT")


def _diffusion(kinase: RigidMolecule, seed: int, threads: int) -> list[Line]:
    """Without inertia: a third of the trace at the centre of diffusion, of three bodies that the water joins and the
    linkers hold together; and what one body of all residues has. Linkers give, which makes proteins 2 % faster than
    bodies held rigidly: less than a run of this length sees."""
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
    """nm²/s, with and without the water between domains, which are held together."""
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
