"""Functions of x, y, z as graphs: written as text or built by surfaces, differentiated, and compiled.

Implicit surfaces and fields are made of them. Compiled functions run in _kernels/core/expressions.pxd: a list of instructions
between registers, without any compiler at run time.
"""

import itertools
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy._tools.names import did_you_mean
from medyanpy.errors import ParameterError, shortened

__all__ = ["FUNCTIONS", "Graph", "check_length", "check_names", "parse"]

#: Instructions of _kernels/core/expressions.pxd. Sines come with cosines.
_CODES = {
    "+": 0, "-": 1, "*": 2, "/": 3, "sqrt": 4, "sin": 5, "cos": 5, "exp": 6, "log": 7, "sinh": 8, "cosh": 8, "tanh": 9,
    "asin": 10, "acos": 11, "atan2": 12, "erf": 13, "erfc": 14, "gauss": 15, "log1p": 16, "floor": 17,
    "abs": 18, "min": 19, "max": 20, "step": 21, "keep": 22, "drop": 23, "power": 32,
}  # fmt: skip
_PAIRS = {"sin": ("sin", "cos"), "cos": ("sin", "cos"), "sinh": ("sinh", "cosh"), "cosh": ("sinh", "cosh")}
#: Functions in expressions that are not polynomials, and how many arguments each takes; each is a method of `Graph`.
FUNCTIONS = {
    **dict.fromkeys(("sqrt", "exp", "log"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan"), 1),
    "atan2": 2,
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc"), 1),
    **dict.fromkeys(("square", "cube", "recip", "abs", "floor", "ceil", "step"), 1),
    # These two take more as well.
    "min": 2,
    "max": 2,
    "select": 3,
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
# By multiplications; a higher power in a polynomial is a mistake: x**100 overflows where x is 1300 nm.
MAX_POWER = 100
# The most nested choices that are taken out of a product at a time.
_MOST_CHOICES = 8
# Operations whose derivatives are finite wherever they are.
_TAME = {"number", "coordinate", "+", "-", "*", "sin", "cos", "exp", "sinh", "cosh", "tanh", "erf", "erfc", "gauss",
         "abs", "min", "max", "floor", "step", "keep", "drop"}  # fmt: skip
# The most roots of an expression that are treated where they are 0.
_MOST_ROOTS = 4
# Thousands of terms; a longer text was made by a program, which should use a PythonForce or PythonSurface.
MAX_LENGTH = 200_000
# Operations of a text and its derivatives: so many, and so many more for each character. Thousands of terms have 2 a
# character, towers of powers 14.
_OPERATIONS, _OPERATIONS_EACH = 20_000, 5


def _code(kind: str) -> int:
    # a to the power b less a whole number, which derivatives lower.
    return _CODES["power"] + int(kind[6:]) if kind.startswith("power_") else _CODES[kind]


class Graph:
    """Expressions in x, y, z with common subexpressions. A node is known by its number.

    Parameters
    ----------
    others : int
        Number of further inputs of each point.
    varied : int
        The first so many inputs are differentiated by; the rest are numbers of a point.

    Examples
    --------
    >>> graph = Graph()
    >>> x, y, z = graph.coordinates
    >>> g = graph.add(graph.power(x, 2), graph.number(-1.0))
    >>> evaluator = graph.compile([g, *graph.gradient(g)])
    >>> evaluator(np.array([[3.0, 0.0, 0.0]])).tolist()
    [[8.0, 6.0, 0.0, 0.0]]
    """

    def __init__(self, others: int = 0, varied: int = 3) -> None:
        self._varied, self._given = varied, 3 + others
        #: What each node is: ("number", value), ("coordinate", i), from i = 3 on the other numbers of a point, or an
        #: operation and the nodes it acts on.
        self.nodes: list[tuple[Any, ...]] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._most, self._text = math.inf, ""
        #: Functions of one node that are made of several operations, by their node: that one, and what makes the
        #: derivative with respect to it. Another one than that of these operations: shorter, or with less cancellation.
        self._rules: dict[int, tuple[int, Callable[[], int]]] = {}
        self._derivatives: dict[tuple[int, int], int] = {}
        #: By node, whether it is constant but for jumps, whether its derivatives are finite wherever it is, and a
        #: factor of it that is constant but for jumps: where that is 0, so is the node all around.
        self._flat: list[bool] = []
        self._tame: list[bool] = []
        self._switch: list[int | None] = []
        self._roots_of: dict[int, list[int]] = {}
        self._even: dict[tuple[int, int], tuple[int, int]] = {}
        self._inputs = tuple(self._node("coordinate", i) for i in range(3 + others))
        self.coordinates: tuple[int, ...] = self._inputs[:3]
        self.others: tuple[int, ...] = self._inputs[3:]

    def _node(self, *what: Any) -> int:
        if what not in self._known:
            if len(self.nodes) >= self._most:
                raise ParameterError(f"{self._text} has more than {self._most} operations with its derivatives")
            self._known[what] = len(self.nodes)
            self.nodes.append(what)
            kind, *rest = what
            inner = () if kind in ("number", "coordinate") else rest
            given = kind == "number" or (kind == "coordinate" and self._varied <= rest[0] < self._given)
            flat = given or kind in ("step", "floor") or bool(inner and all(self._flat[a] for a in inner))
            factors = inner if kind == "*" else inner[:1] if kind in ("/", "sqrt", "abs") else ()
            switches = [self._switch[a] for a in factors if self._switch[a] is not None]
            own = len(self.nodes) - 1 if flat and kind != "number" else None
            self._switch.append(switches[0] if own is None and switches else own)
            self._flat.append(flat)
            self._tame.append(kind in _TAME and all(self._tame[a] for a in inner))
        return self._known[what]

    def bound(self, what: str, text: str) -> None:
        """Limit memory and time to grow with the length of a text, however it is nested."""
        before = len(self.nodes) + _OPERATIONS if self._most == math.inf else self._most
        self._most = before + _OPERATIONS_EACH * len(text)
        self._text = f"{what}: {shortened(text, 80)!r}, of {len(text)} characters,"

    def number(self, value: float) -> int:
        return self._node("number", float(value) + 0.0)  # -0.0 is the same number as 0.0

    def value_of(self, node: int) -> float | None:
        """Return the number that a node is, if it is one."""
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
        # Branches not chosen stay out of products, which may be infinite.
        (inner_a, of_a), (inner_b, of_b) = self._chosen(a), self._chosen(b)
        if of_a or of_b:
            return self._choose_again(of_a + of_b, self.multiply(inner_a, inner_b))
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
        if q == 1.0:
            return a
        inner, of = self._chosen(a)
        return self._choose_again(of, self.divide(inner, b)) if of else self._node("/", a, b)

    def power(self, a: int, n: int) -> int:
        """Return the n-th power, n >= 0, by multiplications."""
        if n == 0:
            return self.number(1.0)
        if n == 1:
            return a
        node = self.multiply(self.power(a, n - n // 2), self.power(a, n // 2))
        return self._ruled(node, a, lambda: self.multiply(self.number(n), self.power(a, n - 1)))

    def _ruled(self, node: int, a: int, slope: Callable[[], int]) -> int:
        """Return a node, which is a function of a with this derivative."""
        if self.value_of(node) is None:
            self._rules.setdefault(node, (a, slope))
        return node

    def real_power(self, a: int, b: int) -> int:
        """Return a to the power b: by multiplications and roots where b is a number that allows it."""
        one, exponent = self.number(1.0), self.value_of(b)
        n = math.inf if exponent is None else abs(exponent)
        if exponent is None or n > MAX_POWER or 2.0 * n != int(2.0 * n):
            return self._node("power_0", a, b)
        if n == int(n):
            whole = self.power(a, int(n))
            return whole if exponent >= 0.0 else self.divide(one, whole)
        node = self.multiply(self.power(a, int(n)), self.sqrt(a))
        node = node if exponent >= 0.0 else self.divide(one, node)
        if exponent == 0.5:
            return node
        lower = self.number(exponent - 1.0)
        return self._ruled(node, a, lambda: self.multiply(b, self.real_power(a, lower)))

    def square(self, a: int) -> int:
        return self.power(a, 2)

    def cube(self, a: int) -> int:
        return self.power(a, 3)

    def recip(self, a: int) -> int:
        return self.divide(self.number(1.0), a)

    def sqrt(self, a: int) -> int:
        return self._node("sqrt", a)

    def exp(self, a: int) -> int:
        return self._node("exp", a)

    def log(self, a: int) -> int:
        return self._node("log", a)

    def sin(self, a: int) -> int:
        return self._node("sin", a)

    def cos(self, a: int) -> int:
        return self._node("cos", a)

    def tan(self, a: int) -> int:
        node = self.divide(self.sin(a), self.cos(a))
        return self._ruled(node, a, lambda: self.add(self.number(1.0), self.power(node, 2)))

    def cot(self, a: int) -> int:
        node = self.divide(self.cos(a), self.sin(a))
        return self._ruled(node, a, lambda: self._minus(self.add(self.number(1.0), self.power(node, 2))))

    def sec(self, a: int) -> int:
        node = self.recip(self.cos(a))
        return self._ruled(node, a, lambda: self.multiply(node, self.tan(a)))

    def csc(self, a: int) -> int:
        node = self.recip(self.sin(a))
        return self._ruled(node, a, lambda: self._minus(self.multiply(node, self.cot(a))))

    def asin(self, a: int) -> int:
        return self._node("asin", a)

    def acos(self, a: int) -> int:
        return self._node("acos", a)

    def atan(self, a: int) -> int:
        return self.atan2(a, self.number(1.0))

    def atan2(self, y: int, x: int) -> int:
        return self._node("atan2", y, x)

    def sinh(self, a: int) -> int:
        return self._node("sinh", a)

    def cosh(self, a: int) -> int:
        return self._node("cosh", a)

    def tanh(self, a: int) -> int:
        return self._node("tanh", a)

    def _sech(self, a: int) -> int:
        node = self.recip(self.cosh(a))
        return self._ruled(node, a, lambda: self._minus(self.multiply(node, self.tanh(a))))

    def asinh(self, a: int) -> int:
        # log(|a| + sqrt(a^2 + 1)) without loss where a is small; an odd function.
        one, size = self.number(1.0), self.abs(a)
        square = self.power(size, 2)
        root = self.sqrt(self.add(square, one))
        more = self._log1p(self.add(size, self.divide(square, self.add(one, root))))
        return self._ruled(self.multiply(self._sign(a), more), a, lambda: self.recip(root))

    def acosh(self, a: int) -> int:
        above = self.subtract(a, self.number(1.0))
        root = self.sqrt(self.multiply(above, self.add(above, self.number(2.0))))

        def slope() -> int:
            # Not with the root of the product, which has a value below -1 too.
            return self.recip(self.multiply(self.sqrt(above), self.sqrt(self.add(above, self.number(2.0)))))

        return self._ruled(self._log1p(self.add(above, root)), a, slope)

    def atanh(self, a: int) -> int:
        node = self.subtract(self._log1p(a), self._log1p(self._minus(a)))
        node = self.multiply(self.number(0.5), node)
        return self._ruled(node, a, lambda: self.recip(self._one_minus_square(a)))

    def erf(self, a: int) -> int:
        return self._node("erf", a)

    def erfc(self, a: int) -> int:
        return self._node("erfc", a)

    def _gauss(self, a: int) -> int:
        """Return exp(-a^2)."""
        return self._node("gauss", a)

    def _log1p(self, a: int) -> int:
        """Return log(1 + a)."""
        return self._node("log1p", a)

    def abs(self, a: int) -> int:
        return self._node("abs", a)

    def floor(self, a: int) -> int:
        return self._node("floor", a)

    def ceil(self, a: int) -> int:
        return self._minus(self.floor(self._minus(a)))

    def step(self, a: int) -> int:
        """Return 1 where a >= 0, else 0."""
        return self._node("step", a)

    def _sign(self, a: int) -> int:
        """Return 1 where a >= 0, else -1."""
        return self.subtract(self.multiply(self.number(2.0), self.step(a)), self.number(1.0))

    def min(self, *nodes: int) -> int:
        return self._extreme("min", nodes)

    def max(self, *nodes: int) -> int:
        return self._extreme("max", nodes)

    def _extreme(self, kind: str, nodes: Sequence[int]) -> int:
        node = nodes[0]
        for other in nodes[1:]:
            node = node if node == other else self._node(kind, node, other)
        return node

    def select(self, condition: int, a: int, b: int) -> int:
        """Return a where the condition is not 0, else b."""
        if a == b:
            return a
        return self.add(self._choose("keep", condition, a), self._choose("drop", condition, b))

    def _choose(self, kind: str, condition: int, a: int) -> int:
        """Return a where the condition is not 0 ("keep") or is 0 ("drop"), else 0, whatever a is there."""
        value, (inner, *rest) = self.value_of(condition), self.nodes[a]
        if value is not None:
            return a if (value != 0.0) == (kind == "keep") else self.number(0.0)
        if self.value_of(a) == 0.0:
            return a
        if inner in ("keep", "drop") and rest[0] == condition:
            # As it has been decided already.
            return a if inner == kind else self.number(0.0)
        return self._node(kind, condition, a)

    def _chosen(self, node: int) -> tuple[int, list[tuple[str, int]]]:
        """Return the node within the choices around a node, and these choices, the outermost first."""
        of: list[tuple[str, int]] = []
        while self.nodes[node][0] in ("keep", "drop") and len(of) < _MOST_CHOICES:
            kind, condition, node = self.nodes[node]
            of.append((kind, condition))
        return node, of

    def _choose_again(self, of: list[tuple[str, int]], node: int) -> int:
        for kind, condition in reversed(of):
            node = self._choose(kind, condition, node)
        return node

    def _minus(self, a: int) -> int:
        return self.multiply(self.number(-1.0), a)

    def _one_minus_square(self, a: int) -> int:
        """Return 1 - a^2 without loss near 1."""
        one = self.number(1.0)
        node = self.multiply(self.subtract(one, a), self.add(one, a))
        return self._ruled(node, a, lambda: self.multiply(self.number(-2.0), a))

    def gradient(self, node: int) -> list[int]:
        return [self.along(node, i) for i in range(3)]

    def hessian(self, node: int) -> list[int]:
        """Return the six second derivatives xx, xy, xz, yy, yz, zz."""
        return [self.along(node, i, j) for i in range(3) for j in range(i, 3)]

    def third(self, node: int) -> list[int]:
        """Return the ten third derivatives xxx, xxy, xxz, xyy, xyz, xzz, yyy, yyz, yzz, zzz."""
        return [self.along(node, i, j, k) for i in range(3) for j in range(i, 3) for k in range(j, 3)]

    def jumps(self, node: int) -> bool:
        """Tell whether a node with all derivatives 0 depends on coordinates nevertheless, as ``step(x)`` does."""
        return any(self.nodes[n][0] == "coordinate" and self.nodes[n][1] < self._varied for n in self._within(node))

    def along(self, node: int, *coordinates: int) -> int:
        """Return the derivative by one to three coordinates, one after another; also where a distance is 0.

        The root r of s, such as x² + y² + z², has no derivative where s is 0 and at its least. There the odd part in r
        has no direction, and its mean over all directions is 0. The even part is a smooth function of s.
        """
        return self._along(node, coordinates, self._roots(node))

    def _along(self, node: int, coordinates: tuple[int, ...], roots: Sequence[int]) -> int:
        out = node
        for i in coordinates:
            out = self.derivative(out, i)
        for k, root in enumerate(roots):
            try:
                there = self._at_root(node, root, coordinates, [*roots[:k], *roots[k + 1 :]])
            except (ZeroDivisionError, OverflowError):
                continue  # infinite there for another reason
            away = self._away(root)
            out = self.add(self._choose("keep", away, out), self._choose("drop", away, there))
        return out

    def _within(self, *nodes: int) -> set[int]:
        """Return some nodes and all nodes within them."""
        found: set[int] = set()
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                kind, *rest = self.nodes[node]
                if kind not in ("number", "coordinate"):
                    stack += rest
        return found

    def _roots(self, node: int) -> list[int]:
        """Return square roots within a node with radicands whose least value is 0.

        For other powers, the square roots of their bases.
        """
        if node not in self._roots_of:
            found: set[int] = set()
            for n in self._within(node):
                kind, *rest = self.nodes[n]
                if kind == "sqrt" and not self._flat[n] and self._squares(rest[0]) != "positive":
                    found.add(n)
                elif kind == "power_0" and self.value_of(rest[1]) is not None and self._squares(rest[0]) == "squares":
                    found.add(self.sqrt(rest[0]))
            # Their radicands have to be smooth.
            smooth = [n for n in sorted(found) if not found & self._within(self.nodes[n][1])]
            self._roots_of[node] = smooth[:_MOST_ROOTS]
        return self._roots_of[node]

    def _away(self, root: int) -> int:
        """Return a node that is 0 where a root is 0 and the gradient of its radicand vanishes."""
        s = self.nodes[root][1]
        slopes = [d for d in (self.derivative(s, i) for i in range(self._varied)) if self.value_of(d) != 0.0]
        return root if self._squares(s) == "squares" else self.add(root, *(self.abs(d) for d in slopes))

    def _squares(self, node: int) -> str:
        """Tell the form of a node.

        "squares" times positive numbers and their sums, "positive" with such a number beside them, or "" of another
        form.
        """
        stack, positive = [node], False
        while stack:
            kind, *rest = self.nodes[stack.pop()]
            if kind == "+":
                stack += rest
            elif kind == "*" and rest[0] == rest[1]:
                continue
            elif kind == "*" and (self.value_of(rest[0]) or 0.0) > 0.0:
                stack.append(rest[1])
            elif kind == "number" and rest[0] > 0.0:
                positive = True
            else:
                return ""
        return "positive" if positive else "squares"

    def _at_root(self, node: int, root: int, coordinates: tuple[int, ...], others: list[int]) -> int:
        """Return the derivative of the even part in a root r = √s where s and its gradient are 0.

        This part is F(0) + F''(0) s/2 + ...
        """
        if (node, root) not in self._even:
            # An input of its own, which no program has: 0 in the end.
            number = self._given + root
            r, zero = self._node("coordinate", number), self.number(0.0)
            whole = self._replaced(node, root, r)
            curve = self.derivative(self.derivative(whole, number), number)
            half = self.multiply(self.number(0.5), self._replaced(curve, r, zero))
            self._even[node, root] = self._replaced(whole, r, zero), half
        (f, half), s = self._even[node, root], self.nodes[root][1]
        out = self._along(f, coordinates, [o for o in others if o in self._within(f)])

        def d(node: int, *by: int) -> int:
            for i in by:
                node = self.derivative(node, i)
            return node

        if len(coordinates) == 2:
            out = self.add(out, self.multiply(half, d(s, *coordinates)))
        elif len(coordinates) == 3:
            i, j, k = coordinates
            for one, two in ((i, (j, k)), (j, (i, k)), (k, (i, j))):
                out = self.add(out, self.multiply(d(half, one), d(s, *two)))
            out = self.add(out, self.multiply(half, d(s, i, j, k)))
        return out

    def _replaced(self, node: int, old: int, new: int) -> int:
        """Return a node with another in place of one within it."""
        made = {old: new}
        kind, *rest = self.nodes[old]
        base = rest[0] if kind == "sqrt" else None
        for n in sorted(self._within(node)):
            kind, *rest = self.nodes[n]
            if n in made:
                continue
            if kind == "power_0" and rest[0] == base:
                twice = self.multiply(self.number(2.0), rest[1])
                made[n] = self._node(kind, new, twice)
                continue
            if kind in ("number", "coordinate"):
                made[n] = n
                continue
            inner = [made[a] for a in rest]
            made[n] = n if inner == rest else self._again(kind, inner)
        return made[node]

    def _again(self, kind: str, inner: list[int]) -> int:
        """Apply an operation to other nodes."""
        simple = {"+": self._add, "-": self.subtract, "*": self.multiply, "/": self.divide}
        if kind in ("keep", "drop"):
            return self._choose(kind, *inner)
        try:
            node = simple[kind](*inner) if kind in simple else self._node(kind, *inner)
        except (ZeroDivisionError, OverflowError):
            node = self._node(kind, *inner)
        value = self.value_of(node)
        return self._node(kind, *inner) if value is not None and not math.isfinite(value) else node

    def derivative(self, node: int, i: int) -> int:
        """Return the derivative with respect to coordinate i."""
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
        return self._derivatives[node, i]

    def _derive(self, node: int, i: int) -> Generator[int, int, int]:
        """Yield nodes, to be sent their derivatives, and return its own."""
        if (node, i) in self._derivatives:
            return self._derivatives[node, i]
        out = yield from self._by_rules(node, i)
        switch = self._switch[node]
        # Where a factor is 0 all around, no other one's infinite derivative counts.
        return out if switch is None or self._tame[out] else self._choose("keep", switch, out)

    def _by_rules(self, node: int, i: int) -> Generator[int, int, int]:
        kind, *rest = self.nodes[node]
        if kind == "number":
            return self.number(0.0)
        if kind == "coordinate":
            return self.number(float(rest[0] == i))
        if node in self._rules:
            a, slope = self._rules[node]
            along = yield a
            return along if self.value_of(along) == 0.0 else self.multiply(slope(), along)
        d = []
        for a in rest:
            d.append((yield a))
        if all(self.value_of(along) == 0.0 for along in d):
            return self.number(0.0)
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
            case "cos":
                return self.multiply(self.number(-1.0), self.multiply(self.sin(rest[0]), d[0]))
            case "min" | "max":
                a, b = rest if kind == "max" else rest[::-1]
                return self.select(self.step(self.subtract(a, b)), d[0], d[1])
            case "keep" | "drop":
                return self._choose(kind, rest[0], d[1])
            case _ if kind.startswith("power_"):
                (a, b), less = rest, int(kind[6:])
                lower = self._node(f"power_{less + 1}", a, b)
                along = self.multiply(self.multiply(self.subtract(b, self.number(less)), lower), d[0])
                if self.value_of(d[1]) == 0.0:
                    return along
                return self.add(along, self.multiply(self.multiply(node, self.log(a)), d[1]))
            case "atan2":
                y, x = rest
                across = self.subtract(self.multiply(x, d[0]), self.multiply(y, d[1]))
                return self.divide(across, self.add(self.power(y, 2), self.power(x, 2)))
            case _:
                return self.multiply(self._slope(kind, rest[0], node), d[0])

    def _slope(self, kind: str, a: int, node: int) -> int:
        """Return the derivative of a function of one node with respect to it; that of the branch taken."""
        match kind:
            case "asin":
                return self.recip(self.sqrt(self._one_minus_square(a)))
            case "acos":
                return self._minus(self.recip(self.sqrt(self._one_minus_square(a))))
            case "sinh":
                return self.cosh(a)
            case "cosh":
                return self.sinh(a)
            case "tanh":
                # 1 - tanh^2 would lose all digits where a is large.
                return self.power(self._sech(a), 2)
            case "erf":
                return self.multiply(self.number(2.0 / math.sqrt(math.pi)), self._gauss(a))
            case "erfc":
                return self.multiply(self.number(-2.0 / math.sqrt(math.pi)), self._gauss(a))
            case "gauss":
                return self.multiply(self.number(-2.0), self.multiply(a, node))
            case "log1p":
                return self.recip(self.add(self.number(1.0), a))
            case "abs":
                return self._sign(a)
            case "floor" | "step":
                return self.number(0.0)
        raise AssertionError(kind)

    def evaluate(self, results: Sequence[int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Evaluate some nodes once at points given by the columns x, y, z and the other numbers."""
        return list(self.compile(results)(np.column_stack(inputs).astype(float)).T)

    def compile(self, results: Sequence[int]) -> "surface_constraints.Evaluator":
        """Return a kernel's evaluator of some nodes."""
        return surface_constraints.Evaluator(*self.program(results))

    def program(self, results: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return instructions, constants, places of results, and number of registers (_kernels/core/expressions.pxd)."""
        needed = self._within(*results)
        # Nodes within a node have lower numbers than it.
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
            if kind in _PAIRS:
                pair = [self._known.get((name, rest[0])) for name in _PAIRS[kind]]
                target, b = (place(other if other in needed else None) for other in pair)
                code.append((_code(kind), target, a, b))
                continue
            # Instructions read before they write: a register may be used again at once.
            free += {register[x] for x in rest if last_use[x] == node and x not in kept}
            code.append((_code(kind), place(node), a, b))
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
    """Return the node of a polynomial in x, y, z, or of a smooth function of them, given as text.

    For a text in other `coordinates`, these are their names and nodes.

    Allowed are numbers, x, y, z, further names (of nodes), pi, + - *, whole powers ``**`` (or ``^``), division by
    numbers, parentheses and signs; in other functions than polynomials also any division and power, and `FUNCTIONS`.
    Behind semicolons, names that it uses may be given, as in ``k*r^2; r = x - a``: each may use those that follow it.
    The text is never run as code. Time grows with the length of the text, whatever is in it.

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
    """Parser with a stack.

    Operators wait on it until their right operand is known, so that any depth of nesting works.
    """

    def __init__(
        self,
        what: str,
        source: str,
        graph: Graph,
        names: dict[str, int],
        polynomial: bool,
        coordinates: Mapping[str, int],
    ) -> None:
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
            raise self._refuse(at, end, "is no definition, such as 'r = x - a', which follow semicolons")
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
                raise self._refuse(start, end, "is too large a number" if value > 0.0 else "is no number")
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
            known = "".join(f" and {shortened(', '.join(self._names))}" if self._names else "")
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
                return self._divide(a, b, right)
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

    def _divide(self, a: int, b: int, divisor: tuple[int, int, int]) -> int:
        if self._graph.value_of(b) == 0.0:
            raise self._refuse(*divisor[1:], "is zero and divides")
        return self._graph.divide(a, b)
