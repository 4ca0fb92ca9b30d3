"""6×6 tensors of friction and diffusion: checked, inverted, and moved to other points and frames.

Forces and velocities come first, then torques and angular velocities: a friction tensor takes (velocity of the
reference point, angular velocity) to (force, torque about that point), and a diffusion tensor is kT times its inverse.
Both depend on the reference point, which is not part of the tensor: shifts are counted from the one it has.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, required_thermal_energy, vector
from medyanpy.errors import ParameterError

__all__ = [
    "center_of_diffusion", "center_of_resistance", "check_tensor", "diffusion_to_friction", "friction_to_diffusion",
    "move_diffusion", "move_friction", "rotate_tensor",
]  # fmt: skip

#: Eigenvalues of a tensor with its diagonal scaled to 1 count as 0 below this.
_SINGULAR = 1e-14


def check_tensor(tensor: "Numbers", what: str = "tensor", *, tolerance: float = 1e-6) -> np.ndarray:
    r"""Return the tensor made exactly symmetric, after checking that it is symmetric and positive definite.

    Translations and rotations have different units, so both are judged for
    :math:`A_{ij}/\sqrt{A_{ii}A_{jj}}`, which has none.

    Parameters
    ----------
    tensor : (6, 6) float
        Friction or diffusion.
    what : str
        Its name in messages.
    tolerance : float, >= 0
        Largest difference between an element of the scaled tensor and its mirror image. Tensors read from a table
        with few digits need more than the default.

    Raises
    ------
    ParameterError
        Names the element, or the eigenvalue of the scaled tensor (1 on its diagonal), that is at fault.
    """
    a = array(what, tensor, (6, 6))
    tolerance = number(f"{what}: tolerance", tolerance, at_least=0.0)
    out: np.ndarray = check_tensors(a[None], lambda _: what, tolerance)[0]
    return out


def check_tensors(a: np.ndarray, name: Callable[[int], str], tolerance: float = 1e-6) -> np.ndarray:
    """Check many tensors (n, 6, 6) as `check_tensor`; an error names the first one at fault, by its number."""
    diagonal = np.einsum("nii->ni", a)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, np.nan))
    scaled = a / scale[:, :, None] / scale[:, None, :]
    turned = scaled.transpose(0, 2, 1)
    skew = np.abs(scaled - turned)
    # Finite ones only: LAPACK does not end otherwise.
    whole = np.isfinite(scaled).all(axis=(1, 2))
    lowest = np.full(len(a), np.nan)
    lowest[whole] = np.linalg.eigvalsh(0.5 * (scaled + turned)[whole])[:, 0]
    wrong = ~(whole & (skew.max(axis=(1, 2)) <= tolerance) & (lowest > _SINGULAR))
    if wrong.any():
        n = int(np.argmax(wrong))
        raise _at_fault(name(n), a[n], scale[n], skew[n], lowest[n], tolerance)
    out: np.ndarray = 0.5 * (a + a.transpose(0, 2, 1))
    return out


def _at_fault(what: str, a: Any, scale: Any, skew: np.ndarray, lowest: float, tolerance: float) -> ParameterError:
    if np.isnan(scale).any():
        i = int(np.argmax(np.isnan(scale)))
        return ParameterError(f"{what}[{i}, {i}] = {a[i, i]:g} but must be > 0: it is not positive definite")
    if skew.max() > tolerance:
        i, j = (int(k) for k in np.unravel_index(np.argmax(skew), skew.shape))
        return ParameterError(
            f"{what} is not symmetric: [{i}, {j}] = {a[i, j]:g} but [{j}, {i}] = {a[j, i]:g}; the difference must be "
            f"<= {tolerance:g} of {scale[i] * scale[j]:g}, the root of the product of the diagonal elements"
        )
    return ParameterError(
        f"{what} is not positive definite: scaled to 1 on its diagonal it has the eigenvalue {lowest:.3g}, "
        f"which must be > {_SINGULAR:g}"
    )


def friction_to_diffusion(
    friction: "Numbers", temperature: float | None = None, *, kT: float | None = None
) -> np.ndarray:
    """Return the diffusion tensor of a friction tensor, kT times its inverse, about the same point in the same axes.

    Parameters
    ----------
    friction : (6, 6) float
        pN s/nm, pN s and pN nm s in its blocks; those of the result are in nm²/s, nm/s and 1/s.
    temperature : float, K, > 0
    kT : float, pN nm, > 0
        Instead of the temperature.

    Raises
    ------
    ParameterError
        The tensor is not symmetric and positive definite, or both or none of temperature and kT are given.
    """
    energy = required_thermal_energy("friction_to_diffusion", temperature, kT)
    return energy * _inverse(check_tensor(friction, "friction"))


def diffusion_to_friction(
    diffusion: "Numbers", temperature: float | None = None, *, kT: float | None = None
) -> np.ndarray:
    """Return the friction tensor of a diffusion tensor, as `friction_to_diffusion` the other way round."""
    energy = required_thermal_energy("diffusion_to_friction", temperature, kT)
    return energy * _inverse(check_tensor(diffusion, "diffusion"))


def move_friction(friction: "Numbers", shift: "Numbers") -> np.ndarray:
    r"""Return the friction tensor about another reference point of the same body.

    With W = [shift]×, the matrix of the cross product, :math:`\zeta_{rt} \leftarrow \zeta_{rt} - W\zeta_{tt}` and
    :math:`\zeta_{rr} \leftarrow \zeta_{rr} - W\zeta_{tr} + \zeta_{rt}W - W\zeta_{tt}W`; the translational block stays.

    Parameters
    ----------
    friction : (6, 6) float
    shift : (3,) float, nm
        From the old reference point to the new one, in the frame of the tensor.

    Raises
    ------
    ParameterError
        The tensor is not symmetric and positive definite.
    """
    return moved_friction(check_tensor(friction, "friction"), vector("move_friction: shift", shift)[None])


def moved_friction(friction: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the friction (6m, 6m) of m bodies about points that are shifts (m, 3) away from the old ones."""
    # Velocity of the old point from that of the new one: U_old = U_new + shift × ω.
    x = np.eye(len(friction))
    for k, shift in enumerate(shifts):
        x[6 * k : 6 * k + 3, 6 * k + 3 : 6 * k + 6] = _cross(shift)
    return _congruent(x.T, friction)


def move_diffusion(diffusion: "Numbers", shift: "Numbers") -> np.ndarray:
    r"""Return the diffusion tensor about another reference point of the same body, as `move_friction`.

    With W = [shift]×, :math:`D_{rt} \leftarrow D_{rt} + D_{rr}W` and
    :math:`D_{tt} \leftarrow D_{tt} - WD_{rt} + D_{tr}W - WD_{rr}W`; the rotational block stays.
    """
    x = np.eye(6)
    x[:3, 3:] = -_cross(vector("move_diffusion: shift", shift))
    return _congruent(x, check_tensor(diffusion, "diffusion"))


def rotate_tensor(tensor: "Numbers", axes: "Numbers") -> np.ndarray:
    """Return the friction or diffusion tensor (6, 6) in another frame.

    Parameters
    ----------
    tensor : (6, 6) float
    axes : (3, 3) float
        Its rows are the axes of the new frame, in the old one: a proper rotation.

    Raises
    ------
    ParameterError
        The tensor is not symmetric and positive definite, or the axes are not a right-handed orthonormal frame (to
        1e-6).
    """
    a = check_tensor(tensor)
    r = array("rotate_tensor: axes", axes, (3, 3))
    error = np.abs(r @ r.T - np.eye(3)).max()
    if error > 1e-6 or np.linalg.det(r) < 0.0:
        raise ParameterError(
            "rotate_tensor: axes must be a proper rotation, but "
            + (f"its rows deviate from orthonormal ones by {error:.3g}" if error > 1e-6 else "they are left-handed")
        )
    u, _, v = np.linalg.svd(r)
    both = np.zeros((6, 6))
    both[:3, :3] = both[3:, 3:] = u @ v
    return _congruent(both, a)


def center_of_diffusion(diffusion: "Numbers") -> np.ndarray:
    r"""Return the point where the coupling block of the diffusion tensor is symmetric: there the body diffuses least.

    Solves :math:`(\operatorname{tr}D_{rr} - D_{rr})\,d = -\mathrm{axial}(D_{rt} - D_{tr})`, where the axial vector of a
    skew matrix A is (A32, A13, A21). Every body has exactly one such point, and the trace of its translational
    block is the coefficient of diffusion over long times.

    Returns
    -------
    (3,) float, nm
        From the reference point of the tensor, in its frame: a shift for `move_diffusion`.

    Raises
    ------
    ParameterError
        The tensor is not symmetric and positive definite.

    References
    ----------
    H. Brenner, J. Colloid Interface Sci. 23, 407 (1967). S. C. Harvey, J. Garcia de la Torre, Macromolecules 13, 960
    (1980).
    """
    d = check_tensor(diffusion, "diffusion")
    return -_solve_skew(d[3:, 3:], d[3:, :3] - d[:3, 3:])


def center_of_resistance(friction: "Numbers") -> np.ndarray:
    r"""Return the point where the coupling block of the friction tensor is symmetric (Brenner's centre of reaction).

    Solves :math:`(\operatorname{tr}\zeta_{tt} - \zeta_{tt})\,d = \mathrm{axial}(\zeta_{rt} - \zeta_{tr})`. It is the
    centre of diffusion for bodies with enough symmetry, and another point for others. Units and errors are those of
    `center_of_diffusion`; it is a shift for `move_friction`.
    """
    f = check_tensor(friction, "friction")
    return _solve_skew(f[:3, :3], f[3:, :3] - f[:3, 3:])


def _cross(v: np.ndarray) -> np.ndarray:
    """Return the matrix that takes u to v × u."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _congruent(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    out = x @ a @ x.T
    found: np.ndarray = 0.5 * (out + out.T)
    return found


def _inverse(a: np.ndarray) -> np.ndarray:
    """Return the inverse of a checked tensor, scaled since translations and rotations may be many orders apart."""
    from scipy.linalg import cho_solve

    scale = 1.0 / np.sqrt(np.diag(a))
    factor = np.linalg.cholesky(a * scale[:, None] * scale)
    inverse = cho_solve((factor, True), np.eye(6))
    out: np.ndarray = 0.5 * (inverse + inverse.T) * scale[:, None] * scale
    return out


def _solve_skew(block: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """Return d with B[d]× + [d]×B = [(tr B - B)d]× = the skew matrix; B is positive definite, hence tr B - B too."""
    axial = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    return np.linalg.solve(np.trace(block) * np.eye(3) - block, axial)
