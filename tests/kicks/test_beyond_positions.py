"""Kicks that depend on more than where beads are: they damp, or leave phase volume, and stand in NVE words alone."""

import numpy as np
import pytest
from builders import refuses, system_with
from kicks.scenes import network, run, springs

import medyanpy as mp
from medyanpy.kicks import HamiltonPontryagin, Newmark, PushForwardNewmark

DAMPED = {"classical": Newmark, "push-forward": PushForwardNewmark}


def harmonic_step(kick, omega_h):
    """(2, 2) of one step of a harmonic mode: (x, h v) after it from (1, 0) and from (0, 1)."""
    columns = []
    for x, v in ((1.0, 0.0), (0.0, 1.0)):
        _, system = springs(omega_h**2, [1.0])
        place, speed = run(system, kick, 1.0, 1, [[v, 0.0, 0.0]], [[x, 0.0, 0.0]], runaway=None)
        columns.append([place[0, 0], speed[0, 0]])
    return np.array(columns).T


def damping(omega_h, beta, gamma):
    """|Λ|² of a step while the mode turns: the determinant of the step in any case."""
    return 1.0 - (gamma - 0.5) * omega_h**2 / (1.0 + beta * omega_h**2)


@pytest.mark.unstable
@pytest.mark.parametrize("name", DAMPED)
@pytest.mark.parametrize("gamma", [0.5, 0.55, 0.75, 1.0])
def test_law_of_damping(name, gamma):
    """|Λ| = sqrt(1 - (γ - ½)Ω²/(1 + βΩ²)) per step, Ω = ωh, by the eigenvalues of one step; 1 for γ = ½."""
    for omega_h in (0.03, 0.4, 2.0, 30.0):
        beta = 0.25 * (gamma + 0.5) ** 2 + 0.05
        step = harmonic_step(DAMPED[name](beta, gamma=gamma), omega_h)
        law = np.sqrt(damping(omega_h, beta, gamma))
        np.testing.assert_allclose(np.abs(np.linalg.eigvals(step)), law, rtol=1e-12)


@pytest.mark.unstable
@pytest.mark.parametrize("name", DAMPED)
def test_a_mode_decays_by_the_law_of_damping(name):
    """Over 400 steps, envelope from x and v: the quadratic form that the undamped step keeps falls as |Λ|^2n."""
    omega_h, beta, gamma, n = 0.5, 0.4, 0.6, 400
    step = harmonic_step(DAMPED[name](beta, gamma=gamma), omega_h)
    _, system = springs(omega_h**2, [1.0])
    x, v = run(system, DAMPED[name](beta, gamma=gamma), 1.0, n, [[0.0, 0.0, 0.0]])
    expected = np.linalg.matrix_power(step, n) @ [1.0, 0.0]
    np.testing.assert_allclose([x[0, 0], v[0, 0]], expected, rtol=1e-9)
    # In coordinates in which the step is a rotation times |Λ|.
    _, vectors = np.linalg.eig(step)
    size = np.abs(np.linalg.solve(vectors, np.column_stack([expected, [1.0, 0.0]])))[0]
    assert size[0] / size[1] == pytest.approx(damping(omega_h, beta, gamma) ** (n / 2), rel=1e-9)
    assert size[0] / size[1] < 0.02


@pytest.mark.parametrize(("beta", "gamma"), [(0.3, 0.5), (0.5, 0.5), (0.5, 0.6), (0.5, 0.9)])
def test_newmark_of_any_gamma(beta, gamma):
    """(12), by NumPy: q_(k+1) from Newton's method with the Hessian of a plain Context."""
    topology, system = network(9, 40.0, relaxed=True)
    dt, steps = 0.4, 5
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    mass = topology.handles[0].mass[:, None]

    def acceleration(q):
        plain.set_positions(q)
        return plain.get_state(forces=True).forces / mass

    q = topology.handles[0].positions
    v = np.random.default_rng(1).normal(0.0, 0.1, q.shape)
    ours = run(system, Newmark(beta, gamma=gamma), dt, steps, v)
    a = acceleration(q)
    # The same motion in x = q - βh² a.
    x = run(system, PushForwardNewmark(beta, gamma=gamma), dt, steps, v, q - beta * dt**2 * a)
    for _ in range(steps):
        start = q + dt * v + 0.5 * dt**2 * (1.0 - 2.0 * beta) * a
        for _ in range(20):
            wrong = start + beta * dt**2 * acceleration(q) - q
            jacobian = np.eye(q.size) + beta * dt**2 * plain.hessian().toarray() / np.repeat(mass, 3)[:, None]
            q = q + np.linalg.solve(jacobian, wrong.ravel()).reshape(q.shape)
        old, a = a, acceleration(q)
        v = v + dt * ((1.0 - gamma) * old + gamma * a)
    np.testing.assert_allclose(ours, (q, v), rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(x, (q - beta * dt**2 * a, v), rtol=1e-9, atol=1e-10)


def one_step_newmark(system, beta, gamma, dt, steps, v):
    """Newmark's method with one step of Newton's from where the last step ended, and the acceleration of the linear
    equations, by NumPy."""
    # Only looked at.
    plain = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    mass = np.repeat(system.topology.handles[0].mass, 3)
    q, v, scale = system.topology.handles[0].positions.ravel(), np.ravel(v), beta * dt * dt

    def force(q):
        plain.set_positions(q.reshape(-1, 3))
        return plain.get_state(forces=True).forces.ravel()

    a = force(q) / mass
    for _ in range(steps):
        predicted = q + dt * v + (0.5 - beta) * dt * dt * a
        f = force(q)
        q = q - np.linalg.solve(
            np.diag(mass) + scale * plain.hessian().toarray(), mass * (q - predicted) - scale * f
        )
        new = (q - predicted) / scale
        v = v + dt * ((1.0 - gamma) * a + gamma * new)
        a = new
    return q.reshape(-1, 3), v.reshape(-1, 3)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("gamma", [0.5, 0.7])
def test_one_step_newmark(gamma, closed):
    _, system = network(9, 40.0, relaxed=True, closed=closed)
    v = np.random.default_rng(1).normal(0.0, 0.1, (9, 3))
    kick = Newmark(0.4, gamma=gamma, solver="one-step")
    ours = run(system, kick, 0.2, 12, v)
    np.testing.assert_allclose(ours, one_step_newmark(system, 0.4, gamma, 0.2, 12, v), rtol=1e-10, atol=1e-11)


def test_the_acceleration_of_one_step_newmark_is_state():
    """The acceleration is state: the same bits from a checkpoint. Beads that are put elsewhere start from forces."""
    _, system = network(6, 40.0, relaxed=True)
    v = np.random.default_rng(1).normal(0.0, 0.1, (6, 3))

    def fresh():
        integrator = mp.SplittingIntegrator("BAB", 0.2, kick=Newmark(0.4, solver="one-step"))
        context = mp.Context(system, integrator, threads=1)
        context.set_velocities(v)
        return context

    one, other, third = fresh(), fresh(), fresh()
    one.step(5)
    kept = {name: array.copy() for name, array in one._dynamical_arrays().items()}
    middle = one.get_state(positions=True, velocities=True)
    one.step(5)
    other._set_dynamical_arrays(kept, 5)
    other.step(5)
    third.set_state(middle)
    third.step(5)
    ends = [c.get_state(positions=True, velocities=True) for c in (one, other, third)]
    assert np.array_equal(ends[0].positions, ends[1].positions)
    assert np.array_equal(ends[0].velocities, ends[1].velocities)
    assert np.abs(ends[0].positions - ends[2].positions).max() > 1e-9
    # As a run that begins there.
    anew = fresh()
    anew.set_positions(middle.positions)
    anew.set_velocities(middle.velocities)
    anew.step(5)
    assert np.array_equal(anew.get_state(positions=True).positions, ends[2].positions)


@pytest.mark.parametrize(("make", "order"), [
    (lambda: Newmark(0.3, gamma=0.5), 2), (lambda: Newmark(0.4, gamma=0.6), 1),
    (lambda: PushForwardNewmark(0.4, gamma=0.6), 1), (lambda: Newmark(0.3, solver="one-step"), 2),
])  # fmt: skip
def test_order(make, order):
    """Errors at a fixed time fall as dt for γ other than ½, as dt² for γ = ½."""
    _, system = network()
    v = np.random.default_rng(5).normal(0.0, 0.3, (6, 3))
    exact, _ = run(system, mp.kicks.Explicit(), 2.0 / 4000, 4000, v, order=4)
    errors = [np.abs(run(system, make(), 2.0 / n, n, v)[0] - exact).max() for n in (160, 320)]
    assert errors[0] / errors[1] == pytest.approx(2.0**order, rel=0.06)


def test_momentum_is_kept():
    """Damping is by differences of accelerations, whose forces add up to nothing."""
    rng = np.random.default_rng(9)
    topology = mp.Topology()
    mass = rng.uniform(0.5, 2.0, 5)
    topology.add_beads(np.cumsum(rng.normal(0.0, 0.7, (5, 3)), axis=0), mass)
    system = system_with(topology, mp.forces.HarmonicBonds([[i, i + 1] for i in range(4)], 30.0, 1.0))
    v = rng.normal(0.0, 0.2, (5, 3))
    for kick in (Newmark(0.5, gamma=0.8), Newmark(0.4, solver="one-step")):
        assert np.abs(mass @ run(system, kick, 0.1, 50, v)[1] - mass @ v).max() < 1e-12


# The method on the group -----------------------------------------------------------------------------------------


def hat(w):
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


# Where the torque is not 0: there the error of the first half kick is of order 1.
START = np.array([0.8, 0.6, 0.0, 0.0])


def magnetised(field, inertia=(1.0, 1.0, 1.0), word="BA", h=0.05, kick=None):
    topology = mp.Topology()
    one = topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [START], 1.0, inertia)
    poles = one.sites([[0.0, 0.0, 0.5], [0.0, 0.0, -0.5]])
    system = system_with(topology, mp.forces.UniformField(poles, [[0.0, 0.0, -field], [0.0, 0.0, field]]))
    kick = HamiltonPontryagin() if kick is None else kick
    integrator = mp.SplittingIntegrator(word, h, kick=kick, symmetric=word != "BA")
    context = mp.Context(system, integrator, threads=1)
    context.set_angular_momenta(inertia[0] * np.array([[0.3, -0.7, 1.1]]))
    return context


def matrix(q):
    w, u = q[0], q[1:]
    return (w * w - u @ u) * np.eye(3) + 2.0 * np.outer(u, u) + 2.0 * w * hat(u)


@pytest.mark.parametrize("inertia", [1.0, 2.5])
@pytest.mark.parametrize("h", [0.05, 1.5])
def test_hamilton_pontryagin(h, inertia):
    """(34) with (35), by NumPy, matrices and all; 2 turns of the body in a step at the longer timestep."""
    field, steps = 0.6, 40
    context = magnetised(field, (inertia,) * 3, h=h)
    r, w = matrix(START), np.array([0.3, -0.7, 1.1])
    for _ in range(steps):
        right = hat(w) - 0.25 * h * h * (hat(w).T @ hat(w) @ hat(w).T)
        right += h * field / inertia * hat(np.cross(r[2], [0.0, 0.0, 1.0]))
        p, new = np.array([right[2, 1], right[0, 2], right[1, 0]]), w.copy()
        for _ in range(200):
            # Newton's method on Ω̂ - h²/4 Ω̂ᵀΩ̂Ω̂ᵀ = right, that is (1 + h²Ω²/4) Ω = its vector.
            factor = 1.0 + 0.25 * h * h * (new @ new)
            new = new - np.linalg.solve(factor * np.eye(3) + 0.5 * h * h * np.outer(new, new), factor * new - p)
        w = new
        np.testing.assert_allclose(hat(w) - 0.25 * h * h * (hat(w).T @ hat(w) @ hat(w).T), right, atol=1e-13)
        turn = 0.5 * h * hat(w)
        r = r @ np.linalg.solve(np.eye(3) - turn, np.eye(3) + turn)
    context.step(steps)
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(matrix(state.orientations[0]), r, atol=1e-11)
    np.testing.assert_allclose(state.angular_momenta[0], inertia * w, atol=1e-11)


def test_hamilton_pontryagin_is_of_order_one_keeps_the_group_and_the_momentum_about_the_field():
    """Errors fall as h; |q| = 1; the momentum about the field, (1 + h²Ω²/4) (RΩ)_z, is kept, as the symmetry asks."""
    end, field = 3.0, 0.6
    paths = {n: magnetised(field, h=end / n) for n in (200, 400, 20000)}
    for n, context in paths.items():
        context.step(n)
    r = {n: matrix(c.get_state(positions=True).orientations[0]) for n, c in paths.items()}
    best = magnetised(field, word="BAB", h=end / 20000, kick=mp.kicks.Explicit())
    best.step(20000)
    exact = matrix(best.get_state(positions=True).orientations[0])
    errors = {n: np.abs(r[n] - exact).max() for n in r}
    assert errors[200] / errors[400] == pytest.approx(2.0, rel=0.06)
    assert errors[20000] < 1e-3

    context, h = magnetised(field, h=0.3), 0.3
    kept = []
    for _ in range(300):
        context.step(1)
        state = context.get_state(positions=True, velocities=True)
        w = state.angular_momenta[0]
        kept.append((1.0 + 0.25 * h * h * (w @ w)) * (matrix(state.orientations[0]) @ w)[2])
        assert abs(np.linalg.norm(state.orientations[0]) - 1.0) < 1e-14
    assert np.ptp(kept) < 1e-12


# What is refused -------------------------------------------------------------------------------------------------


KINDS = {
    "gamma": lambda: Newmark(0.4, gamma=0.6),
    "push-forward, gamma": lambda: PushForwardNewmark(0.4, gamma=0.6),
    "one step": lambda: Newmark(0.4, solver="one-step"),
    "group": HamiltonPontryagin,
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("word", "options", "because"), [
    ("OBABO", {"kT": 1.0}, "has O"),
    ("BAOAB", {"kT": 1.0}, "has O"),
    ("JBABJ", {}, "has J"),
    ("M(BAB) O", {"kT": 1.0}, r"has a block M\(B A B\)"),
    ("BAB", {"order": 4}, "order = 4"),
    ("ABA", {}, r"must be '?B A"),
    ("BABAB", {}, r"must be '?B A"),
])  # fmt: skip
def test_only_nve_words(name, word, options, because):
    """The message says which, why, and what to take instead."""
    kick = KINDS[name]()
    with pytest.raises(mp.ParameterError, match=f"{type(kick).__name__}.* depends on .*{because}") as found:
        mp.SplittingIntegrator(word, 0.1, kick=kick, **options)
    assert "take" in str(found.value)


def test_refusals_of_numbers_and_bodies():
    refuses(mp.ParameterError, r"gamma = -0.1 but must be finite and >= 0", Newmark, 0.4, gamma=-0.1)
    refuses(mp.ParameterError, 'Newmark: solver must be "newton" or "one-step"', Newmark, 0.4, solver="euler")
    refuses(mp.ParameterError, r"bead 0 .*inertia are 1, 1, 2, but must be equal", magnetised, 0.6, (1.0, 1.0, 2.0))
    with pytest.warns(mp.TimestepWarning, match=r"gamma = 0.4 is below 1/2: modes grow"):
        mp.SplittingIntegrator("BAB", 0.1, kick=Newmark(0.4, gamma=0.4))
    with pytest.warns(mp.TimestepWarning, match=r"beta = 0.3 is below gamma/2 = 0.4: .* above 31.62"):
        mp.SplittingIntegrator("BAB", 0.1, kick=Newmark(0.3, gamma=0.8))
    # γ = ½ and Newton's method: a function of positions.
    mp.SplittingIntegrator("OBABO", 0.1, kick=Newmark(0.4), kT=1.0)


def test_documents():
    for kick in (Newmark(0.4, gamma=0.6), PushForwardNewmark(0.4, gamma=0.6), Newmark(0.4, solver="one-step")):
        again = mp.deserialize(mp.serialize(mp.SplittingIntegrator("BAB", 0.1, kick=kick)))
        assert repr(again.kick) == repr(kick)
        assert again.kick.gamma == kick.gamma
    again = mp.deserialize(mp.serialize(mp.SplittingIntegrator("BA", 0.1, kick=HamiltonPontryagin(), symmetric=False)))
    assert isinstance(again.kick, HamiltonPontryagin)
