"""In-triangle points: time of a lone G and of a whole BAGOGAB step, threads, small systems, memory.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_points.py [--quick]

Medians over repeats; ratios are taken within this run. Targets are those of the project, beside what was measured.
"""

import argparse
import multiprocessing
import sys
from pathlib import Path

import numpy as np

import medyanpy as mp
from medyanpy._kernels.selected import geodesic
from medyanpy._tools.threads import available_threads

sys.path.insert(0, str(Path(__file__).parent))
from common import machine, median_ns, memory, row, two_beads

MASS, FRICTION, KELVIN = 4e-12, 4e-6, 300.0
# Mean path of half a step is 0.18 edges: about 0.4 crossings per point and G.
TIMESTEP = 5.4e-6


def points_on_a_sphere(n, threads, moving=True):
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(500.0, 5)
    membrane = topology.add_membrane(mesh, vertex_mass=500 * MASS, vertex_friction=FRICTION, fixed=not moving)
    points = topology.add_intriangle_points(membrane, n, mass=MASS, friction=FRICTION, seed=1)
    system = mp.System(topology)
    if moving:
        system.add_force(mp.forces.MembraneEdgeSprings(membrane, 5.0))
    context = mp.Context(system, mp.BAGOGABIntegrator(TIMESTEP, temperature=KELVIN, seed=3), threads=threads)
    context.set_velocities_to_temperature(KELVIN, seed=2)
    return context, points


def crossings_per_flight(n=20_000):
    """Crossings counted by flying in small pieces: the triangle changes at most once in each."""
    context, points = points_on_a_sphere(n, 1, moving=False)
    pieces, total = 40, 0
    flight = geodesic.Geodesic(0.5 * TIMESTEP / pieces, context._store.corners)
    before = context.get_state(positions=True).intriangle.triangles
    for _ in range(pieces):
        context._schedule.perform(flight)
        now = context.get_state(positions=True).intriangle.triangles
        total += int((now != before).sum())
        before = now
    return total / len(points)


def memory_of(n, moving, pipe):
    """Bytes per point of everything that a Simulation holds, in a process of its own."""
    small, _ = points_on_a_sphere(1000, 1, moving)
    small.step(1)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # start VmHWM anew
    before = memory("VmRSS")
    context, _ = points_on_a_sphere(n, 1, moving)
    context.step(1)
    pipe.send(((memory("VmRSS") - before) / n, (memory("VmHWM") - before) / n))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    sizes = (10_000,) if quick else (100_000, 1_000_000)
    repeats = 3 if quick else 11
    print(machine())
    print(
        f"icosphere of 20480 faces, {crossings_per_flight(2000 if quick else 20_000):.2f} crossings per point and G\n"
    )
    for moving in (False, True):
        kind = "moving" if moving else "fixed"
        for n in sizes:
            context, _ = points_on_a_sphere(n, 1, moving)
            flight = geodesic.Geodesic(0.5 * TIMESTEP, context._store.corners)
            context._schedule.perform(flight)
            g = median_ns(lambda c=context, f=flight: c._schedule.perform(f), repeats, n)
            row(f"lone G, {n} points, {kind} mesh, 1 thread", g, 60, "ns/point")
            context.set_velocities_to_temperature(KELVIN, seed=2)
            context.step(2)
            step = median_ns(lambda c=context: c.step(1), repeats, n)
            row(f"BAGOGAB step, {n} points, {kind} mesh, 1 thread", step, 200, "ns/point")
    if available_threads() > 1:
        for n in sizes:
            one, _ = points_on_a_sphere(n, 1)
            two, _ = points_on_a_sphere(n, 2)
            for context in (one, two):
                context.step(2)
            # In turn, so that drifting clocks of a shared machine hit both alike.
            times = [[median_ns(lambda c=c: c.step(1), 1, n) for c in (one, two)] for _ in range(repeats)]
            gain = float(np.median([a / b for a, b in times]))
            row(f"two threads against one, step, {n} points", gain, 1.8, "x", True)
    steps = 20_000 if quick else 1_000_000
    for word in ("BAB", "BAOAB"):
        context = two_beads(word)
        time = median_ns(lambda c=context: c.step(steps), 3, steps) / 1e3
        row(f"two beads and a bond, {word}", time, 1.0, "us/step")
    n = sizes[-1]
    for moving in (False, True):
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=memory_of, args=(n, moving, theirs))
        process.start()
        kept, peak = ours.recv()
        process.join()
        kind = "moving" if moving else "fixed"
        row(f"memory kept, {n} points, {kind} mesh", kept, 200, "B/point")
        print(f"{'':4s}(while building and stepping, at most {peak:.0f} B/point)")


if __name__ == "__main__":
    main()
