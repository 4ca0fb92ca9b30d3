"""Membranes whose triangles have become needles say so, once, and those that are held well do not."""

import warnings

import numpy as np
import pytest

import medyanpy as mp
from medyanpy import forces
from medyanpy.engine.mesh_quality import heights
from medyanpy.mesh.geometry import radius_ratios

SHEET = mp.TriangleMesh.flat_sheet(4, 4, 1.0)


def stretched(mesh, by):
    """By a shear that keeps every area of a flat mesh."""
    return mesh.vertices * [by, 1.0 / by, 1.0]


def lowest(mesh, x):
    """2 r_in / r_circ of the worst triangle, by Heron's formula."""
    corners = x[mesh.faces]
    a, b, c = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).T
    s = (a + b + c) / 2.0
    q = 8.0 * (s - a) * (s - b) * (s - c) / (a * b * c)
    return int(np.argmin(q)), float(q.min())


def context(mesh=SHEET, held=False, fixed=False):
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1.0)
    topology.add_membrane(mesh, vertex_mass=1.0, fixed=fixed, name="first")
    second = topology.add_membrane(mesh, vertex_mass=1.0, name="second") if not fixed else None
    system = mp.System(topology)
    if held:
        system.add_force(forces.MembraneArea(second, 1.0, per_triangle=True))
    return mp.Context(system, mp.VerletIntegrator(1e-6), threads=1)


def place(context, first, second=None):
    x = context.get_state(positions=True).positions.copy()
    for handle, places in zip(context.system.topology.membranes, (first, second), strict=False):
        if places is not None:
            x[handle.beads] = places
    context.set_positions(x)


def quiet(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run()


def test_the_worst_triangle_is_named_once_for_each_membrane():
    here = context()
    worst, quality = lowest(SHEET, stretched(SHEET, 9.0))
    assert quality < 0.05
    place(here, stretched(SHEET, 9.0))
    start = float(SHEET.quality.min())
    says = rf"'first': triangle {worst} has become a needle of quality {quality:.2g} .* was {start:.2g}\) by step 10000"
    with pytest.warns(mp.MeshQualityWarning, match=says) as caught:
        here.step(10_000)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    quiet(lambda: here.step(20_000))
    place(here, None, stretched(SHEET, 9.0))
    with pytest.warns(mp.MeshQualityWarning, match="'second'") as caught:
        here.step(10_000)
    assert len(caught) == 1


def test_ten_thousand_steps_pass_between_two_looks():
    here = context()
    place(here, stretched(SHEET, 9.0))
    quiet(lambda: here.step(9999))
    with pytest.warns(mp.MeshQualityWarning, match="by step 10000"):
        here.step(1)


def test_the_bound_is_a_quality_of_one_in_twenty():
    bys = np.linspace(1.0, 9.0, 400)
    qualities = np.array([lowest(SHEET, stretched(SHEET, by))[1] for by in bys])
    above, below = bys[qualities > 0.051][-1], bys[qualities < 0.049][0]
    here = context()
    place(here, stretched(SHEET, above))
    quiet(lambda: here.step(10_000))
    place(here, stretched(SHEET, below))
    with pytest.warns(mp.MeshQualityWarning):
        here.step(10_000)


def test_triangles_across_the_sides_of_a_box_are_as_long_as_they_are():
    """They were measured from one side of the box to the other."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(12, 12, 1.0, periodic=True)
    topology.add_membrane(mesh, vertex_mass=1.0, name="patch")
    system = mp.System(topology, box=mesh.box)
    here = mp.Context(system, mp.VerletIntegrator(1e-9))
    quiet(lambda: here.step(10_000))
    # And in a box that has become another.
    here.set_box((1.3 * mesh.box[0], mesh.box[1] / 1.3, None))
    quiet(lambda: here.step(10_000))
    box = np.array([1.3 * mesh.box[0], mesh.box[1] / 1.3, 0.0])
    x = here.get_state(positions=True).positions
    assert radius_ratios(x, mesh.faces, box).min() > 0.5
    assert heights(x, mesh.faces, box).max() < 1.0


def test_needles_of_the_users_own_mesh_are_no_news():
    mesh = SHEET.with_vertices(stretched(SHEET, 9.0))
    here = context(mesh)
    quiet(lambda: here.step(10_000))
    start = mesh.quality.min()
    # Quality falls as the square of the ratio of sides, which is that of the stretch.
    little, half = (stretched(SHEET, 9.0 / share**0.25) for share in (0.56, 0.45))
    assert 0.5 * start < lowest(mesh, little)[1] < 0.6 * start
    place(here, little)
    quiet(lambda: here.step(10_000))
    assert 0.4 * start < lowest(mesh, half)[1] < 0.5 * start
    place(here, half)
    with pytest.warns(mp.MeshQualityWarning, match=f"was {mesh.quality.min():.2g}"):
        here.step(10_000)


def test_a_run_says_when_it_happens():
    """Free vertices that fly apart along x."""
    here = context()
    first = here.system.topology.membranes[0]
    v = np.zeros((here.layout.n, 3))
    v[first.beads] = SHEET.vertices * [200.0, 0.0, 0.0]
    here.set_velocities(v)
    for k in range(1, 100):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            here.step(5000)
        needle = lowest(SHEET, here.get_state(positions=True).positions[first.beads])[1] < 0.05
        # Looked at with every second of these calls.
        assert bool(caught) == (needle and k % 2 == 0)
        if caught:
            break
    assert k > 5


def test_frozen_membranes_are_not_looked_at():
    here = context(fixed=True)
    place(here, stretched(SHEET, 9.0))
    quiet(lambda: here.step(10_000))
