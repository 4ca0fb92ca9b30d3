"""TrajectoryReporter: what goes in comes out, whatever happens in between."""

import os
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
from builders import Recorder, refuses, system_with

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory
from medyanpy.reporters import _content as writing

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


def make(seed=1, n_points=20, subdivisions=1, timestep=1e-7):
    mesh = mp.TriangleMesh.icosphere(radius=100.0, subdivisions=subdivisions)
    topology = mp.Topology()
    first = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1e-12, friction=1e-6)
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    other = topology.add_membrane(mesh.translated([500.0, 0, 0]), vertex_mass=1.0, fixed=True)
    topology.add_intriangle_points(other, 7, mass=4e-12, friction=4e-6, seed=seed, name="on the other")
    topology.add_intriangle_points(vesicle, n_points, mass=4e-12, friction=4e-6, seed=seed)
    turns = np.random.default_rng(seed).normal(size=(5, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    topology.add_rigid_bodies(np.zeros((5, 3)), turns, 1e-12, [2e-11, 2e-11, 4e-12], (1e-6, 1e-5), name="rods")
    system = system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, stiffness=0.01))
    assert first.kind.first_bead == 0
    return mp.Simulation(system, mp.BAGOGABIntegrator(timestep, temperature=300.0, seed=seed), threads=1)


def check(trajectory, states, velocities=True):
    assert trajectory.steps.tolist() == [s.step for s in states]
    assert trajectory.times.tolist() == [s.time for s in states]
    for frame, state in zip(trajectory, states, strict=True):
        assert (frame.positions == state.positions).all()
        assert (frame.triangles == state.intriangle.triangles).all()
        assert (frame.barycentric == state.intriangle.barycentric).all()
        assert (frame.orientations == state.orientations).all()
        assert frame.potential_energy == state.potential_energy
        assert frame.kinetic_energy == state.kinetic_energy
        assert frame.temperature == state.temperature
        if velocities:
            assert (frame.velocities == state.velocities).all()
            assert (frame.angular_momenta == state.angular_momenta).all()


@pytest.mark.parametrize("n_frames", [1, 5, 64, 150])
def test_a_round_trip_keeps_every_bit(tmp_path, n_frames):
    """Less than a chunk, a chunk, several and a part."""
    simulation, recorder = make(), Recorder(2)
    simulation.reporters += [mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2, velocities=True), recorder]
    simulation.step(2 * n_frames)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory) == n_frames
        check(trajectory, recorder.states)


def test_single_precision_is_half_the_file_and_enough(tmp_path):
    simulation, recorder = make(), Recorder(10)
    simulation.reporters += [mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 10, precision="single"), recorder]
    simulation.step(20)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        positions = trajectory[-1].positions
        assert positions.dtype == np.float32
        assert np.abs(positions - recorder.states[-1].positions).max() < 1e-4
    with pytest.raises(mp.ParameterError, match="precision = 'half'"):
        mp.reporters.TrajectoryReporter(tmp_path / "other.h5", 10, precision="half")


def test_flush_brings_half_full_chunks_to_the_disk_again_and_again(tmp_path):
    simulation, recorder = make(), Recorder(1)
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True)
    simulation.reporters += [reporter, recorder]
    for n in (1, 3, 70, 2):
        simulation.step(n)
        reporter.flush()
        # Another reader, while the file is open for writing.
        with Trajectory(tmp_path / "run.h5") as trajectory:
            check(trajectory, recorder.states)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        check(trajectory, recorder.states)


def test_flush_asks_the_disk_itself(tmp_path, monkeypatch):
    """No machine that loses its power is at hand: what is looked for is the call that is made against that."""
    asked = []
    monkeypatch.setattr(os, "fsync", lambda file: asked.append(os.fstat(file).st_ino))
    simulation = make()
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    simulation.reporters.append(reporter)
    simulation.step(2)
    asked.clear()
    reporter.flush()
    assert asked == [(tmp_path / "run.h5").stat().st_ino]
    simulation.close()


def test_a_reader_follows_a_file_that_grows(tmp_path):
    simulation = make()
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    simulation.reporters.append(reporter)
    simulation.step(2)
    reporter.flush()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory) == 2
        simulation.step(100)
        reporter.flush()
        assert len(trajectory) == 2
        assert trajectory.refresh() == 102
        assert (trajectory[-1].positions == simulation.context.get_state(positions=True).positions).all()
    simulation.close()


CRASH = """
    import os, signal, sys
    sys.path[:0] = [{tests!r}, os.path.dirname({tests!r})]
    import medyanpy as mp
    from test_trajectory import make
    simulation = make()
    simulation.reporters.append(mp.reporters.TrajectoryReporter({path!r}, 1))
    simulation.step(70)
    simulation.reporters[0].flush()
    simulation.step(3)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def crash(path):
    code = textwrap.dedent(CRASH).format(tests=str(__file__.rsplit("/", 1)[0]), path=str(path))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr


def test_frames_survive_a_kill_after_flush_and_the_run_resumes(tmp_path):
    path = tmp_path / "run.h5"
    crash(path)
    simulation, recorder = make(), Recorder(1)
    simulation.reporters.append(recorder)
    simulation.step(70)
    with Trajectory(path) as trajectory:
        check(trajectory, recorder.states, velocities=False)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1, append=True))
    simulation.step(10)
    simulation.close()
    with Trajectory(path) as trajectory:
        check(trajectory, recorder.states, velocities=False)
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


def test_a_script_that_forgets_to_close_loses_nothing(tmp_path):
    path = tmp_path / "run.h5"
    code = textwrap.dedent(CRASH).format(tests=str(__file__.rsplit("/", 1)[0]), path=str(path))
    code = code.replace("os.kill(os.getpid(), signal.SIGKILL)", "")
    subprocess.run([sys.executable, "-c", code], check=True)
    with Trajectory(path) as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 74))


def test_a_resumed_run_rewinds_the_file(tmp_path):
    """Frames after the checkpoint are dropped, the one at it stays; and so in use, when a checkpoint is loaded."""
    path, checkpoint = tmp_path / "run.h5", tmp_path / "checkpoint"
    simulation, recorder = make(), Recorder(2)
    simulation.reporters += [mp.reporters.TrajectoryReporter(path, 2), recorder]
    simulation.step(70)
    simulation.save_checkpoint(checkpoint)
    simulation.step(80)
    simulation.close()

    again = make()
    again.load_checkpoint(checkpoint)
    reporter = mp.reporters.TrajectoryReporter(path, 2, append=True)
    again.reporters.append(reporter)
    again.step(2)
    reporter.flush()
    with Trajectory(path) as trajectory:
        check(trajectory, recorder.states[:36], velocities=False)
    again.step(78)
    again.load_checkpoint(checkpoint)
    again.step(80)
    again.close()
    with Trajectory(path) as trajectory:
        check(trajectory, recorder.states, velocities=False)


def test_existing_files_are_refused_or_replaced(tmp_path):
    path = tmp_path / "run.h5"
    path.write_text("precious")
    refuses(mp.ParameterError, "exists; give overwrite=True", mp.reporters.TrajectoryReporter, path, 1)
    assert path.read_text() == "precious"
    simulation = make()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1, overwrite=True))
    simulation.step(1)
    simulation.close()
    with Trajectory(path) as trajectory:
        assert len(trajectory) == 1
    other = make()
    other.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "new.h5", 1))
    (tmp_path / "new.h5").write_text("precious")
    refuses(mp.ParameterError, r"new\.h5 exists by now", other.step, 1)
    other.close()


def test_a_file_without_frames_is_as_good_as_none(tmp_path):
    """Runs that are killed at their start leave such files."""
    path = tmp_path / "run.h5"
    path.touch()
    for _ in range(2):
        simulation = make()
        simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 2))
        simulation.step(1)
        simulation.close()
        with Trajectory(path) as trajectory:
            assert len(trajectory) == 0
    simulation.reporters = [mp.reporters.TrajectoryReporter(path, 2)]
    simulation.step(1)
    simulation.close()
    refuses(mp.ParameterError, "exists; give overwrite=True", mp.reporters.TrajectoryReporter, path, 1)


def test_appending_to_what_does_not_fit_is_refused_before_the_first_step(tmp_path):
    path = tmp_path / "run.h5"
    simulation = make()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1))
    simulation.step(3)
    simulation.close()
    before = path.read_bytes()

    def refused(simulation, message, **options):
        simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1, append=True, **options))
        refuses(mp.ParameterError, message, simulation.step, 1)
        assert simulation.current_step == 0
        simulation.close()
        with Trajectory(path) as trajectory:
            assert trajectory.steps.tolist() == [1, 2, 3]

    refused(make(n_points=21), "cannot append to .*20 points of 'points'.*21 points of 'points'")
    refused(make(), "it has no particles/all/velocity", velocities=True)
    refused(make(), "append with the options it was written with", precision="single")
    assert len(path.read_bytes()) == len(before)
    path.write_text("no HDF5")
    other = make()
    other.reporters.append(mp.reporters.TrajectoryReporter(path, 1, append=True))
    refuses(mp.ParameterError, "cannot append", other.step, 1)
    assert path.read_text() == "no HDF5"


def test_meshes_with_other_triangles_are_not_appended_to(tmp_path):
    path = tmp_path / "run.h5"
    mesh = mp.TriangleMesh.icosphere(1.0, 0)
    turned = mp.TriangleMesh(mesh.vertices, np.roll(mesh.faces, 1, axis=1))
    for k, m in enumerate((mesh, turned)):
        topology = mp.Topology()
        topology.add_membrane(m, vertex_mass=1.0)
        simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1))
        simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1, append=True))
        if k == 0:
            simulation.step(1)
        else:
            refuses(mp.ParameterError, "triangles of 'membrane' are others", simulation.step, 1)
        simulation.close()


def test_an_initial_frame_can_be_written_by_hand(tmp_path):
    simulation = make()
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5)
    simulation.reporters.append(reporter)
    reporter.report(simulation, simulation.context.get_state(positions=True, energy=True))
    simulation.step(5)
    simulation.close()
    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [0, 5]


def test_waiting_data_in_memory_is_bounded(tmp_path):
    simulation = make(n_points=3000)
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1)
    simulation.reporters.append(reporter)
    simulation.step(100)
    waiting = reporter._writer._waiting
    assert sum(values.nbytes for values in waiting.values.values()) <= 2 * writing._CHUNK
    assert waiting.frames - waiting.start < waiting.chunk
    simulation.close()


def test_the_file_is_h5md(tmp_path):
    """The groups, attributes and units that H5MD 1.1 asks for."""
    simulation = make()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True))
    simulation.step(4)
    simulation.close()
    n = simulation.topology.n_beads
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["h5md"].attrs["version"].tolist() == [1, 1]
        assert file["h5md/author"].attrs["name"]
        assert file["h5md/creator"].attrs["name"] == "medyanpy"
        assert file["h5md/creator"].attrs["version"] == mp.__version__
        beads = file["particles/all"]
        assert beads["box"].attrs["dimension"] == 3
        assert list(beads["box"].attrs["boundary"]) == ["none"] * 3
        assert beads["position/value"].attrs["unit"] == "nm"
        assert beads["velocity"].attrs["unit"] == "nm s-1"
        for name in ("position", "velocity"):
            assert beads[name]["value"].shape == (4, n, 3)
            assert beads[name]["value"].chunks[1:] == (n, 3)
            assert beads[name]["time"].attrs["unit"] == "s"
            # One dataset under many names.
            assert beads[name]["step"] == beads["position/step"]
        assert beads["id"][()].tolist() == list(range(n))
        assert beads["species"].shape == beads["mass"].shape == (n,)
        assert beads["mass"].attrs["unit"] == "pN s+2 nm-1"
        assert file["observables/potential_energy/value"].attrs["unit"] == "pN nm"
        assert file["medyanpy/intriangle/triangle/value"].shape == (4, 27)
        assert file["medyanpy/oriented/orientation/value"].shape == (4, 5, 4)
        assert file["medyanpy"].attrs["word"] == "J B A G O G A B J"


@pytest.mark.parametrize("velocities", [False, True])
def test_mdanalysis_reads_it(tmp_path, velocities):
    mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed: pip install 'medyanpy[viewers]'")
    simulation, recorder = make(), Recorder(5)
    simulation.reporters += [mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5, velocities=velocities), recorder]
    simulation.step(20)
    simulation.close()
    # MDAnalysis knows no nm/s: files with velocities are read in the units they are in.
    universe = mda.Universe.empty(simulation.topology.n_beads, trajectory=False)
    universe.load_new(str(tmp_path / "run.h5"), format="H5MD", convert_units=False)
    assert universe.trajectory.n_frames == 4
    for frame, state in zip(universe.trajectory, recorder.states, strict=True):
        np.testing.assert_allclose(frame.positions, state.positions, rtol=1e-6, atol=1e-4)
        assert frame.time == pytest.approx(state.time)
        assert frame.has_velocities == velocities


def test_mdanalysis_converts_its_units(tmp_path):
    mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed: pip install 'medyanpy[viewers]'")
    simulation = make()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5))
    simulation.step(5)
    state = simulation.context.get_state(positions=True)
    simulation.close()
    universe = mda.Universe.empty(simulation.topology.n_beads, trajectory=False)
    universe.load_new(str(tmp_path / "run.h5"), format="H5MD")
    np.testing.assert_allclose(universe.atoms.positions, 10.0 * state.positions, rtol=1e-5, atol=1e-2)


# Links that come and go ---------------------------------------------------------------------------------------------


def linked(**numbers):
    """Filaments, bodies with arms, and links between them."""
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    filaments = topology.add_filaments(list(rng.normal(0.0, 3.0, (6, 1, 3)) + np.arange(4)[:, None] * [1.0, 0, 0]),
                                       node_mass=1.0, node_friction=1.0)  # fmt: skip
    turns = rng.normal(size=(5, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 3.0, (5, 3)), turns, 1.0, [1.0, 2.0, 2.0], (1.0, 1.0))
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    system.add_force(mp.forces.HarmonicTrap(filaments, 0.1, [0.0, 0.0, 0.0]))
    system.add_force(mp.forces.HarmonicTrap(bodies, 0.1, [0.0, 0.0, 0.0]))
    arms = bodies.sites([[1.0, 0.5, 0.0]])
    along = filaments.sites(np.repeat(np.arange(6), 3), np.tile(np.arange(3), 6), 0.3)
    numbers = {"off_rate": 1.0, "on_rate": 30.0} | numbers
    system.add_jump(mp.jumps.LinkBinding(links, along, arms, name="arms", partners=2, **numbers))
    system.add_jump(mp.jumps.LinkBinding(links, along, name="filaments", pool=4, **numbers))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=1.0, seed=3), threads=1)


def check_links(trajectory, states, system):
    assert trajectory.steps.tolist() == [s.step for s in states]
    assert len({len(frame.links("arms")) for frame in trajectory}) > 2
    for frame, state in zip(trajectory, states, strict=True):
        assert frame.jumps == ["arms", "filaments"]
        for name in frame.jumps:
            rows, jump = state.jumps[name]["links"], system[name]
            np.testing.assert_array_equal(frame.links(name), rows)
            ends = [sites[rows[:, k]].positions(state) for k, sites in enumerate((jump.a, jump.b))]
            np.testing.assert_array_equal(frame.link_ends(name), np.stack(ends, axis=1))


def test_links_that_jumps_have_bound_are_in_the_frames(tmp_path):
    path, simulation, seen = tmp_path / "t.h5", linked(), Recorder(4)
    simulation.reporters += [seen, mp.reporters.TrajectoryReporter(path, 4)]
    simulation.step(100)
    simulation.close()
    with Trajectory(path) as trajectory:
        check_links(trajectory, seen.states, simulation.system)
        assert trajectory.read("arms").shape == (25, 10, 2)
        assert trajectory.read("filaments").shape == (25, 4, 2)
        refuses(mp.ParameterError, r"'Link' is not a jump that binds .*: arms, filaments", trajectory[0].links, "Link")
        with pytest.raises(mp.ParameterError, match=r"has no rows of the filament nodes .* only of jumps"):
            trajectory.read("arms", beads=next(iter(trajectory.handles.values())))
    # A frame more, in the same file.
    simulation.reporters[1:] = [mp.reporters.TrajectoryReporter(path, 4, append=True)]
    simulation.step(20)
    simulation.close()
    with Trajectory(path) as trajectory:
        check_links(trajectory, seen.states, simulation.system)


@pytest.mark.parametrize(
    ("change", "text"),
    [({"pool": 3}, r"jumps/1 is int32 \(4, 2\) there"), ({"name": "others"}, "the sites of others are others")],
)
def test_frames_of_other_links_are_not_appended(tmp_path, change, text):
    path, simulation = tmp_path / "t.h5", linked()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 4))
    simulation.step(8)
    simulation.close()
    other = linked()
    old = other.system["filaments"]
    system = system_with(other.topology, *other.system.forces)
    system.add_jump(other.system["arms"])
    given = {"off_rate": 1.0, "on_rate": 3.0, "name": "filaments", "pool": 4} | change
    system.add_jump(mp.jumps.LinkBinding(old.links, old.a, **given))
    again = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=1.0, seed=4), threads=1)
    again.reporters.append(mp.reporters.TrajectoryReporter(path, 4, append=True))
    refuses(mp.ParameterError, text, again.step, 4)
