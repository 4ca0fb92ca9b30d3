"""Collisions of all pairs of shapes against a second program that compares everything with everything."""

import itertools

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces import SoftCollisions
from medyanpy.testing import ForceCase, check_force

KAPPA = 8.0

# The same, written a second time ---------------------------------------------------------------------------


def distances(a, b):
    """Of simplices with corners a (m, p, 3) and b (m, q, 3): the least of the distances of all their faces, where
    what leads from line to line, or plane, begins and ends inside both."""
    out = np.full(len(a), np.inf)
    for i, j in itertools.product(faces_of(a.shape[1]), faces_of(b.shape[1])):
        across = b[:, j[0]] - a[:, i[0]]
        sides = np.concatenate([a[:, i[:1]] - a[:, i[1:]], b[:, j[1:]] - b[:, j[:1]]], axis=1)
        inside = np.ones(len(a), bool)
        if sides.shape[1] > 3:
            continue
        if sides.shape[1]:
            gram = sides @ sides.transpose(0, 2, 1)
            inside = np.linalg.det(gram) > 1e-14 * np.prod(np.einsum("mkk->mk", gram), axis=1)
            gram[~inside] = np.eye(sides.shape[1])
            z = np.linalg.solve(gram, -np.einsum("mkc,mc->mk", sides, across)[..., None])[..., 0]
            across = across + np.einsum("mk,mkc->mc", z, sides)
            for weights in (z[:, : len(i) - 1], z[:, len(i) - 1 :]):
                inside &= (weights >= 0.0).all(axis=1) & (weights.sum(axis=1) <= 1.0)
        out[inside] = np.minimum(out, np.linalg.norm(across, axis=1))[inside]
    return out


def faces_of(corners):
    return [list(f) for n in range(corners) for f in itertools.combinations(range(corners), n + 1)]


MEETING = [("point", "point"), ("point", "link"), ("point", "triangle"), ("node", "triangle"), ("vertex", "triangle"),
           ("link", "link"), ("link", "edge"), ("edge", "edge")]  # fmt: skip


class Everything:
    """All pairs of shapes that repel each other when near, found by looking at all of them."""

    def __init__(self, shapes, stiffness, radius, layers=1, no_collide=0, self_avoiding=None, neighbors=1,
                 exclusions=(), switchover=KAPPA):  # fmt: skip
        n = len(shapes)
        self.few = False
        self.switchover, self.neighbors, self.exclusions = switchover, neighbors, exclusions
        stiffness, layers, no_collide = (np.broadcast_to(v, n).tolist() for v in (stiffness, layers, no_collide))
        radius = radius if isinstance(radius, list) else [radius] * n
        if self_avoiding is None:
            self_avoiding = [not isinstance(s, mp.topology.Membrane) for s in shapes]
        found = {}
        for i, j in itertools.product(range(n), repeat=2):
            a, b = shapes[i], shapes[j]
            apart = layers[i] & no_collide[j] or layers[j] & no_collide[i] or (i == j and not self_avoiding[i])
            if apart or getattr(a, "membrane", None) is b or getattr(b, "membrane", None) is a:
                continue
            k = stiffness[i] * stiffness[j] / max(stiffness[i] + stiffness[j], 1e-300)
            for first, second in MEETING:
                if first == second and i > j:
                    continue
                x, y = self.corners(a, first), self.corners(b, second)
                if len(x) and len(y):
                    ra, rb = (
                        s.radius if r is None else np.full(len(s), r) for s, r in ((a, radius[i]), (b, radius[j]))
                    )
                    p, q = self.meet(a, b, x, y)
                    reach = ra[x[p, 0] - a.kind.first_bead] + rb[y[q, 0] - b.kind.first_bead]
                    parts = x[p], y[q], reach, np.full(len(p), k)
                    found.setdefault((x.shape[1], y.shape[1]), []).append(parts)
        self.pairs = {key: [np.concatenate(c) for c in zip(*parts, strict=True)] for key, parts in found.items()}

    @staticmethod
    def corners(handle, kind):
        points, first = np.arange(len(handle))[:, None], handle.kind.first_bead
        if isinstance(handle, mp.topology.Filaments):
            has = {"node": points, "link": handle.links}
        elif isinstance(handle, mp.topology.Membrane):
            has = {"vertex": points, "edge": handle.mesh.edges, "triangle": handle.mesh.faces}
        else:
            has = {"point": points}
        return first + has.get(kind, np.zeros((0, 1), int))

    def meet(self, a, b, x, y):
        """Numbers of the shapes x of a and y of b that meet, each pair once."""
        meet = np.ones((len(x), len(y)), bool)
        if a is b and x.shape == y.shape:
            meet = np.triu(meet, 1)
        meet &= ~(x[:, None, :, None] == y[None, :, None, :]).any(axis=(2, 3))
        for p, q in self.exclusions:
            for one, other in ((p, q), (q, p)):
                meet &= ~((x == one).any(axis=1)[:, None] & (y == other).any(axis=1))
        if a is b and isinstance(a, mp.topology.Filaments) and x.shape[1] == y.shape[1] == 2:
            for first, last in itertools.pairwise(a.kind.link_starts.tolist()):
                for i, j in itertools.product(range(first, last), repeat=2):
                    steps = min(abs(i - j), last - first - abs(i - j)) if a.closed else abs(i - j)
                    meet[i, j] &= steps > self.neighbors
        return np.nonzero(meet)

    def candidates(self, x, margin):
        """Arrays of all pairs whose spheres come within reach and a margin."""
        for key, (i, j, reach, k) in self.pairs.items():
            if self.few:
                yield key, i, j, reach, k
                continue
            a, b = (self.spheres(x, c) for c in (i, j))
            keep = np.linalg.norm(a[0] - b[0], axis=1) < a[1] + b[1] + reach + margin
            yield key, i[keep], j[keep], reach[keep], k[keep]

    @staticmethod
    def spheres(x, corners):
        center = x[corners].mean(axis=1)
        return center, np.linalg.norm(x[corners] - center[:, None], axis=2).max(axis=1)

    def near(self, x, margin):
        """Only those whose distance is less than the sum of radii and a margin."""
        for key, i, j, reach, k in list(self.candidates(x, margin)):
            keep = distances(x[i], x[j]) < reach + margin
            self.pairs[key] = [i[keep], j[keep], reach[keep], k[keep]]
        self.few = True
        return self

    def entries(self, x, margin):
        """{(corners, corners)} of all pairs within reach and a margin, both ways round."""
        out = set()
        for _, i, j, reach, k in self.candidates(x, margin):
            keep = (distances(x[i], x[j]) < reach + margin) & (k > 0.0)
            pairs = {(tuple(p), tuple(q)) for p, q in zip(i[keep].tolist(), j[keep].tolist(), strict=True)}
            out |= pairs | {(q, p) for p, q in pairs}
        return out

    def energy(self, x):
        total = 0.0
        for _, i, j, reach, k in self.candidates(x, 0.0):
            a, b = x[i], x[j]
            u = soft(k, reach, distances(a, b))
            if a.shape[1] == b.shape[1] == 2:
                ends = 0.5 * sum(
                    soft(k, reach, distances(one[:, [e]], other)) for one, other in ((a, b), (b, a)) for e in range(2)
                )
                p, q = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]
                pp, qq, pq = (np.sum(v * w, axis=1) for v, w in ((p, p), (q, q), (p, q)))
                s = np.tanh(self.switchover * (pp * qq - pq**2) / np.sqrt(pp * qq) / reach**2)
                u = s * u + (1.0 - s) * ends
            total += u.sum()
        return total


def soft(k, reach, r):
    return 0.5 * k * np.maximum(reach - r, 0.0) ** 2


# Every pair of shapes ---------------------------------------------------------------------------------------


def lumpy(mesh, center, rng, noise):
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, noise, mesh.vertices.shape) + center)


def scene(spread=6.0, wanted=None):
    """Handles of every kind in one heap, in no order; or those that are wanted, and beads."""
    rng = np.random.default_rng(4)
    topology = mp.Topology()
    sheet = lumpy(mp.TriangleMesh.flat_sheet(2, 3, 4.0), [-2.0, -3.0, 1.0], rng, 0.5)
    walks = [np.cumsum(rng.normal(0.0, 2.2, (n, 3)), axis=0) + rng.normal(0.0, 0.5 * spread, 3) for n in (4, 2, 5)]
    beads, balls = rng.normal(0.0, spread, (4, 3)), rng.normal(0.0, spread, (6, 3))
    ring = 4.0 * np.array([[np.cos(a), np.sin(a), 0.2 * a] for a in 2.0 * np.pi * np.arange(7) / 7])
    ring += rng.normal(0.0, 0.7, (7, 3))
    closed = lumpy(mp.TriangleMesh.icosphere(4.0, 0), [0.0, 0.0, -1.5], rng, 0.5)
    h = {"beads": topology.add_beads(beads, mass=1.0)}
    for name, add in {
        "sheet": lambda: topology.add_membrane(sheet, vertex_mass=1.0),
        "chains": lambda: topology.add_filaments(walks, 1.0, constrained=False),
        "points": lambda: topology.add_intriangle_points(h["sheet"], 3, mass=1.0, seed=4),
        "balls": lambda: topology.add_balls(balls, np.linspace(1.0, 2.5, 6), mass=1.0),
        "rings": lambda: topology.add_filaments([ring], 1.0, constrained=False, closed=True),
        "closed": lambda: topology.add_membrane(closed, vertex_mass=1.0),
    }.items():
        if wanted is None or name in wanted:
            h[name] = add()
    return topology, h


ALL = ["closed", "chains", "balls", "sheet", "points", "rings", "beads"]
RADII = {"closed": 0.8, "chains": 1.1, "balls": None, "sheet": 0.6, "points": 1.4, "rings": 0.9, "beads": 1.7}
STIFFNESS = {"closed": 5.0, "chains": 3.0, "balls": 7.0, "sheet": 2.0, "points": 4.0, "rings": 9.0, "beads": 1.0}
LAYERS = {"layers": [3, 1, 6, 4, 9, 1, 2], "no_collide": [8, 0, 1, 2, 0, 4, 0]}


def excluded(h):
    return [
        [h["balls"].beads[0], h["chains"].beads[2]],
        [h["closed"].beads[3], h["balls"].beads[1]],
        [h["rings"].beads[1], h["chains"].beads[5]],
        [h["rings"].beads[4], h["closed"].beads[7]],
        [h["sheet"].beads[5], h["closed"].beads[0]],
    ]


FEW = {"spread": 3.0}
CASES = {
    "points": (["balls", "beads"], {"spread": 2.0}),
    "point and segment": (["balls", "chains", "rings"], FEW),
    "point and triangle": (["balls", "closed", "beads", "sheet"], FEW),
    "segments": (["chains", "rings"], {"spread": 2.0}),
    "segments with another switchover": (["chains", "rings"], {"spread": 2.0, "switchover": 0.5}),
    "segment and triangle": (["closed", "chains", "sheet", "rings"], {"spread": 4.0}),
    "triangles": (["closed", "sheet"], {}),
    "triangles among themselves": (["closed", "sheet"], {"self_avoiding": [True, False]}),
    "points in triangles": (["sheet", "points", "closed", "chains"], FEW),
    "everything": (ALL, FEW),
    "everything in layers": (ALL, {**FEW, **LAYERS}),
    "everything but some": (ALL, {**FEW, "neighbors": 2, "exclude": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_every_pair_of_shapes_keeps_the_contract(name):
    which, options = CASES[name][0], dict(CASES[name][1])
    spread, exclude = options.pop("spread", 6.0), options.pop("exclude", False)
    stiffness, radius = [STIFFNESS[w] for w in which], [RADII[w] for w in which]

    def build():
        topology, h = scene(spread, which)
        more = {"exclusions": np.array(excluded(h))} if exclude else {}
        return topology, SoftCollisions([h[w] for w in which], stiffness, radius, **options, **more)

    topology, h = scene(spread, which)
    x = np.concatenate([handle.positions for handle in topology.handles])
    more = {"exclusions": excluded(h)} if exclude else {}
    everything = Everything([h[w] for w in which], stiffness, radius, **options, **more).near(x, 0.5)
    check_force(ForceCase(name, build, everything.energy, 0.02))


def regions():
    """A point over every corner, side and the inside of a triangle; two segments, each met at each end and inside:
    far from each other, and no two alike."""
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    triangle = np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [1.0, 4.0, 0.0]])
    over = [[-0.5, -0.6, 0.7], [5.6, -0.3, 0.5], [0.9, 4.5, -0.6], [2.0, -0.7, 0.5], [3.4, 2.3, -0.5], [-0.3, 2.0, 0.8]]
    over += [[1.7, 1.4, 0.9], [1.8, 1.2, -0.6]]
    shapes, points, chains = [], [], []
    for i, x in enumerate(over):
        turn, at = np.linalg.qr(rng.normal(size=(3, 3)))[0], [40.0 * i, 0.0, 0.0]
        shapes.append(topology.add_membrane(mp.TriangleMesh(triangle @ turn + at, [[0, 1, 2]]), vertex_mass=1.0))
        points.append(x @ turn + at)
    for i, (s, t) in enumerate(itertools.product([-0.1, 0.4, 1.15], repeat=2)):
        turn, at = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([40.0 * i, 40.0, 0.0])
        p, q = np.array([5.0, 0.5, 0.0]), np.array([-1.0, 6.0, 0.3])
        chains.append([[0.0, 0, 0] @ turn + at, p @ turn + at])
        start = s * p - t * q + [0.0, 0.0, 0.7 + 0.1 * i]
        chains.append([start @ turn + at, (start + q) @ turn + at])
    shapes.append(topology.add_filaments(chains, 1.0, constrained=False))
    shapes.append(topology.add_beads(points, mass=1.0))
    return topology, shapes


def test_wherever_the_closest_points_are():
    def build():
        topology, shapes = regions()
        return topology, SoftCollisions(shapes, 10.0, 1.1, switchover=3.0)

    topology, shapes = regions()
    everything = Everything(shapes, 10.0, 1.1, switchover=3.0)
    x = np.concatenate([h.positions for h in topology.handles])
    assert len(everything.near(x, 0.0).pairs[1, 3][0]) == 8
    assert len(everything.pairs[2, 2][0]) == 9
    check_force(ForceCase("regions", build, everything.energy, 0.1))


# Parallel, crossing, in one place ---------------------------------------------------------------------------


def two_links(angle, height=1.0, shift=0.3, at=0.2, order=1, **options):
    """Forces (4, 3) and energy of two links of length 10, the second turned about a vertical axis through the first."""
    d = np.array([np.cos(angle), np.sin(angle), 0.0])
    first = np.array([[-5.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    second = np.array([[-5.0], [5.0]]) * d + [shift, at, height]
    topology = mp.Topology()
    filaments = topology.add_filaments([first, second][::order], 1.0, constrained=False)
    state = look(topology, SoftCollisions(filaments, 20.0, 1.0, **options))
    return state.forces.reshape(2, 2, 3)[::order].reshape(4, 3), state.potential_energy


def look(topology, *forces, threads=1):
    return make_context(topology, *forces, threads=threads).get_state(positions=True, forces=True, energy=True)


def make_context(topology, *forces, threads=1, word=None, timestep=1e-3, **options):
    system = system_with(topology, *forces)
    word = word or ("BAGAB" if topology.point_handles else "BAB")
    return mp.Context(system, mp.SplittingIntegrator(word, timestep, **options), threads=threads)


@pytest.mark.parametrize("at", [-1.0, 0.2])
def test_the_force_does_not_jump_where_links_become_parallel(at):
    parallel, energy = two_links(0.0, at=at)
    assert energy > 1.0
    for angle in 10.0 ** np.arange(-14.0, -3.0):
        for sign in (-1.0, 1.0):
            forces, e = two_links(sign * angle, at=at)
            # Linear in the angle: s begins with its square, its gradient with itself.
            assert np.abs(forces - parallel).max() < 300.0 * angle + 1e-12
            assert abs(e - energy) < 100.0 * angle + 1e-12
    # The closest points alone, from end to end.
    sharp = [two_links(sign * 1e-3, at=at, switchover=1e12)[0] for sign in (-1.0, 1.0)]
    assert np.abs(sharp[0] - sharp[1]).max() > 4.0


def test_almost_parallel_links_keep_the_contract():
    rng = np.random.default_rng(8)
    d = rng.normal(size=(4, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    chains = []
    for i, angle in enumerate(10.0 ** -np.arange(4.0)):
        side = np.cross(d[i], [1.0, 0.0, 0.0])
        side /= np.linalg.norm(side)
        turned = d[i] + angle * np.cross(d[i], side)
        for start, along in ((40.0 * i, d[i]), (40.0 * i + 1.1 * side + 0.7 * d[i], turned)):
            chains.append(start + np.array([[-4.0], [5.0]]) * along)

    def build():
        topology = mp.Topology()
        return topology, SoftCollisions(topology.add_filaments(chains, 1.0, constrained=False), 10.0, 1.0)

    everything = Everything([build()[0].handles[0]], 10.0, 1.0)
    check_force(ForceCase("almost parallel", build, everything.energy, 1e-3))


@pytest.mark.parametrize("order", [1, -1])
def test_links_that_cross_are_pushed_apart_along_their_normal(order):
    forces, energy = two_links(1.0, height=0.0, shift=0.4, at=0.3, order=order)
    above, energy_above = two_links(1.0, height=1e-9, shift=0.4, at=0.3, order=order)
    assert energy == pytest.approx(0.5 * 10.0 * 4.0, rel=1e-3)
    assert energy_above == pytest.approx(energy, rel=1e-8)
    np.testing.assert_allclose(forces, above, atol=1e-6)
    # k L, and s is all but 1.
    np.testing.assert_allclose(forces[2:].sum(axis=0), [0.0, 0.0, 20.0], atol=0.1)
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-14)


def test_a_point_inside_a_triangle_is_pushed_against_its_normal():
    sheet = mp.TriangleMesh([[0.0, 0, 0], [9.0, 0, 0], [0.0, 9.0, 0]], [[0, 1, 2]])
    topology = mp.Topology()
    shapes = [topology.add_membrane(sheet, vertex_mass=1.0), topology.add_beads([[2.0, 3.0, 0.0]], mass=1.0)]
    state = look(topology, SoftCollisions(shapes, 6.0, 1.0))
    np.testing.assert_allclose(state.forces[3], [0.0, 0.0, -3.0 * 2.0], atol=1e-14)
    np.testing.assert_allclose(state.forces[:3, 2], 6.0 * np.array([4.0, 2.0, 3.0]) / 9.0, atol=1e-14)


def test_bonds_without_direction_exert_no_force():
    """Points in one place, a point on a link, links that end in one point, on one line, or have no length."""
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [0.0, 0, 0], [32.0, 0, 0]], mass=1.0)
    nodes = [[[30.0, 0, 0], [35.0, 0, 0]], [[60.0, 0, 0], [65.0, 0, 0]], [[60.0, 0, 0], [60.0, 5.0, 0]]]
    nodes += [[[90.0, 0, 0], [94.0, 0, 0]], [[92.0, 0, 0], [97.0, 0, 0]]]
    chains = topology.add_filaments(nodes, 1.0, constrained=False)
    stubs = topology.add_filaments([[[120.0, 0, 0], [121.0, 0, 0]]] * 2, 1.0, constrained=False)
    context = make_context(topology, SoftCollisions([beads, chains, stubs], 2.0, 1.0))
    x = context.get_state(positions=True).positions.copy()
    x[stubs.beads] = x[stubs.beads[0]]
    context.set_positions(x)
    state = context.get_state(forces=True, energy=True)
    assert np.isfinite(state.forces).all()
    # Of links that end in one point, the far ends have a direction.
    assert not state.forces[[0, 1, 2, 3, 4, *range(9, 17)]].any()
    assert state.potential_energy > 2.0


# Neighbours ---------------------------------------------------------------------------------------------------


def heap(seed=6, n=90):
    """Thermal filaments, rings, balls, a vesicle around them and points in it."""
    rng = np.random.default_rng(seed)
    topology = mp.Topology()
    h = {"vesicle": topology.add_membrane(mp.TriangleMesh.icosphere(14.0, 2), vertex_mass=1.0)}
    walks = [np.cumsum(rng.normal(0.0, 1.2, (9, 3)), axis=0) + rng.normal(0.0, 4.0, 3) for _ in range(n)]
    h["chains"] = topology.add_filaments(walks, 1.0, constrained=False)
    h["balls"] = topology.add_balls(rng.normal(0.0, 5.0, (2 * n, 3)), rng.uniform(0.2, 0.9, 2 * n), mass=1.0)
    h["points"] = topology.add_intriangle_points(h["vesicle"], 2 * n, mass=1.0, seed=seed)
    inner = mp.TriangleMesh.icosphere(3.0, 1)
    h["inner"] = topology.add_membrane(inner.with_vertices(inner.vertices + [9.0, 0.0, 0.0]), vertex_mass=1.0)
    return topology, h


HEAP = {"vesicle": 0.5, "chains": 0.4, "balls": None, "points": 0.6, "inner": 0.3}


def heap_forces(h, skin=0.3):
    return [
        SoftCollisions([h[w] for w in HEAP], 30.0, list(HEAP.values()), skin=skin, name="collisions"),
        mp.forces.MembraneEdgeSprings(h["vesicle"], 20.0),
        mp.forces.MembraneEdgeSprings(h["inner"], 20.0),
        mp.forces.FilamentStretching(h["chains"], 30.0),
    ]


def heap_context(threads=1, skin=0.3, timestep=4e-3, n=90, **options):
    topology, h = heap(n=n)
    context = make_context(topology, *heap_forces(h, skin), threads=threads, timestep=timestep, **options)
    context.set_velocities_to_temperature(kT=1.0, seed=3)
    return context, h


def everything_in(h):
    return Everything([h[w] for w in HEAP], 30.0, list(HEAP.values()))


def listed(context):
    order = context.layout.order
    pairs = context._schedule.bound_forces["collisions"].pairs()
    out = [tuple(tuple(order[list(shape)].tolist()) for shape in pair[1:]) for pair in pairs]
    assert len(set(out)) == len(out)
    return set(out)


def test_lists_hold_near_beads_alone():
    context, h = heap_context(n=30)
    everything = everything_in(h)
    seen = 0
    for _ in range(4):
        state = context.get_state(positions=True, energy=True)
        x = state.positions
        assert state.energies["collisions"] == pytest.approx(everything.energy(x), rel=1e-12)
        assert everything.entries(x, 0.0) <= listed(context)
        builds = context._schedule.bound_forces["collisions"].builds
        if builds > seen:
            # Just made: all within the skin, and no others.
            fresh = heap_context(n=30)[0]
            fresh._set_dynamical_arrays(context._dynamical_arrays(), 0)
            fresh.get_state(energy=True)
            assert listed(fresh) == everything.entries(x, 0.3)
            seen = builds
        context.step(8)
    assert 1 < seen < context._schedule.bound_forces["collisions"].runs / 2


# Laws ---------------------------------------------------------------------------------------------------------


def test_momentum_is_conserved_through_points_and_all():
    """Points hand the forces on them to the corners of their triangles."""
    context, h = heap_context()
    topology = context.system.topology
    mass = np.concatenate([handle.mass for handle in topology.handles])[:, None]
    # Points in triangles keep what they have along their membrane only: without them, sums are those of free beads.
    free = np.setdiff1d(np.arange(topology.n_beads), h["points"].beads)

    def sums():
        state = context.get_state(positions=True, velocities=True)
        p = (mass * state.velocities)[free]
        return p.sum(axis=0), np.cross(state.positions[free], p).sum(axis=0)

    before = sums()
    scale = np.sqrt(len(free))
    context.step(50)
    after = sums()
    assert np.abs(after[0] - before[0]).max() < 1e-11 * scale
    assert np.abs(after[1] - before[1]).max() < 1e-11 * scale * 20.0
    assert context._schedule.bound_forces["collisions"].acts_on_points


def test_energy_of_a_run_is_conserved_to_second_order():
    errors = []
    for steps in (100, 200, 400):
        rng = np.random.default_rng(2)
        topology = mp.Topology()
        walks = [np.cumsum(rng.normal(0.0, 1.2, (6, 3)), axis=0) + rng.normal(0.0, 2.0, 3) for _ in range(20)]
        chains = topology.add_filaments(walks, 1.0, constrained=False)
        balls = topology.add_balls(rng.normal(0.0, 3.0, (40, 3)), 0.6, mass=1.0)
        forces = [SoftCollisions([chains, balls], 30.0, [0.5, None]), mp.forces.FilamentStretching(chains, 30.0)]
        context = make_context(topology, *forces, timestep=1.0 / steps)
        context.set_velocities_to_temperature(kT=1.0, seed=4)
        energies = []
        for _ in range(10):
            state = context.get_state(energy=True, velocities=True)
            assert state.energies["SoftCollisions"] > 1.0
            energies.append(state.potential_energy + state.kinetic_energy)
            context.step(steps // 10)
        errors.append(np.ptp(energies))
    ratios = np.array(errors[:-1]) / errors[1:]
    assert ((ratios > 3.0) & (ratios < 5.5)).all(), (errors, ratios)


def linking_number(a, b):
    """Of two polygons: the solid angle of each pair of sides, as seen from all differences of their points."""
    p, q = np.roll(a, -1, axis=0) - a, np.roll(b, -1, axis=0) - b
    corners = [b[None] - a[:, None]]
    corners += [corners[0] - p[:, None], corners[0] - p[:, None] + q[None], corners[0] + q[None]]
    total = 0.0
    for i, j, k in ((0, 1, 2), (0, 2, 3)):
        u, v, w = (corners[c] / np.linalg.norm(corners[c], axis=-1, keepdims=True) for c in (i, j, k))
        dots = np.sum(u * v, -1) + np.sum(v * w, -1) + np.sum(w * u, -1)
        total += 2.0 * np.arctan2(np.sum(u * np.cross(v, w), -1), 1.0 + dots).sum()
    return total / (4.0 * np.pi)


def test_filaments_do_not_pass_through_each_other():
    """Two rings through each other, pulled apart at kT = 1: 40 kT are in the way of each passage."""

    def run(stiffness):
        angle = 2.0 * np.pi * np.arange(12) / 12
        ring = 8.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
        topology = mp.Topology()
        rings = topology.add_filaments([ring, ring[:, [0, 2, 1]] + [8.0, 0.0, 0.0]], 1.0, 1.0, closed=True)
        pull = np.repeat([[-0.2, 0.0, 0.0], [0.2, 0.0, 0.0]], 12, axis=0)
        forces = [SoftCollisions(rings, stiffness, 1.5), mp.forces.UniformField(rings, pull)]
        context = make_context(topology, *forces, word="BAOAB", timestep=0.02, kT=1.0, seed=7)
        numbers = []
        for _ in range(100):
            context.step(100)
            state = context.get_state(positions=True, energy=True)
            numbers.append(abs(linking_number(state.positions[:12], state.positions[12:])))
        return np.array(numbers), state.energies["SoftCollisions"]

    linked, energy = run(4.0 * 40.0 / 9.0)
    np.testing.assert_allclose(linked, 1.0, atol=1e-9)
    assert energy > 0.0
    np.testing.assert_allclose(run(0.0)[0][10:], 0.0, atol=1e-9)


def test_a_ball_in_a_vesicle_stays_there():
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    vesicle = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=0.2)
    ball = topology.add_balls([[0.0, 0.0, 0.0]], 2.0, mass=5.0, friction=0.1)
    context = make_context(topology, SoftCollisions([vesicle, ball], 20.0, [0.5, None]),
                           mp.forces.MembraneEdgeSprings(vesicle, 50.0), mp.forces.MembraneVolume(vesicle, 1.0),
                           mp.forces.UniformField(ball, [2.0, 1.0, -3.0]), word="BAOAB", timestep=0.02, kT=1.0,
                           seed=2)  # fmt: skip
    touched = 0
    for _ in range(100):
        context.step(40)
        state = context.get_state(positions=True, energy=True)
        x = state.positions - state.positions[-1]
        a, b, c = x[vesicle.beads][mesh.faces].transpose(1, 0, 2)
        # The solid angle that the membrane fills, seen from the ball: 4π inside.
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        volume = np.sum(a * np.cross(b, c), axis=1)
        around = la * lb * lc + np.sum(a * b, 1) * lc + np.sum(b * c, 1) * la + np.sum(c * a, 1) * lb
        assert np.sum(2.0 * np.arctan2(volume, around)) == pytest.approx(4.0 * np.pi, rel=1e-9)
        touched += state.energies["SoftCollisions"] > 0.0
    assert touched > 50


# Who collides -------------------------------------------------------------------------------------------------


def two_balls(**options):
    topology = mp.Topology()
    a, b = (topology.add_balls([[x, 0.0, 0.0], [x, 1.5, 0.0]], 1.0, mass=1.0) for x in (0.0, 1.5))
    return look(topology, SoftCollisions([a, b], [2.0, 6.0], **options)).potential_energy


def test_layers_decide_who_collides():
    touch = 0.5 * (2.0 - 1.5) ** 2
    within = touch * (1.0 + 3.0)
    # The balls on the diagonal do not reach each other.
    across = 2.0 * touch * 2.0 * 6.0 / 8.0
    assert two_balls() == pytest.approx(within + across)
    assert two_balls(layers=[1, 2], no_collide=[2, 0]) == pytest.approx(within)
    assert two_balls(layers=[1, 2], no_collide=[0, 1]) == pytest.approx(within)
    assert two_balls(layers=[1, 2], no_collide=[1, 2]) == pytest.approx(across)
    assert two_balls(layers=5, no_collide=4) == 0.0
    assert two_balls(layers=[2**62, 1], no_collide=[2**62, 0]) == pytest.approx(across + touch * 3.0)
    assert two_balls(self_avoiding=False) == pytest.approx(across)
    assert two_balls(self_avoiding=[True, False]) == pytest.approx(across + touch)


def test_shapes_without_stiffness_repel_nothing():
    topology, h = heap()
    state = look(topology, SoftCollisions([h["balls"], h["chains"]], 0.0, 1.0))
    assert state.potential_energy == 0.0
    assert not state.forces.any()


def test_bonded_links_are_left_out():
    """A zigzag whose links are 0.6 long and 1.2 thick."""
    n = 9
    nodes = np.column_stack([0.5 * np.arange(n), 0.3 * (np.arange(n) % 2), np.zeros(n)])
    energies = []
    for neighbors in (1, 2, 3, 8):
        topology = mp.Topology()
        chain = topology.add_filament(nodes, 1.0, constrained=False)
        force = SoftCollisions(chain, 2.0, 0.6, neighbors=neighbors)
        energies.append(look(topology, force).potential_energy)
    assert energies[0] > energies[1] > 0.0
    assert energies[2:] == [0.0, 0.0]


def test_bonded_links_of_rings_are_left_out_all_around():
    """Links two steps apart have 0.58 between them, three steps apart 1.1; all are 1 thick."""
    angle = 2.0 * np.pi * np.arange(12) / 12
    ring = 0.3 / np.sin(np.pi / 12) * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    energies = []
    for neighbors in (1, 2):
        topology = mp.Topology()
        force = SoftCollisions(topology.add_filament(ring, 1.0, closed=True), 2.0, 0.5, neighbors=neighbors)
        energies.append(look(topology, force).potential_energy)
    assert energies[0] > 0.5
    assert energies[1] == 0.0


def test_first_links_of_two_handles_are_no_neighbors():
    topology = mp.Topology()
    nodes = np.array([[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    handles = [topology.add_filament(x, 1.0) for x in (nodes, nodes[:, [1, 0, 2]] + [0.0, 0.0, 1.0])]
    assert look(topology, SoftCollisions(handles, 2.0, 1.0)).potential_energy == pytest.approx(0.5, rel=1e-6)


def test_one_shape_alone_is_left_alone():
    for make in (
        lambda t: t.add_membrane(mp.TriangleMesh.icosphere(3.0, 1), vertex_mass=1.0),
        lambda t: t.add_beads([[0.0, 0.0, 0.0]], mass=1.0),
        lambda t: t.add_filament([[0.0, 0, 0], [1.0, 0, 0]], 1.0),
    ):
        topology = mp.Topology()
        shape = make(topology)
        state = look(topology, SoftCollisions(shape, 5.0, 2.0))
        assert state.potential_energy == 0.0
        assert not state.forces.any()


# Numbers and documents -------------------------------------------------------------------------------------------


def test_a_document_holds_all_of_it():
    topology, h = scene()
    system = mp.System(topology)
    force = system.add_force(SoftCollisions([h[w] for w in ALL], list(range(1, 8)), [RADII[w] for w in ALL], **LAYERS,
                                            neighbors=2, switchover=3.0, self_avoiding=[True] * 7,
                                            exclusions=excluded(h), skin=0.3, name="all", group=2))  # fmt: skip
    force.set(stiffness=[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    text = mp.serialize(system)
    again = mp.deserialize(text)
    assert mp.serialize(again) == text
    states = [
        mp.Context(s, mp.SplittingIntegrator("BAGAB", 1e-3)).get_state(forces=True, energy=True)
        for s in (system, again)
    ]
    np.testing.assert_array_equal(states[0].forces, states[1].forces)
    assert states[0].energies == states[1].energies
    assert states[0].energies["all"] > 0.0


# What is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "message"), [
    (lambda h: SoftCollisions([h["balls"], h["chains"]], 1.0), r"give radius=, because Filaments\(.*has no radius"),
    (lambda h: SoftCollisions([h["balls"], h["sheet"]], 1.0, [1.0, None]), "give radius=, because Membrane"),
    (lambda h: SoftCollisions([h["beads"], h["balls"]], 1.0, [2.0, "x"]), r"radius\[1\] = 'x' but must be a num"),
    (lambda h: SoftCollisions(h["balls"], 1.0, layers=-1), r"layers\[0\] = -1 but must be a whole number >= 0"),
    (lambda h: SoftCollisions(h["balls"], 1.0, no_collide=[0.5]), r"no_collide\[0\] = 0.5 but must be a whole"),
    (lambda h: SoftCollisions(h["balls"], 1.0, layers=[1, 2]), r"layers must be one for all or have shape \(1,\)"),
    (lambda h: SoftCollisions(h["balls"], 1.0, self_avoiding="no"), r"self_avoiding\[0\] = 'no' but must be True"),
    (lambda h: SoftCollisions(h["balls"], 1.0, neighbors=0), "neighbors = 0 but must be a whole number >= 1"),
])  # fmt: skip
def test_numbers_outside_their_domain_are_refused(make, message):
    refuses(mp.ParameterError, message, make, scene()[1])


@pytest.mark.parametrize(("make", "message"), [
    (lambda h: SoftCollisions([], 1.0), "SoftCollisions: shapes must be handles"),
    (lambda h: SoftCollisions([1, 2], 1.0), "SoftCollisions: shapes must be handles"),
    (lambda h: SoftCollisions([h["balls"], h["beads"], h["balls"]], 1.0, 1.0), r"shapes\[2\]: Balls.* is there twice"),
    (lambda h: SoftCollisions(scene()[1]["balls"], 1.0), "belongs to another topology"),
    (lambda h: SoftCollisions(h["balls"], 1.0, exclusions=[[0, 9999]]), r"exclusions\[0\] names beads \[0, 9999\]"),
    (lambda h: SoftCollisions(h["balls"], 1.0, exclusions=[[3, 3]]), r"exclusions\[0\] excludes bead 3 from itself"),
    (lambda h: SoftCollisions(h["balls"], 1.0, exclusions=[3, 3]), r"exclusions must have shape \(n, 2\)"),
])  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(make, message):
    topology, h = scene()
    refuses(mp.TopologyError, message, lambda: make_context(topology, make(h)))


@pytest.mark.unstable
def test_a_node_that_is_lost_is_named():
    topology = mp.Topology()
    chains = topology.add_filaments([[[0.0, 0, 0], [1.0, 0, 0]], [[0.0, 9, 0], [1.0, 9, 0]]], 1.0, constrained=False)
    context = make_context(topology, SoftCollisions(chains, 1.0, 1.0, name="bump"), timestep=1e3)
    context.set_velocities([[0.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0], [0.0, 1.7e308, 0]])
    refuses(mp.SimulationError, r"bead 3 .*force bump", context.step, 1)
