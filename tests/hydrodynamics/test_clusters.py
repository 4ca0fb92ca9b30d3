"""Mobility of bodies that are clusters of spheres: exact two-sphere mobilities, ellipsoids, bead models."""

import numpy as np
import pytest
from builders import refuses
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy.hydrodynamics import cluster_mobility_matrix, mobility_matrix

ETA = 1.0 / (6.0 * np.pi)


def sphere_points(n):
    """n points on the unit sphere, evenly, along a spiral."""
    z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    turn = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(n)
    return np.column_stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z])


def shell(n, axes=(1.0, 1.0, 1.0)):
    """Centres and radius of spheres in the surface of an ellipsoid: so far in it that a sphere of them, of any number,
    moves as the smooth one."""
    axes = np.asarray(axes, float)
    size = 1.9 / np.sqrt(n) * axes.prod() ** (1 / 3)
    return sphere_points(n) * (axes - 0.67 * size), size


def along_the_line(r, together):
    """Mobility of each of two spheres of radius 1 at the distance r along their line, pushed alike or towards each
    other: Stimson and Jeffery 1926, Brenner 1961."""
    alpha = np.arccosh(0.5 * r)
    n = np.arange(1.0, 400.0)
    n = n[(2 * n + 1) * alpha < 600.0]
    if together:
        part = 1 - (4 * np.sinh((n + 0.5) * alpha) ** 2 - ((2 * n + 1) * np.sinh(alpha)) ** 2) / (
            2 * np.sinh((2 * n + 1) * alpha) + (2 * n + 1) * np.sinh(2 * alpha)
        )
    else:
        part = (4 * np.cosh((n + 0.5) * alpha) ** 2 + ((2 * n + 1) * np.sinh(alpha)) ** 2) / (
            2 * np.sinh((2 * n + 1) * alpha) - (2 * n + 1) * np.sinh(2 * alpha)
        ) - 1
    return 1.0 / (4 / 3 * np.sinh(alpha) * np.sum(n * (n + 1) / ((2 * n - 1) * (2 * n + 3)) * part))


def test_one_body_is_its_bead_model():
    rng = np.random.default_rng(1)
    x, a = rng.normal(size=(6, 3)), rng.uniform(0.4, 1.0, 6)
    for stresslets in (True, False):
        m = cluster_mobility_matrix([(x, a)], ETA, points=[[0.3, 0, 0.2]], stresslets=stresslets)
        friction = mp.rigid.bead_model_friction(x, a, ETA, reference_point=[0.3, 0, 0.2], stresslets=stresslets)
        np.testing.assert_allclose(m @ friction, np.eye(6), rtol=0, atol=1e-11)


def test_bodies_of_one_sphere_are_spheres():
    """Without stresslets the matrix of spheres; with, the next terms of far spheres (Kim and Karrila 1991)."""
    rng = np.random.default_rng(2)
    x, a = rng.uniform(0.0, 6.0, (5, 3)), rng.uniform(0.3, 1.2, 5)
    bodies = [(x[k : k + 1], a[k]) for k in range(5)]
    m = cluster_mobility_matrix(bodies, ETA, stresslets=False)
    expected = mobility_matrix(x, a, ETA, rotation=True)
    np.testing.assert_allclose(m, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    for r in (12.0, 24.0):
        m = cluster_mobility_matrix([([[0, 0, 0.0]], 1.0), ([[0, 0, r]], 1.0)], ETA)
        assert m[2, 2] == pytest.approx(1.0 - 15 / 4 / r**4, abs=60 / r**6)
        assert m[2, 8] == pytest.approx(1.5 / r - 1 / r**3 + 75 / 4 / r**7, abs=200 / r**9)
        assert m[0, 6] == pytest.approx(0.75 / r + 0.5 / r**3, abs=100 / r**9)


def test_two_spheres_of_many_beads():
    """Along their line, from near to far, against exact series."""
    x, a = shell(140)
    own = cluster_mobility_matrix([(x, a)], ETA, stresslets=False)[2, 2]
    assert own == pytest.approx(1.0, abs=0.005)
    for r, together_off, apart_off in ((2.3, 1e-3, 0.03), (3.0, 1e-3, 3e-3), (6.0, 1e-3, 1e-3)):
        m = cluster_mobility_matrix([(x, a), (x + [0, 0, r], a)], ETA, stresslets=False)
        spheres = mobility_matrix([[0, 0, 0], [0, 0, r]], 1.0, ETA)
        for sign, off in ((1.0, together_off), (-1.0, apart_off)):
            found, exact = m[2, 2] + sign * m[2, 8], along_the_line(r, sign > 0)
            print(f"r = {r}, {sign:+.0f}: {found:.4f}, exact {exact:.4f}, {found / exact - 1:.4f}; one sphere each "
                  f"{(spheres[2, 2] + sign * spheres[2, 5]) / exact - 1:.4f}")
            assert found == pytest.approx(exact, rel=off)


def averaged(first, second, d, n=600):
    """Mobility (3, 3) of an ellipsoid by the force on another at the distance d, of first order in reflections: Oseen's
    tensor, averaged over the charge of conducting ellipsoids of both, which is even on the sphere that is stretched."""
    one, two = sphere_points(n) @ first.T, sphere_points(n) @ second.T
    out = np.zeros((3, 3))
    for part in np.array_split(one, 20):
        e = d + part[:, None] - two
        r = np.linalg.norm(e, axis=2)
        out += np.eye(3) * (1 / r).sum() + np.einsum("ij,ija,ijb->ab", r**-3, e, e)
    return out / (8 * np.pi * ETA * n * n)


def test_two_ellipsoids():
    """Two of different shape and direction: their own blocks are those of Perrin, what one does to the other that of a
    quadrature over both surfaces, which falls short by reflections of order d^-4; and one sphere in place of each is
    off by several times as much."""
    axes = np.array([[1.0, 1.5, 3.0], [2.0, 2.0, 0.8]])
    turned = [Rotation.from_rotvec(v).as_matrix() for v in ([0.3, -0.8, 0.4], [1.0, 0.2, -0.5])]
    d = np.array([7.0, -3.0, 6.0])
    places = [np.zeros(3), -d]
    clusters = []
    for k in range(2):
        x, a = shell(160, axes[k])
        clusters.append((x @ turned[k].T + places[k], a))
    m = cluster_mobility_matrix(clusters, ETA, points=places, stresslets=False)
    for k in range(2):
        own = np.kron(np.eye(2), turned[k])
        alone = own @ np.linalg.inv(mp.rigid.ellipsoid_friction(tuple(axes[k]), ETA)) @ own.T
        block = m[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
        np.testing.assert_allclose(block[:3, :3], alone[:3, :3], rtol=0, atol=0.01 * np.abs(alone[:3, :3]).max())
        np.testing.assert_allclose(block[3:, 3:], alone[3:, 3:], rtol=0, atol=0.02 * np.abs(alone[3:, 3:]).max())
    exact = averaged(turned[0] * axes[0], turned[1] * axes[1], d)
    off = np.abs(m[:3, 6:9] - exact).max() / np.abs(exact).max()
    radius = mp.hydrodynamics.mobilities.radius_of_bodies(
        np.array([mp.rigid.ellipsoid_friction(tuple(a), ETA) for a in axes]), ETA)  # fmt: skip
    spheres = mobility_matrix(np.array(places), radius, ETA)[:3, 3:]
    off_spheres = np.abs(spheres - exact).max() / np.abs(exact).max()
    print(f"beads {off:.4f}, spheres {off_spheres:.4f}, radii {radius}")
    assert off < 2e-3
    assert off_spheres > 5.0 * off


def test_symmetric_positive_and_about_other_points():
    rng = np.random.default_rng(3)
    clusters = [(rng.normal(size=(4, 3)) + [3.0 * k, 0, 0], rng.uniform(0.5, 1.0, 4)) for k in range(3)]
    m = cluster_mobility_matrix(clusters, ETA)
    assert (m == m.T).all()
    assert np.linalg.eigvalsh(m)[0] > 0.0
    middles = np.array([x.mean(axis=0) for x, _ in clusters])
    points = middles + rng.normal(size=(3, 3))
    moved = cluster_mobility_matrix(clusters, ETA, points=points)
    # Motions of the old points: U = U' + W x (old - new); forces at the new points have torques about the old ones.
    x = np.zeros((18, 18))
    for k in range(3):
        e = middles[k] - points[k]
        x[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = np.eye(6)
        x[6 * k : 6 * k + 3, 6 * k + 3 : 6 * k + 6] = -np.cross(np.eye(3), e)
    np.testing.assert_allclose(x @ moved @ x.T, m, rtol=0, atol=1e-12 * np.abs(m).max())


@pytest.mark.parametrize(("arguments", "named"), [
    (dict(clusters=[]), "clusters must hold at least one body"),
    (dict(clusters=[([[0, 0, 0]], 1.0), 3]), r"clusters\[1\] must be a pair of centers and radii"),
    (dict(clusters=[(np.zeros((0, 3)), 1.0)]), r"clusters\[0\]: centers must hold at least one sphere"),
    (dict(clusters=[([[0, 0, 0]], -1.0)]), r"clusters\[0\]: radii"),
    (dict(points=[[0, 0, 0]]), "points"),
    (dict(viscosity=0.0), "viscosity = 0"),
    (dict(clusters=[([[0, 0, 0]], 1.0), ([[0, 0, 0]], 1.0)]), "spheres 0 and 1 cannot be told apart"),
    (dict(max_memory=10.0), "2 spheres need .* GB but max_memory"),
])  # fmt: skip
def test_bad_input(arguments, named):
    given = {"clusters": [([[0, 0, 0]], 1.0), ([[0, 0, 3.0]], 1.0)], "viscosity": 1.0, **arguments}
    refuses(mp.ParameterError, named, cluster_mobility_matrix, **given)
