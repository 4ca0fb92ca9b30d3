"""What other programs read of runs in periodic boxes."""

import json
from importlib import metadata

import numpy as np
import pytest

import medyanpy as mp
from medyanpy._tools.images import box_lengths, nearest_image
from medyanpy.files.particles import Contents

pytestmark = pytest.mark.slow


def needs(module):
    name = module.partition(".")[0]
    return pytest.importorskip(module, reason=f"{name} is not installed: pip install 'medyanpy[viewers]'")


@pytest.fixture(params=["in_a_box", "in_a_slab"])
def both(request):
    return request.getfixturevalue(request.param)


def whole(d, box):
    """Whether vectors are of whole lengths of a box, to rounding."""
    lengths = np.array(box_lengths(box))
    n = np.divide(d, lengths, out=np.zeros_like(d), where=lengths > 0.0)
    return np.abs(d - np.rint(n) * lengths).max() < 1e-9


def longest_sides(vertices, faces):
    corners = vertices[faces]
    return np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max()


def test_each_frame_has_its_box(both):
    with mp.Trajectory(both.path) as trajectory:
        assert [frame.box for frame in trajectory] == [state.box for state in both.states]
        assert [frame.state().box for frame in trajectory] == [state.box for state in both.states]
    if both.states[0].box[2] is not None:
        assert [state.box[2] for state in both.states] == [130.0, 132.0, 134.0, 136.0]


def test_particles_are_shown_by_images_and_whole(both):
    """In every frame: by whole lengths of the box from where they are; chains and vesicles as they are, with their
    centre in the box; the patch between its sides; points in their triangles."""
    topology = both.simulation.topology
    with mp.Trajectory(both.path) as trajectory:
        contents = Contents(trajectory)
        for k, state in enumerate(both.states):
            there = contents.particles(trajectory[k])
            x, shown, lengths = there.positions, there.shown_positions, there.box
            assert (x == state.positions).all()
            assert whole(shown - x, state.box)
            assert np.abs(shown + there.images * lengths - x).max() < 1e-9
            periodic = lengths > 0.0
            for name in ("balls", "beads", "bodies", "patch"):
                own = shown[topology[name].beads][:, periodic if name != "patch" else [0, 1]]
                assert (own >= 0.0).all(), name
                assert (own < lengths[periodic if name != "patch" else [0, 1]]).all(), name
            pieces = [topology["vesicle"].beads, *topology["actin"].beads.reshape(-1, 7)]
            for beads in pieces:
                assert np.abs(np.diff(shown[beads], axis=0) - np.diff(x[beads], axis=0)).max() < 1e-9
                centre = shown[beads].mean(axis=0)[periodic]
                assert ((centre >= 0.0) & (centre < lengths[periodic])).all()
            for name in ("patch", "vesicle"):
                vertices, faces = there.sheet(name)
                assert longest_sides(vertices, faces) < 40.0
                points = topology[f"on {name}"]
                own = topology.rows_in("intriangle", points.beads)
                triangles, weights = state.intriangle.triangles[own], state.intriangle.barycentric[own]
                places = np.einsum("pk,pkc->pc", weights, vertices[faces[triangles]])
                assert np.abs(places - shown[points.beads]).max() < 1e-9


def test_gsd_is_inside_and_its_images_lead_back(both, tmp_path):
    hoomd = needs("gsd.hoomd")
    report = mp.export(both.path, tmp_path / "run.gsd")
    slab = both.states[0].box[2] is None
    assert any("open ones (z)" in one for one in report.left_out) == slab
    with hoomd.open(str(tmp_path / "run.gsd")) as file:
        for frame, state in zip(file, both.states, strict=True):
            box = frame.configuration.box[:3]
            lengths = box_lengths(state.box)
            periodic = lengths > 0.0
            assert (box[periodic] == lengths[periodic].astype(np.float32)).all()
            x = frame.particles.position
            assert (x >= -0.5 * box).all()
            assert (x < 0.5 * box).all()
            assert (frame.particles.image[:, ~periodic] == 0).all()
            assert np.abs(x + frame.particles.image * lengths - state.positions).max() < 1e-3
    assert np.abs(frame.particles.image).max() > 1


def test_gsd_at_the_upper_side(tmp_path):
    """What single precision rounds up to the side of the box is at the other side of it."""
    hoomd = needs("gsd.hoomd")
    topology = mp.Topology()
    topology.add_beads([[5.0 - 1e-9, -5.0, 5.0], [4.0, 0.0, 1.0]], mass=1.0)
    simulation = mp.Simulation(mp.System(topology, box=(10.0, 10.0, 10.0)), mp.VerletIntegrator(0.5))
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(1)
    mp.export(tmp_path / "run.h5", tmp_path / "run.gsd")
    with hoomd.open(str(tmp_path / "run.gsd")) as file:
        assert (file[0].particles.position[0] == -5.0).all()
        assert (file[0].particles.image[0] == [1, 0, 1]).all()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_freud_and_mdtraj_see_the_same_distances(in_a_box, tmp_path):
    freud, mdtraj = needs("freud"), needs("mdtraj")
    mp.export(in_a_box.path, tmp_path / "run.gsd")
    state = in_a_box.states[-1]
    x = state.positions[in_a_box.simulation.topology["balls"].beads]
    wanted = np.linalg.norm(nearest_image(x[1:] - x[0], state.box), axis=1)
    box = freud.Box.from_box(box_lengths(state.box))
    assert box.compute_distances(np.repeat(x[:1], len(x) - 1, axis=0), x[1:]) == pytest.approx(wanted, rel=1e-4)
    read = mdtraj.load(str(tmp_path / "run.gsd"), top=None)
    own = in_a_box.simulation.topology["balls"].beads
    pairs = np.column_stack([np.full(len(own) - 1, own[0]), own[1:]])
    assert mdtraj.compute_distances(read, pairs, periodic=True)[-1] == pytest.approx(wanted, rel=1e-3)


def test_xyz_has_a_lattice_and_positions_as_they_are(both, tmp_path):
    mp.export(both.path, tmp_path / "run.xyz")
    lines = (tmp_path / "run.xyz").read_text().splitlines()
    n = int(lines[0])
    for k, state in enumerate(both.states):
        head = lines[k * (n + 2) + 1]
        lattice = np.reshape([float(x) for x in head.split('Lattice="')[1].split('"')[0].split()], (3, 3))
        assert head.endswith('pbc="T T F"' if state.box[2] is None else 'pbc="T T T"')
        lengths = box_lengths(state.box)
        assert (np.diag(lattice)[lengths > 0.0] == lengths[lengths > 0.0]).all()
        assert (np.diag(lattice) > 0.0).all()
        assert np.count_nonzero(lattice) == 3
        x = np.array([line.split()[1:4] for line in lines[k * (n + 2) + 2 : (k + 1) * (n + 2)]], float)
        assert (x == state.positions).all()


def test_pdb_has_a_box_where_all_directions_do(in_a_box, in_a_slab, tmp_path):
    report = mp.export(in_a_box.path, tmp_path / "box.pdb")
    records = [line for line in (tmp_path / "box.pdb").read_text().splitlines() if line.startswith("CRYST1")]
    assert records == [
        f"CRYST1 1400.000 1039.230 {1300.0 + 20.0 * k:8.3f}  90.00  90.00  90.00 P 1           1" for k in range(4)
    ]
    assert not any("the periodic box" in one for one in report.left_out)
    report = mp.export(in_a_box.path, tmp_path / "one.pdb", frames=slice(-1, None))
    assert not any("box" in one for one in report.left_out)
    report = mp.export(in_a_slab.path, tmp_path / "slab.pdb")
    assert "CRYST1" not in (tmp_path / "slab.pdb").read_text()
    assert any("without the periodic box (140 × 103.923 × open nm)" in one for one in report.left_out)


def test_ply_has_whole_triangles(both, tmp_path):
    report = mp.export(both.path, tmp_path / "run.ply")
    assert any("images of vertices" in one for one in report.left_out)
    topology = both.simulation.topology
    for k, state in enumerate(both.states):
        for name in ("patch", "vesicle"):
            path = tmp_path / f"run.{name}.{k:04d}.ply"
            read = mp.TriangleMesh.from_file(path)
            handle = topology[name]
            n = len(handle)
            assert whole(read.vertices[:n] - state.positions[handle.beads], state.box)
            assert longest_sides(read.vertices, read.faces) < 40.0
            now = handle.mesh.with_vertices(state.positions[handle.beads])
            assert read.area == pytest.approx(now.area, rel=1e-12)
            assert len(read.faces) == len(now.faces)
            # Of the sheet there are images along two sides, and of the vesicle none.
            assert len(read.vertices) - n == (14 + 12 + 1 if name == "patch" else 0)
            sides = " ".join("open" if side is None else repr(side) for side in state.box)
            assert f"comment periodic box {sides}\n".encode() in path.read_bytes()[:300]


def test_simularium_has_the_size_of_the_box(both, tmp_path):
    mp.export(both.path, tmp_path / "run.simularium")
    data = json.loads((tmp_path / "run.simularium").read_text())
    info = data["trajectoryInfo"]
    nm, size = info["spatialUnits"]["magnitude"], info["size"]
    largest = max(box_lengths(state.box)[2] for state in both.states)
    assert size["x"] * nm == pytest.approx(140.0)
    assert size["y"] * nm == pytest.approx(both.states[0].box[1])
    if largest:
        assert size["z"] * nm == pytest.approx(largest)
    numbers = np.array(data["spatialData"]["bundleData"][-1]["data"])
    balls = [k for k, kind in info["typeMapping"].items() if kind["name"] == "balls"]
    start, places = 0, []
    while start < len(numbers):
        if numbers[start + 2] == int(balls[0]):
            places.append(numbers[start + 3 : start + 6])
        start += 11 + int(numbers[start + 10])
    state = both.states[-1]
    half = 0.5 * np.array([size[c] for c in "xyz"])
    assert (np.abs(places) <= half * (1.0 + 1e-6)).all()
    x = state.positions[both.simulation.topology["balls"].beads]
    there = np.array(places) * nm
    apart = nearest_image((there - there[0]) - (x - x[0]), state.box)
    assert np.abs(apart).max() < 1e-3


@pytest.mark.parametrize("flips", [False, True])
def test_vtk_leaves_out_what_crosses_sides(both, tmp_path, flips):
    pyvista = needs("pyvista")
    path = both.path
    if flips:
        path = tmp_path / "flips.h5"
        simulation = both.simulation
        with mp.reporters.TrajectoryReporter(path, 1, faces=True) as reporter:
            again = mp.Simulation(simulation.system, mp.BAGOGABIntegrator(1e-7, kT=4.1, seed=3), threads=1)
            again.reporters.append(reporter)
            again.step(3)
    report = mp.export(path, tmp_path / "run.vtkhdf")
    assert any("across the sides of the box (patch)" in one for one in report.left_out)
    with mp.Trajectory(path) as trajectory:
        frame = trajectory[-1]
        handle = frame.handles["patch"]
        x, faces, box = frame.positions[handle.beads], frame.faces["patch"], frame.box
    d = x[faces] - np.roll(x[faces], 1, axis=1)
    kept = faces[(nearest_image(d, box) == d).all(axis=(1, 2))]
    assert len(kept) == len(faces) - 2 * (14 + 12 - 1)
    reader = pyvista.get_reader(str(tmp_path / "run.vtkhdf"))
    for k in range(reader.reader.GetNumberOfSteps()):
        reader.reader.SetStep(k)
        mesh = reader.read()
        assert (mesh.regular_faces == kept).all()
    assert (mesh.points == x.astype(mesh.points.dtype)).all()
    for c, axis in enumerate("xyz"):
        assert mesh.field_data[f"box_{axis}"] == pytest.approx([box_lengths(box)[c]])
    vesicle = pyvista.read(str(tmp_path / "run.vesicle.vtkhdf"))
    assert vesicle.n_cells == 80


def test_ovito_has_a_cell_and_images(both):
    io = needs("ovito.io")
    from medyanpy.ovito import TrajectoryReader

    points = metadata.entry_points(group="OVITO.FileReader")
    own = {} if any(point.value == "medyanpy.ovito:TrajectoryReader" for point in points) else {
        "input_format": TrajectoryReader
    }
    pipeline = io.import_file(str(both.path), **own)
    for k, state in enumerate(both.states):
        data = pipeline.compute(k)
        lengths = box_lengths(state.box)
        periodic = lengths > 0.0
        assert data.cell.pbc == tuple(periodic.tolist())
        assert (np.diag(data.cell[:, :3])[periodic] == lengths[periodic]).all()
        assert (data.cell[:, 3][periodic] == 0.0).all()
        x, image = data.particles.positions[...], data.particles["Periodic Image"][...]
        assert np.abs(x + image * lengths - state.positions).max() < 1e-9
        pairs, shift = data.particles.bonds.topology[...], data.particles.bonds["Periodic Image"][...]
        d = x[pairs[:, 1]] + shift * lengths - x[pairs[:, 0]]
        assert np.abs(d - nearest_image(d, state.box)).max() < 1e-9
        assert shift.any()
        mesh = data.triangle_meshes["patch"]
        assert mesh.face_count == 336
        assert longest_sides(mesh.get_vertices(), mesh.get_faces()) < 40.0
        assert data.triangle_meshes["vesicle"].vertex_count == 42


def test_mdanalysis_has_dimensions_where_all_directions_do(both):
    analysis = needs("MDAnalysis")
    import medyanpy.mdanalysis  # noqa: F401

    universe = analysis.Universe(str(both.path))
    for ts, state in zip(universe.trajectory, both.states, strict=True):
        lengths = 10.0 * box_lengths(state.box)
        assert ts.data["box"] == pytest.approx(lengths, rel=1e-12)
        assert ts.positions == pytest.approx(10.0 * state.positions, abs=1e-2)
        if state.box[2] is None:
            assert ts.dimensions is None
        else:
            assert ts.dimensions == pytest.approx([*lengths, 90.0, 90.0, 90.0], rel=1e-6)


@pytest.mark.parametrize("box_z", [8.0, None])
def test_the_reader_of_h5md_of_mdanalysis_opens_it(tmp_path, box_z):
    h5md = needs("MDAnalysis.coordinates.H5MD")
    topology = mp.Topology()
    topology.add_beads(np.random.default_rng(1).uniform(0.0, 9.0, (20, 3)), mass=1.0)
    simulation = mp.Simulation(mp.System(topology, box=(10.0, 9.0, box_z)), mp.VerletIntegrator(0.5))
    boxes = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5md", 1) as reporter:
        simulation.reporters.append(reporter)
        for k in range(3):
            simulation.context.set_box((10.0 + k, 9.0, box_z), scale=False)
            simulation.step(1)
            boxes.append([100.0 + 10.0 * k, 90.0, 10.0 * (box_z or 0.0)])
    with h5md.H5MDReader(str(tmp_path / "run.h5md")) as reader:
        for ts, box in zip(reader, boxes, strict=True):
            assert ts.dimensions == pytest.approx([*box, 90.0, 90.0, 90.0], rel=1e-6)


def test_vtk_and_ply_where_edges_flip_across_sides(tmp_path):
    """Each frame has its triangles, without those that cross sides in it."""
    pyvista = needs("pyvista")
    topology = mp.Topology()
    mesh = mp.TriangleMesh.flat_sheet(8, 6, 10.0, periodic=True)
    patch = topology.add_membrane(mesh, vertex_mass=1.0, name="patch")
    simulation = mp.Simulation(mp.System(topology, box=mesh.box), mp.VerletIntegrator(1e-3), threads=1)
    faces, crossings = [], []
    d = mesh.vertices[mesh.edges[:, 1]] - mesh.vertices[mesh.edges[:, 0]]
    crosses = (nearest_image(d, mesh.box) != d).any(axis=1)
    flipped = mesh.edges[[*np.flatnonzero(crosses)[[0, 11]], *np.flatnonzero(~crosses)[[3, 20, 40]]]]
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        for edge in flipped:
            simulation.context.flip_edges(patch, [edge])
            simulation.step(1)
            state = simulation.context.get_state(positions=True)
            faces.append(state.faces["patch"])
            corners = state.positions[faces[-1]]
            side = corners - np.roll(corners, 1, axis=1)
            crossings.append((nearest_image(side, mesh.box) != side).any(axis=(1, 2)))
    simulation.close()
    assert len({found[~crosses].tobytes() for found, crosses in zip(faces, crossings, strict=True)}) == 4
    mp.export(tmp_path / "run.h5", tmp_path / "run.vtkhdf")
    mp.export(tmp_path / "run.h5", tmp_path / "run.ply")
    reader = pyvista.get_reader(str(tmp_path / "run.vtkhdf"))
    for k, (own, crosses) in enumerate(zip(faces, crossings, strict=True)):
        reader.reader.SetStep(k)
        assert (reader.read().regular_faces == own[~crosses]).all()
        read = mp.TriangleMesh.from_file(tmp_path / f"run.{k:04d}.ply")
        assert read.area == pytest.approx(mesh.area, rel=1e-12)
        assert longest_sides(read.vertices, read.faces) < 20.0
        assert (read.faces[~crosses] == own[~crosses]).all()
