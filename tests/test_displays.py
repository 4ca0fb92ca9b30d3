"""What objects show of themselves: tables in notebooks, text for print, and one line as repr."""

import sys
import threading
from html.parser import HTMLParser

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy._tools import tables
from medyanpy.engine import summary


class Cells(HTMLParser):
    """The texts of the cells of tables, row by row; and which tags are open."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += text


def cells(shown):
    return Cells(shown._repr_html_()).rows


def make(name="springs", **more):
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(50.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6, name="vesicle")
    topology.add_intriangle_points(vesicle, 20, mass=4e-12, friction=4e-6, seed=1, name="proteins")
    topology.add_beads([[0.0, 0, 0]], mass=1e-12, friction=1e-6, name="<tracer & co>")
    system = system_with(topology, mp.forces.MembraneBending(vesicle, 82.0),
                         mp.forces.MembraneEdgeSprings(vesicle, 0.01, name=name))  # fmt: skip
    return mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, temperature=300.0, seed=1), threads=1, **more)


@pytest.fixture
def simulation():
    with make() as simulation:
        yield simulation


def bits(simulation):
    return {name: a.tobytes() for name, a in simulation.context._dynamical_arrays().items()}


def test_a_simulation(simulation, tmp_path):
    """Kinds and numbers, forces with their energies, what drives it, where it stands, and who reports."""
    simulation.reporters.append(mp.reporters.StateDataReporter(tmp_path / "state.csv", 5, step=True))
    simulation.reporters.append(mp.reporters.StateDataReporter(sys.stdout, 1000, step=True))
    simulation.step(10)
    rows, state = cells(simulation), simulation.context.get_state(energy=True)
    springs = state.energies["springs"]
    for row in (
        ["step", "10"],
        ["integrator", "BAGOGABIntegrator"],
        ["word", "J B A G O G A B J"],
        ["timestep", "1e-09 s"],
        ["thermostat", "300 K (kT = 4.142 pN nm)"],
        ["temperature now", f"{state.temperature:.6g} K"],
        ["vesicle", "vertices", "162", f"{state.temperatures['vesicle']:.6g}"],
        ["proteins", "points", "20", f"{state.temperatures['proteins']:.6g}"],
        ["StateDataReporter", str(tmp_path / "state.csv"), "5"],
        ["StateDataReporter", sys.stdout.name, "1,000"],
        ["springs (MembraneEdgeSprings)", f"{springs:.6g}", f"{springs / simulation.integrator.kT:.4g}"],
        ["kinetic energy", f"{state.kinetic_energy:.6g}", f"{state.kinetic_energy / simulation.integrator.kT:.4g}"],
    ):
        assert row in rows, row
    # The same rows as text, and one line for lists and messages.
    text = str(simulation)
    assert all(cell in text for row in rows for cell in row)
    assert "\n" not in repr(simulation)
    begins = "Simulation(step 10, 1e-08 s; System(183 beads, forces: MembraneBending, springs), BAGOGABIntegrator("
    assert repr(simulation).startswith(begins)
    assert repr(simulation.context).startswith("Context(step 10, 1e-08 s; ")


def test_to_look_changes_nothing():
    """A run that is looked at all the time has the bits of one that is not, measured work included."""
    looked_at, alone = make(), make()
    for one in (looked_at, alone):
        one.report_work = True
    for _ in range(5):
        for shown in (looked_at, looked_at.context, looked_at.system, looked_at.topology):
            assert shown._repr_html_() is not None
            assert str(shown)
            assert repr(shown)
        looked_at.step(3)
        alone.step(3)
    assert bits(looked_at) == bits(alone)


def test_numbers_that_have_been_set_are_not_taken_early(simulation):
    """To follow them is for the next step or state, which may warn."""
    simulation.step(1)
    simulation.system["springs"].set(stiffness=1e9)
    before = bits_without_following(simulation)
    rows = cells(simulation)
    assert ["springs (MembraneEdgeSprings)", "–", "–"] in rows
    assert "Numbers have been set since the last step or state" in simulation._repr_html_()
    assert bits_without_following(simulation) == before


def bits_without_following(simulation):
    return {name: a.tobytes() for name, a in simulation.context._schedule.dynamical_arrays().items()}


def test_forces_and_jumps_print_on_one_line(simulation):
    """And notebooks show their numbers as tables."""
    made = [*simulation.system.forces, *simulation.system.jumps, mp.forces.CustomBonds([[0, 1]], "k*r;\nk = 2")]
    assert len(made) > 2
    for one in made:
        assert str(one) == repr(one)
        assert "\n" not in str(one)
        assert "<table" in one._repr_html_()


def test_functions_of_users_are_not_called(simulation):
    calls = []

    def function(x):
        calls.append(len(x))
        return 0.0, np.zeros_like(x)

    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    one = mp.Simulation(system_with(topology, mp.forces.PythonForce(function, name="mine")), mp.VerletIntegrator(0.1))
    one.step(1)
    called = len(calls)
    assert "since mine calls a function" in one._repr_html_()
    assert "since mine calls a function" in str(one)
    assert len(calls) == called


def test_large_systems_are_not_evaluated(simulation, monkeypatch):
    monkeypatch.setattr(summary, "MOST_BEADS", 100)
    monkeypatch.setattr(type(simulation.context._measure), "look", None)
    assert ["vesicle", "vertices", "162", "–"] in cells(simulation)
    assert "of more than 100 beads" in str(simulation)


def test_names_are_escaped(simulation):
    page = simulation._repr_html_()
    assert "<tracer" not in page
    assert ["&lt;tracer &amp; co&gt;" in page, "<tracer & co>" in str(simulation)] == [True, True]
    with make(name="<script>alert(1)</script>") as other:
        state = other.context.get_state(energy=True)
        for shown in (other, other.system, other.system["<script>alert(1)</script>"], state):
            assert "<script" not in shown._repr_html_()


def test_a_display_never_raises(simulation, tmp_path):
    """In the middle of a step, in an edit, of what cannot be computed, is only half made, or was made by others."""
    seen = []

    class Looks(mp.reporters.Reporter):
        def report(self, simulation, state):
            seen.append(simulation._repr_html_())
            other = threading.Thread(target=lambda: seen.append(simulation._repr_html_()))
            other.start()
            other.join()

    simulation.reporters.append(Looks(1))
    simulation.step(1)
    assert ["temperature now" in page for page in seen] == [True, False]
    assert "another thread is inside step" in seen[1]
    with simulation.topology.edit():
        assert "Energies and temperatures cannot be taken now" in simulation._repr_html_()
        assert repr(simulation)
    # A force that cannot be computed.
    x = np.array(simulation.context.get_state(positions=True).positions)
    x[: len(simulation.topology.membranes[0])] = 0.0
    simulation.context.set_positions(x)
    assert "Energies and temperatures cannot be taken now" in simulation._repr_html_()
    # Reporters that are no such thing.
    simulation.reporters = [object()]
    assert ["object", "–", "–"] in cells(simulation)
    simulation.reporters = []
    for half in (object.__new__(mp.Simulation), object.__new__(mp.System), object.__new__(mp.Topology)):
        assert half._repr_html_() is None


def test_a_system_and_a_topology(simulation):
    rows = cells(simulation.system)
    assert ["vesicle", "vertices", "162", "4e-12", "4e-06", "0"] in rows
    assert ["MembraneBending", "vesicle", "bending_modulus 82 pN nm, spontaneous_curvature 0 1/nm"] in rows
    assert ["proteins", "points", "20", "4e-12", "4e-06", "0"] in cells(simulation.topology)
    assert str(simulation.topology).startswith("Topology: 183 beads\n")


def test_a_force(simulation):
    assert ["bending_modulus", "82", "pN nm", "yes"] in cells(simulation.system["MembraneBending"])
    assert ["acts on", "vesicle"] in cells(simulation.system["springs"])
    lengths = simulation.system["springs"].parameters["length"]
    assert ["length", f"{lengths.min():.6g} to {lengths.max():.6g}", "nm", "yes"] in cells(simulation.system["springs"])


def test_a_state(simulation):
    state = simulation.context.get_state(positions=True, energy=True)
    rows = cells(state)
    assert ["positions", "183 × 3"] in rows
    assert ["faces['vesicle']", "320 × 3"] in rows
    assert ["MembraneBending", f"{state.energies['MembraneBending']:.6g}"] in rows
    assert cells(simulation.context.get_state()) == []
    assert str(simulation.context.get_state()) == "State: step 0, 0 s, 183 beads"


def test_a_trajectory(simulation, tmp_path):
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    simulation.step(6)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        rows = cells(trajectory)
        for row in (
            ["frames", "3"], ["steps", "2 to 6"], ["time", "2e-09 to 6e-09 s"], ["timestep", "1e-09 s"],
            ["vesicle", "vertices", "162"], ["positions", "183 × 3"],
        ):  # fmt: skip
            assert row in rows, row
    assert "(closed)" in trajectory._repr_html_()
    assert "(closed)" in str(trajectory)


def test_jumps_and_kicks():
    topology = mp.Topology()
    beads = topology.add_beads([[float(i), 0, 0] for i in range(6)], mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    system.add_jump(mp.jumps.LinkBinding(links, beads.beads[::2], beads.beads[1::2], off_rate=3.0, on_rate=3.0))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=1), threads=1)
    simulation.step(10)
    tried, happened = simulation.context.get_state().counts["LinkBinding"]
    assert ["LinkBinding", str(tried), str(happened)] in cells(simulation)
    assert ["thermostat", "kT = 1"] in cells(simulation)
    kicked = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01, kick=mp.kicks.ZhangSkeel(0.5)))
    assert ["kick", "ZhangSkeel(beta=0.5)"] in cells(kicked)


@pytest.mark.parametrize(("made", "shown"), [
    (lambda p: mp.surfaces.Sphere(2.0), "Sphere(2)"),
    (lambda p: mp.surfaces.Sphere(2.0, center=[1.0, 0.0, 0.0]), "Sphere(2, center=[1.0, 0.0, 0.0])"),
    (lambda p: mp.surfaces.Polynomial("x*y - z"), "Polynomial('x*y - z')"),
    (lambda p: mp.reporters.CheckpointReporter(p / "a.chk", 7), "CheckpointReporter('{p}/a.chk', 7)"),
    (lambda p: mp.reporters.StateDataReporter(p / "a.csv", 7, step=True, total_steps=100),
     "StateDataReporter('{p}/a.csv', 7, step=True, total_steps=100)"),
])  # fmt: skip
def test_reprs_are_the_calls(made, shown, tmp_path):
    one = made(tmp_path)
    assert repr(one) == shown.replace("{p}", str(tmp_path))
    if isinstance(one, mp.reporters.Reporter):
        one.close()


def test_long_tables_and_cells_are_cut():
    table = tables.Table("many", [(str(k), "x" * 1000) for k in range(100)], ("many", "x"))
    assert len(table.shown) == tables.MOST_ROWS
    assert table.shown[-1] == (f"and {100 - tables.MOST_ROWS + 1} more", "")
    assert max(len(cell) for row in table.shown for cell in row) == tables.MOST_LETTERS
    page = tables.Page("a", "", [table])
    assert len(page.text().splitlines()) == tables.MOST_ROWS + 3
    assert len(Cells(page.html()).rows) == tables.MOST_ROWS + 1


@pytest.mark.parametrize("steps", [8000, 3, 7, 12345, 999])
def test_a_state_shows_its_time_without_rounding_errors(steps):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(2e-7))
    context.step(steps)
    state = context.get_state()
    assert repr(state) == f"State(step={steps}, time={float(f'{2 * steps}e-7')!r})"
