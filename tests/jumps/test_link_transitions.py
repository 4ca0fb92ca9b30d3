"""Links that bind, let go and step at rates written as text: laws, books and bits, and what is refused."""

import math

import numpy as np
import pytest
from builders import in_brownian_steps, refuses

import medyanpy as mp
from medyanpy.testing import JumpCase, check_chi_square
from medyanpy.testing.jumps import check_bits, check_jumps_together, check_time

#: A friction of beads that stay where they are, to the last bit.
STILL = 1e30


def nothing_moves(stiffness=2.0):
    topology = mp.Topology()
    topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=STILL)
    system = mp.System(topology)
    return system, system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=5.0, name="links"))


def pulled(copies, load, text, bound=True, on_rate=0.0, off_rate=1e-12, stiffness=2.0, **options):
    """Links of length 5 nm under a load, between sites that do not move: (system, links)."""
    system, links = nothing_moves(stiffness)
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
    simulation = in_brownian_steps(system, 0.02)
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
        simulation = in_brownian_steps(system, 0.1)
        simulation.step(3)
        left = len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
        bound = math.exp(-0.3 * numbers)
        check_chi_square(text, [left, 8000 - left], 8000 * np.array([bound, 1.0 - bound]), sees=0.09)


def test_links_that_are_pushed_have_a_negative_tension():
    system, _ = pulled(50, -2.0, "unbind; rate = 1000*step(-1.5 - tension)", at_most=1000.0)
    simulation = in_brownian_steps(system)
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
        return in_brownian_steps(system, timestep, seed, threads, kT)

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
    simulation = in_brownian_steps(system, 0.05)
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


def test_links_that_bind_by_text_keep_what_jumps_promise():
    load, kT = 1.0, 2.0
    u = 0.25 * load**2
    text = "bind; rate = k*exp(-energy/(2*kT))\nunbind; rate = 0.5*exp(energy/(2*kT))"
    rates = [[0.0, 2.0 * math.exp(-0.5 * u / kT)], [0.5 * math.exp(0.5 * u / kT), 0.0]]

    def make(copies, seed, threads, timestep):
        make.copies = copies
        system, _ = pulled(copies, load, text, False, make.on_rate, at_most=2.0, k=2.0)
        return in_brownian_steps(system, timestep, seed, threads, kT)

    def states(state):
        bound = np.zeros(make.copies, int)
        bound[state.jumps["binding"]["links"][:, 0]] = 1
        return bound

    case = JumpCase("own", make, states, rates, np.array([0.0, u]), kT, None, 0, True)
    make.on_rate = 0.0
    check_time(case, 7000, 0.17)
    # Bits are those beside the other jump at work.
    make.on_rate = 0.5
    check_bits(case)


def test_only_pairs_in_reach_that_have_room_bind():
    """Five sites in a row, each within reach of its neighbours alone, and one link at each."""
    topology = mp.Topology()
    beads = topology.add_beads(2.0 * np.arange(5)[:, None] * [1.0, 0.0, 0.0], mass=1.0, friction=STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=40.0, length=2.0))
    system.add_jump(mp.jumps.LinkBinding(links, mp.Sites.beads(beads), off_rate=1e-9, on_rate=0.0, name="binding"))
    own = system.add_jump(mp.jumps.CustomTransitions(
        links, "bind; rate = 50\nunbind; rate = 50", at_most=50.0, name="own"))  # fmt: skip
    simulation = in_brownian_steps(system, 0.01)
    seen = set()
    for _ in range(300):
        simulation.step(1)
        pairs = simulation.context.get_state(positions=True).jumps["binding"]["links"]
        assert (np.diff(np.sort(pairs, axis=1)) == 1).all()
        assert len(np.unique(pairs)) == pairs.size
        seen.add(len(pairs))
    assert seen == {0, 1, 2}
    assert own.counts.accepted > 100


def test_a_pool_slows_binding_by_text():
    """Of as many molecules as pairs: the share kt/(1 + kt) is bound, 0.5 at kt = 1; a pool without end has 0.63."""
    system, links = nothing_moves()
    y = 1000.0 * np.arange(5000)
    ends = [np.column_stack([np.full(5000, x), y, 0.0 * y]) for x in (0.0, 5.0)]
    system.add_jump(mp.jumps.LinkBinding(
        links, *map(mp.Sites.anchors, ends), off_rate=1e-9, on_rate=0.0, pool=5000, name="binding"))  # fmt: skip
    system.add_jump(mp.jumps.CustomTransitions(links, "bind; rate = 2", at_most=2.0))
    simulation = in_brownian_steps(system, 0.05)
    simulation.step(10)
    n = len(simulation.context.get_state(positions=True).jumps["binding"]["links"])
    check_chi_square("bound", [n, 5000 - n], [2500.0, 2500.0], sees=0.12)


def test_rates_of_links_are_of_how_many_there_are():
    system, _ = pulled(40, 0.0, "bind; rate = 10*step(6.5 - links)", False, at_most=10.0)
    simulation = in_brownian_steps(system, 0.01)
    simulation.step(100)
    assert len(simulation.context.get_state(positions=True).jumps["binding"]["links"]) == 7


def test_rates_of_links_are_of_the_tension_that_is_averaged():
    """Under 3 pN the mean is 3 (1 - e^-t/T): 1.9 pN after T, below 2 pN before 1.1 T."""
    system, links = nothing_moves()
    sites = mp.Sites.anchors([[0.0, 0, 0]]), mp.Sites.anchors([[6.5, 0, 0]])
    system.add_jump(mp.jumps.LinkBinding(
        links, *sites, off_rate=1e-12, on_rate=0.0, bound=[[0, 0]], rates=mp.jumps.Bell(1e6, average=1.0),
        name="binding"))  # fmt: skip
    system.add_jump(mp.jumps.CustomTransitions(links, "unbind; rate = 1e4*step(mean_tension - 2)", at_most=1e4))
    simulation = in_brownian_steps(system, 0.01)
    simulation.step(109)
    assert len(simulation.context.get_state(positions=True).jumps["binding"]["links"]) == 1
    simulation.step(2)
    assert len(simulation.context.get_state(positions=True).jumps["binding"]["links"]) == 0


def on_tracks(copies, text, places=5, start=0, both=False, tracks=1, stiffness=0.05, partners=1, separation=0.0,
              bound=None, on_rate=0.0, **options):
    """Links from places of straight filaments, 5 nm apart, that do not move to anchors at the middle of each; or, with
    `both`, from filament to filament beside it."""
    topology = mp.Topology()
    y = 1000.0 * np.arange(copies)
    x = 5.0 * np.arange(places)
    nodes = np.zeros((copies, places, 3))
    nodes[..., 0], nodes[..., 1] = x, y[:, None]
    actin = topology.add_filaments(nodes, 1.0, STILL, constrained=False, name="actin")
    other = mp.Sites.anchors(np.column_stack([np.full(copies, x.mean()), y, 0.0 * y]))
    if both:
        other = topology.add_filaments(nodes + [0.0, 3.0, 0.0], 1.0, STILL, constrained=False).lattice(5.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=0.0, name="links"))
    if bound is None:
        bound = np.column_stack([places * np.arange(copies) + start, np.arange(copies) * (places if both else 1)])
    system.add_jump(mp.jumps.LinkBinding(
        links, actin.lattice(5.0), other, off_rate=1e-12, on_rate=on_rate, bound=bound, reach=200.0, partners=partners,
        separation=separation, name="binding"))  # fmt: skip
    jump = system.add_jump(mp.jumps.CustomTransitions(links, text, name="own", **options))
    return system, jump


def places_of(simulation, places=5):
    return simulation.context.get_state(positions=True).jumps["binding"]["links"] % places


def test_ends_that_step_one_way_are_a_poisson_process_that_the_end_stops():
    system, jump = on_tracks(6000, "step; rate = k", at_most=2.0, k=1.5)
    assert (jump.kinds, jump.driven) == (("step",), True)
    simulation = in_brownian_steps(system, 0.2)
    heard = simulation.context.events()
    simulation.step(10)
    n = places_of(simulation)[:, 0]
    law = np.array([math.exp(-3.0) * 3.0**i / math.factorial(i) for i in range(4)])
    check_chi_square("places", np.bincount(n, minlength=5), 6000 * np.append(law, 1.0 - law.sum()), sees=0.15)
    assert len(heard.heard()) == n.sum()


@pytest.mark.parametrize("both", [False, True])
def test_ends_that_step_both_ways_by_their_gain_come_to_boltzmanns_law(both):
    """Where rates there and back are in the ratio of the energies, whatever else is: with both ends on lattices too."""
    text = "step; rate = k*exp(-gain/(2*kT))\nstep back; rate = k*exp(-gain/(2*kT))"
    system, _ = on_tracks(2500, text, both=both, at_most=6.0, k=1.0)
    simulation = in_brownian_steps(system, 0.5, kT=2.0)
    heard = simulation.context.events()
    simulation.step(30)
    rows = places_of(simulation)
    a, b = np.meshgrid(np.arange(5), np.arange(5) if both else [2.0], indexing="ij")
    weight = np.exp(-0.5 * 0.05 * (5.0 * (a - b)) ** 2 / 2.0).ravel()
    at = rows[:, 0] * 5 + rows[:, 1] if both else rows[:, 0]
    found, expected = np.bincount(at, minlength=len(weight)), 2500 * weight / weight.sum()
    rare = expected < 30.0
    pooled = [np.append(one[~rare], one[rare].sum()) if rare.any() else one for one in (found, expected)]
    check_chi_square("places", *pooled, sees=0.25)
    events = heard.heard()
    start = 2500 * 0.5 * 0.05 * (0.0 if both else 10.0) ** 2
    now = (0.5 * 0.05 * (5.0 * (rows[:, 0] - (rows[:, 1] if both else 2.0))) ** 2).sum()
    assert sum(event.energy for event in events) == pytest.approx(now - start, rel=1e-9)
    assert {event.kind for event in events} == {"step", "step back"}


def test_ends_that_step_keep_what_jumps_promise_together():
    text = "step; rate = k*exp(-gain/(2*kT))\nstep back; rate = k\nunbind; rate = 1\nbind; rate = 2"

    def make(threads):
        system, _ = on_tracks(60, text, at_most=9.0, k=2.0, on_rate=1.0)
        return in_brownian_steps(system, 0.05, 3, threads, 2.0)

    check_jumps_together("own", make)


@pytest.mark.parametrize(("separation", "end"), [(0.0, [3, 4]), (8.0, [2, 4])])
def test_a_place_that_is_taken_is_not_stepped_onto(separation, end):
    """Two links on a track of five places 5 nm apart come to its end, one behind the other, 8 nm from it if need be."""
    system, _ = on_tracks(2, "step; rate = 20", bound=[[0, 0], [2, 1]], at_most=20.0, separation=separation)
    simulation = in_brownian_steps(system, 0.01)
    for _ in range(100):
        simulation.step(3)
        first, second = places_of(simulation)[:, 0]
        assert second - first >= (2 if separation else 1)
    assert [first, second] == end


def test_one_of_several_links_at_a_place_steps():
    system, _ = on_tracks(2, "step; rate = 1", bound=[[0, 0], [0, 1], [6, 1]], at_most=1.0, partners=3)
    simulation = in_brownian_steps(system, 0.2)
    operation = simulation.context._schedule.jumping.operations[0]
    heard = simulation.context.events()
    seen = set()
    for _ in range(60):
        simulation.step(1)
        ids, _ = operation.links()
        assert ids.tolist() == [0, 1, 2]
        seen.add(tuple(places_of(simulation)[:, 0]))
    assert len(heard.heard()) == 4 + 4 + 3
    # Both links at one place went one by one.
    assert any(one[0] != one[1] for one in seen)


def test_a_rate_of_links_above_the_bound_ends_the_run():
    system, _ = pulled(5, 2.0, "unbind; rate = tension", at_most=1.0)
    refuses(mp.SimulationError, "jump own: the rate of a transition is 2 1/s", in_brownian_steps(system).step, 100)


def test_links_of_no_link_binding_are_refused():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [3.0, 0, 0]], mass=1.0, friction=STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([0], [1], stiffness=1.0, length=3.0, name="springs"))
    system.add_jump(mp.jumps.CustomTransitions(links, "unbind; rate = 1", at_most=1.0, name="own"))
    why = r"the links of springs must be those of one LinkBinding .* not of none"
    refuses(mp.ParameterError, why, in_brownian_steps, system)


def test_steps_without_a_lattice_and_means_that_are_not_taken_are_refused():
    for text, why in (("step back; rate = 1", "step back: neither end of the links of binding is on a lattice"),
                      ("bind; rate = mean_tension", "mean_tension: binding averages none")):  # fmt: skip
        system, _ = pulled(3, 0.0, text, at_most=1.0)
        refuses(mp.ParameterError, why, in_brownian_steps, system)


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
    refuses(mp.ParameterError, "not of CrosslinkerBinding", in_brownian_steps, system)
