"""Reading back the files of TrajectoryReporter."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from medyanpy._tools.images import Box, box_shown, in_words
from medyanpy._tools.names import look_up, plainly_called
from medyanpy._tools.tables import Displayed, Page, Table, amount, quantity
from medyanpy._tools.types import PathLike
from medyanpy._tools.validation import file_path
from medyanpy.beads import COLUMNS
from medyanpy.core.columns import BEADS, SPECIES
from medyanpy.core.handles import Handle
from medyanpy.core.sites import Sites, ends_of
from medyanpy.core.species import of_species, told_by_species
from medyanpy.errors import ParameterError, TopologyError, foreign_errors, shown
from medyanpy.files import hdf5
from medyanpy.files.embedded import rebuilt
from medyanpy.files.segments import TrajectoryHandle
from medyanpy.files.series import Segments
from medyanpy.files.trees import text_of
from medyanpy.integrators import SplittingIntegrator
from medyanpy.pools import Molecules, PoolStates
from medyanpy.state import Snapshot, State
from medyanpy.system import System

__all__ = ["Frame", "Frames", "Trajectory", "TrajectoryHandle"]

class Frame(Snapshot):
    """One frame of a trajectory; attributes are read from the file when they are used.

    Arrays have a row for each bead of all frames: nan, or -1, without a bead in this one.

    Attributes
    ----------
    step : int
    time : float, s
    handles : dict of str to TrajectoryHandle
        As they were then: an edit changes them.
    ids, alive, box, positions, wrapped_positions, orientations
        As of `State`, and `rows_of_ids`.
    velocities, angular_momenta
        Likewise; ParameterError if they were not written.
    triangles : (p,) int32 array
        Of all in-triangle points, numbered as the faces of each point's membrane.
    barycentric : (p, 3) float array
    potential_energy, kinetic_energy : float, pN nm
    temperature : float, kelvin
    energies : dict of str to float, pN nm
        Potential energy of every force, by its name; ParameterError of files that do not hold them.
    bonds : (b, 2) int array
        Rows of beads that are joined two by two: links of filaments and rods, `HarmonicBonds`, links of forces and
        of jumps, each between the main beads of its sites; not edges of meshes.
    faces : dict of str to (F, 3) int32 array
        Triangles of every membrane in this frame, by its own vertices.
    jumps : list of str
        Those that bind links: their names, for `links`.
    pools : PoolStates
        Molecules in pools, as `State.pools`.
    link_forces : list of str
        The forces with links that users gave: their names, likewise.

    Further columns of kinds of beads: ``frame.column(name)``.
    """

    def __init__(self, trajectory: "Trajectory", index: int) -> None:
        self._trajectory = trajectory
        self._index = index
        self._segment = trajectory._segment_of(index)
        # Among the frames of its segment.
        self._own_index = trajectory._index_in(self._segment, index)
        self.step: int = int(trajectory.steps[index])
        self.time: float = float(trajectory.times[index])

    @property
    def handles(self) -> dict[str, TrajectoryHandle]:
        return self._segment.handles

    @property
    def ids(self) -> np.ndarray:
        return self.column("ids")

    @property
    def alive(self) -> np.ndarray:
        return self.ids >= 0

    def living(self, handle: TrajectoryHandle | Handle) -> np.ndarray:
        """Return the rows of the beads of a handle that are there in this frame, (k,), ascending; of a handle of the
        topology that was simulated, too, which is found by its name."""
        if isinstance(handle, Handle):
            own = look_up(self.handles, handle.name, "handle of this frame", TopologyError)
            names = tuple(one.name for one in handle._species)
            if own.kind != handle.kind.name or (own.species and own.species != names):
                raise TopologyError(f"living: {handle!r} is another in this trajectory: {own.kind}, {own.species}")
            handle = own
        if not isinstance(handle, TrajectoryHandle):
            raise TopologyError(f"living: handle must be one of frame.handles, not {shown(handle)}")
        return np.asarray(handle.beads[self.alive[handle.beads]])

    def column(self, name: str) -> np.ndarray:
        """Return what a kind of bead declares under a name, as `State.column`; ParameterError if it is not held."""
        return self._trajectory._read(name, self._index)

    def _array(self, name: str, keyword: str) -> np.ndarray:
        return self.column(name)

    def drawn_of(self, handle: TrajectoryHandle) -> dict[str, str]:
        """Return the use in pictures of the columns of a handle, by their names."""
        elements = self._segment.elements
        return {name: e.drawn for name, e in elements.items() if e.drawn and e.of == handle.rows_of}

    @property
    def faces(self) -> dict[str, np.ndarray]:
        membranes = {name: handle for name, handle in self.handles.items() if handle.faces is not None}
        return {name: self.beside(handle)["faces"] for name, handle in membranes.items()}

    def beside(self, handle: TrajectoryHandle) -> dict[str, Any]:
        """Return ``handle.beside`` with its ``"faces"`` or ``"links"``, and numbers of species, as they are in this
        frame."""
        beside = dict(handle.beside)
        if any(of_species(key, 0) in beside for key in handle.beside):
            beside = told_by_species(beside, self.column(SPECIES.name)[handle.beads])
        for key, called in (("faces", hdf5.FACES_OF), ("links", hdf5.LINKS_OF)):
            if self._segment.holds(called + handle.name):
                found = self.column(called + handle.name)
                beside[key] = found[found[:, 0] >= 0]
        return beside

    @property
    def jumps(self) -> list[str]:
        return list(self._segment.sites)

    @property
    def pools(self) -> PoolStates:
        held = {}
        for name, species in self._segment.pools.items():
            counts = self._segment.read(hdf5.POOL_OF + name, self._own_index)
            with foreign_errors(f"{self._segment.path} is damaged: {name}"):
                held[name] = Molecules(species, counts.shape[:-1], counts.reshape(-1, len(species)))
        return PoolStates(held)

    @property
    def link_forces(self) -> list[str]:
        return list(self._segment.links)

    def links(self, name: str) -> np.ndarray:
        """Return the links that a jump had bound, as ``state.jumps[name]["links"]``, or those of a force.

        Parameters
        ----------
        name : str
            Of the jump or force.

        Returns
        -------
        (k, 2) int32 array
            Rows of the sites `a` and `b` of a jump, -1 where a head holds nothing; of a force the rows of the main bead
            of each end, -1 of anchors.

        Raises
        ------
        ParameterError
            No such jump or force, or one without links.
        """
        if not isinstance(name, str):
            raise ParameterError(f"links: name = {shown(name)} but must be text")
        if name in self._segment.links:
            sites = self._segment.links[name]
            if sites:
                return np.column_stack([side.main_beads for side in sites]).astype(np.int32)
            return np.asarray(self.column(hdf5.LINK_BEADS_OF + name)[self._with_ends(name)])
        return self._rows_of(name)[:, :2]

    def _rows_of(self, jump: str) -> np.ndarray:
        """Return the links that a jump had bound, (k, 2), or (k, 3) with their states."""
        self._expect_jump(jump)
        rows = self.column(jump)
        return rows[(rows >= 0).any(axis=1)]

    def link_ends(self, name: str) -> np.ndarray:
        """Return the positions of the ends of `links` of a jump or a force, (k, 2, 3), nm.

        An end that holds nothing is where the other one is. Each end is at the image at which its first bead is; in a
        periodic box, links go to the nearest image.
        """
        given = self._segment.links.get(name)
        if given == []:
            return np.asarray(self.column(hdf5.LINK_ENDS_OF + name)[self._with_ends(name)])
        row = np.full(len(self.positions), -1)
        for handle in self.handles.values():
            if handle.rows_of == "oriented":
                row[handle.beads] = handle.row_numbers
        if given is not None:
            return np.stack([sites.places(self, row) for sites in given], axis=1)
        sides, links = self._sites_of(name), self.links(name)
        return np.stack([sites.places(self, row) for sites in ends_of(links, sides)], axis=1)

    def _with_ends(self, force: str) -> np.ndarray:
        """Tell which rows hold a link of a force, (most,), where frames hold them."""
        return np.asarray(np.isfinite(self.column(hdf5.LINK_ENDS_OF + force)).all(axis=(1, 2)))

    def _expect_jump(self, jump: str) -> None:
        sites = self._segment.sites
        if jump not in sites:
            known = ", ".join(sites) or "none"
            forces = f", and forces with links: {', '.join(self._segment.links)}" if self._segment.links else ""
            raise ParameterError(
                f"{self._segment.path}: {jump!r} is not a jump that binds links; those are: {known}{forces}"
            )

    def _sites_of(self, jump: str) -> list[Sites]:
        self._expect_jump(jump)
        held = zip(self._segment.sites[jump], self._segment.growing[jump], strict=True)
        return [one if own is None else one.on_growing(own[0], [own[1]], self) for one, own in held]

    @property
    def bonds(self) -> np.ndarray:
        self._trajectory._check_open()
        return self._segment.bonds(self._own_index)

    def chains(self, handle: TrajectoryHandle) -> list[np.ndarray]:
        """Return the rows of the nodes of each filament or rod of a handle in this frame, from start to end.

        A list of (n_i,) int arrays, with each node of a ring once; ParameterError for beads that no links join.
        """
        links = self.beside(handle).get("links")
        if links is None:
            raise ParameterError(f"chains: the {handle.kind} of {handle.name!r} are not filaments or rods")
        following = np.full(len(handle), -1)
        following[links[:, 0]] = links[:, 1]
        starts = np.setdiff1d(links[:, 0], links[:, 1])
        left = np.zeros(len(handle), bool)
        left[links] = True
        out = []
        # First those that start somewhere, then rings.
        for node in (*starts.tolist(), *np.unique(links[:, 0]).tolist()):
            chain = []
            while node >= 0 and left[node]:
                left[node] = False
                chain.append(node)
                node = int(following[node])
            if chain:
                out.append(handle.beads[chain])
        return out

    @property
    def energies(self) -> dict[str, float]:
        names = self._segment.energies
        for name in names.values():
            if not self._segment.holds(name):
                raise ParameterError(f"{self._segment.path} is damaged: {name} is not there")
        return {force: self._number(name) for force, name in names.items()}

    @property
    def document(self) -> str:
        """Document of the simulation when the file of this frame was begun, as `Trajectory.document`."""
        return text_of(self._segment.document())

    def system(self, functions: Mapping[str, Callable[..., Any]] | None = None) -> tuple[System, SplittingIntegrator]:
        """Rebuild system and integrator as they were when the file of this frame was begun: `Trajectory.system`."""
        return rebuilt(self._segment.document(), functions, self._segment.path)

    def state(self) -> State:
        """Return this frame as a State, which `Context.set_state` takes, as far as the file holds it.

        Returns
        -------
        State
            To the bit, where precision is double. With velocities and angular momenta if they were written, which
            `Context.set_state` needs. What jumps have tried, and which number a link has, frames do not hold: links are
            bound again in their order. Of a run with segments it has the rows of the file of this frame, as the system
            of `system` has.

        Raises
        ------
        ParameterError
            A file that is damaged or closed.
        """
        self._trajectory._check_open()
        segment, k = self._segment, self._own_index
        of_beads = {BEADS, *(handle.rows_of for handle in self.handles.values())} - {""}
        parts: dict[str, Any] = {}
        for name, element in segment.elements.items():
            if element.of in of_beads and name != "ids" and segment.holds(name):
                parts[name] = _as_held(name, segment.read(name, k))
        for column in COLUMNS:
            there = "velocities" in parts if column.is_momentum else True
            if there and column.of not in of_beads:
                parts[column.name] = column.empty(0).reshape(0, *column.shown_shape)
        ids = segment.read("ids", k).astype(np.int64)
        n = len(ids)
        parts["who"] = n, ids, ids >= 0, int(ids.max(initial=-1)) + 1
        if not segment.comes_and_goes:
            parts["who"] = n, None, None, n
        rows = {jump: self._rows_of(jump) for jump in self.jumps}
        parts["jumps"] = {
            jump: {"links": own[:, :2]} | ({"states": own[:, 2]} if own.shape[1] > 2 else {})
            for jump, own in rows.items()
        }
        parts["discrete"], parts["counts"], parts["faces"] = {}, {}, self.faces
        parts["pools"], parts["box"] = dict(self.pools), self.box
        if "interval" in segment.elements:
            parts["energies"] = self.energies
            parts["kinetic_energy"], parts["temperature"] = self.kinetic_energy, self.temperature
        for value in parts.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        return State(self.step, self.time, parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        mine, theirs = ((one._trajectory, one._segment) for one in (self, other))
        return self._index == other._index and all(a is b for a, b in zip(mine, theirs, strict=True))

    def __hash__(self) -> int:
        return hash((id(self._trajectory), self._index))

    def _number(self, name: str) -> float:
        value = self._trajectory._read(name, self._index)
        with foreign_errors(f"{self._segment.path} is damaged: {name}"):
            return float(np.reshape(value, ()))

    @property
    def box(self) -> Box | None:
        return box_shown(self.column("box")) if self._segment.holds("box") else None

    @property
    def triangles(self) -> np.ndarray:
        return self.column("triangles")

    @property
    def barycentric(self) -> np.ndarray:
        return self.column("barycentric")

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


def _as_held(name: str, values: np.ndarray) -> np.ndarray:
    """Return values of a frame as a state holds them: in double precision, with weights that sum to 1 again."""
    if values.dtype != np.float32:
        return np.array(values)
    values = values.astype(np.float64)
    return values / values.sum(axis=1, keepdims=True) if name == "barycentric" else values


class Frames(Sequence[Frame]):
    """Some frames of a trajectory, as the slice ``trajectory[100::10]`` gives them; read when they are used.

    Attributes
    ----------
    steps : (m,) int64 array
    times : (m,) float array, s
        Of every frame.
    """

    def __init__(self, trajectory: "Trajectory", index: range) -> None:
        self._trajectory = trajectory
        self._index = index

    @property
    def _slice(self) -> slice:
        start, stop, step = self._index.start, self._index.stop, self._index.step
        return slice(start, None if stop < 0 else stop, step)

    @property
    def steps(self) -> np.ndarray:
        return self._trajectory.steps[self._slice]

    @property
    def times(self) -> np.ndarray:
        return self._trajectory.times[self._slice]

    def read(self, name: str, beads: "TrajectoryHandle | str | Any" = None) -> np.ndarray:
        """Read all of these frames at once, as `Trajectory.read`."""
        return self._trajectory.read(name, self._slice, beads)

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, index: int) -> Frame: ...

    @overload
    def __getitem__(self, index: slice) -> "Frames": ...

    def __getitem__(self, index: int | slice) -> "Frame | Frames":
        if isinstance(index, slice):
            return Frames(self._trajectory, self._index[index])
        return self._trajectory[_at(self._index, index, f"{self!r}: there is")]

    def __iter__(self) -> Iterator[Frame]:
        return map(self._trajectory.__getitem__, self._index)

    def __add__(self, other: Sequence[Frame]) -> list[Frame]:
        return [*self, *other] if isinstance(other, Sequence) else NotImplemented

    def __radd__(self, other: Sequence[Frame]) -> list[Frame]:
        return [*other, *self] if isinstance(other, Sequence) else NotImplemented

    def __repr__(self) -> str:
        return f"Frames({len(self)} of {self._trajectory!r})"


def _at(frames: range, index: Any, of: str) -> int:
    """Return the number of one of some frames."""
    if not hasattr(index, "__index__"):
        raise ParameterError(f"frames are counted by whole numbers, and slices of these, not {shown(index)}")
    try:
        number: int = frames[index]
        return number
    except IndexError:
        raise IndexError(f"frame {index} of {of} no such frame") from None


class Trajectory(Displayed, Segments, Sequence[Frame]):
    """The frames of a file that TrajectoryReporter wrote, is writing, or was killed while writing.

    With those of its segments, ``run.part0002.h5`` and so on after ``run.h5``: arrays have the rows of the last, and
    frames of before are widened to these with nan, or -1.

    Parameters
    ----------
    path : path
        Of the first segment; of a later one, that alone is read.

    Attributes
    ----------
    steps : (m,) int64 array
    times : (m,) float array, s
        Of every frame.
    handles : dict of str to TrajectoryHandle
        As in the last segment: those of before have the same rows there.
    faces : dict of str to (F, 3) int32 array
        Triangles of the meshes that membranes started with; where edges have been flipped, see `Frame`.
    n_beads : int
        Rows of beads.
    paths : list of Path
        Of the files.
    timestep : float, s
    word : str
        Of the integrator.
    seed : int or None
        Of its random numbers; None of a file that does not hold it.
    missing : str
        What of the run is known to be missing, such as ``"run.part0002.h5, in which the run continues, is missing
        ..."``; empty where nothing is. A `TrajectoryWarning` reports it when the file is opened.
    document : str
        What was simulated, as `medyanpy.serialize` wrote it when the last segment was begun. ParameterError, with the
        reason, where that could not be written.

    Raises
    ------
    ParameterError
        A file that does not exist, is not a trajectory, or is damaged; segments of another run.

    Examples
    --------
    >>> import medyanpy as mp, tempfile, pathlib
    >>> topology = mp.Topology()
    >>> beads = topology.add_beads([[0.0, 0, 0], [1.0, 0, 0]], mass=1.0)
    >>> simulation = mp.Simulation(mp.System(topology), mp.VerletIntegrator(0.5))
    >>> simulation.context.set_velocities([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.h5"
    >>> with mp.reporters.TrajectoryReporter(path, 10) as reporter:
    ...     simulation.reporters.append(reporter)
    ...     simulation.step(30)
    >>> with mp.Trajectory(path) as trajectory:
    ...     len(trajectory), trajectory[-1].positions[0].tolist(), [frame.step for frame in trajectory[1:]]
    (3, [0.0, 30.0, 0.0], [20, 30])
    """

    @plainly_called
    def __init__(self, path: PathLike) -> None:
        hdf5.import_h5py()
        self._open(file_path("Trajectory: path", path))

    @property
    def paths(self) -> list[Path]:
        return [segment.path for segment in self._segments]

    @property
    def timestep(self) -> float:
        return self._last.timestep

    @property
    def word(self) -> str:
        return self._last.word

    @property
    def seed(self) -> int | None:
        return self._last.seed

    @property
    def document(self) -> str:
        self._check_open()
        return text_of(self._last.document())

    def system(self, functions: Mapping[str, Callable[..., Any]] | None = None) -> tuple[System, SplittingIntegrator]:
        """Rebuild what was simulated: beads where they started, forces as they were when the last segment was begun.

        Parameters
        ----------
        functions : dict of str to callable, optional
            As of `medyanpy.deserialize`: the Python functions of forces that call one.

        Returns
        -------
        System, SplittingIntegrator
            In use by no Context; `Frame.state` sets one of them to a frame.

        Raises
        ------
        ParameterError
            A file that holds no document, with the reason; or as `medyanpy.deserialize`.
        """
        self._check_open()
        return rebuilt(self._last.document(), functions, self._last.path)

    @property
    def handles(self) -> dict[str, TrajectoryHandle]:
        return self._last.handles

    @property
    def faces(self) -> dict[str, np.ndarray]:
        return {name: h.faces for name, h in self.handles.items() if h.faces is not None}

    @property
    def n_beads(self) -> int:
        return self._last.n_beads

    def refresh(self) -> int:
        """Look for frames that were written since the file was opened; returns how many there are now.

        A run that starts again, or goes back to a checkpoint, puts another file in the place of the one it wrote; that
        one is then opened. Frames are counted again: there may be fewer.
        """
        self._check_open()
        self._look()
        return len(self)

    @plainly_called
    def read(self, name: str, frames: slice = slice(None), beads: "TrajectoryHandle | str | Any" = None) -> np.ndarray:
        """Read many frames at once.

        Parameters
        ----------
        name : str
            An attribute of `Frame`, such as ``"positions"``.
        frames : slice
        beads : TrajectoryHandle, str or (k,) int, optional
            Only these beads, by their handle or its name; or, as numbers, these rows.

        Returns
        -------
        (m, ...) array

        Raises
        ------
        ParameterError
            A name that is unknown, or was not written, or has no rows of such beads.
        """
        if not isinstance(frames, slice):
            raise ParameterError(f"read: frames = {frames!r} but must be a slice, such as slice(0, 100, 10)")
        return self._read_chosen(name, frames, beads)

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Frame: ...

    @overload
    def __getitem__(self, index: slice) -> Frames: ...

    def __getitem__(self, index: int | slice) -> Frame | Frames:
        """Return a frame or, for a slice, a sequence of them; nothing but steps and times is read before it is used."""
        if isinstance(index, slice):
            return Frames(self, range(len(self))[index])
        return Frame(self, _at(range(len(self)), index, f"{len(self)}: {self._path} has"))

    def __iter__(self) -> Iterator[Frame]:
        return (Frame(self, i) for i in range(len(self)))

    def close(self) -> None:
        """Let go of the files; frames cannot be read afterwards."""
        self._close()

    def __enter__(self) -> "Trajectory":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _page(self) -> Page:
        n, size = len(self), sum(path.stat().st_size for path in self.paths)
        box = self[-1].box if n and self._last.is_open else None
        about = [
            ("frames", amount(n)),
            *([("steps", f"{self.steps[0]:,} to {self.steps[-1]:,}")] if n else []),
            *([("time", f"{self.times[0]:.6g} to {self.times[-1]:.6g} s")] if n else []),
            *([("missing", self.missing)] if self.missing else []),
            *([("box (nm)", in_words(box))] if box else []),
            ("word", self.word),
            ("timestep", quantity(self.timestep, "s")),
            ("size", f"{size / 1e6:.3g} MB in {len(self.paths)} file{'s' * (len(self.paths) > 1)}"),
        ]
        beads = [(name, handle.kind, amount(len(handle))) for name, handle in self.handles.items()]
        held = [
            (name, " × ".join(f"{k:,}" for k in self._shape(name)) or "number")
            for name in self._last.elements
            if any(segment.holds(name) for segment in self._segments)
        ] if self._last.is_open else []  # fmt: skip
        state = "" if self._last.is_open else " (closed)"
        return Page("Trajectory", f"{self._path}{state}", [
            Table("", about),
            Table("beads", beads, ("beads", "kind", "number")),
            Table("in each frame", held, ("in each frame", "shape")),
        ])  # fmt: skip

    def __repr__(self) -> str:
        return f"Trajectory({str(self._path)!r}, {len(self)} frames of {self.n_beads} beads)"
