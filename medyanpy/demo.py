"""The demo: proteins on a living cell membrane, and what theory says about them.

It chooses its numbers for any mesh. Lengths, energies, temperature and the diffusion constant of the proteins are
those of a cell. Masses are not: the inertia of a protein in a membrane is immeasurably small, so they only set the
timestep. Each vertex gets a mass that keeps the stiffest vibration of the mesh, which is measured, slow against the
timestep; see `vertex_masses`.
"""

import heapq
import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass
from math import exp, sqrt, tanh
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from medyanpy import units
from medyanpy._version import __version__
from medyanpy.context import Context
from medyanpy.errors import ParameterError
from medyanpy.forces import MembraneArea, MembraneBending, MembraneEdgeSprings, MembraneVolume, SoftSphere
from medyanpy.integrators import BAGOGABIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.reporters import CheckpointReporter, Reporter, StateDataReporter, TrajectoryReporter
from medyanpy.simulation import Simulation
from medyanpy.system import System
from medyanpy.threads import choose_threads
from medyanpy.topology import Topology
from medyanpy.validation import seed as check_seed
from medyanpy.validation import whole_number
from medyanpy.visualize import draw

__all__ = ["Demo", "Line", "run_demo"]

OUTPUTS = ("trajectory.h5", "state.csv", "run.checkpoint", "summary.json", "picture.png")

TEMPERATURE = 300.0
# 20 kT: lipid bilayers.
BENDING_MODULUS = 82.0
# pN/nm: between a bilayer's (250) and that of a membrane with folds and caveolae to unfold.
AREA_MODULUS = 50.0
# pN/nm²: holds the volume to a thousandth; a cell's (ion pumps, osmosis) holds it tighter but as slowly.
VOLUME_MODULUS = 1e-3
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
# Triangles lower than this share of the median height are no place for curvature.
THIN = 0.1
# A deviation of five standard errors happens once in two million.
LARGEST_Z = 5.0
SMALLEST_P = 5.7e-7


@dataclass
class Line:
    """One line of measured against expected."""

    quantity: str
    measured: float | None
    error: float | None
    expected: float | None
    unit: str
    criterion: str
    verdict: str


@dataclass
class Demo:
    """What a demo did and found.

    Attributes
    ----------
    mesh : TriangleMesh
    topology : Topology
    lines : list of Line
    summary : dict
        The content of summary.json.
    """

    mesh: TriangleMesh
    topology: Topology
    lines: list[Line]
    summary: dict[str, Any]


def run_demo(
    out: Any = "medyanpy-demo",
    *,
    mesh: Any = None,
    points: int = 2000,
    steps: int = 6000,
    threads: int | None = None,
    seed: int = 1,
    overwrite: bool = False,
    stream: TextIO | None = None,
) -> Demo:
    """Run the demo and write its files.

    Parameters
    ----------
    out : path
        Folder for the files; made if need be.
    mesh : path, optional
        A mesh to use instead of the red blood cell; it is scaled to the size of a cell.
    points : int, >= 1
        Proteins.
    steps : int, >= 1
    threads : int, optional
    seed : int
    overwrite : bool
        Replace files of an earlier demo.
    stream : text stream, optional
        Where to print; standard output where none is given.

    Raises
    ------
    MeshError
        A mesh that cannot carry a membrane.
    ParameterError
        Numbers outside their domain, or files that exist.
    SimulationError
        The run failed.
    """
    started = time.perf_counter()
    out = Path(out)
    points = whole_number("points", points, at_least=1)
    steps = whole_number("steps", steps, at_least=1)
    seed = check_seed("seed", seed)
    n_threads = choose_threads(threads)
    existing = [name for name in OUTPUTS if (out / name).exists()]
    if existing and not overwrite:
        raise ParameterError(f"{out} holds {', '.join(existing)} already: choose another --out, or give --overwrite")
    if out.exists() and not out.is_dir():
        raise ParameterError(f"{out} is not a folder")

    def say(text: str) -> None:
        print(text, file=stream or sys.stdout, flush=True)

    surface, about = _load(mesh)
    out.mkdir(parents=True, exist_ok=True)
    say(f"medyanpy {__version__}")
    say(f"mesh      {about}")
    system, notes = _build(surface, points, seed)
    vesicle, proteins = system.topology.handles
    for note in notes:
        say(f"          {note}")

    note = ""
    if threads is None and n_threads > 1:
        n_threads, note = _faster(system, n_threads)
    say(
        f"run       {steps} steps of BAGOGAB at {TEMPERATURE:g} K, dt = {TIMESTEP / units.microsecond:g} µs, "
        f"{n_threads} thread{'s' * (n_threads > 1)}{note}"
    )
    integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=seed)
    with Simulation(system, integrator, n_threads) as simulation:
        simulation.context.set_velocities_to_temperature(TEMPERATURE, seed=seed)
        seconds, samples = _run(simulation, out, steps, closed=surface.is_closed)
        say("picture   picture.png")
        draw(simulation, out / "picture.png", overwrite=True)
    state = simulation.context.get_state(positions=True)

    say("frozen    the same mesh held still, without interactions: uniformity and diffusion")
    lines = [_temperature(handle, samples[handle.name]) for handle in (vesicle, proteins)]
    lines.append(_uniformity(surface, seed, n_threads))
    lines.append(_diffusion(surface, seed, n_threads))

    speed = steps / seconds
    per_bead = 1e9 * seconds / (steps * system.topology.n_beads)
    total = time.perf_counter() - started
    say("")
    for text in _table(lines):
        say(text)
    say("")
    say(f"speed     {speed:.0f} steps/s, {per_bead:.0f} ns per bead and step; {total:.1f} s in all")
    say(f"files     {out}: {', '.join(OUTPUTS)}")
    summary = {
        "version": __version__,
        "mesh": {
            "name": "red blood cell" if mesh is None else str(mesh),
            "vertices": len(surface.vertices),
            "faces": len(surface.faces),
            "closed": surface.is_closed,
            "genus": surface.genus,
            "area": surface.area,
            "volume": surface.volume if surface.is_closed else None,
        },
        "notes": notes,
        "points": points,
        "steps": steps,
        "timestep": TIMESTEP,
        "temperature": TEMPERATURE,
        "threads": n_threads,
        "seed": seed,
        "speed": {"steps_per_second": speed, "ns_per_bead_and_step": per_bead, "seconds_in_all": total},
        "area_at_the_end": _area_of(surface, state.positions[vesicle.beads]),
        "results": [asdict(line) for line in lines],
        "ok": all(line.verdict != "CHECK" for line in lines),
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return Demo(surface, system.topology, lines, summary)


# The mesh and the forces ------------------------------------------------------------------------------------


def _load(path: Any) -> tuple[TriangleMesh, str]:
    """The mesh, the size of a cell, and a line about it."""
    if path is None:
        # 9 680 faces.
        mesh = TriangleMesh.red_blood_cell(frequency=22)
        return mesh, f"red blood cell (Evans & Fung): {_size(mesh)}"
    raw = TriangleMesh.from_file(path)
    extent = float(np.ptp(raw.vertices, axis=0).max())
    mesh = raw.translated(-raw.vertices.mean(axis=0)).scaled(CELL_SIZE / extent)
    if mesh.is_closed and mesh.volume < 0.0:
        mesh = TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    return mesh, f"{Path(path).name}, scaled to {CELL_SIZE / units.micrometer:g} µm: {_size(mesh)}"


def _size(mesh: TriangleMesh) -> str:
    parts = [f"{len(mesh.vertices)} vertices", f"{len(mesh.faces)} faces", f"{mesh.area * 1e-6:.3g} µm²"]
    if mesh.is_closed:
        parts.append(f"{mesh.volume * 1e-9:.3g} µm³")
    else:
        parts.append(f"{len(mesh.borders)} border{'s' * (len(mesh.borders) > 1)}")
    return ", ".join(parts)


def _area_of(mesh: TriangleMesh, vertices: np.ndarray) -> float:
    a, b, c = (vertices[corner] for corner in mesh.faces.T)
    return 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


def _heights(mesh: TriangleMesh) -> np.ndarray:
    """(F,) the lowest height of each triangle, nm."""
    corners = mesh.vertices[mesh.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    return 2.0 * mesh.face_areas / longest


def _build(mesh: TriangleMesh, points: int, seed: int) -> tuple[System, list[str]]:
    """Topology and forces, and what there is to say about them."""
    kT = TEMPERATURE * units.boltzmann
    height = _heights(mesh)
    typical = float(np.median(height))
    lowest = np.full(len(mesh.vertices), np.inf)
    np.minimum.at(lowest, mesh.faces.ravel(), np.repeat(height, 3))
    thin = lowest < THIN * typical
    friction = kT / PROTEIN_DIFFUSION
    mass = friction * TIMESTEP / (2.0 * PROTEIN_X)
    diameter = sqrt(COVERAGE * mesh.area / points / (np.pi / 4.0))
    # Two equal masses m on a spring k: ω² = 2k/m; three times as much for a protein among several.
    softness = LARGEST_PHASE**2 * mass / (6.0 * TIMESTEP**2)

    def system_with(vertex_mass: np.ndarray) -> System:
        topology = Topology()
        vesicle = topology.add_membrane(mesh, vertex_mass, VERTEX_X * vertex_mass / TIMESTEP)
        proteins = topology.add_intriangle_points(
            vesicle, points, mass=mass, friction=friction, seed=seed, name="proteins"
        )
        system = System(topology)
        system.add_force(MembraneBending(vesicle, np.where(thin, 0.0, BENDING_MODULUS)))
        system.add_force(MembraneArea(vesicle, AREA_MODULUS))
        if mesh.is_closed:
            system.add_force(MembraneVolume(vesicle, VOLUME_MODULUS))
        # Bending and area leave vertices free to slide within the membrane. Springs that are this weak let them
        # slide by some 5 % of a triangle.
        sides = mesh.edge_faces
        of_edge = np.minimum(height[sides[:, 0]], np.where(sides[:, 1] >= 0, height[sides[:, 1]], np.inf))
        springs = 200.0 * kT / np.maximum(of_edge, THIN * typical) ** 2
        system.add_force(MembraneEdgeSprings(vesicle, springs))
        system.add_force(SoftSphere(proteins, proteins, softness, diameter))
        return system

    masses = vertex_masses(mesh, lowest, thin, points * mass, system_with)
    notes = [
        f"{points} proteins that repel each other within {diameter:.0f} nm, D = "
        f"{PROTEIN_DIFFUSION / units.micrometer2_per_second:g} µm²/s, kT = {kT:.2f} pN nm",
        f"bending {BENDING_MODULUS:g} pN nm, area {AREA_MODULUS:g} pN/nm, "
        + (f"volume {VOLUME_MODULUS:g} pN/nm², " if mesh.is_closed else "no volume to keep, ")
        + "weak springs along the edges",
    ]
    if thin.any():
        notes.append(
            f"{int(thin.sum())} of {len(thin)} vertices touch triangles that are too thin to have a curvature: "
            "no bending there, and masses so large that they hardly move"
        )
    return system_with(masses), notes


def vertex_masses(mesh: TriangleMesh, lowest: np.ndarray, thin: np.ndarray, load: float, system_with) -> np.ndarray:
    """(V,) masses with which `TIMESTEP` resolves every vibration of the vertices.

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
    return np.where(thin, np.maximum(held, mass), mass)


def _fastest(system: System, masses: np.ndarray) -> float:
    """The largest eigenvalue of M^-1/2 K M^-1/2 of the vertices, ω², by power iteration on central differences.

    Points ride along. Thirty iterations from a random start come within a few percent; a tenth is added.
    """
    context = Context(system, BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE), threads=1)
    vesicle, proteins = system.topology.handles
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
        # What the points pass on is not in the vertices' rows.
        np.add.at(out, corners, weights * f[proteins.beads][:, None, :])
        return out

    light = masses < 1e6 * np.median(masses)
    root = np.sqrt(masses)[:, None]
    u = np.random.default_rng(1).normal(size=(len(masses), 3)) * light[:, None]
    largest = 0.0
    reach = 1e-3 * float(np.median(_heights(vesicle.mesh)))
    for _ in range(30):
        u /= np.linalg.norm(u)
        shift = u / root
        scale = reach / np.abs(shift).max()
        u = (force(-scale * shift) - force(scale * shift)) / (2.0 * scale * root) * light[:, None]
        largest = float(np.linalg.norm(u))
        if largest == 0.0:
            break
    return 1.1 * largest


def _faster(system: System, most: int) -> tuple[int, str]:
    """One thread or as many as the machine offers, whichever is faster now; and a remark.

    Threads wait for each other many times a step. On a machine that is busy with other work, waiting for one that
    does not run costs more than it brings. The results are the same to the last bit.
    """
    contexts = {}
    for n in (1, most):
        integrator = BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE)
        contexts[n] = Context(system, integrator, n)
        contexts[n].step(5)
    seconds = dict.fromkeys(contexts, 0.0)
    for _ in range(3):
        for n, context in contexts.items():
            started = time.perf_counter()
            context.step(20)
            seconds[n] += time.perf_counter() - started
    if seconds[most] < seconds[1]:
        return most, ""
    return 1, f" ({most} would be slower now)"


# The run ----------------------------------------------------------------------------------------------------


def _run(simulation: Simulation, out: Path, steps: int, *, closed: bool) -> tuple[float, dict[str, np.ndarray]]:
    """Run with all reporters; seconds, and the temperature of each handle at every sampled step."""
    samples = _Temperatures(max(1, min(10, steps // 10)))
    interval = max(1, steps // 60)
    simulation.reporters += [
        samples,
        StateDataReporter(
            out / "state.csv",
            interval,
            step=True,
            time=True,
            potential_energy=True,
            kinetic_energy=True,
            temperature=True,
            temperatures=True,
            area=True,
            volume=closed,
            speed=True,
            overwrite=True,
        ),
        TrajectoryReporter(out / "trajectory.h5", interval, precision="single", overwrite=True),
        CheckpointReporter(out / "run.checkpoint", max(1, steps // 4), overwrite=True),
    ]
    started = time.perf_counter()
    simulation.step(steps)
    seconds = time.perf_counter() - started
    simulation.save_checkpoint(out / "run.checkpoint")
    return seconds, {name: np.array(rows) for name, rows in samples.of.items()}


class _Temperatures(Reporter):
    """Keeps the temperatures of all handles."""

    include = ("energy",)

    def __init__(self, interval: int) -> None:
        super().__init__(interval)
        self.of: dict[str, list[float]] = {}

    def report(self, simulation, state) -> None:
        for name, temperature in state.temperatures.items():
            self.of.setdefault(name, []).append(temperature)


# Measured against expected ----------------------------------------------------------------------------------


def _z_line(quantity: str, measured: float, error: float, expected: float, unit: str) -> Line:
    z = (measured - expected) / error
    verdict = "OK" if abs(z) < LARGEST_Z else "CHECK"
    return Line(quantity, measured, error, expected, unit, f"z = {z:+.1f}, |z| < {LARGEST_Z:g}", verdict)


def _not_measured(quantity: str, expected: float | None, unit: str, why: str) -> Line:
    return Line(quantity, None, None, expected, unit, why, "--")


def _temperature(handle, series: np.ndarray) -> Line:
    """Mean over the last two thirds. Its error: degrees of freedom, and how many samples are independent."""
    name = f"temperature of {'proteins' if handle.kind == 'points' else 'vertices'}"
    kept = series[len(series) // 3 :]
    # Integrated correlation time in samples: summed up to where it is lost in noise (Sokal's window).
    d = kept - kept.mean()
    tau = 0.5
    if len(kept) > 3 and d @ d > 0.0:
        for lag in range(1, len(kept) // 2):
            tau += float(d[:-lag] @ d[lag:]) / float(d @ d)
            if lag >= 5.0 * tau:
                break
    independent = len(kept) / (2.0 * max(tau, 0.5))
    if independent < 10.0:
        return _not_measured(name, TEMPERATURE, "K", "too few independent samples: more --steps")
    error = TEMPERATURE * sqrt(2.0 / (handle.degrees_of_freedom * independent))
    return _z_line(name, float(kept.mean()), error, TEMPERATURE, "K")


def _tracers(mesh: TriangleMesh, threads: int, noise: int, *, mass: float, friction: float, **where) -> Context:
    """Points that see nothing but the mesh, which is held still; at equilibrium."""
    topology = Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(membrane, mass=mass, friction=friction, **where)
    context = Context(System(topology), BAGOGABIntegrator(TIMESTEP, temperature=TEMPERATURE, seed=noise), threads)
    context.set_velocities_to_temperature(TEMPERATURE, seed=noise)
    return context


def _uniformity(mesh: TriangleMesh, seed: int, threads: int) -> Line:
    """Chi-square of the number of tracers on groups of faces of like size, after a flight over some ten triangles.

    Groups of like size, since what a wrong measure or reflection gets wrong is the share of small triangles.
    """
    from scipy.special import gammaincc

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
        return _not_measured("uniformity, chi-square p", None, "", "triangles too few to compare")
    # The tail of the chi-square distribution (scipy.stats has it too, and takes seconds to import).
    p = float(gammaincc(0.5 * (len(expected) - 1), 0.5 * ((counts - expected) ** 2 / expected).sum()))
    verdict = "OK" if p > SMALLEST_P else "CHECK"
    return Line("uniformity, chi-square p", p, None, None, "", f"p > {SMALLEST_P:g}", verdict)


def _diffusion(mesh: TriangleMesh, seed: int, threads: int) -> Line:
    """Diffusion constant of the demo's proteins without interactions, against (kT/γ) x coth x.

    Tracers start in the middle of some triangles. Where they are after n steps is measured in the plane, into
    which the surroundings of the triangle are unfolded: dihedral angles, however sharp, do not matter then, but
    the angle that is missing or left over round a vertex does. So only triangles with little of it and no border
    near them are used. The mean square displacement after n steps has a closed form, which for n → ∞ is 4 D n dt
    with D = (kT/γ) x coth x.
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
        return _not_measured(what, expected * 1e-6, unit, "no flat place, large enough, on this mesh")
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
    return _z_line(what, measured * 1e-6, error * 1e-6, expected * 1e-6, unit)


def _perimeters(mesh: TriangleMesh) -> np.ndarray:
    corners = mesh.vertices[mesh.faces]
    return np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).sum(axis=1)


def _velocity_sum(c: float, n: int) -> float:
    """<Δx²> after n steps, in units of dt² kT/m; x grows by dt (v_k + v_k+1)/2, and <v_j v_k> ~ c^|j-k|."""
    weights = np.ones(n + 1)
    weights[[0, -1]] = 0.5
    lag = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    return float(weights @ c**lag @ weights)


# Angle (rad) that may be missing or left over round the vertices near a triangle: a surface of total curvature K
# inside the disc of radius 2s changes <r²> = s² by about K / 75.
_LARGEST_DEFECT = 0.15


def _unfold(mesh: TriangleMesh, start: int, reach: float) -> dict[int, np.ndarray] | None:
    """Corners in the plane of all triangles within `reach` of the centroid of `start`, which is at the origin.

    None where there is a border within reach, or too much curvature near.
    """
    x, faces, neighbors = mesh.vertices, mesh.faces, mesh.neighbors

    def flat(lengths: tuple[float, float, float], a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The third corner, to the left of a → b, at the given distances from a and b."""
        ab, to_a, to_b = lengths
        along = (to_a**2 - to_b**2 + ab**2) / (2.0 * ab)
        up = sqrt(max(to_a**2 - along**2, 0.0))
        e = (b - a) / ab
        return a + along * e + up * np.array([-e[1], e[0]])

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
    """Distance of the origin from the segment a, b."""
    e = b - a
    t = float(np.clip(-(a @ e) / (e @ e), 0.0, 1.0))
    return float(np.linalg.norm(a + t * e))


def _table(lines: list[Line]) -> list[str]:
    """The lines, aligned."""

    def number(value: float | None, error: float | None = None) -> str:
        if value is None:
            return "-"
        return f"{value:.4g}" if error is None else f"{value:.{_decimals(error)}f} ± {error:.{_decimals(error)}f}"

    rows = [("", "measured", "expected", "", "", "")]
    for line in lines:
        expected = "-"
        if line.expected is not None:
            digits = 4 if line.error is None else _decimals(line.error)
            expected = f"{line.expected:.{digits}f}" if line.error is not None else f"{line.expected:.{digits}g}"
        rows.append(
            (line.quantity, number(line.measured, line.error), expected, line.unit, line.verdict, line.criterion)
        )
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    return [
        "  ".join(
            text.rjust(width) if k in (1, 2) else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _decimals(error: float) -> int:
    """Decimals that show two digits of an error."""
    return max(0, 1 - int(np.floor(np.log10(error)))) if error > 0.0 else 3
