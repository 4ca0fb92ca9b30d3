"""Mean and Gaussian curvature at vertices: known surfaces, the bending energy, and Gauss and Bonnet."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp


def torus(R, r, n, m):
    """A grid of n by m; vertex (i, j) at the angles 2 π i/n round the axis and 2 π j/m round the tube."""
    u, v = np.meshgrid(2 * np.pi * np.arange(n) / n, 2 * np.pi * np.arange(m) / m, indexing="ij")
    x = np.stack([(R + r * np.cos(v)) * np.cos(u), (R + r * np.cos(v)) * np.sin(u), r * np.sin(v)], -1)
    i, j = np.meshgrid(np.arange(n), np.arange(m), indexing="ij")
    at = lambda i, j: (i % n) * m + j % m  # noqa: E731
    a, b, c, d = at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)
    faces = np.concatenate([np.stack(t, -1).reshape(-1, 3) for t in ((a, b, c), (a, c, d))])
    mesh = mp.TriangleMesh(x.reshape(-1, 3), faces)
    assert mesh.volume > 0.0
    return mesh, np.cos(v).ravel()


def test_spheres():
    """1/R and 1/R² to the square of the mesh's edge; with normals inwards the mean curvature changes its sign."""
    errors = []
    for subdivisions in (3, 4):
        mesh = mp.TriangleMesh.icosphere(50.0, subdivisions)
        assert np.median(np.abs(mesh.mean_curvatures * 50.0 - 1.0)) < 2e-3
        errors.append(abs(mesh.mean_curvatures.mean() * 50.0 - 1.0) + abs(mesh.gaussian_curvatures.mean() * 2500 - 1))
    assert errors[1] < 0.35 * errors[0] < 0.01
    inwards = mp.TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    np.testing.assert_allclose(inwards.mean_curvatures, -mesh.mean_curvatures, rtol=1e-9)
    np.testing.assert_allclose(inwards.gaussian_curvatures, mesh.gaussian_curvatures, rtol=1e-9)


def test_a_torus():
    """H = (R + 2 r cos v)/(2 r (R + r cos v)) and K = cos v/(r (R + r cos v)), of both signs: errors fall as the square
    of the mesh's edge."""
    R, r = 30.0, 10.0
    errors = []
    for n in (1, 2):
        mesh, cos = torus(R, r, 96 * n, 32 * n)
        h = (R + 2 * r * cos) / (2 * r * (R + r * cos))
        k = cos / (r * (R + r * cos))
        found = (mesh.mean_curvatures, h), (mesh.gaussian_curvatures, k)
        errors.append([np.abs(measured - exact).max() / exact.max() for measured, exact in found])
    errors = np.array(errors)
    assert (errors[0] < 0.05).all()
    assert (errors[1] < 0.3 * errors[0]).all()


def test_gauss_and_bonnet():
    """Times areas it adds up to 2 π χ over whatever is closed, smooth or not."""
    rng = np.random.default_rng(3)
    for mesh, chi in ((mp.TriangleMesh.icosphere(1.0, 2), 2), (torus(3.0, 1.0, 12, 7)[0], 0)):
        rough = mp.TriangleMesh(mesh.vertices + 0.05 * rng.normal(size=mesh.vertices.shape), mesh.faces)
        area = np.bincount(rough.faces.ravel(), np.repeat(rough.face_areas / 3.0, 3))
        assert rough.gaussian_curvatures @ area == pytest.approx(2 * np.pi * chi, abs=1e-10)


def test_the_mean_curvature_is_that_of_the_projected_bending_energy():
    """On a rough shape with a border: it is 2 κ Σ (H - c)² A over the vertices that have one."""
    rng = np.random.default_rng(5)
    sheet = mp.TriangleMesh.flat_sheet(9, 7, 1.0)
    mesh = mp.TriangleMesh(sheet.vertices + 0.1 * rng.normal(size=sheet.vertices.shape), sheet.faces)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    system = system_with(topology, mp.forces.MembraneBending(membrane, 7.0, 0.3, projected=True))
    energy = mp.Context(system, mp.VerletIntegrator(1e-6)).get_state(energy=True).potential_energy
    area = np.bincount(mesh.faces.ravel(), np.repeat(mesh.face_areas / 3.0, 3))
    h = mesh.mean_curvatures
    border = np.unique(np.concatenate(mesh.borders))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(h)), border)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(mesh.gaussian_curvatures)), border)
    assert 14.0 * np.nansum((h - 0.3) ** 2 * area) == pytest.approx(energy, rel=1e-12)
