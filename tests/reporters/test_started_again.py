"""Scripts that are started again resume, one process at a time."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import refuses
from reporters.restarting import Forgetful, bare, left, make, script

import medyanpy as mp
from medyanpy.files.trajectory import Trajectory

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("save", ["run.checkpoint", "run-{step}.checkpoint"])
def test_script_started_again_resumes(tmp_path, save):
    assert [script(tmp_path / "a", total, save) for total in (25, 25, 38, 50, 50)] == [0, 20, 20, 30, 50]
    assert script(tmp_path / "b", 50, save) == 0
    assert left(tmp_path / "a") == left(tmp_path / "b")


def test_the_first_checkpoint_is_written_at_once(tmp_path):
    with mp.Simulation.resume(tmp_path / "run.checkpoint", start=lambda: make(tmp_path)) as simulation:
        assert (tmp_path / "run.checkpoint").exists()
        assert simulation.current_step == 0


def test_outputs_of_a_run_whose_checkpoint_was_lost_are_not_replaced(tmp_path):
    script(tmp_path, 20)
    (tmp_path / "run.checkpoint").unlink()
    before = left(tmp_path)
    refuses(mp.ParameterError, r"steps\.csv exists; give overwrite=True", script, tmp_path, 20)
    (tmp_path / "run.checkpoint").unlink(missing_ok=True)
    assert left(tmp_path) == before


def test_wrong_starts_are_refused_and_can_be_mended(tmp_path):
    path = tmp_path / "run.checkpoint"

    def without():
        simulation = make(tmp_path)
        simulation.reporters.pop(0)
        return simulation

    def misses():
        simulation = make(tmp_path, "other.checkpoint")
        simulation.reporters.append(mp.reporters.StateDataReporter(tmp_path / "area.csv", 1, area=True))
        return simulation

    def late():
        simulation = make(tmp_path)
        simulation.reporters.append(mp.reporters.StateDataReporter(tmp_path / "area.csv", 1, area=True))
        return simulation

    extent = tmp_path / "extent.txt"
    for start, message in (
        (lambda: None, "start must return a Simulation, not NoneType"),
        (without, r"no reporter of what start returned writes checkpoints to .*run\.checkpoint; without"),
        (misses, r"no reporter of what start returned writes"),
        (late, "area is asked for, but there is no membrane"),
    ):
        refuses(mp.ParameterError, message, mp.Simulation.resume, path, start=start)
        extent.unlink(missing_ok=True)
        assert not path.exists()
    with pytest.raises(mp.ParameterError, match=r"folder .* does not exist"):
        mp.Simulation.resume(tmp_path / "nowhere" / "c", start=late)
    assert script(tmp_path, 10) == 0


def test_start_warns_of_reporters_that_cannot_resume(tmp_path):
    """Not by the first process that goes on, some night."""
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "run.checkpoint"

    def start(reporter):
        simulation = bare()
        simulation.reporters += [reporter, mp.reporters.CheckpointReporter(path, 10)]
        return simulation

    def elsewhere():
        return mp.reporters.StateDataReporter(tmp_path / "t.csv", 2, step=True)

    with pytest.raises(mp.ParameterError, match=r"names files outside of its folder(?s:.*)t\.csv"):
        mp.Simulation.resume(path, start=lambda: start(elsewhere()))
    assert not path.exists()
    for total in (12, 20):
        with mp.Simulation.resume(path, start=lambda: start(elsewhere()), reporters=True) as simulation:
            simulation.step(total - simulation.current_step)
    assert (tmp_path / "t.csv").read_text().split()[1:] == [str(k) for k in range(2, 21, 2)]
    path.unlink()
    with pytest.warns(mp.ReporterWarning, match="does not bring back Forgetful"):
        mp.Simulation.resume(path, start=lambda: start(Forgetful(1))).close()


def test_a_second_process_of_a_script_is_refused_while_the_first_is_there(tmp_path):
    """Whatever its reporters are: here, it has no file but the checkpoint."""
    path = tmp_path / "run.checkpoint"

    def start():
        simulation = bare()
        simulation.reporters.append(mp.reporters.CheckpointReporter(path, 10))
        return simulation

    def starts_too():
        refuses(mp.ParameterError, "is being written", mp.Simulation.resume, path, start=start)
        return start()

    first = mp.Simulation.resume(path, start=starts_too)
    for _ in range(2):
        with pytest.raises(mp.ParameterError, match=r"Simulation\.resume: .*run\.checkpoint is being written"):
            mp.Simulation.resume(path, start=start)
        first.step(10)
    first.close()
    again = mp.Simulation.resume(path, start=start)
    assert again.current_step == 20
    del again
    mp.Simulation.resume(path, start=start).close()
    assert [p.name for p in tmp_path.iterdir()] == ["run.checkpoint"]


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
sys.path[:0] = [{here!r}, str(Path({here!r}).parent)]
import medyanpy as mp
import medyanpy._tools.outputs, medyanpy.files.checkpoint, medyanpy.simulation, medyanpy.reporters.trajectory
import h5py
from restarting import bare

def start():
    simulation = bare()
    simulation.reporters += [
        mp.reporters.TrajectoryReporter("run.h5", 1),
        mp.reporters.StateDataReporter("t.csv", 1, step=True),
        mp.reporters.CheckpointReporter("run.checkpoint", 10),
    ]
    return simulation

def aimed(owner, name, at):
    "Kill this process at a call, and so after the one before it."
    keep = getattr(owner, name)
    calls = []
    def killed(*arguments, **options):
        calls.append(name)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return keep(*arguments, **options)
    setattr(owner, name, killed)

def once(place, count):
    "How a process ends that is killed there; 0 if it gets past the first checkpoint."
    child = os.fork()
    if not child:
        code = 1
        try:
            aimed(*place, count)
            mp.Simulation.resume("run.checkpoint", start=start, threads=1)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

kills = []
for place in [
    (mp.Simulation, "__init__"), (mp.reporters.Reporter, "__init__"), (mp.reporters.StateDataReporter, "_put"),
    (os, "open"), (os, "fsync"), (os, "replace"), (os, "unlink"), (h5py.File, "__init__"),
    (medyanpy._tools.outputs, "hold"), (medyanpy.files.checkpoint, "_write"), (medyanpy.simulation, "Lock"),
    (medyanpy.reporters._table, "hold"), (medyanpy.reporters.trajectory, "Lock"),
]:
    count = 1
    while (code := once(place, count)) == -signal.SIGKILL:
        # Whoever comes next finds what all before have left, but a checkpoint.
        Path("run.checkpoint").unlink(missing_ok=True)
        count += 1
    assert code == 0, (place[1], count, code)
    Path("run.checkpoint").unlink()
    kills.append(count - 1)
with mp.Simulation.resume("run.checkpoint", start=start, threads=1) as simulation:
    simulation.step(25)
print(json.dumps(kills))
"""


def test_kills_at_every_moment_until_the_first_checkpoint_do_not_refuse_the_next_start(tmp_path):
    """Whatever makes or changes files, before and after each call of it; one after the other in one folder."""
    program = PROGRAM.format(here=str(Path(__file__).parent))
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kills = json.loads(done.stdout)
    assert min(kills) >= 1
    assert (tmp_path / "t.csv").read_text().split() == ['#"Step"', *map(str, range(1, 26))]
    with Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == list(range(1, 26))
    assert not [p.name for p in tmp_path.iterdir() if re.search("tmp|lock", p.name)]
