"""Molecules as rigid bodies: masses, friction and places of real proteins, and copies of them in a simulation."""

import csv
import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from builders import refuses, system_with
from scipy.spatial.transform import Rotation

import medyanpy as mp
from medyanpy import rigid
from medyanpy.testing import check_mean, check_variance

sys.path.insert(0, str(Path(__file__).parent))
from test_domains import balls, structure_of

# Water at 20 °C, at which tables are.
ETA, KT = 1.002e-9, 293.15 * mp.units.boltzmann


@pytest.fixture
def three(rng):
    """A molecule of three domains."""
    x, labels = balls(rng, n=40)
    structure = structure_of(x)
    network = rigid.elastic_network(structure, cutoff=1.3, stiffness=200.0)
    return rigid.from_structure(structure, ETA, model="residues", domains=labels, network=network)


def turned(molecule, turn, place):
    """Where the atoms of the structure are in a copy."""
    return turn.apply(molecule.structure.positions - molecule.center_of_mass) + place


def test_copies_are_where_the_structure_is(three, rng):
    """Atoms, as sites on their bodies, are those of the structure turned and moved; linkers are at rest."""
    structure = three.structure
    turns = Rotation.random(4, random_state=3)
    places = rng.normal(0.0, 50.0, (4, 3))
    topology = mp.Topology()
    q = np.roll(turns.as_quat(), 1, axis=1)
    bodies = topology.add_rigid_bodies(**three.arguments(places, q, mass_scale=1e6), name="kinase")
    assert len(bodies) == 12
    np.testing.assert_allclose(bodies.mass.reshape(4, 3), np.tile(1e6 * three.mass, (4, 1)))
    np.testing.assert_allclose(three.mass.sum(), structure.mass)
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links(**three.links(bodies)))
    context = mp.Context(system, mp.BrownianIntegrator(1e-12, kT=KT, seed=1), threads=1)
    state = context.get_state(positions=True, energy=True)
    assert len(links) == 4 * len(three.linkers.stiffness)
    assert state.potential_energy < 1e-20
    for k, body in enumerate(three.bodies):
        own = three.labels == k
        sites = bodies.sites(body.to_body(structure.positions[own]))
        found = sites.positions(state).reshape(12, -1, 3)[k::3]
        for c in range(4):
            np.testing.assert_allclose(found[c], turned(three, turns[c], places[c])[own], atol=1e-9)


@pytest.mark.slow
def test_domains_move_against_each_other_as_linkers_let_them(rng):
    """At rest, and to first order in their motions: each of the twelve relative coordinates of three domains has the
    energy kT/2. Linkers that hold one of them not at all, or not as a spring, would show."""
    x, labels = balls(rng, n=40)
    structure = structure_of(x)
    network = rigid.elastic_network(structure, cutoff=1.3, stiffness=200.0)
    # In syrup, a thousand times as viscous as water, motions relax as fast as they swing.
    molecule = rigid.from_structure(structure, 1e-6, model="residues", domains=labels, network=network)
    n = 250
    topology = mp.Topology()
    apart = 100.0 * np.arange(n)[:, None] * np.eye(3)[0]
    bodies = topology.add_rigid_bodies(**molecule.arguments(apart, mass_scale=1e8))
    system = mp.System(topology)
    links = system.add_force(mp.forces.Links(**molecule.links(bodies)))
    # Hundred times as stiff, so that motions are small.
    links.set(stiffness=100.0 * links.stiffness)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 2e-10, kT=KT, seed=2), threads=2)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=3)
    simulation.step(2500)
    energy = simulation.context.get_state(energy=True).potential_energy
    check_variance("energy of linkers", 2.0 * energy, 12 * n, KT, sees=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ubiquitin_1ubq", "lysozyme_1aki"])
def test_diffusion_of_proteins(shared_data, name):
    """The coefficients of docs/structures.md, to the digit: of each model, with the viscosity of HYDROPRO."""
    page = (Path(__file__).parents[2] / "docs" / "structures.md").read_text(encoding="utf-8")
    rows = page.partition(f"| {name.partition('_')[0]}, HYDROPRO |")[2].splitlines()[1:5]
    assert [row.split('"')[1] for row in rows] == ["atoms", "residues", "ellipsoid", "sphere"]
    for row in rows:
        model, translation, rotation = (cell.strip(' `"') for cell in row.split("|")[1:4])
        if model == "atoms" and name != "ubiquitin_1ubq":
            # A minute and a half; tests/rigid/test_proteins.py has the same tensor.
            continue
        molecule = rigid.from_structure(shared_data / "proteins" / f"{name}.pdb", mp.presets.WATER, model=model)
        d = rigid.friction_to_diffusion(molecule.friction[0], kT=KT)
        d = rigid.move_diffusion(d, rigid.center_of_diffusion(d))
        assert f"{np.trace(d[:3, :3]) / 3.0 * 1e-7:.2f}" == translation, row
        assert f"{np.trace(d[3:, 3:]) / 3.0 * 1e-7:.3f}" == rotation, row


MEASURED = {"1ubq": "ubiquitin_1ubq", "1aki": "lysozyme_1aki"}


def measured_rows(folder):
    with (folder / "hydrodynamics" / "protein_diffusion_reference.csv").open(newline="") as file:
        return {row["key"]: row for row in csv.DictReader(file)}


def test_no_measured_protein_is_left_out(shared_data):
    """Of all structures, those that the table has: looked up by their entry in the Protein Data Bank."""
    files = {path.stem.split("_")[-1]: path.stem for path in (shared_data / "proteins").glob("*.pdb")}
    listed = {row["pdb"] for row in measured_rows(shared_data).values()}
    assert {code: name for code, name in files.items() if code in listed} == MEASURED


@pytest.mark.slow
@pytest.mark.parametrize(("code", "model", "translation", "rotation"), [
    ("1ubq", "atoms", [], [0.019, 0.316]),
    ("1ubq", "residues", [], [-0.035, 0.246]),
    pytest.param("1aki", "atoms", [0.043, -0.013, 0.033, -0.039], [-0.052, 0.118], marks=pytest.mark.long),
    ("1aki", "residues", [0.048, -0.008, 0.039, -0.034], [-0.066, 0.101]),
])  # fmt: skip
def test_measured_diffusion_of_proteins(shared_data, code, model, translation, rotation):
    """Deviations from every measurement in the table, as docs/structures.md lists them, to the digit."""
    molecule = rigid.from_structure(shared_data / "proteins" / f"{MEASURED[code]}.pdb", ETA, model=model)
    d = rigid.friction_to_diffusion(molecule.friction[0], kT=KT)
    d = rigid.move_diffusion(d, rigid.center_of_diffusion(d))
    row = measured_rows(shared_data)[code]
    # 10⁻⁷ cm²/s; ns, of 1/6 of the mean coefficient.
    for value, column, expected in (
        (1e-7 * np.trace(d[:3, :3]) / 3.0, "D_exp_20w_1e-7cm2_s", translation),
        (1e9 / (2.0 * np.trace(d[3:, 3:])), "tau_exp_ns", rotation),
    ):
        found = [value / float(measured) - 1.0 for measured in row[column].split(";") if measured]
        assert found == pytest.approx(expected, abs=6e-4)


def test_the_ellipsoid_is_that_of_the_atoms(shared_data):
    """Of the smallest one around the centres of atoms, the friction; about the centre of mass, which is elsewhere."""
    structure = rigid.read_structure(shared_data / "proteins" / "ubiquitin_1ubq.pdb")
    molecule = rigid.from_structure(structure, ETA, model="ellipsoid")
    middle, semi_axes, axes = rigid.enclosing_ellipsoid(structure.positions)
    expected = rigid.rotate_tensor(rigid.ellipsoid_friction(semi_axes, ETA), axes.T)
    body = molecule.bodies[0]
    np.testing.assert_allclose(molecule.friction[0], body.friction_in_body(expected, middle), rtol=1e-12)
    assert np.linalg.norm(middle - body.center_of_mass) > 0.01
    larger = rigid.from_structure(structure, ETA, model="ellipsoid", radius=0.3)
    assert np.trace(larger.friction[0][:3, :3]) > 1.05 * np.trace(molecule.friction[0][:3, :3])


@pytest.mark.slow
def test_ties_to_lipids_hold_bodies_upright():
    """Three ties of length 0 around the waist: to first order ⟨1 - cos θ⟩ is 2 kT/(3 k r²) against the plane of the
    lipids, and each tie has the energy 3/2 kT, on a membrane that moves."""
    stiffness, r = 40.0, 2.5
    sheet = mp.TriangleMesh.flat_sheet(19, 19, 8.0)
    corners = sheet.vertices[sheet.faces]
    middles = corners.mean(axis=1)
    # 36 triangles, far from each other and from the border.
    grid = 22.0 * (np.stack(np.unravel_index(np.arange(36), (6, 6)), axis=1) - 2.5)
    faces = np.linalg.norm(middles[:, None, :2] - grid, axis=2).argmin(axis=0)
    n = len(np.unique(faces))
    assert n == 36
    first = corners[faces, 0] - middles[faces]
    half = 0.5 * np.arctan2(first[:, 1], first[:, 0])
    upright = np.column_stack([np.cos(half), np.zeros(n), np.zeros(n), np.sin(half)])
    size, mass = (3.0, 3.0, 5.0), 1e-18
    topology = mp.Topology()
    membrane = topology.add_membrane(sheet, vertex_mass=2e-18, vertex_friction=2e-6)
    bodies = topology.add_rigid_bodies(middles[faces], upright, mass, rigid.ellipsoid_inertia(size, mass),
                                       rigid.ellipsoid_friction(size, ETA))  # fmt: skip
    angle = 2.0 * np.pi * np.arange(3) / 3.0
    waists = bodies.sites(r * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(3)]))
    share = r * np.sqrt(3.0) / 8.0
    lipids = topology.add_intriangle_points(membrane, triangles=np.repeat(faces, 3),
                                            barycentric=np.tile(1 / 3 + (np.eye(3) - 1 / 3) * share, (n, 1)),
                                            mass=5e-19, friction=2e-8)  # fmt: skip
    system = system_with(topology, mp.forces.MembraneBending(membrane, 20.0 * KT),
                         mp.forces.MembraneEdgeSprings(membrane, stiffness=1.0),
                         mp.forces.Links(waists, lipids.beads, stiffness, 0.0, name="ties"))  # fmt: skip
    context = mp.Context(system, mp.BAGOGABIntegrator(2e-11, kT=KT, seed=1), threads=1)
    start = context.get_state(positions=True, energy=True)
    assert start.energies["ties"] < 1e-18
    context.set_velocities_to_temperature(kT=KT, seed=2)
    context.step(1000)
    tilts, energies = [], []
    for _ in range(150):
        context.step(50)
        state = context.get_state(positions=True)
        a, b, c = state.positions[lipids.beads].reshape(n, 3, 3).swapaxes(0, 1)
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        turns = Rotation.from_quat(np.roll(state.orientations[bodies.rows], -1, axis=1))
        tilts.append(1.0 - (turns.apply([0.0, 0.0, 1.0]) * normals).sum(axis=1))
        stretched = waists.positions(state) - state.positions[lipids.beads]
        energies.append(0.5 * stiffness * (stretched**2).sum(axis=1).reshape(n, 3).mean(axis=1))
    # One number of each body.
    expected = 2.0 * KT / (3.0 * stiffness * r**2)
    check_mean("tilt", np.mean(tilts, axis=0), expected, sees=0.3 * expected)
    check_mean("energy of a tie", np.mean(energies, axis=0), 1.5 * KT, sees=0.15 * KT)


@pytest.mark.parametrize("seed", range(6))
def test_enclosing_ellipsoids(seed):
    """Points on an ellipsoid, and others within: it is found. Nothing sticks out, and no ellipsoid nearby that holds
    all is smaller."""
    rng = np.random.default_rng(seed)
    a = np.sort(rng.uniform(0.5, 5.0, 3))[::-1]
    turn = Rotation.random(random_state=seed).as_matrix()
    u = rng.normal(size=(400, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    u[200:] *= rng.uniform(0.0, 1.0, (200, 1))
    # With its poles: then there is no smaller one.
    u[:6] = np.concatenate([np.eye(3), -np.eye(3)])
    middle = rng.normal(0.0, 30.0, 3)
    x = u * a @ turn.T + middle
    center, semi_axes, axes = rigid.enclosing_ellipsoid(x, tolerance=1e-7)
    np.testing.assert_allclose(center, middle, atol=1e-4 * a[0])
    np.testing.assert_allclose(semi_axes, a, rtol=1e-4)
    np.testing.assert_allclose(np.abs(axes @ turn), np.eye(3), atol=2e-2)
    assert np.linalg.det(axes) > 0.0
    inside = ((x - center) @ axes.T / semi_axes) ** 2
    assert inside.sum(axis=1).max() < 1.0 + 1e-6


def test_points_in_a_plane_have_no_ellipsoid(rng):
    flat = rng.normal(size=(20, 3)) * [1.0, 1.0, 0.0]
    for x in (flat, flat[:3], np.zeros((5, 3))):
        refuses(mp.ParameterError, "lie in a plane, or are fewer than four", rigid.enclosing_ellipsoid, x)


def test_ligands_go_with_the_nearest_domain(rng):
    x, labels = balls(rng, places=[(0.0, 0.0, 0.0), (2.2, 0.0, 0.0)], n=40)
    plain = structure_of(x)
    place = np.array([[4.0, 0.0, 0.0], [4.1, 0.2, 0.0]])
    with_ligand = rigid.Structure(np.concatenate([x, place]), np.append(plain.masses, [5e-22, 5e-22]),
                                  np.append(plain.elements, ["C", "C"]), np.append(plain.names, ["C1", "C2"]),
                                  np.append(plain.residue_of, [80, 80]),
                                  (*plain.residues, rigid.Residue("GLC", "901", "A")), plain.alpha,
                                  np.append(plain.b_factors, [0.0, 0.0]), plain.breaks)  # fmt: skip
    network = rigid.elastic_network(plain, cutoff=1.3, stiffness=100.0)
    given = {"viscosity": ETA, "model": "residues", "domains": labels, "network": network}
    one, other = (rigid.from_structure(s, **given) for s in (plain, with_ligand))
    np.testing.assert_allclose(other.mass - one.mass, [0.0, 1e-21], atol=1e-30)
    assert np.array_equal(one.friction[0], other.friction[0])
    assert np.trace(other.friction[1]) > np.trace(one.friction[1])


def test_refusals(three, rng):
    structure = three.structure
    network = rigid.elastic_network(structure, cutoff=1.3, stiffness=200.0)
    for given, text in [
        ({"model": "cube"}, "model = 'cube' but must be one of 'atoms', 'residues', 'ellipsoid', 'sphere'"),
        ({"viscosity": 0.0}, "viscosity"),
        ({"radius": 0.0}, "radius = 0 but must be > 0"),
        ({"domains": three.labels}, "domains need network="),
        ({"domains": three.labels[:-1], "network": network}, "domains"),
        ({"domains": 2 * three.labels, "network": network}, "numbered from 0 without a gap, but none is 1"),
        ({"domains": np.arange(120) < 2, "network": network}, "domains"),
        ({"domains": (np.arange(120) < 2).astype(int), "network": network}, "domain 1 has 2 atoms in a line, or fewer"),
        ({"chains": "A"}, "chains belong to the reading of a file"),
    ]:
        with pytest.raises(mp.ParameterError, match=text):
            rigid.from_structure(structure, **({"viscosity": ETA, "model": "residues"} | given))
    x = np.array(structure.positions)
    first, second = (int(np.flatnonzero(three.labels == k)[0]) for k in (0, 2))
    x[structure.alpha[second]] = x[structure.alpha[first]] + [0.03, 0.0, 0.04]
    clashing = dataclasses.replace(structure, positions=x)
    with pytest.raises(mp.ParameterError, match=r"domains 0 and 2 clash: CA of .* and CA of .* are 0.05 nm apart"):
        rigid.from_structure(clashing, ETA, domains=three.labels, network=network)
    topology = mp.Topology()
    bodies = topology.add_rigid_bodies(**three.arguments())
    single = rigid.from_structure(structure, ETA, model="residues")
    refuses(mp.ParameterError, "a molecule of one body has no linkers", single.links, bodies)
    others = topology.add_rigid_bodies(**single.arguments(np.eye(3)[:2]))
    refuses(mp.ParameterError, "2 bodies are not copies of a molecule of 3", three.links, others)
    with pytest.raises(mp.ParameterError, match=r"orientations\[1\] has length 2"):
        three.arguments(np.eye(3)[:2], [[1.0, 0, 0, 0], [2.0, 0, 0, 0]])
    assert repr(three) == f"RigidMolecule({structure!r} of 3 domains, {len(three.linkers.stiffness)} linkers)"
