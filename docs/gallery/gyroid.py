"""Proteins that diffuse on a gyroid, the shape of some inner membranes of cells, over one period of 100 nm."""

import medyanpy as mp

steps = 400
gyroid = mp.surfaces.Gyroid(100.0)
start = gyroid.sample(60, seed=1, box=[[0.0] * 3, [100.0] * 3])
topology = mp.Topology()
proteins = topology.add_surface_points(gyroid, start, mass=4e-12, friction=4e-6)
system = mp.System(topology)
system.add_force(mp.forces.HarmonicTrap(proteins, 2e-3, [50.0, 50.0, 50.0]))
simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 2e-7, temperature=300.0, seed=1), threads=1)
past = []
for _ in range(steps):
    simulation.step(5)
    past.append(simulation.context.get_state(positions=True).positions)
mp.visualize.draw(simulation, "gyroid.png", trails=past[-100:], point_radius=2.0, size=(560, 420), overwrite=True)
