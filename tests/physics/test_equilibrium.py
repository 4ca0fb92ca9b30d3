"""A deforming mesh with points in it, against an independent sampling of its equilibrium.

Integrating out the momenta leaves the density sqrt(det G) exp(-PE/kT) over vertices and barycentric coordinates:
for n ideal points on a mesh, A^n exp(-PE/kT) over the vertices. Both are sampled here by Metropolis moves in plain
NumPy and by BAGOGAB, on thousands of copies of a tiny mesh, and means are compared by Welch's t at a false-alarm
rate of 1e-6 each; every test says what it would see if the recoil were missing.
"""

import numpy as np
import pytest
from scipy import stats

import medyanpy as mp
from medyanpy.testing import FALSE_ALARM_RATE, check_mean

KT = 1.0
STIFFNESS = 2.0
LENGTH = 3.0


def compare(what, ours, theirs):
    t, p = stats.ttest_ind(ours, theirs, equal_var=False)
    assert p > FALSE_ALARM_RATE, f"{what}: {np.mean(ours):.5g} against {np.mean(theirs):.5g} by Metropolis ({t:+.1f})"
    return t


def copies_of(mesh, n):
    """One mesh of n separate copies, far enough apart to be told apart."""
    v, f = mesh.vertices, mesh.faces
    shift = np.arange(n)[:, None, None] * np.array([100.0, 0.0, 0.0])
    return mp.TriangleMesh((v + shift).reshape(-1, 3), (f + np.arange(n)[:, None, None] * len(v)).reshape(-1, 3))


def edges_of(mesh):
    return mesh.edges


def spring_energy(x, edges):
    """(copies, V, 3) -> (copies,)"""
    length = np.linalg.norm(x[:, edges[:, 0]] - x[:, edges[:, 1]], axis=2)
    return 0.5 * STIFFNESS * ((length - LENGTH) ** 2).sum(axis=1)


def area_of(x, faces):
    a, b, c = (x[:, faces[:, k]] for k in range(3))
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2).sum(axis=1)


def metropolis(x, log_weight, sweeps, rng, size, extra=None, extra_move=None):
    """One bead of every copy at a time; `extra` (copies, 2) are barycentric coordinates, moved by `extra_move`."""
    copies, n, _ = x.shape
    current = log_weight(x, extra)
    accepted = 0
    for _ in range(sweeps):
        for bead in range(n):
            trial = x.copy()
            trial[:, bead] += rng.normal(0.0, size, (copies, 3))
            new = log_weight(trial, extra)
            take = np.log(rng.uniform(size=copies)) < new - current
            accepted += take.mean()
            x[take], current[take] = trial[take], new[take]
        if extra is not None:
            trial = extra_move(extra, rng)
            new = log_weight(x, trial)
            take = np.log(rng.uniform(size=copies)) < new - current
            extra[take], current[take] = trial[take], new[take]
    assert 0.2 < accepted / (sweeps * n) < 0.8
    return x, extra


def uniform_weights(extra, rng):
    """Fresh barycentric coordinates, uniform over the triangle: a symmetric proposal."""
    w = rng.uniform(size=extra.shape)
    fold = w.sum(axis=1) > 1.0
    w[fold] = 1.0 - w[fold]
    return w


def run_ours(mesh, copies, points_per_copy, timestep, steps, bond=None, recoil_mass=1.0):
    """Final vertices (copies, V, 3), barycentric coordinates (copies, points, 3) and triangles."""
    topology = mp.Topology()
    many = copies_of(mesh, copies)
    membrane = topology.add_membrane(many, vertex_mass=2.0, vertex_friction=2.0)
    n_faces, n_vertices = len(mesh.faces), len(mesh.vertices)
    triangles = (np.arange(copies)[:, None] * n_faces + np.arange(points_per_copy) % n_faces).ravel()
    points = topology.add_intriangle_points(
        membrane,
        triangles=triangles,
        barycentric=np.full((len(triangles), 3), 1 / 3),
        mass=recoil_mass,
        friction=1.0,
    )
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, STIFFNESS, LENGTH))
    if bond is not None:
        # Each point to the first vertex of its copy.
        pairs = np.column_stack([points.beads, membrane.beads[:: len(mesh.vertices)]])
        system.add_force(mp.forces.HarmonicBonds(pairs, *bond))
    context = mp.Context(system, mp.BAGOGABIntegrator(timestep, kT=KT, seed=31), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=32)
    context.step(steps)
    state = context.get_state(positions=True)
    x = state.positions[membrane.beads].reshape(copies, n_vertices, 3)
    weights = state.intriangle.barycentric.reshape(copies, points_per_copy, 3)
    return x, weights, state.intriangle.triangles.reshape(copies, points_per_copy) % n_faces


def test_one_free_triangle_with_springs_and_a_bound_point():
    """20 000 copies. Without the recoil the mean area would be 18 % smaller: hundreds of standard errors."""
    copies = 20_000
    triangle = mp.TriangleMesh([[0.0, 0, 0], [LENGTH, 0, 0], [0.5 * LENGTH, 0.9 * LENGTH, 0]], [[0, 1, 2]])
    stiffness, length = 1.5, 0.8
    edges = edges_of(triangle)

    def log_weight(x, w):
        e1, e2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
        r = w[:, :1] * e1 + w[:, 1:] * e2
        energy = spring_energy(x, edges) + 0.5 * stiffness * (np.linalg.norm(r, axis=1) - length) ** 2
        return np.log(area_of(x, triangle.faces)) - energy / KT

    rng = np.random.default_rng(41)
    theirs, w = metropolis(
        np.repeat(triangle.vertices[None], copies, axis=0),
        log_weight,
        150,
        rng,
        0.7,
        np.full((copies, 2), 1 / 3),
        uniform_weights,
    )
    x, weights, _ = run_ours(triangle, copies, 1, 0.1, 400, bond=(stiffness, length))
    weights = weights[:, 0]

    def observables(x, w2, w3):
        e1, e2 = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
        r2 = ((w2[:, None] * e1 + w3[:, None] * e2) ** 2).sum(axis=1)
        area = area_of(x, triangle.faces)
        return {
            "area": area,
            "area squared": area**2,
            "squared edge at the point's vertex": (e1**2).sum(axis=1),
            "squared edge away from it": ((e2 - e1) ** 2).sum(axis=1),
            "squared distance of the point from its vertex": r2,
            "weight of that vertex": 1.0 - w2 - w3,
            "product of the other weights": w2 * w3,
        }

    a = observables(x, weights[:, 1], weights[:, 2])
    b = observables(theirs, w[:, 0], w[:, 1])
    for name in a:
        compare(name, a[name], b[name])


@pytest.mark.parametrize("n", [0, 1, 6])
def test_ideal_points_weigh_a_closed_mesh_with_its_area_to_the_power_n(n):
    """6 000 octahedra of springs. Points push with n kT: from n = 0 to 6 the mean area grows by 13 %, from
    29.6 to 33.4. Areas are compared with an error of 0.3 %, so 8 standard errors are a sixth of that."""
    copies = 6_000
    octahedron = mp.TriangleMesh(
        LENGTH * np.sqrt(0.5) * np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]),
        [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
    )
    edges = edges_of(octahedron)

    def log_weight(x, _):
        return n * np.log(area_of(x, octahedron.faces)) - spring_energy(x, edges) / KT

    theirs, _ = metropolis(
        np.repeat(octahedron.vertices[None], copies, axis=0), log_weight, 120, np.random.default_rng(42), 0.55
    )
    if n:
        x, _weights, faces = run_ours(octahedron, copies, n, 0.1, 300)
        # Given the mesh the points are uniform per area: the share of a face is its area's.
        share = np.stack([area_of(x, octahedron.faces[k : k + 1]) for k in range(8)], axis=1)
        share /= share.sum(axis=1, keepdims=True)
        hits = (faces[:, :, None] == np.arange(8)).mean(axis=1)
        for k in range(8):
            difference = hits[:, k] - share[:, k]
            t = difference.mean() / (difference.std() / np.sqrt(copies))
            assert abs(t) < 5.0, f"face {k}: {t:+.1f} standard errors from its share of the area"
    else:
        x = run_without_points(octahedron, copies)
    a, b = (area_of(y, octahedron.faces) for y in (x, theirs))
    compare("area", a, b)
    compare("area squared", a**2, b**2)
    for edge in (0, 5):
        i, j = edges[edge]
        compare(f"edge {edge}", *(((y[:, i] - y[:, j]) ** 2).sum(axis=1) for y in (x, theirs)))


def run_without_points(mesh, copies):
    topology = mp.Topology()
    membrane = topology.add_membrane(copies_of(mesh, copies), vertex_mass=2.0, vertex_friction=2.0)
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, STIFFNESS, LENGTH))
    context = mp.Context(system, mp.BAGOGABIntegrator(0.1, kT=KT, seed=33), threads=1)
    context.step(300)
    return context.get_state(positions=True).positions[membrane.beads].reshape(copies, -1, 3)


def test_pressure_of_ideal_points_stretches_a_moving_mesh():
    """Points that push with n kT / A: scaling a mesh by s in the integral of A^n exp(-U/kT) over its 3V - 3 internal
    coordinates gives, for any U, <sum R.dU/dR> = (3V - 3 + 2n) kT. Octahedra of springs, n = 12: 15 of vertices and
    24 of points. 1 500 copies, 12 looks at each, averaged. Finds 5 % of the pressure: 8 standard errors of the sample.
    """
    copies, n = 1_500, 12
    mesh = mp.TriangleMesh(
        LENGTH * np.sqrt(0.5) * np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]),
        [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]],
    )
    topology = mp.Topology()
    membrane = topology.add_membrane(copies_of(mesh, copies), vertex_mass=2.0, vertex_friction=2.0)
    triangles = (np.arange(copies)[:, None] * 8 + np.arange(n) % 8).ravel()
    topology.add_intriangle_points(
        membrane, triangles=triangles, barycentric=np.full((copies * n, 3), 1 / 3), mass=1.0, friction=1.0
    )
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneEdgeSprings(membrane, STIFFNESS, LENGTH))
    context = mp.Context(system, mp.BAGOGABIntegrator(0.1, kT=KT, seed=34), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=35)
    context.step(200)
    edges, virial = edges_of(mesh), np.zeros(copies)
    for _ in range(12):
        context.step(40)
        x = context.get_state(positions=True).positions[membrane.beads].reshape(copies, -1, 3)
        length = np.linalg.norm(x[:, edges[:, 0]] - x[:, edges[:, 1]], axis=2)
        virial += (STIFFNESS * (length - LENGTH) * length).sum(axis=1) / 12
    pressure = (virial - 15.0 * KT) / 2.0
    sees = 8.0 * pressure.std(ddof=1) / np.sqrt(copies)
    print(f"pressure times area: {pressure.mean():.4f}, expected {n * KT}, finds {sees:.3f}")
    assert sees < 0.05 * n * KT
    check_mean("pressure times area", pressure, n * KT)


def test_virial_of_the_recoils_of_one_step():
    """An identity, not a law of chance: the recoils of one flight over a mesh at rest have twice the virial that the
    points have kinetic energy. Velocities drawn at kT make that 2 n kT."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    membrane = topology.add_membrane(mesh, vertex_mass=1e9)
    n, time = 2_000, 1e-3
    points = topology.add_intriangle_points(membrane, n, mass=1.0, seed=1)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(time), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=2)
    v = context.get_state(velocities=True).velocities.copy()
    v[membrane.beads] = 0.0
    context.set_velocities(v)
    context.step(1)
    state = context.get_state(positions=True, velocities=True)
    push = 1e9 * state.velocities[membrane.beads] / time
    virial = np.vdot(state.positions[membrane.beads], push)
    assert virial == pytest.approx((state.velocities[points.beads] ** 2).sum(), rel=1e-6)
