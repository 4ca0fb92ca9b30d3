"""Lengths, areas, normals and volumes of triangles given as arrays; no checks, no caches.

Where a periodic box is given, (3,) lengths in nm as `_tools.images` takes them, triangles may lie across its sides.
"""

import numpy as np

from medyanpy._tools.images import displacement
from medyanpy._tools.sums import row_products, total

# 2A of a triangle is a cross product of edges up to L long between corners up to X from the origin. Its rounding error
# is a few eps L^2; and corners can only be placed to eps X, which moves 2A by L eps X. Below EIGHT_EPS L (L + X) the
# area, the normal and the barycentric coordinates are rounding noise: such a face counts as having no area. A needle
# with an angle of 1e-5 degrees (real meshes have them) is eight orders of magnitude above it.
EIGHT_EPS = 8 * np.finfo(np.float64).eps
#: Triangles are needles if their height is less than so many times the thermal displacement of a vertex in a step.
NEEDLE_STEPS = 3.0


def corner_positions(
    vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions (F, 3) of the first corner of each face, and of the nearest images of the second and third."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    return (a, b, c) if box is None else (a, a + displacement(a, b, box), a + displacement(a, c, box))


def corners_of(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return positions of the corners of each face, (F, 3, 3), as `corner_positions`."""
    return vertices[faces] if box is None else np.stack(corner_positions(vertices, faces, box), axis=1)


def area_vectors(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return cross products of two sides, twice the area along the normal, (F, 3)."""
    a, b, c = corner_positions(vertices, faces, box)
    return np.asarray(np.cross(b - a, c - a))


def squared_lengths(vectors: np.ndarray) -> np.ndarray:
    """Return the squared length of each row, (n,); inf where that overflows."""
    with np.errstate(over="ignore"):
        return row_products(vectors, vectors)


def has_no_area(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Mark faces with an area that is zero within double precision, (F,) bool (see EIGHT_EPS)."""
    a, b, c = corner_positions(vertices, faces, box)
    longest = np.sqrt(np.maximum(np.maximum(squared_lengths(b - a), squared_lengths(c - b)), squared_lengths(a - c)))
    double_area = np.sqrt(squared_lengths(np.cross(b - a, c - a)))
    reach = np.abs(vertices).max(axis=1)
    farthest = np.maximum(np.maximum(reach[faces[:, 0]], reach[faces[:, 1]]), reach[faces[:, 2]])
    return np.asarray(double_area <= EIGHT_EPS * longest * (longest + farthest))


def signed_volumes(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the volume between each face and the middle of the mesh, (F,), positive where it looks away; a middle near
    the mesh keeps the cancellation small."""
    centre = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    a, b, c = corner_positions(vertices - centre, faces)
    return row_products(a, np.cross(b, c)) / 6.0


def heights(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return the smallest height of triangles (F, 3): twice the area over the longest edge, (F,) nm."""
    a, b, c = corner_positions(vertices, faces, box)
    double_area = np.sqrt(squared_lengths(np.cross(b - a, c - a)))
    longest = np.sqrt(np.maximum(np.maximum(squared_lengths(b - a), squared_lengths(c - b)), squared_lengths(a - c)))
    return np.asarray(np.divide(double_area, longest, out=np.zeros_like(double_area), where=longest > 0.0))


def radius_ratios(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return twice the inscribed over the circumscribed radius, (F,), 1 if equilateral, 0 if flat."""
    a, b, c = corner_positions(vertices, faces, box)
    la, lb, lc = (np.sqrt(squared_lengths(side)) for side in (b - c, c - a, a - b))
    double_area = np.sqrt(squared_lengths(np.cross(b - a, c - a)))
    # 2 r_in / r_circ with r_in = 2A/(la+lb+lc) and r_circ = la lb lc/(4A)
    ratio = 4.0 * double_area**2 / ((la + lb + lc) * la * lb * lc)
    return np.asarray(np.minimum(ratio, 1.0))


def unpaired(faces: np.ndarray) -> np.ndarray:
    """Mark sides of faces, from corner i to the next, that no face has in the other direction: borders, (F, 3) bool."""
    n = int(faces.max(initial=0)) + 1
    tail = faces.astype(np.int64)
    head = np.roll(tail, -1, axis=1)
    there, other = np.sort((head * n + tail).ravel()), tail * n + head
    # A tenth of the time of np.isin.
    return np.asarray(there[np.searchsorted(there, other) % max(1, len(there))] != other)


def corner_sums(vertices: np.ndarray, faces: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum values of corners (F, 3, ...) at each vertex, (V, ...)."""
    n, corners = len(vertices), faces.ravel()
    columns = values.reshape(len(corners), -1).T
    sums = [np.bincount(corners, column, minlength=n) for column in columns]
    return np.stack(sums, axis=1).reshape(n, *values.shape[2:])


def area_gradients(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return gradients of the area of all faces by the position of each vertex, (V, 3) nm."""
    corner, vectors = corners_of(vertices, faces, box), area_vectors(vertices, faces, box)
    normals = vectors / np.sqrt(squared_lengths(vectors))[:, None]
    opposite = np.roll(corner, 1, axis=1) - np.roll(corner, -1, axis=1)
    return corner_sums(vertices, faces, 0.5 * np.cross(normals[:, None], opposite))


def mean_curvatures(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return half the sum of the principal curvatures at vertices, (V,) 1/nm, nan on borders: a.g/(2 g.g) with the
    gradients of area and volume (M. Meyer et al. 2003), as the bending energy has it."""
    a = area_gradients(vertices, faces, box)
    vectors = area_vectors(vertices, faces, box)
    g = corner_sums(vertices, faces, np.repeat(vectors[:, None] / 6.0, 3, axis=1))
    square = squared_lengths(g)
    out = 0.5 * row_products(a, g) / np.where(square > 0.0, square, 1.0)
    return _without_borders(out, faces)


def gaussian_curvatures(vertices: np.ndarray, faces: np.ndarray, box: np.ndarray | None = None) -> np.ndarray:
    """Return the product of the principal curvatures at vertices, (V,) 1/nm^2, nan on borders: the deficit from 2 pi of
    the angles, over a third of the area of the faces (M. Meyer et al. 2003)."""
    corner = corners_of(vertices, faces, box)
    one, other = np.roll(corner, -1, axis=1) - corner, np.roll(corner, 1, axis=1) - corner
    double_area = np.sqrt(squared_lengths(area_vectors(vertices, faces, box)))
    angle = np.arctan2(double_area[:, None], row_products(one, other))
    area = corner_sums(vertices, faces, np.repeat(double_area[:, None] / 6.0, 3, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        out = (2.0 * np.pi - corner_sums(vertices, faces, angle)) / area
    return _without_borders(out, faces)


def _without_borders(values: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return values of vertices, nan where the faces do not make a full ring."""
    # A border is a loop: each of its vertices begins a side.
    values[faces[unpaired(faces)]] = np.nan
    return values


def flattest(x: np.ndarray, faces: np.ndarray, vertex: int, box: np.ndarray | None) -> tuple[int, float] | None:
    """Return the triangle of smallest height at a vertex, of triangles (F, 3), and that height; None where it has
    none."""
    at = np.flatnonzero((faces == vertex).any(axis=1))
    if len(at) == 0:
        return None
    height = heights(x, faces[at], box)
    return int(at[np.argmin(height)]), float(height.min())


def winding_number(point: np.ndarray, vertices: np.ndarray, faces: np.ndarray) -> float:
    """Return the winding number of a closed surface round a point, by signed solid angles: about 0 outside, +1 or -1
    inside. A. Van Oosterom, J. Strackee, IEEE Trans. Biomed. Eng. 30, 125 (1983), eq. 8."""
    a, b, c = corner_positions(vertices - point, faces)
    la, lb, lc = (np.sqrt(squared_lengths(side)) for side in (a, b, c))
    triple = row_products(a, np.cross(b, c))
    ab, bc, ca = (row_products(p, q) for p, q in ((a, b), (b, c), (c, a)))
    angles = 2.0 * np.arctan2(triple, la * lb * lc + ab * lc + bc * la + ca * lb)
    return total(angles) / (4.0 * np.pi)
