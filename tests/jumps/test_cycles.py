"""Laws of cycles that several jumps make together: what drives them, and that none of them knows it alone."""

import numpy as np
import pytest
from builders import octahedron, refuses, straight

import medyanpy as mp
from medyanpy.ensemble.exchange import check_canonical

LN2 = np.log(2.0)
ABC = ("A <-> B", "B <-> C", "C <-> A")


def points_of(species="ABC", counts=None, capacity=30):
    """Points of an octahedron at rest, and their system."""
    topology = mp.Topology()
    membrane = topology.add_membrane(octahedron(), vertex_mass=50.0, fixed=True)
    numbers = {name: {"mass": 1.0, "friction": 1.0} for name in species}
    points = topology.add_intriangle_points(
        membrane, species=numbers, counts={"A": capacity} if counts is None else counts, capacity=capacity, seed=1
    )
    return points, mp.System(topology)


def simulation_of(system, h=0.05, word=mp.BAGOGABIntegrator):
    simulation = mp.Simulation(system, word(h, kT=2.0, seed=1), threads=1)
    simulation.report_work = True
    return simulation


def net_of(jump, state):
    """Events there less events back, of each reaction of a jump that goes both ways."""
    return state.jumps[jump.name]["events"].reshape(-1, 2) @ [1, -1]


def turned(system, jumps, steps=300):
    """Run, and return events there less those back of all jumps, entropy production, and chemical energies over kT."""
    simulation = simulation_of(system)
    heard = simulation.context.events()
    simulation.step(steps)
    state = simulation.context.get_state(positions=True, energy=True)
    net = np.concatenate([net_of(jump, state) for jump in jumps])
    assert sum(jump.counts.accepted for jump in jumps) > 300
    return net, state.entropy_production, sum(event.chemical_energy for event in heard.heard()) / 2.0


def test_three_jumps_on_points_make_one_cycle():
    """Each event there is driven by ln 2, as if all three were written in one jump."""
    points, system = points_of()
    jumps = [mp.jumps.Reactions(points, text, on_rate=2.0, off_rate=1.0, name=text) for text in ABC]
    assert not any(jump.driven for jump in jumps)
    for k, jump in enumerate(jumps):
        system.add_jump(jump)
        assert [one.driven for one in jumps] == [k == 2] * (k + 1) + [False] * (2 - k)
    net, entropy, chemical = turned(system, jumps)
    assert net.sum() > 100
    assert entropy == pytest.approx(LN2 * net.sum(), rel=1e-12)
    assert chemical == pytest.approx(entropy, rel=1e-9)
    refuses(mp.ParameterError, "A <-> B is driven", check_canonical, simulation_of(system))


def test_one_of_them_taken_away_leaves_the_others_in_balance():
    points, system = points_of()
    jumps = [system.add_jump(mp.jumps.Reactions(points, text, on_rate=2.0, off_rate=1.0)) for text in ABC]
    system.remove_jump(jumps[1])
    assert [jump.driven for jump in jumps] == [False] * 3


def test_rates_that_are_set_later_open_and_close_the_cycle():
    """At 1 and 4 of the last the product is the same both ways: nothing is driven, and what was is heat again."""
    points, system = points_of()
    jumps = [system.add_jump(mp.jumps.Reactions(points, text, on_rate=2.0, off_rate=1.0, name=text)) for text in ABC]
    simulation = simulation_of(system)
    simulation.step(60)
    before = simulation.context.get_state(positions=True, energy=True)
    jumps[2].set(on_rate=1.0, off_rate=4.0)
    assert not any(jump.driven for jump in jumps)
    simulation.step(60)
    rest = simulation.context.get_state(positions=True, energy=True)
    assert before.entropy_production == rest.entropy_production != 0.0
    jumps[0].set(on_rate=16.0)
    simulation.step(60)
    after = simulation.context.get_state(positions=True, energy=True)
    net = sum(net_of(jump, after)[0] - net_of(jump, rest)[0] for jump in jumps)
    # The logarithm of 8 is shared by the three.
    assert after.entropy_production - rest.entropy_production == pytest.approx(LN2 * net, rel=1e-9)


def test_three_jumps_on_a_pool_make_one_cycle():
    _, system = points_of()
    pool = system.add_pool(mp.Pool(volume=8.0, counts={"A": 40, "B": 0, "C": 0}))
    jumps = [system.add_jump(mp.jumps.Reactions(pool, text, on_rate=2.0, off_rate=1.0, name=text)) for text in ABC]
    assert all(jump.driven for jump in jumps)
    net, entropy, _ = turned(system, jumps)
    assert entropy == pytest.approx(LN2 * net.sum(), rel=1e-12)


def landing(system, points, pool, second):
    """P <-> A and Q <-> B from a pool, A <-> B on the membrane and P <-> Q in the pool: one cycle."""
    jumps = [
        mp.jumps.Adsorption(pool["P"], points.of("A"), on_rate=3.0, off_rate=1.0, name="P"),
        mp.jumps.Reactions(points, "A <-> B", on_rate=2.0, off_rate=1.0, name="turn"),
        mp.jumps.Adsorption(pool["Q"], points.of("B"), on_rate=1.0, off_rate=second, name="Q"),
        mp.jumps.Reactions(pool, "P <-> Q", on_rate=1.0, off_rate=1.0, name="pool"),
    ]
    return [system.add_jump(jump) for jump in jumps]


def test_a_cycle_through_a_membrane_and_a_pool():
    """P lands, turns, leaves as Q and turns back: 3/1 times 2/1 times 4/1 times 1/1 is 24 a turn."""
    points, system = points_of("AB", {}, 60)
    pool = system.add_pool(mp.Pool(volume=8.0, counts={"P": 30, "Q": 30}))
    jumps = landing(system, points, pool, 4.0)
    assert all(jump.driven for jump in jumps)
    net, entropy, _ = turned(system, jumps)
    # Q lands against the turn, and P becomes Q against it.
    assert entropy == pytest.approx(np.log(24.0) / 4.0 * (net @ [1, 1, -1, -1]), rel=1e-12)


def test_weights_of_the_same_cycle_in_balance():
    """Weights of states by activities, P of 1: A of 3, B of 6, Q of 1; what one jump alone says is not enough."""
    points, system = points_of("AB", {}, 60)
    pool = system.add_pool(mp.Pool(volume=8.0, counts={"P": 30, "Q": 30}))
    jumps = landing(system, points, pool, 1.0 / 6.0)
    assert not any(jump.driven for jump in jumps)
    simulation = simulation_of(system)
    check_canonical(simulation)
    jumping = simulation.context._schedule.jumping
    told, wanted = [], []
    for _ in range(12):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, energy=True)
        pairs = zip(jumping.jumps, jumping.operations, strict=True)
        told.append(sum(jump.log_weight(own, state, 2.0) for jump, own in pairs))
        of = points.counts(state)
        wanted.append(of["A"] * np.log(3.0) + of["B"] * np.log(6.0))
    assert state.entropy_production == 0.0
    assert np.ptp(wanted) > 1.0
    assert np.diff(told) == pytest.approx(np.diff(wanted), abs=1e-9)


def test_two_reservoirs_of_one_species_pump_it():
    """P at 1 and Q at 4 (1/nm³) both become A: ln 4 for each that comes by Q and leaves by P."""
    points, system = points_of("A", {}, 60)
    pool = system.add_pool(mp.Pool(volume=8.0, concentrations={"P": 1.0, "Q": 4.0}))
    for name in "PQ":
        jump = mp.jumps.Adsorption(pool[name], points.of("A"), on_rate=0.5, off_rate=1.0, name=name)
        assert system.add_jump(jump).driven == (name == "Q")
    jumps = list(system.jumps)
    net, entropy, _ = turned(system, jumps)
    assert entropy == pytest.approx(LN2 * (net[1] - net[0]), rel=1e-12)


def test_beads_that_land_on_one_side_and_leave_on_the_other():
    """On the outside K is twice that of the inside, so that beads are pumped in."""
    topology = mp.Topology()
    mesh = octahedron()
    membrane = topology.add_membrane(mesh, vertex_mass=20.0, fixed=True)
    numbers = {"A": {"mass": 1.0, "friction": 0.3}}
    x = np.random.default_rng(1).uniform(-1.2, 1.2, (24, 3))
    beads = topology.add_beads(x, species=numbers, of_species="A", capacity=60)
    points = topology.add_intriangle_points(membrane, species=numbers, counts={}, capacity=60)
    system = mp.System(topology, box=[3.4] * 3)
    jumps = []
    for side, on in (("outside", 8.0), ("inside", 4.0)):
        jumps.append(system.add_jump(mp.jumps.Adsorption(
            beads.of("A"), points.of("A"), on_rate=on, off_rate=4.0, layer=0.5, side=side, most_feet=16, name=side
        )))  # fmt: skip
        assert jumps[-1].driven == (side == "inside")
    simulation = simulation_of(system)
    simulation.step(400)
    state = simulation.context.get_state(positions=True, energy=True)
    net = [own[:2].sum() - own[2:].sum() for own in (state.jumps[jump.name]["events"] for jump in jumps)]
    assert net[0] > 20
    assert state.entropy_production == pytest.approx(0.5 * LN2 * (net[0] - net[1]), rel=1e-9)


def test_filaments_grow_by_one_species_and_shrink_by_another():
    """Plus ends take G at K_D = 1/2, minus ends give H at K_D = 2, H turns to G at 3/1: 2 times 2 times 3 a turn."""
    topology = mp.Topology()
    handle = topology.add_filaments([straight(4000, 4000)] * 20, 1.0, 1.0, rise=1.0)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=40.0, counts={"G": 40, "H": 40}))
    both = {"subunits": (1, 9000)}
    jumps = [
        system.add_jump(mp.jumps.Polymerization(handle, pool["G"], on_rate=2.0, off_rate=1.0, end="plus", **both)),
        system.add_jump(mp.jumps.Polymerization(handle, pool["H"], on_rate=1.0, off_rate=2.0, end="minus", **both)),
    ]
    jumps.append(system.add_jump(mp.jumps.Reactions(pool, "H <-> G", on_rate=3.0, off_rate=1.0)))
    assert [jump.driven for jump in jumps] == [True] * 3
    simulation = simulation_of(system, 0.05)
    events = simulation.context.events()
    simulation.step(100)
    state = simulation.context.get_state(positions=True, energy=True)
    sign = {"on": 1, "off": -1, "H -> G": 1, "G -> H": -1}
    net = [sum(sign[e.kind] for e in events.heard() if e.jump == name) for name in system.jump_names]
    turns = net[0] - net[1] + net[2]
    assert turns > 30
    assert state.entropy_production == pytest.approx(np.log(12.0) / 3.0 * turns, rel=1e-9)
    jumps[2].set(on_rate=1.0, off_rate=4.0)
    simulation.step(50)
    assert [jump.driven for jump in jumps] == [False] * 3
    assert simulation.context.get_state(energy=True).entropy_production == state.entropy_production


def test_written_transitions_close_a_cycle_with_reactions():
    """A <-> B 8 to 1 by one jump, B <-> C <-> A 1 to 1 by another that is text: ln 8 in a turn."""
    points, system = points_of()
    one = system.add_jump(mp.jumps.Reactions(points, "A <-> B", on_rate=8.0, off_rate=1.0))
    text = "B <-> C; rate = 1, energy = e\nC <-> A; rate = 1, energy = -e"
    two = system.add_jump(mp.jumps.CustomTransitions(points, text, at_most=3.0, e=0.6))
    assert (one.driven, two.driven) == (True, True)
    net, entropy, _ = turned(system, [one, two])
    assert entropy == pytest.approx(LN2 * net.sum(), rel=1e-9)
    two.set(e=0.2)
    assert one.driven
    one.set(on_rate=1.0)
    assert (one.driven, two.driven) == (False, False)


def test_states_of_links_that_two_jumps_change():
    """weak <-> strong there by one jump and by another at other energies: 0.5 kT drives each of the two."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 3 * k] for k in range(20)], mass=1.0, friction=1e9)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=3.0, states=["weak", "strong"]))
    pairs = np.arange(20).reshape(10, 2)
    system.add_jump(mp.jumps.LinkBinding(links, beads, on_rate=0.0, off_rate=1e-9, bound=pairs))
    made = [system.add_jump(mp.jumps.CustomTransitions(links, f"weak <-> strong; rate = 1, energy = {e}", at_most=3.0))
            for e in (0.0, 2.0)]  # fmt: skip
    assert all(jump.driven for jump in made)
    simulation = simulation_of(system, 0.05, mp.BrownianIntegrator)
    heard = simulation.context.events()
    simulation.step(300)
    events = heard.heard()
    names = system.jump_names[-2:]
    net = [sum({"weak -> strong": 1, "strong -> weak": -1}[e.kind] for e in events if e.jump == name) for name in names]
    assert len(events) > 100
    state = simulation.context.get_state(positions=True, energy=True)
    assert state.entropy_production == pytest.approx(0.5 * (net[0] - net[1]), rel=1e-9)


# Ways back on lines of their own --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C -> A + B", "C -> B + A"])
def test_a_way_back_on_another_line_is_one(order):
    """Points and pools alike: what goes both ways is in balance however it is written, and wherever C stands."""
    points, system = points_of(counts={"A": 10, "B": 10, "C": 5})
    pool = system.add_pool(mp.Pool(volume=8.0, counts={"A": 10, "B": 10, "C": 5}))
    lines = f"A + B -> C; rate = 2\n{order}; rate = 3\nA -> B; rate = 1\nB -> A; rate = 2"
    apart = mp.jumps.Reactions(points, lines, reach=0.5, placement=0.2)
    assert not system.add_jump(apart).driven
    assert not system.add_jump(mp.jumps.Reactions(pool, lines)).driven
    there, back = apart._form._ways[:2]
    assert there.reactants == back.products
    simulation = simulation_of(system)
    heard = simulation.context.events()
    simulation.step(20)
    assert {e.chemical_energy for e in heard.heard() if e.jump == "Reactions"} == {0.0}
    assert simulation.context.get_state(energy=True).entropy_production == 0.0


@pytest.mark.parametrize("twice", [
    "A -> B; rate = 1\nA -> B; rate = 2", "A <-> B; k_on = 1, k_off = 2\nB -> A; rate = 2",
    "A + B -> C; rate = 1\nB + A -> C; rate = 1",
])  # fmt: skip
def test_one_that_is_written_twice_is_refused(twice):
    points, system = points_of()
    pool = system.add_pool(mp.Pool(volume=8.0, counts={"A": 10, "B": 10, "C": 5}))
    for subject, options in ((points, {"reach": 0.5}), (pool, {})):
        refuses(mp.ParameterError, "is written twice: add the rates of both", mp.jumps.Reactions, subject, twice,
                **options)  # fmt: skip


def test_partners_that_become_each_other_crosswise_are_another_reaction():
    """A to C and B to D where they are, and A to D and B to C: each has its own way back."""
    points, _ = points_of("ABCD", {"A": 15, "B": 15})
    text = "A + B -> C + D; rate = 1\nA + B -> D + C; rate = 2\nC + D -> A + B; rate = 3\nD + C -> A + B; rate = 6"
    jump = mp.jumps.Reactions(points, text, reach=0.5)
    assert [way.back for way in jump._form._ways] == [2, 3, 0, 1]
    assert not jump.driven
    assert mp.jumps.Reactions(points, text.replace("= 6", "= 7"), reach=0.5).driven
