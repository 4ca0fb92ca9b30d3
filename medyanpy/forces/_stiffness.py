"""Stiffness of forces: bounds of the frequencies that they give beads, by which timesteps are judged.

Every force is described by springs where beads start: a term is a spring of stiffness k on a coordinate that each bead
moves in proportion to some size c. In coordinates of unit mass the matrix of such a term is k c c^T with c_i / √m_i in
place of c_i, and

    k c c^T <= diag(k c_i Σ_j c_j)

(rows that dominate their sum). So springs that tie every bead to its place with the squared frequencies ω²_i = Σ k c_i
Σ_j c_j / √(m_i m_j) bound the force from above. These add up from force to force, and the largest of them bounds the
highest frequency of all. For fixed beads 1/√m is 0.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._tools.images import Box
from medyanpy._tools.types import Numbers
from medyanpy.core.layout import Layout
from medyanpy.forces._arguments import Beads
from medyanpy.mesh.geometry import corners_of

if TYPE_CHECKING:
    from medyanpy.beads import Membrane
    from medyanpy.core.sites import Sites
    from medyanpy.mesh import TriangleMesh
    from medyanpy.topology import Topology

__all__ = ["Coordinates", "Start", "heights_over_rings", "longest_timestep", "triangle_geometry"]


class Coordinates:
    """Coordinates, n of them, on which springs act, with the size by which each row moves each of them.

    Attributes
    ----------
    n : int
    term, row : (m,) int
    size : (m,) float, >= 0
    """

    def __init__(self, n: int, term: np.ndarray, row: np.ndarray, size: np.ndarray) -> None:
        self.n: int = n
        self.term: np.ndarray = term
        self.row: np.ndarray = row
        self.size: np.ndarray = size

    def __add__(self, other: "Coordinates") -> "Coordinates":
        parts = ((getattr(self, name), getattr(other, name)) for name in ("term", "row", "size"))
        return Coordinates(self.n, *map(np.concatenate, parts))

    def __getitem__(self, chosen: np.ndarray) -> "Coordinates":
        """Return the coordinates numbered `chosen` (k,), any of them several times."""
        order = np.argsort(self.term, kind="stable")
        start = np.searchsorted(self.term[order], np.arange(self.n + 1))
        counts = np.diff(start)[chosen]
        ends = np.cumsum(counts)
        entry = order[np.repeat(start[:-1][chosen] - (ends - counts), counts) + np.arange(counts.sum())]
        return Coordinates(len(chosen), np.repeat(np.arange(len(chosen)), counts), self.row[entry], self.size[entry])

    def times(self, factors: Any) -> "Coordinates":
        """Multiply each coordinate by its own factor (n,)."""
        return Coordinates(self.n, self.term, self.row, self.size * np.broadcast_to(factors, (self.n,))[self.term])

    def sums(self, lightness: np.ndarray) -> np.ndarray:
        """Sum the sizes of each coordinate, in coordinates of unit mass, (n,)."""
        return np.bincount(self.term, self.size * lightness[self.row], self.n)


class Start:
    """Beads of a topology where they were added, and their lightness.

    Rows are the beads in topology order, then one for the turning of each oriented bead.

    Parameters
    ----------
    topology : Topology
    overdamped : bool
        True if beads move without velocities: frictions then replace masses, and rates replace squared frequencies.
    box : (3,) tuple of float, nm, or None; or None
        That of the system.

    Attributes
    ----------
    positions : (n, 3) float, nm
    lightness : (rows,) float
        1/√m, 1/√I of the least moment of inertia, or 1/√γ; 0 where nothing moves.
    """

    def __init__(self, topology: "Topology", overdamped: bool = False, box: Box | None = None) -> None:
        self.topology: Topology = topology
        self.overdamped: bool = overdamped
        self.box: Box | None = box
        self.n: int = topology.n_beads
        n = self.n
        oriented = topology.oriented_handles
        self.n_rows: int = n + topology.n_rows("oriented")
        #: Rows without a bead have no place.
        self.positions: np.ndarray = np.full((n, 3), np.nan) if topology.has_room else np.empty((n, 3))
        inverse = np.zeros(self.n_rows)
        handle: Any
        for handle in topology.handles:
            rows = handle.beads
            self.positions[rows] = handle.positions
            amount = handle.friction if overdamped else handle.mass
            amount = np.where(handle.kind.fixed_beads, 0.0, amount)
            inverse[rows] = np.divide(1.0, amount, out=np.zeros(len(handle)), where=amount > 0.0)
        #: First row of the turning of each handle's oriented beads, and their numbers.
        self._turning = np.full(n, -1)
        for handle in oriented:
            rows = n + handle.kind.row_numbers
            self._turning[handle.beads] = rows
            if overdamped:
                # The fastest directions of the diffusion tensors; frictions of one number may be zero.
                tensor = np.broadcast_to(handle.kind.friction_tensors, (len(handle), 6, 6))
                for block, at in ((slice(0, 3), handle.beads), (slice(3, 6), rows)):
                    least = np.linalg.eigvalsh(tensor[:, block, block])[:, 0]
                    inverse[at] = np.divide(1.0, least, out=np.zeros(len(least)), where=least > 0.0)
                inverse[handle.beads[handle.kind.held[:, 0]]] = 0.0
            else:
                inverse[rows] = 1.0 / handle.inertia.min(axis=1)
            inverse[rows[handle.kind.held[:, 1]]] = 0.0
        self.lightness: np.ndarray = np.sqrt(inverse)

    @cached_property
    def orientations(self) -> np.ndarray:
        """Orientations (m, 4) of the oriented beads, in the order of their rows."""
        out = np.zeros((self.n_rows - self.n, 4))
        for handle in self.topology.oriented_handles:
            out[handle.kind.row_numbers] = handle.orientations
        return out

    @cached_property
    def there(self) -> np.ndarray:
        """Mask (n,) of rows with a bead."""
        out = np.zeros(self.n, bool)
        for handle in self.topology.handles:
            out[handle.beads] = True
        return out

    def bead_of(self, row: int) -> int:
        """Return the bead to which a row belongs."""
        return row if row < self.n else int(np.flatnonzero(self._turning == row)[0])

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.topology)

    @cached_property
    def _riders(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row of each bead in the next two arrays, or -1; corners of the triangles where points start, and weights of
        these."""
        rider, corners, weights = np.full(self.n, -1), [np.empty((0, 3), int)], [np.empty((0, 3))]
        for handle in self.topology.point_handles:
            rider[handle.beads] = sum(map(len, corners)) + np.arange(len(handle))
            corners.append(handle.membrane.beads[handle.membrane.mesh.faces[handle.triangles]])
            weights.append(handle.barycentric)
        return rider, np.concatenate(corners), np.concatenate(weights)

    def coordinates(self, beads: "Beads", sizes: Any = 1.0) -> Coordinates:
        """Return coordinates (T,) that each of the beads (T, c) or (T,) moves by sizes of the same shape."""
        beads = np.asarray(beads)
        beads = beads[:, None] if beads.ndim == 1 else beads
        term = np.repeat(np.arange(len(beads)), beads.shape[1])
        size = np.broadcast_to(np.abs(sizes), beads.shape).ravel()
        return self._passed_on(len(beads), term, beads.ravel(), size)

    def _passed_on(self, n: int, term: np.ndarray, bead: np.ndarray, size: np.ndarray) -> Coordinates:
        rider, corners, weights = self._riders
        out, rides = Coordinates(n, term, bead, size), rider[bead] >= 0
        if not rides.any():
            return out
        which = rider[bead[rides]]
        on_corners = (size[rides][:, None] * weights[which]).ravel()
        return out + Coordinates(n, np.repeat(term[rides], 3), corners[which].ravel(), on_corners)

    def sites(self, sites: "Sites") -> Coordinates:
        """Return the places of sites as coordinates, (n,)."""
        site = np.repeat(np.arange(len(sites)), np.diff(sites.start))
        out = self._passed_on(len(sites), site, sites.bead_numbers, np.abs(sites.weights))
        if sites.arms is None:
            return out
        bearing = np.flatnonzero(sites.arms.any(axis=1))
        body = sites.bead_numbers[sites.start[:-1][bearing]]
        levers = np.linalg.norm(sites.arms[bearing], axis=1)
        return out + Coordinates(len(sites), bearing, self._turning[body], levers)

    def site_positions(self, sites: "Sites") -> np.ndarray:
        """Return the places where sites start, (n, 3) nm."""
        return sites.places(self, self._turning - self.n)

    def springs(self, coordinates: Coordinates, stiffness: "Numbers") -> np.ndarray:
        """Return squared frequencies (rows,) of springs, pN/nm, one for all coordinates or one for each."""
        c = coordinates
        with np.errstate(over="ignore", invalid="ignore"):
            weight = (np.broadcast_to(np.asarray(stiffness), (c.n,)) * c.sums(self.lightness))[c.term]
            return np.bincount(c.row, weight * c.size * self.lightness[c.row], self.n_rows)

    def bonds(self, pairs: np.ndarray, stiffness: "Numbers") -> np.ndarray:
        """Return squared frequencies (rows,) of springs between pairs (T, 2) of beads, for any directions."""
        return self.springs(self.coordinates(pairs), stiffness)

    def one_mode(self, beads: np.ndarray, sizes: np.ndarray, stiffness: float) -> np.ndarray:
        """Return squared frequencies (rows,) of one spring on many beads: k c c^T <= diag(k |c|²) where c is not 0."""
        c = np.zeros(self.n_rows)
        c[beads] = sizes * self.lightness[beads]
        return np.where(c > 0.0, stiffness * (c @ c), 0.0)

    def contacts(
        self, members: Coordinates, groups: np.ndarray, pairs: np.ndarray, stiffness: "Numbers", least: float
    ) -> np.ndarray:
        """Return squared frequencies (rows,) of members that touch: pairs (P, 2) now, and others later.

        So each has at least the frequency of a contact of stiffness `least` with the lightest member it can meet.
        Members of the groups 1 and 2 meet, those of 3 meet all.
        """
        touching = self.springs(members[pairs[:, 0]] + members[pairs[:, 1]], stiffness)
        size = members.sums(self.lightness)
        partner, meets = np.zeros(members.n), np.zeros(members.n, bool)
        for own, other in ((1, 2), (2, 1)):
            mine, theirs = groups & own > 0, np.flatnonzero(groups & other > 0)
            best = theirs[np.argpartition(size[theirs], -2)[-2:]] if len(theirs) > 2 else theirs
            best = best[np.argsort(size[best])[::-1]]
            for k in best[::-1]:
                met = mine & (np.arange(members.n) != k)
                partner[met] = np.maximum(partner[met], size[k])
                meets |= met
        alone = np.where(meets, (size + partner) * least, 0.0)
        out = np.zeros(self.n_rows)
        np.maximum.at(out, members.row, alone[members.term] * members.size * self.lightness[members.row])
        found: np.ndarray = np.maximum(touching, out)
        return found


def longest_timestep(squared_frequencies: np.ndarray | None, overdamped: bool = False) -> float | None:
    """Return 2 over the highest frequency, or rate without velocities, s; inf where nothing is stiff, None where
    unknown."""
    if squared_frequencies is None:
        return None
    highest = float(squared_frequencies.max(initial=0.0))
    if highest <= 0.0:
        return np.inf
    return 2.0 / highest if overdamped else 2.0 / float(np.sqrt(highest))


def triangle_geometry(mesh: "TriangleMesh") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return areas (F,), lengths of the sides opposite to corners (F, 3), and cotangents of the angles (F, 3)."""
    corner = corners_of(mesh.vertices, mesh.faces, mesh._lengths)
    ways = np.roll(corner, -1, axis=1) - np.roll(corner, 1, axis=1)
    length = np.linalg.norm(ways, axis=2)
    area = 0.5 * np.linalg.norm(np.cross(ways[:, 0], ways[:, 1]), axis=1)
    at = [-np.einsum("fi,fi->f", ways[:, (i + 1) % 3], ways[:, (i + 2) % 3]) for i in range(3)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return area, length, np.column_stack(at) / (2.0 * area[:, None])


def cotangent_weights(faces: np.ndarray, cotangents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of vertices (3F, 2) and half the cotangents (3F,) of the angles opposite to them.

    Added up over the triangles of each edge these are the weights of the Laplacian of a triangulated surface.
    """
    pairs = np.stack([np.roll(faces, -1, axis=1), np.roll(faces, 1, axis=1)], axis=-1).reshape(-1, 2)
    return pairs, 0.5 * cotangents.ravel()


def added_up(n: int, term: np.ndarray, row: np.ndarray, size: np.ndarray) -> Coordinates:
    """Add sizes with signs, of which a row may have several in one coordinate, to n coordinates."""
    width = int(row.max(initial=0)) + 1
    # Numbers of faces have 32 bits, too few for their products where vertices are more than 46 340.
    key, place = np.unique(term.astype(np.int64) * width + row, return_inverse=True)
    return Coordinates(n, key // width, key % width, np.abs(np.bincount(place, size, len(key))))


def heights_over_rings(membrane: "Membrane") -> tuple[Coordinates, np.ndarray]:
    """Return Lz of each vertex (V,) and its area A, by rows of beads: H = Lz/2A where it is nearly flat with heights
    z."""
    mesh, n = membrane.mesh, len(membrane)
    area = np.zeros(n)
    np.add.at(area, mesh.faces, mesh.face_areas[:, None] / 3.0)
    *_, cotangents = triangle_geometry(mesh)
    pairs, weight = cotangent_weights(mesh.faces, cotangents)
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    weight = np.tile(weight, 2)
    heights = added_up(n, np.r_[i, i], np.r_[i, j], np.r_[weight, -weight])
    heights.row = membrane.beads[heights.row]
    return heights, area
