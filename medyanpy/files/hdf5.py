"""Layout of trajectories in HDF5, H5MD with what this package adds; how they are opened, checked and divided.

Nothing but frames can be added to a file. Where what stands beside them changes, as the topology has been edited, later
frames are in another file, a segment: ``run.part0002.h5`` after ``run.h5``. The file before it is then told that
another follows (`NEXT`), so that a reader knows when it is missing.
"""

import errno
import io
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from medyanpy._tools.outputs import unwritable
from medyanpy.core.columns import POSITIONS, VELOCITIES
from medyanpy.errors import MedyanError, ParameterError

if TYPE_CHECKING:
    import h5py


#: Raised when a file has something that an earlier reader would misunderstand.
FORMAT = 3
#: The newest features of HDF5 are those of 1.10 (2016), which has single-writer-multiple-reader mode: other
#: programs, such as VTK, still carry libraries that cannot read what newer ones write by default.
LIBRARIES = ("v110", "v110")
# Frames of one chunk are read one after the other: HDF5 keeps unpacked chunks up to this many bytes.
_CACHE = 2**26
# The start of an HDF5 file, versions 2 and 3 (HDF5 File Format Specification, "Superblock"): signature, version,
# sizes of addresses and lengths, marks of writers, base and extension addresses, address of the end, address of the
# root group, checksum.
SUPERBLOCK = struct.Struct("<8sB2sB16sQ8sI")
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_SWMR = 5
# Bytes that arrays of a file may take in memory: so many, and so many for each that is stored, which is what gzip can
# pack at best.
_ALWAYS_UNPACKED, _MOST_UNPACKED = 2**22, 1100
POSITION = POSITIONS.path
#: Names of the triangles of a membrane, and of the links of chains, in frames, before the name of the handle.
FACES_OF = "faces of "
LINKS_OF = "links of "
#: Permanent ids, in frames where beads come and go.
IDS = "particles/all/id"
ENERGIES = ("potential_energy", "kinetic_energy", "temperature")
#: Molecules of a pool, before its name; beside them its species in their order.
POOL_OF = "pool "
#: Energies of single forces are called so in frames, before the name of the force.
ENERGY_OF = "energy of "
#: Groups under ``/medyanpy`` that hold these, and whether frames hold what joins beads and vertices; the time between
#: frames.
ENERGIES_AT = "medyanpy/energies"
BONDS = "medyanpy/connectivity/bonds"
BOX = "particles/all/box/edges"
EDGES = "medyanpy/connectivity/mesh_edges"
INTERVAL = "medyanpy/intervals/dt"
#: Links of forces: where their sites are, or in frames where they end and the main beads there.
FORCE_LINKS = "medyanpy/force_links"
LINK_BEADS = "medyanpy/force_link_beads"
LINK_ENDS_OF = "ends of "
LINK_BEADS_OF = "beads of "
#: One number, 1 once a segment follows.
NEXT = "medyanpy/segments/next"
#: Where readers of H5MD look for tuples of particles.
CONNECTIVITY = "connectivity"


def import_h5py() -> Any:
    """Import h5py, or raise an error that tells how to get it."""
    try:
        import h5py
    except ImportError as cause:
        raise ImportError("trajectories need h5py, which comes with medyanpy: pip install h5py") from cause
    return h5py


def open_hdf5(path: Path, mode: str, **options: Any) -> "h5py.File":
    """Open an h5py.File, also where the file system has no locks: HDF5 by itself gives up there."""
    h5py = import_h5py()
    try:
        return h5py.File(path, mode, **options)
    except OSError as cause:
        # Where this process has it open without locks, HDF5 wants the same again.
        unlocked = cause.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS) or "locking flag" in str(cause)
        if not unlocked:
            raise
    return h5py.File(path, mode, locking=False, **options)


def has_no_frames(path: Path) -> bool:
    """Tell whether a file is empty, or a trajectory that has no frames."""
    if path.stat().st_size == 0:
        return True
    with suppress(OSError, RuntimeError, KeyError), open_to_read(path, left=True) as file:
        return "medyanpy" in file and not len(file[POSITION]["step"])
    return False


def is_marked(path: Path) -> bool:
    """Tell whether a file is being written, or was left by a crash: plain readers of HDF5 do not open it."""
    with open(path, "rb") as file:
        _, version, _, marks, *_ = SUPERBLOCK.unpack(file.read(SUPERBLOCK.size))
    return bool(version >= 3 and marks != 0)


def is_trajectory(path: Path) -> bool:
    """Tell whether a file is a trajectory of this package, of any version."""
    with suppress(OSError, RuntimeError, KeyError), open_to_read(path, left=True) as file:
        return "medyanpy" in file and POSITION in file
    return False


def element_paths(file: "h5py.File") -> list[str]:
    """Return the time-dependent elements of a trajectory."""
    known = [POSITION, VELOCITIES.path, *(f"observables/{name}" for name in ENERGIES)]
    known += [path for path in (IDS, BOX) if f"{path}/value" in file]
    groups = {f"medyanpy/{of}": group for of, group in file["medyanpy"].items() if of != "handles"}
    own = [f"{path}/{entry}" for path, group in groups.items() for entry in group if f"{entry}/value" in group]
    return [*(path for path in known if path in file), *own]


def energies_in(file: "h5py.File") -> dict[str, str]:
    """Return the names of forces whose energies frames hold, by their paths, in the order of forces."""
    group = file.get(ENERGIES_AT, {})
    return {f"{ENERGIES_AT}/{k}": str(group[k].attrs["name"]).removeprefix(ENERGY_OF) for k in sorted(group, key=int)}


def refer_to_particles(file: "h5py.File") -> None:
    """Make all tuples refer to their particles, as H5MD wants it."""
    for element in file[CONNECTIVITY].values() if CONNECTIVITY in file else ():
        element.attrs["particles_group"] = file["particles/all"].ref


def truncate(file: "h5py.File", n: int) -> None:
    """Keep the first n frames."""
    for name in ("step", "time"):
        file[POSITION][name].resize(n, axis=0)
    for path in element_paths(file):
        file[path]["value"].resize(n, axis=0)


@contextmanager
def looking_into(path: Path) -> Iterator["h5py.File"]:
    """Open a trajectory that is not being written, to continue in it; ParameterError of another file, OutputError of a
    disk that is damaged."""
    try:
        with open_to_read(path, left=True) as file:
            check_format(file, path)
            yield file
    except MedyanError:
        raise
    except Exception as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise unwritable("TrajectoryReporter", path, cause) from cause
        raise ParameterError(f"TrajectoryReporter: cannot append to {path}: {cause}") from cause


def open_to_read(path: Path, *, left: bool = False) -> "h5py.File":
    """Open a trajectory that is finished, being written, or was left by a crash; OSError of other files.

    With `left` it is not being written, whatever it says; HDF5 reads it through this module, and never hangs.
    """
    while True:
        with open(path, "rb") as file:
            block = file.read(SUPERBLOCK.size)
            size = file.seek(0, os.SEEK_END)
        if len(block) < SUPERBLOCK.size or not block.startswith(_SIGNATURE):
            raise OSError("it does not start as HDF5 files do")
        _, version, _, marks, _, end, _, _ = SUPERBLOCK.unpack(block)
        # Files that are finished are opened as such. The mode for others takes what it cannot make sense of as not
        # written yet, and waits for it: in a file that was cut short, for hours.
        if version >= 2 and size < end:
            raise OSError(f"it is cut short: {end} bytes were written, {size} are there")
        marked = version >= 3 and marks != 0
        try:
            if left or (marked and marks != _SWMR):
                # No reader gets past the mark of a writer that is gone, or of one without that mode.
                return import_h5py().File(_Unmarked(path), "r", rdcc_nbytes=_CACHE)
            return open_hdf5(path, "r", swmr=marked, rdcc_nbytes=_CACHE)
        except OSError:
            # Its writer may have closed it in between, or put another in its place.
            with open(path, "rb") as file:
                if file.read(SUPERBLOCK.size) == block:
                    raise


class _Unmarked(io.RawIOBase):
    """The bytes of an HDF5 file without the marks of writers, for which HDF5 has no call; heaps of text in which it
    would go round for ever are refused."""

    def __init__(self, path: Path) -> None:
        self._number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        signature, version, sizes, _, base, _, root, _ = SUPERBLOCK.unpack(os.pread(self._number, SUPERBLOCK.size, 0))
        size = os.fstat(self._number).st_size
        self._head = b""
        # Files in the layout before 1.10, as other programs may have copied ours, have no marks.
        if version >= 2:
            head = SUPERBLOCK.pack(signature, version, sizes, 0, base, size, root, 0)[:-4]
            self._head = head + struct.pack("<I", _checksum(head))
        self._place = 0

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and (data := os.pread(self._number, len(view) - done, self._place + done)):
            view[done : done + len(data)] = data
            done += len(data)
        if self._place < len(self._head):
            head = self._head[self._place : self._place + done]
            view[: len(head)] = head
        if bytes(view[:4]) == b"GCOL":
            # HDF5 asks for a long one in parts.
            length = int.from_bytes(view[8:16], "little")
            _check_heap(os.pread(self._number, min(length, os.fstat(self._number).st_size), self._place))
        self._place += done
        return done

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + (0, self._place, os.fstat(self._number).st_size)[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            os.close(self._number)
        super().close()


def _check_heap(heap: bytes) -> None:
    """Refuse a global heap (HDF5 File Format Specification) with an object that takes no room, where HDF5 stays for
    ever."""
    place = 16
    while place + 16 <= len(heap):
        number, length = struct.unpack_from("<H6xQ", heap, place)
        taken = (16 + (length + 7) // 8 * 8) % 2**64 if number else length
        if taken == 0:
            raise OSError(f"a heap of text has an object without length at its byte {place}")
        place += taken


def _checksum(head: bytes) -> int:
    """Return HDF5's checksum of the 44 bytes of a superblock before it: Bob Jenkins, lookup3.c, 2006, public domain."""

    def turned(number: int, bits: int) -> int:
        return (number << bits | number >> 32 - bits) & 0xFFFFFFFF

    words = struct.unpack("<11I", head)
    x = y = z = 0xDEADBEEF + len(head)
    for i in range(0, 9, 3):
        x, y, z = ((part + word) & 0xFFFFFFFF for part, word in zip((x, y, z), words[i : i + 3], strict=True))
        for bits in (4, 6, 8, 16, 19, 4):
            x, y, z = y, (z + y) & 0xFFFFFFFF, (x - z) & 0xFFFFFFFF ^ turned(z, bits)
    x, y, z = z, (y + words[10]) & 0xFFFFFFFF, (x + words[9]) & 0xFFFFFFFF
    for bits in (14, 11, 25, 16, 4, 14, 24):
        x = ((x ^ y) - turned(y, bits)) & 0xFFFFFFFF
        x, y, z = z, x, y
    return int(y)


def check_format(file: "h5py.File", path: Any) -> None:
    """Refuse files that are not trajectories of ours, or of another version."""
    # Only names are looked at: no link is followed before all of them are known.
    ours = "medyanpy" in list(file)
    parts = _parts_of_this_file(file, path) if ours else {}
    if not ours or POSITION not in file:
        raise ParameterError(f"{path} is an HDF5 file, but not a medyanpy trajectory")
    version = int(file["medyanpy"].attrs.get("format", 0))
    if version != FORMAT:
        raise ParameterError(f"{path} has format {version}; this version of medyanpy reads format {FORMAT}")
    _check_stored(file, parts, path)


def _check_stored(file: "h5py.File", parts: dict[str, "h5py.Dataset"], path: Any) -> None:
    """Refuse shapes that claim more than is stored: HDF5 has zeros for the rest, gigabytes of them."""

    def look(name: str, item: "h5py.Dataset", frames: int | None) -> None:
        if item.shape is None or name.startswith("parameters/"):
            # Arrays of the document are looked at when it is read: frames can be read without it.
            return
        size = item.size * item.dtype.itemsize
        if name.endswith("/value") and frames is not None and item.ndim:
            # Only frames with a step are read; what is behind them may have been lost in a crash.
            size = size // max(len(item), 1) * min(len(item), frames)
        stored = item.id.get_storage_size()
        if size > _ALWAYS_UNPACKED + _MOST_UNPACKED * stored:
            raise ParameterError(f"{path}: {name} claims {size} bytes, but {stored} are stored: it is damaged")

    for name in ("step", "time"):
        look(f"{POSITION}/{name}", file[POSITION][name], None)
    frames = len(file[POSITION]["step"])
    for name, item in parts.items():
        look(name, item, frames)


def _parts_of_this_file(file: "h5py.File", path: Any) -> dict[str, "h5py.Dataset"]:
    """Return all datasets by name; refuse those that are in another file, to which a continued run would write."""
    h5py = import_h5py()
    found = {}

    def look(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item
            elsewhere = bool(item.external) or item.is_virtual
        else:
            elsewhere = any(isinstance(item.get(key, getlink=True), h5py.ExternalLink) for key in item)
        if elsewhere:
            raise ParameterError(f"{path}: {name} is in another file, which no part of a trajectory is")

    look("/", file)
    file.visititems(look)
    return found


class HandleRows(NamedTuple):
    """Rows of one handle in every array that has a row for each bead."""

    name: str
    kind: str
    rows: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HandleRows):
            return NotImplemented
        return self[:2] == other[:2] and np.array_equal(self.rows, other.rows)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return f"{len(self.rows)} {self.kind} of {self.name!r}"


def read_handle_rows(file: "h5py.File") -> list[HandleRows]:
    """Read the rows of every handle."""
    handles, out = file["medyanpy/handles"], []
    for group in (handles[str(k)] for k in range(len(handles))):
        a = group.attrs
        if "first_bead" in a:
            rows = np.arange(int(a["first_bead"]), int(a["first_bead"]) + int(a["n_beads"]))
        else:
            rows = group["rows"][()].astype(np.int64)
        out.append(HandleRows(str(a["name"]), str(a["kind"]), rows))
    return out


def read_sites(group: "h5py.Group") -> dict[str, dict[str, Any]]:
    """Read for each side the arrays of which `Sites.from_arrays` makes sites."""
    return {side: {key: value[()] for key, value in group[side].items()} for side in "ab"}


class Before(NamedTuple):
    """The frames before a segment: how many, the step of the last, and what tells it from that of another run."""

    frames: int = 0
    step: int = -1
    last: str = ""


class Part(NamedTuple):
    """A segment that is there: the frames before it, and up to its end; whether another is to follow."""

    path: Path
    before: Before
    end: Before
    has_next: bool

    @property
    def frames(self) -> int:
        return self.end.frames - self.before.frames


def part_of(path: Path, number: int) -> Path:
    """Return the path of a segment of a trajectory, counted from 1: ``run.h5``, ``run.part0002.h5``, ..."""
    return path if number == 1 else path.with_name(f"{path.stem}.part{number:04d}{path.suffix}")


def later_parts(path: Path, after: int = 1) -> list[Path]:
    """Return segments with higher numbers that are there."""
    found: list[Path] = []
    while os.path.exists(there := part_of(path, after + 1 + len(found))):
        found.append(there)
    return found


def missing_part(path: Path, number: int, has_next: bool) -> str:
    """Return a sentence on segments that are missing after the one of this number, or nothing."""
    there = part_of(path, number + 1)
    if os.path.exists(there):
        return ""
    if has_next:
        return f"{there.name}, in which the run continues, is missing beside {part_of(path, number).name}"
    name = re.compile(re.escape(path.stem) + r"\.part(\d{4,})" + re.escape(path.suffix))
    with suppress(OSError):
        found = [m for m in map(name.fullmatch, os.listdir(path.parent)) if m and int(m[1]) > number + 1]
        if found:
            return f"{there.name} is missing: {min(m[0] for m in found)} is there"
    return ""


def remove_parts(path: Path, after: int) -> None:
    """Remove the segments after the one of this number, the last of them first: whenever this ends, the others are
    whole."""
    parts = later_parts(path, after)
    for part in parts:
        before = None
        with suppress(OSError, RuntimeError, KeyError), open_to_read(part, left=True) as file:
            before = segment_of(file)
        if part.stat().st_size and before is None:
            raise ParameterError(
                f"TrajectoryReporter: {part} is not a segment of a trajectory, but has the name of one of {path}: move "
                "it away"
            )
    for part in reversed(parts):
        part.unlink()


def segment_of(file: "h5py.File") -> Before | None:
    """Return the frames before a segment; None for the first."""
    about = file["medyanpy"].attrs
    if "frames_before" not in about:
        return None
    return Before(int(about["frames_before"]), int(about["step_before"]), str(about["last_before"]))


def up_to_the_end(file: "h5py.File", before: Before) -> Before:
    """Return the frames up to the end of a segment, for the one after it."""
    steps = counted_steps(file)
    if not len(steps):
        return before
    last = np.ascontiguousarray(file[POSITION]["value"][len(steps) - 1])
    import hashlib  # takes long, and is wanted here alone

    return Before(before.frames + len(steps), int(steps[-1]), hashlib.sha256(last.tobytes()).hexdigest()[:32])


def parts_there(path: Path) -> list[Part]:
    """Return the segments of a trajectory that is not being written; refuse those that do not follow each other."""
    out: list[Part] = []
    for there in [path, *later_parts(path)]:
        before = out[-1].end if out else Before()
        with looking_into(there) as file:
            if out:
                check_follows(there, segment_of(file), before)
            out.append(Part(there, before, up_to_the_end(file, before), bool(file[NEXT][0])))
    return out


def check_follows(path: Path, segment: Before | None, before: Before) -> None:
    """Refuse a segment that does not continue these frames."""
    if segment is None:
        raise ParameterError(f"{path} has the name of a segment of a trajectory, and is a trajectory of its own")
    if segment[:2] != before[:2]:
        raise ParameterError(
            f"{path} continues from {segment.frames} frames, the last of step {segment.step}, but the segments before "
            f"it hold {before.frames}, the last of step {before.step}: they are of different runs"
        )
    if segment.last and before.last and segment.last != before.last:
        raise ParameterError(
            f"{path} continues from a frame of step {segment.step} with other positions than the segments before it "
            "hold: they are of different runs"
        )


def counted_steps(file: "h5py.File") -> np.ndarray:
    """Return the steps of frames that are whole: a frame that has no step yet is not there."""
    group = file[POSITION]
    n = min(len(group[name]) for name in ("step", "time", "value"))
    return np.asarray(group["step"][:n])


def steps_of(path: Path, step: int) -> int:
    """Return how many frames a segment that is not being written has, up to a step."""
    with looking_into(path) as file:
        return int(np.searchsorted(counted_steps(file), step, side="right"))
