"""Changes of the triangles of one Context: which vertices they join, and what follows from that."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.changes import Proposal
from medyanpy._kernels.jumps.trial import Ask, can_mend
from medyanpy._tools.validation import array
from medyanpy.core.kinds import Block
from medyanpy.engine.box_changes import check_sheets
from medyanpy.errors import TopologyError

if TYPE_CHECKING:
    from medyanpy.beads import Membrane
    from medyanpy.engine.schedule import Schedule
    from medyanpy.forces import Force

__all__ = ["Flipping"]


class Flipping:
    """Flips of edges and all else that gives membranes other triangles: the forces of a schedule follow.

    What forces hold of triangles is mended by their operations (`Operation.changed`), or else they are bound again.
    """

    def __init__(self, schedule: "Schedule") -> None:
        self._schedule = schedule
        self._triangulation = schedule.layout.triangulation

    def proposal(self, what: str, membrane: "Membrane", edges: np.ndarray, *moved: np.ndarray) -> Proposal:
        """Make a `Triangulation.proposal`."""
        store = self._schedule.store
        return self._triangulation.proposal(what, membrane, edges, store.program, store.triangle, *moved)

    def swap(self, membrane: "Membrane", change: Proposal) -> None:
        """Make a change that flips edges of a membrane, or take it back; forces have yet to follow."""
        change.swap()
        self._triangulation.changed(membrane)

    def difference(self, number: int, membrane: "Membrane", change: Proposal) -> float:
        """Return what the energy of a force, by number, gains by a change that flips edges of a membrane, if any; pN
        nm.

        Operations that can tell it look at little more than what changes. Of others the whole energy is evaluated
        twice, and where they hold something of the triangles they are bound again for it.
        """
        schedule = self._schedule
        force, operation = schedule.system.forces[number], schedule.bound[number]
        with schedule.explained():
            if not len(change.made) or membrane not in force.handles:
                return float(change.difference(operation))
            self.swap(membrane, change)
            try:
                after = None if change.mended(operation) else change.energy(schedule.bind(force))
            finally:
                self.swap(membrane, change)
                change.mended(operation)
            return float(change.difference(operation) if after is None else after - change.energy(operation))

    def flip(self, what: str, membrane: "Membrane", edges: np.ndarray) -> np.ndarray:
        """Flip edges of a membrane, (k, 2) of its vertices; returns those in their places. See `Context.flip_edges`."""
        change = self.proposal(what, membrane, edges)
        store, joint = self._schedule.store, self._schedule.layout.topology.joint
        held = np.empty(0, np.int64)
        if joint is not None:
            held = store.layout.internal(joint.points) - store.layout.n_cartesian
        before = store.triangle[held].copy(), store.barycentric[held].copy()
        self.swap(membrane, change)
        try:
            moved = (store.triangle[held] != before[0]) | (store.barycentric[held] != before[1]).any(axis=1)
            if moved.any():
                point = int(store.layout.order[store.layout.n_cartesian + held[np.argmax(moved)]])
                raise TopologyError(
                    f"{what}: constraints hold in-triangle point {point} of "
                    f"{store.layout.topology.handle_of(point)!r}, which is in one of the triangles: edges flip where "
                    "no such points are"
                )
            if store.layout.is_periodic:
                check_sheets(what, store, store.x, store.layout.box)
            self.follow([membrane], change)
        except BaseException:
            self.swap(membrane, change)
            raise
        made: np.ndarray = change.made - self._schedule.layout.slice_of(membrane).start
        return made

    def follow(self, membranes: "Collection[Membrane]", change: Proposal | None = None) -> None:
        """Let forces follow triangles of membranes that join other vertices than before, by a change if one is
        given."""
        schedule = self._schedule
        forces = schedule.system.forces
        named = [
            i
            for i, force in enumerate(forces)
            if not force.of_positions_alone and any(handle in membranes for handle in force.handles)
        ]
        stale = [i for i in named if change is None or not change.mended(schedule.bound[i])]
        schedule.take_forces({i: schedule.bind(forces[i]) for i in stale})

    @contextmanager
    def joined_as(self, what: str, faces: Mapping[str, np.ndarray]) -> Iterator[None]:
        """Surround a block at whose start triangles of membranes join these vertices, by the names of handles as states
        show them; where it raises, they join those that they did.

        Raises
        ------
        TopologyError
            Triangles that cannot have come from those of the mesh.
        """
        before, now = self._triangulation.faces.copy(), self._triangulation.faces.copy()
        layout = self._schedule.layout
        for membrane in layout.topology.membranes:
            shape, own = membrane.mesh.faces.shape, faces.get(membrane.name)
            own = array(f"{what}: faces", own, shape, dtype=np.int64, error=TopologyError)
            now[self._triangulation.rows_of(membrane)] = own + layout.slice_of(membrane).start
        if (now == before).all():
            yield
            return
        self._triangulation.check(what, now)
        try:
            self.take(now)
            yield
        except BaseException:
            self.take(before)
            raise

    def take(self, faces: np.ndarray) -> None:
        """Let triangles join these vertices, by place, from now on."""
        if changed := self._triangulation.take(faces):
            self.follow(changed)

    def restored(self) -> None:
        """Let forces follow an earlier state, with other triangles, which kernels follow already."""
        schedule = self._schedule
        stale = [i for i, force in enumerate(schedule.system.forces) if not self.follows(force, schedule.bound[i])]
        schedule.bind_before_the_next_step(stale)
        schedule.put_forces({i: schedule.bind(schedule.system.forces[i]) for i in stale})

    def follows(self, force: "Force", operation: Any) -> bool:
        """Tell whether the operation of a force stays right whatever edges are flipped."""
        named = any(handle.kind.block is Block.VERTICES for handle in force.handles)
        return not named or force.of_positions_alone or can_mend(self._schedule.store.program, operation)

    def ask_of(self, membrane: "Membrane", force: "Force", operation: Any) -> Ask:
        """Return what has to be asked of a force for each flip that is tried."""
        if force.of_positions_alone:
            return Ask.OF_POINTS if operation.acts_on_points else Ask.NOTHING
        if membrane in force.handles:
            return Ask.DIFFERENCE if can_mend(self._schedule.store.program, operation) else Ask.REBIND
        return Ask.DIFFERENCE if operation.acts_on_points else Ask.NOTHING
