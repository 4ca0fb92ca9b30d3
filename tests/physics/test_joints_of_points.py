"""What in-triangle points at constraints sample: against quadrature in weights and places. False alarms: 1e-6 each."""

import numpy as np
import pytest
from builders import uneven_sheet

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance

KT = 1.5


@pytest.mark.slow
def test_a_point_at_a_distance_from_an_anchor_is_uniform_on_a_circle():
    """On a flat patch at rest of triangles of all shapes, with the anchor above it: every direction is as likely, and
    the speed along the circle is Maxwell's."""
    rng = np.random.default_rng(3)
    mesh = uneven_sheet(8)
    copies, radius = 500, 1.7
    anchor = np.append(0.5 * (mesh.vertices.min(axis=0) + mesh.vertices.max(axis=0))[:2] + [0.1, -0.2], 1.0)
    angle = rng.uniform(0.0, 2.0 * np.pi, copies)
    places = anchor[:2] + radius * np.column_stack([np.cos(angle), np.sin(angle)])
    R = mesh.vertices[mesh.faces][:, :, :2]
    edges = np.stack([R[:, 1] - R[:, 0], R[:, 2] - R[:, 0]], axis=2)
    inner = np.einsum("fij,fnj->fni", np.linalg.inv(edges), places - R[:, :1])
    faces = np.argmin((inner >= 0.0).all(axis=2) & (inner.sum(axis=2) <= 1.0) == 0, axis=0)
    inner = inner[faces, np.arange(copies)]
    weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, 1.0, fixed=True)
    points = topology.add_intriangle_points(sheet, triangles=faces, barycentric=weights, mass=0.7, friction=0.4)
    topology.constrain("(x-a)^2 + (y-b)^2 + (z-c)^2 - d^2", points, a=anchor[0], b=anchor[1], c=anchor[2],
                       d=float(np.hypot(radius, 1.0)), tolerance=1e-9)  # fmt: skip
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAGOGAB", 0.05, kT=KT, seed=4))
    context.set_velocities_to_temperature(kT=KT, seed=5)
    cosines, squares, looks = np.zeros((2, copies)), 0.0, 20
    for _ in range(looks):
        context.step(50)
        state = context.get_state(positions=True, velocities=True)
        out = (state.positions[points.beads] - anchor)[:, :2] / radius
        cosines += np.array([out[:, 0] ** 2 - out[:, 1] ** 2, out[:, 0]])
        squares += 0.7 * np.sum(state.velocities[points.beads] ** 2)
    check_mean("cosine of twice the angle", cosines[0] / looks, 0.0, sees=0.06)
    check_mean("cosine of the angle", cosines[1] / looks, 0.0, sees=0.1)
    check_variance("temperature", squares, copies * looks, KT, sees=0.13)


@pytest.mark.slow
def test_a_point_in_a_plane_on_a_moving_triangle_has_the_measure_of_the_metric():
    """The third corner moves, the point stays at a height c: with z = l3 z3 the place R3 and l2 have the density of the
    root of l3²/M + (1 - n_z²)/m, times the area over z3. Without the root means of z3 differ by what is seen."""
    copies, c, M, m, stiffness = 60, 0.3, 0.4, 2.0, 20.0
    R1, R2, centre = np.array([0.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]), np.array([0.8, 1.0, 0.9])

    def weight(R3, l2, with_root=True):
        l3 = c / R3[:, 2]
        n = np.cross(np.broadcast_to(R2 - R1, R3.shape), R3 - R1)
        size = np.linalg.norm(n, axis=1)
        root = np.sqrt(l3**2 / M + (1.0 - (n[:, 2] / size) ** 2) / m) if with_root else 1.0
        return np.where((l3 > 0.0) & (l2 < 1.0 - l3), size * root / np.abs(R3[:, 2]), 0.0)

    def measured(R3, l2):
        return np.array([R3[:, 2], R3[:, 2] ** 2, l2])

    rng = np.random.default_rng(7)
    R3 = centre + np.sqrt(KT / stiffness) * rng.normal(size=(400_000, 3))
    l2 = rng.uniform(size=len(R3))
    expected = np.average(measured(R3, l2), axis=1, weights=weight(R3, l2))
    plain = np.average(measured(R3, l2), axis=1, weights=weight(R3, l2, False))
    chosen = rng.choice(len(R3), copies, p=weight(R3, l2) / weight(R3, l2).sum())
    start, l2 = R3[chosen], l2[chosen]
    corners = np.stack([np.broadcast_to(R1, start.shape), np.broadcast_to(R2, start.shape), start], axis=1)
    corners = corners + 100.0 * np.arange(copies)[:, None, None] * [1.0, 0.0, 0.0]
    faces = np.arange(3 * copies).reshape(-1, 3)
    topology = mp.Topology()
    fixed = np.tile([True, True, False], copies)
    sheet = topology.add_membrane(mp.TriangleMesh(corners.reshape(-1, 3), faces), M, 2.0, fixed=fixed)
    l3 = c / start[:, 2]
    points = topology.add_intriangle_points(sheet, triangles=np.arange(copies), mass=m, friction=14.0,
                                            barycentric=np.column_stack([1.0 - l2 - l3, l2, l3]))  # fmt: skip
    topology.constrain("z - c", points, c=c, length=1.0, tolerance=1e-9)
    system = mp.System(topology)
    shift = 100.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    system.add_force(mp.forces.HarmonicTrap(sheet.beads[faces[:, 2]], stiffness, centre + shift))
    context = mp.Context(system, mp.SplittingIntegrator("BAGOGAB", 0.02, kT=KT, seed=8))
    context.set_velocities_to_temperature(kT=KT, seed=9)
    found, squares, freedom, looks = 0.0, 0.0, 0, 400
    for _ in range(looks):
        context.step(15)
        state = context.get_state(positions=True, energy=True)
        found = found + measured(state.positions[sheet.beads[faces[:, 2]]] - shift, state.intriangle.barycentric[:, 1])
        own = sum(handle.degrees_of_freedom for handle in topology.handles)
        squares, freedom = squares + own * state.temperature * mp.units.boltzmann, freedom + own
    assert own == 4 * copies
    for k, name in enumerate(("z3", "z3 squared", "l2")):
        check_mean(name, found[k] / looks, expected[k], sees=abs(expected[k] - plain[k]) if k < 2 else 0.05)
    check_variance("temperature", squares, freedom, KT, sees=0.04)
