"""Proteins on a living cell membrane.

It chooses its numbers for any mesh. Lengths, energies, temperature and the diffusion constant of the proteins are
those of a cell. Masses are not: the inertia of a protein in a membrane is immeasurably small, so they only set the
timestep. Each vertex gets a mass that keeps the stiffest vibration of the mesh, which is measured, slow against the
timestep; see `vertex_masses`.
"""

import heapq
import itertools
from collections.abc import Callable
from math import exp, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy import forces, units
from medyanpy.context import Context
from medyanpy.demo.membrane import (
    BENDING_MODULUS,
    THIN,
    about_membrane_forces,
    add_membrane_forces,
    heights,
    lowest_heights,
    thin_places,
)
from medyanpy.demo.report import (
    TEMPERATURE,
    Demo,
    Line,
    Option,
    Report,
    at_temperature,
    demo,
    facts_of,
    not_measured,
    size_of,
    uniformity_line,
    z_line,
)
from medyanpy.integrators import BAGOGABIntegrator, SplittingIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.system import System
from medyanpy.topology import Topology

# nm²/s: a membrane protein that diffuses freely.
PROTEIN_DIFFUSION = 1e6
# γ dt / 2m of the proteins: their velocities forget in a step, and x coth x differs from 1 by 8 %, which is seen.
PROTEIN_X = 0.5
# s
TIMESTEP = 5e-6
# The largest extent (nm) to which a mesh from a file is scaled.
CELL_SIZE = 8000.0
# Share of the membrane that the proteins' discs would cover; they are drawn apart within one diameter.
COVERAGE = 0.1
# ω dt of the fastest vibration of the vertices, and of two proteins that overlap.
LARGEST_PHASE = 0.25
# γ dt / M of the vertices: weak, so that the membrane undulates.
VERTEX_X = 0.05


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
    vesicle, proteins = system.topology.handles
    report.note(*notes)
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=report.seed)
    temperatures, state = report.run(system, integrator)
    report.say("frozen    the same mesh held still, without interactions: uniformity and diffusion")
    lines = [temperatures[handle.name] for handle in (vesicle, proteins)]
    lines.append(_uniformity(surface, report.seed, report.threads))
    lines.append(_diffusion(surface, report.seed, report.threads))
    return report.finish(
        surface, system.topology, lines, mesh=facts_of(surface, "red blood cell" if mesh is None else str(mesh)),
        notes=notes, points=points, area_at_the_end=surface.with_vertices(state.positions[vesicle.beads]).area,
    )  # fmt: skip


# The mesh and the forces ------------------------------------------------------------------------------------


def _load(path: Any) -> tuple[TriangleMesh, str]:
    """Load the mesh, scale it to the size of a cell, and describe it in a line."""
    if path is None:
        # 9 680 faces.
        mesh = TriangleMesh.red_blood_cell(frequency=22)
        return mesh, f"red blood cell (Evans & Fung): {size_of(mesh)}"
    raw = TriangleMesh.from_file(path)
    extent = float(np.ptp(raw.vertices, axis=0).max())
    mesh = raw.translated(-raw.vertices.mean(axis=0)).scaled(CELL_SIZE / extent)
    if mesh.is_closed and mesh.volume < 0.0:
        mesh = TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    return mesh, f"{Path(path).name}, scaled to {CELL_SIZE / units.micrometer:g} µm: {size_of(mesh)}"


def _build(mesh: TriangleMesh, points: int, seed: int) -> tuple[System, list[str]]:
    """Build topology and forces, and describe them."""
    kT = TEMPERATURE * units.boltzmann
    thin = thin_places(mesh)
    friction = kT / PROTEIN_DIFFUSION
    mass = friction * TIMESTEP / (2.0 * PROTEIN_X)
    diameter = sqrt(COVERAGE * mesh.area / points / (np.pi / 4.0))
    # Two equal masses m on a spring k: ω² = 2k/m; three times as much for a protein among several.
    softness = LARGEST_PHASE**2 * mass / (6.0 * TIMESTEP**2)
    notes = [
        f"{points} proteins that repel each other within {diameter:.0f} nm, D = "
        f"{PROTEIN_DIFFUSION / units.micrometer2_per_second:g} µm²/s, kT = {kT:.2f} pN nm",
        about_membrane_forces(mesh),
    ]

    def system_with(vertex_mass: np.ndarray) -> System:
        topology = Topology()
        vesicle = topology.add_membrane(mesh, vertex_mass, VERTEX_X * vertex_mass / TIMESTEP)
        proteins = topology.add_intriangle_points(
            vesicle, points, mass=mass, friction=friction, seed=seed, name="proteins"
        )
        system = System(topology)
        add_membrane_forces(system, vesicle)
        system.add_force(forces.SoftSphere(proteins, proteins, softness, diameter))
        return system

    system = system_with(vertex_masses(mesh, lowest_heights(mesh), thin, points * mass, system_with))
    if thin.any():
        notes.append(
            f"{int(thin.sum())} of {len(thin)} vertices touch triangles that are too thin to have a curvature: "
            "no bending there, and masses so large that they hardly move"
        )
    return system, notes


def vertex_masses(
    mesh: TriangleMesh, lowest: np.ndarray, thin: np.ndarray, load: float, system_with: Callable[[np.ndarray], System]
) -> np.ndarray:
    """Return masses with which `TIMESTEP` resolves every vibration of the vertices, (V,).

    A guess from the size of triangles, stiffness ~ 1/height² as for bending and for springs that allow a given
    strain, sets the ratios of the masses. The fastest vibration is then measured, by power iteration with the
    forces themselves, and all masses are scaled. Vertices of thin triangles get what makes them travel less than
    a hundredth of the height in a thousand steps.
    """
    kT = TEMPERATURE * units.boltzmann
    typical = float(np.median(lowest[~thin])) if (~thin).any() else float(np.median(lowest))
    ratio = (typical / np.maximum(lowest, THIN * typical)) ** 2
    # No vertex lighter than what its share of the proteins weighs: they push it about.
    share = np.bincount(mesh.faces.ravel(), np.repeat(mesh.face_areas, 3), len(ratio)) / (3.0 * mesh.area)
    # A stiffness of 30 κ/l² is that of bending on a regular triangular lattice, at its shortest wave.
    mass = ratio * 30.0 * BENDING_MODULUS / typical**2 * (TIMESTEP / LARGEST_PHASE) ** 2
    held = kT * (1000.0 * TIMESTEP / (0.01 * lowest)) ** 2
    for _ in range(3):
        mass = np.maximum(mass, 5.0 * load * share)
        masses = np.where(thin, np.maximum(held, mass), mass)
        phase = sqrt(_fastest(system_with(masses), masses)) * TIMESTEP
        mass = mass * max(1.0, (phase / LARGEST_PHASE) ** 2)
        if phase <= LARGEST_PHASE:
            break
    masses = np.where(thin, np.maximum(held, mass), mass)
    return np.asarray(masses)


def _fastest(system: System, masses: np.ndarray) -> float:
    """Return the largest eigenvalue of M^-1/2 K M^-1/2 of the vertices, ω², by power iteration on central differences.

    Points ride along. Thirty iterations from a random start come within a few percent; a tenth is added.
    """
    # The context serves for its forces only: with masses that are still a guess no step of the run's length would be
    # stable.
    context = Context(system, SplittingIntegrator("BAGAB", 1e-6 * TIMESTEP), threads=1)
    handles: Any = system.topology.handles
    vesicle, proteins = handles
    x = np.array(context.get_state(positions=True).positions)
    rows = vesicle.beads
    weights = proteins.barycentric[:, :, None]
    corners = vesicle.mesh.faces[proteins.triangles]

    def force(shift: np.ndarray) -> np.ndarray:
        moved = x.copy()
        moved[rows] += shift
        context.set_positions(moved)
        f = context.get_state(forces=True).forces
        out = np.array(f[rows])
        # Forces that points pass on are not in the vertices' rows.
        np.add.at(out, corners, weights * f[proteins.beads][:, None, :])
        return out

    light = masses < 1e6 * np.median(masses)
    root = np.sqrt(masses)[:, None]
    u = np.random.default_rng(1).normal(size=(len(masses), 3)) * light[:, None]
    largest = 0.0
    reach = 1e-3 * float(np.median(heights(vesicle.mesh)))
    for _ in range(30):
        u /= np.linalg.norm(u)
        shift = u / root
        scale = reach / np.abs(shift).max()
        u = (force(-scale * shift) - force(scale * shift)) / (2.0 * scale * root) * light[:, None]
        largest = float(np.linalg.norm(u))
        if largest == 0.0:
            break
    return 1.1 * largest


# Measured against expected ----------------------------------------------------------------------------------


def _tracers(mesh: TriangleMesh, threads: int, noise: int, *, mass: float, friction: float, **where: Any) -> Context:
    """Build points that see nothing but the mesh, which is held still; at equilibrium."""
    topology = Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(membrane, mass=mass, friction=friction, **where)
    return at_temperature(
        System(topology), BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=noise), threads
    )


def _uniformity(mesh: TriangleMesh, seed: int, threads: int) -> Line:
    """Compute chi-square of the number of tracers on groups of faces of like size, after a flight over some ten
    triangles.

    Groups of like size, since what a wrong measure or reflection gets wrong is the share of small triangles.
    """
    n = 20_000
    # Fast tracers: half an edge per step.
    speed = 0.5 * float(np.median(mesh.edge_lengths)) / TIMESTEP
    mass = TEMPERATURE * units.boltzmann / speed**2
    context = _tracers(
        mesh, threads, seed + 10, mass=mass, friction=2.0 * PROTEIN_X * mass / TIMESTEP, n=n, seed=seed + 11
    )
    context.step(200)
    triangles = context.get_state(positions=True).intriangle.triangles
    order = np.argsort(mesh.face_areas, kind="stable")
    share = np.cumsum(mesh.face_areas[order]) / mesh.area
    # Forty groups of about the same area, those that a single large triangle skips left out.
    group = np.empty(len(order), np.int64)
    group[order] = np.unique(np.minimum((40.0 * share).astype(np.int64), 39), return_inverse=True)[1]
    expected = n * np.bincount(group, mesh.face_areas) / mesh.area
    counts = np.bincount(group[triangles], minlength=len(expected))
    if len(expected) < 2 or expected.min() < 5.0:
        return not_measured("uniformity, chi-square p", None, "", "triangles too few to compare")
    return uniformity_line(counts, expected)


def _diffusion(mesh: TriangleMesh, seed: int, threads: int) -> Line:
    """Measure the diffusion constant of the demo's proteins without interactions, against (kT/γ) x coth x.

    Tracers start in the middle of some triangles. Where they are after n steps is measured in the plane, into which the
    surroundings of the triangle are unfolded. Dihedral angles, however sharp, do not matter then, but the angle that is
    missing or left over round a vertex does. So only triangles with little of it and no border near them are used. The
    mean square displacement after n steps has a closed form, which for n → ∞ is 4 D n dt with D = (kT/γ) x coth x.
    """
    kT = TEMPERATURE * units.boltzmann
    friction = kT / PROTEIN_DIFFUSION
    mass = friction * TIMESTEP / (2.0 * PROTEIN_X)
    x = friction * TIMESTEP / (2.0 * mass)
    expected = kT / friction * x / tanh(x)
    what, unit = "diffusion constant", "µm²/s"
    # Until most have crossed an edge or are about to: a mean displacement of the radius of the inscribed circle.
    radius = 2.0 * mesh.face_areas / _perimeters(mesh)
    n_steps = int(np.clip(np.median(radius) ** 2 / (4.0 * expected * TIMESTEP), 10, 400))
    square = 2.0 * kT / mass * TIMESTEP**2 * _velocity_sum(exp(-2.0 * x), n_steps)
    reach = 4.5 * sqrt(square)

    rng = np.random.default_rng(seed)
    candidates = np.flatnonzero((radius > 0.5 * sqrt(square)) & (mesh.quality > 0.3))
    rng.shuffle(candidates)
    patches = {}
    for face in candidates[:1000]:
        patch = _unfold(mesh, int(face), reach)
        if patch is not None:
            patches[int(face)] = patch
        if len(patches) == 100:
            break
    if not patches:
        return not_measured(what, expected * 1e-6, unit, "no flat place, large enough, on this mesh")
    each = 20_000 // len(patches)
    faces = np.repeat(np.fromiter(patches, np.int64), each)
    context = _tracers(
        mesh,
        threads,
        seed + 20,
        mass=mass,
        friction=friction,
        triangles=faces,
        barycentric=np.full((len(faces), 3), 1.0 / 3.0),
    )
    context.step(n_steps)
    places = context.get_state(positions=True).intriangle
    moved = np.empty(len(faces))
    for k, patch in enumerate(patches.values()):
        rows = slice(k * each, (k + 1) * each)
        corners = np.array([patch[t] for t in places.triangles[rows].tolist()])
        moved[rows] = (np.einsum("ij,ijk->ik", places.barycentric[rows], corners) ** 2).sum(axis=1)
    ratio = float(moved.mean()) / square
    # r² of a normal displacement in the plane has the standard deviation of its mean.
    measured, error = ratio * expected, expected / sqrt(len(moved))
    return z_line(what, measured * 1e-6, error * 1e-6, expected * 1e-6, unit)


def _perimeters(mesh: TriangleMesh) -> np.ndarray:
    corners = mesh.vertices[mesh.faces]
    perimeters: np.ndarray = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).sum(axis=1)
    return perimeters


def _velocity_sum(c: float, n: int) -> float:
    """Return <Δx²> after n steps, in units of dt² kT/m; x grows by dt (v_k + v_k+1)/2, and <v_j v_k> ~ c^|j-k|."""
    weights = np.ones(n + 1)
    weights[[0, -1]] = 0.5
    lag = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    return float(weights @ c**lag @ weights)


# Angle (rad) that may be missing or left over round the vertices near a triangle: a surface of total curvature K
# inside the disc of radius 2s changes <r²> = s² by about K / 75.
_LARGEST_DEFECT = 0.15


def _unfold(mesh: TriangleMesh, start: int, reach: float) -> dict[int, np.ndarray] | None:
    """Return corners in the plane of all triangles within `reach` of the centroid of `start`, which is at the origin.

    None where there is a border within reach, or too much curvature near.
    """
    x, faces, neighbors = mesh.vertices, mesh.faces, mesh.neighbors

    def flat(lengths: tuple[float, float, float], a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the third corner, to the left of a → b, at the given distances from a and b."""
        ab, to_a, to_b = lengths
        along = (to_a**2 - to_b**2 + ab**2) / (2.0 * ab)
        up = sqrt(max(to_a**2 - along**2, 0.0))
        e = (b - a) / ab
        corner: np.ndarray = a + along * e + up * np.array([-e[1], e[0]])
        return corner

    def distance(i: int, j: int) -> float:
        return float(np.linalg.norm(x[i] - x[j]))

    i, j, k = (int(v) for v in faces[start])
    first = np.zeros((3, 2))
    first[1, 0] = distance(i, j)
    first[2] = flat((distance(i, j), distance(i, k), distance(j, k)), first[0], first[1])
    first -= first.mean(axis=0)
    placed: dict[int, np.ndarray] = {}
    angles: dict[int, float] = {}
    near: set[int] = set()
    # The second number settles ties, which arrays cannot.
    tie = itertools.count()
    queue = [(0.0, next(tie), start, first)]
    while queue:
        _, _, face, corners = heapq.heappop(queue)
        if face in placed:
            continue
        placed[face] = corners
        vertices = faces[face]
        for corner in range(3):
            v = int(vertices[corner])
            p = corners[(corner + 1) % 3] - corners[corner]
            q = corners[(corner + 2) % 3] - corners[corner]
            angles[v] = angles.get(v, 0.0) + float(np.arctan2(p[0] * q[1] - p[1] * q[0], p @ q))
            if np.linalg.norm(corners[corner]) < reach / 2.25:
                near.add(v)
            # The neighbour beyond the edge opposite this corner, a → b as it sees it.
            a, b = corners[(corner + 2) % 3], corners[(corner + 1) % 3]
            there = _gap(a, b)
            if there > reach:
                continue
            other = int(neighbors[face, corner])
            if other < 0:
                return None
            if other in placed:
                continue
            va, vb = int(vertices[(corner + 2) % 3]), int(vertices[(corner + 1) % 3])
            theirs = [int(v) for v in faces[other]]
            third = next(v for v in theirs if v not in (va, vb))
            at = {va: a, vb: b, third: flat((distance(va, vb), distance(va, third), distance(vb, third)), a, b)}
            heapq.heappush(queue, (there, next(tie), other, np.array([at[v] for v in theirs])))
        if len(placed) > 400:
            return None
    defect = sum(abs(2.0 * np.pi - angles[v]) for v in near)
    return placed if defect < _LARGEST_DEFECT else None


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    """Return the distance of the origin from the segment a, b."""
    e = b - a
    t = float(np.clip(-(a @ e) / (e @ e), 0.0, 1.0))
    return float(np.linalg.norm(a + t * e))
