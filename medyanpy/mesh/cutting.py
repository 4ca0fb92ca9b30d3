"""Separation of sheets that share an edge or a vertex although a surface cannot.

After the cutting operation of A. Guéziec, G. Taubin, F. Lazarus, W. Horn, "Cutting and stitching: converting sets of
polygons to manifold surfaces", IEEE Trans. Vis. Comput. Graph. 7, 136 (2001): no face is moved or dropped; the faces at
an edge are joined in pairs, and a vertex is copied once for every fan of faces that the joins leave.
"""

from itertools import combinations

import numpy as np

from medyanpy.mesh.connectivity import Connectivity
from medyanpy.mesh.geometry import area_vectors

# At an edge with k faces k(k-1)/2 pairs are weighed. More faces than this round one edge are not sheets that touch but
# a spoiled file: there every face is cut loose.
MAX_FACES_AT_EDGE = 64


def separate(x: np.ndarray, faces: np.ndarray, done: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Cut edges with more than two faces and bow-tie vertices; counts go to ``done``."""
    c = Connectivity(faces, len(x))
    left, right = c._pairs
    branching = np.flatnonzero(c.edge_counts > 2)
    joined: list[tuple[int, int]] = []
    if len(branching):
        joined = _join_at_branching_edges(x, c, branching)
        pairs = np.array(joined, dtype=left.dtype).reshape(-1, 2)
        left, right = np.concatenate([left, pairs[:, 0]]), np.concatenate([right, pairs[:, 1]])
        n_loose = int(c.edge_counts[branching].sum()) - 2 * len(joined)
        done["branching_edges_cut"] = len(branching)
        done["border_edges_made"] = n_loose

    fan = c.fan_of_corner(left, right)
    old = faces.ravel()
    _, first, fan = np.unique(fan, return_index=True, return_inverse=True)
    vertex_of_fan = old[first]
    # The fan with the lowest corner keeps the vertex, every further one gets a copy.
    order = np.lexsort((first, vertex_of_fan))
    repeated = np.zeros(len(first), dtype=bool)
    repeated[order[1:]] = vertex_of_fan[order[1:]] == vertex_of_fan[order[:-1]]
    number = vertex_of_fan.astype(np.int32)
    number[repeated] = len(x) + np.arange(int(repeated.sum()), dtype=np.int32)
    x = np.concatenate([x, x[vertex_of_fan[repeated]]])
    faces = number[fan].reshape(-1, 3)
    done["vertices_split"] = int(repeated.sum())
    if len(branching):
        x, faces = _subdivide_doubled_edges(x, faces, c, branching, dict(joined), done)
    return x, faces


def _join_at_branching_edges(x: np.ndarray, c: Connectivity, branching: np.ndarray) -> list[tuple[int, int]]:
    """Choose pairs of half-edges to join at edges with more than two faces, the flattest of like orientation first, but
    none that makes the surface one-sided: a union-find keeps which patch lies which way round."""
    from networkx.utils import UnionFind

    normals = area_vectors(x, c.faces)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    candidates = []
    for e in branching:
        ring = c.around(e).tolist()
        if len(ring) > MAX_FACES_AT_EDGE:
            continue
        for h, g in combinations(ring, 2):
            same = bool(c.tails[h] == c.tails[g])
            flatness = float(normals[h // 3] @ normals[g // 3]) * (-1 if same else 1)
            candidates.append((same, -flatness, h, g))
    candidates.sort()

    sides, joined = UnionFind(), []
    taken: set[int] = set()
    for same, _, h, g in candidates:
        if h in taken or g in taken:
            continue
        up, down = c.side_of_face[h // 3].tolist()
        other_up, other_down = c.side_of_face[g // 3][:: -1 if same else 1].tolist()
        if sides[up] == sides[other_down]:
            continue
        sides.union(up, other_up)
        sides.union(down, other_down)
        taken.update((h, g))
        joined.append((h, g))
    return joined


def _subdivide_doubled_edges(
    x: np.ndarray, faces: np.ndarray, before: Connectivity, branching: np.ndarray, partner: dict[int, int],
    done: dict[str, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Give different edges between the same two vertices a vertex in the middle, all but the first. They remain where
    both ends of a cut edge stay connected some other way round, as on a neck of two edges."""
    half_edges = np.concatenate([before.around(e) for e in branching])
    triangles = faces.tolist()
    points: list[np.ndarray] = []
    home = {int(h): int(h) // 3 for h in half_edges}
    ends = {}
    for h in home:
        face, i = triangles[h // 3], h % 3
        ends[h] = frozenset((face[(i + 1) % 3], face[(i + 2) % 3]))
    on_face: dict[int, list[int]] = {}
    groups: dict[frozenset[int], list[tuple[int, ...]]] = {}
    second = set(partner.values())
    for h in sorted(home):
        on_face.setdefault(h // 3, []).append(h)
        if h not in second:
            groups.setdefault(ends[h], []).append((h, partner[h]) if h in partner else (h,))
    n = 0
    for edge, members in groups.items():
        for group in members[1:]:
            middle = len(x) + len(points)
            a, b = sorted(edge)
            points.append(0.5 * (x[a] + x[b]))
            n += 1
            for h in group:
                k = home[h]
                face = triangles[k]
                i = next(j for j in range(3) if face[j] not in edge)
                apex, tail, head = face[i], face[(i + 1) % 3], face[(i + 2) % 3]
                triangles[k] = [apex, tail, middle]
                triangles.append([apex, middle, head])
                # The side from head to apex is now on the new face.
                for other in on_face[h // 3]:
                    if other != h and home[other] == k and ends[other] == frozenset((head, apex)):
                        home[other] = len(triangles) - 1
    if n:
        done["edges_subdivided"] = n
        x = np.concatenate([x, np.array(points)])
    return x, np.array(triangles, dtype=np.int32)
