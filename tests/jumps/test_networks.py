"""Reactions of molecules that are counted: exact laws in time and at rest, in pools and on grids."""

import itertools
from math import comb, factorial

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.testing import JumpCase, check_jump, check_mean
from medyanpy.testing.statistics import check_chi_square

Reactions = mp.jumps.Reactions
V = 8.0


def built(pool, *jumps, seed=1, h=0.1, threads=1, kT=1.0):
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0, friction=1e30)
    system = mp.System(topology)
    system.add_pool(pool)
    for jump in jumps:
        system.add_jump(jump)
    return mp.Simulation(system, mp.BrownianIntegrator(h, kT=kT, seed=seed), threads=threads)


class Law:
    """A network by its transitions: how each changes the counts, and at which rate, written out."""

    def __init__(self, text, start, transitions, concentrations=None, most=None, driven=False):
        self.text, self.start, self.transitions = text, start, transitions
        self.concentrations, self.driven = concentrations, driven
        found = [tuple(start.values())]
        for state in found:
            for change, rate in transitions:
                new = tuple(np.add(state, change).tolist())
                if rate(*state) > 0.0 and new not in found and (most is None or max(new) <= most):
                    found.append(new)
        self.found = found
        self.rates = np.zeros((len(found), len(found)))
        for i, state in enumerate(found):
            for change, rate in transitions:
                new = tuple(np.add(state, change).tolist())
                if new in found:
                    self.rates[i, found.index(new)] += rate(*state)

    def case(self, weights=None, every=1):
        """Cells of a grid without hops are copies that do not see each other."""

        def make(copies, seed, threads, timestep):
            counts = {name: np.full((copies, 1, 1), n) for name, n in self.start.items()}
            grid = mp.Compartments((copies, 1, 1), size=2.0, counts=counts, concentrations=self.concentrations)
            return built(grid, Reactions(grid, self.text, every=every), seed=seed, threads=threads, h=timestep)

        number = {state: i for i, state in enumerate(self.found)}

        def states(state):
            pools = state.pools["Compartments"]
            rows = np.stack([pools[name].ravel() for name in self.start], axis=1)
            last = len(self.found) - 1
            return np.array([number.get(tuple(row), last) for row in rows.tolist()])

        pi = None if weights is None else np.array([weights(*state) for state in self.found])
        zeros = np.zeros(len(self.found))
        return JumpCase("Reactions", make, states, self.rates, zeros, weights=pi, driven=self.driven)

    def generator(self):
        q = self.rates.copy()
        np.fill_diagonal(q, 0.0)
        np.fill_diagonal(q, -q.sum(axis=1))
        return q


def f(*numbers):
    return 1.0 / np.prod([float(factorial(n)) for n in numbers])


# Each network, and what it does to (A, B, ..) at which rate; and the weights of its law where it is in balance.
LAWS = {
    "isomers": (
        Law("A <-> B; k_on = 2.0, k_off = 1.0", {"A": 5, "B": 0},
            [((-1, 1), lambda a, b: 2.0 * a), ((1, -1), lambda a, b: 1.0 * b)]),
        lambda a, b: comb(5, a) * 2.0**b,
    ),
    "bound": (
        Law("A + B <-> C; k_on = 4.0, k_off = 1.0", {"A": 4, "B": 3, "C": 0},
            [((-1, -1, 1), lambda a, b, c: 4.0 * a * b / V), ((1, 1, -1), lambda a, b, c: 1.0 * c)]),
        lambda a, b, c: f(a, b, c) * V ** (a + b + c) * 4.0**c,
    ),
    "pairs": (
        Law("2 A <-> D; k_on = 3.0, k_off = 1.0", {"A": 7, "D": 0},
            [((-2, 1), lambda a, d: 3.0 * a * (a - 1) / V), ((2, -1), lambda a, d: 1.0 * d)]),
        lambda a, d: f(a, d) * V ** (a + d) * 3.0**d,
    ),
    "third order": (
        Law("2 A + B <-> T; k_on = 30.0, k_off = 2.0", {"A": 6, "B": 2, "T": 0},
            [((-2, -1, 1), lambda a, b, t: 30.0 * a * (a - 1) * b / V**2), ((2, 1, -1), lambda a, b, t: 2.0 * t)]),
        lambda a, b, t: f(a, b, t) * V ** (a + b + t) * 15.0**t,
    ),
    "catalyst": (
        Law("A + E <-> B + E; k_on = 3.0, k_off = 2.0\nE <-> F; k_on = 1.0, k_off = 2.0",
            {"A": 3, "B": 0, "E": 2, "F": 0},
            [((-1, 1, 0, 0), lambda a, b, e, g: 3.0 * a * e / V), ((1, -1, 0, 0), lambda a, b, e, g: 2.0 * b * e / V),
             ((0, 0, -1, 1), lambda a, b, e, g: 1.0 * e), ((0, 0, 1, -1), lambda a, b, e, g: 2.0 * g)]),
        lambda a, b, e, g: f(a, b, e, g) * 1.5**b * 0.5**g,
    ),
    "reservoir": (
        Law("A + R <-> B; k_on = 3.0, k_off = 1.0", {"A": 4, "B": 0},
            [((-1, 1), lambda a, b: 3.0 * a * 0.25), ((1, -1), lambda a, b: 1.0 * b)], concentrations={"R": 0.25}),
        lambda a, b: f(a, b) * 0.75**b,
    ),
    "ends": (
        # Chain polymers that cannot grow without end.
        Law("A + A <-> B; k_on = 2.0, k_off = 1.0\nA + B <-> C; k_on = 5.0, k_off = 1.0", {"A": 5, "B": 0, "C": 0},
            [((-2, 1, 0), lambda a, b, c: 2.0 * a * (a - 1) / V), ((2, -1, 0), lambda a, b, c: 1.0 * b),
             ((-1, -1, 1), lambda a, b, c: 5.0 * a * b / V), ((1, 1, -1), lambda a, b, c: 1.0 * c)]),
        lambda a, b, c: f(a, b, c) * V ** (a + b + c) * 2.0**b * 10.0**c,
    ),
    "one way": (
        Law("A -> B; rate = 2.0\nB -> A; rate = 0.5\nA + B -> 2 B; rate = 1.0", {"A": 4, "B": 1},
            [((-1, 1), lambda a, b: 2.0 * a + a * b / V), ((1, -1), lambda a, b: 0.5 * b)], driven=True),
        None,
    ),
    "cycle": (
        Law("A <-> B; k_on = 2, k_off = 1\nB <-> C; k_on = 3, k_off = 1\nC <-> A; k_on = 1, k_off = 0.5",
            {"A": 3, "B": 0, "C": 0},
            [((-1, 1, 0), lambda a, b, c: 2.0 * a), ((1, -1, 0), lambda a, b, c: b),
             ((0, -1, 1), lambda a, b, c: 3.0 * b), ((0, 1, -1), lambda a, b, c: c),
             ((1, 0, -1), lambda a, b, c: c), ((-1, 0, 1), lambda a, b, c: 0.5 * a)], driven=True),
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_networks_keep_the_contract(name):
    """Balance, the master equation in time and at rest, events, books, and bits; see `check_jump`."""
    law, weights = LAWS[name]
    check_jump(law.case(weights), copies=9000)


def test_letters_of_several_steps_change_nothing():
    law, weights = LAWS["bound"]
    case = law.case(weights, every=3)
    simulation = case.make(6000, 1, 1, 0.05)
    simulation.step(6)
    found = np.bincount(case.states(simulation.context.get_state()), minlength=len(law.found))
    check_chi_square("after two letters of three steps", found, 6000 * case.after(0.3), sees=0.12)


@pytest.mark.parametrize("name", LAWS)
def test_a_network_knows_whether_it_is_in_balance(name):
    law, weights = LAWS[name]
    pool = mp.Pool(V, law.start, law.concentrations)
    jump = Reactions(pool, law.text)
    assert jump.driven is (weights is None)
    simulation = built(pool, jump)
    operation = simulation.context._schedule.jumping.operations[0]
    state = simulation.context.get_state()
    if weights is None:
        assert jump.log_weight(operation, state, 1.0) is None
        return
    # Up to volumes and factorials, which are the same for all numbers.
    told, exact = [], []
    for found in law.found:
        simulation.context.set_pools({"Pool": dict(zip(law.start, found, strict=True))})
        told.append(jump.log_weight(operation, simulation.context.get_state(), 1.0))
        exact.append(np.log(weights(*found) / f(*found)) - (sum(found) * np.log(V) if "V" in name else 0.0))
    told, exact = np.array(told), np.array(exact)
    volume = np.array([sum(found) for found in law.found]) * np.log(V)
    plain = exact - (volume if name in ("bound", "pairs", "third order", "ends") else 0.0)
    if name == "isomers":
        plain = np.array([np.log(2.0) * b for _, b in law.found])
    np.testing.assert_allclose(told - told[0], plain - plain[0], atol=1e-9)


def long_run(pool, text, steps, h, seed=1, every=40):
    simulation = built(pool, Reactions(pool, text), h=h, seed=seed)
    names, looks = pool.species, []
    simulation.step(20 * every)
    for _ in range(steps):
        simulation.step(every)
        pools = simulation.context.get_state().pools["Pool"]
        looks.append([pools[name] for name in names])
    return np.array(looks)


def test_production_and_decay_make_a_poisson_law():
    pool = mp.Pool(V, {"A": 0})
    looks = long_run(pool, "0 <-> A; k_on = 0.75, k_off = 1.0", 6000, 0.2)[:, 0]
    mean = 0.75 * V
    expected = len(looks) * np.array([np.exp(-mean) * mean**n / factorial(n) for n in range(14)])
    counts = np.bincount(looks, minlength=14)[:14]
    check_chi_square("0 <-> A", counts[1:], expected[1:] * counts[1:].sum() / expected[1:].sum(), sees=0.15)
    check_mean("molecules", looks.astype(float), mean, sees=0.05 * mean)


def test_large_networks_pick_from_a_tree():
    """Ten isomers in a ring: more channels than children of a node."""
    n = 10
    names = [f"S{i}" for i in range(n)]
    z = [1.0 + i / 7.0 for i in range(n)]
    lines = [f"S{i} <-> S{(i + 1) % n}; k_on = {z[(i + 1) % n]!r}, k_off = {z[i]!r}" for i in range(n)]
    pool = mp.Pool(V, {name: 20 for name in names})
    jump = Reactions(pool, lines)
    assert not jump.driven
    looks = long_run(pool, lines, 1000, 0.25, every=16)
    assert (looks.sum(axis=1) == 20 * n).all()
    for i in (0, 4, 9):
        check_mean(f"S{i}", looks[:, i].astype(float), 20 * n * z[i] / sum(z), sees=2.0 * n * z[i] / sum(z))


@pytest.mark.parametrize("periodic", [False, True])
def test_a_grid_spreads_molecules_evenly(periodic):
    """Copies of one molecule each: the multinomial law of a cell, and the time in which it is reached."""
    counts = np.zeros((3, 2, 2), int)
    counts[0, 0, 0] = 4000
    grid = mp.Compartments((3, 2, 2), (2.0, 1.0, 4.0), {"A": counts}, {"A": 1.0}, periodic=periodic)
    # Hops of one molecule: the same for each of many.
    at = {cell: i for i, cell in enumerate(itertools.product(range(3), range(2), range(2)))}
    q = np.zeros((12, 12))
    for cell, i in at.items():
        for c, (size, cells) in enumerate(zip((2.0, 1.0, 4.0), (3, 2, 2), strict=True)):
            for side in (-1, 1):
                to = list(cell)
                to[c] += side
                if periodic:
                    to[c] %= cells
                if tuple(to) in at:
                    q[i, at[tuple(to)]] += 1.0 / size**2
    np.fill_diagonal(q, -q.sum(axis=1))
    w, u = np.linalg.eigh(q)
    simulation = built(grid, Reactions(grid, []), h=0.25)
    for steps in (1, 3, 36, 160):
        simulation.step(steps)
        p = u[0] @ (np.exp(w * simulation.context.time)[:, None] * u.T)
        found = simulation.context.get_state().pools["A"].ravel()
        assert found.sum() == 4000
        seen = p > 0.004
        check_chi_square(f"after {simulation.context.time} s", found[seen], 4000 * p[seen] * found[seen].sum()
                         / (4000 * p[seen].sum()), sees=0.2)  # fmt: skip
    assert simulation.context.get_state(positions=True).jumps["Reactions"]["hops"] > 4000


def test_molecules_hop_once_whatever_acts_on_the_grid():
    """The first of two jumps on a grid moves molecules, at D/h² through each of six faces."""
    grid = mp.Compartments((2, 2, 2), 2.0, {"A": 500, "B": 0}, {"A": 4.0}, periodic=True)
    jumps = Reactions(grid, "A <-> B; k_on = 0, k_off = 0"), Reactions(grid, [], name="second")
    simulation = built(grid, *jumps)
    simulation.step(40)
    shown = simulation.context.get_state(positions=True).jumps
    assert shown["second"]["hops"] == 0
    expected = 500 * 6 * 4.0 / 2.0**2 * simulation.context.time
    assert abs(shown["Reactions"]["hops"] - expected) < 5.0 * np.sqrt(expected)


def test_reactions_on_a_grid_keep_the_law_of_the_whole():
    """A + B <-> C with hops: weights ∏ V_c^n/n! of all cells are those of one volume, up to K_D per cell."""
    n, a0, b0, k = 216, 60, 40, 6.4
    grid = mp.Compartments((6, 6, 6), 2.0, {"A": a0, "B": b0, "C": 0}, {"A": 4.0, "B": 2.0, "C": 1.0})
    simulation = built(grid, Reactions(grid, f"A + B <-> C; k_on = {k * V}, k_off = 1.0"), h=0.5, seed=3)
    # ∏ V^n/n! summed over where molecules are: the whole volume's.
    c = np.arange(min(a0, b0) + 1)
    total = n * V
    log = [
        -np.log(float(factorial(a0 - i)) * factorial(b0 - i) * factorial(i)) - i * np.log(total / (k * V)) for i in c
    ]
    pi = np.exp(np.array(log) - max(log))
    pi /= pi.sum()
    looks = []
    simulation.step(100)
    for _ in range(1200):
        simulation.step(12)
        pools = simulation.context.get_state().pools
        a, b, own = (pools[name].astype(float) for name in "ABC")
        # With so many in all each is anywhere, whatever else is there.
        beside = sum((np.delete(a, -1, axis) * np.delete(a, 0, axis)).sum() for axis in range(3))
        looks.append((
            own.sum(), a[::5, ::5, ::5].sum() - a.sum() * 8 / n, own[2:4, 2:4, 2:4].sum() - own.sum() * 8 / n,
            (a * b).sum() - a.sum() * b.sum() / n, (a * (a - 1.0)).sum() - a.sum() * (a.sum() - 1.0) / n,
            beside - a.sum() * (a.sum() - 1.0) * 540 / n**2,
        ))  # fmt: skip
    looks = np.array(looks)
    mean = pi @ c
    check_mean("C", looks[:, 0], mean, sees=0.08 * mean, time_series=True)
    laws = {"A in corners": 0.6, "C in the middle": 0.7, "A beside B": 0.9, "A in pairs": 1.8, "A in neighbours": 3.0}
    for (what, sees), own in zip(laws.items(), looks[:, 1:].T, strict=True):
        check_mean(what, own, 0.0, sees=sees, time_series=True)


def test_a_broken_cycle_tells_what_drives_it():
    law, _ = LAWS["cycle"]
    pool = mp.Pool(V, {"A": 50, "B": 0, "C": 0})
    jump = Reactions(pool, law.text)
    simulation = built(pool, jump, kT=4.0)
    simulation.report_work = True
    heard = simulation.context.events()
    simulation.step(200)
    state = simulation.context.get_state(positions=True, energy=True)
    events = dict(zip(jump.kinds, state.jumps["Reactions"]["events"].tolist(), strict=True))
    told = sum(event.chemical_energy for event in heard.heard())
    net = np.array([events["A -> B"] - events["B -> A"], events["B -> C"] - events["C -> B"],
                    events["C -> A"] - events["A -> C"]])  # fmt: skip
    turns = net.mean()
    assert turns > 100
    # Each turn dissipates kT ln(2/1 3/1 1/½); between turns the entropy of the mixture changes by a little.
    assert told == pytest.approx(turns * 4.0 * np.log(12.0), abs=4.0 * 400)
    # Without the entropy of the mixture: the affinity is shared among the three, whatever the share.
    assert state.entropy_production == pytest.approx(net @ np.full(3, np.log(12.0) / 3.0), rel=1e-12)
    # No energy of forces: none is booked.
    assert state.heat == state.chemical_work == 0.0
    assert [event.kind for event in heard.heard()].count("A -> B") == events["A -> B"]


def test_events_without_a_way_back_are_infinite():
    pool = mp.Pool(V, {"A": 5, "B": 0})
    simulation = built(pool, Reactions(pool, "A -> B", on_rate=100.0))
    heard = simulation.context.events()
    simulation.step(10)
    assert [event.chemical_energy for event in heard.heard()] == [np.inf] * 5
    assert simulation.context.get_state().pools["B"] == 5


def test_rates_can_be_set():
    pool = mp.Pool(V, {"A": 2000, "B": 0})
    jump = Reactions(pool, "A <-> B", on_rate=1.0, off_rate=0.0)
    simulation = built(pool, jump)
    simulation.step(10)
    here = simulation.context.get_state().pools["A"]
    assert abs(here / 2000.0 - np.exp(-1.0)) < 5.0 * np.sqrt(0.25 / 2000.0)
    jump.on_rate = 0.0
    simulation.step(10)
    assert simulation.context.get_state().pools["A"] == here
    assert (jump.on_rate, jump.off_rate) == (0.0, 0.0)
    refuses(mp.ParameterError, "can be set where it was given", jump.set, off_rate=None)
    refuses(mp.ParameterError, "must be finite and >= 0", jump.set, off_rate=-1.0)


def test_pools_are_shared_by_jumps():
    """Two jumps of one cycle: each sees what the other has left."""
    pool = mp.Pool(V, {"A": 60, "B": 0, "C": 0})
    first = Reactions(pool, "A <-> B; k_on = 2.0, k_off = 1.0")
    second = Reactions(pool, "B <-> C; k_on = 3.0, k_off = 2.0", name="second")
    simulation = built(pool, first, second, h=0.2)
    looks = []
    simulation.step(50)
    for _ in range(3000):
        simulation.step(10)
        pools = simulation.context.get_state().pools
        looks.append([pools[s] for s in "ABC"])
    looks = np.array(looks, float)
    assert (looks.sum(axis=1) == 60).all()
    for k, share in enumerate(np.array([1.0, 2.0, 3.0]) / 6.0):
        check_mean("ABC"[k], looks[:, k], 60.0 * share, sees=0.03 * 60.0)
    # Weighed together: z is one for all jumps of a pool.
    jumping = simulation.context._schedule.jumping
    told = []
    for counts in ({"A": 60, "B": 0, "C": 0}, {"A": 0, "B": 60, "C": 0}, {"A": 0, "B": 0, "C": 60}):
        simulation.context.set_pools({"Pool": counts})
        state = simulation.context.get_state()
        told.append(sum(j.log_weight(o, state, 1.0) for j, o in zip(jumping.jumps, jumping.operations, strict=True)))
    np.testing.assert_allclose(np.diff(told), 60.0 * np.log([2.0, 1.5]), rtol=1e-12)


def test_too_many_events_end_the_run():
    pool = mp.Pool(V, {"A": 10, "B": 10})
    simulation = built(pool, Reactions(pool, "A <-> B; k_on = 1e12, k_off = 1e12"))
    refuses(mp.SimulationError, "Reactions", simulation.step, 1)
    # All is as it was.
    assert dict(simulation.context.get_state().pools["Pool"]) == {"A": 10, "B": 10}
    pool = mp.Pool(V, {"A": 2**40, "B": 0})
    simulation = built(pool, Reactions(pool, "A -> B; rate = 1e308"))
    refuses(mp.SimulationError, "Reactions", simulation.step, 1)


POOL = {"volume": V, "counts": {"A": 3, "B": 0, "C": 0}, "concentrations": {"R": 1.0}}


@pytest.mark.parametrize(
    ("reactions", "more", "message"),
    [
        ("A -> X; rate = 1", {}, "Pool has no species 'X'"),
        ("A -> B", {}, "its rate is missing: give '; rate = ...' or on_rate="),
        ("A <-> B; k_on = 1", {}, "its rate is missing: give '; k_off = ...' or off_rate="),
        ("A <-> B; rate = 1", {}, "'rate' is not one of its numbers: k_on and k_off"),
        ("A -> B; rate = -1", {}, "rate = -1 but must be >= 0"),
        ("A -> B; rate = 1", {"on_rate": 1.0}, "is given twice"),
        ("A -> B", {"on_rate": 1.0, "off_rate": 1.0}, "off_rate is of reactions '<->' that go back"),
        ("A -> B; rate = 1\nB -> C; rate = 1", {"on_rate": 1.0}, "on_rate is of one reaction"),
        ("A -> B; rate = 1\nA -> B; rate = 1", {}, "A -> B is written twice"),
        ("A <-> B; k_on = 1, k_off = 1\nB -> A; rate = 1", {}, "B -> A is written twice"),
        ("A -> B", {"on_rate": -1.0}, "on_rate = -1.0 but must be finite and >= 0"),
        ("", {}, "there is no reaction in ''"),
        ("4 A -> B; rate = 1", {}, "more than 3 molecules"),
    ],
)
def test_reactions_that_cannot_be_are_refused(reactions, more, message):
    refuses(mp.ParameterError, message, Reactions, mp.Pool(**POOL), reactions, **more)


def test_subjects_are_pools_of_the_system():
    refuses(mp.ParameterError, "subject must be a Pool, Compartments, or the handle", Reactions, 3, "A -> B; rate = 1")
    pool = mp.Pool(**POOL)
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    system = mp.System(topology)
    jump = Reactions(pool, "A -> B; rate = 1")
    refuses(mp.ParameterError, r"must be in the system first: system.add_pool", system.add_jump, jump)
    system.add_pool(pool)
    system.add_jump(jump)
    assert "Reactions(Pool: A -> B)" in repr(jump)
    # No temperature is needed, nor known to events.
    mp.Simulation(system, mp.SplittingIntegrator("JBABJ", 0.1)).step(2)


def test_linearly_implicit_kicks_take_reactions_in_pools():
    """Molecules that are counted change no force: beads move to the same bits with and without them."""

    def run(reacting):
        topology = mp.Topology()
        beads = topology.add_beads(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
        system = system_with(topology, mp.forces.HarmonicBonds([[0, 1], [1, 2], [2, 3]], 100.0, 4.0))
        if reacting:
            pool = system.add_pool(mp.Pool(volume=1.0, counts={"A": 50, "B": 0}))
            system.add_jump(mp.jumps.Reactions(pool, "A <-> B; k_on = 1.0, k_off = 2.0"))
        kick = mp.kicks.ZhangSkeel(0.35, positive_definite=True)
        integrator = mp.SplittingIntegrator("JBAOABJ", 0.08, kT=1.0, kick=kick, seed=3)
        context = mp.Context(system, integrator, threads=1)
        context.step(100)
        return context.get_state(positions=True), beads

    (with_pool, beads), (without, _) = run(True), run(False)
    assert np.array_equal(with_pool.positions[beads.beads], without.positions[beads.beads])
    assert with_pool.counts["Reactions"].accepted > 200


def test_driven_jumps_act_often_enough():
    """Driven fluxes are those of the rates only where events are few in the steps between two letters."""

    def made(off, every):
        topology = mp.Topology()
        one = {"mass": 1.0, "friction": 1.0}
        beads = topology.add_beads(
            np.zeros((3, 3)), species={"A": one, "B": one, "C": one}, counts={"A": 3}, capacity=3
        )
        system = mp.System(topology)
        rates = f"A <-> B; k_on = 2, k_off = {off}\nB <-> C; k_on = 2, k_off = 1\nC <-> A; k_on = 2, k_off = 1"
        system.add_jump(mp.jumps.Reactions(beads, rates, every=every))
        return mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0), threads=1)

    made(1, 5)
    refuses(mp.ParameterError, r"every = 6, and its fastest event comes 0\.12 times in as many steps", made, 1, 6)
    # In balance the law is the same however seldom.
    made(8, 60)


def test_driven_networks_beside_others_act_often_enough():
    """One clock alone may be cut as one likes; beside another jump on its pool its fluxes are those of small steps."""
    cycle = "A <-> B; k_on = 100, k_off = 1\nB <-> C; k_on = 1, k_off = 1\nC <-> A; k_on = 1, k_off = 1"

    def made(every, other, text=cycle):
        pool = mp.Pool(V, {"A": 40, "B": 0, "C": 0, "D": 0})
        others = [] if other is None else [Reactions(pool, other)]
        return built(pool, Reactions(pool, text, every=every), *others)

    made(50, None)
    refuses(mp.ParameterError, "every = 50, and its fastest event comes 500 times in as many steps", made, 50,
            "A <-> D; k_on = 1, k_off = 1")  # fmt: skip
    # A D would meet 5 A in 1 nm³, at twice that rate.
    refuses(mp.ParameterError, "fastest event comes 10 times", made, 10, "A <-> D; k_on = 1, k_off = 1",
            "A + D -> B + D; rate = 2")  # fmt: skip
    made(50, "A <-> D; k_on = 1, k_off = 1", "A <-> B; k_on = 100, k_off = 1")
