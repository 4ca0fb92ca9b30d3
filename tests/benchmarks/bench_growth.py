"""Filaments that grow: what growth costs of a step, and what a split costs.

Run by hand: ``python tests/benchmarks/bench_growth.py [--quick]``. 10^4 filaments of ten links in 10 µM of actin, 115
events a second and end, in steps of 5e-7 s: growth takes at most 0.5 % of a step; steps with and without it take turns.
A split with bending and collisions takes at most 5 µs: a letter of many events in which one of four splits or merges,
less those of links that stay the same. Processor time, one thread.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from common import machine, row, status

import medyanpy as mp

KT = 4.14
RISE, FULL = 2.7, 40
# s; that of many events is shorter, for their links are.
TIMESTEP, SHORT = 5e-7, 1e-8
# Percents of a step; µs.
SHARE, SPLIT = 0.5, 5.0
MASS, FRICTION = 4e-12, 4e-6
# nm, of neighbours whose collisions begin at 10 nm.
APART = 30.0


def network(n: int, capacity: int | None, links: int, full: int) -> tuple[mp.System, mp.beads.GrowingFilaments]:
    """Filaments side by side in bundles, with room for splits; they touch as soon as they bend."""
    wide = 1 + int(float(n) ** (1.0 / 3.0) * 2.0)
    steps = full * RISE * np.arange(links + 1)
    nodes = []
    for i in range(n):
        layer, place = divmod(i, wide * wide)
        start = np.array([*divmod(place, wide), 0]) * APART + [0.0, 0.0, layer * (2.0 * steps[-1])]
        nodes.append(start + steps[:, None] * [0.0, 0.0, 1.0])
    topology = mp.Topology()
    actin = topology.add_filaments(nodes, MASS, FRICTION, rise=RISE, capacity_links=capacity)
    system = mp.System(topology)
    system.add_force(mp.forces.FixmanPotential(actin, kT=KT))
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    return system, actin


def grown(system: mp.System, actin: mp.beads.GrowingFilaments, rate: float, subunits: tuple[int, int]) -> mp.jumps.Jump:
    """Growth and loss at the same rate, 1/s."""
    pool = system.add_pool(mp.Pool(volume=1e9, concentrations={"G": 10.0 * mp.units.micromolar}))
    return system.add_jump(
        mp.jumps.Polymerization(
            actin, pool["G"], end="plus", on_rate=rate / (10.0 * mp.units.micromolar), off_rate=rate, subunits=subunits
        )
    )


def context_of(system: mp.System, word: str, timestep: float) -> mp.Context:
    integrator = mp.SplittingIntegrator(word, timestep, kT=KT, seed=1)
    with warnings.catch_warnings():
        # Straight filaments that lie across each other.
        warnings.simplefilter("ignore")
        context = mp.Context(system, integrator, threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context


def share(n: int, steps: int) -> float:
    """Percents of a step that growth takes."""
    contexts = []
    for rate in (0.0, 115.0):
        system, actin = network(n, 15, 9, FULL)
        grown(system, actin, rate, (FULL // 2, FULL + FULL // 2 - 1))
        # The one evaluation of forces in a step comes after J.
        contexts.append(context_of(system, "BAJOJAB", TIMESTEP))
        contexts[-1].step(5)
    spent = [[], []]
    for _ in range(steps):
        for k, context in enumerate(contexts):
            started = time.process_time()
            context.step(10)
            spent[k].append(time.process_time() - started)
    without, with_growth = (float(np.median(one)) for one in spent)
    return 100.0 * (with_growth / without - 1.0)


def per_event(n: int, splits: bool, collide: bool) -> float:
    """Seconds per attempt of a letter with some thousand events."""
    system, actin = network(n, 12 if splits else None, 4, 4)
    if collide:
        system.add_force(mp.forces.SoftCollisions(actin, 5.0, 4.0, neighbors=1))
    growth = grown(system, actin, 0.25 / SHORT, (2, 5) if splits else (2, 40))
    context = context_of(system, "JBAOABJ", SHORT)
    context.step(1)
    spent = []
    for _ in range(3):
        before = growth.counts
        started = time.process_time()
        context._store.program.perform(context._store.program.operations[0])
        spent.append((time.process_time() - started) / (growth.counts.tried - before.tried))
        context.step(1)
    return float(np.median(spent))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(machine())
    n, steps = (100, 3) if quick else (10_000, 20)
    met = row(f"growth of {n} filaments", share(n, steps), SHARE, "% of a step")
    for name, collide in (("bending", False), ("bending and collisions", True)):
        moves, mixed = (1e6 * per_event(n, splits, collide) for splits in (False, True))
        row(f"a subunit, with {name}", moves, None, "µs")
        met &= row(f"a split or merge, with {name}", 4.0 * mixed - 3.0 * moves, SPLIT, "µs")
    return status(met, quick)


if __name__ == "__main__":
    sys.exit(main())
