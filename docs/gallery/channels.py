"""Channels across the membrane of a small vesicle, upright, with the friction of cylinders in a lipid bilayer."""

import medyanpy as mp

steps = 4000
thermal_energy = 300.0 * mp.units.boltzmann
topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 3), vertex_mass=2e-18, vertex_friction=2e-6)
lipids = topology.add_intriangle_points(vesicle, 30, mass=5e-19, friction=2e-8, seed=1)
protein = mp.presets.transmembrane_protein(radius=2.5, height=10.0, surface_viscosity=1e-6)
channels = topology.add_rigid_bodies(
    **protein.arguments(lipids.positions, mp.rigid.upright(lipids.normals), mass_scale=10.0), name="channels"
)
foot, head = channels.sites([[0.0, 0.0, -5.0]]), channels.sites([[0.0, 0.0, 5.0]])
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(vesicle, 20 * thermal_energy))
system.add_force(mp.forces.MembraneEdgeSprings(vesicle, stiffness=1.0))
system.add_force(mp.forces.Links(channels, lipids, 20.0))
system.add_force(mp.forces.NormalLinks(foot, head, lipids, 100.0))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-11, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
shapes = {"channels": (2.5, 2.5, 5.0)}
mp.visualize.draw(simulation, "channels.png", semi_axes=shapes, point_radius=0.5, size=(560, 420), overwrite=True)
