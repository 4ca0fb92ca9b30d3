"""Connectivity of a set of triangles: half-edges, edges, neighbours, fans, components.

Numbering used throughout the package: *corner* ``3 * face + i`` is vertex i of a face, and the half-edge of
the same number is the side of that face opposite the corner, running from vertex i+1 to vertex i+2 (mod 3).
"""

from functools import cached_property

import numpy as np

MAX_FACES = (2**31 - 1) // 3  # Corner numbers are int32 everywhere (kernels included): 3 * faces must stay below 2^31.


def read_only(array: np.ndarray) -> np.ndarray:
    """Return the array itself, locked against writing."""
    array.flags.writeable = False
    return array


class Connectivity:
    """Tables of a triangulation that do not depend on coordinates, each built when first asked for. Faces (F, 3) int32
    may be manifold or not; indices are in range and differ within a face. ``opposite_corners`` and quantities from it
    leave out edges that do not have exactly two faces."""

    def __init__(self, faces: np.ndarray, n_vertices: int) -> None:
        self.faces = faces
        self.n_vertices: int = int(n_vertices)
        self.n_faces: int = len(faces)

    @cached_property
    def tails(self) -> np.ndarray:
        """Vertex where each half-edge starts, (3F,) int32."""
        return np.ascontiguousarray(self.faces[:, [1, 2, 0]]).ravel()

    @cached_property
    def heads(self) -> np.ndarray:
        """Vertex where each half-edge ends, (3F,) int32."""
        return np.ascontiguousarray(self.faces[:, [2, 0, 1]]).ravel()

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Half-edges sorted by (edge, number), where each edge's run starts (E+1,), and the edges (E, 2)."""
        low = np.minimum(self.tails, self.heads)
        key = low * np.int64(self.n_vertices) + np.maximum(self.tails, self.heads)
        bits = int(3 * self.n_faces).bit_length()
        if self.n_vertices**2 < 2 ** (63 - bits):
            # Edge and half-edge number fit one integer: sorting values is twice as fast as argsort.
            key <<= bits
            key |= np.arange(len(key), dtype=np.int64)
            key.sort()
            order = (key & ((1 << bits) - 1)).astype(np.int32)
            key >>= bits
        else:
            order = np.argsort(key, kind="stable").astype(np.int32)
            key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        edges = np.empty((len(first), 2), dtype=np.int32)
        edges[:, 0], edges[:, 1] = np.divmod(key[first], self.n_vertices)
        return order, np.append(first, len(key)), edges

    @property
    def half_edges_by_edge(self) -> np.ndarray:
        """Half-edges sorted by edge, then by number, (3F,) int32."""
        return self._groups[0]

    @property
    def edge_starts(self) -> np.ndarray:
        """Starts of edges, (E+1,) int64: edge e has ``half_edges_by_edge[edge_starts[e]:edge_starts[e + 1]]``."""
        return self._groups[1]

    def around(self, edge: int) -> np.ndarray:
        """Return the half-edges of an edge."""
        return self.half_edges_by_edge[self.edge_starts[edge] : self.edge_starts[edge + 1]]

    @cached_property
    def edges(self) -> np.ndarray:
        """Vertices of each edge, (E, 2) int32, lower first, sorted."""
        return read_only(self._groups[2])

    @cached_property
    def edge_counts(self) -> np.ndarray:
        """Number of faces at each edge, (E,) int64."""
        return np.diff(self.edge_starts)

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The two half-edges of every edge with exactly two faces."""
        first = self.edge_starts[:-1][self.edge_counts == 2]
        return self.half_edges_by_edge[first], self.half_edges_by_edge[first + 1]

    @cached_property
    def opposite_corners(self) -> np.ndarray:
        """Corner opposite the same edge in the face beyond it, (F, 3) int32, -1 where there is none."""
        opposite = np.full(3 * self.n_faces, -1, dtype=np.int32)
        a, b = self._pairs
        opposite[a], opposite[b] = b, a
        return read_only(opposite.reshape(-1, 3))

    @cached_property
    def neighbors(self) -> np.ndarray:
        """Face across the edge opposite each vertex, (F, 3) int32, -1 where there is none."""
        return read_only(self.opposite_corners // np.int32(3))

    @cached_property
    def edge_faces(self) -> np.ndarray:
        """Faces of each edge, (E, 2) int32, lower first; -1 in the second place at a border."""
        faces = np.full((len(self.edges), 2), -1, dtype=np.int32)
        first = self.edge_starts[:-1]
        faces[:, 0] = self.half_edges_by_edge[first] // 3
        two = self.edge_counts >= 2
        faces[two, 1] = self.half_edges_by_edge[first[two] + 1] // 3
        return read_only(faces)

    @cached_property
    def vertex_faces(self) -> tuple[np.ndarray, np.ndarray]:
        """Offsets (V+1,) int32 and corners (3F,) int32: vertex v has corners[offsets[v]:offsets[v + 1]]."""
        flat = self.faces.ravel()
        offsets = np.zeros(self.n_vertices + 1, dtype=np.int32)
        np.cumsum(np.bincount(flat, minlength=self.n_vertices), out=offsets[1:])
        corners = np.argsort(flat, kind="stable").astype(np.int32)
        return read_only(offsets), read_only(corners)

    @cached_property
    def same_direction(self) -> np.ndarray:
        """Mask (P,) of two-faced edges that both faces run through in the same direction."""
        a, b = self._pairs
        return np.asarray(self.tails[a] == self.tails[b])

    @cached_property
    def component_of_face(self) -> np.ndarray:
        """Connected component of each face (through shared edges), (F,) int32, numbered by lowest face."""
        a, b = self._pairs
        return read_only(first_appearance(connected(self.n_faces, a // 3, b // 3)))

    @cached_property
    def components(self) -> list[np.ndarray]:
        """Face indices of each component, ascending."""
        order = np.argsort(self.component_of_face, kind="stable").astype(np.int32)
        sizes = np.bincount(self.component_of_face)
        return [read_only(part) for part in np.split(order, np.cumsum(sizes)[:-1])]

    @cached_property
    def side_of_face(self) -> np.ndarray:
        """Component of each face as given and reversed, in the two-sheeted cover, (F, 2) int32. Faces of a component
        whose first columns agree are oriented alike; where both columns agree, it is one-sided."""
        a, b = self._pairs
        fa, fb = a // 3, b // 3
        flip = np.where(self.same_direction, 1, 0)
        labels = connected(
            2 * self.n_faces, np.concatenate([2 * fa, 2 * fa + 1]), np.concatenate([2 * fb + flip, 2 * fb + 1 - flip]),
        )
        return first_appearance(labels).reshape(-1, 2)

    def fan_of_corner(self, left: np.ndarray | None = None, right: np.ndarray | None = None) -> np.ndarray:
        """Find the fan of each corner, (3F,) int32: corners of one vertex joined through common edges, or through pairs
        (P,) of half-edges."""
        if left is None or right is None:
            order, starts = self.half_edges_by_edge, self.edge_starts
            inner = np.ones(len(order), dtype=bool)
            inner[starts[:-1]] = False
            right = order[inner]
            left = order[np.flatnonzero(inner) - 1]
        # Corner i+1 of the face sits at the tail of half-edge i, corner i+2 at its head.
        tail_left, head_left = _next_corner(left), _previous_corner(left)
        tail_right, head_right = _next_corner(right), _previous_corner(right)
        same = self.tails[left] == self.tails[right]
        return connected(
            3 * self.n_faces,
            np.concatenate([tail_left, head_left]),
            np.concatenate([np.where(same, tail_right, head_right), np.where(same, head_right, tail_right)]),
        )

    @cached_property
    def border_half_edges(self) -> np.ndarray:
        """Half-edges that have a face on one side only, (B,) int32, ascending."""
        return np.sort(self.half_edges_by_edge[self.edge_starts[:-1][self.edge_counts == 1]])

    @cached_property
    def borders(self) -> list[np.ndarray]:
        """Vertex loops of the borders of a checked surface, each from its lowest vertex in the direction of the border
        half-edges, sorted by that vertex."""
        border = self.border_half_edges
        if not len(border):
            return []
        import networkx as nx

        # Borders are short even where meshes are large.
        graph = nx.DiGraph()
        graph.add_edges_from(zip(self.tails[border].tolist(), self.heads[border].tolist(), strict=True))
        starts = sorted(min(loop) for loop in nx.weakly_connected_components(graph))
        # On a directed cycle a depth-first walk visits the vertices in the order of the cycle.
        walks = (nx.dfs_preorder_nodes(graph, start) for start in starts)
        return [read_only(np.fromiter(walk, dtype=np.int32)) for walk in walks]


def _next_corner(corner: np.ndarray) -> np.ndarray:
    return np.where(corner % 3 == 2, corner - 2, corner + 1)


def _previous_corner(corner: np.ndarray) -> np.ndarray:
    return np.where(corner % 3 == 0, corner + 2, corner - 1)


def sides_of(faces: np.ndarray) -> np.ndarray:
    """Return pairs of vertices (3F, 2) at the sides of faces, from each corner to the next; inner sides occur twice."""
    return np.stack([faces, np.roll(faces, -1, axis=1)], axis=-1).reshape(-1, 2).astype(np.int64)


def connected(n: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the component of each of n nodes joined by pairs; networkx takes minutes and gigabytes for large
    meshes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, right)), shape=(n, n)).tocsr()
    return np.asarray(connected_components(graph, directed=False)[1])


def first_appearance(labels: np.ndarray) -> np.ndarray:
    """Renumber labels 0, 1, ... in the order in which they first appear, int32."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]
