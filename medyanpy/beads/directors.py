"""Material directions of twistable filaments."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy.beads.free import Beads, BeadsKind
from medyanpy.core.kinds import Block
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.beads.filaments import Filaments

__all__ = ["Directors"]


class DirectorsKind(BeadsKind):
    """Material directions of filaments."""

    handle: "Directors"
    name = "directors"
    block = Block.DIRECTORS
    in_space = False

    @property
    def moves_with(self) -> "Filaments":
        return self.handle.filaments

    @property
    def rows_remade(self) -> int:
        # As many as nodes, where these have room.
        return self.handle.filaments.capacity if len(self.handle.filaments._inactive) else len(self.handle)

    @property
    def step_lengths(self) -> np.ndarray:
        return self.handle.filaments.link_lengths

    def remade(self, positions: np.ndarray) -> np.ndarray:
        from medyanpy.beads.adding_filaments import perpendicular

        filaments = self.handle.filaments
        ends = filaments.positions[filaments.links]
        return perpendicular(self.handle.name, positions, ends[:, 1] - ends[:, 0], filaments.kind.describe_link)

    def describe(self, bead: int) -> str:
        return self.handle.filaments.kind.describe_link(int(np.flatnonzero(self.handle.beads == bead)[0]))


class Directors(Beads, kind=DirectorsKind):
    """The material directions of twistable filaments: one bead for each link, in the order of ``filaments.links``.

    The position of a director is a unit vector perpendicular to its link, without a place in space: it has no part in
    collisions, pair forces or sums of momentum. Its mass is a moment of inertia, pN s² nm, its friction is in pN nm s,
    and a force on it in pN nm.
    """

    _is_from_elsewhere = False

    def __init__(
        self, filaments: "Filaments", name: str, first: int, positions: np.ndarray, mass: np.ndarray,
        friction: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(filaments.topology, name, first, positions, mass, friction)
        self.filaments = filaments

    def _why_whole(self) -> str:
        return f"directors go with their filaments: {self.filaments.name}.remove"

    def add(
        self, positions: Numbers, mass: Numbers | None = None, friction: Numbers | None = None, **own: Any
    ) -> np.ndarray:
        """Refuse to add directors: they are added with filaments.

        Raises
        ------
        TopologyError
            Always.
        """
        raise TopologyError(f"{self.name}.add: directors come with their filaments: {self.filaments.name}.add")

    @property
    def degrees_of_freedom(self) -> int:
        """Degrees of freedom, 0: they are counted with those of the filaments."""
        return 0
