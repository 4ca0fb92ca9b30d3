"""Transitions of beads written as text: in balance and driven, that come and go, bounds, and what is refused."""

import math

import numpy as np
import pytest
from builders import in_brownian_steps, octahedron, refuses

import medyanpy as mp
from medyanpy.files.documents import deserialize, serialize
from medyanpy.testing import JumpCase, check_chi_square, check_jump, check_mean

#: A friction of beads that stay where they are, to the last bit.
STILL = 1e30


def species(names="ABC", friction=STILL):
    return {name: {"mass": 1.0 + i, "friction": friction} for i, name in enumerate(names)}


def fixed_beads(copies, z=0.0, start="A", box=None, x=None):
    topology = mp.Topology()
    places = np.tile([0.0, 0.0, 0.0], (copies, 1)) if x is None else np.array(x, float)
    places[:, 2] += z
    beads = topology.add_beads(places, species=species(), of_species=start, name="beads")
    return beads, mp.System(topology, box=box)


def kinds_of(state, beads):
    return state.column("species")[beads.beads]


def case_of(text, rates, weights=None, driven=False, z=0.0, **parameters):
    def make(copies, seed, threads, timestep):
        beads, system = fixed_beads(copies, z)
        make.beads = beads
        system.add_jump(mp.jumps.CustomTransitions(beads, text, name="switch", **parameters))
        return in_brownian_steps(system, timestep, seed, threads, kT=2.0)

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


@pytest.mark.filterwarnings("ignore::medyanpy.PerformanceWarning")
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
    simulation = in_brownian_steps(system, kT=2.0)
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
    simulation = in_brownian_steps(system)
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
    simulation = in_brownian_steps(system)
    simulation.step(3)
    assert kinds_of(simulation.context.get_state(positions=True), beads).tolist() == [1, 0]


# Beads that come and go ---------------------------------------------------------------------------------------------


def in_a_box(text, counts=(0, 0), capacity=60, side=10.0, **options):
    topology = mp.Topology()
    kinds = dict(zip("AB", counts, strict=True))
    places = np.zeros((sum(counts), 3))
    beads = topology.add_beads(places, species=species("AB", 1.0), counts=kinds, capacity=capacity, name="beads")
    system = mp.System(topology, box=[side] * 3)
    jump = system.add_jump(mp.jumps.CustomTransitions(beads, text, name="own", **options))
    return beads, system, jump


def numbers_in_time(system, steps, each, timestep=0.5, seed=4):
    """Numbers of living beads after each of some steps, (n,)."""
    simulation = in_brownian_steps(system, timestep, seed)
    out = []
    for _ in range(steps):
        simulation.step(each)
        out.append(int(simulation.context.get_state(positions=True).alive.sum()))
    return np.array(out)


def test_beads_go_at_the_rate_of_their_place():
    z = np.repeat([0.0, 2.0], 7000)
    beads, system = fixed_beads(len(z), z)
    system.add_jump(mp.jumps.CustomTransitions(beads, "A -> 0; rate = k*(1 + z)", at_most=3.0, k=1.0))
    simulation = in_brownian_steps(system, 0.1)
    simulation.step(3)
    alive = simulation.context.get_state(positions=True).alive[beads.beads]
    for height, rate in ((0.0, 1.0), (2.0, 3.0)):
        left, expected = int(alive[z == height].sum()), math.exp(-0.3 * rate)
        check_chi_square(f"left at {height}", [left, 7000 - left], 7000 * np.array([expected, 1 - expected]), sees=0.1)


def test_beads_come_by_volume_at_the_rate_of_the_place():
    """In 0.5 s come 1000 nm³ times the mean of the rate: half the box at 3 /(s nm³), half at 1."""
    text = "0 -> A; rate = k*(1 + 2*step(x))"
    _, system, jump = in_a_box(text, capacity=1500, at_most_created=3.0, at_most=1.0, k=1.0)
    assert jump.driven
    simulation = in_brownian_steps(system, 0.05, 7)
    simulation.step(10)
    state = simulation.context.get_state(positions=True)
    assert state.jumps["own"]["events"].tolist() == [state.alive.sum()]
    assert abs(int(state.alive.sum()) - 1000.0) < 4.9 * math.sqrt(1000.0)


def test_where_beads_come_is_by_the_rate():
    _, system, _ = in_a_box(
        "0 -> A; rate = k*(1 + 2*step(x))", capacity=4000, at_most_created=6e3, at_most=1.0, k=1e3)  # fmt: skip
    simulation = in_brownian_steps(system, 1e-3)
    simulation.step(1)
    state = simulation.context.get_state(positions=True)
    x = state.positions[state.alive, 0]
    # In steps this short they stay where they came.
    x -= 10.0 * np.round(x / 10.0)
    check_chi_square("by half", np.bincount((x > 0.0).astype(int)), len(x) * np.array([0.25, 0.75]), sees=0.19)


@pytest.mark.parametrize("text", ["0 <-> A; k_on = c*k, k_off = k", "A <-> 0; k_on = k, k_off = c*k"])
def test_coming_and_going_in_balance_is_a_poisson_law(text):
    c, k = 0.012, 1.0
    _, system, jump = in_a_box(text, at_most_created=0.02, at_most=1.5, c=c, k=k)
    assert not jump.driven
    n = numbers_in_time(system, 2500, 4)[10:]
    mean = 1000.0 * c
    law = np.array([math.exp(-mean + i * math.log(mean) - math.lgamma(i + 1)) for i in range(60)])
    cells = [np.arange(60) < 9, *(np.arange(60) == i for i in range(9, 16)), np.arange(60) > 15]
    found, expected = (np.array([v[cell].sum() for cell in cells]) for v in (np.bincount(n, minlength=60), law))
    # Looks 2 s apart at a rate of 1 /s: correlated by e^-2, as if there were 0.76 of them.
    check_chi_square("number", 0.76 * found, 0.76 * len(n) * expected, sees=0.22)


def test_a_weight_of_coming_and_going_is_that_of_its_activity():
    _, system, jump = in_a_box("0 <-> A; k_on = 0.01*k, k_off = k", at_most_created=0.1, at_most=4.0, k=1.0)
    simulation = in_brownian_steps(system, 1.0)
    simulation.step(20)
    state = simulation.context.get_state(positions=True, energy=True)
    n = int(state.alive.sum())
    assert n > 2
    operation = simulation.context._schedule.jumping.operations[0]
    assert jump.log_weight(operation, state, 1.0) == pytest.approx(n * math.log(0.01))


def test_rates_of_beads_are_of_how_many_there_are():
    text = "0 -> A; rate = step(10.5 - n_A - n_B)\nA -> B; rate = 5*step(2.5 - n_B)"
    _, system, _ = in_a_box(text, at_most=5.0, at_most_created=1.0)
    simulation = in_brownian_steps(system, 0.1)
    simulation.step(100)
    state = simulation.context.get_state(positions=True)
    assert np.bincount(state.column("species")[state.alive]).tolist() == [8, 3]


def test_beads_that_come_onto_a_membrane_are_uniform_by_area():
    topology = mp.Topology()
    membrane = topology.add_membrane(octahedron(), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, species=species("AB"), counts={"A": 0}, capacity=4000, seed=3)
    system = mp.System(topology)
    k = 1000.0 / octahedron().area
    text = "0 -> A; rate = k*step(z)"
    system.add_jump(mp.jumps.CustomTransitions(points, text, at_most=1.0, at_most_created=k, k=k))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
    simulation.step(2000)
    state = simulation.context.get_state(positions=True)
    n = len(state.living(points))
    assert abs(n - 1000.0) < 4.9 * math.sqrt(1000.0)


# Bounds, numbers and texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "told"), [("3", "3"), ("0.5 - z", "-1.5"), ("sqrt(-z)", "nan")])
def test_a_rate_above_the_bound_ends_the_run_with_its_value(rate, told):
    beads, system = fixed_beads(5, 2.0)
    system.add_jump(mp.jumps.CustomTransitions(beads, f"A -> B; rate = {rate}", at_most=2.0, name="switch"))
    with pytest.raises(mp.SimulationError, match=f"jump switch: the rate of a transition is {told} 1/s") as found:
        in_brownian_steps(system).step(100)
    assert (found.value.object, found.value.jump) == ("beads", "switch")


def test_a_rate_of_creation_above_its_own_bound_ends_the_run():
    """1 /(s nm³) is above 0.5, and not above the bound of rates by bead."""
    _, system, _ = in_a_box("0 -> A; rate = 1", at_most=9.0, at_most_created=0.5)
    refuses(mp.SimulationError, "jump own: the rate of a transition is 1 1/s here, .* by area or volume, to "
            "at_most_created", in_brownian_steps(system).step, 10)  # fmt: skip


def test_numbers_are_set_and_come_back_from_documents():
    beads, system = fixed_beads(100)
    text = "A -> B; rate = k*exp(z)"
    jump = system.add_jump(mp.jumps.CustomTransitions(beads, text, at_most=9.0, k=0.0, name="switch"))
    simulation = in_brownian_steps(system)
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
    assert "CustomTransitions" in str(in_brownian_steps(system).check())


def test_replica_exchange_weighs_species_by_their_energies():
    beads, system = fixed_beads(4)
    jump = system.add_jump(mp.jumps.CustomTransitions(beads, "A <-> B; rate = 1, energy = e", at_most=4.0, e=1.3))
    simulation = in_brownian_steps(system, 1.0)
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
    ("0 -> A; rate = k", r"at_most_created, 1/(s nm²) on membranes .* is needed"),
    ("0 <-> A; rate = k", "give k_on and k_off: one is by area or volume"),
    ("A <-> 0; rate = k, energy = 2", "give k_on and k_off"),
    ("bind; rate = k", "arrow"),
    ("create A; rate = k", "write it as an equation of species, '0 -> A'"),
    ("remove A; rate = k", "write it as an equation of species, 'A -> 0'"),
    ("step; rate = k", "arrow"),
    ("A -> B; rate = k*n_C*n_X", "n_X"),
    ("unbind; rate = k", "arrow"),
    ("", "there is no transition"),
])  # fmt: skip
def test_texts_of_beads_that_are_refused(text, why):
    beads, _ = fixed_beads(2)
    numbers = {"at_most": 1.0} | ({"k": 1.0} if "= k" in text else {})
    for sign in "+()":
        why = why.replace(sign, f"\\{sign}")
    refuses(mp.ParameterError, why, mp.jumps.CustomTransitions, beads, text, **numbers)


def test_arguments_that_are_refused():
    beads, _ = fixed_beads(2)

    def refused(why, subject, text, **numbers):
        refuses(mp.ParameterError, why, mp.jumps.CustomTransitions, subject, text, **numbers)

    refused("the parameter l is not in", beads, "A -> B; rate = k", at_most=1.0, k=1.0, l=2.0)
    refused("x is a coordinate and cannot be a parameter", beads, "A -> B; rate = x", at_most=1.0, x=1.0)
    refused("kT cannot be a parameter", beads, "A -> B; rate = kT", at_most=1.0, kT=1.0)
    refused("n_A is a coordinate", beads, "A -> B; rate = n_A", at_most=1.0, n_A=1.0)
    bounds = {"at_most": 1.0, "at_most_created": 1.0}
    refused("at_most_created, .* is given, but no transition creates", beads, "A -> B; rate = 1", **bounds)
    bounds["at_most_created"] = 0.0
    refused("at_most_created = 0.0 but must be finite and > 0", beads, "0 -> A; rate = 1", **bounds)
    refused("at_most = 0", beads, "A -> B; rate = 1", at_most=0.0)
    refused("subject must be the handle", 3, "A -> B; rate = 1", at_most=1.0)
    links = mp.forces.Links([], [], stiffness=1.0)
    refused("A is not a state of the links of Links: it has none", links, "A -> B; rate = 1", at_most=1.0)
    refused("bind is there twice", links, "bind; rate = 1\nbind; rate = 2", at_most=1.0)
    refused("at_most_created is of beads", links, "bind; rate = 1", at_most=1.0, at_most_created=1.0)
    refused("it has rate, energy", links, "unbind; rate = 1, energy = 2", at_most=1.0)
