"""Segments of a trajectory as one series of frames."""

import re
import time as clock
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy._tools.names import look_up
from medyanpy._tools.validation import array
from medyanpy.core.columns import BEADS
from medyanpy.errors import ParameterError, TrajectoryWarning, warn_outside
from medyanpy.files import hdf5
from medyanpy.files.segments import Segment, TrajectoryHandle

# In messages.
_BEADS_OF = {BEADS: "beads", "intriangle": "in-triangle points", "oriented": "oriented beads"}
# Longest time of a writer between two segments (s).
_PATIENCE = 2.0
_ALL = slice(None)


class Segments:
    """The files of a trajectory, which are looked at again when asked, and what their frames hold under a name."""

    steps: np.ndarray
    times: np.ndarray

    def _open(self, path: Path) -> None:
        self._path = path
        self._segments: list[Segment] = []
        self.missing: str = ""
        try:
            self._look()
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        for segment in self._segments:
            segment.close()

    @property
    def _last(self) -> Segment:
        return self._segments[-1]

    def _check_open(self) -> None:
        if not self._segments or not self._last.is_open:
            raise ParameterError(f"trajectory {self._path} is closed")

    def _look(self) -> None:
        """Find all segments, and count their frames."""
        deadline = clock.monotonic() + _PATIENCE
        while True:
            segments = self._there_now()
            try:
                before = hdf5.Before()
                for one, following in pairwise(segments):
                    before = one.up_to_the_end(before)
                    hdf5.check_follows(following.path, following.follows, before)
                missing = self._missing_now()
                # A writer that goes back removes segments a moment before it writes that they are gone.
                if missing in ("", self.missing) or clock.monotonic() > deadline - 0.9 * _PATIENCE:
                    break
                clock.sleep(0.01)
            except ParameterError:
                # A writer may have been between two of them.
                if clock.monotonic() > deadline:
                    raise
                clock.sleep(0.01)
        if missing and missing != self.missing:
            n = sum(map(len, segments))
            warn_outside(f"{self._path} holds {n} frames, and not all of its run: {missing}", TrajectoryWarning)
        self.missing = missing
        self._ends: np.ndarray = np.cumsum([len(segment) for segment in segments])
        self.steps = np.concatenate([segment.steps for segment in segments])
        self.times = np.concatenate([segment.times for segment in segments])
        self._shapes: dict[str, tuple[int, ...]] = {}

    def _missing_now(self) -> str:
        follows = self._segments[0].follows
        if follows is None:
            return hdf5.missing_part(self._path, len(self._segments), self._last.has_next)
        # Under the name of a segment it was meant to be read alone.
        if re.search(r"\.part\d{4,}$", self._path.stem):
            return ""
        return f"the {follows.frames} frames before {self._path.name}, a later segment, are in another file"

    def _there_now(self) -> list[Segment]:
        """Return the segments that are there; those that are open already are looked at again."""
        for k, path in enumerate([self._path, *hdf5.later_parts(self._path)]):
            if k == len(self._segments):
                self._segments.append(Segment(path))
            elif self._segments[k].is_replaced:
                # Where that fails, the one before stays.
                new = Segment(path)
                self._segments[k].close()
                self._segments[k] = new
            else:
                self._segments[k].refresh()
        for gone in self._segments[k + 1 :]:
            gone.close()
        del self._segments[k + 1 :]
        return self._segments

    def _segment_of(self, index: int) -> Segment:
        """Return the segment that holds a frame."""
        return self._segments[int(np.searchsorted(self._ends, index, side="right"))]

    def _index_in(self, segment: Segment, index: int) -> int:
        return index - int(self._ends[self._segments.index(segment)]) + len(segment)

    def _shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of what a frame holds under a name, as wide as the widest; refuse what no frame holds."""
        self._check_open()
        if name in self._shapes:
            return self._shapes[name]
        shapes = [segment.shape(name) for segment in self._segments if segment.holds(name)]
        if shapes:
            self._shapes[name] = tuple(map(max, zip(*shapes, strict=True)))
            return self._shapes[name]
        element = self._last.elements.get(name)
        if element is None:
            raise ParameterError(f"trajectory: {name!r} is none of {', '.join(self._last.elements)}")
        if not element.of:
            raise ParameterError(f"{self._path} is damaged: it holds no {name}")
        there = element.of == BEADS or any(h.rows_of == element.of for h in self._last.handles.values())
        why = "TrajectoryReporter was not asked to"
        if not there:
            why = f"there are no {_BEADS_OF.get(element.of, element.of)}"
        raise ParameterError(f"{self._path} holds no {name}: {why}")

    def _read(self, name: str, frames: int | slice, rows: slice = _ALL) -> np.ndarray:
        """Read some rows of beads of a frame, or of a slice in ascending order: nan or -1 where a segment has fewer."""
        shape = self._shape(name)
        beads = () if rows is _ALL else (rows,)
        if isinstance(frames, int):
            segment = self._segment_of(frames)
            k = self._index_in(segment, frames)
            if segment.holds(name) and segment.shape(name) == shape:
                return segment.read(name, (k, *beads))
            return np.asarray(self._read(name, slice(frames, frames + 1), rows)[0])
        index, step, parts = np.arange(len(self.steps))[frames], frames.step or 1, []
        for segment, end in zip(self._segments, self._ends, strict=True):
            own = index[(index < end) & (index >= end - len(segment))] - (end - len(segment))
            here = slice(int(own[0]), int(own[-1]) + 1, step) if len(own) else slice(0, 0)
            if segment.holds(name) and segment.shape(name) == shape:
                parts.append(segment.read(name, (here, *beads)))
            else:
                parts.append(self._widened(segment, name, here, (len(own), *shape))[(slice(None), *beads)])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _widened(self, segment: Segment, name: str, frames: slice, shape: tuple[int, ...]) -> np.ndarray:
        dtype = next(one.read(name, slice(0, 0)).dtype for one in self._segments if one.holds(name))
        out = np.full(shape, np.nan if dtype.kind == "f" else -1, dtype)
        if segment.holds(name):
            out[(slice(None), *map(slice, segment.shape(name)))] = segment.read(name, frames)
        return out

    def _read_chosen(self, name: str, frames: slice, beads: TrajectoryHandle | str | Any) -> np.ndarray:
        """Read a slice of frames, of all rows or those of some beads."""
        start, stop, step = frames.indices(len(self.steps))
        backwards = step < 0
        if backwards:
            # HDF5 reads forwards only.
            index = range(start, stop, step)
            start, stop, step = (index[-1], index[0] + 1, -step) if len(index) else (0, 0, 1)
        if beads is not None:
            shape = self._shape(name)
            if isinstance(beads, str):
                beads = look_up(self._last.handles, beads, "handle", ParameterError)
            if isinstance(beads, TrajectoryHandle):
                beads = self._rows_of(name, beads)
            rows = array("read: beads", beads, (None,), dtype=np.int64)
            if not shape:
                raise ParameterError(f"read: {name} has no rows of beads")
            wrong = np.flatnonzero((rows < 0) | (rows >= shape[0]))
            if len(wrong):
                i = wrong[0]
                raise ParameterError(f"read: beads[{i}] = {rows[i]} but {name} has {shape[0]} rows, counted from 0")
            first, last = (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
            out = self._read(name, slice(start, stop, step), slice(first, last))[:, rows - first]
        else:
            out = self._read(name, slice(start, stop, step))
        return out[::-1] if backwards else out

    def _rows_of(self, name: str, handle: TrajectoryHandle) -> np.ndarray:
        """Return the rows of an element that are those of a handle."""
        of = next(segment.elements[name].of for segment in self._segments if name in segment.elements)
        if of == BEADS:
            return handle.beads
        if not of or handle.rows_of != of:
            only = f", only of {_BEADS_OF.get(of, of)}" if of else ""
            raise ParameterError(f"read: {name} has no rows of the {handle.kind} of {handle.name!r}{only}")
        return handle.row_numbers
