"""Columns: the arrays that beads of some kinds have, declared once.

A kind of bead lists its columns. The store makes the arrays; states, what sets them, checkpoints, the last good state,
trajectories, their reader and pictures go over the list, and know no kind by name.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from medyanpy._tools.validation import plain_name
from medyanpy.errors import ParameterError, shown

__all__ = ["BEADS", "CAPS", "MATERIAL", "POSITIONS", "SPECIES", "SUBUNITS", "VELOCITIES", "Column"]

#: The rows that all beads have.
BEADS = "beads"


@dataclass(frozen=True)
class Column:
    """An array with a row for each bead of some kinds.

    Parameters
    ----------
    name : str
        As a State shows it, `Context.set_column` takes it and `Trajectory.read` reads it, such as ``"orientations"``.
    of : str
        Beads with a row: those of every handle whose kind has a column of this `of`, in topology order. All have
        ``"beads"``; a kind has one other `of` at most.
    shape : tuple of int
        Of a row.
    unit : str
        As H5MD writes units, such as ``"nm s-1"``; empty for numbers without one.
    role : str
        ``"position"``, or ``"momentum"``: momenta p of masses m add Σ p²/2m to the kinetic energy, are drawn from
        Maxwell's distribution, and kicked by B with what forces add up for them.
    dtype : type
        np.float64, all of which must be finite, or an integer type.
    mass : str
        Of momenta: the attribute of a handle that holds their masses, of the same shape, > 0.
    drive : str
        Of momenta: what a State calls the forces that drive them, such as ``"torques"``.
    drawn : str
        ``"radius"`` where pictures draw a bead as large as this says, nm.
    array : str
        In memory and in checkpoints; `name` where none is given.
    entry : str
        In trajectories, under ``medyanpy/of/``; `name` where none is given.
    shown : tuple of int, optional
        The shape of a row as users see it, where the kind's methods `shown` and `taken` translate.
    in_trajectory : bool
        Momenta are written where velocities are.
    elsewhere : int
        What memory holds of beads of other kinds, in a column of all beads.
    """

    name: str
    of: str
    shape: tuple[int, ...] = ()
    unit: str = ""
    role: str = "position"
    dtype: type = np.float64
    mass: str = ""
    drive: str = ""
    drawn: str = ""
    array: str = ""
    entry: str = ""
    shown: tuple[int, ...] | None = None
    in_trajectory: bool = True
    elsewhere: int = 0

    def __post_init__(self) -> None:
        for name in ("name", "of", "role", "unit", "mass", "drive", "drawn", "array", "entry"):
            plain_name(f"Column: {name}", getattr(self, name))
        if not isinstance(self.dtype, type):
            raise ParameterError(f"Column {self.name}: dtype = {shown(self.dtype)} but must be a type of NumPy")
        if self.role not in ("position", "momentum"):
            raise ParameterError(f'Column {self.name}: role = {self.role!r} but must be "position" or "momentum"')
        own = self.is_momentum and self.of != BEADS
        if (bool(self.mass), bool(self.drive)) != (own, own):
            raise ParameterError(f"Column {self.name}: momenta, and nothing else, have mass= and drive=")
        if self.dtype is not np.float64 and (self.is_momentum or not np.issubdtype(self.dtype, np.integer)):
            kinds = "np.float64 or, of positions, an integer type"
            raise ParameterError(f"Column {self.name}: dtype = {self.dtype} but must be {kinds}")
        if self.drawn not in ("", "radius"):
            raise ParameterError(f'Column {self.name}: drawn = {self.drawn!r} but must be "radius", or nothing')
        for name in ("array", "entry"):
            if not getattr(self, name):
                object.__setattr__(self, name, self.name)

    @property
    def path(self) -> str:
        """Path of the column in trajectories."""
        # Of positions and velocities H5MD says where they are; its species are numbers of kinds.
        of_h5md = self in (POSITIONS, VELOCITIES)
        return f"particles/all/{self.entry}" if of_h5md else f"medyanpy/{self.of}/{self.entry}"

    @property
    def is_momentum(self) -> bool:
        return self.role == "momentum"

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return prod(self.shape)

    @property
    def shown_shape(self) -> tuple[int, ...]:
        return self.shape if self.shown is None else self.shown

    def empty(self, n: int) -> np.ndarray:
        """Return n rows of what beads of other kinds have."""
        return np.full((n, *self.shape), self.elsewhere, self.dtype)


POSITIONS = Column("positions", BEADS, (3,), "nm", array="x", entry="position")
VELOCITIES = Column("velocities", BEADS, (3,), "nm s-1", "momentum", array="v", entry="velocity")
# What beads of handles with species are.
SPECIES = Column("species", BEADS, dtype=np.int32, elsewhere=-1)
# How many the link has that leads on from each node of a filament that grows; 0 at the last one.
SUBUNITS = Column("subunits", BEADS, dtype=np.int32, elsewhere=-1)
# Which ends of such filaments are capped: 0 of nodes that are not, else the number of the jump that has capped it, from
# 1 on.
CAPS = Column("caps", BEADS, dtype=np.int32, elsewhere=-1)
# How many subunits the nodes of such filaments are from where these began: places of lattices are counted so.
MATERIAL = Column("material", BEADS, dtype=np.int32)
# Those of oriented beads and in-triangle points, for which a Context and its states have names of their own.
ORIENTATIONS = Column("orientations", "oriented", (4,), array="orientation", entry="orientation")
ANGULAR_MOMENTA = Column(
    "angular_momenta", "oriented", (3,), "pN nm s", "momentum", mass="inertia", drive="torques", array="spin",
    entry="angular_momentum",
)  # fmt: skip
TRIANGLES = Column("triangles", "intriangle", dtype=np.int32, array="triangle", entry="triangle", shown=())
BARYCENTRIC = Column("barycentric", "intriangle", (2,), array="barycentric", entry="barycentric", shown=(3,))
