"""Numbers that users set by their names, each in its domain: of forces and jumps."""

from abc import ABC
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from medyanpy._tools.described import Described, scalar_if_one
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.names import Guarded, did_you_mean
from medyanpy.errors import ParameterError

__all__ = ["Parameterized"]


class Parameterized(Described, Guarded, ABC):
    """Something with a name, and with numbers that may change while contexts use it.

    Its numbers are attributes: reading one gives the number as it is now, and assigning to one of `changeable` is the
    same as `set`. Nothing else can be assigned to.
    """

    #: The numbers that `set` may change, and which values each may have; `changeable` are their names.
    domains: Mapping[str, Domain] = domain_table()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "domains" in vars(cls) and "changeable" not in vars(cls):
            cls.changeable = tuple(cls.domains)

    def __init__(self, *, name: str | None = None) -> None:
        self.name = type(self).__name__ if name is None else name
        self._numbers: dict[str, Any] = {}
        self._version = 0

    # For users ----------------------------------------------------------------------------------------------

    def _named(self, *names: str) -> tuple[Any, ...]:
        """Numbers by their names, as they are now."""
        return tuple(self._numbers[name] for name in names)

    @property
    def parameters(self) -> dict[str, Any]:
        """Its numbers as they are now; change them with `set`."""
        return dict(self._numbers)

    def set(self, **numbers: Any) -> None:
        """Change numbers; every context that uses it follows at its next step or state.

        Raises
        ------
        ParameterError
            A name that is not one of `changeable`, or a value outside its domain; then nothing changes.
        """
        for name in numbers:
            if name not in self.changeable:
                known = ", ".join(self.changeable) or "nothing"
                hint = did_you_mean(name, self.changeable)
                raise ParameterError(f"{self.name}: {name!r} cannot be set; {known} can{hint}")
        self._declare(**{**{k: self._numbers[k] for k in self.changeable}, **numbers})
        self._version += 1

    def __getattr__(self, name: str) -> Any:
        numbers = self.__dict__.get("_numbers", {})
        return scalar_if_one(numbers[name]) if name in numbers else super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._numbers]

    @property
    def version(self) -> int:
        """Raised whenever a number changes."""
        return self._version

    def __repr__(self) -> str:
        numbers = ", ".join(f"{k}={_short(v)}" for k, v in self._numbers.items())
        return f"{type(self).__name__}({numbers})"

    # For authors -------------------------------------------------------------------------------------------

    def _declare(self, **numbers: Any) -> None:
        """Take the changeable numbers, checked; called by ``__init__``, and whenever they change."""
        self._numbers = {name: _unwritable(value) for name, value in self._checked(**numbers).items()}

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        """All changeable numbers, checked: each is in its domain. What they must be to each other, a force checks by
        overriding this."""
        return {name: self._in_domain(name, value) for name, value in numbers.items()}

    def _in_domain(self, name: str, value: Any, n: int | None = None) -> Any:
        """A number, checked; for each of n items, where that is not how many there are now."""
        domain = self.domains.get(name)
        if domain is None:
            return value
        if n is None and domain.per is not None:
            n = len(attrgetter(domain.per)(self))
        return domain.checked(f"{self.name}: {name}", value, n)

    def _arguments_now(self) -> dict[str, Any]:
        """What the constructor would have to be given to make it as it is now: its arguments, with the present
        name and changeable numbers.

        Documents, checkpoints, pickles and copies are made of it. A class whose terms change by methods of its own
        overrides it, so that they are among the arguments as they are now.
        """
        arguments = super()._arguments_now()
        present = {**self._identity(), **self._changeable_now()}
        for place in self._places(arguments):
            place.update((key, value) for key, value in present.items() if key in place)
        return arguments

    def _rest_now(self) -> dict[str, Any]:
        """Changeable numbers that the constructor of this class does not take."""
        taken = {key for place in self._places(self._arguments_now()) for key in place}
        return {key: value for key, value in self._changeable_now().items() if key not in taken}

    def _take_rest(self, arguments, rest) -> None:
        if rest:
            self.set(**rest)
            self._version = 0
        given = {key: value for place in self._places(dict(arguments)) for key, value in place.items()}
        for key, value in {**given, **rest}.items():
            if key in self.changeable:
                self._numbers[key] = _to_the_bit(self._numbers[key], value)

    def _changeable_now(self) -> dict[str, Any]:
        return {key: scalar_if_one(self._numbers[key]) for key in self.changeable}

    def _places(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Where arguments are looked for by name: among them, and in what ``**kwargs`` took."""
        places = [arguments]
        for parameter in type(self).__signature__.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD and isinstance(arguments.get(parameter.name), dict):
                arguments[parameter.name] = dict(arguments[parameter.name])
                places.append(arguments[parameter.name])
        return places

    def _identity(self) -> dict[str, Any]:
        """Arguments beside numbers that are attributes of the same name."""
        return {"name": self.name}


def _to_the_bit(checked: Any, given: Any) -> Any:
    """A number that has been checked before: a check that rounds anew, as where a vector is brought to length 1,
    must not change its last bit."""
    is_array = isinstance(checked, np.ndarray) and isinstance(given, np.ndarray)
    if is_array and checked.dtype == given.dtype == np.float64 and checked.shape == given.shape:
        if not np.array_equal(checked, given) and np.allclose(checked, given, rtol=1e-13, atol=0.0):
            out = given.copy()
            out.flags.writeable = False
            return out
    elif isinstance(checked, float) and isinstance(given, float) and abs(checked - given) <= 1e-13 * abs(checked):
        return given
    return checked


def _unwritable(value: Any) -> Any:
    """A number such that nobody can write into it, or into the array that it was given as: nothing would follow."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    return value


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size and (value == value.flat[0]).all():
            return f"{value.flat[0]:g}"
        return f"array of {value.size}"
    return f"{value:g}" if isinstance(value, float) else repr(value)
