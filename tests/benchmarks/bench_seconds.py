"""Seconds of computing for a second of a cell: actin, crosslinkers and motors in a box of 1 µm³.

Run by hand: ``python tests/benchmarks/bench_seconds.py [--quick]``. 50 filaments of six links of 108 nm are 300 links,
20 µM actin; 1204 α-actinins (2 µM) and 120 minifilaments of 10 heads (0.2 µM), at rates of cells. BAGOGAB moves nodes
by thermal motion, with constraints, bending and masses for a relaxation time. With repulsion there are soft collisions
of links too, which bound the timestep. Goal, on one core: 30 s. MEDYAN's C++ program needs 9 s for 300 links
of such a network, by 2.5 h for 1000 s that its authors give; it minimises the energy in place of thermal motion.
"""

import argparse
import time

import numpy as np
from common import machine, row

import medyanpy as mp

SIDE, FILAMENTS, LINKS, LINK = 1000.0, 50, 6, 108.0
TEMPERATURE = 300.0
GOAL = 30.0
# Relaxation times and timesteps, s, and whether there is repulsion. Events are one in 45 ms per head.
SETTINGS = (
    (5e-5, 5e-7, False), (5e-5, 2e-6, False), (2e-4, 4e-6, False), (8e-4, 8e-6, False), (5e-5, 1e-7, True),
    (8e-4, 4e-7, True),
)  # fmt: skip


def network(relaxation: float, repulsion: bool, linked: bool) -> mp.System:
    """Straight filaments at random places, with what links them in a pool if anything does."""
    rng = np.random.default_rng(1)
    t = rng.normal(size=(FILAMENTS, 3))
    t /= np.linalg.norm(t, axis=1)[:, None]
    along = LINK * (np.arange(LINKS + 1) - 0.5 * LINKS)
    nodes = rng.uniform(0.0, SIDE, (FILAMENTS, 1, 3)) + along[None, :, None] * t[:, None]
    material = mp.presets.actin()
    topology = mp.Topology()
    given = material.arguments(list(nodes), viscosity=mp.presets.WATER, relaxation_time=relaxation)
    actin = topology.add_filaments(**given, name="actin")
    system = mp.System(topology, box=[SIDE] * 3)
    system.add_force(mp.forces.FilamentBending(actin, material.bending_modulus))
    if repulsion:
        system.add_force(mp.forces.SoftCollisions(actin, material.collision_stiffness, 3.5))
    if not linked:
        return system
    pool = system.add_pool(mp.Pool(volume=SIDE**3, counts={"alpha-actinin": 1204, "NMII": 120}))
    crosslinks = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=35.0, name="crosslinks"))
    arms = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=175.0, name="motors"))
    micromolar = mp.units.micromolar
    system.add_jump(mp.jumps.CrosslinkerBinding(
        crosslinks, actin.lattice(spacing=27.0), pool=pool["alpha-actinin"], dissociation_constants=micromolar,
        off_rates=0.3,
    ))  # fmt: skip
    system.add_jump(mp.jumps.Motors(
        arms, actin.lattice(spacing=5.4), pool=pool["NMII"], heads=10, step=5.4, unloaded_velocity=120.0,
        stall_force=2.0, on_rate=0.2, off_rate=1.7, dissociation_constants=0.3 * micromolar,
    ))  # fmt: skip
    return system


def measured(relaxation: float, timestep: float, repulsion: bool, linked: bool, steps: int) -> float:
    """Median of the time of a step, s."""
    integrator = mp.BAGOGABIntegrator(timestep, temperature=TEMPERATURE, seed=1)
    context = mp.Context(network(relaxation, repulsion, linked), integrator, threads=1)
    context.set_velocities_to_temperature(TEMPERATURE, seed=2)
    context.step(steps)
    took = []
    for _ in range(9):
        started = time.process_time()
        context.step(steps)
        took.append((time.process_time() - started) / steps)
    return float(np.median(took))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    steps = 20 if parser.parse_args().quick else 1000
    print(machine())
    print("processor time, one thread")
    for relaxation, timestep, repulsion in SETTINGS:
        told = f"relaxation {relaxation:g} s, steps of {timestep:g} s{', with repulsion' if repulsion else ''}"
        one, bare = (measured(relaxation, timestep, repulsion, linked, steps) for linked in (True, False))
        print(f"{told}: {1e6 * one:.1f} us a step, {100.0 * (1.0 - bare / one):.0f} % of it jumps")
        row(f"{told}: s for a second of the cell", one / timestep, GOAL, "s")


if __name__ == "__main__":
    main()
