"""Collisions of filaments in a network, and of balls in a vesicle: time per shape and step, and of what it is made.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_collisions.py [--quick]

The network is of 1000 actin filaments of 31 links at 20 µM of monomers (2.7 nm each), thermal, at a step of 20 ns; the
vesicle, of radius 500 nm and 5120 triangles, holds 5000 balls of radius 20 nm. What collisions cost in a step is the
time of their forces, and that of lists divided by how many steps they last. The bounds are our own: no program has
published figures for such systems. Times are of the thread.
"""

import argparse
import time

import numpy as np
from common import machine, row

import medyanpy as mp
from medyanpy._tools.threads import available_threads

MONOMERS_PER_NM3 = 20e-6 * 6.02214076e23 * 1e-24
TIMESTEP = 2e-8


def network(n_filaments, link, threads=1, collide=True, skin=None):
    """Straight filaments of 31 links in random places and directions."""
    rng = np.random.default_rng(1)
    box = (n_filaments * 31 * link / 2.7 / MONOMERS_PER_NM3) ** (1.0 / 3.0)
    d = rng.normal(size=(n_filaments, 1, 3))
    d /= np.linalg.norm(d, axis=2, keepdims=True)
    nodes = rng.uniform(0.0, box, d.shape) + (np.arange(32.0) - 15.5)[:, None] * link * d
    topology = mp.Topology()
    filaments = topology.add_filaments(list(nodes), node_mass=4e-12, node_friction=4e-6)
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(filaments, bending_modulus=7e4))
    if collide:
        system.add_force(mp.forces.SoftCollisions(filaments, 100.0, radius=3.5, skin=skin))
    return started(system, threads), n_filaments * 31


def vesicle(n_balls, threads=1, collide=True, skin=None):
    """Balls on a random half of the places of a lattice."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(500.0, 4)
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    side = int(np.ceil((2.0 * 6.0 / np.pi * n_balls) ** (1.0 / 3.0)))
    x = np.stack(np.meshgrid(*[np.linspace(-465.0, 465.0, side)] * 3), -1).reshape(-1, 3)
    x = rng.permutation(x[np.linalg.norm(x, axis=1) < 465.0])[:n_balls]
    balls = topology.add_balls(x, 20.0, 4e-12, 4e-6)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, bending_modulus=82.0))
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, 1.0))
    if collide:
        system.add_force(mp.forces.SoftCollisions([membrane, balls], 20.0, radius=[5.0, None], skin=skin))
    return started(system, threads), len(x) + len(mesh.faces)


def started(system, threads):
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", TIMESTEP, temperature=300.0, seed=3), threads=threads)
    context.set_velocities_to_temperature(300.0, seed=2)
    context.step(200)
    return context


def nanoseconds(work, repeats, clock=time.thread_time):
    """Median of the time of a call."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return 1e9 * float(np.median(times))


def measure(what, make, bound, steps, repeats):
    """One system: what collisions add to a step, what lists and forces cost, and two threads."""
    without = make(collide=False)[0]
    free = nanoseconds(lambda: without.step(steps), repeats) / steps
    context, shapes = make()
    collisions = context._schedule.bound_forces["SoftCollisions"]
    builds, runs = collisions.builds, collisions.runs
    step = nanoseconds(lambda: context.step(steps), repeats) / steps
    every = (collisions.runs - runs) / max(1, collisions.builds - builds)
    alone = context._schedule.make_force_sum([collisions])
    evaluation = nanoseconds(lambda: alone.alone(context._store.program, collisions), 5 * repeats) / shapes

    def rebuild():
        # Everything is elsewhere, in the same shape.
        context._store.x[:] += 20.0
        context._store.positions_changed()
        alone.alone(context._store.program, collisions)

    build = nanoseconds(rebuild, repeats) / shapes - evaluation
    searches = (collisions.first, collisions.second, collisions.third)
    entries = sum(s.neighbors.entries for s in searches) / shapes
    row(f"{what}: collisions", evaluation + build / every, bound, "ns/shape")
    print(
        f"    forces {evaluation:.1f}, lists {build:.0f} ns/shape every {every:.0f} steps, {entries:.2f} entries per "
        f"shape; steps with and without {step / shapes:.1f} and {free / shapes:.1f} ns/shape"
    )
    if available_threads() > 1:
        both = make(threads=2)[0]
        one, two = (nanoseconds(lambda c=c: c.step(steps), repeats, time.perf_counter) for c in (context, both))
        print(f"    two threads {one / two:.2f} times as fast as one (whole step)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n_filaments, n_balls, steps, repeats = (100, 500, 5, 3) if quick else (1000, 5000, 60, 7)
    print(machine(), "\n")
    for link, bound in ((27.0, 50.0), (108.0, 70.0)):
        what = f"{n_filaments} filaments of 31 links of {link:g} nm"
        measure(what, lambda link=link, **o: network(n_filaments, link, **o), bound, steps, repeats)
    measure(f"{n_balls} balls in a vesicle", lambda **o: vesicle(n_balls, **o), 150.0, steps, repeats)


if __name__ == "__main__":
    main()
