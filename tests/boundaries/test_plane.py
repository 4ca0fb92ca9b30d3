"""boundaries.Plane: the geometry of a wall, and how it is written down."""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.errors import PublicNameError


def test_distance_is_along_the_normal_and_signed():
    rng = np.random.default_rng(1)
    for _ in range(20):
        point, normal, x = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(7, 3))
        wall = mp.boundaries.Plane(point, normal)
        assert abs(np.linalg.norm(wall.normal) - 1.0) < 1e-15
        np.testing.assert_allclose(np.cross(wall.normal, normal), 0.0, atol=1e-15 * np.linalg.norm(normal))
        assert wall.normal @ normal > 0.0
        # Down from each place by its distance is the wall, where all that is left is across the normal.
        feet = x - wall.distance(x)[:, None] * wall.normal
        np.testing.assert_allclose((feet - point) @ normal, 0.0, atol=1e-14)
    assert wall.distance([point + wall.normal, point - 2.0 * wall.normal]) == pytest.approx([1.0, -2.0], rel=1e-14)


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1.0, 1e200, 1.7e308])
def test_normals_of_any_length(size):
    normal = mp.boundaries.Plane(normal=[0.0, size, size]).normal
    np.testing.assert_allclose(normal, [0.0, 0.5**0.5, 0.5**0.5], rtol=1e-15)


def test_it_cannot_be_changed():
    point, normal = np.zeros(3), np.array([0.0, 0.0, 2.0])
    wall = mp.boundaries.Plane(point, normal)
    point[:], normal[:] = 1.0, 1.0
    assert wall.point.tolist() == [0.0, 0.0, 0.0]
    assert wall.normal.tolist() == [0.0, 0.0, 1.0]
    refuses(PublicNameError, "Plane: point cannot be assigned to", setattr, wall, "point", np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        wall.normal[0] = 1.0


def test_one_plane_is_a_wall_and_a_surface():
    assert mp.boundaries.Plane is mp.surfaces.Plane
    wall = mp.boundaries.Plane((1.0, 2.0, 3.0), (0.3, 0.4, -0.7))
    np.testing.assert_allclose(wall.value([[5.0, 1.0, -2.0]]), wall.distance([[5.0, 1.0, -2.0]]), rtol=1e-14)
    for again in (mp.deserialize(mp.serialize(wall)), pickle.loads(pickle.dumps(wall)), copy.deepcopy(wall)):
        assert type(again) is mp.boundaries.Plane
        assert again.point.tobytes() == wall.point.tobytes()
        assert again.normal.tobytes() == wall.normal.tobytes()


@pytest.mark.parametrize(("given", "message"), [
    ({"normal": [0.0, 0.0, 0.0]}, r"Plane: normal = \[0.0, 0.0, 0.0\] but must not be zero"),
    ({"normal": [0.0, 1.0]}, r"Plane: normal must have shape \(3,\), not \(2,\)"),
    ({"normal": [0.0, np.inf, 0.0]}, r"Plane: normal\[1\] = inf but must be finite"),
    ({"point": [0.0, 0.0, np.nan]}, r"Plane: point\[2\] = nan but must be finite"),
    ({"point": "origin"}, "Plane: point must be an array"),
])  # fmt: skip
def test_refusals(given, message):
    refuses(mp.ParameterError, message, mp.boundaries.Plane, **given)


def test_places_that_are_none():
    with pytest.raises(mp.ParameterError, match=r"Plane.distance: positions must have shape \(n, 3\), not \(3,\)"):
        mp.boundaries.Plane().distance([0.0, 0.0, 1.0])
