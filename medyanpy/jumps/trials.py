"""Trial moves of beads that a Python function proposes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from medyanpy._kernels.jumps.trial import Ask, PythonTrials
from medyanpy._tools.validation import array
from medyanpy._tools.validation import number as checked_number
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.jumps._base import Jump, argument, declared, number

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.jump import JumpOperation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.schedule import Schedule
    from medyanpy.engine.worksheet import Remark
    from medyanpy.state import State

__all__ = ["TrialMoves"]


@declared
class TrialMoves(Jump):
    r"""Moves of a few beads that a Python function proposes, accepted by Metropolis' rule with the probability

    .. math:: \min\{1,\, e^{-\Delta U/kT + \ln(b/a)}\}

    ΔU is the change of the energy of all forces of the system. The density of proposing the move is a, that of the move
    back b. Momenta stay. The canonical distribution is preserved at any rate, if the function returns the right ratio.

    Raises
    ------
    TopologyError
        Not the handle of beads that are free to move in space: vertices, in-triangle points, fixed and constrained
        beads are refused.
    ParameterError
        A function that cannot be called, or a number outside its domain.

    Notes
    -----
    The function is called inside the step, with ``(positions, uniform)``: the positions (n, 3) of all beads of the
    handle that are there, nm, read-only, and four random numbers in (0, 1), which are a function of seed and step. It
    takes random numbers from nowhere else, so that runs can be repeated. It returns None for no move, or ``(rows, x)``,
    or ``(rows, x, log_ratio)``: rows (k,) of these positions, new positions (k, 3), nm, and ln(b/a), 0 where none is
    given. An exception, or another result, ends the run with a `SimulationError` that names the step.

    A trial costs a call of Python, some microseconds, and the change of the energy near the beads that move. To write
    trial moves as a kernel see "How to add a jump" in the documentation.

    References
    ----------
    N. Metropolis et al., J. Chem. Phys. 21, 1087 (1953). W. K. Hastings, Biometrika 57, 97 (1970): ln(b/a).

    Examples
    --------
    >>> import numpy as np, medyanpy as mp
    >>> topology = mp.Topology()
    >>> ions = topology.add_beads(np.zeros((20, 3)), mass=1.0, friction=1.0)
    >>> system = mp.System(topology)
    >>> trap = system.add_force(mp.forces.HarmonicTrap(ions, 1.0, (0.0, 0.0, 0.0)))
    >>> def anywhere_near(x, uniform):
    ...     row = int(uniform[0] * len(x))
    ...     return [row], [x[row] + 2.0 * (uniform[1:] - 0.5)]
    >>> moves = system.add_jump(mp.jumps.TrialMoves(ions, anywhere_near, rate=200.0))
    """

    kinds: ClassVar[tuple[str, ...]] = ("move",)
    beads: Handle = argument("handle", "Beads that are free to move in space.", attribute="Beads that move.")
    propose: Callable[..., Any] = argument(
        "callable (positions, uniform) -> None, (rows, x) or (rows, x, log_ratio)", "See Notes."
    )
    rate: float = number("1/s", "Of trials, of all beads together.", at_least=0.0)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        handle, function = given["beads"], given["propose"]
        if not isinstance(handle, Handle):
            raise TopologyError(f"{self.name}: beads must be a handle, not {handle!r}")
        kind = handle.kind
        free = kind.block in (Block.OTHERS, Block.ORIENTED) and not kind.constraint_rows()
        if not free or np.any(kind.fixed_beads):
            raise TopologyError(
                f"{self.name}: beads of {handle!r} are not free to move in space: vertices, points, fixed and "
                "constrained beads cannot be moved; give free beads"
            )
        if not callable(function):
            raise ParameterError(f"{self.name}: propose must be callable, not {function!r}")
        self._handle, self._function = handle, function

    @property
    def handles(self) -> tuple[Handle, ...]:
        return (self._handle,)

    def bind(self, layout: "Layout", kT: float) -> "JumpOperation":
        joint = self._handle.topology.joint
        if joint is not None and self._handle in joint.handles:
            raise TopologyError(f"{self.name}: constraints join beads of {self._handle!r}, which cannot be moved alone")
        places = layout.internal(self._handle.kind.all_rows).astype(np.int32)
        operation = PythonTrials(self.name, kT, self.every, self._proposed, places, layout.n, layout.momenta_sizes)
        self.update(operation, kT)
        return operation

    def _proposed(self, positions: np.ndarray, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Return the result of the function as arrays of the types that the kernel takes."""
        found = self._function(positions, uniform)
        if found is None:
            return None
        if not isinstance(found, tuple | list) or len(found) not in (2, 3):
            wanted = "None, (rows, x) or (rows, x, log_ratio)"
            raise ParameterError(f"{self.name}: propose must return {wanted}, not {found!r}")
        rows = array(f"{self.name}: rows", found[0], (None,), dtype=np.int64)
        n = len(positions)
        if ((rows < 0) | (rows >= n)).any() or len(np.unique(rows)) < len(rows):
            raise ParameterError(f"{self.name}: rows must be different numbers from 0 to {n - 1}, not {rows.tolist()}")
        x = array(f"{self.name}: x", found[1], (len(rows), 3))
        ratio = checked_number(f"{self.name}: log_ratio", found[2]) if len(found) == 3 else 0.0
        return rows.astype(np.int32), np.ascontiguousarray(x, float), ratio

    def update(self, operation: Any, kT: float) -> None:
        operation.set(kT, self.rate)

    def log_weight(self, operation: "JumpOperation", state: "State", kT: float) -> float:
        # States are weighed by their energy alone.
        return 0.0

    def weigh(self, operation: Any, schedule: "Schedule") -> None:
        bound = schedule.bound
        operation.weights.take(bound, [Ask.DIFFERENCE] * len(bound), None, None)

    def fastest(self, kT: float | None) -> float:
        return float(self.rate) / max(1, len(self._handle))

    def remarks_on_cost(self, operation: Any, schedule: "Schedule") -> "list[Remark]":
        return self._remarks_on_whole_energies(schedule, self.rate, "a move")
