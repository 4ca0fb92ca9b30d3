"""Round boundaries: the sphere and the capsule, from inside or outside."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import number, vector
from medyanpy.boundaries.plane import ROUND, Boundary, Shape
from medyanpy.errors import ParameterError

__all__ = ["Capsule", "Sphere"]


class _Round(Boundary):
    """Points at one distance from a segment, which may be a point."""

    def __init__(self, radius: float, inside: bool) -> None:
        name = type(self).__name__
        self._radius = float(number(f"{name}: radius", radius, above=0.0))
        self._inside = bool(inside)

    @property
    @abstractmethod
    def _segment(self) -> tuple[np.ndarray, np.ndarray]:
        """Start of the segment, and the vector to its other end."""

    @property
    def _reach(self) -> float:
        return float(np.linalg.norm(self._segment[1])) + self._radius

    @property
    def radius(self) -> float:
        """Radius, nm."""
        return self._radius

    @property
    def inside(self) -> bool:
        """True if beads are to be inside."""
        return self._inside

    def _from_segment(self, method: str, positions: "Numbers", box: Any) -> np.ndarray:
        """Return vectors from the nearest place of the segment, (n, 3)."""
        start, way = self._segment
        d = self._from_start(method, start, positions, box)
        square = way @ way
        if square > 0.0:
            d = d - np.clip(d @ way / square, 0.0, 1.0)[:, None] * way
        return d

    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        beyond = np.linalg.norm(self._from_segment("distance", positions, box), axis=1) - self._radius
        out: np.ndarray = -beyond if self._inside else beyond
        return out

    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        d = self._from_segment("normals", positions, box)
        r = np.linalg.norm(d, axis=1)[:, None]
        out: np.ndarray = np.divide(-d if self._inside else d, r, out=np.zeros_like(d), where=r > 0.0)
        return out

    @property
    def _shape(self) -> Shape:
        return ROUND, *self._segment, self._radius, -1.0 if self._inside else 1.0


class Sphere(_Round):
    """A sphere that holds beads within it, or keeps them out.

    Parameters
    ----------
    center : (3,) float, nm, finite
    radius : float, nm, > 0
    inside : bool
        Whether things are to be inside; else outside.

    Raises
    ------
    ParameterError
        A centre of another shape or not finite, a radius that is not positive, an `inside` that is neither.

    Examples
    --------
    >>> import medyanpy as mp
    >>> cell = mp.boundaries.Sphere((0.0, 0.0, 0.0), radius=5.0)
    >>> cell.distance([[3.0, 0.0, 0.0], [0.0, 0.0, 7.0]]).tolist()
    [2.0, -2.0]
    >>> (cell.normals([[3.0, 0.0, 0.0]]) == [-1.0, 0.0, 0.0]).all()
    np.True_
    """

    def __init__(self, center: "Numbers" = (0.0, 0.0, 0.0), radius: float = 1.0, inside: bool = True) -> None:
        super().__init__(radius, inside)
        self._center: np.ndarray = vector("Sphere: center", center).copy()
        self._center.flags.writeable = False

    @property
    def center(self) -> np.ndarray:
        """Centre, (3,) nm."""
        return self._center

    @property
    def _segment(self) -> tuple[np.ndarray, np.ndarray]:
        return self._center, np.zeros(3)

    def __repr__(self) -> str:
        return f"Sphere(center={self._center.tolist()}, radius={self._radius!r}, inside={self._inside})"


class Capsule(_Round):
    """A cylinder with a hemisphere on either end, such as a bacterium, that holds beads within it or keeps them out.

    Parameters
    ----------
    a, b : (3,) float, nm, finite
        The centres of the hemispheres; not the same.
    radius : float, nm, > 0
    inside : bool
        Whether things are to be inside; else outside.

    Raises
    ------
    ParameterError
        Centres of another shape, not finite or the same, a radius that is not positive, an `inside` that is neither.

    Examples
    --------
    >>> import medyanpy as mp
    >>> rod = mp.boundaries.Capsule((0.0, 0.0, -10.0), (0.0, 0.0, 10.0), radius=4.0, inside=False)
    >>> rod.distance([[6.0, 0.0, 3.0], [0.0, 3.0, 14.0]]).tolist()
    [2.0, 1.0]
    """

    def __init__(self, a: "Numbers", b: "Numbers", radius: float, inside: bool = True) -> None:
        super().__init__(radius, inside)
        self._a: np.ndarray = vector("Capsule: a", a).copy()
        self._b: np.ndarray = vector("Capsule: b", b).copy()
        way = self._b - self._a
        if not 0.0 < way @ way < np.inf:
            raise ParameterError(
                f"Capsule: a = {self._a.tolist()} and b = {self._b.tolist()} but they must be different places at a "
                "finite distance; around one there is boundaries.Sphere"
            )
        for own in (self._a, self._b):
            own.flags.writeable = False

    @property
    def a(self) -> np.ndarray:
        """Centre of the first hemisphere, (3,) nm."""
        return self._a

    @property
    def b(self) -> np.ndarray:
        """Centre of the second hemisphere, (3,) nm."""
        return self._b

    @property
    def _segment(self) -> tuple[np.ndarray, np.ndarray]:
        return self._a, self._b - self._a

    def __repr__(self) -> str:
        return f"Capsule(a={self._a.tolist()}, b={self._b.tolist()}, radius={self._radius!r}, inside={self._inside})"
