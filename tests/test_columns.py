"""Columns: what kinds of beads declare. A kind with momenta of its own, from outside, is in docs/add_a_column.md."""

import re

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.beads import COLUMNS, Beads, BeadsKind
from medyanpy.core.columns import Column
from medyanpy.core.layout import Layout
from medyanpy.files.trajectory import Trajectory

CHARGE = Column("charges", "charged", (2,), dtype=np.int64)


class Ions(BeadsKind):
    name = "ions"
    columns = (*BeadsKind.columns, CHARGE)


class Charged(Beads, kind=Ions):
    """With two whole numbers each that nothing moves."""

    def __init__(self, topology, name, first, positions, mass, friction, *, charges):
        super().__init__(topology, name, first, positions, mass, friction)
        self.charges = np.asarray(charges)


def topology():
    """Ions before, between and behind others."""
    t = mp.Topology()
    t.add(Charged, np.zeros((2, 3)), 1.0, charges=[[1, 2], [3, 4]], name="one")
    t.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], mass=1.0, inertia=[1.0, 1.0, 1.0])
    vesicle = t.add_membrane(mp.TriangleMesh.icosphere(5.0, 0), 1.0)
    t.add_intriangle_points(vesicle, 3, mass=1.0)
    t.add_balls([[9.0, 0, 0]], radius=0.5, mass=1.0, friction=0.0)
    t.add(Charged, np.ones((1, 3)), 1.0, charges=[[5, 6]], name="two")
    return t


def test_rows_follow_the_topology_and_places_each_other():
    t = topology()
    assert [t["one"].rows, t["two"].rows] == [slice(0, 2), slice(2, 3)]
    assert [c.name for c in t.columns] == [c.name for c in COLUMNS] + ["charges"]
    assert [t.n_rows(of) for of in ("charged", "beads", "none")] == [3, t.n_beads, 0]
    layout = Layout(t)
    assert layout.rows_of(t["one"]) == slice(0, 2)
    assert layout.rows_of(t["two"]) == slice(2, 3)
    assert layout.slice_of(t["two"]).start == layout.slice_of(t["one"]).stop
    assert layout.first_place("charged") == layout.slice_of(t["one"]).start
    assert layout.shown_rows("charged").tolist() == [0, 1, 2]


def test_a_column_that_nothing_moves_is_shown_set_and_written(tmp_path):
    t = topology()
    simulation = mp.Simulation(mp.System(t), mp.SplittingIntegrator("BAGAB", 0.01), threads=1)
    context = simulation.context

    def charges():
        return context.get_state(positions=True).column("charges")

    assert charges().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert charges().dtype == np.int64
    context.set_column("charges", [[7, 8], [9, 10], [11, 12]])
    assert charges().tolist() == [[7, 8], [9, 10], [11, 12]]
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    simulation.step(4)
    simulation.save_checkpoint(tmp_path / "checkpoint")
    context.set_column("charges", np.zeros((3, 2), int))
    simulation.load_checkpoint(tmp_path / "checkpoint")
    assert charges().tolist() == [[7, 8], [9, 10], [11, 12]]
    for reporter in simulation.reporters:
        reporter.close()
    with Trajectory(tmp_path / "run.h5") as run:
        assert run[1].column("charges").tolist() == charges().tolist()
        assert run.read("charges", beads=run.handles["two"]).tolist() == [[[11, 12]]] * 2
        with pytest.raises(mp.ParameterError, match=r"charges has no rows of the balls of 'balls', only of charged"):
            run.read("charges", beads=run.handles["balls"])
        refuses(mp.ParameterError, r"'charge' is none of positions.*charges", run[0].column, "charge")
        assert run.handles["balls"].beside["radius"].tolist() == [0.5]


def test_states_and_contexts_name_columns_that_they_do_not_have():
    context = mp.Context(mp.System(topology()), mp.SplittingIntegrator("BAGAB", 0.01), threads=1)
    state = context.get_state(positions=True)
    for name in ("charge", "velocities", "energies"):
        refuses(mp.ParameterError, f"no column '{name}', only positions.*velocities=True", state.column, name)
    for name in ("charge", "positions", "triangles", None):
        with pytest.raises(mp.ParameterError, match=f"no column to set {name!r}.*'orientations', 'angular_momenta'"):
            context.set_column(name, [])
    with pytest.raises(mp.TopologyError, match=r"set_column: charges must have shape \(3, 2\), not \(3,\)"):
        context.set_column("charges", [1, 2, 3])
    with pytest.raises(mp.TopologyError, match=r"charges must hold integers, not float64"):
        context.set_column("charges", np.ones((3, 2)))
    before = context.get_state(positions=True).orientations
    with pytest.raises(mp.TopologyError, match=r"set_column: rigid bodies: orientations\[0\] = .* has length 2"):
        context.set_column("orientations", [[2.0, 0, 0, 0]])
    assert (context.get_state(positions=True).orientations == before).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"role": "speed"}, "role = 'speed' but must be"),
    ({"role": "momentum"}, "have mass= and drive="),
    ({"mass": "m"}, "have mass= and drive="),
    ({"role": "momentum", "mass": "m", "drive": "f", "dtype": np.int32}, "must be np.float64"),
    ({"dtype": np.float32}, "must be np.float64 or, of positions, an integer type"),
    ({"drawn": "color"}, "drawn = 'color' but must be"),
])  # fmt: skip
def test_columns_that_cannot_be(options, message):
    refuses(mp.ParameterError, f"Column wrong: .*{re.escape(message)}", Column, "wrong", "some", **options)


def test_kinds_whose_columns_clash_are_refused():
    def refused(columns, message):
        class Kind(Charged):
            pass

        Kind._kind.columns = columns
        t = topology()
        refuses(mp.TopologyError, message, t.add, Kind, np.zeros((1, 3)), 1.0, charges=[[0, 0]])
        assert len(t.handles) == 6

    other = Column("charges", "charged", (3,), dtype=np.int64)
    refused((*BeadsKind.columns, other), "another kind of bead has a column 'charges'")
    more = Column("more", "elsewhere")
    refused((*BeadsKind.columns, CHARGE, more), "'more' is of 'elsewhere', others .* of 'charged'")
    refused((*BeadsKind.columns, Column("more", "beads")), "column 'more' cannot be of all beads")
