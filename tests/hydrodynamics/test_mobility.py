"""Mobilities of spheres: the numbers of the literature, positive definite, without sources, and what a wall does."""

import itertools

import mpmath
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.hydrodynamics import mobility_matrix
from medyanpy.rigid.rotne_prager import FORCES_TORQUES, mobility_block

ETA = 1.0 / (8.0 * np.pi)
#: In units of 1/8πη the mobilities of one sphere of radius 1.
TRANSLATION, ROTATION = 4.0 / 3.0, 1.0


def crowd(seed, n=12, room=5.0, smallest=0.2, largest=1.6):
    """Spheres of many sizes, some overlapping, some within others."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, room, (n, 3)), rng.uniform(smallest, largest, n)


def test_two_spheres_at_three_radii():
    m = mobility_matrix([[0, 0, 0], [0, 0, 3.0]], 1.0, 1.0 / (6.0 * np.pi))
    assert m[5, 2] == pytest.approx(0.462963, abs=5e-7)
    assert m[3, 0] == pytest.approx(0.268519, abs=5e-7)
    assert m[0, 0] == pytest.approx(1.0, rel=1e-15)


def test_two_spheres_in_closed_form():
    """Rotne and Prager 1969, Yamakawa 1970: apart, of two sizes, and overlapping, of one size."""
    for r, a, b in ((5.0, 1.0, 1.0), (2.6, 0.5, 2.0), (1000.0, 1.0, 30.0)):
        m = mobility_matrix([[0, 0, 0], [0, 0, r]], [a, b], ETA)
        both = a * a + b * b
        assert m[5, 2] == pytest.approx((2.0 - 2.0 * both / (3.0 * r * r)) / r, rel=1e-14)
        assert m[3, 0] == pytest.approx((1.0 + both / (3.0 * r * r)) / r, rel=1e-14)
    for r in (0.3, 1.0, 1.9):
        m = mobility_matrix([[0, 0, 0], [0, 0, r]], 1.0, ETA) / TRANSLATION
        assert m[5, 2] == pytest.approx(1.0 - 9.0 * r / 32.0 + 3.0 * r / 32.0, rel=1e-13)
        assert m[3, 0] == pytest.approx(1.0 - 9.0 * r / 32.0, rel=1e-13)


def test_against_matrices_of_bead_models():
    """The sums over pairs, lane by lane, are the blocks that bead models are made of, and those GRPY's."""
    for seed in range(5):
        x, a = crowd(seed)
        m = mobility_matrix(x, a, ETA, rotation=True)
        np.testing.assert_allclose(m, mobility_block(x, a, x, a, FORCES_TORQUES), rtol=0, atol=3e-14 * abs(m).max())


@pytest.mark.parametrize("walled", [False, True])
def test_symmetric_and_positive_definite(walled):
    """However they lie, and however close to the wall."""
    for seed in range(60):
        x, a = crowd(seed, n=10)
        wall = None
        if walled:
            x[:, 2] = a * (1.0 + 10.0 ** np.random.default_rng(seed).uniform(-9.0, 1.0, len(a)))
            wall = mp.boundaries.Plane()
        m = mobility_matrix(x, a, ETA, rotation=True, wall=wall)
        assert abs(m - m.T).max() <= 2e-14 * abs(m).max()
        scale = np.sqrt(np.diagonal(m))
        assert np.linalg.eigvalsh(m / scale[:, None] / scale)[0] > 0.0


def columns_of_divergence(x, a, wall=None):
    """(n, 6) sum over j of the derivatives of M by the places of j, by central differences of fourth order."""
    n, h = len(x), 1e-3
    out = np.zeros((6 * n, n, 3))
    for j, k in itertools.product(range(n), range(3)):
        parts = []
        for steps, weight in ((1, 8.0), (-1, -8.0), (2, -1.0), (-2, 1.0)):
            moved = x.copy()
            moved[j, k] += steps * h
            parts.append(weight * mobility_matrix(moved, a, ETA, rotation=True, wall=wall)[:, 6 * j + k])
        out[:, j, k] = sum(parts) / (12.0 * h)
    return out.sum(axis=(1, 2)).reshape(n, 6), abs(out).max()


def test_no_drift_in_open_space():
    """The divergence of the mobility is zero: Ermak and McCammon's step needs no drift. Overlapping ones too."""
    for seed in range(4):
        x, a = crowd(seed, n=4, room=3.0, smallest=0.7)
        divergence, largest = columns_of_divergence(x, a)
        assert largest > 0.05
        assert abs(divergence).max() < 1e-8 * max(largest, 1.0)


def test_drift_at_a_wall():
    """It is that of each sphere by itself, away from the wall, by a polynomial in 1/z."""
    for seed in range(3):
        x, a = crowd(seed, n=4, room=3.0, smallest=0.7, largest=1.0)
        x[:, 2] += 1.2
        divergence, _ = columns_of_divergence(x, a, mp.boundaries.Plane())
        z = x[:, 2]
        expected = np.zeros((4, 6))
        expected[:, 2] = 1.5 / z**2 - 2.0 * a**2 / z**4 + 5.0 / 6.0 * a**4 / z**6
        assert abs(divergence - expected).max() < 1e-8


def blake(x, y):
    """Flow at x by forces at y above the plane z = 0, in units of 1/8πη (Blake 1971), in mpmath's numbers."""
    r = [x[k] - y[k] for k in range(3)]
    image = [x[0] - y[0], x[1] - y[1], x[2] + y[2]]
    s, t = (mpmath.sqrt(sum(c * c for c in v)) for v in (r, image))
    g = mpmath.zeros(3, 3)
    for i, j in itertools.product(range(3), range(3)):
        g[i, j] = (i == j) / s + r[i] * r[j] / s**3 - (i == j) / t - image[i] * image[j] / t**3
        sign = 1 if j < 2 else -1
        # d/dR_j of h R_i/R^3 - (delta_i3/R + R_i R_3/R^3).
        part = y[2] * ((i == j) / t**3 - 3 * image[i] * image[j] / t**5)
        part += (i == 2) * image[j] / t**3
        part -= ((i == j) * image[2] + image[i] * (j == 2)) / t**3 - 3 * image[i] * image[2] * image[j] / t**5
        g[i, j] += 2 * y[2] * sign * part
    return g


def by_differences(x, y, a, b):
    """(6, 6) mobility of two spheres by Faxén's laws, derivatives of Blake's flow taken by differences in 60 digits."""
    h = mpmath.mpf(10) ** -12

    def moved(p, k, s):
        q = list(p)
        q[k] += s * h
        return q

    def laplacian_x(f, x, y):
        return sum(((f(moved(x, k, 1), y) + f(moved(x, k, -1), y) - 2 * f(x, y)) / h**2 for k in range(3)),
                   mpmath.zeros(3, 3))  # fmt: skip

    def laplacian_y(f, x, y):
        return laplacian_x(lambda p, q: f(q, p), y, x)

    def of_source(x, y):
        return blake(x, y) + b * b / 6 * laplacian_y(blake, x, y)

    def along_y(f, x, y, k):
        return (f(x, moved(y, k, 1)) - f(x, moved(y, k, -1))) / (2 * h)

    def along_x(f, x, y, k):
        return (f(moved(x, k, 1), y) - f(moved(x, k, -1), y)) / (2 * h)

    def curl_y(f):
        """Of torques: T x grad_y / 2 in the place of the force."""
        def made(x, y):
            d = [along_y(f, x, y, k) for k in range(3)]
            out = mpmath.zeros(3, 3)
            for m in range(3):
                k, n = (m + 1) % 3, (m + 2) % 3
                for i in range(3):
                    out[i, m] = (d[k][i, n] - d[n][i, k]) / 2
            return out
        return made

    def curl_x(f):
        def made(x, y):
            d = [along_x(f, x, y, k) for k in range(3)]
            out = mpmath.zeros(3, 3)
            for m in range(3):
                k, n = (m + 1) % 3, (m + 2) % 3
                for j in range(3):
                    out[m, j] = (d[k][n, j] - d[n][k, j]) / 2
            return out
        return made

    def of_both(x, y):
        return of_source(x, y) + a * a / 6 * laplacian_x(of_source, x, y)

    turning = curl_y(blake)
    blocks = [
        [of_both(x, y), turning(x, y) + a * a / 6 * laplacian_x(turning, x, y)],
        [curl_x(of_source)(x, y), curl_x(curl_y(blake))(x, y)],
    ]
    return np.block([[np.array(b.tolist(), float).reshape(3, 3) for b in row] for row in blocks])


def test_wall_against_differences_of_blakes_flow():
    with mpmath.workdps(60):
        for x, y, a, b in (
            ([0.3, -0.4, 2.5], [2.1, 1.9, 1.3], 0.8, 1.2),
            ([1.0, 0.2, 1.01], [-2.0, -1.0, 4.0], 1.0, 0.5),
        ):
            exact = by_differences([mpmath.mpf(v) for v in x], [mpmath.mpf(v) for v in y], a, b)
            m = mobility_matrix([x, y], [a, b], ETA, rotation=True, wall=mp.boundaries.Plane())
            np.testing.assert_allclose(m[:6, 6:], exact, rtol=0, atol=2e-12)


def test_one_sphere_at_a_wall():
    """To the order of 1/z^5 that spheres without stresslets have: Swan and Brady 2007, equations B1 to B3."""
    for z in (1.0001, 1.3, 2.0, 10.0):
        m = mobility_matrix([[3.0, -2.0, z]], 1.0, ETA, rotation=True, wall=mp.boundaries.Plane())
        assert m[0, 0] / TRANSLATION == pytest.approx(1 - 9 / 16 / z + 1 / 8 / z**3 - 1 / 16 / z**5, rel=1e-13)
        assert m[2, 2] / TRANSLATION == pytest.approx(1 - 9 / 8 / z + 1 / 2 / z**3 - 1 / 8 / z**5, rel=1e-13)
        assert m[3, 3] / ROTATION == pytest.approx(1 - 5 / 16 / z**3, rel=1e-13)
        assert m[5, 5] / ROTATION == pytest.approx(1 - 1 / 8 / z**3, rel=1e-13)
        assert m[4, 0] / TRANSLATION == pytest.approx(3 / 32 / z**4, rel=1e-11)


def test_the_fluid_sticks_to_the_wall():
    """A small sphere that touches the wall is moved by others no faster than its radius allows."""
    ratios = []
    for a in (1e-2, 1e-4):
        m = mobility_matrix([[0, 0, 2.0], [1.5, 0.3, 1.0001 * a]], [1.0, a], ETA, wall=mp.boundaries.Plane())
        ratios.append(abs(m[3:, :3]).max())
    assert ratios[0] < 0.02
    assert ratios[1] == pytest.approx(1e-2 * ratios[0], rel=0.1)


def test_far_from_the_wall_it_is_not_there():
    x, a = crowd(1)
    open_space = mobility_matrix(x, a, ETA, rotation=True)
    far = mobility_matrix(x, a, ETA, rotation=True, wall=mp.boundaries.Plane((0, 0, -1e7)))
    assert 1e-8 < abs(open_space - far).max() < 1e-6


def test_a_wall_of_any_direction():
    x, a = crowd(3, n=4)
    x[:, 2] += 2.0
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))
    rotation *= np.linalg.det(rotation)
    straight = mobility_matrix(x, a, ETA, rotation=True, wall=mp.boundaries.Plane())
    point = np.array([4.0, -3.0, 9.0])
    tilted = mobility_matrix(x @ rotation.T + point, a, ETA, rotation=True,
                             wall=mp.boundaries.Plane(point, rotation[:, 2]))  # fmt: skip
    turned = np.kron(np.eye(8), rotation) @ straight @ np.kron(np.eye(8), rotation.T)
    np.testing.assert_allclose(tilted, turned, rtol=0, atol=1e-13 * abs(straight).max())


def test_rigid_clusters_have_the_friction_of_their_bead_models():
    """The beads of a rigid body held together: the resistance of all is that of the bead model."""
    rng = np.random.default_rng(7)
    x, a = rng.uniform(-2.0, 2.0, (9, 3)), rng.uniform(0.4, 1.1, 9)
    m = mobility_matrix(x, a, 1e-9, rotation=True)
    arms = np.zeros((9, 6, 6))
    arms[:, range(6), range(6)] = 1.0
    for k in range(3):
        arms[:, :3, 3 + k] = np.cross(np.eye(3)[k], x)
    k = arms.reshape(54, 6)
    friction = k.T @ np.linalg.solve(m, k)
    model = mp.rigid.bead_model_friction(x, a, 1e-9, stresslets=False)
    np.testing.assert_allclose(friction, model, rtol=0, atol=1e-12 * abs(model).max())


@pytest.mark.parametrize(("arguments", "named"), [
    (dict(radius=[1.0, -2.0]), r"radius\[1\] = -2"),
    (dict(radius=[1.0, 2.0, 3.0]), r"radius .*shape \(2,\)"),
    (dict(positions=[[0, 0, 0]], radius=[1.0, 1.0]), "radius"),
    (dict(positions=[[0, 0, np.nan], [0, 0, 3]]), "positions"),
    (dict(viscosity=0.0), "viscosity = 0"),
    (dict(wall=3), "wall must be a boundaries.Plane, not int"),
    (dict(wall=mp.boundaries.Plane((0, 0, -0.5))), "sphere 0 overlaps the wall: its centre is 0.5 nm from it"),
])  # fmt: skip
def test_bad_input(arguments, named):
    given = {"positions": [[0, 0, 0], [0, 0, 3.0]], "radius": 1.0, "viscosity": 1.0, **arguments}
    refuses(mp.ParameterError, named, mobility_matrix, **given)
