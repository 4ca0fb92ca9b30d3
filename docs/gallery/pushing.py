"""A bundle of actin pushes a membrane, which is held at its border: the beginning of a filopodium."""

import numpy as np

import medyanpy as mp

steps = 12000
mesh, actin = mp.TriangleMesh.flat_sheet(30, 34, 20.0), mp.presets.actin()
mesh = mesh.translated(-mesh.vertices.mean(axis=0))
places = 14.0 * np.array([[0, 0], [1, 0], [-1, 0], [0.5, 0.87], [-0.5, 0.87], [0.5, -0.87], [-0.5, -0.87]])
nodes = [[[x, y, -10.0 - 27.5 * k] for k in range(9)] for x, y in places]
topology = mp.Topology()
sheet = topology.add_membrane(mesh, vertex_mass=1e-11, vertex_friction=2e-6)
bundle = topology.add_filaments([np.array(x) for x in nodes], node_mass=1e-11, node_friction=2e-6)
border = np.concatenate(mesh.borders)
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(sheet, bending_modulus=82.0))
system.add_force(mp.forces.MembraneEdgeSprings(sheet, stiffness=0.3))
system.add_force(mp.forces.HarmonicTrap(sheet.beads[border], 1.0, mesh.vertices[border]))
system.add_force(mp.forces.FilamentBending(bundle, actin.bending_modulus))
system.add_force(mp.forces.SoftCollisions([bundle, sheet], stiffness=20.0, radius=[actin.radius, 2.0]))
system.add_force(mp.forces.HarmonicTrap(bundle, [0.02, 0.02, 0.0], [0.0, 0.0, 0.0]))
system.add_force(mp.forces.UniformField(bundle, [0.0, 0.0, 0.3]))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-7, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(simulation, "pushing.png", view=(12.0, -60.0), size=(560, 420), overwrite=True)
