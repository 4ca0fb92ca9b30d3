"""Vertices and faces of standard shapes; arguments are checked by the classmethods of TriangleMesh.

All shapes are centred at the origin, closed ones and tubes with faces anticlockwise seen from outside.
"""

import numpy as np

from medyanpy.mesh.connectivity import Connectivity

# Evans & Fung (1972), table of average human red cells at 300 mosm/kg: C0, C2, C4 over the radius R0 = 3.91 um.
RED_CELL_RADIUS = 3910.0
RED_CELL_THICKNESS = (810.0 / RED_CELL_RADIUS, 7830.0 / RED_CELL_RADIUS, -4390.0 / RED_CELL_RADIUS)
# Points on the profile of the red cell and on the meridian of the sphere, interpolated between: the mesh
# vertices lie on the surface exactly, this only sets how evenly they are spread.
PROFILE_POINTS = 20_001


def icosahedron() -> tuple[np.ndarray, np.ndarray]:
    """Return the unit icosahedron with a vertex at each pole of the z axis."""
    k = np.arange(5)
    upper = 2 * np.pi * k / 5
    rings = [(upper, 1.0), (upper + np.pi / 5, -1.0)]
    vertices = [[0.0, 0.0, 1.0]]
    for angles, sign in rings:
        vertices += [[2 * np.cos(a) / 5**0.5, 2 * np.sin(a) / 5**0.5, sign / 5**0.5] for a in angles]
    vertices.append([0.0, 0.0, -1.0])
    up, next_up, low, next_low = 1 + k, 1 + (k + 1) % 5, 6 + k, 6 + (k + 1) % 5
    top, bottom = np.zeros(5, dtype=int), np.full(5, 11)
    fans = [(top, up, next_up), (up, low, next_up), (low, next_low, next_up), (bottom, next_low, low)]
    faces = np.concatenate([np.stack(corners, axis=1) for corners in fans])
    return np.array(vertices), faces.astype(np.int32)


def unit_icosphere(subdivisions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an icosahedron cut in four ``subdivisions`` times, midpoints pushed out to the sphere."""
    x, faces = icosahedron()
    for _ in range(subdivisions):
        c = Connectivity(faces, len(x))
        middle = x[c.edges].sum(axis=1)
        middle /= np.linalg.norm(middle, axis=1)[:, None]
        m = np.empty(3 * len(faces), dtype=np.int32)
        m[c.half_edges_by_edge] = len(x) + np.repeat(np.arange(len(c.edges), dtype=np.int32), np.diff(c.edge_starts))
        (a, b, d), (ab, bd, da) = faces.T, m.reshape(-1, 3)[:, [2, 0, 1]].T
        parts = [(a, ab, da), (ab, b, bd), (da, bd, d), (bd, da, ab)]
        faces = np.stack([np.stack(corners, axis=1) for corners in parts], axis=1).reshape(-1, 3)
        x = np.concatenate([x, middle])
    return x, faces


def unit_geosphere(frequency: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an icosahedron with every edge cut in ``frequency`` equal arcs. A point with barycentric weights w on a
    face is pushed out along the sum of sin(w_i t) v_i, t the angle of an edge, which spreads points more evenly than
    projection. Edges are computed once, so that neighbouring faces agree to the bit."""
    n = frequency
    corners, base = icosahedron()
    c = Connectivity(base, 12)
    angle = np.arccos(corners[0] @ corners[1])
    t = np.arange(1, n) / n
    blocks = [corners]
    for a, b in c.edges:
        blocks.append(np.sin((1 - t) * angle)[:, None] * corners[a] + np.sin(t * angle)[:, None] * corners[b])
    i, j = (grid.ravel() for grid in np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"))
    inner = (i > 0) & (j > 0) & (i + j < n)
    number_of_edge = {tuple(edge): 12 + k * (n - 1) for k, edge in enumerate(c.edges.tolist())}
    first_inner = 12 + len(c.edges) * (n - 1)

    def along(a: int, b: int) -> np.ndarray:
        """Return vertices from corner a to corner b, both included."""
        start = number_of_edge[(min(a, b), max(a, b))]
        steps = np.arange(start, start + n - 1)
        return np.concatenate([[a], steps if a < b else steps[::-1], [b]])

    all_faces = []
    up_i, up_j = (grid.ravel() for grid in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    up = up_i + up_j < n
    down = up_i + up_j < n - 1
    for k, (a, b, d) in enumerate(base.tolist()):
        weights = np.stack([n - i - j, i, j], axis=1)[inner] / n
        blocks.append(np.sin(weights * angle) @ corners[[a, b, d]])
        number = np.full((n + 1, n + 1), -1)
        n_inner = int(inner.sum())
        number[i[inner], j[inner]] = first_inner + k * n_inner + np.arange(n_inner)
        number[np.arange(n + 1), 0] = along(a, b)
        number[0, np.arange(n + 1)] = along(a, d)
        number[np.arange(n, -1, -1), np.arange(n + 1)] = along(b, d)
        p, q = up_i[up], up_j[up]
        all_faces.append(np.stack([number[p, q], number[p + 1, q], number[p, q + 1]], axis=1))
        p, q = up_i[down], up_j[down]
        all_faces.append(np.stack([number[p + 1, q], number[p + 1, q + 1], number[p, q + 1]], axis=1))
    x = np.concatenate(blocks)
    return x / np.linalg.norm(x, axis=1)[:, None], np.concatenate(all_faces).astype(np.int32)


def torus(major_radius: float, minor_radius: float, n_major: int, n_minor: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a torus round the z axis of rings of ``n_minor`` vertices, each turned by (n_major // 2) / n_major of a
    step: the last ring meets the first without a seam."""
    i, j = np.meshgrid(np.arange(n_major), np.arange(n_minor), indexing="ij")
    half = n_major // 2
    u = 2 * np.pi * i / n_major
    v = 2 * np.pi * (j + i * (half / n_major)) / n_minor
    rho = major_radius + minor_radius * np.cos(v)
    x = np.stack([rho * np.cos(u), rho * np.sin(u), minor_radius * np.sin(v)], axis=-1).reshape(-1, 3)

    def number(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return np.asarray((i % n_major) * n_minor + (j + (i // n_major) * half) % n_minor)

    # The vertex j of the next ring lies between j and j + 1 of this one.
    first = np.stack([number(i, j), number(i + 1, j), number(i, j + 1)], axis=-1)
    second = np.stack([number(i, j + 1), number(i + 1, j), number(i + 1, j + 1)], axis=-1)
    return x, np.stack([first, second], axis=2).reshape(-1, 3).astype(np.int32)


def cylinder(
    radius: float, length: float, n_around: int, n_along: int, periodic: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return an open tube round the z axis, ``n_along + 1`` rings of ``n_around`` vertices, every other ring turned; if
    periodic, the last ring is the first."""
    i, j = np.meshgrid(np.arange(n_along + (not periodic)), np.arange(n_around), indexing="ij")
    angle = 2 * np.pi * (j + 0.5 * (i % 2)) / n_around
    z = length * (i / n_along - 0.5)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=-1).reshape(-1, 3)
    return x, _staggered(n_along, n_around, n_around) % np.int32(len(x))


def flat_sheet(
    nx: int, ny: int, spacing: float, along_x: bool = False, along_y: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return a sheet z = 0 of equilateral triangles, ``ny`` rows of ``nx`` vertices, every other row shifted; it may be
    closed along axes."""
    i, j = np.meshgrid(np.arange(ny), np.arange(nx), indexing="ij")
    x = np.zeros((ny * nx, 3))
    x[:, 0] = (spacing * (j + 0.5 * (i % 2))).ravel()
    x[:, 1] = (spacing * np.sqrt(0.75) * i).ravel()
    x -= 0.5 * (x.min(axis=0) + x.max(axis=0))
    return x, _staggered(ny - (not along_y), nx - (not along_x), nx) % np.int32(len(x))


def _staggered(n_bands: int, n_cells: int, row: int) -> np.ndarray:
    """Return faces between rows of ``row`` vertices, odd ones shifted half a step forward, closed on themselves with
    ``n_cells == row``; anticlockwise for rows running in +x and stacked in +y."""
    i, j = np.meshgrid(np.arange(n_bands), np.arange(n_cells), indexing="ij")
    a, b = i * row + j, i * row + (j + 1) % row
    c, d = a + row, b + row
    odd = (i % 2 == 1)[..., None]
    # Below an odd row the vertex above lies between a and b; above it, between the next row's c and d.
    first = np.where(odd, np.stack([a, d, c], axis=-1), np.stack([a, b, c], axis=-1))
    second = np.where(odd, np.stack([a, b, d], axis=-1), np.stack([b, d, c], axis=-1))
    return np.stack([first, second], axis=2).reshape(-1, 3).astype(np.int32)


def red_cell_half_thickness(rho: np.ndarray) -> np.ndarray:
    """Return the height of the discocyte over its middle plane at distance ``rho`` from its axis, in radii."""
    c0, c2, c4 = RED_CELL_THICKNESS
    square = rho**2
    return 0.5 * np.sqrt(np.maximum(1.0 - square, 0.0)) * (c0 + c2 * square + c4 * square**2)


def red_blood_cell(radius: float, sphere: np.ndarray) -> np.ndarray:
    """Move the vertices of a unit sphere onto the discocyte by their azimuth. The polar angle goes to the arc length s
    along the profile with ds/dtheta = C (r / sin theta)^(1/2), an equation that separates. It is the geometric mean of
    the conformal map, whose triangles are small in the dimple, and an even spread along the meridian."""
    # u^2 instead of the angle takes away the inverse square root at the axis on both sides.
    u = np.linspace(0.0, np.sqrt(np.pi / 2), PROFILE_POINTS)
    phi = u**2
    rho = np.sin(phi)
    z = red_cell_half_thickness(rho)
    arc = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(rho), np.diff(z)))])
    mid_rho = np.sin((0.5 * (u[1:] + u[:-1])) ** 2)
    left = np.concatenate([[0.0], np.cumsum(np.diff(arc) / np.sqrt(mid_rho))])
    right = np.concatenate([[0.0], np.cumsum(np.diff(phi) / np.sqrt(mid_rho))])
    # sin(theta) and r = sin(phi) over the radius take the same values on the grid u, hence one mid_rho for both.
    height = np.abs(sphere[:, 2])
    theta = np.arctan2(np.hypot(sphere[:, 0], sphere[:, 1]), height)
    target = np.interp(np.interp(np.sqrt(theta), u, right) / right[-1], left / left[-1], u) ** 2
    new_rho = np.sin(target)
    azimuth = np.arctan2(sphere[:, 1], sphere[:, 0])
    x = np.stack([new_rho * np.cos(azimuth), new_rho * np.sin(azimuth), np.zeros(len(sphere))], axis=1)
    x[:, 2] = np.sign(sphere[:, 2]) * red_cell_half_thickness(new_rho)
    return radius * x
