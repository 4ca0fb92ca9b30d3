"""Trajectory: frames, slices, handles, and clear words for what is not a trajectory."""

import h5py
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A path, and the simulation that wrote ten frames to it."""
    path = tmp_path_factory.mktemp("trajectory") / "run.h5"
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 1), vertex_mass=4e-12, vertex_friction=4e-6,
                                    name="a/b")  # fmt: skip
    topology.add_beads(np.zeros((3, 3)), mass=1e-12, friction=1e-6)
    topology.add_intriangle_points(vesicle, 9, mass=4e-12, friction=4e-6, seed=1)
    topology.add_intriangle_points(vesicle, 4, mass=4e-12, friction=4e-6, seed=2, name="receptors")
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-8, temperature=300.0, seed=1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 3))
    simulation.step(30)
    simulation.close()
    return path, simulation


def test_frames_are_a_sequence(run):
    with Trajectory(run[0]) as trajectory:
        assert len(trajectory) == 10
        assert trajectory.steps.tolist() == list(range(3, 31, 3))
        assert [frame.step for frame in trajectory] == list(range(3, 31, 3))
        assert trajectory[-1].step == 30
        assert [frame.step for frame in trajectory[2:8:3]] == [9, 18]
        assert [frame.step for frame in trajectory[::-4]] == [30, 18, 6]
        assert trajectory[0].time == pytest.approx(3e-8)
        assert repr(trajectory[0]) == "Frame(step 3, 3e-08 s)"
        assert "10 frames of 58 beads" in repr(trajectory)
        for index in (10, -11):
            with pytest.raises(IndexError, match="no such frame"):
                trajectory[index]


def test_handles_have_their_beads_faces_and_points(run):
    path, simulation = run
    with Trajectory(path) as trajectory:
        assert list(trajectory.handles) == ["a/b", "beads", "points", "receptors"]
        for handle in simulation.topology.handles:
            mine = trajectory.handles[handle.name]
            assert (mine.beads == handle.beads).all()
            assert (mine.kind, mine.fixed, len(mine)) == (handle.kind.name, handle.fixed, len(handle))
        vesicle = simulation.topology.membranes[0]
        assert (trajectory.faces["a/b"] == vesicle.mesh.faces).all()
        receptors = trajectory.handles["receptors"]
        assert receptors.membrane == "a/b"
        frame = trajectory[-1]
        mesh = vesicle.mesh.with_vertices(frame.positions[vesicle.beads])
        x = mesh.positions(frame.triangles[receptors.points], frame.barycentric[receptors.points])
        np.testing.assert_allclose(x, frame.positions[receptors.beads], atol=1e-11)
        assert trajectory.n_beads == 58
        assert trajectory.timestep == 1e-8


def test_many_frames_at_once(run):
    with Trajectory(run[0]) as trajectory:
        stacked = np.stack([frame.positions for frame in trajectory])
        assert (trajectory.read("positions") == stacked).all()
        assert (trajectory.read("positions", slice(1, 9, 3)) == stacked[1:9:3]).all()
        assert (trajectory.read("positions", slice(None, None, -2)) == stacked[::-2]).all()
        assert trajectory.read("positions", slice(5, 5, -1)).shape == (0, 58, 3)
        points = trajectory.handles["points"]
        assert (trajectory.read("positions", beads=points) == stacked[:, points.beads]).all()
        assert (trajectory.read("positions", beads=[7, 3]) == stacked[:, [7, 3]]).all()
        assert trajectory.read("temperature").shape == (10,)
        refuses(mp.ParameterError, "'colour' is none of positions", trajectory.read, "colour")


def test_unwritten_data_is_named(run):
    with Trajectory(run[0]) as trajectory, pytest.raises(mp.ParameterError, match=r"no velocities.*not asked to"):
        trajectory[0].velocities  # noqa: B018


def test_a_closed_trajectory_says_so(run):
    trajectory = Trajectory(run[0])
    frame = trajectory[0]
    trajectory.close()
    trajectory.close()
    with pytest.raises(mp.ParameterError, match="is closed"):
        frame.positions  # noqa: B018


def test_other_files_than_trajectories_are_refused(tmp_path, run):
    refuses(mp.ParameterError, "does not exist", Trajectory, tmp_path / "nowhere.h5")
    text = tmp_path / "text.h5"
    text.write_text("hello")
    refuses(mp.ParameterError, "not an HDF5 file, or is damaged", Trajectory, text)
    foreign = tmp_path / "foreign.h5"
    with h5py.File(foreign, "w", libver="latest") as file:
        file["a"] = 1
    refuses(mp.ParameterError, "not a medyanpy trajectory", Trajectory, foreign)
    other = tmp_path / "other.h5"
    other.write_bytes(run[0].read_bytes())
    for number in (2, 4):
        with h5py.File(other, "r+") as file:
            file["medyanpy"].attrs["format"] = number
        refuses(mp.ParameterError, f"has format {number}; this version of medyanpy reads format 3", Trajectory, other)
    cut = tmp_path / "cut.h5"
    cut.write_bytes(run[0].read_bytes()[:3000])
    refuses(mp.ParameterError, "damaged", Trajectory, cut)


def test_surfaces_of_beads_are_read_back(tmp_path):
    """To the bit; but not Python functions."""
    text = mp.surfaces.Polynomial("x**2 + y**2/k + z**4 - 1", k=3.0, bounding_box=[[-2.0] * 3, [2.0] * 3])
    python = mp.surfaces.PythonSurface(lambda p: p[:, 2], lambda p: np.tile([0.0, 0.0, 1.0], (len(p), 1)))
    topology = mp.Topology()
    topology.add_surface_points(text, text.sample(3, seed=1), mass=1.0, name="text")
    topology.add_surface_points(python, [[1.0, 0.0, 0.0]], mass=1.0, name="python")
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0, name="free")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1))
    simulation.step(1)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        surfaces = {name: handle.surface for name, handle in trajectory.handles.items()}
    x = np.random.default_rng(1).normal(size=(9, 3))
    assert (surfaces["text"].gradient(x) == text.gradient(x)).all()
    assert (surfaces["text"].bounding_box == text.bounding_box).all()
    assert surfaces["python"] is None
    assert surfaces["free"] is None


def test_orientations(tmp_path):
    """Rows as those of a State; angular momenta with velocities only."""
    topology = mp.Topology()
    turns = np.random.default_rng(1).normal(size=(5, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    topology.add_beads(np.eye(3), mass=1.0, name="free")
    topology.add_rigid_bodies(np.zeros((2, 3)), turns[:2], 1.0, [1.0, 2.0, 2.5], name="few")
    topology.add_rigid_bodies(np.ones((3, 3)), turns[2:], [1.0, 2.0, 3.0], np.ones((3, 3)), name="many")
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
    for name, velocities in (("with.h5", True), ("without.h5", False)):
        simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / name, 2, velocities=velocities))
    simulation.step(6)
    state = simulation.context.get_state(positions=True, velocities=True)
    simulation.close()
    with Trajectory(tmp_path / "with.h5") as trajectory:
        frame = trajectory[-1]
        assert (frame.orientations == state.orientations).all()
        assert (frame.angular_momenta == state.angular_momenta).all()
        for handle in simulation.topology.handles[1:]:
            mine = trajectory.handles[handle.name]
            assert mine.rows == handle.rows
            assert (mine.inertia == handle.inertia).all()
            assert (mine.mass == handle.mass).all()
            rows = np.array([f.orientations[mine.rows] for f in trajectory])
            assert (trajectory.read("orientations", beads=mine) == rows).all()
        free = trajectory.handles["free"]
        assert free.rows is None
        assert free.inertia is None
        with pytest.raises(mp.ParameterError, match="no rows of the beads of 'free', only of oriented beads"):
            trajectory.read("orientations", beads=free)
        with pytest.raises(mp.ParameterError, match=r"temperature has no rows of the beads of 'free'$"):
            trajectory.read("temperature", beads=free)
        refuses(mp.ParameterError, "no triangles: there are no in-triangle points", trajectory.read, "triangles")
    with Trajectory(tmp_path / "without.h5") as trajectory:
        assert (trajectory[-1].orientations == state.orientations).all()
        with pytest.raises(mp.ParameterError, match="no angular_momenta: TrajectoryReporter was not asked to"):
            trajectory[-1].angular_momenta  # noqa: B018


def test_rows_of_points(run):
    with Trajectory(run[0]) as trajectory:
        receptors = trajectory.handles["receptors"]
        assert (trajectory.read("triangles", beads=receptors) == trajectory.read("triangles")[:, 9:]).all()
        refuses(mp.ParameterError, "no orientations: there are no oriented beads", trajectory.read, "orientations")
