"""What every reporter has in common."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medyanpy.errors import ParameterError
from medyanpy.names import Named
from medyanpy.outputs import holds_no_file
from medyanpy.validation import file_path, whole_number

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["Reporter"]


class Reporter(Named):
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
    #: Whether it comes after all others that are due at a step, as one does that says what has been written.
    reports_last: bool = False

    def __init__(self, interval: int) -> None:
        self.interval = whole_number(f"{type(self).__name__}: interval", interval, at_least=1)

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        """``{"steps": steps until the next report, "include": keywords of get_state}``."""
        return {
            "steps": self.interval - simulation.current_step % self.interval,
            "include": list(self.include),
        }

    @abstractmethod
    def report(self, simulation: "Simulation", state: "State") -> None:
        """Write one report."""

    def flush(self) -> None:
        """Make what was reported so far safe on disk."""

    def close(self) -> None:
        """Flush, and let go of files. Closing twice is allowed; reporting afterwards is not."""
        self.flush()

    def __enter__(self) -> "Reporter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def new_file(what: str, path: Any, *, overwrite: bool = False, append: bool | None = None) -> Path:
    """A path that may be written to, refused now rather than after the work; `append` is None where no file can be
    appended to.

    Raises
    ------
    ParameterError
        No path, or one that no file can have; the file exists and neither overwrite nor append is set, or both are;
        or its folder does not exist.
    """
    path = file_path(f"{what}: path", path)
    if overwrite and append:
        raise ParameterError(f"{what}: give overwrite=True or append=True, not both")
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as cause:  # Names too long, and links that go round.
        raise ParameterError(f"{what}: cannot write {path}: {cause.strerror}") from cause
    if path.is_dir():
        raise ParameterError(f"{what}: {path} is a folder")
    if path.exists() and not (overwrite or append):
        or_append = "" if append is None else " or append=True to go on"
        raise ParameterError(f"{what}: {path} exists; give overwrite=True to replace it{or_append}")
    if not path.parent.is_dir():
        raise ParameterError(f"{what}: the folder {path.parent} does not exist")
    return path


def check_replaceable(what: str, path: Path) -> None:
    """Refuse a file whose place no other may take: it is written beside it, and renamed.

    Raises
    ------
    ParameterError
        The file, or its folder, cannot be written to.
    """
    if not all(os.access(there, os.W_OK) for there in (path, path.parent) if there.exists()):
        raise ParameterError(f"{what}: no permission to write {path}, and beside it")
    if holds_no_file(path):
        raise ParameterError(f"{what}: {path} is something else than a file, which no file can replace")
