"""Euler angles, in the conventions of SciPy, and the unit quaternions of rigid bodies."""

import warnings
from itertools import permutations
from typing import Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.errors import ParameterError, shown

__all__ = ["euler_from_quaternions", "quaternions_from_euler"]

_TWELVE = [*("".join(p) for p in permutations("xyz")), *(a + b + a for a, b in permutations("xyz", 2))]
# Bodies take quaternions that are off by no more.
_TOLERANCE = 1e-6


def quaternions_from_euler(sequence: str, angles: Numbers, degrees: bool = False) -> np.ndarray:
    r"""Return the orientations of bodies after three rotations about coordinate axes.

    Parameters
    ----------
    sequence : str
        One of the twelve conventions as SciPy names them: ``"xyz"`` and its permutations, ``"zxz"`` and its like. In
        lower case rotations are about the axes of space; in upper case (``"ZXZ"``) about those of the body, each where
        the rotations before have brought it.
    angles : (3,) or (n, 3) float, rad
        In the order of the sequence.
    degrees : bool
        Angles are in degrees.

    Returns
    -------
    (4,) or (n, 4) float array
        Unit quaternions, scalar first and not negative, that turn vectors of the body frame into space: what
        `Topology.add_rigid_bodies` and ``context.set_orientations`` take.

    Raises
    ------
    ParameterError
        Another sequence, angles of another shape or not finite.

    Notes
    -----
    ``"ZXZ"`` with :math:`(\varphi, \theta, \psi)` are the angles of textbooks of mechanics; the matrix from space to
    body that these print is the transpose of the rotation here.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.rigid.quaternions_from_euler("ZXZ", [90.0, 0.0, 0.0], degrees=True).round(4)
    array([0.7071, 0.    , 0.    , 0.7071])
    """
    sequence = _checked("quaternions_from_euler", sequence)
    given, one = _rows("quaternions_from_euler: angles", angles, 3)
    turned = _rotation().from_euler(sequence, given, degrees=degrees)
    q: np.ndarray = turned.as_quat(canonical=True, scalar_first=True)
    return q[0] if one else q


def euler_from_quaternions(sequence: str, quaternions: Numbers, degrees: bool = False) -> np.ndarray:
    """Return the three angles about coordinate axes that orientations come from.

    Parameters
    ----------
    sequence : str
        As of `quaternions_from_euler`.
    quaternions : (4,) or (n, 4) float
        Unit quaternions, scalar first, from the body frame to space, such as ``state.orientations``.
    degrees : bool
        Return degrees.

    Returns
    -------
    (3,) or (n, 3) float array, rad
        The first and the last from -π to π; the one between from 0 to π where the first axis is also the last, and from
        -π/2 to π/2 otherwise. At the ends of that range only the sum or difference of the other two is known: one of
        them is then 0.

    Raises
    ------
    ParameterError
        Another sequence, quaternions of another shape, or whose length is not 1 to 1e-6.

    Examples
    --------
    >>> import medyanpy as mp
    >>> mp.rigid.euler_from_quaternions("ZXZ", [0.5, 0.5, 0.5, 0.5], degrees=True).round(9)
    array([90., 90.,  0.])
    """
    sequence = _checked("euler_from_quaternions", sequence)
    given, one = _rows("euler_from_quaternions: quaternions", quaternions, 4)
    length = np.linalg.norm(given, axis=1)
    off = np.abs(length - 1.0) > _TOLERANCE
    if off.any():
        i = int(np.argmax(off))
        raise ParameterError(
            f"euler_from_quaternions: quaternions[{i}] has length {length[i]:.9g} but must be of length 1: divide by it"
        )
    with warnings.catch_warnings():
        # Of locked angles, which the docstring tells.
        warnings.simplefilter("ignore", UserWarning)
        angles: np.ndarray = _rotation().from_quat(given, scalar_first=True).as_euler(sequence, degrees=degrees)
    return angles[0] if one else angles


def _rotation() -> Any:
    """Return SciPy's class of rotations, which is long to import."""
    from scipy.spatial.transform import Rotation

    return Rotation


def _checked(what: str, sequence: Any) -> str:
    """Return a sequence that is one of the twelve, in lower or upper case."""
    if isinstance(sequence, str) and sequence.lower() in _TWELVE and (sequence.islower() or sequence.isupper()):
        return sequence
    raise ParameterError(
        f"{what}: sequence must be one of {', '.join(_TWELVE)}, about axes of space, or the same in capitals, about "
        f"axes of the body, not {shown(sequence)}"
    )


def _rows(what: str, given: Any, width: int) -> tuple[np.ndarray, bool]:
    """Return rows of so many numbers, and whether it was only one."""
    one = np.ndim(given) == 1
    rows: np.ndarray = array(what, [given] if one else given, (None, width), error=ParameterError)
    return rows, one
