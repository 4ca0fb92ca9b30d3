"""A vesicle of 0.4 µm at 300 K. Colour: how far a vertex is outside or inside of the mean sphere."""

import numpy as np

import medyanpy as mp

steps = 8000
topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(200.0, 4), vertex_mass=4e-12, vertex_friction=2e-6)
system = mp.System(topology)
system.add_force(mp.forces.MembraneBending(vesicle, bending_modulus=41.0))
system.add_force(mp.forces.MembraneArea(vesicle, area_modulus=2.0, per_triangle=True))
system.add_force(mp.forces.MembraneVolume(vesicle, volume_modulus=0.8, volume=0.9 * vesicle.mesh.volume))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0, seed=1), threads=1)
simulation.step(steps)
x = simulation.context.get_state(positions=True).positions
r = np.linalg.norm(x - x.mean(axis=0), axis=1)
mp.visualize.draw(
    simulation, "undulations.png", values=r - r.mean(), label="radius − mean (nm)", colormap="coolwarm",
    size=(560, 420), overwrite=True,
)  # fmt: skip
