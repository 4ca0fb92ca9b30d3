"""Scenes that forces are checked on, sites in them, and what several energies share.

No bead number, face number or parameter is what it would be in a tidy system.
"""

import functools

import numpy as np

import medyanpy as mp

RNG = np.random.default_rng(7)
N = 40
LOOSE = RNG.uniform(0.0, 100.0, (N, 3))
PAIRS = np.array([RNG.choice(N - 5, 2, replace=False) for _ in range(60)])
K = RNG.uniform(10.0, 90.0, 60)
R0 = RNG.uniform(20.0, 40.0, 60)


def loose_beads():
    topology = mp.Topology()
    return topology, topology.add_beads(LOOSE, mass=1.0)


def lumpy_scene():
    """Two beads, a small closed membrane, points, an open membrane, balls: (topology, handles by name)."""
    rng = np.random.default_rng(11)
    topology = mp.Topology()
    handles = {"beads": topology.add_beads(rng.normal(0.0, 10.0, (2, 3)), mass=1.0)}
    ball = mp.TriangleMesh.icosphere(10.0, 1)
    ball = ball.with_vertices(ball.vertices + rng.normal(0.0, 0.6, ball.vertices.shape) + [3.0, -2.0, 5.0])
    handles["closed"] = topology.add_membrane(ball, vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["closed"], 7, mass=0.5, seed=3)
    sheet = mp.TriangleMesh.flat_sheet(4, 5, 4.0)
    bump = np.column_stack([np.zeros((len(sheet.vertices), 2)), 2.0 * np.sin(0.4 * sheet.vertices[:, 0])])
    sheet = sheet.with_vertices(sheet.vertices + bump + rng.normal(0.0, 0.4, bump.shape))
    handles["open"] = topology.add_membrane(sheet, vertex_mass=2.0)
    handles["balls"] = topology.add_balls(rng.normal(0.0, 8.0, (5, 3)), rng.uniform(3.0, 6.0, 5), mass=1.0)
    return topology, handles


@functools.cache
def lumpy_handles():
    """The handles of one such scene, for energies that are asked for hundreds of times; nobody changes them."""
    return lumpy_scene()[1]


def mixed_pairs(h):
    return np.array([
        [h["points"].beads[4], h["beads"].beads[1]],
        [h["points"].beads[0], h["points"].beads[6]],
        [h["closed"].beads[30], h["points"].beads[4]],
        [h["balls"].beads[2], h["open"].beads[7]],
        [h["beads"].beads[0], h["balls"].beads[2]],
    ])  # fmt: skip


def mixed_triples(h):
    """Of every kind of bead; no bead twice."""
    points, balls, closed = h["points"].beads, h["balls"].beads, h["closed"].beads
    return np.array([
        [points[4], balls[2], h["beads"].beads[1]],
        [closed[30], points[0], points[6]],
        [h["open"].beads[7], h["beads"].beads[0], closed[3]],
        [balls[4], balls[0], h["open"].beads[2]],
    ])  # fmt: skip


# Sites of every kind ---------------------------------------------------------------------------------------


def mixed_ends(h):
    """Beads, balls, vertices, points, anchors and weighted means of them, some outside their beads."""
    points, balls, closed = h["points"].beads, h["balls"].beads, h["closed"].beads
    a = (
        mp.Sites.beads([points[4], balls[1], closed[30], points[0]])
        + mp.Sites.weighted([[balls[0], points[2]], [closed[7], h["beads"].beads[1]]], [[0.3, 0.7], [1.75, -0.75]])
        + mp.Sites.beads(h["beads"])
        + mp.Sites.anchors([[2.0, -3.0, 4.0]])
    )
    b = (
        mp.Sites.weighted(
            [[points[6], points[1], closed[3]], [balls[2], h["open"].beads[5], points[4]]],
            [[0.25, 0.25, 0.5], [-0.5, 0.7, 0.8]],
        )
        + mp.Sites.anchors([[0.0, 5.0, 1.0], [-4.0, 1.0, 2.0]])
        # The same beads at both ends, and a vertex under a point.
        + mp.Sites.weighted([[points[2], balls[0], points[4]]], [[0.2, 0.5, 0.3]])
        + mp.Sites.beads([balls[1], points[4], closed[30], closed[7]])
    )
    return a, b


@functools.cache
def lumpy_ends():
    return mixed_ends(lumpy_handles())


def places(sites, x):
    """Of sites, by the definition; anchors in their order."""
    anchors = iter(sites.anchor_positions)
    out = []
    for first, last in zip(sites.start, sites.start[1:], strict=False):
        beads, weights = sites.bead_numbers[first:last], sites.weights[first:last]
        out.append(sum(w * x[i] for i, w in zip(beads, weights, strict=True)) if last > first else next(anchors))
    return np.array(out)


# Pairs of beads ---------------------------------------------------------------------------------------------
# No pair is near the distance where its energy ends: differences across that are of another order.

EXCLUDED = np.array([[1, 40], [60, 2], [3, 57], [41, 62], [70, 45]])


def pairs_within(a, b, excluded=()):
    """Pairs of one bead in each group, each once."""
    excluded = {tuple(sorted(map(int, e))) for e in excluded}
    return np.array(sorted({tuple(sorted((int(i), int(j)))) for i in a for j in b if i != j} - excluded), dtype=int).T


def distances(x, pairs):
    return np.linalg.norm(x[pairs[0]] - x[pairs[1]], axis=1)


def site_groups(h):
    a, b = mixed_ends(h)
    return a, mp.Sites.beads([h["open"].beads[3], h["open"].beads[16]]) + b[:4]


def points_of_two_membranes():
    """The scene, and points of its open membrane beside those of the closed one."""
    topology, h = lumpy_scene()
    h["more"] = topology.add_intriangle_points(h["open"], 6, mass=0.7, seed=5)
    return topology, h
