"""Trajectories as they were before they held documents, bonds and energies of single forces (commit 3206aa7): run with
that version, not with this one.

    python make.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np

import medyanpy as mp

STEPS, INTERVAL = 6, 2


def simulation(capacity=None):
    """Chains, a membrane with points, balls, a body, and links that come and go; with `capacity` there is room."""
    room = {} if capacity is None else {"capacity": capacity}
    rng = np.random.default_rng(3)
    line = np.column_stack([2.0 * np.arange(4.0), np.zeros(4), np.zeros(4)])
    turn = 2 * np.pi * np.arange(5) / 5
    ring = np.column_stack([3 * np.cos(turn), 3 * np.sin(turn), np.full(5, 9.0)])
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 0), 1.0, 0.5, name="vesicle")
    topology.add_intriangle_points(vesicle, 4, mass=1.0, friction=0.5, seed=1, name="points", **room)
    topology.add_filaments([line, line + [0, 4, 0]], 1.0, 0.5, constrained=False, name="actin", **room)
    topology.add_filament(ring, 1.0, 0.5, closed=True, constrained=False, name="ring")
    topology.add_rod(
        *mp.rods.uniform(4, 2.0), 2.0, 1.0, [1.0, 1.0, 1.5], friction=0.5, rotational_friction=0.5, name="rod"
    )
    balls = topology.add_balls(rng.normal(0, 2, (4, 3)), [1.0, 1.5, 1.0, 1.0], 1.0, 0.5, name="balls")
    topology.add_rigid_bodies(
        [[9.0, 9, 9]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.5, 2.0], (0.4, 0.6), name="bodies", **room
    )
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    system.add_jump(
        mp.jumps.LinkBinding(links, balls.beads[:2], balls.beads[2:], off_rate=1.0, on_rate=50.0, name="bridges")
    )
    system.add_force(mp.forces.HarmonicTrap(balls, 0.3, [0.0, 0, 0]))
    return mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=4), threads=1)


def main(out):
    for name, capacity in (("format_1.h5", None), ("format_2.h5", 24)):
        run = simulation(capacity)
        with mp.reporters.TrajectoryReporter(out / name, INTERVAL, velocities=True) as reporter:
            run.reporters.append(reporter)
            run.step(STEPS)
            if capacity is not None:
                with run.topology.edit():
                    run.topology["balls"].add([[4.0, 4.0, 4.0]], radius=1.0)
                run.step(STEPS)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
