"""Reactions of points in a membrane and of beads in space, with energies: what a letter J costs of a step.

Run by hand: ``python tests/benchmarks/bench_reactions.py [--quick]``. 10^5 points on 10^4 vertices that react within
half an edge, ten partners within reach of each, at 10^-3 attempts a pair and step: J takes at most 30 % of a step of
BAGOGAB. Processor time; the two take turns.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from common import machine, row, status

import medyanpy as mp

KT = 4.14
RADIUS = 500.0
# Attempts a pair and step; the share of a step.
ATTEMPTS, MOST = 1e-3, 30.0
TIMESTEP = 1e-9
KINDS = {name: {"mass": 4e-12, "friction": 4e-6} for name in "ABC"}

Forces = Callable[[mp.beads.Handle], list[mp.forces.Force]]


def none(points: mp.beads.Handle) -> list[mp.forces.Force]:
    return []


def soft(diameter: float, **options: bool) -> Forces:
    """A repels B and itself; C is not felt, so that each event has an energy."""
    return lambda points: [
        mp.forces.SoftSphere(points.of("A"), [points.of("A"), points.of("B")], 0.01, diameter, **options)
    ]


def shared(n: int) -> dict[str, int]:
    return {"A": n // 2, "B": n // 2, "C": n - 2 * (n // 2)}


def on_a_vesicle(subdivisions: int, n: int, forces: Forces) -> tuple[mp.System, mp.beads.Handle, float]:
    mesh = mp.TriangleMesh.icosphere(RADIUS, subdivisions)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    points = topology.add_intriangle_points(membrane, species=KINDS, counts=shared(n), capacity=n + n // 4, seed=1)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, 20.0 * KT))
    system.add_force(mp.forces.MembraneArea(membrane, 200.0))
    for force in forces(points):
        system.add_force(force)
    return system, points, 0.5 * float(mesh.edge_lengths.mean())


def in_a_box(side: float, n: int, forces: Forces) -> tuple[mp.System, mp.beads.Handle, float]:
    topology = mp.Topology()
    x = side * np.random.default_rng(1).uniform(-0.5, 0.5, (n, 3))
    beads = topology.add_beads(x, species=KINDS, counts=shared(n), capacity=n + n // 4)
    system = mp.System(topology, box=(side,) * 3)
    for force in forces(beads):
        system.add_force(force)
    # Five of the other kind in reach of each, as on the vesicle.
    return system, beads, side * float(10.0 / (4.0 / 3.0 * np.pi * n)) ** (1.0 / 3.0)


def share(make: Callable[[], tuple[mp.System, mp.beads.Handle, float]], steps: int) -> tuple[float, float, float]:
    """Percents of a step that J adds, with what it leaves to the next forces; the same of an attempt, µs; and the share
    of attempts that succeed. Steps with and without it take turns."""
    contexts, spent = [], [0.0, 0.0]
    for per_pair in (0.0, ATTEMPTS):
        system, beads, reach = make()
        if per_pair > 0.0:
            rate = per_pair / TIMESTEP
            jump = mp.jumps.Reactions(beads, f"A + B <-> C; k_on = {rate}, k_off = {rate}", reach=reach)
            system.add_jump(jump)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mp.PerformanceWarning)
            integrator = mp.SplittingIntegrator("BAGOJOGAB" if per_pair else "BAGOGAB", TIMESTEP, kT=KT, seed=1)
            contexts.append(mp.Context(system, integrator, threads=1))
        contexts[-1].set_velocities_to_temperature(kT=KT, seed=2)
        contexts[-1].step(2)
    before = jump.counts
    for _ in range(steps):
        for k, context in enumerate(contexts):
            started = time.process_time()
            context.step(1)
            spent[k] += time.process_time() - started
    tried, more = jump.counts.tried - before.tried, spent[1] - spent[0]
    return 100.0 * more / spent[0], 1e6 * more / tried, (jump.counts.accepted - before.accepted) / tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(machine())
    subdivisions, n, steps = (3, 2_000, 2) if quick else (5, 100_000, 10)
    diameter = 2.0 * RADIUS * float(np.sqrt(10.0 / n))
    side = float(n) ** (1.0 / 3.0) * 10.0
    scenes = {
        "points, ideal": (lambda: on_a_vesicle(subdivisions, n, none), MOST),
        "points that repel": (lambda: on_a_vesicle(subdivisions, n, soft(diameter)), MOST),
        "beads in space, ideal": (lambda: in_a_box(side, n, none), None),
        "beads in space that repel": (lambda: in_a_box(side, n, soft(12.0)), None),
    }
    met = True
    for name, (make, most) in scenes.items():
        percent, each, accepted = share(make, steps)
        what = f"{n} {name}, {each:.1f} µs an attempt, {100 * accepted:.0f} % succeed: J"
        met &= row(what, percent, most, "% of a step")
    return status(met, quick)


if __name__ == "__main__":
    sys.exit(main())
