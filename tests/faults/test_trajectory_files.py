"""Trajectories survive every moment of a kill: there is the old file, or a good one, and the next run goes on."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from fault_runs import frames, make, run

import medyanpy as mp
from medyanpy.reporters.trajectory import _SUPERBLOCK, _checksum

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
@pytest.mark.parametrize("trials", [12, pytest.param(200, marks=pytest.mark.long)])
def test_kills_while_files_are_created_resumed_and_rewound(tmp_path, trials):
    code, out = run(KILLS.replace("TRIALS = 0", f"TRIALS = {trials}"), tmp_path / "run.h5")
    assert code == 0
    assert len(json.loads(out)) == trials


def aim(path, place, *, append=True, load=None):
    """Kill a run when it comes to a function of the reporter's module, or leaves it."""
    code, _ = run(
        f"""
        from medyanpy.reporters import trajectory as layout
        import h5py
        owner, name = {place}
        keep = getattr(owner, name)
        def killed(*arguments, **options):
            out = keep(*arguments, **options)
            os.kill(os.getpid(), signal.SIGKILL)
        simulation = make(path, append={append})
        if {load!r}:
            simulation.step(100)
        setattr(owner, name, killed)
        if {load!r}:
            simulation.load_checkpoint({load!r})
        simulation.step(10)
        """,
        path,
    )
    assert code == -signal.SIGKILL


PLACES = [
    '(layout, "_describe")', '(layout, "truncate")', '(h5py.File, "__init__")', '(os, "fsync")', '(os, "replace")',
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
def test_a_kill_while_a_run_goes_on(tmp_path, place):
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
    size = _SUPERBLOCK.size
    data = path.read_bytes()
    fields = list(_SUPERBLOCK.unpack(data[:size]))
    assert fields[-1] == _checksum(data[: size - 4])
    fields[3] = marks
    fields[-1] = _checksum(_SUPERBLOCK.pack(*fields)[:-4])
    path.write_bytes(_SUPERBLOCK.pack(*fields) + data[size:])


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
    with pytest.raises(mp.OutputError, match=r"cannot write .*run\.h5: no"):
        simulation.step(1)
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
        with pytest.raises(mp.ParameterError, match="is being written"):
            make(path, append=True).step(1)
        with pytest.raises(mp.ParameterError, match="is being written"):
            make(path, overwrite=True).step(1)
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


# What the dead leave -----------------------------------------------------------------------------------------------


def dead_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_what_dead_writers_left_is_removed_and_nothing_else(tmp_path):
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
        with pytest.raises(mp.ParameterError, match="is being written"):
            make(target, append=True).step(1)
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
    values = {place: np.ones(data.shape[1:], data.dtype) for place, data in writer._elements.items()}
    def memory():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for step in range(1, FRAMES + 1):
        writer.add(step, 0.1 * step, values)
        if step == 40_000:
            before = memory()
    print(memory() - before)
    reporter.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="this system does not tell what a process holds")
@pytest.mark.parametrize(
    ("simulation", "frames"),
    [("simulation()", 140_000), pytest.param("make()", 10_000_000, marks=pytest.mark.long)],
)
def test_memory_does_not_grow_with_the_number_of_frames(tmp_path, simulation, frames):
    """A few bytes for each of 10^5 frames are not seen, nor what is touched for the first time; 48 were 4.8 MB."""
    code, out = run(MANY.replace("SIMULATION", simulation).replace("FRAMES", str(frames)), tmp_path / "run.h5")
    assert code == 0
    assert int(out) < 1e6
