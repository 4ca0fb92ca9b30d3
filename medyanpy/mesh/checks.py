"""Checks that triangles carry a surface: every kind of defect is found, counted and named."""

import re
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

# Of each kind the words for [one|several], and whether it can be mended.
_WORDS = {
    "vertex index out of range": ("[face uses a vertex that does|faces use vertices that do] not exist", False),
    "non-finite coordinates": (
        "[vertex has a coordinate that is not a finite number|vertices have coordinates that are not finite numbers] "
        "below 1e70", False,
    ),
    "repeated vertex in a face": (
        "[face names|faces name] the same vertex twice, so [it is a line or a point|they are lines or points]", True,
    ),
    "zero-area face": ("[face has|faces have] zero area ([its|their] corners lie on one line or on one spot)", True),
    "duplicate face": (
        "[face is a duplicate: another face has|faces are duplicates: other faces have] the same three vertices", True,
    ),
    "too large": (
        "[face is|faces are] wider than half the box, so that [its|their] corners are not the nearest images of each "
        "other", False,
    ),
    "open seam": (
        "[vertex on a border lies where an image of another one does|vertices on borders lie where images of others "
        "do], so that the mesh does not close through the [side|sides] of the box: make [them|two such vertices] one"
        "[ vertex|]", False,
    ),
    "unused vertex": ("[vertex belongs|vertices belong] to no face", True),
    "edge with more than two faces": ("[edge|edges] with more than two faces, where the sheet branches", True),
    "bow-tie vertex": ("bow-tie [vertex|vertices], where separate sheets touch in a single point", True),
    "inconsistent orientation": (
        "[edge|edges] between faces of opposite orientation (one face is listed clockwise, its neighbour "
        "anticlockwise), so inside and outside are mixed up", True,
    ),
    "not orientable": (
        "connected [part is|parts are] one-sided like a Möbius band: [it has|they have] no inside and outside, so "
        "[it is|they are] not orientable", False,
    ),
}


@dataclass(frozen=True)
class DefectPlace:
    """One place where a mesh is defective.

    Attributes
    ----------
    vertices, faces : tuple of int
        Those concerned; of faces at most the first four.
    position : tuple of 3 float, nm, or None
        Its place, if there is one.
    """

    vertices: tuple[int, ...]
    faces: tuple[int, ...]
    position: tuple[float, float, float] | None

    def __str__(self) -> str:
        named = ("face ", "faces ", self.faces), ("vertex ", "vertices ", self.vertices)
        words = [(one if len(of) == 1 else several) + ", ".join(map(str, of)) for one, several, of in named if of]
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
        ``"zero-area face"``, ``"duplicate face"``, ``"too large"``, ``"open seam"``, ``"unused vertex"``, ``"edge with
        more than two faces"``, ``"bow-tie vertex"``, ``"inconsistent orientation"`` or ``"not orientable"``.
    count : int
    places : tuple of DefectPlace
        The first places, at most three.
    """

    kind: str
    count: int
    places: tuple[DefectPlace, ...]

    @property
    def mendable(self) -> bool:
        """True if TriangleMesh.repair can mend it."""
        return _WORDS[self.kind][1]

    def __str__(self) -> str:
        words = re.sub(r"\[(.*?)\|(.*?)\]", r"\1" if self.count == 1 else r"\2", _WORDS[self.kind][0])
        more = ["..."] * (self.count > len(self.places))
        return f"{self.count} {words}: " + "; ".join([*map(str, self.places), *more])


def _defect(kind: str, bad: np.ndarray, place: Callable[[int], DefectPlace]) -> list[MeshDefect]:
    """Return the defect of the numbers `bad`, with the first of its places; nothing if there are none."""
    return [MeshDefect(kind, len(bad), tuple(map(place, bad[:MAX_PLACES].tolist())))] if len(bad) else []


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
    # The comparison with MAX_COORDINATE is false for nan and inf alike.
    bad = np.flatnonzero(~(np.abs(vertices) < MAX_COORDINATE).all(axis=1))
    defects = _defect("non-finite coordinates", bad, lambda v: DefectPlace((v,), (), tuple(vertices[v].tolist())))
    bad = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(axis=1))
    return defects + _defect(
        "vertex index out of range", bad, lambda f: DefectPlace(tuple(faces[f].tolist()), (f,), None)
    )


def repeats_a_vertex(faces: np.ndarray) -> np.ndarray:
    """Mark faces that name a vertex more than once, (F,) bool."""
    a, b, c = faces.T
    return np.asarray((a == b) | (b == c) | (c == a))


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

    def found(kind: str, bad: np.ndarray) -> list[MeshDefect]:
        return _defect(
            kind, np.flatnonzero(bad), lambda f: DefectPlace(tuple(faces[f].tolist()), (f,), _point(vertices[faces[f]]))
        )

    repeated = repeats_a_vertex(faces)
    defects = found("repeated vertex in a face", repeated)
    defects += found("zero-area face", has_no_area(vertices, faces, box) & ~repeated)
    if box is not None:
        defects += found("too large", _wider_than_half(vertices, faces, box))
    defects += found("duplicate face", is_duplicate(faces, len(vertices)) & ~repeated)
    unused = np.ones(len(vertices), dtype=bool)
    unused[faces.ravel()] = False
    return defects + _defect("unused vertex", np.flatnonzero(unused), lambda v: _at_vertex(vertices, v))


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
    return _defect("open seam", np.unique(rim[pairs]), lambda v: _at_vertex(vertices, v))


def surface_defects(
    vertices: np.ndarray, connectivity: Connectivity, face_numbers: np.ndarray | None = None
) -> list[MeshDefect]:
    """Find defects in the way faces without repeated vertices are joined; `face_numbers` (F,) are theirs in the user's
    list, where some were left out."""
    c = connectivity

    def name(faces: np.ndarray) -> tuple[int, ...]:
        return tuple((faces if face_numbers is None else face_numbers[faces])[:4].tolist())

    def at_edge(e: int) -> DefectPlace:
        return DefectPlace(tuple(c.edges[e].tolist()), name(c.around(e) // 3), _point(vertices[c.edges[e]]))

    def at_bow_tie(v: int) -> DefectPlace:
        corners = np.flatnonzero(c.faces.ravel() == v)
        first = np.unique(fan_of_corner[corners], return_index=True)[1]
        return _at_vertex(vertices, v, name(np.sort(corners[first]) // 3))

    defects = _defect("edge with more than two faces", np.flatnonzero(c.edge_counts > 2), at_edge)
    fan_of_corner = c.fan_of_corner()
    vertex_of_fan = np.empty(fan_of_corner.max() + 1, dtype=np.int32)
    vertex_of_fan[fan_of_corner] = c.faces.ravel()
    bad = np.flatnonzero(np.bincount(vertex_of_fan, minlength=c.n_vertices) > 1)
    defects += _defect("bow-tie vertex", bad, at_bow_tie)
    # Most meshes are oriented throughout; the two-sheeted cover is built only for those that are not.
    return defects + (_orientation_defects(vertices, c, name) if c.same_direction.any() else [])


def _orientation_defects(
    vertices: np.ndarray, c: Connectivity, name: Callable[[np.ndarray], tuple[int, ...]]
) -> list[MeshDefect]:
    one_sided = c.side_of_face[:, 0] == c.side_of_face[:, 1]
    a, b = (of[c.same_direction] for of in c._pairs)

    def at_edge(k: int) -> DefectPlace:
        ends = sorted((int(c.tails[a[k]]), int(c.heads[a[k]])))
        return DefectPlace(tuple(ends), name(np.array([a[k] // 3, b[k] // 3])), _point(vertices[ends]))

    def at_part(f: int) -> DefectPlace:
        return DefectPlace((), name(np.array([f])), _point(vertices[c.faces[f]]))

    defects = _defect("inconsistent orientation", np.flatnonzero(~one_sided[a // 3]), at_edge)
    first = np.unique(c.component_of_face[one_sided], return_index=True)[1]
    return defects + _defect("not orientable", np.flatnonzero(one_sided)[first], at_part)


def check_surface(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> Connectivity:
    """Raise MeshError naming every kind of defect; return the connectivity of a sound surface. Arrays are as from
    `as_arrays`."""
    defects = index_and_coordinate_defects(vertices, faces)
    refuse(defects, vertices, faces)
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
    refuse(defects, vertices, faces)
    return connectivity


def check_joined_alike(faces: np.ndarray, vertices: np.ndarray, like: Connectivity) -> None:
    """Raise MeshError unless faces (F, 3) int64 join vertices (V, 3) as another surface: with the same borders,
    vertices and numbers of faces in each part. Triangles may be without area."""
    defects = index_and_coordinate_defects(vertices, faces)
    if not defects:
        connectivity = Connectivity(faces.astype(np.int32), len(vertices))
        defects = [d for d in face_defects(vertices, connectivity.faces) if d.kind != "zero-area face"]
        defects = defects or surface_defects(vertices, connectivity)
    refuse(defects, vertices, faces)
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


def refuse(defects: list[MeshDefect], vertices: np.ndarray, faces: np.ndarray) -> None:
    """Raise the MeshError of defects, if there are any: what, how often, where, and what to do."""
    if defects:
        lines = [f"TriangleMesh: these {len(faces)} faces on {len(vertices)} vertices cannot carry a surface:"]
        lines += [f"  - {defect}" for defect in defects]
        lines.append(REMEDY if all(defect.mendable for defect in defects) else NO_REMEDY)
        raise MeshError("\n".join(lines), defects)


def _at_vertex(vertices: np.ndarray, v: int, faces: tuple[int, ...] = ()) -> DefectPlace:
    return DefectPlace((v,), faces, _point(vertices[[v]]))


def _point(positions: np.ndarray) -> tuple[float, float, float]:
    x, y, z = positions.mean(axis=0).tolist()
    return (x, y, z)
