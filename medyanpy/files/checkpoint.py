"""Checkpoints: files from which a run resumes with the same bits.

A checkpoint is an uncompressed zip archive, which ``numpy.load`` and every unzip program open. `checkpoint.json` in it
is text: the step and the document of the simulation (`medyanpy.serialize`) with its large arrays in files of their own
under ``document/``. The arrays that a step reads, in the order and number format of the Context, are under ``state/``.
The comment of the archive is a checksum of all bytes before it: no byte of the file is without one.
"""

import io
import math
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from medyanpy._tools.outputs import remove_left_over, write_atomically
from medyanpy._tools.validation import array, number
from medyanpy._version import __version__
from medyanpy.core.columns import SPECIES
from medyanpy.core.letters import LETTERS
from medyanpy.errors import MedyanError, ParameterError, foreign_errors, shown
from medyanpy.files.documents import content_of, describe, document, rebuild
from medyanpy.files.trees import DTYPES, arrays_apart, arrays_together, check_format, check_shape, text_of, tree_of

if TYPE_CHECKING:
    import zipfile

__all__ = ["Checkpoint", "is_checkpoint", "load_into", "read_checkpoint", "read_head", "write_checkpoint"]

FORMAT = "medyanpy checkpoint"
VERSION = 4
_HEAD = "checkpoint.json"
_SUM = re.compile(rb"medyanpy checkpoint, crc32 ([0-9a-f]{8})")
_SUM_LENGTH = len(b"medyanpy checkpoint, crc32 01234567")
# Arrays of a state that are measured from it, which may be nan before there is anything to measure.
_MEASURED = ("after_o", "work")
# Bound of differences in the coefficients of friction and noise, which NumPy and LAPACK compute, from machine to
# machine.
_LAST_BITS = 1e-6
# Starting places: a simulation may be built elsewhere than where it resumes.
_STARTS = ("positions", "vertices", "barycentric")


@dataclass(frozen=True)
class Checkpoint:
    """Content of a checkpoint file: document, arrays of the state and their step, the time (s) and step since which the
    timestep has been what it is, and the trees of reporters."""

    path: Path
    content: Any
    arrays: dict[str, np.ndarray]
    step: int
    since: tuple[float, int] = (0.0, 0)
    reporters: list[Any] = field(default_factory=list)

    def rebuild(self, functions: Any = None) -> tuple[Any, Any]:
        """Return the system and the integrator."""
        made = rebuild(self.content, functions=functions, where=f"{self.path}: content")
        if not isinstance(made, tuple):
            raise ParameterError(f"{self.path} holds the document of a {type(made).__name__}, not of a Simulation")
        return made

    def restore(self, context: Any) -> None:
        """Set a context of this system and integrator to the state; nothing changes where arrays do not fit it."""
        try:
            since, steps = self.since
            number("time", since + (self.step - steps) * context.integrator.timestep)
            _check_values(self.arrays, context)
            context._set_dynamical_arrays(self.arrays, self.step, self.since)
        except MedyanError as cause:
            raise ParameterError(f"{self.path}: {cause}") from cause


# Writing -----------------------------------------------------------------------------------------------------------


def write_checkpoint(context: Any, path: Path, reporters: list[Any] | None = None) -> None:
    """Write description, state, counters and coefficients of a context, and trees that tell of reporters."""
    context._measure.check_finite()
    # First: the context follows what has been set, and counts time by it.
    state = context._dynamical_arrays()
    members: dict[str, np.ndarray] = {}
    whole = document(context)
    whole["content"] = arrays_apart(whole["content"], "document", members)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "medyanpy": __version__,
        "step": context.step_count,
        "since": context._schedule.since,
        "document": whole,
    }
    if reporters is not None:
        head["reporters"] = arrays_apart(reporters, "reporters", members)
    members.update((f"state/{name}", a) for name, a in state.items())
    write_atomically("checkpoint", path, lambda file: _write(file, text_of(head), members))
    # Left-over files are of processes that were killed while they wrote the same.
    remove_left_over(path)


def _write(file: BinaryIO, head: str, members: dict[str, np.ndarray]) -> None:
    import zipfile

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        # Dated as zip archives begin: the same simulation gives the same bytes.
        archive.writestr(zipfile.ZipInfo(_HEAD), head + "\n")
        for name, array in members.items():
            a = np.ascontiguousarray(array)
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(a))
                member.write(a.reshape(-1).view(np.uint8).data)
        archive.comment = bytes(_SUM_LENGTH)
    file.seek(-_SUM_LENGTH, io.SEEK_END)
    checksum = _crc(file, file.tell())
    file.write(b"medyanpy checkpoint, crc32 %08x" % checksum)


def _crc(file: BinaryIO, n: int) -> int:
    """Return the CRC-32 of the first n bytes, which finds every change of up to 32 bits in a row."""
    file.seek(0)
    out = 0
    while n > 0:
        block = file.read(min(n, 1 << 20))
        if not block:
            break
        out = zlib.crc32(block, out)
        n -= len(block)
    return out


# Reading -----------------------------------------------------------------------------------------------------------


def read_checkpoint(path: Path) -> Checkpoint:
    """Read and check a file, of which no code is run, with no more memory than arrays of its size and the tree of its
    text take."""
    if not os.path.isfile(path):
        raise ParameterError(f"checkpoint {path} {'is not a file' if os.path.exists(path) else 'does not exist'}")
    with foreign_errors(f"{path} is not a checkpoint, or is damaged"), open(path, "rb") as file:
        with _opened(file, _check_sum(file, path), path) as (archive, head):
            arrays = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            members = {info.filename.removesuffix(".npy"): _array(archive, info) for info in arrays}
        step = head["step"]
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 2**63:
            raise ParameterError(f"{path}: step = {step!r} but must be a whole number >= 0")
        since = _since(head["since"], step, path)
        content = content_of(head["document"], f"{path}: document")
        state = {name.removeprefix("state/"): a for name, a in _below("state", members).items()}
        content = arrays_together(content, _below("document", members), f"{path}: content")
        # Checkpoints of a Context have no reporters.
        reporters = arrays_together(head.get("reporters", []), _below("reporters", members), f"{path}: reporters")
        if not isinstance(reporters, list):
            raise ParameterError(f"{path}: reporters must be a list, not {shown(reporters)}")
        return Checkpoint(path, content, state, step, since, reporters)


@contextmanager
def _opened(file: BinaryIO, size: int, path: Path) -> "Iterator[tuple[zipfile.ZipFile, Any]]":
    """Open the archive of a checkpoint of a size, and read its text."""
    import zipfile

    with zipfile.ZipFile(file) as archive:
        _check_members(archive, size)
        head = tree_of(archive.read(_HEAD).decode(), str(path))
        check_format(head, str(path), FORMAT, VERSION)
        yield archive, head


def _below(place: str, members: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: a for name, a in members.items() if name.startswith(f"{place}/")}


def read_head(path: Path) -> dict[str, Any]:
    """Return the text of a checkpoint, without its arrays and its checksum: enough to see how far it is."""
    with foreign_errors(f"{path} is not a checkpoint, or is damaged"), open(path, "rb") as file:
        with _opened(file, _sum_at_end(file)[0], path) as (_, head):
            pass
        if type(head["step"]) is not int or not isinstance(head.get("reporters", []), list):
            raise ValueError("its step is missing, or its reporters are not a list")
        return dict(head)


def _since(given: Any, step: int, path: Path) -> tuple[float, int]:
    """Return a time and a step, as `Context` counts from them."""
    if (
        not isinstance(given, list)
        or [type(part) for part in given] != [float, int]
        or not math.isfinite(given[0])
        or not 0 <= given[1] <= step
    ):
        raise ParameterError(f"{path}: since = {given!r} but must be a time and a step from 0 to {step}")
    return given[0], given[1]


def is_checkpoint(path: Path) -> bool:
    """Tell whether a file ends as checkpoints do."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return _sum_at_end(file)[1] is not None


def _sum_at_end(file: BinaryIO) -> tuple[int, re.Match[bytes] | None]:
    """Return the size of a file, and the checksum that its end holds of the bytes before it."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _SUM_LENGTH))
    return size, _SUM.fullmatch(file.read(_SUM_LENGTH))


def _check_sum(file: BinaryIO, path: Path) -> int:
    """Return the size of a file whose checksum is right."""
    size, found = _sum_at_end(file)
    if found is None:
        file.seek(0)
        raise ParameterError(f"{path} is not a checkpoint, or has lost its end ({size} bytes)")
    if _crc(file, size - _SUM_LENGTH) != int(found.group(1), 16):
        raise ParameterError(f"{path} is damaged: its bytes do not match their checksum")
    file.seek(0)
    return size


def _check_members(archive: "zipfile.ZipFile", size: int) -> None:
    """Refuse members that `write_checkpoint` does not make: packed ones, and those that share bytes, could be any
    size."""
    import zipfile

    members = archive.infolist()
    for info in members:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"{info.filename} is compressed, which members of checkpoints are not")
    total = sum(info.file_size for info in members)
    if total > size:
        raise ValueError(f"its members have {total} bytes together, but the file has {size}")


def _array(archive: "zipfile.ZipFile", info: "zipfile.ZipInfo") -> np.ndarray:
    with cast("zipfile.ZipExtFile", archive.open(info)) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{info.filename} has a format of NumPy that checkpoints do not use")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(member)
        if fortran or dtype.name not in DTYPES or not dtype.isnative:
            raise ValueError(f"{info.filename} is not a plain array of numbers")
        check_shape(info.filename, list(shape))
        n_bytes = math.prod(shape) * dtype.itemsize
        if member.tell() + n_bytes != info.file_size:
            raise ValueError(f"{info.filename} is shorter or longer than its array, of {n_bytes} bytes")
        out = np.empty(shape, dtype)
        data = out.reshape(-1).view(np.uint8).data
        done = 0
        while done < len(data):
            n = member.readinto(data[done:])
            if not n:
                raise EOFError(f"{info.filename} ends after {done} bytes of {len(data)}")
            done += n
    return out


def _check_values(arrays: dict[str, np.ndarray], context: Any) -> None:
    """Refuse values that no state of a context has: numbers that are not finite, points outside their triangles,
    quaternions of other lengths, coefficients of another friction and noise. The context refuses arrays of other
    shapes."""
    targets = context._dynamical_arrays()
    fitting = {
        name: arrays[name]
        for name, target in targets.items()
        if name in arrays and (arrays[name].shape, arrays[name].dtype) == (target.shape, target.dtype)
    }
    context._store.check_room(fitting)
    # Coefficients of the beads that are there in the file.
    alive = fitting.get("alive")
    expected = context._schedule.coefficient_arrays(alive, fitting.get(SPECIES.array))
    for name, given in fitting.items():
        if given.dtype == np.float64 and name not in _MEASURED:
            array(name, given, given.shape)
        if name in ("c1", "c2") or name.startswith("friction of "):
            here = expected.get(name, targets[name])
            off = np.abs(given - here)
            most = _LAST_BITS * np.abs(here).max(initial=0.0)
            if (off > most).any():
                index = tuple(np.argwhere(off > most)[0].tolist())
                raise ParameterError(f"{name}{list(index)} = {given[index]}, but here it is {here[index]}")
    for columns in context._store.set_together():
        if all(column.array in fitting for column in columns):
            shown = {column: context._store.shown(column, fitting[column.array], alive) for column in columns}
            context._store.checked("state", shown, alive)


# Resuming in a simulation that is there -----------------------------------------------------------------------------


def load_into(context: Any, path: Path) -> None:
    """Set a context to what a checkpoint of the same system and integrator holds; the message tells differences."""
    checkpoint = read_checkpoint(path)
    differing = _differences(checkpoint, context)
    if differing:
        raise ParameterError(
            f"checkpoint {path} belongs to another simulation:\n  "
            + "\n  ".join(differing)
            + "\nSimulation.resume makes the one that it belongs to"
            + _remedy(checkpoint, context)
        )
    checkpoint.restore(context)


def _remedy(checkpoint: Checkpoint, context: Any) -> str:
    """Return advice for a message: how to get rid of differences in timestep and temperature."""
    theirs, mine = rebuild(checkpoint.content["integrator"]), context.integrator
    differing = [name for name in ("timestep", "kT") if getattr(theirs, name) != getattr(mine, name)]
    numbers = [f"{name}={getattr(theirs, name)!r}" for name in differing]
    return f"; integrator.set({', '.join(numbers)}) gives this one its numbers" if numbers else ""


def _differences(checkpoint: Checkpoint, context: Any) -> list[str]:
    """Return what a run depends on and that differs between the file and the context, by what a user calls it."""
    where = f"{checkpoint.path}: content"
    mine = _by_names(describe(context)["system"])
    with foreign_errors(f"{where} is not the document of a Simulation"):
        theirs = _by_names(checkpoint.content["system"])
        integrator = rebuild(checkpoint.content["integrator"], where=f"{where}.integrator")
        jumps = bool(theirs["jump"] or context.system.jumps)
        return _integrators(integrator, context.integrator, jumps) + _parts(theirs, mine)


def _by_names(system: Any) -> dict[str, Any]:
    """Return the parts of the tree of a system, by their names."""
    return {
        "object": {o["arguments"]["name"]: o for o in system["topology"]["objects"]},
        "force": {f["name"]: f for f in system["forces"]},
        "jump": {j["name"]: j for j in system.get("jumps", [])},
        "hydrodynamics": system.get("hydrodynamics"),
    }


def _integrators(theirs: Any, mine: Any, jumps: bool) -> list[str]:
    """Return differences in word, timestep, kT and seed, whatever the class, and other arguments. Without jumps letters
    that do them change nothing."""
    words = [
        " ".join(w for w in i.word.split() if jumps or w.startswith("M(") or not LETTERS[w[0]].apart)
        for i in (theirs, mine)
    ]
    out = _difference(words[0], words[1], "word")
    for name in ("timestep", "kT", "seed", "order", "parts", "rotation"):
        out += _difference(getattr(theirs, name), getattr(mine, name), name)
    for name in ("kick", "steps"):
        there, here = (None if getattr(i, name) is None else describe(getattr(i, name)) for i in (theirs, mine))
        out += _difference(there, here, name)
    known = (
        "word", "timestep", "temperature", "kT", "seed", "symmetric", "order", "parts", "kick", "steps", "rotation",
    )  # fmt: skip
    other = [{k: v for k, v in describe(i)["arguments"].items() if k not in known} for i in (theirs, mine)]
    return out + _difference(other[0], other[1], "integrator")


def _parts(theirs: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    out = _difference(theirs["hydrodynamics"], mine["hydrodynamics"], "hydrodynamics")
    for noun in ("object", "force", "jump"):
        a, b = theirs[noun], mine[noun]
        for name in [*b, *(name for name in a if name not in b)]:
            if name not in a or name not in b:
                out.append(f"{noun} {name!r}: {_words(a.get(name))} in the file, {_words(b.get(name))} here")
            else:
                out += _difference(a[name], b[name], f"{noun} {name!r}")
        if not out and list(a) != list(b):
            out.append(f"order of {noun}s: {', '.join(a)} in the file, {', '.join(b)} here")
    return out


_ABSENT = object()


def _difference(theirs: Any, mine: Any, what: str) -> list[str]:
    """Return sentences on where two trees differ, but for where things start and for Python functions."""
    said = f"{what}: {_words(theirs)} in the file, {_words(mine)} here"
    if isinstance(theirs, dict) and isinstance(mine, dict):
        if "function" in theirs and "function" in mine:
            return []
        if theirs.get("type") != mine.get("type") or ("handle" in theirs and "handle" in mine and theirs != mine):
            return [said]
        out = []
        for key in [*mine, *(k for k in theirs if k not in mine)]:
            a, b = theirs.get(key, _ABSENT), mine.get(key, _ABSENT)
            if key in _STARTS and np.shape(a) == np.shape(b):
                continue
            out += _difference(a, b, what if key in ("arguments", "numbers", "dict") else f"{what}: {key}")
        return out
    if isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        pairs = enumerate(zip(theirs, mine, strict=True))
        return [line for i, (a, b) in pairs for line in _difference(a, b, f"{what}[{i}]")]
    if isinstance(theirs, np.ndarray) or isinstance(mine, np.ndarray):
        return _array_difference(theirs, mine, what)
    if type(theirs) in (int, float) and type(mine) in (int, float):
        same = theirs == mine
    else:
        same = type(theirs) is type(mine) and theirs == mine
    return [] if same else [said]


def _array_difference(theirs: Any, mine: Any, what: str) -> list[str]:
    """Return the difference of two arrays as text; one number for all is the same as an array that repeats it."""
    numbers = (int, float, np.ndarray)
    if not (isinstance(theirs, numbers) and isinstance(mine, numbers)) or (
        np.ndim(theirs) and np.ndim(mine) and np.shape(theirs) != np.shape(mine)
    ):
        return [f"{what}: {_words(theirs)} in the file, {_words(mine)} here"]
    a, b = np.broadcast_arrays(theirs, mine)
    different = np.argwhere(a != b)
    if not len(different):
        return []
    place = tuple(different[0].tolist())
    others = f" (and {len(different) - 1} more)" if len(different) > 1 else ""
    index = ", ".join(map(str, place))
    return [f"{what}[{index}]: {_words(a[place])} in the file, {_words(b[place])} here{others}"]


def _words(value: Any) -> str:
    if value is _ABSENT or value is None:
        return "none"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, dict):
        if "handle" in value:
            return f"handle {value['handle']!r}"
        return str(value.get("type", "several values"))
    if isinstance(value, list):
        return f"list of {len(value)}"
    return repr(value)
