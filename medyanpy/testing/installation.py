"""Checks of whether an installation computes what it should, after it has been built or installed."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from medyanpy import forces
from medyanpy._kernels import selected
from medyanpy._tools import quaternions
from medyanpy._tools.threads import choose_threads
from medyanpy.boundaries import Plane
from medyanpy.context import Context
from medyanpy.errors import MedyanError
from medyanpy.forces import Force
from medyanpy.integrators import BAGOGABIntegrator, VerletIntegrator
from medyanpy.mesh import TriangleMesh
from medyanpy.pools import Pool
from medyanpy.rods import uniform
from medyanpy.simulation import Simulation
from medyanpy.system import System
from medyanpy.testing.forces import add_with_pools
from medyanpy.topology import Topology

__all__ = ["FORCES", "Finding", "check_installation", "digest"]

# Step of central differences of the energy along a direction (nm).
_STEP = 2e-5
# Error that differences may have, relative to the largest part of the sum.
_DIFFERENCE = 1e-6
_STEPS = 40


@dataclass(frozen=True)
class Finding:
    """Result of one check of an installation.

    Attributes
    ----------
    name : str
    passed : bool
    detail : str
        A number, or why it failed.
    """

    name: str
    passed: bool
    detail: str


def _scene(n: int = 1) -> SimpleNamespace:
    """Build a scene with one kind of everything, n times as many of what there are many of."""
    rng = np.random.default_rng(7)
    t = Topology()
    turn = 2.0 * np.pi * np.arange(6) / 6.0
    line = np.column_stack([30.0 + np.arange(6.0), 0.3 * np.sin(np.arange(6.0)), np.zeros(6)])
    ring = np.column_stack([40.0 + 3.0 * np.cos(turn), 3.0 * np.sin(turn), 0.4 * np.cos(2.0 * turn)])
    mesh = TriangleMesh.icosphere(10.0, 1 if n == 1 else 5)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.3 if n == 1 else 0.02, mesh.vertices.shape))
    s = SimpleNamespace(topology=t)
    s.beads = t.add_beads(rng.normal(0.0, 3.0, (12 * n, 3)), mass=1.0, friction=0.5, name="beads")
    s.balls = t.add_balls(rng.normal(0.0, 3.0, (5, 3)), [3.0, 2.2, 3.8, 3.3, 2.7], 2.0, 0.3, name="balls")
    s.membrane = t.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.4, name="vesicle")
    s.points = t.add_intriangle_points(s.membrane, 9 * n, mass=0.7, friction=0.2, seed=3, name="points")
    s.filament = t.add_filament(line, 1.0, 0.5, name="filament")
    s.springs = t.add_filament(
        line + [0.0, 5.0, 0.0], 1.0, 0.5, constrained=False, link_lengths=np.linspace(0.8, 1.1, 5), name="springs"
    )
    s.ring = t.add_filament(
        ring, 1.0, 0.5, closed=True, directors="parallel", director_mass=0.1, director_friction=0.05, name="ring"
    )
    s.tied = t.add_beads(rng.normal(60.0, 3.0, (3, 3)), mass=1.0, friction=0.5, name="tied")
    bars = s.tied.beads[[[0, 1], [1, 2]]]
    lengths = np.linalg.norm(np.diff(s.tied.positions, axis=0), axis=1)
    s.constraints = t.constrain("(x1 - x2)^2 + (y1 - y2)^2 + (z1 - z2)^2 - d^2", bars, d=lengths, name="bars")
    q = rng.normal(size=(4, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    s.bodies = t.add_rigid_bodies(rng.normal(-20.0, 1.5, (4, 3)), q, 1.0, (1.0, 1.5, 2.0), (0.4, 0.6), name="bodies")
    s.near = t.add_beads(rng.normal(-20.0, 1.5, (6, 3)), mass=1.0, friction=0.5, name="near")
    x, q = uniform(5, 2.0, curvature=[0.0, 0.05, 0.02])
    s.rod = t.add_rod(
        x + [0.0, 0.0, 50.0], q, 2.0, 1.0, [1.0, 1.0, 1.5], friction=(0.5, 1.0), rotational_friction=0.3, name="rod"
    )
    s.other = t.add_rod(x + [0.5, 0.3, 50.5], q, 2.0, 1.0, [1.0, 1.0, 1.5], friction=(0.5, 1.0), name="other rod")
    sheet = TriangleMesh.flat_sheet(3, 3, 4.0).translated([0.0, 60.0, 0.0])
    s.sheet = t.add_membrane(sheet, vertex_mass=1.0, vertex_friction=0.4, name="sheet")
    # Beads that make pairs and triples.
    s.pairs = rng.choice(12, (8, 2), replace=True)
    s.pairs[:, 1] = (s.pairs[:, 0] + 1 + s.pairs[:, 1] % 11) % 12
    s.triples = np.arange(12).reshape(4, 3)
    s.ends = s.bodies.sites([[0.3, 0.2, 1.0]])
    return s


def _pull(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sum(np.cos(0.3 * x))), 0.3 * np.sin(0.3 * x)


def _share(triangles: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sum(weights**2, axis=1), 2.0 * weights


#: Every force, on the scene.
FORCES: dict[str, Callable[[SimpleNamespace], Force]] = {
    "HarmonicBonds": lambda s: forces.HarmonicBonds(s.pairs, 3.0, 2.0),
    "CustomBonds": lambda s: forces.CustomBonds(s.pairs, "k/2*(r - l)^2 + a*exp(-r/l)", k=3.0, l=2.0, a=0.5),
    "MembraneEdgeSprings": lambda s: forces.MembraneEdgeSprings(s.membrane, 3.0, 5.0),
    "MembraneBending": lambda s: forces.MembraneBending(s.membrane, 5.0, 0.02),
    "MembraneArea": lambda s: forces.MembraneArea(s.membrane, 1.0, 12.0, per_triangle=True),
    "MembraneTension": lambda s: forces.MembraneTension(s.membrane, 0.3),
    "MembraneTether": lambda s: forces.MembraneTether(s.membrane, 5.0, l_min=0.3, l_c1=0.9, l_c0=1.1, l_max=2.0),
    "MembraneFoldRepulsion": lambda s: forces.MembraneFoldRepulsion(s.membrane, 5.0, 0.1),
    "MembraneVolume": lambda s: forces.MembraneVolume(s.membrane, 0.5, 3000.0),
    "MembranePressure": lambda s: forces.MembranePressure(s.membrane, 0.5),
    "MembraneOsmoticPressure": lambda s: forces.MembraneOsmoticPressure(s.membrane, 3000.0, 0.9, kT=2.0),
    "MembranePoolPressure": lambda s: forces.MembranePoolPressure(
        s.membrane, Pool(inside=s.membrane, counts={"A": 3000}), kT=2.0
    ),
    "MembraneGaussianCurvature": lambda s: forces.MembraneGaussianCurvature(
        s.membrane, np.linspace(-9.0, 5.0, len(s.membrane))
    ),
    "MembraneAreaDifference": lambda s: forces.MembraneAreaDifference(s.membrane, 5.0, 1.0, 200.0),
    "MembraneLineTension": lambda s: forces.MembraneLineTension(
        s.membrane, np.linspace(0.0, 1.0, len(s.membrane)), 2.0
    ),
    "BorderTension": lambda s: forces.BorderTension(s.sheet, 2.0),
    "MembraneAdhesion": lambda s: forces.MembraneAdhesion(s.membrane, s.balls, 0.5, 2.0),
    "MembraneField": lambda s: forces.MembraneField(s.points, np.linspace(-3.0, 5.0, len(s.membrane))),
    "CustomMembraneField": lambda s: forces.CustomMembraneField(
        s.points, "k*sin(h)^2 + h/3", k=3.0, h=np.linspace(-3.0, 5.0, len(s.membrane))
    ),
    "PythonMembraneField": lambda s: forces.PythonMembraneField(s.points, _share),
    "PointCurvature": lambda s: forces.PointCurvature(s.points, 3.0, 0.02, 1.7),
    "DirectedPointCurvature": lambda s: forces.DirectedPointCurvature(s.points, 3.0, 0.04, 1.7, 4.14),
    "SoftSphere": lambda s: forces.SoftSphere(s.beads, [s.beads, s.balls, s.points], 2.0, 5.0),
    "WCA": lambda s: forces.WCA(s.beads, s.beads, 0.1, 1.5),
    "LennardJones": lambda s: forces.LennardJones(s.beads, s.beads, 0.1, 1.5),
    "Ricker": lambda s: forces.Ricker(s.points, [s.points, s.balls], 0.5, 4.0),
    "Morse": lambda s: forces.Morse(s.points, [s.points, s.balls], 0.5, 0.6, 4.0, cutoff=9.0, switch=6.0),
    "Yukawa": lambda s: forces.Yukawa(s.beads, [s.beads, s.balls], 3.0, 2.0, cutoff=8.0),
    "TabulatedPair": lambda s: forces.TabulatedPair(s.beads, s.points, [0.0, 2, 5, 9, 20], [3.0, 2.0, -1.0, 0.2, 0.0]),
    "CustomPair": lambda s: forces.CustomPair(s.beads, s.beads, "q1*q2*exp(-r/l)", cutoff=9.0, l=2.0, q=0.7),
    "Coulomb": lambda s: forces.Coulomb([s.beads, s.points], 0.3, 5.0),
    "HarmonicTrap": lambda s: forces.HarmonicTrap([s.beads, s.points, s.bodies], [1.0, 0.5, 0.2], [1.0, 2.0, 3.0]),
    "UniformField": lambda s: forces.UniformField([s.beads, s.points], [1.0, -2.0, 0.5]),
    "ExternalField": lambda s: forces.ExternalField(s.beads, "a*sin(x) + y*z^2/9", a=2.0),
    "PythonForce": lambda s: forces.PythonForce(_pull),
    "WallRepulsion": lambda s: forces.WallRepulsion(Plane([0.0, 0, 0], [0.0, 0, 1.0]), s.balls, 2.0, 3.0, form="soft"),
    "FilamentBending": lambda s: forces.FilamentBending(s.filament, 4.0, 0.1),
    "FilamentStretching": lambda s: forces.FilamentStretching(s.springs, 5.0),
    "FilamentTwisting": lambda s: forces.FilamentTwisting(s.ring, 2.0, 0.1),
    "FixmanPotential": lambda s: forces.FixmanPotential(s.filament, kT=1.0),
    "ConstraintFixmanPotential": lambda s: forces.ConstraintFixmanPotential(s.constraints, kT=1.0),
    "ConstraintPenalty": lambda s: forces.ConstraintPenalty("sin(x1 - x2) + z1*y2/9 - b", s.pairs[:4], 0.3, b=0.2),
    "LinkLengthPenalty": lambda s: forces.LinkLengthPenalty(s.pairs, 0.1, 2.0),
    "RigidTrianglePenalty": lambda s: forces.RigidTrianglePenalty(s.triples, 0.1, [3.0, 4.0, 5.0]),
    "OrthonormalFramePenalty": lambda s: forces.OrthonormalFramePenalty(s.triples, 0.1, 5.0),
    "Links": lambda s: forces.Links(s.ends, s.beads.beads[:4], 0.2, 3.0),
    "AngleLinks": lambda s: forces.AngleLinks(s.ends, s.bodies, s.beads.beads[:4], 2.0, 0.7),
    "DirectionLinks": lambda s: forces.DirectionLinks(
        s.ends, s.bodies, s.beads.beads[:4], s.points.beads[:4], 2.0, 0.7
    ),
    "NormalLinks": lambda s: forces.NormalLinks(s.ends, s.bodies, s.points.beads[:4], 2.0),
    "EllipsoidRepulsion": lambda s: forces.EllipsoidRepulsion(s.bodies, s.bodies, 3.0, [2.5, 1.5, 1.0], form="soft"),
    "EllipsoidCollisions": lambda s: forces.EllipsoidCollisions(
        s.bodies, s.near, 2.0, [2.5, 1.5, 1.0], 0.4, form="soft"
    ),
    "RodElasticity": lambda s: forces.RodElasticity(s.rod, 20.0, 15.0, 5.0, 4.0, rest_curvature=[0.1, 0.0, 0.05]),
    "RodLoad": lambda s: forces.RodLoad(s.rod, "end", [0.1, 0.2, 0.3]),
    "RodCollision": lambda s: forces.RodCollision([s.rod, s.other], 5.0, 0.8),
    "SoftCollisions": lambda s: forces.SoftCollisions([s.balls, s.membrane], 3.0, [None, 0.5]),
}
# Energies of where points are in their triangles: vertices feel nothing of them, and only points are moved.
_OF_WEIGHTS = ("MembraneField", "CustomMembraneField", "PythonMembraneField")


def check_installation(threads: int | None = None) -> Iterator[Finding]:
    """Check an installation, one `Finding` after another; takes less than half a minute.

    Every force against differences of its energy, along a random direction in which everything moves and turns. The
    same bits of a run on one thread and on several, with every instruction set that is built and that the processor
    has, and after a checkpoint.

    Parameters
    ----------
    threads : int, optional
        How many several are; as many as the machine offers, and two at least.
    """
    for name, make in FORCES.items():
        yield _of_a_force(name, make)
    several = max(2, choose_threads(threads))
    one = digest(1)
    yield _compared(f"1 and {several} threads", one, digest(several))
    for isa in selected.built:
        if isa != selected.isa:
            yield _compared(f"instruction sets {selected.isa} and {isa}", one, _elsewhere(isa))
    with tempfile.TemporaryDirectory() as folder:
        yield _compared("a run through and one resumed", one, digest(1, Path(folder) / "run.checkpoint"))


def _of_a_force(name: str, make: Callable[[SimpleNamespace], Force]) -> Finding:
    """Check that minus the energy's difference along a direction is the sum of forces and torques along it."""
    try:
        scene = _scene()
        system = System(scene.topology)
        add_with_pools(system, make(scene))
        context = Context(system, VerletIntegrator(1e-9), threads=1)
        by_differences, along, scale = _slope(context, name in _OF_WEIGHTS)
    except MedyanError as error:
        return Finding(name, False, str(error))
    off = abs(by_differences - along) / scale if scale > 0.0 else np.inf
    return Finding(name, bool(off <= _DIFFERENCE), f"{off:.1e} of the forces, by differences of the energy")


def _slope(context: Context, of_weights: bool) -> tuple[float, float, float]:
    """Return the power of forces along a direction by differences of their energy, its sum, and the sum of sizes."""
    rng = np.random.default_rng(1)
    start = context.get_state(positions=True, forces=True)
    steps = rng.normal(size=start.positions.shape)
    about = rng.normal(size=(len(start.orientations), 3))
    weights = rng.normal(size=start.intriangle.barycentric.shape)
    weights -= weights.mean(axis=1)[:, None]
    ends = []
    for h in (_STEP, -_STEP):
        if of_weights:
            context.set_intriangle(start.intriangle.triangles, start.intriangle.barycentric + 0.1 * h * weights)
        else:
            context.set_positions(start.positions + h * steps)
            context.set_orientations(_turned(start.orientations, h * about))
        ends.append(context.get_state(positions=True, energy=True))
    moved = ends[0].positions - ends[1].positions
    turned = 2.0 * _STEP * about * (not of_weights)
    parts = np.concatenate([(start.forces * moved).ravel(), (start.torques * turned).ravel()])
    return ends[1].potential_energy - ends[0].potential_energy, float(parts.sum()), float(np.abs(parts).sum())


def _turned(q: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return unit quaternions (m, 4), turned by rotation vectors (m, 3) in the frames of their bodies."""
    half = 0.5 * np.linalg.norm(vectors, axis=1)[:, None]
    by = np.column_stack([np.cos(half), 0.5 * np.sinc(half / np.pi) * vectors])
    out = quaternions.product(q, by)
    return np.asarray(out / np.linalg.norm(out, axis=1)[:, None])


def digest(threads: int, through: Path | None = None) -> str:
    """Return a digest of the bits of a system of every kind of bead after some steps on so many threads; with a path,
    the run is written to a checkpoint half way, and resumed."""
    scene = _scene(700)
    system = System(scene.topology)
    for force in (
        forces.MembraneEdgeSprings(scene.membrane, 30.0), forces.MembraneBending(scene.membrane, 5.0),
        forces.MembraneVolume(scene.membrane, 0.5),
        forces.HarmonicTrap([scene.beads, scene.bodies], 0.3, [0.0, 0.0, 0.0]),
        forces.SoftSphere(scene.points, scene.balls, 2.0, 3.0), forces.FilamentBending(scene.filament, 4.0),
        forces.FilamentTwisting(scene.ring, 2.0), forces.RodElasticity(scene.rod, 20.0, 20.0, 5.0, 5.0),
        forces.EllipsoidRepulsion(scene.bodies, scene.bodies, 1.0, [2.5, 1.5, 1.0], form="soft"),
    ):  # fmt: skip
        system.add_force(force)
    simulation = Simulation(system, BAGOGABIntegrator(1e-3, kT=1.0, seed=5), threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=6)
    simulation.step(_STEPS // 2, progress=False)
    if through is not None:
        simulation.save_checkpoint(through)
        simulation = Simulation.resume(through, threads=threads)
    simulation.step(_STEPS - _STEPS // 2, progress=False)
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    out = hashlib.sha256()
    for array in (state.positions, state.velocities, state.forces, state.orientations, state.angular_momenta):
        out.update(np.ascontiguousarray(array).tobytes())
    out.update(np.float64(state.total_energy).tobytes())
    return out.hexdigest()


def _elsewhere(isa: str) -> str:
    """Return the digest from a process of its own, with another instruction set; or the text that it printed."""
    code = "from medyanpy.testing.installation import digest; print(digest(1))"
    command, environment = [sys.executable, "-P", "-c", code], {**os.environ, "MEDYANPY_ISA": isa}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def _compared(name: str, one: str, other: str) -> Finding:
    same = one == other
    return Finding(name, same, f"the same bits, {one[:12]}" if same else f"{one[:12]} and {other[:200]}")
