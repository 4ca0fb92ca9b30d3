"""What others leave in a folder, and what small files and texts claim: links are not followed, claims not believed, and
what a function raises is never lost."""

import gzip
import json
import os
import resource
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest
from builders import refuses, system_with

import medyanpy as mp
from medyanpy._tools import outputs

pytestmark = pytest.mark.slow


def beads(name="b", n=3):
    topology = mp.Topology()
    topology.add_beads(np.eye(n, 3), 1.0, 0.1, name=name)
    return mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)


def make(seed=1, k=1.0):
    return beads()


def report(reporter, steps=2):
    simulation = beads()
    simulation.reporters.append(reporter)
    simulation.step(steps)
    simulation.close()


def exported(path, ending):
    report(mp.reporters.TrajectoryReporter(path, 1))
    mp.export(path, path.with_suffix(f".{ending}"))


# Links ---------------------------------------------------------------------------------------------------------------

WRITES = {
    "checkpoint": lambda path: beads().save_checkpoint(path),
    "document": lambda path: mp.serialize(beads(), path),
    "mesh": lambda path: mp.TriangleMesh.icosphere(1.0, 0).save(path.with_suffix(".off")),
    "trajectory": lambda path: report(mp.reporters.TrajectoryReporter(path, 1)),
    "checkpoints": lambda path: report(mp.reporters.CheckpointReporter(path, 1)),
    "table": lambda path: mp.ensemble.run(make, until=1, executor=ThreadPoolExecutor(1)).csv(path),
    "pdb": lambda path: exported(path, "pdb"),
    "xyz": lambda path: exported(path, "xyz"),
    "vtkhdf": lambda path: exported(path, "vtkhdf"),
}


@pytest.mark.parametrize("what", WRITES)
def test_files_are_made_under_names_that_none_can_foresee(tmp_path, monkeypatch, what):
    """All that is made beside its place is new, no link, and has another name each time."""
    made = []

    def spied(path, flags, *args, **options):
        if str(path).endswith(".tmp"):
            made.append((Path(path).name, flags))
        return os_open(path, flags, *args, **options)

    os_open = os.open
    monkeypatch.setattr(outputs.os, "open", spied)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        WRITES[what](folder / "x.h5")
        assert [name for name in os.listdir(folder) if not name.startswith("x")] == []
    assert len(made) >= 2
    wanted = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    assert all(flags & wanted == wanted for _, flags in made)
    assert len({name for name, _ in made}) == len(made)
    assert all(str(os.getpid()) in name for name, _ in made)


@pytest.mark.parametrize("what", ["checkpoint", "document", "trajectory"])
def test_planted_links_keep_what_they_point_to(tmp_path, monkeypatch, what):
    """Also where somebody guesses the name: the file is refused, and nothing is overwritten."""
    victim = tmp_path / "precious"
    victim.write_text("precious")
    (tmp_path / f".x.h5.{os.getpid()}.tmp").symlink_to(victim)
    WRITES[what](tmp_path / "x.h5")
    assert victim.read_text() == "precious"
    monkeypatch.setattr(outputs, "_unforeseen", lambda: "00")
    (tmp_path / f".y.h5.{os.getpid()}.00.tmp").symlink_to(victim)
    refuses(mp.MedyanError, "cannot write", WRITES[what], tmp_path / "y.h5")
    assert victim.read_text() == "precious"


def test_a_link_in_place_of_a_lock_is_refused(tmp_path):
    victim = tmp_path / "precious"
    (tmp_path / ".x.h5.lock").symlink_to(victim)
    with pytest.raises(mp.OutputError):
        report(mp.reporters.TrajectoryReporter(tmp_path / "x.h5", 1))
    assert not victim.exists()


def sweep(folder, n=1, until=2, parameters=({"k": 1.0},), analyse=None):
    return mp.ensemble.run(make, parameters=list(parameters), n_replicas=n, until=until, directory=folder,
                           executor=ThreadPoolExecutor(1), analyse=analyse)  # fmt: skip


def test_folders_of_replicas_are_not_followed_out_of_the_ensemble(tmp_path):
    """The replica fails by name, others go on; so do walkers of an exchange, which need each other."""
    folder, other = tmp_path / "e", tmp_path / "other"
    other.mkdir()
    sweep(folder)
    for k, target in enumerate((other, tmp_path / "nowhere")):
        (folder / f"0000-000{k + 1}").symlink_to(target)
    table = sweep(folder, 4)
    assert table["status"].tolist() == ["done", "failed", "failed", "done"]
    assert all("0000-000" in error and "is a link" in error for error in table.failed["error"])
    assert not list(other.iterdir())
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["params.json", "done.json", "error.txt"])
def test_links_in_the_folder_of_a_replica_are_replaced(tmp_path, name):
    folder, victim = tmp_path / "e", tmp_path / "precious"
    sweep(folder)
    place = folder / "0000-0000" / name
    place.unlink(missing_ok=True)
    place.symlink_to(victim)

    def fails(simulation):
        raise RuntimeError("on purpose")

    sweep(folder, until=3, analyse=fails if name == "error.txt" else None)
    assert not victim.exists()
    assert not place.is_symlink()


# What a run may not leave --------------------------------------------------------------------------------------------


def test_a_make_that_is_refused_leaves_no_file_outside(tmp_path):
    outside = tmp_path / "outside.csv"
    kept = tmp_path / "kept.csv"
    kept.write_text("")

    def make(directory):
        simulation = beads()
        for file in (outside, kept):
            simulation.reporters.append(mp.reporters.StateDataReporter(file, 1, step=True))
        return simulation

    refuses(mp.ParameterError, "outside of the folder of the run", mp.run, tmp_path / "run", make, until=1)
    assert not outside.exists()
    assert kept.exists()


SCRIPT = """
    import numpy as np, medyanpy as mp
    def make(directory):
        topology = mp.Topology()
        topology.add_beads(np.random.default_rng(1).normal(size=(300, 3)), 1.0, 0.1)
        simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.1), threads=1)
        simulation.reporters.append(mp.reporters.TrajectoryReporter(directory / "run.h5", 1))
        return simulation
"""


def test_a_full_disk_is_a_failed_run(tmp_path):
    """Exit code 1: 2 would say that nothing was changed."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    folder = tmp_path / "full"
    folder.mkdir()
    (tmp_path / "cell.py").write_text(textwrap.dedent(SCRIPT))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk")
    try:
        done = subprocess.run([sys.executable, "-P", "-m", "medyanpy", "run", tmp_path / "cell.py", "--until", "3000",
                               "--dir", folder], capture_output=True, text=True, check=False)  # fmt: skip
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr.splitlines()[0]


# Functions of Python -------------------------------------------------------------------------------------------------

MISTAKES = {
    "SystemExit": lambda: (_ for _ in ()).throw(SystemExit("enough")),
    "ValueError": lambda: (_ for _ in ()).throw(ValueError("not there yet")),
    "MemoryError": lambda: (_ for _ in ()).throw(MemoryError("none")),
    "nan": lambda: (np.full(5, np.nan), np.zeros((5, 3))),
    "nan forces": lambda: (np.zeros(5), np.full((5, 3), np.nan)),
    "a wrong shape": lambda: (np.zeros(4), np.zeros((4, 3))),
    "a wrong type": lambda: None,
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("call", [1, 2, 5])
def test_errors_of_the_first_call_of_a_function_are_raised(mistake, call):
    """The step does not go by; when the mistake is gone, it is taken."""
    calls = []

    def field(triangles, weights):
        calls.append(1)
        if len(calls) == call:
            return MISTAKES[mistake]()
        return np.zeros(len(weights)), np.zeros(weights.shape)

    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(8.0, 1), 1.0, 0.5)
    points = topology.add_intriangle_points(membrane, 5, mass=1.0, friction=0.3, seed=1)
    simulation = mp.Simulation(system_with(topology, mp.forces.PythonMembraneField(points, field, replay=False)),
                               mp.BAGOGABIntegrator(1e-3, kT=1.0), threads=1)  # fmt: skip
    with pytest.raises(mp.MedyanError):
        simulation.step(8)
    before = simulation.current_step
    assert before < 8
    simulation.step(2)
    assert simulation.current_step == before + 2


# Claims --------------------------------------------------------------------------------------------------------------


def written(folder):
    path = folder / "r.h5"
    report(mp.reporters.TrajectoryReporter(path, 1), 5)
    return path


def inflate(path, names, shape):
    """Arrays of which nothing is stored."""
    with h5py.File(path, "r+") as file:
        for name in names:
            data = file[name]
            kind, attributes, n = data.dtype, dict(data.attrs), shape(data.shape)
            del file[name]
            new = file.create_dataset(name, n, kind, chunks=tuple(min(k, 1000) for k in n))
            new.attrs.update(attributes)


ELEMENT = "particles/all/position"
CLAIMS = {
    "frames": ([f"{ELEMENT}/{name}" for name in ("step", "time", "value")], lambda n: (10**8, *n[1:])),
    "steps alone": ([f"{ELEMENT}/step"], lambda n: (10**8,)),
    "times alone": ([f"{ELEMENT}/time"], lambda n: (10**8,)),
    "beads of a frame": ([f"{ELEMENT}/value"], lambda n: (n[0], 10**8, 3)),
    "masses": (["particles/all/mass"], lambda n: (10**8,)),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_shapes_are_not_believed_before_what_is_stored_is_seen(tmp_path, claim):
    """A file of 42 kB that claims 1e8 frames took 2.2 GB."""
    path = written(tmp_path)
    names, shape = CLAIMS[claim]
    inflate(path, names, shape)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for use in (mp.Trajectory, lambda p: mp.export(p, tmp_path / "x.xyz"), lambda p: mp.Trajectory(p).system()):
        refuses(mp.ParameterError, r"claims \d+ bytes, but 0 are stored", use, path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_frames_not_stored_before_a_crash_are_not_counted(tmp_path):
    """Frames behind the last step, and thousands of frames that gzip makes almost nothing of."""
    path = written(tmp_path)
    with h5py.File(path, "r+") as file:
        file[f"{ELEMENT}/value"].resize(200_000, axis=0)
    assert len(mp.Trajectory(path)) == 5
    still = tmp_path / "still.h5"
    simulation = beads(n=100)
    simulation.context.set_velocities(np.zeros((100, 3)))
    simulation.reporters.append(mp.reporters.TrajectoryReporter(still, 1))
    simulation.step(1000)
    simulation.close()
    assert len(mp.Trajectory(still)) == 1000


TOWERS = {
    "powers": "x" + "^x" * 3000,
    "powers of powers": "(" * 3000 + "x" + "^x)" * 3000,
    "powers of functions": "sin(x)" + "^cos(x)" * 2000,
}


@pytest.mark.parametrize("tower", TOWERS)
def test_towers_of_powers_are_refused_before_they_take_memory(tower):
    """16 kB took 306 MB. Some hundred are no tower."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def start(text):
        simulation = beads()
        mp.Context(system_with(simulation.topology, mp.forces.ExternalField(simulation.topology.handles[0], text)),
                   mp.VerletIntegrator(1e-60), threads=1)  # fmt: skip

    refuses(mp.ParameterError, "operations with its derivatives", start, TOWERS[tower])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120_000  # kB
    start("x" + "^(1 + 0.001*x)" * 100)


def test_a_zipped_structure_of_newlines_is_refused(tmp_path):
    pytest.importorskip("gemmi")
    path = tmp_path / "n.pdb.gz"
    path.write_bytes(gzip.compress(b"\n" * 30_000_000))
    refuses(mp.ParameterError, "is zipped to less than", mp.rigid.read_structure, path)


# Damaged files of ensembles ------------------------------------------------------------------------------------------

DAMAGES = [
    *[("done.json", text) for text in (
        "[]", "{}", "", "\0", "null", "5", '{"steps": 2}', '{"steps": 2, "analyse": null, "result": 5}',
        '{"steps": 2, "analyse": null, "result": "["}', '{"steps": 2, "analyse": null, "result": "nonsense"}',
        '{"steps": 2, "analyse": null, "result": "{\\"dtype\\": \\"float64\\", \\"shape\\": [3], \\"values\\": [1]}"}',
        "[" * 100_000, '{"steps": [], "analyse": {}}',
    )],
    *[("params.json", text) for text in ("[]", "", "7", "[" * 100_000, '"text"', "\x80")],
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), DAMAGES)
def test_a_damaged_file_fails_its_replica_by_name_and_no_other(tmp_path, name, text):
    folder = tmp_path / "e"
    sweep(folder, 2)
    place = folder / "0000-0000" / name
    place.write_bytes(text.encode("latin-1"))
    table = sweep(folder, 3)
    assert table["status"].tolist() == ["failed", "done", "done"]
    assert str(place) in table["error"][0]
    place.unlink()
    assert sweep(folder, 3).done


@pytest.mark.parametrize("text", ["[]", "{}", "", "[" * 100_000, "5", '{"format": []}'])
def test_a_damaged_ensemble_is_refused_by_name(tmp_path, text):
    sweep(tmp_path / "e")
    (tmp_path / "e" / "ensemble.json").write_text(text)
    refuses(mp.ParameterError, r"ensemble\.json cannot be read|is of another ensemble", sweep, tmp_path / "e")


def test_results_of_any_size_are_columns_and_text_is_text(tmp_path):
    results = iter([-1, 2**63, 2**70, 5])
    table = sweep(tmp_path / "e", 4, analyse=lambda simulation: next(results))
    assert table["result"].tolist() == [-1, 2**63, 2**70, 5]
    assert json.loads((tmp_path / "e" / "0000-0002" / "done.json").read_text())["result"] == str(2**70)
    table = sweep(tmp_path / "f", analyse=lambda simulation: "\udc80")
    assert "must be text that UTF-8 can hold" in table["error"][0]
    table.csv(tmp_path / "t.csv")
    refuses(mp.ParameterError, "JSON holds", sweep, tmp_path / "g", parameters=[{"k": "\udc80"}])


# Names ---------------------------------------------------------------------------------------------------------------


def handle_of(name):
    return mp.Topology().add_beads(np.eye(3), 1.0, 0.1, name=name)


def jump_of(name):
    topology = mp.Topology()
    membrane = topology.add_membrane(mp.TriangleMesh.icosphere(5.0, 1), 1.0, 0.5)
    return mp.jumps.EdgeFlips(membrane, rate=1.0, name=name)


def document_of(name):
    text = mp.serialize(beads())
    return mp.deserialize(text.replace('"b"', json.dumps(name)))


NAMED = {
    "handle": handle_of,
    "force": lambda name: mp.forces.HarmonicTrap(handle_of("b"), 1.0, [0.0, 0, 0], name=name),
    "jump": jump_of,
    "document": document_of,
    "column": lambda name: mp.core.columns.Column(name, "beads"),
    "trajectory": lambda name: mp.reporters.TrajectoryReporter(name, 1),
    "table": lambda name: mp.reporters.StateDataReporter(name, 1, step=True),
    "checkpoints": lambda name: mp.reporters.CheckpointReporter(name, 1),
    "checkpoint": lambda name: beads().save_checkpoint(name),
    "resumed": mp.Simulation.resume,
    "run": lambda name: mp.run(name, lambda directory: beads(), until=1),
    "mesh": mp.TriangleMesh.from_file,
    "opened trajectory": mp.Trajectory,
    "separator": lambda name: mp.reporters.StateDataReporter("x.csv", 1, step=True, separator=name),
}


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("which", ["NUL", "high half", "byte", "low half"])
def test_names_that_no_file_can_hold_are_refused_when_they_are_given(tmp_path, monkeypatch, kind, which):
    name = {"NUL": "a\0b", "high half": "\ud800", "byte": "\udc80", "low half": "a\udfff"}[which]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mp.MedyanError):
        NAMED[kind](name)
    assert not list(tmp_path.iterdir())
    if kind in ("handle", "force", "jump", "document", "column"):
        NAMED[kind]("Käse 🧀")


LONG = 300 * "a"
TOO_LONG = {
    "run": lambda: mp.run(LONG, make, until=1),
    "run without make": lambda: mp.run(LONG, until=1),
    "ensemble.run": lambda: mp.ensemble.run(make, until=1, directory=LONG, executor=ThreadPoolExecutor(1)),
    "read_structure": lambda: mp.rigid.read_structure(f"{LONG}.pdb"),
    "Trajectory": lambda: mp.Trajectory(LONG),
    "from_file": lambda: mp.TriangleMesh.from_file(f"{LONG}.off"),
    "resume": lambda: mp.Simulation.resume(LONG),
    "deserialize": lambda: mp.deserialize(LONG),
}


@pytest.mark.parametrize("call", TOO_LONG)
def test_names_that_are_too_long_are_refused(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mp.MedyanError):
        TOO_LONG[call]()
    assert not list(tmp_path.iterdir())


# Calls ---------------------------------------------------------------------------------------------------------------


def appended(thing):
    simulation = beads()
    simulation.reporters.append(thing)
    try:
        simulation.step(1)
    finally:
        simulation.close()


def frame_of(folder):
    return mp.Trajectory(written(folder))


CALLS = {
    "nothing to read": lambda f: mp.rigid.read_structure(None),
    "a box of nan": lambda f: mp.analysis.contact_counts(np.eye(3), cutoff=1.0, box=[np.nan] * 3),
    "an array of nan": lambda f: mp.analysis.contact_counts(np.eye(3), cutoff=1.0, box=np.full(3, np.nan)),
    "boxes of nan": lambda f: mp.analysis.contact_counts(np.eye(3), cutoff=1.0, box=np.full((1, 3), np.nan)),
    "a box of nan for clusters": lambda f: mp.analysis.clusters(np.eye(3), cutoff=1.0, box=[np.nan] * 3),
    "a box of nan for a distribution": lambda f: mp.analysis.radial_distribution(
        np.eye(3), r_max=1.0, box=[np.nan] * 3
    ),
    "a mesh in a box of nan": lambda f: mp.TriangleMesh(*sphere(), box=[np.nan] * 3),
    "a system in a box of nan": lambda f: mp.System(mp.Topology(), box=[np.nan] * 3),
    "a snapshot": lambda f: beads().context.snapshot(positions=np.zeros(2)),
    "a snapshot of something": lambda f: beads().context.snapshot(color=True),
    "numbering": lambda f: beads().topology.number({"a": 1}),
    "numbering of nothing": lambda f: beads().topology.number({"n_beads": 3, "next_id": 3, "handles": {"b": 5}}),
    "who lives": lambda f: frame_of(f)[0].living("b"),
    "links": lambda f: frame_of(f)[0].links([]),
    "a frame": lambda f: frame_of(f)["x"],
    "a frame of frames": lambda f: frame_of(f)[1:]["x"],
    "a column": lambda f: mp.core.columns.Column("n", "beads", (3,), "nm", np.zeros(2)),
    "a type": lambda f: mp.core.columns.Column("n", "beads", dtype=np.zeros(2)),
    "a mobility": lambda f: mp.hydrodynamics.mobility_matrix(np.eye(3), [0.1] * 3, 1.0, rotation=np.zeros(2)),
    "wave numbers": lambda f: mp.analysis.discrete_wave_number([[1, 2], [3]], 1.0),
    "samples": lambda f: mp.analysis.autocorrelation([[1.0, 2.0], [3.0]]),
    "a sheet": lambda f: mp.TriangleMesh.flat_sheet(4, 4, 1.0, periodic=[True]),
    "another sheet": lambda f: mp.TriangleMesh.flat_sheet(4, 4, 1.0, periodic=np.zeros(2)),
    "a tube": lambda f: mp.TriangleMesh.cylinder(4.0, 4.0, periodic=np.zeros(2)),
    "a size": lambda f: mp.visualize.draw(beads(), size=[]),
    "a size of three": lambda f: mp.visualize.draw(beads(), size=(300, 300, 300)),
    "a reporter": lambda f: appended(1),
    "another reporter": lambda f: appended(mp.reporters),
    "axes": lambda f: mp.analysis.structure_factor(np.eye(3), q_max=9.0, axes=np.zeros(2)),
}


def sphere():
    mesh = mp.TriangleMesh.icosphere(1.0, 0)
    return mesh.vertices, mesh.faces


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_once_raised_something_else(call, tmp_path):
    with pytest.raises(mp.MedyanError):
        CALLS[call](tmp_path)


def test_bonds_of_another_shape_are_damage(tmp_path):
    topology = mp.Topology()
    topology.add_filament(np.arange(12.0).reshape(4, 3), 1.0, 0.5)
    simulation = mp.Simulation(mp.System(topology), mp.BAGOGABIntegrator(1e-3, kT=1.0, seed=1), threads=1)
    path = tmp_path / "r.h5"
    simulation.reporters.append(mp.reporters.TrajectoryReporter(path, 1))
    simulation.step(2)
    simulation.close()
    with h5py.File(path, "r+") as file:
        names = []
        file.visit(lambda name: names.append(name) if name.endswith("/bonds") or name == "connectivity/bonds" else None)
        for name in names:
            if isinstance(file[name], h5py.Dataset):
                del file[name]
                file.create_dataset(name, data=np.zeros(5, int))
    refuses(mp.ParameterError, "is damaged: bonds", mp.export, path, tmp_path / "r.pdb")
