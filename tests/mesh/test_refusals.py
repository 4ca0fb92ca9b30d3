"""Every defect is refused at construction: what, how often, where, and the remedy."""

import numpy as np
import pytest
from builders import refuses

from medyanpy.errors import MeshError
from medyanpy.mesh import DefectPlace, TriangleMesh

SPHERE = TriangleMesh.icosphere(10.0, 1)


def refused(vertices, faces):
    with pytest.raises(MeshError) as caught:
        TriangleMesh(vertices, faces)
    return caught.value


@pytest.mark.parametrize(("vertices", "faces", "message"), [
    ([[0, 0], [1, 0], [0, 1]], [[0, 1, 2]], r"vertices have shape \(3, 2\) but must have shape \(V, 3\)"),
    (np.zeros(9), [[0, 1, 2]], r"vertices have shape \(9,\)"),
    ([["a", 0, 0]], [[0, 1, 2]], "vertices must be an array of numbers"),
    ([[0, 0, 0], [1, 0]], [[0, 1, 2]], "vertices must be an array of numbers"),
    (None, [[0, 1, 2]], r"vertices have shape \(\)"),
    (np.eye(3), [[0, 1, 2, 0]], r"faces have shape \(1, 4\) but must be triangles, shape \(F, 3\)"),
    (np.eye(3), [0, 1, 2], r"faces have shape \(3,\)"),
    (np.eye(3), [[0, 1, 2], [0, 1]], "faces have different numbers of vertices"),
    (np.eye(3), [[0.0, 1.0, 2.0]], "faces have type float64 but must be integers"),
    (np.eye(3), [[True, False, True]], "faces have type bool but must be integers"),
    (np.eye(3), [], "there are no faces"),
    (np.eye(3), np.empty((0, 3), int), "there are no faces"),
])  # fmt: skip
def test_wrong_shapes_and_types(vertices, faces, message):
    with pytest.raises(MeshError, match=message) as caught:
        TriangleMesh(vertices, faces)
    assert caught.value.defects == ()


@pytest.mark.parametrize("index", [42, -1, 2**40])
def test_index_out_of_range(index):
    faces = SPHERE.faces.astype(np.int64)
    faces[[5, 9], 1] = index
    error = refused(SPHERE.vertices, faces)
    assert [(d.kind, d.count) for d in error.defects] == [("vertex index out of range", 2)]
    assert error.defects[0].places[0] == DefectPlace(tuple(faces[5].tolist()), (5,), None)
    assert "2 faces use vertices that do not exist: face 5 with vertices" in str(error)
    assert "cannot be mended automatically" in str(error)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e71])
def test_coordinates_that_are_no_numbers(value):
    x = SPHERE.vertices.copy()
    x[[3, 8], 2] = value
    error = refused(x, SPHERE.faces)
    assert [(d.kind, d.count) for d in error.defects] == [("non-finite coordinates", 2)]
    assert [p.vertices for p in error.defects[0].places] == [(3,), (8,)]
    assert "vertex 3 at (" in str(error)


def test_repeated_vertex_in_a_face():
    faces = np.concatenate([SPHERE.faces, [[4, 4, 7], [2, 9, 2]]])
    error = refused(SPHERE.vertices, faces)
    assert [(d.kind, d.count) for d in error.defects] == [("repeated vertex in a face", 2)]
    assert "2 faces name the same vertex twice" in str(error)
    assert "face 80 with vertices 4, 4, 7 at (" in str(error)
    assert "repair=True" in str(error)


@pytest.mark.parametrize("corner", [[2.0, 0, 0], [0.25, 0, 0], [0, 0, 0], [1.0, 1e-17, 0]])
def test_zero_area_face(corner):
    error = refused([[0, 0, 0], [1, 0, 0], corner], [[0, 1, 2]])
    assert [(d.kind, d.count) for d in error.defects] == [("zero-area face", 1)]
    assert "1 face has zero area" in str(error)


def test_zero_area_is_judged_by_what_rounding_leaves_of_the_shape():
    """A height of 1e-9 is a thin triangle near the origin, and noise a million lengths away from it."""
    x = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0]])
    assert TriangleMesh(x, [[0, 1, 2]]).area == pytest.approx(5e-10, rel=1e-9)
    assert TriangleMesh(1e-30 * x, [[0, 1, 2]]).area == pytest.approx(5e-70, rel=1e-9)
    error = refused(x + np.array([1e6, 0, 0]), [[0, 1, 2]])
    assert error.defects[0].kind == "zero-area face"


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [0, 2, 1]])
def test_duplicate_face(order):
    faces = np.concatenate([SPHERE.faces, SPHERE.faces[[11]][:, order]])
    error = refused(SPHERE.vertices, faces)
    kinds = {d.kind: d for d in error.defects}
    assert kinds["duplicate face"].count == 1
    assert kinds["duplicate face"].places[0].faces == (80,)
    assert "1 face is a duplicate" in str(error)


def test_vertex_without_face():
    error = refused(np.concatenate([SPHERE.vertices, [[1.0, 2, 3], [4, 5, 6]]]), SPHERE.faces)
    assert [(d.kind, d.count) for d in error.defects] == [("unused vertex", 2)]
    assert "2 vertices belong to no face: vertex 42 at (1, 2, 3); vertex 43 at (4, 5, 6)" in str(error)


def test_edge_with_more_than_two_faces():
    a, b = SPHERE.edges[17]
    x = np.concatenate([SPHERE.vertices, [[0.0, 0, 0]]])
    error = refused(x, np.concatenate([SPHERE.faces, [[a, b, 42]]]))
    assert [(d.kind, d.count) for d in error.defects] == [("edge with more than two faces", 1)]
    place = error.defects[0].places[0]
    assert place.vertices == (a, b)
    assert place.faces == (*SPHERE.edge_faces[17], 80)
    np.testing.assert_allclose(place.position, SPHERE.vertices[[a, b]].mean(axis=0))


def test_bow_tie_vertices():
    """Two spheres that touch in two vertices."""
    other = SPHERE.faces + 42
    other[other == 42 + 6] = 6
    other[other == 42 + 30] = 30
    x = np.concatenate([SPHERE.vertices, 1.5 * SPHERE.vertices])
    keep = np.setdiff1d(np.arange(84), [48, 72])
    number = np.zeros(84, int)
    number[keep] = np.arange(82)
    error = refused(x[keep], number[np.concatenate([SPHERE.faces, other])])
    assert [(d.kind, d.count) for d in error.defects] == [("bow-tie vertex", 2)]
    assert [p.vertices for p in error.defects[0].places] == [(6,), (30,)]
    assert all(len(p.faces) == 2 for p in error.defects[0].places)
    assert "2 bow-tie vertices, where separate sheets touch in a single point" in str(error)


def test_bow_tie_of_two_open_fans():
    x = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    error = refused(x, [[0, 1, 2], [0, 3, 4]])
    assert [(d.kind, d.count) for d in error.defects] == [("bow-tie vertex", 1)]


def test_one_reversed_face():
    faces = SPHERE.faces.copy()
    faces[33] = faces[33, ::-1]
    error = refused(SPHERE.vertices, faces)
    assert [(d.kind, d.count) for d in error.defects] == [("inconsistent orientation", 3)]
    assert all(33 in p.faces for p in error.defects[0].places)
    assert "opposite orientation" in str(error)


def moebius(n, start=0):
    u = 2 * np.pi * np.arange(n) / n
    rim = np.array([
        [np.cos(u), np.sin(u), 0 * u],
        [0.3 * np.cos(u / 2) * np.cos(u), 0.3 * np.cos(u / 2) * np.sin(u), 0.3 * np.sin(u / 2)],
    ])  # fmt: skip
    x = np.concatenate([(rim[0] + rim[1]).T, (rim[0] - rim[1]).T])
    faces = []
    for i in range(n):
        a, b = i, n + i
        c, d = ((i + 1), n + i + 1) if i + 1 < n else (n, 0)
        faces += [[a, c, b], [b, c, d]]
    return x, np.array(faces) + start


def test_one_sided_band():
    error = refused(*moebius(12))
    assert [(d.kind, d.count) for d in error.defects] == [("not orientable", 1)]
    assert "one-sided like a Möbius band" in str(error)
    assert "cannot be mended automatically" in str(error)


def test_one_sided_bands_are_counted():
    bands = [moebius(12), moebius(14, start=24)]
    x = np.concatenate([band[0] + [10.0 * k, 0, 0] for k, band in enumerate(bands)])
    error = refused(x, np.concatenate([faces for _, faces in bands]))
    assert [(d.kind, d.count) for d in error.defects] == [("not orientable", 2)]
    assert len(error.defects[0].places) == 2


def test_all_kinds_of_defects_are_reported_at_once():
    x, band = moebius(12, start=42)
    reversed_face = SPHERE.faces.copy()
    reversed_face[0] = reversed_face[0, ::-1]
    faces = np.concatenate([reversed_face, band, [[1, 1, 2]], SPHERE.faces[[7]]])
    error = refused(np.concatenate([SPHERE.vertices, x + 30, [[9.0, 9, 9]]]), faces)
    assert [d.kind for d in error.defects] == ["repeated vertex in a face", "duplicate face", "unused vertex",
                                               "edge with more than two faces", "inconsistent orientation",
                                               "not orientable"]  # fmt: skip
    # Face numbers are those of the user's list, though faces without area were set aside for these checks.
    assert error.defects[3].places[0].faces[-1] == len(faces) - 1
    assert str(error).startswith("TriangleMesh: these 106 faces on 67 vertices cannot carry a surface:")


def test_indices_and_coordinates_are_reported_together():
    x = SPHERE.vertices.copy()
    x[0] = np.nan
    error = refused(x, np.concatenate([SPHERE.faces, [[0, 1, 99]]]))
    assert [d.kind for d in error.defects] == ["non-finite coordinates", "vertex index out of range"]


def test_only_the_first_places_are_named_but_all_are_counted():
    faces = SPHERE.faces.copy()
    faces[:, 2] = faces[:, 1]
    error = refused(SPHERE.vertices, faces)
    defect = error.defects[0]
    assert (defect.count, len(defect.places)) == (80, 3)
    assert str(defect).endswith("; ...")


def test_a_mesh_error_is_a_value_error():
    refuses(ValueError, "there are no faces", TriangleMesh, np.eye(3), [])
