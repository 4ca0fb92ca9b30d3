"""Nodes of functions of x, y, z: how they are made of each other, and compiled.

Compiled functions run in _kernels/core/expressions.pxd: a list of instructions between registers, without any compiler
at run time.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy.errors import ParameterError, shortened

__all__ = ["MAX_POWER", "Nodes"]

#: Instructions of _kernels/core/expressions.pxd. Sines come with cosines.
_CODES = {
    "+": 0, "-": 1, "*": 2, "/": 3, "sqrt": 4, "sin": 5, "cos": 5, "exp": 6, "log": 7, "sinh": 8, "cosh": 8, "tanh": 9,
    "asin": 10, "acos": 11, "atan2": 12, "erf": 13, "erfc": 14, "gauss": 15, "log1p": 16, "floor": 17,
    "abs": 18, "min": 19, "max": 20, "step": 21, "keep": 22, "drop": 23, "power": 32,
}  # fmt: skip
_PAIRS = {"sin": ("sin", "cos"), "cos": ("sin", "cos"), "sinh": ("sinh", "cosh"), "cosh": ("sinh", "cosh")}
# By multiplications; a higher power in a polynomial is a mistake: x**100 overflows where x is 1300 nm.
MAX_POWER = 100
# The most nested choices that are taken out of a product at a time.
_MOST_CHOICES = 8
# Operations whose derivatives are finite wherever they are.
_TAME = {"number", "coordinate", "+", "-", "*", "sin", "cos", "exp", "sinh", "cosh", "tanh", "erf", "erfc", "gauss",
         "abs", "min", "max", "floor", "step", "keep", "drop"}  # fmt: skip
# Operations of a text and its derivatives: so many, and so many more for each character. Thousands of terms have 2 a
# character, towers of powers 14.
_OPERATIONS, _OPERATIONS_EACH = 20_000, 5


def _code(kind: str) -> int:
    # a to the power b less a whole number, which derivatives lower.
    return _CODES["power"] + int(kind[6:]) if kind.startswith("power_") else _CODES[kind]


_Operation: TypeAlias = "Callable[[Nodes, int], int]"


def _operation(kind: str) -> _Operation:
    """Return the method that makes a node of an operation on one other."""

    def made(self: "Nodes", a: int) -> int:
        return self._node(kind, a)

    return made


class Nodes:
    """Base class of `Graph`: nodes, known by their numbers, and the operations that make them of each other."""

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

    sqrt: ClassVar[_Operation] = _operation("sqrt")
    exp: ClassVar[_Operation] = _operation("exp")
    log: ClassVar[_Operation] = _operation("log")
    sin: ClassVar[_Operation] = _operation("sin")
    cos: ClassVar[_Operation] = _operation("cos")
    asin: ClassVar[_Operation] = _operation("asin")
    acos: ClassVar[_Operation] = _operation("acos")
    sinh: ClassVar[_Operation] = _operation("sinh")
    cosh: ClassVar[_Operation] = _operation("cosh")
    tanh: ClassVar[_Operation] = _operation("tanh")
    erf: ClassVar[_Operation] = _operation("erf")
    erfc: ClassVar[_Operation] = _operation("erfc")
    abs: ClassVar[_Operation] = _operation("abs")
    floor: ClassVar[_Operation] = _operation("floor")
    step: ClassVar[_Operation] = _operation("step")  # 1 where a >= 0, else 0
    _gauss: ClassVar[_Operation] = _operation("gauss")  # exp(-a^2)
    _log1p: ClassVar[_Operation] = _operation("log1p")  # log(1 + a)

    def square(self, a: int) -> int:
        return self.power(a, 2)

    def cube(self, a: int) -> int:
        return self.power(a, 3)

    def recip(self, a: int) -> int:
        return self.divide(self.number(1.0), a)

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

    def atan(self, a: int) -> int:
        return self.atan2(a, self.number(1.0))

    def atan2(self, y: int, x: int) -> int:
        return self._node("atan2", y, x)

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
        node = self.multiply(self.number(0.5), self.subtract(self._log1p(a), self._log1p(self._minus(a))))
        return self._ruled(node, a, lambda: self.recip(self._one_minus_square(a)))

    def ceil(self, a: int) -> int:
        return self._minus(self.floor(self._minus(a)))

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

    def evaluate(self, results: Sequence[int], inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Evaluate some nodes once at points given by the columns x, y, z and the other numbers."""
        return list(self.compile(results)(np.column_stack(inputs).astype(float)).T)

    def compile(self, results: Sequence[int]) -> "surface_constraints.Evaluator":
        """Return a kernel's evaluator of some nodes."""
        return surface_constraints.Evaluator(*self.program(results))

    def program(self, results: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return instructions, constants, places of results, and number of registers (core/expressions.pxd)."""
        needed = self._within(*results)
        order = sorted(needed)  # nodes within a node have lower numbers than it
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
        numbers = np.array([self.nodes[node][1] for node in constants], np.float64)
        places = np.array([register[node] for node in results], np.int32)
        return np.array(code, np.int32).reshape(-1, 4), numbers, places, count
