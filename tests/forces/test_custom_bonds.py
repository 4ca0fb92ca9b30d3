"""CustomBonds: against springs, in kicks, and what is refused. Forces: test_contract.py too."""


import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import CustomBonds, ExternalField, HarmonicBonds, LinkLengthPenalty


def context_of(x, *forces, threads=1, word="BAB", timestep=1e-3, **options):
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    return mp.Context(system_with(topology, *forces),
                      mp.SplittingIntegrator(word, timestep, **options), threads=threads)  # fmt: skip


def look(x, *forces, threads=1, energy=True):
    return context_of(x, *forces, threads=threads).get_state(forces=True, energy=energy)


RNG = np.random.default_rng(3)
X = RNG.normal(0.0, 3.0, (50, 3))
PAIRS = np.array([RNG.choice(50, 2, replace=False) for _ in range(70)])


@pytest.mark.parametrize(("text", "numbers", "other"), [
    ("k/2*(r - d)^2", {"k": RNG.uniform(1.0, 2.0, 70), "d": 1.5}, lambda k, d: HarmonicBonds(PAIRS, k, d)),
    ("w^2/2*(r^2 - d^2)^2", {"w": 0.3, "d": RNG.uniform(1, 2, 70)}, lambda w, d: LinkLengthPenalty(PAIRS, w, d)),
    ("k/2*max(r - d, 0)^2", {"k": 2.0, "d": 3.0}, lambda k, d: mp.forces.Links(*PAIRS.T, k, d, one_sided=True)),
])  # fmt: skip
def test_it_is_the_force_that_it_writes(text, numbers, other):
    mine, right = context_of(X, CustomBonds(PAIRS, text, **numbers)), context_of(X, other(**numbers))
    a = RNG.normal(size=X.shape)
    for look in (
        lambda c: c.get_state(forces=True).forces,
        lambda c: c.hessian().toarray(),
        lambda c: c.third_derivative(a),
        lambda c: c.get_state(energy=True).potential_energy,
    ):
        found, expected = look(mine), look(right)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("n", [1, 15, 16, 17, 1023, 1024, 1025, 3000])
def test_force_of_a_bond_depends_on_it_alone(n):
    """Not on how many there are, how many share its vector, or threads."""
    rng = np.random.default_rng(n)
    x = rng.uniform(0.1, 9.0, (2 * n, 3))
    pairs, k = rng.permutation(2 * n).reshape(n, 2), rng.uniform(1.0, 2.0, n)

    def make(some):
        return CustomBonds(pairs[some], "k*tanh(r)*exp(-r/9)", k=k[some])

    everything = np.arange(n)
    whole = look(x, make(everything))
    r = np.linalg.norm(x[pairs[:, 1]] - x[pairs[:, 0]], axis=1)
    assert whole.potential_energy == pytest.approx(np.sum(k * np.tanh(r) * np.exp(-r / 9.0)), rel=1e-12)
    for threads in (2, 3):
        other = look(x, make(everything), threads=threads)
        assert other.forces.tobytes() == whole.forces.tobytes()
        assert other.potential_energy == whole.potential_energy
    assert look(x, make(everything), energy=False).forces.tobytes() == whole.forces.tobytes()
    some = rng.permutation(n)[: max(1, n // 3)]
    assert look(x, make(some)).forces[pairs[some]].tobytes() == whole.forces[pairs[some]].tobytes()


def test_beads_in_one_place_have_no_direction():
    """Nor a force then, where the energy is a number; where it is none, the run stops."""
    x = np.array([[1.0, 1, 1], [1.0, 1, 1], [0.0, 0, 1]])
    state = look(x, CustomBonds([[0, 1]], "k*r + sqrt(r)", k=3.0))
    assert (state.potential_energy, np.abs(state.forces).max()) == (0.0, 0.0)
    context = context_of(x, CustomBonds([[2, 1], [1, 0]], "k/r", k=1.0, name="charges"))
    with pytest.raises(mp.SimulationError) as caught:
        context.step(1)
    assert (caught.value.bead, caught.value.force) == (1, "charges")


def test_linearly_implicit_kicks_solve_with_it():
    """Stiffer than an explicit step could bear: energy and length stay."""
    x = np.array([[0.0, 0, 0], [1.0, 0, 0]])
    force = CustomBonds([[0, 1]], "depth*(1 - exp(-a*(r - 1)))^2", depth=1e3, a=2.0)
    context = context_of(x, force, timestep=0.05, kick=mp.kicks.ZhangSkeel(beta=0.4))
    context.set_velocities([[0.0, 0.5, 0.0], [0.0, -0.5, 0.0]])
    before = context.get_state(energy=True).total_energy
    context.step(400)
    state = context.get_state(energy=True, physical_positions=True)
    assert np.linalg.norm(np.diff(state.physical_positions, axis=0)) == pytest.approx(1.0, abs=0.01)
    assert state.total_energy == pytest.approx(before, rel=0.05)


def test_two_beads_keep_their_energy_and_turn_round():
    context = context_of(np.array([[0.0, 0, 0], [1.2, 0, 0]]),
                         CustomBonds([[0, 1]], "-e*sech2; sech2 = 1/cosh(r - 1)^2", e=2.0))  # fmt: skip
    context.set_velocities([[0.0, 0.3, 0], [0.0, -0.3, 0.1]])
    start = context.get_state(energy=True, positions=True)
    context.step(3000)
    there = context.get_state(energy=True, velocities=True)
    assert there.total_energy == pytest.approx(start.total_energy, rel=1e-6)
    context.set_velocities(-there.velocities)
    context.step(3000)
    np.testing.assert_allclose(context.get_state(positions=True).positions, start.positions, rtol=0, atol=1e-10)


def test_words():
    force = CustomBonds(PAIRS, "k*(r - l)^4", k=np.linspace(1.0, 2.0, 70), l=0.7)
    assert repr(force) == "CustomBonds('k*(r - l)^4', k=array of 70, l=0.7)"
    assert repr(CustomBonds([[0, 1]], "r")) == "CustomBonds('r')"


def test_sympy_expressions_are_texts():
    sympy = pytest.importorskip("sympy")
    r, k = sympy.symbols("r k")
    force = CustomBonds(PAIRS, k * sympy.log(sympy.cosh(r)), k=2.0)
    right = look(X, CustomBonds(PAIRS, "k*log(cosh(r))", k=2.0))
    np.testing.assert_allclose(look(X, force).forces, right.forces, rtol=1e-14)


@pytest.mark.parametrize(("pairs", "text", "numbers", "error", "message"), [
    ([[0, 1]], "k*x", {"k": 1.0}, mp.ParameterError, "'x' at column 3 of 'k[*]x' is unknown: there are r"),
    ([[0, 1]], "k + 1", {"k": 1.0}, mp.ParameterError, "CustomBonds: 'k [+] 1' does not depend on r"),
    ([[0, 1]], "k*r", {"k": 1.0, "r": 2.0}, mp.ParameterError, "r is a coordinate and cannot be a parameter"),
    ([[0, 1]], "r", {"k": 1.0}, mp.ParameterError, "the parameter k is not in 'r'"),
    ([[0, 1]], "k*r", {"k": np.nan}, mp.ParameterError, "CustomBonds: k = nan"),
    ([[0, 1]], "k*r", {"k": [1.0, 2.0]}, mp.ParameterError, "CustomBonds: k"),
    ([[0, 1]], "delta(r)", {}, mp.ParameterError, "no function delta: it is 0 but in single points"),
    ([[0, 1]], 7, {}, mp.ParameterError, "CustomBonds: energy must be text or a SymPy expression, not 7"),
    ([[0, 1], [3, 3]], "r", {}, mp.TopologyError, "bond 1 joins bead 3 to itself"),
    ([0, 1], "r", {}, mp.TopologyError, "CustomBonds: pairs"),
    ([[0, 99]], "r", {}, mp.TopologyError, r"term 0 names beads \[0, 99\]"),
])  # fmt: skip
def test_refusals(pairs, text, numbers, error, message):
    refuses(error, message, lambda: look(X, CustomBonds(pairs, text, **numbers)))


def test_openmm_names_lead_to_it():
    with pytest.raises(AttributeError, match=r"here it is mp.forces.CustomBonds\(pairs, energy, \*\*parameters\)"):
        mp.forces.CustomBondForce  # noqa: B018
    assert ExternalField.changeable == ()
