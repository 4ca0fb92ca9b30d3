"""Neighbours, corners, edges, borders and components against a slow dictionary implementation."""

from collections import defaultdict

import numpy as np
import pytest

from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.connectivity import Connectivity, first_appearance


def untidy(mesh, seed, drop=0.0):
    """Shuffle vertices, faces and the first corner of each face; drop some faces where borders are wanted.

    Faces are dropped such that no two dropped ones share a vertex, so that what remains is a surface with as
    many three-sided holes.
    """
    rng = np.random.default_rng(seed)
    faces = mesh.faces.copy()
    if drop:
        taken, gone = set(), []
        for f in rng.permutation(len(faces))[: int(drop * len(faces))]:
            if not taken & set(faces[f].tolist()):
                taken.update(faces[f].tolist())
                gone.append(f)
        faces = np.delete(faces, gone, axis=0)
    turns = rng.integers(0, 3, len(faces))
    faces = np.array([np.roll(face, k) for face, k in zip(faces, turns, strict=True)])[rng.permutation(len(faces))]
    number = rng.permutation(len(mesh.vertices))
    x = np.empty_like(mesh.vertices)
    x[number] = mesh.vertices
    return TriangleMesh(x, number[faces])


MESHES = {
    "closed sphere": lambda: untidy(TriangleMesh.icosphere(1.0, 2), 1),
    "sphere with holes": lambda: untidy(TriangleMesh.icosphere(1.0, 3), 2, drop=0.1),
    "torus with holes": lambda: untidy(TriangleMesh.torus(3.0, 1.0, 15, 9), 3, drop=0.1),
    "sheet": lambda: untidy(TriangleMesh.flat_sheet(7, 6, 1.0), 4),
    "tube": lambda: untidy(TriangleMesh.cylinder(1.0, 4.0, 7), 5, drop=0.02),
    "two bodies": lambda: untidy(two_bodies(), 6),
}


def two_bodies():
    a, b = TriangleMesh.icosphere(1.0, 1), TriangleMesh.torus(3.0, 1.0, 8, 5)
    return TriangleMesh(np.concatenate([a.vertices, b.vertices]), np.concatenate([a.faces, b.faces + len(a.vertices)]))


def slow_tables(faces):
    """Everything from a dictionary of directed edges, one face at a time."""
    corner_of = {}
    for f, face in enumerate(faces.tolist()):
        for i in range(3):
            corner_of[face[(i + 1) % 3], face[(i + 2) % 3]] = 3 * f + i
    opposite = np.full(faces.shape, -1)
    nexts = {}
    edges = defaultdict(list)
    for (a, b), corner in corner_of.items():
        edges[min(a, b), max(a, b)].append(corner // 3)
        opposite[corner // 3, corner % 3] = corner_of.get((b, a), -1)
        if (b, a) not in corner_of:
            nexts[a] = b
    loops = []
    while nexts:
        start = min(nexts)
        loop, v = [start], nexts.pop(start)
        while v != start:
            loop.append(v)
            v = nexts.pop(v)
        loops.append(loop)
    component = np.full(len(faces), -1)
    n = 0
    for f in range(len(faces)):
        if component[f] >= 0:
            continue
        stack = [f]
        while stack:
            g = stack.pop()
            if component[g] < 0:
                component[g] = n
                stack += [c // 3 for c in opposite[g].tolist() if c >= 0]
        n += 1
    return opposite, dict(sorted(edges.items())), loops, component


@pytest.mark.parametrize("name", MESHES)
def test_tables_equal_the_slow_ones(name):
    mesh = MESHES[name]()
    opposite, edges, loops, component = slow_tables(mesh.faces)
    np.testing.assert_array_equal(mesh.opposite_corners, opposite)
    np.testing.assert_array_equal(mesh.neighbors, np.where(opposite < 0, -1, opposite // 3))
    np.testing.assert_array_equal(mesh.edges, list(edges))
    np.testing.assert_array_equal(mesh.edge_faces,
                                  [sorted(fs) if len(fs) == 2 else [fs[0], -1] for fs in edges.values()])  # fmt: skip
    assert [loop.tolist() for loop in mesh.borders] == loops
    np.testing.assert_array_equal(mesh.component_of_face, component)
    assert [part.tolist() for part in mesh.components] == [
        np.flatnonzero(component == k).tolist() for k in range(component.max() + 1)
    ]
    assert mesh.is_closed is (not loops)


@pytest.mark.parametrize("name", MESHES)
def test_opposite_corners_are_mutual_and_share_their_edge(name):
    mesh = MESHES[name]()
    flat = mesh.opposite_corners.ravel()
    inner = np.flatnonzero(flat >= 0)
    np.testing.assert_array_equal(flat[flat[inner]], inner)
    corner = mesh.faces.ravel()
    for c in inner.tolist():
        f, i, g, j = c // 3, c % 3, flat[c] // 3, flat[c] % 3
        assert corner[3 * f + (i + 1) % 3] == corner[3 * g + (j + 2) % 3]
        assert corner[3 * f + (i + 2) % 3] == corner[3 * g + (j + 1) % 3]


@pytest.mark.parametrize("name", MESHES)
def test_vertex_faces_list_every_corner_once_in_order(name):
    mesh = MESHES[name]()
    offsets, corners = mesh.vertex_faces
    expected = defaultdict(list)
    for c, v in enumerate(mesh.faces.ravel().tolist()):
        expected[v].append(c)
    assert (offsets[0], offsets[-1]) == (0, 3 * len(mesh.faces))
    for v in range(len(mesh.vertices)):
        assert corners[offsets[v] : offsets[v + 1]].tolist() == expected[v]


def test_holes_are_counted_as_borders_and_capped_for_the_genus():
    mesh = MESHES["torus with holes"]()
    assert len(mesh.borders) > 3
    assert {len(loop) for loop in mesh.borders} == {3}
    assert mesh.genus == 1
    assert mesh.euler_characteristic == -len(mesh.borders)


def test_genus_is_summed_over_components():
    mesh = MESHES["two bodies"]()
    assert (len(mesh.components), mesh.genus, mesh.euler_characteristic) == (2, 1, 2)


def test_two_faces_that_share_two_edges_stay_unambiguous():
    # Such faces have the same three vertices, so a TriangleMesh refuses them; the table itself must still be
    # right.
    fold = Connectivity(np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int32), 3)
    np.testing.assert_array_equal(fold.neighbors, [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(fold.opposite_corners, [[5, 4, 3], [2, 1, 0]])


def test_packed_and_plain_sorting_of_half_edges_agree():
    """Meshes too large for the packed sort take another path; it must give the same tables."""
    mesh = MESHES["sphere with holes"]()
    packed = Connectivity(mesh.faces, len(mesh.vertices))
    plain = Connectivity(mesh.faces, 2**31 - 1)
    np.testing.assert_array_equal(plain.edges, packed.edges)
    np.testing.assert_array_equal(plain.opposite_corners, packed.opposite_corners)
    np.testing.assert_array_equal(plain.half_edges_by_edge, packed.half_edges_by_edge)


def test_border_runs_with_the_surface_on_its_left():
    mesh = TriangleMesh.flat_sheet(5, 4, 1.0)
    loop = mesh.vertices[mesh.borders[0]]
    x, y = loop[:, 0], loop[:, 1]
    assert 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) == pytest.approx(mesh.area, rel=1e-13)


def test_components_are_numbered_by_first_appearance():
    np.testing.assert_array_equal(first_appearance(np.array([5, 2, 5, 0, 2])), [0, 1, 0, 2, 1])
