"""Constraints of a user's own that are refused: bad texts, numbers, kinds and integrators, and how runs fail."""

import numpy as np
import pytest
from builders import refuses, system_with
from constraint_systems import ANGLE, DISTANCE, look

import medyanpy as mp


def box(n=4):
    topology = mp.Topology()
    return topology, topology.add_beads(np.eye(3)[np.arange(n) % 3] * (1.0 + np.arange(n))[:, None], 1.0)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (("x1 + q", [[0]]), mp.ParameterError, r"'q' at column 6 of 'x1 \+ q' is unknown: there are x1, y1, z1"),
    (("x1 - x3", [[0, 1]]), mp.ParameterError, "'x3' .* is unknown: there are x1, y1, z1, x2, y2, z2"),
    (("x - x1", [[0, 1]]), mp.ParameterError, "'x' at column 1 .* is unknown"),
    (("x1 ** q", [[0]]), mp.ParameterError, "'q' at column 7 .* is unknown"),
    (("tanx(x1)", [[0]]), mp.ParameterError, "is not part of an expression: there is no function tanx"),
    (("3 - 3", [[0]]), mp.ParameterError, "does not depend on any coordinate"),
    (("x1 - 1", [[0, 1]]), mp.TopologyError, "'x1 - 1' does not depend on bead 2 of the 2 in each row"),
    (("x1 - 1", [[7]]), mp.TopologyError, "row 0 names beads .7., but the topology has beads 0 to 3"),
    (("x1 - x2", [[0, 1], [2, 2]]), mp.TopologyError, r"row 1 names a bead twice: \[2, 2\]"),
    (("x1 - 2", [[0], [1]]), mp.TopologyError,
     r"constraint 0 \('x1 - 2'\), of beads \[0\], does not hold where they start: it is -1, about 1 nm away"),
    (("(x1 - 1)^2", [[0]]), mp.TopologyError, "has no gradient where its beads start"),
    (("log(-x1)", [[0]]), mp.TopologyError, "is not a finite number where its beads start"),
    (("", [[0]]), mp.ParameterError, "ends where a number or a name should follow"),
    (([], [[0]]), mp.ParameterError, "the list of constraints is empty"),
    ((7, [[0]]), mp.ParameterError, "give text, a SymPy expression or a list of such, not int"),
    (([3], [[0]]), mp.ParameterError, "3 is neither text nor a SymPy expression"),
])  # fmt: skip
def test_bad_constraints_are_refused(arguments, error, message):
    topology, _ = box()
    refuses(error, message, topology.constrain, *arguments)
    assert len(topology.handles) == 1


@pytest.mark.parametrize(("numbers", "error", "message"), [
    ({"x1": 3.0}, mp.ParameterError, "x1 is a coordinate and cannot be a parameter"),
    ({"exp": 3.0}, mp.ParameterError, "exp is a function and cannot be a parameter"),
    ({"d": 1.0, "e": 2.0}, mp.ParameterError, "the parameter e is not in"),
    ({"d": np.nan}, mp.ParameterError, "constrain: d = nan"),
    ({"d": [1.0, 2.0]}, mp.ParameterError, "constrain: d"),
    ({}, mp.ParameterError, "'d' .* is unknown"),
    ({"d": 1.0, "length": 0.0}, mp.ParameterError, "constrain: length = 0"),
    ({"d": 1.0, "tolerance": -1.0}, mp.ParameterError, "constrain: tolerance = -1"),
    ({"d": 1.0, "name": "beads"}, mp.TopologyError, "the name 'beads' is in use"),
])  # fmt: skip
def test_bad_numbers_are_refused(numbers, error, message):
    topology, _ = box()
    refuses(error, message, topology.constrain, "x1 - d", [[0]], **numbers)


def test_constraints_that_depend_on_each_other_are_refused():
    """A fourth bar within a plane triangle; the message has which, and how far from independent."""
    topology = mp.Topology()
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.3, 0.8, 0.0]])
    topology.add_beads(x, 1.0)
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    d = np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1)
    topology.constrain(DISTANCE, pairs, d=d)
    depends = (
        r"constraint 0 \(.*\) of 'again', of beads \[0, 1\], depends where beads start on constraint 0 .* of "
        r"'constraints'.*within .*e-1\d of"
    )
    refuses(mp.TopologyError, depends, topology.constrain, DISTANCE, pairs[:1], d=d[:1], name="again")
    assert len(topology.handles) == 2
    # Two links of a filament already hold an end that is straight: their sum depends on them.
    chain = topology.add_filament([[0.0, 5, 0], [1.0, 5, 0], [2.0, 5, 0]], 1.0)
    with pytest.raises(mp.TopologyError, match=r"depends where beads start on the length of link 0 of 'filament', the"):
        topology.constrain(DISTANCE, chain.beads[[0, 2]], d=2.0)
    with pytest.raises(mp.TopologyError, match="depends where beads start on"):
        topology.constrain(["x1 - 1", "y1 - 5", "z1", "x1 + y1 + z1 - 6"], [[4]], length=1.0)


def test_fixed_beads_and_kinds_that_take_no_part_are_refused():
    topology = mp.Topology()
    chain = topology.add_filament([[0.0, 0, 0], [1.0, 0, 0], [1.0, 1.0, 0]], 1.0, fixed_nodes=[0, 2])
    with pytest.raises(mp.TopologyError, match="names beads that are all fixed"):
        topology.constrain(DISTANCE, chain.beads[[0, 2]], d=np.sqrt(2.0))
    twistable = topology.add_filament([[0.0, 0, 0], [1.0, 0, 0]], 1.0, directors=[[0.0, 0, 1]], director_mass=1.0)
    plane = mp.surfaces.PythonSurface(lambda p: p[:, 2], lambda p: np.tile([0.0, 0, 1.0], (len(p), 1)))
    python = topology.add_surface_points(plane, [[1.0, 2.0, 0]], 1.0)
    other = mp.Topology()
    foreign = other.add_beads([[1.0, 0, 0]], 1.0)
    with pytest.raises(mp.TopologyError, match=r"belongs to .*constraints hold free"):
        topology.constrain("x1 - 1", [[twistable.directors.beads[0]]])
    with pytest.raises(mp.TopologyError, match="whose surface is given by Python functions"):
        topology.constrain("x1 - 1", [[python.beads[0]]])
    refuses(mp.TopologyError, "belongs to another topology", topology.constrain, "x1 - 1", foreign)
    origin = topology.add_beads([[0.0, 0, 0]], 1.0)
    refuses(mp.ParameterError, "start at the origin: give length=", topology.constrain, "x", origin)


def test_kinds_and_jumps_of_others_are_refused():
    class Own(mp.beads.Beads):
        """Whatever holds it, nobody here knows."""

    class Births(mp.jumps.Jump):
        def __init__(self, handle):
            super().__init__()
            self._handle = handle

        births = property(lambda self: (self._handle,))

        def bind(self, layout, kT):
            raise AssertionError

        def update(self, operation, kT):
            raise AssertionError

    topology = mp.Topology()
    own = topology.add(Own, [[1.0, 0, 0]], 1.0)
    beads = topology.add_beads([[1.0, 0, 0], [2.0, 0, 0]], 1.0, 1.0, capacity=4)
    refuses(mp.TopologyError, r"belongs to Own.*constraints hold free beads", topology.constrain, "x1 - 1", own)
    refuses(mp.TopologyError, r"row of Beads.* without a bead", topology.constrain, "x1 - 1", [[3]])
    topology.constrain(DISTANCE, beads.beads, d=1.0)
    system = mp.System(topology)
    system.add_jump(Births(beads))
    with pytest.raises(mp.TopologyError, match=r"jumps cannot create, remove or change Beads.*holds some"):
        mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0))


def test_failed_run_names_constraint_bead_and_row():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0], [0.0, 3.0, 0], [0.0, 4.0, 0]], 1.0)
    topology.constrain(DISTANCE, [[1, 2]], d=1.0, name="stick")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    context.set_velocities([[0.0, 0, 0], [0.0, 0, 60.0], [0.0, 0, -60.0]])
    before = look(context)[0]
    message = r"step 0, bead 1 .*constraint 0 \(.*\) of 'stick' cannot be kept"
    with pytest.raises(mp.SimulationError, match=message) as raised:
        context.step(1)
    assert (raised.value.bead, raised.value.object, raised.value.step) == (1, "beads", 0)
    assert (look(context)[0] == before).all()


def test_a_pendulum_that_would_jump_to_the_other_side_is_refused():
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], 1.0)
    topology.constrain("x^2 + y^2 + z^2 - 1", [[0]])
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    context.set_velocities([[0.0, 1.1, 0.0]])
    refuses(mp.SimulationError, "cannot be kept", context.step, 1)


@pytest.mark.parametrize("height", [0.75, 1.0])
def test_another_sheet_with_a_gradient_turned_round_is_refused(height):
    """Two sheets x = f(y) ± 1: Newton's method comes to the other one, or the flight ends on it straight away; the
    chord meets both at the same angle."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 0, 0]], 1.0)
    topology.constrain("(x - a*(1 - cos(p*y)))^2 - 1", [[0]], p=np.pi, a=height)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1.0))
    context.set_velocities([[0.0, 1.0, 0.0]])
    refuses(mp.SimulationError, "another sheet was reached", context.step, 1)


def test_other_integrators_and_potentials_are_refused():
    topology = mp.Topology()
    chain = topology.add_filament([[0.0, 0, 0], [1.0, 0, 0], [1.0, 1.0, 0]], 1.0, 1.0)
    beads = topology.add_beads([[1.0, 2.0, 0.0], [5.0, 0, 0], [6.0, 0, 0]], 1.0, 1.0)
    tie = topology.constrain(DISTANCE, [chain.beads[2], beads.beads[0]], d=1.0, name="tie")
    angle = topology.constrain(ANGLE, chain.beads, c=0.0, name="angle")
    with pytest.raises(mp.ParameterError, match=r"BrownianIntegrator cannot move Filaments|cannot move Constraints"):
        mp.Context(mp.System(topology), mp.BrownianIntegrator(0.01, kT=1.0))
    for force, message in [
        (mp.forces.FixmanPotential(chain, kT=1.0), "filament 0 of 'filament' is solved together with .*'tie'"),
        (mp.forces.ConstraintFixmanPotential(angle, kT=1.0), "'angle' are all solved together with earlier ones"),
    ]:
        system = system_with(topology, force)
        refuses(mp.TopologyError, message, mp.Context, system, mp.VerletIntegrator(0.01))
    refuses(mp.ParameterError, r"give temperature= .kelvin. or kT=", mp.forces.ConstraintFixmanPotential, tie)
    refuses(mp.TopologyError, "must be the handle of constraints", mp.forces.ConstraintFixmanPotential, chain, kT=1.0)
    refuses(mp.ParameterError, r"ConstraintPenalty: 'q'", mp.forces.ConstraintPenalty, "x1 - q", [[0]], 1.0)
    refuses(mp.TopologyError, "row 0 names a bead twice", mp.forces.ConstraintPenalty, "x1 - x2", [[0, 0]], 1.0)
    refuses(mp.TopologyError, "no text depends on bead 2 of the 2", mp.forces.ConstraintPenalty, "x1", [[0, 1]], 1.0)
    refuses(mp.ParameterError, "omega = -1", mp.forces.ConstraintPenalty, "x1", [[0]], -1.0)


def test_sympy_expressions_are_texts():
    sympy = pytest.importorskip("sympy")
    x1, y1, x2, d = sympy.symbols("x1 y1 x2 d")
    topology = mp.Topology()
    topology.add_beads([[1.0, 2.0, 0.0], [0.0, 0, 0]], 1.0)
    made = topology.constrain(sympy.sqrt((x1 - x2) ** 2 + y1**2) - d * sympy.exp(0) + sympy.Rational(1, 2) * 0,
                              [[0, 1]], d=np.sqrt(5.0))  # fmt: skip
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    context.set_velocities([[1.0, 1.0, 1.0], [0.0, 0, 0]])
    context.step(50)
    x = look(context)[0]
    assert np.hypot(x[0, 0] - x[1, 0], x[0, 1]) == pytest.approx(np.sqrt(5.0), rel=1e-10)
    assert "sqrt" in made.texts[0]
    refuses(mp.ParameterError, "is not part of an expression of sqrt", box()[0].constrain, sympy.gamma(x1) - 1, [[0]])
