"""Checkpoints: files from which a run goes on with the same bits."""

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._version import __version__
from medyanpy.errors import ParameterError

__all__ = ["read_checkpoint", "write_checkpoint"]

_FORMAT = "medyanpy checkpoint 1"


def _digest(*arrays: np.ndarray) -> str:
    """A short hash of arrays' contents."""
    h = hashlib.sha256()
    for a in arrays:
        a = np.ascontiguousarray(a)
        h.update(str((a.shape, a.dtype.str)).encode())
        h.update(a.tobytes())
    return h.hexdigest()[:16]


def _identity(context) -> dict[str, Any]:
    """What a checkpoint must share with the simulation that loads it, by what a user calls it."""
    program = context.integrator
    out = {
        "word": program.word,
        "timestep": program.timestep.hex(),
        "kT": None if program.kT is None else program.kT.hex(),
        "seed": str(program.seed),
    }
    for handle in context.layout.topology.handles:
        parts = [handle.mass, handle.friction, np.array([handle.fixed])]
        if hasattr(handle, "mesh"):
            parts.append(handle.mesh.faces)
        if hasattr(handle, "radius"):
            parts.append(handle.radius)
        out[f"object {handle.name!r}"] = f"{type(handle).__name__} of {len(handle)}, {_digest(*parts)}"
    for name, force in zip(context.system.force_names, context.system.forces, strict=True):
        numbers = [np.asarray(v) for v in force.parameters.values() if not callable(v)]
        kept = [a for a in numbers if a.dtype.kind in "biuf"]
        out[f"force {name!r}"] = f"{type(force).__name__} in group {force.group}, {_digest(*kept)}"
    return out


def write_atomically(path: Path, write) -> None:
    """Call write(file) on a file beside `path`, make it safe on disk, and give it the name."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(beside, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_checkpoint(context, path: Path) -> None:
    """Write state, counters and coefficients of a context."""
    arrays = context.dynamical_arrays()
    head = {
        "format": _FORMAT,
        "version": __version__,
        "step": context.step_count,
        "identity": _identity(context),
        "digest": _digest(*arrays.values()),
    }
    text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    write_atomically(path, lambda file: np.savez(file, head=text, **arrays))


def read_checkpoint(context, path: Path) -> None:
    """Set a context to what a checkpoint holds."""
    try:
        # Opened here, since NumPy leaves the file open where it is damaged.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            head = json.loads(bytes(file["head"]))
            arrays = {name: file[name] for name in file.files if name != "head"}
    except FileNotFoundError:
        raise ParameterError(f"checkpoint {path} does not exist") from None
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile) as cause:
        raise ParameterError(f"{path} is no checkpoint, or is damaged: {cause}") from cause
    if head.get("format") != _FORMAT:
        raise ParameterError(f"{path} has format {head.get('format')!r}; this version reads {_FORMAT!r}")
    mine, theirs = _identity(context), head["identity"]
    differing = [
        f"{key}: {theirs.get(key, 'absent')} in the file, {mine.get(key, 'absent')} here"
        for key in [*mine, *(k for k in theirs if k not in mine)]
        if mine.get(key) != theirs.get(key)
    ]
    if differing:
        raise ParameterError(f"checkpoint {path} belongs to another simulation:\n  " + "\n  ".join(differing))
    if _digest(*arrays.values()) != head["digest"]:
        raise ParameterError(f"{path} is damaged: its numbers do not match their checksum")
    context.set_dynamical_arrays(arrays, head["step"])
