"""What bodies at joints sample: orientations of a double pendulum against quadrature. False alarms: 1e-6 each."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance

KT = 1.5
# Of both bodies in their frames: from the centre to the joint before it, and of the first to the one after it.
TOP, NEXT, FREE = np.array([0.2, -0.8, 0.3]), np.array([-0.4, 0.9, 0.6]), np.array([0.5, -0.7, 0.0])
MASS = np.array([1.0, 2.5])
INERTIA = np.array([[0.3, 0.2, 0.4], [0.5, 0.3, 0.4]])


def skew(a):
    out = np.zeros((*a.shape[:-1], 3, 3))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        out[..., i, j], out[..., j, i] = -a[..., k], a[..., k]
    return out


def root_of_metric(R, S):
    """(m,) sqrt(det G) of the angular velocities of the two bodies, with the matrices of their orientations."""
    link, arm, first = R @ (NEXT - TOP), S @ -FREE, R @ -TOP
    G = np.zeros((len(R), 6, 6))
    one = R @ np.diag(INERTIA[0]) @ R.transpose(0, 2, 1)
    two = S @ np.diag(INERTIA[1]) @ S.transpose(0, 2, 1)
    for a, m in ((first, MASS[0]), (link, MASS[1])):
        one = one + m * skew(a).transpose(0, 2, 1) @ skew(a)
    G[:, :3, :3], G[:, 3:, 3:] = one, two + MASS[1] * skew(arm).transpose(0, 2, 1) @ skew(arm)
    G[:, :3, 3:] = MASS[1] * skew(link).transpose(0, 2, 1) @ skew(arm)
    G[:, 3:, :3] = G[:, :3, 3:].transpose(0, 2, 1)
    return np.sqrt(np.linalg.det(G))


@pytest.mark.slow
def test_a_double_pendulum_of_bodies_has_the_measure_of_its_metric():
    """Squared cosines between the arm to the joint and that from it, and between two axes, with coupled frictions. With
    uniform orientations both would be 1/3, of which the quadrature is 0.03 or more away."""
    from scipy.spatial.transform import Rotation

    n, copies = 400_000, 2500
    R, S = (Rotation.random(n, rng=np.random.default_rng(seed)).as_matrix() for seed in (1, 2))
    weight = root_of_metric(R, S)

    def measured(R, S):
        a, b = R @ (NEXT - TOP), S @ -FREE
        cosine = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        return np.array([cosine**2, np.sum(R[:, :, 2] * S[:, :, 0], axis=1) ** 2])

    expected = np.average(measured(R, S), axis=1, weights=weight)
    assert np.abs(expected - 1.0 / 3.0).max() > 0.03
    chosen = np.random.default_rng(3).choice(n, copies, p=weight / weight.sum())
    R, S = R[chosen], S[chosen]
    hooks = 100.0 * np.arange(copies)[:, None] * [1.0, 0.0, 0.0]
    first = hooks - R @ TOP
    second = first + R @ NEXT - S @ FREE
    q = [Rotation.from_matrix(M).as_quat(scalar_first=True) for M in (R, S)]
    topology = mp.Topology()
    # Friction that couples motion and rotation.
    root = np.random.default_rng(4).normal(size=(6, 6))
    tensor = 0.3 * (root @ root.T) + 0.3 * np.eye(6)
    bodies = [topology.add_rigid_bodies(x, q[k], MASS[k], INERTIA[k], tensor, name=f"body {k}")
              for k, x in enumerate((first, second))]  # fmt: skip
    topology.join(bodies[0].sites([TOP]), mp.Sites.anchors(hooks), tolerance=1e-9)
    topology.join(bodies[0].sites([NEXT]), bodies[1].sites([FREE]), tolerance=1e-9)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.05, kT=KT, seed=11))
    context.set_velocities_to_temperature(kT=KT, seed=12)
    total, squares, freedom = 0.0, 0.0, 0
    looks = 12
    for _ in range(looks):
        context.step(30)
        state = context.get_state(positions=True, energy=True)
        turns = [Rotation.from_quat(state.orientations[b.rows], scalar_first=True).as_matrix() for b in bodies]
        total = total + measured(*turns)
        own = sum(handle.degrees_of_freedom for handle in topology.handles)
        squares, freedom = squares + own * state.temperature * mp.units.boltzmann, freedom + own
    assert own == 6 * copies
    check_mean("cosine between arms, squared", total[0] / looks, expected[0], sees=0.03)
    check_mean("cosine between axes, squared", total[1] / looks, expected[1], sees=0.03)
    check_variance("temperature", squares, freedom, KT, sees=0.03)


@pytest.mark.slow
def test_a_body_that_hangs_turns_by_the_law_of_langevin_in_blocks():
    """⟨cos θ⟩ = coth a - 1/a of the arm to its centre in a field of a = 2.1 kT, with M( ) for any timestep: here one at
    which plain steps lose the joint, and one of five blocks is refused."""
    arm, force = np.array([0.6, -0.3, 0.4]), 4.0
    topology = mp.Topology()
    body = topology.add_rigid_bodies([arm], [[1.0, 0.0, 0.0, 0.0]], 1.0, [0.4, 0.5, 0.3], (0.5, 0.7))
    topology.join(body.sites([-arm]), mp.Sites.anchors([[0.0, 0.0, 0.0]]))
    system = mp.System(topology)
    system.add_force(mp.forces.UniformField(body, [0.0, 0.0, -force]))
    context = mp.Context(system, mp.SplittingIntegrator("OM(BABAB)O", 0.8, kT=KT, seed=3))
    context.set_velocities_to_temperature(kT=KT, seed=4)
    context.step(100)
    cosines = []
    for _ in range(2500):
        context.step(10)
        cosines.append(-context.get_state(positions=True).positions[0, 2] / np.linalg.norm(arm))
    a = force * np.linalg.norm(arm) / KT
    check_mean("cos θ", np.array(cosines), 1.0 / np.tanh(a) - 1.0 / a, sees=0.07, time_series=True)
