"""Forces of a membrane: bending in its forms, area, tension, volume.

Every energy is written a second time in this file, by other formulas than the kernels use (cotangents,
arcsines, determinants), and every force is checked against differences of those.
"""

import copy
import functools
import json

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.testing import ForceCase, check_force

FORMS = ["vertex", "projected", "dihedral"]


# The energies, independently --------------------------------------------------------------------------------


class Rings:
    """Tables of a triangulation, by dictionaries."""

    def __init__(self, faces):
        self.faces = np.array(faces, dtype=int)
        third = {}
        for f in self.faces.tolist():
            for k in range(3):
                third[f[k], f[(k + 1) % 3]] = f[(k + 2) % 3]
        self.hinges = np.array([(i, j, k, third[j, i]) for (i, j), k in third.items() if i < j and (j, i) in third])
        self.border = sorted({v for i, j in third if (j, i) not in third for v in (i, j)})


def ring_areas(x, faces):
    """Area of each face, and a third of the area round each vertex."""
    a, b, c = x[faces].transpose(1, 0, 2)
    area = 0.5 * np.linalg.norm(np.cross(a - b, c - b), axis=1)
    thirds = np.zeros(len(x))
    np.add.at(thirds, faces.ravel(), np.repeat(area / 3.0, 3))
    return area, thirds


def gradients(x, rings):
    """∇A by the cotangent formula, and ∇V about the middle of the membrane."""
    grad_a, grad_v = np.zeros_like(x), np.zeros_like(x)
    centred = x - x.mean(axis=0)
    for k in range(3):
        i, j, apex = (rings.faces[:, (k + c) % 3] for c in range(3))
        u, w = x[i] - x[apex], x[j] - x[apex]
        cot = np.sum(u * w, axis=1) / np.linalg.norm(np.cross(u, w), axis=1)
        half = 0.5 * cot[:, None] * (x[i] - x[j])
        np.add.at(grad_a, i, half)
        np.add.at(grad_a, j, -half)
        np.add.at(grad_v, apex, np.cross(centred[i], centred[j]) / 6.0)
    return grad_a, grad_v


def vertex_terms(x, rings, c0):
    """|∇A - 2c ∇V|²/2|∇V| of each vertex."""
    grad_a, grad_v = gradients(x, rings)
    excess = grad_a - 2.0 * np.broadcast_to(c0, len(x))[:, None] * grad_v
    return 0.5 * np.sum(excess * excess, axis=1) / np.linalg.norm(grad_v, axis=1)


def projected_curvature(x, rings):
    """½ ∇A·∇V/|∇V|²."""
    grad_a, grad_v = gradients(x, rings)
    return 0.5 * np.sum(grad_a * grad_v, axis=1) / np.sum(grad_v * grad_v, axis=1)


def dihedral_curvature(x, rings):
    """Σ lφ/(4 A_v), φ as twice the arcsine of half the chord between unit normals."""
    i, j, k, m = rings.hinges.T
    n1 = np.cross(x[j] - x[i], x[k] - x[i])
    n2 = np.cross(x[i] - x[j], x[m] - x[j])
    n1 /= np.linalg.norm(n1, axis=1)[:, None]
    n2 /= np.linalg.norm(n2, axis=1)[:, None]
    phi = 2.0 * np.arcsin(0.5 * np.linalg.norm(n1 - n2, axis=1))
    # Convex: the other face's third vertex lies below this face.
    phi *= -np.sign(np.sum(n1 * (x[m] - x[i]), axis=1))
    turn = np.zeros(len(x))
    for end in (i, j):
        np.add.at(turn, end, np.linalg.norm(x[j] - x[i], axis=1) * phi)
    return turn / (4.0 * ring_areas(x, rings.faces)[1])


CURVATURE = {"projected": projected_curvature, "dihedral": dihedral_curvature}


def bending_energy(x, rings, kappa, c0, form):
    inside = np.ones(len(x), bool)
    inside[rings.border] = False
    with np.errstate(invalid="ignore", divide="ignore"):
        if form == "vertex":
            terms = kappa * vertex_terms(x, rings, c0)
        else:
            terms = 2.0 * kappa * (CURVATURE[form](x, rings) - c0) ** 2 * ring_areas(x, rings.faces)[1]
    return terms[inside].sum()


def volume_of(x, faces):
    return np.linalg.det((x - x.mean(axis=0))[faces]).sum() / 6.0


# Scenes -----------------------------------------------------------------------------------------------------


def shuffled(mesh, noise, seed):
    """The mesh with vertices moved, vertices and faces in no order, and faces starting at any corner."""
    rng = np.random.default_rng(seed)
    x = mesh.vertices + rng.normal(0.0, noise, mesh.vertices.shape)
    order = rng.permutation(len(x))
    faces = np.argsort(order)[mesh.faces]
    faces = np.array([np.roll(f, rng.integers(3)) for f in faces])
    return mp.TriangleMesh(x[order], rng.permutation(faces))


def curved_patch():
    sheet = mp.TriangleMesh.flat_sheet(6, 7, 4.0)
    x, y = sheet.vertices[:, 0], sheet.vertices[:, 1]
    z = 0.03 * x**2 - 0.02 * y**2 + 1.5 * np.sin(0.3 * x + 0.2 * y)
    return sheet.with_vertices(np.column_stack([x, y, z]))


@functools.cache
def meshes():
    return {
        "sphere": shuffled(mp.TriangleMesh.icosphere(10.0, 1), 0.5, 1),
        "torus": shuffled(mp.TriangleMesh.torus(14.0, 6.0, 9, 6), 0.4, 2),
        "patch": shuffled(curved_patch(), 0.35, 3),
        "tube": shuffled(mp.TriangleMesh.cylinder(8.0, 24.0, 8, 5), 0.4, 4),
    }


def scene(mesh):
    """The membrane among others: neither its beads nor its faces are the first, and points live in it."""
    rng = np.random.default_rng(5)
    topology = mp.Topology()
    topology.add_beads(rng.normal(0.0, 30.0, (3, 3)), mass=1.0)
    ball = mp.TriangleMesh.icosphere(3.0, 1).translated([40.0, 0.0, 0.0])
    other = topology.add_membrane(ball, vertex_mass=1.0)
    topology.add_intriangle_points(other, 4, mass=1.0, seed=1)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    topology.add_intriangle_points(membrane, 5, mass=1.0, seed=2)
    topology.add_balls(rng.normal(0.0, 30.0, (2, 3)), radius=1.0, mass=1.0)
    return topology, membrane


def context_of(mesh, make, threads=1):
    """A Context with one force on a membrane alone, and the force."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    system = mp.System(topology)
    force = system.add_force(make(membrane))
    return mp.Context(system, mp.VerletIntegrator(1e-3), threads=threads), force


def evaluate(mesh, make, positions=None, threads=1):
    """Energy and forces of one force on a membrane alone."""
    context, _ = context_of(mesh, make, threads)
    if positions is not None:
        context.set_positions(positions)
    state = context.get_state(forces=True, energy=True)
    return state.potential_energy, state.forces


def bending(kappa=1.0, c0=0.0, form="vertex"):
    how = {"projected": True} if form == "projected" else {"discretization": form}
    return lambda membrane: mp.forces.MembraneBending(membrane, kappa, c0, **how)


# The contract, on untidy meshes -----------------------------------------------------------------------------


def case(name, make, energy):
    mesh = meshes()[name]

    def build():
        topology, membrane = scene(mesh)
        return topology, make(membrane)

    beads = scene(mesh)[1].beads
    return ForceCase(name, build, lambda x: energy(x[beads]), 3.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["sphere", "torus", "patch", "tube"])
def test_bending_keeps_the_contract(name, form):
    mesh = meshes()[name]
    rng = np.random.default_rng(6)
    kappa = rng.uniform(10.0, 90.0, len(mesh.vertices))
    kappa[[3, 8]] = 0.0
    c0 = rng.uniform(-0.2, 0.3, len(mesh.vertices))
    rings = Rings(mesh.faces)
    assert bool(rings.border) == (name in ("patch", "tube"))
    check_force(case(name, bending(kappa, c0, form), lambda x: bending_energy(x, rings, kappa, c0, form)))


@pytest.mark.parametrize("name", ["sphere", "patch"])
def test_areas_keep_the_contract(name):
    mesh = meshes()[name]
    rng = np.random.default_rng(7)
    k = rng.uniform(1.0, 3.0, len(mesh.faces))
    a0 = rng.uniform(0.7, 1.4, len(mesh.faces)) * mesh.face_areas

    def per_triangle(x):
        return np.sum(0.5 * k * (ring_areas(x, mesh.faces)[0] - a0) ** 2 / a0)

    def total(x):
        return 0.5 * 7.0 * (ring_areas(x, mesh.faces)[0].sum() - 800.0) ** 2 / 800.0

    check_force(case(name, lambda m: mp.forces.MembraneArea(m, k, a0, per_triangle=True), per_triangle))
    check_force(case(name, lambda m: mp.forces.MembraneArea(m, 7.0, 800.0), total))

    def reservoir(x):
        return -0.3 * ring_areas(x, mesh.faces)[0].sum()

    check_force(case(name, lambda m: mp.forces.MembraneTension(m, -0.3), reservoir))


@pytest.mark.parametrize("name", ["sphere", "torus"])
def test_volume_keeps_the_contract(name):
    mesh = meshes()[name]

    def energy(x):
        return 0.5 * 0.8 * (volume_of(x, mesh.faces) - 3000.0) ** 2 / 3000.0

    check_force(case(name, lambda m: mp.forces.MembraneVolume(m, 0.8, 3000.0), energy))


ALL = {
    "vertex": bending(82.0, 0.01, "vertex"),
    "projected": bending(82.0, 0.01, "projected"),
    "dihedral": bending(82.0, 0.01, "dihedral"),
    "area": lambda m: mp.forces.MembraneArea(m, 200.0, 1200.0),
    "triangles": lambda m: mp.forces.MembraneArea(m, 200.0, 0.2, per_triangle=True),
    "tension": lambda m: mp.forces.MembraneTension(m, 0.02),
    "volume": lambda m: mp.forces.MembraneVolume(m, 0.8, 4000.0),
}


@pytest.mark.parametrize("force", ALL)
def test_energy_and_forces_turn_and_move_with_the_membrane(force):
    mesh = meshes()["torus"]
    rotation = np.linalg.qr(np.random.default_rng(9).normal(size=(3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))
    energy, forces = evaluate(mesh, ALL[force])
    turned = evaluate(mesh, ALL[force], mesh.vertices @ rotation.T + [70.0, -300.0, 11.0])
    assert turned[0] == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(turned[1], forces @ rotation.T, atol=1e-10 * np.abs(forces).max())


def test_a_mesh_numbered_otherwise_feels_the_same():
    mesh = mp.TriangleMesh.icosphere(10.0, 2)
    rng = np.random.default_rng(10)
    mesh = mesh.with_vertices(mesh.vertices + rng.normal(0.0, 0.2, mesh.vertices.shape))
    order = rng.permutation(len(mesh.vertices))
    other = mp.TriangleMesh(mesh.vertices[order], rng.permutation(np.argsort(order)[mesh.faces]))
    for make in ALL.values():
        energy, forces = evaluate(mesh, make)
        again = evaluate(other, make)
        assert again[0] == pytest.approx(energy, rel=1e-12)
        np.testing.assert_allclose(again[1], forces[order], atol=1e-11 * np.abs(forces).max())


# What is known of spheres, tubes and sheets -----------------------------------------------------------------


@pytest.mark.parametrize(("subdivisions", "energy", "rms_force"), [(4, 25.1447, 0.0795268), (6, 25.1335, 0.0199130)])
def test_dihedral_form_gives_the_figures_of_pymem3dg_and_trimem(subdivisions, energy, rms_force):
    e, f = evaluate(mp.TriangleMesh.icosphere(1.0, subdivisions), bending(form="dihedral"))
    assert e == pytest.approx(energy, abs=5.1e-5)
    assert np.sqrt(np.sum(f * f, axis=1).mean()) == pytest.approx(rms_force, abs=5.1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_energy_of_a_sphere_tends_to_8_pi_kappa_with_second_order(form):
    kappa = 82.0
    meshes = [mp.TriangleMesh.icosphere(500.0, s) for s in (2, 3, 4, 5)]
    error = [evaluate(m, bending(kappa, form=form))[0] / (8.0 * np.pi * kappa) - 1.0 for m in meshes]
    # The vertex form comes from below, and from closer by; the others from above.
    error = np.array(error) * (-1.0 if form == "vertex" else 1.0)
    assert 0.0 < error[-1] < 3e-4
    np.testing.assert_allclose(np.log2(np.divide(error[:-1], error[1:])), 2.0, atol=0.1)


# The side that normals are on is what is tested.
@pytest.mark.filterwarnings("ignore:.*turned inside out:medyanpy.errors.MeshQualityWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("c0_radius", [0.3, 1.0, -1.0, 2.0])
def test_spontaneous_curvature_has_the_sign_of_the_normals(form, c0_radius):
    radius, kappa = 500.0, 82.0
    expected = 8.0 * np.pi * kappa * (1.0 - c0_radius) ** 2
    errors = []
    for subdivisions in (3, 4):
        mesh = mp.TriangleMesh.icosphere(radius, subdivisions)
        energy = evaluate(mesh, bending(kappa, c0_radius / radius, form))[0]
        errors.append(energy - expected)
    unit = 8.0 * np.pi * kappa
    if form != "vertex":
        assert energy == pytest.approx(expected, rel=4e-3, abs=2e-4 * unit)
    # The error is of second order in edges: both meshes together have 1.5e-5 of the energy of no curvature c.
    assert abs((4.0 * errors[1] - errors[0]) / 3.0) < 1.5e-5 * (1.0 + c0_radius**2) * unit
    inside_out = mp.TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])
    again = evaluate(inside_out, bending(kappa, -c0_radius / radius, form))[0]
    assert again == pytest.approx(energy, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_total_mean_curvature_of_a_sphere_is_4_pi_r(form):
    radius, kappa, c0 = 20.0, 3.0, 0.01
    found = []
    for subdivisions in (3, 4):
        mesh = mp.TriangleMesh.icosphere(radius, subdivisions)
        difference = evaluate(mesh, bending(kappa, -c0, form))[0] - evaluate(mesh, bending(kappa, c0, form))[0]
        # 2κ[(H + c)² - (H - c)²] = 8κ c H
        found.append(difference / (8.0 * kappa * c0) / (4.0 * np.pi * radius))
    assert found[1] == pytest.approx(1.0, rel=1.3e-3 if form == "vertex" else 1e-3)
    # The error is of second order in edges.
    assert (4.0 * found[1] - found[0]) / 3.0 == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("form", FORMS)
def test_energy_of_a_tube_is_pi_kappa_length_over_radius(form):
    radius, length, bands, kappa = 10.0, 60.0, 50, 2.0
    mesh = mp.TriangleMesh.cylinder(radius, length, 64, bands)
    # The two rings on the borders carry no energy; together they are one band.
    expected = np.pi * kappa * length / radius * (bands - 1) / bands
    energy, forces = evaluate(mesh, bending(kappa, form=form))
    assert energy == pytest.approx(expected, rel=3e-3)
    border = np.concatenate(mesh.borders)
    assert np.abs(forces[border]).max() > 1e-3 * np.abs(forces).max()


@pytest.mark.parametrize("form", FORMS)
def test_a_flat_sheet_has_no_curvature(form):
    mesh = mp.TriangleMesh.flat_sheet(7, 8, 3.0)
    energy, forces = evaluate(mesh, bending(50.0, form=form))
    assert energy < 1e-25
    assert np.abs(forces).max() < 1e-12
    # With spontaneous curvature it costs 2κ c² per area, borders left out.
    inside = np.ones(len(mesh.vertices), bool)
    inside[mesh.borders[0]] = False
    expected = 2.0 * 50.0 * 0.1**2 * ring_areas(mesh.vertices, mesh.faces)[1][inside].sum()
    assert evaluate(mesh, bending(50.0, 0.1, form))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_membrane_of_border_vertices_alone_has_no_bending_energy(form):
    sheet = mp.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]], [[0, 1, 2], [1, 3, 2]])
    energy, forces = evaluate(sheet, bending(50.0, 0.3, form))
    assert energy == 0.0
    assert (forces == 0.0).all()


def test_areas_and_volume_are_those_of_the_mesh():
    mesh = meshes()["torus"]
    energy = evaluate(mesh, lambda m: mp.forces.MembraneTension(m, 1.0))[0]
    assert energy == pytest.approx(mesh.area, rel=1e-13)
    # ½k(Q - 1)² at Q0 = 1.
    energy = evaluate(mesh, lambda m: mp.forces.MembraneVolume(m, 2.0, 1.0))[0]
    assert 1.0 + energy**0.5 == pytest.approx(mesh.volume, rel=1e-13)
    energy = evaluate(mesh, lambda m: mp.forces.MembraneArea(m, 2.0, 1.0))[0]
    assert 1.0 + energy**0.5 == pytest.approx(mesh.area, rel=1e-13)
    energy = evaluate(mesh, lambda m: mp.forces.MembraneArea(m, 2.0, 1.0, per_triangle=True))[0]
    assert energy == pytest.approx(np.sum((mesh.face_areas - 1.0) ** 2), rel=1e-13)


def test_area_and_volume_are_relaxed_at_what_the_mesh_starts_with():
    mesh = meshes()["sphere"]
    for make in (
        lambda m: mp.forces.MembraneArea(m, 200.0),
        lambda m: mp.forces.MembraneArea(m, 200.0, per_triangle=True),
        lambda m: mp.forces.MembraneVolume(m, 200.0),
    ):
        energy, forces = evaluate(mesh, make)
        assert energy < 1e-22
        assert np.abs(forces).max() < 1e-10


def test_pressure_and_tension_of_a_sphere():
    mesh = mp.TriangleMesh.icosphere(10.0, 3)
    # Less volume than wanted: pushed outward with p = -k (V - V0)/V0, p times the projected area in all.
    forces = evaluate(mesh, lambda m: mp.forces.MembraneVolume(m, 0.8, 2.0 * mesh.volume))[1]
    assert np.sum(forces * mesh.vertices) == pytest.approx(0.8 * 0.5 * 3.0 * mesh.volume, rel=1e-12)
    # x·∇A = 2A: positive tension pulls inward.
    forces = evaluate(mesh, lambda m: mp.forces.MembraneTension(m, 0.02))[1]
    assert np.sum(forces * mesh.vertices) == pytest.approx(-0.02 * 2.0 * mesh.area, rel=1e-12)


def test_volume_keeps_its_digits_far_from_the_origin():
    near = mp.TriangleMesh.icosphere(10.0, 3)
    # Coordinates on a coarse grid, so that shifting them by whole numbers loses nothing.
    near = near.with_vertices(np.round(near.vertices * 1024.0) / 1024.0)

    def make(membrane):
        return mp.forces.MembraneVolume(membrane, 1.0, 1.1 * near.volume)

    energy, forces = evaluate(near, make)
    far = evaluate(near, make, near.vertices + np.array([2.0**30, -(2.0**31), 2.0**29]))
    assert far[0] == energy
    assert (far[1] == forces).all()


# Changing numbers, degenerate geometry, bad input -----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_a_triangle_that_lost_its_area_ends_the_run(form):
    mesh = mp.TriangleMesh.icosphere(10.0, 1)
    x = mesh.vertices.copy()
    a, b = mesh.faces[17][:2]
    x[a] = x[b]
    with pytest.raises(mp.SimulationError, match="lost its area") as caught:
        evaluate(mesh, bending(form=form), x)
    assert caught.value.force == "MembraneBending"
    assert caught.value.bead in {v for f in mesh.faces.tolist() if a in f and b in f for v in f}
    # Where nothing resists bending, nothing is wrong with it.
    stiff = np.ones(len(x))
    stiff[np.unique(mesh.faces[[a in f and b in f for f in mesh.faces.tolist()]])] = 0.0
    energy, forces = evaluate(mesh, bending(stiff, form=form), x)
    assert np.isfinite(energy)
    assert np.isfinite(forces).all()


def test_a_triangle_without_area_pulls_at_nothing():
    mesh = mp.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    flat = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]
    for make in (
        lambda m: mp.forces.MembraneArea(m, 2.0, 0.25),
        lambda m: mp.forces.MembraneArea(m, 2.0, 0.25, per_triangle=True),
    ):
        energy, forces = evaluate(mesh, make, flat)
        assert np.isfinite(energy)
        assert np.abs(forces[0]).max() > 0.1
        assert (forces[3] == 0.0).all()


# Four faces round vertex 0, folded onto each other two by two: ∇V is exactly zero.
PYRAMID = mp.TriangleMesh([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]],
                          [[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]])  # fmt: skip
FOLDED = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]])


def test_a_vertex_whose_normals_cancel_has_no_curvature_in_the_projected_form():
    energy, forces = evaluate(PYRAMID, bending(3.0, 0.5, "projected"), FOLDED)
    assert energy == pytest.approx(2.0 * 3.0 * 0.5**2 * 4 * 0.5 / 3.0, rel=1e-14)
    # What is left is 2κ c² dS: the four corners of the ring are pulled in.
    np.testing.assert_allclose(forces[1], [-0.5, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-14)


def test_the_vertex_form_has_no_bound_where_normals_cancel():
    """The closer, the more: a pair of faces opened by an angle t has |∇V| ~ t, and an energy ~ 1/t, whatever c. At 0
    the run ends with an error."""
    for c0 in (0.0, 0.5, -0.5):
        found = []
        for t in (1e-2, 1e-3, 1e-4):
            lifted = FOLDED + t * np.array([[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]])
            found.append(evaluate(PYRAMID, bending(3.0, c0), lifted)[0] * t)
        assert found[1] == pytest.approx(found[2], rel=2e-3)
        assert found[2] > 1.0
    with pytest.raises(mp.SimulationError):
        context_of(PYRAMID.with_vertices(FOLDED), bending(3.0))[0].step(1)


def test_a_crumpled_star_has_an_energy():
    """Six triangles whose ring goes up and down, with the vertex off the middle: the area has its slope across the mean
    normal, and the flatness is 0.52. The projected form has next to no energy there."""
    turn = np.arange(6) * np.pi / 3.0
    ring = np.column_stack([np.cos(turn), np.sin(turn), np.where(np.arange(6) % 2, 0.8, -0.8)])
    mesh = mp.TriangleMesh(np.vstack([[0.3, 0.0, 0.0], ring]), [[0, 1 + k, 1 + (k + 1) % 6] for k in range(6)])
    energies = {form: evaluate(mesh, bending(20.0, form=form))[0] for form in FORMS}
    assert energies["vertex"] > 6.0
    assert energies["projected"] < 0.03


def test_documents_and_pickles_keep_the_form():
    topology = mp.Topology()
    membrane = topology.add_membrane(CLOSED, vertex_mass=1.0)
    for how in ({}, {"projected": True}, {"discretization": "dihedral"}):
        system = system_with(topology, mp.forces.MembraneBending(membrane, 3.0, 0.1, **how))
        text = mp.serialize(system)
        arguments = json.loads(text)["content"]["forces"][0]["arguments"]
        assert arguments["projected"] == ("projected" in how)
        assert arguments["discretization"] == how.get("discretization", "vertex")
        for again in (mp.deserialize(text).forces[0], copy.deepcopy(system).forces[0]):
            assert (again.discretization, again.projected) == (arguments["discretization"], "projected" in how)
    with pytest.raises(mp.ParameterError, match=r'projected = True but .*dihedral., not "vertex"'):
        mp.forces.MembraneBending(membrane, 3.0, discretization="dihedral", projected=True)


CLOSED = mp.TriangleMesh.icosphere(10.0, 1)
OPEN = mp.TriangleMesh.flat_sheet(4, 4, 1.0)
INWARD = mp.TriangleMesh(CLOSED.vertices, CLOSED.faces[:, ::-1])
BENDING, AREA = mp.forces.MembraneBending, mp.forces.MembraneArea
TENSION, VOLUME = mp.forces.MembraneTension, mp.forces.MembraneVolume


@pytest.mark.parametrize(("force", "mesh", "arguments", "message"), [
    (BENDING, CLOSED, {"bending_modulus": 1.0, "discretization": "cotan"}, "discretization = 'cotan' but must be"),
    (BENDING, CLOSED, {"bending_modulus": 1.0, "group": 32}, "group = 32"),
    (VOLUME, INWARD, {"volume_modulus": 2.0}, "its normals look inward"),
])  # fmt: skip
def test_bad_arguments_are_refused(force, mesh, arguments, message):
    membrane = mp.Topology().add_membrane(mesh, vertex_mass=1.0)
    refuses(mp.ParameterError, message, force, membrane, **arguments)


def test_an_open_membrane_has_no_volume():
    membrane = mp.Topology().add_membrane(OPEN, vertex_mass=1.0)
    refuses(mp.TopologyError, "has 1 border, so it encloses no volume", VOLUME, membrane, 1.0)


@pytest.mark.parametrize("force", [BENDING, AREA, TENSION, VOLUME])
def test_anything_but_a_membrane_is_refused(force):
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0]], mass=1.0)
    for wrong in (beads, CLOSED, None):
        refuses(mp.TopologyError, "must be the handle of a membrane", force, wrong, 1.0)
    membrane = mp.Topology().add_membrane(CLOSED, vertex_mass=1.0)
    refuses(mp.TopologyError, "another topology", mp.System(topology).add_force, force(membrane, 1.0))
