"""Words: what is read, what is refused, and with which message."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import units


@pytest.mark.parametrize("word", ["BAGOGAB", "bagogab", " B A G O G A B ", "BAG OGAB"])
def test_compact_spaced_and_lower_case_are_the_same_word(word):
    integrator = mp.SplittingIntegrator(word, 0.1, kT=1.0)
    assert integrator.word == "B A G O G A B"
    assert [letter.fraction for letter in integrator.letters] == [0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 0.5]


def test_groups_count_by_themselves():
    letters = mp.SplittingIntegrator("B1 B0 A B0 A B0 B1", 0.1).letters
    assert [(le.kind, le.group, le.fraction) for le in letters] == [
        ("B", 1, 1 / 2), ("B", 0, 1 / 3), ("A", None, 1 / 2), ("B", 0, 1 / 3), ("A", None, 1 / 2), ("B", 0, 1 / 3),
        ("B", 1, 1 / 2)
    ]  # fmt: skip


@pytest.mark.parametrize(("word", "problem", "caret"), [
    ("BAXAB", "'X' is not a letter", 2),
    ("BA-GAB", "'-' is not a letter", 2),
    ("A1BA", "'1' is not a letter", 1),
    ("BOB", "has no A", 3),
    ("AGA", "has no B", 3),
    ("", "has no A", 0),
    ("BAGOGA", "not a palindrome", 5),
    ("B0 A B", "mixes kicks", 5),
    ("B A B0", "mixes kicks", 4),
    ("B0 A B1", "not a palindrome", 5),
    ("B40 A B40", "group that does not exist", 0),
])  # fmt: skip
def test_a_word_that_cannot_be_read_is_shown_with_a_caret(word, problem, caret):
    with pytest.raises(mp.ParameterError, match=problem) as caught:
        mp.SplittingIntegrator(word, 0.1, kT=1.0)
    shown, pointer = str(caught.value).splitlines()[-2:]
    assert shown == "    " + word
    assert pointer.index("^") == 4 + caret


def test_words_that_are_no_palindromes_on_request():
    assert mp.SplittingIntegrator("BAO", 0.1, kT=1.0, symmetric=False).word == "B A O"


def test_a_word_is_a_string():
    refuses(mp.ParameterError, "word must be text, not", mp.SplittingIntegrator, ["B", "A"], 0.1)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "fast", None])
def test_timestep_is_positive(value):
    refuses(mp.ParameterError, r"timestep = .* but must be", mp.VerletIntegrator, value)


@pytest.mark.parametrize("given", [{"temperature": 0.0}, {"temperature": -3.0}, {"kT": 0.0}, {"kT": np.nan}])
def test_temperature_is_positive_where_there_is_an_o(given):
    refuses(mp.ParameterError, "but must be finite and > 0", mp.BAGOGABIntegrator, 0.1, **given)


def test_an_o_needs_one_temperature():
    refuses(mp.ParameterError, r"has an O: it needs temperature", mp.BAGOGABIntegrator, 0.1)
    refuses(mp.ParameterError, "not both", mp.BAGOGABIntegrator, 0.1, temperature=300.0, kT=4.0)
    assert mp.BAGOGABIntegrator(0.1, temperature=300.0).kT == pytest.approx(300.0 * 1.380649e-2)
    assert mp.BAGOGABIntegrator(0.1, kT=units.boltzmann).temperature == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [-1, 1.5, 2**64, "x", True])
def test_seeds_are_whole_numbers_of_64_bits(seed):
    refuses(mp.ParameterError, r"seed = .* but must be a whole number", mp.BAGOGABIntegrator, 0.1, kT=1.0, seed=seed)


def two_beads(integrator, group=0):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0]], mass=[1.0, 3.0])
    return mp.Context(system_with(topology, mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0, group=group)),
                      integrator, threads=1)  # fmt: skip


def test_every_force_group_must_be_kicked():
    with pytest.raises(mp.ParameterError, match="never kicks group 2, to which HarmonicBonds belongs"):
        two_beads(mp.SplittingIntegrator("B0 A B0", 0.1), group=2)


def test_points_need_a_g():
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, 1, mass=1.0)
    with pytest.raises(mp.ParameterError, match=r"has no G, but .* moves by G alone: use BAGOGAB"):
        mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0))


@pytest.mark.frictionless
def test_g_without_points_is_an_empty_flow():
    states = []
    for word in ("BAGOGAB", "BAOAB"):
        context = two_beads(mp.SplittingIntegrator(word, 0.1, kT=1.0))
        context.step(50)
        states.append(context.get_state(positions=True).positions)
    # Noise belongs to the place of O in the word, so only the frictionless beads are comparable: these are.
    assert (states[0] == states[1]).all()


def test_an_integrator_drives_one_context():
    integrator = mp.VerletIntegrator(0.1)
    context = two_beads(integrator)
    refuses(mp.ParameterError, "already drives a Context", two_beads, integrator)
    integrator.step(3)
    assert context.step_count == 3
    refuses(mp.ParameterError, "drives no Context", mp.VerletIntegrator(0.1).step, 1)


def test_verlet_is_velocity_verlet():
    """Against the textbook's three lines."""
    h = 0.05
    context = two_beads(mp.VerletIntegrator(h))
    v = np.array([[0.1, 0.2, 0.0], [0.0, -0.3, 0.1]])
    context.set_velocities(v)
    context.step(40)

    x, m = np.array([[0.0, 0, 0], [2.0, 0, 0]]), np.array([[1.0], [3.0]])

    def force(x):
        d = x[1] - x[0]
        r = np.linalg.norm(d)
        return np.array([(r - 1.0) * d / r, -(r - 1.0) * d / r])

    for _ in range(40):
        v = v + 0.5 * h * force(x) / m
        x = x + h * v
        v = v + 0.5 * h * force(x) / m
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(state.positions, x, atol=1e-13)
    np.testing.assert_allclose(state.velocities, v, atol=1e-13)


def test_groups_are_kicked_at_their_own_rates():
    """Two springs in two groups under B1 B0 A B0 A B0 B1: against the same word spelled out in NumPy."""
    h = 0.05
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [2.0, 0, 0], [2.0, 1.5, 0]], mass=1.0)
    system = system_with(topology, mp.forces.HarmonicBonds([[0, 1]], 10.0, 1.8, group=0),
                         mp.forces.HarmonicBonds([[1, 2]], 1.0, 1.0, group=1))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("B1 B0 A B0 A B0 B1", h), threads=1)
    context.step(20)

    def force(x, i, j, k, length):
        d = x[j] - x[i]
        r = np.linalg.norm(d)
        f = np.zeros_like(x)
        f[i] = k * (r - length) * d / r
        f[j] = -f[i]
        return f

    x, v = np.array([[0.0, 0, 0], [2.0, 0, 0], [2.0, 1.5, 0]]), np.zeros((3, 3))
    groups = {"B0": ((0, 1, 10.0, 1.8), h / 3), "B1": ((1, 2, 1.0, 1.0), h / 2)}
    for _ in range(20):
        for letter in "B1 B0 A B0 A B0 B1".split():
            if letter == "A":
                x = x + 0.5 * h * v
            else:
                arguments, time = groups[letter]
                v = v + time * force(x, *arguments)
    state = context.get_state(positions=True, velocities=True, energy=True, forces=True)
    np.testing.assert_allclose(state.positions, x, atol=1e-12)
    np.testing.assert_allclose(state.velocities, v, atol=1e-12)
    assert set(state.energies) == {"HarmonicBonds", "HarmonicBonds 2"}
    np.testing.assert_allclose(state.forces, force(x, 0, 1, 10.0, 1.8) + force(x, 1, 2, 1.0, 1.0), atol=1e-12)


@pytest.mark.parametrize(
    ("word", "flights", "longest"),
    [
        ("BAB", [1.0], 1.0),
        ("ABA", [1.0], 1.0),
        ("BABAB", [0.5, 0.5], 0.5),
        # Kicks with nothing between them are one.
        ("B1 B0 A O A B0 B1", [1.0], 1.0),
        ("B1 A B0 A B1", [0.5, 0.5], 0.5),
    ],
)
def test_flights_are_the_ways_between_kicks(word, flights, longest):
    integrator = mp.SplittingIntegrator(word, 0.1, **({"kT": 1.0} if "O" in word else {}))
    assert integrator.flights == flights
    assert integrator.longest_flight() == longest
