"""Trajectories: what of a simulation goes into an H5MD file, and what stands beside the frames; the file itself is
`medyanpy.files.hdf5`."""

import os
import weakref
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.interrupts import Interrupts
from medyanpy._tools.outputs import Lock, remove_left_over, writing
from medyanpy._tools.validation import whole_number
from medyanpy._version import __version__
from medyanpy.beads import Membrane
from medyanpy.columns import VELOCITIES, Column
from medyanpy.errors import ParameterError, foreign_errors
from medyanpy.files.documents import serialize
from medyanpy.files.hdf5 import (
    ENERGIES,
    FACES_OF,
    FIRST_ROW,
    FORMAT,
    POSITION,
    File,
    Writer,
    check_format,
    has_no_frames,
    import_h5py,
    open_to_read,
    read_handle_rows,
)
from medyanpy.reporters._base import Reporter, added_to, check_replaceable, new_file
from medyanpy.surfaces import PythonSurface, Surface
from medyanpy.topology import Topology

if TYPE_CHECKING:
    import h5py

    from medyanpy.jumps import Jump
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["TrajectoryReporter"]

# A chunk holds as many frames as fit into this (bytes), so that compression has something to work on while a
# single frame is still cheap to get at; and not more than the second number, so that little waits in memory.
_CHUNK = 2**20
_MOST_FRAMES = 64
# HDF5 cannot hold chunks beyond 4 GiB: very large frames are cut by beads.
_MOST_BEADS = 2**22


class TrajectoryReporter(Reporter):
    """Writes positions, and orientations, every `interval` steps to an HDF5 file, which `medyanpy.Trajectory` reads.

    Parameters
    ----------
    path : path
        By custom ``.h5``.
    interval : int, >= 1
        Steps between frames; frames are at multiples of it, never at step 0. (``reporter.report(simulation,
        simulation.context.get_state(positions=True, energy=True))`` writes one at any time.)
    velocities : bool
        Write velocities too, and of oriented beads angular momenta; they are then asked of the context.
    faces : bool, optional
        Write the triangles of membranes with every frame, for runs in which edges are flipped. Where nothing is said,
        only if some have been before the file is begun, or if the file to append to has them.
    precision : "double" or "single"
        Of all of these and of barycentric coordinates. Double keeps every bit; single halves the file, and
        is good to 0.0005 nm in a cell of 10 µm.
    overwrite : bool
        Replace an existing file.
    append : bool
        Go on in an existing file of the same topology, also one that a crash left behind. Frames after the step
        at which the simulation stands are dropped, as it will write them again.

    Raises
    ------
    ParameterError
        A file that exists or cannot be written; one to append to that is not a trajectory, or of another topology;
        one that somebody else is writing. The latter at the start of the first ``Simulation.step``, before its first
        step. Triangles that have changed since a file without them was begun. A state from before the last frame; a
        child that was forked from the process whose file it is.
    OutputError
        From ``Simulation.step``, `flush` or `close`: a disk that is full, a file that is gone, numbers beyond
        ``precision="single"``. Frames wait in memory, and are written as soon as that is possible.

    Notes
    -----
    Frames wait in memory until their chunk is full or 30 s have passed; `flush` makes all of them safe on disk at
    once. Memory does not grow with the number of frames. It may be flushed from another thread.
    """

    files = ("path",)
    goes_on = MappingProxyType({"append": True, "overwrite": False})

    def __init__(
        self,
        path: Any,
        interval: int,
        *,
        velocities: bool = False,
        faces: bool | None = None,
        precision: str = "double",
        overwrite: bool = False,
        append: bool = False,
    ) -> None:
        super().__init__(interval)
        if precision not in ("double", "single"):
            raise ParameterError(f"TrajectoryReporter: precision = {precision!r} but must be 'double' or 'single'")
        # Files take the places of others by renaming: a link would be lost, and its target stay.
        self._path = new_file(
            "TrajectoryReporter", path, overwrite=overwrite, append=append, holds_nothing=has_no_frames
        ).resolve()
        check_replaceable("TrajectoryReporter", self._path)
        self._overwrite = overwrite
        self._append = append
        self._velocities = bool(velocities)
        self._faces = None if faces is None else bool(faces)
        self._real = np.dtype("<f8" if precision == "double" else "<f4")
        self._writer: Writer | None = None
        self._closed = False
        # Frames when it was last asked or closed; those that a checkpoint knows, and the lock of their file.
        self._frames: int | None = None
        self._marked: int | None = None
        self._lock: Lock | None = None
        self.include = ("positions", "energy", "velocities") if velocities else ("positions", "energy")
        # A missing library is found out now, not after the first thousand steps.
        import_h5py()

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        self._attach(simulation)
        return super().describe_next_report(simulation)

    def report(self, simulation: "Simulation", state: "State") -> None:
        values: dict[str, Any] = {c.path: state.column(c.name) for c in self._columns(simulation.topology)}
        for name in ENERGIES:
            values[f"observables/{name}"] = getattr(state, name)
        for path, membrane in self._membranes(simulation.topology).items():
            values[path] = state.faces[membrane.name]
        for path, (name, key, most) in _jumps(simulation).items():
            rows = state.jumps[name][key]
            values[path] = np.full((most, 2), -1, np.int32)
            values[path][: len(rows)] = rows
        self._attach(simulation).add(state.step, state.time, values)

    def mark(self, simulation: "Simulation") -> int | None:
        """The number of frames."""
        if not self._closed:
            self._frames = self._attach(simulation)._waiting.frames
        return self._frames

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        wanted = 0 if mark is None else whole_number("TrajectoryReporter: mark", mark)
        if not self._path.exists():
            return
        self._lock = Lock("TrajectoryReporter", self._path)
        with (
            foreign_errors(f"TrajectoryReporter: cannot append to {self._path}"),
            open_to_read(self._path, left=True) as file,
        ):
            check_format(file, self._path)
            self._check_same(file, simulation)
            found = len(file[POSITION]["step"])
        if found < wanted:
            raise ParameterError(
                f"TrajectoryReporter: {self._path} is shorter than at the checkpoint: {found} frames instead of "
                f"{wanted}"
            )

    def go_on(self, simulation: "Simulation", mark: Any) -> None:
        self._marked = mark
        self._attach(simulation)

    def flush(self) -> None:
        """Make every frame reported so far safe on disk."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            # Where this raises, nothing is lost: it may be closed again when there is room.
            self._writer.write()
            self._frames = self._writer._waiting.frames
            self._writer = None
            self._closed = True
            self._finish()
        elif self._lock is not None:
            self._lock.release()
        self._closed = True

    def _attach(self, simulation: "Simulation") -> "Writer":
        """The file, opened when the topology is first known; without frames that the simulation has yet to reach."""
        if self._closed:
            raise ParameterError(f"TrajectoryReporter: {self._path} is closed")
        if self._writer is None:
            self._open(simulation)
            self._handles = simulation.topology.handles
        elif self._handles != simulation.topology.handles:
            raise added_to("TrajectoryReporter", self._path)
        if simulation.context.layout.triangulation.may_change and not self._faces:
            raise ParameterError(
                f"TrajectoryReporter: edges have been flipped since {self._path} was begun, which holds the triangles "
                "of the meshes: make the reporter with faces=True"
            )
        if self._writer.last_step > simulation.current_step:
            self._writer.rewind(simulation.current_step)
        return self._writer

    def _open(self, simulation: "Simulation") -> None:
        with Interrupts(), writing("TrajectoryReporter", self._path), ExitStack() as stack:
            there = self._path.exists()
            if there and not (self._overwrite or self._append or has_no_frames(self._path)):
                raise ParameterError(
                    f"TrajectoryReporter: {self._path} exists by now; give overwrite=True to replace it or append=True "
                    "to go on"
                )
            lock = self._lock or Lock("TrajectoryReporter", self._path)
            stack.callback(lock.release)
            remove_left_over(self._path)
            if there and self._append:
                file = File.copy(self._path, self._marked, check=lambda old: self._check_same(old, simulation))
            else:
                if self._faces is None:
                    self._faces = simulation.context.layout.triangulation.may_change
                file = File(self._path, lambda new: self._lay_out(new, simulation))
            writer = Writer(file, lock)
            # A script that ends without close() must not lose the frames that wait in memory.
            self._finish = weakref.finalize(self, writer.close)
            self._writer = writer
            stack.pop_all()

    def _membranes(self, topology: Topology) -> dict[str, Membrane]:
        """Those whose triangles are in frames, and where."""
        numbered = enumerate(topology.handles)
        found = {f"medyanpy/faces/{k}": handle for k, handle in numbered if isinstance(handle, Membrane)}
        return found if self._faces else {}

    def _columns(self, topology: Topology) -> list[Column]:
        """What is written of every frame."""
        wanted = [c for c in topology.columns if c.in_trajectory and (self._velocities or not c.is_momentum)]
        return [column for column in wanted if topology.n_rows(column.of)]

    def _elements(self, simulation: "Simulation") -> dict[str, tuple[tuple[int, ...], np.dtype, str]]:
        """Shape, type and unit of a frame's part of each time-dependent element."""
        topology = simulation.topology
        out: dict[str, tuple[tuple[int, ...], np.dtype, str]] = {}
        for column in self._columns(topology):
            shape = (topology.n_rows(column.of), *column.shown_shape)
            dtype = self._real if column.dtype is np.float64 else np.dtype(column.dtype).newbyteorder("<")
            out[column.path] = (shape, dtype, column.unit)
        for name in ENERGIES:
            out[f"observables/{name}"] = ((), np.dtype("<f8"), "K" if name == "temperature" else "pN nm")
        for path, membrane in self._membranes(topology).items():
            out[path] = (membrane.mesh.faces.shape, np.dtype("<i4"), "")
        for path, (_, _, most) in _jumps(simulation).items():
            out[path] = ((most, 2), np.dtype("<i4"), "")
        return out

    def _lay_out(self, file: "h5py.File", simulation: "Simulation") -> None:
        """All time-dependent elements, empty: none can be added once readers are allowed."""
        _describe(file, simulation)
        elements = self._elements(simulation)
        frame = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype, _ in elements.values())
        frames = int(np.clip(_CHUNK // frame, 1, _MOST_FRAMES))
        file["medyanpy"].attrs["frames_per_chunk"] = frames
        step = time = None
        own = {column.path: column for column in self._columns(simulation.topology)}
        for path, (shape, dtype, unit) in elements.items():
            group = file.create_group(path)
            # Numbers that are not compressed may be added one by one.
            packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if shape else {}
            chunk = (frames, *(min(s, _MOST_BEADS) for s in shape)) if shape else (512,)
            value = group.create_dataset(
                "value", shape=(0, *shape), maxshape=(None, *shape), dtype=dtype, chunks=chunk, **packed
            )
            if path in own:
                group.attrs["name"], group.attrs["drawn"] = own[path].name, own[path].drawn
            if unit:
                # MDAnalysis refuses a file whose velocities carry a unit that it does not know, as it does nm/s:
                # theirs stands where it does not look.
                (group if path == VELOCITIES.path else value).attrs["unit"] = unit
            if step is None:
                step = group.create_dataset("step", shape=(0,), maxshape=(None,), dtype="<i8", chunks=(512,))
                time = group.create_dataset("time", shape=(0,), maxshape=(None,), dtype="<f8", chunks=(512,))
                time.attrs["unit"] = "s"
            else:
                # All elements are of the same steps: one dataset under several names, as H5MD recommends.
                group["step"], group["time"] = step, time
        for path, membrane in self._membranes(simulation.topology).items():
            file[path].attrs["name"] = FACES_OF + membrane.name
        for path, (name, *_) in _jumps(simulation).items():
            file[path].attrs["name"] = name
            for side, arrays in _sites_of(simulation.system[name]).items():
                for key, value in arrays.items():
                    file[path].create_dataset(f"{side}/{key}", data=value)

    def _check_same(self, file: "h5py.File", simulation: "Simulation") -> None:
        """Refuse to append frames of another topology, or with other content."""
        topology = simulation.topology
        if self._faces is None:
            self._faces = "medyanpy/faces" in file
        what = f"TrajectoryReporter: cannot append to {self._path}: "
        mine, theirs = _handle_rows(topology), read_handle_rows(file)
        if mine != theirs:
            raise ParameterError(f"{what}it holds {_tell(theirs)}, the simulation {_tell(mine)}")
        for k, handle in enumerate(topology.handles):
            mine = handle.beside_frames().get("faces")
            if mine is not None:
                faces = file[f"medyanpy/handles/{k}/faces"]
                if faces.shape != mine.shape or not (faces[()] == mine).all():
                    raise ParameterError(f"{what}the triangles of {handle.name!r} are others")
        for path, (shape, dtype, _) in self._elements(simulation).items():
            if path not in file:
                raise ParameterError(f"{what}it has no {path}; append with the options it was written with")
            value = file[path]["value"]
            if any(file[path][name].maxshape[0] is not None for name in ("value", "step", "time")):
                raise ParameterError(f"{what}{path} cannot grow, as another program has written it anew")
            if value.shape[1:] != shape or value.dtype != dtype:
                raise ParameterError(
                    f"{what}{path} is {value.dtype} {value.shape[1:]} there and {dtype} {shape} here; "
                    "append with the options it was written with"
                )
        for path, (name, *_) in _jumps(simulation).items():
            there = {side: {key: value[()] for key, value in file[path][side].items()} for side in "ab"}
            here = _sites_of(simulation.system[name])
            same = all(np.array_equal(a, there[side].get(key)) for side in "ab" for key, a in here[side].items())
            if file[path].attrs["name"] != name or not same:
                raise ParameterError(f"{what}the sites of {name} are others")
        if not self._faces and "medyanpy/faces" in file:
            raise ParameterError(f"{what}it has triangles in its frames; append with faces=True")
        if not self._velocities and VELOCITIES.path in file:
            raise ParameterError(f"{what}it has velocities; append with velocities=True")


def _handle_rows(topology: Topology) -> list[tuple[str, str, int, int]]:
    return [(h.name, h.kind, h.first_bead, len(h)) for h in topology.handles]


def _jumps(simulation: "Simulation") -> dict[str, tuple[str, str, int]]:
    """Where frames hold what jumps have made: the name of the jump, and `Jump.in_frames`."""
    found = {}
    for k, (name, jump) in enumerate(zip(simulation.system.jump_names, simulation.system.jumps, strict=True)):
        if jump.in_frames() is not None:
            found[f"medyanpy/jumps/{k}"] = (name, *jump.in_frames())
    return found


def _sites_of(jump: "Jump") -> dict[str, dict[str, np.ndarray]]:
    """What `Sites.from_arrays` makes the same sites of, for each side."""
    return {side: sites.arrays for side, sites in jump.beside_frames().items()}


def _tell(rows: list[tuple[str, str, int, int]]) -> str:
    return ", ".join(f"{n} {kind} of {name!r}" for name, kind, _, n in rows)


def _describe(file: "h5py.File", simulation: "Simulation") -> None:
    """All that does not depend on time."""
    topology, integrator = simulation.topology, simulation.integrator
    about = file.create_group("h5md")
    about.attrs["version"] = np.array([1, 1], np.int32)
    about.create_group("author").attrs["name"] = os.environ.get("USER") or "unknown"
    creator = about.create_group("creator")
    creator.attrs["name"], creator.attrs["version"] = "medyanpy", __version__

    beads = file.create_group("particles/all")
    box = beads.create_group("box")
    box.attrs["dimension"] = 3
    box.attrs["boundary"] = ["none", "none", "none"]
    species = np.concatenate([np.full(len(h), k, np.int32) for k, h in enumerate(topology.handles)])
    beads.create_dataset("species", data=species)
    beads.create_dataset("id", data=np.arange(topology.n_beads, dtype=np.int32))
    mass = beads.create_dataset("mass", data=np.concatenate([h.mass for h in topology.handles]))
    mass.attrs["unit"] = "pN s+2 nm-1"

    own = file.create_group("medyanpy")
    own.attrs["format"] = FORMAT
    own.attrs["version"] = __version__
    own.attrs["timestep"] = integrator.timestep
    own.attrs["word"] = integrator.word
    if integrator.kT is not None:
        own.attrs["kT"] = integrator.kT
    own.attrs["seed"] = np.uint64(integrator.seed)
    handles = own.create_group("handles")
    for k, (handle, row) in enumerate(zip(topology.handles, _handle_rows(topology), strict=True)):
        group = handles.create_group(str(k))
        for name, value in zip(("name", "kind", "first_bead", "n_beads"), row, strict=True):
            group.attrs[name] = value
        if handle.rows_of():
            group.attrs["rows_of"] = handle.rows_of()
            group.attrs[FIRST_ROW.get(handle.rows_of(), "first_row")] = handle.rows.start
        for name, value in handle.beside_frames().items():
            _write_beside(group, name, value)


def _write_beside(group: "h5py.Group", name: str, value: Any) -> None:
    """One of the things that a handle has beside frames: see `Handle.beside_frames`."""
    value, unit = value if isinstance(value, tuple) else (value, "")
    if isinstance(value, Surface):
        # What calls Python functions, a file cannot hold.
        if not isinstance(value, PythonSurface):
            group.create_dataset(name, data=serialize(value))
    elif isinstance(value, np.ndarray):
        # Masses, radii and the like are mostly those of one species.
        dataset = group.create_dataset(name, data=value, compression="gzip", shuffle=True)
        if unit:
            dataset.attrs["unit"] = unit
    else:
        group.attrs[name] = value
