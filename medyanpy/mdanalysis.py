"""MDAnalysis opens trajectories: after ``import medyanpy.mdanalysis``, ``MDAnalysis.Universe("run.h5")`` does.

Importing this module tells MDAnalysis of a parser of topologies and a reader of frames; both know files of this package
by what is in them, whatever their ending. Units become those of MDAnalysis: Å, ps, Å/ps, Da.
"""

from typing import Any

import numpy as np

from medyanpy import units
from medyanpy._tools.extras import needed
from medyanpy._tools.images import box_lengths
from medyanpy.errors import ParameterError
from medyanpy.files import hdf5
from medyanpy.files.particles import Contents, chain_numbers, edges_of, energies_of, linked_beads, radii_of
from medyanpy.files.trajectory import Frame, Trajectory

with needed("medyanpy.mdanalysis", "MDAnalysis", "viewers"):
    from MDAnalysis.coordinates.base import ReaderBase
    from MDAnalysis.core import topologyattrs as attributes
    from MDAnalysis.core.topology import Topology
    from MDAnalysis.topology.base import TopologyReaderBase

__all__ = ["TopologyParser", "TrajectoryReader"]

_ANGSTROM = 1.0 / units.angstrom
_PICOSECOND = 1.0 / (1e-3 * units.nanosecond)


def _is_ours(what: Any) -> bool:
    """Tell whether MDAnalysis is to leave a file to this module."""
    try:
        return hdf5.is_trajectory(what)
    except TypeError:  # Arrays, lists and open files.
        return False


class TopologyParser(TopologyReaderBase):  # type: ignore[misc]
    """Parser of what a trajectory holds beside its frames.

    Every row of beads is an atom, those included that are without a bead at times, and directors of filaments, which
    are directions: ``u.select_atoms("not segid directors*")`` leaves these out. Atoms have the name of their handle as
    name and type, masses, radii, and the kind of their handle (``"filament nodes"``) as resname. Handles are segments.
    Each filament, each rod and each membrane is a residue; so is every other bead.

    Bonds are links of filaments and rods and edges of triangles, as in the first frame, with the name of the handle as
    type, and what forces join, of type ``"bonds"``. What jumps bind comes and goes, which bonds of MDAnalysis cannot:
    it is in the frames, see `TrajectoryReader`.
    """

    format = "MEDYANPY"

    @staticmethod
    def _format_hint(thing: Any) -> bool:
        return _is_ours(thing)

    def parse(self, **options: Any) -> Any:
        """Return what MDAnalysis calls a Topology.

        Raises
        ------
        ParameterError
            A file that is damaged, of a later version, or without frames.
        """
        with _opened(self.filename) as trajectory:
            return _topology_of(trajectory)


def _opened(filename: Any) -> Trajectory:
    trajectory: Trajectory = Trajectory(filename)
    if not len(trajectory):
        trajectory.close()
        raise ParameterError(f"{filename} holds no frames")
    return trajectory


def _topology_of(trajectory: Trajectory) -> Topology:
    n, first = trajectory.n_beads, trajectory[0]
    # Handles of the last segment, where all rows are: those of earlier segments are the first of them.
    handles = list(trajectory.handles.values())
    names, masses, radii = np.empty(n, object), np.full(n, np.nan), np.zeros(n)
    residues = np.empty(n, np.int64)
    resnames: list[str] = []
    segments: list[int] = []
    for k, handle in enumerate(handles):
        names[handle.beads], masses[handle.beads] = handle.name, handle.mass
        radii[handle.beads] = np.nan_to_num(radii_of(trajectory[-1], handle))
        own = _residues_of(first if handle.name in first.handles else trajectory[-1], handle)
        residues[handle.beads] = len(resnames) + own
        count = int(own.max()) + 1 if len(own) else 0
        resnames += [handle.kind] * count
        segments += [k] * count
    pairs, kinds = _bonds_of(Contents(trajectory))
    return Topology(
        n,
        len(resnames),
        len(handles),
        attrs=[
            attributes.Atomnames(names),
            attributes.Atomtypes(names.copy()),
            attributes.Masses(np.nan_to_num(masses) / units.dalton),
            attributes.Radii(radii * _ANGSTROM),
            attributes.Atomids(np.arange(1, n + 1)),
            attributes.Resids(np.arange(1, len(resnames) + 1)),
            attributes.Resnums(np.arange(1, len(resnames) + 1)),
            attributes.Resnames(np.array(resnames, object)),
            attributes.Segids(np.array([handle.name for handle in handles], object)),
            attributes.Bonds([tuple(pair) for pair in pairs.tolist()], types=kinds),
        ],
        atom_resindex=residues,
        residue_segindex=np.array(segments, np.int64),
    )


def _residues_of(frame: Frame, handle: Any) -> np.ndarray:
    """Return the residue of a handle that each of its beads is in, (n,), from 0; by links as they are in a frame."""
    n = len(handle)
    if handle.links is not None:
        return chain_numbers(n, frame.beside(frame.handles[handle.name])["links"])
    return np.zeros(n, np.int64) if handle.faces is not None else np.arange(n)


def _bonds_of(contents: Contents) -> tuple[np.ndarray, list[str]]:
    """Return the rows (b, 2) of bonds, and the handle of each, or that it is of a force; without those that jumps have
    bound, which come and go, as bonds of MDAnalysis do not."""
    there = contents.particles(contents.trajectory[0])
    stays = ~np.isin(there.bond_types, contents.numbers_of_jumps)
    pairs = [there.bonds[stays]]
    kinds = [contents.bond_types[k] for k in there.bond_types[stays].tolist()]
    for name, faces in there.faces.items():
        pairs.append(edges_of(faces))
        kinds += [name] * len(pairs[-1])
    return there.rows[np.concatenate(pairs)], kinds


class TrajectoryReader(ReaderBase):  # type: ignore[misc]
    """The frames of a trajectory, with all segments.

    Positions of rows without a bead are nan. ``ts.data`` holds ``"step"``, ``"ids"`` and ``"alive"`` of all rows, the
    energies (pN nm) and the temperature, that of each force as ``"energies/NAME"``, ``"orientations"`` (unit
    quaternions, scalar first) of oriented beads. ``"links"`` are by the name of each jump that binds some, (k, 2) the
    rows of the beads nearest to their ends. A box that is periodic in all directions is ``ts.dimensions``; ``"box"``
    are the three lengths of any, 0 in open directions (Å). Positions are not brought into it. ``convert_units=False``
    leaves lengths in nm, times in s and velocities in nm/s.
    """

    format = "MEDYANPY"
    units: dict[str, str] = {"time": "s", "length": "nm", "velocity": "nm/s"}  # noqa: RUF012 - as MDAnalysis' readers have it

    @staticmethod
    def _format_hint(thing: Any) -> bool:
        return _is_ours(thing)

    @staticmethod
    def parse_n_atoms(filename: Any, **options: Any) -> int:
        """Return the number of rows of beads in a file."""
        with Trajectory(filename) as trajectory:
            return int(trajectory.n_beads)

    def __init__(self, filename: Any, **options: Any) -> None:
        super().__init__(filename, **options)
        self._trajectory = _opened(self.filename)
        self.n_atoms: int = self._trajectory.n_beads
        self._has_velocities = self._holds("velocities")
        self._has_orientations = self._holds("orientations")
        self.ts: Any = self._Timestep(self.n_atoms, velocities=self._has_velocities, reader=self, **self._ts_kwargs)
        self._read_frame(0)

    def _holds(self, name: str) -> bool:
        try:
            self._trajectory.read(name, slice(0, 0))
        except ParameterError:
            return False
        return True

    @property
    def n_frames(self) -> int:
        return len(self._trajectory)

    def _get_dt(self) -> float:
        """Return the time between the first two frames, in ps; 0 where there is one."""
        times = self._trajectory.times
        return float(times[1] - times[0]) * self._time_unit if len(times) > 1 else 0.0

    @property
    def _time_unit(self) -> float:
        return _PICOSECOND if self.convert_units else 1.0

    def _read_frame(self, frame: int) -> Any:
        read, ts = self._trajectory[frame], self.ts
        length = _ANGSTROM if self.convert_units else 1.0
        ts.frame = frame
        ts.time = read.time * self._time_unit
        ts.positions = read.positions * length
        box = box_lengths(read.box) * length
        ts.dimensions = [*box, 90.0, 90.0, 90.0] if box.all() else None
        if self._has_velocities:
            ts.velocities = read.velocities * (length / self._time_unit)
        ts.data.update(step=read.step, ids=read.ids, alive=read.alive, box=box)
        ts.data.update({name: getattr(read, name) for name in hdf5.ENERGIES})
        # As the reader of H5MD that MDAnalysis has calls them.
        ts.data.update({f"energies/{name}": energy for name, energy in energies_of(read).items()})
        ts.data["links"] = {name: linked_beads(read, name) for name in read.jumps}
        if self._has_orientations:
            ts.data["orientations"] = read.orientations
        return ts

    def __getstate__(self) -> dict[str, Any]:
        # Analyses on several processes send readers to them.
        return {key: value for key, value in self.__dict__.items() if key != "_trajectory"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self._trajectory = _opened(self.filename)
        self._read_frame(self.ts.frame)

    def _read_next_timestep(self, ts: Any = None) -> Any:
        frame = self.ts.frame + 1
        if frame >= self.n_frames:
            raise OSError(f"{self.filename} has {self.n_frames} frames")
        return self._read_frame(frame)

    def _reopen(self) -> None:
        self.ts.frame = -1

    def close(self) -> None:
        """Let go of the files."""
        # A constructor that failed has none.
        if "_trajectory" in self.__dict__:
            self._trajectory.close()
