"""Pairs, contacts and clusters, against all pairs one by one; g against gases of which it is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses

import medyanpy as mp
from medyanpy import analysis
from medyanpy._tools.images import nearest_image
from medyanpy.analysis.frames import lengths_of
from medyanpy.testing import check_mean


class Look:
    """What analyses ask of a state or frame."""

    def __init__(self, time, positions, ids=None):
        self.time, self.positions = time, positions
        self.ids = np.where(np.isnan(positions).any(axis=1), -1, np.arange(len(positions))) if ids is None else ids


def distances(x):
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=2))


def groups(rng, n):
    """Apart, the same, overlapping, in no order, one bead, and one bead in both."""
    order = rng.permutation(n)
    third = n // 3
    return [
        (order[:third], order[third:]), (order[:third], None), (None, None), (order[: 2 * third], order[third:]),
        (order[:1], order), (order[:1], order[:1]),
    ]  # fmt: skip


def places(rng, m, n, gone=0.2):
    x = rng.uniform(-5.0, 5.0, (m, n, 3)) + [4e3, 0, 0]
    x[rng.random((m, n)) < gone] = np.nan
    return x


# Radial distributions ------------------------------------------------------------------------------------------------


def test_pairs_are_all_pairs(rng):
    """Counted exactly; and g is their number over that of the gas."""
    m, n, bins, r_max = 5, 40, 12, 8.0
    x = places(rng, m, n)
    for a, b in groups(rng, n):
        first = np.arange(n) if a is None else a
        second = first if b is None else b
        counts, pairs = np.zeros(bins, int), 0
        edges = np.linspace(0.0, r_max, bins + 1)
        for k in range(m):
            r = distances(x[k])
            for i in first:
                for j in second:
                    if i != j and not np.isnan(r[i, j]):
                        pairs += 1
                        if r[i, j] <= r_max:
                            counts[np.searchsorted(edges, r[i, j]) - 1] += 1
        if not pairs:
            with pytest.raises(mp.ParameterError, match="no frame has a pair of beads of these groups"):
                analysis.radial_distribution(x, a, b, r_max=r_max, bins=bins, volume=1e4)
            continue
        found = analysis.radial_distribution(x, a, b, r_max=r_max, bins=bins, volume=5e3)
        assert found.pairs.tolist() == counts.tolist()
        np.testing.assert_allclose(found.edges, edges)
        np.testing.assert_allclose(found.distance, 0.5 * (edges[1:] + edges[:-1]))
        shells = 4.0 / 3.0 * np.pi * np.diff(edges**3) / 5e3
        np.testing.assert_allclose(found.value, counts / (pairs * shells), rtol=1e-12)
        flat = analysis.radial_distribution(x, a, b, r_max=r_max, bins=bins, area=300.0)
        np.testing.assert_allclose(flat.value, counts / (pairs * np.pi * np.diff(edges**2) / 300.0), rtol=1e-12)


def test_beads_at_one_place_are_pairs_in_the_first_bin():
    x = np.zeros((4, 3))
    found = analysis.radial_distribution(x, r_max=2.0, bins=2, volume=100.0)
    assert found.pairs.tolist() == [12, 0]
    assert np.isnan(found.error).all()


def in_a_ball(rng, m, n, radius):
    x = rng.normal(size=(m, n, 3))
    return x * (radius * rng.random((m, n, 1)) ** (1 / 3) / np.linalg.norm(x, axis=2, keepdims=True))


def on_a_sphere(rng, m, n, radius):
    x = rng.normal(size=(m, n, 3))
    return x * (radius / np.linalg.norm(x, axis=2, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("reference", ["ball", "sphere", "area", "volume"])
def test_an_ideal_gas_is_one(reference, two, rng):
    """False alarms 1e-6 for each bin, of which there are ten, up to what any two points are apart; g of twenty frames
    is an independent sample. An error of 10 % of a bin is seen, where there are 20 000 pairs or more."""
    m, n, radius = 2000, 60, 7.0
    draw = on_a_sphere if reference == "sphere" else in_a_ball
    x = draw(rng, m, n, radius)
    given, r_max = {reference: radius}, 2.0 * radius
    if reference == "area":
        # Half of a sheet sees all that is within r_max.
        x = rng.uniform(-20.0, 20.0, (m, 4 * n, 3)) * [1, 1, 0]
        given, r_max = {"area": 1600.0}, 10.0
    elif reference == "volume":
        x = rng.uniform(-10.0, 10.0, (m, 4 * n, 3))
        given, r_max = {"volume": 8e3}, 5.0
    total = x.shape[1]
    a, b = (np.arange(total // 3), np.arange(total // 3, total)) if two else (None, None)
    if reference in ("area", "volume"):
        # By the middle of the place alone, of which nobody's surroundings are cut off: a bead there, put in its place.
        x[:, 0] = 0.0
        a, b = [0], np.arange(1, total)
    each = np.array([
        analysis.radial_distribution(x[k : k + 20], a, b, r_max=r_max, bins=10, **given).value for k in range(0, m, 20)
    ])  # fmt: skip
    whole = analysis.radial_distribution(x, a, b, r_max=r_max, bins=10, **given)
    np.testing.assert_allclose(each.mean(axis=0), whole.value, rtol=1e-9)
    for k in range(10):
        expected = whole.pairs[k] / whole.value[k]
        if expected > 2e4:
            check_mean(f"g of bin {k}", each[:, k], 1.0, sees=0.1)
        else:
            assert abs(whole.pairs[k] - expected) < 4.9 * 2.0 * np.sqrt(expected)


def test_a_gas_that_is_given(rng):
    """g beside it is the ratio of what both are beside anything else, also of several frames and other numbers."""
    x, gas = in_a_ball(rng, 4, 30, 5.0), in_a_ball(rng, 3, 80, 6.0)
    one, other = (analysis.radial_distribution(y, r_max=7.0, bins=9, volume=1e5) for y in (x, gas))
    found = analysis.radial_distribution(x, r_max=7.0, bins=9, ideal=gas)
    np.testing.assert_allclose(found.value, one.value / other.value, rtol=1e-12)
    np.testing.assert_allclose(found.error, one.error / other.value, rtol=1e-9)


def test_shapes_of_gases_by_numbers():
    """Shares of the pairs, against integrals of the densities of distances, and beyond the longest distance."""
    from scipy.integrate import quad

    x = np.array([[0.0, 0, 0], [3.0, 0, 0]])
    radius, edges = 2.5, np.linspace(0.0, 6.0, 13)
    ball = analysis.radial_distribution(x, r_max=6.0, bins=12, ball=radius)
    sphere = analysis.radial_distribution(x, r_max=6.0, bins=12, sphere=radius)

    def in_ball(r):
        # Two balls of radius R at distance r share this volume; of the pairs it is 4πr² times that.
        return 4.0 * np.pi * r**2 * (np.pi / 12.0) * (4 * radius + r) * (2 * radius - r) ** 2

    all_pairs = (4.0 / 3.0 * np.pi * radius**3) ** 2
    k = 5
    assert ball.pairs[k] == 2
    share = quad(in_ball, edges[k], edges[k + 1])[0] / all_pairs
    assert ball.value[k] == pytest.approx(1.0 / share, rel=1e-10)
    # cos θ is uniform, r² = 2R²(1 - cos θ).
    assert sphere.value[k] == pytest.approx(4.0 * radius**2 / (edges[k + 1] ** 2 - edges[k] ** 2), rel=1e-12)
    for found in (ball, sphere):
        assert (found.value[[0, 9]] == 0.0).all()
        assert np.isnan(found.value[10:]).all()
        assert found.pairs.sum() == 2


def test_errors_of_g_are_those_of_frames(rng):
    """20 blocks: the scatter of 30 experiments."""
    values, errors = [], []
    for _ in range(60):
        found = analysis.radial_distribution(in_a_ball(rng, 40, 30, 5.0), r_max=5.0, bins=2, ball=5.0)
        values.append(found.value)
        errors.append(found.error)
    ratio = np.mean(np.square(errors), axis=0) / np.var(values, axis=0, ddof=1)
    # χ² of 59 degrees of freedom, 1e-6: 0.34 to 2.1.
    assert (ratio > 0.34).all()
    assert (ratio < 2.5).all()


def test_refused_references(rng):
    x = places(rng, 2, 10, gone=0.0)
    g = analysis.radial_distribution
    for words, options in (
        ("give one of volume=, area=, ball=, sphere= and ideal=.* not none", {}),
        ("not volume and ball", {"volume": 1e4, "ball": 5.0}),
        ("r_max = 3 reaches beyond the volume of 100: choose", {"volume": 100.0}),
        ("r_max = 3 reaches beyond the area of 20: choose", {"area": 20.0}),
        ("ball = 0.0 but must be finite and > 0", {"ball": 0.0}),
        ("bins = 0 but must be a whole number >= 1", {"ball": 9.0, "bins": 0}),
        ("ideal has no frame with two points", {"ideal": np.zeros((1, 3))}),
        ("ideal: positions must have shape", {"ideal": np.zeros((1, 2, 2))}),
    ):
        refuses(mp.ParameterError, words, g, x, r_max=3.0, **options)
    refuses(mp.ParameterError, r"r_max = -1\.0 but must be finite and > 0", g, x, r_max=-1.0, ball=1.0)
    refuses(mp.TopologyError, "give a= with b=", g, x, None, [1], r_max=1.0, ball=9.0)
    for a, b in (([], None), ([0], []), ([0], None)):
        with pytest.raises(mp.ParameterError, match="no frame has a pair"):
            g(x, np.array(a, int), b if b is None else np.array(b, int), r_max=1.0, ball=9.0)


# Contacts ------------------------------------------------------------------------------------------------------------


def test_contacts_are_all_pairs(rng):
    m, n, cutoff = 6, 45, 2.2
    x = places(rng, m, n)
    for a, b in groups(rng, n):
        first = np.arange(n) if a is None else a
        second = first if b is None else b
        found = analysis.contact_counts(x, a, b, cutoff=cutoff)
        assert found.beads.tolist() == first.tolist()
        for k in range(m):
            r = distances(x[k])
            near = {(i, j) for i in first.tolist() for j in second.tolist() if i != j and r[i, j] <= cutoff}
            each = [-1 if np.isnan(x[k, i, 0]) else sum(i == one for one, _ in near) for i in first.tolist()]
            assert found.per_bead[k].tolist() == each
            assert found.total[k] == len({frozenset(pair) for pair in near})
        one = analysis.contact_counts(x[2], a, b, cutoff=cutoff)
        assert one.per_bead.tolist() == found.per_bead[2].tolist()
        assert one.total == found.total[2]


def test_contacts_with_no_beads(rng):
    x = places(rng, 2, 5)
    x[:, 3:] = np.nan
    found = analysis.contact_counts(x, [0, 1, 2], [3, 4], cutoff=1e9)
    assert found.total.tolist() == [0, 0]
    assert analysis.contact_counts(x, np.empty(0, int), [0], cutoff=1.0).per_bead.shape == (2, 0)
    assert analysis.contact_counts(x, [3], cutoff=1.0).per_bead.tolist() == [[-1], [-1]]


def contacts_by_hand(x, ids, a, b, cutoff):
    m = len(x)
    near = []
    for k in range(m):
        r = distances(x[k])
        now = set()
        for i in a:
            for j in b:
                if i != j and r[i, j] <= cutoff:
                    pair = (ids[k][i], ids[k][j])
                    now.add(tuple(sorted(pair)) if {i, j} <= set(a) & set(b) else pair)
        near.append(now)
    rows = []
    for pair in sorted(set().union(*near)):
        present = [pair in now for now in near]
        k = 0
        while k < m:
            if present[k]:
                start = k
                while k < m and present[k]:
                    k += 1
                rows.append((pair, start, k))
            k += 1
    return sorted(rows, key=lambda row: (row[1], row[0], row[2]))


@pytest.mark.parametrize(("a", "b"), [(range(12), None), (range(4), range(4, 12)), (range(8), range(4, 12))])
def test_contact_times_frame_by_frame(a, b, rng):
    """Also where beads come and go, and others take their rows."""
    m, n, cutoff, dt = 25, 12, 4.0, 0.5
    x = places(rng, 1, n, gone=0.0) + np.cumsum(rng.normal(0.0, 0.7, (m, n, 3)), axis=0)
    ids = np.tile(np.arange(n), (m, 1))
    ids[10:, 5] = 100
    x[7:9, 3], ids[7:9, 3] = np.nan, -1
    looks = [Look(dt * k, x[k], ids[k]) for k in range(m)]
    a, b = list(a), None if b is None else list(b)
    found = analysis.contact_times(looks, a, b, cutoff=cutoff)
    rows = contacts_by_hand(x, ids, a, a if b is None else b, cutoff)
    assert len(rows) > 15
    assert sorted(map(tuple, found.pairs.tolist())) == sorted(pair for pair, _, _ in rows)
    got = sorted(zip(map(tuple, found.pairs.tolist()), found.start, found.end, found.started, found.ended, strict=True))
    wanted = sorted((p, dt * s, dt * min(e, m - 1), s > 0, e < m) for p, s, e in rows)
    for one, other in zip(got, wanted, strict=True):
        assert one[0] == other[0]
        np.testing.assert_allclose(one[1:3], other[1:3])
        assert one[3:] == other[3:]
    gone = sum(e < m for _, _, e in rows) / sum(min(e, m - 1) - s for _, s, e in rows)
    assert found.lifetime.value == pytest.approx(-dt / np.log(1.0 - gone))


@pytest.mark.slow
def test_lifetimes_of_contacts_that_end_at_random(rng):
    """Pairs that part at a rate, in runs that many outlast: no bias (1e-6), and errors that are those of the scatter.
    An error of 4 % is seen."""
    tau, dt, m, pairs = 3.0, 0.5, 12, 150
    lifetimes, errors = [], []
    for _ in range(120):
        until = rng.exponential(tau, pairs)
        apart = (dt * np.arange(m)[:, None] >= until).astype(float)
        x = np.zeros((m, pairs, 2, 3))
        x[..., 0] = 100.0 * np.arange(pairs)[:, None]
        x[..., 1, 1] = 1.0 + 9.0 * apart
        found = analysis.contact_times(x.reshape(m, 2 * pairs, 3), cutoff=2.0, interval=dt)
        lifetimes.append(found.lifetime.value)
        errors.append(found.lifetime.error)
    check_mean("lifetime", np.array(lifetimes) / tau, 1.0 + 0.5 / pairs, sees=0.08)
    ratio = np.mean(np.square(errors)) / np.var(lifetimes, ddof=1)
    # χ² of 119 degrees of freedom, 1e-6: 0.5 to 1.75.
    assert 0.5 < ratio < 2.0


def test_contact_times_without_ends_and_refused():
    x = np.zeros((4, 2, 3))
    found = analysis.contact_times(x, cutoff=1.0, interval=2.0)
    assert found.pairs.tolist() == [[0, 1]]
    assert (found.start[0], found.end[0], found.started[0], found.ended[0]) == (0.0, 6.0, False, False)
    assert np.isnan(found.lifetime.value)
    x[1:, 1] = 9.0
    with pytest.warns(mp.StatisticsWarning, match="the error of 0 is not a number"):
        found = analysis.contact_times(x, cutoff=1.0, interval=2.0)
    assert found.lifetime.value == 0.0
    assert np.isnan(found.lifetime.error)
    assert len(analysis.contact_times(x[1:], cutoff=1.0, interval=2.0).start) == 0
    refuses(mp.ParameterError, "one frame shows no motion", analysis.contact_times, x[0], cutoff=1.0)
    refuses(mp.ParameterError, r"give interval= \(s\)", analysis.contact_times, x, cutoff=1.0)
    refuses(mp.ParameterError, r"cutoff = 0\.0 but must be", analysis.contact_times, x, cutoff=0, interval=1.0)


# Clusters ------------------------------------------------------------------------------------------------------------


def clusters_by_hand(x, rows, cutoff, links):
    """Union and find."""
    parent = {i: i for i in rows if not np.isnan(x[i]).any()}

    def find(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i in parent:
        for j in parent:
            near = cutoff is not None and np.sqrt(((x[i] - x[j]) ** 2).sum()) <= cutoff
            linked = any({i, j} == set(pair) for pair in links)
            if i != j and (near or linked):
                parent[max(find(i), find(j))] = min(find(i), find(j))
    members = {}
    for i in parent:
        members.setdefault(find(i), []).append(i)
    return sorted((sorted(one) for one in members.values()), key=lambda one: (-len(one), one[0]))


@pytest.mark.parametrize("cutoff", [None, 0.8, 1.6, 2.5, 40.0])
@pytest.mark.parametrize("n_links", [None, 0, 15])
def test_clusters_are_those_of_union_and_find(cutoff, n_links, rng):
    m, n = 4, 50
    x = places(rng, m, n)
    rows = rng.permutation(n)[:40]
    links = None if n_links is None else [rng.integers(0, n, (n_links, 2)) for _ in range(m)]
    if cutoff is None and links is None:
        refuses(mp.ParameterError, r"give cutoff= \(nm\), or links=", analysis.clusters, x, rows)
        return
    found = analysis.clusters(x, rows, cutoff, links=links)
    for k, one in enumerate(found):
        expected = clusters_by_hand(x[k], rows.tolist(), cutoff, [] if links is None else links[k].tolist())
        assert one.sizes.tolist() == [len(members) for members in expected]
        assert len(one) == len(expected)
        for label, members in enumerate(expected):
            assert sorted(one.members(label).tolist()) == members
        assert one.beads.tolist() == rows.tolist()
        assert (one.labels == -1).tolist() == np.isnan(x[k, rows, 0]).tolist()
    sizes = analysis.cluster_sizes(x, rows, cutoff, links=links)
    every = [one.sizes for one in found]
    assert sizes.size.tolist() == np.unique(np.concatenate(every)).tolist()
    for s, mean, error in zip(sizes.size, sizes.number, sizes.error, strict=True):
        each = [int((one == s).sum()) for one in every]
        assert mean == pytest.approx(np.mean(each))
        assert error == pytest.approx(np.std(each, ddof=1) / 2.0, abs=1e-12)
    together = np.concatenate(every)
    assert sizes.mean.value == pytest.approx(together.mean())
    assert sizes.weighted_mean.value == pytest.approx((together**2).sum() / together.sum())
    largest = [one.max() for one in every]
    assert sizes.largest.value == pytest.approx(np.mean(largest))
    assert sizes.largest.error == pytest.approx(np.std(largest, ddof=1) / 2.0, abs=1e-12)


def test_clusters_of_one_frame_of_no_beads_and_of_one():
    nobody = np.full((3, 3), np.nan)
    found = analysis.clusters(nobody, cutoff=1.0)
    assert (found.labels.tolist(), found.sizes.tolist()) == ([-1, -1, -1], [])
    assert analysis.clusters(np.zeros((1, 3)), cutoff=1.0).sizes.tolist() == [1]
    assert analysis.clusters(np.zeros((2, 3)), links=[[0, 1]]).labels.tolist() == [0, 0]
    assert analysis.clusters(np.zeros((2, 3)), links=[]).labels.tolist() == [0, 1]
    refuses(mp.ParameterError, "there are no beads in these frames", analysis.cluster_sizes, nobody, cutoff=1.0)
    sizes = analysis.cluster_sizes(np.zeros((2, 3)), cutoff=1.0)
    assert np.isnan(sizes.mean.error)
    assert np.isnan(sizes.error).all()


def test_links_that_are_none(rng):
    x = places(rng, 3, 4, gone=0.0)
    with pytest.raises(mp.TopologyError, match=r"links\[1\] = \[2, 4\], but there is no bead 4: positions have 4 rows"):
        analysis.clusters(x, links=[[0, 1], [2, 4]])
    with pytest.raises(mp.ParameterError, match="links are of 2 frames, but there are 3"):
        analysis.clusters(x, links=[np.array([[0, 1]])] * 2)
    refuses(mp.TopologyError, r"links must have shape \(n, 2\), not \(1, 3\)", analysis.clusters, x, links=[[0, 1, 2]])
    refuses(mp.TopologyError, "links must hold integers", analysis.clusters, x, links=[[0.5, 1.0]])


def test_refusals_of_rows_of_different_lengths(rng):
    """In one frame among several: links, triangles, boxes."""
    x = places(rng, 2, 4, gone=0.0)
    wanted = r"\[1\] must have shape .*, or one of these for each frame"
    refuses(mp.TopologyError, f"clusters: links{wanted}", analysis.clusters, x, links=[[[0, 1]], [[0, 1], [1]]])
    faces = [[[0, 1, 2]], [[0, 1, 2], [1]]]
    refuses(mp.TopologyError, f"curvatures: faces{wanted}", analysis.curvatures, x, faces=faces)
    refuses(mp.ParameterError, f"clusters: box{wanted}", analysis.clusters, x, cutoff=1.0, box=[9.0, [9.0, [9.0]]])


def test_clusters_of_bound_links(tmp_path):
    """What a jump has bound, from states: sites are beads, whose rows are the clusters' links."""
    rng = np.random.default_rng(2)
    topology = mp.Topology()
    beads = topology.add_beads(rng.uniform(0.0, 20.0, (30, 3)), mass=1.0, friction=1.0)
    system = mp.System(topology)
    a, b = mp.Sites.beads(beads.beads[:15]), mp.Sites.beads(beads.beads[15:])
    links = system.add_force(mp.forces.Links([], [], stiffness=0.1, length=1.0))
    system.add_jump(mp.jumps.LinkBinding(links, a, b, on_rate=1.0, off_rate=0.2))
    simulation = mp.Simulation(system, mp.SplittingIntegrator("JBAOABJ", 0.05, kT=1.0, seed=1))
    states, bound = [], []
    for _ in range(3):
        simulation.step(20)
        states.append(simulation.context.get_state(positions=True))
        ends = states[-1].links(links)
        bound.append(np.column_stack([ends.a.bead_numbers, ends.b.bead_numbers]))
    assert len(bound[-1]) > 0
    found = analysis.clusters(states, beads, links=bound)
    for state, pairs, one in zip(states, bound, found, strict=True):
        expected = clusters_by_hand(state.positions, range(30), None, pairs.tolist())
        assert one.sizes.tolist() == [len(members) for members in expected]


# Periodic boxes -------------------------------------------------------------------------------------------------


def images_of(d, box):
    """The shortest of all images, tried one by one along each side."""
    shifts = [np.arange(-9, 10) * length if np.isfinite(length) else np.zeros(1) for length in box]
    tried = [d[..., i, None] + shifts[i] for i in range(3)]
    best = [np.take_along_axis(one, np.argmin(np.abs(one), axis=-1)[..., None], axis=-1)[..., 0] for one in tried]
    return np.stack(best, axis=-1)


BOXES = [(20.0, 25.0, 30.0), (20.0, None, 25.0), (None, 22.0, np.nan)]


@pytest.mark.parametrize("box", BOXES)
def test_nearest_images_contacts_and_clusters_in_a_box(box, rng):
    lengths = np.array([np.nan if one is None else one for one in box])
    x = rng.uniform(-35.0, 35.0, (50, 3))
    d = x[None] - x[:, None]
    shortest = images_of(d, lengths)
    np.testing.assert_allclose(nearest_image(d, lengths_of("test", box)), shortest, atol=1e-12)
    distance = np.linalg.norm(shortest, axis=-1)
    near = (distance <= 9.0) & ~np.eye(50, dtype=bool)
    assert near.sum() > 10
    contacts = mp.analysis.contact_counts(x, cutoff=9.0, box=box)
    np.testing.assert_array_equal(contacts.per_bead, near.sum(axis=1))
    assert contacts.total == near.sum() // 2
    label = np.arange(50)
    for _ in range(50):
        label = np.where(near | np.eye(50, dtype=bool), label, 50).min(axis=1)
    found = mp.analysis.clusters(x, cutoff=9.0, box=box)
    assert sorted(found.sizes) == sorted(np.unique(label, return_counts=True)[1])
    sizes = mp.analysis.cluster_sizes([x, x], cutoff=9.0, box=[box, box])
    assert sizes.largest.value == found.sizes[0]
    # What frames say themselves.
    frames = [SimpleNamespace(positions=x, time=0.1 * k, box=box, ids=np.arange(50)) for k in range(3)]
    of_frames = mp.analysis.contact_counts(frames, cutoff=9.0)
    np.testing.assert_array_equal(of_frames.per_bead[2], contacts.per_bead)
    assert len(mp.analysis.contact_times(frames, cutoff=9.0).pairs) == contacts.total
    assert len(mp.analysis.contact_times(np.array([x, x]), cutoff=9.0, interval=1.0, box=box).pairs) == contacts.total


def test_pairs_by_distance_in_a_box(rng):
    x = rng.uniform(-30.0, 60.0, (3, 40, 3))
    box = np.array([20.0, 25.0, 30.0])
    found = mp.analysis.radial_distribution(x, r_max=10.0, bins=7, box=box)
    d = np.linalg.norm(images_of(x[:, None] - x[:, :, None], box), axis=-1)
    counts = np.histogram(d[d > 0.0], found.edges)[0]
    np.testing.assert_array_equal(found.pairs, counts)
    shells = 4.0 / 3.0 * np.pi * np.diff(found.edges**3) / box.prod()
    np.testing.assert_allclose(found.value, counts / (3 * 40 * 39 * shells))
    # Boxes of frames that differ: each has its own gas.
    boxes = [box, 2.0 * box, 1.5 * box]
    found = mp.analysis.radial_distribution(x, r_max=10.0, bins=7, box=boxes)
    share = np.mean([4.0 / 3.0 * np.pi * np.diff(found.edges**3) / one.prod() for one in boxes], axis=0)
    np.testing.assert_allclose(found.value, found.pairs / (3 * 40 * 39 * share))
    # With two lengths, a sheet.
    flat = np.column_stack([x[0, :, :2], np.zeros(40)])
    found = mp.analysis.radial_distribution(flat, r_max=10.0, bins=4, box=(20.0, 25.0))
    assert found.value[-1] == pytest.approx(found.pairs[-1] / (40 * 39 * np.pi * (100.0 - 7.5**2) / 500.0))


def test_ideal_gases_in_boxes_and_along_a_sphere(rng):
    """g = 1 up to half of the box, and over the whole of a sphere."""
    gas = rng.uniform(0.0, 1.0, (100, 60, 3)) * [20.0, 24.0, 30.0]
    g = mp.analysis.radial_distribution(gas, r_max=10.0, bins=5, box=(20.0, 24.0, 30.0))
    assert (abs(g.value - 1.0) < 6.0 * g.error).all()
    assert (g.error[1:] < 0.08).all()
    ball = rng.normal(size=(100, 60, 3))
    ball *= 50.0 / np.linalg.norm(ball, axis=2, keepdims=True)
    g = mp.analysis.radial_distribution(ball, r_max=50.0 * np.pi, bins=8, sphere=50.0, along_surface=True)
    assert (abs(g.value - 1.0) < 6.0 * g.error).all()
    assert g.pairs.sum() == 100 * 60 * 59
    two = [[50.0, 0, 0], [0, 50.0, 0]]
    one = mp.analysis.radial_distribution(two, r_max=100.0, bins=100, sphere=50.0, along_surface=True)
    assert one.distance[np.argmax(one.pairs)] == pytest.approx(25.0 * np.pi, abs=0.5)


def test_boxes_that_are_refused():
    x = np.zeros((4, 3))
    for box, match in (
        ((10.0, 10.0, 10.0), "cutoff = 6 but must be at most half of the box, 5"),
        ((10.0, 0.0, 10.0), r"box\[1\] = 0.0 but must be finite and > 0"),
        ((10.0,), "box"),
        ("abc", "box"),
        (3.0, "box must be three lengths, None in open directions, not 3.0"),
        ([(20, 20, 20)] * 2, "box is of 2 frames, but there are 1"),
    ):
        refuses(mp.ParameterError, match, mp.analysis.contact_counts, x, cutoff=6.0, box=box)
        refuses(mp.ParameterError, match, mp.analysis.clusters, x, cutoff=6.0, box=box)
    with pytest.raises(mp.ParameterError, match="r_max = 6 but must be at most half"):
        mp.analysis.radial_distribution(x, r_max=6.0, box=(10.0, 20.0, 20.0))
    with pytest.raises(mp.ParameterError, match="give one of volume="):
        mp.analysis.radial_distribution(x, r_max=6.0, box=(None, None, 20.0))
    with pytest.raises(mp.ParameterError, match="along_surface is of a sphere"):
        mp.analysis.radial_distribution(x, r_max=6.0, volume=1e6, along_surface=True)
