"""Links: what they are by hand, how they come and go, and what that must not change. Forces: test_contract.py."""

import gc

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import HarmonicBonds, Links

N = 200
X = np.random.default_rng(5).normal(0.0, 10.0, (N, 3))
WORD = "BAGAB"


def scene():
    """Beads and a vesicle with points: (topology, system, handles)."""
    topology = mp.Topology()
    beads = topology.add_beads(X, mass=1.0)
    mesh = mp.TriangleMesh.icosphere(12.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0)
    points = topology.add_intriangle_points(vesicle, 60, mass=1.0, seed=2)
    return topology, mp.System(topology), (beads, vesicle, points)


def context_of(system, threads=1, timestep=1e-2):
    return mp.Context(system, mp.SplittingIntegrator(WORD, timestep), threads=threads)


def random_ends(rng, n, handles):
    """Beads of every kind, means and anchors, in any order."""
    every = np.concatenate([h.beads for h in handles])
    parts = (
        mp.Sites.beads(rng.choice(every, n))
        + mp.Sites.weighted(np.stack([rng.choice(every, 3, replace=False) for _ in range(n)]), [[0.2, 0.3, 0.5]] * n)
        + mp.Sites.anchors(rng.normal(0.0, 10.0, (n, 3)))
    )
    return parts[rng.permutation(3 * n)[:n]]


def energy_of(context):
    return context.get_state(energy=True).potential_energy


# By hand ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "spring", "rope"), [(3.0, 1.0, 0.0), (4.0, 0.0, 0.0), (5.0, 1.0, 1.0)])
def test_a_rope_pulls_and_does_not_push(distance, spring, rope):
    for one_sided, energy in ((False, spring), (True, rope)):
        topology = mp.Topology()
        beads = topology.add_beads([[0.0, 0, 0], [0.0, distance, 0]], mass=1.0)
        system = system_with(topology, Links(beads.beads[:1], beads.beads[1:], 2.0, 4.0, one_sided=one_sided))
        state = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True, energy=True)
        assert state.potential_energy == energy
        force = 2.0 * (distance - 4.0) if energy else 0.0
        assert state.forces.tolist() == [[0.0, force, 0.0], [0.0, -force, 0.0]]


def test_a_weighted_site_shares_the_force_like_a_lever():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [4.0, 0, 0]], mass=1.0)
    system = mp.System(topology)
    links = Links(mp.Sites.weighted([[0, 1]], [[0.25, 0.75]]), mp.Sites.anchors([[3.0, 0, 2.0]]), 5.0)
    system.add_force(links)
    f = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(forces=True).forces
    assert f.tolist() == [[0, 0, 2.5], [0, 0, 7.5]]


def test_a_bead_and_its_place_as_an_anchor_exert_nothing():
    """No direction to pull in: zero, with a finite length too; and a second derivative where there is one."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 2, 3]], mass=1.0)
    for length, one_sided, curvature in ((0.0, False, 3.0), (0.0, True, 3.0), (2.0, False, 0.0), (2.0, True, 0.0)):
        system = system_with(topology, Links([0], mp.Sites.anchors([[1.0, 2, 3]]), 3.0, length, one_sided=one_sided))
        context = mp.Context(system, mp.VerletIntegrator(1e-3))
        assert (context.get_state(forces=True).forces == 0.0).all()
        assert (context.hessian().toarray() == curvature * np.eye(3)).all()
        assert (context.third_derivative(np.ones((1, 3))) == 0.0).all()


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-160, 1e-20, 1e-9, 1.0])
def test_springs_without_length_are_quadratic_however_short(size):
    """U'' is U'/r, whose roundings are divided by r: nothing of them may be left."""
    rng = np.random.default_rng(1)
    x = np.concatenate([np.zeros((40, 3)), size * rng.normal(size=(40, 3))])
    k, a = rng.uniform(0.5, 2.0, 40), rng.normal(size=(80, 3))
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    context = mp.Context(system_with(topology, mp.forces.HarmonicBonds(np.arange(80).reshape(2, 40).T, k, 0.0)),
                         mp.VerletIntegrator(1e-3))  # fmt: skip
    expected = np.kron(np.kron([[1, -1], [-1, 1]], np.diag(k)), np.eye(3))
    np.testing.assert_allclose(context.hessian().toarray(), expected, rtol=1e-15, atol=0.0)
    assert (context.third_derivative(a) == 0.0).all()


def test_links_between_beads_are_bonds_to_the_last_bit(rng):
    pairs = np.stack([rng.choice(N, 2, replace=False) for _ in range(3000)])
    k, length = rng.uniform(1.0, 2.0, 3000), rng.uniform(1.0, 9.0, 3000)
    states = []
    for make in (
        lambda: HarmonicBonds(pairs, k, length),
        lambda: Links(*pairs.T, k, length),
        # An anchor takes all links through a table of sites of their own; slack, it exerts nothing.
        lambda: Links(
            mp.Sites.beads(pairs[:, 0]) + mp.Sites.beads([0]),
            mp.Sites.beads(pairs[:, 1]) + mp.Sites.anchors([[0.0, 0, 0]]),
            np.append(k, 0.0),
            np.append(length, 0.0),
        ),
    ):
        _, system, _ = scene()
        system.add_force(make())
        states.append(context_of(system).get_state(forces=True, energy=True))
    assert (states[1].forces == states[0].forces).all()
    assert (states[2].forces == states[0].forces).all()
    assert states[1].potential_energy == states[0].potential_energy
    assert states[2].potential_energy == pytest.approx(states[0].potential_energy, rel=1e-13)


# Coming and going -------------------------------------------------------------------------------------------


def change(links, context, handles, seed):
    """Links that come, go and move between steps."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        n = int(rng.integers(3, 9))
        ids = links.add(random_ends(rng, n, handles), random_ends(rng, n, handles), rng.uniform(1, 2, n), 0.5)
        context.step(3)
        links.remove(rng.choice(links.ids, 4, replace=False))
        context.step(2)
        moved = rng.choice(links.ids, 3, replace=False)
        links.move(moved, a=random_ends(rng, 3, handles))
        moved = rng.choice(links.ids, 2, replace=False)
        links.move(moved, *(random_ends(rng, 2, handles) for _ in range(2)))
        links.set(stiffness=links.parameters["stiffness"] * 1.01)
        context.step(1)
        assert ids[-1] == links.ids[-1] or ids[-1] not in links.ids
    return links


def begin(seed, threads=1):
    _, system, handles = scene()
    rng = np.random.default_rng(seed)
    links = Links(random_ends(rng, 30, handles), random_ends(rng, 30, handles), rng.uniform(1.0, 2.0, 30), 0.5)
    system.add_force(links)
    return handles, links, context_of(system, threads)


def test_context_after_changes_steps_like_a_new_one():
    handles, links, context = begin(1)
    change(links, context, handles, 2)
    state = context.get_state(positions=True, velocities=True)
    # With the links as they are, made anew.
    _, system, _ = scene()
    arguments = links._arguments_now()
    for name in ("a", "b"):
        s = arguments[name]
        arguments[name] = mp.Sites.from_arrays(s.start, s.bead_numbers, s.weights, s.anchor_positions)
    again = Links(**arguments)
    system.add_force(again)
    fresh = context_of(system)
    fresh.set_state(state)
    for c in (context, fresh):
        c.step(25)
    a, b = (c.get_state(positions=True, velocities=True, forces=True, energy=True) for c in (context, fresh))
    for name in ("positions", "velocities", "forces"):
        assert (getattr(a, name) == getattr(b, name)).all(), name
    assert a.energies == b.energies
    assert again.ids.tolist() == links.ids.tolist()
    assert again.add([0], [1], 1.0, 1.0) == links.add([0], [1], 1.0, 1.0)


def test_links_that_go_and_come_back_leave_no_trace():
    """Whatever happened to other links meanwhile; numbers are new."""
    handles, links, context = begin(6)
    before = context.get_state(forces=True, energy=True)
    last = links.ids[-3:]
    ends = links.a[-3:], links.b[-3:], links.parameters["stiffness"][-3:]
    links.remove(last)
    assert energy_of(context) != before.potential_energy
    ids = links.add(*ends)
    assert ids.tolist() == [30, 31, 32]
    after = context.get_state(forces=True, energy=True)
    assert (after.forces == before.forces).all()
    assert after.energies == before.energies
    assert handles[0].topology is context.system.topology


def test_each_end_moves_where_it_is_told():
    links = Links([0, 1, 2], [10, 11, 12], [1.0, 2.0, 3.0], 0.5)
    links.move(1, a=[5])
    assert links.a.single_beads.tolist() == [0, 5, 2]
    assert links.b.single_beads.tolist() == [10, 11, 12]
    links.move([2, 0], b=[7, 8])
    assert links.a.single_beads.tolist() == [0, 5, 2]
    assert links.b.single_beads.tolist() == [8, 11, 7]
    links.move([2, 1], [20, 21], mp.Sites.anchors([[1.0, 0, 0], [2.0, 0, 0]]))
    assert links.a.single_beads.tolist() == [0, 21, 20]
    assert links.b.single_beads.tolist() == [8, -1, -1]
    assert links.b.anchor_positions[:, 0].tolist() == [2.0, 1.0]
    assert links.ids.tolist() == [0, 1, 2]
    assert links.parameters["stiffness"].tolist() == [1.0, 2.0, 3.0]


def test_momentum_is_kept_while_links_come_and_go(rng):
    topology = mp.Topology()
    beads = topology.add_beads(X, mass=rng.uniform(1.0, 2.0, N))
    system = mp.System(topology)
    links = system.add_force(Links([], [], 1.0, 2.0))
    context = mp.Context(system, mp.VerletIntegrator(1e-2))
    context.set_velocities(rng.normal(size=(N, 3)))

    def momentum():
        state = context.get_state(positions=True, velocities=True)
        p = beads.mass[:, None] * state.velocities
        return p.sum(axis=0), np.cross(state.positions, p).sum(axis=0)

    linear, angular = momentum()
    for _ in range(10):
        w = rng.uniform(-0.5, 1.0, (20, 1))
        means = mp.Sites.weighted([rng.choice(N, 2, replace=False) for _ in range(20)], np.hstack([w, 1.0 - w]))
        ids = links.add(means, np.arange(20))
        context.step(20)
        links.remove(ids[::2])
    assert links.conserves_momentum
    now = momentum()
    np.testing.assert_allclose(now[0], linear, atol=1e-10)
    np.testing.assert_allclose(now[1], angular, atol=1e-9)
    ids = links.add([3], mp.Sites.anchors([[0.0, 0, 0]]))
    assert not links.conserves_momentum
    links.move(ids, b=[4])
    assert links.conserves_momentum


def test_none_at_first():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [3.0, 4.0, 0]], mass=1.0)
    system = mp.System(topology)
    links = system.add_force(Links([], [], 2.0, 1.0))
    assert len(links) == 0
    assert bool(links)
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    assert energy_of(context) == 0.0
    assert links.add([0, 1], [1, 2]).tolist() == [0, 1]
    assert energy_of(context) == 4.0 + 9.0
    links.remove([1])
    links.set(stiffness=4.0)
    assert energy_of(context) == 8.0
    links.remove(0)
    assert energy_of(context) == 0.0
    # The last value given is that of links to come.
    assert links.add(0, 2).tolist() == [2]
    assert links.parameters["stiffness"].tolist() == [4.0]
    assert energy_of(context) == 32.0


def test_numbers_change_for_all_links_in_their_order():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [3.0, 4.0, 0]], mass=1.0)
    system = mp.System(topology)
    links = system.add_force(Links([0, 0, 1], [1, 2, 2], [1.0, 2.0, 3.0]))
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    links.remove(1)
    assert energy_of(context) == 0.5 * 9 + 1.5 * 16
    links.set(length=[1.0, 2.0])
    assert energy_of(context) == 0.5 * 4 + 1.5 * 4
    links.set(stiffness=[2.0, 0.0])
    assert energy_of(context) == 4.0


def test_adding_without_numbers_needs_one_that_all_share():
    links = Links([0, 1], [2, 3], [1.0, 2.0], 5.0)
    with pytest.raises(mp.ParameterError, match="Links: give stiffness=, because the links do not all have the same"):
        links.add([0], [1])
    assert len(links) == 2
    links.add([0], [1], 2.0)
    links.remove(0)
    assert links.parameters["stiffness"].tolist() == [2.0, 2.0]
    assert links.add([0], [1]).tolist() == [3]
    assert links.parameters["stiffness"].tolist() == [2.0, 2.0, 2.0]
    assert links.parameters["length"].tolist() == [5.0, 5.0, 5.0]


# What is refused, and then leaves all as it was ---------------------------------------------------------------


def other_handle(n=1):
    return mp.Topology().add_beads(X[:n], mass=1.0)


@pytest.mark.parametrize(("act", "error", "text"), [
    (lambda li: li.remove(3), mp.ParameterError, r"ids\[0\] = 3, but there is no such link \(2 links: 0 to 2; those"),
    (lambda li: li.remove([0, 1]), mp.ParameterError, r"ids\[1\] = 1, but link 1 was removed \(2 links: 0 to 2; those"),
    (lambda li: li.remove([0, -1]), mp.ParameterError, r"ids\[1\] = -1, but there is no such link"),
    (lambda li: li.remove([2, 0, 2]), mp.ParameterError, "link 2 is named twice"),
    (lambda li: li.move(1, a=[5]), mp.ParameterError, r"ids\[0\] = 1, but link 1 was removed"),
    (lambda li: li.move([0, 2]), mp.ParameterError, "move needs new ends"),
    (lambda li: li.move([0, 2], a=[5]), mp.TopologyError, "2 links need as many ends, not a: 1, b: 2"),
    (lambda li: li.move([0, 2], [5], [6]), mp.TopologyError, "2 links need as many ends, not a: 1, b: 1"),
    (lambda li: li.move(2, a=[9]), mp.TopologyError, "link 2 joins bead 9 to itself"),
    (lambda li: li.move(2, a=[N]), mp.TopologyError, r"Links: a\[0\] names bead 200, .* beads 0 to 199"),
    (lambda li: li.add([1], [2, 3]), mp.TopologyError, "a and b must have the same length, not 1 and 2"),
    (lambda li: li.add([1, 4], [2, 4]), mp.TopologyError, "link 1 joins bead 4 to itself"),
    (lambda li: li.add([1], [N + 7]), mp.TopologyError, r"Links: b\[0\] names bead 207, .* beads 0 to 199"),
    (lambda li: li.add([1], other_handle()), mp.TopologyError, "belongs to another topology"),
    (lambda li: li.move(2, b=other_handle()), mp.TopologyError, "belongs to another topology"),
    (lambda li: li.add([1], [2], -1.0), mp.ParameterError, "stiffness = -1.0 but must be finite and >= 0"),
    (lambda li: li.add([1], [2], [1.0, 1.0]), mp.ParameterError, "must be a number or have shape"),
    (lambda li: li.add([1.5], [2]), mp.TopologyError, "Links: a: Sites.beads: beads must hold integers"),
])  # fmt: skip
@pytest.mark.parametrize("known_by", ["handle", "context"])
def test_refusals_change_nothing(act, error, text, known_by):
    topology = mp.Topology()
    beads = topology.add_beads(X, mass=1.0)
    system = mp.System(topology)
    first = mp.Sites.beads(beads)[:3] if known_by == "handle" else np.arange(3)
    links = system.add_force(Links(first, [7, 8, 9], 2.0, 1.0))
    context = mp.Context(system, mp.VerletIntegrator(1e-3)) if known_by == "context" else None
    links.remove(1)
    version = links.version
    refuses(error, text, act, links)
    assert links.version == version
    assert links.ids.tolist() == [0, 2]
    assert links.a.single_beads.tolist() == [0, 2]
    assert links.b.single_beads.tolist() == [7, 9]
    if context is not None:
        context.step(1)
    assert links.add([0], [1]).tolist() == [3]


def test_refused_at_once():
    beads = mp.Topology().add_beads(X, mass=1.0)
    refuses(mp.TopologyError, "link 1 joins bead 3 to itself", Links, [0, 3], [1, 3], 1.0)
    refuses(mp.TopologyError, "belongs to another topology", Links, mp.Sites.beads(beads)[:1], other_handle(), 1.0)
    refuses(mp.TopologyError, r"b\[1\] names bead 200", Links, mp.Sites.beads(beads)[:2], [5, N], 1.0)


def test_refused_by_system_and_context():
    topology = mp.Topology()
    topology.add_beads(X, mass=1.0)
    system = mp.System(topology)
    refuses(mp.TopologyError, "belongs to another topology", system.add_force, Links(other_handle(2), [1, 0], 1.0))
    system.add_force(Links([0, 1], [5, N], 1.0))
    with pytest.raises(mp.TopologyError, match=r"Links: b\[1\] names bead 200, but the topology has beads 0 to 199"):
        mp.Context(system, mp.VerletIntegrator(1e-3))


def test_a_topology_that_is_gone_is_forgotten():
    links = Links([0], [1], 1.0)
    topology = mp.Topology()
    topology.add_beads(X[:2], mass=1.0)
    system = system_with(topology, links)
    mp.Context(system, mp.VerletIntegrator(1e-3))
    refuses(mp.TopologyError, "names bead 2", links.add, [0], [2])
    del topology, system
    gc.collect()
    assert links.add([0], [2]).tolist() == [1]


def test_arguments_that_make_it_again():
    links = Links(np.arange(4), np.arange(4) + 10, 3.0, [1.0, 2.0, 3.0, 4.0], one_sided=True, name="ropes", group=2)
    links.remove([1, 3])
    links.add([7], mp.Sites.anchors([[1.0, 2, 3]]), length=2.5)
    again = Links(**links._arguments_now())
    assert again.ids.tolist() == [0, 2, 4]
    assert (again.name, again.group, again.one_sided) == ("ropes", 2, True)
    assert again.parameters["length"].tolist() == [1.0, 3.0, 2.5]
    assert again.a.bead_numbers.tolist() == [0, 2, 7]
    assert again.b.anchor_positions.tolist() == [[1.0, 2.0, 3.0]]
    links.remove(links.ids)
    again = Links(**links._arguments_now())
    assert len(again) == 0
    # The common stiffness is remembered; lengths were not the same.
    assert again.add([0], [1], length=1.0).tolist() == [5]
    assert again.parameters["stiffness"].tolist() == [3.0]
    assert repr(again) == "Links(1: stiffness=3, length=1)"
    for bad in ({"_ids": [2, 1], "_next_id": 3}, {"_ids": [1, 2], "_next_id": 2}):
        refuses(mp.ParameterError, r"_ids must ascend|_next_id = 2", Links, [0, 1], [2, 3], 1.0, **bad)


def test_hessian_of_a_bead_at_both_ends():
    """A mean with weight 1/2 on the bead at the other end: a spring of a quarter of the stiffness."""
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [4.0, 1.0, -2.0]], mass=1.0)
    matrices = []
    for force in (Links([0], mp.Sites.weighted([[0, 1]], [[0.5, 0.5]]), 8.0), Links([0], [1], 2.0)):
        matrices.append(mp.Context(system_with(topology, force), mp.VerletIntegrator(1e-3)).hessian().toarray())
    np.testing.assert_allclose(matrices[0], matrices[1], atol=1e-14)
    np.testing.assert_allclose(matrices[1], 2.0 * np.kron([[1, -1], [-1, 1]], np.eye(3)), atol=1e-14)
