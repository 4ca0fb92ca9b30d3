"""What is there: beads of every kind, and the membranes that carry points."""

import gc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from medyanpy._tools.names import Guarded, look_up
from medyanpy._tools.validation import array, whole_number
from medyanpy.beads import COLUMNS, filaments, free, intriangle_points, membranes, rigid_bodies, rods, surface_points
from medyanpy.beads.filaments import Directors, Filaments
from medyanpy.beads.free import Balls, Beads
from medyanpy.beads.intriangle_points import InTrianglePoints
from medyanpy.beads.membranes import Membrane
from medyanpy.beads.oriented import OrientedBeads
from medyanpy.beads.rigid_bodies import RigidBodies
from medyanpy.beads.rods import Rods
from medyanpy.beads.surface_points import SurfacePoints
from medyanpy.columns import BEADS, Column
from medyanpy.errors import TopologyError, UnknownNameError
from medyanpy.handles import MAX_BEADS, Handle, bead_numbers, handles_in

# With kinds of beads, which were all in this file in 0.1.
__all__ = [
    "Balls", "Beads", "Directors", "Filaments", "InTrianglePoints", "Membrane", "OrientedBeads", "RigidBodies", "Rods",
    "SurfacePoints", "Topology",
]  # fmt: skip


class Topology(Guarded):
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

    # Each kind of bead is added by a function of its own file.
    add_beads = free.add_beads
    add = free.add
    add_balls = free.add_balls
    add_filament = filaments.add_filament
    add_filaments = filaments.add_filaments
    add_membrane = membranes.add_membrane
    add_intriangle_points = intriangle_points.add_intriangle_points
    add_surface_points = surface_points.add_surface_points
    add_rigid_bodies = rigid_bodies.add_rigid_bodies
    add_rod = rods.add_rod
    add_rods = rods.add_rods

    def __init__(self) -> None:
        self._handles: list[Handle] = []
        self._n_beads = 0
        self._columns = {column.name: column for column in COLUMNS}
        #: How many rows the columns have that not all beads have, by their `of`.
        self.row_counts: dict[str, int] = {}
        self._contexts: weakref.WeakSet = weakref.WeakSet()
        self._is_edited = False

    @property
    def is_edited(self) -> bool:
        """Whether this is inside `edit`: the context that uses it follows what is added now."""
        return self._is_edited

    # What is there ------------------------------------------------------------------------------------------

    @property
    def n_beads(self) -> int:
        return self._n_beads

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
        """The handle of a name: ``topology["proteins"]``.

        Raises
        ------
        UnknownNameError
            A `TopologyError` and a `KeyError`: no handle has this name; the message lists those there are.
        """
        return look_up({handle.name: handle for handle in self._handles}, name, "handle", UnknownNameError)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self.handles)

    def __contains__(self, what: Any) -> bool:
        """Whether a handle, or one of this name, is part of it."""
        return any(what is handle or what == handle.name for handle in self._handles)

    def handle_of(self, bead: int) -> Handle:
        """The handle that a bead belongs to; TopologyError where there is no such bead."""
        bead = whole_number("handle_of: bead", bead, error=TopologyError)
        for handle in self._handles:
            if handle.first_bead <= bead < handle.first_bead + len(handle):
                return handle
        raise TopologyError(f"bead {bead} does not exist: the topology has {self._n_beads} beads")

    def __reduce__(self):
        """A pickle or copy is in use by no Context. Handles among arguments go by their numbers: while the
        topology is being made anew there are none yet to point to."""
        number = {handle: i for i, handle in enumerate(self._handles)}
        objects = []
        for handle in self._handles:
            if handle.moves_with is not handle:
                # Made together with the other one.
                continue
            arguments = handle._arguments_now()
            others = {key: number[value] for key, value in arguments.items() if isinstance(value, Handle)}
            objects.append((type(handle), {k: v for k, v in arguments.items() if k not in others}, others))
        return _made_anew, (type(self), tuple(objects))

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(h)} {h.kind} of {h.name!r}" for h in self._handles)
        return f"Topology({self._n_beads} beads{': ' if parts else ''}{parts})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The arrays that its beads have, and those of the kinds of beads of this package."""
        return tuple(self._columns.values())

    def n_rows(self, of: str) -> int:
        """How many beads have a row in the columns of an `of`."""
        return self._n_beads if of == BEADS else self.row_counts.get(of, 0)

    # Editing ------------------------------------------------------------------------------------------------

    @contextmanager
    def edit(self) -> Iterator[None]:
        """A block in which beads are added to a running simulation, with forces and jumps on them.

        Inside, all ``add_`` methods of the topology and ``add_force``, ``remove_force``, ``add_jump`` and
        ``remove_jump`` of the system are allowed. At its end the Context goes on with all of it: step, time, positions,
        velocities and links of what was there are as before, to the last bit, and so is what they do from then on, as
        far as nothing new acts on them. New beads are where they were put; their velocities are drawn from Maxwell's
        distribution at the temperature of the integrator, or are 0 without one. What is new changes the energy by
        protocol work. If the block raises an error, or the Context cannot be made to follow, all is as it was before.

        Raises
        ------
        TopologyError
            Inside another such block, or with several contexts that use the topology.
        ContextInUseError
            Inside a step or from a reporter; and from whatever is asked of the Context inside the block.
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

    def _room(self, what: str, n: int, name: str | None, default: str) -> tuple[int, str]:
        if len(self._contexts) and not self.is_edited:
            raise TopologyError(
                f"{what}: this topology is in use by a Context; add everything first, or inside "
                "`with topology.edit():`"
            )
        if n == 0:
            raise TopologyError(f"{what}: there is nothing to add (0 beads)")
        if self._n_beads + n > MAX_BEADS:
            raise TopologyError(f"{what}: {self._n_beads + n} beads are more than {MAX_BEADS}")
        taken = {h.name for h in self._handles}
        if name is None:
            name, k = default, 1
            while name in taken:
                k += 1
                name = f"{default} {k}"
        elif name in taken:
            raise TopologyError(f"{what}: the name {name!r} is in use")
        return self._n_beads, str(name)

    def _keep(self, handle):
        for name, value in vars(handle).items():
            if isinstance(value, np.ndarray) and not name.startswith("_"):
                # Nothing would follow if somebody wrote into it.
                value.flags.writeable = False
        self._declare(handle)
        self._handles.append(handle)
        self._n_beads += len(handle)
        return handle

    def _declare(self, handle: Handle) -> None:
        """Take the columns of a handle, and give it rows in them."""
        for column in handle.columns:
            if column.of == BEADS and column.name not in self._columns:
                raise TopologyError(f"{type(handle).__name__}: column {column.name!r} cannot be of all beads")
            if column.of not in (BEADS, handle.rows_of()):
                raise TopologyError(
                    f"{type(handle).__name__}: column {column.name!r} is of {column.of!r}, others of this kind are of "
                    f"{handle.rows_of()!r}"
                )
            if self._columns.setdefault(column.name, column) != column:
                raise TopologyError(f"{type(handle).__name__}: another kind of bead has a column {column.name!r}")
        if of := handle.rows_of():
            handle._first_row = self.row_counts.get(of, 0)
            self.row_counts[of] = handle._first_row + len(handle)

    def expect_places(self, what: str, beads: np.ndarray) -> None:
        """Refuse directors among beads, by number: what acts between places does not act on directions.

        Raises
        ------
        TopologyError
        """
        for handle in self._handles:
            if not handle.in_space:
                among = (beads >= handle.first_bead) & (beads < handle.first_bead + len(handle))
                if among.any():
                    raise TopologyError(
                        f"{what}: bead {beads[np.argmax(among)]} belongs to {handle!r}, which are directions without a "
                        "place in space"
                    )

    def bead_indices(self, what: str, beads: Any) -> np.ndarray:
        """Bead numbers of a handle, of several handles, or given as they are; sorted, each once.

        Raises
        ------
        TopologyError
            A foreign handle, or a bead that does not exist or is named twice.
        """
        if isinstance(beads, Iterable) and not isinstance(beads, np.ndarray):
            beads = list(beads)
        for handle in handles_in(beads):
            if handle.topology is not self:
                raise TopologyError(f"{what}: {handle!r} belongs to another topology")
        index = np.sort(array(what, bead_numbers(beads), (None,), dtype=np.int64, error=TopologyError))
        if len(index) and (index[0] < 0 or index[-1] >= self._n_beads):
            bad = index[0] if index[0] < 0 else index[-1]
            raise TopologyError(f"{what}: bead {bad} does not exist: beads are 0 to {self._n_beads - 1}")
        twice = np.flatnonzero(index[1:] == index[:-1])
        if len(twice):
            raise TopologyError(f"{what}: bead {index[twice[0]]} is named twice")
        return index


def _made_anew(
    cls: type[Topology], objects: tuple[tuple[type[Handle], dict[str, Any], dict[str, int]], ...]
) -> Topology:
    topology = cls()
    for kind, arguments, others in objects:
        kind.adder(topology)(**arguments, **{key: topology.handles[i] for key, i in others.items()})
    return topology
