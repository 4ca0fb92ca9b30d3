"""Remeshing with uniform triangles; the surface stays, within a stated distance."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medyanpy._kernels.core.remeshing import Remesher, nearest
from medyanpy.errors import MeshError, MeshQualityWarning, ParameterError, warn_outside
from medyanpy.mesh import geometry

if TYPE_CHECKING:
    from medyanpy.mesh.triangle_mesh import TriangleMesh

_SPACING = 0.25  #: Samples of a surface are this share of the edge length apart.
#: Share of the promised distance that is allowed while changing: then centroids of triangles are checked, and at the
#: end all samples of both surfaces.
_MARGIN = 0.75
_ROUNDS = 8
_MOST_FACES = 5_000_000
_CANDIDATES = 24  #: Candidates for the nearest triangle of a sample.
_LOW = 0.15  #: Below this share of the edge length a height is worth a warning.
#: Taubin's filter: a step that shrinks, and a larger one that swells (G. Taubin, SIGGRAPH 1995).
_SHRINK, _SWELL = 0.5, -0.53
#: pN s²/nm, and pN nm at 300 K: of the vertices for which reports state timesteps.
_MASS, _KT = 4e-12, 4.14


@dataclass(frozen=True)
class MeshFigures:
    """Size and quality of a mesh.

    Attributes
    ----------
    vertices, faces, components, borders, genus : int
    area, volume : float
        nm², and nm³; the volume is nan where the mesh encloses nothing.
    least_quality, median_quality : float
        Of `TriangleMesh.quality`.
    least_edge, median_edge, longest_edge, least_height : float
        nm; the height is the smallest of the three heights of all triangles.
    """

    vertices: int
    faces: int
    components: int
    borders: int
    genus: int
    area: float
    volume: float
    least_quality: float
    median_quality: float
    least_edge: float
    median_edge: float
    longest_edge: float
    least_height: float

    @classmethod
    def of(cls, mesh: "TriangleMesh") -> "MeshFigures":
        """Return the figures of a mesh."""
        heights = geometry.heights(mesh.vertices, mesh.faces, mesh._lengths)
        volume = mesh.volume if mesh.is_closed and not mesh.closes_through_the_box else math.nan
        return cls(
            len(mesh.vertices), len(mesh.faces), len(mesh.components), len(mesh.borders), mesh.genus, mesh.area, volume,
            float(mesh.quality.min()), float(np.median(mesh.quality)), float(mesh.edge_lengths.min()),
            float(np.median(mesh.edge_lengths)), float(mesh.edge_lengths.max()), float(heights.min()),
        )

    def longest_timestep(self, vertex_mass: float = _MASS, kT: float = _KT) -> float:
        """Return the timestep above which heat turns the flattest triangle over, s, for vertices of this mass (pN
        s²/nm) at kT (pN nm): a third of its height over their speed, as `TimestepWarning` has it."""
        return self.least_height / (geometry.NEEDLE_STEPS * math.sqrt(kT / vertex_mass))


@dataclass(frozen=True)
class RemeshReport:
    """Result of `TriangleMesh.remesh`; ``print(report)``.

    Attributes
    ----------
    edge_length, distance : float
        nm; as asked.
    before, after : MeshFigures
    to_old, to_new : float
        nm: largest distance of samples of the new surface from the old one, and back, a quarter of the edge length
        apart; the larger is the Hausdorff distance. With smoothing it contains the noise.
    """

    edge_length: float
    distance: float
    before: MeshFigures
    after: MeshFigures
    to_old: float
    to_new: float

    @property
    def hausdorff(self) -> float:
        """Hausdorff distance of the two surfaces at samples, nm."""
        return max(self.to_old, self.to_new)

    def __str__(self) -> str:
        a, b = self.before, self.after
        rows = [
            ("vertices", f"{a.vertices}", f"{b.vertices}"),
            ("faces", f"{a.faces}", f"{b.faces}"),
            ("components, borders, genus", *(f"{m.components}, {m.borders}, {m.genus}" for m in (a, b))),
            ("area, nm²", f"{a.area:.5g}", f"{b.area:.5g}"),
            ("volume, nm³", *("-" if math.isnan(m.volume) else f"{m.volume:.5g}" for m in (a, b))),
            ("quality, least and median", *(f"{m.least_quality:.2g}, {m.median_quality:.2g}" for m in (a, b))),
            ("edges, nm", *(f"{m.least_edge:.3g} to {m.longest_edge:.3g}" for m in (a, b))),
            ("least height, nm", f"{a.least_height:.2g}", f"{b.least_height:.2g}"),
            ("longest timestep by heat, s", f"{a.longest_timestep():.1g}", f"{b.longest_timestep():.1g}"),
        ]
        widths = [max(len(row[i]) for row in [*rows, ("", "before", "after")]) for i in range(3)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
                 for row in [("", "before", "after"), *rows]]
        return "\n".join([
            f"Mesh with edges of {self.edge_length:g} nm, within {self.distance:g} nm of the surface",
            *lines,
            f"distances of the surfaces: {self.to_old:.3g} nm from the new one to the old, {self.to_new:.3g} nm back",
            f"(timesteps for vertices of {_MASS:g} pN s²/nm at 300 K)",
        ])  # fmt: skip


def remeshed(
    mesh: "TriangleMesh", edge_length: float, distance: float, smoothing: int
) -> "tuple[TriangleMesh, RemeshReport]":
    """Remesh as `TriangleMesh.remesh`, with checked arguments."""
    what = "TriangleMesh.remesh"
    if mesh.box is not None:
        raise ParameterError(f"{what}: a mesh in a box is not remeshed")
    faces = mesh.area / (math.sqrt(3.0) / 4.0 * edge_length**2)
    if faces > _MOST_FACES:
        raise ParameterError(
            f"{what}: edge_length = {edge_length:g} nm makes {faces:.2g} faces of an area of {mesh.area:.4g} nm², but "
            f"{_MOST_FACES} are the most"
        )
    out = _uniform(what, mesh, edge_length, distance)
    if smoothing:
        out = _uniform(what, out.with_vertices(_smoothed(out, smoothing)), edge_length, distance)
    spacing = _SPACING * edge_length
    after = MeshFigures.of(out)
    report = RemeshReport(
        edge_length, distance, MeshFigures.of(mesh), after, largest_distance(out, mesh, spacing),
        largest_distance(mesh, out, spacing),
    )  # fmt: skip
    if after.least_height < _LOW * edge_length:
        i = int(np.argmin(geometry.heights(out.vertices, out.faces)))
        x, y, z = out.vertices[out.faces[i]].mean(axis=0).tolist()
        warn_outside(
            f"{what}: triangle {i} around ({x:.4g}, {y:.4g}, {z:.4g}) keeps a height of {after.least_height:.3g} nm, "
            "for the surface has a detail there that is finer than its edges: a larger distance=, smoothing=, or a "
            "smaller edge_length= would help",
            MeshQualityWarning,
        )
    return out, report


def _uniform(what: str, mesh: "TriangleMesh", edge_length: float, distance: float) -> "TriangleMesh":
    """Return the mesh with uniform triangles; MeshError where it does not keep the promised distance and topology."""
    points, of = samples(mesh, _SPACING * edge_length)
    work = Remesher(mesh.vertices, mesh.faces, mesh.opposite_corners, points, of, _MARGIN * distance)
    work.run(edge_length, _ROUNDS)
    out = type(mesh)(*work.result())
    kept = [(len(m.components), len(m.borders), m.genus) for m in (mesh, out)]
    if kept[0] != kept[1]:
        raise MeshError(f"{what}: (components, borders, genus) became {kept[1]}, but were {kept[0]}")
    off = max(largest_distance(a, b, _SPACING * edge_length) for a, b in ((mesh, out), (out, mesh)))
    if off > distance:
        raise MeshError(
            f"{what}: the surface would move by {off:.4g} nm, which is more than distance = {distance:g} nm: give a "
            "larger distance= or a smaller edge_length="
        )
    return out


def _smoothed(mesh: "TriangleMesh", steps: int) -> np.ndarray:
    """Return vertices (V, 3) without noise that is as fine as the edges; vertices on borders stay."""
    a, b = mesh.edges.T
    n = len(mesh.vertices)
    count = np.bincount(mesh.edges.ravel(), minlength=n)[:, None]
    inner = ~mesh.border_vertices[:, None]
    x = np.array(mesh.vertices)
    for step in range(2 * steps):
        sums = [np.bincount(a, x[b, c], n) + np.bincount(b, x[a, c], n) for c in range(3)]
        x += inner * (_SWELL if step % 2 else _SHRINK) * (np.stack(sums, axis=1) / count - x)
    return x


def samples(mesh: "TriangleMesh", spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Sample points (n, 3) of a surface about `spacing` apart, and the face of each (n,): vertices, edges, at least one
    in a face."""
    x, faces, edges = mesh.vertices, mesh.faces, mesh.edges
    offsets, corners = mesh.vertex_faces
    n = np.floor(mesh.edge_lengths / spacing).astype(np.int64)
    edge, place = np.repeat(np.arange(len(edges)), n), _counted(n)
    t = ((place + 1.0) / (n[edge] + 1.0))[:, None]
    on_edges = (1.0 - t) * x[edges[edge, 0]] + t * x[edges[edge, 1]]
    n = np.maximum(1, np.ceil(mesh.face_areas / spacing**2)).astype(np.int64)
    face, place = np.repeat(np.arange(len(faces)), n), _counted(n)
    # A sequence that fills the unit square evenly, from the centroid on (M. Roberts 2018); one half is folded over.
    u, v = ((1.0 / 3.0 + step * place) % 1.0 for step in (0.7548776662466927, 0.5698402909980532))
    beyond = u + v > 1.0
    u, v = np.where(beyond, 1.0 - u, u)[:, None], np.where(beyond, 1.0 - v, v)[:, None]
    a, b, c = (x[faces[face, i]] for i in range(3))
    points = np.concatenate([x, on_edges, a + u * (b - a) + v * (c - a)])
    of = np.concatenate([corners[offsets[:-1]] // 3, mesh.edge_faces[edge, 0], face])
    return np.ascontiguousarray(points), of.astype(np.int32)


def _counted(n: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... for each of several counts, one after another."""
    return np.asarray(np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n))


def largest_distance(a: "TriangleMesh", b: "TriangleMesh", spacing: float) -> float:
    """Return the largest distance of the samples of a from the surface b, nm."""
    from scipy.spatial import cKDTree

    points, _ = samples(a, spacing)
    there, of = samples(b, spacing)
    _, found = cKDTree(there).query(points, k=np.arange(1, min(_CANDIDATES, len(there)) + 1))
    out = np.empty(len(points))
    nearest(points, b.vertices, b.faces, np.ascontiguousarray(of[found]), out)
    return float(out.max())
