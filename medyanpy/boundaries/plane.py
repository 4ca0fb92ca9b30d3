"""Boundaries of the space that beads have, and the plane."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._tools.described import Described
from medyanpy._tools.images import box_lengths, checked_box, displacement
from medyanpy._tools.names import Guarded
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, vector
from medyanpy.errors import ParameterError

__all__ = ["Boundary", "Plane"]

#: Description of a wall for kernels: its kind, (3,) a place, (3,) a normal of length 1 or the way from there to the end
#: of a segment, a radius, and -1 where beads are to be inside, else 1.
Shape = tuple[int, np.ndarray, np.ndarray, float, float]
#: The kinds, as _kernels/forces/walls.pyx has them.
FLAT, ROUND = 0, 1


class Boundary(Described, Guarded, ABC):
    """A wall that does not move, and its side on which beads are to be. Immutable."""

    # Surfaces that beads are held to have some of these names, too.
    _qualifier = "boundaries."
    _remedy = "make a new boundary"

    @abstractmethod
    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return distances of places from the wall.

        Parameters
        ----------
        positions : (n, 3) float, nm
        box : (3,) of float, nm, > 0, or None, optional
            Lengths of the periodic box in which the places are, None in open directions: distances are then those of
            nearest images, as forces have them.

        Returns
        -------
        (n,) float, nm
            Negative behind it.

        Raises
        ------
        ParameterError
            Places of another shape, or that are not finite; a box outside its domain, or a plane across one of its
            periodic directions.
        """

    @abstractmethod
    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return directions from the wall into the space of the beads: gradients of the distance.

        Parameters
        ----------
        positions : (n, 3) float, nm
        box : (3,) of float, nm, > 0, or None, optional
            As of `distance`.

        Returns
        -------
        (n, 3) float
            Of length 1; 0 in the middle of a round wall, where there is no such direction.

        Raises
        ------
        ParameterError
            As `distance`.
        """

    @property
    @abstractmethod
    def _shape(self) -> Shape:
        """Description of the wall for kernels."""

    @property
    def _reach(self) -> float:
        """Largest distance of the wall from the place from which its kernel counts, nm."""
        return np.inf

    def _expect_space_behind(self, what: str, lengths: np.ndarray) -> None:
        """Refuse a box of these lengths, (3,) nm, that has no space behind the wall; ParameterError."""

    def _from_start(self, method: str, start: np.ndarray, positions: "Numbers", box: Any) -> np.ndarray:
        """Return vectors from a place of the wall to positions, (n, 3)."""
        what = f"{type(self).__name__}.{method}"
        x = array(f"{what}: positions", positions, (None, 3))
        lengths = box_lengths(checked_box(what, box))
        self._expect_space_behind(what, lengths)
        return displacement(start, x, lengths)


class Plane(Boundary):
    """A flat wall, without end and without thickness.

    Parameters
    ----------
    point : (3,) float, nm, finite
        Any point of the wall.
    normal : (3,) float, finite, not zero
        Into the fluid: to the side where beads are to be. Of any length.

    Attributes
    ----------
    point : (3,) float, nm
    normal : (3,) float
        Of length 1.

    Raises
    ------
    ParameterError
        A point or a normal of another shape or not finite; a normal without direction.

    Examples
    --------
    >>> import medyanpy as mp
    >>> wall = mp.boundaries.Plane(normal=(3.0, 0.0, 4.0))
    >>> wall.normal.tolist()
    [0.6, 0.0, 0.8]
    >>> wall.distance([[5.0, 0.0, 0.0]]).tolist()
    [3.0]
    """

    def __init__(self, point: "Numbers" = (0.0, 0.0, 0.0), normal: "Numbers" = (0.0, 0.0, 1.0)) -> None:
        self._point: np.ndarray = vector("Plane: point", point).copy()
        given = vector("Plane: normal", normal)
        largest = np.abs(given).max()
        if largest == 0.0:
            raise ParameterError(f"Plane: normal = {given.tolist()} but must not be zero")
        # Scaled, since squares of components may overflow or underflow.
        self._normal: np.ndarray = given / largest
        self._normal /= np.linalg.norm(self._normal)
        for own in (self._point, self._normal):
            own.flags.writeable = False

    @property
    def point(self) -> np.ndarray:
        """A point of the wall, (3,) nm."""
        return self._point

    @property
    def normal(self) -> np.ndarray:
        """Normal into the fluid, (3,), of length 1."""
        return self._normal

    def __repr__(self) -> str:
        return f"Plane(point={self._point.tolist()}, normal={self._normal.tolist()})"

    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        out: np.ndarray = self._from_start("distance", self._point, positions, box) @ self._normal
        return out

    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        shape = self._from_start("normals", self._point, positions, box).shape
        return np.broadcast_to(self._normal, shape).copy()

    def _expect_space_behind(self, what: str, lengths: np.ndarray) -> None:
        across = np.flatnonzero(lengths * self._normal)
        if len(across):
            raise ParameterError(
                f"{what}: the box is periodic along {'xyz'[across[0]]}, so that there is nothing behind a wall with "
                f"normal {self._normal.tolist()}: open that direction (None)"
            )

    @property
    def _shape(self) -> Shape:
        return FLAT, self._point, self._normal, 0.0, 1.0
