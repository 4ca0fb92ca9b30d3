"""Integrators: words of the letters A, B, G and O."""

import re
import weakref
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medyanpy import units
from medyanpy.described import Described
from medyanpy.errors import ParameterError
from medyanpy.validation import number, thermal_energy
from medyanpy.validation import seed as check_seed

if TYPE_CHECKING:
    from medyanpy.context import Context

__all__ = ["BAGOGABIntegrator", "Letter", "SplittingIntegrator", "VerletIntegrator"]

_TOKEN = re.compile(r"(B\d+|[ABGO])")


@dataclass(frozen=True)
class Letter:
    """One letter of a word: which flow, for which fraction of the timestep, and of which force group.

    `group` is None for a kick by all forces and for letters other than B.
    """

    kind: str
    fraction: float
    group: int | None = None


def parse_word(word: str, symmetric: bool = True) -> tuple[Letter, ...]:
    """Letters of a word, compact (``"BAGOGAB"``) or spaced (``"B1 B0 A G O G A B0 B1"``).

    Raises
    ------
    ParameterError
        Anything that is not a letter, A or B missing, kicks with and without groups mixed, or a word that is no
        palindrome though `symmetric`. The message shows the word with a caret under the place.
    """
    if not isinstance(word, str):
        raise ParameterError(f"word must be a string of the letters A, B, G, O, not {word!r}")

    def refuse(place: int, problem: str) -> ParameterError:
        return ParameterError(f"{problem}\n    {word}\n    {' ' * place}^")

    tokens: list[tuple[str, int]] = []
    place = 0
    upper = word.upper()
    while place < len(word):
        if word[place].isspace():
            place += 1
            continue
        found = _TOKEN.match(upper, place)
        if found is None:
            raise refuse(place, f"{word[place]!r} is not a letter of a word: A, B (or B0 to B31), G and O are")
        tokens.append((found.group(), place))
        place = found.end()
    for letter, meaning in (("A", "flight of the beads"), ("B", "kick by the forces")):
        if not any(t[0] == letter for t, _ in tokens):
            raise refuse(len(word), f"the word has no {letter} ({meaning})")
    kicks = [(t, p) for t, p in tokens if t[0] == "B"]
    grouped = [len(t) > 1 for t, _ in kicks]
    if any(grouped) and not all(grouped):
        t, p = kicks[grouped.index(not grouped[0])]
        raise refuse(p, f"{t} mixes kicks by all forces (B) with kicks by a group (B0, B1, ...): use one or the other")
    for t, p in kicks:
        if len(t) > 1 and int(t[1:]) > 31:
            raise refuse(p, f"{t} names a force group that does not exist: groups are 0 to 31")
    names = [t if len(t) == 1 else f"B{int(t[1:])}" for t, _ in tokens]
    if symmetric:
        for i, name in enumerate(names):
            if name != names[-1 - i]:
                raise refuse(
                    tokens[len(tokens) - 1 - i][1],
                    f"the word is no palindrome: letter {i + 1} is {name}, but letter {i + 1} from the end is "
                    f"{names[-1 - i]}. Only palindromes are of second order; symmetric=False allows others",
                )
    count = Counter(names)
    return tuple(
        Letter(name[0], 1.0 / count[name], int(name[1:]) if len(name) > 1 else None) for name in names
    )


class SplittingIntegrator(Described):
    """A word: letters from left to right, each for the timestep divided by how often it occurs.

    ======  ================================================================================================
    letter  flow
    ======  ================================================================================================
    B       kick of all velocities by the forces; ``B0``, ``B1``, ... by the forces of one group
    A       free flight of beads and vertices; in-triangle points ride along
    G       geodesic flight of in-triangle points over the mesh, with recoil on its vertices
    O       Ornstein-Uhlenbeck: friction and noise
    ======  ================================================================================================

    Parameters
    ----------
    word : str
        Compact or spaced, of either case.
    timestep : float, s, > 0
    temperature : float, kelvin, > 0
        Needed, this or `kT`, if the word has an O.
    kT : float, pN nm, > 0
        Instead of `temperature`; dimensionless work needs nothing else.
    seed : int, 0 to 2^64 - 1
        Of the noise. The same seed gives the same trajectory, bit for bit, on any number of threads.
    symmetric : bool
        Refuse words that are not palindromes.

    Raises
    ------
    ParameterError
        A word that cannot be read, or a number outside its domain.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.SplittingIntegrator("BAGOGAB", 2e-7, temperature=300.0)
    SplittingIntegrator('B A G O G A B', timestep=2e-07, kT=4.14195)
    >>> mp.SplittingIntegrator("BAXAB", 1e-7)
    Traceback (most recent call last):
      ...
    medyanpy.errors.ParameterError: 'X' is not a letter of a word: A, B (or B0 to B31), G and O are
        BAXAB
          ^
    """

    def __init__(
        self,
        word: str,
        timestep: float,
        *,
        temperature: float | None = None,
        kT: float | None = None,
        seed: int = 0,
        symmetric: bool = True,
    ) -> None:
        self._letters = parse_word(word, symmetric)
        self._timestep = number("timestep", timestep, above=0.0)
        self._kT = thermal_energy(temperature, kT)
        if self._kT is None and any(letter.kind == "O" for letter in self._letters):
            raise ParameterError(f"the word {self.word!r} has an O: it needs temperature= (kelvin) or kT= (pN nm)")
        self._seed = check_seed("seed", seed)
        self._context: weakref.ref[Context] | None = None

    @property
    def letters(self) -> tuple[Letter, ...]:
        return self._letters

    @property
    def word(self) -> str:
        """The word, spaced."""
        return " ".join(
            letter.kind if letter.group is None else f"{letter.kind}{letter.group}" for letter in self._letters
        )

    @property
    def timestep(self) -> float:
        """s"""
        return self._timestep

    @property
    def kT(self) -> float | None:  # noqa: N802 - the symbol of the papers
        """pN nm; None where the word needs none and none was given."""
        return self._kT

    @property
    def temperature(self) -> float | None:
        """kelvin, as kT in units of Boltzmann's constant."""
        return None if self._kT is None else self._kT / units.boltzmann

    @property
    def seed(self) -> int:
        return self._seed

    def step(self, n: int) -> None:
        """Advance the context of this integrator by n steps."""
        context = None if self._context is None else self._context()
        if context is None:
            raise ParameterError("this integrator drives no Context: make a Context or a Simulation with it first")
        context.step(n)

    def bind(self, context: "Context") -> None:
        """Called by the Context that this integrator is to drive."""
        if self._context is not None and self._context() is not None:
            raise ParameterError("this integrator already drives a Context: make one integrator for each")
        self._context = weakref.ref(context)

    def _arguments_now(self) -> dict[str, Any]:
        """The arguments it was made of; kT in place of the temperature, so that no rounding is repeated."""
        arguments = super()._arguments_now()
        if self._kT is not None and {"temperature", "kT"} <= arguments.keys():
            del arguments["temperature"]
            arguments["kT"] = self._kT
        return arguments

    def __repr__(self) -> str:
        thermal = "" if self._kT is None else f", kT={self._kT:g}"
        return f"{type(self).__name__}({self.word!r}, timestep={self._timestep:g}{thermal})"


class BAGOGABIntegrator(SplittingIntegrator):
    """Langevin dynamics of everything: B A G O G A B, which is BAOAB where there are no in-triangle points.

    Parameters
    ----------
    timestep, temperature, kT, seed
        As `SplittingIntegrator`.
    """

    def __init__(
        self,
        timestep: float,
        *,
        temperature: float | None = None,
        kT: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__("BAGOGAB", timestep, temperature=temperature, kT=kT, seed=seed)


class VerletIntegrator(SplittingIntegrator):
    """Constant energy: B A G A B, which is velocity Verlet where there are no in-triangle points.

    Parameters
    ----------
    timestep : float, s, > 0
    """

    def __init__(self, timestep: float) -> None:
        super().__init__("BAGAB", timestep)
