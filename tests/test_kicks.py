"""Linearly implicit kicks: the equations they solve, and the theorems of Tao and Owhadi."""

import itertools
import re
import warnings

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.kicks import Explicit, Newmark, PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff
from medyanpy.testing import check_mean, thermal

# On tests that run, or look at, rules which are not the gradient of a potential where nothing takes out their heat.
heats = pytest.mark.filterwarnings(
    "ignore:.* is not the gradient of a potential and heats:medyanpy.errors.TimestepWarning"
)

RULES = {
    "Zhang-Skeel": ZhangSkeel,
    "simplified": ZhangSkeelSimplified,
    "stiff": lambda beta: ZhangSkeelStiff(beta, ["HarmonicBonds"]),
    "Newmark": PushForwardNewmark,
    "one step": lambda beta: PushForwardNewmark(beta, "one-step"),
    "classical": Newmark,
    "positive": lambda beta: ZhangSkeelSimplified(beta, positive_definite=True),
    "positive gradient": lambda beta: ZhangSkeel(beta, positive_definite=True),
}
# Rules and orders: the classical method is not composed.
ORDERS = [(rule, order) for rule in RULES for order in (2, 4) if (rule, order) != ("classical", 4)]


def springs(stiffness, masses):
    """Beads of these masses in one trap, at 1 along x; the topology and system."""
    topology = mp.Topology()
    n = len(masses)
    beads = topology.add_beads(np.column_stack([np.ones(n), np.zeros((n, 2))]), masses, 1.0)
    system = system_with(topology, mp.forces.HarmonicTrap(beads, stiffness, [0.0, 0.0, 0.0]))
    return topology, system


def network(n=6, stiffness=1.0, seed=3, closed=False, relaxed=False):
    """A crumpled chain with bonds that want to be 1 long, or are as long as they want to be, in a trap: nonlinear, and
    bounded."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (n, 3)), axis=0)
    beads = topology.add_beads(x, rng.uniform(0.5, 2.0, n), 0.5)
    system = mp.System(topology)
    pairs = [[i, i + 1] for i in range(n - 1)] + ([[n - 1, 0]] if closed else [])
    length = np.linalg.norm(np.subtract(*x[np.transpose(pairs)]), axis=1) if relaxed else 1.0
    system.add_force(mp.forces.HarmonicBonds(pairs, stiffness, length))
    system.add_force(mp.forces.HarmonicTrap(beads, 0.05, [0.0, 0.0, 0.0]))
    return topology, system


def run(system, kick, dt, n, v=None, x=None, word="BAB", order=2, threads=1, seed=0, kT=None, runaway=20.0):
    integrator = mp.SplittingIntegrator(word, dt, kick=kick, order=order, seed=seed, kT=thermal(word, kT))
    context = mp.Context(system, integrator, threads=threads)
    context.runaway = runaway
    if x is not None:
        context.set_positions(x)
    if v is not None:
        context.set_velocities(v)
    context.step(n)
    state = context.get_state(positions=True, velocities=True)
    return state.positions.copy(), state.velocities.copy()


# The equations ---------------------------------------------------------------------------------------------------


def dense(context, beta, h, stiff=None, positive=False):
    """a, and the force of the symplectic kick, by NumPy."""
    state = context.get_state(positions=True, forces=True)
    mass = np.repeat(np.concatenate([handle.mass for handle in context.layout.topology.handles]), 3)
    H = context.hessian(stiff, positive=positive).toarray()
    a = np.linalg.solve(np.diag(mass) + beta * h * h * H, state.forces.ravel())
    if stiff is not None or positive:
        return a.reshape(-1, 3), None
    third = context.third_derivative(a.reshape(-1, 3))
    return a.reshape(-1, 3), (mass * a).reshape(-1, 3) - 0.5 * beta**2 * h**4 * third


def one_kick(system, kick, dt):
    """What B adds to velocities over dt/2, times 2/dt."""
    context = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
    # Only looked at.
    before = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    x = before.get_state(positions=True).positions
    context.step(1)
    return context, before, (context.get_state(positions=True).positions - x) * 2.0 / dt**2


# Stiff rules kick by the trap explicitly, at the longest timestep beyond its limit.
@pytest.mark.unstable
@pytest.mark.parametrize("dt", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("name", ["Zhang-Skeel", "simplified", "stiff", "one step"])
def test_one_kick_solves_its_equations(name, closed, dt):
    """From rest, the first flight is dt²/2 times the acceleration of the first kick."""
    topology, system = network(9, 40.0, closed=closed)
    _, before, acceleration = one_kick(system, RULES[name](0.3), dt)
    a, force = dense(before, 0.3, dt, ["HarmonicBonds"] if name == "stiff" else None)
    expected = force / topology.handles[0].mass[:, None] if name == "Zhang-Skeel" else a
    np.testing.assert_allclose(acceleration, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def bonds_only(k, r, length):
    """U'' and (U'/r) of bonds, as what is positive of them: k, and k (1 - ℓ/r)² if they are too long."""
    return k, k * np.maximum(0.0, 1.0 - length / r) ** 2


def penalties_only(omega, r, length):
    """The same of penalties ω²/2 (r² - ℓ²)²: the square of the derivative of r² - ℓ²; t²/U'' with t = U'/r if they
    are too long."""
    second, t = 2.0 * omega**2 * (3.0 * r * r - length**2), 2.0 * omega**2 * (r * r - length**2)
    return (2.0 * omega * r) ** 2, np.where(t > 0.0, t**2 / second, 0.0)


def assembled(x, pairs, along, across):
    """(3n, 3n) from numbers of pairs."""
    out = np.zeros((len(x), 3, len(x), 3))
    for (a, b), u, v in zip(pairs, along, across, strict=True):
        d = (x[b] - x[a]) / np.linalg.norm(x[b] - x[a])
        block = v * np.eye(3) + (u - v) * np.outer(d, d)
        for i, j, sign in ((a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)):
            out[i, :, j, :] += sign * block
    return out.reshape(3 * len(x), 3 * len(x))


# Stiff rules kick by the penalty explicitly, beyond its limit.
@heats
@pytest.mark.unstable
@pytest.mark.parametrize("wide", [24, 0])
@pytest.mark.parametrize("stiff", [None, ["HarmonicBonds"]])
def test_positive_stiffnesses(stiff, wide, monkeypatch):
    """(M + βh²K) a = f with a K that is written out here and has no negative eigenvalues, where V'' has; it is V'' at
    rest."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
    rng = np.random.default_rng(12)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (12, 3)), axis=0)
    beads = topology.add_beads(x, rng.uniform(0.5, 2.0, 12))
    system = mp.System(topology)
    pairs = np.array([[i, i + 1] for i in range(11)])
    r = np.linalg.norm(x[1:] - x[:-1], axis=1)
    k, length = rng.uniform(20.0, 40.0, 11), r * rng.uniform(0.3, 3.0, 11)
    bonds = system.add_force(mp.forces.HarmonicBonds(pairs, k, length))
    penalty = system.add_force(mp.forces.LinkLengthPenalty(pairs, 3.0, r[::-1]))
    system.add_force(mp.forces.HarmonicTrap(beads, 0.1, [0.0, 0.0, 0.0]))
    dt, beta = 0.5, 0.3
    positive = {"positive_definite": True}
    kick = ZhangSkeelSimplified(beta, **positive) if stiff is None else ZhangSkeelStiff(beta, stiff, **positive)
    _, before, ours = one_kick(system, kick, dt)

    def stiffness(length, lengths):
        out = assembled(x, pairs, *bonds_only(k, r, length))
        if stiff is None:
            out += assembled(x, pairs, *penalties_only(3.0, r, lengths)) + 0.1 * np.eye(36)
        return out

    assert np.linalg.eigvalsh(stiffness(length, r[::-1])).min() > -1e-9
    assert np.linalg.eigvalsh(before.hessian(stiff).toarray()).min() < -1.0
    force = before.get_state(forces=True).forces.ravel()
    matrix = np.diag(np.repeat(beads.mass, 3)) + beta * dt**2 * stiffness(length, r[::-1])
    expected = np.linalg.solve(matrix, force).reshape(-1, 3)
    np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
    bonds.set(length=r)
    penalty.set(length=r)
    np.testing.assert_allclose(stiffness(r, r), before.hessian(stiff).toarray(), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kick", [
    ZhangSkeelSimplified(0.25, positive_definite=True),
    ZhangSkeelStiff(0.25, ["HarmonicBonds"], positive_definite=True),
    PushForwardNewmark(0.25),
], ids=lambda kick: type(kick).__name__)  # fmt: skip
def test_noise_at_ten_times_the_explicit_timestep(kick):
    """Chains whose links are thermally a thousandth longer or shorter, at ten times the explicit limit: with Hessians
    kicks lose such runs within some hundred steps. The temperature is right, of which 2 % would be seen, and so is the
    spread of links in x, of which 5 % would. False alarms 1e-6 each: chains are independent, times of one are not."""
    copies, n, stiffness, kT = 64, 50, 1e4, 0.01
    topology = mp.Topology()
    straight = np.arange(n)[:, None] * [1.0, 0, 0]
    chains = [topology.add_beads(straight, mass=1.0, friction=0.5) for _ in range(copies)]
    system = mp.System(topology)
    beads = np.array([chain.beads for chain in chains])
    links = np.stack([beads[:, :-1], beads[:, 1:]], axis=-1).reshape(-1, 2)
    system.add_force(mp.forces.HarmonicBonds(links, stiffness, 1.0))
    h = 0.1
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", h, kT=kT, seed=3, kick=kick), threads=1)
    context.set_velocities_to_temperature(kT=kT, seed=4)
    context.step(200)
    temperature, spread = np.zeros((2, copies))
    looks = 80
    for _ in range(looks):
        context.step(10)
        state = context.get_state(positions=True, energy=True)
        temperature += np.array([state.temperatures[chain.name] for chain in chains]) / looks
        length = np.linalg.norm(np.diff(state.positions[beads], axis=1), axis=2)
        spread += np.mean((length - 1.0) ** 2, axis=1) / looks
    check_mean("temperature", temperature * mp.units.boltzmann, kT, sees=0.02 * kT)
    # Modes of the links have <q²> = kT/k (1 + β(ωh)²); the mean of ω² over them, however a chain is bent, is the
    # diagonal of their matrix: 2k/m.
    expected = kT / stiffness * (1.0 + 0.25 * 2.0 * stiffness * h * h)
    check_mean("<(r - 1)²>", spread, expected, sees=0.05 * expected)


@pytest.mark.parametrize("dt", [0.01, 0.3])
def test_newton_solves_the_nonlinear_equations(dt):
    topology, system = network(9, 40.0)
    _, _, acceleration = one_kick(system, PushForwardNewmark(0.3), dt)
    # Only looked at.
    there = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    x = there.get_state(positions=True).positions
    there.set_positions(x + 0.3 * dt**2 * acceleration)
    force = there.get_state(forces=True).forces
    np.testing.assert_allclose(topology.handles[0].mass[:, None] * acceleration, force, rtol=1e-9,
                               atol=1e-9 * np.abs(force).max())  # fmt: skip


@heats
def test_molecules_bands_and_conjugate_gradients_agree(monkeypatch):
    """Many molecules of different shapes, with numbers in no order; by NumPy; by bands; by conjugate gradients."""
    rng = np.random.default_rng(8)
    topology = mp.Topology()
    n = 120
    topology.add_beads(rng.normal(0.0, 3.0, (n, 3)), rng.uniform(0.5, 2.0, n))
    shuffled = rng.permutation(n)
    pairs = [(a, b) for a, b in itertools.pairwise(shuffled) if rng.random() < 0.8]
    pairs += [(a, b) for a, b in zip(shuffled, shuffled[3:], strict=False) if rng.random() < 0.3]
    system = system_with(topology, mp.forces.HarmonicBonds(np.array(pairs), rng.uniform(10.0, 50.0, len(pairs)), 1.0))
    kick = ZhangSkeelSimplified(0.25, positive_definite=True)
    _, before, ours = one_kick(system, kick, 1.0)
    a, _ = dense(before, 0.25, 1.0, positive=True)
    np.testing.assert_allclose(ours, a, rtol=1e-8, atol=1e-9 * np.abs(a).max())
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", 0)
    _, _, iterated = one_kick(system, kick, 1.0)
    np.testing.assert_allclose(iterated, a, rtol=1e-8, atol=1e-9 * np.abs(a).max())
    assert not np.array_equal(iterated, ours)


@pytest.mark.parametrize("wide", [24, 0])
@pytest.mark.parametrize("rule", [ZhangSkeel, ZhangSkeelSimplified])
@pytest.mark.parametrize("closed", [False, True])
def test_bent_chains(closed, rule, wide, monkeypatch):
    """Bending has blocks that are not symmetric, in three diagonals; several chains of different masses."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
    rng = np.random.default_rng(12)
    topology = mp.Topology()
    angle = 2.0 * np.pi * np.arange(7) / 7.0
    circle = np.column_stack([np.cos(angle), np.sin(angle), 0.3 * angle])
    system = mp.System(topology)
    for k in range(3):
        nodes = circle + rng.normal(0.0, 0.1, (7, 3)) + [5.0 * k, 0.0, 0.0]
        chain = topology.add_filament(nodes, rng.uniform(0.5, 2.0, 7), closed=closed, constrained=False)
        system.add_force(mp.forces.FilamentBending(chain, 3.0))
        system.add_force(mp.forces.FilamentStretching(chain, 50.0))
    # Conjugate gradients are for equations with a minimum.
    dt = 0.7 if wide else 0.15
    _, before, ours = one_kick(system, rule(0.3), dt)
    a, force = dense(before, 0.3, dt)
    mass = np.concatenate([handle.mass for handle in topology.handles])
    expected = a if rule is ZhangSkeelSimplified else force / mass[:, None]
    np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("word", "flight"), [("BAB", 1.0), ("ABA", 1.0), ("BABAB", 0.5), ("OBABO", 1.0)])
def test_time_between_kicks(word, flight):
    """It is not the timestep where a word kicks more often."""
    _, system = network(9, 40.0)
    integrator = mp.SplittingIntegrator(word, 0.8, kT=thermal(word, 1.0), kick=ZhangSkeelSimplified(0.3))
    context = mp.Context(system, integrator, threads=1)
    a, _ = dense(context, 0.3, 0.8 * flight)
    x = context.get_state(positions=True).positions
    np.testing.assert_allclose(context.physical_positions() - x, 0.3 * (0.8 * flight) ** 2 * a, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rule", [ZhangSkeel, ZhangSkeelSimplified, PushForwardNewmark])
def test_held_nodes_are_not_solved_for(rule):
    """A chain that is held in the middle: equations of the others alone, which are two molecules."""
    topology = mp.Topology()
    nodes = np.cumsum(np.random.default_rng(13).normal(0.0, 0.6, (7, 3)), axis=0)
    chain = topology.add_filament(nodes, 1.5, constrained=False, fixed_nodes=[3])
    system = system_with(topology, mp.forces.FilamentStretching(chain, 5.0))
    _, _, ours = one_kick(system, rule(0.3), 0.5)
    free = np.array([0, 1, 2, 4, 5, 6])
    assert (ours[3] == 0.0).all()
    rest = mp.Context(system, mp.SplittingIntegrator("BAB", 0.5), threads=1)
    if rule is PushForwardNewmark:
        rest.set_positions(nodes + 0.3 * 0.5**2 * ours)
        expected = rest.get_state(forces=True).forces / 1.5
    else:
        rows = (3 * free[:, None] + np.arange(3)).ravel()
        H = rest.hessian().toarray()[np.ix_(rows, rows)]
        force = rest.get_state(forces=True).forces[free].ravel()
        expected = np.zeros((7, 3))
        expected[free] = np.linalg.solve(1.5 * np.eye(18) + 0.3 * 0.5**2 * H, force).reshape(-1, 3)
        if rule is ZhangSkeel:
            expected -= 0.5 * 0.3**2 * 0.5**4 * rest.third_derivative(expected) / 1.5
    np.testing.assert_allclose(ours[free], expected[free], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("rule", [ZhangSkeel, ZhangSkeelSimplified])
@pytest.mark.parametrize("n", range(1, 9))
def test_chains_of_any_length(n, rule):
    """From both ends to the middle: beads of even and odd chains, also where equations of a bead are far from those of
    the next; other molecules before and after."""
    rng = np.random.default_rng(n)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 3.0, (n + 5, 3)), rng.uniform(0.5, 2.0, n + 5))
    pairs = [[0, 2], [2, 1], *([3 + i, 4 + i] for i in range(n - 1)), [n + 3, n + 4]]
    system = system_with(topology, mp.forces.HarmonicBonds(pairs, 10.0 ** rng.uniform(-2.0, 3.0, len(pairs)), 0.1),
                         mp.forces.HarmonicTrap(beads, 0.3, [0.0, 0.0, 0.0]))  # fmt: skip
    _, before, ours = one_kick(system, rule(0.3), 1.0)
    a, force = dense(before, 0.3, 1.0)
    expected = a if rule is ZhangSkeelSimplified else force / beads.mass[:, None]
    np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("size", [1.0, 0.1, 0.7, 1.3, 17.9])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_lost_pivots_are_told_wherever_they_are(at, wide, size):
    """Three pairs in a row, joined by bonds without stiffness; one pair is half as long as it wants to be, which makes
    M + βh²H across it [[s, s], [s, s]]: of some s a pivot is a rounding, not 0."""
    topology = mp.Topology()
    topology.add_beads(np.array([0.0, 0.7, 1.9, 2.6, 3.8, 4.5])[:, None] * [1.0, 0, 0], mass=2.0 * size)
    system = mp.System(topology)
    pairs = [[i, i + 1] for i in range(5)] + ([[i, i + 2] for i in range(4)] if wide else [])
    stiffness, length = np.zeros(len(pairs)), np.full(len(pairs), 0.7)
    stiffness[[0, 2, 4]], length[at] = size, 1.4
    system.add_force(mp.forces.HarmonicBonds(pairs, stiffness, length))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 2.0, kick=ZhangSkeelSimplified(0.25)))
    with pytest.raises(mp.SimulationError, match="no solution") as caught:
        context.step(1)
    assert caught.value.bead in (at, at + 1)


@heats
def test_pairs_that_come_within_reach_leave_the_band():
    """Beads that were apart when they were added and now repel each other: what no band holds is solved by conjugate
    gradients."""
    topology = mp.Topology()
    beads = topology.add_balls(np.arange(40.0)[:, None] * [5.0, 0, 0], 0.5, mass=1.0)
    system = system_with(topology, mp.forces.SoftSphere(beads, beads, 30.0, 1.0))
    x = np.random.default_rng(2).uniform(0.0, 2.5, (40, 3))
    kick = ZhangSkeelSimplified(0.25, positive_definite=True)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, kick=kick), threads=1)
    context.set_positions(x)
    a, _ = dense(context, 0.25, 1.0, positive=True)
    context.step(1)
    np.testing.assert_allclose(2.0 * (context.get_state(positions=True).positions - x), a, rtol=1e-8, atol=1e-8)


@heats
@pytest.mark.parametrize("wide", [24, 0])
def test_changes_of_forces_reach_the_equations(wide, monkeypatch):
    """Numbers that change between steps, also as seen by physical_positions alone."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
    _, system = network(9, 40.0)
    dt, kick = 0.5, ZhangSkeelSimplified(0.3, positive_definite=True)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
    first = context.physical_positions()
    system.forces[0].set(stiffness=3.0)
    x = context.get_state(positions=True).positions
    q = context.physical_positions()
    assert np.abs(q - first).max() > 0.01
    other = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
    a, _ = dense(other, 0.3, dt, positive=True)
    np.testing.assert_allclose(q, x + 0.3 * dt**2 * a, rtol=1e-9, atol=1e-9)
    context.step(3)
    other.step(3)
    assert np.array_equal(*(c.get_state(positions=True).positions for c in (context, other)))


def test_a_kick_after_new_positions_is_by_the_forces_there():
    """What was solved for elsewhere is not used again."""
    _, system = network(9, 40.0)
    dt = 0.5
    context = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=ZhangSkeel(0.3)), threads=1)
    context.step(2)
    x = np.random.default_rng(11).normal(0.0, 1.0, (9, 3))
    context.set_positions(x)
    context.set_velocities(np.zeros((9, 3)))
    a, _ = dense(context, 0.3, dt)
    np.testing.assert_allclose(context.physical_positions(), x + 0.3 * dt**2 * a, rtol=1e-9, atol=1e-9)
    state = context.get_state(positions=True, forces=True, physical_positions=True)
    assert np.array_equal(state.physical_positions, context.physical_positions())
    assert np.array_equal(state.positions, x)
    with pytest.raises(mp.ParameterError, match=r"this State holds no physical_positions: .*physical_positions=True"):
        _ = context.get_state().physical_positions
    other = mp.Context(system, mp.SplittingIntegrator("BAB", dt, kick=ZhangSkeel(0.3)), threads=1)
    other.set_positions(x)
    context.step(1)
    other.step(1)
    assert np.array_equal(*(c.get_state(positions=True).positions for c in (context, other)))


# The theorems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark", "one step"])
@pytest.mark.parametrize("beta", [0.25, 0.4])
def test_harmonic_modes_of_any_frequency_are_stable(rule, beta):
    """(Theorem 2.2) x_(k+1) - 2 x_k + x_(k-1) = -z x_k with z = (ωh)²/(1 + β(ωh)²) < 4: the mode turns by the angle
    acos(1 - z/2) in a step."""
    omega = np.array([0.1, 1.0, 2.5, 10.0, 1000.0])
    _, system = springs(1.0, 1.0 / omega**2)
    n = 2000
    x, _ = run(system, RULES[rule](beta), 1.0, n)
    z = omega**2 / (1.0 + beta * omega**2)
    np.testing.assert_allclose(x[:, 0], np.cos(n * np.arccos(1.0 - 0.5 * z)), atol=1e-6)


@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark", "one step", "classical"])
def test_smaller_beta_is_stable_up_to_the_limit_that_the_warning_tells(rule):
    """(Theorem 2.2) z < 4 where ωh < 2/sqrt(1 - 4β) = 3.1623 for β = 0.15."""
    beta, dt = 0.15, 0.5
    with pytest.warns(mp.TimestepWarning, match=r"beta = 0.15 .* frequency above 6.325 .* 0.5 s .* 'B A B'"):
        mp.SplittingIntegrator("BAB", dt, kick=RULES[rule](beta))
    omega = 2.0 / np.sqrt(1.0 - 4.0 * beta) / dt * np.array([0.99, 1.01])
    _, system = springs(1.0, 1.0 / omega**2)
    with pytest.warns(mp.TimestepWarning):
        x, _ = run(system, RULES[rule](beta), dt, 200, runaway=None)
    assert abs(x[0, 0]) < 100.0 < 1e6 < abs(x[1, 0])
    refuses(mp.ParameterError, r"beta = 0.0 but must be finite and > 0", RULES[rule], 0.0)


@pytest.mark.parametrize("word", ["BAB", "ABA", "BAOAB", "OBABO"])
def test_classical_newmark_is_the_push_forward_one_seen_in_places(word):
    """(13): x = q - βh² a(q) before, q = x + βh² a(x) afterwards; and a state tells q."""
    topology, system = network(9, 40.0, relaxed=True)
    beta, dt, kT = 0.3, 0.3, 0.01 if "O" in word else None
    q0, mass = topology.handles[0].positions, topology.handles[0].mass[:, None]
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    x0 = q0 - beta * dt**2 * plain.get_state(forces=True).forces / mass
    contexts = []
    for kick, start in ((Newmark(beta), q0), (PushForwardNewmark(beta), x0)):
        context = mp.Context(system, mp.SplittingIntegrator(word, dt, kick=kick, kT=kT, seed=4), threads=1)
        context.set_positions(start)
        np.testing.assert_allclose(context.physical_positions(), q0, rtol=1e-12, atol=1e-13)
        context.step(20)
        contexts.append(context)
    ours, other = contexts
    np.testing.assert_allclose(ours.physical_positions(), other.physical_positions(), rtol=1e-9, atol=1e-9)
    state, plainly = (c.get_state(positions=True, energy=True, forces=True) for c in (ours, plain))
    assert np.array_equal(state.positions, ours.physical_positions())
    plain.set_positions(state.positions)
    plainly = plain.get_state(energy=True, forces=True)
    assert plainly.potential_energy == state.potential_energy
    assert np.array_equal(plainly.forces, state.forces)


def test_classical_newmark_is_not_composed():
    with pytest.raises(mp.ParameterError, match="Newmark is of order 2, but order = 4: PushForwardNewmark"):
        mp.SplittingIntegrator("BAB", 0.1, kick=Newmark(), order=4)


@heats
@pytest.mark.parametrize(("rule", "order"), [*ORDERS, ("explicit", 2), ("explicit", 4)])
def test_order(rule, order):
    """Errors at a fixed time fall as dt^order, from a step at which nothing is stiff."""
    _, system = network()
    make = RULES.get(rule, lambda _: Explicit())
    v = np.random.default_rng(5).normal(0.0, 0.3, (6, 3))
    exact, _ = run(system, Explicit(), 2.0 / 4000, 4000, v, order=4)
    errors = [np.abs(run(system, make(0.3), 2.0 / n, n, v, order=order)[0] - exact).max() for n in (40, 80)]
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.06 if order == 2 else 0.12)
    assert errors[1] < 1e-2


@heats
@pytest.mark.parametrize(("rule", "order"), ORDERS)
def test_reversible(rule, order):
    """(Theorem 2.4) Back to the start after reversing velocities, at steps of 2 to 6 over the highest frequency."""
    _, system = network(stiffness=100.0, relaxed=True)
    v = np.random.default_rng(6).normal(0.0, 0.05, (6, 3))
    x0, dt = system.topology.handles[0].positions, 0.3 if order == 2 else 0.1
    there, w = run(system, RULES[rule](0.3), dt, 25, v, order=order)
    x, w = run(system, RULES[rule](0.3), dt, 25, -w, there, order=order)
    assert np.abs(there - x0).max() > 0.01
    assert np.abs(x - x0).max() < 1e-9
    assert np.abs(w + v).max() < 1e-9


def jacobian(system, kick, dt, x, v):
    """(6n, 6n) derivatives of positions and momenta after one step, by differences of order 4."""
    mass = np.repeat(system.topology.handles[0].mass, 3)
    n = len(mass)

    def step(z):
        x, v = run(system, kick, dt, 1, (z[n:] / mass).reshape(-1, 3), z[:n].reshape(-1, 3))
        return np.concatenate([x.ravel(), mass * v.ravel()])

    z, h = np.concatenate([x.ravel(), mass * v.ravel()]), 1e-4
    columns = []
    for k in range(2 * n):
        e = np.zeros(2 * n)
        e[k] = h
        columns.append((8.0 * (step(z + e) - step(z - e)) - (step(z + 2 * e) - step(z - 2 * e))) / (12.0 * h))
    return np.array(columns).T


@heats
@pytest.mark.parametrize(("rule", "symplectic"), [
    ("Zhang-Skeel", True), ("Newmark", True), ("positive gradient", True), ("simplified", False), ("one step", False),
    ("stiff", False), ("positive", False),
])  # fmt: skip
def test_symplectic(rule, symplectic):
    """(Theorem 2.5) The Jacobian of one step keeps the two-form to 1e-8; that of the simplified rules does not, at a
    step where what they leave out is seen (Theorem 2.1: V'' has other eigenvectors elsewhere)."""
    _, system = network(3, 5.0)
    x = system.topology.handles[0].positions
    v = np.random.default_rng(7).normal(0.0, 0.2, (3, 3))
    J = jacobian(system, RULES[rule](0.3), 0.5, x, v)
    n = len(J) // 2
    form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    broken = np.abs(J.T @ form @ J - form).max()
    assert broken < 1e-8 if symplectic else broken > 1e-4


def test_simplified_is_symplectic_with_one_degree_of_freedom():
    """(Remark 2.2) A bead bound along x to a fixed place by a bond that is not harmonic in x."""
    topology = mp.Topology()
    topology.add_beads([[1.7, 0.0, 0.0], [0.0, 0.0, 0.0]], [1.0, 1e12])
    system = system_with(topology, mp.forces.WCA([0], [1], epsilon=1.0, sigma=2.0))
    x = topology.handles[0].positions
    J = jacobian(system, ZhangSkeelSimplified(0.3), 0.2, x, np.zeros((2, 3)))
    sub = J[np.ix_([0, 6], [0, 6])]
    assert np.linalg.det(sub) == pytest.approx(1.0, abs=1e-7)


@heats
@pytest.mark.parametrize(("rule", "angular"), [
    ("Zhang-Skeel", True), ("Newmark", True), ("positive gradient", True), ("simplified", False), ("one step", False),
    ("stiff", False), ("positive", False),
])  # fmt: skip
def test_momentum_maps(rule, angular):
    """Noether: momentum and angular momentum to round-off by rules that come from a discrete action. The simplified
    ones keep momentum, but not angular momentum: in 50 steps beyond the explicit limit it changes by more than a
    hundredth; `test_torque_of_a_simplified_kick` says by how much."""
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    mass = rng.uniform(0.5, 2.0, 5)
    topology.add_beads(np.cumsum(rng.normal(0.0, 0.7, (5, 3)), axis=0), mass)
    system = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0))
    v = rng.normal(0.0, 0.2, (5, 3))
    before = mass @ v, mass @ np.cross(topology.handles[0].positions, v)
    x, w = run(system, RULES[rule](0.3), 0.3, 50, v)
    assert np.abs(mass @ w - before[0]).max() < 1e-12
    lost = np.abs(mass @ np.cross(x, w) - before[1]).max()
    share = lost / np.abs(before[1]).max()
    assert share < 1e-11 if angular else share > 0.01


@pytest.mark.parametrize(("name", "order"), [("simplified", 4), ("one step", 4), ("stiff", 2)])
def test_torque_of_a_simplified_kick(name, order):
    """A kick by Ma has the torque βh² Σ a_i × V₁'_i, with the forces of V₁ that are in the equations: from equations
    solved by NumPy here, to 1e-9. Between two timesteps, a half, it falls by 2⁴ where all of V is in them, and by 2²
    where a part is missing, to 5 %."""
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (5, 3)), axis=0)
    mass = rng.uniform(0.5, 2.0, 5)
    topology.add_beads(x, mass)
    system = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0),
                         mp.forces.HarmonicBonds([[i, i + 2] for i in range(3)], 5.0, 1.0, name="others"))  # fmt: skip
    torques = []
    for dt in (0.02, 0.01):
        _, before, acceleration = one_kick(system, RULES[name](0.3), dt)
        a, _ = dense(before, 0.3, dt, ["HarmonicBonds"] if name == "stiff" else None)
        gradient = -before.get_state(forces=True).forces
        if name == "stiff":
            alone = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0))
            plain = mp.Context(alone, mp.SplittingIntegrator("BAB", dt), threads=1)
            gradient = -plain.get_state(forces=True).forces
        expected = 0.3 * dt**2 * np.cross(a, gradient).sum(axis=0)
        torques.append(mass @ np.cross(x, acceleration))
        np.testing.assert_allclose(torques[-1], expected, rtol=1e-6, atol=1e-9 * mass.max())
        assert np.abs(torques[-1]).max() > 1e-6
    ratio = np.linalg.norm(torques[0]) / np.linalg.norm(torques[1])
    assert ratio == pytest.approx(2.0**order, rel=0.05)


def derivative(function, x, h=1e-4):
    """Of a number, in all components of x (n, 3), by differences of order 4."""
    out = np.empty_like(x)
    for k in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[k] = h
        out[k] = (8.0 * (function(x + e) - function(x - e)) - (function(x + 2 * e) - function(x - 2 * e))) / (12.0 * h)
    return out


def kick_is_a_gradient(system, x, mass, beta, dt):
    """Of W = V - βh²/2 V'·(M + βh²K)⁻¹V', whose V, V' and K are asked of a plain Context; to 1e-7 of the largest. A
    simplified kick is not."""
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)

    def w(places):
        plain.set_positions(places)
        state = plain.get_state(forces=True, energy=True)
        f = state.forces.ravel()
        matrix = np.diag(np.repeat(mass, 3)) + beta * dt**2 * plain.hessian(positive=True).toarray()
        return state.potential_energy - 0.5 * beta * dt**2 * f @ np.linalg.solve(matrix, f)

    _, _, acceleration = one_kick(system, ZhangSkeel(beta, positive_definite=True), dt)
    expected = -derivative(w, x)
    force = mass[:, None] * acceleration
    np.testing.assert_allclose(force, expected, atol=1e-7 * np.abs(expected).max())
    _, _, simplified = one_kick(system, ZhangSkeelSimplified(beta, positive_definite=True), dt)
    assert np.abs(mass[:, None] * simplified - expected).max() > 1e-3 * np.abs(expected).max()


@heats
@pytest.mark.parametrize("wide", [24, 0])
@pytest.mark.parametrize("beta", [0.25, 0.35])
def test_positive_definite_gradient(beta, wide, monkeypatch):
    """For all that has a stiffness of its own (bonds that are long and short and have no length, ropes, pairs that push
    and pull, penalties on links, triangles and frames) and what has none (angles, a field)."""
    monkeypatch.setattr("medyanpy.kicks._WIDEST_BAND", wide)
    rng = np.random.default_rng(21)
    topology = mp.Topology()
    x = np.cumsum(rng.normal(0.0, 0.7, (9, 3)), axis=0)
    beads = topology.add_beads(x, rng.uniform(0.5, 2.0, 9))
    system, forces = mp.System(topology), mp.forces
    r = np.linalg.norm(x[1:] - x[:-1], axis=1)
    system.add_force(forces.HarmonicBonds([[i, i + 1] for i in range(8)], 30.0, r * np.tile([0.6, 1.4, 0.0, 1.1], 2)))
    system.add_force(forces.Links([0, 3], [4, 8], 7.0, 0.3, one_sided=True))
    system.add_force(forces.LinkLengthPenalty([[0, 2], [5, 7]], 2.0, [0.7, 2.0]))
    system.add_force(forces.RigidTrianglePenalty([[1, 3, 6]], 1.5, [1.0, 1.3, 1.1]))
    system.add_force(forces.OrthonormalFramePenalty([[2, 4, 5]], 1.2, 0.9))
    system.add_force(forces.LennardJones([0, 1, 2], [6, 7, 8], 2.0, 1.3))
    system.add_force(forces.ExternalField(beads, "0.3*x^4 + cos(y)*z^2"))
    kick_is_a_gradient(system, x, beads.mass, beta, 0.4)


@heats
@pytest.mark.parametrize("form", ["vertex", "dihedral"])
def test_positive_definite_gradient_of_a_membrane(form):
    """Bent, stretched and under tension, with a border; by conjugate gradients, to their tolerance."""
    rng = np.random.default_rng(22)
    mesh = mp.TriangleMesh.flat_sheet(5, 5, 2.0)
    x = mesh.vertices + rng.normal(0.0, 0.25, mesh.vertices.shape)
    mesh = mesh.with_vertices(x)
    topology, forces = mp.Topology(), mp.forces
    sheet = topology.add_membrane(mesh, vertex_mass=rng.uniform(0.5, 2.0, len(x)))
    system = system_with(topology, forces.MembraneBending(sheet, 20.0, 0.1, discretization=form),
                         forces.MembraneArea(sheet, 3.0, rng.uniform(1.5, 2.5, len(mesh.faces)), per_triangle=True),
                         forces.MembraneTension(sheet, 0.5))  # fmt: skip
    kick_is_a_gradient(system, x, sheet.mass, 0.35, 0.4)


def vesicle(friction=0.0, subdivisions=1):
    """A crooked vesicle with bending, total area, volume, an osmotic pressure and a tension; and its places."""
    rng = np.random.default_rng(23)
    mesh = mp.TriangleMesh.icosphere(3.0, subdivisions)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.1, mesh.vertices.shape))
    topology, forces = mp.Topology(), mp.forces
    masses = rng.uniform(0.5, 2.0, len(mesh.vertices))
    membrane = topology.add_membrane(mesh, vertex_mass=masses, vertex_friction=friction)
    system = system_with(topology, forces.MembraneBending(membrane, 20.0),
                         forces.MembraneArea(membrane, 300.0, 0.95 * mesh.area),
                         forces.MembraneVolume(membrane, 200.0, 1.03 * mesh.volume),
                         forces.MembraneOsmoticPressure(membrane, 40.0, 0.4, kT=1.0),
                         forces.MembraneTension(membrane, 0.5))  # fmt: skip
    return system, mesh.vertices


@heats
def test_positive_definite_gradient_of_a_vesicle():
    """With parts of the stiffness that couple all vertices."""
    system, x = vesicle()
    kick_is_a_gradient(system, x, system.topology.membranes[0].mass, 0.35, 0.1)


@heats
@pytest.mark.parametrize("positive", [False, True])
def test_kicks_of_a_vesicle_solve_with_its_whole_hessian(positive):
    """Against the full matrix, to their tolerance; that of bending and tension alone is off by more than 5 %."""
    system, _ = vesicle(subdivisions=2)
    dt = 0.1 if positive else 0.03
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    force = plain.get_state(forces=True).forces.ravel()
    mass = np.repeat(system.topology.membranes[0].mass, 3)
    scale = 0.3 * dt**2
    kick = ZhangSkeelSimplified(0.3, positive_definite=positive, tolerance=1e-9)
    _, _, acceleration = one_kick(system, kick, dt)

    def missed(matrix):
        expected = np.linalg.solve(np.diag(mass) + scale * matrix.toarray(), force).reshape(-1, 3)
        return np.abs(acceleration - expected).max() / np.abs(expected).max()

    assert missed(plain.hessian(positive=positive)) < 1e-8
    local = [name for name in system.force_names if name.startswith(("MembraneBending", "MembraneTension"))]
    assert missed(plain.hessian(local, positive=positive)) > 0.05


@pytest.mark.unstable
@heats
@pytest.mark.parametrize("kick", [ZhangSkeel(0.3, positive_definite=True), PushForwardNewmark(0.3)], ids=str)
def test_a_vesicle_with_area_and_volume_runs_back_where_explicit_kicks_lose_it(kick):
    """Timestep 0.1; 100 steps and back to 1e-11. The error of the energy is of second order."""
    def context_of(dt, kick):
        context = mp.Context(vesicle()[0], mp.SplittingIntegrator("BAB", dt, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.3, seed=2)
        return context

    def energy(context):
        state = context.get_state(energy=True)
        return state.kinetic_energy + state.potential_energy

    with pytest.raises(mp.SimulationError):
        context_of(0.1, None).step(100)
    context = context_of(0.1, kick)
    x = context.get_state(positions=True).positions
    context.step(100)
    context.set_velocities(-context.get_state(velocities=True).velocities)
    context.step(100)
    assert np.abs(context.get_state(positions=True).positions - x).max() < 1e-11
    errors = []
    for dt in (0.01, 0.02):
        context = context_of(dt, kick)
        before = energy(context)
        context.step(round(1.0 / dt))
        errors.append(energy(context) - before)
    assert 3.0 < errors[1] / errors[0] < 5.0


def coil(n, friction=0.0, stiffness=1e4, seed=1):
    """Beads of mass 1 whose links of length 1 point anywhere; explicit kicks are stable up to a timestep of 0.01."""
    steps = np.random.default_rng(seed).normal(size=(n, 3))
    topology = mp.Topology()
    beads = topology.add_beads(np.cumsum(steps / np.linalg.norm(steps, axis=1)[:, None], axis=0), 1.0, friction)
    system = mp.System(topology)
    links = np.column_stack([beads.beads[:-1], beads.beads[1:]])
    system.add_force(mp.forces.HarmonicBonds(links, stiffness, 1.0))
    return system


@heats
def test_the_positive_definite_gradient_keeps_energy_where_others_lose_it():
    """A coil of 60 hot beads at ten times the explicit timestep, without friction, 6000 steps: kinetic energy over
    that of the start, by quarters of the run. Links take some of it; with a gradient it stays there, within 3 %."""
    def kinetic(kick):
        context = mp.Context(coil(60), mp.SplittingIntegrator("BAB", 0.1, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.01, seed=2)
        energies = [context.get_state(energy=True).kinetic_energy]
        for _ in range(200):
            context.step(30)
            energies.append(context.get_state(energy=True).kinetic_energy)
        return np.mean(np.reshape(energies[1:], (4, 50)), axis=1) / energies[0]

    for kick in (ZhangSkeel(0.35, positive_definite=True), PushForwardNewmark(0.35)):
        gradient = kinetic(kick)
        print(gradient)
        assert gradient.max() < 1.03 * gradient.min()
        assert 0.7 < gradient[-1] < 1.0
    other = kinetic(ZhangSkeelSimplified(0.35, positive_definite=True))
    print(other)
    assert other[-1] > 1.15 * other[0] > 1.03 * gradient[-1]


@pytest.mark.parametrize("positive_definite", [False, True])
def test_stiff_modes_do_not_resonate_from_a_third_on(positive_definite):
    """Three modes that turn by 2π/3 in a step excite each other: below β = 1/3 that is a frequency which a coil at
    five times the explicit timestep has, and no harmonic theory tells that it is lost. At 0.35 its kinetic energy
    stays; NVE, kT = 0.001 at the start, 4000 steps."""
    def kinetic(beta):
        kick = ZhangSkeel(beta, positive_definite=positive_definite)
        context = mp.Context(coil(60), mp.SplittingIntegrator("BAB", 0.05, kick=kick), threads=1)
        context.set_velocities_to_temperature(kT=0.001 if not positive_definite else 0.1, seed=2)
        before = context.get_state(energy=True).kinetic_energy
        for _ in range(40):
            context.step(100)
            now = context.get_state(energy=True).kinetic_energy / before
            if not now < 10.0:
                return np.inf
        return now

    assert 0.6 < kinetic(0.35) < 1.0
    try:
        assert kinetic(0.3) == np.inf
    except mp.SimulationError:
        pass


@pytest.mark.frictionless
@pytest.mark.parametrize(("word", "friction", "says"), [
    ("BAB", 1.0, "the word 'B A B' has no O"),
    ("BAOAB", 0.0, "friction * timestep / mass = 0 of 'beads' is below 0.001"),
    ("BAOAB", 0.015, "friction * timestep / mass = 0.00075 of 'beads' is below 0.001"),
    ("BAOAB", 0.021, None),
])  # fmt: skip
def test_warning_of_kicks_that_heat(word, friction, says):
    """Where nothing takes out the heat of a kick that is not a gradient, a Context says so; once."""
    kT = 0.1 if "O" in word else None
    for kick in (ZhangSkeelSimplified(0.3, True), ZhangSkeelStiff(0.3, ["HarmonicBonds"], True)):
        integrator = mp.SplittingIntegrator(word, 0.05, kick=kick, kT=kT)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            system = coil(5, friction)
            context = mp.Context(system, integrator, threads=1)
            system.forces[0].set(stiffness=3.0)
            context.step(2)
        told = [str(w.message) for w in caught if issubclass(w.category, mp.TimestepWarning)]
        if says is None:
            assert not told
        else:
            assert len(told) == 1
            assert f"{type(kick).__name__}(positive_definite=True) is not the gradient of a potential" in told[0]
            assert says in told[0]
    for kick in (ZhangSkeel(0.3, True), ZhangSkeelSimplified(0.3), PushForwardNewmark(0.3)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", mp.TimestepWarning)
            mp.Context(coil(5, friction), mp.SplittingIntegrator(word, 0.05, kick=kick, kT=kT), threads=1)


@pytest.mark.parametrize(("dt", "kT", "warns"),
                         [(0.05, 0.1, False), (0.06, 0.1, True), (0.2, 0.007, False), (0.2, 0.01, True)])  # fmt: skip
def test_warning_where_heat_moves_stiff_links_too_far(dt, kT, warns):
    """√(βh²kT/m) against a hundredth of the length, beyond which `ZhangSkeel` loses runs and the others do not."""
    kicks = [ZhangSkeel(0.35, True), ZhangSkeelSimplified(0.35, True), PushForwardNewmark(0.35), Explicit()]
    for kick in kicks:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            integrator = mp.SplittingIntegrator("BAOAB", dt, kT=kT, seed=3, kick=kick)
            mp.Context(coil(60, friction=0.2), integrator, threads=1)
        told = [str(w.message) for w in caught if "ZhangSkeel: √(βh²kT/m)" in str(w.message)]
        assert len(told) == (warns and kick is kicks[0])
        for text in told:
            assert re.search(r"beads \d+ and \d+, which 'HarmonicBonds' joins", text)
            longest = float(re.search(r"timestep below ([\d.e-]+) s", text)[1])
            assert longest == pytest.approx(0.01 / np.sqrt(0.35 * kT), rel=0.01)
    # Of soft links the method changes little, and none has a length in a word without temperature.
    with warnings.catch_warnings():
        warnings.simplefilter("error", mp.TimestepWarning)
        soft = coil(60, friction=0.2, stiffness=1.0)
        mp.Context(soft, mp.SplittingIntegrator("BAOAB", dt, kT=kT, kick=kicks[0]), threads=1)
        mp.Context(coil(60), mp.SplittingIntegrator("BAB", dt, kick=kicks[0]), threads=1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["Zhang-Skeel", "simplified", "Newmark"])
def test_stationary_laws(rule):
    """⟨x²⟩ = (kT/k)(1 + β(ωh)²) and ⟨q²⟩ = (kT/k)/(1 + β(ωh)²) under BAOAB, of a stiff mode and a slow one.

    BAOAB samples the harmonic mode of the effective stiffness k/(1 + β(ωh)²) exactly. 400 independent beads, each
    of which counts with its mean over 200 times: deviations of 3 % would be seen; false alarms 1e-6 each."""
    k, beta, h = 1.0, 0.3, 1.0
    for omega in (0.3, 5.0):
        n = 400
        topology = mp.Topology()
        beads = topology.add_beads(np.zeros((n, 3)), 1.0 / omega**2, 1.0 / omega)
        system = system_with(topology, mp.forces.HarmonicTrap(beads, k, [0.0, 0.0, 0.0]))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", h, kT=2.0, seed=4, kick=RULES[rule](beta)),
                             threads=1)  # fmt: skip
        context.step(200)
        x2, q2 = np.zeros((2, n))
        for _ in range(200):
            context.step(40)
            x2 += np.mean(context.get_state(positions=True).positions ** 2, axis=1) / 200
            q2 += np.mean(context.physical_positions() ** 2, axis=1) / 200
        for name, square, kT in (("x", x2, 2.0 * (1.0 + beta * (omega * h) ** 2)),
                                 ("q", q2, 2.0 / (1.0 + beta * (omega * h) ** 2))):  # fmt: skip
            check_mean(f"<{name}²>, ω = {omega}", square, kT / k, sees=0.03 * kT / k)


def expectation(density, observable, to):
    """By quadrature over (-to, to)."""
    x = np.linspace(-to, to, 20001)
    p = np.exp(-density(x))
    return (p * observable(x)).sum() / p.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "h", "a", "b", "contrast"), [
    ("Newmark", 0.4, 2.0, 2.0, 0.1), ("Newmark", 0.2, 50.0, 1000.0, 0.3), ("Zhang-Skeel", 0.15, 2.0, 2.0, 0.03),
])  # fmt: skip
def test_stationary_laws_of_anharmonic_wells(rule, h, a, b, contrast):
    """V = a x² + b x⁴ under BAOAB. Of push-forward Newmark q has the density exp(-[V + βh²V'²/2m]/kT)(1 + βh²V''/m),
    and x of Zhang and Skeel's exp(-W/kT) with W = V - βh²V'²/2(m + βh²V''): means of the square of 3000 independent
    beads, 40 times each (false alarm 1e-6; standard error below 1 % of the mean, so 8 % would be found surely), up to
    the error of BAOAB itself in wells that are not harmonic, for which 4 % are allowed. The law without what the kick
    does is farther away than that: by `contrast`."""
    beta, n = 0.3, 3000
    s = beta * h * h
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), 1.0, 1.0)
    system = system_with(topology, mp.forces.ExternalField(beads, "a*x^2 + b*x^4", a=a, b=b))
    integrator = mp.SplittingIntegrator("BAOAB", h, kT=1.0, seed=4, kick=RULES[rule](beta))
    context = mp.Context(system, integrator, threads=1)
    context.step(60)
    squares = []
    for _ in range(40):
        context.step(8)
        state = context.get_state(positions=True, physical_positions=True)
        x = state.positions if rule == "Zhang-Skeel" else state.physical_positions
        squares.append(x[:, 0] ** 2)

    def v(x):
        return a * x**2 + b * x**4

    def v1(x):
        return 2.0 * a * x + 4.0 * b * x**3

    def v2(x):
        return 2.0 * a + 12.0 * b * x**2

    laws = {
        "Newmark": lambda q: v(q) + 0.5 * s * v1(q) ** 2 - np.log(1.0 + s * v2(q)),
        "Zhang-Skeel": lambda x: v(x) - 0.5 * s * v1(x) ** 2 / (1.0 + s * v2(x)),
    }
    law = expectation(laws[rule], np.square, 3.0 if rule == "Newmark" else 2.0)
    plain = expectation(v, np.square, 3.0)
    # Beads are independent, looks at one of them are not.
    each = np.mean(squares, axis=0)
    error = each.std(ddof=1) / np.sqrt(n)
    print(rule, h, each.mean() / law, error / law, plain / law)
    assert error < 0.01 * law
    assert abs(each.mean() - law) < 4.9 * error + 0.04 * law
    assert abs(plain / law - 1.0) > contrast


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Newmark", "explicit"])
def test_slow_modes(name):
    """The angle of trimers with stiff links and a light middle, a slow mode. With explicit kicks at a tenth of the
    timestep cos² has the mean 1/3, as of free angles between springs. Newmark's at five times the explicit limit
    hold links by masses over βh² rather than by their stiffness: the weight sqrt(det(1 + βh²k J M⁻¹Jᵀ)) of the stiff
    modes comes in, and the mean is 0.296, by quadrature. 600 trimers, whose mean over 16 looks is one sample each: the
    standard error is below 0.0035, so that the two laws are 10 of them apart, and a false alarm has the rate 1e-6."""
    n, k, beta, h = 600, 1e4, 0.35, 0.03
    kick, timestep = (None, 0.1 * h) if name == "explicit" else (RULES[name](beta), h)
    directions = np.random.default_rng(3).normal(size=(n, 2, 3))
    directions /= np.linalg.norm(directions, axis=2)[:, :, None]
    x = np.stack([directions[:, 0], np.zeros((n, 3)), directions[:, 1]], axis=1)
    topology = mp.Topology()
    mass = np.tile([1.0, 0.2, 1.0], n)
    beads = topology.add_beads(x.reshape(-1, 3), mass, mass).beads.reshape(n, 3)
    system = system_with(topology, mp.forces.HarmonicBonds(np.concatenate([beads[:, :2], beads[:, 1:]]), k, 1.0))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", timestep, kT=1.0, seed=5, kick=kick), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=6)
    looks = []
    for _ in range(20):
        context.step(round(0.75 / timestep))
        q = context.get_state(physical_positions=True).physical_positions.reshape(n, 3, 3)
        u, w = q[:, 0] - q[:, 1], q[:, 2] - q[:, 1]
        looks.append((u * w).sum(axis=1) ** 2 / ((u * u).sum(axis=1) * (w * w).sum(axis=1)))
    each = np.mean(looks[4:], axis=0)
    c = np.linspace(-1.0, 1.0, 4001)
    b = 0.0 if name == "explicit" else beta * h * h * k
    weight = np.sqrt((1.0 + 6.0 * b) ** 2 - (5.0 * b * c) ** 2)
    law = (weight * c * c).sum() / weight.sum()
    print(name, law, each.mean(), each.std() / np.sqrt(n))
    check_mean("cos²", each, law, sees=0.028)


@pytest.mark.filterwarnings("ignore:ZhangSkeel. √:medyanpy.errors.TimestepWarning")
def test_bits():
    """The same on any number of threads, through a checkpoint, and however steps are cut."""
    _, system = network(7, 60.0)
    v = np.random.default_rng(6).normal(0.0, 0.1, (7, 3))
    # Some rules are beyond their condition here: bits are compared all the same.
    for rule in RULES:
        one = run(system, RULES[rule](0.3), 0.4, 30, v, word="BAOAB", kT=0.1, seed=5, runaway=None)
        for threads in (2, 3):
            again = run(system, RULES[rule](0.3), 0.4, 30, v, word="BAOAB", kT=0.1, seed=5, threads=threads,
                        runaway=None)  # fmt: skip
            assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.4, kT=0.1, seed=5, kick=RULES[rule](0.3)),
                             threads=1)  # fmt: skip
        context.runaway = None
        context.set_velocities(v)
        context.step(11)
        context.get_state(forces=True, energy=True)
        context.physical_positions()
        middle = context.get_state(positions=True, velocities=True)
        context.step(19)
        assert np.array_equal(context.get_state(positions=True).positions, one[0])
        other = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.4, kT=0.1, seed=5, kick=RULES[rule](0.3)),
                           threads=2)  # fmt: skip
        other.runaway = None
        other.set_state(middle)
        other.step(19)
        assert np.array_equal(other.get_state(positions=True).positions, one[0])


# What is refused -------------------------------------------------------------------------------------------------


def test_refusals():
    _, system = network()
    with pytest.raises(mp.ParameterError, match=r"kick must be one of medyanpy\.kicks, not 'coarse'"):
        mp.SplittingIntegrator("BAB", 1.0, kick="coarse")
    with pytest.raises(mp.ParameterError, match="must kick by all forces: B, not B0, B1 or D"):
        mp.SplittingIntegrator("B1 B0 A B0 B1", 1.0, kick=ZhangSkeel())
    refuses(mp.ParameterError, "must be equally far apart", mp.SplittingIntegrator, "BABAABAB", 1.0, kick=ZhangSkeel())
    refuses(mp.ParameterError, "order = 3 but must be 2, 4, 6 or 8", mp.SplittingIntegrator, "BAB", 1.0, order=3)
    with pytest.raises(mp.ParameterError, match=r"has O inside. Put it outside, 'O B A A B O'"):
        mp.SplittingIntegrator("BAOAB", 1.0, kT=1.0, order=4)
    with pytest.raises(mp.ParameterError, match="is not a palindrome without D"):
        mp.SplittingIntegrator("AB", 1.0, symmetric=False, order=4)
    refuses(mp.ParameterError, r'solver must be "newton" or "one-step"', PushForwardNewmark, 0.3, "euler")
    refuses(mp.ParameterError, "stiff must be names of forces", ZhangSkeelStiff, 0.3)
    with pytest.raises(mp.ParameterError, match="there is no force 'bonds'; there are HarmonicBonds, HarmonicTrap"):
        mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "bonds")))
    topology = mp.Topology()
    topology.add_filament([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]], node_mass=1.0)
    beads = topology.add_beads([[0.0, 0, 1.0]], mass=1.0)
    mixed = system_with(topology, mp.forces.HarmonicBonds([[0, 3]], 1.0, 1.0, name="across"),
                        mp.forces.HarmonicTrap(beads, 1.0, [0.0, 0.0, 0.0]))  # fmt: skip
    with pytest.raises(mp.ParameterError, match="ZhangSkeel kicks plain beads, and Filaments"):
        mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeel()))
    with pytest.raises(mp.ParameterError, match=r"the stiff force 'across' acts on Filaments.* which are not plain"):
        mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "across")))
    mp.Context(mixed, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelStiff(0.3, "HarmonicTrap")))


ICOSPHERE = mp.TriangleMesh.icosphere(3.0, 1)


def carrier(topology):
    """A membrane that moves and carries points: the points would have to be kicked with it."""
    membrane = topology.add_membrane(ICOSPHERE, vertex_mass=1.0, vertex_friction=0.2)
    topology.add_intriangle_points(membrane, 12, mass=0.5, friction=0.2, seed=5)
    return membrane


# Every kind of bead that is not plain: what adds some of it to a topology and returns its handle.
OTHERS = {
    "membrane with points": carrier,
    "points of a fixed membrane": lambda topology: topology.add_intriangle_points(
        topology.add_membrane(ICOSPHERE, vertex_mass=1.0, fixed=True), 9, mass=0.5, friction=0.2, seed=6
    ),
    "beads on a surface": lambda topology: topology.add_surface_points(
        mp.surfaces.Torus(5.0, 2.0), mp.surfaces.Torus(5.0, 2.0).sample(8, 3), 1.0, 0.3
    ),
    "constrained filament": lambda topology: topology.add_filament(
        [[0.0, 0, 9.0], [1.0, 0, 9.0], [1.5, 0.8, 9.0], [2.0, 0.8, 9.9]], node_mass=1.0, node_friction=0.4
    ),
    "twistable filament": lambda topology: topology.add_filament(
        [[0.0, 9.0, 0.0], [1.0, 9.0, 0.0], [1.5, 9.8, 0.0]], node_mass=1.0, node_friction=0.4, directors="parallel",
        director_mass=0.5, director_friction=0.1,
    ),
    "rigid bodies": lambda topology: topology.add_rigid_bodies(
        [[9.0, 0.0, 0.0], [9.0, 3.0, 0.0]], [[1.0, 0, 0, 0], [0.6, 0.8, 0, 0]], 2.0, (1.0, 1.5, 2.0), np.eye(6)
    ),
    "rod": lambda topology: topology.add_rod(
        [[-9.0, 0.0, 0.0], [-9.0, 0.0, 1.0], [-9.0, 0.0, 2.0]], [[1.0, 0, 0, 0]] * 3, 1.0, 1.0, (0.1, 0.1, 0.2), 0.3,
        rotational_friction=0.1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_each_kind_that_is_not_plain_is_refused(kind):
    """By rules that treat all beads alike, and by ZhangSkeelStiff where the stiff force acts on it; the message names
    that kind, also where a plain one comes first."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    other = OTHERS[kind](topology)
    system = mp.System(topology)
    trap = system.add_force(mp.forces.HarmonicTrap([int(other.beads[-1])], 1.0, [0.0, 0.0, 0.0]))
    word = "BAGAB" if topology.point_handles else "BAB"
    named = re.escape(repr(other))
    for rule in (ZhangSkeel(0.3), ZhangSkeelSimplified(0.3, positive_definite=True), PushForwardNewmark(0.3)):
        with pytest.raises(mp.ParameterError, match=f"kicks plain beads, and {named} are others"):
            mp.Context(system, mp.SplittingIntegrator(word, 0.01, kick=rule))
    with pytest.raises(mp.ParameterError, match=f"'{trap.name}' acts on {named}, which are not plain"):
        mp.Context(system, mp.SplittingIntegrator(word, 0.01, kick=ZhangSkeelStiff(0.3, trap.name)))


@pytest.mark.parametrize("word", ["BAGAB", "BAGOGAB"])
def test_other_kinds_beside_stiff_kicks_move_as_under_explicit_ones(word):
    """ZhangSkeelStiff with bonds of plain beads: every other kind, pulled and pushed by forces of its own, has the bits
    of a run with explicit kicks; the plain beads have not."""
    topology = mp.Topology()
    chain = topology.add_beads(np.arange(12.0)[:, None] * [1.0, 0.02, 0.0] - [0.0, 30.0, 0.0], 1.0, 0.4)
    others = [add(topology) for add in OTHERS.values()]
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(np.column_stack([chain.beads[:-1], chain.beads[1:]]), 50.0, 0.9))
    for i, handle in enumerate(topology.handles):
        system.add_force(mp.forces.HarmonicTrap(handle, 0.2 + 0.1 * i, [0.3, 0.1, 0.0], name=f"trap {i}"))
    states = []
    for kick in (ZhangSkeelStiff(0.3, ["HarmonicBonds"]), None):
        kT = 0.5 if "O" in word else None
        context = mp.Context(system, mp.SplittingIntegrator(word, 0.02, kick=kick, kT=kT, seed=8), threads=2)
        context.set_velocities_to_temperature(kT=0.5, seed=9)
        context.step(40)
        states.append(context.get_state(positions=True, velocities=True))
    implicit, explicit = states
    rest = mp.Context(system, mp.SplittingIntegrator(word, 0.02, kT=kT), threads=1).get_state(positions=True).positions
    for handle in others:
        assert np.abs(implicit.positions[handle.beads] - rest[handle.beads]).max() > 0.05
    mask = np.ones(topology.n_beads, bool)
    mask[chain.beads] = False
    assert np.array_equal(implicit.positions[mask], explicit.positions[mask])
    assert np.array_equal(implicit.velocities[mask], explicit.velocities[mask])
    assert np.array_equal(implicit.orientations, explicit.orientations)
    assert np.array_equal(implicit.angular_momenta, explicit.angular_momenta)
    assert np.abs(implicit.positions[~mask] - explicit.positions[~mask]).max() > 1e-6


def test_a_force_without_derivatives_is_named():
    _, system = network()
    system.add_force(mp.forces.PythonForce(lambda x: (0.0, np.zeros_like(x)), name="mine"))
    with pytest.raises(mp.ParameterError, match="ZhangSkeelSimplified: the force 'mine' offers no second derivatives"):
        mp.Context(system, mp.SplittingIntegrator("BAB", 1.0, kick=ZhangSkeelSimplified()))


def test_documents():
    """Integrators with kicks come back from documents."""
    for kick in (
        ZhangSkeel(0.3), ZhangSkeelStiff(0.4, ["a", "b"]), PushForwardNewmark(0.25, "one-step"),
        ZhangSkeelSimplified(0.3, positive_definite=True), ZhangSkeelStiff(0.4, ["a"], positive_definite=True),
        ZhangSkeel(0.3, positive_definite=True),
    ):  # fmt: skip
        integrator = mp.SplittingIntegrator("OBABO", 0.1, kT=1.0, kick=kick, order=4)
        again = mp.deserialize(mp.serialize(integrator))
        assert repr(again) == repr(integrator)
        assert again.kick.beta == kick.beta
        assert again.letters == integrator.letters
        assert getattr(again.kick, "positive_definite", None) == getattr(kick, "positive_definite", None)


def test_checkpoints_know_kick_and_order(tmp_path):
    """A checkpoint goes on with the same kick and order only; how explicit ones were asked for does not matter."""
    def make(**options):
        return mp.Simulation(network()[1], mp.SplittingIntegrator("BAB", 0.1, **options))

    make(kick=ZhangSkeelStiff(0.3, ["HarmonicBonds"])).save_checkpoint(tmp_path / "coarse")
    make().save_checkpoint(tmp_path / "plain")
    make(kick=ZhangSkeelStiff(0.3, ["HarmonicBonds"])).load_checkpoint(tmp_path / "coarse")
    make(kick=Explicit(), order=2).load_checkpoint(tmp_path / "plain")
    for file, options, what in [
        ("coarse", {}, "kick"),
        ("coarse", {"kick": ZhangSkeelStiff(0.4, ["HarmonicBonds"])}, "kick"),
        ("coarse", {"kick": ZhangSkeelStiff(0.3, ["HarmonicBonds", "HarmonicTrap"])}, "kick"),
        ("plain", {"order": 4}, "order: 2 in the file, 4 here"),
    ]:
        refuses(mp.ParameterError, what, make(**options).load_checkpoint, tmp_path / file)


def test_composition():
    """Yoshida's weights; O stays whole at the ends."""
    letters = mp.SplittingIntegrator("OBABO", 1.0, kT=1.0, order=4).letters
    assert "".join(letter.kind for letter in letters) == "OBABBABBABO"
    assert [letter.fraction for letter in letters[::10]] == [0.5, 0.5]
    w = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
    assert [letter.fraction for letter in letters if letter.kind == "A"] == pytest.approx([w, 1.0 - 2.0 * w, w])
    assert sum(letter.fraction for letter in letters if letter.kind == "B") == pytest.approx(1.0)
