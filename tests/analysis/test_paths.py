"""Distances of points along their membrane, and their pair correlation."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import analysis
from medyanpy.errors import TopologyError


def on(mesh, n, others=3, box=None, seed=4):
    """Points on a membrane beside other beads."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="membrane")
    topology.add_beads(np.ones((others, 3)), mass=1.0)
    topology.add_intriangle_points(membrane, 5, mass=1.0, friction=1.0, seed=1, name="others")
    points = topology.add_intriangle_points(membrane, n, mass=1.0, friction=1.0, seed=seed, name="points")
    return mp.Simulation(mp.System(topology, box=box), mp.SplittingIntegrator("AGBGA", 0.01), threads=1), points


def all_pairs(x, box=None):
    i, j = np.triu_indices(len(x), 1)
    d = x[j] - x[i]
    if box is not None:
        d[:, :2] -= box[:2] * np.round(d[:, :2] / box[:2])
    return i, j, np.linalg.norm(d, axis=1)


@pytest.mark.parametrize("periodic", [False, True])
def test_on_a_flat_sheet_they_are_straight_lines(periodic):
    mesh = mp.TriangleMesh.flat_sheet(12, 12, 2.0, periodic=periodic)
    simulation, points = on(mesh, 60, box=mesh.box)
    state = simulation.context.get_state(positions=True)
    found = analysis.surface_distances(state, points, reach=6.0)
    i, j, d = all_pairs(state.positions[points.beads], np.array(mesh.box[:2]) if periodic else None)
    near = d < 6.0
    assert near.sum() > 100
    np.testing.assert_array_equal(found.pairs, points.beads[np.stack([i[near], j[near]], axis=1)])
    np.testing.assert_allclose(found.distance, d[near], rtol=1e-9)
    # Clusters along the membrane.
    some = analysis.surface_distances(state, points, reach=2.0)
    along = analysis.clusters(state, points, links=some.pairs)
    across = analysis.clusters(state, points, cutoff=2.0, box=mesh.box)
    np.testing.assert_array_equal(along.labels, across.labels)


def test_on_a_sphere_they_are_arcs_in_every_frame(tmp_path):
    simulation, points = on(mp.TriangleMesh.icosphere(10.0, 4), 40)
    simulation.context.set_velocities_to_temperature(kT=0.02, seed=2)
    states = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(2):
            simulation.step(5)
            states.append(simulation.context.get_state(positions=True))
    found = analysis.surface_distances(states, points, reach=12.0)
    for state, one in zip(states, found, strict=True):
        x = state.positions[points.beads]
        i, j, _ = all_pairs(x)
        u = x / np.linalg.norm(x, axis=1)[:, None]
        arc = 10.0 * np.arccos((u[i] * u[j]).sum(axis=1))
        sure = arc < 11.9
        which = {tuple(pair): d for pair, d in zip(one.pairs.tolist(), one.distance.tolist(), strict=True)}
        own = [which[a, b] for a, b in zip(points.beads[i[sure]].tolist(), points.beads[j[sure]].tolist(), strict=True)]
        np.testing.assert_allclose(own, arc[sure], rtol=5e-3)
        assert len(which) < np.sum(arc < 12.1)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for again in (analysis.surface_distances(trajectory, "points", reach=12.0),
                      analysis.surface_distances(trajectory[:], trajectory.handles["points"], reach=12.0)):
            for a, b in zip(again, found, strict=True):
                np.testing.assert_array_equal(a.pairs, b.pairs)
                np.testing.assert_allclose(a.distance, b.distance, rtol=1e-12)


@pytest.mark.slow
def test_an_ideal_gas_is_one_on_a_folded_membrane():
    """By distances in space the two sheets of the cell would add up to more than 1, and curvature to less. 5 of 20
    errors of nine degrees of freedom each: 1e-6 in all is 12 of them."""
    mesh = mp.TriangleMesh.red_blood_cell(radius=20.0, subdivisions=2)
    states = []
    for k in range(10):
        simulation, points = on(mesh, 150, seed=k)
        states.append(simulation.context.get_state(positions=True))
    g = analysis.surface_radial_distribution(states, points, r_max=12.0, bins=4)
    assert (np.abs(g.value - 1.0) < 12.0 * g.error).all()
    assert (g.error < 0.06).all()
    assert g.pairs.sum() > 2000


def test_pairs_that_stay_together_show():
    simulation, points = on(mp.TriangleMesh.icosphere(10.0, 2), 30)
    state = simulation.context.get_state(positions=True)
    all_faces, all_weights = state.intriangle.triangles.copy(), state.intriangle.barycentric.copy()
    face, weights = all_faces[points.points], all_weights[points.points]
    # Every second one is beside the one before.
    face[1::2], weights[1::2] = face[::2], 0.9 * weights[::2] + 0.1 / 3.0
    all_faces[points.points], all_weights[points.points] = face, weights
    simulation.context.set_intriangle(all_faces, all_weights)
    state = simulation.context.get_state(positions=True)
    g = analysis.surface_radial_distribution([state, state], points, r_max=8.0, bins=4, seed=3)
    assert g.value[0] > 2.0 * np.nanmax(g.value[1:])
    np.testing.assert_array_equal(
        g.value, analysis.surface_radial_distribution([state, state], points, r_max=8.0, bins=4, seed=3).value
    )


def test_refused():
    simulation, points = on(mp.TriangleMesh.icosphere(10.0, 1), 10)
    state = simulation.context.get_state(positions=True)
    with pytest.raises(TopologyError, match="points must be the handle of in-triangle points"):
        analysis.surface_distances(state, simulation.topology.handles[1], reach=2.0)
    refuses(TopologyError, "points must be the handle", analysis.surface_distances, state, "points", reach=2.0)
    with pytest.raises(mp.ParameterError, match="positions have no triangles"):
        analysis.surface_distances(state.positions, points, reach=2.0)
    refuses(mp.ParameterError, "reach = 0", analysis.surface_distances, state, points, reach=0.0)
    with pytest.raises(mp.ParameterError, match="no frame has a pair of points within"):
        analysis.surface_radial_distribution(state, points, r_max=1e-9)
