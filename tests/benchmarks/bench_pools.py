"""Events of reactions a second, in a pool and on a grid of cells.

Run by hand: ``python tests/benchmarks/bench_pools.py [--quick]``. Targets, on one core: 10^7 events a second of a pool
with four reactions (eight channels), 2 10^6 on 10^4 cells, most of them hops. Processor time is measured, of steps with
many events each: what else a step does is none of theirs, and is as much as five of them for one bead.
"""

import argparse
import statistics
import time

from common import machine, row, status

import medyanpy as mp

KT = 4.14
FOUR = """
    A + B <-> C; k_on = 1.0, k_off = 50.0
    2 A <-> D; k_on = 0.5, k_off = 40.0
    C <-> E; k_on = 20.0, k_off = 20.0
    D + E <-> F; k_on = 1.0, k_off = 10.0
"""


def simulation_of(pool, text: str, h: float) -> mp.Simulation:
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_pool(pool)
    system.add_jump(mp.jumps.Reactions(pool, text))
    return mp.Simulation(system, mp.BrownianIntegrator(h, kT=KT, seed=1), threads=1)


def happened(simulation: mp.Simulation) -> int:
    shown = simulation.context.get_state(positions=True).jumps["Reactions"]
    return int(shown["events"].sum()) + shown["hops"]


def rate(simulation: mp.Simulation, events: float, repeats: int) -> float:
    """Events a second of processor time, in millions: the median of some runs."""
    simulation.step(2)
    before, start = happened(simulation), simulation.context.step_count
    simulation.step(2)
    steps = max(1, int(events / max(1, (happened(simulation) - before) / 2)))
    found = []
    for _ in range(repeats):
        before, start = happened(simulation), time.process_time()
        simulation.step(steps)
        found.append(1e-6 * (happened(simulation) - before) / (time.process_time() - start))
    return statistics.median(found)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(machine())
    events, repeats, side = (2e4, 1, 6) if quick else (5e6, 5, 22)
    counts = dict.fromkeys("ABCDEF", 1000)
    pool = mp.Pool(1e3, counts)
    found = [rate(simulation_of(pool, FOUR, 1e-2), events, repeats)]
    cells = side**3
    grid = mp.Compartments((side,) * 3, 10.0, dict.fromkeys("ABCDEF", 10 * cells), dict.fromkeys("ABCDEF", 1e4))
    found.append(rate(simulation_of(grid, FOUR, 1e-4 / cells * 1e3), events, repeats))
    targets = 10.0, 2.0
    met = [
        row(what, one, target, "10^6/s", at_least=True)
        for what, one, target in zip(("pool, 4 reactions", f"grid of {cells:,} cells"), found, targets, strict=True)
    ]
    return status(all(met), quick)


if __name__ == "__main__":
    raise SystemExit(main())
