"""LennardJones and Coulomb: energies, forces, groups, bits, errors. Derivatives and sites are in test_contract.py."""

import numpy as np
import pytest
from builders import beads_at, refuses, system_with

import medyanpy as mp
from medyanpy.forces import WCA, Coulomb, LennardJones

EPSILON, SIGMA = 0.7, 1.9


def look(topology, *forces, threads=1, energy=True):
    system = system_with(topology, *forces)
    # Nothing moves: the timestep is one that atoms and numbers of any size bear.
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-15), threads=threads)
    return context.get_state(positions=True, forces=True, energy=energy)


def interacting(n, a, b, exclusions):
    """(n, n) which pairs do, each twice, as the documentation says it."""
    a, b = np.isin(np.arange(n), a), np.isin(np.arange(n), b)
    out = (a[:, None] & b[None]) | (b[:, None] & a[None])
    np.fill_diagonal(out, False)
    i, j = np.reshape(exclusions, (-1, 2)).T
    out[i, j] = out[j, i] = False
    return out


def summed(x, pairs, energy, pull):
    """Energy, and forces: `pull` is U'/r."""
    d = x[None] - x[:, None]
    r = np.where(pairs, np.linalg.norm(d, axis=-1), 1.0)
    return 0.5 * np.sum(np.where(pairs, energy(r), 0.0)), np.einsum("ij,ijc->ic", np.where(pairs, pull(r), 0.0), d)


def lennard_jones(r, cutoff=np.inf):
    def u(r):
        return 4.0 * EPSILON * ((SIGMA / r) ** 12 - (SIGMA / r) ** 6)

    return np.where(r < cutoff, u(r) - u(cutoff), 0.0)


def lennard_jones_pull(r, cutoff=np.inf):
    return np.where(r < cutoff, -24.0 * EPSILON * (2.0 * (SIGMA / r) ** 12 - (SIGMA / r) ** 6) / r**2, 0.0)


def loose(n, seed=1):
    rng = np.random.default_rng(seed)
    side = int(np.ceil(n ** (1.0 / 3.0)))
    grid = np.stack(np.unravel_index(rng.permutation(side**3)[:n], (side,) * 3), axis=1)
    return 1.9 * grid + rng.uniform(-0.2, 0.2, (n, 3))


# Values ----------------------------------------------------------------------------------------------------


def test_lennard_jones_by_hand():
    topology, beads = beads_at([[0.0, 0, 0], [2.0, 0, 0]])
    state = look(topology, LennardJones(beads, beads, epsilon=3.0, sigma=2.0))
    assert state.potential_energy == 0.0
    np.testing.assert_allclose(state.forces, [[-36.0, 0, 0], [36.0, 0, 0]], rtol=1e-15)
    topology, beads = beads_at([[0.0, 0, 0], [2.0 * 2.0 ** (1.0 / 6.0), 0, 0]])
    state = look(topology, LennardJones(beads, beads, epsilon=3.0, sigma=2.0))
    assert state.potential_energy == pytest.approx(-3.0, rel=1e-15)
    assert np.abs(state.forces).max() < 1e-13


def test_coulomb_by_hand():
    topology, beads = beads_at([[0.0, 0, 0], [0.0, 3.0, 4.0], [0.0, 0.0, -2.0]])
    state = look(topology, Coulomb(beads, [2.0, -5.0, 0.0], constant=3.0))
    assert state.potential_energy == pytest.approx(-6.0, rel=1e-15)
    np.testing.assert_allclose(state.forces, [[0, 0.72, 0.96], [0, -0.72, -0.96], [0, 0, 0]], rtol=1e-15)


def test_the_constant_of_empty_space():
    """1.44 eV nm, which is 332.06 kcal/mol angstrom."""
    k = mp.units.coulomb_constant
    assert k / (1.602176634e-19 * mp.units.joule) == pytest.approx(1.439964548, rel=1e-9)
    assert k / (mp.units.kilocalorie_per_mole * mp.units.angstrom) == pytest.approx(332.0637, rel=1e-6)
    topology, beads = beads_at([[0.0, 0, 0], [0.7, 0, 0]])
    assert look(topology, Coulomb(beads, 1.0)).potential_energy == pytest.approx(k / 0.7, rel=1e-15)


def test_wca_is_lennard_jones_that_ends_at_its_minimum():
    x = loose(60)
    end = 2.0 ** (1.0 / 6.0) * SIGMA
    topology, beads = beads_at(x)
    a = look(topology, WCA(beads, beads, EPSILON, SIGMA))
    topology, beads = beads_at(x)
    b = look(topology, LennardJones(beads, beads, EPSILON, SIGMA, cutoff=end))
    assert a.potential_energy == pytest.approx(b.potential_energy, rel=1e-14)
    np.testing.assert_allclose(a.forces, b.forces, rtol=0, atol=1e-12)


GROUPS = {
    "all with all": (np.arange(150), np.arange(150)),
    "apart": (np.arange(3, 150, 2), np.arange(0, 150, 4)),
    "overlapping": (np.arange(100), np.arange(60, 150)),
    "one in the other": (np.arange(10, 47), np.arange(150)),
    "one bead with many": (np.array([77]), np.arange(150)),
    "a whole part": (np.arange(32), np.arange(32, 96)),
}


@pytest.mark.parametrize("cutoff", [None, 4.3])
@pytest.mark.parametrize("groups", GROUPS)
def test_lennard_jones_against_plain_numpy(groups, cutoff):
    rng = np.random.default_rng(2)
    x, (a, b) = loose(150), GROUPS[groups]
    exclusions = np.array([rng.choice(150, 2, replace=False) for _ in range(800)])
    topology, _ = beads_at(x)
    force = LennardJones(rng.permutation(a), rng.permutation(b), EPSILON, SIGMA, cutoff=cutoff, exclusions=exclusions)
    state = look(topology, force)
    pairs, end = interacting(150, a, b, exclusions), np.inf if cutoff is None else cutoff
    energy, forces = summed(x, pairs, lambda r: lennard_jones(r, end), lambda r: lennard_jones_pull(r, end))
    assert state.potential_energy == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(state.forces, forces, rtol=0, atol=1e-12 * np.abs(forces).max())


@pytest.mark.parametrize("n", [2, 31, 32, 33, 64, 65, 1300])
def test_coulomb_against_plain_numpy(n):
    """Parts of 32, blocks of 16, sums of 1024."""
    rng = np.random.default_rng(n)
    x, charges = loose(n, n), rng.normal(size=n)
    exclusions = rng.integers(0, n, (2 * n, 2))
    exclusions = exclusions[exclusions[:, 0] != exclusions[:, 1]] if n > 2 else np.empty((0, 2), int)
    order = rng.permutation(n)
    topology, _ = beads_at(x)
    state = look(topology, Coulomb(order, charges[order], 2.5, exclusions=exclusions))
    pairs = interacting(n, np.arange(n), np.arange(n), exclusions)
    product = 2.5 * charges[:, None] * charges[None]
    energy, forces = summed(x, pairs, lambda r: product / r, lambda r: -product / r**3)
    scale = np.abs(product / n).sum()
    assert state.potential_energy == pytest.approx(energy, abs=1e-13 * scale)
    np.testing.assert_allclose(state.forces, forces, rtol=0, atol=1e-11 * np.abs(forces).max())


def test_charges_are_those_of_handles_in_their_order():
    topology = mp.Topology()
    first = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    second = topology.add_beads([[1.0, 0, 0], [0, 2.0, 0]], mass=1.0)
    state = look(topology, Coulomb([second, first], [1.0, 2.0, 10.0], 1.0))
    assert state.potential_energy == pytest.approx(10.0 / 1.0 + 20.0 / 2.0 + 2.0 / np.sqrt(5.0), rel=1e-15)


def test_the_dimer_of_tip3p():
    """Jorgensen 1983, table II: -6.50 kcal/mol at 2.74 angstrom and 27 degrees, with the bond on the line of oxygens.
    Free to bend, it is 0.04 lower."""
    water, kcal, angstrom = mp.presets.tip3p(), mp.units.kilocalorie_per_mole, mp.units.angstrom
    half = np.pi - 0.5 * water.angle

    def energy(r, theta):
        """The first molecule gives H on the line; the second's axis is at theta from the line, its plane across."""
        bond = water.bond
        donor = [[bond, 0, 0], [0, 0, 0], [bond * np.cos(water.angle), 0, bond * np.sin(water.angle)]]
        axis = np.array([np.cos(theta), 0.0, np.sin(theta)])
        rise = np.array([0.0, bond * np.sin(half), 0.0])
        oxygen = np.array([r, 0.0, 0.0])
        along = bond * np.cos(0.5 * water.angle) * axis
        x = np.array([*donor, oxygen + along + rise, oxygen, oxygen + along - rise])
        topology = mp.Topology()
        atoms = topology.add_beads(x, mass=np.tile(water.masses, 2))
        within = [[i + 3 * m, j + 3 * m] for m in (0, 1) for i, j in ((0, 1), (1, 2), (2, 0))]
        oxygens = [1, 4]
        return look(topology, Coulomb(atoms, np.tile(water.charges, 2), exclusions=within),
                    LennardJones(oxygens, oxygens, water.epsilon, water.sigma)).potential_energy / kcal  # fmt: skip

    r, theta = np.linspace(2.70, 2.80, 11), np.deg2rad(np.arange(-60.0, 61.0, 3.0))
    table = np.array([[energy(a * angstrom, b) for b in theta] for a in r])
    i, j = np.unravel_index(np.argmin(table), table.shape)
    assert table[i, j] == pytest.approx(-6.50, abs=0.01)
    assert r[i] == pytest.approx(2.74, abs=0.011)
    assert abs(np.rad2deg(theta[j])) == pytest.approx(27.0, abs=3.1)


# Bits ------------------------------------------------------------------------------------------------------


def test_forces_of_a_pair_are_exactly_opposite():
    rng = np.random.default_rng(11)
    for _ in range(200):
        x = rng.uniform(0.0, 1.0, (2, 3)) * 10.0 ** rng.integers(-3, 6)
        d = np.linalg.norm(x[1] - x[0])
        topology, beads = beads_at(x)
        for force in (Coulomb(beads, rng.normal(size=2)), LennardJones(beads, beads, 2.0, d * rng.uniform(0.5, 1.5))):
            f = look(topology, force, energy=False).forces
            assert (f[0] == -f[1]).all()
            assert np.abs(f).max() > 0.0


# What is refused, and what may change ----------------------------------------------------------------------


def test_beads_named_wrongly_are_refused_by_their_name():
    topology, _ = beads_at([[0.0, 0, 0], [1.0, 0, 0]])
    refuses(mp.TopologyError, "Coulomb: beads: bead 1 is named twice", look, topology, Coulomb([0, 1, 1], 1.0))
    with pytest.raises(mp.TopologyError, match=r"Coulomb: exclusions\[0\] excludes bead 1 from itself"):
        look(topology, Coulomb([0, 1], 1.0, exclusions=[[1, 1]]))


@pytest.mark.parametrize("kind", ["charges", "Lennard-Jones"])
def test_beads_in_one_place_end_the_run(kind):
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0]], mass=1.0)
    twins = topology.add_beads([[1.0, 2, 3], [1.0, 2, 3]], mass=1.0, name="twins")
    force = Coulomb(twins, 1.0) if kind == "charges" else LennardJones(twins, twins, 1.0, 1.0)
    context = mp.Context(system_with(topology, force), mp.SplittingIntegrator("BAB", 1e-3), threads=1)
    refuses(mp.SimulationError, rf"bead 1 \('twins', beads\), force {force.name}", context.step, 1)
