"""Beads, boxes and constraints that fail on purpose."""

import numpy as np
from builders import system_with
from faults.provoked.common import Scene, fault, make

import medyanpy as mp
from medyanpy import forces


@fault("box_edges.pyx", "_look", "TOO_WIDE", "LookAtEdges", "its edge to bead [0-9]+ is .* nm long along y, more than "
       "half of the box there, 15 nm.*MembraneTether.*larger box", in_triangle=True)  # fmt: skip
def a_vertex_flies_to_the_other_side_of_the_box():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    context = make(mp.System(topology, box=(None, 30.0, 60.0)), "BAB", 0.01)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1 + 77] = [100.0, 600.0, -100.0]
    context.set_velocities(v)
    around = {1 + int(i) for f in mesh.faces.tolist() if 77 in f for i in f}
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), around, "vesicle")


@fault("constraints.pxi", "_one_batch", "NOT_CONVERGED", "Constraints",
       r"node \d of filament (31|70)\): its links cannot keep their lengths.*relative residual \d.*timestep is too")
def links_cannot_keep_their_lengths():
    """A spring far too stiff for the timestep shakes two filaments of many."""
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0, friction=0.1)
    turns = rng.normal(0.0, 0.3, (100, 7, 3)) + [1.0, 0.0, 0.0]
    actin = topology.add_filaments(np.cumsum(turns, axis=1) + rng.normal(0.0, 9.0, (100, 1, 3)), 1.0, 0.1, name="actin")
    system = mp.System(topology)
    ends = actin.beads.reshape(100, 7)[[31, 70], [3, 2]]
    spring = system.add_force(forces.HarmonicBonds([ends], 0.0, 5.0))
    context = make(system, "BAOAB")
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(5)
    spring.set(stiffness=2e4)

    def mend():
        spring.set(stiffness=0.0)
        context.set_velocities_to_temperature(kT=1.0, seed=3)

    return Scene(context, mend, set(actin.beads.reshape(100, 7)[[31, 70]].ravel().tolist()), "actin")


def folded():
    """A filament folded in two, with both ends fixed in one place: both links say the same of the node between."""
    topology = mp.Topology()
    topology.add_beads([[9.0, 0, 0]], mass=1.0)
    hairpin = topology.add_filament([[0.0, 0, 0], [1.0, 0, 0], [0.0, 0, 0]], 1.0, fixed_nodes=[0, -1], name="hairpin")
    system = mp.System(topology)
    return topology, hairpin, system


def open_up(context):
    x = context.get_state(positions=True).positions.copy()
    x[3] = [1.0, 1.0, 0.0]
    return lambda: context.set_positions(x)


@fault("constraints.pxi", "_one_batch", "NOT_CONVERGED", "Constraints",
       r"node 0 of filament 0\): its links cannot keep their lengths.*filament is folded onto itself")  # fmt: skip
def links_of_a_folded_filament_say_the_same():
    _, _, system = folded()
    context = make(system, "BAB")
    return Scene(context, open_up(context), 1, "hairpin")


@fault("surface_constraints.pyx", "_chunks", "LOST_SURFACE", "SurfaceConstraints", "does not come back to its surface")
def a_bead_leaves_its_surface():
    topology = mp.Topology()
    sphere = mp.surfaces.Sphere(1.0)
    walkers = topology.add_surface_points(sphere, sphere.sample(1000, 1), mass=1.0, name="walkers")
    pull = np.zeros((1000, 3))
    pull[517, 0] = 1e4
    system = mp.System(topology)
    field = system.add_force(forces.UniformField(walkers, pull))
    context = make(system, "BAB")

    def mend():
        field.set(force=[0.0, 0.0, 0.0])
        context.set_velocities_to_temperature(kT=1.0)

    return Scene(context, mend, 517, "walkers")


@fault("joint_constraints.pyx", "_lost", "CONSTRAINTS_LOST", "JointConstraints", r"constraint 17 .* cannot be kept",
       in_triangle=True)
def a_pair_is_torn_apart():
    topology = mp.Topology()
    x = np.random.default_rng(1).normal(0.0, 9.0, (200, 1, 3)) + [[0.0, 0, 0], [1.0, 0, 0]]
    pairs = topology.add_beads(x.reshape(-1, 3), 1.0, name="pairs")
    topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - 1", pairs.beads.reshape(-1, 2))
    context = make(mp.System(topology), "BAB")
    v = np.zeros((400, 3))
    v[34, 1] = 1e6
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((400, 3))), 34, "pairs")


@fault("surface_constraints.pyx", "ask", "PYTHON_EXCEPTION", "SurfaceConstraints", r"Python code called from the step",
       cause=OverflowError)  # fmt: skip
def the_function_of_a_surface_raises():
    bound = [0.9]

    def square(x):
        if (x[:, 0] > bound[0]).any():
            raise OverflowError("out of the table")
        return (x**2).sum(axis=1) - 1.0

    topology = mp.Topology()
    sphere = mp.surfaces.PythonSurface(square, lambda x: 2.0 * x)
    walkers = topology.add_surface_points(sphere, [[0.0, 0.0, 1.0], [0.0, 0.6, 0.8]], mass=1.0, name="walkers")
    system = system_with(topology, forces.UniformField(walkers, [1.0, 0.0, 0.0]))
    return Scene(make(system, "BAB"), lambda: bound.__setitem__(0, np.inf), 0, "walkers")
