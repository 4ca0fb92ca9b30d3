"""Numbers of forces, jumps and the integrator that change while a Simulation runs."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.names import look_up
from medyanpy._tools.parameters import Parameterized
from medyanpy._tools.validation import number, whole_number
from medyanpy.beads.units import FixedBeads, fixed_beads_given
from medyanpy.errors import ParameterError, UnknownNameError, foreign_errors, shown
from medyanpy.reporters._base import Reporter

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["BOX", "INTEGRATOR", "Ramp"]

#: Under these names numbers of the integrator and lengths of the box are given.
INTEGRATOR = "integrator"
BOX = "box"
_OF_INTEGRATOR = ("timestep", "temperature", "kT")
# Steps until something that never comes; runs are shorter.
_NEVER = 2**62
# A function of the fraction is tried at so many places before a run.
_TRIED = 129


class Ramp(Reporter):
    r"""Changes numbers of forces, jumps and the integrator in time, by the step alone, and records the work.

    `Simulation.ramp` makes one and takes its steps. One that is in `Simulation.reporters` acts in whatever takes the
    steps, `run` in a folder included.

    Parameters
    ----------
    numbers : dict of str to dict
        Numbers by the names of forces and jumps: ``{"HarmonicTrap": {"stiffness": (1.0, 2.0)}}``. ``"integrator"`` has
        timestep, temperature and kT, ``"box"`` the lengths x, y and z of a periodic box, with which beads are scaled
        (`Context.set_box`). A sequence of two values or more, as ``set`` takes them, is followed linearly, from one to
        the next in equal times; any other course is a function of the fraction of the steps, 0 to 1.
    steps : int, >= 1
        How many steps it takes.
    start : int, >= 0
        The `Simulation.current_step` at which it starts.
    every : int, >= 1
        Steps for which numbers stay as they are. Setting them costs as much as 15 to 35 steps of a membrane of 2562
        vertices, where 50 is a good choice.
    fixed_beads : "refuse" or "scale"
        What a ramp of the box does with fixed beads, as `Context.set_box`.

    Raises
    ------
    ParameterError
        Not such a table, or a number out of bounds; of names and values that the simulation refuses, before its next
        step.

    Attributes
    ----------
    work : float, pN nm
        The protocol work from `start` to the end; nan before the end, and of a ramp that was not seen from its start.

    Notes
    -----
    With n steps, the numbers are λ(0) at the start, where the account is opened, and λ(1) at the end. Each of the
    n/every blocks of steps is made with λ at the middle of its time:

    .. math:: W = \sum_k U(x_k; \lambda_{k+1/2}) - U(x_k; \lambda_{k-1/2}), \qquad \lambda_{-1/2} = \lambda(0)

    so that the ramp back, from λ(1) to λ(0), is this one backwards in time. Crooks' relation holds for the pair, and
    Jarzynski's equality for either, at any speed and any `every`, up to the error of the timestep (add the shadow work:
    :doc:`/theory/work`). What the start does to the numbers is not part of the work: equilibrate with λ(0). The work of
    other ramps and callbacks in these steps is. It is measured by `Simulation.report_work`, which is switched on.
    Temperature and timestep do no work. A box takes beads with it: to the change of the energy, which is booked, the
    equalities add :math:`-n kT \ln(V_1/V_0)` for the n units that are scaled, without those that fixed beads hold.

    Numbers follow from the step, so that a resumed run has the same bits. A checkpoint holds the ramp (but not a
    function: :doc:`/restarts`) and where its account stood.

    References
    ----------
    C. Jarzynski, Phys. Rev. Lett. 78, 2690 (1997). G. E. Crooks, Phys. Rev. E 60, 2721 (1999).

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> bead = topology.add_beads([[1.0, 0, 0]], mass=1.0)
    >>> system = mp.System(topology)
    >>> trap = system.add_force(mp.forces.HarmonicTrap(bead, 1.0, [0.0, 0.0, 0.0]))
    >>> simulation = mp.Simulation(system, mp.VerletIntegrator(0.01))
    >>> ramp = mp.reporters.Ramp({"HarmonicTrap": {"stiffness": (1.0, 2.0)}}, steps=100)
    >>> simulation.reporters.append(ramp)
    >>> simulation.step(50)
    >>> trap.stiffness.round(9).tolist(), ramp.work
    ([1.495, 1.495, 1.495], nan)
    >>> simulation.step(100)
    >>> trap.stiffness.tolist(), round(ramp.work, 3)
    ([2.0, 2.0, 2.0], 0.34)
    """

    goes_on: Mapping[str, Any] | None = MappingProxyType({})

    def __init__(
        self, numbers: Mapping[str, Mapping[str, Any]], steps: int, *, start: int = 0, every: int = 1,
        fixed_beads: FixedBeads = "refuse",
    ) -> None:  # fmt: skip
        super().__init__(whole_number("Ramp: every", every, at_least=1))
        self.steps: int = whole_number("Ramp: steps", steps, at_least=1, at_most=_NEVER)
        self.start: int = whole_number("Ramp: start", start, at_least=0, at_most=_NEVER)
        if not isinstance(numbers, Mapping) or not numbers:
            raise ParameterError(
                f'Ramp: numbers must be such as {{"HarmonicTrap": {{"stiffness": (1.0, 2.0)}}}}, not {shown(numbers)}'
            )
        self._fixed_beads: FixedBeads = fixed_beads_given("Ramp", fixed_beads)
        self._courses: dict[str, dict[str, Callable[[float], Any]]] = {}
        for name, own in numbers.items():
            if not isinstance(own, Mapping) or not own:
                raise ParameterError(
                    f"Ramp: numbers[{name!r}] must be a dict of numbers by their names, not {shown(own)}"
                )
            self._courses[name] = {key: _course(f"Ramp: {name}: {key}", value) for key, value in own.items()}
        self.work: float = np.nan
        # Protocol work in the books when it started; None where that was not seen.
        self._before: float | None = None
        self._has_ended = False
        self._is_checked = False

    @property
    def end(self) -> int:
        """The `Simulation.current_step` at which it has ended."""
        return self.start + self.steps

    def is_that_of(self, other: "Ramp") -> bool:
        """Tell whether another ramp is the same."""
        return _same(self._arguments_now(), other._arguments_now())

    def check(self, simulation: "Simulation") -> None:
        """Refuse (ParameterError) names and values that the simulation does not take, and change nothing."""
        for name, target in self._targets(simulation):
            for key, course in self._courses[name].items():
                for f in np.linspace(0.0, 1.0, _TRIED).tolist():
                    _check(f"Ramp: {name}", target, key, course(f))
        self._is_checked = True

    def numbers_now(self, simulation: "Simulation") -> "list[tuple[Any, dict[str, Any]]]":
        """Return targets whose numbers this changes, each with the arguments of ``set`` that keep it as it is now."""
        out = []
        for _, target in self._targets(simulation):
            if isinstance(target, Parameterized | _Sides):
                out.append((target, dict(target.parameters)))
            else:
                kT = {} if target.kT is None else {"kT": target.kT}
                out.append((target, {"timestep": target.timestep, **kT}))
        return out

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        self._act(simulation)
        step = simulation.current_step
        following = self.start if step < self.start else self._block(step)[1]
        return {"steps": _NEVER if step >= self.end else following - step, "include": []}

    def report(self, simulation: "Simulation", state: "State") -> None:
        if simulation.current_step == self.end:
            self._act(simulation)

    def mark(self, simulation: "Simulation") -> Any:
        work = None if np.isnan(self.work) else self.work
        return {"before": self._before, "work": work, "ended": self._has_ended}

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        held = mark if isinstance(mark, dict) else {}
        if set(held) != {"before", "work", "ended"} or not isinstance(held["ended"], bool):
            raise ParameterError(f"Ramp: mark must hold before, work and ended, not {shown(mark)}")
        for key in ("before", "work"):
            if mark[key] is not None:
                number(f"Ramp: mark: {key}", mark[key])

    def go_on(self, simulation: "Simulation", mark: Any) -> None:
        self._before = None if mark["before"] is None else float(mark["before"])
        self.work = np.nan if mark["work"] is None else float(mark["work"])
        self._has_ended = mark["ended"]

    def _act(self, simulation: "Simulation") -> None:
        """Let numbers be what they are from this step on; called as often as you like."""
        step = simulation.current_step
        if not self._is_checked:
            self.check(simulation)
        if step < self.start:
            self._before = None
        if step < self.end:
            self.work, self._has_ended = np.nan, False
        if not self.start <= step <= self.end or self._has_ended:
            return
        if step == self.start and self._before is None:
            simulation.report_work = True
            self._set(simulation, 0.0)
            self._before = float(simulation.context.get_state(energy=True).protocol_work)
        first, last = self._block(step)
        self._set(simulation, 1.0 if step == self.end else (0.5 * (first + last) - self.start) / self.steps)
        if step == self.end:
            self._has_ended = True
            if self._before is not None:
                self.work = float(simulation.context.get_state(energy=True).protocol_work) - self._before

    def _block(self, step: int) -> tuple[int, int]:
        """Return the steps around this one, all of which are made with the same numbers."""
        first = step - (step - self.start) % self.interval
        return first, min(first + self.interval, self.end)

    def _set(self, simulation: "Simulation", f: float) -> None:
        step = simulation.current_step
        within = step not in (self._block(step)[0], self.end)
        for name, target in self._targets(simulation):
            values = {key: course(f) for key, course in self._courses[name].items()}
            if isinstance(target, _Sides) and within:
                # The box is state, which other things may have changed since.
                continue
            if isinstance(target, Parameterized | _Sides):
                now = target.parameters
                values = {key: value for key, value in values.items() if not _same(now.get(key), value)}
            if values:
                target.set(**values)

    def _targets(self, simulation: "Simulation") -> "list[tuple[str, Any]]":
        known: dict[str, Any] = {INTEGRATOR: simulation.integrator}
        if simulation.context.get_state().box is not None:
            known[BOX] = _Sides(simulation, self._fixed_beads)
        known |= dict(simulation.system._named())
        return [(name, look_up(known, name, "force", UnknownNameError)) for name in self._courses]


class _Sides:
    """The box of a context, with the face of what has numbers."""

    def __init__(self, simulation: "Simulation", fixed: FixedBeads) -> None:
        self._context = simulation.context
        self._fixed = fixed

    @property
    def parameters(self) -> dict[str, float]:
        """The sides that are closed."""
        box = self._context.get_state().box or (None, None, None)
        return {name: side for name, side in zip("xyz", box, strict=True) if side is not None}

    def set(self, **sides: float) -> None:
        lengths = {**self.parameters, **sides}
        x, y, z = (lengths.get(name) for name in "xyz")
        self._context.set_box((x, y, z), fixed_beads=self._fixed)

    def check(self, what: str, name: str, side: Any) -> None:
        known = self.parameters
        if name not in known:
            raise ParameterError(f"{what}: {name!r} is not a closed side of the box; {', '.join(known)} can be set")
        known[name] = number(f"{what}: {name}", side, above=0.0)
        x, y, z = (known.get(one) for one in "xyz")
        self._context._check_box(what, (x, y, z), fixed=self._fixed)


def _course(what: str, values: Any) -> Callable[[float], Any]:
    """Return the number as a function of the fraction of the time."""
    if callable(values):
        function: Callable[[float], Any] = values
        return function
    with foreign_errors(f"{what} must be two values or more, or a function of the fraction, not {shown(values)}"):
        points = np.array(values, float)
    if points.ndim == 0 or len(points) < 2 or not np.isfinite(points).all():
        raise ParameterError(f"{what} must be two finite values or more, from first to last, not {shown(values)}")
    return lambda f: _between(points, f)


def _between(points: np.ndarray, f: float) -> Any:
    place = f * (len(points) - 1)
    k = min(int(place), len(points) - 2)
    # At the end to the bit.
    value = points[-1] if f == 1.0 else points[k] + (place - k) * (points[k + 1] - points[k])
    return float(value) if np.ndim(value) == 0 else value


def _check(what: str, target: Any, key: str, value: Any) -> None:
    if isinstance(target, _Sides):
        target.check(what, key, value)
        return
    if isinstance(target, Parameterized):
        if key not in target.changeable:
            raise ParameterError(f"{what}: {key!r} cannot be set; {', '.join(target.changeable) or 'nothing'} can")
        now = {name: target._values[name] for name in target.changeable}
        target._checked(**{**now, key: value})
        return
    if key not in _OF_INTEGRATOR:
        raise ParameterError(f"{what}: {key!r} cannot be set; {', '.join(_OF_INTEGRATOR)} can")
    number(f"{what}: {key}", value, above=0.0)
    if key != "timestep" and target.kT is None:
        raise ParameterError(f"{what}: the word {target.word!r} has no O (friction and noise), and no {key}")


def _same(a: Any, b: Any) -> bool:
    """Tell whether two arguments are equal: tables, sequences, arrays, functions."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if callable(a) or callable(b):
        return bool(a == b)
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))
