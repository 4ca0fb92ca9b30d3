"""In-triangle points that come to rest at edges and vertices, where the energy has kinks."""

import itertools

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp


def scene(fixed, seed, n=12):
    """Points that springs pull out of a polyhedron, so that many end at its edges and some at its vertices."""
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), 1.0, 1.0, fixed=fixed)
    points = topology.add_intriangle_points(cell, n, mass=1.0, friction=1.0, seed=seed)
    system = mp.System(topology)
    centers = 8.0 * np.random.default_rng(seed).normal(size=(n, 3))
    system.add_force(mp.forces.HarmonicTrap(points, 1.0, centers))
    if not fixed:
        system.add_force(mp.forces.MembraneEdgeSprings(cell, 20.0))
        system.add_force(mp.forces.MembraneBending(cell, 20.0))
    return mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0), threads=1), points, centers


def nearest(corners, c):
    """The point of a triangle that is nearest to c."""
    a, b, d = corners
    w = np.linalg.lstsq(np.column_stack([b - a, d - a]), c - a, rcond=None)[0]
    if min(*w, 1.0 - w.sum()) >= 0.0:
        return a + w[0] * (b - a) + w[1] * (d - a)
    ends = []
    for p, q in ((a, b), (b, d), (d, a)):
        ends.append(p + np.clip((c - p) @ (q - p) / ((q - p) @ (q - p)), 0.0, 1.0) * (q - p))
    return min(ends, key=lambda y: np.linalg.norm(y - c))


def kinds(simulation):
    """How many points are at edges, and how many at vertices."""
    least = np.sort(simulation.context.get_state(positions=True).intriangle.barycentric, axis=1)
    return int((least[:, 0] < 1e-6).sum()), int((least[:, 1] < 1e-5).sum())


@pytest.mark.parametrize("seed", range(3))
def test_points_end_at_rest_at_edges_and_vertices(seed):
    """No triangle that a point is in has a place that is nearer to the centre of its trap, but for the tolerance."""
    simulation, points, centers = scene(True, seed)
    report = simulation.minimize_energy(max_iterations=1000)
    assert report.converged
    mesh, x = points.membrane.mesh, simulation.context.get_state(positions=True).positions[points.beads]
    edges, vertices = kinds(simulation)
    assert edges >= 5
    assert vertices >= 2
    for place, c in zip(x, centers, strict=True):
        for face in mesh.faces:
            corners = mesh.vertices[face]
            if np.linalg.norm(nearest(corners, place) - place) > 1e-6:
                continue
            y = nearest(corners, c)
            gain = 0.5 * ((place - c) @ (place - c) - (y - c) @ (y - c))
            assert gain <= 2.0 * report.tolerance * np.linalg.norm(y - place) + 1e-7


@pytest.mark.parametrize("seed", range(2))
def test_vesicles_that_move_come_to_rest_with_their_points(seed):
    simulation, *_ = scene(False, seed)
    report = simulation.minimize_energy()
    assert report.converged
    assert report.iterations < 5000
    assert sum(kinds(simulation)) >= 8
    # From there, and after small moves of everything, nothing is gained.
    assert simulation.minimize_energy().energy_after == pytest.approx(report.energy_after, abs=1e-3)


def test_points_of_a_vesicle_with_pair_forces_come_to_rest():
    topology = mp.Topology()
    cell = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 2), 4e-12, 4e-6)
    points = topology.add_intriangle_points(cell, 30, mass=4e-12, friction=4e-6, seed=1)
    system = system_with(topology, mp.forces.MembraneBending(cell, 82.0),
                         mp.forces.MembraneArea(cell, 1.0, per_triangle=True),
                         mp.forces.LennardJones(points, points, 4.14, 10.0, cutoff=25.0, switch=20.0))  # fmt: skip
    with pytest.warns(mp.OverlapWarning):
        simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-8, temperature=300.0), threads=1)
    report = simulation.minimize_energy()
    assert report.converged
    edges = cell.mesh.edge_lengths.min()
    assert report.tolerance == pytest.approx(0.01 * 300.0 * mp.units.boltzmann / edges, rel=0.1)
    x = simulation.context.get_state(positions=True).positions[points.beads]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(x, 2)) > 9.0
