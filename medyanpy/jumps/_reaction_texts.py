"""Reactions as text, ``"A + B <-> C; k_on = 2.0, k_off = 1.0"``, read into species and numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

from medyanpy._tools.described import Described
from medyanpy._tools.names import Guarded
from medyanpy._tools.species import NOTHING, check_species, wrong_species
from medyanpy._tools.validation import number, several
from medyanpy.errors import ParameterError, shown

__all__ = ["MOST_REACTANTS", "Reaction", "check_species", "read_reactions", "ways_back"]

#: Molecules that may meet in one reaction, and that one may make.
MOST_REACTANTS, MOST_PRODUCTS = 3, 100
# Anything that may be meant as an arrow; only two are read.
_ARROW = re.compile(r"[-~]*[<>=→←↔⇌⇄][-~<>=→←↔⇌⇄]*")
_NUMBER_NAME = re.compile(r"[^\W\d]\w*")


class _Line:
    """One reaction as it is written, and what is wrong with it."""

    def __init__(self, what: str, text: str) -> None:
        self.what = what
        self.text = text

    def refuse(self, place: int, problem: str) -> ParameterError:
        return ParameterError(f"{self.what}: {problem}\n    {self.text}\n    {' ' * place}^")

    def read(self) -> "Reaction":
        equation, _, numbers = self.text.partition(";")
        arrows = list(_ARROW.finditer(equation))
        for arrow in arrows:
            if arrow.group() not in ("->", "<->"):
                raise self.refuse(arrow.start(), f"the arrow {arrow.group()!r} is not known: '->' and '<->' are")
        if not arrows:
            raise self.refuse(len(equation.rstrip()), "there is no arrow '->' or '<->'")
        if len(arrows) > 1:
            raise self.refuse(arrows[1].start(), "there is a second arrow: write one reaction on each line")
        (arrow,) = arrows
        both = arrow.group() == "<->"
        reactants = self.side(equation[: arrow.start()], 0, met=True)
        products = self.side(equation[arrow.end() :], arrow.end(), met=both)
        if sorted(reactants) == sorted(products):
            raise self.refuse(arrow.start(), "both sides are the same: nothing would change")
        given = self.numbers(numbers, len(equation) + 1)
        return Reaction(reactants, products, reversible=both, numbers=given)

    def side(self, text: str, start: int, *, met: bool) -> tuple[str, ...]:
        """Read the molecules of one side; `met` if they must meet to react."""
        if text.strip() in NOTHING:
            return ()
        out: list[str] = []
        place = start
        for term in text.split("+"):
            at = place + len(term) - len(term.lstrip())
            place += len(term) + 1
            words = term.split()
            if not words:
                raise self.refuse(at, "a species is missing: write 0 for none at all")
            times = 1
            if len(words) > 1 and words[0].isdecimal():
                times = self.times(words.pop(0), at)
                at += len(term.lstrip()) - len(term.lstrip().split(maxsplit=1)[1])
            if len(words) > 1:
                raise self.refuse(at + len(words[0]), f"there is no '+' between {words[0]!r} and {words[1]!r}")
            if problem := wrong_species(words[0]):
                raise self.refuse(at, f"{words[0]!r} {problem}")
            if met and len(out) + times > MOST_REACTANTS:
                raise self.refuse(at, f"more than {MOST_REACTANTS} molecules would have to meet: write it as steps")
            out += [words[0]] * times
        return tuple(out)

    def times(self, word: str, place: int) -> int:
        times = int(word) if len(word) < 4 else MOST_PRODUCTS + 1
        if not 1 <= times <= MOST_PRODUCTS:
            raise self.refuse(place, f"{shown(word)} molecules, but must be 1 to {MOST_PRODUCTS}")
        return times

    def numbers(self, text: str, start: int) -> dict[str, float]:
        """Read what stands behind the semicolon, ``k_on = 2.0, k_off = 1.0``."""
        out: dict[str, float] = {}
        place = start
        for part in text.split(",") if text.strip() else []:
            at = place + len(part) - len(part.lstrip())
            place += len(part) + 1
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not _NUMBER_NAME.fullmatch(name):
                raise self.refuse(at, f"{shown(part.strip())} must be a name and its number, as in 'rate = 2.0'")
            if name in out:
                raise self.refuse(at, f"{name!r} is given twice")
            at += part.lstrip().index("=") + 1
            try:
                out[name] = number(name, float(value))
            except ValueError:
                raise self.refuse(at, f"{name} = {shown(value)} but must be a finite number") from None
        return out


class Reaction(Described, Guarded):
    """One reaction: molecules that meet, molecules that they become, and numbers such as rates.

    Two are equal if all of it is. ``str(reaction)`` is a text that `Reactions` reads as this reaction.

    Parameters
    ----------
    reactants, products : list of str
        Names of species, repeated where several molecules of one take part: ``("A", "A")`` of ``2 A -> D``. Empty for
        none. At most three molecules can meet.
    reversible : bool
        Whether it goes back too.
    numbers : dict of float, optional
        What stands behind the semicolon of a text: ``k_on`` and ``k_off`` of reversible reactions, ``rate`` of others.

    Raises
    ------
    ParameterError
        Names that no text could have, too many molecules, two equal sides, or numbers that are not finite.
    """

    def __init__(
        self, reactants: Iterable[str], products: Iterable[str], *, reversible: bool = False,
        numbers: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        sides = []
        for what, given, most in (
            ("reactants", reactants, MOST_REACTANTS),
            ("products", products, MOST_REACTANTS if reversible else MOST_PRODUCTS),
        ):
            names = [given] if isinstance(given, str) else several(f"Reaction: {what}", given)
            if len(names) > most:
                raise ParameterError(f"Reaction: {what} are {len(names)} molecules, but must be at most {most}")
            sides.append(tuple(check_species(f"Reaction: {what}[{i}]", name) for i, name in enumerate(names)))
        if sorted(sides[0]) == sorted(sides[1]):
            raise ParameterError(f"Reaction: reactants and products are the same, {shown(sides[0])}")
        if not isinstance(numbers, Mapping | None):
            raise ParameterError(f"Reaction: numbers = {shown(numbers)} but must be a dict")
        checked: dict[str, float] = {}
        for name, value in (numbers or {}).items():
            if not isinstance(name, str) or not _NUMBER_NAME.fullmatch(name):
                raise ParameterError(f"Reaction: numbers: {shown(name)} is not a name, such as 'k_on' or 'rate'")
            checked[name] = number(f"Reaction: {name}", value)
        self.reactants: tuple[str, ...] = sides[0]
        self.products: tuple[str, ...] = sides[1]
        self.reversible: bool = bool(reversible)
        self.numbers: Mapping[str, float] = MappingProxyType(checked)

    @property
    def species(self) -> tuple[str, ...]:
        """Names of its species, each once, in the order in which they are written."""
        return tuple(dict.fromkeys(self.reactants + self.products))

    @property
    def equation(self) -> str:
        """Text of the reaction without its numbers."""
        sides = [" + ".join(_repeated(side)) or "0" for side in (self.reactants, self.products)]
        return f"{sides[0]} {'<->' if self.reversible else '->'} {sides[1]}"

    def changes(self) -> dict[str, int]:
        """Return how many molecules of each species one event makes; catalysts have 0."""
        made, used = Counter(self.products), Counter(self.reactants)
        return {name: made[name] - used[name] for name in self.species}

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} = {value!r}" for name, value in self.numbers.items())
        return f"{self.equation}; {numbers}" if numbers else self.equation

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reaction) and self._all == other._all

    def __hash__(self) -> int:
        return hash((self.reactants, self.products, self.reversible))

    @property
    def _all(self) -> tuple[Any, ...]:
        return self.reactants, self.products, self.reversible, dict(self.numbers)


def _repeated(side: tuple[str, ...]) -> list[str]:
    groups = [(name, len(list(same))) for name, same in groupby(side)]
    return [name if n == 1 else f"{n} {name}" for name, n in groups]


def ways_back(what: str, titles: Sequence[str], sides: Sequence[Any], turned: Sequence[Any]) -> list[int]:
    """Return, for each direction of reactions, which other one goes back, -1: none, wherever it is written.

    `sides` tells what each does, and `turned` what its reverse does. ParameterError for one that is there twice.
    """
    for k, own in enumerate(sides):
        if own in sides[:k]:
            raise ParameterError(f"{what}: {titles[k]} is written twice: add the rates of both")
    return [sides.index(own) if own in sides else -1 for own in turned]


def read_reactions(what: str, given: Any) -> tuple[Reaction, ...]:
    """Read reactions: a text with one on each line, a `Reaction`, or a list of these.

    Sides are species with ``+`` between them, a whole number and a blank before one for several molecules, ``0`` or
    ``∅`` for none. ``->`` is a reaction one way, ``<->`` one that goes back too. Behind a semicolon stand numbers.
    Names are all that has no blank and none of ``+ ; , = < >``: ``G-actin`` and ``Arp2/3`` are names.

    Raises
    ------
    ParameterError
        Anything else, or no reaction at all; the message shows the text with a caret under the place.
    """
    if isinstance(given, Reaction):
        return (given,)
    if not isinstance(given, str):
        parts = several(f"{what}: reactions", given)
        out: list[Reaction] = []
        for i, part in enumerate(parts):
            if not isinstance(part, str | Reaction):
                raise ParameterError(f"{what}: reactions[{i}] = {shown(part)} but must be text or a Reaction")
            out += read_reactions(what, part)
    else:
        out = [_Line(what, line.strip()).read() for line in given.splitlines() if line.strip()]
    if not out:
        raise ParameterError(f"{what}: there is no reaction in {shown(given)}: write one as 'A + B <-> C'")
    return tuple(out)
