"""Mesh files say how much they hold: what is cut short, or holds more, is refused by its line."""

import struct

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.errors import MeshError

MESH = mp.TriangleMesh.icosphere(10.0, 1)
V, F = len(MESH.vertices), len(MESH.faces)


def solid(faces, name="a"):
    out = [f"solid {name}"]
    for face in faces:
        corners = [f"vertex {' '.join(f'{x:.9g}' for x in MESH.vertices[k])}" for k in face]
        out += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    return [*out, f"endsolid {name}"]


VERTEX_ROWS = [" ".join(map(repr, row)) for row in MESH.vertices.tolist()]
FACE_ROWS = ["3 " + " ".join(map(str, row)) for row in MESH.faces.tolist()]
OBJ = [f"v {row}" for row in VERTEX_ROWS] + ["f " + " ".join(str(k + 1) for k in row) for row in MESH.faces.tolist()]
OFF = ["OFF", f"{V} {F} 0", *VERTEX_ROWS, *FACE_ROWS]
HEADER = ["ply", "format ascii 1.0", f"element vertex {V}", "property double x", "property double y",
          "property double z", f"element face {F}", "property list uchar int vertex_indices", "end_header"]  # fmt: skip
PLY = [*HEADER, *VERTEX_ROWS, *FACE_ROWS]
STL = solid(MESH.faces)


def read(tmp_path, ending, content):
    path = tmp_path / f"mesh.{ending}"
    path.write_bytes(content if isinstance(content, bytes) else ("\n".join([*content, ""])).encode())
    return mp.TriangleMesh.from_file(path)


def binary_stl(announced=F, beyond=b""):
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *MESH.vertices[face].ravel(), 7) for face in MESH.faces)
    return b"solid of a program".ljust(80) + struct.pack("<I", announced) + rows + beyond


def with_row(rows, k, row):
    return [*rows[:k], row, *rows[k + 1 :]]


@pytest.mark.parametrize(("ending", "content", "message"), [
    ("off", OFF[:-1], rf"ends after line {len(OFF) - 1}, with {F - 1} of the {F} faces that line 2 announces"),
    ("off", OFF[: V - 3], rf"with {V - 5} of the {V} vertices that line 2 announces"),
    ("off", [*OFF, FACE_ROWS[0]], rf"line {len(OFF) + 1} follows the {V} vertices and {F} faces"),
    ("off", with_row(OFF, 1, f"{V} {F - 1} 0"), rf"line {len(OFF)} follows"),
    ("off", with_row(OFF, 1, f"{V - 1} {F} 0"), rf"line {V + 2} "),
    ("off", with_row(OFF, 1, f"{V + 1} {F} 0"), rf"line {V + 3} has 4 numbers, but vertex {V}"),
    ("off", with_row(OFF, 5, OFF[5] + " 1"), "line 6 has 4 numbers"),
    ("off", with_row(OFF, V + 5, FACE_ROWS[3] + " " + FACE_ROWS[4] + " 0 1 2"), rf"line {V + 6} has 10 numbers"),
    ("off", with_row(OFF, V + 5, "3 0 1 99"), rf"line {V + 6} uses a vertex that does not exist: 99"),
    ("off", with_row(OFF, V + 5, "2 0 1"), rf"a face with 2 vertices, on line {V + 6}"),
    ("off", with_row(OFF, 0, "nOFF"), "any number of coordinates"),
    ("off", with_row(OFF, 0, "OFF BINARY"), "binary OFF"),
    ("off", with_row(OFF, 0, "COFF"), "line 3 has 3 numbers"),
    ("obj", [*OBJ[:-1], OBJ[-1] + " \\"], rf"line {len(OBJ)} continues in a next one, which is missing"),
    ("obj", [*OBJ, "face 1 2 3"], rf"line {len(OBJ) + 1} begins with 'face'"),
    ("obj", with_row(OBJ, 3, OBJ[3] + " 1 2"), "line 4 has 5 numbers of one vertex"),
    ("obj", with_row(OBJ, V, "f 1/a/2 2 3"), rf"line {V + 1} holds something else than numbers"),
    ("obj", with_row(OBJ, V, "f 1 2 99"), rf"names vertex 99, which does not exist, on line {V + 1}"),
    ("stl", STL[:-1], rf"ends after line {len(STL) - 1}, within the solid of line 1: 'endsolid' is missing"),
    ("stl", STL[:-2], rf"within the facet of line {len(STL) - 7}"),
    ("stl", [*solid(MESH.faces[:40]), *solid(MESH.faces[40:])[:-1]], "within the solid of line 283"),
    ("stl", [*STL[:5], *STL[6:]], r"line 5 has 'endloop'|line 6 has 'endloop'"),
    ("stl", [*STL[:3], STL[3], *STL[3:]], "line 7 has"),
    ("stl", [*STL[:7], *STL[8:]], "inside the facet of line"),
    ("stl", [*STL, "something"], rf"line {len(STL) + 1} has 'something'"),
    ("stl", binary_stl(F + 1), rf"announces {F + 1} triangles, which are .* bytes, but it has .*: it is cut short"),
    ("stl", binary_stl(F - 1), "50 bytes follow the last triangle"),
    ("stl", binary_stl()[:-1], "cut short"),
    ("stl", binary_stl(beyond=b"more"), "4 bytes follow the last triangle"),
    ("stl", binary_stl(0), "announces 0 triangles"),
    ("ply", PLY[:-1], rf"after line {len(PLY) - 1}, with {F - 1} of the {F} that its header announces"),
    ("ply", [*PLY, FACE_ROWS[0]], rf"line {len(PLY) + 1} follows all that its header announces"),
    ("ply", with_row(PLY, 2, f"element vertex {V - 1}"), "line"),
    ("ply", with_row(PLY, len(PLY) - 1, FACE_ROWS[-1] + " 5"), rf"line {len(PLY)} holds more values"),
    ("ply", with_row(PLY, len(PLY) - 1, "3 0 0.5 2"), "has the value 0.5"),
    ("ply", with_row(PLY, 9, "0 0 zero"), "line 10 holds something else than numbers"),
    ("ply", [*HEADER[:6], f"element vertex {V}", *HEADER[6:]], "element 'vertex' twice"),
    ("ply", with_row(PLY, 6, "element tristrips 3"), "strips of triangles"),
])  # fmt: skip
def test_files_that_do_not_hold_what_they_announce_are_refused_by_line(tmp_path, ending, content, message):
    with pytest.raises(MeshError, match=message) as caught:
        read(tmp_path, ending, content)
    assert f"mesh.{ending}" in str(caught.value)


@pytest.mark.parametrize(("ending", "content"), [
    ("off", OFF),
    ("off", ["# first", "OFF # o", "", f"{V} {F}", *VERTEX_ROWS, "# between", *FACE_ROWS, "", "# end"]),
    ("off", [f"{V} {F} 0", *VERTEX_ROWS, *FACE_ROWS]),
    ("off", ["COFF", OFF[1], *(row + " 255 0 0 255" for row in VERTEX_ROWS), *(row + " 1" for row in FACE_ROWS)]),
    ("off", ["STNOFF", OFF[1], *(row + " 0 0 1 0.5 0.5" for row in VERTEX_ROWS), *FACE_ROWS]),
    ("off",
     ["4OFF", OFF[1], *(" ".join(repr(2.0 * x) for x in row) + " 2" for row in MESH.vertices.tolist()), *FACE_ROWS]),
    ("obj", [*OBJ[: V + 7], "# from C:\\cells\\", *OBJ[V + 7 :]]),
    ("obj", [*OBJ[: V + 7], "g C:\\cells\\", *OBJ[V + 7 :]]),
    ("obj", [*OBJ[: V + 7], "usemtl a\\", "o b\\", *OBJ[V + 7 : -1], OBJ[-1] + " # C:\\"]),
    ("obj", [*OBJ[:-1], " \\\n".join(OBJ[-1].split())]),
    ("obj", [*OBJ[:V], *("f " + " ".join(f"{k - V}/1/1" for k in row) for row in MESH.faces.tolist()), "l 1 2"]),
    ("stl", STL),
    ("stl", [*solid(MESH.faces[:40]), "", *solid(MESH.faces[40:], "b")]),
    ("stl", ("\r\n".join(STL).upper() + "\r\n\x1a\0\0").encode()),
    ("stl", binary_stl()),
    ("stl", binary_stl(beyond=b"\r\n\0")),
    ("ply", PLY),
    ("ply", [*HEADER, " ".join(VERTEX_ROWS), *FACE_ROWS]),
    ("ply", [*HEADER, *"\n".join(VERTEX_ROWS + FACE_ROWS).split()]),
    ("ply", [*HEADER[:8], "property uchar red", HEADER[8], *VERTEX_ROWS, *(row + " 9 1 1 1" for row in FACE_ROWS)]),
    ("ply", [*HEADER, *(row + " 1" for row in VERTEX_ROWS), *FACE_ROWS]),
])  # fmt: skip
def test_files_that_hold_it_are_read_whole(tmp_path, ending, content):
    mesh = read(tmp_path, ending, content)
    assert (len(mesh.vertices), len(mesh.faces), mesh.is_closed) == (V, F, True)
    assert mesh.volume == pytest.approx(MESH.volume, rel=1e-6)


@pytest.mark.parametrize("order", ["<", ">"])
def test_binary_ply_in_either_order_and_cut_anywhere(tmp_path, order):
    word = "little" if order == "<" else "big"
    head = "\n".join([HEADER[0], f"format binary_{word}_endian 1.0", *HEADER[2:], ""]).encode()
    body = MESH.vertices.astype(f"{order}f8").tobytes()
    body += b"".join(struct.pack(f"{order}B3i", 3, *face) for face in MESH.faces.tolist())
    mesh = read(tmp_path, "ply", head + body)
    np.testing.assert_array_equal(mesh.vertices, MESH.vertices)
    np.testing.assert_array_equal(mesh.faces, MESH.faces)
    for cut in (1, 13, 14, len(body) // 2):
        refuses(MeshError, "it ends within its element", read, tmp_path, "ply", head + body[:-cut])
    refuses(MeshError, "13 bytes follow all that its header announces", read, tmp_path, "ply", head + body + body[-13:])


def test_a_ply_of_meshlab_with_more_colours_than_it_announces(shared_data):
    path = shared_data / "more" / "meshes" / "fuze_ascii.ply"
    mesh = mp.TriangleMesh.from_file(path)
    assert (len(mesh.vertices), len(mesh.faces)) == (502, 1000)
    assert mesh.area == pytest.approx(0.0447223, rel=1e-5)
