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
        ``function(simulation, state)``; what it returns is not looked at, and what it raises ends the run, between two
        steps.
    include : str or sequence of str
        What the state holds: keywords of `Context.get_state`, such as ``"positions"`` and ``"energy"``. Step and time
        are always there.

    Raises
    ------
    ParameterError
        A value that is not a function, or words that are not keywords of `Context.get_state`.

    Notes
    -----
    The function may look, and it may change numbers: of forces and jumps (``force.set(...)``), of the integrator
    (``integrator.set(...)``), and the links of `Links`. They hold from the next step on, and what they do to the energy
    is protocol work (`Simulation.report_work`). It may not step, load, minimise or move beads: that is refused with a
    `ContextInUseError`, and belongs between two calls of ``step``.

    A checkpoint holds no function. A run that resumes from one warns of it (`ReporterWarning`): append the callback
    again. What changes numbers by the step alone is a `Ramp`, which checkpoints hold.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> trap = system.add_force(mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    >>> simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    >>> def stiffen(simulation, state):
    ...     if state.potential_energy < 0.3:
    ...         trap.set(stiffness=2.0)
    >>> simulation.reporters.append(mp.reporters.Callback(10, stiffen, include="energy"))
    >>> simulation.step(100)
    >>> trap.stiffness.tolist()
    [2.0, 2.0, 2.0]
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
        self._wanted = tuple(wanted)

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        return {**super().describe_next_report(simulation), "include": list(self._wanted)}

    def report(self, simulation: "Simulation", state: "State") -> None:
        self._function(simulation, state)
