"""Time of a fluid of repelling beads, and what of it goes into building neighbour lists.

Run by hand: ``python tests/benchmarks/bench_pairs.py [--quick] [beads ...]``. Each fluid is a drop of WCA beads
(kT = epsilon, sigma = 1, timestep 0.005, BAOAB with friction 1), started as a lattice of density 0.8442 in random
order and held together by a trap, which gives a bead as many neighbours as it has in a melt of that density.

Bound: LAMMPS reaches 6.7e6 bead steps per second for WCA under Langevin with 20 000 beads on one core.
"""

import argparse
import sys
import time

import numpy as np

import medyanpy as mp

DENSITY = 0.8442
BEAD_STEPS_PER_SECOND = 6.7e6
REPEATS = 7


def fluid(n: int, threads: int, skin: float | None = None) -> mp.Context:
    """A drop of n beads, after 200 steps."""
    side = int(np.ceil(n ** (1 / 3)))
    spacing = DENSITY ** (-1 / 3)
    sites = np.random.default_rng(1).permutation(side**3)[:n]
    x = np.stack(np.unravel_index(sites, (side,) * 3), 1) * spacing
    topology = mp.Topology()
    beads = topology.add_beads(x - x.mean(axis=0), mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.WCA(beads, beads, epsilon=1.0, sigma=1.0, skin=skin))
    # The pressure falls from the centre to the surface: this holds its mean, at any size.
    system.add_force(mp.forces.HarmonicTrap(beads, 0.2 * (20_000 / n) ** (2 / 3), [0.0, 0.0, 0.0]))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.005, kT=1.0, seed=1), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(200)
    return context


def seconds(action) -> float:
    """Median of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measure(n: int, threads: int) -> float:
    """Print one line; nanoseconds per bead and step."""
    context = fluid(n, threads)
    neighbors = context._schedule.bound_forces["WCA"].neighbors
    steps = max(20, 1_000_000 // n)
    builds, follows = neighbors.builds, neighbors.follows
    step = seconds(lambda: context.step(steps)) / steps / n
    rate = (neighbors.builds - builds) / (neighbors.follows - follows)
    # One bead moved far makes the list stale: with and without that, the difference is a build.
    force_sum = context._schedule.force_sums[None]
    x = context.get_state(positions=True).positions.copy()
    evaluation = seconds(lambda: force_sum.refresh(context._store.program, True)) / n

    def build():
        x[0, 0] += 10.0 * rng.choice([-1.0, 1.0])
        context.set_positions(x)
        force_sum.refresh(context._store.program, True)

    rng = np.random.default_rng(3)
    setting = seconds(lambda: context.set_positions(x)) / n
    full = seconds(build) / n - setting
    built = max(0.0, full - evaluation)
    every = 1 / rate if rate else np.inf
    print(
        f"{n:9d} beads {threads} threads: {1e9 * step:7.1f} ns per bead step "
        f"({1e-6 / step:5.2f} million per second); "
        f"a build {1e9 * built:6.1f} ns, every {every:5.1f} steps: {100 * built * rate / step:4.1f} % of the time; "
        f"{neighbors.entries / n:5.2f} entries, {neighbors.bytes / n:5.1f} bytes of rows per bead"
    )
    return 1e9 * step


def main(sizes: list[int]) -> int:
    """Print a line per size and number of threads; status 1 if the bound is missed."""
    missed = False
    for n in sizes:
        one = measure(n, 1)
        two = measure(n, 2)
        print(f"{'':9s} two threads {one / two:.2f} times as fast as one")
        if n == 20_000:
            bound = 1e9 / BEAD_STEPS_PER_SECOND
            missed = one > bound
            print(f"{'':9s} bound for one thread {bound:.0f} ns: {'MISSED' if missed else 'kept'}")
    return int(missed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("beads", nargs="*", type=int)
    parser.add_argument("--quick", action="store_true", help="one small fluid: does it run?")
    chosen = parser.parse_args()
    sys.exit(main(chosen.beads or ([2_000] if chosen.quick else [2_000, 20_000, 200_000, 1_000_000])))
