"""Sections of the double pendulum: programs against each other, and what the figure claims of curves and islands."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import poincare

END, APART = 60.0, 0.05


@pytest.fixture(scope="module")
def true():
    return poincare.reference(poincare.ORBITS, APART, round(END / APART))


def test_all_have_one_energy(true):
    np.testing.assert_allclose(poincare.energy(*poincare.start(poincare.ORBITS)), poincare.ENERGY, atol=1e-14)
    np.testing.assert_allclose(poincare.energy(true[0][-1], true[1][-1]), poincare.ENERGY, atol=1e-8)


@pytest.mark.parametrize("omega", [None, 400.0])
def test_the_package_follows_the_benchmark(true, omega):
    """Angles and angular velocities of the regular ones to t = 5: constraints to h², penalties to ω⁻² too."""
    q, w = poincare.package(poincare.REGULAR, 0.0025, 100, 20, omega)
    n = len(poincare.REGULAR)
    turned = np.abs(np.exp(1j * q) - np.exp(1j * true[0][:101, :, :n]))
    assert turned.max() < 2e-3
    # Velocities of stiff links swing along them, not across.
    assert np.abs(w - true[1][:101, :, :n]).max() < 2e-2


def test_sections_lie_on_the_energy(true):
    """Where the upper link hangs, angle and momentum of the lower one tell its angular velocity by the energy."""
    for points in poincare.section(true):
        assert len(points) > 5
        angle, momentum = points.T
        # p2 = ℓ2² ω2 + ℓ1 ℓ2 ω1 cos θ2 with the ω1 > 0 of the energy: the start on the section is the first point.
        assert (np.abs(angle) <= np.pi).all()
        assert (np.abs(momentum) < 4.0).all()
    start = poincare.start(poincare.ORBITS)
    momenta = poincare.LOWER**2 * start[1][1] + poincare.UPPER * poincare.LOWER * start[1][0] * np.cos(start[0][1])
    # The ring with the start in it: regular ones come back near it.
    for k in range(2):
        points = poincare.section(true)[k]
        assert np.linalg.norm(points - [start[0][1][k], momenta[k]], axis=1).min() < 0.2


def test_regular_pendula_stay_on_their_curves_but_not_by_euler(true):
    """To t = 60: by constraints within 0.15 of the benchmark's points, by Euler's method not."""
    curves = poincare.section(true)
    shaken = poincare.section(poincare.package(poincare.REGULAR, 0.1, round(END / 0.1)))
    lost = poincare.section(poincare.euler(poincare.REGULAR, 0.005, round(END / 0.005), 10))
    n = len(poincare.REGULAR)
    assert max(poincare.farthest(own, curve) for own, curve in zip(shaken, curves[:n], strict=True)) < 0.2
    assert max(poincare.farthest(own, curve) for own, curve in zip(lost, curves[:n], strict=True)) > 0.5


def test_points_of_sections_are_interpolated_to_order_four():
    """Of a motion that is known: the upper link swings by sin t, the lower one by 0.4 cos(t - 1), from step to step."""
    off = []
    for h in (0.1, 0.05):
        t = h * np.arange(round(20.0 / h)) + 0.37
        q = np.array([np.sin(t), 0.4 * np.cos(t - 1.0)]).T[:, :, None]
        w = np.array([np.cos(t), -0.4 * np.sin(t - 1.0)]).T[:, :, None]
        (points,) = poincare.section((q, w))
        angle, rate = 0.4 * np.cos(1.0), 0.4 * np.sin(1.0)
        momentum = poincare.LOWER**2 * rate + poincare.UPPER * poincare.LOWER * np.cos(angle)
        assert len(points) == 3
        off.append(np.abs(points - [angle, momentum]).max())
    assert off[1] < 1e-6
    assert off[0] / off[1] > 8.0
