"""Exports, and trajectories themselves, in the readers that users have: what these make of boxes, names and bonds."""

import json

import numpy as np
import pytest
from builders import system_with

import medyanpy as mp
from medyanpy._tools.images import box_lengths

pytestmark = [
    pytest.mark.slow,
    # What readers say of their own future, and of what such files leave to guess.
    pytest.mark.filterwarnings(
        "ignore::PendingDeprecationWarning", "ignore::DeprecationWarning", "ignore:Element information is missing",
        "ignore:.*timestep", "ignore:Reader has no dt information",
    ),
]  # fmt: skip


def needs(module):
    package = module.partition(".")[0]
    return pytest.importorskip(module, reason=f"{package} is not installed: pip install 'medyanpy[viewers]'")


def beads_run(path, names, positions=None, box=None, steps=1):
    """A handle of beads for each name."""
    topology = mp.Topology()
    rng = np.random.default_rng(3)
    for k, name in enumerate(names):
        x = rng.uniform(0.0, 20.0, (3, 3)) if positions is None else positions[k]
        topology.add_beads(x, mass=1e-9, friction=1e-5, name=name)
    integrator = mp.SplittingIntegrator("BAOAB", 1e-6, temperature=300.0, seed=1)
    simulation = mp.Simulation(mp.System(topology, box=box), integrator, threads=1)
    with mp.reporters.TrajectoryReporter(path, 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(steps)
    return path


# Boxes ---------------------------------------------------------------------------------------------------------------


def sides_in(program, path):
    """Of every frame: the lengths of its box in Å, None without one, and the number of its atoms."""
    if program == "MDAnalysis":
        universe = needs("MDAnalysis").Universe(str(path))
        return [
            (None if ts.dimensions is None else ts.dimensions[:3].tolist(), ts.n_atoms) for ts in universe.trajectory
        ]
    if program == "ovito":
        pipeline = needs("ovito.io").import_file(str(path))
        frames = [pipeline.compute(k) for k in range(pipeline.num_frames)]
        return [(None if f.cell is None else np.diag(f.cell[...]).tolist(), f.particles.count) for f in frames]
    trajectory = needs("chemfiles").Trajectory(str(path))
    out = []
    for _ in range(trajectory.nsteps):
        frame = trajectory.read()
        out.append((list(frame.cell.lengths) if any(frame.cell.lengths) else None, len(frame.atoms)))
    return out


@pytest.mark.parametrize("program", ["MDAnalysis", "ovito", "chemfiles"])
def test_boxes_of_pdb_files_in_every_frame(in_a_box, in_a_slab, run, tmp_path, program):
    """As many frames as there are, each with its own box, here one that changes; and none where there is none."""
    mp.export(in_a_box.path, tmp_path / "box.pdb")
    found = sides_in(program, tmp_path / "box.pdb")
    assert len(found) == len(in_a_box.states)
    for (sides, n), state in zip(found, in_a_box.states, strict=True):
        assert sides == pytest.approx(10.0 * box_lengths(state.box), abs=2e-3)
        assert n == len(state.positions)
    assert len({tuple(sides) for sides, _ in found}) == len(found)
    for other in (in_a_slab, run):
        mp.export(other.path, tmp_path / "open.pdb", overwrite=True)
        n = len(other.states[0].positions)
        assert sides_in(program, tmp_path / "open.pdb") == [(None, n)] * len(other.states)


def test_boxes_too_wide_for_pdb_files(tmp_path):
    beads_run(tmp_path / "run.h5", ["a"], box=(1.1e4, 50.0, 50.0))
    report = mp.export(tmp_path / "run.h5", tmp_path / "run.pdb")
    assert "CRYST1" not in (tmp_path / "run.pdb").read_text()
    assert any("at most 10000 nm wide" in sentence for sentence in report.left_out)


# Names ---------------------------------------------------------------------------------------------------------------

#: The beginnings of these are amino acids, water, ions, nucleotides and lipids for programs.
MOLECULES = ("proteins", "alanine", "glycoproteins", "valves", "water", "hoh", "tip3", "sol", "ade", "da", "du",
             "cytosol", "guanine", "thymus", "uracil", "na", "cl", "popc", "msebeads", "hisses")  # fmt: skip


def test_residues_are_no_molecules(tmp_path):
    """No reader takes a handle for a protein, a nucleic acid or water, whatever it is called."""
    mda, mdtraj = needs("MDAnalysis"), needs("mdtraj")
    names = [*MOLECULES, *(f"{name} {k}" for k in range(4) for name in MOLECULES)]
    beads_run(tmp_path / "run.h5", names)
    mp.export(tmp_path / "run.h5", tmp_path / "run.pdb")
    universe = mda.Universe(str(tmp_path / "run.pdb"))
    assert len(universe.atoms) == 3 * len(names)
    for kind in ("protein", "nucleic", "backbone", "nucleicbackbone", "water"):
        assert len(universe.select_atoms(kind)) == 0, kind
    other = mdtraj.load(str(tmp_path / "run.pdb")).topology
    for kind in ("protein", "nucleic", "water", "backbone"):
        assert len(other.select(f"is_{kind}" if kind != "backbone" else kind)) == 0, kind
    gemmi = needs("gemmi")
    for residue in {atom.residue.name for atom in other.atoms}:
        info = gemmi.find_tabulated_residue(residue)
        assert not info.is_amino_acid()
        assert not info.is_nucleic_acid()
        assert not info.is_water()


def test_segments_and_atoms_of_pdb_files_have_one_handle(tmp_path):
    """Names that begin alike stay apart, and every residue has a number of its own in its chain."""
    mda = needs("MDAnalysis")
    names = ["actin one", "actin two", "actin three", "Größe", "äöü", "µ", *(f"more{k}" for k in range(70))]
    beads_run(tmp_path / "run.h5", names)
    mp.export(tmp_path / "run.h5", tmp_path / "run.pdb")
    universe = mda.Universe(str(tmp_path / "run.pdb"))
    assert len(universe.segments) == len(names)
    assert len(set(universe.atoms.names)) == len(names)
    labels = list(zip(universe.atoms.chainIDs, universe.atoms.resids, strict=True))
    assert len(set(labels)) == len(labels) == 3 * len(names)


def test_more_residues_than_a_chain_has_numbers(tmp_path):
    mda = needs("MDAnalysis")
    x = np.random.default_rng(1).uniform(0.0, 100.0, (25_000, 3))
    beads_run(tmp_path / "run.h5", ["many", "few"], [x, x[:5]])
    mp.export(tmp_path / "run.h5", tmp_path / "run.pdb")
    lines = [line for line in (tmp_path / "run.pdb").read_text().splitlines() if line.startswith("ATOM")]
    assert len({line[21:26] for line in lines}) == len(lines) == 25_005
    assert {len(line) for line in lines} == {76}
    assert len(mda.Universe(str(tmp_path / "run.pdb")).residues) == 25_005


@pytest.mark.parametrize(
    ("x", "written"),
    [(99_999.9994, "99999.999"[:8]), (-9_999.9996, "-10000.0"), (999_990.0, "999990.0"), (-99_990.0, "-99990.0")],
)
def test_large_coordinates_keep_to_their_columns(tmp_path, x, written):
    mda = needs("MDAnalysis")
    beads_run(tmp_path / "run.h5", ["far"], [np.array([[0.1 * x, 1.0, 2.0]])])
    mp.export(tmp_path / "run.h5", tmp_path / "run.pdb")
    atom = next(line for line in (tmp_path / "run.pdb").read_text().splitlines() if line.startswith("ATOM"))
    assert len(atom) == 76
    assert float(atom[30:38]) == pytest.approx(float(written), abs=0.15)
    assert mda.Universe(str(tmp_path / "run.pdb")).atoms.positions[0] == pytest.approx([x, 10.0, 20.0], abs=0.2)


# Extended XYZ --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["run", "changing", "in_a_box", "in_a_slab"])
def test_ase_reads_xyz(request, tmp_path, which):
    """Names of handles are no elements: they are in a column of their own."""
    ase = needs("ase.io")
    run = request.getfixturevalue(which)
    mp.export(run.path, tmp_path / "run.xyz")
    frames = ase.read(tmp_path / "run.xyz", index=":")
    assert len(frames) == len(run.states)
    handles = run.simulation.topology.handles
    for atoms, state in zip(frames, run.states, strict=True):
        rows = [h.kind.all_rows[h.kind.all_rows < len(state.positions)] for h in handles]
        rows = [own[state.alive[own]] for own in rows]
        wanted = np.repeat([h.name.replace(" ", "_") for h in handles], list(map(len, rows)))
        rows = np.concatenate(rows)
        np.testing.assert_array_equal(atoms.positions, state.positions[rows])
        np.testing.assert_array_equal(atoms.arrays["handle"], wanted)
        np.testing.assert_array_equal(atoms.arrays["id"], state.ids[rows])
        np.testing.assert_array_equal(atoms.arrays["velo"], state.velocities[rows])
        assert (atoms.numbers == 0).all()
        lengths = np.zeros(3) if state.box is None else box_lengths(state.box)
        assert atoms.pbc.tolist() == (lengths > 0.0).tolist()
        assert (atoms.cell.lengths()[lengths > 0.0] == lengths[lengths > 0.0]).all()
        assert atoms.info["Step"] == state.step


def test_chemfiles_and_mdanalysis_read_xyz(in_a_box, tmp_path):
    chemfiles, mda = needs("chemfiles"), needs("MDAnalysis")
    mp.export(in_a_box.path, tmp_path / "run.xyz")
    trajectory = chemfiles.Trajectory(str(tmp_path / "run.xyz"))
    universe = mda.Universe(str(tmp_path / "run.xyz"))
    assert trajectory.nsteps == len(universe.trajectory) == len(in_a_box.states)
    names = [h.name.replace(" ", "_") for h in in_a_box.simulation.topology.handles]
    for state, ts in zip(in_a_box.states, universe.trajectory, strict=True):
        frame = trajectory.read()
        assert list(frame.cell.lengths) == pytest.approx(box_lengths(state.box))
        np.testing.assert_allclose(frame.positions, state.positions, rtol=1e-12)
        np.testing.assert_allclose(ts.positions, state.positions, rtol=1e-6, atol=1e-5)
        assert set(universe.atoms.names) == {atom.name for atom in frame.atoms} == set(names)


@pytest.mark.parametrize("name", ["two words", 'with "quotes"', "a#b", "a,b", "Größe µ", "tab\there"])
def test_odd_names_in_every_reader(tmp_path, name):
    ase, chemfiles, mda = needs("ase.io"), needs("chemfiles"), needs("MDAnalysis")
    needs("gsd.hoomd")
    beads_run(tmp_path / "run.h5", [name, "others"], steps=2)
    for ending in ("xyz", "gsd", "pdb"):
        mp.export(tmp_path / "run.h5", tmp_path / f"run.{ending}")
    atoms = ase.read(tmp_path / "run.xyz", index=":")
    assert [len(one) for one in atoms] == [6, 6]
    assert len(set(atoms[0].arrays["handle"])) == 2
    assert len(chemfiles.Trajectory(str(tmp_path / "run.xyz")).read().atoms) == 6
    assert len(set(mda.Universe(str(tmp_path / "run.xyz")).atoms.names)) == 2
    assert set(mda.Universe(str(tmp_path / "run.gsd")).atoms.types) == {name, "others"}


# GSD -----------------------------------------------------------------------------------------------------------------


def test_gsd_of_names_beyond_ascii(tmp_path):
    """Handles, forces, jumps and membranes; types once, and the same in every frame."""
    hoomd = needs("gsd.hoomd")
    topology = mp.Topology()
    beads = topology.add_beads([[0.0, 0, 0], [5.0, 0, 0]], mass=1e-9, friction=1e-5, name="Größe µ")
    topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 0), vertex_mass=1e-9, vertex_friction=1e-5, name="Hülle")
    nodes = np.arange(3)[:, None] * [5.0, 0, 0]
    topology.add_filament(nodes, node_mass=1e-9, node_friction=1e-5, name="ακτίνη")
    simulation = mp.Simulation(system_with(topology, mp.forces.HarmonicBonds([beads.beads], 1.0, 5.0, name="Feder ö")),
                               mp.SplittingIntegrator("BAOAB", 1e-6, temperature=300.0, seed=1), threads=1)  # fmt: skip
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(3)
    mp.export(tmp_path / "run.h5", tmp_path / "run.gsd")
    with hoomd.open(tmp_path / "run.gsd") as file:
        assert len(file) == 3
        for frame in file:
            assert frame.particles.types == ["Größe µ", "Hülle", "ακτίνη"]
            assert frame.bonds.types == ["ακτίνη", "bonds", "Hülle"]
            assert frame.angles.types == ["Hülle"]
            assert "energy of Feder ö" in frame.log
        assert not file.file.chunk_exists(frame=1, name="particles/types")


# Simularium ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", ["run", "changing", "in_a_box", "in_a_slab"])
def test_simulariumio_reads_simularium(request, tmp_path, which, capsys):
    simulariumio = needs("simulariumio")
    run = request.getfixturevalue(which)
    mp.export(run.path, tmp_path / "run.simularium")
    read = simulariumio.FileConverter(simulariumio.InputFileData(str(tmp_path / "run.simularium")))._data
    agents, info = read.agent_data, json.loads((tmp_path / "run.simularium").read_text())["trajectoryInfo"]
    np.testing.assert_allclose(agents.times, [state.time for state in run.states], rtol=1e-6)
    handles = run.simulation.topology.handles
    assert {kind for kinds in agents.types for kind in kinds} == {h.name for h in handles}
    assert read.spatial_units.magnitude == pytest.approx(info["spatialUnits"]["magnitude"], rel=1e-2)
    np.testing.assert_allclose(read.meta_data.box_size, [info["size"][c] for c in "xyz"], rtol=1e-6)
    if which in ("run", "in_a_box"):
        # A fibre is one agent.
        chained = [h for h in handles if "links" in h.kind.beside_frames()]
        loose = sum(len(h) for h in handles) - sum(len(h) for h in chained)
        assert (agents.n_agents == loose + (7 if which == "run" else 5)).all()


# DCD -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["run", "changing", "in_a_box", "in_a_slab"])
def test_dcd_beside_the_pdb_of_the_same_frames(request, tmp_path, which):
    """The same atoms, places, boxes and times, in MDAnalysis and mdtraj."""
    mda, mdtraj = needs("MDAnalysis"), needs("mdtraj")
    run = request.getfixturevalue(which)
    for ending in ("pdb", "dcd"):
        report = mp.export(run.path, tmp_path / f"run.{ending}")
    assert any("no names" in sentence for sentence in report.left_out)
    assert any("without the periodic box" in sentence for sentence in report.left_out) == (which == "in_a_slab")
    names = mda.Universe(str(tmp_path / "run.pdb"))
    universe = mda.Universe(str(tmp_path / "run.pdb"), str(tmp_path / "run.dcd"))
    assert len(universe.trajectory) == len(run.states)
    for pdb, ts, state in zip(names.trajectory, universe.trajectory, run.states, strict=True):
        np.testing.assert_allclose(ts.positions, pdb.positions, atol=0.051)
        assert ts.time == pytest.approx(state.time * 1e12, rel=1e-6)
        if state.box is not None and None not in state.box:
            assert ts.dimensions == pytest.approx([*(10.0 * box_lengths(state.box)), 90, 90, 90], rel=1e-6)
        else:
            assert ts.dimensions is None
    if which in ("run", "in_a_box"):
        np.testing.assert_allclose(ts.positions, 10.0 * state.positions, rtol=1e-6, atol=1e-3)
    other = mdtraj.load(str(tmp_path / "run.dcd"), top=str(tmp_path / "run.pdb"))
    assert other.n_frames == len(run.states)
    np.testing.assert_allclose(10.0 * other.xyz[-1], ts.positions, rtol=1e-5, atol=1e-3)


def test_dcd_from_the_shell(run, tmp_path, monkeypatch, capsys):
    mda = needs("MDAnalysis")
    from medyanpy.cli import main

    out = tmp_path / "out.dcd"
    assert main(["export", str(run.path), str(out), "--frames", "::3"]) == 0
    assert "3 frames in" in capsys.readouterr().out
    universe = mda.Universe.empty(len(run.states[0].positions), trajectory=True).load_new(str(out))
    assert [ts.time for ts in universe.trajectory] == pytest.approx(
        [1e12 * state.time for state in run.states[::3]], rel=1e-5
    )


# Bonds ---------------------------------------------------------------------------------------------------------------


def test_bonds_of_forces_in_mdanalysis(tmp_path):
    """Links, HarmonicBonds and CustomBonds are bonds, with the edges and links that handles have; those that jumps have
    bound are not, which come and go."""
    mda = needs("MDAnalysis")
    import medyanpy.mdanalysis  # noqa: F401

    topology = mp.Topology()
    beads = topology.add_beads(np.arange(8)[:, None] * [5.0, 0.0, 0.0], mass=1e-9, friction=1e-5, name="beads").beads
    nodes = np.arange(4)[:, None] * [5.0, 0.0, 0.0] + [0.0, 9.0, 0.0]
    actin = topology.add_filament(nodes, node_mass=1e-9, node_friction=1e-5, name="actin")
    system = system_with(topology, mp.forces.HarmonicBonds(beads[[[0, 1], [1, 2]]], 1.0, 5.0),
                         mp.forces.CustomBonds(beads[[[2, 3]]], "k*(r - 5)^2", k=1.0),
                         mp.forces.Links(beads[[4]], beads[[5]], stiffness=1.0, length=5.0))  # fmt: skip
    simulation = mp.Simulation(system, mp.SplittingIntegrator("BAOAB", 1e-7, temperature=300.0, seed=1), threads=1)
    with mp.reporters.TrajectoryReporter(tmp_path / "run.h5", 1) as reporter:
        simulation.reporters.append(reporter)
        simulation.step(2)
    universe = mda.Universe(str(tmp_path / "run.h5"))
    found = {tuple(sorted(pair)) for pair in universe.bonds.indices.tolist()}
    wanted = [*beads[[[0, 1], [1, 2], [2, 3], [4, 5]]].tolist(), *actin.beads[[[0, 1], [1, 2], [2, 3]]].tolist()]
    assert found == {tuple(sorted(pair)) for pair in wanted}
    assert len(universe.bonds) == len(wanted)
    assert sorted(universe.bonds._bondtypes) == ["actin"] * 3 + ["bonds"] * 4
    for ending in ("xyz", "simularium"):
        report = mp.export(tmp_path / "run.h5", tmp_path / f"run.{ending}")
        text = " ".join(report.left_out)
        assert "bonds and links of forces (Links, HarmonicBonds, CustomBonds)" in text
    assert "(Links" not in " ".join(mp.export(tmp_path / "run.h5", tmp_path / "run.pdb").left_out)
