"""Trajectory: frames, slices, handles, and clear words for what is no trajectory."""

import h5py
import numpy as np
import pytest

import medyanpy as mp
from medyanpy.trajectory import Trajectory


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A path, and the simulation that wrote ten frames to it."""
    path = tmp_path_factory.mktemp("trajectory") / "run.h5"
    topology = mp.Topology()
    vesicle = topology.add_membrane(
        mp.TriangleMesh.icosphere(100.0, 1), vertex_mass=4e-12, vertex_friction=4e-6, name="a/b"
    )
    topology.add_beads(np.zeros((3, 3)), mass=1e-12, friction=1e-6)
    topology.add_intriangle_points(vesicle, 9, mass=4e-12, friction=4e-6, seed=1)
    topology.add_intriangle_points(vesicle, 4, mass=4e-12, friction=4e-6, seed=2, name="receptors")
    simulation = mp.Simulation(
        mp.System(topology), mp.BAGOGABIntegrator(1e-8, temperature=300.0, seed=1), threads=1
    )
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
            assert (mine.kind, mine.fixed, len(mine)) == (handle.kind, handle.fixed, len(handle))
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
        with pytest.raises(mp.ParameterError, match="'colour' is none of positions"):
            trajectory.read("colour")


def test_what_was_not_written_is_said_so(run):
    with Trajectory(run[0]) as trajectory, pytest.raises(mp.ParameterError, match=r"no velocities.*not asked to"):
        trajectory[0].velocities  # noqa: B018


def test_a_closed_trajectory_says_so(run):
    trajectory = Trajectory(run[0])
    frame = trajectory[0]
    trajectory.close()
    trajectory.close()
    with pytest.raises(mp.ParameterError, match="is closed"):
        frame.positions  # noqa: B018


def test_what_is_no_trajectory_is_refused(tmp_path, run):
    with pytest.raises(mp.ParameterError, match="does not exist"):
        Trajectory(tmp_path / "nowhere.h5")
    text = tmp_path / "text.h5"
    text.write_text("hello")
    with pytest.raises(mp.ParameterError, match="no HDF5 file, or is damaged"):
        Trajectory(text)
    foreign = tmp_path / "foreign.h5"
    with h5py.File(foreign, "w", libver="latest") as file:
        file["a"] = 1
    with pytest.raises(mp.ParameterError, match="no trajectory of medyanpy"):
        Trajectory(foreign)
    later = tmp_path / "later.h5"
    later.write_bytes(run[0].read_bytes())
    with h5py.File(later, "r+") as file:
        file["medyanpy"].attrs["format"] = 2
    with pytest.raises(mp.ParameterError, match="has format 2; this version of medyanpy reads format 1"):
        Trajectory(later)
    cut = tmp_path / "cut.h5"
    cut.write_bytes(run[0].read_bytes()[:3000])
    with pytest.raises(mp.ParameterError, match="damaged"):
        Trajectory(cut)
