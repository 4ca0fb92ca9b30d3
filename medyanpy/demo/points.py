"""Proteins on the membrane of a cell, on any mesh.

Lengths, energies, temperature and the diffusion constant of the proteins are those of a cell. Masses are not: the
inertia of a protein in a membrane is immeasurably small, so they only set the timestep; see `vertex_masses`.
"""

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

import medyanpy as mp
from medyanpy.demo.membrane import about_forces, add_membrane_forces, facts_of, size_of, thin_places, vertex_masses
from medyanpy.demo.registry import Option, demo
from medyanpy.demo.report import KT, TEMPERATURE, Demo, Line, Report, at_temperature, not_measured, uniformity_line

# nm²/s: a membrane protein that diffuses freely; and γ dt / 2m: velocities of proteins forget in a step; s.
PROTEIN_DIFFUSION, PROTEIN_X, TIMESTEP = 1e6, 0.5, 5e-6
CELL_SIZE = 8000.0  # The largest extent (nm) to which a mesh from a file is scaled.
COVERAGE = 0.1  # Share of the membrane that the proteins' discs would cover; they are drawn apart within one diameter.
# ω dt of the fastest vibration of the vertices, and of two proteins that overlap; and γ dt / M of the vertices, weak
# enough to let the membrane undulate.
LARGEST_PHASE, VERTEX_X = 0.25, 0.05


@demo(
    "points",
    "mutually repelling proteins on a thermally undulating red blood cell, or on a mesh of your own",
    mesh=Option(None, "PLY, OBJ, OFF or STL file; scaled to 8 µm", None),
    points=Option(2000, "proteins"),
    steps=Option(6000, "time steps"),
)
def run_demo(report: Report, mesh: Any, points: int) -> Demo:
    surface, about = _load(mesh)
    report.begin(about)
    system, notes = _build(surface, points, report.seed)
    vesicle = system.topology.handles[0]
    report.note(*notes)
    integrator = mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator)
    report.say("frozen    the same mesh held still, without interactions: uniformity")
    lines = [*temperatures.values(), _uniformity(surface, report.seed, report.threads)]
    return report.finish(
        surface, system.topology, lines, mesh=facts_of(surface, "red blood cell" if mesh is None else str(mesh)),
        notes=notes, points=points, area_at_the_end=surface.with_vertices(state.positions[vesicle.beads]).area,
    )  # fmt: skip


def _load(path: Any) -> tuple[mp.TriangleMesh, str]:
    """Load the mesh, scale it to the size of a cell, and describe it in a line."""
    if path is None:
        mesh = mp.TriangleMesh.red_blood_cell(frequency=22)  # 9 680 faces.
        return mesh, f"red blood cell (Evans & Fung): {size_of(mesh)}"
    raw = mp.TriangleMesh.from_file(path)
    mesh = raw.translated(-raw.vertices.mean(axis=0)).scaled(CELL_SIZE / float(np.ptp(raw.vertices, axis=0).max()))
    if mesh.is_closed and mesh.volume < 0.0:
        mesh = mp.TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    return mesh, f"{Path(path).name}, scaled to {CELL_SIZE / mp.units.micrometer:g} µm: {size_of(mesh)}"


def _build(mesh: mp.TriangleMesh, points: int, seed: int) -> tuple[mp.System, list[str]]:
    """Build topology and forces, and describe them."""
    friction = KT / PROTEIN_DIFFUSION
    mass = friction * TIMESTEP / (2.0 * PROTEIN_X)
    diameter = sqrt(COVERAGE * mesh.area / points / (np.pi / 4.0))
    # Two equal masses m on a spring k: ω² = 2k/m; three times as much for a protein among several.
    softness = LARGEST_PHASE**2 * mass / (6.0 * TIMESTEP**2)

    def system_with(vertex_mass: np.ndarray) -> mp.System:
        topology = mp.Topology()
        vesicle = topology.add_membrane(mesh, vertex_mass, VERTEX_X * vertex_mass / TIMESTEP)
        proteins = topology.add_intriangle_points(
            vesicle, points, mass=mass, friction=friction, seed=seed, name="proteins"
        )
        system = mp.System(topology)
        add_membrane_forces(system, vesicle)
        system.add_force(mp.forces.SoftSphere(proteins, proteins, softness, diameter))
        return system

    notes = [
        f"{points} proteins that repel each other within {diameter:.0f} nm, D = "
        f"{PROTEIN_DIFFUSION / mp.units.micrometer2_per_second:g} µm²/s, kT = {KT:.2f} pN nm",
        about_forces(mesh),
    ]
    thin = thin_places(mesh)
    if thin.any():
        notes.append(
            f"{int(thin.sum())} of {len(thin)} vertices touch triangles that are too thin to have a curvature: "
            "no bending there, and masses so large that they hardly move"
        )
    return system_with(vertex_masses(mesh, points * mass, TIMESTEP, LARGEST_PHASE, system_with)), notes


def _uniformity(mesh: mp.TriangleMesh, seed: int, threads: int) -> Line:
    """Compute chi-square of the numbers of free points on groups of faces of like size, after a flight over some ten
    triangles of the mesh, held still. What a wrong measure or reflection gets wrong is the share of small triangles."""
    n, speed = 20_000, 0.5 * float(np.median(mesh.edge_lengths)) / TIMESTEP
    mass = KT / speed**2
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(membrane, n, mass=mass, friction=2.0 * PROTEIN_X * mass / TIMESTEP, seed=seed + 11)
    integrator = mp.BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=seed + 10)
    context = at_temperature(mp.System(topology), integrator, threads)
    context.step(200)
    triangles = context.get_state(positions=True).intriangle.triangles
    order = np.argsort(mesh.face_areas, kind="stable")
    share = np.cumsum(mesh.face_areas[order]) / mesh.area
    # Forty groups of about the same area, those that a single large triangle skips left out.
    group = np.empty(len(order), np.int64)
    group[order] = np.unique(np.minimum((40.0 * share).astype(np.int64), 39), return_inverse=True)[1]
    expected = n * np.bincount(group, mesh.face_areas) / mesh.area
    if len(expected) < 2 or expected.min() < 5.0:
        return not_measured("uniformity, chi-square p", None, "", "triangles too few to compare")
    return uniformity_line(np.bincount(group[triangles], minlength=len(expected)), expected)
