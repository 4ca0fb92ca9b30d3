"""Mean-square displacements of in-triangle points along their membrane: paths rolled out on a plane."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from medyanpy._tools.images import box_lengths, displacement, expect_room, wrapped
from medyanpy._tools.names import look_up, plainly_called
from medyanpy._tools.validation import number
from medyanpy.analysis.diffusion import MeanSquareDisplacement, averaged, lags_of
from medyanpy.analysis.frames import tree
from medyanpy.analysis.paths import Look, Places, Points
from medyanpy.analysis.surfaces import Patch
from medyanpy.errors import ParameterError, SimulationError
from medyanpy.mesh import geometry

__all__ = ["surface_mean_square_displacement"]

_AT_CORNER = 1e-11  # Points that are nearer to a vertex than this share of an edge are moved so far inside.


@plainly_called
def surface_mean_square_displacement(
    source: Any, points: Any, lags: Any = None, *, reach: float, relative_to: str = "membrane"
) -> MeanSquareDisplacement:
    r"""Return the mean-square displacement of in-triangle points along their membrane by lag.

    .. math:: \Bigl\langle\Bigl|\sum_{j=s}^{s+t-1} P_j\,v_j\Bigr|^2\Bigr\rangle

    over points and origins s. The membrane is rolled along the path of each point on a plane. The hop v from its place
    in one frame to that in the next is as long as the shortest path over the triangles and has the direction in which
    this path begins. P is the parallel transport back along all the hops before. Brownian motion on any surface becomes
    that in a plane: :math:`4Dt` at all lags.

    Parameters
    ----------
    source : State or Frame in a list, Trajectory or slice of one
        At equal distances in time. Triangles are those of each frame, where edges flip.
    points : handle or its name
        In-triangle points. A point that is added, removed or taken away counts while it is there.
    lags
        As of `mean_square_displacement`.
    reach : float, nm, > 0
        The longest hop along the membrane from one frame to the next; in space, all points within it are searched.
    relative_to : str
        ``"membrane"``: motion on the membrane, without its own motion, flow and turning. The place in one frame is
        taken to the next by its triangle and weights; if the triangle has been flipped away, by the places of its three
        vertices. ``"space"``: motion in space, along the membrane. The place in one frame is taken to the nearest place
        of the next frame's membrane that faces the same way.

    Returns
    -------
    MeanSquareDisplacement
        Along ``axes="uv"``, so that `diffusion_coefficient` takes two dimensions. Errors are those of
        `mean_square_displacement`.

    Raises
    ------
    ParameterError, TopologyError, SimulationError
        As `mean_square_displacement` and `surface_distances`. A point that moves farther than the reach, or from which
        the membrane moves away so far. A box that changes, relative to space.

    Notes
    -----
    Hops are shorter than the path rolled out, after the time τ on a Gaussian curvature K by :math:`\tfrac13 K D\tau` of
    their squares: 0.8 % where hops are 0.32 radii of a vesicle (root mean square). Directions turn with triangles by
    the rotation that is nearest to the deformation. Source: E. P. Hsu, Stochastic Analysis on Manifolds (2002), section
    2.3 (anti-development).
    """
    what = "surface_mean_square_displacement"
    frames = Points(what, source, points)
    far = number(f"{what}: reach", reach, above=0.0)
    interval = frames.frames.interval(None)
    in_space = look_up({"membrane": False, "space": True}, relative_to, f"{what}: relative_to", ParameterError)
    wanted = lags_of(what, lags, len(frames.frames))
    boxes = frames.frames.boxes()
    for k, box in enumerate(boxes):
        expect_room(f"{what}: reach", far, box)
        if in_space and not np.array_equal(box_lengths(box), box_lengths(boxes[0])):
            raise ParameterError(
                f"{what}: the box changes from frame 0 to {k}, so that no place in space stays where it is: give "
                "relative_to='membrane'"
            )
    if not len(frames.rows):
        raise ParameterError(f"{what}: there are no points")
    paths = _developed(frames, far, in_space)
    return averaged(paths, np.arange(len(frames.rows)), wanted, interval, "uv", [0, 1])


class _Developed:
    """Places of points on the plane (m, n, 2) and their ids (m, n), as `diffusion.averaged` takes them."""

    def __init__(self, places: np.ndarray, ids: np.ndarray) -> None:
        self._places, self._ids = places, ids

    def __len__(self) -> int:
        return len(self._places)

    def columns(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        yield slice(None), self._places[:, rows], self._ids[:, rows]


def _developed(points: Points, reach: float, in_space: bool) -> _Developed:
    """Roll out the paths of all points, each from where it is first seen."""
    m, n = len(points.frames), len(points.rows)
    places, ids = np.full((m, n, 2), np.nan), np.full((m, n), -1, np.int64)
    # Direction of the plane's first axis in each triangle of the frame before.
    axis = np.zeros((n, 3))
    before: Look | None = None
    for k, look in enumerate(points):
        ids[k, look.numbers] = look.ids
        places[k, look.numbers] = 0.0
        axis_now = np.zeros((n, 3))
        axis_now[look.numbers] = _first_axis(look.patch, look.triangles)
        if before is not None:
            _, own, other = np.intersect1d(before.numbers, look.numbers, assume_unique=True, return_indices=True)
            same = before.ids[own] == look.ids[other]
            own, other = own[same], other[same]
            if len(own):
                which = look.numbers[other]
                hops, carried = _hops(points, k, before, own, look, other, axis[which], reach, in_space)
                places[k, which] = places[k - 1, which] + hops
                axis_now[which] = carried
        before, axis = look, axis_now
    return _Developed(places, ids)


def _hops(
    points: Points, k: int, before: Look, own: np.ndarray, look: Look, other: np.ndarray, axis: np.ndarray,
    reach: float, in_space: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return hops (n, 2) of points on the plane between two frames, and the first axis (n, 3) at their ends."""
    start, axis = _carried(points, k, before, own, look, axis, reach, in_space)
    end = look.triangles[other], look.weights[other]
    try:
        found, ends, flat = points.hops(look.patch, _off_corners(start), _off_corners(end), reach)
    except SimulationError as error:
        raise SimulationError(f"{points.what}: from frame {k - 1} to {k}: {error}") from error
    if len(found) < len(own):
        lost = np.setdiff1d(np.arange(len(own)), found)
        here, there = (np.einsum("nk,nki->ni", w, look.patch.corners[t]) for t, w in (start, end))
        straight = np.linalg.norm(displacement(here, there, look.patch.box), axis=1)
        i = lost[np.argmax(straight[lost])]
        raise ParameterError(
            f"{_who(points, k, look, other[i])} gets {straight[i]:.6g} nm away in a straight line, and along the "
            f"membrane beyond reach = {reach:g} nm: give frames at shorter times, or a larger reach"
        )
    order = np.argsort(found)
    first, last, flat = ends[order, 0], ends[order, 1], flat[order]
    # As complex numbers: the direction at the start as seen from the axis, and the hop.
    turn = np.einsum("ni,ni->n", axis, first) + 1j * np.einsum(
        "ni,ni->n", np.cross(_normals(look.patch, start[0]), axis), first
    )
    turn /= np.abs(turn)
    hop = (flat[:, 0] + 1j * flat[:, 1]) * turn
    across = np.cross(_normals(look.patch, end[0]), last)
    carried = turn.real[:, None] * last - turn.imag[:, None] * across
    return np.stack([hop.real, hop.imag], axis=1), carried


def _who(points: Points, k: int, look: Look, i: int) -> str:
    return f"{points.what}: from frame {k - 1} to {k}, point {look.numbers[i]} (bead {look.rows[i]})"


def _carried(
    points: Points, k: int, before: Look, own: np.ndarray, look: Look, axis: np.ndarray, reach: float, in_space: bool
) -> tuple[Places, np.ndarray]:
    """Carry places of points, and their axes, from the frame before to the mesh of the next."""
    triangles, weights = before.triangles[own], before.weights[own]
    old, new = before.patch, look.patch
    corners = old.corners[triangles]
    second = np.cross(_normals(old, triangles), axis)
    if in_space:
        if np.array_equal(old.x, new.x) and np.array_equal(old.faces, new.faces):
            return (triangles, weights), axis
        away = np.ones(len(own), bool)
        facing = _normals(old, triangles)
    else:
        # A triangle that has been flipped away would be at its three vertices.
        vertices = old.faces[triangles]
        away = (triangles >= len(new.faces)) | (new.faces[triangles % len(new.faces)] != vertices).any(axis=1)
        moved = geometry.corners_of(new.x, vertices, new.box)
        facing = new.vertex_vectors()[vertices].sum(axis=1) if away.any() else np.zeros((len(own), 3))
        # A direction is a sum of corners by weights that add up to nothing; so it moves with them.
        axis, second = (_moved(corners, moved, direction) for direction in (axis, second))
        corners = moved
    if away.any():
        at = np.einsum("nk,nki->ni", weights[away], corners[away])
        triangles, weights = triangles.copy(), weights.copy()
        triangles[away], weights[away], far = _nearest(new, at, facing[away], reach)
        if not (far <= reach).all():
            i = int(np.flatnonzero(away)[np.argmax(~(far <= reach))])
            raise ParameterError(
                f"{_who(points, k, before, own[i])} was where the membrane is no nearer than reach = {reach:g} nm "
                "later: give frames at shorter times, or a larger reach"
            )
    # The rotation, within the plane of the new triangle, that is nearest to both moved directions.
    f1 = _first_axis(new, triangles)
    f2 = np.cross(_normals(new, triangles), f1)
    a, b, c, d = (np.einsum("ni,ni->n", f, e) for f in (f1, f2) for e in (axis, second))
    turn = (a + d) + 1j * (c - b)
    turn /= np.abs(turn)
    return (triangles, weights), turn.real[:, None] * f1 + turn.imag[:, None] * f2


def _shares(corners: np.ndarray, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split vectors (n, 3) into factors of the sides of triangles (n, 3, 3), from the first corner to the second and to
    the third, and the height out of the plane, each (n,)."""
    e1, e2 = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(e1, e2)
    nn = geometry.squared_lengths(n)
    second = np.einsum("ni,ni->n", np.cross(vectors, e2), n) / nn
    third = np.einsum("ni,ni->n", np.cross(e1, vectors), n) / nn
    return second, third, np.einsum("ni,ni->n", vectors, n) / np.sqrt(nn)


def _moved(corners: np.ndarray, moved: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return directions (n, 3) in triangles after their corners (n, 3, 3) have moved."""
    second, third, _ = _shares(corners, direction)
    return np.asarray(second[:, None] * (moved[:, 1] - moved[:, 0]) + third[:, None] * (moved[:, 2] - moved[:, 0]))


def _nearest(patch: Patch, at: np.ndarray, facing: np.ndarray, reach: float) -> tuple[np.ndarray, ...]:
    """Find for each place (n, 3) the nearest one in triangles that face the same way as a vector (n, 3). Return
    triangles (n,), weights of their corners (n, 3), and distances (n,), inf where there is none within the reach."""
    middle = patch.corners.mean(axis=1)
    size = float(np.linalg.norm(patch.corners - middle[:, None], axis=2).max())
    near = tree(middle, patch.box)
    seen = at if patch.box is None else wrapped(at, patch.box)
    n = len(at)
    triangles, weights, distance = np.zeros(n, np.int64), np.full((n, 3), 1.0 / 3.0), np.full(n, np.inf)
    todo, radius = np.arange(n), 2.0 * size
    while len(todo):
        found = near.query_ball_point(seen[todo], radius)
        which = np.repeat(todo, [len(one) for one in found])
        of = np.concatenate([np.asarray(one, np.int64) for one in found])
        ahead = np.einsum("ni,ni->n", patch.area_vectors[of], facing[which]) > 0.0
        which, of = which[ahead], of[ahead]
        first = patch.corners[of, 0]
        own, far = _closest(displacement(first, at[which], patch.box), patch.corners[of] - first[:, None])
        order = np.lexsort((of, far, which))
        _, begin = np.unique(which[order], return_index=True)
        best = order[begin]
        triangles[which[best]], weights[which[best]], distance[which[best]] = of[best], own[best], far[best]
        # The middle of any triangle nearer than this has been within the radius.
        sure = radius - size
        todo = todo[distance[todo] > sure] if sure < reach else todo[:0]
        radius *= 2.0
    return triangles, weights, distance


def _closest(at: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n, 3) of the place in each triangle (n, 3, 3) nearest to a place (n, 3), and its distance (n,):
    the foot of the perpendicular where this is inside, else the nearest one on the sides."""
    second, third, height = _shares(corners, at - corners[:, 0])
    weights = np.stack([1.0 - second - third, second, third], axis=1)
    far = np.abs(height)
    outside = (weights < 0.0).any(axis=1)
    far[outside] = np.inf
    for i, j in ((0, 1), (1, 2), (2, 0)):
        side, r = corners[:, j] - corners[:, i], at - corners[:, i]
        t = np.clip(np.einsum("ni,ni->n", r, side) / geometry.squared_lengths(side), 0.0, 1.0)
        away = np.linalg.norm(r - t[:, None] * side, axis=1)
        better = outside & (away < far)
        far = np.where(better, away, far)
        on_side = np.zeros_like(weights)
        on_side[:, i], on_side[:, j] = 1.0 - t, t
        weights = np.where(better[:, None], on_side, weights)
    return weights, far


def _normals(patch: Patch, triangles: np.ndarray) -> np.ndarray:
    return np.asarray(patch.area_vectors[triangles] / patch.face_areas[triangles, None])


def _first_axis(patch: Patch, triangles: np.ndarray) -> np.ndarray:
    """Return a unit vector (n, 3) in the plane of each triangle, along its first side."""
    side = patch.corners[triangles, 1] - patch.corners[triangles, 0]
    return np.asarray(side / np.linalg.norm(side, axis=1)[:, None])


def _off_corners(places: Places) -> Places:
    """Move places at a vertex a little inside, so that their paths begin and end in their own triangles."""
    triangles, weights = places
    at = np.sort(weights, axis=1)[:, 1] < _AT_CORNER
    if at.any():
        weights = np.where(at[:, None], weights + _AT_CORNER, weights)
        weights = weights / weights.sum(axis=1)[:, None]
    return triangles, weights
