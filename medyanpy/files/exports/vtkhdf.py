"""VTKHDF, for ParaView and PyVista: small files of virtual datasets, which show what is in those of the trajectory.

Format: Kitware, "VTKHDF file format" 2.x, PolyData with steps: a file for each handle, of triangles, of lines, or of
points. Positions, velocities and whatever else frames hold of the handle are not copied: one hyperslab of a dataset of
the trajectory is mapped to all steps. What does not change is stored once, and steps point to it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from medyanpy.columns import BEADS
from medyanpy.files import hdf5
from medyanpy.files.exports._format import Format
from medyanpy.files.exports.ply import file_word
from medyanpy.files.segments import Segment, TrajectoryHandle

__all__ = ["FORMAT"]

# Kinds of cells, in the order of the format.
_CELLS = ("Vertices", "Lines", "Polygons", "Strips")
_PACKED = {"compression": "gzip", "shuffle": True}


@dataclass(frozen=True)
class _Stretch:
    """The frames of one segment that are exported."""

    segment: Segment
    #: In the segment, and among those of the trajectory.
    frames: range
    numbers: range


class _VtkHdf(Format):
    title = "VTKHDF"
    holds = frozenset({
        "triangles", "flips", "weights", "bonds", "orientations", "semi-axes", "inertia", "angular momenta",
        "velocities", "radii", "masses", "ids", "times", "precision", "energies",
    })  # fmt: skip

    def check(self) -> None:
        if not self.contents.types:
            raise self.refuse("has nothing that is in space")
        for path in self.contents.trajectory.paths:
            try:
                hdf5.open_hdf5(path, "r").close()
            except OSError as cause:
                raise ParameterError(
                    f"export: {path} is being written, or was left by a crash, and VTK reads files that are closed: "
                    f"close its reporter, or go on in it with append=True ({cause})"
                ) from cause

    def _names(self) -> list[str]:
        """Of handles, in the order of files."""
        first = (self.contents.membranes or self.contents.types)[0]
        return [first, *(name for name in self.contents.types if name != first)]

    def paths(self) -> list[Path]:
        others = [file_word(name) for name in self._names()[1:]]
        return [self.out, *(self.out.with_name(f"{self.out.stem}.{word}{self.out.suffix}") for word in others)]

    def write(self, made: list[Path]) -> None:
        h5py = hdf5.import_h5py()
        stretches = self._stretches()
        for path, name in zip(made, self._names(), strict=True):
            # Libraries of VTK show zeros for virtual datasets of newer kinds.
            with h5py.File(path, "w", libver=hdf5.LIBRARIES) as file:
                _File(file, self, name, stretches).write()

    def _stretches(self) -> list[_Stretch]:
        trajectory, out, before = self.contents.trajectory, [], 0
        for segment in trajectory.segments:
            numbers = range(max(self.frames.start, 0), self.frames.stop, self.frames.step)
            own = [k for k in numbers if before <= k < before + len(segment)]
            if own:
                step = self.frames.step
                out.append(_Stretch(segment, range(own[0] - before, own[-1] - before + 1, step),
                                    range(own[0], own[-1] + 1, step)))  # fmt: skip
            before += len(segment)
        return out


class _File:
    """The file of one handle, being written."""

    def __init__(self, file: Any, form: _VtkHdf, name: str, stretches: list[_Stretch]) -> None:
        self._form, self._name, self._stretches = form, name, stretches
        self._trajectory = form.contents.trajectory
        self._folder = Path(os.path.realpath(form.out)).parent
        self._root = file.create_group("VTKHDF")
        self._steps = self._root.create_group("Steps")
        #: Of each stretch, the handle as it is there; None before it was added.
        self._handles = [one.segment.handles.get(name) for one in stretches]
        self._counts = [0 if handle is None else len(handle) for handle in self._handles]
        self._frames = [len(one.frames) for one in stretches]

    def write(self) -> None:
        n_steps = sum(self._frames)
        self._root.attrs["Version"] = np.array([2, 2], np.int64)
        self._root.attrs.create("Type", b"PolyData", dtype=hdf5.import_h5py().string_dtype("ascii", 8))
        self._steps.attrs["NSteps"] = n_steps
        numbers = [k for one in self._stretches for k in one.numbers]
        self._steps["Values"] = self._trajectory.times[numbers]
        per_step = np.repeat(self._counts, self._frames)
        starts = np.cumsum(per_step) - per_step
        self._index(self._root, "NumberOfPoints", per_step)
        self._index(self._steps, "NumberOfParts", np.ones(n_steps, np.int64))
        self._index(self._steps, "PartOffsets", np.arange(n_steps))
        self._index(self._steps, "PointOffsets", starts)
        self._write_points(starts)
        self._write_cells()
        self._write_energies(n_steps)

    @staticmethod
    def _index(group: Any, name: str, values: np.ndarray) -> None:
        group.create_dataset(name, data=np.asarray(values, np.int64), **(_PACKED if len(values) else {}))

    # What frames hold of each bead -------------------------------------------------------------------------------

    def _write_points(self, starts: np.ndarray) -> None:
        data = self._root.create_group("PointData")
        offsets = self._steps.create_group("PointDataOffsets")
        last = self._stretches[-1].segment
        of = self._handles[-1].rows_of if self._handles[-1] is not None else ""
        for name, element in last.elements.items():
            if not last.holds(name) or not element.of or element.of not in (BEADS, of):
                continue
            if name == POSITIONS.name:
                self._map(self._root, "Points", name)
            elif name != "ids" or self._form.contents.comes_and_goes:
                self._map(data, name, name)
                self._index(offsets, name, starts)
        for name, parts in self._beside().items():
            # As long as it stays the same, steps point to one copy.
            start, where, before = 0, [], None
            kept: list[np.ndarray] = []
            for part, frames in zip(parts, self._frames, strict=True):
                if before is None or not np.array_equal(part, before, equal_nan=True):
                    start += 0 if before is None else len(before)
                    kept.append(part)
                    before = part
                where.append(np.full(frames, start))
            data.create_dataset(name, data=np.concatenate(kept), **(_PACKED if len(kept[0]) else {}))
            self._index(offsets, name, np.concatenate(where))

    def _beside(self) -> dict[str, list[np.ndarray]]:
        """What stands beside frames: numbers of each bead, for every stretch."""
        last = self._handles[-1]
        if last is None:
            return {}
        shapes = {"mass": ()} | {
            key: np.shape(value)[1:]
            for key, value in last.beside.items()
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and len(value) == len(last)
        }
        out: dict[str, list[np.ndarray]] = {}
        for key, shape in shapes.items():
            for handle in self._handles:
                value = np.empty((0, *shape)) if handle is None else handle.mass
                if handle is not None and key != "mass":
                    value = handle.beside.get(key, np.full((len(handle), *shape), np.nan))
                out.setdefault(key, []).append(np.asarray(value, np.float64))
        return out

    def _map(self, group: Any, name: str, element: str) -> None:
        """A virtual dataset of what frames hold of this handle, frame after frame."""
        last = self._stretches[-1].segment
        tail = last.shape(element)[1:]
        mapping = _Mapping((sum(n * t for n, t in zip(self._counts, self._frames, strict=True)), *tail))
        base = 0
        for one, handle, n in zip(self._stretches, self._handles, self._counts, strict=True):
            if handle is not None and one.segment.holds(element):
                at = one.segment.elements[element]
                mapping.add(
                    self._place_of(one.segment), f"{at.path}/value", (one.segment.n_frames, *one.segment.shape(element)),
                    one.frames, handle.beads if at.of == BEADS else handle.row_numbers, base,
                )  # fmt: skip
            base += n * len(one.frames)
        mapping.create(group, name, last.dtype(element))

    def _place_of(self, segment: Segment) -> str:
        """Of a file, as seen from the folder of ours."""
        return os.path.relpath(os.path.realpath(segment.path), self._folder)

    # Cells -------------------------------------------------------------------------------------------------------

    def _write_cells(self) -> None:
        kinds = {kind: _Cells(self._root.create_group(kind)) for kind in _CELLS}
        handle = next((one for one in reversed(self._handles) if one is not None), None)
        kind = "Vertices"
        if handle is not None and handle.faces is not None:
            kind = "Polygons"
        elif handle is not None and handle.links is not None:
            kind = "Lines"
        flips = hdf5.FACES_OF + self._name
        if any(one.segment.holds(flips) for one in self._stretches):
            self._write_flips(kinds.pop(kind), flips)
        for one in self._stretches:
            for k in one.numbers:
                for name, cells in kinds.items():
                    cells.add(self._cells_of(k) if name == kind else [])
        for cells in kinds.values():
            cells.write()
        for entry in ("CellOffsets", "ConnectivityIdOffsets"):
            columns = [self._root[name].attrs.pop(entry) for name in _CELLS]
            self._index(self._steps, entry, np.stack(columns, axis=1))

    def _cells_of(self, k: int) -> list[np.ndarray]:
        """The points of each cell in a frame of the trajectory."""
'''TODO'''