"""Elastic rods in a context, and their frequencies by differences of forces, for tests of several files."""

import numpy as np
from builders import system_with

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.testing import thermal

SECTION = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)


def make(nodes, orientations, length, stiffness, *loads, word="ABA", timestep=1e-3, mass=1.0, inertia=(1.0, 1.0, 1.5),
         kT=None, many=False, rest=None, integrator=None, **options):  # fmt: skip
    """A context with a rod (or many), its handle and its forces; `loads` are made of the handle."""
    topology = mp.Topology()
    add = topology.add_rods if many else topology.add_rod
    rod = add(nodes, orientations, length, mass, inertia, **options)
    system = system_with(topology, mp.forces.RodElasticity(rod, **stiffness, **(rest or {})))
    for load in loads:
        system.add_force(load(rod))
    integrator = integrator or mp.SplittingIntegrator(word, timestep, kT=thermal(word, kT), seed=7)
    return mp.Context(system, integrator, threads=1), rod


def round_rod(nodes, orientations, length, *loads, section=SECTION, **options):
    return make(nodes, orientations, length, section.stiffness, *loads, mass=section.linear_density,
                inertia=section.inertia_density, **options)  # fmt: skip


def gradient(context, x, q):
    """(6 n,) minus forces and torques."""
    context.set_positions(x)
    context.set_orientations(q)
    state = context.get_state(forces=True)
    return -np.concatenate([state.forces, state.torques], axis=1).ravel()


def moved(x, q, step):
    """Nodes displaced by the first three numbers of each, and turned about their own axes by the others."""
    step = step.reshape(-1, 6)
    angle = np.linalg.norm(step[:, 3:], axis=1)[:, None]
    turn = np.concatenate([np.cos(0.5 * angle), 0.5 * np.sinc(0.5 * angle / np.pi) * step[:, 3:]], axis=1)
    return x + step[:, :3], quaternions.product(q, turn)


def hessian(context, x, q, free, h=1e-5):
    """Of the free coordinates of one open rod, by central differences. A node acts on its neighbours alone, so every
    third is moved at once."""
    n = len(x)
    K = np.zeros((n + 2, 6, n, 6))
    for first in range(min(3, n)):
        for i in range(6):
            step = np.zeros((n, 6))
            step[first::3, i] = h
            slope = (gradient(context, *moved(x, q, step)) - gradient(context, *moved(x, q, -step))) / (2.0 * h)
            slope = np.concatenate([np.zeros((1, 6)), slope.reshape(n, 6), np.zeros((2, 6))])
            for node in range(first, n, 3):
                K[node : node + 3, :, node, i] = slope[node : node + 3]
    context.set_positions(x)
    context.set_orientations(q)
    return K[1:-1].reshape(6 * n, 6 * n)[free][:, free]


def free_coordinates(rod):
    return ~np.repeat(rod.kind.held, 3, axis=1).ravel()


def frequencies(context, rod):
    """All squares of frequencies of a rod as it was added, ascending."""
    free = free_coordinates(rod)
    inverse = 1.0 / np.sqrt(np.concatenate([np.tile(rod.mass[:, None], 3), rod.inertia], axis=1).ravel()[free])
    K = hessian(context, rod.positions, rod.orientations, free)
    assert np.abs(K - K.T).max() < 1e-8 * np.abs(K).max()
    return np.sort(np.linalg.eigvalsh(0.5 * (K + K.T) * inverse[:, None] * inverse))


CANTILEVER = {"shear": (2.0, 3.0), "extension": 4.0, "bending": (5.0, 8.0), "twist": 6.0}


def tip_force(force):
    return lambda rod: mp.forces.RodLoad(rod, "end", force=force)


def tip_couple(couple, **how):
    return lambda rod: mp.forces.RodLoad(rod, "end", couple=couple, **how)
