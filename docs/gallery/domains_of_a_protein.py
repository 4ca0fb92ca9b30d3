"""Adenylate kinases in a drop: three rigid domains each, joined by linkers, in water that they stir."""

import numpy as np

import medyanpy as mp

steps = 10000
kinase = mp.presets.adenylate_kinase()
places = 8.0 * (np.stack(np.meshgrid(*3 * [np.arange(2)]), axis=-1).reshape(-1, 3) - 0.5)
turns = np.random.default_rng(1).normal(size=(8, 4))
turns /= np.linalg.norm(turns, axis=1)[:, None]
topology = mp.Topology()
bodies = topology.add_rigid_bodies(**kinase.arguments(places, turns), name="kinases")
system = mp.System(topology)
system.add_force(mp.forces.Links(**kinase.links(bodies), name="linkers"))
system.add_force(mp.forces.HarmonicTrap(bodies, 0.2, [0.0, 0.0, 0.0]))
system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(mp.presets.WATER, bodies))
simulation = mp.Simulation(system, mp.BrownianIntegrator(5e-13, temperature=293.15, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(simulation, "domains_of_a_protein.png", size=(560, 420), overwrite=True)
