"""A full disk loses no frame and no row without a word: reporters raise, keep what they hold, and go on by themselves.

The disks are small ones in memory, which only root can make.
"""

import errno
import json
import os
import shutil
import subprocess

import h5py
import pytest
from builders import refuses
from fault_runs import frames, make, rows, run

import medyanpy as mp
from medyanpy._tools import outputs

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


@pytest.fixture
def disk(tmp_path):
    """A folder on a disk of its own, of a size that can be changed."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()

    def resize(size, *, again=True):
        options = f"{'remount,' if again else ''}size={size}"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
        return subprocess.run(command, capture_output=True, check=again)

    if resize("200k", again=False).returncode:
        pytest.skip("this machine lets nobody mount a disk")
    yield folder, resize
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder):
    """Take all the room there is; returns the file that has it."""
    file = folder / "full"
    with open(file, "wb") as out:
        for size in (1 << 16, 4096, 1):
            while True:
                try:
                    os.write(out.fileno(), b"x" * size)
                except OSError:
                    break
    return file


# A run on a disk that is too small; then there is room, or it is closed as it is. It must end as any process.
SIZES = """
    import json, random, subprocess
    from fault_runs import frames, rows
    rng = random.Random(20261122)
    TRIALS = 0
    folder = path.parent

    def mount(size, kind="remount,"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{kind}size={size}", "tmpfs", folder], check=True)

    def victim(which, room, done):
        simulation = make(path, n=290, velocities=True)
        if "table" in which:
            simulation.reporters.append(
                mp.reporters.StateDataReporter(path.with_name("table.csv"), 1, step=True, kinetic_energy=True)
            )
        if "checkpoint" in which:
            simulation.reporters.append(mp.reporters.CheckpointReporter(path.with_name("run.cp"), 25))
        errors = []
        while simulation.current_step < 300 and len(errors) < 3:
            try:
                simulation.step(300 - simulation.current_step)
            except mp.OutputError as error:
                errors.append(f"step {simulation.current_step}: {error}")
                if room and len(errors) == 2:
                    mount("200m")
        try:
            simulation.close()
        except mp.OutputError as error:
            errors.append(f"close: {error}")
            if room:
                mount("200m")
                simulation.close()
        done.write_text(json.dumps((errors, simulation.current_step)))

    out = []
    for trial in range(TRIALS):
        size = rng.randrange(40, rng.choice((300, 3000, 9000)))
        which, room = rng.choice(("", "table", "checkpoint", "table checkpoint")), rng.random() < 0.6
        mount(f"{size}k", "")
        done = folder.with_name("done")
        child = os.fork()
        if not child:
            victim(which, room, done)
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        case = (trial, size, which, room, code, done.read_text())
        errors, step = json.loads(done.read_text())
        assert code == 0, case
        steps = frames(path) if path.exists() else []
        assert steps == list(range(1, len(steps) + 1)), (case, steps)
        if room or not errors:
            assert step == len(steps) == 300, (case, len(steps))
        if "table" in which and path.with_name("table.csv").stat().st_size:
            found = rows(path.with_name("table.csv"))
            assert found == list(range(1, len(found) + 1)), (case, found)
            assert len(found) == 300 or not room, (case, len(found))
        if path.with_name("run.cp").exists():
            at = mp.Simulation.resume(path.with_name("run.cp"), threads=1, reporters=False).current_step
            assert at <= len(steps), (case, at)
        out.append((size, which, room, len(errors), len(steps)))
        subprocess.run(["umount", "-l", str(folder)], check=True)
    print(json.dumps(out))
"""


@pytest.mark.slow
@pytest.mark.parametrize("trials", [4, pytest.param(200, marks=pytest.mark.long)])
def test_disks_of_any_size(disk, trials):
    folder, _ = disk
    inner = folder / "inner"
    inner.mkdir()
    code, out = run(SIZES.replace("TRIALS = 0", f"TRIALS = {trials}"), inner / "run.h5")
    assert code == 0
    trials = json.loads(out)
    # Some were too small, some were not.
    assert {bool(errors) for *_, errors, _ in trials} == {False, True}



def test_frames_wait_in_memory_until_there_is_room(disk):
    folder, resize = disk
    resize("4m")
    path = folder / "run.h5"
    simulation = make(path, n=290, velocities=True)
    simulation.step(100)
    full = fill(folder)
    for _ in range(3):
        message = r"cannot write .*run\.h5: No space left.*make room.*wait in memory"
        with pytest.raises(mp.OutputError, match=message) as e:
            simulation.step(300)
        assert simulation.current_step == 128
        assert (e.value.errno, e.value.filename) == (errno.ENOSPC, str(path))
        assert isinstance(e.value, OSError)
        refuses(mp.OutputError, "No space left", simulation.reporters[0].flush)
        assert frames(path) == list(range(1, 65))
    full.unlink()
    simulation.step(72)
    simulation.close()
    assert frames(path) == list(range(1, 201))
    assert path.stat().st_size < 200 * 290 * 3 * 8 * 2 * 1.1


def test_closing_on_a_full_disk_can_be_done_again(disk):
    folder, resize = disk
    resize("4m")
    path = folder / "run.h5"
    simulation = make(path, n=290)
    simulation.step(100)
    full = fill(folder)
    for _ in range(2):
        refuses(mp.OutputError, "No space left", simulation.close)
    full.unlink()
    simulation.close()
    assert frames(path) == list(range(1, 101))
    assert [p.name for p in folder.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("append", [False, True])
def test_no_room_for_the_file(disk, append):
    """Nor for the copy of one that is to be continued: it is as it was."""
    folder, resize = disk
    resize("4m")
    path = folder / "run.h5"
    if append:
        with make(path, n=290) as simulation:
            simulation.step(100)
    full = fill(folder)
    simulation = make(path, n=290, append=True)
    for _ in range(2):
        refuses(mp.OutputError, "No space left", simulation.step, 1)
        assert simulation.current_step == 0
        assert path.exists() == append
        if append:
            assert frames(path) == list(range(1, 101))
    full.unlink()
    simulation.step(3)
    simulation.close()
    assert frames(path) == [1, 2, 3]


def test_no_room_to_rewind(disk):
    folder, resize = disk
    resize("4m")
    path = folder / "run.h5"
    simulation = make(path, n=290)
    simulation.step(30)
    simulation.save_checkpoint(folder.parent / "checkpoint")
    simulation.step(70)
    simulation.reporters[0].flush()
    full = fill(folder)
    simulation.load_checkpoint(folder.parent / "checkpoint")
    refuses(mp.OutputError, "No space left", simulation.step, 1)
    assert simulation.current_step == 30
    assert frames(path) == list(range(1, 101))
    full.unlink()
    simulation.step(5)
    simulation.close()
    assert frames(path) == list(range(1, 36))


def test_rows_are_whole_or_not_there(disk):
    folder, _ = disk
    path = folder / "table.csv"
    simulation = make()
    full = fill(folder)
    simulation.reporters.append(mp.reporters.StateDataReporter(path, 1, step=True, time=True, kinetic_energy=True))
    refuses(mp.OutputError, r"StateDataReporter: cannot write .*table\.csv: No space left", simulation.step, 1000)
    assert (simulation.current_step, path.read_text()) == (0, "")
    os.truncate(full, full.stat().st_size - 4096)
    refuses(mp.OutputError, "No space left", simulation.step, 1000)
    assert path.read_text().endswith("\n")
    assert rows(path) == list(range(1, simulation.current_step))
    full.unlink()
    simulation.step(1000 - simulation.current_step)
    simulation.close()
    assert rows(path) == list(range(1, 1001))


def test_a_checkpoint_without_room_leaves_the_old_one(disk):
    folder, _ = disk
    path = folder / "run.cp"
    simulation = make(n=290)
    simulation.reporters.append(mp.reporters.CheckpointReporter(path, 10))
    simulation.step(10)
    full = fill(folder)
    refuses(mp.OutputError, r"checkpoint: cannot write .*run\.cp: No space left.*is as it was", simulation.step, 50)
    assert simulation.current_step == 20
    assert mp.Simulation.resume(path, threads=1, reporters=False).current_step == 10
    full.unlink()
    simulation.step(0)
    assert mp.Simulation.resume(path, threads=1, reporters=False).current_step == 20
    assert [p.name for p in folder.iterdir()] == ["run.cp"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk is broken"), RuntimeError("HDF5"), KeyboardInterrupt()])
@pytest.mark.parametrize("calls", [1, 2])
def test_writes_that_fail_nevertheless_are_done_again(tmp_path, monkeypatch, error, calls):
    """In a copy: what HDF5 has of the file in memory is not to be trusted."""
    path = tmp_path / "run.h5"
    simulation = make(path)
    simulation.step(40)
    simulation.reporters[0].flush()
    flush, left = h5py.File.flush, []

    def failing(self):
        left.append(1)
        if len(left) in (calls, calls + 2):
            raise error
        return flush(self)

    monkeypatch.setattr(h5py.File, "flush", failing)
    kind = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else mp.OutputError
    with pytest.raises(kind):
        simulation.step(160)
    monkeypatch.undo()
    assert simulation.current_step == 64
    # Those of the way out may be there too.
    assert frames(path) in (list(range(1, 41)), list(range(1, 64)))
    simulation.step(136)
    simulation.close()
    assert frames(path) == list(range(1, 201))
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.slow
def test_a_file_system_that_promises_room_and_has_none(disk):
    """HDF5 then meets the full disk itself; the process lives on, and nothing is lost."""
    folder, _ = disk
    code, out = run(
        """
        import errno, subprocess
        from medyanpy.files import writer
        writer.reserve = lambda *_: None
        simulation = make(path, n=290, velocities=True)
        for _ in range(3):
            try:
                simulation.step(300 - simulation.current_step)
            except mp.OutputError as error:
                print(simulation.current_step, error)
        subprocess.run(["mount", "-o", "remount,size=200m", path.parent], check=True)
        simulation.step(300 - simulation.current_step)
        simulation.close()
        """,
        folder / "run.h5",
    )
    assert code == 0
    assert out.count("cannot write") == 3
    assert frames(folder / "run.h5") == list(range(1, 301))


@pytest.mark.parametrize("system", ["macOS", "file system"])
def test_asked_for_room_where_it_cannot_be_reserved(disk, monkeypatch, system):
    folder, resize = disk
    resize("1m")
    if system == "macOS":
        monkeypatch.delattr(os, "posix_fallocate")
    else:
        no = OSError(errno.EOPNOTSUPP, "not supported")
        monkeypatch.setattr(os, "posix_fallocate", lambda *_: (_ for _ in ()).throw(no))
    simulation = make(folder / "run.h5", n=290)
    refuses(mp.OutputError, "No space left", simulation.step, 1000)
    resize("200m")
    simulation.step(300 - simulation.current_step)
    simulation.close()
    assert frames(folder / "run.h5") == list(range(1, 301))
    assert shutil.disk_usage(folder).used < 300 * 290 * 3 * 8 * 1.1



@pytest.mark.parametrize(("start", "end", "size"), [(5, 5, 10), (10, 5, 10), (10, 12, 12), (5, 12, 12)])
def test_room_is_reserved_where_some_is_asked_for(tmp_path, start, end, size):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("r+b") as file:
        outputs.reserve(file.fileno(), start, end)
    assert path.stat().st_size == size
    assert path.read_bytes() == b"0123456789".ljust(size, b"\0")
