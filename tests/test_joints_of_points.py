"""Constraints on in-triangle points: the laws that hold to round-off. Points move in A and in G, of which neither keeps
constraints alone.

Laws that joints of all kinds have are in test_joints.py, what points sample in tests/physics/test_joints_of_points.py.
"""

import copy

import numpy as np
import pytest
from builders import retraced_across_edges, system_with
from constraint_systems import DISTANCE
from joint_systems import TURNED, Held, bodies_at_points, in_space, turned, whole, within

import medyanpy as mp
from medyanpy.testing import thermal


def on_a_vesicle(word="BAGOGAB", h=0.02, fixed=False, box=None, shift=(0.0, 0.0, 0.0), tolerance=1e-10, **more):
    """A point at a hook, under which its triangle moves, one at a distance from a bead, and two from each other."""
    mesh = mp.TriangleMesh.icosphere(3.0, 2)
    mesh = mp.TriangleMesh(mesh.vertices + shift, mesh.faces)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, 1.0, 0.2, fixed=fixed)
    points = topology.add_intriangle_points(vesicle, 40, mass=0.5, friction=0.3, seed=2)
    x = points.positions - shift
    if not fixed:
        hook = mp.Sites.anchors(points.positions[:1])
        topology.join(points.beads[:1], hook, length=1.0, tolerance=tolerance, name="hook")
    bead = topology.add_beads([1.4 * x[1] + shift], 1.0, 0.5)
    near = 2 + np.argsort(np.linalg.norm(x[2:] - x[5], axis=1))[:2]
    pairs = np.array([[points.beads[1], bead.beads[0]], points.beads[near]])
    ends = topology.start_positions(pairs)
    topology.constrain(DISTANCE, pairs, d=np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1), tolerance=tolerance)
    forces = [mp.forces.HarmonicTrap(bead, 1.0, [shift])]
    if not fixed:
        forces += [mp.forces.MembraneEdgeSprings(vesicle, stiffness=20.0),
                   mp.forces.HarmonicTrap(vesicle, 10.0, mesh.vertices)]  # fmt: skip
    integrator = mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=5, **more)
    context = mp.Context(system_with(topology, *forces, **({} if box is None else {"box": box})), integrator)
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    return context


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(("word", "order"), [
    ("BAGOGAB", 2), ("BGAOAGB", 2), ("BAGAB", 4), ("GABAG", 2), ("OBAGABO", 2), ("B AG O GA B", 2),
])  # fmt: skip
def test_constraints_hold_over_many_edges(word, order, fixed):
    context = on_a_vesicle(word, 0.01, fixed, order=order)
    topology = context.system.topology
    held, joint = Held(topology), topology.joint.points
    crossings, triangles = 0, None
    for _ in range(100):
        context.step(2)
        state = whole(context)
        assert (np.abs(held.gaps(topology, state)) < held.allowed + 1e-14).all()
        now = state.intriangle.triangles[joint - topology.point_handles[0].beads[0]]
        crossings += 0 if triangles is None else (now != triangles).sum()
        triangles = now
    assert crossings > 10
    for rows in held.rows:
        slope = rows.form.at(rows.places(state.positions, np.zeros((topology.n_beads, 4))), rows.own)[1]
        assert np.abs(np.einsum("mkc,mkc->m", slope, in_space(topology, state)[rows.beads])).max() < 1e-12


# One triangle against dense algebra --------------------------------------------------------------------------------


class Dense:
    """A triangle with a point in coordinates R (3, 3), l (2,) and their momenta, by RATTLE round A and G in NumPy:
    nothing of the package, no tangent vectors and no recoil but derivatives of the Hamiltonian by complex steps."""

    def __init__(self, g, masses, m, stiffness, centre):
        self.g, self.M, self.m, self.k, self.centre = g, np.repeat(masses, 3), m, stiffness, centre.ravel()

    @staticmethod
    def edges(R):
        R = R.reshape(3, 3)
        return np.stack([R[1] - R[0], R[2] - R[0]])

    def place(self, q):
        R = q[:9].reshape(3, 3)
        return (1.0 - q[9] - q[10]) * R[0] + q[9] * R[1] + q[10] * R[2]

    def gradient(self, f, q):
        out = []
        for i in range(len(q)):
            moved = q.astype(complex)
            moved[i] += 1e-30j
            out.append(np.imag(f(moved)) / 1e-30)
        return np.array(out).T

    def metric(self, q):
        e = self.edges(q[:9])
        return e @ e.T

    def rates(self, q, p):
        return np.concatenate([p[:9] / self.M, np.linalg.solve(self.metric(q), p[9:]) / self.m])

    def slopes(self, q):
        return self.gradient(lambda z: self.g(self.place(z)), q)

    def inverse_mass(self, q):
        out = np.diag(np.append(1.0 / self.M, [0.0, 0.0]))
        out[9:, 9:] = np.linalg.inv(self.metric(q)) / self.m
        return out

    def A(self, q, p, h):  # noqa: N802 - a letter
        return np.concatenate([q[:9] + h * p[:9] / self.M, q[9:]]), p

    def G(self, q, p, h):  # noqa: N802 - a letter
        rate = np.linalg.solve(self.metric(q), p[9:]) / self.m
        pull = self.gradient(lambda R: 0.5 * p[9:] @ np.linalg.solve(self.metric(R), p[9:]) / self.m, q[:9])
        return np.append(q[:9], q[9:] + h * rate), np.append(p[:9] - h * pull, p[9:])

    def tangent(self, q, p):
        J, W = self.slopes(q), self.inverse_mass(q)
        return p - J.T @ np.linalg.solve(J @ W @ J.T, J @ W @ p)

    def pair(self, q, p, h, letters):
        J, before = self.slopes(q), (q, p)

        def flown(mu):
            z = before[0], before[1] - J.T @ mu / h
            for letter in letters:
                z = letter(*z, h)
            return z

        mu = np.zeros(len(J))
        q, p = flown(mu)
        for _ in range(60):
            if np.abs(self.g(self.place(q))).max() < 1e-15:
                break
            mu = mu + np.linalg.solve(self.slopes(q) @ self.inverse_mass(q) @ J.T, self.g(self.place(q)))
            q, p = flown(mu)
        assert np.abs(self.g(self.place(q))).max() < 1e-13
        return q, self.tangent(q, p)

    def B(self, q, p, h):  # noqa: N802 - a letter
        force = np.append(-self.k * (q[:9] - self.centre), [0.0, 0.0])
        return q, self.tangent(q, p + h * force)

    def step(self, q, p, h, word):
        count = {letter: word.count(letter) for letter in word}
        parts = {"AGA": [(0.5, "AG"), (0.5, "GA")], "GAG": [(0.5, "GA"), (0.5, "AG")]}[word[1:-1]]
        q, p = self.B(q, p, h / count["B"])
        for share, letters in parts:
            q, p = self.pair(q, p, share * h, [getattr(self, letter) for letter in letters])
        return self.B(q, p, h / count["B"])


@pytest.mark.parametrize("word", ["BAGAB", "BGAGB"])
def test_paths_are_those_of_dense_rattle(word):
    R = np.array([[0.0, 0.0, 0.0], [4.0, 0.3, 0.0], [0.7, 3.5, 0.4]])
    masses, m, h = np.array([1.0, 2.0, 0.7]), 1.3, 0.02
    hook, foot = np.array([1.2, 1.0, 1.5]), np.array([0.3, 0.35])
    start = (1.0 - foot.sum()) * R[0] + foot[0] * R[1] + foot[1] * R[2]
    d = np.linalg.norm(start - hook)
    topology = mp.Topology()
    sheet = topology.add_membrane(mp.TriangleMesh(R, [[0, 1, 2]]), masses, 0.0)
    point = topology.add_intriangle_points(sheet, triangles=[0], barycentric=[[1.0 - foot.sum(), *foot]], mass=m)
    topology.constrain("(x - a)^2 + (y - b)^2 + (z - c)^2 - d^2", point, a=hook[0], b=hook[1], c=hook[2], d=d,
                       tolerance=1e-14)  # fmt: skip
    centre = R + [[0.3, 0.0, 0.4], [0.0, 0.2, -0.3], [-0.3, 0.1, 0.0]]
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(sheet, 2.0, centre)),
                         mp.SplittingIntegrator(word, h))  # fmt: skip
    context.set_velocities_to_temperature(kT=0.3, seed=4)
    state = whole(context)
    dense = Dense(lambda x: np.array([((x - hook) ** 2).sum() - d**2]), masses, m, 2.0, centre)
    q = np.append(R.ravel(), foot)
    p = np.append((masses[:, None] * state.velocities[:3]).ravel(), m * dense.edges(q[:9]) @ state.velocities[3])
    np.testing.assert_allclose(dense.tangent(q, p), p, rtol=0, atol=1e-12)
    for _ in range(20):
        context.step(1)
        q, p = dense.step(q, p, h, word)
    after = whole(context)
    np.testing.assert_allclose(after.positions[:3].ravel(), q[:9], rtol=0, atol=1e-11)
    np.testing.assert_allclose(after.positions[3], dense.place(q), rtol=0, atol=1e-11)
    np.testing.assert_allclose(m * dense.edges(q[:9]) @ after.velocities[3], p[9:], rtol=0, atol=1e-10)
    assert np.abs(after.positions - state.positions).max() > 0.1


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("word", ["BAGAB", "BGAGB"])
def test_runs_lead_back_across_edges(word, order):
    retraced_across_edges(on_a_vesicle(word, 0.005, tolerance=1e-13, order=order))


def test_energy_errors_are_of_second_order():
    errors = []
    for h in (0.01, 0.005):
        context, found = on_a_vesicle("BAGAB", h), []
        start = context.get_state(energy=True).total_energy
        for _ in range(16):
            context.step(round(0.02 / h))
            found.append(context.get_state(energy=True).total_energy - start)
        errors.append(np.sqrt(np.mean(np.square(found))))
    assert 3.0 < errors[0] / errors[1] < 5.0, errors


@pytest.mark.parametrize("word", ["BAGAB", "BGAGB"])
def test_momentum_and_angular_momentum_are_kept(word):
    """Of a free vesicle with bodies and beads at its points. In-plane momenta of points belong to weights, which
    neither translations nor rotations change, so they carry none."""
    topology = mp.Topology()
    bodies_at_points(topology, 1e-14)
    context = mp.Context(system_with(topology, mp.forces.MembraneEdgeSprings(topology.membranes[0], stiffness=5.0)),
                         mp.SplittingIntegrator(word, 0.01))  # fmt: skip
    context.set_velocities_to_temperature(kT=0.3, seed=2)
    assert all(handle.kind.keeps_momentum for handle in topology.handles)

    def momenta():
        state, total = whole(context), 0.0
        for handle in topology.handles:
            if len(handle) and handle not in topology.point_handles:
                p = np.broadcast_to(handle.mass, len(handle))[:, None] * state.velocities[handle.beads]
                total = total + np.concatenate([p.sum(axis=0), np.cross(state.positions[handle.beads], p).sum(axis=0)])
        total[3:] += turned(state.orientations, state.angular_momenta).sum(axis=0)
        return total

    start, before = momenta(), whole(context)
    context.step(100)
    np.testing.assert_allclose(momenta(), start, rtol=0, atol=1e-12)
    assert np.abs(whole(context).positions - before.positions).max() > 0.3


def test_multipliers_are_the_forces_that_keep_constraints():
    """Gaps grow as the third power of time along the motion that they give, in the coordinates R and λ."""
    context = on_a_vesicle("BAGAB", 0.01, tolerance=1e-13)
    context.step(7)
    topology, held = context.system.topology, Held(context.system.topology)
    state = whole(context, forces=True, multipliers=True)
    points, vesicle = topology.point_handles[0], topology.membranes[0]
    force = state.forces.copy()
    for handle in topology.handles:
        if isinstance(handle, mp.beads.Constraints):
            for t, rows in enumerate(handle.kind.constraint_rows()):
                x = state.positions[rows.beads]
                pull = state.multipliers[handle.name][:, t, None, None] * rows.form.at(x, rows.own)[1]
                np.subtract.at(force, rows.beads, pull)
    corners = vesicle.beads[state.faces[vesicle.name][state.intriangle.triangles]]
    weights, mass = state.intriangle.barycentric, np.empty(topology.n_beads)
    for handle in topology.handles:
        if len(handle):
            mass[handle.beads] = handle.mass
    R, V, v = state.positions[corners], state.velocities[corners], state.velocities[points.beads]
    A, dA = (np.stack([a[:, 1] - a[:, 0], a[:, 2] - a[:, 0]], axis=2) for a in (R, V))
    inverse = np.linalg.inv(A.transpose(0, 2, 1) @ A)
    rate = np.einsum("pij,pcj,pc->pi", inverse, A, v)
    m = mass[points.beads]
    dG = dA.transpose(0, 2, 1) @ A + A.transpose(0, 2, 1) @ dA
    drive = np.einsum("pci,pc->pi", A, force[points.beads]) / m[:, None] - np.einsum("pij,pj->pi", dG, rate)
    acceleration = np.einsum("pij,pj->pi", inverse, drive)
    rates = np.column_stack([-rate.sum(axis=1), rate])
    bends = np.column_stack([-acceleration.sum(axis=1), acceleration])
    np.add.at(force, corners, weights[:, :, None] * force[points.beads][:, None])
    np.add.at(force, corners, m[:, None, None] * rates[:, :, None] * v[:, None])

    def gaps(t):
        x = state.positions + t * state.velocities + 0.5 * t * t * force / mass[:, None]
        own = weights + t * rates + 0.5 * t * t * bends
        x[points.beads] = np.einsum("pi,pic->pc", own, x[corners])
        return np.concatenate([rows.form.at(x[rows.beads], rows.own)[0] for rows in held.rows])

    h = 1e-4
    assert np.abs((gaps(h) - 2.0 * gaps(0.0) + gaps(-h)) / h**2).max() < 1e-5
    assert max(np.abs(values).max() for values in state.multipliers.values()) > 0.1


@pytest.mark.slow
def test_the_thermostat_has_exactly_the_covariance_of_points_at_joints():
    """kT times the projected inverse of the metric of R and the motion in the plane, over 4000 draws, with frictions
    1:50 and several masses: each free direction has variance kT (seen: 12 %), no two are correlated, the other is
    empty. Without the normal parts of vertices one would differ by 18 %."""
    from scipy import stats

    # So cold that all stays where it is.
    copies, looks, kT = 100, 40, 1.5e-16
    R = np.array([[0.0, 0.0, 0.0], [4.0, 0.3, 0.0], [0.7, 3.5, 0.4]])
    weights = np.array([0.35, 0.3, 0.35])
    hook = np.array([1.2, 1.0, 4.0])
    topology = mp.Topology()
    mesh = mp.TriangleMesh(np.tile(R, (copies, 1)), np.arange(3 * copies).reshape(-1, 3))
    sheet = topology.add_membrane(mesh, np.tile([1.0, 2.0, 0.7], copies), np.tile([0.1, 5.0, 2.0], copies))
    places = {"triangles": np.arange(copies), "barycentric": np.tile(weights, (copies, 1))}
    point = topology.add_intriangle_points(sheet, mass=1.3, friction=0.2, **places)
    d = np.linalg.norm(weights @ R - hook)
    topology.constrain("(x - a)^2 + (y - b)^2 + (z - c)^2 - d^2", point, a=hook[0], b=hook[1], c=hook[2], d=d)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("OBAGABO", 4.0, kT=kT, seed=9))
    context.set_velocities_to_temperature(kT=kT, seed=3)
    edges = R[1:] - R[0]
    n = np.cross(*edges)
    basis = np.stack([edges[0], np.cross(n, edges[0])])
    basis /= np.linalg.norm(basis, axis=1)[:, None]
    v = []
    for _ in range(looks):
        context.step(6)
        own = whole(context).velocities
        v.append(np.column_stack([own[sheet.beads].reshape(copies, 9), own[point.beads] @ basis.T]))
    v, copies = np.concatenate(v), copies * looks
    w = np.append(np.repeat(1.0 / np.array([1.0, 2.0, 0.7]), 3), [1.0 / 1.3] * 2)
    slope = weights @ R - hook
    j = np.append(np.outer(weights, slope).ravel(), basis @ slope)[None]
    wanted = np.diag(w) - (w[:, None] * j.T) @ np.linalg.solve((j * w) @ j.T, j * w)
    values, axes = np.linalg.eigh(wanted * np.sqrt(np.outer(1.0 / w, 1.0 / w)))
    s = v / np.sqrt(w * kT) @ axes
    np.testing.assert_allclose(values, [0.0, *[1.0] * 10], rtol=0, atol=1e-12)
    assert np.abs(s[:, 0]).max() < 1e-4
    s = s[:, 1:]
    p = [2.0 * min(f(np.sum(c**2), copies) for f in (stats.chi2.cdf, stats.chi2.sf)) for c in s.T]
    assert min(p) > 1e-7
    assert np.abs((s.T @ s / copies)[np.triu_indices(10, 1)] * np.sqrt(copies)).max() < 6.0


def test_paths_in_a_box_are_those_without():
    """Of a vesicle across the sides of a box."""
    plain, boxed = on_a_vesicle(), on_a_vesicle(box=(20.0, 20.0, 20.0), shift=(9.9, 0.3, -10.0))
    for context in (plain, boxed):
        context.step(30)
    with pytest.raises(mp.TopologyError, match="constraints hold in-triangle point 162 of 'points', which goes with"):
        boxed.set_box([21.0, 20.0, 20.0])
    off = whole(boxed).positions - whole(plain).positions - [9.9, 0.3, -10.0]
    np.testing.assert_allclose(off - 20.0 * np.rint(off / 20.0), 0.0, atol=1e-8)


def test_edges_flip_where_no_held_points_are():
    context = on_a_vesicle()
    topology = context.system.topology
    vesicle = topology.membranes[0]
    system = system_with(topology, mp.forces.HarmonicTrap(vesicle, 10.0, vesicle.mesh.vertices))
    system.add_jump(mp.jumps.EdgeFlips(vesicle, rate=2.0))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.02, kT=1.0, seed=5))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    held = Held(topology)
    for _ in range(20):
        simulation.step(5)
        state = whole(simulation.context)
        assert (np.abs(held.gaps(topology, state)) < held.allowed + 1e-14).all()
    assert state.counts["EdgeFlips"][1] > 20
    face = state.faces[vesicle.name][state.intriangle.triangles[0]]
    with pytest.raises(mp.TopologyError, match=r"constraints hold in-triangle point 162 .* edges flip where no such"):
        simulation.context.flip_edges(vesicle, [face[:2]])


def test_blocks_are_refused_where_joints_are_lost():
    """Nearly all pairs of A and G lead back where they came from."""
    context = on_a_vesicle("O M(BAGAB) O", 0.03)
    topology, held = context.system.topology, Held(context.system.topology)
    context.step(100)
    state = whole(context)
    assert (np.abs(held.gaps(topology, state)) < held.allowed + 1e-14).all()
    counts = state.blocks[0]
    assert counts.accepted > 60, counts
    assert counts.failed < 5, counts


@pytest.mark.parametrize(("word", "message"), [
    ("GBAOABG", r"has G for 0.01 without A beside it, but Constraints\('hook'"), ("ABGBA", "has A for 0.01 without G"),
    ("BGOAOGB", "has G for 0.01 without A"),
])  # fmt: skip
def test_words_with_a_and_g_apart_are_refused(word, message):
    with pytest.raises(mp.ParameterError, match=message):
        on_a_vesicle(word)


def test_states_and_places_from_outside_fit():
    context = on_a_vesicle(tolerance=1e-12)
    topology, held = context.system.topology, Held(context.system.topology)
    context.step(50)
    there = whole(context)
    context.step(50)
    context.set_state(there)
    after = whole(context)
    np.testing.assert_allclose(after.positions, there.positions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(after.velocities, there.velocities, rtol=0, atol=1e-11)
    assert np.array_equal(after.intriangle.triangles, there.intriangle.triangles)
    weights = there.intriangle.barycentric + 1e-3 * np.random.default_rng(1).uniform(size=(40, 3))
    context.set_intriangle(there.intriangle.triangles, weights / weights.sum(axis=1)[:, None])
    assert np.abs(held.gaps(topology, whole(context)) / held.allowed).max() < 1.0
    x = whole(context).positions + 1e-3 * np.random.default_rng(2).normal(size=(topology.n_beads, 3))
    context.set_positions(x)
    assert np.abs(held.gaps(topology, whole(context)) / held.allowed).max() < 1.0


def test_points_are_joined_in_a_running_simulation_on_meshes_that_rest():
    context = on_a_vesicle(fixed=True)
    system, topology = context.system, context.system.topology
    points = topology.point_handles[0]
    # A topology is edited with one context.
    del context
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAGOGAB", 0.02, kT=1.0, seed=5))
    simulation.step(50)
    x = whole(simulation.context).positions[points.beads]
    with topology.edit():
        made = topology.constrain(DISTANCE, points.beads[[20, 21]], d=np.linalg.norm(x[20] - x[21]))
    held = Held(topology)
    simulation.step(50)
    assert np.abs(held.gaps(topology, whole(simulation.context)) / held.allowed).max() < 1.0
    again = mp.deserialize(mp.serialize(system))
    mp.Context(again, mp.SplittingIntegrator("BAGOGAB", 0.02, kT=1.0, seed=5))
    with topology.edit():
        made.remove(0)
    simulation.step(50)
    assert np.abs(held.gaps(topology, whole(simulation.context)) / held.allowed).max() > 1.0
    context = on_a_vesicle()
    topology = context.system.topology
    with pytest.raises(mp.TopologyError, match="add all constraints before a Context is made"):
        with topology.edit():
            topology.constrain("x - a", topology.point_handles[0].beads[30:31, None], a=0.0)


def test_the_minimiser_keeps_points_at_joints():
    """A body pulls a point of a stretched sheet down: forces balance, and the joint holds."""
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, 1.0)
    points = topology.add_intriangle_points(vesicle, 3, mass=1.0, seed=1)
    body = topology.add_rigid_bodies(points.positions[:1] + [0.0, 0.0, 1.0], [TURNED], 1.0, [0.5, 0.6, 0.7])
    topology.join(points.beads[:1], body.sites(within(TURNED, [[0.0, 0.0, -1.0]])))
    system = system_with(topology, mp.forces.HarmonicTrap(vesicle, 5.0, mesh.vertices),
                         mp.forces.HarmonicTrap(body, 1.0, body.positions + [0.1, 0.05, 0.15]))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAGAB", 0.01))
    before = simulation.context.get_state(energy=True).potential_energy
    assert simulation.minimize_energy(tolerance=1e-3, max_iterations=5000).converged
    assert simulation.context.get_state(energy=True).potential_energy < 0.9 * before
    held = Held(topology)
    assert np.abs(held.gaps(topology, whole(simulation.context)) / held.allowed).max() < 1.0


def test_a_step_that_is_too_long_names_the_constraint():
    context = on_a_vesicle("BAGAB", 0.125)
    topology, held = context.system.topology, Held(context.system.topology)
    with pytest.raises(mp.SimulationError, match=r"of '(hook|constraints)' cannot be kept"):
        context.step(1000)
    assert (np.abs(held.gaps(topology, whole(context))) < held.allowed + 1e-14).all()


def test_degrees_of_freedom_temperatures_and_refusals():
    """Degrees of freedom; the temperature is that of all that is joined; the potential of the metric is refused."""
    context = on_a_vesicle()
    topology = context.system.topology
    assert sum(handle.degrees_of_freedom for handle in topology.handles) == 3 * 162 + 2 * 40 + 3 - 3 - 2
    assert list(context.get_state(energy=True).temperatures) == ["membrane"]
    with pytest.raises(mp.TopologyError, match="in-triangle points"):
        mp.Context(system_with(topology, mp.forces.ConstraintFixmanPotential(topology["hook"], kT=1.0)),
                   mp.SplittingIntegrator("BAGOGAB", 0.01, kT=1.0))  # fmt: skip
    flat = mp.Topology()
    mesh = mp.TriangleMesh([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]], [[0, 1, 2]])
    sheet = flat.add_membrane(mesh, 1.0, fixed=True)
    point = flat.add_intriangle_points(sheet, triangles=[0], barycentric=[[0.4, 0.3, 0.3]], mass=1.0)
    with pytest.raises(mp.TopologyError, match=r"constraint 0 .'z'. .* depends where beads start on itself"):
        flat.constrain("z", point, length=1.0)


def test_joints_of_points_and_bodies_move_as_one_with_heavy_hooks():
    """A point at a distance from a bead a million times as heavy moves as one at a distance from a hook there."""
    paths = []
    for heavy in (False, True):
        mesh = mp.TriangleMesh.icosphere(3.0, 2)
        topology = mp.Topology()
        vesicle = topology.add_membrane(mesh, 1.0)
        points = topology.add_intriangle_points(vesicle, 5, mass=0.5, seed=2)
        hook = 1.3 * points.positions[0]
        if heavy:
            bead = topology.add_beads([hook], 1e9)
            topology.constrain(DISTANCE, [points.beads[0], bead.beads[0]], d=np.linalg.norm(hook - points.positions[0]))
        else:
            topology.constrain("(x-a)^2 + (y-b)^2 + (z-c)^2 - d^2", points.beads[:1], a=hook[0], b=hook[1], c=hook[2],
                               d=np.linalg.norm(hook - points.positions[0]))  # fmt: skip
        context = mp.Context(system_with(topology, mp.forces.HarmonicTrap(vesicle, 10.0, mesh.vertices)),
                             mp.SplittingIntegrator("BAGAB", 0.01))  # fmt: skip
        v = np.random.default_rng(3).normal(size=(topology.n_beads, 3))
        v[len(mesh.vertices) + 5 :] = 0.0
        context.set_velocities(v)
        context.step(50)
        paths.append(whole(context).positions[: len(mesh.vertices) + 5])
    np.testing.assert_allclose(*paths, rtol=0, atol=1e-7)




def test_points_come_and_go_beside_those_at_constraints():
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    topology = mp.Topology()
    vesicle = topology.add_membrane(mesh, 1.0, 0.2)
    points = topology.add_intriangle_points(vesicle, 10, mass=1.0, friction=0.2, seed=3, capacity=14)
    beads = topology.add_beads(1.2 * points.positions[3:5], 1.0, 0.2)
    pairs = np.column_stack([points.beads[3:5], beads.beads])
    tether = topology.constrain(DISTANCE, pairs, d=0.2 * np.linalg.norm(points.positions[3:5], axis=1))
    system = system_with(topology, mp.forces.HarmonicTrap(vesicle, 10.0, mesh.vertices))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAGOGAB", 0.01, kT=1.0, seed=1))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)

    def still_held(left):
        simulation.step(20)
        assert np.abs(Held(topology).gaps(topology, whole(simulation.context)) / tether.tolerance).max() < 1.0
        assert tether.count == left

    still_held(2)
    with topology.edit():
        points.remove(points.beads[:1])
    still_held(2)
    with topology.edit():
        points.add(2, seed=5)
    still_held(2)
    with pytest.raises(mp.TopologyError, match="names a bead that would go"), topology.edit():
        points.remove(points.beads[2:3])
    with topology.edit():
        points.remove(points.beads[2:3], terms="remove")
    still_held(1)


def test_any_number_of_threads_gives_the_same_bits():
    found = []
    system = on_a_vesicle().system
    for threads in (1, 2, 3, 4):
        integrator = mp.SplittingIntegrator("BAGOGAB", 0.02, kT=1.0, seed=5)
        context = mp.Context(copy.deepcopy(system), integrator, threads=threads)
        context.set_velocities_to_temperature(kT=1.0, seed=2)
        context.step(15)
        found.append(whole(context))
    for other in found[1:]:
        assert np.array_equal(other.positions, found[0].positions)
        assert np.array_equal(other.velocities, found[0].velocities)
