"""Linearly implicit kicks: cost of a step over an explicit one, and how much longer a step may be.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_coarse.py [--quick]

Medians over repeats; ratios are taken within this run, on one thread. Targets are those of the project, beside what was
measured. A chain of beads of mass 1, and a penalty ω of 50 for each link of length 1, a spring of stiffness 4ω² = 1e4:
explicit kicks are stable up to a timestep of 0.01. A step is stable if 2000 of it, without friction and noise, leave
the kinetic energy below five times what it was; how long it may be depends on how fast beads are (docs/kicks.md), so
that it is given for several temperatures.
"""

import argparse

import numpy as np
from common import machine, median_ns, row

import medyanpy as mp

OMEGA = 50.0
RULES = [
    mp.kicks.ZhangSkeelSimplified(0.25), mp.kicks.ZhangSkeelSimplified(0.25, positive_definite=True),
    mp.kicks.ZhangSkeel(0.25), mp.kicks.ZhangSkeel(0.35, positive_definite=True),
    mp.kicks.PushForwardNewmark(0.25),
]  # fmt: skip
KT = (1e-3, 1e-5, 1e-7)


def chain(n, kick, timestep, kT=1e-5):
    """Links at their lengths, in random directions that turn slowly."""
    rng = np.random.default_rng(1)
    turns = np.cumsum(rng.normal(0.0, 0.1, (n, 3)), axis=0) + [1.0, 0.0, 0.0]
    topology = mp.Topology()
    topology.add_beads(np.cumsum(turns / np.linalg.norm(turns, axis=1)[:, None], axis=0), mass=1.0)
    system = mp.System(topology)
    links = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    system.add_force(mp.forces.LinkLengthPenalty(links, OMEGA, 1.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", timestep, kick=kick), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=2)
    return context


def over_explicit(n, kick, repeats, items):
    """A step over an explicit one, as the median of the ratios of runs in turns: both have the same machine then."""
    steps = max(2, items // n)
    contexts = [chain(n, kick, 0.05), chain(n, None, 0.005)]
    ratios = []
    for repeat in range(repeats + 1):
        coarse, explicit = (median_ns(lambda c=c: c.step(steps), 1, steps * n) for c in contexts)
        if repeat:
            ratios.append(coarse / explicit)
    return float(np.median(ratios))


def stable(n, kick, timestep, steps, kT):
    context = chain(n, kick, timestep, kT)
    before = context.get_state(energy=True).kinetic_energy
    try:
        for _ in range(10):
            context.step(steps // 10)
            if context.get_state(energy=True).kinetic_energy > 5.0 * before:
                return False
    except mp.SimulationError:
        return False
    return True


def longest(n, kick, steps, grid, kT):
    """The longest of some timesteps up to which all are stable."""
    best = 0.0
    for timestep in grid:
        if not stable(n, kick, timestep, steps, kT):
            break
        best = timestep
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, to see that it runs")
    quick = parser.parse_args().quick
    repeats, items, steps = (3, 20_000, 200) if quick else (21, 200_000, 2000)
    print(machine())
    n = 100
    grid = 0.01 * 2.0 ** (0.25 * np.arange(-3, 28))
    explicit = longest(n, None, steps, grid, 1e-5)
    print(f"{'longest explicit step':58s} {explicit:10.4f}")
    for kick in RULES:
        name, worst = type(kick).__name__ + ", positive" * getattr(kick, "positive_definite", False), 0.0
        for size in (32, 1000, 100_000) if quick else (32, 1000, 100_000, 1_000_000):
            ratio = over_explicit(size, kick, repeats if size < 1_000_000 else 5, items)
            row(f"{name}, n = {size}: step over an explicit one", ratio, 8.0, "times")
            worst = max(worst, ratio)
        for kT in KT:
            gain = longest(n, kick, steps, grid, kT) / explicit
            row(f"{name}, kT = {kT:g}: longest step", gain, 10.0, "times", at_least=True)
            row(f"{name}, kT = {kT:g}: time simulated per second", gain / worst, 3.0, "times", at_least=True)


if __name__ == "__main__":
    main()
