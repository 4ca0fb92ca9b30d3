"""Handles: what every kind of beads of a topology has in common."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.names import Guarded
from medyanpy.columns import BEADS, POSITIONS, VELOCITIES, Column

if TYPE_CHECKING:
    from medyanpy.flows import Flow
    from medyanpy.layout import Layout
    from medyanpy.topology import Topology

__all__ = ["MAX_BEADS", "Handle", "bead_numbers", "handles_in"]

#: Beads are numbered by 32-bit integers, in arrays and in the counter of the random numbers.
MAX_BEADS = 2**31 - 1


class Handle(Guarded):
    """Some beads of a topology, added together.

    Attributes
    ----------
    topology : Topology
    name : str
        Unique within the topology; reports and errors use it.
    kind : str
        Beads of one kind share a row in reports: ``"beads"``, ``"balls"``, ``"vertices"`` or ``"points"``.
    beads : (n,) int array
        Indices of its beads, in topology order.
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
    #: Whether its positions are places in space; else they are directions.
    in_space = True
    #: The arrays that beads of this kind have.
    columns: tuple[Column, ...] = (POSITIONS, VELOCITIES)
    #: What a kind defined elsewhere was given besides positions, mass and friction.
    _own: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, topology: "Topology", name: str, first: int, mass: np.ndarray, friction: np.ndarray) -> None:
        self.topology = topology
        self.name = name
        self._first = first
        self.mass = mass
        self.friction = friction
        self.fixed = False
        self._first_row = 0

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def first_bead(self) -> int:
        return self._first

    @property
    def beads(self) -> np.ndarray:
        return np.arange(self._first, self._first + len(self))

    @property
    def fixed_beads(self) -> np.ndarray:
        return np.broadcast_to(self.fixed, (len(self),))

    # Columns of its own --------------------------------------------------------------------------------------

    @classmethod
    def rows_of(cls) -> str:
        """The `of` of the columns that not all beads have; empty without any."""
        return next((column.of for column in cls.columns if column.of != BEADS), "")

    @property
    def rows(self) -> slice:
        """Its rows in the columns that not all beads have: ``state.orientations[handle.rows]``."""
        return slice(self._first_row, self._first_row + len(self))

    def start_of(self, column: Column) -> np.ndarray:
        """Where the beads start in a column, as memory holds it: by default what the attribute of this name holds;
        momenta start at 0."""
        return np.zeros(column.shape) if column.is_momentum else getattr(self, column.name)

    def moves(self, column: Column) -> np.ndarray:
        """(n, ...) of momenta, which may be other than 0."""
        return ~self.fixed_beads.reshape(-1, *(1 for _ in column.shape))

    def shown(self, column: Column, rows: np.ndarray) -> np.ndarray:
        """Rows of a column, in topology order, as users see them, where the column says that these are others."""
        return rows

    def taken(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        """Rows that users give for columns of one role, as memory holds them; of right shapes and finite, the rest is
        checked here. TopologyError naming the first bad row."""
        return given

    def beside_frames(self) -> dict[str, Any]:
        """What a trajectory holds of these beads beside frames, by name: bool, int, str, Surface, an array, or an array
        and its unit. Pictures draw what is called faces (F, 3), links (l, 2), radius (n,) and semi_axes (n, 3)."""
        return {"fixed": self.fixed, "in_space": self.in_space}

    @property
    def joined(self) -> np.ndarray:
        """(e, 2) pairs of its beads, counted from its first, that are neighbours in a mesh or chain."""
        return np.empty((0, 2), np.int64)

    @property
    def moves_with(self) -> "Handle":
        """The handle whose temperature and document these beads are part of: itself, or, where constraints join these
        beads to those of another handle, that one."""
        return self

    @property
    def step_lengths(self) -> float | np.ndarray:
        """() or (n,) nm; how far a bead moves while its coordinates change by 1: 1 where these are lengths."""
        return 1.0

    def multipliers(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray | None:
        """Lagrange multipliers of the constraints on these beads, from the rows of (n, 3) arrays in their order; None
        where there are none or none are offered. SimulationError where they are not determined."""
        return None

    def describe(self, bead: int) -> str:
        """What a bead of the topology is within this handle, for messages; empty where there is nothing to say."""
        return ""

    @property
    def has_friction(self) -> bool:
        """Whether the letter O does anything to any of these beads."""
        return bool(self.friction.any())

    def bind(self, layout: "Layout") -> "Flow | None":
        """What the letters do to these beads beyond what they do to all, in one Context; None for nothing."""
        return None

    @classmethod
    def adder(cls, topology: "Topology") -> Callable[..., "Handle"]:
        """The method of a topology that makes handles of this class, for documents and copies."""
        return getattr(topology, cls.added_by) if "added_by" in vars(cls) else partial(topology.add, cls)

    def _arguments_now(self) -> dict[str, Any]:
        """What `adder` is given to make these beads anew, to the bit."""
        inertia = {"mass": scalar_if_one(self.mass), "friction": scalar_if_one(self.friction)}
        return {**inertia, **self._own, "name": self.name}

    def __reduce__(self):
        # By its number, so that handles and their topology stay together in pickles and copies.
        return _handle, (self.topology, self.topology.handles.index(self))

    @property
    def degrees_of_freedom(self) -> int:
        """Independent velocities of its beads; none where they are fixed."""
        return 0 if self.fixed else self.degrees_of_freedom_per_bead * len(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self)} {self.kind})"


def handles_in(beads: Any) -> tuple[Handle, ...]:
    """The handles among what names beads: a handle, several, or bead numbers."""
    if isinstance(beads, Handle):
        return (beads,)
    if isinstance(beads, list | tuple) and beads and all(isinstance(h, Handle) for h in beads):
        return tuple(beads)
    return ()


def bead_numbers(beads: Any) -> Any:
    """Those of the beads of handles, in the order in which these are given; bead numbers as they are."""
    handles = handles_in(beads)
    return np.concatenate([handle.beads for handle in handles]) if handles else beads


def _handle(topology: "Topology", number: int) -> Handle:
    return topology.handles[number]
