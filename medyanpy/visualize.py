"""Pictures of membranes and what lives on them.

A small renderer (orthographic projection, depth buffer, smooth shading, ambient occlusion) makes the image, since
Matplotlib sorts polygons and cannot hide what is behind a fold; Matplotlib adds the scale bar and writes the file.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from medyanpy.context import Context
from medyanpy.errors import ParameterError
from medyanpy.mesh import TriangleMesh, geometry
from medyanpy.reporters._base import new_file
from medyanpy.simulation import Simulation
from medyanpy.topology import Balls, Filaments, InTrianglePoints, Membrane
from medyanpy.trajectory import Frame
from medyanpy.validation import array, number, whole_number

__all__ = ["draw"]

MEMBRANE_COLOR = (0.86, 0.50, 0.46)
# The side that the normals do not point to, seen on open surfaces.
INSIDE_COLOR = (0.62, 0.50, 0.58)
POINT_COLORS = (
    (0.13, 0.44, 0.66),
    (0.95, 0.71, 0.18),
    (0.27, 0.52, 0.26),
    (0.45, 0.27, 0.56),
    (0.25, 0.25, 0.28),
)
# Towards the lights, as (right, up, towards the viewer).
KEY_LIGHT = np.array([-0.45, 0.70, 0.62])
FILL_LIGHT = np.array([0.75, 0.05, 0.55])
# Corners whose face leans from the mean normal of the vertex by more than this are sharp: they keep their own.
CREASE = np.cos(np.radians(40.0))
# Pixels are computed so many times finer in each direction, and averaged.
SUPERSAMPLING = 2
# Candidate pixels that are looked at together.
BATCH = 1_000_000


@dataclass
class _Surface:
    vertices: np.ndarray
    faces: np.ndarray
    closed: bool
    values: np.ndarray | None = None


@dataclass
class _Spheres:
    name: str
    centers: np.ndarray
    normals: np.ndarray | None
    radius: np.ndarray | None
    #: Whether they are on a surface that shows its other side too.
    two_sided: bool = False
    #: Pairs of them with a tube between: filaments.
    links: np.ndarray | None = None


class _Part(NamedTuple):
    """Some beads to be drawn."""

    name: str
    beads: np.ndarray
    faces: np.ndarray | None = None
    # Of in-triangle points: the membrane, and their faces.
    on: tuple[str, np.ndarray] | None = None
    radius: np.ndarray | None = None
    links: np.ndarray | None = None


def draw(
    what: Any,
    path: Any = None,
    *,
    values: Any = None,
    label: str = "",
    colormap: str = "viridis",
    point_radius: float | None = None,
    inside: bool = False,
    view: tuple[float, float] | None = None,
    size: tuple[int, int] = (1600, 1200),
    title: str | None = None,
    overwrite: bool = False,
) -> Any:
    """Draw membranes, shaded, filaments as tubes, points and other beads as small spheres, and a scale bar.

    Parameters
    ----------
    what : Simulation, Context, Frame of a Trajectory, or TriangleMesh
        Drawn as it is now.
    path : path, optional
        Write the picture there; the ending names the format (``.png``).
    values : (V,) or (F,) float, optional
        A number for each vertex or face of the membrane (of all of them, one after the other), shown as colour.
    label : str
        Of the colour bar.
    colormap : str
        One of Matplotlib's.
    point_radius : float, nm, > 0, optional
        Of the spheres and, half as thick, of filaments; where none is given, as large as looks well.
    inside : bool
        Leave out the side of closed membranes that is turned to the viewer, and what is in it: what they hold is seen.
    view : (elevation, azimuth), degrees, optional
        From where to look, the z axis being up. By default from 35 degrees above the plane in which the mesh is
        widest.
    size : (width, height), pixels, at least 100
    title : str, optional
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    matplotlib.figure.Figure
        Without a window; Matplotlib's backend is left as it is.

    Raises
    ------
    ParameterError
        Something that cannot be drawn, values of a wrong length, or a file that exists.

    Examples
    --------
    >>> import medyanpy as mp
    >>> from medyanpy.visualize import draw
    >>> figure = draw(mp.TriangleMesh.icosphere(500.0, 2), size=(200, 200))
    """
    width, height = (whole_number("draw: size", s, at_least=100, at_most=20_000) for s in size)
    if path is not None:
        path = new_file("draw", path, overwrite=overwrite)
    try:
        import matplotlib  # noqa: F401
    except ImportError as cause:
        raise ImportError("pictures need matplotlib, which comes with medyanpy: pip install matplotlib") from cause
    surfaces, spheres = _scene(what)
    if not surfaces and not spheres:
        raise ParameterError("draw: there is nothing to draw")
    _give_values(surfaces, values)
    camera = _camera(surfaces, spheres, view)
    image, extent = _render(surfaces, spheres, camera, (width, height), point_radius, colormap, inside)
    figure = _frame(image, extent, surfaces, spheres, label, colormap, title)
    if path is not None:
        figure.savefig(path, dpi=figure.dpi)
    return figure


# What there is to draw --------------------------------------------------------------------------------------


def _scene(what: Any) -> tuple[list[_Surface], list[_Spheres]]:
    if isinstance(what, Simulation):
        what = what.context
    if isinstance(what, Context):
        state = what.get_state(positions=True)
        triangles = state.intriangle.triangles
        parts = [
            _Part(
                h.name,
                h.beads,
                h.mesh.faces if isinstance(h, Membrane) else None,
                (h.membrane.name, triangles[h.points]) if isinstance(h, InTrianglePoints) else None,
                h.radius if isinstance(h, Balls) else None,
                h.links if isinstance(h, Filaments) else None,
            )
            for h in what.system.topology.handles
            if h.in_space
        ]
        return _objects(state.positions, parts)
    if isinstance(what, Frame):
        parts = [
            _Part(
                h.name,
                h.beads,
                h.faces,
                None if h.points is None else (h.membrane, what.triangles[h.points]),
                links=h.links,
            )
            for h in what.handles.values()
            if h.in_space
        ]
        return _objects(np.asarray(what.positions, float), parts)
    if isinstance(what, TriangleMesh):
        return [_Surface(what.vertices, what.faces, what.is_closed)], []
    raise ParameterError(
        f"draw: cannot draw {type(what).__name__}: "
        "give a Simulation, a Context, a Frame of a Trajectory or a TriangleMesh"
    )


def _objects(x: np.ndarray, parts: list[_Part]) -> tuple[list[_Surface], list[_Spheres]]:
    surfaces = {
        p.name: _Surface(x[p.beads], p.faces, _is_closed(p.faces)) for p in parts if p.faces is not None
    }
    spheres = []
    for part in parts:
        if part.faces is not None:
            continue
        normals, two_sided = None, False
        if part.on is not None:
            surface = surfaces[part.on[0]]
            n = geometry.area_vectors(surface.vertices, surface.faces[part.on[1]])
            normals = n / np.maximum(np.linalg.norm(n, axis=1), 1e-300)[:, None]
            two_sided = not surface.closed
        spheres.append(_Spheres(part.name, x[part.beads], normals, part.radius, two_sided, part.links))
    return list(surfaces.values()), spheres


def _is_closed(faces: np.ndarray) -> bool:
    """Whether every edge has its opposite half."""
    n = int(faces.max()) + 1
    a = faces.astype(np.int64)
    b = np.roll(a, -1, axis=1)
    return bool(np.isin((a * n + b).ravel(), (b * n + a).ravel()).all())


def _give_values(surfaces: list[_Surface], values: Any) -> None:
    if values is None:
        return
    v = array("draw: values", values, (None,))
    of_vertices = sum(len(s.vertices) for s in surfaces)
    of_faces = sum(len(s.faces) for s in surfaces)
    if len(v) not in (of_vertices, of_faces):
        raise ParameterError(
            f"draw: values has {len(v)} numbers, but there are {of_vertices} vertices and {of_faces} faces"
        )
    start = 0
    for s in surfaces:
        # To each corner of each face.
        n = len(s.vertices) if len(v) == of_vertices else len(s.faces)
        own = v[start : start + n]
        s.values = own[s.faces] if len(v) == of_vertices else np.repeat(own[:, None], 3, axis=1)
        start += n


def _camera(surfaces: list[_Surface], spheres: list[_Spheres], view: Any) -> np.ndarray:
    """Rows: to the right, up, and towards the viewer."""
    up, ahead = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    if view is None:
        elevation, azimuth = 35.0, 0.0
        x = np.concatenate([s.vertices for s in surfaces] or [s.centers for s in spheres])
        spread, axes = np.linalg.eigh(np.cov(x.T) if len(x) > 1 else np.eye(3))
        # Only where directions differ: a sphere keeps z up.
        if spread[1] - spread[0] > 0.05 * spread[2]:
            up = axes[:, 0] * (1.0 if axes[np.argmax(np.abs(axes[:, 0])), 0] > 0.0 else -1.0)
            ahead = axes[:, 1] if spread[2] - spread[1] > 0.05 * spread[2] else np.roll(up, 1)
        elif spread[2] - spread[1] > 0.05 * spread[2]:
            # Long and round: lying.
            up, ahead = axes[:, 0], axes[:, 1]
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


# Rendering --------------------------------------------------------------------------------------------------


class _Buffer:
    """Depth and what is seen, for every pixel."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.depth = np.full(width * height, -np.inf, np.float32)
        self.item = np.full(width * height, -1, np.int32)

    def put(self, pixel: np.ndarray, depth: np.ndarray, item: np.ndarray) -> None:
        nearer = depth > self.depth[pixel]
        pixel, depth, item = pixel[nearer], depth[nearer], item[nearer]
        # Of values assigned to the same pixel the last one stays: the nearest.
        order = np.argsort(depth, kind="stable")
        pixel = pixel[order]
        self.depth[pixel] = depth[order]
        self.item[pixel] = item[order]


def _boxes(low: np.ndarray, high: np.ndarray, buffer: _Buffer):
    """Batches of (item, column, row) for all pixels in the boxes of the items, cut to the picture."""
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


def _render(surfaces, spheres, camera, size, point_radius, colormap, inside):
    """RGB (height, width, 3), and its extent in nm."""
    x = np.concatenate([s.vertices for s in surfaces] + [s.centers for s in spheres]) @ camera.T
    low, high = x.min(axis=0), x.max(axis=0)
    middle = 0.5 * (low + high)
    span = np.maximum(high - low, 1e-6 * np.abs(x).max() + 1e-12)
    # A margin all round, room for the scale bar below, and for a colour bar on the right.
    bar = 0.1 if any(s.values is not None for s in surfaces) else 0.0
    scale = max(span[0] / ((0.86 - bar) * size[0]), span[1] / (0.78 * size[1]))
    buffer = _Buffer(SUPERSAMPLING * size[0], SUPERSAMPLING * size[1])
    fine = scale / SUPERSAMPLING
    center = np.array([0.5 * (1.0 - bar) * buffer.width - 0.5, 0.47 * buffer.height - 0.5])

    def to_pixels(points: np.ndarray) -> np.ndarray:
        """Column, row (downwards) and depth, in pixels."""
        p = (points @ camera.T - middle) / fine
        return np.column_stack([center[0] + p[:, 0], center[1] - p[:, 1], p[:, 2]])

    triangles, normals, colors = _triangles(surfaces, camera, to_pixels, colormap, inside)
    inverse = _put_triangles(buffer, triangles)
    balls = _balls(surfaces, spheres, point_radius, scale, to_pixels, camera, fine, inside)
    _put_spheres(buffer, balls, len(triangles))
    rgb, alpha = _shade(buffer, triangles, inverse, normals, colors, balls)
    image = _reduce(rgb, alpha, buffer)
    extent = (0.0, scale * size[0], 0.0, scale * size[1])
    return image, extent


def _triangles(surfaces, camera, to_pixels, colormap, inside):
    """Corners (n, 3, 3) in pixels, their normals in view, and colours; those that cannot be seen left out."""
    corners, normals, colors = [np.empty((0, 3, 3))], [np.empty((0, 3, 3))], [np.empty((0, 3, 3))]
    limits = _limits(surfaces)
    for s in surfaces:
        p = to_pixels(s.vertices)[s.faces]
        vectors = geometry.area_vectors(s.vertices, s.faces)
        flat = vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]
        mean = np.zeros_like(s.vertices)
        for k in range(3):
            np.add.at(mean, s.faces[:, k], vectors)
        mean /= np.maximum(np.linalg.norm(mean, axis=1), 1e-300)[:, None]
        smooth = mean[s.faces]
        sharp = np.einsum("fkj,fj->fk", smooth, flat) < CREASE
        n = np.where(sharp[:, :, None], flat[:, None, :], smooth) @ camera.T
        facing = flat @ camera[2]
        color = np.broadcast_to(np.array(MEMBRANE_COLOR), n.shape).copy()
        if s.values is not None:
            color = _color_of(s.values, limits, colormap)
        keep = (facing < 0.0 if inside else facing > 0.0) if s.closed else np.abs(facing) > 0.0
        # Seen from behind: the other side's normal and colour.
        behind = facing < 0.0
        n[behind] *= -1.0
        if s.values is None:
            color[behind] = INSIDE_COLOR
        corners.append(p[keep])
        normals.append(n[keep])
        colors.append(color[keep])
    return (np.concatenate(part).astype(np.float32) for part in (corners, normals, colors))


def _limits(surfaces: list[_Surface]) -> tuple[float, float]:
    """Range of the colours: without the outermost percent, which is often noise."""
    values = [s.values.ravel() for s in surfaces if s.values is not None]
    if not values:
        return 0.0, 1.0
    low, high = np.percentile(np.concatenate(values), [1.0, 99.0])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)


def _color_of(values: np.ndarray, limits: tuple[float, float], colormap: str) -> np.ndarray:
    import matplotlib

    try:
        chosen = matplotlib.colormaps[colormap]
    except KeyError as cause:
        raise ParameterError(f"draw: colormap = {colormap!r} but must be one of Matplotlib's") from cause
    return chosen(np.clip((values - limits[0]) / (limits[1] - limits[0]), 0.0, 1.0))[..., :3]


def _put_triangles(buffer: _Buffer, t: np.ndarray) -> np.ndarray:
    """Fill the buffer; returns for each triangle the map from (column, row, 1) to its barycentric weights."""
    p = t.astype(np.float64)
    matrix = np.concatenate([p[:, :, :2], np.ones_like(p[:, :, :1])], axis=2).transpose(0, 2, 1)
    area = np.linalg.det(matrix) if len(p) else np.empty(0)
    seen = np.abs(area) > 1e-9
    inverse = np.zeros_like(matrix)
    inverse[seen] = np.linalg.inv(matrix[seen])
    # Nothing is inside of what is seen edge-on.
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


def _balls(surfaces, spheres, point_radius, scale, to_pixels, camera, fine, inside):
    """Centres in pixels, radii in pixels, and the number of the colour of every sphere."""
    if point_radius is not None:
        point_radius = number("draw: point_radius", point_radius, above=0.0)
    n = sum(len(s.centers) for s in spheres)
    area = sum(
        0.5 * float(np.linalg.norm(geometry.area_vectors(s.vertices, s.faces), axis=1).sum()) for s in surfaces
    )
    # A quarter of the mean distance of neighbours, but not so small that nothing is seen, nor too large.
    default = 0.25 * np.sqrt(area / max(n, 1)) if area else 9.0 * scale
    default = float(np.clip(default, 3.0 * scale, 9.0 * scale)) if point_radius is None else point_radius
    centers, radii, which = [np.empty((0, 3))], [np.empty(0)], [np.empty(0, np.int64)]
    for k, s in enumerate(spheres):
        r = np.full(len(s.centers), default) if s.radius is None else np.broadcast_to(s.radius, len(s.centers))
        # Points sit on the membrane rather than in it, or half of each would be hidden; on the side that is seen
        # where the surface is open.
        x = s.centers
        if s.normals is not None:
            n = s.normals
            away = n @ camera[2] < 0.0
            if s.two_sided or inside:
                n = n * np.where(away, -1.0, 1.0)[:, None]
            x = x + 0.5 * r[:, None] * n
            if inside and not s.two_sided:
                x, r = x[away], r[away]
        if s.links is not None:
            x, r = _tubes(x, s.links, 0.5 * r[0])
        centers.append(to_pixels(x))
        radii.append(r / fine)
        which.append(np.full(len(r), k))
    return np.concatenate(centers), np.concatenate(radii), np.concatenate(which)


def _tubes(x: np.ndarray, links: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Centres and radii of spheres so close along links that they look like tubes."""
    d = x[links[:, 1]] - x[links[:, 0]]
    n = np.maximum(1, np.ceil(np.linalg.norm(d, axis=1) / (0.5 * radius)).astype(int))
    which = np.repeat(np.arange(len(links)), n)
    along = (np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n)) / n[which]
    beads = np.concatenate([x[links[which, 0]] + along[:, None] * d[which], x])
    return beads, np.full(len(beads), radius)


def _put_spheres(buffer: _Buffer, balls, first: int) -> None:
    centers, radii, _ = balls
    low, high = centers[:, :2] - radii[:, None], centers[:, :2] + radii[:, None]
    for item, column, row in _boxes(low, high, buffer):
        dx, dy = column - centers[item, 0], row - centers[item, 1]
        rest = radii[item] ** 2 - dx**2 - dy**2
        inside = rest > 0.0
        item = item[inside]
        z = centers[item, 2] + np.sqrt(rest[inside])
        pixel = row[inside] * buffer.width + column[inside]
        buffer.put(pixel, z.astype(np.float32), (first + item).astype(np.int32))


def _shade(buffer: _Buffer, triangles, inverse, normals, colors, balls):
    """Colour (n pixels, 3) and whether anything is there."""
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

    centers, radii, which = balls
    ball = ~of_triangle
    b, c, r = item[ball] - len(triangles), column[ball], row[ball]
    dx, dy = (c - centers[b, 0]) / radii[b], (centers[b, 1] - r) / radii[b]
    normal[ball] = np.column_stack([dx, dy, np.sqrt(np.maximum(1.0 - dx**2 - dy**2, 0.0))])
    palette = np.array(POINT_COLORS, np.float32)
    color[ball] = palette[which[b] % len(palette)]

    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-6)[:, None]
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
    gloss = np.where(ball, 0.35 * shine**40, 0.13 * shine**22)
    shaded = color * light[:, None] + gloss[:, None]
    rgb = np.ones((len(buffer.item), 3), np.float32)
    rgb[pixel] = np.clip(shaded, 0.0, 1.0)
    return rgb, alpha


def _openness(buffer: _Buffer) -> np.ndarray:
    """How much of the sky a pixel sees, from how far its surroundings stand out above it, fine and coarse."""
    from scipy.ndimage import gaussian_filter

    # A quarter of the resolution is plenty for what is smooth.
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
        # What stands out very far does not shade what is below it, but is in front of it.
        out *= 1.0 - most * above * np.exp(1.0 - above)
    return np.where(np.isfinite(depth), out, 1.0).ravel().astype(np.float32)


def _finer(coarse: np.ndarray, step: int, length: int) -> np.ndarray:
    """Rows between rows that are `step` apart, by linear interpolation: steps would show as a pattern on slopes."""
    place = np.arange(length, dtype=np.float32) / step
    before = np.minimum(place.astype(np.int64), len(coarse) - 1)
    after = np.minimum(before + 1, len(coarse) - 1)
    share = (place - before)[:, None]
    return (1.0 - share) * coarse[before] + share * coarse[after]


def _reduce(rgb: np.ndarray, alpha: np.ndarray, buffer: _Buffer) -> np.ndarray:
    """Average the fine pixels."""
    k = SUPERSAMPLING
    return rgb.reshape(buffer.height // k, k, buffer.width // k, k, 3).mean(axis=(1, 3))


# The frame round the image ----------------------------------------------------------------------------------


def _frame(image, extent, surfaces, spheres, label, colormap, title):
    """A figure of exactly the pixels of the image, with scale bar, legend, colour bar and title."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    height, width = image.shape[:2]
    dpi = 200.0
    figure = Figure(figsize=(width / dpi, height / dpi), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(image, extent=extent, interpolation="none")
    axes.set_axis_off()
    ink, text = "#333333", 8.0 * min(width, 4 * height // 3) / 1600.0

    length = _round_length(0.18 * extent[1])
    left, bottom = 0.05 * extent[1], 0.055 * extent[3]
    axes.plot([left, left + length], [bottom, bottom], color=ink, lw=0.35 * text, solid_capstyle="butt")
    axes.text(
        left + 0.5 * length, bottom + 0.015 * extent[3], _length_text(length), color=ink, ha="center", va="bottom",
        fontsize=1.15 * text,
    )
    marks = [
        Line2D([], [], ls="", marker="o", ms=0.75 * text, mfc=POINT_COLORS[k % len(POINT_COLORS)], mec="none",
               # Of filaments the number of nodes would say nothing.
               label=s.name if s.links is not None else f"{len(s.centers):,} {s.name}".replace(",", "\u2009"))
        for k, s in enumerate(spheres)
    ]
    if marks:
        axes.legend(
            handles=marks, loc="lower right", bbox_to_anchor=(0.96, 0.035), frameon=False, fontsize=1.15 * text,
            labelcolor=ink, handletextpad=0.2, borderaxespad=0.0,
        )
    if any(s.values is not None for s in surfaces):
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        bar = figure.colorbar(
            ScalarMappable(Normalize(*_limits(surfaces)), colormap), cax=figure.add_axes((0.88, 0.3, 0.015, 0.4))
        )
        bar.set_label(label, fontsize=1.1 * text, color=ink)
        bar.ax.tick_params(labelsize=text, colors=ink, width=0.05 * text, length=0.3 * text)
        bar.outline.set_visible(False)
    if title is not None:
        axes.text(
            0.5 * extent[1], 0.965 * extent[3], title, color=ink, ha="center", va="top", fontsize=1.4 * text
        )
    return figure


def _round_length(wanted: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above."""
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(f for f in (1.0, 2.0, 5.0) if f * power <= wanted * (1.0 + 1e-9)) * power)


def _length_text(length: float) -> str:
    return f"{length / 1e3:g} µm" if length >= 1e3 else f"{length:g} nm"
