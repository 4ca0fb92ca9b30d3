"""Pairs of in-triangle points by their distance along a membrane, and fields on it: time of a step.

    python tests/benchmarks/bench_along_surface.py [--quick]

A search from a point goes through all triangles within the cutoff, so its time grows as the square of that. Medians
over repeats; everything in a step is counted, of which flight and kicks are 0.2 µs a point.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import medyanpy as mp
from medyanpy._tools.threads import available_threads

sys.path.insert(0, str(Path(__file__).parent))
from common import machine, median_ns, row


def cell(rough, n, threads, law):
    """n points on a sphere of 5120 triangles whose vertices are displaced by this share of an edge: rough ones have
    saddles, at which paths bend. Returns its edge too."""
    mesh = mp.TriangleMesh.icosphere(10.0, 4)
    edge = np.linalg.norm(mesh.vertices[mesh.edges[:, 1]] - mesh.vertices[mesh.edges[:, 0]], axis=1).mean()
    rng = np.random.default_rng(1)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, rough * edge, mesh.vertices.shape))
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, n, mass=1.0, seed=1)
    system = mp.System(topology)
    system.add_force(law(points, edge))
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-6), threads=threads)
    context.step(1)
    return context


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n, repeats = (300, 3) if quick else (5000, 7)
    print(machine())
    for rough in (0.0, 0.15):
        for cutoff, target in ((1, 8.0), (2, 30.0), (4, 150.0)):
            context = cell(
                rough, n, 1,
                lambda p, edge, c=cutoff: mp.forces.SoftSphere(
                    p, p, 1e-6, c * edge, along_surface=True, skin=0.2 * edge
                ),
            )  # fmt: skip
            pairs = context._schedule.bound_forces["SoftSphere"].neighbors.entries / 2 / n
            time = median_ns(lambda c=context: c.step(1), repeats, n) / 1000.0
            what = f"{n} points, roughness {rough:g}, cutoff {cutoff} edges"
            row(what, time, target, "µs/point")
            print(f"{'':58s} {1000.0 * time / pairs:10.0f} ns for each of {pairs:.1f} listed pairs a point")
    if available_threads() > 1:
        for threads in (1, 2):
            context = cell(
                0.15, n, threads,
                lambda p, edge: mp.forces.SoftSphere(p, p, 1e-6, 2 * edge, along_surface=True, skin=0.2 * edge),
            )  # fmt: skip
            time = median_ns(lambda c=context: c.step(1), repeats, n) / 1000.0
            print(f"{f'the same, 2 edges, {threads} threads':58s} {time:10.2f} µs/point")
    context = cell(0.0, n, 1, lambda p, edge: mp.forces.MembraneField(p, np.linspace(-1.0, 1.0, 2562)))
    row(f"{n} points in a field on the membrane", median_ns(lambda: context.step(1), repeats, n), 1000, "ns/point")


if __name__ == "__main__":
    main()
