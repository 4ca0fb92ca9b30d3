"""Content of a trajectory: what frames hold of a simulation, and what stands beside them.

What stands beside frames has a row for every row of the simulation, also for rows without a bead: a file serves for as
long as nothing in it would have to be another number.
"""

import os
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from medyanpy._tools.images import box_lengths
from medyanpy._version import __version__
from medyanpy.beads import Membrane
from medyanpy.core import growing_sites
from medyanpy.core.columns import VELOCITIES, Column
from medyanpy.core.handles import Handle
from medyanpy.core.sites import ends_of, joined_beads
from medyanpy.errors import ParameterError
from medyanpy.files import hdf5
from medyanpy.files.documents import serialize
from medyanpy.files.embedded import write_document
from medyanpy.mesh.connectivity import Connectivity
from medyanpy.surfaces import PythonSurface, Surface

if TYPE_CHECKING:
    import h5py

    from medyanpy.forces import Links
    from medyanpy.jumps import Jump
    from medyanpy.pools import MoleculePool
    from medyanpy.simulation import Simulation
    from medyanpy.state import State

# A chunk holds as many frames as fit into this (bytes), so that compression has something to work on while a
# single frame is still cheap to get at; and not more than the second number, so that little waits in memory.
_CHUNK = 2**20
_MOST_FRAMES = 64
# HDF5 cannot hold chunks beyond 4 GiB: very large frames are cut by beads.
_MOST_BEADS = 2**22
# Room for links where they have come or gone: this many, or as often four times as many as doubles them.
_ROOM_FOR_LINKS, _MORE_LINKS = 64, 4
# HDF5 has all names of an enumeration in one message of its object headers, which are not longer than 64 KiB.
_MOST_NAMES = 2**15
_PACKED = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


class Element(NamedTuple):
    """A frame's part of something that depends on time."""

    shape: tuple[int, ...]
    dtype: np.dtype
    unit: str = ""
    #: Its name for readers, and its use in pictures.
    name: str = ""
    drawn: str = ""
    #: Value in rows without a bead; None where all have one.
    fill: float | None = None


class Content:
    """Content of the frames of a simulation as it is now, until its topology is edited.

    Numbers that are not energies are of type `real`. Frames hold velocities, faces and, as `links` of forces have come
    or gone, the bonds of these as asked for. Of energies of forces, intervals, bonds and edges they hold what is in the
    file `like`, if one is continued.
    """

    def __init__(
        self, simulation: "Simulation", real: np.dtype, interval: int, *, velocities: bool, faces: bool,
        links: bool = False, like: "h5py.File | None" = None
    ) -> None:  # fmt: skip
        topology, layout = simulation.topology, simulation.context.layout
        self._simulation, self._interval = simulation, interval
        self.velocities, self.faces = velocities, faces
        numbered = list(enumerate(topology.handles))
        wanted = [c for c in topology.columns if c.in_trajectory and (velocities or not c.is_momentum)]
        self._columns: list[Column] = [column for column in wanted if topology.n_rows(column.of)]
        # Without any room at the start jumps may still remove beads.
        removes = any(jump.births for jump in simulation.system.jumps)
        self._comes_and_goes = layout.has_room or layout.is_renumbered or removes
        self._membranes = {f"medyanpy/faces/{k}": h for k, h in numbered if faces and isinstance(h, Membrane)}
        #: Chains of handles that may get more of them.
        self._chains = {
            f"medyanpy/links/{k}": h for k, h in numbered if len(h._inactive) and "links" in h.kind.beside_frames()
        }
        #: The name of each jump that has something in frames, what it is, first links, and the most rows it can have.
        self._jumps: dict[str, tuple[str, tuple[str, ...], int]] = {}
        for k, (name, jump) in enumerate(zip(simulation.system.jump_names, simulation.system.jumps, strict=True)):
            if (shown := jump.in_frames()) is not None:
                self._jumps[f"medyanpy/jumps/{k}"] = (name, *shown)
        #: The name of each pool in which molecules are counted, and the pool.
        self._pools: dict[str, tuple[str, MoleculePool]] = {
            f"medyanpy/pools/{k}": (name, pool)
            for k, (name, pool) in enumerate(simulation.system.pools.items())
            if pool.species
        }
        #: The name of each force whose energy frames hold.
        self._energies = {f"{hdf5.ENERGIES_AT}/{k}": name for k, name in enumerate(simulation.system.force_names)}
        if like is not None:
            self._energies = hdf5.energies_in(like)
        self._set_connectivity(links, like)
        #: All that depends on time, by path.
        self.elements = self._all_elements(real)

    def _set_connectivity(self, links: bool, like: "h5py.File | None") -> None:
        """Set what joins beads: what stays, and the most rows of what changes."""
        topology, system = self._simulation.topology, self._simulation.system
        names, forces = system.force_names, system.forces
        chains = list(self._chains.values())
        found = [np.empty((0, 2), np.int64)]
        for handle in topology.handles:
            beside = handle.kind.beside_frames()
            if handle not in chains and "links" in beside:
                found.append(handle.beads[beside["links"]])
        found += [force.joined for force in forces if not force.has_links]
        self._fixed_bonds = np.unique(np.sort(np.concatenate(found), axis=1), axis=0)
        #: Forces whose links may come and go, by name; and those that there were when this was made, which stay as they
        #: are where frames do not hold them.
        self._links = {name: cast("Links", f) for name, f in zip(names, forces, strict=True) if f.has_links}
        self._linked = {name: force.sites for name, force in self._links.items()}
        self._sides = {
            name: list(cast("Jump", system[name]).beside_frames().values()) for name, *_ in self._jumps.values()
        }
        most = len(self._fixed_bonds) + sum(chain.capacity for chain in chains)
        most += sum(most for _, _, most in self._jumps.values())
        #: Number of links of each force for which frames have room.
        self._rooms = {name: _room_for(len(force)) if links else len(force) for name, force in self._links.items()}
        most += sum(self._rooms.values())
        #: Rows of bonds in frames; None where they stay, and stand beside the frames.
        change = links or self._comes_and_goes or self._jumps or chains
        # Where there is no room for any, none can come: HDF5 has no chunks without rows.
        self._most_bonds = (most or None) if change else None
        #: Whether frames hold links of forces as these come and go.
        self.links = links
        if like is not None:
            self.links = hdf5.BONDS in like and bool(like[hdf5.BONDS].attrs["links_change"])
            self._most_bonds = like[hdf5.BONDS]["value"].shape[1] if hdf5.BONDS in like else None
            known = {str(group.attrs["force"]): group for group in like.get(hdf5.FORCE_LINKS, {}).values()}
            self._links = {name: force for name, force in self._links.items() if name in known}
            if self.links:
                self._rooms = {name: known[name]["value"].shape[1] for name in self._links}
        #: Where those of each force are in files.
        self._links_at = {name: f"{hdf5.FORCE_LINKS}/{names.index(name)}" for name in self._links}
        if like is not None:
            self._links_at = {name: known[name].name[1:] for name in self._links}

    @property
    def tells_all_energies(self) -> bool:
        """True if frames hold the energies of the forces that there are."""
        return list(self._energies.values()) == list(self._simulation.system.force_names)

    @property
    def links_have_changed(self) -> bool:
        """True if links of forces have come or gone so that frames cannot tell."""
        if self.links:
            return any(len(force) > self._rooms[name] for name, force in self._links.items())
        return any(
            force.sites is not self._linked[name]
            and not all(a.is_same(b.arrays) for a, b in zip(force.sites, self._linked[name], strict=True))
            for name, force in self._links.items()
        )

    def _bonds(self, state: "State | None" = None) -> np.ndarray:
        """Return the rows (b, 2) of beads that are joined now, or were in a state, to where nothing changes."""
        found = [self._fixed_bonds]
        if state is None:
            return np.concatenate(found + [joined_beads(*sites) for sites in self._linked.values()])
        found += [handle.kind.all_rows[handle.kind.beside_rows()["links"]] for handle in self._chains.values()]
        found += [force.joined_in(state) for force in self._links.values()]
        for name, (key, *_), _ in self._jumps.values():
            rows = state.jumps[name][key]
            found.append(joined_beads(*ends_of(rows, [sites.as_in(state) for sites in self._sides[name]])))
        return np.concatenate(found)

    def _edges(self, faces: "dict[str, np.ndarray] | None" = None) -> np.ndarray:
        """Return the rows (e, 2) of vertices that edges join, in meshes as they started or in these triangles."""
        found = [np.empty((0, 2), np.int64)]
        for h in self._simulation.topology.membranes:
            found.append(h.beads[h.mesh.edges if faces is None else Connectivity(faces[h.name], len(h)).edges])
        return np.concatenate(found)

    def _all_elements(self, real: np.dtype) -> dict[str, Element]:
        topology = self._simulation.topology
        out: dict[str, Element] = {}
        for c in self._columns:
            shape = (topology.n_rows(c.of), *c.shown_shape)
            is_real = c.dtype is np.float64
            dtype = real if is_real else np.dtype(c.dtype).newbyteorder("<")
            fill = (np.nan if is_real else -1) if self._comes_and_goes else None
            out[c.path] = Element(shape, dtype, c.unit, c.name, c.drawn, fill)
        if self._comes_and_goes:
            # H5MD 1.1: the fill value of ids says that there is no particle.
            out[hdf5.IDS] = Element((topology.n_beads,), np.dtype("<i8"), name="ids", fill=-1)
        for name in hdf5.ENERGIES:
            out[f"observables/{name}"] = Element((), np.dtype("<f8"), "K" if name == "temperature" else "pN nm")
        if self._simulation.system.box is not None:
            # H5MD: lengths that change in time. Of open directions they are 0.
            out[hdf5.BOX] = Element((3,), np.dtype("<f8"), "nm", name="box")
        pairs = np.dtype("<i4")
        for path, membrane in self._membranes.items():
            out[path] = Element(membrane.mesh.faces.shape, pairs, name=hdf5.FACES_OF + membrane.name)
        for path, chains in self._chains.items():
            out[path] = Element((chains.capacity, 2), pairs, name=hdf5.LINKS_OF + chains.name, fill=-1)
        for path, (name, keys, most) in self._jumps.items():
            out[path] = Element((most, 1 + len(keys)), pairs, name=name, fill=-1)
        for path, (name, pool) in self._pools.items():
            out[path] = Element((*pool.shape, len(pool.species)), np.dtype("<i8"), name=hdf5.POOL_OF + name)
        for path, name in self._energies.items():
            out[path] = Element((), np.dtype("<f8"), "pN nm", name=hdf5.ENERGY_OF + name)
        # MDAnalysis takes a time between frames from here, as a number of the unit of its times: it converts those of
        # frames to ps, unless there are velocities, whose unit it does not know.
        out[hdf5.INTERVAL] = Element((), np.dtype("<f8"), "s" if self.velocities else "ps", name="interval")
        # H5MD 1.1: tuples with a fill value are not bonds.
        number = np.dtype("<i8" if self._comes_and_goes else "<i4")
        if self._most_bonds is not None:
            out[hdf5.BONDS] = Element((self._most_bonds, 2), number, name="bonds", fill=-1)
        if self.faces:
            out[hdf5.EDGES] = Element(self._edges().shape, number, name="mesh edges", fill=-1)
        if self.links:
            for name, path in self._links_at.items():
                room = self._rooms[name]
                out[path] = Element((room, 2, 3), real, "nm", name=hdf5.LINK_ENDS_OF + name, fill=np.nan)
                beads = path.replace(hdf5.FORCE_LINKS, hdf5.LINK_BEADS)
                out[beads] = Element((room, 2), pairs, name=hdf5.LINK_BEADS_OF + name, fill=-1)
        return out

    def frame(self, state: "State") -> dict[str, Any]:
        """Return what a frame holds of a state, by path; refuse one from before the topology was edited."""
        rows = self._simulation.topology.n_beads
        if len(state.positions) != rows:
            raise ParameterError(
                f"TrajectoryReporter: the state has {len(state.positions)} rows of beads, the topology {rows}: it is "
                "from before an edit"
            )
        values: dict[str, Any] = {column.path: state.column(column.name) for column in self._columns}
        if self._comes_and_goes:
            values[hdf5.IDS] = state.ids
        for name in hdf5.ENERGIES:
            values[f"observables/{name}"] = getattr(state, name)
        if hdf5.BOX in self.elements:
            values[hdf5.BOX] = box_lengths(state.box)
        for path, membrane in self._membranes.items():
            values[path] = state.faces[membrane.name]
        for path, (name, pool) in self._pools.items():
            values[path] = np.stack([state.pools[name][species] for species in pool.species], axis=-1)
        lists = {path: handle.kind.beside_rows()["links"] for path, handle in self._chains.items()}
        lists |= {
            path: np.column_stack([state.jumps[name][key] for key in keys])
            for path, (name, keys, _) in self._jumps.items()
        }
        # H5MD 1.1: tuples are of ids.
        if hdf5.BONDS in self.elements:
            lists[hdf5.BONDS] = state.ids[self._bonds(state)]
        if hdf5.EDGES in self.elements:
            lists[hdf5.EDGES] = state.ids[self._edges(state.faces)]
        if self.links:
            row = self._oriented_rows()
            for name, path in self._links_at.items():
                sites = self._links[name].sites_in(state)
                lists[path] = np.stack([side.places(state, row) for side in sites], axis=1)
                beads = np.column_stack([side.main_beads for side in sites])
                lists[path.replace(hdf5.FORCE_LINKS, hdf5.LINK_BEADS)] = beads
        for path, found in lists.items():
            fill = self.elements[path].fill
            values[path] = np.full(self.elements[path].shape, -1 if fill is None else fill, self.elements[path].dtype)
            values[path][: len(found)] = found
        if self._energies:
            energies = state.energies
            values |= {path: energies.get(name, np.nan) for path, name in self._energies.items()}
        between = self._interval * self._simulation.integrator.timestep
        values[hdf5.INTERVAL] = between if self.elements[hdf5.INTERVAL].unit == "s" else between * 1e12
        return values

    def _oriented_rows(self) -> np.ndarray:
        """Return the row of each bead in orientations, (n,); -1 of those without."""
        out = np.full(self._simulation.topology.n_beads, -1)
        for handle in self._simulation.topology.oriented_handles:
            out[handle.beads] = handle.kind.row_numbers
        return out

    def lay_out(self, file: "h5py.File", follows: hdf5.Before | None) -> None:
        """Write all of a file but frames, which alone can be added once readers are allowed; `follows` are the frames
        before a later segment."""
        self._describe(file, follows)
        # Not in chunks: it can be written while others read.
        file.create_dataset(hdf5.NEXT, data=np.zeros(1, "<i8"))
        size = sum(int(np.prod(element.shape)) * element.dtype.itemsize for element in self.elements.values())
        frames = int(np.clip(_CHUNK // size, 1, _MOST_FRAMES))
        file["medyanpy"].attrs["frames_per_chunk"] = frames
        step = time = None
        for path, element in self.elements.items():
            group, shape = file.create_group(path), element.shape
            # Numbers that are not compressed may be added one by one.
            packed = _PACKED if shape else {}
            chunk = (frames, *(min(s, _MOST_BEADS) for s in shape)) if shape else (512,)
            value = group.create_dataset(
                "value", shape=(0, *shape), maxshape=(None, *shape), dtype=element.dtype, chunks=chunk,
                fillvalue=element.fill, **packed,
            )  # fmt: skip
            if element.name:
                group.attrs["name"] = element.name
            if path in (column.path for column in self._columns):
                group.attrs["drawn"] = element.drawn
            if element.unit:
                # MDAnalysis refuses a file whose velocities carry a unit that it does not know, as it does nm/s:
                # theirs stands where it does not look.
                (group if path == VELOCITIES.path else value).attrs["unit"] = element.unit
            if step is None:
                step = group.create_dataset("step", shape=(0,), maxshape=(None,), dtype="<i8", chunks=(512,))
                time = group.create_dataset("time", shape=(0,), maxshape=(None,), dtype="<f8", chunks=(512,))
                time.attrs["unit"] = "s"
            else:
                # All elements are of the same steps: one dataset under several names, as H5MD recommends.
                group["step"], group["time"] = step, time
        for path, (_, pool) in self._pools.items():
            file[path].attrs["species"] = list(pool.species)
        for path in self._jumps:
            _write_sites(file[path], self._sites_of(path))
        for name, path in self._links_at.items():
            group = file.require_group(path)
            group.attrs["force"] = name
            if not self.links:
                _write_sites(group, dict(zip("ab", (sites.arrays for sites in self._linked[name]), strict=True)))
        self._link_for_others(file)

    def _link_for_others(self, file: "h5py.File") -> None:
        """Link arrays under the names at which readers of H5MD look."""
        file["particles/trajectory"] = file["particles/all"]
        file["observables/dt"] = file[hdf5.INTERVAL]
        energies = file.create_group("observables/energies")
        for k, (path, name) in enumerate(self._energies.items()):
            # No part of a path.
            plain = name if name.strip(".") and "/" not in name and "\0" not in name else f"force {k}"
            energies[plain if plain not in energies else f"force {k}"] = file[path]
        if hdf5.BONDS in self.elements:
            file[hdf5.BONDS].attrs["links_change"] = self.links
        tuples = file.create_group(hdf5.CONNECTIVITY)
        ids = self._ids()
        for path, pairs in ((hdf5.BONDS, self._bonds()), (hdf5.EDGES, self._edges())):
            name = path.rsplit("/", 1)[1]
            if path in self.elements:
                tuples[name] = file[path]
            else:
                tuples.create_dataset(name, data=ids[pairs], **_PACKED if len(pairs) else {})
        hdf5.refer_to_particles(file)

    def _ids(self) -> np.ndarray:
        """Return the permanent ids of rows (n,), -1 in rows without a bead."""
        out = np.full(self._simulation.topology.n_beads, -1, np.int64 if self._comes_and_goes else np.int32)
        for handle in self._simulation.topology.handles:
            out[handle.beads] = handle.ids
        return out

    def _describe(self, file: "h5py.File", follows: hdf5.Before | None) -> None:
        topology, integrator = self._simulation.topology, self._simulation.integrator
        about = file.create_group("h5md")
        about.attrs["version"] = np.array([1, 1], np.int32)
        about.create_group("author").attrs["name"] = os.environ.get("USER") or "unknown"
        creator = about.create_group("creator")
        creator.attrs["name"], creator.attrs["version"] = "medyanpy", __version__

        beads = file.create_group("particles/all")
        box = beads.create_group("box")
        box.attrs["dimension"] = 3
        box.attrs["boundary"] = self._boundary()
        species, mass = np.empty(topology.n_beads, np.int32), np.full(topology.n_beads, np.nan)
        radius = np.full(topology.n_beads, np.nan)
        for k, handle in enumerate(topology.handles):
            beside = handle.kind.beside_rows()
            species[handle.kind.all_rows] = k
            mass[handle.kind.all_rows] = _plain(beside["mass"][0])
            if "radius" in beside:
                radius[handle.kind.all_rows] = _plain(beside["radius"][0])
        beads.create_dataset("species", data=species, dtype=_kinds(topology.handles))
        beads.create_dataset("radius", data=radius, **_PACKED).attrs["unit"] = "nm"
        if not self._comes_and_goes:
            beads.create_dataset("id", data=np.arange(topology.n_beads, dtype=np.int32))
        beads.create_dataset("mass", data=mass).attrs["unit"] = "pN s+2 nm-1"

        own = file.create_group("medyanpy")
        own.attrs["format"] = hdf5.FORMAT
        own.attrs["version"] = __version__
        own.attrs["timestep"] = integrator.timestep
        own.attrs["word"] = integrator.word
        if integrator.kT is not None:
            own.attrs["kT"] = integrator.kT
        own.attrs["seed"] = np.uint64(integrator.seed)
        write_document(file, self._simulation)
        if follows is not None:
            own.attrs["frames_before"], own.attrs["step_before"], own.attrs["last_before"] = follows
        handles = own.create_group("handles")
        for k, (handle, row) in enumerate(zip(topology.handles, _handle_rows(topology.handles), strict=True)):
            group = handles.create_group(str(k))
            group.attrs["name"], group.attrs["kind"], group.attrs["n_beads"] = row.name, row.kind, len(row.rows)
            follow = not len(row.rows) or row.rows[-1] - row.rows[0] == len(row.rows) - 1
            if follow:
                group.attrs["first_bead"] = row.rows[0] if len(row.rows) else 0
            else:
                group.create_dataset("rows", data=row.rows, compression="gzip", shuffle=True)
            if handle.kind.rows_of:
                group.attrs["rows_of"] = handle.kind.rows_of
                if follow:
                    first = topology.rows_in(handle.kind.rows_of, row.rows[:1])
                    group.attrs["first_row"] = first.start if isinstance(first, slice) else first[0]
            for name, value in handle.kind.beside_rows().items():
                if name != "mass":
                    _write_beside(group, name, value)

    def _boundary(self) -> list[str]:
        return ["periodic" if length else "none" for length in box_lengths(self._simulation.system.box)]

    def _sites_of(self, path: str) -> dict[str, dict[str, np.ndarray]]:
        """Return for each side of a jump the arrays of which `Sites.from_arrays` makes the same sites, but for those
        that are elsewhere in each frame: of these the filaments that they are on, and rows of the nodes of these."""
        name, *_ = self._jumps[path]
        found = {}
        for side, sites in cast("Jump", self._simulation.system[name]).beside_frames().items():
            found[side] = sites.arrays
            if sites.growth is not None:
                own = growing_sites.of_one(sites.growth, growing_sites.rows_of(sites.handles))
                found[side] |= dict(zip(("growth", "nodes"), own, strict=True))
        return found

    def difference(self, file: "h5py.File") -> str:
        """Return the reason why a file cannot take more frames of the simulation; empty where it can."""
        topology = self._simulation.topology
        mine, theirs = _handle_rows(topology.handles), hdf5.read_handle_rows(file)
        if mine != theirs:
            held, wanted = (", ".join(map(str, rows)) for rows in (theirs, mine))
            return f"it holds {held}, the simulation {wanted}"
        sides = [str(np.asarray(name).astype(str)) for name in file["particles/all/box"].attrs["boundary"]]
        if sides != (own := self._boundary()):
            return f"along x, y and z its boundaries are {', '.join(sides)}, those of the simulation {', '.join(own)}"
        masses = file["particles/all/mass"][()]
        for k, (handle, row) in enumerate(zip(topology.handles, mine, strict=True)):
            group = file[f"medyanpy/handles/{k}"]
            for name, value in handle.kind.beside_rows().items():
                changes = name == "links" and f"medyanpy/links/{k}" in self._chains
                there = masses[row.rows] if name == "mass" else _read_beside(group, name)
                if not changes and there is not None and not _same(there, value):
                    what = "triangles" if name == "faces" else name
                    return f"the {what} of {handle.name!r} are others"
        for path, element in self.elements.items():
            if path not in file or "value" not in file[path]:
                return f"it has no {path}; append with the options it was written with"
            value = file[path]["value"]
            if any(file[path][name].maxshape[0] is not None for name in ("value", "step", "time")):
                return f"{path} cannot grow, as another program has written it again"
            if value.shape[1:] != element.shape or value.dtype != element.dtype:
                return (
                    f"{path} is {value.dtype} {value.shape[1:]} there and {element.dtype} {element.shape} here; "
                    "append with the options it was written with"
                )
        for path, (name, *_) in self._jumps.items():
            there = hdf5.read_sites(file[path])
            here = self._sites_of(path)
            same = all(
                key in there[side] and np.array_equal(a, there[side][key])
                for side in "ab"
                for key, a in here[side].items()
            )
            if file[path].attrs["name"] != name or not same:
                return f"the sites of {name} are others"
        for path, (name, pool) in self._pools.items():
            there = file[path].attrs
            if there["name"] != hdf5.POOL_OF + name or list(there["species"]) != list(pool.species):
                return f"the species of {name} are others"
        fixed = None if hdf5.BONDS in file else file[f"{hdf5.CONNECTIVITY}/bonds"][()]
        if fixed is not None and not np.array_equal(fixed, self._ids()[self._bonds()]):
            return "its bonds are others"
        if self.links_have_changed:
            return "it has no room for so many links"
        for name, path in self._links_at.items() if not self.links else ():
            pairs = zip(self._linked[name], hdf5.read_sites(file[path]).values(), strict=True)
            if not all(sites.is_same(arrays) for sites, arrays in pairs):
                return f"the links of {name} are others"
        if not self.faces and "medyanpy/faces" in file:
            return "it has triangles in its frames; append with faces=True"
        if not self.velocities and VELOCITIES.path in file:
            return "it has velocities; append with velocities=True"
        more = set(hdf5.element_paths(file)) - set(self.elements)
        return f"it has {min(more)} in its frames, which the simulation has not" if more else ""


def _room_for(links: int) -> int:
    room = _ROOM_FOR_LINKS
    while room < 2 * links:
        room *= _MORE_LINKS
    return room


def _write_sites(group: "h5py.Group", sites: dict[str, dict[str, np.ndarray]]) -> None:
    """Write what `hdf5.read_sites` reads."""
    for side, arrays in sites.items():
        for key, value in arrays.items():
            group.create_dataset(f"{side}/{key}", data=value)


def _kinds(handles: tuple[Handle, ...]) -> np.dtype:
    """Return numbers of handles with their names, as far as HDF5 can hold these."""
    names = {handle.name: k for k, handle in enumerate(handles)}
    if sum(len(name.encode()) + 16 for name in names) > _MOST_NAMES or any("\0" in name for name in names):
        return np.dtype(np.int32)
    kinds: np.dtype = hdf5.import_h5py().enum_dtype(names, basetype=np.int32)
    return kinds


def _handle_rows(handles: tuple[Handle, ...]) -> list[hdf5.HandleRows]:
    return [hdf5.HandleRows(handle.name, handle.kind.name, handle.kind.all_rows) for handle in handles]


def _plain(value: np.ndarray) -> np.ndarray:
    """Return an array with nan, or -1, where nothing is known."""
    if not isinstance(value, np.ma.MaskedArray):
        return value
    return value.filled(np.nan if value.dtype.kind == "f" else value.dtype.type(-1))


def _write_beside(group: "h5py.Group", name: str, value: Any) -> None:
    """Write one of the things that a handle has beside frames: see `Kind.beside_frames`."""
    value, unit = value if isinstance(value, tuple) else (value, "")
    if isinstance(value, Surface):
        # A file cannot hold what calls Python functions.
        if not isinstance(value, PythonSurface):
            group.create_dataset(name, data=serialize(value))
    elif isinstance(value, np.ndarray):
        # Masses, radii and the like are mostly those of one species.
        dataset = group.create_dataset(name, data=_plain(value), compression="gzip", shuffle=True)
        if unit:
            dataset.attrs["unit"] = unit
    else:
        group.attrs[name] = value


def _read_beside(group: "h5py.Group", name: str) -> Any:
    """Read what was written; None of a surface that files cannot hold."""
    if name in group:
        return group[name].asstr()[()] if group[name].dtype.kind == "O" else group[name][()]
    return group.attrs.get(name)


def _same(there: Any, here: Any) -> bool:
    """Tell whether what is known of beads now is what a file holds of them."""
    here = here[0] if isinstance(here, tuple) else here
    if isinstance(here, Surface):
        return isinstance(here, PythonSurface) or there == serialize(here)
    if isinstance(here, list):
        return there is not None and list(there) == here
    if not isinstance(here, np.ndarray):
        return bool(there == here)
    if not isinstance(there, np.ndarray) or there.shape != here.shape:
        return False
    known = ~np.ma.getmaskarray(here)
    return bool((there[known] == np.ma.getdata(here)[known]).all())
