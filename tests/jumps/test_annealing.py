"""Laws of filaments that join end to end, and part again."""

import numpy as np
import pytest
from builders import STILL, look, refuses, straight, system_with
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import check_mean


def built(jumps, nodes, side=8.0, forces=(), pool=None, room=6, capacity_links=4, mass=0.1, timestep=0.05, seed=1,
          threads=1, bending=0.0, metric=True):  # fmt: skip
    """Filaments that join: (handle, simulation). `jumps` are made of the handle and a species."""
    topology = mp.Topology()
    handle = topology.add_filaments(list(nodes), mass, 0.1, rise=1.0, capacity_links=capacity_links,
                                    capacity_filaments=room, name="actin")  # fmt: skip
    system = system_with(topology, box=side and (side,) * 3)
    if metric:
        system.add_force(mp.forces.FixmanPotential(handle, kT=1.0))
    if bending:
        system.add_force(mp.forces.FilamentBending(handle, bending))
    for force in forces:
        system.add_force(force(handle))
    pool = system.add_pool(mp.Pool(volume=20.0**3, concentrations={"G": 0.5}) if pool is None else pool)
    for jump in jumps:
        system.add_jump(jump(handle, pool["G"]))
    return handle, mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=1.0, seed=seed), threads=threads)


def ends(on, off, reach=3.5, **more):
    return lambda actin, _: mp.jumps.Annealing(actin, on_rate=on, off_rate=off, reach=reach, **more)


def seeds(n, rate, off):
    return lambda actin, species: mp.jumps.Nucleation(actin, species, n, rate=rate, dissolution_rate=off)


def growth(on, off, end="both"):
    return lambda actin, species: mp.jumps.Polymerization(
        actin, species, on_rate=on, off_rate=off, end=end, subunits=(2, 5))  # fmt: skip


def joints(state, handle):
    """Cosines of all joints."""
    x, there = state.positions[handle.kind.slots], state.column("subunits")[handle.kind.slots] > 0
    d = (x[:, 1:] - x[:, :-1]) / np.maximum(state.column("subunits")[handle.kind.slots][:, :-1, None], 1)
    return np.einsum("ijk,ijk->ij", d[:, 1:], d[:, :-1])[there[:, 1:-1] & there[:, :-2]]


@pytest.mark.parametrize("bending", [0.0, 6.0])
def test_numbers_of_pieces(bending):
    """M pieces of n links have (K V)^M/M! binom(n - 1, M - 1), whatever the stiffness; their joints have their law."""
    links, side, wanted, off = 4, 8.0, 3.0, 2.0
    volume = side**3
    handle, simulation = built([ends(off * volume / wanted, off)], [straight(*[2] * links)], side, bending=bending,
                               capacity_links=5)  # fmt: skip
    simulation.report_work = True
    simulation.step(100)
    m = np.arange(1, links + 1)
    logs = m * np.log(wanted) - gammaln(m + 1) + gammaln(links) - gammaln(m) - gammaln(links - m + 1)
    expected = np.exp(logs - logs.max())
    expected /= expected.sum()
    seen, cosines, kinetic = [], [], []
    for _ in range(1500):
        simulation.step(12)
        state = look(simulation)
        own = handle.subunits(state)
        assert own.sum() == 2 * links
        seen.append(np.count_nonzero(own))
        cosines += [joints(state, handle).sum() if seen[-1] < links else 0.0]
        kinetic.append(state.kinetic_energy - 0.5 * (3 * (links + seen[-1]) - links))
    seen = np.array(seen)
    for count, share in zip(m, expected, strict=True):
        check_mean(f"{count} pieces", seen == count, share, sees=0.14, time_series=True)
    kappa = bending / 2.0
    cosine = 1.0 / np.tanh(kappa) - 1.0 / kappa if bending else 0.0
    check_mean("cosines", np.array(cosines) - (links - seen) * cosine, 0.0, sees=0.35, time_series=True)
    check_mean("kinetic energy", np.array(kinetic), 0.0, sees=0.8, time_series=True)
    assert not simulation.system["Annealing"].driven
    assert state.chemical_work == 0.0


@pytest.mark.parametrize("bending", [0.0, 6.0])
def test_pieces_in_a_field(bending):
    """With U = a cos(2 pi x/L) of each node, pieces weigh the integrals of exp(-U/kT) over places and directions."""
    side, wanted, a, off, length, n = 8.0, 1.0, 1.5, 2.0, 2.0, 400_000
    rng = np.random.default_rng(1)
    x, cosine = rng.uniform(0.0, side, n), rng.uniform(-1.0, 1.0, n)
    # The next link, by the law of its joint.
    kappa, u = bending / length, rng.random(n)
    bend = 1.0 + np.log(1.0 - u * (1.0 - np.exp(-2.0 * kappa))) / kappa if bending else 1.0 - 2.0 * u
    turn = np.cos(2.0 * np.pi * rng.random(n))
    following = cosine * bend + np.sqrt((1.0 - cosine**2) * np.maximum(0.0, 1.0 - bend**2)) * turn
    nodes = x + length * np.stack([0.0 * cosine, cosine, cosine + following])
    u = a * np.cos(2.0 * np.pi * nodes / side)
    ratio = 0.5 * wanted * np.exp(-u[:2].sum(axis=0)).mean() ** 2 / np.exp(-u.sum(axis=0)).mean()
    field = [lambda actin: mp.forces.ExternalField(actin, "1.5*cos(2*pi*x/8)")]
    handle, simulation = built([ends(off * side**3 / wanted, off)], [straight(2, 2)], side, field, bending=bending)
    simulation.step(200)
    seen = []
    for _ in range(2000):
        simulation.step(16)
        seen.append(np.count_nonzero(handle.subunits(simulation.context.get_state(positions=True))))
    check_mean("two pieces", np.array(seen) == 2, ratio / (1.0 + ratio), sees=0.13, time_series=True)


def ways(n):
    """In how many ways n subunits can be links of 4, but for those at ends, of 2 to 5."""
    return sum(n == a for a in range(2, 6)) + sum(
        n == a + b + 4 * k for a in range(2, 6) for b in range(2, 6) for k in range(9))  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "nearest", "bending", "grows"),
    [
        ((4,), (4,), 8, 0.0, False), ((4,), (4, 4), 6, 0.0, False), ((4, 4), (4,), 6, 4.0, False),
        ((5, 4), (4, 4, 3), 4, 4.0, False), ((5, 4), (4, 4, 3), 4, 4.0, True), ((3,), (2,), 5, 4.0, True),
    ],
)  # fmt: skip
def test_rate_at_which_two_ends_join(first, second, nearest, bending, grows):
    """k_on c/V 4 pi g(u'|u) w(n) w(m)/w(n + m), where they stand still."""
    copies, angle, reach, on = 600, 0.7, 1.5, 3.0
    one = straight(*first)
    other = straight(*second)[:, 2:] * [np.sin(angle), 0.0, np.cos(angle)] + one[-1] + [0.3, 0.2, 0.5]
    nodes = [own + [60.0 * k, 0.0, 0.0] for k in range(copies) for own in (one, other)]
    jumps = [ends(on, 0.0, reach)] + [growth(0.0, 0.0)] * grows
    handle, simulation = built(jumps, nodes, None, mass=STILL, bending=bending, room=2 * copies, capacity_links=8)
    rate = on * nearest / (4.0 / 3.0 * np.pi * reach**3)
    if bending:
        kappa = bending / (0.5 * (first[-1] + second[0]))
        rate *= 2.0 * kappa * np.exp(kappa * (np.cos(angle) - 1.0)) / (1.0 - np.exp(-2.0 * kappa))
    if grows:
        rate *= ways(sum(first)) * ways(sum(second)) / ways(sum(first) + sum(second))
    simulation.integrator.set(timestep=0.7 / rate)
    simulation.step(1)
    joined = handle.subunits(look(simulation))[1::2] == 0
    check_mean("joined", joined, 1.0 - np.exp(-0.7), sees=0.17)


def test_rate_at_which_bent_filaments_part_in_a_field():
    """k_off c ⟨min{1, e^{-ΔU/kT}}⟩, ΔU without the joint that goes: its 3 kT would let three times as many part.

    By a displacement d of the second link ΔU is 2 a d_z, since the new node comes to d of one at z = 0. Sees 0.16.
    """
    copies, reach, off, a = 600, 1.5, 3.0, 2.0
    one = np.array([[0.0, 0, -2], [0, 0, 0], [2, 0, 0]])
    nodes = [one + [0.0, 60.0 * k, 0.0] for k in range(copies)]
    field = [lambda actin: mp.forces.ExternalField(actin, f"{a}*z")]
    jumps = [ends(0.0, off, reach)]
    handle, simulation = built(jumps, nodes, None, field, mass=STILL, bending=6.0, room=2 * copies)
    z = np.linspace(-reach, reach, 20_001)
    accepted = np.average(np.minimum(1.0, np.exp(-2.0 * a * z)), weights=reach**2 - z**2)
    rate = 4.0 * off * accepted
    simulation.integrator.set(timestep=0.7 / rate)
    simulation.step(1)
    check_mean("parted", handle.subunits(look(simulation))[:copies] == 2, 1.0 - np.exp(-0.7), sees=0.17)


@pytest.mark.parametrize(("end", "bending"), [("both", 4.0), ("plus", 0.0), ("minus", 0.0)])
def test_lengths_of_filaments_that_grow_begin_and_join(end, bending):
    """All together in balance: of m subunits there are K V (C/K_D)^m on average, Poisson distributed."""
    z, wanted, c, side, off, n = 0.6, 0.8, 0.5, 10.0, 1.0, 2
    weight = wanted / side**3 / z**n
    handle, simulation = built(
        [seeds(n, 2.0 * wanted / (side**3 * c**n), 2.0), growth(10.0, 10.0 * c / z, end), ends(off / weight, off)], [],
        side, bending=bending, room=16, capacity_links=8)  # fmt: skip
    simulation.step(200)
    seen = []
    for _ in range(2200):
        simulation.step(20)
        seen.append(handle.subunits(simulation.context.get_state(positions=True)))
    seen = np.array(seen)
    assert not simulation.system["Annealing"].driven
    for m in range(n, n + 6):
        check_mean(f"filaments of {m}", np.count_nonzero(seen == m, axis=1), wanted * z ** (m - n), sees=0.2,
                   time_series=True)  # fmt: skip
    check_mean("filaments", np.count_nonzero(seen, axis=1), wanted / (1.0 - z), sees=0.6, time_series=True)
    counts = simulation.context.get_state().counts
    assert counts["Annealing"].accepted > 500


def test_seeds_that_join_without_growth():
    """Links of seeds alone: all subunits and their states are counted, however many join."""
    n, constant = 5, 2.0
    age = lambda actin, _: mp.jumps.Ageing(actin, (0.2,), states=("T", "D"))  # noqa: E731
    pool = mp.Pool(volume=1000.0, counts={"G": 100})
    rate = 0.5 * 1000.0 ** (n - 1) / 100.0**n
    handle, simulation = built([age, seeds(n, 20.0 * rate, 0.5), ends(400.0 / constant, 0.02)], [], 12.0, pool=pool,
                               room=22, capacity_links=6)  # fmt: skip
    simulation.step(400)
    state = look(simulation)
    own = handle.subunits(state)
    assert own.sum() + state.pools["G"] == 100
    assert own.max() >= 2 * n
    assert (handle.ages(state).sum(axis=1) == own).all()
    assert (handle.ages(state).sum(axis=0) > 0).all()


def two_in_line(gap=0.5, second=(4, 4), first=(4, 4)):
    a = straight(*first)
    return [a, straight(*second) + a[-1] + [0.0, 0.0, gap]]


def test_joined_filaments_keep_what_they_have():
    """Subunits and their states, in order; caps, ids and places of nodes; the first moves where it is shorter."""
    age = lambda actin, _: mp.jumps.Ageing(actin, (2.0, 1.0), start="ATP")  # noqa: E731
    for first, second in (((4,), (4, 4, 4)), ((4, 4, 4, 4), (4, 4))):
        handle, simulation = built([age, ends(0.0, 0.0)], two_in_line(0.5, second, first), None, room=2,
                                   capacity_links=7, mass=STILL)  # fmt: skip
        store = simulation.context._store
        rows = handle.kind.ends_of(look(simulation))
        store.arrays["caps"][store.layout.rank[[rows[0, 0], rows[1, 1]]]] = [1, 2]
        simulation.step(12)
        before = look(simulation)
        states = before.jumps["Ageing"]["states"]
        simulation.integrator.set(timestep=1e-9)
        simulation.system["Annealing"].set(on_rate=1e14)
        simulation.step(1)
        after = look(simulation)
        assert handle.subunits(after).tolist() == [sum(first) + sum(second), 0]
        joined = after.jumps["Ageing"]["states"][0]
        assert len(set(joined.tolist())) > 1
        assert joined.tolist() == [*states[0][states[0] >= 0], *states[1][states[1] >= 0]]
        assert handle.kind.caps_of(after)[0].tolist() == [1, 2]
        ids = [one.ids[handle.kind.all_rows] for one in (before, after)]
        lost = np.setdiff1d(*ids)
        assert lost.tolist() == [before.ids[handle.kind.ends_of(before)[1, 0]]]
        x = after.positions[handle.kind.slots[0]]
        x = x[np.isfinite(x[:, 0])]
        np.testing.assert_allclose(x[:, :2], 0.0, atol=1e-6)
        np.testing.assert_allclose(np.diff(x[:, 2]), 4.0, atol=1e-6)
        moved = 0.5 if len(first) < len(second) else 0.0
        np.testing.assert_allclose(x[0], before.positions[handle.kind.ends_of(before)[0, 0]] + [0, 0, moved], atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "options"),
    [
        (two_in_line(3.6), {}),
        (two_in_line(second=(4, 4, 4)), {"capacity_links": 4}),
        (two_in_line(second=(3, 4)), {"grows": True}),
        (two_in_line(first=(4, 3)), {"grows": True}),
        ([np.array([[0.0, 0, 0], [4, 0, 0], [4, 4, 0], [0, 4, 0], [0, 0, 0.001]])], {}),
    ],
)
def test_ends_that_do_not_join(nodes, options):
    """Too far away, for more links than there is room for, where a link is not full, and those of one filament."""
    jumps = [ends(1e14, 0.0)] + [growth(0.0, 0.0)] * options.pop("grows", False)
    options = {"capacity_links": 8, **options}
    handle, simulation = built(jumps, nodes, None, mass=STILL, timestep=1e-9, **options)
    simulation.step(3)
    assert np.count_nonzero(handle.subunits(look(simulation))) == len(nodes)


def test_a_cap_keeps_ends_apart():
    for which in ((0, 1), (1, 0), (None, None)):
        handle, simulation = built([ends(1e14, 0.0)], two_in_line(), None, capacity_links=8, mass=STILL, timestep=1e-9)
        store = simulation.context._store
        if which[0] is not None:
            store.arrays["caps"][store.layout.rank[handle.kind.ends_of(look(simulation))[which]]] = 1
        simulation.step(1)
        assert np.count_nonzero(handle.subunits(look(simulation))) == (1 if which[0] is None else 2)


def test_rates_that_other_jumps_do_not_share_are_driven():
    """What drives two ends to join is kT ln of the weight by seeds and growth over that of the jump."""
    n = 2
    jumps = [seeds(n, 1e-4, 2.0), growth(8.0, 8.0), ends(1e6, 1.0, 5.0)]
    _, simulation = built(jumps, [straight(4, 4, 4)] * 4, 20.0, room=40, capacity_links=16)
    annealing = simulation.system["Annealing"]
    assert annealing.driven
    heard = simulation.context.events()
    simulation.step(200)
    events = [event for event in heard.heard() if event.jump == "Annealing"]
    affinity = np.log(1e-4 / 2.0 * (8.0 / 8.0) ** n * 1e6)
    kinds = {event.kind for event in events}
    assert kinds == {"part", "join"}
    for event in events:
        assert event.chemical_energy == pytest.approx(affinity if event.kind == "join" else -affinity)


@pytest.mark.parametrize(("first", "in_step"), [((4, 4), True), ((4, 3), False)])
def test_lattices_continue_where_filaments_join(first, in_step):
    """What the other holds is held where it was, unless that is its first place, or places are not in step."""
    copies, forces = 30, {}

    def springs(actin):
        return forces.setdefault("springs", mp.forces.Links([], [], stiffness=1.0, length=0.5, name="springs"))

    def heads(actin, species):
        numbers = {"dissociation_constants": (1.0, 1e6), "off_rates": (1.0, 1e-9), "name": "heads"}
        forces["lattice"] = actin.lattice(2.0)
        return mp.jumps.CrosslinkerBinding(forces["springs"], forces["lattice"], pool=species, **numbers)

    nodes = [one + [20.0 * k, 0.0, 0.0] for k in range(copies) for one in two_in_line(first=first)]
    pool = mp.Pool(100.0, {"G": 500})
    handle, simulation = built([heads, ends(0.0, 0.0)], nodes, None, [springs], pool, 2 * copies, 8, STILL)
    simulation.step(60)
    simulation.integrator.set(timestep=1e-12)
    before = look(simulation)
    simulation.system["Annealing"].set(on_rate=1e16)
    simulation.step(1)
    after = look(simulation)
    lattice, joined = forces["lattice"], handle.subunits(after)[1::2] == 0
    held, where = [], []
    for state in (before, after):
        rows = state.jumps["heads"]["links"].max(axis=1)
        held.append(np.column_stack([lattice.filaments[rows], lattice.numbers_in(state)[0][rows]]))
        where.append(lattice[rows].positions(state))
        assert not np.isnan(where[-1]).any()
    of_other = held[0][:, 0] % 2 == 1
    blocked = np.isin(np.arange(copies), held[0][of_other & (held[0][:, 1] == 0), 0] // 2)
    assert 5 < np.count_nonzero(blocked) < copies - 5
    assert (joined == ~blocked & in_step).all()
    # The other one comes down by half a rise where both join.
    where[0][of_other & joined[held[0][:, 0] // 2], 2] -= 0.5
    order = [np.lexsort(x.round(3).T) for x in where]
    np.testing.assert_allclose(where[0][order[0]], where[1][order[1]], atol=1e-6)
    expected = held[0].copy()
    moved = of_other & joined[held[0][:, 0] // 2]
    expected[moved] += [-1, sum(first) // 2]
    assert sorted(expected.tolist()) == sorted(held[1].tolist())
    assert simulation.context.get_state().pools["G"] == before.pools["G"]


@pytest.mark.parametrize(
    ("error", "phrase", "more", "given"),
    [
        (ParameterError, "give two of on_rate=", {"dissociation_constant": 1.0}, {}),
        (ParameterError, "on_rate", {"on_rate": -1.0}, {}),
        (ParameterError, "reach", {"reach": 0.0}, {}),
        (ParameterError, "need a FixmanPotential", {}, {"metric": False}),
        (TopologyError, "add 'actin' with capacity_links= and capacity_filaments=", {},
         {"capacity_links": None, "room": None}),
        (ParameterError, "Annealing", {"reach": 7.0}, {}),
    ],
)  # fmt: skip
def test_refusals(error, phrase, more, given):
    numbers = {"on_rate": 1.0, "off_rate": 1.0, "reach": 1.0} | more
    refuses(error, phrase, lambda: built([lambda a, _: mp.jumps.Annealing(a, **numbers)], [straight(2, 2)], **given))
