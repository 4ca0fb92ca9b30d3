"""Numbers of beads, faces, filaments and so on: the last one is taken; the one after it and those below 0 are not."""

import numpy as np
import pytest

import medyanpy as mp

LINES = [[[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0.0, 1, 0], [1, 1, 0], [2, 1, 0]]]


def five_beads():
    topology = mp.Topology()
    return topology, topology.add_beads(np.arange(15.0).reshape(5, 3), mass=1.0)


def tetrahedron():
    return [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3]]


def bound(topology, force):
    system = mp.System(topology)
    system.add_force(force)
    mp.Context(system, mp.VerletIntegrator(0.01))


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
        with pytest.raises((mp.TopologyError, mp.ParameterError, mp.MeshError), match=str(wrong)):
            use(wrong)
