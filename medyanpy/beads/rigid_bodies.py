"""Rigid molecules: oriented beads at their centres of mass."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.described import scalar_if_one
from medyanpy._tools.validation import per_item, whole_number
from medyanpy.beads.adding import moments_of, positions_of, row_if_one
from medyanpy.beads.oriented import OrientedBeads, friction_tensors, unit_quaternions
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.topology import Topology


# They are drawn no thinner than this, relative to their length.
THINNEST = 0.05


def solid_semi_axes(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """(n, 3) of solid ellipsoids of masses (n,) and principal moments (n, 3), I1 = m(a2² + a3²)/5 and so on."""
    square = 2.5 * (inertia.sum(axis=1)[:, None] - 2.0 * inertia) / mass[:, None]
    a = np.sqrt(np.maximum(square, 0.0))
    return np.maximum(a, THINNEST * a.max(axis=1)[:, None])


class RigidBodies(OrientedBeads):
    """Rigid molecules: oriented beads at their centres of mass."""

    kind = "rigid bodies"
    added_by = "add_rigid_bodies"

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "semi_axes": (solid_semi_axes(self.mass, self.inertia), "nm")}

    def _arguments_now(self) -> dict[str, Any]:
        tensors = self.friction_tensors
        t, r = tensors[0, [0, 3], [0, 3]]
        plain = len(tensors) == 1 and (tensors[0] == np.diag([t, t, t, r, r, r])).all()
        fixed = self.held[:, 0]
        return {
            "positions": self.positions,
            "orientations": self.orientations,
            "mass": scalar_if_one(self.mass),
            "inertia": row_if_one(self.inertia),
            # Numbers may be zero, tensors must be positive definite.
            "friction": tensors[0, [0, 3], [0, 3]] if plain else tensors[0] if len(tensors) == 1 else tensors,
            "fixed": bool(fixed[0]) if fixed.all() or not fixed.any() else fixed,
            "rotation_parts": self.rotation_parts,
            "name": self.name,
        }


def add_rigid_bodies(
    topology: "Topology",
    positions: Any,
    orientations: Any,
    mass: Any,
    inertia: Any,
    friction: Any = 0.0,
    *,
    friction_point: Any = None,
    fixed: Any = False,
    rotation_parts: int = 1,
    name: str | None = None,
) -> RigidBodies:
    """Add rigid bodies.

    Parameters
    ----------
    positions : (n, 3) float, nm
        Of the centres of mass.
    orientations : (n, 4) float, dimensionless
        Unit quaternions, scalar first, that turn vectors of the body frame (the principal axes of inertia) into
        space. Within 1e-6 of length 1; they are scaled to it.
    mass : float or (n,) float, pN s²/nm, > 0
    inertia : (3,) or (n, 3) float, pN s² nm, > 0
        Principal moments of inertia; none may exceed the sum of the other two.
    friction : float, (float, float), or (6, 6) or (n, 6, 6) float, pN s/nm and pN s nm, >= 0
        One number is the friction of translation, pN s/nm, two are those of translation and rotation (pN s nm),
        and a tensor is in the body frame, translation first, symmetric and positive definite; see
        `medyanpy.rigid`.
    friction_point : (3,) float, nm, optional
        The reference point of the tensor, in the body frame; by default the centre of mass.
    fixed : bool or (n,) bool
        Which bodies do not move.
    rotation_parts : int, >= 1
        Parts into which the free rotation of each A is cut: the error of its energy falls as the square of it.
    name : str, optional

    Raises
    ------
    TopologyError
        As `add_beads`; orientations that are not unit quaternions.
    ParameterError
        A mass, inertia or friction outside its domain.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> rods = topology.add_rigid_bodies(
    ...     [[0, 0, 0], [30, 0, 0]], [[1, 0, 0, 0], [0.6, 0.8, 0, 0]], mass=1e-12, inertia=[2e-11, 2e-11, 4e-12]
    ... )
    >>> rods.degrees_of_freedom
    12
    """
    what = "add_rigid_bodies"
    x = positions_of(what, positions)
    n = len(x)
    q = unit_quaternions(f"{what}: orientations", orientations, n)
    first, name = topology._room(what, n, name, "rigid bodies")
    mass = per_item(f"{what}: mass", mass, n, above=0.0)
    moments = moments_of(f"{what}: inertia", inertia, n)
    tensors = friction_tensors(f"{what}: friction", friction, n, friction_point)
    parts = whole_number(f"{what}: rotation_parts", rotation_parts, at_least=1, at_most=1000)
    fixed = np.asarray(fixed)
    if fixed.dtype != bool or fixed.shape not in ((), (n,)):
        raise TopologyError(f"{what}: fixed must be True or False, or {n} of these, not {fixed!r}")
    held = np.repeat(np.broadcast_to(fixed, (n,))[:, None], 2, axis=1)
    held.flags.writeable = False
    return topology._keep(RigidBodies(topology, name, first, x, mass, q, moments, tensors, parts, held))
