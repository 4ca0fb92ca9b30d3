"""EllipsoidCollisions: ellipsoids against points, links and triangles."""

import itertools

import numpy as np
import pytest
from builders import orients, refuses, system_with
from forces.references.ellipsoids import END, FORMS, growth, law, look, matrices, nearest
from scipy.optimize import minimize

import medyanpy as mp
from medyanpy._tools import quaternions
from medyanpy.forces import EllipsoidCollisions, EllipsoidRepulsion
from medyanpy.testing import ForceCase, check_flips, check_force

# The contract --------------------------------------------------------------------------------------------------------


RADII = [0.4, 0.7, None, 0.3, 0.5, 0.6, 0.25]
EXCLUDED = np.array([[2, 30], [0, 11], [45, 3], [7, 26]])
AXES = np.random.default_rng(60).uniform(0.5, 3.0, (7, 3))


def things():
    """Seven bodies in two handles among everything that has a shape; (topology, handles by name)."""
    rng = np.random.default_rng(61)
    topology = mp.Topology()
    inertia = [1.0, 1.2, 1.5]
    handles = {"bodies": topology.add_rigid_bodies(rng.normal(0.0, 4.0, (4, 3)), orients(rng, 4), 1.0, inertia)}
    sheet = mp.TriangleMesh.flat_sheet(3, 3, 3.0)
    sheet = sheet.with_vertices(sheet.vertices - [4.0, 4.0, 0.0] + rng.normal(0.0, 0.5, sheet.vertices.shape))
    handles["sheet"] = topology.add_membrane(sheet, vertex_mass=1.0)
    handles["points"] = topology.add_intriangle_points(handles["sheet"], 3, mass=1.0, seed=2)
    ball = mp.TriangleMesh.icosphere(2.5, 0)
    handles["vesicle"] = topology.add_membrane(ball.translated([4.0, 1.0, 2.0]), vertex_mass=1.0)
    handles["balls"] = topology.add_balls(rng.normal(0.0, 4.0, (3, 3)), rng.uniform(0.5, 1.5, 3), mass=1.0)
    handles["others"] = topology.add_rigid_bodies(rng.normal(0.0, 3.0, (3, 3)), orients(rng, 3), 1.0, inertia)
    walk = np.cumsum(rng.normal(0.0, 2.0, (7, 3)), axis=0) - [2.0, 0.0, 1.0]
    handles["chains"] = topology.add_filaments([walk[:4], walk[4:]], node_mass=1.0, constrained=False)
    around = 2.0 * np.pi * np.arange(5) / 5.0
    ring = np.column_stack([3.0 * np.cos(around), 3.0 * np.sin(around), rng.normal(0.0, 0.5, 5)])
    handles["ring"] = topology.add_filament(ring, node_mass=1.0, constrained=False, closed=True)
    shape, frames = mp.rods.uniform(3, 2.5)
    handles["rod"] = topology.add_rod(shape + [-3.0, 1.0, 0.5], frames, 2.5, linear_density=1.0,
                                      inertia_density=[1.0, 1.0, 2.0])  # fmt: skip
    return topology, handles


SHAPES = ("rod", "sheet", "balls", "points", "ring", "chains", "vesicle")


def everything(form):
    def build():
        topology, h = things()
        force = EllipsoidCollisions([h["others"], h["bodies"]], [h[name] for name in SHAPES], 2.0, AXES, RADII,
                                    form=form, exclusions=EXCLUDED)  # fmt: skip
        return topology, force

    topology, h = things()
    bodies = np.concatenate([h["others"].beads, h["bodies"].beads])
    # (body, corners, thickness, object) of all pairs.
    pairs = []
    for name, R in zip(SHAPES, RADII, strict=True):
        handle = h[name]
        if name in ("sheet", "vesicle"):
            shapes = [(f, name) for f in handle.mesh.faces]
        elif name in ("balls", "points"):
            shapes = [([k], (name, k)) for k in range(len(handle))]
        else:
            chains = {"chains": [range(4), range(4, 7)], "ring": [[0, 1, 2, 3, 4, 0]], "rod": [range(len(handle))]}
            shapes = [((a, b), (name, c)) for c, chain in enumerate(chains[name]) for a, b in itertools.pairwise(chain)]
        for corners, what in shapes:
            corners = handle.beads[np.asarray(corners)]
            R_k = handle.radius[corners - handle.kind.first_bead][0] if R is None else R
            for i, body in enumerate(bodies):
                if not any({body, c} == set(e) for c in corners.tolist() for e in EXCLUDED.tolist()):
                    pairs.append((i, corners, R_k, (i, what)))
    objects = {o: k for k, o in enumerate(dict.fromkeys(p[3] for p in pairs))}
    groups = []
    for c in (1, 2, 3):
        rows = [p for p in pairs if len(p[1]) == c]
        groups.append([np.array([p[k] for p in rows]) for k in range(3)] + [np.array([objects[p[3]] for p in rows])])
    # Nodes of the rod turn, too.
    oriented = np.concatenate([handle.beads for handle in topology.oriented_handles]).tolist()
    rows = [oriented.index(b) for b in bodies.tolist()]

    def growths(x, q, i, corners, thickness):
        return growth(AXES[i], matrices(q[rows])[i], thickness, x[corners] - x[bodies[i]][:, None])

    near = []

    def energy(x, q):
        if not near:
            # Golden sections take long. The contract moves nothing by a hundredth of what the others are away.
            for group in groups:
                keep = growths(x, q, *group[:3]) < END[form] + 0.1
                if keep.any():
                    near.append([column[keep] for column in group])
        sums, touching = np.zeros(len(objects)), 0
        for i, corners, thickness, owner in near:
            mu = growths(x, q, i, corners, thickness)
            assert np.abs(mu - END[form]).min() > 1e-3
            touching += (mu < END[form]).sum()
            np.add.at(sums, owner, law(mu, 2.0, form) ** 8)
        assert touching > 10
        return np.sum(sums**0.125)

    return ForceCase(f"ellipsoids and shapes, {form}", build, energy, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_contract(form):
    check_force(everything(form))


# How much two have to grow -------------------------------------------------------------------------------------------


def single(axes, q, corners, thickness, form="soft", center=(0.0, 0.0, 0.0)):
    """State of a body and one shape with these corners (c, 3): a bead, a link or a triangle, of any size."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([center], [q], 1.0, [1.0, 1.0, 1.0])
    corners = np.asarray(corners, float)
    if len(corners) == 1:
        shape = topology.add_beads(corners, mass=1.0)
    elif len(corners) == 2:
        shape = topology.add_filament(50.0 * np.eye(3)[:2], node_mass=1.0, constrained=False)
    else:
        shape = topology.add_membrane(mp.TriangleMesh(50.0 * np.eye(3), [[0, 1, 2]]), vertex_mass=1.0)
    context = mp.Context(system_with(topology, EllipsoidCollisions(body, shape, 3.0, axes, thickness, form=form)),
                         mp.VerletIntegrator(1e-3), threads=1)  # fmt: skip
    x = context.get_state(positions=True).positions.copy()
    x[shape.beads] = corners
    context.set_positions(x)
    return context.get_state(positions=True, forces=True, energy=True)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("corners", [1, 2, 3])
def test_growth_of_any_pair(corners, ratio):
    """200 pairs at every overlap, needles and discs among them: μ against golden sections, force and torque by how μ
    depends on the place; nothing is left of momentum and angular momentum."""
    rng = np.random.default_rng(int(10 * ratio) + corners)
    n = 200
    axes = np.exp(rng.uniform(0.0, np.log(ratio), (n, 3))) if ratio > 1.0 else np.ones((n, 3))
    axes[: n // 4], axes[n // 4 : n // 2] = [1.0, 1.0, ratio], [ratio, 1.0, ratio]
    q, thickness = orients(rng, n), rng.uniform(0.0, 2.0)
    R = matrices(q)
    # Corners on all sides of the body, or on one.
    shapes = rng.normal(size=(n, corners, 3)) + rng.normal(size=(n, 1, 3)) * rng.uniform(0.0, 4.0, (n, 1, 1))
    wanted = rng.uniform(0.05, 0.98, n)
    # A shape that is twice as large and as far has twice the μ.
    shapes *= (wanted / growth(axes, R, np.full(n, thickness), shapes))[:, None, None]
    origin = 2000.0 * np.arange(n)[:, None] * [1.0, 0.0, 0.0]
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(origin, q, 1.0, [1.0, 1.0, 1.0])
    places = shapes + origin[:, None]
    if corners == 1:
        handles = [topology.add_beads(places[:, 0], mass=1.0)]
    elif corners == 2:
        handles = [topology.add_filaments(list(places), node_mass=1.0, constrained=False)]
    else:
        mesh = mp.TriangleMesh(places.reshape(-1, 3), np.arange(3 * n).reshape(-1, 3))
        handles = [topology.add_membrane(mesh, vertex_mass=1.0)]
    system = mp.System(topology)
    # Each pair has one object, but for those of the membrane, which are too far apart to matter.
    system.add_force(EllipsoidCollisions(bodies, handles, 3.0, axes, thickness, form="soft"))
    state = look(system)
    x = state.positions
    # The places have lost digits.
    mu = growth(axes, R, np.full(n, thickness), x[n:].reshape(n, corners, 3) - origin[:, None])
    np.testing.assert_allclose(mu, wanted, rtol=1e-9)
    assert state.potential_energy == pytest.approx(np.sum(law(mu, 3.0, "soft")), rel=1e-12)
    f = state.forces
    on_bodies, on_corners = f[:n], f[n:].reshape(n, corners, 3)
    size = np.linalg.norm(on_bodies, axis=1)
    assert np.abs(on_bodies + on_corners.sum(axis=1)).max() <= 1e-14 * size.max()
    # μ of a shape is homogeneous in its corners: Σ p . dμ/dp = μ.
    virial = np.einsum("nki,nki->n", on_corners, x[n:].reshape(n, corners, 3) - origin[:, None])
    np.testing.assert_allclose(virial, 2.0 * 3.0 * (1.0 - mu) * mu, rtol=0.0, atol=1e-9)
    torque = quaternions.turned(state.orientations, state.torques)
    levers = np.cross(x[n:].reshape(n, corners, 3) - origin[:, None], on_corners).sum(axis=1)
    reach = np.abs(shapes).max(axis=(1, 2))
    assert (np.linalg.norm(torque + levers, axis=1) <= 1e-13 * max(1.0, ratio) ** 1.5 * size * reach).all()
    if ratio > 1.0:
        assert (np.linalg.norm(torque, axis=1) > 0.05 * size * axes.min(axis=1)).sum() > n // 10


@pytest.mark.parametrize("corners", [2, 3])
def test_growth_by_another_minimiser(corners):
    """SciPy looks for the place of the shape from which the ellipsoid and a sphere have to grow least, each of which is
    two ellipsoids that repel."""
    rng = np.random.default_rng(corners)
    for _ in range(10):
        axes, q = np.exp(rng.uniform(0.0, 1.5, 3)), orients(rng, 1)[0]
        shape, R = rng.normal(0.0, 1.5, (corners, 3)) + rng.normal(0.0, 1.5, 3), 0.7

        def at(weights, shape=shape, axes=axes, q=q, R=R):
            p = shape[0] + weights @ (shape[1:] - shape[0])
            return growth(axes[None], matrices(q), np.array([R]), p[None, None])[0]

        bounds = [{"type": "ineq", "fun": lambda w: 1.0 - w.sum()}]
        best = min(
            minimize(at, start, bounds=[(0.0, 1.0)] * (corners - 1), constraints=bounds, method="SLSQP",
                     options={"ftol": 1e-14, "maxiter": 500}).fun
            for start in rng.dirichlet(np.ones(corners), 3)[:, 1:]
        )  # fmt: skip
        energy = single(axes, q, shape, R).potential_energy
        assert energy == pytest.approx(law(best, 3.0, "soft"), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("thickness", [0.0, 0.8])
def test_spheres(form, thickness):
    """μ is the distance over the sum of radii; without torques, whichever way they are turned."""
    rng = np.random.default_rng(4)
    for corners in (1, 2, 3):
        for _ in range(20):
            shape = rng.normal(size=(corners, 3))
            r = np.sqrt(nearest(np.eye(3)[None], shape[None]))[0]
            shape *= rng.uniform(0.5, 1.0) * (1.3 + thickness) / r
            r = np.sqrt(nearest(np.eye(3)[None], shape[None]))[0]
            state = single([1.3] * 3, orients(rng, 1)[0], shape, thickness, form)
            assert state.potential_energy == pytest.approx(law(r / (1.3 + thickness), 3.0, form), rel=1e-11, abs=1e-13)
            assert (state.torques == 0.0).all()


@pytest.mark.parametrize("form", FORMS)
def test_points_are_the_spheres_of_another_force(form):
    """Balls, and points of a membrane, against ellipsoids: the force of EllipsoidRepulsion."""
    states = []
    for mine in (True, False):
        rng = np.random.default_rng(5)
        topology = mp.Topology()
        bodies = topology.add_rigid_bodies(rng.normal(0.0, 4.0, (20, 3)), orients(rng, 20), 1.0, [1.0, 1.0, 1.0])
        balls = topology.add_balls(rng.normal(0.0, 4.0, (15, 3)), rng.uniform(0.3, 2.0, 15), mass=1.0)
        membrane = topology.add_membrane(mp.TriangleMesh.icosphere(4.0, 1), vertex_mass=1.0)
        points = topology.add_intriangle_points(membrane, 12, mass=1.0, seed=1)
        axes = rng.uniform(0.5, 3.0, (20, 3))
        if mine:
            force = EllipsoidCollisions(bodies, [points, balls], 2.0, axes, [0.9, None], form=form)
        else:
            b = np.concatenate([np.full(12, 0.9), balls.radius])[:, None] * np.ones(3)
            force = EllipsoidRepulsion(bodies, [points, balls], 2.0, axes, b, form=form)
        system = system_with(topology, force)
        states.append(look(system, word="BAGAB"))
    assert states[0].potential_energy == pytest.approx(states[1].potential_energy, rel=1e-11)
    for part in ("forces", "torques"):
        one, other = (getattr(state, part) for state in states)
        assert np.abs(one).max() > 0.3
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-11 * np.abs(one).max())


@pytest.mark.parametrize("ratio", [3.0, 10.0, 100.0])
def test_touching_the_middle_of_a_triangle(ratio):
    """A triangle with half a thickness, put where the surface of an ellipsoid has its normal: the energy is ε, and the
    force is along the normal, and shared by where they touch."""
    rng = np.random.default_rng(6)
    for _ in range(30):
        axes, q = np.exp(rng.uniform(0.0, np.log(ratio), 3)), orients(rng, 1)[0]
        frame = matrices(orients(rng, 1)[0])[0]
        normal, R = frame[2], 0.6
        turned = matrices(q)[0]
        A = turned @ np.diag(axes**2) @ turned.T
        place = A @ normal / np.sqrt(normal @ A @ normal) + R * normal
        weights = rng.dirichlet([2.0, 2.0, 2.0])
        corners = np.array([[5.0, 0.0], [-3.0, 4.0], [-1.0, -6.0]]) @ frame[:2]
        corners += place - weights @ corners
        state = single(axes, q, corners, R, "WCA")
        assert state.potential_energy == pytest.approx(3.0, rel=1e-11 * ratio)
        f = state.forces[1:]
        push = 24.0 * 3.0 / (normal @ place)
        np.testing.assert_allclose(f, push * weights[:, None] * normal, rtol=0.0, atol=1e-10 * ratio**2 * push)


def test_shapes_without_a_length_or_an_area():
    """Are those of what they have left: ends, or sides."""
    rng = np.random.default_rng(7)
    axes, q = [0.7, 1.2, 2.0], orients(rng, 1)[0]
    place = rng.normal(0.0, 0.7, 3)
    point = single(axes, q, [place], 0.5)
    link = single(axes, q, [place, place], 0.5)
    assert point.potential_energy > 0.01
    assert link.potential_energy == pytest.approx(point.potential_energy, rel=1e-13)
    corners = place + np.outer([0.0, 0.4, 1.0], [3.0, 1.0, -2.0])
    flat, side = single(axes, q, corners, 0.5), single(axes, q, corners[[0, 2]], 0.5)
    assert flat.potential_energy == pytest.approx(side.potential_energy, rel=1e-12)


def test_centre_on_a_shape():
    """Soft: ε and no force on a link; a triangle has a direction but for its sign. A little apart nothing is singular.
    With WCA the run ends and names the bead."""
    link = [[-2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    triangle = [[-3.0, -1.0, 0.0], [2.0, -2.0, 0.0], [1.0, 4.0, 0.0]]
    q = orients(np.random.default_rng(8), 1)[0]
    state = single([1.0, 2.0, 3.0], q, link, 0.5)
    assert state.potential_energy == 3.0
    assert (state.forces == 0.0).all()
    state = single([1.0, 2.0, 3.0], q, triangle, 0.5)
    assert state.potential_energy == pytest.approx(3.0, rel=1e-14)
    assert 1.0 < np.linalg.norm(state.forces[0]) < 6.0
    for shape in (link, triangle):
        state = single([1.0, 2.0, 3.0], q, shape, 0.5, center=[1e-9, 2e-9, -3e-9])
        assert state.potential_energy == pytest.approx(3.0, rel=1e-7)
        assert 1.0 < np.linalg.norm(state.forces, axis=1).max() < 6.0
        topology = mp.Topology()
        body = topology.add_rigid_bodies([[0.0, 0.0, 0.0]], [q], 1.0, [1.0, 1.0, 1.0])
        other = (
            topology.add_filament(link, node_mass=1.0, constrained=False)
            if shape is link
            else topology.add_membrane(mp.TriangleMesh(triangle, [[0, 1, 2]]), vertex_mass=1.0)
        )
        context = mp.Context(system_with(topology, EllipsoidCollisions(body, other, 3.0, [1.0, 2.0, 3.0], 0.5)),
                             mp.VerletIntegrator(0.01))  # fmt: skip
        refuses(mp.SimulationError, "bead", context.step, 1)


# Many shapes of one object -------------------------------------------------------------------------------------------


def over_a_sheet(places, q=(0.8, 0.36, 0.48, 0.0), axes=(0.8, 1.1, 2.0)):
    """Energies and forces of one body at places over a flat sheet of triangles at z = 0."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([places[0]], [q], 1.0, [1.0, 1.0, 1.0])
    sheet = topology.add_membrane(mp.TriangleMesh.flat_sheet(6, 6, 3.0), vertex_mass=1.0)
    context = mp.Context(system_with(topology, EllipsoidCollisions(body, sheet, 2.0, axes, 0.3)),
                         mp.VerletIntegrator(1e-3), threads=1)  # fmt: skip
    x = context.get_state(positions=True).positions.copy()
    energies, forces = [], []
    for place in places:
        x[body.beads] = place
        context.set_positions(x)
        state = context.get_state(energy=True, forces=True)
        energies.append(state.potential_energy)
        forces.append(state.forces[body.beads[0]])
    h = np.linalg.norm(np.asarray(axes) * (matrices(q)[0].T @ [0.0, 0.0, 1.0])) + 0.3
    return np.array(energies), np.array(forces), h


def test_a_sheet_is_nearly_flat():
    """Wherever the body is over a mesh, it has between 1 and 1.26 times the energy of one triangle: two that meet at an
    edge count 2^(1/8), six at a vertex 6^(1/8). A sum over triangles would have up to 6."""
    rng = np.random.default_rng(9)
    sheet = mp.TriangleMesh.flat_sheet(6, 6, 3.0)
    inner = sheet.vertices[np.setdiff1d(np.arange(len(sheet.vertices)), np.concatenate(sheet.borders))]
    middle = inner.mean(axis=0)
    h = over_a_sheet([[0.0, 0.0, 50.0]])[2]
    z = 1.02 * h
    places = middle + np.column_stack([rng.uniform(-3.0, 3.0, (400, 2)), np.full(400, z)])
    # A foot on a vertex: the ellipsoid touches beside its centre.
    energies, forces, _ = over_a_sheet(places)
    alone = law(1.02, 2.0, "WCA")
    assert energies.min() >= alone * (1 - 1e-12)
    assert 1.05 < energies.max() / alone < 6.0**0.125 * (1 + 1e-12)
    q = np.array([0.8, 0.36, 0.48, 0.0])
    R = matrices(q)[0]
    A = R @ np.diag(np.square([0.8, 1.1, 2.0])) @ R.T
    offset = (A @ [0.0, 0.0, -1.0]) / (h - 0.3)
    offset[2] = 0.0
    on_vertex = over_a_sheet([inner[len(inner) // 2] - 1.02 * offset + [0.0, 0.0, z]])[0][0]
    assert on_vertex / alone == pytest.approx(6.0**0.125, rel=1e-9)
    assert forces[:, 2].min() > 0.0


@pytest.mark.slow
def test_force_is_continuous():
    """Along a way over faces, edges, a vertex and past the border, at a depth where several touch: halving the steps
    halves the largest change of the force, and the energy is the work done."""
    sheet = mp.TriangleMesh.flat_sheet(6, 6, 3.0)
    inner = sheet.vertices[np.setdiff1d(np.arange(len(sheet.vertices)), np.concatenate(sheet.borders))]
    h = over_a_sheet([[0.0, 0.0, 50.0]])[2]
    start = inner[len(inner) // 2] + [-4.0, -1.5, 0.9 * h]
    changes = []
    for n in (1000, 2000, 4000):
        s = np.linspace(0.0, 1.0, n + 1)[:, None]
        way = start + s * [22.0, 7.0, 0.05 * h]
        energies, forces, _ = over_a_sheet(way)
        changes.append(np.abs(np.diff(forces, axis=0)).max())
        work = np.sum(0.5 * (forces[1:] + forces[:-1]) * np.diff(way, axis=0), axis=1)
        np.testing.assert_allclose(energies[0] - energies[1:], np.cumsum(work), atol=4e4 / n**2 * energies.max() / 100)
    assert energies[-1] == 0.0 < energies[0]
    assert changes[1] < 0.6 * changes[0]
    assert changes[2] < 0.6 * changes[1]


def test_objects_add_up():
    """Two filaments that touch count twice; two links of one do not."""
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    lines = [[[-9.0, 0, z], [0.0, 0, z], [9.0, 0, z]] for z in (1.5, -1.5)]
    both = topology.add_filaments(lines, node_mass=1.0, constrained=False)
    system = system_with(topology, EllipsoidCollisions(body, both, 2.0, [1.0, 1.0, 1.0], 0.5))
    assert look(system).potential_energy == pytest.approx(2.0 * 2.0 * 2.0**0.125, rel=1e-14)


def test_rings_are_tight():
    """A ball on the axis of a ring, or of a tube of triangles, that is narrower than itself is all but free outside and
    has a barrier inside, of at least one contact: contacts all around do not cancel, nor add up to many."""
    n, thickness, a = 24, 0.2, 1.0
    phi = 2.0 * np.pi * np.arange(n) / n
    circle = np.column_stack([np.cos(phi), np.sin(phi), 0.0 * phi])
    tube = np.concatenate([circle - [0.0, 0.0, 1.0], circle + [0.0, 0.0, 1.0]])
    i = np.arange(n)
    j = (i + 1) % n
    faces = np.concatenate([np.column_stack([i, j, j + n]), np.column_stack([i, j + n, i + n])])
    for make in ("ring", "tube"):
        energies = []
        for z in (0.0, 0.3, 3.0):
            topology = mp.Topology()
            ball = topology.add_rigid_bodies([[0.0, 0.0, z]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
            shape = (
                topology.add_filament(circle, node_mass=1.0, closed=True, constrained=False)
                if make == "ring"
                else topology.add_membrane(mp.TriangleMesh(tube, faces), vertex_mass=1.0)
            )
            system = system_with(topology, EllipsoidCollisions(ball, shape, 2.0, [a] * 3, thickness))
            energies.append(look(system).potential_energy)
        alone = law(np.cos(np.pi / n) / (a + thickness), 2.0, "WCA")
        assert alone * (1 - 1e-9) < energies[0] < 2.0 * alone
        assert energies[1] > law(np.hypot(1.0, 0.3) / (a + thickness), 2.0, "WCA")
        assert energies[2] == 0.0


# Membranes that flip, bodies that come and go, what is refused -------------------------------------------------------


def test_flips():
    def build():
        rng = np.random.default_rng(12)
        topology = mp.Topology()
        mesh = mp.TriangleMesh.icosphere(10.0, 1)
        mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.5, mesh.vertices.shape))
        vesicle = topology.add_membrane(mesh, vertex_mass=1.0)
        x = mesh.vertices[::4] * rng.uniform(0.75, 0.9, (len(mesh.vertices[::4]), 1))
        bodies = topology.add_rigid_bodies(x, orients(rng, len(x)), 1.0, [1.0, 1.0, 1.0])
        return topology, EllipsoidCollisions(bodies, vesicle, 1.0, [1.0, 2.0, 3.0], 0.3)

    check_flips(ForceCase("ellipsoids in a vesicle", build, lambda x: 0.0, 2.0))


def test_bodies_that_come_and_go():
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(np.empty((0, 3)), np.empty((0, 4)), 1.0, [1.0, 1.0, 1.0], (0.5, 0.5), capacity=5)
    chains = topology.add_filaments([], 1.0, 0.5, capacity=10, constrained=False)
    system = mp.System(topology)
    force = system.add_force(EllipsoidCollisions(bodies, chains, 2.0, [0.5, 0.5, 1.0], 0.5))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=3), threads=1)
    simulation.step(2)
    with topology.edit():
        bodies.add([[0.0, 0, 0], [4.0, 0, 0.2]], [[1.0, 0, 0, 0]] * 2)
        chains.add([[-3.0, 1.0, 0.0], [3.0, 1.0, 0.0], [7.0, 1.0, 0.0]])
    state = simulation.context.get_state(energy=True, forces=True, positions=True)
    # Both touch a link: 0.5 + 0.5 is 1.
    assert state.energies[force.name] == pytest.approx(2.0 + law(_askew(), 2.0, "WCA"), rel=1e-9)
    simulation.step(20)
    with topology.edit():
        bodies.remove([0])
    state = simulation.context.get_state(energy=True, forces=True)
    assert np.isfinite(state.forces[bodies.beads]).all()
    simulation.step(20)


def _askew():
    """Of a body beside the joint of two links, which are one line."""
    line = np.array([[[-3.0, 1.0, 0.0], [7.0, 1.0, 0.0]]]) - [4.0, 0.0, 0.2]
    return growth(np.array([[0.5, 0.5, 1.0]]), np.eye(3)[None], np.array([0.5]), line)[0]


def test_exclusions_of_what_is_tied():
    topology = mp.Topology()
    body = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
    line = topology.add_filament([[-2.0, 0.3, 0], [-1.0, 0.3, 0], [1.0, 0.3, 0], [2.0, 0.3, 0]], node_mass=1.0,
                                 constrained=False)  # fmt: skip
    for exclusions, touches in ((None, True), ([[0, 2]], True), ([[0, 2], [3, 0], [0, 1], [0, 4]], False)):
        system = system_with(topology, EllipsoidCollisions(body, line, 1.0, [0.5] * 3, 0.5, exclusions=exclusions))
        assert (look(system).potential_energy > 0.0) == touches
        topology = mp.Topology()
        body = topology.add_rigid_bodies([[0.0, 0, 0]], [[1.0, 0, 0, 0]], 1.0, [1.0, 1.0, 1.0])
        line = topology.add_filament([[-2.0, 0.3, 0], [-1.0, 0.3, 0], [1.0, 0.3, 0], [2.0, 0.3, 0]], node_mass=1.0,
                                     constrained=False)  # fmt: skip


@pytest.mark.parametrize(("given", "error", "message"), [
    ({"bodies": "balls"}, mp.TopologyError, r"bodies\[0\] must be the handle of rigid bodies, not Balls"),
    ({"bodies": "rod"}, mp.TopologyError, r"bodies\[0\] must be the handle of rigid bodies, not Rods"),
    ({"bodies": [0, 1]}, mp.TopologyError, r"bodies must be handles, not \[0, 1\]"),
    ({"shapes": "bodies"}, mp.TopologyError, r"shapes\[0\]: RigidBodies.* are ellipsoids: .* EllipsoidRepulsion"),
    ({"shapes": ["balls", "balls"]}, mp.TopologyError, r"shapes\[1\]: Balls.* are there twice|is there twice"),
    ({"radius": None}, mp.ParameterError, "give radius=, because Filaments.* has no radius: only balls have"),
    ({"radius": [1.0, 2.0]}, mp.ParameterError, r"radius must be one for all or have shape \(1,\), not \(2,\)"),
    ({"form": "hard"}, mp.ParameterError, "form = 'hard' but must be 'WCA' or 'soft'"),
    ({"exclusions": [[0, 99]]}, mp.TopologyError, r"exclusions\[0\] names beads \[0, 99\]"),
])  # fmt: skip
def test_refusals(given, error, message):
    topology, h = things()
    h["chains"] = h["ring"]

    def named(value):
        if isinstance(value, list) and isinstance(value[0], str):
            return [h[v] for v in value]
        return h[value] if isinstance(value, str) else value

    arguments = {"bodies": "bodies", "shapes": "chains", "epsilon": 1.0, "semi_axes": [1.0, 1.0, 1.0], "radius": 1.0}
    arguments |= given
    form = arguments.pop("form", "WCA")
    arguments = {key: named(value) for key, value in arguments.items()}
    system = mp.System(topology)
    refuses(error, message, bind, system, form, arguments)


def bind(system, form, arguments):
    system.add_force(EllipsoidCollisions(form=form, **arguments))
    mp.Context(system, mp.SplittingIntegrator("BAGAB", 0.01))
