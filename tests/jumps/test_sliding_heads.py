"""Heads of crosslinkers that slide: free diffusion along a lattice, and weights that sliding leaves as they are."""

import math

import numpy as np
import pytest
from builders import refuses
from jumps.test_crosslinkers import K_D, KT, LENGTH, OFF, STIFFNESS, check_law, energy, looks, sets_of, volume

import medyanpy as mp
from medyanpy.testing import JumpCase, check_jump, check_mean

STILL = 1e30


def tracks(topology, copies, places, spacing=8.0, **at):
    """Straight filaments along y that stay, at x and z."""
    nodes = np.zeros((copies, 2, 3))
    nodes[:, 1, 1], nodes[:, :, 0], nodes[:, :, 2] = (places - 1) * spacing, at.get("x", 0.0), at.get("z", 0.0)
    nodes[:, :, 2] += 1000.0 * np.arange(copies)[:, None]
    return topology.add_filaments(list(nodes), STILL, STILL, constrained=False).lattice(spacing)


def sliding(topology, a, b, pool, timestep, seed=1, threads=1, kT=KT, **options):
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
    pool = system.add_pool(pool)
    numbers = {"dissociation_constants": K_D, "off_rates": OFF} | options
    system.add_jump(mp.jumps.CrosslinkerBinding(links, a, b, pool=pool["X"], name="binding", **numbers))
    return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=kT, seed=seed), threads=threads)


@pytest.mark.slow
def test_sliding_leaves_the_weights_of_sixteen_states():
    share = 0.258
    space, topology = 1.5e5, mp.Topology()
    a, b = tracks(topology, 1, 3), tracks(topology, 1, 3, x=50.0)
    state = mp.Context(mp.System(topology), mp.BrownianIntegrator(1.0, kT=KT)).get_state(positions=True)
    x, y = a.positions(state), b.positions(state)
    weights = {}
    for one in sets_of(3, 3, 1):
        w = 1.0
        for i, j in one:
            w = 1.0 / space / (1.0 if i < 0 else K_D[0]) / (1.0 if j < 0 else K_D[1])
            w *= math.exp(-energy(x[i], y[j]) / KT) / volume() if i >= 0 <= j else 1.0
        weights[frozenset(one)] = w
    assert len(weights) == 16
    simulation = sliding(topology, a, b, mp.Pool(space, {"X": 1}), 4.0, load_sharing=share, diffusion=150.0)
    heard = simulation.context.events()
    check_law(f"sliding, λ = {share}", weights, looks(simulation, 6000), sees=0.2)
    events = [event for event in heard.heard() if event.kind in ("step", "step back")]
    assert len(events) > 10_000
    assert all(event.chemical_energy == 0.0 for event in events)
    assert simulation.context.get_state().entropy_production == 0.0


@pytest.mark.slow
def test_a_head_alone_diffuses_along_its_filament():
    """The mean square of its way is 2Dt at any time, of a walk that starts afresh at every place."""
    copies, places, diffusion, spacing, time = 4000, 61, 40.0, 2.0, 8.0
    topology = mp.Topology()
    lattice = tracks(topology, copies, places, spacing)
    bound = np.column_stack([30 + places * np.arange(copies), np.full(copies, -1)])
    simulation = sliding(topology, lattice, None, mp.Pool(1e9, {"X": 0}), time / 4, off_rates=1e-12, bound=bound,
                         diffusion=diffusion / 8.0)  # fmt: skip
    simulation.step(4)
    rows = simulation.context.get_state(positions=True).jumps["binding"]["links"][:, 0]
    way = spacing * (lattice.numbers[np.sort(rows)] - 30)
    check_mean("the way", way.astype(float), 0.0, sees=1.2)
    check_mean("its square over 2Dt", way**2 / (2.0 * diffusion / 8.0 * time), 1.0, sees=0.2)


def pulled_case():
    """The second head at the one place of another filament, while the first slides on five: no molecule lets go."""
    kT, diffusion, n = 1.0, 64.0, 5

    def make(copies, seed, threads, timestep):
        topology = mp.Topology()
        a, b = tracks(topology, copies, n, x=0.0), tracks(topology, copies, 2, x=50.0)
        make.copies, bound = copies, np.column_stack([1 + n * np.arange(copies), np.arange(copies)])
        return sliding(topology, a, b[::2], mp.Pool(1e9, {"X": 0}), timestep, seed, threads, kT, off_rates=1e-12,
                       bound=bound, diffusion=diffusion)  # fmt: skip

    def states(state):
        rows = state.jumps["binding"]["links"]
        return rows[np.argsort(rows[:, 1]), 0] % n

    u = 0.5 * STIFFNESS * (np.hypot(50.0, 8.0 * np.arange(n)) - LENGTH) ** 2
    q = np.zeros((n, n))
    for i in range(n - 1):
        q[i, i + 1], q[i + 1, i] = np.exp(-0.5 * np.array([u[i + 1] - u[i], u[i] - u[i + 1]]) / kT) * diffusion / 64.0
    return JumpCase("sliding heads", make, states, q, u, kT=kT, start=1)


@pytest.mark.slow
def test_a_head_under_a_load_is_in_balance_with_it():
    case = pulled_case()
    assert np.ptp(case.energies) > 2.0
    check_jump(case, copies=8_000, sees=0.175)


def test_sliding_may_begin_later_and_heads_do_not_pass_each_other():
    topology = mp.Topology()
    lattice = tracks(topology, 1, 9)
    simulation = sliding(topology, lattice, None, mp.Pool(1e9, {"X": 0}), 0.5, off_rates=1e-12,
                         bound=[[2, -1], [5, -1]])  # fmt: skip
    simulation.step(20)
    assert looks(simulation, 1) == [frozenset({(2, -1), (5, -1)})]
    simulation.system["binding"].set(diffusion=300.0)
    found = looks(simulation, 40)
    assert len(set(found)) > 5
    assert all(len(one) == 2 for one in found)
    simulation.system["binding"].set(diffusion=0.0)
    assert len(set(looks(simulation, 20))) == 1


def test_runs_of_sliding_heads_continue_with_the_same_bits():
    def make():
        topology = mp.Topology()
        a, b = tracks(topology, 3, 9), tracks(topology, 3, 9, x=50.0)
        return sliding(topology, a, b, mp.Pool(1e5, {"X": 9}), 0.2, diffusion=200.0)

    simulation = make()
    simulation.step(60)
    state = simulation.context._schedule.dynamical_arrays()
    kept, since = {name: array.copy() for name, array in state.items()}, simulation.context._schedule.since
    simulation.step(60)
    other = make()
    other.step(7)
    other.context._schedule.take_arrays(kept, 60, since)
    other.step(60)
    ends = [one.context._schedule.dynamical_arrays() for one in (simulation, other)]
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0] if name.startswith("jump"))


def test_sliding_needs_lattices_of_one_spacing():
    def make(b=None, sites=False, **options):
        topology = mp.Topology()
        a = tracks(topology, 1, 3)
        b = None if b is None else tracks(topology, 1, 3, b, x=50.0)
        a = mp.Sites.anchors([[0.0, 0.0, 0.0]]) if sites else a
        return sliding(topology, a, b, mp.Pool(1e5, {"X": 9}), 0.2, **options).system["binding"]

    assert make(diffusion=3.0).fastest(KT) == make().fastest(KT)
    assert make(diffusion=6400.0).fastest(KT) == 100.0
    refuses(mp.ParameterError, "lattices of one spacing, not 8 and 4 nm", make, 4.0, diffusion=1.0)
    refuses(mp.TopologyError, "diffusion is that of heads along lattices, but lattice_a is not", make, sites=True,
            diffusion=1.0)  # fmt: skip
    refuses(mp.ParameterError, "diffusion = -1", make, diffusion=-1.0)
    refuses(mp.ParameterError, "one spacing", make(4.0).set, diffusion=1.0)
