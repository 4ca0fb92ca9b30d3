"""Repair of meshes that cannot carry a surface; every change is counted in a report."""

from dataclasses import dataclass, fields

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy.errors import MeshError
from medyanpy.mesh import checks, cutting, orientation
from medyanpy.mesh.connectivity import Connectivity, connected
from medyanpy.mesh.geometry import EIGHT_EPS, has_no_area, heights, squared_lengths

# Every round collapses or flips at least one zero-area face; a flip can make a neighbour collinear in turn.
MAX_ROUNDS = 20
NEEDLE = 0.05  # A triangle with a height less than this share of the median is reported as a needle.


@dataclass(frozen=True)
class RepairReport:
    """Changes made to a mesh by TriangleMesh.repair; print it to read it.

    Attributes
    ----------
    repeated_vertex_faces_dropped, duplicate_faces_dropped : int
        Faces that named a vertex twice; second and further copies of a face.
    coincident_vertices_merged : int
        Vertices on the same spot as another one with which they shared a zero-area face.
    zero_area_faces_flipped, zero_area_faces_dropped : int
        Collinear faces mended by turning their longest side into the other diagonal; others, which may leave a slit.
    inner_walls_dropped : int
        Faces listed twice whose three edges all join two other faces: the wall between two fused bodies.
    branching_edges_cut, border_edges_made : int
        Edges with more than two faces, resolved into pairs of faces; and faces left loose there, at a border now.
    edges_subdivided, vertices_split : int
        Edges with a new vertex in the middle, as two edges joined the same two vertices; vertices added where separate
        sheets touched.
    unused_vertices_dropped : int
        Vertices that belonged to no face.
    faces_reversed, components_turned_outward : int
        Faces listed the other way round; closed components, consistent but inside out, that were turned.
    vertices_before, vertices_after, faces_before, faces_after : int
        Sizes of the mesh.
    needles : int
        Triangles lower than a twentieth of the median, for which runs need short timesteps; see `TriangleMesh.remesh`.
    least_height, median_height : float
        Of the smallest heights of triangles, nm.
    """

    repeated_vertex_faces_dropped: int = 0
    coincident_vertices_merged: int = 0
    zero_area_faces_flipped: int = 0
    zero_area_faces_dropped: int = 0
    duplicate_faces_dropped: int = 0
    inner_walls_dropped: int = 0
    branching_edges_cut: int = 0
    border_edges_made: int = 0
    edges_subdivided: int = 0
    vertices_split: int = 0
    unused_vertices_dropped: int = 0
    faces_reversed: int = 0
    components_turned_outward: int = 0
    vertices_before: int = 0
    vertices_after: int = 0
    faces_before: int = 0
    faces_after: int = 0
    needles: int = 0
    least_height: float = 0.0
    median_height: float = 0.0

    @property
    def actions(self) -> dict[str, int]:
        """Numbers of the changes of each kind that occurred."""
        counts = {f.name: getattr(self, f.name) for f in fields(self)}
        others = "_before", "_after", "needles", "_height"
        return {name: n for name, n in counts.items() if n and not name.endswith(others)}

    @property
    def changed(self) -> bool:
        """True if anything was changed."""
        return bool(self.actions)

    def __str__(self) -> str:
        sizes = f"{self.vertices_before} -> {self.vertices_after} vertices"
        sizes += f", {self.faces_before} -> {self.faces_after} faces"
        if not self.changed and not self.needles:
            return f"Mesh repair: nothing to mend ({sizes})"
        lines = [f"  {name.replace('_', ' ')}: {n}" for name, n in self.actions.items()]
        if self.needles:
            lines.append(
                f"  needles left: {self.needles}, the flattest {self.least_height:.2g} nm high (half of the triangles: "
                f"{self.median_height:.2g} nm or more); runs would need very short timesteps: "
                "mesh.remesh(edge_length=...) makes triangles uniform"
            )
        return "\n".join([f"Mesh repair: {sizes}", *lines])


def mend(vertices: Numbers, faces: Numbers) -> tuple[np.ndarray, np.ndarray, RepairReport]:
    """Return vertices (V, 3) and faces (F, 3) that carry a surface, and the report; MeshError as of
    `TriangleMesh.repair`."""
    x, f = checks.as_arrays(vertices, faces)
    checks.refuse(checks.index_and_coordinate_defects(x, f), x, f)
    done = {"vertices_before": len(x), "faces_before": len(f)}
    f = f.astype(np.int32)
    unused = np.ones(len(x), dtype=bool)
    unused[f.ravel()] = False
    done["unused_vertices_dropped"] = int(unused.sum())

    f = _drop_repeated(f, done)
    f = _mend_zero_area(x, f, done)
    f = _drop_duplicates(f, len(x), done)
    if len(f) == 0:
        raise MeshError("TriangleMesh: nothing is left of this mesh: every face is a line, a point or a copy")
    x, f = cutting.separate(x, f, done)
    x, f = _drop_unused(x, f)
    checks.refuse([d for d in checks.surface_defects(x, Connectivity(f, len(x))) if not d.mendable], x, f)
    f = orientation.oriented(x, f, done)
    done |= {"vertices_after": len(x), "faces_after": len(f)}
    height = heights(x, f)
    middle = float(np.median(height))
    needles = int(np.count_nonzero(height < NEEDLE * middle))
    return x, f, RepairReport(**done, needles=needles, least_height=float(height.min()), median_height=middle)


def _add(done: dict[str, int], name: str, n: int) -> None:
    done[name] = done.get(name, 0) + int(n)


def _drop_repeated(faces: np.ndarray, done: dict[str, int], name: str = "repeated_vertex_faces_dropped") -> np.ndarray:
    bad = checks.repeats_a_vertex(faces)
    _add(done, name, bad.sum())
    return np.asarray(faces[~bad])


def _mend_zero_area(x: np.ndarray, faces: np.ndarray, done: dict[str, int]) -> np.ndarray:
    """Collapse needles without length across, flip collinear faces, drop the others. Dropping opens a slit without
    area, at which in-triangle points are reflected."""
    for _ in range(MAX_ROUNDS):
        flat = has_no_area(x, faces) if len(faces) else np.zeros(0, dtype=bool)
        if not flat.any():
            return faces
        collapsed = _collapse_needles(x, faces, flat, done)
        if collapsed is not None:
            faces = collapsed
            continue
        flipped = _flip_collinear(x, faces, flat)
        if flipped is None:
            break
        faces, n = flipped
        _add(done, "zero_area_faces_flipped", n)
    flat = has_no_area(x, faces)
    _add(done, "zero_area_faces_dropped", flat.sum())
    return np.asarray(faces[~flat])


def _collapse_needles(x: np.ndarray, faces: np.ndarray, flat: np.ndarray, done: dict[str, int]) -> np.ndarray | None:
    """Merge the ends of the sides of zero-area faces that have no length; None without any."""
    tails, heads = faces[flat][:, [1, 2, 0]], faces[flat][:, [2, 0, 1]]
    length = np.sqrt(squared_lengths((x[tails] - x[heads]).reshape(-1, 3))).reshape(-1, 3)
    reach = np.abs(x[faces[flat]]).max(axis=(1, 2))
    short = length <= (EIGHT_EPS * (length.max(axis=1) + reach))[:, None]
    if not short.any():
        return None
    group = connected(len(x), tails[short], heads[short])
    _, first = np.unique(group, return_index=True)
    moved_to = first[group].astype(np.int32)
    _add(done, "coincident_vertices_merged", (moved_to != np.arange(len(x))).sum())
    return _drop_repeated(moved_to[faces], done, "zero_area_faces_dropped")


def _flip_collinear(x: np.ndarray, faces: np.ndarray, flat: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Replace the longest side of zero-area faces by the other diagonal, unless the neighbour has no area, the edge
    exists, or the new faces would have no area; None if nothing could be flipped."""
    c = Connectivity(faces, len(x))
    known = {tuple(edge) for edge in c.edges[np.isin(c.edges, np.unique(faces[flat])).any(axis=1)].tolist()}
    new, n = faces.copy(), 0
    touched: set[int] = set()
    for f in np.flatnonzero(flat).tolist():
        corners = x[faces[f]]
        longest = int(np.argmax(squared_lengths(corners[[1, 2, 0]] - corners[[2, 0, 1]])))
        across = int(c.opposite_corners[f, longest])
        g = across // 3
        if across < 0 or flat[g] or f in touched or g in touched:
            continue
        p, a, b = faces[f][[longest, (longest + 1) % 3, (longest + 2) % 3]].tolist()
        q = int(faces[g, across % 3])
        pair = np.array([[p, a, q], [q, b, p]], dtype=np.int32)
        if (min(p, q), max(p, q)) in known or has_no_area(x, pair).any():
            continue
        new[f], new[g] = pair
        known.add((min(p, q), max(p, q)))
        touched.update((f, g))
        n += 1
    return (new, n) if n else None


def _drop_duplicates(faces: np.ndarray, n_vertices: int, done: dict[str, int]) -> np.ndarray:
    """Keep one copy of each face, or none where the face is a wall inside a body."""
    if len(faces) == 0:
        return faces
    copy = checks.is_duplicate(faces, n_vertices)
    if not copy.any():
        return faces
    _add(done, "duplicate_faces_dropped", copy.sum())
    kept: np.ndarray = faces[~copy]
    several = {tuple(face) for face in np.sort(faces[copy], axis=1).tolist()}
    c = Connectivity(kept, n_vertices)
    count = np.empty(3 * len(kept), dtype=np.int64)
    count[c.half_edges_by_edge] = np.repeat(c.edge_counts, c.edge_counts)
    branching = (count.reshape(-1, 3) > 2).all(axis=1)
    wall = np.array([tuple(face) in several for face in np.sort(kept, axis=1).tolist()]) & branching
    _add(done, "inner_walls_dropped", wall.sum())
    return kept[~wall]


def _drop_unused(x: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used = np.zeros(len(x), dtype=bool)
    used[faces.ravel()] = True
    number = np.cumsum(used) - 1
    return x[used], number[faces].astype(np.int32)
