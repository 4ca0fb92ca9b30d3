"""Forces written in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy._kernels.python_force import PythonTerm
from medyanpy.errors import ParameterError
from medyanpy.forces._base import Force
from medyanpy.validation import array, number

__all__ = ["PythonForce"]


class PythonForce(Force):
    """An energy and its forces from a Python function: the way to try a force before writing a kernel.

    Parameters
    ----------
    function : callable (positions) -> (energy, forces)
        Called inside every step. ``positions`` is an (n, 3) array, nm, of all beads in topology order
        (``handle.beads`` selects), read-only and a copy of its own each time. ``energy``, pN nm, is a number;
        ``forces``, pN, an (n, 3) array: minus the gradient of the energy with respect to each position, that
        of an in-triangle point taken as if it were free. The function must depend on nothing but the
        positions, or runs are not repeatable.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A `function` that cannot be called.

    Notes
    -----
    An exception of the function ends the run with a `SimulationError` that names the step and is chained to
    the exception with its own traceback; so does anything but a finite number and finite (n, 3) forces.
    Ctrl-C inside the function calls it once more, so that the step ends whole, and is raised between two
    steps.

    `medyanpy.testing.check_force` finds forces that do not fit their energy.

    Examples
    --------
    >>> import numpy as np, medyanpy as mp
    >>> def spring_to_origin(x, k=2.0):
    ...     return 0.5 * k * np.sum(x**2), -k * x
    >>> topology = mp.Topology()
    >>> bead = topology.add_beads([[3.0, 0, 4]], mass=1.0)
    >>> system = mp.System(topology)
    >>> force = system.add_force(mp.forces.PythonForce(spring_to_origin))
    >>> state = mp.Context(system, mp.VerletIntegrator(0.01)).get_state(energy=True, forces=True)
    >>> state.energies, state.forces
    ({'PythonForce': 25.0}, array([[-6.,  0., -8.]]))
    """

    def __init__(
        self, function: Callable[[np.ndarray], tuple[float, Any]], *, name: str | None = None, group: int = 0
    ) -> None:
        super().__init__(name=name, group=group)
        if not callable(function):
            raise ParameterError(f"{self.name}: function must be callable, not {function!r}")
        self._function = function

    @property
    def function(self) -> Callable[[np.ndarray], tuple[float, Any]]:
        return self._function

    def _call(self, positions: np.ndarray) -> tuple[float, np.ndarray]:
        """What the function returns, checked."""
        result = self._function(positions)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ParameterError(f"{self.name}: the function must return (energy, forces), not {type(result).__name__}")
        energy, forces = result
        what = f"{self.name}: the energy returned"
        if np.ndim(energy):
            raise ParameterError(f"{what} must be one number, not an array of shape {np.shape(energy)}")
        energy = number(what, energy)
        what = f"{self.name}: the forces returned"
        if np.iscomplexobj(forces):
            raise ParameterError(f"{what} must be real, not complex")
        return energy, array(what, forces, positions.shape)

    def bind(self, layout):
        return PythonTerm(self.name, self._call)

    def __repr__(self) -> str:
        return f"PythonForce({getattr(self._function, '__name__', self._function)!s})"
