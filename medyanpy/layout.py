"""Layout: where the beads of a topology are in the arrays of a Context."""

from collections.abc import Collection

import numpy as np

from medyanpy._kernels.membrane import Geometry
from medyanpy.beads import Directors, InTrianglePoints, Membrane, OrientedBeads
from medyanpy.columns import BEADS, Column
from medyanpy.handles import Handle
from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.connectivity import Connectivity
from medyanpy.topology import Topology
from medyanpy.triangulation import Triangulation

__all__ = ["Layout"]


class Layout:
    """Where the beads of a topology are in the arrays of a Context: vertices, other Cartesian beads, the last of which
    are oriented beads and then directors, and points.

    Attributes
    ----------
    topology : Topology
    threads : int
        For which kernels must have work space.
    n, n_vertices, n_cartesian, n_points : int
        The first `n_cartesian` beads are Cartesian, the first `n_vertices` of them vertices of membranes.
    first_oriented, n_oriented : int
        The oriented beads are those from place `first_oriented` on, in topology order.
    directors : slice
        The beads that are directions, without a place in space.
    triangulation : Triangulation
        The triangles of all membranes as they are now, by place.
    order : (n,) int32 array
        Topology number of every bead.
    rank : (n,) int32 array
        The inverse: place of every topology bead.
    """

    def __init__(self, topology: Topology, threads: int = 1) -> None:
        self.topology = topology
        self.threads = threads
        # Those of now: a topology may be edited while this is still looked at.
        self._in_topology_order = handles = topology.handles
        vertices = [h for h in handles if isinstance(h, Membrane)]
        points = [h for h in handles if isinstance(h, InTrianglePoints)]
        directors = [h for h in handles if isinstance(h, Directors)]
        #: Handles of oriented beads, in topology order.
        self.oriented = oriented = list(topology.oriented_handles)
        others = [h for h in handles if not isinstance(h, Membrane | InTrianglePoints | Directors | OrientedBeads)]
        # Those with columns of their own follow each other: rows of a column are places, counted from its first.
        others.sort(key=lambda h: ["", *topology.row_counts].index(h.rows_of()))
        #: Handles in internal order.
        self.handles = vertices + others + oriented + directors + points
        self.n = topology.n_beads
        self.n_vertices = sum(map(len, vertices))
        self.n_points = sum(map(len, points))
        self.n_cartesian = self.n - self.n_points
        self.directors = slice(self.n_cartesian - sum(map(len, directors)), self.n_cartesian)
        self.n_oriented = sum(map(len, oriented))
        self.first_oriented = self.directors.start - self.n_oriented
        self._start = dict(zip(self.handles, np.cumsum([0, *map(len, self.handles)]).tolist(), strict=False))
        self.order = np.concatenate([self._order_of(h) for h in self.handles])
        self.rank = np.empty(self.n, np.int32)
        self.rank[self.order] = np.arange(self.n, dtype=np.int32)
        #: By the `of` of columns: the place of the bead with the first row, and rows in topology order, once asked for.
        self._first_places = {BEADS: 0} | {h.rows_of(): self._start[h] for h in reversed(self.handles)}
        self._shown_rows = {BEADS: self.rank}
        #: The arrays themselves, by the name of each column in memory; a store makes them.
        self.arrays: dict[str, np.ndarray] = {}
        #: Columns of momenta beside m v that have rows, in the order of `World.momenta`.
        self.momenta = tuple(
            c for c in topology.columns if c.is_momentum and c.of != BEADS and topology.row_counts.get(c.of)
        )
        self.triangulation = Triangulation({membrane: self.slice_of(membrane).start for membrane in vertices})
        self._geometries: dict[Membrane, Geometry] = {}

    @property
    def oriented_places(self) -> slice:
        """The places of the oriented beads."""
        return slice(self.first_oriented, self.first_oriented + self.n_oriented)

    @staticmethod
    def _order_of(handle) -> np.ndarray:
        """The beads of one handle as they follow each other.

        Points start sorted by triangle: neighbours in memory then read and push the same vertices, which spares
        a third of the time of G. No result depends on it: sums over points have no order, and random numbers
        belong to the permanent number of a bead.
        """
        if isinstance(handle, InTrianglePoints):
            return (handle.first_bead + np.argsort(handle.triangles, kind="stable")).astype(np.int32)
        return np.arange(handle.first_bead, handle.first_bead + len(handle), dtype=np.int32)

    def internal(self, beads: np.ndarray) -> np.ndarray:
        """Places of beads given by their topology numbers."""
        return self.rank[beads]

    def slice_of(self, handle) -> slice:
        """The places of a handle's beads: they are contiguous."""
        start = self._start[handle]
        return slice(start, start + len(handle))

    def first_place(self, of: str) -> int:
        """The place of the bead that has the first row in the columns of an `of`."""
        return self._first_places.get(of, 0)

    def rows_of(self, handle) -> slice:
        """A handle's rows in the columns that not all beads have, in the order of places."""
        places, first = self.slice_of(handle), self.first_place(handle.rows_of())
        return slice(places.start - first, places.stop - first)

    def shown_rows(self, of: str) -> np.ndarray:
        """Rows of the columns of an `of`, in topology order."""
        if of not in self._shown_rows:
            beads = [np.arange(0), *(h.beads for h in self._in_topology_order if h.rows_of() == of)]
            self._shown_rows[of] = self.rank[np.concatenate(beads)] - self.first_place(of)
        return self._shown_rows[of]

    def number_of(self, column: Column) -> int:
        """Of a column of momenta, in `World.momenta`."""
        return self.momenta.index(column)

    def in_order(self, handle, values: np.ndarray) -> np.ndarray:
        """A handle's numbers, one for each of its beads, in the order of their places."""
        if not isinstance(handle, InTrianglePoints):
            return values
        return values[self.order[self.slice_of(handle)] - handle.first_bead]

    def connectivity(self, membrane: Membrane) -> TriangleMesh | Connectivity:
        """Faces, edges and neighbours of a membrane as they are now, by the numbers of its own vertices."""
        return self.triangulation.connectivity(membrane)

    def geometry(self, membrane: Membrane) -> Geometry:
        """What is measured of a membrane as its vertices move: one for all forces on it."""
        if membrane not in self._geometries:
            self._geometries[membrane] = Geometry(
                self.slice_of(membrane).start, membrane.first_face, len(membrane), len(membrane.mesh.faces),
                self.triangulation.triangles,
            )  # fmt: skip
        return self._geometries[membrane]

    def gather(self, name: str, zero: Collection[Handle] = ()) -> np.ndarray:
        """A per-bead number of every handle, by place; 0 of some handles."""
        out = np.zeros(self.n)
        for handle in self.handles:
            if handle not in zero:
                values = np.broadcast_to(getattr(handle, name), (len(handle),))
                out[self.slice_of(handle)] = self.in_order(handle, values)
        return out
