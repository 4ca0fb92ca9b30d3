"""A protein of several rigid domains diffuses as a whole where the water between the domains is computed."""

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.demo.rigid import random_turns
from medyanpy.hydrodynamics import RotnePrager, mobility_matrix
from medyanpy.rigid import center_of_diffusion, friction_to_diffusion, move_diffusion
from medyanpy.testing import check_mean

KT = 300.0 * mp.units.boltzmann
#: pN s/nm: friction of the whole protein as one rigid body of 214 spheres (4AKE, `rigid.from_structure`, residues).
WHOLE = 4.6583e-8


def proteins(n, spacing):
    """Adenylate kinases far from each other, in water."""
    kinase = mp.presets.adenylate_kinase()
    side = int(np.ceil(n ** (1.0 / 3.0)))
    places = spacing * np.stack(np.unravel_index(np.arange(n), (side,) * 3), axis=1)
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(**kinase.arguments(places, random_turns(n, np.random.default_rng(21))))
    system = system_with(topology, mp.forces.Links(**kinase.links(bodies)))
    system.add_hydrodynamics(RotnePrager(mp.presets.WATER, bodies))
    return kinase, system, bodies


def coefficients(kinase, radius):
    """Diffusion coefficients (nm²/s) of domains that are held together: with the water between them, and without."""
    given = kinase.arguments()
    x, q = given["positions"], given["orientations"]
    n = len(x)
    together = mobility_matrix(x, radius, mp.presets.WATER, rotation=True)
    apart, motions = np.zeros_like(together), np.zeros((6 * n, 6))
    for i in range(n):
        turn = np.kron(np.eye(2), quaternions.turned(np.tile(q[i], (3, 1)), np.eye(3)).T)
        block = slice(6 * i, 6 * i + 6)
        together[block, block] = apart[block, block] = turn @ np.linalg.inv(given["friction"][i]) @ turn.T
        motions[block] = np.eye(6)
        motions[6 * i : 6 * i + 3, 3:] = np.cross(np.eye(3), x[i]).T
    out = []
    for mobility in (together, apart):
        friction = motions.T @ np.linalg.solve(mobility, motions)
        diffusion = friction_to_diffusion(0.5 * (friction + friction.T), kT=KT)
        out.append(np.trace(move_diffusion(diffusion, center_of_diffusion(diffusion))[:3, :3]) / 3.0)
    return out


@pytest.mark.slow
def test_three_domains_diffuse_as_the_protein_does():
    """A third of the trace at the centre of diffusion: the same to 5 % as that of one body of all residues, and half of
    it without the water between the domains. Linkers give, which makes proteins 2 % faster than bodies held rigidly;
    30 % would be seen."""
    n, steps, looks, timestep = 30, 200, 30, 1e-12
    kinase, system, bodies = proteins(n, 60.0)
    own = bodies.beads.reshape(n, -1)
    size = own.shape[1]
    expected, alone = coefficients(kinase, system.hydrodynamics.radius(bodies)[:size])
    assert expected == pytest.approx(KT / WHOLE, rel=0.05)
    assert expected * 1e-6 == pytest.approx(90.83, rel=1e-4)
    assert alone / expected == pytest.approx(0.505, abs=1e-3)
    context = mp.Context(system, mp.BrownianIntegrator(timestep, temperature=300.0, seed=21), threads=1)
    # Their middle by friction: what the linkers do to each other hardly moves it.
    weight = bodies.friction[:size] / bodies.friction[:size].sum()
    middles = []
    for _ in range(looks + 1):
        middles.append(weight @ context.get_state(positions=True).positions[own])
        context.step(steps)
    measured = (np.diff(middles, axis=0) ** 2).sum(axis=(0, 2)) / (6.0 * looks * steps * timestep)
    check_mean("diffusion of proteins", measured / expected, 1.0, sees=0.3)
