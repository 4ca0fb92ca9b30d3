"""Interactive scenes of what `draw` draws, as files for browsers and other programs, by PyVista."""

import html
import io
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from medyanpy._tools.extras import needed
from medyanpy._tools.names import Named, plainly_called
from medyanpy._tools.outputs import write_atomically
from medyanpy._tools.progress import in_notebook
from medyanpy._tools.validation import number, whole_number
from medyanpy.errors import ParameterError
from medyanpy.mesh import TriangleMesh
from medyanpy.reporters._base import new_file
from medyanpy.visualize import renderer
from medyanpy.visualize.arguments import checked_looks
from medyanpy.visualize.renderer import bar_share, colors_of
from medyanpy.visualize.scene import Sheet, Solids, give_colors, give_values, label_of, objects_of, scene_of

__all__ = ["View", "export_gltf", "export_html", "show"]

_EXTRA = "notebooks"
_SIZE = (1600, 1200)  #: The size of the picture for which default thicknesses are.
# All spheres of a kind together have no more vertices than this, nor have tubes with many sides.
_MOST_VERTICES = 200_000
_SIDES, _FEW_SIDES = 12, 6
# There is one light, from where one looks.
_LIGHT = {"ambient": 0.25, "diffuse": 0.85, "specular": 0.15, "specular_power": 20.0}


class Piece(NamedTuple):
    """Triangles (F, 3) of one object, by vertices (n, 3) with normals, and colours (n, 3) or (3,), 0 to 1."""

    name: str
    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray
    colors: np.ndarray
    opacity: float = 1.0


class Scene3D(NamedTuple):
    """All pieces, the point of view, and the legend."""

    pieces: list[Piece]
    camera: np.ndarray
    middle: np.ndarray
    #: Of names, by colour, and of a colour bar: the title, the limits and the map.
    legend: list[tuple[str, np.ndarray]]
    bar: tuple[str, tuple[float, float], str] | None
    title: str


class View(Named):
    """A scene in a page of HTML that needs nothing else; notebooks show it, and it can be turned there.

    Attributes
    ----------
    html : str
        The page.
    """

    def __init__(self, page: str, height: int = 600) -> None:
        self.html = page
        self._height = height

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:{self._height}px;border:0" '
            'title="a scene that turns"></iframe>'
        )

    def __repr__(self) -> str:
        return f"View({len(self.html) / 1e6:.1f} MB of HTML)"

    def open(self) -> Path:
        """Write the page to a temporary file, open it in a browser, and return its path."""
        # Imported here: it starts other programs, which `import medyanpy` must not.
        import tempfile
        import webbrowser

        path = Path(tempfile.mkdtemp(prefix="medyanpy-")) / "scene.html"
        path.write_text(self.html, encoding="utf-8")
        webbrowser.open(path.as_uri())
        return path


@plainly_called
def show(
    what: Any, *, values: Any = None, label: str = "", colormap: str = "viridis", point_radius: float | None = None,
    opacity: float = 1.0, colors: Mapping[str, Any] | None = None, semi_axes: Mapping[str, Any] | None = None,
    spheres: Mapping[str, Any] | None = None, view: tuple[float, float] | None = None, unit: str = "nm",
    title: str | None = None, height: int = 600,
) -> View:
    """Show what `draw` draws from all sides: in a notebook below the cell, else in a browser.

    Needs PyVista: ``pip install 'medyanpy[notebooks]'``.

    Parameters
    ----------
    what, values, label, colormap, point_radius, opacity, colors, semi_axes, spheres, view, unit, title
        As of `draw`; thicknesses are those that it takes for a picture 1600 pixels wide.
    height : int, pixels, at least 100
        Of the frame in a notebook.

    Returns
    -------
    View
        Which a notebook shows where it is the last line of a cell. Elsewhere it has been opened in a browser;
        ``view.html`` is the page.

    Raises
    ------
    ParameterError
        An object that cannot be drawn, and as `draw`.
    ImportError
        PyVista, or what it writes HTML with, is not installed.
    """
    height = whole_number("show: height", height, at_least=100, at_most=20_000)
    scene = _scene(what, values, label, colormap, point_radius, opacity, semi_axes, spheres, view, unit, title, colors)
    made = View(_page(scene), height)
    if not in_notebook():
        made.open()
    return made


@plainly_called
def export_html(
    what: Any, path: Any, *, values: Any = None, label: str = "", colormap: str = "viridis",
    point_radius: float | None = None, opacity: float = 1.0, colors: Mapping[str, Any] | None = None,
    semi_axes: Mapping[str, Any] | None = None, spheres: Mapping[str, Any] | None = None,
    view: tuple[float, float] | None = None, unit: str = "nm", title: str | None = None, overwrite: bool = False,
) -> None:
    """Write what `draw` draws as a page that turns in any browser, with all that it needs inside.

    The page loads nothing from elsewhere. Needs PyVista: ``pip install 'medyanpy[notebooks]'``.

    Parameters
    ----------
    what, values, label, colormap, point_radius, opacity, colors, semi_axes, spheres, view, unit, title
        As of `show`.
    path : path
        ``.html``
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ParameterError, ImportError, OutputError
        Another ending, a file that exists, and as `show`; the file cannot be written.
    """
    path = _checked_path("export_html", path, ".html", overwrite)
    scene = _scene(what, values, label, colormap, point_radius, opacity, semi_axes, spheres, view, unit, title, colors)
    content = _page(scene).encode()
    write_atomically("export_html", path, lambda file: file.write(content))


@plainly_called
def export_gltf(
    what: Any, path: Any, *, values: Any = None, colormap: str = "viridis", point_radius: float | None = None,
    opacity: float = 1.0, colors: Mapping[str, Any] | None = None, semi_axes: Mapping[str, Any] | None = None,
    spheres: Mapping[str, Any] | None = None, overwrite: bool = False,
) -> None:
    """Write what `draw` draws as glTF, for Blender, slides, viewers and headsets: triangles with their colours.

    Needs PyVista: ``pip install 'medyanpy[notebooks]'``. A unit of the file is 1 nm, and its y axis is the z axis here,
    as the format has it. There is no legend.

    Parameters
    ----------
    what, values, colormap, point_radius, opacity, colors, semi_axes, spheres
        As of `show`, and so are errors.
    path : path
        ``.gltf``; the one file holds all.
    overwrite : bool
        Replace an existing file.
    """
    import tempfile

    path = _checked_path("export_gltf", path, ".gltf", overwrite)
    scene = _scene(what, values, "", colormap, point_radius, opacity, semi_axes, spheres, None, "nm", None, colors)
    with _plotter(scene) as plotter, tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "scene.gltf"
        plotter.export_gltf(str(made))
        written = json.loads(made.read_bytes())
    # Add what VTK leaves out: names, transparency, and both sides of open surfaces.
    for piece, mesh in zip(scene.pieces, written["meshes"], strict=True):
        mesh["name"] = piece.name
        material = written["materials"][mesh["primitives"][0]["material"]]
        material["doubleSided"] = True
        if piece.opacity < 1.0:
            material["alphaMode"] = "BLEND"
    content = json.dumps(written).encode()
    write_atomically("export_gltf", path, lambda file: file.write(content))


def _checked_path(what: str, path: Any, ending: str, overwrite: bool) -> Path:
    checked = new_file(what, path, overwrite=overwrite)
    if checked.suffix.lower() != ending:
        raise ParameterError(f"{what}: the path must end in {ending}, not {checked.suffix!r}")
    return checked


def _scene(
    what: Any, values: Any, label: str, colormap: str, point_radius: float | None, opacity: float, semi_axes: Any,
    spheres: Any, view: Any, unit: str, title: str | None, colors: Any = None,
) -> Scene3D:
    if point_radius is not None:
        point_radius = number("show: point_radius", point_radius, above=0.0)
    with needed("a scene that turns", "PyVista", _EXTRA):
        import pyvista  # noqa: F401
    opacity, bodies, painted = checked_looks("show", opacity, semi_axes, spheres, colors)
    surfaces, solids = objects_of(scene_of(what, *bodies))
    give_values([s for s in surfaces if s.is_membrane], values)
    give_colors(surfaces, solids, painted)
    window = renderer.window_of("show", surfaces, solids, view, point_radius).somewhere()
    if point_radius is None:
        point_radius = renderer.default_radius(surfaces, solids, window.scale(_SIZE, bar_share(surfaces)), _SIZE)
    limits = renderer.limits_of(surfaces)
    pieces = [_piece_of_sheet(s, limits, colormap, opacity if s.is_membrane else 1.0) for s in surfaces]
    for s, color in zip(solids, renderer.palette_of(solids), strict=True):
        pieces += _pieces_of_solids(s, point_radius, color)
    label = label_of(values, label, unit)
    legend = renderer.legend_of(surfaces, solids, label, colormap)
    bar = (label, limits, colormap) if bar_share(surfaces) else None
    middle = 0.5 * (window.low + window.high) @ window.camera
    return Scene3D([p for p in pieces if len(p.faces)], window.camera, middle, legend, bar, title or "")


def _piece_of_sheet(s: Sheet, limits: tuple[float, float], colormap: str, opacity: float) -> Piece:
    normals = s.smooth_normals()
    if s.values is None:
        return Piece(s.name, s.vertices, normals, s.faces, np.array(s.color), opacity)
    own, faces, of_vertices = np.arange(len(s.vertices)), s.faces, np.full(len(s.vertices), np.nan)
    of_vertices[s.faces] = s.values
    if not np.array_equal(of_vertices[s.faces], s.values, equal_nan=True):
        # One for each face: these share no corners then.
        own, of_vertices = s.faces.ravel(), s.values.ravel()
        faces = np.arange(len(own)).reshape(-1, 3)
    colors = colors_of(of_vertices, limits, colormap, s.color)
    return Piece(s.name, s.vertices[own], normals[own], faces, colors, opacity)


def _pieces_of_solids(s: Solids, default: float, color: np.ndarray) -> Iterator[Piece]:
    centers, radii = s.centers, renderer.radii_of(s, default)
    if s.instead is not None:
        centers, radii = s.instead
    elif s.half_axes is not None:
        yield _ellipsoids(s.name, centers, s.half_axes, color)
        return
    elif s.links is not None:
        yield _tubes(s.name, centers, radii, s.links, color)
        # Round ends, and no gaps where links meet at an angle.
        ends = np.unique(s.links)
        centers, radii = centers[ends], radii[ends]
    elif s.normals is not None and not s.two_sided:
        # On a closed surface rather than in it, as in pictures; on an open one they are seen from both sides.
        centers = centers + 0.5 * radii[:, None] * s.normals
    yield _ellipsoids(s.name, centers, radii[:, None, None] * np.eye(3), color)


def _ellipsoids(name: str, centers: np.ndarray, half_axes: np.ndarray, color: np.ndarray) -> Piece:
    """Make ellipsoids with half axes (n, 3, 3) as columns, lighter where the first axis points unless they are
    spheres."""
    n = len(centers)
    unit = next((mesh for mesh in map(_sphere, (3, 2, 1)) if n * len(mesh.vertices) <= _MOST_VERTICES), _sphere(0))
    u, m = unit.vertices, len(unit.vertices)
    x = centers[:, None] + np.einsum("nij,mj->nmi", half_axes, u)
    # Normals are those of the sphere, by the inverse transposed.
    inverse = np.linalg.inv(half_axes) if n else half_axes
    normals = np.einsum("nji,mj->nmi", inverse, u).reshape(-1, 3)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    faces = (unit.faces[None] + m * np.arange(n)[:, None, None]).reshape(-1, 3)
    lengths = np.linalg.norm(half_axes, axis=1)
    if n and not np.allclose(lengths, lengths[:, :1]):
        light = np.where(u[:, :1] > renderer.TIP, renderer.TIP_LIGHT, 0.0)
        color = np.tile((1.0 - light) * color + light, (n, 1))
    return Piece(name, x.reshape(-1, 3), normals, faces, color)


@cache
def _sphere(subdivisions: int) -> TriangleMesh:
    """Return a mesh of a sphere of radius 1."""
    return TriangleMesh.icosphere(1.0, subdivisions)


def _tubes(name: str, x: np.ndarray, radii: np.ndarray, links: np.ndarray, color: np.ndarray) -> Piece:
    """Make a tube for each link, as thick as its ends."""
    sides = _SIDES if 2 * _SIDES * len(links) <= _MOST_VERTICES else _FEW_SIDES
    a, b = links.T
    along = x[b] - x[a]
    length = np.linalg.norm(along, axis=1)
    a, b, along = a[length > 0.0], b[length > 0.0], along[length > 0.0]
    n = len(along)
    along /= np.linalg.norm(along, axis=1)[:, None]
    # Across: from the axis that it is the least along.
    axis = np.eye(3)[np.argmin(np.abs(along), axis=1)] if n else along
    one = np.cross(along, axis)
    one /= np.linalg.norm(one, axis=1)[:, None]
    other = np.cross(along, one)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    around = np.cos(angle)[None, :, None] * one[:, None] + np.sin(angle)[None, :, None] * other[:, None]
    ends = [x[end][:, None] + radii[end][:, None, None] * around for end in (a, b)]
    k = np.arange(sides)
    after = (k + 1) % sides
    quads = np.concatenate([np.stack([k, after, sides + after], 1), np.stack([k, sides + after, sides + k], 1)])
    faces = (quads[None] + 2 * sides * np.arange(n)[:, None, None]).reshape(-1, 3)
    vertices = np.stack(ends, axis=1).reshape(-1, 3)
    return Piece(name, vertices, np.stack([around, around], axis=1).reshape(-1, 3), faces, color)


@contextmanager
def _plotter(scene: Scene3D) -> Iterator[Any]:
    """Yield PyVista's plotter, with all pieces in it, and no window."""
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    # Without a display VTK finds another way, and warns for every plotter.
    before = vtkLogger.GetCurrentVerbosityCutoff()
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
    try:
        plotter = pyvista.Plotter(off_screen=True)
        try:
            _fill(plotter, scene)
            yield plotter
        finally:
            plotter.close()
    finally:
        vtkLogger.SetStderrVerbosity(before)


def _fill(plotter: Any, scene: Scene3D) -> None:
    import pyvista

    plotter.background_color = "white"
    for piece in scene.pieces:
        vertices: Any = piece.vertices.astype(np.float32)
        triangles = pyvista.PolyData.from_regular_faces(vertices, piece.faces)
        triangles.point_data["Normals"] = piece.normals.astype(np.float32)
        triangles.GetPointData().SetActiveNormals("Normals")
        more: dict[str, Any] = {"color": piece.colors}
        if piece.colors.ndim == 2:
            triangles.point_data["colors"] = np.round(255.0 * piece.colors).astype(np.uint8)
            more = {"scalars": "colors", "rgb": True}
        more |= _LIGHT | {"opacity": piece.opacity, "show_scalar_bar": False}
        # By the given normals, which smooth_shading=True might compute again.
        plotter.add_mesh(triangles, smooth_shading=False, **more).prop.interpolation = "Phong"
    _, up, toward = scene.camera
    plotter.camera_position = [scene.middle + toward, scene.middle, up]
    plotter.reset_camera()


def _page(scene: Scene3D) -> str:
    """Return HTML of all pieces and the viewer, with the legend over it."""
    with needed("a page of HTML", "trame, with which PyVista writes it", _EXTRA):
        import trame_vtk  # noqa: F401
    with _plotter(scene) as plotter, warnings.catch_warnings():
        # Warnings of trame while it is imported are not for users.
        warnings.simplefilter("ignore")
        written = _written(plotter)
    # The viewer would ask the site of its makers for icons.
    alone = (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src \'unsafe-inline\' '
        "'unsafe-eval' blob: data:; style-src 'unsafe-inline'; img-src data: blob:; connect-src data: blob:; "
        'worker-src blob: data:">'
    )
    title = html.escape(scene.title or "medyanpy")
    written = written.replace("<head>", f"<head>{alone}", 1)
    written = re.sub(r"<title>.*?</title>", lambda _: f"<title>{title}</title>", written, count=1, flags=re.DOTALL)
    before, _, after = written.rpartition("</body>")
    return f"{before}{_overlay(scene)}</body>{after}"


def _written(plotter: Any) -> str:
    """Return HTML of the viewer with the scene in it, without the server that PyVista's own method starts."""
    import zipfile

    from trame_vtk.modules.vtk import serializers
    from trame_vtk.tools.vtksz2html import write_html

    window = plotter.render_window
    serializers.initialize_serializers()
    context = serializers.SynchronizationContext()
    context.set_ignore_last_dependencies(True)
    made = serializers.serialize(None, window, serializers.reference_id(window), context, 1)
    camera = plotter.renderer.GetActiveCamera()
    made["extra"] = {
        "vtkRefId": serializers.reference_id(window),
        "centerOfRotation": camera.GetFocalPoint(),
        "camera": serializers.reference_id(camera),
    }
    hashes = {
        entry["hash"]: {**entry, "content": context.get_cached_data_array(entry["hash"], False)}
        for entry in serializers.extract_array_hash(made)
    }
    zipped, page = io.BytesIO(), io.StringIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.json", json.dumps({"hashes": hashes, "scene": made}))
    write_html(zipped.getvalue(), page)
    return page.getvalue()


def _css(color: Any) -> str:
    return "#" + "".join(f"{round(255 * float(c)):02x}" for c in color)


def _overlay(scene: Scene3D) -> str:
    """Return title, legend and colour bar as HTML, as `draw` has them."""
    place = "position:fixed;z-index:9;pointer-events:none;font:13px sans-serif;color:#333;"
    # The viewer empties the element it is in.
    parts = ['<div class="content" style="position:absolute;top:0;left:0;width:100%;height:100%"></div>']
    if scene.title:
        parts.append(f'<div style="{place}top:1em;width:100%;text-align:center">{html.escape(scene.title)}</div>')
    if scene.legend:
        lines = "".join(
            f'<div><span style="color:{_css(color)}">&#9679;</span> {html.escape(name)}</div>'
            for name, color in scene.legend
        )
        parts.append(f'<div style="{place}right:1.5em;bottom:1em">{lines}</div>')
    if scene.bar is not None:
        label, (low, high), colormap = scene.bar
        shares = np.linspace(0.0, 1.0, 17)
        colors = colors_of(low + shares * (high - low), (low, high), colormap, (0.0, 0.0, 0.0))
        gradient = ",".join(map(_css, colors))
        parts.append(
            f'<div style="{place}right:1.5em;top:30%;display:flex;gap:0.5em;align-items:stretch;height:12em">'
            f'<div style="width:0.9em;background:linear-gradient(to top,{gradient})"></div>'
            f'<div style="display:flex;flex-direction:column;justify-content:space-between"><span>{high:.3g}</span>'
            f"<span>{html.escape(label)}</span><span>{low:.3g}</span></div></div>"
        )
    return "".join(parts)
