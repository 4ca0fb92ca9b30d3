"""Edges that are flipped: a state of triangles that is one's own, that forces, points, files and pictures follow."""

import pickle

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.errors import ContextInUseError, ParameterError, TopologyError
from medyanpy.testing import ForceCase, check_flips

KT = 4.14


def rough(mesh, seed=1, by=0.02):
    """A mesh without two lengths that are the same."""
    spread = by * float(mesh.edge_lengths.mean())
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(seed).normal(0.0, spread, mesh.vertices.shape))


def built(mesh, *, points=60, forces=None, mass=4e-12, friction=4e-6, before=True):
    """A membrane with points after another one and some beads, so that no number is counted from 0."""
    topology = mp.Topology()
    if before:
        topology.add_beads(np.random.default_rng(5).normal(0.0, 300.0, (5, 3)), mass=mass, friction=friction)
        topology.add_membrane(mp.TriangleMesh.icosphere(20.0, 1), vertex_mass=mass, vertex_friction=friction,
                              name="other")  # fmt: skip
    sheet = topology.add_membrane(mesh, vertex_mass=mass, vertex_friction=friction, name="sheet")
    if points:
        topology.add_intriangle_points(sheet, points, mass=mass, friction=friction, seed=3)
    system = system_with(topology, *(all_forces if forces is None else forces)(sheet))
    return system, sheet


def all_forces(sheet):
    yield mp.forces.MembraneBending(sheet, 80.0, spontaneous_curvature=1e-3)
    yield mp.forces.MembraneBending(sheet, 40.0, discretization="dihedral", name="dihedral")
    yield mp.forces.MembraneArea(sheet, 200.0, area=0.9 * sheet.mesh.area)
    yield mp.forces.MembraneArea(sheet, 100.0, area=sheet.mesh.face_areas.mean(), per_triangle=True, name="triangles")
    yield mp.forces.MembraneTension(sheet, 0.1)
    if sheet.mesh.is_closed:
        yield mp.forces.MembraneVolume(sheet, 0.1, volume=1.1 * sheet.mesh.volume)
    yield mp.forces.MembraneEdgeSprings(sheet, 0.5, length=float(sheet.mesh.edge_lengths.mean()))
    others = [handle for handle in sheet.topology.membranes if handle is not sheet]
    yield mp.forces.SoftCollisions([sheet, *others], stiffness=5.0, radius=20.0)


def context_of(system, threads=1, seed=2, **integrator):
    integrator = mp.BAGOGABIntegrator(1e-9, **{"kT": KT, "seed": seed, **integrator})
    context = mp.Context(system, integrator, threads=threads)
    context.set_velocities_to_temperature(kT=KT, seed=seed)
    return context


def look(context):
    return context.get_state(positions=True, velocities=True, forces=True, energy=True)


def same(a, b):
    """Two states, to the bit."""
    return (
        all((getattr(a, name) == getattr(b, name)).all() for name in ("positions", "velocities", "forces"))
        and (a.intriangle.triangles == b.intriangle.triangles).all()
        and (a.intriangle.barycentric == b.intriangle.barycentric).all()
        and all((a.faces[name] == b.faces[name]).all() for name in a.faces)
        and a.energies == b.energies
    )


def edges_of(faces):
    return sorted({(min(e), max(e)) for a, b, c in faces.tolist() for e in ((a, b), (b, c), (c, a))})


def flip_at_random(context, sheet, n, seed=4, at_once=1):
    """Try so many edges; those that can be are flipped, and returned with those in their places."""
    rng = np.random.default_rng(seed)
    edges = edges_of(context.get_state(positions=True).faces[sheet.name])
    done = []
    for _ in range(n):
        chosen = rng.choice(len(edges), at_once, replace=False)
        try:
            made = context.flip_edges(sheet, [edges[i] for i in chosen])
        except TopologyError:
            continue
        for i, edge in zip(chosen, made.tolist(), strict=True):
            done.append((edges[i], tuple(edge)))
            edges[i] = tuple(edge)
    return done


def copied(context, system, **given):
    """Another context that is given all that this one has, and mends nothing."""
    other = context_of(system, **given)
    other._set_dynamical_arrays({k: a.copy() for k, a in context._dynamical_arrays().items()}, context.step_count)
    return other


MESHES = {
    "closed": mp.TriangleMesh.icosphere(50.0, 2),
    "torus": mp.TriangleMesh.torus(60.0, 25.0, 14, 9),
    "with borders": mp.TriangleMesh.cylinder(30.0, 90.0, 14, 9),
}


@pytest.fixture(params=MESHES)
def mesh(request):
    return rough(MESHES[request.param])


# Some seconds each, ten times as many in a debug or sanitizer run, which sees collisions on one surface.
SLOW = pytest.mark.slow


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


# Points ---------------------------------------------------------------------------------------------------------------


def square(x, corners, s):
    """Where a place of the unit square is, with the diagonal from (0, 0) to (1, 1), or the other one."""
    a, c, b, d = (x[k] for k in corners)
    u, w = s
    return a + u * (c - a) + w * (b - c) if u >= w else a + w * (d - a) + u * (b - d)


def crossed(x, corners, s):
    a, c, b, d = (x[k] for k in corners)
    u, w = s
    return a + u * (c - a) + w * (d - a) if u + w <= 1.0 else b + (1.0 - u) * (d - b) + (1.0 - w) * (c - b)


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


# The run --------------------------------------------------------------------------------------------------------------


def test_a_run_with_flips_has_the_same_bits_on_any_threads_and_after_a_restart(tmp_path):
    system, sheet = built(rough(mp.TriangleMesh.icosphere(80.0, 3)), points=3000)

    def run(simulation, first, last):
        for k in range(first, last):
            flip_at_random(simulation.context, sheet, 6, seed=k)
            simulation.step(7)

    def made(threads):
        return mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2), threads=threads)

    one = made(1)
    run(one, 0, 6)
    for threads in (2, 3):
        other = made(threads)
        run(other, 0, 3)
        other.save_checkpoint(tmp_path / "run.checkpoint")
        run(other, 3, 6)
        assert same(look(one.context), look(other.context))
    again = made(2)
    again.load_checkpoint(tmp_path / "run.checkpoint")
    run(again, 3, 6)
    assert same(look(one.context), look(again.context))
    resumed = mp.Simulation.resume(tmp_path / "run.checkpoint")
    sheet = resumed.topology["sheet"]
    run(resumed, 3, 6)
    assert same(look(one.context), look(resumed.context))


def test_two_contexts_do_not_see_each_other():
    system, sheet = built(MESHES["closed"])
    one, other = context_of(system), context_of(system)
    before = look(other)
    flip_at_random(one, sheet, 50)
    one.step(10)
    assert same(before, look(other))
    assert same(look(context_of(system)), before)


@SLOW
def test_flips_are_protocol_work():
    system, sheet = built(rough(MESHES["closed"], by=0.1), points=500)
    context = context_of(system)
    context.report_work = True
    start = look(context)
    done = flip_at_random(context, sheet, 30)
    assert done
    state = look(context)
    assert state.protocol_work == pytest.approx(state.total_energy - start.total_energy, rel=1e-12)
    assert state.heat == 0.0
    context.step(20)
    state = look(context)
    terms = state.heat, state.shadow_work, state.protocol_work
    assert sum(terms) == pytest.approx(state.total_energy - start.total_energy, abs=1e-12 * max(map(abs, terms)) + 1e-9)


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


def test_a_state_whose_triangles_are_none_changes_nothing():
    system, _ = built(MESHES["closed"])
    context = context_of(system)
    before = look(context)
    state = pickle.loads(pickle.dumps(look(context)))
    faces = state.faces["sheet"].copy()
    faces[3] = faces[4]
    state._parts["faces"] = state.faces | {"sheet": faces}
    refuses(TopologyError, "the triangles of 'sheet' are none", context.set_state, state)
    assert same(before, look(context))


def test_a_state_that_cannot_be_taken_leaves_triangles_as_they_are():
    system, sheet = built(MESHES["closed"])
    context, other = context_of(system), context_of(system)
    before = look(context)
    flip_at_random(other, sheet, 40)
    state = pickle.loads(pickle.dumps(look(other)))
    state._parts["velocities"] = np.zeros((3, 3))
    refuses(TopologyError, "velocities must have shape", context.set_state, state)
    after = look(context)
    assert (before.faces["sheet"] == after.faces["sheet"]).all()
    assert before.energies == after.energies
    assert (before.forces == after.forces).all()


def test_a_checkpoint_from_before_brings_back_the_mesh(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.save_checkpoint(tmp_path / "start.checkpoint")
    before = look(simulation.context)
    flip_at_random(simulation.context, sheet, 80)
    simulation.load_checkpoint(tmp_path / "start.checkpoint")
    assert same(before, look(simulation.context))


def test_an_edit_leaves_triangles_as_they_are():
    system, sheet = built(rough(MESHES["closed"]))
    context = context_of(system)
    flip_at_random(context, sheet, 80)
    before = look(context)
    alone = copied(context, system)
    topology = system.topology
    del alone
    with topology.edit():
        far = mp.TriangleMesh.icosphere(10.0, 1).translated([900.0, 0, 0])
        topology.add_membrane(far, vertex_mass=1e-12, vertex_friction=1e-6, name="new")
    after = look(context)
    n = len(before.positions)
    assert (after.positions[:n] == before.positions).all()
    assert (after.forces[:n] == before.forces).all()
    assert (after.faces["sheet"] == before.faces["sheet"]).all()
    assert len(after.faces["new"]) == 80
    assert flip_at_random(context, sheet, 40)
    assert flip_at_random(context, topology["new"], 40)
    assert same(look(context), look(copied(context, system)))


def test_the_minimiser_follows():
    system, sheet = built(rough(MESHES["closed"]), points=0)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    flip_at_random(simulation.context, sheet, 40)
    before = look(simulation.context)
    with pytest.warns(mp.errors.ConvergenceWarning):
        simulation.minimize_energy(max_iterations=20)
    after = look(simulation.context)
    assert after.potential_energy < before.potential_energy
    assert (after.faces["sheet"] == before.faces["sheet"]).all()
    assert same(after, look(copied(simulation.context, system)))


def test_the_last_good_state_has_its_triangles():
    system, sheet = built(rough(MESHES["closed"]), points=0)
    armed = []

    def broken(x):
        return 0.0, np.full_like(x, np.nan if armed else 0.0)

    system.add_force(mp.forces.PythonForce(broken, replay=False, name="broken"))
    context = context_of(system)
    context.step(5)
    flip_at_random(context, sheet, 40)
    before = look(context)
    armed.append(True)
    with pytest.raises(mp.errors.SimulationError):
        context.step(50)
    armed.clear()
    assert same(before, look(context))
    context.step(5)
    assert same(look(context), look(copied(context, system)))


# Files and pictures ---------------------------------------------------------------------------------------------------


def test_frames_hold_the_triangles_of_their_time(tmp_path):
    system, sheet = built(rough(MESHES["closed"]))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2, faces=True))
    seen = []
    for k in range(4):
        simulation.step(2)
        seen.append(look(simulation.context).faces)
        flip_at_random(simulation.context, sheet, 10, seed=k)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert (trajectory.faces["sheet"] == sheet.mesh.faces).all()
        for frame, faces in zip(trajectory, seen, strict=True):
            assert all((frame.faces[name] == faces[name]).all() for name in faces)
        assert (trajectory[0].faces["sheet"] != trajectory[-1].faces["sheet"]).any()
        assert trajectory.read("faces of sheet").shape == (4, *sheet.mesh.faces.shape)


def test_a_trajectory_begun_without_triangles_says_so(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2, faces=False))
    simulation.step(2)
    flip_at_random(simulation.context, sheet, 10)
    refuses(ParameterError, r"edges have been flipped since .*run.h5 was begun.*faces=True", simulation.step, 2)
    assert simulation.current_step == 2
    simulation.reporters.clear()
    # One that is begun now holds them unasked; and appending goes on with what there is.
    for append in (False, True):
        reporter = mp.reporters.TrajectoryReporter(tmp_path / "other.h5", 2, append=append)
        simulation.reporters.append(reporter)
        simulation.step(2)
        reporter.close()
        simulation.reporters.clear()
        flip_at_random(simulation.context, sheet, 10, seed=9)
    with mp.Trajectory(tmp_path / "other.h5") as trajectory:
        assert len(trajectory) == 2
        assert (trajectory[0].faces["sheet"] != trajectory[1].faces["sheet"]).any()


def test_the_first_flip_begins_a_segment_with_triangles(tmp_path):
    system, sheet = built(MESHES["closed"])
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 2))
    simulation.save_checkpoint(tmp_path / "start")
    seen = []
    for k in range(4):
        simulation.step(2)
        seen.append(look(simulation.context))
        if k % 2:
            flip_at_random(simulation.context, sheet, 10, seed=k)
    simulation.reporters[0].flush()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert [path.name for path in trajectory.paths] == ["run.h5", "run.part0002.h5"]
        for frame, state in zip(trajectory, seen, strict=True):
            assert (frame.faces["sheet"] == state.faces["sheet"]).all()
            assert (frame.positions == state.positions).all()
        assert (trajectory[1].faces["sheet"] != trajectory[2].faces["sheet"]).any()
        faces = trajectory.read("faces of sheet")
        assert (faces[:2] == -1).all()
        assert (faces[3] == seen[3].faces["sheet"]).all()
    # Back to where there were none.
    simulation.load_checkpoint(tmp_path / "start")
    simulation.step(4)
    simulation.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert trajectory.steps.tolist() == [2, 4]
        assert all((frame.faces["sheet"] == sheet.mesh.faces).all() for frame in trajectory)
        assert (trajectory[1].positions == seen[1].positions).all()


def test_areas_and_volumes_of_tables_are_those_of_now(tmp_path):
    system, sheet = built(rough(MESHES["closed"], by=0.1), points=0, before=False)
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    flip_at_random(simulation.context, sheet, 60)
    with mp.reporters.StateDataReporter(tmp_path / "state.csv", 1, area=True, volume=True) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(1)
    state = look(simulation.context)
    now = mp.TriangleMesh(state.positions[sheet.beads], state.faces["sheet"])
    area, volume = np.loadtxt(tmp_path / "state.csv", delimiter=",", skiprows=1)[-2:]
    assert area == pytest.approx(now.area, rel=1e-12)
    assert volume == pytest.approx(now.volume, rel=1e-12)
    assert abs(area - mp.TriangleMesh(now.vertices, sheet.mesh.faces).area) > 1.0


def test_pictures_follow(tmp_path):
    from medyanpy.visualize.scene import scene_of

    system, sheet = built(rough(MESHES["closed"], by=0.1))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1, faces=True))
    flip_at_random(simulation.context, sheet, 60)
    simulation.step(1)
    simulation.close()
    state = look(simulation.context)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        for what in (simulation, simulation.context, trajectory[0]):
            part = next(part for part in scene_of(what, {}).parts if part.name == "sheet")
            assert (part.faces == state.faces["sheet"]).all()


def test_needles_are_those_of_now():
    """A flip can make one at once: the look after the next run sees it."""
    mesh = mp.TriangleMesh.flat_sheet(11, 11, 10.0)
    x = mesh.vertices.copy()
    # A vertex almost on the line between two others that a flip will join.
    system, sheet = built(mesh, points=0, forces=lambda sheet: (), before=False)
    context = context_of(system)
    e = int(np.argmax(mesh.edge_lengths * (mesh.edge_faces.min(axis=1) >= 0)))
    first, second = mesh.edge_faces[e]
    across = [next(iter(set(mesh.faces[f].tolist()) - set(mesh.edges[e].tolist()))) for f in (first, second)]
    x[mesh.edges[e][0]] = 0.5 * (x[across[0]] + x[across[1]]) + [0.0, 0.0, 0.05]
    context.set_positions(x)
    context.flip_edges(sheet, [mesh.edges[e]])
    context._degradation._looked = -10_000
    with pytest.warns(mp.errors.MeshQualityWarning, match="has become a needle"):
        context.step(1)


# What is refused ------------------------------------------------------------------------------------------------------


def refused(context, sheet, edges, kind, text):
    before = look(context)
    refuses(kind, text, context.flip_edges, sheet, edges)
    assert same(before, look(context))


def test_refused_flips_change_nothing():
    mesh = rough(MESHES["with borders"])
    system, sheet = built(mesh)
    context = context_of(system)
    inner = [e for e, faces in zip(mesh.edges.tolist(), mesh.edge_faces.tolist(), strict=True) if min(faces) >= 0]
    border = next(e for e, faces in zip(mesh.edges.tolist(), mesh.edge_faces.tolist(), strict=True) if min(faces) < 0)
    apart = [0, next(k for k in range(1, len(sheet)) if (0, k) not in edges_of(mesh.faces))]
    refused(context, sheet, [border], TopologyError, rf"edges\[0\] = \[{border[0]}, {border[1]}\].*on a border")
    refused(context, sheet, [inner[0], apart], TopologyError, r"edges\[1\] = .*have no edge in common")
    refused(context, sheet, [[4, 4]], TopologyError, "4 and 4 have no edge in common")
    refused(context, sheet, [inner[5], inner[5]], TopologyError, r"edges\[1\] = .*have no edge in common")
    refused(context, sheet, [inner[3], [2, len(sheet)]], TopologyError, rf"edges\[1, 1\] = {len(sheet)} does not exist")
    refused(context, sheet, [[-1, 2]], TopologyError, r"edges\[0, 0\] = -1 does not exist")
    refused(context, sheet, [[0.5, 2]], TopologyError, "must hold integers")
    refused(context, sheet, [0, 1], TopologyError, r"must have shape \(n, 2\)")
    refused(context, "sheet", [inner[0]], TopologyError, "must be the handle of a membrane of this topology")
    _, other = built(mesh)
    refused(context, other, [inner[0]], TopologyError, "must be the handle of a membrane of this topology")
    assert len(context.flip_edges(sheet, np.empty((0, 2), int))) == 0


def test_corners_that_have_an_edge_already_are_not_joined_twice():
    """No edge of a tetrahedron can be flipped, and none at a vertex of three triangles."""
    faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    tetrahedron = mp.TriangleMesh([[0, 0, 0], [9.0, 0, 0], [0, 9.0, 0], [0, 0, 9.0]], faces)
    system, sheet = built(tetrahedron, points=5, forces=lambda sheet: ())
    context = context_of(system)
    for edge in tetrahedron.edges:
        refused(context, sheet, [edge], TopologyError, "the other corners of its two triangles, . and ., have an edge")


@pytest.mark.parametrize(("force", "text"), [
    (lambda sheet: mp.forces.MembraneArea(sheet, 1.0, per_triangle=True), "its area is another for each triangle"),
    (lambda sheet: mp.forces.MembraneEdgeSprings(sheet, 1.0), "its length is another for each edge"),
    (lambda sheet: mp.forces.MembraneEdgeSprings(sheet, np.linspace(1.0, 2.0, len(sheet.mesh.edges)), 5.0),
     "its stiffness is another for each edge"),
])  # fmt: skip
def test_numbers_of_triangles_and_edges_refuse(force, text):
    system, sheet = built(rough(MESHES["closed"]), forces=lambda sheet: [force(sheet)])
    context = context_of(system)
    refused(context, sheet, [sheet.mesh.edges[0]], ParameterError, f"Membrane.* does not allow it: {text}")
    # The other membrane is free.
    other = system.topology["other"]
    context.flip_edges(other, [other.mesh.edges[0]])


def test_not_from_inside():
    system, sheet = built(MESHES["closed"])
    edge = sheet.mesh.edges[:1]
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-9, kT=KT, seed=2))

    class Flipper(mp.reporters.Reporter):
        def report(self, simulation, state):
            simulation.context.flip_edges(sheet, edge)

    simulation.reporters.append(Flipper(1))
    with pytest.raises(ContextInUseError):
        simulation.step(1)
    simulation.reporters.clear()
    assert (look(simulation.context).faces["sheet"] == sheet.mesh.faces).all()


def test_hostile_faces_in_a_checkpoint_are_refused():
    system, sheet = built(MESHES["with borders"])
    context = context_of(system)
    flip_at_random(context, sheet, 10)
    good = {k: a.copy() for k, a in context._dynamical_arrays().items()}
    first = len(system.topology["other"].mesh.faces)
    before = look(context)

    def with_faces(change):
        faces = good["faces"].copy()
        change(faces)
        return good | {"faces": faces}

    def reversed_one(faces):
        faces[first + 2] = faces[first + 2, ::-1]

    def far(faces):
        faces[first + 2, 1] = 10**6

    def of_another(faces):
        faces[first, 0] = 0

    def double(faces):
        faces[first + 1] = faces[first + 4]

    for change in (reversed_one, far, of_another, double):
        with pytest.raises(TopologyError, match="checkpoint: faces: the triangles of 'sheet' are none"):
            context._set_dynamical_arrays(with_faces(change), 0)
        assert same(before, look(context))
    with pytest.raises(ParameterError, match="checkpoint: faces is int64"):
        context._set_dynamical_arrays(good | {"faces": good["faces"].astype(np.int64)}, 0)


def test_faces_of_another_surface_of_as_many_triangles_are_refused():
    """Sound in themselves: a torus and a tetrahedron for a sphere, and a sheet with another border."""
    i, k = np.divmod(np.arange(9), 3)
    b, c, d = (3 * ((i + p) % 3) + (k + q) % 3 for p, q in ((1, 0), (1, 1), (0, 1)))
    torus = np.concatenate([np.column_stack([np.arange(9), b, c]), np.column_stack([np.arange(9), c, d])])
    corner = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    icosahedron = mp.TriangleMesh.icosphere(50.0, 0)
    middle = icosahedron.vertices[icosahedron.faces[0]].mean(axis=0)
    a, b, c = icosahedron.faces[0]
    sphere = mp.TriangleMesh(np.concatenate([icosahedron.vertices, [middle]]),
                             np.concatenate([icosahedron.faces[1:], [[a, b, 12], [b, c, 12], [c, a, 12]]]))  # fmt: skip
    square = mp.TriangleMesh([[0.0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], [[0, 1, 2], [0, 2, 3]])
    for mesh, faces, text in (
        (sphere, np.concatenate([torus, corner + 9]), "connected parts have other vertices"),
        (square, np.array([[0, 1, 2], [1, 0, 3]]), "on a border here or there only"),
    ):
        system, _ = built(mesh, points=0, forces=lambda sheet: (), before=False)
        context = context_of(system)
        arrays = context._dynamical_arrays()
        with pytest.raises(TopologyError, match=f"the triangles of 'sheet' are none: .*{text}"):
            context._set_dynamical_arrays(arrays | {"faces": faces.astype(np.int32)}, 0)
