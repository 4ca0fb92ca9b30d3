"""Kinds of beads: what the engine, files and pictures ask about the beads of a handle."""

from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.names import Guarded
from medyanpy.core.columns import BEADS, POSITIONS, SPECIES, VELOCITIES, Column
from medyanpy.core.species import by_species
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.constraint_rows import Rows
    from medyanpy.core.flows import Flow
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark

__all__ = ["MAX_BEADS", "MAX_IDS", "Block", "Kind"]

#: Beads are numbered by 32-bit integers, in arrays and in the counter of the random numbers.
MAX_BEADS = 2**31 - 1
#: Permanent ids are below this: 32 bits of them are in one word of that counter, 16 in the upper part of another.
MAX_IDS = 2**48


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


class Kind(Guarded):
    """Hooks of a kind of beads, one object for each handle: ``handle.kind``.

    A class of handles names its own: ``class Rails(Beads, kind=RailKind)``. Without one it takes that of its base, but
    for `comes_and_goes` and `takes_constraints`, which hold for the class alone that sets them.

    Attributes
    ----------
    handle : Handle
    name : str
        Word for these beads in reports: ``"beads"``, ``"balls"``, ``"vertices"``, ``"points"``; also ``str(kind)``.
    """

    _remedy = "it follows from the class of the handle"
    name = "beads"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for flag in ("comes_and_goes", "takes_constraints"):
            setattr(cls, flag, vars(cls).get(flag, False))

    def __init__(self, handle: "Handle") -> None:
        self.handle = handle

    def __str__(self) -> str:
        return self.name

    # Layout and flow -----------------------------------------------------------------------------------------

    block = Block.OTHERS
    #: True if its positions are places in space; else they are directions.
    in_space = True
    is_on_surface = False
    degrees_of_freedom_per_bead = 3

    def bind(self, layout: "Layout") -> "Flow | None":
        """Return what the letters do to these beads beyond what they do to all, in one Context; None for nothing."""
        return None

    @property
    def joined(self) -> np.ndarray:
        """Pairs of its beads, (e, 2), counted from its first, that are neighbours in a mesh or chain."""
        return np.empty((0, 2), np.int64)

    @property
    def moves_with(self) -> "Handle":
        """The handle whose temperature and document these beads are part of: its own, or, where constraints join these
        beads to those of another handle, that one."""
        return self.handle

    @property
    def measured_with(self) -> "Handle":
        """The handle whose temperature these beads are part of, also where constraints of a user's own join them to
        those of another."""
        joint = self.handle.topology.joint
        return self.moves_with if joint is None else joint.leaders.get(self.moves_with, self.moves_with)

    @property
    def first_bead(self) -> int:
        """Row of the first bead, where all follow each other.

        Raises
        ------
        TopologyError
            They do not, since the topology was edited: ``handle.beads[i]`` is the i-th.
        """
        if self.handle._rows is not None:
            raise TopologyError(
                f"first_bead: the beads of {self.handle.name!r} do not follow each other since the topology was "
                "edited; handle.beads has their rows"
            )
        return self.handle._first

    @property
    def fixed_beads(self) -> np.ndarray:
        """True for beads that are immobile, (n,)."""
        return np.broadcast_to(self.handle.fixed, (len(self.handle),))

    @property
    def has_friction(self) -> bool:
        """True if the letter O changes any of these beads."""
        return bool(self.handle.friction.any())

    @property
    def step_lengths(self) -> float | np.ndarray:
        """Distance that a bead moves while its coordinates change by 1, () or (n,) nm: 1 where these are lengths."""
        return 1.0

    # Columns -------------------------------------------------------------------------------------------------

    #: The arrays that beads of this kind have.
    columns: tuple[Column, ...] = (POSITIONS, VELOCITIES)

    @property
    def rows_of(self) -> str:
        """The `of` of the columns that not all beads have; empty without any."""
        return next((column.of for column in self.columns if column.of != BEADS), "")

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of `Handle.rows`, (n,)."""
        return _numbers(self.handle.rows)

    @property
    def rows_with_room(self) -> np.ndarray:
        """Rows in these columns of its beads (m,), and behind them those that were inactive."""
        own = np.append(self.handle.beads, self.handle._inactive)
        return _numbers(self.handle.topology.rows_in(self.rows_of, own))

    def inactive(self, column: Column) -> Any:
        """Return what memory holds in inactive rows: something with which letters can do nothing wrong."""
        return 0

    def start_of(self, column: Column) -> np.ndarray:
        """Return the start of the beads in a column, as memory holds it: by default the attribute of the handle of this
        name; momenta start at 0."""
        if column is SPECIES:
            return self.handle._of_species
        return np.zeros(column.shape) if column.is_momentum else getattr(self.handle, column.name)

    def remade(self, positions: np.ndarray) -> np.ndarray:
        """Return positions (n, 3) as a handle that is made of them has them: those that letters have left differ
        in the last digits from where constraints hold."""
        return positions

    def moves(self, column: Column) -> np.ndarray:
        """Tell which momenta may be other than 0, (n, ...)."""
        return ~self.fixed_beads.reshape(-1, *(1 for _ in column.shape))

    def shown(self, column: Column, rows: np.ndarray) -> np.ndarray:
        """Return rows of a column, in topology order, as users see them, where the column tells that these differ from
        those in memory."""
        return rows

    def taken(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        """Return rows that users give for columns of one role, as memory holds them; of right shapes and finite, the
        rest is checked here. TopologyError naming the first bad row."""
        return given

    def expect_rows(self, what: str, rows: np.ndarray, given: dict[Column, np.ndarray]) -> None:
        """Refuse rows of columns, as `taken` is given them; the rows of the topology with a bead are (k,) ascending.
        TopologyError naming the first bad row."""

    # Constraints ---------------------------------------------------------------------------------------------

    #: True if all that holds its beads is in `constraint_rows`, so that constraints of a user's own can hold them too.
    takes_constraints = False

    @property
    def keeps_momentum(self) -> bool:
        """True if what holds its beads keeps their total momentum."""
        return True

    @property
    def obstacle_to_constraints(self) -> str:
        """Reason why constraints of a user's own cannot hold its beads; empty where they can."""
        if self.takes_constraints:
            return ""
        return (
            "but constraints hold free beads, balls, nodes of filaments, beads on surfaces, vertices, points in "
            "triangles and bodies, and no others"
        )

    def constraint_rows(self) -> "list[Rows]":
        """Return the constraints that its beads have, for joint solves; see `medyanpy.beads.constraint_rows`."""
        return []

    def multipliers(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        """Return Lagrange multipliers of the constraints on these beads, from the rows of (n, 3) arrays in their order;
        None where there are none or none are offered. SimulationError where they are not determined."""
        return None

    def multipliers_among(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        """Return the same from (n, 3) arrays of all beads, in topology order: the constraints may hold others too."""
        beads = self.handle.beads
        return self.multipliers(positions[beads], velocities[beads], forces[beads])

    def with_joint_multipliers(
        self, own: np.ndarray | None, parts: "list[tuple[np.ndarray, np.ndarray]]"
    ) -> np.ndarray | None:
        """Return its multipliers, `own`, with those of the constraints that are solved jointly with others in their
        places; `parts` are numbers and values for each of its forms (see `constraint_rows`)."""
        if own is not None:
            # A column for each form.
            for column, (number, values) in zip(own.reshape(len(own), -1).T, parts, strict=True):
                column[number] = values
        return own

    # Creation and removal ------------------------------------------------------------------------------------

    #: The attributes of the handle that hold something of every bead. Kinds defined elsewhere name theirs here, if they
    #: are arguments too; without, beads of such a kind cannot be added to a handle or removed.
    per_bead: tuple[str, ...] = ("mass", "friction")
    #: True if nothing joins one bead to another, so that jumps may add and remove single ones.
    comes_and_goes = False

    def degrees_of_freedom_of(self, n: int, columns: dict[Column, np.ndarray]) -> int:
        """Return the degrees of freedom of n beads that are there, of kinds that come and go, with what memory holds of
        all their rows in columns of all beads."""
        return self.degrees_of_freedom_per_bead * n

    @property
    def with_room(self) -> np.ndarray:
        """Rows of its beads, and of those that jumps may add, (m,): what forces act on as they come."""
        return np.append(self.handle.beads, self.handle._inactive) if self.comes_and_goes else self.handle.beads

    @property
    def all_rows(self) -> np.ndarray:
        """Rows of its beads and inactive rows, (m,) ascending."""
        return np.sort(np.append(self.handle.beads, self.handle._inactive))

    @property
    def rows_remade(self) -> int:
        """Number of rows that it has when it is made of its arguments of now."""
        return self.handle.capacity

    def created(self, columns: dict[Column, np.ndarray]) -> "Handle":
        """Make a handle, in no topology, of beads that jumps have added, from the rows (k, ...) of columns that memory
        has of them: of kinds that come and go."""
        raise TopologyError(f"{self.handle.name}: jumps cannot create {self.name}")

    def inertia_of_created(self, columns: dict[Column, np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mass and friction of n beads that jumps have added: of their species, or those that all have."""
        if self.handle._species:
            return by_species(self.handle._species, columns[SPECIES])
        mass, friction = (np.full(n, self.of_all(name)) for name in ("mass", "friction"))
        return mass, friction

    def of_species(self, numbers: np.ndarray) -> dict[str, Any]:
        """Return the attributes of the handle that follow from the species (n,) of its beads."""
        mass, friction = by_species(self.handle._species, numbers)
        return {"mass": mass, "friction": friction}

    def of_all(self, name: str) -> Any:
        """Return the one number that all its beads have, and that an added bead takes; None where they differ."""
        values = getattr(self.handle, name)
        if values is None or not len(values):
            return self.handle._of_all.get(name)
        return values[0] if (values == values[0]).all() else None

    def differs(self) -> str | None:
        """Return the name of a number that differs between its beads, so that added ones have none; None without
        any."""
        given_by_species = self.of_species(self.handle._of_species) if self.handle._species else ()
        numbers = {name: getattr(self.handle, name) for name in self.per_bead if name not in given_by_species}
        of_one = [n for n, v in numbers.items() if v is not None and v.ndim == 1 and v.dtype == np.float64]
        return next((name for name in of_one if self.of_all(name) is None), None)

    # Files and pictures --------------------------------------------------------------------------------------

    def beside_frames(self) -> dict[str, Any]:
        """Return what a trajectory holds of these beads beside frames, by name: a number, a text or a list of texts, a
        Surface, or an array, which may have a unit. Arrays other than faces (F, 3), links (l, 2) and starts (f + 1,),
        where chains begin and end, have a row for each bead; pictures draw radius (n,) and semi_axes (n, 3)."""
        species = {"species": [one.name for one in self.handle._species]} if self.handle._species else {}
        return {"fixed": self.handle.fixed, "in_space": self.in_space, **species}

    def beside_one(self) -> dict[str, Any]:
        """Return `beside_frames`, and ``"mass"``, of one bead that jumps have added."""
        one = self.created({c: c.empty(1) + c.dtype(self.inactive(c)) for c in self.columns if not c.is_momentum})
        return {"mass": (one.mass, "pN s+2 nm-1"), **one.kind.beside_frames()}

    def beside_rows(self) -> dict[str, Any]:
        """Return `beside_frames`, and ``"mass"``, with a row for each of `all_rows`, and links between these. Where
        these are not simply its beads, chains begin and end where links do, and there are no starts. Inactive rows have
        the numbers of a bead that is added there by default, where all beads have the same; the others are masked."""
        handle = self.handle
        beside = {"mass": (handle.mass, "pN s+2 nm-1"), **self.beside_frames()}
        if not len(handle._inactive) and handle._rows is None:
            return beside
        beside.pop("starts", None)
        rows = self.all_rows
        own, free = np.searchsorted(rows, handle.beads), np.searchsorted(rows, handle._inactive)
        if self.comes_and_goes and not len(handle) and self.differs() is None:
            beside |= self.beside_one()
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

    # Box -----------------------------------------------------------------------------------------------------

    def demand_box(self, layout: "Layout") -> None:
        """Demand the box that its links need, now and from now on; ParameterError where it is smaller."""

    # Messages and remarks ------------------------------------------------------------------------------------

    @property
    def contents(self) -> str:
        """Number of its beads and their kind."""
        return f"{len(self.handle)} {self.name}"

    def no_room(self, next_id: int) -> str:
        """Say what is full where a jump cannot create a bead, which would have this id, and how to get more room."""
        if next_id >= MAX_IDS:
            return "all 2**48 ids are given; begin with a new topology"
        more = "when they are added, or handle.reserve(...) inside topology.edit(): the run can be resumed then"
        return f"{self.full} {more}"

    @property
    def full(self) -> str:
        """Where there is no room for another bead, and the arguments that give more."""
        return f"all {self.handle.capacity} rows of these beads are taken. Give more room: capacity="

    def describe(self, bead: int) -> str:
        """Describe a bead of the topology within this handle, for messages; empty where there is nothing to tell."""
        return ""

    def describe_start(self, bead: int) -> str:
        """Describe more of where a bead starts, to be added to a message; empty where there is nothing to tell."""
        return ""

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return what is wrong or unlikely about these beads in a system, for `Simulation.check` and for warnings."""
        return []


def _numbers(rows: slice | np.ndarray) -> np.ndarray:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
