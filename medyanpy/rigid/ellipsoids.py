"""Friction and diffusion of ellipsoids that stick to the fluid, by Carlson's symmetric elliptic integrals."""

from typing import Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, required_thermal_energy
from medyanpy.errors import ParameterError

__all__ = ["ellipsoid_diffusion", "ellipsoid_friction", "ellipsoid_inertia"]


def ellipsoid_diffusion(
    semi_axes: "Numbers", viscosity: float, temperature: float | None = None, *, kT: float | None = None
) -> np.ndarray:
    r"""Return the 6×6 diffusion tensor of an ellipsoid about its centre, in the frame of its axes.

    .. math::

        D_{tt,i} = \frac{kT}{16\pi\eta}\,(\chi + a_i^2\alpha_i), \qquad
        D_{rr,1} = \frac{3kT}{16\pi\eta}\,\frac{a_2^2\alpha_2 + a_3^2\alpha_3}{a_2^2 + a_3^2}
        \quad\text{and in turn,}

    .. math:: \chi = 2 R_F(a_1^2, a_2^2, a_3^2), \qquad \alpha_1 = \tfrac23 R_D(a_2^2, a_3^2, a_1^2).

    Every term is positive, so that no digits cancel: needles, discs and spheres are all exact to round-off. It is
    diagonal: three translations (nm²/s), then three rotations (1/s).

    Parameters
    ----------
    semi_axes : (3,) float, nm, > 0
        In any order; the frame of the tensor is theirs. The smallest must be at least 1e-100 of the largest.
    viscosity : float, pN s/nm², > 0
    temperature : float, K, > 0
    kT : float, pN nm, > 0
        Instead of the temperature.

    Raises
    ------
    ParameterError
        A number outside its domain, or both or none of temperature and kT.

    References
    ----------
    F. Perrin, J. Phys. Radium 5, 497 (1934); 7, 1 (1936). S. Kim, S. J. Karrila, Microhydrodynamics (1991), ch. 3.
    B. C. Carlson, Numer. Algorithms 10, 13 (1995).

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> D = mp.rigid.ellipsoid_diffusion((5.0, 2.0, 2.0), mp.presets.WATER, 293.15)
    >>> np.round(np.diag(D)[:3] / mp.units.micrometer2_per_second, 1)          # µm²/s
    array([82.3, 69. , 69. ])
    """
    energy = required_thermal_energy("ellipsoid_diffusion", temperature, kT)
    return np.diag(energy * _mobilities("ellipsoid_diffusion", semi_axes, viscosity))


def ellipsoid_friction(semi_axes: "Numbers", viscosity: float) -> np.ndarray:
    """Return the 6×6 friction tensor of an ellipsoid about its centre, in the frame of its axes.

    It is kT over the diagonal of `ellipsoid_diffusion`; 6πηa and 8πηa³ for a sphere: three translations (pN s/nm), then
    three rotations (pN nm s). Parameters and errors are as there.
    """
    return np.diag(1.0 / _mobilities("ellipsoid_friction", semi_axes, viscosity))


def ellipsoid_inertia(semi_axes: "Numbers", mass: float) -> np.ndarray:
    """Return principal moments of inertia of a solid ellipsoid of uniform density, m(b² + c²)/5, (3,) pN nm s².

    Parameters
    ----------
    semi_axes : (3,) float, nm, > 0
    mass : float, pN s²/nm, > 0

    Raises
    ------
    ParameterError
        A number outside its domain.
    """
    squares = _semi_axes("ellipsoid_inertia", semi_axes) ** 2
    out: np.ndarray = number("ellipsoid_inertia: mass", mass, above=0.0) * (squares.sum() - squares) / 5.0
    return out


def _semi_axes(what: str, semi_axes: Any) -> np.ndarray:
    a = array(f"{what}: semi_axes", semi_axes, (3,))
    least = 1e-100 * a.max()
    for i in range(3):
        number(f"{what}: semi_axes[{i}]", a[i], above=0.0)
        if a[i] < least:
            raise ParameterError(
                f"{what}: semi_axes[{i}] = {a[i]:g} but must be >= {least:g}, 1e-100 of the largest semi-axis"
            )
    return a


def _mobilities(what: str, semi_axes: Any, viscosity: float) -> np.ndarray:
    """Return velocities by unit forces along, and angular velocities by unit torques about the axes, (6,)."""
    from scipy.special import elliprd, elliprf

    a = _semi_axes(what, semi_axes)
    eta = number(f"{what}: viscosity", viscosity, above=0.0)
    x, y, z = s = a**2
    chi = 2.0 * elliprf(x, y, z)
    # a² α of each axis.
    alpha = s * (2.0 / 3.0) * np.array([elliprd(y, z, x), elliprd(z, x, y), elliprd(x, y, z)])
    t = (chi + alpha) / (16.0 * np.pi * eta)
    across, other = alpha[[1, 2, 0]], alpha[[2, 0, 1]]
    r = 3.0 * (across + other) / (s[[1, 2, 0]] + s[[2, 0, 1]]) / (16.0 * np.pi * eta)
    return np.concatenate([t, r])
