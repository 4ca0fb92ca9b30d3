"""A function that is called while a Simulation runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from medyanpy._tools.validation import words
from medyanpy.errors import ParameterError, shown
from medyanpy.reporters._base import Reporter

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["Callback"]


class Callback(Reporter):
    """Calls a function at every step that is a multiple of `interval`.

    Parameters
    ----------
    interval : int, >= 1
        Steps between calls.
    function : callable
        ``function(simulation, state)``; what it raises ends the run, between two steps.
    include : str or sequence of str
        What the state holds: keywords of `Context.get_state`, such as ``"positions"`` and ``"energy"``. Step and time
        are always there.

    Raises
    ------
    ParameterError
        A value that is not a function, or words that are not keywords of `Context.get_state`.

    Notes
    -----
    The function may look, and change numbers of forces and jumps (``force.set(...)``), of the integrator, and the links
    of `Links`. They hold from the next step on, and what they do to the energy is protocol work
    (`Simulation.report_work`). It may not step, load, minimise or move beads, which is a `ContextInUseError`.

    A checkpoint holds no function: a run that resumes from one warns of it (`ReporterWarning`), append it again. It
    holds a `Ramp`, which changes numbers by the step alone.
    """

    def __init__(
        self, interval: int, function: "Callable[[Simulation, State], Any]", *, include: str | Sequence[str] = ()
    ) -> None:
        super().__init__(interval)
        if not callable(function):
            raise ParameterError(f"Callback: function must be callable, not {shown(function)}")
        self._function = function
        known = ("positions", "velocities", "forces", "energy", "virial", "multipliers", "physical_positions")
        wanted = [include] if isinstance(include, str) else words("Callback: include", include)
        for word in wanted:
            if word not in known:
                raise ParameterError(f"Callback: include has {word!r}, which is none of {', '.join(known)}")
        self.include: tuple[str, ...] = tuple(wanted)

    def report(self, simulation: "Simulation", state: "State") -> None:
        self._function(simulation, state)
