"""Proteins that repel each other on a red blood cell, which undulates at 300 K."""

import medyanpy as mp

steps = 2000
mesh = mp.TriangleMesh.red_blood_cell(frequency=12)
topology = mp.Topology()
cell = topology.add_membrane(mesh, vertex_mass=2e-9, vertex_friction=2e-5, name="cell")
proteins = topology.add_intriangle_points(cell, 600, mass=1e-8, friction=4e-6, seed=1, name="proteins")
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(cell, bending_modulus=82.0))
system.add_force(mp.forces.MembraneArea(cell, area_modulus=50.0))
system.add_force(mp.forces.MembraneVolume(cell, volume_modulus=1e-3))
system.add_force(mp.forces.MembraneEdgeSprings(cell, stiffness=0.01))
system.add_force(mp.forces.SoftSphere(proteins, proteins, stiffness=0.005, diameter=300.0))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(4e-6, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
mp.visualize.draw(simulation, "proteins_on_a_red_blood_cell.png", point_radius=70.0, size=(560, 420), overwrite=True)
