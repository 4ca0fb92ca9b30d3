"""Actin filaments of 0.7 µm in a vesicle of 0.6 µm: they have to bend. The near half of the vesicle is left out."""

import numpy as np

import medyanpy as mp

steps = 4000
rng, actin = np.random.default_rng(1), mp.presets.actin()
stiffness, mass = 0.1 * actin.collision_stiffness, 0.1 * actin.collision_stiffness * (5e-7 / 0.35) ** 2


def meridian(radius, longitude):
    angle = actin.link_length / radius * (np.arange(25) - 12)
    return radius * np.array([np.cos(angle) * np.cos(longitude), np.cos(angle) * np.sin(longitude), np.sin(angle)]).T


nodes = [meridian(rng.uniform(225.0, 280.0), rng.uniform(0.0, 2.0 * np.pi)) for _ in range(30)]
topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(300.0, 3), vertex_mass=mass, vertex_friction=2e-5)
filaments = topology.add_filaments(nodes, node_mass=mass, node_friction=4e-6)
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(vesicle, bending_modulus=82.0))
system.add_force(mp.forces.MembraneArea(vesicle, area_modulus=2.0, per_triangle=True))
system.add_force(mp.forces.FilamentBending(filaments, actin.bending_modulus))
system.add_force(mp.forces.SoftCollisions([filaments, vesicle], stiffness, radius=[actin.radius, 2.0]))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(5e-7, temperature=300.0, seed=1), threads=1)
simulation.minimize_energy(tolerance=5.0)
simulation.step(steps)
mp.visualize.draw(simulation, "actin_in_a_vesicle.png", inside=True, size=(560, 420), overwrite=True)
