"""Reporters in checkpoints: what is recorded of them, and how they resume writing their files.

In the head of a checkpoint that a Simulation has written, `reporters` is a list of trees. That of a reporter which
resumes is the call of its constructor (`medyanpy.serialize`) without the arguments for existing files, with its files
relative to the folder of the checkpoint, and its mark::

    {"type": "TrajectoryReporter", "arguments": {"path": "run.h5", "interval": 100, ...}, "mark": 25}

``"owes": true`` stands in it where the reporter had yet to report at the very step. Of others there is a name and a
reason: ``{"not_kept": "Collect", "why": ...}``. Wherever the file comes from, nothing is opened outside its folder
unless the user allows it, and nothing is changed before all files are known to be the right ones.
"""

import json
import os
import sys
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medyanpy.errors import MedyanError, ParameterError, ReporterWarning, foreign_errors, shortened, shown, warn_outside
from medyanpy.files.checkpoint import Checkpoint
from medyanpy.files.documents import call_anew, describe_call, find_type
from medyanpy.reporters._base import Reporter

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation

__all__ = ["bring_back", "calls_of", "written_down"]

_STREAMS = ("stdout", "stderr")


def written_down(simulation: "Simulation", folder: Path, owing: Collection[Any]) -> list[dict[str, Any]]:
    """Return the trees of all reporters, flushed first, for a checkpoint in this folder."""
    for reporter in simulation.reporters:
        reporter.flush()
    out = [_entry(reporter, simulation, folder) for reporter in simulation.reporters]
    for reporter, entry in zip(simulation.reporters, out, strict=True):
        if "type" in entry and any(reporter is one for one in owing):
            entry["owes"] = True
    return out


def _entry(reporter: Any, simulation: "Simulation", folder: Path) -> dict[str, Any]:
    cls = type(reporter)
    try:
        if not isinstance(reporter, Reporter) or not _goes_on(cls):
            raise ParameterError("its class does not say that it resumes")
        arguments = reporter._arguments_now()
        files = {name: _placed(arguments[name], name, folder) for name in cls.files}
        others = {name: value for name, value in arguments.items() if name not in (*files, *cls.goes_on)}
        entry = describe_call(cls, others, simulation.topology)
        entry["arguments"] = files | entry["arguments"]
        if _calls(entry):
            raise ParameterError("it was given a function")
    except MedyanError as cause:
        return {"not_kept": cls.__qualname__, "why": str(cause)}
    mark = reporter.mark(simulation)
    with foreign_errors(f"{cls.__name__}: mark gives what no checkpoint can hold"):
        json.dumps(mark, allow_nan=False)
    return {**entry, "mark": mark}


def _goes_on(cls: type[Reporter]) -> bool:
    """Tell whether a class can resume by its own constructor, not by one of a base class."""
    first = {name: next(i for i, c in enumerate(cls.__mro__) if name in vars(c)) for name in ("goes_on", "__init__")}
    if cls.goes_on is None or first["goes_on"] > first["__init__"]:
        return False
    return {*cls.files, *cls.goes_on} <= set(cls.__signature__.parameters)


def _placed(value: Any, name: str, folder: Path) -> Any:
    """Return a file as seen from a folder, or the name of a stream."""
    for stream in _STREAMS:
        if any(value is there for there in (getattr(sys, stream), getattr(sys, f"__{stream}__"))):
            return {"stream": stream}
    if not isinstance(value, str):
        raise ParameterError(f"{name} is a {type(value).__qualname__}, which no file can hold")
    path = Path(value)
    text = Path(os.path.relpath(path.parent.resolve() / path.name, folder.resolve())).as_posix()
    with foreign_errors(f"{name}: not a name in UTF-8"):
        text.encode()
    return text


def _calls(tree: Any) -> bool:
    """Tell whether there is a Python function in a tree."""
    if isinstance(tree, dict):
        return "function" in tree or any(map(_calls, tree.values()))
    return isinstance(tree, list) and any(map(_calls, tree))


def bring_back(
    simulation: "Simulation", checkpoint: Checkpoint, from_anywhere: bool
) -> tuple[list[Reporter], list[Reporter]]:
    """Make the reporters of a checkpoint again, for a simulation at its step; `from_anywhere` those with files outside
    of its folder, too.

    Returns all of them, each at its mark, and those that have yet to report at this step. No file has been changed by
    ParameterError, but by OutputError, where one cannot be brought back to its mark.
    """
    trees = calls_of(checkpoint, from_anywhere)
    for where, tree, _, paths in trees:
        _check_there(where, paths, tree["mark"] is not None)
    made: list[tuple[str, Reporter, Any]] = []
    with ExitStack() as stack:
        for where, tree, call, _ in trees:
            reporter = call_anew(call, Reporter, simulation.topology, where)
            stack.callback(_close, reporter)
            made.append((where, reporter, tree["mark"]))
        for act in ("check_mark", "go_on"):
            for where, reporter, mark in made:
                with foreign_errors(where):
                    getattr(reporter, act)(simulation, mark)
        stack.pop_all()
    reporters = [reporter for _, reporter, _ in made]
    owing = [r for r, (_, tree, *_) in zip(reporters, trees, strict=True) if tree.get("owes")]
    return reporters, owing


def calls_of(
    checkpoint: Checkpoint, from_anywhere: bool
) -> list[tuple[str, dict[str, Any], dict[str, Any], list[Path]]]:
    """Return the calls that `bring_back` would make, as far as the checkpoint alone tells, and warn of what it does not
    keep. Each is its place in the checkpoint, the entry there, the tree of the call, and the files in it."""
    # The folder is that of the file itself, where a link to it was given.
    folder = checkpoint.path.resolve().parent
    trees, left = [], []
    for i, tree in enumerate(checkpoint.reporters):
        where = f"{checkpoint.path}: reporters[{i}]"
        if not isinstance(tree, dict):
            raise ParameterError(f"{where} must be an object (names and values), not {shown(tree)}")
        if "not_kept" in tree:
            left.append(f"{shown(tree['not_kept'])[1:-1]} ({shortened(str(tree.get('why')))})")
        else:
            trees.append((where, tree, *_located(tree, where, folder)))
    _refuse_outside(checkpoint.path, folder, [path for *_, paths in trees for path in paths], from_anywhere)
    if left:
        warn_outside(
            f"{checkpoint.path} does not bring back {', '.join(left)}: append what is missing to simulation.reporters",
            ReporterWarning,
        )
    return trees


def _located(tree: dict[str, Any], where: str, folder: Path) -> tuple[dict[str, Any], list[Path]]:
    """Return the tree of the call by which a reporter resumes, and the files in it."""
    unknown = [key for key in tree if key not in ("type", "arguments", "mark", "owes")]
    if unknown or not {"type", "arguments", "mark"} <= tree.keys():
        raise ParameterError(f"{where} must have type, arguments and mark, and may have owes, not {shown(list(tree))}")
    if not isinstance(tree["arguments"], dict) or not isinstance(tree.get("owes", False), bool):
        raise ParameterError(f"{where}: arguments must be an object and owes true or false")
    cls = find_type(tree["type"], Reporter, f"{where}.type")
    if not _goes_on(cls):
        raise ParameterError(f"{where}.type = {tree['type']!r}: this class does not say that it resumes")
    arguments, paths = {**tree["arguments"], **cls.goes_on}, []
    for name in cls.files:
        value = arguments.get(name)
        if isinstance(value, dict) and value.keys() == {"stream"} and value["stream"] in _STREAMS:
            arguments[name] = getattr(sys, value["stream"])
        elif isinstance(value, str) and value and "\0" not in value:
            paths.append(folder / value)
            arguments[name] = str(paths[-1])
        else:
            raise ParameterError(f"{where}.arguments.{name} must be the name of a file, not {shown(value)}")
    return {"type": tree["type"], "arguments": arguments}, paths


def _refuse_outside(checkpoint: Path, folder: Path, paths: list[Path], from_anywhere: bool) -> None:
    """Refuse files outside of the folder; links count as what they lead to."""
    with foreign_errors(f"{checkpoint}: reporters"):
        outside = [path for path in paths if not path.resolve().is_relative_to(folder)]
    if outside and not from_anywhere:
        raise ParameterError(
            f"{checkpoint} names files outside of its folder, and may come from anybody:\n  "
            + "\n  ".join(shortened(os.path.abspath(path)) for path in outside)
            + "\nIf it is yours, reporters=True resumes these as well"
        )


def _check_there(where: str, paths: list[Path], must_be: bool) -> None:
    for path in paths:
        with foreign_errors(where):
            there, regular = path.exists(), path.is_file()
        if must_be and not there:
            raise ParameterError(f"{where}: {path} is gone; put it back")
        if there and not regular:
            raise ParameterError(f"{where}: {path} is not a file that holds something")


def _close(reporter: Reporter) -> None:
    with suppress(Exception):
        reporter.close()
