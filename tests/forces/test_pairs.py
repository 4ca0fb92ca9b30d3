"""SoftSphere and WCA: energies, forces, bits, errors. For lists see tests/kernels/test_neighbors.py."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import WCA, SoftSphere

K = 3.0
SIGMA, EPSILON = 1.9, 0.7


def scene(scale=1.0):
    """A lumpy membrane with points, and beads and balls in, around and through it: (topology, handles)."""
    rng = np.random.default_rng(21)
    topology = mp.Topology()
    handles = {"beads": topology.add_beads(scale * rng.normal(0.0, 2.5, (25, 3)), mass=1.0)}
    mesh = mp.TriangleMesh.icosphere(4.0 * scale, 1)
    mesh = mesh.with_vertices(mesh.vertices + scale * rng.normal(0.0, 0.15, mesh.vertices.shape))
    handles["membrane"] = topology.add_membrane(mesh, vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["membrane"], 30, mass=1.0, seed=4)
    # In clusters, and of every size.
    centers = rng.normal(0.0, 3.5, (4, 3))
    balls = scale * (centers[rng.integers(0, 4, 25)] + rng.normal(0.0, 1.0, (25, 3)))
    handles["balls"] = topology.add_balls(balls, radius=scale * rng.uniform(0.3, 2.2, 25), mass=1.0)
    handles["more balls"] = topology.add_balls(scale * rng.normal(0.0, 2.5, (9, 3)),
                                               radius=scale * rng.uniform(0.8, 2.0, 9), mass=1.0)  # fmt: skip
    return topology, handles


def separated(n, distance, extent, seed):
    """n random places, none closer to another than `distance`: WCA of a few kT and not of 10^20."""
    rng = np.random.default_rng(seed)
    x = []
    while len(x) < n:
        new = rng.uniform(0.0, extent, 3)
        if all(np.linalg.norm(new - old) > distance for old in x):
            x.append(new)
    return np.array(x)


def interacting(n, a, b, exclusions=()):
    """(n, n) which pairs (i, j) with i < j interact, written as the documentation says it."""
    out = np.zeros((n, n), bool)
    a, b = set(map(int, a)), set(map(int, b))
    excluded = {frozenset(map(int, pair)) for pair in exclusions}
    for i in range(n):
        for j in range(i + 1, n):
            joined = (i in a and j in b) or (i in b and j in a)
            out[i, j] = joined and frozenset((i, j)) not in excluded
    return out


def soft_energy(x, pairs, diameter):
    """O(N²), every pair once; `diameter` (n, n)."""
    r = np.linalg.norm(x[:, None] - x[None], axis=-1)
    return float(np.where(pairs & (r < diameter), 0.5 * K * (diameter - r) ** 2, 0.0).sum())


def wca_energy(x, pairs):
    i, j = np.nonzero(pairs)
    r = np.linalg.norm(x[i] - x[j], axis=-1)
    r = r[r < 2.0 ** (1.0 / 6.0) * SIGMA]
    return float(np.sum(4.0 * EPSILON * ((SIGMA / r) ** 12 - (SIGMA / r) ** 6) + EPSILON))


def make_context(topology, *forces, threads=1, word="BAGAB", timestep=1e-3, **options):
    return mp.Context(system_with(topology, *forces),
                      mp.SplittingIntegrator(word, timestep, **options), threads=threads)  # fmt: skip


def look(topology, force, threads=1, energy=True):
    # Nothing moves: the timestep is one that any of these forces bears.
    context = make_context(topology, force, threads=threads, timestep=1e-9)
    return context.get_state(positions=True, forces=True, energy=energy)


def check_gradient(state, energy, tolerance):
    """Every component of the force against central differences of an independent energy."""
    x, scale = state.positions, np.abs(state.forces).max()
    h = 1e-6
    for i, c in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i, c] += h
        down[i, c] -= h
        expected = -(energy(up) - energy(down)) / (2.0 * h)
        assert abs(state.forces[i, c] - expected) < tolerance * scale, (i, c, state.forces[i, c], expected)


# Values ----------------------------------------------------------------------------------------------------


def test_soft_spheres_by_hand():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [0.0, 3.0, 4.0], [100.0, 0, 0]], mass=1.0)
    state = look(topology, SoftSphere(beads, beads, stiffness=2.0, diameter=7.0))
    assert state.potential_energy == 4.0
    np.testing.assert_allclose(state.forces, [[0, -2.4, -3.2], [0, 2.4, 3.2], [0, 0, 0]], rtol=1e-15)


def test_equal_radii_are_a_diameter():
    x = np.random.default_rng(13).uniform(0.0, 6.0, (80, 3))
    results = []
    for diameter in (None, 1.4):
        topology = mp.Topology()
        balls = topology.add_balls(x, radius=0.7, mass=1.0)
        results.append(look(topology, SoftSphere(balls, balls, K, diameter)))
    assert results[0].potential_energy == results[1].potential_energy > 1.0
    np.testing.assert_array_equal(results[0].forces, results[1].forces)


def test_wca_by_hand():
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [2.0, 0, 0]], mass=1.0)
    state = look(topology, WCA(beads, beads, epsilon=3.0, sigma=2.0))
    assert state.potential_energy == 3.0
    np.testing.assert_allclose(state.forces, [[-36.0, 0, 0], [36.0, 0, 0]], rtol=1e-15)


def test_wca_ends_where_it_should():
    topology = mp.Topology()
    end = 2.0 ** (1.0 / 6.0)
    beads = topology.add_beads([[0.0, 0, 0], [end * (1 - 1e-9), 0, 0], [0, end * (1 + 1e-9), 0]], mass=1.0)
    f = look(topology, WCA(beads, beads, epsilon=1.0, sigma=1.0)).forces
    assert 0.0 < f[1, 0] < 1e-6
    assert (f[2] == 0.0).all()


def soft_cases():
    topology, h = scene()
    n = topology.n_beads
    radius = np.zeros(n)
    for name in ("balls", "more balls"):
        radius[h[name].beads] = h[name].radius
    every = np.arange(n)
    exclusions = np.array([np.random.default_rng(5).choice(n, 2, replace=False) for _ in range(n * n // 6)])
    odd = np.random.default_rng(6).permutation(n)
    same = np.full((n, n), 1.6)
    summed = radius[:, None] + radius[None]
    balls = [h["balls"], h["more balls"]]
    ball_numbers = np.concatenate([b.beads for b in balls])
    yield "all with all", (list(h.values()), list(h.values()), K, 1.6), {}, (every, every), same
    yield "points with points", (h["points"], h["points"], K, 1.6), {}, (h["points"].beads,) * 2, same
    yield (
        "points with vertices and beads",
        (h["points"], [h["membrane"], h["beads"]], K, 1.6),
        {},
        (h["points"].beads, np.concatenate([h["membrane"].beads, h["beads"].beads])),
        same,
    )
    yield "numbers that overlap partly", (odd[:70], odd[40:110], K, 1.6), {}, (odd[:70], odd[40:110]), same
    yield "a handle and numbers", (h["beads"], odd[:50], K, 1.6), {}, (h["beads"].beads, odd[:50]), same
    yield "exclusions", (every, every, K, 1.6), {"exclusions": exclusions}, (every, every, exclusions), same
    yield "radii", (balls, balls, K), {}, (ball_numbers, ball_numbers), summed
    yield "radii, overlap", (balls, balls[0], K), {}, (ball_numbers, balls[0].beads), summed
    yield "radii, apart", (balls[0], balls[1], K), {}, (balls[0].beads, balls[1].beads), summed
    yield ("radii by numbers", (ball_numbers[::-1], balls[1].beads, K), {}, (ball_numbers, balls[1].beads), summed)


# NumPy takes most of the time: a debug or sanitizer run leaves out those whose loops another case has too.
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=[pytest.mark.slow] * name.startswith(("points with", "a handle and")))
        for name, *_ in soft_cases()
    ],
)
def test_soft_spheres_against_plain_numpy(case):
    topology, _ = scene()
    _, arguments, options, groups, diameter = next(c for c in soft_cases() if c[0] == case)
    arguments = tuple(rehandle(a, topology) for a in arguments)
    state = look(topology, SoftSphere(*arguments, **options))
    pairs = interacting(topology.n_beads, *groups)
    expected = soft_energy(state.positions, pairs, diameter)
    assert expected > 1.0
    assert state.potential_energy == pytest.approx(expected, rel=1e-13)
    # Differences across the place where spheres touch are off by h: none is that close to it.
    r = np.linalg.norm(state.positions[:, None] - state.positions[None], axis=-1)
    assert np.abs(r - diameter)[pairs].min() > 1e-5
    check_gradient(state, lambda x: soft_energy(x, pairs, diameter), 1e-7)
    assert np.abs(state.forces.sum(axis=0)).max() < 1e-12 * np.abs(state.forces).max()


def rehandle(argument, topology):
    """Handles of one build of the scene, in another."""
    by_name = {h.name: h for h in topology.handles}
    if isinstance(argument, list):
        return [by_name[h.name] for h in argument]
    return by_name[argument.name] if hasattr(argument, "topology") else argument


@pytest.mark.parametrize("overlap", [0, 20, 60])
def test_wca_against_plain_numpy(overlap):
    x = separated(120, 1.6, 10.0, seed=overlap)
    topology = mp.Topology()
    topology.add_beads(x, mass=1.0)
    numbers = np.random.default_rng(1).permutation(120)
    a, b = numbers[: 60 + overlap // 2], numbers[60 - overlap // 2 :]
    exclusions = np.array([np.random.default_rng(2).choice(120, 2, replace=False) for _ in range(1500)])
    state = look(topology, WCA(a, b, EPSILON, SIGMA, exclusions=exclusions))
    pairs = interacting(120, a, b, exclusions)
    assert state.potential_energy == pytest.approx(wca_energy(x, pairs), rel=1e-13)
    assert state.potential_energy > 5.0
    check_gradient(state, lambda y: wca_energy(y, pairs), 1e-7)


@pytest.mark.parametrize("radius", [1.0, None])
def test_rows_longer_than_what_is_worked_on_at_a_time(radius):
    """All with all: 299 neighbours each."""
    rng = np.random.default_rng(17)
    x = rng.uniform(0.0, 1.0, (300, 3))
    radius = np.full(300, radius) if radius else rng.uniform(0.9, 1.5, 300)
    topology = mp.Topology()
    balls = topology.add_balls(x, radius=radius, mass=1.0)
    state = look(topology, SoftSphere(balls, balls, K))
    diameter = radius[:, None] + radius[None]
    assert state.potential_energy == pytest.approx(soft_energy(x, interacting(300, range(300), range(300)), diameter))
    d = x[None] - x[:, None]
    r = np.linalg.norm(d, axis=-1) + np.eye(300)
    pushes = np.where(r < diameter, K * (r - diameter) / r, 0.0)
    np.testing.assert_allclose(state.forces, (pushes[..., None] * d).sum(axis=1), rtol=1e-9, atol=1e-9)


def test_energies_of_many_are_added_up():
    """Energies are added up in blocks of 1024 members: here two whole ones and a part of one."""
    n = 1300
    gap = np.random.default_rng(7).uniform(0.2, 0.9, n)
    x = np.zeros((n, 2, 3))
    x[:, :, 0] = 3.0 * np.arange(n)[:, None]
    x[:, 1, 1] = gap
    topology = mp.Topology()
    beads = topology.add_beads(x.reshape(-1, 3), mass=1.0)
    energy = make_context(topology, SoftSphere(beads, beads, K, 1.0)).get_state(energy=True).potential_energy
    assert energy == pytest.approx(0.5 * K * ((1.0 - gap) ** 2).sum(), rel=1e-12)


def test_forces_of_a_pair_are_exactly_opposite():
    rng = np.random.default_rng(11)
    for _ in range(60):
        x = rng.uniform(0.0, 1.0, (2, 3)) * 10.0 ** rng.integers(-3, 6)
        d = np.linalg.norm(x[1] - x[0])
        topology = mp.Topology()
        balls = topology.add_balls(x, radius=rng.uniform(0.5, 1.0, 2) * d, mass=1.0)
        for force in (
            SoftSphere(balls, balls, rng.uniform(1, 9)),
            SoftSphere(balls.beads[:1], balls.beads[1:], rng.uniform(1, 9), 1.3 * d),
            WCA(balls, balls, rng.uniform(1, 9), rng.uniform(0.9, 1.2) * d),
        ):
            f = look(topology, force, energy=False).forces
            assert (f[0] == -f[1]).all()
            assert np.abs(f).max() > 0.0


def test_spheres_in_one_place_do_not_push():
    topology = mp.Topology()
    beads = topology.add_beads([[1.0, 2, 3], [1.0, 2, 3], [2.0, 2, 3]], mass=1.0)
    state = look(topology, SoftSphere(beads, beads, stiffness=2.0, diameter=1.5))
    assert state.potential_energy == 0.5 * 2.0 * (1.5**2 + 0.5**2 + 0.5**2)
    np.testing.assert_array_equal(state.forces, [[-1.0, 0, 0], [-1.0, 0, 0], [2.0, 0, 0]])


def test_wca_beads_in_one_place_end_the_run():
    topology = mp.Topology()
    topology.add_beads([[50.0, 0, 0], [51.0, 0, 0]], mass=1.0)
    beads = topology.add_beads([[1.0, 2, 3], [1.0, 2, 3], [2.0, 2, 3]], mass=1.0, name="twins")
    force = WCA(beads, beads, epsilon=2.0, sigma=1.5)
    context = make_context(topology, force, word="BAB")
    with pytest.raises(mp.SimulationError, match=r"bead 2 \('twins', beads\), force WCA") as caught:
        context.step(1)
    assert (caught.value.step, caught.value.bead, caught.value.object, caught.value.force) == (0, 2, "twins", "WCA")


# Bits ------------------------------------------------------------------------------------------------------


def fluid(force_of, n=2500, threads=1, **options):
    """A dense fluid in random order, some of it in-triangle points on a membrane through the middle."""
    rng = np.random.default_rng(31)
    topology = mp.Topology()
    side = int(np.ceil(n ** (1 / 3)))
    x = np.stack(np.unravel_index(rng.permutation(side**3)[:n], (side,) * 3), 1) * 1.05
    beads = topology.add_beads(x + rng.uniform(-0.1, 0.1, x.shape), mass=rng.uniform(0.5, 2.0, n), friction=1.0)
    mesh = mp.TriangleMesh.icosphere(30.0, 2)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0)
    points = topology.add_intriangle_points(membrane, 400, mass=1.0, friction=1.0, seed=2)
    return make_context(topology, *force_of(beads, membrane, points), word="BAGOGAB", timestep=2e-3, kT=1.0, seed=4,
                        threads=threads)  # fmt: skip


def soft_and_wca(beads, membrane, points):
    groups = [beads, membrane, points]
    balls = np.concatenate([beads.beads[:1500], points.beads])
    return [SoftSphere(groups, balls, 20.0, 1.3, name="soft"), WCA(beads, beads, 1.0, 0.9)]


def bits(context):
    state = context.get_state(positions=True, velocities=True, forces=True, energy=True)
    return state.positions, state.velocities, state.forces, list(state.energies.values())


def assert_same(a, b):
    for u, v in zip(a, b, strict=True):
        np.testing.assert_array_equal(u, v)


@pytest.mark.parametrize(("made", "name", "steps"), [("soft_and_wca", "WCA", 12), ("of_sites", "same", 8)])
def test_forces_do_not_depend_on_the_age_of_the_list(made, name, steps):
    of = globals()[made]
    context, ages = fluid(of), []
    for _ in range(steps):
        context.step(3)
        state, fresh = context.get_state(forces=True, energy=True), fluid(of)
        # Not set_state: it takes barycentric coordinates as a user gives them, and rounds them.
        fresh._set_dynamical_arrays(context._dynamical_arrays(), 0)
        new = fresh.get_state(forces=True, energy=True)
        np.testing.assert_array_equal(state.forces, new.forces)
        assert state.energies == new.energies
        ages.append(context._schedule.bound_forces[name].neighbors.builds)
    assert 1 < len(set(ages)) < steps, "old and new lists must both occur"


def test_trajectory_does_not_depend_on_the_skin():
    runs = []
    for skin in (None, 0.0, 0.05, 1.0):
        context = fluid(lambda b, m, p, s=skin: [WCA([b, p], b, 1.0, 0.9, skin=s)])
        context.step(40)
        runs.append(bits(context))
    for run in runs[1:]:
        assert_same(run, runs[0])


def test_energy_error_of_a_fluid_falls_as_the_timestep_squared():
    """Through many builds: a list that lost a pair for a while would leave an error that does not fall."""
    x = separated(300, 0.95, 7.5, seed=3)
    errors = []
    for n in (200, 400, 800):
        topology = mp.Topology()
        beads = topology.add_beads(x, mass=1.0)
        context = make_context(topology, WCA(beads, beads, 1.0, 1.0), word="BAB", timestep=0.8 / n)
        context.set_velocities_to_temperature(kT=1.0, seed=1)
        start = context.get_state(energy=True).total_energy
        largest = 0.0
        for _ in range(20):
            context.step(n // 20)
            largest = max(largest, abs(context.get_state(energy=True).total_energy - start))
        errors.append(largest)
        assert context._schedule.bound_forces["WCA"].neighbors.builds > 3
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(order - 2.0) < 0.3).all(), (errors, order)


def test_a_pair_that_meets_during_a_run():
    """Beads far apart at the start, no neighbours of each other then: they collide as they must."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [60.0, 0, 0]], mass=1.0)
    context = make_context(topology, SoftSphere(beads, beads, 100.0, 2.0), word="BAB", timestep=1e-3)
    context.set_velocities([[10.0, 0, 0], [-10.0, 0, 0]])
    context.step(6000)
    state = context.get_state(positions=True, velocities=True)
    np.testing.assert_allclose(state.velocities, [[-10.0, 0, 0], [10.0, 0, 0]], rtol=1e-3)
    assert context._schedule.bound_forces["SoftSphere"].neighbors.builds > 20


# Sites -----------------------------------------------------------------------------------------------------


def test_sites_at_beads_are_the_beads():
    """The same sum in the same order where sites are numbered like beads; the same radii; exclusions by site."""
    topology, h = scene()
    balls = [h["balls"], h["more balls"]]
    sites = mp.Sites.beads(balls)
    first = h["balls"].kind.first_bead
    excluded = np.array([[0, 3], [17, 30], [2, 9]])
    for beads, of_sites in (
        (SoftSphere(balls, balls, K, exclusions=excluded + first), SoftSphere(sites, sites, K, exclusions=excluded)),
        (WCA(h["balls"], h["more balls"], 1.0, 1.9), WCA(sites[:25], sites[25:], 1.0, 1.9)),
        # The other group becomes sites as well.
        (WCA(h["balls"], h["more balls"], 1.0, 1.9), WCA(sites[:25], h["more balls"].beads, 1.0, 1.9)),
    ):
        expected, state = look(topology, beads), look(topology, of_sites)
        assert expected.potential_energy > 0.1
        assert (state.forces == expected.forces).all()
        assert state.energies == expected.energies


def of_sites(beads, membrane, points):
    """Of means, vertices, points and anchors; with sites that share beads."""
    rng = np.random.default_rng(8)
    w = rng.uniform(-0.2, 0.6, (900, 2))
    threes = np.stack([rng.choice(beads.beads[:1500], 3, replace=False) for _ in range(900)])
    means = mp.Sites.weighted(threes, np.column_stack([w, 1.0 - w.sum(axis=1)]))
    others = mp.Sites.beads([points, membrane]) + mp.Sites.anchors(rng.uniform(0.0, 14.0, (80, 3)))
    plain = mp.Sites.beads(beads)[1500:]
    same = means + plain
    return [
        SoftSphere(means, others + plain, 20.0, 1.3, skin=0.05, name="soft"),
        SoftSphere(same, same, 5.0, 0.9, skin=0.1, name="same"),
        WCA(beads, beads, 1.0, 0.9, skin=0.1, name="plain"),
    ]


def test_derivatives_do_not_depend_on_the_age_of_the_list():
    """To the last bit, as kicks that use them need it. Sums over slots instead of members would."""
    context = fluid(of_sites)
    a = np.random.default_rng(0).normal(size=(len(bits(context)[0]), 3))
    ages = []
    for _ in range(4):
        context.step(5)
        fresh = fluid(of_sites)
        fresh._set_dynamical_arrays(context._dynamical_arrays(), 0)
        for name in ("soft", "same", "plain"):
            old, new = (c.third_derivative(a, [name]) for c in (context, fresh))
            assert np.abs(old).max() > 0.0
            np.testing.assert_array_equal(old, new)
            old, new = (c.hessian([name]) for c in (context, fresh))
            assert old.nnz > 1000
            assert (old != new).nnz == 0
        ages.append(context._schedule.bound_forces["plain"].neighbors.builds)
    assert ages[-1] > 1, "the old list must be another than the new one"


@pytest.mark.unstable
def test_a_site_that_is_lost_is_reported_by_its_bead():
    topology = mp.Topology()
    topology.add_beads([[0.0, 0, 0], [3.0, 0, 0], [6.0, 0, 0]], mass=1.0, name="lost")
    sites = mp.Sites.anchors([[9.0, 9, 9]]) + mp.Sites.weighted([[2, 1]], [[0.5, 0.5]]) + mp.Sites.beads([0])
    context = make_context(topology, SoftSphere(sites, sites, 1.0, 1.0), word="BAB", timestep=1e3)
    context.set_velocities([[0.0, 0, 0], [0.0, 0, 0], [0.0, 1.7e308, 0]])
    refuses(mp.SimulationError, r"bead 2 \('lost', beads\), force SoftSphere", context.step, 1)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda h, s: SoftSphere(s, s[2:5], 1.0, 1.0), mp.TopologyError, "sites 2 and 7 are both bead 2; give one"),
    (lambda h, s: SoftSphere(s[[1, 4, 1]], h["balls"], 1.0, 1.0), mp.TopologyError, "sites 0 and 2 are both bead"),
    (lambda h, s: WCA(s, mp.Sites.beads([131]), 1.0, 1.0), mp.TopologyError, r"group_b\[0\] names bead 131, but"),
    (lambda h, s: WCA(s, [0.5], 1.0, 1.0), mp.TopologyError, "WCA: group_b: .* must hold integers"),
    (lambda h, s: WCA(s, h["balls"], 1.0, 1.0, exclusions=[[1, 2], [5, 32]]), mp.TopologyError,
     r"exclusions\[1\] names sites \[5, 32\], but the groups have sites 0 to 31"),
    (lambda h, s: WCA(s, s, 1.0, 1.0, exclusions=[[5, 5]]), mp.TopologyError,
     r"exclusions\[0\] excludes site 5 from itself"),
    (lambda h, s: SoftSphere(s, s, 1.0), mp.ParameterError, "site 5, which is not a single bead, has no rad"),
    (lambda h, s: SoftSphere(s[:2], s[2:4], 1.0), mp.ParameterError, r"because Beads\('beads', 25 beads\) has no"),
    (lambda h, s: SoftSphere(s, mp.Sites.beads(scene()[1]["balls"]), 1.0, 1.0), mp.TopologyError,
     "belongs to another topology"),
])  # fmt: skip
def test_sites_that_do_not_fit_are_refused(make, error, message):
    topology, h = scene()
    sites = mp.Sites.beads(h["beads"])[:5] + mp.Sites.weighted([[7, 8]], [[0.5, 0.5]]) + mp.Sites.anchors([[0.0, 0, 0]])
    refuses(error, message, lambda: make_context(topology, make(h, sites)))


def test_momentum_is_kept_without_anchors_alone():
    sites = mp.Sites.weighted([[0, 1]], [[0.5, 0.5]])
    assert SoftSphere(sites, [2, 3], 1.0, 1.0).conserves_momentum
    assert not SoftSphere([2, 3], sites + mp.Sites.anchors([[0.0, 0, 0]]), 1.0, 1.0).conserves_momentum
    assert WCA([2, 3], [4], 1.0, 1.0).conserves_momentum


# What is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "message"), [
    (lambda h: SoftSphere(h["balls"], h["beads"], 1.0), r"SoftSphere: give diameter=.*'beads'.*has no radius"),
])  # fmt: skip
def test_numbers_outside_their_domain_are_refused(make, message):
    refuses(mp.ParameterError, message, make, scene()[1])


@pytest.mark.parametrize(("make", "message"), [
    (lambda h: WCA([0, 131], [1, 2], 1.0, 1.0), "WCA: group_a: bead 131 does not exist: beads are 0 to"),
    (lambda h: WCA([0], [-1, 2], 1.0, 1.0), "WCA: group_b: bead -1 does not exist"),
    (lambda h: WCA([0], [2, 2], 1.0, 1.0), "WCA: group_b: bead 2 is named twice"),
    (lambda h: WCA([0.5], [2], 1.0, 1.0), "WCA: group_a must hold integers"),
    (lambda h: WCA(h["balls"], [[1, 2]], 1.0, 1.0), r"WCA: group_b must have shape \(n,\)"),
    (lambda h: WCA([1], [2], 1.0, 1.0, exclusions=[1, 2]), r"WCA: exclusions must have shape \(n, 2\)"),
    (lambda h: WCA([1], [2], 1.0, 1.0, exclusions=[[0, 1], [5, 131]]), r"WCA: exclusions\[1\] names beads \[5, 131\]"),
    (lambda h: WCA([1], [2], 1.0, 1.0, exclusions=[[3, 3]]), r"WCA: exclusions\[0\] excludes bead 3 from itself"),
    (lambda h: WCA(scene()[1]["balls"], h["balls"], 1.0, 1.0), "WCA: .* belongs to another topology"),
    (lambda h: WCA(h["balls"], [scene()[1]["balls"]], 1.0, 1.0), "WCA: .* belongs to another topology"),
])  # fmt: skip
def test_beads_that_do_not_fit_are_refused(make, message):
    topology, h = scene()
    refuses(mp.TopologyError, message, lambda: make_context(topology, make(h)))


def test_numbers_of_beads_without_radius_are_refused():
    topology, h = scene()
    force = SoftSphere(h["balls"], [int(h["balls"].beads[0]), 3], 1.0)
    with pytest.raises(mp.ParameterError, match=r"give diameter=, because Beads\('beads', 25 beads\) has no radius"):
        make_context(topology, force)


def test_groups_and_exclusions_are_copies():
    topology, h = scene()
    numbers, exclusions = np.arange(20), np.array([[1, 2], [3, 4]])
    force = SoftSphere(numbers, numbers, K, 1.6, exclusions=exclusions)
    expected = look(topology, force).potential_energy
    topology, h = scene()
    force = SoftSphere(numbers, numbers, K, 1.6, exclusions=exclusions)
    numbers[:], exclusions[:] = 0, 7
    assert look(topology, force).potential_energy == expected
    assert h is not None
    with pytest.raises(ValueError, match="read-only"):
        force.exclusions[0, 0] = 1


def test_exclusions_of_beads_in_no_group_are_ignored():
    topology, h = scene()
    expected = look(topology, SoftSphere(h["beads"], h["beads"], K, 1.6)).potential_energy
    topology, h = scene()
    other = np.column_stack([h["balls"].beads, h["beads"].beads])
    assert look(topology, SoftSphere(h["beads"], h["beads"], K, 1.6, exclusions=other)).potential_energy == expected
