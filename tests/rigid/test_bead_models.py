"""Rigid clusters of spheres: what is known exactly, bounds, and every way to lay beads."""

import numpy as np
import pytest
from builders import refuses
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import rigid
from medyanpy.rigid import bead_models
from medyanpy.rigid.rotne_prager import mobility_block

ETA = 0.7e-9


def cluster(rng, n, size=3.0):
    """Overlapping beads of unequal radii, some within others."""
    return rng.normal(0.0, size, (n, 3)), rng.uniform(0.3, 3.0, n)


def sphere_points(n):
    """Points spread evenly over the unit sphere, along a spiral."""
    z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
    phi = np.pi * (1.0 + np.sqrt(5.0)) * np.arange(n)
    s = np.sqrt(1.0 - z * z)
    return np.column_stack([s * np.cos(phi), s * np.sin(phi), z])


@pytest.mark.parametrize("stresslets", [False, True])
def test_one_sphere(stresslets):
    a, point = 2.7, np.array([3.0, -1.0, 20.0])
    got = rigid.bead_model_friction([point], a, ETA, reference_point=point, stresslets=stresslets)
    expected = np.diag(np.repeat([6.0 * np.pi * ETA * a, 8.0 * np.pi * ETA * a**3], 3))
    np.testing.assert_allclose(got, expected, rtol=1e-15, atol=0.0)
    # By default about the origin: torque of the drag, and 6πηa d² more friction against turning.
    about = rigid.bead_model_friction([point], a, ETA, stresslets=stresslets)
    drag = 6.0 * np.pi * ETA * a
    np.testing.assert_allclose(about[:3, :3], drag * np.eye(3), rtol=1e-14, atol=1e-14 * drag)
    for i, u in enumerate(np.eye(3)):
        np.testing.assert_allclose(about[3:, i], np.cross(point, drag * u), rtol=1e-14, atol=1e-13 * drag)
    turn = 8.0 * np.pi * ETA * a**3 * np.eye(3) + drag * (point @ point * np.eye(3) - np.outer(point, point))
    np.testing.assert_allclose(about[3:, 3:], turn, rtol=1e-13)


def test_dumbbell_of_equal_spheres():
    """Below the exact values by what two spheres with three moments lack, and nearer with stresslets."""
    x = [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]
    # Touching, stuck together. Along and across: Stimson & Jeffery 1926 (0.6451), Goldman, Cox & Brenner 1966 (0.7243);
    # turning about the axis: Jeffery 1915, 3/2 ζ(3).
    exact = np.array([1.4486, 1.2902, 1.5 * 1.2020569])
    got = {}
    for stresslets in (False, True):
        f = np.diag(rigid.bead_model_friction(x, 1.0, 1.0, stresslets=stresslets)) / np.pi
        got[stresslets] = f[[0, 2, 5]] / [6.0, 6.0, 8.0]
        assert f[0] == pytest.approx(f[1], rel=1e-14)
        assert f[3] == pytest.approx(f[4], rel=1e-14)
    assert (got[True] < exact).all()
    assert (got[True] >= got[False]).all()
    np.testing.assert_allclose(got[True], exact, rtol=0.015)
    # Far apart (r in radii) by hand, to the first order that stresslets (along) and torques (across) enter, r⁻⁴.
    r = 60.0
    f = np.diag(rigid.bead_model_friction([[0, 0, -r / 2], [0, 0, r / 2]], 1.0, 1.0)) / (12.0 * np.pi)
    assert 1.0 / f[2] == pytest.approx(1.0 + 1.5 / r - 1.0 / r**3 - 3.75 / r**4, abs=30.0 / r**6)
    assert 1.0 / f[0] == pytest.approx(1.0 + 0.75 / r + 0.5 / r**3 - 0.75 / r**4, abs=30.0 / r**6)


def test_two_unequal_spheres_by_hand():
    """Along the line of centres: two unknown forces, by the formula of Rotne and Prager for unequal spheres."""
    a, b, r = 2.0, 3.0, 5.0
    pair = (1.0 / r - (a * a + b * b) / (3.0 * r**3)) / (4.0 * np.pi * ETA)
    m = np.array([[1.0 / (6.0 * np.pi * ETA * a), pair], [pair, 1.0 / (6.0 * np.pi * ETA * b)]])
    friction = rigid.bead_model_friction([[0, 0, 0], [0, r, 0]], [a, b], ETA, stresslets=False)
    assert friction[1, 1] == pytest.approx(np.linalg.inv(m).sum(), rel=1e-14)
    # Turning about that line there is one torque each.
    pair = 1.0 / (8.0 * np.pi * ETA * r**3)
    m = np.array([[1.0 / (8.0 * np.pi * ETA * a**3), pair], [pair, 1.0 / (8.0 * np.pi * ETA * b**3)]])
    assert friction[4, 4] == pytest.approx(np.linalg.inv(m).sum(), rel=1e-14)


@pytest.mark.parametrize("stresslets", [False, True])
def test_against_the_whole_matrix(stresslets, rng, monkeypatch):
    """Columns of blocks, tiles and the motion are those of one matrix and its inverse."""
    x, a = cluster(rng, 23)
    point = np.array([1.0, -2.0, 0.5])
    moments = 11 if stresslets else 6
    m = mobility_block(x, a, x, a, moments)
    np.testing.assert_allclose(m, m.T, rtol=0.0, atol=1e-13)
    assert np.linalg.eigvalsh(m)[0] > 0.0
    k = np.zeros((len(x), moments, 6))
    for i in range(3):
        k[:, i, i] = k[:, 3 + i, 3 + i] = 1.0
        k[:, :3, 3 + i] = np.cross(np.eye(3)[i], x - point)
    k = k.reshape(-1, 6)
    expected = 8.0 * np.pi * ETA * k.T @ np.linalg.solve(m, k)
    for column, pairs in ((528, 20_000), (5 * moments, 7), (1, 1)):
        monkeypatch.setattr(bead_models, "_COLUMN", column)
        monkeypatch.setattr(bead_models, "_PAIRS", pairs)
        got = rigid.bead_model_friction(x, a, ETA, reference_point=point, stresslets=stresslets)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
        np.testing.assert_array_equal(got, got.T)


@pytest.mark.slow
def test_mobilities_are_positive_however_beads_lie(rng):
    """Random, overlapping, within each other, sizes 1:300: positive definite to round-off."""
    for _ in range(40):
        n = int(rng.integers(2, 25))
        x = rng.normal(0.0, 10.0 ** rng.uniform(-2, 1), (n, 3))
        a = 10.0 ** rng.uniform(-1.5, 1.0, n)
        m = mobility_block(x, a, x, a, 11)
        scale = 1.0 / np.sqrt(np.diag(m))
        assert np.linalg.eigvalsh(0.5 * (m + m.T) * scale[:, None] * scale)[0] > 1e-14
        rigid.check_tensor(rigid.bead_model_friction(x, a, ETA))


def test_friction_never_falls_with_more_beads_or_moments(rng):
    """Forces compete for dissipation, so that every bead and moment adds; a body within another has less friction."""
    x, a = cluster(rng, 30)
    before = np.zeros((6, 6))
    for n in (1, 3, 10, 29, 30):
        less, more = (rigid.bead_model_friction(x[:n], a[:n], ETA, stresslets=s) for s in (False, True))
        scale = 1.0 / np.sqrt(np.diag(more))
        for difference in (less - before, more - less):
            assert np.linalg.eigvalsh(difference * scale[:, None] * scale)[0] > -1e-12
        before = less
    # Spheres within a sphere of radius 5 that touch its surface, ever finer.
    ball = 5.0 * 6.0 * np.pi * ETA, 125.0 * 8.0 * np.pi * ETA
    low = 0.0
    for n, radius in ((8, 1.5), (60, 1.0), (240, 0.6)):
        f = rigid.bead_model_friction((5.0 - radius) * sphere_points(n), radius, ETA)
        t, r = np.diag(f).reshape(2, 3) / np.array(ball)[:, None]
        assert (t < 1.0).all()
        assert (r < 1.0).all()
        assert t.mean() > low
        low = t.mean()
    assert low > 0.96
    assert r.mean() > 0.9


@pytest.mark.parametrize("stresslets", [False, True])
def test_beads_within_beads(stresslets, rng):
    """A bead within a larger one changes nothing: the flow there is a rigid motion already."""
    big = [[1.0, 2.0, 3.0]], [4.0]
    alone = rigid.bead_model_friction(*big, ETA, reference_point=(1.0, 2.0, 3.0), stresslets=stresslets)
    for inner, radius in (([1.0, 2.0, 3.0], 1.0), ([2.0, 1.0, 4.0], 2.0), ([1.0, 2.0, 6.0], 1.0)):
        both = rigid.bead_model_friction([*big[0], inner], [*big[1], radius], ETA, reference_point=(1.0, 2.0, 3.0),
                                         stresslets=stresslets)  # fmt: skip
        np.testing.assert_allclose(both, alone, rtol=1e-12, atol=1e-12 * alone[3, 3])


def test_beads_given_twice_count_once(rng):
    x, a = cluster(rng, 9)
    order = [3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]
    once = rigid.bead_model_friction(x, a, ETA)
    np.testing.assert_array_equal(rigid.bead_model_friction(x[order], a[order], ETA), once)
    # Nearly the same is not the same, and no trouble either.
    x2, a2 = np.concatenate([x, x[:2] + 1e-7]), np.concatenate([a, a[:2]])
    np.testing.assert_allclose(rigid.bead_model_friction(x2, a2, ETA), once, rtol=1e-5, atol=1e-6 * once.max())


def test_a_body_moved_and_turned(rng):
    """The tensor of beads elsewhere is the tensor moved there; so with other units and orders."""
    x, a = cluster(rng, 12)
    friction = rigid.bead_model_friction(x, a, ETA)
    turn = Rotation.from_quat(rng.normal(size=4)).as_matrix()
    shift = np.array([20.0, -7.0, 3.0])
    elsewhere = rigid.bead_model_friction(x @ turn.T + shift, a, ETA)
    expected = rigid.move_friction(rigid.rotate_tensor(friction, turn), -shift)
    scale = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(elsewhere / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-11)
    # A thousand times larger: blocks by the first, second and third power.
    scale = np.repeat([1.0, 1e3], 3)
    larger = rigid.bead_model_friction(1e3 * x, 1e3 * a, ETA)
    np.testing.assert_allclose(larger, 1e3 * friction * np.outer(scale, scale), rtol=1e-9, atol=1e-12 * larger.max())
    # The order of the beads does not change a bit.
    order = rng.permutation(12)
    np.testing.assert_array_equal(rigid.bead_model_friction(x[order], a[order], ETA), friction)


def test_mirror_images_couple_oppositely(rng):
    """The trace of the coupling, which tells screws from their mirror images, changes sign; nothing else that lasts."""
    x, a = cluster(rng, 8)
    one, other = (
        rigid.friction_to_diffusion(rigid.bead_model_friction(y, a, ETA), kT=1.0) for y in (x, x * [1.0, 1.0, -1.0])
    )
    assert np.trace(one[:3, 3:]) == pytest.approx(-np.trace(other[:3, 3:]), rel=1e-9)
    assert abs(np.trace(one[:3, 3:])) > 1e-4 * np.sqrt(np.trace(one[:3, :3]) * np.trace(one[3:, 3:]))
    # Without a sense of screw there is none: four balls in a plane.
    flat = rigid.bead_model_friction(x[:4] * [1.0, 1.0, 0.0], a[:4], ETA)
    flat = rigid.friction_to_diffusion(flat, kT=1.0)
    assert abs(np.trace(flat[:3, 3:])) < 1e-13 * np.sqrt(np.trace(flat[:3, :3]) * np.trace(flat[3:, 3:]))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: rigid.bead_model_friction(np.zeros((0, 3)), 1.0, ETA), "centers must hold at least one sphere"),
    (lambda: rigid.bead_model_friction([[0.0, 0.0]], 1.0, ETA), r"centers must have shape \(n, 3\)"),
    (lambda: rigid.bead_model_friction(np.eye(3), [1.0, 2.0], ETA), r"radii must be a number or have shape \(3,\)"),
    (lambda: rigid.bead_model_friction(np.eye(3), [1.0, -2.0, 1.0], ETA), r"radii\[1\] = -2.0 but must be finite"),
    (lambda: rigid.bead_model_friction(np.eye(3), 1.0, 0.0), "viscosity = 0.0 but must be finite and > 0"),
    (lambda: rigid.bead_model_friction(np.arange(90.0).reshape(30, 3), 1.0, ETA, max_memory=4e5),
     r"30 spheres need 0.000436 GB but max_memory = 0.0004 GB holds 28"),
    (lambda: rigid.bead_model_friction(np.arange(9.0).reshape(3, 3), 1.0, ETA, stresslets=False, max_memory=1e3),
     "3 spheres need 1.3e-06 GB but max_memory = 1e-06 GB holds 2: raise it, or use fewer and larger spheres$"),
    (lambda: rigid.bead_model_friction([[9, 0, 0], [0, 0, 0], [4, 4, 4], [0, 0, 1e-17]], 1.0, ETA),
     r"spheres 1 and 3 cannot be told apart: centres and radii differ by 0 of the largest radius"),
    (lambda: rigid.bead_model_friction(np.arange(9000.0).reshape(3000, 3), 1.0, ETA),
     r"3000 spheres need 4.36 GB but max_memory = 4 GB holds 2874: raise it, .* or stresslets=False"),
])  # fmt: skip
def test_refusals(call, message):
    refuses(mp.ParameterError, message, call)
