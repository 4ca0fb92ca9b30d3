"""Surfaces that can be walls: planes, spheres and capsules, from inside or outside."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from medyanpy._tools.images import box_lengths, checked_box, displacement
from medyanpy._tools.names import Guarded
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, vector
from medyanpy.errors import ParameterError
from medyanpy.surfaces.expressions import Graph
from medyanpy.surfaces.shapes import along, frame_along, from_point, squares
from medyanpy.surfaces.surface import Surface

__all__ = ["Boundary", "Capsule", "Plane", "Sphere"]

#: Description of a wall for kernels: its kind, (3,) a place, (3,) a normal of length 1 or the way from there to the end
#: of a segment, a radius, and -1 where beads are to be inside, else 1.
Shape = tuple[int, np.ndarray, np.ndarray, float, float]
#: The kinds, as _kernels/forces/walls.pyx has them.
FLAT, ROUND = 0, 1


class Boundary(Surface, Guarded):
    """A surface with a known distance from any place, and a side for beads if it is a wall. Immutable."""

    _remedy = "make a new boundary"

    @abstractmethod
    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return distances of places from the wall, (n,) nm, negative behind it.

        Parameters
        ----------
        positions : (n, 3) float, nm
        box : (3,) of float, nm, > 0, or None, optional
            Lengths of the periodic box in which the places are, None in open directions: distances are then those of
            nearest images, as forces have them.

        Raises
        ------
        ParameterError
            Places of another shape, or that are not finite; a box outside its domain, or a plane across one of its
            periodic directions.
        """

    @abstractmethod
    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        """Return unit vectors (n, 3) from the wall into the space of the beads, gradients of `distance`.

        They are 0 in the middle of a round wall, where there is no such direction.
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

    def _from_start(self, method: str, positions: "Numbers", box: Any) -> np.ndarray:
        """Return vectors from the first place of its shape to positions, (n, 3)."""
        what = f"{type(self).__name__}.{method}"
        x = array(f"{what}: positions", positions, (None, 3))
        lengths = box_lengths(checked_box(what, box))
        self._expect_space_behind(what, lengths)
        return displacement(self._shape[1], x, lengths)

    def _vector(self, name: str, given: "Numbers") -> np.ndarray:
        out: np.ndarray = vector(f"{type(self).__name__}: {name}", given).copy()
        out.flags.writeable = False
        return out


class Plane(Boundary):
    """Plane normal·(x - point) = 0; a wall without end and without thickness.

    Parameters
    ----------
    point : (3,) float, nm, finite
        Any point of it.
    normal : (3,) float, finite, not zero
        To the side where beads are to be if it is a wall; kept with the length 1.
    length : float, nm, > 0
        Scale of tolerances of beads that are held to it: a plane has no size.

    Raises
    ------
    ParameterError
        A point or a normal of another shape or not finite; a normal without direction.
    """

    def __init__(
        self, point: "Numbers" = (0.0, 0.0, 0.0), normal: "Numbers" = (0.0, 0.0, 1.0), length: float = 1.0
    ) -> None:
        self.point: np.ndarray = self._vector("point", point)
        self._normal: np.ndarray = self._vector("normal", normal)
        largest = np.abs(self._normal).max()
        if largest == 0.0:
            raise ParameterError(f"Plane: normal = {self._normal.tolist()} but must not be zero")
        # Scaled, since squares of components may overflow or underflow.
        self.normal: np.ndarray = self._normal / largest
        self.normal /= np.linalg.norm(self.normal)
        self.normal.flags.writeable = False
        self.length: float = number("Plane: length", length, above=0.0)

    def _write(self, graph: Graph) -> int:
        return along(graph, frame_along("Plane: normal", self._normal)[2], from_point(graph, self.point))

    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        out: np.ndarray = self._from_start("distance", positions, box) @ self.normal
        return out

    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        return np.broadcast_to(self.normal, self._from_start("normals", positions, box).shape).copy()

    def _expect_space_behind(self, what: str, lengths: np.ndarray) -> None:
        across = np.flatnonzero(lengths * self.normal)
        if len(across):
            raise ParameterError(
                f"{what}: the box is periodic along {'xyz'[across[0]]}, so that there is nothing behind a wall with "
                f"normal {self.normal.tolist()}: open that direction (None)"
            )

    @property
    def _shape(self) -> Shape:
        return FLAT, self.point, self.normal, 0.0, 1.0


class _Round(Boundary):
    """Points at one distance from a segment, which may be a point."""

    def __init__(self, radius: float, inside: bool, start: np.ndarray, way: np.ndarray) -> None:
        self.radius: float = float(number(f"{type(self).__name__}: radius", radius, above=0.0))
        self.inside: bool = bool(inside)
        self._segment = start, way
        self.length: float = self._reach

    @property
    def _reach(self) -> float:
        return float(np.linalg.norm(self._segment[1])) + self.radius

    def _from_segment(self, method: str, positions: "Numbers", box: Any) -> np.ndarray:
        """Return vectors from the nearest place of the segment, (n, 3)."""
        d, (_, way) = self._from_start(method, positions, box), self._segment
        square = way @ way
        if square > 0.0:
            d = d - np.clip(d @ way / square, 0.0, 1.0)[:, None] * way
        return d

    def distance(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        beyond = np.linalg.norm(self._from_segment("distance", positions, box), axis=1) - self.radius
        out: np.ndarray = -beyond if self.inside else beyond
        return out

    def normals(self, positions: "Numbers", box: "Sequence[float | None] | None" = None) -> np.ndarray:
        d = self._from_segment("normals", positions, box)
        r = np.linalg.norm(d, axis=1)[:, None]
        out: np.ndarray = np.divide(-d if self.inside else d, r, out=np.zeros_like(d), where=r > 0.0)
        return out

    def _write(self, graph: Graph) -> int:
        start, way = self._segment
        at, square = from_point(graph, start), way @ way
        if square > 0.0:
            part = along(graph, way / square, at)
            part = graph.min(graph.max(part, graph.number(0.0)), graph.number(1.0))
            at = [graph.subtract(x, graph.multiply(part, graph.number(w))) for x, w in zip(at, way, strict=True)]
        return graph.subtract(squares(graph, *at), graph.number(self.radius**2))

    @property
    def bounding_box(self) -> np.ndarray:
        start, way = self._segment
        low, high = np.minimum(start, start + way), np.maximum(start, start + way)
        return np.stack([low - self.radius, high + self.radius])

    @property
    def _shape(self) -> Shape:
        return ROUND, *self._segment, self.radius, -1.0 if self.inside else 1.0


class Sphere(_Round):
    """Points at the distance radius from a center; a wall that keeps beads outside it, or inside.

    Parameters
    ----------
    radius : float, nm, > 0
    center : (3,) float, nm, finite
    inside : bool
        Whether beads are to be inside if it is a wall; else outside.

    Raises
    ------
    ParameterError
        A center of another shape or not finite, a radius that is not positive, an `inside` that is neither.
    """

    def __init__(self, radius: float, center: "Numbers" = (0.0, 0.0, 0.0), *, inside: bool = False) -> None:
        self.center: np.ndarray = self._vector("center", center)
        super().__init__(radius, inside, self.center, np.zeros(3))


class Capsule(_Round):
    """A cylinder with a hemisphere on either end, such as a bacterium; a wall that keeps beads outside it, or inside.

    g = d² - radius², d the distance from the segment between the centers. Its second derivatives jump where the
    cylinder meets the hemispheres.

    Parameters
    ----------
    a, b : (3,) float, nm, finite
        The centers of the hemispheres; not the same.
    radius : float, nm, > 0
    inside : bool
        Whether beads are to be inside if it is a wall; else outside.

    Raises
    ------
    ParameterError
        Centers of another shape, not finite or the same, a radius that is not positive, an `inside` that is neither.

    Examples
    --------
    >>> import medyanpy as mp
    >>> rod = mp.surfaces.Capsule((0.0, 0.0, -10.0), (0.0, 0.0, 10.0), radius=4.0)
    >>> rod.distance([[6.0, 0.0, 3.0], [0.0, 3.0, 14.0]]).tolist()
    [2.0, 1.0]
    """

    def __init__(self, a: "Numbers", b: "Numbers", radius: float, *, inside: bool = False) -> None:
        self.a: np.ndarray = self._vector("a", a)
        self.b: np.ndarray = self._vector("b", b)
        way = self.b - self.a
        if not 0.0 < way @ way < np.inf:
            raise ParameterError(
                f"Capsule: a = {self.a.tolist()} and b = {self.b.tolist()} but they must be different places at a "
                "finite distance; around one there is Sphere"
            )
        super().__init__(radius, inside, self.a, way)
