"""Joints of bodies and rods, and constraints on vertices and places of bodies: the laws that hold to round-off.

What they sample is in tests/physics/test_joints.py, what is refused in test_refused_constraints.py.
"""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses, retraced, system_with
from constraint_systems import DISTANCE
from joint_systems import (
    TURNED,
    Held,
    bodies_in_a_chain,
    bodies_on_a_vesicle,
    every_system,
    in_space,
    made,
    rods_and_a_filament,
    turned,
    whole,
    within,
)

import medyanpy as mp


@every_system
@pytest.mark.parametrize(("word", "more"), [("BAOAB", {}), ("OBABO", {"rotation": "exact"}), ("GABAG", {})])
def test_joints_hold_and_speeds_at_them_are_equal_at_every_step(build, word, more):
    """Speeds by differences along the free motion: gaps grow as its square."""
    context = made(build, word, heat=1.0, tolerance=1e-10, **more)
    topology = context.system.topology
    held = Held(topology)
    for _ in range(20):
        context.step(1)
        state = whole(context)
        # Up to rounding of places that are 10 nm away.
        assert (np.abs(held.gaps(topology, state)) < held.allowed + 1e-14).all()
    q = held.all_orientations(topology, state)
    inertia = np.ones((topology.n_beads, 3))
    for handle in topology.oriented_handles:
        inertia[handle.beads] = handle.inertia
    spin = np.zeros((topology.n_beads, 3))
    spin[topology.beads_with("oriented")] = state.angular_momenta
    for rows in held.rows:
        x, speed = state.positions[rows.beads], in_space(topology, state)[rows.beads]
        if rows.arms is not None:
            x = x + turned(q[rows.beads], rows.arms)
            speed = speed + turned(q[rows.beads], np.cross((spin / inertia)[rows.beads], rows.arms))
        slope = rows.form.at(x, rows.own)[1]
        rate = np.einsum("mkc,mkc->m", slope, speed) / np.sqrt(np.sum(slope**2, axis=(1, 2)))
        assert np.abs(rate).max() < 1e-12


@every_system
@pytest.mark.parametrize("more", [{}, {"rotation": "exact"}])
def test_words_without_thermostat_run_backwards(build, more):
    retraced(made(build, "BAGAB", **more), 60, atol=2e-10, least=0.3)


def energy_error(build, h, order, more):
    context = made(build, "BAB", h, order=order, **more)
    start = context.get_state(energy=True).total_energy
    errors = []
    for _ in range(10):
        context.step(round(0.1 / h))
        errors.append(context.get_state(energy=True).total_energy - start)
    return np.abs(errors).max()


@pytest.mark.parametrize("more", [{}, {"rotation": "exact"}])
@pytest.mark.parametrize(("order", "h"), [(2, 0.01), (4, 0.02)])
def test_energy_errors_fall_with_the_order_of_the_word(order, h, more):
    coarse, fine = (energy_error(bodies_in_a_chain, step, order, more) for step in (h, h / 2.0))
    assert 0.75 * 2.0**order < coarse / fine < 1.5 * 2.0**order


@pytest.mark.long
@pytest.mark.parametrize("build", [bodies_in_a_chain, rods_and_a_filament])
def test_the_energy_does_not_drift(build):
    """Over 20 000 steps its mean in the second half is that of the first half, to a fifth of its spread. (Points lose
    energy at kinks of the mesh.)"""
    context = made(build, "BAB", 0.02)
    errors = []
    for _ in range(200):
        context.step(100)
        errors.append(context.get_state(energy=True).total_energy)
    first, second = np.split(np.array(errors), 2)
    assert abs(second.mean() - first.mean()) < 0.2 * np.ptp(first) + 1e-9


def free_chain(kind="ball", parts=1):
    topology = mp.Topology()
    x = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [2.0, 2.0, 0.3]])
    q = np.array([TURNED, [1.0, 0.0, 0.0, 0.0], TURNED * [1, -1, 1, -1]])
    bodies = topology.add_rigid_bodies(x, q, [1.0, 2.0, 1.5], [[1.0, 0.7, 1.4], [0.5, 0.8, 0.6], [0.9, 0.6, 0.7]],
                                       rotation_parts=parts)  # fmt: skip
    for a, b in ((0, 1), (1, 2)):
        middle = 0.5 * (x[a] + x[b]) + [0.1, 0.0, 0.3]
        sides = [bodies.sites(np.tile(within(q[k], middle - x[k]), (1, 1)))[[k]] for k in (a, b)]
        more = {"axes": [0.0, 0.4, 1.0]} if kind == "hinge" else {}
        topology.join(*sides, kind, tolerance=1e-14, **more)
    return topology, bodies


@pytest.mark.parametrize(("kind", "freedom"), [("ball", 12), ("hinge", 8), ("fixed", 6)])
def test_joints_keep_momentum_and_angular_momentum(kind, freedom):
    topology, bodies = free_chain(kind)
    assert all(handle.kind.keeps_momentum for handle in topology.handles)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.02))
    context.set_velocities_to_temperature(kT=1.0, seed=1)

    def momenta():
        state = whole(context)
        m, x, v = bodies.mass[:, None], state.positions, state.velocities
        spin = turned(state.orientations, state.angular_momenta)
        return np.concatenate([(m * v).sum(axis=0), (m * np.cross(x, v) + spin).sum(axis=0)])

    start, before = momenta(), whole(context)
    context.step(200)
    np.testing.assert_allclose(momenta(), start, rtol=0, atol=2e-12)
    assert np.abs(whole(context).positions - before.positions).max() > 1.0
    assert sum(handle.degrees_of_freedom for handle in topology.handles) == freedom
    assert list(context.get_state(energy=True).temperatures) == ["rigid bodies"]


def test_a_bead_on_a_link_is_a_mass_there():
    """A link of two nodes with a bead at a third of it is a stiff rod of the three masses: its centre moves at constant
    velocity, it turns at constant speed, and the error falls as dt²."""
    errors = []
    for h in (0.02, 0.01):
        topology = mp.Topology()
        link = topology.add_filament([[-1.0, 0, 0], [2.0, 0, 0]], node_mass=[1.5, 1.0], tolerance=1e-13)
        bead = topology.add_beads([[0.0, 0, 0]], 2.0)
        third = mp.Sites.weighted([link.beads], [[2.0 / 3.0, 1.0 / 3.0]])
        made = topology.join(third, bead, length=1.0, tolerance=1e-13)
        assert made.texts[0] == "w1*x1 + w2*x2 - x3"
        mass, x = np.array([1.5, 1.0, 2.0]), np.array([-1.0, 2.0, 0.0])
        centre, spin, drift = mass @ x / mass.sum(), 0.7, np.array([0.1, 0.2, -0.3])
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(h))
        context.set_velocities(drift + np.outer(spin * (x - centre), [0.0, 1.0, 0.0]))
        context.step(round(4.0 / h))
        angle = 4.0 * spin
        along = np.array([np.cos(angle), np.sin(angle), 0.0])
        exact = [centre, 0.0, 0.0] + 4.0 * drift + np.outer(x - centre, along)
        errors.append(np.abs(whole(context).positions - exact).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[0] < 1e-3


def test_paths_in_a_box_are_those_without():
    """Joints through a side of the box: nothing of them knows of it."""
    paths = []
    for box in (None, [11.0, 11.0, 11.0]):
        topology = mp.Topology()
        rods_and_a_filament(topology)
        system = mp.System(topology, box=box)
        for rod in ("one", "two"):
            system.add_force(mp.forces.RodElasticity(topology[rod], [20.0, 20.0], 30.0, [9.0, 9.0], 9.0))
        context = mp.Context(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=1.0, seed=4))
        context.set_velocities_to_temperature(kT=1.0, seed=5)
        context.step(50)
        paths.append(context.get_state(positions=True, velocities=True))
    np.testing.assert_allclose(paths[1].positions, paths[0].positions, rtol=0, atol=1e-11)
    np.testing.assert_allclose(paths[1].orientations, paths[0].orientations, rtol=0, atol=1e-11)


def test_edges_flip_beside_joints():
    topology = mp.Topology()
    bodies_on_a_vesicle(topology)
    membrane = topology.membranes[0]
    system = mp.System(topology)
    system.add_force(mp.forces.MembraneBending(membrane, 20.0))
    system.add_force(mp.forces.MembraneFoldRepulsion(membrane, 20.0))
    system.add_jump(mp.jumps.EdgeFlips(membrane, rate=30.0))
    context = mp.Context(system, mp.SplittingIntegrator("JBAGOGABJ", 0.01, kT=1.0, seed=4))
    context.set_velocities_to_temperature(kT=1.0, seed=5)
    context.step(20)
    state = context.get_state(positions=True, velocities=True, energy=True)
    assert state.counts["EdgeFlips"][1] > 5
    held = Held(topology)
    assert (np.abs(held.gaps(topology, state)) < held.allowed + 1e-14).all()


def test_bodies_that_are_fixed_to_each_other_move_as_one():
    """As the whole body of their masses and moments, with an error that falls as dt²."""
    from scipy.spatial.transform import Rotation

    def parts(h):
        topology, bodies = free_chain("fixed")
        context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", h))
        context.set_velocities([[0.1, 0.2, 0.0], [0.5, -0.3, 0.2], [-0.6, 0.0, 0.1]],
                               angular_momenta=[[0.3, 0.5, -0.2], [0.1, 0.0, 0.4], [0.0, 0.3, 0.2]])  # fmt: skip
        start = whole(context)
        context.step(round(1.0 / h))
        return bodies, start, whole(context)

    bodies, start, _ = parts(0.1)
    m, x, v = bodies.mass[:, None], start.positions, start.velocities
    centre, speed = (m * x).sum(axis=0) / m.sum(), (m * v).sum(axis=0) / m.sum()
    R = Rotation.from_quat(start.orientations, scalar_first=True).as_matrix()
    d = x - centre
    around = [bodies.mass[k] * (d[k] @ d[k] * np.eye(3) - np.outer(d[k], d[k])) for k in range(3)]
    whole_inertia = sum(around) + sum(R[k] @ np.diag(bodies.inertia[k]) @ R[k].T for k in range(3))
    spin = (m * np.cross(d, v - speed) + turned(start.orientations, start.angular_momenta)).sum(axis=0)
    moments, axes = np.linalg.eigh(whole_inertia)
    axes[:, 2] *= np.linalg.det(axes)
    topology = mp.Topology()
    q = Rotation.from_matrix(axes).as_quat(scalar_first=True)
    one = topology.add_rigid_bodies([centre], [q], m.sum(), moments)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.01, rotation="exact"))
    context.set_velocities([speed])
    context.set_angular_momenta([axes.T @ spin])
    context.step(100)
    state = whole(context)
    wanted = state.positions + turned(state.orientations, d @ axes)
    errors = [np.abs(parts(h)[2].positions - wanted).max() for h in (0.05, 0.025)]
    assert len(one) == 1
    assert errors[0] < 0.02
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_paths_are_those_of_bodies_made_of_beads():
    """Two bodies of four beads at distances each, which share one bead; as two bodies at a ball joint, the path of that
    has errors that fall as dt²."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(5)
    left, right = rng.normal(size=(2, 3, 3))
    mass = np.array([1.0, 2.0, 1.5])

    def beads(h):
        topology = mp.Topology()
        x = np.concatenate([left, right, [[0.0, 0.0, 0.0]]])
        made = topology.add_beads(x, [*mass, *mass, 1e-9])
        pairs = [(i, j) for group in ([0, 1, 2, 6], [3, 4, 5, 6]) for k, i in enumerate(group) for j in group[k + 1 :]]
        topology.constrain(DISTANCE, pairs, d=np.linalg.norm(x[[i for i, _ in pairs]] - x[[j for _, j in pairs]],
                                                             axis=1))  # fmt: skip
        context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", h))
        context.set_velocities(np.concatenate([np.random.default_rng(6).normal(size=(6, 3)), np.zeros((1, 3))]))
        start = whole(context)
        context.step(round(1.0 / h))
        assert len(made) == 7
        return start, whole(context).positions[:6]

    def bodies(h, start):
        topology = mp.Topology()
        x, q, inertia, spin, speed, arms = [], [], [], [], [], []
        for k in range(2):
            at, v = start.positions[3 * k : 3 * k + 3], start.velocities[3 * k : 3 * k + 3]
            centre, mean = mass @ at / mass.sum(), mass @ v / mass.sum()
            d = at - centre
            tensor = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(mass, d, strict=True))
            moments, axes = np.linalg.eigh(tensor)
            axes[:, 2] *= np.linalg.det(axes)
            x.append(centre)
            speed.append(mean)
            q.append(Rotation.from_matrix(axes).as_quat(scalar_first=True))
            inertia.append(moments)
            spin.append(axes.T @ (mass[:, None] * np.cross(d, v - mean)).sum(axis=0))
            arms.append(np.concatenate([d, [-centre]]) @ axes)
        made = topology.add_rigid_bodies(x, q, mass.sum(), inertia)
        joint = made.sites(np.array([arm[3:] for arm in arms]))
        topology.join(joint[[0]], joint[[1]])
        context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", h))
        context.set_velocities(speed, angular_momenta=spin)
        context.step(round(1.0 / h))
        state = whole(context)
        return np.concatenate([state.positions[k] + turned(state.orientations[k], arms[k][:3]) for k in range(2)])

    start, fine = beads(0.0025)
    # Of both the limit, by Richardson.
    wanted = (4.0 * fine - beads(0.005)[1]) / 3.0
    errors = [np.abs(bodies(h, start) - wanted).max() for h in (0.04, 0.02)]
    assert errors[0] < 0.05
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_exact_rotation_is_the_limit_of_many_parts():
    """At joints too: of 40 parts the flight is the exact one, to 1/40² of the error of one part."""

    def run(parts, rotation):
        topology, _ = free_chain(parts=parts)
        context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAB", 0.1, rotation=rotation))
        context.set_velocities_to_temperature(kT=1.0, seed=1)
        context.step(5)
        return whole(context).orientations

    exact = run(1, "exact")
    one, many = (np.abs(run(parts, "split") - exact).max() for parts in (1, 40))
    assert 1e-5 < one < 0.1
    assert many < one / 1200.0


@pytest.mark.parametrize("build", [bodies_in_a_chain, bodies_on_a_vesicle])
def test_multipliers_are_the_forces_that_keep_joints(build):
    """Gaps grow as the third power of time along the motion that they give, found by differences."""
    context = made(build, "BAGAB", heat=1.0)
    context.step(5)
    topology, held = context.system.topology, Held(context.system.topology)
    state = whole(context, forces=True, multipliers=True)
    q = held.all_orientations(topology, state)
    n = topology.n_beads
    inertia, spin, torque, mass = np.ones((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.empty(n)
    for handle in topology.handles:
        mass[handle.beads] = handle.mass
    for handle in topology.oriented_handles:
        inertia[handle.beads] = handle.inertia
    turning = topology.beads_with("oriented")
    spin[turning], torque[turning] = state.angular_momenta, state.torques
    force = state.forces.copy()
    for handle in topology.handles:
        if not isinstance(handle, mp.beads.Constraints):
            continue
        for t, rows in enumerate(handle.kind.constraint_rows()):
            x = rows.places(state.positions, q)
            pull = -state.multipliers[handle.name][:, t, None, None] * rows.form.at(x, rows.own)[1]
            np.add.at(force, rows.beads, pull)
            if rows.arms is not None:
                np.add.at(torque, rows.beads, np.cross(rows.arms, within(q[rows.beads], pull)))
    rate = spin / inertia
    turn = (torque + np.cross(spin, rate)) / inertia

    def gaps(t):
        from scipy.spatial.transform import Rotation

        out = []
        angle = t * rate + 0.5 * t * t * turn
        then = (Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(angle)).as_quat(scalar_first=True)
        x = state.positions + t * state.velocities + 0.5 * t * t * force / mass[:, None]
        for rows in held.rows:
            out.append(rows.form.at(rows.places(x, then), rows.own)[0])
        return np.concatenate(out)

    h = 1e-4
    assert np.abs((gaps(h) - 2.0 * gaps(0.0) + gaps(-h)) / h**2).max() < 1e-5
    assert max(np.abs(values).max() for values in state.multipliers.values()) > 0.1


@every_system
def test_threads_documents_copies_and_checkpoints_give_the_same_bits(build, tmp_path):
    context = made(build, "BAOAB", tolerance=1e-10)
    system, word = context.system, context.integrator.word
    integrator = {"kT": 1.0, "seed": 5}
    simulation = mp.Simulation(copy.deepcopy(system), mp.SplittingIntegrator(word, 0.02, **integrator), threads=2)
    simulation.context.set_velocities_to_temperature(kT=0.3, seed=2)
    simulation.step(10)
    context.step(10)
    simulation.save_checkpoint(tmp_path / "run.chk")
    simulation.step(10)
    context.step(10)
    wanted = whole(simulation.context)
    for part in ("positions", "velocities", "orientations", "angular_momenta"):
        assert np.array_equal(getattr(wanted, part), getattr(whole(context), part), equal_nan=True)
    document = mp.serialize(system)
    for again in (pickle.loads(pickle.dumps(system)), mp.deserialize(document)):
        assert mp.serialize(again) == document
        other = mp.Simulation(again, mp.SplittingIntegrator(word, 0.02, **integrator))
        other.load_checkpoint(tmp_path / "run.chk")
        other.step(10)
        for part in ("positions", "velocities", "orientations", "angular_momenta"):
            assert np.array_equal(getattr(wanted, part), getattr(whole(other.context), part), equal_nan=True)


def test_joints_are_made_and_taken_away_in_a_running_simulation():
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[0.0, 0, 0], [3.0, 0, 0], [0.0, 9.0, 0]], [TURNED] * 3, 1.0, [1.0, 0.7, 1.4],
                                       (1.0, 1.0))  # fmt: skip
    system = mp.System(topology)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.02, kT=0.01, seed=5))
    simulation.step(20)
    before = whole(simulation.context)
    middle = 0.5 * (before.positions[0] + before.positions[1])
    arms = within(before.orientations, middle - before.positions)
    with topology.edit():
        made = topology.join(bodies.sites(arms[:, None])[[0]], bodies.sites(arms[:, None])[[1]], "fixed")
    after = whole(simulation.context)
    np.testing.assert_allclose(after.positions, before.positions, atol=1e-12)
    assert (after.velocities[2] == before.velocities[2]).all()
    assert (after.angular_momenta[2] == before.angular_momenta[2]).all()
    assert (after.velocities[:2] != before.velocities[:2]).any()
    simulation.step(20)
    held = Held(topology)
    assert np.abs(held.gaps(topology, whole(simulation.context))).max() < 1e-9
    again = mp.deserialize(mp.serialize(system))
    assert np.array_equal(again.topology["joints"].arms, made.arms)
    mp.Context(again, mp.SplittingIntegrator("BAOAB", 0.02, kT=0.01, seed=5))
    with topology.edit():
        made.remove(0)
    simulation.step(20)
    assert np.abs(held.gaps(topology, whole(simulation.context))).max() > 1e-3


def test_the_minimiser_stays_on_joints():
    """Of two bodies that hang from a hook: then hook, joint and centres, and the joint and the lower centre are in the
    planes that balance asks for: the whole centre is below the hook, and the lower centre below the joint."""
    topology = mp.Topology()
    hook, middle = np.array([0.0, 1.0, 0.0]), np.array([0.5, -1.2, 0.3])
    x = np.array([[0.4, 0.1, 0.0], [1.5, -1.0, 0.2]])
    bodies = topology.add_rigid_bodies(x, [TURNED] * 2, [1.0, 2.0], [1.0, 0.7, 1.4])
    sites = bodies.sites(within(TURNED, np.stack([middle - x, hook - x], axis=1)))
    topology.join(sites[[0]], sites[[2]])
    topology.join(sites[[1]], mp.Sites.anchors([hook]))
    system = system_with(topology, mp.forces.UniformField(bodies, [[0.0, -1.0, 0.0], [0.0, -2.0, 0.0]]))
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    assert simulation.minimize_energy(tolerance=1e-4, max_iterations=5000).converged
    state = whole(simulation.context)
    assert np.abs(Held(topology).gaps(topology, state)).max() < 1e-8
    joint = sites[[0]].positions(state)[0]
    below = state.positions[1] - joint
    whole_centre = (1.0 * (state.positions[0] - hook) + 2.0 * (joint - hook)) / 3.0
    np.testing.assert_allclose(below, [0.0, -np.linalg.norm(below), 0.0], atol=1e-3)
    np.testing.assert_allclose(whole_centre, [0.0, -np.linalg.norm(whole_centre), 0.0], atol=1e-3)


def test_states_orientations_and_velocities_from_outside_fit_joints():
    """A state of the same system comes back with all of it; turned bodies are brought to where joints hold."""
    context = made(bodies_in_a_chain, "BAOAB", heat=1.0)
    context.step(20)
    there = whole(context)
    context.step(20)
    context.set_state(there)
    after = whole(context)
    for part in ("positions", "orientations", "velocities", "angular_momenta"):
        np.testing.assert_allclose(getattr(after, part), getattr(there, part), rtol=0, atol=1e-12)
    slightly = there.orientations + 1e-3 * np.random.default_rng(1).normal(size=(3, 4))
    context.set_orientations(slightly / np.linalg.norm(slightly, axis=1)[:, None])
    topology = context.system.topology
    assert np.abs(Held(topology).gaps(topology, whole(context))).max() < 1e-9


def test_joints_that_start_apart_are_brought_together():
    """By less than 1e-3 of their length, with turns too."""
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[0.0, 0, 0], [3.0, 0, 0]], [TURNED] * 2, 1.0, [1.0, 0.7, 1.4])
    arms = within([TURNED] * 2, [[1.5, 0, 0], [-1.5, 0, 0]]) + [[0.0, 4e-4, 0.0], [0.0, 0.0, -3e-4]]
    sites = bodies.sites(arms[:, None])
    topology.join(sites[[0]], sites[[1]])
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.01))
    state = whole(context)
    assert np.abs(Held(topology).gaps(topology, state)).max() < 1e-9
    assert 1e-5 < np.abs(state.positions - bodies.positions).max() < 1e-3
    assert (state.orientations != bodies.orientations).any()


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"kind": "slider"}, mp.ParameterError, 'kind = .slider. but must be "ball", "hinge" or "fixed"'),
    ({"kind": "hinge"}, mp.ParameterError, "axes are the directions of hinges"),
    ({"axes": [1.0, 0, 0]}, mp.ParameterError, "axes are the directions of hinges"),
    ({"kind": "hinge", "axes": [0.0, 0, 0]}, mp.ParameterError, r"axes\[0\] is 0"),
    ({"second": mp.Sites.anchors([[1.0, 0, 0]])}, mp.TopologyError, "does not hold where they start"),
    ({"second": mp.Sites.anchors([[1.5, 0, 0]] * 2)}, mp.TopologyError, "first has 1 places and second 2"),
    ({"first": mp.Sites.anchors([[1.5, 0, 0]])}, mp.TopologyError, "only the second may be anchors"),
    ({"first": mp.Sites.weighted([[0, 1]], [[0.5, 0.5]]), "kind": "fixed"}, mp.TopologyError,
     r"first\[0\] is a mean of beads \[0, 1\] .* has no orientation for a fixed joint"),
    ({"first": mp.Sites.weighted([[0, 1]], [[0.5, 0.5]]) + mp.Sites.beads([2])}, mp.TopologyError,
     r"first\[1\] is of 1 beads, and others are of 2: join places of each number of beads in a call of their own"),
    ({"first": mp.Sites.beads([2]) + mp.Sites.anchors([[1.5, 0, 0]])}, mp.TopologyError,
     r"first\[1\] is an anchor among beads"),
    ({"second": [2], "kind": "fixed"}, mp.TopologyError, "bead 2 of 'beads', which has no orientation for a fixed"),
    ({"first": [2], "second": mp.Sites.anchors([[1.5, 0, 0]])}, mp.ParameterError, "give length="),
    ({"length": 0.0}, mp.ParameterError, "length = 0"),
])  # fmt: skip
def test_bad_joints_are_refused(change, error, message):
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies([[0.0, 0, 0], [3.0, 0, 0]], [[1.0, 0, 0, 0]] * 2, 1.0, [1.0, 0.7, 1.4])
    topology.add_beads([[1.5, 0.0, 0.0]], 1.0)
    sites = bodies.sites([[[1.5, 0, 0]], [[-1.5, 0, 0]]])
    arguments = {"first": sites[[0]], "second": sites[[1]], **change}
    refuses(error, message, topology.join, **arguments)
    assert len(topology.handles) == 2


def test_potentials_kicks_and_schemes_without_joints_are_refused():
    topology, bodies = free_chain()
    joints = topology["joints"]
    system = system_with(topology, mp.forces.ConstraintFixmanPotential(joints, kT=1.0))
    refuses(mp.TopologyError, "whose metric turns with them", mp.Context, system, mp.VerletIntegrator(0.01))
    for scheme in ("Euler-Maruyama", "Leimkuhler-Matthews"):
        refuses(mp.ParameterError, "BrownianIntegrator cannot move .*turn", mp.Context, mp.System(topology),
                mp.BrownianIntegrator(0.01, kT=1.0, scheme=scheme))  # fmt: skip
    # Twice the same.
    refuses(mp.TopologyError, "depends where beads start on", topology.constrain, "x1 - x2", joints.members,
            arms=joints.arms, length=1.0)  # fmt: skip
    refuses(mp.TopologyError, "has no orientation", made_of_beads().constrain, "x1 - x2", [[0, 1]],
            arms=[[1.0, 0, 0], [0, 0, 0]])  # fmt: skip
    refuses(mp.TopologyError, "row 0 names a bead twice", topology.constrain, "x1 - x2", [[0, 0]],
            arms=[[1.0, 0, 0], [1.0, 0, 0]])  # fmt: skip
    refuses(mp.TopologyError, "names a bead that would go", bodies.remove, 0)
    kick = mp.kicks.HamiltonPontryagin()
    refuses(mp.ParameterError, "joins bodies", mp.Context, mp.System(topology),
            mp.SplittingIntegrator("BA", 0.01, kick=kick, symmetric=False))  # fmt: skip


def made_of_beads():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], 1.0)
    return topology


def test_vertices_are_refused_in_edits():
    topology = mp.Topology()
    vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), 1.0, 0.2)
    bead = topology.add_beads([1.5 * vesicle.mesh.vertices[7]], 1.0, 0.5)
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.02, kT=0.01, seed=5))
    simulation.step(1)

    def tie():
        with topology.edit():
            topology.constrain(DISTANCE, [vesicle.beads[7], bead.beads[0]], d=1.5)

    refuses(mp.TopologyError, "add all constraints before a Context is made", tie)
    simulation.step(1)


def test_a_step_that_is_too_long_names_the_joint():
    topology, _ = free_chain()
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(2.0))
    context.set_velocities([[3.0, 0.0, 9.0], [0.0, 4.0, -9.0], [5.0, 0.0, 9.0]])
    refuses(mp.SimulationError, "of 'joints.*' cannot be kept", context.step, 5)
