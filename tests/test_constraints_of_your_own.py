"""Constraints of a user's own: the laws that hold to round-off, and what is solved together.

What they sample is in tests/physics/test_constraints_of_your_own.py, what is refused in test_refused_constraints.py.
"""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses, retraced, system_with
from constraint_systems import (
    ANGLE,
    DISTANCE,
    chain_on_a_surface,
    columns_of_a_rotation,
    every_system,
    linkage,
    look,
    made,
    masses,
    rattle,
    slopes,
)

import medyanpy as mp
from medyanpy.core.flows import Stage

# Laws ------------------------------------------------------------------------------------------------------------


@every_system
def test_paths_are_those_of_dense_shake_and_rattle(build):
    context, g, force, fixed = made(build)
    x, v = look(context)
    wanted = rattle(g, force, x, v, masses(context), 0.02, 50, fixed)
    context.step(50)
    found = look(context)
    assert np.abs(found[0] - x).max() > 0.3
    np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=2e-11)
    np.testing.assert_allclose(found[1], wanted[1], rtol=0, atol=2e-11)


@every_system
@pytest.mark.parametrize("word", ["BAOAB", "BAGAB", "OBABO"])
def test_constraints_hold_and_velocities_are_tangent_at_every_step(build, word):
    context, g, _, _ = made(build, word, tolerance=1e-10)
    for _ in range(200):
        context.step(1)
        x, v = look(context)
        slope = slopes(g, x)
        size = np.sqrt(np.sum(slope**2, axis=(1, 2)))
        # Nothing here is longer than 3 nm; |g| over its gradient is the distance to where it holds.
        assert np.abs(g(x) / size).max() < 3e-10
        assert np.abs(np.einsum("rij,ij->r", slope, v) / size).max() < 1e-13 * np.abs(v).max()


@every_system
def test_words_without_thermostat_run_backwards(build):
    retraced(made(build, "BAGAB")[0], 100, atol=1e-10, least=0.3)


def energy_error(build, h, order):
    context, _, _, _ = made(build, "BAB", h, order=order)
    start = context.get_state(energy=True)
    errors = []
    for _ in range(20):
        context.step(round(0.1 / h))
        state = context.get_state(energy=True)
        errors.append(state.total_energy - start.total_energy)
    return np.abs(errors).max()


@every_system
@pytest.mark.parametrize(("order", "h"), [(2, 0.01), (4, 0.02)])
def test_energy_errors_fall_with_the_order_of_the_word(build, order, h):
    coarse, fine = energy_error(build, h, order), energy_error(build, h / 2.0, order)
    assert 0.75 * 2.0**order < coarse / fine < 1.5 * 2.0**order


def test_momenta_are_kept_where_texts_do_not_change():
    """Three distances and an angle between five beads: what only moves and turns keeps P and L."""
    topology = mp.Topology()
    x = np.random.default_rng(8).normal(size=(5, 3))
    mass = np.array([1.0, 2.0, 3.0, 0.5, 1.5])
    beads = topology.add_beads(x, mass)
    pairs = [[0, 1], [1, 2], [2, 3]]
    d = np.linalg.norm(x[[0, 1, 2]] - x[[1, 2, 3]], axis=1)
    topology.constrain(DISTANCE, pairs, d=d, tolerance=1e-14)
    assert topology["constraints"].kind.keeps_momentum
    topology.constrain("((x1-x2)*(x3-x4) + (y1-y2)*(y3-y4) + (z1-z2)*(z3-z4))*exp(-(x5-x1)^2-(y5-y1)^2-(z5-z1)^2) - c",
                       beads.beads, length=1.0, tolerance=1e-14,
                       c=((x[0] - x[1]) @ (x[2] - x[3])) * np.exp(-np.sum((x[4] - x[0]) ** 2)))  # fmt: skip
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.01))
    context.set_velocities_to_temperature(kT=1.0, seed=1)

    def momenta():
        x, v = look(context)
        return np.concatenate([mass @ v, (mass[:, None] * np.cross(x, v)).sum(axis=0)])

    start = momenta()
    context.step(300)
    np.testing.assert_allclose(momenta(), start, rtol=0, atol=1e-12)
    assert np.abs(look(context)[0] - x).max() > 1.0
    # 15 coordinates, 4 constraints, and 3 for the momentum, which nothing changes.
    state = context.get_state(energy=True)
    v, total = look(context)[1], mass.sum()
    inner = state.kinetic_energy - 0.5 * np.sum((mass @ v) ** 2) / total
    assert state.temperature == pytest.approx(2.0 * inner / (8 * mp.units.boltzmann), rel=1e-12)


def test_the_thermostat_has_exactly_the_covariance_of_constrained_beads():
    """kT M⁻¹ projected, over 4000 draws, with frictions 1:50 and several masses: in the metric of the masses the seven
    free directions have variance kT each (seen: 12 %), no two are correlated, and the two others are empty."""
    from scipy import stats

    # So cold that beads stay where they are, to 1e-7.
    copies, h, kT = 4000, 0.8, 1.5e-14
    topology = mp.Topology()
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.3, 1.2, 0.0]])
    mass, friction = np.array([1.0, 2.0, 0.5]), np.array([0.1, 5.0, 1.0])
    beads = topology.add_beads(np.tile(x, (copies, 1)), np.tile(mass, copies), np.tile(friction, copies))
    n = beads.beads.reshape(-1, 3)
    topology.constrain(DISTANCE, n[:, :2], d=1.0)
    topology.constrain(ANGLE, n, c=float((x[0] - x[1]) @ (x[2] - x[1])))
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("OBABO", h, kT=kT, seed=9))
    context.set_velocities_to_temperature(kT=kT, seed=3)
    context.step(10)
    v = look(context)[1].reshape(copies, 9)

    def g(x):
        return np.array([np.sum((x[0] - x[1]) ** 2), (x[0] - x[1]) @ (x[2] - x[1])])

    j, w = slopes(g, x).reshape(2, 9), np.repeat(1.0 / mass, 3)
    wanted = kT * (np.diag(w) - (w[:, None] * j.T) @ np.linalg.solve((j * w) @ j.T, j * w))
    values, axes = np.linalg.eigh(wanted / kT * np.sqrt(np.outer(1.0 / w, 1.0 / w)))
    mixed = v / np.sqrt(w) @ axes
    np.testing.assert_allclose(values, [0, 0, 1, 1, 1, 1, 1, 1, 1], rtol=0, atol=1e-12)
    assert np.abs(mixed[:, :2]).max() < 1e-4 * np.sqrt(kT)
    # Each of the seven free directions has variance kT, and no two are correlated.
    s = mixed[:, 2:] / np.sqrt(kT)
    p = [2.0 * min(f(np.sum(c**2), copies) for f in (stats.chi2.cdf, stats.chi2.sf)) for c in s.T]
    assert min(p) > 1e-7
    correlation = (s.T @ s / copies)[np.triu_indices(7, 1)] * np.sqrt(copies)
    assert np.abs(correlation).max() < 6.0


@pytest.mark.parametrize("fluid", [False, True])
def test_the_normal_part_is_drawn_where_the_fluid_mixes_beads(fluid):
    """With one friction for all, O leaves normal parts to themselves, and they are left out; not through a fluid."""
    topology = mp.Topology()
    balls = topology.add_balls([[0.0, 0, 0], [3.0, 0, 0], [0.0, 4.0, 0]], 1.0, 1.0, 0.5)
    made = topology.constrain(DISTANCE, balls.beads[:2], d=3.0)
    system = mp.System(topology)
    if fluid:
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(0.5 / (6.0 * np.pi), balls))
    context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=1))
    flow = context._schedule.flows[made]
    assert len(flow.before_o(Stage(2, "O", 0.01, 1.0))) == fluid
    context.step(20)
    x = look(context)[0]
    assert np.linalg.norm(x[0] - x[1]) == pytest.approx(3.0, rel=1e-10)


# What is solved together -----------------------------------------------------------------------------------------


def crowd(constrained):
    """Filaments of several lengths and beads on a sphere; some of them tied."""
    topology = mp.Topology()
    rng = np.random.default_rng(2)
    nodes = [np.cumsum(rng.normal(0.0, 0.4, (k, 3)) + [1.0, 0.0, 0.0], axis=0) + 5.0 * i for i, k in
             enumerate([4, 9, 2, 7, 5, 3, 12, 4, 6])]  # fmt: skip
    chains = topology.add_filaments(nodes, 1.0, 0.5)
    sphere = mp.surfaces.Sphere(6.0)
    walkers = topology.add_surface_points(sphere, sphere.sample(40, seed=1), 1.0, 0.5)
    free = topology.add_beads(rng.normal(size=(6, 3)), 1.0, 0.5)
    if constrained:
        start = topology.start_positions(np.arange(topology.n_beads))
        ends = np.array([[chains.beads[chains.starts[1]], walkers.beads[17]], [free.beads[2], walkers.beads[3]]])
        topology.constrain(DISTANCE, ends, d=np.linalg.norm(start[ends[:, 0]] - start[ends[:, 1]], axis=1))
    context = mp.Context(system_with(topology, mp.forces.HarmonicTrap([chains, walkers, free], 0.3, [0.0, 0.0, 0.0])),
                         mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=1))  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=2)
    context.step(50)
    return look(context), chains, walkers, free


def test_unconnected_beads_keep_their_bits():
    plain, chains, walkers, free = crowd(False)
    tied, *_ = crowd(True)
    held = np.zeros(len(plain[0]), bool)
    held[chains.beads[chains.starts[1] : chains.starts[2]]] = True
    held[[walkers.beads[17], walkers.beads[3], free.beads[2]]] = True
    for a, b in zip(plain, tied, strict=True):
        assert (a[~held] == b[~held]).all()
        assert (a[held] != b[held]).any(axis=1).all()


def test_temperatures_are_of_what_is_joined():
    context, _, _, _ = made(chain_on_a_surface, "BAOAB")
    context.step(3)
    state = context.get_state(energy=True)
    topology = context.system.topology
    # 18 coordinates; 2 surfaces, 3 links, 2 texts.
    assert sum(h.degrees_of_freedom for h in topology.handles) == 18 - 7
    assert list(state.temperatures) == ["surface points"]
    assert state.temperatures["surface points"] == state.temperature


@every_system
def test_multipliers_are_the_forces_that_keep_constraints(build):
    """d²g/dt² = 0 with them, for an independent g; on what is not joined they are what they were."""
    context, g, _, _ = made(build)
    context.step(5)
    state = context.get_state(positions=True, velocities=True, forces=True, multipliers=True)
    x, v, topology = state.positions, state.velocities, context.system.topology
    total = state.forces.copy()
    for handle in topology.handles:
        if isinstance(handle, mp.beads.Constraints):
            found = state.multipliers[handle.name]
            assert found.shape == (len(handle.members), len(handle.texts))
            # Texts of single beads and of pairs, by differences of their own programs.
            for t, rows in enumerate(handle.kind.constraint_rows()):
                slope = rows.form.at(x[rows.beads], rows.own)[1]
                np.add.at(total, rows.beads, -found[:, t, None, None] * slope)
        elif handle.name in state.multipliers and handle.kind.name == "filament nodes":
            d = np.diff(x[handle.beads], axis=0)
            found = state.multipliers[handle.name].reshape(len(d), -1)
            pull = 2.0 * found[:, :1] * d
            if handle.directors is not None:
                turn = handle.directors.beads
                total[turn] -= found[:, 1:2] * d + found[:, 2:] * x[turn]
                pull += found[:, 1:2] * x[turn]
            np.add.at(total, handle.beads[1:], -pull)
            np.add.at(total, handle.beads[:-1], pull)
        elif handle.name in state.multipliers:
            n = handle.surface.gradient(x[handle.beads])
            total[handle.beads] -= state.multipliers[handle.name][:, None] * n
    w = np.where(np.isin(np.arange(len(x)), made(build)[3]), 0.0, 1.0 / masses(context))
    a = total * w[:, None]
    # Along x + v t + a t²/2: the second derivative of g at t = 0, by differences.
    h = 1e-4
    ahead, here, behind = (g(x + s * v + 0.5 * s * s * a) for s in (h, 0.0, -h))
    assert np.abs((ahead - 2.0 * here + behind) / h**2).max() < 1e-6
    assert max(np.abs(values).max() for values in state.multipliers.values()) > 0.1


# Documents, copies, edits ----------------------------------------------------------------------------------------


@every_system
def test_documents_copies_and_checkpoints_resume_with_the_same_bits(build, tmp_path):
    topology = mp.Topology()
    build(topology, 1e-10)
    system = mp.System(topology)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=5))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    simulation.step(20)
    simulation.save_checkpoint(tmp_path / "run.chk")
    simulation.step(20)
    wanted = look(simulation.context)
    # Also back in the same memory, which has gradients of where beads have been since.
    simulation.load_checkpoint(tmp_path / "run.chk")
    simulation.step(20)
    for a, b in zip(look(simulation.context), wanted, strict=True):
        assert (a == b).all()
    document = mp.serialize(system)
    for again in (copy.deepcopy(system), pickle.loads(pickle.dumps(system)), mp.deserialize(document)):
        assert mp.serialize(again) == document
        other = mp.Simulation(again, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=5))
        other.load_checkpoint(tmp_path / "run.chk")
        other.step(20)
        for a, b in zip(look(other.context), wanted, strict=True):
            assert (a == b).all()


def test_beads_that_a_constraint_names_go_with_it_or_not_at_all():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0], [5.0, 0, 0], [6.0, 0, 0], [9.0, 0, 0]], 1.0, 1.0)
    sticks = topology.constrain(DISTANCE, [[0, 1], [2, 3]], d=[1.0, 1.0])
    system = mp.System(topology)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=5))
    simulation.step(5)
    with pytest.raises(mp.TopologyError, match=r"constraint 0 of Constraints.* names a bead that would go"):
        with topology.edit():
            beads.remove(0)
    before = look(simulation.context)[0]
    with topology.edit():
        beads.remove([0, 4], terms="remove")
    assert sticks.members.tolist() == [[2, 3]]
    assert sticks.length.shape == (1,)
    after = look(simulation.context)[0]
    assert (after[[1, 2, 3]] == before[[1, 2, 3]]).all()
    simulation.step(50)
    x = look(simulation.context)[0]
    assert np.linalg.norm(x[2] - x[3]) == pytest.approx(1.0, rel=1e-10)
    # Rows are others now than those in which beads are added: documents say which.
    again = mp.deserialize(mp.serialize(system))
    assert again.topology["constraints"].members.tolist() == [[2, 3]]
    with topology.edit():
        sticks.remove(0)
    simulation.step(50)
    x = look(simulation.context)[0]
    assert abs(np.linalg.norm(x[2] - x[3]) - 1.0) > 0.01
    assert sticks.count == sticks.degrees_of_freedom == 0
    refuses(mp.TopologyError, "in use by a Context", topology.constrain, DISTANCE, [[1, 2]], d=4.0)


def test_the_minimiser_stays_on_constraints():
    topology = mp.Topology()
    g, _ = columns_of_a_rotation(topology, 1e-10)
    system = mp.System(topology)
    pull = system.add_force(mp.forces.UniformField([2, 3], [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]]))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    assert simulation.minimize_energy(tolerance=1e-6).converged
    x = look(simulation.context)[0]
    assert np.abs(g(x)).max() < 1e-9
    # The third column and the tail, at the end of the first, are as high as they can be together: cos a + 2 (sin a).
    assert -pull_energy(simulation, pull) == pytest.approx(np.sqrt(5.0) + 1.0, abs=1e-6)


def pull_energy(simulation, pull):
    return simulation.context.get_state(energy=True).energies[pull.name]


def test_trajectories_and_reports(tmp_path):
    topology = mp.Topology()
    linkage(topology, 1e-10)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.01))
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=1)
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    with open(tmp_path / "run.txt", "w") as out:
        simulation.reporters.append(mp.reporters.StateDataReporter(out, 2, step=True, temperatures=True))
        simulation.step(6)
        simulation.close()
    lines = (tmp_path / "run.txt").read_text().splitlines()
    assert [name in lines[0] for name in ("of crank", "of rocker", "of coupler")] == [True, False, False]
    assert [row.name for row in simulation.check().beads] == ["crank", "rocker"]
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert (trajectory[-1].positions == look(simulation.context)[0]).all()


# The sources' own systems, written this way -----------------------------------------------------------------------


def test_rigid_water_written_as_distances_has_the_path_of_rings():
    """TIP3P molecules by texts of their three sides, against the rings of constrained filaments."""
    water = mp.presets.tip3p()
    rng = np.random.default_rng(5)
    given = water.arguments(0.35 * np.indices((2, 2, 2)).reshape(3, -1).T + rng.normal(0.0, 0.02, (8, 3)), seed=3)
    kT = mp.units.boltzmann * 300.0

    def run(written):
        topology = mp.Topology()
        if written:
            atoms = topology.add_beads(np.concatenate(list(given["nodes"])) if isinstance(given["nodes"], list)
                                       else given["nodes"], given["node_mass"])  # fmt: skip
            triples = atoms.beads.reshape(-1, 3)
            pairs = np.stack([triples, np.roll(triples, -1, axis=1)], axis=-1).reshape(-1, 2)
            topology.constrain(DISTANCE, pairs, d=np.tile(water.lengths, 8), tolerance=1e-14)
        else:
            atoms = topology.add_filaments(**given | {"tolerance": 1e-14})
        triples = atoms.beads.reshape(-1, 3)
        within = np.stack([triples, np.roll(triples, -1, axis=1)], axis=-1).reshape(-1, 2)
        system = mp.System(topology)
        system.add_force(mp.forces.Coulomb(atoms, np.tile(water.charges, 8), mp.units.coulomb_constant,
                                           exclusions=within))  # fmt: skip
        system.add_force(mp.forces.LennardJones(triples[:, 1], triples[:, 1], water.epsilon, water.sigma))
        context = mp.Context(system, mp.VerletIntegrator(1e-15))
        context.set_velocities_to_temperature(kT=kT, seed=4)
        start = look(context)[0]
        context.step(200)
        assert np.abs(look(context)[0] - start).max() > 0.05
        return look(context)

    one, other = run(True), run(False)
    np.testing.assert_allclose(one[0], other[0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(one[1], other[1], rtol=0, atol=1e-10 * np.abs(one[1]).max())


def test_a_double_pendulum_has_the_path_of_its_angles():
    """Two bobs under gravity, by texts, against the equations of motion of the two angles at 12 digits."""
    from scipy.integrate import solve_ivp

    m, length, gravity = np.array([1.0, 2.0]), np.array([1.0, 0.7]), 9.81

    def rate(_, y):
        (a, b), (p, q) = y[:2], y[2:]
        c, s = np.cos(a - b), np.sin(a - b)
        matrix = np.array([[m.sum() * length[0], m[1] * length[1] * c], [length[0] * c, length[1]]])
        right = np.array([
            -m[1] * length[1] * q * q * s - m.sum() * gravity * np.sin(a), length[0] * p * p * s - gravity * np.sin(b)
        ])  # fmt: skip
        return np.concatenate([y[2:], np.linalg.solve(matrix, right)])

    def places(y):
        steps = length[:, None] * np.column_stack([np.sin(y[:2]), np.zeros(2), -np.cos(y[:2])])
        return np.cumsum(steps, axis=0)

    start, time = np.array([1.0, -0.5, 0.0, 0.0]), 1.0
    exact = places(solve_ivp(rate, (0.0, time), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1])
    errors = []
    for steps in (500, 1000):
        topology = mp.Topology()
        bobs = topology.add_beads(places(start), m)
        topology.constrain("x^2 + y^2 + z^2 - a*a", bobs.beads[:1], a=length[0])
        topology.constrain([DISTANCE, "y1 + y2"], bobs.beads, d=length[1])
        system = system_with(topology, mp.forces.UniformField(bobs, -gravity * m[:, None] * [0.0, 0.0, 1.0]))
        context = mp.Context(system, mp.VerletIntegrator(time / steps))
        context.step(steps)
        errors.append(np.abs(look(context)[0] - exact).max())
    assert errors[1] < 5e-5
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_a_magnetised_body_as_a_matrix_of_beads_has_the_path_of_eulers_equations():
    """Figure 9 of Tao and Owhadi: QᵀQ = 1 by six texts, V = μB Q33, against Euler's equations at 12 digits."""
    from scipy.integrate import solve_ivp

    omega, e3 = np.array([1.0, 0.2, 0.1]), np.array([0.0, 0.0, 1.0])

    def hat(w):
        return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])

    def rate(_, y):
        r, w = y[:9].reshape(3, 3), y[9:]
        return np.concatenate([(r @ hat(w)).ravel(), np.cross(r.T @ e3, e3)])

    time = 4.0
    start = np.concatenate([np.eye(3).ravel(), omega])
    exact = solve_ivp(rate, (0.0, time), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:9, -1].reshape(3, 3)
    errors = []
    for steps in (400, 800):
        topology = mp.Topology()
        columns = topology.add_beads(np.eye(3), 0.5)
        texts = [f"x{i}*x{j} + y{i}*y{j} + z{i}*z{j}" + " - 1" * (i == j) for i in (1, 2, 3) for j in range(i, 4)]
        topology.constrain(texts, columns.beads)
        context = mp.Context(system_with(topology, mp.forces.UniformField(columns.beads[2:], [0.0, 0.0, -1.0])),
                             mp.VerletIntegrator(time / steps))  # fmt: skip
        context.set_velocities(hat(omega).T)
        context.step(steps)
        errors.append(np.abs(look(context)[0].T - exact).max())
    assert errors[1] < 5e-5
    assert 3.8 < errors[0] / errors[1] < 4.2


# Penalties -------------------------------------------------------------------------------------------------------


def test_the_penalty_tends_to_the_constraint_as_the_inverse_square_of_omega():
    """From rest, on a text of three beads with a parameter: lengths and paths are off by O(ω⁻²)."""
    x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.2, 1.1, 0.0]])
    text = "(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 + a*sin(x3-x1) - c"
    c = 1.0 + 0.5 * np.sin(1.2)

    def run(omega):
        topology = mp.Topology()
        beads = topology.add_beads(x, [1.0, 2.0, 1.0])
        if omega is None:
            topology.constrain(text, beads.beads, a=0.5, c=c)
        system = system_with(topology, mp.forces.HarmonicTrap(beads, [0.5, 1.0, 1.5], [0.3, 1.0, 0.2]))
        if omega is not None:
            system.add_force(mp.forces.ConstraintPenalty(text, beads.beads, omega, a=0.5, c=c))
        context = mp.Context(system, mp.VerletIntegrator(2e-4))
        path = []
        for _ in range(20):
            context.step(250)
            path.append(look(context)[0])
        return np.array(path)

    exact = run(None)
    off = [np.abs(run(omega) - exact).max() for omega in (10.0, 20.0, 40.0)]
    assert 1e-4 < off[0] < 1e-2
    assert 3.2 < off[0] / off[1] < 4.8
    assert 3.2 < off[1] / off[2] < 4.8


def test_penalties_of_the_package_written_as_texts_are_the_same():
    x = np.random.default_rng(3).normal(size=(6, 3))

    def run(*forces):
        topology = mp.Topology()
        topology.add_beads(x, 1.0)
        context = mp.Context(system_with(topology, *forces), mp.VerletIntegrator(1e-3))
        state = context.get_state(forces=True, energy=True, positions=True)
        a = np.random.default_rng(5).normal(size=x.shape)
        return (state.potential_energy, state.forces, context.hessian().toarray(), context.third_derivative(a),
                forces[0].multipliers(state.positions))  # fmt: skip

    pairs = [[0, 1], [1, 2], [4, 2]]
    omega, d = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.7, 1.0])
    one = run(mp.forces.ConstraintPenalty(DISTANCE, pairs, omega, d=d))
    other = run(mp.forces.LinkLengthPenalty(pairs, omega, d))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-12, atol=1e-11)
    texts = [f"x{i}*x{j} + y{i}*y{j} + z{i}*z{j}" + " - 1" * (i == j) for i in (1, 2, 3) for j in (1, 2, 3)]
    one = run(mp.forces.ConstraintPenalty(texts, [[3, 4, 5]], 2.0))
    other = run(mp.forces.OrthonormalFramePenalty([[3, 4, 5]], 2.0))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-12, atol=1e-11)


def test_penalties_take_part_in_documents_edits_and_analysis():
    topology = mp.Topology()
    beads = topology.add_beads(np.eye(3), 1.0)
    system = mp.System(topology)
    force = system.add_force(mp.forces.ConstraintPenalty("x1*x2 - c", [[0, 1], [1, 2]], [1.0, 2.0], c=[0.1, 0.2]))
    assert mp.serialize(mp.deserialize(mp.serialize(system))) == mp.serialize(system)
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    assert context.get_state(energy=True).potential_energy == pytest.approx(0.5 * (0.1**2 + 4.0 * 0.2**2))
    force.set(c=0.0)
    assert context.get_state(energy=True).potential_energy == 0.0
    force.set(c=[0.5, 0.25])
    found = mp.analysis.constraint_multipliers(np.stack([np.eye(3), 2.0 * np.eye(3)]), force, 2)
    np.testing.assert_allclose(found, [[[-0.5], [-1.0]]], rtol=1e-14)
    with topology.edit():
        beads.remove(0, terms="remove")
    assert force.members.tolist() == [[1, 2]]
    assert context.get_state(energy=True).potential_energy == 0.125


def test_linearly_implicit_kicks_solve_with_penalties_of_texts():
    """Stiffer than an explicit step could bear: its energy stays, lengths hold."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    system = system_with(topology, mp.forces.ConstraintPenalty(DISTANCE, beads.beads, 20.0, d=1.0))
    kick = mp.kicks.ZhangSkeel(beta=0.4)
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 0.05, kick=kick))
    context.set_velocities([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    context.step(400)
    state = context.get_state(positions=True, physical_positions=True)
    x = state.physical_positions
    assert np.linalg.norm(x[0] - x[1]) == pytest.approx(1.0, abs=0.01)
