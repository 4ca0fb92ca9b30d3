"""Reporter of events of the letter J, one by one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medyanpy.reporters._base import APPENDED
from medyanpy.reporters._table import TableReporter, quoted_if_needed
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy.engine.jumping import Listener
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["EventReporter"]

TITLES = (
    "Step", "Time (s)", "Jump", "Kind", "A", "B", "Energy (pN nm)", "Chemical Energy (pN nm)",
    "Kinetic Energy (pN nm)", "C",
)  # fmt: skip


class EventReporter(TableReporter):
    """Writes a row for every event of the jumps of a system, to a file or a stream such as ``sys.stdout``.

    Columns, in the order of time:

    - the step in which it happened (counted from 1), and the time;
    - the name of the jump, and the kind of event, which names the species of both sides of a reaction;
    - two numbers of its place: for `LinkBinding` the rows of its sites `a` and `b`, for reactions of beads their ids;
    - its change of the energy;
    - the chemical energy that drives it: kT times the logarithm of the ratio of the rates there and back, plus the
      change of the energy, and inf for an irreversible event;
    - the kinetic part of the change of the energy;
    - a third number of its place, -1 where there is none: for A + B -> C and C -> A + B what stands last.

    Parameters
    ----------
    file : path or open text stream
        A stream is written to and flushed, and never closed.
    interval : int, >= 1
        Steps between writes; checkpoints write what is due as well.
    separator : str
        Between columns.
    append : bool
        Continue an existing file, without rows of steps that are still to come.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ParameterError
        A file that exists and has rows, that another process is writing, or one to append to that has other columns.
    OutputError
        From ``Simulation.step`` or `flush`: the file cannot be written; rows wait until it can.
    """

    goes_on: Mapping[str, Any] | None = APPENDED

    def __init__(
        self, file: Any, interval: int, *, separator: str = ",", append: bool = False, overwrite: bool = False
    ) -> None:
        self._listener: Listener | None = None
        super().__init__(file, interval, separator=separator, append=append, overwrite=overwrite)

    def report(self, simulation: "Simulation", state: "State") -> None:
        self._attach(simulation)
        self._write()

    def flush(self) -> None:
        if self._listener is not None and (self._stream is not None or self._file is not None):
            self._write()
        super().flush()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            super().close()
            self._listener = None

    def _write(self) -> None:
        """Write what has been heard; what cannot be written is kept for the next time."""
        assert self._listener is not None
        heard = self._listener.heard()
        if heard:
            rows = [self._separator.join(map(self._cell, event)) for event in heard]
            self._put("\n".join(rows))
            self._listener.forget(len(heard))
            self._last_step = heard[-1][0]
            self._wrote(len(rows))

    def _cell(self, value: Any) -> str:
        return quoted_if_needed(value, self._separator) if isinstance(value, str) else repr(value)

    def _titles_for(self, topology: Topology) -> list[str]:
        return list(TITLES)

    def _follow(self, simulation: "Simulation") -> None:
        if self._listener is None:
            self._begin(simulation.topology)
            self._listener = simulation.context.events()
        if self._last_step > simulation.current_step:
            self._cut(simulation.current_step)
