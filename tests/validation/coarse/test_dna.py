"""The chain of angles of Tao and Owhadi, short: its potential, the kick, and that it opens."""

import sys
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import dna as script


def derivatives(theta):
    """U, U', U'' and U''' of a pair, without ε, by hand: E = exp(-a (1 - cos θ - x0))."""
    a, s, c = script.A, np.sin(theta), np.cos(theta)
    e0 = np.exp(-a * (1.0 - c - script.X0))
    e1 = -a * s * e0
    e2 = (a * a * s * s - a * c) * e0
    e3 = (-(a**3) * s**3 + 3.0 * a * a * s * c + a * s) * e0
    return (e0 - 1.0) ** 2, 2 * (e0 - 1) * e1, 2 * (e1**2 + (e0 - 1) * e2), 2 * (3 * e1 * e2 + (e0 - 1) * e3)


def ring(n):
    return 2.0 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0)


def zhang_skeel(theta, v, beta, h, n):
    """(3) of the paper with dense matrices."""
    k = ring(len(theta))

    def kick(x):
        _, u1, u2, u3 = derivatives(x)
        matrix = np.eye(len(x)) + beta * h * h * (k + np.diag(script.DEPTH * u2))
        a = np.linalg.solve(matrix, -(k @ x) - script.DEPTH * u1)
        return a - 0.5 * beta**2 * h**4 * script.DEPTH * u3 * a * a

    for _ in range(n):
        v = v + 0.5 * h * kick(theta)
        theta = theta + h * v
        v = v + 0.5 * h * kick(theta)
    return theta, v


def test_potential_and_derivatives_are_those_of_the_paper():
    theta, _ = script.start(3)
    theta[:5] = [0.0, np.pi, -2.0, 5.5, script.CLOSED]
    theta[10] = theta[11]  # neighbours at one angle: a spring of length zero
    context = script.chain(theta, np.zeros_like(theta), 0.1)
    u0, u1, u2, u3 = derivatives(theta)
    state = context.get_state(energy=True, forces=True)
    assert state.energies["pairing"] == pytest.approx(script.DEPTH * u0.sum(), rel=1e-12)
    assert state.energies["neighbours"] == pytest.approx(0.5 * np.sum((theta - np.roll(theta, 1)) ** 2), rel=1e-13)
    expected = -(ring(200) @ theta) - script.DEPTH * u1
    np.testing.assert_allclose(state.forces[:, 0], expected, rtol=0.0, atol=1e-14)
    assert (state.forces[:, 1:] == 0.0).all()
    hessian = context.hessian().toarray()
    np.testing.assert_allclose(hessian[::3, ::3], ring(200) + np.diag(script.DEPTH * u2), rtol=0.0, atol=1e-13)
    a = np.random.default_rng(1).normal(size=(200, 3)) * [1.0, 0.0, 0.0]
    third = context.third_derivative(a)
    # The springs have none.
    np.testing.assert_allclose(third[:, 0], script.DEPTH * u3 * a[:, 0] ** 2, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("h", [0.5, 2.0])
def test_the_path_is_that_of_an_independent_program(h):
    theta, v = script.start(0)
    context = script.chain(theta, v, h, mp.kicks.ZhangSkeel(0.3))
    context.step(40)
    state = context.get_state(positions=True, velocities=True)
    theta, v = zhang_skeel(theta, v, 0.3, h, 40)
    np.testing.assert_allclose(state.positions[:, 0], theta, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(state.velocities[:, 0], v, rtol=0.0, atol=1e-10)


@pytest.mark.unstable
def test_explicit_kicks_have_the_limit_of_the_chain():
    """2/√(4 + εU''): at rest 0.996. Above it a ripple grows, below it does not."""
    limit = 2.0 / np.sqrt(script.highest_stiffness(np.full(script.N, script.CLOSED)))
    assert limit == pytest.approx(2.0 / np.sqrt(4.0 + script.DEPTH * derivatives(script.CLOSED)[2]), rel=1e-12)
    ripple = script.CLOSED + 1e-8 * (-1.0) ** np.arange(script.N)
    sizes = []
    for h in (0.99 * limit, 1.01 * limit):
        context = script.chain(ripple, np.zeros(script.N), h)
        context.runaway = None
        context.step(60)
        sizes.append(np.abs(context.get_state(positions=True).positions[:, 0] - script.CLOSED).max())
    assert sizes[0] < 1e-7 < 1e-4 < sizes[1]


def test_the_modified_energy_is_kept_better_than_the_energy():
    """Both errors fall as h²; with the method's own potential it is less than half."""
    modified = []
    for h in (0.25, 0.125):
        context = script.chain(*script.start(1), h, mp.kicks.ZhangSkeel(0.3))
        seen = []
        for _ in range(round(40.0 / h)):
            seen.append(script.energies(context))
            context.step(1)
        plain, kept = np.std(seen, axis=0)
        assert kept < 0.5 * plain
        modified.append(kept)
    assert 3.4 < modified[0] / modified[1] < 4.2


def test_every_method_opens_the_strand():
    """Deterministic: the first opening is between 100 and 350 units of time after the start with every method."""
    for method in script.METHODS:
        r = script.run(method, 0, 400.0)
        when = r["t"][script.changes(r["mean"])]
        assert 100.0 < when[0] < 350.0, method


def test_changes_of_state_need_a_visit_to_the_other():
    low, high, between = script.CLOSED, 2.0 * np.pi - script.CLOSED, np.pi
    assert script.changes(np.array([low, between, low, between, high, high, between, low])).tolist() == [4, 7]
    assert script.changes(np.array([between, low, low, between])).tolist() == []
