"""Renderer of triangles, spheres, ellipsoids and tubes to pixels, independent of simulations."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from medyanpy._tools.validation import number
from medyanpy.errors import ParameterError
from medyanpy.mesh import geometry
from medyanpy.visualize.scene import BOX_COLOR, MEMBRANE_COLOR, Sheet, Solids, unit

#: Twelve, in CIELAB at least 9 apart from each other, also for eyes without red, green or blue cones (a test).
POINT_COLORS = (
    (0.13, 0.44, 0.66), (0.95, 0.71, 0.18), (0.27, 0.52, 0.26), (0.45, 0.27, 0.56), (0.16, 0.16, 0.20),
    (0.45, 0.95, 0.95), (0.75, 0.25, 0.95), (0.65, 0.95, 0.55), (0.35, 0.15, 0.05), (0.65, 0.65, 0.95),
    (0.65, 0.55, 0.65), (0.25, 0.15, 0.65),
)
CORNER = 22.0, 28.0  # By default a periodic box is seen from beside and above one of its corners (degrees).
EDGE, EDGE_SHADE = 0.45, 0.45  # Edges of triangles: half their width in pixels, and how dark they are.
# Towards the lights, as (right, up, towards the viewer).
KEY_LIGHT = np.array([-0.45, 0.70, 0.62])
FILL_LIGHT = np.array([0.75, 0.05, 0.55])
# Corners whose face leans from the mean normal of the vertex by more than this are sharp: they keep their own.
CREASE = np.cos(np.radians(40.0))
SUPERSAMPLING = 2  # Pixels are computed so many times finer in each direction, and averaged.
TRAIL, TRAIL_END = 0.55, 0.12  # Trails: thickness where beads are now and at the far end, relative to the beads.
# Where their first axis points, rigid bodies are lighter, from this height of the unit sphere on,
# by this share of white.
TIP, TIP_LIGHT = 0.75, 0.6
BATCH = 1_000_000  # Candidate pixels that are processed together.


class Window(NamedTuple):
    """Region of a picture: rows of the camera, and two corners of a box around everything, in its axes."""

    camera: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def around(self, points: np.ndarray, radius: Any = None) -> "Window":
        """Return a window widened to hold points, or balls."""
        x = points[np.isfinite(points).all(axis=1)] @ self.camera.T  # Beads that were not there yet have no places.
        room = 0.0 if radius is None else float(np.max(radius, initial=0.0))
        return self._replace(
            low=np.minimum(self.low, (x - room).min(axis=0, initial=np.inf)),
            high=np.maximum(self.high, (x + room).max(axis=0, initial=-np.inf)),
        )

    def somewhere(self) -> "Window":
        """Return it, or where nothing is there to be drawn one around the origin."""
        return self if np.isfinite(self.low).all() else self.around(np.zeros((1, 3)), 1.0)

    def scale(self, size: tuple[int, int], bar: float) -> float:
        """Return nm per pixel, with a margin all round, and room for the scale bar and for a colour bar."""
        least = 1e-6 * max(np.abs(self.low).max(), np.abs(self.high).max()) + 1e-12
        span = np.maximum(self.high - self.low, least)
        return float(max(span[0] / ((0.86 - bar) * size[0]), span[1] / (0.78 * size[1])))

    def to_pixels(self, points: np.ndarray, size: tuple[int, int], bar: float) -> np.ndarray:
        """Return column, row (downwards) and depth of points, in the fine pixels that are computed."""
        p = (points @ self.camera.T - 0.5 * (self.low + self.high)) * SUPERSAMPLING / self.scale(size, bar)
        middle = SUPERSAMPLING * np.array([0.5 * (1.0 - bar) * size[0], 0.47 * size[1]]) - 0.5
        return np.column_stack([middle[0] + p[:, 0], middle[1] - p[:, 1], p[:, 2]])


def _camera(surfaces: list[Sheet], spheres: list[Solids], view: Any) -> np.ndarray:
    """Return the rows of the camera: to the right, up, and towards the viewer."""
    up, ahead = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    if view is None:
        elevation, azimuth = 35.0, 0.0
        x = np.concatenate([s.vertices for s in surfaces] or [s.centers for s in spheres if not s.is_box])
        spread, axes = np.linalg.eigh(np.cov(x.T) if len(x) > 1 else np.eye(3))
        # Only where directions differ: a sphere keeps z up.
        if spread[1] - spread[0] > 0.05 * spread[2]:
            up = axes[:, 0] * (1.0 if axes[np.argmax(np.abs(axes[:, 0])), 0] > 0.0 else -1.0)
            ahead = axes[:, 1] if spread[2] - spread[1] > 0.05 * spread[2] else np.roll(up, 1)
        elif spread[2] - spread[1] > 0.05 * spread[2]:
            up, ahead = axes[:, 0], axes[:, 1]  # Long and round: lying.
        if any(s.is_box for s in spheres):
            # Along its sides, of which none is to hide the others.
            elevation, azimuth = CORNER
            sides = np.eye(3)
            k = int(np.argmax(np.abs(up)))
            up, ahead = sides[k], sides[(k + 1) % 3 if abs(ahead[(k + 1) % 3]) >= abs(ahead[k - 1]) else k - 1]
    else:
        elevation, azimuth = (number("draw: view", angle) for angle in view)
    ahead = ahead - (ahead @ up) * up
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, up)
    a, e = np.radians(azimuth), np.radians(elevation)
    # The viewer stands behind `ahead`, turned by the azimuth, and raised by the elevation.
    back = np.cos(a) * -ahead + np.sin(a) * right
    toward = np.cos(e) * back + np.sin(e) * up
    right = np.cross(up, back)
    return np.array([right, np.cross(toward, right), toward])


def window_of(what: str, surfaces: list[Sheet], spheres: list[Solids], view: Any, point_radius: Any) -> Window:
    """Return the smallest window around surfaces and solids."""
    if not surfaces and not spheres:
        raise ParameterError(f"{what}: there is nothing to draw")
    window = Window(_camera(surfaces, spheres, view), np.full(3, np.inf), np.full(3, -np.inf))
    for surface in surfaces:
        window = window.around(surface.vertices)
    for s in spheres:
        window = window.around(s.centers, point_radius if s.radius is None else s.radius)
        if s.past is not None:
            window = window.around(s.past.reshape(-1, 3))
    return window


class Buffer:
    """Depth and visible object of every pixel."""

    def __init__(self, width: int, height: int) -> None:
        self.width: int = width
        self.height: int = height
        self.depth: np.ndarray = np.full(width * height, -np.inf, np.float32)
        self.item: np.ndarray = np.full(width * height, -1, np.int32)

    def copy(self) -> "Buffer":
        other = Buffer(self.width, self.height)
        other.depth[:], other.item[:] = self.depth, self.item
        return other

    def put(self, pixel: np.ndarray, depth: np.ndarray, item: np.ndarray) -> None:
        nearer = depth > self.depth[pixel]
        pixel, depth, item = pixel[nearer], depth[nearer], item[nearer]
        # Of values assigned to the same pixel the last one stays: the nearest.
        order = np.argsort(depth, kind="stable")
        pixel = pixel[order]
        self.depth[pixel] = depth[order]
        self.item[pixel] = item[order]


def _boxes(low: np.ndarray, high: np.ndarray, buffer: Buffer) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield batches of (item, column, row) for all pixels in the boxes of the items, cut to the picture."""
    limit = np.array([buffer.width, buffer.height]) - 1
    low = np.clip(np.floor(low).astype(np.int64), 0, limit + 1)
    high = np.clip(np.ceil(high).astype(np.int64), -1, limit)
    extent = np.maximum(high - low + 1, 0)
    count = extent.prod(axis=1)
    ends = np.cumsum(count)
    start = 0
    while start < len(count):
        base = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + BATCH, side="right")))
        n = count[start:stop]
        if n.sum():
            item = np.repeat(np.arange(start, stop), n)
            offset = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
            row, column = np.divmod(offset, extent[item, 0])
            yield item, column + low[item, 0], row + low[item, 1]
        start = stop


class _Backdrop(NamedTuple):
    """The surfaces, drawn, and the data of their triangles for shading."""

    buffer: Buffer
    triangles: np.ndarray
    inverse: np.ndarray
    normals: np.ndarray
    colors: np.ndarray


def render(
    surfaces: list[Sheet], spheres: list[Solids], window: Window, size: tuple[int, int], point_radius: float | None,
    colormap: str, inside: bool, backdrop: _Backdrop | None = None, *, opacity: float = 1.0, edges: bool = False,
) -> np.ndarray:
    """Render a picture, RGB (height, width, 3); a backdrop given is not changed. Through membranes of an opacity below
    1 everything else is seen, not their other side."""
    if opacity < 1.0:
        scale = window.scale(size, bar_share(surfaces))
        radius = default_radius(surfaces, spheres, scale, size) if point_radius is None else point_radius
        rest = [s.without_faces() if s.is_membrane else s for s in surfaces]
        behind = render(rest, spheres, window, size, radius, colormap, inside, edges=edges)
        whole = render(surfaces, spheres, window, size, radius, colormap, inside, backdrop, edges=edges)
        return opacity * whole + (1.0 - opacity) * behind
    buffer, *shading = backdrop or backdrop_of(surfaces, window, size, colormap, inside)
    triangles, inverse, normals, colors = shading
    if backdrop is not None:
        buffer = buffer.copy()
    scale = window.scale(size, bar_share(surfaces))
    balls = _balls(surfaces, spheres, point_radius, scale, window, size, inside)
    bodies = _bodies(surfaces, spheres, scale, window, size)
    _put_spheres(buffer, balls, len(triangles))
    _put_ellipsoids(buffer, bodies, len(triangles) + len(balls[0]))
    crisp = two_values(surfaces) is not None
    rgb, alpha = _shade(buffer, triangles, inverse, normals, colors, balls, bodies, palette_of(spheres), edges, crisp)
    return _reduce(rgb, alpha, buffer)


def backdrop_of(surfaces: list[Sheet], window: Window, size: tuple[int, int], colormap: str, inside: bool) -> _Backdrop:
    buffer = Buffer(SUPERSAMPLING * size[0], SUPERSAMPLING * size[1])
    triangles, normals, colors = _triangles(surfaces, window, size, colormap, inside)
    return _Backdrop(buffer, triangles, _put_triangles(buffer, triangles), normals, colors)


def palette_of(solids: list[Solids]) -> np.ndarray:
    """Return the colour of each solid, (k, 3)."""
    colors = [s.color or (BOX_COLOR if s.is_box else POINT_COLORS[k % len(POINT_COLORS)]) for k, s in enumerate(solids)]
    return np.array(colors).reshape(-1, 3)


def bar_share(surfaces: list[Sheet]) -> float:
    """Return the share of the width for a colour bar."""
    return 0.1 if any(s.values is not None for s in surfaces) and two_values(surfaces) is None else 0.0


def two_values(surfaces: list[Sheet]) -> tuple[float, float] | None:
    """Return the lower and the upper of two values, shown as two colours without a colour bar; None of others."""
    found = _known_values(surfaces)
    if not len(found) or not ((found == found.min()) | (found == found.max())).all() or found.min() == found.max():
        return None
    return float(found.min()), float(found.max())


def legend_of(surfaces: list[Sheet], solids: list[Solids], label: str, colormap: str) -> list[tuple[str, np.ndarray]]:
    """Return the texts and colours of the legend: of solids, and of values that are two."""
    entries = [(s.legend, color) for s, color in zip(solids, palette_of(solids), strict=True) if not s.is_box]
    if (both := two_values(surfaces)) is None:
        return entries
    colors = colors_of(np.array(both), both, colormap, MEMBRANE_COLOR)
    return entries + [(f"{label or 'value'}: {x:g}", color) for x, color in zip(both, colors, strict=True)]


def _known_values(surfaces: list[Sheet]) -> np.ndarray:
    values = np.concatenate([np.empty(0), *(s.values.ravel() for s in surfaces if s.values is not None)])
    return np.asarray(values[np.isfinite(values)])


def _triangles(
    surfaces: list[Sheet], window: Window, size: tuple[int, int], colormap: str, inside: bool
) -> Iterator[np.ndarray]:
    """Return corners (n, 3, 3) in pixels, normals in view, and colours of the triangles that can be seen."""
    corners, normals, colors = [np.empty((0, 3, 3))], [np.empty((0, 3, 3))], [np.empty((0, 3, 3))]
    limits, camera = limits_of(surfaces), window.camera
    for s in surfaces:
        if not len(s.faces):
            continue
        p = window.to_pixels(s.vertices, size, bar_share(surfaces))[s.faces]
        vectors = geometry.area_vectors(s.vertices, s.faces)
        flat = unit(vectors)
        smooth = s.smooth_normals()[s.faces]
        sharp = np.einsum("fkj,fj->fk", smooth, flat) < CREASE
        n = np.where(sharp[:, :, None], flat[:, None, :], smooth) @ camera.T
        facing = flat @ camera[2]
        color = np.broadcast_to(np.array(s.color), n.shape).copy()
        if s.values is not None:
            color = colors_of(s.values, limits, colormap, s.color)
        keep = (facing < 0.0 if inside else facing > 0.0) if s.closed else np.abs(facing) > 0.0
        # Seen from behind: the other side's normal and colour.
        behind = facing < 0.0
        n[behind] *= -1.0
        if s.values is None:
            color[behind] = s.inside_color
        corners.append(p[keep])
        normals.append(n[keep])
        colors.append(color[keep])
    return (np.concatenate(part).astype(np.float32) for part in (corners, normals, colors))


def limits_of(surfaces: list[Sheet]) -> tuple[float, float]:
    """Return the range of the colours: without the outermost percent, which is often noise."""
    known = _known_values(surfaces)
    if not len(known):
        return 0.0, 1.0
    if (both := two_values(surfaces)) is not None:
        return both
    low, high = np.percentile(known, [1.0, 99.0])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def colors_of(
    values: np.ndarray, limits: tuple[float, float], colormap: str, unknown: tuple[float, float, float]
) -> np.ndarray:
    """Return the colours (..., 3) of values; another colour where there is no value."""
    import matplotlib

    try:
        chosen = matplotlib.colormaps[colormap]
    except KeyError as cause:
        raise ParameterError(f"draw: colormap = {colormap!r} but must be one of Matplotlib's") from cause
    share = np.clip((values - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0)
    return np.where(np.isfinite(values)[..., None], chosen(np.nan_to_num(share))[..., :3], unknown)


def _put_triangles(buffer: Buffer, t: np.ndarray) -> np.ndarray:
    """Fill the buffer; return for each triangle the map from (column, row, 1) to its barycentric weights."""
    p = t.astype(np.float64)
    matrix = np.concatenate([p[:, :, :2], np.ones_like(p[:, :, :1])], axis=2).transpose(0, 2, 1)
    area = np.linalg.det(matrix) if len(p) else np.empty(0)
    seen = np.abs(area) > 1e-9
    inverse = np.zeros_like(matrix)
    inverse[seen] = np.linalg.inv(matrix[seen])
    # No pixel is inside a triangle that is seen edge-on.
    inverse[~seen, :, 2] = -1.0
    depth = np.einsum("nk,nkj->nj", p[:, :, 2], inverse)
    for item, column, row in _boxes(p[:, :, :2].min(axis=1), p[:, :, :2].max(axis=1), buffer):
        inside = np.ones(len(item), bool)
        for k in range(3):
            a = inverse[:, k]
            inside &= a[item, 0] * column + a[item, 1] * row + a[item, 2] >= -1e-9
        item, column, row = item[inside], column[inside], row[inside]
        z = depth[item, 0] * column + depth[item, 1] * row + depth[item, 2]
        buffer.put(row * buffer.width + column, z.astype(np.float32), item.astype(np.int32))
    return inverse


def default_radius(
    surfaces: list[Sheet], spheres: list[Solids], scale: float, size: tuple[int, int] = (1600, 1200)
) -> float:
    """Return the default radius of points, nm, in a picture of so many nm per pixel."""
    n = sum(len(s.centers) for s in spheres if s.are_beads)
    area = sum(0.5 * float(np.linalg.norm(geometry.area_vectors(s.vertices, s.faces), axis=1).sum()) for s in surfaces)
    # A quarter of the mean distance of neighbours, but neither too small to be seen nor too large.
    if area:
        return float(np.clip(0.25 * np.sqrt(area / max(n, 1)), 3.0 * scale, 9.0 * scale))
    loose = [s.centers for s in spheres if s.are_beads and s.links is None]
    x = np.concatenate([np.empty((0, 3)), *loose])
    extent = np.ptp(x, axis=0) if len(x) else np.zeros(3)
    wide = extent[extent > 0.01 * extent.max()]
    apart = float(np.prod(wide) / len(x)) ** (1.0 / len(wide)) if len(wide) else 0.0
    least = 9.0 * max(1.0, size[0] / 1600.0)
    return float(np.clip(0.25 * apart, least * scale, max(least, 24.0 * size[0] / 1600.0) * scale))


def radii_of(s: Solids, default: float) -> np.ndarray:
    """Return radii (n,) of spheres, and of tubes where they begin and end, nm."""
    if s.radius is not None:
        return np.broadcast_to(s.radius, len(s.centers))
    # Filaments, whose thickness is not known, are drawn thinner than beads, links between them thinner still, and lines
    # as thin as they can be.
    share = 0.06 if s.is_box else 1.0 if s.links is None else 0.5 if s.are_beads else 0.3
    out = np.full(len(s.centers), share * default)
    if s.links is not None and not (s.are_beads or s.is_box):
        # Both ends of a link are where its one head holds: a ball, which is seen on a filament.
        out[s.links[(s.centers[s.links[:, 0]] == s.centers[s.links[:, 1]]).all(axis=1)]] = default
    return out


#: Centres in pixels, radii in pixels, and the number of the colour of each.
_Balls = tuple[np.ndarray, np.ndarray, np.ndarray]


def _balls(
    surfaces: list[Sheet], spheres: list[Solids], point_radius: float | None, scale: float, window: Window,
    size: tuple[int, int], inside: bool,
) -> _Balls:
    """Return centres in pixels, radii in pixels, and the number of the colour of every sphere."""
    default = default_radius(surfaces, spheres, scale, size) if point_radius is None else point_radius
    centers, radii, which = [np.empty((0, 3))], [np.empty(0)], [np.empty(0, np.int64)]
    camera, fine = window.camera, scale / SUPERSAMPLING
    for k, s in enumerate(spheres):
        r = radii_of(s, default)
        x, shown = _lifted(s.centers, r, s.normals, s, camera, inside)
        ball = shown
        if s.half_axes is not None:
            # Only their trails are here, not thicker than themselves.
            r, ball = np.linalg.norm(s.half_axes, axis=1).min(axis=1), np.zeros(len(x), bool)
        if s.links is not None:
            x, r = _tubes(x, s.links, r, fine)
        elif s.past is not None:
            tail, of_tail = _trails(s, s.past, x, r, shown, camera, fine, inside)
            x, r = np.concatenate([x[ball], tail]), np.concatenate([r[ball], of_tail])
        else:
            x, r = x[ball], r[ball]
        if s.instead is not None:
            x, r = np.concatenate([x, s.instead[0]]), np.concatenate([r, s.instead[1]])
        centers.append(window.to_pixels(x, size, bar_share(surfaces)))
        radii.append(r / fine)
        which.append(np.full(len(r), k))
    return np.concatenate(centers), np.concatenate(radii), np.concatenate(which)


class _Ellipsoids(NamedTuple):
    centers: np.ndarray
    matrix: np.ndarray  #: (n, 3, 3) from the unit sphere to column, row and depth from the centre.
    which: np.ndarray  #: Number of the colour.


def _bodies(
    surfaces: list[Sheet], spheres: list[Solids], scale: float, window: Window, size: tuple[int, int]
) -> _Ellipsoids:
    """Return the ellipsoids of rigid bodies in pixels."""
    found = [(k, s, s.half_axes) for k, s in enumerate(spheres) if s.half_axes is not None and s.instead is None]
    if not found:
        return _Ellipsoids(np.empty((0, 3)), np.empty((0, 3, 3)), np.empty(0, np.int64))
    half_axes = np.concatenate([axes for *_, axes in found])
    # Not thinner than a pixel, as tubes.
    half_axes = half_axes * np.maximum(1.0, 0.75 * scale / SUPERSAMPLING / np.linalg.norm(half_axes, axis=1))[:, None]
    turn = np.diag([1.0, -1.0, 1.0]) @ window.camera * (SUPERSAMPLING / scale)  # Rows count downwards.
    return _Ellipsoids(
        window.to_pixels(np.concatenate([s.centers for _, s, _ in found]), size, bar_share(surfaces)),
        turn @ half_axes,
        np.concatenate([np.full(len(s.centers), k) for k, s, _ in found]),
    )


def _lifted(
    x: np.ndarray, r: np.ndarray, normals: np.ndarray | None, of: Solids, camera: np.ndarray, inside: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return places of spheres with radii r, and which are shown: on a surface rather than in it, or half of each would
    be hidden, and where it is open on the side that is seen."""
    shown = np.ones(len(x), bool)
    if normals is None:
        return x, shown
    away = normals @ camera[2] < 0.0
    if of.two_sided or inside:
        normals = normals * np.where(away, -1.0, 1.0)[:, None]
        if not of.two_sided:
            shown = away
    return x + 0.5 * r[:, None] * normals, shown


def _trails(
    s: Solids, past: np.ndarray, x: np.ndarray, r: np.ndarray, shown: np.ndarray, camera: np.ndarray, fine: float,
    inside: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return tubes from where spheres were to where they are drawn now, x."""
    t, n = past.shape[:2]
    thin = (np.linspace(TRAIL_END, TRAIL, t + 1)[:, None] * r).ravel()
    normals = None if s.past_normals is None else s.past_normals.reshape(-1, 3)
    before, there = _lifted(past.reshape(-1, 3), thin[:-n], normals, s, camera, inside)
    there = np.concatenate([there & np.isfinite(before).all(axis=1), shown])
    links = np.arange(t * n)[:, None] + [0, n]
    return _tubes(np.concatenate([before, x]), links[there[links].all(axis=1)], thin, fine)


def _tubes(x: np.ndarray, links: np.ndarray, radius: np.ndarray, fine: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and radii of spheres so close along links that they look like tubes, at least as thick as a pixel,
    `fine`."""
    radius = np.maximum(radius, 0.75 * fine)
    a, b = links.T
    thinner = np.minimum(radius[a], radius[b])
    # In thick tubes the single spheres would be seen.
    apart = np.minimum(0.35 * thinner, np.maximum(0.1 * thinner, 2.0 * fine))
    n = np.maximum(1, np.ceil(np.linalg.norm(x[b] - x[a], axis=1) / apart).astype(int))
    which = np.repeat(np.arange(len(links)), n)
    along = (np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n)) / n[which]
    a, b, ends = a[which], b[which], np.unique(links)
    return (
        np.concatenate([x[a] + along[:, None] * (x[b] - x[a]), x[ends]]),
        np.concatenate([radius[a] + along * (radius[b] - radius[a]), radius[ends]]),
    )


def _put_spheres(buffer: Buffer, balls: _Balls, first: int) -> None:
    centers, radii, _ = balls
    for item, column, row in _boxes(centers[:, :2] - radii[:, None], centers[:, :2] + radii[:, None], buffer):
        dx, dy = column - centers[item, 0], row - centers[item, 1]
        rest = radii[item] ** 2 - dx**2 - dy**2
        inside = rest > 0.0
        item = item[inside]
        z = centers[item, 2] + np.sqrt(rest[inside])
        pixel = row[inside] * buffer.width + column[inside]
        buffer.put(pixel, z.astype(np.float32), (first + item).astype(np.int32))


def _put_ellipsoids(buffer: Buffer, bodies: _Ellipsoids, first: int) -> None:
    # Of x = c + A u with |u| = 1 and C = A Aᵀ: seen is the ellipse dᵀ P d = 1 of offsets d = (column, row), P the
    # inverse of the upper left block of C, and above it the depth lies s √(1 - dᵀ P d) before the plane through the
    # outline, with s² the rest of C₃₃ (its Schur complement).
    c = bodies.matrix @ bodies.matrix.transpose(0, 2, 1)
    inverse = np.linalg.inv(c[:, :2, :2]) if len(c) else np.empty((0, 2, 2))
    slope = np.einsum("ni,nij->nj", c[:, 2, :2], inverse)
    height = np.sqrt(np.maximum(c[:, 2, 2] - np.einsum("ni,ni->n", slope, c[:, 2, :2]), 0.0))
    reach = np.sqrt(c[:, [0, 1], [0, 1]])
    for item, column, row in _boxes(bodies.centers[:, :2] - reach, bodies.centers[:, :2] + reach, buffer):
        d = np.column_stack([column, row]) - bodies.centers[item, :2]
        rest = 1.0 - np.einsum("ni,nij,nj->n", d, inverse[item], d)
        inside = rest > 0.0
        item, d = item[inside], d[inside]
        z = bodies.centers[item, 2] + np.einsum("ni,ni->n", slope[item], d) + height[item] * np.sqrt(rest[inside])
        pixel = row[inside] * buffer.width + column[inside]
        buffer.put(pixel, z.astype(np.float32), (first + item).astype(np.int32))


def _shade(
    buffer: Buffer, triangles: np.ndarray, inverse: np.ndarray, normals: np.ndarray, colors: np.ndarray, balls: _Balls,
    bodies: _Ellipsoids, palette: np.ndarray, edges: bool, crisp: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return colours (n pixels, 3) and where anything is there."""
    alpha = buffer.item >= 0
    pixel = np.flatnonzero(alpha)
    item = buffer.item[pixel]
    row, column = np.divmod(pixel, buffer.width)
    normal = np.empty((len(pixel), 3), np.float32)
    color = np.empty((len(pixel), 3), np.float32)

    of_triangle = item < len(triangles)
    t, c, r = item[of_triangle], column[of_triangle], row[of_triangle]
    weights = np.stack(
        [inverse[t, k, 0] * c + inverse[t, k, 1] * r + inverse[t, k, 2] for k in range(3)], axis=1
    ).astype(np.float32)
    normal[of_triangle] = np.einsum("nk,nkj->nj", weights, normals[t])
    color[of_triangle] = np.einsum("nk,nkj->nj", weights, colors[t])
    if crisp:
        # That of the nearest corner: there is nothing between two values.
        color[of_triangle] = colors[t, weights.argmax(axis=1)]
    if edges:
        # A weight grows from 0 at the edge across from its corner by its slope in each pixel.
        away = weights / np.maximum(np.linalg.norm(inverse[t, :, :2], axis=2), 1e-30)
        color[of_triangle] *= np.where(away.min(axis=1) < EDGE * SUPERSAMPLING, EDGE_SHADE, 1.0)[:, None]

    centers, radii, which = balls
    ball = ~of_triangle & (item < len(triangles) + len(centers))
    b, c, r = item[ball] - len(triangles), column[ball], row[ball]
    dx, dy = (c - centers[b, 0]) / radii[b], (centers[b, 1] - r) / radii[b]
    normal[ball] = np.column_stack([dx, dy, np.sqrt(np.maximum(1.0 - dx**2 - dy**2, 0.0))])
    color[ball] = palette[which[b]]

    body = item >= len(triangles) + len(centers)
    b = item[body] - len(triangles) - len(centers)
    offset = np.column_stack([column[body], row[body], buffer.depth[pixel[body]]]) - bodies.centers[b]
    back = np.linalg.inv(bodies.matrix) if len(bodies.matrix) else bodies.matrix
    unit = np.einsum("nij,nj->ni", back[b], offset)
    normal[body] = np.einsum("nji,nj->ni", back[b], unit) * [1.0, -1.0, 1.0]  # The gradient of |A⁻¹ x|², up again.
    tip = np.where(unit[:, :1] > TIP, TIP_LIGHT, 0.0)
    color[body] = (1.0 - tip) * palette[bodies.which[b]] + tip

    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-30)[:, None]
    key, fill = (light / np.linalg.norm(light) for light in (KEY_LIGHT, FILL_LIGHT))
    half = key + np.array([0.0, 0.0, 1.0])
    half /= np.linalg.norm(half)
    # Wrapped diffuse light: no hard line between light and shadow.
    diffuse = np.clip((normal @ key.astype(np.float32) + 0.25) / 1.25, 0.0, None)
    second = np.clip(normal @ fill.astype(np.float32), 0.0, None)
    sky = 0.5 + 0.5 * normal[:, 1]
    facing = np.clip(normal[:, 2], 0.0, 1.0)
    light = 0.40 + 0.12 * sky + 0.54 * diffuse + 0.16 * second
    # Outlines darken a little, which sets things apart from each other and from the page.
    light *= 0.80 + 0.20 * np.sqrt(facing)
    light *= _openness(buffer)[pixel]
    shine = np.clip(normal @ half.astype(np.float32), 0.0, 1.0)
    gloss = np.where(~of_triangle, 0.35 * shine**40, 0.13 * shine**22)
    shaded = color * light[:, None] + gloss[:, None]
    rgb = np.ones((len(buffer.item), 3), np.float32)
    rgb[pixel] = np.clip(shaded, 0.0, 1.0)
    return rgb, alpha


def _openness(buffer: Buffer) -> np.ndarray:
    """Return the ambient light of each pixel, from how far its surroundings stand out above it, fine and coarse."""
    from scipy.ndimage import gaussian_filter

    # A quarter of the resolution is enough for smooth shading.
    step = 2 * SUPERSAMPLING
    depth = buffer.depth.reshape(buffer.height, buffer.width)
    coarse = depth[::step, ::step]
    there = np.isfinite(coarse)
    if not there.any():
        return np.ones(buffer.depth.shape, np.float32)
    out = np.ones_like(depth)
    # The page lies far behind: a surface that bends away at its outline is not in a hollow.
    low, high = float(coarse[there].min()), float(coarse[there].max())
    base = np.where(there, coarse, low - 0.5 * (high - low))
    for share, strength, most in ((0.045, 1.4, 0.40), (0.012, 1.2, 0.16)):
        sigma = share * coarse.shape[1]
        mean = _finer(_finer(gaussian_filter(base, sigma), step, buffer.height).T, step, buffer.width).T
        above = strength * np.clip(mean - depth, 0.0, 100.0 * sigma * step) / (sigma * step)
        # A surface that stands out very far does not shade those below it, but is in front of them.
        out *= 1.0 - most * above * np.exp(1.0 - above)
    return np.where(np.isfinite(depth), out, 1.0).ravel().astype(np.float32)


def _finer(coarse: np.ndarray, step: int, length: int) -> np.ndarray:
    """Interpolate linearly between rows that are `step` apart; steps would show as a pattern on slopes."""
    place = np.arange(length, dtype=np.float32) / step
    before = np.minimum(place.astype(np.int64), len(coarse) - 1)
    after = np.minimum(before + 1, len(coarse) - 1)
    share = (place - before)[:, None]
    return np.asarray((1.0 - share) * coarse[before] + share * coarse[after])


def _reduce(rgb: np.ndarray, alpha: np.ndarray, buffer: Buffer) -> np.ndarray:
    """Average the fine pixels."""
    k = SUPERSAMPLING
    return np.asarray(rgb.reshape(buffer.height // k, k, buffer.width // k, k, 3).mean(axis=(1, 3)))
