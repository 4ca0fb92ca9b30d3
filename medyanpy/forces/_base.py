"""What every force has in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.described import Described, scalar_if_one
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.names import Guarded, did_you_mean
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._stiffness import Start, longest_timestep
from medyanpy.handles import Handle, bead_numbers, handles_in
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy._kernels.program import Operation
    from medyanpy.layout import Layout

__all__ = ["Domain", "Force", "bead_numbers", "domain_table", "handles_in"]


class Force(Described, Guarded, ABC):
    """A term of the potential energy: what acts on which beads, with which numbers.

    A force only describes. Each Context makes of it an operation of its own with `bind`, so one force may serve
    several contexts. To write one, see "How to add a force" in the documentation; `PythonForce` needs less.

    Its numbers are attributes: reading one gives the number as it is now, and assigning to one of `changeable` is the
    same as `set`. Nothing else can be assigned to.

    Parameters
    ----------
    name : str, optional
        Under which its energy appears in ``state.energies``; the class name where none is given.
    group : int, 0 to 31
        Kicks of a word may name the groups they apply, as in ``"B1 B0 A O A B0 B1"``.
    """

    _remedy = "make a new force, and a new System with it; only force.changeable can be set"
    #: The numbers that `set` may change, and which values each may have; `changeable` are their names.
    domains: Mapping[str, Domain] = domain_table()
    #: Whether the force is the same wherever in space the system is, so that it keeps the total momentum.
    conserves_momentum: bool = False
    #: Whether its energy tells the work that it does: runs are watched for beads that run away by it.
    energy_tells_work: bool = True
    #: Whether `squared_frequencies` are what they bound.
    exact_frequencies: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "domains" in vars(cls) and "changeable" not in vars(cls):
            cls.changeable = tuple(cls.domains)

    def __init__(self, *, name: str | None = None, group: int = 0) -> None:
        self.name = type(self).__name__ if name is None else name
        self.group = whole_number(f"{self.name}: group", group, at_least=0, at_most=31)
        self._numbers: dict[str, Any] = {}
        self._version = 0

    # For users ----------------------------------------------------------------------------------------------

    def _named(self, *names: str) -> tuple[Any, ...]:
        """Numbers by their names, as they are now."""
        return tuple(self._numbers[name] for name in names)

    @property
    def parameters(self) -> dict[str, Any]:
        """The numbers of this force as they are now; change them with `set`."""
        return dict(self._numbers)

    def set(self, **numbers: Any) -> None:
        """Change numbers of this force; every context that uses it follows at its next step or state.

        Raises
        ------
        ParameterError
            A name that is not one of ``force.changeable``, or a value outside its domain; then nothing changes.
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

    # For authors of forces ----------------------------------------------------------------------------------

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

    @property
    def handles(self) -> tuple[Handle, ...]:
        """The handles this force was given: a System refuses those of another topology."""
        return ()

    def longest_timestep(self, topology: Topology | None = None) -> float | None:
        """2 over the highest frequency of this force on its beads where they start, beyond which kicks at that distance
        in time are unstable; a Context warns of longer timesteps.

        Parameters
        ----------
        topology : Topology, optional
            Whose beads a force acts on that was given bead numbers; one that was given handles has theirs.

        Returns
        -------
        float or None
            s; inf where nothing is stiff, None of a force that cannot tell. Not above what the matrix of second
            derivatives says where beads start, and not below half of it; of pairs that collide and of bent filaments
            a guide. Of more than 16 384 beads that a pair force acts on, four neighbourhoods of 4096 are looked at.
            See :doc:`/parameters`.

        Raises
        ------
        ParameterError
            No topology, and no handles to take it from.
        """
        if topology is None:
            if not self.handles:
                raise ParameterError(f"{self.name}: give topology=, which has the masses of the beads")
            topology = self.handles[0].topology
        return longest_timestep(self.squared_frequencies(Start(topology)))

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        """(rows,) 1/s²; bounds of this force: it is nowhere stiffer than springs that tie each row of `start` to its
        place with these frequencies. None where the force does not know."""
        return None

    @abstractmethod
    def bind(self, layout: "Layout") -> "Operation":
        """The operation that computes this force on the arrays of one Context."""

    def _arguments_now(self) -> dict[str, Any]:
        """What the constructor would have to be given to make this force as it is now: its arguments, with the
        present name, group and changeable numbers.

        Documents, checkpoints, pickles and copies are made of it. A force whose terms change by methods of its own
        overrides it, so that they are among the arguments as they are now.
        """
        arguments = super()._arguments_now()
        present = {"name": self.name, "group": self.group, **self._changeable_now()}
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


def expect_handle(what: str, handle: Any, kind: type[Handle], article: str) -> Any:
    """`handle`, if it is one of `kind`."""
    if not isinstance(handle, kind):
        raise TopologyError(f"{what} must be the handle of {article}, not {handle!r}")
    return handle


def check_beads(force: str, index: np.ndarray, topology: Topology) -> None:
    """Refuse terms (rows of bead numbers) that name beads which do not exist."""
    outside = ((index < 0) | (index >= topology.n_beads)).any(axis=1)
    if outside.any():
        term = int(np.argmax(outside))
        raise TopologyError(
            f"{force}: term {term} names beads {index[term].tolist()}, "
            f"but the topology has beads 0 to {topology.n_beads - 1}"
        )


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
