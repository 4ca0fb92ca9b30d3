"""All that forces and jumps keep between steps, against a context made anew: whatever changes after something has been
listed, what is computed next is what a new context computes, to the bit.

A force or jump that keeps something (a list of neighbours, pairs, sums, indices) is in `forces_of`; what may change is
in CHANGES. Each change is made between a listing and the next use.
"""

import copy
import tempfile
from pathlib import Path

import numpy as np
import pytest
from builders import look

import medyanpy as mp
from medyanpy import forces

SIDE = 24.0


def scene(through=True, seed=4):
    """Of every kind that something is listed for, in a box; `through`: the sheet closes through its sides."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(12, 12, 2.0, periodic=through)
    box = np.array([SIDE, 12.0 * np.sqrt(3.0), SIDE])
    sheet = topology.add_membrane(mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.15, mesh.vertices.shape)),
                                  vertex_mass=1.0, vertex_friction=1.0, name="sheet")  # fmt: skip
    points = topology.add_intriangle_points(sheet, 40, mass=1.0, friction=1.0, seed=3, name="points")
    ball = mp.TriangleMesh.icosphere(3.0, 2).translated([box[0] / 2 - 0.5, 0.0, 6.0])
    vesicle = topology.add_membrane(ball, vertex_mass=1.0, vertex_friction=1.0, name="vesicle")

    def places(n):
        return rng.uniform(-0.5, 0.5, (n, 3)) * box

    beads = topology.add_beads(places(120), mass=1.0, friction=1.0, name="beads")
    balls = topology.add_balls(places(30), rng.uniform(0.4, 0.9, 30), mass=1.0, friction=1.0, name="balls")
    q = rng.normal(size=(12, 4))
    bodies = topology.add_rigid_bodies(places(12), q / np.linalg.norm(q, axis=1)[:, None], 1.0, [1.0, 1.2, 1.4],
                                       friction=1.0, name="bodies")  # fmt: skip
    starts = places(8) + np.arange(5)[:, None, None] * [0.8, 0.2, 0.1]
    filaments = topology.add_filaments(list(starts.transpose(1, 0, 2)), node_mass=1.0, node_friction=1.0,
                                       name="filaments")  # fmt: skip
    system = mp.System(topology, box=tuple(box))
    for force in forces_of(sheet, points, vesicle, beads, balls, bodies, filaments, rng):
        system.add_force(force)
    spring = system.add_force(forces.Links([], [], stiffness=20.0, length=0.5, name="springs"))
    sites = mp.Sites.beads(beads) + filaments.sites(np.arange(8), np.ones(8, int), 0.3)
    system.add_jump(mp.jumps.LinkBinding(spring, sites, off_rate=50.0, on_rate=100.0, name="links"))
    system.add_jump(mp.jumps.BoxArea(pressure=0.05, rate=300.0, step=0.02, name="area"))
    system.add_jump(mp.jumps.EdgeFlips(sheet, 2.0, name="flips"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.001, kT=1.0, seed=seed), threads=1)


def forces_of(sheet, points, vesicle, beads, balls, bodies, filaments, rng):
    near = {"cutoff": 2.0, "skin": 1.0}
    free = [beads, points]
    yield forces.SoftSphere(free, [balls, vesicle], 5.0, 1.5, skin=1.0)
    yield forces.SoftSphere(points, points, 5.0, 1.5, along_surface=True, skin=1.0, name="along the sheet")
    yield forces.WCA(balls, balls, 1.0, 0.5, skin=1.0)
    yield forces.LennardJones(beads, free, 0.01, 0.6, **near)
    yield forces.Ricker(points, beads, 0.5, 0.8, **near)
    yield forces.Ricker(points, points, 0.2, 0.8, along_surface=True, name="wells along the sheet", **near)
    yield forces.Morse(beads, balls, 0.1, 1.0, 2.0, **near)
    yield forces.Yukawa(beads, beads, 0.1, 1.0, **near)
    yield forces.TabulatedPair(beads, filaments, [0.0, 0.7, 1.4, 2.0], [1.0, 0.4, 0.1, 0.0], skin=1.0)
    yield forces.CustomPair(filaments, beads, "q1*q2*exp(-r)", q1=0.3, q2=0.2, **near)
    yield forces.SoftCollisions([filaments, sheet, balls], 5.0, radius=0.4, skin=1.0)
    yield forces.EllipsoidCollisions(bodies, [filaments, sheet, vesicle], 1.0, [0.5, 0.7, 0.9], radius=0.3, skin=1.0)
    yield forces.EllipsoidRepulsion(bodies, bodies, 1.0, [0.5, 0.7, 0.9], skin=1.0)
    yield forces.Links(beads.beads[:20], beads.beads[20:40], 0.01, 1.0, name="ties")
    yield forces.CustomBonds(beads.beads[:20].reshape(-1, 2), "k*r^2", k=0.01)
    yield forces.PointCurvature(points, 2.0, 0.1, 0.2)
    yield forces.MembraneBending(sheet, 5.0, name="bending, vertex")
    yield forces.MembraneBending(vesicle, 5.0, discretization="dihedral", name="bending, dihedral")
    yield forces.MembraneArea(sheet, 5.0)
    yield forces.MembraneVolume(vesicle, 2.0)
    yield forces.MembraneTether(vesicle, 20.0)
    yield forces.MembraneFoldRepulsion(sheet, 5.0)
    yield forces.MembraneEdgeSprings(sheet, 20.0, length=2.0)
    yield forces.MembraneLineTension(sheet, np.arange(len(sheet)) % 3 == 0, 2.0)
    yield forces.MembraneField(points, rng.normal(size=len(sheet)))
    yield forces.ExternalField(beads, "cos(k*x)", k=2.0 * np.pi / 24.0)


# What may change, and with what is told whether it did. Each is done after everything has been listed.


def positions(simulation):
    context = simulation.context
    x = context.get_state(positions=True).positions.copy()
    beads = simulation.topology["beads"].beads
    # Most a little, one to the other side of the box.
    x[beads] += np.random.default_rng(1).normal(0.0, 0.2, (len(beads), 3))
    x[beads[0]] += [12.0, 12.0, 12.0]
    context.set_positions(x)


def box_with_beads(simulation):
    x, y, z = simulation.context.get_state().box
    simulation.context.set_box((1.03 * x, 0.98 * y, 1.01 * z))


def box_around_beads(simulation):
    """Nothing moves: what lies across a side of the box is elsewhere all the same."""
    x, y, z = simulation.context.get_state().box
    simulation.context.set_box((x, y, 0.9 * z), scale=False)


def box_by_a_jump(simulation):
    box = simulation.context.get_state().box
    while simulation.context.get_state().box == box:
        simulation.step(1)


def flips_by_hand(simulation):
    sheet = simulation.topology["sheet"]
    faces = simulation.context.get_state(positions=True).faces["sheet"]
    done = 0
    for edge in np.unique(np.sort(faces[:, :2], axis=1), axis=0)[::7]:
        try:
            simulation.context.flip_edges(sheet, [edge])
            done += 1
        except mp.TopologyError:
            continue
    assert done > 5


def points_elsewhere(simulation):
    state = simulation.context.get_state(positions=True)
    triangles = (state.intriangle.triangles + 5) % len(simulation.topology["sheet"].mesh.faces)
    simulation.context.set_intriangle(triangles, state.intriangle.barycentric)


def bodies_turned(simulation):
    q = np.random.default_rng(2).normal(size=(12, 4))
    simulation.context.set_orientations(q / np.linalg.norm(q, axis=1)[:, None])


def links_moved(simulation):
    ties = force_named(simulation, "ties")
    beads = simulation.topology["beads"].beads
    ties.remove(ties.ids[::3])
    ties.add(beads[50:60], beads[70:80], 0.02, 1.0)
    ties.move(ties.ids[:3], b=beads[90:93])


def beads_come_and_go(simulation):
    beads = simulation.topology["beads"]
    places = simulation.context.get_state(positions=True).positions[beads.beads[-17:]]
    with simulation.topology.edit():
        # Those that other forces name stay.
        beads.remove(beads.beads[-30:], terms="remove")
        beads.add(places + 0.2)


def numbers(simulation):
    force_named(simulation, "SoftSphere").set(diameter=1.9)
    force_named(simulation, "LennardJones").set(sigma=0.8)
    force_named(simulation, "SoftCollisions").set(stiffness=9.0)
    force_named(simulation, "springs").set(length=0.7)
    jump = next(jump for jump in simulation.system.jumps if jump.name == "links")
    jump.set(on_rate=20.0)


def temperature(simulation):
    simulation.integrator.set(kT=1.3)


def state_of_another(simulation):
    other = scene(seed=4)
    other.integrator.set(timestep=0.002)
    other.step(20)
    simulation.context.set_state(other.context.get_state(positions=True, velocities=True))


CHANGES = {
    change.__name__.replace("_", " "): change
    for change in (
        positions, box_with_beads, box_around_beads, box_by_a_jump, flips_by_hand, points_elsewhere, bodies_turned,
        links_moved, beads_come_and_go, numbers, temperature, state_of_another,
    )
}  # fmt: skip


def force_named(simulation, name):
    return dict(zip(simulation.system.force_names, simulation.system.forces, strict=True))[name]


def fresh(simulation):
    """A context that has listed nothing, in the state that this one is in."""
    context = mp.Context(simulation.system, copy.copy(simulation.integrator), threads=1)
    context.set_state(simulation.context.get_state(positions=True, velocities=True))
    return context


@pytest.mark.parametrize("change", CHANGES)
def test_lists_follow_changes(change):
    # A sheet that closes through the sides of the box would have to go with them.
    simulation = scene(through=change != "box around beads")
    simulation.step(3)
    before = look(simulation.context)
    CHANGES[change](simulation)
    after, again = look(simulation.context), look(fresh(simulation))
    if change != "temperature":
        assert after.energies != before.energies
    assert {name: (after.energies[name], again.energies[name]) for name in after.energies
            if after.energies[name] != again.energies[name]} == {}
    assert np.array_equal(after.forces, again.forces, equal_nan=True)
    # And it goes on as from a checkpoint, in which nothing is listed either.
    other = resumed(simulation)
    for one in (simulation, other):
        one.step(4)
    one, two = look(simulation.context), look(other.context)
    assert one.counts == two.counts
    assert one.box == two.box
    assert np.array_equal(one.positions, two.positions, equal_nan=True)
    assert np.array_equal(one.forces, two.forces, equal_nan=True)


def resumed(simulation):
    with tempfile.TemporaryDirectory() as folder:
        simulation.save_checkpoint(Path(folder) / "run")
        return mp.Simulation.resume(Path(folder) / "run", threads=1)
