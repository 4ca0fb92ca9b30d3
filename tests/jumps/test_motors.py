"""Motors: rates of steps in balance with stall force and link, velocities, traffic, ends, bundles, and laws by name."""

import itertools
import math

import numpy as np
import pytest
from builders import averaged_tensions, refuses, system_with

import medyanpy as mp
from medyanpy.files.documents import deserialize, serialize
from medyanpy.testing import JumpCase, check_chi_square, check_jump, check_mean

KT = 4.141947
STEP = 8.0
#: Of beads that stay where they are.
STILL = 1e30


def tracks(topology, copies, places, apart=1000.0, spacing=STEP, z=0.0):
    """Straight filaments along x that do not move, (handle, lattice)."""
    y = apart * np.arange(copies)
    nodes = np.zeros((copies, 2, 3))
    nodes[:, 1, 0], nodes[:, :, 1], nodes[:, :, 2] = (places - 1) * spacing, y[:, None], z
    handle = topology.add_filaments(list(nodes), STILL, STILL, constrained=False)
    return handle, handle.lattice(spacing)


def pulled(stiffness, theta, force, copies, places=40, start=4, velocity=STEP, stall=2.0, seed=1, **options):
    """Beads on springs of no length, each with a head on a track of its own, pulled back by a force.

    Their time is the step of the integrator: positions of BAOAB have the right width for any, and forget fast.
    """
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, places)
    x = np.zeros((copies, 3))
    x[:, 0], x[:, 1] = start * STEP - force / stiffness, 1000.0 * np.arange(copies)
    mass = stiffness / 0.49
    beads = topology.add_beads(x, mass=mass, friction=2.0 * 0.7 * mass)
    system = system_with(topology, mp.forces.UniformField(beads, [-force, 0.0, 0.0], name="load"))
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=0.0))
    bound = np.column_stack([start + places * np.arange(copies), np.arange(copies)])
    numbers = {"off_rate": 1e-12, "on_rate": 0.0, "load_sharing": theta, "bound": bound, "reach": 200.0}
    system.add_jump(mp.jumps.Motors(
        links, lattice, mp.Sites.beads(beads), step=STEP, unloaded_velocity=velocity, stall_force=stall, name="motors",
        **numbers | options))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=KT, seed=seed), threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    simulation.step(20)
    return simulation, lattice


def net_steps(simulation, lattice, before=None):
    """Steps of each head, forth less back."""
    rows = simulation.context.get_state(positions=True).jumps["motors"]["links"]
    now = lattice.numbers[rows[np.argsort(rows[:, 1]), 0]]
    return now if before is None else now - before


def closed_form(force, theta, stall):
    """The velocity over that without a load."""
    u, e = force * STEP / KT, stall * STEP / KT
    return (math.exp(-theta * u) - math.exp(-e + (1.0 - theta) * u)) / (1.0 - math.exp(-e))


def walk(stiffness, theta, force, steps_wanted, copies=500, rate=None, stall=2.0, **options):
    """Displacements of all heads after a time in which so many steps go forth, and the time times v_0/d.

    Rates are such that beads move fast between two steps, also where these are most frequent: with springs pushed
    together by θd, where they are exp(θ²κd²/2kT) times as high; of steps back by (1 - θ)d the other way.
    """
    if rate is None:
        x = 0.5 * stiffness * STEP**2 / KT
        rate = 0.004 * math.exp(-max(theta**2 * x, (1.0 - theta) ** 2 * x - stall * STEP / KT, 0.0))
    ahead = rate * math.exp(-theta * force * STEP / KT)
    steps = round(steps_wanted / ahead)
    simulation, lattice = pulled(stiffness, theta, force, copies, velocity=rate * STEP, stall=stall, **options)
    before = net_steps(simulation, lattice)
    simulation.step(steps)
    return net_steps(simulation, lattice, before), rate * steps


# Velocities ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("theta", "steps", "rate"), [(0.0, 12.0, 0.02), (0.2, 12.0, 0.02), (1.0, 6.0, 0.05)])
def test_a_load_of_the_stall_force_stalls_any_head_on_any_spring(stiffness, theta, steps, rate):
    """Of n steps forth a stall force that is off by 5 % leaves 1 - exp(-0.05 ε/kT) = 0.18, which this sees."""
    moved, _ = walk(stiffness, theta, 2.0, steps, start=20, copies=800, rate=rate)
    check_mean("at stall", moved, 0.0, sees=steps * (1.0 - math.exp(-0.05 * 2.0 * STEP / KT)))


@pytest.mark.slow
@pytest.mark.parametrize("pulled_by", [-8.0, -4.0, -2.0])
def test_the_rate_of_steps_on_a_stiff_spring_has_the_unloaded_velocity_as_its_mean(pulled_by):
    """κ = 1 pN/nm and θ = 1: most steps are from lengths that a run of beads hardly sees. So rates are counted at some
    pulls, of beads that stay, and their mean over the Gaussian of all pulls is that of the formula."""
    kappa, copies, rate, stall = 1.0, 12_000, 0.5, 6.0
    y, w = np.polynomial.legendre.leggauss(400)
    y, forth = 30.0 * y, lambda y: rate / (1.0 - math.exp(-stall * STEP / KT)) * np.exp(
        -kappa * (y * STEP + 0.5 * STEP**2) / KT)  # fmt: skip
    weight = w * np.exp(-0.5 * kappa * y**2 / KT)
    ratio = weight @ forth(y) / weight.sum() * (1.0 - math.exp(-stall * STEP / KT)) / rate
    assert ratio == pytest.approx(1.0, rel=1e-9)
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, 3)
    x = np.zeros((copies, 3))
    # A pull forwards is an extension < 0.
    x[:, 0], x[:, 1] = STEP - pulled_by, 1000.0 * np.arange(copies)
    beads = topology.add_beads(x, 1.0, STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=kappa, length=0.0))
    bound = np.column_stack([1 + 3 * np.arange(copies), np.arange(copies)])
    system.add_jump(mp.jumps.Motors(
        links, lattice, mp.Sites.beads(beads), step=STEP, unloaded_velocity=rate * STEP, stall_force=stall,
        load_sharing=1.0, off_rate=1e-12, on_rate=0.0, reach=200.0, bound=bound, name="motors"))  # fmt: skip
    time = 0.7 / forth(pulled_by)
    simulation = mp.Simulation(system, mp.BrownianIntegrator(time, kT=KT, seed=2), threads=1)
    before = net_steps(simulation, lattice)
    simulation.step(1)
    moved = net_steps(simulation, lattice, before)
    assert set(moved.tolist()) <= {-1, 0, 1}
    check_mean("steps", np.abs(moved).astype(float), 1.0 - math.exp(-0.7), sees=0.045)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:motors. load_sharing = 0:medyanpy.errors.UnitsWarning")
@pytest.mark.parametrize(("stiffness", "theta"), [
    (0.05, 0.0), (0.05, 0.3), (0.05, 0.5), (0.05, 1.0), (0.3, 0.0), (0.3, 0.3), (0.3, 0.5), (0.3, 1.0), (1.0, 0.0),
    (1.0, 0.3), (1.0, 0.5),
])  # fmt: skip
def test_the_unloaded_velocity_is_as_given(stiffness, theta):
    """The correction is 1.10, 1.79 and 6.9 at θ = ½: left out, velocities were 0.908, 0.560 and 0.145 of what was
    given."""
    moved, time = walk(stiffness, theta, 0.0, 8.0, stall=6.0)
    check_mean("without a load", moved / time, 1.0, sees=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("stiffness", "theta", "rate"), [(0.3, 0.3, 0.002), (0.05, 0.5, 0.01)])
@pytest.mark.parametrize("load", [0.25, 0.5, 0.75, 1.3])
def test_velocities_under_a_load_have_their_closed_form(load, stiffness, theta, rate):
    """Those without a load and at stall are tested above."""
    stall, wanted = 2.0, 8.0 if load < 1.0 else 4.0
    # None lets go, also where soft springs hold half of 35 kT.
    moved, time = walk(stiffness, theta, load * stall, wanted, copies=800, start=4 if load < 1.0 else 34, rate=rate,
                       off_rate=1e-30)  # fmt: skip
    v = closed_form(load * stall, theta, stall)
    check_mean(f"at {load} of stall", moved / time, v, sees=max(0.2 * abs(v), 0.06))


@pytest.mark.slow
def test_a_net_step_uses_up_one_atp_and_gives_the_load_its_share():
    """Driving energies are 20 kT for each step forth and -20 kT for each back; heat is the rest of them and of ΔU."""
    force, rate = 1.0, 0.02
    simulation, lattice = pulled(0.3, 0.3, force, 400, velocity=rate * STEP)
    simulation.report_work = True
    before = net_steps(simulation, lattice)
    start = simulation.context.get_state(positions=True, energy=True)
    simulation.step(600)
    end = simulation.context.get_state(positions=True, energy=True)
    net = net_steps(simulation, lattice, before).sum()
    assert net > 1000
    used = KT * (end.entropy_production - start.entropy_production)
    assert used == pytest.approx(20.0 * KT * net, rel=1e-9)
    parts = [end.heat, end.shadow_work, end.protocol_work, end.chemical_work]
    change = end.total_energy - start.total_energy
    assert abs(change - sum(parts)) <= 1e-12 * max(map(abs, [*parts, start.total_energy, end.total_energy]))
    # What goes to the water: what is used up less what goes into links, and what leaves the links and beads again.
    heat = (used - end.chemical_work) - end.heat
    raised = end.energies["load"] - start.energies["load"]
    assert heat == pytest.approx(used - change + end.shadow_work, rel=1e-9)
    assert raised == pytest.approx(force * STEP * net, rel=0.05)
    assert heat / net == pytest.approx(20.0 * KT - force * STEP, rel=0.02)


@pytest.mark.slow
def test_two_heads_on_arms_of_a_body_are_stalled_by_twice_the_force_of_one():
    """A minifilament as a rigid body, which also turns: each head is on an arm of its own. Of the steps forth of each,
    some 9, a stall force that is off by 5 % would leave 1.7."""
    copies, places, stall, stiffness, rate = 300, 60, 2.0, 0.3, 0.02
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, places)
    x = np.zeros((copies, 3))
    x[:, 0], x[:, 1], x[:, 2] = 30 * STEP - stall / stiffness, 1000.0 * np.arange(copies), 6.0
    mass = 2.0 * stiffness / 0.49
    bodies = topology.add_rigid_bodies(x, np.tile([1.0, 0, 0, 0], (copies, 1)), mass, [80.0 * mass] * 3,
                                       (1.4 * mass, 112.0 * mass))  # fmt: skip
    system = system_with(topology, mp.forces.UniformField(bodies, [-2.0 * stall, 0.0, 0.0]))
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=0.0))
    first = 30 + places * np.arange(copies)
    bound = np.column_stack([np.column_stack([first - 1, first + 2]).ravel(), np.arange(2 * copies)])
    system.add_jump(mp.jumps.Motors(
        links, lattice, bodies.sites([[-12.0, 0.0, -4.0], [12.0, 0.0, -4.0]]), step=STEP, stall_force=stall,
        unloaded_velocity=rate * STEP, off_rate=1e-12, on_rate=0.0, reach=200.0, bound=bound,
        name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1.0, kT=KT, seed=1), threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=2)
    simulation.step(30)
    before, used = net_steps(simulation, lattice), simulation.context.get_state().entropy_production
    simulation.step(1000)
    moved = net_steps(simulation, lattice, before)
    check_mean("at stall", moved.reshape(copies, 2).mean(axis=1), 0.0, sees=1.7)
    used = simulation.context.get_state().entropy_production - used
    assert used == pytest.approx(20.0 * moved.sum(), rel=1e-9, abs=1e-6)


# States that can be counted -----------------------------------------------------------------------------------------


def at_rest(topology, lattice_a, lattice_b, bound, looks, theta=0.3, stall=0.0648, step=STEP, length=10.0, seed=1):
    """What molecules hold that never let go, at times so far apart that they have forgotten: (looks, k, 2) rows."""
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=0.05, length=length))
    pool = system.add_pool(mp.Pool(1e9, {"M": 0}))
    system.add_jump(mp.jumps.Motors(
        links, lattice_a, lattice_b, pool=pool["M"], dissociation_constants=1.0, off_rate=1e-12, step=step,
        unloaded_velocity=8.0, stall_force=stall, load_sharing=theta, bound=bound, name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.BrownianIntegrator(30.0, kT=KT, seed=seed), threads=1)
    found = []
    for _ in range(looks):
        simulation.step(1)
        found.append(simulation.context.get_state(positions=True).jumps["motors"]["links"])
    return np.array(found)


@pytest.mark.slow
def test_heads_that_walk_do_not_pass_each_other():
    """Two heads on five places, whose ends they do not leave: every state has the weight exp(ε(s_1 + s_2)/kT)."""
    topology, n = mp.Topology(), 5
    _, lattice = tracks(topology, 1, n)
    e = 0.5
    rows = at_rest(topology, lattice, None, [[0, -1], [1, -1]], 8000, stall=e * KT / STEP)[:, :, 0]
    pairs = list(itertools.combinations(range(n), 2))
    weights = np.array([math.exp(e * sum(pair)) for pair in pairs])
    counts = np.array([np.count_nonzero((np.sort(rows, axis=1) == pair).all(axis=1)) for pair in pairs])
    assert counts.sum() == 8000
    check_chi_square("traffic", counts, weights / weights.sum() * 8000, sees=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("theta", [0.0, 0.3, 1.0])
def test_two_heads_of_a_molecule_that_walk_on_two_tracks_weigh_their_link(theta):
    topology, n, e, length = mp.Topology(), 4, 0.4, 10.0
    _, one = tracks(topology, 1, n)
    _, other = tracks(topology, 1, n, z=12.0)
    rows = at_rest(topology, one, other, [[0, 0]], 8000, theta=theta, stall=e * KT / STEP, length=length)[:, 0]
    i, j = np.divmod(np.arange(n * n), n)
    r = np.hypot(STEP * (i - j), 12.0)
    weights = np.exp(e * (i + j) - 0.5 * 0.05 * (r - length) ** 2 / KT)
    check_chi_square(f"θ = {theta}", np.bincount(n * rows[:, 0] + rows[:, 1], minlength=n * n),
                     weights / weights.sum() * 8000, sees=0.13)  # fmt: skip


def carried_case(theta=0.3, share=0.4, rates=None):
    """A head on a bead that stays, beside a track of three places: free, or at one of these."""
    stiffness, length, kT, stall, off, on, v = 0.1, 9.0, 1.0, 0.15, 1.0, 3.0, 16.0
    bead = np.array([6.0, 0.0, 9.0])
    x = STEP * np.arange(3)[:, None] * [1.0, 0.0, 0.0]
    u = 0.5 * stiffness * (np.linalg.norm(x - bead, axis=1) - length) ** 2
    e = stall * STEP
    k = v / STEP / (1.0 - math.exp(-e)) * math.exp(0.5 * theta * (1.0 - theta) * stiffness * STEP**2)
    q = np.zeros((4, 4))
    for i in range(3):
        q[0, 1 + i], q[1 + i, 0] = on * math.exp(-(1.0 - share) * u[i]), off * math.exp(share * u[i])
        if i < 2:
            q[1 + i, 2 + i] = k * math.exp(-theta * (u[i + 1] - u[i]))
            q[2 + i, 1 + i] = k * math.exp(-e - (1.0 - theta) * (u[i] - u[i + 1]))

    def make(copies, seed, threads, timestep):
        topology = mp.Topology()
        _, lattice = tracks(topology, copies, 3)
        beads = topology.add_beads(bead + 1000.0 * np.arange(copies)[:, None] * [0.0, 1.0, 0.0], 1.0, friction=STILL)
        system = mp.System(topology)
        links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=length))
        system.add_jump(mp.jumps.Motors(
            links, lattice, mp.Sites.beads(beads), step=STEP, unloaded_velocity=v, stall_force=stall, off_rate=off,
            on_rate=on, load_sharing=theta, unbinding_share=share, name="motors"))  # fmt: skip
        make.copies = copies
        return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)

    def states(state):
        rows = state.jumps["motors"]["links"]
        found = np.zeros(make.copies, int)
        found[rows[:, 1]] = 1 + rows[:, 0] % 3
        return found

    return JumpCase("Motors", make, states, q, np.append(0.0, u), driven=True)


def test_velocities_that_are_set_are_followed_where_nothing_moves():
    """Bounds of the rates of links are computed again: with those of before, a rate above them is a fault."""
    simulation = carried_case().make(300, 1, 1, 1e-3)
    simulation.step(1000)
    few = simulation.context.get_state().counts["motors"].accepted
    assert len(simulation.context.get_state(positions=True).jumps["motors"]["links"]) > 50
    simulation.system["motors"].set(unloaded_velocity=16.0 * 300.0)
    simulation.step(1000)
    assert simulation.context.get_state().counts["motors"].accepted > 20 * few


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "share"), [(0.3, 0.4), (0.0, 0.0), (1.0, 1.0)])
def test_heads_on_beads_keep_the_contract(theta, share):
    check_jump(carried_case(theta, share), copies=5_000, sees=0.175)


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [False, True])
def test_heads_leave_the_last_place_or_stay(leaves):
    """A head alone on three places, at the rates of its steps; beyond the last place it goes to the pool."""
    e, v, off = 0.6, 8.0, 0.3
    k = v / STEP / (1.0 - math.exp(-e))
    q = np.zeros((4, 4))
    for i in range(3):
        q[i, 3] = off
        if i < 2:
            q[i, i + 1], q[i + 1, i] = k, k * math.exp(-e)
    q[2, 3] += k if leaves else 0.0

    def make(copies, seed, threads, timestep):
        topology = mp.Topology()
        _, lattice = tracks(topology, copies, 3)
        system = mp.System(topology)
        links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
        pool = system.add_pool(mp.Pool(1e9, {"M": 0}))
        bound = np.column_stack([3 * np.arange(copies), np.full(copies, -1)])
        system.add_jump(mp.jumps.Motors(
            links, lattice, pool=pool["M"], dissociation_constants=1e30, off_rate=off, step=STEP, unloaded_velocity=v,
            stall_force=e / STEP, leaves_end=leaves, bound=bound, name="motors"))  # fmt: skip
        make.copies = copies
        return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=1.0, seed=seed), threads=threads)

    def states(state):
        found = np.full(make.copies, 3)
        rows = state.jumps["motors"]["links"][:, 0]
        found[rows // 3] = rows % 3
        assert state.pools["M"] == np.count_nonzero(found == 3)
        return found

    case = JumpCase("a head alone", make, states, q, np.zeros(4), driven=True)
    for time, steps in ((0.8, 1), (2.0, 5)):
        simulation = make(8000, 7, 1, time / steps)
        simulation.step(steps)
        counts = np.bincount(states(simulation.context.get_state(positions=True)), minlength=4)
        check_chi_square(f"after {time:g} s", counts, 8000 * case.after(time), sees=0.12)


@pytest.mark.slow
def test_the_rate_at_a_relaxed_length_says_how_molecules_take_hold():
    """on_rate = k_off/(K V_0): of one molecule between a place and another, with the weights of all that it holds."""
    stiffness, length, on, off, space = 0.3, 12.0, 2.0, 1.5, 3e4
    topology = mp.Topology()
    (_, one), (_, other) = tracks(topology, 1, 2), tracks(topology, 1, 2, z=length + 2.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=stiffness, length=length))
    pool = system.add_pool(mp.Pool(space, {"M": 1}))
    jump = system.add_jump(mp.jumps.Motors(
        links, one[:1], other[:1], pool=pool["M"], on_rate=on, off_rate=off, step=STEP, unloaded_velocity=1.0,
        stall_force=1.0, name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.BrownianIntegrator(4.0, kT=KT, seed=5), threads=1)
    found = np.zeros(4)
    for _ in range(6000):
        simulation.step(1)
        rows = simulation.context.get_state(positions=True).jumps["motors"]["links"]
        found[0 if not len(rows) else 3 if rows.min() >= 0 else 1 if rows[0, 0] >= 0 else 2] += 1
    alone = on / off * jump.volume(KT) / space
    both = alone * on / off * math.exp(-0.5 * stiffness * 4.0 / KT)
    w = np.array([1.0, alone, alone, both])
    check_chi_square("one molecule", found, w / w.sum() * 6000, sees=0.12)


# Bundles ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rate", "binomial", "time"), [
    (15, 0.69709, 0.547, 20.0), (22, 0.41693, 0.314, 30.0), (30, 0.22117, 0.165, 50.0),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["one head", "binomial", "lumped"])
def test_bundles_let_go_after_the_mean_time_of_heads_one_by_one(n, rate, binomial, time, kind):
    """From one head of N that holds to none: the lumped law has this mean by construction. From as many as hold on
    average, of the binomial law without its 0, it is longer: the control."""
    lumped = kind == "lumped"
    rate = binomial if kind == "binomial" else rate
    copies = 5000
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, 2)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    pool = system.add_pool(mp.Pool(1e9, {"M": 0}))
    bound = np.column_stack([2 * np.arange(copies), np.full(copies, -1)])
    system.add_jump(mp.jumps.Motors(
        links, lattice, pool=pool["M"], dissociation_constants=1e30, off_rate=1.7, on_rate=0.2, step=STEP, heads=n,
        unloaded_velocity=1e-9, stall_force=1.0, bound=bound, rates=mp.jumps.MedyanMotor() if lumped else None,
        name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.BrownianIntegrator(time / 10, kT=KT, seed=3), threads=1)
    heard = simulation.context.events()
    if kind == "binomial":
        rng = np.random.default_rng(8)
        held = rng.binomial(n, 0.2 / 1.9, 20 * copies)
        simulation.context._schedule.jumping.operations[0].arrays()["holding"][::2] = held[held > 0][:copies]
    simulation.step(10)
    # In the order of their places: times are independent.
    gone = np.array([time for _, time in sorted((e.a, e.time) for e in heard.heard() if e.kind == "detach")])
    assert len(gone) > 0.999 * copies
    # Those left have waited so long already, and wait on as long as on average.
    gone = np.append(gone, np.full(copies - len(gone), time + 1.0 / rate))
    check_mean(f"{n} heads", gone * rate, 1.0, sees=0.15)


@pytest.mark.slow
def test_a_bundle_holds_by_as_many_heads_as_their_rates_say():
    """At rest, b of N with the weights C(N, b) (k_on/k_off)^b, where the last one hardly lets go: P(b), b >= 1."""
    n, copies, on, off = 4, 5000, 1.0, 2.0
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, 2)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=1.0))
    pool = system.add_pool(mp.Pool(1.0, concentrations={"M": 1.0}))
    system.add_jump(mp.jumps.Motors(
        links, lattice, pool=pool["M"], dissociation_constants=(0.5, 1e9), off_rate=off, on_rate=on, step=STEP, heads=n,
        unloaded_velocity=1e-9, stall_force=1.0, name="motors"))  # fmt: skip
    simulation = mp.Simulation(system, mp.BrownianIntegrator(5.0, kT=KT, seed=3), threads=1)
    simulation.step(3)
    shown = simulation.context.get_state(positions=True).jumps["motors"]
    counts = np.bincount(shown["heads"].max(axis=1), minlength=n + 1)[1:]
    # From the pool one head comes at C/K k_off, and goes at k_off: the weight of b heads follows from that of one.
    w = np.array([1.0] + [2.0 * math.comb(n, b) / n * (on / off) ** (b - 1) for b in range(1, n + 1)])
    counts = np.append(2 * copies - counts.sum(), counts)
    check_chi_square("a bundle", counts, w / w.sum() * 2 * copies, sees=0.12)


def bundle_on_a_spring(copies, n, stretch, on, off, share, seed=1, threads=1, timestep=0.02, kT=1.0):
    """Bundles on beads that stay, each with one place, on springs of 0.5 pN/nm with so much stretch."""
    topology = mp.Topology()
    _, lattice = tracks(topology, copies, 2)
    x = np.zeros((copies, 3))
    x[:, 1], x[:, 2] = 1000.0 * np.arange(copies), 9.0 + stretch
    beads = topology.add_beads(x, 1.0, STILL)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=9.0))
    bound = np.column_stack([np.arange(copies)] * 2)
    system.add_jump(mp.jumps.Motors(
        links, lattice[::2], mp.Sites.beads(beads), step=STEP, unloaded_velocity=1e-9, stall_force=0.1, heads=n,
        on_rate=on, off_rate=off, unbinding_share=share, bound=bound, reach=200.0, name="motors"))  # fmt: skip
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)


@pytest.mark.slow
def test_a_stretched_bundle_lets_go_by_its_last_head():
    """By none to two heads; only the last one, and the first, feel the link."""
    on, off, share, u = 1.5, 1.0, 0.6, 0.25 * 2.0**2

    def make(*numbers):
        make.copies = numbers[0]
        return bundle_on_a_spring(numbers[0], 2, 2.0, on, off, share, *numbers[1:])

    def states(state):
        shown = state.jumps["motors"]
        found = np.zeros(make.copies, int)
        found[shown["links"][:, 0]] = shown["heads"][:, 0]
        return found

    q = np.zeros((3, 3))
    q[0, 1], q[1, 0] = 2.0 * on * math.exp(-(1.0 - share) * u), off * math.exp(share * u)
    q[1, 2], q[2, 1] = on, 2.0 * off
    check_jump(JumpCase("bundle", make, states, q, np.array([0.0, u, u]), start=1, driven=True), copies=8_000,
               sees=0.175)  # fmt: skip


def test_attempts_of_a_stretched_bundle_are_those_of_its_heads():
    """No attempt is made to let go of a bundle by several heads: at exp(λU/kT) = 7e7 these were more than a run took.
    """
    n, on, time = 20, 60.0, 2.0
    simulation = bundle_on_a_spring(1, n, 0.0, on, 1.0, 0.5)
    simulation.step(20)
    x = simulation.context.get_state(positions=True).positions.copy()
    x[-1, 2] += 12.0
    simulation.context.set_positions(x)
    before = simulation.context.get_state().counts["motors"].tried
    simulation.step(round(time / 0.02))
    state = simulation.context.get_state(positions=True)
    assert state.jumps["motors"]["heads"].tolist()[0][0] > 15
    # To hold on and to let go, of both sites at the rate of all heads; and pairs that no list leaves out.
    attempts = 3 * n * on * time
    assert state.counts["motors"].tried - before < attempts + 6.0 * math.sqrt(attempts)


# What motors do to filaments ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("step", "sign"), [(2.0, -1.0), (-2.0, 1.0)])
def test_motors_slide_antiparallel_filaments_past_each_other(step, sign):
    """Heads that walk to the last nodes push either filament the other way: with its first node ahead."""
    topology = mp.Topology()
    x = np.linspace(-20.0, 20.0, 5)
    nodes = [np.column_stack([way * x, np.full(5, y), np.full(5, 300.0 * c)])
             for c in range(12) for way, y in ((1.0, 0.0), (-1.0, 8.0))]  # fmt: skip
    actin = topology.add_filaments(nodes, 0.01, 1.0)
    system = mp.System(topology)
    # They stay side by side and slide along x.
    axis = [np.column_stack([0.0 * x, n[:, 1], n[:, 2]]) for n in nodes]
    system.add_force(mp.forces.HarmonicTrap(actin, (0.0, 2.0, 2.0), np.concatenate(axis)))
    links = system.add_force(mp.forces.Links([], [], stiffness=0.5, length=8.0))
    pool = system.add_pool(mp.Pool(1e6, {"M": 120}))
    system.add_jump(mp.jumps.Motors(
        links, actin.lattice(2.0), pool=pool["M"], dissociation_constants=1e-5, off_rate=0.5, step=step,
        unloaded_velocity=6.0, stall_force=4.0, load_sharing=0.2))  # fmt: skip
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(0.01, kT=KT, seed=6), threads=1)
    simulation.step(1500)
    middle = simulation.context.get_state(positions=True).positions.reshape(24, 5, 3).mean(axis=1)[:, 0]
    # Along the way from the first node to the last.
    moved = middle * np.tile([1.0, -1.0], 12)
    assert sign * moved.mean() > 5.0 * moved.std() / math.sqrt(24)
    assert abs(moved.mean()) > 4.0


# Laws by name -------------------------------------------------------------------------------------------------------

C, W = np.polynomial.legendre.leggauss(400)


def mean_over_force(velocity, force, stiffness):
    """The mean of a law over the forces of the moment, of the mean and the variance κkT."""
    f = force + 8.0 * math.sqrt(stiffness * KT) * C
    weight = W * np.exp(-0.5 * (f - force) ** 2 / (stiffness * KT))
    return weight @ velocity(f) / weight.sum()


def linear(f, stall=6.0):
    return np.clip(1.0 - f / stall, 0.0, 1.0)


def hill(f, stall=6.0, alpha=0.2):
    f = np.clip(f, 0.0, stall)
    return (stall - f) / (stall + f / alpha)


def test_means_of_named_laws():
    assert mean_over_force(linear, 6.0, 0.3) == pytest.approx(0.074, abs=5e-4)
    assert mean_over_force(hill, 3.0, 0.3) / hill(3.0) == pytest.approx(1.22, abs=0.01)
    for law in ("CytosimMotor", "MedyanMotor"):
        assert "fluctuate" in getattr(mp.jumps, law).__doc__


@pytest.mark.slow
@pytest.mark.parametrize(("name", "law", "force"), [
    ("CytosimMotor", linear, 6.0), ("CytosimMotor", linear, 1.0), ("MedyanMotor", hill, 3.0),
])  # fmt: skip
@pytest.mark.parametrize("stiffness", [0.05, 0.3])
def test_named_laws_walk_at_their_own_averages(name, law, force, stiffness):
    expected = mean_over_force(law, force, stiffness)
    rate = 0.004 / expected
    simulation, lattice = pulled(stiffness, 0.0, force, 1000, velocity=rate * STEP, stall=6.0,
                                 rates=getattr(mp.jumps, name)())  # fmt: skip
    before = net_steps(simulation, lattice)
    simulation.step(2000)
    moved = net_steps(simulation, lattice, before)
    assert moved.min() >= 0
    check_mean(f"{name} at {force} pN", moved / (2000 * rate), expected, sees=0.1 * expected)
    assert simulation.context.get_state().entropy_production == math.inf


def test_documents_hold_motors():
    changes = [{}, {"carried": True, "rates": mp.jumps.CytosimMotor(unbinding_force=3.0)},
               {"heads": 4, "on_rate": 0.2, "atp": 90.0, "rates": mp.jumps.MedyanMotor(alpha=0.3), "leaves_end": True}]
    for change in changes:
        system = system_of(**change)
        read, _ = deserialize(serialize(mp.Simulation(system, mp.BrownianIntegrator(1e-3, kT=KT))))
        (jump,), (again,) = system.jumps, read.jumps
        assert repr(again) == repr(jump)
        mine, theirs = jump._arguments_now(), again._arguments_now()
        for name in ("step", "unloaded_velocity", "heads", "atp", "leaves_end"):
            assert mine[name] == theirs[name]
        assert repr(mine["rates"]) == repr(theirs["rates"])


# Given wrongly ------------------------------------------------------------------------------------------------------


def system_of(carried=False, **change):
    """A system of motors with one number changed."""
    topology = mp.Topology()
    _, lattice = tracks(topology, 2, 5)
    beads = topology.add_beads([[0.0, 0.0, 9.0]], mass=1.0, friction=1.0)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=1.0, length=9.0))
    molecules = system.add_pool(mp.Pool(1e9, {"M": 3}))
    numbers = {"step": STEP, "unloaded_velocity": 10.0, "stall_force": 2.0, "off_rate": 1.0}
    if carried:
        numbers |= {"lattice_b": mp.Sites.beads(beads), "on_rate": 1.0}
    else:
        numbers |= {"pool": molecules["M"], "dissociation_constants": 1.0}
    numbers |= {"lattice_a": lattice} | change
    numbers = {key: value for key, value in numbers.items() if value is not ...}
    system.add_jump(mp.jumps.Motors(links, **numbers))
    return system


def made(**change):
    """The motors of such a system, after two steps."""
    system = system_of(**change)
    mp.Simulation(system, mp.BrownianIntegrator(1e-3, kT=KT), threads=1).step(2)
    return system["Motors"]


def test_right_numbers_are_taken():
    assert made().pools[0].name == "Pool"
    assert made(carried=True).pools == ()
    assert made(step=-16.0).leaves_end is False
    assert made(atp=100.0, stall_force=12.0).atp == 100.0
    assert made(heads=5, on_rate=0.2).heads == 5
    assert made(on_rate=0.2, dissociation_constants=...).on_rate == 0.2
    assert made(heads=5, on_rate=0.2, dissociation_constants=...).dissociation_constants is None


@pytest.mark.parametrize(("change", "error", "text"), [
    ({"step": 5.0}, mp.ParameterError, r"step = 5 nm but must be a multiple of the spacing of lattice_a, 8 nm"),
    ({"step": 0.0}, mp.ParameterError, "step = 0 nm but must be a multiple"),
    ({"stall_force": 11.0}, mp.ParameterError,
     r"stall_force = 11 pN but must be <= 10.35 pN: 8 nm use up 82.84 pN nm, 20 kT"),
    ({"stall_force": 2.0, "atp": 8.0}, mp.ParameterError, r"must be <= 1 pN"),
    ({"unloaded_velocity": 0.0}, mp.ParameterError, "unloaded_velocity = 0.0 but must be"),
    ({"load_sharing": -0.1}, mp.ParameterError, "load_sharing = -0.1"),
    ({"heads": 0}, mp.ParameterError, "heads = 0"),
    ({"heads": 3}, mp.ParameterError, r"give on_rate= \(1/s\), of bundles"),
    ({"on_rate": 1.0}, mp.ParameterError, r"on_rate= \(1/s\) or dissociation_constants= \(1/nm³\), one of the two"),
    ({"dissociation_constants": ...}, mp.ParameterError, r"give on_rate= \(1/s\), or dissociation_constants="),
    ({"carried": True, "on_rate": ...}, mp.ParameterError, r"give on_rate= \(1/s\), or dissociation_constants="),
    ({"carried": True, "dissociation_constants": 1.0}, mp.ParameterError, "are those of molecules of a pool"),
    ({"carried": True, "lattice_b": None}, mp.TopologyError, "without a pool lattice_b has the sites that carry heads"),
    ({"lattice_a": [0, 1]}, mp.TopologyError, "lattice_a must be a lattice"),
    ({"rates": mp.jumps.Bell(3.0)}, mp.ParameterError, "rates must be MedyanMotor or CytosimMotor, not Bell"),
])  # fmt: skip
def test_refused(change, error, text):
    refuses(error, text, made, **change)


def test_a_lattice_of_another_topology_is_refused():
    _, other = tracks(mp.Topology(), 1, 4)
    refuses(mp.TopologyError, "different topologies|another topology", made, lattice_b=other)


def test_long_steps_that_share_no_load_are_warned_of():
    with pytest.warns(mp.errors.UnitsWarning, match="load_sharing = 0 with a step of 8 nm, 7.73 kT .*take 0.1 to 0.3"):
        made(load_sharing=0.0, stall_force=4.0)
    # A step of eight heads takes eight times the energy.
    with pytest.warns(mp.errors.UnitsWarning, match="a step of 8 nm, 7.73 kT at the stall force of all heads"):
        made(load_sharing=0.0, stall_force=0.5, heads=8, on_rate=0.2)


def test_the_stall_force_of_a_lumped_law_is_that_of_the_bundle():
    lumped = {"heads": 20, "on_rate": 0.2, "rates": mp.jumps.MedyanMotor()}
    assert made(stall_force=200.0, **lumped).stall_force == 200.0
    text = r"must be <= 207.1 pN: 8 nm use up 1657 pN nm, 400 kT"
    refuses(mp.ParameterError, text, made, stall_force=210.0, **lumped)
    refuses(mp.ParameterError, r"must be <= 10.35 pN", made, stall_force=11.0, heads=20, on_rate=0.2)


def test_the_fastest_rates_of_heads_are_told():
    topology = mp.Topology()
    _, lattice = tracks(topology, 2, 8)
    system = mp.System(topology)
    pool = system.add_pool(mp.Pool(volume=1e6, counts={"X": 5, "M": 5}))
    springs = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=35.0, name="springs"))
    arms = system.add_force(mp.forces.Links([], [], stiffness=0.3, length=35.0, name="arms"))
    constants = {"dissociation_constants": (1e-7, 1e-3), "off_rates": (0.3, 0.7)}
    linkers = system.add_jump(mp.jumps.CrosslinkerBinding(springs, lattice, pool=pool["X"], **constants))
    walk = {"step": STEP, "stall_force": 2.0, "off_rate": 0.5, "on_rate": 0.2}
    motors = system.add_jump(mp.jumps.Motors(
        arms, lattice, pool=pool["M"], unloaded_velocity=40.0, load_sharing=0.5, **walk))  # fmt: skip
    volume = linkers.volume(KT)
    assert linkers.fastest(KT) == pytest.approx(max(0.7, 0.3 / (1e-7 * volume)))
    forth = 5.0 * math.exp(0.125 * 0.3 * STEP**2 / KT) / (1.0 - math.exp(-2.0 * STEP / KT))
    assert motors.fastest(KT) == pytest.approx(forth)
    motors.set(unloaded_velocity=1e-3, off_rate=3.0)
    assert motors.fastest(KT) == 3.0
    assert linkers.fastest(None) is motors.fastest(None) is None
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 1e-3, kT=KT, seed=1), threads=1)
    told = str(simulation.check())
    assert "CrosslinkerBinding" in told
    assert "Motors" in told


def test_named_laws_of_motors_read_the_mean():
    """At stall a head that reads the force of the moment walks at 0.030 v_0; by the mean at what this makes of it."""
    rate, steps = 0.02, 1500
    rates = mp.jumps.CytosimMotor(average=5.0)
    simulation, lattice = pulled(0.05, 0.0, 6.0, 600, velocity=rate * STEP, stall=6.0, rates=rates)
    simulation.step(60)
    before, seen = net_steps(simulation, lattice), []
    for _ in range(steps // 10):
        simulation.step(10)
        seen.append(np.clip(1.0 - averaged_tensions(simulation) / 6.0, 0.0, 1.0).mean())
    moved = net_steps(simulation, lattice, before)
    assert np.mean(seen) < 0.02
    check_mean("over v_0", moved / (steps * rate), np.mean(seen), sees=0.012)
