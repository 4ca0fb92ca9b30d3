"""Every way in which a kernel can fail, failed on purpose.

A kernel reports a fault where it returns a fault code; `test_every_fault_site_is_provoked` reads the installed kernels
and wants a test here for each such place. Each test asserts what the user is told (step, bead, object, force, what to
do), that it was that place that spoke, and that the simulation is usable afterwards.

More on faults: what a PythonForce may do wrong (tests/forces/test_python_force.py), coincident beads
(tests/forces/test_pairs.py), and how the last good state is found (tests/engine/test_last_good_state.py).
"""

import os
import re
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy import forces, kicks
from medyanpy.testing import thermal

# Of the checkout: sources of kernels are not installed.
KERNELS = Path(__file__).resolve().parents[1] / "medyanpy" / "_kernels"


@dataclass
class Scene:
    """A simulation that will fail, made anew each time."""

    context: mp.Context
    #: Takes the cause away.
    mend: Callable[[], Any]
    #: What the error must say.
    bead: Any = None
    object: str | None = None
    force: str | None = None
    steps: int = 1000


def make(system, word="BAGAB", timestep=0.01, threads=2):
    context = mp.Context(system, mp.SplittingIntegrator(word, timestep, kT=thermal(word, 1.0), seed=3), threads=threads)
    # The watch would stop most of these before a number overflows.
    context.runaway = None
    return context


@dataclass
class Fault:
    """One place that fails: file, function and code there; the operation that runs it, and what the message says."""

    file: str
    function: str
    code: str
    operation: str
    says: str
    build: Callable[[], Scene]
    #: Whether a triangle is told, or, of constraints, a row.
    in_triangle: bool = False
    cause: type[BaseException] | None = None
    #: It fails by a timestep that is too long for a force, of which a Context warns.
    unstable: bool = False
    name: str = field(default="")


FAULTS: list[Fault] = []


def fault(file, function, code, operation, says, **options):
    def take(build):
        FAULTS.append(Fault(file, function, code, operation, says, build, name=build.__name__, **options))
        return build

    return take


SMALLER = "no longer a finite number.*try a smaller timestep or minimize_energy"


@fault("kick.pyx", "_kick_beads", "NOT_FINITE", "Kick", SMALLER, unstable=True)
def a_bead_blows_up():
    topology = mp.Topology()
    x = np.column_stack([np.arange(30_000), np.zeros((30_000, 2))])
    x += np.random.default_rng(1).normal(0.0, 0.1, x.shape)
    beads = topology.add_beads(x, mass=1.0, friction=0.1, name="chain")
    system = system_with(topology, forces.HarmonicTrap(beads, 1e-3, [0.0, 0.0, 0.0]))
    pairs = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    stiffness = np.ones(len(pairs))
    stiffness[20_000] = 1e6
    bonds = system.add_force(forces.HarmonicBonds(pairs, stiffness, 1.0, name="one is stiff"))
    context = make(system, "BAOAB", 0.1)

    def mend():
        bonds.set(stiffness=1.0)
        context.set_velocities_to_temperature(kT=1.0)

    return Scene(context, mend, range(19_000, 22_000), "chain", "one is stiff")


def points_on_a_sphere(fixed):
    """Points in a field, and one of them in a trap far away; both are off for five steps."""
    topology = mp.Topology()
    topology.add_beads([[40.0, 0.0, 0.0]], mass=1.0, friction=0.1)
    sphere = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), 1.0, 0.1, fixed=fixed, name="cell")
    points = topology.add_intriangle_points(sphere, 4000, mass=1.0, friction=0.2, seed=1, name="proteins")
    system = mp.System(topology)
    if not fixed:
        system.add_force(forces.MembraneEdgeSprings(sphere, 100.0))
    field = system.add_force(forces.UniformField(points, [0.0, 0.0, 0.0], name="field"))
    trap = system.add_force(forces.HarmonicTrap(points.beads[17:18], 0.0, [40.0, 0.0, 0.0], name="trap"))
    context = make(system, "BAGOGAB")
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(5)
    return context, points, field, trap


@fault("kick.pyx", "_largest_force", "NOT_FINITE", "Kick", SMALLER, unstable=True)
def a_point_passes_on_a_force_that_is_no_number():
    context, points, _, trap = points_on_a_sphere(fixed=False)
    trap.set(stiffness=1.7e308)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


@fault("kick.pyx", "_kick_points", "NOT_FINITE", "Kick", SMALLER, in_triangle=True, unstable=True)
def a_point_of_a_fixed_mesh_is_kicked_by_a_force_that_is_no_number():
    context, points, _, trap = points_on_a_sphere(fixed=True)
    trap.set(stiffness=1.7e308)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


@fault("kinetic_watch.pyx", "_look", "RUNAWAY", "Watch", "it has run away: .*keeps triangles in shape",
       in_triangle=True)  # fmt: skip
def a_point_is_pulled_faster_than_it_can_have_come_to_be():
    context, points, _, trap = points_on_a_sphere(fixed=True)
    context.runaway = 20.0
    trap.set(stiffness=2e4)
    return Scene(context, lambda: trap.set(stiffness=0.0), points.beads[17], "proteins", "trap")


def bodies_in_a_field(torque):
    """Of which one is turned with a torque too large."""
    topology = mp.Topology()
    rng = np.random.default_rng(2)
    q = rng.normal(size=(300, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    bodies = topology.add_rigid_bodies(rng.normal(size=(300, 3)), q, 1.0, (1.0, 2.0, 2.5), name="molecules")
    system = mp.System(topology)
    push = np.zeros((600, 3))
    push[34], push[35] = [0.0, 0.0, torque], [0.0, 0.0, -torque]
    field = system.add_force(forces.UniformField(bodies.sites([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), push, name="field"))
    return Scene(make(system, "BAB"), lambda: field.set(force=[0.0, 0.0, 0.0]), 18, "molecules", "field")


SLOWER = "it has run away: .*a smaller one, or minimize_energy"


@fault("kinetic_watch.pyx", "_look_at_rotation", "RUNAWAY", "Watch", SLOWER)
def a_body_is_turned_faster_than_it_can_have_come_to_be():
    scene = bodies_in_a_field(1e5)
    scene.context.runaway = 20.0
    scene.context.set_velocities_to_temperature(kT=1.0)
    return scene


@fault("kick.pyx", "_kick_momenta", "NOT_FINITE", "Kick", SMALLER)
def a_torque_overflows():
    return bodies_in_a_field(1.7e308)


@fault("rotation.pyx", "_rotate", "NOT_FINITE", "Rotation", SMALLER)
def a_body_turns_too_fast():
    return bodies_in_a_field(1e200)


def displaced(bead, name):
    """Beads and bodies without velocities, of which one is pulled too strongly from step 5 on."""
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(3).normal(size=(3000, 3)), mass=1.0, friction=1e-3, name="solvent")
    q = np.tile([0.6, 0.0, 0.8, 0.0], (2000, 1))
    topology.add_rigid_bodies(np.zeros((2000, 3)), q, 1.0, (1.0, 2.0, 2.5), (1e-3, 1.0), name="molecules")
    system = mp.System(topology)
    field = system.add_force(forces.UniformField([0, bead], [0.0, 0.0, 0.0], name="field"))
    context = make(system, "D")
    context.step(5)
    field.set(force=[[0.0, 0.0, 0.0], [0.0, 1.7e308, 0.0]])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), bead, name, "field")


@fault("brownian.pyx", "_displace", "NOT_FINITE", "Displacement", SMALLER)
def a_bead_is_displaced_to_nowhere():
    return displaced(2345, "solvent")


@fault("brownian.pyx", "_displace_and_turn", "NOT_FINITE", "TensorDisplacement", SMALLER)
def a_body_is_displaced_to_nowhere():
    return displaced(4321, "molecules")


@fault("geodesic.pyx", "_largest_momentum", "NOT_FINITE", "Geodesic", SMALLER, in_triangle=True)
def a_point_is_so_fast_that_its_energy_overflows():
    context, points, field, _ = points_on_a_sphere(fixed=True)
    push = np.zeros((4000, 3))
    push[23] = 1e160
    field.set(force=push)
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), points.beads[23], "proteins", "field")


@fault("geodesic.pyx", "_fly_one", "TOO_MANY_CROSSINGS", "Geodesic", "crosses edges without end.*try", in_triangle=True)
def a_point_circles_without_end():
    context, points, field, _ = points_on_a_sphere(fixed=True)
    push = np.zeros((4000, 3))
    push[23] = 5e9
    field.set(force=push)

    def mend():
        field.set(force=[0.0, 0.0, 0.0])
        context.set_velocities_to_temperature(kT=1.0)

    return Scene(context, mend, points.beads[23], "proteins")


@fault("geodesic.pyx", "_fly_one", "DEGENERATE_TRIANGLE", "Geodesic", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def the_triangle_under_a_point_vanishes():
    """All exact: a right triangle shrinks to where one over its squared area overflows, the point at rest in it."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0, name="proteins")
    context = make(mp.System(topology), timestep=1.0)
    x = np.zeros((4, 3))
    x[:3] = corners * 2.0**-254
    context.set_positions(x)
    context.set_velocities(-x / 8.0)

    def mend():
        context.set_velocities(np.zeros((4, 3)))
        context.set_positions(x * 2.0**254)

    return Scene(context, mend, 3, "proteins")


@fault("drift.pyx", "_ride", "DEGENERATE_TRIANGLE", "Drift", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def a_triangle_collapses_under_the_point_that_rides_on_it():
    """All exact: one corner of a right triangle walks into another in sixteen steps of 1/16."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0, name="proteins")
    context = make(mp.System(topology), timestep=1.0)
    v = np.zeros((4, 3))
    v[2, 1] = -0.125
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((4, 3))), 3, "proteins")


@fault("mesh_pairs.pyx", "_no_area", "DEGENERATE_TRIANGLE", "MeshPairs", "lost its area.*keeps its triangles in shape",
       in_triangle=True)  # fmt: skip
def a_triangle_between_two_points_collapses():
    """All exact: the middle one of three loses its height in eight steps of 1/8; the points are in the others."""
    topology = mp.Topology()
    corners = np.array([[-2.0, 2, 0], [-1.0, 0, 0], [0, 1.0, 0], [1.0, 0, 0], [2.0, 2, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2], [1, 3, 2], [2, 3, 4]]), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, triangles=[2, 0], barycentric=[[0.25, 0.25, 0.5]] * 2, mass=1.0,
                                            name="proteins")  # fmt: skip
    system = system_with(topology, forces.SoftSphere(points, points, 0.0, 9.0, along_surface=True, name="pairs"))
    context = make(system, timestep=1.0)
    v = np.zeros((7, 3))
    v[2, 1] = -0.125
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((7, 3))), 5, "proteins", "pairs")


@fault("membrane_fields.pyx", "_forces", "DEGENERATE_TRIANGLE", "VertexField", "lost its area", in_triangle=True)
def a_triangle_loses_its_area_under_a_point_in_a_field():
    """From outside: in a step it is the ride on the triangle that fails first."""
    topology = mp.Topology()
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, triangles=[0], barycentric=[[0.25, 0.25, 0.5]], mass=1.0,
                                            name="proteins")  # fmt: skip
    system = system_with(topology, forces.MembraneField(points, 2.0, name="field"))
    context = make(system, "BAGAB", timestep=1.0)
    x = np.zeros((4, 3))
    x[:3] = corners
    context.set_positions(x * [[1.0, 0.0, 1.0]])
    return Scene(context, lambda: context.set_positions(x), 3, "proteins", "field")


@fault("membrane_fields.pyx", "call", "PYTHON_EXCEPTION", "PythonField", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def a_field_of_python_raises():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 10, mass=1.0, seed=1)
    start, bound = points.triangles[0], [False]

    def field(triangles, weights):
        if triangles[0] != start and not bound[0]:
            raise OverflowError("out of the table")
        return -weights[:, 0], np.broadcast_to([-1.0, 0.0, 0.0], (10, 3))

    system = system_with(topology, forces.PythonMembraneField(points, field, name="table"))
    context = make(system, "BAGAB", 0.05)
    v = np.zeros((52, 3))
    v[42:] = np.random.default_rng(1).normal(0.0, 1.0, (10, 3))
    context.set_velocities(v)
    return Scene(context, lambda: bound.__setitem__(0, True), None, None, "table")


def proteins_that_see_each_other(mesh, n, diameter):
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, n, mass=1000.0, friction=0.1, seed=1, name="proteins")
    system = mp.System(topology)
    pairs = system.add_force(forces.SoftSphere(points, points, 1e-3, diameter, along_surface=True, name="pairs",
                                               skin=0.1))  # fmt: skip
    context = make(system, "BAGOGAB")
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(5)
    return context, pairs, set(points.beads.tolist())


@fault("mesh_pairs.pyx", "_search", "NOT_FINITE", "MeshPairs", SMALLER, in_triangle=True, unstable=True)
def points_push_each_other_along_a_membrane_with_what_is_no_number():
    context, pairs, beads = proteins_that_see_each_other(mp.TriangleMesh.icosphere(10.0, 2), 60, 6.0)
    pairs.set(stiffness=1.7e308)
    return Scene(context, lambda: pairs.set(stiffness=1e-3), beads, "proteins", "pairs")


@fault("mesh_pairs.pyx", "_new_node", "TOO_FAR", "MeshPairs", "along the surface does not end.*Try a shorter range")
def a_point_looks_for_another_much_too_far_away():
    mesh = mp.TriangleMesh.icosphere(10.0, 5)
    rough = mesh.vertices * np.random.default_rng(3).normal(1.0, 0.01, (len(mesh.vertices), 1))
    context, pairs, beads = proteins_that_see_each_other(mesh.with_vertices(rough), 3, 0.1)
    pairs.set(diameter=60.0)
    return Scene(context, lambda: pairs.set(diameter=0.1), beads, "proteins", "pairs")


@fault("neighbors.pyx", "_bounds", "NOT_FINITE", "Pairs", SMALLER)
def a_bead_flies_to_infinity():
    topology = mp.Topology()
    x = np.random.default_rng(2).uniform(0.0, 10.0, (1200, 3))
    topology.add_beads(x[:100], mass=1.0)
    beads = topology.add_beads(x, mass=1.0, name="gas")
    system = system_with(topology, forces.SoftSphere(beads, beads, 1e-3, 1.0, name="pairs"))
    context = make(system, "BAB", 10.0)
    context.step(4)
    v = np.zeros((1300, 3))
    v[731, 1] = 1e308
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((1300, 3))), 731, "gas", "pairs")


@fault("fields.pyx", "_field", "NOT_FINITE", "ExpressionField", SMALLER)
def a_bead_crosses_a_pole():
    """Beyond it the energy is not a number, but the force is one."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    beads = topology.add_beads(np.column_stack([np.linspace(1.0, 2.0, 5000), np.zeros((5000, 2))]), 1.0, name="walkers")
    system = system_with(topology, forces.ExternalField(beads.beads[::-1], "-log(x)", name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[4321, 0] = -30.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4321, "walkers", "pole")


@fault("shapes.pxi", "_surround", "NOT_FINITE", "Collisions", SMALLER)
def a_node_flies_to_infinity():
    topology = mp.Topology()
    topology.add_beads([[9.0, 9.0, 9.0]], mass=1.0)
    nodes = np.random.default_rng(3).uniform(0.0, 10.0, (300, 1, 3)) + [[0.0, 0, 0], [1.0, 0, 0]]
    rods = topology.add_filaments(nodes, 1.0, constrained=False, name="rods")
    system = system_with(topology, forces.SoftCollisions(rods, 0.01, 0.2, name="contacts"))
    context = make(system, "BAB", 10.0)
    context.step(4)
    v = np.zeros((601, 3))
    v[432, 1] = 1e308
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((601, 3))), 432, "rods", "contacts")


def collapsing(make_force):
    def build():
        topology = mp.Topology()
        mesh = mp.TriangleMesh.icosphere(10.0, 3)
        topology.add_beads([[0.0, 0, 0]], mass=1.0)
        sphere = topology.add_membrane(mesh, vertex_mass=1.0, name="cell")
        system = system_with(topology, make_force(sphere))
        context = make(system, "BAB")
        context.step(3)
        good = context.get_state(positions=True).positions
        x = good.copy()
        a, b = sphere.beads[mesh.faces[400][:2]]
        x[a] = x[b]
        context.set_positions(x)
        involved = {int(sphere.beads[v]) for f in mesh.faces.tolist() if {a - 1, b - 1} <= set(f) for v in f}
        return Scene(context, lambda: context.set_positions(good), involved, "cell", "bending")

    return build


LOST = "lost its area.*MembraneEdgeSprings.*smaller timestep"
for form, kernel, function, make_force in (
    ("vertex form", "vertex_form.pxd", "rows_of_faces",
     lambda sphere: forces.MembraneBending(sphere, 5.0, 0.0, "vertex", name="bending")),
    ("dihedral form", "membrane_dihedral.pyx", "_rows",
     lambda sphere: forces.MembraneBending(sphere, 5.0, 0.0, "dihedral", name="bending")),
    ("folds", "membrane_folds.pyx", "_find",
     lambda sphere: forces.MembraneFoldRepulsion(sphere, 5.0, 0.1, name="bending")),
    ("difference in area, vertex form", "membrane_curvatures.pyx", "_rows_of_vertices",
     lambda sphere: forces.MembraneAreaDifference(sphere, 5.0, 1.0, 600.0, name="bending")),
    ("difference in area, dihedral form", "membrane_curvatures.pyx", "_values_of_faces",
     lambda sphere: forces.MembraneAreaDifference(sphere, 5.0, 1.0, 600.0, None, "dihedral", name="bending")),
):  # fmt: skip
    FAULTS.append(Fault(kernel, function, "DEGENERATE_TRIANGLE", "", LOST, collapsing(make_force), True,
                        name=f"bending, {form}"))  # fmt: skip


@fault("membrane_edges.pyx", "_pull", "OUT_OF_TETHER", "", "its edge to bead [0-9]+ is longer or shorter than",
       in_triangle=True)  # fmt: skip
def a_vertex_jumps_over_the_wall_of_its_tether():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    system = system_with(topology, forces.MembraneTether(vesicle, 1e-3, name="tether"))
    context = make(system, "BAB", 0.01)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1 + 77] = 1e3 * mesh.vertices[77] / 10.0
    context.set_velocities(v)
    around = {1 + int(i) for f in mesh.faces.tolist() if 77 in f for i in f}
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), around, "vesicle", "tether")


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


@fault("pace.pyx", "fail", "NO_DENSITY", "Pace", "the density of adaptive steps is not positive; 1 . the control is "
       "-?0[.].* here.*the text of AdaptiveSteps must be another.*timestep is too long")  # fmt: skip
def a_bead_flies_to_where_steps_would_have_no_length():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    steps = mp.AdaptiveSteps(field="-0.1*x")
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.01, steps=steps))
    context.set_velocities([[3.0, 0, 0]])
    context.step(4)
    return Scene(context, lambda: context.set_velocities([[-3.0, 0, 0]]))


@fault("membrane_folds.pyx", "_find", "NOT_FINITE", "FoldRepulsion", SMALLER, in_triangle=True)
def a_triangle_comes_to_lie_on_the_next():
    """It never has no area: one step takes it from one side of the edge to the other."""
    topology = mp.Topology()
    topology.add_beads([[9.0, 9, 9]], mass=1.0)
    corners = np.array([[0.0, 0, 0], [2, 0, 0], [1, 3, 0], [1, -1, 0]])
    sheet = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2], [1, 0, 3]]), vertex_mass=1.0, name="sheet")
    system = system_with(topology, forces.MembraneFoldRepulsion(sheet, 5.0, name="folds"))
    context = make(system, "BAB", 1.0)
    context.step(4)
    v = np.zeros((5, 3))
    v[4] = [0.0, 0.75, 0.0]
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), {1, 2, 3, 4}, "sheet", "folds")


@fault("membrane_totals.pyx", "run", "NOT_FINITE", "OsmoticPressure", SMALLER)
def a_vesicle_is_turned_inside_out():
    """Each vertex flies through the centre, in four steps."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, name="vesicle")
    system = mp.System(topology)
    system.add_force(forces.MembraneOsmoticPressure(vesicle, 4e-6 * mesh.volume, 4e-6, kT=1.0, name="osmosis"))
    context = make(system, "BAB", 1.0)
    context.step(4)
    v = np.zeros((len(mesh.vertices) + 1, 3))
    v[1:] = -mesh.vertices / 3.5
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), vesicle.beads[0], "vesicle", "osmosis")


@fault("membrane_fields.pyx", "_written", "NOT_FINITE", "WrittenField", SMALLER)
def a_point_walks_to_where_a_field_on_its_membrane_has_no_energy():
    """u = -k ln(x - 1/8): beyond the pole the slope is a number, but the energy is none."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    corners = np.array([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]])
    membrane = topology.add_membrane(mp.TriangleMesh(corners, [[0, 1, 2]]), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, triangles=[0] * 300, barycentric=[[0.25, 0.5, 0.25]] * 300,
                                            mass=1.0, name="proteins")  # fmt: skip
    system = mp.System(topology)
    system.add_force(forces.CustomMembraneField(points, "-k*log(a - 1/8)", a=corners[:, 0], k=1e-6, name="pole"))
    context = make(system, "BAGAB", 1.0 / 64.0)
    v = np.zeros((304, 3))
    v[4 + 217, 0] = -1.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), 4 + 217, "proteins", "pole")


@fault("pairs.pyx", "_run", "NOT_FINITE", "WrittenPairs", SMALLER)
def two_beads_come_closer_than_their_formula_allows():
    topology = mp.Topology()
    topology.add_beads([[-9.0, 0, 0]], mass=1.0)
    x = np.zeros((2000, 3))
    x[:, 0] = 3.0 * np.arange(2000.0)
    beads = topology.add_beads(x, mass=1.0, name="gas")
    system = system_with(topology, forces.CustomPair(beads, beads, "-k*log(r - 1)", k=1e-6, cutoff=4.0, name="pole"))
    context = make(system, "BAB", 1e-2)
    v = np.zeros((2001, 3))
    v[1235, 0] = 10.0
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros_like(v)), {1235, 1236}, "gas", "pole")


@fault("metropolis.pyx", "is_not_finite", "NOT_FINITE", "", SMALLER)
def a_block_starts_where_there_is_no_energy():
    """Squares of positions overflow, but forces do not."""
    topology = mp.Topology()
    beads = topology.add_beads(np.ones((100, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology)
    trap = system.add_force(forces.HarmonicTrap(beads, 0.0, [0.0, 0.0, 0.0], name="trap"))
    context = make(system, "M(BAB) O")
    context.step(3)
    x = np.ones((100, 3))
    x[42] = 1e200
    context.set_positions(x)
    trap.set(stiffness=1.0)
    return Scene(context, lambda: context.set_positions(np.ones((100, 3))))


class StubbornForce(forces.PythonForce):
    """A force bound again for each flip that is tried, and asked after each letter whether edges may flip at all; with
    what raises when it is asked."""

    _asked = staticmethod(lambda what: None)
    of_positions_alone = False

    def bind(self, layout):
        self._asked("bind")
        return super().bind(layout)

    def obstacle_to_flips(self):
        self._asked("flip")
        return super().obstacle_to_flips()


def fluid_vesicle(make_force, radius=10.0):
    """Some edges of which have flipped in five steps; a step begins with more."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0, friction=1.0)
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(radius, 2), vertex_mass=1.0, vertex_friction=1.0,
                                    name="vesicle")  # fmt: skip
    system = mp.System(topology)
    force = system.add_force(make_force(vesicle))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, rate=10.0, name="flips"))
    with warnings.catch_warnings():
        # That a force is bound again for each flip is what some are here for.
        warnings.simplefilter("ignore", mp.PerformanceWarning)
        context = make(system, "JBAOABJ", 0.01)
    context.step(5)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    return context, vesicle, force


@fault("trial.pyx", "gain", "NOT_FINITE", "TotalArea", SMALLER, in_triangle=True)
def a_flip_gains_more_energy_than_there_are_numbers():
    """Triangles are larger than 1 nm²."""
    context, vesicle, tension = fluid_vesicle(lambda vesicle: forces.MembraneTension(vesicle, 0.0, name="tension"),
                                              radius=1000.0)  # fmt: skip
    tension.set(tension=-1.7e308)
    return Scene(context, lambda: tension.set(tension=0.0), set(vesicle.beads.tolist()), "vesicle", "tension")


def stubborn_vesicle(raises):
    """`raises(what, n)`: whether the springs raise when they are asked for the nth time from now on."""
    context, _, springs = fluid_vesicle(
        lambda vesicle: StubbornForce(lambda x: (0.0, np.zeros_like(x)), beads=vesicle, name="springs")
    )
    times = Counter()

    def asked(what):
        times[what] += 1
        if raises(what, times[what]):
            raise OverflowError("no springs left")

    springs._asked = asked

    def mend():
        springs._asked = StubbornForce._asked

    return Scene(context, mend)


@fault("trial.pyx", "raised", "PYTHON_EXCEPTION", "EdgeFlips", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def springs_do_not_allow_flips_any_more():
    """Forces that were bound anew within a letter are handed back at its end: all jumps ask all forces again."""
    return stubborn_vesicle(lambda what, n: (what, n) == ("flip", 3))


@fault("triangles.pyx", "tell", "PYTHON_EXCEPTION", "Rejoined", "called from the step raised OverflowError: .*was kept",
       cause=OverflowError)  # fmt: skip
def springs_cannot_be_bound_for_the_triangles_of_before_either():
    """A flip asks to bind them in vain, and so does the state to which the run goes back from that."""
    return stubborn_vesicle(lambda what, n: what == "bind" and n in (31, 32))


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


@fault("fixman.pxi", "_filaments", "NOT_FINITE", "Fixman", SMALLER)
def a_filament_that_cannot_move_has_no_determinant():
    _, hairpin, system = folded()
    system.add_force(forces.FixmanPotential(hairpin, kT=1.0))
    context = make(system, "BAB")
    return Scene(context, open_up(context), 1, "hairpin", "FixmanPotential")


@fault("python_force.pyx", "call", "PYTHON_EXCEPTION", "PythonTerm", "called from the step raised OverflowError: ",
       cause=OverflowError)  # fmt: skip
def a_python_function_raises():
    topology = mp.Topology()
    topology.add_beads(np.zeros((10, 3)), mass=1.0)
    bound = [1.0]

    def field(x):
        if x[0, 0] > bound[0]:
            raise OverflowError("out of the table")
        return -float(x.sum()), np.ones_like(x)

    system = system_with(topology, forces.PythonForce(field, name="table"))
    return Scene(make(system, "BAB", 0.1), lambda: bound.__setitem__(0, np.inf), None, None, "table")


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


@fault("along_surface.pyx", "_gather", "NO_GEODESIC", "PairsAlongSurface",
       r"no shortest way along the surface to bead 40 was found, 1\.6 nm away", in_triangle=True)  # fmt: skip
def two_beads_on_two_sheets_that_are_bent():
    """Of two spheres of one function; the cutoff is longer than the radius, so that normals do not tell them apart."""
    spheres = mp.surfaces.Polynomial("((x - 1.05)**2 + y**2 + z**2 - 1)*((x + 1.05)**2 + y**2 + z**2 - 1)",
                                     bounding_box=[[-2.1, -1.1, -1.1], [2.1, 1.1, 1.1]])  # fmt: skip
    turn = np.linspace(-1.5, 1.5, 40)
    x = np.column_stack([1.05 + np.cos(turn), np.zeros(40), np.sin(turn)])
    topology = mp.Topology()
    walkers = topology.add_surface_points(spheres, np.append(x, [[-0.8, 0.0, 0.968245836551854]], axis=0), mass=1.0,
                                          name="walkers")  # fmt: skip
    system = mp.System(topology)
    pull = np.zeros((41, 3))
    pull[39] = [-1.0, 0.0, 0.0]
    system.add_force(forces.UniformField(walkers, pull))
    own = np.column_stack(np.triu_indices(40, 1))
    soft = system.add_force(forces.SoftSphere(walkers, walkers, 1.0, 1.6, exclusions=own, along_surface=True,
                                              name="along"))  # fmt: skip
    return Scene(make(system, "BAB"), lambda: soft.set(diameter=0.1), 39, "walkers", "along")


@fault("along_surface.pyx", "_normals", "TOO_CURVED", "PairsAlongSurface",
       r"radius of curvature of its surface here is 0\.6.*bounding_box", in_triangle=True)  # fmt: skip
def a_bead_comes_to_a_bend():
    topology = mp.Topology()
    valley = mp.surfaces.Polynomial("z - x**4/2")
    x = np.column_stack([np.zeros(600), np.linspace(0.0, 60.0, 600), np.zeros(600)])
    walkers = topology.add_surface_points(valley, x, mass=1.0, name="walkers")
    system = mp.System(topology)
    soft = system.add_force(forces.SoftSphere(walkers, walkers, 1e-6, 2.0, along_surface=True, name="along"))
    context = make(system, "BAB")
    v = np.zeros((600, 3))
    v[420, 0] = 1.0
    context.set_velocities(v)
    return Scene(context, lambda: soft.set(diameter=0.1), 420, "walkers", "along")


@fault("terms.pyx", "_terms", "NOT_FINITE", "Terms", SMALLER)
def a_penalty_has_a_pole():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    beads = topology.add_beads(np.column_stack([np.linspace(1.1, 2.0, 5000), np.zeros((5000, 2))]), 1.0, name="walkers")
    system = system_with(topology, forces.ConstraintPenalty("sqrt(log(x))", beads, 1e-3, name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[4321, 0] = -1e3
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4321, "walkers", "pole")


@fault("bonds.pyx", "_find", "NOT_FINITE", "WrittenBonds", SMALLER)
def a_bond_breaks_its_formula():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], mass=1.0)
    x = np.zeros((5000, 3))
    x[:, 0] = np.arange(5000.0)
    beads = topology.add_beads(x, 1.0, name="chain")
    system = mp.System(topology)
    pairs = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    system.add_force(forces.CustomBonds(pairs, "-k*log(1 - (r/9)^2)", k=1e-3, name="pole"))
    context = make(system, "BAB", 1e-3)
    v = np.zeros((5001, 3))
    v[5000, 0] = 1e4
    context.set_velocities(v)
    return Scene(context, lambda: context.set_velocities(np.zeros((5001, 3))), 4999, "chain", "pole")


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


UNSOLVED = "equations of a linearly implicit kick have no solution here.*try a smaller timestep or another kick"


def coarse(system, kick, timestep=2.0):
    """βh² = 1 with this timestep and β = 1/4."""
    return mp.Context(system, mp.SplittingIntegrator("BAB", timestep, kick=kick), threads=2)


def pair(distance, mass=2.0):
    """Two beads along x among others, and the system."""
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(5).uniform(50.0, 90.0, (700, 3)), mass=1.0, name="solvent")
    beads = topology.add_beads([[0.0, 0, 0], [distance, 0, 0]], mass, name="pair")
    return beads, mp.System(topology)


@fault("implicit_kicks.pyx", "_solve", "NOT_SOLVED", "Kick", UNSOLVED)
def a_compressed_bond_turns_the_equations_singular():
    """All exact: across a bond of stiffness 1, half as long as it wants to be, M + βh²H is [[1, 1], [1, 1]]."""
    beads, system = pair(1.0)
    bond = system.add_force(forces.HarmonicBonds([beads.beads], 1.0, 2.0))
    return Scene(coarse(system, kicks.ZhangSkeel()), lambda: bond.set(length=1.0), {700, 701}, "pair")


@fault("conjugate_gradients.pxi", "_not_solved", "NOT_SOLVED", "Kick", UNSOLVED)
def conjugate_gradients_meet_a_direction_that_costs_nothing():
    """By soft spheres that were apart when they were added: outside of the band. Pulled across, the two have the
    curvature M - 2 (2 - r)/r < 0 there, with r = 0.9."""
    beads, system = pair(9.0)
    spheres = system.add_force(forces.SoftSphere(beads, beads, 1.0, 2.0))
    system.add_force(forces.UniformField(beads.beads[:1], [0.0, 1.0, 0.0]))
    context = coarse(system, kicks.ZhangSkeelSimplified())
    x = context.get_state(positions=True).positions.copy()
    x[701] = [0.9, 0.0, 0.0]
    context.set_positions(x)
    return Scene(context, lambda: spheres.set(stiffness=0.0), {700, 701}, "pair")


@fault("conjugate_gradients.pxi", "_invert_diagonal", "NOT_SOLVED", "Kick", UNSOLVED)
def a_bead_alone_has_no_minimum():
    """Across a bond of stiffness 8, a tenth as long as it wants to be, βh²H of each end is -72 across it; M is 2."""
    beads, system = pair(9.0)
    spheres = system.add_force(forces.SoftSphere(beads, beads, 8.0, 2.0))
    context = coarse(system, kicks.ZhangSkeelSimplified())
    x = context.get_state(positions=True).positions.copy()
    x[701] = [0.2, 0.0, 0.0]
    context.set_positions(x)
    return Scene(context, lambda: spheres.set(stiffness=0.0), {700, 701}, "pair")


@fault("implicit_kicks.pyx", "newton", "NOT_SOLVED", "Kick", UNSOLVED)
def newton_jumps_to_and_fro():
    """y³ - 2y + 2 = 0 for where a bead is to be: Newton's method goes from 0 to 1 and back."""
    beads, system = pair(9.0)
    # With m = 2, h = 2 and β = 1/4: y = x - V'(y)/2.
    field = system.add_force(forces.ExternalField(beads.beads[:1], "u*(x^4/2 - 3*x^2 + 4*x)", u=1.0))
    return Scene(coarse(system, kicks.PushForwardNewmark()), lambda: field.set(u=0.0), 700, "pair")


@fault("jump.pyx", "act", "TOO_MANY_JUMPS", "LinkBinding", "jump bonds: its rates ask for more than 20000000")
def links_bind_and_let_go_without_end():
    """10¹² times a second, with a timestep of a second, after three steps with other rates."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(forces.Links([], [], stiffness=1.0, length=1.0))
    bonds = mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=1.0, name="bonds")
    system.add_jump(bonds)
    context = make(system, "JBAOABJ", 1.0)
    context.step(3)
    bonds.set(off_rate=1e12, on_rate=1e12)
    return Scene(context, lambda: bonds.set(on_rate=0.0, off_rate=1.0))


def reacting(word, counts, far=None, **numbers):
    """Points in the faces of an octahedron, whose reactions wait until their rates are set."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(1.0, 1)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    species = {name: {"mass": 1.0, "friction": 1.0} for name in "ABC"}
    points = topology.add_intriangle_points(membrane, species=species, counts=counts, capacity=4)
    system = mp.System(topology)
    if far is not None:
        system.add_force(forces.HarmonicTrap(points, 0.0, [far, 0.0, 0.0], name="far"))
    jump = system.add_jump(mp.jumps.Reactions(points, word, on_rate=0.0, name="react", **numbers))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(on_rate=50.0)
    return Scene(context, lambda: jump.set(on_rate=0.0), set(points.kind.all_rows.tolist()), "points")


@fault("point_reactions.pyx", "create", "NO_ROOM", "PointReactions",
       "a bead of species 'B' cannot be created: all 4 rows of these beads are taken")
def more_points_than_there_are_rows():
    return reacting("C -> A + B", {"C": 4}, reach=0.5)


@fault("polymerization.pyx", "change_chain", "NO_ROOM", "Polymerization", "the room of a filament ends here")
def a_filament_that_outgrows_its_room():
    topology = mp.Topology()
    nodes = np.arange(3)[:, None] * [5.0, 0.0, 0.0]
    actin = topology.add_filament(nodes, 1.0, 1.0, rise=1.0, capacity_links=3)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0), forces.FilamentBending(actin, 5.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    rates = {"on_rate": 0.0, "off_rate": 0.0, "subunits": (3, 8)}
    growth = system.add_jump(mp.jumps.Polymerization(actin, pool["G"], **rates))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    growth.set(on_rate=100.0)
    return Scene(context, lambda: growth.set(on_rate=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("nucleation.pyx", "create", "NO_ROOM", "Nucleation", "the room of a filament ends here")
def more_seeds_than_there_is_room_for():
    topology = mp.Topology()
    room = {"rise": 1.0, "capacity_links": 4, "capacity_filaments": 1}
    actin = topology.add_filament(np.arange(3)[:, None] * [5.0, 0.0, 0.0], 1.0, 1.0, **room)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}))
    region = [[0.0] * 3, [1.0] * 3]
    seeds = mp.jumps.Nucleation(actin, pool["G"], 3, rate=0.0, dissolution_rate=0.0, region=region)
    system.add_jump(seeds)
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    seeds.set(rate=100.0)
    return Scene(context, lambda: seeds.set(rate=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("severing.pyx", "cut", "NO_ROOM", "Severing", "the room of a filament ends here")
def more_fragments_than_there_is_room_for():
    topology = mp.Topology()
    room = {"rise": 1.0, "capacity_links": 4, "capacity_filaments": 1}
    actin = topology.add_filament(np.arange(4)[:, None] * [5.0, 0.0, 0.0], 1.0, 1.0, **room)
    system = system_with(topology, forces.FixmanPotential(actin, kT=1.0))
    cuts = system.add_jump(mp.jumps.Severing(actin, 0.0))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    cuts.set(rate_per_subunit=100.0)
    return Scene(context, lambda: cuts.set(rate_per_subunit=0.0), set(actin.kind.all_rows.tolist()), "filament")


@fault("point_reactions.pyx", "attempt", "TOO_CROWDED", "PointReactions", "the jump allows for: give most_partners=")
def more_partners_than_a_reaction_allows_for():
    return reacting("A + B -> C", {"A": 1, "B": 3}, reach=1.5, most_partners=1)


@fault("point_reactions.pyx", "attempt", "TOO_FAR", "PointReactions", "looking for what is near it along the surface")
def straight_lines_that_wind_around_a_sphere():
    return reacting("A + B -> C", {"A": 1, "B": 3}, reach=1e3)


@fault("point_reactions.pyx", "decide", "NOT_FINITE", "PointReactions", "no longer a finite number", unstable=True)
def energies_beyond_all_numbers():
    scene = reacting("A + B -> C", {"A": 2, "B": 2}, reach=1.5, far=1e3)
    trap = scene.context.system["far"]
    trap.set(stiffness=1e308)
    return Scene(scene.context, lambda: (scene.mend(), trap.set(stiffness=0.0)), scene.bead, scene.object, "far")


def transitions(subject, text, system, handle):
    """A jump whose rate goes above its bound once its number is set."""
    jump = system.add_jump(mp.jumps.CustomTransitions(subject, text, at_most=50.0, k=0.0, name="switch"))
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(k=60.0)
    return Scene(context, lambda: jump.set(k=0.0), set(handle.kind.all_rows.tolist()), handle.name)


@fault("transitions.pyx", "_checked", "RATE_ABOVE_BOUND", "WrittenTurns", "is 60 1/s here, but must be from 0 to")
def a_rate_that_is_above_its_bound():
    topology = mp.Topology()
    species = {name: {"mass": 1.0, "friction": 1.0} for name in "AB"}
    beads = topology.add_beads(np.zeros((4, 3)), species=species, of_species="A", name="beads")
    return transitions(beads, "A <-> B; rate = k", mp.System(topology), beads)


@fault("exchange.pyx", "attempt", "TOO_CROWDED", "Exchange", "the jump allows for: give most_partners= or most_feet=")
def more_triangles_below_a_bead_than_it_may_have():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 1), vertex_mass=1.0, fixed=True)
    beads = topology.add_beads([[0.0, 0.0, 0.1]], species={"A": {"mass": 1.0, "friction": 1.0}}, of_species="A",
                               capacity=1, name="beads")  # fmt: skip
    system = mp.System(topology)
    jump = system.add_jump(mp.jumps.Absorption(
        beads.of("A"), membrane, rate=0.0, layer=0.99, side="inside", most_feet=1, name="absorb"))  # fmt: skip
    context = make(system, "JBAGOGABJ", 0.1)
    context.step(3)
    jump.set(rate=50.0)
    return Scene(context, lambda: jump.set(rate=0.0), set(beads.kind.all_rows.tolist()), "beads")


def balls_in_water(x, word, h, tolerance=1e-4, wall=None):
    """With a field that can be set, and that leaves them alone at first."""
    topology = mp.Topology()
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0, name="balls")
    system = mp.System(topology)
    field = system.add_force(forces.UniformField(balls, [0.0, 0.0, 0.0]))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls, wall=wall, tolerance=tolerance))
    return make(system, word, h), field


@fault("hydrodynamics.pyx", "_take_places", "IN_WALL", "Displacement", "overlaps the wall .* its centre is 0.[0-9]* nm")
def a_ball_falls_into_the_wall():
    context, field = balls_in_water([[9.0, 0, 90.0], [0, 0, 3.0]], "D", 1e-3, wall=mp.boundaries.Plane())
    context.step(5)
    field.set(force=[0.0, 0.0, -100.0])

    def mend():
        context.set_positions([[9.0, 0, 90.0], [0, 0, 3.0]])
        field.set(force=[0.0, 0.0, 0.0])

    return Scene(context, mend, 1, "balls")


@fault("hydrodynamics.pyx", "move", "NOT_FINITE", "Displacement", SMALLER)
def a_ball_is_pushed_out_of_all_numbers():
    context, field = balls_in_water([[0, 0, 0], [0, 0, 3.0]], "D", 1.0)
    context.step(5)
    field.set(force=[0.0, 0.0, 1.5e308])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), {0, 1}, "balls", "UniformField")


@fault("hydrodynamics.pyx", "give_velocities", "NOT_FINITE", "Thermostat", SMALLER)
def velocities_whose_squares_are_no_numbers():
    context, field = balls_in_water([[0, 0, 0], [0, 0, 3.0]], "BAOAB", 1.0)
    context.step(5)
    field.set(force=[0.0, 0.0, 1e200])
    return Scene(context, lambda: field.set(force=[0.0, 0.0, 0.0]), {0, 1}, "balls", "UniformField")


@fault("hydrodynamics.pyx", "_unsettled", "NO_ROOT", "Displacement",
       r"Lanczos' method does not settle .*last change [0-9.]+e-1")  # fmt: skip
def more_digits_are_asked_for_than_there_are():
    x = np.random.default_rng(1).uniform(0.0, 9.0, (80, 3))
    context, _ = balls_in_water(x, "D", 1e-9, tolerance=1e-18)
    return Scene(context, lambda: context.set_positions(1e20 * x))


def everything(context):
    """What get_state can tell without computing forces, which may be what fails."""
    state = context.get_state(positions=True, velocities=True)
    there = state.alive
    return [state.positions[there], state.velocities[there], state.intriangle.triangles, state.intriangle.barycentric]


def assert_usable_afterwards(context, error, reference, mend):
    """The state is that of an undisturbed run to the step that failed, and the run goes on from it once mended."""
    assert context.step_count == error.step
    now = everything(context)
    assert all(np.isfinite(part).all() for part in now)
    reference.step(error.step - reference.step_count)
    for mine, theirs in zip(now, everything(reference), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    mend()
    context.step(3)
    assert context.step_count == error.step + 3
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    assert np.isfinite(state.total_energy)
    assert all(np.isfinite(a[state.alive]).all() for a in (state.positions, state.velocities, state.forces))


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=pytest.mark.unstable if case.unstable else ()) for case in FAULTS]
)  # fmt: skip
def test_fault(case):
    scene, reference = case.build(), case.build()
    before = scene.context.step_count
    with pytest.raises(mp.SimulationError, match=case.says) as caught:
        scene.context.step(scene.steps)
    error = caught.value
    assert error.step >= before
    assert str(error).startswith(f"step {error.step}")
    assert (error.object, error.force) == (scene.object, scene.force)
    if isinstance(scene.bead, range | set):
        assert error.bead in scene.bead
    else:
        assert error.bead == scene.bead
    if error.bead is not None:
        assert f"bead {error.bead} ({error.object!r}, " in str(error)
    if error.force is not None:
        assert f"force {error.force}" in str(error)
    assert type(error.__cause__) is (case.cause or type(None))
    # It was that place in the kernels that spoke.
    program_fault = error.__context__
    kinds = {"PYTHON_EXCEPTION": "python"}
    assert program_fault.kind == kinds.get(case.code, case.code.lower().replace("_", " "))
    if case.operation:
        assert type(program_fault.operation).__name__ == case.operation
    assert (program_fault.triangle >= 0) == case.in_triangle
    assert_usable_afterwards(scene.context, error, reference.context, scene.mend)


# Memory that runs out, in processes of their own: a bound on their address space does what a full machine would.
MEMORY = """
    import ctypes
    import resource
    import numpy as np
    import medyanpy as mp
    from medyanpy import forces

    held = []

    def bound(extra):
        "Let the process have so many bytes more than it has now; no bound for None."
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        def limit(extra):
            size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + extra, hard))
        held.clear()
        if extra is None:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
            return
        # Without what earlier calls have left free, which needs no more from the system.
        ctypes.CDLL(None).malloc_trim(0)
        limit(0)
        try:
            while True:
                held.append(bytearray(2**19))
        except MemoryError:
            limit(extra)

    def context(n, make, box=1.0, kick=None, sides=None):
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(1).uniform(0.0, box, (n, 3)), mass=1.0, name="crowd")
        system = mp.System(topology, box=sides)
        force = system.add_force(make(beads))
        made = mp.Context(system, mp.VerletIntegrator(1e-6, kick=kick), threads=1)
        made.runaway = None  # whose energies would ask for the memory first
        return made, force

    def sites_in_a_box(n, box, rate):
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(1).uniform(0.0, box, (n, 3)), mass=1.0, friction=1.0)
        system = mp.System(topology)
        links = system.add_force(forces.Links([], [], stiffness=1.0, length=0.5))
        jump = mp.jumps.LinkBinding(links, beads, on_rate=rate, off_rate=rate)
        system.add_jump(jump)
        made = mp.Context(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
        made.runaway = None
        return made, jump

    def fails(action, *expected):
        try:
            action()
        except mp.SimulationError as error:
            bound(None)
            assert (error.step, error.object, error.force) == expected, (error.step, error.object, error.force)
            assert "no memory for" in str(error), error
            return error
        raise AssertionError("there was enough memory")
"""

CROWD = """
    crowd, force = context(20_000, lambda b: forces.SoftSphere(b, b, 1.0, diameter=10.0, name="pairs"))
    before = crowd.get_state(positions=True).positions
    bound(100_000_000)
    error = fails(lambda: crowd.step(5), 0, "crowd", "pairs")
    assert 0 <= error.bead < 20_000
    assert "far denser than the cutoff" in str(error), error
    assert crowd.step_count == 0
    assert (crowd.get_state(positions=True).positions == before).all()
    force.set(diameter=0.01)
    bound(100_000_000)
    crowd.step(5)
    assert crowd.step_count == 5
"""

# Enough for the rows of the list, not for what is kept of each pair.
CROWD_ON_A_PLANE = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 100.0, (20_000, 3)) * [1.0, 1.0, 0.0]
    beads = topology.add_surface_points(mp.surfaces.Plane(), x, mass=1.0, name="crowd")
    system = mp.System(topology)
    force = system.add_force(forces.SoftSphere(beads, beads, 1e-3, 0.01, skin=0.0, along_surface=True, name="pairs"))
    crowd = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    crowd.runaway = None
    crowd.step(1)
    force.set(diameter=8.0)
    bound(150_000_000)
    fails(lambda: crowd.step(1), 1, "crowd", "pairs")
    assert crowd.step_count == 1
    force.set(diameter=0.01)
    crowd.step(3)
    assert crowd.step_count == 4
"""

ROWS = """
    gas, force = context(1_000_000, lambda b: forces.SoftSphere(b, b, 1.0, diameter=0.5, name="pairs"), box=100.0)
    gas.step(1)
    a = np.ones((1_000_000, 3))
    # Enough for the arrays of the call, not for the 12 MB of the index of all rows.
    bound(4_000_000 + 2 * a.nbytes)
    fails(lambda: gas.third_derivative(a), 1, None, "pairs")
    gas.step(1)
    assert np.isfinite(gas.third_derivative(a)).all()
"""

BLOCKS = """
    crowd, force = context(300_000, lambda b: forces.HarmonicTrap(b, 1.0, [0.0, 0, 0], name="trap"))
    import scipy.sparse
    bound(10_000_000)
    fails(crowd.hessian, 0, None, "trap")
    crowd.step(3)
    assert crowd.hessian().shape == (900_000, 900_000)
"""

# What second derivatives of bending are made with, of 160 000 vertices, is allocated when they are first asked for.
LINES = """
    from medyanpy._kernels.core.derivatives import Multiplication
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(400, 400, 1.0), vertex_mass=1.0)
    system = mp.System(topology)
    system.add_force(forces.MembraneBending(sheet, 1.0, name="bending"))
    made = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    made.runaway = None
    made.step(1)
    a = np.ones((len(sheet), 3))
    product = Multiplication(made._schedule.bound_forces["bending"], a, np.zeros_like(a))
    bound(50_000_000)
    fails(lambda: made._schedule.perform(product, changes_state=False), 1, None, "bending")
    bound(None)
    made._schedule.perform(product, changes_state=False)
    made.step(1)
"""

# Not even beads that are alone make a band: conjugate gradients have arrays by row, made when they are needed first.
DESCENT = """
    from medyanpy import kicks
    kicks._WIDEST_BAND = -1
    make = lambda b: forces.HarmonicTrap(b, 1.0, [0.0, 0, 0], name="trap")
    crowd, force = context(300_000, make, kick=kicks.ZhangSkeelSimplified())
    crowd.get_state(forces=True)
    bound(10_000_000)
    fails(lambda: crowd.step(1), 0, None, None)
    crowd.step(1)
    assert crowd.step_count == 1
"""

# Two million pairs that were apart: 117 MB to find them again, and 340 MB for their blocks.
COUPLED = """
    from medyanpy import kicks
    make = lambda b: forces.SoftSphere(b, b, 1.0, diameter=0.001, name="pairs")
    crowd, force = context(2000, make, kick=kicks.ZhangSkeelSimplified(positive_definite=True, tolerance=1e-3))
    crowd.step(1)
    force.set(diameter=2.0)
    crowd.get_state(forces=True)
    bound({extra})
    fails(lambda: crowd.step(1), 1, None, None)
    force.set(diameter=0.5)
    crowd.step(1)
    force.set(diameter=2.0)
    crowd.step(1)
    assert crowd.step_count == 3
"""

# Listened to, links that bind and let go ten million times in one step.
EVENTS = """
    made, jump = sites_in_a_box(2, box=1.0, rate=1.0)
    made.step(1)
    jump.set(on_rate=1e12, off_rate=1e12)
    before = made.get_state(positions=True)
    listener = made.events()
    bound(50_000_000)
    error = fails(lambda: made.step(5), 1, None, None)
    assert error.jump == "LinkBinding", error
    after = made.get_state(positions=True)
    assert (before.positions == after.positions).all() and before.counts == after.counts
    assert not listener.heard()
"""

# The list of all pairs of neighbours is there from the crowd before; that of pairs which may be bound is not.
PAIRS = """
    made, _ = sites_in_a_box(5_000, box=1.0, rate=1e-3)
    crowd = made.get_state(positions=True).positions
    made.step(1)
    made.set_positions(1000.0 * crowd)
    made.step(1)
    made.set_positions(crowd)
    bound(20_000_000)
    error = fails(lambda: made.step(5), 2, None, None)
    assert error.jump == "LinkBinding", error
    assert made.step_count == 2
    made.step(5)
    assert made.step_count == 7
"""

# All balls of a crowd overlap: 5 GB of pairs.
OVERLAPS = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 1.0, (8_000, 3))
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls))
    made = mp.Context(system, mp.BrownianIntegrator(1e-9, kT=1.0), threads=1)
    made.set_positions(1e6 * x)
    made.step(1)
    made.set_positions(x)
    bound(50_000_000)
    fails(lambda: made.step(5), 1, None, None)
    assert (made.get_state(positions=True).positions == x).all()
    made.set_positions(1e6 * x)
    made.step(1)
"""

# Of a fluid in a periodic box waves are listed first, then images near each other.
IMAGES = """
    topology = mp.Topology()
    x = np.random.default_rng(1).uniform(0.0, 100.0, (4_000, 3))
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology, box=(100.0, 100.0, 100.0))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls))
    made = mp.Context(system, mp.BrownianIntegrator(1e-9, kT=1.0), threads=1)
    bound({extra})
    fails(lambda: made.step(5), 0, None, None)
    assert (made.get_state(positions=True).positions == x).all()
    made.step(1)
"""

CHARGES = """
    charges, force = context(
        100, lambda b: forces.Coulomb(b, np.tile([1.0, -1.0], 50), 1e-9, cutoff=5.0, tolerance=1e-13, name="charges"),
        box=100.0, sides=(100.0, 100.0, 100.0),
    )
    bound(10_000_000)
    fails(lambda: charges.step(5), 0, None, "charges")
    charges.step(1)
"""

# A million pairs of ellipsoids and links: their list fits, what is known of each does not.
TOUCHING = """
    topology = mp.Topology()
    rng = np.random.default_rng(1)
    bodies = topology.add_rigid_bodies(rng.uniform(0.0, 1.0, (1000, 3)), [[1.0, 0, 0, 0]] * 1000, 1.0, [1.0, 1.0, 1.0])
    nodes = rng.uniform(0.0, 1.0, (1000, 1, 3)) + [[0.0, 0, 0], [1.0, 0, 0]]
    links = topology.add_filaments(nodes, 1.0, constrained=False)
    system = mp.System(topology)
    system.add_force(forces.EllipsoidCollisions(bodies, links, 1.0, [3.0, 4.0, 5.0], 0.5, form="soft", name="contacts"))
    made = mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)
    made.runaway = None
    before = made.get_state(positions=True).positions
    bound(50_000_000)
    fails(lambda: made.step(5), 0, None, "contacts")
    assert (made.get_state(positions=True).positions == before).all()
    made.set_positions(1000.0 * before)
    bound(50_000_000)
    made.step(5)
    bound(None)
    made.set_positions(before)
    made.step(5)
    assert made.step_count == 10
"""

# Two million pairs of points, whose forces on the corners of triangles have to be kept until all are known.
STRINGS = """
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 1), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, 2000, mass=1.0, seed=1)
    system = mp.System(topology)
    force = system.add_force(forces.SoftSphere(points, points, 1e-9, 0.01, along_surface=True, name="pairs"))
    made = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-6), threads=1)
    made.runaway = None
    made.step(1)
    force.set(diameter=4.0)
    bound(100_000_000)
    fails(lambda: made.step(5), 1, points.name, "pairs")
    force.set(diameter=0.01)
    made.step(5)
    assert made.step_count == 6
"""

IN_PROCESSES = {
    ("mesh_pairs.pyx", "_room", "OUT_OF_MEMORY"): STRINGS,
    ("mobility.pxi", "_find_near", "OUT_OF_MEMORY"): OVERLAPS,
    ("lattice.pxi", "find_images", "OUT_OF_MEMORY"): IMAGES.format(extra=1_000_000),
    ("lattice.pxi", "_find_images", "OUT_OF_MEMORY"): IMAGES.format(extra=60_000_000),
    ("ewald.pyx", "run", "OUT_OF_MEMORY"): CHARGES,
    ("ellipsoid_collisions.pyx", "_list", "OUT_OF_MEMORY"): TOUCHING,
    ("jump.pyx", "record", "OUT_OF_MEMORY"): EVENTS,
    ("link_binding.pyx", "list_pairs", "OUT_OF_MEMORY"): PAIRS,
    ("neighbors.pyx", "_rows", "OUT_OF_MEMORY"): CROWD,
    ("neighbors.pyx", "index", "OUT_OF_MEMORY"): ROWS,
    ("derivatives.pyx", "_append", "OUT_OF_MEMORY"): BLOCKS,
    ("conjugate_gradients.pxi", "_make_rows", "OUT_OF_MEMORY"): DESCENT,
    ("conjugate_gradients.pxi", "_into_rows", "OUT_OF_MEMORY"): COUPLED.format(extra=50_000_000),
    ("conjugate_gradients.pxi", "_arrange", "OUT_OF_MEMORY"): COUPLED.format(extra=250_000_000),
    ("bending.pyx", "prepare", "OUT_OF_MEMORY"): LINES,
    ("along_surface.pyx", "number", "OUT_OF_MEMORY"): CROWD_ON_A_PLANE,
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux bounds the memory of a process")
@pytest.mark.parametrize("site", IN_PROCESSES, ids=lambda site: "-".join(site))
def test_memory_runs_out(site):
    code = textwrap.dedent(MEMORY) + textwrap.dedent(IN_PROCESSES[site])
    # One arena and one thread: how much memory is left over from earlier calls does not depend on chance.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr


# Where a kernel reports a fault: what it returns or records, and helpers that do it for whoever calls them.
CODE = (
    r"(NOT_FINITE|TOO_MANY_CROSSINGS|DEGENERATE_TRIANGLE|PYTHON_EXCEPTION|OUT_OF_MEMORY|NOT_CONVERGED|NOT_SOLVED"
    r"|LOST_SURFACE|RUNAWAY|TOO_MANY_JUMPS|NO_ROOM|IN_WALL|NO_ROOT|CONSTRAINTS_LOST|TOO_FAR|NO_GEODESIC|TOO_CURVED"
    r"|OUT_OF_TETHER|TOO_WIDE|NO_DENSITY|TOO_CROWDED|RATE_ABOVE_BOUND"
    r"|[A-Z_]*_FAULT)"
)
REPORT = re.compile(rf"record_fault\(world, {CODE}|return {CODE}$")
HELPERS = {"bend_no_area": "DEGENERATE_TRIANGLE", "fail_lanes": "NOT_CONVERGED"}
FUNCTION = re.compile(r"^\s*(?:cdef|cpdef|def) (?:inline )?[^=]*?(\w+)\(")


def sites():
    """(file, function, code) of every place in the installed kernels, as often as it is there."""
    for path in sorted(KERNELS.rglob("*.p[yx][xdi]")):
        function = ""
        # A call may go on in the next line.
        for line in re.sub(r"record_fault\(\s+", "record_fault(", path.read_text()).splitlines():
            found = FUNCTION.match(line)
            if found:
                function = found[1]
                continue
            for report in REPORT.finditer(line):
                code = report[1] or report[2]
                if code != "NO_FAULT" and function not in HELPERS:
                    yield path.name, function, code
            for helper, code in HELPERS.items():
                if f"{helper}(" in line and "import" not in line:
                    yield path.name, function, code


# LOST_COUNT is not among them: it is the end of a walk that only a mistake of this package can lead beyond what is
# listed. Walks have such an end everywhere: those written without one are named here, with what ends them.
ENDS = {
    ("geodesic.pyx", "_fly_one"): "MAX_CROSSINGS",
    ("hydrodynamics.pyx", "run"): "lanczos_take",
    ("krylov.pxi", "_eigenvectors"): "steps > 60",
    ("program.pyx", "go_on"): "admit",
    ("remeshing.pyx", "ring"): "n == MOST",
}


def endless():
    """(file, function) of every loop in the kernels that has no condition, with the text of the function."""
    for path in sorted(KERNELS.rglob("*.p[yx][xdi]")):
        function, text, has = "", [], False
        for line in [*path.read_text().splitlines(), "cdef end()"]:
            found = FUNCTION.match(line)
            if found:
                if has:
                    yield (path.name, function), "\n".join(text)
                function, text, has = found[1], [], False
            text.append(line)
            has |= bool(re.search(r"while (True|1)\b", line))


def test_every_walk_has_an_end():
    found = dict(endless())
    assert found.keys() == ENDS.keys()
    for site, text in found.items():
        assert ENDS[site] in text


# By the kernel of docs/births.md, which no jump of the package is like: the test of the documents runs it.
BY_PAGES = [("capacity.pyx", "wake", "NO_ROOM")]

# Room for the neighbours of one change, some kB, which no bound on a process takes away before all else.
NOT_PROVOKED = [
    ("collisions.pyx", "_touched", "OUT_OF_MEMORY"), ("ellipsoid_collisions.pyx", "local_energy", "OUT_OF_MEMORY"),
    ("ellipsoids.pyx", "local_energy", "OUT_OF_MEMORY"), ("pairs.pyx", "local_energy", "OUT_OF_MEMORY"),
    ("point_reactions.pyx", "attempt", "OUT_OF_MEMORY"), ("shapes.pxi", "mend", "OUT_OF_MEMORY"),
    ("exchange.pyx", "act", "OUT_OF_MEMORY"),
]  # fmt: skip


def test_every_fault_site_is_provoked():
    """A new `record_fault` wants a test above; one that is gone takes its test with it."""
    provoked = Counter([*((f.file, f.function, f.code) for f in FAULTS), *IN_PROCESSES, *BY_PAGES, *NOT_PROVOKED])
    assert Counter(sites()) == provoked
