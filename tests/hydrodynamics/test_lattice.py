"""Spheres in a periodic box: Ewald's sum against sums over images, published series and formulas, and equilibrium."""

import itertools

import numpy as np
import pytest
from builders import refuses, system_with
from scipy.special import erfc

import medyanpy as mp
from medyanpy import forces
from medyanpy._kernels.selected import hydrodynamics
from medyanpy.hydrodynamics import RotnePrager, mobility_matrix
from medyanpy.testing import check_mean, check_variance

ETA = 1.0 / (8.0 * np.pi)
BOX = np.array([9.0, 7.5, 11.0])


def crowd(seed, n=6, largest=1.8):
    """Spheres of many sizes, some overlapping, some within others, some outside of the box."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 2.0, (n, 3)) * BOX
    x[1] = x[0] + 0.3 * rng.normal(size=3) + [0, 0, BOX[2]]
    x[2] = x[0] + [1e-3, 0, 0]
    return x, rng.uniform(0.2, largest, n)


def matrix(x, a, box, splitting, *, accuracy=1e-15, threads=1, turning=True):
    """(6n, 6n), by columns of the kernel."""
    n, width = len(x), 6 if turning else 3
    out = np.zeros((n, 6, n, 6))
    for j, k in itertools.product(range(n), range(width)):
        load = np.zeros((2, n, 6))
        load[0, j, k] = 1.0
        load[1, j, k] = -2.0
        v = hydrodynamics.motions(np.ascontiguousarray(x), a, load, n if turning else 0, ETA, False, np.array(box),
                                  accuracy, splitting, threads)  # fmt: skip
        np.testing.assert_allclose(v[1], -2.0 * v[0], rtol=0, atol=1e-14 * np.abs(v).max())
        out[:, :, j, k] = v[0]
    own = 1.0 / (8.0 * np.pi * ETA)
    for i in range(n):
        out[i, range(6), i, range(6)] += own * np.repeat([4.0 / 3.0 / a[i], 1.0 / a[i] ** 3], 3)
    return out[:, :width, :, :width].reshape(width * n, width * n)


def beenakker(x, a, length, splitting):
    """(3n, 3n) for equal spheres of radius a in a cube, in units of one alone: his equations (4) to (6), 1986."""
    n, s, out = len(x), splitting, np.zeros((len(x), 3, len(x), 3))
    cells = length * np.array(list(itertools.product(range(-2, 3), repeat=3)))
    k = 2 * np.pi / length * np.array(list(itertools.product(range(-10, 11), repeat=3)))
    k = k[(k != 0).any(axis=1)]
    kk = (k**2).sum(axis=1)
    size = (a - a**3 * kk / 3) * (1 + kk / (4 * s**2) + kk**2 / (8 * s**4)) * 6 * np.pi / kk
    size *= np.exp(-kk / (4 * s**2)) / length**3
    for i, j in itertools.product(range(n), range(n)):
        d = x[i] - x[j] + cells
        d = d[(d != 0).any(axis=1)]
        r = np.linalg.norm(d, axis=1)
        e, c = np.exp(-((s * r) ** 2)) / np.sqrt(np.pi), erfc(s * r)
        one = c * (0.75 * a / r + 0.5 * (a / r) ** 3) + e * (
            4 * s**7 * a**3 * r**4 + 3 * s**3 * a * r**2 - 20 * s**5 * a**3 * r**2 - 4.5 * s * a + 14 * s**3 * a**3
            + s * a**3 / r**2
        )  # fmt: skip
        two = c * (0.75 * a / r - 1.5 * (a / r) ** 3) + e * (
            -4 * s**7 * a**3 * r**4 - 3 * s**3 * a * r**2 + 16 * s**5 * a**3 * r**2 + 1.5 * s * a - 2 * s**3 * a**3
            - 3 * s * a**3 / r**2
        )  # fmt: skip
        wave = size * np.cos(k @ (x[i] - x[j]))
        out[i, :, j] = np.eye(3) * (one.sum() + wave.sum())
        out[i, :, j] += np.einsum("n,ni,nj->ij", two / r**2, d, d) - np.einsum("n,ni,nj->ij", wave / kk, k, k)
        if i == j:
            out[i, :, j] += np.eye(3) * (1 - 6 * s * a / np.sqrt(np.pi) + 40 / 3 * (s * a) ** 3 / np.sqrt(np.pi))
    return out.reshape(3 * n, 3 * n)


@pytest.mark.parametrize("splitting", [0.35, 0.5])
def test_against_the_formula_of_beenakker(splitting):
    x = np.array([[0.3, 0.1, -0.2], [3.0, 1.0, 0.4], [-2.0, 2.5, 4.1]])
    expected = beenakker(x, 1.0, 9.0, splitting)
    m = mobility_matrix(x, 1.0, 1.0 / (6 * np.pi), box=(9.0, 9.0, 9.0))
    np.testing.assert_allclose(m, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("length", [4.0, 10.0, 300.0])
def test_one_sphere_in_a_cube(length):
    """Hasimoto's 1 - 2.837297 a/L + (4 pi/3)(a/L)^3: all that spheres without stresslets have of his series. It turns
    with 1 - (4 pi/3)(a/L)^3."""
    m = mobility_matrix([[0.4, -3.0, 7.0]], 1.0, ETA, rotation=True, box=(length,) * 3)
    q = 1.0 / length
    expected = np.repeat([4 / 3 * (1 - 2.837297479480619 * q + 4 * np.pi / 3 * q**3), 1 - 4 * np.pi / 3 * q**3], 3)
    np.testing.assert_allclose(m, np.diag(expected), rtol=0, atol=3e-13)


@pytest.mark.parametrize("turning", [True, False])
def test_the_splitting_does_not_matter(turning):
    for seed in range(3):
        x, a = crowd(seed)
        found = [matrix(x, a, BOX, s, turning=turning) for s in (0.25, 0.45, 0.9)]
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=0, atol=1e-10 * 4 / 3 / a.min())
        m = mobility_matrix(x, a, ETA, rotation=turning, box=tuple(BOX))
        np.testing.assert_allclose(m, found[0], rtol=0, atol=1e-10 * 4 / 3 / a.min())


@pytest.mark.parametrize("accuracy", [1e-4, 1e-6, 1e-9])
def test_the_error_is_what_was_asked_for(accuracy):
    """Relative to the mobility of a sphere, whatever the splitting."""
    for seed, s in itertools.product(range(3), (0.0, 0.2, 0.5)):
        x, _ = crowd(seed, n=8)
        exact = mobility_matrix(x, 1.2, ETA, rotation=True, box=tuple(BOX))
        off = matrix(x, np.full(8, 1.2), BOX, s, accuracy=accuracy) - exact
        scale = np.sqrt(np.diagonal(exact))
        assert 1e-6 * accuracy < np.abs(off / scale[:, None] / scale).max() < accuracy


def test_symmetric_and_positive_definite():
    """However spheres overlap and however the sum is split; nothing demands that forces add up to zero."""
    for seed, s in itertools.product(range(6), (0.2, 0.5, 1.2)):
        x, a = crowd(seed)
        m = matrix(x, a, BOX, s)
        scale = np.sqrt(np.diagonal(m))
        m = m / scale[:, None] / scale
        assert np.abs(m - m.T).max() < 1e-12
        assert np.linalg.eigvalsh(m)[0] > 1e-5


def test_eight_boxes_are_one():
    """The same spheres and loads in all eight eighths of a box: a box of half the lengths."""
    x, a = crowd(4)
    rng = np.random.default_rng(2)
    f = rng.normal(size=(len(x), 6))
    small = mobility_matrix(x, a, ETA, rotation=True, box=tuple(BOX)) @ f.ravel()
    shifts = np.array(list(itertools.product((0, 1), repeat=3))) * BOX
    many = np.concatenate([x + s for s in shifts])
    large = mobility_matrix(many, np.tile(a, 8), ETA, rotation=True, box=tuple(2 * BOX)) @ np.tile(f.ravel(), 8)
    np.testing.assert_allclose(large.reshape(8, -1), np.tile(small, (8, 1)), rtol=0, atol=1e-11 * np.abs(small).max())


def test_any_image_will_do():
    x, a = crowd(3)
    other = x + BOX * np.random.default_rng(1).integers(-3, 4, x.shape)
    one, two = (mobility_matrix(places, a, ETA, rotation=True, box=tuple(BOX)) for places in (x, other))
    np.testing.assert_allclose(two, one, rtol=0, atol=1e-11 / a.min() ** 3)


def test_against_the_sum_over_images():
    """Eight forces at the corners of a small cube, whose flow falls as r^-4: the sum over images has a limit by itself.
    The tensor of open space is summed, over cubes of 13, 25 and 37 boxes, with the rest by extrapolation."""
    corners = np.array(list(itertools.product((0, 1), repeat=3)), float)
    sign = np.prod(1 - 2 * corners, axis=1)
    rng = np.random.default_rng(1)
    x = 1.7 * corners + 0.5
    f = np.outer(sign, rng.normal(size=3))
    length, target, a = 10.0, np.array([[4.0, 1.0, 7.0]]), 0.8
    everyone = np.vstack([target, x])
    m = mobility_matrix(everyone, a, ETA, box=(length,) * 3)
    expected = (m[:3, 3:] @ f.ravel()).copy()

    def summed(most):
        cells = np.array(list(itertools.product(range(-most, most + 1), repeat=3))) * length
        total = np.zeros(3)
        for corner, force in zip(x, f, strict=True):
            d = target - (corner + cells)
            r = np.linalg.norm(d, axis=1)[:, None]
            c = 2 * a * a / 3
            total += ((1 / r + c / r**3) * force + (1 / r**3 - 3 * c / r**5) * d * (d @ force)[:, None]).sum(axis=0)
        return total / (8 * np.pi * ETA)

    sums, sides = [summed(most) for most in (6, 12, 18)], np.array([6.5, 12.5, 18.5])
    off = np.array([np.abs(s - expected).max() for s in sums])
    # What is beyond falls as the square of the side.
    np.testing.assert_allclose(off * sides**2, off[0] * sides[0] ** 2, rtol=0.01)
    limit = (sides[2] ** 2 * sums[2] - sides[1] ** 2 * sums[1]) / (sides[2] ** 2 - sides[1] ** 2)
    np.testing.assert_allclose(limit, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_a_large_box_is_open_space():
    """But for Hasimoto's term, 2.837297/L, which all have in common, and terms of order 1/L^3: also of spheres that
    overlap, and of how they turn."""
    x, a = crowd(7)
    x = x - BOX * np.rint(x / BOX)
    open_space = mobility_matrix(x, a, ETA, rotation=True)
    for length in (1e3, 1e4):
        m = mobility_matrix(x, a, ETA, rotation=True, box=(length,) * 3)
        common = np.kron(np.ones((len(x), len(x))), np.diag([1.0, 1, 1, 0, 0, 0]))
        off = m + common * 4 / 3 * 2.837297479480619 / length - open_space
        assert np.abs(off).max() < 2e3 * length**-3 + 1e-12 / a.min() ** 3


def test_no_drift():
    """The divergence of the mobility is zero in a box, too."""
    h = 1e-3
    x, a = crowd(5, n=4)
    out = np.zeros((24, 4, 3))
    for j, k in itertools.product(range(4), range(3)):
        for steps, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            moved = x.copy()
            moved[j, k] += steps * h
            m = mobility_matrix(moved, a, ETA, rotation=True, box=tuple(BOX))
            out[:, j, k] += weight * m[:, 6 * j + k] / (12 * h)
    keep = [0, 1, 3]  # the third is within the first, where the tensor has a jump in its derivatives
    assert np.abs(out).max() > 0.05
    assert np.abs(out.sum(axis=(1, 2)).reshape(4, 6)[keep]).max() < 1e-7


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(3)
    x, a = rng.uniform(0, 40, (150, 3)), rng.uniform(0.5, 1.5, 150)
    load = rng.normal(size=(2, 150, 6))
    found = [
        hydrodynamics.motions(x, a, load, 70, ETA, False, np.full(3, 40.0), 1e-6, 0.0, threads).tobytes()
        for threads in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


def two(box, integrator, *, spring=None, mass=1.0):
    topology = mp.Topology()
    balls = topology.add_balls([[0, 0, 0], [2.5, 0, 0]], 1.0, mass=mass, friction=6 * np.pi * ETA)
    system = mp.System(topology, box=box)
    if spring is not None:
        system.add_force(forces.HarmonicBonds([balls.beads], spring, 0.0))
    system.add_hydrodynamics(RotnePrager(ETA, balls))
    return mp.Context(system, integrator)


def test_noise_of_d():
    """2 kT h M of two balls in a small box: sums and differences of their steps. 20 000 steps see 10 % of each."""
    box, h, n = (6.0, 6.0, 6.0), 1e-6, 20_000
    context = two(box, mp.BrownianIntegrator(h, kT=1.0, seed=4))
    x = context.get_state(positions=True).positions
    m = mobility_matrix(x, 1.0, ETA, box=box)
    open_space = mobility_matrix(x, 1.0, ETA)
    steps, before = [], x
    for _ in range(n):
        context.step(1)
        now = context.get_state(positions=True).positions
        steps.append((now - before).ravel())
        before = now
    steps = np.array(steps) / np.sqrt(2 * h)
    for k, sign in itertools.product(range(3), (1, -1)):
        u = np.zeros(6)
        u[k], u[3 + k] = 1.0, sign
        assert abs(u @ (open_space - m) @ u) > 0.12 * (u @ m @ u) or sign < 0
        check_variance(f"motion {k}, {sign}", ((steps @ u) ** 2).sum(), n, u @ m @ u, sees=0.1)


def test_a_dumbbell_in_a_small_box():
    """Equilibrium knows neither of the fluid nor of images: the variance of a spring, for which BAOAB is exact. The
    test sees 12 %."""
    context = two((14.0, 14.0, 14.0), mp.SplittingIntegrator("BAOAB", 0.8, kT=1.0, seed=9), spring=1.0)
    context.step(500)
    found = []
    for _ in range(10_000):
        context.step(1)
        found.append(np.diff(context.get_state(positions=True).positions, axis=0)[0])
    square = (np.array(found) ** 2).mean(axis=1)
    check_mean("square of a component of the distance", square, 1.0, sees=0.12, time_series=True)


@pytest.mark.parametrize("word", ["D", "O"])
def test_a_box_that_is_set_is_as_one_from_the_start(word):
    """Nothing of the old box is left, to the bit."""
    found = []
    for first in ((8.0, 8.0, 8.0), (9.0, 8.5, 12.0)):
        integrator = (
            mp.BrownianIntegrator(0.05, kT=1.0, seed=2)
            if word == "D"
            else mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=2)
        )
        context = two(first, integrator)
        context.step(3)
        context.set_box((9.0, 8.5, 12.0))
        context.set_positions([[0, 0, 0], [1.5, 0.5, 30.0]])
        context.set_velocities(np.zeros((2, 3)))
        context.step(2)
        found.append(context.get_state(positions=True).positions)
    assert (found[0] == found[1]).all()
    assert np.abs(found[0] - [[0, 0, 0], [1.5, 0.5, 30.0]]).min() > 1e-6


def test_an_ideal_gas_under_pressure():
    """A box that changes: n balls that feel each other through the fluid alone have the mean volume (n + 1) kT/P."""
    n, pressure = 5, 2e-3
    rng = np.random.default_rng(3)
    topology = mp.Topology()
    balls = topology.add_balls(rng.uniform(0, 12, (n, 3)), 0.5, mass=1.0, friction=3 * np.pi * ETA)
    system = mp.System(topology, box=(14.0, 14.0, 14.0))
    system.add_jump(mp.jumps.BoxArea(pressure=pressure, rate=40.0, step=0.5))
    system.add_hydrodynamics(RotnePrager(ETA, balls))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.1, kT=1.0, seed=3))
    context.step(500)
    volumes = []
    for _ in range(6000):
        context.step(1)
        volumes.append(np.prod(context.get_state().box))
    expected = (n + 1) / pressure
    check_mean("volume", np.array(volumes), expected, sees=0.15 * expected, time_series=True)


BALLS = mp.Topology().add_balls([[0, 0, 0], [3.0, 0, 0]], 1.0, mass=1.0, friction=6 * np.pi * ETA)


@pytest.mark.parametrize(("box", "arguments", "named"), [
    ((9.0, 9.0, None), {}, "the box is open along z, but hydrodynamic interactions in a box need all three"),
    ((9.0, 9.0, 9.0), dict(wall=mp.boundaries.Plane((0, 0, -5.0))), "have a wall or a periodic box: leave one of them"),
    ((9.0, 9.0, 9.0), dict(velocity_gradient=np.diag([1.0, -1.0, 0])), "velocity_gradient has no meaning among the"),
    ((9.0, 3.9, 9.0), {}, "largest spheres touch at 2 nm, and the box is 3.9 nm long along y but must be >= 4"),
])  # fmt: skip
def test_boxes_that_are_refused(box, arguments, named):
    system = mp.System(BALLS.topology, box=box)
    system.add_hydrodynamics(RotnePrager(ETA, BALLS, **arguments))
    refuses(mp.ParameterError, named, mp.Context, system, mp.BrownianIntegrator(1e-3, kT=1.0))
    if "velocity_gradient" not in arguments:
        named = "box is 9 × 3.9 × 9 nm but must be >= 4 along each direction" if box[1] == 3.9 else named
        refuses(mp.ParameterError, named, mobility_matrix, BALLS.positions, 1.0, ETA, box=box, **arguments)


def test_a_wind_goes_through_a_box():
    system = system_with(BALLS.topology, forces.UniformField(BALLS, (0, 0, 0.0)), box=(9.0, 9.0, 9.0))
    system.add_hydrodynamics(RotnePrager(ETA, BALLS, velocity=(2.0, 0, 0)))
    context = mp.Context(system, mp.BrownianIntegrator(1e-3, kT=1e-30))
    context.step(100)
    moved = context.get_state(positions=True).positions - BALLS.positions
    np.testing.assert_allclose(moved, [[0.2, 0, 0]] * 2, rtol=0, atol=1e-12)
