"""Periodic boxes: images, meshes that close through the sides, states, files, refusals."""

import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._tools.images import nearest_image, wrapped
from medyanpy.errors import MeshError, ParameterError, TopologyError

KT = 4.14


def rough(mesh, seed=1, by=0.05):
    spread = by * float(mesh.edge_lengths.mean())
    return mesh.with_vertices(mesh.vertices + np.random.default_rng(seed).normal(0.0, spread, mesh.vertices.shape))


# Vectors ------------------------------------------------------------------------------------------------------------


def test_nearest_images_are_the_nearest_of_many():
    rng = np.random.default_rng(2)
    box = np.array([7.0, 0.0, 5.0])
    d = rng.normal(0.0, 20.0, (200, 3))
    found = nearest_image(d, (7.0, None, 5.0))
    shifts = box * np.stack(np.meshgrid(*[np.arange(-15, 16)] * 3, indexing="ij"), -1).reshape(-1, 3)
    squares = ((d[:, None] + shifts) ** 2).sum(axis=-1)
    assert np.abs((found**2).sum(axis=1) - squares.min(axis=1)).max() < 1e-12 * squares.max()
    assert (found[:, 1] == d[:, 1]).all()
    assert (nearest_image(-d, box) == -found).all()


def test_wrapped_positions_are_in_the_box():
    x = np.array([[-1e-17, 3.0, -12.5], [7.0, -4.0, 9.99], [20.9, 0.0, 5.0]])
    inside = wrapped(x, (7.0, None, 5.0))
    assert (inside[:, [0, 2]] >= 0.0).all()
    assert (inside[:, 0] < 7.0).all()
    assert (inside[:, 2] < 5.0).all()
    assert (inside[:, 1] == x[:, 1]).all()


# Meshes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("axes", "n_borders", "genus"), [("x", 2, 0), ("y", 2, 0), ("xy", 0, 1)])
def test_sheets_close_through_the_box(axes, n_borders, genus):
    mesh = mp.TriangleMesh.flat_sheet(7, 6, 2.0, periodic=axes)
    assert (len(mesh.borders), mesh.genus) == (n_borders, genus)
    assert mesh.closes_through_the_box
    assert np.allclose(mesh.edge_lengths, 2.0, rtol=1e-13)
    assert np.allclose(mesh.face_normals, [0.0, 0.0, 1.0])
    lengths = [14.0 if "x" in axes else None, 6 * np.sqrt(3.0) if "y" in axes else None, None]
    assert mesh.box == pytest.approx(lengths) if None not in lengths else True
    with pytest.raises(MeshError, match="encloses nothing"):
        assert mesh.volume


def test_area_and_curvatures_of_a_sheet_do_not_know_where_its_seam_is():
    mesh = rough(mp.TriangleMesh.flat_sheet(8, 8, 2.0, periodic=True))
    box = np.array([mesh.box[0], mesh.box[1], 0.0])
    moved = mp.TriangleMesh(wrapped(mesh.vertices + [5.3, 7.1, 0.0], box), mesh.faces, box=mesh.box)
    for name in ("area", "face_areas", "edge_lengths", "quality", "mean_curvatures", "gaussian_curvatures"):
        assert np.allclose(getattr(moved, name), getattr(mesh, name), rtol=1e-11, atol=1e-12), name
    assert mesh.gaussian_curvatures @ np.ones(64) == pytest.approx(0.0, abs=1.0)
    triangles, weights = mesh.sample(500, 3)
    places = moved.positions(triangles, weights) - [5.3, 7.1, 0.0]
    assert np.abs(nearest_image(places - mesh.positions(triangles, weights), box)).max() < 1e-12


def test_a_tube_closes_through_the_box():
    tube = mp.TriangleMesh.cylinder(5.0, 40.0, 16, periodic=True)
    assert tube.is_closed
    assert tube.genus == 1
    open_tube = mp.TriangleMesh.cylinder(5.0, 40.0, 16, n_along=len(tube.faces) // 32)
    assert tube.area == pytest.approx(open_tube.area, rel=1e-12)
    assert np.ptp(tube.mean_curvatures) < 1e-12


def test_a_vesicle_that_was_cut_by_the_sides_is_whole_again():
    sphere = rough(mp.TriangleMesh.icosphere(10.0, 2))
    cut = mp.TriangleMesh(wrapped(sphere.vertices, (25.0, 30.0, 27.0)), sphere.faces, box=(25.0, 30.0, 27.0))
    assert not cut.closes_through_the_box
    assert cut.volume == pytest.approx(sphere.volume, rel=1e-12)


def test_meshes_in_boxes_come_back_from_documents_and_files(tmp_path):
    mesh = rough(mp.TriangleMesh.flat_sheet(8, 8, 2.0, periodic=True))
    again = mp.deserialize(mp.serialize(mesh))
    assert again.box == mesh.box
    assert (again.vertices == mesh.vertices).all()
    mesh.save(tmp_path / "patch.ply")
    read = mp.TriangleMesh.from_file(tmp_path / "patch.ply", box=mesh.box)
    assert read.area == pytest.approx(mesh.area, rel=1e-13)
    larger = mesh.scaled(3.0)
    assert larger.box[0] == 3.0 * mesh.box[0]
    assert larger.area == pytest.approx(9.0 * mesh.area)


SHEET = mp.TriangleMesh.flat_sheet(5, 6, 2.0)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: mp.TriangleMesh(SHEET.vertices, SHEET.faces, box=(8.0, None, None)), MeshError, "does not close"),
    (lambda: mp.TriangleMesh(SHEET.vertices, SHEET.faces, box=(2.5, None, None)), MeshError, "wider than half"),
    (lambda: mp.TriangleMesh(SHEET.vertices, SHEET.faces, box=(-8.0, None, 9.0)), ParameterError, r"box.0. = -8"),
    (lambda: mp.TriangleMesh(SHEET.vertices, SHEET.faces, box=8.0), ParameterError, "three lengths"),
    (lambda: mp.TriangleMesh.flat_sheet(5, 5, 2.0, periodic="y"), ParameterError, "even"),
    (lambda: mp.TriangleMesh.flat_sheet(2, 6, 2.0, periodic="x"), ParameterError, "nx = 2"),
    (lambda: mp.TriangleMesh.flat_sheet(5, 6, 2.0, periodic="z"), ParameterError, "periodic = 'z'"),
    (lambda: mp.TriangleMesh.cylinder(5.0, 40.0, 16, 5, periodic=True), ParameterError, "even"),
])  # fmt: skip
def test_bad_boxes_of_meshes(make, error, message):
    refuses(error, message, make)


# Systems ------------------------------------------------------------------------------------------------------------


def fluid(box, n=200, seed=3, threads=1, cutoff=2.5):
    """Beads on a lattice in a box of 10."""
    rng = np.random.default_rng(seed)
    lattice = np.stack(np.meshgrid(*[np.arange(6.0)] * 3, indexing="ij"), -1).reshape(-1, 3)[:n]
    topology = mp.Topology()
    beads = topology.add_beads(10.0 / 6.0 * lattice + rng.normal(0.0, 0.1, (n, 3)), mass=1.0, friction=0.5)
    context = mp.Context(system_with(topology, mp.forces.LennardJones(beads, beads, 1.0, 1.0, cutoff=cutoff), box=box),
                         mp.SplittingIntegrator("BAOAB", 2e-3, kT=1.0, seed=seed), threads=threads)  # fmt: skip
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    return context


def energy_of_pairs(x, box, cutoff=2.5):
    d = nearest_image(x[:, None] - x, box)
    r2 = (d**2).sum(axis=-1)[np.triu_indices(len(x), 1)]
    s = r2[r2 < cutoff**2] ** -3
    end = cutoff**-6
    return float((4.0 * (s**2 - s) - 4.0 * (end**2 - end)).sum())


@pytest.mark.parametrize("box", [(10.0, 10.0, 10.0), (10.0, None, 10.0), (None, None, 10.0), (40.0, 10.0, 12.0)])
def test_pairs_meet_nearest_images_through_a_long_run(box):
    context = fluid(box)
    for _ in range(3):
        context.step(300)
        state = context.get_state(positions=True, energy=True)
        assert state.potential_energy == pytest.approx(energy_of_pairs(state.positions, box), rel=1e-11)
        assert state.box == box
    assert np.abs(state.positions - state.wrapped_positions).max() > 1.0


def test_bits_do_not_depend_on_threads_or_restarts(tmp_path):
    reference = fluid((10.0, 10.0, 10.0))
    reference.step(200)
    others = [fluid((10.0, 10.0, 10.0), threads=threads) for threads in (2, 3)]
    for other in others:
        other.step(120)
        other.step(80)
    first = mp.Simulation(fluid((10.0, 10.0, 10.0)).system, mp.SplittingIntegrator("BAOAB", 2e-3, kT=1.0, seed=3))
    first.context.set_velocities_to_temperature(kT=1.0, seed=4)
    first.step(90)
    first.save_checkpoint(tmp_path / "run.ckpt")
    restarted = mp.Simulation.resume(tmp_path / "run.ckpt")
    restarted.step(110)
    wanted = reference.get_state(positions=True, velocities=True)
    for context in (*others, restarted.context):
        state = context.get_state(positions=True, velocities=True)
        assert (state.positions == wanted.positions).all()
        assert (state.velocities == wanted.velocities).all()
        assert state.box == (10.0, 10.0, 10.0)


def test_momentum_is_kept_across_the_sides():
    context = fluid((10.0, 10.0, 10.0))
    system = context.system
    context = mp.Context(system, mp.VerletIntegrator(2e-3), threads=1)
    context.set_velocities_to_temperature(kT=1.0, seed=4)
    before = context.get_state(velocities=True, energy=True)
    context.step(500)
    after = context.get_state(velocities=True, energy=True)
    assert np.abs(before.velocities.sum(axis=0) - after.velocities.sum(axis=0)).max() < 1e-11
    assert after.total_energy == pytest.approx(before.total_energy, abs=0.05)


def test_the_virial_is_that_of_pairs():
    context = fluid((10.0, None, 12.0))
    context.step(50)
    state = context.get_state(positions=True, virial=True, energy=True)
    x = state.positions
    i, j = np.triu_indices(len(x), 1)
    d = nearest_image(x[j] - x[i], state.box)
    r2 = (d**2).sum(axis=-1)
    near = r2 < 2.5**2
    strength = 24.0 * (2.0 * r2**-6 - r2**-3) / r2
    wanted = ((strength[:, None] * d * d)[near]).sum(axis=0)
    assert np.diag(state.virial) == pytest.approx(wanted, rel=1e-7)
    assert np.isnan(state.virial[0, 1])
    again = context.get_state(positions=True, energy=True)
    assert (again.positions == x).all()
    assert again.potential_energy == state.potential_energy


def patch(n=12, spacing=10.0, points=60, box_z=None, forces=True, **options):
    mesh = rough(mp.TriangleMesh.flat_sheet(n, n, spacing, periodic=True), by=0.08)
    topology = mp.Topology()
    sheet = topology.add_membrane(mesh, vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
    proteins = topology.add_intriangle_points(sheet, points, mass=1e-6, friction=1e-3, seed=2) if points else None
    system = mp.System(topology, box=(*mesh.box[:2], box_z))
    if forces:
        system.add_force(mp.forces.MembraneBending(sheet, 80.0))
        system.add_force(mp.forces.MembraneEdgeSprings(sheet, 0.5, length=spacing))
        if points:
            system.add_force(mp.forces.SoftSphere(proteins, proteins, 1.0, 0.5 * spacing))
    return system, sheet, proteins


def test_nothing_depends_on_where_the_seam_is():
    """Two patches, one of which lies across the sides elsewhere: the same run, to rounding."""
    system, sheet, proteins = patch()
    integrator = mp.SplittingIntegrator("BAGAB", 2e-5)
    one = mp.Context(system, integrator, threads=1)
    one.set_velocities_to_temperature(kT=KT, seed=3)
    start = one.get_state(positions=True, velocities=True)
    shift = np.array([37.3, 51.9, 0.0])
    mesh = sheet.mesh
    moved = mp.TriangleMesh(wrapped(mesh.vertices + shift, system.box), mesh.faces, box=mesh.box)
    topology = mp.Topology()
    other_sheet = topology.add_membrane(moved, vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
    others = topology.add_intriangle_points(other_sheet, triangles=proteins.triangles, barycentric=proteins.barycentric,
                                            mass=1e-6, friction=1e-3)  # fmt: skip
    elsewhere = system_with(topology, mp.forces.MembraneBending(other_sheet, 80.0),
                            mp.forces.MembraneEdgeSprings(other_sheet, 0.5, length=10.0),
                            mp.forces.SoftSphere(others, others, 1.0, 5.0), box=system.box)  # fmt: skip
    two = mp.Context(elsewhere, mp.SplittingIntegrator("BAGAB", 2e-5), threads=1)
    two.set_velocities(start.velocities)
    for context in (one, two):
        context.step(300)
    a, b = (context.get_state(positions=True, velocities=True, energy=True) for context in (one, two))
    assert (a.intriangle.triangles != proteins.triangles).mean() > 0.3
    assert (a.intriangle.triangles == b.intriangle.triangles).all()
    apart = nearest_image(b.positions - a.positions - shift, system.box)
    assert np.abs(apart).max() < 1e-7
    assert b.total_energy == pytest.approx(a.total_energy, rel=1e-9)
    # Points have gone through the sides, and vertices are where they were but for vibrations.
    travelled = a.positions - one.system.topology["patch"].mesh.vertices.mean(axis=0)
    assert np.abs(travelled[:, :2]).max() > 50.0


def in_a_field(text, x, box=(6.0, 5.0, None), velocities=None, **numbers):
    topology = mp.Topology()
    beads = topology.add_beads(x, mass=1.0)
    context = mp.Context(system_with(topology, mp.forces.ExternalField(beads, text, **numbers), box=box),
                         mp.VerletIntegrator(0.01))  # fmt: skip
    if velocities is not None:
        context.set_velocities(velocities)
    return context


def test_fields_act_on_images():
    """Wherever a bead has got to, a field acts on the image nearest to the origin."""
    text, rng = "a*cos(2*pi*x/6)*sin(2*pi*y/5) + exp(-(x*x + y*y)/s)*z", np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (50, 3)) * [3.0, 2.5, 4.0]
    away = x + rng.integers(-3, 4, (50, 3)) * [6.0, 5.0, 0.0]
    numbers = {"a": rng.uniform(1.0, 2.0, 50), "s": 0.3}
    states = [in_a_field(text, at, **numbers).get_state(forces=True, energy=True) for at in (x, away)]
    assert states[1].potential_energy == pytest.approx(states[0].potential_energy, rel=1e-13)
    assert np.abs(states[1].forces - states[0].forces).max() < 1e-12 * np.abs(states[0].forces).max()
    open_space = in_a_field(text, x, None, **numbers).get_state(forces=True)
    assert np.abs(states[0].forces - open_space.forces).max() < 1e-12 * np.abs(states[0].forces).max()


def test_energy_is_kept_by_beads_that_cross_a_field_many_times():
    context = in_a_field("a*cos(2*pi*x/6)*(1 + w); w = exp(-(x*x + y*y)/0.2)", [[0.7, 0.3, 0.0], [2.9, -2.0, 1.0]],
                         velocities=[[5.0, 3.0, 0.0], [-4.0, 7.0, 0.1]], a=1.0)  # fmt: skip
    energies = []
    for _ in range(40):
        context.step(50)
        energies.append(context.get_state(energy=True).total_energy)
    assert np.abs(context.get_state(positions=True).positions[:, :2]).min() > 30.0
    assert np.ptp(energies) < 0.02


def test_fields_that_jump_at_the_sides_are_warned_of():
    x = [[0.7, 0.3, 2.0], [4.0, 1.0, 0.0]]
    says = r"ExternalField: its energies differ by up to .* between x = -3 and 3 nm, .*HarmonicTrap.*UniformField"
    with pytest.warns(mp.BoxWarning, match=says):
        in_a_field("k*(x - x0)^2", x, k=1.0, x0=[0.7, 4.0])
    with pytest.warns(mp.BoxWarning, match="between y = -2.5 and 2.5 nm"):
        in_a_field("sin(2*pi*x/6) + a*y", x, a=0.01)
    # Those of another period than that of the box too, and nothing along what is open, or the same at both ends.
    with pytest.warns(mp.BoxWarning, match="x = -3"):
        in_a_field("sin(2*pi*x/6.1)", x)
    in_a_field("k*z^2 + exp(z)*cos(4*pi*x/6) + 3", x, k=1.0)
    in_a_field("k*max(0, x*x + y*y - 9)", x, k=1.0)


def test_reversal_and_momentum_of_a_patch():
    system, sheet, _ = patch()
    context = mp.Context(system, mp.SplittingIntegrator("BAGAB", 2e-5), threads=1)
    context.set_velocities_to_temperature(kT=KT, seed=3)
    start = context.get_state(positions=True, velocities=True)
    vertices = sheet.beads
    momentum = start.velocities[vertices].sum(axis=0)
    context.step(100)
    there = context.get_state(velocities=True)
    assert np.abs(there.velocities[vertices].sum(axis=0) - momentum).max() < 1e-9 * np.abs(start.velocities).max()
    context.set_velocities(-there.velocities)
    context.step(100)
    back = context.get_state(positions=True)
    assert np.abs(nearest_image(back.positions - start.positions, system.box)).max() < 1e-8


def refused(match, error, build):
    refuses(error, match, build)


def test_features_undefined_in_a_box_are_refused():
    refused("at any distance", ParameterError, lambda: fluid((10.0, 10.0, 10.0), cutoff=None))
    refused(r"must be >= 5, twice", ParameterError, lambda: fluid((4.9, 10.0, 10.0), n=8))
    system, _, _ = patch(points=0)

    def with_force(force):
        one, sheet, _ = patch(points=0)
        one.add_force(force(sheet))
        return mp.Context(one, mp.VerletIntegrator(1e-9))

    volume = {"volume_modulus": 1.0, "volume": 1.0}
    refused("encloses no", ParameterError, lambda: with_force(lambda s: mp.forces.MembraneVolume(s, **volume)))
    open_space = mp.System(system.topology)
    refused("made for a box", TopologyError, lambda: mp.Context(open_space, mp.VerletIntegrator(1e-9)))
    wrong = mp.System(system.topology, box=(500.0, 500.0, None))
    refused("made for a box", TopologyError, lambda: mp.Context(wrong, mp.VerletIntegrator(1e-9)))
    refused("three lengths", ParameterError, lambda: mp.System(system.topology, box=(1.0, 2.0)))
    refused(r"box\[1\] = 0", ParameterError, lambda: mp.System(system.topology, box=(1.0, 0.0, None)))
    topology = mp.Topology()
    topology.add_filament([[0.0, 0, 0], [9.0, 0, 0], [1.0, 0, 0]], node_mass=1.0, constrained=False)
    in_box = mp.System(topology, box=(10.0, None, None))
    refused("more than half the box", TopologyError, lambda: mp.Context(in_box, mp.VerletIntegrator(1e-3)))
    hydro = mp.Topology()
    balls = hydro.add_balls([[0.0, 0, 0], [30.0, 0, 0]], radius=5.0, mass=1.0, friction=1.0)
    in_fluid = mp.System(hydro, box=(100.0, 100.0, None))
    in_fluid.add_hydrodynamics(mp.hydrodynamics.RotnePrager(1e-2, balls))
    integrator = mp.BrownianIntegrator(1e-9, kT=KT)
    refused("all three directions periodic", ParameterError, lambda: mp.Context(in_fluid, integrator))


def test_documents_and_trajectories_hold_the_box(tmp_path):
    system, _, _ = patch(box_z=300.0)
    assert mp.deserialize(mp.serialize(system)).box == system.box
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(2e-5, kT=KT, seed=1))
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5, velocities=True) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(10)
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        frame = trajectory[-1]
        assert frame.box == system.box
        state = frame.state()
        assert state.box == system.box
        again, integrator = trajectory.system()
        assert again.box == system.box
        context = mp.Context(again, integrator)
        context.set_state(state)
        here = simulation.context.get_state(positions=True)
        assert (context.get_state(positions=True).positions == here.positions).all()
        assert (frame.wrapped_positions == here.wrapped_positions).all()


def test_the_box_can_be_set():
    context = fluid((10.0, None, 12.0))
    before = context.get_state(positions=True)
    context.set_box((11.0, None, 12.0))
    after = context.get_state(positions=True, energy=True)
    assert after.box == (11.0, None, 12.0)
    assert after.positions == pytest.approx(before.positions * [1.1, 1.0, 1.0], rel=1e-13)
    assert after.potential_energy == pytest.approx(energy_of_pairs(after.positions, after.box), rel=1e-11)
    context.step(50)
    context.set_box((9.0, None, 12.0), scale=False)
    wrong = [((10.0, 10.0, 12.0), "open along y"), ((4.0, None, 12.0), "twice"), (None, "periodic along x")]
    for box, message in wrong:
        refuses(ParameterError, message, context.set_box, box)
    assert context.get_state().box == (9.0, None, 12.0)


def test_units_are_moved_as_they_are():
    topology = mp.Topology()
    actin = topology.add_filaments([np.arange(5)[:, None] * [2.0, 0.1, 0.0] + [5.0 * k, 3.0, 1.0] for k in range(3)],
                                   node_mass=1.0)  # fmt: skip
    system = mp.System(topology, box=(50.0, 40.0, 30.0))
    context = mp.Context(system, mp.VerletIntegrator(1e-6))
    before = context.get_state(positions=True).positions
    context.set_box((55.0, 40.0, 24.0))
    after = context.get_state(positions=True).positions
    for k in range(3):
        own = actin.beads[5 * k : 5 * k + 5]
        moved = after[own] - before[own]
        centre = before[own].mean(axis=0)
        assert moved == pytest.approx(np.tile(centre * [0.1, 0.0, -0.2], (5, 1)), abs=1e-10)


# Reporters, resuming, and what there is to read of it -------------------------------------------------------------


def test_tables_know_membranes_that_close_through_the_box(tmp_path):
    """Area and volume of a patch and a vesicle as their meshes have them, and the lengths of the box."""
    patch_mesh = rough(mp.TriangleMesh.flat_sheet(8, 8, 10.0, periodic=True))
    topology = mp.Topology()
    patch = topology.add_membrane(patch_mesh, vertex_mass=1e-6, vertex_friction=1e-3, name="patch")
    # Cut by a side, but whole.
    sphere = mp.TriangleMesh.icosphere(12.0, 2).translated([79.0, 0.0, 30.0])
    vesicle = topology.add_membrane(sphere, vertex_mass=1e-6, vertex_friction=1e-3, name="vesicle")
    system = mp.System(topology, box=(*patch_mesh.box[:2], None))
    simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-6, kT=KT, seed=1), threads=1)
    simulation.context.set_velocities_to_temperature(kT=KT, seed=3)
    table = mp.reporters.StateDataReporter(tmp_path / "state.csv", 5, step=True, area=True, volume=True, box=True)
    simulation.reporters.append(table)
    simulation.step(5)
    box = simulation.context.get_state().box
    simulation.context.set_box((1.1 * box[0], box[1], None))
    simulation.step(5)
    simulation.close()
    rows = np.loadtxt(tmp_path / "state.csv", delimiter=",")
    head = (tmp_path / "state.csv").read_text().splitlines()[0]
    assert head == '#"Step","Area (nm^2)","Volume (nm^3)","Box X (nm)","Box Y (nm)","Box Z (nm)"'
    assert rows[:, 3] == pytest.approx([box[0], 1.1 * box[0]])
    assert rows[:, 4] == pytest.approx([box[1], box[1]])
    assert np.isnan(rows[:, 5]).all()
    state = simulation.context.get_state(positions=True)
    ball = sphere.with_vertices(state.positions[vesicle.beads])
    sheet = mp.TriangleMesh(state.positions[patch.beads], patch_mesh.faces, box=state.box)
    assert rows[1, 1] == pytest.approx(ball.area + sheet.area, rel=1e-12)
    assert rows[1, 2] == pytest.approx(ball.volume, rel=1e-12)


def test_tables_of_what_there_is_not(tmp_path):
    def row(system, **wanted):
        simulation = mp.Simulation(system, mp.VerletIntegrator(1e-9))
        with mp.reporters.StateDataReporter(tmp_path / "state.csv", 1, overwrite=True, **wanted) as table:
            simulation.reporters.append(table)
            simulation.step(1)

    refused("no closed membrane", ParameterError, lambda: row(patch(points=0)[0], volume=True))
    topology = mp.Topology()
    topology.add_beads([[0.0, 0.0, 0.0]], mass=1.0)
    refused("the system has none", ParameterError, lambda: row(mp.System(topology), box=True))


def test_trajectory_continues_in_its_box_and_in_no_other(tmp_path):
    def simulation(box):
        return mp.Simulation(fluid(box).system, mp.SplittingIntegrator("BAOAB", 2e-3, kT=1.0, seed=3), threads=1)

    box = (10.0, None, 12.0)
    first = simulation(box)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5) as reporter:
        first.reporters.append(reporter)
        first.step(10)
    first.context.set_box((10.5, None, 12.0))
    first.save_checkpoint(tmp_path / "run.checkpoint")
    again = mp.Simulation.resume(tmp_path / "run.checkpoint", threads=1)
    again.step(5)
    again.close()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert [frame.box for frame in trajectory] == [box, box, (10.5, None, 12.0)]
        assert (trajectory[-1].positions == again.context.get_state(positions=True).positions).all()
        # An analysis that wants them all at once.
        assert trajectory.read("box").tolist() == [[10.0, 0.0, 12.0]] * 2 + [[10.5, 0.0, 12.0]]
    for other in ((10.0, 10.0, 12.0), None):
        stranger = simulation(other) if other else mp.Simulation(mp.System(fluid(box).system.topology),
                                                                 mp.VerletIntegrator(2e-3))  # fmt: skip
        stranger.reporters.append(mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5, append=True))
        refuses(ParameterError, "boundaries", stranger.step, 5)
        stranger.close()


def test_displays_and_info_show_the_box(tmp_path):
    from medyanpy.cli.info import contents

    simulation = mp.Simulation(fluid((10.0, None, 12.0)).system, mp.SplittingIntegrator("BAOAB", 2e-3, kT=1.0, seed=3),
                               threads=1)  # fmt: skip
    reporter = mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 5)
    simulation.reporters.append(reporter)
    simulation.step(5)
    simulation.context.set_box((11.0, None, 12.0))
    simulation.save_checkpoint(tmp_path / "run.checkpoint")
    (tmp_path / "run.json").write_text(mp.serialize(simulation))
    now, before = "11 × open × 12", "10 × open × 12"
    assert now in simulation._repr_html_()
    assert now in simulation.context._repr_html_()
    assert now in simulation.context.get_state()._repr_html_()
    assert before in simulation.system._repr_html_()
    with mp.Trajectory(tmp_path / "run.h5") as trajectory:
        assert before in trajectory._repr_html_()
    assert contents(tmp_path / "run.h5")["box (nm)"] == before
    assert contents(tmp_path / "run.checkpoint")["box (nm)"] == now
    assert contents(tmp_path / "run.json")["box (nm)"] == before
    simulation.close()


def test_points_are_at_one_image_for_ever(tmp_path):
    """Across the sides, after restarts, boxes that change and frames."""
    system, _, proteins = patch(points=40)
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAGAB", 5e-5))
    context = simulation.context
    context.set_velocities_to_temperature(kT=KT, seed=3)
    before = context.get_state(positions=True)
    assert np.abs(before.positions[proteins.beads] - proteins.positions).max() < 1e-9
    for _ in range(60):
        simulation.step(10)
        now = context.get_state(positions=True)
        assert np.abs(now.positions - before.positions)[:, :2].max() < 20.0
        before = now
    far = np.abs(now.positions[proteins.beads] - proteins.positions)[:, :2].max(axis=0)
    assert (far > 0.6 * np.array(system.box[:2])).all()
    simulation.save_checkpoint(tmp_path / "run.ckpt")
    again = mp.Simulation.resume(tmp_path / "run.ckpt")
    other = mp.Context(system, mp.SplittingIntegrator("BAGAB", 5e-5))
    other.set_state(context.get_state(positions=True, velocities=True))
    for context in (simulation.context, again.context, other):
        context.step(10)
    wanted, *others = (one.get_state(positions=True).positions for one in (simulation.context, again.context, other))
    assert all((x == wanted).all() for x in others)
    simulation.context.set_box((*np.multiply(system.box[:2], 1.05), None))
    after = simulation.context.get_state(positions=True).positions
    assert np.abs(after / (wanted * [1.05, 1.05, 1.0]) - 1.0)[:, :2].max() < 1e-6


def test_the_timestep_of_links_to_normals_does_not_know_where_the_seam_is():
    """On a regular sheet all triangles are alike, across the sides of the box or not."""
    mesh = mp.TriangleMesh.flat_sheet(8, 8, 10.0, periodic=True)
    corners = mesh.vertices[mesh.faces]
    across = np.ptp(corners, axis=1).max(axis=1) > 40.0
    assert 0 < across.sum() < len(across)

    def longest(triangle):
        topology = mp.Topology()
        sheet = topology.add_membrane(mesh, vertex_mass=1e-6)
        weights = [[0.2, 0.3, 0.5]]
        point = topology.add_intriangle_points(sheet, triangles=[triangle], barycentric=weights, mass=1e-6)
        beads = topology.add_beads([[0.0, 0, 0], [0.0, 0, 5.0]], mass=1e-6)
        return mp.forces.NormalLinks([beads.beads[0]], [beads.beads[1]], point, 2.0).longest_timestep(topology)

    # Of one orientation.
    alike = [int(np.flatnonzero(across[0::4])[0]) * 4, int(np.flatnonzero(~across[0::4])[0]) * 4]
    assert longest(alike[0]) == pytest.approx(longest(alike[1]), rel=1e-9)
