"""The class itself: immutability, measures, sampling, positions."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from builders import refuses
from scipy import stats

from medyanpy.errors import MeshError, ParameterError
from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.geometry import winding_number


@pytest.fixture
def wobbly():
    """A torus with every vertex displaced at random, far from the origin: nothing tidy about it."""
    mesh = TriangleMesh.torus(3.0, 1.0, 13, 9)
    noise = np.random.default_rng(5).normal(scale=0.07, size=mesh.vertices.shape)
    return mesh.with_vertices(mesh.vertices + noise + [40.0, -70.0, 25.0])


def test_arrays_have_the_promised_types_and_are_read_only(wobbly):
    assert wobbly.vertices.dtype == np.float64
    assert wobbly.vertices.flags.c_contiguous
    assert wobbly.faces.dtype == np.int32
    arrays = [wobbly.vertices, wobbly.faces, wobbly.neighbors, wobbly.opposite_corners, wobbly.edges]
    arrays += [wobbly.edge_faces, wobbly.face_areas, wobbly.face_normals, wobbly.edge_lengths, wobbly.quality]
    arrays += [*wobbly.vertex_faces, *wobbly.components, wobbly.component_of_face]
    arrays += TriangleMesh.flat_sheet(3, 3, 1.0).borders
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    for array in arrays[1:6]:
        assert array.dtype == np.int32


def test_input_is_copied():
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    f = np.array([[0, 1, 2]])
    mesh = TriangleMesh(x, f)
    x[:] = 7
    f[:] = 0
    np.testing.assert_array_equal(mesh.vertices[1], [1, 0, 0])
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2]])


def test_attributes_cannot_be_set_or_deleted(wobbly):
    refuses(AttributeError, "immutable: vertices cannot be set", setattr, wobbly, "vertices", 0)
    with pytest.raises(AttributeError, match="immutable: faces cannot be deleted"):
        del wobbly.faces


def test_changing_a_returned_list_does_not_change_the_mesh():
    mesh = TriangleMesh.cylinder(1.0, 3.0)
    mesh.borders.clear()
    mesh.components.clear()
    assert (len(mesh.borders), len(mesh.components)) == (2, 1)


def test_pickle_gives_the_same_locked_mesh(wobbly):
    copy = pickle.loads(pickle.dumps(wobbly))
    np.testing.assert_array_equal(copy.vertices, wobbly.vertices)
    np.testing.assert_array_equal(copy.neighbors, wobbly.neighbors)
    assert not copy.vertices.flags.writeable
    assert not copy.faces.flags.writeable


@pytest.mark.parametrize(("make", "text"), [
    (lambda: TriangleMesh.icosphere(1.0, 4), "TriangleMesh(2562 vertices, 5120 faces, closed, genus 0)"),
    (lambda: TriangleMesh.flat_sheet(3, 3, 1.0), "TriangleMesh(9 vertices, 8 faces, 1 border, genus 0)"),
    (lambda: TriangleMesh(np.eye(3).tolist() + (5 * np.eye(3)).tolist(), [[0, 1, 2], [3, 4, 5]]),
     "TriangleMesh(6 vertices, 2 faces, 2 borders, 2 components, genus 0)"),
])  # fmt: skip
def test_repr_says_what_it_is(make, text):
    assert repr(make()) == text


def test_measures_equal_sums_over_single_triangles(wobbly):
    """Heron's formula and tetrahedra about the origin, one face at a time."""
    areas, volume, quality = [], 0.0, []
    for a, b, c in wobbly.vertices[wobbly.faces]:
        sides = [np.linalg.norm(b - c), np.linalg.norm(c - a), np.linalg.norm(a - b)]
        s = sum(sides) / 2
        areas.append(np.sqrt(s * (s - sides[0]) * (s - sides[1]) * (s - sides[2])))
        quality.append(2 * (areas[-1] / s) / (np.prod(sides) / (4 * areas[-1])))
        volume += np.linalg.det([a, b, c]) / 6
    np.testing.assert_allclose(wobbly.face_areas, areas, rtol=1e-11)
    np.testing.assert_allclose(wobbly.quality, quality, rtol=1e-11)
    assert wobbly.area == pytest.approx(sum(areas), rel=1e-12)
    assert wobbly.volume == pytest.approx(volume, rel=1e-9)
    a, b, c = wobbly.vertices[wobbly.faces].transpose(1, 0, 2)
    np.testing.assert_allclose(np.linalg.norm(wobbly.face_normals, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(wobbly.face_normals * 2 * wobbly.face_areas[:, None], np.cross(b - a, c - a), rtol=1e-12,
                               atol=1e-12)  # fmt: skip
    for (i, j), length in zip(wobbly.edges, wobbly.edge_lengths, strict=True):
        assert length == pytest.approx(np.linalg.norm(wobbly.vertices[i] - wobbly.vertices[j]), rel=1e-14)


def test_volume_is_negative_inside_out(wobbly):
    inside_out = TriangleMesh(wobbly.vertices, wobbly.faces[:, ::-1])
    assert inside_out.volume == pytest.approx(-wobbly.volume, rel=1e-13)


def test_volume_of_an_open_mesh_is_refused():
    with pytest.raises(MeshError, match="volume is not defined: the mesh has 2 borders"):
        _ = TriangleMesh.cylinder(1.0, 2.0).volume


@pytest.mark.parametrize("flatness", [1.0, 1e-1, 1e-4, 1e-8])
def test_quality_lies_between_0_and_1_and_falls_with_flatness(flatness):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 3)) * [1, 1, flatness] @ np.diag([1, flatness, 1])
    quality = TriangleMesh(x, np.arange(300).reshape(-1, 3)).quality
    assert (quality > 0).all()
    assert (quality <= 1).all()
    if flatness < 1e-3:
        assert quality.max() < 1e-2


def test_quality_of_known_triangles():
    x = [[0, 0, 0], [1, 0, 0], [0.5, 0.75**0.5, 0], [5, 0, 0], [6, 0, 0], [5, 1, 0]]
    quality = TriangleMesh(x, [[0, 1, 2], [3, 4, 5]]).quality
    # Right isosceles: r_in = 1 - 1/sqrt(2), r_circ = 1/sqrt(2), so 2 (sqrt(2) - 1).
    np.testing.assert_allclose(quality, [1.0, 2 * (2**0.5 - 1)], rtol=1e-14)


def test_scaled_and_translated(wobbly):
    big = wobbly.scaled(2.0)
    assert big.area == pytest.approx(4 * wobbly.area, rel=1e-13)
    assert big.volume == pytest.approx(8 * wobbly.volume, rel=1e-12)
    assert big.neighbors is wobbly.neighbors
    moved = wobbly.translated([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(moved.vertices, wobbly.vertices + np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(wobbly.bounding_box[1], wobbly.vertices.max(axis=0))


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda m: m.scaled(0.0), ParameterError, "scaled: factor = 0.0 but must be > 0"),
    (lambda m: m.scaled(-1), ParameterError, "scaled: factor = -1 but must be > 0"),
    (lambda m: m.translated([1.0, 2.0]), ParameterError, r"translated: shift must have shape \(3,\), not \(2,\)"),
    (lambda m: m.translated([1.0, np.nan, 0]), ParameterError, r"translated: shift\[1\] = nan but must be finite"),
    (lambda m: m.with_vertices(m.vertices[1:]), ParameterError, r"vertices has shape \(116, 3\) but .* \(117, 3\)"),
    (lambda m: m.with_vertices(np.full((117, 3), np.inf)), ParameterError, r"vertices\[0\] .* must be finite"),
    (lambda m: m.with_vertices(np.zeros((117, 3))), MeshError, "234 faces have zero area"),
    (lambda m: m.with_vertices(1e80 * m.vertices), MeshError, "not finite numbers below 1e70"),
    (lambda m: m.sample(-1, 0), ParameterError, "sample: n = -1 but must be an integer from 0"),
    (lambda m: m.sample(5, None), ParameterError, "sample: rng = None but must be an integer from 0"),
    (lambda m: m.positions([0], [[0.5, 0.6, 0.1]]), ParameterError, r"barycentric\[0\] .* \(inside its triangle\)"),
    (lambda m: m.positions([0], [[1.5, -0.5, 0]]), ParameterError, r"barycentric\[0\] .* \(inside its triangle\)"),
    (lambda m: m.positions([0, 234], np.eye(3)[:2]), ParameterError, r"triangles\[1\] = 234 .* 0 to 233"),
    (lambda m: m.positions([-1], np.eye(3)[:1]), ParameterError, r"triangles\[0\] = -1"),
    (lambda m: m.positions([0.0], np.eye(3)[:1]), ParameterError, r"triangles have .* float64"),
    (lambda m: m.positions([0, 1], np.eye(3)), ParameterError, r"barycentric has shape \(3, 3\) .* \(2, 3\)"),
    (lambda m: m.positions([0], [[np.nan, 1, 0]]), ParameterError, r"barycentric\[0\] .* finite"),
])  # fmt: skip
def test_bad_arguments_are_refused(wobbly, call, error, message):
    refuses(error, message, call, wobbly)


def test_samples_lie_in_their_triangles(wobbly):
    triangles, barycentric = wobbly.sample(10_000, np.random.default_rng(1))
    assert triangles.dtype == np.int32
    assert (barycentric >= 0).all()
    np.testing.assert_allclose(barycentric.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    x = wobbly.positions(triangles, barycentric)
    for f, weights, position in list(zip(triangles, barycentric, x, strict=True))[:50]:
        np.testing.assert_allclose(position, weights @ wobbly.vertices[wobbly.faces[f]], rtol=1e-14)


def test_same_seed_same_samples(wobbly):
    for a, b in zip(wobbly.sample(50, 7), wobbly.sample(50, np.random.default_rng(7)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(wobbly.sample(50, 8)[0], wobbly.sample(50, 7)[0])


def test_no_samples_are_no_samples(wobbly):
    triangles, barycentric = wobbly.sample(0, 1)
    assert (triangles.shape, barycentric.shape) == ((0,), (0, 3))
    assert wobbly.positions(triangles, barycentric).shape == (0, 3)
    assert wobbly.positions([], []).shape == (0, 3)


def test_samples_are_uniform_per_area():
    """Null: counts are multinomial with the areas as weights. Chi-square, false-alarm rate 1e-6, fixed seed.

    With 200 000 points it finds, with probability 0.999, faces drawn with weights off by 3 % (rms).
    """
    mesh = TriangleMesh.red_blood_cell(1.0, subdivisions=1)
    # Stretched, so that areas differ by a large factor and drawing faces with equal weight would be found.
    mesh = mesh.with_vertices(mesh.vertices * [1.0, 3.0, 10.0])
    triangles, barycentric = mesh.sample(200_000, 12)
    counts = np.bincount(triangles, minlength=len(mesh.faces))
    assert stats.chisquare(counts, 200_000 * mesh.face_areas / mesh.area).pvalue > 1e-6
    assert stats.chisquare(counts).pvalue < 1e-6
    # Within a triangle: each weight has the distribution 1 - (1 - w)^2, the same for all three.
    for weight in barycentric.T:
        assert stats.kstest(weight, lambda w: 1 - (1 - w) ** 2).pvalue > 1e-6
    # Uniform in two dimensions: nine equal cells by floor(3 w), empty corners included.
    cells = np.floor(3 * barycentric.clip(0, 1 - 1e-12)).astype(int) @ [1, 3, 9]
    _, cell_counts = np.unique(cells, return_counts=True)
    assert len(cell_counts) == 9
    assert stats.chisquare(cell_counts).pvalue > 1e-6


def test_importing_the_mesh_package_loads_no_heavy_library():
    code = (
        "import sys, medyanpy.mesh; "
        "heavy = {'scipy', 'networkx', 'h5py', 'matplotlib'} & set(sys.modules); "
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_winding_number_inside_and_outside(wobbly):
    sphere = TriangleMesh.icosphere(1.0, 2).with_vertices(TriangleMesh.icosphere(1.0, 2).vertices * [1, 2, 3])
    for point, expected in [([0.1, 0.2, -0.3], 1.0), ([0, 1.8, 0], 1.0), ([0, 2.1, 0], 0.0), ([9, 9, 9], 0.0)]:
        assert winding_number(point, sphere.vertices, sphere.faces) == pytest.approx(expected, abs=1e-12)
        assert winding_number(point, sphere.vertices, sphere.faces[:, ::-1]) == pytest.approx(-expected, abs=1e-12)
    centre = wobbly.bounding_box.mean(axis=0)
    assert winding_number(centre, wobbly.vertices, wobbly.faces) == pytest.approx(0.0, abs=1e-12)
    assert winding_number(centre + np.array([3.0, 0, 0]), wobbly.vertices,
                          wobbly.faces) == pytest.approx(1.0, abs=1e-12)  # fmt: skip


def test_a_closed_mesh_knows_what_it_contains(wobbly):
    torus = TriangleMesh.torus(3.0, 1.0, 24, 12)
    inside = torus.contains([[3.0, 0, 0], [0, 0, 0], [0, -3, 0.5], [0, 0, 9]])
    assert inside.tolist() == [True, False, True, False]
    assert TriangleMesh(torus.vertices,
                        torus.faces[:, ::-1]).contains([[3.0, 0, 0], [0, 0, 0]]).tolist() == [True, False]  # fmt: skip
    assert wobbly.contains(np.empty((0, 3))).shape == (0,)
    with pytest.raises(MeshError, match="contains is not defined: the mesh has 1 border,"):
        TriangleMesh.flat_sheet(4, 4, 1.0).contains([[0.0, 0, 0]])
    refuses(ParameterError, r"TriangleMesh.contains: points\[1\]", torus.contains, [[0.0, 0, 0], [0, np.nan, 0]])
