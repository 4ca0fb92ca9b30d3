"""Edges that are flipped: runs, states, files and pictures follow, and what is refused."""

import pickle

import numpy as np
import pytest
from builders import look, refuses
from jumps.flipping import (
    KT,
    MESHES,
    SLOW,
    built,
    context_of,
    copied,
    edges_of,
    flip_at_random,
    refused,
    rough,
    same,
)

import medyanpy as mp
from medyanpy.errors import ContextInUseError, ParameterError, TopologyError


def test_a_run_with_flips_has_the_same_bits_on_any_threads_and_after_a_restart(tmp_path):
    system, sheet = built(rough(mp.TriangleMesh.icosphere(80.0, 3)), points=3000)

    def run(simulation, first, last):
        for k in range(first, last):
            flip_at_random(simulation.context, sheet, 6, seed=k)
            simulation.step(7)

    def made(threads):
        return mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2), threads=threads)

    one = made(1)
    run(one, 0, 6)
    for threads in (2, 3):
        other = made(threads)
        run(other, 0, 3)
        other.save_checkpoint(tmp_path / "run.checkpoint")
        run(other, 3, 6)
        assert same(look(one.context), look(other.context))
    again = made(2)
    again.load_checkpoint(tmp_path / "run.checkpoint")
    run(again, 3, 6)
    assert same(look(one.context), look(again.context))
    resumed = mp.Simulation.resume(tmp_path / "run.checkpoint")
    sheet = resumed.topology["sheet"]
    run(resumed, 3, 6)
    assert same(look(one.context), look(resumed.context))


def test_two_contexts_do_not_see_each_other():
    system, sheet = built(MESHES["closed"])
    one, other = context_of(system), context_of(system)
    before = look(other)
    flip_at_random(one, sheet, 50)
    one.step(10)
    assert same(before, look(other))
    assert same(look(context_of(system)), before)


@SLOW
def test_flips_are_protocol_work():
    system, sheet = built(rough(MESHES["closed"], by=0.1), points=500)
    context = context_of(system)
    context.report_work = True
    start = look(context)
    done = flip_at_random(context, sheet, 30)
    assert done
    state = look(context)
    assert state.protocol_work == pytest.approx(state.total_energy - start.total_energy, rel=1e-12)
    assert state.heat == 0.0
    context.step(20)
    state = look(context)
    terms = state.heat, state.shadow_work, state.protocol_work
    assert sum(terms) == pytest.approx(state.total_energy - start.total_energy, abs=1e-12 * max(map(abs, terms)) + 1e-9)


def test_a_state_whose_triangles_are_none_changes_nothing():
    system, _ = built(MESHES["closed"])
    context = context_of(system)
    before = look(context)
    state = pickle.loads(pickle.dumps(look(context)))
    faces = state.faces["sheet"].copy()
    faces[3] = faces[4]
    state._parts["faces"] = state.faces | {"sheet": faces}
    refuses(TopologyError, "the triangles of 'sheet' are none", context.set_state, state)
    assert same(before, look(context))


def test_a_state_that_cannot_be_taken_leaves_triangles_as_they_are():
    system, sheet = built(MESHES["closed"])
    context, other = context_of(system), context_of(system)
    before = look(context)
    flip_at_random(other, sheet, 40)
    state = pickle.loads(pickle.dumps(look(other)))
    state._parts["velocities"] = np.zeros((3, 3))
    refuses(TopologyError, "velocities must have shape", context.set_state, state)
    after = look(context)
    assert (before.faces["sheet"] == after.faces["sheet"]).all()
    assert before.energies == after.energies
    assert (before.forces == after.forces).all()


def test_a_checkpoint_from_before_brings_back_the_mesh(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.save_checkpoint(tmp_path / "start.checkpoint")
    before = look(simulation.context)
    flip_at_random(simulation.context, sheet, 80)
    simulation.load_checkpoint(tmp_path / "start.checkpoint")
    assert same(before, look(simulation.context))


def test_an_edit_leaves_triangles_as_they_are():
    system, sheet = built(rough(MESHES["closed"]))
    context = context_of(system)
    flip_at_random(context, sheet, 80)
    before = look(context)
    alone = copied(context, system)
    topology = system.topology
    del alone
    with topology.edit():
        far = mp.TriangleMesh.icosphere(10.0, 1).translated([900.0, 0, 0])
        topology.add_membrane(far, vertex_mass=1e-12, vertex_friction=1e-6, name="new")
    after = look(context)
    n = len(before.positions)
    assert (after.positions[:n] == before.positions).all()
    assert (after.forces[:n] == before.forces).all()
    assert (after.faces["sheet"] == before.faces["sheet"]).all()
    assert len(after.faces["new"]) == 80
    assert flip_at_random(context, sheet, 40)
    assert flip_at_random(context, topology["new"], 40)
    assert same(look(context), look(copied(context, system)))


def test_the_minimiser_follows():
    system, sheet = built(rough(MESHES["closed"]), points=0)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    flip_at_random(simulation.context, sheet, 40)
    before = look(simulation.context)
    with pytest.warns(mp.errors.ConvergenceWarning):
        simulation.minimize_energy(max_iterations=20)
    after = look(simulation.context)
    assert after.potential_energy < before.potential_energy
    assert (after.faces["sheet"] == before.faces["sheet"]).all()
    assert same(after, look(copied(simulation.context, system)))


def test_the_last_good_state_has_its_triangles():
    system, sheet = built(rough(MESHES["closed"]), points=0)
    armed = []

    def broken(x):
        return 0.0, np.full_like(x, np.nan if armed else 0.0)

    system.add_force(mp.forces.PythonForce(broken, replay=False, name="broken"))
    context = context_of(system)
    context.step(5)
    flip_at_random(context, sheet, 40)
    before = look(context)
    armed.append(True)
    with pytest.raises(mp.errors.SimulationError):
        context.step(50)
    armed.clear()
    assert same(before, look(context))
    context.step(5)
    assert same(look(context), look(copied(context, system)))


# Files and pictures ---------------------------------------------------------------------------------------------------


def test_frames_hold_the_triangles_of_their_time(tmp_path):
    system, sheet = built(rough(MESHES["closed"]))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2, faces=True))
    seen = []
    for k in range(4):
        simulation.step(2)
        seen.append(look(simulation.context).faces)
        flip_at_random(simulation.context, sheet, 10, seed=k)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert (trajectory.faces["sheet"] == sheet.mesh.faces).all()
        for frame, faces in zip(trajectory, seen, strict=True):
            assert all((frame.faces[name] == faces[name]).all() for name in faces)
        assert (trajectory[0].faces["sheet"] != trajectory[-1].faces["sheet"]).any()
        assert trajectory.read("faces of sheet").shape == (4, *sheet.mesh.faces.shape)


def test_a_trajectory_begun_without_triangles_says_so(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2, faces=False))
    simulation.step(2)
    flip_at_random(simulation.context, sheet, 10)
    refuses(ParameterError, r"edges have been flipped since .*run.h5 was begun.*faces=True", simulation.step, 2)
    assert simulation.current_step == 2
    simulation.reporters.clear()
    # One that is begun now holds them unasked; and appending goes on with what there is.
    for append in (False, True):
        reporter = mp.reporters.TrajectoryReporter(tmp_path / "other.h5", 2, append=append)
        simulation.reporters.append(reporter)
        simulation.step(2)
        reporter.close()
        simulation.reporters.clear()
        flip_at_random(simulation.context, sheet, 10, seed=9)
    with mp.Trajectory(tmp_path / "other.h5") as trajectory:
        assert len(trajectory) == 2
        assert (trajectory[0].faces["sheet"] != trajectory[1].faces["sheet"]).any()


def test_the_first_flip_begins_a_segment_with_triangles(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    simulation.save_checkpoint(tmp_path / "start")
    seen = []
    for k in range(4):
        simulation.step(2)
        seen.append(look(simulation.context))
        if k % 2:
            flip_at_random(simulation.context, sheet, 10, seed=k)
    simulation.reporters[0].flush()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert [path.name for path in trajectory.paths] == ["run.h5", "run.part0002.h5"]
        for frame, state in zip(trajectory, seen, strict=True):
            assert (frame.faces["sheet"] == state.faces["sheet"]).all()
            assert (frame.positions == state.positions).all()
        assert (trajectory[1].faces["sheet"] != trajectory[2].faces["sheet"]).any()
        faces = trajectory.read("faces of sheet")
        assert (faces[:2] == -1).all()
        assert (faces[3] == seen[3].faces["sheet"]).all()
    # Back to where there were none.
    simulation.load_checkpoint(tmp_path / "start")
    simulation.step(4)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [2, 4]
        assert all((frame.faces["sheet"] == sheet.mesh.faces).all() for frame in trajectory)
        assert (trajectory[1].positions == seen[1].positions).all()


def test_areas_and_volumes_of_tables_are_those_of_now(tmp_path):
    system, sheet = built(rough(MESHES["closed"], by=0.1), points=0, before=False)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    flip_at_random(simulation.context, sheet, 60)
    with mp.reporters.StateDataReporter(tmp_path / "state.csv", 1, area=True, volume=True) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(1)
    state = look(simulation.context)
    now = mp.TriangleMesh(state.positions[sheet.beads], state.faces["sheet"])
    area, volume = np.loadtxt(tmp_path / "state.csv", delimiter=",", skiprows=1)[-2:]
    assert area == pytest.approx(now.area, rel=1e-12)
    assert volume == pytest.approx(now.volume, rel=1e-12)
    assert abs(area - mp.TriangleMesh(now.vertices, sheet.mesh.faces).area) > 1.0


def test_pictures_follow(tmp_path):
    from medyanpy.visualize.scene import scene_of

    system, sheet = built(rough(MESHES["closed"], by=0.1))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, faces=True))
    flip_at_random(simulation.context, sheet, 60)
    simulation.step(1)
    simulation.close()
    state = look(simulation.context)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for what in (simulation, simulation.context, trajectory[0]):
            part = next(part for part in scene_of(what, {}).parts if part.name == "sheet")
            assert (part.faces == state.faces["sheet"]).all()


def test_needles_are_those_of_now():
    """A flip can make one at once: the look after the next run sees it."""
    mesh = mp.TriangleMesh.flat_sheet(11, 11, 10.0)
    x = mesh.vertices.copy()
    # A vertex almost on the line between two others that a flip will join.
    system, sheet = built(mesh, points=0, forces=lambda sheet: (), before=False)
    context = context_of(system)
    e = int(np.argmax(mesh.edge_lengths * (mesh.edge_faces.min(axis=1) >= 0)))
    first, second = mesh.edge_faces[e]
    across = [next(iter(set(mesh.faces[f].tolist()) - set(mesh.edges[e].tolist()))) for f in (first, second)]
    x[mesh.edges[e][0]] = 0.5 * (x[across[0]] + x[across[1]]) + [0.0, 0.0, 0.05]
    context.set_positions(x)
    context.flip_edges(sheet, [mesh.edges[e]])
    context._degradation._looked = -10_000
    with pytest.warns(mp.errors.MeshQualityWarning, match="has become a needle"):
        context.step(1)


def test_refused_flips_change_nothing():
    mesh = rough(MESHES["with borders"])
    system, sheet = built(mesh)
    context = context_of(system)
    inner = [e for e, faces in zip(mesh.edges.tolist(), mesh.edge_faces.tolist(), strict=True) if min(faces) >= 0]
    border = next(e for e, faces in zip(mesh.edges.tolist(), mesh.edge_faces.tolist(), strict=True) if min(faces) < 0)
    apart = [0, next(k for k in range(1, len(sheet)) if (0, k) not in edges_of(mesh.faces))]
    refused(context, sheet, [border], TopologyError, rf"edges\[0\] = \[{border[0]}, {border[1]}\].*on a border")
    refused(context, sheet, [inner[0], apart], TopologyError, r"edges\[1\] = .*have no edge in common")
    refused(context, sheet, [[4, 4]], TopologyError, "4 and 4 have no edge in common")
    refused(context, sheet, [inner[5], inner[5]], TopologyError, r"edges\[1\] = .*have no edge in common")
    refused(context, sheet, [inner[3], [2, len(sheet)]], TopologyError, rf"edges\[1, 1\] = {len(sheet)} does not exist")
    refused(context, sheet, [[-1, 2]], TopologyError, r"edges\[0, 0\] = -1 does not exist")
    refused(context, sheet, [[0.5, 2]], TopologyError, "must hold integers")
    refused(context, sheet, [0, 1], TopologyError, r"must have shape \(n, 2\)")
    refused(context, "sheet", [inner[0]], TopologyError, "must be the handle of a membrane of this topology")
    _, other = built(mesh)
    refused(context, other, [inner[0]], TopologyError, "must be the handle of a membrane of this topology")
    assert len(context.flip_edges(sheet, np.empty((0, 2), int))) == 0


def test_corners_that_have_an_edge_already_are_not_joined_twice():
    """No edge of a tetrahedron can be flipped, and none at a vertex of three triangles."""
    faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    tetrahedron = mp.TriangleMesh([[0, 0, 0], [9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]], faces)
    system, sheet = built(tetrahedron, points=5, forces=lambda sheet: ())
    context = context_of(system)
    for edge in tetrahedron.edges:
        refused(context, sheet, [edge], TopologyError, "the other corners of its two triangles, . and ., have an edge")


@pytest.mark.parametrize(("force", "text"), [
    (lambda sheet: mp.forces.MembraneArea(sheet, 1.0, per_triangle=True), "its area is another for each triangle"),
    (lambda sheet: mp.forces.MembraneEdgeSprings(sheet, 1.0), "its length is another for each edge"),
    (lambda sheet: mp.forces.MembraneEdgeSprings(sheet, np.linspace(1.0, 2.0, len(sheet.mesh.edges)), 5.0),
     "its stiffness is another for each edge"),
])  # fmt: skip
def test_numbers_of_triangles_and_edges_refuse(force, text):
    system, sheet = built(rough(MESHES["closed"]), forces=lambda sheet: [force(sheet)])
    context = context_of(system)
    refused(context, sheet, [sheet.mesh.edges[0]], ParameterError, f"Membrane.* does not allow it: {text}")
    # The other membrane is free.
    other = system.topology["other"]
    context.flip_edges(other, [other.mesh.edges[0]])


def test_not_from_inside():
    system, sheet = built(MESHES["closed"])
    edge = sheet.mesh.edges[:1]
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))

    class Flipper(mp.reporters.Reporter):
        def report(self, simulation, state):
            simulation.context.flip_edges(sheet, edge)

    simulation.reporters.append(Flipper(1))
    with pytest.raises(ContextInUseError):
        simulation.step(1)
    simulation.reporters.clear()
    assert (look(simulation.context).faces["sheet"] == sheet.mesh.faces).all()


def test_hostile_faces_in_a_checkpoint_are_refused():
    system, sheet = built(MESHES["with borders"])
    context = context_of(system)
    flip_at_random(context, sheet, 10)
    good = {k: a.copy() for k, a in context._dynamical_arrays().items()}
    first = len(system.topology["other"].mesh.faces)
    before = look(context)

    def with_faces(change):
        faces = good["faces"].copy()
        change(faces)
        return good | {"faces": faces}

    def reversed_one(faces):
        faces[first + 2] = faces[first + 2, ::-1]

    def far(faces):
        faces[first + 2, 1] = 10**6

    def of_another(faces):
        faces[first, 0] = 0

    def double(faces):
        faces[first + 1] = faces[first + 4]

    for change in (reversed_one, far, of_another, double):
        with pytest.raises(TopologyError, match="checkpoint: faces: the triangles of 'sheet' are none"):
            context._set_dynamical_arrays(with_faces(change), 0)
        assert same(before, look(context))
    with pytest.raises(ParameterError, match="checkpoint: faces is int64"):
        context._set_dynamical_arrays(good | {"faces": good["faces"].astype(np.int64)}, 0)


def test_faces_of_another_surface_of_as_many_triangles_are_refused():
    """Sound in themselves: a torus and a tetrahedron for a sphere, and a sheet with another border."""
    i, k = np.divmod(np.arange(9), 3)
    b, c, d = (3 * ((i + p) % 3) + (k + q) % 3 for p, q in ((1, 0), (1, 1), (0, 1)))
    torus = np.concatenate([np.column_stack([np.arange(9), b, c]), np.column_stack([np.arange(9), c, d])])
    corner = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    icosahedron = mp.TriangleMesh.icosphere(50.0, 0)
    middle = icosahedron.vertices[icosahedron.faces[0]].mean(axis=0)
    a, b, c = icosahedron.faces[0]
    sphere = mp.TriangleMesh(np.concatenate([icosahedron.vertices, [middle]]),
                             np.concatenate([icosahedron.faces[1:], [[a, b, 12], [b, c, 12], [c, a, 12]]]))  # fmt: skip
    square = mp.TriangleMesh([[0.0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], [[0, 1, 2], [0, 2, 3]])
    for mesh, faces, text in (
        (sphere, np.concatenate([torus, corner + 9]), "connected parts have other vertices"),
        (square, np.array([[0, 1, 2], [1, 0, 3]]), "on a border here or there only"),
    ):
        system, _ = built(mesh, points=0, forces=lambda sheet: (), before=False)
        context = context_of(system)
        arrays = context._dynamical_arrays()
        with pytest.raises(TopologyError, match=f"the triangles of 'sheet' are none: .*{text}"):
            context._set_dynamical_arrays(arrays | {"faces": faces.astype(np.int32)}, 0)
