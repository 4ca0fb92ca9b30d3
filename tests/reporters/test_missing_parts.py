"""Trajectories of which files are missing, renamed or of another run say so when they are opened; those of other
programs, and copies in another layout of HDF5, are what they are."""

import json
import shutil
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.cli import main
from medyanpy.files import hdf5, writer

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def simulation_of(seed=1):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [5.0, 0, 0]], mass=1e-9, friction=1e-5, name="first")
    integrator = mp.SplittingIntegrator("BAOAB", 1e-6, temperature=300.0, seed=seed)
    return mp.Simulation(mp.System(topology), integrator, threads=1)


def grow(simulation, name):
    with simulation.topology.edit():
        simulation.topology.add_beads([[9.0, 0, 0]], mass=1e-9, friction=1e-5, name=name)


def written(path, seed=1, parts=3):
    """Two frames in each of three files."""
    simulation = simulation_of(seed)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 2))
    for k in range(parts):
        if k:
            grow(simulation, f"later {k}")
        simulation.step(4)
    simulation.close()
    return path


@pytest.fixture
def run(tmp_path):
    return written(tmp_path / "run.h5")


def warned(path, text, frames):
    with pytest.warns(mp.TrajectoryWarning, match=text) as found:
        trajectory = mp.Trajectory(path)
    with trajectory:
        assert len(trajectory) == frames
        assert trajectory.missing in str(found[0].message)
        # Said once, and not by everything that looks again.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert trajectory.refresh() == frames
    assert len(found) == 1


def test_whole_trajectories_are_silent(run):
    with mp.Trajectory(run) as trajectory:
        assert (len(trajectory), len(trajectory.paths), trajectory.missing) == (6, 3, "")
    one = written(run.with_name("one.h5"), parts=1)
    with mp.Trajectory(one) as trajectory:
        assert trajectory.missing == ""
    # By the name of a part it is meant to be read alone.
    with mp.Trajectory(hdf5.part_of(run, 2)) as trajectory:
        assert (len(trajectory), trajectory.missing) == (2, "")


@pytest.mark.parametrize(("gone", "frames", "text"), [
    ((3,), 4, r"run\.part0003\.h5, in which the run continues, is missing beside run\.part0002\.h5"),
    ((2,), 2, r"holds 2 frames, and not all of its run: run\.part0002\.h5, in which the run continues, is missing"),
    ((2, 3), 2, r"run\.part0002\.h5, in which the run continues, is missing beside run\.h5"),
])  # fmt: skip
def test_missing_parts_are_named(run, gone, frames, text):
    for number in gone:
        hdf5.part_of(run, number).unlink()
    warned(run, text, frames)


def test_a_copy_alone_and_one_renamed(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(run, tmp_path / "elsewhere" / "run.h5")
    warned(tmp_path / "elsewhere" / "run.h5", r"run\.part0002\.h5, in which", 2)
    run.rename(tmp_path / "other.h5")
    warned(tmp_path / "other.h5", r"other\.part0002\.h5, in which the run continues, is missing beside other\.h5", 2)
    hdf5.part_of(run, 2).rename(tmp_path / "second.h5")
    warned(tmp_path / "second.h5", r"the 2 frames before second\.h5, a later segment, are in another file", 2)


def test_parts_of_another_run_with_the_same_numbers(run, tmp_path):
    """As many frames up to the same steps, but with other positions: another seed."""
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other" / "run.h5", seed=2)
    for number in (2, 3):
        shutil.copy(hdf5.part_of(other, number), hdf5.part_of(run, number))
        refuses(mp.ParameterError, r"with other positions .* of different runs", mp.Trajectory, run)
        written(run.with_name("fresh.h5"))
        shutil.copy(hdf5.part_of(run.with_name("fresh.h5"), number), hdf5.part_of(run, number))
        for there in run.parent.glob("fresh*"):
            there.unlink()
    with mp.Trajectory(run) as trajectory:
        assert len(trajectory) == 6


def test_the_command_and_exports_say_it(run, tmp_path, capsys):
    hdf5.part_of(run, 2).unlink()
    with pytest.warns(mp.TrajectoryWarning):
        assert main(["info", str(run), "--json"]) == 0
    assert "run.part0002.h5" in json.loads(capsys.readouterr().out)["missing"]
    with pytest.warns(mp.TrajectoryWarning):
        assert main(["export", str(run), str(tmp_path / "run.xyz")]) == 0


def test_resuming_without_a_part_warns(run):
    hdf5.part_of(run, 3).unlink()
    simulation = simulation_of()
    for name in ("later 1", "later 2"):
        grow(simulation, name)
    simulation.context.set_velocities_to_temperature(300.0, seed=3)
    simulation.step(12)
    # The last file there is of other beads: by itself this is refused.
    simulation.reporters.append(mp.reporters.TrajectoryReporter(run, 2, append=True))
    with pytest.warns(mp.TrajectoryWarning, match="its frames are lost"), pytest.raises(mp.ParameterError):
        simulation.step(2)


def test_a_run_that_goes_back_clears_the_note(tmp_path):
    """From a checkpoint in the first file: later files are removed, and nothing is said to be missing."""
    path, checkpoint = tmp_path / "run.h5", tmp_path / "run.checkpoint"
    simulation = simulation_of()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 2))
    simulation.step(4)
    simulation.save_checkpoint(checkpoint)
    grow(simulation, "later")
    simulation.step(4)
    simulation.close()
    assert hdf5.part_of(path, 2).exists()
    with mp.Simulation.resume(checkpoint) as again:
        again.step(4)
    assert not hdf5.part_of(path, 2).exists()
    with mp.Trajectory(path) as trajectory:
        assert (len(trajectory), trajectory.missing) == (4, "")
    # The same, edited again: the note is there again.
    with mp.Simulation.resume(checkpoint) as again:
        grow(again, "later")
        again.step(4)
    with mp.Trajectory(path) as trajectory:
        assert (len(trajectory), len(trajectory.paths)) == (4, 2)
    hdf5.part_of(path, 2).unlink()
    warned(path, r"run\.part0002\.h5, in which", 2)


def test_a_crash_between_file_and_note_is_healed(tmp_path, monkeypatch):
    """A file that has its name before the one ahead of it knows: whole for readers, and noted when the run goes on."""
    path, checkpoint = tmp_path / "run.h5", tmp_path / "run.checkpoint"
    monkeypatch.setattr(writer.File, "tell_of_next", lambda self: None)
    simulation = simulation_of()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 2))
    simulation.step(4)
    grow(simulation, "later")
    simulation.step(4)
    simulation.save_checkpoint(checkpoint)
    simulation.close()
    monkeypatch.undo()
    with mp.Trajectory(path) as trajectory:
        assert (len(trajectory), trajectory.missing) == (4, "")
    with mp.Simulation.resume(checkpoint) as again:
        again.step(2)
    hdf5.part_of(path, 2).unlink()
    warned(path, r"run\.part0002\.h5, in which", 2)


# Other layouts, and other programs -----------------------------------------------------------------------------------


def repacked(source, copy, **options):
    with h5py.File(source, "r") as old, h5py.File(copy, "w", **options) as new:
        for name in old:
            old.copy(name, new)
    return copy


@pytest.mark.parametrize(
    ("options", "version"), [({}, 0), ({"libver": "earliest"}, 0), ({"libver": "v108"}, 2), ({"libver": "latest"}, 3)]
)
def test_copies_in_other_layouts_open(tmp_path, options, version):
    """As h5repack, h5copy and h5py write by default; all frames, the system, export, and a run that goes on."""
    path = written(tmp_path / "run.h5", parts=1)
    copy = repacked(path, tmp_path / "copy.h5", **options)
    assert copy.read_bytes()[8] == version
    with mp.Trajectory(copy) as trajectory, mp.Trajectory(path) as original:
        assert len(trajectory) == 2
        for one, other in zip(trajectory, original, strict=True):
            assert (one.positions == other.positions).all()
            assert one.energies == other.energies
        system, integrator = trajectory.system()
    mp.export(copy, tmp_path / "copy.xyz")
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.step(4)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(copy, 2, append=True))
    simulation.step(2)
    simulation.close()
    with mp.Trajectory(copy) as trajectory:
        assert trajectory.steps.tolist() == [2, 4, 6]


def test_a_classic_file_that_is_cut_short_is_damaged(tmp_path):
    copy = repacked(written(tmp_path / "run.h5", parts=1), tmp_path / "copy.h5")
    content = copy.read_bytes()
    for size in (len(content) - 100, len(content) // 2, 200, 48):
        copy.write_bytes(content[:size])
        refuses(mp.ParameterError, r"copy\.h5 is .*damaged", mp.Trajectory, copy)


def test_files_of_other_programs_are_not_called_damaged(tmp_path):
    def plain(file):
        file["a"] = np.arange(4)

    def h5md(file):
        file["particles/trajectory/position/value"] = np.zeros((2, 3, 3))
        file["particles/all/position/value"] = np.zeros((2, 3, 3))
        file["h5md"] = 1

    def linked(file):
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/a")

    for k, (fill, options) in enumerate(
        (fill, options) for fill in (plain, h5md, linked) for options in ({}, {"libver": "latest"})
    ):
        path = tmp_path / f"{k}.h5"
        with h5py.File(path, "w", **options) as file:
            fill(file)
        with pytest.raises(mp.ParameterError, match="is an HDF5 file, but not a medyanpy trajectory") as error:
            mp.Trajectory(path)
        assert "damaged" not in str(error.value)


@pytest.mark.skipif(not SHARED.exists(), reason="users' files are not here")
def test_a_users_file_of_another_program():
    with pytest.raises(mp.ParameterError, match="but not a medyanpy trajectory"):
        mp.Trajectory(SHARED / "more" / "trajectories" / "mdanalysis_test.h5md")


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 2), (0,), "float", "beyond"], ids=str)
def test_bonds_of_another_shape_are_named(tmp_path, shape):
    path = written(tmp_path / "run.h5", parts=1)
    with h5py.File(path, "r+") as file:
        del file["connectivity/bonds"]
        values = {"float": np.zeros((2, 2)), "beyond": np.array([[0, 7]])}.get(shape)
        file["connectivity/bonds"] = np.zeros(shape, np.int32) if values is None else values
    said = r"is damaged: (bonds must be|a bond)"
    with mp.Trajectory(path) as trajectory, pytest.raises(mp.ParameterError, match=said):
        _ = trajectory[0].bonds
    for ending in ("xyz", "pdb"):
        refuses(mp.ParameterError, "is damaged", mp.export, path, tmp_path / f"run.{ending}")
