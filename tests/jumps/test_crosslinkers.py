"""Crosslinkers that hold one place, then two: their weights, which no sharing of loads changes, and their molecules."""

import functools
import itertools
import math

import numpy as np
import pytest
from builders import balanced, one_bead, refuses, system_with

import medyanpy as mp
from medyanpy.testing import JumpCase, check_chi_square, check_jump, check_mean
from medyanpy.visualize.renderer import radii_of
from medyanpy.visualize.scene import objects_of, scene_of

KT = 4.141947
K_D = np.array([2.0, 0.5]) * mp.units.micromolar
OFF = (3.0, 1.0)
STIFFNESS, LENGTH = 0.3, 53.0
#: Places of two rods, which are as far apart as links are long, and a little less, and more.
A = np.array([[0.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 16.0, 0.0]])
B = np.array([[51.0, 2.0, 0.0], [57.0, 9.0, 0.0], [45.0, 20.0, 3.0]])


def energy(x, y):
    return 0.5 * STIFFNESS * (np.linalg.norm(np.subtract(x, y), axis=-1) - LENGTH) ** 2


@functools.cache
def volume(share=1.0):
    """The integral of exp(-share U/kT) over all space, by quadrature."""
    c, w = np.polynomial.legendre.leggauss(2000)
    r = 100.0 * (c + 1.0)
    return 100.0 * (w @ (4.0 * np.pi * r**2 * np.exp(-share * 0.5 * STIFFNESS * (r - LENGTH) ** 2 / KT)))


def built(a, b, pool, timestep=1.0, seed=1, threads=1, topology=None, name="binding", kT=KT, **options):
    """A simulation of crosslinkers between places that are anchors, or sites of a topology."""
    system = mp.System(one_bead() if topology is None else topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
    pool = system.add_pool(pool)
    numbers = {"dissociation_constants": K_D, "off_rates": OFF} | options
    system.add_jump(mp.jumps.CrosslinkerBinding(links, a, b, pool=pool["X"], name=name, **numbers))
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)


def looks(simulation, n, steps=1):
    """What molecules hold after each of n times: frozensets of rows, as tuples."""
    found = []
    for _ in range(n):
        simulation.step(steps)
        rows = simulation.context.get_state(positions=True).jumps["binding"]["links"]
        found.append(frozenset(map(tuple, rows.tolist())))
    return found


def check_law(what, weights, found, sees):
    """Check what was found against the weights of all that can be, those that are rare together."""
    assert set(found) <= set(weights), f"{what}: {set(found) - set(weights)} cannot be"
    expected = np.array(list(weights.values()))
    expected *= len(found) / expected.sum()
    counts = np.array([found.count(one) for one in weights], float)
    rare = expected < 20.0
    if rare.any():
        expected, counts = (np.append(x[~rare], x[rare].sum()) for x in (expected, counts))
    check_chi_square(what, counts, expected, sees=sees)


def molecules_of(sets, concentration, of_pool):
    """Weights of sets of molecules, rows (i, j) of both lattices with -1, by the formula of the docstring."""
    weights = {}
    for one in sets:
        w = of_pool(len(one))
        for i, j in one:
            w *= concentration
            w /= (1.0 if i < 0 else K_D[0]) * (1.0 if j < 0 else K_D[1])
            if i >= 0 <= j:
                w *= math.exp(-energy(A[i], B[j]) / KT) / volume()
        weights[frozenset(one)] = w
    return weights


def sets_of(n_a, n_b, most):
    """All sets of molecules in which each place has one head at most."""
    each = [(i, -1) for i in range(n_a)] + [(-1, j) for j in range(n_b)]
    each += list(itertools.product(range(n_a), range(n_b)))
    for n in range(most + 1):
        for one in itertools.combinations(each, n):
            ends = [("a", i) for i, _ in one if i >= 0] + [("b", j) for _, j in one if j >= 0]
            if len(set(ends)) == len(ends):
                yield one


# In balance ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.258, 0.5, 1.0])
def test_one_molecule_at_two_rods_has_the_weights_of_sixteen_states(share):
    """λ is in no weight: with V(1-λ) for V_0 those of two heads were off by 1.163 at λ = 0.258, by 1.421 at 0.5."""
    space = 1.5e5
    weights = molecules_of(sets_of(3, 3, 1), 1.0 / space, lambda n: 1.0)
    assert len(weights) == 16
    two = sum(w for one, w in weights.items() if all(min(pair) >= 0 for pair in one) and one) / sum(weights.values())
    assert 0.3 < two < 0.8
    simulation = built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(space, {"X": 1}), timestep=4.0,
                       load_sharing=share)  # fmt: skip
    found = looks(simulation, 12_000)
    check_law(f"one molecule, λ = {share}", weights, found, sees=0.11)
    if 0.0 < share < 1.0:
        # The control: with V(1-λ) there would be fewer by two heads.
        seen = np.mean([any(min(pair) >= 0 for pair in one) for one in found])
        wrong = two / (two + (1.0 - two) * volume(1.0 - share) / volume())
        assert seen - wrong > 6.0 * math.sqrt(wrong * (1.0 - wrong) / len(found))


@pytest.mark.slow
def test_short_steps_need_no_list_of_pairs():
    """The same sixteen weights where a head alone tries fewer places in a letter than there are: any of all."""
    space = 1.5e5
    simulation = built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(space, {"X": 1}), timestep=0.1,
                       load_sharing=0.258)  # fmt: skip
    found = looks(simulation, 12_000, 40)
    assert not simulation.context._schedule.jumping.operations[0].needs_pairs
    check_law("without a list", molecules_of(sets_of(3, 3, 1), 1.0 / space, lambda n: 1.0), found, sees=0.11)


def test_sharing_of_loads_would_change_the_volume():
    assert volume() == pytest.approx(330_387, rel=1e-5)
    jump = built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(1e5, {"X": 1})).system["binding"]
    assert jump.volume(KT) == pytest.approx(volume(), rel=1e-9)
    assert volume(1.0 - 0.258) / volume() == pytest.approx(1.163, abs=5e-4)
    assert volume(0.5) / volume() == pytest.approx(1.421, abs=5e-4)


@pytest.mark.slow
def test_a_pool_of_three_weighs_its_sets():
    """N!/(N - n)! of a pool of N molecules, n of which hold something."""
    n, space = 3, 6e5
    weights = molecules_of(sets_of(2, 2, n), 1.0 / space, lambda k: math.perm(n, k))
    simulation = built(mp.Sites.anchors(A[:2]), mp.Sites.anchors(B[:2]), mp.Pool(space, {"X": n}), timestep=4.0)
    check_law("a pool", weights, looks(simulation, 12_000), sees=0.12)


@pytest.mark.slow
def test_both_heads_may_hold_places_of_one_lattice():
    """Head 1 at the one and head 2 at the other, or the reverse: a molecule of two different heads in 2 states."""
    x, space = np.concatenate([A[:1], B[:1]]), 3e5
    w = {frozenset(): 1.0}
    for i in range(2):
        w[frozenset([(i, -1)])], w[frozenset([(-1, i)])] = 1.0 / space / K_D
    both = math.exp(-energy(*x) / KT) / volume() / space / K_D.prod()
    w[frozenset([(0, 1)])] = w[frozenset([(1, 0)])] = both
    simulation = built(mp.Sites.anchors(x), None, mp.Pool(space, {"X": 1}), timestep=4.0)
    check_law("one lattice", w, looks(simulation, 12_000), sees=0.11)


@pytest.mark.slow
def test_molecules_come_from_the_cell_of_their_place_and_go_there():
    """Of N molecules that hop between two cells, one holds the place with N/(K V) to 1, V that of both."""
    n, k_d, size = 3, 1e-3, 12.0
    odds = n / (k_d * 2.0 * size**3)
    system = mp.System(one_bead())
    links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
    pool = system.add_pool(mp.Compartments((2, 1, 1), size, {"X": n}, {"X": 2.0 * size**2}))
    places = mp.Sites.anchors([[15.0, 1.0, 1.0]]), mp.Sites.anchors([[1e4, 1.0, 1.0]])
    system.add_jump(mp.jumps.CrosslinkerBinding(
        links, *places, pool=pool["X"], dissociation_constants=(k_d, 1e9), off_rates=(2.0, 1e-6), name="binding"
    ))  # fmt: skip
    system.add_jump(mp.jumps.Reactions(pool, []))
    context = mp.Context(system, mp.BrownianIntegrator(0.05, kT=KT, seed=4), threads=1)
    held, beside = [], []
    for _ in range(6000):
        context.step(20)
        state = context.get_state(positions=True)
        held.append(len(state.jumps["binding"]["links"]))
        beside.append(state.pools["X"][1, 0, 0] / max(n - held[-1], 1))
        assert state.pools["X"].sum() + held[-1] == n
    check_mean("a place in a cell", np.array(held, float), odds / (1.0 + odds), sees=0.06, time_series=True)
    check_mean("molecules in its cell", np.array(beside), 0.5, sees=0.05, time_series=True)


def test_weights_for_replica_exchange_are_those_of_the_law():
    """Between two sets of numbers the ratio of weights is that of the formula, whatever the molecules hold."""
    numbers = {"bound": [[0, -1], [-1, 1], [1, 2]], "off_rates": 1e-9}
    simulation = built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(1e6, {"X": 5}), **numbers)
    state = simulation.context.get_state(positions=True, energy=True)
    (operation,), (jump,) = simulation.context._schedule.jumping.operations, simulation.system.jumps
    expected = -2.0 * math.log(K_D[0]) - 2.0 * math.log(K_D[1]) - math.log(volume())
    assert jump.log_weight(operation, state, KT) == pytest.approx(expected, rel=1e-9)
    hotter = expected + math.log(jump.volume(KT) / jump.volume(1.1 * KT))
    assert jump.log_weight(operation, state, 1.1 * KT) == pytest.approx(hotter, rel=1e-12)


# The contract of jumps ----------------------------------------------------------------------------------------------


def case_of(share):
    """Two places in each copy, and a reservoir: none, one head at either, a molecule at each, one at both."""
    kT, c = 1.0, 1e-3
    u = 0.5 * STIFFNESS * (51.0 - LENGTH) ** 2
    k_d, space = np.array([2e-3, 5e-4]), 0.0

    def make(copies, seed, threads, timestep):
        make.copies = copies
        apart = np.zeros((copies, 3))
        apart[:, 1] = 1000.0 * np.arange(copies)
        sides = mp.Sites.anchors(apart), mp.Sites.anchors(apart + [51.0, 0.0, 0.0])
        return built(*sides, mp.Pool(1.0, concentrations={"X": c}), timestep, seed, threads, kT=kT,
                     dissociation_constants=k_d, load_sharing=share)  # fmt: skip

    def states(state):
        i, j = state.jumps["binding"]["links"].T
        found = np.zeros(make.copies, int)
        np.add.at(found, i[i >= 0], 1)
        np.add.at(found, j[j >= 0], 2)
        found[i[(i >= 0) & (j >= 0)]] = 4
        return found

    c_, w = np.polynomial.legendre.leggauss(2000)
    r = 60.0 * (c_ + 1.0)
    space = 60.0 * (w @ (4.0 * np.pi * r**2 * np.exp(-0.5 * STIFFNESS * (r - LENGTH) ** 2 / kT)))
    on = np.array(OFF) / k_d
    # 0: none, 1: head 1, 2: head 2, 3: one molecule each, 4: one molecule.
    q = np.zeros((5, 5))
    for h, (to, other) in enumerate([(1, 2), (2, 1)]):
        q[0, to] = q[other, 3] = on[h] * c
        q[to, 0] = q[3, other] = OFF[h]
        q[other, 4] = on[h] / space * math.exp(-(1.0 - share) * u)
        q[4, other] = OFF[h] * math.exp(share * u)
    one, two = c / k_d
    weights = np.array([1.0, one, two, one * two, c / k_d.prod() / space])
    return JumpCase("CrosslinkerBinding", make, states, q, np.array([0.0, 0.0, 0.0, 0.0, u]), weights=weights)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.258, 1.0])
def test_crosslinkers_keep_the_contract(share):
    check_jump(case_of(share), copies=5_000, sees=0.175)


# On rods that move --------------------------------------------------------------------------------------------------


def moving(seed=1, threads=1, molecules=40, timestep=0.02, copies=12, **options):
    """Pairs of rods in traps, with places of their own, and one pool: (simulation, lattice)."""
    topology = mp.Topology()
    nodes = [[[40.0 * y, 3.0 * k + 200.0 * c, 0.0] for k in range(4)] for c in range(copies) for y in (0, 1)]
    rods = topology.add_filaments(nodes, node_mass=1.0, node_friction=2.0, name="rods")
    lattice = rods.lattice(1.5)
    system = system_with(topology, mp.forces.HarmonicTrap(rods, 0.2, np.concatenate(nodes)),
                         mp.forces.FilamentBending(rods, 400.0))  # fmt: skip
    links = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=40.0, name="springs"))
    pool = system.add_pool(mp.Pool(1e5, {"X": molecules}))
    numbers = {"dissociation_constants": (2e-4, 1e-4), "off_rates": (1.5, 1.0)} | options
    system.add_jump(mp.jumps.CrosslinkerBinding(links, lattice, pool=pool["X"], name="binding", **numbers))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=4.0, seed=seed), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=4.0, seed=2)
    return simulation, lattice


def count(state, molecules=40):
    rows = state.jumps["binding"]["links"]
    both = (rows >= 0).all(axis=1)
    return int(state.pools["X"]), int((~both).sum()), int(both.sum())


def test_molecules_are_conserved_to_the_last_one():
    simulation, lattice = moving()
    seen = set()
    for _ in range(60):
        simulation.step(10)
        state = simulation.context.get_state(positions=True)
        assert sum(count(state)) == 40
        seen.add(count(state))
        held = state.jumps["binding"]["links"]
        held = held[held >= 0]
        assert len(np.unique(held)) == len(held)
        assert len(state.links(simulation.system["springs"])) == count(state)[2]
    assert len(seen) > 10
    assert max(both for *_, both in seen) > 3
    assert len(lattice) == 24 * 7


@pytest.mark.slow
def test_no_net_heat_on_rods_that_move():
    """Energies of 10⁶ events, of rods in balance with their crosslinkers, have the mean 0. A run of 390 680 events gave
    (1.1 ± 1.1)e-5 pN nm, at kT = 4."""
    simulation, _ = moving(off_rates=(60.0, 40.0))
    simulation.step(500)
    heard = simulation.context.events()
    energies, n = [], 0
    for _ in range(260):
        simulation.step(50)
        events = heard.heard()
        energies.append(sum(event.energy for event in events) / len(events))
        n += len(events)
        heard.forget(len(events))
    assert n > 1e6
    check_mean("heat of crosslinkers", np.array(energies), 0.0, sees=0.002, time_series=True)


def test_the_books_close_and_balanced_events_are_driven_by_nothing():
    simulation, _ = moving()
    simulation.step(50)
    simulation.report_work = True
    heard = simulation.context.events()
    start = simulation.context.get_state(positions=True, energy=True)
    simulation.step(300)
    end = simulation.context.get_state(positions=True, energy=True)
    balanced(end, start)
    assert end.chemical_work == 0.0
    kinds = [event.kind for event in heard.heard()]
    assert min(kinds.count(kind) for kind in ("bind", "unbind", "attach", "detach")) > 5
    assert end.entropy_production == start.entropy_production == 0.0
    # Around a cycle from the pool and back, the driving energies have the sum 0: those of one head both ways cancel.
    volume = simulation.system["binding"].volume(4.0)
    for event in heard.heard():
        if event.kind in ("bind", "unbind"):
            sign = 1.0 if event.kind == "bind" else -1.0
            ratio = [4.0 * math.log(1.0 / (k * volume)) for k in (2e-4, 1e-4)]
            assert min(abs(event.chemical_energy - sign * r) for r in ratio) < 1e-9


def test_a_state_that_is_set_has_the_same_molecules(tmp_path):
    simulation, _ = moving()
    simulation.step(200)
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    assert count(state)[1] > 0 < count(state)[2]
    other, _ = moving(seed=5)
    other.step(3)
    other.context.set_state(state)
    again = other.context.get_state(positions=True, energy=True)
    assert np.array_equal(again.jumps["binding"]["links"], state.jumps["binding"]["links"])
    assert again.potential_energy == pytest.approx(state.potential_energy, rel=1e-12)
    assert count(again) == count(state)
    other.step(20)
    assert sum(count(other.context.get_state(positions=True))) == 40


def test_molecules_of_removed_filaments_go_to_the_pool_or_hold_on_by_one_head():
    simulation, _ = moving()
    simulation.step(300)
    before = simulation.context.get_state(positions=True)
    rows = before.jumps["binding"]["links"]
    with simulation.topology.edit():
        simulation.topology["rods"].remove(np.arange(0, 24, 2), terms="remove")
    after = simulation.context.get_state(positions=True)
    # Of each pair of rods one is left; places are seven of each.
    left = (rows >= 0) & (rows // 7 % 2 == 1)
    assert count(after) == (40 - left.any(axis=1).sum(), left.any(axis=1).sum(), 0)
    assert count(before)[2] > 0 < count(before)[1]
    assert after.counts["binding"] == before.counts["binding"]
    simulation.step(50)
    assert sum(count(simulation.context.get_state(positions=True))) == 40


def test_cells_of_molecules_whose_places_are_removed_are_not_guessed():
    topology = mp.Topology()
    rods = topology.add_filaments([[[0.0, 0, 0], [9.0, 0, 0]], [[0.0, 9, 0], [9.0, 9, 0]]], 1.0, 1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=9.0))
    grid = system.add_pool(mp.Compartments((2, 1, 1), 10.0, {"X": 3}))
    system.add_jump(mp.jumps.CrosslinkerBinding(
        links, rods.lattice(3.0), pool=grid["X"], dissociation_constants=1.0, off_rates=1e-9, bound=[[0, -1]]
    ))  # fmt: skip
    context = mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0))
    context.step(1)

    def remove():
        with topology.edit():
            rods.remove(0, terms="remove")

    refuses(mp.TopologyError, "not known to which cell of the pool molecules go", remove)


def test_trajectories_and_pictures_show_heads_that_are_alone(tmp_path):
    simulation, lattice = moving()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 100))
    simulation.step(200)
    state = simulation.context.get_state(positions=True)
    simulation.close()
    rows = state.jumps["binding"]["links"]
    with mp.Trajectory(tmp_path / "run.h5") as run:
        assert np.array_equal(run[-1].links("binding"), rows)
        ends = run[-1].link_ends("binding")
    places = lattice.positions(state)
    first = np.where(rows[:, 0] >= 0, rows[:, 0], rows[:, 1])
    np.testing.assert_allclose(ends[:, 0], places[first], rtol=1e-5, atol=1e-3)
    alone = (rows < 0).any(axis=1)
    assert 0 < alone.sum() < len(rows)
    assert np.array_equal(ends[alone, 0], ends[alone, 1])
    drawn = scene_of(simulation, {}).links["binding"]
    assert drawn.shape == (len(rows), 2, 3)
    np.testing.assert_allclose(drawn[alone, 0], drawn[alone, 1])
    _, solids = objects_of(scene_of(simulation, {}))
    (balls,) = (s for s in solids if s.name == "binding")
    np.testing.assert_allclose(radii_of(balls, 2.0).reshape(-1, 2), np.where(alone, 2.0, 0.6)[:, None] * [1.0, 1.0])


@pytest.mark.slow
def test_two_jumps_at_one_lattice_see_each_others_heads():
    """A place that a head alone holds takes no link of another jump."""
    copies = 3000
    apart = np.zeros((copies, 3))
    apart[:, 1] = 1000.0 * np.arange(copies)
    sides = mp.Sites.anchors(apart), mp.Sites.anchors(apart + [53.0, 0.0, 0.0])
    simulation_of = built(*sides, mp.Pool(1.0, concentrations={"X": 8e-6}), timestep=0.5,
                          dissociation_constants=(4e-6, 8e-6), off_rates=4.0)  # fmt: skip
    system = simulation_of.system
    more = mp.jumps.LinkBinding(system["Links"], *sides, off_rate=1.0, on_rate=1.0, name="more")
    other = mp.System(system.topology)
    for force in system.forces:
        other.add_force(force)
    for pool in system.pools.values():
        other.add_pool(pool)
    other.add_jump(system["binding"])
    other.add_jump(more)
    context = mp.Context(other, mp.BrownianIntegrator(0.05, kT=KT, seed=4), threads=1)
    context.step(200)
    state = context.get_state(positions=True)
    rows, linked = (state.jumps[name]["links"] for name in ("binding", "more"))
    held = [rows[:, k][rows[:, k] >= 0] for k in (0, 1)]
    assert not np.isin(linked[:, 0], held[0]).any()
    assert not np.isin(linked[:, 1], held[1]).any()
    # Nobody; heads at either or both; both by one molecule; a link of the other jump.
    one, two, both = 2.0, 1.0, 8e-6 / (4e-6 * 8e-6 * volume())
    w = np.array([1.0, one, two, one * two, both, 1.0])
    n = np.zeros(copies, int)
    n[held[0]] += 1
    n[held[1]] += 2
    n[rows[(rows >= 0).all(axis=1), 0]] = 4
    n[linked[:, 0]] = 5
    check_chi_square("a shared place", np.bincount(n, minlength=6), copies * w / w.sum(), sees=0.2)


# Given wrongly ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"dissociation_constants": 0.0}, mp.ParameterError, "dissociation_constants"),
    ({"dissociation_constants": (1.0, 2.0, 3.0)}, mp.ParameterError, "dissociation_constants"),
    ({"off_rates": (1.0, -1.0)}, mp.ParameterError, r"off_rates.*-1"),
    ({"load_sharing": 1.5}, mp.ParameterError, "load_sharing = 1.5"),
    ({"bound": [[0, 7]]}, mp.TopologyError, r"bound\[0, 1\] = 7, but lattice_b has sites 0 to 2"),
    ({"bound": [[-1, -1]]}, mp.ParameterError, "holds nothing is in the pool"),
    ({"bound": [[0, 1], [0, -1]]}, mp.ParameterError, r"bound\[1\] = \(0, -1\) cannot be: there is a head"),
])  # fmt: skip
def test_refused(change, error, text):
    def make():
        built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(1e5, {"X": 1}), **change).step(0)

    refuses(error, text, make)


def test_both_heads_are_told_in_words():
    jump = built(mp.Sites.anchors(A), mp.Sites.anchors(B), mp.Pool(1e5, {"X": 1})).system["binding"]
    assert "off_rates=[3, 1], load_sharing=0.5" in repr(jump)
    assert repr(mp.forces.Links([], [], 2.0)) == "Links(0: stiffness=[], length=[])"


def test_other_things_than_species_of_a_pool_are_refused():
    links = mp.forces.Links([], [], stiffness=1.0, length=1.0)
    numbers = {"dissociation_constants": 1.0, "off_rates": 1.0}
    for pool in (7, "X", mp.Pool(1.0, {"X": 1})):
        refuses(mp.ParameterError, "pool must be a species of a pool", mp.jumps.CrosslinkerBinding, links,
                mp.Sites.anchors(A), pool=pool, **numbers)  # fmt: skip
