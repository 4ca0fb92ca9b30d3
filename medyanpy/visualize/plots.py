"""Plots of the tables that reporters write."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.names import did_you_mean, plainly_called
from medyanpy._tools.validation import file_path, words
from medyanpy.errors import ParameterError
from medyanpy.reporters._base import new_file
from medyanpy.reporters._table import TableReporter, read_table
from medyanpy.reporters.events import TITLES as EVENT_TITLES
from medyanpy.reporters.state_data import COLUMNS
from medyanpy.visualize.arguments import checked_size, need_matplotlib
from medyanpy.visualize.renderer import POINT_COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot"]

_INK = "#333333"
_STEP, _TIME = "Step", "Time (s)"
# Columns of the machine and not of the simulation, shown only where asked for.
_CLOCKS = ("Progress (%)", "Speed (steps/s)", "Elapsed Time (s)", "Time Remaining (s)")
_EVENTS = "Events"
# Pixels per inch, and inches of a figure: its width, each panel, and the space below the last.
_DPI, _WIDTH, _PANEL, _BELOW = 200.0, 7.0, 1.7, 0.5


@plainly_called
def plot(
    what: Any, columns: Any = None, path: Any = None, *, against: str | None = None,
    size: tuple[int, int] | None = None, title: str | None = None, overwrite: bool = False,
) -> "Figure":
    """Plot the table of a reporter: its columns over time or steps, a panel for each unit.

    Parameters
    ----------
    what : path, StateDataReporter or EventReporter
        A file that is being written, or has been: its present rows are shown.
    columns : str or list of str, optional
        Titles, with or without their units, or options of `StateDataReporter`: ``["potential_energy",
        "temperatures"]``. By default all but those of the wall clock. Of an EventReporter, how often each kind of
        event has happened (``"events"``), and the energies.
    path : path, optional
        Write the figure there; the ending names the format (``.png``, ``.pdf``).
    against : str, optional
        The column that is the abscissa; by default the time, or else the step, or else the number of the row.
    size : (width, height), pixels, at least 100, optional
        1400 wide, and higher with every panel, where none is given.
    title : str, optional
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    matplotlib.figure.Figure
        Without a window; a notebook shows it where it is the last line of a cell.

    Raises
    ------
    ParameterError
        Not a table of a reporter, a reporter that writes to a stream, a column that is not there or holds texts, or a
        file that exists.
    """
    name = "plot"
    if path is not None:
        path = new_file(name, path, overwrite=overwrite)
    pixels = None if size is None else checked_size(name, size, None)[0]
    source = _source(what)
    table = read_table(name, source)
    abscissa = _abscissa(source, table, against)
    panels = _panels(source, table, columns, abscissa)
    need_matplotlib()
    figure = _drawn(table, abscissa, panels, pixels)
    if title is not None:
        figure.suptitle(title, color=_INK, fontsize=11.0)
    if path is not None:
        figure.savefig(path, dpi=figure.dpi)
    return figure


def _source(what: Any) -> Path:
    """Return the path of the file of a table."""
    if not isinstance(what, TableReporter):
        return file_path("plot: what", what)
    paths = what._paths()
    if not paths:
        raise ParameterError(
            f"plot: this {type(what).__name__} writes to a stream, which cannot be read again: give it a path"
        )
    return paths[0]


def _parts(title: str) -> tuple[str, str]:
    """Split the title of a column into its name and its unit."""
    found = re.fullmatch(r"(.*) \(([^()]*)\)", title)
    return (found[1], found[2]) if found else (title, "")


def _plain(name: str) -> str:
    return name.lower().replace("_", " ")


def _found(source: Path, table: dict[str, np.ndarray], name: str) -> list[str]:
    """Return the titles that a name of a column may mean."""
    of_option = {column.title for column in COLUMNS if column.keyword == name}
    for fits in (
        lambda title: title == name,
        lambda title: _plain(_parts(title)[0]) == _plain(name),
        lambda title: title in of_option,
        lambda title: name == "temperatures" and title.startswith("Temperature of "),
    ):
        titles = [title for title in table if fits(title)]
        if titles:
            return titles
    there = ", ".join(map(repr, table))
    raise ParameterError(f"plot: {source} has no column {name!r}{did_you_mean(name, table)}; there are: {there}")


def _abscissa(source: Path, table: dict[str, np.ndarray], against: str | None) -> str | None:
    if against is None:
        return next((title for title in (_TIME, _STEP) if title in table), None)
    return _numbers(source, table, _found(source, table, against))[0]


def _numbers(source: Path, table: dict[str, np.ndarray], titles: list[str]) -> list[str]:
    for title in titles:
        if table[title].dtype.kind != "f":
            raise ParameterError(f"plot: column {title!r} of {source} holds texts, such as {str(table[title][0])!r}")
    return titles


def _panels(source: Path, table: dict[str, np.ndarray], columns: Any, abscissa: str | None) -> dict[str, list[str]]:
    """Group columns by their panel: the unit, or the name of a column without one."""
    of_events = tuple(table)[:8] == EVENT_TITLES[:8]
    if columns is not None:
        names = words("plot: columns", columns)
        if not names:
            raise ParameterError("plot: columns names no column")
        titles: Iterable[str] = (
            title
            for name in names
            for title in (
                [_EVENTS] if of_events and _plain(name) == "events"
                else _numbers(source, table, _found(source, table, name))
            )
        )
    elif of_events:
        titles = [_EVENTS, *(title for title in table if _parts(title)[1] == "pN nm")]
    else:
        known = [t for t in table if t not in (_STEP, _TIME, abscissa) and table[t].dtype.kind == "f"]
        titles = [t for t in known if t not in _CLOCKS] or known or [t for t in table if t != abscissa]
    panels: dict[str, list[str]] = {}
    for title in dict.fromkeys(titles):
        name, unit = _parts(title)
        panels.setdefault(unit or name, []).append(title)
    if not panels:
        raise ParameterError(f"plot: {source} has no column beside {abscissa!r}")
    return panels


def _drawn(
    table: dict[str, np.ndarray], abscissa: str | None, panels: dict[str, list[str]], size: tuple[int, int] | None
) -> "Figure":
    from matplotlib.ticker import EngFormatter

    from medyanpy.visualize.pictures import Picture

    inches = (_WIDTH, _BELOW + _PANEL * len(panels)) if size is None else (size[0] / _DPI, size[1] / _DPI)
    figure = Picture(figsize=inches, dpi=_DPI, facecolor="white", layout="constrained")
    rows = len(next(iter(table.values())))
    x = np.arange(1, rows + 1) if abscissa is None else table[abscissa]
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    of_events = tuple(table)[:8] == EVENT_TITLES[:8]
    for axes, (unit, titles) in zip(all_axes, panels.items(), strict=True):
        lines = []
        for title in titles:
            if title == _EVENTS and of_events:
                lines += _counts(table, x)
            else:
                y = table[title]
                # Where a value is not known, or a way back does not exist, the line has a gap.
                lines.append((_parts(title)[0], x, np.where(np.isfinite(y), y, np.nan)))
        for k, (name, at, y) in enumerate(lines):
            dots = of_events and unit != _EVENTS
            axes.plot(
                at, y, color=POINT_COLORS[k % len(POINT_COLORS)], label=name, lw=0.0 if dots else 1.0,
                marker="." if dots or len(at) == 1 else "", ms=3.0, drawstyle="steps-post" if unit == _EVENTS else None,
                # More lines than colours.
                ls=("-", "--", ":", "-.")[k // len(POINT_COLORS) % 4],
            )
        alone = len(lines) == 1 and lines[0][0] != unit
        said = unit.replace("^2", "²").replace("^3", "³")
        axes.set_ylabel(f"{lines[0][0]} ({said})" if alone else said, color=_INK, fontsize=8.0)
        if len(lines) > 1:
            axes.legend(edgecolor="none", framealpha=0.7, fontsize=7.0, labelcolor=_INK, ncols=min(4, len(lines)))
        axes.tick_params(labelsize=7.0, colors=_INK, width=0.6)
        axes.yaxis.get_offset_text().set_fontsize(7.0)
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.grid(color="#dddddd", lw=0.5)
        axes.set_axisbelow(True)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_edgecolor(_INK)
    name, unit = ("Row", "") if abscissa is None else _parts(abscissa)
    all_axes[-1].set_xlabel(name if unit in ("", "s") else f"{name} ({unit})", color=_INK, fontsize=8.0)
    if unit == "s":
        all_axes[-1].xaxis.set_major_formatter(EngFormatter(unit="s"))  # From nanoseconds to hours.
    figure.align_ylabels()
    return figure


def _counts(table: dict[str, np.ndarray], x: np.ndarray) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Count the events of each kind over time."""
    if not len(x):
        return [(_EVENTS, x, x)]
    kinds = [f"{jump}: {kind}" for jump, kind in zip(table["Jump"].astype(str), table["Kind"].astype(str), strict=True)]
    lines = []
    for kind in dict.fromkeys(kinds):
        at = x[np.array(kinds) == kind]
        lines.append((kind, np.append(at, x[-1]), np.append(np.arange(1.0, len(at) + 1), len(at))))
    return lines
