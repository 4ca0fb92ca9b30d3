"""plot: tables of reporters as curves."""

import sys

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp


@pytest.fixture
def simulation():
    topology = mp.Topology()
    balls = topology.add_balls([[0.0, 0, 0], [30.0, 0, 0]], radius=5.0, mass=1e-6, friction=1e-3, name="balls")
    system = system_with(topology, mp.forces.HarmonicBonds([balls.beads], stiffness=1.0, length=25.0))
    with mp.Simulation(system, mp.BAGOGABIntegrator(1e-4, temperature=300.0, seed=1), threads=1) as simulation:
        yield simulation


def table_of(simulation, path, **columns):
    reporter = mp.reporters.StateDataReporter(path, 5, **columns)
    simulation.reporters.append(reporter)
    return reporter


def labels(figure):
    return [axes.get_ylabel() for axes in figure.axes]


def lines(figure, panel):
    return {line.get_label(): line.get_xydata() for line in figure.axes[panel].lines}


NAMES = ("step", "time", "potential_energy", "total_energy", "temperature", "temperatures", "elapsed_time", "speed")
ALL = dict.fromkeys(NAMES, True)


def test_a_panel_for_each_unit_over_time(simulation, tmp_path):
    path = tmp_path / "state.csv"
    reporter = table_of(simulation, path, **ALL)
    simulation.step(50)
    figure = mp.plot(path)
    assert labels(figure) == ["pN nm", "K"]
    assert list(lines(figure, 0)) == ["Potential Energy", "Total Energy"]
    assert list(lines(figure, 1)) == ["Temperature", "Temperature of balls"]
    table = np.loadtxt(path, delimiter=",")
    np.testing.assert_array_equal(lines(figure, 0)["Total Energy"], table[:, [1, 3]])
    assert figure.axes[-1].get_xlabel() == "Time"
    # The file is written on: what is there by then is shown, from the reporter or its file.
    simulation.step(50)
    for what in (reporter, str(path)):
        assert len(lines(mp.plot(what), 0)["Total Energy"]) == 20
    # A row that is half there is none.
    with open(path, "a") as file:
        file.write("105,0.0105,1.0")
    assert len(lines(mp.plot(path), 0)["Total Energy"]) == 20


def test_columns_and_abscissa_may_be_chosen(simulation, tmp_path):
    path = tmp_path / "state.csv"
    table_of(simulation, path, **ALL)
    simulation.step(20)
    for name in ("Potential Energy (pN nm)", "potential_energy", "Potential Energy", ["potential_energy"]):
        figure = mp.plot(path, name, against="step")
        assert labels(figure) == ["Potential Energy (pN nm)"]
        assert figure.axes[0].get_xlabel() == "Step"
        np.testing.assert_array_equal(lines(figure, 0)["Potential Energy"][:, 0], [5, 10, 15, 20])
    assert list(lines(mp.plot(path, ["temperatures"]), 0)) == ["Temperature of balls"]
    assert labels(mp.plot(path, ["elapsed_time", "temperature"])) == ["Elapsed Time (s)", "Temperature (K)"]
    assert labels(mp.plot(path, "elapsed_time", against="total_energy")) == ["Elapsed Time (s)"]


@pytest.mark.parametrize("separator", [",", "; ", "\t"])
def test_other_separators_and_a_table_without_rows(simulation, tmp_path, separator):
    path = tmp_path / "state.csv"
    table_of(simulation, path, potential_energy=True, temperature=True, separator=separator)
    simulation.step(3)
    assert [len(xy) for k in (0, 1) for xy in lines(mp.plot(path), k).values()] == [0, 0]
    simulation.step(7)
    figure = mp.plot(path)
    np.testing.assert_array_equal(lines(figure, 1)["Temperature"][:, 0], [1, 2])
    assert figure.axes[-1].get_xlabel() == "Row"


def test_events(tmp_path):
    """How often each kind of event has happened, and their energies."""
    topology = mp.Topology()
    beads = topology.add_beads([[float(i), 0, 0] for i in range(20)], mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    a, b = beads.beads[::2], beads.beads[1::2]
    system.add_jump(mp.jumps.LinkBinding(links, a, b, off_rate=30.0, on_rate=30.0, name="bind"))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=1), threads=1)
    with mp.reporters.EventReporter(tmp_path / "events.csv", 10) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(100)
        figure = mp.plot(reporter)
        counts = lines(figure, 0)
        with open(tmp_path / "events.csv") as file:
            rows = [line.split(",") for line in file][1:]
        assert len(rows) > 20
        assert labels(figure) == ["Events", "pN nm"]
        for kind in {row[3] for row in rows}:
            assert counts[f"bind: {kind}"][-1, 1] == sum(row[3] == kind for row in rows)
        assert labels(mp.plot(reporter, "events")) == ["Events"]
        refuses(mp.ParameterError, r"column 'Jump' of .* holds texts, such as 'bind'", mp.plot, reporter, "Jump")


def test_figures_are_written_and_shown_by_notebooks(simulation, tmp_path):
    path = tmp_path / "state.csv"
    table_of(simulation, path, step=True, temperature=True)
    simulation.step(10)
    before = "matplotlib.pyplot" in sys.modules
    figure = mp.plot(path, path=tmp_path / "a.png", title="heat", size=(600, 400))
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert figure._repr_png_() == png
    assert ("matplotlib.pyplot" in sys.modules) == before
    refuses(mp.ParameterError, r"plot: .*exists; give overwrite=True", mp.plot, path, path=tmp_path / "a.png")


def test_refusals_of_other_files_than_tables(simulation, tmp_path):
    path = tmp_path / "state.csv"
    table_of(simulation, path, step=True, temperature=True)
    simulation.step(10)
    for columns, message in (
        ("presure", "has no column 'presure'; there are: 'Step', 'Temperature"),
        ("temperatur", r"has no column 'temperatur': did you mean 'Temperature \(K\)'"),
        ([], "columns names no column"),
        (3, "columns = 3 but must be a list"),
    ):
        refuses(mp.ParameterError, message, mp.plot, path, columns)
    for content, message in (
        (None, "cannot read"),
        ("", "it has no titles yet"),
        ("a,b\n1,2\n", "is not a table of a reporter: it begins with 'a,b'"),
        ('#"Step","Time (s)"\n1\n', "is damaged: line 2 has 1 columns, and there are 2 titles"),
        (b"\x89HDF\xff", "it is not text"),
    ):
        other = tmp_path / "other.csv"
        if content is not None:
            other.write_bytes(content if isinstance(content, bytes) else content.encode())
        refuses(mp.ParameterError, message, mp.plot, other)
    stream = mp.reporters.StateDataReporter(sys.stdout, 5, step=True)
    refuses(mp.ParameterError, "writes to a stream", mp.plot, stream)
    refuses(mp.ParameterError, "plot: what", mp.plot, simulation)
