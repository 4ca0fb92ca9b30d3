"""StateDataReporter: the table reads back, at the right steps, and watching changes nothing."""

import csv
import io
import re

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.reporters._table import read_table
from medyanpy.reporters.state_data import COLUMNS

# Those of boxes are in tests/test_boxes.py.
ALL = dict.fromkeys({column.keyword for column in COLUMNS} - {"acceptance", "box", "molecules"}, True)


def make(seed=1, n_points=20, closed=True):
    """A thermal vesicle of springs with points on it, and two free beads."""
    if closed:
        mesh = mp.TriangleMesh.icosphere(radius=100.0, subdivisions=1)
    else:
        mesh = mp.TriangleMesh.flat_sheet(6, 6, 20.0)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    topology.add_intriangle_points(vesicle, n_points, mass=4e-12, friction=4e-6, seed=seed)
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1e-12, friction=1e-6)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(vesicle, stiffness=0.01))
    return mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0, seed=seed), threads=1)


def titles(text):
    line = text.splitlines()[0]
    assert line.startswith("#")
    return next(csv.reader([line[1:]]))


def test_the_table_reads_back_with_numpy_and_csv(tmp_path):
    path = tmp_path / "state.csv"
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(path, 5, **ALL, total_steps=40))
    simulation.step(20)
    state = simulation.context.get_state(positions=True, energy=True)
    simulation.close()
    names = titles(path.read_text())
    table = np.loadtxt(path, delimiter=",")
    assert table.shape == (4, len(names))
    assert np.isfinite(table).all()
    last = dict(zip(names, table[-1], strict=True))
    assert last["Step"] == 20
    assert last["Progress (%)"] == 50.0
    assert last["Time (s)"] == state.time
    assert last["Potential Energy (pN nm)"] == state.potential_energy
    assert last["Kinetic Energy (pN nm)"] == state.kinetic_energy
    assert last["Total Energy (pN nm)"] == state.total_energy
    assert last["Temperature (K)"] == state.temperature
    assert set(state.temperatures) == {"membrane", "points", "beads"}
    for name, temperature in state.temperatures.items():
        assert last[f"Temperature of {name} (K)"] == temperature
    vesicle = simulation.topology.membranes[0]
    mesh = vesicle.mesh.with_vertices(state.positions[vesicle.beads])
    assert last["Area (nm^2)"] == pytest.approx(mesh.area, rel=1e-13)
    assert last["Volume (nm^3)"] == pytest.approx(mesh.volume, rel=1e-13)
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    assert [row[names.index("Step")] for row in rows[1:]] == ["5", "10", "15", "20"]


def test_columns_come_in_openmms_order():
    out = io.StringIO()
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(out, 1, **ALL, total_steps=10))
    simulation.step(1)
    assert titles(out.getvalue()) == [
        "Progress (%)",
        "Step",
        "Time (s)",
        "Potential Energy (pN nm)",
        "Kinetic Energy (pN nm)",
        "Total Energy (pN nm)",
        "Temperature (K)",
        "Temperature of membrane (K)",
        "Temperature of points (K)",
        "Temperature of beads (K)",
        "Heat (pN nm)",
        "Shadow Work (pN nm)",
        "Protocol Work (pN nm)",
        "Chemical Work (pN nm)",
        "Entropy Production (k_B)",
        "Area (nm^2)",
        "Volume (nm^3)",
        "Speed (steps/s)",
        "Elapsed Time (s)",
        "Time Remaining (s)",
    ]


def test_every_handle_that_can_move_has_a_column_under_its_own_name():
    """Handles of one kind are told apart, and two without a name have distinct ones; what cannot move has no column."""
    topology = mp.Topology()
    topology.add_beads(np.zeros((1, 3)), mass=1.0)
    topology.add_beads(np.ones((3, 3)), mass=1.0)
    topology.add_beads(np.ones((2, 3)), mass=1.0, name="vesicle")
    topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1))
    simulation.context.set_velocities_to_temperature(300.0, seed=3)
    out = io.StringIO()
    simulation.reporters.append(mp.reporters.StateDataReporter(out, 1, temperatures=True))
    simulation.step(1)
    by_handle = simulation.context.get_state(energy=True).temperatures
    assert list(by_handle) == ["beads", "beads 2", "vesicle"]
    assert titles(out.getvalue()) == [f"Temperature of {name} (K)" for name in by_handle]
    assert [float(text) for text in out.getvalue().splitlines()[1].split(",")] == list(by_handle.values())


def test_rows_are_at_multiples_of_the_interval_and_never_at_the_start():
    out = io.StringIO()
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(out, 7, step=True))
    for n in (0, 3, 10, 1, 14):
        simulation.step(n)
    assert out.getvalue().split("\n")[1:-1] == ["7", "14", "21", "28"]


def test_the_speed_is_meaningful_from_the_first_row_on():
    out = io.StringIO()
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(out, 50, speed=True, elapsed_time=True,
                                                               remaining_time=True, total_steps=100))  # fmt: skip
    simulation.step(100)
    rows = np.loadtxt(io.StringIO(out.getvalue()), delimiter=",")
    assert (rows[:, 0] > 0.0).all()
    assert (rows[:, 0] < 1e7).all()
    assert rows[0, 1] <= rows[1, 1]
    assert rows[1, 2] == 0.0


def test_reporters_on_or_off_give_the_same_bits(tmp_path):
    plain, watched = make(), make()
    plain.step(30)
    watched.reporters += [
        mp.reporters.StateDataReporter(io.StringIO(), 3, **ALL, total_steps=30),
        mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 4, velocities=True),
        mp.reporters.CheckpointReporter(tmp_path / "run.checkpoint", 5),
    ]
    watched.step(30)
    watched.close()
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (plain, watched))
    assert (a.positions == b.positions).all()
    assert (a.velocities == b.velocities).all()
    assert (a.intriangle.barycentric == b.intriangle.barycentric).all()


def test_reporters_that_are_due_together_share_one_state():
    seen = []

    class Spy(mp.reporters.Reporter):
        def __init__(self, interval, *include):
            super().__init__(interval)
            self.include = include

        def report(self, simulation, state):
            seen.append((self, state))

    simulation = make()
    first, second = Spy(2, "positions"), Spy(4, "velocities", "energy")
    simulation.reporters += [first, second]
    simulation.step(4)
    assert [who for who, _ in seen] == [first, first, second]
    assert seen[1][1] is seen[2][1]
    assert seen[1][1].has("positions")
    assert seen[1][1].has("energies")
    assert not seen[0][1].has("energies")


def test_a_stream_is_never_closed_and_a_file_is(tmp_path):
    out = io.StringIO()
    with mp.reporters.StateDataReporter(out, 1, step=True) as reporter:
        simulation = make()
        simulation.reporters.append(reporter)
        simulation.step(1)
    assert not out.closed
    refuses(mp.ParameterError, "closed", simulation.step, 1)
    reporter.close()

    path = tmp_path / "a.csv"
    with mp.reporters.StateDataReporter(path, 1, step=True) as reporter:
        simulation = make()
        simulation.reporters.append(reporter)
        simulation.step(2)
        # Every row is there at once.
        assert path.read_text().splitlines() == ['#"Step"', "1", "2"]


def test_other_separators(tmp_path):
    path = tmp_path / "a.tsv"
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(path, 1, step=True, time=True, separator="\t"))
    simulation.step(2)
    simulation.close()
    assert np.loadtxt(path, delimiter="\t").shape == (2, 2)


def test_existing_files_are_refused_or_replaced(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("precious\n")
    refuses(mp.ParameterError, "exists; give overwrite=True", mp.reporters.StateDataReporter, path, 1, step=True)
    with pytest.raises(mp.ParameterError, match="not both"):
        mp.reporters.StateDataReporter(path, 1, step=True, append=True, overwrite=True)
    with pytest.raises(mp.ParameterError, match="does not exist"):
        mp.reporters.StateDataReporter(tmp_path / "nowhere" / "a.csv", 1, step=True)
    refuses(mp.ParameterError, "is a folder", mp.reporters.StateDataReporter, tmp_path, 1, step=True)
    assert path.read_text() == "precious\n"
    mp.reporters.StateDataReporter(path, 1, step=True, overwrite=True).close()
    assert path.read_text() == ""


def test_appending_to_other_columns_is_refused_before_the_first_step(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('#"Step"\n1\n')
    with mp.reporters.StateDataReporter(path, 1, step=True, time=True, append=True) as reporter:
        simulation = make()
        simulation.reporters.append(reporter)
        refuses(mp.ParameterError, "other columns", simulation.step, 5)
    assert simulation.current_step == 0
    assert path.read_text() == '#"Step"\n1\n'


def test_resumed_run_cuts_off_what_it_writes_again(tmp_path):
    """Including a last row that a crash left unfinished."""
    path, checkpoint = tmp_path / "a.csv", tmp_path / "checkpoint"
    simulation = make()
    simulation.reporters.append(mp.reporters.StateDataReporter(path, 2, step=True, potential_energy=True))
    simulation.step(6)
    simulation.save_checkpoint(checkpoint)
    simulation.step(6)
    simulation.close()
    whole = path.read_text()
    with open(path, "a") as file:
        file.write("14,0.12")

    again = make()
    again.load_checkpoint(checkpoint)
    again.reporters.append(mp.reporters.StateDataReporter(path, 2, step=True, potential_energy=True, append=True))
    again.step(2)
    assert [line.split(",")[0] for line in path.read_text().splitlines()[1:]] == ["2", "4", "6", "8"]
    again.step(4)
    assert path.read_text() == whole
    # Set back while the reporter is in use.
    again.load_checkpoint(checkpoint)
    again.step(6)
    again.close()
    assert path.read_text() == whole


@pytest.mark.parametrize(("options", "message"), [
    ({}, "nothing to report"),
    ({"progress": True}, "need total_steps"),
    ({"step": True, "remaining_time": True}, "need total_steps"),
    ({"step": True, "total_steps": 0}, "total_steps = 0 but must be a whole number >= 1"),
    ({"step": True, "separator": ""}, "separator"),
])  # fmt: skip
def test_options_outside_their_domain(options, message):
    refuses(mp.ParameterError, re.escape(message), mp.reporters.StateDataReporter, io.StringIO(), 1, **options)


@pytest.mark.parametrize("interval", [0, -1, 1.5, "x", True])
def test_intervals_outside_their_domain(interval):
    refuses(mp.ParameterError, "interval", mp.reporters.StateDataReporter, io.StringIO(), interval, step=True)


def test_area_and_volume_need_a_membrane_and_a_closed_one():
    simulation = make(closed=False)
    simulation.reporters.append(mp.reporters.StateDataReporter(io.StringIO(), 1, volume=True))
    refuses(mp.ParameterError, "no closed membrane", simulation.step, 1)
    topology = mp.Topology()
    topology.add_beads(np.zeros((1, 3)), mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1))
    simulation.reporters.append(mp.reporters.StateDataReporter(io.StringIO(), 1, area=True))
    refuses(mp.ParameterError, "no membrane", simulation.step, 1)


def test_reporters_are_flushed_when_a_run_fails():
    flushed = []

    class Spy(mp.reporters.StateDataReporter):
        def flush(self):
            flushed.append(self)
            super().flush()

    simulation = make()
    reporter = Spy(io.StringIO(), 1000, step=True)
    simulation.reporters.append(reporter)
    n = simulation.topology.n_beads
    simulation.context.set_velocities(np.full((n, 3), 1e160))
    with pytest.raises(mp.SimulationError):
        simulation.step(50)
    assert flushed == [reporter]


@pytest.mark.parametrize("name", ["a,b", 'the "big" ones', '"', 'x,"y",z', "a#b", "a;b", "Größe µ", "two\nlines",
                                  "a\r\nb"])  # fmt: skip
@pytest.mark.parametrize("comment", ["#", ""])
def test_titles_are_those_of_csv(tmp_path, name, comment):
    """Quotation marks are doubled, and titles stay on one line; NumPy, csv, pandas and this package read them."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [5.0, 0, 0]], mass=1e-9, friction=1e-5, name=name)
    path = tmp_path / "table.csv"

    def go(**options):
        integrator = mp.SplittingIntegrator("BAOAB", 1e-6, temperature=300.0, seed=1)
        simulation = mp.Simulation(mp.System(topology), integrator, threads=1)
        simulation.reporters.append(
            mp.reporters.StateDataReporter(path, 2, step=True, temperatures=True, comment=comment, **options)
        )
        simulation.step(4)
        simulation.close()

    go()
    title = f"Temperature of {' '.join(name.splitlines())} (K)"
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == [f'{comment}"Step"' if comment else "Step", title]
    assert len(rows) == 3
    assert np.loadtxt(path, delimiter=",", skiprows=0 if comment else 1).shape == (2, 2)
    table = read_table("test", path)
    assert list(table) == ["Step", title]
    assert table["Step"].tolist() == [2.0, 4.0]
    # Rows of steps that are to come are cut off, in a file with either comment.
    go(append=True)
    assert list(read_table("test", path)["Step"]) == [2.0, 4.0]
    if not comment:
        pandas = pytest.importorskip("pandas")
        assert list(pandas.read_csv(path).columns) == ["Step", title]


def test_a_comment_is_one_of_two(tmp_path):
    with pytest.raises(mp.ParameterError, match="comment = '%' but must be '#' or ''"):
        mp.reporters.StateDataReporter(tmp_path / "t.csv", 1, step=True, comment="%")
