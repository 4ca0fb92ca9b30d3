"""Standard implicit surfaces that are not walls."""

import math

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import number, vector
from medyanpy.errors import ParameterError
from medyanpy.surfaces.expressions import Graph
from medyanpy.surfaces.surface import Surface

__all__ = ["Cylinder", "Ellipsoid", "Gyroid", "Torus", "along", "frame_along", "from_point", "squares"]


def from_point(graph: Graph, center: np.ndarray) -> list[int]:
    """Return coordinates relative to a point."""
    return [graph.subtract(x, graph.number(c)) for x, c in zip(graph.coordinates, center, strict=True)]


def along(graph: Graph, direction: np.ndarray, at: list[int]) -> int:
    return graph.add(*(graph.multiply(graph.number(d), x) for d, x in zip(direction, at, strict=True)))


def squares(graph: Graph, *nodes: int) -> int:
    return graph.add(*(graph.power(node, 2) for node in nodes))


def frame_along(what: str, axis: Numbers) -> np.ndarray:
    """Return orthonormal rows (3, 3), the last along an axis; along z they are the coordinate axes."""
    a = vector(what, axis)
    size = np.linalg.norm(a)
    if size == 0.0:
        raise ParameterError(f"{what} = {a.tolist()} but must not be zero")
    a = a / size
    first = np.eye(3)[0 if abs(a[0]) <= min(abs(a[1]), abs(a[2])) or abs(a[2]) == 1.0 else np.argmin(np.abs(a))]
    first = first - (first @ a) * a
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(a, first), a]) + 0.0


class Ellipsoid(Surface):
    """Ellipsoid: the sum of ((x - center)_i / semi_axes_i)² is 1.

    Parameters
    ----------
    semi_axes : (3,) float, nm, > 0
        Along x, y and z.
    center : (3,) float, nm
    """

    def __init__(self, semi_axes: Numbers, center: Numbers = (0.0, 0.0, 0.0)) -> None:
        self.semi_axes: np.ndarray = vector("Ellipsoid: semi_axes", semi_axes)
        for i, a in enumerate(self.semi_axes):
            number(f"Ellipsoid: semi_axes[{i}]", a, above=0.0)
        self.center: np.ndarray = vector("Ellipsoid: center", center)
        self.length: float = float(self.semi_axes.max())

    def _write(self, graph: Graph) -> int:
        at = from_point(graph, self.center)
        scaled = (graph.multiply(graph.number(1.0 / a), x) for a, x in zip(self.semi_axes, at, strict=True))
        return graph.subtract(squares(graph, *scaled), graph.number(1.0))

    @property
    def bounding_box(self) -> np.ndarray:
        return np.stack([self.center - self.semi_axes, self.center + self.semi_axes])


class Cylinder(Surface):
    """Points at the distance radius from an axis.

    Parameters
    ----------
    radius : float, nm, > 0
    point : (3,) float, nm
        On the axis.
    axis : (3,) float, not zero
        Its direction.
    """

    def __init__(self, radius: float, point: Numbers = (0.0, 0.0, 0.0), axis: Numbers = (0.0, 0.0, 1.0)) -> None:
        self.radius: float = number("Cylinder: radius", radius, above=0.0)
        self.length: float = self.radius
        self.point: np.ndarray = vector("Cylinder: point", point)
        self._frame = frame_along("Cylinder: axis", axis)
        self.axis: np.ndarray = self._frame[2]

    def _write(self, graph: Graph) -> int:
        at = from_point(graph, self.point)
        across = (along(graph, e, at) for e in self._frame[:2])
        return graph.subtract(squares(graph, *across), graph.number(self.radius**2))

    @property
    def bounding_box(self) -> np.ndarray:
        reach = np.where(np.abs(self.axis) > 0.0, np.inf, self.radius)
        return np.stack([self.point - reach, self.point + reach])


class Torus(Surface):
    """Torus: (s - radius)² + z² = tube_radius², with the distance s from the axis.

    Parameters
    ----------
    radius : float, nm
        Of the circle.
    tube_radius : float, nm, > 0 and < radius
        Otherwise the surface would cross itself.
    center : (3,) float, nm
    axis : (3,) float, not zero
        Perpendicular to the circle.
    """

    def __init__(
        self, radius: float, tube_radius: float, center: Numbers = (0.0, 0.0, 0.0), axis: Numbers = (0.0, 0.0, 1.0)
    ) -> None:
        self.radius: float = number("Torus: radius", radius, above=0.0)
        self.tube_radius: float = number("Torus: tube_radius", tube_radius, above=0.0)
        if self.tube_radius >= self.radius:
            raise ParameterError(
                f"Torus: tube_radius = {self.tube_radius} but must be < radius = {self.radius}: the surface would "
                "cross itself"
            )
        self.center: np.ndarray = vector("Torus: center", center)
        self._frame = frame_along("Torus: axis", axis)
        self.axis: np.ndarray = self._frame[2]
        self.length: float = self.radius + self.tube_radius

    def _write(self, graph: Graph) -> int:
        x, y, z = (along(graph, e, from_point(graph, self.center)) for e in self._frame)
        outward = graph.subtract(graph.sqrt(squares(graph, x, y)), graph.number(self.radius))
        return graph.subtract(squares(graph, outward, z), graph.number(self.tube_radius**2))

    @property
    def bounding_box(self) -> np.ndarray:
        reach = self.radius * np.sqrt(np.clip(1.0 - self.axis**2, 0.0, 1.0)) + self.tube_radius
        return np.stack([self.center - reach, self.center + reach])


class Gyroid(Surface):
    """Gyroid sin X cos Y + sin Y cos Z + sin Z cos X = level, with X = 2π x/period and so on.

    A. H. Schoen, NASA TN D-5541 (1970); this level surface is close to his minimal surface.

    Parameters
    ----------
    period : float, nm, > 0
    level : float, between -√2 and √2
        At ±√2 the surface falls apart.
    """

    def __init__(self, period: float, level: float = 0.0) -> None:
        self.period: float = number("Gyroid: period", period, above=0.0)
        self.level: float = number("Gyroid: level", level)
        if abs(self.level) >= math.sqrt(2.0):
            raise ParameterError(
                f"Gyroid: level = {self.level} but must be between -√2 and √2: beyond, the surface falls apart"
            )
        self.length: float = self.period / (2.0 * math.pi)

    def _write(self, graph: Graph) -> int:
        at = [graph.multiply(graph.number(1.0 / self.length), x) for x in graph.coordinates]
        products = (graph.multiply(graph.sin(a), graph.cos(b)) for a, b in zip(at, at[1:] + at[:1], strict=True))
        return graph.subtract(graph.add(*products), graph.number(self.level))
