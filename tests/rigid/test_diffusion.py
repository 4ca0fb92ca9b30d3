"""How rigid bodies diffuse, over many steps: against closed forms, and against the exact moments of discrete steps."""

import time

import numpy as np
import pytest
from builders import system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.testing import check_chi_square, check_mean, check_variance, thermal


def look(context):
    return context.get_state(positions=True)


def axes(context):
    """(n, 3, 3) columns are the axes of the bodies in space."""
    return quaternions.matrices(look(context).orientations)


def free(n, D, h, *, word="D", kT=1.0, q=(1.0, 0, 0, 0), seed=1, mass=1.0, inertia=(1.0, 1.0, 1.0), threads=2):
    """A context with n bodies at the origin with the diffusion tensor D, and their handle."""
    topology = mp.Topology()
    friction = mp.rigid.diffusion_to_friction(D, kT=kT)
    handle = topology.add_rigid_bodies(np.zeros((n, 3)), np.tile(q, (n, 1)), mass, inertia, friction)
    system = mp.System(topology)
    context = mp.Context(system, mp.SplittingIntegrator(word, h, kT=thermal(word, kT), seed=seed), threads=threads)
    context.set_velocities_to_temperature(kT=kT, seed=seed)
    return context, handle


class Moments:
    """Of a step of the discrete process: M = <exp(r)>, and W = <exp(r)^T t> with translation t and rotation r, by
    quadrature over the normal distribution of r. Nothing of the program is in them."""

    def __init__(self, D, h):
        step = 2.0 * h * D
        x, w = np.polynomial.hermite_e.hermegauss(12)
        nodes = np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3)
        w = w / w.sum()
        w = (w[:, None, None] * w[:, None] * w).ravel()
        r = nodes @ np.linalg.cholesky(step[3:, 3:]).T
        t = r @ np.linalg.solve(step[3:, 3:], step[3:, :3])
        turn = Rotation.from_rotvec(r).as_matrix()
        self.M = np.einsum("k,kij->ij", w, turn)
        self.W = np.einsum("k,kji,kj->i", w, turn, t)
        skew = D[:3, 3:] - D[:3, 3:].T
        self.mean = -h * np.array([skew[1, 2], skew[2, 0], skew[0, 1]])
        self.noise = np.trace(step[:3, :3])

    def square(self, n):
        """Mean square displacement after n steps: noise, mean steps, and what steps j < k share through turns."""
        after = self.M.T @ self.mean + self.W
        shared, power = 0.0, np.eye(3)
        for m in range(1, n):
            shared += (n - m) * after @ power @ self.mean
            power = power @ self.M
        return n * (self.noise + self.mean @ self.mean) + 2.0 * shared


# The ellipse of the seed ---------------------------------------------------------------------------------------

ALONG, ACROSS, TURNING = 1.5, 1.0, 1.0
# Motion out of the plane is held back by a friction so large that a run does not notice it.
FLAT = np.diag([ALONG, ACROSS, 1e-20, 1e-20, 1e-20, TURNING])
TIMES = (0.01, 0.03, 0.1, 0.3, 1.0)


def ellipse(n, angle, seed):
    """[(t, x and y of n ellipses, sum of their products over windows)] after 10, 30, 100, 300 and 1000 steps.

    Displacements in windows that follow each other are uncorrelated (a Brownian motion is a martingale), so the sum
    over m windows of Δx Δy has the mean of xy, with a variance about m times smaller: windows of 1 step to t = 0.01,
    of 10 beyond.
    """
    h = 1e-3
    q = [np.cos(0.5 * angle), 0.0, 0.0, np.sin(0.5 * angle)]
    context, _ = free(n, FLAT, h, q=q, seed=seed)
    out = []
    before, products = np.zeros((n, 2)), np.zeros(n)
    while context.step_count < round(TIMES[-1] / h):
        context.step(1 if context.step_count < 10 else 10)
        state = look(context)
        moved = state.positions[:, :2] - before
        products += moved[:, 0] * moved[:, 1]
        before += moved
        if any(context.step_count == round(t / h) for t in TIMES):
            assert np.abs(state.positions[:, 2]).max() < 1e-8
            assert np.abs(state.orientations[:, 1:3]).max() < 1e-8
            out.append((TIMES[len(out)], before.copy(), products.copy()))
    return out


def expected_ellipse(t, angle, h=None):
    """D_xx, D_yy and D_xy: displacements over 2t. With h of the discrete process, where (1 - e^-4Dt) / 4Dt is a sum."""
    n = None if h is None else round(t / h)
    rate = 4.0 * TURNING
    forget = -np.expm1(-rate * t) / (rate * t if h is None else -n * np.expm1(-rate * h))
    mean, half = 0.5 * (ALONG + ACROSS), 0.5 * (ALONG - ACROSS)
    cos, sin = np.cos(2.0 * angle), np.sin(2.0 * angle)
    return mean + half * cos * forget, mean - half * cos * forget, half * sin * forget


def check_ellipse(n, angle, seed):
    """[(t, [(measured, standard error, expected)] * 4)]; each of them sees what 8 standard errors of 10 000 are."""
    rows = []
    rare = np.sqrt(10_000 / n)
    sharp = dict(zip(TIMES, (0.035, 0.05, 0.032, 0.021, 0.0135), strict=True))
    for t, x, products in ellipse(n, angle, seed):
        xx, yy, xy = expected_ellipse(t, angle, 1e-3)
        row = []
        for name, product, exact, sees, closed in (
            ("D_xx", x[:, 0] ** 2, xx, 0.18, 0), ("D_yy", x[:, 1] ** 2, yy, 0.18, 1),
            ("D_xy", x.prod(axis=1), xy, 0.11, 2), ("D_xy by windows", products, xy, sharp[t], 2),
        ):  # fmt: skip
            samples = product / (2.0 * t)
            check_mean(f"{name} at {t}", samples, exact, sees=sees * rare)
            closed = expected_ellipse(t, angle)[closed]
            # What is left of the timestep.
            assert abs(exact - closed) < 1e-3
            row.append((samples.mean(), samples.std() / np.sqrt(n), closed))
        rows.append((t, row))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.0, np.pi / 6.0])
def test_ellipse_in_a_plane(angle):
    """10 000 ellipses of 1000 steps. Errors of 0.18 in D_xx and D_yy would be seen, of 0.11 in D_xy and, by windows, of
    0.035 at t = 0.01 and 0.0135 at t = 1. At 30 degrees D_xy falls from 0.2165 to 0.0531: a D that kept its
    direction would be 0.16 off at the end, and one that lost it at once 0.05."""
    check_ellipse(10_000, angle, 3)


@pytest.mark.long
def test_ellipse_in_a_plane_with_100_000():
    """The seed's 1000 steps of 100 000 ellipses: 1e8 steps of bodies. Figures are recorded in docs/validation.md."""
    started = time.perf_counter()
    rows = check_ellipse(100_000, np.pi / 6.0, 4)
    print(f"\n{time.perf_counter() - started:.1f} s")
    for t, row in rows:
        print(t, *(f"{m:.4f} ± {e:.4f} ({c:.4f})" for m, e, c in row))


# A screw, described about a point beside its centre of diffusion ---------------------------------------------


def screw(away=(0.0, 0.9, -0.8)):
    D = np.diag([1.0, 1.0, 1.4, 0.5, 0.6, 0.9])
    D[:3, 3:] = D[3:, :3] = np.diag([0.2, 0.1, -0.7])
    return mp.rigid.move_diffusion(D, away), np.trace(D[:3, :3])


def test_moments_of_the_screw():
    """Of small steps: in the long run the mean square displacement grows by the D of the centre of diffusion."""
    D, trace = screw()
    assert np.trace(D[:3, :3]) > 1.4 * trace
    for h in (0.01, 0.005):
        m = Moments(D, h)
        rate = (m.square(round(20.0 / h)) - m.square(round(10.0 / h))) / 10.0
        assert rate == pytest.approx(2.0 * trace, rel=1.5 * h)


def test_brownian_screw():
    """20 000 of them: standard errors are 0.6 %; the reference point starts with 1.5 times the D of the centre of
    diffusion, and without the mean step the last mean square displacement would be 35 % larger."""
    D, trace = screw()
    h, done = 0.01, 0
    context, _ = free(20_000, D, h)
    m = Moments(D, h)
    for n in (1, 10, 300):
        context.step(n - done)
        done = n
        check_mean(f"{n} steps", (look(context).positions ** 2).sum(axis=1), m.square(n), sees=0.052 * m.square(n))
    assert m.square(300) == pytest.approx(2.0 * trace * 3.0, rel=0.3)


@pytest.mark.slow
def test_centre_of_diffusion():
    """Though the screw is described about another point, its centre of diffusion moves evenly: 2t tr D, not more, at
    all times. 20 000 of them, standard errors of 0.6 %; the reference point moves by 1.5 times as much at first."""
    D, trace = screw()
    center = mp.rigid.center_of_diffusion(D)
    h, done = 0.002, 0
    context, _ = free(20_000, D, h, seed=8)
    for n in (20, 100, 400):
        context.step(n - done)
        done = n
        moved = look(context).positions + axes(context) @ center - center
        for c in range(3):
            check_mean(f"{n} steps, {c}", moved[:, c], 0.0, sees=0.081)
        check_mean(f"{n} steps", (moved**2).sum(axis=1), 2.0 * n * h * trace, sees=0.048 * 2.0 * n * h * trace)


@pytest.mark.slow
@pytest.mark.slow
def test_langevin_screw():
    """BAOAB with little inertia is the same diffusion: 6000 bodies. An error of 9 % of the mean square displacement
    at t = 2 would be seen, and of 7.5 % of what each axis keeps of its direction to t = 0.4: of 13 % of its rate.

    D is that of the discrete BAOAB, kT (h/2) coth(h G M^-1 / 2) M^-1, a matrix here: up to 2 % off."""
    D, _ = screw()
    h, mass, inertia = 1e-3, 4e-3, (4e-3, 4e-3, 5e-3)
    context, handle = free(6000, D, h, word="BAOAB", mass=mass, inertia=inertia)
    M = np.diag([mass] * 3 + list(inertia))
    root = np.sqrt(M)
    rates, vectors = np.linalg.eigh(np.linalg.inv(root) @ handle.kind.friction_tensors[0] @ np.linalg.inv(root))
    discrete = np.linalg.inv(root) @ (vectors * (0.5 * h / np.tanh(0.5 * h * rates))) @ vectors.T @ np.linalg.inv(root)
    expected = Moments(discrete, h)
    early, steps = 400, 2000
    assert expected.square(steps) == pytest.approx(Moments(D, h).square(steps), rel=0.02)
    context.step(50)
    start, turned = look(context).positions, axes(context)
    context.step(early)
    kept = np.einsum("nik,nik->nk", turned, axes(context))
    context.step(steps - early)
    moved = look(context).positions - start
    # Each component of momentum remembers for 1/rate: displacements and turns are those of a time shorter by this.
    lags = np.diag(np.linalg.inv(root) @ (vectors / rates**2) @ vectors.T @ np.linalg.inv(root))
    square = expected.square(steps) - 2.0 * lags[:3].sum()
    check_mean("mean square displacement", (moved**2).sum(axis=1), square, sees=0.09 * square)
    power = np.linalg.matrix_power(expected.M, early)
    for k in range(3):
        exact = power[k, k] * np.exp(lags[3:].sum() - lags[3 + k])
        check_mean(f"axis {k}", kept[:, k], exact, sees=0.075 * exact)


@pytest.mark.slow
@pytest.mark.slow
def test_brownian_and_langevin_agree():
    """Displacements in the frame of the start, and turns about it, pair by pair: 8000 of each."""
    D, _ = screw()
    a, _ = free(8000, D, 0.01, seed=5)
    b, _ = free(8000, D, 2.5e-4, word="BAOAB", mass=2e-3, inertia=(2e-3,) * 3, seed=6)
    a.step(25)
    b.step(1000)
    seen = []
    for context in (a, b):
        x, R = look(context).positions, axes(context)
        twist = R[:, 1, 0] - R[:, 0, 1]
        seen.append(np.column_stack([x, x**2, x[:, 2] * twist, np.einsum("nkk->nk", R)]))
    for k, (one, two) in enumerate(zip(seen[0].T, seen[1].T, strict=True)):
        check_mean(f"moment {k}", one - two, 0.0, sees=0.16)
    # A screw: it moves along its axis as it turns, to the left for C < 0.
    assert seen[0][:, 6].mean() < -20.0 * seen[0][:, 6].std() / np.sqrt(8000)


# Rotors ------------------------------------------------------------------------------------------------------


def test_free_rotors():
    """<P1> and <P2> of 20 000 spheres decay with 2D and 6D; the exact discrete rates, which are those to 1 %.

    The rotation angle of a step has the Maxwell distribution: <cos k a> = (1 - k^2 s^2) exp(-k^2 s^2 / 2)."""
    n, h, D, steps = 20_000, 0.005, 0.7, 100
    context, _ = free(n, np.diag([1.0] * 3 + [D] * 3), h)
    context.step(steps)
    cos = axes(context)[:, 2, 2]
    s = 2.0 * D * h
    c1, c2 = ((1.0 - k * k * s) * np.exp(-0.5 * k * k * s) for k in (1, 2))
    p1, p2 = ((1.0 + 2.0 * c1) / 3.0) ** steps, ((1.0 + 2.0 * c1 + 2.0 * c2) / 5.0) ** steps
    check_mean("P1", cos, p1, sees=0.048 * p1)
    check_mean("P2", 1.5 * cos**2 - 0.5, p2, sees=0.23 * p2)
    t = steps * h
    assert p1 == pytest.approx(np.exp(-2.0 * D * t), rel=0.01)
    assert p2 == pytest.approx(np.exp(-6.0 * D * t), rel=0.01)


@pytest.mark.parametrize("rates", [(0.4, 0.4, 2.0), (0.3, 0.8, 1.6)])
def test_axes_of_rotors(rates):
    """Axis 1 forgets its direction with D2 + D3, and so on around: of symmetric and of asymmetric bodies."""
    n, h, steps = 20_000, 0.005, 100
    D = np.diag([1.0, 1.0, 1.0, *rates])
    context, _ = free(n, D, h, q=[0.5, -0.5, 0.5, 0.5])
    start = axes(context)
    context.step(steps)
    kept = np.einsum("nik,nik->nk", start, axes(context))
    power = np.linalg.matrix_power(Moments(D, h).M, steps)
    for k in range(3):
        check_mean(f"axis {k}", kept[:, k], power[k, k], sees=0.11 * power[k, k])
        assert power[k, k] == pytest.approx(np.exp(-(sum(rates) - rates[k]) * steps * h), rel=0.02)


@pytest.mark.slow
@pytest.mark.slow
def test_boltzmann_in_trap_and_field():
    """Bodies with a centre of diffusion beside their centre of mass, in a trap and a field: positions and directions
    are independent, normal and e^(x cos). 6000 of them; without the mean step x·u would be tens of errors off."""
    n, x, stiffness = 6000, 2.1, 1.5
    D, _ = screw((0.6, 0.0, 0.5))
    _, handle = free(n, D, 0.005)
    system = system_with(handle.topology, forces.HarmonicTrap(handle, stiffness, [0.0, 0, 0]))
    # Opposite forces at the ends of an arm: a dipole along the first axis.
    for sign in (1.0, -1.0):
        system.add_force(forces.UniformField(handle.sites([[0.5 * sign, 0, 0]]), [0.0, 0, sign * x], name=f"{sign}"))
    context = mp.Context(system, mp.BrownianIntegrator(0.004, kT=1.0, seed=9), threads=2)
    context.step(1500)
    r, R = look(context).positions, axes(context)
    cos = R[:, 2, 0]
    edges = np.linspace(-1.0, 1.0, 21)
    shares = np.diff(np.exp(x * edges)) / (2.0 * np.sinh(x))
    check_chi_square("directions", np.histogram(cos, edges)[0], n * shares, sees=0.14)
    for c in range(3):
        check_mean(f"mean {c}", r[:, c], 0.0, sees=0.087)
        check_variance(f"variance {c}", (r[:, c] ** 2).sum(), n, 1.0 / stiffness, sees=0.16)
        check_mean(f"axis {c} and position", np.einsum("ni,ni->n", r, R[:, :, c]), 0.0, sees=0.087)


@pytest.mark.slow
def test_ellipsoids_in_water():
    """In units of the world: 5 x 3 x 2 nm in water at 300 K, by the friction of `mp.rigid`; 20 000 bodies.

    Displacements along each axis of a short run to 1 %, of a long one the trace of D, and the rates of the axes."""
    n, half = 20_000, (5.0, 3.0, 2.0)
    D = mp.rigid.ellipsoid_diffusion(half, mp.presets.WATER, 300.0)
    friction = mp.rigid.ellipsoid_friction(half, mp.presets.WATER)
    h, steps = 2e-10, 500
    topology = mp.Topology()
    start = np.tile([1e3, -2e3, 3e3], (n, 1))
    handle = topology.add_rigid_bodies(start, np.tile([1.0, 0, 0, 0], (n, 1)), 1e-13, (1e-13,) * 3, friction)
    context = mp.Context(mp.System(topology), mp.BrownianIntegrator(h, temperature=300.0, seed=3), threads=2)
    context.step(1)
    for k in range(3):
        moved = look(context).positions[:, k] - start[:, k]
        check_variance(f"axis {k}", (moved**2).sum(), n, 2.0 * h * D[k, k], sees=0.085)
    context.step(steps - 1)
    moved = look(context).positions - start
    check_mean("all axes", (moved**2).sum(axis=1), 2.0 * steps * h * np.trace(D[:3, :3]), sees=1.9)
    power = np.linalg.matrix_power(Moments(D, h).M, steps)
    R = axes(context)
    for k in range(3):
        check_mean(f"direction {k}", R[:, k, k], power[k, k], sees=0.075 * power[k, k])
        assert 0.2 < power[k, k] < 0.9
    assert handle.degrees_of_freedom == 6 * n
