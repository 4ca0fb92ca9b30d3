"""The body frame."""

import numpy as np
import pytest
from builders import refuses
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import rigid


def inertia_tensor(x, m, a=0.0):
    """About the origin, by the textbook."""
    a = np.broadcast_to(a, len(x))
    parts = zip(x, m, a, strict=True)
    return sum(mi * ((xi @ xi + 0.4 * ai**2) * np.eye(3) - np.outer(xi, xi)) for xi, mi, ai in parts)


def test_axes_of_untidy_bodies(rng):
    for n in (2, 3, 4, 30):
        x, m, a = rng.normal(5.0, 2.0, (n, 3)), rng.uniform(0.1, 3.0, n), rng.uniform(0.0, 2.0, n)
        body = rigid.principal_axes(x, m, a)
        assert body.mass == pytest.approx(m.sum())
        np.testing.assert_allclose(body.center_of_mass, m @ x / m.sum())
        np.testing.assert_allclose(body.axes @ body.axes.T, np.eye(3), atol=1e-15)
        assert np.linalg.det(body.axes) == pytest.approx(1.0)
        y = body.to_body(x)
        np.testing.assert_allclose(m @ y, 0.0, atol=1e-12)
        np.testing.assert_allclose(inertia_tensor(y, m, a), np.diag(body.inertia), atol=1e-12 * body.inertia[2])
        assert (np.diff(body.inertia) >= 0.0).all()
        np.testing.assert_allclose(body.to_space(y), x, rtol=1e-13)


def test_orientation_turns_the_body_frame_into_space(rng):
    x = rng.normal(size=(5, 3))
    body = rigid.principal_axes(x, 1.0)
    q0, *q = body.orientation
    q = np.array(q)
    assert q0 >= 0.0
    assert q0**2 + q @ q == pytest.approx(1.0, abs=1e-15)
    y = body.to_body(x)
    turned = y + 2.0 * np.cross(q, np.cross(q, y) + q0 * y)
    np.testing.assert_allclose(turned + body.center_of_mass, x, atol=1e-14)


def test_copies_have_one_body_frame(rng):
    """However a molecule lies in space, its parts have the same coordinates in the body."""
    x, m = rng.normal(size=(12, 3)) * [1.0, 2.0, 4.0], rng.uniform(0.5, 2.0, 12)
    first = rigid.principal_axes(x, m)
    y = first.to_body(x)
    # Axes point to where the body reaches further.
    assert (m @ y[:, :2] ** 3 > 0.0).all()
    for _ in range(20):
        there = x @ Rotation.from_quat(rng.normal(size=4)).as_matrix().T + rng.normal(0.0, 10.0, 3)
        again = rigid.principal_axes(there, m)
        np.testing.assert_allclose(again.to_body(there), y, atol=1e-12)
        np.testing.assert_allclose(again.inertia, first.inertia, rtol=1e-12)


def test_equal_moments(rng):
    """Axes as near to those of space as they can be; principal ones, however the body is turned."""
    cube = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)
    body = rigid.principal_axes(cube, 1.0)
    np.testing.assert_array_equal(body.axes, np.eye(3))
    np.testing.assert_allclose(body.inertia, 16.0)
    # Long in x: the axis of least inertia; flat in y: that of most.
    for scale, lone, along in ((np.array([3.0, 1, 1]), 0, [1, 0, 0]), (np.array([1, 0.1, 1]), 2, [0, 1, 0])):
        body = rigid.principal_axes(cube * scale, 1.0)
        np.testing.assert_allclose(np.abs(body.axes[lone]), along, atol=1e-12)
        np.testing.assert_allclose(np.sort(np.abs(body.axes), axis=0), [[0, 0, 0], [0, 0, 0], [1, 1, 1]], atol=1e-12)
        assert np.linalg.det(body.axes) == pytest.approx(1.0)
        there = cube * scale @ Rotation.from_quat(rng.normal(size=4)).as_matrix().T
        turned = rigid.principal_axes(there, 1.0)
        np.testing.assert_allclose(turned.inertia, body.inertia)
        inertia = inertia_tensor(turned.to_body(there), np.ones(8))
        np.testing.assert_allclose(inertia, np.diag(body.inertia), atol=1e-12)


def test_lines_and_points():
    line = rigid.principal_axes([[0, 0, 0], [0, 2, 0]], [1.0, 3.0])
    np.testing.assert_allclose(line.inertia, [0.0, 3.0, 3.0])
    np.testing.assert_allclose(np.abs(line.axes[0]), [0.0, 1.0, 0.0])
    balls = rigid.principal_axes([[0, 0, 0], [0, 2, 0]], [1.0, 3.0], radii=0.5)
    np.testing.assert_allclose(balls.inertia, [0.4, 3.4, 3.4])
    point = rigid.principal_axes([[1.0, 2.0, 3.0]], 2.0)
    np.testing.assert_array_equal(point.inertia, 0.0)
    np.testing.assert_array_equal(point.axes, np.eye(3))
    np.testing.assert_array_equal(point.center_of_mass, [1.0, 2.0, 3.0])


def test_results_do_not_change():
    body = rigid.principal_axes(np.eye(3), 1.0)
    with pytest.raises(ValueError, match="read-only"):
        body.axes[0, 0] = 2.0
    with pytest.raises(AttributeError):
        body.mass = 1.0


def test_friction_in_the_body_frame(rng):
    """The tensor of the beads of the body where it stands in its own frame."""
    x, m, a = rng.normal(4.0, 2.0, (6, 3)), rng.uniform(1.0, 2.0, 6), rng.uniform(0.5, 2.0, 6)
    body = rigid.principal_axes(x, m)
    expected = rigid.bead_model_friction(body.to_body(x), a, 1e-9)
    scale = np.sqrt(np.diag(expected))
    for point in (np.zeros(3), np.array([1.0, 5.0, -2.0])):
        friction = rigid.bead_model_friction(x, a, 1e-9, reference_point=point)
        got = body.friction_in_body(friction, point)
        np.testing.assert_allclose(got / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-12)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: rigid.principal_axes(np.zeros((0, 3)), 1.0), "positions must hold at least one part"),
    (lambda: rigid.principal_axes(np.eye(3), [1.0, 0.0, 1.0]), r"masses\[1\] = 0.0 but must be finite and > 0"),
    (lambda: rigid.principal_axes(np.eye(3), 1.0, [0, 0, -1.0]), r"radii\[2\] = -1.0 but must be finite and >= 0"),
    (lambda: rigid.principal_axes(np.eye(2), 1.0), r"positions must have shape \(n, 3\), not \(2, 2\)"),
    (lambda: rigid.principal_axes(np.eye(3), 1.0).to_body([1.0]), r"to_body: positions must have shape \(n, 3\)"),
    (lambda: rigid.principal_axes(np.eye(3), 1.0).friction_in_body(np.eye(6), (0, 1)),
     "friction_in_body: reference_point must have shape"),
])  # fmt: skip
def test_refusals(call, message):
    refuses(mp.ParameterError, message, call)
