"""Surfaces of polynomials, and those made of plane curves."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, whole_number
from medyanpy.errors import ParameterError, shortened
from medyanpy.surfaces.expressions import Graph, parse
from medyanpy.surfaces.surface import Surface
from medyanpy.surfaces.texts import as_text, is_sympy

__all__ = ["Inflated", "Lemniscate", "Polynomial"]


class _Written(Surface):
    """Surface given as text, with size and bounds unknown unless they are given."""

    def __init__(
        self, expression: Any, bounding_box: Numbers | None, length: float | None, constants: Mapping[str, Any]
    ) -> None:
        what = type(self).__name__
        taken = sorted(set(constants) & set("xyz"))
        if taken:
            raise ParameterError(f"{what}: {taken[0]} is a coordinate and cannot be a constant")
        #: The given function, as text.
        self.text: str = _as_text(what, expression)
        self.constants: dict[str, float] = {name: number(f"{what}: {name}", value) for name, value in constants.items()}
        self._bounds = None if bounding_box is None else self._box(what, bounding_box)
        self.length: float
        if length is not None:
            self.length = number(f"{what}: length", length, above=0.0)
        else:
            self.length = 1.0 if self._bounds is None else 0.5 * float(np.linalg.norm(np.ptp(self._bounds, axis=0)))
        _ = self._graph  # Errors in the text show now.

    def _parsed(self, graph: Graph) -> int:
        names = {name: graph.number(value) for name, value in self.constants.items()}
        return parse(type(self).__name__, self.text, graph, names)

    @property
    def bounding_box(self) -> np.ndarray:
        return super().bounding_box if self._bounds is None else self._bounds


class Polynomial(_Written):
    """Surface on which a polynomial in x, y, z is zero.

    Parameters
    ----------
    expression : str, (I, J, K) array, dict, or SymPy expression
        Text such as ``"x**2 + y**2 + z**4 - R**2"``: it has x, y, z, numbers and named constants. It knows
        ``+ - *``, whole powers ``**``, division by numbers and parentheses. It is evaluated as it is written:
        ``(x**2 + y**2)**2`` costs less than its expansion. Coefficients are those of ``x**i y**j z**k``, in an array by
        [i, j, k] or in a dict by (i, j, k).
    bounding_box : (2, 3) float, nm, optional
        Around the surface, for `sample` and `mesh`.
    length : float, nm, > 0, optional
        Scale of tolerances; by default half the diagonal of the bounding box, or 1 without one.
    constants
        Numbers by the names they have in the text.

    Raises
    ------
    ParameterError
        Text that is not a polynomial (the message names the place), or one that is constant.
    """

    def __init__(
        self, expression: Any, *, bounding_box: Numbers | None = None, length: float | None = None, **constants: float
    ) -> None:
        super().__init__(expression, bounding_box, length, constants)

    def _write(self, graph: Graph) -> int:
        g = self._parsed(graph)
        if all(graph.value_of(d) == 0.0 for d in graph.gradient(g)):
            raise ParameterError(f"Polynomial: {shortened(self.text, 80)!r} does not depend on x, y or z")
        return g

    def _arguments_now(self) -> dict[str, Any]:
        # Coefficients and SymPy expressions are kept as text.
        return {**super()._arguments_now(), "expression": self.text}


class Inflated(_Written):
    """Plane curve f(x, y) = 0 inflated to a surface: f(x, y)² + z² = r².

    Parameters
    ----------
    plane_curve : str, (I, J, 1) array, dict, or SymPy expression
        f, a polynomial in x and y, as of `Polynomial`. Its unit is a length where r is one.
    r : float, nm, > 0
        The surface is 2r high. Holes in which the size of f stays below r are filled.
    bounding_box, length, constants
        As of `Polynomial`; the box defaults to -r and r along z, and no bounds along x and y.
    """

    def __init__(
        self, plane_curve: Any, r: float, *, bounding_box: Numbers | None = None, length: float | None = None,
        **constants: float,
    ) -> None:
        self.r: float = number("Inflated: r", r, above=0.0)
        super().__init__(plane_curve, bounding_box, length, {**constants, "r": self.r})

    def _write(self, graph: Graph) -> int:
        f = self._parsed(graph)
        if graph.value_of(graph.derivative(f, 2)) != 0.0:
            what = f"Inflated: {shortened(self.text, 80)!r}"
            raise ParameterError(f"{what} depends on z, but must be a curve in the plane of x and y")
        if graph.value_of(f) is not None:
            raise ParameterError(f"Inflated: {shortened(self.text, 80)!r} does not depend on x or y")
        return _inflate(graph, f, self.r)

    @property
    def bounding_box(self) -> np.ndarray:
        if self._bounds is not None:
            return self._bounds
        return np.array([[-np.inf, -np.inf, -self.r], [np.inf, np.inf, self.r]])

    def _arguments_now(self) -> dict[str, Any]:
        return {**super()._arguments_now(), "plane_curve": self.text}


class Lemniscate(Surface):
    """Inflated lemniscate, with as many holes as it has foci: f(x, y)² + z² = r².

    f is ``abs(wⁿ - cⁿ)² - c²ⁿ`` over a²ⁿ⁻¹ with w = x + iy, n foci at the distance c = a 2^(-1/n) from the origin, one
    of them on the x axis. For two foci f = ((x² + y²)² - a² (x² - y²))/a³, the lemniscate of Bernoulli.

    Parameters
    ----------
    foci : int, >= 2
        The genus.
    a : float, nm, > 0
        From the origin to the end of each lobe of the curve.
    r : float, nm, > 0 and < a/4
        Half the height. The bottom of each lobe is at f = -a/4: from r = a/4 on there are no holes.
    """

    def __init__(self, foci: int, a: float, r: float) -> None:
        self.foci: int = whole_number("Lemniscate: foci", foci, at_least=2, at_most=12)
        self.a: float = number("Lemniscate: a", a, above=0.0)
        self.length: float = self.a
        self.r: float = number("Lemniscate: r", r, above=0.0)
        if self.r >= 0.25 * self.a:
            raise ParameterError(
                f"Lemniscate: r = {self.r} but must be < a/4 = {0.25 * self.a}: the lobes of the curve are only a/4 "
                "deep, and a thicker surface has no holes"
            )

    def _write(self, graph: Graph) -> int:
        n = self.foci
        x, y = (graph.multiply(graph.number(1.0 / self.a), c) for c in graph.coordinates[:2])
        # Re (x + iy)^n, in powers of (iy)^2 = -y^2.
        terms = [
            graph.multiply(graph.number((-1.0) ** (k // 2) * math.comb(n, k)), graph.multiply(graph.power(x, n - k), u))
            for k in range(0, n + 1, 2)
            for u in [graph.power(y, k)]
        ]
        square = graph.add(graph.power(x, 2), graph.power(y, 2))
        f = graph.subtract(graph.power(square, n), graph.add(*terms))
        return _inflate(graph, graph.multiply(graph.number(self.a), f), self.r)

    @property
    def bounding_box(self) -> np.ndarray:
        # Where f = r on the axis of a lobe; in between the surface is nearer.
        reach = self.a * (0.5 + math.sqrt(0.25 + self.r / self.a)) ** (1.0 / self.foci)
        corner = np.array([reach, reach, self.r])
        return np.stack([-corner, corner])


def _inflate(graph: Graph, f: int, r: float) -> int:
    z = graph.coordinates[2]
    return graph.subtract(graph.add(graph.power(f, 2), graph.power(z, 2)), graph.number(r * r))


def _as_text(what: str, expression: Any) -> str:
    if isinstance(expression, str) or is_sympy(expression):
        return as_text(what, expression, polynomial=True)
    if isinstance(expression, Mapping):
        return _of_coefficients(what, dict(expression))
    c = array(f"{what}: coefficients", expression, (None, None, None))
    return _of_coefficients(what, {tuple(map(int, i)): c[tuple(i)] for i in np.argwhere(c)})


def _of_coefficients(what: str, coefficients: Mapping[Any, Any]) -> str:
    """Write coefficients as text in nested form (Horner's form), x outside, z inside."""
    checked: dict[tuple[int, ...], float] = {}
    for powers, c in coefficients.items():
        if not (isinstance(powers, tuple) and len(powers) == 3):
            raise ParameterError(f"{what}: coefficients must be given by three powers (i, j, k), not {powers!r}")
        key = tuple(whole_number(f"{what}: power in {powers}", p) for p in powers)
        checked[key] = number(f"{what}: coefficient of {powers}", c)
    return _nested(checked, "xyz") or "0"


def _nested(terms: dict[tuple[int, ...], float], names: str) -> str:
    terms = {powers: c for powers, c in terms.items() if c != 0.0}
    if not terms:
        return ""
    if not names:
        return f"({terms[()]!r})" if terms[()] < 0.0 else repr(terms[()])
    by_power: dict[int, dict[tuple[int, ...], float]] = {}
    for powers, c in terms.items():
        by_power.setdefault(powers[0], {})[powers[1:]] = float(c)
    text, last = "", 0
    for p in sorted(by_power, reverse=True):
        inner = _nested(by_power[p], names[1:])
        text = f"({text})*{names[0]}**{last - p} + {inner}" if text else inner
        last = p
    return f"({text})*{names[0]}**{last}" if last else f"({text})"
