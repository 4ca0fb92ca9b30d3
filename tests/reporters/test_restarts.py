"""Reporters come back with a checkpoint, each in its own file, and nothing of others is touched."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses
from reporters.restarting import Child, Extent, Forgetful, bare, left, make, script

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


@pytest.fixture
def through(tmp_path):
    """What a run of 50 steps leaves that nothing happens to, checkpoints of all steps kept."""
    with make(tmp_path / "through", "run-{step}.checkpoint") as simulation:
        simulation.step(50)
        simulation.save_checkpoint(tmp_path / "through" / "end")
    return left(tmp_path / "through")


# Going on ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [10, 30, 40])
@pytest.mark.parametrize("way", ["closed", "left", "failed"])
def test_run_resumes_in_its_files_from_any_checkpoint(tmp_path, through, step, way):
    """Without a word on reporters; the table without steps is cut as exactly as the others."""
    folder = tmp_path / "cut"
    simulation = make(folder, "run-{step}.checkpoint")
    if way == "failed":
        # At step 44, when others report too.
        simulation.reporters[4].report = lambda simulation, state, keep=simulation.reporters[4].report: (
            keep(simulation, state) if state.step < 44 else 1 / 0
        )
        with pytest.raises(ZeroDivisionError):
            simulation.step(50)
    else:
        simulation.step(47)
    simulation.close()
    if way == "left":
        for name in ("steps.csv", "plain.csv"):
            with open(folder / name, "a") as file:
                file.write("43 half")
    with mp.Simulation.resume(folder / f"run-{step}.checkpoint", threads=1) as again:
        assert again.current_step == step
        assert [type(r) for r in again.reporters] == [type(r) for r in simulation.reporters]
        assert again.report_work
        again.step(50 - step)
        again.save_checkpoint(folder / "end")
    assert left(folder) == through


@pytest.mark.parametrize("at", [0, 17])
def test_a_checkpoint_by_hand_knows_the_reporters_too(tmp_path, through, at):
    """Also before the first step, when files have not begun, and after they were closed."""
    folder = tmp_path / "hand"
    with make(folder, "run-{step}.checkpoint") as simulation:
        simulation.step(at)
        if at == 0:
            simulation.save_checkpoint(folder / "by-hand")
            simulation.step(8)
    if at:
        simulation.save_checkpoint(folder / "by-hand")
    del simulation
    with mp.Simulation.resume(folder / "by-hand", threads=1) as again:
        (folder / "by-hand").unlink()
        again.step(50 - at)
        again.save_checkpoint(folder / "end")
    assert left(folder) == through


def test_moved_folder_resumes_as_a_whole(tmp_path, through, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulation = make(Path("here"), "run-{step}.checkpoint")
    (tmp_path / "elsewhere").mkdir()
    # Names are those of the folder where the reporter was made.
    simulation.reporters[0]._path = simulation.reporters[0]._path.absolute()
    for reporter in simulation.reporters[1:3]:
        reporter._path = reporter._path.absolute()
    monkeypatch.chdir(tmp_path / "elsewhere")
    simulation.step(25)
    simulation.close()
    del simulation
    shutil.move(tmp_path / "here", tmp_path / "elsewhere" / "moved")
    with mp.Simulation.resume("moved/run-20.checkpoint", threads=1) as again:
        again.step(30)
        again.save_checkpoint("moved/end")
    assert left(tmp_path / "elsewhere" / "moved") == through
    assert not (tmp_path / "here").exists()


def test_links_to_the_folder_and_to_the_checkpoint(tmp_path):
    """As clusters have them: a folder under two names, and `latest`."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "scratch")
    assert script(tmp_path / "home", 25) == 0
    assert script(tmp_path / "scratch", 35) == 20
    assert script(tmp_path / "home", 45) == 30
    (tmp_path / "latest").symlink_to(tmp_path / "home" / "run.checkpoint")
    with mp.Simulation.resume(tmp_path / "latest", threads=1) as again:
        again.step(5)
    with make(tmp_path / "through") as through:
        through.step(45)
    assert left(tmp_path / "scratch") == left(tmp_path / "through")


def test_time_that_has_elapsed_counts_on_and_total_steps_stay(tmp_path, monkeypatch):
    from medyanpy.reporters import state_data

    now = [100.0]
    monkeypatch.setattr(state_data.time, "perf_counter", lambda: now[0])
    simulation, path = bare(), tmp_path / "t.csv"
    options = {"elapsed_time": True, "remaining_time": True, "progress": True, "speed": True, "total_steps": 40}
    simulation.reporters += [
        mp.reporters.StateDataReporter(path, 10, **options),
        mp.reporters.CheckpointReporter(tmp_path / "c", 10),
    ]
    simulation.step(0)
    for _ in range(2):
        simulation.step(9)
        now[0] += 5.0
        simulation.step(1)
    simulation.step(5)
    simulation.close()
    now[0] = 7.0
    with mp.Simulation.resume(tmp_path / "c", threads=1) as again:
        again.step(9)
        now[0] += 2.0
        again.step(1)
    rows = np.loadtxt(path, delimiter=",")
    assert rows[:, 0].tolist() == [25.0, 50.0, 75.0]
    assert rows[:, 2].tolist() == [5.0, 10.0, 12.0]
    assert rows[-1, [1, 3]].tolist() == [5.0, 2.0]


def test_reports_due_at_a_checkpoint_come_first(tmp_path):
    """A reporter that raised; and one whose turn comes after somebody who saves by hand."""

    class Broken(Extent):
        broken = True

        def report(self, simulation, state):
            if self.broken and state.step == 8:
                raise ZeroDivisionError
            super().report(simulation, state)

    simulation = bare()
    simulation.reporters.append(Broken(tmp_path / "extent.txt", 4, simulation.topology["beads"]))
    with pytest.raises(ZeroDivisionError):
        simulation.step(20)
    simulation.save_checkpoint(tmp_path / "c")
    simulation.close()
    Broken.broken = False
    with mp.Simulation.resume(tmp_path / "c", threads=1) as again:
        again.step(4)
    assert [int(line.split()[0]) for line in (tmp_path / "extent.txt").read_text().splitlines()] == [4, 8, 12]

    class Saves(Forgetful):
        def report(self, simulation, state):
            simulation.save_checkpoint(tmp_path / f"at-{state.step}")

    simulation = bare()
    simulation.reporters += [
        mp.reporters.StateDataReporter(tmp_path / "before.csv", 5, time=True),
        Saves(5),
        mp.reporters.StateDataReporter(tmp_path / "after.csv", 5, time=True),
    ]
    simulation.step(15)
    simulation.close()
    expected = [(tmp_path / name).read_text() for name in ("before.csv", "after.csv")]
    with pytest.warns(mp.ReporterWarning), mp.Simulation.resume(tmp_path / "at-10", threads=1) as again:
        again.step(5)
    assert [(tmp_path / name).read_text() for name in ("before.csv", "after.csv")] == expected


def test_a_frame_by_hand_after_the_checkpoint_of_its_step_is_cut_off(tmp_path):
    """Steps alone would not tell it from one before."""
    simulation = bare()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))

    def frame():
        state = simulation.context.get_state(positions=True, energy=True)
        simulation.reporters[0].report(simulation, state)

    simulation.step(3)
    frame()
    simulation.save_checkpoint(tmp_path / "c")
    frame()
    simulation.close()
    with mp.Simulation.resume(tmp_path / "c", threads=1) as again:
        again.step(1)
    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [2, 3, 4]


def test_leftovers_of_killed_checkpoints_are_removed(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (tmp_path / f".c.{child.pid}.tmp").write_text("half")
    bare().save_checkpoint(tmp_path / "c")
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_bytes_do_not_depend_on_the_folder(tmp_path):
    for name in ("a", "longer"):
        with make(tmp_path / name) as simulation:
            simulation.step(20)
    assert (tmp_path / "a" / "run.checkpoint").read_bytes() == (tmp_path / "longer" / "run.checkpoint").read_bytes()


def test_streams_of_the_process_resume_by_name(tmp_path, capsys):
    simulation = bare()
    simulation.reporters += [
        mp.reporters.StateDataReporter(sys.stdout, 2, step=True),
        mp.reporters.StateDataReporter(sys.stderr, 3, step=True),
    ]
    simulation.step(4)
    simulation.save_checkpoint(tmp_path / "c")
    capsys.readouterr()
    with mp.Simulation.resume(tmp_path / "c", threads=1) as again:
        again.step(2)
    assert capsys.readouterr() == ('#"Step"\n6\n', '#"Step"\n6\n')


def test_reporters_that_no_file_can_hold_are_named(tmp_path):
    simulation = bare()
    simulation.reporters += [
        Forgetful(3),
        mp.reporters.StateDataReporter(io.StringIO(), 2, step=True),
        Child(tmp_path / "child", tmp_path / "another"),
        mp.reporters.StateDataReporter(tmp_path / "t.csv", 2, step=True),
    ]
    simulation.save_checkpoint(tmp_path / "c")
    simulation.close()
    with pytest.warns(mp.ReporterWarning) as caught:
        again = mp.Simulation.resume(tmp_path / "c", threads=1)
    again.close()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message) == (
        f"{tmp_path / 'c'} does not bring back Forgetful (its class does not say that it resumes), StateDataReporter "
        "(file is a StringIO, which no file can hold), Child (its class does not say that it resumes): append what is "
        "missing to simulation.reporters"
    )
    assert [type(r) for r in again.reporters] == [mp.reporters.StateDataReporter]
    assert mp.Simulation.resume(tmp_path / "c", threads=1, reporters=False).reporters == []


def test_checkpoints_that_know_of_no_reporters(tmp_path):
    """Those of a Context, and those of before."""
    from medyanpy.files.checkpoint import write_checkpoint

    simulation = bare()
    write_checkpoint(simulation.context, tmp_path / "c")
    assert mp.Simulation.resume(tmp_path / "c", threads=1).reporters == []
    with pytest.raises(mp.ParameterError, match=r"no reporter of the checkpoint writes checkpoints to .*c; without"):
        mp.Simulation.resume(tmp_path / "c", start=bare)


# What is refused ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped(tmp_path):
    """A run that stopped five steps after its last checkpoint."""
    with make(tmp_path / "run") as simulation:
        simulation.step(25)
    return tmp_path / "run"


def refused(folder, message):
    """Nothing is changed, and no file stays locked."""

    def there():
        return {p.name: p.read_bytes() if p.is_file() else None for p in folder.iterdir()}

    before = there()
    refuses(mp.ParameterError, message, mp.Simulation.resume, folder / "run.checkpoint", threads=1)
    assert there() == before


@pytest.mark.parametrize("name", ["steps.csv", "plain.csv", "run.h5", "extent.txt"])
def test_files_that_are_gone_or_others_are_refused_before_any_is_changed(stopped, name):
    path = stopped / name
    whole = path.read_bytes()
    path.unlink()
    refused(stopped, rf"{name} is gone; put it back(?s:.*)reporters=False resumes from the checkpoint without")
    path.mkdir()
    refuses(mp.ParameterError, f"{name} is not a file", mp.Simulation.resume, stopped / "run.checkpoint", threads=1)
    path.rmdir()
    path.write_bytes(whole[: len(whole) // 2])
    refused(stopped, rf"{name} is shorter than|cannot append to .*{name}")
    other = b"of somebody else\n" * 100
    path.write_bytes(other)
    if name != "extent.txt":
        refused(stopped, rf"{name} has other columns|cannot append to .*{name}")
    path.write_bytes(whole)
    mp.Simulation.resume(stopped / "run.checkpoint", threads=1).close()


def test_a_trajectory_with_too_few_frames_or_other_beads_is_refused(stopped):
    simulation = bare()
    options = {"velocities": True, "precision": "single"}
    with simulation:
        simulation.reporters.append(mp.reporters.TrajectoryReporter(stopped / "run.h5", 3, overwrite=True, **options))
        simulation.step(5)
    refused(stopped, r"run\.h5 is shorter than at the checkpoint: 1 frames instead of 6")
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    with mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1)) as other:
        other.reporters.append(mp.reporters.TrajectoryReporter(stopped / "run.h5", 1, overwrite=True, **options))
        other.step(20)
    refused(stopped, r"cannot append to .*run\.h5: it holds")


@pytest.mark.parametrize("name", ["steps.csv", "run.h5"])
def test_files_open_for_writing_are_refused_before_any_is_changed(stopped, name):
    owner = mp.Simulation.resume(stopped / "run.checkpoint", threads=1)
    # There is something to be cut off.
    owner.step(5)
    for reporter in owner.reporters:
        if name not in str(getattr(reporter, "_path", "")):
            reporter.close()
    before = {p.name: p.read_bytes() for p in stopped.iterdir()}
    with pytest.raises(mp.ParameterError, match=rf"{name} is being written by another process"):
        mp.Simulation.resume(stopped / "run.checkpoint", threads=1)
    assert {p.name: p.read_bytes() for p in stopped.iterdir()} == before
    owner.close()
    mp.Simulation.resume(stopped / "run.checkpoint", threads=1).close()


@pytest.mark.parametrize("way", ["..", "absolute", "link", "linked folder"])
def test_files_outside_of_the_folder_are_refused_unless_they_are_wanted(tmp_path, way):
    """Whoever hands over a folder does not reach beyond it."""
    (tmp_path / "out").mkdir()
    (tmp_path / "run").mkdir()
    target = tmp_path / "out" / "t.csv"
    path = target
    if way == "link":
        path = tmp_path / "run" / "t.csv"
        path.symlink_to(target)
    elif way == "linked folder":
        (tmp_path / "run" / "below").symlink_to(tmp_path / "out")
        path = tmp_path / "run" / "below" / "t.csv"
    simulation = bare()
    simulation.reporters += [
        mp.reporters.StateDataReporter(path, 2, step=True),
        mp.reporters.StateDataReporter(tmp_path / "run" / "mine.csv", 2, step=True),
    ]
    simulation.step(4)
    checkpoint = tmp_path / "run" / "run.checkpoint"
    simulation.save_checkpoint(checkpoint)
    simulation.step(4)
    simulation.close()
    if way == "absolute":
        from medyanpy.files.checkpoint import read_checkpoint, write_checkpoint

        entries = read_checkpoint(checkpoint).reporters
        entries[0]["arguments"]["file"] = str(target)
        there = mp.Simulation.resume(checkpoint, threads=1, reporters=False)
        write_checkpoint(there.context, checkpoint, entries)
    refused(tmp_path / "run", r"names files outside of its folder(?s:.*)t\.csv\n.*reporters=True .*\nreporters=False")
    assert target.read_text() == '#"Step"\n2\n4\n6\n8\n'
    assert mp.Simulation.resume(checkpoint, threads=1, reporters=False).reporters == []
    with mp.Simulation.resume(checkpoint, threads=1, reporters=True) as again:
        again.step(2)
    assert target.read_text() == (tmp_path / "run" / "mine.csv").read_text() == '#"Step"\n2\n4\n6\n'
    with pytest.raises(mp.ParameterError, match="reporters must be True, False or None"):
        mp.Simulation.resume(checkpoint, reporters="yes")


def test_a_checkpoint_replaces_checkpoints_only(tmp_path):
    """The name is what the file says; what is there may be the user's."""
    with make(tmp_path / "run") as simulation:
        simulation.step(10)
    shutil.copy(tmp_path / "run" / "run.checkpoint", tmp_path / "run" / "copy")
    (tmp_path / "run" / "run.checkpoint").write_text("a thesis")
    with pytest.raises(mp.ParameterError, match="is not a checkpoint, and is not replaced by one"):
        mp.Simulation.resume(tmp_path / "run" / "copy", threads=1)
    assert (tmp_path / "run" / "run.checkpoint").read_text() == "a thesis"


def test_no_document_makes_a_reporter(tmp_path):
    """Documents are read without asking; a reporter opens files."""
    path = tmp_path / "precious"
    path.write_text("precious")
    tree = {
        "type": "StateDataReporter",
        "arguments": {"file": str(path), "interval": 1, "step": True, "overwrite": True},
    }
    text = mp.serialize(mp.VerletIntegrator(0.1)).replace(
        '"kick": null', f'"kick": {tree}'.replace("'", '"').replace("True", "true")
    )
    assert "StateDataReporter" in text
    refuses(mp.ParameterError, "'StateDataReporter' is not", mp.deserialize, text)
    with pytest.raises(mp.ParameterError, match="'StateDataReporter' is not"):
        mp.deserialize(
            '{"format": "medyanpy document", "version": 2, "content": '
            + str(tree).replace("'", '"').replace("True", "true") + "}"
        )  # fmt: skip
    assert path.read_text() == "precious"


# Tables have one writer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["append", "overwrite"])
def test_a_table_has_one_writer(tmp_path, flag):
    path = tmp_path / "t.csv"
    table = mp.reporters.StateDataReporter(path, 1, step=True)
    simulation = bare()
    simulation.reporters.append(table)
    simulation.step(2)
    with pytest.raises(mp.ParameterError, match=r"t\.csv is being written by another process, or by another reporter"):
        mp.reporters.StateDataReporter(path, 1, step=True, **{flag: True})
    program = (
        "import sys, medyanpy as mp\ntry:\n"
        f"    mp.reporters.StateDataReporter(sys.argv[1], 1, step=True, {flag}=True)\n"
        "except mp.ParameterError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert "is being written" in done.stdout
    assert path.read_text() == '#"Step"\n1\n2\n'
    child = os.fork()
    if not child:
        table.close()
        os._exit(0)
    os.waitpid(child, 0)
    refuses(mp.ParameterError, "is being written", mp.reporters.StateDataReporter, path, 1, step=True, **{flag: True})
    simulation.close()
    mp.reporters.StateDataReporter(path, 1, step=True, **{flag: True}).close()
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_devices_have_many(tmp_path):
    tables = [mp.reporters.StateDataReporter(os.devnull, 1, step=True, append=True) for _ in range(2)]
    for table in tables:
        table.close()


def test_a_file_without_rows_is_as_good_as_none(tmp_path):
    path = tmp_path / "t.csv"
    for there in ("", '#"Step"', '#"Time (s)"\n'):
        path.write_text(there)
        simulation = bare()
        simulation.reporters.append(mp.reporters.StateDataReporter(path, 1, step=True))
        simulation.step(1)
        simulation.close()
        assert path.read_text() == '#"Step"\n1\n'
    for there in ('#"Step"\n1\n', "x", "#\n", '#"Step"\n1'):
        path.write_text(there)
        refuses(mp.ParameterError, "exists; give overwrite=True", mp.reporters.StateDataReporter, path, 1, step=True)
        assert path.read_text() == there
