"""Leimkuhler and Matthews' scheme of Brownian motion, plain and with constraints. False alarms: 1e-6 for each check."""

import numpy as np
import pytest

import medyanpy as mp
from medyanpy.testing import check_mean, check_variance

SCHEME = "Leimkuhler-Matthews"


def brownian(h, seed=1, kT=1.0):
    return mp.BrownianIntegrator(h, kT=kT, seed=seed, scheme=SCHEME)


def test_a_harmonic_trap_has_its_variance_at_any_stable_step():
    """kT/k at three quarters of the longest step, where Euler and Maruyama's is 4 times that. Detects 2 %."""
    n, k, friction = 4000, 2.0, 0.5
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)), mass=1.0, friction=friction)
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(beads, k, np.zeros(3)))
    found = {}
    for scheme in (SCHEME, "Euler-Maruyama"):
        integrator = mp.BrownianIntegrator(1.5 * friction / k, kT=1.0, seed=1, scheme=scheme)
        context = mp.Context(system, integrator, threads=1)
        context.step(60)
        x = []
        for _ in range(10):
            context.step(40)
            x.append(context.get_state(positions=True).positions.ravel())
        found[scheme] = np.concatenate(x)
    squares = (found[SCHEME] ** 2).reshape(10, -1).mean(axis=0)  # of each coordinate, which are independent
    check_mean("square of a coordinate", squares, 1.0 / k, sees=0.02)
    assert found["Euler-Maruyama"].var() == pytest.approx(4.0 / k, rel=0.1)


def test_free_filaments_diffuse_by_their_whole_friction():
    """⟨Δx²⟩ = 2kT t/Σγ of the centre of friction, whatever the constraints do. Detects 3 %."""
    n, h, steps = 3000, 2e-3, 50
    topology = mp.Topology()
    x = np.array([[0.0, 0, 0], [1.0, 0, 0], [1.6, 0.8, 0]]) + 10.0 * np.arange(n)[:, None, None] * [0.0, 0.0, 1.0]
    friction = np.tile([1.0, 2.0, 3.0], n)
    filaments = topology.add_filaments(list(x), 0.3 * friction, friction)
    context = mp.Context(mp.System(topology), brownian(h), threads=1)

    def middle():
        now = context.get_state(positions=True).positions[filaments.beads].reshape(n, 3, 3)
        return (now * [[1.0], [2.0], [3.0]]).sum(axis=1) / 6.0

    context.step(1)
    before = middle()
    context.step(steps)
    moved = (middle() - before).ravel()
    check_variance("displacements", float(moved @ moved), len(moved), h * steps / 3.0, sees=0.15)


def test_dumbbells_turn_with_the_friction_of_their_ends():
    """⟨u(0).u(t)⟩ = exp(-2 D_r t), D_r = 2kT/γℓ². Detects 0.03."""
    n, h, friction, length = 12_000, 1e-3, 2.0, 1.5
    topology = mp.Topology()
    x = np.array([[0.0, 0, 0], [length, 0, 0]]) + 10.0 * np.arange(n)[:, None, None] * [0.0, 0.0, 1.0]
    filaments = topology.add_filaments(list(x), friction, friction)
    context = mp.Context(mp.System(topology), brownian(h), threads=1)

    def directions():
        now = context.get_state(positions=True).positions[filaments.beads].reshape(n, 2, 3)
        return (now[:, 1] - now[:, 0]) / length

    context.step(1)
    before = directions()
    context.step(600)
    expected = np.exp(-2.0 * 2.0 / (friction * length**2) * 600 * h)
    check_mean("u(0).u(t)", (before * directions()).sum(axis=1), expected, sees=0.03)


@pytest.mark.parametrize(("fixman", "stiffness"), [(False, 0.0), (True, 0.0), (True, 3.0)])
def test_joints_have_the_distribution_of_their_constraints(fixman, stiffness):
    """Of cos θ, with the root of det G = (4 - cos²)/γ² where no Fixman potential takes it out, and exp(-B(1 - cos)/kT).
    ⟨cos²⟩ is 0.3146 with it, 1/3 without. Detects 0.012."""
    n, h, friction = 2000, 1.5e-3, 2.0
    c = np.linspace(-1.0, 1.0, 20_001)
    weight = np.exp(-stiffness * (1.0 - c)) * (1.0 if fixman else np.sqrt(4.0 - c**2))
    share = np.cumsum(weight) / weight.sum()
    start = np.interp(np.random.default_rng(1).random(n), share, c)
    x = np.zeros((n, 3, 3))
    x[:, 1, 0], x[:, 2, 0], x[:, 2, 1] = 1.0, 1.0 + start, np.sqrt(1.0 - start**2)
    x[:, :, 2] += 10.0 * np.arange(n)[:, None]
    topology = mp.Topology()
    filaments = topology.add_filaments(list(x), 0.7 * friction, friction)
    system = mp.System(topology)
    if stiffness:
        system.add_force(mp.forces.FilamentBending(filaments, stiffness))
    if fixman:
        system.add_force(mp.forces.FixmanPotential(filaments, kT=1.0))
    context = mp.Context(system, brownian(h), threads=1)
    squares = []
    for _ in range(100):
        context.step(120)
        state = context.get_state(positions=True, velocities=True)
        links = np.diff(state.positions[filaments.beads].reshape(n, 3, 3), axis=1)
        assert np.linalg.norm(links, axis=2) == pytest.approx(1.0, abs=1e-8)
        assert (state.velocities == 0.0).all()
        squares.append((links[:, 0] * links[:, 1]).sum(axis=1) ** 2)
    expected = (c**2 * weight).sum() / weight.sum()
    # Filaments are independent, and their starts had the distribution.
    check_mean("cos²", np.mean(squares, axis=0), expected, sees=0.012)


@pytest.mark.parametrize("held", ["surface", "constraint"])
def test_beads_on_a_sphere_in_a_field_have_langevins_mean(held):
    """⟨cos⟩ = coth a - 1/a with a = FR/kT, on a surface and by a constraint of one's own. Detects 0.02."""
    n, radius, a = 2400, 2.0, 1.7
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3))
    x *= radius / np.linalg.norm(x, axis=1)[:, None]
    topology = mp.Topology()
    if held == "surface":
        beads = topology.add_surface_points(mp.surfaces.Sphere(radius), x, mass=1.0, friction=0.8)
    else:
        beads = topology.add_beads(x, mass=1.0, friction=0.8)
        topology.constrain("x^2 + y^2 + z^2 - R^2", beads, R=radius)
    system = mp.System(topology)
    system.add_force(mp.forces.UniformField(beads, [0.0, 0.0, a / radius]))
    context = mp.Context(system, brownian(2e-3), threads=1)
    context.step(3000)
    means = []
    for _ in range(120):
        context.step(150)
        state = context.get_state(positions=True)
        assert np.linalg.norm(state.positions, axis=1) == pytest.approx(radius, rel=1e-8)
        means.append(state.positions[:, 2] / radius)
    check_mean("cos", np.mean(means, axis=0), 1.0 / np.tanh(a) - 1.0 / a, sees=0.02)


def chains(n=20):
    topology = mp.Topology()
    x = np.cumsum(np.random.default_rng(4).normal(size=(n, 6, 3)), axis=1)
    filaments = topology.add_filaments(list(x), 1.0, 3.0)
    beads = topology.add_beads(x[:, 2] + 0.5, mass=2.0, friction=1.0)
    system = mp.System(topology)
    system.add_force(mp.forces.FilamentBending(filaments, 2.0))
    system.add_force(mp.forces.SoftSphere(beads, filaments, 2.0, 1.0))
    return system


def test_bits_do_not_depend_on_threads_nor_on_a_restart(tmp_path):
    whole = mp.Simulation(chains(), brownian(1e-3), threads=1)
    other = mp.Simulation(chains(), brownian(1e-3), threads=3)
    whole.step(60)
    other.step(25)
    other.save_checkpoint(tmp_path / "run.chk")
    again = mp.Simulation(chains(), brownian(1e-3), threads=2)
    again.load_checkpoint(tmp_path / "run.chk")
    again.step(35)
    other.step(35)
    for one in (other, again):
        a, b = (s.context.get_state(positions=True, energy=True) for s in (whole, one))
        assert (a.positions == b.positions).all()
        assert a.potential_energy == b.potential_energy


def test_work_is_heat_and_there_is_no_kinetic_energy():
    simulation = mp.Simulation(chains(), brownian(1e-3), threads=1)
    simulation.report_work = True
    before = simulation.context.get_state(energy=True)
    simulation.step(100)
    after = simulation.context.get_state(energy=True)
    assert after.kinetic_energy == 0.0
    assert np.isnan(after.temperature)
    assert after.heat == pytest.approx(after.potential_energy - before.potential_energy, rel=1e-9)


def uneven(topology):
    return topology.add_filaments([[[0.0, 0, 0], [1.0, 0, 0]]], [1.0, 1.0], [1.0, 2.0])


def along(topology):
    return topology.add_filaments([[[0.0, 0, 0], [1.0, 0, 0]]], 1.0, 2.0, node_friction_along=1.0)


def twistable(topology):
    return topology.add_filaments(
        [[[0.0, 0, 0], [1.0, 0, 0]]], 1.0, 2.0, directors=[[0.0, 0, 1.0]], director_mass=1.0, director_friction=1.0
    )


def turning(topology):
    return topology.add_rigid_bodies(np.zeros((1, 3)), [[1.0, 0, 0, 0]], 1.0, (1.0, 1.0, 1.0), (1.0, 1.0))


def without_friction(topology):
    return topology.add_filaments([[[0.0, 0, 0], [1.0, 0, 0]]], 1.0, 0.0)


@pytest.mark.parametrize(("add", "scheme", "match"), [
    (uneven, SCHEME, "friction over mass differs among beads that constraints connect"),
    (along, SCHEME, "its frictions along and across turn with its links"),
    (twistable, SCHEME, "its directors move with velocities"),
    (turning, SCHEME, "it turns: give scheme='Euler-Maruyama'"),
    (without_friction, SCHEME, r"friction\[0\] = 0 but must be > 0"),
    (lambda t: t.add_filaments([[[0.0, 0, 0], [1.0, 0, 0]]], 1.0, 2.0), "Euler-Maruyama",
     "its links are constraints: give scheme='Leimkuhler-Matthews'"),
])  # fmt: skip
def test_beads_that_it_cannot_move_are_refused_by_name(add, scheme, match):
    topology = mp.Topology()
    add(topology)
    with pytest.raises(mp.ParameterError, match=match):
        mp.Context(mp.System(topology), mp.BrownianIntegrator(1e-3, kT=1.0, scheme=scheme))


def test_a_scheme_that_does_not_exist_is_refused():
    with pytest.raises(mp.ParameterError, match="did you mean 'Euler-Maruyama'"):
        mp.BrownianIntegrator(1e-3, kT=1.0, scheme="Euler-Maruyana")


def test_hydrodynamic_interactions_are_refused():
    topology = mp.Topology()
    balls = topology.add_balls(np.zeros((1, 3)), 1.0, mass=1.0, friction=1.0)
    system = mp.System(topology)
    system.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1.0 / (6.0 * np.pi), balls))
    with pytest.raises(mp.ParameterError, match="hydrodynamic interactions need scheme='Euler-Maruyama'"):
        mp.Context(system, brownian(1e-3))
