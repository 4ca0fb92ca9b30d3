"""What shapes of membranes are known for: energies of spheres, tori, caps and lines in closed form, and where one shape
takes over from another.

Energies of meshes tend to those of smooth surfaces with the square of the edge length, unless a test says otherwise.
Forces against differences of independent energies are in test_contract.py.
"""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy.forces._stiffness import Start

FORMS = ["vertex", "dihedral"]
F = mp.forces


def evaluated(mesh, *makes, **options):
    """Energies, each by itself, and the forces of all on the vertices."""
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0, **options)
    system = mp.System(topology)
    for make in makes:
        system.add_force(make(membrane))
    state = mp.Context(system, mp.VerletIntegrator(1e-12)).get_state(energy=True, forces=True)
    return list(state.energies.values()), state.forces


def order(errors):
    """Of errors on meshes, each with edges half as long as the one before."""
    return np.log2(np.divide(errors[:-1], errors[1:]))


# Bending --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_the_torus_of_clifford_has_four_pi_squared_kappa(form):
    errors = []
    for n in (40, 80, 160):
        # Triangles are about equilateral in the mean: 2π√2/n along the one, 2π/m along the other way.
        mesh = mp.TriangleMesh.torus(np.sqrt(2.0), 1.0, n, round(0.8 * n))
        energy = evaluated(mesh, lambda m: F.MembraneBending(m, 3.0, 0.0, form))[0][0]
        errors.append(energy / (4.0 * np.pi**2 * 3.0) - 1.0)
    assert abs(errors[-1]) < 2e-3
    assert order(np.abs(errors)) == pytest.approx(2.0, abs=0.3)


def test_the_torus_of_clifford_is_the_lowest_of_all_circular_ones():
    """Willmore: the energy over the ratio of radii c is 2π²κ c²/√(c² - 1), with its minimum at √2."""
    energies = []
    for ratio in (1.3, np.sqrt(2.0), 1.55):
        mesh = mp.TriangleMesh.torus(ratio, 1.0, 80, 64)
        energies.append(evaluated(mesh, lambda m: F.MembraneBending(m, 1.0))[0][0])
        exact = 2.0 * np.pi**2 * ratio**2 / np.sqrt(ratio**2 - 1.0)
        assert energies[-1] == pytest.approx(exact, rel=5e-3)
    assert energies[1] == min(energies)


# Gaussian curvature ---------------------------------------------------------------------------------------------------


def gaussian(modulus=-70.0):
    return lambda m: F.MembraneGaussianCurvature(m, modulus)


def untidy(mesh, by=0.1, seed=3):
    spread = by * float(mesh.edge_lengths.mean())
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(seed).normal(0.0, spread, mesh.vertices.shape))


@pytest.mark.parametrize(
    ("mesh", "genus"), [(mp.TriangleMesh.icosphere(5.0, 2), 0), (mp.TriangleMesh.torus(6.0, 2.0, 20, 10), 1)]
)
def test_with_one_modulus_the_energy_of_a_closed_membrane_is_that_of_its_genus(mesh, genus):
    energy, forces = evaluated(untidy(mesh), gaussian())
    assert energy[0] == pytest.approx(-70.0 * 4.0 * np.pi * (1 - genus), abs=1e-11 * 70.0 * len(mesh.vertices))
    assert (forces == 0.0).all()


def test_border_of_an_open_membrane_has_the_rest():
    """Gauss and Bonnet: 2π - Σ (π - angles) over the border of a patch, whatever it is like inside."""
    mesh = untidy(mp.TriangleMesh.flat_sheet(7, 9, 4.0))
    x = mesh.vertices
    turned = 0.0
    for i in range(3):
        at = mesh.border_vertices[mesh.faces[:, i]]
        p, q = (x[mesh.faces[at, (i + k) % 3]] - x[mesh.faces[at, i]] for k in (1, 2))
        cosine = np.sum(p * q, axis=1) / np.linalg.norm(p, axis=1) / np.linalg.norm(q, axis=1)
        turned -= np.arccos(cosine).sum()
    turned += np.pi * np.count_nonzero(mesh.border_vertices)
    energy, forces = evaluated(mesh, gaussian())
    assert energy[0] == pytest.approx(-70.0 * (2.0 * np.pi - turned), rel=1e-11)
    # What is two edges inside feels nothing.
    near = mesh.border_vertices.copy()
    near[mesh.faces[near[mesh.faces].any(axis=1)]] = True
    assert np.abs(forces[~near]).max() < 1e-12 * np.abs(forces).max()
    assert np.abs(forces[mesh.border_vertices]).max() > 1.0


def test_two_halves_of_a_sphere_have_half_each():
    mesh = mp.TriangleMesh.icosphere(9.0, 4)
    up = mesh.vertices[:, 2]
    energy = evaluated(mesh, gaussian(np.where(up > 0.0, 30.0, np.where(up < 0.0, -10.0, 10.0))))[0][0]
    assert energy == pytest.approx(2.0 * np.pi * (30.0 - 10.0), rel=1e-3)


# Difference in area ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_area_difference_of_a_sphere(form):
    """8π²κ_r (1 - Δa0)², Δa0 = ΔA0/(8πDR), whatever the radius and the thickness."""
    errors = []
    for s in (2, 3, 4):
        mesh = mp.TriangleMesh.icosphere(50.0, s)
        rest = 0.7 * 8.0 * np.pi * 3.0 * 50.0
        energy = evaluated(mesh, lambda m, r=rest: F.MembraneAreaDifference(m, 20.0, 3.0, r, discretization=form))[0][0]
        errors.append(energy / (8.0 * np.pi**2 * 20.0 * 0.3**2) - 1.0)
    assert abs(errors[-1]) < 0.01
    assert order(np.abs(errors)) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize("form", FORMS)
def test_a_membrane_starts_with_the_area_difference_that_it_has(form):
    mesh = untidy(mp.TriangleMesh.icosphere(50.0, 2))
    energy, forces = evaluated(mesh, lambda m: F.MembraneAreaDifference(m, 20.0, 3.0, discretization=form))
    assert energy[0] < 1e-20
    assert np.abs(forces).max() < 1e-9


def test_the_thickness_is_in_the_area_difference_alone():
    mesh = untidy(mp.TriangleMesh.icosphere(50.0, 2))
    of = [evaluated(mesh, lambda m, d=d: F.MembraneAreaDifference(m, 20.0, d, 900.0 * d)) for d in (1.0, 4.0)]
    assert of[0][0][0] == pytest.approx(of[1][0][0], rel=1e-13)
    assert np.abs(of[0][1] - of[1][1]).max() < 1e-12 * np.abs(of[0][1]).max()


def test_a_membrane_asks_for_the_side_on_which_it_has_too_little():
    """With ΔA0 larger than that of a sphere it pushes where it bulges: on a prolate, its ends."""
    mesh = mp.TriangleMesh.icosphere(10.0, 3)
    mesh = mesh.with_vertices(mesh.vertices * [0.7, 0.7, 2.0])
    forces = evaluated(mesh, lambda m: F.MembraneAreaDifference(m, 20.0, 1.0, 1000.0))[1]
    tip = np.argmax(mesh.vertices[:, 2])
    assert forces[tip, 2] > 0.0


# Pressure -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [2, 4])
def test_laplace(s):
    """A sphere of tension σ is held by p = 2σ/R: no work is done as it grows, and the forces at each vertex, which are
    as large as edges of the mesh make them, fall with these."""
    mesh = mp.TriangleMesh.icosphere(20.0, s)
    radius = 3.0 * mesh.volume / mesh.area
    both = lambda m: F.MembraneTension(m, 0.3), lambda m: F.MembranePressure(m, 2.0 * 0.3 / radius)
    forces = evaluated(mesh, *both)[1]
    of_tension = evaluated(mesh, both[0])[1]
    assert abs(np.sum(forces * mesh.vertices)) < 1e-12 * np.sum(np.abs(of_tension * mesh.vertices))
    assert np.abs(forces).max() < {2: 0.2, 4: 0.1}[s] * np.abs(of_tension).max()


def test_a_vesicle_in_a_solution_swells_until_its_tension_holds_the_pressure():
    """kT (N/V - c) = 2σ/R at the end, from a start with another volume."""
    mesh = mp.TriangleMesh.icosphere(20.0, 2)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    system = system_with(topology, F.MembraneTension(membrane, 0.5),
                         F.MembraneOsmoticPressure(membrane, 1.5 * 0.01 * mesh.volume, 0.01, kT=4.0))  # fmt: skip
    simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    assert simulation.minimize_energy(tolerance=1e-5).converged
    end = mesh.with_vertices(simulation.context.get_state(positions=True).positions)
    pressure = 4.0 * (1.5 * 0.01 * mesh.volume / end.volume - 0.01)
    assert end.volume < 1.35 * mesh.volume
    assert pressure == pytest.approx(2.0 * 0.5 * end.area / (3.0 * end.volume), rel=1e-4)


def test_osmotic_pressure_is_zero_between_equal_concentrations():
    mesh = mp.TriangleMesh.icosphere(20.0, 2)
    energy, forces = evaluated(mesh, lambda m: F.MembraneOsmoticPressure(m, 0.2 * mesh.volume, 0.2, temperature=300.0))
    assert abs(energy[0]) < 1e-9
    assert np.abs(forces).max() < 1e-10


def test_a_membrane_that_is_turned_inside_out_ends_the_run():
    mesh = mp.TriangleMesh.icosphere(20.0, 1)
    topology = mp.Topology()
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    context = mp.Context(system_with(topology, F.MembraneOsmoticPressure(membrane, 100.0, 0.2, kT=4.0)),
                         mp.VerletIntegrator(1e-9))  # fmt: skip
    context.set_positions(-mesh.vertices)
    refuses(mp.SimulationError, "MembraneOsmoticPressure", context.step, 1)


# Lines ----------------------------------------------------------------------------------------------------------------


def test_a_line_along_rows_of_triangles_has_its_length():
    """Halfway between two rows of a sheet; and the border has that of its edges."""
    mesh = mp.TriangleMesh.flat_sheet(6, 9, 2.0)
    rows = np.unique(np.round(mesh.vertices[:, 1], 9))
    above = mesh.vertices[:, 1] > 0.5 * (rows[3] + rows[4])
    energy = evaluated(mesh, lambda m: F.MembraneLineTension(m, above, 3.0))[0][0]
    ends = np.sort(mesh.vertices[np.isclose(mesh.vertices[:, 1], rows[3]), 0])
    other = np.sort(mesh.vertices[np.isclose(mesh.vertices[:, 1], rows[4]), 0])
    length = 0.5 * (ends[-1] + other[-1]) - 0.5 * (ends[0] + other[0])
    assert energy == pytest.approx(3.0 * length, rel=1e-12)
    loop = mesh.vertices[np.concatenate(mesh.borders)]
    around = np.linalg.norm(loop - np.roll(loop, -1, axis=0), axis=1).sum()
    assert evaluated(mesh, lambda m: F.BorderTension(m, 3.0))[0][0] == pytest.approx(3.0 * around, rel=1e-13)


def test_a_line_that_is_spread_out_tends_to_its_length():
    """A circle of latitude on a sphere, spread over a tenth of the radius; in any direction. The mean of the circles
    over which it is spread is by quadrature."""
    pole = np.array([0.36, 0.48, 0.8])
    z = (np.arange(4000) + 0.5) / 4000.0
    # tanh profile: φ = (1 + tanh(...))/2, so that each z has the weight dφ.
    heights = 0.4 + 0.1 * np.arctanh(2.0 * z - 1.0)
    exact = np.mean(2.0 * np.pi * np.sqrt(np.maximum(1.0 - heights**2, 0.0)))
    errors = []
    for s in (3, 4, 5):
        mesh = mp.TriangleMesh.icosphere(1.0, s)
        phases = 0.5 * (1.0 + np.tanh((mesh.vertices @ pole - 0.4) / 0.1))
        errors.append(evaluated(mesh, lambda m, p=phases: F.MembraneLineTension(m, p, 1.0))[0][0] / exact - 1.0)
    assert abs(errors[-1]) < 2e-3
    assert order(np.abs(errors)) == pytest.approx(2.0, abs=0.3)


def test_a_sharp_line_across_a_mesh_is_a_zigzag():
    """1 to 2/√3 times as long, by its direction, 1.10 in the mean over all: however fine the mesh is."""
    mesh = mp.TriangleMesh.flat_sheet(60, 68, 1.0)
    centred = mesh.vertices - mesh.vertices.mean(axis=0)
    ratio = []
    for angle in np.radians(np.arange(1.0, 60.0, 2.0)):
        across = centred @ [-np.sin(angle), np.cos(angle), 0.0]
        along = np.abs(centred @ [np.cos(angle), np.sin(angle), 0.0])
        # A stripe around the middle, of which both sides are lines and the ends are known.
        inside = (np.abs(across) < 8.0) & (along < 20.0)
        energy = evaluated(mesh, lambda m, i=inside: F.MembraneLineTension(m, i, 1.0))[0][0]
        ratio.append(energy / (2.0 * 40.0 + 2.0 * 16.0))
    assert np.mean(ratio) == pytest.approx(1.10, abs=0.03)
    assert min(ratio) > 0.95
    assert max(ratio) < 1.2


def test_line_tension_pulls_together_and_leaves_one_phase_alone():
    mesh = mp.TriangleMesh.icosphere(10.0, 3)
    cap = mesh.vertices[:, 2] > 6.0
    forces = evaluated(mesh, lambda m: F.MembraneLineTension(m, cap, 2.0))[1]
    outward = mesh.vertices * [1.0, 1.0, 0.0]
    assert np.sum(forces * outward) < 0.0
    far = np.abs(mesh.vertices[:, 2] - 6.0) > 3.0
    assert (forces[far] == 0.0).all()


# Budding --------------------------------------------------------------------------------------------------------------


def disc(length, rings=24):
    """A flat disc of rings of 6, 12, ... vertices, as long as its radius is wide."""
    vertices, faces, first = [[0.0, 0.0, 0.0]], [], [0, 1]
    for n in range(1, rings + 1):
        angle = 2.0 * np.pi * np.arange(6 * n) / (6 * n)
        r = length * n / rings
        vertices += np.column_stack([r * np.cos(angle), r * np.sin(angle), np.zeros(6 * n)]).tolist()
        first.append(first[-1] + 6 * n)
    for n in range(rings):
        inner, outer = first[n], first[n + 1]
        m, k = max(6 * n, 1), 6 * (n + 1)
        for side in range(6):
            for i in range(n + 1):
                a, b = outer + (side * (n + 1) + i) % k, outer + (side * (n + 1) + i + 1) % k
                c = inner + (side * n + i) % m
                faces.append([a, b, c])
                if i < n:
                    faces.append([c, b, inner + (side * n + i + 1) % m])
    return mp.TriangleMesh(np.array(vertices), np.array(faces))


def bent(flat, radius):
    """The disc as a cap of a sphere, by the map of Lambert that keeps areas."""
    x, y, _ = flat.vertices.T
    r = np.hypot(x, y)
    polar = 2.0 * np.arcsin(np.minimum(0.5 * r / radius, 1.0))
    share = np.divide(radius * np.sin(polar), r, out=np.ones_like(r), where=r > 0.0)
    return flat.with_vertices(np.column_stack([share * x, share * y, radius * (1.0 - np.cos(polar))]))


def bud(length, x, kappa=20.0, tension=1.0, rings=24):
    """The energy of a domain of the area πL² as a cap with the curvature 2x/L, beyond that of the flat one."""
    flat = disc(length, rings)
    both = lambda m: F.MembraneBending(m, kappa), lambda m: F.BorderTension(m, tension)
    energies = [sum(evaluated(mesh, *both)[0]) for mesh in (bent(flat, 0.5 * length / x), flat)]
    return energies[0] - energies[1]


def test_domains_bud():
    """Lipowsky: 8πκ x² - 2πλL (1 - √(1 - x²)), so that a bud is lower than the flat domain for L > 4κ/λ, and the flat
    domain is at a maximum, among caps, for L > 8κ/λ. Energies of bending lack those of the vertices on the border, some
    4 %. Domains of any shape are in tests/physics/test_budding_and_wrapping.py."""
    kappa, tension = 20.0, 1.0
    xi = kappa / tension
    for size in (3.5, 4.6, 7.0, 9.5):
        for x in (0.2, 0.5, 0.8):
            exact = 8.0 * np.pi * kappa * x**2 - 2.0 * np.pi * tension * size * xi * (1.0 - np.sqrt(1.0 - x**2))
            scale = 8.0 * np.pi * kappa * x**2
            assert bud(size * xi, x) == pytest.approx(exact, abs=0.09 * scale)
    # Nearly closed.
    assert bud(3.5 * xi, 0.999) > 0.0
    assert bud(4.6 * xi, 0.999) < 0.0
    # Nearly flat.
    assert bud(7.0 * xi, 0.15) > 0.0
    assert bud(9.5 * xi, 0.15) < 0.0


# Adhesion -------------------------------------------------------------------------------------------------------------


def test_a_flat_membrane_in_contact_has_minus_w_per_area():
    mesh = mp.TriangleMesh.flat_sheet(6, 6, 3.0).translated([0.0, 0.0, 7.5])
    wall = mp.boundaries.Plane((0.0, 0.0, 7.0))
    energy, forces = evaluated(mesh, lambda m: F.MembraneAdhesion(m, wall, 0.2, 0.7, 0.5))
    assert energy[0] == pytest.approx(-0.2 * mesh.area, rel=1e-12)
    # A tension of -w: it is drawn out, and nothing draws it to or from the wall.
    assert np.abs(forces[:, 2]).max() < 1e-13
    assert np.sum(forces * (mesh.vertices - mesh.vertices.mean(axis=0))) == pytest.approx(0.4 * mesh.area, rel=1e-12)
    for above, share in ((0.7 * np.log(2.0), -0.75), (1.4, np.exp(-4.0) - 2.0 * np.exp(-2.0)), (30.0, 0.0)):
        energy = evaluated(mesh.translated([0.0, 0.0, above]), lambda m: F.MembraneAdhesion(m, wall, 0.2, 0.7, 0.5))[0]
        assert energy[0] == pytest.approx(0.2 * mesh.area * share, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_sphere_is_wrapped_beyond_two_kappa_over_a_squared(form):
    """8πκ of bending against 4πa²w of contact: their sum is zero there, and of either sign beside."""
    kappa, a = 20.0, 15.0
    errors = []
    for s in (3, 4, 5):
        mesh = mp.TriangleMesh.icosphere(a, s)
        energies = evaluated(mesh, lambda m: F.MembraneBending(m, kappa, 0.0, form),
                             lambda m: F.MembraneAdhesion(m, mp.surfaces.Sphere(a), 2.0 * kappa / a**2,
                                                          0.5))[0]  # fmt: skip
        errors.append(sum(energies) / (8.0 * np.pi * kappa))
    assert 0.0 < errors[-1] < 2e-3
    assert order(errors) == pytest.approx(2.0, abs=0.2)


def test_beads_and_a_sphere_of_their_size_are_alike():
    mesh = untidy(mp.TriangleMesh.icosphere(10.0, 2))
    one = evaluated(mesh, lambda m: F.MembraneAdhesion(m, mp.surfaces.Sphere(8.0, (1.0, 2.0, 0.5)), 0.3, 2.0, 0.4))
    topology = mp.Topology()
    ball = topology.add_balls([[1.0, 2.0, 0.5]], 8.0, mass=1.0)
    membrane = topology.add_membrane(mesh, vertex_mass=1.0)
    state = mp.Context(system_with(topology, F.MembraneAdhesion(membrane, ball, 0.3, 2.0, 0.4)),
                       mp.VerletIntegrator(1e-12)).get_state(energy=True, forces=True)  # fmt: skip
    assert state.potential_energy == pytest.approx(one[0][0], rel=1e-13)
    assert np.abs(state.forces[membrane.beads] - one[1]).max() < 1e-13
    assert np.abs(state.forces.sum(axis=0)).max() < 1e-12


@pytest.mark.parametrize("inside", [False, True])
def test_walls_that_are_round(inside):
    """A capsule: the energy by its distances, and forces along random directions by differences of that."""
    mesh = untidy(mp.TriangleMesh.icosphere(10.0, 2))
    wall = mp.boundaries.Capsule([-3.0, 1.0, 0.0], [2.0, 2.0, 5.0], 12.0 if inside else 6.0, inside=inside)

    def energy(x):
        here = mesh.with_vertices(x)
        areas = np.zeros(len(x))
        np.add.at(areas, mesh.faces, here.face_areas[:, None] / 3.0)
        q = np.exp(-(wall.distance(x) - 0.4) / 2.0)
        return 0.3 * areas @ (q**2 - 2.0 * q)

    found, forces = evaluated(mesh, lambda m: F.MembraneAdhesion(m, wall, 0.3, 2.0, 0.4))
    assert found[0] == pytest.approx(energy(mesh.vertices), rel=1e-12)
    for seed in range(3):
        way = np.random.default_rng(seed).normal(size=mesh.vertices.shape)
        by_differences = (energy(mesh.vertices - 1e-5 * way) - energy(mesh.vertices + 1e-5 * way)) / 2e-5
        assert np.sum(forces * way) == pytest.approx(by_differences, rel=1e-6, abs=1e-6 * np.abs(forces).sum())


def test_inactive_balls_are_nowhere():
    topology = mp.Topology()
    balls = topology.add_balls([[0.0, 0, 14.0], [0.0, 0, -14.0]], 3.0, mass=1.0, capacity=4)
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 2), vertex_mass=1.0)
    context = mp.Context(system_with(topology, F.MembraneAdhesion(membrane, balls, 0.3, 2.0, 1.0)),
                         mp.VerletIntegrator(1e-12))  # fmt: skip
    both = context.get_state(energy=True).potential_energy
    with topology.edit():
        balls.remove(balls.beads[:1])
    assert context.get_state(energy=True).potential_energy == pytest.approx(0.5 * both, rel=1e-12)


# Bad input ------------------------------------------------------------------------------------------------------------

CLOSED, OPEN = mp.TriangleMesh.icosphere(10.0, 1), mp.TriangleMesh.flat_sheet(3, 3, 5.0)


@pytest.mark.parametrize(("make", "mesh", "match"), [
    (lambda m: F.MembranePressure(m, 1.0), OPEN, "MembranePressure: .* has 1 border, so it encloses no volume"),
    (lambda m: F.MembraneOsmoticPressure(m, 1.0, 1.0, kT=1.0), OPEN, "has 1 border, so it encloses no volume"),
    (lambda m: F.MembraneAreaDifference(m, 1.0, 1.0), OPEN, "has 1 border, so lipids go from one side"),
    (lambda m: F.BorderTension(m, 1.0), CLOSED, "BorderTension: .* is closed: it has no border"),
    (lambda m: F.MembraneAdhesion(m, m, 1.0, 1.0), CLOSED, "to must be beads with a place of their own"),
])  # fmt: skip
def test_membranes_that_will_not_do_are_refused(make, mesh, match):
    refuses(mp.TopologyError, match, make, mp.Topology().add_membrane(mesh, vertex_mass=1.0))


@pytest.mark.parametrize(("make", "match"), [
    (lambda m: F.MembraneOsmoticPressure(m, 1.0, 1.0), "temperature"),
    (lambda m: F.MembraneAreaDifference(m, 1.0, 1.0, discretization="edge"), 'must be "vertex" or "dihedral"'),
    (lambda m: F.MembraneAdhesion(m, mp.surfaces.Torus(3.0, 1.0), 1.0, 1.0), "not Torus"),
    (lambda m: F.MembraneAdhesion(m, "floor", 1.0, 1.0), "to must be a wall of boundaries"),
])  # fmt: skip
def test_numbers_that_will_not_do_are_refused(make, match):
    refuses(mp.ParameterError, match, make, mp.Topology().add_membrane(CLOSED, vertex_mass=1.0))


# In a periodic box ----------------------------------------------------------------------------------------------------


def sheet_in_a_box(*makes, height=60.0):
    mesh = mp.TriangleMesh.flat_sheet(12, 14, 10.0, periodic=True)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1.0)
    system = mp.System(topology, box=mesh.box[:2] + (height,))
    for make in makes:
        system.add_force(make(sheet))
    return system, sheet


@pytest.mark.parametrize(
    "make", [lambda m: F.MembranePressure(m, 0.1), lambda m: F.MembraneOsmoticPressure(m, 9.0, 1.0, kT=4.0)]
)
def test_a_sheet_through_the_box_has_no_pressure(make):
    system, _ = sheet_in_a_box(make)
    with pytest.raises(mp.ParameterError, match="closes through the sides of the box, and encloses no volume"):
        mp.Context(system, mp.VerletIntegrator(1e-3))


@pytest.mark.parametrize("form", FORMS)
def test_two_leaflets_of_a_sheet_through_the_box(form):
    """Flat, there is no difference in area, at the start and in the kernel; and one wave has none on either side."""
    system, sheet = sheet_in_a_box(lambda m: F.MembraneAreaDifference(m, 80.0, 3.0, discretization=form))
    (force,) = system.forces
    assert abs(force.area_difference) < 1e-9 * sheet.mesh.area
    context = mp.Context(system, mp.VerletIntegrator(1e-3))
    x = sheet.positions + np.zeros((len(sheet), 3))
    x[:, 2] += 2.0 * np.sin(2.0 * np.pi * x[:, 0] / sheet.mesh.box[0])
    context.set_positions(x)
    state = context.get_state(energy=True, forces=True)
    # The integral of H is as large where it is below zero, on a mesh that has this symmetry.
    assert state.potential_energy < 1e-6
    assert np.abs(state.forces.sum(axis=0)).max() < 1e-9


def test_lines_and_areas_across_the_seam_are_as_stiff_as_elsewhere():
    """What longest timesteps are read from: no triangle of a periodic sheet is as long as the box."""
    makes = [lambda m: F.MembraneTension(m, 0.5), lambda m: F.MembraneLineTension(m, np.arange(len(m)) % 12 < 6, 2.0)]
    for make in makes:
        system, _ = sheet_in_a_box(make)
        (force,) = system.forces
        start = Start(system.topology)
        squared = force.squared_frequencies(start)
        assert np.ptp(squared[squared > 0.0].round(9)) < 3.0 * np.median(squared[squared > 0.0])


def test_adhesion_of_a_sheet_in_a_box():
    ball = mp.surfaces.Sphere(10.0, (60.0, 60.0, 12.0))
    system, sheet = sheet_in_a_box(lambda m: F.MembraneAdhesion(m, ball, 0.2, 2.0), height=None)
    # Across the corners of the box as in its middle.
    here = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    ball = mp.surfaces.Sphere(10.0, (60.0 - 3 * sheet.mesh.box[0], 60.0 + sheet.mesh.box[1], 12.0))
    system, _ = sheet_in_a_box(lambda m: F.MembraneAdhesion(m, ball, 0.2, 2.0), height=None)
    there = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    assert here < -1.0
    assert there == pytest.approx(here, rel=1e-9)
    floor = mp.boundaries.Plane((0.0, 0.0, -1.0))
    system, sheet = sheet_in_a_box(lambda m: F.MembraneAdhesion(m, floor, 0.2, 2.0, 1.0), height=None)
    energy = mp.Context(system, mp.VerletIntegrator(1e-3)).get_state(energy=True).potential_energy
    assert energy == pytest.approx(-0.2 * sheet.mesh.area, rel=1e-12)


@pytest.mark.parametrize(("to", "reach", "words"), [
    (mp.boundaries.Plane(), 1.0, "periodic along z, so that there is nothing behind a wall"),
    (mp.surfaces.Sphere(20.0), 1.0, "reaches 40 nm, and the box is 60 nm long along z"),
    (mp.boundaries.Capsule([0.0, 0, 0], [9.0, 0, 0], 5.0, inside=False), 1.0, "reaches 34 nm"),
    ("beads", 2.0, "reaches 40 nm"),
])  # fmt: skip
def test_refuses_of_boxes(to, reach, words):
    system, sheet = sheet_in_a_box()
    if to == "beads":
        to = system.topology.add_beads([[0.0, 0.0, 9.0]], mass=1.0)
    system.add_force(F.MembraneAdhesion(sheet, to, 0.1, reach))
    refuses(mp.ParameterError, words, mp.Context, system, mp.VerletIntegrator(1e-3))
