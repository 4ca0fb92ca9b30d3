"""Tensors moved, turned, inverted and checked."""

import numpy as np
import pytest
from builders import refuses
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import rigid


@pytest.fixture
def friction(rng):
    """Of a chiral body, about a point that is nothing special: all elements differ."""
    return rigid.bead_model_friction(rng.normal(2.0, 3.0, (7, 3)), rng.uniform(0.5, 2.0, 7), 1e-9)


def close(a, b, digits=1e-12):
    scale = np.sqrt(np.diag(b))
    np.testing.assert_allclose(a / np.outer(scale, scale), b / np.outer(scale, scale), rtol=0.0, atol=digits)


def test_definition_of_moving(friction, rng):
    """Force and torque of any motion do not depend on the point that they are described by; nor does the power."""
    shift, w = rng.normal(0.0, 5.0, 3), rng.normal(size=6)
    u_there = np.concatenate([w[:3] + np.cross(w[3:], shift), w[3:]])
    f, f_there = friction @ w, rigid.move_friction(friction, shift) @ u_there
    np.testing.assert_allclose(f_there[:3], f[:3], rtol=1e-9)
    np.testing.assert_allclose(f_there[3:], f[3:] - np.cross(shift, f[:3]), rtol=1e-9)
    assert u_there @ f_there == pytest.approx(w @ f, rel=1e-10)


def test_moved_there_and_back(friction, rng):
    diffusion = rigid.friction_to_diffusion(friction, 300.0)
    for size in (1.0, 100.0):
        shift = rng.normal(0.0, size, 3)
        close(rigid.move_friction(rigid.move_friction(friction, shift), -shift), friction, 1e-13 * max(1.0, size**2))
        there = rigid.move_diffusion(diffusion, shift)
        close(rigid.move_diffusion(there, -shift), diffusion, 1e-13 * max(1.0, size**2))
        # The two ways from friction here to diffusion there.
        close(rigid.friction_to_diffusion(rigid.move_friction(friction, shift), 300.0), there, 1e-10 * size)
    np.testing.assert_array_equal(rigid.move_friction(friction, np.zeros(3)), friction)


def test_inverse(friction):
    diffusion = rigid.friction_to_diffusion(friction, 300.0)
    np.testing.assert_allclose(diffusion @ friction, 300.0 * mp.units.boltzmann * np.eye(6), atol=1e-11)
    close(rigid.diffusion_to_friction(diffusion, 300.0), friction)
    close(rigid.friction_to_diffusion(friction, kT=1.0) * 300.0 * mp.units.boltzmann, diffusion)
    # A needle: blocks, and motions within one, are many orders apart.
    needle = rigid.ellipsoid_friction((1e-3, 1e-3, 1e3), 1e-9)
    turn = Rotation.from_rotvec([0.3, -0.2, 0.9]).as_matrix()
    d = rigid.friction_to_diffusion(rigid.rotate_tensor(needle, turn), kT=1.0)
    # Of 1e-11 between turning and spinning five digits are left.
    np.testing.assert_allclose(np.diag(rigid.rotate_tensor(d, turn.T)), 1.0 / np.diag(needle), rtol=1e-4)


def test_center_of_diffusion(friction, rng):
    diffusion = rigid.friction_to_diffusion(friction, 300.0)
    to = rigid.center_of_diffusion(diffusion)
    there = rigid.move_diffusion(diffusion, to)
    coupling = there[3:, :3]
    np.testing.assert_allclose(coupling, coupling.T, atol=1e-12 * np.sqrt(there[0, 0] * there[3, 3]))
    # It does not depend on where one looks from, and translational diffusion is least there.
    shift = rng.normal(0.0, 5.0, 3)
    np.testing.assert_allclose(rigid.center_of_diffusion(rigid.move_diffusion(diffusion, shift)), to - shift, atol=1e-9)
    turn = Rotation.from_quat(rng.normal(size=4)).as_matrix()
    np.testing.assert_allclose(rigid.center_of_diffusion(rigid.rotate_tensor(diffusion, turn)), turn @ to, atol=1e-9)
    for _ in range(20):
        elsewhere = rigid.move_diffusion(there, rng.normal(0.0, 1.0, 3))
        assert np.trace(elsewhere[:3, :3]) > np.trace(there[:3, :3])


def test_center_of_resistance(friction, rng):
    to = rigid.center_of_resistance(friction)
    there = rigid.move_friction(friction, to)
    coupling = there[3:, :3]
    np.testing.assert_allclose(coupling, coupling.T, atol=1e-12 * np.sqrt(there[0, 0] * there[3, 3]))
    shift = rng.normal(0.0, 5.0, 3)
    np.testing.assert_allclose(rigid.center_of_resistance(rigid.move_friction(friction, shift)), to - shift, atol=1e-9)
    for _ in range(20):
        elsewhere = rigid.move_friction(there, rng.normal(0.0, 1.0, 3))
        assert np.trace(elsewhere[3:, 3:]) > np.trace(there[3:, 3:])
    # Another point than the centre of diffusion, in general; the same where symmetry leaves one.
    assert np.linalg.norm(to - rigid.center_of_diffusion(rigid.friction_to_diffusion(friction, kT=1.0))) > 1e-3
    ellipsoid = rigid.move_friction(rigid.ellipsoid_friction((1.0, 2.0, 3.0), 1e-9), (3.0, 4.0, 5.0))
    np.testing.assert_allclose(rigid.center_of_resistance(ellipsoid), [-3.0, -4.0, -5.0], atol=1e-12)
    diffusion = rigid.friction_to_diffusion(ellipsoid, kT=1.0)
    np.testing.assert_allclose(rigid.center_of_diffusion(diffusion), [-3.0, -4.0, -5.0], atol=1e-12)


def test_turned(friction, rng):
    turn = Rotation.from_quat(rng.normal(size=4)).as_matrix()
    v, w = rng.normal(size=(2, 3))
    there = rigid.rotate_tensor(friction, turn) @ np.concatenate([turn @ v, turn @ w])
    here = friction @ np.concatenate([v, w])
    np.testing.assert_allclose(there, np.concatenate([turn @ here[:3], turn @ here[3:]]), rtol=1e-10)
    close(rigid.rotate_tensor(rigid.rotate_tensor(friction, turn), turn.T), friction)
    # Axes with seven digits are made orthonormal first: eigenvalues stay.
    rough = rigid.rotate_tensor(friction, np.round(turn, 7))
    np.testing.assert_allclose(np.linalg.eigvalsh(rough[:3, :3]), np.linalg.eigvalsh(friction[:3, :3]), rtol=1e-13)


def test_tensors_of_few_digits():
    """As tables print them: neither quite symmetric nor refused, if one says so."""
    a = np.diag([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    a[0, 4], a[4, 0] = 0.1003, 0.1001
    got = rigid.check_tensor(a, tolerance=1e-3)
    np.testing.assert_array_equal(got, got.T)
    assert got[0, 4] == pytest.approx(0.1002)
    np.testing.assert_array_equal(rigid.check_tensor(got), got)


def changed(i, j, value, k=None, l=None):  # noqa: E741
    a = np.diag([1.0, 1.0, 1.0, 4.0, 4.0, 4.0])
    a[i, j] = value
    if k is not None:
        a[k, l] = value
    return a


@pytest.mark.parametrize(("call", "message"), [
    (lambda: rigid.check_tensor(np.eye(3), "friction"), r"friction must have shape \(6, 6\), not \(3, 3\)"),
    (lambda: rigid.check_tensor(changed(2, 2, 0.0), "friction"), r"friction\[2, 2\] = 0 but must be > 0"),
    (lambda: rigid.move_diffusion(changed(0, 4, 0.5), (0, 0, 0)),
     r"diffusion is not symmetric: \[0, 4\] = 0.5 but \[4, 0\] = 0; the difference must be <= 1e-06 of 2, the"),
    (lambda: rigid.friction_to_diffusion(changed(0, 4, 3.0, 4, 0), kT=1.0),
     r"friction is not positive definite: scaled to 1 on its diagonal it has the eigenvalue -0.5, which must be"),
    (lambda: rigid.diffusion_to_friction(changed(1, 3, 2.0, 3, 1), 300.0), "has the eigenvalue .*, which must"),
    (lambda: rigid.friction_to_diffusion(np.eye(6)), "friction_to_diffusion: give temperature="),
    (lambda: rigid.diffusion_to_friction(np.eye(6), 300.0, kT=1.0), "diffusion_to_friction: .* not both"),
    (lambda: rigid.move_friction(np.eye(6), (0, 1)), r"move_friction: shift must have shape \(3,\)"),
    (lambda: rigid.move_friction(np.eye(6), (0, 1, np.nan)), r"move_friction: shift\[2\] = nan but must be finite"),
    (lambda: rigid.rotate_tensor(np.eye(6), np.diag([1.0, 1.0, -1.0])), "rotation, but they are left-handed"),
    (lambda: rigid.rotate_tensor(np.eye(6), 1.1 * np.eye(3)), "deviate from orthonormal ones by 0.21"),
])  # fmt: skip
def test_refusals(call, message):
    refuses(mp.ParameterError, message, call)
