"""Ellipsoids against Perrin's closed forms, the integrals themselves, and the limits of shape."""

from itertools import permutations

import mpmath
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import rigid

ETA = 1.3e-9


def perrin(a, b, eta):
    """Frictions of a spheroid with semi-axis a along its axis and b across it: (along, across) of both motions."""
    with mpmath.workdps(80):
        a, b = mpmath.mpf(a), mpmath.mpf(b)
        root = mpmath.sqrt(abs(a * a - b * b))
        s = 2 / root * (mpmath.log((a + root) / b) if a > b else mpmath.atan(root / a))
        f = 16 * mpmath.pi * eta * (a * a - b * b)
        translation = f / ((2 * a * a - b * b) * s - 2 * a), 2 * f / ((2 * a * a - 3 * b * b) * s + 2 * a)
        rotation = (
            2 * f / 3 * b * b / (2 * a - b * b * s),
            2 * f / 3 * (a * a + b * b) / ((2 * a * a - b * b) * s - 2 * a),
        )
        return [float(x) for x in (*translation, *rotation)]


@pytest.mark.parametrize("ratio", [1e6, 1e3, 20.0, 2.0, 1.001, 1.0 + 1e-9, 1.0 - 1e-9, 0.999, 0.4, 1e-2, 1e-6])
def test_spheroids(ratio):
    b = 2.3
    a = b * ratio
    along, across, spin, turn = perrin(a, b, ETA)
    got = rigid.ellipsoid_friction((a, b, b), ETA)
    np.testing.assert_allclose(np.diag(got), [along, across, across, spin, turn, turn], rtol=2e-14)
    np.testing.assert_array_equal(got, np.diag(np.diag(got)))


@pytest.mark.parametrize("axes", [(3.0, 2.0, 1.0), (1.0, 1.0001, 40.0), (1e-6, 1.0, 2e6), (7.0, 7e-5, 3e-3)])
def test_integrals(axes):
    """The seed's integrals, by quadrature with 40 digits."""
    with mpmath.workdps(40):
        a = [mpmath.mpf(x) for x in axes]
        points = [0, *sorted(x * x for x in a), mpmath.inf]

        def delta(u):
            return mpmath.sqrt((a[0] ** 2 + u) * (a[1] ** 2 + u) * (a[2] ** 2 + u))

        # In ln λ the integrands are smooth over all of their decades.
        def integral(f):
            ends = [mpmath.log(p) for p in points[1:-1]]
            cuts = [ends[0] - 150, *ends, ends[-1] + 260]
            return mpmath.quad(lambda t: f(mpmath.exp(t)) * mpmath.exp(t), cuts, maxdegree=9)

        chi = integral(lambda u: 1 / delta(u))
        s = [x * x * integral(lambda u, x=x: 1 / ((x * x + u) * delta(u))) for x in a]
        t = [chi + x for x in s]
        r = [3 * (s[j] + s[k]) / (a[j] ** 2 + a[k] ** 2) for j, k in ((1, 2), (2, 0), (0, 1))]
        expected = [float(x / (16 * mpmath.pi)) for x in (*t, *r)]
    np.testing.assert_allclose(np.diag(rigid.ellipsoid_diffusion(axes, 1.0, kT=1.0)), expected, rtol=1e-14)


@pytest.mark.parametrize("a", [1e-3, 1.0, 2.5, 1e5])
def test_sphere(a):
    np.testing.assert_allclose(np.diag(rigid.ellipsoid_friction((a, a, a), ETA)),
                               np.repeat([6.0 * np.pi * ETA * a, 8.0 * np.pi * ETA * a**3], 3),
                               rtol=4.5e-16)  # fmt: skip


def test_disc():
    """Of no thickness: 16ηa broadside, 32ηa/3 edgewise, 32ηa³/3 about any axis. The next order is that of c/a."""
    a = 3.0
    got = np.diag(rigid.ellipsoid_friction((a, a, 1e-14 * a), ETA))
    expected = ETA * np.array([32 * a / 3, 32 * a / 3, 16 * a, 32 * a**3 / 3, 32 * a**3 / 3, 32 * a**3 / 3])
    np.testing.assert_allclose(got, expected, rtol=5e-14)


def test_needle():
    """Slender bodies: the next order is that of (b/a)² ln."""
    a, b = 4e6, 4.0
    log = np.log(2 * a / b)
    got = np.diag(rigid.ellipsoid_friction((b, a, b), ETA))
    along, across = 4 * np.pi * ETA * a / (log - 0.5), 8 * np.pi * ETA * a / (log + 0.5)
    turn, spin = 8 * np.pi * ETA * a**3 / 3 / (log - 0.5), 16 * np.pi * ETA * a * b * b / 3
    np.testing.assert_allclose(got, [across, along, across, turn, spin, turn], rtol=1e-10)


def test_axes_may_come_in_any_order():
    axes = np.array([0.7, 30.0, 5.0])
    whole = np.diag(rigid.ellipsoid_friction(axes, ETA)).reshape(2, 3)
    for order in permutations(range(3)):
        again = np.diag(rigid.ellipsoid_friction(axes[list(order)], ETA)).reshape(2, 3)
        np.testing.assert_allclose(again, whole[:, list(order)], rtol=5e-16)


def test_diffusion_is_the_inverse():
    axes = (5.0, 2.0, 3.0)
    friction = rigid.ellipsoid_friction(axes, ETA)
    diffusion = rigid.ellipsoid_diffusion(axes, ETA, 310.0)
    np.testing.assert_allclose(rigid.friction_to_diffusion(friction, 310.0), diffusion, rtol=1e-15)
    np.testing.assert_allclose(rigid.diffusion_to_friction(diffusion, 310.0), friction, rtol=1e-15)
    kT = 310.0 * mp.units.boltzmann
    np.testing.assert_array_equal(rigid.ellipsoid_diffusion(axes, ETA, kT=kT), diffusion)
    # A ball of radius 1 nm in water at 20 °C: 215 µm²/s.
    ball = rigid.ellipsoid_diffusion((1.0, 1.0, 1.0), mp.presets.WATER, 293.15)
    assert ball[0, 0] / mp.units.micrometer2_per_second == pytest.approx(214.7, abs=0.1)


def test_inertia():
    np.testing.assert_allclose(rigid.ellipsoid_inertia((1.0, 2.0, 3.0), 5.0), [13.0, 10.0, 5.0])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: rigid.ellipsoid_friction((1.0, 0.0, 1.0), 1.0), r"ellipsoid_friction: semi_axes\[1\] = 0.0 but must"),
    (lambda: rigid.ellipsoid_friction((1.0, 1.0), 1.0), r"semi_axes must have shape \(3,\), not \(2,\)"),
    (lambda: rigid.ellipsoid_friction((1.0, 1e-101, 1.0), 1.0), "must be >= 1e-100, 1e-100 of the largest"),
    (lambda: rigid.ellipsoid_friction((1.0, 1.0, 1.0), -1.0), "viscosity = -1.0 but must be finite and > 0"),
    (lambda: rigid.ellipsoid_diffusion((1.0, 1.0, np.inf), 1.0, 300.0), r"semi_axes\[2\] = inf but must be finite"),
    (lambda: rigid.ellipsoid_diffusion((1.0, 1.0, 1.0), 1.0), "ellipsoid_diffusion: give temperature="),
    (lambda: rigid.ellipsoid_diffusion((1.0, 1.0, 1.0), 1.0, 0.0), "temperature = 0.0 but must be finite and > 0"),
    (lambda: rigid.ellipsoid_diffusion((1.0, 1.0, 1.0), 1.0, 300.0, kT=4.0), "not both"),
    (lambda: rigid.ellipsoid_inertia((1.0, 1.0, 1.0), 0.0), "mass = 0.0 but must be finite and > 0"),
])  # fmt: skip
def test_refusals(call, message):
    refuses(mp.ParameterError, message, call)
