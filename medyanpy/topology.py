"""Topology: beads of every kind, and the membranes that carry points."""

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final, TypeVar, cast

import numpy as np

from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.quaternions import turned
from medyanpy._tools.tables import Displayed, Page, Table, amount, of_all
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, one_or_many, plain_name, whole_number
from medyanpy.beads import (
    COLUMNS,
    adding_filaments,
    constraints,
    free,
    intriangle_points,
    joints,
    membranes,
    rigid_bodies,
    rods,
    surface_points,
)
from medyanpy.beads.constraint_rows import Bodies
from medyanpy.beads.constraints import Constraints
from medyanpy.beads.directors import Directors
from medyanpy.beads.filaments import Filaments
from medyanpy.beads.free import Balls, Beads
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.beads.joint import Joint
from medyanpy.beads.membranes import Membrane
from medyanpy.beads.oriented import OrientedBeads
from medyanpy.beads.rigid_bodies import RigidBodies
from medyanpy.beads.rods import Rods
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.core.columns import BEADS, CAPS, MATERIAL, SPECIES, SUBUNITS, Column
from medyanpy.core.handles import Handle, adder_of, found_ids, handles_in
from medyanpy.core.kinds import MAX_BEADS, MAX_IDS
from medyanpy.errors import ParameterError, TopologyError, UnknownNameError, shown

# Handles are exported too.
__all__ = [
    "Balls", "Beads", "Constraints", "Directors", "Filaments", "InTrianglePoints", "Membrane", "OrientedBeads",
    "RigidBodies", "Rods", "SurfacePoints", "Topology",
]  # fmt: skip


_Handle = TypeVar("_Handle", bound=Handle)
# Columns of all beads that some kinds have.
_OF_SOME = (SPECIES, SUBUNITS, CAPS, MATERIAL)


class Topology(Displayed, Guarded):
    """Everything that is simulated, before any force acts on it.

    Each ``add_*`` method returns a handle; ``handle.beads`` are the numbers of its beads in every array that
    has a row per bead. Masses are in pN·s²/nm, frictions in pN·s/nm, lengths in nm.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> mesh = mp.TriangleMesh.icosphere(radius=500.0, subdivisions=2)
    >>> vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    >>> proteins = topology.add_intriangle_points(vesicle, 100, mass=4e-12, friction=4e-6, seed=1)
    >>> topology
    Topology(262 beads: 162 vertices of 'membrane', 100 points of 'points')
    """

    _remedy = "beads are added with its add_ methods"

    # Each kind of bead is added by a function of its own file. (Final lets checkers of types take its signature.)
    add_beads: Final = free.add_beads
    add: Final = free.add
    add_balls: Final = free.add_balls
    add_filament: Final = adding_filaments.add_filament
    add_filaments: Final = adding_filaments.add_filaments
    add_membrane: Final = membranes.add_membrane
    add_intriangle_points: Final = intriangle_points.add_intriangle_points
    add_surface_points: Final = surface_points.add_surface_points
    add_rigid_bodies: Final = rigid_bodies.add_rigid_bodies
    add_rod: Final = rods.add_rod
    add_rods: Final = rods.add_rods
    constrain: Final = constraints.constrain
    join: Final = joints.join

    def __init__(self) -> None:
        self._handles: list[Handle] = []
        self._n_beads = 0
        self._next_id = 0
        self._columns = {column.name: column for column in COLUMNS}
        #: Number of rows of the columns that not all beads have, by their `of`.
        self.row_counts: dict[str, int] = {}
        #: Beads that have these, ascending, by the same; looked up when asked for.
        self._beads_with: dict[str, np.ndarray] = {}
        self._contexts: weakref.WeakSet[Any] = weakref.WeakSet()
        #: Systems, whose terms that name beads by rows are asked before some beads are removed.
        self._systems: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_edited = False
        #: Handles that are solved jointly, once asked for, until handles change.
        self._joint: tuple[Joint | None] | None = None
        #: What an edit of a running simulation does where handles have to be described as they are now.
        self._describe: Callable[[], None] | None = None

    @property
    def is_edited(self) -> bool:
        """True inside `edit`: the context that uses it follows what is added now."""
        return self._is_edited

    # Content ------------------------------------------------------------------------------------------------

    @property
    def n_beads(self) -> int:
        """Rows of arrays that have one per bead: of all beads, and of those that there is room for."""
        return self._n_beads

    @property
    def has_room(self) -> bool:
        """True if any row is inactive."""
        return any(len(handle._inactive) for handle in self._handles)

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Every handle, in the order added: their beads follow each other in this order."""
        return tuple(self._handles)

    @property
    def membranes(self) -> tuple[Membrane, ...]:
        return tuple(h for h in self._handles if isinstance(h, Membrane))

    @property
    def point_handles(self) -> tuple[InTrianglePoints, ...]:
        return tuple(h for h in self._handles if isinstance(h, InTrianglePoints))

    @property
    def oriented_handles(self) -> tuple[OrientedBeads, ...]:
        return tuple(h for h in self._handles if isinstance(h, OrientedBeads))

    def __getitem__(self, name: str) -> Handle:
        """Return the handle of a name: ``topology["proteins"]``.

        Raises
        ------
        UnknownNameError
            A `TopologyError` and a `KeyError`: no handle has this name; the message lists those there are.
        """
        found: Handle = look_up({h.name: h for h in self._handles}, name, "handle", UnknownNameError)
        return found

    def __iter__(self) -> Iterator[Handle]:
        return iter(self.handles)

    def __contains__(self, what: Any) -> bool:
        """Tell whether a handle, or one of this name, is part of it."""
        return any(what is handle or what == handle.name for handle in self._handles)

    def handle_of(self, bead: int) -> Handle:
        """Return the handle that a bead belongs to; TopologyError where the bead does not exist."""
        bead = whole_number("handle_of: bead", bead, error=TopologyError)
        for handle in self._handles:
            if handle._has_row(bead):
                return handle
        raise TopologyError(f"bead {bead} does not exist: the topology has {self._n_beads} beads")

    @property
    def joint(self) -> Joint | None:
        """The constraints of a user's own with all that they are solved together with; None without any."""
        if self._joint is None:
            written = [h for h in self._handles if isinstance(h, Constraints) and h.count]
            self._joint = (Joint(self, written) if written else None,)
        return self._joint[0]

    def start_positions(self, beads: np.ndarray, arms: np.ndarray | None = None) -> np.ndarray:
        """Return where beads start, of handles that take constraints, (..., 3) nm; or what is at arms (..., 3) of
        these, in their frames."""
        x = np.zeros((self._n_beads, 3))
        for handle in self._handles:
            if handle.kind.takes_constraints:
                x[handle.beads] = cast(Any, handle).positions
        start: np.ndarray = x[beads]
        if arms is None:
            return start
        q = Bodies.of(self).orientations[beads]
        start = start + turned(q.reshape(-1, 4), arms.reshape(-1, 3)).reshape(arms.shape)
        return start

    def _start_from_now(self) -> None:
        """Inside an edit, let the beads of handles that take constraints start where they are now."""
        if self._describe is not None:
            self._describe()

    def plain_rows(self, beads: np.ndarray) -> np.ndarray:
        """Return the rows that beads would have if handles were added again, in their order, before `number`."""
        rows: np.ndarray = self._plain_numbers()[beads]
        return rows

    def _plain_numbers(self) -> np.ndarray:
        """Return the plain number of every row, (n,)."""
        out, first = np.arange(self._n_beads), 0
        for handle in self._handles:
            rows = np.append(handle.beads, handle._inactive)
            out[rows] = first + np.arange(len(rows))
            first += handle.kind.rows_remade
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickles and copies, which are in use by no Context. Handles among arguments go by their numbers:
        while the topology is being made again there are none yet to point to."""
        number = {handle: i for i, handle in enumerate(self._handles)}
        objects = []
        for handle in self._handles:
            if handle.kind.moves_with is not handle:
                # Made together with the other one.
                continue
            arguments = handle._arguments_now()
            others = {key: number[value] for key, value in arguments.items() if isinstance(value, Handle)}
            objects.append((type(handle), {k: v for k, v in arguments.items() if k not in others}, others))
        return _made_anew, (type(self), tuple(objects), self.numbering())

    def _page(self) -> Page:
        return Page("Topology", f"{self._n_beads:,} beads", [self._table()])

    def _table(self) -> Table:
        """Return a row for each handle."""
        head = ("beads", "kind", "number", "mass (pN s²/nm)", "friction (pN s/nm)", "fixed")
        rows = [
            (h.name, h.kind.name, amount(len(h)), of_all(h.mass), of_all(h.friction), amount(int(fixed.sum())))
            for h in self._handles for fixed in [h.kind.fixed_beads]
        ]
        return Table("beads", rows, head)

    def __repr__(self) -> str:
        parts = ", ".join(f"{h.kind.contents} of {h.name!r}" for h in self._handles)
        return f"Topology({self._n_beads} beads{': ' if parts else ''}{parts})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The arrays that its beads have, and those of the kinds of beads of this package."""
        return tuple(self._columns.values())

    def n_rows(self, of: str) -> int:
        """Return how many rows the columns of an `of` have."""
        return self._n_beads if of == BEADS else self.row_counts.get(of, 0)

    def beads_with(self, of: str) -> np.ndarray:
        """Return the rows (m,) of all that have columns of an `of`, ascending: the order of rows in these."""
        if of not in self._beads_with:
            rows = [np.append(h.beads, h._inactive) for h in self._handles if h.kind.rows_of == of]
            self._beads_with[of] = np.sort(np.concatenate([np.empty(0, np.int64), *rows]))
        return self._beads_with[of]

    def rows_in(self, of: str, beads: np.ndarray) -> slice | np.ndarray:
        """Return the rows of beads in the columns of an `of`: a slice where they follow each other."""
        if not of or not len(beads):
            return slice(0, len(beads) if not of else 0)
        rows = np.searchsorted(self.beads_with(of), beads)
        return slice(int(rows[0]), int(rows[0]) + len(rows)) if (np.diff(rows) == 1).all() else rows

    # Editing ------------------------------------------------------------------------------------------------

    @contextmanager
    def edit(self) -> Iterator[None]:
        """Surround a block in which beads are added to a running simulation and removed, with forces and jumps on them.

        Inside, all ``add_`` methods and ``constrain`` of the topology, ``add``, ``remove`` and ``reserve`` of its
        handles, and ``add_force``, ``remove_force``, ``add_jump`` and ``remove_jump`` of the system are allowed. The
        Context then continues: step, time, positions, velocities and links of what stays are as before, to the last
        bit, and so is their motion as far as nothing new acts on them. Velocities of new beads are drawn at the
        temperature of the integrator, or are 0 without one. The change of the energy is protocol work. After an error
        in the block, or where the Context cannot follow, all is as before.

        Raises
        ------
        TopologyError
            Inside another such block, or with several contexts that use the topology.
        ContextInUseError
            Inside a step or from a reporter; and by uses of the Context inside the block.
        ParameterError, SimulationError
            At the end of the block, as from `Context`.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> first = topology.add_filament([[0.0, 0, 0], [27.0, 0, 0]], node_mass=4e-12, node_friction=4e-6)
        >>> system = mp.System(topology)
        >>> simulation = mp.Simulation(system, mp.BAGOGABIntegrator(1e-7, temperature=300.0, seed=1))
        >>> simulation.step(100)
        >>> with topology.edit():
        ...     second = topology.add_filament([[0.0, 9, 0], [27.0, 9, 0]], node_mass=4e-12, node_friction=4e-6)
        ...     links = system.add_force(mp.forces.Links(first.beads, second.beads, stiffness=0.1, length=9.0))
        >>> simulation.step(100)
        >>> simulation.current_step, topology.n_beads
        (200, 4)
        >>> with topology.edit():
        ...     first.remove(0, terms="remove")
        >>> second.ids, len(first), len(links)
        (array([2, 3]), 0, 0)
        """
        if self.is_edited:
            raise TopologyError("edit: this topology is being edited already: one block at a time")
        contexts = list(self._contexts)
        if len(contexts) > 1:
            # Some may be waiting to be collected.
            del contexts
            gc.collect()
            contexts = list(self._contexts)
        if len(contexts) > 1:
            raise TopologyError(
                f"edit: {len(contexts)} contexts use this topology, of which each would have to follow: edit with one "
                "alive, or copy the topology for the others (copy.deepcopy)"
            )
        with contexts[0]._following_an_edit() if contexts else nullcontext():
            yield

    # Adding -------------------------------------------------------------------------------------------------

    def _capacity(self, what: str, n: int, capacity: Any) -> int:
        """Return the number of rows for n beads, and for as many more as a user asks for."""
        return n if capacity is None else whole_number(f"{what}: capacity", capacity, at_least=n, at_most=MAX_BEADS)

    def _room(self, what: str, n: int, name: str | None, default: str) -> tuple[int, str]:
        """Return the first row of n that are to be added, and the name of their handle."""
        self._refuse_if_in_use(what)
        if n == 0:
            raise TopologyError(f"{what}: there is nothing to add (0 beads)")
        self._check_size(what, n)
        return self._n_beads, self._name(what, name, default)

    def _name(self, what: str, name: str | None, default: str) -> str:
        """Return the name of a handle that is to be added: the one given, or the default with a number."""
        taken = {h.name for h in self._handles}
        if name is not None:
            name = plain_name(f"{what}: name", name, error=TopologyError)
        if name is None:
            name, k = default, 1
            while name in taken:
                k += 1
                name = f"{default} {k}"
        elif name in taken:
            raise TopologyError(f"{what}: the name {name!r} is in use")
        return name

    def _forget(self, handle: Handle) -> None:
        """Take away a handle without beads that has just been added."""
        self._handles.remove(handle)
        self._joint = None

    def _keep(self, handle: _Handle, capacity: int | None = None, **given: Any) -> _Handle:
        """Take a handle whose beads have the rows from `_room` on, and room for `capacity` of them in all. Numbers
        `given` for all beads are also those of later ones."""
        for name, value in vars(handle).items():
            if isinstance(value, np.ndarray) and not name.startswith("_"):
                # Nothing would follow a change of it.
                value.flags.writeable = False
        if not len(handle):
            numbers = {name: value for name, value in given.items() if value is not None and not np.ndim(value)}
            handle._of_all |= {name: float(value) for name, value in numbers.items()}
        n = len(handle) if capacity is None else capacity
        self._check_size(handle.name, n)
        self._declare(handle, n)
        first, self._n_beads = self._n_beads, self._n_beads + n
        if self._next_id != first:
            handle._ids = np.arange(self._next_id, self._next_id + len(handle))
        self._next_id += n
        handle._inactive = np.arange(first + len(handle), first + n)
        self._handles.append(handle)
        self._joint = None
        return handle

    def _declare(self, handle: Handle, n: int) -> None:
        """Take the columns of a handle, and give it n rows in them."""
        for column in handle.kind.columns:
            if column.of == BEADS and column.name not in self._columns and column not in _OF_SOME:
                raise TopologyError(f"{type(handle).__name__}: column {column.name!r} cannot be of all beads")
            if column.of not in (BEADS, handle.kind.rows_of):
                raise TopologyError(
                    f"{type(handle).__name__}: column {column.name!r} is of {column.of!r}, others of this kind are of "
                    f"{handle.kind.rows_of!r}"
                )
            if self._columns.setdefault(column.name, column) != column:
                raise TopologyError(f"{type(handle).__name__}: another kind of bead has a column {column.name!r}")
        self._more_rows(handle, n)

    def _more_rows(self, handle: Handle, n: int) -> None:
        if of := handle.kind.rows_of:
            self.row_counts[of] = self.row_counts.get(of, 0) + n
            self._beads_with.pop(of, None)

    # Coming and going ---------------------------------------------------------------------------------------

    def _refuse_if_in_use(self, what: str) -> None:
        if len(self._contexts) and not self.is_edited:
            raise TopologyError(
                f"{what}: this topology is in use by a Context; add everything first, or inside "
                "`with topology.edit():`"
            )

    def _grow(self, handle: Handle, other: Handle) -> np.ndarray:
        """Add the beads of another handle, which is in no topology, to a handle, and return their rows. Inactive rows
        are taken first, and new ones come behind all others."""
        n = len(other)
        room = min(n, len(handle._inactive))
        rows = np.concatenate([handle._inactive[:room], np.arange(self._n_beads, self._n_beads + n - room)])
        ids = np.arange(self._next_id, self._next_id + n)
        self._check_size(handle.name, n - room, ids=n)
        attributes = handle._merged(other)
        self._renumber(
            handle, np.append(handle.beads, rows), np.append(handle.ids, ids), handle._inactive[room:], attributes
        )
        self._next_id += n
        self._n_beads += n - room
        self._more_rows(handle, n - room)
        rows.flags.writeable = False
        return rows

    def _shrink(self, what: str, kept: dict[Handle, np.ndarray], terms: str) -> None:
        """Let go of beads of handles: of each, which (n,) are kept. Nothing changes where a term names one of them, or
        goes with it."""
        self._refuse_if_in_use(what)
        if not isinstance(terms, str) or terms not in ("refuse", "remove"):
            raise ParameterError(f'{what}: terms = {shown(terms)} but must be "refuse" or "remove"')
        gone = np.zeros(self._n_beads, bool)
        for handle, keep in kept.items():
            gone[handle.beads[~keep]] = True
        named = [(handle, handle.kind) for handle in self._handles if isinstance(handle, Constraints)]
        named += [(one, one) for system in self._systems for one in (*system.forces, *system.jumps)]
        naming = [(one, hooks, hooks.naming(gone)) for one, hooks in named]
        for one, _, found in naming:
            for noun, masks in found.items():
                if masks.any() and terms == "refuse":
                    which = int(np.argmax(masks))
                    raise TopologyError(
                        f"{what}: {noun} {which} of {one!r} names a bead that would go: give terms='remove' to let "
                        "such terms go with it, or take them away first"
                    )
        for _, hooks, found in naming:
            if any(masks.any() for masks in found.values()):
                hooks.without(found)
        for handle, keep in kept.items():
            asleep = np.sort(np.append(handle._inactive, handle.beads[~keep]))
            self._renumber(handle, handle.beads[keep], handle.ids[keep], asleep, handle._chosen(keep))

    def _become(
        self, handle: Handle, keep: np.ndarray, born: Handle, rows: np.ndarray, ids: np.ndarray
    ) -> None:
        """Keep some beads (n,) of a handle, and give it others, which jumps have added in these rows."""
        room = np.append(handle.beads[~keep], handle._inactive)
        beads, own = np.append(handle.beads[keep], rows), np.append(handle.ids[keep], ids)
        handle._take(**handle._chosen(keep))
        self._renumber(handle, beads, own, np.setdiff1d(room, rows), handle._merged(born))

    def _reserve(self, what: str, handle: Handle, capacity: int) -> None:
        self._refuse_if_in_use(what)
        capacity = whole_number(f"{what}: capacity", capacity, at_least=handle.capacity, at_most=MAX_BEADS)
        more = capacity - handle.capacity
        self._check_size(what, more)
        handle._inactive = np.append(handle._inactive, np.arange(self._n_beads, self._n_beads + more))
        handle._version += 1
        self._joint = None
        self._n_beads += more
        self._next_id += more
        self._more_rows(handle, more)

    @staticmethod
    def _renumber(
        handle: Handle, beads: np.ndarray, ids: np.ndarray, asleep: np.ndarray, attributes: dict[str, Any]
    ) -> None:
        plain = np.arange(handle._first, handle._first + len(beads))
        handle._take(**attributes)
        handle.topology._joint = None
        handle._rows = None if np.array_equal(beads, plain) else _frozen(beads)
        handle._ids = None if np.array_equal(ids, beads) else _frozen(ids)
        handle._inactive = asleep

    def numbering(self) -> dict[str, Any] | None:
        """Return which rows and ids beads have, where an edit has made them others than those in the order in which
        handles are added: for documents and copies, and `number`."""
        first, plain = 0, True
        for handle in self._handles:
            rows = np.arange(first, first + handle.capacity)
            plain &= handle._rows is None and handle._ids is None and handle._first == first
            plain &= handle.kind.rows_remade == handle.capacity
            plain &= np.array_equal(handle._inactive, rows[len(handle) :])
            first += handle.capacity
        if plain and self._next_id == first:
            return None
        handles = {h.name: {"beads": h.beads, "ids": h.ids, "asleep": h._inactive} for h in self._handles}
        return {"n_beads": self._n_beads, "next_id": self._next_id, "handles": handles}

    def number(self, numbering: dict[str, Any]) -> None:
        """Give beads the rows and ids that `numbering` told.

        Raises
        ------
        TopologyError
            Numbers that are not those of these beads: each row must be of one handle, and each id of one bead.
        """
        what = "numbering"
        if not isinstance(numbering, dict) or not {"n_beads", "next_id", "handles"} <= numbering.keys():
            raise TopologyError(f"{what} must be a dict with n_beads, next_id and handles, not {shown(numbering)}")
        n, next_id = numbering["n_beads"], numbering["next_id"]
        n = whole_number(f"{what}: n_beads", n, at_most=MAX_BEADS, error=TopologyError)
        next_id = whole_number(f"{what}: next_id", next_id, at_most=MAX_IDS, error=TopologyError)
        given = numbering["handles"]
        if not isinstance(given, dict) or list(given) != [handle.name for handle in self._handles]:
            raise TopologyError(f"{what}: handles must be those of the topology, in their order")
        if not all(isinstance(told, dict) for told in given.values()):
            raise TopologyError(f"{what}: handles must be dicts with beads, ids and asleep")
        taken: list[tuple[Handle, np.ndarray, np.ndarray, np.ndarray]] = []
        for handle in self._handles:
            beads, own, asleep = (
                array(f"{what}: {handle.name}: {key}", given[handle.name].get(key), shape, dtype=np.int64,
                      error=TopologyError)
                for key, shape in (("beads", (len(handle),)), ("ids", (len(handle),)), ("asleep", (None,)))
            )  # fmt: skip
            taken.append((handle, beads, own, asleep))
        rows = np.sort(np.concatenate([np.empty(0, np.int64), *(np.append(t[1], t[3]) for t in taken)]))
        ids = np.sort(np.concatenate([np.empty(0, np.int64), *(t[2] for t in taken)]))
        if not np.array_equal(rows, np.arange(n)):
            raise TopologyError(f"{what}: each row from 0 to {n - 1} must be that of one bead, or inactive")
        if len(ids) and (ids[0] < 0 or ids[-1] >= next_id or (ids[1:] == ids[:-1]).any()):
            raise TopologyError(f"{what}: ids must differ, and be from 0 to {next_id - 1}")
        now = np.empty(self._n_beads, np.int64)
        for handle, beads, _, _ in taken:
            # Inactive rows may be others: directors have as many as links have been removed.
            now[handle.beads] = beads
        self._n_beads, self._next_id, self._beads_with = n, next_id, {}
        for handle, beads, own, asleep in taken:
            if isinstance(handle, Constraints):
                handle.kind.renumbered(now)
            handle._first = int(beads[0]) if len(beads) else handle._first
            self._renumber(handle, beads.copy(), own.copy(), np.sort(asleep), {})
        for of in self.row_counts:
            self.row_counts[of] = sum(h.capacity for h in self._handles if h.kind.rows_of == of)

    def _check_size(self, what: str, more: int, ids: int | None = None) -> None:
        """Refuse more rows, and ids, than there can be; an id for each row by default."""
        if self._n_beads + more > MAX_BEADS:
            raise TopologyError(f"{what}: {self._n_beads + more} beads are more than {MAX_BEADS}")
        last = self._next_id + (more if ids is None else ids)
        if last > MAX_IDS:
            raise TopologyError(f"{what}: {last} permanent ids are more than {MAX_IDS}, and none is used twice")

    def rows_of_ids(self, ids: Numbers) -> np.ndarray:
        """Return rows of beads by their permanent ids.

        Parameters
        ----------
        ids : (k,) int or int

        Returns
        -------
        (k,) int array

        Raises
        ------
        TopologyError
            An id that no bead has, or whose bead is gone. `State.rows_of_ids` knows the beads that jumps have added.
        """
        wanted = one_or_many("rows_of_ids: ids", ids, dtype=np.int64, error=TopologyError)
        beads, known = (
            np.concatenate([np.empty(0, np.int64), *(getattr(h, name) for h in self._handles)])
            for name in ("beads", "ids")
        )
        rows: np.ndarray = beads[found_ids("rows_of_ids", wanted, known, self._next_id)]
        return rows

    def expect_awake(self, what: str, beads: np.ndarray) -> None:
        """Refuse rows without a bead, among beads that exist.

        Raises
        ------
        TopologyError
        """
        for handle in self._handles:
            asleep = beads[np.isin(beads, handle._inactive)] if len(handle._inactive) else beads[:0]
            if len(asleep):
                raise TopologyError(f"{what}: bead {asleep[0]} is a row of {handle!r} without a bead: it is inactive")

    def expect_places(self, what: str, beads: np.ndarray) -> None:
        """Refuse directors among beads, by number: what acts between places does not act on directions.

        Raises
        ------
        TopologyError
        """
        for handle in self._handles:
            if not handle.kind.in_space:
                among = np.isin(beads, handle.beads)
                if among.any():
                    raise TopologyError(
                        f"{what}: bead {beads[np.argmax(among)]} belongs to {handle!r}, which are directions without a "
                        "place in space"
                    )

    def bead_indices(self, what: str, beads: Any) -> np.ndarray:
        """Return rows of beads: of a handle or several, with those that jumps may add, or given as they are; sorted,
        each once.

        Raises
        ------
        TopologyError
            A foreign handle, or a bead that does not exist, is inactive or is named twice.
        """
        if isinstance(beads, Iterable) and not isinstance(beads, np.ndarray):
            beads = list(beads)
        handles = handles_in(beads)
        for handle in handles:
            if handle.topology is not self:
                raise TopologyError(f"{what}: {handle!r} belongs to another topology")
        given = np.concatenate([handle.kind.with_room for handle in handles]) if handles else beads
        index = np.sort(array(what, given, (None,), dtype=np.int64, error=TopologyError))
        if len(index) and (index[0] < 0 or index[-1] >= self._n_beads):
            bad = index[0] if index[0] < 0 else index[-1]
            raise TopologyError(f"{what}: bead {bad} does not exist: beads are 0 to {self._n_beads - 1}")
        if not handles:
            self.expect_awake(what, index)
        twice = np.flatnonzero(index[1:] == index[:-1])
        if len(twice):
            raise TopologyError(f"{what}: bead {index[twice[0]]} is named twice")
        return index


def _frozen(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


def _made_anew(
    cls: type[Topology], objects: tuple[tuple[type[Handle], dict[str, Any], dict[str, int]], ...],
    numbering: dict[str, Any] | None = None,
) -> Topology:  # fmt: skip
    topology = cls()
    for kind, arguments, others in objects:
        adder_of(kind, topology)(**arguments, **{key: topology.handles[i] for key, i in others.items()})
    if numbering is not None:
        topology.number(numbering)
    return topology
