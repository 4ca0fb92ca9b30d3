"""Further laws of the rails of docs/add_a_kind_of_bead.md, whose script is the module `page`."""

import numpy as np
from page import Rails, motors, n, rng, simulation

import medyanpy as mp

x0, t = rng.normal(0.0, 5.0, (n, 3)), rng.normal(size=(n, 3))

# Without O it runs back to where it came from.
def make(threads=1):
    topology = mp.Topology()
    motors = topology.add(Rails, x0, mass=1.0, friction=0.0, direction=t)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([motors.beads[:-1], motors.beads[1:]]), 1.0, 3.0))
    context = mp.Context(system, mp.VerletIntegrator(0.05), threads=threads)
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    return context

context = make()
context.step(100)
there = context.get_state(positions=True, velocities=True)
context.set_velocities(-there.velocities)
context.step(100)
back = context.get_state(positions=True).positions
np.testing.assert_allclose(back, x0, atol=1e-10)
assert np.abs(there.positions - x0).max() > 1.0

# The same bits on any number of threads.
several = make(threads=3)
several.step(100)
assert (several.get_state(positions=True).positions == there.positions).all()

# Beads are removed and added, and all stay on their rails.
topology = motors.topology
with topology.edit():
    motors.remove(motors.beads[:2])
    motors.add([[0.0, 9.0, 0.0]], mass=1.0, direction=[[0.0, 0.0, 2.0]])
simulation.step(50)
x = simulation.context.get_state(positions=True).positions[motors.beads]
assert np.abs(np.cross(x - motors.positions, motors.direction)).max() < 1e-12 * np.abs(x).max()
assert x[-1, :2].tolist() == [0.0, 9.0]
