"""Filaments whose links have subunits: lengths that are state."""

from itertools import pairwise

import numpy as np
import pytest
from builders import look, refuses, system_with

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError

RISE = 0.5


def chain(counts, start=(0.0, 0.0, 0.0), rise=RISE):
    """Nodes of a straight filament with so many subunits in each link."""
    return np.array(start) + np.concatenate([[0.0], np.cumsum(counts)])[:, None] * [rise, 0.0, 0.0]


def scene(rise=RISE, bending=0.0, seed=2, growth=False):
    topology = mp.Topology()
    topology.add_beads([[0.0, 20.0, 0.0]], mass=1.0, friction=1.0)
    counts = [[4, 6, 5], [3], [2, 7], [6, 6, 6, 6, 4]]
    nodes = [chain(own, (0.0, 3.0 * i, 0.0)) for i, own in enumerate(counts)]
    lengths = None if rise else RISE * np.concatenate(counts)
    actin = topology.add_filaments(nodes, 1.0, 0.7, rise=rise, link_lengths=lengths, name="actin")
    system = system_with(topology, mp.forces.HarmonicTrap(actin, 0.3, [1.0, 4.0, 0.0]))
    if bending:
        system.add_force(mp.forces.FilamentBending(actin, bending, 0.3))
    if growth:
        pool = system.add_pool(mp.Pool(volume=100.0, counts={"G": 40}))
        system.add_jump(
            mp.jumps.Polymerization(actin, pool["G"], end="both", on_rate=20.0, off_rate=8.0, subunits=(2, 8))
        )
    word = "JBAGOGABJ" if growth else "BAOAB"
    return actin, mp.Simulation(system, mp.SplittingIntegrator(word, 0.02, kT=1.0, seed=seed), threads=1)


def test_links_of_subunits_move_as_links_of_their_lengths():
    states = []
    for rise in (None, RISE):
        _, simulation = scene(rise)
        simulation.step(50)
        states.append(look(simulation))
    assert (states[0].positions == states[1].positions).all()
    assert (states[0].velocities == states[1].velocities).all()
    # Moduli are divided by lengths in another order.
    for rise in (None, RISE):
        _, simulation = scene(rise, bending=4.0)
        simulation.step(50)
        states.append(look(simulation))
    np.testing.assert_allclose(states[2].positions, states[3].positions, atol=1e-10)
    np.testing.assert_allclose(states[2].forces, states[3].forces, atol=1e-9)
    assert np.abs(states[2].positions - states[0].positions).max() > 1e-3


def test_room_for_links_changes_no_bit_of_a_run():
    links = [1, 2, 3, 5, 2, 1, 4, 3, 2, 6, 1]
    rng = np.random.default_rng(3)
    nodes = [np.array([0.0, 30.0 * i, 0.0]) + np.arange(n + 1)[:, None] * one_of(rng) for i, n in enumerate(links)]
    v, seen = rng.normal(size=(sum(links) + len(links), 3)), []
    for capacity in (None, 7, 9, 40):
        topology = mp.Topology()
        actin = topology.add_filaments(nodes, 1.0, 0.7, rise=RISE, capacity_links=capacity)
        system = system_with(topology, mp.forces.FixmanPotential(actin, kT=1.0), mp.forces.FilamentBending(actin, 5.0))
        simulation = mp.Simulation(system, mp.SplittingIntegrator("BAB", 0.01), threads=1)
        state = look(simulation)
        velocities = np.full_like(state.positions, np.nan)
        velocities[state.alive] = v
        simulation.context.set_velocities(velocities)
        simulation.step(60)
        state = look(simulation)
        assert state.alive.sum() == len(v)
        seen.append((state.positions[state.alive], state.velocities[state.alive], state.forces[state.alive]))
    for one in seen[1:]:
        assert all((a == b).all() for a, b in zip(one, seen[0], strict=True))


def one_of(rng):
    """A vector of two nanometers."""
    d = rng.normal(size=3)
    return 2.0 * d / np.linalg.norm(d)


def lengths_of(actin, state):
    x = state.positions[actin.beads]
    return np.linalg.norm(x[actin.links[:, 1]] - x[actin.links[:, 0]], axis=1)


def test_subunits_and_lengths_of_a_state():
    actin, simulation = scene(growth=True)
    start = look(simulation)
    assert actin.rise == RISE
    assert actin.kind.subunits_of_links(start).tolist() == [4, 6, 5, 3, 2, 7, 6, 6, 6, 6, 4]
    assert actin.subunits(start).tolist() == [15, 3, 9, 28]
    assert actin.lengths(start).tolist() == [7.5, 1.5, 4.5, 14.0]
    simulation.step(100)
    end = look(simulation)
    assert simulation.system["Polymerization"].counts.accepted > 50
    assert (actin.subunits(end) != actin.subunits(start)).all()
    np.testing.assert_allclose(lengths_of(actin, end), RISE * actin.kind.subunits_of_links(end), rtol=1e-9)
    np.testing.assert_allclose(actin.lengths(end), RISE * actin.subunits(end))
    # Nothing is lost: what is not in filaments is in the pool.
    assert actin.subunits(end).sum() + end.pools["G"] == actin.subunits(start).sum() + 40
    # Only the links at ends change.
    inner = [1, 7, 8, 9]
    assert (actin.kind.subunits_of_links(end)[inner] == actin.kind.subunits_of_links(start)[inner]).all()


def test_bending_follows_lengths():
    """Forces and second derivatives are those of filaments that were added with these lengths."""
    actin, simulation = scene(bending=4.0, growth=True)
    simulation.step(100)
    state = look(simulation)
    counts = actin.kind.subunits_of_links(state)
    topology = mp.Topology()
    topology.add_beads([[0.0, 20.0, 0.0]], mass=1.0, friction=1.0)
    x, starts = state.positions[actin.beads], actin.starts
    others = [x[a:b] for a, b in pairwise(starts)]
    other = topology.add_filaments(others, 1.0, 0.7, link_lengths=RISE * counts)
    system = system_with(topology, mp.forces.HarmonicTrap(other, 0.3, [1.0, 4.0, 0.0]),
                         mp.forces.FilamentBending(other, 4.0, 0.3))  # fmt: skip
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    there = context.get_state(positions=True, forces=True, energy=True)
    np.testing.assert_allclose(there.forces, state.forces, atol=1e-8)
    assert there.potential_energy == pytest.approx(state.potential_energy, rel=1e-9)
    ours, theirs = (c.hessian().toarray() for c in (simulation.context, context))
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_states_and_checkpoints_hold_lengths(tmp_path):
    actin, simulation = scene(bending=4.0, growth=True)
    simulation.step(60)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(60)
    end = look(simulation)
    other_actin, other = scene(bending=4.0, growth=True)
    other.context.set_state(middle)
    assert (other_actin.subunits(look(other)) == actin.subunits(middle)).all()
    np.testing.assert_allclose(look(other).positions, middle.positions, atol=1e-9)
    resumed = mp.Simulation.resume(tmp_path / "here.npz")
    loaded = scene(bending=4.0, growth=True)[1]
    loaded.load_checkpoint(tmp_path / "here.npz")
    for one in (resumed, loaded):
        one.step(60)
        there = look(one)
        assert (there.positions == end.positions).all()
        assert (there.column("subunits") == end.column("subunits")).all()
    bad = middle.column("subunits").copy()
    assert bad[0] == -1
    assert (bad[actin.beads[actin.starts[1:] - 1]] == 0).all()


def test_trajectories_hold_lengths(tmp_path):
    _, simulation = scene(growth=True)
    path = tmp_path / "run.h5"
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 10))
    simulation.step(50)
    simulation.close()
    frames = list(mp.Trajectory(path).read("subunits"))
    assert (frames[-1] == look(simulation).column("subunits")).all()
    assert any((frame != frames[-1]).any() for frame in frames)


def test_documents_hold_the_rise():
    actin, simulation = scene(growth=True)
    other = mp.deserialize(mp.serialize(simulation.system))
    assert other.topology["actin"].rise == RISE
    assert (other.topology["actin"].link_lengths == actin.link_lengths).all()


def test_minimum_keeps_the_lengths_of_now():
    actin, simulation = scene(bending=4.0, growth=True)
    simulation.step(60)
    simulation.minimize_energy()
    state = look(simulation)
    np.testing.assert_allclose(lengths_of(actin, state), RISE * actin.kind.subunits_of_links(state), rtol=1e-9)


def test_filaments_that_are_added_have_subunits():
    actin, simulation = scene(growth=True)
    simulation.step(50)
    before = actin.subunits(look(simulation)).tolist()
    with simulation.topology.edit():
        actin.add([chain([3, 4, 5], (0.0, 30.0, 0.0))])
    assert actin.subunits(look(simulation)).tolist() == [*before, 12]
    simulation.step(50)
    end = look(simulation)
    np.testing.assert_allclose(lengths_of(actin, end), RISE * actin.kind.subunits_of_links(end), rtol=1e-9)
    with simulation.topology.edit():
        actin.remove([1])
    simulation.step(50)
    end = look(simulation)
    np.testing.assert_allclose(lengths_of(actin, end), RISE * actin.kind.subunits_of_links(end), rtol=1e-9)


@pytest.mark.parametrize(
    ("error", "phrase", "given"),
    [
        (TopologyError, "ring has no end", {"closed": True}),
        (TopologyError, "they need constrained=True", {"constrained": False}),
        (TopologyError, "leave out directors=", {"directors": "parallel", "director_mass": 1.0}),
        (TopologyError, r"link 2 of filament 0 has a length of 2.5 nm, .* 4 times the rise of 0.7 nm", {"rise": 0.7}),
        (ParameterError, r"node_mass is 1 of node 0 and 0.5 of node 3, .* growing=True",
         {"node_mass": [1.0, 1.0, 1.0, 0.5]}),
        (ParameterError, "node_friction is 1 of node 0 and 2 of node 1", {"node_friction": [1.0, 2.0, 2.0, 1.0]}),
        (ParameterError, "node_friction along the filament is 2 of node 0 and 3 of node 1",
         {"node_friction": ([2.0, 3.0, 2.0, 2.0], 1.0)}),
        (ParameterError, "rise", {"rise": 0.0}),
        (ParameterError, "rise", {"rise": float("nan")}),
    ],
)  # fmt: skip
def test_refusals(error, phrase, given):
    arguments = {"node_mass": 1.0, "node_friction": 1.0, "rise": RISE} | given
    refuses(error, phrase, mp.Topology().add_filament, chain([4, 6, 5]), **arguments)


def test_presets_have_nodes_that_are_alike():
    nodes = [chain([10, 10, 10], rise=2.7), chain([10, 6], (0.0, 50.0, 0.0), rise=2.7)]
    arguments = mp.presets.actin().arguments(nodes, growing=True, relaxation_time=1e-8)
    actin = mp.Topology().add_filaments(**arguments, rise=2.7)
    assert np.ptp(actin.mass) == np.ptp(actin.friction) == 0.0
    # All together have the friction of the links, and of half a link more at each end, averaged over directions.
    along, across = mp.presets.actin().friction_per_length(0.5 * 46 * 2.7)
    assert actin.friction[0] == pytest.approx(3.0 / (1.0 / along + 2.0 / across) * 46 / 5 * 2.7)
    assert actin.friction_along is None
    assert actin.mass[0] == pytest.approx(1e-8 * actin.friction[0])
    room = mp.Topology().add_filaments(**arguments, rise=2.7, capacity_links=8)
    assert room.capacity_links == 8
    refuses(ParameterError, "growing = True", mp.presets.actin().arguments, nodes, growing=True, closed=True)
    refuses(ParameterError, "growing=True", mp.Topology().add_filaments, rise=2.7,
            **mp.presets.actin().arguments(nodes, relaxation_time=1e-8))  # fmt: skip


def test_other_things_that_need_lengths_that_stay():
    topology = mp.Topology()
    actin = topology.add_filament(chain([4, 6]), 1.0, 1.0, rise=RISE)
    refuses(TopologyError, "change their lengths as they grow", topology.constrain, "x^2 + y^2 + z^2 - 1",
            actin.beads[:1, None])  # fmt: skip
    plain = mp.Topology().add_filament(chain([4, 6]), 1.0, 1.0)
    context = mp.Context(mp.System(plain.topology), mp.VerletIntegrator(0.01))
    refuses(TopologyError, "have no subunits", plain.kind.subunits_of_links, context.get_state(positions=True))
    assert type(plain) is mp.beads.Filaments
    assert not hasattr(plain, "subunits")
