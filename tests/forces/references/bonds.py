"""Bonds and springs, and their energies written again."""

import math

import numpy as np
from references.scenes import PAIRS, R0, K, loose_beads, lumpy_handles, lumpy_scene, mixed_pairs

import medyanpy as mp
from medyanpy.testing import ForceCase


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
    membrane = lumpy_handles()["open"]
    x = x[membrane.beads]
    edges = {tuple(sorted(e)) for f in membrane.mesh.faces.tolist() for e in zip(f, f[1:] + f[:1], strict=True)}
    length = [np.linalg.norm(x[a] - x[b]) for a, b in sorted(edges)]
    n = len(length)
    return 0.5 * np.sum(np.linspace(1.0, 3.0, n) * (np.array(length) - np.linspace(2.0, 5.0, n)) ** 2)


def mixed_bonds():
    """Bonds between every kind of bead, in-triangle points among them."""
    topology, h = lumpy_scene()
    return topology, mp.forces.HarmonicBonds(mixed_pairs(h), np.linspace(1.0, 2.0, 5), 1.5)


def mixed_bonds_energy(x):
    i, j = mixed_pairs(lumpy_handles()).T
    return 0.5 * np.sum(np.linspace(1.0, 2.0, 5) * (np.linalg.norm(x[j] - x[i], axis=1) - 1.5) ** 2)


BOND_TEXT = "depth*(1 - exp(-(r - r0)/8))^2 + b*atan2(r, 20) + max(r - 30, 0)^2.5/900"


def custom_bonds():
    topology, _ = loose_beads()
    return topology, mp.forces.CustomBonds(PAIRS, BOND_TEXT, depth=K, r0=R0, b=7.0)


def custom_bonds_energy(x):
    i, j = PAIRS.T
    return of_bond_text(np.linalg.norm(x[j] - x[i], axis=1), K, R0, 7.0)


def of_bond_text(r, depth, r0, b):
    assert (r > 30.0).any()
    assert np.abs(r - 30.0).min() > 1e-3
    morse = depth * (1.0 - np.exp(-(r - r0) / 8.0)) ** 2
    return np.sum(morse + b * np.arctan2(r, 20.0) + np.maximum(r - 30.0, 0.0) ** 2.5 / 900.0)


def mixed_custom_bonds():
    """Between every kind of bead, in-triangle points among them."""
    topology, h = lumpy_scene()
    text = "k*sinh(r/9)^2 + l*erf(r/6)"
    return topology, mp.forces.CustomBonds(mixed_pairs(h), text, k=np.linspace(1.0, 2.0, 5), l=1.5)


def mixed_custom_bonds_energy(x):
    i, j = mixed_pairs(lumpy_handles()).T
    r = np.linalg.norm(x[j] - x[i], axis=1)
    error = np.array([math.erf(d / 6.0) for d in r])
    return np.sum(np.linspace(1.0, 2.0, 5) * np.sinh(r / 9.0) ** 2 + 1.5 * error)


BONDS = [
    ForceCase("bonds", bonds, bonds_energy, 27.0),
    ForceCase("custom bonds", custom_bonds, custom_bonds_energy, 8.0),
    ForceCase("custom bonds of all kinds", mixed_custom_bonds, mixed_custom_bonds_energy, 4.0),
    ForceCase("edge springs", edge_springs, edge_springs_energy, 4.0),
    ForceCase("bonds of all kinds", mixed_bonds, mixed_bonds_energy, 1.5),
]
