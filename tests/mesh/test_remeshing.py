"""Uniform triangles on the same surface; and the page on meshes, run on the files that people have."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from builders import refuses
from scipy.spatial import cKDTree

import medyanpy as mp
from medyanpy.errors import MeshError, MeshQualityWarning, ParameterError
from medyanpy.mesh.remeshing import largest_distance, samples

PAGE = Path(__file__).resolve().parents[2] / "docs" / "meshes.md"


def needles(seed=3):
    """A closed surface of genus 1 with noise and needles."""
    mesh = mp.TriangleMesh.torus(60.0, 25.0, 40, 24)
    rng = np.random.default_rng(seed)
    x = mesh.vertices + rng.normal(scale=0.4, size=mesh.vertices.shape)
    for k in rng.choice(len(mesh.faces), 12, replace=False):
        a, b, _ = mesh.faces[k]
        x[b] = x[a] + 1e-4 * (x[b] - x[a])
    return mp.TriangleMesh(x, mesh.faces)


@pytest.mark.slow
def test_triangles_become_uniform_and_the_surface_stays():
    mesh = needles()
    assert mesh.quality.min() < 1e-4
    out, report = mesh.remesh(edge_length=8.0)
    assert out.genus == 1
    assert out.is_closed
    assert out.quality.min() > 0.3
    assert np.median(out.quality) > 0.93
    assert 0.35 * 8.0 < out.edge_lengths.min()
    assert out.edge_lengths.max() < 1.5 * 8.0
    assert report.hausdorff <= 2.4
    assert report.after.longest_timestep() > 1e3 * report.before.longest_timestep()
    assert out.volume == pytest.approx(mesh.volume, rel=0.03)
    again, _ = mesh.remesh(edge_length=8.0)
    np.testing.assert_array_equal(again.vertices, out.vertices)
    np.testing.assert_array_equal(again.faces, out.faces)


def test_the_distance_of_two_spheres_is_measured():
    small, large = mp.TriangleMesh.icosphere(10.0, 4), mp.TriangleMesh.icosphere(10.5, 4)
    for a, b in ((small, large), (large, small)):
        assert largest_distance(a, b, 0.3) == pytest.approx(0.5, abs=0.02)
    points, faces = samples(small, 0.3)
    # Each sample is on its face.
    corners = small.vertices[small.faces[faces]]
    off = np.einsum("ni,ni->n", points - corners[:, 0], small.face_normals[faces])
    assert np.abs(off).max() < 1e-12
    assert cKDTree(points).query(small.positions(*small.sample(2000, 1)))[0].max() < 0.45


def test_a_smaller_distance_keeps_more_of_sharp_edges():
    x = np.array([[i, j, k] for i in (0.0, 40.0) for j in (0.0, 40.0) for k in (0.0, 40.0)])
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
             [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    cube = mp.TriangleMesh(x, faces)
    for distance in (0.5, 2.0):
        out, report = cube.remesh(edge_length=6.0, distance=distance)
        assert report.hausdorff <= distance
        assert out.quality.min() > 0.2
        assert abs(cube.volume - out.volume) < distance * cube.area


def test_borders_stay_where_they_are():
    tube = mp.TriangleMesh.cylinder(30.0, 120.0, n_around=40, n_along=6)
    out, report = tube.remesh(edge_length=7.0)
    assert len(out.borders) == 2
    assert out.genus == 0
    rim = out.vertices[out.border_vertices]
    assert np.abs(np.abs(rim[:, 2]) - 60.0).max() <= report.distance
    assert np.abs(np.hypot(*rim[:, :2].T) - 30.0).max() <= report.distance
    assert out.quality.min() > 0.3


@pytest.mark.slow
def test_smoothing_takes_noise_away():
    sphere = mp.TriangleMesh.icosphere(60.0, 4)
    noise = np.random.default_rng(2).normal(scale=0.8, size=sphere.vertices.shape)
    mesh = mp.TriangleMesh(sphere.vertices + noise, sphere.faces)
    rough, _ = mesh.remesh(edge_length=7.0)
    smooth, _ = mesh.remesh(edge_length=7.0, smoothing=10)
    deviation = [np.std(np.linalg.norm(m.vertices, axis=1)) for m in (rough, smooth)]
    assert deviation[1] < 0.6 * deviation[0]
    assert smooth.volume == pytest.approx(4.0 / 3.0 * math.pi * 60.0**3, rel=0.02)


def test_thin_sheets_do_not_join():
    """A plate thinner than the edges, with distances measured within patches of triangles."""
    flat = mp.TriangleMesh.icosphere(40.0, 3)
    plate = flat.with_vertices(flat.vertices * [1.0, 1.0, 0.04])
    out, report = plate.remesh(edge_length=8.0, distance=1.0)
    assert out.genus == 0
    assert out.volume == pytest.approx(plate.volume, rel=0.3)
    assert report.hausdorff <= 1.0


@pytest.mark.slow
def test_the_report_can_be_read():
    _, report = needles().remesh(edge_length=10.0)
    text = str(report)
    for word in ("before", "after", "genus", "area", "volume", "quality", "height", "timestep", "distances"):
        assert word in text
    assert report.before.genus == report.after.genus == 1


@pytest.mark.parametrize(("arguments", "message"), [
    ({"edge_length": 0.0}, "edge_length = 0.0 but must be > 0"),
    ({"edge_length": math.nan}, "must be finite"),
    ({"edge_length": 5.0, "distance": -1.0}, "distance = -1.0"),
    ({"edge_length": 5.0, "smoothing": 0.5}, "smoothing = 0.5"),
    ({"edge_length": 1e-3}, "makes .* faces .* are the most"),
])  # fmt: skip
def test_other_arguments_are_refused(arguments, message):
    refuses(ParameterError, message, mp.TriangleMesh.icosphere(50.0, 2).remesh, **arguments)


def test_a_mesh_in_a_box_is_refused():
    with pytest.raises(ParameterError, match="in a box is not remeshed"):
        mp.TriangleMesh.flat_sheet(8, 8, 5.0, periodic=True).remesh(5.0)


def test_repair_says_which_needles_it_leaves():
    mesh = needles()
    _, report = mp.TriangleMesh.repair(mesh.vertices, mesh.faces)
    assert not report.changed
    assert report.needles > 0
    assert "nothing to mend" not in str(report)
    assert re.search(rf"needles left: {report.needles}, the flattest .* mesh\.remesh\(edge_length", str(report))
    sound = mp.TriangleMesh.icosphere(10.0, 2)
    assert "nothing to mend" in str(mp.TriangleMesh.repair(sound.vertices, sound.faces)[1])


def test_a_timestep_too_long_for_needles_names_the_remesher():
    topology = mp.Topology()
    topology.add_membrane(needles(), vertex_mass=1.0, vertex_friction=1.0)
    with pytest.warns(mp.TimestepWarning, match=r"a mesh without needles .* mesh\.remesh"):
        mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0), threads=1)


FILES = [
    ("thin/fox.ply", 1000.0, 6000.0),
    ("thin/7_8ths_cube.stl", 1000.0, 8000.0),
    pytest.param("thin/plate_holes.STL", 1000.0, 10000.0, marks=pytest.mark.slow),
    ("bad/multibody_bad_orientation.stl", 1000.0, 40.0),
    pytest.param("biology/pap_plasma_membrane_em_nonmanifold.stl", 1000.0, 60.0, marks=pytest.mark.long),
    pytest.param("biology/pap_er_em.stl", 1000.0, 12.0, marks=pytest.mark.long),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("default::medyanpy.errors.MeshQualityWarning")
@pytest.mark.parametrize(("name", "scale", "edge_length"), FILES)
def test_the_page_runs_on_files_that_people_have(shared_data, name, scale, edge_length, capsys):
    text = next(block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    assert len([line for line in text.splitlines() if line]) <= 13
    for old, new in (('"cell.stl"', repr(str(shared_data / "meshes" / name))), ("1000.0", repr(scale)),
                     ("edge_length=40.0", f"edge_length={edge_length!r}")):
        assert old in text
        text = text.replace(old, new)
    scope = {}
    exec(text, scope)
    mesh, state = scope["mesh"], scope["simulation"].context.get_state(positions=True)
    assert len(scope["proteins"]) == 500
    assert np.isfinite(state.positions).all()
    assert mesh.quality.min() > 0.05
    assert scope["report"].hausdorff <= 0.3 * edge_length
    assert "Mesh with edges of" in capsys.readouterr().out


def test_one_sided_and_branching_meshes_are_refused_or_cut_with_the_reason(shared_data):
    bad = shared_data / "meshes" / "bad"
    refuses(MeshError, "one-sided like a Möbius band", mp.TriangleMesh.from_file, bad / "moebius.obj", repair=True)
    for name, kind in (("fan3.obj", "branching_edges_cut"), ("joined_tetrahedra.obj", "inner_walls_dropped")):
        refuses(MeshError, "more than two faces", mp.TriangleMesh.from_file, bad / name)
        mesh, report = mp.TriangleMesh.from_file(bad / name, repair=True)
        assert report.actions[kind] == 1
        out, _ = mesh.remesh(edge_length=0.3 * float(mesh.edge_lengths.mean()))
        assert (len(out.borders), out.genus) == (len(mesh.borders), mesh.genus)


def test_a_detail_that_keeps_a_flat_triangle_is_named():
    """Of a spike finer than the edges, within a distance that does not let it go."""
    sphere = mp.TriangleMesh.icosphere(20.0, 4)
    x = sphere.vertices.copy()
    x[0] *= 1.6
    with pytest.warns(MeshQualityWarning, match=r"triangle \d+ around .* keeps a height of"):
        mp.TriangleMesh(x, sphere.faces).remesh(edge_length=12.0, distance=0.4)
