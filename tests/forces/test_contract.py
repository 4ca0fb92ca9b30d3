"""Every force keeps the contract of `medyanpy.testing`. A new force adds one row to CASES.

Two scenes are shared: loose beads, and a lumpy open membrane with points in it among other objects, so that
no bead number, face number or parameter is what it would be in a tidy system.
"""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import ForceCase, check_force

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


# Harmonic bonds --------------------------------------------------------------------------------------------


def bonds():
    topology, _ = loose_beads()
    return topology, mp.forces.HarmonicBonds(PAIRS, K, R0)


def bonds_energy(x):
    i, j = PAIRS.T
    return 0.5 * np.sum(K * (np.linalg.norm(x[j] - x[i], axis=1) - R0) ** 2)


def edge_springs():
    topology, handles = lumpy_scene()
    n = len(handles["open"].mesh.edges)
    return topology, mp.forces.MembraneEdgeSprings(handles["open"], np.linspace(1.0, 3.0, n), np.linspace(2.0, 5.0, n))


def edge_springs_energy(x):
    membrane = lumpy_scene()[1]["open"]
    x = x[membrane.beads]
    edges = {tuple(sorted(e)) for f in membrane.mesh.faces.tolist() for e in zip(f, f[1:] + f[:1], strict=True)}
    length = [np.linalg.norm(x[a] - x[b]) for a, b in sorted(edges)]
    n = len(length)
    return 0.5 * np.sum(np.linspace(1.0, 3.0, n) * (np.array(length) - np.linspace(2.0, 5.0, n)) ** 2)


def mixed_bonds():
    """Bonds between every kind of bead, in-triangle points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.HarmonicBonds(mixed_pairs(h), np.linspace(1.0, 2.0, 5), 1.5)


def mixed_pairs(h):
    return np.array(
        [
            [h["points"].beads[4], h["beads"].beads[1]],
            [h["points"].beads[0], h["points"].beads[6]],
            [h["closed"].beads[30], h["points"].beads[4]],
            [h["balls"].beads[2], h["open"].beads[7]],
            [h["beads"].beads[0], h["balls"].beads[2]],
        ]
    )


def mixed_bonds_energy(x):
    i, j = mixed_pairs(lumpy_scene()[1]).T
    return 0.5 * np.sum(np.linspace(1.0, 2.0, 5) * (np.linalg.norm(x[j] - x[i], axis=1) - 1.5) ** 2)


CASES = [
    ForceCase("bonds", bonds, bonds_energy, 27.0),
    ForceCase("edge springs", edge_springs, edge_springs_energy, 4.0),
    ForceCase("bonds of all kinds", mixed_bonds, mixed_bonds_energy, 1.5),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_force_keeps_the_contract(case):
    check_force(case)
