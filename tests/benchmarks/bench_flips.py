"""Attempts to flip edges per second and core, and what one costs.

Run by hand: ``python tests/benchmarks/bench_flips.py [--quick]``. Vesicles with bending (vertex form, 20 kT), total
area and volume; positions stay within the letter. Bounds: 2.3·10^6 attempts per second and core on 10^4 vertices with a
tether; microseconds an attempt with points and other forces.

The rows are those of PyMembrane's benchmark page (docs/benchmarks.rst of fdmatoz/PyMembrane): operations that are
attempted, seconds per 10^6 of them, and the share that is accepted. Neither it nor FreeDTS or TriMem publish a rate of
flips per core at a stated mesh, so that none stands beside ours.
"""

import argparse
import statistics
import sys
import time
import warnings

import flip_scenes
import numpy as np
from common import machine, row, status

import medyanpy as mp

KT = 4.14
RADIUS, STRENGTH = 500.0, 80.0 * KT
# 10^6 attempts per second, on 10^4 vertices, of bending, area and volume: with a tether, and in the dihedral form.
TARGETS, OF = {"tether": 2.3, "dihedral": 1.0}, 5
REPEATS = 3
# The time of a step with a tenth of an attempt per edge, over that of a step without flips, with 5 000 points.
RATIO = 1.5


def _pairs(points: mp.beads.Handle, neighbors: float = 10.0, **more: bool) -> mp.forces.Force:
    """Soft spheres with so many neighbours of each point within range."""
    diameter = RADIUS * np.sqrt(4.0 * neighbors / len(points))
    return mp.forces.SoftSphere(points, points, stiffness=0.01, diameter=diameter, **more)


def _linked(points: mp.beads.Handle, topology: mp.Topology) -> mp.forces.Force:
    beads = topology.add_beads(1.02 * points.positions, mass=4e-12, friction=4e-6)
    return mp.forces.Links(points, beads, 0.1, 10.0)


# Name: what is added, as (membrane, points, topology) -> force; how many points; target, µs an attempt.
CROWDED = {
    "1 000 points with ten neighbours": (lambda m, p, t: _pairs(p), 1_000, 3.0),
    "5 000 points with ten neighbours": (lambda m, p, t: _pairs(p), 5_000, 3.0),
    "10 000 points with ten neighbours": (lambda m, p, t: _pairs(p), 10_000, 3.0),
    "100 000 points with ten neighbours": (lambda m, p, t: _pairs(p), 100_000, 4.0),
    "2 000 points linked to beads": (lambda m, p, t: _linked(p, t), 2_000, 2.0),
    "500 points with curvature": (lambda m, p, t: mp.forces.PointCurvature(p, 5.0 * KT, 0.005, 50.0), 500, 2.0),
    "edge springs": (lambda m, p, t: mp.forces.MembraneEdgeSprings(m, 0.01, float(m.mesh.edge_lengths.mean())), 0, 2.0),
}


# Name: scene, what there is many of, and target, µs an attempt.
COLLIDING = {
    "collisions of 1 000 filament nodes": (flip_scenes.with_filaments, 1_000, 5.0),
    "collisions of 100 ellipsoids": (flip_scenes.with_ellipsoids, 100, None),
    "10 000 points along the surface": (flip_scenes.along_surface, 10_000, 15.0),
}


def vesicle(subdivisions: int, more: str = "", word: str = "") -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    mesh = mp.TriangleMesh.icosphere(RADIUS, subdivisions)
    crowd = CROWDED.get(more)
    edge = float(mesh.edge_lengths.mean())
    if crowd is not None:
        # Held by a tether some attempts in a hundred succeed, once vertices are off their lattice.
        off = np.random.default_rng(1).normal(0.0, 0.07 * edge, mesh.vertices.shape)
        mesh = mesh.with_vertices(mesh.vertices + off)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    points = None
    n_points = len(membrane) // 10 if more == "points" else 0 if crowd is None else crowd[1]
    if n_points:
        points = topology.add_intriangle_points(membrane, n_points, mass=4e-12, friction=4e-6, seed=1)
    system = mp.System(topology)
    form = "dihedral" if more == "dihedral" else "vertex"
    system.add_force(mp.forces.MembraneBending(membrane, 20.0 * KT, discretization=form))
    system.add_force(mp.forces.MembraneArea(membrane, 200.0))
    system.add_force(mp.forces.MembraneVolume(membrane, 0.05))
    system.add_force(mp.forces.MembraneFoldRepulsion(membrane, 20.0 * KT))
    if more == "tether":
        tether = {"l_min": 0.3, "l_c1": 1.0, "l_c0": 1.0, "l_max": 1.8}
        system.add_force(mp.forces.MembraneTether(membrane, STRENGTH, **tether))
    if more == "points":
        system.add_force(mp.forces.MembraneField(points, [1.0] * len(membrane)))
    if crowd is not None:
        system.add_force(mp.forces.MembraneTether(membrane, STRENGTH, edge, l_min=0.5, l_max=1.6))
        system.add_force(crowd[0](membrane, points, topology))
    flips = system.add_jump(mp.jumps.EdgeFlips(membrane, 0.0))
    word = word or ("JBAOABJ" if points is None else "JBAGOGABJ")
    with warnings.catch_warnings():
        # Costs are what is measured here.
        warnings.simplefilter("ignore", mp.PerformanceWarning)
        context = mp.Context(system, mp.SplittingIntegrator(word, 1e-9, kT=KT, seed=1), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context, flips


def measure(subdivisions: int, per_edge: float, more: str = "") -> tuple[int, float, float]:
    """Vertices, seconds per attempt, and the share that is accepted; of one letter J, with all that it does."""
    if more in COLLIDING:
        make, count, _ = COLLIDING[more]
        context, flips = make(subdivisions, count)
    else:
        context, flips = vesicle(subdivisions, more)
    context.step(1)
    letter = context._store.program.operations[0]
    spent, shares = [], []
    for _ in range(REPEATS):
        # Vertices move without flips: what a letter needs to know of the membrane, it measures itself.
        flips.set(rate=0.0)
        context.step(1)
        flips.set(rate=per_edge / 0.5e-9)
        context._refresh()
        before = flips.counts
        started = time.process_time()
        context._store.program.perform(letter)
        seconds = time.process_time() - started
        after = flips.counts
        tried = after.tried - before.tried
        spent.append(seconds / tried)
        shares.append((after.accepted - before.accepted) / tried)
    return len(context.system.topology.membranes[0]), statistics.median(spent), statistics.mean(shares)


def step_ratio(subdivisions: int, steps: int, word: str) -> float:
    """Time of a step with a tenth of an attempt per edge over that without flips; the two take turns."""
    spent = {0.1: 0.0, 0.0: 0.0}
    contexts = {}
    for per_edge in spent:
        contexts[per_edge], flips = vesicle(subdivisions, "5 000 points with ten neighbours", word)
        flips.set(rate=per_edge / 1e-9)
        contexts[per_edge].step(2)
    for _ in range(steps):
        for per_edge, context in contexts.items():
            started = time.process_time()
            context.step(1)
            spent[per_edge] += time.process_time() - started
    return spent[0.1] / spent[0.0]


def told(what: str, n: int, seconds: float, share: float, target: float | None = None) -> bool:
    """One line; seconds per 10^6 attempts, as in PyMembrane's table, are one over the figure."""
    return row(f"{n} vertices, {what}, {100 * share:.1f} % accepted", 1e-6 / seconds, target, "M/s", at_least=True)


def main() -> int:
    """Print one line for each size and for more forces; status 1 if the bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    print(machine())
    per_edge = 0.5 if given.quick else 4.0
    sizes, middle = ((3,), 3) if given.quick else ((3, 4, 5, 6), OF)
    met = True
    for subdivisions in sizes:
        told("attempts", *measure(subdivisions, per_edge))
    for more in ("tether", "dihedral", "points"):
        found = measure(middle, per_edge if more == "tether" else 0.02 * per_edge, more)
        met &= told(f"with {more}", *found, TARGETS.get(more))
    for more, (_, _, most) in {**CROWDED, **COLLIDING}.items():
        n, seconds, share = measure(middle, 0.02 if given.quick else 0.1, more)
        met &= row(f"{n} vertices, {more}, {100 * share:.1f} % accepted", 1e6 * seconds, most, "µs")
    # In the first word forces are evaluated once in a step. In the second the next kick needs them again after flips.
    for word, most in (("BAGOJOGAB", RATIO), ("JBAGOGABJ", None)):
        ratio = step_ratio(middle, 5 if given.quick else 60, word)
        met &= row(f"{word} with flips over without, 5 000 points", ratio, most, "times")
    # A letter with few attempts still measures the membrane once.
    told("0.01 attempts an edge", *measure(middle, 0.01))
    return status(met, given.quick)


if __name__ == "__main__":
    sys.exit(main())
