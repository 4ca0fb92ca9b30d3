"""The contract of jumps, on links that bind; and that each of its clauses notices what it is for."""

import itertools

import numpy as np
import pytest
from builders import balanced, refuses
from pairs_of_jumps import JUMPS, PAIRS, STEPS, advance, built, together

import medyanpy as mp
from medyanpy.engine import jumping, work
from medyanpy.testing import JumpCase, check_jump, check_jumps_together
from medyanpy.testing.jumps import check_balance, check_bits, check_books, check_time

K_OFF, K_ON, STIFFNESS, LENGTH = 1.0, 2.5, 1.0, 10.0
# Two sites on either side: four distances that differ.
A = np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
B = np.array([[10.8, 0.0, 0.0], [9.0, 3.5, 0.0]])


def energies_of_pairs():
    r = np.linalg.norm(B[None] - A[:, None], axis=2).ravel()
    return 0.5 * STIFFNESS * (r - LENGTH) ** 2


def tensions_of_pairs():
    r = np.linalg.norm(B[None] - A[:, None], axis=2).ravel()
    return np.maximum(STIFFNESS * (r - LENGTH), 0.0)


def allowed(pairs, partners):
    """Sets of pairs in which no site has too many."""
    ends = [(f"a{p // 2}", f"b{p % 2}") for p in pairs]
    return all(sum(end in e for e in ends) <= partners for end in ("a0", "a1", "b0", "b1"))


def case_of(load_sharing=0.5, partners=1, pool=None, rates=None, every=1, cls=mp.jumps.LinkBinding, wrong=None, **more):
    u, f = energies_of_pairs(), tensions_of_pairs()
    sets = [s for n in range(5) for s in itertools.combinations(range(4), n) if allowed(s, partners)]
    sets = [s for s in sets if pool is None or len(s) <= pool]
    on = K_ON * np.exp(-(1.0 - load_sharing) * u)
    off = K_OFF * np.exp(load_sharing * u)
    if isinstance(rates, mp.jumps.FlatWindow):
        on, off = np.full(4, K_ON), K_OFF * np.exp(f / rates.slip)
    elif isinstance(rates, mp.jumps.CatchSlip):
        w = rates.catch_share
        on, off = K_ON * np.exp(-u), K_OFF * ((1 - w) * np.exp(f / rates.slip) + w * np.exp(-f / rates.catch))
    q = np.zeros((len(sets), len(sets)))
    for (i, one), (j, other) in itertools.permutations(enumerate(sets), 2):
        if set(one) < set(other) and len(other) == len(one) + 1:
            (new,) = set(other) - set(one)
            share = 1.0 if pool is None else 1.0 - len(one) / pool
            q[i, j], q[j, i] = on[new] * share, off[new]
    weights = [
        (K_ON / K_OFF) ** len(s) * (1.0 if pool is None else np.prod(1.0 - np.arange(len(s)) / pool)) for s in sets
    ]
    number = np.full(16, -1)
    number[[sum(1 << p for p in s) for s in sets]] = np.arange(len(sets))

    def make(copies, seed, threads, timestep):
        topology = mp.Topology()
        topology.add_beads([[-1e6, 0.0, 0.0]], mass=1.0, friction=1e30)
        system = mp.System(topology)
        links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
        apart = np.zeros((copies, 1, 3))
        apart[:, 0, 1] = 1000.0 * np.arange(copies)
        sides = (mp.Sites.anchors((x[None] + apart).reshape(-1, 3)) for x in (A, B))
        system.add_jump(cls(links, *sides, off_rate=K_OFF, on_rate=K_ON, load_sharing=load_sharing, partners=partners,
                            rates=rates, pool=None if pool is None else pool * copies, every=every, name="binding",
                            **more))  # fmt: skip
        return mp.Simulation(system, mp.BrownianIntegrator(timestep, kT=1.0, seed=seed), threads=threads)

    def states(state):
        pairs = state.jumps["binding"]["links"]
        code = np.zeros(make.copies, int)
        np.add.at(code, pairs[:, 0] // 2, 1 << (2 * (pairs[:, 0] % 2) + pairs[:, 1] % 2))
        return number[code]

    def counted(copies, *others):
        make.copies = copies
        return make(copies, *others)

    total = np.array([u[list(s)].sum() for s in sets])
    given = {"rates": q, "energies": total, "weights": np.array(weights)} | (wrong or {})
    return JumpCase(str(cls.__name__), counted, states, **given, driven=rates is not None)


CASES = {
    "load_sharing=0": {"load_sharing": 0.0},
    "load_sharing=0.5": {},
    "load_sharing=1": {"load_sharing": 1.0},
    "two partners": {"partners": 2},
    "flat window": {"rates": mp.jumps.FlatWindow(8.0, 12.0, force=1.5)},
    "catch-slip": {"rates": mp.jumps.CatchSlip(0.8, 0.4, 2.0)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_links_that_bind_keep_the_contract(name):
    check_jump(case_of(**CASES[name]), copies=5_000, sees=0.175)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_errors_of_one_percent_would_be_seen(name):
    check_time(case_of(**CASES[name]), copies=1_500_000, sees=0.01)


# Each clause, broken alone ------------------------------------------------------------------------------------------


def off(factor, what):
    """A case that says wrongly what its rates or energies are."""
    right = case_of()
    return case_of(wrong={what: getattr(right, what) * factor})


@pytest.mark.parametrize(("what", "factor"), [("energies", 1.2), ("weights", 1.0)])
def test_balance_is_between_rates_energies_and_weights(what, factor):
    check_balance(case_of())
    wrong = off(factor, what)
    if what == "weights":
        wrong = case_of(wrong={"weights": np.ones(len(wrong.energies))})
    refuses(AssertionError, "the rates do not balance", check_balance, wrong)


@pytest.mark.slow
def test_rates_that_are_wrong_by_a_tenth_are_seen():
    """All of them: at rest it would not be."""
    refuses(AssertionError, r"chi-square|events per copy", check_time, off(1.1, "rates"), 12_000)


@pytest.mark.slow
def test_a_state_of_the_start_that_is_not_is_seen():
    case = case_of()
    with pytest.raises(AssertionError, match="do not start as said"):
        check_time(JumpCase("x", case.make, case.states, case.rates, case.energies, start=1), 500)


@pytest.mark.slow
def test_too_few_copies_are_refused():
    refuses(AssertionError, "counts", check_time, case_of(), 5000, sees=0.01)


@pytest.mark.slow
def test_books_that_are_not_kept_are_seen(monkeypatch):
    class Forgotten(work.WorkMeter):
        def after(self, stage):
            return () if stage.kind == "J" else super().after(stage)

    from medyanpy import context

    check_books(case_of())
    monkeypatch.setattr(context, "WorkMeter", Forgotten)
    # What nobody books looks like an error of the timestep: of a jump that is driven it is not chemical.
    refuses(AssertionError, "are booked", check_books, case_of(rates=CASES["flat window"]["rates"]))


@pytest.mark.slow
def test_energies_of_states_that_are_others_are_seen():
    refuses(AssertionError, "events tell of", check_books, off(1.01, "energies"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "text"),
    [("lost", "events are missing"), ("unsorted", "not in the order of time"), ("late", "outside of its step")],
)
def test_events_that_are_lost_or_misdated_are_seen(how, text, monkeypatch):
    heard = jumping.Listener.heard

    def changed(self):
        events = heard(self)
        if how == "lost":
            # One that binds and one that lets go at the same distance, so that energies still agree.
            back = next(i for i, e in enumerate(events) if e[3] == "unbind")
            ends = [site % 2 for site in events[back][4:6]]
            bind = next(i for i, e in enumerate(events) if e[3] == "bind" and [site % 2 for site in e[4:6]] == ends)
            return [e for i, e in enumerate(events) if i not in (bind, back)]
        if how == "unsorted":
            return [events[1], events[0], *events[2:]]
        return [e._replace(time=e.time + 0.3) for e in events]

    monkeypatch.setattr(jumping.Listener, "heard", changed)
    refuses(AssertionError, text, check_books, case_of())


@pytest.mark.slow
def test_balanced_events_have_a_way_back():
    driven = case_of(rates=mp.jumps.FlatWindow(9.5, 10.2, force=1.0))
    pretending = JumpCase("x", driven.make, driven.states, driven.rates, driven.energies)
    refuses(AssertionError, r"has no way back|are booked|are missing|states of", check_books, pretending)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "text"), [("end", "replay|resumed|loaded"), ("counts", "other counts"), ("other", "replay|resumed|loaded")]
)
def test_state_that_is_not_kept_is_seen(lost, text, monkeypatch):
    """Neither copied for the last good state nor written to checkpoints."""
    arrays = jumping.Jumping.arrays
    monkeypatch.setattr(
        jumping.Jumping, "arrays", lambda self: {k: a for k, a in arrays(self).items() if not k.endswith(f", {lost}")}
    )
    monkeypatch.setattr(jumping.Jumping, "check", lambda self, given: None)
    refuses(AssertionError, text, check_bits, case_of())


@pytest.mark.slow
def test_other_random_numbers_for_other_threads_are_seen():
    case = case_of()

    def make(copies, seed, threads, timestep):
        return case.make(copies, seed + threads, threads, timestep)

    refuses(AssertionError, "threads: other", check_bits, JumpCase("x", make, case.states, case.rates, case.energies))


# Beside each other ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [pair for pair, parts in PAIRS.items() if set(parts) <= set(JUMPS)])
def test_jumps_keep_the_contract_beside_each_other(pair):
    check_jumps_together(pair, lambda threads: together(*PAIRS[pair], threads=threads)[0])


@pytest.mark.parametrize("pair", [pair for pair, parts in PAIRS.items() if set(parts) & set(JUMPS)])
def test_the_books_close_whatever_changes_beside_jumps(pair):
    """Edits, boxes and numbers that change are protocol work."""
    simulation, changes = together(*PAIRS[pair])
    simulation.report_work = True
    start = simulation.context.get_state(energy=True)
    advance(simulation, changes, STEPS)
    end = simulation.context.get_state(energy=True)
    balanced(end, start)


def test_jumps_that_see_a_box_of_before_are_seen(monkeypatch):
    """As links were weighed once: in the box of now, though they had been listed in another."""
    from medyanpy.testing import jumps as contract

    def look(simulation):
        state = seen(simulation)
        simulation.context._schedule.jumping.operations[0].forget_all()
        return state

    seen = contract._look
    monkeypatch.setattr(contract, "_look", look)
    with pytest.raises(AssertionError, match="looks between"):
        check_jumps_together("links + box", lambda threads: together("links", "box", threads=threads)[0])


@pytest.mark.parametrize("what", ["links", "bonds"])
def test_beads_that_come_and_go_are_not_named_by_their_rows(what):
    """A link would stay at a row of which another bead may take possession."""
    system, _ = built("creation")
    balls, beads = system.topology["balls"], system.topology["beads"]
    with system.topology.edit():
        balls.add([[0.0, 0.0, 2.0], [0.5, 0.0, 2.0]])
    if what == "bonds":
        system.add_force(mp.forces.HarmonicBonds([[balls.beads[0], beads.beads[0]]], 1.0, 1.0))
    else:
        springs = system.add_force(mp.forces.Links([], [], stiffness=20.0, length=0.8))
        sites = mp.Sites.beads(balls) + mp.Sites.beads(beads)
        system.add_jump(mp.jumps.LinkBinding(springs, sites, off_rate=1.0, on_rate=1.0))
    with pytest.raises(mp.ParameterError, match=r"cannot create or remove beads of 'balls': .* names one by its row"):
        mp.Context(system, mp.SplittingIntegrator("JBAGOGABJ", 0.01, kT=1.0), threads=1)
