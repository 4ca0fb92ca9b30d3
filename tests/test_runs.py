"""Runs in folders, and steps within a time: what comes back, what is left, and what is refused."""

import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import runs
from medyanpy._tools.deadlines import Deadline, seconds_of
from medyanpy._tools.outputs import Lock
from medyanpy.errors import OutputError, ParameterError, ReporterWarning, SimulationError

sys.path.insert(0, str(Path(__file__).parent / "faults"))
from restart_runs import compared, forked, left

# Commands and processes: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow

# In a normal run of the tests by other processes at the same time: a minute of patience, and no judgement of speed.
AGES = 3600.0


def with_force(function):
    """A system with a Python force."""
    topology = mp.Topology()
    topology.add_beads(np.ones((3, 3)), mass=1.0, friction=0.5)
    system = system_with(topology, mp.forces.PythonForce(function, name="pull"))
    return system


def build(n=5, seed=3, threads=1):
    topology = mp.Topology()
    beads = topology.add_beads(np.random.default_rng(n).normal(0.0, 3.0, (n, 3)), mass=1.0, friction=0.5)
    return mp.Simulation(system_with(topology, mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0])),
                         mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=seed), threads)  # fmt: skip


def make(directory, *, checkpoint=None, seed=3):
    simulation = build(seed=seed)
    simulation.reporters += [
        mp.reporters.TrajectoryReporter(directory / "run.h5", 7, velocities=True),
        mp.reporters.StateDataReporter(directory / "run.csv", 3, step=True, total_energy=True, temperature=True),
    ]
    if checkpoint:
        simulation.reporters.append(mp.reporters.CheckpointReporter(directory / runs.CHECKPOINT, checkpoint))
    return simulation


class Clock:
    """Time that passes only when a step is taken."""

    def __init__(self, monkeypatch, each):
        self.now, self.each = 0.0, each
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        step = mp.Context.step

        def slow(context, n):
            step(context, n)
            self.now += n * self.each

        monkeypatch.setattr(mp.Context, "step", slow)


# Times ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90), (0.5, 0.5), ("90", 90), ("50m", 3000), ("1h30m", 5400), ("1h 30m", 5400), ("1.5h", 5400),
        ("2d", 172800), ("1d2h3m4s", 93784), ("01:30:00", 5400), ("1-02:30:00", 95400), ("1e3", 1000),
    ],
)  # fmt: skip
def test_times_as_people_and_schedulers_write_them(text, seconds):
    assert seconds_of("walltime", text) == seconds


@pytest.mark.parametrize("text", [0, -1.0, "0m", "", "soon", "1m2h", "30:00", "1:60:00", "-5m", "nan", "inf", np.inf,
                                  None])  # fmt: skip
def test_times_that_are_none(text):
    refuses(ParameterError, "walltime", seconds_of, "walltime", text)


def test_a_deadline_within_another():
    outer = Deadline(AGES)
    inner = Deadline(None, outer)
    assert 0.0 < inner.left <= AGES
    assert Deadline().left == np.inf
    assert not inner.stopped
    outer.stop()
    assert inner.stopped
    assert inner.left == -np.inf


# Simulations within a time -----------------------------------------------------------------------------------


def test_run_until_counts_from_the_beginning():
    simulation = build()
    assert simulation.run_until(10)
    assert simulation.run_until(25, walltime=AGES)
    assert simulation.run_until(25)
    assert simulation.current_step == 25
    through = build()
    through.step(25)
    one, other = (s.context.get_state(positions=True).positions for s in (simulation, through))
    assert (one == other).all()
    refuses(ParameterError, "step = 24 but the simulation is at step 25 already", simulation.run_until, 24)
    refuses(ParameterError, "step", simulation.run_until, 2.5)


def test_steps_end_in_time(monkeypatch):
    """By a clock of which each step takes a second: as many as there is time for, and none that would come too late."""
    Clock(monkeypatch, 1.0)
    simulation = build()
    assert not simulation.run_until(10**6, walltime="1m40.5s")
    assert simulation.current_step == 100
    assert simulation.run_for(20.5) == 20
    assert simulation.run_until(130, walltime="1h")
    assert simulation.current_step == 130


def test_many_steps_at_once_end_in_time(monkeypatch):
    """Nobody looks at the clock between them."""
    Clock(monkeypatch, 1e-3)
    assert build().run_for(1.0005) == 1000


def test_reporters_have_reported_when_time_is_up(monkeypatch, tmp_path):
    Clock(monkeypatch, 1.0)
    with make(tmp_path) as simulation:
        simulation.run_for(30.5)
        assert simulation.current_step == 30
        assert np.loadtxt(tmp_path / "run.csv", delimiter=",")[:, 0].tolist() == list(range(3, 31, 3))


@pytest.mark.parametrize("call", [lambda s: s.run_for("1s"), lambda s: s.run_until(9, walltime=1.0)])
def test_a_time_shorter_than_a_step(monkeypatch, call):
    """The step is taken: whoever calls again comes to the end all the same."""
    Clock(monkeypatch, 2.5)
    simulation = build()
    refuses(ParameterError, r"walltime = 1 s is shorter than one step .* which took 2\.5 s", call, simulation)
    assert simulation.current_step == 1


def test_last_step_that_comes_late_is_not_a_failure(monkeypatch):
    Clock(monkeypatch, 2.5)
    assert build().run_until(1, walltime=1.0)


# Runs in folders ---------------------------------------------------------------------------------------------


def test_a_run_is_started_resumed_and_done(tmp_path):
    folder = tmp_path / "new" / "folder"
    assert mp.run(folder, make, until=50) == mp.RunOutcome(True, 50, folder, "started")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    # Of make nothing is needed any more; and of a run that is done no file is touched.
    assert mp.run(folder, lambda directory: 1 / 0, until=50) == mp.RunOutcome(True, 50, folder, "was done")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert mp.run(str(folder), make, until=80) == mp.RunOutcome(True, 80, folder, "resumed")
    assert np.loadtxt(folder / "run.csv", delimiter=",")[:, 0].tolist() == list(range(3, 81, 3))
    assert mp.Trajectory(folder / "run.h5").steps.tolist() == list(range(7, 81, 7))


@pytest.mark.parametrize("checkpoint", [None, 5, 13])
def test_a_run_in_pieces_leaves_the_files_of_one_at_once(monkeypatch, tmp_path, checkpoint):
    """Datasets, table and checkpoint to the bit, though checkpoints were written at other steps in between."""

    def begin(directory):
        return make(directory, checkpoint=checkpoint)

    mp.run(tmp_path / "once", begin, until=100)
    Clock(monkeypatch, 1.0)
    steps = []
    for _ in itertools.takewhile(lambda _: not steps or steps[-1] < 100, itertools.count()):
        outcome = mp.run(tmp_path / "pieces", begin, until=100, walltime=7.5)
        steps.append(outcome.step)
        assert outcome.finished == (outcome.step == 100)
    assert len(steps) == 15
    assert compared(tmp_path / "once", tmp_path / "pieces") == []
    assert set(left(tmp_path / "once")) == {"run.h5", "run.csv", runs.CHECKPOINT}


def test_a_run_that_was_to_go_farther_is_cut_off(tmp_path):
    """Its checkpoint is of the very step, but files go on."""

    def begin(directory):
        simulation = make(directory, checkpoint=50)
        simulation.step(60)
        simulation.reporters[-1].flush()
        return simulation

    # Killed at step 60.
    (tmp_path / "killed").mkdir()
    with begin(tmp_path / "killed"):
        pass
    (tmp_path / "killed" / runs.CHECKPOINT).touch()
    os.utime(tmp_path / "killed" / "run.csv")
    mp.run(tmp_path / "through", lambda folder: make(folder, checkpoint=50), until=50)
    assert compared(tmp_path / "through", tmp_path / "killed") != []
    assert mp.run(tmp_path / "killed", make, until=50).action == "was done"
    assert compared(tmp_path / "through", tmp_path / "killed") == []


@pytest.mark.parametrize("free", [False, True], ids=["locked", "let go"])
def test_a_run_killed_before_its_files_were_closed_is_closed(monkeypatch, tmp_path, free):
    """Its checkpoint is of the very step, and nothing is missing; but HDF5 opens no file that has a writer's mark."""

    def killed():
        monkeypatch.setattr(mp.Simulation, "close", lambda simulation: os.kill(os.getpid(), signal.SIGKILL))
        mp.run(tmp_path / "killed", make, until=50)

    child = forked(killed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if free:
        # As an ensemble does, which waits for the folder.
        Lock("test", tmp_path / "killed" / runs.CHECKPOINT).release()
    refuses(OSError, "already open for write", h5py.File, tmp_path / "killed" / "run.h5", "r")
    mp.run(tmp_path / "through", make, until=50)
    assert mp.run(tmp_path / "killed", make, until=50).action == "was done"
    assert compared(tmp_path / "through", tmp_path / "killed") == []
    # Now no file is touched any more.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").iterdir()}
    assert mp.run(tmp_path / "killed", lambda directory: 1 / 0, until=50).action == "was done"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").iterdir()} == before


def test_reports_pending_at_a_checkpoint_are_made(tmp_path):
    """The step is reached, and a row is missing."""
    simulation = make(tmp_path)
    table = simulation.reporters[1]
    fails = [True]
    report = table.report

    def once(simulation, state):
        if state.step == 21 and fails.pop():
            raise OutputError("no room")
        report(simulation, state)

    table.report = once
    refuses(OutputError, "no room", simulation.step, 21)
    simulation.save_checkpoint(tmp_path / runs.CHECKPOINT)
    simulation.close()
    now = time.time_ns()
    os.utime(tmp_path / runs.CHECKPOINT, ns=(now, now))
    assert mp.run(tmp_path, make, until=21) == mp.RunOutcome(True, 21, tmp_path, "resumed")
    assert np.loadtxt(tmp_path / "run.csv", delimiter=",")[-1, 0] == 21
    mp.run(tmp_path.with_name("through"), make, until=21)
    assert compared(tmp_path.with_name("through"), tmp_path) == []


def test_checkpoints_by_the_clock(monkeypatch, tmp_path):
    """Once a minute, where there is no reporter that writes them, and not at all where there is one."""
    saved = []
    save = mp.Simulation.save_checkpoint

    def noted(simulation, path):
        saved.append(simulation.current_step)
        save(simulation, path)

    Clock(monkeypatch, 1.0)
    monkeypatch.setattr(mp.Simulation, "save_checkpoint", noted)
    mp.run(tmp_path / "clock", make, until=200)
    assert saved == [0, 60, 120, 180, 200]
    saved.clear()
    mp.run(tmp_path / "reporter", lambda folder: make(folder, checkpoint=150), until=200)
    assert saved == [0, 150, 200]


def test_steps_longer_than_the_time_between_checkpoints(monkeypatch, tmp_path):
    Clock(monkeypatch, 100.0)
    assert mp.run(tmp_path, make, until=5).finished


def test_a_walltime_shorter_than_a_step_comes_to_the_end(monkeypatch, tmp_path):
    Clock(monkeypatch, 3.0)
    for step in (1, 2, 3):
        with pytest.raises(ParameterError, match="walltime = 1 s is shorter than what it takes to build"):
            mp.run(tmp_path, make, until=5, walltime=1.0)
        with mp.Simulation.resume(tmp_path / runs.CHECKPOINT, reporters=False) as simulation:
            assert simulation.current_step == step


def test_threads_are_those_of_the_call_where_make_says_nothing(tmp_path):
    seen = []

    def begin(directory, threads=None):
        simulation = build(threads=threads)
        seen.append(simulation.context.threads)
        return simulation

    mp.run(tmp_path / "a", begin, until=1, threads=3)
    mp.run(tmp_path / "b", lambda directory: begin(directory, 1), until=1, threads=3)
    assert seen == [3, 1]


# Documents ---------------------------------------------------------------------------------------------------


def test_a_document_is_run_with_the_usual_reporters(tmp_path):
    text = mp.serialize(build())
    (tmp_path / "system.json").write_text(text)
    mp.run(tmp_path / "a", text, until=1000)
    mp.run(tmp_path / "b", tmp_path / "system.json", until=1000)
    assert compared(tmp_path / "a", tmp_path / "b") == []
    assert mp.Trajectory(tmp_path / "a" / "run.h5").steps.tolist() == [1000]
    assert len(np.loadtxt(tmp_path / "a" / "run.csv", delimiter=",")) == 10
    mp.run(tmp_path / "c", runs.FromDocument(text, trajectory=None, table=500, checkpoint=500), until=1000)
    assert not (tmp_path / "c" / "run.h5").exists()
    assert len(np.loadtxt(tmp_path / "c" / "run.csv", delimiter=",")) == 2


def test_functions_of_documents(tmp_path):
    def pull(x):
        return 0.5 * float((x**2).sum()), -x

    text = mp.serialize((with_force(pull), build().integrator))
    refuses(ParameterError, "pull", mp.run, tmp_path, text, until=10)
    mp.run(tmp_path, text, until=10, functions={"pull": pull})
    assert mp.run(tmp_path, text, until=20, functions={"pull": pull}).action == "resumed"


@pytest.mark.parametrize(("change", "message"), [
    (lambda text: text.replace('"version": 2', '"version": 3'), "has version 3 of the format.*install a newer"),
    (lambda text: text[: len(text) // 2], "is not JSON"),
    (lambda text: mp.serialize(mp.VerletIntegrator(0.1)), "document is of a VerletIntegrator, not of a Simulation"),
])  # fmt: skip
def test_documents_that_cannot_be_run(tmp_path, change, message):
    refuses(ParameterError, message, mp.run, tmp_path, change(mp.serialize(build())), until=10)
    refuses(ParameterError, r"nowhere\.json does not exist", mp.run, tmp_path, tmp_path / "nowhere.json", until=10)
    assert left(tmp_path) == {}


# What is refused ---------------------------------------------------------------------------------------------


def test_a_run_that_is_farther(tmp_path):
    mp.run(tmp_path, make, until=50)
    before = left(tmp_path)
    refuses(ParameterError, r"until = 40 but .* is at step 50 already", mp.run, tmp_path, make, until=40)
    assert left(tmp_path) == before


def test_folders_that_hold_something_else(tmp_path):
    (tmp_path / "file").write_text("x")
    refuses(ParameterError, "file is a file, not the folder of a run", mp.run, tmp_path / "file", make, until=10)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / runs.CHECKPOINT).write_text("mine")
    refuses(ParameterError, "is not a checkpoint", mp.run, tmp_path / "a", make, until=10)
    assert (tmp_path / "a" / runs.CHECKPOINT).read_text() == "mine"
    # Outputs of a run whose checkpoint is gone.
    mp.run(tmp_path / "b", make, until=10)
    (tmp_path / "b" / runs.CHECKPOINT).unlink()
    before = left(tmp_path / "b")
    refuses(ParameterError, r"run\.h5 exists", mp.run, tmp_path / "b", make, until=20)
    assert left(tmp_path / "b") == before


def test_reporters_that_write_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=r"TrajectoryReporter of make writes .*, outside .* directory / 'run\.h5'"):
        mp.run("folder", lambda directory: make(Path()), until=10)
    assert left(tmp_path / "folder") == {}
    # A folder by a relative name, and a link to one, are as good as any.
    mp.run("one", make, until=10)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert mp.run("link", make, until=20).step == 20


@pytest.mark.parametrize("made", [None, "x", lambda: 1])
def test_a_make_that_makes_something_else(tmp_path, made):
    refuses(ParameterError, "make must return a Simulation, not", mp.run, tmp_path, lambda directory: made, until=10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": -1}, "until"), ({"until": 1.5}, "until"), ({"until": 5, "walltime": "soon"}, "walltime"),
        ({"until": 5, "walltime": 0}, "walltime"), ({"until": 5, "threads": 0}, "threads"),
    ],
)  # fmt: skip
def test_numbers_outside_their_domain(tmp_path, options, message):
    refuses(ParameterError, message, mp.run, tmp_path, make, **options)
    refuses(ParameterError, "make", mp.run, tmp_path, 5, until=5)
    assert left(tmp_path) == {}


def test_run_warns_of_reporters_that_cannot_resume(tmp_path):
    class Mine(mp.reporters.Reporter):
        def report(self, simulation, state):
            pass

    def begin(directory):
        simulation = make(directory)
        simulation.reporters.append(Mine(5))
        return simulation

    with pytest.warns(ReporterWarning, match="Mine"):
        mp.run(tmp_path, begin, until=10)


def test_one_process_at_a_time(tmp_path):
    inside = []

    def begin(directory):
        try:
            mp.run(directory, make, until=10)
        except ParameterError as error:
            inside.append(str(error))
        return make(directory)

    mp.run(tmp_path, begin, until=10)
    assert len(inside) == 1
    assert "is being written" in inside[0]


def test_a_run_that_fails_keeps_its_last_checkpoint(tmp_path):
    calls = itertools.count()

    def breaks(x):
        if next(calls) > 40:
            raise RuntimeError("enough")
        return 0.0, np.zeros_like(x)

    def begin(directory):
        simulation = mp.Simulation(with_force(breaks), mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0), threads=1)
        simulation.reporters.append(mp.reporters.CheckpointReporter(directory / runs.CHECKPOINT, 10))
        return simulation

    refuses((SimulationError, RuntimeError), "enough", mp.run, tmp_path, begin, until=1000, functions={"pull": breaks})
    with mp.Simulation.resume(tmp_path / runs.CHECKPOINT,
                              functions={"pull": lambda x: (0.0, np.zeros_like(x))}) as simulation:  # fmt: skip
        assert simulation.current_step in (10, 20, 30, 40)


def test_a_run_resumes_without_make(tmp_path):
    """In its folder, or from a checkpoint that lies anywhere; nothing is started."""
    folder = tmp_path / "cell"
    refuses(mp.ParameterError, r"run: .*cell does not exist: give `make` to start a run", mp.run, folder, until=20)
    assert not folder.exists()
    mp.run(folder, make, until=20)
    assert mp.run(folder, until=40) == mp.RunOutcome(True, 40, folder, "resumed")
    assert mp.run(folder / runs.CHECKPOINT, until=40) == mp.RunOutcome(True, 40, folder, "was done")
    assert mp.run(folder / runs.CHECKPOINT, until=60) == mp.RunOutcome(True, 60, folder, "resumed")
    mp.run(tmp_path / "through", make, until=60)
    assert compared(tmp_path / "through", folder) == []
    (tmp_path / "text").write_text("not a checkpoint")
    refuses(mp.ParameterError, r"run: .*text is not a checkpoint", mp.run, tmp_path / "text", until=20)
    refuses(mp.ParameterError, r"run: until = 10 but .* is at step 60 already", mp.run, folder, until=10)


# Signals -----------------------------------------------------------------------------------------------------


def test_sigterm_is_time_that_is_up(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGTERM]).start()
    outcome = mp.run(tmp_path / "stopped", make, until=10**9)
    assert not outcome.finished
    assert outcome.step > 0
    assert signal.getsignal(signal.SIGTERM) is before
    # Nothing is lost, and nothing else either.
    until = outcome.step + 20
    assert mp.run(tmp_path / "stopped", make,
                  until=until) == mp.RunOutcome(True, until, tmp_path / "stopped", "resumed")  # fmt: skip
    mp.run(tmp_path / "through", make, until=until)
    assert compared(tmp_path / "through", tmp_path / "stopped") == []


def test_sigterm_while_a_run_is_built(tmp_path):
    went_on = []

    def begin(directory):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5.0)
        went_on.append(True)
        return make(directory)

    assert mp.run(tmp_path, begin, until=10) == mp.RunOutcome(False, 0, tmp_path, "started")
    assert not went_on
    assert mp.run(tmp_path, make, until=10).finished


def test_ctrl_c_saves_what_there_is(tmp_path, interruptible):
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        mp.run(tmp_path, make, until=10**9)
    with mp.Simulation.resume(tmp_path / runs.CHECKPOINT) as simulation:
        at = simulation.current_step
    assert at > 0
    assert mp.run(tmp_path, make, until=at + 1).action == "resumed"


def test_runs_in_other_threads(tmp_path):
    """Where no signals arrive."""
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(mp.run(tmp_path, make, until=30)))
    thread.start()
    thread.join()
    assert outcomes == [mp.RunOutcome(True, 30, tmp_path, "started")]
