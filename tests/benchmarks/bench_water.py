"""Time of clusters of water: all pairs; molecules rigid by constraints, or by penalties and linearly implicit kicks.

Run by hand: ``python tests/benchmarks/bench_water.py [--quick]``. Targets: 3 ns for a pair of charges at any distance;
a whole step with noise of 100 molecules 500 times as fast as the paper's simplified Z&S (30 059 s for 20 000 steps).
``--quick`` sees that it runs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from common import machine, median_ns, row, status

import medyanpy as mp
from medyanpy.testing import thermal

sys.path.insert(0, str(Path(__file__).parents[1] / "validation" / "coarse"))
import water

REPEATS = 31


def pairs(name, threads, repeats):
    """ns per pair of 300 atoms; a step of nothing but this force."""
    topology = mp.Topology()
    atoms = topology.add_beads(np.random.default_rng(1).uniform(0.0, 7.0, (300, 3)), mass=1.0)
    charges = np.random.default_rng(2).normal(size=300)
    system = mp.System(topology)
    system.add_force(
        mp.forces.Coulomb(atoms, charges, 1.0) if name == "charges" else mp.forces.LennardJones(atoms, atoms, 1e-9, 0.1)
    )
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=threads)
    return median_ns(lambda: context.step(20), repeats, 20 * 300 * 299 / 2)


def molecules(word, repeats, n=1000):
    """ns per molecule and step of rigid water without forces."""
    places = np.random.default_rng(1).uniform(0.0, 30.0, (n, 3))
    arguments = mp.presets.tip3p().arguments(places * water.LENGTH)
    x = arguments["nodes"] / water.LENGTH
    topology = mp.Topology()
    topology.add_filaments(water.exact_sides(x), np.tile(water.MASSES, n), water.FRICTION, closed=True,
                           starts=arguments["starts"])  # fmt: skip
    integrator = mp.SplittingIntegrator(word, water.H, kT=thermal(word, water.KT))
    context = mp.Context(mp.System(topology), integrator, threads=1)
    context.set_velocities_to_temperature(kT=water.KT, seed=1)
    return median_ns(lambda: context.step(20), repeats, 20 * n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, to see that it runs")
    quick = parser.parse_args().quick
    repeats, settle, steps = (3, 100, 20) if quick else (REPEATS, 800, 200)
    print(machine())
    met = True
    for name in ("charges", "Lennard-Jones"):
        for threads in (1, 2):
            met &= row(f"a pair of {name}, {threads} threads", pairs(name, threads, repeats), 3.0, "ns")
    met &= row("a rigid molecule, BAB", molecules("BAB", repeats), 1000.0, "ns")
    met &= row("a rigid molecule, OBABO", molecules("OBABO", repeats), 2500.0, "ns")
    x = water.start(100, steps=settle)
    for kind in (water.Shake, water.ZhangSkeelStiff):
        target = 1e6 * water.PAPER_SECONDS["Z&S, stiff", 100] / 20_000 / 500
        met &= row(f"100 molecules, {kind.name}", 1e6 * water.speed(kind, x, steps), target, "µs")
    return status(met, quick)


if __name__ == "__main__":
    sys.exit(main())
