"""Handles: what every kind of beads of a topology has in common."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.names import Guarded
from medyanpy._tools.parameters import places_of
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import one_or_many
from medyanpy.core.columns import BEADS, POSITIONS, VELOCITIES, Column
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.free import Beads
    from medyanpy.beads.joint import Rows
    from medyanpy.core.flows import Flow
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark
    from medyanpy.topology import Topology

__all__ = ["MAX_BEADS", "Handle", "bead_numbers", "handles_in"]

#: Beads are numbered by 32-bit integers, in arrays and in the counter of the random numbers.
MAX_BEADS = 2**31 - 1
#: Permanent ids are below this: 32 bits of them are in one word of that counter, 16 in the upper part of another.
MAX_IDS = 2**48


#: Rows of a handle that has none.
_NOBODY = np.empty(0, np.int64)
_NOBODY.flags.writeable = False


class Block(IntEnum):
    """Blocks of beads in the arrays of a Context, in order.

    Beads of `VERTICES` have a `mesh`, those of `ORIENTED` quaternions, and `POINTS` triangles of a `membrane`.
    `DIRECTORS` are directions, and `NONE` is for constraints, which have no beads.
    """

    VERTICES = 0
    OTHERS = 1
    ORIENTED = 2
    DIRECTORS = 3
    POINTS = 4
    NONE = 5


class Handle(Guarded):
    """Group of beads of a topology that were added together.

    It describes them as they were at the start, or after the last edit of the topology. Beads that jumps have added or
    removed in a Context since are known to its states: `State.living`.

    Attributes
    ----------
    topology : Topology
    name : str
        Unique within the topology; reports and errors use it.
    kind : str
        Beads of one kind share a row in reports: ``"beads"``, ``"balls"``, ``"vertices"`` or ``"points"``.
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
    fixed_beads : (n,) bool array
        Which of them are.
    """

    _remedy = "it is what was given when these beads were added; add them to a new Topology with what you want"
    kind = "beads"
    degrees_of_freedom_per_bead = 3
    #: Its block in the arrays of a Context.
    block = Block.OTHERS
    is_on_surface = False
    #: Whether its positions are places in space; else they are directions.
    in_space = True
    #: The arrays that beads of this kind have.
    columns: tuple[Column, ...] = (POSITIONS, VELOCITIES)
    #: Arguments that a kind defined elsewhere was given besides positions, mass and friction.
    _own: Mapping[str, Any] = MappingProxyType({})
    #: The attributes that hold something of every bead. Kinds defined elsewhere name theirs here, if they are arguments
    #: too; without, beads of such a kind cannot be added to a handle, nor be taken away.
    per_bead: tuple[str, ...] = ("mass", "friction")
    #: Whether nothing joins one bead to another, so that jumps may add and remove single ones.
    comes_and_goes = False
    #: Whether all that holds its beads is in `constraint_rows`, so that constraints of a user's own can hold them too.
    takes_constraints = False
    #: The method of a topology that adds beads of this very class; of kinds defined elsewhere none.
    added_by: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Set for one class, these do not hold for those derived from it.
        for name in ("comes_and_goes", "takes_constraints"):
            setattr(cls, name, vars(cls).get(name, False))

    def __init__(self, topology: "Topology", name: str, first: int, mass: np.ndarray, friction: np.ndarray) -> None:
        self.topology = topology
        self.name = name
        self._first = first
        self.mass = mass
        self.friction = friction
        self.fixed = False
        #: Rows of its beads and their ids, where these are not simply counted from the first; and inactive rows.
        self._rows: np.ndarray | None = None
        self._ids: np.ndarray | None = None
        self._asleep = _NOBODY
        #: The one number that all beads had, where there are none any more.
        self._of_all: dict[str, Any] = {}
        self._version = 0

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def first_bead(self) -> int:
        """Row of the first, where all follow each other.

        Raises
        ------
        TopologyError
            They do not, since the topology was edited: ``handle.beads[i]`` is the i-th.
        """
        if self._rows is not None:
            raise TopologyError(
                f"first_bead: the beads of {self.name!r} do not follow each other since the topology was edited; "
                "handle.beads has their rows"
            )
        return self._first

    @property
    def beads(self) -> np.ndarray:
        return np.arange(self._first, self._first + len(self)) if self._rows is None else self._rows

    @property
    def ids(self) -> np.ndarray:
        return self.beads if self._ids is None else self._ids

    @property
    def rows_anew(self) -> int:
        """Number of rows that it has when it is made of its arguments of now."""
        return self.capacity

    @property
    def capacity(self) -> int:
        return len(self) + len(self._asleep)

    @property
    def with_room(self) -> np.ndarray:
        """Rows of its beads, and of those that jumps may add, (m,): what forces act on as they come."""
        return np.append(self.beads, self._asleep) if self.comes_and_goes else self.beads

    @property
    def all_rows(self) -> np.ndarray:
        """Rows of its beads and inactive rows, (m,) ascending."""
        return np.sort(np.append(self.beads, self._asleep))

    @property
    def fixed_beads(self) -> np.ndarray:
        return np.broadcast_to(self.fixed, (len(self),))

    @property
    def keeps_momentum(self) -> bool:
        """True if what holds its beads keeps their total momentum."""
        return True

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
        if row in self._asleep:
            return f"this row of {self.name!r} is inactive: it has no bead"
        return f"that is a row of {self.topology.handle_of(row)!r}"

    def _has_row(self, bead: int) -> bool:
        """Tell whether a row is of these beads, or of what there is room for."""
        if self._rows is None and self._first <= bead < self._first + len(self):
            return True
        return (self._rows is not None and bead in self._rows) or bead in self._asleep

    def newborn(self, columns: dict[Column, np.ndarray]) -> "Handle":
        """Make a handle, in no topology, of beads that jumps have added, from the rows (k, ...) of columns that memory
        has of them: of kinds that come and go."""
        raise TopologyError(f"{self.name}: jumps cannot create {self.kind}")

    def of_all(self, name: str) -> Any:
        """Return the one number that all its beads have, and that an added bead takes; None where they differ."""
        values = getattr(self, name)
        if values is None or not len(values):
            return self._of_all.get(name)
        return values[0] if (values == values[0]).all() else None

    def differs(self) -> str | None:
        """Return the name of a number that differs between its beads, so that added ones have none; None without
        any."""
        numbers = {name: getattr(self, name) for name in self.per_bead}
        of_one = [name for name, value in numbers.items() if value.ndim == 1 and value.dtype == np.float64]
        return next((name for name in of_one if self.of_all(name) is None), None)

    def _number_for(self, what: str, name: str, given: Any, prefix: str = "") -> Any:
        """Return the number for new beads: what is given, or else the number that all have; `prefix` stands before the
        name in the arguments of the call."""
        if given is not None:
            return given
        if self.of_all(name) is None:
            raise ParameterError(
                f"{what}: give {prefix}{name}=, because the beads of {self.name!r} do not all have the same"
            )
        return self.of_all(name)

    def _take(self, **attributes: Any) -> None:
        """Become another: its beads have changed."""
        for name in ("_links", "_lanes"):
            # Worked out when asked for.
            vars(self).pop(name, None)
        if len(self) and not len(attributes.get("mass", self.mass)):
            names = (*self.per_bead, *getattr(self, "per_link", ()), *getattr(self, "per_chain", ()))
            self._of_all = {name: self.of_all(name) for name in names if self.of_all(name) is not None}
        for value in attributes.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self._complete(**attributes)
        self.topology._joint = None
        self._version += 1

    def _merged(self, other: "Handle") -> dict[str, Any]:
        """Return attributes with those of more beads, of the same kind, after its own."""
        return {name: together(getattr(self, name), getattr(other, name)) for name in self.per_bead}

    def _chosen(self, keep: np.ndarray) -> dict[str, Any]:
        """Return attributes of the beads (n,) that are kept."""
        return {name: chosen(getattr(self, name), keep) for name in self.per_bead}

    # Columns of its own --------------------------------------------------------------------------------------

    @classmethod
    def rows_of(cls) -> str:
        """Return the `of` of the columns that not all beads have; empty without any."""
        return next((column.of for column in cls.columns if column.of != BEADS), "")

    @property
    def rows(self) -> slice | np.ndarray:
        """Its rows in the columns that not all beads have: ``state.orientations[handle.rows]``. A slice where they
        follow each other, else (n,) int."""
        return self.topology.rows_in(self.rows_of(), self.beads)

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of `rows`, (n,)."""
        rows = self.rows
        return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    @property
    def rows_with_room(self) -> np.ndarray:
        """Rows of its beads (m,), and behind them those that were inactive."""
        rows = self.topology.rows_in(self.rows_of(), np.append(self.beads, self._asleep))
        return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def asleep(self, column: Column) -> Any:
        """Return what memory holds in inactive rows: something with which letters can do nothing wrong."""
        return 0

    def start_of(self, column: Column) -> np.ndarray:
        """Return the start of the beads in a column, as memory holds it: by default what the attribute of this name
        holds; momenta start at 0."""
        return np.zeros(column.shape) if column.is_momentum else getattr(self, column.name)

    def moves(self, column: Column) -> np.ndarray:
        """Tell which momenta may be other than 0, (n, ...)."""
        return ~self.fixed_beads.reshape(-1, *(1 for _ in column.shape))

    def shown(self, column: Column, rows: np.ndarray) -> np.ndarray:
        """Return rows of a column, in topology order, as users see them, where the column tells that these are
        others."""
        return rows

    def taken(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        """Return rows that users give for columns of one role, as memory holds them; of right shapes and finite, the
        rest is checked here. TopologyError naming the first bad row."""
        return given

    def beside_frames(self) -> dict[str, Any]:
        """Return what a trajectory holds of these beads beside frames, by name: bool, int, str, Surface, an array, or
        an array and its unit. Arrays other than faces (F, 3), links (l, 2) and starts (f + 1,), where chains begin and
        end, have a row for each bead; pictures draw radius (n,) and semi_axes (n, 3)."""
        return {"fixed": self.fixed, "in_space": self.in_space}

    def beside_rows(self) -> dict[str, Any]:
        """Return `beside_frames`, and ``"mass"``, with a row for each of `all_rows`, and links between these. Where
        these are not simply its beads, chains begin and end where links do, and there are no starts. Inactive rows have
        the numbers of a bead that is added there by default, where all beads have the same; the others are masked."""
        beside = {"mass": (self.mass, "pN s+2 nm-1"), **self.beside_frames()}
        if not len(self._asleep) and self._rows is None:
            return beside
        beside.pop("starts", None)
        rows = self.all_rows
        own, free = np.searchsorted(rows, self.beads), np.searchsorted(rows, self._asleep)
        if self.comes_and_goes and not len(self) and self.differs() is None:
            one = self.newborn({c: c.empty(1) + c.dtype(self.asleep(c)) for c in self.columns if not c.is_momentum})
            beside |= {"mass": (one.mass, beside["mass"][1]), **one.beside_frames()}
            own, free = own[:0], np.arange(len(rows))

        def widened(value: np.ndarray) -> np.ma.MaskedArray:
            shape = (len(rows), *value.shape[1:])
            out: np.ma.MaskedArray = np.ma.MaskedArray(np.empty(shape, value.dtype), mask=True)
            out[own] = value[: len(own)]
            if len(value) and (value == value[0]).all():
                out[free] = value[0]
            return out

        for name, value in beside.items():
            array, *unit = value if isinstance(value, tuple) else (value,)
            if not isinstance(array, np.ndarray) or name == "faces":
                continue
            array = own[array] if name == "links" else widened(array)
            beside[name] = (array, *unit) if unit else array
        return beside

    def demand_box(self, layout: "Layout") -> None:
        """Demand the box that its links need, now and from now on; ParameterError where it is smaller."""

    @property
    def joined(self) -> np.ndarray:
        """Pairs of its beads, (e, 2), counted from its first, that are neighbours in a mesh or chain."""
        return np.empty((0, 2), np.int64)

    @property
    def moves_with(self) -> "Handle":
        """The handle whose temperature and document these beads are part of: itself, or, where constraints join these
        beads to those of another handle, that one."""
        return self

    @property
    def measured_with(self) -> "Handle":
        """The handle whose temperature these beads are part of: also where constraints of a user's own join them to
        those of another."""
        joint = self.topology.joint
        return self.moves_with if joint is None else joint.leaders.get(self.moves_with, self.moves_with)

    @property
    def contents(self) -> str:
        """Number of its beads and their kind."""
        return f"{len(self)} {self.kind}"

    @property
    def obstacle_to_constraints(self) -> str:
        """Reason why constraints of a user's own cannot hold its beads; empty where they can."""
        if self.takes_constraints:
            return ""
        return "but constraints hold free beads, balls, nodes of filaments and beads on surfaces, and no others"

    def constraint_rows(self) -> "list[Rows]":
        """Return the constraints that its beads have, for joint solves; see `medyanpy.beads.joint`."""
        return []

    @property
    def step_lengths(self) -> float | np.ndarray:
        """Distance that a bead moves while its coordinates change by 1, () or (n,) nm: 1 where these are lengths."""
        return 1.0

    def multipliers(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        """Return Lagrange multipliers of the constraints on these beads, from the rows of (n, 3) arrays in their order;
        None where there are none or none are offered. SimulationError where they are not determined."""
        return None

    def with_joint_multipliers(
        self, own: np.ndarray | None, parts: "list[tuple[np.ndarray, np.ndarray]]"
    ) -> np.ndarray | None:
        """Return its multipliers, `own`, with those of the constraints that are solved jointly with others in their
        places; `parts` are numbers and values for each of its forms (see `constraint_rows`)."""
        if own is not None:
            (number, values), *_ = parts
            own[number] = values
        return own

    def describe(self, bead: int) -> str:
        """Describe a bead of the topology within this handle, for messages; empty where there is nothing to tell."""
        return ""

    def describe_start(self, bead: int) -> str:
        """Describe more of where a bead starts, to be added to a message; empty where there is nothing to tell."""
        return ""

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return what is wrong or unlikely about these beads in a system, for `Simulation.check` and for warnings."""
        return []

    @property
    def has_friction(self) -> bool:
        """True if the letter O changes any of these beads."""
        return bool(self.friction.any())

    def bind(self, layout: "Layout") -> "Flow | None":
        """Return what the letters do to these beads beyond what they do to all, in one Context; None for nothing."""
        return None

    @classmethod
    def adder(cls, topology: "Topology") -> Callable[..., "Handle"]:
        """Return the method of a topology that makes handles of this class, for documents and copies."""
        if "added_by" not in vars(cls):
            return partial(topology.add, cast("type[Beads]", cls))
        adder: Callable[..., Handle] = getattr(topology, cls.added_by)
        return adder

    def _arguments_now(self) -> dict[str, Any]:
        """Return what `adder` needs to make these beads again, to the bit."""
        return {**self._numbers_now("mass", "friction"), **self._own, "name": self.name, **self._room_now()}

    def _numbers_now(self, *names: str) -> dict[str, Any]:
        """Return numbers of beads as an adder takes them: one where all have the same, also where there are none."""
        return {
            name: scalar_if_one(getattr(self, name)) if len(self) else self._of_all.get(name, getattr(self, name))
            for name in names
        }

    def _room_now(self) -> dict[str, int]:
        """Return the arguments of an adder for room, where there is any."""
        return {"capacity": self.capacity} if len(self._asleep) else {}

    def __reduce__(self) -> tuple[Any, ...]:
        # It is stored by its number, so that handles and their topology stay together in pickles and copies.
        return _handle, (self.topology, self.topology.handles.index(self))

    @property
    def degrees_of_freedom(self) -> int:
        """Independent velocities of its beads; none where they are fixed."""
        return 0 if self.fixed else self.degrees_of_freedom_per_bead * len(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.contents})"


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
