"""Links that bind by bounded rates: when bounds are taken, that they hold, and that their age does not matter.

Laws of the process are in tests/physics/test_link_binding.py and test_jump_contract.py. kT = 1, lengths in nm.
"""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.testing import check_mean

RATES = {
    "balanced": {},
    "λ = 1": {"load_sharing": 1.0},
    "slip": {"rates": mp.jumps.Bell(1.5)},
    "catch": {"rates": mp.jumps.CatchSlip(0.8, 0.7, 2.0)},
    "window": {"rates": mp.jumps.FlatWindow(0.5, 3.0, force=2.0)},
}


def network(n=60, threads=1, dt=0.01, box=None, kind="beads", **numbers):
    """Beads, or the ends of the arms of bodies, in a well that bind each other; rates of a few per hundred steps."""
    rng = np.random.default_rng(2)
    topology = mp.Topology()
    x = rng.normal(0.0, 3.0, (n, 3))
    if kind == "beads":
        beads = topology.add_beads(x, mass=1.0, friction=1.0, name="beads")
        sites = mp.Sites.beads(beads)
    else:
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        beads = topology.add_rigid_bodies(x, turns, 1.0, [1.0, 1.5, 2.0], (0.5, 0.5), name="beads")
        sites = beads.sites(rng.normal(size=(1, 3)))
    system = mp.System(topology, box=box) if box else system_with(topology)
    if box is None:
        system.add_force(mp.forces.HarmonicTrap(beads, 0.05, [0.0, 0.0, 0.0]))
    links = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=1.5))
    numbers = {"off_rate": 1.0, "on_rate": 3.0, "partners": 2} | numbers
    system.add_jump(mp.jumps.LinkBinding(links, sites, **numbers))
    if box is not None:
        system.add_jump(mp.jumps.BoxArea(pressure=0.05, rate=300.0, step=0.02, name="box"))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", dt, kT=1.0, seed=1), threads=threads)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    return simulation


def operation_of(simulation):
    return simulation.context._schedule.jumping.operations[0]


def kept(simulation):
    arrays = operation_of(simulation).arrays()
    return {name: arrays[name].copy() for name in ("built", "measured", "listed")}


def ages(simulation, steps):
    """How often links have been measured, and pairs listed, in so many steps."""
    before, times = kept(simulation), {"measured": 0, "built": 0}
    for _ in range(steps):
        simulation.step(1)
        now = kept(simulation)
        for name in times:
            times[name] += not np.array_equal(now[name], before[name])
        before = now
    return times["measured"], times["built"]


def same(one, other):
    a, b = (s.context.get_state(positions=True, velocities=True) for s in (one, other))
    assert np.array_equal(a.positions, b.positions)
    assert np.array_equal(a.jumps["LinkBinding"]["links"], b.jumps["LinkBinding"]["links"])
    assert a.counts == b.counts
    for name, array in kept(one).items():
        assert np.array_equal(array, kept(other)[name]), name


# When bounds are taken -----------------------------------------------------------------------------------------------


def test_links_are_measured_once_in_many_steps_and_pairs_listed_more_seldom():
    simulation = network()
    simulation.step(200)
    measured, listed = ages(simulation, 200)
    assert simulation.system["LinkBinding"].counts.accepted > 50
    assert 0 < listed <= measured / 2 < 50


def test_many_attempts_for_each_link_are_replaced_by_measuring_in_each_letter():
    """Rates of 3 per step: with bounds many times as large nearly all attempts would be refused."""
    simulation = network(n=16, off_rate=300.0, on_rate=300.0, load_sharing=1.0)
    simulation.step(50)
    assert kept(simulation)["listed"].tolist() == [1, 1]
    assert ages(simulation, 20)[0] == 20
    assert simulation.system["LinkBinding"].counts.accepted > 1000
    slow = network()
    slow.step(50)
    assert kept(slow)["listed"].tolist() == [1, 0]


def test_forces_that_hold_no_links_are_not_computed_again_when_links_change():
    """A force before the links is asked once a step, though links bind and let go in each letter; to the bit as if all
    forces were computed anew."""
    calls = []

    def well(x):
        calls.append(len(x))
        return 0.025 * (x**2).sum(), -0.05 * x

    def made():
        topology = mp.Topology()
        beads = topology.add_beads(np.random.default_rng(2).normal(0.0, 3.0, (40, 3)), mass=1.0, friction=1.0)
        system = system_with(topology, mp.forces.PythonForce(well))
        links = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=1.5))
        system.add_force(mp.forces.HarmonicTrap(beads, 0.01, [1.0, 0.0, 0.0]))
        system.add_jump(mp.jumps.LinkBinding(links, mp.Sites.beads(beads), off_rate=100.0, on_rate=100.0, partners=2))
        simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.01, kT=1.0, seed=1), threads=1)
        simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
        return simulation

    one, other = made(), made()
    one.step(5)
    calls.clear()
    accepted = one.system["LinkBinding"].counts.accepted
    for _ in range(10):
        one.step(5)
    assert one.system["LinkBinding"].counts.accepted > accepted + 100
    # And once more for each call of `step`, at most.
    assert 50 <= len(calls) <= 60
    for _ in range(55):
        for forces in other.context._schedule.force_sums.values():
            forces.take(forces.forces.operations)
        other.step(1)
    same(one, other)
    states = [s.context.get_state(energy=True, velocities=True) for s in (one, other)]
    assert states[0].potential_energy == states[1].potential_energy
    assert (states[0].velocities == states[1].velocities).all()


# That bounds hold ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("kind", ["beads", "arms"])
def test_no_rate_is_larger_than_its_bound(rates, kind):
    """Otherwise a letter is a fault; tens of thousands of attempts, over many lives of the lists."""
    simulation = network(kind=kind, off_rate=20.0, on_rate=100.0, **RATES[rates])
    simulation.step(400)
    assert simulation.system["LinkBinding"].counts.accepted > 500
    assert simulation.system["LinkBinding"].counts.tried > 4000


@pytest.mark.parametrize("bound", [True, False])
def test_a_bound_that_is_broken_is_a_fault(bound):
    """Places are written without a word to the kernel, so that it finds nothing to measure again.

    Links are 2 nm longer than when they were measured, for a rate of 3.7 /s where the bound is 1.4 /s; pairs come
    from 14.75 to 9.5 nm, where 0.9 of their attempts bind, with a bound of 0.3.
    """
    start, speed = (10.0, 2.0) if bound else (20.0, -5.25)
    rates = {"off_rate": 0.00125, "on_rate": 1e-12, "rates": mp.jumps.Bell(0.5)}
    if not bound:
        rates = {"off_rate": 1e-12, "on_rate": 100.0, "load_sharing": 0.0}
    apart = 1000.0 * np.arange(60)[:, None] * [0.0, 1.0, 0.0]
    topology = mp.Topology()
    beads = topology.add_beads(apart + [start, 0.0, 0.0], mass=1e12, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=10.0))
    pairs = np.repeat(np.arange(60), 2).reshape(-1, 2) if bound else ()
    system.add_jump(mp.jumps.LinkBinding(links, mp.Sites.beads(beads), mp.Sites.anchors(apart), bound=pairs, **rates))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=1.0, seed=2), threads=1)
    simulation.context.set_velocities(np.tile([speed, 0.0, 0.0], (60, 1)))
    simulation.step(1)
    operation = operation_of(simulation)
    assert (operation.n_bound > 0) == bound
    # The next letter is at the same places, and does not look; the one after it is where they are then.
    operation.arrays()["measured"][:60, 0] += speed
    refuses(mp.SimulationError, "a walk over what it has listed", simulation.step, 1)


# That their age does not matter --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rates", ["balanced", "slip", "exact"])
@pytest.mark.parametrize("kind", ["beads", "arms"])
def test_a_restart_amid_the_life_of_the_lists_gives_the_same_bits(rates, kind, tmp_path):
    numbers = {"n": 16, "off_rate": 300.0, "on_rate": 300.0} if rates == "exact" else {"off_rate": 5.0} | RATES[rates]
    simulation = network(kind=kind, **numbers)
    simulation.step(60)
    ever = [set(), set()]
    for k in range(12):
        simulation.step(3)
        simulation.save_checkpoint(tmp_path / f"{k}")
        now, x = kept(simulation), simulation.context.get_state(positions=True).positions
        if kind == "beads":
            ever[0].add(np.array_equal(now["measured"], x))
            ever[1].add(np.array_equal(now["built"], now["measured"]))
        other = mp.Simulation.resume(tmp_path / f"{k}", threads=2)
        straight = network(kind=kind, **numbers)
        straight.load_checkpoint(tmp_path / f"{k}")
        for one in (other, straight):
            one.step(7)
        ahead = mp.Simulation.resume(tmp_path / f"{k}", threads=1)
        for _ in range(7):
            ahead.step(1)
        same(other, straight)
        same(other, ahead)
    end = simulation.current_step
    last = mp.Simulation.resume(tmp_path / "0")
    last.step(end - last.current_step)
    same(simulation, last)
    if kind == "beads":
        # Lists of both kinds were at some time older than the checkpoint.
        assert False in ever[1]
        assert (False in ever[0]) == (rates != "exact")


def test_a_restart_in_a_box_that_changes_gives_the_same_bits(tmp_path):
    """In a box of other lengths pairs and bounds are those of the places of then, in the box of now."""
    simulation = network(box=(14.0, 14.0, 14.0), off_rate=5.0)
    simulation.step(40)
    for k in range(8):
        simulation.step(3)
        simulation.save_checkpoint(tmp_path / f"{k}")
    for k in range(8):
        other = mp.Simulation.resume(tmp_path / f"{k}", threads=2)
        other.step(simulation.current_step - other.current_step)
        same(simulation, other)
    counts = simulation.context.get_state().counts
    assert counts["box"].accepted > 20
    assert counts["LinkBinding"].accepted > 20


def test_an_edit_amid_the_life_of_the_lists_keeps_the_bits():
    simulations = [network(off_rate=5.0) for _ in range(2)]
    for simulation in simulations:
        simulation.step(63)
    _, edited = simulations
    with edited.topology.edit():
        edited.topology.add_beads([[900.0, 0.0, 0.0]], mass=1.0, friction=1.0, name="more")
    for simulation in simulations:
        simulation.step(40)
    one, other = (s.context.get_state(positions=True) for s in simulations)
    assert np.array_equal(one.positions, other.positions[:60])
    assert np.array_equal(one.jumps["LinkBinding"]["links"], other.jumps["LinkBinding"]["links"])
    assert one.counts == other.counts


# Times to bind and to let go, between places that differ from those of the lists --------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rates", ["balanced", "slip", "catch"])
def test_waiting_times_are_exponential_wherever_sites_were_when_they_were_measured(rates):
    """Pairs that are listed at one distance and then moved to another, by less than makes them listed again.

    False alarms once in 1e6; an error of 20 % of a rate is seen.
    """
    copies, at, to, k_off, k_on = 40_000, 1.9, 2.0, 1.0, 1.5
    given = RATES[rates].get("rates")
    topology = mp.Topology()
    apart = np.zeros((copies, 3))
    apart[:, 2] = 100.0 * np.arange(copies)
    beads = topology.add_beads(apart + [at, 0.0, 0.0], mass=1e12, friction=1e-6)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=2.0, length=1.5))
    bound = np.repeat(np.arange(copies // 2), 2).reshape(-1, 2)
    system.add_jump(mp.jumps.LinkBinding(links, mp.Sites.beads(beads), mp.Sites.anchors(apart), off_rate=k_off,
                                         on_rate=k_on, bound=bound, rates=given, name="bind"))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 1e-6, kT=1.0, seed=4), threads=1)
    context.set_velocities(np.tile([(to - at) / 1e-6, 0.0, 0.0], (copies, 1)))
    operation = context._schedule.jumping.operations[0]
    context.step(1)
    listed = operation.arrays()["measured"][:copies, 0].copy()
    context.set_velocities(np.zeros((copies, 3)))
    context.integrator.set(timestep=0.02)
    context.step(20)
    state = context.get_state(positions=True)
    np.testing.assert_allclose(state.positions[:, 0], to, rtol=1e-9)
    assert np.array_equal(operation.arrays()["measured"][:copies, 0], listed)
    np.testing.assert_allclose(listed, at, rtol=1e-9)
    u, f = 0.5 * 2.0 * (to - 1.5) ** 2, 2.0 * (to - 1.5)
    on, off = k_on * np.exp(-0.5 * u), k_off * np.exp(0.5 * u)
    if given is not None:
        w = given.catch_share
        on, off = k_on * np.exp(-u), k_off * ((1 - w) * np.exp(f / given.slip) + w * np.exp(-f / given.catch))
    both = on + off
    rest = np.exp(-0.4 * both)
    expected = np.array([on / both + off / both * rest, on / both * (1.0 - rest)])
    now = np.zeros(copies)
    now[state.jumps["bind"]["links"][:, 0]] = 1.0
    for half, law, rate in zip(np.split(now, 2), expected, (off, on), strict=True):
        check_mean(f"bound of those of {law:.3f}", half, law, sees=0.2 * rate * 0.4 * rest)


# Without sites -------------------------------------------------------------------------------------------------------


def sites_that_go():
    """One jump within one group, and one between two of which one goes."""
    rng = np.random.default_rng(1)
    topology = mp.Topology()
    beads = topology.add_beads(rng.normal(size=(6, 3)), mass=1.0, friction=1.0, name="beads")
    others = topology.add_beads(rng.normal(size=(4, 3)), mass=1.0, friction=1.0, name="others")
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    system.add_force(mp.forces.HarmonicTrap([beads, others], 1.0, [0.0, 0.0, 0.0]))
    system.add_jump(mp.jumps.LinkBinding(links, beads, off_rate=1.0, on_rate=5.0, name="among"))
    system.add_jump(mp.jumps.LinkBinding(links, beads, others, off_rate=1.0, on_rate=5.0, name="between"))
    return mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=1.0, seed=1), threads=1)


def test_a_jump_whose_last_sites_go_does_nothing_until_it_is_given_others(tmp_path):
    simulation = sites_that_go()
    topology, system = simulation.topology, simulation.system
    simulation.step(100)
    counts = simulation.context.get_state().counts
    assert all(c.accepted > 0 for c in counts.values())
    beads, others = topology["beads"], topology["others"]
    with pytest.warns(mp.SitesWarning, match="a has no sites, so that nothing binds"), topology.edit():
        beads.remove(beads.beads, terms="remove")
    simulation.step(20)
    state = simulation.context.get_state(positions=True, velocities=True, energy=True)
    assert state.counts == counts
    assert state.energies["Links"] == 0.0
    assert all(len(shown["links"]) == 0 for shown in state.jumps.values())
    # It is written and read, and goes on with the same bits.
    simulation.save_checkpoint(tmp_path / "c")
    with pytest.warns(mp.SitesWarning, match="nothing binds"):
        other = mp.Simulation.resume(tmp_path / "c")
    simulation.context.set_state(state)
    for one in (simulation, other):
        one.step(20)
    x, y = (s.context.get_state(positions=True).positions for s in (simulation, other))
    assert np.array_equal(x, y, equal_nan=True)
    # Sites come with a jump that is made again.
    with topology.edit():
        beads.add([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        for name in ("among", "between"):
            system.remove_jump(system[name])
        system.add_jump(mp.jumps.LinkBinding(system["Links"], beads, others, off_rate=1.0, on_rate=5.0, name="again"))
    simulation.step(100)
    assert system["again"].counts.accepted > 0


def test_a_jump_that_is_made_without_sites_is_remarked_on():
    topology = mp.Topology()
    beads = topology.add_beads(np.zeros((2, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    none = mp.Sites.beads(beads)[:0]
    system.add_jump(mp.jumps.LinkBinding(links, beads, none, off_rate=1.0, on_rate=5.0, name="bind"))
    with pytest.warns(mp.SitesWarning, match="bind: b has no sites, so that nothing binds"):
        context = mp.Context(system, mp.BrownianIntegrator(0.01, kT=1.0, seed=1), threads=1)
    context.step(10)
    assert context.get_state().counts["bind"] == (0, 0)
