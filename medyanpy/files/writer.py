"""Writer of trajectories, safe against crashes, whose files can be read while they are written.

How the file stays whole (docs/output.md has the details): it is made under another name, with everything it will hold
but frames, and then renamed. It is in HDF5's single-writer-multiple-reader mode, in which a reader, or a crash, at any
moment finds a consistent file. A file that is there is never opened to be written: a copy takes its place in the same
way. Frames are gathered in memory and written as whole compressed chunks, since filling up a compressed chunk writes it
again each time and leaks the space of its old copy. The step numbers are written last: frames without one do not count.
Room on the disk is reserved before HDF5 is called, which loses chunks, and its head, where there is none.
"""

import io
import os
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.interrupts import Interrupts
from medyanpy._tools.outputs import Lock, check_in_place, in_place, opened_beside, reserve, writing
from medyanpy.errors import OutputError, ParameterError
from medyanpy.files import hdf5

if TYPE_CHECKING:
    import h5py


# Frames do not wait in memory for their chunk to fill for longer than this (s).
_PATIENCE = 30.0
# Indices of chunks that a writer keeps (bytes), of which it needs the ends; HDF5 would keep up to 32 MiB.
_INDICES = 2**18
# Room that HDF5 needs beside frames (bytes, and share of the file): indices of chunks grow in jumps.
_ASIDE = 2**16, 1e-3
# Files that HDF5 could not write to, and would not survive to close.
_ABANDONED: list[Any] = []


class File:
    """An HDF5 file that is written under a hidden name, until `publish` gives it its own, and others may read it.

    `fill` writes what it starts with. `hdf5` is open for writing, `number` the file descriptor of the same file; it is
    `broken` once HDF5 has failed to write to it.
    """

    def __init__(self, path: Path, fill: Callable[["h5py.File"], Any]) -> None:
        h5py = hdf5.import_h5py()
        self.path = path
        self._reserved = 0
        self.broken: bool = False
        #: The segment before, still open, which is to know of this one.
        self.previous: File | None = None
        # Made in memory, and written by Python: HDF5 does not survive a disk that is full from the start.
        image = io.BytesIO()
        with writing("TrajectoryReporter", path), ExitStack() as stack:
            with h5py.File(image, "w", libver=hdf5.LIBRARIES) as file:
                fill(file)
            self.number: int
            self._beside, self.number = opened_beside(path)
            stack.callback(self._beside.unlink, missing_ok=True)
            stack.callback(os.close, self.number)
            with open(self.number, "wb", closefd=False) as start:
                start.write(image.getbuffer())
            if path.exists():
                os.fchmod(self.number, path.stat().st_mode & 0o777)
            # Chunks are written whole, and not looked at again. Where HDF5 keeps them (rdcc_nbytes > 0), its memory
            # grows by half a kilobyte with every write to a part of one, until the file is closed.
            self.hdf5: Any = hdf5.open_hdf5(self._beside, "r+", libver=hdf5.LIBRARIES, rdcc_nbytes=0)
            bounds = self.hdf5.id.get_mdc_config()
            bounds.set_initial_size = True
            bounds.initial_size = bounds.min_size = bounds.max_size = _INDICES
            self.hdf5.id.set_mdc_config(bounds)
            stack.pop_all()

    @classmethod
    def copy(cls, path: Path, frames: int) -> "File":
        """Copy what is in a trajectory, up to a number of frames; what half-filled chunks leaked is left behind."""
        new = None
        try:
            with hdf5.looking_into(path) as old:
                new = cls(path, lambda file: None)
                new.reserve(path.stat().st_size)
                # All at once, since datasets with several names stay one only within one copy; compressed chunks go
                # as they are.
                old.copy(old["/"], new.hdf5, name="all")
            for name in list(new.hdf5["all"]):
                new.hdf5.move(f"all/{name}", name)
            del new.hdf5["all"]
            # References of one file mean nothing in another.
            hdf5.refer_to_particles(new.hdf5)
            # Frames whose step was not written any more do not count.
            hdf5.truncate(new.hdf5, min(frames, len(hdf5.counted_steps(new.hdf5))))
            new.hdf5[hdf5.NEXT][0] = 0
        except BaseException:
            if new is not None:
                new.close()
            raise
        return new

    def reserve(self, more: int) -> None:
        """Have the disk keep room for `more` bytes and what HDF5 writes beside them."""
        with writing("TrajectoryReporter", self.path, "frames wait in memory"):
            end = self.hdf5.id.get_filesize()
            end += more + _ASIDE[0] + int(_ASIDE[1] * end)
            # HDF5 cuts off what it does not use yet whenever it is flushed.
            reserve(self.number, min(self._reserved, os.fstat(self.number).st_size), end)
            self._reserved = end

    def share(self) -> None:
        """Let readers in; from now on nothing changes but frames."""
        if self.hdf5.swmr_mode:
            return
        self.reserve(0)
        with writing("TrajectoryReporter", self.path):
            self.hdf5.swmr_mode = True
            self.elements: dict[str, Any] = {path: self.hdf5[path]["value"] for path in hdf5.element_paths(self.hdf5)}
            self.step: Any = self.hdf5[hdf5.POSITION]["step"]
            self.time: Any = self.hdf5[hdf5.POSITION]["time"]
            self.frames: int = len(self.step)

    def publish(self) -> None:
        """Give the file its name."""
        with writing("TrajectoryReporter", self.path):
            os.fsync(self.number)
            try:
                os.replace(self._beside, self.path)
            except OSError:
                # Network file systems may report this although it was done, when their answer was lost.
                if not in_place(self.path, self.number):
                    raise

    def tell_of_next(self) -> None:
        """Write that another segment follows, which has its name by now."""
        # Without this note nothing is lost, and a disk that fails is noticed at the next frame.
        with suppress(OSError, RuntimeError):
            self.hdf5[hdf5.NEXT][0] = 1
            self.hdf5.flush()

    def close(self) -> None:
        """Let go of the file; of one without a name nothing is left."""
        with writing("TrajectoryReporter", self.path), ExitStack() as stack:
            stack.callback(self._beside.unlink, missing_ok=True)
            stack.callback(os.close, self.number)
            try:
                if not self.broken:
                    self.broken = True
                    self.hdf5.close()
                    self.broken = False
            finally:
                if self.broken:
                    # Closing it may end the process, at once or when its parts are freed. What counts has been written.
                    _ABANDONED.append(self.hdf5)
            if not self.broken:
                # Room that was reserved and not used.
                *_, end, _, _ = hdf5.SUPERBLOCK.unpack(os.pread(self.number, hdf5.SUPERBLOCK.size, 0))
                if os.fstat(self.number).st_size > end:
                    os.ftruncate(self.number, end)

    def leave(self) -> None:
        """Detach this file in a forked child: what HDF5 writes when it closes files must not get into the parent's."""
        import tempfile

        with tempfile.TemporaryFile() as nowhere:
            os.dup2(nowhere.fileno(), self.hdf5.id.get_vfd_handle(), inheritable=False)


class Waiting:
    """Frames in memory: at first those of the last chunk of a file, if it is not full, as a chunk is written whole.

    `start` is the frame that the first row of `values`, `steps` and `times` holds, `frames` the number in file and
    memory, `last_step` that of the last of them; -1 without any.
    """

    def __init__(self, file: File) -> None:
        self.frames: int = file.frames
        self.chunk: int = file.elements[hdf5.POSITION].chunks[0]
        self.start: int = self.frames - self.frames % self.chunk
        self.last_step: int = int(file.step[-1]) if self.frames else -1
        self.values: dict[str, np.ndarray] = {
            path: np.empty((self.chunk, *d.shape[1:]), d.dtype) for path, d in file.elements.items()
        }
        self.steps: np.ndarray = np.empty(self.chunk, np.int64)
        self.times: np.ndarray = np.empty(self.chunk)
        if self.start < self.frames:
            for path, dataset in file.elements.items():
                self.values[path][: self.frames - self.start] = dataset[self.start : self.frames]


class Writer:
    """An open trajectory: frames in memory, and when they go to the file."""

    def __init__(self, file: File, lock: Lock) -> None:
        self._lock = lock
        self._process = os.getpid()
        self._turn = threading.RLock()
        self._file: File
        self._take(file)

    def _take(self, file: File, waiting: Waiting | None = None) -> None:
        """Continue in this file, which takes the place of the one before, with frames that wait or those of its end."""
        before: File | None = vars(self).get("_file")
        previous, file.previous = file.previous, None
        with ExitStack() as stack:
            if previous is not None and previous is not before:
                stack.callback(previous.close)
            try:
                file.share()
                if waiting is None:
                    waiting = Waiting(file)
                file.publish()
            except BaseException:
                file.close()
                raise
            if previous is not None:
                previous.tell_of_next()
        self._file, self._waiting = file, waiting
        self._unsure = False
        self._written = file.frames
        self._written_at = clock.monotonic()
        if before is not None:
            before.close()

    @property
    def last_step(self) -> int:
        return self._waiting.last_step

    @property
    def frames(self) -> int:
        """Number of frames in file and memory, without those of segments before."""
        return self._waiting.frames

    @property
    def file(self) -> File:
        return self._file

    @property
    def hdf5(self) -> "h5py.File":
        return self._file.hdf5

    @property
    def path(self) -> Path:
        return self._file.path

    def go_on_in(self, file: File) -> None:
        """Let frames that come go to another file; all have been written."""
        with self._at_work():
            self._take(file)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise ParameterError(
                f"TrajectoryReporter: {self._file.path} is written by process {self._process}, from which this one was "
                "forked; take this reporter off the list and make one for another file"
            )

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Work in one thread at a time, hold signals back, and make errors of the system ours."""
        self._check_process()
        with self._turn, Interrupts(), writing("TrajectoryReporter", self._file.path, "frames wait in memory"):
            yield

    def add(self, step: int, time: float, values: dict[str, Any]) -> None:
        """Take a frame, or raise and do not."""
        self._check_process()
        with self._turn:
            waiting, before = self._waiting, self.last_step
            if step < before:
                raise ParameterError(
                    f"TrajectoryReporter: a frame of step {step} cannot follow that of step {before} in "
                    f"{self._file.path}"
                )
            row = waiting.frames - waiting.start
            for path, value in values.items():
                try:
                    with np.errstate(over="raise"):
                        waiting.values[path][row] = value
                except FloatingPointError as cause:
                    raise OutputError(
                        f"TrajectoryReporter: step {step}: {path} goes beyond 3.4e38, the largest number in "
                        f"{self._file.path}; write with precision='double'",
                        filename=str(self._file.path),
                    ) from cause
            waiting.steps[row], waiting.times[row] = step, time
            try:
                waiting.frames += 1
                waiting.last_step = step
                if row + 1 == waiting.chunk or clock.monotonic() - self._written_at > _PATIENCE:
                    self.write()
            except BaseException:
                waiting.frames, waiting.last_step = waiting.start + row, before
                raise

    def write(self) -> None:
        """Bring all frames to the file: first what they hold, and when that is there, that they exist; OutputError
        leaves them waiting."""
        with self._at_work():
            waiting = self._waiting
            if waiting.frames == self._written:
                return
            check_in_place("TrajectoryReporter", self._file.path, self._file.number)
            if self._unsure:
                self._take(File.copy(self._file.path, self._written), waiting)
            file, rows = self._file, waiting.frames - waiting.start
            file.reserve(sum(values.nbytes for values in waiting.values.values()))
            # After an exception in here, only a copy tells what is in the file.
            self._unsure = True
            try:
                for path, dataset in file.elements.items():
                    dataset.resize(waiting.frames, axis=0)
                    dataset[waiting.start : waiting.frames] = waiting.values[path][:rows]
                file.hdf5.flush()
                file.reserve(0)
                new = slice(self._written - waiting.start, rows)
                for dataset, numbers in ((file.time, waiting.times), (file.step, waiting.steps)):
                    dataset.resize(waiting.frames, axis=0)
                    dataset[self._written : waiting.frames] = numbers[new]
                file.hdf5.flush()
            except OutputError:
                raise
            except (OSError, RuntimeError):
                file.broken = True
                raise
            self._unsure = False
            self._written = waiting.frames
            if rows == waiting.chunk:
                waiting.start = waiting.frames
            self._written_at = clock.monotonic()

    def flush(self) -> None:
        with self._at_work():
            check_in_place("TrajectoryReporter", self._file.path, self._file.number)
            self.write()
            # HDF5 hands everything to the operating system; this asks it to put it on the disk.
            os.fsync(self._file.number)

    def close(self) -> None:
        """Let go of the file, whether frames that wait can be written or not; a forked child has no part in it."""
        if self._process != os.getpid():
            self._file.leave()
            return
        with Interrupts(), writing("TrajectoryReporter", self._file.path), ExitStack() as stack:
            stack.callback(self._lock.release)
            # Writing may make another the file.
            stack.callback(lambda: self._file.close())
            try:
                self.write()
            except OutputError as error:
                error.add_note(f"{self._waiting.frames - self._written} frames are lost")
                raise
