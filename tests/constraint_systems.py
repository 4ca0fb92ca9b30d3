"""Systems with constraints of a user's own, and a dense solver of them in NumPy."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import thermal

DISTANCE = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2"
ANGLE = "(x1-x2)*(x3-x2) + (y1-y2)*(y3-y2) + (z1-z2)*(z3-z2) - c"


def slopes(g, x):
    """(r, n, 3) the derivatives of g by complex steps: exact to rounding, whatever g is."""
    out = np.empty((*np.shape(g(x)), *x.shape))
    for i in np.ndindex(*x.shape):
        moved = x.astype(complex)
        moved[i] += 1e-30j
        out[(slice(None), *i)] = g(moved).imag / 1e-30
    return out


def rattle(g, force, x, v, mass, h, steps, fixed=()):
    """BAB of some steps by dense matrices in NumPy, and nothing of the package: SHAKE to round-off, RATTLE."""
    w = 1.0 / np.asarray(mass, float)
    w[list(fixed)] = 0.0
    w = np.repeat(w, 3)

    def jacobian(x):
        return slopes(g, x).reshape(-1, x.size)

    def tangent(x, v):
        j = jacobian(x)
        return v - (w * (j.T @ np.linalg.solve((j * w) @ j.T, j @ v.ravel()))).reshape(v.shape)

    for _ in range(steps):
        v = tangent(x, v + 0.5 * h * w.reshape(v.shape) * force(x))
        j, flown = jacobian(x), x + h * v
        new, mu = flown, np.zeros(len(j))
        for _ in range(30):
            mu = mu + np.linalg.solve((jacobian(new) * w) @ j.T, g(new))
            new = flown - (w * (j.T @ mu)).reshape(x.shape)
        v = tangent(new, v - (w * (j.T @ mu)).reshape(v.shape) / h)
        x = new
        v = tangent(x, v + 0.5 * h * w.reshape(v.shape) * force(x))
    return x, v


# Systems ---------------------------------------------------------------------------------------------------------


def chain_on_a_surface(topology, tolerance=1e-14):
    """A filament of four nodes, one of which a distance ties to a bead on an ellipsoid, with a fixed angle in it; g."""
    ellipsoid = mp.surfaces.Polynomial("x**2 + 2*y**2 + z**2 - 9", length=3.0)
    walkers = topology.add_surface_points(ellipsoid, ellipsoid.project([[2.0, 1.0, 1.0], [1.0, -1.0, 2.0]]), [1.0, 2.0],
                                          [0.5, 0.2], tolerance=1e-15)  # fmt: skip
    nodes = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 1.0, 0.0], [2.0, 1.0, 1.0]]) + [0.0, 0.0, 0.3]
    chain = topology.add_filament(nodes, [1.0, 2.0, 3.0, 1.0], [0.3, 1.0, 0.1, 2.0], tolerance=tolerance)
    a, b = walkers.beads, chain.beads
    d = np.linalg.norm(walkers.positions[0] - nodes[3])
    cosine = (nodes[0] - nodes[1]) @ (nodes[2] - nodes[1])
    topology.constrain(DISTANCE, [a[0], b[3]], d=d, tolerance=tolerance, name="tie")
    topology.constrain(ANGLE, b[:3], c=cosine, tolerance=tolerance, name="angle")
    lengths = np.linalg.norm(np.diff(nodes, axis=0), axis=1)

    def g(x):
        links = np.diff(x[b], axis=0)
        return np.array([
            *(np.sum(x[a] ** 2 * [1.0, 2.0, 1.0], axis=1) - 9.0),
            *(np.sum(links**2, axis=1) - lengths**2),
            np.sum((x[a[0]] - x[b[3]]) ** 2) - d**2,
            (x[b[0]] - x[b[1]]) @ (x[b[2]] - x[b[1]]) - cosine,
        ])  # fmt: skip

    return g, ()


def linkage(topology, tolerance=1e-14):
    """A four-bar linkage: two fixed pivots, two joints that stay in a plane, three bars; g."""
    joints = np.array([[0.0, 0.0, 0.0], [0.6, 1.1, 0.0], [2.4, 1.4, 0.0], [2.8, 0.0, 0.0]])
    ends = topology.add_filament(joints[[0, 1]], 1.0, 0.2, fixed_nodes=[0], tolerance=tolerance, name="crank")
    rocker = topology.add_filament(joints[[3, 2]], 2.0, 0.9, fixed_nodes=[0], tolerance=tolerance, name="rocker")
    moving = [ends.beads[1], rocker.beads[1]]
    bar = np.linalg.norm(joints[1] - joints[2])
    topology.constrain(DISTANCE, moving, d=bar, tolerance=tolerance, name="coupler")
    topology.constrain("z", np.reshape(moving, (2, 1)), length=1.0, tolerance=tolerance, name="plane")
    beads = np.array([ends.beads[0], *moving, rocker.beads[0]])
    lengths = np.linalg.norm(np.diff(joints, axis=0), axis=1)

    def g(x):
        bars = np.diff(x[beads], axis=0)
        return np.array([*(np.sum(bars**2, axis=1) - lengths**2), *x[moving, 2]])

    return g, (beads[0], beads[3])


def columns_of_a_rotation(topology, tolerance=1e-14):
    """QᵀQ = 1 of three beads, and a bead tied to the end of one column; g."""
    q = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    columns = topology.add_beads(q.T, [0.5, 0.7, 0.5], [0.1, 0.1, 0.5])
    tail = topology.add_beads([q[:, 0] + [0.0, 0.5, 0.0]], 1.0, 0.3)
    texts = [f"x{i}*x{j} + y{i}*y{j} + z{i}*z{j}" + " - 1" * (i == j) for i in (1, 2, 3) for j in range(i, 4)]
    topology.constrain(texts, columns.beads, tolerance=tolerance)
    topology.constrain(DISTANCE, [columns.beads[0], tail.beads[0]], d=0.5, tolerance=tolerance)

    def g(x):
        m = x[columns.beads] @ x[columns.beads].T - np.eye(3)
        return np.array([*m[np.triu_indices(3)], np.sum((x[columns.beads[0]] - x[tail.beads[0]]) ** 2) - 0.25])

    return g, ()


def twistable_on_a_sphere(topology, tolerance=1e-14):
    """A twistable filament whose nodes stay on a sphere of their own text; g."""
    angle = np.array([0.0, 0.4, 0.9, 1.3])
    nodes = 2.0 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(4)])
    chain = topology.add_filament(nodes, [1.0, 2.0, 1.0, 0.5], 0.3, directors=np.tile([0.0, 0.0, 1.0], (3, 1)),
                                  director_mass=0.4, director_friction=0.2, tolerance=tolerance)  # fmt: skip
    topology.constrain("x^2 + y^2 + z^2 - R*R", chain.beads[:, None], R=2.0, tolerance=tolerance)
    b, p = chain.beads, chain.directors.beads
    lengths = np.linalg.norm(np.diff(nodes, axis=0), axis=1)

    def g(x):
        links = np.diff(x[b], axis=0)
        return np.array([
            *(np.sum(links**2, axis=1) - lengths**2),
            *np.sum(links * x[p], axis=1),
            *(np.sum(x[p] ** 2, axis=1) - 1.0),
            *(np.sum(x[b] ** 2, axis=1) - 4.0),
        ])  # fmt: skip

    return g, ()


SYSTEMS = {f.__name__.replace("_", " "): f for f in (
    chain_on_a_surface, linkage, columns_of_a_rotation, twistable_on_a_sphere)}  # fmt: skip
every_system = pytest.mark.parametrize("build", SYSTEMS.values(), ids=SYSTEMS)


def made(build, word="BAB", h=0.02, kT=1.0, tolerance=1e-14, threads=1, order=2):
    """A context, g, the force on all beads, and fixed ones; springs to places beside the start, and gravity."""
    topology = mp.Topology()
    g, fixed = build(topology, tolerance)
    system = mp.System(topology)
    beads = np.concatenate([h.beads for h in topology.handles if len(h)])
    center = np.random.default_rng(3).normal(0.0, 0.5, (len(beads), 3))
    system.add_force(mp.forces.HarmonicTrap(beads, 1.0, center))
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=5, order=order),
                         threads=threads)  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    at = np.empty_like(center)
    at[beads] = center
    return context, g, lambda x: at - x, fixed


def look(context):
    state = context.get_state(positions=True, velocities=True)
    return state.positions, state.velocities


def masses(context):
    topology = context.system.topology
    out = np.empty(topology.n_beads)
    for handle in topology.handles:
        out[handle.beads] = handle.mass
    return out
