"""Mean-square displacements along membranes: rolled out, flat ones are the plain ones, and curved ones unfold."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from builders import refuses, system_with
from scipy.spatial.transform import Rotation
from scipy.special import eval_legendre

import medyanpy as mp
from medyanpy import analysis
from medyanpy._tools.images import nearest_image
from medyanpy.analysis.rolling import _nearest
from medyanpy.analysis.surfaces import Patch
from medyanpy.errors import TopologyError
from medyanpy.mesh import geometry
from medyanpy.testing import check_mean

along = analysis.surface_mean_square_displacement


def placed(mesh, n, **options):
    """A context of n points on a heavy membrane that is not the first of its topology, and both handles."""
    topology = mp.Topology()
    topology.add_beads(np.ones((3, 3)), mass=1.0)
    other = topology.add_membrane(mp.TriangleMesh.icosphere(1.0, 0), vertex_mass=1.0, fixed=True, name="other")
    topology.add_intriangle_points(other, 2, mass=1.0, seed=1, name="others")
    membrane = topology.add_membrane(mesh, vertex_mass=1e15, name="membrane", **options)
    points = topology.add_intriangle_points(membrane, n, mass=1.0, seed=2, name="points")
    context = mp.Context(mp.System(topology, box=mesh.box), mp.SplittingIntegrator("AGBGA", 1.0), threads=1)
    return context, membrane, points


def flown(context, membrane, points, rng, frames, step, sway=0.0, flips=0):
    """States of points that fly on in a direction of their own each time, on a membrane that sways and is flipped."""
    states = [context.get_state(positions=True)]
    for _ in range(1, frames):
        v = np.zeros((len(states[0].positions), 3))
        v[points.beads] = rng.normal(0.0, step, (len(points), 3))
        if sway:
            v[membrane.beads, :2] = rng.normal(0.0, sway, (len(membrane), 2))
        context.set_velocities(v)
        context.step(1)
        for _ in range(flips):
            flip(context, membrane, rng)
        states.append(context.get_state(positions=True))
    return states


def flip(context, membrane, rng):
    """An edge that can be flipped, so that its two triangles do not become much smaller."""
    while True:
        state = context.get_state(positions=True)
        x, old = state.positions[membrane.beads], state.faces["membrane"]
        try:
            made = context.flip_edges(membrane, [old[rng.integers(len(old)), :2]])
        except TopologyError:
            continue
        new = context.get_state(positions=True).faces["membrane"]
        turned = (new != old).any(axis=1)
        before, after = (geometry.area_vectors(x, faces[turned], membrane.mesh.box) for faces in (old, new))
        if (after @ before.sum(axis=0) > 0.3 * before.sum(axis=0) @ before.sum(axis=0) / 2.0).all():
            return
        context.flip_edges(membrane, made)


def seen(time, vertices, faces, triangles, weights, ids=None, box=None):
    """A frame: vertices of one membrane, and points behind them, which none but triangles and weights tell of."""
    n = len(vertices) + len(triangles)
    return SimpleNamespace(
        time=time, positions=np.concatenate([vertices, np.zeros((len(triangles), 3))]), faces={"membrane": faces},
        ids=np.arange(n) if ids is None else np.concatenate([np.arange(len(vertices)), ids]), box=box,
        triangles=np.asarray(triangles), barycentric=np.asarray(weights, float),
    )  # fmt: skip


def handle_of(mesh, n):
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, name="membrane")
    return topology.add_intriangle_points(membrane, n, mass=1.0, seed=1)


def moved_about(states, membrane, points, motions):
    """The same frames, in each of which all has been rotated and shifted."""
    return [
        seen(state.time, move(state.positions[membrane.beads]), state.faces["membrane"],
             state.intriangle.triangles[points.points], state.intriangle.barycentric[points.points])
        for state, move in zip(states, motions, strict=True)
    ]  # fmt: skip


def expect_same(found, wanted, rtol):
    np.testing.assert_array_equal(found.pairs, wanted.pairs)
    np.testing.assert_allclose(found.value, wanted.value, rtol=rtol, atol=rtol * wanted.value.max())
    np.testing.assert_allclose(found.error, wanted.error, rtol=1e6 * rtol, atol=1e3 * rtol * wanted.value.max())


# What is flat --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relative_to", ["membrane", "space"])
@pytest.mark.parametrize("n", [3, 25])
def test_on_a_flat_sheet_it_is_the_plain_one(n, relative_to, rng):
    """Through the sides of the box, with edges that flip under the points."""
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    context, sheet, points = placed(mesh, n)
    states = flown(context, sheet, points, rng, 20, 0.8, flips=8)
    found = along(states, points, range(20), reach=3.4, relative_to=relative_to)
    expect_same(found, analysis.mean_square_displacement(states, points, range(20)), 1e-12)
    # They have been around the box.
    assert found.value.max() > 16.0
    assert (states[0].faces["membrane"] != states[-1].faces["membrane"]).any(axis=1).sum() > 60
    half = along(states, points, reach=3.4, relative_to=relative_to)
    np.testing.assert_allclose(half.value, found.value[1:11], rtol=1e-12)
    estimate = analysis.diffusion_coefficient(half, offset=False)
    assert estimate.value == pytest.approx(2.0 * 0.8**2 / 4.0, rel=1.0)


def test_in_space_on_a_sheet_that_flows_in_its_plane(rng):
    """It does not matter how triangles move, and which there are: the plain one. Relative to the membrane, what flows
    with it stays where it is."""
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    context, sheet, points = placed(mesh, 10)
    states = flown(context, sheet, points, rng, 12, 0.5, sway=0.02, flips=4)
    found = along(states, points, range(12), reach=3.4, relative_to="space")
    expect_same(found, analysis.mean_square_displacement(states, points, range(12)), 1e-12)
    states = flown(context, sheet, points, rng, 6, 0.0, sway=0.02)
    ride = along(states, points, range(6), reach=3.4)
    np.testing.assert_allclose(ride.value, 0.0, atol=1e-20)
    assert along(states, points, 5, reach=3.4, relative_to="space").value[0] > 1e-4


@pytest.mark.parametrize("relative_to", ["membrane", "space"])
def test_around_the_corners_of_borders(relative_to, rng):
    """A flat sheet with a hole and jagged sides: paths that bend there are laid out as they are."""
    whole = mp.TriangleMesh.flat_sheet(9, 9, 1.0)
    middle = whole.vertices[whole.faces].mean(axis=1)
    hole = np.abs(middle - whole.vertices.mean(axis=0)).max(axis=1) < 1.9
    mesh = mp.TriangleMesh(*_used(whole.vertices, whole.faces[~hole]))
    n, m = 40, 12
    frames, places = [], []
    for k in range(m):
        triangles, weights = mesh.sample(n, rng)
        places.append(np.einsum("nk,nki->ni", weights, mesh.vertices[mesh.faces[triangles]]))
        frames.append(seen(0.1 * k, mesh.vertices, mesh.faces, triangles, weights))
    found = along(frames, handle_of(mesh, n), range(m), reach=40.0, relative_to=relative_to)
    wanted = analysis.mean_square_displacement(np.array(places), None, range(m), interval=0.1)
    expect_same(found, wanted, 1e-12)
    # Most of these paths are longer than the straight line.
    assert wanted.value[1] > 5.0


def _used(vertices, faces):
    kept, faces = np.unique(faces, return_inverse=True)
    return vertices[kept], faces.reshape(-1, 3)


# What can be unfolded ------------------------------------------------------------------------------------------------


def prism(sides, rings, radius, height):
    """A tube through the sides of its box: vertices, faces, the box, and the width of a side."""
    angle = 2.0 * np.pi * np.arange(sides) / sides
    ring = radius * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    vertices = np.concatenate([ring + [0.0, 0.0, height * k] for k in range(rings)])
    faces = []
    for k in range(rings):
        for i in range(sides):
            a, b, c, d = (((k + u) % rings) * sides + (i + v) % sides for u, v in ((0, 0), (0, 1), (1, 1), (1, 0)))
            faces += [[a, b, c], [a, c, d]] if (i + k) % 2 else [[a, b, d], [b, c, d]]
    width = 2.0 * radius * np.sin(np.pi / sides)
    return mp.TriangleMesh(vertices, faces, box=(None, None, height * rings)), width


@pytest.mark.parametrize("relative_to", ["membrane", "space"])
def test_a_tube_unrolls(relative_to, rng):
    sides, rings, height = 7, 6, 1.1
    mesh, width = prism(sides, rings, 1.5, height)
    n, m = 12, 40
    # Places on the plane, and the same on the tube.
    plane = np.cumsum(np.clip(rng.normal(0.0, 0.9, (m, n, 2)), -2.2, 2.2), axis=0)
    frames = []
    for k in range(m):
        s, z = plane[k, :, 0] / width, plane[k, :, 1] / height
        i, row = np.floor(s).astype(int), np.floor(z).astype(int)
        u, v = s - i, z - row
        i, row = i % sides, row % rings
        odd = (i + row) % 2 == 1
        first = np.where(odd, v <= u, u + v <= 1.0)
        weights = np.where(odd[:, None],
                           np.where(first[:, None], np.stack([1 - u, u - v, v], 1), np.stack([1 - v, u, v - u], 1)),
                           np.where(first[:, None], np.stack([1 - u - v, u, v], 1),
                                    np.stack([1 - v, u + v - 1, 1 - u], 1)))  # fmt: skip
        frames.append(seen(0.5 * k, mesh.vertices, mesh.faces, 2 * (row * sides + i) + ~first, weights, box=mesh.box))
    wanted = analysis.mean_square_displacement(np.concatenate([plane, np.zeros((m, n, 1))], axis=2), None, range(m),
                                               interval=0.5)  # fmt: skip
    expect_same(along(frames, handle_of(mesh, n), range(m), reach=3.2, relative_to=relative_to), wanted, 1e-12)
    # Several times round.
    assert np.ptp(plane[:, :, 0], axis=0).max() > sides * width
    # Vertices may be images of their own.
    for frame in frames:
        frame.positions[:, 2] += mesh.box[2] * rng.integers(-2, 3, len(frame.positions))
    expect_same(along(frames, handle_of(mesh, n), range(m), reach=3.2, relative_to=relative_to), wanted, 1e-12)


def fan(n, slant):
    """Triangles with equal angles around one vertex: a cone, or a saddle where there is more than a full turn."""
    angle = 2.0 * np.pi * np.arange(n) / n
    ring = 4.0 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    ring[:, 2] = 4.0 * slant * (np.ones(n) if n < 7 else np.array([1.0, -1.0] * (n // 2)))
    vertices = np.concatenate([[[0.0, 0.0, 0.0]], ring])
    faces = np.array([[0, 1 + i, 1 + (i + 1) % n] for i in range(n)])
    e = vertices[faces[:, 1:]]
    cosine = np.einsum("fi,fi->f", e[:, 0], e[:, 1]) / np.linalg.norm(e, axis=2).prod(axis=1)
    return mp.TriangleMesh(vertices, faces), n * float(np.arccos(cosine[0]))


@pytest.mark.parametrize("relative_to", ["membrane", "space"])
@pytest.mark.parametrize(("n", "slant"), [(5, 0.0), (5, 0.6), (6, 2.0), (8, 0.5), (8, 1.2)])
def test_a_loop_around_a_vertex_turns_the_plane_by_what_is_missing_of_a_turn(n, slant, relative_to):
    """Gauss and Bonnet: places on a circle stay on a circle in the plane, on which the same number of hops leads round
    by the angle of the surface in place of a full turn."""
    mesh, whole = fan(n, slant)
    assert (whole < 2.0 * np.pi + 1e-9) == (n < 7)
    radius, hops = 1.3, 9
    angles = whole / hops * np.arange(3 * hops)[:, None] + np.array([0.1, 0.9])
    frames = []
    for k, angle in enumerate(angles):
        i, rest = np.divmod(angle / whole * n, 1.0)
        triangles = i.astype(int) % n
        # By the law of sines in the triangle.
        one = whole / n
        corner = mesh.vertices[mesh.faces[triangles][:, 1:]]
        side = np.linalg.norm(corner, axis=2)
        b = radius * np.sin((1.0 - rest) * one) / np.sin(one) / side[:, 0]
        c = radius * np.sin(rest * one) / np.sin(one) / side[:, 1]
        frames.append(seen(1.0 * k, mesh.vertices, mesh.faces, triangles, np.stack([1.0 - b - c, b, c], axis=1)))
    found = along(frames, handle_of(mesh, 2), range(3 * hops), reach=3.0, relative_to=relative_to)
    chord = 2.0 * radius * np.sin(0.5 * whole / hops * found.lags)
    np.testing.assert_allclose(found.value, chord**2, atol=1e-12)
    if slant:
        assert found.value[hops] > 0.05


def test_a_path_over_a_saddle_goes_straight_on():
    """Where there is more than a turn around a vertex, shortest paths go through it: as long as both legs."""
    mesh, whole = fan(8, 1.2)
    assert whole > 3.0 * np.pi
    weights = np.array([[0.7, 0.1, 0.2], [0.6, 0.2, 0.2]])
    faces = [0, 4]
    places = np.einsum("nk,nki->ni", weights, mesh.vertices[mesh.faces[faces]])
    frames = [seen(1.0 * k, mesh.vertices, mesh.faces, [faces[k % 2]], weights[[k % 2]]) for k in range(3)]
    found = along(frames, handle_of(mesh, 1), [1, 2], reach=9.0)
    assert found.value[0] == pytest.approx(np.linalg.norm(places, axis=1).sum() ** 2, rel=1e-12)
    assert found.value[1] == pytest.approx(0.0, abs=1e-20)


def test_hops_from_and_to_a_vertex_and_no_hop():
    """Places at corners and on sides of triangles, in any of the triangles there, on a flat fan."""
    mesh, _ = fan(6, 0.0)
    on = [(f, w) for f in range(6) for w in ([1.0, 0.0, 0.0], [0.0, 0.3, 0.7], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5])]
    rng = np.random.default_rng(4)
    order = np.concatenate([rng.permutation(len(on)) for _ in range(4)])
    frames, places = [], []
    for k, i in enumerate(order):
        face, weights = on[i]
        frames.append(seen(1.0 * k, mesh.vertices, mesh.faces, [face], [weights]))
        places.append(np.array(weights) @ mesh.vertices[mesh.faces[face]])
    found = along(frames, handle_of(mesh, 1), range(len(order)), reach=9.0)
    wanted = analysis.mean_square_displacement(np.array(places)[:, None], None, range(len(order)), interval=1.0)
    # Places at a vertex are moved by 1e-11 of an edge.
    np.testing.assert_allclose(found.value, wanted.value, atol=2e-9)


# Diffusion -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_diffusion_on_a_sphere_is_that_of_a_plane_at_all_lags():
    """Free flights for a step with new velocities each, 2 kT Δt²/m on average. In space, at the last lag, 45 % of it
    are missing."""
    kT, radius = 3.0, 10.0
    topology = mp.Topology()
    sphere = topology.add_membrane(mp.TriangleMesh.icosphere(radius, 3), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(sphere, 500, mass=1.0, friction=1e9, seed=1)
    context = mp.Context(mp.System(topology), mp.SplittingIntegrator("OBAGABO", 1.0, kT=kT, seed=2), threads=1)
    states = []
    for _ in range(61):
        context.step(1)
        states.append(context.get_state(positions=True))
    moved = along(states, points, [1, 10, 45], reach=12.0)
    # What is missing of a hop, to first order, is a tenth of what is seen.
    line = 2.0 * kT * moved.time * (1.0 - 2.0 * kT / (12.0 * radius**2))
    each = moved._parts.sums[:, 0] / moved._parts.counts[:, 0] / line
    for k, sees in enumerate((0.06, 0.15, 0.3)):
        check_mean(f"⟨v²⟩ along a sphere at {moved.time[k]:g} s", each[:, k], 1.0, sees=sees)
    space = analysis.mean_square_displacement(states, points, 45).value[0]
    saturating = 2.0 * radius**2 * (1.0 - np.exp(-0.5 * line[2] / radius**2))
    assert space == pytest.approx(saturating, rel=0.1)
    assert space < 0.7 * moved.value[2]


def test_error_of_hops_between_distant_frames(rng):
    """⟨v²⟩ = 4Dτ (1 - KDτ/3): hops on a sphere, of lengths that are quantiles of the heat kernel."""
    radius, n = 10.0, 400
    mesh = mp.TriangleMesh.icosphere(radius, 4)
    theta = (np.arange(4000) + 0.5) * np.pi / 4000
    degree = np.arange(60)[:, None]
    for square, missing in ((0.1, 0.0083), (0.5, 0.042)):       # 4Dτ/R²
        share = (2 * degree + 1) * np.exp(-degree * (degree + 1) * square / 4.0)
        density = (share * eval_legendre(degree, np.cos(theta))).sum(axis=0) * np.sin(theta)
        share = np.cumsum(density) / density.sum()
        series = float(theta**2 @ density) / density.sum() / square
        assert series == pytest.approx(1.0 - square / 12.0, abs=4e-3 * square**2)
        assert series == pytest.approx(1.0 - missing, abs=1e-4 + 2e-3 * square)
        arc = np.interp((np.arange(n) + 0.5) / n, share, theta + 0.5 * np.pi / 4000)
        # From anywhere in any direction, and down onto the triangles.
        triangles, weights = mesh.sample(n, rng)
        x = np.einsum("nk,nki->ni", weights, mesh.vertices[mesh.faces[triangles]])
        u = x / np.linalg.norm(x, axis=1)[:, None]
        d = np.cross(u, rng.normal(size=(n, 3)))
        d /= np.linalg.norm(d, axis=1)[:, None]
        there = np.cos(arc)[:, None] * u + np.sin(arc)[:, None] * d
        later = _below(mesh, there)
        places = (triangles, weights), later
        frames = [seen(1.0 * k, mesh.vertices, mesh.faces, *places[k]) for k in range(2)]
        found = along(frames, handle_of(mesh, n), 1, reach=32.0).value[0] / (square * radius**2)
        assert found == pytest.approx(series, rel=4e-3)
        assert found < 1.0 - 0.5 * missing


def _below(mesh, directions):
    """Triangles and weights where lines from the middle cross a mesh."""
    inverse = np.linalg.inv(mesh.vertices[mesh.faces].transpose(0, 2, 1))
    triangles, weights = [], []
    for part in np.array_split(directions, 20):
        w = np.einsum("fki,ni->nfk", inverse, part)
        best = np.argmax(w.min(axis=2), axis=1)
        w = np.clip(w[np.arange(len(part)), best], 0.0, None)
        triangles.append(best)
        weights.append(w / w.sum(axis=1)[:, None])
    return np.concatenate(triangles), np.concatenate(weights)


# Membranes that move -------------------------------------------------------------------------------------------------


def test_hops_are_as_long_as_on_the_later_membrane(rng):
    """A sheet that breathes, quickly: its area a at the end of a hop and the area b that it was made on have nothing to
    do with each other, and ⟨a/b⟩ = ⟨a⟩⟨1/b⟩, 1 and the variance of the area."""
    deviation = 0.05
    levels = 1.0 + deviation * np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25)
    area, made_on = (one.ravel() for one in np.meshgrid(levels, levels))
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 1.0, periodic=True)
    context, sheet, points = placed(mesh, 10)
    states = [context.get_state(positions=True)]
    for b in made_on:
        v, angle = np.zeros((len(states[0].positions), 3)), rng.uniform(0.0, 2.0 * np.pi, 10)
        v[points.beads, :2] = 0.7 / np.sqrt(b) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        context.set_velocities(v)
        context.step(1)
        states.append(context.get_state(positions=True))
    size = np.sqrt([1.0, *area])
    frames = moved_about(states, sheet, points, [partial(np.multiply, one) for one in size])
    for frame, one in zip(frames, size, strict=True):
        frame.box = (one * mesh.box[0], one * mesh.box[1], None)
    found = along(frames, _as_first(points), 1, reach=2.0).value[0] / 0.7**2
    assert found == pytest.approx((area / made_on).mean(), rel=1e-12)
    assert found == pytest.approx(1.0025, abs=2e-5)


def test_whole_membranes_that_turn_and_move(rng):
    """Relative to the membrane nothing of it is seen, be there flips or not."""
    context, cell, points = placed(mp.TriangleMesh.icosphere(5.0, 2), 8)
    states = flown(context, cell, points, rng, 15, 0.8, sway=0.1, flips=5)
    assert (states[0].faces["membrane"] != states[-1].faces["membrane"]).any(axis=1).sum() > 50
    wanted = along(states, points, range(15), reach=12.0)
    assert wanted.value[14] > 5.0
    turns, shifts = Rotation.random(15, random_state=1), rng.normal(0.0, 20.0, (15, 3))
    frames = moved_about(states, cell, points, [partial(_turned, *one) for one in zip(turns, shifts, strict=True)])
    expect_same(along(frames, _as_first(points), range(15), reach=12.0), wanted, 1e-10)


def _turned(turn, shift, x):
    return turn.apply(x.copy()) + shift


def _as_first(points):
    """Of the frames of `moved_about`, which have one membrane only."""
    return handle_of(points.membrane.mesh, len(points))


def test_in_space_places_stay_on_their_side_of_a_fold(rng):
    """Two sheets that face away from each other, both of which rise by more than what is between them."""
    one = mp.TriangleMesh.flat_sheet(6, 6, 1.0)
    vertices = np.concatenate([one.vertices, one.vertices + [0.1, 0.2, -0.4]])
    mesh = mp.TriangleMesh(vertices, np.concatenate([one.faces, len(one.vertices) + one.faces[:, ::-1]]))
    frames, places = [], []
    inside = np.flatnonzero((np.abs(vertices - vertices.mean(axis=0))[mesh.faces] < 2.4).all(axis=(1, 2)))
    for k in range(6):
        triangles, weights = np.tile(rng.choice(inside[inside < len(one.faces)], 5), 2), rng.dirichlet([1, 1, 1], 10)
        triangles[5:] += len(one.faces)
        x = vertices + [0.0, 0.0, 1.3 * k]
        frames.append(seen(1.0 * k, x, mesh.faces, triangles, weights))
        places.append(np.einsum("nk,nki->ni", weights, vertices[mesh.faces[triangles]]))
    found = along(frames, handle_of(mesh, 10), range(6), reach=9.0, relative_to="space")
    wanted = analysis.mean_square_displacement(np.array(places), None, range(6), axes="xy", interval=1.0)
    expect_same(found, wanted, 1e-12)


def test_nearest_place_is_nearest_of_all(rng):
    """Of a rough membrane that faces the same way, against a fine lattice of places in all of its triangles."""
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    patch = Patch("test", mesh.vertices + rng.normal(0.0, 0.3, mesh.vertices.shape), mesh.faces, None)
    at = rng.normal(0.0, 3.0, (40, 3))
    facing = rng.normal(size=(40, 3))
    triangles, weights, far = _nearest(patch, at, facing, 30.0)
    assert (weights >= 0.0).all()
    place = np.einsum("nk,nki->ni", weights, patch.corners[triangles])
    np.testing.assert_allclose(np.linalg.norm(place - at, axis=1), far, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-14)
    i, j = np.meshgrid(np.arange(41), np.arange(41))
    lattice = np.stack([i, j, 40 - i - j], axis=-1)[i + j <= 40] / 40.0
    others = np.einsum("gk,fki->fgi", lattice, patch.corners)
    for k in range(40):
        ahead = patch.area_vectors @ facing[k] > 0.0
        assert ahead[triangles[k]]
        least = np.linalg.norm(others[ahead] - at[k], axis=2).min()
        assert far[k] <= least * (1.0 + 1e-12)
        assert far[k] > least - 0.05
    assert not np.isfinite(_nearest(patch, at + 100.0, facing, 3.0)[2]).any()


def test_in_space_what_rides_on_a_sphere_that_turns_goes_round_a_circle():
    """A circle of latitude unrolls to an arc of radius R tan θ; relative to the membrane nothing moves."""
    mesh = mp.TriangleMesh.icosphere(10.0, 4)
    points = handle_of(mesh, 4)
    step, m = 0.08, 30
    about = [_turned(Rotation.from_rotvec([0.0, 0.0, step * k]), 0.0, mesh.vertices) for k in range(m)]
    frames = [seen(1.0 * k, about[k], mesh.faces, points.triangles, points.barycentric) for k in range(m)]
    lags = [1, 10, 29]
    np.testing.assert_allclose(along(frames, points, lags, reach=2.0).value, 0.0, atol=1e-20)
    found = along(frames, points, lags, reach=2.0, relative_to="space")
    x = points.positions
    theta = np.arccos(x[:, 2] / np.linalg.norm(x, axis=1))
    for k, lag in enumerate(lags):
        chord = 20.0 * np.tan(theta) * np.sin(0.5 * lag * step * np.cos(theta))
        assert found.value[k] == pytest.approx((chord**2).mean(), rel=0.02)


# Who is there, and where it is from ----------------------------------------------------------------------------------


def test_beads_that_are_added_and_removed(rng):
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    context, sheet, points = placed(mesh, 5)
    states = flown(context, sheet, points, rng, 16, 0.6)
    ids = np.tile(len(sheet) + np.arange(5), (16, 1))
    ids[6:, 1] = 900
    ids[9:, 2] = -1
    ids[:4, 3] = -1
    frames, x = [], np.array([state.positions[points.beads] for state in states])
    # Whoever takes the row of another is far from where that was.
    away = np.linalg.norm(nearest_image(x[6] - x[5, 1], mesh.box), axis=1)
    far = int(np.argmax(away))
    assert away[far] > 2.6
    x[6:, 1] = x[6:, far]
    for k, state in enumerate(states):
        rows = np.array([0, far if k >= 6 else 1, 2, 3, 4])
        held, at = state.intriangle, (points.points.start + rows)
        weights = np.where((ids[k] < 0)[:, None], np.nan, held.barycentric[at])
        triangles = np.where(ids[k] < 0, -1, held.triangles[at])
        x_now, faces = state.positions[sheet.beads], state.faces["membrane"]
        frames.append(seen(state.time, x_now, faces, triangles, weights, ids[k], mesh.box))
    x[ids < 0] = np.nan
    plain = [SimpleNamespace(time=state.time, positions=x[k], ids=ids[k]) for k, state in enumerate(states)]
    wanted = analysis.mean_square_displacement(plain, None, range(16))
    expect_same(along(frames, handle_of(mesh, 5), range(16), reach=2.6), wanted, 1e-12)


def test_export_of_trajectories_with_boxes_and_flips(tmp_path):
    """Vertices and points in a run of a fluid patch whose box changes."""
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0, vertex_friction=1.0, name="sheet")
    points = topology.add_intriangle_points(sheet, 10, mass=1.0, friction=1.0, seed=1, name="points")
    system = system_with(topology, mp.forces.MembraneBending(sheet, 5.0),
                         mp.forces.MembraneTether(sheet, 80.0, 1.0, l_min=0.4, l_max=1.9),
                         mp.forces.MembraneFoldRepulsion(sheet, 20.0), box=mesh.box)  # fmt: skip
    system.add_jump(mp.jumps.EdgeFlips(sheet, 2e4))
    system.add_jump(mp.jumps.BoxArea(tension=0.2, rate=150.0, step=0.03))
    integrator = mp.SplittingIntegrator("JBAGOGABJ", 0.002, kT=1.0, seed=3)
    simulation = mp.Simulation(system, integrator, threads=1)
    simulation.context.set_velocities_to_temperature(kT=1.0, seed=3)
    # Of a sheet that is flat still, edges are flipped back at once.
    simulation.step(120)
    states = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 20) as reporter:
        simulation.reporters.append(reporter)
        for _ in range(5):
            simulation.step(20)
            states.append(simulation.context.get_state(positions=True))
    assert states[0].box != states[-1].box
    assert (states[0].faces["sheet"] != states[-1].faces["sheet"]).any()
    found = along(states, points, reach=2.0)
    assert (found.value > 0.0).all()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for source, which in ((trajectory, "points"), (trajectory[:], trajectory.handles["points"])):
            expect_same(along(source, which, reach=2.0), found, 1e-9)
        two = along(trajectory[::2], "points", 1, reach=2.0)
        expect_same(two, along(states[::2], points, 1, reach=2.0), 1e-9)
    with pytest.raises(mp.ParameterError, match="the box changes from frame 0 to 1"):
        along(states, points, reach=2.0, relative_to="space")


# What is refused -----------------------------------------------------------------------------------------------------


def test_refused(rng):
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 1.0, periodic=True)
    context, sheet, points = placed(mesh, 5)
    states = flown(context, sheet, points, rng, 4, 0.5)
    for words, source, options in (
        ("one frame shows no motion", states[0], {}),
        ("one frame shows no motion", states[:1], {}),
        ("positions have no triangles", np.zeros((3, len(states[0].positions), 3)), {}),
        ("reach = 0", states, {"reach": 0.0}),
        ("reach = 5 but must be at most half of the box", states, {"reach": 5.0}),
        (r"lags\[0\] = 4 but must be >= 0 and < 4", states, {"lags": 4}),
        ("there is no .*relative_to 'spce': did you mean 'space'", states, {"relative_to": "spce"}),
        ("equal distances in time", [states[0], states[1], states[3]], {}),
        (r"from frame \d to \d, point \d \(bead \d+\) gets .* nm away in a straight line, .* beyond reach = 0.01 nm",
         states, {"reach": 0.01}),
    ):  # fmt: skip
        refuses(mp.ParameterError, words, along, source, points, **{"reach": 2.0} | options)
    refuses(TopologyError, "points must be the handle of in-triangle points", along, states, sheet, reach=2.0)
    frames = moved_about(states[:2], sheet, points, [lambda x: x, lambda x: x + [0.0, 0.0, 3.0]])
    for frame in frames:
        frame.box = mesh.box
    own = handle_of(mesh, 5)
    assert along(frames, own, 1, reach=2.5).value[0] > 0.0
    with pytest.raises(mp.ParameterError, match=r"from frame 0 to 1, point 0 \(bead 64\) was where the membrane is no"):
        along(frames, own, reach=2.5, relative_to="space")


@pytest.mark.slow
def test_a_hop_over_too_many_triangles_names_its_frame():
    far = mp.TriangleMesh.flat_sheet(260, 260, 0.05)
    frames = [seen(k, far.vertices, far.faces, [0 if k == 0 else len(far.faces) - 1], np.full((1, 3), 1.0 / 3.0))
              for k in range(2)]  # fmt: skip
    refuses(mp.SimulationError, "from frame 0 to 1: ", along, frames, handle_of(far, 1), reach=100.0)
