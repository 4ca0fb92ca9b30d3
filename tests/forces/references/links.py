"""Links and angles between sites, and their energies written again."""

import functools

import numpy as np
from references.bonds import mixed_bonds_energy
from references.scenes import lumpy_ends, lumpy_handles, lumpy_scene, mixed_ends, mixed_pairs, places

import medyanpy as mp
from medyanpy.testing import ForceCase

LINK_K, LINK_LENGTH = np.linspace(1.0, 2.5, 9), np.linspace(20.0, 12.0, 9)


def links(one_sided):
    def build():
        topology, h = lumpy_scene()
        return topology, mp.forces.Links(*mixed_ends(h), LINK_K, LINK_LENGTH, one_sided=one_sided)

    def energy(x):
        a, b = lumpy_ends()
        r = np.linalg.norm(places(b, x) - places(a, x), axis=1)
        # Slack and taut ones, and none that is about to change.
        assert (r > LINK_LENGTH).sum() == 4
        assert np.abs(r - LINK_LENGTH).min() > 0.2
        counts = r > LINK_LENGTH if one_sided else np.full(9, True)
        return 0.5 * np.sum((LINK_K * (r - LINK_LENGTH) ** 2)[counts])

    return ForceCase("ropes" if one_sided else "links", build, energy, 5.0)


def links_of_beads():
    topology, h = lumpy_scene()
    i, j = mixed_pairs(h).T
    return topology, mp.forces.Links(i, j, np.linspace(1.0, 2.0, 5), 1.5)


def links_of_means():
    """Without anchors: momentum is conserved."""
    topology, h = lumpy_scene()
    a, b = mixed_ends(h)
    keep = [0, 1, 4, 5, 7]
    return topology, mp.forces.Links(a[keep], b[[0, 1, 4, 6, 8]], LINK_K[keep])


def links_of_means_energy(x):
    a, b = lumpy_ends()
    keep = [0, 1, 4, 5, 7]
    return 0.5 * np.sum(LINK_K[keep, None] * (places(b, x)[[0, 1, 4, 6, 8]] - places(a, x)[keep]) ** 2)


LINKS = [
    links(one_sided=False),
    links(one_sided=True),
    ForceCase("links of beads", links_of_beads, mixed_bonds_energy, 1.5),
    ForceCase("links of means", links_of_means, links_of_means_energy, 5.0),
]


# Angles between sites: of every kind, with sites in several terms.


def angle_ends(h, n_ends, anchored):
    a, b = mixed_ends(h)
    keep = np.arange(9) if anchored else np.array([0, 1, 4, 5, 7])
    mates = np.arange(9) if anchored else np.array([0, 1, 4, 6, 8])
    a, b = a[keep], b[mates]
    n = len(a)
    return (a, b, a[np.roll(np.arange(n), 2)], b[np.roll(np.arange(n), -1 if anchored else -3)])[:n_ends]


@functools.cache
def lumpy_angle_ends(n_ends, anchored):
    return angle_ends(lumpy_handles(), n_ends, anchored)


def angles(n_ends, anchored):
    kind = mp.forces.AngleLinks if n_ends == 3 else mp.forces.DirectionLinks
    n = 9 if anchored else 5
    k, rest = np.linspace(20.0, 50.0, n), np.linspace(0.0, 2.8, n)

    def build():
        topology, h = lumpy_scene()
        return topology, kind(*angle_ends(h, n_ends, anchored), k, rest)

    def energy(x):
        places_of = [places(sites, x) for sites in lumpy_angle_ends(n_ends, anchored)]
        first, second, third, fourth = places_of if n_ends == 4 else [places_of[i] for i in (1, 0, 1, 2)]
        p, q = second - first, fourth - third
        assert min(np.linalg.norm(d, axis=1).min() for d in (p, q)) > 1.0
        theta = np.arctan2(np.linalg.norm(np.cross(p, q), axis=1), np.sum(p * q, axis=1))
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(k * (1.0 - np.cos(theta - rest)))

    what = "angles" if n_ends == 3 else "directions"
    return ForceCase(what + (" with anchors" if anchored else ""), build, energy, 2.0)


ANGLES = [angles(n_ends, anchored) for n_ends in (3, 4) for anchored in (False, True)]
