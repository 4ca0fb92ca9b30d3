"""Constraints of a user's own: time of a step of many small molecules, of one long chain and of a net, by threads.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_constraints.py [--quick]

Medians over repeats. BAOAB with one friction; the molecules are three beads with three distances (rigid water), the
chain is a filament that one further distance takes out of its own solver, the net is n by n beads with all bars but
those of every third row. What filaments and rings take alone is beside it. Of points on a vesicle what constraints add
to a step is told.
"""

import argparse
import time
from functools import partial

import numpy as np
from common import machine, median_ns, row

import medyanpy as mp

DISTANCE = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"


def context_of(topology, threads):
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=1), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(10)
    return context


def tie(topology, x, pairs):
    d = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
    return topology.constrain(DISTANCE, pairs, d=d)


def molecules(n, written):
    bent = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.3, 1.0, 0.0]])
    x = bent + np.random.default_rng(1).normal(0.0, 0.1, (n, 3, 3)) + np.arange(n)[:, None, None]
    topology = mp.Topology()
    if written:
        triples = topology.add_beads(x.reshape(-1, 3), 1.0, 1.0).beads.reshape(-1, 3)
        tie(topology, x.reshape(-1, 3), np.stack([triples, np.roll(triples, -1, axis=1)], axis=-1).reshape(-1, 2))
    else:
        topology.add_filaments(x, 1.0, 1.0, closed=True)
    return topology


def chain(n, written):
    x = np.cumsum(np.random.default_rng(1).normal(0.0, 0.3, (n, 3)) + [1.0, 0.0, 0.0], axis=0)
    topology = mp.Topology()
    topology.add_filament(x, 1.0, 1.0)
    if written:
        tie(topology, x, np.array([[0, 2]]))
    return topology


def net(n):
    grid = np.arange(n * n).reshape(n, n)
    x = np.column_stack([grid.ravel() % n, grid.ravel() // n, np.zeros(n * n)])
    x = x + np.random.default_rng(1).normal(0.0, 0.1, (n * n, 3))
    topology = mp.Topology()
    topology.add_beads(x, 1.0, 1.0)
    across = grid[np.arange(n) % 3 > 0]
    ends = [(grid[1:], grid[:-1]), (across[:, 1:], across[:, :-1])]
    tie(topology, x, np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in ends]))
    return topology


def on_points(n, tied):
    """A vesicle of 2562 vertices with 2000 points, the first n of which are at a distance from a bead each."""
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 4), 1.0, 1.0)
    points = topology.add_intriangle_points(vesicle, 2000, mass=1.0, friction=1.0, seed=1)
    beads = topology.add_beads(1.1 * points.positions[:n], 1.0, 1.0)
    if tied:
        d = 0.1 * np.linalg.norm(points.positions[:n], axis=1)
        topology.constrain(DISTANCE, np.column_stack([points.beads[:n], beads.beads]), d=d)
    integrator = mp.SplittingIntegrator("BAGOGAB", 0.01, kT=1.0, seed=1)
    context = mp.Context(mp.System(topology), integrator)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(10)
    return context


def step_ns(context, steps, repeats):
    return median_ns(lambda: context.step(steps), repeats, steps * context.layout.n)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n, long, side, repeats = (100, 100, 10, 3) if quick else (10_000, 4_000, 30, 11)
    print(machine(), "\n")
    start = time.perf_counter()
    topology = molecules(n, True)
    row(f"constrain {n} molecules, checked", time.perf_counter() - start, 2.0, "s")
    start = time.perf_counter()
    context = context_of(topology, 1)
    row("context of these", time.perf_counter() - start, 3.0, "s")
    row("step of these", step_ns(context, 2, repeats), 1000, "ns/bead")
    row("on two threads", step_ns(context_of(topology, 2), 2, repeats), 800, "ns/bead")
    row("as rings of filaments", step_ns(context_of(molecules(n, False), 1), 2, repeats), 300, "ns/bead")
    row(f"chain of {long}, one component", step_ns(context_of(chain(long, True), 1), 2, repeats), 1000, "ns/bead")
    row("as a filament", step_ns(context_of(chain(long, False), 1), 2, repeats), 150, "ns/bead")
    row(f"net of {side} by {side}, one component", step_ns(context_of(net(side), 1), 2, repeats), 20_000, "ns/bead")
    for points in (10,) if quick else (1, 10, 100, 400):
        free, tied = (median_ns(partial(on_points(points, t).step, 2), repeats, 2000) for t in (False, True))
        row(f"{points} points of 2000 at beads, above the step without", tied - free, 2000 * points, "µs")
    row("the step without", free, 1000, "µs")


if __name__ == "__main__":
    main()
