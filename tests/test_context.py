"""Topology, System, Context, State, Simulation: what they give, and what they refuse."""

import gc

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import units


@pytest.fixture
def scene():
    """Points, beads, two membranes and balls, added in an order that is not the internal one."""
    topology = mp.Topology()
    first = topology.add_beads([[0.0, 0, 0], [1.0, 2.0, 3.0]], mass=[1.0, 2.0], friction=0.1)
    sphere = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0, vertex_friction=0.3, name="cell")
    points = topology.add_intriangle_points(sphere, 20, mass=0.5, friction=0.2, seed=1)
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(4, 4, 2.0), vertex_mass=2.0, fixed=True, name="floor")
    others = topology.add_intriangle_points(sheet, 10, mass=0.25, friction=0.4, seed=2, name="crawlers")
    balls = topology.add_balls([[9.0, 9, 9]], radius=1.5, mass=4.0, friction=0.5)
    return topology, first, sphere, points, sheet, others, balls


def test_handles_number_their_beads_in_the_order_added(scene):
    topology, *handles = scene
    assert (np.concatenate([h.beads for h in handles]) == np.arange(topology.n_beads)).all()
    assert [h.name for h in handles] == ["beads", "cell", "points", "floor", "crawlers", "balls"]
    assert [h.kind.name for h in handles] == ["beads", "vertices", "points", "vertices", "points", "balls"]
    assert topology.handle_of(handles[3].beads[2]) is handles[3]
    assert "20 points of 'points'" in repr(topology)


def test_a_state_is_in_topology_order(scene):
    topology, first, sphere, points, sheet, others, balls = scene
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    state = context.get_state(positions=True, velocities=True)
    assert (state.positions[first.beads] == [[0.0, 0, 0], [1.0, 2.0, 3.0]]).all()
    assert (state.positions[sphere.beads] == sphere.mesh.vertices).all()
    assert (state.positions[sheet.beads] == sheet.mesh.vertices).all()
    assert (state.positions[balls.beads] == 9.0).all()
    for handle in (points, others):
        np.testing.assert_allclose(state.positions[handle.beads], handle.positions, atol=1e-14)
        assert (state.intriangle.triangles[handle.points] == handle.triangles).all()
        np.testing.assert_allclose(state.intriangle.barycentric[handle.points], handle.barycentric, atol=1e-16)
    assert state.time == 0.0
    assert not state.positions.flags.writeable


def test_mass_and_friction_follow_their_beads(scene):
    topology, *_ = scene
    rng = np.random.default_rng(1)
    mass = rng.uniform(1.0, 2.0, 30)
    sphere = scene[2]
    heavy = topology.add_intriangle_points(sphere, 30, mass=mass, friction=mass[::-1], seed=9)
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(0.1, kT=1.0), threads=1)
    places = context.layout.rank[heavy.beads]
    assert (context._store.mass[places] == mass).all()
    c1 = context._schedule.coefficient_arrays()["c1"]
    np.testing.assert_allclose(c1[places], np.exp(-0.1 * mass[::-1] / mass), rtol=1e-15)


def test_parts_not_asked_for_are_named(scene):
    context = mp.Context(mp.System(scene[0]), mp.VerletIntegrator(0.1), threads=1)
    state = context.get_state()
    for name, keyword in (
        ("positions", "positions"),
        ("velocities", "velocities"),
        ("forces", "forces"),
        ("energies", "energy"),
        ("intriangle", "positions"),
    ):
        refuses(mp.ParameterError, rf"holds no {name}.*get_state\({keyword}=True\)", getattr, state, name)


def test_set_positions_leaves_points_in_their_triangles(scene):
    topology, first, sphere, points, _sheet, others, _balls = scene
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    before = context.get_state(positions=True)
    x = before.positions + [1.0, -2.0, 0.5]
    x[points.beads] = 1e6
    context.set_positions(x)
    after = context.get_state(positions=True)
    np.testing.assert_allclose(after.positions[points.beads], before.positions[points.beads] + [1.0, -2.0, 0.5])
    np.testing.assert_allclose(after.positions[others.beads], before.positions[others.beads] + [1.0, -2.0, 0.5])
    assert (after.positions[first.beads] == x[first.beads]).all()
    assert (after.intriangle.triangles == before.intriangle.triangles).all()
    assert len(sphere.beads) == 42


def test_set_intriangle_moves_points(scene):
    topology, _, sphere, points, sheet, others, _ = scene
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    triangles = np.concatenate([np.full(20, 7), np.full(10, 3)])
    weights = np.tile([0.2, 0.3, 0.5], (30, 1))
    context.set_intriangle(triangles, weights)
    state = context.get_state(positions=True)
    expected = np.array([0.2, 0.3, 0.5]) @ sphere.mesh.vertices[sphere.mesh.faces[7]]
    np.testing.assert_allclose(state.positions[points.beads], np.tile(expected, (20, 1)), atol=1e-14)
    expected = np.array([0.2, 0.3, 0.5]) @ sheet.mesh.vertices[sheet.mesh.faces[3]]
    np.testing.assert_allclose(state.positions[others.beads], np.tile(expected, (10, 1)), atol=1e-14)


def test_velocities_of_points_are_projected_and_those_of_fixed_beads_are_zero(scene):
    topology, first, _, points, sheet, others, _ = scene
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    context.set_velocities(np.full((topology.n_beads, 3), 2.0))
    state = context.get_state(positions=True, velocities=True)
    assert (state.velocities[first.beads] == 2.0).all()
    assert (state.velocities[sheet.beads] == 0.0).all()
    np.testing.assert_allclose(state.velocities[others.beads], np.tile([2.0, 2.0, 0.0], (10, 1)), atol=1e-15)
    normal = points.membrane.mesh.face_normals[points.triangles]
    full = np.full((20, 3), 2.0)
    np.testing.assert_allclose(state.velocities[points.beads],
                               full - np.einsum("ij,ij->i", full, normal)[:, None] * normal, atol=1e-13)  # fmt: skip


def test_set_state_carries_everything_over(scene):
    def make():
        system = mp.System(scene[0])
        return mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0, seed=3), threads=1)

    context = make()
    context.set_velocities_to_temperature(kT=1.0, seed=1)
    context.step(20)
    state = context.get_state(positions=True, velocities=True)
    other = make()
    other.set_state(state)
    assert other.step_count == 20
    again = other.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(again.velocities, state.velocities, rtol=1e-14, atol=1e-15)
    assert (again.positions == state.positions).all()


def test_degrees_of_freedom_and_temperature(scene):
    """3 for beads, vertices and balls, 2 for points, 0 for what is fixed."""
    topology, first, sphere, points, sheet, others, balls = scene
    assert [h.degrees_of_freedom for h in (first, sphere, points, sheet, others, balls)] == [6, 126, 40, 0, 20, 3]
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    context.set_velocities_to_temperature(300.0, seed=5)
    state = context.get_state(energy=True)
    assert set(state.temperatures) == {"beads", "cell", "points", "crawlers", "balls"}
    for handle in (first, sphere, points, others, balls):
        expected = 2.0 * state.kinetic_energies[handle.name] / (handle.degrees_of_freedom * units.boltzmann)
        assert state.temperatures[handle.name] == pytest.approx(expected)
    assert state.temperature == pytest.approx(2.0 * state.kinetic_energy / (195 * units.boltzmann))


def test_conserved_momentum_is_not_a_temperature():
    """Without friction, walls and fields the total momentum never relaxes: it and its energy are left out."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0]], mass=[1.0, 2.0, 3.0])
    context = mp.Context(system_with(topology, mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0)),
                         mp.VerletIntegrator(0.1), threads=1)  # fmt: skip
    v = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])
    context.set_velocities(v + [100.0, 0.0, -50.0])
    mass = beads.mass[:, None]
    relative = v - (mass * v).sum(axis=0) / mass.sum()
    expected = (mass * relative**2).sum() / (6 * units.boltzmann)
    assert context.get_state(energy=True).temperature == pytest.approx(expected)


def test_one_free_bead_has_no_temperature():
    """Nothing is left of its three degrees of freedom."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    context.set_velocities([[1.0, 2.0, 3.0]])
    assert np.isnan(context.get_state(energy=True).temperature)


# Freezing and changing ---------------------------------------------------------------------------------------


def spring_system():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0]], mass=1.0)
    system = mp.System(topology)
    return topology, system, system.add_force(mp.forces.HarmonicBonds([[0, 1]], stiffness=1.0, length=1.0))


def test_a_context_freezes_topology_and_list_of_forces_while_it_lives():
    topology, system, force = spring_system()
    context = mp.Context(system, mp.VerletIntegrator(0.1))
    refuses(mp.TopologyError, "in use by a Context", topology.add_beads, [[0.0, 0, 0]], mass=1.0)
    with pytest.raises(mp.TopologyError, match=r"in use by a Context.*force\.set"):
        system.add_force(mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0))
    refuses(mp.TopologyError, "in use by a Context", system.remove_force, force)
    del context
    gc.collect()
    system.remove_force(force)
    topology.add_beads([[0.0, 0, 0]], mass=1.0)


def test_numbers_of_a_force_are_followed_at_once():
    _, system, force = spring_system()
    context = mp.Context(system, mp.VerletIntegrator(0.1))
    assert context.get_state(energy=True).potential_energy == pytest.approx(0.5)
    force.set(stiffness=3.0)
    assert context.get_state(energy=True).potential_energy == pytest.approx(1.5)
    force.set(length=2.5, stiffness=4.0)
    assert context.get_state(energy=True).energies == {"HarmonicBonds": pytest.approx(0.5)}
    assert context.get_state(forces=True).forces[0, 0] == pytest.approx(-2.0)
    context.step(1)
    force.set(
        length=context.get_state(positions=True).positions[1, 0] - context.get_state(positions=True).positions[0, 0]
    )
    assert context.get_state(energy=True).potential_energy == pytest.approx(0.0, abs=1e-20)


def test_a_refused_number_changes_nothing():
    _, system, force = spring_system()
    context = mp.Context(system, mp.VerletIntegrator(0.1))
    for bad, message in (
        ({"stiffness": -1.0}, r"HarmonicBonds: stiffness = -1.0 but must be finite and >= 0"),
        ({"stiffness": [1.0, 2.0]}, r"must be a number or have shape \(1,\), not \(2,\)"),
        ({"length": np.nan}, "length = nan but must be finite"),
        ({"k": 1.0}, "'k' cannot be set; stiffness, length can"),
    ):
        refuses(mp.ParameterError, message, force.set, **bad)
    assert force.version == 0
    assert context.get_state(energy=True).potential_energy == pytest.approx(0.5)


def test_names_of_equal_forces_are_told_apart():
    topology, system, force = spring_system()
    system.add_force(mp.forces.HarmonicBonds([[0, 1]], 2.0, 1.0))
    system.add_force(mp.forces.HarmonicBonds([[0, 1]], 4.0, 1.0, name="strong"))
    state = mp.Context(system, mp.VerletIntegrator(0.1)).get_state(energy=True)
    assert state.energies == pytest.approx({"HarmonicBonds": 0.5, "HarmonicBonds 2": 1.0, "strong": 2.0})
    with pytest.raises(mp.ParameterError, match="in this system already"):
        mp.System(topology).add_force(force) and system.add_force(force)


# Bad input ---------------------------------------------------------------------------------------------------

ICOSAHEDRON = mp.TriangleMesh.icosphere(1.0, 0)


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda t: t.add_beads([0.0, 1.0], mass=1.0), mp.TopologyError, r"shape \(n, 3\), not \(2,\)"),
    (lambda t: t.add_beads([[0.0, 1.0]], mass=1.0), mp.TopologyError, r"shape \(n, 3\), not \(1, 2\)"),
    (lambda t: t.add_beads([], mass=1.0), mp.TopologyError, r"\(n, 3\)"),
    (lambda t: t.add_beads(np.zeros((0, 3)), mass=1.0), mp.TopologyError, "nothing to add"),
    (lambda t: t.add_beads("here", mass=1.0), mp.TopologyError, "must be an array"),
    (lambda t: t.add_beads([[0, 0, np.nan]], mass=1.0), mp.TopologyError, r"positions\[0, 2\] = nan"),
    (lambda t: t.add_beads([[0, 0, 0]], mass=0.0), mp.ParameterError, "mass = 0.0 but must be finite and > 0"),
    (lambda t: t.add_beads([[0, 0, 0]] * 2, mass=[1, -2]), mp.ParameterError, r"mass\[1\] = -2.0 but must be"),
    (lambda t: t.add_beads([[0, 0, 0]] * 2, mass=[1, 1, 1]), mp.ParameterError, r"shape \(2,\), not \(3,\)"),
    (lambda t: t.add_beads([[0, 0, 0]], 1.0, friction=-1.0), mp.ParameterError, "friction = -1.0 .*>= 0"),
    (lambda t: t.add_beads([[0, 0, 0]], 1.0, friction=np.inf), mp.ParameterError, "friction = inf"),
    (lambda t: t.add_balls([[0, 0, 0]], radius=0.0, mass=1.0), mp.ParameterError, "radius = 0.0 .*> 0"),
    (lambda t: t.add_membrane(ICOSAHEDRON.vertices, 1.0), mp.TopologyError, "must be a TriangleMesh"),
    (lambda t: t.add_membrane(ICOSAHEDRON, -1.0), mp.ParameterError, "vertex_mass = -1.0"),
    (lambda t: t.add_beads([[0, 0, 0]], 1.0, name="cell"), mp.TopologyError, "'cell' is in use"),
])  # fmt: skip
def test_refusals_when_beads_are_added(build, error, message):
    topology = mp.Topology()
    topology.add_membrane(ICOSAHEDRON, vertex_mass=1.0, name="cell")
    refuses(error, message, build, topology)
    assert topology.n_beads == 12


def test_weights_on_edges_stay_there():
    """Also where rounding makes the other two more than 1 together: no weight is below 0 when the first is what they
    leave, and none moves by more than round-off."""
    topology = mp.Topology()
    membrane = topology.add_membrane(ICOSAHEDRON, vertex_mass=1.0)
    part = np.random.default_rng(3).uniform(size=2000)
    given = np.column_stack([np.zeros(2000), part, (1.0 - part) * (1.0 + 2.0**-52)])
    assert ((1.0 - given[:, 1]) - given[:, 2] < 0.0).sum() > 500
    points = topology.add_intriangle_points(membrane, triangles=np.zeros(2000, int), barycentric=given, mass=1.0)
    weights = points.barycentric
    assert (weights >= 0.0).all()
    assert (weights[:, 0] == (1.0 - weights[:, 1]) - weights[:, 2]).all()
    np.testing.assert_allclose(weights, given, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ({}, mp.ParameterError, "give either n, or both"),
    ({"n": 3, "triangles": [0], "barycentric": [[1, 0, 0]]}, mp.ParameterError, "give either n, or both"),
    ({"triangles": [0]}, mp.ParameterError, "give either n, or both"),
    ({"n": 0}, mp.ParameterError, "n = 0 but must be a whole number >= 1"),
    ({"n": 2.5}, mp.ParameterError, "n = 2.5 but must be a whole number"),
    ({"n": 3, "seed": -1}, mp.ParameterError, "seed = -1"),
    ({"triangles": [20], "barycentric": [[1, 0, 0]]}, mp.TopologyError, r"triangles\[0\] = 20 .* 0 to 19"),
    ({"triangles": [-1], "barycentric": [[1, 0, 0]]}, mp.TopologyError, r"triangles\[0\] = -1"),
    ({"triangles": [0.5], "barycentric": [[1, 0, 0]]}, mp.TopologyError, "must hold integers"),
    ({"triangles": [0, 1], "barycentric": [[1, 0, 0]]}, mp.TopologyError, r"shape \(2, 3\), not \(1, 3\)"),
    ({"triangles": [0, 4], "barycentric": [[1, 0, 0], [0.6, 0.6, -0.2]]}, mp.TopologyError,
     "point 1 lies outside its triangle 4"),
    ({"triangles": [0], "barycentric": [[0.5, 0.2, 0.2]]}, mp.TopologyError, "weights must be >= 0 with sum 1"),
    ({"n": 1, "mass": 0.0}, mp.ParameterError, "mass = 0.0"),
])  # fmt: skip
def test_points_that_cannot_be_added(arguments, error, message):
    topology = mp.Topology()
    membrane = topology.add_membrane(ICOSAHEDRON, vertex_mass=1.0)
    refuses(error, message, topology.add_intriangle_points, membrane, **{"mass": 1.0, **arguments})
    assert topology.n_beads == 12


def test_handles_of_another_topology_are_refused():
    ours, theirs = mp.Topology(), mp.Topology()
    for t in (ours, theirs):
        t.add_membrane(ICOSAHEDRON, vertex_mass=1.0)
    refuses(mp.TopologyError, "belongs to another topology", ours.add_intriangle_points, theirs.handles[0], 1, mass=1.0)
    with pytest.raises(mp.TopologyError, match="belongs to another topology"):
        mp.System(ours).add_force(mp.forces.MembraneEdgeSprings(theirs.handles[0], 1.0))
    refuses(mp.TopologyError, "must be the handle of a membrane", ours.add_intriangle_points, ICOSAHEDRON, 1, mass=1.0)
    refuses(mp.TopologyError, "must be the handle of a membrane", mp.forces.MembraneEdgeSprings, ours, 1.0)


def test_bonds_that_cannot_be():
    refuses(mp.TopologyError, "bond 1 joins bead 3 to itself", mp.forces.HarmonicBonds, [[0, 1], [3, 3]], 1.0, 1.0)
    with pytest.raises(mp.TopologyError, match=r"pairs must have shape \(n, 2\), not \(3,\)"):
        mp.forces.HarmonicBonds([0, 1, 2], 1.0, 1.0)
    refuses(mp.TopologyError, "must hold integers", mp.forces.HarmonicBonds, [[0.0, 1.0]], 1.0, 1.0)
    with pytest.raises(mp.ParameterError, match=r"group = 32 but must be a whole number >= 0 and <= 31"):
        mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0, group=32)
    _, system, _ = spring_system()
    system.add_force(mp.forces.HarmonicBonds([[0, 1], [1, 2]], 1.0, 1.0))
    with pytest.raises(mp.TopologyError, match=r"term 1 names beads \[1, 2\], but the topology has beads 0 to 1"):
        mp.Context(system, mp.VerletIntegrator(0.1))


def test_refusals_of_a_context():
    _, system, _ = spring_system()
    refuses(mp.TopologyError, "no beads", mp.Context, mp.System(mp.Topology()), mp.VerletIntegrator(0.1))
    refuses(mp.ParameterError, "must be a System", mp.Context, mp.Topology(), mp.VerletIntegrator(0.1))
    refuses(mp.ParameterError, "must be an integrator", mp.Context, system, 0.1)
    refuses(mp.ParameterError, "threads = 0", mp.Context, system, mp.VerletIntegrator(0.1), threads=0)
    context = mp.Context(system, mp.VerletIntegrator(0.1))
    for method in (context.set_positions, context.set_velocities):
        refuses(mp.TopologyError, r"shape \(2, 3\), not \(3, 3\)", method, np.zeros((3, 3)))
        refuses(mp.TopologyError, r"\[1, 0\] = inf but must be finite", method, [[0, 0, 0], [np.inf, 0, 0]])
    refuses(mp.ParameterError, "give temperature", context.set_velocities_to_temperature)
    refuses(mp.ParameterError, "temperature = -1", context.set_velocities_to_temperature, -1.0)
    for n in (-1, 0.5, None):
        refuses(mp.ParameterError, "step: n = ", context.step, n)
    assert (context.get_state(positions=True).positions == [[0.0, 0, 0], [2.0, 0, 0]]).all()


# Blowing up --------------------------------------------------------------------------------------------------


class Witness(mp.reporters.Reporter):
    """Counts what a Simulation does with a reporter."""

    def __init__(self, interval, include=()):
        super().__init__(interval)
        self.include = include
        self.steps = []
        self.flushed = self.closed = 0

    def report(self, simulation, state):
        self.steps.append(state.step)

    def flush(self):
        self.flushed += 1

    def close(self):
        self.closed += 1


@pytest.mark.unstable
def test_a_run_that_blows_up_names_step_bead_object_and_force_after_flushing():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [5.0, 0, 0], [9.0, 0, 0]], mass=1.0)
    system = system_with(topology, mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0, name="soft"),
                         mp.forces.HarmonicBonds([[2, 3]], 1e30, 1.0, name="stiff"))  # fmt: skip
    simulation = mp.Simulation(system, mp.VerletIntegrator(1.0))
    # It shall overflow; what else ends a run that blows up is in test_runaway.py.
    simulation.context.runaway = None
    witness = Witness(1)
    simulation.reporters.append(witness)
    with pytest.raises(mp.SimulationError,
                       match=r"step \d+, bead \d \('beads', beads\), force stiff: .*timestep") as caught:  # fmt: skip
        simulation.step(1000)
    error = caught.value
    assert error.step == simulation.current_step == witness.steps[-1]
    assert error.force == "stiff"
    assert error.object == beads.name
    assert error.bead == beads.beads[2]
    assert witness.flushed >= 1
    assert isinstance(error, RuntimeError)


# Simulation --------------------------------------------------------------------------------------------------


def test_reporters_fire_at_multiples_of_their_interval():
    _, system, _ = spring_system()
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1))
    every_3, every_5 = Witness(3), Witness(5, ("energy",))
    simulation.reporters += [every_3, every_5]
    simulation.step(7)
    simulation.step(0)
    simulation.step(9)
    assert every_3.steps == [3, 6, 9, 12, 15]
    assert every_5.steps == [5, 10, 15]
    with simulation:
        pass
    assert every_3.closed == every_5.closed == 1


def test_reporters_that_are_due_share_one_state():
    _, system, _ = spring_system()
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1))
    seen = []

    class Keeper(Witness):
        def report(self, simulation, state):
            seen.append(state)

    simulation.reporters += [Keeper(2, ("positions",)), Keeper(2, ("energy",))]
    simulation.step(2)
    assert seen[0] is seen[1]
    assert seen[0].has("positions")
    assert seen[0].has("energies")
    assert not seen[0].has("velocities")


def test_checkpoints_come_after_all_other_reports_of_their_step(tmp_path):
    _, system, _ = spring_system()
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1))
    seen = []

    class Watcher(Witness):
        def report(self, simulation, state):
            seen.append((tmp_path / "run.checkpoint").exists())

    simulation.reporters += [mp.reporters.CheckpointReporter(tmp_path / "run.checkpoint", 2), Watcher(2)]
    simulation.step(2)
    assert seen == [False]
    assert (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize("interval", [0, -1, 1.5, "often"])
def test_intervals_are_whole_and_positive(interval):
    refuses(mp.ParameterError, "Witness: interval = ", Witness, interval)


def test_minimisation_finds_the_minimum_and_keeps_velocities_and_step():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [0.1, 0.2, 0.3]], mass=[1.0, 2.0, 3.0])
    system = system_with(topology, mp.forces.HarmonicBonds([[0, 1], [1, 2], [0, 2]], [1.0, 2.0, 50.0], [1.0, 1.0, 1.2]))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1))
    v = np.arange(9.0).reshape(3, 3)
    simulation.context.set_velocities(v)
    left = simulation.minimize_energy(tolerance=1e-9)
    state = simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)
    assert left <= 1e-9
    assert np.abs(state.forces).max() <= 1e-9
    assert state.potential_energy < 1e-15
    assert (state.velocities == v).all()
    assert state.step == 0


def test_minimisation_slides_points_over_the_mesh():
    """A point tied to a bead outside a sphere ends where the sphere is closest to it, several triangles away."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 3), vertex_mass=1.0, fixed=True)
    bead = topology.add_membrane(mp.TriangleMesh([[0.0, 0, 8.0], [1.0, 0, 9.0], [0, 1.0, 9.0]], [[0, 1, 2]]),
                                 vertex_mass=1.0, fixed=True)  # fmt: skip
    point = topology.add_intriangle_points(
        membrane,
        triangles=[int(np.argmin(np.linalg.norm(membrane.mesh.vertices[membrane.mesh.faces].mean(1) - [5, 0, 0],
                                                axis=1)))], barycentric=[[1 / 3] * 3], mass=1.0
    )  # fmt: skip
    system = system_with(topology, mp.forces.HarmonicBonds([[point.beads[0], bead.beads[0]]], 1.0, 0.0))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.1))
    # There is a kink where edges meet: pushed against it from all sides, the point is at rest.
    assert simulation.minimize_energy(tolerance=1e-2, max_iterations=2000).converged
    x = simulation.context.get_state(positions=True).positions[point.beads[0]]
    assert np.linalg.norm(x - [0.0, 0.0, 5.0]) < 0.5


@pytest.mark.parametrize(
    ("given", "message"), [({"tolerance": 0.0}, "tolerance"), ({"max_iterations": -1}, "max_iter")]
)
def test_minimisation_refuses(given, message):
    _, system, _ = spring_system()
    refuses(mp.ParameterError, message, mp.Simulation(system, mp.VerletIntegrator(0.1)).minimize_energy, **given)
