"""G alone: straight flight over a frozen mesh, and what it does to the vertices."""

import numpy as np
import pytest
from builders import look, refuses

import medyanpy as mp
from medyanpy._kernels.selected import geodesic

MASS = 0.7


def bumpy_sphere():
    rng = np.random.default_rng(5)
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.5, mesh.vertices.shape))


def bumpy_sheet():
    rng = np.random.default_rng(6)
    mesh = mp.TriangleMesh.flat_sheet(5, 6, 3.0)
    return mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.4, mesh.vertices.shape))


def torus():
    return mp.TriangleMesh.torus(10.0, 4.0, 14, 8)


MESHES = {"bumpy sphere": bumpy_sphere, "bumpy sheet with a border": bumpy_sheet, "torus": torus}


def context_on(mesh, n=60, triangles=None, barycentric=None, velocities=None, fixed=False, threads=1):
    """Points on a mesh beside another one, so that no number of a face, vertex or bead is its own index."""
    topology = mp.Topology()
    topology.add_beads([[1.0, 2.0, 3.0]], mass=1.0)
    topology.add_membrane(mp.TriangleMesh.icosphere(3.0, 0), vertex_mass=1.0)
    rng = np.random.default_rng(8)
    membrane = topology.add_membrane(mesh, vertex_mass=rng.uniform(1.0, 3.0, len(mesh.vertices)), fixed=fixed)
    if triangles is None:
        points = topology.add_intriangle_points(membrane, n, mass=rng.uniform(0.5, 1.0, n), seed=4)
    else:
        points = topology.add_intriangle_points(membrane, triangles=triangles, barycentric=barycentric, mass=MASS)
    context = mp.Context(mp.System(topology), mp.VerletIntegrator(1e-3), threads=threads)
    if velocities is None:
        context.set_velocities_to_temperature(kT=4.0, seed=9)
    else:
        v = np.zeros((topology.n_beads, 3))
        v[points.beads] = velocities
        context.set_velocities(v)
    return context, membrane, points


def fly(context, time):
    context._schedule.perform(geodesic.Geodesic(time, context._store.corners))


def reference_flight(mesh, face, weights, v, time):
    """The same flight by other means: a point in space, planes, and Rodrigues rotations about edges.

    Returns face, position, velocity, the momentum per mass given to each vertex, and the number of crossings.
    """
    x = weights @ mesh.vertices[mesh.faces[face]]
    push = np.zeros_like(mesh.vertices)
    crossings = 0
    came_from = None
    while True:
        corners = mesh.faces[face]
        R = mesh.vertices[corners]
        normal = np.cross(R[1] - R[0], R[2] - R[0])
        best, exit_edge = time, None
        for k in range(3):
            if (face, k) == came_from:
                continue
            inward = np.cross(normal, R[(k + 2) % 3] - R[(k + 1) % 3])
            speed = inward @ v
            if speed < 0.0:
                t = max(0.0, -(inward @ (x - R[(k + 1) % 3])) / speed)
                if t < best:
                    best, exit_edge = t, k
        moved = best * v
        gradient = np.array([np.cross(normal, R[(k + 2) % 3] - R[(k + 1) % 3]) for k in range(3)]) / (normal @ normal)
        push[corners] += np.outer(gradient @ moved, v)
        x = x + moved
        time -= best
        if exit_edge is None:
            return face, x, v, push, crossings
        crossings += 1
        neighbour = mesh.neighbors[face, exit_edge]
        a, b = R[(exit_edge + 1) % 3], R[(exit_edge + 2) % 3]
        axis = (b - a) / np.linalg.norm(b - a)
        if neighbour < 0:
            along = (v @ axis) * axis
            v = 2.0 * along - v
            came_from = (face, exit_edge)
            continue
        other = mesh.faces[neighbour]
        R2 = mesh.vertices[other]
        n1 = normal / np.linalg.norm(normal)
        n2 = np.cross(R2[1] - R2[0], R2[2] - R2[0])
        n2 = n2 / np.linalg.norm(n2)
        sine, cosine = np.cross(n1, n2) @ axis, n1 @ n2
        v = v * cosine + np.cross(axis, v) * sine + axis * (axis @ v) * (1.0 - cosine)
        entry = next(
            k for k in range(3) if other[k] not in (corners[(exit_edge + 1) % 3], corners[(exit_edge + 2) % 3])
        )
        face, came_from = neighbour, (neighbour, entry)


@pytest.mark.parametrize("time", [6.0, -6.0])
@pytest.mark.parametrize("make", MESHES.values(), ids=MESHES.keys())
def test_flight_agrees_with_a_reference_that_rotates_in_space(make, time):
    """Back in time the reference flies with -v, and what it pushes is the reversed momentum of the vertices."""
    mesh = make()
    context, membrane, points = context_on(mesh, n=25)
    before = look(context)
    sense = np.sign(time)
    fly(context, time)
    after = look(context)
    push = np.zeros_like(mesh.vertices)
    total = 0
    for i, (face, weights) in enumerate(zip(before.intriangle.triangles, before.intriangle.barycentric, strict=True)):
        v = sense * before.velocities[points.beads[i]]
        face, x, v, recoil, crossings = reference_flight(mesh, face, weights, v, abs(time))
        push += sense * points.mass[i] * recoil
        total += crossings
        assert after.intriangle.triangles[i] == face
        np.testing.assert_allclose(after.positions[points.beads[i]], x, atol=1e-9)
        np.testing.assert_allclose(sense * after.velocities[points.beads[i]], v, atol=1e-9)
    assert total > 25 * 5
    gained = membrane.mass[:, None] * (after.velocities - before.velocities)[membrane.beads]
    np.testing.assert_allclose(gained, push, atol=1e-9 * np.abs(push).max())


@pytest.mark.parametrize("time", [400.0, -400.0])
@pytest.mark.parametrize("make", MESHES.values(), ids=MESHES.keys())
def test_conservation_through_hundreds_of_crossings(make, time):
    mesh = make()
    context, membrane, points = context_on(mesh, n=200)
    before = look(context)
    fly(context, time)
    after = look(context)

    speed2 = [(s.velocities[points.beads] ** 2).sum(axis=1) for s in (before, after)]
    np.testing.assert_allclose(speed2[1], speed2[0], rtol=1e-12)
    R = before.positions[membrane.beads]
    P = [membrane.mass[:, None] * s.velocities[membrane.beads] for s in (before, after)]
    largest = np.abs(P[1]).sum()
    assert np.abs(P[1] - P[0]).max() > 1.0
    assert np.abs((P[1] - P[0]).sum(axis=0)).max() < 1e-14 * largest
    assert np.abs(np.cross(R, P[1] - P[0]).sum(axis=0)).max() < 1e-13 * largest * np.abs(R).max()
    weights = after.intriangle.barycentric
    assert (weights >= 0.0).all()
    assert np.abs(weights.sum(axis=1) - 1.0).max() < 1e-15
    # Velocities lie in the planes of the triangles they are in.
    normal = mesh.face_normals[after.intriangle.triangles]
    assert np.abs(np.einsum("ij,ij->i", normal, after.velocities[points.beads])).max() < 1e-11
    # Everything else was left alone.
    others = np.setdiff1d(np.arange(len(before.positions)), np.concatenate([membrane.beads, points.beads]))
    assert (after.velocities[others] == before.velocities[others]).all()
    assert (after.positions[membrane.beads] == before.positions[membrane.beads]).all()


@pytest.mark.parametrize("make", MESHES.values(), ids=MESHES.keys())
def test_flying_back_ends_at_the_start(make):
    # Long enough for about 30 crossings each; longer flights on a bumpy mesh amplify rounding beyond 1e-9.
    context, _membrane, _points = context_on(make(), n=50)
    before = look(context)
    fly(context, 25.0)
    there = look(context)
    context.set_velocities(-there.velocities)
    fly(context, 25.0)
    after = look(context)
    assert (there.intriangle.triangles != before.intriangle.triangles).mean() > 0.8
    np.testing.assert_allclose(after.positions, before.positions, atol=1e-9)
    np.testing.assert_allclose(-after.velocities, before.velocities, atol=1e-9)


@pytest.mark.parametrize("make", MESHES.values(), ids=MESHES.keys())
def test_flight_back_in_time_is_that_of_reversed_velocities(make):
    """G(-t) = R G(t) R to the bit, with R reversing points and vertices; and it undoes G(t), recoils too."""
    time = 25.0
    flown = []
    for sense in (-1.0, 1.0):
        context, _membrane, points = context_on(make(), n=50)
        # Not by set_velocities, which projects into planes and so rounds.
        context._store.v *= -sense
        fly(context, sense * time)
        context._store.v *= -sense
        flown.append((look(context), context))
    (back, context), (reversed_twice, _) = flown
    assert (back.intriangle.triangles == reversed_twice.intriangle.triangles).all()
    assert (back.intriangle.barycentric == reversed_twice.intriangle.barycentric).all()
    assert (back.velocities == reversed_twice.velocities).all()
    start = look(context_on(make(), n=50)[0])
    assert (back.intriangle.triangles != start.intriangle.triangles).mean() > 0.8
    vertices = np.setdiff1d(np.arange(len(start.velocities)), points.beads)
    assert np.abs(back.velocities - start.velocities)[vertices].max() > 0.5
    fly(context, time)
    again = look(context)
    np.testing.assert_allclose(again.positions, start.positions, atol=1e-9)
    np.testing.assert_allclose(again.velocities, start.velocities, atol=1e-9)


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_flight_composes(sense):
    """G(s) G(t) = G(s + t), whatever the signs: it is an exact flow."""
    results = []
    for pieces in ([7.0], [2.5, 4.5], [9.5, -2.5]):
        context, *_ = context_on(bumpy_sphere(), n=100)
        for piece in pieces:
            fly(context, sense * piece)
        results.append(look(context))
    for other in results[1:]:
        np.testing.assert_allclose(results[0].positions, other.positions, atol=1e-10)
        np.testing.assert_allclose(results[0].velocities, other.velocities, atol=1e-10)


def test_recoil_is_the_derivative_of_the_kinetic_energy():
    """For a flight inside one triangle dP_i/dt = -dH_G/dR_i at constant lambda and p_lambda."""
    rng = np.random.default_rng(3)
    R = rng.normal(size=(3, 3))
    mesh = mp.TriangleMesh(R, [[0, 1, 2]])
    v = (R[1] - R[0]) * 0.3 + (R[2] - R[0]) * -0.2
    context, membrane, _points = context_on(mesh, triangles=[0], barycentric=[[0.4, 0.3, 0.3]], velocities=[v])
    t = 1e-3
    fly(context, t)
    force = membrane.mass[:, None] * look(context).velocities[membrane.beads] / t
    A = np.column_stack([R[1] - R[0], R[2] - R[0]])
    p = MASS * A.T @ v

    def energy(R):
        A = np.column_stack([R[1] - R[0], R[2] - R[0]])
        return 0.5 / MASS * p @ np.linalg.solve(A.T @ A, p)

    h = 1e-6
    for i, c in np.ndindex(3, 3):
        e = np.zeros((3, 3))
        e[i, c] = h
        assert force[i, c] == pytest.approx(-(energy(R + e) - energy(R - e)) / (2 * h), abs=1e-8)


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_straight_lines_and_mirrors_on_a_flat_sheet(sense):
    """On a flat rectangle the flight is a straight line folded back at the border."""
    square = mp.TriangleMesh([[0.0, 0, 0], [2, 0, 0], [2, 3, 0], [0, 3, 0], [1.1, 1.3, 0]],
                             [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])  # fmt: skip
    rng = np.random.default_rng(1)
    n = 50
    velocities = np.column_stack([rng.normal(size=(n, 2)), np.zeros(n)])
    triangles, barycentric = square.sample(n, rng)
    context, _membrane, points = context_on(square, triangles=triangles, barycentric=barycentric, velocities=velocities)
    start = look(context).positions[points.beads]
    t = 20.0 * sense
    fly(context, t)
    free = start + t * velocities
    folded = np.empty((n, 2))
    sign = np.empty((n, 2))
    for c, length in enumerate((2.0, 3.0)):
        phase = np.mod(free[:, c], 2 * length)
        folded[:, c] = np.where(phase < length, phase, 2 * length - phase)
        sign[:, c] = np.where(phase < length, 1.0, -1.0)
    after = look(context)
    np.testing.assert_allclose(after.positions[points.beads][:, :2], folded, atol=1e-11)
    np.testing.assert_allclose(after.velocities[points.beads][:, :2], sign * velocities[:, :2], atol=1e-11)


# Hard cases, on a flat fan of six triangles around vertex 0 -------------------------------------------------

ANGLES = np.arange(6) * np.pi / 3
FAN = mp.TriangleMesh(np.vstack([[0.0, 0, 0], np.column_stack([np.cos(ANGLES), np.sin(ANGLES), 0 * ANGLES])]),
                      [[0, 1 + k, 1 + (k + 1) % 6] for k in range(6)])  # fmt: skip
FACE_CENTRE = FAN.vertices[FAN.faces[0]].mean(axis=0)


def flight_on_the_fan(weights, velocity, time, face=0):
    """Place and velocity; after flying back in time with the opposite velocity they are the same, to the bit."""
    ends = []
    for sense in (1.0, -1.0):
        context, _, points = context_on(FAN, triangles=[face], barycentric=[weights],
                                        velocities=[sense * np.array(velocity)])  # fmt: skip
        fly(context, sense * time)
        state = look(context)
        assert (state.intriangle.barycentric >= 0.0).all()
        ends.append((state.positions[points.beads][0], sense * state.velocities[points.beads][0]))
    assert np.array_equal(*ends)
    return ends[0]


def test_hit_on_a_vertex_goes_straight_on():
    v = -FACE_CENTRE / np.linalg.norm(FACE_CENTRE)
    x, after = flight_on_the_fan([1 / 3, 1 / 3, 1 / 3], v, 1.0)
    np.testing.assert_allclose(x, FACE_CENTRE + v, atol=1e-15)
    np.testing.assert_allclose(after, v, atol=1e-15)


@pytest.mark.parametrize("angle", np.deg2rad([0.0, 10.0, 60.0, 77.0, 120.0, 185.0, 240.0, 300.0, 359.0]))
@pytest.mark.parametrize("face", range(6))
def test_start_exactly_on_a_vertex(angle, face):
    v = np.array([np.cos(angle), np.sin(angle), 0.0])
    x, after = flight_on_the_fan([1.0, 0.0, 0.0], v, 0.5, face)
    np.testing.assert_allclose(x, 0.5 * v, atol=1e-15)
    np.testing.assert_allclose(after, v, atol=1e-15)


@pytest.mark.parametrize("angle", np.deg2rad([-80.0, 10.0, 100.0]))
def test_start_exactly_on_an_edge(angle):
    v = np.array([np.cos(angle), np.sin(angle), 0.0])
    x, after = flight_on_the_fan([0.5, 0.5, 0.0], v, 0.2)
    np.testing.assert_allclose(x, [0.5, 0.0, 0.0] + 0.2 * v, atol=1e-15)
    np.testing.assert_allclose(after, v, atol=1e-15)


def test_velocity_along_an_edge_and_through_a_vertex():
    x, after = flight_on_the_fan([0.5, 0.5, 0.0], [-1.0, 0.0, 0.0], 1.0)
    np.testing.assert_allclose(x, [-0.5, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(after, [-1.0, 0.0, 0.0], atol=1e-15)


def test_weights_stay_weights_along_an_edge():
    """Second and third weight add up to 1 here, give or take a rounding: the first, as read, is never below 0."""
    rng = np.random.default_rng(4)
    n = 2000
    a = rng.uniform(0.3, 0.7, n)
    edge = FAN.vertices[2] - FAN.vertices[1]
    context, _, _points = context_on(FAN, triangles=np.zeros(n, int),
                                     barycentric=np.column_stack([np.zeros(n), 1.0 - a, a]),
                                     velocities=rng.uniform(-0.3, 0.3, n)[:, None] * edge)  # fmt: skip
    for _ in range(5):
        fly(context, 0.1)
        weights = look(context).intriangle.barycentric
        assert (weights >= 0.0).all()
        assert (weights[:, 0] < 1e-15).all()


def test_zero_velocity_stays():
    for weights in ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0]):
        x, after = flight_on_the_fan(weights, [0.0, 0.0, 0.0], 10.0)
        np.testing.assert_allclose(x, np.array(weights) @ FAN.vertices[FAN.faces[0]], atol=1e-16)
        assert (after == 0.0).all()


@pytest.mark.parametrize("time", [30.0, -30.0])
def test_reflection_in_a_corner_of_the_border(time):
    """A single triangle: any flight stays inside, and its speed stays what it was."""
    mesh = mp.TriangleMesh([[0.0, 0, 0], [1.0, 0, 0], [0.1, 0.2, 0]], [[0, 1, 2]])
    rng = np.random.default_rng(2)
    n = 100
    triangles, barycentric = mesh.sample(n, rng)
    barycentric[0] = [0.0, 1.0, 0.0]
    velocities = np.column_stack([rng.normal(size=(n, 2)), np.zeros(n)])
    context, _, points = context_on(mesh, triangles=triangles, barycentric=barycentric, velocities=velocities)
    fly(context, time)
    state = look(context)
    assert (state.intriangle.barycentric >= 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(state.velocities[points.beads], axis=1),
                               np.linalg.norm(velocities, axis=1), rtol=1e-12)  # fmt: skip


def test_two_faces_that_share_two_edges():
    """A cone of three faces whose tip is one vertex: neighbours are told apart by corner, not by face."""
    mesh = mp.TriangleMesh([[0.0, 0, 0], [1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
                           [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])  # fmt: skip
    context, _, _points = context_on(mesh, n=50)
    before = look(context)
    fly(context, 30.0)
    there = look(context)
    context.set_velocities(-there.velocities)
    fly(context, 30.0)
    np.testing.assert_allclose(look(context).positions, before.positions, atol=1e-9)


def test_needle_triangles_keep_the_speed():
    """A strip of triangles with angles of 1e-5 radian: heights come from cross products, which do not cancel."""
    n = 12
    x = np.arange(n)
    vertices = np.vstack(
        [np.column_stack([x, 0 * x, 0 * x]), np.column_stack([x + 0.5, 0 * x + 1e-5, 0.3 * np.sin(x)])]
    )
    faces = [[k, k + 1, n + k] for k in range(n - 1)] + [[k + 1, n + k + 1, n + k] for k in range(n - 1)]
    mesh = mp.TriangleMesh(vertices, faces)
    context, _, points = context_on(mesh, n=40)
    before = look(context)
    fly(context, 0.5)
    after = look(context)
    np.testing.assert_allclose(np.linalg.norm(after.velocities[points.beads], axis=1),
                               np.linalg.norm(before.velocities[points.beads], axis=1), rtol=1e-8)  # fmt: skip


@pytest.mark.parametrize("time", [1e9, -1e9])
def test_a_flight_without_end_is_refused(time):
    context, _, points = context_on(bumpy_sphere(), n=3)
    with pytest.raises(mp.SimulationError, match="crosses edges without end") as caught:
        fly(context, time)
    assert caught.value.bead == points.beads[0]
    assert caught.value.object == "points"


def test_velocity_that_is_not_a_number_is_reported():
    context, _, points = context_on(bumpy_sphere(), n=3)
    context._store.v[context.layout.rank[points.beads[1]]] = np.nan
    refuses(mp.SimulationError, rf"bead {points.beads[1]} .*no longer a finite number", fly, context, 1.0)
