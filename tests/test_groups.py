"""Matrix groups by constraints: SO(n) as the columns of a matrix, SE(3) as four points; docs/groups.md."""

import numpy as np
import pytest
from builders import system_with
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import medyanpy as mp


def rotations(topology, q, mass=0.5):
    """Beads of the columns of q (n, n), three numbers each: (n, k, 3); coordinates that are too many stay at 0."""
    n = len(q)
    k = -(-n // 3)
    columns = np.zeros((n, 3 * k))
    columns[:, :n] = q.T
    beads = topology.add_beads(columns.reshape(-1, 3), mass=mass)
    names = [[f"{'xyz'[c % 3]}{k * i + c // 3 + 1}" for c in range(3 * k)] for i in range(n)]
    texts = [
        " + ".join(f"{a}*{b}" for a, b in zip(names[i][:n], names[j][:n], strict=True)) + " - 1" * (i == j)
        for i in range(n) for j in range(i, n)
    ]  # fmt: skip
    texts += [name for own in names for name in own[n:]]
    topology.constrain(texts, [beads.beads], tolerance=1e-13, length=1.0)
    return beads


def matrices(positions, n):
    return positions.reshape(n, -1)[:, :n].T


def motion(n, h, steps, seed=1):
    """A rotation (n, n) at the start, its Ω̂, the context, and the matrix after some steps; free motion."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    spin = rng.normal(size=(n, n))
    spin -= spin.T
    topology = mp.Topology()
    beads = rotations(topology, q)
    context = mp.Context(system_with(topology), mp.VerletIntegrator(h), threads=1)
    v = np.zeros((n, len(beads) // n * 3))
    v[:, :n] = (q @ spin).T
    context.set_velocities(v.reshape(-1, 3))
    context.step(steps)
    return q, spin, context


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_free_motion_is_along_one_parameter_subgroups(n):
    """With equal masses the metric is bi-invariant: Q(t) = Q(0) exp(tΩ̂), to order 2; QᵀQ = 1 at every step; and the
    momenta of both symmetries, QᵀQ̇ and Q̇Qᵀ, to rounding."""
    errors = []
    for h in (0.02, 0.01):
        q, spin, context = motion(n, h, round(1.0 / h))
        state = context.get_state(positions=True, velocities=True)
        found, rate = matrices(state.positions, n), matrices(state.velocities, n)
        errors.append(np.abs(found - q @ expm(spin)).max())
        assert np.abs(found.T @ found - np.eye(n)).max() < 1e-12
        assert np.abs(found.T @ rate - spin).max() < 0.02 * np.abs(spin).max()
        left = rate @ found.T - found @ rate.T
        np.testing.assert_allclose(left, 2.0 * q @ spin @ q.T, atol=1e-10)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    assert np.linalg.det(found) == pytest.approx(np.linalg.det(q), abs=1e-10)
    # What is left of the coordinates: of the group.
    assert sum(h.degrees_of_freedom for h in context.system.topology.handles) == n * (n - 1) // 2


def test_a_double_rotation_has_two_angles():
    """SO(4): planes 1-2 and 3-4 turn by two rates at once, as nothing in space does."""
    topology = mp.Topology()
    rotations(topology, np.eye(4))
    context = mp.Context(system_with(topology), mp.VerletIntegrator(0.005), threads=1)
    spin = np.zeros((4, 4))
    spin[1, 0], spin[0, 1], spin[3, 2], spin[2, 3] = 1.0, -1.0, 0.3, -0.3
    v = np.zeros((4, 6))
    v[:, :4] = spin.T
    context.set_velocities(v.reshape(-1, 3))
    context.step(200)
    found = matrices(context.get_state(positions=True).positions, 4)
    angles = np.arctan2(found[[1, 3], [0, 2]], found[[0, 2], [0, 2]])
    np.testing.assert_allclose(angles, [1.0, 0.3], atol=1e-5)


def test_rigid_motions_are_four_points():
    """SE(3): six distances of four points leave the group of rigid motions; beside a rigid body of the same masses, in
    a field that turns and moves it, to order 2."""
    rng = np.random.default_rng(3)
    mass = np.array([1.0, 2.0, 0.7, 1.3])
    points = rng.normal(size=(4, 3))
    centre = mass @ points / mass.sum()
    arms = points - centre
    inertia = sum(m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a in zip(mass, arms, strict=True))
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.linalg.det(axes)
    velocity, spin = np.array([0.3, -0.2, 0.5]), np.array([0.4, 0.9, -0.6])
    pull = np.array([[0.5, 0.0, -1.0], [0.0, 0.3, 0.0], [-0.2, 0.0, 0.4], [0.1, -0.6, 0.2]])
    ends = []
    for h in (0.02, 0.01):
        topology = mp.Topology()
        beads = topology.add_beads(points, mass)
        pairs = np.array([(i, j) for i in range(4) for j in range(i)])
        apart = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
        topology.constrain("(x1-x2)^2 + (y1-y2)^2 + (z1-z2)^2 - d^2", pairs, d=apart, tolerance=1e-13)
        system = system_with(topology, mp.forces.UniformField(beads, pull))
        context = mp.Context(system, mp.VerletIntegrator(h), threads=1)
        context.set_velocities(velocity + np.cross(spin, arms))
        context.step(round(1.0 / h))
        assert beads.degrees_of_freedom + sum(
            handle.degrees_of_freedom for handle in topology.handles if handle is not beads) == 6
        ours = context.get_state(positions=True).positions

        topology = mp.Topology()
        quaternion = np.roll(Rotation.from_matrix(axes).as_quat(), 1)
        body = topology.add_rigid_bodies([centre], [quaternion], mass.sum(), moments)
        system = system_with(topology, mp.forces.UniformField(body.sites(arms @ axes), pull))
        context = mp.Context(system, mp.VerletIntegrator(h), threads=1)
        context.set_velocities([velocity])
        context.set_angular_momenta([moments * (spin @ axes)])
        context.step(round(1.0 / h))
        state = context.get_state(positions=True)
        turned = Rotation.from_quat(np.roll(state.orientations[0], -1)).as_matrix()
        ends.append(np.abs(ours - (state.positions[0] + arms @ axes @ turned.T)).max())
    assert ends[0] / ends[1] == pytest.approx(4.0, rel=0.1)
    assert ends[1] < 1e-3
