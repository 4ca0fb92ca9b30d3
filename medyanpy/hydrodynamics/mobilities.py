"""Mobilities of spheres as matrices, and the sphere that stands for a body."""

from collections.abc import Callable
from typing import Any

import numpy as np

from medyanpy._kernels.selected import hydrodynamics
from medyanpy._tools.images import Box, box_lengths, checked_box, in_words
from medyanpy._tools.names import plainly_called
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, number, per_item
from medyanpy.boundaries import Plane
from medyanpy.errors import ParameterError
from medyanpy.surfaces.shapes import frame_along

__all__ = ["mobility_matrix", "radius_of_bodies", "wall_frame"]

# A sphere may exceed the mobility of a body by this share of it, as rounding.
_ROUNDING = 1e-12


@plainly_called
def mobility_matrix(
    positions: "Numbers", radius: "Numbers", viscosity: float, *, rotation: bool = False, wall: Plane | None = None,
    box: "Box | None" = None,
) -> np.ndarray:  # fmt: skip
    """Return the mobility of spheres in a viscous fluid: their velocities by forces on any of them.

    Pairs have Rotne and Prager's tensor, for any radii, also where they overlap, with the coupling of translation and
    rotation; above a wall with Blake's images. The matrix is positive definite for any places.

    Parameters
    ----------
    positions : (n, 3) float, nm
    radius : float or (n,) float, nm, > 0
    viscosity : float, pN s/nm², > 0
        Of water `presets.WATER`.
    rotation : bool
        With torques and angular velocities.
    wall : boundaries.Plane, optional
        No slip there. Spheres do not overlap it.
    box : (3,) float, nm, optional
        Lengths of a box, all three periodic: with all images of all spheres, by Ewald's sum to 1e-12 of the mobility of
        a sphere. The average velocity of the box, fluid and spheres, is zero. At least four times the largest radius;
        not with a wall.

    Returns
    -------
    (3n, 3n) or, with rotation, (6n, 6n) float array
        Velocities by forces, nm/(pN s); with rotation six of each sphere, translation first: 1/(pN s) and 1/(pN nm s)
        in the other blocks.

    Raises
    ------
    ParameterError
        Numbers outside of their domain; a sphere that overlaps the wall. A box that is open along some direction, too
        small, or has a wall.

    References
    ----------
    Rotne and Prager, J. Chem. Phys. 50, 4831 (1969); Yamakawa, J. Chem. Phys. 53, 436 (1970); Wajnryb and others, J.
    Fluid Mech. 731, R3 (2013); Blake, Proc. Camb. Phil. Soc. 70, 303 (1971); Swan and Brady, Phys. Fluids 19, 113306
    (2007); Hasimoto, J. Fluid Mech. 5, 317 (1959); Beenakker, J. Chem. Phys. 85, 1581 (1986). For derivations see
    :doc:`/theory/hydrodynamic_interactions` and :doc:`/theory/lattice_sums`.

    Examples
    --------
    Two spheres of radius 1 at a distance of 3, in units of 1/6πηa: one falls, the other follows.

    >>> import numpy as np
    >>> import medyanpy as mp
    >>> m = mp.hydrodynamics.mobility_matrix([[0, 0, 0], [0, 0, 3.0]], 1.0, viscosity=1 / (6 * np.pi))
    >>> m[5, 2].round(6).item(), m[3, 0].round(6).item()
    (0.462963, 0.268519)
    """
    what = "mobility_matrix"
    x = array(f"{what}: positions", positions, (None, 3))
    a = np.array(per_item(f"{what}: radius", radius, len(x), above=0.0))
    eta = number(f"{what}: viscosity", viscosity, above=0.0)
    origin, axes = wall_frame(what, wall)
    lengths = box_lengths(checked_box(what, box))
    if lengths.any():
        expect_lattice(what, lengths, wall)
        least = 4.0 * float(a.max(initial=0.0))
        if lengths.min() < least:
            sides = in_words(tuple(lengths.tolist()))
            raise ParameterError(
                f"{what}: box is {sides} nm but must be >= {least:.6g} along each direction, four times the "
                "largest radius: spheres would overlap two images of each other"
            )
    if wall is not None:
        refuse_overlap(what, wall, x, a, str)
        x = (x - origin) @ axes.T
    n, width = len(x), 6 if rotation else 3
    out = np.zeros((n, width, n, width))
    load = np.zeros((2, n, 6))
    turning = n if rotation else 0
    for j in range(n):
        for k in range(0, width, 2):
            pair = range(k, min(k + 2, width))
            for one, column in enumerate(pair):
                load[one, j, column] = 1.0
            moved = hydrodynamics.motions(np.ascontiguousarray(x), a, load, turning, eta, wall is not None, lengths)
            for one, column in enumerate(pair):
                load[one, j, column] = 0.0
                out[:, :, j, column] = moved[one, :, :width]
    own = np.repeat([[1.0 / (6.0 * np.pi * eta), 1.0 / (8.0 * np.pi * eta)]], 3, axis=0).T.ravel()[:width]
    for i in range(n):
        out[i, range(width), i, range(width)] += own / a[i] ** np.repeat([1, 3], 3)[:width]
    if wall is not None:
        # From the frame of the wall.
        blocks = out.reshape(n, width // 3, 3, n, width // 3, 3)
        out = np.einsum("ka,ipkjql,lb->ipajqb", axes, blocks, axes)
    return out.reshape(n * width, n * width)


def wall_frame(what: str, wall: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a point (3,) of a wall and its axes (3, 3) as rows, the last into the fluid; of space without a wall."""
    if wall is None:
        return np.zeros(3), np.eye(3)
    if not isinstance(wall, Plane):
        raise ParameterError(f"{what}: wall must be a boundaries.Plane, not {type(wall).__name__}")
    return np.array(wall.point), frame_along(f"{what}: wall", wall.normal)


def expect_lattice(what: str, lengths: np.ndarray, wall: Any) -> None:
    """Refuse a box, (3,) nm, in which spheres have no lattice of images."""
    if not lengths.all():
        raise ParameterError(
            f"{what}: the box is open along {'xyz'[int(np.argmin(lengths))]}, but hydrodynamic interactions in a box "
            "need all three directions periodic: give it a length there, or leave out the box"
        )
    if wall is not None:
        raise ParameterError(f"{what}: hydrodynamic interactions have a wall or a periodic box: leave one of them out")


def refuse_overlap(what: str, wall: Plane, x: np.ndarray, a: np.ndarray, of: Callable[[int], str]) -> None:
    """Refuse spheres that touch the wall or are behind it; ``of(i)`` names one."""
    distance = wall.distance(x)
    wrong = distance <= a
    if wrong.any():
        i = int(np.argmax(wrong))
        raise ParameterError(
            f"{what}: sphere {of(i)} overlaps the wall: its centre is {distance[i]:.6g} nm from it, but must be "
            f"farther than its radius, {a[i]:.6g} nm"
        )


def radius_of_bodies(friction: np.ndarray, viscosity: float) -> np.ndarray:
    """Return the radius (n,) of the smallest sphere that is in no motion more mobile than a body of friction (n, 6, 6).

    With it, the mobility of all bodies is that of spheres plus a positive part: positive definite for any places.
    """
    mobility = np.linalg.inv(friction)

    def excess(i: int, a: float) -> float:
        """Return the least excess of the body's mobility over that of a sphere, relative to its own."""
        sphere = np.repeat([1.0 / (6.0 * np.pi * viscosity * a), 1.0 / (8.0 * np.pi * viscosity * a**3)], 3)
        scale = np.sqrt(np.diagonal(mobility[i]))
        return float(np.linalg.eigvalsh((mobility[i] - np.diag(sphere)) / scale[:, None] / scale)[0])

    out = np.empty(len(mobility))
    for i, m in enumerate(mobility):
        # A bound from each of the two blocks.
        t, r = (1.0 / np.linalg.eigvalsh(m[s, s])[0] for s in (slice(3), slice(3, 6)))
        low = max(t / (6.0 * np.pi * viscosity), np.cbrt(r / (8.0 * np.pi * viscosity)))
        high = low
        while excess(i, high) < -_ROUNDING:
            low, high = high, 2.0 * high
        while high - low > 1e-9 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(i, middle) < -_ROUNDING else (low, middle)
        out[i] = high
    return out
