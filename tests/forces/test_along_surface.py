"""Pair forces by the distance along the surface: lengths, derivatives, who interacts, and what follows.

Every component of the force against an independent energy, momentum, threads and numbers are in test_contract.py.
"""

import functools
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with
from scipy import stats

import medyanpy as mp
from medyanpy.testing.statistics import check_chi_square

sys.path.insert(0, str(Path(__file__).parent))
from along_surface import great_circle, shortest, way_in_strip

FAR = 1000.0


def context_of(mesh, triangles, barycentric, force, *, fixed=False, word="BAGAB", timestep=1e-3, threads=1, **options):
    """Points of mass 1 on a membrane of mass 1, and force(points)."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, fixed=fixed)
    points = topology.add_intriangle_points(membrane, triangles=triangles, barycentric=barycentric, mass=1.0, **options)
    return mp.Context(system_with(topology, force(points)), mp.SplittingIntegrator(word, timestep), threads=threads)


def look(mesh, triangles, barycentric, reach=FAR, **options):
    """The distance along the surface of the first two points, by U = (reach - L)², and the state."""

    def force(points):
        beads = points.beads[:2]
        return mp.forces.SoftSphere(beads, beads, 2.0, reach, along_surface=True, **options)

    state = context_of(mesh, triangles, barycentric, force).get_state(positions=True, forces=True, energy=True)
    return reach - np.sqrt(state.potential_energy), state


def faces_of(mesh):
    return [tuple(corners) for corners in mesh.faces.tolist()]


# Lengths -----------------------------------------------------------------------------------------------------------


def sheet(rng, n, height):
    mesh = mp.TriangleMesh.flat_sheet(n, n, 1.0)
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, [0.15, 0.15, height], mesh.vertices.shape))


def with_a_hole(rng, n, height):
    """Without the triangles at a vertex inside."""
    mesh = sheet(rng, n, height)
    inside = [v for v in range(len(mesh.vertices)) if (mesh.faces == v).sum() == 6]
    v = inside[len(inside) // 2]
    faces = mesh.faces[(mesh.faces != v).all(axis=1)]
    used = np.unique(faces)
    return mp.TriangleMesh(mesh.vertices[used], np.searchsorted(used, faces))


def hole_of(mesh):
    """The vertices of the shorter border."""
    return set(min(mesh.borders, key=len).tolist())


@pytest.mark.parametrize(("make", "height", "longest", "pairs", "least_bent"), [
    (sheet, 0.05, 2.4, 40, 0),
    (sheet, 0.5, 2.4, 60, 2),
    (sheet, 1.0, 3.5, 80, 8),
    (with_a_hole, 0.05, 2.4, 60, 10),
    (with_a_hole, 0.5, 2.4, 60, 10),
])  # fmt: skip
def test_it_is_the_shortest_path(make, height, longest, pairs, least_bent):
    """Against all strips of triangles, each solved apart, on curved and lumpy sheets, with borders and around a hole;
    both ways round. Some paths bend at vertices."""
    bent = 0
    for seed in range(pairs):
        rng = np.random.default_rng(seed)
        mesh = make(rng, 4 if make is sheet else 5, height)
        faces, x = faces_of(mesh), mesh.vertices
        # Around the hole: of triangles with two corners on its border, one and the next but two or three.
        ring = [f for f in range(len(faces)) if make is sheet or len(set(faces[f]) & hole_of(mesh)) == 2]
        (i, j), (a, b) = rng.choice(ring, 2), rng.dirichlet([1, 1, 1], 2)
        length, strip = shortest(x, faces, i, a, j, b, 9)
        # Longer ones may have more triangles than have been looked at.
        if length > longest:
            continue
        bent += any(s in (0.0, 1.0) for *_, s in way_in_strip(x, faces, strip, a, b)[1])
        found, _ = look(mesh, [i, j], [a, b], 4.0)
        back, _ = look(mesh, [j, i], [b, a], 4.0)
        assert found == pytest.approx(length, abs=1e-12), seed
        assert back == pytest.approx(found, abs=1e-14), seed
    assert bent >= least_bent


def box(*size):
    """A box with two triangles on each side; corners have the numbers of their bits xyz."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=3))) * size
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return mp.TriangleMesh(corners, [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def at(mesh, *places):
    """The triangle and the weights of places on a mesh."""
    triangles, weights = [], []
    for place in np.asarray(places, float):
        for f, corners in enumerate(mesh.vertices[mesh.faces]):
            a, b, c = corners
            w = np.linalg.lstsq(np.column_stack([b - a, c - a]), place - a, rcond=None)[0]
            w = np.array([1.0 - w.sum(), *w])
            if w.min() > -1e-12 and np.linalg.norm(w @ corners - place) < 1e-12:
                triangles.append(f)
                weights.append(np.clip(w, 0.0, 1.0))
                break
        else:
            raise AssertionError(f"{place} is not on the mesh")
    return triangles, weights


@pytest.mark.parametrize(
    ("size", "a", "b", "length"),
    [
        # Dudeney's spider and fly: over five of the six sides.
        ((30.0, 12.0, 12.0), (0.0, 6.0, 11.0), (30.0, 6.0, 1.0), 40.0),
        ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), np.sqrt(5.0)),
        ((1.0, 1.0, 1.0), (0.5, 0.5, 0.0), (0.5, 0.5, 1.0), 2.0),
        ((1.0, 2.0, 3.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0), np.sqrt(18.0)),
        ((1.0, 1.0, 1.0), (0.25, 0.0, 0.0), (0.75, 0.0, 0.0), 0.5),
        ((1.0, 1.0, 1.0), (0.5, 0.2, 0.0), (0.5, 0.0, 0.2), 0.4),
        ((1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.0),
    ],
)
def test_on_boxes(size, a, b, length):
    """Also from a corner, along an edge, and over the diagonals that cut the sides."""
    mesh = box(*size)
    for ends in ((a, b), (b, a)):
        assert look(mesh, *at(mesh, *ends), reach=2.0 * length)[0] == pytest.approx(length, abs=1e-12 * length)


def test_on_a_tetrahedron():
    x = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(8.0)
    mesh = mp.TriangleMesh(x, [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    centre = np.full(3, 1.0 / 3.0)
    assert look(mesh, [0, 1], [centre, centre], 2.0)[0] == pytest.approx(1.0 / np.sqrt(3.0), abs=1e-14)
    # From a corner to the middle of the side across: the height of a triangle, and a third of that of the next.
    triangles, weights = at(mesh, x[0], x[1:].mean(axis=0))
    assert look(mesh, triangles, weights, 3.0)[0] == pytest.approx(2.0 / np.sqrt(3.0), abs=1e-14)


def test_the_string_around_a_cylinder_is_straight_when_unrolled():
    """On a prism of 24 sides: flat but for its edges, which unroll."""
    n, rows, radius = 24, 9, 2.0
    side = 2.0 * radius * np.sin(np.pi / n)
    grid = np.arange(n * rows).reshape(rows, n)
    angle, z = 2.0 * np.pi * np.arange(n) / n, 0.7 * np.arange(rows)
    x = np.array([[radius * np.cos(a), radius * np.sin(a), h] for h in z for a in angle])
    after = np.roll(grid, -1, axis=1)
    quads = np.stack([grid[:-1], after[:-1], after[1:], grid[1:]], axis=-1).reshape(-1, 4)
    mesh = mp.TriangleMesh(x, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]))
    rng = np.random.default_rng(3)
    for _ in range(20):
        (u, w), h = rng.uniform(0.0, n, 2), rng.uniform(0.0, z[-1], 2)
        places = [
            np.append((1 - t % 1) * x[int(t), :2] + (t % 1) * x[(int(t) + 1) % n, :2], y)
            for t, y in zip((u, w), h, strict=True)
        ]
        around = side * min(abs(u - w), n - abs(u - w))
        expected = np.hypot(around, h[0] - h[1])
        assert look(mesh, *at(mesh, *places), 20.0)[0] == pytest.approx(expected, abs=1e-11)


def test_on_finer_and_finer_spheres_it_is_the_great_circle():
    """To second order in the edge length, for 30 pairs up to a third of the way around."""
    rng = np.random.default_rng(5)
    u = rng.normal(size=(30, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    v = u + rng.normal(0.0, 0.8, u.shape)
    v /= np.linalg.norm(v, axis=1)[:, None]
    arc = great_circle(u, v)
    near = arc < 2.0
    assert near.sum() > 20
    u, v, arc = u[near], v[near], arc[near]
    errors = []
    for subdivisions in (2, 3, 4):
        mesh = mp.TriangleMesh.icosphere(1.0, subdivisions)
        corners = mesh.vertices[mesh.faces]
        worst = 0.0
        for ends, expected in zip(np.stack([u, v], axis=1), arc, strict=True):
            triangles, weights = [], []
            for end in ends:
                # Where a ray from the centre goes through the mesh.
                w = np.linalg.solve(corners.transpose(0, 2, 1), np.broadcast_to(end[:, None], (len(corners), 3, 1)))
                f = int(np.argmax(w[:, :, 0].min(axis=1)))
                triangles.append(f)
                weights.append(w[f, :, 0] / w[f, :, 0].sum())
            worst = max(worst, abs(look(mesh, triangles, weights, 4.0)[0] - expected))
        errors.append(worst)
    assert errors[2] < 2e-3
    assert 3.0 < errors[0] / errors[1] < 5.5
    assert 3.0 < errors[1] / errors[2] < 5.5


@pytest.mark.parametrize(("law", "range_"), [
    (lambda p, **k: mp.forces.SoftSphere(p, p, 3.0, 1.7, **k), 1.7),
    (lambda p, **k: mp.forces.WCA(p, p, 0.5, 1.1, **k), 2.0 ** (1 / 6) * 1.1),
    (lambda p, **k: mp.forces.LennardJones(p, p, 0.5, 0.9, cutoff=1.8, **k), 1.8),
    (lambda p, **k: mp.forces.Ricker(p, p, 0.5, 0.6, **k), 2.4),
])  # fmt: skip
def test_on_a_flat_sheet_it_is_the_force_in_space(law, range_):
    """Every law, with the same bits for any skin; what presses on edges is rounding."""
    rng = np.random.default_rng(8)
    base = mp.TriangleMesh.flat_sheet(12, 12, 1.0)
    mesh = base.with_vertices(base.vertices + rng.normal(0.0, [0.1, 0.1, 0.0], base.vertices.shape))
    triangles, weights = mesh.sample(300, rng)
    # The border is jagged: of a disc inside the ways are straight.
    inside = np.linalg.norm(mesh.positions(triangles, weights), axis=1) < 3.5
    assert inside.sum() > 60
    triangles, weights = triangles[inside], weights[inside]
    states = {}
    for skin, along in itertools.product((0.1, 0.9), (True, False)):
        options = {"skin": skin, "along_surface": along}
        context = context_of(mesh, triangles, weights, functools.partial(law, **options))
        states[skin, along] = context.get_state(forces=True, energy=True)
    assert states[0.1, True].potential_energy == states[0.9, True].potential_energy != 0.0
    assert (states[0.1, True].forces == states[0.9, True].forces).all()
    one, other = states[0.1, True], states[0.1, False]
    assert one.potential_energy == pytest.approx(other.potential_energy, rel=1e-12)
    scale = np.abs(other.forces).max()
    np.testing.assert_allclose(one.forces, other.forces, atol=1e-12 * scale)
    np.testing.assert_allclose(one.forces[: len(mesh.vertices)], 0.0, atol=1e-12 * scale)


def test_the_other_side_of_a_sheet_of_two_layers_is_far():
    """Two sheets that lie on each other and are joined at one side: near in space, far along the surface."""
    n = 7
    layer = np.array([[i, j, 0.0] for i in range(n) for j in range(n)], float)
    grid = np.arange(n * n).reshape(n, n)
    quads = np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], axis=-1).reshape(-1, 4)
    lower = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    upper = lower[:, ::-1] + n * n
    # The upper layer shares the side i = 0 with the lower one.
    upper = np.where(upper - n * n < n, upper - n * n, upper) - np.where(upper - n * n < n, 0, n)
    x = np.concatenate([layer, layer[n:] + [0.0, 0.0, 0.1]])
    mesh = mp.TriangleMesh(x, np.concatenate([lower, upper]))
    a, b = at(mesh, [4.3, 3.2, 0.0], [4.3, 3.2, 0.1])
    length = look(mesh, a, b, 20.0)[0]
    # Up to 0.05 between the layers there, which are 0.1 apart where they are not joined.
    assert length == pytest.approx(2.0 * 4.3, rel=1e-2)
    assert look(mesh, a, b, 8.0)[1].potential_energy == 0.0


# Who interacts -----------------------------------------------------------------------------------------------------


def test_points_of_other_membranes_do_not_interact():
    """Two vesicles inside each other: what one has is what it has alone."""
    energies = []
    for which in ((0, 1), (0,), (1,)):
        topology = mp.Topology()
        handles = []
        for k in which:
            membrane = topology.add_membrane(mp.TriangleMesh.icosphere(5.0 + 0.3 * k, 2), vertex_mass=1.0)
            handles.append(topology.add_intriangle_points(membrane, 40, mass=1.0, seed=k))
        system = system_with(topology, mp.forces.SoftSphere(handles, handles, 2.0, 3.0, along_surface=True))
        energies.append(mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy)
    assert energies[0] == pytest.approx(energies[1] + energies[2], rel=1e-14)
    assert min(energies) > 0.0


def test_groups_and_exclusions():
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    triangles, weights = mesh.sample(30, np.random.default_rng(1))
    first = len(mesh.vertices)
    a, b = first + np.arange(12), first + np.arange(8, 30)
    excluded = [[first, first + 20], [first + 9, first + 10]]

    def energy(*groups, **options):
        context = context_of(
            mesh, triangles, weights, lambda p: mp.forces.SoftSphere(*groups, 2.0, 4.0, along_surface=True, **options)
        )
        return context.get_state(energy=True).potential_energy

    expected = 0.0
    for i, j in itertools.combinations(first + np.arange(30), 2):
        if ((i in a and j in b) or (j in a and i in b)) and [i, j] not in excluded:
            expected += energy([i, j], [i, j])
    assert energy(a, b, exclusions=excluded) == pytest.approx(expected, rel=1e-13)


def scene_of_errors():
    topology = mp.Topology()
    mesh = mp.TriangleMesh.icosphere(5.0, 1)
    handles = {"beads": topology.add_beads([[0.0, 0, 0]], mass=1.0)}
    for k in (1, 2):
        membrane = topology.add_membrane(mesh, vertex_mass=1.0, name=f"cell {k}")
        handles[f"points {k}"] = topology.add_intriangle_points(membrane, 3, mass=1.0, seed=1)
    handles["membrane"] = membrane
    handles["walker"] = topology.add_surface_points(mp.surfaces.Sphere(1.0), [[1.0, 0, 0]], mass=1.0)
    return topology, handles


@pytest.mark.parametrize("kind", ["beads", "membrane"])
def test_beads_off_surfaces_are_refused(kind):
    topology, h = scene_of_errors()
    with pytest.raises(mp.errors.TopologyError, match=r"SoftSphere: group_b: .* lives on no surface.*along_surface"):
        mp.forces.SoftSphere(h["points 1"], h[kind], 1.0, 1.0, along_surface=True)
    # By its number: when it is bound.
    system = system_with(topology, mp.forces.SoftSphere(h["points 1"], h[kind].beads, 1.0, 1.0, along_surface=True))
    refuses(mp.errors.TopologyError, "lives on no surface", mp.Context, system, mp.VerletIntegrator(1e-3))


def test_sites_are_refused():
    _, h = scene_of_errors()
    with pytest.raises(mp.errors.TopologyError, match="sites have no distance along a surface"):
        mp.forces.Ricker(mp.Sites.beads(h["points 1"]), h["points 1"], 1.0, 1.0, along_surface=True)


def test_groups_on_different_membranes_are_refused():
    topology, h = scene_of_errors()
    system = system_with(topology, mp.forces.WCA(h["points 1"], h["points 2"], 1.0, 1.0, along_surface=True))
    refuses(mp.errors.TopologyError, r"'cell 1', 'cell 2'.*no way leads", mp.Context, system, mp.VerletIntegrator(1e-3))


def test_there_must_be_an_end_and_a_switch():
    _, h = scene_of_errors()
    points = h["points 1"]
    with pytest.raises(mp.errors.ParameterError, match="LennardJones: give cutoff="):
        mp.forces.LennardJones(points, points, 1.0, 1.0, along_surface=True)
    refuses(mp.errors.ParameterError, "give diameter=", mp.forces.SoftSphere, points, points, 1.0, along_surface=True)
    with pytest.raises(mp.errors.ParameterError, match="along_surface must be True or False"):
        mp.forces.SoftSphere(points, points, 1.0, 1.0, along_surface="mesh")


# What changes ------------------------------------------------------------------------------------------------------


def test_flips_are_followed():
    """After flips forces are those of a context made with the present triangles."""
    rng = np.random.default_rng(4)
    mesh = mp.TriangleMesh.icosphere(3.0, 2)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.15, mesh.vertices.shape))
    triangles, weights = mesh.sample(40, rng)

    def make(mesh, triangles, weights):
        return context_of(mesh, triangles, weights, lambda p: mp.forces.SoftSphere(p, p, 1.0, 2.0, along_surface=True))

    context = make(mesh, triangles, weights)
    before = context.get_state(forces=True, energy=True)
    (membrane,) = context.system.topology.membranes
    context.flip_edges(membrane, mesh.edges[[3, 77, 140]])
    state = context.get_state(positions=True, forces=True, energy=True)
    assert state.potential_energy != before.potential_energy
    flipped = mp.TriangleMesh(mesh.vertices, state.faces[membrane.name])
    fresh = make(flipped, state.intriangle.triangles, state.intriangle.barycentric)
    expected = fresh.get_state(forces=True, energy=True)
    assert state.potential_energy == pytest.approx(expected.potential_energy, rel=1e-13)
    np.testing.assert_allclose(state.forces, expected.forces, atol=1e-12)


def test_inactive_rows_take_no_part():
    mesh = mp.TriangleMesh.icosphere(3.0, 1)
    triangles, weights = mesh.sample(20, np.random.default_rng(2))
    states = [
        context_of(
            mesh, triangles, weights, lambda p: mp.forces.SoftSphere(p, p, 1.0, 2.0, along_surface=True), **options
        ).get_state(forces=True, energy=True)
        for options in ({}, {"capacity": 50})
    ]
    assert states[0].potential_energy == states[1].potential_energy > 0.0
    assert (states[0].forces == states[1].forces[: len(states[0].forces)]).all()


# On the way --------------------------------------------------------------------------------------------------------


def test_two_points_in_one_place_are_not_pushed():
    mesh = mp.TriangleMesh.icosphere(3.0, 0)
    weights = [0.2, 0.3, 0.5]
    length, state = look(mesh, [4, 4], [weights, weights], 1.0)
    assert length == 0.0
    assert not state.forces.any()


def test_forces_of_strings():
    """Along the path at its ends, and across the edge where it bends over one: a roof of two triangles."""
    x = np.array([[0.0, -1, 0], [0, 1, 0], [-1, 0, -0.5], [1, 0, -0.5]])
    mesh = mp.TriangleMesh(x, [[0, 1, 2], [1, 0, 3]])
    a, b = np.array([-0.5, 0.0, -0.25]), np.array([0.5, 0.2, -0.25])
    length, state = look(mesh, *at(mesh, a, b), 3.0)
    # Unrolled: √(0.25 + 0.0625) on both sides of the edge, 0.2 along it.
    slope = np.hypot(0.5, 0.25)
    assert length == pytest.approx(np.hypot(2.0 * slope, 0.2), abs=1e-14)
    top = np.array([0.0, 0.1, 0.0])
    pull = 2.0 * (3.0 - length)
    before, after = (top - a) / np.linalg.norm(top - a), (b - top) / np.linalg.norm(b - top)
    np.testing.assert_allclose(state.forces[4:], [-pull * before, pull * after], atol=1e-13)
    # What is left presses, here upwards from inside: repulsion is a string under pressure.
    press = pull * (before - after)
    np.testing.assert_allclose(state.forces[:4], [0.45 * press, 0.55 * press, 0 * press, 0 * press], atol=1e-13)
    assert abs(press[1]) < 1e-14


def lumpy_cell(rng, subdivisions=1):
    mesh = mp.TriangleMesh.icosphere(3.0, subdivisions)
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.25, mesh.vertices.shape))


def in_motion(timestep, time, points, along=True):
    """Largest error of the energy on the way, and the number of triangles left."""
    rng = np.random.default_rng(2)
    mesh = lumpy_cell(rng)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    if points == 2:
        # In the middle of triangles that do not touch, and slow.
        beads = topology.add_intriangle_points(membrane, triangles=[3, 40],
                                               barycentric=[[0.3, 0.3, 0.4], [0.4, 0.3, 0.3]], mass=1.0)  # fmt: skip
    else:
        beads = topology.add_intriangle_points(membrane, points, mass=1.0, seed=4)
    system = system_with(topology, mp.forces.MembraneEdgeSprings(membrane, 30.0),
                         mp.forces.Ricker(beads, beads, 0.3, 2.0, cutoff=7.0, along_surface=along))  # fmt: skip
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", timestep), threads=1)
    v = rng.normal(0.0, 0.1 if points == 2 else 0.5, (len(mesh.vertices) + points, 3))
    context.set_velocities(v)
    start = context.get_state(positions=True, energy=True)
    total, left = start.potential_energy + start.kinetic_energy, start.intriangle.triangles
    worst = crossed = 0
    for _ in range(round(time / timestep / 10)):
        context.step(10)
        state = context.get_state(positions=True, energy=True)
        worst = max(worst, abs(state.potential_energy + state.kinetic_energy - total))
        crossed += int((state.intriangle.triangles != left).sum())
        left = state.intriangle.triangles
    return worst, crossed


def test_energy_of_two_points_away_from_edges():
    """The error falls as dt² while membrane and path move, and no point leaves its triangle."""
    (coarse, crossed), (fine, _) = in_motion(0.02, 1.0, 2), in_motion(0.01, 1.0, 2)
    assert crossed == 0
    assert 3.7 < coarse / fine < 4.3
    assert fine > 1e-9


def test_energy_of_many_points_stays_where_it_is():
    """With hundreds of crossings, and paths that jump from one side of a vertex to the other."""
    worst, crossed = in_motion(0.004, 8.0, 12)
    assert crossed > 50
    # Of a kinetic energy of 20; each crossing adds the rounding of a kink.
    assert worst < 0.02


def test_behind_a_corner_the_energy_is_continuous_and_its_slope_jumps_by_no_more_than_the_defect():
    """Two ways around the corner of a cube: where they are as long as each other the tangent at the point turns, at
    most by the angle that is missing there, a quarter turn; the length goes on."""
    mesh = box(2.0, 2.0, 2.0)
    a = np.array([0.6, 0.6, 0.0])
    tangents, lengths, s = [], [], np.linspace(-1e-6, 1e-6, 5)
    for t in s:
        # Behind the corner, on either side of the upright edge: by the one side of it or by the other.
        length, state = look(mesh, *at(mesh, a, [max(t, 0.0), max(-t, 0.0), 1.1]), 6.0)
        lengths.append(length)
        pull = state.forces[len(mesh.vertices)]
        tangents.append(pull / np.linalg.norm(pull))
    assert np.abs(np.diff(lengths)).max() < 1e-6
    angles = [np.arctan2(np.linalg.norm(np.cross(u, v)), u @ v) for u, v in itertools.pairwise(tangents)]
    # Unrolled, the two ways see the place behind from the corner of a triangle with the sides 0.6 √2 and 1.1, which
    # have three quarters of a half turn between them.
    sides = 0.6 * np.sqrt(2.0), 1.1
    expected = 2.0 * np.arctan2(sides[1] * np.sin(0.75 * np.pi), sides[0] - sides[1] * np.cos(0.75 * np.pi))
    assert max(angles) == pytest.approx(expected, abs=1e-5)
    assert expected < 0.5 * np.pi


@pytest.mark.slow
@pytest.mark.parametrize("along", [True, False])
def test_two_points_on_a_frozen_sphere_have_their_distribution(along):
    """p(θ) ∝ sin θ exp(-U(Rθ)/kT) of many pairs; by distances in space it is another one, and the test finds that."""
    n, radius, depth, distance, cutoff = 100, 3.0, 2.0, 3.0, 6.0
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(radius, 2), vertex_mass=1.0, fixed=True)
    points = topology.add_intriangle_points(membrane, 2 * n, mass=1.0, friction=0.5, seed=1)
    beads = points.beads
    apart = [[i, j] for k, i in enumerate(beads) for j in beads[k + 1 :] if not (k % 2 == 0 and j == i + 1)]
    system = mp.System(topology)
    system.add_force(mp.forces.Ricker(points, points, depth, distance, cutoff=cutoff, exclusions=apart,
                                      along_surface=along, skin=20.0))  # fmt: skip
    # Edges are crossed with an error of their own, which is 2 % of a count at three times this timestep.
    context = mp.Context(system, mp.BAGOGABIntegrator(0.05, kT=1.0, seed=7), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=8)
    context.step(600)
    samples = []
    for _ in range(20):
        context.step(120)
        x = context.get_state(positions=True).positions[beads]
        samples.append(great_circle(x[::2], x[1::2]))
    samples = np.concatenate(samples)
    edges = np.array([0.0, 0.7, 0.9, 1.1, 1.3, 1.6, 2.0, np.pi])
    theta = np.linspace(0.0, np.pi, 80_001)
    r = radius * theta

    def u(r):
        return 0.5 * depth * (1.0 - 3.0 * (r / distance) ** 2) * np.exp(1.5 - 1.5 * (r / distance) ** 2)

    density = np.sin(theta) * np.exp(-np.where(r < cutoff, u(r) - u(cutoff), 0.0))
    expected = np.array([density[(theta >= a) & (theta < b)].sum() for a, b in itertools.pairwise(edges)])
    expected *= len(samples) / expected.sum()
    counts = np.histogram(samples, edges)[0]
    if along:
        check_chi_square("angles", counts, expected, sees=0.22)
    else:
        # Distances in space have another law.
        assert stats.chisquare(counts, expected).pvalue < 1e-6
