"""OVITO reads trajectories by our reader."""

from importlib import metadata

import numpy as np
import pytest

import medyanpy as mp

io = pytest.importorskip("ovito.io", reason="OVITO is not installed: pip install 'medyanpy[viewers]'")
from medyanpy.ovito import TrajectoryReader  # noqa: E402

pytestmark = pytest.mark.slow


def opened(path):
    """By the entry point where the package is installed; without one, with the class."""
    points = metadata.entry_points(group="OVITO.FileReader")
    there = any(point.value == "medyanpy.ovito:TrajectoryReader" for point in points)
    return io.import_file(str(path)) if there else io.import_file(str(path), input_format=TrajectoryReader)


def names_of(prop):
    names = {one.id: one.name for one in prop.types}
    return np.array([names[number] for number in prop[...]])


@pytest.fixture(params=["run", "changing"])
def both(request):
    return request.getfixturevalue(request.param)


def test_the_entry_point_is_declared():
    """OVITO finds readers by it; an environment may be without what installers write down of a package."""
    try:
        points = metadata.distribution("medyanpy").entry_points
    except metadata.PackageNotFoundError:
        pytest.skip("medyanpy is here without what installers write down of it")
    assert [point.load() for point in points if point.group == "OVITO.FileReader"] == [TrajectoryReader]


def test_every_frame(both):
    pipeline = opened(both.path)
    assert pipeline.num_frames == len(both.states)
    for k, state in enumerate(both.states):
        data = pipeline.compute(k)
        row = {int(i): r for r, i in enumerate(state.ids) if i >= 0}
        rows = [row[int(i)] for i in data.particles["Particle Identifier"]]
        assert len(rows) == len(set(rows)) == state.alive.sum()
        np.testing.assert_array_equal(data.particles.positions, state.positions[rows])
        np.testing.assert_array_equal(data.particles["Velocity"], state.velocities[rows])
        assert data.attributes["Timestep"] == state.step
        assert data.attributes["Time"] == pytest.approx(state.time, rel=1e-12)
        for name in ("potential_energy", "kinetic_energy", "temperature"):
            assert data.attributes[name] == getattr(state, name)


def test_types_shapes_and_bonds(run):
    topology, state = run.simulation.topology, run.states[-1]
    data = opened(run.path).compute(len(run.states) - 1)
    names = names_of(data.particles.particle_types)
    orientation, radius = data.particles["Orientation"][...], data.particles["Radius"][...]
    for handle in topology.handles:
        mine = names == handle.name
        assert mine.sum() == len(handle)
        np.testing.assert_array_equal(np.flatnonzero(mine), handle.beads)
        np.testing.assert_array_equal(data.particles["Mass"][mine], np.broadcast_to(handle.mass, len(handle)))
    np.testing.assert_array_equal(radius[names == "vesicles"], topology["vesicles"].radius)
    assert (radius[names == "rod"] > 0.0).all()
    assert (radius[names == "proteins"] == 0.0).all()
    for name in ("bodies", "rod"):
        # What is only drawn, OVITO keeps in single precision.
        turns = state.orientations[topology[name].rows].astype(np.float32)
        np.testing.assert_array_equal(orientation[names == name][:, [3, 0, 1, 2]], turns)
    axes = topology["bodies"].kind.beside_rows()["semi_axes"][0].astype(np.float32)
    np.testing.assert_array_equal(data.particles["Aspherical Shape"][names == "bodies"], axes)
    assert (data.particles["Aspherical Shape"][names != "bodies"] == 0.0).all()

    bonds = data.particles.bonds
    kinds, pairs = names_of(bonds["Bond Type"]), bonds.topology[...]
    for name in ("actin", "rod"):
        handle = topology[name]
        np.testing.assert_array_equal(pairs[kinds == name], handle.beads[handle.links])
    bound, sites = state.jumps["crosslinks"]["links"], run.simulation.system["crosslinks"].a
    # Sites are three tenths of a link away from its first node.
    np.testing.assert_array_equal(pairs[kinds == "crosslinks"], sites.bead_numbers[sites.start[bound]])
    assert len(bonds.topology) == 24 + 8 + len(bound)


def test_membranes_are_triangle_meshes(run):
    state = run.states[3]
    data = opened(run.path).compute(3)
    assert set(data.triangle_meshes) == {"vesicle", "patch"}
    for name in ("vesicle", "patch"):
        handle, mesh = run.simulation.topology[name], data.triangle_meshes[name]
        np.testing.assert_array_equal(mesh.get_faces(), handle.mesh.faces)
        np.testing.assert_array_equal(mesh.get_vertices(), state.positions[handle.beads])


def test_bound_links_in_every_frame(both):
    pipeline = opened(both.path)
    for k, state in enumerate(both.states):
        data = pipeline.compute(k)
        kinds = names_of(data.particles.bonds["Bond Type"])
        assert (kinds == "crosslinks").sum() == len(state.jumps["crosslinks"]["links"])
        assert data.particles.bonds.topology[...].max() < data.particles.count


def test_file_that_is_continued(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.eye(3), mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
        reporter.flush()
        assert opened(tmp_path / "run.h5").num_frames == 2
        simulation.step(3)
    assert opened(tmp_path / "run.h5").num_frames == 5


def test_other_files_are_left_to_others(tmp_path, run):
    (tmp_path / "a.xyz").write_text("1\n\nH 0 0 0\n")
    (tmp_path / "none.h5").write_bytes(b"")
    cut = tmp_path / "cut.h5"
    cut.write_bytes(run.path.read_bytes()[:5000])
    assert not any(map(TrajectoryReader.detect, map(str, (tmp_path / "a.xyz", tmp_path / "none.h5", cut))))
    assert TrajectoryReader.detect(str(run.path))


def test_a_run_without_frames(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.eye(3), mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 10) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(1)
    with pytest.raises(mp.ParameterError, match=r"run\.h5 does not exist|holds no frames"):
        TrajectoryReader.scan(str(tmp_path / "run.h5"), lambda **_: None)
