"""Trajectories: what of a simulation goes into H5MD files, and when; `medyanpy.files.writer` writes them."""

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._tools.interrupts import Interrupts
from medyanpy._tools.outputs import Lock, remove_left_over, writing
from medyanpy._tools.validation import whole_number
from medyanpy.errors import ParameterError, TrajectoryWarning, shown, warn_outside
from medyanpy.files import hdf5
from medyanpy.files.writer import File, Writer
from medyanpy.reporters._base import APPENDED, Reporter, check_replaceable, new_file
from medyanpy.reporters._content import Content

if TYPE_CHECKING:
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

__all__ = ["TrajectoryReporter"]


class TrajectoryReporter(Reporter):
    """Writes positions, and orientations, every `interval` steps to an HDF5 file, which `medyanpy.Trajectory` reads.

    Parameters
    ----------
    path : path
        By custom ``.h5``, or ``.h5md``, by which MDAnalysis knows it.
    interval : int, >= 1
        Steps between frames; frames are at multiples of it, never at step 0. (``reporter.report(simulation,
        simulation.context.get_state(positions=True, energy=True))`` writes one at any time.)
    velocities : bool
        Write velocities too, and angular momenta of oriented beads.
    faces : bool, optional
        Write the triangles of membranes with every frame, for runs in which edges are flipped. By default, from the
        first flip on, which starts a new segment where frames have been written before.
    precision : "double" or "single"
        Double keeps every bit; single halves the file, and is good to 0.0005 nm in a cell of 10 µm.
    overwrite : bool
        Replace an existing file.
    append : bool
        Continue an existing file of the same topology, also one that a crash left behind, without frames and segments
        that
        the simulation has yet to reach.

    Raises
    ------
    ParameterError
        A file that exists, cannot be written, or is written by another process. One to append to that is not a
        trajectory,
        or of another topology. Segments of another run, before the first step. Triangles that have changed, with
        ``faces=False``. A state from before the last frame, or before an edit. A forked child.
    OutputError
        From ``Simulation.step``, `flush` or `close`: a disk that is full, a file that is gone, numbers beyond
        ``precision="single"``. Frames wait in memory, and are written as soon as that is possible.

    Notes
    -----
    Frames also hold the energy of every force, links, and what is joined where that changes; beside them stands what
    was
    simulated, as `medyanpy.serialize` writes it, or why that cannot be written.

    Frames wait in memory until their chunk is full or 30 s have passed; `flush`, from any thread, makes them safe on
    disk.

    Frames have a row for each bead, and for each that there is room for (``capacity=``): nan in rows without a bead.
    After an
    edit of what stands beside frames (more rows than there was room for, masses, kinds of beads, forces), or of the
    links of
    `medyanpy.forces.Links`, the next frame begins a segment, a file of its own: ``run.part0002.h5`` after ``run.h5``.
    `Trajectory` reads all of them as one.
    """

    files: tuple[str, ...] = ("path",)
    goes_on: Mapping[str, Any] | None = APPENDED

    def __init__(
        self, path: Any, interval: int, *, velocities: bool = False, faces: bool | None = None,
        precision: Literal["double", "single"] = "double", overwrite: bool = False, append: bool = False
    ) -> None:  # fmt: skip
        super().__init__(interval)
        if not isinstance(precision, str) or precision not in ("double", "single"):
            raise ParameterError(f"TrajectoryReporter: precision = {shown(precision)} but must be 'double' or 'single'")
        # Files take the places of others by renaming: a link would be lost, and its target stay.
        self._path = new_file(
            "TrajectoryReporter", path, overwrite=overwrite, append=append, holds_nothing=hdf5.has_no_frames
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
        # The segment that is written, and what is before it: frames, and the step of the last; what its frames hold,
        # and of which layout of a Context.
        self._number, self._before = 1, hdf5.Before()
        self._content: Content
        self._layout: Any = None
        self.include: tuple[str, ...] = ("positions", "energy", "velocities") if velocities else ("positions", "energy")
        # A missing library is found out now, not after the first thousand steps.
        hdf5.import_h5py()

    def describe_next_report(self, simulation: "Simulation") -> dict[str, Any]:
        self._attach(simulation)
        return super().describe_next_report(simulation)

    def report(self, simulation: "Simulation", state: "State") -> None:
        writer = self._attach(simulation)
        writer.add(state.step, state.time, self._content.frame(state))

    def mark(self, simulation: "Simulation") -> int | None:
        """Return the number of frames."""
        if not self._closed:
            self._attach(simulation)
            self._frames = self._all_frames
        return self._frames

    @property
    def _all_frames(self) -> int:
        return self._before.frames + (0 if self._writer is None else self._writer.frames)

    def check_mark(self, simulation: "Simulation", mark: Any) -> None:
        wanted = 0 if mark is None else whole_number("TrajectoryReporter: mark", mark)
        if not self._path.exists():
            return
        self._lock = Lock("TrajectoryReporter", self._path)
        parts = hdf5.parts_there(self._path)
        found = sum(part.frames for part in parts)
        if found < wanted:
            raise ParameterError(
                f"TrajectoryReporter: {self._path} is shorter than at the checkpoint: {found} frames instead of "
                f"{wanted}"
            )
        self._place_for(simulation, parts, wanted, "behind")

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
            self._frames = self._all_frames
            self._writer = None
            self._closed = True
            self._finish()
        elif self._lock is not None:
            self._lock.release()
        self._closed = True

    def _attach(self, simulation: "Simulation") -> Writer:
        """Return the file, opened when the topology is known, without frames that the simulation has yet to reach."""
        if self._closed:
            raise ParameterError(f"TrajectoryReporter: {self._path} is closed")
        writer = self._writer or self._open(simulation)
        if max(writer.last_step, self._before.step) > simulation.current_step:
            with Interrupts(), writing("TrajectoryReporter", self._path):
                # Shrinking is not for the eyes of readers: a shorter copy takes the place.
                writer.flush()
                file, content, number, before = self._shortened(simulation, None, "anywhere")
                writer.go_on_in(file)
                self._take_over(simulation, content, number, before)
        layout = simulation.context.layout
        content = self._content
        flipped = layout.triangulation.may_change and not content.faces
        if flipped and self._faces is False:
            raise ParameterError(
                f"TrajectoryReporter: edges have been flipped since {self._path} was begun, which holds the triangles "
                "of the meshes: make the reporter with faces=True"
            )
        linked = content.links_have_changed
        if flipped or linked or self._layout() is not layout:
            with Interrupts(), writing("TrajectoryReporter", self._path):
                self._follow(simulation, writer, content.faces or flipped, content.links or linked)
        return writer

    def _follow(self, simulation: "Simulation", writer: Writer, faces: bool, links: bool) -> None:
        """Follow an edit of the simulation: begin a segment where the file does not serve any more."""
        number, before = self._number, self._before
        content = self._content_of(simulation, faces, like=writer.hdf5)
        if not content.tells_all_energies or content.difference(writer.hdf5):
            content = self._content_of(simulation, faces, links=links)
            writer.flush()
            previous = None
            if writer.frames:
                previous = writer.file
                number, before = number + 1, hdf5.up_to_the_end(writer.hdf5, before)
            writer.go_on_in(self._begun(content, number, before, previous))
        self._take_over(simulation, content, number, before)

    def _open(self, simulation: "Simulation") -> Writer:
        with Interrupts(), writing("TrajectoryReporter", self._path), ExitStack() as stack:
            there = self._path.exists() and not hdf5.has_no_frames(self._path)
            self._refuse_others(there)
            lock = self._lock or Lock("TrajectoryReporter", self._path)
            stack.callback(lock.release)
            for name in (self._path, self._path.with_name(f"{self._path.stem}.part*{self._path.suffix}")):
                remove_left_over(name)
            if there and self._append:
                # After an edit only a checkpoint, which knows the frames, tells that these are of the same run.
                begins = "behind" if self._marked is not None else "never"
                file, content, number, before = self._shortened(simulation, self._marked, begins)
            else:
                hdf5.remove_parts(self._path, after=1)
                may_change = simulation.context.layout.triangulation.may_change
                content = self._content_of(simulation, may_change if self._faces is None else self._faces)
                file, number, before = File(self._path, lambda new: content.lay_out(new, None)), 1, hdf5.Before()
            writer = Writer(file, lock)
            self._take_over(simulation, content, number, before)
            # A script that ends without close() must not lose the frames that wait in memory.
            self._finish = weakref.finalize(self, writer.close)
            self._writer = writer
            stack.pop_all()
        return writer

    def _refuse_others(self, there: bool) -> None:
        """Refuse to replace, unasked, files that have appeared since this was made."""
        found = [self._path] if there else hdf5.later_parts(self._path)
        if found and not (self._overwrite or (there and self._append)):
            raise ParameterError(
                f"TrajectoryReporter: {found[0]} exists by now; give overwrite=True to replace it or append=True to "
                "continue"
            )

    def _content_of(self, simulation: "Simulation", faces: bool, *, links: bool = False, like: Any = None) -> Content:
        return Content(
            simulation, self._real, self.interval, velocities=self._velocities, faces=faces, links=links, like=like
        )

    def _take_over(self, simulation: "Simulation", content: Content, number: int, before: hdf5.Before) -> None:
        self._content, self._number, self._before = content, number, before
        # The state would keep the arrays of a Context in memory.
        self._layout = weakref.ref(simulation.context.layout)

    def _begun(self, content: Content, number: int, before: hdf5.Before, previous: File | None) -> File:
        """Begin a segment without frames: a new one after `previous`, or in the place of the last, if that has none."""
        path = hdf5.part_of(self._path, number)
        if number > self._number and path.exists():
            raise ParameterError(
                f"TrajectoryReporter: {path} exists by now, and would be the next segment: move it away"
            )
        file = File(path, lambda new: content.lay_out(new, before if number > 1 else None))
        file.previous = previous
        return file

    def _shortened(
        self, simulation: "Simulation", frames: int | None, begins: str
    ) -> tuple[File, Content, int, hdf5.Before]:
        """Cut a trajectory to this number of frames in all, or to those up to the step at which the simulation stands.
        Later segments are removed. Return a copy of the segment that they end in, or one that begins, what it holds,
        its number, and what is before it.
        """
        parts = hdf5.parts_there(self._path)
        if frames is None:
            frames = sum(hdf5.steps_of(part.path, simulation.current_step) for part in parts)
        if self._marked is None and simulation.current_step > parts[-1].end.step:
            missing = hdf5.missing_part(self._path, len(parts), parts[-1].has_next)
            if missing:
                warn_outside(f"TrajectoryReporter: {missing}: its frames are lost if this continues", TrajectoryWarning)
        k, content, new = self._place_for(simulation, parts, frames, begins)
        part, number = parts[k], k + 1
        for earlier in parts[:k]:
            if not earlier.has_next:
                self._tell_of_next(earlier)
        file = File.copy(part.path, frames - part.before.frames)
        try:
            file.share()
            hdf5.remove_parts(self._path, after=number)
            if not new:
                return file, content, number, part.before
            before = hdf5.up_to_the_end(file.hdf5, part.before)
            file.publish()
            return self._begun(content, number + 1, before, file), content, number + 1, before
        except BaseException:
            file.close()
            raise

    def _tell_of_next(self, part: hdf5.Part) -> None:
        """Write into a segment that another follows, where a crash has come before that."""
        file = File.copy(part.path, part.frames)
        try:
            file.tell_of_next()
            file.publish()
        finally:
            file.close()

    def _place_for(
        self, simulation: "Simulation", parts: list[hdf5.Part], frames: int, begins: str
    ) -> tuple[int, Content, bool]:
        """Find the segment, by number from 0, in which a simulation continues after so many frames, what its frames
        hold, and whether another begins there, as `begins` allows: never, behind all frames of a segment, or anywhere.
        """
        why, behind = "", None
        for k, part in reversed(list(enumerate(parts))):
            end = part.end.frames
            if not part.before.frames <= frames <= end:
                continue
            with hdf5.looking_into(part.path) as file:
                faces = "medyanpy/faces" in file if self._faces is None else self._faces
                content = self._content_of(simulation, faces, like=file)
                difference = content.difference(file)
            if not difference:
                return k, content, False
            why = why or f"TrajectoryReporter: cannot append to {part.path}: {difference}"
            if begins == "anywhere" or (begins == "behind" and frames == end):
                behind = k, self._content_of(simulation, faces, links=content.links), True
        if behind is None:
            raise ParameterError(why)
        return behind
