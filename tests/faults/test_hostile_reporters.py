"""Checkpoints that somebody made up and that name reporters: typed errors, and no file of others is touched."""

import json
import os
import sys

import h5py
import numpy as np
import pytest
from builders import refuses
from hostile_files import members_of, packed, simulation

import medyanpy as mp

pytestmark = pytest.mark.slow

CALLED = []
#: What Python has been asked to open, truncate, rename or remove.
TOUCHED = []


def _notice(event, arguments):
    if event in ("open", "os.truncate", "os.rename", "os.remove", "os.chmod"):
        TOUCHED.extend(arguments[:2])


sys.addaudithook(_notice)


class Writes(mp.reporters.Reporter):
    """A class that is there, does not say that it resumes, and would do harm."""

    def __init__(self, path, interval):
        CALLED.append(path)
        super().__init__(interval)

    def report(self, simulation, state):
        pass


@pytest.fixture
def folder(tmp_path):
    """A user's home, and in it a folder with a checkpoint of somebody else."""
    home = tmp_path / "home"
    (home / "downloads").mkdir(parents=True)
    (home / "thesis.tex").write_text("a thesis")
    made = simulation()
    made.step(2)
    made.reporters += [
        mp.reporters.StateDataReporter(home / "downloads" / "t.csv", 1, step=True),
        mp.reporters.TrajectoryReporter(home / "downloads" / "run.h5", 1),
        mp.reporters.CheckpointReporter(home / "downloads" / "c", 1),
    ]
    made.step(1)
    made.close()
    (home / "downloads" / "letter.txt").write_text("a letter")
    return home / "downloads"


def entries_of(folder):
    return json.loads(members_of((folder / "c").read_bytes())["checkpoint.json"])["reporters"]


def written(folder, entries):
    members = members_of((folder / "c").read_bytes())
    head = json.loads(members["checkpoint.json"])
    head["reporters"] = entries
    members["checkpoint.json"] = json.dumps(head).encode()
    path = folder / "hostile"
    path.write_bytes(packed(members))
    return path


def there(folder):
    """All files, and when they were last opened to be written."""
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.parent.rglob("*") if p.is_file()}


def refused(folder, entries, message="."):
    path = written(folder, entries)
    before = there(folder)
    with pytest.raises(mp.MedyanError, match=message) as caught:
        mp.Simulation.resume(path, threads=1)
    assert len(str(caught.value)) < 1500
    assert there(folder) == before


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("name", ["../thesis.tex", "../new", "ABSOLUTE", "../downloads/../thesis.tex", "/etc/passwd",
                                  "..", "link", "../{step}"])  # fmt: skip
def test_nothing_outside_of_the_folder_is_made_cut_or_opened(folder, k, name):
    home = folder.parent
    (folder / "link").symlink_to(home / "thesis.tex")
    entries = entries_of(folder)
    where = entries[k]["arguments"]
    where["file" if k == 0 else "path"] = str(home / "thesis.tex") if name == "ABSOLUTE" else name
    TOUCHED.clear()
    for mark in (entries[k]["mark"], None, 0):
        entries[k]["mark"] = mark
        refused(folder, entries, "names files outside of its folder")
    paths = [os.path.realpath(path) for path in TOUCHED if isinstance(path, str | os.PathLike)]
    assert str(folder / "hostile") in paths
    # Only this test itself looks there.
    assert not [path for path in paths if path in (f"{home}/new", "/etc/passwd") or path.startswith(f"{home}/{{")]
    assert paths.count(f"{home}/thesis.tex") == 2 * 3 * 2


@pytest.mark.parametrize("name", ["letter.txt", "c", "hostile", "t.csv", "run.h5"])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_files_in_the_folder_are_taken_only_for_what_they_are(folder, k, name):
    """A table goes on in tables, a trajectory in trajectories, and checkpoints replace checkpoints."""
    own = entries_of(folder)
    argument = "file" if k == 0 else "path"
    if name == ["t.csv", "run.h5", "c"][k] or (k == 2 and name == "hostile"):
        return
    for mark in (own[k]["mark"], None, 0):
        entry = {**own[k], "mark": mark, "arguments": {**own[k]["arguments"], argument: name}}
        refused(folder, [entry])
        # Twice the same file is no way round it.
        refused(folder, [*own, entry])


VALUES = [None, True, -1, 2**70, 1.5, "", "x", "\0", "a\ud800", [], [[]], {}, {"stream": "stdin"},
          {"stream": ["stdout"]}, {"handle": "points"}, {"function": "os:remove"}, {"dict": {}}, {"same_as": "path"},
          {"member": "state/x"}, {"dtype": "int64", "values": [1]}, {"type": "Writes", "arguments": {}}, 10**400,
          "x" * 5000, "./" * 3000]  # fmt: skip


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_any_value_anywhere_is_read_or_refused(folder, k, every):
    """In each place of each entry a third of the values, in turn; what is refused has changed nothing."""
    own = entries_of(folder)
    places = [("mark",)] if k else [(), ("type",), ("arguments",), ("mark",), ("owes",), ("other",), ("not_kept",)]
    places += [("arguments", name) for name in [*own[k]["arguments"], "extra", "append", "overwrite", "interval"]]
    tried = 0
    for i, place in enumerate(places):
        for value in VALUES[i % every :: every]:
            entries = json.loads(json.dumps(own))
            node = entries
            for key in (k, *place)[:-1]:
                node = node[key]
            node[(k, *place)[-1]] = value
            path = written(folder, entries)
            before = there(folder)
            tried += 1
            error = None
            try:
                mp.Simulation.resume(path, threads=1).close()
            except (mp.MedyanError, mp.ReporterWarning) as caught:
                error = caught
            if error is not None:
                assert len(str(error)) < 1500, (place, value)
                assert there(folder) == before, (place, value)
                assert isinstance(error, mp.MedyanError) or place == ("not_kept",)
            after = there(folder)
            for new in set(after) - set(before):
                # A file that nothing was written to yet may have any name, in this folder.
                assert new.parent == folder
                new.unlink()
            for old in before:
                assert after[old][0] == before[old][0] or old.name in ("t.csv", "run.h5"), (place, value)
    assert tried > 2 * len(VALUES)
    for wrong in (None, 3, "x", {}, {"member": "state/x"}):
        refused(folder, wrong, "reporters")


@pytest.mark.parametrize("name", ["Writes", "WRITES", "os:remove", "builtins:open", "Reporter", "HarmonicTrap",
                                  "pathlib:Path", "_Child"])  # fmt: skip
def test_only_existing_classes_that_resume_are_called(folder, name):
    CALLED.clear()
    name = f"{Writes.__module__}:Writes" if name == "WRITES" else name
    arguments = {"path": "letter.txt", "interval": 1}
    refused(folder, [{"type": name, "arguments": arguments, "mark": None}], r"reporters\[0\]\.type = ")
    assert CALLED == []


def test_checkpoints_do_not_take_the_places_of_links(folder):
    """Not even where they lead to one."""
    (folder.parent / "other.cp").write_bytes((folder / "c").read_bytes())
    (folder / "run-7.cp").symlink_to(folder.parent / "other.cp")
    entries = entries_of(folder)
    entries[2]["arguments"]["path"] = "run-{step}.cp"
    refused(folder, entries, "run-7.cp is not a checkpoint")


@pytest.mark.parametrize("how", ["link", "storage", "virtual"])
def test_a_trajectory_has_no_part_in_another_file(folder, how):
    """What is cut off and written would be cut off and written there."""
    name, outside = "particles/all/position/value", folder.parent / "other.h5"
    with h5py.File(folder / "run.h5", "r+") as file, h5py.File(outside, "w") as other:
        value = file[name]
        other.create_dataset("value", data=np.zeros((5, *value.shape[1:])), maxshape=(None, *value.shape[1:]))
        shape, group = value.shape, value.parent
        del file[name]
        if how == "link":
            group["value"] = h5py.ExternalLink(str(outside), "value")
        elif how == "storage":
            (folder.parent / "raw").write_bytes(bytes(10_000))
            group.create_dataset("value", shape, "<f8", external=[(str(folder.parent / "raw"), 0, 10_000)])
        else:
            layout = h5py.VirtualLayout(shape, "<f8")
            layout[:] = h5py.VirtualSource(str(outside), "value", (5, *shape[1:]))[: shape[0]]
            group.create_virtual_dataset("value", layout)
    refused(folder, entries_of(folder), r"position.* is in another file, which no part of a trajectory is")
    refuses(mp.ParameterError, "is in another file", mp.Trajectory, folder / "run.h5")


def test_flags_are_not_taken_from_the_file(folder):
    """`overwrite` would empty a table before anything is compared."""
    entries = entries_of(folder)
    entries[0]["arguments"] |= {"overwrite": True, "append": False, "time": True}
    refused(folder, entries, "has other columns")


def test_streams_and_devices(folder):
    os.mkfifo(folder / "pipe")
    for k, argument in enumerate(("file", "path", "path")):
        entries = entries_of(folder)
        entries[k]["arguments"][argument] = "pipe"
        path = written(folder, entries)
        refuses(mp.ParameterError, "is not a file", mp.Simulation.resume, path, threads=1)
