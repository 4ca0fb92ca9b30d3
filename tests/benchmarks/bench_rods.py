"""Elastic rods: time of a step by number and length of rods, friction, excluded volume, threads, and construction.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_rods.py [--quick]

Medians over repeats; ratios are taken within this run. Targets are those of the project, beside what was measured.
Rods of the diameter, density and modulus 1 are bent to the curvature 0.1 and let go, at the timestep 0.2 (Ladd and
Misra, section V.A). PyElastica 1.0.0 (position Verlet, one thread) took 164, 178 and 350 ns per node and step for one
rod of 630, 1000 rods of 63 and one rod of 63 on the machine of the targets; peers/elastic_rods.py measures it again.
"""

import argparse

import numpy as np
from common import machine, median_ns, row, seconds

import medyanpy as mp
from medyanpy._tools.threads import available_threads
from medyanpy.testing import thermal

DT = 0.2
SECTION = mp.rods.CircularSection(0.5, 1.0, 0.3, 1.0)


def topology_of(rods, nodes, friction=0.0, rotational_friction=0.0):
    """Rods in a square lattice, and their handle."""
    x, q = mp.rods.uniform(nodes, 1.0, [0.0, 0.1, 0.0])
    side = int(np.ceil(np.sqrt(rods)))
    places = 4.0 * np.stack(np.divmod(np.arange(rods), side), axis=1) @ [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    topology = mp.Topology()
    handle = topology.add_rods((x + places[:, None]).reshape(-1, 3), np.tile(q, (rods, 1)), 1.0, SECTION.linear_density,
                               SECTION.inertia_density, friction, starts=nodes * np.arange(rods + 1),
                               rotational_friction=rotational_friction)  # fmt: skip
    return topology, handle


def context_of(rods, nodes, word="ABA", threads=1, friction=(0.0, 0.0), collide=False):
    """After 20 steps."""
    topology, handle = topology_of(rods, nodes, *friction)
    system = mp.System(topology)
    system.add_force(mp.forces.RodElasticity(handle, **SECTION.stiffness))
    if collide:
        system.add_force(mp.forces.RodCollision(handle, stiffness=1.0, radius=0.5))
    context = mp.Context(system, mp.SplittingIntegrator(word, DT, kT=thermal(word, 1e-6), seed=1), threads=threads)
    context.step(20)
    return context


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, to see that it runs")
    quick = parser.parse_args().quick
    many, repeats, work = (50, 3, 1e5) if quick else (1000, 15, 2e6)
    print(machine())

    def time_of(rods, nodes, *args, **kwargs):
        context = context_of(rods, nodes, *args, **kwargs)
        steps = max(10, round(work / (rods * nodes)))
        return median_ns(lambda: context.step(steps), repeats, steps * rods * nodes)

    row("one rod of 630 (PyElastica 164), ABA", time_of(1, 630), 120.0, "ns")
    one = time_of(many, 63)
    row(f"{many} rods of 63 (PyElastica 178), ABA", one, 120.0, "ns")
    row("one rod of 63 (PyElastica 350), ABA", time_of(1, 63), 150.0, "ns")
    print(f"{'velocity Verlet, BAB':58s} {time_of(many, 63, 'BAB'):10.2f} ns")
    # As of a slender rod: twice as large across as along.
    friction = ((0.01, 0.02), 0.002)
    warm = time_of(many, 63, "BAOAB", friction=friction)
    print(f"{'friction along and across, BAOAB':58s} {warm:10.2f} ns")
    collide = time_of(many, 63, collide=True)
    print(f"{'with RodCollision, ABA':58s} {collide:10.2f} ns, {collide - one:.0f} of them collisions")
    if available_threads() > 1:
        row("two threads, ABA", one / time_of(many, 63, threads=2), 1.8, "times", at_least=True)
        double = time_of(many, 63, "BAOAB", threads=2, friction=friction)
        row("two threads, BAOAB", warm / double, 1.8, "times", at_least=True)
    made = np.median([seconds(lambda: topology_of(many, 63))[0] for _ in range(repeats)])
    print(f"{f'add_rods, {many} rods of 63':58s} {1e3 * made:10.2f} ms")
    ready = np.median([seconds(lambda: context_of(many, 63))[0] for _ in range(max(3, repeats // 3))])
    print(f"{f'all of it up to step 20, {many} rods of 63':58s} {1e3 * ready:10.2f} ms")


if __name__ == "__main__":
    main()
