"""Time of second and third derivatives, for each term. Bounds: 300 ns for the Hessian of a joint of a filament; four
forces for a product of the Hessian of a bending membrane with a direction.

The blocks go into a list, as for `Context.hessian`. Run by hand:

    python tests/benchmarks/bench_derivatives.py [--quick]

Prints the shortest of repeated evaluations (others on the machine only add), then ends with status 1 if the bound is
missed; with ``--quick`` it only sees that it runs.
"""

import argparse
import sys
import time
from functools import partial

import numpy as np
from common import status

NANOSECONDS = 300
FORCES = 4.0
NODES = 20_000
REPEATS = 40


def forces(topology, filament):
    """(name, number of terms, force) of each."""
    import medyanpy as mp

    i = np.arange(filament.kind.first_bead, filament.kind.first_bead + NODES)
    triples = i[: NODES // 3 * 3].reshape(-1, 3)
    return [
        ("bending of joints", NODES - 2, mp.forces.FilamentBending(filament, 100.0)),
        ("bending, with rest angles", NODES - 2, mp.forces.FilamentBending(filament, 100.0, 0.3)),
        ("angles of beads", NODES - 2, mp.forces.AngleLinks(i[:-2], i[1:-1], i[2:], 100.0, np.pi)),
        ("stretching of links", NODES - 1, mp.forces.FilamentStretching(filament, 100.0)),
        ("length penalty", NODES - 1, mp.forces.LinkLengthPenalty(filament, 10.0)),
        ("triangle penalty", len(triples), mp.forces.RigidTrianglePenalty(triples, 10.0, [1.0, 1.0, 1.0])),
        ("field written as text", NODES, mp.forces.ExternalField(i, "(exp(-a*(1 - cos(x) - 0.3)) - 1)^2", a=7.0)),
        ("frame penalty", len(triples), mp.forces.OrthonormalFramePenalty(triples, 10.0)),
    ]


def shortest_time(run, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def membranes(quick: bool) -> bool:
    """Print one line for each form of bending; whether a bound is missed."""
    from medyanpy._kernels.core.derivatives import Contraction, DiagonalBlocks, HessianBlocks, Multiplication

    import medyanpy as mp

    missed = False
    for form in ("vertex", "dihedral"):
        topology = mp.Topology()
        sphere = topology.add_membrane(mp.TriangleMesh.icosphere(500.0, 4), vertex_mass=4e-12)
        system = mp.System(topology)
        system.add_force(mp.forces.MembraneBending(sphere, bending_modulus=82.0, discretization=form))
        context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1)
        program, perform = context._store.program, context._schedule.perform
        (forces,) = context._schedule.force_sums.values()
        (bound,) = context._schedule.bound_forces.values()
        a = np.random.default_rng(1).normal(size=(len(sphere), 3))
        out = np.zeros_like(a)

        def force(program=program, forces=forces):
            # As if beads had moved, so that nothing is reused.
            program.changed()
            forces.refresh(program, False)

        asked = {
            "H a": Multiplication(bound, a, out),
            "K a": Multiplication(bound, a, out, True),
            "third": Contraction(bound, a, out),
            "third of K": Contraction(bound, a, out, True),
            "diagonal of K": DiagonalBlocks(bound, np.zeros((len(sphere), 3, 3))),
            "blocks of K": HessianBlocks(bound, True),
            "blocks of H": HessianBlocks(bound),
        }
        scale, repeats = 1e9 / len(sphere), 3 if quick else REPEATS
        times = {"force": scale * shortest_time(force, repeats)}
        for what, run in asked.items():
            times[what] = scale * shortest_time(partial(perform, run, changes_state=False), repeats)
        missed |= times["H a"] > FORCES * times["force"]
        print(f"bending, {form:8s}  ns a vertex: " + ", ".join(f"{what} {t:.0f}" for what, t in times.items()))
    print(f"(bound of H a: {FORCES:g} forces)")
    return missed


def main(quick: bool) -> int:
    """Print one line for each force."""
    from medyanpy._kernels.core.derivatives import Contraction, HessianBlocks

    import medyanpy as mp

    rng = np.random.default_rng(1)
    topology = mp.Topology()
    nodes = np.cumsum([1.0, 0.0, 0.0] + rng.normal(0.0, 0.2, (NODES, 3)), axis=0)
    filament = topology.add_filament(nodes, 1.0, constrained=False)
    system = mp.System(topology)
    terms = forces(topology, filament)
    for name, _, force in terms:
        system._add(force, name)
    context = mp.Context(system, mp.VerletIntegrator(1e-9), threads=1)
    a, out = rng.normal(size=nodes.shape), np.zeros(nodes.shape)
    perform = context._schedule.perform
    missed = False
    for name, n, _ in terms:
        bound = context._schedule.bound_forces[name]
        blocks, contraction = HessianBlocks(bound), Contraction(bound, a, out)
        hessian, third = (
            1e9 / n * shortest_time(lambda run=run: perform(run, changes_state=False), 3 if quick else REPEATS)
            for run in (blocks, contraction)
        )
        missed |= name.startswith("bending") and hessian > NANOSECONDS
        limit = f"   (bound {NANOSECONDS} ns)" if name.startswith("bending") else ""
        print(f"{name:26s}  Hessian {hessian:6.0f} ns a term{limit:18s}  third derivative {third:6.0f} ns a term")
    missed |= membranes(quick)
    return status(not missed, quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, to see that it runs")
    sys.exit(main(parser.parse_args().quick))
