"""Laws of branches: where they begin, how many there are, and how they let go."""

import numpy as np
import pytest
from builders import STILL, refuses
from scipy.integrate import quad
from scipy.linalg import expm
from scipy.special import gammaln

import medyanpy as mp
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.testing import check_chi_square, check_mean

KT = 1.0
ANGLE = np.deg2rad(70.0)
N = 3


def row(n, spacing=1.0, direction=(0.0, 0.0, 1.0), start=(0.0, 0.0, 0.0)):
    """Nodes of a filament of n links of 2 nm."""
    return np.asarray(start) + 2.0 * spacing * np.arange(n + 1)[:, None] * np.asarray(direction)


def built(mothers, rates=(1.0, 1.0, 0.0), pool=None, *, spring=(4.0, 1.0), angle=(3.0, ANGLE), room=60, mass=STILL,
          timestep=0.05, seed=1, threads=1, forces=(), jumps=(), near=None, reach=None, spacing=1.0, box=None, n=N,
          capacity_links=6, rise=1.0, mothers_bend=0.0, daughters_bend=0.0, constrained=True):  # fmt: skip
    """Branches on straight mothers: a simulation. `jumps` are made of the daughters and the pool."""
    topology = mp.Topology()
    mother = topology.add_filaments(list(mothers), mass, 1.0, name="mothers", constrained=constrained)
    daughter = topology.add_filaments([], mass, 1.0, rise=rise, capacity_links=capacity_links, capacity_filaments=room,
                                      name="daughters")  # fmt: skip
    beads = None if near is None else near(topology)
    system = mp.System(topology, box=box)
    system.add_force(mp.forces.FixmanPotential(daughter, kT=KT))
    if mothers_bend:
        system.add_force(mp.forces.FilamentBending(mother, mothers_bend, name="bending of mothers"))
    if daughters_bend:
        system.add_force(mp.forces.FilamentBending(daughter, daughters_bend, name="bending of daughters"))
    for force in forces:
        system.add_force(force(daughter))
    springs = system.add_force(mp.forces.Links([], [], stiffness=spring[0], length=spring[1], name="springs"))
    angles = system.add_force(mp.forces.DirectionLinks([], [], [], [], stiffness=angle[0], angle=angle[1],
                                                       name="angles"))  # fmt: skip
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0, "Arp": 1.0}) if pool is None else pool)
    k, off, release = rates
    system.add_jump(mp.jumps.Branching(
        springs, angles, mother.lattice(spacing), daughter, pool["Arp"], pool["G"], n, rate=k, dissolution_rate=off,
        release_rate=release, near=beads, reach=reach))  # fmt: skip
    for jump in jumps:
        system.add_jump(jump(daughter, pool))
    return mp.Simulation(system, mp.BAGOGABIntegrator(timestep, kT=KT, seed=seed), threads=threads)


def look(simulation):
    return simulation.context.get_state(positions=True, velocities=True, energy=True)


def branches(state):
    """Places, and the filaments at these."""
    rows = state.jumps["Branching"]["links"]
    return rows[:, 0], rows[:, 1]


def moments(weight, *functions, upto):
    """Means of functions under a weight on 0 to `upto`."""
    norm = quad(weight, 0.0, upto)[0]
    return [quad(lambda x, f=f: f(x) * weight(x), 0.0, upto)[0] / norm for f in functions]


def born(stiffness=3.0, angle=ANGLE, spring=(4.0, 1.0), seed=1):
    """(cosine, turn, distance, direction of the distance) of many branches that have just begun."""
    rng = np.random.default_rng(7)
    directions = rng.normal(size=(30, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    mothers = [row(20, direction=d, start=100.0 * i * np.array([1.0, 0.3, 0.0])) for i, d in enumerate(directions)]
    simulation = built(mothers, (3.0, 0.0, 0.0), spring=spring, angle=(stiffness, angle), room=1300, capacity_links=2,
                       timestep=1e-6, seed=seed)  # fmt: skip
    simulation.system["Branching"].set(rate=2e6)
    simulation.step(1)
    state = look(simulation)
    place, node = branches(state)
    assert 1000 < len(place) < 1230
    lattice = simulation.system["Branching"].mothers
    along = directions[lattice.filaments[place]]
    rows = simulation.topology["daughters"].kind.all_rows[node]
    first, second = state.positions[rows], state.positions[rows + 1]
    link, r = (second - first) / N, first - lattice.positions(state)[place]
    np.testing.assert_allclose(np.linalg.norm(link, axis=1), 1.0, rtol=1e-9)
    cosine = np.einsum("ij,ij->i", link, along)
    # The turn, from the plane of the mother and z.
    z = np.array([0.0, 0.0, 1.0])
    one = np.cross(along, z)
    one /= np.linalg.norm(one, axis=1)[:, None]
    other = np.cross(along, one)
    turn = np.arctan2(np.einsum("ij,ij->i", link, other), np.einsum("ij,ij->i", link, one))
    distance = np.linalg.norm(r, axis=1)
    return cosine, turn, distance, r / distance[:, None], state


@pytest.mark.parametrize(("stiffness", "angle"), [(3.0, ANGLE), (25.0, ANGLE), (1.0, 0.0), (0.0, 1.0)])
def test_the_angle_of_branches_is_from_its_own_law(stiffness, angle):
    """Density sin(theta) exp(-k (1 - cos(theta - theta0))/kT), by quadrature; the turn about the mother is uniform."""
    cosine, turn, *_ = born(stiffness, angle)
    weight = lambda a: np.sin(a) * np.exp(-stiffness * (1.0 - np.cos(a - angle)))  # noqa: E731
    mean, square = moments(weight, np.cos, lambda a: np.cos(a) ** 2, upto=np.pi)
    width = np.sqrt(square - mean**2)
    check_mean("cosine", cosine, mean, sees=0.3 * width)
    check_mean("square of the cosine", (cosine - mean) ** 2, width**2, sees=0.5 * width**2)
    for m in (1, 2):
        check_mean(f"cos {m} turn", np.cos(m * turn), 0.0, sees=0.2)
        check_mean(f"sin {m} turn", np.sin(m * turn), 0.0, sees=0.2)


@pytest.mark.parametrize("spring", [(4.0, 1.0), (2.0, 0.0), (1.0, 6.0)])
def test_the_distance_of_branches_is_from_the_law_of_the_spring(spring):
    """Density r^2 exp(-k (r - l)^2/2kT), in any direction, by quadrature."""
    *_, distance, direction, _ = born(spring=spring)
    k, length = spring
    weight = lambda r: r**2 * np.exp(-0.5 * k * (r - length) ** 2)  # noqa: E731
    mean, square = moments(weight, lambda r: r, lambda r: r**2, upto=length + 12.0)
    spread = np.sqrt(square - mean**2)
    check_mean("distance", distance, mean, sees=0.3 * spread)
    check_mean("square", (distance - mean) ** 2, spread**2, sees=0.5 * spread**2)
    for c in range(3):
        check_mean("direction", direction[:, c], 0.0, sees=0.16)
        check_mean("direction squared", direction[:, c] ** 2, 1.0 / 3.0, sees=0.09)


def test_velocities_of_branches_are_those_of_maxwell():
    simulation = built([row(200)], (0.0, 0.0, 0.0), room=410, mass=1.0, timestep=1e-9)
    simulation.system["Branching"].set(rate=1e10)
    simulation.step(1)
    state = look(simulation)
    rows = simulation.topology["daughters"].kind.all_rows[branches(state)[1]]
    assert len(rows) > 380
    v, x = state.velocities, state.positions
    along = np.einsum("ij,ij->i", v[rows + 1] - v[rows], x[rows + 1] - x[rows])
    assert np.abs(along).max() < 1e-9
    check_mean("kinetic energy", 0.5 * (v[rows] ** 2 + v[rows + 1] ** 2).sum(axis=1), 2.5, sees=0.7)


def test_branches_of_a_pool_that_is_used_up():
    """M branches of P places: (k/k_off V^-4)^M P!/(M! (P - M)!) A!/(A - M)! G!/(G - 3M)!; all molecules are counted."""
    volume, arp, subunits = 50.0, 4, 11
    each = 4e-3 * volume
    pool = mp.Pool(volume=volume, counts={"G": subunits, "Arp": arp})
    simulation = built([row(2)], (each * volume**3, 1.0, 0.0), pool, timestep=0.5)
    places = len(simulation.system["Branching"].mothers)
    assert not simulation.system["Branching"].driven
    simulation.step(50)
    seen = []
    for _ in range(5000):
        simulation.step(2)
        state = look(simulation)
        m = len(branches(state)[0])
        own = simulation.topology["daughters"].subunits(state)
        assert set(own.tolist()) <= {0, N}
        assert (own.sum() + state.pools["G"], m + state.pools["Arp"], np.count_nonzero(own)) == (subunits, arp, m)
        seen.append(m)
    m = np.arange(min(arp, subunits // N) + 1)
    logs = m * np.log(each / volume) + gammaln(places + 1) - gammaln(places - m + 1) - gammaln(m + 1)
    logs += gammaln(arp + 1) - gammaln(arp - m + 1) + gammaln(subunits + 1) - gammaln(subunits - N * m + 1)
    expected = np.exp(logs) / np.exp(logs).sum()
    assert (expected > 0.05).sum() > 2
    for number, share in enumerate(expected):
        if share > 0.01:
            check_mean(f"{number} branches", np.array(seen) == number, share, sees=0.06, time_series=True)


def test_number_of_branches_in_time():
    """The master equation of a finite pool: M -> M + 1 at (P - M) k (A - M)/V, back at M (k_off + k_release).

    In a periodic box: the mother lies across one side, along another, and seeds across both.
    """
    arp, places, copies = 6, 5, 300
    k, off, release = 0.3, 1.0, 0.6
    found = []
    for seed in range(copies):
        pool = mp.Pool(volume=1.0, counts={"Arp": arp}, concentrations={"G": 1.0})
        simulation = built([row(2, start=(8.9, 4.0, 7.0))], (k, off, release), pool, timestep=0.2, seed=seed, room=80,
                           box=[9.0, 9.0, 9.0])  # fmt: skip
        assert simulation.system["Branching"].driven
        counts = []
        for steps in (1, 2, 4):
            simulation.step(steps)
            state = look(simulation)
            held = len(branches(state)[0])
            assert held + state.pools["Arp"] == arp
            counts.append((held, np.count_nonzero(simulation.topology["daughters"].subunits(state)) - held))
        found.append(counts)
    found = np.array(found)
    m = np.arange(places + 1)
    generator = np.diag((places - m[:-1]) * k * (arp - m[:-1]), 1) + np.diag(m[1:] * (off + release), -1)
    generator -= np.diag(generator.sum(axis=1))
    for i, t in enumerate((0.2, 0.6, 1.4)):
        p = expm(generator * t)[0]
        mean = p @ m
        check_mean(f"branches at {t} s", found[:, i, 0], mean, sees=0.6)
        check_mean(f"square at {t} s", (found[:, i, 0] - mean) ** 2, p @ (m - mean) ** 2, sees=1.0)
    # Those that have let go: release times the integral of the mean.
    fine = np.linspace(0.0, 1.4, 400)
    means = np.array([expm(generator * t)[0] @ m for t in fine])
    check_mean("free filaments", found[:, 2, 1], release * np.trapezoid(means, fine), sees=0.6)


def test_branches_in_a_field_weigh_its_energy():
    """The weight of a branch has the mean of exp(-U/kT) over what is drawn, by quadrature over the cosine."""
    kz, k_angle, spread = 0.5, 2.0, 0.5
    trap = [lambda f: mp.forces.HarmonicTrap(f, (0.0, 0.0, kz), [0.0, 0.0, 0.0])]
    weight = lambda a: np.sin(a) * np.exp(-k_angle * (1.0 - np.cos(a - ANGLE)))  # noqa: E731

    def of(a):
        # z of both nodes is Gaussian, with the mean of the place: 0.
        height = N * np.cos(a)
        precision = 1.0 / spread**2
        return np.sqrt(precision / (precision + 2.0 * kz)) * np.exp(
            -0.5 * kz * height**2 + 0.5 * (kz * height) ** 2 / (precision + 2.0 * kz))  # fmt: skip

    share = moments(weight, of, upto=np.pi)[0]
    assert share < 0.7
    mothers = [[[40.0 * i, 0.0, 0.0], [40.0 * i, 0.0, 2.0]] for i in range(40)]
    simulation = built(mothers, (1.5, 1.0, 0.0), spring=(1.0 / spread**2, 0.0), angle=(k_angle, ANGLE), forces=trap,
                       spacing=2.0, timestep=0.5)  # fmt: skip
    lattice = simulation.system["Branching"].mothers
    bottom = np.flatnonzero(lattice.numbers == 0)
    simulation.step(20)
    seen = []
    for _ in range(1200):
        simulation.step(4)
        seen.append(np.isin(bottom, branches(look(simulation))[0]).mean())
    ratio = 1.5 * share
    check_mean("share of places", np.array(seen), ratio / (1.0 + ratio), sees=0.05, time_series=True)


def network(seed=3, threads=1, jumps=(), rates=(0.6, 1.0, 0.0), mothers=6, **more):
    """Flexible mothers that move, with branches."""
    mothers = [row(6, start=(9.0 * i, 0.0, 0.0)) for i in range(mothers)]
    options = {"spring": (4.0, 1.0), "angle": (3.0, ANGLE), "mass": 1.0, "timestep": 0.02, "mothers_bend": 20.0,
               "room": 160}  # fmt: skip
    simulation = built(mothers, rates, seed=seed, threads=threads, jumps=jumps, **{**options, **more})
    simulation.context.set_velocities_to_temperature(kT=KT, seed=seed)
    return simulation


def test_number_of_branches_of_a_network_that_moves():
    """On mothers that move the law is the same; distances and angles stay those of the law; and no heat flows."""
    simulation = network(rates=(2.4, 4.0, 0.0), mothers=3)
    places = len(simulation.system["Branching"].mothers)
    simulation.step(400)
    heard = simulation.context.events()
    number, cosines, squares, kinetic = [], [], [], []
    weight = lambda a: np.sin(a) * np.exp(-3.0 * (1.0 - np.cos(a - ANGLE)))  # noqa: E731
    mean = moments(weight, np.cos, upto=np.pi)[0]
    radial = moments(lambda r: r**2 * np.exp(-2.0 * (r - 1.0) ** 2), lambda r: r**2, upto=9.0)[0]
    lattice, daughters = simulation.system["Branching"].mothers, simulation.topology["daughters"]
    ahead = lattice.bead_numbers.reshape(-1, 2)
    for _ in range(1500):
        simulation.step(16)
        state = look(simulation)
        place, node = branches(state)
        x, rows = state.positions, daughters.kind.all_rows[node]
        u, v = x[ahead[place, 1]] - x[ahead[place, 0]], x[rows + 1] - x[rows]
        cosine = np.einsum("ij,ij->i", u, v) / np.linalg.norm(u, axis=1) / N
        number.append(len(place))
        cosines.append((cosine - mean).sum())
        squares.append((np.sum((x[rows] - lattice.positions(state)[place]) ** 2, axis=1) - radial).sum())
        kinetic.append(0.5 * (state.velocities[rows] ** 2 + state.velocities[rows + 1] ** 2).sum() - 2.5 * len(place))
    number = np.array(number)
    p = 0.6 / 1.6
    check_mean("branches", number, places * p, sees=1.0, time_series=True)
    check_mean("square of branches", (number - places * p) ** 2, places * p * (1.0 - p), sees=4.0, time_series=True)
    check_mean("cosines", np.array(cosines) / number.mean(), 0.0, sees=0.05, time_series=True)
    check_mean("squares of distances", np.array(squares) / number.mean(), 0.0, sees=0.3, time_series=True)
    check_mean("kinetic energies", np.array(kinetic) / number.mean(), 0.0, sees=0.5, time_series=True)
    events = heard.heard()
    energy = {kind: np.array([e.energy for e in events if e.kind == kind]) for kind in ("branch", "dissolution")}
    assert min(len(e) for e in energy.values()) > 5000
    # What branching puts in, dissolution takes out: no net heat.
    error = np.sqrt(sum(e.var() / len(e) for e in energy.values()))
    assert error < 0.03
    assert abs(sum(e.mean() for e in energy.values())) < 6.0 * error
    assert not simulation.system["Branching"].driven


def test_branches_that_grow():
    """A place holds nothing, or a branch of m >= n subunits with the weight K z^(m - n), in any number of links."""
    z, ratio = 0.6, 0.8
    grow = lambda d, pool: mp.jumps.Polymerization(d, pool["G"], on_rate=6.0, off_rate=6.0 / z, subunits=(2, 5))  # noqa: E731
    simulation = network(jumps=[grow], rates=(3.0 * ratio, 3.0, 0.0), daughters_bend=5.0, capacity_links=20, mothers=3,
                         n=2)  # fmt: skip
    places, daughters = len(simulation.system["Branching"].mothers), simulation.topology["daughters"]
    simulation.step(300)
    seen, longest = [], 0
    for _ in range(1000):
        simulation.step(10)
        state = look(simulation)
        own, node = daughters.subunits(state), branches(state)[1]
        longest = max(longest, own.max())
        assert np.count_nonzero(own) == len(node)
        first = daughters.kind.ends_of(state)[own > 0][:, 0]
        assert (daughters.kind.all_rows[node] == first).all()
        # The minus end is capped, and stays.
        assert (daughters.kind.caps_of(state)[own > 0] == [1, 0]).all()
        seen.append(np.bincount(own[own > 0], minlength=6)[2:6])
    assert longest > 8
    weights = ratio * z ** np.arange(4)
    norm = 1.0 + ratio / (1.0 - z)
    seen = np.array(seen)
    for m in range(4):
        check_mean(f"branches of {m + 2} subunits", seen[:, m], places * weights[m] / norm, sees=1.6, time_series=True)


def test_terms_follow_branches_that_move_within_their_room():
    grow = lambda d, pool: mp.jumps.Polymerization(d, pool["G"], on_rate=20.0, off_rate=1.0, subunits=(2, 5))  # noqa: E731
    simulation = built([row(8)], (3.0, 0.0, 0.0), jumps=[grow], capacity_links=8, room=20)
    daughters, branching = simulation.topology["daughters"], simulation.system["Branching"]
    simulation.step(2)
    branching.set(rate=0.0)
    for _ in range(60):
        simulation.step(1)
        state = look(simulation)
        place, node = branches(state)
        if (node % 9 != 3).any():
            break
    # Seeds begin in the middle; some have gone back to the start.
    assert (node % 9 != 3).any()
    rows, x = daughters.kind.all_rows[node], state.positions
    r = np.linalg.norm(x[rows] - branching.mothers.positions(state)[place], axis=1)
    assert state.energies["springs"] == pytest.approx(2.0 * np.sum((r - 1.0) ** 2), rel=1e-9)
    link = x[rows + 1] - x[rows]
    theta = np.arccos(link[:, 2] / np.linalg.norm(link, axis=1))
    assert state.energies["angles"] == pytest.approx(3.0 * np.sum(1.0 - np.cos(theta - ANGLE)), rel=1e-6)
    assert (daughters.kind.ends_of(state)[daughters.subunits(state) > 0][:, 0] == np.sort(rows)).all()


def activators(topology):
    """Two beads at the end of the mother, of a species, one of another, and one far away."""
    species = {name: {"mass": STILL, "friction": 1.0} for name in ("NPF", "other")}
    x = [[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0], [0.0, 0.0, 10.0], [500.0, 0.0, 0.0]]
    beads = topology.add_beads(x, species=species, of_species=["NPF", "NPF", "other", "NPF"], name="points")
    return beads.of("NPF")


def test_activation_is_a_catalyst():
    """Places out of reach stay as they are; others have the balance of all, and rates times the number of beads."""
    seen = []
    simulation = built([row(8)], (0.5, 1.0, 0.0), near=activators, reach=2.1, timestep=0.2, room=20)
    assert not simulation.system["Branching"].driven
    heard = simulation.context.events()
    places = len(simulation.system["Branching"].mothers)
    for _ in range(6000):
        simulation.step(2)
        seen.append(np.isin(np.arange(places), branches(look(simulation))[0]))
    seen = np.array(seen)
    assert not seen[:, 3:].any()
    for place in range(3):
        check_mean(f"place {place}", seen[:, place], 1.0 / 3.0, sees=0.08, time_series=True)
    # Three places, each 2/3 of the time free, with two activators each: 2 * 0.5 of each free place.
    n = sum(event.kind == "branch" for event in heard.heard())
    expected = 3 * (2.0 / 3.0) * 2.0 * 0.5 * simulation.context.get_state().time
    assert n == pytest.approx(expected, abs=6.0 * np.sqrt(expected))


@pytest.mark.parametrize("steps", [1, 100])
def test_activation_is_by_the_beads_near_each_place_however_many_attempts_there_are(steps):
    """A long step counts the beads near places, and many short ones try all pairs. Rates there and back are in
    proportion to how many there are."""
    mothers, time = 200, 0.4

    def beads(topology):
        x = np.array([[[x, 60.0 * i, 0.0] for x in (1.0, -1.05, 2.05)] for i in range(mothers)]).reshape(-1, 3)
        far = [[900.0 + 9.0 * k, 0.0, 0.0] for k in range(60)]
        return topology.add_beads(np.concatenate([x, far]), mass=STILL, friction=1.0, name="points")

    rows = [row(4, direction=(1.0, 0.0, 0.0), start=[0.0, 60.0 * i, 0.0]) for i in range(mothers)]
    simulation = built(rows, (1.5, 1.0, 0.0), near=beads, reach=2.1, timestep=time / steps, room=800)
    x = simulation.system["Branching"].mothers.positions(look(simulation))
    d = np.linalg.norm(x[:, None] - simulation.topology["points"].positions, axis=2)
    near = (d <= 2.1).sum(axis=1)
    simulation.step(steps)
    state = look(simulation)
    bound = np.isin(np.arange(len(x)), branches(state)[0])
    assert not bound[near == 0].any()
    for c in range(1, 4):
        n, k = np.count_nonzero(near == c), np.count_nonzero(bound[near == c])
        assert n >= 200
        p = 0.6 * (1.0 - np.exp(-2.5 * c * time))
        check_chi_square(f"{c} beads", [k, n - k], [n * p, n * (1.0 - p)], sees=0.6)
    # Each at 1.5 or 1/s.
    tried = state.counts["Branching"].tried
    assert tried < 2.0 * time * near.sum() if steps == 1 else tried > 100 * time * near.sum()


def test_branches_that_let_go():
    """The molecule goes back, the filament stays and may grow at its minus end; the books say chemical work."""
    pool = mp.Pool(volume=1.0, counts={"Arp": 5}, concentrations={"G": 1.0})
    simulation = network(rates=(1.0, 0.0, 0.0), pool=pool)
    simulation.report_work = True
    simulation.step(100)
    before = look(simulation)
    assert (len(branches(before)[0]), before.pools["Arp"]) == (5, 0)
    energies = simulation.context.get_state(energy=True).energies
    assert energies["springs"] > 0.0
    simulation.system["Branching"].set(rate=0.0, release_rate=500.0)
    simulation.step(3)
    after = look(simulation)
    assert (len(branches(after)[0]), after.pools["Arp"]) == (0, 5)
    daughters = simulation.topology["daughters"]
    assert np.count_nonzero(daughters.subunits(after)) == 5
    assert (daughters.kind.caps_of(after) <= 0).all()
    energies = simulation.context.get_state(energy=True).energies
    assert energies["springs"] == energies["angles"] == 0.0
    parts = sum(getattr(after, p) - getattr(before, p)
                for p in ("heat", "shadow_work", "protocol_work", "chemical_work"))  # fmt: skip
    assert parts == pytest.approx(after.total_energy - before.total_energy, abs=1e-8)
    assert after.chemical_work != before.chemical_work
    assert np.isinf(after.entropy_production)


def test_forces_of_branches_are_those_of_terms_by_hand():
    """Energies, forces and second derivatives, of terms that a jump made, and of the same terms in another system."""
    simulation = network()
    simulation.step(200)
    state = simulation.context.get_state(positions=True, energy=True, forces=True)
    place, node = branches(state)
    assert len(place) > 5
    daughters = simulation.topology["daughters"]
    rows = daughters.kind.all_rows[node]
    lattice = simulation.system["Branching"].mothers
    topology = mp.Topology()
    n = len(simulation.topology["mothers"])
    chosen = np.concatenate([np.arange(n), np.column_stack([rows, rows + 1]).ravel()])
    topology.add_beads(state.positions[chosen], mass=1.0)
    system = mp.System(topology)
    first = n + 2 * np.arange(len(rows))
    sites = lattice[place]
    at = mp.Sites.weighted(sites.bead_numbers.reshape(-1, 2), sites.weights.reshape(-1, 2))
    system.add_force(mp.forces.Links(at, first, stiffness=4.0, length=1.0, name="springs"))
    a, b = sites.bead_numbers.reshape(-1, 2).T
    system.add_force(mp.forces.DirectionLinks(a, b, first, first + 1, stiffness=3.0, angle=ANGLE, name="angles"))
    context = mp.Context(system, mp.VerletIntegrator(0.01))
    other = context.get_state(energy=True, forces=True)
    for name in ("springs", "angles"):
        assert state.energies[name] == pytest.approx(other.energies[name], rel=1e-12)
        one, two = (c.hessian([name]).toarray() for c in (simulation.context, context))
        places = (3 * chosen[:, None] + np.arange(3)).ravel()
        np.testing.assert_allclose(one[np.ix_(places, places)], two, atol=1e-9)
        assert np.abs(two).max() > 1.0


def test_changes_of_the_energy_near_a_bead_are_those_of_the_whole():
    """Trials that move nodes of mothers ask the two forces for a difference: energies of events add up to the whole."""

    def shift(x, uniform):
        i = int(uniform[0] * len(x))
        return [i], [x[i] + 0.3 * (uniform[1:] - 0.5)]

    simulation = built([row(8)], (3.0, 0.0, 0.0), room=20, constrained=False, forces=[
        lambda d: mp.forces.HarmonicTrap(d.topology["mothers"], 5.0, d.topology["mothers"].positions)])  # fmt: skip
    simulation.system["Branching"].set(rate=30.0)
    simulation.step(2)
    simulation.system["Branching"].set(rate=0.0)
    system = mp.System(simulation.topology)
    for force in simulation.system.forces:
        system.add_force(force)
    system.add_pool(simulation.system.pools["Pool"])
    system.add_jump(simulation.system["Branching"])
    moves = system.add_jump(mp.jumps.TrialMoves(simulation.topology["mothers"], shift, rate=9.0))
    other = mp.Simulation(system, mp.BAGOGABIntegrator(0.05, kT=KT, seed=2), threads=1)
    other.context.set_state(look(simulation))
    before, heard = look(other), other.context.events()
    assert len(branches(before)[0]) > 10
    bound = [operation for operation, force in zip(other.context._schedule.bound, system.forces, strict=True)
             if force.name in ("springs", "angles")]  # fmt: skip
    assert all(operation.has_local_difference for operation in bound)
    other.step(120)
    after = look(other)
    assert moves.counts.accepted > 10
    gained = sum(event.energy for event in heard.heard())
    assert after.potential_energy - before.potential_energy == pytest.approx(gained, abs=1e-6)
    assert abs(after.energies["angles"] - before.energies["angles"]) > 1e-3


def test_bits_and_restarts(tmp_path):
    def made(threads=1):
        grow = lambda d, pool: mp.jumps.Polymerization(d, pool["G"], on_rate=6.0, off_rate=9.0, subunits=(2, 5),  # noqa: E731
                                                       end="both")  # fmt: skip
        cap = lambda d, pool: mp.jumps.Capping(d, pool["Arp"], on_rate=0.5, off_rate=2.0, end="both")  # noqa: E731
        age = lambda d, _: mp.jumps.Ageing(d, (2.0, 1.0), start="ATP")  # noqa: E731
        cut = lambda d, _: mp.jumps.Severing(d, 0.5)  # noqa: E731
        return network(jumps=[grow, cap, age, cut], rates=(3.0, 3.0, 0.5), threads=threads, capacity_links=20,
                       daughters_bend=5.0, room=400)  # fmt: skip

    simulation = made()
    simulation.step(100)
    simulation.save_checkpoint(tmp_path / "here.npz")
    middle = look(simulation)
    simulation.step(100)
    end = look(simulation)
    assert all(counts.accepted > 3 for counts in end.counts.values())
    several = made(3)
    several.step(200)
    loaded = made()
    loaded.load_checkpoint(tmp_path / "here.npz")
    resumed = mp.Simulation.resume(tmp_path / "here.npz")
    for one in (loaded, resumed):
        one.step(100)
    for one in (several, loaded, resumed):
        state = look(one)
        assert np.array_equal(state.positions, end.positions, equal_nan=True)
        assert np.array_equal(state.velocities, end.velocities, equal_nan=True)
        assert np.array_equal(state.jumps["Branching"]["links"], end.jumps["Branching"]["links"])
        assert state.energies == end.energies
    other = made()
    # Also the state at the start, without a daughter.
    other.context.set_state(look(other))
    other.context.set_state(middle)
    state = look(other)
    assert np.array_equal(state.jumps["Branching"]["links"], middle.jumps["Branching"]["links"])
    assert state.potential_energy == pytest.approx(middle.potential_energy, rel=1e-9)
    again = mp.deserialize(mp.serialize(simulation.system))["Branching"]
    assert (again.n, again.rate, again.release_rate, again.links.name) == (N, 3.0, 0.5, "springs")


def test_branches_in_a_trajectory(tmp_path):
    simulation = network()
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 20, velocities=True))
    simulation.step(60)
    state = look(simulation)
    simulation.reporters[0].close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        frame = trajectory[-1].state()
    assert np.array_equal(frame.jumps["Branching"]["links"], state.jumps["Branching"]["links"])
    other = network()
    other.context.set_state(frame)
    assert np.array_equal(look(other).jumps["Branching"]["links"], state.jumps["Branching"]["links"])
    assert look(other).energies["angles"] == pytest.approx(state.energies["angles"], rel=1e-4)
    ends = state.links(simulation.system["springs"])
    assert len(ends.a) == len(branches(state)[0])
    r = simulation.system["springs"].lengths(state)
    place, node = branches(state)
    first = state.positions[simulation.topology["daughters"].kind.all_rows[node]]
    np.testing.assert_allclose(
        r, np.linalg.norm(first - simulation.system["Branching"].mothers.positions(state)[place], axis=1))  # fmt: skip


def test_no_room_is_a_fault():
    simulation = built([row(8)], (1e3, 0.0, 0.0), room=2)
    refuses(mp.SimulationError, "room", simulation.step, 5)


def _system(**changed):
    topology = mp.Topology()
    mother = topology.add_filaments([row(3)], 1.0, 1.0, name="mothers")
    daughter = topology.add_filaments([], 1.0, 1.0, rise=1.0, capacity_links=4, capacity_filaments=5, name="daughters")
    growing = topology.add_filaments([row(2, start=(9.0, 0, 0))], 1.0, 1.0, rise=1.0, name="growing")
    system = mp.System(topology)
    if changed.pop("fixman", True):
        system.add_force(mp.forces.FixmanPotential(daughter, kT=1.0))
    springs = system.add_force(mp.forces.Links([], [], **{"stiffness": 1.0, **changed.pop("spring", {})}))
    ends = changed.pop("ends", [])
    angles = system.add_force(mp.forces.DirectionLinks(*([one] for one in ends) if ends else ([],) * 4, stiffness=1.0,
                                                       angle=1.0))  # fmt: skip
    pool = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0, "Arp": 1.0}))
    other = system.add_pool(mp.Pool(volume=1.0, concentrations={"G": 1.0}, name="other"))
    given = {"links": springs, "angles": angles, "mothers": mother.lattice(1.0), "daughters": daughter,
             "molecule": pool["Arp"], "species": pool["G"], "n": 3, "rate": 1.0}  # fmt: skip
    names = {"growing": growing, "sites of growing": growing.sites(0, 0), "pool": pool, "other": other["G"],
             "same": pool["Arp"], "mothers": mother, "angles": angles, "springs": springs,
             "beads": mp.Sites.beads(mother)}  # fmt: skip
    given |= {key: names.get(value, value) if isinstance(value, str) else value for key, value in changed.items()}
    others = given.pop("others", ())
    system.add_jump(mp.jumps.Branching(**given))
    for one in others:
        system.add_jump(one(system))
    return mp.Context(system, mp.BAGOGABIntegrator(0.01, kT=1.0))


@pytest.mark.parametrize(
    ("error", "phrase", "changed"),
    [
        (ParameterError, "links must be a Links force", {"links": "angles"}),
        (ParameterError, "angles must be a DirectionLinks force", {"angles": "springs"}),
        (TopologyError, "mothers must be places on links", {"mothers": "beads"}),
        (TopologyError, "mothers must be places on links", {"mothers": "mothers"}),
        (TopologyError, "places on links of .growing., which grow", {"mothers": "sites of growing"}),
        (TopologyError, "filaments must be the handle of filaments with subunits", {"daughters": "mothers"}),
        (TopologyError, "capacity_links= and capacity_filaments=", {"daughters": "growing"}),
        (ParameterError, "species must be one", {"species": "pool"}),
        (ParameterError, "must be of one pool", {"species": "other"}),
        (ParameterError, "must be two species", {"species": "same"}),
        (ParameterError, "n = 0", {"n": 0}),
        (ParameterError, "rate", {"rate": -1.0}),
        (ParameterError, "near= and reach= together", {"reach": 1.0}),
        (ParameterError, "near must be a handle", {"near": [0, 1], "reach": 1.0}),
        (ParameterError, "springs a stiffness > 0", {"spring": {"stiffness": 0.0}}),
        (ParameterError, "not ropes", {"spring": {"one_sided": True}}),
        (ParameterError, "has 1 terms of its own", {"ends": [0, 1, 2, 3]}),
        (ParameterError, "need a FixmanPotential", {"fixman": False}),
        (ParameterError, "is also that of", {"others": [lambda system: mp.jumps.LinkBinding(
            system["Links"], mp.Sites.beads(system.topology["mothers"]), off_rate=1.0, on_rate=1.0)]}),
    ],
)  # fmt: skip
def test_refusals(error, phrase, changed):
    refuses(error, phrase, lambda: _system(**changed))
