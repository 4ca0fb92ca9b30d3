"""VTKHDF, for ParaView and PyVista: small files of virtual datasets, which show what is in those of the trajectory.

Format: Kitware, "VTKHDF file format" 2.x, PolyData with steps: a file for each handle, of triangles, of lines, or of
points. What frames hold of it is not copied: one hyperslab of a dataset of the trajectory is mapped to all steps. What
does not change is stored once, and steps point to it.

In a periodic box positions are thus those of one and the same image for ever. Triangles across its sides, which would
be drawn across all of it, are left out of the cells, of which there are then copies.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from medyanpy._tools.images import box_lengths
from medyanpy.core.columns import BEADS, POSITIONS
from medyanpy.errors import ParameterError
from medyanpy.files import hdf5
from medyanpy.files.exports._format import Format, in_file_names, words_of
from medyanpy.files.particles import lines_of
from medyanpy.files.segments import Segment
from medyanpy.mesh.images import crossing

__all__ = ["FORMAT"]

# Kinds of cells, in the order of the format.
_CELLS = ("Vertices", "Lines", "Polygons", "Strips")
# Smaller arrays (bytes) take less room as they are.
_PACKED_FROM = 256


@dataclass(frozen=True)
class _Stretch:
    """The frames of one segment that are exported."""

    segment: Segment
    #: In the segment, and among those of the trajectory.
    frames: range
    numbers: range


class _VtkHdf(Format):
    title = "VTKHDF"
    holds: ClassVar[frozenset[str]] = frozenset({
        "triangles", "flips", "weights", "bonds", "orientations", "semi-axes", "inertia", "angular momenta",
        "velocities", "radii", "masses", "ids", "times", "precision", "energies", "box",
    })  # fmt: skip

    def check(self) -> None:
        if not self.contents.handles:
            raise self.refuse("has nothing that is in space")
        for path in self.contents.trajectory.paths:
            if hdf5.is_marked(path):
                raise ParameterError(
                    f"export: {path} is being written, or was left by a crash, and VTK reads files that are closed: "
                    "close its reporter, or continue it with append=True"
                )

    @property
    def first(self) -> str:
        """The handle whose file has the name that was asked for."""
        return (self.contents.membranes or [*self.contents.handles])[0]

    def _names(self) -> list[str]:
        """Return the names of handles, in the order of files."""
        return [self.first, *(name for name in self.contents.handles if name != self.first)]

    def paths(self) -> list[Path]:
        others = words_of(self._names()[1:], in_file_names).values()
        return [self.out, *(self.out.with_name(f"{self.out.stem}.{word}{self.out.suffix}") for word in others)]

    def write(self, made: list[Path]) -> None:
        h5py = hdf5.import_h5py()
        stretches = self._stretches()
        for path, name in zip(made, self._names(), strict=True):
            # Libraries of VTK show zeros for virtual datasets of newer kinds.
            with h5py.File(path, "w", libver=hdf5.LIBRARIES) as file:
                _File(file, self, name, stretches).write()

    def left_out(self) -> list[str]:
        out = super().left_out()
        cut = [name for name in self.contents.membranes if any(_is_cut(one, name) for one in self._stretches())]
        if cut:
            out.append(
                f"VTKHDF files have no triangles across the sides of the box ({', '.join(cut)}), and positions that "
                "are not brought into it; .ply files have both."
            )
        return out

    def _stretches(self) -> list[_Stretch]:
        out, before = [], 0
        for segment in self.contents.trajectory._segments:
            own = [k for k in self.frames if before <= k < before + len(segment)]
            if own:
                step = self.frames.step
                numbers = range(own[0], own[-1] + 1, step)
                out.append(_Stretch(segment, range(own[0] - before, own[-1] - before + 1, step), numbers))
            before += len(segment)
        return out


def _is_cut(one: _Stretch, name: str) -> bool:
    """Tell whether a membrane has triangles across the sides of the box."""
    handle = one.segment.handles.get(name)
    if handle is None or handle.faces is None or not one.segment.holds("box"):
        return False
    # If a mesh closes through them, edges that flip leave some there.
    k = one.frames[0]
    faces = one.segment.read(hdf5.FACES_OF + name, k) if one.segment.holds(hdf5.FACES_OF + name) else handle.faces
    x = np.asarray(one.segment.read("positions", k), np.float64)[handle.beads]
    return bool(crossing(x, faces, one.segment.read("box", k)).any())


class _File:
    """The file of one handle, being written."""

    def __init__(self, file: Any, form: _VtkHdf, name: str, stretches: list[_Stretch]) -> None:
        self._form, self._name, self._stretches = form, name, stretches
        self._trajectory = form.contents.trajectory
        self._folder = Path(os.path.realpath(form.out)).parent
        self._root = file.create_group("VTKHDF")
        self._steps = self._root.create_group("Steps")
        self._there: dict[tuple[tuple[int, ...], bytes], Any] = {}
        #: The handle as it is in each stretch; None before it was added.
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
        self._index(self._steps, "NumberOfParts", np.ones(n_steps, np.int64))
        self._index(self._steps, "PointOffsets", starts)
        self._write_points(starts)
        self._write_cells(n_steps)
        if self._name == self._form.first:
            self._write_energies()

    def _index(self, group: Any, name: str, values: np.ndarray) -> None:
        """Write whole numbers; those that are there already get one more name."""
        values = np.ascontiguousarray(values, np.int64)
        key = (values.shape, values.tobytes())
        if key in self._there:
            group[name] = self._there[key]
        else:
            self._there[key] = _packed(group, name, values)

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
            elif name == "ids" and not all(one.segment.comes_and_goes for one in self._stretches):
                # Segments in which no bead comes or goes do not hold them.
                if self._form.contents.comes_and_goes:
                    self._keep(data, offsets, name, self._ids(), [1] * sum(self._frames))
            else:
                self._map(data, name, name)
                self._index(offsets, name, starts)
        for name, parts in self._beside().items():
            self._keep(data, offsets, name, parts, self._frames)

    def _keep(self, data: Any, offsets: Any, name: str, parts: Iterable[np.ndarray], frames: list[int]) -> None:
        """Write numbers of each bead, each part for so many frames: steps point to one copy of what stays the same."""
        start, where, before = 0, [], None
        kept: list[np.ndarray] = []
        for part, n in zip(parts, frames, strict=True):
            if before is None or not np.array_equal(part, before, equal_nan=True):
                start += 0 if before is None else len(before)
                kept.append(part)
                before = part
            where.append(np.full(n, start))
        _packed(data, name, np.concatenate(kept))
        self._index(offsets, name, np.concatenate(where))

    def _ids(self) -> Iterator[np.ndarray]:
        """Iterate over the permanent ids in every frame."""
        for one, handle in zip(self._stretches, self._handles, strict=True):
            for k in one.frames:
                yield np.empty(0, np.int64) if handle is None else one.segment.read("ids", k)[handle.beads]

    def _beside(self) -> dict[str, list[np.ndarray]]:
        """Return the numbers of each bead that stand beside frames, for every stretch."""
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
        """Write a virtual dataset of what frames hold of this handle, frame after frame."""
        *_, shape, dtype = self._stretches[-1].segment.place_of(element)
        mapping = _Mapping((sum(n * t for n, t in zip(self._counts, self._frames, strict=True)), *shape[2:]))
        base = 0
        for one, handle, n in zip(self._stretches, self._handles, self._counts, strict=True):
            if handle is not None and one.segment.holds(element):
                of = one.segment.elements[element].of
                rows = handle.beads if of == BEADS else handle.row_numbers
                mapping.add(self._place_of(one.segment), *one.segment.place_of(element)[:2], one.frames, rows, base)
            base += n * len(one.frames)
        mapping.create(group, name, dtype)

    def _place_of(self, segment: Segment) -> str:
        """Return the path of a segment's file relative to the folder of this one."""
        return os.path.relpath(os.path.realpath(segment.path), self._folder)

    def _write_energies(self) -> None:
        """Write numbers of whole frames as fields."""
        data = self._root.create_group("FieldData")
        offsets, sizes = self._steps.create_group("FieldDataOffsets"), self._steps.create_group("FieldDataSizes")
        n_steps = sum(self._frames)
        last = self._stretches[-1].segment
        fields: list[tuple[str, str, np.ndarray | None]] = [(name, name, None) for name in hdf5.ENERGIES]
        # Names of datasets are not paths.
        fields += [(f"energy of {name}".replace("/", "_"), held, None) for name, held in last.energies.items()]
        fields += [(f"box_{axis}", "box", np.array([c])) for c, axis in enumerate("xyz" if last.holds("box") else "")]
        for name, held, rows in fields:
            mapping, base = _Mapping((n_steps,)), 0
            for one in self._stretches:
                if one.segment.holds(held):
                    mapping.add(self._place_of(one.segment), *one.segment.place_of(held)[:2], one.frames, rows, base)
                base += len(one.frames)
            mapping.create(data, name, np.dtype("<f8"))
            self._index(offsets, name, np.arange(n_steps))
            self._index(sizes, name, np.ones((n_steps, 2), np.int64))

    def _write_cells(self, n_steps: int) -> None:
        """Write the cells of one kind. Parts of the format are here different sets of cells, and of points."""
        handles = [handle for handle in self._handles if handle is not None]
        kind, write = "Vertices", self._write_other_cells
        if handles and handles[-1].faces is not None:
            kind = "Polygons"
            if not any(_is_cut(one, self._name) for one in self._stretches):
                write = self._write_triangles
        elif handles and handles[-1].links is not None:
            kind = "Lines"
        cells = write(self._root.create_group(kind))
        n_parts = int(cells.parts.max()) + 1
        n_points = np.zeros(n_parts, np.int64)
        n_points[cells.parts] = np.repeat(self._counts, self._frames)
        self._index(self._root, "NumberOfPoints", n_points)
        self._index(self._steps, "PartOffsets", cells.parts)
        first = {name: np.zeros((n_steps, len(_CELLS)), np.int64) for name in ("CellOffsets", "ConnectivityIdOffsets")}
        first["CellOffsets"][:, _CELLS.index(kind)] = cells.first_cells
        first["ConnectivityIdOffsets"][:, _CELLS.index(kind)] = cells.first_points
        for name, values in first.items():
            self._index(self._steps, name, values)
        for name in _CELLS:
            if name != kind:
                group = self._root.create_group(name)
                self._index(group, "NumberOfCells", np.zeros(n_parts, np.int64))
                self._index(group, "NumberOfConnectivityIds", np.zeros(n_parts, np.int64))
                self._index(group, "Offsets", np.zeros(1, np.int64))
                self._index(group, "Connectivity", np.zeros(0, np.int64))

    def _cells_in(self, k: int) -> list[np.ndarray]:
        """Return the points of each cell in a frame of the trajectory, as rows of the handle."""
        frame = self._trajectory[k]
        handle = frame.handles.get(self._name)
        if handle is None:
            return []
        if handle.faces is not None:
            faces, box = frame.faces[self._name], None if frame.box is None else box_lengths(frame.box)
            x = np.asarray(frame.positions, np.float64)[handle.beads]
            return list(np.asarray(faces, np.int64)[~crossing(x, faces, box).any(axis=1)])
        if handle.links is not None:
            return lines_of(frame.beside(handle)["links"])
        return list(np.flatnonzero(frame.alive[handle.beads])[:, None])

    def _write_other_cells(self, group: Any) -> "_Cells":
        """Write the cells of every step; those that stay the same once."""
        kept: dict[tuple[int, bytes, bytes], int] = {}
        sets: list[tuple[np.ndarray, np.ndarray]] = []
        parts = []
        for one, count in zip(self._stretches, self._counts, strict=True):
            found = None
            for k in one.numbers:
                if found is None or one.segment.comes_and_goes or one.segment.holds(hdf5.FACES_OF + self._name):
                    cells = self._cells_in(k)
                    ends = np.cumsum([0, *map(len, cells)])
                    points = np.concatenate([np.empty(0, np.int64), *cells])
                    found = kept.setdefault((count, ends.tobytes(), points.tobytes()), len(sets))
                    if found == len(sets):
                        sets.append((ends, points))
                parts.append(found)
        # Readers find the offsets of a part by counting cells before it: those without any must come last.
        order = sorted(range(len(sets)), key=lambda k: (len(sets[k][0]) == 1, k))
        place = np.empty(len(sets), np.int64)
        place[order] = np.arange(len(sets))
        n_cells = np.array([len(sets[k][0]) - 1 for k in order])
        n_points = np.array([len(sets[k][1]) for k in order])
        self._index(group, "NumberOfCells", n_cells)
        self._index(group, "NumberOfConnectivityIds", n_points)
        self._index(group, "Offsets", np.concatenate([sets[k][0] for k in order]))
        self._index(group, "Connectivity", np.concatenate([sets[k][1] for k in order]))
        own = place[parts]
        return _Cells(own, (np.cumsum(n_cells) - n_cells)[own], (np.cumsum(n_points) - n_points)[own])

    def _write_triangles(self, group: Any) -> "_Cells":
        """Write triangles without copying them: where edges have flipped those in frames, else those of the mesh."""
        flips = hdf5.FACES_OF + self._name
        faces = [np.empty((0, 3)) if h is None or h.faces is None else h.faces for h in self._handles]
        counts = [len(own) for own in faces]
        there = zip(self._stretches, self._handles, strict=True)
        moving = [handle is not None and one.segment.holds(flips) for one, handle in there]
        sizes = [3 * n * (t if moves else 1) for n, t, moves in zip(counts, self._frames, moving, strict=True)]
        mapping, base, first = _Mapping((sum(sizes),)), 0, []
        for one, own, moves, size in zip(self._stretches, faces, moving, sizes, strict=True):
            if len(own):
                if moves:
                    path, shape, _ = one.segment.place_of(flips)
                else:
                    number = list(one.segment.handles).index(self._name)
                    path, shape = f"/medyanpy/handles/{number}/faces", own.shape
                mapping.add(self._place_of(one.segment), path, shape, one.frames if moves else None, None, base)
            first.append(base + 3 * len(own) * moves * np.arange(len(one.frames)))
            base += size
        # The membrane is there, or not yet.
        parts = np.repeat([0 if n else 1 for n in counts], self._frames)
        parts -= parts.min()
        n_cells = np.array(sorted(set(counts), reverse=True))
        self._index(group, "NumberOfCells", n_cells)
        self._index(group, "NumberOfConnectivityIds", 3 * n_cells)
        self._index(group, "Offsets", 3 * np.arange(n_cells[0] + 1))
        mapping.create(group, "Connectivity", np.dtype("<i4"))
        return _Cells(parts, np.zeros(len(parts), np.int64), np.concatenate(first))


def _packed(group: Any, name: str, values: np.ndarray) -> Any:
    options = {"compression": "gzip", "shuffle": True} if values.nbytes >= _PACKED_FROM else {}
    return group.create_dataset(name, data=values, **options)


class _Cells(NamedTuple):
    """Table of every step: its part, and where its cells, and the points of these, begin."""

    parts: np.ndarray
    first_cells: np.ndarray
    first_points: np.ndarray


class _Mapping:
    """A dataset of this shape, made of hyperslabs of others."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        from h5py import h5p

        self._shape = shape
        self._list = h5p.create(h5p.DATASET_CREATE)

    def add(
        self, file: str, path: str, shape: tuple[int, ...], frames: range | None, rows: np.ndarray | None, base: int
    ) -> None:
        """Show frames of a dataset of a file, one after the other, from row `base` on; of each, some rows or all.
        Without frames, all of a dataset that has none."""
        from h5py import h5s

        if rows is not None and not len(rows):
            return
        n_rows = shape[1] if frames is not None and len(shape) > 1 else 1
        rows = np.arange(n_rows) if rows is None else rows
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        for part in np.split(np.arange(len(rows)), ends):
            source, target = h5s.create_simple(shape), h5s.create_simple(self._shape)
            ones = (1,) * len(shape)
            if frames is None:
                source.select_all()
                target.select_hyperslab((base,), (1,), block=(int(np.prod(shape)),))
            elif len(shape) == 1:
                source.select_hyperslab((frames.start,), (len(frames),), stride=(frames.step,))
                target.select_hyperslab((base,), (len(frames),))
            else:
                tail = shape[2:]
                source.select_hyperslab(
                    (frames.start, int(rows[part[0]]), *(0 for _ in tail)), (len(frames), *ones[1:]),
                    stride=(frames.step, *ones[1:]), block=(1, len(part), *tail),
                )  # fmt: skip
                # Where rows of frames are not rows here, they are numbers one after the other.
                width = int(np.prod(tail)) if len(self._shape) < len(shape) - 1 else 1
                inner = tail if width == 1 else ()
                target.select_hyperslab(
                    (base + width * int(part[0]), *(0 for _ in inner)), (len(frames), *(1 for _ in inner)),
                    stride=(width * len(rows), *(1 for _ in inner)), block=(width * len(part), *inner),
                )  # fmt: skip
            # HDF5 takes % in the names of both for a pattern.
            names = os.fsencode(file.replace("%", "%%")), path.replace("%", "%%").encode()
            self._list.set_virtual(target, *names, source)

    def create(self, group: Any, name: str, dtype: np.dtype) -> None:
        """Make the dataset; nan, or 0, stands where nothing is shown, or the file is not there."""
        from h5py import h5d, h5s, h5t

        if not np.prod(self._shape):
            group.create_dataset(name, shape=self._shape, dtype=dtype)
            return
        self._list.set_fill_value(np.array(np.nan if dtype.kind == "f" else 0, dtype))
        h5d.create(group.id, name.encode(), h5t.py_create(dtype), h5s.create_simple(self._shape), self._list)


FORMAT = _VtkHdf
