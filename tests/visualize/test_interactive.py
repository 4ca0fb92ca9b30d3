"""Scenes that turn: the things, places, thicknesses and colours of pictures, in files that need nothing else."""

import base64
import io
import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy.visualize import interactive, renderer, scene

# Pictures: no kernel that other tests do not reach.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulation():
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(100.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6, name="vesicle")
    topology.add_intriangle_points(vesicle, 30, mass=4e-12, friction=4e-6, seed=1, name="proteins")
    topology.add_balls([[0.0, 0, 0], [40.0, 0, 0]], radius=[10.0, 15.0], mass=1e-12, friction=1e-6, name="balls")
    nodes = [np.column_stack([np.linspace(-50.0, 50.0, 5), np.full(5, y), np.full(5, -40.0)]) for y in (-20.0, 20.0)]
    topology.add_filaments(nodes, node_mass=1e-12, node_friction=1e-6, name="actin")
    inertia = mp.rigid.ellipsoid_inertia((20.0, 8.0, 4.0), 1e-12)
    where = [[0.0, 0, 50.0]], [[0.6, 0.8, 0.0, 0.0]]
    topology.add_rigid_bodies(*where, mass=1e-12, inertia=inertia, friction=(1e-4, 1e-2), name="bodies")
    return mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-9, temperature=300.0, seed=1), threads=1)


def pieces(what, **more):
    options = {"values": None, "label": "", "colormap": "viridis", "point_radius": None, "opacity": 1.0,
               "semi_axes": None, "spheres": None, "view": None, "unit": "nm", "title": None}  # fmt: skip
    return interactive._scene(what, **options | more).pieces


def volume(piece):
    """Of closed parts, nm³; positive where faces are seen from outside."""
    a, b, c = piece.vertices[piece.faces].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def by_name(found):
    names = {}
    for piece in found:
        names.setdefault(piece.name, []).append(piece)
    return names


def test_all_there_is_has_its_place_and_size(simulation):
    pytest.importorskip("pyvista")
    found = by_name(pieces(simulation))
    assert list(found) == ["vesicle", "proteins", "balls", "actin", "bodies"]
    np.testing.assert_array_equal(found["vesicle"][0].vertices, simulation.topology.membranes[0].mesh.vertices)
    (balls,) = found["balls"]
    assert volume(balls) == pytest.approx(4 / 3 * np.pi * (10.0**3 + 15.0**3), rel=0.02)
    np.testing.assert_allclose(balls.vertices.reshape(2, -1, 3).mean(axis=1), [[0, 0, 0], [40.0, 0, 0]], atol=1e-9)
    # The ellipsoid, turned by its quaternion: its axes in space.
    (body,) = found["bodies"]
    assert volume(body) == pytest.approx(4 / 3 * np.pi * 20.0 * 8.0 * 4.0, rel=0.02)
    offsets = body.vertices - [0.0, 0.0, 50.0]
    turn = np.array([[1.0, 0, 0], [0, 0.36 - 0.64, -0.96], [0, 0.96, 0.36 - 0.64]])
    np.testing.assert_allclose(np.linalg.norm(offsets @ turn / [20.0, 8.0, 4.0], axis=1), 1.0, rtol=1e-9)
    upright = offsets @ turn / np.square([20.0, 8.0, 4.0]) @ turn.T
    np.testing.assert_allclose(body.normals, upright / np.linalg.norm(upright, axis=1)[:, None], atol=1e-9)
    # Tubes and their round ends: as thick as pictures have them.
    tubes, ends = found["actin"]
    surfaces, solids = scene.objects_of(scene.scene_of(simulation, {}))
    window = renderer.window_of("draw", surfaces, solids, None, None)
    thick = 0.5 * renderer.default_radius(surfaces, solids, window.scale((1600, 1200), 0.0))
    x = tubes.vertices
    away = np.hypot(np.minimum(abs(x[:, 1] - 20.0), abs(x[:, 1] + 20.0)), x[:, 2] + 40.0)
    np.testing.assert_allclose(away, thick, rtol=1e-9)
    assert volume(tubes) > 0.0
    assert len(ends.vertices) % 10 == 0
    # Points on the closed membrane are outside of it.
    r = np.linalg.norm(found["proteins"][0].vertices.reshape(30, -1, 3).mean(axis=1), axis=1)
    assert (r > np.linalg.norm(simulation.context.get_state(positions=True).positions[162:192], axis=1)).all()
    for piece in pieces(simulation):
        np.testing.assert_allclose(np.linalg.norm(piece.normals, axis=1), 1.0, rtol=1e-9)
        # Outwards, as the faces are.
        a, b, c = piece.vertices[piece.faces].transpose(1, 0, 2)
        assert (np.einsum("ij,ij->i", np.cross(b - a, c - a), piece.normals[piece.faces].mean(axis=1)) > 0.0).all()


def test_colours_are_those_of_pictures(simulation):
    pytest.importorskip("pyvista")
    found = by_name(pieces(simulation))
    np.testing.assert_array_equal(found["vesicle"][0].colors, scene.MEMBRANE_COLOR)
    for k, name in enumerate(("proteins", "balls", "actin")):
        for piece in found[name]:
            np.testing.assert_array_equal(piece.colors, renderer.POINT_COLORS[k])
    # Bodies are lighter where their first axis points.
    (body,) = found["bodies"]
    ahead = body.vertices[:, 0] > 0.8 * 20.0
    light = 0.4 * np.array(renderer.POINT_COLORS[3]) + 0.6
    np.testing.assert_allclose(body.colors[ahead], np.tile(light, (ahead.sum(), 1)))
    np.testing.assert_allclose(body.colors[body.vertices[:, 0] < 0.0][0], renderer.POINT_COLORS[3])
    # Values of vertices, and of faces, which then share no corners.
    mesh = mp.TriangleMesh.icosphere(100.0, 2)
    import matplotlib

    for values, corners in ((mesh.vertices[:, 2], False), (mesh.vertices[mesh.faces].mean(axis=1)[:, 2], True)):
        (piece,) = pieces(mesh, values=values, colormap="coolwarm")
        low, high = np.percentile(values[mesh.faces] if not corners else values, [1, 99])
        of = np.repeat(values, 3) if corners else values
        expected = matplotlib.colormaps["coolwarm"](np.clip((of - low) / (high - low), 0, 1))[:, :3]
        np.testing.assert_allclose(piece.colors, expected, atol=1e-6)
    # What is unknown has the colour of membranes.
    sheet = mp.TriangleMesh.flat_sheet(5, 5, 1.0)
    (piece,) = pieces(sheet, values="mean_curvature")
    border = np.unique(np.concatenate(sheet.borders))
    np.testing.assert_allclose(piece.colors[border], np.tile(scene.MEMBRANE_COLOR, (len(border), 1)))


def test_writing_a_page_starts_no_server(tmp_path):
    """PyVista's own way starts one, which downloads what it shows scenes with."""
    pytest.importorskip("pyvista")
    pytest.importorskip("trame_vtk")
    code = (
        "import sys, medyanpy as mp; mp.visualize.export_html(mp.TriangleMesh.icosphere(1.0, 1), sys.argv[1]); "
        "print(*sorted({'trame_vtklocal.module.wasm', 'trame_server.core'} & set(sys.modules)))"
    )
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "a.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.split()


def test_page_is_self_contained(simulation, tmp_path):
    """The numbers of its vertices and triangles, read back out of it; and nothing that a browser may load."""
    pytest.importorskip("pyvista")
    pytest.importorskip("trame_vtk")
    path = tmp_path / "a.html"
    mp.visualize.export_html(simulation, path, opacity=0.5, title="<b> & more", values="mean_curvature")
    page = path.read_text()
    assert "<title>&lt;b&gt; &amp; more</title>" in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "'self'" not in policy
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert not re.search(r"""<(script|link|img|iframe)[^>]*(src|href)=["']?(https?:)?//""", page)
    for said in ("30 proteins", "2 balls", "actin", "mean curvature (1/nm)"):
        assert said in page
    data = re.search(r'base64Str = "([^"]*)"', page)[1]
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(data)))
    (name,) = archive.namelist()
    arrays = json.loads(archive.read(name))["hashes"].values()
    points = [base64.b64decode(a["content"]) for a in arrays if a["vtk"] == "vtkPoints"]
    cells = [np.frombuffer(base64.b64decode(a["content"]), "<i4") for a in arrays if a["vtk"] == "vtkCellArray"]
    for piece in pieces(simulation):
        assert piece.vertices.astype("<f4").tobytes() in points
        assert any(np.array_equal(c, np.insert(piece.faces, 0, 3, axis=1).ravel()) for c in cells)
    refuses(mp.ParameterError, r"exists; give overwrite=True", mp.visualize.export_html, simulation, path)
    mp.visualize.export_html(simulation, path, overwrite=True)


def test_gltf(simulation, tmp_path):
    """Positions to single precision with z up, names, colours, and what is transparent."""
    pytest.importorskip("pyvista")
    path = tmp_path / "a.gltf"
    mp.visualize.export_gltf(simulation, path, opacity=0.4)
    written = json.loads(path.read_text())
    expected = pieces(simulation)
    assert [mesh["name"] for mesh in written["meshes"]] == [piece.name for piece in expected]

    def read(number, width):
        accessor = written["accessors"][number]
        view = written["bufferViews"][accessor["bufferView"]]
        uri = written["buffers"][view["buffer"]]["uri"]
        start = view.get("byteOffset", 0) + accessor.get("byteOffset", 0)
        data = base64.b64decode(uri.partition(",")[2])
        dtype = {5123: "<u2", 5125: "<u4", 5126: "<f4"}[accessor["componentType"]]
        n = accessor["count"] * {"SCALAR": 1, "VEC3": 3}[accessor["type"]]
        return np.frombuffer(data, dtype, n, start).reshape(-1, width)

    for mesh, node, piece in zip(written["meshes"], written["nodes"], expected, strict=False):
        primitive = mesh["primitives"][0]
        np.testing.assert_array_equal(read(primitive["attributes"]["POSITION"], 3), piece.vertices.astype("f4"))
        np.testing.assert_array_equal(read(primitive["indices"], 3), piece.faces)
        matrix = np.reshape(node["matrix"], (4, 4)).T
        np.testing.assert_allclose(matrix[:3, :3] @ [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], atol=1e-9)
        assert np.linalg.det(matrix[:3, :3]) == pytest.approx(1.0)
        material = written["materials"][primitive["material"]]
        assert material["doubleSided"]
        *rgb, alpha = material["pbrMetallicRoughness"]["baseColorFactor"]
        mode = material.get("alphaMode", "OPAQUE")
        assert (mode, alpha) == (("BLEND", 0.4) if piece.name == "vesicle" else ("OPAQUE", 1.0))
        if piece.colors.ndim == 1:
            np.testing.assert_allclose(rgb, piece.colors, atol=0.5 / 255)
        else:
            assert any(key.startswith("COLOR") for key in primitive["attributes"])


def test_show_opens_a_browser_or_is_shown_by_a_notebook(simulation, monkeypatch):
    pytest.importorskip("pyvista")
    pytest.importorskip("trame_vtk")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    view = mp.visualize.show(simulation)
    (uri,) = opened
    assert uri.startswith("file:///")
    with open(uri.removeprefix("file://"), encoding="utf-8") as file:
        assert file.read() == view.html
    monkeypatch.setattr(interactive, "in_notebook", lambda: True)
    view = mp.visualize.show(simulation, height=300)
    assert len(opened) == 1
    shown = view._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert "height:300px" in shown
    # One attribute that holds the page, and nothing that ends it early.
    assert shown.count('"') == 6
    assert "MB of HTML" in repr(view)


def test_refusals_of_displays(simulation, tmp_path, monkeypatch):
    pytest.importorskip("pyvista")
    for wrong, message in (
        ({"opacity": 1.5}, "opacity = 1.5 but must be"),
        ({"point_radius": 0.0}, "point_radius = 0"),
        ({"values": [1.0]}, "values has 1 numbers"),
        ({"values": "curvature"}, "there is no name of values 'curvature'"),
        ({"semi_axes": {"none": (1.0, 1.0, 1.0)}}, "'none' are not rigid bodies"),
        ({"path": tmp_path / "a.png"}, r"the path must end in \.gltf, not '\.png'"),
    ):
        with pytest.raises(mp.ParameterError, match=message):
            mp.visualize.export_gltf(simulation, **{"path": tmp_path / "a.gltf"} | wrong)
    refuses(mp.ParameterError, "cannot draw int", mp.visualize.export_gltf, 3, tmp_path / "a.gltf")
    refuses(mp.ParameterError, "height", mp.visualize.show, simulation, height=3)
    assert not list(tmp_path.iterdir())
    for module in ("pyvista", "trame_vtk"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(ImportError, match=r"pip install 'medyanpy\[notebooks\]'"):
                mp.visualize.export_html(simulation, tmp_path / "a.html")
