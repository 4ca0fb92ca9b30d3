"""Oriented beads: time of a step of free bodies by word and friction, threads, memory.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_rigid.py [--quick]

Medians over repeats; ratios are taken within this run. Targets are those of the project, beside what was measured.
10 000 free ellipsoids with the semi-axes 2, 1 and 0.5, mass 1, kT = 1 and a timestep of 0.005, as LAMMPS was measured
(69 ns at constant energy, 156 ns with the isotropic friction of fix langevin with angmom).
"""

import argparse

import numpy as np
from common import machine, median_ns, row

import medyanpy as mp
from medyanpy._tools.threads import available_threads
from medyanpy.testing import thermal

SEMI_AXES = (2.0, 1.0, 0.5)


def ellipsoids(n, integrator, friction=0.0, threads=1):
    """Bodies after 20 steps."""
    rng = np.random.default_rng(1)
    q = rng.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    inertia = mp.rigid.ellipsoid_inertia(SEMI_AXES, 1.0)
    topology = mp.Topology()
    topology.add_rigid_bodies(rng.uniform(0.0, 100.0, (n, 3)), q, 1.0, inertia, friction)
    context = mp.Context(mp.System(topology), integrator, threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(20)
    return context


def coupled(seed=3):
    """A friction tensor with all elements."""
    a = np.random.default_rng(seed).normal(size=(6, 6))
    return a @ a.T / 6.0 + np.eye(6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, to see that it runs")
    quick = parser.parse_args().quick
    n, repeats, steps = (1000, 3, 20) if quick else (10_000, 15, 100)
    dt = 0.005
    print(machine())

    def time_of(word, friction=0.0, threads=1, kT=1.0):
        context = ellipsoids(n, mp.SplittingIntegrator(word, dt, kT=thermal(word, kT), seed=4), friction, threads)
        return median_ns(lambda: context.step(steps), repeats, steps * n)

    one = time_of("BAB")
    row("free ellipsoids, BAB", one, 70.0, "ns")
    full = time_of("BAOAB", coupled())
    row("full friction tensor, BAOAB", full, 150.0, "ns")
    print(f"{'isotropic friction, BAOAB':58s} {time_of('BAOAB', (1.0, 1.0)):10.2f} ns")
    print(f"{'full friction tensor, OBABO':58s} {time_of('OBABO', coupled()):10.2f} ns")
    row("full tensor, D (BrownianIntegrator)", time_of("D", coupled()), 100.0, "ns")
    # In a plane: out of it there is hardly any mobility. The run of the validation has 1e8 body-steps.
    flat = np.diag([1.0 / 1.5, 1.0, 1e20, 1e20, 1e20, 1.0])
    context = ellipsoids(n, mp.BrownianIntegrator(1e-3, kT=1.0, seed=4), flat, min(2, available_threads()))
    ellipse = median_ns(lambda: context.step(steps), repeats, steps * n)
    row("1e8 body-steps of the quasi-2D ellipse, 2 threads", 0.1 * ellipse, 10.0, "s")
    if available_threads() > 1:
        row("two threads, BAB", one / time_of("BAB", threads=2), 1.8, "times", at_least=True)
        row("two threads, BAOAB", full / time_of("BAOAB", coupled(), 2), 1.8, "times", at_least=True)


if __name__ == "__main__":
    main()
