"""Points held by local corrections: what these keep, and what not. docs/figures/000.md, "A future direction"."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import medyanpy as mp
from medyanpy.testing import check_mean

sys.path.insert(0, str(Path(__file__).parent))
import local_corrections as held

MESH = mp.TriangleMesh.icosphere(3.0, 0)
TRIANGLE = mp.TriangleMesh(4.0 * np.array([[0.0, 0, 0], [1.0, 0, 0], [0.5, 0.75**0.5, 0]]), [[0, 1, 2]])


def spread(mesh, p, seed=1):
    """Triangles and weights of p points anywhere."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, len(mesh.faces), p), rng.dirichlet([1.0, 1.0, 1.0], p)


def test_riders_move_as_points_of_the_package():
    triangles, weights = spread(MESH, 8)
    s = held.Riders(MESH, 1, triangles, weights, M=1.3, m=0.7)
    s.heat()
    topology = mp.Topology()
    sheet = topology.add_membrane(MESH, vertex_mass=1.3)
    points = topology.add_intriangle_points(sheet, triangles=triangles, barycentric=weights, mass=0.7)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicBonds(sheet.beads[MESH.edges], s.stiffness, s.rest))
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 0.02), threads=1)
    context.set_velocities(np.concatenate([s.V[0], s.v[0]]))
    context.step(60)
    s.step(0.02, 60, thermostat=False)
    assert (s.face != triangles).sum() > 3
    x = context.get_state(positions=True).positions
    assert np.abs(x[sheet.beads] - s.R[0]).max() < 1e-12
    assert np.abs(x[points.beads] - s.places()[0]).max() < 1e-12


def along_constraints(s):
    """Velocities (c, n + p, 3) without what goes against any constraint, by dense linear algebra."""
    out = []
    n = len(s.R[0])
    for c, faces in enumerate(s.faces[s.face]):
        J = np.zeros((len(faces), n + len(faces), 3))
        for q, (corners, normal, weight) in enumerate(zip(faces, s.normals()[c], s.weight[c], strict=True)):
            J[q, n + q] = normal
            J[q, corners] = -weight[:, None] * normal
        z, J = np.concatenate([s.V[c], s.v[c]]).ravel(), J.reshape(len(faces), -1)
        by_mass = J / np.repeat([s.M] * n + [s.m] * len(faces), 3)
        out.append((z - by_mass.T @ np.linalg.solve(J @ by_mass.T, J @ z)).reshape(-1, 3))
    return np.array(out)


@pytest.mark.parametrize("sweeps", [1, 3, 300])
def test_corrections_take_nothing_from_the_motion_along_constraints(sweeps):
    """Each is a projection that is orthogonal in the metric of the masses: any number leaves that part as it was, and
    very many leave nothing else."""
    s = held.Held(MESH, 3, *spread(MESH, 12), m=0.7, sweeps=0)
    s.heat()
    before, momentum = along_constraints(s), s.momentum()
    s.hold(sweeps)
    np.testing.assert_allclose(along_constraints(s), before, atol=1e-13)
    np.testing.assert_allclose(s.momentum(), momentum, atol=1e-13)
    assert (np.abs(s.off()).max() < 1e-13) == (sweeps == 300)


def test_a_sweep_is_one_of_gauss_and_seidel():
    """Of their matrix W = D + L + Lᵀ: velocities off the mesh are multiplied by 1 - W (D + L)⁻¹."""
    s = held.Held(MESH, 1, *spread(MESH, 36), m=3.0, sweeps=0)
    s.heat()
    W = s.gram()[0]
    sweep, off = np.eye(36) - W @ np.linalg.inv(np.tril(W)), s.off()[0]
    for _ in range(10):
        s.hold(1)
        off = sweep @ off
        np.testing.assert_allclose(s.off()[0], off, atol=1e-13)
    assert np.abs(off).max() > 1e-5


@pytest.mark.parametrize("level", [1, 2])
def test_the_condition_is_bounded_by_what_a_vertex_carries(level):
    """The largest eigenvalue of 1 + K is at most 1 + L, L the largest mass of points on a vertex over its own, and the
    least is 1 at least: on any mesh. Rows of Gram's matrix of weights λ have the sums Σ_i λ_i Σ_q λ_i."""
    mesh = mp.TriangleMesh.icosphere(3.0, level)
    s = held.Held(mesh, 1, *spread(mesh, 3 * len(mesh.vertices)), m=2.0)
    carried = s.m * np.bincount(s.faces[s.face[0]].ravel(), s.weight[0].ravel()).max() / s.M
    values = np.linalg.eigvalsh(s.m * s.gram()[0])
    assert 0.3 * carried < values[-1] - 1.0 < carried
    assert values[0] > 1.0 - 1e-12


def equations_of_motion(s, end):
    """R and r of a triangle with its points, held without end, by multipliers."""
    p = s.face.shape[1]
    masses = np.repeat([s.M] * 3 + [s.m] * p, 3)

    def g(q):
        x = q.reshape(-1, 3)
        return (x[3:] - x[0]) @ np.cross(x[1] - x[0], x[2] - x[0])

    def rates(_, y):
        q, v = y.reshape(2, -1)
        J = np.array([g(q + 1e-30j * unit).imag for unit in np.eye(len(q))]).T / 1e-30
        x = q[:9].reshape(3, 3)
        along = x[s.edges[:, 1]] - x[s.edges[:, 0]]
        length = np.linalg.norm(along, axis=1)[:, None]
        F = np.concatenate([(s.ends @ (s.stiffness * (length - s.rest[:, None]) * along / length)).ravel(),
                            np.zeros(3 * p)])  # fmt: skip
        # A cubic has its second derivative along v from three places.
        bent = g(q + v) + g(q - v) - 2.0 * g(q)
        force = F - J.T @ np.linalg.solve(J @ (J.T / masses[:, None]), J @ (F / masses) + bent)
        return np.concatenate([v, force / masses])

    start = np.concatenate([s.R[0], s.places()[0], s.V[0], s.v[0]]).ravel()
    return solve_ivp(rates, (0.0, end), start, method="DOP853", rtol=1e-7, atol=1e-9).y[:, -1].reshape(2, -1, 3)[0]


def test_without_edges_they_are_of_second_order_and_run_back():
    """All corrections to rounding: RATTLE. Three points of a triangle that turns over in space."""
    weights = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.25, 0.25, 0.5]])
    errors = []
    for h in (0.04, 0.02):
        s = held.Held(TRIANGLE, 1, [0, 0, 0], weights, m=0.8, sweeps=25, seed=2)
        s.heat()
        s.v *= 0.3
        s.hold()
        known, start, momentum, spin = equations_of_motion(s, 0.8), s.R.copy(), s.momentum(), s.spin()
        s.step(h, round(0.8 / h), thermostat=False)
        errors.append(np.abs(np.concatenate([s.R[0], s.places()[0]]) - known).max())
        np.testing.assert_allclose(s.momentum(), momentum, atol=1e-13)
        np.testing.assert_allclose(s.spin(), spin, atol=1e-12)
        s.V, s.v = -s.V, -s.v
        s.step(h, round(0.8 / h), thermostat=False)
        np.testing.assert_allclose(s.R, start, atol=1e-11)
        np.testing.assert_allclose(s.weight[0], weights, atol=1e-11)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def over_an_edge(p, **options):
    """Copies of which point 0 has just come over an edge: before, after, and how the normal has turned."""
    s = held.Held(MESH, 40, *spread(MESH, p, seed=3), sweeps=300, **options)
    s.weight[:, 0] = [0.0, 0.4, 0.6]
    s.heat()
    n, V = s.normals(), s.V[s.each[:, None], s.faces[s.face[:, 0]]]
    e = s.corners(0)[:, 2] - s.corners(0)[:, 1]
    out = np.cross(e / np.linalg.norm(e, axis=1)[:, None], n[:, 0])
    across = (out * (s.v[:, 0] - np.einsum("ci,cik->ck", s.weight[:, 0], V))).sum(axis=1)
    before = s.kinetic(), s.momentum(), s.spin()
    way, rest = np.zeros((len(s.R), 3)), np.zeros((len(s.R), 1))
    s._cross(s.each, 0, np.zeros(len(s.R), int), s.corners(0), n[:, 0], way, rest)
    return s, before, across, (n[:, 0] * s.normals()[:, 0]).sum(axis=1)


def test_one_point_goes_over_an_edge_without_loss():
    s, (kinetic, momentum, spin), _, cosine = over_an_edge(1)
    assert cosine.max() < 0.9
    np.testing.assert_allclose(s.kinetic(), kinetic, rtol=1e-13)
    np.testing.assert_allclose(s.momentum(), momentum, atol=1e-13)
    np.testing.assert_allclose(s.spin(), spin, atol=1e-12)
    assert np.abs(s.off()).max() < 1e-12


def test_the_impulse_at_an_edge_costs_what_it_does_to_other_points():
    """It keeps energy, but drives others off the mesh with velocities w; the corrections that follow take wᵀW⁻¹w/2."""
    s, (kinetic, momentum, _), *_ = over_an_edge(12)
    np.testing.assert_allclose(s.kinetic(), kinetic, rtol=1e-13)
    w = s.off()
    lost = 0.5 * (w * np.linalg.solve(s.gram(), w[..., None])[..., 0]).sum(axis=1)
    assert lost.max() > 0.01
    s.hold()
    np.testing.assert_allclose(kinetic - s.kinetic(), lost, atol=1e-12)
    np.testing.assert_allclose(s.momentum(), momentum, atol=1e-13)


def test_velocities_that_are_not_turned_at_edges_are_stopped_there():
    """Of the motion across the edge corrections take the part sin²φ, with the reduced mass of point and edge."""
    s, (kinetic, *_), across, cosine = over_an_edge(1, turned=False)
    s.hold()
    reduced = 1.0 / (1.0 / s.m + (0.4**2 + 0.6**2) / s.M)
    np.testing.assert_allclose(kinetic - s.kinetic(), 0.5 * reduced * across**2 * (1.0 - cosine**2), atol=1e-12)


def density_of_one(m):
    """Mean and standard deviation of Σλ² of a point in a triangle: uniform times √(1 + (m/M) Σλ²), by quadrature."""
    u, w = (0.5 * (x + 1.0) if k == 0 else 0.5 * x for k, x in enumerate(np.polynomial.legendre.leggauss(40)))
    a, b = (x.ravel() for x in np.meshgrid(u, u))
    each = np.outer(w, w).ravel() * (1.0 - a)
    square = a**2 + (b * (1.0 - a)) ** 2 + ((1.0 - b) * (1.0 - a)) ** 2
    each *= np.sqrt(1.0 + m * square)
    mean = (each @ square) / each.sum()
    return mean, np.sqrt((each @ square**2) / each.sum() - mean**2)


@pytest.mark.slow
def test_inertia_across_the_mesh_draws_points_to_corners():
    """A held point on a moving triangle: Σλ² is ½ where it is uniform per area, as the points of BAGOGAB are."""
    copies, m = 4000, 3.0
    start = np.random.default_rng(5).dirichlet([1.0, 1.0, 1.0], (copies, 1))
    s = held.Held(TRIANGLE, copies, [0], start, m=m, stiffness=2.0, rate=0.3, sweeps=2, seed=6)
    s.heat()
    s.step(0.06, 80)
    looks = []
    for _ in range(4):
        s.step(0.06, 40)
        looks.append((s.weight[:, 0] ** 2).sum(axis=1))
    mean, deviation = density_of_one(m)
    check_mean("Σλ²", np.mean(looks, axis=0), mean, sees=mean - 0.5)
    assert np.std(looks) == pytest.approx(deviation, rel=0.1)
