"""Forces written in Python."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.python_force import PythonTerm
from medyanpy._tools.validation import array, number
from medyanpy.core.handles import handles_in
from medyanpy.errors import ParameterError
from medyanpy.forces._arguments import Beads
from medyanpy.forces._base import Force, bead_rows

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout

__all__ = ["CallsPython", "PythonForce"]


class CallsPython(Force):
    """Base class of forces that call a Python function inside every step."""

    def _take_function(self, function: Callable[..., tuple[Any, ...]], replay: bool) -> None:
        if not callable(function):
            raise ParameterError(f"{self.name}: function must be callable, not {function!r}")
        self._function = function
        self._replay = bool(replay)

    @property
    def function(self) -> Callable[..., tuple[Any, ...]]:
        return self._function

    @property
    def replay(self) -> bool:
        """True if evaluations may be repeated."""
        return self._replay

    def _returned(self, parts: tuple[str, ...], *arguments: np.ndarray) -> tuple[Any, ...]:
        """Call the function and return its results, one for each of these names."""
        result = self._function(*arguments)
        if not isinstance(result, tuple | list) or len(result) != len(parts):
            wanted = f"({', '.join(parts)})"
            raise ParameterError(f"{self.name}: the function must return {wanted}, not {type(result).__name__}")
        return tuple(result)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self._function, '__name__', self._function)!s})"


class PythonForce(CallsPython):
    """An energy and its forces from a Python function: the way to try a force before writing a kernel.

    Parameters
    ----------
    function : callable (positions) -> (energy, forces)
        Called inside every step. ``positions`` is an (n, 3) array, nm, of all beads in topology order (``handle.beads``
        selects), read-only and a copy of its own each time. ``energy``, pN nm, is a number; ``forces``, pN, an (n, 3)
        array: minus the gradient of the energy with respect to each position, that of an in-triangle point taken as if
        it were free. Rows without a bead are left out: where beads come and go, name the beads with `beads`.
    beads : handle, list of handles, or (k,) int, optional
        Pass these beads only, in the order in which they are given: of handles those that are there.
    replay : bool
        True if the function depends only on its arguments, so that steps can be taken again with the same result. Give
        False where it does not (it counts, draws random numbers, talks to another program). The function is then called
        once for every evaluation. After a fault the simulation goes back to a state at most some hundredths of a second
        of run time old, instead of exactly to the step that failed.
    orientations : bool
        Call ``function(positions, orientations) -> (energy, forces, torques)``. ``orientations`` is (m, 4), the unit
        quaternions of the oriented beads among those, scalar first, which turn vectors of the body frame into space.
        ``torques``, (m, 3), pN nm, are in the body frame: minus the derivative of the energy with respect to turning
        the body about its own axes.
    name, group
        See `Force`.

    Raises
    ------
    ParameterError
        A `function` that cannot be called.
    TopologyError
        Not beads; or (when bound) beads that do not exist, or are named twice.

    Notes
    -----
    An exception of the function ends the run with a `SimulationError` that names the step and is chained to it; so does
    anything but a finite number and finite (n, 3) forces. Ctrl-C inside the function calls it once more, so that the
    step ends whole, and is raised between two steps; without `replay` the simulation goes back instead. A run does not
    compare forces with the energy: run `medyanpy.testing.check_force` once for every new function.

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

    # The energy cannot be trusted: forces alone, with an energy of zero, are common.
    of_positions_alone = True
    energy_tells_work = False
    calls_python = True

    def __init__(
        self, function: Callable[..., tuple[Any, ...]], *, beads: "Beads | None" = None, replay: bool = True,
        orientations: bool = False, name: str | None = None, group: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(name=name, group=group)
        self._take_function(function, replay)
        self._handles = handles_in(beads)
        self._bead_numbers: np.ndarray | None = None
        if beads is not None and not self._handles:
            self._bead_numbers = bead_rows(f"{self.name}: beads", beads, (None,))
        self._orientations = bool(orientations)

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return self._handles

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        return {} if self._bead_numbers is None else {"bead": gone[self._bead_numbers]}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        assert self._bead_numbers is not None
        self._bead_numbers = self._bead_numbers[~terms["bead"]]
        self._was_cut = True
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        return super()._arguments_now() | ({"beads": self._bead_numbers} if self._was_cut else {})

    @property
    def orientations(self) -> bool:
        """True if the function gets orientations and returns torques."""
        return self._orientations

    def _call(self, *arguments: np.ndarray) -> tuple[Any, ...]:
        """Call the function, check and return the energy, forces for positions, and torques for orientations."""
        parts = ("energy", "forces", "torques")[: 1 + len(arguments)]
        energy, *arrays = self._returned(parts, *arguments)
        what = f"{self.name}: the energy returned"
        if np.ndim(energy):
            raise ParameterError(f"{what} must be one number, not an array of shape {np.shape(energy)}")
        energy = number(what, energy)
        checked = []
        for part, value, argument in zip(parts[1:], arrays, arguments, strict=True):
            what = f"{self.name}: the {part} returned"
            if np.iscomplexobj(value):
                raise ParameterError(f"{what} must be real, not complex")
            checked.append(array(what, value, (len(argument), 3)))
        return energy, *checked

    def bind(self, layout: "Layout") -> "Operation":
        if self._handles:
            beads = np.concatenate([handle.kind.with_room for handle in self._handles])
        else:
            beads = np.arange(layout.n) if self._bead_numbers is None else self._bead_numbers
        if self._bead_numbers is not None or self._handles:
            layout.topology.bead_indices(f"{self.name}: beads", self._handles or self._bead_numbers)
        place = layout.internal(beads)
        body = place - layout.first_oriented
        rows = place.astype(np.int32), body[(body >= 0) & (body < layout.n_oriented)].astype(np.int32)
        return PythonTerm(self.name, self._call, *rows, self._replay, self._orientations)
