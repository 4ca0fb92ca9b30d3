"""Reading back the files of TrajectoryReporter."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from medyanpy._tools.names import plainly_called
from medyanpy._tools.validation import array, file_path
from medyanpy.beads import COLUMNS
from medyanpy.beads.rigid_bodies import solid_semi_axes
from medyanpy.beads.rods import round_section
from medyanpy.columns import BEADS
from medyanpy.errors import ParameterError, foreign_errors
from medyanpy.files import hdf5
from medyanpy.files.documents import deserialize
from medyanpy.sites import Sites
from medyanpy.surfaces import Surface

__all__ = ["Frame", "Trajectory", "TrajectoryHandle"]


@dataclass(frozen=True)
class TrajectoryHandle:
    """Some beads of a trajectory, as the topology that was simulated named them.

    Attributes
    ----------
    name, kind : str
        As `Handle`.
    beads : (n,) int array
        Their rows in every array that has a row per bead.
    fixed : bool
    faces : (F, 3) int32 array or None
        Triangles of the mesh that it started with, of the membrane's own vertices; None for what is no membrane.
    membrane : str or None
        On which in-triangle points live; None for other kinds.
    points : slice or None
        Of in-triangle points: their rows in ``frame.triangles`` and ``frame.barycentric``.
    links : (l, 2) int array or None
        Of filaments: pairs of their own nodes, counted from their first.
    surface : Surface or None
        That surface points are held to; None for other kinds, and for a PythonSurface.
    in_space : bool
        Whether positions are places in space; those of directors are directions.
    mass : (n,) float array, pN s²/nm
    rows : slice or None
        Their rows in the columns that not all beads have, such as ``frame.orientations`` and
        ``frame.angular_momenta`` of oriented beads.
    rows_of : str
        Which columns these are, as `Column.of`; empty where there are none.
    inertia : (n, 3) float array or None, pN s² nm
        Of oriented beads: principal moments of inertia.
    beside : dict
        All that stands beside the frames under a name of its own, such as ``"radius"``; see `Handle.beside_frames`.
    """

    name: str
    kind: str
    beads: np.ndarray
    mass: np.ndarray
    rows: slice | None
    rows_of: str
    beside: dict[str, Any]

    @property
    def fixed(self) -> bool:
        return self.beside["fixed"]

    @property
    def in_space(self) -> bool:
        return self.beside.get("in_space", True)

    @property
    def faces(self) -> np.ndarray | None:
        return self.beside.get("faces")

    @property
    def membrane(self) -> str | None:
        return self.beside.get("membrane")

    @property
    def links(self) -> np.ndarray | None:
        return self.beside.get("links")

    @property
    def surface(self) -> Surface | None:
        return self.beside.get("surface")

    @property
    def inertia(self) -> np.ndarray | None:
        return self.beside.get("inertia")

    @property
    def points(self) -> slice | None:
        return self.rows if self.rows_of == "intriangle" else None

    def __len__(self) -> int:
        return len(self.beads)


class Frame:
    """One frame of a trajectory; what is asked for is read then.

    Attributes
    ----------
    step : int
    time : float, s
    positions : (n, 3) float array, nm
    velocities : (n, 3) float array, nm/s
        ParameterError if they were not written.
    triangles : (p,) int32 array
        Of all in-triangle points, numbered as the faces of each point's membrane.
    barycentric : (p, 3) float array
    orientations : (m, 4) float array
        Of all oriented beads: unit quaternions, scalar first, that turn vectors of the body frame into space. Rows of
        one handle: ``frame.orientations[handle.rows]``.
    angular_momenta : (m, 3) float array, pN nm s
        Of the same, in the frame of each body; ParameterError if velocities were not written.
    potential_energy, kinetic_energy : float, pN nm
    temperature : float, kelvin
    faces : dict of str to (F, 3) int32 array
        Triangles of every membrane in this frame, by its own vertices.
    jumps : list of str
        Those that bind links: their names, for `links`.

    What else kinds of beads have is under its name: ``frame.column(name)``.
    """

    def __init__(self, trajectory: "Trajectory", index: int) -> None:
        self._trajectory = trajectory
        self._index = index
        self.step = int(trajectory.steps[index])
        self.time = float(trajectory.times[index])

    @property
    def handles(self) -> dict[str, TrajectoryHandle]:
        return self._trajectory.handles

    def column(self, name: str) -> np.ndarray:
        """What a kind of bead declares under a name, as `State.column`.

        Raises
        ------
        ParameterError
            A name that the file does not hold.
        """
        return self._trajectory._rows(name, self._index)

    def drawn_of(self, handle: TrajectoryHandle) -> dict[str, str]:
        """What pictures take columns of a handle for, by the names of these."""
        elements = self._trajectory._elements
        return {name: e.drawn for name, e in elements.items() if e.drawn and e.of == handle.rows_of}

    @property
    def faces(self) -> dict[str, np.ndarray]:
        membranes = {name: handle for name, handle in self.handles.items() if handle.faces is not None}
        return {name: self.triangles_of(handle)["faces"] for name, handle in membranes.items()}

    def triangles_of(self, handle: TrajectoryHandle) -> dict[str, np.ndarray]:
        """Of a membrane, its triangles in this frame as ``"faces"``; of others nothing."""
        if handle.faces is None:
            return {}
        written = hdf5.FACES_OF + handle.name
        return {"faces": self.column(written) if written in self._trajectory._elements else handle.faces}

    @property
    def jumps(self) -> list[str]:
        return list(self._trajectory._linked)

    def links(self, jump: str) -> np.ndarray:
        """What a jump had bound, as ``state.jumps[jump]["links"]``.

        Parameters
        ----------
        jump : str
            Its name in the system.

        Returns
        -------
        (k, 2) int32 array
            Rows of its sites `a` and `b`.

        Raises
        ------
        ParameterError
            No such jump, or one that binds no links.
        """
        self._trajectory._sites_of(jump)
        rows = self.column(jump)
        return rows[rows[:, 0] >= 0]

    def link_ends(self, jump: str) -> np.ndarray:
        """Where the links are that a jump had bound, in the order of `links`.

        Parameters
        ----------
        jump : str

        Returns
        -------
        (k, 2, 3) float array, nm

        Raises
        ------
        ParameterError
            As of `links`.
        """
        sides, row = self._trajectory._sites_of(jump), np.full(len(self.positions), -1)
        for handle in self.handles.values():
            if handle.rows_of == "oriented":
                row[handle.beads] = np.arange(handle.rows.start, handle.rows.stop)
        links = self.links(jump)
        return np.stack([sites[links[:, k]].places(self, row) for k, sites in enumerate(sides)], axis=1)

    def _number(self, name: str) -> float:
        return float(self._trajectory._rows(name, self._index, ()))

    @property
    def positions(self) -> np.ndarray:
        return self.column("positions")

    @property
    def velocities(self) -> np.ndarray:
        return self.column("velocities")

    @property
    def triangles(self) -> np.ndarray:
        return self.column("triangles")

    @property
    def barycentric(self) -> np.ndarray:
        return self.column("barycentric")

    @property
    def orientations(self) -> np.ndarray:
        return self.column("orientations")

    @property
    def angular_momenta(self) -> np.ndarray:
        return self.column("angular_momenta")

    @property
    def potential_energy(self) -> float:
        return self._number("potential_energy")

    @property
    def kinetic_energy(self) -> float:
        return self._number("kinetic_energy")

    @property
    def temperature(self) -> float:
        return self._number("temperature")

    def __repr__(self) -> str:
        return f"Frame(step {self.step}, {self.time:g} s)"


class _Element(NamedTuple):
    """Where frames hold something, which beads have rows there (as `Column.of`), and what pictures take it for."""

    path: str
    of: str
    drawn: str = ""


_KNOWN = {c.name: _Element(c.path, c.of, c.drawn) for c in COLUMNS} | {
    name: _Element(f"observables/{name}", "") for name in hdf5.ENERGIES
}
# In messages.
_BEADS_OF = {BEADS: "beads", "intriangle": "in-triangle points", "oriented": "oriented beads"}
# Links that jumps have bound, and triangles, are rows of no beads.
_LINKS = "jumps"
# What handles have in files under other names than those of `TrajectoryHandle.beside`.
_HEAD = ("name", "kind", "first_bead", "n_beads", "fixed", "rows_of", "first_row", "first_point")


def _read_beside(dataset: Any) -> Any:
    """An array, or the object that a document describes."""
    return deserialize(dataset.asstr()[()]) if dataset.dtype.kind == "O" else dataset[()]


class Trajectory:
    """The frames of a file that TrajectoryReporter wrote, is writing, or was killed while writing.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    steps : (m,) int64 array
    times : (m,) float array, s
        Of every frame.
    handles : dict of str to TrajectoryHandle
    faces : dict of str to (F, 3) int32 array
        Triangles of the meshes that membranes started with; where edges have been flipped, see `Frame`.
    n_beads : int
    timestep : float, s
    word : str
        Of the integrator.

    Raises
    ------
    ParameterError
        A file that does not exist, is not a trajectory, or is damaged.

    Examples
    --------
    >>> import medyanpy as mp, tempfile, pathlib
    >>> from medyanpy import Trajectory
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0)
    >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    >>> simulation.context.set_velocities([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.h5"
    >>> with mp.reporters.TrajectoryReporter(path, 10) as reporter:
    ...     simulation.reporters.append(reporter)
    ...     simulation.step(30)
    >>> with Trajectory(path) as trajectory:
    ...     len(trajectory), trajectory[-1].positions[0].tolist(), [frame.step for frame in trajectory[1:]]
    (3, [0.0, 30.0, 0.0], [20, 30])
    """

    @plainly_called
    def __init__(self, path: str | os.PathLike) -> None:
        hdf5.import_h5py()
        self._path = file_path("Trajectory: path", path)
        self._file: Any = None
        self._open()
        try:
            self.refresh()
        except BaseException:
            self._file.close()
            raise

    def _open(self) -> None:
        """The file that has the name now; where that fails, the one before stays."""
        with ExitStack() as stack:
            there = None
            # Another may take its place in between.
            while there is None or not os.path.samestat(there, os.stat(self._path)):
                stack.close()
                if not os.path.isfile(self._path):
                    raise ParameterError(f"trajectory {self._path} does not exist")
                there = os.stat(self._path)
                try:
                    new = stack.enter_context(hdf5.open_to_read(self._path))
                except OSError as cause:
                    raise ParameterError(f"{self._path} is not an HDF5 file, or is damaged: {cause}") from cause
                # What frames have in common changes no more, even while they are written.
                with (
                    foreign_errors(f"{self._path} is damaged"),
                    hdf5.open_to_read(self._path, left=True) as file,
                ):
                    hdf5.check_format(file, self._path)
                    own = file["medyanpy"]
                    timestep, word = float(own.attrs["timestep"]), str(own.attrs["word"])
                    handles, elements = dict(self._read_handles(file)), self._read_columns(file)
                    linked = self._read_sites(file, elements)
            stack.pop_all()
        self.close()
        self._file, self._there = new, there
        self.timestep, self.word, self.handles, self._elements = timestep, word, handles, elements
        self._linked = linked
        self.faces = {name: h.faces for name, h in handles.items() if h.faces is not None}

    @staticmethod
    def _read_handles(file: Any) -> Iterator[tuple[str, TrajectoryHandle]]:
        mass = file["particles/all/mass"][()]
        for k, (name, kind, first, n) in enumerate(hdf5.read_handle_rows(file)):
            group = file[f"medyanpy/handles/{k}"]
            beside = {key: _read_beside(dataset) for key, dataset in group.items()}
            beside |= {key: value for key, value in group.attrs.items() if key not in _HEAD}
            beside["fixed"] = bool(group.attrs["fixed"])
            # In 0.1 nothing said which rows these are, and pictures were made of moments of inertia.
            first_rows = {**hdf5.FIRST_ROW, "oriented": "first_row"}
            of = next((of for of, name in first_rows.items() if name in group.attrs), "")
            of = str(group.attrs.get("rows_of", of))
            own, rows = mass[first : first + n], None
            if of:
                row = int(group.attrs[hdf5.FIRST_ROW.get(of, "first_row")])
                rows = slice(row, row + n)
            if "inertia" in beside and not {"radius", "semi_axes"} & set(beside):
                if "links" in beside:
                    beside["radius"] = round_section(own, beside["inertia"])
                else:
                    beside["semi_axes"] = solid_semi_axes(own, beside["inertia"])
            yield name, TrajectoryHandle(name, kind, np.arange(first, first + n), own, rows, of, beside)

    @staticmethod
    def _read_columns(file: Any) -> dict[str, _Element]:
        """What frames hold, by name: what this package knows, there or not, and what else the file has."""
        out = dict(_KNOWN)
        paths = {element.path for element in out.values()}
        for path in hdf5.element_paths(file):
            if path not in paths:
                _, of, entry = path.split("/")
                about = file[path].attrs
                out[str(about.get("name", entry))] = _Element(path, of, str(about.get("drawn", "")))
        return out

    @staticmethod
    def _read_sites(file: Any, elements: dict[str, _Element]) -> dict[str, list[Sites]]:
        """Between which sites each jump binds links."""
        out = {}
        for name, element in elements.items():
            if element.of == _LINKS:
                group = file[element.path]
                out[name] = [Sites.from_arrays(**{k: v[()] for k, v in group[side].items()}) for side in "ab"]
        return out

    def _sites_of(self, jump: str) -> list[Sites]:
        if jump not in self._linked:
            known = ", ".join(self._linked) or "none"
            raise ParameterError(f"{self._path}: {jump!r} is no jump that binds links; those are: {known}")
        return self._linked[jump]

    @property
    def n_beads(self) -> int:
        return sum(map(len, self.handles.values()))

    def refresh(self) -> int:
        """Look for frames that were written since the file was opened; returns how many there are now.

        A run that starts again, or goes back to a checkpoint, puts another file in the place of the one it wrote; that
        one is then opened. Frames are counted anew: there may be fewer.
        """
        self._open_file()
        with suppress(FileNotFoundError):
            if not os.path.samestat(os.stat(self._path), self._there):
                self._open()
        file = self._file
        with foreign_errors(f"{self._path} is damaged"):
            group = file["particles/all/position"]
            for path in hdf5.element_paths(file):
                file[path]["value"].id.refresh()
            for name in ("time", "step"):
                group[name].id.refresh()
            # The step is written last: what has none is not there yet.
            n = min(len(group[name]) for name in ("step", "time", "value"))
            self.steps, self.times = group["step"][:n], group["time"][:n]
        return n

    def _open_file(self) -> Any:
        if not self._file:
            raise ParameterError(f"trajectory {self._path} is closed")
        return self._file

    def _dataset(self, name: str) -> Any:
        file, element = self._open_file(), self._elements.get(name)
        if element is None:
            raise ParameterError(f"trajectory: {name!r} is none of {', '.join(self._elements)}")
        with foreign_errors(f"{self._path} is damaged: {name}"):
            if element.path in file:
                return file[element.path]["value"]
        if not element.of:
            raise ParameterError(f"{self._path} is damaged: it holds no {name}")
        there = element.of == BEADS or any(h.rows_of == element.of for h in self.handles.values())
        why = "TrajectoryReporter was not asked to" if there else f"there are no {_BEADS_OF[element.of]}"
        raise ParameterError(f"{self._path} holds no {name}: {why}")

    def _rows(self, name: str, rows: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Part of a dataset; of the shape that it must have, where one is given."""
        dataset = self._dataset(name)
        with foreign_errors(f"{self._path} is damaged: {name}"):
            out = dataset[rows]
            return out if shape is None else np.reshape(out, shape).astype(np.float64)

    @plainly_called
    def read(self, name: str, frames: slice = slice(None), beads: Any = None) -> np.ndarray:
        """Many frames at once.

        Parameters
        ----------
        name : str
            An attribute of `Frame`, such as ``"positions"``.
        frames : slice
        beads : TrajectoryHandle or (k,) int, optional
            Only these beads; or, as numbers, these rows.

        Returns
        -------
        (m, ...) array

        Raises
        ------
        ParameterError
            A name that is none, or was not written, or has no rows of such beads.
        """
        if not isinstance(frames, slice):
            raise ParameterError(f"read: frames = {frames!r} but must be a slice, such as slice(0, 100, 10)")
        start, stop, step = frames.indices(len(self))
        backwards = step < 0
        if backwards:
            # HDF5 reads forwards only.
            index = range(start, stop, step)
            start, stop, step = (index[-1], index[0] + 1, -step) if len(index) else (0, 0, 1)
        if beads is not None:
            shape = self._dataset(name).shape
            if isinstance(beads, TrajectoryHandle):
                beads = self._rows_of(name, beads)
            rows = array("read: beads", beads, (None,), dtype=np.int64)
            if len(shape) < 2:
                raise ParameterError(f"read: {name} has no rows of beads")
            wrong = np.flatnonzero((rows < 0) | (rows >= shape[1]))
            if len(wrong):
                i = wrong[0]
                raise ParameterError(f"read: beads[{i}] = {rows[i]} but {name} has {shape[1]} rows, counted from 0")
            first, last = (int(rows.min()), int(rows.max()) + 1) if len(rows) else (0, 0)
            out = self._rows(name, np.s_[start:stop:step, first:last])[:, rows - first]
        else:
            out = self._rows(name, np.s_[start:stop:step])
        return out[::-1] if backwards else out

    def _rows_of(self, name: str, handle: TrajectoryHandle) -> np.ndarray:
        """Which rows of an element are those of a handle."""
        of = self._elements[name].of
        if of == BEADS:
            return handle.beads
        if not of or handle.rows_of != of:
            only = f", only of {_BEADS_OF.get(of, of)}" if of else ""
            raise ParameterError(f"read: {name} has no rows of the {handle.kind} of {handle.name!r}{only}")
        return np.arange(handle.rows.start, handle.rows.stop)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        """A frame, or a list of frames for a slice; nothing but their steps and times is read before it is used."""
        if isinstance(index, slice):
            return [Frame(self, i) for i in range(len(self))[index]]
        try:
            return Frame(self, range(len(self))[index])
        except IndexError:
            raise IndexError(f"frame {index} of {len(self)}: {self._path} has no such frame") from None

    def __iter__(self) -> Iterator[Frame]:
        for i in range(len(self)):
            yield Frame(self, i)

    def close(self) -> None:
        """Let go of the file; frames cannot be read afterwards."""
        if self._file:
            self._file.close()

    def __enter__(self) -> "Trajectory":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trajectory({str(self._path)!r}, {len(self)} frames of {self.n_beads} beads)"
