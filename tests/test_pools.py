"""Pools and compartments: state of a context, wherever states are held."""

import copy
import pickle

import numpy as np
import pytest
from builders import refuses, uneven_sheet

import medyanpy as mp

V = 1e6


def system_of(*pools, jump=True):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    for pool in pools:
        system.add_pool(pool)
    if jump:
        system.add_jump(mp.jumps.Reactions(pools[0], "A <-> B; k_on = 2.0, k_off = 1.0"))
    return system


def simulation_of(system, seed=1):
    return mp.Simulation(system, mp.BrownianIntegrator(0.05, kT=1.0, seed=seed))


def pool_and_grid():
    pool = mp.Pool(V, {"A": 100, "B": 0}, {"R": 2.0})
    grid = mp.Compartments((2, 3, 1), 10.0, {"G": 60, "H": np.arange(6).reshape(2, 3, 1)}, {"G": 200.0})
    system = system_of(pool, grid)
    system.add_jump(mp.jumps.Reactions(grid, [], name="hops"))
    return system


def same(one, two):
    assert list(one) == list(two)
    for name in one:
        assert list(one[name]) == list(two[name])
        for species in one[name]:
            np.testing.assert_array_equal(one[name][species], two[name][species])


def test_states_show_molecules_by_pool_and_species():
    system = pool_and_grid()
    simulation = simulation_of(system)
    pools = simulation.context.get_state().pools
    assert list(pools) == ["Pool", "Compartments"]
    assert dict(pools["Pool"]) == {"A": 100, "B": 0}
    assert pools["A"] == pools["Pool"]["A"] == 100
    assert pools["G"].shape == (2, 3, 1)
    assert pools["G"].sum() == 60
    np.testing.assert_array_equal(pools["H"].ravel(), np.arange(6))
    with pytest.raises(ValueError, match="read-only"):
        pools["G"][0] = 1
    refuses(KeyError, "'G', 'H'", pools.__getitem__, "X")
    simulation.step(20)
    later = simulation.context.get_state().pools
    assert later["A"] + later["B"] == 100 != later["A"]
    assert pools["A"] == 100
    # Another seed spreads them otherwise.
    other = simulation_of(pool_and_grid(), seed=2).context.get_state().pools
    assert not np.array_equal(other["G"], pools["G"])


def test_species_of_two_pools_need_the_name_of_one():
    first, second = mp.Pool(V, {"A": 1, "B": 0}), mp.Pool(V, {"A": 2})
    system = system_of(first, second)
    assert list(system.pools) == ["Pool", "Pool 2"]
    assert system["Pool 2"] is second
    assert system.name_of(second) == "Pool 2"
    assert second in system
    pools = simulation_of(system).context.get_state().pools
    refuses(mp.ParameterError, "Pool, Pool 2 have 'A'", pools.__getitem__, "A")
    assert pools["Pool 2"]["A"] == 2


def test_counts_are_set_and_carried_by_states():
    simulation = simulation_of(pool_and_grid())
    context = simulation.context
    simulation.step(10)
    state = context.get_state(positions=True, velocities=True)
    context.set_pools({"Pool": {"A": 7}, "Compartments": {"H": np.ones((2, 3, 1), int)}})
    pools = context.get_state().pools
    assert (pools["A"], pools["B"]) == (7, state.pools["B"])
    assert (pools["H"] == 1).all()
    context.set_state(state)
    same(context.get_state().pools, state.pools)
    simulation.step(10)
    there = context.get_state().pools
    context.set_state(state)
    simulation.step(10)
    same(context.get_state().pools, there)
    context.set_pools(state.pools)
    same(context.get_state().pools, state.pools)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"Pol": {"A": 1}}, mp.TopologyError, "there is no pool 'Pol': did you mean 'Pool'"),
        ({"Pool": {"X": 1}}, mp.ParameterError, "there is no species of 'Pool' 'X'"),
        ({"Pool": {"R": 1}}, mp.ParameterError, "'R' is a reservoir of fixed concentration"),
        ({"Pool": {"A": -1}}, mp.ParameterError, "= -1 but must be a whole number >= 0"),
        ({"Pool": {"A": 1.5}}, mp.ParameterError, "whole number"),
        ({"Pool": 3}, mp.ParameterError, "must be a dict"),
        (3, mp.ParameterError, "must be a dict"),
        ({"Compartments": {"G": 1}}, mp.TopologyError, "must have shape"),
        ({"Compartments": {"G": np.full((2, 3, 1), -2)}}, mp.ParameterError, r"\[0, 0, 0\] = -2 but must be >= 0"),
    ],
)
def test_counts_that_cannot_be_are_not_set(given, error, message):
    context = simulation_of(pool_and_grid()).context
    before = context.get_state().pools
    refuses(error, message, context.set_pools, given)
    same(context.get_state().pools, before)


def test_checkpoints_and_documents_hold_pools(tmp_path):
    simulation = simulation_of(pool_and_grid())
    simulation.step(7)
    simulation.save_checkpoint(tmp_path / "c")
    pools = simulation.context.get_state().pools
    resumed = mp.Simulation.resume(tmp_path / "c")
    same(resumed.context.get_state().pools, pools)
    simulation.step(9)
    resumed.step(9)
    same(resumed.context.get_state().pools, simulation.context.get_state().pools)
    system, integrator = mp.deserialize(mp.serialize(simulation))
    assert mp.serialize((system, integrator)) == mp.serialize(simulation)
    again = mp.Simulation(system, integrator)
    again.step(16)
    same(again.context.get_state().pools, simulation.context.get_state().pools)
    for other in (copy.deepcopy(system), pickle.loads(pickle.dumps(system))):
        assert list(other.pools) == ["Pool", "Compartments"]
        assert other.jumps[0].pools[0] is other.pools["Pool"]


def test_bad_counts_of_a_checkpoint_are_refused():
    context = simulation_of(pool_and_grid()).context
    arrays = {name: a.copy() for name, a in context._dynamical_arrays().items()}
    arrays["pool Pool"][0, 1] = -1
    refuses(
        mp.ParameterError, "pool Pool: species 1 in cell 0 has fewer than 0", context._set_dynamical_arrays, arrays, 0
    )


def test_edits_add_and_remove_pools():
    system = pool_and_grid()
    simulation = simulation_of(system)
    simulation.step(5)
    before = simulation.context.get_state().pools
    grid, hops = system.pools["Compartments"], system["hops"]
    refuses(mp.TopologyError, "in use by a Context", system.add_pool, mp.Pool(V, {"A": 1}))
    with system.topology.edit():
        refuses(mp.ParameterError, "hops uses", system.remove_pool, grid)
        new = system.add_pool(mp.Pool(V, {"N": 5}, name="new"))
    pools = simulation.context.get_state().pools
    assert list(pools) == ["Pool", "Compartments", "new"]
    same({k: pools[k] for k in before}, before)
    with system.topology.edit():
        system.remove_jump(hops)
        system.remove_pool(grid)
    assert list(simulation.context.get_state().pools) == ["Pool", "new"]
    refuses(mp.ParameterError, "is not in this system", _in_edit, system, new, grid)
    assert list(system.pools) == ["Pool", "new"]
    simulation.step(5)


def _in_edit(system, *pools):
    with system.topology.edit():
        for pool in pools:
            system.remove_pool(pool)


def test_pools_are_listed():
    system = pool_and_grid()
    text = str(system)
    assert "Pool" in text
    assert "A 100, B 0, R 2 1/nm³" in text
    assert "2 × 3 × 1 cells of 10 × 10 × 10 nm" in text
    assert "pools: Pool, Compartments" in repr(system)
    context = simulation_of(system).context
    assert "Compartments, G" in str(context)
    assert "Compartments, G" in str(context.get_state())
    assert repr(system.pools["Pool"]["A"]) == "Pool['A']"
    refuses(KeyError, "'A', 'B', 'R'", system.pools["Pool"].__getitem__, "X")


def test_places_have_cells():
    grid = mp.Compartments((2, 3, 4), (1.0, 2.0, 3.0), {"A": 0}, origin=(-1.0, 0.0, 0.0))
    bound = grid.bind(1, 0)
    assert bound.cell_at(np.array([-0.5, 3.0, 10.0])) == (0 * 3 + 1) * 4 + 3
    # The nearest cell, outside of a closed grid.
    assert bound.cell_at(np.array([9.0, -7.0, 4.0])) == (1 * 3 + 0) * 4 + 1
    assert bound.cell_at(np.array([np.nan, np.inf, -np.inf])) == (0 * 3 + 2) * 4
    ring = mp.Compartments((2, 3, 4), (1.0, 2.0, 3.0), {"A": 0}, periodic=True).bind(1, 0)
    assert ring.cell_at(np.array([-0.5, 7.0, 13.0])) == (1 * 3 + 0) * 4 + 0
    assert mp.Pool(V, {"A": 0}).bind(1, 0).cell_at(np.array([5.0, 5.0, 5.0])) == 0


def test_molecules_that_diffuse_need_a_jump():
    grid = mp.Compartments((2, 1, 1), 10.0, {"A": 1, "B": 0}, {"A": 1.0})
    refuses(mp.ParameterError, "diffuse, but nothing moves them", simulation_of, system_of(grid, jump=False))
    simulation_of(system_of(mp.Compartments((2, 1, 1), 10.0, {"A": 1}), jump=False)).step(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mp.Pool(0.0, {"A": 1}), "volume = 0.0 but must be"),
        (lambda: mp.Pool(V), "there are no species"),
        (lambda: mp.Pool(V, {"A": -1}), r"counts\['A'\]"),
        (lambda: mp.Pool(V, {"A": 0.5}), r"counts\['A'\]"),
        (lambda: mp.Pool(V, {"A": [1, 2]}), r"counts\['A'\]"),
        (lambda: mp.Pool(V, {"A+": 1}), "names of species cannot have"),
        (lambda: mp.Pool(V, {3: 1}), "the species 3 must be text"),
        (lambda: mp.Pool(V, [1]), "must be a dict"),
        (lambda: mp.Pool(V, {"A": 1}, {"A": 1.0}), "'A' has counts and a concentration"),
        (lambda: mp.Pool(V, {}, {"A": -1.0}), r"concentrations\['A'\] = -1.0 but must be"),
        (lambda: mp.Pool(V, {"A": 1}, name=3), "name"),
        (lambda: mp.Compartments((2, 2), 1.0, {"A": 1}), "must be three numbers"),
        (lambda: mp.Compartments((2, 2, 0), 1.0, {"A": 1}), r"cells\[2\]"),
        (lambda: mp.Compartments((1000, 1000, 1000), 1.0, {"A": 1}), "are too many"),
        (lambda: mp.Compartments((2, 2, 2), (1.0, 1.0), {"A": 1}), "must be one number, or three"),
        (lambda: mp.Compartments((2, 2, 2), -1.0, {"A": 1}), r"size\[0\] = -1"),
        (lambda: mp.Compartments((2, 2, 2), 1.0, {"A": np.zeros((2, 2), int)}), "must have shape"),
        (lambda: mp.Compartments((2, 2, 2), 1.0, {"A": np.full((2, 2, 2), -1)}), r"\[0, 0, 0\] = -1"),
        (lambda: mp.Compartments((2, 2, 2), 1.0, {"A": 1}, {"B": 1.0}), "there is no species with counts 'B'"),
        (lambda: mp.Compartments((2, 2, 2), 1.0, {"A": 1}, {"A": -1.0}), r"diffusion\['A'\] = -1"),
        (lambda: mp.Compartments((2, 2, 2), 1.0, {"A": 1}, {"R": 1.0}, concentrations={"R": 1.0}), "is a reservoir"),
    ],
)
def test_pools_that_cannot_be_are_refused(make, message):
    refuses(mp.ParameterError, message, make)
    refuses(mp.ParameterError, "is not a Pool or Compartments", system_of(mp.Pool(V, {"A": 1}), jump=False).add_pool, 3)


def test_trajectories_hold_molecules_of_every_frame(tmp_path):
    pytest.importorskip("h5py")
    path = tmp_path / "t.h5"
    simulation = simulation_of(pool_and_grid())
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 5, precision="double", velocities=True))
    states = []
    for _ in range(4):
        simulation.step(5)
        states.append(simulation.context.get_state().pools)
    simulation.reporters[0].flush()
    with mp.Trajectory(path) as trajectory:
        for frame, pools in zip(trajectory, states, strict=True):
            same(frame.pools, pools)
            same(frame.state().pools, pools)
        again = simulation_of(pool_and_grid())
        again.context.set_state(trajectory[1].state())
        same(again.context.get_state().pools, states[1])


def test_tables_have_a_column_for_each_species(tmp_path):
    def table(name, molecules):
        simulation = simulation_of(pool_and_grid())
        reporter = mp.reporters.StateDataReporter(tmp_path / name, 5, step=True, molecules=molecules)
        simulation.reporters.append(reporter)
        simulation.step(10)
        reporter.close()
        pools = simulation.context.get_state().pools
        head, *rows = (tmp_path / name).read_text().splitlines()
        return head, [int(n) for n in rows[-1].split(",")[1:]], pools

    head, numbers, pools = table("all", True)
    assert head == '#"Step","A of Pool","B of Pool","G of Compartments","H of Compartments"'
    assert numbers == [pools["A"], pools["B"], 60, 15]
    head, numbers, pools = table("some", ["B"])
    assert head == '#"Step","B of Pool"'
    assert numbers == [pools["B"]]
    simulation = simulation_of(pool_and_grid())
    with open(tmp_path / "none", "w") as stream:
        simulation.reporters.append(mp.reporters.StateDataReporter(stream, 5, molecules=["X"]))
        refuses(mp.ParameterError, "there is no species in pools or of beads 'X'", simulation.step, 5)


def test_units_of_rates_between_two():
    """11.6 /(µM s) of actin: one molecule in a µm³ has 1/602.2 µM."""
    k = 11.6 * mp.units.per_micromolar_second
    assert k / 1e9 * 602.214076 == pytest.approx(11.6, rel=1e-12)
    assert mp.units.micrometer2_per_second == 1e6


@pytest.mark.parametrize(("place", "periodic", "cut"), [
    ((5.0, 5.0, 5.0), False, True), ((2.5, 2.5, 2.5), False, False), ((2.5, 2.5, 2.5), True, False),
    ((0.2, 2.5, 2.5), True, True), ((0.2, 2.5, 2.5), False, False), ((30.0, 5.0, 5.0), False, False),
    ((9.5, 5.0, 2.5), False, True),
])  # fmt: skip
def test_a_grid_refuses_closed_membranes_that_cut_its_cells(place, periodic, cut):
    """Those within one cell, at a closed side of it or elsewhere do not, and open sheets never."""
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(1.0, 1)
    topology.add_membrane(mesh.with_vertices(mesh.vertices + place), vertex_mass=1.0, fixed=True, name="vesicle")
    topology.add_membrane(uneven_sheet(), vertex_mass=1.0, fixed=True, name="sheet")
    system = mp.System(topology)
    grid = system.add_pool(mp.Compartments((2, 2, 2), size=5.0, counts={"A": 5}, periodic=periodic))
    system.add_jump(mp.jumps.Reactions(grid, []))
    integrator = mp.BAGOGABIntegrator(0.1, kT=1.0)
    if cut:
        refuses(mp.ParameterError, "Compartments: the closed membrane 'vesicle' cuts its cells", mp.Context, system,
                integrator)  # fmt: skip
    else:
        mp.Context(system, integrator)
