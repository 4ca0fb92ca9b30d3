"""Transitions as text, ``"A -> B; rate = k*exp(-z/l)"``, read into an equation and the expressions of its rates."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from medyanpy._tools.validation import several
from medyanpy.errors import ParameterError, shortened, shown

__all__ = ["Transition", "read_transitions"]

#: Sets of expressions that a transition may have, whether it goes back or not.
_WANTED = {False: [{"rate"}], True: [{"rate"}, {"rate", "energy"}, {"k_on", "k_off"}]}
_IN_WORDS = {False: '"rate"', True: '"rate", with "energy" or without, or "k_on" and "k_off"'}
_PART = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)(.*)", re.DOTALL)
#: Words for what equations say.
_AS_EQUATIONS = {"create": "0 -> A", "remove": "A -> 0", "change": "A -> B"}


class Transition(NamedTuple):
    """One transition: ``A -> B``, or what happens to a link, and its expressions by their names."""

    equation: str
    expressions: Mapping[str, str]

    @property
    def goes_back(self) -> bool:
        """True if it is written with ``<->``."""
        return "<->" in self.equation


def read_transitions(what: str, given: Any) -> tuple[Transition, ...]:
    """Read transitions: a text with one on each line, or a list of texts.

    Raises
    ------
    ParameterError
        Anything else, no transition at all, or expressions that are missing or too many.
    """
    texts = [given] if isinstance(given, str) else several(f"{what}: transitions", given)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ParameterError(f"{what}: transitions[{i}] = {shown(text)} but must be text")
    found = tuple(_read(what, line.strip()) for text in texts for line in text.splitlines() if line.strip())
    if not found:
        raise ParameterError(f"{what}: there is no transition in {shown(given)}: write one as 'A -> B; rate = 2.0'")
    return found


def _read(what: str, text: str) -> Transition:
    equation, semicolon, rest = text.partition(";")
    equation = " ".join(equation.split())
    word = equation.split(" ")[0]
    if word in _AS_EQUATIONS and "->" not in equation:
        raise ParameterError(
            f"{what}: {shortened(text, 80)!r}: write it as an equation of species, {_AS_EQUATIONS[word]!r}"
        )
    where, both = f"{what}: {equation}", "<->" in equation
    expressions: dict[str, str] = {}
    for part in _split(rest) if semicolon else []:
        found = _PART.fullmatch(part)
        if found is None:
            wanted = "a name and its expression, as in 'rate = k*exp(z)'"
            raise ParameterError(f"{where}: {part.strip()!r} must be {wanted}")
        name, expression = found[1], found[2].strip()
        if name in expressions:
            raise ParameterError(f"{where}: {name} is given twice")
        if name not in ("rate", "energy", "k_on", "k_off"):
            raise ParameterError(f"{where}: {name!r} is not one of its expressions: {_IN_WORDS[both]}")
        expressions[name] = expression
    if set(expressions) not in _WANTED[both]:
        has = ", ".join(expressions) or "none"
        raise ParameterError(f"{where}: give {_IN_WORDS[both]} behind a semicolon; it has {has}")
    return Transition(equation, MappingProxyType(expressions))


def _split(text: str) -> list[str]:
    """Split a text at commas that are not in parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
