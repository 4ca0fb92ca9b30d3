"""Oriented beads: free rotation, torques, friction and noise of all six momenta."""

import itertools

import numpy as np
import pytest
from builders import look, refuses, system_with
from scipy.integrate import solve_ivp

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.testing import check_mean, check_variance, thermal

INERTIA = {
    "sphere": (2.0, 2.0, 2.0),
    "prolate": (3.0, 3.0, 1.0),
    "oblate": (1.0, 1.0, 1.8),
    "asymmetric": (1.0, 2.0, 2.6),
}


def turns(n, seed=1):
    q = np.random.default_rng(seed).normal(size=(n, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


def bodies(n, word, h, *, inertia=INERTIA["asymmetric"], mass=1.5, friction=0.0, kT=1.0, parts=1, seed=1, threads=1,
           force=None, **how):  # fmt: skip
    """A context with n of them in random orientations and velocities."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    handle = topology.add_rigid_bodies(rng.normal(0.0, 3.0, (n, 3)), turns(n, seed), mass, inertia, friction,
                                       rotation_parts=parts, **how)  # fmt: skip
    system = mp.System(topology)
    if force is not None:
        system.add_force(force(handle))
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=7), threads=threads)
    context.set_velocities_to_temperature(kT=kT, seed=3)
    return context, handle


def in_space(state):
    """Angular momenta in space."""
    return quaternions.turned(state.orientations, state.angular_momenta)


def spinning(state, handle):
    return 0.5 * (state.angular_momenta**2 / handle.inertia).sum(axis=1)


@pytest.mark.parametrize("name", INERTIA)
def test_invariants_of_free_rotation(name):
    """Angular momentum in space and the length of quaternions to round-off, at every step; energy to h²."""
    errors = []
    for h in (0.04, 0.02):
        context, handle = bodies(37, "BAB", h, inertia=INERTIA[name])
        start = look(context)
        e0, worst = spinning(start, handle), 0.0
        for _ in range(round(4.0 / h)):
            context.step(1)
            state = look(context)
            assert np.abs(np.linalg.norm(state.orientations, axis=1) - 1.0).max() < 5e-16
            np.testing.assert_allclose(in_space(state), in_space(start), rtol=0.0, atol=1e-13)
            worst = max(worst, np.abs(spinning(state, handle) - e0).max())
        errors.append(worst)
        np.testing.assert_allclose(state.kinetic_energy,
                                   0.75 * (state.velocities**2).sum() + spinning(state, handle).sum())  # fmt: skip
    if name == "sphere":
        assert max(errors) < 1e-13
    else:
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def test_parts_are_smaller_steps():
    """J parts: the rotation is that of J steps of h/J, to the bit but for renormalising."""
    one, _ = bodies(20, "BAB", 0.01, parts=1)
    four, _ = bodies(20, "BAB", 0.04, parts=4)
    one.step(40)
    four.step(10)
    a, b = look(one), look(four)
    np.testing.assert_allclose(a.orientations, b.orientations, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(a.angular_momenta, b.angular_momenta, rtol=0.0, atol=1e-14)


def euler(t, y, inertia):
    """Euler's equations and those of the quaternion, in the body frame."""
    q, spin = y[:4], y[4:]
    w = spin / inertia
    dq = 0.5 * np.array([
        -q[1] * w[0] - q[2] * w[1] - q[3] * w[2], q[0] * w[0] + q[2] * w[2] - q[3] * w[1],
        q[0] * w[1] + q[3] * w[0] - q[1] * w[2], q[0] * w[2] + q[1] * w[1] - q[2] * w[0],
    ])  # fmt: skip
    return np.concatenate([dq, np.cross(spin, w)])


@pytest.mark.parametrize("name", ["prolate", "asymmetric"])
def test_against_eulers_equations(name):
    """Of second order in h, and right to 1e-9 when extrapolated."""
    inertia = np.array(INERTIA[name])
    ends = []
    for h in (0.02, 0.01, 0.005):
        context, _ = bodies(5, "ABA", h, inertia=inertia)
        start = look(context)
        context.step(round(3.0 / h))
        end = look(context)
        ends.append(np.column_stack([end.orientations, end.angular_momenta]))
    exact = np.array([
        solve_ivp(euler, (0.0, 3.0), np.concatenate(y), "DOP853", args=(inertia,), rtol=1e-12, atol=1e-13).y[:, -1]
        for y in zip(start.orientations, start.angular_momenta, strict=True)
    ])  # fmt: skip
    errors = [np.abs(end - exact).max() for end in ends]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(2.0, abs=0.02)
    once = [(4.0 * b - a) / 3.0 for a, b in itertools.pairwise(ends)]
    twice = (16.0 * once[1] - once[0]) / 15.0
    assert np.abs(twice - exact).max() < 1e-7 * 10 * max(errors) + 1e-9


def test_turns_of_any_size():
    """About a principal axis bodies turn by h L/I exactly: by 1e-3 to 40 radians in a step, a slow body the same to the
    bit beside fast ones and alone."""
    h, inertia = 0.5, np.array(INERTIA["asymmetric"])
    rate = np.array([1e-3, 0.7, 1.5, 1.6, 3.0, 7.0, 40.0]) / h
    spin = np.concatenate([np.diag(r * inertia) for r in rate])
    n, steps = len(spin), 9
    context, handle = bodies(n, "BAB", h)
    context.set_angular_momenta(spin)
    context.step(steps)
    state = look(context)
    angle = 0.5 * h * steps * np.repeat(rate, 3)
    turn = np.column_stack([np.cos(angle), np.sin(angle)[:, None] * np.tile(np.eye(3), (len(rate), 1))])
    exact = quaternions.product(handle.orientations, turn)
    np.testing.assert_allclose(state.orientations, exact, atol=2e-14 * steps)
    np.testing.assert_allclose(state.angular_momenta, spin, rtol=1e-14)
    slow, _ = bodies(n, "BAB", h)
    slow.set_angular_momenta(np.where(np.arange(n)[:, None] < 3, spin, 0.0))
    slow.step(steps)
    assert np.array_equal(look(slow).orientations[:3], state.orientations[:3])


@pytest.mark.parametrize("name", ["prolate", "oblate"])
def test_symmetric_tops_precess(name):
    """The axis goes round the angular momentum at |L|/I1, the momentum round the axis at (1/I3 - 1/I1) L3."""
    i1, _, i3 = INERTIA[name]
    h, n = 0.005, 400
    context, _ = bodies(10, "BAB", h, inertia=INERTIA[name], parts=2)
    start = look(context)
    context.step(n)
    end = look(context)
    axis = quaternions.turned(start.orientations, np.tile([0.0, 0.0, 1.0], (10, 1)))
    spin = in_space(start)
    size = np.linalg.norm(spin, axis=1)
    angle = n * h * size / i1
    turn = np.column_stack([np.cos(0.5 * angle), np.sin(0.5 * angle)[:, None] * spin / size[:, None]])
    np.testing.assert_allclose(quaternions.turned(end.orientations, np.tile([0.0, 0.0, 1.0], (10, 1))),
                               quaternions.turned(turn, axis), rtol=0.0, atol=2e-5)  # fmt: skip
    rate = (1.0 / i3 - 1.0 / i1) * start.angular_momenta[:, 2]
    phase = np.exp(-1j * n * h * rate)
    across = start.angular_momenta[:, 0] + 1j * start.angular_momenta[:, 1]
    found = end.angular_momenta[:, 0] + 1j * end.angular_momenta[:, 1]
    np.testing.assert_allclose(found, phase * across, rtol=0.0, atol=2e-5)
    np.testing.assert_allclose(end.angular_momenta[:, 2], start.angular_momenta[:, 2], rtol=0.0, atol=2e-5)


@pytest.mark.slow
def test_dzhanibekov_flips():
    """Turning about the middle axis is unstable: the period is that of Jacobi's elliptic functions."""
    from scipy.special import ellipk

    inertia = np.array([1.0, 2.0, 3.0])
    spin = np.array([0.02, 4.0, 0.01])
    topology = mp.Topology()
    topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, inertia)
    h, every = 0.002, 4
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(h), threads=1)
    context.set_angular_momenta([spin])
    # Landau & Lifshitz, Mechanics, section 37, with axes 1 < 2 < 3 and M² > 2 E I2 or below.
    energy, square = 0.5 * (spin**2 / inertia).sum(), (spin**2).sum()
    i1, i2, i3 = inertia
    if square < 2.0 * energy * i2:
        i1, i3 = i3, i1
    k2 = (i2 - i1) * (2.0 * energy * i3 - square) / ((i3 - i2) * (square - 2.0 * energy * i1))
    period = 4.0 * ellipk(k2) * np.sqrt(i1 * i2 * i3 / ((i3 - i2) * (square - 2.0 * energy * i1)))
    middle = []
    for _ in range(round(2.2 * period / h / every)):
        context.step(every)
        middle.append(look(context).angular_momenta[0, 1])
    middle = np.array(middle)
    at = np.flatnonzero((middle[:-1] < 0.0) & (middle[1:] >= 0.0))
    up = at + middle[at] / (middle[at] - middle[at + 1])
    assert len(up) >= 2
    assert every * h * np.diff(up)[0] == pytest.approx(period, rel=1e-4)
    assert middle.min() < -3.99
    assert middle.max() > 3.99


def field(handle, strength=1.0):
    """Two sites with opposite charges in a field along z: a dipole along the body's first axis."""
    sites = handle.sites([[0.7, 0.0, 0.0], [-0.7, 0.0, 0.0]])
    up = np.tile([[0.0, 0.0, strength], [0.0, 0.0, -strength]], (len(handle), 1))
    return forces.UniformField(sites, up)


@pytest.mark.parametrize("word", ["BAB", "ABA", "BAGAB"])
def test_runs_backwards(word):
    context, _ = bodies(30, word, 0.01, force=field)
    start = look(context)
    context.step(300)
    there = look(context)
    context.set_velocities(-there.velocities)
    context.set_angular_momenta(-there.angular_momenta)
    context.step(300)
    back = look(context)
    assert np.abs(there.orientations - start.orientations).max() > 0.5
    np.testing.assert_allclose(back.orientations, start.orientations, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(-back.angular_momenta, start.angular_momenta, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(back.positions, start.positions, rtol=0.0, atol=1e-9)


def test_energy_in_a_field_is_of_second_order():
    errors = []
    for h in (0.02, 0.01):
        context, _ = bodies(30, "BAB", h, force=field)
        e0, worst = look(context).total_energy, 0.0
        for _ in range(round(4.0 / h)):
            context.step(1)
            worst = max(worst, abs(look(context).total_energy - e0))
        errors.append(worst)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_torques_of_sites():
    context, _handle = bodies(12, "BAB", 0.01, force=field)
    state = context.get_state(positions=True, forces=True, energy=True)
    axis = quaternions.matrices(state.orientations)
    torque = np.cross(1.4 * axis[:, :, 0], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(quaternions.turned(state.orientations, state.torques), torque, rtol=0.0, atol=1e-14)
    assert state.potential_energy == pytest.approx(-1.4 * axis[:, 2, 0].sum(), rel=1e-13)
    assert np.abs(state.forces).max() < 1e-14


def random_tensor(rng):
    a = rng.normal(size=(6, 6))
    return a @ a.T / 3.0 + 0.5 * np.eye(6)


def test_exact_step_of_o():
    """One O: mean and covariance of the momenta against the matrix exponential, 40 000 bodies of two species.

    5 standard errors; a wrong coupling of translation and rotation changes elements of the covariance by tens of per
    cent, one standard error is 0.7 %."""
    from scipy.linalg import expm

    rng = np.random.default_rng(5)
    n, h, kT = 40_000, 0.1, 1.7
    inertia, mass = np.array([0.2, 0.4, 0.5]), 3.0
    two = np.array([random_tensor(rng), random_tensor(rng)])
    tensors = two[np.arange(n) % 2]
    topology = mp.Topology()
    topology.add_rigid_bodies(np.zeros((n, 3)), turns(n), mass, inertia, tensors)
    integrator = mp.SplittingIntegrator("BAO", h, kT=kT, seed=2, symmetric=False)
    context = mp.Context(mp.System(topology), integrator, threads=2)
    q = look(context).orientations
    p0 = np.array([0.3, -1.0, 0.5, 1.0, 0.2, -0.7])
    v, spin = quaternions.turned(q, np.tile(p0[:3] / mass, (n, 1))), np.tile(p0[3:], (n, 1))
    context.set_velocities(v)
    context.set_angular_momenta(spin)
    context.step(1)
    state = look(context)
    # A turns all of them alike, so that all come to O with the same momenta in the body frame.
    back = state.orientations * [1.0, -1.0, -1.0, -1.0]
    before = np.column_stack(
        [mass * quaternions.turned(back, v), quaternions.turned(back, quaternions.turned(q, spin))]
    )
    p0 = before[0]
    assert np.abs(before - p0).max() < 1e-13
    p = np.column_stack([mass * quaternions.turned(back, state.velocities), state.angular_momenta])
    M = np.diag([mass] * 3 + list(inertia))
    for s, tensor in enumerate(two):
        own = p[s::2]
        c1 = expm(-h * tensor @ np.linalg.inv(M))
        covariance = kT * (M - c1 @ M @ c1.T)
        error = np.sqrt(np.diag(covariance) / len(own))
        assert (np.abs(own.mean(axis=0) - c1 @ p0) < 5.0 * error).all()
        size = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / np.sqrt(len(own))
        assert (np.abs(np.cov(own.T) - covariance) < 5.0 * size).all()


def test_every_body_has_its_own_friction():
    """300 species, without noise: each decays by its own matrix exponential, in its own frame."""
    from scipy.linalg import expm

    rng = np.random.default_rng(9)
    n, h = 300, 0.4
    tensors = np.array([random_tensor(rng) for _ in range(n)])
    mass, inertia = rng.uniform(1.0, 3.0, n), rng.uniform(1.0, 1.9, (n, 3))
    topology = mp.Topology()
    topology.add_rigid_bodies(np.zeros((7, 3)), turns(7), 1.0, [1.0, 1.0, 1.0], 0.3)
    handle = topology.add_rigid_bodies(np.zeros((n, 3)), turns(n), mass, inertia, tensors)
    integrator = mp.SplittingIntegrator("BAO", h, kT=1e-40, seed=2, symmetric=False)
    context = mp.Context(mp.System(topology), integrator, threads=2)
    v, spin = rng.normal(size=(n + 7, 3)), rng.normal(size=(n + 7, 3))
    context.set_velocities(v)
    context.set_angular_momenta(spin)
    before = in_space(look(context))[handle.rows]
    context.step(1)
    state = look(context)
    back = (state.orientations * [1.0, -1.0, -1.0, -1.0])[handle.rows]
    p = np.column_stack([mass[:, None] * quaternions.turned(back, v[7:]), quaternions.turned(back, before)])
    M = np.concatenate([np.repeat(mass[:, None], 3, 1), inertia], axis=1)
    expected = np.array([expm(-h * g / m) @ p_i for g, m, p_i in zip(tensors, M, p, strict=True)])
    found = mass[:, None] * quaternions.turned(back, state.velocities[handle.beads])
    np.testing.assert_allclose(found, expected[:, :3], rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(state.angular_momenta[handle.rows], expected[:, 3:], rtol=0.0, atol=1e-13)


def test_two_os_of_a_word_draw_their_own_noise():
    """20 000 bodies from rest, no friction to speak of: variances add up. One noise twice would double them."""
    n, h, gamma = 20_000, 1e-3, 0.1
    topology = mp.Topology()
    topology.add_rigid_bodies(np.zeros((n, 3)), turns(n), 2.0, [0.5, 0.5, 0.5], (gamma, gamma))
    integrator = mp.SplittingIntegrator("OBABO", h, kT=1.0, seed=2)
    context = mp.Context(mp.System(topology), integrator, threads=2)
    context.step(1)
    state = look(context)
    check_variance("L", (state.angular_momenta**2).sum(), 3 * n, 0.5 * -np.expm1(-2.0 * h * gamma / 0.5), sees=0.049)
    check_variance("v", (state.velocities**2).sum(), 3 * n, 0.5 * -np.expm1(-2.0 * h * gamma / 2.0), sees=0.049)


def test_handles_turn_by_themselves():
    """Two handles of different inertia with beads between them: each as if it were alone, to the bit."""
    ends = []
    for which in (("a",), ("b",), ("a", "b")):
        topology = mp.Topology()
        handles = {}
        for name, n, inertia, parts in (("a", 37, INERTIA["asymmetric"], 1), ("b", 21, INERTIA["prolate"], 3)):
            if name in which:
                x = np.zeros((n, 3))
                handles[name] = topology.add_rigid_bodies(x, turns(n, n), 1.0, inertia, rotation_parts=parts, name=name)
                topology.add_beads([[1.0, 0, 0]], mass=1.0)
        context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
        spins = np.concatenate([turns(len(h), 3 + len(h))[:, :3] for h in handles.values()])
        context.set_angular_momenta(spins)
        context.step(10)
        state = look(context)
        ends.append({k: (state.orientations[h.rows], state.angular_momenta[h.rows]) for k, h in handles.items()})
        assert np.abs(state.angular_momenta - spins).max() > 0.1
    for alone in ends[:2]:
        for name, (q, spin) in alone.items():
            np.testing.assert_array_equal(ends[2][name][0], q)
            np.testing.assert_array_equal(ends[2][name][1], spin)


def test_fixed_bodies_stay_as_they_are():
    fixed = np.arange(20) % 3 == 1
    friction = random_tensor(np.random.default_rng(1))
    context, _handle = bodies(20, "BAOAB", 0.05, friction=friction, force=field, fixed=fixed)
    start = look(context)
    assert (start.angular_momenta[fixed] == 0.0).all()
    context.step(20)
    end = look(context)
    for part in ("positions", "velocities", "orientations", "angular_momenta"):
        # The first step may bring a quaternion nearer to length 1 by a rounding.
        np.testing.assert_allclose(getattr(end, part)[fixed], getattr(start, part)[fixed], rtol=0.0, atol=3e-16)
        assert (getattr(end, part)[~fixed] != getattr(start, part)[~fixed]).all()


def test_turns_that_cannot_be_computed_are_noticed():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]] * 3, mass=1.0)
    topology.add_rigid_bodies(np.zeros((30, 3)), turns(30), 1.0, [1.0, 1.0, 1.0], name="other")
    topology.add_rigid_bodies(np.zeros((30, 3)), turns(30), 1.0, [1.0, 1.0, 1.0], name="tops")
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
    spin = np.zeros((60, 3))
    spin[52, 1] = 1e8
    context.set_angular_momenta(spin)
    refuses(mp.SimulationError, r"bead 55 .*tops", context.step, 1)


def test_maxwell_and_boltzmann():
    """BAOAB in a field: <cos> is Langevin's function, and every momentum has its kT. 4 000 bodies."""
    friction = random_tensor(np.random.default_rng(8))
    context, handle = bodies(4000, "BAOAB", 0.1, friction=friction, force=lambda b: field(b, 1.5))
    context.step(300)
    state = look(context)
    x = 1.4 * 1.5
    cos = quaternions.matrices(state.orientations)[:, 2, 0]
    mean = 1.0 / np.tanh(x) - 1.0 / x
    assert abs(cos.mean() - mean) < 5.0 * np.sqrt((1.0 - 2.0 * mean / x - mean**2) / 4000)
    assert handle.degrees_of_freedom == 24000
    measured = state.temperatures["rigid bodies"] * mp.units.boltzmann
    check_variance("momenta after O", 24000 * measured, 24000, 1.0, sees=0.077)


def test_drawn_velocities():
    context, handle = bodies(5000, "BAB", 0.1, inertia=(1.0, 2.0, 2.6), kT=2.0)
    state = look(context)
    for k in range(3):
        spin = state.angular_momenta[:, k]
        check_variance(f"axis {k}", spin @ spin, 5000, 2.0 * handle.inertia[0, k], sees=0.18)
        check_variance(f"v {k}", (state.velocities[:, k] ** 2).sum(), 5000, 2.0 / 1.5, sees=0.18)
    c = np.corrcoef(np.column_stack([state.velocities, state.angular_momenta]).T) - np.eye(6)
    assert np.abs(c).max() < 6.0 / np.sqrt(5000)


@pytest.mark.slow
def test_translation_alone_is_that_of_beads():
    """Without friction of rotation or coupling, velocities have the law of free beads: D = (kT/γ) x coth x."""
    n, h, gamma = 4000, 0.2, 3.0
    context, _ = bodies(n, "BAOAB", h, friction=(gamma, 1.0))
    context.step(200)
    start = look(context).positions
    context.step(400)
    moved = look(context).positions - start
    x = gamma * h / (2.0 * 1.5)
    tau = 1.5 / gamma
    expected = 2.0 / gamma * x / np.tanh(x) * 400 * h - 2.0 / gamma * tau * (1.0 - np.exp(-400 * h / tau)) * 1.0
    check_variance("displacements", (moved**2).sum(), 3 * n, expected, sees=0.12)


@pytest.mark.slow
def test_free_rotors_forget_their_direction():
    """Spheres with strong friction: <P1> and <P2> decay with 2D and 6D, D = kT/γ; 6 000 of them."""
    n, h, gamma = 6000, 0.01, 20.0
    context, _ = bodies(n, "BAOAB", h, inertia=(0.5, 0.5, 0.5), friction=(1.0, gamma))
    context.step(50)
    a = quaternions.matrices(look(context).orientations)[:, :, 0]
    steps = 800
    context.step(steps)
    b = quaternions.matrices(look(context).orientations)[:, :, 0]
    cos = np.einsum("ij,ij->i", a, b)
    x = gamma * h / (2.0 * 0.5)
    # Free flights of the mean length: the discrete law of BAOAB, and inertia takes off one relaxation time.
    angle = (steps * h - 0.5 / gamma) / gamma * x / np.tanh(x)
    check_mean("P1", cos, np.exp(-2.0 * angle), sees=0.047)
    check_mean("P2", 1.5 * cos**2 - 0.5, np.exp(-6.0 * angle), sees=0.049)


def test_same_bits():
    ends = []
    for threads, cuts in [(1, [30]), (3, [30]), (2, [1, 9, 20])]:
        friction = random_tensor(np.random.default_rng(1))
        context, _ = bodies(3000, "BAOAB", 0.02, friction=friction, force=field, threads=threads)
        for k in cuts:
            context.step(k)
        ends.append(look(context))
    for end in ends[1:]:
        for part in ("positions", "velocities", "orientations", "angular_momenta"):
            assert (getattr(end, part) == getattr(ends[0], part)).all()


def test_minimisation_turns_bodies():
    topology = mp.Topology()
    handle = topology.add_rigid_bodies(np.zeros((8, 3)), turns(8), 1.0, (1.0, 2.0, 2.5))
    simulation = mp.Simulation(system_with(topology, field(handle)), mp.VerletIntegrator(0.01), threads=1)
    simulation.minimize_energy(tolerance=1e-8)
    state = simulation.context.get_state(positions=True, energy=True)
    assert state.potential_energy == pytest.approx(-1.4 * 8, rel=1e-12)
    np.testing.assert_allclose(quaternions.matrices(state.orientations)[:, :, 0], np.tile([0.0, 0, 1], (8, 1)),
                               atol=1e-7)  # fmt: skip


def test_checkpoints_and_documents(tmp_path):
    def simulation():
        topology = mp.Topology()
        free = topology.add_beads([[9.0, 0, 0], [0, 9.0, 0]], 1.0, 1.0)
        friction = random_tensor(np.random.default_rng(2))
        a = topology.add_rigid_bodies(np.eye(3), turns(3), [1.0, 2.0, 3.0], (1.0, 2.0, 2.5), friction, name="a")
        b = topology.add_rigid_bodies(-np.eye(3), turns(3, 4), 1.0, turns(3, 5)[:, :3] ** 2 + 1.0, 0.5,
                                      rotation_parts=2, name="b")  # fmt: skip
        return mp.Simulation(system_with(topology, field(b), forces.HarmonicTrap([free, a, b], 1.0, [0, 0, 0])),
                             mp.SplittingIntegrator("BAOAB", 0.05, kT=1.0, seed=3), threads=1)  # fmt: skip

    s = simulation()
    s.context.set_velocities_to_temperature(kT=1.0, seed=1)
    s.step(10)
    s.save_checkpoint(tmp_path / "a.checkpoint")
    s.step(10)
    end = look(s.context)
    for again in (simulation(), mp.Simulation(*mp.deserialize(mp.serialize(s)), threads=1)):
        again.load_checkpoint(tmp_path / "a.checkpoint")
        again.step(10)
        other = look(again.context)
        for part in ("positions", "velocities", "orientations", "angular_momenta"):
            assert (getattr(end, part) == getattr(other, part)).all()
    third = mp.Context(s.system, mp.VerletIntegrator(0.1))
    third.set_state(end)
    assert (look(third).orientations == end.orientations).all()
    assert (look(third).angular_momenta == end.angular_momenta).all()


GOOD = {"positions": [[0.0, 0, 0]], "orientations": [[1.0, 0, 0, 0]], "mass": 1.0, "inertia": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"orientations": [[1.0, 1e-2, 0, 0]]}, mp.TopologyError, r"orientations\[0\] = .* has length 1\.00005, but"),
    ({"orientations": [[1.0, 0, 0]]}, mp.TopologyError, r"orientations must have shape \(1, 4\)"),
    ({"inertia": [1.0, 0.0, 1.0]}, mp.ParameterError, r"inertia\[1\] = 0 but must be > 0"),
    ({"inertia": [1.0, 1.0, 1e-14]}, mp.ParameterError, r"inertia\[2\] = 1e-14 but must be > 0 \(a body on a line"),
    ({"inertia": [1.0, 1.0, 2.1]}, mp.ParameterError, r"inertia\[2\] = 2.1 but must be at most the sum"),
    ({"inertia": [1.0, 1.0]}, mp.ParameterError, r"inertia must have shape \(3,\)"),
    ({"inertia": [[1.0, 1.0, 1.0], [1.0]]}, mp.ParameterError, r"inertia must have shape \(3,\) or \(1, 3\): "),
    ({"mass": 0.0}, mp.ParameterError, "mass"),
    ({"friction": -1.0}, mp.ParameterError, "friction of translation = -1.0 but must be"),
    ({"friction": (1.0, -1.0)}, mp.ParameterError, "friction of rotation = -1.0 but must be"),
    ({"friction": [1.0, 2.0, 3.0]}, mp.ParameterError, r"must be a number, \(translational, rotational\)"),
    ({"friction": np.diag([1.0, 1, 1, 1, 1, -1])}, mp.ParameterError, r"friction\[5, 5\] = -1 but must be > 0"),
    ({"friction": np.eye(6) + np.eye(6, k=1)}, mp.ParameterError, "friction is not symmetric"),
    ({"friction": 1.0, "friction_point": [1.0, 0, 0]}, mp.ParameterError, "only a 6×6 tensor has a reference"),
    ({"rotation_parts": 0}, mp.ParameterError, "rotation_parts"),
])  # fmt: skip
def test_refusals(change, error, message):
    refuses(error, message, mp.Topology().add_rigid_bodies, **{**GOOD, **change})


def test_friction_about_another_point():
    """A tensor about a point is moved to the centre of mass; numbers are spread over the diagonal."""
    tensor = random_tensor(np.random.default_rng(3))
    topology = mp.Topology()
    a = topology.add_rigid_bodies(**GOOD, friction=tensor, friction_point=[0.3, 0.1, -0.2])
    moved = mp.rigid.move_friction(tensor, [-0.3, -0.1, 0.2])
    np.testing.assert_allclose(a.kind.friction_tensors[0], moved, rtol=0.0, atol=1e-15)
    b = topology.add_rigid_bodies(**GOOD, friction=(2.0, 3.0))
    np.testing.assert_array_equal(b.kind.friction_tensors[0], np.diag([2.0, 2, 2, 3, 3, 3]))


def test_set_orientations():
    context, _handle = bodies(3, "BAB", 0.1)
    q = turns(3, 9)
    context.set_orientations(q)
    np.testing.assert_allclose(look(context).orientations, q, rtol=0.0, atol=1e-16)
    with pytest.raises(mp.TopologyError, match=r"set_orientations: rigid bodies: orientations\[1\] = .* has length"):
        context.set_orientations(q * [[1.0], [1.1], [1.0]])
    refuses(mp.TopologyError, r"angular_momenta must have shape \(3, 3\)", context.set_angular_momenta, q)


def test_the_friction_of_a_handle_is_the_mean_of_its_directions():
    """What `simulation.check()` shows; it was 0 for all bodies."""
    topology = mp.Topology()
    tensor = np.diag([1.0, 2.0, 6.0, 7.0, 8.0, 9.0])
    start = {"positions": [[0.0, 0, 0], [9.0, 0, 0]], "orientations": [[1.0, 0, 0, 0]] * 2, "mass": 2.0}
    bodies = topology.add_rigid_bodies(**start, inertia=[1.0, 1.0, 1.0], friction=tensor)
    assert bodies.friction.tolist() == [3.0, 3.0]
    assert topology.add_rigid_bodies(**start, inertia=[1.0, 1.0, 1.0]).friction.tolist() == [0.0, 0.0]
    system = mp.System(topology)
    with pytest.warns(mp.ThermostatWarning, match="rigid bodies 2"):
        simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 0.1, kT=1.5))
    row = simulation.check().beads[0]
    assert (row.diffusion, row.relaxation) == ((0.5, 0.5), (2.0 / 3.0, 2.0 / 3.0))
