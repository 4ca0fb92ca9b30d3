"""EllipsoidRepulsion."""

import itertools
import warnings

import numpy as np
import pytest
from builders import orients, refuses, system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.forces import WCA, EllipsoidRepulsion, SoftSphere
from medyanpy.testing import ForceCase, check_force, thermal

FORMS = ("WCA", "soft")


def look(system, threads=1, energy=True, word="BAB"):
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-3), threads=threads)
    return context.get_state(positions=True, forces=True, energy=energy)


def two(x, q, axes, form="WCA", order=1):
    """State of two bodies at x with orientations q, in topology order or the other way round."""
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(x[::order], q[::order], 1.0, [1.0, 1.0, 1.0])
    system = system_with(topology, EllipsoidRepulsion(bodies, bodies, 3.0, np.asarray(axes)[::order], form=form))
    return look(system)


# The energy once more ------------------------------------------------------------------------------------------


def shapes(axes, q):
    """(n, 3, 3) matrices R a² Rᵀ."""
    R = Rotation.from_quat(np.roll(q, -1, axis=-1)).as_matrix()
    return np.einsum("nij,nj,nkj->nik", R, np.square(axes), R)


def contact(d, A, B):
    """(n,) μ of pairs d apart with the matrices A, B: the largest F(λ) by golden sections."""

    def value(share):
        both = (1.0 - share)[:, None, None] * A + share[:, None, None] * B
        return share * (1.0 - share) * np.sum(d * np.linalg.solve(both, d[..., None])[..., 0], axis=1)

    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high = np.zeros(len(d)), np.ones(len(d))
    for _ in range(48):
        first, second = high - golden * (high - low), low + golden * (high - low)
        left = value(first) > value(second)
        low, high = np.where(left, low, first), np.where(left, second, high)
    return np.sqrt(value(0.5 * (low + high)))


def of_mu(mu, epsilon, form):
    if form == "soft":
        return epsilon * np.maximum(0.0, 1.0 - mu) ** 2
    return np.where(mu < 2.0 ** (1 / 6), 4.0 * epsilon * (mu**-12 - mu**-6) + epsilon, 0.0)


# Forces and torques --------------------------------------------------------------------------------------------


RNG = np.random.default_rng(41)
PLACES = RNG.normal(0.0, 3.4, (12, 3))
AXES_A, AXES_B = RNG.uniform(0.8, 3.0, (9, 3)), np.array([1.3, 0.6, 2.5])
EXCLUDED = [[13, 15], [1, 2], [17, 9]]


def scene(form):
    """Bodies in both groups and in one, balls and points of a membrane; two handles apart."""
    topology = mp.Topology()
    rng = np.random.default_rng(42)
    mesh = mp.TriangleMesh.icosphere(3.0, 0)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    a = topology.add_rigid_bodies(PLACES[:6], orients(rng, 6), 1.0, [1.0, 1.2, 1.5])
    points = topology.add_intriangle_points(membrane, 3, mass=1.0, seed=4)
    b = topology.add_rigid_bodies(PLACES[6:9], orients(rng, 3), 1.0, [1.0, 1.2, 1.5])
    balls = topology.add_balls(PLACES[9:], 1.0, mass=1.0)
    group_a = np.r_[a.beads[::-1], b.beads]
    group_b = np.r_[b.beads, balls.beads, points.beads]
    axes_b = np.vstack([AXES_A[6:], np.tile([[1.4], [1.1], [1.2]], (2, 3))])
    force = EllipsoidRepulsion(group_a, group_b, 2.0, AXES_A, axes_b, form=form, exclusions=EXCLUDED)
    return topology, force, dict(zip([*group_a.tolist(), *group_b.tolist()], [*AXES_A, *axes_b], strict=False))


def many(form):
    topology, force, axes = scene(form)
    # dict keeps the last of those in both groups, which are the same.
    bodies = [b for h in topology.handles if h.kind.name == "rigid bodies" for b in h.beads.tolist()]
    groups = [set(map(int, g)) for g in force._groups]
    excluded = {frozenset(e) for e in EXCLUDED}
    pairs = [
        (i, j)
        for i, j in itertools.combinations(sorted(axes), 2)
        if ((i in groups[0] and j in groups[1]) or (j in groups[0] and i in groups[1]))
        and frozenset((i, j)) not in excluded
    ]
    assert frozenset(EXCLUDED[0]) <= groups[0] | groups[1]
    assert len(pairs) > 60
    end = 2.0 ** (1 / 6) if form == "WCA" else 1.0

    i, j = np.transpose(pairs)
    a = np.array([axes.get(b, np.ones(3)) for b in range(topology.n_beads)])
    turn = np.zeros((topology.n_beads, 4))
    turn[:, 0] = 1.0

    def energy(x, q):
        turn[bodies] = q
        matrices = shapes(a, turn)
        mu = contact(x[j] - x[i], matrices[i], matrices[j])
        assert np.abs(mu - end).min() > 1e-3
        assert (mu < end).sum() > 6
        return np.sum(of_mu(mu, 2.0, form))

    return ForceCase(f"ellipsoids, {form}", lambda: scene(form)[:2], energy, 0.1)


@pytest.mark.parametrize("form", FORMS)
def test_contract(form):
    check_force(many(form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0])
def test_pairs_of_any_shape(form, ratio):
    """Energies, forces and torques of 400 pairs that overlap: of needles and discs, and anything between.

    Angular momentum is kept to the rounding of y = (s A + t B)⁻¹ d, which the torques do not share."""
    rng = np.random.default_rng(int(ratio))
    n = 400
    axes = np.exp(rng.uniform(0.0, np.log(ratio), (2 * n, 3)))
    axes[: n // 2] = [1.0, 1.0, ratio]
    axes[n // 2 : n] = [ratio, 1.0, ratio]
    axes = rng.permutation(axes)
    q = orients(rng, 2 * n)
    matrices = shapes(axes, q)
    d = rng.normal(size=(n, 3))
    wanted = rng.uniform(0.5, 1.1, n)
    d *= (wanted / contact(d, matrices[:n], matrices[n:]))[:, None]
    # Pairs far from each other.
    origin = 100.0 * np.column_stack([np.arange(n), np.zeros(n), np.zeros(n)])
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(np.vstack([origin, origin + d]), q, 1.0, [1.0, 1.0, 1.0])
    system = system_with(topology, EllipsoidRepulsion(bodies, bodies, 3.0, axes, form=form))
    state = look(system)
    x = state.positions
    # The places have lost digits.
    mu = contact(x[n:] - x[:n], matrices[:n], matrices[n:])
    np.testing.assert_allclose(mu, wanted, rtol=1e-10)
    assert state.potential_energy == pytest.approx(np.sum(of_mu(mu, 3.0, form)), rel=1e-11)
    f = state.forces
    np.testing.assert_array_equal(f[:n], -f[n:])
    # mu is homogeneous of degree 1: d . dU/dd = mu dU/dmu.
    slope = (of_mu(mu * (1 + 1e-6), 3.0, form) - of_mu(mu * (1 - 1e-6), 3.0, form)) / 2e-6
    np.testing.assert_allclose(np.sum(d * f[:n], axis=1), slope, rtol=1e-8, atol=1e-6)
    torque = quaternions.turned(state.orientations, state.torques)
    lever = np.cross(x[n:] - x[:n], f[n:])
    size = np.linalg.norm(d, axis=1) * np.linalg.norm(f[:n], axis=1)
    left = np.linalg.norm(lever + torque[:n] + torque[n:], axis=1)
    assert (left <= 1e-14 * ratio**2 * size).all()
    if ratio > 1.0:
        assert (np.linalg.norm(lever, axis=1) > 0.1 * size).sum() > n // 10


@pytest.mark.parametrize("form", FORMS)
def test_spheres(form):
    """As those of WCA and SoftSphere, whichever way they are turned; without torques."""
    rng = np.random.default_rng(2)
    x, q = rng.uniform(0.0, 6.0, (60, 3)), orients(rng, 60)
    states = []
    for ellipsoids in (True, False):
        topology = mp.Topology()
        bodies = topology.add_rigid_bodies(x, q, 1.0, [1.0, 1.0, 1.0])
        system = mp.System(topology)
        if ellipsoids:
            force = EllipsoidRepulsion(bodies, bodies, 1.5, [0.7, 0.7, 0.7], form=form)
        elif form == "WCA":
            force = WCA(bodies, bodies, 1.5, 1.4)
        else:
            force = SoftSphere(bodies, bodies, 2.0 * 1.5 / 1.4**2, 1.4)
        system.add_force(force)
        states.append(look(system))
    assert np.abs(states[0].forces).max() > 1.0
    size = np.abs(states[1].forces).max()
    np.testing.assert_allclose(states[0].forces, states[1].forces, rtol=1e-11, atol=1e-13 * size)
    assert states[0].potential_energy == pytest.approx(states[1].potential_energy, rel=1e-12)
    assert (states[0].torques == 0.0).all()


def test_two_radii():
    d = np.array([1.2, -0.7, 2.1])
    state = two(np.array([0 * d, d]), orients(np.random.default_rng(1), 2), [[1.0] * 3, [2.5] * 3])
    r = np.linalg.norm(d)
    assert state.potential_energy == pytest.approx(of_mu(r / 3.5, 3.0, "WCA"), rel=1e-13)
    slope = 3.0 * (-48.0 * (3.5 / r) ** 12 + 24.0 * (3.5 / r) ** 6) / r
    np.testing.assert_allclose(state.forces, np.array([slope * d / r, -slope * d / r]), rtol=1e-12)
    assert (state.torques == 0.0).all()


@pytest.mark.parametrize("form", FORMS)
def test_either_is_the_first(form):
    rng = np.random.default_rng(3)
    for _ in range(20):
        x, q = rng.normal(size=(2, 3)), orients(rng, 2)
        axes = rng.uniform(0.5, 4.0, (2, 3))
        one, other = (two(x, q, axes, form, order) for order in (1, -1))
        assert one.potential_energy == pytest.approx(other.potential_energy, rel=1e-12)
        np.testing.assert_allclose(one.forces, other.forces[::-1], rtol=1e-9, atol=1e-12 * np.abs(one.forces).max())
        np.testing.assert_allclose(one.torques, other.torques[::-1], rtol=1e-9, atol=1e-11 * np.abs(one.torques).max())


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("size", [1.0, 1.7])
def test_alike_ellipsoids_side_by_side_and_end_to_end(axis, size):
    """They touch at the sum of their semi-axes: the energy is ε there, and the force that of WCA. A cluster turned as a
    whole."""
    axes = np.array([1.0, 2.5, 10.0])
    q = np.tile(orients(np.random.default_rng(4), 1), (2, 1))
    e = quaternions.matrices(q)[0, :, axis]
    sigma = (1.0 + size) * axes[axis]
    state = two(np.array([0.0 * e, sigma * e]), q, [axes, size * axes])
    assert state.potential_energy == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(state.forces[1], 24.0 * 3.0 / sigma * e, rtol=0.0, atol=1e-11)
    assert np.abs(state.torques).max() < 1e-10


def test_an_end_against_a_side():
    """A T: the long axis of one on the short one of the other."""
    q = np.array([[1.0, 0, 0, 0], [np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0]])
    state = two(np.array([[0.0, 0, 0], [6.0, 0, 0]]), q, [[1.0, 1.0, 5.0], [1.0, 1.0, 5.0]])
    assert state.potential_energy == pytest.approx(3.0, rel=1e-13)


@pytest.mark.parametrize("ratio", [3.0, 10.0, 100.0])
def test_touching_anywhere(ratio):
    """Two that share a point and the tangent plane there have the energy ε, and repel along the normal."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        axes, q = np.exp(rng.uniform(0.0, np.log(ratio), (2, 3))), orients(rng, 2)
        A, B = shapes(axes, q)
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        # Where the tangent plane has that normal: the support point.
        d = A @ normal / np.sqrt(normal @ A @ normal) + B @ normal / np.sqrt(normal @ B @ normal)
        state = two(np.array([0.0 * d, d]), q, axes)
        assert state.potential_energy == pytest.approx(3.0, rel=1e-13 * ratio**2)
        f = state.forces[1]
        np.testing.assert_allclose(f / np.linalg.norm(f), normal, rtol=0.0, atol=1e-14 * ratio**2)
        assert f @ d == pytest.approx(24.0 * 3.0, rel=1e-12 * ratio**2)


def test_range():
    """Just before the end there is a small energy, just beyond it none at all."""
    axes, q = [[1.0, 1.0, 4.0]] * 2, np.array([[1.0, 0, 0, 0]] * 2)
    for form, end in (("WCA", 2.0 ** (1 / 6)), ("soft", 1.0)):
        for sigma, e in ((2.0, [1.0, 0, 0]), (8.0, [0, 0, 1.0])):
            inside, outside = (two(np.outer([0.0, end * sigma * c], e), q, axes, form) for c in (1 - 1e-6, 1 + 1e-6))
            assert 0.0 < inside.potential_energy < 1e-9
            assert outside.potential_energy == 0.0
            assert (outside.forces == 0.0).all()


def test_same_centre():
    x, q = np.zeros((2, 3)), orients(np.random.default_rng(6), 2)
    state = two(x, q, [[1.0, 2.0, 3.0]] * 2, "soft")
    assert state.potential_energy == 3.0
    assert (state.forces == 0.0).all()
    assert (state.torques == 0.0).all()
    # A little apart, nothing is singular.
    x[1] = [1e-9, 2e-9, -1e-9]
    state = two(x, q, [[1.0, 2.0, 3.0]] * 2, "soft")
    assert state.potential_energy == pytest.approx(3.0, rel=1e-8)
    assert 1.0 < np.linalg.norm(state.forces[0]) < 6.0
    assert np.abs(state.torques).max() < 1e-7
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(np.zeros((2, 3)), q, 1.0, [1.0, 1.0, 1.0])
    context = mp.Context(system_with(topology, EllipsoidRepulsion(bodies, bodies, 1.0, [1.0, 2.0, 3.0])),
                         mp.VerletIntegrator(0.01))  # fmt: skip
    refuses(mp.SimulationError, "bead", context.step, 1)


# Runs ----------------------------------------------------------------------------------------------------------


AXES = np.array([0.5, 0.8, 1.6])


def fluid(n, h, word="BAB", threads=1, skin=None, form="WCA"):
    """A drop of ellipsoids in a trap, put on a lattice on which they overlap, and minimised."""
    rng = np.random.default_rng(8)
    side = int(np.ceil(n ** (1 / 3)))
    x = np.stack(np.unravel_index(rng.permutation(side**3)[:n], (side,) * 3), 1) * 1.7
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1.0, friction=1.0)
    inertia = 0.2 * (np.sum(AXES**2) - AXES**2)
    bodies = topology.add_rigid_bodies(x - x.mean(axis=0), orients(rng, n), 1.0, inertia, (1.0, 1.0))
    system = system_with(topology, EllipsoidRepulsion(bodies, bodies, 1.0, AXES, form=form, skin=skin),
                         mp.forces.HarmonicTrap(bodies, 1.0, [0.0, 0.0, 0.0]))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator(word, h, kT=thermal(word, 1.0), seed=4), threads=threads)
    with warnings.catch_warnings():
        # A start is all that is wanted; of a thousand bodies some still overlap after 50 iterations.
        warnings.filterwarnings("ignore", ".* max_iterations = 50 were not enough", mp.ConvergenceWarning)
        simulation.minimize_energy(tolerance=20.0, max_iterations=50)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=5)
    return simulation


def snapshot(simulation):
    return simulation.context.get_state(positions=True, velocities=True, forces=True, energy=True)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_energy_of_a_fluid_is_of_second_order(form):
    errors = []
    for h in (4e-3, 2e-3, 1e-3):
        simulation = fluid(64, h, form=form)
        start, worst = snapshot(simulation), 0.0
        for _ in range(round(0.4 / h)):
            simulation.step(1)
            end = snapshot(simulation)
            worst = max(worst, abs(end.total_energy - start.total_energy))
        errors.append(worst)
    # They do meet and turn each other.
    assert np.abs(end.angular_momenta - start.angular_momenta).max() > 0.3
    assert np.abs(end.potential_energy - start.potential_energy) > 1.0
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)


PARTS = ("positions", "velocities", "orientations", "angular_momenta", "forces", "torques")


def test_checkpoints_and_documents(tmp_path):
    simulation = fluid(100, 0.004, "BAOAB")
    force = simulation.system.forces[0]
    force.set(semi_axes=RNG.uniform(0.4, 1.2, (100, 3)), epsilon=2.0)
    simulation.step(10)
    simulation.save_checkpoint(tmp_path / "a.checkpoint")
    simulation.step(10)
    end = snapshot(simulation)
    again = mp.Simulation(*mp.deserialize(mp.serialize(simulation)), threads=2)
    again.load_checkpoint(tmp_path / "a.checkpoint")
    again.step(10)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(snapshot(again), part), getattr(end, part))
    other = again.system.forces[0]
    assert other.form == force.form
    np.testing.assert_array_equal(other.parameters["semi_axes"], force.parameters["semi_axes"])


def test_numbers_set_during_a_run():
    """Axes can be set alone where both groups are the same; other numbers: the contract."""
    simulation = fluid(30, 0.004)
    force, before = simulation.system.forces[0], snapshot(simulation)
    force.set(epsilon=2.0)
    np.testing.assert_allclose(snapshot(simulation).torques, 2.0 * before.torques, rtol=1e-12)
    force.set(semi_axes=1e-3 * AXES)
    assert (snapshot(simulation).torques == 0.0).all()


def test_on_points():
    """Spheres at in-triangle points push the membrane; forces on ellipsoids alone ask for no pass of the points."""
    topology, force, _ = scene("soft")
    system = system_with(topology, force)
    bodies = topology.handles[1]
    system.add_force(EllipsoidRepulsion(bodies, bodies, 1.0, AXES, name="alone"))
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 1e-3))
    assert context._schedule.bound_forces["EllipsoidRepulsion"].acts_on_points
    assert not context._schedule.bound_forces["alone"].acts_on_points


# What is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "options", "error", "message"), [
    ((1.0, AXES), {"form": "hard"}, mp.ParameterError, "form = 'hard' but must be 'WCA' or 'soft'"),
    ((1.0, AXES, 2 * AXES), {}, mp.ParameterError,
     r"bead 2 is in both groups, with the semi-axes \[0.5, 0.8, 1.6\] and \[1.0, 1.6, 3.2\]"),
    ((1.0, AXES), {"exclusions": [[0, 99]]}, mp.TopologyError, r"exclusions\[0\] names beads \[0, 99\]"),
])  # fmt: skip
def test_refusals(arguments, options, error, message):
    topology = mp.Topology()
    topology.add_beads([[9.0, 0, 0]] * 2, mass=1.0)
    bodies = topology.add_rigid_bodies(np.zeros((4, 3)), orients(RNG, 4), 1.0, [1.0, 1.0, 1.0])
    with pytest.raises(error, match=message):
        mp.System(topology).add_force(EllipsoidRepulsion(bodies, bodies, *arguments,
                                                         **options)).bind(mp.core.layout.Layout(topology))  # fmt: skip


def test_refusals_of_groups():
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(np.zeros((2, 3)), orients(RNG, 2), 1.0, [1.0, 1.0, 1.0])
    balls = topology.add_balls([[9.0, 0, 0]], radius=1.0, mass=1.0)
    with pytest.raises(mp.TopologyError, match="groups must be handles or bead numbers: sites have no orientation"):
        EllipsoidRepulsion(bodies, bodies.sites([AXES]), 1.0, AXES)
    with pytest.raises(mp.ParameterError, match="give semi_axes_b=, because semi_axes has 2 rows and group_b has 1"):
        EllipsoidRepulsion(bodies, balls, 1.0, np.ones((2, 3)))
    system = system_with(topology, EllipsoidRepulsion(bodies, [balls, bodies], 1.0, AXES))
    with pytest.raises(mp.ParameterError, match=r"bead 2 of .* does not turn: its semi-axes must be equal, not \[0.5"):
        mp.Context(system, mp.VerletIntegrator(0.01))
