"""What becomes of a running context when its topology is edited: all is compiled anew, and the state goes on."""

from typing import Any, NamedTuple

from medyanpy.engine.faults import Faults
from medyanpy.engine.measure import Measure
from medyanpy.engine.needles import Degradation
from medyanpy.engine.schedule import Schedule
from medyanpy.engine.store import Store
from medyanpy.engine.work import WorkMeter
from medyanpy.system import System

__all__ = ["Engine", "Undo", "edited"]


class Engine(NamedTuple):
    """What a topology, a system and an integrator are compiled to."""

    store: Store
    faults: Faults
    schedule: Schedule
    measure: Measure
    degradation: Degradation


class Undo:
    """A block in which topology and system may change; all of it is taken back where the block raises."""

    #: What adding and removing change.
    _of_topology = ("_handles", "_n_beads", "_columns", "row_counts")
    _of_system = ("_forces", "_names", "_jumps", "_jump_names")

    def __init__(self, system: System) -> None:
        self._system, self._topology = system, system.topology

    def _parts(self) -> dict[tuple[Any, str], Any]:
        parts = {(self._topology, name): getattr(self._topology, name) for name in self._of_topology}
        parts |= {(self._system, name): getattr(self._system, name) for name in self._of_system}
        return {key: value if isinstance(value, int) else value.copy() for key, value in parts.items()}

    def __enter__(self) -> None:
        self._before = self._parts()
        self._topology._is_edited = True

    def __exit__(self, kind: type | None, *_: Any) -> None:
        self._topology._is_edited = False
        if kind is not None:
            for (of, name), value in self._before.items():
                vars(of)[name] = value


def edited(old: Engine, new: Engine, energies: tuple[float, float] | None) -> Engine:
    """The engine compiled after an edit, with the state of the one from before it; kinetic and potential energy were
    these, where work is measured."""
    before, store, schedule = old.store, new.store, new.schedule
    places = store.layout.rank[before.layout.order]
    _carry_columns(before, store, momenta=False)
    _carry_faces(before, new)
    if schedule.integrator.kT is not None and store.layout.n > before.layout.n:
        # Each bead has random numbers of its own, and is born once.
        store.draw_momenta(schedule.integrator.kT, store.seed, before.layout.n)
    schedule.admit_velocities()
    # To the bit: also what letters and looks have computed before.
    _carry_columns(before, store, momenta=True)
    own = {"faces", *(column.array for column in store.layout.topology.columns)}
    coefficients = set(old.schedule.coefficient_arrays())
    kept = _jumps_that_stay(old, new)
    theirs = old.schedule.moving_arrays() | old.schedule.coefficient_arrays()
    for name, array in (schedule.moving_arrays() | schedule.coefficient_arrays()).items():
        if name in coefficients:
            array[places] = theirs[name]
        elif name not in own and name in theirs and theirs[name].shape == array.shape:
            if not name.startswith("jump ") or name.startswith(kept):
                array[...] = theirs[name]
    handles = {handle: k for k, handle in enumerate(before.layout.handles)}
    for k, handle in enumerate(store.layout.handles):
        if handle in handles:
            store.after_o[k] = before.after_o[handles[handle]]
    schedule.jumping.took_over()
    schedule.account.close()
    schedule.since = old.schedule.since
    store.program.changed()
    store.program.step = before.step
    schedule.wind()
    if energies is not None:
        schedule.meter = WorkMeter(store.ranges, schedule.integrator.overdamped, schedule.jumping.operations)
        schedule.compile()
        schedule.meter.take(old.schedule.dynamical_arrays()["work"])
        schedule.meter.intervene(energies, new.measure.energies())
    old.schedule.jumping.gather()
    return new


def _jumps_that_stay(old: Engine, new: Engine) -> tuple[str, ...]:
    """How the names of their arrays begin."""
    there = dict(zip(old.schedule.jumping.names, old.schedule.jumping.jumps, strict=True))
    names = zip(new.schedule.jumping.names, new.schedule.jumping.jumps, strict=True)
    return tuple(f"jump {name}, " for name, jump in names if there.get(name) is jump)


def _carry_columns(before: Store, store: Store, *, momenta: bool) -> None:
    """The rows of beads that were there; new ones come after them, in topology order."""
    for column in before.layout.topology.columns:
        if column.array in before.arrays and column.is_momentum == momenta:
            rows = before.layout.shown_rows(column.of)
            now = store.layout.shown_rows(column.of)[: len(rows)]
            # Mostly where they were: beads that follow each other are copied as one.
            same = slice(0, len(rows)) if (rows == now).all() else None
            store.arrays[column.array][same or now] = before.arrays[column.array][same or rows]


def _carry_faces(before: Store, new: Engine) -> None:
    """Triangles of membranes that were there join the vertices that they did."""
    if before.layout.triangulation.may_change:
        # Vertices have the first places, and new membranes come after those that were there.
        faces = new.store.layout.triangulation.at_first()
        faces[: len(before.faces)] = before.faces
        new.schedule.flipping.take(faces)
