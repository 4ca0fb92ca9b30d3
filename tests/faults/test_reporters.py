"""Reporters are independent: one that raises costs the others nothing, and itself nothing once it is mended."""

import contextlib

import pytest
from builders import refuses
from fault_runs import frames, make, rows

import medyanpy as mp

# Files, and processes that are killed: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


class Broken(mp.reporters.Reporter):
    """Raises at some steps, as long as it is not mended; keeps the steps of its reports."""

    def __init__(self, interval, at, error=ValueError):
        super().__init__(interval)
        self.at, self.error, self.seen, self.flushed, self.closed = at, error, [], 0, 0

    def report(self, simulation, state):
        if state.step in self.at:
            raise self.error(f"broken at {state.step}")
        self.seen.append(state.step)

    def flush(self):
        self.flushed += 1

    def close(self):
        self.closed += 1
        if self.at:
            raise self.error("broken at the end")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_raises_does_not_cost_the_others_their_reports(tmp_path, place, error):
    simulation, broken = make(tmp_path / "run.h5"), Broken(5, {50}, error)
    simulation.reporters.append(mp.reporters.StateDataReporter(tmp_path / "table.csv", 2, step=True))
    simulation.reporters.insert(place, broken)
    for _ in range(3):
        refuses(error, "broken at 50", simulation.step, 100 - simulation.current_step)
        assert simulation.current_step == 50
    broken.at.clear()
    simulation.step(100 - simulation.current_step)
    simulation.close()
    assert broken.seen == list(range(5, 101, 5))
    assert frames(tmp_path / "run.h5") == list(range(1, 101))
    assert rows(tmp_path / "table.csv") == list(range(2, 101, 2))


def test_a_mended_reporter_catches_up_without_a_step():
    simulation, broken = make(), Broken(1, {3})
    simulation.reporters.append(broken)
    refuses(ValueError, "broken", simulation.step, 3)
    broken.at.clear()
    simulation.step(0)
    assert broken.seen == [1, 2, 3]


def test_a_state_that_could_not_be_had_is_asked_for_again(monkeypatch):
    simulation, reporter = make(), Broken(2, set())
    simulation.reporters.append(reporter)
    monkeypatch.setattr(mp.Context, "get_state", lambda self, **wanted: (_ for _ in ()).throw(mp.SimulationError("no")))
    refuses(mp.SimulationError, "no", simulation.step, 5)
    monkeypatch.undo()
    simulation.step(3)
    assert reporter.seen == [2, 4]


def test_removed_reporters_owe_no_report():
    simulation, broken, late = make(), Broken(1, {3}), Broken(1, set())
    simulation.reporters.append(broken)
    refuses(ValueError, "broken", simulation.step, 10)
    simulation.reporters = [late]
    simulation.step(1)
    assert (broken.seen, late.seen) == ([1, 2], [4])


def test_reports_of_a_step_that_was_left_are_not_made_up(tmp_path):
    simulation, broken = make(), Broken(1, {3})
    simulation.save_checkpoint(tmp_path / "start")
    simulation.reporters.append(broken)
    refuses(ValueError, "broken", simulation.step, 10)
    simulation.load_checkpoint(tmp_path / "start")
    broken.at.clear()
    simulation.step(4)
    assert broken.seen == [1, 2, 1, 2, 3, 4]


def test_all_errors_are_told():
    simulation = make()
    simulation.reporters += [Broken(1, {1}), Broken(1, {1}, KeyError), Broken(1, set())]
    with pytest.raises(ValueError, match="broken at 1") as caught:
        simulation.step(1)
    assert caught.value.__notes__ == ["and Broken: KeyError: 'broken at 1'"]
    assert [r.flushed for r in simulation.reporters] == [1, 1, 1]


def test_a_checkpoint_waits_for_what_the_others_have_not_written(tmp_path):
    """It says how far they are."""
    simulation, broken, path = make(), Broken(10, {20}), tmp_path / "run.cp"
    simulation.reporters += [mp.reporters.CheckpointReporter(path, 10), broken]
    refuses(ValueError, "broken at 20", simulation.step, 100)
    assert mp.Simulation.resume(path, threads=1, reporters=False).current_step == 10
    broken.at.clear()
    simulation.step(0)
    assert mp.Simulation.resume(path, threads=1, reporters=False).current_step == 20


@pytest.mark.parametrize("error", [mp.SimulationError, ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_reporters_are_flushed_on_every_way_out(tmp_path, error, monkeypatch):
    simulation, broken, last = make(tmp_path / "run.h5"), Broken(1, set()), Broken(1, set())
    simulation.reporters = [broken, *simulation.reporters, last]
    broken.flush = lambda: 1 / 0
    simulation.step(3)
    monkeypatch.setattr(mp.Context, "step", lambda self, n: (_ for _ in ()).throw(error("no")))
    refuses(error, "no", simulation.step, 3)
    monkeypatch.undo()
    assert last.flushed == 1
    assert frames(tmp_path / "run.h5") == [1, 2, 3]
    simulation.close()


def test_all_are_closed(tmp_path):
    simulation = make(tmp_path / "run.h5")
    before, after = Broken(1, {3}), Broken(1, set())
    simulation.reporters = [before, *simulation.reporters, after]
    simulation.step(2)
    refuses(ValueError, "broken at the end", simulation.close)
    assert (before.closed, after.closed) == (1, 1)
    assert not (tmp_path / ".run.h5.lock").exists()
    before.at.clear()
    simulation.close()
    with contextlib.suppress(ValueError), make() as simulation:
        simulation.reporters.append(Broken(1, {1}))
    assert simulation.reporters[0].closed == 1
