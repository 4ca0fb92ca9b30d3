"""RodElasticity, RodLoad and RodCollision."""

import itertools

import numpy as np
import pytest
from builders import refuses, system_with
from forces.references.bodies import rotation
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.testing import ForceCase, check_force
from medyanpy.testing.forces import check_domains

NUMBERS = {"shear": (3.0, 5.0), "extension": 7.0, "bending": (11.0, 4.0), "twist": 6.0}


def strains(links, length, x, q):
    """By the rotation vector between two nodes, without any quaternion arithmetic."""
    a, b = links.T
    first = rotation(q[a])
    turn = (first.inv() * rotation(q[b])).as_rotvec()
    angle = np.linalg.norm(turn, axis=1)[:, None]
    omega = 4.0 * np.sin(0.25 * angle) / np.where(angle > 0.0, angle, 1.0) * turn / length[:, None]
    middle = first * Rotation.from_rotvec(0.5 * turn)
    return middle.inv().apply(x[b] - x[a]) / length[:, None], omega


def energy_of(links, length, numbers):
    """numbers (J, 12) or (12,): C, B, Γ⁰, Ω⁰."""
    c = np.broadcast_to(numbers, (len(links), 12))

    def energy(x, q):
        gamma, omega = strains(links, length, x, q)
        terms = c[:, :3] * (gamma - c[:, 6:9]) ** 2 + c[:, 3:6] * (omega - c[:, 9:]) ** 2
        return 0.5 * np.sum(length * terms.sum(axis=1))

    return energy


def wild(rng, nodes, q, size=0.3):
    """Away from rest in every way, with quaternions of either sign."""
    nodes = nodes + rng.normal(0.0, size, nodes.shape)
    q = quaternions.product(q, np.column_stack([np.ones(len(q)), rng.normal(0.0, 0.5 * size, (len(q), 3))]))
    return nodes, rng.choice([-1.0, 1.0], len(q))[:, None] * q / np.linalg.norm(q, axis=1)[:, None]


def scene(alike, closed=False, ends="free"):
    """Beads, a body, three rods of different lengths, more than one batch of them long, a body: the topology, a force
    and its numbers (J, 12)."""
    rng = np.random.default_rng(5)
    lengths = np.array([1.0, 1.3, 0.7])
    parts = [mp.rods.uniform(n, length, [0.05, 0.1, 0.03]) for n, length in zip((5, 70, 3), lengths, strict=True)]
    if closed:
        angle = 2.0 * np.pi / np.array([5, 70, 3])
        parts = [mp.rods.uniform(n, s, [0.0, a / s, 0.0]) for n, s, a in zip((5, 70, 3), lengths, angle, strict=True)]
    parts = [wild(rng, x + 20.0 * i, q, 0.1) for i, (x, q) in enumerate(parts)]
    topology = mp.Topology()
    topology.add_beads(rng.normal(size=(3, 3)), mass=1.0)
    topology.add_rigid_bodies(rng.normal(size=(1, 3)), [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    rods = topology.add_rods([x for x, _ in parts], [q for _, q in parts], lengths, 1.0, [1.0, 1.0, 1.5], closed=closed,
                             ends=ends)  # fmt: skip
    topology.add_rigid_bodies(rng.normal(size=(2, 3)), [[1.0, 0, 0, 0]] * 2, 1.0, [1.0, 1.0, 1.0])
    n = len(rods.links)
    if alike:
        rest = {"rest_strain": (0.1, -0.2, 1.1), "rest_curvature": (0.3, 0.1, -0.2)}
        force = mp.forces.RodElasticity(rods, **NUMBERS, **rest)
        numbers = np.array([3.0, 5.0, 7.0, 11.0, 4.0, 6.0, 0.1, -0.2, 1.1, 0.3, 0.1, -0.2])
    else:
        numbers = np.column_stack([rng.uniform(2.0, 9.0, (n, 6)), rng.normal(0.0, 0.3, (n, 6)) + np.eye(6)[2]])
        force = mp.forces.RodElasticity(rods, numbers[:, :2], numbers[:, 2], numbers[:, 3:5], numbers[:, 5],
                                        numbers[:, 6:9], numbers[:, 9:])  # fmt: skip
    return topology, force, numbers


@pytest.mark.parametrize("closed", [False, True], ids=["open", "rings"])
@pytest.mark.parametrize("alike", [False, True], ids=["each its own", "alike"])
def test_contract(alike, closed):
    _, force, numbers = scene(alike, closed)
    rods = force.rod
    energy = energy_of(rods.links, rods.kind.joint_lengths, numbers)
    check_force(ForceCase("rods", lambda: scene(alike, closed)[:2], lambda x, q: energy(x[rods.beads], q[rods.rows]),
                          0.01))  # fmt: skip


def at_rest(n=40, size=0.0, seed=1, **kwargs):
    """A context of one rod, the rod and its force."""
    rng = np.random.default_rng(seed)
    x, q = mp.rods.uniform(n, 0.8, [0.1, 0.2, -0.1])
    if size:
        x, q = wild(rng, x, q, size)
    topology = mp.Topology()
    rod = topology.add_rod(x, q, 0.8, 1.3, [0.4, 0.5, 0.8], **kwargs)
    system = mp.System(topology)
    force = system.add_force(mp.forces.RodElasticity(rod, **NUMBERS))
    return system, rod, force


def look(system, word="ABA"):
    context = mp.Context(system, mp.SplittingIntegrator(word, 1e-3), threads=1)
    return context.get_state(positions=True, forces=True, energy=True)


def test_formulas_of_the_paper():
    """(53) and (54), with the quaternion torques t_a turned to the frames of the nodes by e_ia/2, and the trapezoidal
    weights of free ends, where the stress vanishes."""
    system, _, _ = at_rest(size=0.2)
    state = look(system)
    x, q = state.positions, state.orientations
    q = q * np.cumprod(np.r_[1.0, np.where(np.einsum("ij,ij->i", q[1:], q[:-1]) < 0.0, -1.0, 1.0)])[:, None]
    # Rows (T1.3).
    def basis(q):
        w, a, b, c = q.T
        return np.stack([np.stack(r, 1) for r in ([-a, w, c, -b], [-b, -c, w, a], [-c, b, -a, w])], 1)

    s = q[1:] + q[:-1]
    size = 0.5 * np.linalg.norm(s, axis=1)
    mean = s / np.linalg.norm(s, axis=1)[:, None]
    e, d = basis(mean), np.transpose(quaternions.matrices(mean), (0, 2, 1))
    gamma = np.einsum("nij,nj->ni", d, np.diff(x, axis=0)) / 0.8
    omega = 2.0 * np.einsum("nij,nj->ni", e, np.diff(q, axis=0)) / 0.8
    stress = np.array([3.0, 5.0, 7.0]) * (gamma - [0, 0, 1])
    couple = np.array([11.0, 4.0, 6.0]) * omega
    zero = np.zeros((1, 3))
    force = np.diff(np.concatenate([zero, np.einsum("nij,ni->nj", d, stress), zero]), axis=0)
    np.testing.assert_allclose(state.forces, force, atol=1e-12)
    in_q = np.einsum("nij,ni->nj", e, couple)
    # d/dq of 2 e.q' and of d.r' at fixed length of q, which the mean |q| divides.
    turning = np.einsum("nij,ni->nj", e, 0.5 * np.cross(omega, couple) + np.cross(gamma, stress)) / size[:, None]
    pad = np.zeros((1, 4))
    t = 2.0 * np.diff(np.concatenate([pad, in_q, pad]), axis=0)
    t += 0.8 * (np.concatenate([turning, pad]) + np.concatenate([pad, turning]))
    torque = 0.5 * np.einsum("nij,nj->ni", basis(q), t)
    np.testing.assert_allclose(state.torques, torque, atol=1e-12)


def test_free_rods_exert_no_total_force_or_torque():
    system, _, _ = at_rest(n=200, size=0.15)
    state = look(system)
    torque = np.cross(state.positions, state.forces) + quaternions.turned(state.orientations, state.torques)
    scale = np.abs(np.cross(state.positions, state.forces)).sum()
    assert np.abs(state.forces.sum(axis=0)).max() < 1e-13 * np.abs(state.forces).sum()
    assert np.abs(torque.sum(axis=0)).max() < 1e-13 * scale


def test_energy_does_not_know_where_a_rod_is():
    system, rod, _ = at_rest(size=0.2)
    before = look(system)
    context = mp.Context(system, mp.SplittingIntegrator("ABA", 1e-3), threads=1)
    turn = Rotation.from_rotvec([0.3, -2.0, 1.1])
    q = np.roll(turn.as_quat(), 1)
    context.set_positions(turn.apply(before.positions.copy()) + [5.0, -7.0, 9.0])
    context.set_orientations(quaternions.product(np.tile(q, (len(rod), 1)), before.orientations))
    after = context.get_state(forces=True, energy=True)
    assert after.potential_energy == pytest.approx(before.potential_energy, rel=1e-13)
    np.testing.assert_allclose(after.forces, turn.apply(before.forces.copy()), atol=1e-12)
    np.testing.assert_allclose(after.torques, before.torques, atol=1e-12)


def test_strains_are_those_of_the_energy():
    _, rod, _ = at_rest(size=0.2)
    for ours, theirs in zip(rod.strains(), strains(rod.links, rod.kind.joint_lengths, rod.positions, rod.orientations),
                            strict=True):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_rest_strains_of_a_rod_leave_it_at_rest():
    system, rod, force = at_rest(size=0.2)
    strain, curvature = rod.strains()
    force.set(rest_strain=strain, rest_curvature=curvature)
    state = look(system)
    assert state.potential_energy < 1e-28
    assert max(np.abs(state.forces).max(), np.abs(state.torques).max()) < 1e-13


def test_a_joint_turned_by_almost_pi():
    """The energy goes on to its kink without loss of digits: 8 B/l sin²(π/4) of a bent joint."""
    topology = mp.Topology()
    turn = np.pi - 1e-9
    q = [[1.0, 0, 0, 0], [np.cos(0.5 * turn), np.sin(0.5 * turn), 0.0, 0.0]]
    # As the third axis of the second node may not point backwards, it gets there later.
    rod = topology.add_rod([[0.0, 0, 0], [0.0, 0, 1.0]], [q[0], q[0]], 1.0, 1.0, [1.0, 1.0, 1.0])
    context = mp.Context(system_with(topology, mp.forces.RodElasticity(rod, 1e-12, 1e-12, (3.0, 1.0), 1.0)),
                         mp.SplittingIntegrator("ABA", 1e-3), threads=1)  # fmt: skip
    context.set_orientations(q)
    state = context.get_state(forces=True, energy=True)
    assert state.potential_energy == pytest.approx(8.0 * 3.0 * np.sin(0.25 * turn) ** 2, rel=1e-9)
    # dU/dθ = 4 B sin(θ/4) cos(θ/4) = 2 B sin(θ/2)
    np.testing.assert_allclose(state.torques, [[6.0 * np.sin(0.5 * turn), 0, 0], [-6.0 * np.sin(0.5 * turn), 0, 0]],
                               rtol=1e-9, atol=1e-9)  # fmt: skip


# Refusals ------------------------------------------------------------------------------------------------------


def test_it_acts_on_rods():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    refuses(mp.TopologyError, "rod must be the handle of rods, not Beads", mp.forces.RodElasticity, beads, **NUMBERS)
    refuses(mp.TopologyError, "rod must be the handle of rods, not Beads", mp.forces.RodLoad, beads, "end")
    with pytest.raises(mp.TopologyError, match=r"rods\[0\] must be the handle of rods, not Beads"):
        mp.forces.RodCollision([beads], 1.0, 1.0)


# Loads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["free", "pinned", "clamped"])
@pytest.mark.parametrize("end", ["start", "end"])
def test_load_in_space(end, ends):
    """The energy -F.x of the end, half a segment beyond the node where it is free."""
    force = np.array([0.3, -0.7, 1.1])

    def make():
        topology, elastic, _ = scene(True, ends=ends)
        return topology, mp.forces.RodLoad(elastic.rod, end, force)

    rods = make()[1].rod
    node = rods.starts[1:] - 1 if end == "end" else rods.starts[:-1]
    arm = {"start": -0.5, "end": 0.5}[end] * (ends == "free") * rods.segment_length

    def energy(x, q):
        x, q = x[rods.beads][node], q[rods.rows][node]
        return -np.sum((x + arm[:, None] * rotation(q).as_matrix()[:, :, 2]) @ force)

    check_force(ForceCase("load", make, energy, 0.01))


@pytest.mark.parametrize("follows", [False, True])
def test_couples_and_loads_that_follow(follows):
    _, rod, _ = at_rest(size=0.2)
    force, couple = np.array([0.3, -0.7, 1.1]), np.array([-2.0, 0.4, 0.9])
    system = mp.System(rod.topology)
    load = system.add_force(mp.forces.RodLoad(rod, "end", force, couple, follows=follows))
    state = look(system)
    turn = rotation(state.orientations[-1])
    body = (force, couple) if follows else (turn.inv().apply(force), turn.inv().apply(couple))
    np.testing.assert_allclose(state.forces[-1], turn.apply(body[0]), atol=1e-14)
    np.testing.assert_allclose(state.torques[-1], body[1] + np.cross([0, 0, 0.4], body[0]), atol=1e-14)
    assert not state.forces[:-1].any()
    assert not state.torques[:-1].any()
    assert state.potential_energy == 0.0 if follows else state.potential_energy != 0.0
    load.set(force=(0.0, 0.0, 0.0))
    assert look(system).potential_energy == 0.0


def test_refusals_of_loads():
    _, rod, _ = at_rest()
    refuses(mp.ParameterError, "end must be \"start\" or \"end\", not 'middle'", mp.forces.RodLoad, rod, "middle")
    _, force, _ = scene(True, closed=True)
    refuses(mp.TopologyError, "rings have no end", mp.forces.RodLoad, force.rod, "end")


# Excluded volume -----------------------------------------------------------------------------------------------


def test_rods_collide_as_filaments_of_the_same_shape():
    """The law is that of SoftCollisions; here it is what it does between the same segments of filaments."""
    rng = np.random.default_rng(3)
    parts = [wild(rng, x + rng.normal(0.0, 2.0, 3), q, 0.05)
             for x, q in (mp.rods.uniform(12, 1.0, [0.3, 0.1, 0.2]) for _ in range(4))]  # fmt: skip
    forces = []
    for is_rod in (True, False):
        topology = mp.Topology()
        if is_rod:
            rods = topology.add_rods([x for x, _ in parts], [q for _, q in parts], 1.0, 1.0, [1.0, 1.0, 1.5])
            force = mp.forces.RodCollision(rods, 5.0, 0.6, neighbors=3)
        else:
            rods = topology.add_filaments([x for x, _ in parts], 1.0, constrained=False)
            force = mp.forces.SoftCollisions(rods, 5.0, 0.6, neighbors=3)
        system = system_with(topology, force)
        state = look(system)
        forces.append(state.forces)
        assert state.potential_energy > 0.1
        check_domains(ForceCase("tubes", lambda topology=topology, force=force: (topology, force), None, 1.0))
        if is_rod:
            assert not state.torques.any()
    assert np.array_equal(*forces)


def test_neighbors_that_do_not_touch_by_themselves():
    """Half a circle of the diameter 2 r: ceil(π r / l); a rod bent that far does not touch itself."""
    radius, length = 0.5, 0.25
    n = int(np.pi * radius / length) + 12
    x, q = mp.rods.uniform(n, length, [0.0, 1.0 / radius, 0.0])
    # Once around and on: a helix, so that the ends miss each other.
    x, q = mp.rods.uniform(n, length, [0.0, 1.0 / radius, 3.0])
    topology = mp.Topology()
    rod = topology.add_rod(x, q, length, 1.0, [1.0, 1.0, 1.5])
    ours = mp.forces.RodCollision(rod, 1.0, radius)
    assert ours._neighbors == 7
    straight = mp.Topology()
    rod = straight.add_rod(*mp.rods.uniform(n, length), length, 1.0, [1.0, 1.0, 1.5])
    system = system_with(straight, mp.forces.RodCollision(rod, 1.0, radius))
    assert look(system).potential_energy == 0.0


def test_every_pair_of_kinds_of_shapes():
    """A ball, a membrane and a rod repel each other: forces on the rod add up with theirs to zero."""
    topology = mp.Topology()
    ball = topology.add_balls([[0.0, 0.8, 2.0]], 0.5, mass=1.0)
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(4, 4, 1.0), vertex_mass=1.0)
    rod = topology.add_rod(*mp.rods.uniform(8, 0.5), 0.5, 1.0, [1.0, 1.0, 1.5])
    for pair in itertools.combinations((ball, sheet, rod), 2):
        if rod not in pair:
            continue
        system = system_with(topology, mp.forces.SoftCollisions(list(pair), 1.0, 0.5))
        forces = look(system).forces
        assert np.abs(forces[rod.beads]).max() > 1e-3
        np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-14)
