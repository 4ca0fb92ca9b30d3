"""Forces on oriented beads, and their energies written again."""

import numpy as np
from references.fields import SHARES, WRITTEN, written
from references.pairs import well
from references.scenes import lumpy_ends, lumpy_scene, mixed_ends, places
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy.testing import ForceCase


def rigid_scene():
    """Bodies of two handles with beads between them, in the lumpy scene."""
    rng = np.random.default_rng(31)
    topology, handles = lumpy_scene()

    def bodies(n, name):
        q = rng.normal(size=(n, 4))
        handles[name] = topology.add_rigid_bodies(rng.normal(0.0, 8.0, (n, 3)), q / np.linalg.norm(q, axis=1)[:, None],
                                                  1.0, rng.uniform(1.0, 1.9, (n, 3)))  # fmt: skip

    bodies(4, "tops")
    handles["more"] = topology.add_beads(rng.normal(0.0, 8.0, (3, 3)), mass=1.0)
    bodies(3, "rods")
    return topology, handles


def body_sites(h, anchored=True):
    """On bodies, three on each rod, one on a mean of a body and others; points, a vertex, beads."""
    arms = np.random.default_rng(32).normal(0.0, 3.0, (3, 3, 3))
    mean = mp.Sites.from_arrays(
        [0, 3, 5],
        [h["tops"].beads[2], h["points"].beads[1], h["rods"].beads[0], h["balls"].beads[0], h["tops"].beads[1]],
        [0.5, 0.2, 0.3, 1.4, -0.4], np.empty((0, 3)), [[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]]
    )  # fmt: skip
    sites = h["rods"].sites(arms) + h["tops"].sites([[0.0, -1.5, 2.5]]) + mean
    sites += mp.Sites.beads([h["points"].beads[3], h["closed"].beads[5], h["tops"].beads[0], h["more"].beads[1]])
    return sites + mp.Sites.anchors([[1.0, 2.0, -3.0]]) if anchored else sites


def body_places(sites, x, q):
    tops, rods = sorted(sites.handles, key=lambda handle: handle.kind.first_bead)
    row = {bead: i for i, bead in enumerate([*tops.beads, *rods.beads])}
    out = places(sites, x)
    on_arms = np.flatnonzero(sites.arms.any(axis=1))
    rows = [row[sites.bead_numbers[sites.start[i]]] for i in on_arms]
    out[on_arms] += rotation(q[rows]).apply(sites.arms[on_arms])
    return out


def rotation(q):
    return Rotation.from_quat(np.roll(q, -1, axis=-1))


def on_bodies(name, make, energy, length, anchored=True):
    """make(sites) -> force; energy of the places of sites."""

    sites = body_sites(rigid_scene()[1], anchored)

    def build():
        topology, h = rigid_scene()
        return topology, make(body_sites(h, anchored))

    def energy_at(x, q):
        return energy(body_places(sites, x, q))

    return ForceCase(name + " on bodies" + (" with anchors" if anchored else ""), build, energy_at, length)


ENDS = {False: np.array([[0, 13], [1, 0], [4, 9], [10, 2], [15, 8], [5, 4], [16, 14], [18, 3]])}
ENDS[True] = np.array([*ENDS[False], [19, 6], [12, 19]])


def body_links(anchored):
    i, j = ENDS[anchored].T
    k, length = np.linspace(1.0, 2.5, len(i)), np.linspace(5.0, 2.0, len(i))

    def energy(x):
        r = np.linalg.norm(x[j] - x[i], axis=1)
        assert r.min() > 1.0
        return 0.5 * np.sum(k * (r - length) ** 2)

    return on_bodies("links", lambda s: mp.forces.Links(s[i], s[j], k, length), energy, 3.0, anchored)


def body_angles(n_ends):
    kind = mp.forces.AngleLinks if n_ends == 3 else mp.forces.DirectionLinks
    ends = np.array([[0, 4, 13, 1], [9, 10, 2, 17], [15, 8, 7, 1], [14, 3, 18, 16], [6, 11, 0, 2]])[:, :n_ends].T
    k, rest = np.linspace(20.0, 50.0, 5), np.linspace(0.0, 2.8, 5)

    def energy(x):
        a, b, c, d = x[ends] if n_ends == 4 else x[ends[[1, 0, 1, 2]]]
        p, q = b - a, d - c
        theta = np.arctan2(np.linalg.norm(np.cross(p, q), axis=1), np.sum(p * q, axis=1))
        assert min(np.linalg.norm(v, axis=1).min() for v in (p, q)) > 1.0
        assert theta.min() > 0.1
        assert theta.max() < 3.0
        return np.sum(k * (1.0 - np.cos(theta - rest)))

    name = "angles" if n_ends == 3 else "directions"
    return on_bodies(name, lambda s: kind(*(s[e] for e in ends), k, rest), energy, 2.0, anchored=False)


def between_sites(pair):
    def energy(x):
        i, j = np.triu_indices(len(x), 1)
        return pair(np.linalg.norm(x[j] - x[i], axis=1))

    return energy


def soft_pair(r):
    assert np.abs(r - 7.03).min() > 0.02
    assert (r < 7.03).sum() > 30
    return 0.5 * 2.0 * np.sum(np.maximum(7.03 - r, 0.0) ** 2)


def wca_pair(r):
    end = 2.0 ** (1 / 6) * 3.0
    assert np.abs(r - end).min() > 0.01
    assert (r < end).sum() > 3
    s = (3.0 / r[r < end]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


SPRING = [int(rigid_scene()[1][name].beads[i]) for name, i in (("tops", 0), ("rods", 2))]
FIELD = np.random.default_rng(33).normal(size=(20, 3))


def turning_force():
    """The axes of bodies in a field, those of the first two against each other, and a spring between."""
    topology, _ = rigid_scene()

    def function(x, q):
        a = rotation(q).apply([0.0, 0.0, 1.0])
        f = np.zeros_like(x)
        i, j = SPRING
        f[i], f[j] = 2.0 * (x[j] - x[i]), 2.0 * (x[i] - x[j])
        pull = np.zeros_like(a) + [0.3, -0.2, 1.0]
        pull[0] += a[1]
        pull[1] += a[0]
        return turning_force_energy(x, q), f, rotation(q).inv().apply(np.cross(a, pull))

    return topology, mp.forces.PythonForce(function, orientations=True)


def turning_force_energy(x, q):
    a = rotation(q).apply([0.0, 0.0, 1.0])
    return np.sum((x[SPRING[0]] - x[SPRING[1]]) ** 2) - a[0] @ a[1] - np.sum(a @ [0.3, -0.2, 1.0])


def field_on_means(kind, *numbers):
    """Sites without arms offer higher derivatives."""

    def build():
        topology, h = lumpy_scene()
        return topology, kind(mixed_ends(h)[0], *numbers)

    return build


MEANS = lumpy_ends()[0]


def trap_of_means_energy(x):
    away = places(MEANS, x) - FIELD[:9]
    return 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * away**2)


def field_of_means_energy(x):
    return -np.sum(places(MEANS, x) * FIELD[:9])


ORIENTED = [
    body_links(anchored=False),
    body_links(anchored=True),
    body_angles(3),
    body_angles(4),
    on_bodies("soft spheres", lambda s: mp.forces.SoftSphere(s, s, 2.0, 7.03), between_sites(soft_pair), 1.0, False),
    on_bodies("WCA", lambda s: mp.forces.WCA(s, s, 0.8, 3.0), between_sites(wca_pair), 0.2),
    on_bodies("charges", lambda s: mp.forces.Coulomb(s, 1.5, 3.0), between_sites(lambda r: np.sum(3.0 * 1.5**2 / r)),
              1.0, anchored=False),
    on_bodies("Ricker", lambda s: mp.forces.Ricker(s, s, 2.0, 4.0), between_sites(lambda r: well(r, 2.0, 4.0, 16.0)),
              1.0, anchored=False),
    on_bodies("uniform field", lambda s: mp.forces.UniformField(s, FIELD), lambda x: -np.sum(FIELD * x), 2.0),
    on_bodies("external field",
              lambda s: mp.forces.ExternalField(s, WRITTEN, depth=np.linspace(1.0, 3.0, 20), a=0.7, k=0.1),
              lambda x: np.sum(written(x, np.linspace(1.0, 3.0, 20), 0.7, 0.1)), 2.0),
    on_bodies("harmonic trap", lambda s: mp.forces.HarmonicTrap(s, [1.0, 0.0, 3.0], FIELD),
              lambda x: 0.5 * np.sum(np.array([1.0, 0.0, 3.0]) * (x - FIELD) ** 2), 2.0),
    ForceCase("Python force with orientations", turning_force, turning_force_energy, 1.0),
    ForceCase("trap of means", field_on_means(mp.forces.HarmonicTrap, [1.0, 0.0, 3.0], FIELD[:9]), trap_of_means_energy,
              5.0),
    ForceCase("external field of means", field_on_means(lambda s: mp.forces.ExternalField(s, WRITTEN, **SHARES)),
              lambda x: np.sum(written(places(MEANS, x), **SHARES)), 3.0),
    ForceCase("field of means", field_on_means(mp.forces.UniformField, FIELD[:9]), field_of_means_energy, 5.0),
]  # fmt: skip
