"""Linearly implicit kicks: the equations that they solve."""

import itertools

import numpy as np
import pytest
from builders import system_with
from kicks.scenes import RULES, assembled, dense, heats, network, one_kick

import medyanpy as mp
from medyanpy.kicks import PushForwardNewmark, ZhangSkeel, ZhangSkeelSimplified, ZhangSkeelStiff
from medyanpy.testing import check_mean, thermal


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
