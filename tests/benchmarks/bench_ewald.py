"""Charges in a periodic box: time of an evaluation by the number of charges, the cutoff and the tolerance.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_ewald.py [--quick]

Medians over repeats. A salt of distance 1 in a cube, moved at random; the best of some cutoffs is printed, and the time
of each. With it Coulomb's sum over all pairs in open space of as many charges.
"""

import argparse

import numpy as np
from common import machine, seconds

import medyanpy as mp


def salt(side, cutoff, tolerance, threads=1, skin=0.2):
    n = side**3
    grid = np.stack(np.unravel_index(np.arange(n), (side,) * 3), axis=1)
    topology = mp.Topology()
    ions = topology.add_beads(grid + np.random.default_rng(1).normal(0.0, 0.1, (n, 3)), mass=1.0)
    box = None if cutoff is None else (float(side),) * 3
    system = mp.System(topology, box=box)
    numbers = {} if cutoff is None else {"cutoff": cutoff, "tolerance": tolerance, "skin": skin}
    system.add_force(mp.forces.Coulomb(ions, (-1.0) ** grid.sum(axis=1), 1.0, **numbers))
    return mp.Context(system, mp.VerletIntegrator(1e-6), threads=threads)


def time_of(context, least=0.3):
    """Median of seconds per step: of an evaluation with its share of building lists."""
    context.step(2)
    once = seconds(lambda: context.step(1))[0]
    steps = max(1, round(least / once))
    return float(np.median([seconds(lambda: context.step(steps))[0] / steps for _ in range(3 if steps == 1 else 5)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer charges, to see that it runs")
    quick = parser.parse_args().quick
    print(machine())
    for side in (6,) if quick else (6, 10, 16, 22, 30):
        n = side**3
        if n <= 5000:
            print(f"{n} charges in open space: {1e6 * time_of(salt(side, None, 0.0)) / n:.2f} us a charge", flush=True)
        for tolerance in (1e-5,) if quick else (1e-3, 1e-5, 1e-7):
            reach = np.sqrt(3.6 - np.log(tolerance))
            balanced = reach * (n / (2 * np.pi**3)) ** (1 / 6)
            found = {}
            for share in (0.8, 1.0, 1.25, 1.5):
                cutoff = min(share * balanced, 0.49 * side)
                if cutoff not in found:
                    found[cutoff] = time_of(salt(side, cutoff, tolerance))
            best = min(found, key=found.get)
            times = ", ".join(f"{c:.2f} ({c / balanced:.2f}): {1e6 * t / n:.2f}" for c, t in found.items())
            print(f"{n} charges, tolerance {tolerance:g}: {1e6 * found[best] / n:.2f} us a charge; {times}", flush=True)


if __name__ == "__main__":
    main()
