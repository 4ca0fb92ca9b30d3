"""DNA minicircles in a trap: rings whose links keep their lengths, and that do not pass through each other."""

import numpy as np

import medyanpy as mp

steps = 8000
rng = np.random.default_rng(2)
angle = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
rings = []
for middle in np.stack(np.meshgrid(*3 * [[-40.0, 0.0, 40.0]]), axis=-1).reshape(-1, 3):
    plane, _ = np.linalg.qr(rng.normal(size=(3, 2)))
    rings.append(middle + 19.0 * (np.cos(angle)[:, None] * plane[:, 0] + np.sin(angle)[:, None] * plane[:, 1]))
topology = mp.Topology()
dna = topology.add_filaments(rings, node_mass=1e-14, node_friction=5e-8, closed=True)
system = mp.System(topology)
system.add_force(mp.forces.FilamentBending(dna, bending_modulus=207.0))
system.add_force(mp.forces.SoftCollisions([dna], stiffness=10.0, radius=1.5))
system.add_force(mp.forces.HarmonicTrap(dna, 1e-3, [0.0, 0.0, 0.0]))
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(5e-9, temperature=300.0, seed=1), threads=1)
simulation.minimize_energy(tolerance=0.1)
simulation.step(steps)
mp.visualize.draw(simulation, "rings.png", point_radius=2.5, size=(560, 420), overwrite=True)
