"""Places that several jumps hold: no more links and heads than there is room for, also at the start and in states."""

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp


def system_of(kinds, bound, partners=1):
    """Jumps x and y on one lattice of two filaments, 6 places each: links (L), crosslinkers (X) or motors (M)."""
    topology = mp.Topology()
    nodes = [[[8.0 * i, 9.0 * k, 0.0] for i in range(6)] for k in range(2)]
    lattice = topology.add_filaments(nodes, 1e30, 1e30, name="actin").lattice(8.0)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(1e4, {"A": 3}))
    for name, kind, rows in zip("xy", kinds, bound, strict=True):
        add(system, lattice, pool, kind, rows, name, partners)
    return system


def add(system, lattice, pool, kind, rows, name, partners=1):
    links = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=9.0, name=f"links of {name}"))
    heads = {"pool": pool["A"], "dissociation_constants": 1e-4, "bound": rows, "name": name}
    walk = {"off_rate": 1.0, "step": 8.0, "unloaded_velocity": 1.0, "stall_force": 1.0}
    system.add_jump({
        "L": lambda: mp.jumps.LinkBinding(
            links, lattice, off_rate=1.0, on_rate=0.0, bound=rows, partners=partners, name=name),
        "X": lambda: mp.jumps.CrosslinkerBinding(links, lattice, off_rates=1.0, **heads),
        "M": lambda: mp.jumps.Motors(links, lattice, **walk, **heads),
    }[kind]())  # fmt: skip


def started(*arguments):
    return mp.Simulation(system_of(*arguments), mp.BAGOGABIntegrator(1e-6, kT=4.14), threads=1)


@pytest.mark.parametrize("kinds", ["XX", "LL", "LX", "XL", "XM"])
def test_two_jumps_do_not_hold_one_place_at_the_start(kinds):
    side = "b" if kinds[1] == "L" else "lattice_b"
    text = rf"y: bound\[1, 1\] = 6 of {side} is held by x: that place has room for 1"
    refuses(mp.ParameterError, text, started, kinds, ([[0, 6]], [[2, 8], [1, 6]]))
    held = started(kinds, ([[0, 6]], [[2, 8], [1, 7]])).context.get_state(positions=True).jumps
    assert (held["x"]["links"].tolist(), held["y"]["links"].tolist()) == ([[0, 6]], [[2, 8], [1, 7]])


def test_a_head_alone_fills_its_place():
    for rows in ([[-1, 6]], [[6, -1]]):
        refuses(mp.ParameterError, r"y: bound\[0, 1\] = 6 of b is held by x", started, "XL", (rows, [[1, 6]]))


def test_a_place_with_room_for_two_takes_a_link_of_each():
    held = started("LL", ([[0, 6]], [[0, 7]]), 2).context.get_state(positions=True).jumps
    assert len(held["x"]["links"]) == len(held["y"]["links"]) == 1
    rows = [[0, 6], [0, 7]]
    refuses(mp.ParameterError, r"y: bound\[0, 0\] = 0 of a is held by x: that place has room for 2", started, "LL",
            (rows, [[0, 8]]), 2)  # fmt: skip


def test_states_and_checkpoints_with_two_heads_at_a_place_are_refused():
    simulation = started("XM", ([[0, 6]], [[1, 7]]))
    other = started("XM", ([[1, 8]], [[2, 9]]))
    jumping = simulation.context._schedule.jumping
    held = {name: {"links": other.context.get_state(positions=True).jumps[name]["links"]} for name in "xy"}
    held["y"] = {"links": np.array([[3, 8]])}
    arrays = jumping.with_shown({}, held)
    text = "y: 8 of lattice_a, which it is said to hold, is held by x"
    refuses(mp.ParameterError, text, jumping.check_shown, "set_state", arrays)
    everything = simulation.context._schedule.dynamical_arrays() | arrays
    refuses(mp.ParameterError, text, simulation.context._schedule.take_arrays, everything, 0, (0.0, 0))
    assert simulation.context.get_state(positions=True).jumps["y"]["links"].tolist() == [[1, 7]]
    simulation.step(2)


def test_links_that_an_edit_adds_are_compared_with_those_held():
    simulation = started("XL", ([[0, 6]], [[1, 7]]))
    system, topology = simulation.system, simulation.topology
    simulation.context.set_links("y", [])

    def more(rows):
        with topology.edit():
            add(system, topology["actin"].lattice(8.0), system.pools["Pool"], "L", rows, "z")

    refuses(mp.ParameterError, r"z: bound\[0, 0\] = 0 of a is held by x", more, [[0, 8]])
    more([[1, 7]])
    assert simulation.context.get_state(positions=True).jumps["z"]["links"].tolist() == [[1, 7]]
    refuses(mp.TopologyError, "cannot be: one has as many links", simulation.context.set_links, "y", [[1, 8]])
