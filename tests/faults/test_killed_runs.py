"""Runs that are killed and started again leave the files of those that nothing happened to, to the bit."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from fault_runs import run
from restart_runs import command, compared, forked

pytestmark = pytest.mark.slow

# Each trial is a random system, whose script is killed at random moments until it comes to its end.
KILLS = """
    import json, random, shutil, time
    from pathlib import Path
    from restart_runs import command, compared, disturbed, forked, script
    KILLS, STEPS = 0, 0
    rng = random.Random(20261122)
    counts = []
    while sum(counts) < KILLS:
        seed = rng.randrange(10**6)
        save = rng.choice((STEPS // 12, STEPS // 5))
        for name in ("through", "killed"):
            shutil.rmtree(path.parent / name, ignore_errors=True)
            (path.parent / name).mkdir()
        begin = time.perf_counter()
        child = forked(script, path.parent / "through", seed, STEPS, save)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        seconds = time.perf_counter() - begin
        most = min(40, KILLS - sum(counts))
        counts.append(disturbed(rng, seconds, most, script, path.parent / "killed", seed, STEPS, save))
        found = compared(path.parent / "through", path.parent / "killed")
        assert not found, (seed, counts[-1], found)
        assert (path.parent / "killed" / "run.h5").exists()
    print(json.dumps(counts))
"""


@pytest.mark.parametrize(("kills", "steps"), [(5, 150), pytest.param(1000, 300, marks=pytest.mark.long)])
def test_killed_runs_leave_the_files_of_undisturbed_ones(tmp_path, kills, steps):
    program = KILLS.replace("KILLS, STEPS = 0, 0", f"KILLS, STEPS = {kills}, {steps}")
    counts = json.loads(run(program, tmp_path / "run")[1])
    assert sum(counts) >= kills


@pytest.mark.parametrize(("kills", "steps"), [(3, 150), pytest.param(300, 300, marks=pytest.mark.long)])
def test_the_command_killed_leaves_the_files_of_one_that_was_not(tmp_path, kills, steps):
    """`medyanpy run`, which also ends by SIGTERM with a checkpoint at whatever step that was."""
    program = KILLS.replace("KILLS, STEPS = 0, 0", f"KILLS, STEPS = {kills}, {steps}").replace("script,", "command,")
    lines = run(program, tmp_path / "run")[1].splitlines()
    assert sum(json.loads(lines[-1])) >= kills


@pytest.mark.long
def test_a_whole_process_killed_twenty_times(tmp_path):
    """By SIGKILL alone, and in a process of its own each time, as somebody's shell does it."""
    rng, steps, save, kills, trials = random.Random(5), 4000, 100, 0, []
    while kills < 20:
        seed = rng.randrange(10**6)
        through, killed = tmp_path / f"through{seed}", tmp_path / f"killed{seed}"
        begin = time.perf_counter()
        child = forked(command, through, seed, steps, save)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        seconds = 1.5 + time.perf_counter() - begin
        words = [sys.executable, "-m", "medyanpy", "run", tmp_path / f"run{seed}.py", "--dir", killed, "--until",
                 str(steps), "--threads", "1"]  # fmt: skip
        here = 0
        while True:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
            if kills < 20:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(seconds * rng.random())
                process.kill()
            code = process.wait()
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills, here = kills + 1, here + 1
        trials.append(here)
        assert compared(through, killed) == []
    print(trials)
