"""Proteins across a membrane: their friction against flows in a thin film, and how they stand."""

import numpy as np
import pytest
from builders import refuses
from scipy.spatial.transform import Rotation
from scipy.special import struve, y0, yv

import medyanpy as mp
from medyanpy.errors import ParameterError


def saffman(distance, kappa, eta_s):
    """Of the flow of a point force in a viscous film with water on both sides: along and across the distance."""
    z = kappa * distance
    first, second = struve(1, z), struve(0, z)
    along = np.pi * first / z - 2.0 / z**2 - 0.5 * np.pi * (y0(z) + yv(2, z))
    across = np.pi * second - np.pi * first / z + 2.0 / z**2 - 0.5 * np.pi * (y0(z) - yv(2, z))
    return along / (4.0 * np.pi * eta_s), across / (4.0 * np.pi * eta_s)


def disc_friction(a, eta_s, eta, rings=12):
    """Translation and rotation of a rigid disc: patches of it push on the film such that all move as one."""
    kappa = 2.0 * eta / eta_s
    edges = np.linspace(0.0, 1.0, rings + 1) ** 0.5
    x, size = [], []
    for k in range(rings):
        inner, outer, n = a * edges[k], a * edges[k + 1], max(6 * k, 3)
        angle = 2.0 * np.pi * (np.arange(n) + 0.5 * (k % 2)) / n
        r = 0.5 * (inner + outer) if k < rings - 1 else outer - 0.25 * (outer - inner)
        x.append(r * np.column_stack([np.cos(angle), np.sin(angle)]))
        size.append(np.full(n, np.pi * (outer**2 - inner**2) / n))
    x, size = np.concatenate(x), np.concatenate(size)
    n = len(x)
    d = x[:, None] - x[None]
    r = np.linalg.norm(d, axis=2) + np.eye(n)
    along, across = saffman(r, kappa, eta_s)
    u = d / r[:, :, None]
    mobility = np.einsum("ijk,ijl->ijkl", u, u) * (along - across)[:, :, None, None]
    mobility += across[:, :, None, None] * np.eye(2)
    # The mean over a round patch: ln(2/κr) - γ and half, as r goes to 0.
    own = (np.log(2.0 / (kappa * np.sqrt(size / np.pi))) - np.euler_gamma + 0.5) / (4.0 * np.pi * eta_s)
    mobility[np.arange(n), np.arange(n)] = own[:, None, None] * np.eye(2)
    resistance = np.linalg.inv(mobility.transpose(0, 2, 1, 3).reshape(2 * n, 2 * n))
    shift, turn = np.tile([1.0, 0.0], n), np.column_stack([-x[:, 1], x[:, 0]]).ravel()
    return shift @ resistance @ shift, turn @ resistance @ turn


@pytest.mark.parametrize("water", [0.003, 0.03, 0.1])
def test_friction_of_a_disc_in_a_film(water):
    """Solved patch by patch with the flow of point forces in a film. Patches of this size are right to 0.2 % of the
    translation and 0.7 % of the rotation, of which the terms in ε are 6 % and 8 % at 0.1."""
    a, eta_s = 2.5, 3e-6
    eta = 0.5 * water * eta_s / a
    friction = mp.rigid.transmembrane_friction(a, 9.0, eta_s, eta)
    translation, rotation = disc_friction(a, eta_s, eta)
    assert friction[0, 0] == friction[1, 1]
    assert friction[0, 0] == pytest.approx(translation, rel=0.003)
    assert friction[5, 5] == pytest.approx(rotation, rel=0.015)
    other = mp.rigid.ellipsoid_friction((a, a, 4.5), eta)
    np.testing.assert_array_equal(np.diag(friction)[2:5], np.diag(other)[2:5])
    assert (friction == np.diag(np.diag(friction))).all()


def test_upright():
    rng = np.random.default_rng(3)
    normals = np.vstack([rng.normal(size=(50, 3)), [[0.0, 0, 3.0], [0.0, 0, -2.0], [1e-9, 0, -1.0], [4.0, 0, 0]]])
    q = mp.rigid.upright(normals)
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, rtol=1e-15)
    turned = Rotation.from_quat(q, scalar_first=True).apply([0.0, 0.0, 1.0])
    unit = normals / np.linalg.norm(normals, axis=1)[:, None]
    # Within a hair of straight down all turns about x are as good.
    np.testing.assert_allclose(turned, unit, atol=2e-6)
    np.testing.assert_allclose(turned[:50], unit[:50], atol=1e-14)
    refuses(ParameterError, r"normals\[1\] has length 0", mp.rigid.upright, [[1.0, 0, 0], [0.0, 0, 0]])


def test_normals_of_points():
    """Those of a tilted plane exactly; on both sides of an edge the same."""
    turn = Rotation.from_rotvec([0.4, -0.3, 0.2])
    sheet = mp.TriangleMesh.flat_sheet(5, 5, 2.0)
    topology = mp.Topology()
    plane = topology.add_membrane(sheet.with_vertices(turn.apply(np.array(sheet.vertices))), vertex_mass=1.0)
    points = topology.add_intriangle_points(plane, 30, mass=1.0, seed=2)
    np.testing.assert_allclose(points.normals, np.tile(turn.apply([0.0, 0, 1.0]), (30, 1)), atol=1e-14)
    ball = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 2), vertex_mass=1.0)
    faces = ball.mesh.faces
    shared = next(f for f in range(1, len(faces)) if np.isin(faces[f], faces[0]).sum() == 2)
    edge = np.intersect1d(faces[0], faces[shared])
    weights = [np.where(faces[f] == edge[0], 0.3, np.where(faces[f] == edge[1], 0.7, 0.0)) for f in (0, shared)]
    both = topology.add_intriangle_points(ball, triangles=[0, shared], barycentric=weights, mass=1.0)
    np.testing.assert_allclose(both.normals[0], both.normals[1], atol=1e-15)


def test_the_preset():
    protein = mp.presets.transmembrane_protein(3.0, 12.0, surface_viscosity=2e-6)
    # 4/3 π 3·3·6 nm³ of 0.73 cm³/g: 186 kDa.
    assert protein.mass[0] / mp.units.dalton == pytest.approx(226.2e-21 / 0.73 * 6.02214076e23, rel=1e-3)
    np.testing.assert_allclose(protein.inertia[0] / protein.mass[0], [(9 + 36) / 5, (9 + 36) / 5, 18 / 5])
    np.testing.assert_array_equal(protein.friction[0],
                                  mp.rigid.transmembrane_friction(3.0, 12.0, 2e-6, mp.presets.WATER))  # fmt: skip
    with pytest.raises(ParameterError, match=r"2 viscosity radius / surface_viscosity = 0.6 but must be <= 0.1"):
        mp.presets.transmembrane_protein(3.0, 12.0, surface_viscosity=1e-8)
    refuses(ParameterError, "height", mp.presets.transmembrane_protein, 3.0, 0.0, surface_viscosity=1e-6)
