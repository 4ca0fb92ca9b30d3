"""The magnetised body of Tao and Owhadi, short: the paper's formulas, the programs beside the package, its path."""

import sys
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import magnetised_body as script


def test_formulas_follow_from_the_action():
    """(37) does; f_k does with its transposes and its sign put right."""
    in_a, printed, right = script.formulas()
    assert np.abs(in_a).max() < 1e-8
    assert np.abs(right).max() < 1e-6
    assert np.abs(printed).max() > 1.0


@pytest.mark.parametrize("h", [0.02, 0.1])
def test_the_kick_is_that_of_the_paper(h):
    """One step of BA is p + h f_k, R + 2h p, with β twice ours, since the paper's a has the mass 1 and its R 1/2."""
    beta = 0.4
    context = script.body(mp.kicks.ZhangSkeel(beta / 2.0), h=h, word="BA")
    r = np.eye(3) + 0.05 * np.random.default_rng(2).normal(size=(3, 3))
    velocity = r @ script.hat(script.OMEGA_0)
    context.set_positions(r.T)
    context.set_velocities(velocity.T)
    context.step(1)
    _, _, f = script.printed_kick(r, beta, h)
    p = 0.5 * velocity + h * f
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(0.5 * state.velocities.T, p, rtol=0.0, atol=1e-13 * np.abs(p).max())
    np.testing.assert_allclose(state.positions.T, r + 2.0 * h * p, rtol=0.0, atol=1e-13)


def test_the_method_on_the_group_is_right_to_second_order():
    """As a leapfrog: no force acts at the start, so that Ω(0) is that of half a step before, too."""
    true = script.exact(np.array([0.0, 4.0]))[0][-1]
    errors = [np.linalg.norm(script.lie_group(h, round(4.0 / h))[0][-1] - true) for h in (0.04, 0.02, 0.01)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.01)
    assert script.off_orthogonal(script.lie_group(0.1, 100)[0]).max() < 1e-14


def test_exact_motion_keeps_energy_and_the_angular_momentum_about_the_field():
    times = np.linspace(0.0, 10.0, 21)
    r, w = script.exact(times)
    e = script.energy(r, r @ np.array([script.hat(a) for a in w]))
    np.testing.assert_allclose(e, 0.5 * script.OMEGA_0 @ script.OMEGA_0 + 1.0, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose((r @ w[:, :, None])[:, 2, 0], script.OMEGA_0[2], rtol=0.0, atol=1e-11)


def test_the_penalised_body_is_near_the_body():
    """As near as a body that ω = 10 holds can be, and no nearer."""
    times = script.H * np.arange(51)
    true, _ = script.exact(times)
    _, r, v, _ = script.package(mp.kicks.ZhangSkeel(0.25), 50)
    off = script.off_orthogonal(r).max()
    assert 5e-3 < off < 3e-2
    assert np.linalg.norm(r - true, axis=(1, 2)).max() < 0.15
    e = script.energy(r, v)
    assert np.abs(e - e[0]).max() < 0.12
    # The path is that of the body to second order in h, beside the penalty's part.
    _, softer, _, _ = script.package(mp.kicks.ZhangSkeel(0.25), 200, every=4, h=script.H / 4.0)
    _, limit, _, _ = script.package(mp.kicks.Explicit(), 5000, every=100, h=script.H / 100.0)
    coarse, fine = (np.linalg.norm(a[-1] - limit[-1]) for a in (r, softer))
    assert fine < 0.25 * coarse


def test_the_package_has_the_method_on_the_group():
    """(34) with (35) as a kick: the path of the independent program, and of its angular velocities, to rounding."""
    for h in (script.H, 0.02):
        r, w, _ = script.lie_group(h, 200)
        ours, rates = script.rigid_body(h, 200, word="BA", kick=mp.kicks.HamiltonPontryagin())
        np.testing.assert_allclose(ours, r, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rates, r @ np.array([script.hat(one) for one in w]), rtol=0, atol=1e-12)


def test_stiffness_limit_of_kicks():
    """Zhang and Skeel's third derivatives grow with the stiffness, and with them the kick; others stay bounded."""
    with pytest.raises(mp.SimulationError):
        script.body(mp.kicks.ZhangSkeel(0.3), omega=100.0).step(50)
    for kind in (mp.kicks.ZhangSkeelSimplified, mp.kicks.PushForwardNewmark):
        context = script.body(kind(0.3), omega=100.0)
        context.step(50)
        assert script.off_orthogonal(context.physical_positions().T[None])[0] < 1e-3
