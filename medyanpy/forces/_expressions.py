"""Forces with energies written as text."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy.errors import ParameterError, shortened
from medyanpy.forces._base import Domain, Force, domain_table
from medyanpy.surfaces.expressions import Graph, check_length, check_names, parse
from medyanpy.surfaces.texts import as_text

__all__ = ["WrittenForce"]


class WrittenForce(Force):
    """A force with a sum of an energy written as text, of some coordinates, with named numbers of its own."""

    #: Names of the coordinates.
    _coordinate_names: ClassVar[tuple[str, ...]] = ()

    def _read(self, energy: Any, per: str, name: str | None, parameters: dict[str, Any]) -> None:
        """Store the text, which `_check_text` checks as soon as there are numbers."""
        name = name or type(self).__name__
        self._text = as_text(f"{name}: energy", energy)
        check_length(name, self._text)
        #: Those that the text names.
        self.domains: Mapping[str, Domain] = domain_table(**dict.fromkeys(parameters, Domain(per=per)))
        self.changeable: tuple[str, ...] = tuple(parameters)

    def _named_numbers(self) -> dict[str, Any]:
        """Return the numbers that the text names, by their names there."""
        return self._numbers

    def _check_text(self) -> None:
        """Raise errors of the text when the force is made, whatever its numbers are at present."""
        names = tuple(self._named_numbers())
        check_names(self.name, self._text, self._coordinate_names, names)
        graph, u, at = self._graph(names)
        if all(graph.value_of(graph.derivative(u, i)) == 0.0 for i in range(len(at))):
            *first, last = at
            which = f"{', '.join(first)} or {last}" if first else last
            jumps = f"is constant but for jumps in {which}: it has no force"
            why = jumps if graph.jumps(u) else f"does not depend on {which}"
            raise ParameterError(f"{self.name}: {shortened(self._text, 80)!r} {why}")

    @property
    def energy(self) -> str:
        """The energy expression, as text."""
        return self._text

    def _arguments_now(self) -> dict[str, Any]:
        return super()._arguments_now() | {"energy": self._text}

    def __repr__(self) -> str:
        return super().__repr__().replace("(", f"({self._text!r}" + (", " if self._numbers else ""), 1)

    def _own(self) -> list[str]:
        """Names of the parameters with a value for each term."""
        return [p for p, v in self._numbers.items() if isinstance(scalar_if_one(v), np.ndarray)]

    def _graph(self, others: Sequence[str]) -> tuple[Graph, int, dict[str, int]]:
        """Return the graph of a term's energy, its node, and the coordinates; `others` are inputs too, the rest
        constants."""
        n = len(self._coordinate_names)
        graph = Graph(max(n + len(others) - 3, 0), n or len(others))
        at, names = self._inputs(graph, others)
        return graph, parse(self.name, self._text, graph, names, polynomial=False, coordinates=at), at

    def _inputs(self, graph: Graph, others: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the coordinates by their names, and other names that the text may use."""
        inputs, k = (*graph.coordinates, *graph.others), len(self._coordinate_names)
        at = dict(zip(self._coordinate_names, inputs, strict=False))
        names = dict(zip(others, inputs[k:], strict=False))
        numbers = self._named_numbers().items()
        return at, names | {p: graph.number(scalar_if_one(v)) for p, v in numbers if p not in names}
