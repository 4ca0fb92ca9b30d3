"""Layout: where the beads of a topology are in the arrays of a Context."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from medyanpy._kernels.beads.membrane import Geometry
from medyanpy._kernels.core.capacity import Room
from medyanpy._tools.images import Box, box_lengths
from medyanpy.core.columns import BEADS, Column
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block
from medyanpy.core.triangulation import Triangulation
from medyanpy.errors import ParameterError
from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.connectivity import Connectivity
from medyanpy.topology import Topology

if TYPE_CHECKING:
    from medyanpy._kernels.jumps.pools import PoolCounts
    from medyanpy.beads import InTrianglePoints, Membrane, OrientedBeads
    from medyanpy.pools import MoleculePool

__all__ = ["Layout"]

# Relative to a length: how much more than half of the box it must leave. Rounding must not choose between two images.
_MARGIN = 1e-7


class Layout:
    """Order of the beads of a topology in the arrays of a Context: vertices, other Cartesian beads, points. The last of
    the Cartesian beads are oriented beads and then directors. Each handle has a block of places: first those of its
    beads, then inactive rows.

    It describes the topology as it was when this was made: of an edit there is one before and one after.

    Attributes
    ----------
    topology : Topology
    threads : int
        For which kernels must have work space.
    n, n_vertices, n_cartesian, n_points : int
        Places, those of inactive rows included. The first `n_cartesian` are of Cartesian beads, the first `n_vertices`
        of them of vertices of membranes.
    first_oriented, n_oriented : int
        The oriented beads are those from place `first_oriented` on.
    directors : slice
        The beads that are directions, without a place in space.
    box : (3,) float array, nm
        Lengths of the periodic box, 0 in open directions: the one array of it, which kernels share. It is part of the
        state; `engine/setting.py`, edits and kernels of jumps write it, and virials for a moment.
    triangulation : Triangulation
        The triangles of all membranes as they are now, by place.
    order : (n,) int32 array
        Row (topology number) of every place.
    rank : (n,) int32 array
        The inverse: place of every row.
    ids : (n,) int64 array
        Permanent ids by place, -1 of inactive rows.
    """

    def __init__(self, topology: Topology, threads: int = 1, box: Box | None = None) -> None:
        self.topology: Topology = topology
        self.box: np.ndarray = box_lengths(box)
        #: Width that the box must have (nm), by what asks for it, and why.
        self._widths: dict[str, tuple[float, str]] = {}
        #: (1,) nm; no box may be smaller in a periodic direction. Numbers that change later change it, for kernels too.
        self.least_width: np.ndarray = np.zeros(1)
        self.threads: int = threads
        rank = ["", *topology.row_counts].index

        def place(handle: Handle) -> tuple[int, int]:
            # Handles with columns of their own follow each other: rows of a column are places, counted from its first.
            # Constraints, which have no beads, keep their place among the others: flows are in this order.
            is_other = handle.kind.block in (Block.OTHERS, Block.NONE)
            return (Block.OTHERS, rank(handle.kind.rows_of)) if is_other else (handle.kind.block, 0)

        #: Handles in internal order.
        self.handles: list[Handle] = sorted(topology.handles, key=place)
        vertices = [cast("Membrane", h) for h in self.handles if h.kind.block is Block.VERTICES]
        points = [cast("InTrianglePoints", h) for h in self.handles if h.kind.block is Block.POINTS]
        #: Handles of oriented beads, in topology order.
        self.oriented: list[OrientedBeads] = list(topology.oriented_handles)
        self.n: int = topology.n_beads

        def room(group: Sequence[Handle]) -> int:
            return sum(handle.capacity for handle in group)

        self.n_vertices: int = room(vertices)
        self.n_points: int = room(points)
        self.n_cartesian: int = self.n - self.n_points
        directions = room([h for h in self.handles if h.kind.block is Block.DIRECTORS])
        self.directors: slice = slice(self.n_cartesian - directions, self.n_cartesian)
        self.n_oriented: int = room(self.oriented)
        self.first_oriented: int = self.directors.start - self.n_oriented
        ends = np.cumsum([0, *(h.capacity for h in self.handles)]).tolist()
        #: Places of every handle: the first, behind those of its beads, and behind those of its room.
        self._bounds: dict[Handle, tuple[int, int, int]] = {
            h: (a, a + len(h), b) for h, a, b in zip(self.handles, ends, ends[1:], strict=False)
        }
        #: Numbers, within their handle, of the points at each place.
        self._sorted = {h: np.argsort(h.triangles, kind="stable") for h in points}
        self.order: np.ndarray = np.concatenate([self._order_of(h) for h in self.handles])
        self.rank: np.ndarray = np.empty(self.n, np.int32)
        self.rank[self.order] = np.arange(self.n, dtype=np.int32)
        #: Whether any row is inactive, or any id is another number than the row.
        self.has_room: bool = topology.has_room
        self.is_renumbered: bool = any(h._ids is not None for h in self.handles)
        #: For the `of` of columns: the place of the bead with the first row, how many rows there are, and these in the
        #: order in which users see them.
        self._first_places = {BEADS: 0} | {h.kind.rows_of: self._bounds[h][0] for h in reversed(self.handles)}
        self._n_rows = {BEADS: self.n} | topology.row_counts
        self._shown_rows = {BEADS: self.rank}
        #: The arrays themselves, by the name of each column in memory; a store makes them.
        self.arrays: dict[str, np.ndarray] = {}
        #: Columns of momenta beside m v that have rows, in the order of `World.momenta`.
        self.momenta: tuple[Column, ...] = tuple(
            c for c in topology.columns if c.is_momentum and c.of != BEADS and self.n_rows(c.of)
        )
        #: Which beads are there, where they may come and go; the store makes it.
        self.room: Room | None = None
        #: Counts of the pools of the system, likewise.
        self.pools: dict[MoleculePool, PoolCounts] = {}
        self.triangulation: Triangulation = Triangulation({m: self.slice_of(m).start for m in vertices})
        self._geometries: dict[Membrane, Geometry] = {}

    @property
    def is_periodic(self) -> bool:
        return bool(self.box.any())

    @property
    def is_on_surfaces(self) -> bool:
        """True if any beads are on surfaces."""
        return any(handle.kind.is_on_surface for handle in self.handles)

    def expect_width(self, what: str, reach: float, said: str = "") -> None:
        """Demand, from now on, a box of twice the distance `reach`, nm, over which `what` acts on nearest images alone.
        Messages begin with `said`.

        Raises
        ------
        ParameterError
            The box is smaller.
        """
        self._widths[what] = 2.0 * reach, said or f"{what} reaches"
        self._take_widths()
        self.check_widths(self.box)

    def expect_lengths(self, what: str, noun: str, lengths: np.ndarray, numbers: np.ndarray | None = None) -> None:
        """Demand the box for terms that are so long at rest, or at most, (n,) nm, and have these numbers, or those from
        0."""
        self._widths.pop(what, None)
        self._take_widths()
        if len(lengths):
            k = int(np.argmax(lengths))
            number = k if numbers is None else numbers[k]
            # Of just half of the box, what is held at its length by rounding alone has two nearest images.
            self.expect_width(what, float(lengths[k]) * (1.0 + _MARGIN), f"{what}: {noun} {number} has a length of")

    def _take_widths(self) -> None:
        self.least_width[0] = max((width for width, _ in self._widths.values()), default=0.0)

    def check_widths(self, box: np.ndarray) -> None:
        """Refuse a box, (3,) nm, that is too small for what acts in it; ParameterError."""
        for width, said in self._widths.values():
            for c in np.flatnonzero(box):
                if box[c] < width:
                    raise ParameterError(
                        f"{said} {0.5 * width:.6g} nm, and the box is {box[c]:.6g} nm long along {'xyz'[c]} "
                        f"but must be >= {width:.8g}, twice that: beads would meet two images of each other"
                    )

    @property
    def oriented_places(self) -> slice:
        """The places of the oriented beads."""
        return slice(self.first_oriented, self.first_oriented + self.n_oriented)

    def _order_of(self, handle: Handle) -> np.ndarray:
        """Return the rows of one handle as they follow each other in memory.

        Points start sorted by triangle: neighbours in memory then read and push the same vertices, which spares
        a third of the time of G. No result depends on it: sums over points have no order, and random numbers
        belong to the permanent id of a bead.
        """
        rows = np.append(self.in_order(handle, handle.beads), handle._inactive)
        return rows.astype(np.int32)

    def numbers_of_membranes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the membrane of each vertex and each point, counted from 0, (n_vertices,) and (n_points,) int32, by
        place."""
        number: dict[Handle, int] = {h: k for k, h in enumerate(self.handles) if h.kind.block is Block.VERTICES}
        out = np.zeros(self.n, np.int32)
        for handle in (*number, *self._sorted):
            out[self.block_of(handle)] = number[handle.membrane if handle in self._sorted else handle]
        return out[: self.n_vertices], out[self.n_cartesian :]

    @property
    def ids(self) -> np.ndarray:
        out = np.full(self.n, -1, np.int64)
        for handle in self.handles:
            out[self.slice_of(handle)] = self.in_order(handle, handle.ids)
        return out

    def internal(self, beads: np.ndarray) -> np.ndarray:
        """Return places of beads given by their topology numbers."""
        places: np.ndarray = self.rank[beads]
        return places

    def slice_of(self, handle: Handle) -> slice:
        """Return the places of a handle's beads: they are contiguous."""
        return slice(*self._bounds[handle][:2])

    def block_of(self, handle: Handle) -> slice:
        """Return the places of a handle's beads, and behind them those of inactive rows."""
        start, _, end = self._bounds[handle]
        return slice(start, end)

    def places_by_row(self, handle: Handle) -> np.ndarray:
        """Return the places (m,) int32 of a handle's beads and of its inactive rows, in ascending order of rows. Jumps
        go over these, so that it does not matter where in memory beads are."""
        return self.internal(np.sort(self.order[self.block_of(handle)]))

    def first_place(self, of: str) -> int:
        """Return the place of the bead that has the first row in the columns of an `of`."""
        return self._first_places.get(of, 0)

    def n_rows(self, of: str) -> int:
        """Return how many rows the columns of an `of` have."""
        return self._n_rows.get(of, 0)

    def rows_of(self, handle: Handle, of: str = "") -> slice:
        """Return a handle's rows in the columns of an `of`, or in those that not all beads have, in the order of
        places."""
        places, first = self.slice_of(handle), self.first_place(of or handle.kind.rows_of)
        return slice(places.start - first, places.stop - first)

    def shown_rows(self, of: str) -> np.ndarray:
        """Return rows of the columns of an `of`, in topology order."""
        if of not in self._shown_rows:
            first = self.first_place(of)
            self._shown_rows[of] = np.argsort(self.order[first : first + self.n_rows(of)], kind="stable")
        return self._shown_rows[of]

    def number_of(self, column: Column) -> int:
        """Return the number of a column of momenta in `World.momenta`."""
        return self.momenta.index(column)

    @property
    def momenta_sizes(self) -> list[int]:
        """Numbers in each column of momenta, in the order of `World.momenta`."""
        return [self.n_rows(column.of) * column.width for column in self.momenta]

    def in_order(self, handle: Handle, values: np.ndarray) -> np.ndarray:
        """Return a handle's numbers, one for each of its beads, in the order of their places."""
        return values[self._sorted[handle]] if handle in self._sorted else values

    def connectivity(self, membrane: "Membrane") -> TriangleMesh | Connectivity:
        """Return faces, edges and neighbours of a membrane as they are now, by the numbers of its own vertices."""
        return self.triangulation.connectivity(membrane)

    def geometry(self, membrane: "Membrane") -> Geometry:
        """Return what is measured of a membrane as its vertices move: one for all forces on it."""
        if membrane not in self._geometries:
            self._geometries[membrane] = Geometry(
                self.slice_of(membrane).start, membrane.first_face, len(membrane), len(membrane.mesh.faces),
                self.triangulation.triangles,
            )  # fmt: skip
        return self._geometries[membrane]

    def gather(self, of: Callable[[Handle], float | np.ndarray], zero: Collection[Handle] = ()) -> np.ndarray:
        """Return a number of every bead, `of` its handle, by place; 0 for some handles, and for inactive rows."""
        out = np.zeros(self.n)
        for handle in self.handles:
            if handle not in zero:
                values = np.broadcast_to(of(handle), (len(handle),))
                out[self.slice_of(handle)] = self.in_order(handle, values)
        return out
