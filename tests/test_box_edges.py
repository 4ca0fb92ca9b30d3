"""Edges of membranes in a periodic box: none grows beyond half of it without a word, whatever moves vertices, changes
the box, or flips edges."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._tools.images import nearest_image
from medyanpy.errors import SimulationError, TopologyError

SIDE = 8.0


def sheet(word="JBAOABJ", n=4, stiffness=16.0, seed=3, threads=1, timestep=0.02, barostat=True, points=0, mass=1.0,
          **more):  # fmt: skip
    """A sheet that closes through a small box, at a tension that is too much for its springs."""
    mesh = mp.TriangleMesh.flat_sheet(n, n, 1.0, periodic=True)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=mass, vertex_friction=1.0, name="sheet")
    if points:
        topology.add_intriangle_points(membrane, points, mass=1.0, friction=1.0, seed=1)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, stiffness, length=1.0),
                         mp.forces.HarmonicTrap(membrane, (0, 0, 8.0), (0, 0, 0)), box=mesh.box)  # fmt: skip
    if barostat:
        system.add_jump(mp.jumps.BoxArea(tension=1.0, rate=12.0, step=0.1))
    kT = 1.0 if set(word) & set("OD") else None
    return mp.Simulation(system, mp.SplittingIntegrator(word, timestep, kT=kT, seed=seed, **more), threads=threads)


def edges_of(state, mesh):
    """(E, 3) edges as parts of the box, along its periodic axes, and whether all triangles close."""
    box = np.array([side or 0.0 for side in state.box])
    x = state.positions[: len(mesh.vertices)]
    faces = next(iter(state.faces.values()))
    d = nearest_image(x[np.roll(faces, -1, axis=1)] - x[faces], box)
    closed = np.abs(d.sum(axis=1)).max() < 1e-9
    return np.divide(d, box, out=np.zeros_like(d), where=box > 0.0), closed


def octahedron(length, timestep=0.1, speed=0.0, word="BAB", fixed=False, kT=None, **more):
    """With all corners on the axes, which move outwards alike: all edges pass half of the box in one and the same
    step, so that every triangle still closes."""
    x = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    topology = mp.Topology()
    ball = topology.add_membrane(mp.TriangleMesh(length * x, faces), vertex_mass=1.0, vertex_friction=1.0, name="ball")
    system = mp.System(topology, box=(SIDE, SIDE, SIDE))
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, timestep, kT=kT, seed=1, **more), threads=1)
    simulation.context.set_velocities(speed * x)
    return ball, simulation


# A fault of A and D ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["JBAOABJ", "JBAGOGABJ", "JDJ"])
def test_heat_and_tension_do_not_tear_a_sheet(word):
    simulation = sheet(word, points=6 if "G" in word else 0, timestep=0.002 if "D" in word else 0.02)
    mesh = simulation.topology["sheet"].mesh
    with pytest.raises(SimulationError) as caught:
        simulation.step(30_000)
    error = caught.value
    assert error.object == "sheet"
    assert error.bead is not None
    assert error.step > 100
    for text in ("its edge to bead", "nm long along", "half of the box there", "MembraneTether", "larger box"):
        assert text in str(error)
    # The state is that before the step, and sound.
    state = simulation.context.get_state(positions=True)
    parts, closed = edges_of(state, mesh)
    assert closed
    assert 0.3 < np.abs(parts).max() <= 0.5
    assert simulation.current_step == error.step


def test_the_step_is_the_same_in_any_cut_on_any_threads_and_after_restarts(tmp_path):
    def steps_to_the_fault(simulation, *cuts):
        for cut in cuts:
            simulation.step(cut)
        with pytest.raises(SimulationError, match="more than half of the box") as caught:
            simulation.step(30_000)
        return caught.value.step, caught.value.bead, str(caught.value)

    expected = steps_to_the_fault(sheet())
    assert steps_to_the_fault(sheet(threads=2), *[1] * 20, 7) == expected
    simulation = sheet()
    simulation.step(expected[0] - 1)
    simulation.save_checkpoint(tmp_path / "run")
    assert steps_to_the_fault(mp.Simulation.resume(tmp_path / "run", threads=1)) == expected


@pytest.mark.parametrize("speed", [0.3, 3.0, 170.0])
def test_edges_that_all_pass_the_middle_at_once_are_seen(speed):
    """However far they go in one step: more than twice through the box with the last."""
    ball, simulation = octahedron(2.0, speed=speed)
    simulation.context.runaway = None
    with pytest.raises(SimulationError, match="more than half of the box there, 4 nm") as caught:
        simulation.step(200)
    # Half of the box is 4 nm, and edges are as long along each of two axes as corners are far out.
    assert caught.value.step == int((4.0 - 2.0) / (speed * 0.1))
    assert caught.value.bead in ball.beads


def test_edges_up_to_half_of_the_box_are_none():
    _, simulation = octahedron(3.9, speed=0.009, timestep=1.0)
    simulation.step(11)
    x = simulation.context.get_state(positions=True).positions
    assert np.abs(x).max() == pytest.approx(3.999)
    refuses(SimulationError, r"4\.008 nm long", simulation.step, 1)


def test_vertices_that_are_held_and_open_directions_are_left_alone():
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    simulation = mp.Simulation(mp.System(topology, box=(None, None, 40.0)), mp.VerletIntegrator(0.1), threads=1)
    simulation.context.set_velocities(membrane.mesh.vertices * [100.0, 100.0, 0.0])
    simulation.context.runaway = None
    simulation.step(20)
    assert np.ptp(simulation.context.get_state(positions=True).positions[:, 0]) > 500.0


# A rejection in M( ) and in BoxArea -----------------------------------------------------------------------------------


def test_blocks_that_would_tear_it_are_rejected():
    simulation = sheet("J M(BAB) O J", stiffness=6.0, timestep=0.15)
    mesh = simulation.topology["sheet"].mesh
    longest = []
    for _ in range(60):
        simulation.step(50)
        state = simulation.context.get_state(positions=True)
        parts, closed = edges_of(state, mesh)
        assert closed
        longest.append(np.abs(parts).max())
    (block,) = state.blocks
    assert block.failed > 0
    assert block.accepted > 500
    assert 0.4 < max(longest) <= 0.5


def test_a_box_that_changes_leaves_edges_the_part_of_it_that_they_are():
    """So that no trial can tear what was whole, and none has to be looked at."""
    simulation = sheet(mass=1e12)
    mesh = simulation.topology["sheet"].mesh
    rng = np.random.default_rng(1)
    x = simulation.context.get_state(positions=True).positions + rng.normal(0.0, 0.2, (16, 3))
    simulation.context.set_positions(x)
    before, _ = edges_of(simulation.context.get_state(positions=True), mesh)
    simulation.step(500)
    state = simulation.context.get_state(positions=True)
    after, closed = edges_of(state, mesh)
    assert closed
    assert simulation.system.jumps[0].counts.accepted > 20
    # Vertices hardly move by themselves.
    assert np.abs(after - before)[..., :2].max() < 1e-4


# A refusal of what comes from outside ---------------------------------------------------------------------------------

LONG = "more than half of the box"


def test_positions_and_boxes_from_outside_are_refused():
    _ball, simulation = octahedron(3.0)
    context = simulation.context
    before = context.get_state(positions=True, velocities=True)
    with pytest.raises(TopologyError, match=rf"set_positions: 'ball': the edge of beads \d and \d, in .*{LONG}"):
        context.set_positions(before.positions * 1.4)
    refuses(TopologyError, rf"set_box: 'ball': .*{LONG}", context.set_box, (SIDE, 5.0, SIDE), scale=False)
    context.set_box((SIDE, 5.0, SIDE))
    context.set_box((SIDE, SIDE, SIDE))
    x = context.get_state(positions=True).positions
    assert np.abs(x - before.positions).max() < 1e-12
    # A state of a run in another box.
    other = octahedron(3.9)[1].context
    state = other.get_state(positions=True, velocities=True)
    context.set_state(state)
    torn = sheet(barostat=False).context
    x = torn.get_state(positions=True).positions.copy()
    x[5] += [1.3, 0.0, 0.0]
    refuses(TopologyError, rf"set_positions: 'sheet': .*{LONG}", torn.set_positions, x)
    # Other images of vertices of a sheet that closes through the box are the same sheet.
    x[5] += [2.7, 4.0, 0.0]
    torn.set_positions(x)


def test_states_are_refused_whole():
    simulation = sheet(barostat=False)
    context = simulation.context
    simulation.step(5)
    good = context.get_state(positions=True, velocities=True)
    bad = context.get_state(positions=True, velocities=True)
    x = bad.positions.copy()
    x[5] += [1.3, 0.0, 0.0]
    object.__setattr__(bad, "_parts", {**bad._parts, "positions": x})
    refuses(TopologyError, LONG, context.set_state, bad)
    now = context.get_state(positions=True, velocities=True)
    assert np.array_equal(now.positions, good.positions)
    assert np.array_equal(now.velocities, good.velocities)


def test_systems_of_meshes_that_are_too_wide_are_refused():
    refuses(TopologyError, rf"System: 'ball': .*{LONG}", octahedron, 4.1)


def test_flips_by_hand_make_no_edge_beyond_half_of_the_box():
    mesh = mp.TriangleMesh.flat_sheet(3, 6, 1.0, periodic=True)
    x = mesh.vertices + np.random.default_rng(2).uniform(-0.1, 0.1, mesh.vertices.shape)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh.with_vertices(x), vertex_mass=1.0, name="sheet")
    context = mp.Context(mp.System(topology, box=mesh.box), mp.VerletIntegrator(0.01), threads=1)
    refused = made = 0
    for edge in mesh.edges:
        try:
            new = context.flip_edges(membrane, [edge])
        except TopologyError as error:
            refused += LONG in str(error)
        else:
            assert edges_of(context.get_state(positions=True), mesh)[1]
            context.flip_edges(membrane, new)
            made += 1
        assert np.array_equal(context.get_state(positions=True).faces["sheet"], mesh.faces)
    assert made > 5
    assert refused > 5


def test_the_minimiser_says_so_too():
    ball, simulation = octahedron(2.0)
    with simulation.topology.edit():
        simulation.system.add_force(mp.forces.HarmonicTrap(ball, -1.0 + 2.0, 6.0 * ball.mesh.vertices))
    refuses(SimulationError, LONG, simulation.minimize_energy)
    x = simulation.context.get_state(positions=True).positions
    assert np.abs(x).max() <= 4.0


def test_ramps_of_the_box_keep_the_sheet_whole():
    simulation = sheet("BAB", barostat=False, stiffness=30.0)
    mesh = simulation.topology["sheet"].mesh
    x, y, _ = simulation.context.get_state().box
    simulation.ramp("box", x=(x, 1.6 * x), y=(y, 0.8 * y), steps=200)
    assert edges_of(simulation.context.get_state(positions=True), mesh)[1]


# Cost -----------------------------------------------------------------------------------------------------------------


def test_edges_are_seldom_looked_at():
    """All of them: where no vertex has gone far, nothing can have happened."""
    mesh = mp.TriangleMesh.flat_sheet(16, 16, 1.0, periodic=True)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
    context = mp.Context(system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 60.0), box=mesh.box),
                         mp.BAGOGABIntegrator(0.02, kT=1.0, seed=1), threads=1)  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.step(1000)
    assert 1 < context._store.box_edges.looks < 400
