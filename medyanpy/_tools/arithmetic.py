"""Numbers written as formulas of other numbers, in files of other programs."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from medyanpy.errors import ParameterError, shown

__all__ = ["value_of"]

_MOST = 10_000  # Characters of a formula.
_TWO: dict[type, Callable[[float, float], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: math.pow
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "exp": math.exp, "ln": math.log, "log10": math.log10, "log2": math.log2, "sqrt": math.sqrt, "abs": abs,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "floor": math.floor, "ceil": math.ceil, "min": min, "max": max,
}  # fmt: skip
_CONSTANTS = {"_pi": math.pi, "_e": math.e, "_NA": 6.02214076e23}


def value_of(text: str, names: Mapping[str, float]) -> float:
    """Return the value of a formula with ``+ - * / ^``, parentheses, the usual functions, and names.

    Raises
    ------
    ParameterError
        Anything else, a name that has no value, or a result that is not a finite number.
    """
    if len(text) > _MOST:
        raise ParameterError(f"{shown(text)} has more than {_MOST} characters")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
        value = float(_value(tree, names, text))
    except ParameterError:
        raise
    except (SyntaxError, ValueError, OverflowError, ZeroDivisionError, TypeError, MemoryError, RecursionError) as cause:
        raise ParameterError(f"{shown(text)} is not a number or a formula: {cause}") from None
    if not math.isfinite(value):
        raise ParameterError(f"{shown(text)} is {value}, but must be a finite number")
    return value


def _value(node: ast.AST, names: Mapping[str, float], text: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        raise ParameterError(f"{shown(text)}: {node.id} has no value")
    if isinstance(node, ast.BinOp) and type(node.op) in _TWO:
        return _TWO[type(node.op)](_value(node.left, names, text), _value(node.right, names, text))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, names, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and node.func.id in _CALLS:
        return _CALLS[node.func.id](*(_value(one, names, text) for one in node.args))
    raise ParameterError(f"{shown(text)} is not a formula of constants")
