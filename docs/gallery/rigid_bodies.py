"""Ellipsoids that have fallen on a floor. Rigid molecules with their friction in water; gravity is exaggerated."""

import numpy as np

import medyanpy as mp

steps = 8000
water, semi_axes = mp.presets.WATER, (6.0, 6.0, 2.5)
places = 16.0 * np.stack(np.meshgrid(np.arange(5), np.arange(5), 1.0 + np.arange(4)), axis=-1).reshape(-1, 3)
turns = np.random.default_rng(1).normal(size=(100, 4))
topology = mp.Topology()
bodies = topology.add_rigid_bodies(
    places, turns / np.linalg.norm(turns, axis=1)[:, None], 1e-16,
    mp.rigid.ellipsoid_inertia(semi_axes, 1e-16), mp.rigid.ellipsoid_friction(semi_axes, water), name="bodies",
)  # fmt: skip
system = mp.System(topology)
system.add_force(mp.forces.EllipsoidRepulsion(bodies, bodies, 4.1, semi_axes))
floor = mp.boundaries.Plane(point=(0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0))
system.add_force(mp.forces.WallRepulsion(floor, bodies, 4.1, 1.0, semi_axes=semi_axes))
system.add_force(mp.forces.HarmonicTrap(bodies, [0.02, 0.02, 0.0], [32.0, 32.0, 0.0]))
system.add_force(mp.forces.UniformField(bodies, [0.0, 0.0, -1.5]))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-10, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(
    simulation, "rigid_bodies.png", semi_axes={"bodies": semi_axes}, view=(20.0, 30.0), size=(560, 420), overwrite=True
)
