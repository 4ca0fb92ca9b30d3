"""Pair forces, those that are cut or switched off too, and their energies written again."""

import numpy as np
from references.scenes import (
    EXCLUDED,
    distances,
    loose_beads,
    lumpy_ends,
    lumpy_handles,
    lumpy_scene,
    mixed_ends,
    pairs_within,
    places,
    site_groups,
)
from scipy.interpolate import CubicSpline

import medyanpy as mp
from medyanpy.testing import ForceCase


def soft_spheres():
    """Vertices, points, beads and balls; groups that overlap in the points."""
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere([h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]], 7.0, 4.1,
                                          exclusions=EXCLUDED)  # fmt: skip


def soft_spheres_energy(x):
    h = lumpy_handles()
    a = np.concatenate([h["closed"].beads, h["points"].beads])
    b = np.concatenate([h["balls"].beads, h["points"].beads, h["beads"].beads])
    r = distances(x, pairs_within(a, b, EXCLUDED))
    return 0.5 * 7.0 * np.sum(np.maximum(4.1 - r, 0.0) ** 2)


def touching_balls():
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere(h["balls"].beads[::-1], h["balls"], 3.0)


def touching_balls_energy(x):
    balls = lumpy_handles()["balls"]
    i, j = pairs_within(balls.beads, balls.beads)
    radius = dict(zip(balls.beads.tolist(), balls.radius.tolist(), strict=True))
    d = np.array([radius[a] + radius[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    return 0.5 * 3.0 * np.sum(np.maximum(d - distances(x, (i, j)), 0.0) ** 2)


def wca():
    topology, _ = loose_beads()
    excluded = [[33, 4], [0, 20]]
    return topology, mp.forces.WCA(np.arange(30), np.arange(39, 14, -1), 0.8, 21.0, exclusions=excluded)


def wca_energy(x):
    r = distances(x, pairs_within(range(30), range(15, 40), [[33, 4], [0, 20]]))
    s = (21.0 / r[r < 2.0 ** (1 / 6) * 21.0]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


def soft_spheres_of_sites():
    topology, h = lumpy_scene()
    return topology, mp.forces.SoftSphere(*site_groups(h), 7.0, 6.1, exclusions=[[3, 9], [0, 1], [13, 4]])


def soft_spheres_of_sites_energy(x):
    a, b = (places(s, x) for s in site_groups(lumpy_handles()))
    r = np.linalg.norm(a[:, None] - b[None], axis=-1)
    # Sites 9 and 13 are the first and fifth of the second group, of two sites in the first 0 and 1 do not interact.
    r[3, 0] = r[4, 4] = np.inf
    assert np.abs(r - 6.1).min() > 0.05
    return 0.5 * 7.0 * np.sum(np.maximum(6.1 - r, 0.0) ** 2)


def wca_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.WCA(sites, sites, 0.8, 9.0)


def wca_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    i, j = np.triu_indices(len(sites), 1)
    r = np.linalg.norm(sites[i] - sites[j], axis=1)
    assert np.abs(r - 2.0 ** (1 / 6) * 9.0).min() > 0.05
    s = (9.0 / r[r < 2.0 ** (1 / 6) * 9.0]) ** 6
    return np.sum(4.0 * 0.8 * (s * s - s) + 0.8)


def ricker():
    """Pairs in the core, in the well and beyond the cutoff, points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.Ricker([h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]], 7.0, 4.5,
                                      cutoff=8.68, exclusions=EXCLUDED)  # fmt: skip


def well(r, depth, distance, cutoff):
    def u(r):
        return 0.5 * depth * (1.0 - 3.0 * (r / distance) ** 2) * np.exp(1.5 - 1.5 * (r / distance) ** 2)

    return np.sum(np.where(r < cutoff, u(r) - u(cutoff), 0.0))


def ricker_energy(x):
    h = lumpy_handles()
    a = np.concatenate([h["closed"].beads, h["points"].beads])
    b = np.concatenate([h["balls"].beads, h["points"].beads, h["beads"].beads])
    r = distances(x, pairs_within(a, b, EXCLUDED))
    assert (r < 4.5).sum() > 10
    assert np.abs(r - 8.68).min() > 0.05
    return well(r, 7.0, 4.5, 8.68)


def ricker_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.Ricker(sites, sites, 2.0, 6.0)


def ricker_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    i, j = np.triu_indices(len(sites), 1)
    return well(np.linalg.norm(sites[i] - sites[j], axis=1), 2.0, 6.0, 24.0)


# In a gap between distances of the pairs.
CUTOFF = 54.996


def lennard_jones(cutoff=None):
    def build():
        topology, _ = loose_beads()
        a, b = np.arange(30), np.arange(39, 14, -1)
        return topology, mp.forces.LennardJones(a, b, 0.8, 21.0, cutoff=cutoff, exclusions=[[33, 4], [0, 20]])

    return build


def lennard_jones_energy(cutoff=np.inf):
    def u(r):
        s = (21.0 / r) ** 6
        return 4.0 * 0.8 * (s * s - s)

    def energy(x):
        r = distances(x, pairs_within(range(30), range(15, 40), [[33, 4], [0, 20]]))
        assert np.abs(r - cutoff).min() > 0.05
        return np.sum(np.where(r < cutoff, u(r) - u(cutoff), 0.0))

    return energy


CHARGES = np.linspace(-2.0, 3.0, 14)


def charges():
    """Of beads of every kind, points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.Coulomb([h["points"], h["balls"], h["beads"]], CHARGES, 5.0, exclusions=EXCLUDED)


def charges_energy(x):
    h = lumpy_handles()
    beads = np.concatenate([h[k].beads for k in ("points", "balls", "beads")])
    q = dict(zip(beads.tolist(), CHARGES.tolist(), strict=True))
    i, j = pairs_within(beads, beads, EXCLUDED)
    product = np.array([q[a] * q[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    return np.sum(5.0 * product / distances(x, (i, j)))


def charges_of_sites():
    topology, h = lumpy_scene()
    sites = mixed_ends(h)[0]
    return topology, mp.forces.Coulomb(sites, np.linspace(-1.0, 2.0, len(sites)), 5.0, exclusions=[[0, 2]])


def charges_of_sites_energy(x):
    sites = places(lumpy_ends()[0], x)
    q = np.linspace(-1.0, 2.0, len(sites))
    i, j = np.triu_indices(len(sites), 1)
    r = np.linalg.norm(sites[i] - sites[j], axis=1)
    return np.sum(np.where((i == 0) & (j == 2), 0.0, 5.0 * q[i] * q[j] / r))


PAIRS_OF_BEADS = [
    ForceCase("Lennard-Jones", lennard_jones(), lennard_jones_energy(), 1.0),
    ForceCase("Lennard-Jones with a cutoff", lennard_jones(CUTOFF), lennard_jones_energy(CUTOFF), 1.0),
    ForceCase("charges", charges, charges_energy, 1.0),
    ForceCase("charges of sites", charges_of_sites, charges_of_sites_energy, 1.0),
    ForceCase("soft spheres of sites", soft_spheres_of_sites, soft_spheres_of_sites_energy, 1.0),
    ForceCase("WCA of sites", wca_of_sites, wca_of_sites_energy, 1.0),
    ForceCase("soft spheres", soft_spheres, soft_spheres_energy, 0.2),
    ForceCase("touching balls", touching_balls, touching_balls_energy, 2.0),
    ForceCase("WCA", wca, wca_energy, 1.0),
    ForceCase("Ricker of sites", ricker_of_sites, ricker_of_sites_energy, 2.0),
    ForceCase("Ricker", ricker, ricker_energy, 0.5),
]  # fmt: skip


def switched(r, u, start, end):
    """An energy that is switched off from `start` to `end`, as a polynomial of five terms."""
    x = np.clip((r - start) / (end - start), 0.0, 1.0)
    return np.where(r < end, u(r) * (1.0 - 10.0 * x**3 + 15.0 * x**4 - 6.0 * x**5), 0.0)


def ending_pairs(make, energy):
    """A pair force between overlapping groups of the scene, points among them; `energy` of distances and both beads."""

    def groups(h):
        return [h["closed"], h["points"]], [h["balls"], h["points"], h["beads"]]

    def build():
        topology, h = lumpy_scene()
        return topology, make(*groups(h), exclusions=EXCLUDED)

    def total(x):
        a, b = (np.concatenate([handle.beads for handle in group]) for group in groups(lumpy_handles()))
        return np.sum(energy(distances(x, pairs_within(a, b, EXCLUDED))))

    return build, total


def morse(r):
    e = np.exp(-0.8 * (r - 4.0))
    return 3.0 * (e * e - 2.0 * e)


def yukawa(r):
    return 11.0 * np.exp(-r / 3.0) / r


TABLE = np.concatenate([[0.0], np.geomspace(0.3, 12.0, 30)])


def tabulated(r):
    return CubicSpline(TABLE, 5.0 * np.cos(0.6 * TABLE) * np.exp(-0.1 * TABLE))(r)


SIZES, CHARGED = np.linspace(1.0, 3.0, 14), np.linspace(-2.0, 2.5, 14)
TEXT = "4*e*((s/r)^6 - (s/r)^3) + c*q1*q2/r; s = (sigma1 + sigma2)/2"


def custom_pairs():
    topology, h = lumpy_scene()
    beads = [h["points"], h["balls"], h["beads"]]
    return topology, mp.forces.CustomPair(beads, beads, TEXT, cutoff=14.03, e=0.7, c=2.0, sigma=SIZES, q=CHARGED,
                                          exclusions=EXCLUDED)  # fmt: skip


def custom_pairs_energy(x):
    h = lumpy_handles()
    beads = np.concatenate([h[k].beads for k in ("points", "balls", "beads")])
    place = {bead: k for k, bead in enumerate(beads.tolist())}
    i, j = pairs_within(beads, beads, EXCLUDED)
    a, b = (np.array([place[k] for k in ends.tolist()]) for ends in (i, j))
    r, s, q = distances(x, (i, j)), 0.5 * (SIZES[a] + SIZES[b]), CHARGED[a] * CHARGED[b]
    assert np.abs(r - 14.03).min() > 0.01

    def u(r):
        return 4.0 * 0.7 * ((s / r) ** 6 - (s / r) ** 3) + 2.0 * q / r

    return np.sum(np.where(r < 14.03, u(r) - u(14.03), 0.0))


def custom_pairs_of_sites():
    """Numbers of the sites of either group, which are not those of the other."""
    topology, h = lumpy_scene()
    a, b = site_groups(h)
    return topology, mp.forces.CustomPair(a, b, "k1*exp(-r/l) + k2*r", cutoff=13.0, switch=9.0, l=3.0,
                                          k1=np.linspace(1.0, 2.0, len(a)), k2=np.linspace(-0.2, 0.4, len(b)),
                                          exclusions=[[3, 9], [0, 1], [13, 4]])  # fmt: skip


def custom_pairs_of_sites_energy(x):
    a, b = (places(s, x) for s in site_groups(lumpy_handles()))
    r = np.linalg.norm(a[:, None] - b[None], axis=-1)
    r[3, 0] = r[4, 4] = np.inf
    k1, k2 = np.linspace(1.0, 2.0, len(a))[:, None], np.linspace(-0.2, 0.4, len(b))[None]
    near = np.where(r < 13.0, r, 13.0)
    return np.sum(switched(near, lambda r: k1 * np.exp(-r / 3.0) + k2 * r, 9.0, 13.0))


ENDING = [
    ForceCase(
        "Morse, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.Morse(a, b, 3.0, 0.8, 4.0, cutoff=10.0, switch=7.0, **k),
            lambda r: switched(r, morse, 7.0, 10.0),
        ),
        0.5,
    ),
    ForceCase(
        "Yukawa",
        *ending_pairs(
            lambda a, b, **k: mp.forces.Yukawa(a, b, 11.0, 3.0, cutoff=9.87, **k),
            lambda r: np.where(r < 9.87, yukawa(r) - yukawa(9.87), 0.0),
        ),
        0.5,
    ),
    ForceCase(
        "Yukawa of all pairs",
        *ending_pairs(lambda a, b, **k: mp.forces.Yukawa(a, b, 11.0, 3.0, **k), yukawa),
        0.5,
    ),
    ForceCase(
        "Lennard-Jones, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.LennardJones(a, b, 0.5, 2.0, cutoff=9.0, switch=3.0, **k),
            lambda r: switched(r, lambda r: 2.0 * ((2.0 / r) ** 12 - (2.0 / r) ** 6), 3.0, 9.0),
        ),
        0.3,
    ),
    ForceCase(
        "table of pairs, switched",
        *ending_pairs(
            lambda a, b, **k: mp.forces.TabulatedPair(
                a, b, TABLE, 5.0 * np.cos(0.6 * TABLE) * np.exp(-0.1 * TABLE), 0.7, cutoff=11.5, switch=8.0, **k
            ),
            lambda r: 0.7 * switched(r, lambda r: tabulated(np.minimum(r, 12.0)), 8.0, 11.5),
        ),
        0.3,
    ),
    ForceCase("custom pairs", custom_pairs, custom_pairs_energy, 0.5),
    ForceCase("custom pairs of sites", custom_pairs_of_sites, custom_pairs_of_sites_energy, 0.5),
]
