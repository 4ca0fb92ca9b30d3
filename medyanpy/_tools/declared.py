"""Arguments declared once: a class attribute gives a parameter of the constructor, its domain and its documentation.

    @declared
    class Yukawa(EndingPair):
        strength: float = number("pN nm²", "A: repulsion where positive.")
        screening_length: float = number("nm", "λ: range of the screening.", above=0.0)

makes ``Yukawa(group_a, group_b, strength, screening_length, *, cutoff=None, ...)``. Arguments by position come in the
order of a dataclass, those of base classes first. Those by name alone come the other way round, each where it was
declared last; names with an underscore, which documents alone give, come at the end and have no documentation.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar
from typing import (
    TYPE_CHECKING,
    Any,
    ForwardRef,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    overload,
)

import numpy as np

from medyanpy._tools.domains import Domain
from medyanpy._tools.types import Numbers

__all__ = [
    "Argument", "Each", "Given", "annotated", "argument", "constructor_of", "declared", "documented", "number",
    "reader",
]  # fmt: skip

_Taken = TypeVar("_Taken")
_Kept = TypeVar("_Kept", covariant=True)
_Class = TypeVar("_Class")
_NONE: Any = inspect.Parameter.empty
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
# Letters in a line of a docstring that is made, and blanks before a text.
_WIDTH, _INDENT = 116, " " * 4


class Given(Generic[_Taken, _Kept]):
    """The annotation of an argument that is given as one type and read as another."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, one: None, owner: Any) -> "Given[_Taken, _Kept]": ...

        @overload
        def __get__(self, one: object, owner: Any) -> _Kept: ...

        def __get__(self, one: Any, owner: Any) -> Any: ...

        def __set__(self, one: object, value: _Taken) -> None: ...


#: A number of which there may be one each.
Each: TypeAlias = Given["Numbers", float | np.ndarray]


class _Name(str):
    """The name of a type, as signatures are to print it: without quotes and modules."""

    __repr__ = str.__str__


class Argument(NamedTuple):
    """Declaration of one argument."""

    head: str  # the type in a docstring
    text: str
    default: Any
    kw_only: bool
    attribute: str
    domain: Domain | None = None
    fixed: bool = False
    taken: Any = _NONE  # annotations: of the parameter, and of what is kept
    kept: Any = _NONE


def argument(
    head: str = "", text: str = "", *, default: Any = _NONE, kw_only: bool = False, attribute: str = ""
) -> Any:
    """Declare an argument that is not a number which can be set.

    `head` and `text` are the row of the docstring: the class that writes a row itself wins, and rows alike are joined.
    `attribute` is the docstring of a property that returns ``self._NAME``; none is made where it is empty.
    """
    return Argument(head, text, default, kw_only, attribute)


def number(
    unit: str = "", text: str = "", *, default: Any = _NONE, kw_only: bool = False, many: str = "(n,)",
    above: float | None = None, at_least: float | None = None, below: float | None = None, at_most: float | None = None,
    per: str | None = None, size: int | None = None, or_number: bool = False, optional: bool | None = None,
    fixed: bool = False, attribute: str = ""
) -> Any:  # fmt: skip
    """Declare a number by the arguments of `Domain` and `argument`; the type in the docstring is that of the domain.

    `many` is the shape that the docstring gives for one number each; `optional` is by default whether the default is
    None. A `fixed` number cannot be set: it is checked before `_take` keeps it.
    """
    may = default is None if optional is None else optional
    domain = Domain(unit, above, at_least, below, at_most, per, size, or_number, may)
    head = domain.in_words(many) + ", optional" * (default is None)
    return Argument(head, text, default, kw_only, attribute, domain, fixed)


@dataclass_transform(field_specifiers=(argument, number))
def declared(cls: type[_Class]) -> type[_Class]:
    """Mark a class that declares arguments, for type checkers: they then know its constructor."""
    return cls


def annotated(value: Argument, annotation: Any) -> Argument:
    """Return an argument with the annotations of its parameter and of what is kept."""
    taken = kept = annotation
    if isinstance(annotation, InitVar):
        taken = kept = annotation.type
    elif getattr(annotation, "__origin__", None) is Given:
        taken, kept = get_args(annotation)
    if isinstance(taken, ForwardRef):
        taken = _Name(taken.__forward_arg__)
    elif isinstance(taken, type) and taken.__module__ != "builtins":
        taken = _Name(taken.__name__)
    return value._replace(taken=_Name(taken) if type(taken) is str else taken, kept=kept)


def reader(name: str, value: Argument) -> property:
    key = f"_{name}"

    def read(self: Any) -> Any:
        return getattr(self, key)

    read.__name__, read.__annotations__ = name, {"return": value.kept}
    return property(read, doc=value.attribute)


def constructor_of(whole: Mapping[str, Argument], numbers: tuple[str, ...]) -> Callable[..., None]:
    kind = inspect.Parameter
    parameters = [
        kind(name, (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)[v.kw_only], default=v.default, annotation=v.taken)
        for name, v in whole.items()
    ]
    itself = kind("self", kind.POSITIONAL_ONLY)
    by_place = tuple(name for name, v in whole.items() if not v.kw_only)
    defaults = {name: v.default for name, v in whole.items() if v.default is not _NONE}
    signature, names = inspect.Signature(parameters), frozenset(whole)

    def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**defaults, **dict(zip(by_place, args, strict=False)), **kwargs}
        twice = not kwargs.keys().isdisjoint(by_place[: len(args)])
        if twice or len(args) > len(by_place) or given.keys() != names:
            signature.bind(*args, **kwargs)  # raises what is wrong
        self._take(given)
        if numbers:
            self._declare(**{name: given[name] for name in numbers})

    constructor.__name__, constructor.whole = "__init__", whole  # type: ignore[attr-defined]
    constructor.__signature__ = inspect.Signature([itself, *parameters])  # type: ignore[attr-defined]
    return constructor


def documented(text: str, whole: Mapping[str, Argument]) -> str:
    """Return a docstring with the rows of all arguments: those that it has itself win."""
    text = inspect.cleandoc(text)
    titles = list(_TITLE.finditer(text))
    at = next((i for i, title in enumerate(titles) if title[1] == "Parameters"), None)
    start = end = titles[0].start() if titles else len(text)
    own: dict[str, tuple[str, str]] = {}
    if at is not None:
        start, end = titles[at].start(), titles[at + 1].start() if at + 1 < len(titles) else len(text)
        own = dict(_rows(text[titles[at].end() : end]))
    rows: list[tuple[list[str], str, str]] = []
    for name, value in ((name, value) for name, value in whole.items() if not name.startswith("_")):
        head, said = own.get(name, ("", ""))
        head, said = head or value.head, said or _filled(value.text)
        if rows and rows[-1][1:] == (head, said):
            rows[-1][0].append(name)
        else:
            rows.append(([name], head, said))
    made = "\n".join(f"{', '.join(names)}{' : ' * bool(head)}{head}\n{said}".rstrip() for names, head, said in rows)
    return f"{text[:start].rstrip()}\n\nParameters\n----------\n{made}\n\n{text[end:]}".rstrip() + "\n"


def _rows(section: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Return (name, (type, text)) for the rows of a section; a type may be left out."""
    names, head, lines = "", "", list[str]()
    for line in [*section.strip("\n").splitlines(), "end"]:
        if line and not line.startswith(" "):
            yield from ((name, (head, "\n".join(lines).rstrip())) for name in names.split(", ") if name)
            (names, _, head), lines = line.partition(" : "), []
        else:
            lines.append(line)


def _filled(text: str) -> str:
    """Return a text in lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(_INDENT + line for line in lines if line)
