"""Attempts to flip edges per second and core, and what one costs.

Run by hand: ``python tests/benchmarks/bench_flips.py [--quick]``. Vesicles with bending (vertex form, 20 kT), total
area and volume; positions stay within the letter. Bound: 10^6 attempts per second and core on 10^4 vertices.

The rows are those of PyMembrane's benchmark page (docs/benchmarks.rst of fdmatoz/PyMembrane): operations that are
attempted, seconds per 10^6 of them, and the share that is accepted. Neither it nor FreeDTS or TriMem publish a rate of
flips per core at a stated mesh, so that none stands beside ours.
"""

import argparse
import statistics
import sys
import time

from common import machine, row

import medyanpy as mp

KT = 4.14
RADIUS, STRENGTH = 500.0, 80.0 * KT
# 10^6 attempts per second, of bending, area and volume on 10^4 vertices.
TARGET, OF = 1.0, 5
REPEATS = 3


def vesicle(subdivisions: int, more: str = "") -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    mesh = mp.TriangleMesh.icosphere(RADIUS, subdivisions)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
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
        points = topology.add_intriangle_points(membrane, len(membrane) // 10, mass=4e-12, friction=4e-6, seed=1)
        system.add_force(mp.forces.MembraneField(points, [1.0] * len(membrane)))
    flips = system.add_jump(mp.jumps.EdgeFlips(membrane, 0.0))
    word = "JBAGOGABJ" if more == "points" else "JBAOABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-9, kT=KT, seed=1), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context, flips


def measure(subdivisions: int, per_edge: float, more: str = "") -> tuple[int, float, float]:
    """Vertices, seconds per attempt, and the share that is accepted; of one letter J, with all that it does."""
    context, flips = vesicle(subdivisions, more)
    flips.set(rate=per_edge / 0.5e-9)
    context.step(1)
    letter = context._store.program.operations[0]
    spent, shares = [], []
    for _ in range(REPEATS):
        before = flips.counts
        started = time.process_time()
        context._store.program.perform(letter)
        seconds = time.process_time() - started
        after = flips.counts
        tried = after.tried - before.tried
        spent.append(seconds / tried)
        shares.append((after.accepted - before.accepted) / tried)
        # Beads move, and all that is known of the membrane is measured anew.
        context.step(1)
    return len(context.system.topology.membranes[0]), statistics.median(spent), statistics.mean(shares)


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
        target = TARGET if subdivisions == OF else None
        met &= told("attempts", *measure(subdivisions, per_edge), target)
    for more in ("tether", "dihedral", "points"):
        told(f"with {more}", *measure(middle, per_edge if more == "tether" else 0.02 * per_edge, more))
    # A letter with few attempts still measures the membrane once.
    told("0.01 attempts an edge", *measure(middle, 0.01))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
