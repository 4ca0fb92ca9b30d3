"""Branches on filaments that grow, and on branches: trees, whose numbers generating functions tell."""

import numpy as np
import pytest
from builders import STILL, refuses, straight
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import TopologyError
from medyanpy.testing import check_chi_square, check_mean

ANGLE = np.deg2rad(70.0)
SPRING, STIFF = (4.0, 1.0), 3.0


def built(nodes, rates, *, n=2, z=None, copies=1, apart=80.0, room=200, capacity=24, mass=1.0, timestep=0.05, seed=1,
          threads=1, subunits=(2, 5), on=8.0, own=True, bends=0.0, jumps=()):  # fmt: skip
    """Filaments of a rise of 1 nm with branches: (handle, lattice, simulation). Where they are their `own` branches
    there is one handle; `z` is C/K_D of their plus ends, None: they do not grow."""
    nodes = np.asarray(nodes, float)
    topology = mp.Topology()
    shifts = apart * np.arange(copies)[:, None, None] * np.array([1.0, 0.0, 0.0])
    many = {"rise": 1.0, "capacity_links": capacity}
    actin = topology.add_filaments(nodes + shifts, mass, 1.0, name="actin", capacity_filaments=room if own else copies,
                                   **many)  # fmt: skip
    daughters = actin
    if not own:
        daughters = topology.add_filaments([], mass, 1.0, name="daughters", capacity_filaments=room, **many)
    system = mp.System(topology)
    for handle in dict.fromkeys((actin, daughters)):
        system.add_force(mp.forces.FixmanPotential(handle, kT=1.0, name=f"metric of {handle.name}"))
        if bends:
            system.add_force(mp.forces.FilamentBending(handle, bends, name=f"bending of {handle.name}"))
    springs = system.add_force(mp.forces.Links([], [], stiffness=SPRING[0], length=SPRING[1], name="springs"))
    angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], stiffness=STIFF, angle=ANGLE, name="angles"))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0, "Arp": 1.0}))
    lattice = actin.lattice(1.0)
    k, off = rates
    system.add_jump(mp.jumps.Branching(springs, angles, lattice, daughters, pool["Arp"], pool["G"], n, rate=k,
                                       dissolution_rate=off, name="branching"))  # fmt: skip
    if z is not None:
        system.add_jump(mp.jumps.Polymerization(actin, pool["G"], on_rate=on * z, off_rate=on, subunits=subunits,
                                                name="growth"))  # fmt: skip
    for jump in jumps:
        system.add_jump(jump(actin, pool))
    return actin, lattice, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads)


def look(simulation):
    return simulation.context.get_state(positions=True, velocities=True, energy=True)


def held(lattice, handle, state):
    """Mothers, numbers of the places on them, and branches, as numbers of filaments, (k, 3)."""
    place, node = state.jumps["branching"]["links"].T
    numbers, there = lattice.numbers_in(state)
    assert there[place].all(), "a branch is at a place that its mother does not have"
    slots = handle.kind.slots
    return np.column_stack([lattice.filaments[place], numbers[place], node // slots.shape[1]])


def lengths(handle, state):
    """Subunits by filament that there is room for."""
    rows = handle.kind.node_rows
    return np.maximum(np.where(rows < 0, 0, state.column("subunits")[rows]), 0).sum(axis=1)


def roots_of(tree, filaments):
    """From which filament each descends, itself where it is no branch."""
    mother, out = dict(tree[:, [2, 0]].tolist()), np.arange(filaments)
    for branch in mother:
        while out[branch] in mother:
            out[branch] = mother[out[branch]]
    return out


# Laws ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trees_of_branches_are_as_many_as_there_are_ways():
    """A root of P places, and branches of p places on whatever there is: z^M P/(P + p M) C(P + p M, M) for M of them,
    the coefficient of (1 + T)^P with T = z (1 + T)^p."""
    z, roots, places, own = 0.06, 20, 9, 4
    actin, lattice, simulation = built(straight(4, 4), (z, 1.0), n=own - 1, copies=roots, mass=STILL, timestep=0.4,
                                       capacity=3, room=110, seed=4)  # fmt: skip
    found, deep = [], 0
    simulation.step(50)
    for _ in range(600):
        simulation.step(8)
        tree = held(lattice, actin, look(simulation))
        deep += int((tree[:, 0] >= roots).sum())
        found.append(np.bincount(roots_of(tree, 110)[tree[:, 2]], minlength=roots))
    assert deep > 800
    m = np.arange(60)
    log = m * np.log(z) + np.log(places) + gammaln(places + own * m)
    log -= gammaln(m + 1) + gammaln(places + (own - 1) * m + 1)
    share = np.exp(log) / np.exp(log).sum()
    mean = share @ m
    found = np.array(found)
    check_mean("branches of a root", found.mean(axis=0), mean, sees=0.25)
    expected = np.append(share[:5], share[5:].sum()) * found.size / 3
    # Every third sample remembers little of the one before: 9.6 times as long as a branch lasts.
    counts = np.bincount(np.minimum(found[::3], 5).ravel(), minlength=6)
    check_chi_square("branches of a root", counts, expected * counts.sum() / expected.sum(), sees=0.2)


def tree_of(y, z, least):
    """The weight of all that a branch may come to be, where a filament of m >= least subunits counts z^m, and each of
    its m + 1 places has a branch or none: G = y (1 + G)^(least + 1)/(1 - z (1 + G))."""
    return brentq(lambda g: g - y * (1.0 + g) ** (least + 1) / (1.0 - z * (1.0 + g)), 0.0, 0.35 * (1.0 / z - 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(("own", "bends"), [(True, 0.0), (True, 4.0), (False, 0.0)])
def test_branches_on_filaments_that_grow_and_split(own, bends):
    """All moves: plus ends grow, links split and merge, branches begin on mothers and on branches, and block ends. Mean
    numbers of branches and subunits are derivatives of the weight (1 + G)^(l + 1) z^l/(1 - z (1 + G)) of a root of at
    least l subunits, and springs and angles have the energies of their own laws."""
    y, z, roots, least = 0.03, 0.5, 32, 2
    if not own:
        y = 0.15
    actin, lattice, simulation = built(straight(4, 4), (4.0 * y, 4.0), n=least, z=z, copies=roots, seed=11, own=own,
                                       bends=bends)  # fmt: skip
    daughters = actin if own else simulation.topology["daughters"]

    def log_weight(log_y, log_z):
        a, b = np.exp(log_y), np.exp(log_z)
        g = tree_of(a, b, least) if own else a
        return (least + 1) * np.log1p(g) + least * log_z - np.log(1.0 - b * (1.0 + g))

    at, step = (np.log(y), np.log(z)), 1e-5
    branches = (log_weight(at[0] + step, at[1]) - log_weight(at[0] - step, at[1])) / (2 * step)
    # Subunits beyond the seeds of branches; z is told of those alone.
    grown = (log_weight(at[0], at[1] + step) - log_weight(at[0], at[1] - step)) / (2 * step)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    simulation.step(600)
    found, longer, energies, joints = [], [], [], set()
    for _ in range(300):
        simulation.step(15)
        state = look(simulation)
        tree = held(lattice, daughters, state)
        n = lengths(actin, state)
        root = roots_of(tree, len(n))
        found.append(np.bincount(root[tree[:, 2]] if own else tree[:, 0], minlength=roots))
        beyond = np.where(np.arange(len(n)) < roots, n, np.maximum(n - least, 0))
        longer.append(np.bincount(root, beyond, len(n))[:roots])
        energies.append((state.energies["springs"], state.energies["angles"], len(tree)))
        joints |= set(actin.kind.links_of(state).tolist())
        for mother, place, _ in tree.tolist():
            assert 0 <= place <= n[mother]
    assert len(joints) >= 3
    check_mean("branches of a root", np.mean(found, axis=0), branches, sees=0.3)
    check_mean("subunits of a root and its branches", np.mean(longer, axis=0), grown, sees=0.9)
    spring, angle, many = np.array(energies).reshape(20, -1, 3).sum(axis=1).T
    law = lambda r: r**2 * np.exp(-0.5 * SPRING[0] * (r - SPRING[1]) ** 2)  # noqa: E731
    mean = quad(lambda r: 0.5 * SPRING[0] * (r - SPRING[1]) ** 2 * law(r), 0, 8)[0] / quad(law, 0, 8)[0]
    check_mean("energy of springs", spring / many, mean, sees=0.3)
    law = lambda a: np.sin(a) * np.exp(-STIFF * (1.0 - np.cos(a - ANGLE)))  # noqa: E731
    mean = quad(lambda a: STIFF * (1.0 - np.cos(a - ANGLE)) * law(a), 0, np.pi)[0] / quad(law, 0, np.pi)[0]
    check_mean("energy of angles", angle / many, mean, sees=0.3)


# What places and ends do ---------------------------------------------------------------------------------------------


def test_an_end_stops_at_a_branch():
    shrink = lambda actin, pool: mp.jumps.Polymerization(  # noqa: E731
        actin, pool["G"], on_rate=0.0, off_rate=0.0, subunits=(2, 5), name="shrinks")  # fmt: skip
    actin, lattice, simulation = built(straight(4, 4, 4), (3.0, 0.0), copies=6, own=False, room=300, mass=STILL,
                                       seed=2, jumps=[shrink])  # fmt: skip
    daughters = simulation.topology["daughters"]
    simulation.step(1)
    tree = held(lattice, daughters, look(simulation))
    last = np.array([tree[tree[:, 0] == f, 1].max(initial=0) for f in range(6)])
    assert len(tree) > 6
    assert (last < 12).any()
    simulation.system["branching"].set(rate=0.0)
    simulation.system["shrinks"].set(off_rate=40.0)
    simulation.step(60)
    after = look(simulation)
    assert np.array_equal(held(lattice, daughters, after), tree)
    np.testing.assert_array_equal(lengths(actin, after), np.maximum(last, 2))


def test_branches_stay_where_they_are_when_their_mother_is_cut():
    cut = lambda actin, _: mp.jumps.Severing(actin, 0.0, name="cuts")  # noqa: E731
    actin, lattice, simulation = built(straight(4, 4, 4, 4), (1.0, 0.0), copies=8, room=300, mass=STILL, seed=3,
                                       jumps=[cut])  # fmt: skip
    simulation.step(1)
    simulation.system["branching"].set(rate=0.0)
    before = look(simulation)
    tree = held(lattice, actin, before)
    place = state_places(lattice, before)
    simulation.system["cuts"].set(rate_per_subunit=0.2)
    simulation.step(20)
    after = look(simulation)
    assert after.counts["cuts"].accepted > 5
    now = held(lattice, actin, after)
    order = np.argsort(tree[:, 2])
    # A branch that was cut itself keeps its number, its mother may be another filament, and the place has moved by half
    # a rise at a cut at most.
    np.testing.assert_array_equal(now[np.argsort(now[:, 2])][:, 1:], tree[order][:, 1:])
    assert (now[np.argsort(now[:, 2])][:, 0] != tree[order][:, 0]).any()
    moved = state_places(lattice, after)[np.argsort(now[:, 2])] - place[order]
    assert np.linalg.norm(moved, axis=1).max() < 0.5 + 1e-9


def state_places(lattice, state):
    """Where branches begin, in their order, (k, 3)."""
    return lattice.positions(state)[state.jumps["branching"]["links"][:, 0]]


@pytest.mark.slow
def test_bits_restarts_and_states(tmp_path):
    jumps = [lambda a, _: mp.jumps.Severing(a, 0.02), lambda a, _: mp.jumps.Ageing(a, (2.0, 1.0), start="ATP")]

    def made(threads=1):
        return built(straight(4, 4, 4), (0.12, 4.0), z=0.5, copies=12, threads=threads, bends=4.0, jumps=jumps, seed=9)

    actin, lattice, simulation = made()
    simulation.step(120)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(120)
    end = look(simulation)
    assert all(counts.accepted > 2 for counts in end.counts.values()), end.counts
    assert (held(lattice, actin, end)[:, 0] >= 12).any()
    _, _, several = made(3)
    several.step(240)
    resumed = mp.Simulation.resume(tmp_path / "here.npz")
    resumed.step(120)
    for one in (several, resumed):
        state = look(one)
        assert np.array_equal(state.positions, end.positions, equal_nan=True)
        assert np.array_equal(state.velocities, end.velocities, equal_nan=True)
        assert np.array_equal(state.jumps["branching"]["links"], end.jumps["branching"]["links"])
        assert state.energies == end.energies
    _, _, other = made()
    other.context.set_state(middle)
    state = look(other)
    assert np.array_equal(state.jumps["branching"]["links"], middle.jumps["branching"]["links"])
    assert state.potential_energy == pytest.approx(middle.potential_energy, rel=1e-9)


def test_lattices_whose_ends_unbind_are_refused():
    topology = mp.Topology()
    actin = topology.add_filaments([straight(4, 4)], 1.0, 1.0, rise=1.0, capacity_links=4, capacity_filaments=4)
    system = mp.System(topology)
    springs = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=0.0))
    angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], stiffness=1.0, angle=1.0))
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0, "Arp": 1.0}))
    who = actin.lattice(1.0, at_end="unbind"), actin, pool["Arp"], pool["G"]
    refuses(TopologyError, 'give the lattice at_end="block"', mp.jumps.Branching, springs, angles, *who, 3, rate=1.0)
