"""Tables: what reporters that write rows of text have in common."""

import csv
import itertools
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from medyanpy._tools.outputs import check_in_place, hold, let_go, unwritable
from medyanpy._tools.validation import plain_name, whole_number
from medyanpy.core.handles import Handle
from medyanpy.errors import OutputError, ParameterError, shortened
from medyanpy.reporters._base import APPENDED, Reporter, new_file, other_columns
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation

__all__ = ["TableReporter", "quoted_if_needed", "read_table"]


class TableReporter(Reporter):
    """Rows of text below one line of titles, in a file or a stream.

    A file is this process's alone while it is open, and rows are whole or not there. Rows of steps that a simulation
    has been set back before are cut off, if there is a column "Step".

    `comment` stands before the titles.
    """

    files: tuple[str, ...] = ("file",)
    goes_on: Mapping[str, Any] | None = APPENDED

    def __init__(
        self, file: Any, interval: int, *, separator: str, append: bool, overwrite: bool, comment: str = ""
    ) -> None:
        super().__init__(interval)
        self._what = type(self).__name__
        if not isinstance(separator, str) or not separator:
            raise ParameterError(f"{self._what}: separator = {separator!r} but must be some text")
        self._separator = plain_name(f"{self._what}: separator", separator)
        self._comment = comment
        self._titles: list[str] = []
        #: Handles for which the titles are known to be right.
        self._handles: tuple[Handle, ...] = ()
        self._last_step = -1
        # Rows in the file, and how many of them a checkpoint knows.
        self._rows: int | None = None
        self._marked: int | None = None
        self._path: Path | None = None
        self._is_new = False
        # One of them, for as long as it is open.
        self._stream: TextIO | None = None
        self._file: FileIO | None = None
        if hasattr(file, "write"):
            self._stream = file
        else:
            self._path = new_file(self._what, file, overwrite=overwrite, append=append, holds_nothing=_has_no_rows)
            self._is_new = not self._path.exists()
            # Opened now: a file that cannot be written to is an error before the work, not after it.
            try:
                self._file = open(self._path, "a+b", buffering=0)
                self._process = os.getpid()
                try:
                    # Devices may have many writers.
                    if self._path.is_file():
                        hold(self._what, self._path, self._file.fileno())
                    if not append:
                        self._file.truncate(0)
                except BaseException:
                    self._file.close()
                    raise
            except OSError as cause:
                raise ParameterError(f"{self._what}: cannot write {self._path}: {cause.strerror}") from cause

    @abstractmethod
    def _titles_for(self, topology: Topology) -> list[str]:
        """Return the titles of the columns."""

    @abstractmethod
    def _follow(self, simulation: "Simulation") -> None:
        """Follow the simulation to a step: start the table where that has not been done; see `_begin` and `_cut`."""

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        self._attach(simulation)
        return super().describe_next_report(simulation)

    def mark(self, simulation: "Simulation") -> int | None:
        """Return the number of rows, which does not depend on the wall clock in them."""
        if self._path is None:
            return None
        if self._file is not None:
            self._attach(simulation)
        return self._rows

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        if self._path is None:
            return
        wanted = 0 if mark is None else whole_number(f"{self._what}: mark", mark)
        self._titles = self._titles_for(simulation.topology)
        self._check_header()
        found = sum(1 for _ in self._whole_rows())
        if found < wanted:
            raise ParameterError(
                f"{self._what}: {self._path} is shorter than at the checkpoint: {found} rows instead of {wanted}"
            )

    def go_on(self, simulation: "Simulation", mark: Any) -> None:
        self._marked = mark
        self._attach(simulation)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()
        elif self._file is not None:
            path = self._place
            check_in_place(self._what, path, self._file.fileno())
            try:
                os.fsync(self._file.fileno())
            except OSError as cause:
                raise unwritable(self._what, path, cause) from cause

    def close(self) -> None:
        if self._file is not None:
            if self._process == os.getpid():
                let_go(self._file.fileno())
            self._file.close()
        self._stream = self._file = None

    def _withdraw(self) -> None:
        self.close()
        if self._is_new and self._path is not None:
            with suppress(OSError):
                if self._path.stat().st_size == 0:
                    self._path.unlink()

    @property
    def _place(self) -> Path:
        """Path of a table that is a file."""
        assert self._path is not None
        return self._path

    @property
    def _open_file(self) -> FileIO:
        assert self._file is not None
        return self._file

    def _put(self, line: str) -> None:
        """Write a line; all of it, or nothing."""
        if self._stream is not None:
            self._stream.write(line + "\n")
            self._stream.flush()
            return
        path, file = self._place, self._open_file
        check_in_place(self._what, path, file.fileno())
        size = os.fstat(file.fileno()).st_size
        left = (line + "\n").encode()
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as cause:
            # Not kept for later, as by a buffer: the row is asked for again.
            file.truncate(size)
            raise unwritable(self._what, path, cause) from cause

    def _wrote(self, n: int) -> None:
        """Count so many more rows."""
        self._rows = n + (self._rows or 0)

    def _attach(self, simulation: "Simulation") -> None:
        """Start the table and the clock at first; cut off rows that a simulation set back will write again."""
        if self._stream is None and self._file is None:
            raise ParameterError(f"{self._what}: this reporter is closed")
        try:
            self._follow(simulation)
        except OSError as cause:
            if self._path is None or isinstance(cause, OutputError):
                raise
            raise unwritable(self._what, self._path, cause) from cause
        handles = simulation.topology.handles
        if handles != self._handles:
            if self._titles_for(simulation.topology) != self._titles:
                raise other_columns(self._what, "the table" if self._path is None else self._path)
            self._handles = handles

    def _header(self) -> str:
        return self._separator.join(map(_quoted, self._titles))

    def _begin(self, topology: Topology) -> bytes | None:
        """Write the titles, or check those of the file to append to: then its last row, empty without any."""
        self._titles = self._titles_for(topology)
        if self._path is not None and self._check_header():
            return self._cut(None, self._marked)
        self._put(self._comment + self._header())
        self._rows = 0
        return None

    def _check_header(self) -> str:
        """Check the first line of the file, if it is there: it must be that of the titles."""
        with open(self._place, encoding="utf-8", errors="replace") as file:
            found = file.readline().rstrip("\n")
        if found and found.removeprefix("#") != self._header():
            raise ParameterError(
                f"{self._what}: {self._path} has other columns, so nothing is appended:\n"
                f"  {shortened(found, 600)}\nnow wanted:\n  {shortened(self._comment + self._header(), 600)}"
            )
        return found

    def _whole_rows(self) -> Iterator[bytes]:
        """Iterate over lines below the first, but not a last one that a crash left unfinished."""
        with open(self._place, "rb") as file:
            file.readline()
            for line in file:
                if line.endswith(b"\n"):
                    yield line

    def _number_in(self, line: bytes, place: int, kind: Callable[[str], Any]) -> Any:
        try:
            return kind(line.decode().split(self._separator)[place])
        except (ValueError, IndexError) as cause:
            raise ParameterError(f"{self._what}: {self._path} is damaged: {line!r} is not one of its rows") from cause

    def _cut(self, step: int | None, rows: int | None = None) -> bytes:
        """Drop rows after `step`, those beyond a number, and an unfinished one; return the last that is kept."""
        self._last_step, last = -1, b""
        if self._path is None:
            # Text that has gone into a stream cannot be taken back.
            return last
        place = self._titles.index("Step") if "Step" in self._titles else None
        check_in_place(self._what, self._path, self._open_file.fileno())
        with open(self._path, "rb") as file:
            end = len(file.readline())
        kept = 0
        for line in itertools.islice(self._whole_rows(), rows):
            if place is not None:
                this = self._number_in(line, place, int)
                if step is not None and this > step:
                    break
                self._last_step = this
            end += len(line)
            kept, last = kept + 1, line
        self._open_file.truncate(end)
        self._rows = kept
        return last


def _quoted(title: str) -> str:
    """Return a title quoted as in CSV (RFC 4180), on one line."""
    return '"{}"'.format(" ".join(title.splitlines()).replace('"', '""'))


def quoted_if_needed(text: str, separator: str) -> str:
    """Return a cell of a row, quoted if needed."""
    return _quoted(text) if '"' in text or separator in text or len(text.splitlines()) > 1 else text


def _has_no_rows(path: Path) -> bool:
    """Tell whether a file holds the titles of a table, and nothing below."""
    with open(path, "rb") as file:
        return file.readline().startswith((b'#"', b'"Step"')) and not file.read(1)


def read_table(what: str, path: Path) -> dict[str, np.ndarray]:
    """Read a table of a `TableReporter`, also while it is written: the numbers, or texts, below every title."""
    try:
        with open(path, encoding="utf-8") as file:
            # A last line without an end is one that is being written, or that a crash left unfinished.
            lines = [line for line in file if line.endswith("\n")]
    except OSError as cause:
        raise ParameterError(f"{what}: cannot read {path}: {cause.strerror}") from cause
    except UnicodeDecodeError as cause:
        raise ParameterError(f"{what}: {path} is not a table of a reporter: it is not text") from cause
    head = lines[0].rstrip("\n") if lines else ""
    titles, separator = _titles_of(head)
    if not titles:
        begins = f"it begins with {shortened(head, 60)!r}" if head else "it has no titles yet"
        raise ParameterError(f"{what}: {path} is not a table of a reporter: {begins}")
    cells: list[list[str]] = []
    for k, line in enumerate(lines[1:], 2):
        row = line.rstrip("\n").split(separator)
        if len(row) != len(titles) and '"' in line and len(separator) == 1:
            row = next(csv.reader([line.rstrip("\n")], delimiter=separator))
        if len(row) != len(titles):
            raise ParameterError(
                f"{what}: {path} is damaged: line {k} has {len(row)} columns, and there are {len(titles)} titles"
            )
        cells.append(row)
    columns = zip(*cells, strict=True) if cells else [()] * len(titles)
    return {title: _numbers_or_texts(column) for title, column in zip(titles, columns, strict=True)}


def _titles_of(head: str) -> tuple[list[str], str]:
    """Return the titles in the first line of a table, and what stands between them; none where it is another line."""
    head = head.removeprefix("#")
    one = r'"((?:[^"]|"")*)"'
    first = re.match(rf'{one}([^"]*)', head)
    separator = first[2] if first and first[2] else ","
    if not re.fullmatch(rf"{one}(?:{re.escape(separator)}{one})*", head):
        return [], ""
    return [title.replace('""', '"') for title in re.findall(one, head)], separator


def _numbers_or_texts(column: tuple[str, ...]) -> np.ndarray:
    try:
        return np.array(column, float)
    except ValueError:
        return np.array(column)
