"""What a user writes who is right: `test_types` lets checkers of types look at it. Nobody runs it."""

import numpy as np

import medyanpy as mp

topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 2), vertex_mass=1.0)
proteins = topology.add_intriangle_points(vesicle, 50, mass=1.0, seed=1)
beads = topology.add_beads([[0.0, 0, 0], [10, 0, 0]], mass=1.0)
bodies = topology.add_rigid_bodies(
    [[0.0, 0, 0]], [[1.0, 0, 0, 0]], species={"A": {"mass": 1.0, "inertia": [1.0, 1.0, 1.0]}}, counts={"A": 1}
)
open_bodies = bodies.of("A")
solutes = topology.add_beads([[0.0, 0, 0]], species={"A": {"mass": 1.0}}, counts={"A": 1}, capacity=4)
apart = mp.forces.SoftSphere(solutes.of("A"), solutes, 1.0, 2.0)

growing = topology.add_filaments([[[0.0, 0, 0], [27, 0, 0]]], 1.0, rise=2.7, capacity_links=4, capacity_filaments=9)
still = topology.add_filament([[0.0, 0, 0], [27, 0, 0]], node_mass=1.0, directors="parallel", director_mass=1.0)
rise: float = growing.rise
nodes: np.ndarray = still.beads
joining = mp.jumps.Annealing(growing, on_rate=1.0, off_rate=1.0, reach=5.0)

system = mp.System(topology)
bending = system.add_force(mp.forces.MembraneBending(vesicle, bending_modulus=80.0, discretization="dihedral"))
doubled = 2 * bending.bending_modulus
bending.bending_modulus = 100.0
bending.set(bending_modulus=90)
system.add_force(mp.forces.MembraneBending(vesicle, np.full(162, 80.0), spontaneous_curvature=[0.01] * 162))
system.add_force(mp.forces.MembraneArea(vesicle, 1))
system.add_force(mp.forces.HarmonicBonds([[0, 1]], stiffness=1, length=np.float32(2.0), name="bond"))
system.add_force(mp.forces.HarmonicBonds([beads.beads], [1.0], [2.0]))
system.add_force(mp.forces.UniformField(beads, (0.0, 0.0, 1.0)))
system.add_force(mp.forces.HarmonicTrap([beads, proteins], 1.0, [0, 0, 0]))
system.add_force(mp.forces.WCA(beads, proteins, 4.0, 5.0, exclusions=[(0, 1)]))
yukawa = system.add_force(mp.forces.Yukawa(beads, proteins, 1, screening_length=2.0, cutoff=10.0, name="screened"))
reach: float = yukawa.screening_length
bond = mp.forces.HarmonicBonds([[0, 1]], [1.0], 2.0)
bond.stiffness = [2.0]
first: np.ndarray = bond.pairs[0]
system.add_force(mp.forces.ExternalField([0, 1], "k*x^2", k=np.array([1.0, 2.0])))
sites = mp.Sites.beads(beads)
links = system.add_force(mp.forces.Links(sites[:1], sites[1:], stiffness=1.0))
links.remove(links.add(beads.beads[:1], beads.beads[1:], 2.0))
system.add_jump(mp.jumps.LinkBinding(links, sites[:1], sites[1:], off_rate=1.0, on_rate=2.0))
floor = mp.boundaries.Plane(point=(0, 0, -200.0), normal=[0.0, 0.0, 1.0])
system.add_force(mp.forces.WallRepulsion(floor, beads, 4.0, 1.0, form="soft"))

integrator = mp.BAGOGABIntegrator(0.01, temperature=300.0, seed=1)
simulation = mp.Simulation(system, integrator)
simulation.reporters.append(mp.reporters.TrajectoryReporter("run.h5", 10, precision="single"))
simulation.step(100)
ramp = simulation.ramp(bending, bending_modulus=(80.0, 100.0), steps=10)
work: float = ramp.work / ramp.steps
simulation.reporters.append(mp.reporters.Callback(10, lambda simulation, state: print(state.step)))
state = simulation.context.get_state(positions=True, energy=True)
frame = mp.Trajectory("run.h5")[0]
center = frame.positions.mean(axis=0)
spectrum = mp.analysis.vesicle_spectrum(state, vesicle)
modulus: float = mp.analysis.fit_spectrum(spectrum, temperature=300.0).bending_modulus.value
