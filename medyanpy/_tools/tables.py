"""Tables that describe an object: as text for `print`, and as HTML for notebooks, from the same rows."""

import html
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from medyanpy.errors import shortened

__all__ = ["Displayed", "Page", "Table", "aligned", "amount", "named", "of_all", "quantity"]

# Rows shown of longer tables, and letters shown of longer cells.
MOST_ROWS, MOST_LETTERS = 24, 100
_A_NUMBER = re.compile(r"[-+]?(\d[\d,]*(\.\d+)?(e[-+]?\d+)?|nan|inf)|–|")


class Table(NamedTuple):
    """Rows of cells below their head; without a head, pairs of a title and its value."""

    title: str
    rows: Sequence[tuple[str, ...]]
    head: tuple[str, ...] = ()

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """Rows, cut where there are many; the last tells how many are left out."""
        rows = [tuple(shortened(cell.replace("\n", " "), MOST_LETTERS) for cell in row) for row in self.rows]
        if len(rows) <= MOST_ROWS:
            return rows
        left = len(rows) - MOST_ROWS + 1
        return [*rows[: MOST_ROWS - 1], (f"and {left:,} more", *[""] * (len(rows[0]) - 1))]

    @property
    def numbers(self) -> list[bool]:
        """Flags of the columns that are of numbers; the first is of names."""
        columns = enumerate(zip(*self.shown, strict=True))
        return [k > 0 and bool(self.head) and all(map(_A_NUMBER.fullmatch, column)) for k, column in columns]


class Page(NamedTuple):
    """Tables below a title and one line about it, those without rows left out; notes are below the tables."""

    title: str
    said: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Return columns of letters."""
        lines = [f"{self.title}: {self.said}" if self.said else self.title]
        for table in self.tables:
            if table.rows:
                head = [(table.title, *table.head[1:])] if table.head else []
                named = [] if table.head or not table.title else [table.title]
                lines += ["", *named, *aligned([*head, *table.shown], table.numbers)]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes])

    def html(self) -> str:
        """Return tables beside each other as far as there is room, in the colours of the page that they are in."""
        tables = "".join(map(_html, (table for table in self.tables if table.rows)))
        notes = "".join(f'<div style="opacity:0.7">{html.escape(note)}</div>' for note in self.notes)
        return (
            f'<div><div style="margin-bottom:0.5em"><b>{html.escape(self.title)}</b> {html.escape(self.said)}</div>'
            f'<div style="display:flex;flex-wrap:wrap;gap:0.5em 2.5em;align-items:flex-start">{tables}</div>{notes}'
            "</div>"
        )


class Displayed:
    """Objects that notebooks show as tables, and `print` as text."""

    @abstractmethod
    def _page(self) -> Page:
        """Return the tables as they are now. Making them changes nothing and takes no noticeable time."""

    def _repr_html_(self) -> str | None:
        # A display must not hide what went wrong before it: without HTML, a notebook takes the text.
        try:
            return self._page().html()
        except Exception:
            return None

    def __str__(self) -> str:
        try:
            return self._page().text()
        except Exception:
            return repr(self)


def aligned(rows: Sequence[tuple[str, ...]], to_the_right: Sequence[bool] | None = None) -> list[str]:
    """Return lines whose cells stand below each other, two blanks apart; columns `to_the_right` end below each
    other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [False] * len(widths) if to_the_right is None else to_the_right
    return [
        "  ".join(
            cell.rjust(w) if ends else cell.ljust(w) for cell, w, ends in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]


def _html(table: Table) -> str:
    rows, numbers = table.shown, table.numbers

    def line(cells: Iterable[str], tag: str, more: str = "") -> str:
        sides = ("right" if is_number else "left" for is_number in numbers)
        style = f"padding:1px 1em 1px 0;{more}"
        made = (
            f'<{tag} style="text-align:{side};{style}">{html.escape(cell)}</{tag}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    head = (table.title, *table.head[1:]) if table.head else (table.title, *[""] * (len(rows[0]) - 1))
    top = line(head, "th", "border-bottom:1px solid currentColor") if any(head) else ""
    body = "".join(line(row, "td") for row in rows)
    return f'<table style="border-collapse:collapse;margin:0">{top}{body}</table>'


def amount(value: Any) -> str:
    """Return a number for a cell; "–" where there is none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{float(value):.6g}"


def named(name: str, one: object) -> str:
    """Return a name, with the class of the object where the name does not tell it."""
    kind = type(one).__name__
    return name if name.startswith(kind) else f"{name} ({kind})"


def quantity(value: Any, unit: str) -> str:
    """Return a number and its unit."""
    return f"{amount(value)} {unit}".rstrip() if value is not None else "–"


def of_all(values: Any) -> str:
    """Return one number of many items as text: the one that all have, or the lowest and the highest."""
    if values is None:
        return "–"
    a = np.asarray(values)
    if a.dtype.kind not in "iuf":
        return shortened(str(values), MOST_LETTERS)
    known = a[np.isfinite(a)] if a.dtype.kind == "f" else a
    if not known.size:
        return "–"
    low, high = known.min(), known.max()
    return amount(low) if low == high else f"{amount(low)} to {amount(high)}"
