"""Exports that fail or are refused, and what they leave as it was."""

import importlib
import shutil
import sys

import h5py
import numpy as np
import pytest
from builders import refuses
from viewers.exported import needs_writer_of, write_one

import medyanpy as mp
from medyanpy.files.exports import exporting

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ending", sorted(exporting.FORMATS))
def test_existing_files_stay(run, tmp_path, ending):
    needs_writer_of(ending)
    paths = mp.export(run.path, tmp_path / f"run{ending}", frames=slice(0, 2)).paths
    before = {path: path.read_bytes() for path in paths}
    with pytest.raises(mp.ParameterError, match=rf"{ending} exists; give overwrite=True"):
        mp.export(run.path, tmp_path / f"run{ending}", frames=slice(0, 2))
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}
    mp.export(run.path, tmp_path / f"run{ending}", frames=slice(0, 2), overwrite=True)
    assert before.keys() == set(tmp_path.iterdir())


@pytest.mark.parametrize("ending", sorted(exporting.FORMATS))
def test_failure_keeps_existing_files(run, tmp_path, ending, monkeypatch):
    """Whatever has been written by then."""
    needs_writer_of(ending)
    out = tmp_path / f"run{ending}"
    paths = mp.export(run.path, out).paths
    for path in paths:
        path.write_bytes(b"of before")
    form = importlib.import_module(f"medyanpy.files.exports.{exporting.FORMATS[ending].module}").FORMAT
    write = form.write

    def fails(self, made):
        write(self, made)
        assert all(path.stat().st_size for path in made)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(form, "write", fails)
    with pytest.raises(mp.OutputError, match="Input/output error; what was there before is as it was"):
        mp.export(run.path, out, overwrite=True)
    assert {path.read_bytes() for path in paths} == {b"of before"}
    assert set(tmp_path.iterdir()) == set(paths)


def test_a_source_that_is_damaged_inside(run, tmp_path):
    broken, out = tmp_path / "broken.h5", tmp_path / "run.xyz"
    shutil.copy(run.path, broken)
    with h5py.File(broken) as file:
        chunk = file["particles/all/position/value"].id.get_chunk_info(0)
    with open(broken, "r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(bytes(200))
    out.write_bytes(b"of before")
    refuses(mp.ParameterError, "is damaged: positions", mp.export, broken, out, overwrite=True)
    assert out.read_bytes() == b"of before"
    assert set(tmp_path.iterdir()) == {broken, out}


def test_leftovers_of_a_killed_export_are_removed(run, tmp_path):
    left = tmp_path / ".run.xyz.999999999.tmp"
    left.write_text("half")
    mp.export(run.path, tmp_path / "run.xyz", frames=slice(0, 1))
    assert not left.exists()


def test_a_disk_that_fails(run, tmp_path, monkeypatch):
    out = tmp_path / "run.xyz"
    out.write_text("of before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(mp.OutputError, match=r"export: cannot write .*run\.xyz: No space left on device; make room"):
        mp.export(run.path, out, overwrite=True)
    assert out.read_text() == "of before"
    assert list(tmp_path.iterdir()) == [out]


BAD = {
    "an unknown ending": ({"out": "run.trr"}, r"ending '\.trr' are not written, only \.dcd, \.gsd, \.pdb, \.ply"),
    "no ending": ({"out": "run"}, "ending '' are not written"),
    "no path": ({"out": 3}, "export: out"),
    "no source": ({"source": "none.h5"}, r"none\.h5 does not exist"),
    "no source at all": ({"source": 3}, "Trajectory: path"),
    "a word for a switch": ({"overwrite": "no"}, "export: overwrite must be True or False, not 'no'"),
    "a folder": ({"out": "folder.xyz"}, r"folder\.xyz is a folder"),
    "no folder": ({"out": "nowhere/run.xyz"}, "folder .*nowhere does not exist"),
    "a number": ({"frames": 3}, r"frames = 3 but must be a slice"),
    "a slice of text": ({"frames": slice("a", None)}, "is not a slice of frames"),
    "backwards": ({"frames": slice(None, None, -1)}, "goes backwards"),
    "none of them": ({"frames": slice(100, None)}, r"are none of the 8 frames of .*run\.h5"),
    "no file of ours": ({"source": "text.h5"}, "text.h5 is not an HDF5 file"),
    "a file that was cut": ({"source": "cut.h5"}, "cut short"),
    "a newer file": ({"source": "newer.h5"}, "has format 99"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input(run, tmp_path, what):
    shutil.copy(run.path, tmp_path / "run.h5")
    (tmp_path / "text.h5").write_text("text")
    (tmp_path / "cut.h5").write_bytes(run.path.read_bytes()[:-3000])
    shutil.copy(run.path, tmp_path / "newer.h5")
    with h5py.File(tmp_path / "newer.h5", "r+") as file:
        file["medyanpy"].attrs["format"] = 99
    (tmp_path / "folder.xyz").mkdir()
    before = sorted(tmp_path.iterdir())
    change, message = BAD[what]
    given = {"source": "run.h5", "out": "run.xyz"} | change
    for key in ("source", "out"):
        given[key] = tmp_path / given[key] if isinstance(given[key], str) else given[key]
    refuses(mp.ParameterError, message, mp.export, **given)
    assert sorted(tmp_path.iterdir()) == before


def test_a_trajectory_is_not_replaced_by_its_export(run, tmp_path):
    """Whatever it is called."""
    own = tmp_path / "run.xyz"
    shutil.copy(run.path, own)
    link = tmp_path / "link.xyz"
    link.symlink_to(own)
    for out in (own, link):
        refuses(mp.ParameterError, "is the trajectory itself", mp.export, own, out, overwrite=True)
    assert own.read_bytes() == run.path.read_bytes()


def test_an_open_trajectory_stays_open(run, tmp_path):
    with mp.Trajectory(run.path) as trajectory:
        report = mp.export(trajectory, tmp_path / "run.xyz", frames=slice(0, 1))
        assert report.n_frames == 1
        assert len(trajectory[0].positions) == 316


def test_a_run_without_frames(tmp_path):
    topology = mp.Topology()
    topology.add_beads(np.eye(3), mass=1.0)
    write_one(topology, tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5", "r+") as file:
        for name in ("step", "time"):
            file["particles/all/position"][name].resize(0, axis=0)
    # What needs a library last.
    for ending in sorted(exporting.FORMATS, key=lambda ending: ending in (".dcd", ".gsd")):
        needs_writer_of(ending)
        with pytest.raises(mp.ParameterError, match=r"run\.h5 holds no frames"):
            mp.export(tmp_path / "run.h5", tmp_path / f"run{ending}")


def test_without_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gsd", None)
    monkeypatch.setitem(sys.modules, "gsd.hoomd", None)
    with pytest.raises(ImportError, match=r"a GSD file needs gsd: pip install 'medyanpy\[viewers\]'"):
        mp.export(run.path, tmp_path / "run.gsd")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "package", "called"), [("ovito", "ovito", "OVITO"), ("mdanalysis", "MDAnalysis", "MDAnalysis")]
)
def test_readers_without_the_extra(monkeypatch, module, package, called):
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"medyanpy.{module}", raising=False)
    with pytest.raises(ImportError, match=rf"medyanpy\.{module} needs {called}: pip install 'medyanpy\[viewers\]'"):
        importlib.import_module(f"medyanpy.{module}")
