"""Pair forces of distances along surfaces, and their energies written again."""

import functools
import itertools

import numpy as np
from along_surface import shortest, way_in_strip, weights_of
from references.pairs import switched, well
from references.scenes import pairs_within, points_of_two_membranes

import medyanpy as mp
from medyanpy.testing import ForceCase


@functools.cache
def ways(reach):
    """Of all pairs of points of one membrane that are nearer than `reach` along it: (their beads, faces of the
    membrane by beads of the topology, the strip of triangles between them)."""
    topology, h = points_of_two_membranes()
    x = np.concatenate([handle.positions for handle in topology.handles])
    out = []
    for points in (h["points"], h["more"]):
        faces = [tuple(f) for f in (points.membrane.mesh.faces + points.membrane.kind.first_bead).tolist()]
        for i, j in itertools.combinations(range(len(points)), 2):
            ends = points.triangles[[i, j]].tolist()
            if np.linalg.norm(x[points.beads[i]] - x[points.beads[j]]) > reach:
                continue
            length, strip = shortest(x, faces, ends[0], points.barycentric[i], ends[1], points.barycentric[j], 8)
            assert abs(length - reach) > 0.05
            if length < reach:
                out.append((points.beads[[i, j]], faces, strip))
    return out


def along_surfaces_energy(pair, reach):
    def energy(x):
        r = []
        for (i, j), faces, strip in ways(reach):
            a, b = weights_of(x, faces, strip[0], x[i]), weights_of(x, faces, strip[-1], x[j])
            r.append(way_in_strip(x, faces, strip, a, b)[0])
        assert len(r) > 6
        return np.sum(pair(np.array(r)))

    return energy


def along_surfaces(law):
    def build():
        topology, h = points_of_two_membranes()
        groups = [h["points"], h["more"]]
        return topology, law(groups, groups, along_surface=True)

    return build


ARCS, ARCS_CENTER = 3.0, np.array([5.0, -2.0, 1.0])


def along_a_sphere():
    """Beads of two kinds on one sphere, and a pair that is left out."""
    topology = mp.Topology()
    sphere = mp.surfaces.Sphere(ARCS, ARCS_CENTER)
    x = sphere.sample(14, seed=8)
    a, b = (topology.add_surface_points(sphere, part, mass=1.0) for part in (x[:8], x[8:]))
    return topology, mp.forces.Ricker([a, b], np.append(a.beads[2:], b.beads), 0.5, 2.0, cutoff=7.0,
                                      exclusions=[[9, 3]], along_surface=True)  # fmt: skip


def along_a_sphere_energy(x):
    """Of the arcs between the directions in which beads are seen from the center."""
    n = (x - ARCS_CENTER) / np.linalg.norm(x - ARCS_CENTER, axis=1)[:, None]
    i, j = pairs_within(range(14), range(2, 14), [[9, 3]])
    arc = ARCS * np.arctan2(np.linalg.norm(np.cross(n[i], n[j]), axis=1), np.einsum("ij,ij->i", n[i], n[j]))
    assert np.abs(arc - 7.0).min() > 0.01

    def u(r):
        return 0.25 * (1.0 - 3.0 * (r / 2.0) ** 2) * np.exp(1.5 - 1.5 * (r / 2.0) ** 2)

    return np.sum(np.where(arc < 7.0, u(arc) - u(7.0), 0.0))


ALONG_SURFACES = [
    ForceCase("soft spheres along surfaces",
              along_surfaces(lambda a, b, **k: mp.forces.SoftSphere(a, b, 2.0, 10.1, **k)),
              along_surfaces_energy(lambda r: (10.1 - r) ** 2, 10.1), 0.2),
    ForceCase("Ricker along surfaces",
              along_surfaces(lambda a, b, **k: mp.forces.Ricker(a, b, 2.0, 5.0, cutoff=10.1, **k)),
              along_surfaces_energy(lambda r: well(r, 2.0, 5.0, 10.1), 10.1), 0.2),
    ForceCase("Ricker along a sphere", along_a_sphere, along_a_sphere_energy, 2.0),
    ForceCase(
        "Morse along surfaces",
        along_surfaces(lambda a, b, **k: mp.forces.Morse(a, b, 2.0, 0.7, 5.0, cutoff=10.1, switch=7.0, **k)),
        along_surfaces_energy(
            lambda r: switched(r, lambda r: 2.0 * ((np.exp(-0.7 * (r - 5.0)) - 1.0) ** 2 - 1.0), 7.0, 10.1), 10.1
        ),
        0.2,
    ),
]  # fmt: skip
