"""Networks of reactions from files of other programs: BNGL and SBML."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from medyanpy._tools.arithmetic import value_of
from medyanpy._tools.species import wrong_species
from medyanpy._tools.validation import number
from medyanpy.errors import ParameterError, shown
from medyanpy.jumps._reaction_texts import MOST_REACTANTS, Reaction
from medyanpy.pools import Pool

__all__ = ["Network", "read_network"]

#: Larger files are not models that people write.
MOST_BYTES = 64_000_000
# Blocks of BNGL that are read, and those that describe what is looked at, not what happens.
_READ = {"parameters", "molecule types", "species", "seed species", "reaction rules"}
_SKIPPED = {"observables", "actions"}
_NAME = r"[A-Za-z_]\w*"
_PATTERN = re.compile(rf"({_NAME})\s*(?:\(\s*\))?")
_ARROW = re.compile(r"<->|->")


@dataclass(frozen=True)
class Network:
    """Species and reactions of a well-mixed volume, as `read_network` finds them.

    Attributes
    ----------
    volume : float, nm³
    counts : dict of int
        Molecules of each species at the start.
    concentrations : dict of float, 1/nm³
        Of species that the file keeps constant.
    reactions : tuple of Reaction
        With their rates, as `Reactions` takes them.
    left_out : tuple of str
        What the file holds besides, a line each: observables, actions.
    """

    volume: float
    counts: Mapping[str, int]
    concentrations: Mapping[str, float]
    reactions: tuple[Reaction, ...]
    left_out: tuple[str, ...] = ()

    def pool(self, name: str | None = None) -> Pool:
        """Make a pool with these molecules.

        Raises
        ------
        ParameterError
            A name that is not text.
        """
        return Pool(self.volume, self.counts, self.concentrations, name=name)


def read_network(path: Any, *, volume: float | None = None, concentration: float | None = None) -> Network:
    """Read species, their numbers at the start, and reactions from a file in BNGL or SBML.

    Parameters
    ----------
    path : path
        A file that ends in ``.bngl``, ``.xml`` or ``.sbml``.
    volume : float, nm³, > 0, optional
        Of BNGL, whose files have none. SBML tells its own.
    concentration : float, 1/nm³, > 0, optional
        Of BNGL in concentrations: the unit of its amounts and rates, such as ``mp.units.micromolar``. Amounts are
        numbers of molecules, and rates those of molecules, where none is given.

    Returns
    -------
    Network
        Its numbers of molecules are rounded to whole ones.

    Raises
    ------
    ParameterError
        A file that cannot be read. What pools do not have, with its line: components and bonds of molecules,
        compartments, rates that are not those of mass action, more than three molecules that meet, rules, events and
        delays. SBML without units of amount, volume or time.
    ImportError
        SBML without the package python-libsbml.

    Notes
    -----
    Times are in seconds in BNGL, and in SBML what its units say. A rule ``A + A -> B k`` of BNGL has the rate k for
    each pair of molecules. That is half of k n (n - 1), as the `Reaction` that is made of it shows.

    References
    ----------
    J. R. Faeder, M. L. Blinov, W. S. Hlavacek, Methods Mol. Biol. 500, 113 (2009): BNGL. M. Hucka et al., J. Integr.
    Bioinform. 16, 20190021 (2019): SBML Level 3 Version 2.

    Examples
    --------
    >>> import medyanpy as mp
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bngl"
    >>> _ = path.write_text('''
    ... begin parameters
    ...   kf 1e-3
    ... end parameters
    ... begin seed species
    ...   A() 100
    ...   B() 0
    ... end seed species
    ... begin reaction rules
    ...   A() <-> B() kf, 2*kf
    ... end reaction rules
    ... ''')
    >>> network = mp.jumps.read_network(path, volume=1e7)
    >>> [str(reaction) for reaction in network.reactions]
    ['A <-> B; k_on = 0.001, k_off = 0.002']
    >>> system = mp.System(mp.Topology())
    >>> pool = system.add_pool(network.pool())
    >>> react = system.add_jump(mp.jumps.Reactions(pool, network.reactions))
    """
    what = "read_network"
    file = Path(path)
    if volume is not None:
        number(f"{what}: volume", volume, above=0.0)
    if concentration is not None:
        number(f"{what}: concentration", concentration, above=0.0)
    ending = file.suffix.lower()
    if ending not in (".bngl", ".xml", ".sbml"):
        raise ParameterError(f"{what}: {file} ends in {ending!r}, but networks are read from .bngl, .xml and .sbml")
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as cause:
        raise ParameterError(f"{what}: {file} cannot be read: {cause.strerror or cause}") from cause
    except UnicodeDecodeError as cause:
        raise ParameterError(f"{what}: {file} is not text in UTF-8") from cause
    if len(data) > MOST_BYTES:
        raise ParameterError(f"{what}: {file} has more than {MOST_BYTES} bytes")
    if ending != ".bngl":
        if volume is not None or concentration is not None:
            raise ParameterError(f"{what}: {file} is SBML, which tells its units: leave out volume= and concentration=")
        from medyanpy.jumps._sbml import read_sbml

        return read_sbml(f"{what}: {file}", text)
    if volume is None:
        raise ParameterError(f"{what}: {file} is BNGL, which has no volume: give volume= (nm³)")
    return _Bngl(f"{what}: {file}", volume, concentration).read(text)


class _Bngl:
    """Reader of a file, whose lines are taken one after the other."""

    def __init__(self, what: str, volume: float, concentration: float | None) -> None:
        self.what = what
        self.volume = volume
        #: Molecules in a unit of amount.
        self.unit = 1.0 if concentration is None else concentration * volume
        self.names: dict[str, float] = {}
        self.amounts: dict[str, float] = {}
        self.constant: set[str] = set()
        self.reactions: list[Reaction] = []
        self.left_out: list[str] = []
        self.line = 0

    def refuse(self, problem: str) -> NoReturn:
        raise ParameterError(f"{self.what}, line {self.line}: {problem}")

    def read(self, text: str) -> Network:
        block, began = "", 0
        for self.line, line in _lines(text):
            words = line.split()
            if words[0] == "begin" and len(words) > 1:
                name = " ".join(words[1:])
                if block:
                    self.refuse(f"begin {name}, but {block} of line {began} has not ended")
                if name == "model":
                    continue
                if name not in _READ | _SKIPPED:
                    self.refuse(f"pools have no {name}: species, parameters and reaction rules are read")
                block, began = name, self.line
            elif words[0] == "end" and len(words) > 1:
                name = " ".join(words[1:])
                if name != (block or "model"):
                    self.refuse(f"end {name}, but {block or 'no block'} has begun")
                block = ""
            elif not block or block in _SKIPPED:
                # Outside of blocks stand actions, that simulate and plot.
                self.left_out.append(f"line {self.line}: {line}")
            else:
                getattr(self, f"take_{block.split()[-1]}")(line)
        if block:
            self.refuse(f"{block} of line {began} has not ended")
        if not self.reactions:
            self.refuse("there is no reaction rule")
        counts, concentrations = {}, {}
        for name, amount in self.amounts.items():
            if name in self.constant:
                concentrations[name] = amount / self.volume
            else:
                counts[name] = round(amount)
        for reaction in self.reactions:
            for name in reaction.species:
                if name not in concentrations:
                    counts.setdefault(name, 0)
        return Network(
            self.volume, MappingProxyType(counts), MappingProxyType(concentrations), tuple(self.reactions),
            tuple(self.left_out),
        )  # fmt: skip

    def take_parameters(self, line: str) -> None:
        found = re.fullmatch(rf"(?:\d+\s+)?({_NAME})\s*[=\s]\s*(.+)", line)
        if not found:
            self.refuse(f"{shown(line)} must be a name and its number")
        name, text = found.groups()
        if name in self.names:
            self.refuse(f"the parameter {name} is given twice")
        self.names[name] = self.number(text)

    def take_types(self, line: str) -> None:
        self.species(line)

    def take_species(self, line: str) -> None:
        found = re.fullmatch(r"(?:\d+\s+)?(\$?)\s*((?:[^\s()]|\([^()]*\))+)\s*(.*)", line)
        constant, pattern, text = found.groups() if found else ("", line, "")
        name = self.species(pattern)
        if not text:
            self.refuse(f"{name} has no amount")
        if name in self.amounts:
            self.refuse(f"the amount of {name} is given twice")
        amount = self.number(text) * self.unit
        if amount < 0.0 or amount > 2.0**53:
            self.refuse(f"{name} is {amount:g} molecules, but must be >= 0 and <= 2**53")
        self.amounts[name] = amount
        if constant:
            self.constant.add(name)

    def take_rules(self, line: str) -> None:
        rule = re.sub(rf"^(?:\d+\s+(?=[A-Za-z_])|{_NAME}\s*:\s*)", "", line)
        arrows = list(_ARROW.finditer(rule))
        if len(arrows) != 1:
            self.refuse(f"{shown(line)} must have one arrow, '->' or '<->'")
        arrow = arrows[0]
        reactants, rest = self.side(rule[: arrow.start()], whole=True)
        products, text = self.side(rule[arrow.end() :])
        assert rest == ""
        both = arrow.group() == "<->"
        rates = _apart(text)
        if len(rates) != 1 + both:
            self.refuse(f"{'two rates' if both else 'one rate'} must stand behind the products, not {shown(text)}")
        names = ("k_on", "k_off") if both else ("rate",)
        numbers = {}
        for name, rate, side in zip(names, rates, (reactants, products), strict=False):
            if re.search(r"\b(Sat|MM|Hill|Arrhenius|FunctionProduct|DeleteMolecules|MatchOnce|TotalRate)\b", rate):
                self.refuse(f"{shown(rate)} is not a rate of mass action")
            value = self.number(rate)
            if value < 0.0:
                self.refuse(f"the rate {shown(rate)} is {value:g}, but must be >= 0")
            numbers[name] = value * self.per_reaction(side)
        if len(reactants) > MOST_REACTANTS or (both and len(products) > MOST_REACTANTS):
            self.refuse(f"more than {MOST_REACTANTS} molecules would have to meet: write it as steps")
        try:
            self.reactions.append(Reaction(reactants, products, reversible=both, numbers=numbers))
        except ParameterError as cause:
            self.refuse(str(cause))

    def per_reaction(self, side: tuple[str, ...]) -> float:
        """Return what makes of a rate for each set of molecules (in units of amount) that of `Reaction`."""
        same = 1.0
        for n in Counter(side).values():
            same *= factorial(n)
        order = len(side) - 1
        return (self.volume / self.unit) ** order / same if side else self.unit / self.volume

    def side(self, text: str, whole: bool = False) -> tuple[tuple[str, ...], str]:
        """Read molecules with + between them, and what stands behind them."""
        names: list[str] = []
        rest = text.strip()
        zero = re.match(r"(?:0|Trash)\b(?:\s*\(\s*\))?", rest)
        if zero:
            rest = rest[zero.end() :].strip()
        else:
            while True:
                found = _PATTERN.match(rest)
                if not found:
                    self.refuse(f"there is no molecule in {shown(rest)}")
                behind = rest[found.end() :].lstrip()
                if behind[:1] in ("(", ".", "!", "~", "@", "%", "{"):
                    self.species(rest.split("+")[0].split()[0])
                names.append(self.species(found.group()))
                rest = behind
                if not rest.startswith("+"):
                    break
                rest = rest[1:].lstrip()
        if whole and rest:
            self.refuse(f"{shown(rest)} stands behind the molecules of the left side")
        return tuple(names), rest

    def species(self, pattern: str) -> str:
        found = _PATTERN.fullmatch(pattern.strip())
        if not found:
            self.refuse(
                f"{shown(pattern.strip())} has components, bonds or a compartment, which molecules of pools do not have"
            )
        name = found.group(1)
        if problem := wrong_species(name):
            self.refuse(f"{shown(name)} {problem}")
        return name

    def number(self, text: str) -> float:
        try:
            return value_of(text, self.names)
        except ParameterError as cause:
            self.refuse(str(cause))


def _lines(text: str) -> list[tuple[int, str]]:
    """Return lines without comments and blanks, those that end in a backslash as one, with numbers from 1."""
    out: list[tuple[int, str]] = []
    held, start = "", 0
    for n, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        start = start or n
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        if whole := (held + line).strip():
            out.append((start, whole))
        held, start = "", 0
    if held.strip():
        out.append((start, held.strip()))
    return out


def _apart(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[begin:k].strip())
            begin = k + 1
    return [*parts, text[begin:].strip()] if text.strip() else []
