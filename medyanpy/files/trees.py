"""Trees of documents: dicts, lists, numbers, strings and NumPy arrays, as text and as objects that are checked."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from medyanpy._version import __version__
from medyanpy.errors import MedyanError, MeshError, ParameterError, TopologyError, foreign_errors, shortened

# Most items that take no room in a file, but memory and time of its reader: rows of an array without numbers, and
# points of which only the number is given.
MOST = 2**20
# Bytes that the tree of any text may take, and not only of one that is long itself.
_ROOM = 4_000_000
# Texts up to this length stay on one line.
_LINE = 110
#: Types of the arrays in files.
DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")


def check_format(tree: Any, source: str, form: str, version: int) -> None:
    """Refuse other formats and other versions."""
    if not isinstance(tree, dict) or tree.get("format") != form:
        found = repr(tree["format"]) if isinstance(tree, dict) and "format" in tree else "none"
        raise ParameterError(f"{source} is not a {form}: its format must be {form!r}, not {found}")
    theirs = tree.get("version")
    if isinstance(theirs, bool) or not isinstance(theirs, int) or theirs < 1:
        raise ParameterError(f"{source}: version must be a whole number from 1 to {version}, not {theirs!r}")
    if theirs != version:
        raise ParameterError(
            f"{source} has version {theirs} of the format, written by medyanpy {tree.get('medyanpy', 'of later')}; "
            f"medyanpy {__version__} reads version {version} alone: "
            f"{'install a newer one' if theirs > version else 'write the file again'}"
        )


def expect(ok: bool, where: str, bound: str, value: Any) -> None:
    if not ok:
        text = repr(value)
        raise ParameterError(f"{where} {bound}, not {text if len(text) <= 60 else text[:57] + '...'}")


def members_of(
    tree: Any, where: str, required: tuple[str, ...], *, optional: tuple[str, ...] = (), more: bool = False
) -> dict[str, Any]:
    """Return a dict with the keys required and, unless `more` is allowed, no others than the optional ones."""
    expect(isinstance(tree, dict), where, "must be an object (names and values)", tree)
    for key in required:
        if key not in tree:
            raise ParameterError(f"{where}: the key {key!r} is missing")
    for key in tree:
        if not more and key not in required and key not in optional:
            known = ", ".join(map(repr, required + optional))
            raise ParameterError(f"{where}: the key {key!r} is not known; {known} are")
    members: dict[str, Any] = tree
    return members


@contextmanager
def errors_at(where: str) -> Iterator[None]:
    """Turn errors inside into errors of the document, at this place."""
    try:
        # Constructors check numbers, but not every type that JSON can hold.
        with foreign_errors("it cannot be made"):
            yield
    except MedyanError as cause:
        # Where a value is wrong as a whole, messages show all of it.
        message = f"{where}: {shortened(str(cause), 1000)}"
        if isinstance(cause, MeshError):
            raise MeshError(message, cause.defects) from cause
        raise (TopologyError if isinstance(cause, TopologyError) else ParameterError)(message) from cause


def text_of(tree: Any) -> str:
    """Return a tree as JSON: short objects on one line, arrays filled into lines."""
    return _text(tree, 0)


def _text(node: Any, level: int) -> str:
    if isinstance(node, np.ndarray):
        head = f'{{"dtype": "{node.dtype.name}", "shape": {list(node.shape)}, "values": '
        return head + _filled(node, level) + "}"
    if isinstance(node, dict):
        items = [f"{json.dumps(k, ensure_ascii=False)}: {_text(v, level + 1)}" for k, v in node.items()]
        opening, closing = "{", "}"
    elif isinstance(node, list):
        items = [_text(v, level + 1) for v in node]
        opening, closing = "[", "]"
    else:
        return json.dumps(node, ensure_ascii=False, allow_nan=False)
    if sum(map(len, items)) + 2 * len(items) + 2 * level <= _LINE and not any("\n" in item for item in items):
        return opening + ", ".join(items) + closing
    space = "\n" + "  " * (level + 1)
    return opening + space + ("," + space).join(items) + "\n" + "  " * level + closing


def _filled(array: np.ndarray, level: int) -> str:
    """Return nested lists as text, as many rows to a line as fit."""
    whole = json.dumps(array.tolist(), allow_nan=False)
    if len(whole) + 2 * level <= _LINE or array.size == 0:
        return whole
    if array.ndim == 1:
        rows = whole[1:-1].split(", ")
    elif array.ndim == 2:
        rows = [f"[{row}]" for row in whole[2:-2].split("], [")]
    else:
        rows = [json.dumps(row) for row in array.tolist()]
    lines: list[str] = []
    line: list[str] = []
    room = 0
    for row in rows:
        if room < len(row) + 2 and line:
            lines.append(", ".join(line))
            line = []
        if not line:
            room = _LINE - 2 * (level + 1)
        line.append(row)
        room -= len(row) + 2
    lines.append(", ".join(line))
    space = "\n" + "  " * (level + 1)
    return "[" + space + ("," + space).join(lines) + "\n" + "  " * level + "]"


def tree_of(text: str, source: str) -> Any:
    """Return the tree of a text, arrays still as lists."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise ParameterError(f"{source}: the key {key!r} occurs twice in one object")
                seen.add(key)
        return out

    def finite(digits: str) -> float:
        out = float(digits)
        if not math.isfinite(out):
            raise ParameterError(f"{source}: {digits} is not a finite number")
        return out

    # Counted before they are made: a list without entries takes thirty times its two characters.
    takes = 72 * text.count("[") + 200 * text.count("{") + 30 * text.count('"')
    if takes > max(10 * len(text), _ROOM):
        raise ParameterError(f"{source} is not a document: lists, objects and strings of next to nothing")
    try:
        return json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    except ParameterError:
        raise
    except RecursionError:
        raise ParameterError(f"{source} is not a document: it is nested too deeply") from None
    except ValueError as cause:
        raise ParameterError(f"{source} is not a document: it is not JSON: {cause}") from cause


def array_of(tree: dict[str, Any], where: str) -> np.ndarray:
    """Return the array of ``{"dtype": ..., "shape": ..., "values": ...}``, where the shape may be left out."""
    parts = members_of(tree, where, ("dtype", "values"), optional=("shape",))
    name, shape = parts["dtype"], parts.get("shape")
    expect(name in DTYPES, f"{where}.dtype", f"must be one of {', '.join(DTYPES)}", name)
    expect(isinstance(parts["values"], list), f"{where}.values", "must be a list", parts["values"])
    dtype = np.dtype(name)
    with errors_at(f"{where}.values"):
        raw = np.array(parts["values"])
        if name == "uint64" and raw.dtype.kind == "f":
            # NumPy makes doubles of whole numbers on both sides of 2^63.
            raw = np.array(parts["values"], dtype=object)
            raw = raw.astype(dtype) if all(type(v) is int for v in raw.flat) else raw
        if raw.size == 0:
            raw = raw.astype(dtype)
        if raw.dtype.kind not in {"f": "iuf", "i": "iu", "u": "iu", "b": "b"}[dtype.kind]:
            raise ParameterError(f"they are not {name} numbers")
        with np.errstate(over="ignore"):
            out = raw.astype(dtype)
        if not (out == raw).all():
            raise ParameterError(f"they are not {name} numbers, or out of range")
    if shape is not None and list(out.shape) != shape:
        # Nested lists do not tell how wide an array without rows is.
        empty = out.size == 0 and isinstance(shape, list) and 0 in shape
        expect(empty, f"{where}.shape", f"must be {list(out.shape)}, the shape of the values", shape)
        check_shape(f"{where}.shape", shape)
        out = np.zeros(shape, dtype)
    return out


def check_shape(what: str, shape: list[Any]) -> None:
    """Refuse shapes that no array of a file has: too many dimensions, or an empty array that is long all the same."""
    if (
        len(shape) > 8
        or not all(type(n) is int and 0 <= n < 2**40 for n in shape)
        or (0 in shape and math.prod(n or 1 for n in shape) > MOST)
    ):
        raise ParameterError(f"{what} = {shortened(str(shape))} is not the shape of an array in a file")


_ODD = re.compile(r"[^\w.-]+")
# In these keys of an object are names of the user's and values, not what the format means by them.
_NAMES_AND_VALUES = ("arguments", "numbers", "dict")


def arrays_apart(tree: Any, place: str, members: dict[str, np.ndarray], at_least: int = 32) -> Any:
    """Return the tree with large arrays put into `members`, by their places, and ``{"member": name}`` in their
    stead."""
    if isinstance(tree, np.ndarray) and tree.size >= at_least:
        name = place
        while name in members:
            name += "_"
        members[name] = tree
        return {"member": name}
    if isinstance(tree, dict):
        return {k: arrays_apart(v, f"{place}/{_ODD.sub('_', k)}", members, at_least) for k, v in tree.items()}
    if isinstance(tree, list):
        return [arrays_apart(v, f"{place}/{i}", members, at_least) for i, v in enumerate(tree)]
    return tree


def arrays_together(tree: Any, members: Mapping[str, np.ndarray], where: str) -> Any:
    """Return the tree with all its arrays as arrays: those in the text, and those in `members`."""
    if isinstance(tree, list):
        return [arrays_together(v, members, f"{where}[{i}]") for i, v in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    if "member" in tree:
        name = members_of(tree, where, ("member",))["member"]
        known = isinstance(name, str) and name in members
        expect(known, f"{where}.member", "must be the name of an array in the file", name)
        return members[name]
    if "values" in tree:
        return array_of(tree, where)
    out = {}
    for key, value in tree.items():
        here = f"{where}.{key}"
        if key in _NAMES_AND_VALUES and isinstance(value, dict):
            out[key] = {name: arrays_together(v, members, f"{here}.{name}") for name, v in value.items()}
        else:
            out[key] = arrays_together(value, members, here)
    return out
