"""The table of letters: open to other packages, and what stands in it is all that words know."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import forces
from medyanpy.beads import Beads, BeadsKind
from medyanpy.core.flows import Flow
from medyanpy.core.letters import LETTERS, LetterKind, add_letter


@pytest.fixture
def table():
    """It, which the test may add to."""
    before = dict(LETTERS)
    yield LETTERS
    LETTERS.clear()
    LETTERS.update(before)


def nothing(*_):
    return []


def twice(schedule, letter, stage):
    """B's kick once more."""
    return LETTERS["B"].operations(schedule, letter, stage)


class PairKind(BeadsKind):
    name = "pairs"

    def bind(self, layout):
        return Asked()


class Pair(Beads, kind=PairKind):
    """Beads that write down which letters they were asked for, and have a P of their own."""


class Asked(Flow):
    asked: list

    def __init__(self):
        self.asked = []

    def before_p(self, stage):
        self.asked.append(("before", stage.kind, stage.h))
        return []

    def in_place_of_p(self, stage):
        self.asked.append(("in place", stage.kind, stage.h))
        return []

    def after_p(self, stage):
        self.asked.append(("after", stage.kind, stage.h))
        return []


def system():
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 0, 0], [0.0, 2.0, 0]], mass=1.0, friction=1.0)
    system = system_with(topology, forces.HarmonicTrap(beads, 1.0, [0.0, 0, 0]))
    return system


def ends(word, steps=20, **options):
    context = mp.Context(system(), mp.SplittingIntegrator(word, 0.1, **options), threads=1)
    context.set_velocities([[0.0, 1.0, 0], [0.5, 0, 0]])
    context.step(steps)
    return context.get_state(positions=True, velocities=True, energy=True)


def test_every_letter_has_an_entry():
    assert sorted(LETTERS) == ["A", "B", "D", "G", "J", "O"]
    assert [s for s, kind in LETTERS.items() if kind.thermal] == ["O", "D"]
    assert [s for s, kind in LETTERS.items() if kind.alone] == ["D"]
    assert [s for s, kind in LETTERS.items() if kind.apart] == ["J"]
    assert [s for s, kind in LETTERS.items() if kind.reversible] == ["A", "B", "G"]
    assert all(kind.symbol == symbol and kind.does for symbol, kind in LETTERS.items())


@pytest.mark.parametrize("symbol", ["AB", "a", "", "1", "Ä", None, 3])
def test_symbols_are_capital_letters(table, symbol):
    refuses(mp.ParameterError, "symbol must be one capital letter", add_letter, LetterKind(symbol, "nothing", nothing))


def test_a_symbol_is_given_once(table):
    with pytest.raises(mp.ParameterError, match="G is taken: flight of in-triangle points over their mesh"):
        add_letter(LetterKind("G", "nothing", nothing))
    assert LETTERS["G"].does != "nothing"


def test_a_letter_that_does_nothing_here_changes_no_bit(table):
    known = r"A, B \(or B0 to B31\), G, J and O are"
    refuses(mp.ParameterError, f"'P' is not a letter of a word: {known}", ends, "BAPAB")
    add_letter(LetterKind("P", "nothing", nothing))
    one, other = ends("BAPAB"), ends("BAAB")
    assert (one.positions == other.positions).all()
    assert (one.velocities == other.velocities).all()
    refuses(mp.ParameterError, r"A, B \(or B0 to B31\), G, J, O and P are", ends, "BAXAB")


def test_a_letter_runs_for_its_share_of_the_timestep_where_it_stands(table):
    """B's kick under another name: B A P A B with P = B is a step of two kicks, of which P has twice the time."""
    add_letter(LetterKind("P", "kick", twice))
    got = ends("BAPAB", steps=1)
    x, v, h = np.array([[1.0, 0, 0], [0.0, 2.0, 0]]), np.array([[0.0, 1.0, 0], [0.5, 0, 0]]), 0.1
    for kick, flight in ((0.5, 0.5), (1.0, 0.5), (0.5, 0.0)):
        v = v - kick * h * x
        x = x + flight * h * v
    np.testing.assert_allclose(got.positions, x, rtol=1e-14)
    np.testing.assert_allclose(got.velocities, v, rtol=1e-13)


@pytest.mark.parametrize("thermal", [False, True])
def test_work_of_a_letter_is_heat_if_it_is_thermal(table, thermal):
    add_letter(LetterKind("P", "kick", twice, thermal=thermal))
    simulation = mp.Simulation(system(), mp.SplittingIntegrator("BAPAB", 0.1, **({"kT": 1.0} if thermal else {})))
    simulation.context.set_velocities([[0.0, 1.0, 0], [0.5, 0, 0]])
    simulation.report_work = True
    simulation.step(5)
    state = simulation.context.get_state(energy=True)
    assert (state.heat != 0.0) == thermal
    assert state.shadow_work != 0.0


def test_thermal_letters_need_a_temperature_and_stay_outside_of_order_four(table):
    add_letter(LetterKind("P", "nothing", nothing, thermal=True))
    refuses(mp.ParameterError, "it needs temperature=", mp.SplittingIntegrator, "BAPAB", 0.1)
    refuses(mp.ParameterError, "goes back in time", mp.SplittingIntegrator, "BAPAB", 0.1, kT=1.0, order=4)


def test_a_kind_of_bead_is_asked_before_in_place_and_after(table):
    add_letter(LetterKind("P", "nothing", nothing))
    topology = mp.Topology()
    topology.add(Pair, [[1.0, 0, 0]], mass=1.0, friction=1.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("B A P P A B", 0.2), threads=1)
    (flow,) = context._schedule.flows.values()
    assert {(when, kind) for when, kind, _ in flow.asked} == {("before", "P"), ("in place", "P"), ("after", "P")}
    assert {h for _, _, h in flow.asked} == {0.1}
    assert flow.replaces("P")
    assert not flow.replaces("O")


def test_beads_with_an_o_of_their_own_are_left_alone_by_the_common_one():
    """Filaments with friction along and across, and bodies: c1 = 1 and c2 = 0 there, whatever their `friction` says."""
    topology = mp.Topology()
    line = np.linspace([0.0, 0, 0], [3.0, 0, 0], 4)
    topology.add_beads([[9.0, 0, 0]], mass=1.0, friction=2.0)
    topology.add_filament(line, 1.0, (0.5, 1.0), name="along")
    plain = topology.add_filament(line + 5.0, 1.0, 3.0, name="plain")
    topology.add_rigid_bodies([[20.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, (1.0, 1.0, 1.0), (2.0, 3.0))
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=1)
    c1, c2 = (c[context.layout.rank] for c in context._schedule.coefficient_arrays().values())
    own = np.ones(topology.n_beads, bool)
    own[[0, *plain.beads]] = False
    assert (c1[own] == 1.0).all()
    assert (c2[own] == 0.0).all()
    np.testing.assert_allclose(c1[~own], np.exp(-0.1 * np.r_[2.0, np.full(4, 3.0)]), rtol=1e-15)
