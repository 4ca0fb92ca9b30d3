"""Runs that are killed and started again leave the files of those that nothing happened to, to the bit."""

import json

import pytest
from fault_runs import run

pytestmark = pytest.mark.slow

# Each trial is a random system, whose script is killed at random moments until it comes to its end.
KILLS = """
    import json, random, shutil, time
    from pathlib import Path
    from restart_runs import compared, disturbed, forked, script
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


@pytest.mark.parametrize(("kills", "steps"), [(10, 150), pytest.param(1000, 300, marks=pytest.mark.long)])
def test_killed_runs_leave_the_files_of_undisturbed_ones(tmp_path, kills, steps):
    program = KILLS.replace("KILLS, STEPS = 0, 0", f"KILLS, STEPS = {kills}, {steps}")
    counts = json.loads(run(program, tmp_path / "run")[1])
    assert sum(counts) >= kills
