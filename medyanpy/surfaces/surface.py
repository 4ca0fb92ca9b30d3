"""Base of implicit surfaces."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy._tools.described import Described
from medyanpy._tools.extras import needed
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, whole_number
from medyanpy._tools.validation import seed as check_seed
from medyanpy.errors import ParameterError
from medyanpy.mesh import TriangleMesh
from medyanpy.surfaces.expressions import Graph

__all__ = ["PythonSurface", "Surface"]

# Halvings of an interval: to the last bit of its ends.
_HALVINGS = 52
# Segments that `sample` tries at a time, and how many such tries without a hit before it raises an error.
_TRIES, _IN_VAIN = 65536, 200
# Points at which `largest_curvature` looks first, how near to the surface; how many of them climb from there, how
# often, and in how much smaller steps each time.
_LOOKED_AT, _LANDED, _CLIMBERS, _CLIMBS, _CLOSER = 16384, 1e-12, 256, 60, 0.87
# As many as a topology may have beads; and cubes along a side, of which a thousand millions fill 30 GB.
_MOST_POINTS, _MOST_CUBES = 2**31 - 1, 1024


class Surface(Described, ABC):
    """The points where g(x, y, z) = 0; g is smooth, and its gradient is not zero there. Immutable.

    Attributes
    ----------
    length : float, nm
        Scale of tolerances: the size of the surface.
    bounding_box : (2, 3) float array, nm
        Two opposite corners of a box around the surface; infinite where it has no bounds, or where these are unknown.

    Notes
    -----
    A subclass writes g into a `Graph`. Values, gradients and second derivatives then come from compiled code.
    """

    length: float

    @abstractmethod
    def _write(self, graph: Graph) -> int:
        """Write g into a graph and return its node."""

    @property
    def bounding_box(self) -> np.ndarray:
        return np.array([[-np.inf] * 3, [np.inf] * 3])

    @cached_property
    def _graph(self) -> tuple[Graph, int]:
        graph = Graph()
        return graph, self._write(graph)

    @cached_property
    def evaluator(self) -> surface_constraints.Evaluator:
        """Evaluator of g and its gradient, for kernels."""
        graph, g = self._graph
        return graph.compile([g, *graph.gradient(g)])

    @cached_property
    def program(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Program of g, its gradient and its six second derivatives, for kernels, as `Graph.program` gives it."""
        graph, g = self._graph
        return graph.program([g, *graph.gradient(g), *graph.hessian(g)])

    def is_same(self, other: "Surface") -> bool:
        """Tell whether both have the same function, computed in the same way."""
        if self is other or isinstance(self, PythonSurface) or isinstance(other, PythonSurface):
            return self is other
        mine, theirs = self.program, other.program
        return mine[3] == theirs[3] and all(map(np.array_equal, mine[:3], theirs[:3]))

    @cached_property
    def _second(self) -> surface_constraints.Evaluator:
        graph, g = self._graph
        return graph.compile(graph.hessian(g))

    def _points(self, points: Numbers) -> np.ndarray:
        return array(f"{type(self).__name__}: points", points, (None, 3))

    def _values(self, x: np.ndarray) -> np.ndarray:
        """Return g and its gradient, (n, 4)."""
        values: np.ndarray = self.evaluator(x)
        return values

    def value(self, points: Numbers) -> np.ndarray:
        """Return g at points, (n,), in the unit of the function; zero on the surface.

        Parameters
        ----------
        points : (n, 3) float, nm

        Raises
        ------
        ParameterError
            A wrong shape, or a coordinate that is not finite.
        """
        return self._values(self._points(points))[:, 0]

    def gradient(self, points: Numbers) -> np.ndarray:
        """Return gradients of g at points, (n, 3), as `value`."""
        return self._values(self._points(points))[:, 1:]

    def hessian(self, points: Numbers) -> np.ndarray:
        """Return second derivatives of g at points, (n, 3, 3), as `value`."""
        xx, xy, xz, yy, yz, zz = self._second(self._points(points)).T
        return np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=1).reshape(-1, 3, 3)

    def principal_curvatures(self, points: Numbers) -> np.ndarray:
        """Return the larger of the two principal curvatures, by size, at points on the surface, (n,) 1/nm, as `value`.

        It is one over the smallest radius of curvature: of lines of intersection with planes through the normal.
        """
        x = self._points(points)
        gradient, hessian = self.gradient(x), self.hessian(x)
        size = np.linalg.norm(gradient, axis=1)
        normal = gradient / size[:, None]
        bent = np.einsum("nij,nj->ni", hessian, normal)
        along = np.einsum("ni,ni->n", bent, normal)
        # Of the second derivatives within the tangent plane: the sum of the two eigenvalues, and of their squares.
        total = np.trace(hessian, axis1=1, axis2=2) - along
        squares = (hessian**2).sum(axis=(1, 2)) - 2.0 * (bent**2).sum(axis=1) + along**2
        largest: np.ndarray = 0.5 * (np.abs(total) + np.sqrt(np.maximum(2.0 * squares - total**2, 0.0))) / size
        return largest

    @cached_property
    def largest_curvature(self) -> float:
        """Largest of `principal_curvatures` on the whole surface, 1/nm; ParameterError without bounds.

        Random points of its box are brought to the surface; the search continues from the most curved ones.
        """
        low, high = self._box(f"{type(self).__name__}.largest_curvature", None)
        rng = np.random.default_rng(0)

        def landed(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x, _, lost = self.evaluator.land(points, _LANDED, self.length)
            there = np.flatnonzero(~lost)
            return there, x[there]

        _, x = landed(low + rng.random((_LOOKED_AT, 3)) * (high - low))
        curvature = self.principal_curvatures(x)
        best = np.argsort(curvature)[-_CLIMBERS:]
        x, curvature = x[best], curvature[best]
        reach = (high - low).max() / np.sqrt(_LOOKED_AT)
        for _ in range(_CLIMBS):
            climbed, places = landed(x + reach * rng.normal(size=x.shape))
            there = self.principal_curvatures(places)
            higher = there > curvature[climbed]
            x[climbed[higher]], curvature[climbed[higher]] = places[higher], there[higher]
            reach *= _CLOSER
        return float(curvature.max(initial=0.0))

    def project(self, points: Numbers, tolerance: float = 1e-12) -> np.ndarray:
        """Move points onto the surface along the gradient that they start with, by Newton's method, (n, 3) nm.

        Points that were on the surface are the same to the bit.

        Parameters
        ----------
        points : (n, 3) float, nm
        tolerance : float
            Distance to the surface at which a point is on it, relative to the larger of `length` and its distance from
            the origin.

        Raises
        ------
        ParameterError
            The first point for which there is no root near by, or where the gradient vanishes.
        """
        what = f"{type(self).__name__}.project"
        x = self._points(points)
        tolerance = number(f"{what}: tolerance", tolerance, above=0.0)
        landed: np.ndarray
        landed, off, lost = self.evaluator.land(x, tolerance, self.length)
        if lost.any():
            i = int(np.argmax(lost))
            reason = f"Newton's method has not converged (distance left: {off[i]:.1e} nm)"
            if not self.gradient(x[i : i + 1]).any():
                reason = "the gradient vanishes there"
            raise ParameterError(f"{what}: point {i} at {x[i].tolist()} cannot be brought onto the surface: {reason}")
        return landed

    def _box(self, what: str, box: Numbers | None) -> np.ndarray:
        """Return a box with finite sides: the one given, or the one around the surface."""
        if box is None:
            box = self.bounding_box
            if not np.isfinite(box).all():
                raise ParameterError(
                    f"{what}: the surface has no known bounds: give box=[[x, y, z], [x, y, z]], two opposite corners"
                )
        corners = array(f"{what}: box", box, (2, 3))
        if not (corners[0] < corners[1]).all():
            raise ParameterError(f"{what}: box = {corners.tolist()}, but the second corner must be above the first")
        return corners

    def sample(self, n: int, seed: int, *, box: Numbers | None = None, resolution: int = 64) -> np.ndarray:
        """Draw independent random points on the surface, (n, 3) nm, with the same probability for equal areas.

        Parameters
        ----------
        n : int, >= 1 and < 2^31
        seed : int
        box : (2, 3) float, nm, optional
            Only the part of the surface in this box; by default `bounding_box`.
        resolution : int, >= 1 and <= 2^20
            The surface is looked for along segments that are this fraction of the longest side of the box, and is
            taken to cross none of them more than twice.

        Raises
        ------
        ParameterError
            No bounds (give a box), or a box without surface in it.

        Notes
        -----
        Points are on the surface to 1e-12. Segments with random places along the three axes hit a piece of surface with
        normal n and area dA. The probability is proportional to dA times the sum of the sizes of n's components
        (Crofton's formula). Hits are kept with one over that sum.
        """
        what = f"{type(self).__name__}.sample"
        n = whole_number(f"{what}: n", n, at_least=1, at_most=_MOST_POINTS)
        low, high = self._box(what, box)
        length = (high - low).max() / whole_number(f"{what}: resolution", resolution, at_least=1, at_most=2**20)
        rng = np.random.default_rng(check_seed(f"{what}: seed", seed))
        found, count, in_vain = [], 0, 0
        while count < n:
            start = low - length + rng.random((_TRIES, 3)) * (high - low + length)
            axis = rng.integers(3, size=_TRIES)
            second = rng.random(_TRIES) < 0.5
            keep = rng.random(_TRIES)
            x = self._hits(start, axis, length, second, keep, low, high)
            in_vain = 0 if len(x) else in_vain + 1
            if in_vain == _IN_VAIN:
                raise ParameterError(f"{what}: found no surface between {low.tolist()} and {high.tolist()}")
            found.append(x)
            count += len(x)
        return self.project(np.concatenate(found)[:n])

    def _hits(
        self, start: np.ndarray, axis: np.ndarray, length: float, second: np.ndarray, keep: np.ndarray, low: np.ndarray,
        high: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """Return places where segments meet the surface: of two the one asked for, of one only if the first is."""

        def at(s: float | np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            x = start[which].copy()
            x[np.arange(len(which)), axis[which]] += s
            g = self._values(x)
            return x, g[:, 0], g[np.arange(len(which)), 1 + axis[which]]

        def halve(below: np.ndarray, above: np.ndarray, which: np.ndarray, left: Callable[..., Any]) -> np.ndarray:
            """Find by bisection where left(g, slope) stops being true."""
            for _ in range(_HALVINGS):
                middle = 0.5 * (below + above)
                is_left = left(*at(middle, which)[1:])
                below, above = np.where(is_left, middle, below), np.where(is_left, above, middle)
            return below

        everything = np.arange(len(start))
        _, g0, slope0 = at(0.0, everything)
        _, g1, slope1 = at(length, everything)
        once = np.flatnonzero(((g0 < 0.0) != (g1 < 0.0)) & ~second)
        # |g| falls and rises again: there may be two roots.
        sign = np.where(g0 < 0.0, -1.0, 1.0)
        twice = np.flatnonzero(((g0 < 0.0) == (g1 < 0.0)) & (sign * slope0 < 0.0) & (sign * slope1 > 0.0))
        turn = halve(np.zeros(len(twice)), np.full(len(twice), length), twice, lambda g, s: sign[twice] * s < 0.0)
        crossed = sign[twice] * at(turn, twice)[1] < 0.0
        twice, turn = twice[crossed], turn[crossed]
        which = np.concatenate([once, twice])
        later = second[which]
        below = np.concatenate([np.zeros(len(once)), np.where(second[twice], turn, 0.0)])
        above = np.concatenate([np.full(len(once), length), np.where(second[twice], length, turn)])
        # The sign that g has at the start of each interval.
        first = np.where(later, -sign[which], sign[which])
        s = halve(below, above, which, lambda g, _: first * g > 0.0)
        x = at(s, which)[0]
        normal = np.abs(self._values(x)[:, 1:])
        inside = ((x >= low) & (x <= high)).all(axis=1)
        hits: np.ndarray = x[inside & (keep[which] * normal.sum(axis=1) < np.linalg.norm(normal, axis=1))]
        return hits

    def mesh(self, resolution: int = 64, *, box: Numbers | None = None) -> TriangleMesh:
        """Mesh the surface by marching cubes, with vertices on the surface and normals along the gradient.

        Parameters
        ----------
        resolution : int, >= 2 and <= 1024
            Cubes along the longest side of the box.
        box : (2, 3) float, nm, optional
            Cut the surface at this box; by default it is meshed whole, in `bounding_box`.

        Raises
        ------
        ImportError
            scikit-image is not installed.
        ParameterError
            No bounds (give a box), a box without surface in it, or a vertex that cannot be brought onto the surface:
            raise the resolution.
        MeshError
            Triangles that do not make a surface: the resolution is too low for its thinnest part.
        """
        what = f"{type(self).__name__}.mesh"
        n = whole_number(f"{what}: resolution", resolution, at_least=2, at_most=_MOST_CUBES)
        low, high = self._box(what, box)
        with needed(what, "scikit-image", "surfaces"):
            from skimage.measure import marching_cubes
        h = (high - low).max() / n
        if box is None:
            # Room around it.
            low, high = low - 1.5 * h, high + 1.5 * h
        axes = [np.linspace(a, b, max(2, round((b - a) / h) + 1)) for a, b in zip(low, high, strict=True)]
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = self._values(np.ascontiguousarray(x.reshape(-1, 3)))
        # Corners of cubes that are on the surface would give triangles without area. Vertices are moved in any case.
        least = 1e-3 * h * np.linalg.norm(values[:, 1:], axis=1)
        g = np.where(np.abs(values[:, 0]) < least, np.copysign(least, values[:, 0]), values[:, 0])
        if not g.min() < 0.0 < g.max():
            raise ParameterError(f"{what}: found no surface between {low.tolist()} and {high.tolist()}")
        cubes: Callable[..., Any] = marching_cubes
        corners, faces = cubes(g.reshape(x.shape[:3]), 0.0)[:2]
        steps = np.array([a[1] - a[0] for a in axes])
        vertices = self.project(low + corners * steps)
        a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
        outward = np.einsum("ij,ij->", np.cross(b - a, c - a), self.gradient((a + b + c) / 3.0))
        return TriangleMesh(vertices, faces if outward > 0.0 else faces[:, ::-1])


class PythonSurface(Surface):
    """A surface given by Python functions: for anything that is not a polynomial, at the price of Python's speed.

    Parameters
    ----------
    g : callable ((n, 3) array) -> (n,) array
    gradient : callable ((n, 3) array) -> (n, 3) array
    length : float, nm, > 0
        Scale of tolerances.
    bounding_box : (2, 3) float, nm, optional
    hessian : callable ((n, 3) array) -> (n, 3, 3) array, optional

    Raises
    ------
    ParameterError
        An argument that is not a function; later, results of a wrong shape or that are not finite, by `value` and
        `gradient`.
    """

    def __init__(
        self, g: Callable[[np.ndarray], Any], gradient: Callable[[np.ndarray], Any], length: float = 1.0,
        bounding_box: Numbers | None = None, hessian: Callable[[np.ndarray], Any] | None = None,
    ) -> None:  # fmt: skip
        for name, function in {"g": g, "gradient": gradient, "hessian": hessian}.items():
            if not callable(function) and (name != "hessian" or function is not None):
                raise ParameterError(f"PythonSurface: {name} = {function!r} but must be a function of (n, 3) points")
        self._g, self._gradient, self._hessian = g, gradient, hessian
        self.length: float = number("PythonSurface: length", length, above=0.0)
        self._bounds = None if bounding_box is None else self._box("PythonSurface", bounding_box)

    @property
    def bounding_box(self) -> np.ndarray:
        return super().bounding_box if self._bounds is None else self._bounds

    def _write(self, graph: Graph) -> int:
        raise ParameterError("PythonSurface: its function is not known")

    def _ask(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g = array("PythonSurface: g(points)", self._g(x), (len(x),))
        return g, array("PythonSurface: gradient(points)", self._gradient(x), (len(x), 3))

    @cached_property
    def evaluator(self) -> surface_constraints.Evaluator:
        registers = np.arange(3, 7, dtype=np.int32)
        return surface_constraints.Evaluator(np.empty((0, 4), np.int32), np.empty(0), registers, 7, self._ask)

    def _values(self, x: np.ndarray) -> np.ndarray:
        return np.column_stack(self._ask(x))

    def hessian(self, points: Numbers) -> np.ndarray:
        """Return second derivatives, (n, 3, 3), by the function given for them; ParameterError without one."""
        if self._hessian is None:
            raise ParameterError("PythonSurface.hessian: give the function hessian= when the surface is made")
        x = self._points(points)
        return array("PythonSurface: hessian(points)", self._hessian(x), (len(x), 3, 3))
