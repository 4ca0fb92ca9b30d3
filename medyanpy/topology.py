"""What is there: beads of every kind, and the membranes that carry points."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from medyanpy.chains import Chains
from medyanpy.described import kept, scalar_if_one
from medyanpy.errors import ParameterError, SimulationError, TopologyError, UnknownNameError
from medyanpy.filaments import FilamentFlow, parallel_directors
from medyanpy.handles import Handle, bead_numbers, handles_in
from medyanpy.mesh import TriangleMesh
from medyanpy.names import Guarded, look_up
from medyanpy.oriented import OrientedFlow, friction_tensors, rod_friction, unit_quaternions
from medyanpy.rods import check_frames, strains
from medyanpy.sites import Sites
from medyanpy.surfaces.flow import REACH, SurfaceFlow
from medyanpy.surfaces.surface import Surface
from medyanpy.validation import array, dimensions, number, one_or_many, per_item, several, vectors, whole_number
from medyanpy.validation import seed as check_seed

__all__ = [
    "Balls", "Beads", "Directors", "Filaments", "Handle", "InTrianglePoints", "Membrane", "OrientedBeads",
    "RigidBodies", "Rods", "SurfacePoints", "Topology",
]  # fmt: skip

# Beads are numbered by 32-bit integers, in arrays and in the counter of the random numbers.
_MAX_BEADS = 2**31 - 1
# How far nodes given by a user may miss the lengths of their links, relative, before that is an error (they are
# put right when a Context is made).
_LENGTH_TOLERANCE = 1e-3
# A principal moment below this, relative to the largest, is that of a line.
_LINE_TOLERANCE = 1e-12
# How far a principal moment may exceed the sum of the others, relative: rounding of flat bodies.
_FLAT_TOLERANCE = 1e-6
# How far from perpendicular to its link a director given by a user may be (the cosine of the angle), before that is an
# error (it is put right).
_PERPENDICULAR_TOLERANCE = 1e-3
# How far barycentric coordinates given by a user may miss "inside, sum 1" before they are an error (then they
# are put right): a few roundings of a coordinate of order 1.
_BARYCENTRIC_TOLERANCE = 1e-9


class Beads(Handle):
    """Free beads. `positions` (n, 3), nm, are where they start."""

    added_by = "add_beads"

    def __init__(self, topology, name, first, positions, mass, friction) -> None:
        super().__init__(topology, name, first, mass, friction)
        self.positions = positions

    def _arguments_now(self) -> dict[str, Any]:
        return {"positions": self.positions, **super()._arguments_now()}


class Balls(Beads):
    """Free beads with a radius (n,), nm, which pair forces may use."""

    kind = "balls"
    added_by = "add_balls"

    def __init__(self, topology, name, first, positions, radius, mass, friction) -> None:
        super().__init__(topology, name, first, positions, mass, friction)
        self.radius = radius

    def _arguments_now(self) -> dict[str, Any]:
        return {**super()._arguments_now(), "radius": scalar_if_one(self.radius)}


class Filaments(Chains, Beads):
    """The nodes of filaments: chains or rings of beads, one filament after another.

    Attributes
    ----------
    starts : (f + 1,) int array
        Where the nodes of each filament start, among the handle's nodes.
    closed : bool
        Whether the filaments are rings: then a link joins the last node to the first.
    constrained : bool
        Whether links keep their lengths.
    link_lengths : (l,) float array, nm
        Of all links, filament after filament; the last of a ring leads back to its first node.
    fixed_nodes : (k,) int array
        Nodes that do not move, among the handle's nodes.
    tolerance : float
        How exactly links keep their lengths, relative.
    friction_along : (n,) float array or None, pN s/nm
        Along the filament, where it differs from `friction` across it.
    directors : Directors or None
        The material directions of the links, where the filaments are twistable.
    """

    kind = "filament nodes"
    chain = "filament"
    added_by = "add_filaments"
    directors: "Directors | None" = None

    def __init__(
        self, topology, name, first, positions, mass, friction, starts, closed, constrained, link_lengths, fixed_nodes,
        tolerance,
    ) -> None:  # fmt: skip
        super().__init__(topology, name, first, positions, mass, friction)
        self.starts = starts
        self.closed = closed
        self.constrained = constrained
        self.link_lengths = link_lengths
        self.fixed_nodes = fixed_nodes
        self.tolerance = tolerance
        self.friction_along: np.ndarray | None = None

    @property
    def n_filaments(self) -> int:
        return self.n_chains

    @property
    def joints(self) -> np.ndarray:
        """(J,) nodes between two links: of rings all, else all but the ends."""
        nodes = np.arange(len(self))
        return nodes if self.closed else np.delete(nodes, np.r_[self.starts[:-1], self.starts[1:] - 1])

    @property
    def links_at_joints(self) -> tuple[np.ndarray, np.ndarray]:
        """(J,), (J,) the links before and after each joint."""
        joints = self.joints
        which = self.node_chains[joints]
        if not self.closed:
            # Each filament before has one link less than nodes.
            return joints - which - 1, joints - which
        first = joints == self.starts[which]
        return np.where(first, self.starts[which + 1], joints) - 1, joints

    @property
    def fixed_beads(self) -> np.ndarray:
        out = np.zeros(len(self), bool)
        out[self.fixed_nodes] = True
        return out

    def multipliers(self, positions, velocities, forces):
        # With directors constraints of links are not alone.
        if not self.constrained or self.directors is not None:
            return None
        from scipy import sparse
        from scipy.sparse import linalg

        first, second = self.links.T
        d = positions[second] - positions[first]
        links = np.repeat(np.arange(len(d)), 3)
        place = [(3 * node[:, None] + np.arange(3)).ravel() for node in (first, second)]
        n = positions.size
        # g = |d|^2 - L^2 of every link; d^2g/dt^2 = 0.
        gradient = sum(
            sparse.coo_array((sign * 2.0 * d.ravel(), (links, where)), shape=(len(d), n))
            for sign, where in zip((-1.0, 1.0), place, strict=True)
        )
        weight = np.repeat(np.where(self.fixed_beads, 0.0, 1.0 / self.mass), 3)
        bends = 2.0 * np.sum((velocities[second] - velocities[first]) ** 2, axis=1)
        right = gradient @ (weight * forces.ravel()) + bends
        try:
            factors = linalg.splu((gradient @ sparse.diags_array(weight) @ gradient.T).tocsc())
            pivots = np.abs(factors.U.diagonal())
            if pivots.min() > 1e-13 * pivots.max():
                return factors.solve(right)
        except RuntimeError:
            # Exactly singular.
            pass
        raise SimulationError(
            f"{self!r}: the multipliers of its links are not determined: a filament is taut between fixed nodes",
            object=self.name,
        )

    @property
    def degrees_of_freedom(self) -> int:
        """Those of its directors included: constraints join the two."""
        free = 3 * (len(self) - len(self.fixed_nodes))
        if self.directors is not None:
            # Three each, less unit length and right angle.
            free += len(self.directors)
        return free - len(self.link_lengths) if self.constrained else free

    def sites(self, filament: Any, link: Any, fraction: Any = 0.5) -> Sites:
        """Places on links, as links and other forces between sites take them.

        Parameters
        ----------
        filament : int or (n,) int
            Counted from 0 within the handle.
        link : int or (n,) int
            Counted from 0 within the filament; the last of a ring leads back to its first node.
        fraction : float or (n,) float, 0 to 1
            0 is the node at which the link starts, 1 the one at which it ends.

        Returns
        -------
        Sites
            n weighted means of two nodes; 1 where all three are scalars.

        Raises
        ------
        TopologyError
            No such filament or link, or arrays of different length.
        ParameterError
            A fraction outside [0, 1].

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> actin = topology.add_filament([[0.0, 0, 0], [27.0, 0, 0], [54.0, 0, 0]], node_mass=4e-12)
        >>> actin.sites(0, [0, 1], [0.5, 1.0])
        Sites(2: 2 weighted)
        >>> actin.sites_along(0, 40.5).weights.tolist()
        [0.5, 0.5]
        """
        what = f"sites of {self.name!r}"
        filament, link, fraction = self._together(what, filament=filament, link=link, fraction=fraction)
        counts = np.diff(self.link_starts)
        bad = (link < 0) | (link >= counts[filament])
        if bad.any():
            i = int(np.argmax(bad))
            raise TopologyError(
                f"{what}: link[{i}] = {link[i]}, but filament {filament[i]} has links 0 to {counts[filament[i]] - 1}"
            )
        bad = ~((fraction >= 0.0) & (fraction <= 1.0))
        if bad.any():
            i = int(np.argmax(bad))
            raise ParameterError(
                f"{what}: fraction[{i}] = {fraction[i]} on link {link[i]} of filament {filament[i]}, "
                "but must be from 0 to 1"
            )
        return self._on_links(self.link_starts[filament] + link, fraction)

    def sites_along(self, filament: Any, distance: Any) -> Sites:
        """Places at distances along filaments from their first nodes, by the lengths of links at rest.

        Parameters
        ----------
        filament : int or (n,) int
            Counted from 0 within the handle.
        distance : float or (n,) float, nm, 0 to the length of the filament

        Returns
        -------
        Sites
            As of `sites`.

        Raises
        ------
        TopologyError
            No such filament, or arrays of different length.
        ParameterError
            A distance outside the filament.
        """
        what = f"sites of {self.name!r}"
        filament, distance = self._together(what, filament=filament, distance=distance)
        end = np.concatenate([[0.0], np.cumsum(self.link_lengths)])
        first, last = self.link_starts[filament], self.link_starts[filament + 1]
        length = end[last] - end[first]
        bad = ~((distance >= 0.0) & (distance <= length * (1.0 + 1e-12)))
        if bad.any():
            i = int(np.argmax(bad))
            raise ParameterError(
                f"{what}: distance[{i}] = {distance[i]} nm, but must be from 0 to the length of filament "
                f"{filament[i]}, {length[i]:g} nm"
            )
        along = end[first] + distance
        link = np.clip(np.searchsorted(end, along, side="right") - 1, first, last - 1)
        return self._on_links(link, np.clip((along - end[link]) / self.link_lengths[link], 0.0, 1.0))

    def _together(self, what: str, **given: Any) -> list[np.ndarray]:
        """One-dimensional arrays of equal length, the first of which numbers filaments that exist."""
        arrays = []
        for key, value in given.items():
            dtype, error = (np.int64, TopologyError) if key in ("filament", "link") else (np.float64, ParameterError)
            arrays.append(one_or_many(f"{what}: {key}", value, dtype=dtype, error=error))
        lengths = {len(a) for a, v in zip(arrays, given.values(), strict=True) if np.ndim(v)}
        n = min(lengths, default=1)
        if len(lengths) > 1:
            sizes = ", ".join(f"{key}: {len(a)}" for key, a in zip(given, arrays, strict=True))
            raise TopologyError(f"{what}: give numbers, or arrays of equal length, not {sizes}")
        arrays = [np.broadcast_to(a, (n,)) for a in arrays]
        bad = (arrays[0] < 0) | (arrays[0] >= self.n_filaments)
        if bad.any():
            i = int(np.argmax(bad))
            raise TopologyError(
                f"{what}: filament[{i}] = {arrays[0][i]}, but there are filaments 0 to {self.n_filaments - 1}"
            )
        return arrays

    def _on_links(self, link: np.ndarray, fraction: np.ndarray) -> Sites:
        """At fractions of links that are numbered through all filaments."""
        nodes = self.first_bead + self.links[link]
        weights = np.column_stack([1.0 - fraction, fraction])
        start = 2 * np.arange(len(link) + 1)
        return Sites.from_arrays(start, nodes.ravel(), weights.ravel(), np.empty((0, 3)), handles=(self,))

    def filament_of(self, bead: int) -> int:
        """The filament of the handle that a bead of the topology belongs to."""
        return self.chain_of(bead)

    def bind(self, layout):
        return FilamentFlow(self, layout) if self.constrained or self.friction_along is not None else None

    @property
    def has_friction(self) -> bool:
        return super().has_friction or (self.friction_along is not None and bool(self.friction_along.any()))

    @property
    def scalar_friction(self) -> np.ndarray:
        return self.friction if self.friction_along is None else np.broadcast_to(0.0, (len(self),))

    def _arguments_now(self) -> dict[str, Any]:
        d = self.directors
        twistable = {} if d is None else {
            "directors": d.positions, "director_mass": scalar_if_one(d.mass),
            "director_friction": scalar_if_one(d.friction),
        }  # fmt: skip
        return {
            "nodes": self.positions,
            "starts": self.starts,
            "node_mass": scalar_if_one(self.mass),
            "node_friction": scalar_if_one(self.friction),
            "node_friction_along": None if self.friction_along is None else scalar_if_one(self.friction_along),
            "constrained": self.constrained,
            "closed": self.closed,
            "link_lengths": self.link_lengths,
            "fixed_nodes": self.fixed_nodes,
            "tolerance": self.tolerance,
            "name": self.name,
            **twistable,
        }


class Directors(Beads):
    """The material directions of twistable filaments: one bead for each link, in the order of ``filaments.links``.

    The position of a director is a unit vector perpendicular to its link, without a place in space: it has no part in
    collisions, pair forces or sums of momentum. Its mass is a moment of inertia, pN s² nm, its friction is in pN nm s,
    and a force on it in pN nm.
    """

    kind = "directors"
    in_space = False

    def __init__(self, filaments, name, first, positions, mass, friction) -> None:
        super().__init__(filaments.topology, name, first, positions, mass, friction)
        self.filaments = filaments

    @property
    def moves_with(self) -> Filaments:
        return self.filaments

    @property
    def step_lengths(self) -> np.ndarray:
        return self.filaments.link_lengths

    @property
    def degrees_of_freedom(self) -> int:
        """None apart from those of its filaments."""
        return 0

    def describe(self, bead: int) -> str:
        return self.filaments.describe_link(bead - self.first_bead)


class Membrane(Handle):
    """The vertices of a triangle mesh. `mesh` holds the triangles and where the vertices start.

    `first_face` is the number of its first triangle among those of all membranes of the topology.
    """

    kind = "vertices"
    added_by = "add_membrane"

    def __init__(self, topology, name, first, mesh, mass, friction, fixed, first_face) -> None:
        super().__init__(topology, name, first, mass, friction)
        self.mesh = mesh
        self.fixed = fixed
        self.first_face = first_face

    @property
    def positions(self) -> np.ndarray:
        return self.mesh.vertices

    @property
    def joined(self) -> np.ndarray:
        return self.mesh.edges

    def _arguments_now(self) -> dict[str, Any]:
        return {
            "mesh": self.mesh,
            "vertex_mass": scalar_if_one(self.mass),
            "vertex_friction": scalar_if_one(self.friction),
            "fixed": self.fixed,
            "name": self.name,
        }


class InTrianglePoints(Handle):
    """Points that live in the triangles of a membrane.

    Attributes
    ----------
    membrane : Membrane
    triangles : (n,) int32 array
        The face of `membrane.mesh` in which each point starts.
    barycentric : (n, 3) float array
        Weights of that face's corners.
    points : slice
        Its rows among all in-triangle points of the topology: ``state.intriangle.triangles[handle.points]``.
    """

    kind = "points"
    degrees_of_freedom_per_bead = 2
    added_by = "add_intriangle_points"

    def __init__(self, topology, name, first, membrane, first_point, triangles, weights, mass, friction) -> None:
        super().__init__(topology, name, first, mass, friction)
        self.membrane = membrane
        self._first_point = first_point
        self.triangles = triangles
        self._weights = weights

    @property
    def barycentric(self) -> np.ndarray:
        second, third = self._weights.T
        return np.column_stack([(1.0 - second) - third, second, third])

    @property
    def points(self) -> slice:
        return slice(self._first_point, self._first_point + len(self))

    @property
    def positions(self) -> np.ndarray:
        return self.membrane.mesh.positions(self.triangles, self.barycentric)

    def _arguments_now(self) -> dict[str, Any]:
        places = {"membrane": self.membrane, "triangles": self.triangles, "barycentric": self.barycentric}
        return {**places, **super()._arguments_now()}


class SurfacePoints(Beads):
    """Beads that stay on an implicit surface.

    Attributes
    ----------
    surface : Surface
    tolerance : float
        How near to the surface beads are kept, relative to its size.
    """

    kind = "surface points"
    degrees_of_freedom_per_bead = 2
    added_by = "add_surface_points"

    def __init__(self, topology, name, first, positions, mass, friction, surface, tolerance) -> None:
        super().__init__(topology, name, first, positions, mass, friction)
        self.surface = surface
        self.tolerance = tolerance

    def bind(self, layout):
        return SurfaceFlow(self, layout)

    def multipliers(self, positions, velocities, forces):
        # d²g/dt² = 0: the acceleration along the gradient makes up for what the velocity gains on a curved surface.
        gradient, hessian = self.surface.gradient(positions), self.surface.hessian(positions)
        bends = np.einsum("i,ij,ijk,ik->i", self.mass, velocities, hessian, velocities)
        return (bends + np.einsum("ij,ij->i", gradient, forces)) / np.einsum("ij,ij->i", gradient, gradient)

    def _arguments_now(self) -> dict[str, Any]:
        return {"surface": self.surface, **super()._arguments_now(), "tolerance": self.tolerance}


class OrientedBeads(Beads):
    """Beads that also turn: each carries a frame of its own, the body frame, along its principal axes of inertia.

    Attributes
    ----------
    orientations : (n, 4) float array, dimensionless
        Unit quaternions, scalar first, that turn vectors of the body frame into space.
    inertia : (n, 3) float array, pN s² nm
        Principal moments of inertia.
    friction_tensors : (1 or n, 6, 6) float array
        Friction about the centre of mass in the body frame, translation first: pN s/nm, pN s and pN s nm in its blocks.
    rotation_parts : int
        Parts into which the rotation of each A is cut.
    held : (n, 2) bool array
        Of which beads the position, and the orientation, does not change.
    rows : slice
        Its rows among all oriented beads of the topology: ``state.orientations[handle.rows]``.
    """

    kind = "oriented beads"

    def __init__(
        self, topology, name, first, positions, mass, orientations, inertia, friction, first_row, parts, held
    ) -> None:
        # Of translation and rotation it is in the tensors.
        super().__init__(topology, name, first, positions, mass, np.broadcast_to(0.0, (len(mass),)))
        self.orientations = orientations
        self.inertia = inertia
        self.friction_tensors = friction
        self.rotation_parts = parts
        self._first_row = first_row
        self.held = held

    @property
    def fixed_beads(self) -> np.ndarray:
        return self.held[:, 0]

    @property
    def degrees_of_freedom(self) -> int:
        return 3 * int(np.count_nonzero(~self.held))

    @property
    def rows(self) -> slice:
        return slice(self._first_row, self._first_row + len(self))

    @property
    def has_friction(self) -> bool:
        return bool(self.friction_tensors.any())

    def bind(self, layout):
        return OrientedFlow(self, layout)

    def sites(self, arms: Any) -> Sites:
        """Points fixed to the bodies: what acts on them also turns the bodies.

        Parameters
        ----------
        arms : (k, 3) or (n, k, 3) float, nm
            From the centre of mass to k points, in the body frame: the same for all bodies, or for each.

        Returns
        -------
        Sites
            n k of them, body by body.

        Raises
        ------
        ParameterError
            A wrong shape, or a number that is not finite.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> rods = topology.add_rigid_bodies([[0, 0, 0]], [[1, 0, 0, 0]], mass=1.0, inertia=[2.0, 2.0, 1.0])
        >>> ends = rods.sites([[0, 0, -5.0], [0, 0, 5.0]])
        >>> len(ends)
        2
        """
        n, what = len(self), f"{self.name}.sites: arms"
        each = dimensions(what, arms, f"(k, 3) or ({n}, k, 3)") > 2
        arms = array(what, arms, (n, None, 3) if each else (None, 3))
        arms = np.broadcast_to(arms, (n, *arms.shape[-2:])).reshape(-1, 3)
        k = len(arms) // n
        return Sites.from_arrays(
            np.arange(n * k + 1), np.repeat(self.beads, k), np.ones(n * k), np.empty((0, 3)), arms, [self]
        )



class RigidBodies(OrientedBeads):
    """Rigid molecules: oriented beads at their centres of mass."""

    kind = "rigid bodies"
    added_by = "add_rigid_bodies"

    def _arguments_now(self) -> dict[str, Any]:
        tensors = self.friction_tensors
        t, r = tensors[0, [0, 3], [0, 3]]
        plain = len(tensors) == 1 and (tensors[0] == np.diag([t, t, t, r, r, r])).all()
        fixed = self.held[:, 0]
        return {
            "positions": self.positions,
            "orientations": self.orientations,
            "mass": scalar_if_one(self.mass),
            "inertia": _row_if_one(self.inertia),
            # Numbers may be zero, tensors must be positive definite.
            "friction": tensors[0, [0, 3], [0, 3]] if plain else tensors[0] if len(tensors) == 1 else tensors,
            "fixed": bool(fixed[0]) if fixed.all() or not fixed.any() else fixed,
            "rotation_parts": self.rotation_parts,
            "name": self.name,
        }


class Rods(Chains, OrientedBeads):
    """The nodes of elastic rods: chains or rings of oriented beads, one rod after another.

    Attributes
    ----------
    starts : (r + 1,) int array
        Where the nodes of each rod start, among the handle's nodes.
    closed : bool
        Whether the rods are rings: then a segment joins the last node to the first.
    segment_length : (r,) float array, nm
        Of the segments of each rod, at rest.
    linear_density : (n,) float array, pN s²/nm²
    inertia_density : (n, 3) float array, pN s²
        Moments of inertia per length, about the axes of each node.
    ends : (str, str)
        How the first and the last node of all rods are held: ``"free"``, ``"pinned"`` or ``"clamped"``.
    """

    kind = "rod nodes"
    chain = "rod"
    added_by = "add_rods"

    def __init__(
        self, topology, name, first, positions, orientations, linear_density, inertia_density, friction, row, parts,
        starts, closed, segment_length, ends, given,
    ) -> None:  # fmt: skip
        self.starts = starts
        self.closed = closed
        self.segment_length = segment_length
        self.linear_density = linear_density
        self.inertia_density = inertia_density
        self.ends = ends
        # Of friction, what it was made of.
        self._given = given
        n = len(positions)
        held = np.zeros((n, 2), bool)
        for node, end in zip((starts[:-1], starts[1:] - 1), ends, strict=True):
            held[node] = [end != "free", end == "clamped"]
        # A node stands for a segment around it, or, where it is held, for the half of one that begins or ends there.
        length = np.where(held[:, 0], 0.5, 1.0) * np.repeat(segment_length, np.diff(starts))
        mass, inertia = linear_density * length, inertia_density * length[:, None]
        super().__init__(
            topology, name, first, positions, mass, orientations, inertia, friction, row, parts, held
        )

    @property
    def n_rods(self) -> int:
        return self.n_chains

    @property
    def joint_lengths(self) -> np.ndarray:
        """(J,) nm; the rest length of every segment between two nodes, in the order of `links`."""
        return self.segment_length[self.link_chains]

    def tips(self, end: str) -> tuple[np.ndarray, np.ndarray]:
        """Where rods end.

        Parameters
        ----------
        end : str
            ``"start"`` or ``"end"``.

        Returns
        -------
        (r,) int, and (r, 3) float, nm
            The node of each rod that is next to it, among the handle's nodes, and the way from there in its frame:
            half a segment at free ends, which lie beyond their nodes; none at others.

        Raises
        ------
        ParameterError
            Another word.
        TopologyError
            Rings have no ends.
        """
        if end not in ("start", "end"):
            raise ParameterError(f'{self.name}: end must be "start" or "end", not {end!r}')
        if self.closed:
            raise TopologyError(f"{self.name}: rings have no {end}")
        last = end == "end"
        arm = np.zeros((self.n_rods, 3))
        if self.ends[last] == "free":
            arm[:, 2] = (0.5 if last else -0.5) * self.segment_length
        return (self.starts[1:] - 1 if last else self.starts[:-1]), arm

    def strains(self, positions: Any = None, orientations: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Shear and stretch Γ, bending and twist Ω of every segment.

        Parameters
        ----------
        positions : (n, 3) float, nm, optional
            Of the handle's nodes: ``state.positions[rods.beads]``. As they were added where none are given.
        orientations : (n, 4) float, optional
            Unit quaternions: ``state.orientations[rods.rows]``.

        Returns
        -------
        (J, 3) float, dimensionless, and (J, 3) float, 1/nm
            In the order of `links`, in the mean frame of the two nodes.

        Raises
        ------
        ParameterError
            Arrays of another shape.

        Examples
        --------
        >>> import medyanpy as mp
        >>> nodes, orientations = mp.rods.uniform(10, 5.0, curvature=[0.0, 0.02, 0.01])
        >>> rod = mp.Topology().add_rod(nodes, orientations, 5.0, linear_density=1.0, inertia_density=[1.0, 1.0, 2.0])
        >>> strain, curvature = rod.strains()
        >>> curvature[3].round(4).tolist()
        [0.0, 0.02, 0.01]
        """
        x = self.positions if positions is None else array("strains: positions", positions, (len(self), 3))
        q = self.orientations if orientations is None else array("strains: orientations", orientations, (len(self), 4))
        return strains(self.links, self.joint_lengths, x, q)

    def _arguments_now(self) -> dict[str, Any]:
        return {
            "nodes": self.positions,
            "orientations": self.orientations,
            "segment_length": self.segment_length if len(self.segment_length) > 1 else float(self.segment_length[0]),
            "linear_density": scalar_if_one(self.linear_density),
            "inertia_density": _row_if_one(self.inertia_density),
            **self._given,
            "starts": self.starts,
            "ends": list(self.ends),
            "closed": self.closed,
            "rotation_parts": self.rotation_parts,
            "name": self.name,
        }


class Topology(Guarded):
    """Everything that is simulated, before any force acts on it.

    Each ``add_*`` method returns a handle; ``handle.beads`` are the numbers of its beads in every array that
    has a row per bead. Masses are in pN·s²/nm, frictions in pN·s/nm, lengths in nm.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> mesh = mp.TriangleMesh.icosphere(radius=500.0, subdivisions=2)
    >>> vesicle = topology.add_membrane(mesh, vertex_mass=4e-12, vertex_friction=4e-6)
    >>> proteins = topology.add_intriangle_points(vesicle, 100, mass=4e-12, friction=4e-6, seed=1)
    >>> topology
    Topology(262 beads: 162 vertices of 'membrane', 100 points of 'points')
    """

    _remedy = "beads are added with its add_ methods"

    def __init__(self) -> None:
        self._handles: list[Handle] = []
        self._n_beads = 0
        self._n_faces = 0
        self._n_points = 0
        self._contexts: weakref.WeakSet = weakref.WeakSet()

    # What is there ------------------------------------------------------------------------------------------

    @property
    def n_beads(self) -> int:
        return self._n_beads

    @property
    def _n_oriented(self) -> int:
        return sum(map(len, self.oriented_handles))

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Every handle, in the order added: their beads follow each other in this order."""
        return tuple(self._handles)

    @property
    def membranes(self) -> tuple[Membrane, ...]:
        return tuple(h for h in self._handles if isinstance(h, Membrane))

    @property
    def point_handles(self) -> tuple[InTrianglePoints, ...]:
        return tuple(h for h in self._handles if isinstance(h, InTrianglePoints))

    @property
    def oriented_handles(self) -> "tuple[OrientedBeads, ...]":
        return tuple(h for h in self._handles if isinstance(h, OrientedBeads))

    def __getitem__(self, name: str) -> Handle:
        """The handle of a name: ``topology["proteins"]``.

        Raises
        ------
        UnknownNameError
            A `TopologyError` and a `KeyError`: no handle has this name; the message lists those there are.
        """
        return look_up({handle.name: handle for handle in self._handles}, name, "handle", UnknownNameError)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self.handles)

    def __contains__(self, what: Any) -> bool:
        """Whether a handle, or one of this name, is part of it."""
        return any(what is handle or what == handle.name for handle in self._handles)

    def handle_of(self, bead: int) -> Handle:
        """The handle that a bead belongs to; TopologyError where there is no such bead."""
        bead = whole_number("handle_of: bead", bead, error=TopologyError)
        for handle in self._handles:
            if handle.first_bead <= bead < handle.first_bead + len(handle):
                return handle
        raise TopologyError(f"bead {bead} does not exist: the topology has {self._n_beads} beads")

    def __reduce__(self):
        """A pickle or copy is in use by no Context. Handles among arguments go by their numbers: while the
        topology is being made anew there are none yet to point to."""
        number = {handle: i for i, handle in enumerate(self._handles)}
        objects = []
        for handle in self._handles:
            if handle.moves_with is not handle:
                # Made together with the other one.
                continue
            arguments = handle._arguments_now()
            others = {key: number[value] for key, value in arguments.items() if isinstance(value, Handle)}
            objects.append((type(handle), {k: v for k, v in arguments.items() if k not in others}, others))
        return _made_anew, (type(self), tuple(objects))

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(h)} {h.kind} of {h.name!r}" for h in self._handles)
        return f"Topology({self._n_beads} beads{': ' if parts else ''}{parts})"

    # Adding -------------------------------------------------------------------------------------------------

    def add_beads(
        self, positions: Any, mass: Any, friction: Any = 0.0, *, name: str | None = None
    ) -> Beads:
        """Add free beads.

        Parameters
        ----------
        positions : (n, 3) float, nm
        mass : float or (n,) float, pN s²/nm, > 0
        friction : float or (n,) float, pN s/nm, >= 0
            Used by the letter O; a bead without friction is not thermostatted.
        name : str, optional

        Raises
        ------
        TopologyError
            Wrong shapes, coordinates that are not finite, a name in use, or a topology already in use.
        ParameterError
            A mass or friction outside its domain.
        """
        x = self._positions("add_beads", positions)
        first, name = self._room("add_beads", len(x), name, "beads")
        return self._keep(Beads(self, name, first, x, *_inertia("add_beads", "", len(x), mass, friction)))

    def add(
        self, kind: type[Beads], positions: Any, mass: Any, friction: Any = 0.0, *, name: str | None = None, **own: Any
    ) -> Beads:
        """Add beads of a kind that is defined elsewhere; see "How to give letters a meaning for a new kind of bead".

        Parameters
        ----------
        kind : subclass of `Beads`
            Called as ``kind(topology, name, first_bead, positions, mass, friction, **own)``.
        positions : (n, 3) float, nm
        mass : float or (n,) float, pN s²/nm, > 0
        friction : float or (n,) float, pN s/nm, >= 0
        name : str, optional
            ``kind.kind`` where none is given.
        own
            What the kind needs besides; it checks that itself.

        Raises
        ------
        TopologyError, ParameterError
            As `add_beads`.
        """
        if not (isinstance(kind, type) and issubclass(kind, Beads)):
            raise TopologyError(f"add: kind must be a class of beads, not {kind!r}")
        x = self._positions("add", positions)
        inertia = _inertia("add", "", len(x), mass, friction)
        first, name = self._room("add", len(x), name, kind.kind)
        own = {key: kept(value) for key, value in own.items()}
        handle = kind(self, name, first, x, *inertia, **own)
        handle._own = own
        return self._keep(handle)

    def add_balls(
        self, positions: Any, radius: Any, mass: Any, friction: Any = 0.0, *, name: str | None = None
    ) -> Balls:
        """Add free beads that have a radius.

        Parameters
        ----------
        positions : (n, 3) float, nm
        radius : float or (n,) float, nm, > 0
            Pair forces without a diameter of their own let balls touch at the sum of their radii. In a fluid of
            viscosity η the friction of a ball is 6πηr (Stokes).
        mass : float or (n,) float, pN s²/nm, > 0
        friction : float or (n,) float, pN s/nm, >= 0
        name : str, optional

        Raises
        ------
        TopologyError, ParameterError
            As `add_beads`.
        """
        x = self._positions("add_balls", positions)
        r = per_item("add_balls: radius", radius, len(x), above=0.0)
        inertia = _inertia("add_balls", "", len(x), mass, friction)
        first, name = self._room("add_balls", len(x), name, "balls")
        return self._keep(Balls(self, name, first, x, r, *inertia))

    def add_filament(
        self,
        nodes: Any,
        node_mass: Any,
        node_friction: Any = 0.0,
        constrained: bool = True,
        closed: bool = False,
        directors: Any = None,
        *,
        director_mass: Any = None,
        director_friction: Any = None,
        node_friction_along: Any = None,
        link_lengths: Any = None,
        fixed_nodes: Any = (),
        tolerance: float = 1e-10,
        name: str | None = None,
    ) -> Filaments:
        """Add one filament: a chain or ring of beads whose links keep their lengths.

        Parameters
        ----------
        nodes : (n, 3) float, nm
            n >= 2; for a ring n >= 3.
        node_mass : float or (n,) float, pN s²/nm, > 0
        node_friction : float or (n,) float, pN s/nm, >= 0; or a tuple (along, across) of two such
            Against motion along the tangent and across it: of a slender rod about 1 to 2.
        constrained : bool
            Whether links keep their lengths. Else the filament is a row of beads that a force must hold together.
        closed : bool
            Join the last node to the first.
        directors : (l, 3) float, not zero, or "parallel", optional
            Makes the filament twistable: a material direction for each of its l links, perpendicular to it. They are
            made unit vectors, and may be off the right angle by 1e-3. ``"parallel"``: without twist, from any start;
            of a ring, with what is needed to close it spread evenly.
        director_mass : float or (l,) float, pN s² nm, > 0
            The moment of inertia of each link about its axis; needed with `directors`.
        director_friction : float or (l,) float, pN nm s, >= 0, optional
            Against rotation of each link about its axis, 0 where none is given; of a rod of radius a in a fluid of
            viscosity η, 4πηa² a length.
        node_friction_along : float or (n,) float, pN s/nm, >= 0, optional
            Another way to say it: `node_friction` is then that across.
        link_lengths : float or (l,) float, nm, > 0, optional
            l = n - 1 links, n of a ring. As the nodes are where none are given; nodes may miss given ones by 1e-3.
        fixed_nodes : (k,) int
            Nodes that do not move; -1 is the last.
        tolerance : float, > 0
            Of lengths, relative.
        name : str, optional

        Raises
        ------
        TopologyError
            Wrong shapes, too few nodes, nodes in one place, link lengths that the nodes do not have, both ends of a
            link fixed, fixed nodes that hold links straight between them, a director of no length or not perpendicular
            to its link, directors of filaments that are not constrained, a name in use, or a topology in use.
        ParameterError
            A number outside its domain.
        """
        x = self._positions("add_filament: nodes", nodes)
        fixed = _fixed_nodes("add_filament", fixed_nodes, len(x), -len(x))
        return self._add_filaments(
            "add_filament", x, np.array([0, len(x)]), node_mass, node_friction, node_friction_along, constrained,
            closed, link_lengths, np.where(fixed < 0, fixed + len(x), fixed), tolerance, name, directors, director_mass,
            director_friction,
        )  # fmt: skip

    def add_filaments(
        self,
        nodes: Any,
        node_mass: Any,
        node_friction: Any = 0.0,
        constrained: bool = True,
        closed: bool = False,
        directors: Any = None,
        *,
        starts: Any = None,
        director_mass: Any = None,
        director_friction: Any = None,
        node_friction_along: Any = None,
        link_lengths: Any = None,
        fixed_nodes: Any = (),
        tolerance: float = 1e-10,
        name: str | None = None,
    ) -> Filaments:
        """Add many filaments at once, with one handle; see `add_filament`.

        Parameters
        ----------
        nodes : list of (n_i, 3) float, or (n, 3) float, nm
            Of each filament; or of all together, with `starts`.
        node_mass : float or (n,) float, pN s²/nm, > 0
            Of all nodes, filament after filament.
        node_friction, node_friction_along : float or (n,) float, pN s/nm, >= 0
            As `add_filament`, of all nodes.
        constrained, closed : bool
            Of all.
        directors : list of (l_i, 3) float, or (l, 3) float, not zero, or "parallel", optional
            Of the links of each filament, or of all together.
        director_mass, director_friction : float or (l,) float, pN s² nm, > 0, and pN nm s, >= 0, optional
            Of all links, filament after filament.
        starts : (f + 1,) int, optional
            Where the nodes of each filament start, and the number of all nodes.
        link_lengths : float or (l,) float, nm, > 0, optional
            Of all links, filament after filament.
        fixed_nodes : (k,) int
            Numbered through all nodes.
        tolerance, name
            As `add_filament`.

        Raises
        ------
        TopologyError, ParameterError
            As `add_filament`; the message names the filament.
        """
        what = "add_filaments"
        x, starts = self._chains_of(what, nodes, starts)
        fixed = _fixed_nodes(what, fixed_nodes, len(x), 0)
        if isinstance(directors, list) and directors and np.ndim(directors[0]) == 2:
            directors = np.concatenate(
                [array(f"{what}: directors[{i}]", p, (None, 3), error=TopologyError) for i, p in enumerate(directors)]
            )
        return self._add_filaments(
            what, x, starts, node_mass, node_friction, node_friction_along, constrained, closed, link_lengths, fixed,
            tolerance, name, directors, director_mass, director_friction,
        )  # fmt: skip

    def _add_filaments(
        self, what, x, starts, mass, friction, along, constrained, closed, link_lengths, fixed, tolerance, name,
        directors, director_mass, director_friction,
    ) -> Filaments:  # fmt: skip
        closed, constrained = bool(closed), bool(constrained)
        if isinstance(friction, tuple) and len(friction) == 2:
            if along is not None:
                raise ParameterError(f"{what}: give node_friction=(along, across) or node_friction_along=, not both")
            along, friction = friction
        if along is not None:
            along = per_item(f"{what}: node_friction along the filament", along, len(x), at_least=0.0)
        inertia = _inertia(what, "node_", len(x), mass, friction)
        fixed = np.unique(fixed)
        handle = Filaments(
            self, "", 0, x, *inertia, starts.copy(), closed, constrained, np.empty(0), fixed,
            number(f"{what}: tolerance", tolerance, above=0.0),
        )  # fmt: skip

        def of(link: int) -> str:
            return f"{what}: {handle.describe_link(link)}"

        _enough_nodes(what, "filament", starts, closed)
        links = handle.links
        actual = np.linalg.norm(x[links[:, 1]] - x[links[:, 0]], axis=1)
        if not actual.all():
            raise TopologyError(f"{of(int(np.argmin(actual)))} has both nodes in one place")
        if link_lengths is None:
            lengths = actual
        else:
            lengths = np.array(per_item(f"{what}: link_lengths", link_lengths, len(links), above=0.0))
            off = np.abs(actual / lengths - 1.0)
            if constrained and (off > _LENGTH_TOLERANCE).any():
                worst = int(np.argmax(off))
                raise TopologyError(
                    f"{of(worst)} is {actual[worst]:g} nm long in the nodes given, but its length shall be "
                    f"{lengths[worst]:g} nm: nodes may miss it by {_LENGTH_TOLERANCE:g} of it"
                )
        if constrained and len(fixed):
            both = np.isin(links, fixed).all(axis=1)
            if both.any():
                raise TopologyError(f"{of(int(np.argmax(both)))} has both nodes fixed: nothing can move its length")
            _refuse_taut(what, handle, lengths)
        handle._complete(link_lengths=lengths, friction_along=along)
        turning = None
        if directors is not None:
            if not constrained:
                raise TopologyError(
                    f"{what}: directors stay perpendicular to links that keep their lengths: they need constrained=True"
                )
            if director_mass is None:
                raise ParameterError(f"{what}: directors need director_mass=, the moment of inertia of a link")
            if isinstance(directors, str):
                if directors != "parallel":
                    raise ParameterError(f'{what}: directors must be an array or "parallel", not {directors!r}')
                directors = parallel_directors(handle)
            if director_friction is None:
                director_friction = 0.0
            turning = (
                _perpendicular(f"{what}: directors", directors, x[links[:, 1]] - x[links[:, 0]], of),
                *_inertia(what, "director_", len(links), director_mass, director_friction),
            )
        elif director_mass is not None:
            raise ParameterError(f"{what}: director_mass is given, but no directors")
        n = len(x) if turning is None else len(x) + len(links)
        first, own_name = self._room(what, n, name, "filament" if len(starts) == 2 else "filaments")
        handle._complete(_first=first, name=own_name)
        self._keep(handle)
        if turning is not None:
            first, own_name = self._room(what, len(links), None, f"directors of {handle.name}")
            handle._complete(directors=self._keep(Directors(handle, own_name, first, *turning)))
        return handle

    def add_membrane(
        self,
        mesh: TriangleMesh,
        vertex_mass: Any,
        vertex_friction: Any = 0.0,
        fixed: bool = False,
        *,
        name: str | None = None,
    ) -> Membrane:
        """Add the vertices of a triangle mesh as beads.

        Parameters
        ----------
        mesh : TriangleMesh
            V vertices, nm.
        vertex_mass : float or (V,) float, pN s²/nm, > 0
        vertex_friction : float or (V,) float, pN s/nm, >= 0
        fixed : bool
            Immobile: points move on it, nothing moves it.
        name : str, optional

        Raises
        ------
        TopologyError, ParameterError
            As `add_beads`.
        """
        if not isinstance(mesh, TriangleMesh):
            raise TopologyError(f"add_membrane: mesh must be a TriangleMesh, not {type(mesh).__name__}")
        n = len(mesh.vertices)
        inertia = _inertia("add_membrane", "vertex_", n, vertex_mass, vertex_friction)
        first, name = self._room("add_membrane", n, name, "membrane")
        membrane = self._keep(Membrane(self, name, first, mesh, *inertia, bool(fixed), self._n_faces))
        self._n_faces += len(mesh.faces)
        return membrane

    def add_intriangle_points(
        self,
        membrane: Membrane,
        n: int | None = None,
        *,
        triangles: Any = None,
        barycentric: Any = None,
        mass: Any,
        friction: Any = 0.0,
        seed: int | None = None,
        name: str | None = None,
    ) -> InTrianglePoints:
        """Add points that live in the triangles of a membrane.

        Either `n` of them, uniform per area, or each in a given place.

        Parameters
        ----------
        membrane : Membrane
            Of this topology.
        n : int, >= 1
            How many to place at random.
        triangles : (n,) int
            The face of `membrane.mesh` that each point lies in.
        barycentric : (n, 3) float, >= 0, sum 1
            Weights of that face's three corners.
        mass : float or (n,) float, pN s²/nm, > 0
        friction : float or (n,) float, pN s/nm, >= 0
            kT divided by the diffusion constant wanted.
        seed : int, optional
            Of the random places; 0 where none is given.
        name : str, optional

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
        if membrane.topology is not self:
            raise TopologyError(f"{what}: {membrane!r} belongs to another topology")
        if (n is None) == (triangles is None) or (triangles is None) != (barycentric is None):
            raise ParameterError(f"{what}: give either n, or both triangles and barycentric")
        if n is not None:
            n = whole_number(f"{what}: n", n, at_least=1, at_most=_MAX_BEADS)
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
        inertia = _inertia(what, "", len(faces), mass, friction)
        first, name = self._room(what, len(faces), name, "points")
        points = self._keep(
            InTrianglePoints(self, name, first, membrane, self._n_points, faces, weights, *inertia)
        )
        self._n_points += len(faces)
        return points

    def add_surface_points(
        self,
        surface: Surface,
        positions: Any,
        mass: Any,
        friction: Any = 0.0,
        *,
        tolerance: float = 1e-12,
        name: str | None = None,
    ) -> SurfacePoints:
        """Add beads that stay on an implicit surface.

        Parameters
        ----------
        surface : Surface
            Such as ``medyanpy.surfaces.Sphere(500.0)``.
        positions : (n, 3) float, nm
            Within 1e-3 of the size of the surface (``surface.length``) from it; they are brought onto it.
            ``surface.sample(n, seed)`` gives positions spread evenly.
        mass : float or (n,) float, pN s²/nm, > 0
        friction : float or (n,) float, pN s/nm, >= 0
        tolerance : float, > 0
            How near to the surface beads are kept, relative to its size (or to their distance from the origin, where
            that is larger).
        name : str, optional

        Raises
        ------
        TopologyError
            As `add_beads`; a surface that is none; the first position that is too far from it, or from which Newton's
            method does not lead onto it.
        ParameterError
            A mass, friction or tolerance outside its domain.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> sphere = mp.surfaces.Sphere(500.0)
        >>> walkers = topology.add_surface_points(sphere, sphere.sample(100, seed=1), mass=4e-12, friction=4e-6)
        >>> walkers.degrees_of_freedom
        200
        """
        what = "add_surface_points"
        if not isinstance(surface, Surface):
            raise TopologyError(f"{what}: surface must be one of medyanpy.surfaces, not {surface!r}")
        tolerance = number(f"{what}: tolerance", tolerance, above=0.0)
        x = self._positions(what, positions)
        if len(x):
            try:
                landed = surface.project(x, tolerance)
            except ParameterError as cause:
                raise TopologyError(f"{what}: {cause}") from cause
            off = np.linalg.norm(landed - x, axis=1)
            reach = REACH * surface.length
            far = off > reach
            if far.any():
                i = int(np.argmax(far))
                raise TopologyError(
                    f"{what}: positions[{i}] = {x[i].tolist()} is {off[i]:.3g} nm off the surface, but must be within "
                    f"{reach:.3g} nm; surface.project(positions) brings it onto it"
                )
            x = landed
            x.flags.writeable = False
        first, name = self._room(what, len(x), name, "surface points")
        inertia = _inertia(what, "", len(x), mass, friction)
        return self._keep(SurfacePoints(self, name, first, x, *inertia, surface, tolerance))

    def add_rigid_bodies(
        self,
        positions: Any,
        orientations: Any,
        mass: Any,
        inertia: Any,
        friction: Any = 0.0,
        *,
        friction_point: Any = None,
        fixed: Any = False,
        rotation_parts: int = 1,
        name: str | None = None,
    ) -> RigidBodies:
        """Add rigid bodies.

        Parameters
        ----------
        positions : (n, 3) float, nm
            Of the centres of mass.
        orientations : (n, 4) float, dimensionless
            Unit quaternions, scalar first, that turn vectors of the body frame (the principal axes of inertia) into
            space. Within 1e-6 of length 1; they are scaled to it.
        mass : float or (n,) float, pN s²/nm, > 0
        inertia : (3,) or (n, 3) float, pN s² nm, > 0
            Principal moments of inertia; none may exceed the sum of the other two.
        friction : float, (float, float), or (6, 6) or (n, 6, 6) float, pN s/nm and pN s nm, >= 0
            One number is the friction of translation, pN s/nm, two are those of translation and rotation (pN s nm),
            and a tensor is in the body frame, translation first, symmetric and positive definite; see
            `medyanpy.rigid`.
        friction_point : (3,) float, nm, optional
            The reference point of the tensor, in the body frame; by default the centre of mass.
        fixed : bool or (n,) bool
            Which bodies do not move.
        rotation_parts : int, >= 1
            Parts into which the free rotation of each A is cut: the error of its energy falls as the square of it.
        name : str, optional

        Raises
        ------
        TopologyError
            As `add_beads`; orientations that are not unit quaternions.
        ParameterError
            A mass, inertia or friction outside its domain.

        Examples
        --------
        >>> import medyanpy as mp
        >>> topology = mp.Topology()
        >>> rods = topology.add_rigid_bodies(
        ...     [[0, 0, 0], [30, 0, 0]], [[1, 0, 0, 0], [0.6, 0.8, 0, 0]], mass=1e-12, inertia=[2e-11, 2e-11, 4e-12]
        ... )
        >>> rods.degrees_of_freedom
        12
        """
        what = "add_rigid_bodies"
        x = self._positions(what, positions)
        n = len(x)
        q = unit_quaternions(f"{what}: orientations", orientations, n)
        first, name = self._room(what, n, name, "rigid bodies")
        mass = per_item(f"{what}: mass", mass, n, above=0.0)
        moments = _inertia_of_bodies(f"{what}: inertia", inertia, n)
        tensors = friction_tensors(f"{what}: friction", friction, n, friction_point)
        parts = whole_number(f"{what}: rotation_parts", rotation_parts, at_least=1, at_most=1000)
        fixed = np.asarray(fixed)
        if fixed.dtype != bool or fixed.shape not in ((), (n,)):
            raise TopologyError(f"{what}: fixed must be True or False, or {n} of these, not {fixed!r}")
        held = np.repeat(np.broadcast_to(fixed, (n,))[:, None], 2, axis=1)
        held.flags.writeable = False
        return self._keep(
            RigidBodies(self, name, first, x, mass, q, moments, tensors, self._n_oriented, parts, held)
        )

    def add_rod(
        self,
        nodes: Any,
        orientations: Any,
        segment_length: float,
        linear_density: Any,
        inertia_density: Any,
        friction: Any = 0.0,
        *,
        rotational_friction: Any = 0.0,
        ends: Any = "free",
        closed: bool = False,
        rotation_parts: int = 1,
        name: str | None = None,
    ) -> Rods:
        """Add an elastic rod: a chain of nodes with a frame each, the third axis along it.

        A node is the middle of a segment of the rod, and stands for its mass; with free ends, N nodes make a rod of
        the length N ℓ. An end that is held is at its node, which stands for half a segment: with one such end the rod
        is (N - 1/2) ℓ long, with two (N - 1) ℓ. What rods resist is up to `forces.RodElasticity`.

        Parameters
        ----------
        nodes : (n, 3) float, nm
            n >= 2; of a ring n >= 3. They may be away from where the rod has no strain.
        orientations : (n, 4) float, dimensionless
            Unit quaternions, scalar first, that turn the frame of each node into space: axes 1 and 2 in the
            cross-section, along its principal axes of inertia, 3 along the rod. `rods.frames` makes them from nodes,
            `rods.uniform` both of lines, circles and helices.
        segment_length : float, nm, > 0
            ℓ, of the rod at rest.
        linear_density : float or (n,) float, pN s²/nm², > 0
            Mass per length.
        inertia_density : (3,) or (n, 3) float, pN s², > 0
            Moments of inertia per length about the three axes; none may exceed the sum of the other two.
        friction : float, (float, float), or (6, 6) or (n, 6, 6) float, pN s/nm and pN s nm, >= 0
            Of each node: of motion, or of motion (along the rod, across it), pN s/nm; or a tensor in the frame of the
            node, translation first, symmetric and positive definite.
        rotational_friction : float, or (float, float), pN nm s, >= 0
            Of rotation of each node, or about the rod and across it; part of the tensor where that is given.
        ends : str, or (str, str)
            Of both ends, or of the first and the last node: ``"free"``, ``"pinned"`` (the node keeps its position and
            may turn) or ``"clamped"`` (it keeps its orientation too).
        closed : bool
            Join the last node to the first.
        rotation_parts : int, >= 1
            As `add_rigid_bodies`.
        name : str, optional

        Raises
        ------
        TopologyError
            As `add_beads`; too few nodes, successive nodes in one place, orientations that are not unit quaternions or
            whose third axis points against the way to the next node, a ring with ends.
        ParameterError
            A number outside its domain, another word for an end.

        Examples
        --------
        >>> import medyanpy as mp
        >>> nodes, orientations = mp.rods.uniform(63, 1.0, curvature=[0.0, 0.1, 0.0])
        >>> section = mp.rods.CircularSection(radius=0.5, youngs_modulus=1.0, poisson_ratio=0.3, density=1.0)
        >>> topology = mp.Topology()
        >>> rod = topology.add_rod(nodes, orientations, 1.0, section.linear_density, section.inertia_density)
        >>> rod.degrees_of_freedom
        378
        """
        x = self._positions("add_rod: nodes", nodes)
        return self._add_rods(
            "add_rod", x, orientations, np.array([0, len(x)]), segment_length, linear_density, inertia_density,
            friction, rotational_friction, ends, closed, rotation_parts, name,
        )  # fmt: skip

    def add_rods(
        self,
        nodes: Any,
        orientations: Any,
        segment_length: Any,
        linear_density: Any,
        inertia_density: Any,
        friction: Any = 0.0,
        *,
        starts: Any = None,
        rotational_friction: Any = 0.0,
        ends: Any = "free",
        closed: bool = False,
        rotation_parts: int = 1,
        name: str | None = None,
    ) -> Rods:
        """Add many rods at once, with one handle; see `add_rod`.

        Parameters
        ----------
        nodes : list of (n_i, 3) float, or (n, 3) float, nm
            Of each rod; or of all together, with `starts`.
        orientations : list of (n_i, 4) float, or (n, 4) float, dimensionless
            Likewise.
        segment_length : float or (r,) float, nm, > 0
            Of all rods, or of each.
        linear_density : float or (n,) float, pN s²/nm², > 0
            Of all nodes, rod after rod.
        inertia_density : (3,) or (n, 3) float, pN s², > 0
            Likewise.
        starts : (r + 1,) int, optional
            Where the nodes of each rod start, and the number of all nodes.
        friction, rotational_friction, ends, closed, rotation_parts, name
            As `add_rod`.

        Raises
        ------
        TopologyError, ParameterError
            As `add_rod`; the message names the rod.
        """
        what = "add_rods"
        x, starts = self._chains_of(what, nodes, starts)
        if isinstance(orientations, list) and orientations and np.ndim(orientations[0]) == 2:
            orientations = np.concatenate([
                array(f"{what}: orientations[{i}]", p, (None, 4), error=TopologyError)
                for i, p in enumerate(orientations)
            ])  # fmt: skip
        return self._add_rods(
            what, x, orientations, starts, segment_length, linear_density, inertia_density, friction,
            rotational_friction, ends, closed, rotation_parts, name,
        )  # fmt: skip

    def _add_rods(
        self, what, x, orientations, starts, segment_length, linear_density, inertia_density, friction, rotational,
        ends, closed, parts, name,
    ) -> Rods:  # fmt: skip
        n, closed = len(x), bool(closed)
        both = (ends, ends) if isinstance(ends, str) else ends
        known = ("free", "pinned", "clamped")
        if not isinstance(both, Sequence) or len(both) != 2 or any(end not in known for end in both):
            raise ParameterError(f'{what}: ends must be "free", "pinned" or "clamped", or two of these, not {ends!r}')
        ends = tuple(both)
        if closed and ends != ("free", "free"):
            raise TopologyError(f"{what}: a ring has no ends that could be {ends[0]} or {ends[1]}")
        _enough_nodes(what, "rod", starts, closed)
        q = unit_quaternions(f"{what}: orientations", orientations, n)
        q.flags.writeable = False
        length = np.array(per_item(f"{what}: segment_length", segment_length, len(starts) - 1, above=0.0))
        length.flags.writeable = False
        density = per_item(f"{what}: linear_density", linear_density, n, above=0.0)
        inertia = _inertia_of_bodies(f"{what}: inertia_density", inertia_density, n)
        given = {"friction": kept(friction), "rotational_friction": kept(rotational)}
        tensors = rod_friction(what, friction, rotational, n)
        parts = whole_number(f"{what}: rotation_parts", parts, at_least=1, at_most=1000)
        first, name = self._room(what, n, name, "rod" if len(starts) == 2 else "rods")
        handle = Rods(
            self, name, first, x, q, density, inertia, tensors, self._n_oriented, parts, starts.copy(), closed, length,
            ends, given,
        )  # fmt: skip
        check_frames(what, x, q, handle.links, handle.describe_link)
        return self._keep(handle)

    # How adding works ---------------------------------------------------------------------------------------

    def _positions(self, what: str, positions: Any) -> np.ndarray:
        x = array(f"{what}: positions", positions, (None, 3), error=TopologyError).copy()
        x.flags.writeable = False
        return x

    def _chains_of(self, what: str, nodes: Any, starts: Any) -> tuple[np.ndarray, np.ndarray]:
        """The nodes of all chains, and where those of each start, of either way of giving them."""
        if starts is None:
            nodes = several(f"{what}: nodes", nodes, error=TopologyError)
            parts = [array(f"{what}: nodes[{i}]", p, (None, 3), error=TopologyError) for i, p in enumerate(nodes)]
            starts = np.cumsum([0, *map(len, parts)])
            nodes = np.concatenate([np.empty((0, 3)), *parts])
        x = self._positions(f"{what}: nodes", nodes)
        starts = array(f"{what}: starts", starts, (None,), dtype=np.int64, error=TopologyError)
        if len(starts) == 0 or starts[0] != 0 or starts[-1] != len(x) or (np.diff(starts) < 0).any():
            raise TopologyError(f"{what}: starts must ascend from 0 to the number of nodes, {len(x)}")
        return x, starts

    def _room(self, what: str, n: int, name: str | None, default: str) -> tuple[int, str]:
        if len(self._contexts):
            raise TopologyError(
                f"{what}: this topology is in use by a Context; add everything first, "
                "or build a new Topology, System and Context"
            )
        if n == 0:
            raise TopologyError(f"{what}: there is nothing to add (0 beads)")
        if self._n_beads + n > _MAX_BEADS:
            raise TopologyError(f"{what}: {self._n_beads + n} beads are more than {_MAX_BEADS}")
        taken = {h.name for h in self._handles}
        if name is None:
            name, k = default, 1
            while name in taken:
                k += 1
                name = f"{default} {k}"
        elif name in taken:
            raise TopologyError(f"{what}: the name {name!r} is in use")
        return self._n_beads, str(name)

    def _keep(self, handle):
        for name, value in vars(handle).items():
            if isinstance(value, np.ndarray) and not name.startswith("_"):
                # Nothing would follow if somebody wrote into it.
                value.flags.writeable = False
        self._handles.append(handle)
        self._n_beads += len(handle)
        return handle

    def expect_places(self, what: str, beads: np.ndarray) -> None:
        """Refuse directors among beads, by number: what acts between places does not act on directions.

        Raises
        ------
        TopologyError
        """
        for handle in self._handles:
            if not handle.in_space:
                among = (beads >= handle.first_bead) & (beads < handle.first_bead + len(handle))
                if among.any():
                    raise TopologyError(
                        f"{what}: bead {beads[np.argmax(among)]} belongs to {handle!r}, which are directions without a "
                        "place in space"
                    )

    def bead_indices(self, what: str, beads: Any) -> np.ndarray:
        """Bead numbers of a handle, of several handles, or given as they are; sorted, each once.

        Raises
        ------
        TopologyError
            A foreign handle, or a bead that does not exist or is named twice.
        """
        if isinstance(beads, Iterable) and not isinstance(beads, np.ndarray):
            beads = list(beads)
        for handle in handles_in(beads):
            if handle.topology is not self:
                raise TopologyError(f"{what}: {handle!r} belongs to another topology")
        index = np.sort(array(what, bead_numbers(beads), (None,), dtype=np.int64, error=TopologyError))
        if len(index) and (index[0] < 0 or index[-1] >= self._n_beads):
            bad = index[0] if index[0] < 0 else index[-1]
            raise TopologyError(f"{what}: bead {bad} does not exist: beads are 0 to {self._n_beads - 1}")
        twice = np.flatnonzero(index[1:] == index[:-1])
        if len(twice):
            raise TopologyError(f"{what}: bead {index[twice[0]]} is named twice")
        return index


def _inertia(what: str, prefix: str, n: int, mass: Any, friction: Any) -> tuple[np.ndarray, np.ndarray]:
    return (
        per_item(f"{what}: {prefix}mass", mass, n, above=0.0),
        per_item(f"{what}: {prefix}friction", friction, n, at_least=0.0),
    )


def _made_anew(
    cls: type[Topology], objects: tuple[tuple[type[Handle], dict[str, Any], dict[str, int]], ...]
) -> Topology:
    topology = cls()
    for kind, arguments, others in objects:
        kind.adder(topology)(**arguments, **{key: topology.handles[i] for key, i in others.items()})
    return topology


def _enough_nodes(what: str, chain: str, starts: np.ndarray, closed: bool) -> None:
    fewest = 3 if closed else 2
    short = np.diff(starts) < fewest
    if short.any():
        i = int(np.argmax(short))
        kind = "ring" if closed else chain
        raise TopologyError(f"{what}: {chain} {i} has {np.diff(starts)[i]} nodes, but a {kind} needs {fewest}")


def _row_if_one(rows: np.ndarray) -> np.ndarray:
    """The row of an array that repeats one, or the array."""
    return rows[0] if (rows == rows[0]).all() else rows


def _fixed_nodes(what: str, nodes: Any, n: int, lowest: int) -> np.ndarray:
    """Numbers of nodes from `lowest` to n - 1."""
    fixed = array(f"{what}: fixed_nodes", nodes, (None,), dtype=np.int64, error=TopologyError)
    bad = (fixed < lowest) | (fixed >= n)
    if bad.any():
        raise TopologyError(f"{what}: node {fixed[bad][0]} is fixed, but nodes are 0 to {n - 1}")
    return fixed


def _perpendicular(what: str, directors: Any, links: np.ndarray, of: Callable[[int], str]) -> np.ndarray:
    """(l, 3) unit vectors perpendicular to links, or TopologyError for directors that are too far from that."""
    given = array(what, directors, (len(links), 3), error=TopologyError)
    size = np.linalg.norm(given, axis=1)
    if not size.all():
        raise TopologyError(f"{of(int(np.argmin(size)))} has a director of length 0")
    along = links / np.linalg.norm(links, axis=1)[:, None]
    p = given / size[:, None]
    cosine = np.einsum("ij,ij->i", p, along)
    if (np.abs(cosine) > _PERPENDICULAR_TOLERANCE).any():
        worst = int(np.argmax(np.abs(cosine)))
        raise TopologyError(
            f"{of(worst)} has a director that is not perpendicular to it: the cosine of the angle between them is "
            f"{cosine[worst]:g}, but must be within {_PERPENDICULAR_TOLERANCE:g} of 0"
        )
    # What is right already keeps its bits.
    off = np.maximum(np.abs(cosine), np.abs(size - 1.0)) > 1e-14
    projected = p - cosine[:, None] * along
    out = np.where(off[:, None], projected / np.linalg.norm(projected, axis=1)[:, None], given)
    out.flags.writeable = False
    return out


def _refuse_taut(what: str, filaments: Filaments, lengths: np.ndarray) -> None:
    """Fixed nodes that hold the links between them straight: no impulse along the links could keep their lengths."""
    x, fixed = filaments.positions, filaments.fixed_nodes
    owner = np.searchsorted(filaments.starts, fixed, side="right") - 1
    for i in np.unique(owner).tolist():
        start, stop = filaments.starts[i : i + 2]
        n = stop - start
        nodes = (fixed[owner == i] - start).tolist()
        pairs = list(pairwise(nodes))
        if filaments.closed and len(nodes) > 1:
            pairs.append((nodes[-1], nodes[0] + n))
        along = np.tile(lengths[filaments.link_starts[i] : filaments.link_starts[i + 1]], 2)
        for a, b in pairs:
            if np.linalg.norm(x[start + b % n] - x[start + a]) > (1.0 - 1e-9) * along[a:b].sum():
                raise TopologyError(
                    f"{what}: filament {i} is held straight at its full length between its fixed nodes {a} and "
                    f"{b % n}: its links cannot keep their lengths if anything pushes a node between them. Give it "
                    "some slack, or fix one node only"
                )


def check_places(what: str, mesh: TriangleMesh, triangles: Any, barycentric: Any) -> tuple[np.ndarray, np.ndarray]:
    """Faces (n,) and weights (n, 3) of points in a mesh, or TopologyError naming the first bad one."""
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
    # What is right already, such as the weights of a State, keeps its bits.
    wrong = (weights < 0.0).any(axis=1) | (weights[:, 0] != (1.0 - weights[:, 1]) - weights[:, 2])
    weights = weights.copy()
    weights[wrong] = np.clip(weights[wrong], 0.0, None)
    weights[wrong] /= weights[wrong].sum(axis=1, keepdims=True)
    # All three are >= 0 when the first is read as (1 - second) - third, which is how it is stored.
    over = (1.0 - weights[:, 1]) - weights[:, 2] < 0.0
    weights[over, 2] = 1.0 - weights[over, 1]
    weights[:, 0] = (1.0 - weights[:, 1]) - weights[:, 2]
    return faces, weights


def _inertia_of_bodies(what: str, inertia: Any, n: int) -> np.ndarray:
    """(n, 3) principal moments of inertia, checked."""
    given = vectors(what, inertia, n)
    moments = np.broadcast_to(given, (n, 3)).copy()
    for wrong, bound in [
        # Rounding leaves something of the zero of a line.
        (moments <= _LINE_TOLERANCE * np.maximum(moments.max(axis=1), 0.0)[:, None], "> 0 (a body on a line has none)"),
        (moments > (1.0 + _FLAT_TOLERANCE) * (moments.sum(axis=1)[:, None] - moments), "at most the sum of the others"),
    ]:
        if wrong.any():
            i, k = (int(a) for a in np.argwhere(wrong)[0])
            where = f"[{k}]" if given.ndim == 1 else f"[{i}, {k}]"
            raise ParameterError(f"{what}{where} = {moments[i, k]:g} but must be {bound}: {moments[i].tolist()}")
    moments.flags.writeable = False
    return moments
