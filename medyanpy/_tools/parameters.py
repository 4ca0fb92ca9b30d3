"""Numbers that users set by their names, each in its domain: of forces and jumps."""

from abc import ABC
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.described import Described, scalar_if_one
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.names import Guarded, did_you_mean
from medyanpy._tools.tables import Displayed, Page, Table, of_all
from medyanpy._tools.validation import plain_name
from medyanpy.errors import ParameterError

__all__ = ["Parameterized", "places_of"]


class Parameterized(Displayed, Described, Guarded, ABC):
    """Base class of what has a name, and numbers that may change while contexts use it.

    Its numbers are attributes: reading one gives the number as it is now, and assigning to one of `changeable` is the
    same as `set`. Nothing else can be assigned to.
    """

    #: The numbers that `set` may change, and which values each may have; `changeable` are their names.
    domains: Mapping[str, Domain] = domain_table()
    changeable: tuple[str, ...] = ()
    #: Whether terms have been taken out of what the constructor was given.
    _was_cut = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "domains" in vars(cls) and "changeable" not in vars(cls):
            cls.changeable = tuple(cls.domains)

    def __init__(self, *, name: str | None = None) -> None:
        self._take({"name": name})

    def _take(self, given: dict[str, Any]) -> None:
        self.name: str = type(self).__name__
        if given["name"] is not None:
            self.name = plain_name(f"{self.name}: name", given["name"])
        super()._take(given)
        #: The numbers as they were taken; of which items those are that each has one of; what one for all was given.
        self._values: dict[str, Any] = {}
        self._belong: dict[str, np.ndarray] = {}
        self._of_all: dict[str, Any] = {}
        self._counted: Any = None
        self._version = 0
        #: Number of these changes that were of numbers alone, by `set`.
        self._sets = 0

    @property
    def _numbers(self) -> dict[str, Any]:
        """The numbers as they are now: where something has come or gone of which there is one each, they follow."""
        if self._counted != self._count():
            self._follow()
        return self._values

    def _named(self, *names: str) -> tuple[Any, ...]:
        """Return numbers by their names, as they are now."""
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
        if self._counted != self._count():
            # Numbers that are set now need not be known for added items.
            self._follow(but=tuple(numbers))
        self._declare(**{**{k: self._values[k] for k in self.changeable}, **numbers})
        self._version += 1
        self._sets += 1

    if not TYPE_CHECKING:
        # Classes declare their numbers: type checkers are to refuse other names.

        def __getattr__(self, name: str) -> Any:
            if name in self.__dict__.get("_values", {}):
                return self._one(name)
            return super().__getattr__(name)

    def _one(self, name: str) -> Any:
        """Return a number as a user would give it: one where all have the same."""
        value = self._numbers[name]
        return self._of_all[name] if np.ndim(value) == 1 and name in self._of_all else scalar_if_one(value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    @property
    def version(self) -> int:
        """Count of the changes of its numbers."""
        return self._version

    def _acts_on(self) -> str:
        """Return the names of the handles that it was given; empty where it was given none."""
        return ", ".join(handle.name for handle in getattr(self, "handles", ()))

    def _row(self) -> tuple[str, str]:
        """Return what it acts on, and its numbers, for tables of many."""
        said = (f"{name} {of_all(value)} {self._unit(name)}".rstrip() for name, value in self._numbers.items())
        return self._acts_on() or "–", ", ".join(said)

    def _unit(self, name: str) -> str:
        domain = self.domains.get(name)
        return "" if domain is None else domain.unit

    def _page(self) -> Page:
        numbers = [
            (name, of_all(value), self._unit(name), "yes" if name in self.changeable else "no")
            for name, value in self._numbers.items()
        ]
        called = "" if self.name == type(self).__name__ else repr(self.name)
        about = [(key, str(value)) for key, value in self._identity().items() if key != "name"]
        about = [("acts on", on), *about] if (on := self._acts_on()) else about
        tables = [Table("numbers", numbers, ("numbers", "value", "unit", "can be set")), Table("", about)]
        return Page(type(self).__name__, called, tables)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{k}={_short(v)}" for k, v in self._numbers.items())
        return f"{type(self).__name__}({numbers})"

    def __str__(self) -> str:
        # In print, one line among others; notebooks show the table.
        return repr(self)

    # For authors -------------------------------------------------------------------------------------------

    def _declare(self, **numbers: Any) -> None:
        """Take the changeable numbers, checked; called by ``__init__``, and whenever they change."""
        values = {name: _unwritable(value) for name, value in self._checked(**numbers).items()}
        for name, given in numbers.items():
            # An array of no items does not tell what all would have; a number that has not been set again is as it was.
            if given is not self._values.get(name):
                self._of_all.pop(name, None)
            if self._per(name) is not None and np.ndim(given) == 0 and given is not None:
                self._of_all[name] = float(given)
        self._values, self._counted = values, self._count()
        self._belong = {name: keys for name in values if (keys := self._keys_of(name)) is not None}

    # Terms that name beads themselves, and not by a handle, go with these or are in the way of their going.

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        """Return masks (rows,) of the terms that name any of the beads (rows,) bool, for every kind of terms by its
        name."""
        return {}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        """Let go of terms, as `naming` gave them."""

    def _numbers_of(self, keep: np.ndarray) -> dict[str, Any]:
        """Return the numbers, of those items alone that are kept, (n,) bool, where there is one each."""
        out = {}
        for name, value in self._numbers.items():
            each = self._per(name) is not None and np.ndim(value) >= self._dimensions(name)
            out[name] = self._of_all[name] if name in self._of_all else value[keep] if each else value
        return out

    # Items with one number each may come and go while they are in use: beads of a handle, and what joins them.

    def _count(self) -> Any:
        """Return something that changes whenever items have come or gone."""
        return None

    def _keys(self, per: str) -> np.ndarray | None:
        """Return permanent ids (n,) of the items `per` of which a number has one each; None where items do not come or
        go."""
        return None

    def _per(self, name: str) -> str | None:
        domain = self.domains.get(name)
        return None if domain is None else domain.per

    def _keys_of(self, name: str) -> np.ndarray | None:
        per = self._per(name)
        return None if per is None else self._keys(per)

    def _number_of_all(self, name: str) -> Any:
        """Return the number, or vector, that each item has and will have that comes; None where they differ."""
        value = self._numbers[name]
        if name in self._of_all:
            return self._of_all[name]
        if np.ndim(value) < self._dimensions(name):
            return value
        return value[0] if len(value) and (value == value[0]).all() else None

    def _number_of_new(self, name: str) -> np.ndarray | None:
        """Return a number of all items that there are now, where a class knows it for added ones."""
        return None

    def _follow(self, but: tuple[str, ...] = ()) -> None:
        """Realign numbers per item after items were added or removed, but for numbers about to be set."""
        values, belong = dict(self._values), dict(self._belong)
        for name, before in self._belong.items():
            keys = cast(np.ndarray, self._keys_of(name))
            if name not in but and not np.array_equal(before, keys):
                belong[name], values[name] = keys, self._realigned(name, before, keys)
        self._values, self._belong = values, belong
        if not but:
            self._counted = self._count()

    def _realigned(self, name: str, before: np.ndarray, keys: np.ndarray) -> Any:
        """Return a number for items with these keys, (m,), from that of the items `before`, (n,)."""
        value = self._values[name]
        if not isinstance(value, np.ndarray) or len(value) != len(before) or value.ndim < self._dimensions(name):
            return value  # one for all
        if name in self._of_all:
            return np.broadcast_to(self._of_all[name], keys.shape)
        old, new = places_of(keys, before)
        out = np.empty((len(keys), *value.shape[1:]))
        out[~new] = value[old[~new]]
        if new.any():
            out[new] = self._number_of_added(name, value, new)
        out.flags.writeable = False
        return out

    def _number_of_added(self, name: str, value: np.ndarray, new: np.ndarray) -> Any:
        """Return the number of added items, masked by `new`, or the one that all others have."""
        known = self._number_of_new(name)
        if known is not None:
            return known[new]
        if len(value) and (value == value[0]).all():
            return value[0]
        raise ParameterError(
            f"{self.name}: {name} is not the same for all, and unknown for {np.count_nonzero(new)} added items, the "
            f"first of them number {np.argmax(new)}: call {self.name}.set({name}=...) with {len(new)} rows"
        )

    def _dimensions(self, name: str) -> int:
        """Return dimensions of an array with a row for each item."""
        return 1 if self.domains[name].size is None else 2

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        """Check all changeable numbers by their domains; a force overrides this for what they must be to each other."""
        return {name: self._in_domain(name, value) for name, value in numbers.items()}

    def _in_domain(self, name: str, value: Any, n: int | None = None) -> Any:
        """Return a number, checked; for each of n items, where that is not how many there are now."""
        domain = self.domains.get(name)
        if domain is None:
            return value
        if n is None and domain.per is not None:
            n = len(attrgetter(domain.per)(self))
        return domain.checked(f"{self.name}: {name}", value, n)

    def _arguments_now(self) -> dict[str, Any]:
        """Return the arguments that would make it as it is now: those it was made of, with the present name and
        numbers.

        A class whose terms change by methods of its own overrides it, so that they are among the arguments as they are
        now.
        """
        arguments = super()._arguments_now()
        present = {**self._identity(), **self._changeable_now()}
        for place in self._places(arguments):
            place.update((key, value) for key, value in present.items() if key in place)
        return arguments

    def _rest_now(self) -> dict[str, Any]:
        """Return changeable numbers that the constructor of this class does not take."""
        taken = {key for place in self._places(self._arguments_now()) for key in place}
        return {key: value for key, value in self._changeable_now().items() if key not in taken}

    def _take_rest(self, arguments: Mapping[str, Any], rest: Mapping[str, Any]) -> None:
        if rest:
            self.set(**rest)
            self._version = 0
        given = {key: value for place in self._places(dict(arguments)) for key, value in place.items()}
        for key, value in {**given, **rest}.items():
            if key in self.changeable:
                self._values[key] = _to_the_bit(self._values[key], value)

    def _changeable_now(self) -> dict[str, Any]:
        return {key: self._one(key) for key in self.changeable}

    def _places(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the dicts in which arguments are looked for by name: the arguments, and what ``**kwargs`` took."""
        places = [arguments]
        for parameter in type(self).__signature__.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD and isinstance(arguments.get(parameter.name), dict):
                arguments[parameter.name] = dict(arguments[parameter.name])
                places.append(arguments[parameter.name])
        return places

    def _identity(self) -> dict[str, Any]:
        """Return arguments beside numbers that are attributes of the same name."""
        return {"name": self.name}


def places_of(keys: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where keys (m,) are among those of before (n,), and a mask (m,) of those that are not."""
    if not len(before):
        return np.zeros(len(keys), np.int64), np.ones(len(keys), bool)
    order = np.argsort(before, kind="stable")
    old = order[np.minimum(np.searchsorted(before, keys, sorter=order), len(before) - 1)]
    return old, before[old] != keys


def _to_the_bit(checked: Any, given: Any) -> Any:
    """Return a number that was checked before to the last bit, which a check that rounds again must not change."""
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
    """Return a read-only copy of a number, as nothing would follow a change of the array that was given."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    return value


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        same = value.size and (value == value.flat[0]).all()
        if same:
            return f"{value.flat[0]:g}"
        few = ", ".join(f"{number:g}" for number in value.flat[:2])
        return f"[{few}]" if value.size <= 2 else f"array of {value.size}"
    return f"{value:g}" if isinstance(value, float) else repr(value)
