"""Directions that are held to the normal of a membrane: forces, what is continuous, what is kept, and how they tilt."""

import itertools

import numpy as np
import pytest
from builders import refuses, retraced, system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy.errors import TopologyError
from medyanpy.forces import Links, NormalLinks
from medyanpy.testing import ForceCase, check_flips, check_force
from medyanpy.testing.statistics import check_mean

ARMS = np.array([[0.3, -0.2, -1.0], [0.1, 0.5, 1.4]])
# In no order, one point twice, and the last direction between two beads.
POINTS, BODIES = np.array([4, 0, 6, 4]), np.array([2, 0, 1])
K = np.array([30.0, 7.0, 19.0, 11.0])


def scene():
    rng = np.random.default_rng(12)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(0.0, 10.0, (3, 3)), mass=1.0)
    ball = mp.TriangleMesh.icosphere(10.0, 1)
    ball = ball.with_vertices(ball.vertices + rng.normal(0.0, 0.5, ball.vertices.shape) + [3.0, -2.0, 5.0])
    closed = topology.add_membrane(ball, vertex_mass=1.0, name="closed")
    sheet = mp.TriangleMesh.flat_sheet(4, 5, 4.0)
    sheet = sheet.with_vertices(sheet.vertices + rng.normal(0.0, 0.4, sheet.vertices.shape))
    opened = topology.add_membrane(sheet, vertex_mass=2.0, name="open")
    inside = topology.add_intriangle_points(closed, 4, mass=0.5, seed=3, name="inside")
    # In the corner of the sheet, where rings are open.
    across = topology.add_intriangle_points(opened, triangles=[0, 7, 1], barycentric=rng.dirichlet([2.0] * 3, 3),
                                            mass=0.5, name="across")  # fmt: skip
    turns = rng.normal(size=(3, 4))
    bodies = topology.add_rigid_bodies(rng.normal(0.0, 10.0, (3, 3)), turns / np.linalg.norm(turns, axis=1)[:, None],
                                       2.0, (1.0, 2.0, 2.5), name="bodies")  # fmt: skip
    return topology, beads, np.concatenate([inside.beads, across.beads]), bodies


def made():
    topology, beads, points, bodies = scene()
    a, b = (
        bodies.sites(arm[None])[BODIES] + mp.Sites.beads([bead]) for arm, bead in zip(ARMS, beads.beads, strict=False)
    )
    return topology, NormalLinks(a, b, points[POINTS], K)


def rings(mesh):
    return [np.flatnonzero((mesh.faces == v).any(axis=1)) for v in range(len(mesh.vertices))]


def normal_at(x, faces, face, point):
    """Of a point wherever it is, by the weights of what is nearest to it in the plane of its triangle."""
    corner = faces[face]
    edges = (x[corner[1:]] - x[corner[0]]).T
    second, third = np.linalg.lstsq(edges, point - x[corner[0]], rcond=None)[0]
    m = np.zeros(3)
    for v, weight in zip(corner, (1.0 - second - third, second, third), strict=True):
        for f in np.flatnonzero((faces == v).any(axis=1)):
            p, q, r = x[faces[f]]
            m += weight * np.cross(q - p, r - p)
    return m / np.linalg.norm(m)


def energy(x, q):
    topology, beads, points, bodies = scene()
    turned = Rotation.from_quat(q, scalar_first=True)
    ends = [np.vstack([(x[bodies.beads] + turned.apply(arm))[BODIES], x[beads.beads[k]]]) for k, arm in enumerate(ARMS)]
    total = 0.0
    for first, second, point, k in zip(*ends, points[POINTS], K, strict=True):
        handle = next(h for h in topology.point_handles if point in h.beads)
        membrane = handle.membrane
        face = handle.triangles[point - handle.beads[0]]
        n = normal_at(x[membrane.beads], membrane.mesh.faces, face, x[point])
        d = second - first
        total += k * (1.0 - d @ n / np.linalg.norm(d))
    return total


def test_contract():
    check_force(ForceCase("normals", made, energy, 2.0))


@pytest.mark.parametrize("mesh", [mp.TriangleMesh.icosphere(80.0, 2), mp.TriangleMesh.flat_sheet(12, 12, 12.0)])
def test_where_edges_are_flipped(mesh):
    rng = np.random.default_rng(4)
    rough = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 1.0, mesh.vertices.shape))

    def build():
        topology = mp.Topology()
        beads = topology.add_beads(rng.normal(0.0, 30.0, (40, 3)), mass=1.0)
        membrane = topology.add_membrane(rough, vertex_mass=1.0)
        points = topology.add_intriangle_points(membrane, 20, mass=1.0, seed=1)
        return topology, NormalLinks(beads.beads[:20], beads.beads[20:], points, np.linspace(1.0, 5.0, 20))

    check_flips(ForceCase("normals", build, lambda x: 0.0, 10.0))


def test_a_sphere_has_its_own_normals():
    """Along the radius, to the length of an edge: sums of area vectors lean towards larger triangles."""
    worst = []
    for subdivisions in (2, 3, 4):
        topology = mp.Topology()
        ball = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, subdivisions), vertex_mass=1.0)
        points = topology.add_intriangle_points(ball, 400, mass=1.0, seed=2)
        radius = points.positions / np.linalg.norm(points.positions, axis=1)[:, None]
        heads = topology.add_beads(radius, mass=1.0)
        feet = topology.add_beads(np.zeros((400, 3)), mass=1.0)
        system = system_with(topology, NormalLinks(feet, heads, points, 1.0))
        state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True)
        # The torque is the sine of the angle.
        worst.append(np.linalg.norm(state.forces[heads.beads], axis=1).max())
    assert worst[0] < 0.03
    assert all(1.8 < a / b < 2.2 for a, b in itertools.pairwise(worst)), worst


def test_continuous_across_an_edge():
    topology, beads, *_ = scene()
    opened = topology["open"]
    face = 7
    corner = opened.mesh.faces[face]
    other = next(
        f for f in range(len(opened.mesh.faces)) if f != face and np.isin(corner[:2], opened.mesh.faces[f]).all()
    )
    energies = []
    for f, sign in ((face, 1.0), (other, 1.0), (face, -1.0)):
        weights = np.zeros(3)
        for vertex, weight in zip(corner[:2], (0.3, 0.7), strict=True):
            weights[opened.mesh.faces[f] == vertex] = weight
        if sign < 0.0:
            weights = np.array([0.2, 0.6, 0.2])
        topology, beads, *_ = scene()
        point = topology.add_intriangle_points(topology["open"], triangles=[f], barycentric=[weights], mass=1.0)
        system = system_with(topology, NormalLinks([beads.beads[0]], [beads.beads[1]], point, 50.0))
        energies.append(mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy)
    assert energies[1] == pytest.approx(energies[0], rel=1e-13)
    assert abs(energies[2] - energies[0]) > 0.05


def upright(timestep=2e-3, kT=None, word="BAGAB", stiffness=60.0, size=6, **friction):
    """A body that stands in a sheet, tied to a point."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(size, size, 4.0)
    membrane = topology.add_membrane(mesh, vertex_mass=2.0,
                                     **({"vertex_friction": friction["friction"]} if friction else {}))  # fmt: skip
    centre = np.argmin(np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1) - mesh.vertices.mean(axis=0), axis=1))
    point = topology.add_intriangle_points(membrane, triangles=[centre], barycentric=[[0.3, 0.3, 0.4]], mass=1.0,
                                           **friction)  # fmt: skip
    turn = Rotation.from_rotvec([0.3, 0.2, 0.5]).as_quat(scalar_first=True)
    body = topology.add_rigid_bodies(point.positions, [turn], 2.0, (3.0, 2.0, 2.5), **friction)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, 20.0))
    system.add_force(mp.forces.MembraneBending(membrane, 30.0))
    system.add_force(Links(body, point, 10.0))
    system.add_force(NormalLinks(body.sites([[0, 0, -1.0]]), body.sites([[0, 0, 1.0]]), point, stiffness))
    integrator = mp.SplittingIntegrator(word, timestep, **({} if kT is None else {"kT": kT, "seed": 5}))
    return mp.Context(system, integrator), body, point


def test_energy_and_momentum_are_kept():
    """Energy to dt² while the point stays in its triangle, momentum to rounding; the normal's torque goes both ways."""
    spread = []
    for timestep in (0.004, 0.002, 0.001):
        context, _, point = upright(timestep)
        triangle = context.get_state(positions=True).intriangle.triangles[0]
        energies = []
        for _ in range(round(2.0 / timestep / 10)):
            context.step(10)
            state = context.get_state(energy=True)
            energies.append(state.potential_energy + state.kinetic_energy)
        spread.append(np.ptp(energies))
        last = context.get_state(positions=True, velocities=True)
        assert last.intriangle.triangles[0] == triangle
        # Of what moves in space: vertices and the body, of one mass. The point's is not a momentum of space.
        momentum = 2.0 * np.delete(last.velocities, point.beads, axis=0).sum(axis=0)
        assert np.abs(last.velocities).max() > 0.1
        assert np.abs(momentum).max() < 1e-11
    assert 3.5 < spread[0] / spread[1] < 4.5
    assert 3.5 < spread[1] / spread[2] < 4.5


def test_there_and_back():
    retraced(upright()[0], 2000, atol=1e-10, least=0.05)


@pytest.mark.slow
def test_tilt_at_equilibrium():
    """1 - cos θ of a free direction has the density exp(-k (1 - cos θ)/kT): its mean is kT/k - 2/(exp(2k/kT) - 1),
    whatever the membrane does. 60 independent bodies on a sheet that moves."""
    n, k, kT = 60, 8.0, 2.0
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(14, 14, 4.0)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=2.0)
    points = topology.add_intriangle_points(membrane, n, mass=1.0, friction=2.0, seed=1)
    turns = Rotation.random(n, random_state=1).as_quat(scalar_first=True)
    bodies = topology.add_rigid_bodies(points.positions, turns, 1.0, (1.0, 1.0, 1.0), friction=2.0 * np.eye(6))
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 40.0),
                         mp.forces.MembraneBending(membrane, 20.0 * kT))  # fmt: skip
    tilt = system.add_force(NormalLinks(bodies.sites([[0, 0, -1.0]]), bodies.sites([[0, 0, 1.0]]), points, k))
    context = mp.Context(system, mp.BAGOGABIntegrator(0.03, kT=kT, seed=3))
    context.set_velocities_to_temperature(kT=kT, seed=4)
    context.step(600)
    samples = []
    for _ in range(1200):
        context.step(40)
        samples.append(context.get_state(energy=True).energies[tilt.name] / (k * n))
    expected = kT / k - 2.0 / np.expm1(2.0 * k / kT)
    check_mean("1 - cos θ", np.array(samples), expected, sees=0.05 * expected, time_series=True)


def test_without_direction_or_normal():
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(3, 3, 1.0), vertex_mass=1.0)
    point = topology.add_intriangle_points(sheet, triangles=[4], barycentric=[[0.2, 0.3, 0.5]], mass=1.0)
    beads = topology.add_beads([[1.0, 2, 3], [1.0, 2, 3]], mass=1.0)
    system = system_with(topology, NormalLinks([beads.beads[0]], [beads.beads[1]], point, 5.0))
    state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True, energy=True)
    assert state.potential_energy == 5.0
    assert (state.forces == 0.0).all()


def test_refusals():
    topology, beads, points, bodies = scene()
    ends = bodies.sites([[0, 0, 0.0]])[:1], bodies.sites([[0, 0, 1.0]])[:1]
    with pytest.raises(TopologyError, match="the normal of direction 0 is asked at bead 1, no in-triangle point"):
        mp.Context(with_force(topology, NormalLinks(*ends, [beads.beads[1]], 1.0)), mp.VerletIntegrator(1e-3))
    with pytest.raises(TopologyError, match=r"direction 0 is asked at bead .*, no in-triangle point"):
        NormalLinks(bodies, bodies.sites([[0, 0, 1.0]]), bodies, 1.0)
    mean = mp.Sites.beads(points[:1]) + bodies.sites([[0, 0, 1.0]])[:1]
    with pytest.raises(TopologyError, match="direction 1 is asked at a site that is not a single bead"):
        NormalLinks(ends[0] + ends[0], ends[1] + ends[1], mean, 1.0)
    links = NormalLinks(*ends, points[:1], 1.0)
    refuses(TopologyError, "no in-triangle point", links.add, *ends, bodies.sites([[0, 0, 2.0]])[:1])
    assert len(links) == 1


def with_force(topology, force):
    system = system_with(topology, force)
    return system


@pytest.mark.parametrize("lumps", [0.0, 0.4])
def test_longest_timestep(lumps):
    """At most 2/ω of beads and vertices, the point riding in its triangle, and at least half of it."""
    rng = np.random.default_rng(6)
    mesh = mp.TriangleMesh.flat_sheet(4, 4, 2.0)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, lumps, mesh.vertices.shape))
    topology = mp.Topology()
    mass = rng.uniform(1.0, 4.0, len(mesh.vertices) + 2)
    sheet = topology.add_membrane(mesh, vertex_mass=mass[:-2])
    weights = np.array([0.2, 0.5, 0.3])
    # So heavy that its own motion in the triangle does not count.
    point = topology.add_intriangle_points(sheet, triangles=[9], barycentric=[weights], mass=1e9)
    beads = topology.add_beads([[0.0, 0, 0], 3.0 * point.normals[0]], mass=mass[-2:])
    system = mp.System(topology)
    force = system.add_force(NormalLinks([beads.beads[0]], [beads.beads[1]], point, 7.0))
    context = mp.Context(system, mp.VerletIntegrator(1e-9))
    x = np.array(context.get_state(positions=True).positions)
    moving = np.concatenate([sheet.beads, beads.beads])
    rows = []
    for bead, c in itertools.product(moving, range(3)):
        pulled = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[bead, c] += sign * 1e-5
            context.set_positions(moved)
            f = np.array(context.get_state(forces=True).forces)
            f[sheet.beads[mesh.faces[9]]] += weights[:, None] * f[point.beads[0]]
            pulled.append(f[moving].ravel())
        rows.append((pulled[1] - pulled[0]) / 2e-5)
    scale = np.repeat(1.0 / np.sqrt(mass), 3)
    exact = 2.0 / np.sqrt(np.linalg.eigvalsh(scale[:, None] * np.array(rows) * scale)[-1])
    assert 0.5 * exact <= force.longest_timestep(topology) <= 1.0001 * exact
