"""Adhesion of a membrane to walls, spheres and beads."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.membrane_adhesion import MembraneAdhesion as AdhesionOperation
from medyanpy._tools.sums import lengths
from medyanpy.beads import Balls, InTrianglePoints
from medyanpy.boundaries import Boundary, Plane
from medyanpy.core.handles import Handle
from medyanpy.errors import MeshQualityWarning, ParameterError, TopologyError, shown, warn_outside
from medyanpy.forces._base import Each, argument, declared, number
from medyanpy.forces.membrane import _MembraneForce
from medyanpy.surfaces import Sphere

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["MembraneAdhesion"]

_NONE = np.empty((0, 6)), np.empty((0, 9))
#: Of a well in a periodic box, in ranges: beyond that the energy is less than 5e-9 of its depth.
_REACH = 20.0


@declared
class MembraneAdhesion(_MembraneForce):
    r"""Adhesion of a membrane to a wall, a sphere, or beads: a well in the distance, per area.

    .. math:: U = \sum_v A_v w_v \sum_t \bigl(q^2 - 2 q\bigr), \quad q = e^{-(d_{vt} - d_0)/\rho}

    over vertices v, with a third of the area of the triangles round each, and targets t; d is the distance from the
    surface of the target, negative behind it.

    Parameters
    ----------
    membrane
        V vertices.

    Raises
    ------
    TopologyError
        Not the handle of a membrane; beads without a place of their own in space, or of the membrane itself.
    ParameterError
        Another target. A number outside its domain. When a Context is made, a periodic box that is too small or across
        a wall.

    Notes
    -----
    The derivative of the areas pulls the membrane into contact like a tension of -w. A sphere of radius a is wrapped by
    a membrane without tension for w > 2κ/a², if ρ is well below a; then contact costs 8πκ and gains 4πa²w.

    Distances are those of vertices: edges must be shorter than √(aρ) at spheres of radius a, or the triangles between
    reach into them; a `MeshQualityWarning` reports longer ones. The stiffness 2w A_v/ρ² of a vertex sets the timestep
    of narrow wells.

    In a periodic box a membrane adheres to the nearest image of a round target. Half the box must be larger than the
    radius of a sphere, or the extent of a capsule, plus d0 + 20 ρ, beyond which the energy is less than 5e-9 of the
    depth. A wall across a periodic direction is refused. With beads as target, momentum is kept. Every vertex is
    compared with every bead, O(V n), and interacts within 40 ρ (beyond, the energy is less than 1e-17 w): meant for
    particles, not for thousands of lipids. In the middle of a sphere the force is zero.

    References
    ----------
    U. Seifert, R. Lipowsky, Phys. Rev. A 42, 4768 (1990): adhesion by an energy per area. P. M. Morse, Phys. Rev. 34,
    57 (1929): the well. M. Deserno, Phys. Rev. E 69, 031903 (2004): wrapping.
    """

    to: "Boundary | Sphere | Handle" = argument(
        "boundaries.Plane, boundaries.Sphere, boundaries.Capsule, surfaces.Sphere, or handle of beads",
        "The target: a wall, from the side where beads are to be; a sphere, from outside; or all beads of a handle, by "
        "their radius if they are balls, which receive the opposite force.", attribute="The object that it adheres to.",
    )  # fmt: skip
    strength: Each = number(
        "pN/nm", "w: the energy is -w per area in contact, at the distance d0. Lipid membranes 0.001 to 1.",
        per="membrane.beads", many="(V,)",
    )  # fmt: skip
    range: float = number(
        "nm", "ρ: the energy is -0.26 w at d0 + 2ρ, and zero at d0 - 0.69 ρ; closer the membrane is repelled.",
        above=0.0,
    )  # fmt: skip
    distance: float = number("nm", "d0, where the energy is lowest.", default=0.0)

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        to = self._to = given["to"]
        if isinstance(to, Handle):
            if to is self.membrane or isinstance(to, InTrianglePoints) or not to.kind.in_space:
                raise TopologyError(f"{self.name}: to must be beads with a place of their own in space, not {to!r}")
        else:
            _shapes(self.name, to)

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        radius, reach = self._smallest_radius(checked["distance"]), checked["range"]
        edge = float(self.membrane.mesh.edge_lengths.mean())
        longest = float(np.sqrt(radius * reach))
        if edge > longest and reach != self._values.get("range"):
            warn_outside(
                f"{self.name}: edges of {self.membrane.name!r} are {edge:.4g} nm long, but must be shorter than "
                f"√(aρ) = {longest:.4g} nm at a radius a = {radius:.4g} nm with the range ρ = {reach:.4g} nm: the well "
                "is too narrow for the triangles between vertices. Give a finer mesh, or a range of at least "
                f"{edge**2 / radius:.4g} nm",
                MeshQualityWarning,
            )
        return checked

    def _smallest_radius(self, distance: float) -> float:
        """Return the radius of the target, inf of a plane, nm; of beads without a radius the distance of adhesion."""
        if not isinstance(self._to, Handle):
            return float(_shapes(self.name, self._to)[1][:, 7].min(initial=np.inf))
        radii = self._to.radius if isinstance(self._to, Balls) else np.zeros(len(self._to))
        return max(float(np.min(radii, initial=np.inf)), distance) or np.inf

    @property
    def handles(self) -> tuple[Handle, ...]:
        return (self.membrane, self._to) if isinstance(self._to, Handle) else (self.membrane,)

    @property
    def conserves_momentum(self) -> bool:  # type: ignore[override]
        """True if it acts between beads alone."""
        return isinstance(self._to, Handle)

    def bind(self, layout: "Layout") -> "Operation":
        strength, reach, distance = self._named("strength", "range", "distance")
        strength = np.ascontiguousarray(np.broadcast_to(strength, (len(self.membrane),)), float)
        beads, radius = np.empty(0, np.int32), np.empty(0)
        if isinstance(self._to, Handle):
            planes, rounds = _NONE
            beads = layout.internal(self._to.kind.with_room).astype(np.int32)
            radius = np.zeros(len(beads))
            if isinstance(self._to, Balls):
                born = self._to.kind.of_all("radius")
                radius[:] = np.max(self._to.radius, initial=0.0) if born is None else born
                radius[: len(self._to)] = self._to.radius
        else:
            planes, rounds = _shapes(self.name, self._to)
            self._to._expect_space_behind(self.name, layout.box)
        if layout.is_periodic and not len(planes):
            # Segments are relative to their starts.
            size = np.concatenate([rounds[:, 6] + rounds[:, 7], radius]).max(initial=0.0)
            layout.expect_width(self.name, size + max(distance, 0.0) + _REACH * reach)
        return AdhesionOperation(*self._place(layout), strength, reach, distance, planes, rounds, beads, radius)


def _shapes(name: str, to: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return planes (n, 6) and round targets (n, 9), as the kernel takes them."""
    if isinstance(to, Plane):
        return np.concatenate([to.point, to.normal])[None], _NONE[1]
    if isinstance(to, Boundary):
        _, start, way, radius, side = to._shape
        length = float(lengths(way))
        return _NONE[0], np.array([[*start, *(way / length if length else way), length, radius, side]])
    raise ParameterError(
        f"{name}: to must be a wall of boundaries, a surfaces.Sphere, or the handle of beads, not {shown(to)}"
    )
