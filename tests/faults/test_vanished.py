"""Files that are moved, removed, replaced or cannot be opened while a run writes them: errors name the file."""

import errno
import gc
import os
import resource
import shutil

import pytest
from builders import refuses
from fault_runs import frames, make, rows

import medyanpy as mp

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


def all_reporters(folder):
    simulation = make(folder / "run.h5")
    simulation.reporters += [
        mp.reporters.StateDataReporter(folder / "table.csv", 1, step=True),
        mp.reporters.CheckpointReporter(folder / "run.cp", 10),
    ]
    return simulation


@pytest.mark.parametrize("name", ["run.h5", "table.csv"])
@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_a_file_that_is_gone(tmp_path, name, how):
    """Nothing is written past it; put back, it is gone on with."""
    path, away = tmp_path / name, tmp_path / "away"
    simulation = all_reporters(tmp_path)
    simulation.step(15)
    os.link(path, away)
    path.unlink()
    if how == "replaced":
        path.write_text("of somebody else")
    with pytest.raises(mp.OutputError, match=rf"{name} was moved, removed or replaced.*put it back") as caught:
        simulation.step(85)
    assert caught.value.filename == str(path)
    assert (path.read_text() if path.exists() else "of somebody else") == "of somebody else"
    # The state is one to go on from.
    assert simulation.current_step in (16, 20)
    os.replace(away, path)
    simulation.step(100 - simulation.current_step)
    simulation.close()
    assert frames(tmp_path / "run.h5") == rows(tmp_path / "table.csv") == list(range(1, 101))
    assert mp.Simulation.resume(tmp_path / "run.cp", threads=1, reporters=False).current_step == 100


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_that_is_gone(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    simulation = all_reporters(folder)
    simulation.step(15)
    shutil.rmtree(folder)
    refuses(mp.OutputError, r"table\.csv was moved", simulation.step, 85)
    # Reporters are flushed first.
    refuses(mp.OutputError, r"(table\.csv|run\.h5) was moved", simulation.save_checkpoint, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    trajectory, table, _ = simulation.reporters
    simulation.reporters = []
    for save in (simulation.save_checkpoint, lambda path: mp.serialize(simulation, path)):
        refuses(mp.OutputError, r"cannot write .*file: .*its folder is not there", save, folder / "file")
    simulation.step(1)
    table.close()
    refuses(mp.OutputError, r"run\.h5 was moved", trajectory.close)
    # Nobody can be told of the frames that it still holds, but on standard error.
    del trajectory
    gc.collect()


@pytest.fixture
def saves(tmp_path):
    """All that write a file in one move."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    mesh = mp.TriangleMesh.icosphere(1.0, 1)
    return [
        simulation.save_checkpoint, lambda path: mp.serialize(mesh, path), lambda path: mesh.save(path, overwrite=True),
    ]  # fmt: skip


def test_folders_and_devices_are_not_replaced(saves, tmp_path):
    """The superuser's rename took devices away from the machine."""
    os.mkfifo(tmp_path / "pipe.ply")
    (tmp_path / "folder.ply").mkdir()
    (tmp_path / "link.ply").symlink_to("pipe.ply")
    for name in ("pipe.ply", "folder.ply", "link.ply"):
        for save in saves:
            with pytest.raises(mp.OutputError, match=r"cannot write .*: there is something else than a file") as caught:
                save(tmp_path / name)
            assert caught.value.errno == errno.EINVAL
    assert (tmp_path / "pipe.ply").is_fifo()
    assert {file.name for file in tmp_path.iterdir()} == {"pipe.ply", "folder.ply", "link.ply"}


def test_atomic_writes_follow_links(saves, tmp_path):
    target, link = tmp_path / "scratch" / "a.ply", tmp_path / "a.ply"
    target.parent.mkdir()
    link.symlink_to(target)
    for save in saves:
        for there in (False, True):
            assert target.exists() is there
            save(link)
        assert link.is_symlink()
        target.unlink()


def test_a_mesh_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    mesh, path = mp.TriangleMesh.icosphere(1.0, 1), tmp_path / "mesh.ply"
    mesh.save(path)
    before = path.read_bytes()

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(mp.OutputError,
                       match=r"TriangleMesh\.save: cannot write .*mesh\.ply: No space .*; make room") as e:  # fmt: skip
        mp.TriangleMesh.icosphere(1.0, 2).save(path, overwrite=True)
    assert e.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    refuses(mp.OutputError, "its folder is not there", mesh.save, tmp_path / "nowhere" / "mesh.ply")


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not list the handles of a process")
def test_no_handles_left(tmp_path):
    """Everything that opens a file says so; with handles again nothing is missing."""
    simulation = all_reporters(tmp_path)
    with make(tmp_path / "other.h5") as first:
        first.step(10)
    fewer = make(tmp_path / "other.h5", append=True)
    simulation.step(15)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, before[1]))
    taken = []
    try:
        while True:
            try:
                taken.append(os.dup(0))
            except OSError:
                break
        for run in (simulation, fewer):
            refuses(mp.OutputError, r"Too many open files; close files", run.step, 85)
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    simulation.step(100 - simulation.current_step)
    fewer.step(3)
    simulation.close()
    fewer.close()
    assert frames(tmp_path / "run.h5") == rows(tmp_path / "table.csv") == list(range(1, 101))
    assert frames(tmp_path / "other.h5") == [1, 2, 3]


@pytest.mark.parametrize("kind", [mp.reporters.TrajectoryReporter, mp.reporters.CheckpointReporter])
def test_folders_that_cannot_be_written_to_are_refused_at_once(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(os, "access", lambda path, mode: os.path.isfile(path))
    refuses(mp.ParameterError, r"no permission to write .*run, and beside it", kind, tmp_path / "run", 1)
