"""Names of species, as reactions are written with them."""

import re
from typing import Any

from medyanpy.errors import ParameterError, shown

__all__ = ["NOTHING", "check_species", "wrong_species"]

#: What stands for no molecules at all.
NOTHING = ("0", "∅")
_NAME = re.compile(r"[^\s+;,=<>→←↔⇌⇄]+")


def wrong_species(name: str) -> str:
    """Return what is wrong with the name of a species; empty for a good one."""
    if not name:
        return "has no name"
    if name in NOTHING:
        return "stands for no molecules: it cannot be added to others"
    if not _NAME.fullmatch(name):
        return "has a character that names of species cannot have: blanks and + ; , = < >"
    if name.isdecimal():
        return "is a number, not the name of a species"
    if counted := re.match(r"\d+(?=[^\W\d_])", name):
        n = counted.group()
        return f"begins with a number: write '{n} {name[len(n) :]}' for {n} molecules"
    return ""


def check_species(what: str, name: Any) -> str:
    """Return the name of a species, which reactions can be written with; raise a ParameterError for others."""
    if not isinstance(name, str):
        raise ParameterError(f"{what}: the species {shown(name)} must be text")
    if problem := wrong_species(name):
        raise ParameterError(f"{what}: the species {shown(name)} {problem}")
    return name
