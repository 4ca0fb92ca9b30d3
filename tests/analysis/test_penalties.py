"""Multipliers: of constraints, and of the penalties that stand for them."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.analysis import constraint_multipliers

NODES = np.array([[0.0, 0, 0], [1.0, 0.3, 0], [1.5, 1.1, 0.4], [2.4, 0.8, 0.9], [3.1, 1.4, 0.2]])
TRIPLES = [[5, 0, 3], [2, 8, 1]]
MASS = [1.0, 0.7, 1.6, 1.1, 0.9]


def pendulum(constrained, closed=False, omega=None, **filament):
    """Chain or ring of unequal masses that falls from rest; the first node of the chain is held."""
    topology = mp.Topology()
    held = {} if closed else {"fixed_nodes": [0]}
    chain = topology.add_filament(NODES, node_mass=MASS, constrained=constrained, closed=closed, **held, **filament)
    system = system_with(topology, mp.forces.UniformField(chain, np.outer(MASS, [0.1, 0.0, -1.0])))
    if closed:
        # So that it tumbles, not only falls.
        system.add_force(mp.forces.HarmonicTrap([0], 1.0, [0.0, 0.0, 0.0]))
    if omega is not None:
        system.add_force(mp.forces.LinkLengthPenalty(chain, omega))
    return chain, system


@pytest.mark.parametrize("closed", [False, True])
def test_filaments_tell_the_multipliers_of_their_links(closed):
    """M x'' = F - J^T λ, against accelerations by differences of velocities."""
    chain, system = pendulum(True, closed)
    h = 2e-4
    context = mp.Context(system, mp.SplittingIntegrator("BAB", h))
    context.step(10000)
    before = context.get_state(velocities=True).velocities
    context.step(1)
    state = context.get_state(positions=True, velocities=True, forces=True, multipliers=True)
    context.step(1)
    acceleration = (context.get_state(velocities=True).velocities - before) / (2.0 * h)
    multipliers = state.multipliers[chain.name]
    assert multipliers.shape == (len(chain.links),)
    force = state.forces.copy()
    for value, (a, b) in zip(multipliers, chain.links, strict=True):
        gradient = 2.0 * (state.positions[b] - state.positions[a])
        force[b] -= value * gradient
        force[a] += value * gradient
    moves = ~chain.kind.fixed_beads
    np.testing.assert_allclose((force / np.array(MASS)[:, None])[moves], acceleration[moves], atol=1e-6)
    assert np.abs(multipliers).min() > 1e-3


def test_multipliers_that_are_not_there():
    topology = mp.Topology()
    held = topology.add_filament(NODES, node_mass=1.0, fixed_nodes=[0, 4])
    assert held.kind.multipliers(NODES, 0.0 * NODES, 0.0 * NODES + 1.0).shape == (4,)
    taut = np.outer(np.arange(5), [0.3, 0.1, -0.7])
    with pytest.raises(mp.SimulationError, match="multipliers of its links are not determined") as caught:
        held.kind.multipliers(taut, 0.0 * taut, 0.0 * taut + 1.0)
    assert caught.value.object == held.name
    topology = mp.Topology()
    soft = topology.add_filament(NODES + 9.0, node_mass=1.0, constrained=False)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1))
    assert soft.name not in context.get_state(multipliers=True).multipliers
    assert not context.get_state(multipliers=True).multipliers


def penalties(rng):
    """A force of each kind with unequal numbers, and the beads' positions."""
    topology = mp.Topology()
    x = rng.normal(size=(9, 3))
    topology.add_beads(x, mass=1.0)
    return x, topology, [
        (mp.forces.LinkLengthPenalty([[0, 4], [4, 7], [8, 1]], [2.0, 3.0, 1.5], [1.0, 0.5, 2.0]), (3,)),
        (mp.forces.RigidTrianglePenalty(TRIPLES, [2.0, 3.0], [[1.0, 1.2, 0.9], [1.1, 1.0, 0.8]]), (2, 3)),
        (mp.forces.RigidTrianglePenalty(TRIPLES, 2.0, [1.0, 1.2, 0.9]), (2, 3)),
        (mp.forces.OrthonormalFramePenalty(TRIPLES, [2.0, 3.0], [1.0, 1.3]), (2, 3, 3)),
        (mp.forces.OrthonormalFramePenalty([[5, 0, 3]], 2.0), (1, 3, 3)),
    ]  # fmt: skip


def test_multipliers_of_penalties_are_those_of_their_forces():
    """-λ ∇g is the force of the penalty itself."""
    x, topology, forces = penalties(np.random.default_rng(3))
    for penalty, shape in forces:
        force = mp.Context(system_with(topology, penalty), mp.VerletIntegrator(0.1)).get_state(forces=True).forces
        values = penalty.multipliers(x)
        assert values.shape == shape
        expected = np.zeros_like(x)
        if isinstance(penalty, mp.forces.OrthonormalFramePenalty):
            for triple, value in zip(penalty.triples, values, strict=True):
                expected[triple] -= 2.0 * value @ x[triple]
        else:
            sides = [[(a, b), (b, c), (c, a)] for a, b, c in getattr(penalty, "triples", [])]
            pairs = penalty.pairs if not sides else [pair for three in sides for pair in three]
            for (a, b), value in zip(pairs, values.ravel(), strict=True):
                expected[b] -= 2.0 * value * (x[b] - x[a])
                expected[a] += 2.0 * value * (x[b] - x[a])
        np.testing.assert_allclose(force, expected, rtol=1e-12, atol=1e-12)
        frames = np.stack([x, 2.0 * x, 3.0 * x])
        means = constraint_multipliers(frames, penalty, window=2)
        np.testing.assert_allclose(means[1], 0.5 * (penalty.multipliers(2.0 * x) + penalty.multipliers(3.0 * x)))
        assert means.shape == (2, *shape)


@pytest.mark.parametrize(("kick", "steps"), [(None, 5), (mp.kicks.ZhangSkeel(0.3), 1)])
def test_means_go_to_the_multipliers_of_constraints(kick, steps):
    """(Theorem 1.2) For a cold start means of ω² g over many oscillations are those of the λ of the constrained motion;
    ω² g itself goes on swinging about it."""
    chain, system = pendulum(True)
    frame, n, window = 1e-3, 600, 101
    context = mp.Context(system, mp.SplittingIntegrator("BAB", frame))
    exact = []
    for _ in range(n):
        context.step(1)
        exact.append(context.get_state(multipliers=True).multipliers[chain.name])
    exact = np.array(exact)
    _, system = pendulum(False, omega=200.0)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", frame / steps, kick=kick))
    frames = []
    for _ in range(n):
        context.step(steps)
        frames.append(context.physical_positions())
    penalty = system.forces[-1]
    swing = np.abs(constraint_multipliers(frames, penalty) - exact).max()
    expected = np.lib.stride_tricks.sliding_window_view(exact, window, axis=0).mean(axis=-1)
    off = np.abs(constraint_multipliers(frames, penalty, window) - expected).max()
    assert off < 0.02 * np.abs(exact).max()
    assert swing > 5.0 * off


def test_bad_input():
    penalty = mp.forces.LinkLengthPenalty([[0, 4]], 2.0, 1.0)
    with pytest.raises(mp.ParameterError, match="window = 3 but there are 2 frames"):
        constraint_multipliers(np.zeros((2, 5, 3)), penalty, 3)
    with pytest.raises(mp.ParameterError, match="positions have 4 rows, but LinkLengthPenalty acts on bead 4"):
        constraint_multipliers(np.zeros((2, 4, 3)), penalty)
    with pytest.raises(mp.ParameterError, match="penalty must be one of the penalties"):
        constraint_multipliers(np.zeros((2, 4, 3)), mp.forces.HarmonicBonds([[0, 1]], 1.0, 1.0))
    refuses(mp.ParameterError, "window = 0", constraint_multipliers, np.zeros((2, 5, 3)), penalty, 0)
    refuses(mp.ParameterError, "positions", constraint_multipliers, np.zeros((5, 3)), penalty)
