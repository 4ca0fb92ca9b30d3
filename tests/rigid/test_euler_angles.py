"""Euler angles and quaternions, in all twelve conventions, each about fixed axes or about those of the body."""

import numpy as np
import pytest
from builders import orients, refuses

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.rigid import euler_from_quaternions, quaternions_from_euler

TWELVE = ("xyx", "xzx", "yxy", "yzy", "zxz", "zyz", "xyz", "xzy", "yxz", "yzx", "zxy", "zyx")
BOTH = (*TWELVE, *(s.upper() for s in TWELVE))


def about(axis, angle):
    """Return the matrix of a rotation about a coordinate axis, written out."""
    c, s = np.cos(angle), np.sin(angle)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    out = np.eye(3)
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s
    return out


@pytest.mark.parametrize("sequence", BOTH)
def test_three_rotations_one_after_another(sequence):
    """Lower case: about fixed axes, so later ones stand on the left; upper case: about axes of the body."""
    angles = np.random.default_rng(1).uniform(-1.5, 1.5, (20, 3))
    R = quaternions.matrices(quaternions_from_euler(sequence, angles))
    for one, three in zip(R, angles, strict=True):
        a, b, c = (about(axis, angle) for axis, angle in zip(sequence.lower(), three, strict=True))
        np.testing.assert_allclose(one, a @ b @ c if sequence.isupper() else c @ b @ a, atol=2e-15)


@pytest.mark.parametrize("sequence", BOTH)
def test_there_and_back(sequence):
    q = orients(np.random.default_rng(2), 200)
    angles = euler_from_quaternions(sequence, q)
    again = quaternions_from_euler(sequence, angles)
    np.testing.assert_allclose(again * np.sign((again * q).sum(axis=1, keepdims=True)), q, atol=1e-13)
    low, high = (0.0, np.pi) if sequence[0] == sequence[2] else (-np.pi / 2, np.pi / 2)
    assert ((low <= angles[:, 1]) & (angles[:, 1] <= high)).all()
    assert (np.abs(angles[:, ::2]) <= np.pi).all()
    np.testing.assert_allclose(euler_from_quaternions(sequence, -q), angles, atol=1e-13)


def test_the_formula_of_the_slide():
    """Kaynak, slide 24: ZXZ with φ, θ, ψ; the + in q3 is a misprint of =."""
    phi, theta, psi = angles = np.random.default_rng(3).uniform(0.1, 1.5, 3)
    expected = [np.cos(theta / 2) * np.cos((phi + psi) / 2), np.sin(theta / 2) * np.cos((phi - psi) / 2),
                np.sin(theta / 2) * np.sin((phi - psi) / 2), np.cos(theta / 2) * np.sin((phi + psi) / 2)]  # fmt: skip
    np.testing.assert_allclose(quaternions_from_euler("ZXZ", [angles]), [expected], atol=1e-15)


def test_one_row_or_many_and_degrees():
    one = quaternions_from_euler("ZYX", [0.3, 0.0, 0.0])
    assert one.shape == (4,)
    np.testing.assert_allclose(one, [np.cos(0.15), 0.0, 0.0, np.sin(0.15)], atol=1e-16)
    np.testing.assert_allclose(quaternions_from_euler("zyx", [90.0, 0, 0], degrees=True)[[0, 3]], np.sqrt(0.5))
    np.testing.assert_allclose(euler_from_quaternions("zyx", one), [0.3, 0, 0], atol=1e-15)
    np.testing.assert_allclose(euler_from_quaternions("zyx", one, degrees=True)[0], np.degrees(0.3), atol=1e-13)
    assert quaternions_from_euler("xyz", np.zeros((5, 3))).shape == (5, 4)
    assert (quaternions_from_euler("xyz", np.random.default_rng(1).uniform(-9, 9, (99, 3)))[:, 0] >= 0.0).all()


@pytest.mark.filterwarnings("error")
def test_locked_angles_give_the_same_rotation():
    """Where the first and the last axis are the same line, only their sum is known: the last angle is 0."""
    for sequence, middle in (("ZXZ", 0.0), ("zyx", np.pi / 2)):
        q = quaternions_from_euler(sequence, [0.4, middle, 0.7])
        angles = euler_from_quaternions(sequence, q)
        assert 0.0 in angles
        again = quaternions_from_euler(sequence, angles)
        np.testing.assert_allclose(again * np.sign(again @ q), q, atol=1e-7)


def test_they_turn_rigid_bodies():
    """A body turned by 90 degrees about z has its first axis along y."""
    topology = mp.Topology()
    q = quaternions_from_euler("ZXZ", [[90.0, 0, 0]], degrees=True)
    body = topology.add_rigid_bodies([[0.0, 0, 0]], q, mass=1.0, inertia=[1.0, 2.0, 3.0 - 1e-9])
    np.testing.assert_allclose(quaternions.matrices(body.orientations)[0][:, 0], [0.0, 1.0, 0.0], atol=1e-15)


def test_wrong_sequences_and_shapes_are_refused():
    wrong = mp.errors.ParameterError
    for sequence in ("xxy", "xyZ", "xy", "abc", 3, "XYX "):
        refuses(wrong, "sequence", quaternions_from_euler, sequence, [0.0, 0, 0])
        refuses(wrong, "sequence", euler_from_quaternions, sequence, [1.0, 0, 0, 0])
    refuses(wrong, r"angles must have shape \(n, 3\)", quaternions_from_euler, "xyz", [[0.0, 0]])
    refuses(wrong, "angles", quaternions_from_euler, "xyz", [0.0, np.nan, 0])
    refuses(wrong, r"quaternions must have shape \(n, 4\)", euler_from_quaternions, "xyz", [1.0, 0, 0])
    refuses(wrong, r"quaternions\[1\] has length 2", euler_from_quaternions, "xyz", [[1.0, 0, 0, 0], [2.0, 0, 0, 0]])
