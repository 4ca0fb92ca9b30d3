"""Trajectories survive every moment of a kill: there is the old file, or a good one, and the next run goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading

import h5py
import numpy as np
import pytest
from builders import assert_killed, refuses
from fault_runs import FOLDERS, PROGRAM, frames, make, run
from hostile_files import simulation as of_all_kinds

import medyanpy as mp
from medyanpy.files import hdf5 as layout
from medyanpy.files.hdf5 import SUPERBLOCK, _checksum
from medyanpy.reporters import _content

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

# Each trial forks a run, and kills it within 200 ms: while it creates its file, goes on in one that was closed or left
# by a kill, or rewinds one. Whatever it wrote is looked at by this process, and a run goes on with it.
KILLS = """
    import random, shutil, time, json
    from fault_runs import frames
    rng = random.Random(20261122)
    TRIALS = 0
    checkpoint, good, left = (path.with_name(name) for name in ("checkpoint", "good", "left"))
    with make(good) as simulation:
        simulation.step(60)
        simulation.save_checkpoint(checkpoint)
        simulation.step(40)
    if not os.fork():
        simulation = make(left)
        simulation.step(100)
        simulation.reporters[0].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()

    def victim(kind):
        simulation = make(path, append=True)
        if kind == "rewind":
            simulation.step(100)
            simulation.reporters[0].flush()
        print("go", file=ready, flush=True)
        while True:
            if kind != "create":
                simulation.load_checkpoint(checkpoint)
            simulation.step(20)
            simulation.reporters[0].flush()
            if kind == "resume":
                simulation.close()
                simulation.reporters = [mp.reporters.TrajectoryReporter(path, 1, append=True)]

    out = []
    for trial in range(TRIALS):
        kind = ("create", "resume", "left", "rewind")[trial % 4]
        path.unlink(missing_ok=True)
        if kind in ("resume", "left"):
            shutil.copy(good if kind == "resume" else left, path)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            ready = open(writing, "w")
            try:
                victim(kind)
            finally:
                os._exit(1)
        os.close(writing)
        open(reading).readline()
        time.sleep(rng.choice((0.02, 0.2)) * rng.random())
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, kind
        there = path.exists()
        steps = frames(path) if there else []
        assert steps == list(range(1, len(steps) + 1)), (kind, steps)
        assert len(steps) >= (0 if kind == "create" else 60), (kind, steps)
        with make(path, append=True) as again:
            if kind != "create":
                again.load_checkpoint(checkpoint)
            again.step(10)
            end = again.current_step
        assert frames(path) == list(range(1, end + 1)), kind
        names = {p.name for p in path.parent.iterdir()}
        assert names == {"checkpoint", "good", "left", ".left.lock", "run.h5"}, names
        out.append((kind, there, len(steps)))
    print(json.dumps(out))
"""


@pytest.mark.slow
@pytest.mark.parametrize("trials", [6, pytest.param(200, marks=pytest.mark.long)])
def test_kills_while_files_are_created_resumed_and_rewound(tmp_path, trials):
    code, out = run(KILLS.replace("TRIALS = 0", f"TRIALS = {trials}"), tmp_path / "run.h5")
    assert code == 0
    assert len(json.loads(out)) == trials


def aimed(path, owner, name, load):
    """Run, and kill this process when it leaves a function of the reporter's module."""
    keep = getattr(owner, name)

    def killed(*arguments, **options):
        keep(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    simulation = make(path, append=True)
    if load:
        simulation.step(100)
    setattr(owner, name, killed)
    if load:
        simulation.load_checkpoint(load)
    simulation.step(10)


def aim(path, place, load=None):
    assert_killed(aimed, path, *place, load)


PLACES = [
    (_content.Content, "_describe"), (layout, "truncate"), (h5py.File, "__init__"), (os, "fsync"), (os, "replace"),
]  # fmt: skip


@pytest.mark.parametrize("place", [PLACES[0], *PLACES[2:]])
def test_a_kill_while_a_file_is_created(tmp_path, place):
    """No file, or a good one; a script that is started again goes on."""
    path = tmp_path / "run.h5"
    aim(path, place)
    if path.exists():
        assert frames(path) == []
    with make(path, append=True) as simulation:
        simulation.step(5)
    assert frames(path) == [1, 2, 3, 4, 5]
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("place", PLACES[1:])
def test_kill_while_a_run_resumes(tmp_path, place):
    """The frames of before are there: the new run, at its start, has not yet dropped them, or it has."""
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(100)
    aim(path, place)
    assert frames(path) in ([], list(range(1, 101)))
    with make(path, append=True) as simulation:
        simulation.step(5)
    assert frames(path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("place", PLACES[1:])
def test_a_kill_while_a_run_rewinds(tmp_path, place):
    path, checkpoint = tmp_path / "run.h5", str(tmp_path / "checkpoint")
    simulation = make()
    simulation.step(60)
    simulation.save_checkpoint(checkpoint)
    aim(path, place, load=checkpoint)
    found = frames(path)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= 60
    with make(path, append=True) as simulation:
        simulation.load_checkpoint(checkpoint)
        simulation.step(5)
    assert frames(path) == list(range(1, 66))


def mark(path, marks):
    """As a writer that died leaves it: its marks, and the checksum with them."""
    size = SUPERBLOCK.size
    data = path.read_bytes()
    fields = list(SUPERBLOCK.unpack(data[:size]))
    assert fields[-1] == _checksum(data[: size - 4])
    fields[3] = marks
    fields[-1] = _checksum(SUPERBLOCK.pack(*fields)[:-4])
    path.write_bytes(SUPERBLOCK.pack(*fields) + data[size:])


@pytest.mark.parametrize("marks", [1, 4, 5])
def test_files_that_older_versions_left_marked(tmp_path, marks):
    """They are read, and appended to."""
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(100)
    mark(path, marks)
    assert frames(path) == list(range(1, 101))
    with make(path, append=True) as simulation:
        simulation.step(3)
    assert frames(path) == [1, 2, 3]


def test_a_file_is_replaced_when_the_new_one_is_there(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    path.write_text("precious")
    path.chmod(0o640)
    simulation = make(path, overwrite=True)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    refuses(mp.OutputError, r"cannot write .*run\.h5: no", simulation.step, 1)
    assert path.read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    monkeypatch.undo()
    simulation.step(1)
    simulation.close()
    assert frames(path) == [1]
    assert path.stat().st_mode & 0o777 == 0o640


# One writer at a time ----------------------------------------------------------------------------------------------

SECOND = """
    simulation = make(path, append=True)
    try:
        simulation.step(1)
    except mp.ParameterError as error:
        print(error)
    else:
        simulation.close()
        print("taken")
"""


def test_a_second_writer_is_refused(tmp_path):
    """Before the file has its name, while it is written, after it was rewound; not when it is closed."""
    path, checkpoint = tmp_path / "run.h5", tmp_path / "checkpoint"
    first = make(path)
    first.step(0)
    first.step(50)
    first.save_checkpoint(checkpoint)
    for steps in (50, 20):
        first.step(steps)
        first.reporters[0].flush()
        assert f"{path} is being written by another process" in run(SECOND, path)[1]
        refuses(mp.ParameterError, "is being written", make(path, append=True).step, 1)
        refuses(mp.ParameterError, "is being written", make(path, overwrite=True).step, 1)
        first.load_checkpoint(checkpoint)
    first.step(30)
    first.close()
    assert frames(path) == list(range(1, 81))
    assert run(SECOND, path)[1] == "taken\n"
    assert frames(path) == [1]
    assert {p.name for p in tmp_path.iterdir()} == {"run.h5", "checkpoint"}


def test_a_forked_child_leaves_file_and_lock_to_its_parent(tmp_path):
    path = tmp_path / "run.h5"
    _, out = run(
        f"""
        simulation = make(path)
        simulation.step(10)
        child = os.fork()
        if not child:
            simulation.close()
            os._exit(0)
        os.waitpid(child, 0)
        simulation.step(10)
        {textwrap.indent(textwrap.dedent(SECOND), " " * 8).strip().replace("simulation", "second")}
        simulation.close()
        """,
        path,
    )
    assert "is being written" in out
    assert frames(path) == list(range(1, 21))


@pytest.mark.parametrize("use", ["simulation.step(1)", "simulation.step(64)", "simulation.reporters[0].flush()"])
def test_a_forked_child_cannot_write_the_file_of_its_parent(tmp_path, use):
    """It is told so, and when it ends, by itself or not, HDF5 takes no marks off the parent's file."""
    path = tmp_path / "run.h5"
    _, out = run(
        f"""
        simulation = make(path)
        simulation.step(10)
        simulation.reporters[0].flush()
        before = path.read_bytes()
        child = os.fork()
        if not child:
            try:
                {use}
            except mp.ParameterError as error:
                print(error, flush=True)
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
        assert path.read_bytes() == before
        simulation.step(10)
        simulation.close()
        """,
        path,
    )
    assert "from which this one was forked; take this reporter off the list" in out
    assert frames(path) == list(range(1, 21))


LOCKS = """
#include <errno.h>
int flock(int file, int what) { (void)file; (void)what; errno = NUMBER; return -1; }
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
@pytest.mark.parametrize("number", ["ENOLCK", "EOPNOTSUPP", "ENOSYS"])
def test_file_systems_without_locks(tmp_path, number):
    """Such as NFS without its daemon: written, read at the same time, gone on with."""
    source, library = tmp_path / "locks.c", tmp_path / "locks.so"
    source.write_text(LOCKS.replace("NUMBER", number))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    code, out = run(
        f"""
        if "LD_PRELOAD" not in os.environ:
            program = open("/proc/self/cmdline", "rb").read().split(b"\\0")[:-1]
            os.execve(sys.executable, program, {{**os.environ, "LD_PRELOAD": {str(library)!r}}})
        from fault_runs import frames
        simulation = make(path)
        simulation.step(70)
        simulation.reporters[0].flush()
        assert frames(path) == list(range(1, 71))
        simulation.close()
        with make(path, append=True) as simulation:
            simulation.step(2)
        print(frames(path))
        """,
        tmp_path / "run.h5",
    )
    assert (code, out) == (0, "[1, 2]\n")


def test_the_lock_of_a_killed_writer_is_free(tmp_path):
    path = tmp_path / "run.h5"
    code, _ = run("simulation = make(path); simulation.step(3); os.kill(os.getpid(), signal.SIGKILL)", path)
    assert code == -signal.SIGKILL
    assert (tmp_path / ".run.h5.lock").exists()
    with make(path, append=True) as simulation:
        simulation.step(2)
    assert frames(path) == [1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


def test_a_reader_of_the_first_moments_finds_no_file_or_a_good_one(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    seen = []

    def look(function):
        def looking(*arguments, **options):
            seen.append(path.exists())
            function(*arguments, **options)
            seen.append(path.exists() and frames(path))

        return looking

    monkeypatch.setattr(os, "fsync", look(os.fsync))
    monkeypatch.setattr(os, "replace", look(os.replace))
    simulation = make(path)
    simulation.step(1)
    assert seen == [False, False, False, []]
    monkeypatch.undo()
    simulation.close()


# Readers on the way --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["rewound", "started again"])
def test_readers_follow_a_run_into_the_file_that_takes_the_place(tmp_path, how):
    path, checkpoint = tmp_path / "run.h5", tmp_path / "checkpoint"
    first = make(path)
    first.step(30)
    first.save_checkpoint(checkpoint)
    first.step(40)
    first.reporters[0].flush()
    with mp.Trajectory(path) as trajectory:
        if how == "started again":
            first.close()
            first = make(path, append=True)
        first.load_checkpoint(checkpoint)
        first.step(5)
        first.reporters[0].flush()
        assert (len(trajectory), trajectory[69].positions.shape) == (70, (2, 3))
        assert trajectory.refresh() == 35
        assert trajectory.steps.tolist() == list(range(1, 36))
        first.step(65)
        first.close()
        assert trajectory.refresh() == 100
        path.unlink()
        assert trajectory.refresh() == 100
        path.write_text("of somebody else")
        refuses(mp.ParameterError, "is not an HDF5 file", trajectory.refresh)
        assert (len(trajectory), trajectory[99].step) == (100, 100)


AGAIN = """
    simulation = make(path, append=True)
    simulation.step(3)
    simulation.reporters[0].flush()
    print("go", flush=True)
    sys.stdin.read()
"""


def test_a_run_that_starts_again_while_its_file_is_opened(tmp_path, monkeypatch):
    """Its head says that it is finished; a moment later another is in its place, which is being written."""
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(5)
    h5py_file, writers = h5py.File, []

    def late(*arguments, **options):
        monkeypatch.undo()
        program = textwrap.dedent(PROGRAM).format(folders=FOLDERS, path=str(path))
        command = [sys.executable, "-c", program + textwrap.dedent(AGAIN)]
        writers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        writers[0].stdout.readline()
        return h5py_file(*arguments, **options)

    monkeypatch.setattr(h5py, "File", late)
    with mp.Trajectory(path) as trajectory:
        assert trajectory.steps.tolist() == [1, 2, 3]
    writers[0].communicate()


def test_rows_that_do_not_exist(tmp_path):
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(2)
    with mp.Trajectory(path) as trajectory:
        for beads in (-1, 2):
            with pytest.raises(mp.ParameterError, match=rf"beads\[1\] = {beads} but positions has 2 rows"):
                trajectory.read("positions", beads=[0, beads])
        refuses(mp.ParameterError, "temperature has no rows of beads", trajectory.read, "temperature", beads=[0])
        with pytest.raises(mp.ParameterError, match="'place' is none of positions"):
            trajectory.read("place", beads=next(iter(trajectory.handles.values())))


def test_a_block_of_zeros_among_texts_is_refused(tmp_path):
    """As a power cut leaves it: HDF5 alone stays there for ever, so another process looks."""
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(2)
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 32 : heap + 512] = bytes(480)
    path.write_bytes(data)
    program = """
        import signal
        signal.alarm(60)
        for read in (lambda: mp.Trajectory(path), lambda: make(path, append=True).step(1)):
            try:
                read()
            except mp.ParameterError as error:
                print(error)
    """
    assert run(program, path)[1].count("heap of text has an object without length") == 2
    with pytest.raises(OSError, match="without length"):
        layout._check_heap(b"GCOL" + bytes(12) + b"\1" + bytes(7) + b"\xf0" + b"\xff" * 7 + bytes(64))


def test_a_trajectory_without_energies_is_damaged(tmp_path):
    path = tmp_path / "run.h5"
    with make(path) as simulation:
        simulation.step(2)
    with h5py.File(path, "a") as file:
        del file["observables/potential_energy"]
    with (
        mp.Trajectory(path) as trajectory,
        pytest.raises(mp.ParameterError, match="damaged: it holds no potential_energy"),
    ):
        trajectory[0].potential_energy  # noqa: B018


# What cannot be written ----------------------------------------------------------------------------------------------


def test_frames_in_the_past_are_refused(tmp_path):
    """A state that was kept from before: steps would not be in order, and rewinding would find a wrong place."""
    path = tmp_path / "run.h5"
    simulation = make(path)
    simulation.step(3)
    old = simulation.context.get_state(positions=True, energy=True)
    simulation.step(3)
    with pytest.raises(mp.ParameterError, match="a frame of step 3 cannot follow that of step 6"):
        simulation.reporters[0].report(simulation, old)
    simulation.step(3)
    simulation.close()
    assert frames(path) == list(range(1, 10))


def test_numbers_beyond_single_precision_are_refused(tmp_path):
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0], [1e39, 0, 0]], mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, precision="single"))
    refuses(mp.OutputError, r"step 1: particles/all/position goes beyond 3\.4e38.*'double'", simulation.step, 1)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert len(trajectory) == 0


def test_a_file_that_was_replaced_is_not_rewound_over(tmp_path):
    path, other, checkpoint = tmp_path / "run.h5", tmp_path / "other.h5", tmp_path / "checkpoint"
    with make(other, n=5) as simulation:
        simulation.step(90)
    simulation = make(path)
    simulation.step(30)
    simulation.save_checkpoint(checkpoint)
    simulation.step(34)
    mine = path.with_name("mine.h5")
    os.replace(path, mine)
    shutil.copy(other, path)
    simulation.load_checkpoint(checkpoint)
    refuses(mp.OutputError, "moved, removed or replaced", simulation.step, 5)
    assert path.read_bytes() == other.read_bytes()
    os.replace(mine, path)
    simulation.step(5)
    simulation.close()
    assert frames(path) == list(range(1, 36))


def test_flushing_from_another_thread(tmp_path):
    """Frames that come while others are written are neither lost nor counted too early."""
    path = tmp_path / "run.h5"
    simulation = make(path)
    simulation.step(1)
    reporter, ended, errors = simulation.reporters[0], threading.Event(), []

    def flush():
        while not ended.is_set():
            try:
                reporter.flush()
            except Exception as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        simulation.step(400)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        simulation.close()
    assert errors == []
    assert frames(path) == list(range(1, 402))


def test_file_rewritten_by_another_program_is_refused_if_it_cannot_grow(tmp_path):
    path, fixed = tmp_path / "run.h5", tmp_path / "fixed.h5"
    with make(path) as simulation:
        simulation.step(2)
    shutil.copy(path, fixed)
    with h5py.File(fixed, "a") as file:
        position = file["particles/all/position"]
        data = position["value"][()]
        del position["value"]
        position["value"] = data
    refuses(mp.ParameterError, "particles/all/position cannot grow", make(fixed, append=True).step, 1)
    with h5py.File(fixed, "r") as file:
        assert (file["particles/all/position/value"][()] == data).all()


def test_files_without_frames_and_with_one_of_every_kind(tmp_path):
    """Trajectories of nothing, and frames that each are a chunk of their own, rewound and gone on with."""
    made = of_all_kinds()
    made.save_checkpoint(tmp_path / "checkpoint")
    made.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, velocities=True))
    made.step(3)
    states = [made.context.get_state(positions=True, velocities=True)]
    made.load_checkpoint(tmp_path / "checkpoint")
    made.step(3)
    made.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [1, 2, 3]
        assert np.array_equal(trajectory[-1].positions, states[0].positions)
        assert np.array_equal(trajectory[-1].velocities, states[0].velocities)


# What the dead leave -----------------------------------------------------------------------------------------------


def dead_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_leftovers_of_dead_writers_alone_are_removed(tmp_path):
    dead = dead_process()
    mine = [".run.h5.{}.tmp", ".run.cp.{}.tmp", ".all-120.cp.{}.tmp"]
    others = [f".run.h5.{os.getppid()}.tmp", f".run.h5x.{dead}.tmp", ".run.h5.word.tmp", f"run.h5.{dead}.tmp", "a.tmp"]
    for name in [*(name.format(dead) for name in mine), *others]:
        (tmp_path / name).write_text("half")
    with make(tmp_path / "run.h5") as simulation:
        simulation.reporters += [
            mp.reporters.CheckpointReporter(tmp_path / "run.cp", 1),
            mp.reporters.CheckpointReporter(tmp_path / "all-{step}.cp", 1),
        ]
        simulation.step(1)
    assert {p.name for p in tmp_path.iterdir()} == {*others, "run.h5", "run.cp", "all-1.cp"}


def test_a_link_stays_a_link(tmp_path):
    """To another disk, say; its target is written, and locked."""
    target, link = tmp_path / "scratch" / "run.h5", tmp_path / "run.h5"
    target.parent.mkdir()
    link.symlink_to(target)
    with make(link) as simulation:
        simulation.step(70)
        refuses(mp.ParameterError, "is being written", make(target, append=True).step, 1)
    with make(link, append=True) as simulation:
        simulation.step(2)
    assert link.is_symlink()
    assert frames(target) == [1, 2]


# Memory ------------------------------------------------------------------------------------------------------------

# Frames go straight to the reporter's writer, as steps would take most of the time.
MANY = """
    from hostile_files import simulation
    import numpy as np
    reporter = mp.reporters.TrajectoryReporter(path, 1, velocities=True)
    writer = reporter._attach(SIMULATION)
    values = {place: np.ones(data.shape[1:], data.dtype) for place, data in writer._file.elements.items()}
    def memory():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for step in range(1, FRAMES + 1):
        writer.add(step, 0.1 * step, values)
        if step == FROM:
            before = memory()
    print(memory() - before)
    reporter.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not tell what a process holds")
@pytest.mark.parametrize(
    ("simulation", "first", "frames"),
    [("simulation()", 40_000, 90_000), pytest.param("make()", 2_500_000, 10_000_000, marks=pytest.mark.long)],
)
def test_memory_does_not_grow_with_the_number_of_frames(tmp_path, simulation, first, frames):
    """Between 40 000 frames and 90 000; 48 bytes for each of them are 2.4 MB, and had been. In the long run between
    2.5·10⁶ and 10⁷: what comes before is HDF5's own, which fills its caches (1.7 MB from 40 000 frames to the end)."""
    program = MANY.replace("SIMULATION", simulation).replace("FRAMES", str(frames)).replace("FROM", str(first))
    code, out = run(program, tmp_path / "run.h5")
    assert code == 0
    assert int(out) < 1.5e6
