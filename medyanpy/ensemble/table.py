"""The results of an ensemble: a row for each replica."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from medyanpy._tools.names import look_up
from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.tables import Displayed, Page, aligned
from medyanpy._tools.tables import Table as Shown
from medyanpy._tools.validation import file_path
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    import pandas

__all__ = ["Table"]

#: Columns of every table, between parameters and results.
FIXED = ("replica", "seed", "steps", "status", "error")
# Characters of a cell that are shown.
_WIDTH = 24


class Table(Displayed):
    """Table of the outcome of each replica, row by row in the order of the parameters, and of the analysis.

    Columns are the parameters and:

    - ``replica``: its number among those of the same parameters;
    - ``seed``, and ``steps`` taken;
    - ``status``: ``"done"``, ``"unfinished"`` (time was up: call again) or ``"failed"``;
    - ``error``: what a failed one has raised, or None;
    - what ``analyse`` returned: its keys, or ``result``.

    Attributes
    ----------
    columns : tuple of str
    directories : tuple of Path, or None
        The folders of the replicas, row by row.
    tracebacks : tuple of str or None
        Of those that failed, row by row.
    """

    def __init__(
        self, columns: Sequence[str], rows: Sequence[dict[str, Any]], directories: Sequence[Path] | None = None,
        tracebacks: Sequence[str | None] = ()
    ) -> None:  # fmt: skip
        self.columns: tuple[str, ...] = tuple(columns)
        self._rows = [dict(row) for row in rows]
        self.directories: tuple[Path, ...] | None = None if directories is None else tuple(directories)
        self.tracebacks: tuple[str | None, ...] = tuple(tracebacks)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([{name: row.get(name) for name in self.columns} for row in self._rows])

    @overload
    def __getitem__(self, what: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, what: str) -> np.ndarray: ...

    @overload
    def __getitem__(self, what: list[str]) -> "Table": ...

    def __getitem__(self, what: int | str | list[str]) -> "dict[str, Any] | np.ndarray | Table":
        """Return the row ``table[3]``, a dict, the column ``table["steps"]``, or a table ``table[["replica",
        "steps"]]``.

        A column of numbers is an array of numbers, nan where there are none; any other an array of objects.

        Raises
        ------
        ParameterError
            A column that is not there.
        IndexError
            A row that is not there.
        """
        if isinstance(what, str):
            name = self._named(what)
            return _column([row.get(name) for row in self._rows])
        if isinstance(what, list):
            return Table([self._named(name) for name in what], self._rows, self.directories, self.tracebacks)
        row = self._rows[what]
        return {name: row.get(name) for name in self.columns}

    def _named(self, name: str) -> str:
        found: str = look_up({column: column for column in self.columns}, name, "column", ParameterError)
        return found

    @property
    def done(self) -> bool:
        """True if all replicas are at their last step."""
        return all(row["status"] == "done" for row in self._rows)

    @property
    def failed(self) -> "Table":
        """The rows of those that failed."""
        which = [i for i, row in enumerate(self._rows) if row["status"] == "failed"]
        folders = None if self.directories is None else [self.directories[i] for i in which]
        return Table(self.columns, [self._rows[i] for i in which], folders, [self.tracebacks[i] for i in which])

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a DataFrame; ImportError without pandas."""
        try:
            import pandas
        except ImportError as cause:
            raise ImportError("Table.to_pandas needs pandas: pip install pandas") from cause
        return pandas.DataFrame({name: list(self[name]) for name in self.columns}, columns=list(self.columns))

    def csv(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """Return the table as comma-separated values, titles first; write them to a file as well, if one is given.

        Numbers keep every bit; cells are empty where there is nothing, and arrays are lists.

        Raises
        ------
        ParameterError
            The file exists, without `overwrite`.
        OutputError
            The file cannot be written.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self._rows:
            writer.writerow([_in_file(row.get(name)) for name in self.columns])
        text = out.getvalue()
        if path is not None:
            place = file_path("Table.csv: path", path)
            if place.exists() and not overwrite:
                raise ParameterError(f"Table.csv: {place} exists; give overwrite=True to replace it")
            write_atomically("table", place, lambda file: file.write(text.encode()))
        return text

    def _rows_shown(self) -> Shown:
        rows = [tuple(_in_short(row.get(name)) for name in self.columns) for row in self._rows]
        return Shown(self.columns[0], rows, self.columns)

    def _page(self) -> Page:
        n = len(self)
        return Page("Table", "1 row" if n == 1 else f"{n:,} rows", [self._rows_shown()])

    def __repr__(self) -> str:
        return "\n".join(aligned([self.columns, *self._rows_shown().shown]))


def _column(values: list[Any]) -> np.ndarray:
    there = [value for value in values if value is not None]
    if there and all(type(value) in (int, float) for value in there):
        if len(there) == len(values) and all(type(value) is int for value in there):
            # Seeds need all bits of 64 without a sign.
            for kind in (np.int64, np.uint64):
                if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
                    return np.array(values, kind)
        else:
            with suppress(OverflowError):
                return np.array([np.nan if value is None else value for value in values], np.float64)
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _in_file(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _in_short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray):
        return f"array {value.shape}"
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
