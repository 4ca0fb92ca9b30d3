"""Functions of x, y, z as graphs: written as text or built by surfaces, differentiated, and compiled.

Implicit surfaces and fields are made of them. What is compiled runs in _kernels/implicit.pxd: a list of instructions
between registers, without any compiler at run time.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy.errors import ParameterError

__all__ = ["FUNCTIONS", "Graph", "parse"]

_CODES = {"+": 0, "-": 1, "*": 2, "/": 3, "sqrt": 4, "sin": 5, "cos": 5, "exp": 6, "log": 7}
#: What may be called in expressions that are not polynomials.
FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos")
_COORDINATES = "xyz"
# Beyond it a power is a slip: x**100 overflows where x is 1300 nm.
MAX_POWER = 100


class Graph:
    """Expressions in x, y, z that share what they have in common. A node is known by its number.

    Parameters
    ----------
    others : int
        How many further numbers each point has, which nothing is differentiated by.

    Examples
    --------
    >>> graph = Graph()
    >>> x, y, z = graph.coordinates
    >>> g = graph.add(graph.power(x, 2), graph.number(-1.0))
    >>> evaluator = graph.compile([g, *graph.gradient(g)])
    >>> evaluator(np.array([[3.0, 0.0, 0.0]])).tolist()
    [[8.0, 6.0, 0.0, 0.0]]
    """

    def __init__(self, others: int = 0) -> None:
        #: What each node is: ("number", value), ("coordinate", i), from i = 3 on the other numbers of a point, or an
        #: operation and the nodes it acts on.
        self.nodes: list[tuple] = []
        self._known: dict[tuple, int] = {}
        #: Powers above 1, by their node: base and exponent.
        self._powers: dict[int, tuple[int, int]] = {}
        self._derivatives: dict[tuple[int, int], int] = {}
        self._inputs = tuple(self._node("coordinate", i) for i in range(3 + others))
        self.coordinates, self.others = self._inputs[:3], self._inputs[3:]

    def _node(self, *what) -> int:
        if what not in self._known:
            self._known[what] = len(self.nodes)
            self.nodes.append(what)
        return self._known[what]

    def number(self, value: float) -> int:
        return self._node("number", float(value) + 0.0)  # -0.0 is the same number as 0.0

    def value_of(self, node: int) -> float | None:
        """The number that a node is, if it is one."""
        kind, *rest = self.nodes[node]
        return rest[0] if kind == "number" else None

    def add(self, *terms: int) -> int:
        total = terms[0]
        for term in terms[1:]:
            total = self._add(total, term)
        return total

    def _add(self, a: int, b: int) -> int:
        p, q = self.value_of(a), self.value_of(b)
        if p is not None and q is not None:
            return self.number(p + q)
        if p == 0.0:
            return b
        return a if q == 0.0 else self._node("+", *sorted((a, b)))

    def subtract(self, a: int, b: int) -> int:
        p, q = self.value_of(a), self.value_of(b)
        if p is not None and q is not None:
            return self.number(p - q)
        if a == b:
            return self.number(0.0)
        return a if q == 0.0 else self._node("-", a, b)

    def multiply(self, a: int, b: int) -> int:
        p, q = self.value_of(a), self.value_of(b)
        if p is not None and q is not None:
            return self.number(p * q)
        if p == 0.0 or q == 0.0:
            return self.number(0.0)
        if p == 1.0:
            return b
        if q == 1.0:
            return a
        # Numbers gather at one place: 2 * (3 * a) is 6 * a where that is exact.
        if q is not None:
            a, b, p = b, a, q
        kind, *rest = self.nodes[b]
        if p is not None and kind == "*" and (inner := self.value_of(rest[0])) is not None:
            product = p * inner
            if math.frexp(p)[0] in (0.5, -0.5) or math.frexp(inner)[0] in (0.5, -0.5):
                return self.multiply(self.number(product), rest[1])
        return self._node("*", a, b) if p is not None else self._node("*", *sorted((a, b)))

    def divide(self, a: int, b: int) -> int:
        p, q = self.value_of(a), self.value_of(b)
        if p is not None and q is not None:
            return self.number(p / q)
        if p == 0.0:
            return self.number(0.0)
        return a if q == 1.0 else self._node("/", a, b)

    def power(self, a: int, n: int) -> int:
        """The n-th power, n >= 0, by multiplications."""
        if n == 0:
            return self.number(1.0)
        if n == 1:
            return a
        node = self.multiply(self.power(a, n - n // 2), self.power(a, n // 2))
        if self.value_of(node) is None:
            self._powers.setdefault(node, (a, n))
        return node

    def sqrt(self, a: int) -> int:
        return self._node("sqrt", a)

    def sin(self, a: int) -> int:
        return self._node("sin", a)

    def cos(self, a: int) -> int:
        return self._node("cos", a)

    def exp(self, a: int) -> int:
        return self._node("exp", a)

    def log(self, a: int) -> int:
        return self._node("log", a)

    def gradient(self, node: int) -> list[int]:
        return [self.derivative(node, i) for i in range(3)]

    def hessian(self, node: int) -> list[int]:
        """The six second derivatives xx, xy, xz, yy, yz, zz."""
        return [self.derivative(self.derivative(node, i), j) for i in range(3) for j in range(i, 3)]

    def third(self, node: int) -> list[int]:
        """The ten third derivatives xxx, xxy, xxz, xyy, xyz, xzz, yyy, yyz, yzz, zzz."""
        rows = [(i, j) for i in range(3) for j in range(i, 3)]
        return [
            self.derivative(second, k)
            for (_, j), second in zip(rows, self.hessian(node), strict=True)
            for k in range(j, 3)
        ]

    def derivative(self, node: int, i: int) -> int:
        """With respect to coordinate i."""
        if (node, i) not in self._derivatives:
            self._derivatives[node, i] = self._derive(node, i)
        return self._derivatives[node, i]

    def _derive(self, node: int, i: int) -> int:
        kind, *rest = self.nodes[node]
        if kind == "number":
            return self.number(0.0)
        if kind == "coordinate":
            return self.number(float(rest[0] == i))
        if node in self._powers:
            base, n = self._powers[node]
            outer = self.multiply(self.number(n), self.power(base, n - 1))
            return self.multiply(outer, self.derivative(base, i))
        d = [self.derivative(a, i) for a in rest]
        match kind:
            case "+":
                return self.add(*d)
            case "-":
                return self.subtract(*d)
            case "*":
                return self.add(self.multiply(d[0], rest[1]), self.multiply(rest[0], d[1]))
            case "/":
                return self.divide(self.subtract(d[0], self.multiply(node, d[1])), rest[1])
            case "sqrt":
                return self.multiply(self.divide(self.number(0.5), node), d[0])
            case "exp":
                return self.multiply(node, d[0])
            case "log":
                return self.divide(d[0], rest[0])
            case "sin":
                return self.multiply(self.cos(rest[0]), d[0])
            case _:
                return self.multiply(self.number(-1.0), self.multiply(self.sin(rest[0]), d[0]))

    def evaluate(self, results: Sequence[int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Some nodes by NumPy, at points given by the columns x, y, z and the other numbers: for what is asked once."""
        operations = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "sqrt": np.sqrt, "sin": np.sin,
            "cos": np.cos, "exp": np.exp, "log": np.log,
        }  # fmt: skip
        values: list[Any] = []
        for kind, *rest in self.nodes:
            if kind == "number":
                values.append(np.full(len(inputs[0]), rest[0]))
            elif kind == "coordinate":
                values.append(inputs[rest[0]])
            else:
                # What a node is made of has lower numbers.
                values.append(operations[kind](*(values[a] for a in rest)))
        return [values[node] for node in results]

    def compile(self, results: Sequence[int]) -> "surface_constraints.Evaluator":
        """A kernel's evaluator of some nodes."""
        return surface_constraints.Evaluator(*self.program(results))

    def program(self, results: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Instructions, constants, where results are, and the number of registers, as in _kernels/implicit.pxd."""
        needed, stack = set(), list(results)
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                kind, *rest = self.nodes[node]
                if kind not in ("number", "coordinate"):
                    stack += rest
        # Nodes are numbered such that what they are made of comes first.
        order = sorted(needed)
        constants = [node for node in order if self.nodes[node][0] == "number"]
        register = {node: i for i, node in enumerate(constants)}
        register |= {node: len(constants) + i for i, node in enumerate(self._inputs)}
        count = len(register)
        work = [node for node in order if node not in register]
        last_use = {a: node for node in work for a in self.nodes[node][1:]}
        kept = set(results) | set(constants) | set(self._inputs)
        free: list[int] = []

        def place(node: int | None) -> int:
            nonlocal count
            if not free:
                free.append(count)
                count += 1
            where = free.pop()
            if node is not None:
                register[node] = where
            return where

        code = []
        for node in work:
            if node in register:  # the cosine of a sine, or the sine of a cosine
                continue
            kind, *rest = self.nodes[node]
            a, b = register[rest[0]], register[rest[-1]]
            if kind in ("sin", "cos"):
                pair = [self._known.get((name, rest[0])) for name in ("sin", "cos")]
                target, b = (place(other if other in needed else None) for other in pair)
                code.append((_CODES[kind], target, a, b))
                continue
            # Instructions read before they write: a register may be used again at once.
            free += {register[x] for x in rest if last_use[x] == node and x not in kept}
            code.append((_CODES[kind], place(node), a, b))
        return (
            np.array(code, np.int32).reshape(-1, 4),
            np.array([self.nodes[node][1] for node in constants], np.float64),
            np.array([register[node] for node in results], np.int32),
            count,
        )


def parse(what: str, text: str, graph: Graph, names: Mapping[str, int], polynomial: bool = True) -> int:
    """The node of a polynomial in x, y, z, or of a smooth function of them, given as text.

    Allowed are numbers, x, y, z, further names (of nodes), + - *, whole powers ``**`` (or ``^``), division by numbers,
    parentheses and signs; in what is not a polynomial also any division, powers below 0, and `FUNCTIONS`. Nothing is
    ever run.

    Raises
    ------
    ParameterError
        Anything else, with its place in the text.
    """
    source = text.strip()
    if "^" in source:
        source = source.replace("^", "**")

    def refuse(at: ast.AST | None, problem: str) -> ParameterError:
        if at is None:
            return ParameterError(f"{what}: {problem} in {source!r}")
        part = ast.get_source_segment(source, at) or ""
        return ParameterError(f"{what}: {part!r} at column {at.col_offset + 1} of {source!r} {problem}")

    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as cause:
        column = getattr(cause, "offset", None)
        place = "" if column is None else f" at column {column}"
        raise ParameterError(f"{what}: cannot read {source!r}: {getattr(cause, 'msg', cause)}{place}") from None

    least = 0 if polynomial else -MAX_POWER
    allowed = "polynomial: numbers, x, y, z, + - * **, / by numbers, and parentheses"
    if not polynomial:
        allowed = "expression: numbers, x, y, z, parameters, + - * / **, parentheses, and " + ", ".join(FUNCTIONS)

    def whole(at: ast.AST) -> int:
        value = graph.value_of(node_of(at))
        if value is None or value != int(value) or not least <= value <= MAX_POWER:
            other = "" if polynomial else ": for others there are sqrt, and exp(p*log(...))"
            raise refuse(at, f"is a power, but powers must be whole numbers from {least} to {MAX_POWER}{other}")
        return int(value)

    def node_of(at: ast.AST) -> int:
        node = read(at)
        value = graph.value_of(node)
        if value is not None and not math.isfinite(value):
            raise refuse(at, f"is {value}, but must be finite")
        return node

    def read(at: ast.AST) -> int:
        match at:
            case ast.Constant(value=value) if type(value) in (int, float):
                try:
                    return graph.number(value)
                except OverflowError:
                    raise refuse(at, "is too large a number") from None
            case ast.Name(id=name):
                if name in _COORDINATES:
                    return graph.coordinates[_COORDINATES.index(name)]
                if name in names:
                    return names[name]
                known = ", ".join(names)
                raise refuse(at, "is unknown: there are x, y, z" + (f" and {known}" if known else ""))
            case ast.UnaryOp(op=ast.UAdd(), operand=a):
                return node_of(a)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return graph.multiply(graph.number(-1.0), node_of(a))
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return graph.add(node_of(a), node_of(b))
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return graph.subtract(node_of(a), node_of(b))
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return graph.multiply(node_of(a), node_of(b))
            case ast.BinOp(left=a, op=ast.Pow(), right=b):
                n = whole(b)
                power = graph.power(node_of(a), abs(n))
                return power if n >= 0 else graph.divide(graph.number(1.0), power)
            case ast.BinOp(left=a, op=ast.Div(), right=b):
                divisor = node_of(b)
                if polynomial and graph.value_of(divisor) is None:
                    raise refuse(b, "divides, but in a polynomial only numbers may")
                if graph.value_of(divisor) == 0.0:
                    raise refuse(b, "is zero and divides")
                return graph.divide(node_of(a), divisor)
            case ast.Call(func=ast.Name(id=name), args=[a], keywords=[]) if not polynomial and name in FUNCTIONS:
                return getattr(graph, name)(node_of(a))
        raise refuse(at, f"is not part of a{'' if polynomial else 'n'} {allowed}")

    try:
        return node_of(tree)
    except RecursionError:
        raise refuse(None, "there are too many levels") from None
