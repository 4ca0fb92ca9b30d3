"""Checkpoints, written while a simulation runs."""

from typing import TYPE_CHECKING, Any

from medyanpy.errors import ParameterError
from medyanpy.outputs import remove_left_over
from medyanpy.reporters._base import Reporter, check_replaceable, new_file
from medyanpy.validation import file_path

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["CheckpointReporter"]

_STEP = "{step}"


class CheckpointReporter(Reporter):
    """Writes a checkpoint every `interval` steps; `Simulation.load_checkpoint` goes on from it with the same bits.

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
    Other reporters report and are flushed first, wherever this one stands in the list, so that what they wrote
    reaches as far as the checkpoint does.
    """

    reports_last = True

    def __init__(self, path: Any, interval: int, *, overwrite: bool = False) -> None:
        super().__init__(interval)
        path = file_path("CheckpointReporter: path", path)
        if _STEP in str(path.parent):
            raise ParameterError(f"CheckpointReporter: {path}: {_STEP} may be in the name of the file only")
        if _STEP in path.name:
            new_file("CheckpointReporter", path, overwrite=True)
            before, after = path.name.split(_STEP, 1)
            there = [
                p
                for p in path.parent.iterdir()
                if p.name.startswith(before) and p.name.endswith(after)
                and p.name[len(before) : len(p.name) - len(after)].isdigit()
            ]
            if there and not overwrite:
                raise ParameterError(
                    f"CheckpointReporter: {there[0]} exists; give overwrite=True to replace such files"
                )
        else:
            new_file("CheckpointReporter", path, overwrite=overwrite)
        check_replaceable("CheckpointReporter", path)
        remove_left_over(path.with_name(path.name.replace(_STEP, "*")))
        self._path = path

    def report(self, simulation: "Simulation", state: "State") -> None:
        for reporter in simulation.reporters:
            if reporter is not self:
                reporter.flush()
        simulation.save_checkpoint(self._path.with_name(self._path.name.replace(_STEP, str(state.step))))
