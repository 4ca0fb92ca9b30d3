"""Functions that draw pictures, and the frame round an image."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import array
from medyanpy.reporters._base import new_file
from medyanpy.visualize.arguments import checked_looks, checked_size
from medyanpy.visualize.renderer import Window, bar_share, legend_of, limits_of, render, window_of
from medyanpy.visualize.scene import Sheet, Solids, give_colors, give_values, label_of, objects_of, scene_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


@plainly_called
def draw(
    what: Any, path: Any = None, *, values: Any = None, label: str = "", colormap: str = "viridis",
    point_radius: float | None = None, inside: bool = False, trails: Any = None, opacity: float = 1.0,
    colors: Mapping[str, Any] | None = None, edges: bool = False, semi_axes: Mapping[str, Any] | None = None,
    spheres: Mapping[str, Any] | None = None, view: tuple[float, float] | None = None,
    size: tuple[int, int] = (1600, 1200), unit: str = "nm", title: str | None = None, overwrite: bool = False,
) -> Any:
    """Draw a simulation, frame, mesh or surface as a picture with a scale bar.

    Membranes are shaded; filaments and elastic rods are tubes, rigid bodies ellipsoids, other beads small spheres,
    links and bonds thin tubes. Links are drawn from site to site, in a colour for each jump or force that has some.
    Pairs of beads of other forces (`HarmonicBonds` and `CustomBonds`) are called bonds.

    A periodic box is drawn as thin lines, in open directions as far as beads reach. Beads and bodies are drawn by their
    images in it, filaments, rods and membranes as wholes with their centre in it; a membrane that closes through sides
    of the box is cut there. Links go from their first end to the nearest image of the other.

    Parameters
    ----------
    what : Simulation, Context, Frame of a Trajectory, TriangleMesh, or Surface
        Drawn as it is now. The implicit surfaces that points are held to are drawn too if scikit-image is installed;
        where they have no bounds, the part around the points.
    path : path, optional
        Write the picture there; the ending names the format (``.png``).
    values : (V,) or (F,) float, "mean_curvature" or "gaussian_curvature", optional
        A number for each vertex or face of the membrane (of all of them, one after the other), shown as colour, or the
        present `TriangleMesh.mean_curvatures` or `TriangleMesh.gaussian_curvatures`. Where it is nan, as on borders,
        the colour is that of membranes. Two different numbers are two colours in the legend, without a colour bar.
    label : str
        Of the colour bar; of curvatures there is one by default.
    colormap : str
        One of Matplotlib's.
    point_radius : float, nm, > 0, optional
        Of the spheres and, half as thick, of filaments; where none is given, by the distances between them. Elastic
        rods are as thick as a round section of their mass and inertia.
    inside : bool
        Leave out the side of closed membranes that is turned to the viewer, and beads in it.
    opacity : float, 0 to 1
        Of membranes: objects behind them are seen through those below 1.
    colors : dict of str to colour, optional
        One of Matplotlib's, by the name of a handle, or of a jump or force that has links; ``"bonds"`` and ``"box"``
        are names too. Beads with species are named by these, ``"A"``, or ``"A of proteins"`` where something else is
        called so, and all of them by their handle. Others keep theirs, of which there are twelve.
    edges : bool
        Draw the edges of triangles.
    trails : (T, n, 3) float or sequence of (n, 3), nm, optional
        Where all beads were, the oldest first, such as a list of ``state.positions``: beads drawn as spheres have a
        tube behind them that gets thinner towards the past; in a box by nearest images.
    semi_axes : dict of str to (3,) or (n, 3) float, nm, > 0, optional
        Of rigid bodies, by the name of their handle. Others are drawn as the solid ellipsoid of their mass and inertia,
        though none thinner than a twentieth of its length. The end of the first axis is lighter.
    spheres : dict of str to (centers, radii) or list of these, optional
        Of rigid bodies, by the name of their handle: the spheres of their bead model, (k, 3) and () or (k,) float, nm,
        in the frame of the body, drawn instead of an ellipsoid. Several follow each other again and again, as
        `RigidMolecule.spheres` gives them.
    view : (elevation, azimuth), degrees, optional
        From where to look, the z axis being up. By default from 35 degrees above the plane in which the mesh is
        widest, and in a periodic box from beside and above one of its corners.
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
        Something that cannot be drawn, values or trails of a wrong shape, a name in `colors` that nothing has, a colour
        that is not one, or a file that exists.
    ImportError
        A Surface itself is to be drawn, and scikit-image is not installed.
    """
    size, point_radius = checked_size("draw", size, point_radius)
    if path is not None:
        path = new_file("draw", path, overwrite=overwrite)
    opacity, bodies, painted = checked_looks("draw", opacity, semi_axes, spheres, colors)
    scene = scene_of(what, *bodies)
    past = None
    if trails is not None and len(trails):
        # nan in rows without a bead.
        past = scene.led_here(array("draw: trails", trails, (None, len(scene.positions), 3), nan=True))
    surfaces, solids = objects_of(scene, past)
    give_values([s for s in surfaces if s.is_membrane], values)
    give_colors(surfaces, solids, painted)
    window = window_of("draw", surfaces, solids, view, point_radius).somewhere()
    image = render(surfaces, solids, window, size, point_radius, colormap, inside, opacity=opacity, edges=edges)
    figure, _ = framed(image, window, surfaces, solids, label_of(values, label, unit), colormap, title, unit)
    if path is not None:
        figure.savefig(path, dpi=figure.dpi)
    return figure


def framed(
    image: np.ndarray, window: Window, surfaces: list[Sheet], spheres: list[Solids], label: str = "",
    colormap: str = "viridis", title: str | None = None, unit: str = "nm",
) -> "tuple[Figure, AxesImage]":
    """Return a figure of exactly the pixels of the image, with scale bar, legend, colour bar and title, and the artist
    that holds the image."""
    from matplotlib.lines import Line2D

    from medyanpy.visualize.pictures import Picture

    height, width = image.shape[:2]
    dpi = 200.0
    figure = Picture(figsize=(width / dpi, height / dpi), dpi=dpi, facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    scale = window.scale((width, height), bar_share(surfaces))
    extent = (0.0, scale * width, 0.0, scale * height)
    shown = axes.imshow(image, extent=extent, interpolation="none")
    axes.set_axis_off()
    ink = "#333333"
    entries = legend_of(surfaces, spheres, label, colormap)
    text = _letters(width, height, len(entries)) * 72.0 / dpi

    length = _round_length(0.18 * extent[1])
    left, bottom = 0.05 * extent[1], 0.055 * extent[3]
    axes.plot([left, left + length], [bottom, bottom], color=ink, lw=0.35 * text, solid_capstyle="butt")
    said = _length_text(length, unit)
    # In small pictures it may be wider than its bar.
    half = 0.36 * len(said) * text * dpi / 72.0 * scale
    axes.text(
        max(left + 0.5 * length, half + 0.01 * extent[1]), bottom + 0.015 * extent[3], said, color=ink, ha="center",
        va="bottom", fontsize=1.15 * text,
    )
    marks = [
        Line2D([], [], ls="", marker="o", ms=0.75 * text, mfc=color, mec="none", label=name) for name, color in entries
    ]
    if marks:
        axes.legend(
            handles=marks, loc="lower right", bbox_to_anchor=(0.96, 0.035), frameon=False, fontsize=1.15 * text,
            labelcolor=ink, handletextpad=0.2, borderaxespad=0.0,
        )
    if bar_share(surfaces):
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        # Room for numbers on the right and, where letters are small, for a label beyond them.
        letter = text * dpi / 72.0 / width
        place = min(0.88, 1.0 - 6.0 * letter)
        bar = figure.colorbar(
            ScalarMappable(Normalize(*limits_of(surfaces)), colormap), cax=figure.add_axes((place, 0.3, 0.015, 0.4))
        )
        bar.set_label(label, fontsize=1.1 * text, color=ink)
        if 8.5 * letter > 0.12:
            bar.ax.yaxis.label.set(rotation=0, ha="right", va="bottom")  # There is no room: it stands above the bar.
            bar.ax.yaxis.set_label_coords(0.98, 0.73, transform=figure.transFigure)
        bar.ax.tick_params(labelsize=text, colors=ink, width=0.05 * text, length=0.3 * text)
        bar.outline.set_visible(False)
    if title is not None:
        axes.text(0.5 * extent[1], 0.965 * extent[3], title, color=ink, ha="center", va="top", fontsize=1.4 * text)
    return figure, shown


def _letters(width: int, height: int, n_entries: int) -> float:
    """Return the height of letters in pixels: a seventieth of the width of a picture of 4:3, but large enough to be
    read in a small one, as far as there is room for the legend."""
    wide = min(width, 4.0 * height / 3.0)
    return float(max(wide / 72.0, min(11.0, wide / 24.0, 0.6 * height / (1.6 * max(n_entries, 1)))))


def _round_length(wanted: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above a length."""
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(max(f for f in (1.0, 2.0, 5.0) if f * power <= wanted * (1.0 + 1e-9)) * power)


def _length_text(length: float, unit: str = "nm") -> str:
    if unit == "nm" and length >= 1e3:
        length, unit = length / 1e3, "µm"
    return f"{length:g} {unit}".rstrip()
