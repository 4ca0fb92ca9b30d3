"""Figures and movies: what users call, the frame round an image, and what they may give."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import array, number, whole_number
from medyanpy.errors import ParameterError
from medyanpy.files.trajectory import Trajectory
from medyanpy.reporters._base import new_file
from medyanpy.surfaces import Surface
from medyanpy.visualize.renderer import POINT_COLORS, backdrop_of, bar_share, limits_of, render, window_of
from medyanpy.visualize.scene import Scene, give_values, objects_of, regions_of, scene_of


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
    scene = scene_of(what, _checked_axes("draw", semi_axes))
    past = None
    if trails is not None and len(trails):
        # nan, where nobody was.
        past = array("draw: trails", trails, (None, len(scene.positions), 3), nan=True)
    surfaces, spheres = objects_of(scene, past)
    give_values([s for s in surfaces if s.is_membrane], values)
    window = window_of("draw", surfaces, spheres, view, point_radius)
    image = render(surfaces, spheres, window, size, point_radius, colormap, inside)
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
        ``trajectory[::10]`` takes every tenth frame; a generator may take steps and give the same simulation again and
        again. Meshes must have the same number of vertices; beads may come and go.
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
        def scenes() -> Iterator[Scene]:
            return (scene_of(frame, given) for frame in frames)
    else:
        if not isinstance(frames, Iterable):
            raise ParameterError(f"movie: frames must be a Trajectory or an iterable, not {type(frames).__name__}")
        scenes = [scene_of(frame, given) for frame in frames].__iter__
    first = next(scenes(), None)
    if first is None:
        raise ParameterError("movie: there are no frames")
    boxes: dict[Surface, np.ndarray] = {}
    numbers: dict[tuple[bool, str], set[int]] = {}
    for k, scene in enumerate(scenes()):
        if scene.positions.shape != first.positions.shape and scene.ids is None:
            raise ParameterError(
                f"movie: frame {k} has {len(scene.positions)} beads, the first has {len(first.positions)}"
            )
        for key, n in scene.numbers().items():
            numbers.setdefault(key, set()).add(n)
        for surface, box in regions_of(scene).items():
            low, high = boxes.get(surface, box)
            boxes[surface] = np.array([np.minimum(low, box[0]), np.maximum(high, box[1])])
    constant = {key: len(found) == 1 for key, found in numbers.items()}
    surfaces, spheres = objects_of(first, boxes=boxes, constant=constant)
    window = window_of("movie", surfaces, spheres, view, point_radius)
    for scene in scenes():
        for part in scene.parts:
            radius = part.radius if part.semi_axes is None else part.semi_axes
            if radius is None and part.faces is None:
                radius = point_radius
            window = window.around(scene.positions[part.beads], radius)

    # What does not move is drawn once.
    backdrop = None
    if not any(s.is_membrane for s in surfaces):
        backdrop = backdrop_of(surfaces, window, size, "viridis", inside)

    def images() -> Iterator[np.ndarray]:
        past: deque[Scene] = deque(maxlen=trail)
        for scene in scenes():
            now = objects_of(scene, scene.past(list(past)), boxes, constant)
            yield render(*now, window, size, point_radius, "viridis", inside, backdrop)
            past.append(scene)

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
    scale = window.scale((width, height), bar_share(surfaces))
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
               label=s.name if s.links is not None or not s.is_constant
               else f"{len(s.centers):,} {s.name}".replace(",", "\u2009"))
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
            ScalarMappable(Normalize(*limits_of(surfaces)), colormap), cax=figure.add_axes((0.88, 0.3, 0.015, 0.4))
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
