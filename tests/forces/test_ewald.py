"""Charges in a periodic box: constants of crystals, a sum written in NumPy, and what runs keep."""

import itertools

import numpy as np
import pytest
from builders import refuses, system_with
from lattice_energies import ewald

import medyanpy as mp
from medyanpy import forces
from medyanpy._tools import quaternions
from medyanpy.forces._ewald import splitting

BOX = (9.0, 7.5, 11.0)


def gas(n=60, seed=1, neutral=True, box=BOX):
    """Places, some of them outside of the box, and charges of many sizes."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 2.0, (n, 3)) * box
    q = rng.normal(size=n)
    return x, q - q.mean() if neutral else q


def context_of(x, q, box=BOX, threads=1, **numbers):
    topology = mp.Topology()
    ions = topology.add_beads(x, mass=1.0)
    force = forces.Coulomb(ions, q, **{"constant": 1.0, "cutoff": 3.5, "tolerance": 1e-10, **numbers})
    return mp.Context(system_with(topology, force, box=box), mp.VerletIntegrator(1e-3), threads=threads)


def energy_of(*arguments, **numbers):
    state = context_of(*arguments, **numbers).get_state(energy=True, forces=True)
    return state.potential_energy, state.forces


CRYSTALS = {
    # Charges, places and shortest distance in a cubic cell of side 1, and Madelung's constant for that distance.
    "rock salt": (np.array(list(itertools.product((0, 0.5), repeat=3))), [1, -1, -1, 1, -1, 1, 1, -1], 0.5,
                  1.7475645946331822),
    "caesium chloride": (np.array([[0, 0, 0], [0.5, 0.5, 0.5]]), [1, -1], np.sqrt(0.75), 1.7626747730709884),
    "zinc blende": (np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0], [0.25, 0.25, 0.25],
                              [0.25, 0.75, 0.75], [0.75, 0.25, 0.75], [0.75, 0.75, 0.25]]), [1] * 4 + [-1] * 4,
                    np.sqrt(3) / 4, 1.6380550533887),
}  # fmt: skip


@pytest.mark.parametrize("crystal", CRYSTALS)
@pytest.mark.parametrize("cutoff", [0.6, 0.97])
def test_madelung_constants(crystal, cutoff):
    """To 1e-8 and better, in boxes of 2 by 3 by 2 cells, anywhere in the box; forces are zero."""
    basis, q, distance, constant = CRYSTALS[crystal]
    cells = np.array(list(itertools.product(range(2), range(3), range(2))), float)
    x = (cells[:, None] + basis).reshape(-1, 3) + [0.013, -0.4, 7.1]
    charges = np.tile(np.array(q, float), len(cells))
    energy, force = energy_of(x, charges, (2.0, 3.0, 2.0), cutoff=cutoff, tolerance=1e-11)
    assert -2.0 * energy / len(x) * distance == pytest.approx(constant, abs=1e-10)
    assert np.abs(force).max() < 1e-12


@pytest.mark.parametrize("neutral", [True, False])
def test_against_a_sum_in_numpy(neutral):
    """With every splitting; of a gas that is not neutral with its even background."""
    x, q = gas(neutral=neutral)
    expected, force = ewald(x, q, BOX)
    scale = np.abs(force).max()
    for cutoff in (2.0, 2.8, 3.7):
        found, f = energy_of(x, q, cutoff=cutoff, tolerance=1e-12)
        assert found == pytest.approx(expected, abs=1e-9 * np.sum(q**2))
        np.testing.assert_allclose(f, force, rtol=0, atol=1e-10 * scale)
        assert np.abs(f.sum(axis=0)).max() < 1e-13 * scale * len(x)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9])
def test_the_error_is_what_was_asked_for(tolerance):
    """Relative to the force of two typical charges at the cutoff, and 0.04 times the root of the number of neighbours;
    of the energy, in units of such a pair for each charge."""
    for seed, (n, cutoff) in itertools.product(range(2), ((200, 3.0), (800, 3.7), (1500, 3.7))):
        x, q = gas(n, seed)
        exact, force = energy_of(x, q, cutoff=3.3, tolerance=1e-13)
        found, f = energy_of(x, q, cutoff=cutoff, tolerance=tolerance)
        typical = np.mean(q**2)
        error = np.sqrt(np.mean(((f - force) ** 2).sum(axis=1))) / (typical / cutoff**2)
        neighbors = 4 * np.pi / 3 * n * cutoff**3 / np.prod(BOX)
        assert error / tolerance == pytest.approx(0.04 * np.sqrt(neighbors), rel=0.35)
        assert error < tolerance
        assert abs(found - exact) < tolerance * n * typical / cutoff


def test_forces_are_derivatives_of_the_energy():
    x, q = gas(12)
    context = context_of(x, q, tolerance=1e-4)
    f = context.get_state(forces=True).forces
    h = 1e-4
    for i, c in itertools.product(range(4), range(3)):
        ends = []
        for s in (2 * h, h, -h, -2 * h):
            moved = x.copy()
            moved[i, c] += s
            context.set_positions(moved)
            ends.append(context.get_state(energy=True).potential_energy)
        slope = (-ends[0] + 8 * ends[1] - 8 * ends[2] + ends[3]) / (12 * h)
        assert -slope == pytest.approx(f[i, c], abs=1e-8 * np.abs(f).max())


def test_energies_are_continuous():
    """Where a pair passes the cutoff, and where a box gets room for more waves; at a tolerance that would show it."""
    cutoff, tolerance = 3.5, 1e-2
    q = np.array([1.0, -1.0])

    def energy(r, box=BOX):
        return energy_of(np.array([[0.0, 0, 0], [r, 0, 0]]), q, box, cutoff=cutoff, tolerance=tolerance)[0]

    assert abs(energy(cutoff * (1 + 1e-8)) - energy(cutoff * (1 - 1e-8))) < 1e-7
    a, last = splitting(cutoff, tolerance)
    length = 2 * np.pi * 3 / last
    length *= np.ceil(2 * cutoff / length)
    ends = [(length * (1 + s), 9.0, 9.0) for s in (-1e-8, 1e-8)]
    assert abs(energy(1.0, ends[1]) - energy(1.0, ends[0])) < 1e-7
    # Without an end of its own each would show.
    assert np.exp(-((cutoff * a) ** 2)) / cutoff > 1e-5
    assert np.exp(-((last / (2 * a)) ** 2)) > 1e-5


@pytest.mark.parametrize("neutral", [True, False])
def test_the_trace_of_the_virial_is_the_energy(neutral):
    """The energy is homogeneous, of degree -1 in all lengths: also that of the background."""
    for seed in range(4):
        x, q = gas(seed=seed, neutral=neutral)
        state = context_of(x, q, tolerance=1e-8).get_state(energy=True, virial=True)
        assert np.trace(state.virial) == pytest.approx(state.potential_energy, abs=2e-6 * np.sum(q**2))


def test_two_charges_in_a_large_box():
    """Those of a dipole, but for its images: 2 pi p^2/3V and less."""
    energy, force = energy_of(np.array([[0.0, 0, 0], [1.5, 0, 0]]), np.array([1.0, -1.0]), (80.0,) * 3, cutoff=30.0)
    dipole = -2 * np.pi / 3 * 1.5**2 / 80.0**3
    assert energy == pytest.approx(-1 / 1.5 + dipole, abs=2e-8)
    assert force[0, 0] == pytest.approx(1 / 1.5**2 - 4 * np.pi / 3 * 1.5 / 80.0**3, abs=1e-7)


def test_excluded_pairs():
    """Nearest images of excluded pairs have nothing with each other; also where they are in one place."""
    x, q = gas(20)
    x[1] = x[0] + [0, 0, 3 * BOX[2]]
    x[3] = x[2] + [1e-5, 0, 0]
    excluded = [[0, 1], [2, 3], [5, 4], [0, 7], [4, 6]]
    everyone = np.array([k for k in range(20) if k not in (0, 2)])
    found, f = energy_of(x, q, exclusions=excluded)
    apart = x.copy()
    apart[[0, 2]] += [0.5, 0.3, 0.2]
    expected, force = ewald(apart, q, BOX)
    context = context_of(apart, q, exclusions=excluded)
    for i, j in excluded:
        d = apart[j] - apart[i]
        d -= BOX * np.rint(d / BOX)
        r = np.linalg.norm(d)
        expected -= q[i] * q[j] / r
        force[i] += q[i] * q[j] * d / r**3
        force[j] -= q[i] * q[j] * d / r**3
    state = context.get_state(energy=True, forces=True)
    assert state.potential_energy == pytest.approx(expected, abs=1e-7)
    np.testing.assert_allclose(state.forces, force, rtol=0, atol=1e-7 * np.abs(force).max())
    # Towards one place all is smooth.
    x[1] += [1e-6, 0, 0]
    near, g = energy_of(x, q, exclusions=excluded)
    assert near == pytest.approx(found, abs=1e-4)
    np.testing.assert_allclose(g, f, rtol=0, atol=1e-4)
    assert np.isfinite(f[everyone]).all()


def test_charges_on_bodies():
    """Sites off the centres: forces and torques as of beads in their places."""
    rng = np.random.default_rng(4)
    x = 2.2 * np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1).astype(float)
    q = rng.normal(size=(8, 4))
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(x, q / np.linalg.norm(q, axis=1)[:, None], 1.0, (1.0, 1.0, 1.0))
    arms = np.array([[0.3, 0, 0], [-0.3, 0, 0]])
    sites = bodies.sites(arms)
    charges = np.tile([1.0, -1.0], 8)
    within = np.arange(16).reshape(-1, 2)
    force = forces.Coulomb(sites, charges, 1.0, exclusions=within, cutoff=2.1, tolerance=1e-10)
    system = system_with(topology, force, box=(4.4, 4.4, 4.4))
    context = mp.Context(system, mp.SplittingIntegrator("BAB", 1e-3))
    state = context.get_state(positions=True, energy=True, forces=True)
    places = np.concatenate([x[i] + quaternions.turned(np.tile(state.orientations[i], (2, 1)), arms) for i in range(8)])
    energy, f = ewald(places, charges, 4.4)
    for i, j in within:
        r = np.linalg.norm(places[i] - places[j])
        energy -= charges[i] * charges[j] / r
    assert state.potential_energy == pytest.approx(energy, abs=1e-7)
    np.testing.assert_allclose(state.forces, f.reshape(8, 2, 3).sum(axis=1), rtol=0, atol=1e-7)


def melt(seed=1, cells=3, threads=1, integrator=None, **numbers):
    """Ions that repel each other when near, in a box, not at rest."""
    n = 8 * cells**3
    grid = np.stack(np.unravel_index(np.arange(n), (2 * cells,) * 3), axis=1)
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    ions = topology.add_beads(grid + rng.normal(0, 0.05, grid.shape), mass=1.0, friction=1.0)
    system = system_with(topology, forces.Coulomb(ions, (-1.0) ** grid.sum(axis=1), 1.0, **{"cutoff": 2.9, **numbers}),
                         forces.WCA(ions, ions, 1.0, 0.9), box=(2.0 * cells,) * 3)  # fmt: skip
    context = mp.Context(system, integrator or mp.VerletIntegrator(4e-3), threads=threads)
    context.set_velocities_to_temperature(kT=0.3, seed=seed)
    return context


def test_energy_and_momentum_are_kept():
    """A molten salt over 1000 steps: no drift beside the fluctuation of Verlet's method, and no net force."""
    context = melt()
    found, momentum = [], context.get_state(velocities=True).velocities.sum(axis=0)
    for _ in range(40):
        context.step(25)
        found.append(context.get_state(energy=True).total_energy)
    kinetic = 1.5 * 0.3 * 216
    drift = np.polyfit(np.arange(40), found, 1)[0] * 40
    print(f"drift {drift / kinetic:.2e} of the kinetic energy, scatter {np.std(found) / kinetic:.2e}")
    assert abs(drift) < 5e-4 * kinetic
    assert np.std(found) < 5e-4 * kinetic
    now = context.get_state(velocities=True).velocities.sum(axis=0)
    np.testing.assert_allclose(now, momentum, rtol=0, atol=1e-11)


def test_bits_do_not_depend_on_threads_or_skin():
    found = []
    for threads, skin in ((1, None), (2, 0.2), (3, 0.01)):
        context = melt(threads=threads, skin=skin)
        context.step(30)
        state = context.get_state(positions=True, energy=True)
        found.append((state.positions.tobytes(), state.potential_energy))
    assert found[0] == found[1] == found[2]


def test_a_box_that_changes():
    """After it is set to other lengths nothing of the old ones is left, to the bit."""
    x, q = gas()
    context = context_of(x, q, tolerance=1e-6)
    context.get_state(energy=True)
    context.set_box((8.0, 8.0, 12.0), scale=False)
    fresh = context_of(x, q, (8.0, 8.0, 12.0), tolerance=1e-6)
    a, b = (c.get_state(energy=True, forces=True) for c in (context, fresh))
    assert a.potential_energy == b.potential_energy
    assert (a.forces == b.forces).all()


def test_rows_without_beads_have_no_charge():
    found = []
    x, _ = gas(12)
    for capacity in (12, 20):
        topology = mp.Topology()
        ions = topology.add_beads(x, mass=1.0, capacity=capacity)
        force = forces.Coulomb(ions, 0.7, 1.0, cutoff=3.0, exclusions=[ions.beads[[0, 1]]])
        context = mp.Context(system_with(topology, force, box=BOX), mp.VerletIntegrator(1e-3))
        state = context.get_state(energy=True, forces=True)
        found.append((state.potential_energy, state.forces[ions.beads]))
    assert found[0][0] == found[1][0]
    assert (found[0][1] == found[1][1]).all()


def test_no_charges_and_one():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0]], mass=1.0)
    system = system_with(topology, forces.Coulomb([], [], cutoff=3.0), box=BOX)
    assert mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy == 0.0
    # A charge among its images, in a background: Wigner's constant.
    energy, force = energy_of(np.array([[0.3, 0.2, 0.1]]), np.array([2.0]), (7.0,) * 3)
    assert energy == pytest.approx(-2.837297479480619 * 4.0 / (2 * 7.0), rel=1e-11)
    assert np.abs(force).max() < 1e-14


def test_systems_that_are_refused():
    x, q = gas(6)
    refuses(mp.ParameterError, "in a periodic box on all images: give cutoff=", context_of, x, q, cutoff=None)
    refuses(mp.ParameterError, r"cutoff = 3.5 nm splits Ewald's sum in a periodic box, and the system has none",
            context_of, x, q, None)  # fmt: skip
    refuses(mp.ParameterError, "open along z, but Ewald's sum needs all three", context_of, x, q, (9.0, 9.0, None))
    refuses(mp.ParameterError, "reaches 4 nm, and the box is 7.5 nm long along y", context_of, x, q, cutoff=4.0)
    for tolerance in (0.0, 0.1):
        refuses(mp.ParameterError, f"tolerance = {tolerance:g}", context_of, x, q, tolerance=tolerance)
    refuses(mp.ParameterError, "Coulomb offers no second derivatives", context_of(x, q).hessian)


def test_documents_and_the_numbers_of_the_splitting():
    context = context_of(*gas(6), tolerance=1e-7, skin=0.3)
    again = mp.deserialize(mp.serialize(context.system)).forces[0]
    assert (again.cutoff, again.tolerance, again.skin) == (3.5, 1e-7, 0.3)
    a, last = splitting(3.5, 1e-7)
    # Few digits, so that a logarithm's last bit does not matter.
    assert (float(f"{a:.6g}"), float(f"{last:.6g}")) == (a, last)


def test_beads_without_charge_do_not_matter():
    """Wherever they are, also in one place with others."""
    x, q = gas(10)
    expected, force = energy_of(x, q)
    more = np.vstack([x, x[0], x[0], x[3]])
    found, f = energy_of(more, np.append(q, [0.0, 0.0, 0.0]))
    assert found == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(f, np.vstack([force, np.zeros((3, 3))]), rtol=0, atol=1e-13 * np.abs(force).max())


def test_a_pair_in_one_place_ends_the_run():
    x, q = gas(4)
    x[1] = x[0]
    context = context_of(x, q)
    with pytest.raises(mp.SimulationError):
        context.step(1)
