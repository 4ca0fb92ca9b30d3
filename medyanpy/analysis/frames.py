"""Positions of beads in frames of any form, and distances between places.

Frames are a State, a Frame, several of either in a list, or a Trajectory or a slice of one (read in parts). They are
also positions, (n, 3) or of many frames (m, n, 3), with a row for each bead of the topology: nan without a bead.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from medyanpy._tools.images import box_lengths, box_shown, checked_box, wrapped
from medyanpy._tools.names import look_up
from medyanpy._tools.validation import array, dimensions, number, one_or_many
from medyanpy.core.handles import Handle
from medyanpy.core.kinds import Kind
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.files.segments import TrajectoryHandle
from medyanpy.files.trajectory import Frames, Trajectory
from medyanpy.mesh.connectivity import sides_of

__all__ = ["Source", "are_frames", "lengths_of", "tree"]

#: Coordinates that are read at once: 32 MiB where frames follow each other; 256 where all frames of some beads are
#: wanted, since a file is unpacked for all beads each time.
_AT_ONCE = 1 << 22
_AT_ONCE_OF_ALL_FRAMES = 1 << 25
_KINDS = Handle | TrajectoryHandle | str  #: Types that name beads, beside their rows.


def _asked(handle: Handle | TrajectoryHandle) -> Kind | TrajectoryHandle:
    """Return the object that knows joined beads, and whether beads are in space."""
    return handle.kind if isinstance(handle, Handle) else handle


def tree(x: np.ndarray, box: np.ndarray | None = None) -> Any:
    """Return SciPy's k-d tree of places (n, 3), for neighbours at distances of `_tools.images.displacement`."""
    from scipy.spatial import KDTree

    return KDTree(x) if box is None else KDTree(wrapped(x, box), boxsize=box)


def lengths_of(what: str, box: Any) -> np.ndarray | None:
    """Return the lengths (3,) of a box, nm, 0 in open directions; None where all are open. Two lengths are those along
    x and y. A length nan is an open direction, but three of them went wrong and are refused."""
    if box is None:
        return None
    if isinstance(box, np.ndarray | list | tuple):
        sides = [None if one is None or (isinstance(one, float) and np.isnan(one)) else one for one in box]
        if len(sides) and all(one is None for one in sides) and any(one is not None for one in box):
            raise ParameterError(f"{what}: box = {shown(list(box))} has no length; without a box it is None")
        box = [*sides, None] if len(sides) == 2 else sides
    found = checked_box(what, box)
    return None if found is None else box_lengths(found)


class Source:
    """Frames in one form, for the function `what`; `one` is True of a single frame, so that results have no axis of
    frames. `n_rows` are rows of beads; of states and frames with different numbers, of the longest."""

    def __init__(self, what: str, source: Any) -> None:
        self.what = what
        self.one: bool = hasattr(source, "positions") or (isinstance(source, np.ndarray) and source.ndim == 2)
        source = source[:] if isinstance(source, Trajectory) else source
        self._trajectory: Frames | None = source if isinstance(source, Frames) else None
        self._frames: list[Any] | None = None
        self._array: np.ndarray | None = None
        if self._trajectory is not None:
            self.n_rows: int = self._trajectory._trajectory.n_beads
            self._n = len(self._trajectory)
        elif hasattr(source, "positions") or are_frames(source):
            self._frames = [source] if self.one else list(source)
            self.n_rows = max(len(frame.positions) for frame in self._frames)
            self._n = len(self._frames)
        else:
            self.one = dimensions(f"{what}: positions", source, "(n, 3) or (m, n, 3)") == 2
            x = array(f"{what}: positions", source, (None, 3) if self.one else (None, None, 3), nan=True)
            self._array = x[None] if self.one else x
            self._n, self.n_rows = self._array.shape[:2]
        #: The frames themselves; None of arrays.
        self.objects: Any = self._trajectory if self._trajectory is not None else self._frames
        if not self._n:
            raise ParameterError(f"{what}: there are no frames")

    def __len__(self) -> int:
        return self._n

    @property
    def times(self) -> np.ndarray | None:
        """Times (m,) of the frames, s; None of plain arrays."""
        if self._trajectory is not None:
            return np.asarray(self._trajectory.times)
        return None if self._frames is None else np.array([frame.time for frame in self._frames])

    def states(self) -> list[Any] | None:
        """Return the states or frames themselves; None of others."""
        return self._frames

    def boxes(self, given: Any = None) -> "list[np.ndarray | None]":
        """Return the lengths (3,) of the box of each frame, nm, 0 in open directions, None in open space; a box that is
        given, or one for each frame, replaces the ``box`` of frames."""
        if given is not None:
            # One for each frame is a list of sequences; (Lx, None, None) is not.
            wanted = "(3,) or (2,), or one of these for each frame"
            several = isinstance(given, np.ndarray | list | tuple) and any(
                dimensions(f"{self.what}: box[{k}]", one, wanted) == 1 for k, one in enumerate(given)
            )
            if several and len(given) != len(self):
                raise ParameterError(f"{self.what}: box is of {len(given)} frames, but there are {len(self)}")
            if several:
                return [lengths_of(f"{self.what}: frame {k}", one) for k, one in enumerate(given)]
            return [lengths_of(self.what, given)] * len(self)
        if self.objects is None or getattr(self.objects[0], "box", None) is None:
            return [None] * len(self)
        # Boxes of a file are read all at once.
        file = self._trajectory
        each = [frame.box for frame in self.objects] if file is None else map(box_shown, file.read("box"))
        return [lengths_of(f"{self.what}: frame {k}", one) for k, one in enumerate(each)]

    def arrays(self, name: str, given: Any, width: int) -> list[np.ndarray]:
        """Return whole numbers (k, width), one array for all frames or one for each; TopologyError of others."""
        what = f"{self.what}: {name}"
        shapes = f"(k, {width}), or one of these for each frame"
        # Lists of frames with different numbers of rows are not an array.
        several = isinstance(given, list | tuple) and len(given) > 0 and all(
            dimensions(f"{what}[{k}]", one, shapes, error=TopologyError) == 2 for k, one in enumerate(given)
        )  # fmt: skip
        several = several or dimensions(what, given, shapes, error=TopologyError) == 3
        found = [
            array(f"{what}[{k}]" if several else what, one, (None, width), dtype=np.int64, error=TopologyError)
            if np.size(one) else np.empty((0, width), np.int64)
            for k, one in enumerate(given if several else [given])
        ]  # fmt: skip
        if several and len(found) != len(self):
            raise ParameterError(f"{what} are of {len(found)} frames, but there are {len(self)}")
        return found

    def interval(self, given: float | None) -> float:
        """Return the time between frames, which must be evenly spaced, s; arrays need a given interval."""
        what, times = self.what, self.times
        if len(self) < 2:
            raise ParameterError(f"{what}: one frame shows no motion: give two or more")
        if times is None:
            if given is None:
                raise ParameterError(f"{what}: arrays of positions have no times: give interval= (s)")
            return number(f"{what}: interval", given, above=0.0)
        if given is not None:
            raise ParameterError(f"{what}: interval is for arrays of positions, but frames have times: leave it out")
        mean = float(times[-1] - times[0]) / (len(times) - 1)
        off = np.abs(np.diff(times) - mean)
        if not mean > 0.0 or off.max() > 1e-6 * mean:
            k = int(np.argmax(off))
            raise ParameterError(
                f"{what}: frames must follow each other at equal distances in time, but from frame {k} to {k + 1} it "
                f"is {times[k + 1] - times[k]:g} s, and {mean:g} s on average"
            )
        return mean

    def rows(self, name: str, beads: Any) -> np.ndarray:
        """Return the rows (k,) of beads, each once: of handles, also of a trajectory, of row numbers, or of all for
        None."""
        what = f"{self.what}: {name}"
        if beads is None:
            if self._trajectory is None:
                return np.arange(self.n_rows)
            elsewhere = [handle.beads for handle in self._handles(what).values() if not handle.in_space]
            return np.delete(np.arange(self.n_rows), np.concatenate([np.empty(0, np.int64), *elsewhere]))
        if handles := _named(beads):
            rows = np.concatenate([self._rows_of(what, handle) for handle in handles])
        else:
            rows = one_or_many(what, beads, dtype=np.int64, error=TopologyError)
        wrong = (rows < 0) | (rows >= self.n_rows)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise TopologyError(f"{what}[{i}] = {rows[i]}, but positions have {self.n_rows} rows, counted from 0")
        found, count = np.unique(rows, return_counts=True)
        if (count > 1).any():
            raise TopologyError(f"{what}: bead {found[np.argmax(count > 1)]} is named twice")
        return rows

    def joined(self, beads: Any, k: int) -> np.ndarray:
        """Return rows (e, 2) of neighbours in meshes and chains in frame k; of rows given by number, or none, all
        handles that frames know."""
        what = f"{self.what}: beads"
        handles = _named(beads)
        if not handles and (self._trajectory is not None or (self._frames and hasattr(self._frames[-1], "handles"))):
            handles = list(self._handles(what))
        faces = {} if self.objects is None else getattr(self.objects[k], "faces", {})
        pairs = [np.empty((0, 2), np.int64)]
        for handle in handles:
            one = look_up(self._handles(what), handle, "handle", TopologyError) if isinstance(handle, str) else handle
            # Where edges flip, those of the frame.
            own = sides_of(faces[one.name]) if one.name in faces else _asked(one).joined
            pairs.append(one.beads[own])
        found = np.concatenate(pairs)
        return found[(found < self.n_rows).all(axis=1)]

    def _handles(self, what: str) -> dict[str, TrajectoryHandle]:
        """Return handles by name, of a trajectory or its frames."""
        if self._trajectory is not None:
            return self._trajectory._trajectory.handles
        if self._frames is not None and hasattr(self._frames[-1], "handles"):
            return dict(self._frames[-1].handles)
        raise TopologyError(f"{what}: beads have names in trajectories only: give their handle, or their rows")

    def _rows_of(self, what: str, handle: Any) -> np.ndarray:
        if isinstance(handle, str):
            handle = look_up(self._handles(what), handle, "handle", TopologyError)
        if not isinstance(handle, Handle | TrajectoryHandle):
            raise TopologyError(f"{what}: {handle!r} is not a handle")
        if not _asked(handle).in_space:
            raise TopologyError(f"{what}: {handle.name!r} are {handle.kind}, which have no places in space")
        if isinstance(handle, TrajectoryHandle):
            return handle.beads
        if self._array is not None and self.n_rows != handle.topology.n_beads:
            raise ParameterError(
                f"{what}: positions have {self.n_rows} rows, but the topology of {handle.name!r} has "
                f"{handle.topology.n_beads} beads"
            )
        # Also rows that beads may get later; states of before an edit have fewer rows.
        rows = handle.beads if len(handle) == handle.capacity else handle.kind.all_rows
        return rows[rows < self.n_rows]

    def positions(self, frames: slice, rows: np.ndarray) -> np.ndarray:
        """Return positions (m, k, 3) of some frames and beads; nan in rows without a bead."""
        return np.asarray(self._read("positions", frames, rows), dtype=float)

    def ids(self, frames: slice, rows: np.ndarray) -> np.ndarray | None:
        """Return permanent ids (m, k) of beads, -1 in rows without one; None of arrays, with one bead in each row."""
        return self._read("ids", frames, rows) if self._array is None else None

    def _read(self, name: str, frames: slice, rows: np.ndarray) -> np.ndarray:
        if self._trajectory is not None:
            return np.asarray(self._trajectory[frames].read(name, rows))
        if self._array is not None:
            if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
                return self._array[frames, rows[0] : rows[-1] + 1]  # Without a copy.
            return np.asarray(self._array[frames][:, rows])
        assert self._frames is not None
        chosen = self._frames[frames]
        shape = (len(chosen), len(rows), 3) if name == "positions" else (len(chosen), len(rows))
        out = np.full(shape, np.nan if name == "positions" else -1)
        for k, frame in enumerate(chosen):
            values = getattr(frame, name)
            there = rows < len(values)
            out[k, there] = values[rows[there]]
        return out

    def each(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Yield positions (k, 3) of some beads in one frame after the other; nan in rows without a bead."""
        step = max(1, _AT_ONCE // max(1, 3 * self.n_rows))
        for start in range(0, len(self), step):
            yield from self.positions(slice(start, start + step), rows)

    def columns(self, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray | None]]:
        """Yield batches of beads with all frames of each: a slice of `rows`, positions (m, k, 3), and `ids`."""
        step = max(1, _AT_ONCE_OF_ALL_FRAMES // (3 * len(self)))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            yield some, self.positions(slice(None), rows[some]), self.ids(slice(None), rows[some])


def _named(beads: Any) -> list[Any]:
    """Return the handles, or names of handles, that are given; none of rows."""
    handles = [beads] if isinstance(beads, _KINDS) else beads
    named = isinstance(handles, list | tuple) and len(handles) > 0 and isinstance(handles[0], _KINDS)
    return list(handles) if named else []


def are_frames(source: Any) -> bool:
    """Tell whether these are states or frames in a list."""
    return isinstance(source, list | tuple) and len(source) > 0 and all(hasattr(x, "positions") for x in source)
