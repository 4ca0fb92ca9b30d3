"""Functions of x, y, z given as text: read into a `Graph`, never run as code."""

import itertools
import keyword
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence

from medyanpy._tools.names import did_you_mean
from medyanpy.errors import ParameterError, shortened
from medyanpy.surfaces.graph import Graph
from medyanpy.surfaces.nodes import MAX_POWER

__all__ = ["FUNCTIONS", "Graph", "check_length", "check_names", "parse"]

#: Functions in expressions that are not polynomials, and how many arguments each takes; each is a method of `Graph`.
FUNCTIONS = {
    **dict.fromkeys(("sqrt", "exp", "log"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan"), 1),
    "atan2": 2,
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"), 1),
    **dict.fromkeys(("square", "cube", "recip", "abs", "floor", "ceil", "step"), 1),
    **{"min": 2, "max": 2, "select": 3},  # the first two take more as well
}
#: Functions of other languages, and why they are missing here.
_NOT_THERE = {
    "delta": "it is 0 but in single points, where no bead ever is, and has no force; a narrow well can be "
    "-exp(-(x/width)^2)",
    "pow": "write x^y",
    "ln": "log is the natural one",
    "log10": "write log(x)/log(10)",
    "fabs": "write abs(x)",
    "heaviside": "write step(x)",
    "where": "write select(condition, a, b), which is b where the condition is 0",
}
_CONSTANTS = {"pi": math.pi}
_COORDINATES = "xyz"
# Thousands of terms; a longer text was made by a program, which should use a PythonForce or PythonSurface.
MAX_LENGTH = 200_000


def parse(
    what: str, text: str, graph: Graph, names: Mapping[str, int], polynomial: bool = True,
    coordinates: Mapping[str, int] | None = None,
) -> int:  # fmt: skip
    """Return the node of a polynomial in x, y, z, or of a smooth function of them, given as text.

    For a text in other `coordinates`, these are their names and nodes. Allowed are numbers, x, y, z, further names (of
    nodes), pi, + - *, whole powers ``**`` (or ``^``), division by numbers, parentheses and signs; in other functions
    than polynomials also any division and power, and `FUNCTIONS`. Behind semicolons, names that it uses may be given,
    as in ``k*r^2; r = x - a``: each may use those that follow it. The text is never run as code. Time grows with its
    length.

    Raises
    ------
    ParameterError
        Any other text, with the place of the error; a text that is too long.
    """
    check_length(what, text)
    coordinates = dict(zip(_COORDINATES, graph.coordinates, strict=True)) if coordinates is None else coordinates
    graph.bound(what, text)
    parser = _Parser(what, text.strip(), graph, dict(names), polynomial, coordinates)
    ends = [m.start() for m in re.finditer(";", parser.source)] + [len(parser.source)]
    for start, end in reversed(list(itertools.pairwise(ends))):
        parser.define(start + 1, end)
    return parser.parse(0, ends[0])


def check_names(what: str, text: str, coordinates: Sequence[str], parameters: Sequence[str]) -> None:
    """Refuse parameters with names that mean something else, or that are not in a text."""
    taken = {**dict.fromkeys(coordinates, "a coordinate"), **dict.fromkeys(FUNCTIONS, "a function")}
    named = set(re.findall(r"[A-Za-z_]\w*", text))
    for p in parameters:
        if p in taken or keyword.iskeyword(p):
            raise ParameterError(f"{what}: {p} is {taken.get(p, 'a word of Python')} and cannot be a parameter")
        if p not in named:
            raise ParameterError(f"{what}: the parameter {p} is not in {shortened(text, 80)!r}")


def check_length(what: str, text: str) -> None:
    """Refuse texts too long to have been written by hand."""
    if len(text) > MAX_LENGTH:
        raise ParameterError(f"{what}: an expression of {len(text)} characters, but at most {MAX_LENGTH} are read")


_TOKEN = re.compile(
    r"(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|[-+*/^(),])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
# Precedence of operators: as in Python, where a power binds the operand on its left tighter than a sign.
_TIGHTNESS = {"(": 0, "+": 1, "-": 1, "*": 2, "/": 2, "sign +": 3, "sign -": 3, "**": 4}


class _Parser:
    """Parser with a stack, on which operators wait for their right operand, so that any depth of nesting works."""

    def __init__(
        self, what: str, source: str, graph: Graph, names: dict[str, int], polynomial: bool,
        coordinates: Mapping[str, int],
    ) -> None:  # fmt: skip
        self._what, self.source, self._graph, self._names, self._polynomial = what, source, graph, names, polynomial
        self._coordinates = coordinates
        #: Nodes that operators will act on, with the first and last + 1 column that each comes from.
        self._values: list[tuple[int, int, int]] = []
        #: Operators that wait, and their columns; of an opening parenthesis also the function before it.
        self._waiting: list[tuple[str, int]] = []
        #: How many values there were when each parenthesis was opened.
        self._opened: list[int] = []

    def _refuse(self, start: int, end: int, problem: str) -> ParameterError:
        part, whole = shortened(self.source[start:end], 60), shortened(self.source, 80)
        return ParameterError(f"{self._what}: {part!r} at column {start + 1} of {whole!r} {problem}")

    def _no_part(self, start: int, end: int) -> ParameterError:
        there = ", ".join(self._coordinates)
        allowed = f"polynomial: numbers, {there}, + - * **, / by numbers, and parentheses"
        if not self._polynomial:
            functions = ", ".join(FUNCTIONS)
            allowed = f"expression: numbers, pi, {there}, parameters, + - * / **, parentheses, and {functions}"
        return self._refuse(start, end, f"is not part of a{'' if self._polynomial else 'n'} {allowed}")

    def _unreadable(self, problem: str) -> ParameterError:
        return ParameterError(f"{self._what}: cannot read {shortened(self.source, 80)!r}: {problem}")

    def define(self, start: int, end: int) -> None:
        """Read a definition of a name, such as ``r = x - a``."""
        name, sign, _ = self.source[start:end].partition("=")
        if not sign and not name.strip():
            return
        word = unicodedata.normalize("NFKC", name.strip())
        at = start + len(name) - len(name.lstrip())
        if not sign or not word.isidentifier() or keyword.iskeyword(word):
            raise self._refuse(at, end, "is not a definition, such as 'r = x - a', which follow semicolons")
        for taken, noun in ((self._coordinates, "a coordinate"), (self._names, "given"), (FUNCTIONS, "a function")):
            if word in taken:
                raise self._refuse(at, at + len(name.strip()), f"cannot be defined: it is {noun}")
        self._names[word] = self.parse(start + len(name) + 1, end)

    def parse(self, begin: int, finish: int) -> int:
        """Return the node of a part of the text."""
        complete = False  # whether what has been read so far could be all
        for token in _TOKEN.finditer(self.source, begin, finish):
            kind, word, start, end = token.lastgroup, token.group(), *token.span()
            word = "**" if word == "^" else word
            if kind == "space":
                continue
            if not complete and kind in ("number", "name"):
                complete = self._operand(kind, word, start, end)
            elif not complete and word in ("+", "-"):
                self._waiting.append((f"sign {word}", start))
            elif not complete and word == "(":
                self._waiting.append(("(", start))
                self._opened.append(len(self._values))
            elif complete and word == ")":
                self._close(start, end)
            elif complete and word == "," and self._is_in_call():
                self._apply(1)
                complete = False
            elif complete and kind == "sign" and word not in ("(", ","):
                # The last of several powers is taken first: x**2**3 is x**8.
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
        return self._values.pop()[0]

    def _operand(self, kind: str, word: str, start: int, end: int) -> bool:
        """Read a number or a name; False where it is that of a function, with its argument still to come."""
        if kind == "number":
            value = float(word) if "__" not in word and word[-1] != "_" else math.nan
            if not math.isfinite(value):
                raise self._refuse(start, end, "is too large a number" if value > 0.0 else "is not a number")
            self._values.append((self._graph.number(value), start, end))
            return True
        # As Python does with names in programs: letters that mean the same are the same.
        name = unicodedata.normalize("NFKC", word)
        called = self.source[end:end + 100].lstrip()[:1] == "("
        if called and name in FUNCTIONS and not self._polynomial:
            self._waiting.append((name, start))
            return False
        if called or keyword.iskeyword(name):
            raise self._no_function(name, start, end) if called else self._no_part(start, end)
        if name in self._coordinates:
            node = self._coordinates[name]
        elif name in self._names:
            node = self._names[name]
        elif name in _CONSTANTS:
            node = self._graph.number(_CONSTANTS[name])
        else:
            known = f" and {shortened(', '.join(self._names))}" if self._names else ""
            near = did_you_mean(name, [*self._coordinates, *self._names, *_CONSTANTS]).lstrip(":")
            problem = f"is unknown: there are {', '.join(self._coordinates)}{known}"
            raise self._refuse(start, end, f"{problem};{near}" if near else problem)
        self._values.append((node, start, end))
        return True

    def _no_function(self, name: str, start: int, end: int) -> ParameterError:
        end = self._end_of_call(end)
        if self._polynomial or name in self._coordinates or name in self._names or not name.isascii():
            return self._no_part(start, end)
        if name in _NOT_THERE:
            hint = f": {_NOT_THERE[name]}"
        else:
            hint = did_you_mean(name, FUNCTIONS) or f": there are {', '.join(FUNCTIONS)}"
        return self._refuse(start, end, f"is not part of an expression: there is no function {name}{hint}")

    def _end_of_call(self, at: int) -> int:
        """Return the place after the parenthesis that closes the next one that is opened."""
        depth = 0
        for place in range(at, len(self.source)):
            depth += {"(": 1, ")": -1}.get(self.source[place], 0)
            if depth == 0 and self.source[place] == ")":
                return place + 1
        return len(self.source)

    def _is_in_call(self) -> bool:
        """Tell whether the last open parenthesis is that of a function."""
        for i in range(len(self._waiting) - 1, 0, -1):
            if self._waiting[i][0] == "(":
                return self._waiting[i - 1][0] in FUNCTIONS
        return False

    def _close(self, start: int, end: int) -> None:
        self._apply(1)
        if not self._waiting:
            raise self._no_part(start, end)
        _, first = self._waiting.pop()
        at = self._opened.pop()
        nodes = [node for node, _, _ in self._values[at:]]
        del self._values[at:]
        node = nodes[0]
        if self._waiting and self._waiting[-1][0] in FUNCTIONS:
            name, first = self._waiting.pop()
            takes = FUNCTIONS[name]
            if len(nodes) != takes and not (name in ("min", "max") and len(nodes) > takes):
                of = f"{takes} argument{'s' * (takes > 1)}{' or more' * (name in ('min', 'max'))}"
                raise self._refuse(first, end, f"is not part of an expression: {name} takes {of}, not {len(nodes)}")
            try:
                node = getattr(self._graph, name)(*nodes)
            except ZeroDivisionError:
                raise self._refuse(first, end, "divides by zero") from None
        self._values.append((node, first, end))

    def _apply(self, tightness: int) -> None:
        """Apply waiting operators that bind as tightly as this, or tighter."""
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
                if graph.value_of(b) == 0.0:
                    raise self._refuse(*right[1:], "is zero and divides")
                return graph.divide(a, b)
            case _:
                return self._power(a, b, left, right)

    def _power(self, a: int, b: int, left: tuple[int, int, int], right: tuple[int, int, int]) -> int:
        exponent, base = self._graph.value_of(b), self._graph.value_of(a)
        whole = exponent is not None and exponent == int(exponent)
        if self._polynomial and not (exponent is not None and whole and 0 <= exponent <= MAX_POWER):
            raise self._refuse(*right[1:], f"is a power, but powers must be whole numbers from 0 to {MAX_POWER}")
        if base == 0.0 and exponent is not None and exponent < 0.0:
            raise self._refuse(*left[1:], "is zero and divides")
        if base is not None and base < 0.0 and not whole:
            raise self._refuse(*left[1:], "is negative, and only whole numbers may be its powers")
        return self._graph.real_power(a, b)
