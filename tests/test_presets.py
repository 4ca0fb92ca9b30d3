"""Presets: numbers against those of their sources in other units, and what becomes of them."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy import presets, units


def test_numbers_of_the_sources():
    actin, microtubule = presets.actin(), presets.microtubule()
    newton_metre2 = units.newton * units.meter**2
    assert actin.bending_modulus == pytest.approx(7.3e-26 * newton_metre2)
    assert microtubule.bending_modulus == pytest.approx(2.2e-23 * newton_metre2)
    assert actin.twist_modulus == pytest.approx(8.0e-26 * newton_metre2)
    # 43.7 pN/nm of a filament of 1 µm.
    assert actin.stretching_modulus / 1000.0 == pytest.approx(43.7)
    assert actin.persistence_length(298.0) == pytest.approx(17.7 * units.micrometer, rel=0.01)
    assert microtubule.persistence_length(298.0) == pytest.approx(5.3e3 * units.micrometer, rel=0.02)
    # 16 MDa per µm of actin; 1.4 GDa per 8 µm, 179 kDa per nm of a microtubule.
    assert actin.mass_per_length * 1000.0 / (1e6 * units.dalton) == pytest.approx(15.3, rel=0.01)
    assert microtubule.mass_per_length / (1e3 * units.dalton) == pytest.approx(179.0, rel=0.01)
    # Young's moduli of both, homogeneous: 1 to 3 GPa.
    assert 1.0 < actin.stretching_modulus / (np.pi * actin.radius**2) / 1e3 < 3.0
    assert 1.0 < microtubule.stretching_modulus / (np.pi * (12.5**2 - 8.5**2)) / 1e3 < 3.0


def test_friction_of_a_rod():
    actin = presets.actin()
    # p = 10: 2.303 - 0.207 + 0.098 - 0.00133 and 2.303 + 0.839 + 0.0185 + 0.00233, worked out by hand.
    along, across = actin.friction_per_length(60.0, viscosity=1e-9)
    assert along == pytest.approx(2e-9 * np.pi / 2.19226, rel=1e-5)
    assert across == pytest.approx(4e-9 * np.pi / 3.16242, rel=1e-5)
    # Across is twice along, less and less slowly; slender-body theory of a cylinder (Batchelor 1970) within 5 %.
    ratio = [np.divide(*actin.friction_per_length(length)[::-1]) for length in (60.0, 1e3, 1e5, 1e9)]
    assert (np.diff(ratio) > 0.0).all()
    assert 1.3 < ratio[0] < ratio[-1] < 2.0
    for length in (1e3, 1e4, 1e5):
        p = length / 6.0
        along, across = actin.friction_per_length(length, 1e-9)
        assert along == pytest.approx(2e-9 * np.pi / (np.log(2 * p) - 1.5 + np.log(2)), rel=0.05)
        assert across == pytest.approx(4e-9 * np.pi / (np.log(2 * p) - 0.5 + np.log(2)), rel=0.05)
    assert actin.rotational_friction_per_length(1e-9) == pytest.approx(36e-9 * np.pi)


@pytest.mark.parametrize("closed", [False, True])
def test_arguments_make_filaments(closed, rng):
    actin = presets.actin()
    nodes = [np.cumsum(rng.normal(0.0, 15.0, (n, 3)), axis=0) for n in (3, 9)]
    arguments = actin.arguments(nodes, viscosity=2e-9, closed=closed)
    filaments = mp.Topology().add_filaments(**arguments)
    lengths = np.add.reduceat(filaments.link_lengths, filaments.kind.link_starts[:-1])
    np.testing.assert_allclose(np.add.reduceat(filaments.mass, filaments.starts[:-1]), actin.mass_per_length * lengths)
    for i, length in enumerate(lengths):
        of = slice(*filaments.starts[i : i + 2])
        along, across = actin.friction_per_length(length, 2e-9)
        assert filaments.friction_along[of].sum() == pytest.approx(along * length)
        assert filaments.friction[of].sum() == pytest.approx(across * length)
    assert filaments.closed == closed
    # The share of a node is half of its links.
    first, last = filaments.link_lengths[0], filaments.link_lengths[filaments.kind.link_starts[1] - 1]
    share = 0.5 * (first + last if closed else first)
    assert filaments.mass[0] == pytest.approx(actin.mass_per_length * share)

    heavy = actin.arguments(nodes, closed=closed, relaxation_time=1e-6, screening_length=200.0)
    np.testing.assert_allclose(heavy["node_mass"] / heavy["node_friction"][1], 1e-6)
    across = actin.friction_per_length(200.0)[1]
    assert heavy["node_friction"][1].sum() == pytest.approx(across * lengths.sum())


@pytest.mark.parametrize("closed", [False, True])
def test_arguments_make_twistable_filaments(closed, rng):
    actin = presets.actin()
    nodes = [np.cumsum(rng.normal(0.0, 15.0, (n, 3)), axis=0) for n in (3, 9)]
    arguments = actin.arguments(nodes, viscosity=2e-9, closed=closed, directors="parallel")
    filaments = mp.Topology().add_filaments(**arguments)
    lengths = filaments.link_lengths
    np.testing.assert_allclose(filaments.directors.friction, 4.0 * np.pi * 2e-9 * 9.0 * lengths)
    np.testing.assert_allclose(filaments.directors.mass, 4.5 * actin.mass_per_length * lengths)
    heavy = actin.arguments(nodes, closed=closed, directors="parallel", relaxation_time=1e-6)
    np.testing.assert_allclose(heavy["director_mass"] / heavy["director_friction"], 1e-6)


def test_one_filament():
    actin = presets.actin()
    nodes = [[0.0, 0, 0], [27.5, 0, 0], [55.0, 0, 0]]
    for given in (nodes, np.array(nodes)):
        filament = mp.Topology().add_filament(**actin.arguments(given))
        assert filament.kind.n_chains == 1
        assert filament.mass.sum() == pytest.approx(20 * 42e3 * units.dalton)


@pytest.mark.unstable
def test_longest_timestep():
    """Bending of a straight filament: bounded just below it, unbounded just above."""
    actin = presets.actin()
    nodes = np.linspace([0.0, 0, 0], [27.5 * 41, 0, 0], 42)
    longest = actin.longest_timestep(1e-12)
    largest = []
    # Above it the fastest mode grows by half in a step; after some thirty the links could not follow.
    for h, n in ((0.98 * longest, 300), (1.02 * longest, 28)):
        topology = mp.Topology()
        filament = topology.add_filament(nodes, node_mass=1e-12)
        system = system_with(topology, mp.forces.FilamentBending(filament, actin.bending_modulus))
        context = mp.Context(system, mp.VerletIntegrator(h))
        context.runaway = None
        v = np.zeros((42, 3))
        v[:, 1] = 1e-6 / h * (-1.0) ** np.arange(42)
        context.set_velocities(v)
        context.step(n)
        largest.append(np.abs(context.get_state(positions=True).positions[:, 1]).max())
    assert largest[0] < 1e-4
    assert largest[1] > 1e3 * largest[0]


def test_crosslinks():
    links = mp.forces.Links([0], [1], **presets.alpha_actinin().arguments)
    assert (links.parameters["stiffness"][0], links.parameters["length"][0]) == (8.0, 35.0)


def test_branches_of_actin_have_the_angle_and_the_springs_of_arp23():
    arp = presets.arp23()
    springs, angles = mp.forces.Links([], [], **arp.links), mp.forces.DirectionLinks([], [], [], [], **arp.angles)
    assert (springs._defaults, np.rad2deg(angles._defaults["angle"])) == ({"stiffness": 100.0, "length": 6.0}, 70.0)
    width = np.sqrt(300.0 * mp.units.boltzmann / arp.angle_stiffness)
    assert np.rad2deg(width) == pytest.approx(11.7, abs=0.1)
    # It lets go after more than an hour.
    assert 1.0 / arp.release_rate == pytest.approx(4286.0, rel=1e-3)


def test_presets_do_not_change():
    with pytest.raises(AttributeError):
        presets.actin().radius = 4.0


@pytest.mark.parametrize(("act", "text"), [
    (lambda m: m.friction_per_length(11.0), r"actin: length = 11 nm but must be >= 12 nm, twice the diameter"),
    (lambda m: m.friction_per_length(100.0, -1e-9), r"actin: viscosity = -1e-09 but must be finite and > 0"),
    (lambda m: m.persistence_length(0.0), r"actin: temperature = 0.0 but must be finite and > 0"),
    (lambda m: m.arguments(np.zeros((4, 2))), r"actin: nodes of filament 0 must have shape \(n, 3\), not \(4, 2\)"),
    (lambda m: m.arguments([np.eye(3) * 40, np.eye(2)]), r"actin: nodes of filament 1 must have shape"),
    (lambda m: m.arguments(np.eye(3) * 40, relaxation_time=0.0), r"actin: relaxation_time = 0.0 but must be"),
    (lambda m: m.longest_timestep(-1.0), r"actin: node_mass = -1.0 but must be finite and > 0"),
])  # fmt: skip
def test_refused(act, text):
    refuses(mp.ParameterError, text, act, presets.actin())


def test_water():
    """TIP3P in the units of its paper, the shape of its molecules, and what becomes of them."""
    water = presets.tip3p()
    kcal = units.kilocalorie_per_mole
    assert water.epsilon / kcal == pytest.approx(0.1521, abs=5e-5)
    assert water.sigma / units.angstrom == pytest.approx(3.1506, abs=1e-4)
    assert 4.0 * water.epsilon * water.sigma**12 / (kcal * units.angstrom**12) == pytest.approx(582e3)
    assert 4.0 * water.epsilon * water.sigma**6 / (kcal * units.angstrom**6) == pytest.approx(595.0)
    np.testing.assert_allclose(water.charges, [0.417, -0.834, 0.417], rtol=1e-15)
    # 2.35 debye.
    debye = 3.33564e-30 / 1.602176634e-19 * 1e9
    assert np.linalg.norm(water.charges @ water.molecule) / debye == pytest.approx(2.35, abs=0.005)
    places = np.random.default_rng(1).uniform(0.0, 5.0, (500, 3))
    molecules = mp.Topology().add_filaments(**water.arguments(places, seed=2, friction=0.5))
    x = molecules.positions.reshape(500, 3, 3)
    np.testing.assert_allclose(np.linalg.norm(np.roll(x, -1, axis=1) - x, axis=2) - water.lengths, 0.0, atol=1e-14)
    np.testing.assert_allclose((water.masses @ x) / water.masses.sum(), places, rtol=0, atol=1e-13)
    assert molecules.friction.tolist() == [0.5] * 1500
    assert water.masses.sum() == pytest.approx(18.015 * units.dalton)
    # Random orientations: three components of 500 unit vectors, of variance 1/3; six standard errors.
    axis = x.mean(axis=1) - x[:, 1]
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    assert np.abs(axis.mean(axis=0)).max() < 6.0 / np.sqrt(1500.0)
    assert np.abs((axis**2).mean(axis=0) - 1.0 / 3.0).max() < 6.0 * np.sqrt(4.0 / 45.0 / 500.0)
    with pytest.raises(mp.ParameterError, match=r"TIP3P: friction = -1\.0 but must be finite and >= 0"):
        water.arguments(places, friction=-1.0)
    refuses(mp.ParameterError, r"TIP3P: centers must have shape \(n, 3\), not \(2,\)", water.arguments, [1.0, 2.0])
