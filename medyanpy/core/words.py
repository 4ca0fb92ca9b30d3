"""Words: letters of a step as they are written, read and composed; what letters do is in `letters.py`."""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby

import numpy as np

from medyanpy.core.letters import LETTERS
from medyanpy.errors import ParameterError

__all__ = ["COMPOSITIONS", "Letter", "compose", "highest_stable", "in_parts", "parse_word", "weights_of"]


def _letters(alone: bool) -> str:
    """Return symbols of letters that stand alone, or with others."""
    return "".join(sorted(symbol for symbol, kind in LETTERS.items() if kind.alone == alone))


@dataclass(frozen=True)
class Letter:
    """Letter of a word: which flow, for which fraction of the timestep, and of which force group.

    `group` is None for a kick or displacement by all forces and for letters that need none. `substep` is the time
    between the kicks on both sides of a flight, as a fraction of the timestep: of ABA and BAB all of it, and of a
    composition the weight of the part that the letter belongs to. `block` is the number of the block M( ) that it
    stands in, None outside of all.
    """

    kind: str
    fraction: float
    group: int | None = None
    substep: float = 1.0
    block: int | None = None

    @property
    def name(self) -> str:
        """Name of the letter in words."""
        return self.kind if self.group is None else f"{self.kind}{self.group}"

    def kicks(self, group: int | None) -> bool:
        """Tell whether it kicks by the forces of a group; None: by any."""
        return self.kind == "B" and (group is None or self.group in (None, group))


@dataclass(frozen=True)
class _Token:
    """A letter as it is written, where in the word, and in which block."""

    name: str
    place: int
    block: int | None


class _Word:
    """The text of a word, and what is wrong with it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def refuse(self, place: int, problem: str) -> ParameterError:
        return ParameterError(f"{problem}\n    {self.text}\n    {' ' * place}^")

    def tokens(self) -> Iterator[_Token]:
        """Return its letters, one after another."""
        text, upper = self.text, self.text.upper()
        token = re.compile(rf"B\d+|[{_letters(False)}{_letters(True)}]")
        opens = re.compile(r"M\s*\(")
        place, blocks, opened = 0, 0, -1
        filled = False
        while place < len(text):
            found, block = token.match(upper, place), opens.match(upper, place)
            if text[place].isspace():
                place += 1
            elif block is not None:
                if opened >= 0:
                    raise self.refuse(place, "a block M( ) stands in another one: close that first")
                opened, filled, place = place, False, block.end()
            elif text[place] == ")":
                if opened < 0:
                    raise self.refuse(place, "this closes a block that was not opened: M(")
                if not filled:
                    raise self.refuse(place, "the block has no letters: M(BAGAB) is one")
                opened, blocks, place = -1, blocks + 1, place + 1
            elif found is not None:
                yield _Token(found.group(), place, None if opened < 0 else blocks)
                filled, place = True, found.end()
            else:
                *others, last = list(_letters(False).replace("B", ""))
                known = f"{others[0]}, B (or B0 to B31), {', '.join(others[1:])} and {last}"
                if upper[place] == "M":
                    raise self.refuse(place, "M stands before letters in parentheses: M(BAGAB)")
                raise self.refuse(place, f"{text[place]!r} is not a letter of a word: {known} are")
        if opened >= 0:
            raise self.refuse(opened, "the block is not closed: M( )")

    def check_palindrome(self, names: list[str], places: list[int], what: str, why: str) -> None:
        """Refuse letters that are others when they are read backwards."""
        for i, name in enumerate(names):
            if name != names[-1 - i]:
                raise self.refuse(
                    places[len(names) - 1 - i],
                    f"{what} is not a palindrome: letter {i + 1} is {name}, but letter {i + 1} from the end is "
                    f"{names[-1 - i]}. {why}",
                )

    def check_blocks(self, tokens: list[_Token]) -> None:
        """Refuse letters in blocks that cannot be taken back, and letters beside them that leave a bias."""
        for t in tokens:
            kind = LETTERS[t.name[0]]
            if t.block is not None and not kind.reversible:
                raise self.refuse(
                    t.place,
                    f"{kind.symbol} ({kind.does}) cannot be taken back, as all that stands in M( ) must be: put it "
                    "outside, as in 'J M(BAGAB) O J'",
                )
            if t.block is None and not (kind.thermal or kind.apart):
                raise self.refuse(
                    t.place,
                    f"{kind.symbol} ({kind.does}) stands beside M( ), where nothing takes back what the timestep does "
                    "wrong: put it inside",
                )
        for block in sorted({t.block for t in tokens if t.block is not None}):
            own = [t for t in tokens if t.block == block]
            self.check_palindrome(
                [_name(t) for t in own], [t.place for t in own], "the block",
                "A block must lead back when all momenta are reversed",
            )  # fmt: skip


def _name(token: _Token) -> str:
    return token.name if len(token.name) == 1 else f"B{int(token.name[1:])}"


def parse_word(word: str, symmetric: bool = True) -> tuple[Letter, ...]:
    """Read a word into letters, compact (``"BAGOGAB"``) or spaced (``"B1 B0 A G O G A B0 B1"``), with blocks
    (``"M(BAGAB) O"``).

    Raises
    ------
    ParameterError
        Anything that is not a letter, A or B missing, kicks with and without groups mixed, or a word that is not a
        palindrome though `symmetric`. Blocks that are not closed, are not palindromes, or have letters inside or beside
        them that cannot stand there. The message shows the word with a caret under the place.
    """
    if not isinstance(word, str):
        raise ParameterError(f"word must be text of the letters {', '.join(_letters(False))}, not {word!r}")
    text = _Word(word)
    refuse = text.refuse
    tokens = list(text.tokens())
    alone = [t for t in tokens if LETTERS[t.name[0]].alone]
    if alone and (len(alone) > 1 or any(not LETTERS[t.name[0]].apart for t in tokens if t is not alone[0])):
        raise refuse(
            alone[0].place, "D moves beads without velocities: it is a word of its own, which only J may stand around"
        )
    for letter in "" if alone else "AB":
        if not any(t.name[0] == letter for t in tokens):
            raise refuse(len(word), f"the word has no {letter} ({LETTERS[letter].does})")
    kicks = [t for t in tokens if t.name[0] == "B"]
    grouped = [len(t.name) > 1 for t in kicks]
    if any(grouped) and not all(grouped):
        t = kicks[grouped.index(not grouped[0])]
        raise refuse(
            t.place, f"{t.name} mixes kicks by all forces (B) with kicks by a group (B0, B1, ...): use one or the other"
        )
    for t in kicks:
        if len(t.name) > 1 and int(t.name[1:]) > 31:
            raise refuse(t.place, f"{t.name} names a force group that does not exist: groups are 0 to 31")
    names = [_name(t) for t in tokens]
    if any(t.block is not None for t in tokens):
        # Letters beside blocks leave the distribution as it is, in whatever order.
        text.check_blocks(tokens)
    elif symmetric:
        text.check_palindrome(
            names, [t.place for t in tokens], "the word",
            "Only palindromes are of second order; symmetric=False allows others",
        )  # fmt: skip
    count = Counter(names)
    return tuple(
        Letter(name[0], 1.0 / count[name], int(name[1:]) if len(name) > 1 else None, block=t.block)
        for name, t in zip(names, tokens, strict=True)
    )


def in_parts(letters: Iterable[Letter]) -> list[tuple[int | None, tuple[Letter, ...]]]:
    """Group letters that follow each other in one block, or outside of all, with the number of the block."""
    return [(block, tuple(own)) for block, own in groupby(letters, lambda letter: letter.block)]


# Weights of the symmetric steps of order 2 that one of a higher order is composed of, by their number: the first half;
# the one in the middle makes their sum 1. tests/test_compositions.py solves the order conditions for them again.
_OUTER = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
_FIFTH = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))
COMPOSITIONS: dict[int, dict[int, tuple[float, ...]]] = {
    4: {
        # Yoshida, Phys. Lett. A 150, 262 (1990).
        3: (_OUTER,),
        # Suzuki, Phys. Lett. A 146, 319 (1990).
        5: (_FIFTH, _FIFTH),
    },
    6: {
        # Kahan & Li, Math. Comput. 66, 1089 (1997).
        9: (0.39216144400731413928, 0.33259913678935943860, -0.70624617255763935981, 0.08221359629355080023),
        # Yoshida (1990), solution A.
        7: (0.78451361047755726382, 0.23557321335935813368, -1.17767998417887100695),
    },
    8: {
        # Kahan & Li (1997).
        17: (0.13020248308889008088, 0.56116298177510838456, -0.38947496264484728641, 0.15884190655515560090,
             -0.39590389413323757734, 0.18453964097831570709, 0.25837438768632204729, 0.29501172360931029887),
        # McLachlan, SIAM J. Sci. Comput. 16, 151 (1995).
        15: (0.74167036435061295345, -0.40910082580003159400, 0.19075471029623837995, -0.57386247111608226666,
             0.29906418130365592384, 0.33462491824529818378, 0.31529309239676659663),
    },
}  # fmt: skip


def weights_of(order: int, parts: int | None) -> tuple[float, ...]:
    """Return the weights of the steps of order 2 that make one of an order, (1.0,) of order 2.

    Raises
    ------
    ParameterError
        An order, or a number of parts, of which no composition is here.
    """
    if order != 2 and order not in COMPOSITIONS:
        raise ParameterError(f"order = {order} but must be 2, 4, 6 or 8")
    known = {1: ()} if order == 2 else COMPOSITIONS[order]
    if parts is None:
        parts = next(iter(known))
    if parts not in known:
        raise ParameterError(f"parts = {parts} but must be {' or '.join(map(str, known))} where order = {order}")
    half = known[parts]
    return (*half, 1.0 - 2.0 * sum(half), *half[::-1])


def _composed(letters: tuple[Letter, ...], weights: tuple[float, ...]) -> tuple[Letter, ...]:
    """Return letters once for each weight, for that part of their time."""
    return tuple(
        replace(letter, fraction=weight * letter.fraction, substep=weight) for weight in weights for letter in letters
    )


def compose(letters: tuple[Letter, ...], word: str, order: int, weights: tuple[float, ...]) -> tuple[Letter, ...]:
    """Return the word several times over, with these weights; O before and after all of it. Of a word with blocks each
    block.

    Raises
    ------
    ParameterError
        A word that is not a palindrome, D, or O between other letters.
    """
    if any(letter.block is not None for letter in letters):
        parts = [own if block is None else _composed(own, weights) for block, own in in_parts(letters)]
        return tuple(chain.from_iterable(parts))
    kinds = [(letter.kind, letter.group) for letter in letters]
    outer = 0
    while outer < len(letters) and (letters[outer].kind == "O" or LETTERS[letters[outer].kind].apart):
        outer += 1
    inner = letters[outer : len(letters) - outer]
    if kinds != kinds[::-1] or any(LETTERS[letter.kind].alone for letter in letters):
        raise ParameterError(f"the word {word!r} is not a palindrome without D: order={order} composes those only")
    jumping = next((letter.kind for letter in inner if LETTERS[letter.kind].apart), None)
    if jumping is not None:
        raise ParameterError(
            f"order={order} has a part that goes back in time, which jumps cannot: put {jumping} outside of the word "
            f"{word!r}"
        )
    if any(LETTERS[letter.kind].thermal for letter in inner):
        inside = " ".join(part for part in word.split() if part != "O")
        raise ParameterError(
            f"order={order} has a part that goes back in time, which friction and noise cannot: the word {word!r} has "
            f"O inside. Put it outside, 'O {inside} O'"
        )
    return (*letters[:outer], *_composed(inner, weights), *letters[len(letters) - outer :])


@functools.cache
def highest_stable(letters: tuple[Letter, ...], group: int | None, beyond: float) -> float:
    """Return the ωh up to which a word keeps a harmonic mode of frequency ω bounded; `beyond`, if it is all that way.

    That is where the trace of a step first leaves -2 to 2. Kicks by a group act on the mode (None: all).
    """

    def excess(wh: np.ndarray) -> np.ndarray:
        step = np.broadcast_to(np.eye(2), (len(wh), 2, 2)).copy()
        for letter in letters:
            # Rows are position and velocity over ω.
            if letter.kind == "A":
                step[:, 0] += letter.fraction * wh[:, None] * step[:, 1]
            elif letter.kicks(group):
                step[:, 1] -= letter.fraction * wh[:, None] * step[:, 0]
        return abs(step[:, 0, 0] + step[:, 1, 1]) - 2.0

    wh = np.linspace(0.0, beyond, int(1000.0 * beyond))
    unstable = np.flatnonzero(excess(wh) > 1e-9)
    if not len(unstable):
        return beyond
    low, high = wh[unstable[0] - 1], wh[unstable[0]]
    while high - low > 1e-12:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(np.array([middle]))[0] <= 0.0 else (low, middle)
    return float(low)
