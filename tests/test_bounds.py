"""Numbers of beads, faces, filaments and so on: the last one is taken; the one after it and those below 0 are not."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp

LINES = [[[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0.0, 1, 0], [1, 1, 0], [2, 1, 0]]]


def five_beads():
    topology = mp.Topology()
    return topology, topology.add_beads(np.arange(15.0).reshape(5, 3), mass=1.0)


def tetrahedron():
    return [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3]]


def bound(topology, force):
    mp.Context(system_with(topology, force), mp.VerletIntegrator(0.01))


def face_of_a_mesh(i):
    vertices, faces = tetrahedron()
    mp.TriangleMesh(vertices, [*faces, [0, i, 2]])


def position_in_a_face(i):
    mp.TriangleMesh.icosphere(1.0, 0).positions([0, i], np.full((2, 3), 1 / 3))


def point_in_a_face(i):
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0)
    topology.add_intriangle_points(membrane, triangles=[i], barycentric=[[0.2, 0.3, 0.5]], mass=1.0)


def fixed_bead(i):
    mp.Topology().add_filaments(LINES[:1], node_mass=1.0, fixed_nodes=[i])


def place_on_a_filament(i):
    mp.Topology().add_filaments(LINES, node_mass=1.0).sites([0, i], 0, 0.5)


def bond(i):
    topology, _ = five_beads()
    bound(topology, mp.forces.HarmonicBonds([[0, 1], [2, i]], 1.0, 1.0))


def group(i):
    topology, beads = five_beads()
    bound(topology, mp.forces.WCA(beads, [i], 1.0, 1.0))


def exclusion(i):
    topology, beads = five_beads()
    bound(topology, mp.forces.WCA(beads, beads, 1.0, 1.0, exclusions=[[0, i]]))


def site(i):
    topology, _ = five_beads()
    bound(topology, mp.forces.Links(mp.Sites.beads([0]), mp.Sites.beads([i]), 1.0))


@pytest.mark.parametrize(
    ("use", "n"),
    [
        (face_of_a_mesh, 4),
        (position_in_a_face, 20),
        (point_in_a_face, 20),
        (fixed_bead, 3),
        (place_on_a_filament, 2),
        (bond, 5),
        (group, 5),
        (exclusion, 5),
        (site, 5),
    ],
)
def test_the_last_is_taken_and_the_next_is_not(use, n):
    use(n - 1)
    for wrong in (n, n + 1, -1):
        refuses((mp.TopologyError, mp.ParameterError, mp.MeshError), str(wrong), use, wrong)


def test_a_link_that_joins_the_first_bead_to_itself():
    topology, _ = five_beads()
    bound(topology, mp.forces.Links([1, 0], [2, 3], 1.0))
    refuses(mp.TopologyError, "link 1 joins bead 0 to itself", mp.forces.Links, [1, 0], [2, 0], 1.0)


def test_forces_of_a_kind_are_numbered():
    topology, beads = five_beads()
    system = mp.System(topology)
    for _ in range(4):
        system.add_force(mp.forces.UniformField(beads, [0.0, 0, 1.0]))
    assert system.force_names == ("UniformField", "UniformField 2", "UniformField 3", "UniformField 4")


@pytest.mark.parametrize("weights", [[0.0, 0.9, 0.1], [0.0, 0.1, 0.9], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0, 0]])
def test_points_on_edges_and_corners_stay_there(weights):
    """(1 - 0.9) - 0.1 is rounded below 0: the third weight gives way, by the last bit."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0)
    points = topology.add_intriangle_points(membrane, triangles=[7], barycentric=[weights], mass=1.0)
    assert (points.barycentric >= 0.0).all()
    assert np.abs(points.barycentric - [weights]).max() < 1e-15


def test_every_semi_axis_is_looked_at():
    for axes in ((1.0, -2.0, 3.0), (1.0, 2.0, -3.0)):
        refuses(mp.ParameterError, r"semi_axes\[[12]\] = -[23].* > 0", mp.rigid.ellipsoid_inertia, axes, 1.0)
