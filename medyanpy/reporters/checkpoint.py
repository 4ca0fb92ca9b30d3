"""Checkpoints, written while a simulation runs."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from medyanpy._tools.outputs import remove_left_over
from medyanpy._tools.validation import file_path
from medyanpy.errors import ParameterError
from medyanpy.files.checkpoint import is_checkpoint
from medyanpy.reporters._base import Reporter, check_replaceable, new_file

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["CheckpointReporter", "checkpoints_of"]

_STEP = "{step}"


class CheckpointReporter(Reporter):
    """Writes a checkpoint every `interval` steps; `Simulation.resume` continues from it with the same bits.

    Parameters
    ----------
    path : path
        Replaced at every report by the newest checkpoint, in one move: a crash leaves the old one whole. With
        ``{step}`` in its last part, as in ``"run-{step}.checkpoint"``, all are kept.
    interval : int, >= 1
        Steps between checkpoints.
    overwrite : bool
        Replace files that exist before the run.

    Raises
    ------
    ParameterError
        A file that exists, or a folder that does not, or that cannot be written to.
    OutputError
        From ``Simulation.step``: a checkpoint cannot be written; the one before is as it was.

    Notes
    -----
    Other reporters report and are flushed first, wherever this one stands in the list.
    """

    reports_last = True
    files: tuple[str, ...] = ("path",)
    goes_on: Mapping[str, Any] | None = MappingProxyType({"overwrite": True})

    def __init__(self, path: Any, interval: int, *, overwrite: bool = False) -> None:
        super().__init__(interval)
        path = file_path("CheckpointReporter: path", path)
        if _STEP in str(path.parent):
            raise ParameterError(f"CheckpointReporter: {path}: {_STEP} may be in the name of the file only")
        if _STEP in path.name:
            new_file("CheckpointReporter", path, overwrite=True)
            if not overwrite and (there := checkpoints_of(path)):
                raise ParameterError(f"CheckpointReporter: {there[0]} exists; give overwrite=True to replace all")
        else:
            new_file("CheckpointReporter", path, overwrite=overwrite)
        check_replaceable("CheckpointReporter", path)
        remove_left_over(path.with_name(path.name.replace(_STEP, "*")))
        self._path = path

    def report(self, simulation: "Simulation", state: "State") -> None:
        simulation.save_checkpoint(self.path_at(state.step))

    def path_at(self, step: int) -> Path:
        """Return the file of the checkpoint of a step."""
        path: Path = self._path.with_name(self._path.name.replace(_STEP, str(step)))
        return path

    def writes(self, path: Path) -> bool:
        """Tell whether its checkpoints are at this path, which may have a ``{step}``."""
        mine, theirs = (p.parent.resolve() / p.name for p in (Path(self._arguments["path"]), path))
        return mine == theirs

    def mark(self, simulation: "Simulation") -> None:
        """Return no mark: its files are replaced, whatever is there."""

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        for path in checkpoints_of(self._path):
            if path.is_symlink() or not is_checkpoint(path):
                raise ParameterError(f"CheckpointReporter: {path} is not a checkpoint, and is not replaced by one")


def checkpoints_of(path: Path) -> list[Path]:
    """Return the files that are at a path by now, in the order of their steps where it has a ``{step}``."""
    if _STEP not in path.name:
        return [path] if path.exists() else []
    before, after = path.name.split(_STEP, 1)
    found = {}
    for there in path.parent.iterdir():
        step = there.name[len(before) : len(there.name) - len(after)]
        if there.name == f"{before}{step}{after}" and step.isdecimal() and step.isascii():
            found[int(step)] = there
    return [found[step] for step in sorted(found)]
