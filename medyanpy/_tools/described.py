"""Objects that the arguments of their constructors describe: what documents, pickles and copies are made of."""

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from medyanpy._tools.declared import Argument, annotated, constructor_of, documented, reader
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.names import Named
from medyanpy.errors import ParameterError, shown

__all__ = ["Described", "Recorded", "kept", "made_anew", "scalar_if_one"]

# Arrays of no more numbers are shown as they are.
_FEW = 6


class Recorded(Named):
    """Base class that remembers the arguments of its constructor, and makes it of those that a class declares.

    Subclasses need no code of their own for this, whatever the signature of their ``__init__``. Constructors, domains
    and rows of docstrings are made of declared arguments: see `declared`.
    """

    _arguments: dict[str, Any]
    #: The arguments that a class declares itself, by their names.
    _declared: Mapping[str, Argument] = {}
    #: Domains of the numbers that cannot be set.
    _fixed: Mapping[str, Domain] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Argument)}
        if own:
            annotations = inspect.get_annotations(cls)
            cls._declared = {name: annotated(value, annotations[name]) for name, value in own.items()}
            for name, value in cls._declared.items():
                delattr(cls, name)
                if value.attribute:
                    setattr(cls, name, reader(name, value))
        several = sum(hasattr(base.__init__, "whole") for base in cls.__bases__) > 1  # type: ignore[misc]
        if "__init__" not in vars(cls):
            if own or several:
                cls._make()
            if vars(cls).get("__doc__") and (whole := getattr(cls.__init__, "whole", None)):
                cls.__doc__ = documented(cls.__doc__ or "", whole)
        super().__init_subclass__(**options)

    @classmethod
    def _make(cls) -> None:
        by_place: dict[str, Argument] = {}
        by_name: dict[str, Argument] = {}
        depths: dict[str, int] = {}
        for depth, c in enumerate(reversed(cls.__mro__)):
            for name, value in vars(c).get("_declared", {}).items():
                if value.kw_only:
                    by_name.pop(name, None)
                    depths[name] = -depth
                (by_name if value.kw_only else by_place)[name] = value
        in_order = sorted(by_name, key=lambda name: (name.startswith("_"), depths[name]))
        whole = by_place | {name: by_name[name] for name in in_order}
        numbers = {name: value.domain for name, value in whole.items() if value.domain is not None}
        cls._fixed = {name: domain for name, domain in numbers.items() if whole[name].fixed}
        domains = domain_table(**{name: domain for name, domain in numbers.items() if name not in cls._fixed})
        if domains and "domains" not in vars(cls):
            setattr(cls, "domains", domains)  # noqa: B010 - only classes with numbers to set have it
        if not TYPE_CHECKING:
            cls.__init__ = constructor_of(whole, tuple(domains))
            cls.__init__.__module__, cls.__init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"

    def _take(self, given: dict[str, Any]) -> None:
        """Take the arguments that are not numbers to set; subclasses add theirs. Numbers are declared after it."""
        called = vars(self).get("name", type(self).__name__)
        given.update({name: domain.checked(f"{called}: {name}", given[name]) for name, domain in self._fixed.items()})

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        try:
            bound = cls.__signature__.bind(*args, **kwargs)
        except TypeError:
            return self  # __init__ raises the error.
        bound.apply_defaults()
        self._arguments = {name: kept(value) for name, value in bound.arguments.items()}
        return self

    def _arguments_now(self) -> dict[str, Any]:
        """Return what the constructor needs to make this object again as it is now, by parameters (``*args`` a tuple,
        ``**kwargs`` a dict)."""
        try:
            return dict(self._arguments)
        except AttributeError:
            raise ParameterError(
                f"{type(self).__qualname__} does not know the arguments it was made of: "
                "a __new__ of its own must call that of its base class"
            ) from None

    def __repr__(self) -> str:
        """Return the call that makes it, without arguments that have their default values."""
        name, given = type(self).__name__, vars(self).get("_arguments", {})
        said: list[str] = []
        for key, parameter in type(self).__signature__.parameters.items():
            if key not in given:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                said += map(_said, given[key])
            elif parameter.kind is parameter.VAR_KEYWORD:
                said += [f"{k}={_said(v)}" for k, v in given[key].items()]
            elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
                said.append(_said(given[key]))
            elif not _is(given[key], parameter.default):
                said.append(f"{key}={_said(given[key])}")
        return f"{name}({', '.join(said)})"

    def _rest_now(self) -> dict[str, Any]:
        """Return numbers that are not among the arguments; usually none."""
        return {}

    def _take_rest(self, arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> None:
        """Take the arguments an object was made of, and what `_rest_now` gave; called last when it is made again."""


class Described(Recorded):
    """Base class that remembers the arguments of its constructor, of which readers of a document make the object again.

    Subclasses need no code for this as long as their arguments are numbers, strings or arrays, handles or sites,
    functions, or again of this kind. One whose arguments are not what it is any more overrides
    `_arguments_now`; one that holds something which no argument can give overrides `_rest_now` and `_take_rest` too.
    Making one must do no harm whatever the arguments are: what opens files is `Recorded` alone.
    """

    #: Prefix of a class in documents, where the name alone is that of another.
    _qualifier = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return made_anew, (type(self), self._arguments_now(), self._rest_now())


def made_anew(cls: type[Recorded], arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> Any:
    """Make an object from what `_arguments_now` and `_rest_now` gave; refuse unknown arguments and missing ones."""
    signature = cls.__signature__
    unknown = [name for name in arguments if name not in signature.parameters]
    if unknown:
        known = ", ".join(signature.parameters) or "none"
        raise ParameterError(f"{cls.__name__} has no argument {unknown[0]!r}: it has {known}")
    given = {}
    for name, parameter in signature.parameters.items():
        if name in arguments:
            given[name] = arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                given[name] = tuple(given[name])
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        elif parameter.default is parameter.empty:
            raise ParameterError(f"{cls.__name__}: the argument {name!r} is missing")
        else:
            given[name] = parameter.default
    bound = inspect.BoundArguments(signature, given)
    made = cls(*bound.args, **bound.kwargs)
    made._take_rest(arguments, rest)
    return made


def _is(value: Any, default: Any) -> bool:
    """Tell whether an argument is what it is by default; arrays have no truth value."""
    if isinstance(value, np.ndarray):
        return isinstance(default, list | tuple | np.ndarray) and np.array_equal(value, np.asarray(default))
    return value is default or (type(value) is type(default) and bool(value == default))


def _said(value: Any) -> str:
    """Return an argument in a repr, which is to stay one line."""
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= _FEW else f"array of shape {value.shape}"
    if hasattr(value, "write") and hasattr(value, "name"):
        return str(value.name)
    if isinstance(value, float):
        return f"{value:g}"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return shown(value)


def scalar_if_one(value: Any) -> Any:
    """Return the number of an array that repeats one, as views of `validation.per_item` do, or the value as it is."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.size and value.strides == (0,):
        return value[0].item()
    return value


def kept(value: Any) -> Any:
    """Return an argument protected from later changes: arrays and lists copied, objects as they are."""
    out: np.ndarray | None
    if isinstance(value, np.ndarray):
        out = value.copy()
        out.flags.writeable = False
        return out
    if isinstance(value, list | tuple):
        if _holds_numbers(value):
            try:
                out = np.array(value)
            except (ValueError, OverflowError):  # Rows of different lengths: the constructor raises.
                out = None
            if out is not None and out.dtype.kind in "biuf":
                out.flags.writeable = False
                return out
        return type(value)(map(kept, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {name: kept(v) for name, v in value.items()}
    return value


def _holds_numbers(value: Any) -> bool:
    """Tell whether the first item in nested lists is a number."""
    while isinstance(value, list | tuple):
        if not len(value):
            return False
        value = value[0]
    return isinstance(value, bool | int | float | np.generic | np.ndarray)
