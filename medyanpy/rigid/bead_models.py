"""Friction of rigid clusters of spheres."""

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, per_item, vector
from medyanpy.errors import ParameterError
from medyanpy.rigid.rotne_prager import FORCES_TORQUES, FORCES_TORQUES_STRESSLETS, mobility_block
from medyanpy.rigid.tensors import moved_friction

__all__ = ["bead_model_friction", "friction_of_clusters"]

#: Unknowns in one column of blocks, and pairs of beads with mobilities computed at a time.
_COLUMN, _PAIRS = 528, 20_000


@plainly_called
def bead_model_friction(
    centers: "Numbers", radii: "Numbers", viscosity: float, *, reference_point: "Numbers" = (0.0, 0.0, 0.0),
    stresslets: bool = True, max_memory: float = 4e9,
) -> np.ndarray:  # fmt: skip
    """Return the 6×6 friction tensor of a rigid cluster of spheres that stick to the fluid.

    The spheres interact by generalised Rotne-Prager-Yamakawa tensors of force, torque and (by default) stresslet. They
    may have any radii, overlap, and lie within others; spheres that are given twice count once. The tensor has
    translation first, in the frame of the centres, and pN s/nm, pN s and pN nm s in its blocks.

    Parameters
    ----------
    centers : (n, 3) float, nm
    radii : float or (n,) float, nm, > 0
    viscosity : float, pN s/nm², > 0
    reference_point : (3,) float, nm
        Point about which the tensor is, in the coordinates of the centres. By default their origin.
    stresslets : bool
        Each sphere also resists strain. Without, friction comes out too low: for proteins made of atoms by 1 %
        (translation) and 2 % (rotation), for few large spheres by more. It then takes a third of the memory and time.
    max_memory : float, bytes
        Bound of the size of the matrix: 4 (11 n)² bytes with stresslets (2800 spheres by default), 4 (6 n)² without
        (5200).

    Raises
    ------
    ParameterError
        A number outside its domain, more spheres than `max_memory` holds, or two spheres too similar to be told apart.

    Notes
    -----
    The friction is never above that of the body that the spheres make together, and comes closer with every sphere and
    every moment: it is a maximum of the dissipation over force distributions (see the theory page). The sign of its
    error is therefore known. Spheres within the body do no harm.

    References
    ----------
    E. Wajnryb, K. A. Mizerski, P. J. Zuk, P. Szymczak, J. Fluid Mech. 731, R3 (2013).
    P. J. Zuk, E. Wajnryb, K. A. Mizerski, P. Szymczak, J. Fluid Mech. 741, R5 (2014).
    P. J. Zuk, B. Cichocki, P. Szymczak, Biophys. J. 115, 782 (2018): with stresslets.

    Examples
    --------
    Two touching spheres of radius 1 nm in water. Exact are 1.290 and 1.449 times 6πηa along and across the line
    between them (Stimson & Jeffery 1926; Goldman, Cox & Brenner 1966):

    >>> import numpy as np
    >>> import medyanpy as mp
    >>> friction = mp.rigid.bead_model_friction([[0, 0, -1], [0, 0, 1]], 1.0, mp.presets.WATER)
    >>> across, _, along = np.diag(friction)[:3] / (6 * np.pi * mp.presets.WATER)
    >>> print(f"{along:.3f} {across:.3f}")
    1.284 1.440
    """
    what = "bead_model_friction"
    x, a = spheres_of(what, "", centers, radii)
    point = vector(f"{what}: reference_point", reference_point)
    return friction_of_clusters(what, x, a, np.zeros(len(x), int), point[None], viscosity, stresslets, max_memory)


def spheres_of(what: str, of: str, centers: "Numbers", radii: "Numbers") -> tuple[np.ndarray, np.ndarray]:
    """Return centres (n, 3) and radii (n,) of at least one sphere; ParameterError."""
    x = array(f"{what}: {of}centers", centers, (None, 3))
    if not len(x):
        raise ParameterError(f"{what}: {of}centers must hold at least one sphere")
    return x, per_item(f"{what}: {of}radii", radii, len(x), above=0.0)


def friction_of_clusters(
    what: str, x: np.ndarray, a: np.ndarray, body: np.ndarray, points: np.ndarray, viscosity: float, stresslets: bool,
    max_memory: float,
) -> np.ndarray:  # fmt: skip
    """Return the friction (6m, 6m) of bodies about points (m, 3), of spheres at x (n, 3), each of a body (n,);
    ParameterError."""
    eta = number(f"{what}: viscosity", viscosity, above=0.0)
    limit = number(f"{what}: max_memory", max_memory, above=0.0)
    # Equal spheres add nothing, and would make the matrix singular. Sorted, so that their order does not matter.
    unique, kept = np.unique(np.column_stack([x, a, body]), axis=0, return_index=True)
    x, a, body = unique[:, :3], unique[:, 3], body[kept]
    moments = FORCES_TORQUES_STRESSLETS if stresslets else FORCES_TORQUES
    need = 4.0 * (moments * len(kept)) ** 2
    if need > limit:
        most = int(np.sqrt(0.25 * limit) / moments)
        also = ", or stresslets=False (a third of the memory)" if stresslets else ""
        raise ParameterError(
            f"{what}: {len(kept)} spheres need {need / 1e9:.3g} GB but max_memory = {limit / 1e9:.3g} GB holds "
            f"{most}: raise it, or use fewer and larger spheres{also}"
        )
    # In units of the largest radius, about the middle.
    length, middle = a.max(), x.mean(axis=0)
    # The motions of each body about the middle of its spheres, so that few digits are lost.
    middles = np.array([x[body == k].mean(axis=0) for k in range(len(points))])
    of_each = np.zeros((len(x), moments, len(points), 6))
    of_each[np.arange(len(x)), :, body] = _rigid_motions((x - middles[body]) / length, moments).reshape(-1, moments, 6)
    motion = of_each.reshape(len(x) * moments, -1)
    friction = _friction(what, (x - middle) / length, a / length, motion, moments, kept)
    scale = np.tile(np.repeat([1.0, length], 3), len(points))
    friction *= 8.0 * np.pi * eta * length * scale[:, None] * scale
    return moved_friction(friction, points - middles)


def _friction(
    what: str, x: np.ndarray, a: np.ndarray, motion: np.ndarray, moments: int, names: np.ndarray
) -> np.ndarray:
    """Return Kᵀ M⁻¹ K with the mobilities M and the rigid motions K, by Cholesky's factors of M in columns of blocks.

    Only the lower half of M is computed. Each block column is made, reduced by those before it, and factorised; with Y
    = L⁻¹K the friction is YᵀY, symmetric and positive whatever the roundings. K is overwritten.
    """
    from scipy.linalg.blas import dgemm, dtrsm
    from scipy.linalg.lapack import dpotrf

    n = len(x)
    width = max(1, _COLUMN // moments)
    friction = np.zeros((motion.shape[1], motion.shape[1]))
    columns: list[tuple[int, np.ndarray]] = []
    for first in range(0, n, width):
        last = min(first + width, n)
        # Rows of the transpose run along memory as Fortran's columns do: nothing is copied.
        column = _column(x, a, first, last, moments)
        size, start = (last - first) * moments, first * moments
        for begin, earlier in columns:
            rest = earlier[start - begin :]
            column = dgemm(-1.0, rest[:size].T, rest.T, 1.0, column.T, trans_a=1, overwrite_c=1).T
        upper, info = dpotrf(column[:size].T, lower=0, clean=1)
        if info > 0:
            raise _alike(what, x, a, first + (info - 1) // moments, names)
        column[:size] = upper.T
        if last < n:
            column[size:] = dtrsm(1.0, upper, column[size:].T, trans_a=1, overwrite_b=1).T
        y = dtrsm(1.0, upper, motion[start : start + size], trans_a=1)
        motion[start + size :] -= column[size:] @ y
        friction += y.T @ y
        columns.append((start, column))
    return friction


def _column(x: np.ndarray, a: np.ndarray, first: int, last: int, moments: int) -> np.ndarray:
    """Return mobilities of the spheres from `first` on by those up to `last`."""
    n, block = len(x), slice(first, last)
    out = np.empty(((n - first) * moments, (last - first) * moments))
    rows = max(1, _PAIRS // (last - first))
    for begin in range(first, n, rows):
        of = slice(begin, min(begin + rows, n))
        to = slice((of.start - first) * moments, (of.stop - first) * moments)
        out[to] = mobility_block(x[of], a[of], x[block], a[block], moments)
    return out


def _rigid_motions(x: np.ndarray, moments: int) -> np.ndarray:
    """Return motions of spheres, without strain, as the body moves by unit velocities, (n moments, 6)."""
    k = np.zeros((len(x), moments, 6))
    k[:, range(6), range(6)] = 1.0
    # ω × x.
    for i in range(3):
        j, l = (i + 1) % 3, (i + 2) % 3  # noqa: E741
        k[:, j, 3 + i], k[:, l, 3 + i] = -x[:, l], x[:, j]
    return k.reshape(-1, 6)


def _alike(what: str, x: np.ndarray, a: np.ndarray, i: int, names: np.ndarray) -> ParameterError:
    """Return the error for the first sphere that adds nothing to those before it."""
    if i == 0:
        return ParameterError(f"{what}: the mobility of sphere {names[i]} is not positive")
    difference = np.hypot(np.linalg.norm(x[:i] - x[i], axis=1), a[:i] - a[i])
    j = int(np.argmin(difference))
    first, second = sorted((names[j], names[i]))
    return ParameterError(
        f"{what}: spheres {first} and {second} cannot be told apart: centres and radii differ by "
        f"{difference[j]:.3g} of the largest radius; leave one out"
    )
