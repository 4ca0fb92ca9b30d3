"""An elastic ring with too much twist winds up into a supercoil, as DNA does. No units."""

import numpy as np

import medyanpy as mp

steps = 60000
n, excess = 120, 10
section = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
nodes, frames = mp.rods.uniform(n, 1.0, curvature=[0.0, 2 * np.pi / n, 0.0])
nodes = nodes + 0.02 * np.random.default_rng(1).normal(size=nodes.shape)
topology = mp.Topology()
rod = topology.add_rod(
    nodes, frames, 1.0, section.linear_density, section.inertia_density, 0.05, rotational_friction=0.05, closed=True
)
system = mp.System(topology)
twist = 2.0 * np.pi * excess / n
system.add_force(mp.forces.RodElasticity(rod, **section.stiffness, rest_curvature=[0.0, 0.0, twist]))
system.add_force(mp.forces.RodCollision(rod, stiffness=1.0, radius=0.6))
simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.15, kT=1e-4, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(simulation, "supercoil.png", unit="", size=(560, 420), overwrite=True)
