"""Standard shapes: counts, topology, analytic areas and volumes with their order of convergence."""

import numpy as np
import pytest
from builders import refuses

from medyanpy.errors import ParameterError
from medyanpy.mesh import TriangleMesh, shapes


def order(errors, refinement=2.0):
    """Slope of log error against log h over successive refinements."""
    return np.log(np.abs(np.array(errors[:-1]) / np.array(errors[1:]))) / np.log(refinement)


@pytest.mark.parametrize("subdivisions", [0, 1, 2, 3])
def test_icosphere_has_20_times_4_to_the_s_faces_on_the_sphere(subdivisions):
    mesh = TriangleMesh.icosphere(500.0, subdivisions)
    assert len(mesh.faces) == 20 * 4**subdivisions
    assert len(mesh.vertices) == 10 * 4**subdivisions + 2
    assert (mesh.is_closed, mesh.genus, mesh.euler_characteristic) == (True, 0, 2)
    np.testing.assert_allclose(np.linalg.norm(mesh.vertices, axis=1), 500.0, rtol=1e-14)
    assert (np.einsum("ij,ij->i", mesh.face_normals, mesh.vertices[mesh.faces].mean(axis=1)) > 0).all()


def test_icosahedron_is_regular():
    mesh = TriangleMesh.icosphere(1.0, 0)
    np.testing.assert_allclose(mesh.edge_lengths, 1 / np.sin(2 * np.pi / 5), rtol=1e-14)
    np.testing.assert_allclose(mesh.quality, 1.0, rtol=1e-14)
    phi = (1 + 5**0.5) / 2
    edge = 1 / np.sin(2 * np.pi / 5)
    assert mesh.volume == pytest.approx(5 / 6 * phi**2 * edge**3, rel=1e-14)


@pytest.mark.parametrize("frequency", [1, 2, 3, 7, 22])
def test_geodesic_sphere_has_20_n_squared_faces(frequency):
    mesh = TriangleMesh.icosphere(2.0, frequency=frequency)
    assert len(mesh.faces) == 20 * frequency**2
    assert (mesh.is_closed, mesh.genus, len(mesh.components)) == (True, 0, 1)
    np.testing.assert_allclose(np.linalg.norm(mesh.vertices, axis=1), 2.0, rtol=1e-14)
    assert mesh.volume > 0
    assert mesh.quality.min() > 0.96
    assert mesh.face_areas.max() / mesh.face_areas.min() < 1.25


@pytest.mark.parametrize("argument", [{"subdivisions": s} for s in (2, 3, 4)] + [{"frequency": 16}])
def test_sphere_area_and_volume_are_close(argument):
    mesh = TriangleMesh.icosphere(1.0, **argument)
    h = mesh.edge_lengths.max()
    assert 0 < 1 - mesh.area / (4 * np.pi) < h**2 / 4
    assert 0 < 1 - mesh.volume / (4 * np.pi / 3) < h**2 / 2


def test_sphere_converges_with_second_order():
    meshes = [TriangleMesh.icosphere(1.0, s) for s in (2, 3, 4, 5)]
    np.testing.assert_allclose(order([m.area - 4 * np.pi for m in meshes])[-2:], 2.0, atol=0.02)
    np.testing.assert_allclose(order([m.volume - 4 * np.pi / 3 for m in meshes])[-2:], 2.0, atol=0.02)


@pytest.mark.parametrize("n_major", [4, 5, 6, 7, 25])
@pytest.mark.parametrize("n_minor", [4, 5, 8])
def test_torus_closes_for_any_counts(n_major, n_minor):
    mesh = TriangleMesh.torus(3.0, 1.0, n_major, n_minor)
    assert len(mesh.faces) == 2 * n_major * n_minor
    assert (mesh.is_closed, mesh.genus) == (True, 1)
    assert mesh.volume > 0


@pytest.mark.parametrize(("n_major", "n_minor"), [(15, 5), (16, 5), (25, 8)])
def test_torus_has_no_seam(n_major, n_minor):
    """Turning every ring by exactly half a step would skew the triangles at the seam for odd n_major."""
    assert TriangleMesh.torus(3.0, 1.0, n_major, n_minor).quality.min() > 0.85


def test_torus_converges_with_second_order():
    meshes = [TriangleMesh.torus(3.0, 1.0, 30 * k, 10 * k) for k in (2, 4, 8)]
    np.testing.assert_allclose(order([m.area - 12 * np.pi**2 for m in meshes]), 2.0, atol=0.05)
    np.testing.assert_allclose(order([m.volume - 6 * np.pi**2 for m in meshes]), 2.0, atol=0.05)
    assert meshes[-1].area == pytest.approx(12 * np.pi**2, rel=2e-3)


def test_cylinder_is_an_open_tube_with_outward_normals():
    mesh = TriangleMesh.cylinder(2.0, 10.0, n_around=40)
    assert (len(mesh.borders), mesh.genus, mesh.euler_characteristic) == (2, 0, 0)
    assert [len(loop) for loop in mesh.borders] == [40, 40]
    radial = mesh.vertices[mesh.faces].mean(axis=1) * [1, 1, 0]
    assert (np.einsum("ij,ij->i", mesh.face_normals, radial) > 0).all()
    np.testing.assert_allclose(mesh.bounding_box[:, 2], [-5, 5])
    assert mesh.quality.min() > 0.95


def test_cylinder_converges_with_second_order():
    areas = [TriangleMesh.cylinder(2.0, 10.0, n_around=n).area - 40 * np.pi for n in (24, 48, 96)]
    np.testing.assert_allclose(order(areas), 2.0, atol=0.1)


@pytest.mark.parametrize(("nx", "ny"), [(2, 2), (2, 5), (7, 2), (6, 9)])
def test_flat_sheet_has_equilateral_triangles_and_one_border(nx, ny):
    mesh = TriangleMesh.flat_sheet(nx, ny, 2.5)
    assert (len(mesh.vertices), len(mesh.faces)) == (nx * ny, 2 * (nx - 1) * (ny - 1))
    np.testing.assert_allclose(mesh.edge_lengths, 2.5, rtol=1e-13)
    np.testing.assert_array_equal(mesh.face_normals, [[0, 0, 1]] * len(mesh.faces))
    np.testing.assert_array_equal(mesh.vertices[:, 2], 0)
    assert (len(mesh.borders), mesh.genus) == (1, 0)
    assert len(mesh.borders[0]) == 2 * (nx - 1) + 2 * (ny - 1)
    np.testing.assert_allclose(mesh.bounding_box.sum(axis=0), 0, atol=1e-12)


def discocyte_by_quadrature(radius):
    """Area and volume of Evans & Fung's shape, by Gauss-Legendre in phi with rho = sin(phi)."""
    node, weight = np.polynomial.legendre.leggauss(200)
    phi = np.pi / 4 * (node + 1)
    weight = weight * np.pi / 4
    s, c = np.sin(phi), np.cos(phi)
    c0, c2, c4 = 0.81 / 3.91, 7.83 / 3.91, -4.39 / 3.91
    p, dp = c0 + c2 * s**2 + c4 * s**4, (2 * c2 * s + 4 * c4 * s**3) * c
    z, dz = 0.5 * c * p, 0.5 * (c * dp - s * p)
    area = 2 * 2 * np.pi * np.sum(weight * s * np.hypot(c, dz)) * radius**2
    volume = 2 * 2 * np.pi * np.sum(weight * s * c * z) * radius**3
    return area, volume


def test_red_blood_cell_has_the_published_area_and_volume():
    """Evans & Fung 1972: area 135 um^2, volume 94 um^3, 0.81 um thick in the dimple, 2.57 at most."""
    area, volume = discocyte_by_quadrature(3910.0)
    assert area == pytest.approx(135e6, rel=0.01)
    assert volume == pytest.approx(94e9, rel=0.002)
    mesh = TriangleMesh.red_blood_cell()
    assert len(mesh.faces) == 20480
    assert mesh.area == pytest.approx(area, rel=2e-3)
    assert mesh.volume == pytest.approx(volume, rel=2e-3)
    x = mesh.vertices
    rho = np.hypot(x[:, 0], x[:, 1])
    assert rho.max() == pytest.approx(3910.0, rel=1e-3)
    assert np.abs(x[rho < 1e-6, 2]) == pytest.approx([405.0, 405.0])
    assert 2 * x[:, 2].max() == pytest.approx(2570, rel=0.01)


def test_red_blood_cell_lies_on_the_formula():
    mesh = TriangleMesh.red_blood_cell(3910.0, frequency=10)
    x = mesh.vertices
    square = (x[:, 0] ** 2 + x[:, 1] ** 2) / 3910.0**2
    z = 0.5 * np.sqrt(np.maximum(1 - square, 0)) * (810 + 7830 * square - 4390 * square**2)
    # Near the rim z is the square root of a difference: rounding of 1e-16 becomes 1e-8.
    np.testing.assert_allclose(np.abs(x[:, 2]), z, atol=1e-4)


def test_red_blood_cell_converges_with_second_order():
    area, volume = discocyte_by_quadrature(2.0)
    meshes = [TriangleMesh.red_blood_cell(2.0, frequency=n) for n in (16, 32, 64)]
    np.testing.assert_allclose(order([m.area - area for m in meshes]), 2.0, atol=0.1)
    np.testing.assert_allclose(order([m.volume - volume for m in meshes]), 2.0, atol=0.1)


@pytest.mark.parametrize("argument", [{}, {"frequency": 22}, {"subdivisions": 3}])
def test_red_blood_cell_triangles_are_good(argument):
    mesh = TriangleMesh.red_blood_cell(**argument)
    assert (mesh.is_closed, mesh.genus) == (True, 0)
    assert mesh.quality.min() > 0.9
    assert mesh.edge_lengths.max() / mesh.edge_lengths.min() < 1.7
    if argument == {"frequency": 22}:
        assert len(mesh.faces) == 9680


@pytest.mark.parametrize(("make", "message"), [
    (lambda: TriangleMesh.icosphere(-1.0, 2), r"icosphere: radius = -1.0 but must be > 0"),
    (lambda: TriangleMesh.icosphere(0, 2), r"icosphere: radius = 0 but must be > 0"),
    (lambda: TriangleMesh.icosphere(np.nan, 2), r"icosphere: radius = nan but must be finite"),
    (lambda: TriangleMesh.icosphere("big", 2), r"icosphere: radius = 'big' but must be one number"),
    (lambda: TriangleMesh.icosphere(True, 2), r"icosphere: radius = True but must be one number"),
    (lambda: TriangleMesh.icosphere(1.0, 2.0), r"icosphere: subdivisions = 2.0 but must be an integer"),
    (lambda: TriangleMesh.icosphere(1.0, -1), r"icosphere: subdivisions = -1 but must be an integer from 0"),
    (lambda: TriangleMesh.icosphere(1.0, 30), r"icosphere: subdivisions = 30 but must .* from 0 to 10"),
    (lambda: TriangleMesh.icosphere(1.0), r"icosphere: neither of subdivisions and frequency given"),
    (lambda: TriangleMesh.icosphere(1.0, 2, frequency=3), r"icosphere: both of subdivisions and frequency"),
    (lambda: TriangleMesh.icosphere(1.0, frequency=0), r"icosphere: frequency = 0 but must be .* from 1"),
    (lambda: TriangleMesh.torus(1.0, 1.0), r"torus: minor_radius = 1.0 but must be < major_radius = 1.0"),
    (lambda: TriangleMesh.torus(np.inf, 1.0), r"torus: major_radius = inf but must be finite"),
    (lambda: TriangleMesh.torus(3.0, 1.0, 3, 8), r"torus: n_major = 3 but must be an integer from 4"),
    (lambda: TriangleMesh.cylinder(1.0, 0.0), r"cylinder: length = 0.0 but must be > 0"),
    (lambda: TriangleMesh.cylinder(1.0, 1.0, 2), r"cylinder: n_around = 2 but must be an integer from 3"),
    (lambda: TriangleMesh.cylinder(1.0, 1e12), r"cylinder: n_along = \d+ but must be an integer from 1"),
    (lambda: TriangleMesh.flat_sheet(1, 5, 1.0), r"flat_sheet: nx = 1 but must be an integer from 2"),
    (lambda: TriangleMesh.flat_sheet(5, 5, -1.0), r"flat_sheet: spacing = -1.0 but must be > 0"),
    (lambda: TriangleMesh.red_blood_cell(radius=-1), r"red_blood_cell: radius = -1 but must be > 0"),
    (lambda: TriangleMesh.from_file("x.off", scale=0), r"from_file: scale = 0 but must be > 0"),
])  # fmt: skip
def test_bad_arguments_are_named_with_their_bound(make, message):
    refuses(ParameterError, message, make)


def test_both_spheres_agree_on_the_icosahedron():
    a, b = shapes.unit_icosphere(0), shapes.unit_geosphere(1)
    np.testing.assert_allclose(a[0], b[0], atol=1e-15)
    np.testing.assert_array_equal(a[1], b[1])
