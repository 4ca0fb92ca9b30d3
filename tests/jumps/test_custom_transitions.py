"""Transitions written as text: of beads in balance and driven, of links that let go, bounds, and what is refused."""

import math

import numpy as np
import pytest
from builders import octahedron, refuses

import medyanpy as mp
from medyanpy.files.documents import deserialize, serialize
from medyanpy.testing import JumpCase, check_chi_square, check_jump, check_mean
from medyanpy.testing.jumps import check_bits

#: Of beads that stay where they are.
STILL = 1e30


def species(names="ABC", friction=STILL):
    return {name: {"mass": 1.0 + i, "friction": friction} for i, name in enumerate(names)}


def fixed_beads(copies, z=0.0, start="A", box=None, x=None):
    topology = mp.Topology()
    places = np.tile([0.0, 0.0, 0.0], (copies, 1)) if x is None else np.array(x, float)
    places[:, 2] += z
    beads = topology.add_beads(places, species=species(), of_species=start, name="beads")
    return beads, mp.System(topology, box=box)


def simulated(system, timestep=0.1, seed=1, threads=1, kT=1.0):
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)


def kinds_of(state, beads):
    return state.column("species")[beads.beads]


def case_of(text, rates, weights=None, driven=False, z=0.0, **parameters):
    def make(copies, seed, threads, timestep):
        beads, system = fixed_beads(copies, z)
        make.beads = beads
        system.add_jump(mp.jumps.CustomTransitions(beads, text, name="switch", **parameters))
        return simulated(system, timestep, seed, threads, kT=2.0)

    energies = np.zeros(len(rates))
    return JumpCase("switch", make, lambda state: kinds_of(state, make.beads), rates, energies, 2.0, weights, 0, driven)


def test_a_switch_in_balance_keeps_what_jumps_promise():
    e, k = 1.5, 3.0 * math.exp(-2.0 / 4.0)
    there, back = k * math.exp(-e / 4.0), k * math.exp(e / 4.0)
    weights = np.array([1.0, math.exp(-e / 2.0)])
    text = "A <-> B; rate = k*exp(-z/l), energy = e"
    check_jump(case_of(text, [[0, there], [back, 0]], weights, z=2.0, at_most=4.0, k=3.0, l=4.0, e=e), 6000, 0.19)


def test_three_species_with_energies_that_close_are_in_balance():
    """Energies 1, 0.5 and 1.5: nothing is driven, whatever the rates."""
    energy = np.array([0.0, 1.0, 1.5])
    rates = np.zeros((3, 3))
    k = {(0, 1): 1.0, (1, 2): 2.0, (0, 2): 0.5}
    for (i, j), rate in k.items():
        rates[i, j], rates[j, i] = (rate * math.exp(s * (energy[j] - energy[i]) / 4.0) for s in (-1.0, 1.0))
    text = """A <-> B; rate = 1, energy = 1
              B <-> C; rate = 2, energy = e - 1
              A <-> C; k_on = 0.5*exp(-e/(2*kT)), k_off = 0.5*exp(e/(2*kT))"""
    case = case_of(text, rates, np.exp(-energy / 2.0), at_most=4.0, e=1.5)
    assert not case.make(2, 1, 1, 0.1).system["switch"].driven
    check_jump(case, 7000, 0.17)


def test_rates_there_and_back_that_depend_on_the_place_are_driven():
    rates = [[0.0, 2.0 * math.exp(-1.0)], [0.5, 0.0]]
    text = "A <-> B; k_on = 2*exp(-z), k_off = 0.5*z"
    check_jump(case_of(text, rates, driven=True, z=1.0, at_most=1.0), 7000, 0.17)


def test_a_switch_of_beads_in_a_trap_has_its_closed_form_whatever_its_rate():
    """Those of B are in a second trap: they are e^(-e/kT) [k/(k + s)]^(3/2) as many, at a rate of the place."""
    e, k, s = 0.4, 1.0, 2.0
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((300, 3)), species=species("AB", 1.0), of_species="A", name="beads")
    center = mp.Sites.anchors([[0.0, 0.0, 0.0]])
    system = mp.System(topology)
    system.add_force(mp.forces.HarmonicTrap(beads, k, [0.0, 0.0, 0.0]))
    system.add_force(mp.forces.CustomPair(beads.of("B"), center, "0.5*s*r^2", cutoff=40.0, shift=False, s=s))
    text = "A <-> B; rate = 1 + 2*step(z), energy = e"
    switch = system.add_jump(mp.jumps.CustomTransitions(beads, text, at_most=6.0, e=e))
    assert not switch.driven
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.1, kT=1.0, seed=3), threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=2)
    simulation.step(60)
    seen = []
    for _ in range(80):
        simulation.step(25)
        seen.append(np.mean(kinds_of(simulation.context.get_state(positions=True), beads) == 1))
    ratio = math.exp(-e) * (k / (k + s)) ** 1.5
    check_mean("of species B", np.array(seen), ratio / (1.0 + ratio), sees=0.02)


def test_a_cycle_is_driven_by_the_logarithm_of_its_rates_round_it():
    """Each step forth gains 1.2 kT more than it costs: a turn of three is driven by 3.6 kT."""
    text = "A <-> B; rate = 1, energy = -e\nB <-> C; rate = 1, energy = -e\nC <-> A; rate = 1, energy = -e"
    beads, system = fixed_beads(1500)
    switch = system.add_jump(mp.jumps.CustomTransitions(beads, text, at_most=2.0, e=2.4, name="cycle"))
    assert switch.driven
    made = []
    simulation = simulated(system, kT=2.0)
    heard = simulation.context.events()
    before = simulation.context.get_state(energy=True).entropy_production
    for _ in range(30):
        simulation.step(10)
        state = simulation.context.get_state(positions=True, energy=True)
        made.append((state.entropy_production - before) / 1500.0)
        before = state.entropy_production
    forth, back = math.exp(0.6), math.exp(-0.6)
    check_mean("entropy in a second, kT", np.array(made), 1.2 * (forth - back), sees=0.1)
    events = heard.heard()
    assert {round(event.chemical_energy, 9) for event in events} == {2.4, -2.4}
    net = np.array(state.jumps["cycle"]["events"]) @ ([1, -1] * 3)
    assert state.entropy_production == pytest.approx(1.2 * net, rel=1e-12)


def test_one_way_rates_are_those_at_the_place_of_each_bead():
    z = np.repeat([0.0, 1.0, 3.0], 4000)
    beads, system = fixed_beads(len(z), z)
    system.add_jump(mp.jumps.CustomTransitions(beads, "A -> B; rate = k*exp(-z/l)", at_most=2.0, k=2.0, l=1.5))
    simulation = simulated(system)
    simulation.step(5)
    state = simulation.context.get_state(positions=True, energy=True)
    turned = kinds_of(state, beads)
    for height in np.unique(z):
        expected = 1.0 - math.exp(-2.0 * math.exp(-height / 1.5) * 0.5)
        n = np.bincount(turned[z == height], minlength=2)
        check_chi_square(f"turned at {height}", n, n.sum() * np.array([1.0 - expected, expected]), sees=0.13)
    assert state.entropy_production == math.inf


def test_points_in_triangles_switch_by_their_place():
    topology = mp.Topology()
    membrane = topology.add_membrane(octahedron(), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, species=species("AB"), counts={"A": 8000}, seed=3)
    system = mp.System(topology)
    text = "A <-> B; k_on = k*(1 + step(z)), k_off = k*(2 - step(z))"
    system.add_jump(mp.jumps.CustomTransitions(points, text, at_most=2.0, k=1.0))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.1, kT=1.0, seed=1), threads=1)
    simulation.step(40)
    state = simulation.context.get_state(positions=True)
    up = (state.positions[points.beads, 2] >= 0.0).astype(int)
    counts = np.bincount(2 * up + kinds_of(state, points), minlength=4)
    below, above = 8000 - up.sum(), up.sum()
    expected = np.array([2.0 * below, below, above, 2.0 * above]) / 3.0
    check_chi_square("species below and above", counts, expected, sees=0.1)


def test_places_in_a_periodic_box_are_those_of_the_image_nearest_to_the_origin():
    beads, system = fixed_beads(2, box=(10.0, 10.0, 10.0), x=[[9.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    system.add_jump(mp.jumps.CustomTransitions(beads, "A -> B; rate = 1000*step(-x)", at_most=1000.0))
    simulation = simulated(system)
    simulation.step(3)
    assert kinds_of(simulation.context.get_state(positions=True), beads).tolist() == [1, 0]


# Links --------------------------------------------------------------------------------------------------------------


def pulled(copies, load, text, bound=True, on_rate=0.0, off_rate=1e-12, stiffness=2.0, **options):
    """Links of length 5 nm under a load, between sites that do not move: (system, binding)."""
    topology = mp.Topology()
    topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=5.0, name="links"))
    y = 1000.0 * np.arange(copies)
    ends = [np.column_stack([np.full(copies, x), y, 0.0 * y]) for x in (0.0, 5.0 + load / stiffness)]
    rows = np.column_stack([np.arange(copies)] * 2) if bound else ()
    sites = (mp.Sites.anchors(x) for x in ends)
    system.add_jump(mp.jumps.LinkBinding(
        links, *sites, off_rate=off_rate, on_rate=on_rate, bound=rows, reach=200.0, name="binding"))  # fmt: skip
    system.add_jump(mp.jumps.CustomTransitions(links, text, name="own", **options))
    return system, links


@pytest.mark.parametrize("load", [2.0, 0.0, 9.0])
def test_a_catch_bond_under_a_load_lives_as_long_as_its_rate_says(load):
    text = "unbind; rate = k*(w*exp(-tension/c) + (1 - w)*exp(tension/s))"
    numbers = {"k": 1.0, "w": 0.9, "c": 2.0, "s": 6.0}
    rate = 0.9 * math.exp(-load / 2.0) + 0.1 * math.exp(load / 6.0)
    system, _ = pulled(8000, load, text, at_most=1.2, **numbers)
    simulation = simulated(system, 0.02)
    heard = simulation.context.events()
    steps = round(1.0 / (0.02 * rate))
    simulation.step(steps)
    left = 8000 - len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
    bound = math.exp(-rate * 0.02 * steps)
    check_chi_square("gone", [left, 8000 - left], 8000 * np.array([1.0 - bound, bound]), sees=0.1)
    events = heard.heard()
    assert len(events) == left
    assert {event.kind for event in events} == {"unbind"}
    assert np.allclose([event.energy for event in events], -0.25 * load**2)


def test_rates_of_links_are_of_length_tension_and_energy():
    for text, numbers in (("length/5", 6.0 / 5.0), ("1.5 + tension", 3.5), ("energy", 1.0), ("step(tension - 1)", 1.0)):
        system, _ = pulled(8000, 2.0, f"unbind; rate = {text}", at_most=4.0)
        simulation = simulated(system, 0.1)
        simulation.step(3)
        left = len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
        bound = math.exp(-0.3 * numbers)
        check_chi_square(text, [left, 8000 - left], 8000 * np.array([bound, 1.0 - bound]), sees=0.09)


def test_links_that_are_pushed_have_a_negative_tension():
    system, _ = pulled(50, -2.0, "unbind; rate = 1000*step(-1.5 - tension)", at_most=1000.0)
    simulation = simulated(system)
    simulation.step(1)
    assert len(simulation.context.get_state(positions=True).jumps["binding"]["links"]) == 0


def test_links_that_bind_and_unbind_by_text_keep_what_jumps_promise():
    load, kT, on, off = 1.0, 2.0, 2.0, 0.5
    u = 0.25 * load**2
    own = 0.7 * math.exp(load / 3.0)
    rates = [[0.0, on * math.exp(-0.5 * u / kT)], [off * math.exp(0.5 * u / kT) + own, 0.0]]

    def make(copies, seed, threads, timestep):
        make.copies = copies
        system, _ = pulled(copies, load, "unbind; rate = k*exp(tension/f)", False, on, off, at_most=2.0, k=0.7, f=3.0)
        return simulated(system, timestep, seed, threads, kT)

    def states(state):
        bound = np.zeros(make.copies, int)
        bound[state.jumps["binding"]["links"][:, 0]] = 1
        return bound

    case = JumpCase("own", make, states, rates, np.array([0.0, u]), kT, None, 0, True)
    # Two jumps act one after the other in each letter: in steps that are short.
    for time, steps in ((0.3, 30), (2.0, 100)):
        simulation = make(8000, 5, 1, time / steps)
        simulation.step(steps)
        counts = np.bincount(states(simulation.context.get_state(positions=True)), minlength=2)
        check_chi_square(f"after {time} s", counts, 8000 * case.after(time), sees=0.1)
    check_bits(case)


def test_heat_of_links_that_let_go_by_text_is_chemical_energy():
    system, _ = pulled(300, 3.0, "unbind; rate = 1", at_most=1.0)
    simulation = simulated(system, 0.05)
    simulation.report_work = True
    simulation.step(1)
    start = simulation.context.get_state(energy=True, positions=True)
    simulation.step(10)
    end = simulation.context.get_state(energy=True, positions=True)
    gone = len(start.jumps["binding"]["links"]) - len(end.jumps["binding"]["links"])
    assert gone > 0
    assert end.heat == 0.0
    assert end.chemical_work - start.chemical_work == pytest.approx(-0.25 * 9.0 * gone, rel=1e-12)
    assert end.potential_energy - start.potential_energy == pytest.approx(-0.25 * 9.0 * gone, rel=1e-9)


# Bounds, numbers and texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "told"), [("3", "3"), ("0.5 - z", "-1.5"), ("sqrt(-z)", "nan")])
def test_a_rate_above_the_bound_ends_the_run_with_its_value(rate, told):
    beads, system = fixed_beads(5, 2.0)
    system.add_jump(mp.jumps.CustomTransitions(beads, f"A -> B; rate = {rate}", at_most=2.0, name="switch"))
    with pytest.raises(mp.SimulationError, match=f"jump switch: the rate of a transition is {told} 1/s") as found:
        simulated(system).step(100)
    assert (found.value.object, found.value.jump) == ("beads", "switch")


def test_a_rate_of_links_above_the_bound_ends_the_run():
    system, _ = pulled(5, 2.0, "unbind; rate = tension", at_most=1.0)
    refuses(mp.SimulationError, "jump own: the rate of a transition is 2 1/s", simulated(system).step, 100)


def test_numbers_are_set_and_come_back_from_documents():
    beads, system = fixed_beads(100)
    text = "A -> B; rate = k*exp(z)"
    jump = system.add_jump(mp.jumps.CustomTransitions(beads, text, at_most=9.0, k=0.0, name="switch"))
    simulation = simulated(system)
    simulation.step(10)
    assert not kinds_of(simulation.context.get_state(positions=True), beads).any()
    jump.set(k=9.0)
    assert (jump.k, jump.transitions) == (9.0, (text,))
    again, _ = deserialize(serialize(simulation))
    assert again["switch"].parameters == {"at_most": 9.0, "k": 9.0}
    simulation.step(20)
    assert kinds_of(simulation.context.get_state(positions=True), beads).all()


def test_energies_that_close_or_not_tell_whether_it_is_driven():
    beads, _ = fixed_beads(2)

    def made(text, **numbers):
        return mp.jumps.CustomTransitions(beads, text, at_most=1.0, **numbers)

    cycle = "A <-> B; rate = exp(-z^2), energy = e\nB <-> C; rate = 1, energy = 2\nC <-> A; rate = 1, energy = -3"
    jump = made(cycle, e=1.0)
    assert not jump.driven
    jump.set(e=1.1)
    assert jump.driven
    assert made("A <-> B; rate = 1, energy = 0.5*z^2").driven
    assert made("A -> B; rate = 1").driven
    assert not made("A <-> B; k_on = 2, k_off = 1").driven


def test_bounds_are_told_as_the_fastest_rates():
    beads, system = fixed_beads(2)
    system.add_jump(mp.jumps.CustomTransitions(beads, "A -> B; rate = 1", at_most=7.0))
    assert system.jumps[0].fastest(1.0) == 7.0
    assert "CustomTransitions" in str(simulated(system).check())


def test_replica_exchange_weighs_species_by_their_energies():
    beads, system = fixed_beads(4)
    jump = system.add_jump(mp.jumps.CustomTransitions(beads, "A <-> B; rate = 1, energy = e", at_most=4.0, e=1.3))
    simulation = simulated(system, 1.0)
    simulation.step(3)
    state = simulation.context.get_state(positions=True, energy=True)
    operation = simulation.context._schedule.jumping.operations[0]
    n = int((kinds_of(state, beads) == 1).sum())
    weights = [jump.log_weight(operation, state, kT) for kT in (1.0, 2.0)]
    # One half for each end of the transition: those of A and B, whose numbers add up, differ by the whole energy.
    assert weights[0] == pytest.approx(-1.3 * (n - 2.0))
    assert weights[1] == pytest.approx(-0.65 * (n - 2.0))


@pytest.mark.parametrize(("text", "why"), [
    ("A -> B", '"rate" behind a semicolon; it has none'),
    ("A -> B; k_on = 1, k_off = 2", 'give "rate" behind a semicolon; it has k_on, k_off'),
    ("A <-> B; rate = 1, k_off = 2", "with \"energy\" or without"),
    ("A -> B; rate = 1, rate = 2", "rate is given twice"),
    ("A -> B; speed = 1", "'speed' is not one of its expressions"),
    ("A -> B; 2.0", "must be a name and its expression"),
    ("A -> B; rate = q", "q"),
    ("A -> B; rate = k*tension", "tension"),
    ("A -> B; rate = 2*", "rate"),
    ("A -> X; rate = k", "X"),
    ("A -> A; rate = k", "both sides are the same"),
    ("A + B -> C; rate = k", "Reactions has all others"),
    ("0 -> A; rate = k", "Reactions has all others"),
    ("bind; rate = k", "LinkBinding and CrosslinkerBinding bind"),
    ("create A; rate = k", "create beads"),
    ("remove A; rate = k", "remove beads"),
    ("step +1; rate = k", "Motors step along a lattice"),
    ("unbind; rate = k", "arrow"),
    ("", "there is no transition"),
])  # fmt: skip
def test_texts_of_beads_that_are_refused(text, why):
    beads, _ = fixed_beads(2)
    numbers = {"at_most": 1.0} | ({"k": 1.0} if "= k" in text else {})
    refuses(mp.ParameterError, why.replace("+", r"\+"), mp.jumps.CustomTransitions, beads, text, **numbers)


def test_arguments_that_are_refused():
    beads, _ = fixed_beads(2)

    def refused(why, subject, text, **numbers):
        refuses(mp.ParameterError, why, mp.jumps.CustomTransitions, subject, text, **numbers)

    refused("the parameter l is not in", beads, "A -> B; rate = k", at_most=1.0, k=1.0, l=2.0)
    refused("x is a coordinate and cannot be a parameter", beads, "A -> B; rate = x", at_most=1.0, x=1.0)
    refused("kT cannot be a parameter", beads, "A -> B; rate = kT", at_most=1.0, kT=1.0)
    refused("at_most = 0", beads, "A -> B; rate = 1", at_most=0.0)
    refused("subject must be the handle", 3, "A -> B; rate = 1", at_most=1.0)
    links = mp.forces.Links([], [], stiffness=1.0)
    refused("transitions of links are one text", links, "A -> B; rate = 1", at_most=1.0)
    refused("it has rate, energy", links, "unbind; rate = 1, energy = 2", at_most=1.0)


def test_links_of_no_link_binding_are_refused():
    _, system = fixed_beads(2, x=[[0.0, 0, 0], [3.0, 0, 0]])
    links = system.add_force(mp.forces.Links([0], [1], stiffness=1.0, length=3.0, name="springs"))
    system.add_jump(mp.jumps.CustomTransitions(links, "unbind; rate = 1", at_most=1.0, name="own"))
    why = r"the links of springs must be those of one LinkBinding .* not of none"
    refuses(mp.ParameterError, why, simulated, system)


def test_links_of_heads_are_refused():
    topology = mp.Topology()
    nodes = [[[0.0, y, 0], [27.0, y, 0]] for y in (0.0, 35.0)]
    actin = topology.add_filaments(nodes, 1.0, 1.0, constrained=False)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=1e6, counts={"X": 5}))
    links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=35.0))
    numbers = {"dissociation_constants": 1e-3, "off_rates": 0.3}
    system.add_jump(mp.jumps.CrosslinkerBinding(links, actin.lattice(2.7), pool=pool["X"], **numbers))
    system.add_jump(mp.jumps.CustomTransitions(links, "unbind; rate = 1", at_most=1.0, name="own"))
    refuses(mp.ParameterError, "not of CrosslinkerBinding", simulated, system)
