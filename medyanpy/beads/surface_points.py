"""Beads that stay on an implicit surface."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.selected import surface_constraints
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import number
from medyanpy.beads.adding import inertia_of, positions_of
from medyanpy.beads.constraint_rows import Rows
from medyanpy.beads.free import Beads, BeadsKind
from medyanpy.core.flows import ConstraintFlow, Flow, Stage
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.surfaces.forms import of_surface
from medyanpy.surfaces.surface import PythonSurface, Surface

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.topology import Topology

# The largest distance of given beads from their surface, relative to its size: they are moved onto it.
REACH = 1e-3


class SurfaceFlow(ConstraintFlow, holds="constraints keep it on its surface"):
    """Beads that stay on a surface: one scalar constraint each (_kernels/beads/surface_constraints.pyx).

    Parameters
    ----------
    points : SurfacePoints
    layout : Layout
    """

    def __init__(self, points: "SurfacePoints", layout: "Layout") -> None:
        surface = points.surface
        evaluator = surface.evaluator
        joint = layout.topology.joint
        taken = np.zeros(len(points), bool) if joint is None else joint.taken(points, len(points))
        # Beads between those that are solved together with constraints written by a user.
        edges = np.flatnonzero(np.diff(np.pad(~taken, 1).astype(np.int8)))
        self._makers = [
            partial(
                surface_constraints.SurfaceConstraints, evaluator,
                surface_constraints.Gradients(evaluator, n, layout.threads), layout.slice_of(points).start + first, n,
                tolerance=points.tolerance, length=surface.length, reach=REACH * surface.length,
            )
            for first, end in edges.reshape(-1, 2).tolist() for n in [end - first]
        ]  # fmt: skip

    def _make(self, action: str, h: float = 0.0) -> "Sequence[Operation]":
        return tuple(make(action, h=h) for make in self._makers)

    def before_a(self, _: Stage) -> "Sequence[Operation]":
        return self._make("start")

    def after_a(self, stage: Stage) -> "Sequence[Operation]":
        return self._make("flight", h=stage.h)

    def after_b(self, _: Stage) -> "Sequence[Operation]":
        return self._make("tangent")

    def after_o(self, stage: Stage) -> "Sequence[Operation]":
        return self.after_b(stage)

    def tangent(self) -> "Sequence[Operation]":
        return self._make("admit")

    def settle(self) -> "Sequence[Operation]":
        return self._make("settle")


class SurfaceKind(BeadsKind):
    """Beads on an implicit surface."""

    handle: "SurfacePoints"
    name = "surface points"
    is_on_surface = True
    degrees_of_freedom_per_bead = 2
    takes_constraints = True
    keeps_momentum: bool = False

    def bind(self, layout: "Layout") -> Flow | None:
        return SurfaceFlow(self.handle, layout) if len(self.handle) else None

    @property
    def obstacle_to_constraints(self) -> str:
        if isinstance(self.handle.surface, PythonSurface):
            return "whose surface is given by Python functions: give it as an expression, and constraints can join them"
        return super().obstacle_to_constraints

    def constraint_rows(self) -> list[Rows]:
        points, surface = self.handle, self.handle.surface
        if isinstance(surface, PythonSurface):
            return []
        # Far from the origin this is the resolution of coordinates.
        size = np.maximum(surface.length, np.linalg.norm(points.positions, axis=1))
        number, nothing = np.arange(len(points)), np.empty((len(points), 0))
        tolerance, label = points.tolerance * size, "the surface under bead {}".format
        return [Rows(of_surface(surface), points.beads[:, None], nothing, tolerance, number, label)]

    def remade(self, positions: np.ndarray) -> np.ndarray:
        return _on_surface(self.handle.name, self.handle.surface, positions, self.handle.tolerance)

    def multipliers(self, positions: np.ndarray, velocities: np.ndarray, forces: np.ndarray) -> np.ndarray:
        # d²g/dt² = 0: the acceleration along the gradient balances the curvature term of the velocity.
        gradient, hessian = self.handle.surface.gradient(positions), self.handle.surface.hessian(positions)
        bends = np.einsum("i,ij,ijk,ik->i", self.handle.mass, velocities, hessian, velocities)
        size = np.einsum("ij,ij->i", gradient, gradient)
        found: np.ndarray = (bends + np.einsum("ij,ij->i", gradient, forces)) / size
        return found

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "surface": self.handle.surface}


class SurfacePoints(Beads, kind=SurfaceKind):
    """Beads that stay on an implicit surface.

    Attributes
    ----------
    surface : Surface
    tolerance : float
        Tolerance of the distance of beads from the surface, relative to its size.
    """

    _added_by = "add_surface_points"

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, mass: np.ndarray,
        friction: np.ndarray, surface: Surface, tolerance: float,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, positions, mass, friction)
        self.surface = surface
        self.tolerance = tolerance

    def _more(
        self, what: str, positions: np.ndarray, mass: np.ndarray, friction: np.ndarray, **own: Any
    ) -> "SurfacePoints":
        self._expect_own(what, own)
        x = _on_surface(what, self.surface, positions, self.tolerance)
        return SurfacePoints(self.topology, self.name, 0, x, mass, friction, self.surface, self.tolerance)

    def _arguments_now(self) -> dict[str, Any]:
        return {"surface": self.surface, **super()._arguments_now(), "tolerance": self.tolerance}


def add_surface_points(
    topology: "Topology", surface: Surface, positions: Numbers, mass: Numbers, friction: Numbers = 0.0, *,
    tolerance: float = 1e-12, name: str | None = None, capacity: int | None = None,
) -> SurfacePoints:  # fmt: skip
    """Add beads that stay on an implicit surface.

    Parameters
    ----------
    surface : Surface
        Such as ``medyanpy.surfaces.Sphere(500.0)``.
    positions : (n, 3) float, nm
        Within 1e-3 of the size of the surface (``surface.length``) from it; they are moved onto it. ``surface.sample(n,
        seed)`` gives positions spread evenly.
    mass : float or (n,) float, pN s²/nm, > 0
    friction : float or (n,) float, pN s/nm, >= 0
    tolerance : float, > 0
        Tolerance of the distance of beads from the surface, relative to its size (or to their distance from the origin,
        where that is larger).
    name : str, optional
    capacity : int, >= n, optional
        As `add_beads`.

    Raises
    ------
    TopologyError
        As `add_beads`. An argument that is not a surface. The first position that is too far from it, or from which
        Newton's method does not lead onto it.
    ParameterError
        A mass, friction or tolerance outside its domain.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> sphere = mp.surfaces.Sphere(500.0)
    >>> walkers = topology.add_surface_points(sphere, sphere.sample(100, seed=1), mass=4e-12, friction=4e-6)
    >>> walkers.degrees_of_freedom
    200
    """
    what = "add_surface_points"
    if not isinstance(surface, Surface):
        raise TopologyError(f"{what}: surface must be one of medyanpy.surfaces, not {surface!r}")
    tolerance = number(f"{what}: tolerance", tolerance, above=0.0)
    x = _on_surface(what, surface, positions_of(what, positions), tolerance)
    room = topology._capacity(what, len(x), capacity)
    first, name = topology._room(what, room, name, "surface points")
    inertia = inertia_of(what, "", len(x), mass, friction)
    made = SurfacePoints(topology, name, first, x, *inertia, surface, tolerance)
    return topology._keep(made, room, mass=mass, friction=friction)


def _on_surface(what: str, surface: Surface, x: np.ndarray, tolerance: float) -> np.ndarray:
    """Move positions (n, 3) of a user onto a surface; TopologyError names the first too far from it."""
    if not len(x):
        return x
    try:
        landed = surface.project(x, tolerance)
    except ParameterError as cause:
        raise TopologyError(f"{what}: {cause}") from cause
    off = np.linalg.norm(landed - x, axis=1)
    reach = REACH * surface.length
    far = off > reach
    if far.any():
        i = int(np.argmax(far))
        raise TopologyError(
            f"{what}: positions[{i}] = {x[i].tolist()} is {off[i]:.3g} nm off the surface, but must be within "
            f"{reach:.3g} nm; surface.project(positions) brings it onto it"
        )
    landed.flags.writeable = False
    return landed
