"""A ring of balls sinks in water. The fluid between them makes it overtake single balls, drawn beside it."""

import numpy as np

import medyanpy as mp

steps = 240
water, radius = mp.presets.WATER, 20.0
angle = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
ring = 120.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
single = np.array([[-300.0, 0.0, 0.0], [300.0, 0.0, 0.0]])
topology = mp.Topology()
balls = topology.add_balls(np.concatenate([ring, single]), radius, mass=1e-10, friction=6 * np.pi * water * radius)
system = mp.System(topology)
system.add_force(mp.forces.UniformField(balls, [0.0, 0.0, -2.0]))
system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(water, balls))
simulation = mp.Simulation(system, mp.BrownianIntegrator(1e-8, temperature=300.0, seed=1), threads=1)
past = []
for _ in range(steps):
    past.append(simulation.context.get_state(positions=True).positions)
    simulation.step(10)
mp.visualize.draw(simulation, "sedimentation.png", trails=past, view=(12.0, 0.0), size=(560, 420), overwrite=True)
