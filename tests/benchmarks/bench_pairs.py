"""Time of a fluid of repelling beads, and what of it goes into building neighbour lists.

Run by hand: ``python tests/benchmarks/bench_pairs.py [--quick] [beads ...]``. Each fluid is a drop of WCA beads
(kT = epsilon, sigma = 1, timestep 0.005, BAOAB with friction 1), started as a lattice of density 0.8442 in random
order and held together by a trap, which gives a bead as many neighbours as it has in a melt of that density: ten to
twelve within cutoff and skin. Then 10^5 of them in a periodic box of that density; and what a box costs alone: the drop
in a box so wide that nothing meets its images, which moves as it does without.

Bounds, on one thread: LAMMPS reaches 6.7e6 bead steps per second for WCA under Langevin with 20 000 beads on one core,
150 ns; 400 ns a bead and step with 10^5 beads, neighbour search included; 5 % more time with a box than without.
"""

import argparse
import sys
import time

import numpy as np
from common import machine, row, status

import medyanpy as mp

DENSITY = 0.8442
# ns a bead and step, and how much slower a box may be.
TARGETS = {20_000: 1e9 / 6.7e6, 100_000: 400.0}
BOX = 1.05
REPEATS = 7


def fluid(n: int, threads: int, skin: float | None = None, box: str = "") -> mp.Context:
    """A drop of n beads, after 200 steps; in a "wide" box, or, without a trap, in a "full" one."""
    side = int(np.ceil(n ** (1 / 3)))
    # The lattice has a few more sites than there are beads, which a drop fills as it melts.
    spacing = (n / DENSITY) ** (1 / 3) / side if box == "full" else DENSITY ** (-1 / 3)
    sites = np.random.default_rng(1).permutation(side**3)[:n]
    x = np.stack(np.unravel_index(sites, (side,) * 3), 1) * spacing
    topology = mp.Topology()
    beads = topology.add_beads(x - x.mean(axis=0), mass=1.0, friction=1.0)
    sides = {"": None, "wide": 3 * (1.6 * side * spacing,), "full": 3 * (side * spacing,)}
    system = mp.System(topology, box=sides[box])
    system.add_force(mp.forces.WCA(beads, beads, epsilon=1.0, sigma=1.0, skin=skin))
    if box != "full":
        # The pressure falls from the centre to the surface: this holds its mean, at any size.
        system.add_force(mp.forces.HarmonicTrap(beads, 0.2 * (20_000 / n) ** (2 / 3), [0.0, 0.0, 0.0]))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.005, kT=1.0, seed=1), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(200)
    return context


def seconds(action, threads: int) -> float:
    """Median of a few runs; of one thread the time that it had."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    times = []
    for _ in range(REPEATS):
        start = clock()
        action()
        times.append(clock() - start)
    return float(np.median(times))


def measure(n: int, threads: int, target: float | None, box: str = "") -> tuple[float, bool]:
    """Print two lines; nanoseconds per bead and step, and whether the target is met."""
    context = fluid(n, threads, box=box)
    neighbors = context._schedule.bound_forces["WCA"].neighbors
    steps = max(20, 1_000_000 // n)
    builds, follows = neighbors.builds, neighbors.follows
    step = seconds(lambda: context.step(steps), threads) / steps / n
    rate = (neighbors.builds - builds) / (neighbors.follows - follows)
    # One bead moved far makes the list stale: with and without that, the difference is a build.
    force_sum = context._schedule.force_sums[None]
    x = context.get_state(positions=True).positions.copy()
    evaluation = seconds(lambda: force_sum.refresh(context._store.program, True), threads) / n

    def build():
        x[0, 0] += 10.0 * rng.choice([-1.0, 1.0])
        context.set_positions(x)
        force_sum.refresh(context._store.program, True)

    rng = np.random.default_rng(3)
    setting = seconds(lambda: context.set_positions(x), threads) / n
    full = seconds(build, threads) / n - setting
    built = max(0.0, full - evaluation)
    every = 1 / rate if rate else np.inf
    where = "in a periodic box" if box else "in a drop"
    met = row(f"{n} beads {where}, {threads} thread(s)", 1e9 * step, target, "ns")
    print(
        f"    a build {1e9 * built:.1f} ns, every {every:.1f} steps: {100 * built * rate / step:.1f} % of the time; "
        f"{neighbors.entries / n:.2f} neighbours, {neighbors.bytes / n:.1f} bytes of rows per bead",
        flush=True,
    )
    return 1e9 * step, met


def cost_of_a_box(n: int) -> bool:
    """The same motion with a box and without, by turns, in time of the processor."""
    contexts = [fluid(n, 1, box=box) for box in ("", "wide")]
    steps = max(10, 2_000_000 // n)
    times = np.zeros((REPEATS, 2))
    for i in range(REPEATS):
        for j, context in enumerate(contexts):
            start = time.process_time()
            context.step(steps)
            times[i, j] = time.process_time() - start
    without, within = np.median(times, axis=0)
    return row(f"{n} beads in a drop, time with a wide box over without", within / without, BOX, "")


def main(sizes: list[int], quick: bool) -> int:
    """Print a line per size and number of threads; status 1 if a bound is missed."""
    print(machine())
    met = True
    for n in sizes:
        target = TARGETS.get(n)
        one, kept = measure(n, 1, target)
        two, _ = measure(n, 2, None)
        print(f"    two threads {one / two:.2f} times as fast as one")
        met &= kept
    for n in (sizes[-1],) if quick else (100_000,):
        met &= measure(n, 1, TARGETS.get(n), box="full")[1]
        met &= cost_of_a_box(n)
    return status(met, quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beads", nargs="*", type=int)
    parser.add_argument("--quick", action="store_true", help="one small fluid: does it run?")
    chosen = parser.parse_args()
    sys.exit(main(chosen.beads or ([2_000] if chosen.quick else [2_000, 20_000, 100_000, 1_000_000]), chosen.quick))
