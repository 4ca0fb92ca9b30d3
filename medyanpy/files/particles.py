"""Frames as other programs know them: particles with types, one after the other, bonds between them, triangles.

Particles are the beads that are there, without the rows that have none, which others would count, average and draw.
Directions, such as directors of filaments, are not particles.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from medyanpy._tools.images import box_lengths, displacement
from medyanpy.core.columns import SPECIES
from medyanpy.core.sites import joined_beads
from medyanpy.core.species import names_of_species
from medyanpy.errors import ParameterError, foreign_errors
from medyanpy.files.segments import TrajectoryHandle
from medyanpy.files.trajectory import Frame, Trajectory
from medyanpy.mesh.connectivity import Connectivity, connected, first_appearance
from medyanpy.mesh.images import Part, shown_positions, with_images

__all__ = [
    "OTHER_BONDS", "Contents", "Particles", "chain_numbers", "edges_of", "energies_of", "lines_of", "linked_beads",
    "radii_of", "whole_lengths",
]  # fmt: skip

#: Name of bonds of forces, which have no name of their own.
OTHER_BONDS = "bonds"
# Radius, as drawn, of beads without one: this share of the distance to what they are linked to.
_SHARE = 0.15


@dataclass(frozen=True)
class Particles:
    """Particles of a frame, n of them; arrays have a row for each."""

    step: int
    time: float  # s
    rows: np.ndarray  # in the arrays of the trajectory; ascending within a handle
    ids: np.ndarray
    types: np.ndarray  # which of `Contents.types`
    positions: np.ndarray  # (n, 3) nm; in a periodic box of one and the same image for ever
    box: np.ndarray  # lengths of the periodic box, (3,) nm, 0 in open directions
    velocities: np.ndarray | None  # (n, 3) nm/s
    masses: np.ndarray  # pN s²/nm
    radii: np.ndarray  # nm; nan where there is none; of rigid bodies, of a sphere with the volume of the ellipsoid
    semi_axes: np.ndarray  # (n, 3) nm, of rigid bodies; nan of all others
    orientations: np.ndarray  # (n, 4) unit quaternions, scalar first, body to space; no turn where there is none
    inertia: np.ndarray  # (n, 3) principal moments, pN s² nm; 0 of what does not turn
    angular_momenta: np.ndarray | None  # (n, 3) pN nm s, in the frame of each body; 0 of what does not turn
    bonds: np.ndarray  # (b, 2)
    bond_types: np.ndarray  # which of `Contents.bond_types`, in their order
    faces: dict[str, np.ndarray]  # (F, 3) of each membrane, by these particles
    parts: dict[str, Part]  # in a box: what is shown as a whole, by the name of its handle

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_periodic(self) -> bool:
        return bool(self.box.any())

    @cached_property
    def shown_positions(self) -> np.ndarray:
        """Positions of the images that are shown, (n, 3) nm, as pictures have them."""
        return shown_positions(self.positions, self.parts, self.box) if self.is_periodic else self.positions

    @property
    def images(self) -> np.ndarray:
        """Number of box lengths from the images that are shown to those that frames hold, (n, 3) int."""
        return whole_lengths(self.positions - self.shown_positions, self.box)

    def sheet(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return vertices and triangles of a membrane, as they are shown: none across a side of the box."""
        own, corners = np.unique(self.faces[name], return_inverse=True)
        return with_images(self.shown_positions[own], np.reshape(corners, (-1, 3)), self.box)[:2]


class Contents:
    """Content of the frames of a trajectory, for other programs.

    `handles` are those whose beads are particles, and `types` their names, or those of their species. `chains` are
    those with links, and `jumps` those that bind links. `bond_types` are both of these, and what else joins beads.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        # The handles of the last segment, which may be another by now.
        self.read_from: dict[str, TrajectoryHandle] = trajectory.handles
        self.handles: dict[str, TrajectoryHandle] = {
            name: handle for name, handle in trajectory.handles.items() if handle.in_space
        }
        species = names_of_species({name: handle.species for name, handle in self.handles.items()})
        of = {name: species.get(name, [name]) for name in self.handles}
        #: The handle of each type.
        self.handle_of: list[str] = [name for name, own in of.items() for _ in own]
        self.types: list[str] = [one for own in of.values() for one in own]
        self.membranes: list[str] = [name for name, handle in self.handles.items() if handle.faces is not None]
        self.chains: list[str] = [name for name, handle in self.handles.items() if handle.links is not None]
        self.jumps: list[str] = trajectory[-1].jumps if len(trajectory) else []
        self.bond_types: list[str] = [*self.chains, *self.jumps, OTHER_BONDS]
        self.has_velocities: bool = self.holds("velocities")
        self.has_angular_momenta: bool = self.holds("angular_momenta")

    def holds(self, name: str) -> bool:
        """Tell whether frames have something of this name."""
        try:
            self.trajectory.read(name, slice(0, 0))
        except ParameterError:
            return False
        return True

    @cached_property
    def joining_forces(self) -> list[str]:
        """Forces that join beads: those with links, and by the document, where there is one, those with bonds."""
        last = self.trajectory._last
        names = list(last.links)
        with suppress(ParameterError), foreign_errors(f"{last.path} is damaged"):
            forces = last.document()["content"]["system"]["forces"]
            names += [f["name"] for f in forces if isinstance(f["arguments"].get("pairs"), np.ndarray)]
        return names

    @property
    def numbers_of_jumps(self) -> list[int]:
        """Numbers of the jumps in `bond_types`."""
        return [self.bond_types.index(name) for name in self.jumps]

    @property
    def comes_and_goes(self) -> bool:
        """True if beads come and go, so that there may be rows without a bead."""
        segments = self.trajectory._segments
        return any(one.comes_and_goes or one.n_beads != segments[-1].n_beads for one in segments)

    def boxes(self, frames: range) -> np.ndarray:
        """Return the lengths of the periodic box in frames, (m, 3) nm, 0 in open directions."""
        return np.array([box_lengths(self.trajectory[k].box) for k in frames]).reshape(-1, 3)

    def particles(self, frame: Frame) -> Particles:
        """Return the particles that are there in a frame of the trajectory."""
        ids = frame.ids
        alive = ids >= 0
        living = {name: h.beads[alive[h.beads]] for name, h in frame.handles.items() if h.in_space}
        rows = np.concatenate([np.empty(0, np.int64), *living.values()])
        n = len(rows)
        number = np.full(len(ids), -1)
        number[rows] = np.arange(n)
        types, masses, radii = np.empty(n, np.int32), np.empty(n), np.full(n, np.nan)
        semi_axes, inertia, momenta = np.full((n, 3), np.nan), np.zeros((n, 3)), np.zeros((n, 3))
        orientations = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
        bonds, bond_types, faces = [np.empty((0, 2), np.int64)], [np.empty(0, np.int32)], {}
        turning = any(frame.handles[name].rows_of == "oriented" for name in living)
        oriented = frame.orientations if turning else None
        spinning = frame.angular_momenta if turning and self.has_angular_momenta else None

        def bind(pairs: np.ndarray, kind: str) -> None:
            pairs = number[pairs]
            pairs = pairs[(pairs >= 0).all(axis=1)]
            bonds.append(pairs)
            bond_types.append(np.full(len(pairs), self.bond_types.index(kind), np.int32))

        lengths = box_lengths(frame.box)
        parts: dict[str, Part] = {}
        for name, there in living.items():
            handle, own = frame.handles[name], number[there]
            beside = frame.beside(handle)
            among = np.flatnonzero(alive[handle.beads])
            types[own], masses[own] = self.handle_of.index(name), handle.mass[among]
            if handle.species:
                types[own] += frame.column(SPECIES.name)[there]
            radii[own] = radii_of(frame, handle)[among]
            if "semi_axes" in beside:
                semi_axes[own] = beside["semi_axes"][among]
            if oriented is not None and handle.rows_of == "oriented":
                orientations[own] = oriented[handle.row_numbers[among]]
                inertia[own] = 0.0 if "inertia" not in beside else beside["inertia"][among]
                if spinning is not None:
                    momenta[own] = spinning[handle.row_numbers[among]]
            if "links" in beside:
                bind(handle.beads[beside["links"]], name)
            if "faces" in beside:
                faces[name] = number[handle.beads[beside["faces"]]]
            if lengths.any():
                # The rows of a handle follow each other here.
                start = int(own[0]) if len(own) else 0
                links = bonds[-1] - start if "links" in beside else None
                on = None
                if "membrane" in beside:
                    on = beside["membrane"], frame.triangles[handle.row_numbers[among]]
                triangles = faces[name] - start if name in faces else None
                parts[name] = Part(own, triangles, links, on, handle.surface is not None)
        for name in frame.jumps:
            bind(linked_beads(frame, name), name)
        bind(_others(frame.bonds, rows[np.concatenate(bonds)]), OTHER_BONDS)
        return Particles(
            frame.step, frame.time, rows, ids[rows], types, np.asarray(frame.positions, np.float64)[rows],
            lengths, np.asarray(frame.velocities, np.float64)[rows] if self.has_velocities else None,
            masses, radii, semi_axes, orientations, inertia, momenta if self.has_angular_momenta else None,
            np.concatenate(bonds), np.concatenate(bond_types), faces, parts,
        )  # fmt: skip

    @cached_property
    def size(self) -> float:
        """Radius (nm) for particles without one, as large as looks well: by the distances of what is linked, else by
        that of all in the first frame, else 1."""
        first = self.particles(self.trajectory[0])
        pairs = np.concatenate([first.bonds, *(edges_of(faces) for faces in first.faces.values())])
        x = first.positions
        if len(pairs):
            d = displacement(x[pairs[:, 1]], x[pairs[:, 0]], first.box)
            return _SHARE * float(np.median(np.linalg.norm(d, axis=1))) or 1.0
        known = first.radii[first.radii > 0.0]
        if len(known):
            return 0.5 * float(known.min())
        extent = float(np.ptp(first.shown_positions, axis=0).max()) if len(x) else 0.0
        return _SHARE * extent / max(np.cbrt(len(x)), 1.0) or 1.0


def whole_lengths(vectors: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return the number of whole lengths of a box in vectors, (..., 3) int; 0 in open directions."""
    return np.asarray(np.rint(np.divide(vectors, box, out=np.zeros_like(vectors), where=box > 0.0)), np.int64)


def _others(pairs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the pairs, in whatever order of the two, that are not known."""
    pairs, known = (np.sort(one, axis=1) for one in (pairs, known))
    most = int(max(pairs.max(initial=0), known.max(initial=0))) + 1
    return pairs[~np.isin(pairs[:, 0] * most + pairs[:, 1], known[:, 0] * most + known[:, 1])]


def radii_of(frame: Frame, handle: TrajectoryHandle) -> np.ndarray:
    """Return the radii of all rows of a handle, (n,) nm, as `Particles.radii`."""
    beside = frame.beside(handle)
    for name, drawn in frame.drawn_of(handle).items():
        if drawn == "radius":
            return np.asarray(frame.column(name)[handle.rows], float)
    if "semi_axes" in beside:
        radii: np.ndarray = np.cbrt(np.prod(beside["semi_axes"], axis=1))
        return radii
    radius = beside.get("radius", np.nan)
    return np.broadcast_to(np.asarray(radius, float), len(handle))


def linked_beads(frame: Frame, jump: str) -> np.ndarray:
    """Return the rows (k, 2) of the beads with the most weight at the ends of links of a jump, without those to places
    in space."""
    links = frame.links(jump)
    a, b = (sites[links[:, k]] for k, sites in enumerate(frame._sites_of(jump)))
    return joined_beads(a, b)


def energies_of(frame: Frame) -> dict[str, float]:
    """Return the energies of every force, pN nm; nothing where a file does not hold them."""
    try:
        return frame.energies
    except ParameterError:
        return {}


def edges_of(faces: np.ndarray) -> np.ndarray:
    """Return the edges (e, 2) of triangles, each once."""
    if not len(faces):
        return np.empty((0, 2), np.int64)
    return np.asarray(Connectivity(np.asarray(faces, np.int64), int(faces.max()) + 1).edges, np.int64)


def chain_numbers(n: int, links: np.ndarray) -> np.ndarray:
    """Return the chain that each of n nodes belongs to, (n,), counted in the order of their first nodes."""
    return first_appearance(connected(n, links[:, 0], links[:, 1]))


def lines_of(links: np.ndarray) -> list[np.ndarray]:
    """Return the nodes of each line that links, one after the other, go along; rings end where they begin."""
    if not len(links):
        return []
    ends = np.flatnonzero(links[1:, 0] != links[:-1, 1]) + 1
    return [np.append(part[:, 0], part[-1, 1]) for part in np.split(links, ends)]
