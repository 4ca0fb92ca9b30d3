"""Hydrodynamic interactions: time of a step of D and of BAOAB by the number of spheres, with rotation, above a
wall, in a box.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_hydrodynamics.py [--quick]

Medians over repeats. Spheres of radius 1 fill 1.5 % of a cube, kT = 1, at the default tolerance, 0.02, and at 0.001.
The number of vectors that Lanczos' method takes is printed too: it grows slowly with the number of spheres. Peers:
peers/rotne_prager.py.
"""

import argparse

import numpy as np
from common import machine, seconds

import medyanpy as mp
from medyanpy._tools.threads import available_threads

ETA = 1.0 / (6.0 * np.pi)


def places(n, spacing=6.5):
    side = int(np.ceil(n ** (1 / 3) - 1e-9))
    x = np.stack(np.unravel_index(np.arange(n), (side,) * 3), 1) * spacing
    return x + np.random.default_rng(1).uniform(-1.5, 1.5, x.shape) + [0.0, 0.0, 3.0]


def context_of(n, word, turning, wall=None, tolerance=0.02, threads=1, in_box=False):
    topology = mp.Topology()
    x = places(n)
    side = 6.5 * np.ceil(n ** (1 / 3) - 1e-9)
    if turning:
        q = np.tile([1.0, 0, 0, 0], (n, 1))
        spheres = topology.add_rigid_bodies(x, q, 1.0, (0.4,) * 3, (1.0, 8 * np.pi * ETA))
    else:
        spheres = topology.add_balls(x, 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology, box=(side,) * 3 if in_box else None)
    system.add_force(mp.forces.HarmonicTrap(spheres, 1e-6, x.mean(axis=0)))
    if wall is not None:
        system.add_force(mp.forces.WallRepulsion(wall, spheres, 1.0, 0.4, radius=1.05))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, spheres, wall=wall, tolerance=tolerance))
    integrator = mp.BrownianIntegrator(1e-4, kT=1.0) if word == "D" else mp.SplittingIntegrator(word, 0.1, kT=1.0)
    return mp.Context(system, integrator, threads=threads)


def time_of(context, least):
    """Median of seconds per step, and vectors of Lanczos' method."""
    context.step(1)
    once = seconds(lambda: context.step(1))[0]
    steps = max(1, round(least / once))
    took = [seconds(lambda: context.step(steps))[0] / steps for _ in range(3 if steps == 1 else 7)]
    (operation,) = context._schedule.fluid._operations.values()
    return float(np.median(took)), operation.iterations


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer spheres, to see that it runs")
    quick = parser.parse_args().quick
    numbers = (1, 10, 100) if quick else (1, 10, 100, 1000, 10_000)
    least = 0.005 if quick else 0.1
    print(machine())
    print("one thread; times per step, and vectors of Lanczos' method")
    print(f"{'spheres':>8s} {'word':>6s} {'':>10s} {'':>6s} {'tolerance 0.02':>24s} {'tolerance 0.001':>24s}")
    for n in numbers:
        for word, turning, wall, in_box in (
            ("D", False, None, False), ("BAOAB", False, None, False), ("D", True, None, False),
            ("BAOAB", True, None, False), ("D", False, mp.boundaries.Plane(), False), ("D", False, None, True),
            ("BAOAB", False, None, True), ("D", True, None, True),
        ):  # fmt: skip
            if n == 10_000 and (turning or wall is not None or (in_box and word != "D")):
                continue
            cells = []
            for tolerance in (0.02, 0.001):
                took, vectors = time_of(context_of(n, word, turning, wall, tolerance, in_box=in_box), least)
                cells.append(f"{1e6 * took:14.1f} us, {vectors:4d}")
            kind = "turning" if turning else "balls"
            beside = "wall" if wall is not None else "box" if in_box else "open"
            print(f"{n:8d} {word:>6s} {kind:>10s} {beside:>6s} {cells[0]:>24s} {cells[1]:>24s}", flush=True)
    threads = available_threads()
    if threads > 1 and not quick:
        n = 2000
        one, all_ = (time_of(context_of(n, "D", False, threads=k), least)[0] for k in (1, threads))
        print(f"{n} balls, D: {threads} threads are {one / all_:.2f} times as fast as one")


if __name__ == "__main__":
    main()
