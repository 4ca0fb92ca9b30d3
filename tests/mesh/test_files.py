"""Reading and writing: round trips, odd but valid files, and files that hold no mesh."""

import struct
import warnings

import numpy as np
import pytest
from builders import refuses

from medyanpy.errors import MeshError, ParameterError
from medyanpy.mesh import TriangleMesh, ply


@pytest.fixture
def mesh():
    """Untidy numbers of many sizes; two components, one with a border, and -0.0 as a coordinate."""
    a, b = TriangleMesh.icosphere(1e-3, 1), TriangleMesh.cylinder(1234.5, 5e3, 5)
    noise = np.random.default_rng(8).normal(scale=1e-5, size=a.vertices.shape)
    x = np.concatenate([a.vertices + noise, b.vertices / 3])
    x[3, 1] = -0.0
    return TriangleMesh(x, np.concatenate([b.faces + len(a.vertices), a.faces]))


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".off", ".OFF"])
def test_round_trip_keeps_every_bit(mesh, tmp_path, suffix):
    path = tmp_path / f"mesh{suffix}"
    mesh.save(path)
    again = TriangleMesh.from_file(path)
    np.testing.assert_array_equal(again.vertices, mesh.vertices)
    np.testing.assert_array_equal(again.faces, mesh.faces)


def test_stl_round_trip_keeps_the_surface_in_single_precision(mesh, tmp_path):
    mesh.save(tmp_path / "mesh.stl")
    again = TriangleMesh.from_file(str(tmp_path / "mesh.stl"))
    assert len(again.vertices) == len(mesh.vertices)
    np.testing.assert_array_equal(again.vertices[again.faces], mesh.vertices[mesh.faces].astype(np.float32))
    np.testing.assert_array_equal(again.neighbors, mesh.neighbors)


def test_stl_that_would_fuse_vertices_is_refused(tmp_path):
    mesh = TriangleMesh.icosphere(1e-3, 2).translated([1e5, 0, 0])
    refuses(MeshError, r"vertices lie on the spot of others .* save the mesh as \.ply", mesh.save, tmp_path / "far.stl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".off", ".stl"])
def test_an_existing_file_is_kept_unless_asked(tmp_path, suffix):
    path = tmp_path / f"mesh{suffix}"
    path.write_text("precious")
    sphere = TriangleMesh.icosphere(1.0, 1)
    refuses(ParameterError, "exists; pass overwrite=True", sphere.save, path)
    assert path.read_text() == "precious"
    sphere.save(path, overwrite=True)
    assert len(TriangleMesh.from_file(path).faces) == 80
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["mesh.vtk", "mesh", "mesh.tsi"])
def test_other_endings_are_not_written(tmp_path, name):
    with pytest.raises(MeshError, match=r"not written, only PLY \(.ply\), OBJ \(.obj\), OFF \(.off\), STL"):
        TriangleMesh.icosphere(1.0, 0).save(tmp_path / name)


SQUARE = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n"


@pytest.mark.parametrize(
    ("name", "text", "faces"),
    [
        ("quad.off", f"OFF\n4 1 0\n{SQUARE}4 0 1 2 3\n", [[0, 1, 2], [2, 3, 0]]),
        ("counts.off", f"OFF 4 1 0\n{SQUARE}4 0 1 2 3\n", [[0, 1, 2], [2, 3, 0]]),
        (
            "colour.off",
            f"OFF # c\n4 2 0\n{SQUARE}3 0 1 2 255 0 0\n\n3 0 2 3 0 0 255\n",
            [[0, 1, 2], [0, 2, 3]],
        ),
        (
            "pentagon.obj",
            "v 0 0 0\nv 1 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\nf 1 2 3 4 5\n",
            [[0, 1, 2], [0, 2, 3], [0, 3, 4]],
        ),
        (
            "textured.obj",
            "mtllib none.mtl\nv 0 0 0 1\nv 1 0 0 1\nv 1 1 0 1\n"
            "v 0 1 0 1\nvt 0 0\nvt 1 1\nvn 0 0 1\nusemtl m\n"
            "f 1/1/1 2/2/1 3/1/1\ng other\ns off\nf 1/2/1 3/1/1 4/2/1 # end\n",
            [[0, 1, 2], [0, 2, 3]],
        ),
        (
            "mixed.obj",
            "v 0 0 0\nv 1 0 0\nv 1 1 0\nf -3 -2 -1\nv 0 1 0\nf 1//7 -2 \\\n 4\n",
            [[0, 1, 2], [0, 2, 3]],
        ),
        (
            "windows.obj",
            "v 0 0 0\r\nv 1 0 0\r\nv 1 1 0\r\nv 0 1 0\r\nf 1 2 3 4\r\n",
            [[0, 1, 2], [0, 2, 3]],
        ),
        (
            "text.ply",
            "ply\nformat ascii 1.0\ncomment c\nelement vertex 4\n"
            "property float x\nproperty float y\nproperty float z\n"
            "property uchar red\nelement face 1\nproperty list uchar int vertex_index\nend_header\n"
            "0 0 0 9\n1 0 0 9\n1 1 0 9\n0 1 0 9\n4 0 1 2 3\n",
            [[0, 1, 2], [0, 2, 3]],
        ),
        (
            "mixed.ply",
            "ply\nformat ascii 1.0\nelement face 2\nproperty uchar tag\n"
            "property list uchar int vertex_indices\n"
            "element vertex 5\nproperty double z\nproperty double y\nproperty double x\nend_header\n"
            "7 3 0 1 2\n7 4 0 2 3 4\n0 0 0\n0 0 1\n0 1 1\n0 1 0\n0 0.5 -1\n",
            [[0, 1, 2], [0, 2, 3], [0, 3, 4]],
        ),
        (
            "sizes.obj",
            "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv -1 0.5 0\nf 1 2 3 4\nf 1 4 5\n",
            [[0, 1, 2], [0, 2, 3], [0, 3, 4]],
        ),
    ],
)
def test_odd_but_valid_files(tmp_path, name, text, faces):
    path = tmp_path / name
    path.write_text(text, newline="")
    mesh = TriangleMesh.from_file(path)
    np.testing.assert_array_equal(mesh.faces, faces)
    if name == "mixed.ply":
        np.testing.assert_array_equal(mesh.vertices[1], [1, 0, 0])
    if name.endswith(("textured.obj", "mixed.obj")):
        np.testing.assert_array_equal(mesh.vertices, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])


@pytest.mark.parametrize("order", ["<", ">"])
def test_binary_ply_with_polygons_of_different_sizes(order):
    """With an element without properties and a list besides the faces, in either byte order."""
    word = "little" if order == "<" else "big"
    header = (
        f"ply\nformat binary_{word}_endian 1.0\nelement nothing 3\nelement vertex 5\nproperty double x\n"
        "property float y\nproperty short z\nelement face 3\nproperty list uchar uint vertex_indices\n"
        "property list ushort float weights\nproperty char flag\nend_header\n"
    )
    x = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 3], [-1, 0.5, -2]]
    body = b"".join(struct.pack(order + "dfh", *row) for row in x)
    polygons = [[0, 1, 2], [0, 2, 3, 4], [4, 3, 1]]
    for k, polygon in enumerate(polygons):
        body += struct.pack(f"{order}B{len(polygon)}I", len(polygon), *polygon)
        body += struct.pack(f"{order}H{k}fb", k, *([0.5] * k), -1)
    vertices, corners, lengths = ply.read_ply(header.encode() + body)
    np.testing.assert_array_equal(vertices, x)
    assert corners.tolist() == [corner for polygon in polygons for corner in polygon]
    assert lengths.tolist() == [len(polygon) for polygon in polygons]
    for cut in (1, 10, len(body) - 3):
        refuses(ValueError, "it ends within its element", ply.read_ply, header.encode() + body[:-cut])


def test_ascii_stl_welds_exactly_equal_corners_only(tmp_path):
    facet = "facet normal 0 0 1\nouter loop\nvertex {}\nvertex {}\nvertex {}\nendloop\nendfacet\n"
    a, b, c, d = "0 0 0", "1 0 0", "1 1 0", "-0 1e0 0"
    text = "solid one\n" + facet.format(a, b, c) + "endsolid one\nsolid two\n"
    path = tmp_path / "two.stl"
    path.write_text(text + facet.format("-0.0 0 -0", c, d) + "endsolid two\n")
    mesh = TriangleMesh.from_file(path)
    np.testing.assert_array_equal(mesh.vertices, [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [0, 2, 3]])
    path.write_text(text + facet.format("0 0 1e-12", "1 1 1e-12", d) + "endsolid two\n")
    assert len(TriangleMesh.from_file(path).components) == 2


@pytest.mark.parametrize("name", ["mesh.vtk", "mesh", "mesh.gltf"])
def test_other_endings_are_not_read(tmp_path, name):
    (tmp_path / name).write_text("something")
    with pytest.raises(MeshError, match=rf"{name}: .* not read, only PLY \(.ply\), OBJ \(.obj\), OFF \(.off\), STL"):
        TriangleMesh.from_file(tmp_path / name)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    refuses(MeshError, r"none\.off: cannot be opened \(No such file", TriangleMesh.from_file, tmp_path / "none.off")
    (tmp_path / "folder.ply").mkdir()
    refuses(MeshError, r"folder\.ply: cannot be opened", TriangleMesh.from_file, tmp_path / "folder.ply")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.off", b"", "the file is empty"),
        ("a.ply", b" \n", "the file is empty"),
        ("a.off", b"not a mesh at all", "cannot be read as OFF file"),
        ("a.off", b"OFF\n4 1 0\n0 0 0\n1 0 0\n", "cannot be read as OFF file"),
        ("a.off", b"OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n", "holds no surface"),
        ("a.obj", b"hello\n", "holds no surface"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\n", "holds no surface"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\n", "face 1 has 2 vertices"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 0\n", "face 1 names vertex 0, which does not exist"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 -4\n", "face 1 names vertex -4"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "read as OBJ file .its face 1 names vertex 4, which"),
        ("a.obj", b"v 0 0 0\nv 1_0 0 0\nv 0 1 0\nf 1 2 3\n", "its line 2.* holds something else than numbers"),
        ("a.obj", b"v 0 0 0\nv 1 zero 0\nv 0 1 0\nf 1 2 3\n", "cannot be read as OBJ file"),
        ("a.obj", b"v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "its vertex 1 has 2 coordinates"),
        ("a.stl", b"solid nothing\nendsolid nothing\n", "cannot be read as STL file|holds no surface"),
        ("a.stl", bytes(84) + b"123", "cannot be read as STL file|holds no surface"),
        ("a.stl", bytes(84), "cannot be read as STL file|holds no surface"),
        ("a.ply", b"ply\nformat ascii 1.0\n", "it has no PLY header"),
        ("a.ply", b"ply\nformat ebcdic 1.0\nend_header\n", "its header has the line 'format ebcdic"),
        ("a.ply", b"ply\nformat ascii 1.0\nend_header\n", "no element named vertex"),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n",
            "have no y, z",
        ),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\n"
            b"end_header\n0 0 0 1 1",
            "it ends within its element 'vertex'",
        ),
        (
            "a.ply",
            b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n"
            b"element face 1\nproperty list uchar int corners\nend_header\n0 0 0 3 0 0 0",
            "no list named vertex_indices",
        ),
    ],
)
def test_files_without_a_mesh_are_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MeshError, match=message) as caught:
        TriangleMesh.from_file(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "PLY (.ply), OBJ (.obj), OFF (.off), STL (.stl)" in str(caught.value)


def test_a_face_of_a_vertex_that_does_not_exist_is_refused(tmp_path):
    """Some versions of Trimesh see it themselves."""
    (tmp_path / "a.off").write_bytes(b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n")
    with pytest.raises(MeshError, match=r"outside the range|uses a vertex that does not exist") as caught:
        TriangleMesh.from_file(tmp_path / "a.off")
    assert str(tmp_path / "a.off") in str(caught.value)



def test_defects_of_a_file_carry_its_name(tmp_path):
    path = tmp_path / "flat.off"
    path.write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n2 0 0\n3 0 1 2\n")
    with pytest.raises(MeshError, match=r"(?s)flat\.off: TriangleMesh: .*1 face has zero area") as caught:
        TriangleMesh.from_file(path)
    assert caught.value.defects[0].kind == "zero-area face"


@pytest.mark.parametrize("name", ["a.obj", "a.stl"])
def test_text_among_numbers_is_an_error_and_not_the_end_of_the_file(tmp_path, name):
    """NumPy's text parser only warns and returns what came before; users do not see such warnings."""
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    texts = {
        "a.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 oops\nf 1 2 3\n",
        "a.stl": f"solid s\n{facet}{facet.replace('1 0 0', '1 oops 0')}endsolid s\n",
    }
    (tmp_path / name).write_text(texts[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refuses(MeshError, "cannot be read as", TriangleMesh.from_file, tmp_path / name)
