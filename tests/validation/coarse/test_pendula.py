"""Pendula: the package against the paper's methods in plain NumPy, and what the paper says of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp

sys.path.insert(0, str(Path(__file__).parent))
import chain_of_pendula
import coarse_reference as reference
import double_pendulum
from pendula import BETA, Package

LENGTHS = np.array([1.0, np.sqrt(2.0)])
BOBS = double_pendulum.BOBS
START = double_pendulum.START


# The reference by itself -------------------------------------------------------------------------------------------


def test_derivatives_of_the_reference(rng):
    """By differences of order 4, which are exact of polynomials of degree 4."""
    potential = reference.Pendula(np.array([1.0, 1.4, 0.8])).penalised(5.0)
    q, a = rng.normal(0.0, 1.0, (2, 6))
    h = 1e-2

    def slope(f, direction):
        return (8.0 * (f(q + h * direction) - f(q - h * direction)) - f(q + 2 * h * direction)
                + f(q - 2 * h * direction)) / (12.0 * h)  # fmt: skip

    for e in np.eye(6):
        assert slope(potential.energy, e) == pytest.approx(potential.gradient(q) @ e, rel=1e-9, abs=1e-8)
        np.testing.assert_allclose(slope(potential.gradient, e), potential.hessian(q) @ e, rtol=1e-9, atol=1e-8)
    third = slope(lambda x: potential.hessian(x) @ a, a)
    np.testing.assert_allclose(third, potential.third(q, a), rtol=1e-9, atol=1e-8)


def test_lagrange_is_shake_in_the_limit():
    """The motion in angles, with (23), keeps its energy, and SHAKE's tends to it with the square of the timestep."""
    pendula = double_pendulum.PENDULA
    errors = []
    for h in (0.02, 0.01):
        times = h * np.arange(round(4.0 / h) + 1)
        q, v = pendula.exact(START[0], times)
        energy = 0.5 * np.sum(v**2, axis=1) - q @ pendula.gravity
        assert np.ptp(energy) < 1e-11
        errors.append(np.abs(reference.shake(pendula, *START, h, len(times) - 1)[0] - q).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] < 1e-4


# The package against it --------------------------------------------------------------------------------------------


def run_reference(pendula, method, start, h, steps, omega):
    potential, scale = pendula.penalised(omega), BETA * h * h
    if method == "SHAKE":
        return reference.shake(pendula, *start, h, steps)[0]
    if method == "variational Euler":
        return reference.variational_euler(potential, *start, h, steps)[0]
    if "Newmark" in method and "push" not in method:
        return reference.newmark(potential, *start, h, steps, BETA, "full" if method == "Newmark" else "linear")[0]
    kick = {
        "explicit": reference.explicit,
        "Zhang-Skeel": reference.zhang_skeel,
        "simplified": reference.simplified,
        "push-forward Newmark": reference.push_forward_newmark,
    }[method]
    x, v = start
    if method != "explicit":
        x = x + scale * potential.gradient(x)
    return reference.verlet(kick(potential, scale), x, v, h, steps)[2]


@pytest.mark.parametrize(("method", "h"), [
    ("SHAKE", 0.1), ("variational Euler", 0.005), ("explicit", 0.005), ("Zhang-Skeel", 0.1), ("simplified", 0.1),
    ("push-forward Newmark", 0.1), ("Newmark", 0.1), ("one-step Newmark", 0.1),
])  # fmt: skip
@pytest.mark.parametrize("chain", [False, True])
def test_same_path(chain, method, h):
    """Bobs move by more than 0.1, through 100 steps of the paper's; link lengths differ in the chain."""
    bobs = BOBS
    if chain:
        bobs = np.cumsum([[0.3, -1.0], [1.0, -0.4], [0.7, -0.7], [1.1, 0.2], [0.2, -0.9]], axis=0)
        h /= 2.0
    steps = max(100, round(2.0 / h))
    lengths = np.linalg.norm(np.diff(bobs, axis=0, prepend=[[0.0, 0.0]]), axis=1)
    start = bobs.ravel(), np.zeros(bobs.size)
    theirs = run_reference(reference.Pendula(lengths), method, start, h, steps, 20.0)
    ours = Package(bobs, method, h, 20.0).path(steps)
    assert np.abs(theirs[-1] - theirs[0]).max() > 0.1
    # SHAKE holds lengths to 1e-10, relative, in each step; all others differ by rounding.
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 if method == "SHAKE" else 1e-10)


def test_newmark_is_push_forward_newmark_where_beads_are():
    """(13): in q the same motion, though states are others."""
    one, other = (Package(BOBS, method, 0.1, 20.0) for method in ("Newmark", "push-forward Newmark"))
    np.testing.assert_allclose(one.path(100), other.path(100), rtol=0, atol=1e-10)
    assert np.abs(one.look(physical=False) - other.look(physical=False)).max() > 1e-3


# What the paper says -----------------------------------------------------------------------------------------------


def test_errors_of_figure_1():
    """Zhang-Skeel's are those of Newmark's method, one-step Newmark's are several times as large; SHAKE and variational
    Euler with short steps are better than both, as the penalty and the timestep err."""
    largest = {method: double_pendulum.errors(method, 250).max() for method in double_pendulum.METHODS}
    assert 0.8 < largest["Zhang-Skeel"] / largest["Newmark"] < 1.2
    assert largest["Newmark"] < 0.06
    assert largest["one-step Newmark"] > 5.0 * largest["Zhang-Skeel"]
    assert max(largest["SHAKE"], largest["variational Euler"]) < 0.4 * largest["Zhang-Skeel"]


def test_constraints_hold_to_omega_squared():
    """From a cold start |g| falls as ω^-2 where the beads are, from ω of 10 to 1000. In x it stops falling where
    (ωh)² is no longer small: there ω²|g| is a hundred times as large."""
    omegas = np.array([10.0, 50.0, 200.0, 1000.0])
    largest = np.array([double_pendulum.constraint_errors(omega, 8.0)[1] for omega in omegas])
    power = np.polyfit(np.log(omegas), np.log(largest[:, 0]), 1)[0]
    assert power == pytest.approx(-2.0, abs=0.1)
    assert omegas[-1] ** 2 * largest[-1, 1] > 50.0


def test_multipliers():
    """(8) with a window of 0.2 from a run of Zhang-Skeel, against the constrained motion: better with stiffer links,
    while ω²g itself never comes near; SHAKE's at the error of its path."""
    off = []
    for omega, h in ((20.0, 0.01), (200.0, 0.002)):
        when, mean, each = double_pendulum.averaged_multipliers(5.0, omega, h)
        truth = double_pendulum.exact_multipliers(when)
        size = np.sqrt(np.mean(truth**2))
        off.append(np.sqrt(np.mean((mean - truth) ** 2)) / size)
        assert np.sqrt(np.mean((each - truth) ** 2)) > 0.3 * size
    assert off[0] < 0.08
    assert off[1] < 0.02
    when, shaken = double_pendulum.shake_multipliers(5.0)
    np.testing.assert_allclose(shaken, double_pendulum.exact_multipliers(when), rtol=0, atol=1e-3)


def test_stiffest_links():
    """ω = 2000 at h = 0.1 ends Zhang-Skeel, as the paper says, and Newmark's method with β = 1/4, not with β = 0.4."""
    with pytest.raises(mp.SimulationError):
        Package(BOBS, "Zhang-Skeel", 0.1, 2000.0).context.step(500)
    assert double_pendulum.lost_at("Newmark", 2000.0, 50.0, 0.25) == "ends"
    assert double_pendulum.errors("Newmark", 250, omega=2000.0).max() < 0.1


# A chain of them (section 4.2, chain_of_pendula.py) ------------------------------------------------------------------


@pytest.mark.parametrize(("method", "bound", "ratio"), [("SHAKE", 3e-4, (3.9, 4.1)), ("Zhang-Skeel", 1e-2, (3.0, 5.0)),
                                                        ("Newmark", 1e-2, (3.0, 5.0))])  # fmt: skip
def test_a_chain_of_ten_moves_as_it_does_in_angles(method, bound, ratio):
    """To t = 5, in which bobs move by more than two links of 2.24. SHAKE's error falls as h²; that of penalties with
    short steps as 1/ω², about."""
    exact = chain_of_pendula.truth(10, 5)
    assert np.abs(exact[-1] - exact[0]).max() > 2.0 * chain_of_pendula.LINK
    cases = [(0.05, 20.0), (0.025, 20.0)] if method == "SHAKE" else [(0.01, 25.0), (0.01, 50.0)]
    errors = [np.abs(chain_of_pendula.swings(10, method, h, omega, 5) - exact).max() for h, omega in cases]
    assert errors[0] < bound
    assert ratio[0] < errors[0] / errors[1] < ratio[1]


def test_shake_on_a_long_chain_needs_short_steps(capsys):
    """Waves across the links at the top set the limit, 0.079 of 400 pendula: just below it the run is right, above it
    is lost, and says so."""
    n, looks = 400, 60
    limit = chain_of_pendula.longest_step(n)
    assert limit == pytest.approx(0.0791, rel=1e-3)
    apart = 0.95 * limit
    kept, true = (chain_of_pendula.swings(n, "SHAKE", h, 20.0, looks, apart) for h in (apart, 0.1 * apart))
    assert np.abs(true[-1] - true[0]).max() > chain_of_pendula.LINK
    assert np.abs(kept - true).max() < 0.005
    assert len(chain_of_pendula.swings(n, "SHAKE", 1.3 * limit, 20.0, looks, 1.3 * limit)) < looks
    assert "lost at t = " in capsys.readouterr().out
