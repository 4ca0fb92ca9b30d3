"""Editing the topology of a running context: everything is compiled again, and the state is carried over."""

from typing import Any, NamedTuple, cast

import numpy as np

from medyanpy.core.columns import ORIENTATIONS, SPECIES
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Block
from medyanpy.engine.faults import Faults
from medyanpy.engine.measure import Measure
from medyanpy.engine.mesh_quality import Degradation
from medyanpy.engine.schedule import Schedule
from medyanpy.engine.store import Store
from medyanpy.engine.work import WorkMeter
from medyanpy.integrators import SplittingIntegrator
from medyanpy.system import System

__all__ = ["Engine", "Undo", "describe_places", "describe_the_living", "edited"]


class Engine(NamedTuple):
    """Compiled form of a topology, a system and an integrator."""

    store: Store
    faults: Faults
    schedule: Schedule
    measure: Measure
    degradation: Degradation


class Undo:
    """A block in which topology, system and integrator may change; all of it is taken back where the block raises."""

    #: Attributes that adding and removing change.
    _of_topology = ("_handles", "_n_beads", "_next_id", "_columns", "_beads_with", "row_counts", "_joint")
    _of_system = ("_forces", "_names", "_jumps", "_jump_names", "_hydrodynamics", "_pools")

    def __init__(self, system: System, integrator: SplittingIntegrator) -> None:
        self._system, self._topology, self._integrator = system, system.topology, integrator

    def __enter__(self) -> None:
        # Handles grow and shrink, and what names beads loses terms; arrays are never written into.
        self._whole = (*self._topology.handles, *self._system.forces, *self._system.jumps, self._integrator)
        parts = [(self._topology, self._of_topology), (self._system, self._of_system)]
        parts += [(one, tuple(vars(one))) for one in self._whole]
        self._before = [(one, {name: _copied(vars(one)[name]) for name in names}) for one, names in parts]
        self._topology._is_edited = True

    def __exit__(self, kind: type | None, *_: Any) -> None:
        self._topology._is_edited, self._topology._describe = False, None
        if kind is not None:
            for one, attributes in self._before:
                if one in self._whole:
                    # Nothing that has been worked out since is kept.
                    vars(one).clear()
                vars(one).update(attributes)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict) else value


def describe_the_living(store: Store) -> None:
    """Update handles to what jumps have made of them: added beads are described as they are now."""
    layout, topology = store.layout, store.layout.topology
    if store.room is None:
        return
    for handle in layout.handles:
        if not handle.kind.comes_and_goes:
            continue
        block = layout.block_of(handle)
        place = block.start + np.flatnonzero(store.alive[block])
        keep, born = np.isin(handle.ids, store.ids[place]), place[~np.isin(store.ids[place], handle.ids)]
        if keep.all() and not len(born):
            _describe_species(store, handle)
            continue
        arrays = {column: store.arrays[column.array] for column in handle.kind.columns}
        of = {c: a[born - layout.first_place(c.of)] for c, a in arrays.items() if not c.is_momentum}
        topology._become(handle, keep, handle.kind.created(of), layout.order[born].astype(np.int64), store.ids[born])
        _describe_species(store, handle)
    topology._next_id = int(store.next_id[0])


def _describe_species(store: Store, handle: Handle) -> None:
    """Let the beads of a handle be of the species that jumps have made them."""
    if handle._species:
        now = store.arrays[SPECIES.array][store.layout.internal(handle.beads)]
        handle._take(**handle.kind.of_species(now), _of_species=now)


def describe_places(store: Store) -> None:
    """Let beads of handles that take constraints start where they are now, and with them their directors: constraints
    that are added have to hold there, for documents too."""
    ids = store.ids_in_rows()
    row = np.argsort(ids)
    known = ids[row]
    for handle in store.layout.topology.handles:
        kind = handle.kind.moves_with.kind
        if handle.kind.block is Block.VERTICES:
            # It starts as its mesh is; `constrain` refuses vertices here, and points on meshes that move.
            continue
        if kind.takes_constraints and not kind.obstacle_to_constraints and len(handle):
            # Others have been added in this edit.
            k = np.minimum(np.searchsorted(known, handle.ids), len(known) - 1)
            there = known[k] == handle.ids
            x = cast(Any, handle).positions.copy()
            place = store.layout.rank[row[k[there]]]
            if handle.kind.block is Block.POINTS:
                own = {name: getattr(handle, name).copy() for name in ("triangles", "_weights")}
                membrane = cast(Any, handle).membrane
                own["triangles"][there] = store.triangle[place - store.layout.n_cartesian] - membrane.first_face
                own["_weights"][there] = store.barycentric[place - store.layout.n_cartesian]
                if membrane.kind.fixed_beads.all():
                    handle._take(**own)
                continue
            x[there] = store.x[place]
            if ORIENTATIONS in handle.kind.columns:
                q = cast(Any, handle).orientations.copy()
                q[there] = store.arrays[ORIENTATIONS.array][place - store.layout.first_oriented]
                handle._take(orientations=q)
            handle._take(positions=handle.kind.remade(x))


class Carried(NamedTuple):
    """Beads that were there before an edit and are there after it: their places then and now."""

    then: np.ndarray
    now: np.ndarray

    def without(self, left_out: np.ndarray) -> "Carried":
        """Return these without those that some places (n,) now have."""
        stay = ~left_out[self.now]
        return Carried(self.then[stay], self.now[stay])

    def within(self, then: slice, now: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return, of the beads in a range of places, their numbers in that range before and after."""
        own = (self.now >= now.start) & (self.now < now.stop)
        return self.then[own] - then.start, self.now[own] - now.start


def edited(old: Engine, new: Engine, energies: tuple[float, float] | None) -> Engine:
    """Return the engine compiled after an edit, with the state of the one from before it; kinetic and potential energy
    were these, where work is measured."""
    before, store, schedule = old.store, new.store, new.schedule
    store.layout.box[:] = before.layout.box
    # Added items are bound to the box of the start.
    store.layout.check_widths(store.layout.box)
    carried = _carried(before, store)
    # What new constraints join starts where it is now, and has been brought to where they hold.
    joined = _newly_joined(before, store)
    stays = carried.without(joined)
    _carry_columns(before, store, stays, momenta=False)
    if joined.any():
        _carry_columns(before, store, carried, momenta=True)
    _carry_faces(before, new)
    new_here = np.ones(store.layout.n, bool)
    new_here[carried.now] = False
    if schedule.integrator.kT is not None and new_here.any():
        # Each bead has random numbers of its own, and is added once.
        store.draw_momenta(schedule.integrator.kT, store.seed, new_here)
    schedule.admit_velocities()
    # To the bit: also what letters and looks have computed before.
    _carry_columns(before, store, stays, momenta=True)
    schedule.take_coefficients(old.schedule, carried.then, carried.now)
    for handle, flow in schedule.flows.items():
        if (theirs := old.schedule.flows.get(handle)) is not None:
            flow.carry(theirs, *carried.within(before.layout.slice_of(handle), store.layout.slice_of(handle)))
    if schedule.fluid is not None and old.schedule.fluid is not None:
        schedule.fluid.carry(old.schedule.fluid, carried.then, carried.now)
    for pool, counts in store.layout.pools.items():
        if pool in before.layout.pools:
            counts.array[...] = before.layout.pools[pool].array
    schedule.jumping.carry(old.schedule.jumping)
    schedule.jumping.check_room()
    schedule.proposing.counts[...] = old.schedule.proposing.counts
    schedule.account.array[...] = old.schedule.account.array
    handles = {handle: k for k, handle in enumerate(before.layout.handles)}
    for k, handle in enumerate(store.layout.handles):
        if handle in handles:
            block, then = store.layout.block_of(handle), before.layout.block_of(handle)
            stayed = len(carried.within(then, block)[0])
            # A temperature is that of the last O where no bead and no constraint has been added or removed since.
            if stayed == before.living(then) == store.living(block) and before.held == store.held:
                store.after_o[k] = before.after_o[handles[handle]]
    schedule.jumping.took_over()
    schedule.account.close()
    store.program.changed()
    store.program.step = before.step
    schedule.go_on_from(old.schedule)
    if energies is not None:
        schedule.meter = WorkMeter(store.ranges, schedule.integrator.overdamped, schedule.jumping.operations)
        schedule.compile()
        schedule.meter.take(old.schedule.dynamical_arrays()["work"])
        schedule.meter.intervene(energies, new.measure.energies())
    return new


def _carried(before: Store, store: Store) -> Carried:
    """Match the rows before and after an edit; a bead in the row of a removed one has another id."""
    then, now = before.ids_in_rows(), store.ids_in_rows()
    n = min(len(then), len(now))
    rows = np.flatnonzero((then[:n] == now[:n]) & (then[:n] >= 0))
    return Carried(before.layout.rank[rows].astype(np.int64), store.layout.rank[rows].astype(np.int64))


def _newly_joined(before: Store, store: Store) -> np.ndarray:
    """Mark the places (n,) of beads that are solved together with a constraint that was not there before."""
    out, joint = np.zeros(store.layout.n, bool), store.layout.topology.joint
    if joint is not None:
        out[store.layout.internal(joint.beads_with(set(store.layout.handles) - set(before.layout.handles)))] = True
    return out


def _carry_columns(before: Store, store: Store, carried: Carried, *, momenta: bool) -> None:
    for column in before.layout.topology.columns:
        if column.array in before.arrays and column.is_momentum == momenta:
            then, now = (
                slice(first, first + one.n_rows(column.of))
                for one in (before.layout, store.layout)
                for first in [one.first_place(column.of)]
            )
            old, new = carried.within(then, now)
            # Mostly where they were: beads that follow each other are copied as one.
            same = len(old) and old[-1] - old[0] == len(old) - 1 and np.array_equal(old, new)
            if same and (np.diff(old) == 1).all():
                both = slice(int(old[0]), int(old[-1]) + 1)
                store.arrays[column.array][both] = before.arrays[column.array][both]
            else:
                store.arrays[column.array][new] = before.arrays[column.array][old]


def _carry_faces(before: Store, new: Engine) -> None:
    """Let the triangles of membranes that were there join the vertices that they joined before."""
    if before.layout.triangulation.may_change:
        # Vertices have the first places, and new membranes come after those that were there.
        faces = new.store.layout.triangulation.at_first()
        faces[: len(before.faces)] = before.faces
        new.schedule.flipping.take(faces)
