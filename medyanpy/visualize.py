"""Pictures and movies of membranes, surfaces and what lives on them.

A small renderer (orthographic projection, depth buffer, smooth shading, ambient occlusion) makes the image, since
Matplotlib sorts polygons and cannot hide what is behind a fold; Matplotlib adds the scale bar and writes the file.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.quaternions import matrices
from medyanpy._tools.validation import array, number, whole_number
from medyanpy.beads import Balls, InTrianglePoints, Membrane, OrientedBeads, Rods, SurfacePoints
from medyanpy.beads.chains import Chains
from medyanpy.context import Context
from medyanpy.errors import MedyanError, ParameterError
from medyanpy.files.trajectory import Frame, Trajectory
from medyanpy.mesh import TriangleMesh, geometry
from medyanpy.reporters._base import new_file
from medyanpy.simulation import Simulation
from medyanpy.surfaces import Surface

__all__ = ["draw", "movie"]

MEMBRANE_COLOR = (0.86, 0.50, 0.46)
# The side that the normals do not point to, seen on open surfaces.
INSIDE_COLOR = (0.62, 0.50, 0.58)
# Surfaces that beads are held to: there, but not part of what is simulated.
SURFACE_COLOR = (0.80, 0.80, 0.78)
SURFACE_INSIDE_COLOR = (0.64, 0.64, 0.66)
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
# Trails: thickness where beads are now and at the far end, relative to the beads.
TRAIL, TRAIL_END = 0.55, 0.12
# Rigid bodies are drawn no thinner than this, relative to their length. Where their first axis points they are lighter,
# from this height of the unit sphere on, by this share of white.
THINNEST, TIP, TIP_LIGHT = 0.05, 0.75, 0.6
# Cubes along the longest side of the box in which the mesh of a surface is made: so many of them over its `length`,
# but no fewer or more than this.
CUBES_PER_LENGTH, LEAST_CUBES, MOST_CUBES = 3.0, 72, 128
# Candidate pixels that are looked at together.
BATCH = 1_000_000


@dataclass
class _Membrane:
    vertices: np.ndarray
    faces: np.ndarray
    closed: bool
    values: np.ndarray | None = None
    color: tuple[float, float, float] = MEMBRANE_COLOR
    inside_color: tuple[float, float, float] = INSIDE_COLOR
    #: Of vertices, where they are known better than from the triangles.
    normals: np.ndarray | None = None
    #: Whether it is simulated and can have values.
    is_membrane: bool = True


@dataclass
class _Spheres:
    name: str
    centers: np.ndarray
    radius: np.ndarray | None
    #: Pairs of them with a tube between: filaments.
    links: np.ndarray | None
    #: Of what they are on; and whether that shows its other side too.
    normals: np.ndarray | None = None
    two_sided: bool = False
    #: (T, n, 3) where they were, the oldest first; and the normals of their surface there.
    past: np.ndarray | None = None
    past_normals: np.ndarray | None = None
    #: (n, 3, 3) of ellipsoids: half axes in space, as columns. They are in no surface.
    half_axes: np.ndarray | None = None


class _Part(NamedTuple):
    """Some beads to be drawn."""

    name: str
    beads: np.ndarray
    faces: np.ndarray | None = None
    # Of in-triangle points: the membrane, and their faces.
    on: tuple[str, np.ndarray] | None = None
    radius: np.ndarray | None = None
    links: np.ndarray | None = None
    surface: Surface | None = None
    # Of rigid bodies: (n, 3), and unit quaternions (n, 4).
    semi_axes: np.ndarray | None = None
    orientations: np.ndarray | None = None


class _Scene(NamedTuple):
    """What there is at one moment."""

    positions: np.ndarray
    parts: list[_Part]


class _Window(NamedTuple):
    """What is looked at: rows of the camera, and two corners of a box around everything, in its axes."""

    camera: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def around(self, points: np.ndarray, radius: Any = None) -> "_Window":
        """Widened to hold points, or balls."""
        x = points @ self.camera.T
        room = 0.0 if radius is None else float(np.max(radius))
        return self._replace(
            low=np.minimum(self.low, (x - room).min(axis=0, initial=np.inf)),
            high=np.maximum(self.high, (x + room).max(axis=0, initial=-np.inf)),
        )

    def scale(self, size: tuple[int, int], bar: float) -> float:
        """nm per pixel, with a margin all round, room for the scale bar below, and for a colour bar on the right."""
        least = 1e-6 * max(np.abs(self.low).max(), np.abs(self.high).max()) + 1e-12
        span = np.maximum(self.high - self.low, least)
        return max(span[0] / ((0.86 - bar) * size[0]), span[1] / (0.78 * size[1]))

    def to_pixels(self, points: np.ndarray, size: tuple[int, int], bar: float) -> np.ndarray:
        """Column, row (downwards) and depth of points, in the fine pixels that are computed."""
        p = (points @ self.camera.T - 0.5 * (self.low + self.high)) * SUPERSAMPLING / self.scale(size, bar)
        middle = SUPERSAMPLING * np.array([0.5 * (1.0 - bar) * size[0], 0.47 * size[1]]) - 0.5
        return np.column_stack([middle[0] + p[:, 0], middle[1] - p[:, 1], p[:, 2]])


@plainly_called
def draw(
    what: Any,
    path: Any = None,
    *,
    values: Any = None,
    label: str = "",
    colormap: str = "viridis",
    point_radius: float | None = None,
    inside: bool = False,
    trails: Any = None,
    semi_axes: Mapping[str, Any] | None = None,
    view: tuple[float, float] | None = None,
    size: tuple[int, int] = (1600, 1200),
    unit: str = "nm",
    title: str | None = None,
    overwrite: bool = False,
) -> Any:
    """Draw membranes, shaded, filaments and elastic rods as tubes, rigid bodies as ellipsoids, other beads as small
    spheres, and a scale bar.

    Parameters
    ----------
    what : Simulation, Context, Frame of a Trajectory, TriangleMesh, or Surface
        Drawn as it is now. The implicit surfaces that points are held to are drawn too if scikit-image is installed;
        where they have no bounds, the part around the points.
    path : path, optional
        Write the picture there; the ending names the format (``.png``).
    values : (V,) or (F,) float, optional
        A number for each vertex or face of the membrane (of all of them, one after the other), shown as colour.
    label : str
        Of the colour bar.
    colormap : str
        One of Matplotlib's.
    point_radius : float, nm, > 0, optional
        Of the spheres and, half as thick, of filaments; where none is given, as large as looks well. Elastic rods are
        as thick as a round section of their mass and inertia.
    inside : bool
        Leave out the side of closed membranes that is turned to the viewer, and what is in it: what they hold is seen.
    trails : (T, n, 3) float or sequence of (n, 3), nm, optional
        Where all beads were, the oldest first, such as a list of ``state.positions``. Points and other beads that are
        drawn as spheres draw a tube behind them that gets thinner towards the past.
    semi_axes : dict of str to (3,) or (n, 3) float, nm, > 0, optional
        Of rigid bodies, by the name of their handle. Others are drawn as the solid ellipsoid of their mass and inertia,
        though none thinner than a twentieth of its length. The end of the first axis is lighter.
    view : (elevation, azimuth), degrees, optional
        From where to look, the z axis being up. By default from 35 degrees above the plane in which the mesh is
        widest.
    size : (width, height), pixels, at least 100
    unit : str
        Of lengths, beside the scale bar; ``""`` for work without units.
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
        Something that cannot be drawn, values or trails of a wrong shape, or a file that exists.
    ImportError
        A Surface itself is to be drawn, and scikit-image is not installed.

    Examples
    --------
    >>> import medyanpy as mp
    >>> from medyanpy.visualize import draw
    >>> figure = draw(mp.TriangleMesh.icosphere(500.0, 2), size=(200, 200))
    """
    size, point_radius = _checked("draw", size, point_radius)
    if path is not None:
        path = new_file("draw", path, overwrite=overwrite)
    _need_matplotlib()
    scene = _scene(what, _checked_axes("draw", semi_axes))
    past = None
    if trails is not None and len(trails):
        past = array("draw: trails", trails, (None, len(scene.positions), 3))
    surfaces, spheres = _objects(scene, past)
    _give_values([s for s in surfaces if s.is_membrane], values)
    window = _window("draw", surfaces, spheres, view, point_radius)
    image = _render(surfaces, spheres, window, size, point_radius, colormap, inside)
    figure, _ = _frame(image, window, surfaces, spheres, label, colormap, title, unit)
    if path is not None:
        figure.savefig(path, dpi=figure.dpi)
    return figure


@plainly_called
def movie(
    frames: Any,
    path: Any,
    *,
    trail: int = 0,
    fps: int = 25,
    point_radius: float | None = None,
    inside: bool = False,
    semi_axes: Mapping[str, Any] | None = None,
    view: tuple[float, float] | None = None,
    size: tuple[int, int] = (640, 480),
    unit: str = "nm",
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a movie: what `draw` draws of each frame, seen from the same place.

    Parameters
    ----------
    frames : Trajectory or iterable of what `draw` draws
        All of the same beads. ``trajectory[::10]`` takes every tenth frame; a generator may take steps and give the
        same simulation again and again.
    path : path
        ``.gif``; or ``.mp4`` where ffmpeg is installed.
    trail : int
        Points and other beads drawn as spheres show where they were in that many frames before.
    fps : int, 1 to 60
        Frames per second. Viewers show GIFs at no more than 50.
    point_radius, inside, semi_axes, view, size, unit, title, overwrite
        As of `draw`; the view by default that of the first frame.

    Raises
    ------
    ParameterError
        No frames, frames of different beads, another ending of the path, ``.mp4`` without ffmpeg, a file that exists,
        or what `draw` refuses.

    Examples
    --------
    >>> import medyanpy as mp, tempfile, pathlib
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [9.0, 0, 0]], mass=1.0)
    >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    >>> simulation.context.set_velocities([[1.0, 0, 0], [0, 1.0, 0]])
    >>> def run():
    ...     for _ in range(3):
    ...         simulation.step(1)
    ...         yield simulation
    >>> mp.visualize.movie(run(), pathlib.Path(tempfile.mkdtemp()) / "beads.gif", size=(100, 100))
    """
    size, point_radius = _checked("movie", size, point_radius)
    trail = whole_number("movie: trail", trail)
    fps = whole_number("movie: fps", fps, at_least=1, at_most=60)
    given = _checked_axes("movie", semi_axes)
    path = new_file("movie", path, overwrite=overwrite)
    _need_matplotlib()
    writer = _writer(path, fps)
    if isinstance(frames, Trajectory):
        # Read again whenever needed: it may be larger than the memory.
        def scenes() -> Iterator[_Scene]:
            return (_scene(frame, given) for frame in frames)
    else:
        if not isinstance(frames, Iterable):
            raise ParameterError(f"movie: frames must be a Trajectory or an iterable, not {type(frames).__name__}")
        scenes = [_scene(frame, given) for frame in frames].__iter__
    first = next(scenes(), None)
    if first is None:
        raise ParameterError("movie: there are no frames")
    boxes: dict[Surface, np.ndarray] = {}
    for k, scene in enumerate(scenes()):
        if scene.positions.shape != first.positions.shape:
            raise ParameterError(
                f"movie: frame {k} has {len(scene.positions)} beads, the first has {len(first.positions)}"
            )
        for surface, box in _regions(scene).items():
            low, high = boxes.get(surface, box)
            boxes[surface] = np.array([np.minimum(low, box[0]), np.maximum(high, box[1])])
    surfaces, spheres = _objects(first, boxes=boxes)
    window = _window("movie", surfaces, spheres, view, point_radius)
    for scene in scenes():
        for part in scene.parts:
            radius = part.radius if part.semi_axes is None else part.semi_axes
            if radius is None and part.faces is None:
                radius = point_radius
            window = window.around(scene.positions[part.beads], radius)

    # What does not move is drawn once.
    backdrop = None
    if not any(s.is_membrane for s in surfaces):
        backdrop = _backdrop(surfaces, window, size, "viridis", inside)

    def images() -> Iterator[np.ndarray]:
        past: deque[np.ndarray] = deque(maxlen=trail)
        for scene in scenes():
            now = _objects(scene, np.array(past) if past else None, boxes)
            yield _render(*now, window, size, point_radius, "viridis", inside, backdrop)
            past.append(scene.positions)

    image = images()
    figure, shown = _frame(next(image), window, surfaces, spheres, title=title, unit=unit)
    with writer.saving(figure, path, figure.dpi):
        writer.grab_frame()
        for pixels in image:
            shown.set_data(pixels)
            writer.grab_frame()


def _writer(path: Path, fps: int) -> Any:
    """Of Matplotlib's, for the ending of a path."""
    from matplotlib.animation import FFMpegWriter, PillowWriter

    match path.suffix.lower():
        case ".gif":
            return PillowWriter(fps)
        case ".mp4":
            if not FFMpegWriter.isAvailable():
                raise ParameterError(f"movie: {path.name} needs the program ffmpeg, which is not here; write a .gif")
            return FFMpegWriter(fps)
        case other:
            raise ParameterError(f"movie: the path must end in .gif or .mp4, not {other!r}")


def _checked(what: str, size: Any, point_radius: Any) -> tuple[tuple[int, int], float | None]:
    width, height = (whole_number(f"{what}: size", s, at_least=100, at_most=20_000) for s in size)
    if point_radius is not None:
        point_radius = number(f"{what}: point_radius", point_radius, above=0.0)
    return (width, height), point_radius


def _checked_axes(what: str, semi_axes: Any) -> dict[str, np.ndarray]:
    """Semi-axes by names of handles; how many there must be is known later."""
    if semi_axes is None:
        return {}
    if not isinstance(semi_axes, Mapping):
        raise ParameterError(f"{what}: semi_axes must be a dict of names of handles, not {type(semi_axes).__name__}")
    checked = {}
    for name, given in semi_axes.items():
        label = f"{what}: semi_axes[{name!r}]"
        a = array(label, given, (3,) if np.ndim(given) < 2 else (None, 3))
        if not (a > 0.0).all():
            raise ParameterError(f"{label} = {a.min():g} but must be > 0")
        checked[name] = a
    return checked


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as cause:
        raise ImportError("pictures need matplotlib, which comes with medyanpy: pip install matplotlib") from cause


# What there is to draw --------------------------------------------------------------------------------------


def _scene(what: Any, semi_axes: Mapping[str, np.ndarray]) -> _Scene:
    """With the semi-axes that are given for some rigid bodies."""
    scene = _found(what)
    bodies = {p.name: p for p in scene.parts if p.semi_axes is not None}
    for name, a in semi_axes.items():
        if name not in bodies:
            there = f"only {', '.join(bodies)} are" if bodies else "there are none"
            raise ParameterError(f"draw: semi_axes: {name!r} are not rigid bodies, {there}")
        n = len(bodies[name].beads)
        if a.shape not in ((3,), (n, 3)):
            raise ParameterError(f"draw: semi_axes[{name!r}] must have shape (3,) or ({n}, 3), not {a.shape}")
        bodies[name] = bodies[name]._replace(semi_axes=np.broadcast_to(a, (n, 3)))
    return scene._replace(parts=[bodies.get(p.name, p) for p in scene.parts])


def _solid(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Semi-axes (n, 3) of solid ellipsoids by masses and principal moments (n, 3), I1 = m(a2² + a3²)/5 and so on."""
    square = 2.5 * (inertia.sum(axis=1)[:, None] - 2.0 * inertia) / mass[:, None]
    a = np.sqrt(np.maximum(square, 0.0))
    return np.maximum(a, THINNEST * a.max(axis=1)[:, None])


def _tube(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """(n,) radii of rods with a round section, I1 = m r²/4 of a thin slice."""
    return 2.0 * np.sqrt(inertia[:, :2].min(axis=1) / mass)


def _is_body(handle: Any) -> bool:
    return isinstance(handle, OrientedBeads) and not isinstance(handle, Rods)


def _found(what: Any) -> _Scene:
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
                h.radius if isinstance(h, Balls) else _tube(h.mass, h.inertia) if isinstance(h, Rods) else None,
                h.links if isinstance(h, Chains) else None,
                h.surface if isinstance(h, SurfacePoints) else None,
                *((_solid(h.mass, h.inertia), state.orientations[h.rows]) if _is_body(h) else ()),
            )
            for h in what.system.topology.handles
            if h.in_space
        ]
        return _Scene(state.positions, parts)
    if isinstance(what, Frame):
        parts = [
            _Part(
                h.name,
                h.beads,
                h.faces,
                None if h.points is None else (h.membrane, what.triangles[h.points]),
                radius=None if h.rows is None or h.links is None else _tube(h.mass, h.inertia),
                links=h.links,
                surface=h.surface,
                semi_axes=None if h.rows is None or h.links is not None else _solid(h.mass, h.inertia),
                orientations=None if h.rows is None else what.orientations[h.rows],
            )
            for h in what.handles.values()
            if h.in_space
        ]
        return _Scene(np.asarray(what.positions, float), parts)
    if isinstance(what, Surface):
        # Here the want of scikit-image or of bounds is an error.
        _meshed(what, None)
        return _Scene(np.empty((0, 3)), [_Part("surface", np.empty(0, int), surface=what)])
    if isinstance(what, TriangleMesh):
        return _Scene(what.vertices, [_Part("mesh", np.arange(len(what.vertices)), what.faces)])
    raise ParameterError(
        f"draw: cannot draw {type(what).__name__}: "
        "give a Simulation, a Context, a Frame of a Trajectory, a TriangleMesh or a Surface"
    )


def _objects(
    scene: _Scene, past: np.ndarray | None = None, boxes: dict[Surface, np.ndarray] | None = None
) -> tuple[list[_Membrane], list[_Spheres]]:
    x, parts = scene
    membranes = {
        p.name: _Membrane(x[p.beads], p.faces, _is_closed(p.faces)) for p in parts if p.faces is not None
    }
    meshes = {surface: _mesh_of(surface, box) for surface, box in (boxes or _regions(scene)).items()}
    spheres = []
    for part in parts:
        if part.faces is not None:
            continue
        if not len(part.beads):
            continue
        drawn = _Spheres(part.name, x[part.beads], part.radius, part.links)
        if part.semi_axes is not None:
            drawn.radius = part.semi_axes.max(axis=1)
            drawn.half_axes = matrices(part.orientations) * part.semi_axes[:, None]
        if past is not None and part.links is None:
            drawn.past = past[:, part.beads]
        if part.on is not None:
            membrane = membranes[part.on[0]]
            drawn.normals = _unit(geometry.area_vectors(membrane.vertices, membrane.faces[part.on[1]]))
            drawn.two_sided = not membrane.closed
            if drawn.past is not None:
                # As near as one gets without the triangles of then.
                drawn.past_normals = np.broadcast_to(drawn.normals, drawn.past.shape)
        elif part.surface is not None and meshes[part.surface] is not None:
            mesh, sign = meshes[part.surface]
            drawn.normals = sign * _unit(part.surface.gradient(drawn.centers))
            drawn.two_sided = not mesh.is_closed
            if drawn.past is not None:
                there = part.surface.gradient(drawn.past.reshape(-1, 3))
                drawn.past_normals = sign * _unit(there).reshape(drawn.past.shape)
        spheres.append(drawn)
    backdrops = [
        _Membrane(
            mesh.vertices,
            mesh.faces,
            mesh.is_closed,
            color=SURFACE_COLOR,
            inside_color=SURFACE_INSIDE_COLOR,
            normals=sign * _unit(surface.gradient(mesh.vertices)),
            is_membrane=False,
        )
        for surface, (mesh, sign) in ((surface, found) for surface, found in meshes.items() if found is not None)
    ]
    return [*membranes.values(), *backdrops], spheres


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]


# The last mesh of each surface, and the box it was made in.
_meshes: WeakKeyDictionary[Surface, tuple[bytes, tuple[TriangleMesh, float] | None]] = WeakKeyDictionary()


def _regions(scene: _Scene) -> dict[Surface, np.ndarray]:
    """For each surface a box around all of it or, where it has no bounds, around its points."""
    boxes: dict[Surface, np.ndarray] = {}
    for part in scene.parts:
        if part.surface is None:
            continue
        box = part.surface.bounding_box
        if not np.isfinite(box).all():
            x = scene.positions[part.beads]
            low, high = x.min(axis=0), x.max(axis=0)
            room = max(0.15 * float((high - low).max()), 1e-3 * part.surface.length)
            # Not cut where it has bounds.
            known = np.isfinite(box)
            box = np.where(known, box, [low, high]) + [[-room] * 3, [room] * 3]
            if part.surface in boxes:
                low, high = boxes[part.surface]
                box = np.array([np.minimum(low, box[0]), np.maximum(high, box[1])])
        boxes[part.surface] = box
    return boxes


def _mesh_of(surface: Surface, box: np.ndarray) -> tuple[TriangleMesh, float] | None:
    """As `_meshed`; None without scikit-image, or where no mesh of a moderate size comes out."""
    key = box.tobytes()
    if surface not in _meshes or _meshes[surface][0] != key:
        try:
            _meshes[surface] = key, _meshed(surface, None if (box == surface.bounding_box).all() else box)
        except (ImportError, MedyanError):
            _meshes[surface] = key, None
    return _meshes[surface][1]


def _meshed(surface: Surface, box: np.ndarray | None) -> tuple[TriangleMesh, float]:
    """Triangles in a box or, without one, all of them, turned outwards; and the sign of the gradient there."""
    longest = np.ptp(surface.bounding_box if box is None else box, axis=0).max()
    cubes = CUBES_PER_LENGTH * longest / surface.length if np.isfinite(longest) else 0.0
    mesh = surface.mesh(int(np.clip(cubes, LEAST_CUBES, MOST_CUBES)), box=box)
    if mesh.is_closed and mesh.volume < 0.0:
        return TriangleMesh(mesh.vertices, mesh.faces[:, ::-1]), -1.0
    return mesh, 1.0


def _is_closed(faces: np.ndarray) -> bool:
    """Whether every edge has its opposite half."""
    n = int(faces.max()) + 1
    a = faces.astype(np.int64)
    b = np.roll(a, -1, axis=1)
    return bool(np.isin((a * n + b).ravel(), (b * n + a).ravel()).all())


def _give_values(surfaces: list[_Membrane], values: Any) -> None:
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


def _camera(surfaces: list[_Membrane], spheres: list[_Spheres], view: Any) -> np.ndarray:
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


def _window(what: str, surfaces: list[_Membrane], spheres: list[_Spheres], view: Any, point_radius: Any) -> _Window:
    """Just large enough."""
    if not surfaces and not spheres:
        raise ParameterError(f"{what}: there is nothing to draw")
    window = _Window(_camera(surfaces, spheres, view), np.full(3, np.inf), np.full(3, -np.inf))
    for surface in surfaces:
        window = window.around(surface.vertices)
    for s in spheres:
        window = window.around(s.centers, point_radius if s.radius is None else s.radius)
        if s.past is not None:
            window = window.around(s.past.reshape(-1, 3))
    return window


# Rendering --------------------------------------------------------------------------------------------------


class _Buffer:
    """Depth and what is seen, for every pixel."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.depth = np.full(width * height, -np.inf, np.float32)
        self.item = np.full(width * height, -1, np.int32)

    def copy(self) -> "_Buffer":
        other = _Buffer(self.width, self.height)
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


class _Backdrop(NamedTuple):
    """The surfaces, drawn, and what shading needs of their triangles."""

    buffer: _Buffer
    triangles: np.ndarray
    inverse: np.ndarray
    normals: np.ndarray
    colors: np.ndarray


def _render(surfaces, spheres, window, size, point_radius, colormap, inside, backdrop=None):
    """RGB (height, width, 3). A backdrop given is left as it is."""
    buffer, triangles, *shading = backdrop or _backdrop(surfaces, window, size, colormap, inside)
    if backdrop is not None:
        buffer = buffer.copy()
    scale = window.scale(size, _bar(surfaces))
    balls = _balls(surfaces, spheres, point_radius, scale, window, size, inside)
    bodies = _bodies(surfaces, spheres, scale, window, size)
    _put_spheres(buffer, balls, len(triangles))
    _put_ellipsoids(buffer, bodies, len(triangles) + len(balls[0]))
    rgb, alpha = _shade(buffer, triangles, *shading, balls, bodies)
    return _reduce(rgb, alpha, buffer)


def _backdrop(surfaces, window, size, colormap, inside) -> _Backdrop:
    buffer = _Buffer(SUPERSAMPLING * size[0], SUPERSAMPLING * size[1])
    triangles, normals, colors = _triangles(surfaces, window, size, colormap, inside)
    return _Backdrop(buffer, triangles, _put_triangles(buffer, triangles), normals, colors)


def _bar(surfaces: list[_Membrane]) -> float:
    """Share of the width for a colour bar."""
    return 0.1 if any(s.values is not None for s in surfaces) else 0.0


def _triangles(surfaces, window, size, colormap, inside):
    """Corners (n, 3, 3) in pixels, their normals in view, and colours; those that cannot be seen left out."""
    corners, normals, colors = [np.empty((0, 3, 3))], [np.empty((0, 3, 3))], [np.empty((0, 3, 3))]
    limits, camera = _limits(surfaces), window.camera
    for s in surfaces:
        p = window.to_pixels(s.vertices, size, _bar(surfaces))[s.faces]
        vectors = geometry.area_vectors(s.vertices, s.faces)
        flat = _unit(vectors)
        mean = s.normals
        if mean is None:
            mean = np.zeros_like(s.vertices)
            for k in range(3):
                np.add.at(mean, s.faces[:, k], vectors)
            mean = _unit(mean)
        smooth = mean[s.faces]
        sharp = np.einsum("fkj,fj->fk", smooth, flat) < CREASE
        n = np.where(sharp[:, :, None], flat[:, None, :], smooth) @ camera.T
        facing = flat @ camera[2]
        color = np.broadcast_to(np.array(s.color), n.shape).copy()
        if s.values is not None:
            color = _color_of(s.values, limits, colormap)
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


def _limits(surfaces: list[_Membrane]) -> tuple[float, float]:
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


def _balls(surfaces, spheres, point_radius, scale, window, size, inside):
    """Centres in pixels, radii in pixels, and the number of the colour of every sphere."""
    n = sum(len(s.centers) for s in spheres)
    area = sum(
        0.5 * float(np.linalg.norm(geometry.area_vectors(s.vertices, s.faces), axis=1).sum()) for s in surfaces
    )
    # A quarter of the mean distance of neighbours, but not so small that nothing is seen, nor too large.
    default = 0.25 * np.sqrt(area / max(n, 1)) if area else 9.0 * scale
    default = float(np.clip(default, 3.0 * scale, 9.0 * scale)) if point_radius is None else point_radius
    centers, radii, which = [np.empty((0, 3))], [np.empty(0)], [np.empty(0, np.int64)]
    camera, fine = window.camera, scale / SUPERSAMPLING
    for k, s in enumerate(spheres):
        r = np.full(len(s.centers), default) if s.radius is None else np.broadcast_to(s.radius, len(s.centers))
        x, shown = _lifted(s.centers, r, s.normals, s, camera, inside)
        ball = shown
        if s.half_axes is not None:
            # Only their trails are here, not thicker than themselves.
            r, ball = np.linalg.norm(s.half_axes, axis=1).min(axis=1), np.zeros(len(x), bool)
        if s.links is not None:
            # Filaments, whose thickness is not known, are drawn thinner than beads.
            x, r = _tubes(x, s.links, 0.5 * r if s.radius is None else r, fine)
        elif s.past is not None:
            tail, of_tail = _trails(s, x, r, shown, camera, fine, inside)
            x, r = np.concatenate([x[ball], tail]), np.concatenate([r[ball], of_tail])
        else:
            x, r = x[ball], r[ball]
        centers.append(window.to_pixels(x, size, _bar(surfaces)))
        radii.append(r / fine)
        which.append(np.full(len(r), k))
    return np.concatenate(centers), np.concatenate(radii), np.concatenate(which)


class _Ellipsoids(NamedTuple):
    centers: np.ndarray
    #: (n, 3, 3) from the unit sphere to column, row and depth from the centre.
    matrix: np.ndarray
    #: Number of the colour.
    which: np.ndarray


def _bodies(surfaces, spheres, scale, window, size) -> _Ellipsoids:
    """In pixels."""
    found = [(k, s) for k, s in enumerate(spheres) if s.half_axes is not None]
    if not found:
        return _Ellipsoids(np.empty((0, 3)), np.empty((0, 3, 3)), np.empty(0, np.int64))
    half_axes = np.concatenate([s.half_axes for _, s in found])
    # Not thinner than a pixel, as tubes.
    half_axes = half_axes * np.maximum(1.0, 0.75 * scale / SUPERSAMPLING / np.linalg.norm(half_axes, axis=1))[:, None]
    # Rows count downwards.
    turn = np.diag([1.0, -1.0, 1.0]) @ window.camera * (SUPERSAMPLING / scale)
    return _Ellipsoids(
        window.to_pixels(np.concatenate([s.centers for _, s in found]), size, _bar(surfaces)),
        turn @ half_axes,
        np.concatenate([np.full(len(s.centers), k) for k, s in found]),
    )


def _lifted(x, r, normals, of: _Spheres, camera, inside: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places of spheres with radii r, and which are shown. They sit on a surface rather than in it, or half of each
    would be hidden; on the side that is seen where the surface is open."""
    shown = np.ones(len(x), bool)
    if normals is None:
        return x, shown
    away = normals @ camera[2] < 0.0
    if of.two_sided or inside:
        normals = normals * np.where(away, -1.0, 1.0)[:, None]
        if not of.two_sided:
            shown = away
    return x + 0.5 * r[:, None] * normals, shown


def _trails(s: _Spheres, x, r, shown, camera, fine: float, inside: bool) -> tuple[np.ndarray, np.ndarray]:
    """Tubes from where spheres were to where they are drawn now, x."""
    t, n = s.past.shape[:2]
    thin = (np.linspace(TRAIL_END, TRAIL, t + 1)[:, None] * r).ravel()
    normals = None if s.past_normals is None else s.past_normals.reshape(-1, 3)
    before, there = _lifted(s.past.reshape(-1, 3), thin[:-n], normals, s, camera, inside)
    there = np.concatenate([there, shown])
    links = np.arange(t * n)[:, None] + [0, n]
    return _tubes(np.concatenate([before, x]), links[there[links].all(axis=1)], thin, fine)


def _tubes(x: np.ndarray, links: np.ndarray, radius: np.ndarray, fine: float) -> tuple[np.ndarray, np.ndarray]:
    """Centres and radii of spheres so close along links that they look like tubes; of at least a pixel's thickness,
    `fine`."""
    radius = np.maximum(radius, 0.75 * fine)
    a, b = links.T
    thinner = np.minimum(radius[a], radius[b])
    # Of thick tubes the single spheres would be seen.
    apart = np.minimum(0.35 * thinner, np.maximum(0.1 * thinner, 2.0 * fine))
    n = np.maximum(1, np.ceil(np.linalg.norm(x[b] - x[a], axis=1) / apart).astype(int))
    which = np.repeat(np.arange(len(links)), n)
    along = (np.arange(len(which)) - np.repeat(np.cumsum(n) - n, n)) / n[which]
    a, b, ends = a[which], b[which], np.unique(links)
    return (
        np.concatenate([x[a] + along[:, None] * (x[b] - x[a]), x[ends]]),
        np.concatenate([radius[a] + along * (radius[b] - radius[a]), radius[ends]]),
    )


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


def _put_ellipsoids(buffer: _Buffer, bodies: _Ellipsoids, first: int) -> None:
    # Of x = c + A u with |u| = 1 and C = A Aᵀ: seen is the ellipse dᵀ P d = 1 of offsets d = (column, row), P the
    # inverse of the upper left block of C, and above it the depth lies s √(1 - dᵀ P d) before the plane through the
    # outline, with s² what is left of C₃₃.
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


def _shade(buffer: _Buffer, triangles, inverse, normals, colors, balls, bodies):
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
    ball = ~of_triangle & (item < len(triangles) + len(centers))
    b, c, r = item[ball] - len(triangles), column[ball], row[ball]
    dx, dy = (c - centers[b, 0]) / radii[b], (centers[b, 1] - r) / radii[b]
    normal[ball] = np.column_stack([dx, dy, np.sqrt(np.maximum(1.0 - dx**2 - dy**2, 0.0))])
    palette = np.array(POINT_COLORS, np.float32)
    color[ball] = palette[which[b] % len(palette)]

    body = item >= len(triangles) + len(centers)
    b = item[body] - len(triangles) - len(centers)
    offset = np.column_stack([column[body], row[body], buffer.depth[pixel[body]]]) - bodies.centers[b]
    back = np.linalg.inv(bodies.matrix) if len(bodies.matrix) else bodies.matrix
    unit = np.einsum("nij,nj->ni", back[b], offset)
    # The gradient of |A⁻¹ x|², up again.
    normal[body] = np.einsum("nji,nj->ni", back[b], unit) * [1.0, -1.0, 1.0]
    tip = np.where(unit[:, :1] > TIP, TIP_LIGHT, 0.0)
    color[body] = (1.0 - tip) * palette[bodies.which[b] % len(palette)] + tip

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


def _frame(image, window, surfaces, spheres, label="", colormap="viridis", title=None, unit="nm"):
    """A figure of exactly the pixels of the image, with scale bar, legend, colour bar and title; and the artist that
    holds the image."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    height, width = image.shape[:2]
    dpi = 200.0
    figure = Figure(figsize=(width / dpi, height / dpi), dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    scale = window.scale((width, height), _bar(surfaces))
    extent = (0.0, scale * width, 0.0, scale * height)
    shown = axes.imshow(image, extent=extent, interpolation="none")
    axes.set_axis_off()
    ink, text = "#333333", 8.0 * min(width, 4 * height // 3) / 1600.0

    length = _round_length(0.18 * extent[1])
    left, bottom = 0.05 * extent[1], 0.055 * extent[3]
    axes.plot([left, left + length], [bottom, bottom], color=ink, lw=0.35 * text, solid_capstyle="butt")
    axes.text(
        left + 0.5 * length, bottom + 0.015 * extent[3], _length_text(length, unit), color=ink, ha="center",
        va="bottom", fontsize=1.15 * text,
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
    return figure, shown


def _round_length(wanted: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not above."""
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(f for f in (1.0, 2.0, 5.0) if f * power <= wanted * (1.0 + 1e-9)) * power)


def _length_text(length: float, unit: str = "nm") -> str:
    if unit == "nm" and length >= 1e3:
        length, unit = length / 1e3, "µm"
    return f"{length:g} {unit}".rstrip()
