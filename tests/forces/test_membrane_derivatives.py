"""Second and third derivatives of membrane bending, and its stiffness. Against differences of forces, and after flips:
test_contract.py."""

import functools

import numpy as np
import pytest
from builders import refuses, system_with
from medyanpy._kernels.core.derivatives import Contraction, DiagonalBlocks, HessianBlocks, Multiplication

import medyanpy as mp

FORMS = ("vertex", "projected", "dihedral")
RNG = np.random.default_rng(20261124)


def crooked(mesh, by):
    return mesh.with_vertices(mesh.vertices + RNG.normal(0.0, by, mesh.vertices.shape))


def saddle():
    """An open mesh with six vertices inside, bent to both sides."""
    mesh = mp.TriangleMesh.flat_sheet(5, 4, 2.0)
    x = mesh.vertices - mesh.vertices.mean(axis=0)
    return crooked(mesh.with_vertices(x + np.outer(0.15 * (x[:, 0] ** 2 - x[:, 1] ** 2), [0.0, 0.0, 1.0])), 0.2)


CLOSED = crooked(mp.TriangleMesh.icosphere(3.0, 0), 0.4)
SADDLE = saddle()
NUMBERS = [(RNG.uniform(1.0, 20.0, len(m.vertices)), RNG.uniform(-0.3, 0.3, len(m.vertices))) for m in (CLOSED, SADDLE)]


class Scene:
    """Bending of several membranes among other beads: products by place of beads, as kicks ask for them."""

    def __init__(self, membranes, form, threads=1):
        topology = mp.Topology()
        topology.add_beads([[40.0, 0.0, 0.0], [0.0, 50.0, 0.0]], mass=1.0)
        system = mp.System(topology)
        self.handles = []
        for k, (mesh, modulus, curvature) in enumerate(membranes):
            self.handles.append(topology.add_membrane(mesh, vertex_mass=1.0))
            how = {"projected": True} if form == "projected" else {"discretization": form}
            bending = mp.forces.MembraneBending(self.handles[-1], modulus, curvature, **how, name=f"b{k}")
            system.add_force(bending)
        self.context = mp.Context(system, mp.VerletIntegrator(1e-6), threads=threads)
        self.schedule = self.context._schedule
        self.rank, self.order = self.context.layout.rank, self.context.layout.order
        self.n = len(self.rank)

    def go(self, x):
        self.context._store.x[:] = x[self.order]
        self.context._store.positions_changed()

    @property
    def x(self):
        return np.array(self.context._store.x)[self.rank]

    def gradient(self):
        return -self.context.get_state(forces=True).forces

    def _add_up(self, operation, shape, *arguments):
        out = np.zeros((self.n, *shape))
        for force in self.schedule.bound_forces.values():
            self.schedule.perform(operation(force, *arguments[:1], out, *arguments[1:]), changes_state=False)
        return out[self.rank]

    def product(self, a, positive=False):
        return self._add_up(Multiplication, (3,), np.ascontiguousarray(a[self.order]), positive)

    def third(self, a, positive=False):
        return self._add_up(Contraction, (3,), np.ascontiguousarray(a[self.order]), positive)

    def diagonal(self):
        return self._add_up(DiagonalBlocks, (3, 3))

    def matrix(self, positive=False):
        return self.context.hessian(positive=positive).toarray()

    def everything(self, a):
        """Numbers that must not depend on threads."""
        parts = [self.product(a), self.product(a, True), self.third(a), self.third(a, True), self.diagonal()]
        return np.concatenate([p.ravel() for p in [*parts, self.matrix(), self.matrix(True)]])


# With 60 digits -----------------------------------------------------------------------------------------------


def residuals(x, faces, inside, kappa, c0, form, mpmath):
    """r_v of the vertices inside, E = sum r²/2, four of each in the vertex form (along the normal and across), from
    (n, 3) numbers of mpmath: areas and volumes of tetrahedra with their derivatives by hand, angles from heights."""

    def minus(p, q):
        return [p[0] - q[0], p[1] - q[1], p[2] - q[2]]

    def cross(p, q):
        return [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]]

    def dot(p, q):
        return p[0] * q[0] + p[1] * q[1] + p[2] * q[2]

    n = len(x)
    area = [mpmath.mpf(0)] * n
    up = [[mpmath.mpf(0)] * 3 for _ in range(n)]
    pull = [[mpmath.mpf(0)] * 3 for _ in range(n)]
    turn = [mpmath.mpf(0)] * n
    third = {}
    for face in faces:
        for k in range(3):
            i, j, v = face[k], face[(k + 1) % 3], face[(k + 2) % 3]
            third[i, j] = v
            d, side = minus(x[v], x[i]), minus(x[j], x[i])
            if form != "dihedral":
                # Along the height on the side across, by half of that side.
                foot = dot(d, side) / dot(side, side)
                height = [d[c] - foot * side[c] for c in range(3)]
                slope = mpmath.sqrt(dot(side, side) / dot(height, height)) / 2
                volume = cross(side, d)
                for c in range(3):
                    pull[v][c] += slope * height[c]
                    up[v][c] += volume[c] / 6
        normal = cross(minus(x[face[1]], x[face[0]]), minus(x[face[2]], x[face[0]]))
        whole = mpmath.sqrt(dot(normal, normal)) / 2
        for v in face:
            area[v] += whole / 3
    if form == "dihedral":
        for (i, j), v in third.items():
            w = third.get((j, i))
            if w is None or i > j:
                continue
            side = minus(x[j], x[i])
            heights = []
            for end in (v, w):
                d = minus(x[end], x[i])
                foot = dot(d, side) / dot(side, side)
                heights.append([d[c] - foot * side[c] for c in range(3)])
            length = mpmath.sqrt(dot(side, side))
            # Zero where the heights are opposite; the side that the triangles turn to makes the sign.
            angle = mpmath.atan2(dot(side, cross(heights[1], heights[0])) / length, -dot(*heights))
            turn[i] += length * angle
            turn[j] += length * angle
    out = []
    for v in inside:
        if form == "vertex":
            weight = mpmath.sqrt(kappa[v]) / dot(up[v], up[v]) ** (mpmath.mpf(3) / 4)
            out.append(weight * (dot(pull[v], up[v]) - 2 * c0[v] * dot(up[v], up[v])))
            out += [weight * part for part in cross(up[v], pull[v])]
            continue
        if form == "projected":
            h = dot(pull[v], up[v]) / (2 * dot(up[v], up[v]))
        else:
            h = turn[v] / (4 * area[v])
        out.append(2 * mpmath.sqrt(kappa[v] * area[v]) * (h - c0[v]))
    return out


@functools.cache
def precise(which, form):
    """The direction (n, 3), and of one mesh H a, K a, D3E[a, a], a.K'.a (n, 3) and K (3n, 3n), by differences in 60
    digits: errors of 1e-24, and 36 digits lost."""
    mpmath = pytest.importorskip("mpmath")
    mesh, (kappa, c0) = (CLOSED, SADDLE)[which], NUMBERS[which]
    border = {v for loop in mesh.borders for v in loop.tolist()}
    inside = [v for v in range(len(mesh.vertices)) if v not in border]
    a = np.random.default_rng(7).normal(size=mesh.vertices.shape)
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -12
        faces = mesh.faces.tolist()
        start = [[mpmath.mpf(v) for v in row] for row in mesh.vertices.tolist()]
        along = [[mpmath.mpf(v) for v in row] for row in a.tolist()]
        kappa, c0 = [mpmath.mpf(v) for v in kappa.tolist()], [mpmath.mpf(v) for v in c0.tolist()]

        def r(s, place=None, t=0):
            x = [[p + s * h * q for p, q in zip(*rows, strict=True)] for rows in zip(start, along, strict=True)]
            if place is not None:
                x[place[0]][place[1]] += t * h
            return residuals(x, faces, inside, kappa, c0, form, mpmath)

        def differ(p, q, by):
            return [(u - v) / by for u, v in zip(p, q, strict=True)]

        change = differ(r(1), r(-1), 2 * h)
        found = np.zeros((4, *a.shape))
        slopes = []
        for place in np.ndindex(a.shape):
            values = {(s, t): r(s, place, t) for s in (-1, 0, 1) for t in (-1, 1)}
            energy = {at: mpmath.fdot(v, v) / 2 for at, v in values.items()}
            slope = {s: (energy[s, 1] - energy[s, -1]) / (2 * h) for s in (-1, 0, 1)}
            own = differ(values[0, 1], values[0, -1], 2 * h)
            mixed = differ(differ(values[1, 1], values[1, -1], 2 * h), differ(values[-1, 1], values[-1, -1], 2 * h),
                           2 * h)  # fmt: skip
            slopes.append([float(v) for v in own])
            found[0][place] = (slope[1] - slope[-1]) / (2 * h)
            found[1][place] = mpmath.fdot(own, change)
            found[2][place] = (slope[1] - 2 * slope[0] + slope[-1]) / h**2
            found[3][place] = 2 * mpmath.fdot(mixed, change)
    return a, found, np.array(slopes) @ np.array(slopes).T


@pytest.mark.parametrize("which", [pytest.param(0, id="closed"), pytest.param(1, marks=pytest.mark.slow, id="saddle")])
@pytest.mark.parametrize("form", FORMS)
def test_every_component_has_its_digits(form, which):
    scene = Scene([(mesh, *numbers) for mesh, numbers in zip((CLOSED, SADDLE), NUMBERS, strict=True)], form)
    a, expected, stiffness = precise(which, form)
    beads = scene.handles[which].beads
    along = np.zeros((scene.n, 3))
    along[beads] = a
    found = (scene.product(along), scene.product(along, True), scene.third(along), scene.third(along, True))
    for one, right, what in zip(found, expected, ("H a", "K a", "D3E[a, a]", "a.K'.a"), strict=True):
        np.testing.assert_allclose(one[beads], right, rtol=0.0, atol=1e-13 * np.abs(right).max(),
                                   err_msg=f"{form}: {what}")  # fmt: skip
        # The other membrane, and beads that are in none.
        assert (np.delete(one, beads, axis=0) == 0.0).all(), what
    rows = (3 * beads[:, None] + np.arange(3)).ravel()
    np.testing.assert_allclose(scene.matrix(True)[np.ix_(rows, rows)], stiffness, rtol=0.0,
                               atol=1e-13 * np.abs(stiffness).max())  # fmt: skip


# What must hold -----------------------------------------------------------------------------------------------


def lumpy(form, threads=1):
    """Three membranes, the largest of which is cut into blocks of faces and of vertices."""
    ball = crooked(mp.TriangleMesh.icosphere(10.0, 3), 0.1)
    membranes = [(ball, RNG.uniform(1.0, 20.0, len(ball.vertices)), -0.1), (CLOSED, *NUMBERS[0]), (SADDLE, *NUMBERS[1])]
    return Scene(membranes, form, threads)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_and_products_are_of_one_matrix(form):
    scene = Scene([(CLOSED, *NUMBERS[0]), (SADDLE, *NUMBERS[1])], form)
    for positive in (False, True):
        matrix = scene.matrix(positive)
        assert np.abs(matrix - matrix.T).max() <= 1e-15 * np.abs(matrix).max()
        products = np.column_stack(
            [scene.product(unit.reshape(-1, 3), positive).ravel() for unit in np.eye(3 * scene.n)]
        )
        np.testing.assert_allclose(products, matrix, rtol=0.0, atol=1e-14 * np.abs(matrix).max())
    eigenvalues = np.linalg.eigvalsh(scene.matrix(True))
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]
    # Of what is bent, H has negative ones, so that there is a difference.
    assert np.linalg.eigvalsh(scene.matrix())[0] < -1e-3 * eigenvalues[-1]
    # One for each vertex inside, what is left is free; in the vertex form four, or all but three translations.
    ranks = 3 * len(CLOSED.vertices) - 3 + 4 * 6 if form == "vertex" else len(CLOSED.vertices) + 6
    assert np.sum(eigenvalues > 1e-10 * eigenvalues[-1]) == ranks


@pytest.mark.parametrize("form", FORMS)
def test_all_pairs_that_can_be_coupled_are_named_where_they_are_not(form):
    """A kick finds the band where the membrane starts: flat, where nothing in the plane is coupled."""
    flat = mp.TriangleMesh.flat_sheet(5, 5, 2.0)
    scene = Scene([(flat, 7.0, 0.0)], form)
    pairs = set(zip(*scene.schedule.coupled_places(scene.schedule.bound_forces.values()), strict=True))
    scene.go(scene.x + RNG.normal(0.0, 0.3, (scene.n, 3)))
    (force,) = scene.schedule.bound_forces.values()
    for positive in (False, True):
        collected = HessianBlocks(force, positive)
        scene.schedule.perform(collected, changes_state=False)
        later = {(max(pair), min(pair)) for pair in zip(*collected.blocks()[:2], strict=True)}
        assert later <= {(max(pair), min(pair)) for pair in pairs}


@pytest.mark.parametrize("form", FORMS)
def test_at_rest_the_stiffness_is_the_hessian(form):
    """A flat sheet; and a sphere that has the curvature of its corners, which are all alike."""
    scene = Scene([(mp.TriangleMesh.flat_sheet(6, 5, 2.0), 7.0, 0.0)], form)
    hessian = scene.matrix()
    np.testing.assert_allclose(scene.matrix(True), hessian, rtol=0.0, atol=1e-15 * np.abs(hessian).max())
    # Only heights matter: nothing in the plane.
    in_plane = hessian.reshape(scene.n, 3, scene.n, 3)[:, :2]
    assert np.abs(in_plane).max() <= 1e-15 * np.abs(hessian).max()
    ball = mp.TriangleMesh.icosphere(3.0, 0)
    bare = Scene([(ball, 1.0, 0.0)], form).context.get_state(energy=True).potential_energy
    # In the vertex form the area of a vertex is |dV/dx|, and the sum of x.dV/dx is 3 V.
    area = 3.0 * ball.volume / 3.0 if form == "vertex" else ball.area
    scene = Scene([(ball, 7.0, np.sqrt(bare / (2.0 * area)))], form)
    hessian = scene.matrix()
    np.testing.assert_allclose(scene.matrix(True), hessian, rtol=0.0, atol=1e-13 * np.abs(hessian).max())


def turning(scene, w):
    """Sum of (w x r)² of the parts r of residuals across normals: r = √κ g x a/|g|^(3/2)."""
    total = 0.0
    for handle, force in zip(scene.handles, scene.context.system.forces, strict=True):
        x, faces = scene.x[handle.beads], handle.mesh.faces
        pull, up = np.zeros_like(x), np.zeros_like(x)
        for k in range(3):
            v, i, j = (faces[:, (k + m) % 3] for m in range(3))
            normal = np.cross(x[i] - x[v], x[j] - x[v])
            np.add.at(up, v, normal / 6.0)
            np.add.at(pull, v, 0.5 * np.cross(normal, x[j] - x[i]) / np.linalg.norm(normal, axis=1)[:, None])
        kappa = np.broadcast_to(force.bending_modulus, len(x)).copy()
        kappa[handle.mesh.border_vertices] = 0.0
        r = np.sqrt(kappa)[:, None] * np.cross(up, pull) / np.linalg.norm(up, axis=1)[:, None] ** 1.5
        total += (np.cross(w, r) ** 2).sum()
    return total


@pytest.mark.parametrize("form", FORMS)
def test_rigid_motions(form):
    """Moved along, nothing changes. Turned about w, gradients g turn along: with x -> w x x = a, from series of what is
    turned by an angle t in t, H a = w x g and D3E[a, a] = w x (w x g) - H (w x a). Residuals do not change, but those
    of the vertex form across the normals, r, turn along: a.K a = sum (w x r)², a.(a.K'.a) = -2 (w x a).K a."""
    scene = lumpy(form)
    x, g = scene.x, scene.gradient()
    size = np.abs(scene.diagonal()).max()
    shift = np.broadcast_to([0.3, -1.0, 0.5], x.shape)
    for one in (scene.product(shift), scene.product(shift, True), scene.third(shift), scene.third(shift, True)):
        assert np.abs(one).max() <= 1e-14 * size
    w = np.array([0.4, 0.7, -0.3])
    a = np.cross(w, x)
    allowed = 1e-13 * size * np.abs(a).max()
    np.testing.assert_allclose(scene.product(a), np.cross(w, g), rtol=0.0, atol=allowed)
    stiff, change = scene.product(a, True), scene.third(a, True)
    if form == "vertex":
        assert np.vdot(a, stiff) == pytest.approx(turning(scene, w), rel=1e-10)
        assert np.vdot(a, change) == pytest.approx(-2.0 * np.vdot(np.cross(w, a), stiff), rel=1e-10)
    else:
        assert np.abs(stiff).max() <= allowed
        assert np.abs(change).max() <= allowed * np.abs(a).max()
    right = np.cross(w, np.cross(w, g)) - scene.product(np.cross(w, a))
    np.testing.assert_allclose(scene.third(a), right, rtol=0.0, atol=allowed * np.abs(a).max())


@pytest.mark.parametrize("form", FORMS)
def test_sums_are_of_the_energy(form):
    """E = r.r/2: along x, which all lengths scale with, without spontaneous curvature nothing changes."""
    scene = Scene([(CLOSED, 7.0, 0.0)], form)
    x = scene.x - CLOSED.vertices.mean(axis=0)
    size = np.abs(scene.matrix()).max()
    # Degree 0: g.x = 0, and so H x = -g, D3E[x, x] = 2 g.
    np.testing.assert_allclose(scene.product(x), -scene.gradient(), rtol=0.0, atol=1e-13 * size)
    np.testing.assert_allclose(scene.third(x), 2.0 * scene.gradient(), rtol=0.0, atol=1e-12 * size)
    assert np.abs(scene.product(x, True)).max() <= 1e-13 * size


@pytest.mark.parametrize("form", FORMS)
def test_same_bits_on_any_number_of_threads(form):
    state = RNG.bit_generator.state
    numbers = []
    for threads in (1, 2, 3):
        RNG.bit_generator.state = state
        scene = lumpy(form, threads)
        a = np.random.default_rng(3).normal(size=(scene.n, 3))
        numbers.append(scene.everything(a))
        # And again, after what was asked before.
        assert (scene.everything(a) == numbers[-1]).all()
    for other in numbers[1:]:
        assert (numbers[0] == other).all()


# Where there is no curvature ----------------------------------------------------------------------------------


def test_a_vertex_without_a_normal_in_the_projected_form():
    """Four faces folded onto each other, two by two: H = 0 is taken there, and what is left is 2 κ c² S."""
    mesh = mp.TriangleMesh([[0.0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]],
                           [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]])  # fmt: skip
    folded = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]])
    scene = Scene([(mesh, 3.0, 0.5)], "projected")
    beads = scene.handles[0].beads
    x = scene.x
    x[beads] = folded
    scene.go(x)
    a = np.zeros_like(x)
    a[beads] = RNG.normal(size=(5, 3))
    # A third of the area of the ring, whose weight does not change; found of a force that is the area alone.
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0)
    context = mp.Context(system_with(topology, mp.forces.MembraneTension(sheet, 2.0 * 3.0 * 0.5**2 / 3.0)),
                         mp.VerletIntegrator(1e-6), threads=1)  # fmt: skip

    def gradient(s):
        context.set_positions(folded + s * a[beads])
        return -context.get_state(forces=True).forces

    h = 5e-4
    steps = [(gradient(s * h) - gradient(-s * h)) / (2.0 * s * h) for s in (1.0, 2.0)]
    np.testing.assert_allclose(scene.product(a)[beads], (4.0 * steps[0] - steps[1]) / 3.0, rtol=0.0, atol=1e-9)
    assert np.isfinite(scene.everything(a)).all()


@pytest.mark.parametrize("form", FORMS)
def test_triangles_without_area(form):
    """Where nothing bends they have no derivatives; else the run ends, as of the force."""
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 2.0)
    x = np.array(mesh.vertices)
    x[:, 2] = 0.1 * x[:, 0] ** 2
    face = mesh.faces[0]
    far = np.where(np.linalg.norm(mesh.vertices - mesh.vertices[face[0]], axis=1) > 8.0, 5.0, 0.0)
    scene = Scene([(mesh.with_vertices(x), far, 0.1)], form)
    moved, beads = scene.x, scene.handles[0].beads
    moved[beads[face[1]]] = moved[beads[face[0]]]
    scene.go(moved)
    a = RNG.normal(size=moved.shape)
    assert np.isfinite(scene.everything(a)).all()
    assert np.abs(scene.product(a)).max() > 0.0
    scene = Scene([(mesh.with_vertices(x), 5.0, 0.1)], form)
    inner = mesh.faces[len(mesh.faces) // 2]
    moved[:] = scene.x
    moved[beads[inner[1]]] = moved[beads[inner[0]]]
    scene.go(moved)
    for ask in (scene.matrix, lambda: scene.matrix(True), lambda: scene.product(a), lambda: scene.third(a)):
        refuses(mp.SimulationError, "area", ask)
        scene.go(scene.x)


# Areas ----------------------------------------------------------------------------------------------------------


def matrices(mesh, make):
    """H and K of one force on one membrane, and its context."""
    topology = mp.Topology()
    topology.add_beads([[40.0, 0.0, 0.0]], mass=1.0)
    force = make(topology.add_membrane(mesh, vertex_mass=1.0))
    context = mp.Context(system_with(topology, force), mp.VerletIntegrator(1e-6), threads=1)
    return context.hessian().toarray(), context.hessian(positive=True).toarray()


@pytest.mark.parametrize("stretched", [0.7, 1.0, 1.4])
def test_stiffness_of_triangles(stretched):
    """No negative eigenvalue, stretched or not; the Hessian where each has its area; one direction for each."""
    hessian, stiffness = matrices(
        SADDLE, lambda m: mp.forces.MembraneArea(m, 3.0, SADDLE.face_areas / stretched, per_triangle=True)
    )
    eigenvalues = np.linalg.eigvalsh(stiffness)
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]
    assert np.sum(eigenvalues > 1e-10 * eigenvalues[-1]) == len(SADDLE.faces)
    apart = np.abs(hessian - stiffness).max() / eigenvalues[-1]
    assert apart <= 1e-14 if stretched == 1.0 else apart > 1e-2


def test_stiffness_of_a_tension():
    """On a flat sheet, where it acts across alone: 1/2 of the cotangents for each edge, as of Dirichlet's energy of
    heights, which is the Hessian's part across. A compression has none."""
    flat = mp.TriangleMesh.flat_sheet(5, 4, 2.0)
    hessian, stiffness = matrices(flat, lambda m: mp.forces.MembraneTension(m, 0.7))
    eigenvalues = np.linalg.eigvalsh(stiffness)
    assert eigenvalues[0] >= -1e-14 * eigenvalues[-1]
    assert np.linalg.eigvalsh(hessian)[0] < -0.1 * eigenvalues[-1]
    n = len(flat.vertices)
    expected = np.zeros((n, n))
    for face in flat.faces:
        for k in range(3):
            v, i, j = (face[(k + c) % 3] for c in range(3))
            p, q = flat.vertices[i] - flat.vertices[v], flat.vertices[j] - flat.vertices[v]
            weight = 0.5 * 0.7 * (p @ q) / np.linalg.norm(np.cross(p, q))
            expected[[i, j], [j, i]] -= weight
            expected[[i, j], [i, j]] += weight
    heights = 3 * np.arange(1, n + 1) + 2
    np.testing.assert_allclose(stiffness[np.ix_(heights, heights)], expected, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(hessian[np.ix_(heights, heights)], expected, rtol=0.0, atol=1e-14)
    stiffness[np.ix_(heights, heights)] = 0.0
    assert np.abs(stiffness).max() <= 1e-15
    assert (matrices(SADDLE, lambda m: mp.forces.MembraneTension(m, -0.7))[1] == 0.0).all()


@pytest.mark.parametrize("force", [
    lambda m: mp.forces.MembraneArea(m, 3.0), lambda m: mp.forces.MembraneVolume(m, 3.0),
])  # fmt: skip
def test_forces_that_couple_all_vertices_have_full_hessians_of_small_meshes_alone(force):
    """Of every pair of vertices a block, by one part of rank one; beyond 1 500 vertices it is refused, by name."""
    hessian, stiffness = matrices(CLOSED, force)
    n = len(CLOSED.vertices)
    assert (np.abs(hessian[3:, 3:]).reshape(n, 3, n, 3).max(axis=(1, 3)) > 0.0).all()
    assert np.linalg.matrix_rank(stiffness, tol=1e-10 * np.abs(stiffness).max()) >= 1
    refuses(mp.ParameterError, r"couples all 2562 vertices .* give forces= without it", matrices,
            mp.TriangleMesh.icosphere(3.0, 4), force)  # fmt: skip
