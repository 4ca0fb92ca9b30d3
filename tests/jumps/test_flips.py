"""Edges that are flipped: a state of triangles that is one's own, that forces, points, files and pictures follow."""

import numpy as np
import pytest
from builders import look
from jumps.flipping import (
    KT,
    MESHES,
    SLOW,
    built,
    context_of,
    copied,
    crossed,
    edges_of,
    flip_at_random,
    rough,
    same,
    square,
)

import medyanpy as mp
from medyanpy.errors import TopologyError
from medyanpy.testing import ForceCase, check_flips


@pytest.fixture(params=MESHES)
def mesh(request):
    return rough(MESHES[request.param])


# The surface ----------------------------------------------------------------------------------------------------------


def test_a_flip_joins_the_corners_across_an_edge(mesh):
    system, sheet = built(mesh, forces=lambda sheet: ())
    context = context_of(system)
    e = next(i for i, faces in enumerate(mesh.edge_faces.tolist()) if min(faces) >= 0)
    c, d = mesh.edges[e].tolist()
    first, second = mesh.edge_faces[e]
    a, b = (set(mesh.faces[f].tolist()) - {c, d} for f in (first, second))
    made = context.flip_edges(sheet, [[d, c]])
    assert set(made[0].tolist()) == a | b
    assert made[0, 0] < made[0, 1]
    faces = context.get_state(positions=True).faces["sheet"]
    assert {frozenset(faces[first].tolist()), frozenset(faces[second].tolist())} == {
        frozenset(a | b | {c}),
        frozenset(a | b | {d}),
    }
    others = np.delete(np.arange(len(faces)), [first, second])
    assert (faces[others] == mesh.faces[others]).all()
    # As a mesh it is checked: edges with two faces, one orientation, no bow ties.
    now = mp.TriangleMesh(mesh.vertices, faces)
    assert now.genus == mesh.genus
    assert (sheet.mesh.faces == mesh.faces).all()


def test_flipping_back_brings_back_every_number(mesh):
    system, sheet = built(mesh, points=0)
    context = context_of(system)
    before = look(context)
    done = flip_at_random(context, sheet, 300)
    assert len(done) > 150
    assert (look(context).faces["sheet"] != before.faces["sheet"]).any()
    for _, made in reversed(done):
        context.flip_edges(sheet, [made])
    after = look(context)
    assert same(before, after)


def test_edges_of_one_call_are_flipped_one_after_the_other(mesh):
    system, sheet = built(mesh)
    one, other = context_of(system), context_of(system)
    done = flip_at_random(one, sheet, 40, at_once=5)
    assert len(done) > 40
    for edge, _ in done:
        other.flip_edges(sheet, [edge])
    assert same(look(one), look(other))


def test_an_edge_and_its_own_successor_in_one_call(mesh):
    """The second exists only once the first has been flipped; what comes out is the start."""
    system, sheet = built(mesh, points=0)
    context = context_of(system)
    before = look(context)
    (edge, made), *_ = flip_at_random(context, sheet, 20)
    context = context_of(system)
    assert (context.flip_edges(sheet, [edge, made])[1] == edge).all()
    assert same(before, look(context))


def test_points_keep_their_place_in_the_square_and_its_momentum():
    """Against the map written down a second time, by differences: x(s) before and after, and m J^T v."""
    mesh = rough(MESHES["closed"], by=0.1)
    system, sheet = built(mesh, points=4000, forces=lambda sheet: ())
    context = context_of(system)
    carried = set()
    for edge in mesh.edges[::7].tolist():
        before = look(context)
        try:
            ((a, b),) = context.flip_edges(sheet, [edge])
        except TopologyError:
            continue
        after = look(context)
        c, d = edge
        changed = np.flatnonzero((before.faces["sheet"] != after.faces["sheet"]).any(axis=1))
        # The order of the corners round the square: that of the old triangle (a, c, d).
        old = [before.faces["sheet"][f].tolist() for f in changed]
        own = next(f for f in old if a in f)
        i = own.index(a)
        c, d = own[(i + 1) % 3], own[(i + 2) % 3]
        x = before.positions[sheet.beads]
        points = system.topology.point_handles[0]
        in_them = np.flatnonzero(np.isin(before.intriangle.triangles, changed))
        assert set(in_them) == set(np.flatnonzero(np.isin(after.intriangle.triangles, changed)))
        still = np.setdiff1d(np.arange(len(points)), in_them)
        assert (before.velocities[points.beads][still] == after.velocities[points.beads][still]).all()
        assert (before.positions[points.beads][still] == after.positions[points.beads][still]).all()
        for p in in_them:
            face = before.faces["sheet"][before.intriangle.triangles[p]].tolist()
            weights = before.intriangle.barycentric[p]
            at = {k: np.array(s, float) for k, s in zip((a, c, b, d), ((0, 0), (1, 0), (1, 1), (0, 1)), strict=True)}
            s = sum(w * at[k] for k, w in zip(face, weights, strict=True))
            corners = (a, c, b, d)
            assert crossed(x, corners, s) == pytest.approx(before.positions[points.beads[p]], abs=1e-11)
            assert square(x, corners, s) == pytest.approx(after.positions[points.beads[p]], abs=1e-11)
            h, momenta = 1e-7, []
            for where, v in ((crossed, before.velocities), (square, after.velocities)):
                ways = [np.array([h, 0.0]), np.array([0.0, h])]
                columns = [(where(x, corners, s + way) - where(x, corners, s - way)) / (2 * h) for way in ways]
                momenta.append([column @ v[points.beads[p]] for column in columns])
            scale = np.abs(momenta[0]).max()
            if min(abs(s[0] - s[1]), abs(s.sum() - 1.0)) > 1e-6:
                assert momenta[1] == pytest.approx(momenta[0], abs=1e-6 * scale)
            one, two, three = x[after.faces["sheet"][after.intriangle.triangles[p]]]
            normal = np.cross(two - one, three - one)
            assert abs(normal @ after.velocities[points.beads[p]]) < 1e-12 * np.linalg.norm(normal) * scale
            carried.add((int(p), bool(s[0] >= s[1]), bool(s.sum() <= 1.0)))
    assert len(carried) > 500
    # From each of the two triangles to each.
    assert len({places[1:] for places in carried}) == 4


def test_points_come_back_where_they_were():
    system, sheet = built(rough(MESHES["closed"], by=0.1), points=2000)
    context = context_of(system)
    before = look(context)
    done = flip_at_random(context, sheet, 60)
    moved = look(context)
    for _, made in reversed(done):
        context.flip_edges(sheet, [made])
    after = look(context)
    assert (before.intriangle.triangles == after.intriangle.triangles).all()
    assert np.abs(before.positions - moved.positions).max() > 1.0
    assert np.abs(before.positions - after.positions).max() < 1e-11
    assert np.abs(before.velocities - after.velocities).max() < 1e-9 * np.abs(before.velocities).max()


def test_weights_stay_in_their_triangles():
    system, sheet = built(rough(MESHES["torus"]), points=3000, forces=lambda sheet: ())
    context = context_of(system)
    n = len(sheet.mesh.faces)
    rng = np.random.default_rng(8)
    # Corners and edges are where roundings show.
    weights = rng.integers(0, 3, (3000, 3)) + 1e-300
    weights = weights / weights.sum(axis=1)[:, None]
    context.set_intriangle(rng.integers(0, n, 3000), weights)
    flip_at_random(context, sheet, 2000)
    weights = look(context).intriangle.barycentric
    assert (weights >= 0.0).all()
    assert (weights <= 1.0).all()
    assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-15


# Forces ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mesh", ["torus", *(pytest.param(m, marks=SLOW) for m in ("closed", "with borders"))])
def test_mended_is_rebuilt_to_the_bit(mesh):
    """Energies and forces of a context that has followed flips one by one, and of one that is given the triangles."""
    system, sheet = built(rough(MESHES[mesh]))
    context = context_of(system)
    for k in range(4):
        flip_at_random(context, sheet, 60, seed=k, at_once=1 + k)
        other = copied(context, system)
        assert same(look(context), look(other))
        context.step(20)
        other.step(20)
        assert same(look(context), look(other))


@pytest.mark.slow
def test_mended_is_rebuilt_after_ten_thousand_flips():
    mesh = rough(MESHES["closed"])
    system, sheet = built(mesh)
    context = context_of(system)
    done = 0
    while done < 10_000:
        done += len(flip_at_random(context, sheet, 2000, seed=done))
    assert same(look(context), look(copied(context, system)))
    # Random flips make vertices of very many triangles: rings have been laid out anew many times.
    valence = np.bincount(look(context).faces["sheet"].ravel())
    assert valence.max() > 20


@pytest.mark.filterwarnings("ignore:.*bent too sharply")
def test_forces_are_those_of_a_mesh_of_the_present_triangles(mesh):
    """Built from the beginning with them, without any flips."""
    system, sheet = built(mesh, points=0)
    context = context_of(system)
    flip_at_random(context, sheet, 200)
    mine = look(context)
    again, _ = built(mp.TriangleMesh(mesh.vertices, mine.faces["sheet"]), points=0)
    for force in again.forces:
        # Rest areas and the like are read off the mesh that one starts with.
        name = next(name for name, one in zip(again.force_names, again.forces, strict=True) if one is force)
        force.set(**{key: getattr(system[name], key) for key in force.changeable})
    theirs = look(context_of(again))
    assert mine.energies == theirs.energies
    assert (mine.forces == theirs.forces).all()


def of_corners(corners, weights):
    """Continuous across edges: linear in functions of vertices."""
    return np.sum(weights * np.sin(corners), axis=1), np.sin(corners)


FORCES = {
    "bending": lambda sheet: mp.forces.MembraneBending(sheet, 80.0, np.linspace(-1e-3, 2e-3, len(sheet))),
    "dihedral": lambda sheet: mp.forces.MembraneBending(sheet, 80.0, 1e-3, discretization="dihedral"),
    "area": lambda sheet: mp.forces.MembraneArea(sheet, 200.0, area=0.9 * sheet.mesh.area),
    "triangles": lambda sheet: mp.forces.MembraneArea(sheet, 200.0, area=100.0, per_triangle=True),
    "tension": lambda sheet: mp.forces.MembraneTension(sheet, 0.1),
    "pressure": lambda sheet: mp.forces.MembranePressure(sheet, 1e-3),
    "osmotic": lambda sheet: mp.forces.MembraneOsmoticPressure(sheet, 5e5, 1.0, kT=4.0),
    "Gaussian": lambda sheet: mp.forces.MembraneGaussianCurvature(sheet, np.linspace(-70.0, 30.0, len(sheet))),
    "difference": lambda sheet: mp.forces.MembraneAreaDifference(sheet, 80.0, 3.0, 3e3),
    "dihedral difference": lambda sheet: mp.forces.MembraneAreaDifference(sheet, 80.0, 3.0, 3e3, None, "dihedral"),
    "phases": lambda sheet: mp.forces.MembraneLineTension(sheet, np.arange(len(sheet)) % 3 == 0, 2.0),
    "adhesion": lambda sheet: mp.forces.MembraneAdhesion(sheet, mp.surfaces.Sphere(45.0), 0.4, 5.0, 3.0),
    "adhesion to beads": lambda sheet: mp.forces.MembraneAdhesion(sheet, sheet.topology.handles[0], 0.4, 150.0, 3.0),
    "borders": lambda sheet: mp.forces.BorderTension(sheet, 5.0),
    "field": lambda sheet: mp.forces.MembraneField(sheet.topology.point_handles[0], np.linspace(-3.0, 4.0, len(sheet))),
    "written field": lambda sheet: mp.forces.CustomMembraneField(
        sheet.topology.point_handles[0], "a*tanh(b) + b^2", a=np.arange(len(sheet)), b=sheet.positions[:, 0]
    ),
    "Python field": lambda sheet: mp.forces.PythonMembraneField(
        sheet.topology.point_handles[0], of_corners, corners=True
    ),
    "volume": lambda sheet: mp.forces.MembraneVolume(sheet, 0.1, volume=1.1 * abs(sheet.mesh.volume)),
    "springs": lambda sheet: mp.forces.MembraneEdgeSprings(sheet, 0.5, length=17.0),
    "tether": lambda sheet: mp.forces.MembraneTether(sheet, 50.0, 17.0, l_min=0.0, l_c1=0.9, l_c0=1.0, l_max=9.0),
    "folds": lambda sheet: mp.forces.MembraneFoldRepulsion(sheet, 50.0, 0.3),
    "collisions": lambda sheet: mp.forces.SoftCollisions(
        [sheet, sheet.topology["other"]], stiffness=5.0, radius=20.0
    ),
    "of points": lambda sheet: mp.forces.HarmonicTrap(sheet.topology.point_handles[0], 0.01, [40.0, 30.0, 20.0]),
    "directed points": lambda sheet: mp.forces.DirectedPointCurvature(
        sheet.topology.point_handles[0], 80.0, 0.02, 50.0, KT
    ),
    "curved points": lambda sheet: mp.forces.PointCurvature(sheet.topology.point_handles[0], 80.0, 0.01, 50.0),
    "bonds": lambda sheet: mp.forces.HarmonicBonds(sheet.mesh.edges[:40] + sheet.kind.first_bead, 0.3, 11.0),
}


# A surface with borders has no volume, and no two sides.
OF_CLOSED = ("volume", "pressure", "osmotic", "difference", "dihedral difference")


@pytest.mark.parametrize(
    ("mesh", "force"),
    [
        pytest.param(mesh, force, marks=[SLOW] * (force == "collisions"))
        for mesh in ("closed", "with borders") for force in FORCES
        if (force != "borders" if mesh == "closed" else force not in OF_CLOSED)
    ],
)
def test_contract(mesh, force):
    def build():
        system, _ = built(rough(MESHES[mesh]), points=30, mass=1.0, forces=lambda sheet: [FORCES[force](sheet)])
        return system.topology, system.forces[0]

    check_flips(ForceCase(force, build, lambda x: 0.0, 10.0))


@pytest.mark.parametrize(
    "force",
    ["bending", "dihedral", "springs", "tether", "folds", "difference", "dihedral difference", "volume", "phases",
     "Gaussian", "adhesion"],
)  # fmt: skip
def test_gains_add_up_without_energies_in_between(force):
    """As a jump goes on: each gain is found from what the flips before have left, without a look at all triangles."""
    system, sheet = built(rough(MESHES["closed"]), points=0, mass=1.0, forces=lambda sheet: [FORCES[force](sheet)])
    context = context_of(system)
    before = look(context).potential_energy
    flipping = context._schedule.flipping
    rng, gained, done = np.random.default_rng(2), 0.0, 0
    edges, first = edges_of(sheet.mesh.faces), context.layout.slice_of(sheet).start
    for _ in range(200):
        i = rng.integers(len(edges))
        nothing = np.empty(0, np.int32)
        try:
            change = flipping.proposal("test", sheet, np.array([edges[i]]), nothing, np.empty((0, 3)))
        except TopologyError:
            continue
        gained += flipping.difference(0, sheet, change)
        flipping.swap(sheet, change)
        assert change.mended(context._schedule.bound[0])
        edges[i] = tuple((change.made[0] - first).tolist())
        done += 1
    assert done > 100
    after = look(context).potential_energy
    assert after != before
    assert gained == pytest.approx(after - before, abs=1e-11 * (abs(before) + abs(after)))
    assert same(look(context), look(copied(context, system)))


def test_vertices_do_not_notice(mesh):
    system, sheet = built(mesh)
    context = context_of(system)
    before = look(context)
    flip_at_random(context, sheet, 100)
    after = look(context)
    others = np.setdiff1d(np.arange(system.topology.n_beads), system.topology.point_handles[0].beads)
    for name in ("positions", "velocities"):
        assert (getattr(before, name)[others] == getattr(after, name)[others]).all()


def test_a_state_brings_its_triangles(mesh):
    system, sheet = built(mesh)
    context, other = context_of(system), context_of(system)
    start = look(context)
    flip_at_random(context, sheet, 80)
    state = look(context)
    for given in (state, start):
        other.set_state(given)
        taken = look(other)
        assert (taken.faces["sheet"] == given.faces["sheet"]).all()
        assert (taken.positions == given.positions).all()
        assert (taken.forces == given.forces).all()
        # Velocities that are given are made tangent, which rounds those that are.
        assert np.abs(taken.velocities - given.velocities).max() < 1e-12 * np.abs(given.velocities).max()
