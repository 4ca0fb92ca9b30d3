"""Movies: pictures from the same place, one after another."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.progress import Bar
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError
from medyanpy.files.trajectory import Trajectory
from medyanpy.reporters._base import new_file
from medyanpy.surfaces import Surface
from medyanpy.visualize.arguments import checked_looks, checked_size
from medyanpy.visualize.figures import framed
from medyanpy.visualize.renderer import backdrop_of, render, window_of
from medyanpy.visualize.scene import Scene, give_colors, objects_of, regions_of, scene_of


@plainly_called
def movie(
    frames: Any, path: Any, *, trail: int = 0, every: int = 1, fps: int = 25, point_radius: float | None = None,
    inside: bool = False, opacity: float = 1.0, colors: Mapping[str, Any] | None = None, edges: bool = False,
    semi_axes: Mapping[str, Any] | None = None, spheres: Mapping[str, Any] | None = None,
    view: tuple[float, float] | None = None, size: tuple[int, int] = (640, 480), unit: str = "nm",
    title: str | None = None, overwrite: bool = False, progress: bool | None = None,
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
    every : int, >= 1
        Draw the first frame and each so many later; those between are places of trails only, which then follow paths
        that are curved.
    fps : int, 1 to 60
        Frames per second. Viewers show GIFs at no more than 50.
    point_radius, inside, opacity, colors, edges, semi_axes, spheres, view, size, unit, title, overwrite
        As of `draw`; the view by default that of the first frame.
    progress : bool, optional
        Show a progress bar, which counts frames; where not given, in notebooks, and if standard error is a terminal.

    Raises
    ------
    ParameterError
        No frames, frames of different beads, another ending of the path, ``.mp4`` without ffmpeg, a file that exists,
        or what `draw` refuses.
    """
    size, point_radius = checked_size("movie", size, point_radius)
    trail = whole_number("movie: trail", trail)
    every = whole_number("movie: every", every, at_least=1)
    fps = whole_number("movie: fps", fps, at_least=1, at_most=60)
    opacity, given, painted = checked_looks("movie", opacity, semi_axes, spheres, colors)
    path = new_file("movie", path, overwrite=overwrite)
    writer = _writer(path, fps)
    if isinstance(frames, Trajectory):
        # Read again whenever needed: it may be larger than the memory.
        def scenes() -> Iterator[Scene]:
            return (scene_of(frame, *given) for frame in frames)
    else:
        if not isinstance(frames, Iterable):
            raise ParameterError(f"movie: frames must be a Trajectory or an iterable, not {type(frames).__name__}")
        scenes = [scene_of(frame, *given) for frame in frames].__iter__
    first = next(scenes(), None)
    if first is None:
        raise ParameterError("movie: there are no frames")
    boxes: dict[Surface, np.ndarray] = {}
    numbers: dict[tuple[bool, str], set[int]] = {}
    for k, scene in enumerate(scenes()):
        if scene.positions.shape != first.positions.shape and scene.ids is None:
            has, had = len(scene.positions), len(first.positions)
            raise ParameterError(f"movie: frame {k} has {has} beads, the first has {had}")
        for key, n in scene.numbers().items():
            numbers.setdefault(key, set()).add(n)
        for surface, box in regions_of(scene).items():
            low, high = boxes.get(surface, box)
            boxes[surface] = np.array([np.minimum(low, box[0]), np.maximum(high, box[1])])
    constant = {key: len(found) == 1 for key, found in numbers.items()}
    surfaces, solids = objects_of(first, boxes=boxes, constant=constant)
    give_colors(surfaces, solids, painted)
    window = window_of("movie", surfaces, solids, view, point_radius)
    for scene in scenes():
        for part in scene.parts:
            radius = part.reach
            if radius is None and part.faces is None:
                radius = point_radius
            x = scene.positions[part.beads] if part.faces is None else scene.sheet(part).vertices
            window = window.around(x, radius)
        if scene.box is not None:
            # Joined beads may reach out of it.
            window = window.around(np.concatenate([scene.corners, *(e.reshape(-1, 3) for e in scene.links.values())]))
    window = window.somewhere()

    backdrop = None  # Objects that do not move are drawn once.
    if not any(s.is_membrane for s in surfaces):
        backdrop = backdrop_of(surfaces, window, size, "viridis", inside)

    def images() -> Iterator[np.ndarray]:
        past: deque[Scene] = deque(maxlen=trail)
        for number, scene in enumerate(scenes()):
            if number % every == 0:
                now = objects_of(scene, scene.past(list(past)), boxes, constant)
                give_colors(*now, painted)
                yield render(
                    *now, window, size, point_radius, "viridis", inside, backdrop, opacity=opacity, edges=bool(edges)
                )
            past.append(scene)

    image = images()
    figure, shown = framed(next(image), window, surfaces, solids, title=title, unit=unit)
    with Bar(k // every + 1, "frame", progress) as bar, writer.saving(figure, path, figure.dpi):
        writer.grab_frame()
        bar.update()
        for pixels in image:
            shown.set_data(pixels)
            writer.grab_frame()
            bar.update()


def _writer(path: Path, fps: int) -> Any:
    """Return Matplotlib's writer for the ending of a path."""
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
