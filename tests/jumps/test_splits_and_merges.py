"""Laws of filaments whose links at ends split in two and merge, so that nodes come and go."""

from itertools import pairwise

import numpy as np
import pytest
from builders import look, refuses, straight
from medyanpy._kernels.jumps.polymerization import log_integral_of

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.jumps._chain_integrals import log_chains
from medyanpy.testing import check_mean


def growing(forces=(), z=0.75, on=8.0, copies=1000, bending=6.0, end="plus", subunits=(3, 8), counts=(5,), pool=None,
            capacity_links=18, seed=1, timestep=0.03, mass=1.0, jumps=None, threads=1, fixman=True):  # fmt: skip
    """Free filaments whose nodes come and go, which do not see each other: (handle, simulation)."""
    topology = mp.Topology()
    handle = topology.add_filaments([straight(*counts)] * copies, mass, 1.0, rise=1.0, capacity_links=capacity_links)
    system = mp.System(topology)
    if fixman:
        system.add_force(mp.forces.FixmanPotential(handle, kT=1.0))
    system.add_force(mp.forces.FilamentBending(handle, bending))
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": z}) if pool is None else pool)
    for own in [{"end": end}] if jumps is None else jumps:
        rates = {"on_rate": on, "off_rate": on, "subunits": subunits} | own
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], **rates))
    return handle, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads)


@pytest.mark.parametrize(
    ("end", "bending", "full", "z", "fixman"),
    [("plus", 6.0, 4, 0.6, True), ("minus", 0.0, 4, 0.6, True), ("plus", 6.0, 6, 0.75, True),
     ("minus", 12.0, 10, 0.8, True), ("plus", 0.0, 4, 0.7, False), ("minus", 8.0, 4, 0.7, False),
     ("both", 3.0, 4, 0.7, False)],
)  # fmt: skip
def test_free_filaments_of_any_number_of_links(end, bending, full, z, fixman):
    """The weight z^n of n subunits, whether they are in one link or in many, however long full links are, however
    stiff joints are, and with a Fixman potential or without."""
    copies, first, most = 60, full // 2, 3 * full
    handle, simulation = growing(end=end, bending=bending, z=z, copies=copies, subunits=(first, full + first - 1),
                                 counts=(full,), on=40.0, capacity_links=36, fixman=fixman)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(300)
    found, kinetic, samples = np.zeros((copies, most)), [], 1500
    for _ in range(samples):
        simulation.step(5)
        state = simulation.context.get_state(positions=True, velocities=True, energy=True)
        n, links = handle.subunits(state), handle.kind.links_of(state)
        found[np.arange(copies), np.minimum(n - first, most - 1)] += 1.0 / samples
        kinetic.append(state.kinetic_energy / (3 * len(state.living(handle)) - links.sum()))
        # Links are full but for the last.
        assert end == "both" or (links == 1 + (n - first) // full).all()
    weights = z ** np.arange(most)
    weights[-1] /= 1.0 - z
    weights /= weights.sum()
    for least in {1, 2, 3, 4, full, full + 1, full + 2, 2 * full}:
        share = weights[least:].sum()
        if share > 0.03:
            check_mean(f"{first + least} subunits or more", found[:, least:].sum(axis=1), share, sees=0.05)
    check_mean("kinetic energy", np.array(kinetic), 0.5, sees=0.03, time_series=True)


def test_splits_and_merges_keep_lengths_books_and_bits():
    states = []
    for threads in (1, 3):
        handle, simulation = growing(copies=60, z=1.0, end="both", counts=(5, 5, 5), capacity_links=30, threads=threads,
                                     forces=[lambda f: mp.forces.HarmonicTrap(f, 0.02, [0.0, 0.0, 5.0])])  # fmt: skip
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
        simulation.report_work = True
        start = simulation.context.get_state(positions=True, energy=True, velocities=True)
        simulation.step(300)
        states.append(simulation.context.get_state(positions=True, energy=True, velocities=True))
        end = states[-1]
        assert len(np.unique(handle.kind.links_of(end))) > 2
        rows = handle.kind.slots
        there = end.alive[rows]
        x = np.where(there[:, :, None], end.positions[rows], 0.0)
        length = np.linalg.norm(x[:, 1:] - x[:, :-1], axis=2)[there[:, 1:] & there[:, :-1]]
        np.testing.assert_allclose(length, handle.kind.subunits_of_links(end), rtol=1e-8)
        parts = sum(getattr(end, n) for n in ("heat", "shadow_work", "protocol_work", "chemical_work"))
        assert parts == pytest.approx(end.total_energy - start.total_energy, abs=1e-9)
    assert np.array_equal(states[0].positions, states[1].positions, equal_nan=True)
    assert (states[0].column("subunits") == states[1].column("subunits")).all()


def test_checkpoints_and_states_are_taken_over_between_splits(tmp_path):
    def make():
        return growing(copies=40, z=1.0, end="both", counts=(5, 5), capacity_links=30, seed=4)

    handle, simulation = make()
    simulation.step(150)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = simulation.context.get_state(positions=True, velocities=True)
    simulation.step(150)
    end = simulation.context.get_state(positions=True, velocities=True)
    for one in (mp.Simulation.resume(tmp_path / "here.npz"), make()[1]):
        if one.current_step == 0:
            one.load_checkpoint(tmp_path / "here.npz")
        one.step(150)
        there = one.context.get_state(positions=True, velocities=True)
        assert np.array_equal(there.positions, end.positions, equal_nan=True)
        assert np.array_equal(there.velocities, end.velocities, equal_nan=True)
    other_handle, other = make()
    other.context.set_state(middle)
    state = other.context.get_state(positions=True)
    assert (other_handle.subunits(state) == handle.subunits(middle)).all()
    np.testing.assert_allclose(state.positions, middle.positions, atol=1e-8)


def test_a_filament_that_outgrows_its_room():
    _, simulation = growing(copies=3, z=10.0, capacity_links=4)
    refuses(mp.SimulationError, "the room of a filament ends here.*capacity_links=", simulation.step, 1000)


@pytest.mark.parametrize(
    ("error", "phrase", "given"),
    [
        (ParameterError, "must have >= 4", {"subunits": (1, 3), "counts": (2,)}),
        (ParameterError, "fewest half of them", {"subunits": (1, 6)}),
        (ParameterError, "rest angle", {"forces": [lambda f: mp.forces.FilamentBending(f, 1.0, 0.5)]}),
        (ParameterError, "links are split and merged by both",
         {"jumps": [{"end": "plus"}, {"end": "minus", "subunits": (4, 11)}]}),
        (TopologyError, "capacity_links", {"capacity_links": 300}),
    ],
)  # fmt: skip
def test_refusals_of_nodes_that_come_and_go(error, phrase, given):
    refuses((error, ParameterError), phrase, lambda: growing(copies=2, **given))


def test_a_split_divides_by_the_joint_before_it():
    """Stiff joints: the one before a split gets shorter, by ln(9/8) in z, which counts once for each link."""
    z, copies = 0.8, 150
    handle, simulation = growing(bending=40.0, z=z, copies=copies, subunits=(2, 5), counts=(4,), on=60.0,
                                 capacity_links=36, timestep=0.02)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(400)
    found, samples = np.zeros((copies, 2)), 250
    for _ in range(samples):
        simulation.step(8)
        n = handle.subunits(simulation.context.get_state(positions=True))
        found += (n[:, None] >= [10, 14]) / samples
    for own, least in zip(found.T, (10, 14), strict=True):
        check_mean(f"{least} subunits or more", own, z ** (least - 2), sees=0.09)


def of_one_link_and_of_two(k, z, bending, full, fixman):
    """Weights of numbers of subunits of free filaments in a trap of stiffness k on all nodes, by quadrature: those of
    one link, and those of two, with full subunits in the first."""
    c, w = np.polynomial.legendre.leggauss(80)
    least = full // 2
    one, two = np.arange(least, full + least), np.arange(full + least, 2 * full + least)
    # The middle of the nodes is in the trap, too; squared distances from it are those between nodes over their number.
    of_one = z**one * (2.0 * np.pi / (2.0 * k)) ** 1.5 * np.exp(-0.25 * k * one**2)
    last = (two - full)[:, None]
    energy = k / 3.0 * (full**2 + last**2 + full * last * c)
    # Without a Fixman potential directions have the root of the determinant of the metric.
    joint = np.exp(-bending * (1.0 - c) / (0.5 * (full + last))) * (1.0 if fixman else np.sqrt(1.0 - 0.25 * c**2))
    of_two = z**two * (2.0 * np.pi / (3.0 * k)) ** 1.5 * ((np.exp(-energy) * joint) @ w / (joint @ w))
    return np.concatenate([one, two]), np.concatenate([of_one, of_two])


@pytest.mark.parametrize("fixman", [True, False])
def test_filaments_in_a_trap_split_and_merge(fixman):
    """How often they have one link and two, and so many subunits, as the energy of all their nodes says.

    Each attempt at a split has a direction of its own, also where many come in one letter.
    """
    k, z, bending, full, copies, samples = 0.3, 1.3, 3.0, 4, 240, 250
    trap = lambda f: mp.forces.HarmonicTrap(f, k, [0.0, 0.0, 0.0])  # noqa: E731
    # Velocities that are drawn often slow heavy nodes down.
    handle, simulation = growing([trap], z=z, on=200.0, copies=copies, bending=bending, subunits=(2, 5), counts=(4,),
                                 mass=0.05, fixman=fixman)  # fmt: skip
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(700)
    numbers, weights = of_one_link_and_of_two(k, z, bending, full, fixman)
    found, kinetic = np.zeros((copies, len(numbers))), []
    for _ in range(samples):
        simulation.step(5)
        state = simulation.context.get_state(positions=True, velocities=True, energy=True)
        found += (handle.subunits(state)[:, None] == numbers) / samples
        kinetic.append(state.kinetic_energy / (3 * len(state.living(handle)) - handle.kind.links_of(state).sum()))
    # Of those with one or two links: how many have more does not matter.
    shares, both = weights / weights.sum(), found.sum(axis=1)
    assert both.mean() > 0.6
    check_mean("two links", found[:, full:].sum(axis=1) - shares[full:].sum() * both, 0.0, sees=0.025)
    for own, share, n in zip(found.T, shares, numbers.tolist(), strict=True):
        check_mean(f"{n} subunits", own - share * both, 0.0, sees=0.035)
    check_mean("kinetic energy", np.array(kinetic), 0.5, sees=0.03, time_series=True)


def test_momentum_stays_to_the_bit_in_a_step():
    """A subunit comes or goes, and no velocity changes; directions stay within rounding of the place of a node."""
    handle, simulation = growing(copies=40, z=1.0, on=3.0, end="both", counts=(5, 5, 5), subunits=(3, 8), timestep=0.1)
    context, moved = simulation.context, 0
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    events = context.events()
    for _ in range(4):
        before = look(context)
        context._store.program.perform(context._store.program.operations[0])
        after = look(context)
        assert events.heard()
        own = handle.kind.links_of(before) == handle.kind.links_of(after)
        moved += (own & (handle.subunits(before) != handle.subunits(after))).sum()
        rows = handle.kind.slots[own]
        there = before.alive[rows] & after.alive[rows]
        v, u = (state.velocities[rows][there] for state in (before, after))
        assert (v == u).all()
        # Filaments that split, or merge, have new velocities.
        other = handle.kind.slots[~own]
        changed = (state.velocities[other][before.alive[other] & after.alive[other]] for state in (before, after))
        assert not np.equal(*changed).any()
        assert (v.sum(axis=0) == u.sum(axis=0)).all()
        links = there[:, 1:] & there[:, :-1]
        tangents = []
        for state in (before, after):
            d = np.diff(state.positions[rows], axis=1)[links]
            tangents.append(d / np.linalg.norm(d, axis=1)[:, None])
        np.testing.assert_allclose(tangents[0], tangents[1], rtol=0.0, atol=4e-16 * 30.0)
        simulation.step(2)
    assert moved > 30


@pytest.mark.parametrize("stiffness", [0.0, 9.0, 4000.0])
def test_integrals_of_chains(stiffness):
    """Over the cosines of all joints, of exp(-E/kT) times the root of the determinant of the metric over that of links
    apart, against products of quadratures; and of many links as the matrix says."""
    full, most, links = 6, 8, 40
    found = log_chains(stiffness, full, most, links)
    c, w = np.polynomial.legendre.leggauss(40)
    for first, last in ((3, 8), (6, 5), (4, 4)):
        two = log_integral_of(stiffness, stiffness, 0.0, 0.5 * (first + last), 1.0, 0.25)
        assert found[first, 2, last] == pytest.approx(two, abs=1e-7)
        assert found[first, 1, last] == 0.0
        for m in (3, 4):
            counts = [first, *[full] * (m - 2), last]
            kappas = [2.0 * stiffness / (a + b) for a, b in pairwise(counts)]
            # Where joints are stiff, cosines are near to 1.
            deep = [min(2.0, 40.0 / kappa) if kappa else 2.0 for kappa in kappas]
            grid = np.meshgrid(*(1.0 - 0.5 * depth * (1.0 + c) for depth in deep), indexing="ij")
            metric = np.zeros((*grid[0].shape, m, m)) + 2.0 * np.eye(m)
            weight = 1.0
            for j, (own, kappa, depth) in enumerate(zip(grid, kappas, deep, strict=True)):
                metric[..., j, j + 1] = metric[..., j + 1, j] = -own
                along = w.reshape([-1 if i == j else 1 for i in range(m - 1)])
                weight = weight * np.exp(-kappa * (1.0 - own)) * 0.5 * depth * along
            exact = (weight * np.sqrt(np.linalg.det(metric) / 2.0**m)).sum()
            assert found[first, m, last] == pytest.approx(np.log(exact), abs=1e-7)
            assert found[first, m, last] == pytest.approx(found[last, m, first], abs=1e-9)
    # Of many links: each has the same factor where joints are soft, and straight chains have the root of (m + 1)/2^m.
    further = np.diff(found[full, 20:, full])
    if stiffness < 100.0:
        np.testing.assert_allclose(further, further[0], rtol=0.0, atol=1e-9)
    else:
        m, joint = np.arange(20, links), np.log(full / stiffness)
        np.testing.assert_allclose(further, joint + 0.5 * np.log((m + 2) / (m + 1) / 2.0), atol=0.02)


@pytest.mark.parametrize("fixman", [True, False])
def test_directions_of_new_links(fixman):
    """Behind six straight links: uniform, or by the root of the metric with its last pivot, 7/6."""
    n_all = 40000
    handle, simulation = growing(bending=0.0, z=2.0, on=30.0, copies=n_all, counts=(4, 4, 4, 4, 4, 5), subunits=(2, 5),
                                 mass=1e9, fixman=fixman, capacity_links=14)  # fmt: skip
    squares, n = np.zeros(n_all), np.zeros(n_all)
    for _ in range(2):
        simulation.step(1)
        state = look(simulation)
        own = np.flatnonzero(handle.kind.links_of(state) == 7)
        rows, (first, last) = handle.kind.slots[own], handle.kind.ends_of(state)[own].T
        before = rows[np.arange(len(own)), np.argmax(rows == last[:, None], axis=1) - 1]
        # Others have been shorter in between.
        straight_on = np.linalg.norm(state.positions[before] - state.positions[first] - [0.0, 0.0, 24.0], axis=1) < 1e-3
        out = (state.positions[last] - state.positions[before])[straight_on]
        squares[own[straight_on]] += out[:, 2] ** 2 / (out**2).sum(axis=1)
        n[own[straight_on]] += 1.0
    c, w = np.polynomial.legendre.leggauss(40)
    root = np.ones_like(c) if fixman else np.sqrt(1.0 - 3.0 / 7.0 * c**2)
    check_mean("squared cosine", squares - n * (w @ (root * c**2)) / (w @ root), 0.0, sees=0.015 * n.mean())
