"""Time of changes to a running simulation: beads that are added and taken away, edges that are flipped.

Run by hand: ``python tests/benchmarks/bench_edit.py [--quick]``. One hundred beads, a filament and a force added by
`topology.edit()` to 10^5 nodes of filaments, and three filaments taken from among them while three others come; bound:
the time of ten steps. Edges flipped one by one, and some in
one call, in a membrane of 10 242 vertices with 2000 points, bending, area and volume; and what proposed flips would
cost, by the differences of its three forces, beside one evaluation of all of them.
"""

import argparse
import statistics
import time

import numpy as np

import medyanpy as mp
from medyanpy.errors import TopologyError

KT = 4.14


def seconds(what, *given) -> float:
    start = time.perf_counter()
    what(*given)
    return time.perf_counter() - start


def filaments(n: int, threads: int) -> mp.Simulation:
    topology = mp.Topology()
    nodes = np.zeros((n, 40, 3))
    nodes[:, :, 0] = 27.0 * np.arange(40)
    nodes[:, :, 1] = 30.0 * np.arange(n)[:, None]
    actin = topology.add_filaments(list(nodes), node_mass=4e-12, node_friction=4e-6, name="actin")
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(actin, 7e4))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 1e-7, kT=KT, seed=1), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    return simulation


def edit(simulation: mp.Simulation, k: int) -> None:
    topology = simulation.topology
    place = np.column_stack([30.0 * np.arange(100), np.full(100, -100.0 * (k + 1)), np.zeros(100)])
    with topology.edit():
        topology.add_beads(place, mass=4e-12, friction=4e-6)
        line = topology.add_filament(place[:20] - [0.0, 40.0, 0.0], node_mass=4e-12, node_friction=4e-6)
        simulation.system.add_force(mp.forces.FilamentBending(line, 7e4))


def exchange(simulation: mp.Simulation, k: int) -> None:
    actin = simulation.topology["actin"]
    nodes = np.zeros((3, 40, 3))
    nodes[:, :, 0] = 27.0 * np.arange(40)
    nodes[:, :, 1] = 30.0 * np.arange(3)[:, None]
    nodes[:, :, 2] = 100.0 * (k + 1)
    with simulation.topology.edit():
        actin.remove([2 * k, actin.kind.n_chains // 2, actin.kind.n_chains - 1])
        actin.add(list(nodes))


def vesicle(subdivisions: int, threads: int) -> tuple[mp.Context, mp.topology.Membrane]:
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(500.0, subdivisions)
    sheet = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(sheet, 2000, mass=4e-12, friction=4e-6, seed=1)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(sheet, 82.0))
    system.add_force(mp.forces.MembraneArea(sheet, 200.0))
    system.add_force(mp.forces.MembraneVolume(sheet, 0.1))
    return mp.Context(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=1), threads=threads), sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()

    simulation = filaments(25 if given.quick else 2500, given.threads)
    simulation.step(10)
    steps, edits, exchanges = [], [], []
    for k in range(2 if given.quick else 7):
        steps.append(seconds(simulation.step, 10))
        edits.append(seconds(edit, simulation, k))
        exchanges.append(seconds(exchange, simulation, k))
    ten = statistics.median(steps)
    for what, times in (("100 beads and a filament added", edits), ("three filaments exchanged", exchanges)):
        one = statistics.median(times)
        n = simulation.topology.n_beads
        print(f"{n} beads: ten steps {1e3 * ten:.0f} ms, {what} {1e3 * one:.0f} ms: {one / ten:.2f}")

    context, sheet = vesicle(2 if given.quick else 5, given.threads)
    flips, costs, flipping = [], [], context._schedule.flipping
    for edge in sheet.mesh.edges[:: len(sheet.mesh.edges) // 100]:
        try:
            change = flipping.proposal("bench", sheet, edge[None])
        except TopologyError:
            # Joined by an earlier flip.
            continue
        costs.append(sum(seconds(flipping.difference, k, sheet, change) for k in range(3)))
        flips.append(seconds(context.flip_edges, sheet, [edge]))
    # Far enough from each other.
    several = context.layout.connectivity(sheet).edges[3 :: len(sheet.mesh.edges) // 10]
    in_one = seconds(context.flip_edges, sheet, several)
    whole = min(seconds(lambda: context.get_state(energy=True)) for _ in range(10))
    print(
        f"{len(sheet)} vertices: a flip {1e6 * statistics.median(flips):.0f} µs, one of {len(several)} in a call "
        f"{1e6 * in_one / len(several):.0f} µs; differences of three forces {1e6 * statistics.median(costs):.0f} µs, "
        f"their energies {1e6 * whole:.0f} µs"
    )


if __name__ == "__main__":
    main()
