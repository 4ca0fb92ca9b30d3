"""The letters of words, as a table: what each is called, what it needs, and what it does to all beads.

What a letter does to one kind of bead besides, or instead, stands with the kind: methods ``before_a``,
``in_place_of_o``, ``after_b`` of its `Flow`. A letter of another package is one entry more: `add_letter`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.letters.kick import Kick
from medyanpy._kernels.selected import brownian, drift, geodesic, thermostat
from medyanpy.core.flows import euler_maruyama, leimkuhler_matthews, ornstein_uhlenbeck
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy.core.flows import Stage
    from medyanpy.core.words import Letter
    from medyanpy.engine.schedule import Schedule

__all__ = ["LETTERS", "LetterKind", "add_letter"]


@dataclass(frozen=True)
class LetterKind:
    """Kind of letter.

    Attributes
    ----------
    symbol : str
        One capital letter of A to Z.
    does : str
        In a few words, for messages.
    operations : callable (Schedule, Letter, Stage) -> list of Operation
        What it does to all beads of a Context, for a time ``stage.h``. A letter that gives none, and around which no
        kind of bead does anything, is left out of the word.
    thermal : bool
        Whether it draws random numbers at a temperature: its work is heat, and it cannot go back in time.
    forces : bool
        Whether it applies forces, of all groups or of one (``B1``).
    adds_up : bool
        Whether two that meet are one of twice the time, exactly.
    alone : bool
        Whether it is a word of its own.
    apart : bool
        Whether no time passes in it for positions and momenta. Such letters stand around what is composed to a higher
        order, also around a letter that is a word of its own, and are numbered apart. In a system in which they have
        nothing to do, a word with them gives the same bits as without.
    reversible : bool
        Whether it leads back to where it started when all momenta are reversed, and keeps phase volume: only such
        letters may stand in a block M( ).
    """

    symbol: str
    does: str
    operations: "Callable[[Schedule, Letter, Stage], list[Any]]"
    thermal: bool = False
    forces: bool = False
    adds_up: bool = False
    alone: bool = False
    apart: bool = False
    reversible: bool = False


LETTERS: dict[str, LetterKind] = {}


def add_letter(kind: LetterKind) -> LetterKind:
    """Let words have one letter more.

    Raises
    ------
    ParameterError
        A symbol that is not a capital letter of A to Z, or that is taken.
    """
    symbol = kind.symbol
    if not (isinstance(symbol, str) and len(symbol) == 1 and "A" <= symbol <= "Z"):
        raise ParameterError(f"add_letter: symbol must be one capital letter of A to Z, not {symbol!r}")
    if symbol in LETTERS:
        raise ParameterError(f"add_letter: {symbol} is taken: {LETTERS[symbol].does}")
    LETTERS[symbol] = kind
    return kind


def _kick(schedule: "Schedule", letter: "Letter", stage: "Stage") -> list[Any]:
    return [Kick(schedule.force_sums[letter.group], stage.h, schedule.rule(letter))]


def _fly(schedule: "Schedule", _: "Letter", stage: "Stage") -> list[Any]:
    return schedule.store.looked_at([drift.Drift(stage.h, schedule.store.before)])


def _fly_over_meshes(schedule: "Schedule", _: "Letter", stage: "Stage") -> list[Any]:
    store = schedule.store
    return [geodesic.Geodesic(stage.h, store.corners)] if store.layout.n_points else []


def _mix(schedule: "Schedule", _: "Letter", stage: "Stage") -> list[Any]:
    coefficients = schedule.coefficients(stage, ornstein_uhlenbeck, schedule.store.inverse_of_the_living)
    return [thermostat.Thermostat(stage.index, *coefficients)]


def _displace(schedule: "Schedule", letter: "Letter", stage: "Stage") -> list[Any]:
    """Return the operations of a displacement by forces, which are first added up."""
    forces, store = schedule.force_sums[letter.group], schedule.store
    movable = store.inverse_of_the_living > 0.0
    if not schedule.integrator._in_flights:
        coefficients = schedule.coefficients(stage, euler_maruyama, movable)
        c1, c2 = (c[: schedule.layout.first_oriented] for c in coefficients)
        return [forces, *store.looked_at([brownian.Displacement(stage.index, forces, c1, c2)])]
    c1, c2 = schedule.coefficients(stage, leimkuhler_matthews, movable)
    kept = schedule.remembered.setdefault("noise", np.zeros((schedule.layout.n, 3)))
    kick, half, over, noise = (replace(stage, kind=kind, h=0.5 * stage.h) for kind in "BAGO")
    fly = schedule.around(half, _fly(schedule, letter, half))
    points = _fly_over_meshes(schedule, letter, over)
    fly_over = schedule.around(over, points) if points else []
    # B, A, G, O, G, A of beads with the masses γh/2.
    return [
        *schedule.around(kick, [brownian.Restore(kept), Kick(forces, 2.0 / stage.h, rates=c1)]), *fly, *fly_over,
        *schedule.around(noise, [thermostat.Thermostat(stage.index, np.zeros(len(c2)), c2)]), *fly_over, *fly,
        brownian.Keep(kept),
    ]  # fmt: skip


def _jump(schedule: "Schedule", _: "Letter", stage: "Stage") -> list[Any]:
    return schedule.jumps_at(stage)


add_letter(LetterKind("A", "flight of the beads", _fly, adds_up=True, reversible=True))
add_letter(LetterKind("B", "kick by the forces", _kick, forces=True, reversible=True))
add_letter(LetterKind("G", "flight of in-triangle points over their mesh", _fly_over_meshes, reversible=True))
add_letter(LetterKind("J", "jumps: what happens at once", _jump, apart=True))
add_letter(LetterKind("O", "friction and noise", _mix, thermal=True))
add_letter(LetterKind("D", "displacement without velocities", _displace, thermal=True, forces=True, alone=True))
