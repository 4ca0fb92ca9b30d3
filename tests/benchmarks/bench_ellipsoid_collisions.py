"""Ellipsoids against filaments, membranes and a wall: time per body, per pair listed, and per pair that touches.

Run it from an installed package on a quiet machine:

    python tests/benchmarks/bench_ellipsoid_collisions.py [--quick]

Bodies of 2 x 3 x 5 nm, and needles of 2 x 2 x 20 nm, fill a network of 400 actin filaments of 31 links of 27 nm, or a
layer under a vesicle of radius 500 nm with 5120 triangles. A pair is listed if the centre of the ellipsoid is nearer to
the shape than the range plus the skin; most of these are told apart by one plane. The bounds are our own: no program
has published figures for such systems. Times are of the thread; needles and vesicle show what is iterated.
"""

import argparse

import numpy as np
from bench_collisions import nanoseconds
from common import machine, row

import medyanpy as mp


def turns(rng, n):
    q = rng.normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def network(n, axes):
    """Bodies anywhere in a network of random lines."""
    rng = np.random.default_rng(1)
    box, link = 700.0, 27.0
    d = rng.normal(size=(400, 1, 3))
    d /= np.linalg.norm(d, axis=2, keepdims=True)
    nodes = rng.uniform(0.0, box, d.shape) + (np.arange(32.0) - 15.5)[:, None] * link * d
    topology = mp.Topology()
    filaments = topology.add_filaments(list(nodes), node_mass=4e-12)
    bodies = topology.add_rigid_bodies(rng.uniform(0.0, box, (n, 3)), turns(rng, n), 1.0, [1.0, 1.0, 1.0])
    return mp.forces.EllipsoidCollisions(bodies, filaments, 4.1, axes, 3.5, form="soft")


def vesicle(n, axes):
    """Bodies under the membrane, as deep as their longest semi-axis."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(500.0, 4), vertex_mass=4e-12)
    x = rng.normal(size=(n, 3))
    x *= (498.0 - rng.uniform(1.0, max(axes), (n, 1))) / np.linalg.norm(x, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(x, turns(rng, n), 1.0, [1.0, 1.0, 1.0])
    return mp.forces.EllipsoidCollisions(bodies, membrane, 4.1, axes, 2.5, form="soft")


def measure(what, force, bound, repeats):
    system = mp.System(force.handles[0].topology)
    system.add_force(force)
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1)
    operation = context._schedule.bound_forces[force.name]
    alone = context._schedule.make_force_sum([operation])
    alone.alone(context._store.program, operation)
    listed, touching = operation.n_pairs()
    evaluation = nanoseconds(lambda: alone.alone(context._store.program, operation), 5 * repeats)

    def rebuild():
        # Everything is elsewhere, in the same shape.
        context._store.x[:] += 20.0
        context._store.positions_changed()
        alone.alone(context._store.program, operation)

    build = nanoseconds(rebuild, repeats) - evaluation
    n = len(force.handles[0])
    row(f"{what}: forces", evaluation / n, bound, "ns/body")
    print(
        f"    {listed} pairs listed ({evaluation / listed:.0f} ns for each), {touching} touch "
        f"({evaluation / touching:.0f} ns for each); lists {build / n:.0f} ns/body"
    )


def at_wall(n, axes, bound, repeats):
    """Every one of n bodies at a wall."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    x = np.column_stack([rng.uniform(0.0, 1e3, (n, 2)), np.full(n, max(axes))])
    bodies = topology.add_rigid_bodies(x, turns(rng, n), 1.0, [1.0, 1.0, 1.0])
    system = mp.System(topology)
    force = mp.forces.WallRepulsion(mp.boundaries.Plane(), bodies, 4.1, 50.0, semi_axes=axes)
    system.add_force(force)
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1)
    operation = context._schedule.bound_forces[force.name]
    alone = context._schedule.make_force_sum([operation])
    evaluation = nanoseconds(lambda: alone.alone(context._store.program, operation), 5 * repeats)
    row(f"{n} bodies at a wall", evaluation / n, bound, "ns/body")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers: does it run?")
    quick = parser.parse_args().quick
    n, repeats = (500, 3) if quick else (5000, 7)
    print(machine(), "\n")
    at_wall(n, (2.0, 3.0, 5.0), 60.0, repeats)
    for axes, bounds in (((2.0, 3.0, 5.0), (100.0, 600.0)), ((2.0, 2.0, 20.0), (600.0, 1500.0))):
        size = " x ".join(f"{a:g}" for a in axes)
        measure(f"{n} bodies of {size} nm in a network", network(n, axes), bounds[0], repeats)
        measure(f"{n} bodies of {size} nm under a membrane", vesicle(n, axes), bounds[1], repeats)


if __name__ == "__main__":
    main()
