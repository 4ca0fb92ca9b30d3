"""Functions of x, y, z as graphs: written as text or built by surfaces, differentiated, and compiled.

Implicit surfaces and fields are made of them. What is compiled runs in _kernels/implicit.pxd: a list of instructions
between registers, without any compiler at run time.
"""

import keyword
import math
import re
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy.errors import ParameterError, shortened

__all__ = ["FUNCTIONS", "Graph", "check_length", "check_names", "of_sympy", "parse"]

_CODES = {"+": 0, "-": 1, "*": 2, "/": 3, "sqrt": 4, "sin": 5, "cos": 5, "exp": 6, "log": 7}
#: What may be called in expressions that are not polynomials.
FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos")
_COORDINATES = "xyz"
# Beyond it a power is a slip: x**100 overflows where x is 1300 nm.
MAX_POWER = 100
# Thousands of terms; what is longer was made by a program, and that had better be a PythonForce or PythonSurface.
MAX_LENGTH = 200_000


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
            if math.isfinite(product) and (math.frexp(p)[0] in (0.5, -0.5) or math.frexp(inner)[0] in (0.5, -0.5)):
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
        # Derivatives that wait for others: sums of thousands of terms are as deep as they are long.
        waiting: list[Generator[int, int, int]] = [self._derive(node, i)]
        wanted = [node]
        found: int | None = None
        while waiting:
            try:
                inner = next(waiting[-1]) if found is None else waiting[-1].send(found)
            except StopIteration as done:
                waiting.pop()
                found = self._derivatives[wanted.pop(), i] = done.value
                continue
            found = self._derivatives.get((inner, i))
            if found is None:
                waiting.append(self._derive(inner, i))
                wanted.append(inner)
        return found

    def _derive(self, node: int, i: int) -> Generator[int, int, int]:
        """Yields nodes, to be sent their derivatives, and returns its own."""
        if (node, i) in self._derivatives:
            return self._derivatives[node, i]
        kind, *rest = self.nodes[node]
        if kind == "number":
            return self.number(0.0)
        if kind == "coordinate":
            return self.number(float(rest[0] == i))
        if node in self._powers:
            base, n = self._powers[node]
            outer = self.multiply(self.number(n), self.power(base, n - 1))
            return self.multiply(outer, (yield base))
        d = []
        for a in rest:
            d.append((yield a))
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
        operations = {0: np.add, 1: np.subtract, 2: np.multiply, 3: np.divide, 4: np.sqrt, 6: np.exp, 7: np.log}
        code, constants, outputs, count = self.program(results)
        registers: list[Any] = [*constants, *inputs]
        registers += [None] * (count - len(registers))
        for operation, target, a, b in code.tolist():
            if operation == _CODES["sin"]:
                registers[target], registers[b] = np.sin(registers[a]), np.cos(registers[a])
            elif operation in (_CODES["sqrt"], _CODES["exp"], _CODES["log"]):
                registers[target] = operations[operation](registers[a])
            else:
                registers[target] = operations[operation](registers[a], registers[b])
        return [np.broadcast_to(registers[k], np.shape(inputs[0])) for k in outputs]

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


def parse(
    what: str,
    text: str,
    graph: Graph,
    names: Mapping[str, int],
    polynomial: bool = True,
    coordinates: Mapping[str, int] | None = None,
) -> int:
    """The node of a polynomial in x, y, z, or of a smooth function of them, given as text; where it is of other
    `coordinates`, these are their names and nodes.

    Allowed are numbers, x, y, z, further names (of nodes), + - *, whole powers ``**`` (or ``^``), division by numbers,
    parentheses and signs; in what is not a polynomial also any division, powers below 0, and `FUNCTIONS`. Nothing is
    ever run. Time grows with the length of the text, whatever is in it.

    Raises
    ------
    ParameterError
        Anything else, with its place in the text; a text that is too long.
    """
    check_length(what, text)
    coordinates = dict(zip(_COORDINATES, graph.coordinates, strict=True)) if coordinates is None else coordinates
    return _Parser(what, text.strip().replace("^", "**"), graph, names, polynomial, coordinates).parse()


def check_names(what: str, text: str, coordinates: Sequence[str], parameters: Sequence[str]) -> None:
    """Refuse parameters whose names mean something else, or that a text does not have."""
    taken = {**dict.fromkeys(coordinates, "a coordinate"), **dict.fromkeys(FUNCTIONS, "a function")}
    named = set(re.findall(r"[A-Za-z_]\w*", text))
    for p in parameters:
        if p in taken or keyword.iskeyword(p):
            raise ParameterError(f"{what}: {p} is {taken.get(p, 'a word of Python')} and cannot be a parameter")
        if p not in named:
            raise ParameterError(f"{what}: the parameter {p} is not in {shortened(text, 80)!r}")


def of_sympy(what: str, expression: Any, polynomial: bool = True) -> str:
    """A SymPy expression as text, numbers to the last bit.

    Raises
    ------
    ParameterError
        Parts that `parse` does not read.
    """
    if expression.is_Symbol:
        return str(expression)
    if expression.is_number and expression.is_real:
        return f"({float(expression)!r})"
    parts = [of_sympy(what, a, polynomial) for a in expression.args]
    if expression.is_Add:
        return "(" + " + ".join(parts) + ")"
    if expression.is_Mul:
        return "(" + "*".join(parts) + ")"
    name = type(expression).__name__
    if expression.is_Pow:
        if not polynomial and (2 * expression.exp).is_integer and not expression.exp.is_integer:
            return f"(sqrt({parts[0]}))**{int(2 * expression.exp)}"
        return f"({parts[0]})**{parts[1]}"
    if not polynomial and name in FUNCTIONS:
        return f"{name}({parts[0]})"
    of = "a polynomial" if polynomial else "an expression of " + ", ".join(FUNCTIONS)
    raise ParameterError(f"{what}: {shortened(str(expression))} is not part of {of}")


def check_length(what: str, text: str) -> None:
    """Refuse texts that nobody has written."""
    if len(text) > MAX_LENGTH:
        raise ParameterError(f"{what}: an expression of {len(text)} characters, but at most {MAX_LENGTH} are read")


_TOKEN = re.compile(
    r"(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|[-+*/()])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
# How tightly operators bind: as in Python, where a power binds what is left of it tighter than a sign.
_TIGHTNESS = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "sign +": 3, "sign -": 3, "**": 4}


class _Parser:
    """Operators wait on a stack until what is right of them is known, so that no depth of nesting is too deep."""

    def __init__(
        self,
        what: str,
        source: str,
        graph: Graph,
        names: Mapping[str, int],
        polynomial: bool,
        coordinates: Mapping[str, int],
    ) -> None:
        self._what, self._source, self._graph, self._names, self._polynomial = what, source, graph, names, polynomial
        self._coordinates = coordinates
        #: Nodes that operators will act on, with the first and last + 1 column that each comes from.
        self._values: list[tuple[int, int, int]] = []
        #: Operators that wait, and their columns; of an opening parenthesis also the function before it.
        self._waiting: list[tuple[str, int]] = []

    def _refuse(self, start: int, end: int, problem: str) -> ParameterError:
        part, whole = shortened(self._source[start:end], 60), shortened(self._source, 80)
        return ParameterError(f"{self._what}: {part!r} at column {start + 1} of {whole!r} {problem}")

    def _no_part(self, start: int, end: int) -> ParameterError:
        there = ", ".join(self._coordinates)
        allowed = f"polynomial: numbers, {there}, + - * **, / by numbers, and parentheses"
        if not self._polynomial:
            functions = ", ".join(FUNCTIONS)
            allowed = f"expression: numbers, {there}, parameters, + - * / **, parentheses, and {functions}"
        return self._refuse(start, end, f"is not part of a{'' if self._polynomial else 'n'} {allowed}")

    def _unreadable(self, problem: str) -> ParameterError:
        return ParameterError(f"{self._what}: cannot read {shortened(self._source, 80)!r}: {problem}")

    def parse(self) -> int:
        complete = False  # whether what has been read so far could be all
        for token in _TOKEN.finditer(self._source):
            kind, word, start, end = token.lastgroup, token.group(), *token.span()
            if kind == "space":
                continue
            if not complete and kind in ("number", "name"):
                complete = self._operand(kind, word, start, end)
            elif not complete and word in ("+", "-"):
                self._waiting.append((f"sign {word}", start))
            elif not complete and word == "(":
                self._waiting.append(("(", start))
            elif complete and word == ")":
                self._close(start, end)
            elif complete and kind == "sign" and word != "(":
                # Of powers the last is taken first: x**2**3 is x**8.
                self._apply(_TIGHTNESS[word] + (word == "**"))
                self._waiting.append((word, start))
                complete = False
            else:
                raise self._no_part(start, end)
        if not complete:
            raise self._unreadable("it ends where a number or a name should follow")
        self._apply(1)
        if self._waiting:
            raise self._unreadable(f"the parenthesis at column {self._waiting[-1][1] + 1} is not closed")
        return self._values[0][0]

    def _operand(self, kind: str, word: str, start: int, end: int) -> bool:
        """Take a number or a name; False where it is that of a function, whose argument is still to come."""
        if kind == "number":
            value = float(word) if "__" not in word and word[-1] != "_" else math.nan
            if not math.isfinite(value):
                raise self._refuse(start, end, "is too large a number" if value > 0.0 else "is no number")
            self._values.append((self._graph.number(value), start, end))
            return True
        # As Python does with names in programs: letters that mean the same are the same.
        name = unicodedata.normalize("NFKC", word)
        called = self._source[end:end + 100].lstrip()[:1] == "("
        if called and name in FUNCTIONS and not self._polynomial:
            self._waiting.append((name, start))
            return False
        if called or keyword.iskeyword(name):
            raise self._no_part(start, self._end_of_call(end) if called else end)
        if name in self._coordinates:
            node = self._coordinates[name]
        elif name in self._names:
            node = self._names[name]
        else:
            known = "".join(f" and {shortened(', '.join(self._names))}" if self._names else "")
            raise self._refuse(start, end, f"is unknown: there are {', '.join(self._coordinates)}{known}")
        self._values.append((node, start, end))
        return True

    def _end_of_call(self, at: int) -> int:
        """After the parenthesis that closes the next one that is opened."""
        depth = 0
        for place in range(at, len(self._source)):
            depth += {"(": 1, ")": -1}.get(self._source[place], 0)
            if depth == 0 and self._source[place] == ")":
                return place + 1
        return len(self._source)

    def _close(self, start: int, end: int) -> None:
        self._apply(1)
        if not self._waiting:
            raise self._no_part(start, end)
        _, first = self._waiting.pop()
        node = self._values.pop()[0]
        if self._waiting and self._waiting[-1][0] in FUNCTIONS:
            name, first = self._waiting.pop()
            node = getattr(self._graph, name)(node)
        self._values.append((node, first, end))

    def _apply(self, tightness: int) -> None:
        """Do what waits and binds as tightly as this, or tighter."""
        while self._waiting and _TIGHTNESS[self._waiting[-1][0]] >= tightness:
            operator, start = self._waiting.pop()
            right = self._values.pop()
            left = (0, start, start) if operator.startswith("sign") else self._values.pop()
            node = self._result(operator, left, right)
            value = self._graph.value_of(node)
            if value is not None and not math.isfinite(value):
                raise self._refuse(left[1], right[2], f"is {value}, but must be finite")
            self._values.append((node, left[1], right[2]))

    def _result(self, operator: str, left: tuple[int, int, int], right: tuple[int, int, int]) -> int:
        graph, a, b = self._graph, left[0], right[0]
        match operator:
            case "+":
                return graph.add(a, b)
            case "-":
                return graph.subtract(a, b)
            case "*":
                return graph.multiply(a, b)
            case "sign +":
                return b
            case "sign -":
                return graph.multiply(graph.number(-1.0), b)
            case "/":
                if self._polynomial and graph.value_of(b) is None:
                    raise self._refuse(*right[1:], "divides, but in a polynomial only numbers may")
                return self._divide(a, b, right)
            case _:
                n = self._whole(right)
                power = graph.power(a, abs(n))
                return power if n >= 0 else self._divide(graph.number(1.0), power, left)

    def _divide(self, a: int, b: int, divisor: tuple[int, int, int]) -> int:
        if self._graph.value_of(b) == 0.0:
            raise self._refuse(*divisor[1:], "is zero and divides")
        return self._graph.divide(a, b)

    def _whole(self, exponent: tuple[int, int, int]) -> int:
        least = 0 if self._polynomial else -MAX_POWER
        value = self._graph.value_of(exponent[0])
        if value is None or value != int(value) or not least <= value <= MAX_POWER:
            other = "" if self._polynomial else ": for others there are sqrt, and exp(p*log(...))"
            problem = f"is a power, but powers must be whole numbers from {least} to {MAX_POWER}{other}"
            raise self._refuse(*exponent[1:], problem)
        return int(value)
