"""Billiards on a surface with two holes: beads that start at one place in all directions, and fall. No units."""

import numpy as np

import medyanpy as mp

steps = 300
angle = np.linspace(0.0, 2.0 * np.pi, 25)
surface = mp.surfaces.Lemniscate(2, a=1.0, r=1 / 6)
topology = mp.Topology()
beads = topology.add_surface_points(surface, np.tile([0.0, 0.0, 1 / 6], (25, 1)), mass=1.0)
system = mp.System(topology)
system.add_force(mp.forces.UniformField([beads], [0.0, 0.0, -1.0]))
simulation = mp.Simulation(system, mp.SplittingIntegrator("BAB", 0.01), threads=1)
simulation.context.set_velocities(np.column_stack([np.cos(angle), np.sin(angle), 0 * angle]))
past = []
for _ in range(steps):
    simulation.step(2)
    past.append(simulation.context.get_state(positions=True).positions)
mp.visualize.draw(
    simulation, "billiards.png", trails=past[-60:], point_radius=0.025, view=(38.0, -20.0), unit="",
    size=(560, 420), overwrite=True,
)  # fmt: skip
