"""``medyanpy info``."""

import argparse
import json
from pathlib import Path
from typing import Any

from medyanpy.cli.codes import DONE
from medyanpy.errors import ParameterError

__all__ = ["add", "contents", "run"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Add the command and its options."""
    parser = commands.add_parser(
        "info",
        help="show version, threads and optional parts; or what is in a file",
        description="Shows version, instruction set, OpenMP, threads and optional parts; of a trajectory, checkpoint, "
        "document or folder of a run, what is in it.",
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="run.h5, run.checkpoint, a document, or a folder")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    from medyanpy._tools.info import information, told

    if options.file is None:
        found: dict[str, Any] = information()
        rows = told()
    else:
        found = contents(Path(options.file))
        rows = [(name, _line(value)) for name, value in found.items()]
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            print(f"{name:<{width}}  {value}".replace("\n", "\n" + " " * (width + 2)))
    return DONE


def contents(path: Path) -> dict[str, Any]:
    """Return what is in a file, for JSON; refuse one that does not exist, or is not of this package."""
    from medyanpy.files.checkpoint import is_checkpoint
    from medyanpy.runs import CHECKPOINT

    if path.is_dir():
        if not (path / CHECKPOINT).exists():
            raise ParameterError(f"{path} holds no {CHECKPOINT}")
        return _checkpoint(path / CHECKPOINT) | {"files": sorted(p.name for p in path.iterdir() if p.name[0] != ".")}
    if not path.exists():
        raise ParameterError(f"{path} does not exist")
    if is_checkpoint(path):
        return _checkpoint(path)
    with open(path, "rb") as file:
        begin = file.read(64)
    if begin.startswith(b"\x89HDF"):
        return _trajectory(path)
    if begin.lstrip()[:1] == b"{":
        return _document(path)
    raise ParameterError(f"{path} is neither a trajectory, nor a checkpoint, nor a document")


def _trajectory(path: Path) -> dict[str, Any]:
    from medyanpy._tools.images import in_words
    from medyanpy.files.trajectory import Trajectory

    with Trajectory(path) as trajectory:
        last = trajectory._last
        return {
            "kind": "trajectory",
            "files": [str(part) for part in trajectory.paths],
            **({"missing": trajectory.missing} if trajectory.missing else {}),
            "frames": len(trajectory),
            "steps": [int(step) for step in trajectory.steps[[0, -1]]] if len(trajectory) else [],
            "times": [float(time) for time in trajectory.times[[0, -1]]] if len(trajectory) else [],
            "timestep": float(trajectory.timestep),
            "word": trajectory.word,
            "beads": trajectory.n_beads,
            **({"box (nm)": in_words(box)} if (box := trajectory[-1].box if len(trajectory) else None) else {}),
            "objects": {name: f"{len(handle)} beads, {handle.kind}" for name, handle in trajectory.handles.items()},
            "in each frame": [name for name in last.elements if last.holds(name)],
        }


def _checkpoint(path: Path) -> dict[str, Any]:
    from medyanpy._tools.images import box_shown, in_words
    from medyanpy.files.checkpoint import read_checkpoint

    checkpoint = read_checkpoint(path)
    reporters = {}
    for i, tree in enumerate(checkpoint.reporters):
        called = tree.get("type") if isinstance(tree, dict) else None
        arguments = tree.get("arguments", {}) if isinstance(tree, dict) else {}
        name = arguments.get("path", arguments.get("file", f"reporters[{i}]"))
        reporters[str(name)] = f"{called}, every {arguments.get('interval')} steps" if called else "not kept"
    found = {"kind": "checkpoint", "step": checkpoint.step} | _content(checkpoint.content)
    if (box := box_shown(checkpoint.arrays.get("box"))) is not None:
        # As it is by now.
        found["box (nm)"] = in_words(box)
    return found | {"reporters": reporters}


def _document(path: Path) -> dict[str, Any]:
    from medyanpy.files.documents import content_of
    from medyanpy.files.trees import tree_of

    with open(path, encoding="utf-8") as file:
        content = content_of(tree_of(file.read(), str(path)), str(path))
    return {"kind": "document"} | _content(content)


def _content(content: Any) -> dict[str, Any]:
    """List the content of a Simulation, System or Topology by its tree; nothing is built: that might need functions."""
    from medyanpy._tools.images import in_words
    from medyanpy.errors import foreign_errors

    with foreign_errors("not the content of a document"):
        system = content.get("system", content)
        topology = system.get("topology", system)
        integrator = content.get("integrator")
        out = {
            "of a": content["type"],
            "objects": {
                o["arguments"].get("name") or f"objects[{i}]": o["type"]
                for i, o in enumerate(topology.get("objects", []))
            },
            "forces": {f["name"]: f["type"] for f in system.get("forces", [])},
            "jumps": {j["name"]: j["type"] for j in system.get("jumps", [])},
        }
        if system.get("box"):
            out["box (nm)"] = in_words(tuple(system["box"]))
        if integrator is not None:
            numbers = {k: v for k, v in integrator["arguments"].items() if isinstance(v, int | float | str)}
            out["integrator"] = {"type": integrator["type"]} | numbers
    return {name: value for name, value in out.items() if value}


def _line(value: Any) -> str:
    """Return a value as text for people."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {part}" for name, part in value.items())
    if isinstance(value, list):
        numbers = len(value) == 2 and all(isinstance(part, int | float) for part in value)
        return f"{value[0]:g} to {value[1]:g}" if numbers else ", ".join(map(str, value))
    return str(value)
