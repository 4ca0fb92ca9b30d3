"""Functions of the coordinates of several beads, for constraints and penalties written by users."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from medyanpy.errors import ParameterError, shortened
from medyanpy.surfaces.expressions import Graph, check_length, parse
from medyanpy.surfaces.surface import Surface
from medyanpy.surfaces.texts import as_text, is_sympy

__all__ = ["Form", "Program", "as_texts", "of_surface", "of_text"]

#: Instructions, constants, where results are, and the number of registers; see `Graph.program`.
Program = tuple[np.ndarray, np.ndarray, np.ndarray, int]


class Form:
    """A function of the coordinates of k beads, and of some numbers that each term has of its own.

    Parameters
    ----------
    write : callable (Graph, nodes) -> node
        Writes it into a graph; the nodes are x1, y1, z1, ..., zk and then the numbers.
    beads, own : int
        k, and the number of these numbers.
    """

    def __init__(self, write: Callable[[Graph, Sequence[int]], int], beads: int, own: int = 0) -> None:
        self.write: Callable[[Graph, Sequence[int]], int] = write
        self.beads: int = beads
        self.own: int = own

    def _graph(self, more: int = 0) -> tuple[Graph, int, Sequence[int]]:
        """Return the graph of the function, and further inputs behind its own."""
        n = 3 * self.beads + self.own
        graph = Graph(n - 3 + more, 3 * self.beads)
        inputs = (*graph.coordinates, *graph.others)
        return graph, self.write(graph, inputs[:n]), inputs[n:]

    def _slopes(self, graph: Graph, node: int) -> list[int]:
        return [graph.derivative(node, i) for i in range(3 * self.beads)]

    @cached_property
    def _first(self) -> tuple[Graph, list[int]]:
        graph, g, _ = self._graph()
        return graph, [g, *(graph.along(g, i) for i in range(3 * self.beads))]

    @cached_property
    def program(self) -> Program:
        """Program of the function and its gradient."""
        graph, results = self._first
        return graph.program(results)

    @cached_property
    def second(self) -> Program:
        """Program of second derivatives, of the upper triangle row by row."""
        graph, (g, *_) = self._first
        n = 3 * self.beads
        return graph.program([graph.along(g, i, j) for i in range(n) for j in range(i, n)])

    @cached_property
    def bent(self) -> Program:
        """Program of H z: second derivatives times vectors z of the beads, which follow the function's inputs."""
        graph, g, z = self._graph(3 * self.beads)
        return graph.program(self._slopes(graph, self._along(graph, g, z)))

    @cached_property
    def third(self) -> Program:
        """Program of the gradient of a.H.a, with vectors a of the beads, which follow the function's inputs."""
        graph, g, a = self._graph(3 * self.beads)
        return graph.program(self._slopes(graph, self._along(graph, self._along(graph, g, a), a)))

    def _along(self, graph: Graph, node: int, vectors: Sequence[int]) -> int:
        """Return the derivative along vectors."""
        slopes = self._slopes(graph, node)
        return graph.add(*(graph.multiply(d, v) for d, v in zip(slopes, vectors, strict=True)))

    def uses(self) -> np.ndarray:
        """Mask (k,) of the beads it depends on."""
        graph, results = self._first
        depends = [graph.value_of(d) != 0.0 for d in results[1:]]
        used: np.ndarray = np.any(np.reshape(depends, (self.beads, 3)), axis=1)
        return used

    def at(self, x: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return values (m,) and gradients (m, k, 3) of m terms, from (m, k, 3) and (m, own), evaluated once."""
        graph, results = self._first
        inputs = [*x.reshape(len(x), 3 * self.beads).T, *own.T]
        g, *slopes = graph.evaluate(results, inputs)
        return np.array(g, float), np.stack(slopes, axis=1).reshape(x.shape)

    def bends(self, x: np.ndarray, own: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return v.H.v (m,), the second derivative along straight motion with velocities v (m, k, 3)."""
        graph, g, z = self._graph(3 * self.beads)
        twice = self._along(graph, self._along(graph, g, z), z)
        inputs = [*x.reshape(len(x), 3 * self.beads).T, *own.T, *v.reshape(len(v), 3 * self.beads).T]
        return np.array(graph.evaluate([twice], inputs)[0], float)


def of_surface(surface: Surface) -> Form:
    """Return the function g of an implicit surface."""
    return Form(lambda graph, _: surface._write(graph), 1)


def as_texts(what: str, given: Any) -> tuple[str, ...]:
    """Return texts, or SymPy expressions, one or several, as texts; ParameterError for anything else, or none."""
    single = isinstance(given, str) or is_sympy(given)
    if not single and not isinstance(given, list | tuple):
        raise ParameterError(f"{what}: give text, a SymPy expression or a list of such, not {type(given).__name__}")
    texts = []
    for one in [given] if single else given:
        if not isinstance(one, str) and not is_sympy(one):
            raise ParameterError(f"{what}: {one!r} is neither text nor a SymPy expression")
        texts.append(as_text(what, one))
        check_length(what, texts[-1])
    if not texts:
        raise ParameterError(f"{what}: the list of constraints is empty")
    return tuple(texts)


def of_text(
    what: str, text: str, beads: int, constants: Mapping[str, float], own: Sequence[str],
    used: Sequence[int] | None = None,
) -> Form:  # fmt: skip
    """Return a text in x1, y1, z1, ... of so many beads (of one also x, y, z) as a function of beads.

    It may have constants, and names of numbers that each term has of its own; `used` are the beads that it depends on.

    Raises
    ------
    ParameterError
        As `expressions.parse`; a text that depends on none of the coordinates.
    """
    names = [f"{c}{j + 1}" for j in range(beads) for c in "xyz"]
    short = list("xyz") if beads == 1 else []
    used = range(beads) if used is None else used
    place = {3 * j + c: 3 * i + c for i, j in enumerate(used) for c in range(3)}

    def write(graph: Graph, nodes: Sequence[int]) -> int:
        # Coordinates that it does not depend on may have any value.
        inputs = [nodes[place[i]] if i in place else graph.number(0.0) for i in range(3 * beads)]
        coordinates = dict(zip([*names, *short], [*inputs, *inputs[: len(short)]], strict=True))
        known = dict(zip(own, nodes[3 * len(used) :], strict=True))
        known |= {name: graph.number(value) for name, value in constants.items()}
        return parse(what, text, graph, known, False, coordinates)

    form = Form(write, len(used), len(own))
    if not form.uses().any():
        raise ParameterError(f"{what}: {shortened(text, 80)!r} does not depend on any coordinate of its beads")
    return form
