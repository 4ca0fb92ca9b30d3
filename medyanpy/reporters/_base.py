"""Base class of reporters, and helpers for all of them."""

import os
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from medyanpy._tools.described import Recorded
from medyanpy._tools.outputs import check_replaceable, new_file
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError, shown

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["APPENDED", "Reporter", "check_replaceable", "new_file", "other_columns"]

#: The arguments of most reporters that continue existing files.
APPENDED: Mapping[str, Any] = MappingProxyType({"append": True, "overwrite": False})


class Reporter(Recorded):
    """Writes something at every step that is a multiple of `interval`.

    A Simulation asks `describe_next_report`, and calls `report` with a state that holds what was asked for. A
    reporter is closed by `close`, by leaving it as a context manager, or with its Simulation.

    Parameters
    ----------
    interval : int, >= 1
        Steps between reports.
    """

    #: Keywords of ``Context.get_state`` that the reports of this class need.
    include: tuple[str, ...] = ()
    #: Whether it comes after all others that are due at a step, as a reporter of what has been written does.
    reports_last: bool = False
    #: The arguments of the constructor that name files, or give streams.
    files: tuple[str, ...] = ()
    #: Arguments with which the constructor continues existing files, if it can: then `Simulation.resume` calls it with
    #: these and the others that it was called with. Not inherited by a class with another constructor.
    goes_on: Mapping[str, Any] | None = None

    interval: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls, *args, **kwargs)
        recorded = self.__dict__.get("_arguments", {})
        for name in cls.files:
            if isinstance(recorded.get(name), str | os.PathLike):
                # The path must hold whatever the working directory will be when it is recorded. The constructor refuses
                # what is not a path, and a missing working directory.
                with suppress(Exception):
                    recorded[name] = os.path.abspath(recorded[name])
        return self

    def __init__(self, interval: int) -> None:
        self.interval = whole_number(f"{type(self).__name__}: interval", interval, at_least=1)

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        """Return ``{"steps": steps until the next report, "include": keywords of get_state}``."""
        return {"steps": self.interval - simulation.current_step % self.interval, "include": list(self.include)}

    @abstractmethod
    def report(self, simulation: "Simulation", state: "State") -> None:
        """Write one report."""

    def flush(self) -> None:
        """Make what was reported so far safe on disk."""

    def mark(self, simulation: "Simulation") -> Any:
        """Return how far its flushed files are, for a checkpoint: what JSON can hold, or None if there is nothing yet
        that must be there again. Here, the sizes of all files."""
        paths = self._paths()
        return [path.stat().st_size for path in paths] if all(path.exists() for path in paths) else None

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        """Refuse (ParameterError) files that are not those of a mark, which may be forged, and change nothing."""
        if mark is None:
            return
        paths = self._paths()
        what = f"{type(self).__name__}: mark"
        if not isinstance(mark, list) or len(mark) != len(paths):
            raise ParameterError(f"{what} must be the sizes of {len(paths)} files, not {shown(mark)}")
        for path, size in zip(paths, mark, strict=True):
            if path.stat().st_size < whole_number(what, size):
                raise ParameterError(
                    f"{type(self).__name__}: {path} is shorter than at the checkpoint: {path.stat().st_size} bytes "
                    f"instead of {size}"
                )

    def go_on(self, simulation: "Simulation", mark: Any) -> None:
        """Bring files back to a mark that `check_mark` let pass. Here nothing: `describe_next_report` cuts by steps."""

    @property
    def writes_to(self) -> str:
        """Its files, below the working directory by their names there, and streams: for people to read."""
        given = [self._arguments.get(name) for name in self.files]
        said = [
            str(getattr(one, "name", "a stream")) if hasattr(one, "write") else _nearby(one)
            for one in given if one is not None
        ]  # fmt: skip
        return ", ".join(said) or "–"

    def _paths(self) -> list[Path]:
        """Return the paths of all files; streams have none."""
        return [Path(self._arguments[name]) for name in self.files if isinstance(self._arguments[name], str)]

    def close(self) -> None:
        """Flush, and let go of files. Closing twice is allowed; reporting afterwards is not."""
        self.flush()

    def _withdraw(self) -> None:
        """Let go of files, and leave none that is new and empty: the reporter was refused."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _nearby(path: Any) -> str:
    """Return a path from the working directory, if it is below it."""
    try:
        return str(Path(path).relative_to(os.getcwd()))
    except (OSError, ValueError):
        return str(path)


def other_columns(what: str, path: Any) -> ParameterError:
    """Return the error for a table whose columns would be others by now."""
    return ParameterError(
        f"{what}: the topology has been edited since {path} was begun, and its columns would be others: close this "
        "reporter and continue in another file"
    )
