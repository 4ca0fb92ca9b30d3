"""Proteins gather where the membrane suits them. Colour: the energy of a protein, which rides on the vertices."""

import numpy as np

import medyanpy as mp

steps = 4000
thermal_energy = 300.0 * mp.units.boltzmann
mesh = mp.TriangleMesh.torus(300.0, 120.0, 60, 28)
angle = np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0])
energy = 2.5 * thermal_energy * np.cos(3.0 * angle)
topology = mp.Topology()
membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
proteins = topology.add_intriangle_points(membrane, 500, mass=4e-12, friction=4e-7, seed=1)
system = mp.System(topology)
system.add_force(mp.forces.MembraneField(proteins, energy))
system.add_force(mp.forces.SoftSphere(proteins, proteins, stiffness=0.1, diameter=14.0, along_surface=True))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-6, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(
    simulation, "patches.png", values=energy / thermal_energy, label="energy (kT)", point_radius=7.0, size=(560, 420),
    overwrite=True,
)  # fmt: skip
