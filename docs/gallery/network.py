"""A network of actin: crosslinkers bind filaments that come near each other, and let go."""

import numpy as np

import medyanpy as mp

steps = 6000
rng, actin = np.random.default_rng(3), mp.presets.actin()
direction = rng.normal(size=(60, 1, 3))
direction /= np.linalg.norm(direction, axis=2, keepdims=True)
nodes = rng.normal(0.0, 70.0, (60, 1, 3)) + actin.link_length * np.arange(-4, 5)[None, :, None] * direction
topology = mp.Topology()
filaments = topology.add_filaments(list(nodes), node_mass=2.4e-10, node_friction=1e-5)
system = mp.System(topology)
system.add_force(mp.forces.FilamentBending(filaments, actin.bending_modulus))
system.add_force(mp.forces.HarmonicTrap(filaments, 5e-5, [0.0, 0.0, 0.0]))
links = system.add_force(mp.forces.Links([], [], **mp.presets.alpha_actinin().arguments))
sites = filaments.sites(np.repeat(np.arange(60), 8), np.tile(np.arange(8), 60), 0.5)
system.add_jump(mp.jumps.LinkBinding(links, sites, off_rate=2e4, on_rate=4e4))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-7, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(simulation, "network.png", size=(560, 420), overwrite=True)
