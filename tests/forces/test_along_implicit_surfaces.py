"""Pair forces by the distance along an implicit surface: lengths and directions of geodesics against closed forms and
against independent solutions of the geodesic equation, what is kept, what is refused, two beads in equilibrium.

Bits are in tests/test_bits.py, faults in tests/test_faults.py, differences on a sphere in test_contract.py.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from builders import look, refuses, retraced, system_with
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq, fsolve

import medyanpy as mp
from medyanpy import forces
from medyanpy.testing import check_chi_square

S = mp.surfaces
CUTOFF = 1.5


def system_of(surface, x, make, **options):
    topology = mp.Topology()
    beads = topology.add_surface_points(surface, x, mass=1.0, friction=1.0, tolerance=1e-15)
    system = system_with(topology, make(beads, **options))
    return system


def context_of(surface, x, make, threads=1, word="BAB", timestep=0.01, **options):
    return mp.Context(system_of(surface, x, make, **options), mp.SplittingIntegrator(word, timestep), threads=threads)


def soft(range_):
    """U = (d - L)²/2: its energy and force tell L."""
    return lambda beads, **options: forces.SoftSphere(beads, beads, 1.0, range_, along_surface=True, **options)


def distance(surface, a, b, range_=CUTOFF):
    """The length between two beads, and the unit tangents at both ends, from a to b."""
    state = look(context_of(surface, [a, b], soft(range_)))
    if state.potential_energy == 0.0:
        return range_, None, None
    length = range_ - np.sqrt(2.0 * state.potential_energy)
    return length, state.forces[0] / (length - range_), state.forces[1] / (range_ - length)


def pairs_within(surface, n, seed, shortest, longest, **options):
    """(n, 2, 3) pairs of points at distances through space between two."""
    x = surface.sample(40 * n, seed, **options)
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < n:
        i, k = rng.integers(len(x), size=2)
        if shortest < np.linalg.norm(x[i] - x[k]) < longest:
            found.append([x[i], x[k]])
    return np.array(found)


# Closed forms ------------------------------------------------------------------------------------------------------


def ricker(r, depth, distance, cutoff):
    def u(r):
        return 0.5 * depth * (1.0 - 3.0 * (r / distance) ** 2) * np.exp(1.5 - 1.5 * (r / distance) ** 2)

    return np.where(r < cutoff, u(r) - u(cutoff), 0.0)


@pytest.mark.parametrize("share", [0.05, 0.4, 0.97])
def test_arcs_of_great_circles(share):
    """Many beads at once, up to the longest cutoff that there is: each gets what R acos gives it."""
    R, center = 2.0, np.array([1.0, -2.0, 0.5])
    surface = S.Sphere(R, center)
    cutoff = share * np.pi * R
    x = surface.sample(120 if share > 0.1 else 400, seed=3)
    width = 0.3 * cutoff

    def make(beads):
        return forces.Ricker(beads, beads, 2.0, width, cutoff=cutoff, along_surface=True)

    state = look(context_of(surface, x, make))
    n = (state.positions - center) / R
    # atan2, which has all digits at all angles.
    sine = np.linalg.norm(np.cross(n[:, None], n[None]), axis=2)
    length = R * np.arctan2(sine, n @ n.T)
    energy = ricker(length, 2.0, width, cutoff)
    inside = np.triu(length < cutoff, 1)
    assert inside.sum() > 100
    assert state.potential_energy == pytest.approx(energy[inside].sum(), abs=1e-11 * np.abs(energy[inside]).sum())
    slope = -9.0 * length / width**2 * np.exp(1.5 - 1.5 * (length / width) ** 2) * (1.0 - (length / width) ** 2)
    # dU/dL of U above; U = 2 (1 - 3 s)/2 e: U' = 9/2 · 2 L/w² (s - 1) e.
    np.fill_diagonal(sine, 1.0)
    away = (n[:, None] * (n @ n.T)[..., None] - n[None]) / sine[..., None]
    pull = np.where((length < cutoff) & (length > 0.0), slope, 0.0)
    np.testing.assert_allclose(state.forces, -(pull[..., None] * away).sum(axis=1), rtol=0.0, atol=2e-11 / width)


def test_a_cylinder_unrolled():
    R, axis = 2.0, np.array([1.0, 2.0, -2.0]) / 3.0
    surface = S.Cylinder(R, [0.0, 1.0, 0.0], axis=axis)
    out = np.array([2.0, 1.0, 2.0]) / 3.0
    side = np.cross(axis, out)
    rng = np.random.default_rng(1)
    for turned, along in zip(np.linspace(0.01, 2.9, 12), rng.uniform(-2.0, 2.0, 12), strict=True):
        start = rng.uniform(0.0, 2.0 * np.pi)

        def at(angle, high):
            return np.array([0.0, 1.0, 0.0]) + R * (np.cos(angle) * out + np.sin(angle) * side) + high * axis

        expected = np.hypot(R * turned, along)
        if expected > 0.98 * np.pi * R:
            continue
        length, first, last = distance(surface, at(start, 0.3), at(start + turned, 0.3 + along), 0.99 * np.pi * R)
        assert length == pytest.approx(expected, abs=1e-11)
        for tangent, angle in ((first, start), (last, start + turned)):
            exact = R * turned * (np.cos(angle) * side - np.sin(angle) * out) + along * axis
            np.testing.assert_allclose(tangent, exact / expected, rtol=0.0, atol=1e-10)


def test_circles_of_a_torus():
    """Along the outer and inner equator, and around the tube."""
    R, r = 2.0, 0.5
    surface = S.Torus(R, r)
    for rho in (R + r, R - r):
        for length in (0.02, 0.3, 1.5):
            angle = length / rho
            end = [rho * np.cos(angle), rho * np.sin(angle), 0.0]
            found, first, last = distance(surface, [rho, 0.0, 0.0], end, 1.57)
            assert found == pytest.approx(length, abs=1e-12)
            np.testing.assert_allclose(first, [0.0, 1.0, 0.0], atol=1e-11)
            np.testing.assert_allclose(last, [-np.sin(angle), np.cos(angle), 0.0], atol=1e-11)
    for angle in (0.02, 1.0, 3.0):
        end = [R + r * np.cos(angle), 0.0, r * np.sin(angle)]
        found, first, last = distance(surface, [R + r, 0.0, 0.0], end, 1.57)
        assert found == pytest.approx(r * angle, abs=1e-12)
        np.testing.assert_allclose(first, [0.0, 0.0, 1.0], atol=1e-11)
        np.testing.assert_allclose(last, [-np.sin(angle), 0.0, np.cos(angle)], atol=1e-11)


def test_a_plane_is_space():
    x = S.Plane([0.0, 0.0, 3.0], [1.0, 2.0, 2.0]).sample(100, 1, box=[[-3.0] * 3, [3.0, 3.0, 6.0]])
    flat = S.Plane([0.0, 0.0, 3.0], [1.0, 2.0, 2.0])
    states = [
        look(context_of(flat, x, lambda b, along=along: forces.WCA(b, b, 0.1, 0.7, along_surface=along)))
        for along in (False, True)
    ]
    assert states[1].potential_energy == pytest.approx(states[0].potential_energy, rel=1e-13)
    np.testing.assert_allclose(states[1].forces, states[0].forces, rtol=1e-11, atol=1e-11)


# Independent solutions -----------------------------------------------------------------------------------------------


def shot(accelerations, start, toward, end, place):
    """Velocities at the ends of the geodesic from one point to another, in coordinates (u, w), in unit time;
    `accelerations` are minus the Christoffel symbols times velocities."""

    def fly(v):
        flown = solve_ivp(lambda _, y: [*y[2:], *accelerations(*y)], (0.0, 1.0), [*start, *v], method="DOP853",
                          rtol=3e-14, atol=1e-15)  # fmt: skip
        return flown.y[:, -1]

    v = fsolve(lambda v: fly(v)[:2] - end, toward, xtol=1e-13)
    last = fly(v)
    assert np.abs(place(*last[:2]) - place(*end)).max() < 1e-12
    return v, last[2:]


@pytest.mark.parametrize("seed", range(6))
def test_geodesics_of_a_torus(seed):
    """(u, w) around the axis and the tube: u'' = 2 r sin w u' w'/ρ, w'' = -ρ sin w u'²/r."""
    R, r = 2.0, 0.5
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.0, 2.0 * np.pi, 2)
    end = start + rng.uniform(-1.0, 1.0, 2) * [0.35, 1.9]

    def place(u, w):
        return np.array([(R + r * np.cos(w)) * np.cos(u), (R + r * np.cos(w)) * np.sin(u), r * np.sin(w)])

    def velocity(u, w, du, dw):
        rho = R + r * np.cos(w)
        return np.array([
            -rho * np.sin(u) * du - r * np.sin(w) * np.cos(u) * dw,
            rho * np.cos(u) * du - r * np.sin(w) * np.sin(u) * dw,
            r * np.cos(w) * dw,
        ])  # fmt: skip

    def accelerations(u, w, du, dw):
        rho = R + r * np.cos(w)
        return 2.0 * r * np.sin(w) * du * dw / rho, -rho * np.sin(w) * du**2 / r

    v, last = shot(accelerations, start, end - start, end, place)
    first = velocity(*start, *v)
    expected = np.linalg.norm(first)
    assert expected < 1.57
    length, a, b = distance(S.Torus(R, r), place(*start), place(*end), 1.5705)
    assert length == pytest.approx(expected, abs=1.6e-10 * 0.1)
    np.testing.assert_allclose(a, first / expected, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(b, velocity(*end, *last) / expected, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_geodesics_of_an_ellipsoid(seed):
    """x'' = -(x'.D x')/|D x|² D x with D = diag(1/a²), shot from one end by SciPy."""
    axes = np.array([1.0, 1.5, 0.7])
    surface = S.Ellipsoid(axes)
    d = 1.0 / axes**2
    cutoff = 0.99 * np.pi * axes.min() ** 2 / axes.max()
    a, b = pairs_within(surface, 1, seed, 0.7 * cutoff, 0.9 * cutoff)[0]
    normal = d * a / np.linalg.norm(d * a)
    e = np.linalg.svd(normal[None])[2][1:]

    def fly(v):
        def slope(_, y):
            x, u = y[:3], y[3:]
            return [*u, *(-(u * d * u).sum() / ((d * x) ** 2).sum() * d * x)]

        return solve_ivp(slope, (0.0, 1.0), [*a, *(v @ e)], method="DOP853", rtol=3e-14, atol=1e-15).y[:, -1]

    # Of the end, what is tangent there.
    far = np.linalg.svd((d * b)[None])[2][1:]
    v = fsolve(lambda v: far @ (fly(v)[:3] - b), e @ (b - a), xtol=1e-13)
    last = fly(v)
    assert np.abs(last[:3] - b).max() < 1e-12
    expected = np.linalg.norm(v)
    length, first, final = distance(surface, a, b, cutoff)
    if expected >= cutoff:
        assert length == cutoff
        return
    assert length == pytest.approx(expected, abs=1e-11)
    np.testing.assert_allclose(first, v @ e / expected, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(final, last[3:] / expected, rtol=0.0, atol=1e-10)


# A debug or sanitizer run takes two of them, one with flat places.
SHAPES = {
    "torus": S.Torus(2.0, 0.5, center=[3.0, 1.0, 0.0], axis=[1.0, 2.0, 2.0]),
    "ellipsoid": S.Ellipsoid([1.0, 1.5, 0.7]),
    "genus 2": S.Lemniscate(2, a=4.0, r=0.6),
    "superellipsoid": S.Polynomial("x**4 + y**4 + z**4 - 16", bounding_box=[[-2.1] * 3, [2.1] * 3]),
}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in ("torus", "genus 2"))) for name in SHAPES]


@pytest.mark.parametrize("name", NAMES)
def test_forces_are_the_gradient_of_the_energy(name):
    """By central differences of the energy along the surface, of all that beads get from several others."""
    surface = SHAPES[name]
    cutoff = 0.95 * np.pi / surface.largest_curvature
    middle = surface.sample(1, seed=4)[0]
    x = surface.sample(4000, seed=5)
    x = x[np.linalg.norm(x - middle, axis=1) < 0.7 * cutoff][:6]
    assert len(x) == 6

    def make(beads):
        return forces.Ricker(beads, beads, 1.0, 0.4 * cutoff, cutoff=cutoff, along_surface=True)

    context = context_of(surface, x, make)
    state = look(context)

    def energy(x):
        context.set_positions(x)
        return look(context).potential_energy

    h = 1e-3 * cutoff
    scale = np.abs(state.forces).max()
    for i, c in np.ndindex(3, 3):
        step = np.zeros_like(x)
        step[i, c] = h
        near, far = (
            (energy(surface.project(x + k * step)) - energy(surface.project(x - k * step))) / (2.0 * k * h)
            for k in (1.0, 2.0)
        )
        # Of fourth order.
        assert -(4.0 * near - far) / 3.0 == pytest.approx(state.forces[i, c], abs=1e-8 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_as_far_from_a_to_b_as_from_b_to_a(name):
    """And the two pull with the same strength, along the surface."""
    surface = SHAPES[name]
    cutoff = 0.95 * np.pi / surface.largest_curvature
    for a, b in pairs_within(surface, 10, 2, 0.05 * cutoff, 0.8 * cutoff):
        there, at_a, at_b = distance(surface, a, b, cutoff)
        back, from_b, from_a = distance(surface, b, a, cutoff)
        assert there >= np.linalg.norm(b - a) - 1e-13
        if there == cutoff:
            assert back == cutoff
            continue
        assert back == pytest.approx(there, abs=1e-13 * max(cutoff, 1.0))
        np.testing.assert_allclose(from_a, -at_a, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(from_b, -at_b, rtol=0.0, atol=1e-10)
        normal = surface.gradient([a, b])
        for tangent, n in zip((at_a, at_b), normal, strict=True):
            assert np.linalg.norm(tangent) == pytest.approx(1.0, abs=1e-12)
            assert abs(tangent @ n) < 1e-12 * np.linalg.norm(n)


@pytest.mark.parametrize("name", NAMES)
def test_all_that_are_near_are_found(name):
    """As many points per geodesic as it takes, at cutoffs up to the longest: lengths are those of twice as many pieces
    along the way, and no pair is lost."""
    surface = SHAPES[name]
    cutoff = 0.99 * np.pi / surface.largest_curvature
    x = surface.sample(4000, seed=5)
    middle = x[np.argmax(surface.principal_curvatures(x))]
    x = x[np.argsort(np.linalg.norm(x - middle, axis=1))][:60]
    state = look(context_of(surface, x, soft(cutoff)))
    assert state.potential_energy > 0.0
    for a, b in pairs_within(surface, 6, 7, 0.5 * cutoff, 0.9 * cutoff):
        whole, first, _ = distance(surface, a, b, cutoff)
        if whole == cutoff:
            continue
        # The middle of the way is as far from both ends, and the way to it begins in the same direction.
        half = walk(surface, a, 0.5 * whole * first)
        one, begins, _ = distance(surface, a, half, cutoff)
        other, _, _ = distance(surface, half, b, cutoff)
        assert one == pytest.approx(0.5 * whole, abs=1e-10 * cutoff)
        assert other == pytest.approx(0.5 * whole, abs=1e-10 * cutoff)
        np.testing.assert_allclose(begins, first, rtol=0.0, atol=1e-9)


def walk(surface, a, v):
    """Where the geodesic with velocity v at a is after unit time."""

    def slope(_, y):
        x, u = y[:3], y[3:]
        g, h = surface.gradient([x])[0], surface.hessian([x])[0]
        return [*u, *(-(u @ h @ u) / (g @ g) * g)]

    return solve_ivp(slope, (0.0, 1.0), [*a, *v], method="DOP853", rtol=1e-13, atol=1e-15).y[:3, -1]


# What is kept --------------------------------------------------------------------------------------------------------


def swarm(surface, n, cutoff, timestep, seed=1, word="BAB", threads=1, **options):
    x = surface.sample(n, seed)

    def make(beads, **options):
        return forces.Ricker(beads, beads, 1.0, 0.35 * cutoff, cutoff=cutoff, along_surface=True, **options)

    context = context_of(surface, x, make, threads=threads, word=word, timestep=timestep, **options)
    v = np.random.default_rng(seed).normal(size=x.shape)
    context.set_velocities(v)
    return context


@pytest.mark.slow
def test_angular_momentum_on_a_sphere():
    """Two beads pull each other along one great circle: their torques cancel."""
    center = np.array([1.0, 2.0, 3.0])
    surface = S.Sphere(2.0, center)
    context = swarm(surface, 30, 5.0, 0.01)
    state = look(context)
    np.testing.assert_allclose(np.cross(state.positions - center, state.forces).sum(axis=0), 0.0, atol=1e-11)
    before = np.cross(state.positions - center, state.velocities).sum(axis=0)
    context.step(500)
    state = look(context)
    after = np.cross(state.positions - center, state.velocities).sum(axis=0)
    np.testing.assert_allclose(after, before, rtol=0.0, atol=1e-10)
    assert np.abs(state.velocities - v_first(surface)).max() > 0.5


def v_first(surface):
    context = swarm(surface, 30, 5.0, 0.01)
    return look(context).velocities


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torus", "genus 2"])
@pytest.mark.parametrize("word", ["BAB", "BAGAB"])
def test_energy_falls_with_the_square_of_the_timestep(name, word):
    surface = SHAPES[name]
    cutoff = 0.9 * np.pi / surface.largest_curvature
    time, errors = 0.64, []
    for h in (0.02, 0.01, 0.005):
        context = swarm(surface, 40, cutoff, h * cutoff, word=word)
        start = look(context).total_energy
        worst = 0.0
        for _ in range(16):
            context.step(round(time / h / 16))
            worst = max(worst, abs(look(context).total_energy - start))
        errors.append(worst)
    order = np.log2(np.divide(errors[:-1], errors[1:]))
    assert errors[-1] > 1e-9
    assert (np.abs(order - 2.0) < 0.3).all(), (errors, order)


@pytest.mark.slow
def test_a_run_goes_back():
    retraced(swarm(SHAPES["torus"], 40, 1.4, 0.01), 200, atol=1e-9, least=0.1)


# Two beads in equilibrium ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_beads_on_a_sphere_in_equilibrium():
    """p(θ) ∝ sin θ exp(-U(R θ)/kT). With the chord 2 R sin(θ/2) in place of the arc R θ it is another law, which the
    sample tells from this one."""
    R, kT, depth, width = 1.0, 1.0, 3.0, 1.2
    cutoff = 2.4

    def density(theta, length):
        return np.sin(theta) * np.exp(-ricker(length(theta), depth, width, cutoff) / kT)

    def arc(theta):
        return R * theta

    def chord(theta):
        return 2.0 * R * np.sin(0.5 * theta)

    edges = np.concatenate([[0.0], np.linspace(0.75, 2.4, 10), [np.pi]])

    def shares(length):
        out = np.array([quad(density, a, b, (length,), points=[cutoff] if a < cutoff < b else None, epsabs=1e-12)[0]
                        for a, b in pairwise(edges)])  # fmt: skip
        return out / out.sum()

    law, wrong = shares(arc), shares(chord)
    sphere = S.Sphere(R)
    copies, n = 20, 80
    x = sphere.sample(2 * n * copies, seed=11).reshape(copies, 2 * n, 3)
    counts = np.zeros(len(law))
    looks = 0
    for copy in range(copies):
        topology = mp.Topology()
        beads = topology.add_surface_points(sphere, x[copy], mass=1.0, friction=2.0)
        # Of the pairs (i, n + i) alone.
        i, k = np.triu_indices(2 * n, 1)
        excluded = np.column_stack([i, k])[k != i + n]
        system = mp.System(topology)
        system.add_force(forces.Ricker(beads, beads, depth, width, cutoff=cutoff, exclusions=excluded,
                                       along_surface=True))  # fmt: skip
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.05, kT=kT, seed=copy), threads=1)
        context.set_velocities_to_temperature(kT=kT, seed=copy)
        context.step(400)
        now = context.get_state(positions=True).positions
        theta = np.arccos(np.clip((now[:n] * now[n:]).sum(axis=1), -1.0, 1.0))
        counts += np.histogram(theta, edges)[0]
        looks += n
    away = np.sqrt(((wrong - law) ** 2 / law).sum())
    check_chi_square("angles of two beads", counts, law * looks, sees=away)


# Which pairs, and which surfaces -------------------------------------------------------------------------------------


def test_nothing_reaches_through_a_hole_or_from_sheet_to_sheet():
    """Chords within the cutoff, and ways along the surface beyond it: no force, and no complaint."""
    # Through the hole of a torus, along its axis from top to bottom, and between its tubes.
    torus = S.Torus(1.0, 0.7)
    across = [[0.3, 0.0, 0.0], [-0.3, 0.0, 0.0]]
    cutoff = 0.9 * np.pi * 0.3
    assert np.linalg.norm(np.subtract(*across)) < cutoff
    state = look(context_of(torus, across, soft(cutoff)))
    assert state.potential_energy == 0.0
    assert not state.forces.any()

    # Over the tip of a long ellipsoid, by a path that is longer than the cutoff and hard to find.
    tip = [[0.02666411, 0.19864612, 5.878251], [-0.01752717, -0.24716546, 5.81288854]]
    cutoff = 0.9 * np.pi / 6.0
    assert np.linalg.norm(np.subtract(*tip)) < 0.97 * cutoff
    assert look(context_of(S.Ellipsoid([1.0, 1.0, 6.0]), tip, soft(cutoff))).potential_energy == 0.0

    # Two spheres of one function that nearly touch, and three sheets.
    spheres = S.Polynomial("((x - 1.05)**2 + y**2 + z**2 - 1)*((x + 1.05)**2 + y**2 + z**2 - 1)",
                           bounding_box=[[-2.1, -1.1, -1.1], [2.1, 1.1, 1.1]])  # fmt: skip
    rng = np.random.default_rng(1)
    n = np.column_stack([-np.ones(40), rng.uniform(-0.6, 0.6, (40, 2))])
    n[20:, 0] = 1.0
    x = n / np.linalg.norm(n, axis=1)[:, None] - 1.05 * n[:, :1] * [[1.0, 0.0, 0.0]]
    state = look(context_of(spheres, x, soft(0.9)))
    n = x - np.sign(x[:, :1]) * [[1.05, 0.0, 0.0]]
    same = np.sign(x[:, 0])[:, None] == np.sign(x[:, 0])
    arc = np.arctan2(np.linalg.norm(np.cross(n[:, None], n[None]), axis=2), n @ n.T)
    near = np.triu(same & (arc < 0.9), 1)
    through_space = np.linalg.norm(x[:, None] - x[None], axis=2) < 0.9
    assert np.triu(through_space & ~same, 1).sum() > 50
    assert state.potential_energy == pytest.approx(0.5 * ((0.9 - arc[near]) ** 2).sum(), rel=1e-11)

    sheets = S.Polynomial("z*(z - 0.1)*(z + 0.1)", bounding_box=[[-1.0] * 3, [1.0] * 3])
    x = np.column_stack([rng.uniform(-1.0, 1.0, (60, 2)), np.repeat([-0.1, 0.0, 0.1], 20)])
    state = look(context_of(sheets, x, soft(0.5)))
    r = np.linalg.norm(x[:, None] - x[None], axis=2)
    near = np.triu((r < 0.5) & (x[:, None, 2] == x[:, 2]), 1)
    assert state.potential_energy == pytest.approx(0.5 * ((0.5 - r[near]) ** 2).sum(), rel=1e-11)


@pytest.mark.parametrize(
    ("surface", "x", "longest"),
    [
        (S.Sphere(2.0), [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 2.0 * np.pi),
        (S.Cylinder(2.0), [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], 2.0 * np.pi),
        (S.Torus(2.0, 0.5), [[2.5, 0.0, 0.0], [2.0, 0.0, 0.5]], 0.5 * np.pi),
        (S.Ellipsoid([1.0, 1.0, 2.0]), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 0.5 * np.pi),
    ],
    ids=["sphere", "cylinder", "torus", "ellipsoid"],
)
def test_the_longest_cutoff(surface, x, longest):
    """π times the smallest radius of curvature: half of the shortest closed geodesic of the first three."""
    context_of(surface, x, soft(0.9999 * longest)).step(1)
    with pytest.raises(mp.errors.ParameterError, match=r"SoftSphere: two beads can .* must be below") as error:
        context_of(surface, x, soft(1.0001 * longest))
    assert float(str(error.value).split("must be below ")[1].split()[0]) == pytest.approx(longest, rel=1e-4)


def test_largest_curvatures():
    assert S.Ellipsoid([1.0, 1.5, 0.4]).largest_curvature == pytest.approx(1.5 / 0.4**2, rel=1e-4)
    assert S.Torus(1.0, 0.9).largest_curvature == pytest.approx(10.0, rel=1e-4)
    assert S.Torus(1.0, 0.2).largest_curvature == pytest.approx(5.0, rel=1e-6)
    at = S.Ellipsoid([1.0, 1.0, 2.0]).principal_curvatures([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(at, [1.0, 2.0], rtol=1e-7)
    hyperboloid = S.Polynomial("x**2 + y**2 - z**2 - 1")
    np.testing.assert_allclose(hyperboloid.principal_curvatures([[1.0, 0.0, 0.0]]), [1.0], rtol=1e-7)


def refused(make, text):
    refuses((mp.errors.TopologyError, mp.errors.ParameterError), text, make)


def test_refusals():
    topology = mp.Topology()
    sphere = S.Sphere(1.0)
    walkers = topology.add_surface_points(sphere, sphere.sample(5, 1), mass=1.0, name="walkers")
    others = topology.add_surface_points(S.Sphere(2.0), S.Sphere(2.0).sample(5, 1), mass=1.0, name="others")
    free = topology.add_beads(np.zeros((3, 3)), mass=1.0, name="free")
    python = S.PythonSurface(lambda p: (p**2).sum(axis=1) - 1.0, lambda p: 2.0 * p)
    snakes = topology.add_surface_points(python, sphere.sample(5, 2), mass=1.0, name="snakes")

    def add(a, b):
        return mp.Context(system_with(topology, forces.SoftSphere(a, b, 1.0, 0.5, along_surface=True)),
                          mp.VerletIntegrator(0.01))  # fmt: skip

    refused(lambda: add(walkers, others), r"'walkers'.*'others'.* live on different surfaces")
    refused(lambda: add(np.array([0, 1]), np.array([6, 7])), r"'walkers'.*'others'.* live on different surfaces")
    refused(lambda: add(walkers, free), r"group_b: .*'free'.* has no distance along a surface")
    refused(lambda: add(free.beads, free.beads), r"SoftSphere: .*'free'.* has no distance along a surface")
    refused(lambda: add(snakes, snakes), r"'snakes'.* Python functions")
    refused(lambda: add(mp.Sites.beads(walkers), mp.Sites.beads(walkers)), "sites have no distance along a surface")
    refused(lambda: forces.LennardJones(walkers, walkers, 1.0, 0.2, along_surface=True), "give cutoff=")


def test_handles_with_the_same_surface():
    """Two kinds of beads with each other; as if they were one."""
    x = S.Torus(2.0, 0.5).sample(200, seed=1)
    topology = mp.Topology()
    a = topology.add_surface_points(S.Torus(2.0, 0.5), x[:90], mass=1.0)
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    b = topology.add_surface_points(S.Torus(2.0, 0.5), x[90:], mass=2.0)
    system = system_with(topology, forces.SoftSphere([a, b], [a, b], 1.0, 1.0, along_surface=True))
    two = look(mp.Context(system, mp.VerletIntegrator(0.01), threads=1))
    one = look(context_of(S.Torus(2.0, 0.5), x, soft(1.0)))
    np.testing.assert_allclose(two.forces[[*a.beads, *b.beads]], one.forces, rtol=0.0, atol=1e-11)
    assert two.potential_energy == pytest.approx(one.potential_energy, rel=1e-12)

    system = system_with(topology, forces.SoftSphere(a, b, 1.0, 1.0, along_surface=True, exclusions=[[0, 91]]))
    mixed = look(mp.Context(system, mp.VerletIntegrator(0.01), threads=1)).potential_energy
    parts = 0.0
    for own in (a, b):
        system = system_with(topology, forces.SoftSphere(own, own, 1.0, 1.0, along_surface=True))
        parts += look(mp.Context(system, mp.VerletIntegrator(0.01), threads=1)).potential_energy
    assert mixed + parts == pytest.approx(two.potential_energy, rel=0.01)


def test_inactive_rows_and_no_beads():
    x = S.Torus(2.0, 0.5).sample(50, seed=1)
    topology = mp.Topology()
    walkers = topology.add_surface_points(S.Torus(2.0, 0.5), x, mass=1.0, capacity=80)
    context = mp.Context(system_with(topology, forces.SoftSphere(walkers, walkers, 1.0, 1.0, along_surface=True)),
                         mp.VerletIntegrator(0.01), threads=1)  # fmt: skip
    alone = look(context_of(S.Torus(2.0, 0.5), x, soft(1.0)))
    assert look(context).potential_energy == alone.potential_energy
    with topology.edit():
        walkers.remove(walkers.beads[10:])
    fewer = look(context_of(S.Torus(2.0, 0.5), x[:10], soft(1.0)))
    assert look(context).potential_energy == fewer.potential_energy
    with topology.edit():
        walkers.remove(walkers.beads)
    assert look(context).potential_energy == 0.0


def test_beads_in_one_place():
    """No direction, no force; the energy is that of no distance."""
    x = [[2.5, 0.0, 0.0], [2.5, 0.0, 0.0]]
    state = look(context_of(S.Torus(2.0, 0.5), x, soft(1.0)))
    assert state.potential_energy == 0.5
    assert not state.forces.any()


def test_it_is_remembered():
    topology = mp.Topology()
    sphere = S.Sphere(1.0)
    walkers = topology.add_surface_points(sphere, sphere.sample(5, 1), mass=1.0)
    system = system_with(topology, forces.Ricker(walkers, walkers, 1.0, 0.5, along_surface=True))
    again = pickle.loads(pickle.dumps(system))
    mine, theirs = (look(mp.Context(s, mp.VerletIntegrator(0.01), threads=1)) for s in (system, again))
    assert mine.potential_energy == theirs.potential_energy
    assert again.forces[0].along_surface
    assert not again.forces[0].conserves_momentum


def test_a_bound_state_oscillates_with_its_arc():
    """Two beads in a well of depth U_e at the arc r_e on a sphere: their distance along it at rest is r_e, where the
    chord is shorter."""
    sphere = S.Sphere(1.0)
    rest = brentq(lambda theta: theta - 1.0, 0.5, 1.5)
    x = [[1.0, 0.0, 0.0], [np.cos(rest), np.sin(rest), 0.0]]

    def make(beads, along_surface=True):
        return forces.Ricker(beads, beads, 1.0, 1.0, cutoff=3.0, along_surface=along_surface)

    assert np.abs(look(context_of(sphere, x, make)).forces).max() < 1e-12
    assert np.abs(look(context_of(sphere, x, make, along_surface=False)).forces).max() > 0.3
