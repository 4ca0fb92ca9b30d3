"""The store: every array of one Context, by place in memory, and the program that runs on them. It knows no forces."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, cast

import numpy as np

from medyanpy._kernels.beads.box_edges import BoxEdges
from medyanpy._kernels.core.accumulate import Accumulator
from medyanpy._kernels.core.capacity import Room
from medyanpy._kernels.core.numerics import PURPOSES, normals
from medyanpy._kernels.core.program import Program
from medyanpy._kernels.core.triangles import Rejoined
from medyanpy._tools.images import Box, displacement, wrapped
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import array
from medyanpy.core.columns import ANGULAR_MOMENTA, BEADS, MATERIAL, SPECIES, SUBUNITS, Column
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block, Kind
from medyanpy.core.layout import Layout
from medyanpy.core.species import numbers_of
from medyanpy.errors import ParameterError, TopologyError, UnknownNameError
from medyanpy.pools import MoleculePool, Molecules
from medyanpy.topology import Topology

__all__ = ["Momenta", "Store", "frozen"]


class Momenta(NamedTuple):
    """Momenta beside m v: whose they are, by place, and (n, width) arrays."""

    places: slice
    p: np.ndarray
    mass: np.ndarray
    #: 0 where nothing moves.
    inverse_mass: np.ndarray


class Store:
    """Positions, velocities, masses and all other columns of the beads.

    Attributes
    ----------
    layout : Layout
        Which place in memory a bead has.
    arrays : dict of str to array
        All columns, by their names in memory; those that kernels know have attributes too.
    x, v : (n, 3) float arrays, nm and nm/s
        Of in-triangle points x is derived, and v in their plane.
    mass, inverse_mass : (n,) float arrays, pN s²/nm and its inverse
        The inverse is 0 for beads that are fixed; both are 0 in inactive rows.
    room : Room or None
        Where rows are inactive, or ids are other numbers than rows: which beads are there (`alive`, (n,) int8), and
        their `ids` (n,), which are state then.
    orientation : (m, 4) float array
        Unit quaternions of the oriented beads.
    spin : (m, 3) float arrays
        Angular momenta in the body frames.
    triangle, barycentric : (p,) int32 and (p, 2) float arrays
        Of the in-triangle points: faces of all membranes together, and the weights of their second and third corners.
    momenta : dict of Column to Momenta
        All momenta beside m v.
    held : int
        Number of constraints of a user's own.
    faces, opposite : (F, 3) int32 arrays
        Of all membranes: corners by place, and the corner opposite each across an edge.
    pools : dict of str to MoleculePool
        By name; ``layout.pools[pool].array`` are the counts of one, (cells, species).
    program : Program
        Runs operations on these arrays; it knows the step.
    """

    x: np.ndarray
    v: np.ndarray
    orientation: np.ndarray
    spin: np.ndarray
    triangle: np.ndarray
    barycentric: np.ndarray
    # Set where there is a room.
    alive: np.ndarray
    ids: np.ndarray
    next_id: np.ndarray

    #: Where there are species: the entry of the first of its handle in `of_the_living`, by place; -1 of other beads.
    table: np.ndarray | None = None

    def __init__(
        self, topology: Topology, threads: int, seed: int, box: Box | None = None,
        pools: Mapping[str, MoleculePool] | None = None,
    ) -> None:  # fmt: skip
        self.threads = threads
        self.seed = seed
        self.layout: Layout = Layout(topology, threads, box)
        layout = self.layout
        self.pools: dict[str, MoleculePool] = dict(pools or {})
        layout.pools = {pool: pool.bind(seed, k, layout) for k, pool in enumerate(self.pools.values())}
        self.held: int = sum(cast(Any, h).count for h in layout.handles if h.kind.block is Block.NONE)
        self.arrays: dict[str, np.ndarray] = {c.array: c.empty(layout.n_rows(c.of)) for c in topology.columns}
        layout.arrays = self.arrays
        #: Handles with each of the columns that only some have.
        self._having: dict[Column, list[Handle]] = {c: [] for c in topology.columns}
        for handle in layout.handles:
            for column in handle.kind.columns:
                if column not in Kind.columns:
                    self._having[column].append(handle)
        self.x, self.v, self.orientation, self.spin, self.triangle, self.barycentric = (
            self.arrays[name] for name in ("x", "v", "orientation", "spin", "triangle", "barycentric")
        )
        self.mass: np.ndarray = layout.gather(lambda h: h.mass)
        self.inverse_mass: np.ndarray = np.divide(1.0, self.mass, out=np.zeros(layout.n), where=self.mass > 0.0)
        for handle in layout.handles:
            self.inverse_mass[layout.slice_of(handle)][layout.in_order(handle, handle.kind.fixed_beads)] = 0.0
        self._make_room()
        layout.room = self.room
        self.momenta: dict[Column, Momenta] = {column: self._momenta(column) for column in layout.momenta}
        self.faces: np.ndarray = layout.triangulation.faces
        self.opposite: np.ndarray = layout.triangulation.opposite
        #: Other changes of the state: which beads are there, and which vertices are neighbours in triangles.
        self.rejoined: Rejoined | None = None
        if layout.topology.membranes:
            self.rejoined = Rejoined(layout.triangulation.triangles, self.room)
        self.membranes_move: bool = any(not p.membrane.fixed for p in topology.point_handles)
        moving = self.membranes_move
        self.program: Program = self.make_program(
            self.v, self.mass, self.inverse_mass, [(m.p, m.inverse_mass) for m in self.momenta.values()]
        )
        #: Number of arrays that follow which beads are there, whatever the letters.
        self._followed = 0
        if self.room is not None:
            self.follow(self.mass, self.mass_of_the_living, 0.0)
            self.follow(self.inverse_mass, self.inverse_of_the_living, 0.0)
            for column, momenta in self.momenta.items():
                self._follow_momenta(column, momenta)
            self._followed = 2 + 2 * len(self.momenta)
        #: Sums of what points push on the corners of their triangles.
        n, (of_vertices, of_points) = layout.n_vertices if moving else 0, layout.numbers_of_membranes()
        self.corners: Accumulator = Accumulator(n, self.threads, of_vertices[:n], of_points)
        self.before: np.ndarray = np.empty((layout.n_vertices if moving else 0, 3))
        #: Check that edges stay shorter than half of the box.
        self.box_edges: BoxEdges | None = None
        if self.layout.is_periodic and any(not membrane.fixed for membrane in layout.topology.membranes):
            self.box_edges = BoxEdges(layout.n_vertices, len(self.faces))
        self._place_initially()

        self.ranges: np.ndarray = np.array(
            [(layout.block_of(h).start, layout.block_of(h).stop) for h in layout.handles], np.int64
        )
        #: Places in the order of rows, where beads come and go: in this order they are added up.
        self.by_row: np.ndarray | None = None
        if self.room is not None:
            places = [layout.places_by_row(handle) for handle in layout.handles]
            self.by_row = np.concatenate([np.empty(0, np.int32), *places])
        #: Kinetic energies by handle after the word's last O in the last step of a run; nan if not measured.
        self.after_o: np.ndarray = np.full(len(layout.handles), np.nan)
        #: Of adaptive steps: the density, 0 where it is that of the place; the time, s, and what its rounding has lost.
        self.pacing: np.ndarray = np.zeros(3)

    def _make_room(self) -> None:
        """Set up which beads are there, and which mass an added bead will have."""
        layout = self.layout
        self.room: Room | None = None
        self.mass_of_the_living: np.ndarray = self.mass
        self.inverse_of_the_living: np.ndarray = self.inverse_mass
        of_species = [h for h in layout.handles if h._species]
        if not (layout.has_room or layout.is_renumbered or of_species):
            return
        self.ids = layout.ids
        self.alive = (self.ids >= 0).astype(np.int8)
        self.next_id = np.array([layout.topology._next_id], np.int64)
        if of_species:
            self.table = np.full(layout.n, -1, np.int32)
            at = layout.n
            for handle in of_species:
                self.table[layout.block_of(handle)] = at
                at += len(handle._species)
        self.room = Room(self.alive, self.ids, self.next_id, self.arrays.get(SPECIES.array), self.table)
        living = self.of_the_living("mass", self.mass)
        born = living[: layout.n] > self.mass
        self.inverse_of_the_living = np.append(self.inverse_mass, 1.0 / living[layout.n :])
        self.inverse_of_the_living[: layout.n][born] = 1.0 / living[: layout.n][born]
        self.mass_of_the_living = living

    def of_the_living(self, name: str, values: np.ndarray, zero: Sequence[Handle] = ()) -> np.ndarray:
        """Return a number of every bead, by place; in inactive rows, that of a bead that a jump may add there. Behind
        these, for each handle with species, those of each of them. It is 0 for some handles."""
        out = values.copy()
        for handle in self.layout.handles:
            if handle.kind.comes_and_goes:
                asleep = slice(self.layout.slice_of(handle).stop, self.layout.block_of(handle).stop)
                out[asleep] = 0.0 if handle in zero else handle.kind.of_all(name) or 0.0
        of_species = [
            0.0 if handle in zero else getattr(one, name) for handle in self.layout.handles for one in handle._species
        ]
        return np.append(out, of_species)

    def _follow_momenta(self, column: Column, momenta: Momenta) -> None:
        """Let masses of momenta beside m v be those of who is there."""
        # Behind the rows, as in `of_the_living`.
        living = np.append(momenta.mass, self._of_species(column, 1.0), axis=0)
        inverse = np.append(momenta.inverse_mass, 1.0 / self._of_species(column, np.inf), axis=0)
        for handle in self._having[column]:
            own = handle.kind.of_all(column.mass) if handle.kind.comes_and_goes else None
            if own is not None:
                first = momenta.places.start
                asleep = slice(self.layout.slice_of(handle).stop - first, self.layout.block_of(handle).stop - first)
                living[asleep], inverse[asleep] = np.ravel(own), 1.0 / np.ravel(own)
        for now, then, asleep_one in ((momenta.mass, living, 1.0), (momenta.inverse_mass, inverse, 0.0)):
            self.follow(now.reshape(-1), then.reshape(-1), asleep_one, momenta.places.start, column.width)

    def _of_species(self, column: Column, others: float) -> np.ndarray:
        """Return the masses of momenta of each species of each handle, (s, width); `others` of handles without."""
        out = [np.empty((0, column.width))]
        for handle in self.layout.handles:
            for one in handle._species:
                own = getattr(one, column.mass) if handle in self._having[column] else others
                out.append(np.broadcast_to(own, (1, column.width)))
        return np.concatenate(out)

    def entries(self, species: np.ndarray | None = None) -> np.ndarray:
        """Return where `of_the_living` has the number of each place (n,): of its species, now or as given."""
        own = np.arange(self.layout.n)
        if self.table is None:
            return own
        species = self.arrays[SPECIES.array] if species is None else species
        return np.where(self.table >= 0, self.table + species, own)

    @property
    def heaviest(self) -> np.ndarray:
        """Largest mass of a bead that may be at each place, (n,)."""
        largest = self.mass_of_the_living[: self.layout.n].copy()
        for handle in self.layout.handles:
            if handle._species:
                largest[self.layout.block_of(handle)] = max(one.mass for one in handle._species)
        return largest

    @property
    def quickest(self) -> np.ndarray:
        """Largest inverses of moments of inertia of a body that may be in each row of oriented beads, (3 m,)."""
        if ANGULAR_MOMENTA not in self.momenta:
            return np.empty(0)
        momenta = self.momenta[ANGULAR_MOMENTA]
        out = momenta.inverse_mass.copy()
        for handle in self._having[ANGULAR_MOMENTA]:
            if handle._species:
                block = self.layout.block_of(handle)
                rows = slice(block.start - momenta.places.start, block.stop - momenta.places.start)
                out[rows] = 1.0 / np.array([one.inertia for one in handle._species]).min(axis=0)
        return out.reshape(-1)

    def follow(self, now: np.ndarray, living: np.ndarray, asleep: float, first: int = 0, width: int = 1) -> None:
        """Let an array by place, from place `first` on, hold what `living` has where a bead is, from now on."""
        assert self.room is not None
        self.room.follow(now, living, asleep, first, width)

    def forget_coefficients(self) -> None:
        """Drop the coefficients of letters that are not there any more."""
        if self.room is not None:
            self.room.forget(self._followed)

    def there(self, of: str = BEADS, alive: np.ndarray | None = None) -> np.ndarray | None:
        """Tell whether a bead is in each row of the columns of an `of`, (rows,) in topology order, now or by (n,) by
        place; None: in all."""
        if self.room is None:
            return None
        first, alive = self.layout.first_place(of), self.alive if alive is None else alive
        there: np.ndarray = alive[first : first + self.layout.n_rows(of)][self.layout.shown_rows(of)] != 0
        return there

    def check_living(self, what: str, ids: np.ndarray, alive: np.ndarray) -> None:
        """Refuse ids, and a mask of the beads that are there, in topology order, that cannot be taken over.

        Raises
        ------
        TopologyError
            Other beads than are here, unless of kinds that jumps may add and remove.
        """
        n = self.layout.n
        if len(ids) != n:
            raise TopologyError(f"{what}: the state has {len(ids)} rows of beads, the topology {n}")
        here = self.ids_in_rows()
        other = np.where(alive, ids, -1) != here
        if self.room is not None:
            for handle in self.layout.handles:
                if handle.kind.comes_and_goes:
                    other[self.layout.order[self.layout.block_of(handle)]] = False
        if other.any():
            i = int(np.argmax(other))
            handle = self.layout.topology.handle_of(i)
            there, now = (f"that of id {a[i]}" if a[i] >= 0 else "asleep" for a in (np.where(alive, ids, -1), here))
            raise TopologyError(f"{what}: row {i} ({handle.name!r}) is {there} in the state, and {now} here")

    def take_living(self, ids: np.ndarray, alive: np.ndarray, next_id: int) -> None:
        """Take over which beads are there, in topology order."""
        if self.room is not None:
            order = self.layout.order
            self.ids[:], self.alive[:] = np.where(alive, ids, -1)[order], alive[order]
            self.next_id[0] = max(int(self.next_id[0]), next_id)
            if SUBUNITS.array in self.arrays:
                # A link leads on to a node that is there.
                subunits = self.arrays[SUBUNITS.array]
                subunits[(self.alive == 0) & (subunits > 0)] = 0
            self.program.changed()

    def check_room(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays of a checkpoint, of the right shapes and types, with beads that cannot be there.

        Raises
        ------
        ParameterError
        """
        if self.room is None or not {"alive", "ids", "next_id"} <= arrays.keys():
            return
        alive, ids, next_id = arrays["alive"], arrays["ids"], int(arrays["next_id"][0])
        own = np.sort(ids[alive != 0])
        right = np.isin(alive, (0, 1)).all() and 0 <= next_id <= 2**48 and (ids[alive == 0] == -1).all()
        if not right or (len(own) and (own[0] < 0 or own[-1] >= next_id or (own[1:] == own[:-1]).any())):
            raise ParameterError("alive and ids do not say who is there: each bead has an id of its own, below next_id")
        rank = self.layout.rank
        try:
            self.check_living("alive", ids[rank], alive[rank] != 0)
        except TopologyError as cause:
            raise ParameterError(str(cause)) from cause

    def ids_in_rows(self) -> np.ndarray:
        """Return permanent ids (n,) in topology order, -1 in rows without a bead."""
        if self.room is None:
            return np.arange(self.layout.n)
        rank = self.layout.rank
        return np.where(self.alive[rank] != 0, self.ids[rank], -1)

    def living(self, places: slice) -> int:
        """Return how many beads are there, of a range of places."""
        return places.stop - places.start if self.room is None else int(self.alive[places].sum())

    def degrees_of_freedom(self, handle: Handle) -> int:
        """Return the degrees of freedom of the beads of a handle that are there."""
        if not handle.kind.comes_and_goes or self.room is None:
            return handle.degrees_of_freedom
        block = self.layout.block_of(handle)
        rows = {c: self.arrays[c.array][block] for c in handle.kind.columns if c.of == BEADS}
        return handle.kind.degrees_of_freedom_of(self.living(block), rows)

    def _momenta(self, column: Column) -> Momenta:
        """Return momenta as (n, width), with the masses that handles give."""
        n, first = self.layout.n_rows(column.of), self.layout.first_place(column.of)
        mass, inverse = np.ones((n, *column.shape)), np.zeros((n, *column.shape))
        for handle in self._having[column]:
            rows = self.layout.rows_of(handle, column.of)
            own = np.broadcast_to(getattr(handle, column.mass), (len(handle), *column.shape))
            mass[rows] = self.layout.in_order(handle, own)
            moves = np.broadcast_to(handle.kind.moves(column), own.shape)
            inverse[rows] = self.layout.in_order(handle, np.where(moves, 1.0 / own, 0.0))
        flat = (a.reshape(n, column.width) for a in (self.arrays[column.array], mass, inverse))
        return Momenta(slice(first, first + n), *flat)

    def _place_initially(self) -> None:
        for column, handles in self._having.items():
            for handle in handles:
                if handle.capacity > len(handle):
                    first = self.layout.first_place(column.of)
                    block = self.layout.block_of(handle)
                    self.arrays[column.array][block.start - first : block.stop - first] = handle.kind.inactive(column)
                start = np.broadcast_to(handle.kind.start_of(column), (len(handle), *column.shape))
                rows = self.layout.rows_of(handle, column.of)
                self.arrays[column.array][rows] = self.layout.in_order(handle, start)
        self.place_at_start()

    def place_at_start(self) -> None:
        """Put the beads that have positions of their own where they were when they were added; in a periodic box also
        points, whose images are known from there."""
        for handle in self.layout.handles:
            if handle.kind.block is not Block.POINTS or self.layout.is_periodic:
                here = self.layout.in_order(handle, cast(Any, handle).positions)
                self.x[self.layout.slice_of(handle)] = here

    def looked_at(self, operations: list[Any]) -> list[Any]:
        """Return operations that move vertices, with looks at the edges of membranes around them where the box has an
        end."""
        around: list[Any] = operations if self.box_edges is None else self.box_edges.around(operations)
        return around

    def moving(self) -> dict[str, np.ndarray]:
        """Return what steps change, by the names that checkpoints use; positions of in-triangle points are derived."""
        faces = {"faces": self.faces} if self.layout.triangulation.may_change else {}
        room = {} if self.room is None else {"alive": self.alive, "ids": self.ids, "next_id": self.next_id}
        box = {"box": self.layout.box} if self.layout.is_periodic else {}
        if self.layout.is_periodic and self.layout.n_points:
            # The images they are at follow from nothing else.
            box["x of points"] = self.x[self.layout.n_cartesian :]
        return {**self.arrays, "x": self.x[: self.layout.n_cartesian], **faces, **room, **box, **self.counts()}

    def counts(self) -> dict[str, np.ndarray]:
        """Return the counts of pools, (cells, species), by the names that checkpoints use."""
        return {f"pool {name}": self.layout.pools[pool].array for name, pool in self.pools.items()}

    def molecules(self) -> dict[str, Molecules]:
        """Return the molecules in pools, as states show them."""
        bound = self.layout.pools
        return {name: pool.molecules(bound[pool].array.copy()) for name, pool in self.pools.items()}

    def check_counts(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse negative counts of a checkpoint; ParameterError."""
        for name in self.counts():
            if name in arrays and (arrays[name] < 0).any():
                cell, species = (int(i) for i in np.argwhere(arrays[name] < 0)[0])
                raise ParameterError(f"{name}: species {species} in cell {cell} has fewer than 0 molecules")

    def checked_molecules(self, what: str, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return counts by `counts`' names with what is given by pool and species; pools without it are left out.

        Raises
        ------
        ParameterError, TopologyError
            As of `MoleculePool.checked`, or an unknown pool.
        """
        if not isinstance(given, Mapping):
            raise ParameterError(f"{what}: pools = {given!r} but must be a dict of counts by pool and species")
        out = {}
        for name, own in given.items():
            pool = look_up(self.pools, name, "pool", UnknownNameError)
            out[f"pool {name}"] = pool.checked(f"{what}: {name}", own, self.layout.pools[pool].array)
        return out

    def take_molecules(self, counts: Mapping[str, np.ndarray]) -> None:
        """Take over such counts."""
        for name, own in self.counts().items():
            own[...] = counts.get(name, own)
        self.program.changed()

    def places(self) -> list[np.ndarray]:
        """Return the arrays of where everything is."""
        moving = self.moving()
        return [moving[column.array] for column in self.layout.topology.columns if not column.is_momentum]

    def set_together(self) -> list[list[Column]]:
        """Return the columns that not all beads have, in groups as `checked` takes them; of those that have rows."""
        groups: dict[tuple[str, str], list[Column]] = {}
        for column, handles in self._having.items():
            if handles:
                groups.setdefault((column.of, column.role), []).append(column)
        return list(groups.values())

    def shown(self, column: Column, held: np.ndarray | None = None, alive: np.ndarray | None = None) -> np.ndarray:
        """Return the rows of a column, or of another array of its kind, in topology order, as users see them. Rows
        without a bead, now or by (n,) by place, are nan, or -1 of whole numbers."""
        rows = (self.arrays[column.array] if held is None else held)[self.layout.shown_rows(column.of)]
        if column.shown is not None:
            out: np.ndarray = np.empty((len(rows), *column.shown), column.dtype)
            for handle in self._having[column]:
                own = handle.kind.rows_with_room
                out[own] = handle.kind.shown(column, rows[own])
            rows = out
        there = self.there(column.of, alive)
        if there is not None:
            rows[~there] = np.nan if rows.dtype == np.float64 else -1
        return frozen(rows)

    def awake(self, values: np.ndarray, of: str = BEADS, alive: np.ndarray | None = None) -> Any:
        """Return the rows that a user gives in topology order; those without a bead are not looked at."""
        there = self.there(of, alive)
        if there is None or np.shape(values)[:1] != there.shape:
            return values
        values = np.array(values)
        if values.dtype.kind in "fiu":
            values[~there] = 0
        return values

    def checked(
        self, what: str, given: dict[Column, np.ndarray], alive: np.ndarray | None = None
    ) -> dict[Column, np.ndarray]:
        """Return rows that users give for columns of one role and `of`, as memory is to hold them; TopologyError naming
        the first bad one."""
        of = next(iter(given)).of
        n, rows, there = self.layout.n_rows(of), self.layout.shown_rows(of), self.there(of, alive)
        given = {
            c: array(
                f"{what}: {c.name}",
                self.awake(values, of, alive),
                (n, *c.shown_shape),
                dtype=np.float64 if c.dtype is np.float64 else np.int64,
                error=TopologyError,
            )
            for c, values in given.items()
        }
        out = {c: c.empty(n) if there is None else self.arrays[c.array].copy() for c in given}
        for handle in dict.fromkeys(handle for c in given for handle in self._having[c]):
            own = handle.rows if of != BEADS else handle.beads
            if there is not None:
                own = handle.kind.rows_with_room if of != BEADS else handle.kind.all_rows
                own = own[there[own]]
            theirs = {c: values[own] for c, values in given.items() if c in handle.kind.columns}
            if of == BEADS:
                handle.kind.expect_rows(f"{what}: {handle.name}", cast(np.ndarray, own), theirs)
            if SPECIES in theirs:
                numbers_of(f"{what}: {handle.name}: species", handle._species, theirs[SPECIES])
            else:
                theirs = handle.kind.taken(f"{what}: {handle.name}", theirs)
            for c, taken in theirs.items():
                out[c][rows[own]] = taken
        return out

    def draw_momenta(self, kT: float, seed: int, of: np.ndarray | None = None) -> None:
        """Draw velocities and other momenta from Maxwell's distribution, also for what does not move; at the places
        (n,) bool that are given, or at all."""
        ids = self.layout.order.astype(np.int64) if self.room is None else self.ids
        there: np.ndarray = np.ones(self.layout.n, bool) if self.room is None else self.alive != 0
        wanted: np.ndarray = there if of is None else there & of
        # Three numbers at a time, each with a counter of its own.
        counter = count(0)
        with np.errstate(divide="ignore"):
            spread = np.sqrt(kT / self.mass)[:, None]
        others = [(m.p, m.places, np.sqrt(kT * m.mass)) for m in self.momenta.values()]
        for p, places, scale in [(self.v, slice(None), spread), *others]:
            rows = np.flatnonzero(wanted[places])
            beads, three = ids[places][rows], np.empty((len(rows), 3))
            for first in range(0, p.shape[1], 3):
                normals(three, beads, seed, 0, 0, next(counter), PURPOSES["velocities"])
                own = slice(first, min(first + 3, p.shape[1]))
                p[rows, own] = three[:, : own.stop - first] * scale[rows, own]

    def make_program(
        self, v: np.ndarray, mass: np.ndarray, inverse_mass: np.ndarray, momenta: list[tuple[np.ndarray, np.ndarray]]
    ) -> Program:
        """Return a program that moves the beads of this context, with velocities, momenta and masses of its own."""
        oriented = self.layout.n_oriented > 0
        spin, inverse_inertia = momenta[0] if oriented else (None, None)
        others = list(zip(self.layout.momenta, momenta, strict=True))[oriented:]
        return Program(
            x=self.x, v=v, mass=mass, inverse_mass=inverse_mass, bead=self.layout.order,
            n_vertices=self.layout.n_vertices, faces=self.faces, opposite=self.opposite, triangle=self.triangle,
            barycentric=self.barycentric, membranes_move=self.membranes_move, seed=self.seed, threads=self.threads,
            first_oriented=self.layout.first_oriented, orientation=self.orientation, spin=spin,
            inverse_inertia=inverse_inertia,
            momenta=[(self.layout.first_place(column.of), *own) for column, own in others],
            room=self.room if self.rejoined is None else self.rejoined,
            box=self.layout.box if self.layout.is_periodic else None, subunits=self.arrays.get(SUBUNITS.array),
            material=self.arrays.get(MATERIAL.array),
        )  # fmt: skip

    @property
    def step(self) -> int:
        """Number of steps taken so far."""
        return int(self.program.step)

    def positions_changed(self) -> None:
        """Follow positions that have been set from outside."""
        self.program.changed()
        self.pacing[0] = 0.0
        self.after_o[:] = np.nan

    def movable_beads(self) -> np.ndarray:
        """Tell whether each bead is free to move, (n,) by place."""
        return self.inverse_mass > 0.0

    def masses(self) -> np.ndarray:
        """Return the masses of the beads, (n,) pN s²/nm, by place."""
        return self.mass.copy()

    def step_lengths(self) -> np.ndarray:
        """Return how far each bead moves while its coordinates change by 1, (n,) nm by place; 1 in inactive rows."""
        out = self.layout.gather(lambda h: h.kind.step_lengths)
        return np.where(out > 0.0, out, 1.0)

    def radii(self, momenta: "Momenta") -> np.ndarray:
        """Return how far the coordinates that belong to momenta move mass, (n, width) nm per unit of them, by the ratio
        of generalised and plain masses; of rotations the radii of gyration."""
        mass = self.mass[momenta.places, None]
        # In inactive rows any number will do.
        radii: np.ndarray = np.sqrt(np.divide(momenta.mass, mass, out=np.ones_like(momenta.mass), where=mass > 0.0))
        return radii

    def shortest_length(self) -> float:
        """Return the shortest edge of meshes and link of filaments or, without any, roughly the distance of beads,
        nm."""
        edges = []
        for handle in self.layout.handles:
            joined = handle.kind.joined
            if len(joined):
                x = self.x[self.layout.slice_of(handle)]
                d = displacement(x[joined[:, 0]], x[joined[:, 1]], self.layout.box)
                edges.append(np.linalg.norm(d, axis=1).min())
        if edges:
            return float(min(edges))
        x = self.x if self.room is None else self.x[self.alive != 0]
        if not len(x):
            return 1.0
        if self.layout.is_periodic:
            x = wrapped(x, self.layout.box)
        with np.errstate(over="ignore"):
            extent = float(np.linalg.norm(np.ptp(x, axis=0)))
        return extent / len(x) ** (1 / 3) if 0.0 < extent < np.inf else 1.0


def frozen(a: np.ndarray) -> np.ndarray:
    """Return an array made read-only."""
    a.flags.writeable = False
    return a
