"""Links that bind and let go: equilibrium of sets of links, waiting times, heat, and a network that links itself.

False alarms: 1e-6 for each statistical check (see medyanpy.testing); what each would see stands with it. Rates against
the master equation in time are in tests/jumps/test_jump_contract.py, bits and files in test_jumps.py there. kT = 1.
"""

import itertools
import math

import numpy as np
import pytest
from builders import one_bead

import medyanpy as mp
from medyanpy.testing import check_chi_square, check_mean

STIFFNESS, LENGTH = 1.5, 1.0


def energy(x, y):
    return 0.5 * STIFFNESS * (np.linalg.norm(np.subtract(x, y), axis=-1) - LENGTH) ** 2


def system_of(topology, *groups, jumps=1, **numbers):
    """A system with links, and as many jumps as are asked for: for each a group of sites, or two."""
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links([], [], stiffness=STIFFNESS, length=LENGTH))
    for k in range(jumps):
        of_k = {key: value[k] if isinstance(value, tuple) else value for key, value in numbers.items()}
        system.add_jump(mp.jumps.LinkBinding(links, *groups[k], name=f"jump {k}", **of_k))
    return system


def copies_of(x, copies):
    """Sites (n, 3), once in each copy, 1000 nm apart: anchors, copy by copy."""
    apart = np.zeros((copies, 1, 3))
    apart[:, 0, 2] = 1000.0 * np.arange(copies)
    return mp.Sites.anchors((np.asarray(x, float)[None] + apart).reshape(-1, 3))


def at_rest(system, time, steps=1):
    """After a time in which all copies have forgotten their start, in two letters or more."""
    context = mp.Context(system, mp.BrownianIntegrator(time / steps, kT=1.0, seed=1), threads=2)
    context.step(steps)
    return context.get_state(positions=True)


def matchings(pairs, allowed=lambda _: True):
    """Every set of pairs of which no two share a site, and which is allowed."""
    sets = (s for n in range(len(pairs) + 1) for s in itertools.combinations(pairs, n))
    return [s for s in sets if len({i for p in s for i in p}) == 2 * len(s) and allowed(s)]


def check_sets(what, sets, weights, found, sees):
    """Sets found in copies, (copies,) of frozenset, against weights; sets expected fewer than ten times together."""
    number = {frozenset(s): k for k, s in enumerate(sets)}
    counts = np.zeros(len(sets))
    for one in found:
        assert one in number, f"{what}: {sorted(one)} may not be"
        counts[number[one]] += 1
    expected = np.array(weights, float) / np.sum(weights) * len(found)
    rare = expected < 10.0
    if rare.any():
        order = np.argsort(expected)
        last = np.searchsorted(np.cumsum(expected[order]), 10.0) + 1
        rare = np.isin(np.arange(len(sets)), order[:max(last, rare.sum())])
        counts, expected = (np.append(a[~rare], a[rare].sum()) for a in (counts, expected))
    check_chi_square(what, counts, expected, sees=sees)


def sets_in_copies(pairs, n_a, n_b, copies):
    """Links (k, 2) of all copies as one frozenset for each."""
    found = [set() for _ in range(copies)]
    for i, j in pairs:
        assert i // n_a == j // n_b
        found[i // n_a].add((int(i % n_a), int(j % n_b)))
    return [frozenset(s) for s in found]


# Sets of links at rest ----------------------------------------------------------------------------------------------

THREE_A = np.array([[0.0, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 2.1, 0.0]])
THREE_B = np.array([[1.3, 0.1, 0.0], [0.9, 1.2, 0.0], [1.6, 1.7, 0.3]])


def three_by_three(copies, **numbers):
    sites = copies_of(THREE_A, copies), copies_of(THREE_B, copies)
    state = at_rest(system_of(one_bead(), sites, off_rate=1.0, on_rate=1.4, **numbers), 12.0)
    return sets_in_copies(state.jumps["jump 0"]["links"], 3, 3, copies)


def weight(s, ratio=1.4):
    return math.prod(ratio * math.exp(-energy(THREE_A[i], THREE_B[j])) for i, j in s)


def sides(sets):
    """Pairs (i, j) of sites on either side, as disjoint names."""
    return [tuple((i, j - 3) for i, j in s) for s in sets]


ALL_NINE = [(i, 3 + j) for i in range(3) for j in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("load_sharing", [0.0, 0.5, 1.0])
def test_every_matching_of_three_by_three_sites_has_the_product_of_its_weights(load_sharing):
    sets = sides(matchings(ALL_NINE))
    assert len(sets) == 34
    found = three_by_three(5_000, load_sharing=load_sharing)
    check_sets(f"matchings, λ = {load_sharing}", sets, [weight(s) for s in sets], found, sees=0.175)


@pytest.mark.slow
def test_a_pair_alone_is_bound_with_probability_w_over_one_plus_w():
    """Twelve distances, from compressed to nearly out of reach."""
    r, copies = np.linspace(0.2, 3.4, 12), 30_000
    pairs = np.tile([[[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]], (1, 12, 1)) * r[None, :, None]
    pairs[:, :, 1] = 300.0 * np.arange(12)
    sites = [copies_of(side, copies // 12) for side in pairs]
    ratio = 3.0
    state = at_rest(system_of(one_bead(), sites, off_rate=1.0, on_rate=ratio), 12.0)
    bound = np.bincount(state.jumps["jump 0"]["links"][:, 0] % 12, minlength=12)
    w = ratio * np.exp(-energy(pairs[0], pairs[1]))
    expected = copies // 12 * w / (1.0 + w)
    check_chi_square("pairs alone", np.append(bound, copies - bound.sum()),
                     np.append(expected, copies - expected.sum()), sees=0.06)  # fmt: skip


@pytest.mark.slow
def test_a_finite_pool_weighs_its_sets():
    """N!/[(N - n)! N^n] for n of N; one set of sites, looked at again when it has forgotten."""
    pool, looks = 2, 12_000
    system = system_of(one_bead(), (copies_of(THREE_A, 1), copies_of(THREE_B, 1)), off_rate=1.0, on_rate=1.4, pool=pool)
    context = mp.Context(system, mp.BrownianIntegrator(12.0, kT=1.0, seed=2), threads=1)
    found = []
    for _ in range(looks):
        context.step(1)
        found.append(frozenset((int(i), int(j)) for i, j in context.get_state(positions=True).jumps["jump 0"]["links"]))
    sets = [s for s in sides(matchings(ALL_NINE)) if len(s) <= pool]
    check_sets("a pool", sets, [weight(s) * math.perm(pool, len(s)) / pool ** len(s) for s in sets], found, sees=0.11)


@pytest.mark.slow
def test_two_jumps_at_one_site_share_its_room():
    """The middle one of three sites may be bound by either jump, whose rates differ."""
    copies, on, off = 15_000, (2.0, 0.8), (1.0, 0.5)
    x = np.array([[0.0, 0.0, 0.0], [1.2, 0.0, 0.0], [0.0, 0.7, 0.0]])
    topology = mp.Topology()
    every = [topology.add_beads(copies_of(x[i : i + 1], copies).anchor_positions, 1.0, friction=1e30) for i in range(3)]
    middle, one, other = map(mp.Sites.beads, every)
    system = system_of(topology, (middle, one), (middle, other), jumps=2, off_rate=off, on_rate=on)
    # Jumps act one after another: it is letters that must be many.
    state = at_rest(system, 20.0, 40)
    bound = np.array([len(state.jumps[f"jump {k}"]["links"]) for k in (0, 1)])
    w = np.array([on[k] / off[k] * math.exp(-energy(x[0], x[1 + k])) for k in (0, 1)])
    expected = copies * w / (1.0 + w.sum())
    check_chi_square("shared sites", np.append(bound, copies - bound.sum()),
                     np.append(expected, copies - expected.sum()), sees=0.08)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("separation", "same_filament"), [(0.0, False), (1.5, False), (0.0, True), (1.5, True)])
def test_separation_and_filaments_only_take_sets_away(separation, same_filament):
    """Two filaments of three sites, so heavy that they stay; all sites in one group, among themselves."""
    copies = 8_000
    along = np.array([0.0, 1.0, 2.0])
    x = np.concatenate([np.column_stack([along, y + 0.0 * along, 0.0 * along]) for y in (0.0, 1.1)])
    nodes = [x[3 * f : 3 * f + 3] + [0.0, 0.0, 1000.0 * c] for c in range(copies) for f in (0, 1)]
    topology = mp.Topology()
    filaments = topology.add_filaments(nodes, node_mass=1e14, node_friction=1.0, constrained=False)
    sites = filaments.sites_along(np.repeat(np.arange(2 * copies), 3), np.tile(along, 2 * copies))
    system = system_of(topology, (sites,), off_rate=1.0, on_rate=0.8, separation=separation,
                       same_filament=same_filament)  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 15.0, kT=1.0, seed=3), threads=2)
    context.step(1)
    pairs = np.sort(context.get_state(positions=True).jumps["jump 0"]["links"], axis=1)
    found = [set() for _ in range(copies)]
    for i, j in pairs:
        found[i // 6].add((int(i % 6), int(j % 6)))

    def allowed(s):
        bound = [i for p in s for i in p]
        near = ((i, j) for i, j in itertools.combinations(bound, 2) if i // 3 == j // 3)
        return (same_filament or all(i // 3 != j // 3 for i, j in s)) and all(
            abs(along[i % 3] - along[j % 3]) >= separation for i, j in near
        )

    sets = matchings(list(itertools.combinations(range(6), 2)), allowed)
    weights = [math.prod(0.8 * math.exp(-energy(x[i], x[j])) for i, j in s) for s in sets]
    check_sets("filaments", sets, weights, [frozenset(s) for s in found], sees=0.15)


@pytest.mark.slow
def test_links_between_two_rods_are_dense_where_their_energy_is_low():
    """ε = 0.05: in proportion to exp(-U/kT). With room for all partners pairs are independent, bound with w/(1 + w)."""
    along, copies, ratio = 0.4 * np.arange(8), 4_000, 0.05
    a, b = (np.column_stack([along, y + 0.0 * along, 0.0 * along]) for y in (0.0, 0.8))
    sites = copies_of(a, copies), copies_of(b, copies)
    state = at_rest(system_of(one_bead(), sites, off_rate=1.0, on_rate=ratio, partners=8), 12.0)
    pairs = state.jumps["jump 0"]["links"]
    i, j = pairs.T % 8
    w = ratio * np.exp(-energy(a[:, None], b[None]))
    expected = copies * w / (1.0 + w)
    # By the distance along the rods, and by the place where there is none.
    strip = np.abs(np.arange(8)[:, None] - np.arange(8)[None])
    for what, name in (("over distances", strip), ("over places", np.arange(8)[:, None] + 0 * strip)):
        counts, law = np.bincount(name[i, j], minlength=8), np.bincount(name.ravel(), expected.ravel())
        check_chi_square(what, counts, law / law.sum() * counts.sum(), sees=0.12)
    numbers = np.bincount(pairs[:, 0] // 8, minlength=copies)
    check_mean("links of two rods", numbers, expected.sum() / copies, sees=0.12 * expected.sum() / copies)


# Waiting times ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("timestep", [0.01, 3.0])
def test_waiting_times_of_a_pair_are_exponential(timestep):
    """However time is cut into letters. Mean, mean square and mean of exp(-kt), which sees the short ones."""
    on, off, r, share = 2.0, 1.0, 1.9, 0.3
    system = system_of(one_bead(), (mp.Sites.anchors([[0.0, 0, 0]]), mp.Sites.anchors([[r, 0, 0]])), off_rate=off,
                       on_rate=on, load_sharing=share)  # fmt: skip
    u = energy([0.0, 0, 0], [r, 0, 0])
    k = {"unbind": off * math.exp(share * u), "bind": on * math.exp(-(1.0 - share) * u)}
    context = mp.Context(system, mp.BrownianIntegrator(timestep, kT=1.0, seed=5), threads=1)
    heard = context.events()
    context.step(round(9_000 / timestep))
    events = heard.heard()
    waited = np.diff([0.0, *(e[1] for e in events)])
    for kind, rate in k.items():
        t = rate * waited[[e[3] == kind for e in events]]
        assert len(t) > 4000
        check_mean(f"time to {kind}", t, 1.0, sees=0.15)
        check_mean(f"squares of times to {kind}", t**2, 2.0, sees=0.6)
        check_mean(f"short times to {kind}", np.exp(-t), 0.5, sees=0.04)


# Heat ---------------------------------------------------------------------------------------------------------------


def heat_of_events(events, rates=None, seed=1):
    """Beads in wells, each bound now and then by an anchor: energy of the events in each of many stretches of time."""
    n = 400
    topology = mp.Topology()
    middles = np.zeros((n, 3))
    middles[:, 2] = 1000.0 * np.arange(n)
    beads = topology.add_beads(middles, mass=1.0, friction=0.5, name="beads")
    system = system_of(topology, (mp.Sites.beads(beads), mp.Sites.anchors(middles + [1.2, 0.0, 0.0])), off_rate=0.4,
                       on_rate=0.8, rates=rates)  # fmt: skip
    system.add_force(mp.forces.Links(mp.Sites.beads(beads), mp.Sites.anchors(middles), stiffness=1.0, name="wells"))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.1, kT=1.0, seed=seed), threads=2)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    simulation.step(600)
    heard = simulation.context.events()
    stretches = []
    done = 0
    while done < events:
        simulation.step(40)
        energies = [e[6] for e in heard.heard()]
        heard.forget(len(energies))
        stretches.append(sum(energies) / n)
        done += len(energies)
    return np.array(stretches), done / n / len(stretches)


@pytest.mark.slow
def test_at_rest_events_take_no_heat_on_average():
    """Each bead's events in 4 time units: 0, where an error of 0.015 kT an event would be seen."""
    heat, events = heat_of_events(330_000)
    check_mean("heat of events", heat, 0.0, sees=0.015 * events, time_series=True)


@pytest.mark.slow
def test_rates_out_of_balance_take_heat():
    """The positive control: MEDYAN's flat window binds at all lengths alike."""
    heat, events = heat_of_events(20_000, mp.jumps.FlatWindow(0.0, 3.5, force=4.0))
    assert heat.mean() > 0.05 * events
    with pytest.raises(AssertionError, match="heat of events: mean"):
        check_mean("heat of events", heat, 0.0, sees=0.05 * events, time_series=True)


@pytest.mark.long
def test_a_million_events_take_no_heat():
    heat, events = heat_of_events(1_000_000)
    check_mean("heat of events", heat, 0.0, sees=0.006 * events, time_series=True)


# A network ----------------------------------------------------------------------------------------------------------


def links_between_rods(offsets, variance):
    """The mean over positions and directions of two straight filaments of the sum of exp(-U/kT) over pairs of sites.

    Their middles are apart by a normal vector of this variance, and sites `offsets` from them: for two directions at
    an angle whose cosine is c, sites are apart by that vector and m, m² = s² + t² - 2 s t c.
    """
    r, wr = np.polynomial.legendre.leggauss(400)
    reach = LENGTH + math.sqrt(2.0 * 25.0 / STIFFNESS)
    r, wr = 0.5 * reach * (r + 1.0), 0.5 * reach * wr
    c, wc = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for s, t in itertools.product(offsets, repeat=2):
        m = np.sqrt(np.maximum(s * s + t * t - 2.0 * s * t * c, 1e-12))[:, None]
        density = np.exp(-(r**2 + m**2) / (2.0 * variance)) * np.sinh(r * m / variance) / (r * m / variance)
        density /= (2.0 * np.pi * variance) ** 1.5
        total += 0.5 * wc @ density @ (wr * 4.0 * np.pi * r**2 * np.exp(-0.5 * STIFFNESS * (r - LENGTH) ** 2))
    return total


def mean_number(n, w):
    """Of links between n filaments of which each has one at most, every pair of weight w: Σ n!/((n-2k)! k! 2^k) w^k."""
    k = np.arange(n // 2 + 1)
    logs = [math.lgamma(n + 1) - math.lgamma(n - 2 * i + 1) - math.lgamma(i + 1) + i * math.log(0.5 * w) for i in k]
    p = np.exp(np.array(logs) - max(logs))
    return float(p @ k / p.sum())


def links_of_a_network(steps, seed=1):
    """100 stiff filaments, each by its middle in one well, with one link at most: how many there are."""
    n, stiffness, ratio = 100, 0.02, 0.15
    rng = np.random.default_rng(4)
    u = rng.normal(size=(n, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    middles = rng.normal(0.0, math.sqrt(1.0 / stiffness), (n, 3))
    nodes = middles[:, None] + np.array([-1.5, -0.5, 0.5, 1.5])[None, :, None] * u[:, None]
    topology = mp.Topology()
    filaments = topology.add_filaments(list(nodes), node_mass=1.0, node_friction=0.25)
    which, link = np.repeat(np.arange(n), 3), np.tile(np.arange(3), n)
    system = system_of(topology, (filaments.sites(which, link, 0.5),), off_rate=1.0, on_rate=ratio, separation=10.0)
    ends = filaments.sites(np.arange(n), np.ones(n, int), 0.5)
    system.add_force(mp.forces.Links(ends, mp.Sites.anchors(np.zeros((n, 3))), stiffness=stiffness, name="well"))
    system.add_force(mp.forces.FilamentBending(filaments, 10.0))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed + 1)
    context.step(3000)
    numbers = np.empty(steps // 40)
    for k in range(len(numbers)):
        context.step(40)
        numbers[k] = len(context.get_state(positions=True).jumps["jump 0"]["links"])
    return numbers, mean_number(n, ratio * links_between_rods((-1.0, 0.0, 1.0), 2.0 / stiffness))


@pytest.mark.slow
def test_a_network_that_links_itself_has_as_many_links_as_it_should():
    numbers, expected = links_of_a_network(50_000)
    assert 5.0 < expected < 30.0
    check_mean("links of a network", numbers, expected, sees=0.18 * expected, time_series=True)


@pytest.mark.long
def test_a_network_has_its_links_to_two_percent():
    numbers, expected = links_of_a_network(2_000_000)
    check_mean("links of a network", numbers, expected, sees=0.02 * expected, time_series=True)


# In a box that changes -----------------------------------------------------------------------------------------------

N_BEADS, STIFF, SHORT = 6, 30.0, 0.2
#: Of the traps that keep a layer in its plane.
FLATTENED = 0.5
#: A trial changes the measure of the box by at most this share of what it is at the start: large, so that lists of
#: pairs made before it are wrong after it.
LARGE = 0.5


def beads_that_bind(barostat, box, constant, step, seed=1):
    """Six free beads of which every two may bind, one partner each, in a box at constant pressure or tension."""
    rng = np.random.default_rng(7)
    topology = mp.Topology()
    beads = topology.add_beads(rng.uniform(-2.0, 2.0, (N_BEADS, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology, box=box)
    links = system.add_force(mp.forces.Links([], [], stiffness=STIFF, length=SHORT))
    if box[2] is None:
        system.add_force(mp.forces.HarmonicTrap(beads, (0.0, 0.0, FLATTENED), [0.0, 0.0, 0.0]))
    binding = mp.jumps.LinkBinding(links, beads, off_rate=20.0, dissociation_constant=constant, reach=12.0, name="bind")
    system.add_jump(binding)
    system.add_jump(mp.jumps.BoxArea(rate=30.0, step=step, **barostat))
    context = mp.Context(system, mp.SplittingIntegrator("JBAOABJ", 0.06, kT=1.0, seed=seed), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=seed)
    return context, binding


def exact_in_a_box(scale, weight, least):
    """P(n links) and the mean of the measure of the box with n of them, for V^(N - n) weight^n exp(-V/scale) for each
    of N!/(2^n n! (N - 2n)!) sets of pairs, V from `least` on."""
    from scipy.special import gamma, gammaincc

    p, means = [], []
    for n in range(N_BEADS // 2 + 1):
        sets = math.factorial(N_BEADS) / (2**n * math.factorial(n) * math.factorial(N_BEADS - 2 * n))
        shape = N_BEADS - n + 1
        rest = gammaincc(shape, least / scale)
        p.append(sets * weight**n * scale**shape * gamma(shape) * rest)
        means.append(scale * shape * gammaincc(shape + 1, least / scale) / rest)
    p = np.array(p) / sum(p)
    return p, np.array(means)


def flat_weight(binding, constant):
    """Of a link between two beads in traps along z: its ε times the integral of exp(-U) over x, y, and z as the traps
    leave it, 1/nm² by the area that it takes."""
    low, high = binding.window(1.0)
    # Of two beads in traps of stiffness k, the difference of z has the variance 2/k.
    z = np.linspace(-high, high, 4001)
    of_z = np.exp(-0.25 * FLATTENED * z**2) * math.sqrt(FLATTENED / (4.0 * math.pi))
    r = np.linspace(0.0, high, 2001)
    length = np.hypot(r[None], z[:, None])
    inside = (length >= low) & (length <= high)
    ring = 2.0 * np.pi * r * np.exp(-0.5 * STIFF * (length - SHORT) ** 2) * inside
    return float(np.trapezoid(of_z * np.trapezoid(ring, r, axis=1), z)) / (constant * binding.volume(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("coupling", ["isotropic", pytest.param("area", marks=pytest.mark.long)])
def test_beads_bind_as_their_dissociation_constant_says_in_a_box_that_changes(coupling):
    """In a fluid at constant pressure, and in a layer at constant tension: how many links there are, the box, and the
    two together. Errors of 18 % of the number of links would be seen, of 8 % of the box, and 0.25 of a correlation."""
    scale, constant = (14.0, 0.04) if coupling == "isotropic" else (4.0, 0.04)
    if coupling == "isotropic":
        barostat, box = {"pressure": 1.0 / scale}, (5.0, 5.0, 5.0)
    else:
        barostat, box = {"tension": -1.0 / scale}, (5.0, 5.0, None)
    context, binding = beads_that_bind(barostat, box, constant, LARGE)
    width = 2.0 * binding.window(1.0)[1]
    weight, dimensions = (1.0 / constant, 3) if coupling == "isotropic" else (flat_weight(binding, constant), 2)
    p, means = exact_in_a_box(scale, weight, width**dimensions)
    context.step(500)
    rows = np.empty((10_000, 2))
    for row in rows:
        context.step(8)
        state = context.get_state(positions=True)
        row[:] = len(state.jumps["bind"]["links"]), np.prod([side for side in state.box if side is not None])
    assert all(counts.accepted > 2000 for counts in state.counts.values())
    number, measure = p @ np.arange(len(p)), p @ means
    assert 0.8 < number < 2.2
    check_mean("links", rows[:, 0], number, sees=0.18 * number, time_series=True)
    check_mean("boxes", rows[:, 1] / measure, 1.0, sees=0.08, time_series=True)
    both = (rows[:, 0] - number) * (rows[:, 1] - measure) / (rows[:, 0].std() * rows[:, 1].std())
    expected = (p * (np.arange(len(p)) - number)) @ means / (rows[:, 0].std() * rows[:, 1].std())
    check_mean("links and boxes", both, expected, sees=0.25, time_series=True)
