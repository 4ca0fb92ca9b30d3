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
    refuses(mp.TopologyError, r"links\[1\] = \(0, 1\) cannot be: one has as many links", set_links, "binding",
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


# Molecules with heads -----------------------------------------------------------------------------------------------


def with_heads(bound, molecules=3, kind="X", heads=1, pool=None, seed=1, off=1e-9):
    """Crosslinkers, motors or bundles of motors between two filaments that stay, 6 places each, at 9 nm."""
    topology = mp.Topology()
    nodes = [[[8.0 * i, 9.0 * k, 0.0] for i in range(6)] for k in range(2)]
    lattice = topology.add_filaments(nodes, 1e30, 1e30, constrained=False, name="actin").lattice(8.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=8.0, name="links"))
    pool = system.add_pool(mp.Pool(1e6, {"X": molecules}, name="pool") if pool is None else pool)
    numbers = {"pool": pool["X"], "dissociation_constants": 1e-3, "bound": bound, "name": "binding"}
    if kind == "X":
        system.add_jump(mp.jumps.CrosslinkerBinding(links, lattice, off_rates=off, **numbers))
    else:
        system.add_jump(mp.jumps.Motors(
            links, lattice, off_rate=off, step=8.0, unloaded_velocity=1e-6, stall_force=2.0, heads=heads,
            on_rate=4.0 if heads > 1 else None, **numbers))  # fmt: skip
    return mp.Simulation(system, mp.BrownianIntegrator(0.2, kT=4.141947, seed=seed), threads=1)


def in_pool(simulation):
    return int(simulation.context.get_state().pools["X"])


@pytest.mark.parametrize("kind", ["X", "M"])
def test_molecules_are_moved_and_those_that_are_released_go_to_the_pool(kind):
    simulation = with_heads([[0, 6], [1, 7], [2, -1]], kind=kind)
    simulation.report_work = True
    start = simulation.context.get_state(energy=True)
    # One stays, one holds on by its second head, one is gone, and one has come.
    simulation.context.set_links("binding", [[0, 6], [-1, 7], [3, 10]])
    assert bound(simulation).tolist() == [[0, 6], [3, 10], [-1, 7]]
    assert in_pool(simulation) == 3
    end = simulation.context.get_state(energy=True)
    far = 0.25 * (np.hypot(8.0, 9.0) - 8.0) ** 2
    assert end.potential_energy - start.potential_energy == pytest.approx(far - 0.25, rel=1e-12)
    assert end.protocol_work - start.protocol_work == pytest.approx(far - 0.25, rel=1e-12)
    simulation.context.set_links("binding", [[-1, 10]])
    assert in_pool(simulation) == 5
    simulation.context.set_links("binding", [])
    assert in_pool(simulation) == 6
    simulation.step(3)


def test_a_run_after_heads_were_set_is_that_of_molecules_bound_at_the_start():
    ends = []
    for by_hand in (True, False):
        rows = [[0, 6], [2, -1], [-1, 9]]
        simulation = with_heads(() if by_hand else rows, 3 + 3 * by_hand, off=2.0)
        if by_hand:
            simulation.context.set_links("binding", rows)
        simulation.step(150)
        state = simulation.context.get_state(positions=True)
        ends.append((bound(simulation).tolist(), state.counts["binding"], in_pool(simulation)))
    assert ends[0] == ends[1]
    assert ends[0][1].accepted > 20


def test_bundles_that_stay_hold_by_as_many_heads():
    simulation = with_heads([[0, 6], [1, 7]], kind="M", heads=9, off=1.0)
    simulation.step(10)
    before = simulation.context.get_state(positions=True).jumps["binding"]["heads"]
    assert before.min() > 2
    simulation.context.set_links("binding", [[1, 8], [0, 6]])
    shown = simulation.context.get_state(positions=True).jumps["binding"]
    of = dict(zip(map(tuple, shown["links"].tolist()), shown["heads"].tolist(), strict=True))
    assert of == {(0, 6): before[0].tolist(), (1, 8): [before[1, 0], 1]}


def test_molecules_go_to_the_cell_of_their_place():
    cells = mp.Compartments((2, 1, 1), 20.0, {"X": 3})
    simulation = with_heads([[0, 6], [4, 10]], pool=cells)
    start = simulation.context.get_state().pools["X"].ravel()
    simulation.context.set_links("binding", [[0, 6], [1, 8]])
    assert (simulation.context.get_state().pools["X"].ravel() - start).tolist() == [-1, 1]


def test_heads_that_may_not_be_set_are_refused_and_all_stays_as_it_was():
    simulation = with_heads([[0, 6]], 2)
    set_links = simulation.context.set_links
    for error, text, rows in [
        (mp.TopologyError, r"links\[1\] = \(1, 6\) cannot be: there is a head at that place", [[0, 6], [1, 6]]),
        (mp.TopologyError, r"links\[0\] = \(-1, -1\) cannot be: a molecule that holds nothing", [[-1, -1]]),
        (mp.TopologyError, r"bound\[0, 1\] = 12", [[0, 12]]),
        (mp.ParameterError, "links= take 1 more of X from the pool than there are", [[1, 7], [2, -1], [3, -1], [4, 6]]),
    ]:
        refuses(error, text, set_links, "binding", rows)
        assert bound(simulation).tolist() == [[0, 6]]
        assert in_pool(simulation) == 2
    refuses(mp.ParameterError, "links have no states|of links have no states", set_links, "binding", [[0, 6]], ["weak"])
    set_links("binding", [[0, 6], [1, 7], [2, -1]])
    assert in_pool(simulation) == 0


def test_a_run_after_a_refusal_has_the_bits_of_one_without():
    ends = []
    for refused in (True, False):
        simulation = with_heads([[0, 6], [2, -1]], 4, off=2.0)
        simulation.step(30)
        if refused:
            refuses(mp.ParameterError, "from the pool", simulation.context.set_links, "binding",
                    [[i, -1] for i in range(6)] + [[-1, i] for i in range(6, 12)])  # fmt: skip
        simulation.step(100)
        ends.append([array.tobytes() for array in simulation.context._schedule.dynamical_arrays().values()])
    assert ends[0] == ends[1]


def test_links_are_set_in_states():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 9.0 * k, 0.0] for k in range(4)], 1.0, 1e30)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], 2.0, 5.0, states=["weak", "strong"], name="links"))
    ends = mp.Sites.anchors([[5.0, 9.0 * k, 0.0] for k in range(4)])
    system.add_jump(mp.jumps.LinkBinding(links, mp.Sites.beads(beads), ends, off_rate=1e-9, on_rate=0.0,
                                         name="binding"))  # fmt: skip
    context = mp.Context(system, mp.BrownianIntegrator(0.1, kT=1.0), threads=1)

    def strong():
        held = context.get_state(positions=True).jumps["binding"]
        return dict(zip(map(tuple, held["links"].tolist()), held["states"].tolist(), strict=True))

    context.set_links("binding", [[0, 0], [2, 2]], states=["strong", "weak"])
    assert strong() == {(0, 0): 1, (2, 2): 0}
    context.set_links("binding", [[2, 2], [0, 0], [3, 3]])
    assert strong() == {(2, 2): 0, (0, 0): 1, (3, 3): 0}
    context.set_links("binding", [[3, 3], [2, 2]], states=np.array([0, 1]))
    assert strong() == {(3, 3): 0, (2, 2): 1}
    context.set_links("binding", [[3, 3], [2, 2]], states="strong")
    assert set(strong().values()) == {1}
    for states, text in [
        (["weak", "wek"], r"binding: states\[1\] = 'wek' but must be one of 'weak', 'strong'"),
        ([0, 2], r"states\[1\] = 2"), (["weak"], "one for each of 2 links, not 1"),
    ]:  # fmt: skip
        refuses(mp.ParameterError, text, context.set_links, "binding", [[0, 0], [1, 1]], states=states)
    assert strong() == {(3, 3): 1, (2, 2): 1}
    context.step(2)
