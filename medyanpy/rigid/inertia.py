"""Mass, centre and principal axes of a rigid body made of parts."""

from dataclasses import dataclass

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, per_item, vector
from medyanpy.errors import ParameterError
from medyanpy.rigid.tensors import move_friction, rotate_tensor

__all__ = ["PrincipalAxes", "principal_axes"]

#: Moments of inertia that differ less, beside the largest, are one.
_EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The body frame: its origin is the centre of mass, its axes are principal axes of inertia.

    Attributes
    ----------
    mass : float, pN s²/nm
    center_of_mass : (3,) float, nm
    inertia : (3,) float, pN nm s²
        Principal moments; of `principal_axes` increasing.
    axes : (3, 3) float
        Rows are the axes, in space; right-handed.
    """

    mass: float
    center_of_mass: np.ndarray
    inertia: np.ndarray
    axes: np.ndarray

    @property
    def orientation(self) -> np.ndarray:
        """Unit quaternion (4,), scalar first and not negative, that turns the body frame into its place in space."""
        from scipy.spatial.transform import Rotation

        return np.roll(Rotation.from_matrix(self.axes.T.copy()).as_quat(canonical=True), 1)

    def to_body(self, positions: "Numbers") -> np.ndarray:
        """Return body-frame coordinates (n, 3) of points in space, nm."""
        out: np.ndarray = (array("to_body: positions", positions, (None, 3)) - self.center_of_mass) @ self.axes.T
        return out

    def to_space(self, positions: "Numbers") -> np.ndarray:
        """Return coordinates (n, 3) in space of points in the body frame, nm."""
        out: np.ndarray = array("to_space: positions", positions, (None, 3)) @ self.axes + self.center_of_mass
        return out

    def friction_in_body(self, friction: "Numbers", reference_point: "Numbers" = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Return the friction tensor (6, 6) about the centre of mass in the body frame, as rigid bodies take it.

        Parameters
        ----------
        friction : (6, 6) float
            In the axes of space.
        reference_point : (3,) float, nm
            Point that it is about, in space. By default the origin, as `bead_model_friction` gives it.

        Raises
        ------
        ParameterError
            The tensor is not symmetric and positive definite.
        """
        shift = self.center_of_mass - vector("friction_in_body: reference_point", reference_point)
        return rotate_tensor(move_friction(friction, shift), self.axes)


def principal_axes(positions: "Numbers", masses: "Numbers", radii: "Numbers" = 0.0) -> PrincipalAxes:
    r"""Return mass, centre of mass, principal moments and axes of inertia of a body made of balls or points.

    Parameters
    ----------
    positions : (n, 3) float, nm
    masses : float or (n,) float, pN s²/nm, > 0
    radii : float or (n,) float, nm, >= 0
        Of solid balls, each of which adds :math:`\tfrac25 m a^2` to every moment. Points on a line have no inertia
        about it; balls have.

    Raises
    ------
    ParameterError
        A number outside its domain, or no parts.

    Notes
    -----
    Axes are lines, without a sense of their own. The first two point to where the body reaches further, by the sign of
    :math:`\sum m (x\cdot e)^3`, so that two copies of a molecule have the same body frame however they lie in space. If
    that vanishes by symmetry, their largest component is positive. The third is their cross product. For equal moments,
    the axes are as near to the axes of space as possible.
    """
    x = array("principal_axes: positions", positions, (None, 3))
    if not len(x):
        raise ParameterError("principal_axes: positions must hold at least one part")
    m = per_item("principal_axes: masses", masses, len(x), above=0.0)
    a = per_item("principal_axes: radii", radii, len(x), at_least=0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        mass = m.sum()
        center = x[0] + (m @ (x - x[0])) / mass
        d = x - center
        second = (m[:, None] * d).T @ d
        balls = 0.4 * (m @ a**2)
    # Moments about the axes from the spread along them: increasing where that decreases.
    if not np.isfinite([second.trace(), balls]).all():
        raise ParameterError("principal_axes: masses times squared positions must be below 1.8e308")
    spread, lines = np.linalg.eigh(second)
    spread, lines = np.maximum(spread[::-1], 0.0), lines.T[::-1]
    inertia = spread.sum() - spread + balls
    axes = _with_sense(_of_equal_moments(lines, inertia), m, d)
    for result in (center, inertia, axes):
        result.flags.writeable = False
    return PrincipalAxes(float(mass), center, inertia, axes)


def _of_equal_moments(lines: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return the lines, those of equal moments turned within their plane towards axes of space."""
    same = np.diff(inertia) <= _EQUAL * inertia[2]
    if same.all():
        return np.eye(3)
    if not same.any():
        return lines
    lone = 2 if same[0] else 0
    axis = lines[lone]
    near = np.eye(3)[int(np.argmin(np.round(np.abs(axis), 6)))]
    first = near - (near @ axis) * axis
    first /= np.linalg.norm(first)
    out = np.empty((3, 3))
    out[lone], out[(lone + 1) % 3], out[(lone + 2) % 3] = axis, first, np.cross(axis, first)
    return out


def _with_sense(lines: np.ndarray, m: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return right-handed axes (3, 3) from lines that are at right angles."""
    axes = lines.copy()
    for axis in axes[:2]:
        along = d @ axis
        skew, size = m @ along**3, m @ np.abs(along) ** 3
        largest = axis[int(np.argmax(np.round(np.abs(axis), 6)))]
        if (skew if abs(skew) > 1e-6 * size else largest) < 0.0:
            axis *= -1.0
    axes[2] = np.cross(axes[0], axes[1])
    return axes
