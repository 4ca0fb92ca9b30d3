"""A snapshot of every public signature, `signatures.txt`: names, order, kinds, defaults and annotations.

A change that is meant is shown by writing the file again, ``python -P tests/test_signatures.py``, and reading the
difference.
"""

import difflib
import enum
import functools
import importlib
import inspect
import re
import types
import typing
from pathlib import Path

import numpy as np

import medyanpy as mp
from medyanpy._tools.types import Number, Numbers, PathLike

#: What is public beside the names of the package.
BELOW = ("medyanpy.beads", "medyanpy.core.columns", "medyanpy.core.handles", "medyanpy.testing")
#: Unions that have a name, the widest last.
ALIASES = {"PathLike": PathLike, "Number": Number, "Numbers": Numbers}
SNAPSHOT = Path(__file__).with_name("signatures.txt")


def text_of_annotation(annotation):
    """An annotation as it is written, without the modules of names, for every Python from 3.11 on."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, list | tuple):
        return f"[{', '.join(map(text_of_annotation, annotation))}]"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = list(map(text_of_annotation, arguments))
        for alias, whole in ALIASES.items():
            if set(typing.get_args(whole)) <= set(arguments):
                rest = [one for one in arguments if one not in typing.get_args(whole)]
                parts = [alias, *map(text_of_annotation, rest)]
        return " | ".join(parts)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None:
        return f"{text_of_annotation(origin)}[{', '.join(map(text_of_annotation, arguments))}]"
    name = getattr(annotation, "__name__", None) or getattr(annotation, "_name", None)
    return name or str(annotation).rpartition(".")[2]


def text_of_default(default):
    """A default that reads the same wherever and whenever it is looked at."""
    if isinstance(default, np.ndarray | np.generic):
        return repr(default.tolist())
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    if isinstance(default, list | tuple):
        return f"{type(default).__name__}({', '.join(map(text_of_default, default))})"
    if default is None or isinstance(default, str | int | float):
        return repr(default)
    named = getattr(default, "__qualname__", None)
    return named or f"{type(default).__name__}()"


def text_of_signature(function, *, bound=False):
    """``(a: int, /, *, b: float = 1.0) -> None``; `bound`: without the first parameter."""
    signature = inspect.signature(function)
    words, before = [], None
    for p in list(signature.parameters.values())[bound:]:
        if before is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            words.append("/")
        if p.kind is p.KEYWORD_ONLY and before not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            words.append("*")
        word = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.annotation is not p.empty:
            word += f": {text_of_annotation(p.annotation)}"
        if p.default is not p.empty:
            word += f" = {text_of_default(p.default)}"
        words.append(word)
        before = p.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        words.append("/")
    returned = signature.return_annotation
    end = "" if returned is signature.empty else f" -> {text_of_annotation(returned)}"
    return f"({', '.join(words)}){end}"


def text_of_member(cls, name):
    """What follows the name of a class's method or property, or nothing for other attributes."""
    member = inspect.getattr_static(cls, name)
    if isinstance(member, classmethod | staticmethod):
        word = type(member).__name__
        return f"{text_of_signature(member.__func__, bound=word == 'classmethod')} ({word})"
    if isinstance(member, property | functools.cached_property):
        function = member.fget if isinstance(member, property) else member.func
        returned = text_of_annotation(inspect.signature(function).return_annotation)
        return f": {returned} (property, {'can be set' if getattr(member, 'fset', None) else 'read only'})"
    return text_of_signature(member, bound=True) if inspect.isroutine(member) else ""


def lines_of_class(path, cls, public):
    """The constructor, and what users find that is not the same in a public base class: also what comes from a base
    class that is not public."""
    ours = [c for c in cls.__mro__ if c.__module__.startswith("medyanpy")]
    makes = any({"__init__", "__new__"} & set(vars(c)) for c in ours)
    # Of a constructor of Python's own, as that of most errors, Python's version says what it is.
    yield path + (text_of_signature(cls) if makes else ": class")
    bases = [base for base in cls.__mro__[1:] if base in public]
    for name in sorted(name for name in type.__dir__(cls) if not name.startswith("_")):
        owner = next((c for c in cls.__mro__ if name in vars(c)), cls)
        text = text_of_member(cls, name) if owner.__module__.startswith("medyanpy") else ""
        if text and text not in (text_of_member(base, name) for base in bases if hasattr(base, name)):
            yield f"{path}.{name}{text}"


def public_names(path, module, seen):
    """(path, object) of all that can be reached by public names from a module, each module once."""
    seen.add(module)
    for name in sorted(module.__all__):
        what, here = getattr(module, name), f"{path}.{name}"
        if not inspect.ismodule(what):
            yield here, what
        elif what not in seen and hasattr(what, "__all__"):
            yield from public_names(here, what, seen)


def lines_now():
    seen = set()
    named = list(public_names("medyanpy", mp, seen))
    for module in BELOW:
        named += public_names(module, importlib.import_module(module), seen)
    public = {what for _, what in named if inspect.isclass(what)}
    out = []
    for path, what in named:
        if inspect.isclass(what):
            out += lines_of_class(path, what, public)
        elif inspect.isroutine(what):
            out.append(path + text_of_signature(what))
        else:
            out.append(f"{path}: {type(what).__name__}")
    return out


def test_every_public_signature_is_that_of_the_snapshot():
    then, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), lines_now()
    difference = "\n".join(difflib.unified_diff(then, now, "signatures.txt", "now", lineterm="", n=0))
    assert then == now, f"public signatures have changed; if they were to: python -P tests/{Path(__file__).name}\n" + (
        difference
    )


def test_the_snapshot_has_what_is_public():
    """Names, kinds, defaults and annotations are in it, and nothing that differs from run to run."""
    text = SNAPSHOT.read_text(encoding="utf-8")
    assert "medyanpy.forces.WCA(group_a: Beads, group_b: Beads, epsilon: float, sigma: float, *, exclusions: " in text
    assert "medyanpy.Context.get_state(positions: bool = False, " in text
    assert len(text.splitlines()) > 800
    assert not re.search(r"0x[0-9a-f]{6}| object at |<", text)


def test_texts_of_signatures():
    def own(a: int, /, b: "float | None" = None, *c: str, d: typing.Literal["x", "y"] = "x", **e: np.ndarray) -> None:
        """Every kind of parameter."""

    assert text_of_signature(own) == (
        "(a: int, /, b: float | None = None, *c: str, d: Literal['x', 'y'] = 'x', **e: ndarray) -> None"
    )
    assert text_of_annotation(typing.Optional[dict[str, typing.Any]]) == "dict[str, Any] | None"  # noqa: UP045
    assert text_of_default(np.float64(0.1)) == "0.1"


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(lines_now()) + "\n", encoding="utf-8")
