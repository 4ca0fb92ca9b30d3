"""Throughput of many small runs by `mp.ensemble.run`, beside the same runs one after another in warm processes.

Run by hand: ``python tests/benchmarks/bench_ensemble.py [--quick] [--replicas N] [--steps N] [--subdivisions N]``.
Vesicles of 42 vertices (162 with ``--subdivisions 2``) take some hundreds of steps each, in as many processes as there
are processors. By hand, processes that have imported everything are each given their share of the seeds, and send back
the energies. The ensemble has them from a pool that is as warm, and from one of its own, whose start counts. They take
turns, since other work on the machine comes and goes; the medians of the rounds are compared. On a busy machine go by
the processor time, of one worker and of the process that gives it work.
"""

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from common import machine, row, seconds

import medyanpy as mp
from medyanpy._tools.threads import available_threads

TARGET = 0.95


def make(seed: int, subdivisions: int) -> mp.Simulation:
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(radius=100.0, subdivisions=subdivisions)
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(vesicle, stiffness=0.1))
    system.add_force(mp.forces.MembraneBending(vesicle, 80.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-8, temperature=300.0, seed=seed), threads=1)
    simulation.context.set_velocities_to_temperature(300.0, seed=seed)
    return simulation


def energy(simulation: mp.Simulation) -> float:
    return simulation.context.get_state(energy=True).total_energy


def one_after_another(seeds: list[int], subdivisions: int, steps: int) -> list[float]:
    out = []
    for seed in seeds:
        simulation = make(seed, subdivisions)
        simulation.step(steps)
        out.append(energy(simulation))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--subdivisions", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.quick:
        given.replicas, given.rounds = 20, 1
    print(machine())
    n = available_threads()
    seeds = [mp.ensemble.seed_of(1, 0, replica) for replica in range(given.replicas)]
    shares = [seeds[i::n] for i in range(n)]

    def ensemble(executor: object, directory: Path | None = None) -> mp.ensemble.Table:
        return mp.ensemble.run(make, parameters=[{"subdivisions": given.subdivisions}], n_replicas=given.replicas,
                               until=given.steps, seed=1, executor=executor, analyse=energy,
                               directory=directory)  # fmt: skip

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n, mp_context=spawn) as by_hand, ProcessPoolExecutor(n, mp_context=spawn) as pool:

        def hand() -> list[list[float]]:
            futures = [by_hand.submit(one_after_another, s, given.subdivisions, given.steps) for s in shares]
            return [future.result() for future in futures]

        for executor in (by_hand, pool):
            list(executor.map(one_after_another, [seeds[:5]] * 4 * n, [given.subdivisions] * 4 * n, [10] * 4 * n))
        times: dict[str, list[float]] = {"by hand": [], "warm": [], "own": []}
        for _ in range(given.rounds):
            took, energies = seconds(hand)
            times["by hand"].append(took)
            took, table = seconds(lambda: ensemble(pool))
            times["warm"].append(took)
            assert [table["result"][i::n].tolist() for i in range(n)] == energies
            times["own"].append(seconds(lambda: ensemble(None))[0])
    with ProcessPoolExecutor(1, mp_context=spawn) as one:

        def spent() -> float:
            return one.submit(time.process_time).result()

        one.submit(one_after_another, seeds[:5], given.subdivisions, 10).result()
        by_hand_cpu, ensemble_cpu = [], []
        for _ in range(given.rounds):
            before = spent()
            one.submit(one_after_another, seeds, given.subdivisions, given.steps).result()
            between, mine = spent(), time.process_time()
            ensemble(one)
            ensemble_cpu.append(time.process_time() - mine + spent() - between)
            by_hand_cpu.append(between - before)
    reference = statistics.median(times["by hand"])
    what = f"{given.replicas} runs, {10 * 4**given.subdivisions + 2} vertices, {given.steps} steps, {n} processes"
    print(f"{what}: by hand {reference:.2f} s, {1e3 * n * reference / given.replicas:.2f} ms each")
    warm = reference / statistics.median(times["warm"])
    row("throughput by mp.ensemble.run in a warm pool", warm, TARGET, "", at_least=True)
    print(f"in a pool of its own, with its start: {reference / statistics.median(times['own']):.2f}")
    by_hand_s, ensemble_s = statistics.median(by_hand_cpu), statistics.median(ensemble_cpu)
    print(f"processor time of each: by hand {1e3 * by_hand_s / given.replicas:.2f} ms")
    row("processor time by hand over that of mp.ensemble.run", by_hand_s / ensemble_s, TARGET, "", at_least=True)
    few = min(given.replicas, 50)
    with tempfile.TemporaryDirectory() as folder:
        given.replicas = few
        took = seconds(lambda: ensemble(None, Path(folder) / "sweep"))[0]
    print(f"with a folder and checkpoints for each: {1e3 * n * took / few:.0f} ms each (start of the pool included)")


if __name__ == "__main__":
    sys.exit(main())
