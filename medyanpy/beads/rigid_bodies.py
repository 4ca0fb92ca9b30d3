"""Rigid molecules: oriented beads at their centres of mass."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import per_item, whole_number
from medyanpy.beads.adding import fixed_of, moments_of, positions_of, row_if_one
from medyanpy.beads.oriented import OrientedBeads, OrientedKind, friction_tensors, unit_quaternions
from medyanpy.errors import ParameterError

if TYPE_CHECKING:
    from medyanpy.topology import Topology


# They are drawn no thinner than this, relative to their length.
THINNEST = 0.05


def solid_semi_axes(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return semi-axes (n, 3) of solid ellipsoids of masses (n,) and principal moments (n, 3).

    I1 = m(a2² + a3²)/5 and so on.
    """
    square = 2.5 * (inertia.sum(axis=1)[:, None] - 2.0 * inertia) / mass[:, None]
    a = np.sqrt(np.maximum(square, 0.0))
    axes: np.ndarray = np.maximum(a, THINNEST * a.max(axis=1)[:, None])
    return axes


class RigidKind(OrientedKind):
    """Rigid bodies."""

    name = "rigid bodies"
    takes_constraints = True

    def beside_frames(self) -> dict[str, Any]:
        axes = solid_semi_axes(self.handle.mass, self.handle.inertia)
        return {**super().beside_frames(), "semi_axes": (axes, "nm")}


class RigidBodies(OrientedBeads, kind=RigidKind):
    """Rigid molecules: oriented beads at their centres of mass."""

    _added_by = "add_rigid_bodies"

    def add(  # type: ignore[override]
        self,
        positions: Numbers,
        orientations: Numbers,
        mass: Numbers | None = None,
        inertia: Numbers | None = None,
        friction: Numbers | None = None,
        *,
        friction_point: Numbers | None = None,
        fixed: Numbers = False,
    ) -> np.ndarray:
        """Add bodies to these: to a running simulation inside ``with topology.edit():``.

        Parameters
        ----------
        positions, orientations, friction_point, fixed
            As of `Topology.add_rigid_bodies`.
        mass, inertia, friction : optional
            Likewise; by default those of the present bodies, which must then have the same.

        Returns
        -------
        (k,) int array
            Their rows: inactive rows first.

        Raises
        ------
        TopologyError, ParameterError
            As `Topology.add_rigid_bodies`; a topology in use outside of an edit.
        """
        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        if friction is None:
            # A number may be zero, a tensor not: these have been checked.
            tensors = self._friction_tensors
            if len(tensors) > 1 and not (tensors == tensors[0]).all():
                raise ParameterError(f"{what}: give friction=, because the bodies of {self.name!r} differ in it")
        other = _rigid_bodies(
            self.topology, what, positions, orientations, self._number_for(what, "mass", mass),
            self._number_for(what, "inertia", inertia), 0.0 if friction is None else friction, friction_point, fixed,
            self._rotation_parts,
        )  # fmt: skip
        if friction is None:
            other._complete(**self._with_friction({"mass": other.mass}, tensors[:1]))
        return self.topology._grow(self, other)

    def _arguments_now(self) -> dict[str, Any]:
        tensors = self._friction_tensors
        t, r = tensors[0, [0, 3], [0, 3]]
        plain = len(tensors) == 1 and (tensors[0] == np.diag([t, t, t, r, r, r])).all()
        fixed = self._held[:, 0]
        return {
            "positions": self.positions,
            "orientations": self.orientations,
            **self._numbers_now("mass"),
            "inertia": row_if_one(self.inertia) if len(self) else self._of_all.get("inertia", self.inertia),
            # Numbers may be zero, tensors must be positive definite.
            "friction": tensors[0, [0, 3], [0, 3]] if plain else tensors[0] if len(tensors) == 1 else tensors,
            "fixed": bool(fixed.any()) if fixed.all() or not fixed.any() else fixed,
            "rotation_parts": self._rotation_parts,
            "name": self.name,
            **self._room_now(),
        }


def add_rigid_bodies(
    topology: "Topology", positions: Numbers, orientations: Numbers, mass: Numbers, inertia: Numbers,
    friction: Numbers = 0.0, *, friction_point: Numbers | None = None, fixed: Numbers = False, rotation_parts: int = 1,
    name: str | None = None, capacity: int | None = None,
) -> RigidBodies:  # fmt: skip
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
        One number is the friction of translation, pN s/nm, two are those of translation and rotation (pN s nm). A
        tensor is in the body frame, translation first, symmetric and positive definite; see `medyanpy.rigid`.
    friction_point : (3,) float, nm, optional
        The reference point of the tensor, in the body frame; by default the centre of mass.
    fixed : bool or (n,) bool
        True for bodies that do not move.
    rotation_parts : int, >= 1
        Parts into which the free rotation of each A is cut: the error of its energy falls as the square of it.
    name : str, optional
    capacity : int, >= n, optional
        As `add_beads`.

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
    made = _rigid_bodies(
        topology, what, positions, orientations, mass, inertia, friction, friction_point, fixed, rotation_parts
    )
    room = topology._capacity(what, len(made), capacity)
    first, name = topology._room(what, room, name, "rigid bodies")
    made._complete(_first=first, name=name)
    if not len(made) and np.ndim(cast(Any, inertia)) == 1:
        made._of_all["inertia"] = moments_of(f"{what}: inertia", inertia, 1)[0]
    return topology._keep(made, room, mass=mass)


def _rigid_bodies(
    topology: "Topology", what: str, positions: Any, orientations: Any, mass: Any, inertia: Any, friction: Any,
    friction_point: Any, fixed: Any, parts: int,
) -> RigidBodies:  # fmt: skip
    """Make a handle in no topology of bodies from user input, checked."""
    x = positions_of(what, positions)
    n = len(x)
    q = unit_quaternions(f"{what}: orientations", orientations, n)
    mass = per_item(f"{what}: mass", mass, n, above=0.0)
    moments = moments_of(f"{what}: inertia", inertia, n)
    tensors = friction_tensors(f"{what}: friction", friction, n, friction_point)
    parts = whole_number(f"{what}: rotation_parts", parts, at_least=1, at_most=1000)
    held = np.repeat(fixed_of(what, n, fixed)[:, None], 2, axis=1)
    return RigidBodies(topology, "", 0, x, mass, q, moments, tensors, parts, held)
