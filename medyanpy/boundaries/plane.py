"""Boundaries of the space that beads have, and the plane."""

from abc import ABC, abstractmethod

import numpy as np

from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, vector
from medyanpy.errors import ParameterError

__all__ = ["Boundary", "Plane"]

#: What a kernel is told of a wall: its kind, (3,) a place, (3,) a normal of length 1 or the way from there to the end
#: of a segment, a radius, and -1 where things are to be inside, else 1.
Shape = tuple[int, np.ndarray, np.ndarray, float, float]
#: The kinds, as _kernels/walls.pyx has them.
FLAT, ROUND = 0, 1


class Boundary(Described, Guarded, ABC):
    """A wall that does not move, and on which side of it things are to be. Immutable."""

    # Surfaces that beads are held to have some of these names, too.
    _qualifier = "boundaries."
    _remedy = "make a new boundary"

    @abstractmethod
    def distance(self, positions: "Numbers") -> np.ndarray:
        """How far places are from the wall.

        Parameters
        ----------
        positions : (n, 3) float, nm

        Returns
        -------
        (n,) float, nm
            Negative behind it.

        Raises
        ------
        ParameterError
            Places of another shape, or that are not finite.
        """

    @abstractmethod
    def normals(self, positions: "Numbers") -> np.ndarray:
        """Which way leads from the wall to where things are to be: the gradient of the distance.

        Parameters
        ----------
        positions : (n, 3) float, nm

        Returns
        -------
        (n, 3) float
            Of length 1; 0 in the middle of a round wall, from where all ways do.

        Raises
        ------
        ParameterError
            Places of another shape, or that are not finite.
        """

    @property
    @abstractmethod
    def _shape(self) -> Shape:
        """What a kernel is told."""


class Plane(Boundary):
    """A flat wall, without end and without thickness.

    Parameters
    ----------
    point : (3,) float, nm, finite
        Any point of the wall.
    normal : (3,) float, finite, not zero
        Into the fluid: to the side where things are to be. Of any length.

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
        # Of components whose squares overflow, or are nothing, the direction is as good as any.
        self._normal: np.ndarray = given / largest
        self._normal /= np.linalg.norm(self._normal)
        for own in (self._point, self._normal):
            own.flags.writeable = False

    @property
    def point(self) -> np.ndarray:
        """(3,) nm; of the wall."""
        return self._point

    @property
    def normal(self) -> np.ndarray:
        """(3,); of length 1, into the fluid."""
        return self._normal

    def __repr__(self) -> str:
        return f"Plane(point={self._point.tolist()}, normal={self._normal.tolist()})"

    def distance(self, positions: "Numbers") -> np.ndarray:
        out: np.ndarray = (array("Plane.distance: positions", positions, (None, 3)) - self._point) @ self._normal
        return out

    def normals(self, positions: "Numbers") -> np.ndarray:
        shape = array("Plane.normals: positions", positions, (None, 3)).shape
        return np.broadcast_to(self._normal, shape).copy()

    @property
    def _shape(self) -> Shape:
        return FLAT, self._point, self._normal, 0.0, 1.0
