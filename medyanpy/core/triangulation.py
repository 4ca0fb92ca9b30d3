"""Triangles of the membranes of one Context: which vertices are neighbours, while edges are flipped."""

from collections.abc import Mapping

import numpy as np

from medyanpy._kernels.core.changes import Proposal
from medyanpy._kernels.core.program import Program
from medyanpy._kernels.core.triangles import Triangles
from medyanpy.beads import Membrane
from medyanpy.errors import MeshError, TopologyError
from medyanpy.mesh import TriangleMesh
from medyanpy.mesh.checks import check_joined_alike
from medyanpy.mesh.connectivity import Connectivity

__all__ = ["Triangulation"]

#: Results of a `Proposal`, in the user's words.
_REASONS = {
    1: "{0} and {1} have no edge in common",
    2: "the edge of {0} and {1} is on a border, with one triangle",
    3: "the other corners of its two triangles, {2} and {3}, have an edge already",
}


_NO_BEADS, _NOWHERE = np.empty(0, np.int32), np.empty((0, 3))


class Triangulation:
    """Faces of all membranes together, numbered as by `Membrane.first_face`, and what follows from them.

    Attributes
    ----------
    faces, opposite : (F, 3) int32 arrays
        Corners by place, and the corner across the edge opposite each, -1 at a border.
    triangles : Triangles
        The same with the corners of each vertex, for kernels.
    may_change : bool
        Whether faces are, or may come to be, others than those of the meshes: then they are part of the state.
    """

    def __init__(self, first_places: Mapping[Membrane, int]) -> None:
        self._first_places = dict(first_places)
        self.may_change: bool = False
        #: Connectivities of membranes whose faces are not those of their meshes, once asked for, with the count of
        #: flips then.
        self._now: dict[Membrane, tuple[int, Connectivity]] = {}
        self._changed: set[Membrane] = set()
        self.faces: np.ndarray = self.at_first()
        self.opposite: np.ndarray = np.empty_like(self.faces)
        self._touched = np.zeros(len(self.faces), bool)
        self.triangles: Triangles = Triangles(self.faces, self.opposite, *self._joined())

    @staticmethod
    def rows_of(membrane: Membrane) -> slice:
        """Return the rows of a membrane among all faces."""
        return slice(membrane.first_face, membrane.first_face + len(membrane.mesh.faces))

    def _joined(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of each vertex, of all membranes; opposite corners are set."""
        starts, corners = [np.zeros(1, np.int32)], [np.zeros(0, np.int32)]
        for membrane in self._first_places:
            own, first = self.connectivity(membrane), np.int32(3 * membrane.first_face)
            across = own.opposite_corners
            self.opposite[self.rows_of(membrane)] = np.where(across < 0, across, across + first)
            offsets, of_vertices = own.vertex_faces
            starts.append(offsets[1:] + first)
            corners.append(of_vertices + first)
        return np.concatenate(starts), np.concatenate(corners)

    def connectivity(self, membrane: Membrane) -> TriangleMesh | Connectivity:
        """Return faces, edges and neighbours of a membrane, by the numbers of its own vertices."""
        if membrane not in self._changed:
            mesh: TriangleMesh = membrane.mesh
            return mesh
        flips, known = self._now.get(membrane, (-1, None))
        if known is None or flips != self.triangles.flips:
            # Jumps flip edges without a word.
            faces = self.faces[self.rows_of(membrane)] - np.int32(self._first_places[membrane])
            faces.flags.writeable = False
            known = Connectivity(faces, len(membrane))
            self._now[membrane] = self.triangles.flips, known
        return known

    # Changing -----------------------------------------------------------------------------------------------

    def proposal(
        self, what: str, membrane: Membrane, edges: np.ndarray, program: Program, in_faces: np.ndarray,
        beads: np.ndarray = _NO_BEADS, x: np.ndarray = _NOWHERE,
    ) -> Proposal:  # fmt: skip
        """Return the flips of some edges of a membrane, (k, 2) vertices, one after the other, with the points of the
        program, which are in faces (p,); and a few beads, by place, to be at x (n, 3). Nothing changes before it is
        swapped, and `changed` is called where edges are flipped.

        Raises
        ------
        TopologyError
            An edge that does not exist, or that cannot be flipped.
        """
        first = self._first_places[membrane]
        # The first flip that changes a face finds it at one of these vertices.
        vertices = np.append(np.unique(edges) + first, beads[beads < self.triangles.n_vertices])
        faces = [corner // 3 for vertex in vertices for corner in self.triangles.ring(vertex)]
        self._touched[faces] = True
        points = np.flatnonzero(self._touched[in_faces]).astype(np.int32)
        self._touched[faces] = False
        try:
            return Proposal(program, self.triangles, (edges + first).astype(np.int32), points, beads, x)
        except ValueError as refused:
            number, found, *corners = refused.args
            reason = _REASONS[found].format(*(corner - first for corner in corners))
            given = edges[number].tolist()
            raise TopologyError(f"{what}: edges[{number}] = {given} cannot be flipped: {reason}") from None

    def changed(self, membrane: Membrane) -> None:
        """Mark that edges of it have been flipped, or may be from now on."""
        self.may_change = True
        self._changed.add(membrane)
        self._now.pop(membrane, None)

    def check(self, what: str, faces: np.ndarray) -> None:
        """Refuse faces by place, (F, 3), that cannot have come from those of the meshes by flipping; TopologyError."""
        for membrane, first in self._first_places.items():
            own = faces[self.rows_of(membrane)].astype(np.int64) - first
            try:
                check_joined_alike(own, membrane.mesh.vertices, Connectivity(membrane.mesh.faces, len(membrane)))
            except MeshError as cause:
                raise TopologyError(f"{what}: the triangles of {membrane.name!r} are none: {cause}") from None

    def at_first(self) -> np.ndarray:
        """Return the faces (F, 3) of the meshes, by place."""
        parts = [m.mesh.faces + np.int32(first) for m, first in self._first_places.items()]
        return np.concatenate([np.empty((0, 3), np.int32), *parts])

    def take(self, faces: np.ndarray) -> list[Membrane]:
        """Let triangles join these vertices, by place, from now on. Returns the membranes whose triangles are
        others."""
        rows = {membrane: self.rows_of(membrane) for membrane in self._first_places}
        changed = [membrane for membrane, own in rows.items() if (self.faces[own] != faces[own]).any()]
        self.faces[...] = faces
        for membrane in changed:
            self.changed(membrane)
        if changed:
            self.triangles.take_rings(*self._joined())
        return changed
