"""SIGINT and SIGTERM come between two steps: nothing that was due is missing, none is lost, and handlers come back."""

import json
import signal
import threading

import pytest
from fault_runs import frames, make, run

import medyanpy as mp
from medyanpy._tools.interrupts import Interrupts
from medyanpy.engine.measure import Measure
from medyanpy.reporters import _content as layout

# Each trial is interrupted at a random moment of a run with all reporters, its first steps with the creation of files
# among them, and goes on.
RANDOM = """
    import json, random, threading, time
    from fault_runs import frames, rows
    rng = random.Random(20261122)
    TRIALS = 0
    class Stopped(BaseException):
        pass
    def stop(*_):
        raise Stopped
    signal.signal(signal.SIGTERM, stop)
    # Shells start what runs in the background with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = []
    for trial in range(TRIALS):
        for name in ("run.h5", "table.csv", "run.cp"):
            path.with_name(name).unlink(missing_ok=True)
        simulation = make(path)
        simulation.reporters += [
            mp.reporters.CheckpointReporter(path.with_name("run.cp"), 20),
            mp.reporters.StateDataReporter(path.with_name("table.csv"), 3, step=True),
        ]
        # The table is made here, before the first step.
        number = rng.choice((signal.SIGINT, signal.SIGTERM))
        delay = rng.choice((0.02, 0.1)) * rng.random()
        started = threading.Event()
        def send():
            started.wait()
            time.sleep(delay)
            os.kill(os.getpid(), number)
        thread = threading.Thread(target=send)
        thread.start()
        caught, other, at = 0, [], None
        while not caught or simulation.current_step < 80:
            try:
                started.set()
                simulation.step(max(1, 80 - simulation.current_step))
            except (KeyboardInterrupt, Stopped):
                caught, at = caught + 1, simulation.current_step
            except Exception as error:
                other.append(repr(error))
                if len(other) > 3:
                    break
        thread.join()
        assert not other, (trial, at, other)
        simulation.close()
        end = simulation.current_step
        assert caught == 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is stop
        assert frames(path) == list(range(1, end + 1)), (trial, at)
        assert rows(path.with_name("table.csv")) == list(range(3, end + 1, 3)), (trial, at)
        assert mp.Simulation.resume(path.with_name("run.cp"), reporters=False).current_step == end // 20 * 20
        out.append(at)
    print(json.dumps(out))
"""


@pytest.mark.slow
@pytest.mark.parametrize("trials", [8, pytest.param(300, marks=pytest.mark.long)])
def test_random_interrupts_cost_nothing(tmp_path, trials):
    code, out = run(RANDOM.replace("TRIALS = 0", f"TRIALS = {trials}"), tmp_path / "run.h5")
    assert code == 0
    assert len(json.loads(out)) == trials


class Interrupted(mp.reporters.Reporter):
    """A signal arrives while it reports; keeps the handlers that it sees."""

    def __init__(self, number, at):
        super().__init__(1)
        self.number, self.at, self.seen, self.handlers = number, at, [], []

    def report(self, simulation, state):
        if state.step == self.at:
            signal.raise_signal(self.number)
        self.seen.append(state.step)
        self.handlers.append(signal.getsignal(self.number))


@pytest.fixture
def handlers():
    """Handlers of somebody else, which keep what arrives, and raise."""
    arrived = []

    def stop(number, frame):
        arrived.append(number)
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    yield arrived, stop
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("at", [1, 5, 64, 100])
def test_a_signal_comes_when_all_have_reported(tmp_path, handlers, number, place, at):
    arrived, stop = handlers
    simulation, reporter = make(tmp_path / "run.h5"), Interrupted(number, at)
    simulation.reporters.insert(place, reporter)
    with pytest.raises(KeyboardInterrupt):
        simulation.step(100)
    assert simulation.current_step == at
    assert arrived == [number]
    assert signal.getsignal(number) is stop
    assert reporter.seen[-1] == at
    simulation.step(100 - at)
    simulation.close()
    assert reporter.seen == list(range(1, 101))
    assert frames(tmp_path / "run.h5") == list(range(1, 101))


def test_a_signal_while_files_are_created_comes_when_they_are_there(tmp_path, handlers, monkeypatch):
    describe = layout.Content._describe

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        describe(*arguments)

    monkeypatch.setattr(layout.Content, "_describe", interrupted)
    simulation = make(tmp_path / "run.h5")
    with pytest.raises(KeyboardInterrupt):
        simulation.step(10)
    assert simulation.current_step == 0
    assert frames(tmp_path / "run.h5") == []
    simulation.step(10)
    simulation.close()
    assert frames(tmp_path / "run.h5") == list(range(1, 11))


def test_a_signal_after_the_last_step_does_not_cost_its_report(handlers, monkeypatch):
    """It comes out of the program, when all steps are taken."""
    simulation, reporter = make(), Interrupted(signal.SIGINT, -1)
    simulation.reporters.append(reporter)
    step = mp.Context.step

    def interrupted(self, n):
        step(self, n)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(mp.Context, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulation.step(10)
    assert reporter.seen == [1]


def test_a_signal_while_the_watch_looks(handlers, monkeypatch):
    reference, admit, signals = make(), Measure.admit, [signal.SIGINT]

    def interrupted(self, *arguments):
        if signals:
            signal.raise_signal(signals.pop())
        return admit(self, *arguments)

    monkeypatch.setattr(Measure, "admit", interrupted)
    simulation = make()
    with pytest.raises(KeyboardInterrupt):
        simulation.step(100)
    simulation.step(100 - simulation.current_step)
    reference.step(100)
    ends = [s.context.get_state(positions=True).positions for s in (simulation, reference)]
    assert (ends[0] == ends[1]).all()


def test_handlers_that_do_not_raise_let_the_run_continue(handlers):
    arrived = []
    signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    simulation, reporter = make(), Interrupted(signal.SIGINT, 5)
    simulation.reporters.append(reporter)
    simulation.step(10)
    assert reporter.seen == list(range(1, 11))
    assert arrived == [signal.SIGINT]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_handlers_come_back_on_every_way_out(handlers, error):
    class Raises(Interrupted):
        def report(self, simulation, state):
            super().report(simulation, state)
            raise error

    simulation = make()
    simulation.reporters.append(Raises(signal.SIGINT, -1))
    with pytest.raises(error):
        simulation.step(1)
    assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is handlers[1]
    # A signal that arrives together with an error is not lost.
    simulation.reporters = [Raises(signal.SIGINT, 2)]
    with pytest.raises(KeyboardInterrupt):
        simulation.step(1)
    assert handlers[0] == [signal.SIGINT]


def test_ignored_signals_stay_ignored(handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    simulation, reporter = make(), Interrupted(signal.SIGINT, 1)
    simulation.reporters.append(reporter)
    simulation.step(2)
    assert reporter.handlers == [signal.SIG_IGN] * 2


def test_other_threads_install_no_handlers(handlers):
    simulation, reporter = make(), Interrupted(signal.SIGINT, -1)
    simulation.reporters.append(reporter)
    thread = threading.Thread(target=simulation.step, args=(3,))
    thread.start()
    thread.join()
    assert reporter.seen == [1, 2, 3]
    assert reporter.handlers == [handlers[1]] * 3


def test_sigterm_ends_the_process_after_the_reports(tmp_path):
    code, _ = run(
        """
        import subprocess, sys
        child = os.fork()
        if not child:
            simulation = make(path)
            simulation.step(3)
            keep = mp.reporters.TrajectoryReporter.report
            def terminated(self, *arguments):
                os.kill(os.getpid(), signal.SIGTERM)
                keep(self, *arguments)
                self.flush()
            mp.reporters.TrajectoryReporter.report = terminated
            simulation.step(3)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        """,
        tmp_path / "run.h5",
    )
    assert code == 0
    assert frames(tmp_path / "run.h5") == [1, 2, 3, 4]


def test_notes_are_delivered_once(handlers):
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert handlers[0] == []
        with pytest.raises(KeyboardInterrupt):
            interrupts.let_through()
    assert handlers[0] == [signal.SIGINT]
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGINT)
    assert handlers[0] == [signal.SIGINT] * 2
