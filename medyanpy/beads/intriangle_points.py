"""Points bound to the triangles of a membrane."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array, whole_number
from medyanpy._tools.validation import seed as check_seed
from medyanpy.beads.adding import inertia_given, inertia_of_more, species_given
from medyanpy.beads.membranes import Membrane
from medyanpy.core.columns import BARYCENTRIC, SPECIES, TRIANGLES, Column
from medyanpy.core.handles import HandleOfSpecies
from medyanpy.core.kinds import MAX_BEADS, Block, Kind
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.mesh import TriangleMesh

if TYPE_CHECKING:
    from medyanpy.topology import Topology


# The largest deviation of given barycentric coordinates from "inside, sum 1" without an error (they are corrected): a
# few roundings of a coordinate of order 1.
_BARYCENTRIC_TOLERANCE = 1e-9


class PointsKind(Kind):
    """In-triangle points."""

    handle: "InTrianglePoints"
    name = "points"
    block = Block.POINTS
    degrees_of_freedom_per_bead = 2
    per_bead: tuple[str, ...] = ("mass", "friction", "triangles", "_weights")
    comes_and_goes = True
    columns: tuple[Column, ...] = (*Kind.columns, TRIANGLES, BARYCENTRIC)

    takes_constraints = True

    # Memory counts the faces of all membranes together, and holds the weights of the second and third corner.

    def start_of(self, column: Column) -> np.ndarray:
        points = self.handle
        if column is SPECIES:
            return super().start_of(column)
        start: np.ndarray = {
            TRIANGLES: points.triangles + points.membrane.first_face, BARYCENTRIC: points._weights,
        }[column]  # fmt: skip
        return start

    def created(self, columns: dict[Column, np.ndarray]) -> "InTrianglePoints":
        points, membrane = self.handle, self.handle.membrane
        faces = columns[TRIANGLES] - np.int32(membrane.first_face)
        inertia = self.inertia_of_created(columns, len(faces))
        made = InTrianglePoints(points.topology, points.name, 0, membrane, faces, columns[BARYCENTRIC], *inertia)
        made._take_species(points.species, columns.get(SPECIES, points._of_species))
        return made

    def inactive(self, column: Column) -> Any:
        return self.handle.membrane.first_face if column is TRIANGLES else 0

    def shown(self, column: Column, rows: np.ndarray) -> np.ndarray:
        return rows - self.handle.membrane.first_face if column is TRIANGLES else _all_three(rows)

    def taken(self, what: str, given: dict[Column, np.ndarray]) -> dict[Column, np.ndarray]:
        faces, weights = check_places(what, self.handle.membrane.mesh, given[TRIANGLES], given[BARYCENTRIC])
        return {TRIANGLES: faces + self.handle.membrane.first_face, BARYCENTRIC: weights[:, 1:]}

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "membrane": self.handle.membrane.name}


class InTrianglePoints(HandleOfSpecies, kind=PointsKind):
    """Points that live in the triangles of a membrane.

    Attributes
    ----------
    membrane : Membrane
    triangles : (n,) int32 array
        The face of `membrane.mesh` in which each point starts.
    barycentric : (n, 3) float array
        Weights of that face's corners.
    points : slice or (n,) int
        Rows among all in-triangle points of the topology: ``state.intriangle.triangles[handle.points]``.
    """

    _added_by = "add_intriangle_points"

    def __init__(
        self, topology: "Topology", name: str, first: int, membrane: Membrane, triangles: np.ndarray,
        weights: np.ndarray, mass: np.ndarray, friction: np.ndarray,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, mass, friction)
        self.membrane = membrane
        self.triangles = triangles
        self._weights = weights

    @property
    def normals(self) -> np.ndarray:
        """Unit normals (n, 3) of the membrane where points start.

        The mean of those of the triangles round each corner, by areas, and then of corners, by weights, so that it is
        the same on both sides of an edge. NaN where normals cancel.
        """
        normal = np.einsum("ij,ijk->ik", self.barycentric, self.area_vectors())
        length = np.linalg.norm(normal, axis=1)[:, None]
        unit: np.ndarray = np.divide(normal, length, out=np.full_like(normal, np.nan), where=length > 0.0)
        return unit

    def area_vectors(self) -> np.ndarray:
        """Return sums (n, 3, 3), nm², of the area vectors of the triangles round each corner.

        Corners are those of the triangles where points start.
        """
        mesh = self.membrane.mesh
        sums = np.zeros_like(mesh.vertices)
        np.add.at(sums, mesh.faces, (mesh.face_areas[:, None] * mesh.face_normals)[:, None])
        areas: np.ndarray = sums[mesh.faces[self.triangles]]
        return areas

    @property
    def barycentric(self) -> np.ndarray:
        return _all_three(self._weights)

    @property
    def points(self) -> slice | np.ndarray:
        return self.rows

    def add(
        self, n: int | None = None, *, triangles: Numbers | None = None, barycentric: Numbers | None = None,
        mass: Numbers | None = None, friction: Numbers | None = None, seed: int | None = None,
        species: str | Sequence[str] | np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Add points to these: to a running simulation inside ``with topology.edit():``.

        Parameters
        ----------
        n, triangles, barycentric, seed
            As of `Topology.add_intriangle_points`. Uniform per area means: on the mesh that the membrane started with.
        mass, friction : float or (k,) float, pN s²/nm, > 0, and pN s/nm, >= 0, optional
            By default that of the present points, which must then have the same.
        species : str, or (k,) str or int
            Where these have species: of the new points. Mass and friction are those of the species.

        Returns
        -------
        (k,) int array
            Their rows: inactive rows first.

        Raises
        ------
        TopologyError, ParameterError
            As `Topology.add_intriangle_points`; a topology in use outside of an edit.
        """
        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        faces, weights = _places(what, self.membrane, n, triangles, barycentric, seed)
        inertia, numbers = inertia_of_more(what, self, species, len(faces), mass, friction)
        more = InTrianglePoints(self.topology, self.name, 0, self.membrane, faces, weights, *inertia)
        more._take_species(self.species, numbers)
        return self.topology._grow(self, more)

    @property
    def positions(self) -> np.ndarray:
        return self.membrane.mesh.positions(self.triangles, self.barycentric)

    def _arguments_now(self) -> dict[str, Any]:
        places = {"membrane": self.membrane, "triangles": self.triangles, "barycentric": self.barycentric}
        return {**places, **super()._arguments_now()}


def add_intriangle_points(
    topology: "Topology", membrane: Membrane, n: int | None = None, *, triangles: Numbers | None = None,
    barycentric: Numbers | None = None, mass: Numbers | None = None, friction: Numbers | None = None,
    seed: int | None = None, name: str | None = None, capacity: int | None = None,
    species: Mapping[str, Mapping[str, float]] | None = None, counts: Mapping[str, int] | None = None,
    of_species: Sequence[str] | Numbers | None = None,
) -> InTrianglePoints:  # fmt: skip
    """Add points that live in the triangles of a membrane.

    Either `n` of them, uniform per area, or each in a given place.

    Parameters
    ----------
    membrane : Membrane
        Of this topology.
    n : int, >= 1
        Number of points to place at random.
    triangles : (n,) int
        The face of `membrane.mesh` that each point lies in.
    barycentric : (n, 3) float, >= 0, sum 1
        Weights of that face's three corners.
    mass : float or (n,) float, pN s²/nm, > 0
        Of each; not with `species`.
    friction : float or (n,) float, pN s/nm, >= 0
        kT divided by the diffusion constant wanted; 0 where none is given. Not with `species`.
    seed : int, optional
        Of the random places; 0 where none is given.
    name : str, optional
    capacity : int, >= n, optional
        Rows for so many points in all. Rows without a point are inactive: not part of the system, in no triangle (-1).
    species : dict of str to dict, optional
        Species that points may be of, with ``"mass"`` and ``"friction"`` of each: ``{"A": {"mass": 1e-12}}``. What a
        point is belongs to the state, ``state.column("species")``; jumps may change it.
    counts : dict of str to int
        With `species`, in place of n: how many points of each start in random places.
    of_species : (n,) str or int
        With `species` and triangles: which each point is of.

    Raises
    ------
    TopologyError
        A foreign handle, wrong shapes, a triangle that does not exist, a point outside its triangle.
    ParameterError
        A number outside its domain, or neither or both ways of placing.
    """
    what = "add_intriangle_points"
    if not isinstance(membrane, Membrane):
        raise TopologyError(f"{what}: membrane must be the handle of a membrane, not {membrane!r}")
    if membrane.topology is not topology:
        raise TopologyError(f"{what}: {membrane!r} belongs to another topology")
    kinds, of_species = species_given(what, species, counts, of_species)
    if counts is not None:
        if n is not None or triangles is not None:
            raise ParameterError(f"{what}: counts= is in place of n= and triangles=")
        n = len(cast(Any, of_species))
    if n == 0 and capacity is not None and counts is not None:
        faces, weights = np.empty(0, np.int32), np.empty((0, 2))
    else:
        faces, weights = _places(what, membrane, n, triangles, barycentric, seed)
    inertia, numbers = inertia_given(what, kinds, of_species, len(faces), mass, friction)
    room = topology._capacity(what, len(faces), capacity)
    first, name = topology._room(what, room, name, "points")
    made = InTrianglePoints(topology, name, first, membrane, faces, weights, *inertia)
    made._take_species(kinds, numbers)
    return topology._keep(made, room, mass=mass, friction=0.0 if friction is None else friction)


def _places(
    what: str, membrane: Membrane, n: Any, triangles: Any, barycentric: Any, seed: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangles (k,) int32 of points, and the weights (k, 2) of their second and third corners.

    Places are given in either of the two ways.
    """
    if (n is None) == (triangles is None) or (triangles is None) != (barycentric is None):
        raise ParameterError(f"{what}: give either n, or both triangles and barycentric")
    if n is not None:
        n = whole_number(f"{what}: n", n, at_least=1, at_most=MAX_BEADS)
        rng = np.random.Generator(np.random.Philox(0 if seed is None else check_seed(f"{what}: seed", seed)))
        # Checked too, because (1 - second) - third may round to below zero at an edge.
        faces, weights = check_places(what, membrane.mesh, *membrane.mesh.sample(n, rng))
    else:
        faces, weights = check_places(what, membrane.mesh, triangles, barycentric)
    # The mesh's own arrays are not kept: a triangle and two weights are all that defines a point.
    faces = np.ascontiguousarray(faces, dtype=np.int32)
    weights = np.ascontiguousarray(weights[:, 1:])
    for a in (faces, weights):
        a.flags.writeable = False
    return faces, weights


def _all_three(weights: np.ndarray) -> np.ndarray:
    """Return weights (n, 3) from those (n, 2) of the second and third corner."""
    second, third = weights.T
    return np.column_stack([(1.0 - second) - third, second, third])


def check_places(what: str, mesh: TriangleMesh, triangles: Any, barycentric: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return faces (n,) and weights (n, 3) of points in a mesh, or raise TopologyError naming the first bad one."""
    faces = array(f"{what}: triangles", triangles, (None,), dtype=np.int64, error=TopologyError)
    weights = array(f"{what}: barycentric", barycentric, (len(faces), 3), error=TopologyError)
    bad = (faces < 0) | (faces >= len(mesh.faces))
    if bad.any():
        i = int(np.argmax(bad))
        raise TopologyError(
            f"{what}: triangles[{i}] = {faces[i]} does not exist: the mesh has faces 0 to {len(mesh.faces) - 1}"
        )
    off = np.abs(weights.sum(axis=1) - 1.0)
    bad = (weights < -_BARYCENTRIC_TOLERANCE).any(axis=1) | (off > _BARYCENTRIC_TOLERANCE)
    if bad.any():
        i = int(np.argmax(bad))
        raise TopologyError(
            f"{what}: point {i} lies outside its triangle {faces[i]}: barycentric = {weights[i].tolist()}, "
            "but the weights must be >= 0 with sum 1"
        )
    # Values that are right already, such as the weights of a State, keep their bits.
    wrong = (weights < 0.0).any(axis=1) | (weights[:, 0] != (1.0 - weights[:, 1]) - weights[:, 2])
    weights = weights.copy()
    weights[wrong] = np.clip(weights[wrong], 0.0, None)
    weights[wrong] /= weights[wrong].sum(axis=1, keepdims=True)
    # All three are >= 0 when the first is read as (1 - second) - third, which is how it is stored.
    over = (1.0 - weights[:, 1]) - weights[:, 2] < 0.0
    weights[over, 2] = 1.0 - weights[over, 1]
    weights[:, 0] = (1.0 - weights[:, 1]) - weights[:, 2]
    return faces, weights
