"""MDAnalysis reads trajectories by our parser and reader."""

import pickle

import h5py
import numpy as np
import pytest
from builders import refuses

import medyanpy as mp

mda = pytest.importorskip("MDAnalysis", reason="MDAnalysis is not installed: pip install 'medyanpy[viewers]'")
import medyanpy.mdanalysis  # noqa: E402

pytestmark = pytest.mark.slow

# pN s²/nm = 1e-3 kg; CODATA 2018.
DALTON = 1.66053906660e-24


@pytest.fixture
def universe(run):
    return mda.Universe(str(run.path))


def test_names_masses_and_segments(run, universe):
    topology = run.simulation.topology
    assert universe.segments.segids.tolist() == [handle.name for handle in topology.handles]
    for handle in topology.handles:
        atoms = universe.select_atoms(f"segid {handle.name}")
        np.testing.assert_array_equal(atoms.indices, handle.beads)
        assert set(atoms.names) == set(atoms.types) == {handle.name}
        assert set(atoms.resnames) == {handle.kind.name}
        np.testing.assert_allclose(atoms.masses, np.broadcast_to(handle.mass, len(handle)) / DALTON, rtol=1e-12)
    np.testing.assert_allclose(universe.select_atoms("segid vesicles").radii, 10.0 * topology["vesicles"].radius)


def test_bonds_and_residues(run, universe):
    topology = run.simulation.topology
    actin = universe.select_atoms("segid actin")
    assert [len(one) for one in actin.fragments] == [5] * 6
    assert [len(one.atoms) for one in actin.residues] == [5] * 6
    assert len(universe.select_atoms("segid rod").residues) == 1
    assert len(universe.select_atoms("segid proteins").residues) == 50
    edges = sum(len(topology[name].mesh.edges) for name in ("vesicle", "patch"))
    assert len(universe.bonds) == edges + 24 + 8
    numbers = {kind: int((universe.bonds._bondtypes == kind).sum()) for kind in set(universe.bonds._bondtypes)}
    assert numbers == {"vesicle": 480, "patch": 120, "actin": 24, "rod": 8}
    np.testing.assert_array_equal(universe.select_atoms("segid vesicle").fragments[0].indices,
                                  topology["vesicle"].beads)  # fmt: skip


@pytest.mark.parametrize("which", ["run", "changing"])
def test_frames_in_its_units(request, which):
    run = request.getfixturevalue(which)
    universe = mda.Universe(str(run.path))
    assert len(universe.trajectory) == len(run.states)
    assert universe.trajectory.dt == pytest.approx(1e-5 / 1e-12, rel=1e-9)
    assert universe.dimensions is None
    for ts, state in zip(universe.trajectory, run.states, strict=True):
        n = len(state.positions)
        assert ts.time == pytest.approx(1e12 * state.time, rel=1e-9)
        assert ts.data["step"] == state.step
        assert ts.data["potential_energy"] == state.potential_energy
        assert ts.data["energies/trap of bodies"] == state.energies["trap of bodies"]
        np.testing.assert_array_equal(ts.data["alive"][:n], state.alive)
        assert not ts.data["alive"][n:].any()
        assert np.isnan(ts.positions[~ts.data["alive"]]).all()
        np.testing.assert_allclose(ts.positions[:n], 10.0 * state.positions, rtol=1e-6, atol=1e-30)
        np.testing.assert_allclose(ts.velocities[:n], 1e-11 * state.velocities, rtol=1e-6, atol=1e-30)
        np.testing.assert_array_equal(ts.data["orientations"], state.orientations)
        assert len(ts.data["links"]["crosslinks"]) == len(state.jumps["crosslinks"]["links"])


def test_units_as_they_are(run):
    universe = mda.Universe(str(run.path), convert_units=False)
    assert universe.trajectory.dt == pytest.approx(1e-5, rel=1e-9)
    np.testing.assert_allclose(universe.atoms.positions, run.states[0].positions, rtol=1e-6)
    np.testing.assert_allclose(universe.atoms.velocities, run.states[0].velocities, rtol=1e-6)


def test_an_analysis(run):
    """Einstein's mean squared displacement, over lag times in ps, is the one of the trajectory."""
    msd = pytest.importorskip("MDAnalysis.analysis.msd")
    universe = mda.Universe(str(run.path))
    found = msd.EinsteinMSD(universe, select="segid vesicles", fft=False).run()
    with mp.Trajectory(run.path) as trajectory:
        x = trajectory.read("positions", beads=trajectory.handles["vesicles"])
    expected = ((x[2:] - x[:-2]) ** 2).sum(axis=2).mean()
    assert found.results.timeseries[2] / 100.0 == pytest.approx(expected, rel=1e-3)


def test_copies_and_other_processes(run, universe):
    universe.trajectory[3]
    for other in (universe.copy(), pickle.loads(pickle.dumps(universe))):
        assert other.trajectory.ts.frame == 3
        np.testing.assert_array_equal(other.atoms.positions, universe.atoms.positions)
        other.trajectory[1]
    assert universe.trajectory.ts.frame == 3


def test_other_files_are_left_to_others(tmp_path):
    """H5MD files of other programs go to the reader of MDAnalysis."""
    with h5py.File(tmp_path / "other.h5md", "w") as file:
        file.create_group("h5md").attrs["version"] = [1, 1]
        box = file.create_group("particles/trajectory/box")
        box.attrs["dimension"], box.attrs["boundary"] = 3, ["none"] * 3
        position = file.create_group("particles/trajectory/position")
        position["value"], position["step"], position["time"] = np.ones((2, 5, 3)), [0, 1], [0.0, 1.0]
        position["value"].attrs["unit"], position["time"].attrs["unit"] = "Angstrom", "ps"
    universe = mda.Universe(str(tmp_path / "other.h5md"), to_guess=())
    assert type(universe.trajectory).__name__ == "H5MDReader"
    assert len(universe.atoms) == 5


def test_bad_files(tmp_path, run):
    newer = tmp_path / "newer.h5"
    newer.write_bytes(run.path.read_bytes())
    with h5py.File(newer, "r+") as file:
        file["medyanpy"].attrs["format"] = 99
    refuses(ValueError, r"newer\.h5 has format 99", mda.Universe, str(newer))
