"""Common mistakes: `test_types` sees that checkers of types find each line that is marked, and no other."""

import medyanpy as mp

topology = mp.Topology()
vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 2), vertex_mass=1.0)
beads = topology.add_beads([[0.0, 0, 0], [10, 0, 0]], mass=1.0)
system = mp.System(topology)

# Text as a number.
mp.forces.MembraneBending(vesicle, bending_modulus="stiff")  # wrong
mp.forces.HarmonicBonds([[0, 1]], "1.0", 2.0)  # wrong
mp.forces.HarmonicTrap(beads, ["1.0"], [0, 0, 0])  # wrong
mp.boundaries.Plane(normal="z")  # wrong
# A word that is none of those there are.
mp.reporters.TrajectoryReporter("run.h5", 10, precision="half")  # wrong
mp.forces.MembraneBending(vesicle, 80.0, discretization="edges")  # wrong
mp.forces.WallRepulsion(mp.boundaries.Plane(), beads, 1.0, 1.0, form="hard")  # wrong
# A missing argument, an unknown one.
mp.forces.HarmonicBonds([[0, 1]], 1.0)  # wrong
mp.BAGOGABIntegrator()  # wrong
mp.forces.MembraneBending(vesicle, 80.0, modulus=1.0)  # wrong
mp.forces.Links([0], [1], 1.0, rope=True)  # wrong
mp.forces.Yukawa(beads, beads, 1.0)  # wrong
mp.forces.Yukawa(beads, beads, 1.0, 2.0, 3.0)  # wrong
mp.forces.Yukawa(beads, beads, 1.0, "2.0")  # wrong
mp.forces.Yukawa(beads, beads, 1.0, 2.0, cutof=3.0)  # wrong
mp.forces.WCA(beads, beads, 1.0, 2.0, name=3)  # wrong
# A handle of another kind.
mp.forces.MembraneBending(beads, 80.0)  # wrong
mp.forces.FilamentBending(vesicle, 80.0)  # wrong
mp.jumps.LinkBinding(beads, [0], [1], off_rate=1.0)  # wrong
# Names that are not there.
bending = system.add_force(mp.forces.MembraneBending(vesicle, 80.0))
print(bending.bending_modulus)
print(bending.stifness)  # wrong
bending.bending_modulus = "stiff"  # wrong
print(vesicle.mehs)  # wrong
print(mp.forces.HarmonicBond)  # wrong
print(mp.Trajectory("run.h5")[0].positions)
print(mp.Trajectory("run.h5")[0].posittions)  # wrong
# Things in the wrong place.
system.add_force(vesicle)  # wrong
simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, temperature=300.0))
simulation.step("100")  # wrong
simulation.ramp(bending, bending_modulus=(80.0, 90.0), steps="many")  # wrong
mp.analysis.fit_spectrum(vesicle, temperature=300.0)  # wrong
mp.Simulation(topology, mp.BAGOGABIntegrator(0.01))  # wrong
