"""States of links, which texts change: laws, balance and cycles, springs by state, bits, and what is refused."""

import math

import numpy as np
import pytest
from builders import in_brownian_steps, refuses

import medyanpy as mp
from medyanpy.testing import JumpCase, check_chi_square, check_mean
from medyanpy.testing.jumps import check_balance, check_bits, check_books, check_time

#: A friction of beads that stay where they are, to the last bit.
STILL = 1e30
KT = 2.0


def apart(copies, text, states=("weak", "strong"), load=1.0, stiffness=2.0, bound=True, on_rate=0.0, off_rate=1e-12,
          partners=1, **options):
    """Links of length 5 nm under a load, each between two sites of its own that do not move: (system, links, jump)."""
    topology = mp.Topology()
    topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness, 5.0, states=states, name="links"))
    y = 1000.0 * np.arange(copies)
    ends = [mp.Sites.anchors(np.column_stack([np.full(copies, x), y, 0.0 * y])) for x in (0.0, 5.0 + load / stiffness)]
    rows = np.column_stack([np.arange(copies)] * 2) if bound else ()
    system.add_jump(mp.jumps.LinkBinding(
        links, *ends, off_rate=off_rate, on_rate=on_rate, bound=rows, reach=200.0, partners=partners,
        name="binding"))  # fmt: skip
    jump = system.add_jump(mp.jumps.CustomTransitions(links, text, name="own", **options))
    return system, links, jump


def in_states(copies, states):
    """The state of each copy, 0 where nothing is bound, else 1 and up: a function of a State."""

    def of(state):
        out = np.zeros(copies, int)
        held = state.jumps["binding"]
        out[held["links"][:, 0]] = 1 + held["states"]
        assert (out <= states).all()
        return out

    return of


def case_of(text, rates, energies, weights, driven, on_rate, states=("weak", "strong"), bound=False, **options):
    def make(copies, seed, threads, timestep):
        make.copies = copies
        own = {"bound": bound, "on_rate": on_rate, "off_rate": 0.5 if on_rate else 1e-12} | options
        system, *_ = apart(copies, text, states, **own)
        return in_brownian_steps(system, timestep, seed, threads, KT)

    return JumpCase(
        "own", make, lambda state: in_states(make.copies, len(states))(state), rates, np.array(energies), KT, weights,
        int(bound), driven,
    )  # fmt: skip


def balanced():
    """Links that bind and let go by a LinkBinding, and have another state, of a longer, stiffer spring and 1.2 pN nm
    more: (case, rates)."""
    weak, strong, e = 0.25 * 1.0**2, 0.5 * 3.0 * (5.5 - 6.0) ** 2, 1.2
    k_on, k_off = 3.0 * math.exp(-0.5 * weak / KT), 0.5 * math.exp(0.5 * weak / KT)
    gain = strong - weak
    there = 2.0 * math.exp(-0.5 * e / KT) * min(1.0, math.exp(-gain / KT))
    back = 2.0 * math.exp(0.5 * e / KT) * min(1.0, math.exp(gain / KT))
    rates = np.array([[0.0, k_on, 0.0], [k_off, 0.0, there], [0.0, back, 0.0]])
    weights = np.array([1.0, 6.0, 6.0 * math.exp(-e / KT)])
    states = {"weak": {}, "strong": {"length": 6.0, "stiffness": 3.0}}
    text = "weak <-> strong; rate = k, energy = e"
    return case_of(text, rates, [0.0, weak, strong], weights, False, 3.0, states, at_most=4.0, k=2.0, e=e)


def test_two_states_in_balance_keep_what_jumps_promise():
    case = balanced()
    check_balance(case)
    check_books(case)
    check_bits(case)


def test_two_states_in_balance_come_to_rest_as_energies_say():
    case = balanced()
    # Two jumps act one after the other: exact at rest, whatever the step.
    simulation = case.make(5000, 4, 1, 0.5)
    simulation.step(24)
    counts = np.bincount(case.states(simulation.context.get_state(positions=True)), minlength=3)
    check_chi_square("at rest", counts, 5000 * case.at_rest, sees=0.12)


def test_the_occupancy_of_a_link_between_two_states_is_the_closed_form():
    """From the first: on/(on + off) (1 - exp(-(on + off) t))."""
    text = "weak <-> strong; k_on = a*length, k_off = b*exp(tension/f)"
    system, links, _ = apart(8000, text, at_most=6.0, a=0.3, b=1.0, f=2.0)
    on, off = 0.3 * 5.5, math.exp(0.5)
    for steps, h in ((1, 0.3), (5, 0.2)):
        simulation = in_brownian_steps(system, h)
        simulation.step(steps)
        strong = (links.states_in(simulation.context.get_state(positions=True)) == "strong").sum()
        p = on / (on + off) * (1.0 - math.exp(-(on + off) * h * steps))
        check_chi_square(f"after {h * steps} s", [strong, 8000 - strong], [8000 * p, 8000 * (1.0 - p)], sees=0.1)


def driven(on_rate):
    """Links of three states, which bind in the second, and turn one way around: all by text."""
    text = """b: bind; rate = 2*exp(-energy/kT)
              a -> b; rate = 1
              b -> c; rate = 1.5
              c -> a; rate = 0.5*length/5.5
              c: unbind; rate = k*exp(tension/f)
              a: unbind; rate = 0.25"""
    u = 0.25
    rates = np.zeros((4, 4))
    rates[0, 2] = 2.0 * math.exp(-u / KT)
    rates[1, 2], rates[2, 3], rates[3, 1] = 1.0, 1.5, 0.5
    rates[3, 0], rates[1, 0] = 0.7 * math.exp(1.0 / 3.0), 0.25
    return case_of(text, rates, [0.0, u, u, u], None, True, on_rate, ("a", "b", "c"), at_most=2.0, k=0.7, f=3.0)


def test_links_of_three_states_that_bind_and_let_go_follow_their_master_equation():
    case = driven(0.0)
    check_time(case, 7000, 0.17)


def test_links_of_three_states_have_the_same_bits_and_books():
    # Bits are those beside the other jump at work.
    check_bits(driven(0.5))
    check_books(driven(0.0))


def test_a_turn_around_a_cycle_takes_the_logarithm_of_the_product_of_its_rates():
    """Springs and what states there are open the sums of single events, and not those of turns."""
    text = ["a <-> b; k_on = 3*length, k_off = length*(1 + n_b)", "b <-> c; k_on = 2, k_off = 1",
            "c <-> a; rate = (1.5*n_a + 1.5)*exp(2*gain), energy = -0.4"]  # fmt: skip
    states = {"a": {}, "b": {"length": 6.0}, "c": {"stiffness": 1.0}}
    system, links, jump = apart(1, text, states, at_most=40.0)
    assert jump.driven
    simulation = in_brownian_steps(system, 0.5, kT=KT)
    heard = simulation.context.events()
    simulation.step(100)
    events = heard.heard()
    assert jump.kinds == ("a -> b", "b -> a", "b -> c", "c -> b", "c -> a", "a -> c")
    turn = {"a -> b": 1, "b -> c": 1, "c -> a": 1, "b -> a": -1, "c -> b": -1, "a -> c": -1}
    # a -> b at n_b = 0, back at 1; c -> a at n_a = 0, back at 1.
    each = KT * (math.log(3.0 / 2.0) + math.log(2.0) + math.log(1.5 / 3.0) + 4.0 * (0.25 - 0.125)) + 0.4
    turns = int(np.floor(sum(turn[event.kind] for event in events) / 3))
    done = np.cumsum([turn[event.kind] for event in events])
    whole = np.flatnonzero(done == 3 * turns)[-1] + 1
    assert turns > 5
    assert sum(event.chemical_energy for event in events[:whole]) == pytest.approx(turns * each, rel=1e-9)
    assert sum(event.energy for event in events[:whole]) == pytest.approx(0.0, abs=1e-9)
    state = simulation.context.get_state(positions=True, energy=True)
    at = links.states_in(state)[0]
    u = {"a": 0.25, "b": 0.5 * 2.0 * 0.25, "c": 0.5 * 1.0 * 0.25}
    assert state.potential_energy == pytest.approx(u[at], rel=1e-12)


@pytest.mark.parametrize(("text", "states", "is_driven"), [
    ("a <-> b; rate = 1, energy = 2", "abc", False),
    ("a <-> b; k_on = 2, k_off = 1\nb <-> c; rate = length, energy = kT", "abc", False),
    ("a <-> b; rate = exp(tension)\nb <-> c; rate = links + n_a\nc <-> a; rate = 2", "abc", False),
    ("a <-> b; rate = 1, energy = 1\nb <-> c; rate = 1, energy = 1\nc <-> a; rate = 1, energy = -2", "abc", False),
    ("a <-> b; rate = 1, energy = 1\nb <-> c; rate = 1, energy = 1\nc <-> a; rate = 1, energy = -1", "abc", True),
    ("a <-> b; rate = 1, energy = 1\nb <-> c; rate = 1, energy = 1\nc <-> a; rate = 1, energy = -2*kT", "abc", True),
    ("a -> b; rate = 1", "abc", True),
    ("a <-> b; rate = 1\nunbind; rate = 1", "abc", True),
    ("a <-> b; rate = n_a", "abc", True),
    ("a <-> b; rate = 1, energy = length", "abc", True),
    ("a <-> b; rate = tension", {"a": {}, "b": {"length": 3.0}}, True),
    ("a <-> b; rate = 1, energy = gain", {"a": {}, "b": {"length": 3.0}}, True),
    ("a <-> b; rate = length", {"a": {}, "b": {"length": 3.0}}, False),
])  # fmt: skip
def test_a_jump_says_whether_states_of_links_are_in_balance(text, states, is_driven):
    *_, jump = apart(1, text, states if isinstance(states, dict) else list(states), at_most=9.0)
    assert jump.driven is is_driven


def test_a_rate_of_how_many_beads_there_are_of_a_species_that_changes_is_driven():
    topology = mp.Topology()
    species = {name: {"mass": 1.0, "friction": 1.0} for name in "ABC"}
    beads = topology.add_beads(np.zeros((4, 3)), species=species, of_species="A")
    for text, is_driven in (("A <-> B; rate = n_A", True), ("A <-> B; rate = n_C", False)):
        assert mp.jumps.CustomTransitions(beads, text, at_most=5.0).driven is is_driven


def test_rates_are_of_how_many_links_there_are_in_a_state():
    system, links, _ = apart(40, "weak -> strong; rate = 10*step(6.5 - n_strong)*step(n_weak - 1)", at_most=10.0)
    simulation = in_brownian_steps(system, 0.01)
    simulation.step(100)
    assert (links.states_in(simulation.context.get_state(positions=True)) == "strong").sum() == 7


def test_links_in_another_state_than_the_first_let_go_by_text_alone():
    system, links, _ = apart(400, "weak -> strong; rate = 2", off_rate=2.0, at_most=2.0)
    simulation = in_brownian_steps(system, 0.05)
    simulation.step(200)
    states = links.states_in(simulation.context.get_state(positions=True))
    assert set(states) == {"strong"}
    # Of k = 2/s, and 2 exp(U/2kT)/s: U = kT/4 here.
    share = 1.0 / (1.0 + math.exp(0.125))
    check_chi_square("strong", [len(states), 400 - len(states)], [400 * share, 400 * (1.0 - share)], sees=0.4)


def moving(states, text, n=2000, seed=2, **options):
    """Springs without length from anchors to beads that move in each, from 1 nm away: (simulation, links)."""
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((n, 3)) + [1.0, 0, 0] + 0.0, mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], 1.0, 0.0, states=states, name="links"))
    anchors = mp.Sites.anchors(np.zeros((n, 3)) + 1e-6 * np.arange(n)[:, None])
    system.add_jump(mp.jumps.LinkBinding(
        links, mp.Sites.beads(beads), anchors, off_rate=1e-12, on_rate=0.0, bound=np.column_stack([np.arange(n)] * 2),
        name="binding"))  # fmt: skip
    system.add_jump(mp.jumps.CustomTransitions(links, text, name="own", **options))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAGOGABJ", 0.05, kT=1.0, seed=seed), threads=1), links


def test_a_spring_that_states_change_keeps_boltzmanns_law_of_beads_that_move():
    """States of stiffness 1 and 2.5 pN/nm: the second has the weight exp(-e/kT)/2.5^(3/2), and no heat is left over."""
    text = "soft <-> stiff; rate = k, energy = e"
    simulation, links = moving({"soft": {}, "stiff": {"stiffness": 2.5}}, text, at_most=4.0, k=1.0, e=-1.0)
    simulation.step(300)
    w = math.exp(1.0) / 2.5**1.5
    state = simulation.context.get_state(positions=True)
    stiff = links.states_in(state) == "stiff"
    n = np.array([(~stiff).sum(), stiff.sum()])
    check_chi_square("states", n, n.sum() * np.array([1.0, w]) / (1.0 + w), sees=0.25)
    tension = links.tensions(state)
    length = links.lengths(state)
    assert np.allclose(tension, np.where(stiff, 2.5, 1.0) * length)
    for which, k in ((~stiff, 1.0), (stiff, 2.5)):
        check_mean(f"energy at {k}", 0.5 * k * length[which] ** 2, 1.5, sees=0.4)


def test_forces_and_energies_are_those_of_the_states():
    simulation, links = moving({"short": {}, "long": {"length": 2.0, "stiffness": 1.5}}, "short -> long; rate = 60",
                               n=40, at_most=60.0)  # fmt: skip
    simulation.step(3)
    state = simulation.context.get_state(positions=True, energy=True, forces=True)
    ends = state.links(links)
    assert 0 < (ends.states == 1).sum() < 40
    stretch = links.lengths(state) - ends.length
    assert state.potential_energy == pytest.approx((0.5 * ends.stiffness * stretch**2).sum(), rel=1e-12)
    d = ends.b.positions(state) - ends.a.positions(state)
    pull = links.tensions(state)[:, None] * d / np.linalg.norm(d, axis=1)[:, None]
    assert np.allclose(state.forces, pull, rtol=1e-10, atol=1e-10)


def test_states_follow_their_links_when_others_go_are_moved_or_have_more_beads():
    text = "weak -> strong; rate = 1"
    topology = mp.Topology()
    beads = topology.add_beads(np.column_stack([np.zeros(30), 9.0 * np.arange(30), np.zeros(30)]), 1.0, STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], 2.0, 5.0, states=["weak", "strong"]))
    ends = mp.Sites.anchors(np.column_stack([np.full(30, 5.0), 9.0 * np.arange(30), np.zeros(30)]))
    rows = np.column_stack([np.arange(30)] * 2)
    system.add_jump(mp.jumps.LinkBinding(
        links, mp.Sites.beads(beads), ends, off_rate=1e-12, on_rate=0.0, bound=rows, name="binding"))  # fmt: skip
    jump = system.add_jump(mp.jumps.CustomTransitions(links, text, at_most=2.0, name="own"))
    simulation = in_brownian_steps(system, 0.1)
    simulation.step(6)
    context = simulation.context

    def strong():
        held = context.get_state(positions=True).jumps["binding"]
        return {int(a) for a, s in zip(held["links"][:, 0], held["states"], strict=True) if s}

    before = strong()
    assert 5 < len(before) < 25
    keep = [row for row in rows.tolist() if row[0] not in (3, 4, 11)][::-1]
    moved = [[3, 4]]
    context.set_links("binding", keep + moved)
    assert strong() == before - {3, 4, 11}
    checkpoint = context.get_state(positions=True)
    with topology.edit():
        beads.remove(beads.beads[[0, 7, 8]], terms="remove")
    left = [k for k in range(30) if k not in (0, 7, 8)]
    assert {left[k] for k in strong()} == before - {3, 4, 11, 0, 7, 8}
    assert jump.counts.accepted == len(before)
    assert (checkpoint.jumps["binding"]["states"] == 1).sum() == len(before - {3, 4, 11})


def test_ends_of_links_in_one_state_step():
    topology = mp.Topology()
    nodes = np.zeros((200, 5, 3))
    nodes[..., 0], nodes[..., 1] = 5.0 * np.arange(5), 1000.0 * np.arange(200)[:, None]
    actin = topology.add_filaments(nodes, 1.0, STILL, constrained=False, name="actin")
    anchors = mp.Sites.anchors(np.column_stack([np.full(200, 10.0), 1000.0 * np.arange(200), np.zeros(200)]))
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], 0.05, 0.0, states=["weak", "strong"]))
    bound = np.column_stack([5 * np.arange(200), np.arange(200)])
    system.add_jump(mp.jumps.LinkBinding(
        links, actin.lattice(5.0), anchors, off_rate=1e-12, on_rate=0.0, bound=bound, reach=200.0,
        name="binding"))  # fmt: skip
    text = "strong: step; rate = 9\nweak -> strong; rate = 1\nstrong: step back; rate = 3*step(gain)"
    system.add_jump(mp.jumps.CustomTransitions(links, text, at_most=9.0, name="own"))
    simulation = in_brownian_steps(system, 0.2)
    simulation.step(3)
    held = simulation.context.get_state(positions=True).jumps["binding"]
    walked = held["links"][:, 0] % 5 > 0
    assert 0 < walked.sum() < 200
    assert (held["states"][walked] == 1).all()


def test_frames_hold_states_of_links(tmp_path):
    system, links, _ = apart(20, "weak -> strong; rate = 1\nunbind; rate = 0.5",
                             {"weak": {}, "strong": {"length": 5.5}}, at_most=1.0)  # fmt: skip
    simulation = in_brownian_steps(system, 0.2)
    path = tmp_path / "run.h5md"
    with mp.reporters.TrajectoryReporter(path, 2, velocities=True) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(4)
    state = simulation.context.get_state(positions=True)
    with mp.Trajectory(path) as trajectory:
        frame = trajectory[-1]
        assert np.array_equal(frame.links("binding"), state.jumps["binding"]["links"])
        held = frame.state().jumps["binding"]
        assert np.array_equal(held["states"], state.jumps["binding"]["states"])
        assert 0 < held["states"].sum() < len(held["states"])
        other = in_brownian_steps(system, 0.2)
        other.context.set_state(frame.state())
    again = other.context.get_state(positions=True)
    assert np.array_equal(links.tensions(again), links.tensions(state))


def test_balanced_states_have_a_weight_for_replicas():
    text = "a <-> b; rate = 1, energy = 2*kT\nb <-> c; k_on = 3, k_off = 1"
    system, _, jump = apart(300, text, ["a", "b", "c"], at_most=9.0, load=0.0, on_rate=2.0, off_rate=1.0)
    simulation = in_brownian_steps(system, 0.3)
    simulation.step(4)
    state = simulation.context.get_state(positions=True, energy=True)
    operation = simulation.context._schedule.jumping.operations[1]
    _, b, c = np.bincount(state.jumps["binding"]["states"], minlength=3)
    assert b * c > 0
    wanted = -2.0 * (b + c) + math.log(3.0) * c
    assert jump.log_weight(operation, state, 1.0) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(("states", "why"), [
    ("weak", "must be names"),
    (["weak"], "1 given, but there are from 2 to 32, or none"),
    (["weak", "weak"], r"states\[1\] = 'weak' but must be a name that no other has"),
    (["weak", "bind"], "not a word of transitions"),
    (["weak", "not strong"], "of letters, digits and _"),
    ({"weak": {"length": 1.0}, "strong": {}}, "empty for the first state"),
    ({"weak": {}, "strong": {"width": 1.0}}, "must be a dict of stiffness and length"),
    ({"weak": {}, "strong": {"length": -1.0}}, "states: strong: length = -1.0 but must be finite and >= 0"),
])  # fmt: skip
def test_states_of_links_that_mean_nothing_are_refused(states, why):
    refuses(mp.ParameterError, why, mp.forces.Links, [], [], 1.0, states=states)


@pytest.mark.parametrize(("text", "why"), [
    ("weak -> loose; rate = 1", "loose is not a state of the links of links: weak, strong"),
    ("weak -> weak; rate = 1", "it changes nothing"),
    ("loose: unbind; rate = 1", "loose is not a state"),
    ("weak: fall; rate = 1", "'weak: unbind', and changes of the state, 'weak -> strong'; not 'weak: fall'"),
    ("unbind; rate = 1\nstrong: unbind; rate = 2", "strong: unbind is there twice"),
    ("weak -> strong; rate = 1\nweak <-> strong; rate = 2", "weak -> strong is there twice"),
    ("weak <-> strong; rate = n_loose", "n_loose"),
])  # fmt: skip
def test_transitions_of_states_that_mean_nothing_are_refused(text, why):
    refuses(mp.ParameterError, why, apart, 1, text, at_most=3.0)


def test_states_of_links_that_no_link_binding_binds_are_refused():
    topology = mp.Topology()
    nodes = [[[0.0, y, 0], [27.0, y, 0]] for y in (0.0, 35.0)]
    actin = topology.add_filaments(nodes, 1.0, 1.0, constrained=False)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=1e6, counts={"X": 5}))
    links = system.add_force(mp.forces.Links([], [], 0.5, 35.0, states=["weak", "strong"]))
    numbers = {"dissociation_constants": 1e-3, "off_rates": 0.3, "pool": pool["X"]}
    refuses(mp.ParameterError, "has states, which links of a LinkBinding alone have",
            mp.jumps.CrosslinkerBinding, links, actin.lattice(2.7), **numbers)  # fmt: skip
