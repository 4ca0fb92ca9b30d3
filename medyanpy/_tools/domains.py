"""Domains: which values a number that a user gives may have, one line of a table for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from medyanpy._tools.validation import bounds_in_words, number, per_item, vectors

__all__ = ["Domain", "domain_table"]


@dataclass(frozen=True)
class Domain:
    """The values that one number has: all are finite.

    Attributes
    ----------
    unit : str
        As docstrings have it; empty for plain numbers.
    above, at_least, below, at_most : float, optional
        Bounds, of each component.
    per : str, optional
        One for all, or one for each of an attribute of what the number belongs to, such as ``"rod.links"``. None: one.
    size : int, optional
        Components of a vector; None: no vector.
    or_number, optional : bool
        Whether one number stands for all components of a vector; whether it may be None.
    """

    unit: str = ""
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    per: str | None = None
    size: int | None = None
    or_number: bool = False
    optional: bool = False

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds by their names, where there are any."""
        names = ("above", "at_least", "below", "at_most")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def checked(self, what: str, value: Any, n: int | None = None) -> Any:
        """Return the value, clean: a float, or a read-only array; `n` is how many there are of `per`. Refuse anything
        else."""
        if value is None and self.optional:
            return None
        bounds: dict[str, Any] = self.bounds
        if self.size is not None:
            return vectors(what, value, n, size=self.size, or_number=self.or_number, **bounds)
        if self.per is None:
            return number(what, value, **bounds)
        return per_item(what, value, cast(int, n), **bounds)

    def in_words(self, many: str) -> str:
        """Return the text of a docstring after the colon, with `many`, as ``"(B,)"``, for how many there are of
        `per`."""
        one = "float" if self.size is None else f"({self.size},)"
        each = f"{many} float" if self.size is None else f"({many.strip('(,)')}, {self.size}) float"
        shapes = (["float"] if self.or_number else []) + [one] + ([each] if self.per else [])
        shape = ", ".join(shapes[:-1]) + " or " + shapes[-1] if len(shapes) > 1 else shapes[0]
        shape += " float" * (not shape.endswith("float"))
        return ", ".join(filter(None, (shape, self.unit, bounds_in_words(self.bounds) or "finite")))


def domain_table(**domains: Domain) -> Mapping[str, Domain]:
    """Return a read-only table of domains by the names of numbers, in this order."""
    return MappingProxyType(domains)
