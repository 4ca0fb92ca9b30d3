"""Flows: what the letters of a word do to a kind of bead beyond what they do to every bead."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy._kernels.letters.kick import ForceSum
    from medyanpy.core.words import Letter

__all__ = ["ConstraintFlow", "Flow", "Stage", "euler_maruyama", "ornstein_uhlenbeck", "paired"]


@dataclass(frozen=True)
class Stage:
    """Letter of a word, as a Context compiles it.

    Attributes
    ----------
    index : int
        Place of the letter in the word.
    kind : str
        Its symbol: ``"A"``, ``"B"``, ``"D"``, ``"G"``, ``"O"`` or one that `add_letter` has added.
    h : float, s
        For how long the letter runs.
    kT : float or None, pN nm
    rotation : str
        How A turns beads with an orientation: "split" or "exact".
    of_pair : int
        1 or 2 of the first and the second of A and G, of the same time, between which constraints on in-triangle points
        do not hold; see `paired`. 0 of all others.
    """

    index: int
    kind: str
    h: float
    kT: float | None  # noqa: N815 - the symbol of the papers
    rotation: str = "split"
    of_pair: int = 0


def paired(word: "Sequence[tuple[Stage, Letter]]", what: str, text: str) -> "list[tuple[Stage, Letter]]":
    """Return a word in which A and G that follow each other are pairs of the same time, cut in two where need be: A and
    G add up. A G A of a half, one and a half is A G and G A.

    Raises
    ------
    ParameterError
        A or G without such a partner; `what` asks for pairs in the word `text`.
    """
    out: list[tuple[Stage, Letter]] = []
    groups = groupby(word, lambda pair: (pair[0].kind in ("A", "G"), pair[1].block, pair[1].substep))
    for (flies, _, _), group in groups:
        if not flies:
            out += group
            continue
        rest = list(group)
        while rest:
            (stage, letter), after = rest[0], rest[1:2]
            if not after or (after[0][0].h > 0.0) != (stage.h > 0.0):
                raise ParameterError(
                    f"the word {text!r} has {stage.kind} for {abs(stage.h):.6g} without "
                    f"{'AG'[stage.kind == 'A']} beside it, but {what} holds in-triangle points, which move in both: "
                    "they must stand together for the same time, as in BAGOGAB, BGAOAGB or BAGAB"
                )
            other, its = after[0]
            if other.kind == stage.kind:
                rest[:2] = [(replace(stage, h=stage.h + other.h), letter)]
                continue
            h = min(stage.h, other.h, key=abs)
            out += [(replace(stage, h=h, of_pair=1), letter), (replace(other, h=h, of_pair=2), its)]
            # What is left by rounding is nothing.
            rest[:2] = [(replace(one, h=one.h - h), of) for one, of in (rest[0], after[0])
                        if abs(one.h - h) > 1e-9 * abs(h)]  # fmt: skip
    return out


def ornstein_uhlenbeck(
    friction: np.ndarray, h: float, kT: float, inverse_mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return c1 and c2 of O for a time h; 1 and 0 where the inverse mass is 0, as without friction."""
    exponent = friction * (h * inverse_mass)
    # 1 - c1^2, without cancellation where friction is small.
    return np.exp(-exponent), np.sqrt(-np.expm1(-2.0 * exponent) * (kT * inverse_mass))


def euler_maruyama(
    friction: np.ndarray, h: float, kT: float, movable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return c1 and c2 of D for a time h, x <- x + c1 F + c2 xi; 0 without friction, and for beads that are not
    movable."""
    moves = movable & (friction > 0.0)
    c1 = np.divide(h, friction, out=np.zeros(len(friction)), where=moves)
    return c1, np.sqrt(2.0 * kT * c1)


def leimkuhler_matthews(
    friction: np.ndarray, h: float, kT: float, movable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return c1, as `euler_maruyama`, and c2 of D in two flights, v <- c2 xi."""
    c1, c2 = euler_maruyama(friction, h, kT, movable)
    return c1, (1.0 / h) * c2


class Flow:
    """Operations around the letters of a word, and in place of them.

    Every letter acts on all beads alike: B kicks, A drifts, O mixes in friction and noise. A kind of bead that
    needs more (a constraint, a rotation) has methods named after the letters: ``before_a(stage)``, ``after_b(stage)``
    and so on, each of which returns operations. ``in_place_of_o(stage)`` is its own O: the common one then leaves its
    beads alone. Of a letter that applies forces it is given their sum: ``in_place_of_d(stage, forces)``. A handle's
    `bind` makes the flow of its beads; see "How to give letters a meaning for a new kind of bead" in the documentation.
    An instrument that measures has something to do with all letters: it overrides `before` or `after`.

    Attributes
    ----------
    obstacle : str
        Why the letter D, which knows no velocities, cannot move these beads; empty where ``in_place_of_d`` does.
    obstacle_to_flights : str
        Likewise where D is two flights, around which flows do what they do around A, B and O.
    asks_for_pairs : str
        Name of what holds in-triangle points, for which A and G come in pairs (`paired`); empty of all others.
    mixed : bool
        Whether velocities of different beads mix in O: a Context sets it where beads feel each other through the fluid,
        which then do O and D together.
    """

    obstacle: str = "what holds or moves it is written for velocities"
    obstacle_to_flights: str = obstacle
    asks_for_pairs: str = ""
    mixed = False

    def before(self, stage: Stage) -> Sequence["Operation"]:
        """Return operations to run before a letter."""
        return self._own("before", stage)

    def after(self, stage: Stage) -> Sequence["Operation"]:
        """Return operations to run after a letter."""
        return self._own("after", stage)

    def in_place(self, stage: Stage, *given: "ForceSum") -> Sequence["Operation"]:
        """Return operations that are the letter for these beads, after those that are it for all others."""
        return self._own("in_place_of", stage, *given)

    def replaces(self, letter: str) -> bool:
        """Tell whether these beads have a letter of their own, which the common one leaves to them."""
        return hasattr(self, f"in_place_of_{letter.lower()}")

    def _own(self, when: str, stage: Stage, *given: "ForceSum") -> Sequence["Operation"]:
        method = getattr(self, f"{when}_{stage.kind.lower()}", None)
        return () if method is None else method(stage, *given)

    def tangent(self) -> Sequence["Operation"]:
        """Return operations that take out of velocities what these beads cannot have: run when velocities come from
        outside."""
        return ()

    def settle(self) -> Sequence["Operation"]:
        """Return operations that bring positions which come from outside to where these beads can be."""
        return ()

    def carry(self, before: "Flow", then: np.ndarray, now: np.ndarray) -> None:
        """Take over, after an edit of the topology, what `arrays` holds from the flow of the same handle before that.
        Of the beads that have stayed, (k,), `then` are their numbers in the handle before, and `now` after.

        Raises
        ------
        TopologyError
            Beads have come or gone, and this kind does not tell which beads its arrays are of: it has no method of its
            own.
        """
        theirs, own = before.arrays(), self.arrays()
        for name, array in own.items():
            if name not in theirs:
                continue
            if not np.array_equal(then, now) or theirs[name].shape != array.shape:
                raise TopologyError(
                    f"edit: {type(self).__name__} has arrays that steps change ({name}), and does not say what becomes "
                    "of them where beads come or go: it needs a method carry"
                )
            array[...] = theirs[name]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what steps change beyond positions and velocities: C-contiguous arrays, written in place. They are
        part of the last good state and of checkpoints; names are unique in a Context."""
        return {}


class ConstraintFlow(Flow):
    """Flow of constraints on plain beads. It projects by masses: in flights of D friction over mass must be one number
    for all beads that constraints connect, else there is an obstacle (docs/theory/brownian.md)."""

    obstacle_to_flights = ""
    #: What is in the way of flights where it is not.
    UNEVEN = "friction over mass differs among beads that constraints connect: give them masses with one ratio"

    def __init_subclass__(cls, holds: str = "constraints hold its beads", **options: Any) -> None:
        """Take how subclasses say that they hold beads."""
        super().__init_subclass__(**options)
        cls.obstacle = f"{holds}: give scheme='Leimkuhler-Matthews'"
