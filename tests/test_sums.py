"""Sums that reach a run have the same bits whatever NumPy does: against exact arithmetic, and in the order stated."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import medyanpy as mp
from medyanpy._tools import sums


def exact(values):
    return float(sum(map(Fraction, values.tolist())))


def test_totals_are_rounded_once_in_any_order():
    rng = np.random.default_rng(1)
    values = rng.normal(size=1001) * 10.0 ** rng.integers(-12, 12, 1001)
    assert sums.total(values) == exact(values)
    assert sums.total(values) == sums.total(values[::-1]) == sums.total(values[rng.permutation(1001)])
    assert sums.mean(values) == exact(values) / 1001
    assert np.isinf(sums.total(np.array([np.inf, 1.0])))
    assert np.isnan(sums.total(np.array([np.inf, -np.inf])))
    assert np.isinf(sums.total(np.array([1e308, 1e308])))


def test_products_and_lengths_are_sums_in_the_order_stated():
    a, b = np.random.default_rng(2).normal(size=(2, 500, 3))
    for layout in (np.ascontiguousarray, np.asfortranarray, lambda x: x[::-1][::-1]):
        found = sums.row_products(layout(a), layout(b)).tolist(), sums.lengths(layout(a)).tolist()
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        assert found[0] == [(x[0] * y[0] + x[2] * y[2]) + x[1] * y[1] for x, y in pairs]
        assert found[1] == [np.sqrt((x * x + y * y) + z * z) for x, y, z in a.tolist()]


def test_starts_of_forces_are_such_sums():
    mesh = mp.TriangleMesh(np.random.default_rng(3).normal(size=(642, 3)) * 1e-3 +
                           mp.TriangleMesh.icosphere(7.3, 3).vertices, mp.TriangleMesh.icosphere(7.3, 3).faces)
    corners = [[tuple(map(Fraction, mesh.vertices[v].tolist())) for v in face] for face in mesh.faces.tolist()]
    volume = sum(
        a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
        for a, b, c in corners
    ) / 6
    assert mesh.volume == pytest.approx(float(volume), rel=1e-14)
    assert mesh.area == exact(mesh.face_areas)
    membrane = mp.Topology().add_membrane(mesh, vertex_mass=1.0)
    assert mp.forces.MembraneVolume(membrane, 1.0).volume == mesh.volume
    assert mp.forces.MembraneArea(membrane, 1.0).area == mesh.area
    assert mp.forces.MembraneTether(membrane, 1.0).length == exact(mesh.edge_lengths) / len(mesh.edge_lengths)


def test_meshes_and_starts_do_not_use_sums_of_numpy():
    """Of floats; sums of booleans and of whole numbers are exact."""
    package = Path(mp.__file__).parent
    allowed = {
        # Counts, messages, checks, and the order of candidates.
        "mesh/cutting.py", "mesh/repair.py", "mesh/orientation.py", "mesh/checks.py", "mesh/shapes.py",
        "mesh/connectivity.py", "mesh/remeshing.py",
    }
    found = []
    for path in [*sorted((package / "mesh").glob("*.py")), package / "forces" / "membrane_tether.py",
                 package / "forces" / "membrane_curvatures.py", package / "presets" / "water.py"]:
        name = str(path.relative_to(package))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in ("einsum", "mean", "dot", "vdot", "inner", "reduceat"):
                if name not in allowed:
                    found.append(f"{name}:{node.lineno} {node.attr}")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and name not in allowed:
                found.append(f"{name}:{node.lineno} @")
    # Places of points and of parts, for users and messages.
    assert [entry.partition(":")[0] for entry in found] == ["mesh/attributes.py"] * 2 + ["mesh/texts.py"]
