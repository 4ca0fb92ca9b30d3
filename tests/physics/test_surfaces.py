"""Beads on surfaces: exact discrete flows, what the flight conserves and to which order, Brownian motion, densities.

The laws are derived in docs/theory/surfaces.md. False alarms: 1e-6 for each check (see medyanpy.testing).
"""

from itertools import pairwise

import numpy as np
import pytest
from constraint_systems import look
from scipy import integrate, linalg, special

import medyanpy as mp
from medyanpy import units
from medyanpy.testing import check_chi_square, check_mean, check_variance, thermal

S = mp.surfaces
GENUS_2 = S.Lemniscate(2, a=1.0, r=1.0 / 6.0)
# On the outer rim of it, f = r.
RIM = np.sqrt(0.5 + np.sqrt(0.25 + 1.0 / 6.0))


def beads_on(surface, x, v, word, h, *, force=None, mass=1.0, friction=0.0, kT=1.0, tolerance=1e-12, seed=1):
    """Beads at x; v may be None: velocities are drawn then."""
    topology = mp.Topology()
    points = topology.add_surface_points(surface, x, mass, friction, tolerance=tolerance)
    system = mp.System(topology)
    if force is not None:
        system.add_force(force(points))
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=seed), threads=1)
    if v is None:
        context.set_velocities_to_temperature(kT=kT, seed=seed + 1)
    else:
        context.set_velocities(v)
    return context


def gravity(points):
    return mp.forces.UniformField([points], [0.0, 0.0, -1.0])


def tangent_velocities(surface, x, seed, speed=1.0):
    """Of one speed, in random directions."""
    g = surface.gradient(x)
    v = np.cross(g, np.random.default_rng(seed).normal(size=x.shape))
    return speed * v / np.linalg.norm(v, axis=1)[:, None]


def dot(a, b):
    return np.einsum("ij,ij->i", a, b)


def order(errors):
    """With which power of the timestep errors fall, each step being half the one before."""
    return np.log2(np.array(errors[:-1]) / errors[1:])


# Exact flows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "flights"), [("BAB", 1), ("BAGAB", 1), ("ABA", 2), ("BABAB", 2)])
def test_the_sphere_is_turned_by_an_arcsine(word, flights):
    """Every flight goes along a great circle by arcsin(h v/R), at constant speed, up to 0.9 of the largest step.

    G does nothing here, and the two A on its sides are one flight."""
    R, h, n = 3.0, 0.2, 250 // flights
    center = np.array([0.4, -0.2, 0.7])
    surface = S.Sphere(R, center)
    x = surface.sample(24, 2)
    largest = 0.9 * R * flights / h
    v = tangent_velocities(surface, x, 3) * np.linspace(0.01, 1.0, 24)[:, None] * largest
    context = beads_on(surface, x, v, word, h, tolerance=1e-15)
    speed = np.linalg.norm(v, axis=1)[:, None]
    for k in range(1, 6):
        context.step(n // 5)
        angle = k * (n // 5) * flights * np.arcsin(h / flights * speed / R)
        now, velocity = look(context)
        exact = np.cos(angle) * (x - center) + np.sin(angle) * R * v / speed
        np.testing.assert_allclose(now - center, exact, rtol=0.0, atol=1e-11)
        along = np.cos(angle) * v - np.sin(angle) * speed * (x - center) / R
        np.testing.assert_allclose(velocity, along, rtol=0.0, atol=1e-11 * largest)
        np.testing.assert_allclose(np.linalg.norm(velocity, axis=1), speed[:, 0], rtol=1e-12)


def test_helices_on_a_cylinder_and_straight_lines_on_a_plane():
    """A helix turns by arcsin(h v/R) around the axis and goes straight on along it."""
    R, h, n = 2.0, 0.3, 200
    surface = S.Cylinder(R, [0.0, 1.0, 0.0], axis=[1.0, 2.0, -2.0])
    x = surface.sample(20, 4, box=[[-4.0] * 3, [4.0] * 3])
    v = 3.0 * tangent_velocities(surface, x, 5)
    context = beads_on(surface, x, v, "BAB", h, tolerance=1e-15)
    context.step(n)
    now, velocity = look(context)
    e = surface.axis
    high = (x - surface.point) @ e
    out = x - surface.point - high[:, None] * e
    along = v @ e
    around = v - along[:, None] * e
    speed = np.linalg.norm(around, axis=1)[:, None]
    angle = n * np.arcsin(h * speed / R)
    exact = surface.point + (high + n * h * along)[:, None] * e
    exact = exact + np.cos(angle) * out + np.sin(angle) * R * around / speed
    np.testing.assert_allclose(now, exact, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(velocity, axis=1), 3.0, rtol=1e-12)

    plane = S.Plane([0.0, 0.0, 1.0], [3.0, 0.0, 4.0])
    x = plane.sample(20, 6, box=[[-4.0] * 3, [4.0] * 3])
    v = tangent_velocities(plane, x, 7)
    context = beads_on(plane, x, v, "BAGAB", h)
    context.step(n)
    now, velocity = look(context)
    np.testing.assert_allclose(now, x + n * h * v, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(velocity, v, rtol=0.0, atol=1e-13)


def test_circles_on_a_torus():
    """Outer and inner rim and meridians are circles to round-off, run through at constant speed. The inner rim is
    unstable: only mirror symmetry keeps a bead on it."""
    R, r, h, n = 3.0, 1.0, 0.3, 300
    x = np.array([[R + r, 0.0, 0.0], [R - r, 0.0, 0.0], [R + r, 0.0, 0.0]])
    v = np.array([[0.0, 1.5, 0.0], [0.0, -1.2, 0.0], [0.0, 0.0, 0.9]])
    context = beads_on(S.Torus(R, r), x, v, "BAB", h, tolerance=1e-15)
    context.step(n)
    now, velocity = look(context)
    outer, inner, meridian = n * np.arcsin(h * np.array([1.5 / (R + r), 1.2 / (R - r), 0.9 / r]))
    exact = [
        [(R + r) * np.cos(outer), (R + r) * np.sin(outer), 0.0],
        [(R - r) * np.cos(inner), -(R - r) * np.sin(inner), 0.0],
        [R + r * np.cos(meridian), 0.0, r * np.sin(meridian)],
    ]
    np.testing.assert_allclose(now, exact, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(velocity, axis=1), [1.5, 1.2, 0.9], rtol=1e-12)
    assert (now[:2, 2] == 0.0).all()
    assert now[2, 1] == 0.0


# What the flight conserves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["BAB", "BAGAB", "ABA"])
@pytest.mark.parametrize("axis", [[0.0, 0.0, 1.0], [1.0, 2.0, -2.0]])
def test_clairaut(word, axis):
    """Angular momentum about the axis of a torus is conserved to round-off at steps where the speed is not, free and
    in a potential of the same symmetry."""
    center = np.array([0.3, -0.5, 1.0])
    surface = S.Torus(3.0, 1.0, center, axis=axis)
    x = surface.sample(40, 8)
    v = tangent_velocities(surface, x, 9)
    for force in (None, lambda points: mp.forces.HarmonicTrap([points], 0.5, center)):
        context = beads_on(surface, x, v, word, 0.3, force=force)
        momentum = np.cross(x - center, v) @ surface.axis
        change = 0.0
        for _ in range(10):
            context.step(100)
            now, velocity = look(context)
            np.testing.assert_allclose(np.cross(now - center, velocity) @ surface.axis, momentum, rtol=0.0, atol=2e-12)
            change = max(change, np.abs(np.linalg.norm(velocity, axis=1) - 1.0).max())
        assert change > 1e-4


@pytest.mark.parametrize("surface", [S.Torus(3.0, 1.0), S.Ellipsoid([1.0, 2.0, 0.7]), GENUS_2])
def test_energy_of_the_free_flight(surface):
    """Half the square of the speed is wrong by h²; with h²/24 times the square of the acceleration by the surface
    added, by h⁴."""
    x = surface.sample(16, 10)
    v = tangent_velocities(surface, x, 11)
    steps = (0.005 if surface is GENUS_2 else 0.02) / 2.0 ** np.arange(3)
    plain, better = [], []
    for h in steps:
        context = beads_on(surface, x, v, "BAB", h, tolerance=1e-15)
        energies = []
        for _ in range(round(1.5 / h)):
            context.step(1)
            now, velocity = look(context)
            bent = np.einsum("ni,nij,nj->n", velocity, surface.hessian(now), velocity)
            acceleration = bent / np.linalg.norm(surface.gradient(now), axis=1)
            energy = 0.5 * dot(velocity, velocity)
            energies.append([energy, energy + h**2 / 24.0 * acceleration**2])
        plain.append(np.ptp(np.array(energies)[:, 0], axis=0).max())
        better.append(np.ptp(np.array(energies)[:, 1], axis=0).max())
    assert (np.abs(order(plain) - 2.0) < 0.1).all(), (plain, order(plain))
    assert (np.abs(order(better) - 4.0) < 0.3).all(), (better, order(better))
    assert better[-1] < 0.01 * plain[-1]


def test_joachimsthal():
    """(x·A²x)(v·Av) on the ellipsoid x·Ax = 1: conserved by geodesics, by the flight to h². What is exact there is
    |grad g|² (|c|² - h²v²), c the chord, from one end of a flight to the other."""
    axes = np.array([1.0, 2.0, 0.7])
    surface = S.Ellipsoid(axes)
    x = surface.sample(16, 12)
    v = tangent_velocities(surface, x, 13)
    errors = []
    for h in (0.02, 0.01, 0.005):
        context = beads_on(surface, x, v, "BAB", h, tolerance=1e-15)
        values = []
        before = x, v
        for _ in range(round(4.0 / h)):
            context.step(1)
            now, velocity = look(context)
            values.append(((now / axes**2) ** 2).sum(axis=1) * ((velocity / axes) ** 2).sum(axis=1))
            chord = now - before[0]
            ends = [
                ((at / axes**2) ** 2).sum(axis=1) * (dot(chord, chord) - h**2 * dot(u, u))
                for at, u in (before, (now, velocity))
            ]
            # Of the order h⁴, the difference of two numbers of the order h².
            np.testing.assert_allclose(ends[1], ends[0], rtol=0.0, atol=1e-14 * h)
            before = now, velocity
        errors.append(np.ptp(values, axis=0).max())
    assert (np.abs(order(errors) - 2.0) < 0.1).all(), (errors, order(errors))


def geodesics_of_a_torus(x, v, R, r, time):
    """In angle coordinates, by an ODE solver of eighth order."""
    theta, phi = np.arctan2(x[:, 2], np.hypot(x[:, 0], x[:, 1]) - R), np.arctan2(x[:, 1], x[:, 0])
    momentum = x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]
    out = np.column_stack([np.cos(phi) * np.cos(theta), np.sin(phi) * np.cos(theta), np.sin(theta)])
    up = np.column_stack([-np.cos(phi) * np.sin(theta), -np.sin(phi) * np.sin(theta), np.cos(theta)])
    assert np.abs(dot(out, v)).max() < 1e-10

    def rate(_, y):
        theta, w, _ = y.reshape(3, -1)
        rho = R + r * np.cos(theta)
        return np.concatenate([w, -(momentum**2) * np.sin(theta) / (r * rho**3), momentum / rho**2])

    start = np.concatenate([theta, dot(up, v) / r, phi])
    solved = integrate.solve_ivp(rate, (0.0, time), start, method="DOP853", rtol=1e-13, atol=1e-13)
    theta, _, phi = solved.y[:, -1].reshape(3, -1)
    rho = R + r * np.cos(theta)
    return np.column_stack([rho * np.cos(phi), rho * np.sin(phi), r * np.sin(theta)])


@pytest.mark.parametrize("word", ["BAB", "BAGAB"])
def test_geodesics_of_a_torus(word):
    """Positions tend to those of the geodesics with the square of the timestep, and a step of Richardson's
    extrapolation with the fourth power."""
    R, r, time = 3.0, 1.0, 12.0
    surface = S.Torus(R, r)
    x = surface.sample(30, 14)
    v = tangent_velocities(surface, x, 15)
    exact = geodesics_of_a_torus(x, v, R, r, time)
    ends = []
    for n in (240, 480, 960):
        context = beads_on(surface, x, v, word, time / n, tolerance=1e-15)
        context.step(n)
        ends.append(look(context)[0])
    errors = [np.linalg.norm(end - exact, axis=1).max() for end in ends]
    better = [np.linalg.norm((4.0 * b - a) / 3.0 - exact, axis=1).max() for a, b in pairwise(ends)]
    assert (np.abs(order(errors) - 2.0) < 0.05).all(), (errors, order(errors))
    assert (np.abs(order(better) - 4.0) < 0.4).all(), (better, order(better))
    assert better[-1] < 1e-5


# A pendulum ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["BAB", "BAGAB", "ABA", "BABAB"])
def test_a_spherical_pendulum(word):
    """Energy to h², angular momentum about the vertical to round-off, and back to the start to 1e-9."""
    surface = S.Sphere(2.0)
    x = surface.sample(20, 16)
    v = tangent_velocities(surface, x, 17)
    momentum = x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]
    errors = []
    for h in (0.1, 0.05, 0.025):
        context = beads_on(surface, x, v, word, h, force=gravity, tolerance=1e-15)
        energies = [0.5 * dot(v, v) + x[:, 2]]
        for _ in range(round(20.0 / h)):
            context.step(1)
            now, velocity = look(context)
            energies.append(0.5 * dot(velocity, velocity) + now[:, 2])
        np.testing.assert_allclose(now[:, 0] * velocity[:, 1] - now[:, 1] * velocity[:, 0], momentum, atol=1e-12)
        errors.append(np.abs(np.array(energies) - energies[0]).max())
        context.set_velocities(-velocity)
        context.step(round(20.0 / h))
        back, reversed_velocity = look(context)
        assert np.abs(now - x).max() > 1.0
        np.testing.assert_allclose(back, x, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(reversed_velocity, -v, rtol=0.0, atol=1e-9)
    assert (np.abs(order(errors) - 2.0) < 0.15).all(), (errors, order(errors))


@pytest.mark.parametrize("word", ["BAB", "BAGAB", "ABA"])
def test_small_oscillations_of_a_pendulum(word):
    """The frequency is that of velocity Verlet for a harmonic well, (2/h) arcsin(wh/2) with w² = g/R."""
    R, g, h, n, amplitude = 2.0, 1.7, 0.2, 500, 1e-4
    x = np.array([[amplitude, 0.0, -np.sqrt(R**2 - amplitude**2)]])
    field = lambda points: mp.forces.UniformField([points], [0.0, 0.0, -3.0 * g])  # noqa: E731
    context = beads_on(S.Sphere(R), x, np.zeros((1, 3)), word, h, force=field, mass=3.0, tolerance=1e-15)
    phase = 2.0 * np.arcsin(0.5 * h * np.sqrt(g / R))
    places = []
    for _ in range(n):
        context.step(1)
        places.append(look(context)[0][0, 0])
    exact = amplitude * np.cos(phase * np.arange(1, n + 1))
    np.testing.assert_allclose(places, exact, rtol=0.0, atol=1e-6 * amplitude)


# Brownian motion -------------------------------------------------------------------------------------------------


def cosines_on_a_sphere(n, h, friction, R, size=48):
    """<cos theta> after 0 to n steps of BAOAB from thermal starts, kT = m = 1; to round-off (docs/theory/surfaces.md,
    "All orders, and any timestep")."""
    u, weight = special.roots_laguerre(size)
    turn = np.arcsin(np.minimum(0.5 * h * np.sqrt(2.0 * u) / R, 1.0))
    cos, sin = np.cos(turn), np.sin(turn)
    k, root = np.arange(size), np.sqrt(u)

    def damped(polynomials, weight, powers):
        norm = (polynomials**2 * weight).sum(axis=1)
        return (polynomials.T * (np.exp(-friction * h * powers) / norm)) @ (polynomials * weight)

    o_a = damped(special.eval_laguerre(k[:, None], u), weight, 2 * k)
    o_b = damped(special.eval_genlaguerre(k[:, None], 1, u), weight * u, 2 * k + 1) * root[:, None] / root
    a, b = np.ones(size), np.zeros(size)
    means = [1.0]
    for _ in range(n):
        a, b = a * cos - b * sin, a * sin + b * cos
        a, b = o_a @ a, o_b @ b
        a, b = a * cos - b * sin, a * sin + b * cos
        means.append(weight @ a)
    return np.array(means)


def diffusion(friction, h):
    """kT = m = 1."""
    x = 0.5 * friction * h
    return x / np.tanh(x) / friction


def test_theory_of_the_sphere():
    """The exact means of the discrete process decay at 2 D (1 + e²)/R² for a small free path e = 1/(friction R), with
    a delay of m/friction at the start."""
    errors = []
    for friction in (10.0, 20.0, 40.0):
        h = 0.05 / friction
        n = round(2.0 * friction / h)
        means = cosines_on_a_sphere(n, h, friction, 1.0, size=24)
        rate = np.log(means[-2] / means[-1]) / h
        errors.append(abs(rate / (2.0 * diffusion(friction, h) * (1.0 + friction**-2)) - 1.0))
        delay = n * h + np.log(means[-1]) / rate
        assert delay == pytest.approx(1.0 / friction, rel=3.0 * friction**-2 + 1e-3)
    assert errors[-1] < 2e-5
    np.testing.assert_allclose(cosines_on_a_sphere(30, 0.1, 2.0, 1.0), cosines_on_a_sphere(30, 0.1, 2.0, 1.0, size=32))


@pytest.mark.parametrize(("word", "R", "friction", "h", "n"), [
    ("BAOAB", 0.5, 40.0, 0.05, 24),
    ("BAOAB", 0.5, 40.0, 0.05, 60),
    ("BAGOGAB", 1.0, 1.5, 0.1, 12),
    ("BAOAB", 1.0, 0.3, 0.1, 20),
])  # fmt: skip
def test_diffusion_on_a_sphere(word, R, friction, h, n):
    """From twenty times more friction than the rate of meeting curvature (the law exp(-2Dt/R²)) to almost free flight,
    where the mean is negative.

    20 000 beads find 0.015 to 0.035; x coth x makes 0.06 and 0.09 in the first two rows, inertia 0.1 and more in the
    others."""
    surface = S.Sphere(R)
    x = np.tile([0.6 * R, 0.0, 0.8 * R], (20_000, 1))
    context = beads_on(surface, x, None, word, h, friction=friction, seed=19)
    context.step(n)
    cosine = dot(look(context)[0], x) / R**2
    exact = cosines_on_a_sphere(n, h, friction, R)[-1]
    check_mean("<cos theta>", cosine, exact, sees=0.035)
    if friction >= 10.0:
        law = np.exp(-2.0 * diffusion(friction, h) * (n * h - 1.0 / friction) / R**2)
        assert exact == pytest.approx(law, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["BAOAB", "BAGOGAB"])
def test_diffusion_around_the_axis_of_a_torus(word):
    """The azimuth is a martingale: its mean square is 2 D t/(R sqrt(R² - r²)) from a start that is uniform per area.

    20 000 beads find 15 %. Uniform in the tube angle, it would be 1 + r²/(R² - r²) = 1.8 times that; x coth x is 1.31.
    """
    R, r, friction, h, n = 1.5, 1.0, 40.0, 0.05, 100
    surface = S.Torus(R, r)
    x = surface.sample(20_000, 20)
    context = beads_on(surface, x, None, word, h, friction=friction, seed=21)
    azimuth = np.zeros(len(x))
    before = x
    # Looked at often enough that no bead has gone half around.
    for _ in range(4):
        context.step(n // 4)
        now = look(context)[0]
        azimuth += np.arctan2(before[:, 0] * now[:, 1] - before[:, 1] * now[:, 0], dot(before[:, :2], now[:, :2]))
        before = now
    time = n * h - 1.0 / friction
    check_mean("<azimuth²>", azimuth**2, 2.0 * diffusion(friction, h) * time / (R * np.sqrt(R**2 - r**2)), sees=0.031)
    check_mean("<azimuth>", azimuth, 0.0, sees=0.026)


@pytest.mark.slow
@pytest.mark.slow
def test_relaxation_around_the_tube_of_a_torus():
    """From the outer rim, <cos> of the tube angle against the diffusion equation d/dt F = D/(r² rho) (rho F')', by
    Fourier series. 8 000 beads find 0.06; without the drift to the outside it would end at 0 instead of 1/3."""
    R, r, friction, h = 1.5, 1.0, 40.0, 0.05
    rim = np.linspace(0.0, 2.0 * np.pi, 8_000, endpoint=False)
    x = (R + r) * np.column_stack([np.cos(rim), np.sin(rim), 0.0 * rim])
    context = beads_on(S.Torus(R, r), x, None, "BAOAB", h, friction=friction, seed=23)
    n = 64
    theta = 2.0 * np.pi * np.arange(n) / n
    wave = np.fft.fftfreq(n, 1.0 / n)
    wave[n // 2] = 0.0
    slope = np.fft.ifft(1j * wave[:, None] * np.fft.fft(np.eye(n), axis=0), axis=0).real
    rho = R + r * np.cos(theta)
    generator = diffusion(friction, h) / r**2 * slope @ (rho[:, None] * slope) / rho[:, None]
    done = 0
    for steps in (300, 800, 2000):
        context.step(steps - done)
        done = steps
        now = look(context)[0]
        cosine = (np.hypot(now[:, 0], now[:, 1]) - R) / r
        exact = (linalg.expm((steps * h - 1.0 / friction) * generator) @ np.cos(theta))[0]
        check_mean(f"<cos theta> after {steps} steps", cosine, exact, sees=0.056)
    assert exact == pytest.approx(r / (2.0 * R), abs=0.02)


# Densities -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_heights_of_an_atmosphere():
    """exp(-m g z/kT) per area on a sphere, from a start at the bottom; two degrees of freedom per bead. 20 000 beads in
    20 bins find 30 % in one bin or 9 % of the weight of a bead, velocities 6 % of the temperature."""
    R, weight, kT, n = 1.0, 2.0, 1.3, 20_000
    bottom = np.tile([0.0, 0.0, -R], (n, 1))
    force = lambda points: mp.forces.UniformField([points], [0.0, 0.0, -weight])  # noqa: E731
    context = beads_on(S.Sphere(R), bottom, None, "BAOAB", 0.05, force=force, mass=0.7, friction=1.0, kT=kT, seed=25)
    context.step(300)
    state = context.get_state(positions=True, energy=True)
    k = weight / kT
    u = np.expm1(-k * (state.positions[:, 2] + R)) / np.expm1(-2.0 * k * R)
    check_chi_square("heights", np.histogram(u, 20, (0.0, 1.0))[0], np.full(20, n / 20), sees=0.073)
    azimuth = np.arctan2(state.positions[:, 1], state.positions[:, 0])
    check_chi_square("azimuths", np.histogram(azimuth, 20, (-np.pi, np.pi))[0], np.full(20, n / 20), sees=0.073)
    measured = state.temperatures["surface points"] * units.boltzmann
    check_variance("velocities after O", 2 * n * measured, 2 * n, kT, sees=0.06)


def cells(p):
    """Of the genus-2 surface: octants, each in four slices of the longer side."""
    x = np.abs(p[:, 0])
    octant = (p[:, 0] > 0.0) + 2 * (p[:, 1] > 0.0) + 4 * (p[:, 2] > 0.0)
    return 4 * octant + np.digitize(x, [0.3, 0.6, 0.9])


def shares(spacing=0.004, width=0.012):
    """Fractions of the area in each cell, from the volume of a thin layer: the integral of delta(g) |grad g| on a grid
    of one octant, with delta a hat of some width. Right to 0.3 %."""
    axes = [np.arange(0.5 * spacing, end, spacing) for end in (1.1, 0.6, 0.18)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    distance = GENUS_2.value(x) / np.linalg.norm(GENUS_2.gradient(x), axis=1)
    layer = np.clip(1.0 - np.abs(distance) / width, 0.0, None)
    slices = np.bincount(cells(x) % 4, weights=layer, minlength=4)
    return np.tile(slices / slices.sum() / 8.0, 8)


@pytest.mark.slow
def test_uniform_density_on_genus_2():
    """With O, from one point in the middle: 20 000 beads in 32 cells. Finds 35 % in one cell or 7 % in one half."""
    n = 20_000
    middle = np.tile([0.0, 0.0, 1.0 / 6.0], (n, 1))
    context = beads_on(GENUS_2, middle, None, "BAOAB", 0.02, friction=1.0, seed=27)
    context.step(300)
    counts = np.bincount(cells(look(context)[0]), minlength=32)
    check_chi_square("beads per area", counts, n * shares(), sees=0.078)


# Free flow on genus 2 ----------------------------------------------------------------------------------------------


def test_jacobi_fields_along_the_outer_rim_of_genus_2():
    """A bead that leaves the rim at a small angle is back at it as Jacobi's equation y'' + K y = 0 says: after two
    turns it is 2 cos(a) times as high as after one, a the angle of a stable rotation."""

    def rate(_, state):
        x, v, y = state[:3], state[3:6], state[6:]
        G, H = GENUS_2.gradient(x[None])[0], GENUS_2.hessian(x[None])[0]
        # Gauss's curvature of g = 0.
        bordered = np.block([[H, G[:, None]], [G[None], np.zeros((1, 1))]])
        curvature = -np.linalg.det(bordered) / (G @ G) ** 2
        return np.concatenate([v, -(v @ H @ v) / (G @ G) * G, [y[1], -curvature * y[0], y[3], -curvature * y[2]]])

    length = 5.307554757
    start = [RIM, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    end = integrate.solve_ivp(rate, (0.0, length), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    np.testing.assert_allclose(end[:6], start[:6], rtol=0.0, atol=1e-8)
    trace = end[6] + end[9]
    assert trace == pytest.approx(-0.28620, abs=1e-5)

    n, tilt = 8000, 1e-6
    v = [[0.0, np.cos(tilt), np.sin(tilt)]]
    context = beads_on(GENUS_2, [[RIM, 0.0, 0.0]], v, "BAB", length / n, tolerance=1e-15)
    heights = []
    for _ in range(2):
        context.step(n)
        heights.append(look(context)[0][0, 2])
    assert heights[0] == pytest.approx(tilt * end[8], rel=1e-4)
    assert heights[1] / heights[0] == pytest.approx(trace, abs=1e-4)


@pytest.mark.slow
def test_the_outer_rim_of_genus_2_is_stable():
    """The free flow is not ergodic: beads that start near the rim and along it stay there (as far as 600 turns can
    show), while the same start at a hole leaves it within a few turns. Exactly on either, symmetry keeps a bead."""
    hole = np.sqrt(0.5 + np.sqrt(0.25 - 1.0 / 6.0))
    tilt = np.array([0.0, 1e-3, 2e-2])
    v = np.column_stack([0.0 * tilt, np.cos(tilt), np.sin(tilt)])
    x = np.tile([RIM, 0.0, 0.0], (3, 1))
    context = beads_on(GENUS_2, np.concatenate([x, x * hole / RIM]), np.concatenate([v, v]), "BAB", 0.01)
    highest = np.zeros(6)
    for _ in range(3200):
        context.step(100)
        highest = np.maximum(highest, np.abs(look(context)[0][:, 2]))
    assert (highest[[0, 3]] == 0.0).all()
    assert (highest[1:3] < 5.0 * tilt[1:]).all(), highest
    assert (highest[4:] > 0.15).all(), highest


@pytest.mark.long
def test_free_flow_from_the_middle():
    """Where 25 beads without force or friction go in 2 000 000 steps. Only what is certain is asserted: they stay on
    the surface, and their energy has no drift. What is printed is recorded in docs/validation.md."""
    angle = 2.0 * np.pi * (np.arange(25) + 0.3) / 25.0
    start = np.tile([0.0, 0.0, 1.0 / 6.0], (25, 1))
    v = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    context = beads_on(GENUS_2, start, v, "BAB", 0.01)
    share = shares()
    looks = 200_000
    counts = np.zeros((25, 32))
    energies, angles = [], []
    for k in range(1, looks + 1):
        context.step(10)
        x, v = look(context)
        counts[np.arange(25), cells(x)] += 1
        energies.append(0.5 * dot(v, v))
        # Angles with the rim, of beads that cross it at the ends of the lobes.
        rim = (np.abs(x[:, 2]) < 0.02) & (np.abs(x[:, 0]) > 1.0)
        angles.append(np.arcsin(np.abs(v[rim, 2]) / np.linalg.norm(v[rim], axis=1)))
        if k in (looks // 64, looks // 16, looks // 4, looks):
            each = 0.5 * np.abs(counts / k - share).sum(axis=1)
            together = counts.sum(axis=0) / counts.sum()
            print(f"after {10 * k} steps, half the sum of |share of time - share of area| over 32 cells:")
            print(f"  beads {each.min():.4f} to {each.max():.4f}, together {0.5 * np.abs(together - share).sum():.4f}")
    outermost = together.reshape(8, 4)[:, 3].sum() / share.reshape(8, 4)[:, 3].sum()
    print(f"time over area in |x| > 0.9: {outermost:.4f}")
    angles = np.rad2deg(np.concatenate(angles))
    counts, _ = np.histogram(angles, 18, (0.0, 90.0))
    print(f"angles with the outer rim, per 5 degrees: {counts.tolist()}; smallest {angles.min():.2f}")
    energies = np.array(energies)
    assert np.ptp(energies, axis=0).max() < 0.01
    tenth = looks // 10
    assert np.abs(energies[-tenth:].mean(axis=0) - energies[:tenth].mean(axis=0)).max() < 5e-4
    assert (np.abs(GENUS_2.value(x)) <= 1.01e-12 * np.linalg.norm(GENUS_2.gradient(x), axis=1) * 1.1).all()


@pytest.mark.long
def test_a_million_steps_under_gravity_on_genus_2():
    """The seed's beads, fifty times as long as there at a quarter of its step: on the surface to 1e-12 of its size,
    velocities tangent to round-off, and energies that do not drift. (Every step: test_energy_error_is_of_second_order
    in tests/test_surfaces.py.)"""
    angle = np.linspace(0.0, 2.0 * np.pi, 25)
    start = np.tile([0.0, 0.0, 1.0 / 6.0], (25, 1))
    v = np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    context = beads_on(GENUS_2, start, v, "BAB", 0.0025, force=gravity)
    off = slant = 0.0
    energies = []
    for _ in range(20_000):
        context.step(50)
        x, v = look(context)
        gradient = GENUS_2.gradient(x)
        size = np.linalg.norm(gradient, axis=1)
        far = np.maximum(GENUS_2.length, np.linalg.norm(x, axis=1))
        off = max(off, np.abs(GENUS_2.value(x) / size / far).max())
        slant = max(slant, np.abs(dot(gradient, v) / size).max())
        energies.append(0.5 * dot(v, v) + x[:, 2])
    energies = np.array(energies)
    largest = np.abs(energies - (0.5 + 1.0 / 6.0)).max()
    drift = energies[-2_000:].mean(axis=0) - energies[:2_000].mean(axis=0)
    print(f"distance from the surface at most {off:.2e} of its size, velocity along the normal {slant:.2e}")
    print(f"energies off by at most {largest:.2e}, last tenth minus first at most {np.abs(drift).max():.2e}")
    assert off <= 1.001e-12
    assert slant < 1e-14
    assert largest < 2e-3
    assert np.abs(drift).max() < 2e-4


# Meshes of the same surface ----------------------------------------------------------------------------------------


def flights_on_a_mesh(mesh, surface, n, length, seed):
    """Ends of free flights over a mesh, and starts and velocities of the same flights on the surface."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    faces = np.random.default_rng(seed).choice(len(mesh.faces), n, replace=False)
    weights = np.full((n, 3), 1.0 / 3.0)
    points = topology.add_intriangle_points(membrane, triangles=faces, barycentric=weights, mass=1.0)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAGAB", length), threads=1)
    x = surface.project(context.get_state(positions=True).positions[points.beads])
    v = tangent_velocities(surface, x, seed + 1)
    normal = mesh.face_normals[faces]
    flat = v - dot(v, normal)[:, None] * normal
    velocities = np.zeros((topology.n_beads, 3))
    velocities[points.beads] = flat / np.linalg.norm(flat, axis=1)[:, None]
    context.set_velocities(velocities)
    context.step(1)
    return context.get_state(positions=True).positions[points.beads], x, v


def great_circles(x, v):
    return np.cos(2.0) * x + np.sin(2.0) * v


MESHES = {
    "icospheres": (S.Sphere(1.0), lambda k: mp.TriangleMesh.icosphere(1.0, 2 + k), 2.0, great_circles),
    "rows on a torus": (S.Torus(3.0, 1.0), lambda k: mp.TriangleMesh.torus(3.0, 1.0, 30 * 2**k, 12 * 2**k), 6.0,
                        lambda x, v: geodesics_of_a_torus(x, v, 3.0, 1.0, 6.0)),
    "marching cubes": (S.Torus(3.0, 1.0), lambda k: S.Torus(3.0, 1.0).mesh(16 * 2**k), 6.0,
                       lambda x, v: geodesics_of_a_torus(x, v, 3.0, 1.0, 6.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", MESHES)
def test_flights_over_meshes_tend_to_geodesics(name):
    """G on finer and finer meshes of a surface, against its geodesics: typical distances between the ends fall with an
    order of the edge length between 3/2 and 2 (docs/theory/surfaces.md says why)."""
    if name == "marching cubes":
        pytest.importorskip("skimage")
    surface, make, length, exact = MESHES[name]
    typical = []
    for k in range(4):
        end, x, v = flights_on_a_mesh(make(k), surface, 300, length, 28)
        typical.append(np.median(np.linalg.norm(end - exact(x, v), axis=1)))
    mean = np.log2(typical[0] / typical[-1]) / 3.0
    assert 1.4 < mean < 2.1, (typical, order(typical))
    assert typical[-1] < 0.01


def test_brownian_motion_on_a_mesh_and_on_the_surface():
    """<cos theta> of points of both kinds, from the same starts, against one exact value: 20 000 of each find 5 %.

    The flights of both differ by (h v/2R)²/6 = 0.1 % on average, lengths on the mesh by 0.3 %: far below that."""
    n, h, friction, steps = 20_000, 0.1, 8.0, 30
    mesh = mp.TriangleMesh.icosphere(1.0, 4)
    sphere = S.Sphere(1.0)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=True)
    flat = topology.add_intriangle_points(membrane, n, mass=1.0, friction=friction, seed=30)
    smooth = topology.add_surface_points(sphere, sphere.project(flat.positions), mass=1.0, friction=friction)
    context = mp.Context(mp.System(topology), mp.BAGOGABIntegrator(h, kT=1.0, seed=31), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=32)
    start = look(context)[0]
    context.step(steps)
    end = look(context)[0]
    exact = cosines_on_a_sphere(steps, h, friction, 1.0)[-1]
    for what, points in (("surface", smooth), ("mesh", flat)):
        a, b = start[points.beads], end[points.beads]
        cosine = dot(a, b) / np.sqrt(dot(a, a) * dot(b, b))
        check_mean(f"<cos theta> on the {what}", cosine, exact, sees=0.054 * exact)
