"""Functions given as SymPy expressions, as the texts that `expressions` reads. SymPy itself is never imported here."""

from collections.abc import Callable
from typing import Any

from medyanpy.errors import ParameterError, foreign_errors, shortened, shown
from medyanpy.surfaces.expressions import FUNCTIONS

__all__ = ["as_text", "is_sympy", "of_sympy"]

#: SymPy's functions that have another name here, or are made of others; {0} and {1} are their arguments.
_WRITTEN = {
    "Abs": "abs({0})", "ceiling": "ceil({0})", "frac": "({0} - floor({0}))", "Mod": "({0} - {1}*floor({0}/{1}))",
    "sign": "(step({0}) - step(-{0}))", "acot": "atan2(2*step({0}) - 1, abs({0}))", "asec": "acos(1/{0})",
    "acsc": "asin(1/{0})", "sech": "(1/cosh({0}))", "csch": "(1/sinh({0}))", "coth": "(1/tanh({0}))",
    "acoth": "atanh(1/{0})", "asech": "acosh(1/{0})", "acsch": "asinh(1/{0})",
    "sinc": "select({0}, sin({0})/{0}, 1)",
    # With conditions, which are 0 where they do not hold.
    "GreaterThan": "step({0} - {1})", "LessThan": "step({1} - {0})",
    "StrictGreaterThan": "(1 - step({1} - {0}))", "StrictLessThan": "(1 - step({0} - {1}))",
    "Equality": "(step({0} - {1})*step({1} - {0}))", "Unequality": "(1 - step({0} - {1})*step({1} - {0}))",
    "Not": "(1 - {0})", "BooleanTrue": "1", "BooleanFalse": "0",
}  # fmt: skip
#: Functions of any number of arguments, by the operator between them.
_JOINED = {"Add": ("(", " + "), "Mul": ("(", "*"), "And": ("(", "*"), "Min": ("min(", ", "), "Max": ("max(", ", "),
           "Or": ("max(", ", ")}  # fmt: skip


def is_sympy(given: Any) -> bool:
    """Tell whether an object is a SymPy expression."""
    return hasattr(given, "free_symbols") and hasattr(given, "args")


def as_text(what: str, given: Any, polynomial: bool = False) -> str:
    """Return a text, or a SymPy expression as a text; ParameterError for anything else, or parts that cannot be
    written."""
    if isinstance(given, str):
        return given
    if not is_sympy(given):
        raise ParameterError(f"{what} must be text or a SymPy expression, not {shown(given)}")
    with foreign_errors(f"{what}: cannot read the expression"):
        return of_sympy(what, given, polynomial)


def of_sympy(what: str, expression: Any, polynomial: bool = True) -> str:
    """Return a SymPy expression as text, numbers to the last bit; ParameterError for parts that `parse` does not
    read."""
    return _Writer(what, polynomial).write(expression)


class _Writer:
    def __init__(self, what: str, polynomial: bool) -> None:
        self._what, self._polynomial = what, polynomial

    def _refuse(self, expression: Any, why: str = "") -> ParameterError:
        of = "a polynomial" if self._polynomial else "an expression of " + ", ".join(FUNCTIONS)
        return ParameterError(f"{self._what}: {shortened(str(expression))} is not part of {of}{why}")

    def write(self, expression: Any) -> str:
        name = type(expression).__name__
        if getattr(expression, "is_Symbol", False):
            if not str(expression).isidentifier():
                raise self._refuse(expression, ": names of symbols are letters, digits and _")
            return str(expression)
        if getattr(expression, "is_number", False) and expression.is_real and expression.is_finite:
            return f"({float(expression)!r})"
        if name in ("Add", "Mul", "Pow") or not self._polynomial:
            make: Callable[[Any], str] | None = getattr(self, f"_write_{name.lower()}", None)
            if make is not None:
                return make(expression)
            if name in _JOINED:
                opening, sign = _JOINED[name]
                return opening + sign.join(map(self.write, expression.args)) + ")"
            if name in _WRITTEN or (name in FUNCTIONS and len(expression.args) == FUNCTIONS[name]):
                parts = list(map(self.write, expression.args))
                return _WRITTEN[name].format(*parts) if name in _WRITTEN else f"{name}({', '.join(parts)})"
        raise self._refuse(expression)

    def _write_pow(self, power: Any) -> str:
        base = self.write(power.base)
        if not self._polynomial and power.exp.is_Rational and 2 * power.exp == 1:
            return f"sqrt({base})"
        return f"({base})**{self.write(power.exp)}"

    def _write_log(self, log: Any) -> str:
        parts = [f"log({self.write(a)})" for a in log.args]
        return parts[0] if len(parts) == 1 else f"({parts[0]}/{parts[1]})"

    def _write_heaviside(self, heaviside: Any) -> str:
        x, at_zero = self.write(heaviside.args[0]), self.write(heaviside.args[1])
        return f"(step({x}) + ({at_zero} - 1)*step({x})*step(-{x}))"

    def _write_piecewise(self, pieces: Any) -> str:
        *first, (last, otherwise) = pieces.args
        if otherwise != True:  # noqa: E712 (SymPy's own truth)
            raise self._refuse(pieces, ": it has no value where no condition holds, end it with (..., True)")
        text = self.write(last)
        for value, condition in reversed(first):
            text = f"select({self.write(condition)}, {self.write(value)}, {text})"
        return text

    def _write_diracdelta(self, delta: Any) -> str:
        raise self._refuse(delta, ": it is 0 but in single points, where no bead ever is")
