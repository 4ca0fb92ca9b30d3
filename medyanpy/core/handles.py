"""Handles: what every kind of beads of a topology has in common."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType, new_class
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.names import Guarded
from medyanpy._tools.parameters import places_of
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import one_or_many
from medyanpy.core.columns import SPECIES
from medyanpy.core.kinds import Kind
from medyanpy.core.species import OfSpecies, Species, counts_in
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.free import Beads
    from medyanpy.state import State
    from medyanpy.topology import Topology

__all__ = ["Handle", "HandleOfSpecies", "bead_numbers", "handles_in"]

#: Rows of a handle that has none.
_NO_ROWS = np.empty(0, np.int64)
_NO_ROWS.flags.writeable = False


_NO_SPECIES = np.empty(0, np.int32)
_NO_SPECIES.flags.writeable = False


class Handle(Guarded):
    """Group of beads of a topology that were added together.

    It describes them as they were at the start, or after the last edit of the topology. Beads that jumps have added or
    removed in a Context since are known to its states: `State.living`.

    Attributes
    ----------
    topology : Topology
    name : str
        Unique within the topology; reports and errors use it.
    kind : Kind
        What the engine, files and pictures ask; ``handle.kind.name`` is ``"beads"``, ``"vertices"``, ``"points"`` ...
    beads : (n,) int array
        Indices of its beads, in topology order: rows of all arrays with a row per bead. A bead keeps its row for as
        long as it is there; one that is added later may have any row that is free.
    ids : (n,) int array
        Their permanent ids, which no other bead ever has: one that takes the row of another has an id of its own.
    capacity : int
        How many rows there are for its beads, inactive ones included.
    mass : (n,) float array, pN s²/nm
    friction : (n,) float array, pN s/nm
    fixed : bool
        Whether its beads are immobile.
    """

    _remedy = "it is what was given when these beads were added; add them to a new Topology with what you want"
    kind: Kind
    #: Class of `kind`.
    _kind: ClassVar[type[Kind]] = Kind
    #: Arguments that a kind defined elsewhere was given besides positions, mass and friction.
    _own: Mapping[str, Any] = MappingProxyType({})
    #: The method of a topology that adds beads of this very class; of kinds defined elsewhere none.
    _added_by: ClassVar[str]

    def __init_subclass__(cls, kind: type[Kind] | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Without one it is another class, so that flags that hold for one class alone do not hold for this one.
        cls._kind = new_class(f"{cls.__name__}Kind", (cls._kind,)) if kind is None else kind

    def __init__(self, topology: "Topology", name: str, first: int, mass: np.ndarray, friction: np.ndarray) -> None:
        self.topology = topology
        self.name = name
        self._first = first
        self.mass = mass
        self.friction = friction
        self.fixed = False
        self.kind = self._kind(self)
        #: Species that its beads may be of, in the order given, and the number of that of each, (n,) int32.
        self._species: tuple[Species, ...] = ()
        self._of_species = _NO_SPECIES
        #: Rows of its beads and their ids, where these are not simply counted from the first; and inactive rows.
        self._rows: np.ndarray | None = None
        self._ids: np.ndarray | None = None
        self._inactive = _NO_ROWS
        #: The one number that all beads had, where there are none any more.
        self._of_all: dict[str, Any] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def beads(self) -> np.ndarray:
        return np.arange(self._first, self._first + len(self)) if self._rows is None else self._rows

    @property
    def ids(self) -> np.ndarray:
        return self.beads if self._ids is None else self._ids

    @property
    def capacity(self) -> int:
        return len(self) + len(self._inactive)

    def _take_species(self, species: "tuple[Species, ...]", numbers: np.ndarray) -> None:
        """Let beads be of species from now on: numbers (n,) are theirs."""
        self._species, self._of_species = species, numbers
        if species:
            columns, per_bead = (*self.kind.columns, SPECIES), (*self.kind.per_bead, "_of_species")
            self.kind._complete(columns=columns, per_bead=per_bead)

    # Coming and going ----------------------------------------------------------------------------------------

    def remove(
        self, beads: Numbers | None = None, *, ids: Numbers | None = None, terms: Literal["refuse", "remove"] = "refuse"
    ) -> None:
        """Remove beads: their rows are inactive from then on, until others take them.

        Of a running simulation, inside ``with topology.edit():``. Forces that name the handle act on the beads that
        stay.

        Parameters
        ----------
        beads : (k,) int or int
            Rows, as in `beads`.
        ids : (k,) int or int
            Instead of rows: permanent ids.
        terms : "refuse" or "remove"
            What to do with terms that name such a bead themselves, such as the bonds of `HarmonicBonds`, `Links`,
            exclusions, sites of `LinkBinding`: an error, or they go with it.

        Raises
        ------
        TopologyError
            A row or id that is not that of a bead of this handle, one named twice, or terms that name one of them. A
            topology in use outside of an edit; a kind of bead that cannot be taken away one by one.
        ParameterError
            Neither or both of beads and ids.
        """
        what = f"{self.name}.remove"
        if self._why_whole():
            raise TopologyError(f"{what}: {self._why_whole()}")
        if (beads is None) == (ids is None):
            raise ParameterError(f"{what}: give beads= (rows) or ids=, one of the two")
        rows = beads if ids is None else self.topology.rows_of_ids(ids)
        keep = np.ones(len(self), bool)
        keep[self._among_its_beads(what, rows)] = False
        self.topology._shrink(what, {self: keep}, terms)

    def reserve(self, capacity: int) -> None:
        """Make room for so many beads in all: inactive rows, which beads take that are added later, also by jumps.

        Files continue as they are for as long as there is room; beyond, they start a new segment.

        Parameters
        ----------
        capacity : int
            Not below how many rows there are.

        Raises
        ------
        ParameterError
            A number below `capacity`, or more than a topology can hold.
        TopologyError
            A topology in use outside of an edit.
        """
        self.topology._reserve(f"{self.name}.reserve", self, capacity)

    def _why_whole(self) -> str:
        """Return why single beads cannot be removed; empty where they can."""
        return ""

    def _among_its_beads(self, what: str, rows: Any) -> np.ndarray:
        """Return which of its beads are in rows that a user names, (k,); TopologyError for the first that is not one of
        them."""
        wanted = one_or_many(f"{what}: beads", rows, dtype=np.int64, error=TopologyError)
        number = np.full(self.topology.n_beads, -1)
        number[self.beads] = np.arange(len(self))
        inside = (wanted >= 0) & (wanted < len(number))
        found = np.where(inside, number[np.where(inside, wanted, 0)], -1)
        if (found < 0).any():
            i = int(np.argmax(found < 0))
            raise TopologyError(f"{what}: beads[{i}] = {wanted[i]}, but {self._why_missing(int(wanted[i]))}")
        twice = np.sort(wanted)
        twice = twice[1:][twice[1:] == twice[:-1]]
        if len(twice):
            raise TopologyError(f"{what}: bead {twice[0]} is named twice")
        return found

    def _why_missing(self, row: int) -> str:
        """Return the reason why a row is not that of a bead of this handle."""
        if not 0 <= row < self.topology.n_beads:
            return f"there is none: beads are 0 to {self.topology.n_beads - 1}"
        if row in self._inactive:
            return f"this row of {self.name!r} is inactive: it has no bead"
        return f"that is a row of {self.topology.handle_of(row)!r}"

    def _has_row(self, bead: int) -> bool:
        """Tell whether a row is of these beads, or of what there is room for."""
        if self._rows is None and self._first <= bead < self._first + len(self):
            return True
        return (self._rows is not None and bead in self._rows) or bead in self._inactive

    def _number_for(self, what: str, name: str, given: Any, prefix: str = "") -> Any:
        """Return the number for new beads: what is given, or else the number that all have; `prefix` stands before the
        name in the arguments of the call."""
        if given is not None:
            return given
        if self.kind.of_all(name) is None:
            raise ParameterError(
                f"{what}: give {prefix}{name}=, because the beads of {self.name!r} do not all have the same"
            )
        return self.kind.of_all(name)

    def _take(self, **attributes: Any) -> None:
        """Become another: its beads have changed."""
        for name in ("_links", "_lanes"):
            # Worked out when asked for.
            vars(self).pop(name, None)
        if len(self) and not len(attributes.get("mass", self.mass)):
            names = (*self.kind.per_bead, *getattr(self.kind, "per_link", ()), *getattr(self.kind, "per_chain", ()))
            self._of_all = {name: self.kind.of_all(name) for name in names if self.kind.of_all(name) is not None}
        for value in attributes.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self._complete(**attributes)
        self.topology._joint = None
        self._version += 1

    def _merged(self, other: "Handle") -> dict[str, Any]:
        """Return attributes with those of more beads, of the same kind, after its own."""
        return {name: together(getattr(self, name), getattr(other, name)) for name in self.kind.per_bead}

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        """Return attributes of the beads (n,) that are kept."""
        return {name: chosen(getattr(self, name), keep) for name in self.kind.per_bead}

    @property
    def rows(self) -> slice | np.ndarray:
        """Its rows in the columns that not all beads have: ``state.orientations[handle.rows]``. A slice where they
        follow each other, else (n,) int."""
        return self.topology.rows_in(self.kind.rows_of, self.beads)

    def _arguments_now(self) -> dict[str, Any]:
        """Return what `adder_of` needs to make these beads again, to the bit."""
        return {**self._inertia_now(), **self._own, "name": self.name, **self._room_now()}

    def _inertia_now(self) -> dict[str, Any]:
        """Return mass and friction as an adder takes them, or the species that give them."""
        if not self._species:
            return self._numbers_now("mass", "friction")
        table = {one.name: {"mass": one.mass, "friction": one.friction} for one in self._species}
        return {"species": table, "of_species": self._of_species}

    def _numbers_now(self, *names: str) -> dict[str, Any]:
        """Return numbers of beads as an adder takes them: one where all have the same, also where there are none."""
        return {
            name: scalar_if_one(getattr(self, name)) if len(self) else self._of_all.get(name, getattr(self, name))
            for name in names
        }

    def _room_now(self) -> dict[str, int]:
        """Return the arguments of an adder for room, where there is any."""
        return {"capacity": self.capacity} if len(self._inactive) else {}

    def __reduce__(self) -> tuple[Any, ...]:
        # It is stored by its number, so that handles and their topology stay together in pickles and copies.
        return _handle, (self.topology, self.topology.handles.index(self))

    @property
    def degrees_of_freedom(self) -> int:
        """Independent velocities of its beads; none where they are fixed."""
        return 0 if self.fixed else self.kind.degrees_of_freedom_per_bead * len(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.kind.contents})"


class HandleOfSpecies(Handle):
    """Beads that may be of species: a column of the state tells of which each is now."""

    def __repr__(self) -> str:
        species = f" of {', '.join(one.name for one in self._species)}" if self._species else ""
        return f"{super().__repr__()[:-1]}{species})"

    @property
    def species(self) -> tuple[Species, ...]:
        """Species that beads may be of, in the order given: each has ``name``, ``mass`` and ``friction``."""
        return self._species

    def of(self, species: str) -> OfSpecies:
        """Return its beads of one species, whichever these are at a time; ParameterError for an unknown name."""
        return OfSpecies(self, species)

    def counts(self, state: "State") -> dict[str, int]:
        """Return the number of beads of each species in a state, or a frame of a trajectory, by name."""
        return counts_in(self, state)


def adder_of(cls: type[Handle], topology: "Topology") -> Callable[..., Handle]:
    """Return the method of a topology that makes handles of a class, for documents and copies."""
    if "_added_by" not in vars(cls):
        return partial(topology.add, cast("type[Beads]", cls))
    adder: Callable[..., Handle] = getattr(topology, cls._added_by)
    return adder


def handles_in(beads: Any) -> tuple[Handle, ...]:
    """Return the handles among what names beads: a handle, several, or bead numbers."""
    if isinstance(beads, Handle):
        return (beads,)
    if isinstance(beads, list | tuple) and beads and all(isinstance(h, Handle) for h in beads):
        return tuple(beads)
    return ()


def together(a: Any, b: Any) -> Any:
    """Return values of beads and of more of them: one number that all have stays one; None, where neither has any."""
    if a is None and b is None:
        return None
    if a.ndim == 1 and len(a) and len(b) and a.strides == b.strides == (0,) and a[0] == b[0]:
        return np.broadcast_to(a[:1].copy().reshape(()), (len(a) + len(b),))
    if not len(a) or not len(b):
        return b if not len(a) else a
    return np.concatenate([a, b])


def chosen(values: Any, keep: np.ndarray) -> Any:
    """Return values of the beads that are kept, by a mask or by their numbers; one number that all have stays one."""
    if values is None:
        return None
    if values.ndim == 1 and values.strides == (0,) and len(values):
        n = int(np.count_nonzero(keep)) if keep.dtype == bool else len(keep)
        return np.broadcast_to(values[:1].copy().reshape(()), (n,))
    return values[keep]


def found_ids(what: str, wanted: np.ndarray, known: np.ndarray, next_id: int | None) -> np.ndarray:
    """Return the places (k,) of permanent ids in `known` (n,), which has -1 where there is no bead. Ids that have been
    given are below `next_id`, where that is known.

    Raises
    ------
    TopologyError
        The first that is not there: it has never been, or is gone.
    """
    found, missing = places_of(wanted, known)
    missing |= wanted < 0
    if missing.any():
        i = int(np.argmax(missing))
        if next_id is None:
            why = "no bead has it then"
        elif 0 <= wanted[i] < next_id:
            why = "its bead is gone"
        else:
            why = f"no bead has had it: ids are 0 to {next_id - 1}"
        raise TopologyError(f"{what}: ids[{i}] = {wanted[i]}, but {why}")
    return found


def bead_numbers(beads: Any) -> Any:
    """Return the numbers of the beads of handles, in the order in which these are given; bead numbers as they are."""
    handles = handles_in(beads)
    return np.concatenate([handle.beads for handle in handles]) if handles else beads


def _handle(topology: "Topology", number: int) -> Handle:
    return topology.handles[number]
