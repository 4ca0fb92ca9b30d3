"""Fields on a membrane: energies of in-triangle points by their triangle and weights."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.accumulate import Accumulator
from medyanpy._kernels.membrane_fields import PythonField, VertexField
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.beads import InTrianglePoints
from medyanpy.errors import ParameterError
from medyanpy.forces._base import Domain, Force, domain_table, expect_handle

if TYPE_CHECKING:
    from medyanpy._kernels.program import Operation
    from medyanpy.forces._stiffness import Start
    from medyanpy.handles import Handle
    from medyanpy.layout import Layout

__all__ = ["MembraneField", "PythonMembraneField"]


class _OnMembrane(Force):
    """An energy of the points of one handle, that does not change when the membrane moves with its points."""

    conserves_momentum: bool = True

    def __init__(self, points: InTrianglePoints, *, name: str | None, group: int) -> None:
        super().__init__(name=name, group=group)
        self._points = expect_handle(f"{self.name}: points", points, InTrianglePoints, "in-triangle points")

    @property
    def points(self) -> InTrianglePoints:
        return self._points

    @property
    def handles(self) -> "tuple[Handle, ...]":
        return (self._points,)

    def _place(self, layout: "Layout") -> tuple[Any, ...]:
        """What both kernels ask for first."""
        of_vertices, of_points = layout.numbers_of_membranes()
        return (
            self.name,
            layout.internal(self._points.with_room).astype(np.int32),
            layout.slice_of(self._points.membrane).start,
            Accumulator(len(of_vertices), layout.threads, of_vertices, of_points),
        )


class MembraneField(_OnMembrane):
    r"""A field on a membrane: an energy of in-triangle points, given at the vertices.

    .. math:: U = \sum_p \sum_{i=1}^3 \lambda_{pi}\, u_i

    with the weights λ of each point p in its triangle, and the values u at the corners of that: linear inside
    triangles, continuous across edges.

    Parameters
    ----------
    points : InTrianglePoints
        Of a membrane with V vertices.
    values : float or (V,) float, pN nm, finite
        u, the energy of a point at each vertex of the membrane.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of in-triangle points.
    ParameterError
        Values of another shape, or not finite.

    Notes
    -----
    The field belongs to the material of the membrane: it moves with the vertices, and a membrane that is moved, bent or
    stretched with its points has the same energy. So vertices feel no force; points feel
    :math:`\dot p_\lambda = -\partial U/\partial\lambda`. Points in equilibrium have the density
    :math:`e^{-u/kT}` per area of the triangles as they are. For a field in space, in which membranes feel what their
    points feel, see `ExternalField`.

    In `state.forces` points have the force in the plane of their triangle that does this, and vertices what makes up
    for that which points pass on to them.

    The force jumps where a point crosses an edge: errors of the energy there are those of the flight itself, see
    :doc:`/theory/geodesic`.

    Examples
    --------
    Proteins drawn to one end of a vesicle:

    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 2), vertex_mass=1.0)
    >>> proteins = topology.add_intriangle_points(vesicle, 50, mass=1.0, seed=1)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.MembraneField(proteins, -0.1 * vesicle.mesh.vertices[:, 2]))
    MembraneField(values=array of 162)
    """

    domains: Mapping[str, Domain] = domain_table(values=Domain("pN nm", per="points.membrane.beads"))
    values: float | np.ndarray

    def __init__(self, points: InTrianglePoints, values: "Numbers", *, name: str | None = None, group: int = 0) -> None:
        super().__init__(points, name=name, group=group)
        self._declare(values=values)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        # Linear in the weights: no curvature but at edges.
        return np.zeros(start.n_rows)

    def bind(self, layout: "Layout") -> "Operation":
        return VertexField(*self._place(layout), np.ascontiguousarray(self._numbers["values"]))


class PythonMembraneField(_OnMembrane):
    """An energy of in-triangle points by their triangle and weights, from a Python function.

    Parameters
    ----------
    points : InTrianglePoints
        n of them.
    function : callable (triangles, barycentric) -> (energies, derivatives)
        Called inside every step. ``triangles`` (n,) int are faces of the membrane's mesh, ``barycentric`` (n, 3) the
        weights of their corners, sum 1; both in the order of ``points.beads``, without rows asleep, and read-only.
        ``energies`` (n,), pN nm; ``derivatives`` (n, 3), pN nm, by each of the three weights as if these were
        independent: only their differences count.
    replay : bool
        As in `PythonForce`.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of in-triangle points.
    ParameterError
        A `function` that cannot be called.

    Notes
    -----
    What `MembraneField` says of vertices holds here: the energy depends on weights, and not on where vertices are. For
    energies that do, find the points' places with `PythonForce`. Let energies be continuous across edges; a jump there
    is not noticed by points that fly over it, and energy is not kept.

    An exception of the function, and anything but finite numbers of these shapes, ends the run with a
    `SimulationError`.

    Examples
    --------
    >>> import numpy as np, medyanpy as mp
    >>> topology = mp.Topology()
    >>> cell = topology.add_membrane(mp.TriangleMesh.icosphere(10.0, 1), vertex_mass=1.0)
    >>> points = topology.add_intriangle_points(cell, 5, mass=1.0, seed=1)
    >>> def away_from_vertices(triangles, weights, depth=2.0):
    ...     return depth * np.sum(weights**2, axis=1), 2.0 * depth * weights
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.PythonMembraneField(points, away_from_vertices))
    PythonMembraneField(away_from_vertices)
    """

    def __init__(
        self,
        points: InTrianglePoints,
        function: Callable[..., tuple[Any, Any]],
        *,
        replay: bool = True,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        super().__init__(points, name=name, group=group)
        if not callable(function):
            raise ParameterError(f"{self.name}: function must be callable, not {function!r}")
        self._function = function
        self._replay = bool(replay)

    @property
    def function(self) -> Callable[..., tuple[Any, Any]]:
        return self._function

    @property
    def replay(self) -> bool:
        """Whether evaluations may be repeated."""
        return self._replay

    def _call(self, triangles: np.ndarray, barycentric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the function returns, checked."""
        result = self._function(triangles, barycentric)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise ParameterError(
                f"{self.name}: the function must return (energies, derivatives), not {type(result).__name__}"
            )
        n = len(triangles)
        energies, derivatives = (
            np.ascontiguousarray(array(f"{self.name}: the {part} returned", value, shape))
            for part, value, shape in zip(("energies", "derivatives"), result, ((n,), (n, 3)), strict=True)
        )
        return energies, derivatives

    def bind(self, layout: "Layout") -> "Operation":
        return PythonField(*self._place(layout), self._call, self._points.membrane.first_face, self._replay)

    def __repr__(self) -> str:
        return f"PythonMembraneField({getattr(self._function, '__name__', self._function)!s})"
