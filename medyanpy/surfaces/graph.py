"""Functions of x, y, z as graphs that can be differentiated."""

import math
from collections.abc import Generator, Sequence

from medyanpy.surfaces.nodes import Nodes

__all__ = ["Graph"]

# The most roots of an expression that are treated where they are 0.
_MOST_ROOTS = 4


class Graph(Nodes):
    """Expressions in x, y, z with common subexpressions. A node is known by its number.

    Parameters
    ----------
    others : int
        Number of further inputs of each point.
    varied : int
        The first so many inputs are differentiated by; the rest are numbers of a point.
    """

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
        return any(i < self._varied for i in self.inputs(node))

    def inputs(self, node: int) -> set[int]:
        """Return the numbers of the inputs that a node depends on."""
        return {self.nodes[n][1] for n in self._within(node) if self.nodes[n][0] == "coordinate"}

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

    def _roots(self, node: int) -> list[int]:
        """Return square roots within a node with radicands whose least value is 0; of other powers, roots of their
        bases."""
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
        """Return "squares" of squares times positive numbers and their sums, "positive" with such a number beside them,
        or ""."""
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
        """Return the derivative of the even part, F(0) + F''(0) s/2 + ..., in a root r = √s where s and its gradient
        are 0."""
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
                made[n] = self._node(kind, new, self.multiply(self.number(2.0), rest[1]))
            elif kind in ("number", "coordinate"):
                made[n] = n
            else:
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
