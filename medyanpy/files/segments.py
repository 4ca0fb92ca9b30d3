"""One file of a trajectory, of which there are more where what is simulated has been edited."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from medyanpy.beads import COLUMNS
from medyanpy.core.columns import BEADS, SPECIES, SUBUNITS
from medyanpy.core.sites import Sites
from medyanpy.core.species import OfSpecies, Species, counts_in
from medyanpy.errors import ParameterError, foreign_errors
from medyanpy.files import hdf5
from medyanpy.files.documents import deserialize
from medyanpy.files.embedded import read_document
from medyanpy.mesh.connectivity import sides_of
from medyanpy.surfaces import Surface

__all__ = ["LINKED", "Element", "Segment", "TrajectoryHandle"]


@dataclass(frozen=True)
class TrajectoryHandle:
    """Some beads of a trajectory, as the topology that was simulated named them.

    Attributes
    ----------
    name, kind : str
        As `Handle`.
    beads : (n,) int array
        Their rows in every array that has a row per bead. Where beads come and go also rows that have no bead at times:
        `Frame.living`.
    fixed : bool
    faces : (F, 3) int32 array or None
        Triangles of the mesh that it started with, of the membrane's own vertices; None for other kinds. Where
        edges are flipped, see `Frame.beside`.
    membrane : str or None
        Membrane of in-triangle points; None for other kinds.
    points : slice, (n,) int array or None
        Of in-triangle points: their rows in ``frame.triangles`` and ``frame.barycentric``.
    links : (l, 2) int array or None
        Of filaments and rods: pairs of their own nodes, counted from their first. Where filaments come and go, see
        `Frame.beside`.
    starts : (f + 1,) int array or None
        Of filaments and rods: where the nodes of each start, counted from their first; the last is their number.
        Where filaments come and go it is not known beside the frames, and None: `Frame.chains` tells it of each.
    closed : bool
        Whether filaments are rings.
    radius : (n,) float array or None, nm
        Of balls, and of nodes of rods as they are drawn.
    semi_axes : (n, 3) float array or None, nm
        Of rigid bodies as they are drawn.
    surface : Surface or None
        That surface points are held to; None for other kinds, and for a PythonSurface.
    in_space : bool
        Whether positions are places in space; those of directors are directions.
    mass : (n,) float array, pN s²/nm
        nan in rows without a bead, where the mass of a bead that may come there is not known.
    rows : slice, (n,) int array or None
        Their rows in the columns that not all beads have, such as ``frame.orientations`` and
        ``frame.angular_momenta`` of oriented beads.
    rows_of : str
        Which columns these are, as `Column.of`; empty where there are none.
    inertia : (n, 3) float array or None, pN s² nm
        Of oriented beads: principal moments of inertia.
    species : tuple of str
        Names of the species that its beads may be of, in the order of their numbers; empty of others, and of files that
        do not tell.
    beside : dict
        All that stands beside the frames under a name of its own, such as ``"radius"``; see `Kind.beside_frames`.
    """

    name: str
    kind: str
    beads: np.ndarray
    mass: np.ndarray
    rows: slice | np.ndarray | None
    rows_of: str
    beside: dict[str, Any]

    @property
    def fixed(self) -> bool:
        return bool(self.beside["fixed"])

    @property
    def in_space(self) -> bool:
        return bool(self.beside.get("in_space", True))

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
    def starts(self) -> np.ndarray | None:
        return self.beside.get("starts")

    @property
    def closed(self) -> bool:
        return bool(self.beside.get("closed", False))

    @property
    def joined(self) -> np.ndarray:
        """Pairs of its beads, (e, 2), counted from its first, that are neighbours in a mesh or chain."""
        if self.faces is not None:
            return sides_of(self.faces)
        return np.empty((0, 2), np.int64) if self.links is None else np.asarray(self.links, np.int64)

    @property
    def radius(self) -> np.ndarray | None:
        return self.beside.get("radius")

    @property
    def semi_axes(self) -> np.ndarray | None:
        return self.beside.get("semi_axes")

    @property
    def surface(self) -> Surface | None:
        return self.beside.get("surface")

    @property
    def inertia(self) -> np.ndarray | None:
        return self.beside.get("inertia")

    @property
    def species(self) -> tuple[str, ...]:
        return tuple(self.beside.get("species", ()))

    @property
    def _species(self) -> tuple[Species, ...]:
        if not self.species:
            raise ParameterError(f"{self.name!r} has no species, or they have no names in this file")
        return tuple(Species(name, np.nan, np.nan) for name in self.species)

    def of(self, species: str) -> OfSpecies:
        """Return its beads of one species, whichever these are in a frame; ParameterError for an unknown name."""
        return OfSpecies(self, species)

    def counts(self, frame: Any) -> dict[str, int]:
        """Return the number of beads of each species in a frame, by name; ParameterError where they have none."""
        return counts_in(self, frame)

    @property
    def points(self) -> slice | np.ndarray | None:
        return self.rows if self.rows_of == "intriangle" else None

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of `rows`, (n,); none of beads without rows there."""
        if self.rows is None:
            return np.empty(0, np.int64)
        return np.arange(self.rows.start, self.rows.stop) if isinstance(self.rows, slice) else self.rows

    def __len__(self) -> int:
        return len(self.beads)


class Element(NamedTuple):
    """Place in frames that holds something, the beads that have rows there (as `Column.of`), and its use in
    pictures."""

    path: str
    of: str
    drawn: str = ""


_KNOWN = {
    **{c.name: Element(c.path, c.of, c.drawn) for c in (*COLUMNS, SPECIES, SUBUNITS)},
    **{name: Element(f"observables/{name}", "") for name in hdf5.ENERGIES},
    "ids": Element(hdf5.IDS, BEADS),
    "box": Element(hdf5.BOX, ""),
}
# Links that jumps have bound, and triangles, are rows of no beads.
LINKED = "jumps"
# Data of handles that have other names in files than those of `TrajectoryHandle.beside`.
_HEAD = ("name", "kind", "first_bead", "n_beads", "fixed", "rows_of", "first_row")


class Segment:
    """A file that is finished, being written, or was left by a crash.

    `steps` and `times` are those of its frames when last looked at; `elements` what frames hold, by name: what this
    package knows, there or not, and what else the file has. `sites` are those between which each jump binds links,
    `links` the sites `a` and `b` of each force with links, none where frames hold them, and `energies` the name in
    frames of the energy of each force. `follows` are the frames before a later segment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Any = None
        self._end: tuple[Any, hdf5.Before] | None = None
        with ExitStack() as stack:
            there = None
            # Another may take its place in between.
            while there is None or not os.path.samestat(there, os.stat(path)):
                stack.close()
                if not os.path.isfile(path):
                    raise ParameterError(f"trajectory {path} does not exist")
                there = os.stat(path)
                try:
                    new = stack.enter_context(hdf5.open_to_read(path))
                except OSError as cause:
                    raise ParameterError(f"{path} is not an HDF5 file, or is damaged: {cause}") from cause
                # Data that frames have in common do not change any more, even while frames are written.
                with foreign_errors(f"{path} is damaged"), hdf5.open_to_read(path, left=True) as file:
                    hdf5.check_format(file, path)
                    own = file["medyanpy"]
                    self.timestep: float = float(own.attrs["timestep"])
                    self.word: str = str(own.attrs["word"])
                    self.handles: dict[str, TrajectoryHandle] = dict(_read_handles(file))
                    self.elements: dict[str, Element] = _read_elements(file)
                    linked = {n: hdf5.read_sites(file[e.path]) for n, e in self.elements.items() if e.of == LINKED}
                    self.sites: dict[str, list[Sites]] = {name: _sites_of(sides) for name, sides in linked.items()}
                    #: Of sites that are elsewhere in each frame, for each side: `growth`, and nodes of filaments.
                    self.growing: dict[str, list[tuple[np.ndarray, np.ndarray] | None]] = {
                        name: [(own["growth"], own["nodes"]) if "nodes" in own else None for own in sides.values()]
                        for name, sides in linked.items()
                    }
                    self.n_beads: int = len(file["particles/all/mass"])
                    self.follows: hdf5.Before | None = hdf5.segment_of(file)
                    # Without sides, ends are in frames.
                    self.links: dict[str, list[Sites]] = {
                        str(group.attrs["force"]): _sites_of(hdf5.read_sites(group)) if "a" in group or "b" in group
                        else []
                        for group in file.get(hdf5.FORCE_LINKS, {}).values()
                    }
                    self.seed: int | None = int(own.attrs["seed"]) if "seed" in own.attrs else None
                    self.energies: dict[str, str] = {
                        name: hdf5.ENERGY_OF + name for name in hdf5.energies_in(file).values()
                    }
                    #: The species of each pool, in the order in which frames hold them.
                    self.pools: dict[str, list[str]] = {
                        str(group.attrs["name"]).removeprefix(hdf5.POOL_OF): list(map(str, group.attrs["species"]))
                        for group in file.get("medyanpy/pools", {}).values()
                    }
                    self.comes_and_goes: bool = f"{hdf5.IDS}/value" in file
            self._file, self._there = new, there
            self.refresh()
            stack.pop_all()

    @property
    def is_replaced(self) -> bool:
        """True if another file has its name by now; one that is gone is read on."""
        with suppress(FileNotFoundError):
            return not os.path.samestat(os.stat(self.path), self._there)
        return False

    def refresh(self) -> None:
        """Look for frames that were written since."""
        file = self._file
        with foreign_errors(f"{self.path} is damaged"):
            group = file[hdf5.POSITION]
            for path in hdf5.element_paths(file):
                file[path]["value"].id.refresh()
            for name in ("time", "step"):
                group[name].id.refresh()
            file[hdf5.NEXT].id.refresh()
            self.has_next: bool = bool(file[hdf5.NEXT][0])
            self.steps: np.ndarray = hdf5.counted_steps(file)
            self.times: np.ndarray = group["time"][: len(self.steps)]

    def __len__(self) -> int:
        return len(self.steps)

    def __bool__(self) -> bool:
        return True

    def up_to_the_end(self, before: hdf5.Before) -> hdf5.Before:
        """Return all frames up to its end, after those before it."""
        key = before, len(self)
        if self._end is None or self._end[0] != key:
            with foreign_errors(f"{self.path} is damaged"):
                self._end = key, hdf5.up_to_the_end(self._file, before)
        return self._end[1]

    def _dataset(self, name: str) -> Any:
        """Return the dataset of a name; None where this file does not hold it."""
        element = self.elements.get(name)
        if element is None:
            return None
        with foreign_errors(f"{self.path} is damaged: {name}"):
            if element.path in self._file and "value" in self._file[element.path]:
                return self._file[element.path]["value"]
        return None

    def holds(self, name: str) -> bool:
        """Tell whether frames have something of this name."""
        return name == "ids" or self._dataset(name) is not None

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of one frame's part of something that frames hold."""
        if name == "ids":
            return (self.n_beads,)
        with foreign_errors(f"{self.path} is damaged: {name}"):
            return tuple(self._dataset(name).shape[1:])

    def read(self, name: str, rows: Any) -> np.ndarray:
        """Read part of what frames hold under a name: a frame, a slice, or these and rows of beads."""
        if name == "ids" and not self.comes_and_goes:
            frames, *beads = rows if isinstance(rows, tuple) else (rows,)
            one = np.arange(self.n_beads)[tuple(beads)]
            return one if isinstance(frames, int) else np.tile(one, (len(range(*frames.indices(len(self)))), 1))
        with foreign_errors(f"{self.path} is damaged: {name}"):
            return np.asarray(self._dataset(name)[rows])

    def document(self) -> dict[str, Any]:
        """Return the tree of the document of what was simulated, if the file holds one."""
        return read_document(self._file, self.path)

    def bonds(self, k: int) -> np.ndarray:
        """Return the rows (b, 2) of beads that are joined in a frame."""
        ids = self.read("ids", k)
        with foreign_errors(f"{self.path} is damaged: bonds"):
            if self.holds("bonds"):
                found = self.read("bonds", k)
            else:
                found = self._file[f"{hdf5.CONNECTIVITY}/bonds"][()]
        if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
            raise ParameterError(
                f"{self.path} is damaged: bonds must be pairs of numbers, not {found.dtype} of shape {found.shape}"
            )
        found = found[(found >= 0).all(axis=1)]
        if not self.comes_and_goes:
            if found.max(initial=-1) >= self.n_beads:
                raise ParameterError(
                    f"{self.path} is damaged: a bond is of bead {found.max()}, and there are {self.n_beads}"
                )
            return found.astype(np.int64)
        order = np.argsort(ids, kind="stable")
        rows = order[np.searchsorted(ids[order], found).clip(max=len(ids) - 1)]
        return np.asarray(rows[(ids[rows] == found).all(axis=1)])

    def place_of(self, name: str) -> tuple[str, tuple[int, ...], np.dtype]:
        """Return path, shape and type of the dataset that holds something of this name, frame after frame."""
        with foreign_errors(f"{self.path} is damaged: {name}"):
            dataset = self._dataset(name)
            return dataset.name, dataset.shape, dataset.dtype

    def close(self) -> None:
        if self._file:
            self._file.close()

    @property
    def is_open(self) -> bool:
        return bool(self._file)


def _read_handles(file: Any) -> Iterator[tuple[str, TrajectoryHandle]]:
    mass, found = file["particles/all/mass"][()], hdf5.read_handle_rows(file)
    groups = [file[f"medyanpy/handles/{k}"] for k in range(len(found))]
    columns = [str(group.attrs.get("rows_of", "")) for group in groups]
    # Rows of a column are in the order of those of beads.
    beads_with = {
        of: np.sort(np.concatenate([one.rows for one, own in zip(found, columns, strict=True) if own == of]))
        for of in set(columns)
    }
    for group, of, (name, kind, beads) in zip(groups, columns, found, strict=True):
        beside = {key: _read_beside(dataset) for key, dataset in group.items() if key != "rows"}
        beside |= {key: value for key, value in group.attrs.items() if key not in _HEAD}
        if "species" in beside:
            beside["species"] = list(map(str, beside["species"]))
        beside["fixed"] = bool(group.attrs["fixed"])
        own, rows = mass[beads], None  # type: np.ndarray, slice | np.ndarray | None
        if of:
            rows = np.searchsorted(beads_with[of], beads)
            if (np.diff(rows) == 1).all():
                first = int(rows[0]) if len(rows) else 0
                rows = slice(first, first + len(rows))
        yield name, TrajectoryHandle(name, kind, beads, own, rows, of, beside)


def _read_beside(dataset: Any) -> Any:
    """Return an array, or the object that a document describes."""
    return deserialize(dataset.asstr()[()]) if dataset.dtype.kind == "O" else dataset[()]


def _read_elements(file: Any) -> dict[str, Element]:
    out = dict(_KNOWN)
    paths = {element.path for element in out.values()}
    for path in hdf5.element_paths(file):
        if path not in paths:
            _, of, entry = path.split("/")
            about = file[path].attrs
            out[str(about.get("name", entry))] = Element(path, of, str(about.get("drawn", "")))
    return out


def _sites_of(sides: Mapping[str, Mapping[str, Any]]) -> list[Sites]:
    elsewhere = ("growth", "nodes")
    return [Sites.from_arrays(**{k: v for k, v in own.items() if k not in elsewhere}) for own in sides.values()]
