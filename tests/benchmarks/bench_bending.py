"""Time of bending forces on icospheres, alone and with area and volume, which share their geometry. Bound: 200 ns a
vertex on one thread, with energy, in the cache and beyond it alike. The same numbered at random, which no bound is of.

Others, one thread, energy and gradient: pymem3dg 1.6 µs, trimem 7 µs a vertex.

Run by hand: ``python tests/benchmarks/bench_bending.py [--quick] [threads]``. Prints medians of repeated evaluations
beside the bound, then ends with status 1 if it is missed on one thread; with ``--quick`` it only sees that it runs.
"""

import argparse
import itertools
import statistics
import sys
import time

from common import machine, row, status

NANOSECONDS = 200.0
REPEATS = 15


def measure(subdivisions: int, shuffled: bool, form: str, others: bool, energy: bool, threads: int,
            repeats: int) -> tuple[int, float]:  # fmt: skip
    """Vertices, and the median time of one evaluation in ns a vertex; of one thread the time that it had."""
    import numpy as np

    import medyanpy as mp

    clock = time.thread_time if threads == 1 else time.perf_counter
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(500.0, subdivisions)
    if shuffled:
        rng = np.random.default_rng(1)
        order = rng.permutation(len(mesh.vertices))
        mesh = mp.TriangleMesh(mesh.vertices[order], rng.permutation(np.argsort(order)[mesh.faces]))
    sphere = topology.add_membrane(mesh, vertex_mass=4e-12)
    system = mp.System(topology)
    how = {"projected": True} if form == "projected" else {"discretization": form}
    system.add_force(mp.forces.MembraneBending(sphere, bending_modulus=82.0, **how))
    if others:
        system.add_force(mp.forces.MembraneArea(sphere, area_modulus=200.0))
        system.add_force(mp.forces.MembraneVolume(sphere, volume_modulus=0.8))
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=threads)
    (forces,) = context._schedule.force_sums.values()
    loops = max(1, 50_000 // len(sphere))
    times = []
    for _ in range(repeats + 1):
        start = clock()
        for _ in range(loops):
            # As if beads had moved, so that nothing is reused.
            context._store.program.changed()
            forces.refresh(context._store.program, energy)
        times.append((clock() - start) / loops)
    # The first one warms up.
    return len(sphere), 1e9 * statistics.median(times[1:]) / len(sphere)


def main(threads: int, quick: bool) -> int:
    """Print one line for each size, form and output."""
    print(machine())
    met = True
    forms = ("vertex", "projected", "dihedral")
    choices = (4,) if quick else (4, 6), (False, True), forms, (False, True), (False, True)
    for subdivisions, shuffled, form, others, energy in itertools.product(*choices):
        n, t = measure(subdivisions, shuffled, form, others, energy, threads, 3 if quick else REPEATS)
        bound = NANOSECONDS if threads == 1 and not shuffled else None
        what = form + ", area, volume" * others + "; energy" * energy + "; at random" * shuffled
        met &= row(f"{n} vertices, {what}" + f"; {threads} threads" * (threads > 1), t, bound, "ns")
    return status(met, quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("threads", nargs="?", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    sys.exit(main(**vars(parser.parse_args())))
