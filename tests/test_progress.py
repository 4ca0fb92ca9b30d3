"""Progress bars: where a person watches, and nowhere else; with no warning and no change of a bit."""

import io
import sys
import warnings
from types import SimpleNamespace

import pytest
from builders import system_with

import medyanpy as mp
from medyanpy._tools import progress


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.fixture
def at_once(monkeypatch):
    """Bars appear without delay, and never rest."""
    from tqdm.std import tqdm

    begin = tqdm.__init__
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    monkeypatch.setattr(tqdm, "__init__", lambda self, *a, **more: begin(self, *a, **more | {"mininterval": 0.0}))


def a_kernel(monkeypatch, there=True):
    shell = SimpleNamespace(kernel=object(), config={"IPKernelApp": {}}) if there else SimpleNamespace(config={})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def stepped(monkeypatch, is_terminal, **more):
    shown = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", shown)
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0, friction=1.0)
    system = system_with(topology, mp.forces.HarmonicBonds([[0, 1]], 1.0, 2.0))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=1), threads=1)
    simulation.step(50, **more)
    return shown.getvalue(), simulation


@pytest.mark.parametrize(("is_terminal", "asked", "shows"), [
    (False, None, False), (True, None, True), (False, True, True), (True, False, False),
])  # fmt: skip
def test_on_terminals_and_where_asked_for(monkeypatch, at_once, is_terminal, asked, shows):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    text, _ = stepped(monkeypatch, is_terminal, progress=asked)
    assert ("50/50" in text and "step" in text) == shows


def test_short_work_makes_no_bar(monkeypatch):
    """A widget costs more than a step."""
    monkeypatch.setattr(progress, "_tqdm", lambda: pytest.fail("a bar has been made"))
    assert stepped(monkeypatch, True, progress=True)[0] == ""


def test_a_bar_that_appears_late_counts_what_was_done_before(monkeypatch, at_once):
    shown, now = Terminal(True), 100.0
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "_DELAY", 1.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(time=lambda: now))
    with progress.Bar(50, "step", True) as bar:
        bar.update(20)
        assert shown.getvalue() == ""
        now = 101.0
        bar.update(10)
        assert "30/50" in shown.getvalue()
        assert (bar._bar.start_t, bar._bar.initial) == (100.0, 0)


def test_in_a_notebook_without_widgets(monkeypatch, at_once):
    """A bar of letters, and no TqdmWarning. As errors tqdm would catch these itself."""
    a_kernel(monkeypatch)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", SimpleNamespace())  # by which tqdm knows notebooks
    for module in ("tqdm.auto", "tqdm.autonotebook", "tqdm.notebook"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text, _ = stepped(monkeypatch, False)
    assert "50/50" in text
    assert not caught
    a_kernel(monkeypatch, there=False)
    assert stepped(monkeypatch, False)[0] == ""


def test_tqdm_can_be_told_to_be_quiet(monkeypatch, at_once):
    """By its environment: then steps are not cut into pieces either."""
    import tqdm.std

    begin = tqdm.std.tqdm.__init__
    monkeypatch.setattr(tqdm.std.tqdm, "__init__", lambda self, *a, **more: begin(self, *a, **more | {"disable": True}))
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    text, _ = stepped(monkeypatch, True)
    assert text == ""


def test_bars_change_no_bit(monkeypatch, at_once):
    states = []
    for asked in (True, False):
        _, simulation = stepped(monkeypatch, False, progress=asked)
        states.append(simulation.context.get_state(positions=True, velocities=True))
    assert states[0].positions.tobytes() == states[1].positions.tobytes()
    assert states[0].velocities.tobytes() == states[1].velocities.tobytes()


def test_minimisation_and_movies_show_how_far_they_are(monkeypatch, at_once, tmp_path):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    _, simulation = stepped(monkeypatch, False)
    sys.stderr.truncate(0)
    assert simulation.minimize_energy(1e-6).converged
    assert sys.stderr.getvalue() == ""
    simulation.context.set_positions([[0.0, 0, 0], [1.0, 0, 0]])
    report = simulation.minimize_energy(1e-6, progress=True)
    text = sys.stderr.getvalue()
    assert f"{report.iterations}iteration" in text
    assert "of 1e-06 pN" in text
    shown = Terminal(True)
    monkeypatch.setattr(sys, "stderr", shown)
    mesh = mp.TriangleMesh.icosphere(1.0, 0)
    mp.visualize.movie([mesh] * 3, tmp_path / "a.gif", size=(100, 100))
    assert "3/3" in shown.getvalue()
    assert "frame" in shown.getvalue()
