"""Equilibrium does not know of the fluid: densities at a wall, temperatures and variances of all kinds that take part;
and diffusion that does know."""

import numpy as np
import pytest
from builders import system_with
from scipy.integrate import quad

import medyanpy as mp
from medyanpy import forces
from medyanpy.testing import check_mean, check_variance

ETA = 1.0 / (6.0 * np.pi)


@pytest.mark.slow
def test_density_above_a_wall():
    """One heavy ball over a wall that repels it softly. Without the drift away from the wall the density would be that
    divided by the mobility, and the mean height 5.6 % less; the test sees 5.5 % of it, and 13 % of the mean square."""
    topology = mp.Topology()
    ball = topology.add_balls([[0, 0, 1.6]], 1.0, mass=1.0, friction=6 * np.pi * ETA)
    system = system_with(topology, forces.ExternalField(ball, "2*z + 0.05/(z - 1)^2"))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, ball, wall=mp.boundaries.Plane()))
    context = mp.Context(system, mp.BrownianIntegrator(1e-3, kT=1.0, seed=2))
    context.step(5000)
    found = []
    for _ in range(50_000):
        context.step(110)
        found.append(context.get_state(positions=True).positions[0, 2])
    z = np.array(found)

    def mean(f, weight=lambda z: 1.0):
        def p(z):
            return np.exp(-(2 * z + 0.05 / (z - 1) ** 2)) * weight(z)

        return quad(lambda z: f(z) * p(z), 1.0001, 30)[0] / quad(p, 1.0001, 30)[0]

    def slowness(z):
        return 1 / (1 - 9 / 8 / z + 1 / 2 / z**3 - 1 / 8 / z**5)

    expected, square = mean(lambda z: z), mean(lambda z: z * z)
    assert mean(lambda z: z, slowness) < 0.945 * expected
    check_mean("height above the wall", z, expected, sees=0.055 * expected, time_series=True)
    check_mean("its square", z * z, square, sees=0.13 * square, time_series=True)


def company(integrator, seed, fluid=True):
    """Balls, bodies that are no spheres, constrained filaments of nodes with different friction, in a trap."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    balls = topology.add_balls(rng.normal(0, 4, (5, 3)), 1.0, mass=rng.uniform(0.5, 2.0, 5), friction=1.0)
    q = rng.normal(size=(4, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    bodies = topology.add_rigid_bodies(rng.normal(0, 4, (4, 3)), q, 1.5, (1.0, 1.5, 2.0),
                                       mp.rigid.ellipsoid_friction((0.5, 0.8, 1.6), ETA))  # fmt: skip
    nodes = [np.array([3.0, 3.0 * k, 0.0]) + np.arange(5)[:, None] * [1.0, 0, 0] for k in range(2)]
    filaments = topology.add_filaments(nodes, node_mass=1.0, node_friction=np.tile([0.4, 1.0, 0.7, 1.2, 0.5], 2))
    system = mp.System(topology)
    everyone = np.arange(topology.n_beads)
    system.add_force(forces.HarmonicTrap(everyone, 1.0, [0.0, 0.0, 0.0]))
    handles = [filaments, balls, bodies]
    if fluid:
        system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, handles, tolerance=1e-3))
    return mp.Context(system, integrator), handles


@pytest.mark.slow
@pytest.mark.parametrize(("looks", "sees"), [(6_000, 0.08), pytest.param(24_000, 0.04, marks=pytest.mark.long)])
def test_temperatures_and_variances(looks, sees):
    """BAOAB: after O each kind has the temperature of the thermostat, and free ones the variance of their trap. The
    test sees 8 % of temperatures, 16 % of variances; the long one half of these."""
    context, (filaments, balls, bodies) = company(mp.SplittingIntegrator("BAOAB", 0.1, kT=1.0, seed=5), seed=1)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    context.step(300)
    temperatures, squares = [], []
    for _ in range(looks):
        context.step(5)
        state = context.get_state(positions=True, energy=True)
        temperatures.append([state.temperatures[h.name] * mp.units.boltzmann for h in (filaments, balls, bodies)])
        squares.append([(state.positions[h.beads] ** 2).mean() for h in (balls, bodies)])
    temperatures, squares = np.array(temperatures), np.array(squares)
    for k, handle in enumerate((filaments, balls, bodies)):
        check_mean(f"temperature of {handle.name}", temperatures[:, k], 1.0, sees=sees, time_series=True)
    for k, handle in enumerate((balls, bodies)):
        check_mean(f"places of {handle.name}", squares[:, k], 1.0, sees=2 * sees, time_series=True)


@pytest.mark.slow
def test_a_dumbbell_in_d():
    """Two balls on a spring of rest length 0, often one within the other: the distance has the variance of the spring,
    whatever the fluid between them. The step is 1/80 of its relaxation time at most, and Euler's error 0.6 %; the test
    sees 9 %."""
    h = 0.003
    topology = mp.Topology()
    balls = topology.add_balls([[0, 0, 0], [1.0, 0, 0]], 0.5, mass=1.0, friction=0.5)
    system = system_with(topology, forces.HarmonicBonds([balls.beads], 1.0, 0.0))
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, balls))
    context = mp.Context(system, mp.BrownianIntegrator(h, kT=1.0, seed=9))
    context.step(500)
    found = []
    for _ in range(25_000):
        context.step(40)
        found.append(np.diff(context.get_state(positions=True).positions, axis=0)[0])
    square = (np.array(found) ** 2).mean(axis=1)
    check_mean("square of a component of the distance", square, 1.0, sees=0.09, time_series=True)


def test_two_balls_diffuse_together_and_apart():
    """Over a time in which nothing changes: the sum and the difference of their steps along and across the line between
    them have the variances that the tensor says. 20 000 steps; the test sees 10 % of each."""
    r, h, n = 3.0, 1e-6, 20_000
    topology = mp.Topology()
    x = np.array([[0, 0, 0], [0, 0, r]])
    balls = topology.add_balls(x, 1.0, mass=1.0, friction=6 * np.pi * ETA)
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, balls))
    context = mp.Context(system, mp.BrownianIntegrator(h, kT=1.0, seed=4))
    steps, before = [], x
    for _ in range(n):
        context.step(1)
        now = context.get_state(positions=True).positions
        steps.append(now - before)
        before = now
    steps = np.array(steps) / np.sqrt(2 * h)
    for axis, pair in ((2, 1.5 / r - 1.0 / r**3), (0, 0.75 / r + 0.5 / r**3), (1, 0.75 / r + 0.5 / r**3)):
        together, apart = (steps[:, 0, axis] + s * steps[:, 1, axis] for s in (1.0, -1.0))
        check_variance("sum", together @ together, n, 2.0 * (1.0 + pair), sees=0.1)
        check_variance("difference", apart @ apart, n, 2.0 * (1.0 - pair), sees=0.1)


@pytest.mark.long
def test_the_hydrodynamic_radius_of_a_chain():
    """An ideal chain of ten beads. Over one step its middle moves as Kirkwood's average of the tensor says; in the long
    run, when the chain has forgotten its shape many times, by some per cent less, never more. The test sees 2 % of the
    first and 6 % of the second; without interactions it would be 2.9 times slower."""
    n, k, h = 10, 3.0, 0.002
    topology = mp.Topology()
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.normal(0.0, np.sqrt(1.0 / k), (n, 3)), axis=0)
    chain = topology.add_beads(x, mass=1.0, friction=0.25)
    system = mp.System(topology)
    pairs = np.column_stack([chain.beads[:-1], chain.beads[1:]])
    system.add_force(forces.HarmonicBonds(pairs, k, 0.0))
    fluid = system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(ETA, chain))
    radius = fluid.radius(chain)
    context = mp.Context(system, mp.BrownianIntegrator(h, kT=1.0, seed=6))
    context.step(20_000)
    kirkwood, steps, middles = [], [], []
    for look in range(400_000):
        before = context.get_state(positions=True).positions
        if look % 10 == 0:
            m = mp.hydrodynamics.mobility_matrix(before, radius, ETA)
            kirkwood.append(np.trace(m.reshape(n, 3, n, 3).sum(axis=(0, 2))) / (3.0 * n * n))
        middles.append(before.mean(axis=0))
        context.step(1)
        steps.append(((context.get_state(positions=True).positions.mean(axis=0) - middles[-1]) ** 2).sum() / (6.0 * h))
        context.step(9)
    expected = np.mean(kirkwood)
    check_mean("one step", np.array(steps), expected, sees=0.02 * expected, time_series=True)
    middles = np.array(middles)
    lag = 250
    square = ((middles[lag::lag] - middles[:-lag:lag]) ** 2).sum(axis=1) / (6.0 * 10 * h * lag)
    error = square.std() / np.sqrt(len(square))
    print(f"Kirkwood {expected:.4f}, in the long run {square.mean():.4f} ± {error:.4f}, beads alone {4.0 / n:.4f}")
    assert 8.0 * error < 0.3 * expected
    assert 0.9 * expected - 5.0 * error < square.mean() < expected + 5.0 * error
