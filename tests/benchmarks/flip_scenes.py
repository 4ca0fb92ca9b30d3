"""Vesicles whose edges flip while filaments push them, ellipsoids lie on them and points interact along them.

Each function returns a Context and its EdgeFlips with a rate of 0, as `bench_flips.vesicle` does.
"""

import numpy as np

import medyanpy as mp

KT = 4.14
RADIUS = 500.0
# Neighbours that each point has, on the average.
NEIGHBORS = 10


def _vesicle(subdivisions: int) -> tuple[mp.Topology, mp.beads.Membrane]:
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(RADIUS, subdivisions)
    return topology, topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)


def _context(
    topology: mp.Topology, membrane: mp.beads.Membrane, force: mp.forces.Force
) -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, 20.0 * KT))
    system.add_force(mp.forces.MembraneArea(membrane, 200.0))
    system.add_force(mp.forces.MembraneVolume(membrane, 0.05))
    system.add_force(mp.forces.MembraneFoldRepulsion(membrane, 20.0 * KT))
    system.add_force(force)
    flips = system.add_jump(mp.jumps.EdgeFlips(membrane, 0.0))
    word = "JBAGOGABJ" if topology.point_handles else "JBAOABJ"
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-9, kT=KT, seed=1), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    return context, flips


def with_filaments(subdivisions: int, nodes: int) -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    """Filaments of ten nodes that lie inside, just below the membrane."""
    topology, membrane = _vesicle(subdivisions)
    rng = np.random.default_rng(3)
    away = rng.normal(size=(nodes // 10, 3))
    away /= np.linalg.norm(away, axis=1)[:, None]
    along = np.cross(away, rng.normal(size=away.shape))
    along /= np.linalg.norm(along, axis=1)[:, None]
    angle = 12.0 / RADIUS * (np.arange(10) - 4.5)
    x = np.cos(angle)[:, None] * away[:, None] + np.sin(angle)[:, None] * along[:, None]
    chains = topology.add_filaments(list((RADIUS - 9.0) * x), 4e-12, 4e-6, constrained=False)
    return _context(topology, membrane, mp.forces.SoftCollisions([membrane, chains], 5.0, 5.0))


def with_ellipsoids(subdivisions: int, bodies: int) -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    topology, membrane = _vesicle(subdivisions)
    rng = np.random.default_rng(3)
    away = rng.normal(size=(bodies, 3))
    x = (RADIUS - 12.0) * away / np.linalg.norm(away, axis=1)[:, None]
    q = rng.normal(size=(bodies, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    rigid = topology.add_rigid_bodies(x, q, 4e-12, [1e-10, 1e-10, 1e-10], (4e-6, 1e-4))
    return _context(topology, membrane, mp.forces.EllipsoidCollisions(rigid, membrane, KT, [6.0, 9.0, 12.0], 2.0))


def along_surface(subdivisions: int, points: int) -> tuple[mp.Context, mp.jumps.EdgeFlips]:
    """Points with ten neighbours each, by their distances along the membrane."""
    topology, membrane = _vesicle(subdivisions)
    handle = topology.add_intriangle_points(membrane, points, mass=4e-12, friction=4e-6, seed=1)
    # A disc of this radius has so many of them.
    cutoff = 2.0 * RADIUS * np.sqrt(NEIGHBORS / points)
    return _context(topology, membrane, mp.forces.SoftSphere(handle, handle, 1.0, cutoff, along_surface=True))
