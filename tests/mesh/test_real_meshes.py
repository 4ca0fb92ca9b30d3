"""The property table of the shared data: real meshes are read as its README says, or refused."""

import numpy as np
import pytest

from medyanpy.errors import MeshError
from medyanpy.mesh import TriangleMesh

# file: vertices, faces (triangles), border lengths, Euler characteristic, components, genus, shortest and
# longest edge, volume (None: open). Faces of polygon files counted after fan triangulation.
TABLE = {
    "biology/rbc_mirheo_498v.off": (498, 992, [], 2, 1, 0, 0.3029, 0.4478, 27.4),
    "biology/celegans_cell6_T17.ply": (629, 1254, [], 2, 1, 0, 3.362, 8.847, 7.601e4),
    "biology/mem3dg_prolate.ply": (472, 940, [], 2, 1, 0, 0.1458, 0.2099, 3.809),
    "biology/mem3dg_patch.ply": (1288, 2498, [76], 1, 1, 0, 0.01863, 0.1017, None),
    "biology/mem3dg_bud_frame9.ply": (1702, 3324, [78], 1, 1, 0, 0.009804, 0.07762, None),
    "biology/freedts_vesicle.off": (650, 1296, [], 2, 1, 0, 1.0, 1.732, 2966),
    "biology/freedts_flat_cut.off": (699, 1290, [106], 1, 1, 0, 1.0, 1.732, None),
    "biology/freedts_G1_neck_cut.off": (1682, 3132, [118, 114], 0, 1, 0, 1.0, 1.732, None),
    "biology/freedts_gen20.off": (1800, 3680, [], -40, 1, 21, 1.009, 1.43, 844.9),
    "topology/eight.off": (766, 1536, [], -2, 1, 2, 0.05939, 0.2127, 0.6801),
    "topology/eight.open.off": (814, 1536, [24, 24, 24, 24], -2, 1, 0, 0.05939, 0.2127, None),
    "topology/bob_small.ply": (250, 500, [], 0, 1, 1, 0.05632, 0.5263, 0.6791),
    "topology/knot.obj": (1440, 2880, [], 0, 1, 1, 2.703, 20.34, 1.054e6),
    "topology/cat_head.obj": (131, 248, [12], 1, 1, 0, 0.06329, 0.6729, None),
    "topology/bunny_small.ply": (1241, 2478, [], 2, 1, 0, 0.06561, 0.1346, 1.574),
    "topology/bunny_4holes.obj": (2503, 4968, [12, 11, 11, 8], -2, 1, 0, 0.001058, 0.02872, None),
    "topology/bunny_poly.ply": (1241, 2478, [], 2, 1, 0, 0.06561, 0.1964, 1.573),
    "thin/plate_holes.STL": (618, 1252, [], -8, 1, 5, 0.8819, 254, 7.674e5),
    "thin/7_8ths_cube.stl": (14, 24, [], 2, 1, 0, 20, 56.57, 5.6e4),
    "thin/fox.ply": (313, 622, [], 2, 1, 0, 0.7508, 28.1, 2.839e4),
    "formats/DendriticSpine_compartments.obj": (1055, 1950, [], 80, 40, 0, 0.003827, 0.4243, 0.04831),
    "formats/negative_indices.obj": (8, 12, [], 2, 1, 0, 2, 2.828, 8),
    "formats/comments.off": (8, 12, [], 2, 1, 0, 2.309, 3.266, 12.32),
}


@pytest.mark.parametrize("name", TABLE)
def test_real_mesh_has_the_properties_of_the_table(shared_data, name):
    n_vertices, n_faces, borders, chi, n_components, genus, shortest, longest, volume = TABLE[name]
    mesh = TriangleMesh.from_file(shared_data / "meshes" / name)
    assert mesh.vertices.shape == (n_vertices, 3)
    assert mesh.faces.shape == (n_faces, 3)
    assert sorted((len(loop) for loop in mesh.borders), reverse=True) == borders
    assert mesh.is_closed is (not borders)
    assert mesh.euler_characteristic == chi
    assert len(mesh.components) == n_components
    assert mesh.genus == genus
    assert mesh.edge_lengths.min() == pytest.approx(shortest, rel=1e-3)
    assert mesh.edge_lengths.max() == pytest.approx(longest, rel=1e-3)
    if volume is not None:
        assert mesh.volume == pytest.approx(volume, rel=1e-3)
    assert (mesh.quality > 0).all()


def test_every_mesh_file_is_in_this_table_or_refused_below(shared_data):
    found = {str(p.relative_to(shared_data / "meshes")) for p in (shared_data / "meshes").rglob("*.*")}
    refused = {name for name in found if name.startswith("bad/") or name.endswith((".tsi", ".q"))}
    # Those of test_remeshing.py.
    em = {"biology/pap_plasma_membrane_em_nonmanifold.stl", "biology/pap_er_em.stl"}
    assert found - refused - set(TABLE) == em


def test_scale_turns_units_of_the_file_into_nm(shared_data):
    path = shared_data / "meshes/biology/rbc_mirheo_498v.off"
    plain, scaled = TriangleMesh.from_file(path), TriangleMesh.from_file(path, scale=1000.0)
    np.testing.assert_array_equal(scaled.vertices, 1000.0 * plain.vertices)


@pytest.mark.parametrize("name", ["freedts_vesicle.q", "freedts_flat_pbc_700inclusions.tsi", "freedts_G1_neck_pbc.tsi"])
def test_periodic_freedts_files_are_refused_with_the_way_out(shared_data, name):
    with pytest.raises(MeshError, match=r"FreeDTS files .* periodic box. Convert .* \(\.off\)"):
        TriangleMesh.from_file(shared_data / "meshes/biology" / name)


# file: defects as (kind, count)
BAD = {
    "biology/pap_plasma_membrane_em_nonmanifold.stl": [("edge with more than two faces", 7), ("bow-tie vertex", 4)],
    "bad/fan3.obj": [("edge with more than two faces", 1)],
    "bad/hourglass_ico.obj": [("bow-tie vertex", 1)],
    "bad/moebius.obj": [("not orientable", 1)],
    "bad/joined_tetrahedra.obj": [("duplicate face", 1), ("edge with more than two faces", 3)],
    "bad/multibody_bad_orientation.stl": [("inconsistent orientation", 12)],
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_mesh_is_refused_with_kinds_counts_and_places(shared_data, name):
    path = shared_data / "meshes" / name
    with pytest.raises(MeshError) as caught:
        TriangleMesh.from_file(path)
    assert [(d.kind, d.count) for d in caught.value.defects] == BAD[name]
    for defect in caught.value.defects:
        assert len(defect.places) == min(defect.count, 3)
        assert str(defect) in str(caught.value)
    assert str(path) in str(caught.value)
    assert ("repair=True" in str(caught.value)) == (name != "bad/moebius.obj")


def test_moebius_band_cannot_be_repaired(shared_data):
    with pytest.raises(MeshError, match=r"(?s)one-sided like a Möbius band.*cannot be mended"):
        TriangleMesh.from_file(shared_data / "meshes/bad/moebius.obj", repair=True)


# file: vertices, faces, components, genus, closed, actions of the report
MENDED = {
    "biology/pap_plasma_membrane_em_nonmanifold.stl": (
        (10350, 20704, 1, 2, True),
        {"branching_edges_cut": 7, "vertices_split": 13},
    ),
    "bad/fan3.obj": (
        (7, 3, 2, 0, False),
        {"branching_edges_cut": 1, "border_edges_made": 1, "vertices_split": 2, "faces_reversed": 1},
    ),
    "bad/hourglass_ico.obj": ((24, 40, 2, 0, True), {"vertices_split": 1}),
    "bad/joined_tetrahedra.obj": (
        (5, 6, 1, 0, True),
        {"duplicate_faces_dropped": 1, "inner_walls_dropped": 1},
    ),
    "bad/multibody_bad_orientation.stl": ((20, 32, 2, 0, True), {"faces_reversed": 26}),
}


@pytest.mark.parametrize("name", MENDED)
def test_bad_mesh_is_mended_and_the_report_says_how(shared_data, name):
    mesh, report = TriangleMesh.from_file(shared_data / "meshes" / name, repair=True)
    (n_vertices, n_faces, n_components, genus, closed), actions = MENDED[name]
    assert (len(mesh.vertices), len(mesh.faces), len(mesh.components)) == (n_vertices, n_faces, n_components)
    assert mesh.genus == genus
    assert mesh.is_closed is closed
    assert report.actions == actions
    assert (report.vertices_after, report.faces_after) == (n_vertices, n_faces)
    for action in actions:
        assert action.replace("_", " ") in str(report)
    if closed:
        assert mesh.volume > 0
        np.testing.assert_allclose(mesh.repaired()[0].volume, mesh.volume, rtol=0)
    # Nothing was moved: the mended mesh has the area of the triangles in the file, except the dropped walls.
    again, second = mesh.repaired()
    assert not second.changed
    np.testing.assert_array_equal(again.faces, mesh.faces)


def test_mended_bodies_both_face_outward(shared_data):
    mesh, _ = TriangleMesh.from_file(shared_data / "meshes/bad/multibody_bad_orientation.stl", repair=True)
    for part in mesh.components:
        used, faces = np.unique(mesh.faces[part], return_inverse=True)
        assert TriangleMesh(mesh.vertices[used], faces.reshape(-1, 3)).volume > 0


def test_mending_the_em_mesh_moves_no_triangle(shared_data):
    path = shared_data / "meshes/biology/pap_plasma_membrane_em_nonmanifold.stl"
    mesh, _ = TriangleMesh.from_file(path, repair=True)
    corners = np.frombuffer(path.read_bytes()[84:], np.dtype([("n", "<f4", 3), ("x", "<f4", (3, 3)), ("a", "<u2")]))
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], corners["x"].astype(np.float64))
