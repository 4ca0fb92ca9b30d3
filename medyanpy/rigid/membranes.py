"""Rigid bodies across a membrane: their orientation, and their friction in the membrane."""

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number
from medyanpy.errors import ParameterError
from medyanpy.rigid.ellipsoids import ellipsoid_friction

__all__ = ["transmembrane_friction", "upright"]

# Largest ratio ε of friction by water to that by the membrane; up to it the expansion is right to 1 % (measured).
_MOST_WATER = 0.1


def transmembrane_friction(radius: float, height: float, surface_viscosity: float, viscosity: float) -> np.ndarray:
    r"""Return the 6×6 friction tensor of a cylinder across a fluid membrane, about its centre.

    The third axis is the normal.

    .. math:: \zeta_t = \frac{4\pi\eta_s}{\ln\frac2\epsilon - \gamma + \frac{4\epsilon}{\pi}
              - \frac{\epsilon^2}{2}\ln\frac2\epsilon}, \qquad
              \zeta_r = 4\pi\eta_s a^2 \Bigl(1 + \frac{8\epsilon}{3\pi}\Bigr), \qquad
              \epsilon = \frac{2\eta a}{\eta_s}

    for the two translations in the plane and the rotation about the normal, with Euler's constant γ. Along the normal,
    and in tilting, the membrane goes with the body (ties do that); friction is then that of water on an ellipsoid of
    the same radius and height.

    Parameters
    ----------
    radius : float, nm, > 0
        a, at the height of the membrane.
    height : float, nm, > 0
    surface_viscosity : float, pN s/nm, > 0
        η_s, viscosity of the membrane times its thickness: 0.1 to 10 × 10⁻⁹ N s/m (1e-7 to 1e-5 pN s/nm) have been
        published for fluid bilayers; 5 to 13 × 10⁻⁹ N s/m is an upper bound from tethers (Waugh 1982).
    viscosity : float, pN s/nm², > 0
        η, of the water on both sides.

    Raises
    ------
    ParameterError
        A number outside its domain; ε above 0.1, where the rotation would be wrong by more than 1 %.

    References
    ----------
    P. G. Saffman, M. Delbrück, Proc. Natl. Acad. Sci. 72, 3111 (1975). B. D. Hughes, B. A. Pailthorpe, L. R. White,
    J. Fluid Mech. 110, 349 (1981): the terms in ε of translation. R. E. Waugh, Biophys. J. 38, 29 (1982).

    Examples
    --------
    >>> import medyanpy as mp
    >>> friction = mp.rigid.transmembrane_friction(2.0, 8.0, 1e-6, mp.presets.WATER)
    >>> print(f"{4.05 / friction[0, 0] / 1e6:.2f}")                                      # µm²/s
    1.82
    """
    what = "transmembrane_friction"
    a = number(f"{what}: radius", radius, above=0.0)
    half = 0.5 * number(f"{what}: height", height, above=0.0)
    eta_s = number(f"{what}: surface_viscosity", surface_viscosity, above=0.0)
    eta = number(f"{what}: viscosity", viscosity, above=0.0)
    water = 2.0 * eta * a / eta_s
    if water > _MOST_WATER:
        raise ParameterError(
            f"{what}: 2 viscosity radius / surface_viscosity = {water:.3g} but must be <= {_MOST_WATER:g}: a body this "
            "large feels the water more than the membrane"
        )
    out = ellipsoid_friction((a, a, half), eta)
    logarithm = np.log(2.0 / water)
    mobility = logarithm - np.euler_gamma + 4.0 * water / np.pi - 0.5 * water**2 * logarithm
    out[0, 0] = out[1, 1] = 4.0 * np.pi * eta_s / mobility
    out[5, 5] = 4.0 * np.pi * eta_s * a**2 * (1.0 + 8.0 * water / (3.0 * np.pi))
    return out


def upright(normals: "Numbers") -> np.ndarray:
    """Return orientations of bodies with the third axis along given directions, by the shortest turn of the z axis.

    Parameters
    ----------
    normals : (n, 3) float
        Directions of any length but zero, such as the ``normals`` of in-triangle points.

    Returns
    -------
    (n, 4) float array
        Unit quaternions, scalar first.

    Raises
    ------
    ParameterError
        A wrong shape, a number that is not finite, or a direction of length zero.
    """
    what = "upright"
    normal = array(f"{what}: normals", normals, (None, 3))
    length = np.linalg.norm(normal, axis=1)
    if not (length > 0.0).all():
        raise ParameterError(f"{what}: normals[{int(np.argmin(length))}] has length 0, which is not a direction")
    x, y, z = (normal / length[:, None]).T
    # Half way between the z axis and the direction; the one against the z axis is reached about x.
    turn = np.column_stack([1.0 + z, -y, x, np.zeros(len(z))])
    turn[z < -1.0 + 1e-12] = [0.0, 1.0, 0.0, 0.0]
    out: np.ndarray = turn / np.linalg.norm(turn, axis=1)[:, None]
    return out
