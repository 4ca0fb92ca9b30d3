"""Links that a jump has bound, moved and removed between steps."""

import numpy as np
import pytest
from builders import averaged_tensions, linked_beads, refuses

import medyanpy as mp


def bound(simulation):
    return simulation.context.get_state(positions=True).jumps["binding"]["links"]


def test_links_are_removed_and_their_energy_is_protocol_work():
    simulation, _ = linked_beads(4, [1.0, 2.0, 3.0, 4.0], None, off_rate=1e-9)
    simulation.report_work = True
    simulation.step(2)
    start = simulation.context.get_state(energy=True)
    simulation.context.set_links("binding", bound(simulation)[[0, 2]])
    end = simulation.context.get_state(energy=True, positions=True)
    assert bound(simulation).tolist() == [[0, 0], [2, 2]]
    assert end.potential_energy - start.potential_energy == pytest.approx(-(4.0 + 16.0), rel=1e-9)
    assert end.protocol_work - start.protocol_work == pytest.approx(-20.0, rel=1e-9)
    links = simulation.system["links"]
    assert links.tensions(end) == pytest.approx([2.0, 6.0])
    simulation.step(5)
    assert len(bound(simulation)) == 2


def test_links_are_moved_and_those_that_stay_keep_their_mean():
    simulation, _ = linked_beads(3, 1.0, mp.jumps.Bell(50.0, average=2.0))
    simulation.context.set_links("binding", [[0, 0], [1, 1]])
    simulation.step(4)
    mean = averaged_tensions(simulation)
    simulation.context.set_links("binding", [[2, 2], [0, 0]])
    assert averaged_tensions(simulation).tolist() == [mean[0], 0.0]
    rows = bound(simulation)
    assert {tuple(row) for row in rows.tolist()} == {(0, 0), (2, 2)}


def test_a_run_after_links_were_set_is_that_of_one_made_so():
    """Bits: of links that were set, and of those that were bound at the start of another system."""
    ends = []
    for by_hand in (True, False):
        simulation, _ = linked_beads(30, 1.0, None, off_rate=5.0, on_rate=5.0, friction=1e9, bound=not by_hand)
        if by_hand:
            simulation.context.set_links("binding", np.column_stack([np.arange(30)] * 2))
        simulation.step(20)
        ends.append((bound(simulation), simulation.context.get_state(positions=True).positions))
    assert all(np.array_equal(one, other) for one, other in zip(*ends, strict=True))


def test_pairs_that_may_not_be_bound_are_refused_and_all_stays_as_it_was():
    simulation, _ = linked_beads(3, 1.0, None)
    before, set_links = bound(simulation), simulation.context.set_links
    refuses(mp.TopologyError, r"links\[1\] = \(0, 1\) cannot be bound: one has as many links", set_links, "binding",
            [[0, 0], [0, 1]])  # fmt: skip
    refuses(mp.TopologyError, r"bound\[0, 1\] = 3, but b has sites 0 to 2", set_links, "binding", [[0, 3]])
    refuses(mp.ParameterError, "bindin", set_links, "bindin", [])
    assert np.array_equal(bound(simulation), before)
    simulation.step(3)
    assert np.array_equal(bound(simulation), before)
    set_links("binding", [])
    assert len(bound(simulation)) == 0


def test_messages_of_links_tell_how_those_of_jumps_are_changed():
    simulation, _ = linked_beads(2, 1.0, None)
    refuses(mp.ParameterError, r"there is no such link .*context.set_links", simulation.system["links"].remove, 0)
