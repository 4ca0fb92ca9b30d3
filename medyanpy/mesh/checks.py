"""Checks that triangles carry a surface: every kind of defect is found, counted and named."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from medyanpy._tools.images import displacement, wrapped
from medyanpy._tools.types import Numbers
from medyanpy.errors import MeshError
from medyanpy.mesh.connectivity import MAX_FACES, Connectivity, first_appearance
from medyanpy.mesh.geometry import corner_positions, has_no_area, squared_lengths

MAX_PLACES = 3  # Named places per kind of defect: enough to find the spot in a viewer, few enough to read.
MAX_COORDINATE = 1e70  # The fourth power of a length (squared area) must not overflow.

REMEDY = (
    "Remedy: TriangleMesh.from_file(path, repair=True) or TriangleMesh.repair(vertices, faces) "
    "returns a mended mesh and a report of what was changed."
)
NO_REMEDY = "This cannot be mended automatically: correct the data where the mesh was made."

# kind: (one, several, mendable)
_WORDS = {
    "vertex index out of range": (
        "face uses a vertex that does not exist", "faces use vertices that do not exist", False,
    ),
    "non-finite coordinates": (
        "vertex has a coordinate that is not a finite number below 1e70",
        "vertices have coordinates that are not finite numbers below 1e70",
        False,
    ),
    "repeated vertex in a face": (
        "face names the same vertex twice, so it is a line or a point",
        "faces name the same vertex twice, so they are lines or points",
        True,
    ),
    "zero-area face": (
        "face has zero area (its corners lie on one line or on one spot)",
        "faces have zero area (their corners lie on one line or on one spot)",
        True,
    ),
    "duplicate face": (
        "face is a duplicate: another face has the same three vertices",
        "faces are duplicates: other faces have the same three vertices",
        True,
    ),
    "too large": (
        "face is wider than half the box, so that its corners are not the nearest images of each other",
        "faces are wider than half the box, so that their corners are not the nearest images of each other",
        False,
    ),
    "open seam": (
        "vertex on a border lies where an image of another one does, so that the mesh does not close through the side "
        "of the box: make them one vertex",
        "vertices on borders lie where images of others do, so that the mesh does not close through the sides of the "
        "box: make two such vertices one",
        False,
    ),
    "unused vertex": ("vertex belongs to no face", "vertices belong to no face", True),
    "edge with more than two faces": (
        "edge with more than two faces, where the sheet branches",
        "edges with more than two faces, where the sheet branches",
        True,
    ),
    "bow-tie vertex": (
        "bow-tie vertex, where separate sheets touch in a single point",
        "bow-tie vertices, where separate sheets touch in a single point",
        True,
    ),
    "inconsistent orientation": (
        "edge between faces of opposite orientation "
        "(one face is listed clockwise, its neighbour anticlockwise), "
        "so inside and outside are mixed up",
        "edges between faces of opposite orientation "
        "(one face is listed clockwise, its neighbour anticlockwise), "
        "so inside and outside are mixed up",
        True,
    ),
    "not orientable": (
        "connected part is one-sided like a Möbius band: it has no inside and outside, "
        "so it is not orientable",
        "connected parts are one-sided like a Möbius band: they have no inside and outside, "
        "so they are not orientable",
        False,
    ),
}


@dataclass(frozen=True)
class DefectPlace:
    """One place where a mesh is defective.

    Attributes
    ----------
    vertices : tuple of int
        Vertices concerned.
    faces : tuple of int
        Faces concerned; at most the first four.
    position : tuple of 3 float, or None
        Its place, in the units of the vertices (nm); None where there is no place.
    """

    vertices: tuple[int, ...]
    faces: tuple[int, ...]
    position: tuple[float, float, float] | None

    def __str__(self) -> str:
        words = []
        if self.faces:
            words.append(("face " if len(self.faces) == 1 else "faces ") + ", ".join(map(str, self.faces)))
        if self.vertices:
            words.append(("vertex " if len(self.vertices) == 1 else "vertices ") + ", ".join(map(str, self.vertices)))
        text = " with ".join(words)
        if self.position is not None:
            text += " at ({:.6g}, {:.6g}, {:.6g})".format(*self.position)
        return text


@dataclass(frozen=True)
class MeshDefect:
    """One kind of defect found in a mesh.

    Attributes
    ----------
    kind : str
        ``"vertex index out of range"``, ``"non-finite coordinates"``, ``"repeated vertex in a face"``,
        ``"zero-area face"``, ``"duplicate face"``, ``"unused vertex"``, ``"edge with more than two faces"``,
        ``"bow-tie vertex"``, ``"inconsistent orientation"`` or ``"not orientable"``.
    count : int
        Number of occurrences.
    places : tuple of DefectPlace
        The first places, at most three.
    """

    kind: str
    count: int
    places: tuple[DefectPlace, ...]

    @property
    def mendable(self) -> bool:
        """True if TriangleMesh.repair can mend it."""
        return _WORDS[self.kind][2]

    def __str__(self) -> str:
        one, several, _ = _WORDS[self.kind]
        more = "" if self.count <= len(self.places) else "; ..."
        return (f"{self.count} {one if self.count == 1 else several}: " + "; ".join(map(str, self.places)) + more)


def as_arrays(vertices: Numbers, faces: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Return private copies as (V, 3) float64 and (F, 3) int64 arrays, or raise MeshError."""
    try:
        x = np.asarray(vertices)
        # NumPy would convert text and complex numbers.
        if x.dtype.kind not in "biufO":
            raise TypeError
        x = np.array(x, dtype=np.float64, order="C")
    except Exception as err:  # Foreign objects may raise anything.
        raise MeshError("TriangleMesh: vertices must be an array of numbers of shape (V, 3)") from err
    if x.ndim != 2 or x.shape[1] != 3:
        raise MeshError(f"TriangleMesh: vertices have shape {x.shape} but must have shape (V, 3)")
    try:
        f = np.array(faces, order="C")
    except Exception as err:
        raise MeshError(
            "TriangleMesh: faces have different numbers of vertices but must be triangles, shape (F, 3)"
        ) from err
    if f.size == 0:
        raise MeshError("TriangleMesh: there are no faces; a surface needs at least one triangle")
    if f.ndim != 2 or f.shape[1] != 3:
        raise MeshError(f"TriangleMesh: faces have shape {f.shape} but must be triangles, shape (F, 3)")
    if f.dtype.kind not in "iu":
        raise MeshError(f"TriangleMesh: faces have type {f.dtype} but must be integers (vertex numbers from 0)")
    if len(f) > MAX_FACES:
        raise MeshError(f"TriangleMesh: {len(f)} faces but at most {MAX_FACES} can be numbered")
    return x, f


def index_and_coordinate_defects(vertices: np.ndarray, faces: np.ndarray) -> list[MeshDefect]:
    """Find defects after which nothing else can be computed: indices out of range, non-finite coordinates."""
    defects = []
    # The comparison with MAX_COORDINATE is false for nan and inf alike.
    bad = np.flatnonzero(~(np.abs(vertices) < MAX_COORDINATE).all(axis=1))
    if len(bad):
        places = tuple(DefectPlace((int(v),), (), tuple(vertices[v].tolist())) for v in bad[:MAX_PLACES])
        defects.append(MeshDefect("non-finite coordinates", len(bad), places))
    bad = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(axis=1))
    if len(bad):
        places = tuple(DefectPlace(tuple(faces[f].tolist()), (int(f),), None) for f in bad[:MAX_PLACES])
        defects.append(MeshDefect("vertex index out of range", len(bad), places))
    return defects


def repeats_a_vertex(faces: np.ndarray) -> np.ndarray:
    """Mark faces that name a vertex more than once, (F,) bool."""
    a, b, c = faces.T
    repeats: np.ndarray = (a == b) | (b == c) | (c == a)
    return repeats


def is_duplicate(faces: np.ndarray, n_vertices: int) -> np.ndarray:
    """Mark faces with the same three vertices as an earlier face, in any order, (F,) bool."""
    low, middle, high = np.sort(faces, axis=1).T
    # Two sorts of one integer per face; three vertex numbers would not fit one int64.
    _, edge = np.unique(low.astype(np.int64) * n_vertices + middle, return_inverse=True)
    key = edge.astype(np.int64) * n_vertices + high
    order = np.argsort(key, kind="stable")
    duplicate = np.zeros(len(faces), dtype=bool)
    duplicate[order[1:]] = key[order[1:]] == key[order[:-1]]
    return duplicate


def position_defects(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> list[MeshDefect]:
    """Find defects that new positions can bring to sound faces."""
    defects = index_and_coordinate_defects(vertices, faces)
    return defects or [d for d in face_defects(vertices, faces, box) if d.kind in ("zero-area face", "too large")]


def face_defects(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> list[MeshDefect]:
    """Find defects of single faces and vertices."""
    defects = []

    def add(kind: str, found: np.ndarray) -> None:
        if found.any():
            bad = np.flatnonzero(found)
            places = tuple(
                DefectPlace(tuple(faces[f].tolist()), (int(f),), _point(vertices[faces[f]])) for f in bad[:MAX_PLACES]
            )
            defects.append(MeshDefect(kind, len(bad), places))

    repeated = repeats_a_vertex(faces)
    add("repeated vertex in a face", repeated)
    add("zero-area face", has_no_area(vertices, faces, box) & ~repeated)
    if box is not None:
        add("too large", _wider_than_half(vertices, faces, box))
    add("duplicate face", is_duplicate(faces, len(vertices)) & ~repeated)
    unused = np.ones(len(vertices), dtype=bool)
    unused[faces.ravel()] = False
    if unused.any():
        bad = np.flatnonzero(unused)
        places = tuple(DefectPlace((int(v),), (), _point(vertices[[v]])) for v in bad[:MAX_PLACES])
        defects.append(MeshDefect("unused vertex", len(bad), places))
    return defects


def _wider_than_half(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Mark faces of which the nearest images of corners do not make one triangle, (F,) bool."""
    a, b, c = corner_positions(vertices, faces, box)
    side = displacement(b, c, box)
    return np.asarray((np.abs(a + (b - a) + side - c) > 0.25 * np.where(box > 0.0, box, np.inf)).any(axis=1))


def _seam_defects(vertices: np.ndarray, c: Connectivity, box: np.ndarray) -> list[MeshDefect]:
    """Find vertices of borders that are images of each other."""
    from scipy.spatial import cKDTree

    rim = np.unique(c.tails[c.border_half_edges])
    if not len(rim):
        return []
    a, b = vertices[c.edges[:, 0]], vertices[c.edges[:, 1]]
    near = 1e-6 * float(np.sqrt(squared_lengths(displacement(a, b, box)).min()))
    # A length of 0 is an open direction for the tree, too.
    pairs = cKDTree(wrapped(vertices[rim], box), boxsize=box).query_pairs(near, output_type="ndarray")
    if not len(pairs):
        return []
    bad = np.unique(rim[pairs])
    places = tuple(DefectPlace((int(v),), (), _point(vertices[[v]])) for v in bad[:MAX_PLACES])
    return [MeshDefect("open seam", len(bad), places)]


def surface_defects(
    vertices: np.ndarray, connectivity: Connectivity, face_numbers: np.ndarray | None = None
) -> list[MeshDefect]:
    """Find defects in the way faces are joined.

    Parameters
    ----------
    vertices : (V, 3) float64
        Positions, to name places.
    connectivity : Connectivity
        Of faces without repeated vertices.
    face_numbers : (F,) int, optional
        Numbers of these faces in the user's list, where some were left out.
    """
    c = connectivity
    defects = []

    def name(faces: np.ndarray) -> tuple[int, ...]:
        faces = faces if face_numbers is None else face_numbers[faces]
        return tuple(int(f) for f in faces[:4])

    bad = np.flatnonzero(c.edge_counts > 2)
    if len(bad):
        places = []
        for e in bad[:MAX_PLACES]:
            ring = c.half_edges_by_edge[c.edge_starts[e] : c.edge_starts[e + 1]] // 3
            places.append(DefectPlace(tuple(c.edges[e].tolist()), name(ring), _point(vertices[c.edges[e]])))
        defects.append(MeshDefect("edge with more than two faces", len(bad), tuple(places)))

    fan_of_corner = c.fan_of_corner()
    vertex_of_fan = np.empty(fan_of_corner.max() + 1, dtype=np.int32)
    vertex_of_fan[fan_of_corner] = c.faces.ravel()
    bad = np.flatnonzero(np.bincount(vertex_of_fan, minlength=c.n_vertices) > 1)
    if len(bad):
        places = []
        for v in bad[:MAX_PLACES]:
            corners = np.flatnonzero(c.faces.ravel() == v)
            _, first = np.unique(fan_of_corner[corners], return_index=True)
            places.append(DefectPlace((int(v),), name(np.sort(corners[first]) // 3), _point(vertices[[v]])))
        defects.append(MeshDefect("bow-tie vertex", len(bad), tuple(places)))

    # Most meshes are oriented throughout; the two-sheeted cover is built only for those that are not.
    if c.same_direction.any():
        defects += _orientation_defects(vertices, c, name)
    return defects


def _orientation_defects(
    vertices: np.ndarray, c: Connectivity, name: Callable[[np.ndarray], tuple[int, ...]]
) -> list[MeshDefect]:
    defects = []
    one_sided = c.side_of_face[:, 0] == c.side_of_face[:, 1]
    a, b = c._pairs
    a, b = a[c.same_direction], b[c.same_direction]
    two_sided = ~one_sided[a // 3]
    if two_sided.any():
        places = tuple(
            DefectPlace(
                tuple(sorted((int(c.tails[h]), int(c.heads[h])))),
                name(np.array([h // 3, g // 3])),
                _point(vertices[[c.tails[h], c.heads[h]]]),
            )
            for h, g in zip(a[two_sided][:MAX_PLACES], b[two_sided][:MAX_PLACES], strict=True)
        )
        defects.append(MeshDefect("inconsistent orientation", int(two_sided.sum()), places))
    if one_sided.any():
        parts, first = np.unique(c.component_of_face[one_sided], return_index=True)
        faces = np.flatnonzero(one_sided)[first][:MAX_PLACES]
        places = tuple(DefectPlace((), name(np.array([f])), _point(vertices[c.faces[f]])) for f in faces)
        defects.append(MeshDefect("not orientable", len(parts), places))
    return defects


def check_surface(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> Connectivity:
    """Raise MeshError naming every kind of defect; return the connectivity of a sound surface.

    Parameters
    ----------
    vertices : (V, 3) float64
    faces : (F, 3) int
        As from `as_arrays`.
    box : (3,) float, nm, optional
        Of a mesh that may close through its sides.
    """
    defects = index_and_coordinate_defects(vertices, faces)
    if defects:
        raise MeshError(explain(defects, len(vertices), len(faces)), defects)
    faces = faces.astype(np.int32)
    defects = face_defects(vertices, faces, box)
    connectivity = Connectivity(faces, len(vertices))
    if any(d.kind == "repeated vertex in a face" for d in defects):
        kept = np.flatnonzero(~repeats_a_vertex(faces))
        if len(kept):
            defects += surface_defects(vertices, Connectivity(faces[kept], len(vertices)), kept)
    else:
        defects += surface_defects(vertices, connectivity)
    if box is not None and not defects:
        defects += _seam_defects(vertices, connectivity, box)
    if defects:
        raise MeshError(explain(defects, len(vertices), len(faces)), defects)
    return connectivity


def check_joined_alike(faces: np.ndarray, vertices: np.ndarray, like: Connectivity) -> None:
    """Raise MeshError unless faces (F, 3) int64 join vertices (V, 3) to a surface like another one.

    Like means the same borders, the same vertices in each part and as many faces there; triangles may be without area.
    """
    defects = index_and_coordinate_defects(vertices, faces)
    if not defects:
        connectivity = Connectivity(faces.astype(np.int32), len(vertices))
        defects = [d for d in face_defects(vertices, connectivity.faces) if d.kind != "zero-area face"]
        defects = defects or surface_defects(vertices, connectivity)
    if defects:
        raise MeshError(explain(defects, len(vertices), len(faces)), defects)
    if (parts_of_vertices(connectivity) != parts_of_vertices(like)).any():
        raise MeshError("connected parts have other vertices than before")
    there, here = ({(int(c.tails[h]), int(c.heads[h])) for h in c.border_half_edges} for c in (like, connectivity))
    if there != here:
        raise MeshError(f"{len(there ^ here)} edges are on a border here or there only")


def parts_of_vertices(c: Connectivity) -> np.ndarray:
    """Return the component of each vertex, and how many faces that has, (V, 2)."""
    parts = np.empty(c.n_vertices, np.int64)
    parts[c.faces] = c.component_of_face[:, None]
    # Numbered by vertices, in the order of which they are the same whatever the faces.
    return np.column_stack([first_appearance(parts), np.bincount(c.component_of_face)[parts]])


def explain(defects: list[MeshDefect], n_vertices: int, n_faces: int) -> str:
    """Return the message of the MeshError: what, how often, where, and what to do."""
    lines = [f"TriangleMesh: these {n_faces} faces on {n_vertices} vertices cannot carry a surface:"]
    lines += [f"  - {defect}" for defect in defects]
    lines.append(REMEDY if all(defect.mendable for defect in defects) else NO_REMEDY)
    return "\n".join(lines)


def _point(positions: np.ndarray) -> tuple[float, float, float]:
    x, y, z = positions.mean(axis=0).tolist()
    return (x, y, z)
