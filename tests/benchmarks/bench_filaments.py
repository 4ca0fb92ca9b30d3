"""Constrained filaments: time of an A step with its projection, of whole steps, of one long filament, on two threads.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_filaments.py [--quick]

Medians over repeats, and of one filament against many the least; ratios are taken within this run. Targets are those of
the project, beside what was measured.
"""

import argparse

import numpy as np
from common import machine, median_ns, row

import medyanpy as mp
from medyanpy._tools.threads import available_threads
from medyanpy.testing import thermal


def chains(n_filaments, n_nodes, threads, word="BAOAB", bending=True, twistable=False):
    """Worm-like chains of links of length 1 and persistence length 10, thermal, at a timestep of 0.02; twistable ones
    with a twist modulus that is the bending modulus."""
    rng = np.random.default_rng(1)
    nodes = []
    for _ in range(n_filaments):
        d = 0.3 * rng.normal(size=(n_nodes - 1, 3)) + [1.0, 0, 0]
        d /= np.linalg.norm(d, axis=1)[:, None]
        nodes.append(np.concatenate([np.zeros((1, 3)), np.cumsum(d, axis=0)]))
    topology = mp.Topology()
    twist = {"directors": "parallel", "director_mass": 0.3, "director_friction": 0.3} if twistable else {}
    filaments = topology.add_filaments(nodes, node_mass=1.0, node_friction=1.0, **twist)
    system = mp.System(topology)
    if bending:
        system.add_force(mp.forces.FilamentBending(filaments, 10.0))
    if twistable:
        system.add_force(mp.forces.FilamentTwisting(filaments, 10.0))
    context = mp.Context(system, mp.SplittingIntegrator(word, 0.02, kT=thermal(word, 1.0), seed=3), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(20)
    return context


def step_ns(context, steps, repeats):
    nodes = len(context.system.topology.handles[0])
    return median_ns(lambda: context.step(steps), repeats, steps * nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n_filaments, long, repeats = (64, 2000, 3) if quick else (1000, 1_000_000, 11)
    print(machine(), "\n")
    # BAB without forces: one A with its projection, and two more projections.
    context = chains(n_filaments, 32, 1, "BAB", bending=False)
    (project,) = next(iter(context._schedule.flows.values())).tangent()
    tangent = median_ns(lambda: context._schedule.perform(project), 5 * repeats, context.layout.n)
    a_step = step_ns(context, 5, repeats) - 2.0 * tangent
    row(f"A with projection, {n_filaments} filaments of 32 nodes", a_step, 40, "ns/node")
    print(f"    (a projection alone {tangent:.1f} ns/node)")
    short = step_ns(chains(n_filaments, 32, 1), 5, repeats)
    row(f"BAOAB with bending, {n_filaments} filaments of 32 nodes", short, 100, "ns/node")
    twistable = step_ns(chains(n_filaments, 32, 1, twistable=True), 5, repeats) * 32.0 / 31.0
    row("the same, twistable, with twisting", twistable, 400, "ns/link")
    one = step_ns(chains(1, long, 1), 1, repeats)
    row(f"one filament of {long} nodes against these", one / short, 1.5, "x")
    for twistable in (False, True):
        # At the same time: a machine that others use changes its pace.
        contexts = [chains(n, 50, 1, twistable=twistable) for n in (100, 1)]
        times = [[step_ns(c, s, 1) for c, s in zip(contexts, (2, 200), strict=True)] for _ in range(5 * repeats)]
        many, alone = np.min(times, axis=0)
        what = ", twistable" if twistable else ""
        row(f"one filament of 50 nodes against 100 of them{what}", alone / many, 2.0, "x")
    if available_threads() > 1:
        contexts = [chains(n_filaments, 32, threads) for threads in (1, 2)]
        times = [[step_ns(c, 5, 1) for c in contexts] for _ in range(repeats)]
        row("two threads against one", float(np.median([a / b for a, b in times])), 1.8, "x", at_least=True)


if __name__ == "__main__":
    main()
