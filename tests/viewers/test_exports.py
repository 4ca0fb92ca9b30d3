"""Trajectories in the formats of other programs, read back by these."""

import json
import re
import shutil
from itertools import pairwise

import numpy as np
import pytest
from viewers.exported import needs, needs_writer_of, write_one

import medyanpy as mp
from medyanpy.files.exports import exporting

pytestmark = pytest.mark.slow


@pytest.fixture(params=["run", "changing"])
def both(request):
    return request.getfixturevalue(request.param)


def there(run, state):
    """Rows of those that are there, handle after handle, and the number of the handle of each."""
    handles = run.simulation.topology.handles
    rows = [h.kind.all_rows[h.kind.all_rows < len(state.positions)] for h in handles]
    rows = [own[state.alive[own]] for own in rows]
    return np.concatenate(rows), np.repeat(np.arange(len(handles)), list(map(len, rows)))


def names(run):
    return [handle.name for handle in run.simulation.topology.handles]


def meant(report, *words):
    """That sentences name these, and are sentences."""
    text = " ".join(report.left_out)
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in report.left_out)
    for word in words:
        assert word in text, f"{word} is not named in {text}"


# GSD ----------------------------------------------------------------------------------------------------------------


def test_gsd_holds_everything_of_particles(both, tmp_path):
    hoomd = needs("gsd.hoomd")
    report = mp.export(both.path, tmp_path / "run.gsd")
    assert (report.paths, report.n_frames) == ((tmp_path / "run.gsd",), len(both.states))
    meant(report, "places in triangles (proteins)", "crosslinks", "double precision")
    with hoomd.open(tmp_path / "run.gsd") as file:
        assert len(file) == len(both.states)
        for frame, state in zip(file, both.states, strict=True):
            rows, kinds = there(both, state)
            particles = frame.particles
            assert frame.configuration.step == state.step
            assert particles.types == names(both)
            np.testing.assert_array_equal(particles.typeid, kinds)
            np.testing.assert_array_equal(frame.log["particles/id"], state.ids[rows])
            np.testing.assert_allclose(particles.position, state.positions[rows], rtol=1e-6, atol=1e-4)
            np.testing.assert_allclose(particles.velocity, state.velocities[rows], rtol=1e-6)
            assert frame.log["time"][0] == pytest.approx(state.time, rel=1e-12)
            assert frame.log["potential_energy"][0] == state.potential_energy
            assert frame.pairs.N == len(state.jumps["crosslinks"]["links"])


def test_gsd_of_balls_bodies_and_meshes(run, tmp_path):
    hoomd = needs("gsd.hoomd")
    mp.export(run.path, tmp_path / "run.gsd", frames=slice(-1, None))
    topology, state = run.simulation.topology, run.states[-1]
    with hoomd.open(tmp_path / "run.gsd") as file:
        frame = file[0]
    particles = frame.particles
    balls, bodies, rod = topology["vesicles"], topology["bodies"], topology["rod"]
    np.testing.assert_allclose(particles.diameter[balls.beads], 2.0 * balls.radius, rtol=1e-6)
    assert (particles.diameter[topology["proteins"].beads] == 0.0).all()
    np.testing.assert_allclose(particles.mass[bodies.beads], 1e-7, rtol=1e-6)
    for handle in (bodies, rod):
        q, L = state.orientations[handle.rows], state.angular_momenta[handle.rows]
        np.testing.assert_allclose(particles.orientation[handle.beads], q, atol=1e-6)
        np.testing.assert_allclose(particles.moment_inertia[handle.beads], handle.inertia, rtol=1e-6)
        # L = q* p / 2, HOOMD's own way back, written out.
        p = particles.angmom[handle.beads]
        back = np.column_stack([
            q[:, 0] * p[:, 1] - q[:, 1] * p[:, 0] - q[:, 2] * p[:, 3] + q[:, 3] * p[:, 2],
            q[:, 0] * p[:, 2] + q[:, 1] * p[:, 3] - q[:, 2] * p[:, 0] - q[:, 3] * p[:, 1],
            q[:, 0] * p[:, 3] - q[:, 1] * p[:, 2] + q[:, 2] * p[:, 1] - q[:, 3] * p[:, 0],
        ])  # fmt: skip
        np.testing.assert_allclose(0.5 * back, L, rtol=1e-4, atol=1e-6 * np.abs(L).max())
    shape = particles.type_shapes[5]
    assert shape["type"] == "Ellipsoid"
    np.testing.assert_allclose([shape[k] for k in "abc"], bodies.kind.beside_rows()["semi_axes"][0][0])
    for number, name in ((0, "vesicle"), (1, "patch")):
        mesh, first = topology[name].mesh, topology[name].beads[0]
        np.testing.assert_array_equal(frame.angles.group[frame.angles.typeid == number], mesh.faces + first)
        kind = frame.bonds.types.index(name)
        edges = np.sort(frame.bonds.group[frame.bonds.typeid == kind], axis=1)
        assert set(map(tuple, edges.tolist())) == set(map(tuple, (mesh.edges + first).tolist()))
    # No periodic copy is nearer than what it is a copy of.
    assert frame.configuration.box[0] >= 4.0 * max(np.abs(s.positions).max() for s in run.states[-1:])


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_four_programs_read_the_same_from_gsd(run, tmp_path):
    needs("gsd.hoomd")
    io, mda, mdtraj, freud = needs("ovito.io"), needs("MDAnalysis"), needs("mdtraj"), needs("freud")
    path = tmp_path / "run.gsd"
    mp.export(run.path, path)
    n, n_bonds = run.simulation.topology.n_beads, 24 + 8 + 480 + 120
    pipeline = io.import_file(str(path))
    assert pipeline.num_frames == len(run.states)
    last = pipeline.compute(len(run.states) - 1)
    assert (last.particles.count, last.particles.bonds.count) == (n, n_bonds)
    bodies = run.simulation.topology["bodies"].beads
    assert (last.particles["Aspherical Shape"][bodies] > 0.0).all()
    universe = mda.Universe(str(path))
    assert (len(universe.atoms), len(universe.bonds), len(universe.trajectory)) == (n, n_bonds, len(run.states))
    assert set(universe.atoms.types) == set(names(run))
    other = mdtraj.load(str(path))
    assert (other.n_atoms, other.topology.n_bonds, other.n_frames) == (n, n_bonds, len(run.states))
    universe.trajectory[-1]
    x = run.states[-1].positions
    np.testing.assert_allclose(last.particles.positions, x, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(universe.atoms.positions, x, rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(other.xyz[-1], x, rtol=1e-6, atol=1e-4)
    with needs("gsd.hoomd").open(path) as file:
        frame = file[-1]
        query = freud.AABBQuery.from_system(frame)
        assert len(query.points) == n
        pairs = frame.bonds.group
        away = query.box.compute_distances(query.points[pairs[:, 0]], query.points[pairs[:, 1]])
    assert len(away) == n_bonds
    np.testing.assert_allclose(away, np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1), rtol=1e-3)


def test_ovito_and_freud_read_gsd_of_what_comes_and_goes(changing, tmp_path):
    needs("gsd.hoomd")
    io = needs("ovito.io")
    report = mp.export(changing.path, tmp_path / "run.gsd")
    meant(report, "equal numbers")
    pipeline = io.import_file(str(tmp_path / "run.gsd"))
    counts = [pipeline.compute(k).particles.count for k in range(pipeline.num_frames)]
    assert counts == [int(state.alive.sum()) for state in changing.states]
    assert len(set(counts)) > 2


# Extended XYZ -------------------------------------------------------------------------------------------------------


def frames_of_xyz(path):
    lines = path.read_text().splitlines()
    while lines:
        n = int(lines[0])
        yield lines[1], [line.split() for line in lines[2 : 2 + n]]
        del lines[: 2 + n]


def test_xyz_keeps_every_bit(both, tmp_path):
    report = mp.export(both.path, tmp_path / "run.xyz")
    meant(report, "triangles (vesicle, patch)", "links (actin, rod)", "links that jumps bind (crosslinks)")
    found = list(frames_of_xyz(tmp_path / "run.xyz"))
    assert len(found) == len(both.states)
    for (head, table), state in zip(found, both.states, strict=True):
        rows, kinds = there(both, state)
        assert f"Step={state.step} " in head
        assert f"potential_energy={state.potential_energy!r}" in head
        assert "Lattice" not in head
        columns = [(name, int(n)) for name, _, n in re.findall(r"(\w+):([SRI]):(\d)", head)]
        assert sum(n for _, n in columns) == len(table[0])
        assert [row[0] for row in table] == [row[-1] for row in table] == [names(both)[k] for k in kinds]
        numbers = np.array([row[1:-1] for row in table], float)
        start = {name: sum(n for _, n in columns[1:k]) for k, (name, _) in enumerate(columns) if k}
        np.testing.assert_array_equal(numbers[:, start["pos"] : start["pos"] + 3], state.positions[rows])
        np.testing.assert_array_equal(numbers[:, start["velo"] : start["velo"] + 3], state.velocities[rows])
        np.testing.assert_array_equal(numbers[:, start["id"]], state.ids[rows])
        radius = numbers[:, start["radius"]]
        assert radius[kinds == 4].tolist() == [20.0] * 5 + [40.0] * 5


def test_ovito_reads_xyz(both, tmp_path):
    io = needs("ovito.io")
    mp.export(both.path, tmp_path / "run.xyz")
    pipeline = io.import_file(str(tmp_path / "run.xyz"))
    for k, state in enumerate(both.states):
        data = pipeline.compute(k)
        rows, kinds = there(both, state)
        np.testing.assert_allclose(data.particles.positions, state.positions[rows], rtol=1e-12)
        assert {t.name for t in data.particles.particle_types.types} == set(names(both))
        turns = data.particles["Orientation"][kinds == 5][:, [3, 0, 1, 2]]
        np.testing.assert_allclose(turns, state.orientations[both.simulation.topology["bodies"].rows], atol=1e-6)


def test_names_of_several_words(tmp_path):
    """Stay apart, in texts of words and in names of files."""
    needs("vtk")
    topology = mp.Topology()
    for k, name in enumerate(("a b", "a_b", "a/b", "ä b")):
        topology.add_beads([[float(k), 0.0, 0.0]], mass=1.0, name=name)
    write_one(topology, tmp_path / "run.h5")
    mp.export(tmp_path / "run.h5", tmp_path / "run.xyz")
    (_, table), *_ = frames_of_xyz(tmp_path / "run.xyz")
    assert [row[0] for row in table] == ["a_b", "a_b_2", "a/b", "ä_b"]
    report = mp.export(tmp_path / "run.h5", tmp_path / "run.vtkhdf")
    assert [p.name for p in report.paths] == ["run.vtkhdf", "run.a_b.vtkhdf", "run.a_b_2.vtkhdf", "run.ä_b.vtkhdf"]
    assert [at(reader_of(path), 0).points[0, 0] for path in report.paths] == [0.0, 1.0, 2.0, 3.0]


# PDB ----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Element information is missing", "ignore::PendingDeprecationWarning")
def test_pdb_in_mdanalysis_and_mdtraj(both, tmp_path):
    mda, mdtraj = needs("MDAnalysis"), needs("mdtraj")
    path = tmp_path / "run.pdb"
    report = mp.export(both.path, path)
    meant(report, "velocities", "triangles (vesicle, patch)", "rounded to 0.001 Å")
    ever = np.zeros(both.simulation.topology.n_beads, bool)
    for state in both.states:
        ever[there(both, state)[0]] = True
    universe = mda.Universe(str(path))
    other = mdtraj.load(str(path))
    assert len(universe.atoms) == other.n_atoms == ever.sum()
    assert len(universe.trajectory) == other.n_frames == len(both.states)
    assert len(universe.bonds) == other.topology.n_bonds == 24 + 8 + 480 + 120
    for ts, state, xyz in zip(universe.trajectory, both.states, other.xyz, strict=True):
        n = len(state.positions)
        own = np.flatnonzero(ever)
        alive = (own < n) & np.append(state.alive, np.zeros(len(ever) - n, bool))[own]
        x = state.positions[own[alive]]
        np.testing.assert_allclose(ts.positions[alive], 10.0 * x, atol=0.051)
        np.testing.assert_allclose(xyz[alive], x, atol=0.0051)
        # Where nobody is, there was or will be somebody.
        assert np.isfinite(ts.positions).all()
        np.testing.assert_array_equal(universe.trajectory.ts.data["occupancy"], alive)
    chains = universe.select_atoms("chainID d")
    assert len(chains) == (30 if len(ever) == 316 else len(chains))
    assert (len(chains.residues) == 6) or len(ever) > 316


def test_pdb_has_its_columns(run, tmp_path):
    mp.export(run.path, tmp_path / "run.pdb", frames=slice(0, 1))
    lines = (tmp_path / "run.pdb").read_text().splitlines()
    atoms = [line for line in lines if line.startswith("ATOM")]
    assert len(atoms) == 316
    assert {len(line) for line in atoms} == {76}
    x = np.array([[float(line[30 + 8 * c : 38 + 8 * c]) for c in range(3)] for line in atoms])
    np.testing.assert_allclose(x, 10.0 * run.states[0].positions, atol=0.051)
    assert all(line[54:60] == "  1.00" for line in atoms)


def test_pdb_says_what_is_too_much(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.zeros((100_000, 3)), mass=1.0)
    write_one(topology, tmp_path / "many.h5")
    with pytest.raises(mp.ParameterError, match=r"has 100000 beads, and PDB files hold at most 99999"):
        mp.export(tmp_path / "many.h5", tmp_path / "many.pdb")
    topology = mp.Topology()
    topology.add_beads([[-2e4, 0, 0], [5.0, 0, 0]], mass=1.0)
    write_one(topology, tmp_path / "far.h5")
    with pytest.raises(mp.ParameterError, match=r"coordinates from -20000 to 5 nm, and PDB files hold -9999.99 to"):
        mp.export(tmp_path / "far.h5", tmp_path / "far.pdb")
    assert {p.name for p in tmp_path.iterdir()} == {"many.h5", "far.h5"}


# PLY ----------------------------------------------------------------------------------------------------------------


def test_ply_of_each_membrane_and_frame(run, tmp_path):
    report = mp.export(run.path, tmp_path / "run.ply", frames=slice(2, 5, 2))
    assert [p.name for p in report.paths] == [
        f"run.{name}.{k:04d}.ply" for k in (2, 4) for name in ("vesicle", "patch")
    ]
    meant(report, "proteins, actin, vesicles, bodies, rod, beads")
    for path in report.paths:
        _, name, k, _ = path.name.split(".")
        mesh, handle = mp.TriangleMesh.from_file(path), run.simulation.topology[name]
        np.testing.assert_array_equal(mesh.vertices, run.states[int(k)].positions[handle.beads])
        np.testing.assert_array_equal(mesh.faces, handle.mesh.faces)


def test_ply_of_one(tmp_path):
    topology = mp.Topology()
    topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0)
    write_one(topology, tmp_path / "run.h5", 3)
    report = mp.export(tmp_path / "run.h5", tmp_path / "run.ply", frames=slice(-1, None))
    assert report.paths == (tmp_path / "run.ply",)
    assert "1 frame in" in str(report)
    pyvista = needs("pyvista")
    assert pyvista.read(tmp_path / "run.ply").volume == pytest.approx(mp.TriangleMesh.icosphere(5.0, 1).volume)


def test_ply_without_membrane(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.eye(3), mass=1.0)
    write_one(topology, tmp_path / "run.h5")
    with pytest.raises(mp.ParameterError, match=r"run\.h5 has no membrane, and PLY files hold nothing else"):
        mp.export(tmp_path / "run.h5", tmp_path / "run.ply")


# Simularium ---------------------------------------------------------------------------------------------------------


def agents(data):
    """What each is, its number, type, place, radius and points."""
    k = 0
    while k < len(data):
        n = int(data[k + 10])
        points = np.reshape(data[k + 11 : k + 11 + n], (-1, 3))
        yield int(data[k]), int(data[k + 1]), int(data[k + 2]), np.array(data[k + 3 : k + 6]), data[k + 9], points
        k += 11 + n


def test_simularium(both, tmp_path):
    report = mp.export(both.path, tmp_path / "run.simularium")
    meant(report, "triangles (vesicle, patch)", "small balls (vesicle, patch)", "orientations (bodies, rod)")
    found = json.loads((tmp_path / "run.simularium").read_text())
    info, bundle = found["trajectoryInfo"], found["spatialData"]["bundleData"]
    assert info["totalSteps"] == found["spatialData"]["bundleSize"] == len(bundle) == len(both.states)
    assert info["timeStepSize"] == pytest.approx(1e-5)
    kinds = {int(k): one for k, one in info["typeMapping"].items()}
    assert [kinds[k]["name"] for k in range(len(kinds))] == names(both)
    assert {one["name"] for one in kinds.values() if one["geometry"]["displayType"] == "FIBER"} == {"actin", "rod"}
    nm = info["spatialUnits"]["magnitude"]
    everywhere = np.concatenate([state.positions[state.alive] for state in both.states])
    centre = 0.5 * (everywhere.min(axis=0) + everywhere.max(axis=0))
    for k, (one, state) in enumerate(zip(bundle, both.states, strict=True)):
        assert (one["frameNumber"], one["time"]) == (k, pytest.approx(state.time, rel=1e-12))
        row = {int(i): r for r, i in enumerate(state.ids) if i >= 0}
        numbers, seen = set(), 0
        for what, number, kind, x, radius, points in agents(one["data"]):
            assert number not in numbers
            numbers.add(number)
            fibre = kinds[kind]["geometry"]["displayType"] == "FIBER"
            assert what == (1001 if fibre else 1000)
            assert radius > 0.0
            seen += len(points) if fibre else 1
            own = state.positions[row[number]]
            np.testing.assert_allclose((points[0] if fibre else x) * nm + centre, own, atol=1e-5 * 64 * nm)
            if kinds[kind]["name"] == "vesicles":
                assert round(radius * nm, 3) in (20.0, 40.0)
        assert seen == state.alive.sum()
    plots = {one["layout"]["title"]: one["data"][0]["y"] for one in found["plotData"]["data"]}
    assert plots["potential energy"] == [state.potential_energy for state in both.states]


# VTKHDF -------------------------------------------------------------------------------------------------------------


def reader_of(path):
    reader = needs("vtk").vtkHDFReader()
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    return reader


def at(reader, k):
    reader.SetStep(k)
    reader.Update()
    return needs("pyvista").wrap(reader.GetOutput())


def test_vtk_sees_the_trajectory_itself(both, tmp_path, monkeypatch):
    needs("vtk")
    folder = tmp_path / "run"
    folder.mkdir()
    for path in both.path.parent.glob("run*.h5"):
        # HDF5 has a meaning for % in names of files.
        shutil.copy(path, folder / path.name.replace("run", "run %b"))
    report = mp.export(folder / "run %b.h5", folder / "run.vtkhdf")
    assert [p.name for p in report.paths] == ["run.vtkhdf", *(f"run.{name}.vtkhdf" for name in names(both)[1:])]
    meant(report, "crosslinks")
    # Together they may be moved, and are found from wherever one works.
    moved = folder.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    trajectory = mp.Trajectory(both.path)
    for path, name in zip(report.paths, names(both), strict=True):
        reader = reader_of(moved / path.name)
        assert reader.GetNumberOfSteps() == len(both.states)
        for k, state in enumerate(both.states):
            mesh, frame = at(reader, k), trajectory[k]
            handle = frame.handles[name]
            np.testing.assert_array_equal(mesh.points, state.positions[handle.beads])
            np.testing.assert_array_equal(mesh.point_data["velocities"], state.velocities[handle.beads])
            assert mesh.field_data["Time"][0] == state.time
            if handle.faces is not None:
                np.testing.assert_array_equal(mesh.regular_faces, frame.faces[name])
            elif handle.links is not None:
                assert mesh.n_cells == mesh.n_lines == len(frame.chains(handle))
                links = [pair for line in lines_in(mesh) for pair in pairwise(line)]
                np.testing.assert_array_equal(links, frame.beside(handle)["links"])
            else:
                points = mesh.verts.reshape(-1, 2)[:, 1]
                np.testing.assert_array_equal(points, np.flatnonzero(state.alive[handle.beads]))
            if handle.rows_of == "oriented":
                np.testing.assert_array_equal(mesh.point_data["orientations"], state.orientations[handle.row_numbers])
            if handle.radius is not None:
                np.testing.assert_array_equal(mesh.point_data["radius"], handle.radius)
            if name == names(both)[0]:
                assert mesh.field_data["potential_energy"][0] == state.potential_energy
                assert mesh.field_data["energy of springs of vesicle"][0] == state.energies["springs of vesicle"]
    trajectory.close()


def lines_in(mesh):
    cells, k = mesh.lines, 0
    while k < len(cells):
        yield cells[k + 1 : k + 1 + cells[k]].tolist()
        k += 1 + cells[k]


def test_pyvista_opens_it(run, tmp_path):
    pyvista = needs("pyvista")
    mp.export(run.path, tmp_path / "run.vtkhdf")
    mesh = pyvista.read(tmp_path / "run.vtkhdf")
    handle = run.simulation.topology["vesicle"]
    x = run.states[0].positions[handle.beads]
    np.testing.assert_array_equal(mesh.points, x)
    assert mesh.volume == pytest.approx(mp.TriangleMesh(x, handle.mesh.faces).volume, rel=1e-9)


def test_every_third_frame_of_it(run, changing, tmp_path):
    needs("vtk")
    for one, frames in ((run, slice(1, None, 3)), (changing, slice(0, 8, 3)), (changing, slice(5, 6))):
        chosen = one.states[frames]
        report = mp.export(one.path, tmp_path / "some.vtkhdf", frames=frames, overwrite=True)
        assert report.n_frames == len(chosen)
        for path, name in zip(report.paths, names(one), strict=True):
            reader = reader_of(path)
            for k, state in enumerate(chosen):
                mesh = at(reader, k)
                rows = one.simulation.topology[name].kind.all_rows
                rows = rows[rows < len(state.positions)][: mesh.n_points]
                np.testing.assert_array_equal(mesh.points, state.positions[rows])


@pytest.mark.frictionless
def test_flipped_edges_in_vtk(tmp_path):
    """Triangles change from frame to frame, and are not copied either; before the first flip they are the mesh's."""
    needs("vtk")
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 2), vertex_mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5), threads=1)
    frames = []
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        for k in range(7):
            if k > 1:
                simulation.context.flip_edges(membrane, [membrane.mesh.edges[20 * k]])
            simulation.step(1)
            frames.append(simulation.context.get_state(positions=True).faces[membrane.name])
    simulation.close()
    assert len({found.tobytes() for found in frames}) == 6
    report = mp.export(tmp_path / "run.h5", tmp_path / "run.vtkhdf")
    reader = reader_of(report.paths[0])
    for k, faces in enumerate(frames):
        np.testing.assert_array_equal(at(reader, k).regular_faces, faces)
    # Written by themselves.
    report = mp.export(tmp_path / "run.h5", tmp_path / "run.ply", frames=slice(4, 5))
    np.testing.assert_array_equal(mp.TriangleMesh.from_file(report.paths[0]).faces, frames[4])


def test_vtkhdf_copies_nothing(tmp_path):
    """Beyond what every file begins with, a frame costs less than thirty bytes; in all under 1 kB at 100 frames."""
    topology = mp.Topology()
    topology.add_membrane(mp.TriangleMesh.icosphere(50.0, 3), vertex_mass=1.0)
    write_one(topology, tmp_path / "run.h5", 1000)
    sizes = []
    for frames in (100, 1000):
        report = mp.export(tmp_path / "run.h5", tmp_path / "run.vtkhdf", frames=slice(frames), overwrite=True)
        sizes.append(sum(path.stat().st_size for path in report.paths))
    assert sizes[1] - sizes[0] < 900 * 30
    assert sizes[0] < 100 * 1000


def test_vtk_needs_files_that_are_closed(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.eye(3), mass=1.0)
    simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5), threads=1)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
        reporter.flush()
        shutil.copy(tmp_path / "run.h5", tmp_path / "left.h5")
        with pytest.raises(mp.ParameterError, match="is being written, or was left by a crash"):
            mp.export(tmp_path / "left.h5", tmp_path / "left.vtkhdf")
        # Others only read what is there.
        assert mp.export(tmp_path / "left.h5", tmp_path / "left.xyz").n_frames == 2


def test_directions_are_no_particles(tmp_path):
    """Directors of filaments are directions, whatever their rows hold."""
    topology = mp.Topology()
    nodes = np.arange(5)[:, None] * [1.0, 0.0, 0.0]
    topology.add_filament(nodes, node_mass=1.0, node_friction=0.5, directors="parallel", director_mass=0.5,
                          director_friction=0.2, name="chain")  # fmt: skip
    write_one(topology, tmp_path / "run.h5")
    for ending in (".xyz", ".pdb", ".simularium", ".vtkhdf"):
        report = mp.export(tmp_path / "run.h5", tmp_path / f"run{ending}")
        meant(report, "directions that are not beads (directors of chain)")
    (_, table), *_ = frames_of_xyz(tmp_path / "run.xyz")
    assert len(table) == 5


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    """What is not there from the start, or for some time: a membrane, balls, and at times no filament at all."""
    topology = mp.Topology()
    nodes = np.arange(4)[:, None] * [2.0, 0.0, 0.0]
    chains = topology.add_filaments([nodes, nodes + [0.0, 5.0, 0.0]], node_mass=1.0, node_friction=1.0, capacity=20,
                                    name="chains")  # fmt: skip
    topology.add_beads([[0.0, 0.0, 50.0]], mass=1.0, friction=1.0, name="one")
    simulation = mp.Simulation(mp.System(topology), mp.SplittingIntegrator("BAOAB", 0.01, kT=1.0, seed=4), threads=1)
    path, frames = tmp_path_factory.mktemp("late") / "run.h5", []
    with mp.reporters.TrajectoryReporter(path, 1) as reporter:
        simulation.reporters.append(reporter)
        for k in range(8):
            with topology.edit():
                if k == 2:
                    chains.remove([0, 1])
                elif k == 3:
                    chains.add([nodes + [0.0, 0.0, 9.0]])
                elif k == 4:
                    topology.add_balls(30.0 * np.eye(3), 2.0, mass=1.0, friction=1.0, name="balls/of 50 %")
                elif k == 5:
                    topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), vertex_mass=1.0, vertex_friction=1.0)
                elif k == 6:
                    chains.add([nodes, nodes + [0.0, 0.0, 3.0], nodes + [0.0, 3.0, 3.0]])
            simulation.step(1)
            state = simulation.context.get_state(positions=True)
            alive = [int(state.alive[h.kind.all_rows].sum()) for h in topology.handles]
            frames.append((state, alive, len(chains.links)))
    simulation.close()
    return path, topology, frames


def test_vtk_of_what_comes_late(late, tmp_path):
    needs("vtk")
    path, topology, frames = late
    for chosen in (slice(None), slice(1, 7, 2), slice(2, 3)):
        report = mp.export(path, tmp_path / "run.vtkhdf", frames=chosen, overwrite=True)
        assert [p.name for p in report.paths] == ["run.vtkhdf", "run.chains.vtkhdf", "run.one.vtkhdf",
                                                  "run.balls_of_50__.vtkhdf"]  # fmt: skip
        readers = [reader_of(report.paths[k]) for k in (0, 1, 3)]
        for k, (state, alive, n_links) in enumerate(frames[chosen]):
            membrane, chains, balls = (at(reader, k) for reader in readers)
            n_chains, _, n_balls, n_vertices = (*alive, 0, 0)[:4]
            assert np.isfinite(chains.points).all(axis=1).sum() == n_chains
            assert sum(len(line) - 1 for line in lines_in(chains)) == n_links
            assert (balls.n_points, balls.n_verts) == (n_balls, n_balls)
            assert (membrane.n_points, membrane.n_cells) == (n_vertices, 80 if n_vertices else 0)
            for mesh, name in ((membrane, "membrane"), (balls, "balls/of 50 %"), (chains, "chains")):
                rows = next(h for h in topology.handles if h.name.startswith(name)).kind.all_rows
                rows = rows[rows < len(state.positions)][: mesh.n_points]
                np.testing.assert_array_equal(mesh.points, state.positions[rows])


@pytest.mark.parametrize("ending", sorted(exporting.FORMATS))
def test_late_arguments(late, tmp_path, ending):
    needs_writer_of(ending)
    path, _, frames = late
    report = mp.export(path, tmp_path / f"run{ending}")
    assert all(one.stat().st_size for one in report.paths)
    if ending == ".xyz":
        assert [len(table) for _, table in frames_of_xyz(report.paths[0])] == [sum(alive) for _, alive, _ in frames]
    elif ending == ".ply":
        assert [p.name for p in report.paths] == ["run.0005.ply", "run.0006.ply", "run.0007.ply"]


def test_ovito_and_mdanalysis_of_what_comes_late(late):
    io, mda = needs("ovito.io"), needs("MDAnalysis")
    from medyanpy import mdanalysis, ovito

    path, topology, frames = late
    pipeline = io.import_file(str(path), input_format=ovito.TrajectoryReader)
    universe = mda.Universe(str(path))
    assert isinstance(universe.trajectory, mdanalysis.TrajectoryReader)
    assert universe.segments.segids.tolist() == [handle.name for handle in topology.handles]
    for k, (state, alive, n_links) in enumerate(frames):
        data, ts = pipeline.compute(k), universe.trajectory[k]
        assert data.particles.count == sum(alive) == ts.data["alive"].sum()
        assert data.particles.bonds.count == n_links
        assert data.triangle_meshes["membrane"].face_count == (80 if len(alive) > 3 else 0)
        np.testing.assert_allclose(ts.positions[ts.data["alive"]], 10.0 * state.positions[state.alive], rtol=1e-6,
                                   atol=1e-5)  # fmt: skip
