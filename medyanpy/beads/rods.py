"""Elastic rods: chains and rings of oriented beads."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from medyanpy._tools.described import kept
from medyanpy._tools.images import Box, checked_box, displacement
from medyanpy._tools.quaternions import matrices, product, turned
from medyanpy._tools.types import Number, Numbers
from medyanpy._tools.validation import array, per_item, whole_number
from medyanpy.beads.adding import chains_of, enough_nodes, joined, moments_of, positions_of, row_if_one
from medyanpy.beads.chains import Chains, ChainsKind
from medyanpy.beads.oriented import OrientedBeads, OrientedKind, rod_friction, unit_quaternions
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout
    from medyanpy.topology import Topology

#: Supports of the ends of a rod.
End: TypeAlias = Literal["free", "pinned", "clamped"]

# Wavelengths at which the frequencies of a rod are computed.
_WAVES = 64


class RodsKind(ChainsKind, OrientedKind):
    """Nodes of rods.

    Attributes
    ----------
    ends : (str, str)
        How the first and the last node of all rods are held: ``"free"``, ``"pinned"`` or ``"clamped"``.
    """

    handle: "Rods"
    name = "rod nodes"
    chain = "rod"
    per_bead: tuple[str, ...] = (*OrientedKind.per_bead, "linear_density", "inertia_density")
    per_chain: tuple[str, ...] = ("segment_length",)
    takes_constraints = True

    @property
    def ends(self) -> tuple[End, End]:
        return self.handle._ends

    def demand_box(self, layout: "Layout") -> None:
        layout.expect_lengths(repr(self.handle.name), "the segment of rod", self.handle.segment_length)

    def beside_frames(self) -> dict[str, Any]:
        return {**super().beside_frames(), "radius": (round_section(self.handle.mass, self.handle.inertia), "nm")}

    @property
    def joint_lengths(self) -> np.ndarray:
        """Rest length of every segment between two nodes, in the order of `links`, (J,) nm."""
        lengths: np.ndarray = self.handle.segment_length[self.link_chains]
        return lengths

    def tips(self, end: Literal["start", "end"]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places where rods end.

        Parameters
        ----------
        end : str
            ``"start"`` or ``"end"``.

        Returns
        -------
        (r,) int, and (r, 3) float, nm
            The node next to the end of each rod, among the handle's nodes, and the vector from there to the end in its
            frame: half a segment at free ends, which lie beyond their nodes; zero at others.

        Raises
        ------
        ParameterError
            Another word.
        TopologyError
            Rings have no ends.
        """
        if end not in ("start", "end"):
            raise ParameterError(f'{self.handle.name}: end must be "start" or "end", not {end!r}')
        if self.handle.closed:
            raise TopologyError(f"{self.handle.name}: rings have no {end}")
        last = end == "end"
        arm = np.zeros((self.n_chains, 3))
        if self.ends[last] == "free":
            arm[:, 2] = (0.5 if last else -0.5) * self.handle.segment_length
        return (self.handle.starts[1:] - 1 if last else self.handle.starts[:-1]), arm


class Rods(Chains, OrientedBeads, kind=RodsKind):
    """The nodes of elastic rods: chains or rings of oriented beads, one rod after another.

    Attributes
    ----------
    starts : (r + 1,) int array
        Where the nodes of each rod start, among the handle's nodes.
    closed : bool
        True for rings: then a segment joins the last node to the first.
    segment_length : (r,) float array, nm
        Of the segments of each rod, at rest.
    linear_density : (n,) float array, pN s²/nm²
    inertia_density : (n, 3) float array, pN s²
        Moments of inertia per length, about the axes of each node.
    """

    kind: RodsKind
    _added_by = "add_rods"

    def __init__(
        self, topology: "Topology", name: str, first: int, positions: np.ndarray, orientations: np.ndarray,
        linear_density: np.ndarray, inertia_density: np.ndarray, friction: np.ndarray, parts: int, starts: np.ndarray,
        closed: bool, segment_length: np.ndarray, ends: tuple[End, End], given: dict[str, Any],
    ) -> None:  # fmt: skip
        self.starts = starts
        self.closed = closed
        self.segment_length = segment_length
        self.linear_density = linear_density
        self.inertia_density = inertia_density
        self._ends = ends
        # The arguments from which friction was made.
        self._given = given
        n = len(positions)
        held = np.zeros((n, 2), bool)
        for node, end in zip((starts[:-1], starts[1:] - 1), ends, strict=True):
            held[node] = [end != "free", end == "clamped"]
        # A node represents a segment around it, or, where it is held, the half of one that begins or ends there.
        length = np.where(held[:, 0], 0.5, 1.0) * np.repeat(segment_length, np.diff(starts))
        mass, inertia = linear_density * length, inertia_density * length[:, None]
        super().__init__(topology, name, first, positions, mass, orientations, inertia, friction, parts, held)

    def tips(self, end: Literal["start", "end"]) -> Sites:
        """Return the places where rods end, (r,): half a segment beyond the node at free ends, else the node.

        Parameters
        ----------
        end : str
            ``"start"`` or ``"end"``.

        Raises
        ------
        ParameterError
            Another word.
        TopologyError
            Rings have no ends.

        Examples
        --------
        >>> import medyanpy as mp
        >>> nodes, orientations = mp.rods.uniform(4, 2.0)
        >>> rod = mp.Topology().add_rod(nodes, orientations, 2.0, linear_density=1.0, inertia_density=[1.0, 1.0, 2.0])
        >>> rod.tips("end").arms.tolist()
        [[0.0, 0.0, 1.0]]
        """
        node, arm = self.kind.tips(end)
        n = len(node)
        return Sites.from_arrays(
            np.arange(n + 1), self.beads[node], np.ones(n), np.empty((0, 3)), arm, [self]
        )

    def add(  # type: ignore[override]
        self,
        nodes: Numbers,
        orientations: Numbers,
        segment_length: Numbers | None = None,
        linear_density: Numbers | None = None,
        inertia_density: Numbers | None = None,
        *,
        starts: Numbers | None = None,
    ) -> np.ndarray:
        """Add rods to these: to a running simulation inside ``with topology.edit():``.

        Their friction and ends, and whether they are rings, are as of the present ones. Forces that name the handle act
        on them too; where such a force has a number for each segment, give it those of the new ones with ``force.set``
        inside the block.

        Parameters
        ----------
        nodes : (n, 3) float, or list of (n_i, 3) float, nm
            Of one rod; or of each of several, or of all together with `starts`.
        orientations : (n, 4) float, or list of (n_i, 4) float, dimensionless
            Likewise.
        segment_length, linear_density, inertia_density : optional
            As of `Topology.add_rods`; by default those of the present rods, which must then have the same.
        starts : (k + 1,) int, optional
            As of `Topology.add_rods`, of the new rods alone.

        Returns
        -------
        (k,) int array
            The numbers of the new rods within the handle; they come last.

        Raises
        ------
        TopologyError, ParameterError
            As `Topology.add_rods`. A topology in use outside of an edit. Rods with a friction tensor for each node.
        """
        what = f"{self.name}.add"
        self.topology._refuse_if_in_use(what)
        if np.ndim(self._given["friction"]) == 3:
            raise TopologyError(
                f"{what}: the nodes of {self.name!r} have friction tensors of their own: add a handle for these rods"
            )
        if starts is None and isinstance(nodes, np.ndarray | list | tuple) and len(nodes) and np.ndim(nodes[0]) == 1:
            one: list[Any] = [orientations]
            nodes, orientations = [nodes], one
        x, starts = chains_of(what, nodes, starts)
        other = _rods(
            self.topology, what, x, joined(f"{what}: orientations", orientations, 4), starts,
            self._number_for(what, "segment_length", segment_length),
            self._number_for(what, "linear_density", linear_density),
            self._number_for(what, "inertia_density", inertia_density), self._given["friction"],
            self._given["rotational_friction"], self._ends, self.closed, self._rotation_parts,
        )  # fmt: skip
        new = np.arange(self.kind.n_chains, self.kind.n_chains + other.kind.n_chains)
        self.topology._grow(self, other)
        return new

    def strains(
        self, positions: Numbers | None = None, orientations: Numbers | None = None, *,
        box: Sequence[float | None] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return shear and stretch Γ, and bending and twist Ω of every segment.

        Parameters
        ----------
        positions : (n, 3) float, nm, optional
            Of the handle's nodes: ``state.positions[rods.beads]``. As they were added where none are given.
        orientations : (n, 4) float, optional
            Unit quaternions: ``state.orientations[rods.rows]``.
        box : (3,) of float, nm, > 0, or None, optional
            ``state.box``: segments then go to the nearest images.

        Returns
        -------
        (J, 3) float, dimensionless, and (J, 3) float, 1/nm
            In the order of `links`, in the mean frame of the two nodes.

        Raises
        ------
        ParameterError
            Arrays of another shape; a box outside its domain.

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
        return strains(self.links, self.kind.joint_lengths, x, q, checked_box("strains", box))

    def _arguments_now(self) -> dict[str, Any]:
        return {
            "nodes": self.positions, "orientations": self.orientations,
            "segment_length": float(self.segment_length[0]) if self.kind.n_chains == 1 else self.segment_length,
            **self._numbers_now("linear_density"),
            "inertia_density": self.inertia_density if not len(self) else row_if_one(self.inertia_density),
            **self._given, "starts": self.starts, "ends": list(self._ends), "closed": self.closed,
            "rotation_parts": self._rotation_parts, "name": self.name, **self._room_now(),
        }  # fmt: skip


def add_rod(
    topology: "Topology", nodes: Numbers, orientations: Numbers, segment_length: Number, linear_density: Numbers,
    inertia_density: Numbers, friction: Numbers = 0.0, *, rotational_friction: Numbers = 0.0,
    ends: End | Sequence[End] = "free", closed: bool = False, rotation_parts: int = 1, name: str | None = None,
    capacity: int | None = None,
) -> Rods:  # fmt: skip
    """Add an elastic rod: a chain of nodes with a frame each, the third axis along it.

    A node is the middle of a segment: with free ends, N nodes make a rod of length N ℓ. A held end is at its node,
    which has half a segment: with one the rod is (N - 1/2) ℓ long, with two (N - 1) ℓ. `forces.RodElasticity` is its
    elasticity.

    Parameters
    ----------
    nodes : (n, 3) float, nm
        n >= 2; of a ring n >= 3. The rod may be strained.
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
    capacity : int, >= n, optional
        Rows for so many nodes in all, which rods that are added later take.

    Raises
    ------
    TopologyError
        As `add_beads`; too few nodes, successive nodes in one place, orientations that are not unit quaternions or have
        a third axis against the direction to the next node, a ring with ends.
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
    x = positions_of("add_rod: nodes", nodes)
    return _add_rods(
        topology, "add_rod", x, orientations, np.array([0, len(x)]), segment_length, linear_density, inertia_density,
        friction, rotational_friction, ends, closed, rotation_parts, name, capacity,
    )  # fmt: skip


def add_rods(
    topology: "Topology", nodes: Numbers, orientations: Numbers, segment_length: Numbers, linear_density: Numbers,
    inertia_density: Numbers, friction: Numbers = 0.0, *, starts: Numbers | None = None,
    rotational_friction: Numbers = 0.0, ends: End | Sequence[End] = "free", closed: bool = False,
    rotation_parts: int = 1, name: str | None = None, capacity: int | None = None,
) -> Rods:  # fmt: skip
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
    friction, rotational_friction, ends, closed, rotation_parts, name, capacity
        As `add_rod`.

    Raises
    ------
    TopologyError, ParameterError
        As `add_rod`; the message names the rod.
    """
    what = "add_rods"
    x, starts = chains_of(what, nodes, starts)
    orientations = joined(f"{what}: orientations", orientations, 4)
    return _add_rods(
        topology, what, x, orientations, starts, segment_length, linear_density, inertia_density, friction,
        rotational_friction, ends, closed, rotation_parts, name, capacity,
    )  # fmt: skip


def _add_rods(
    topology: "Topology", what: str, x: np.ndarray, orientations: Any, starts: np.ndarray, segment_length: Any,
    linear_density: Any, inertia_density: Any, friction: Any, rotational: Any, ends: Any, closed: bool, parts: int,
    name: str | None, capacity: int | None,
) -> Rods:  # fmt: skip
    made = _rods(
        topology, what, x, orientations, starts, segment_length, linear_density, inertia_density, friction, rotational,
        ends, closed, parts,
    )  # fmt: skip
    room = topology._capacity(what, len(x), capacity)
    first, name = topology._room(what, room, name, "rod" if len(starts) == 2 else "rods")
    made._complete(_first=first, name=name)
    return topology._keep(made, room, linear_density=linear_density, segment_length=segment_length)


def _rods(
    topology: "Topology", what: str, x: np.ndarray, orientations: Any, starts: np.ndarray, segment_length: Any,
    linear_density: Any, inertia_density: Any, friction: Any, rotational: Any, ends: Any, closed: bool, parts: int,
) -> Rods:  # fmt: skip
    """Make a handle in no topology of rods from user input, checked."""
    n, closed = len(x), bool(closed)
    both = (ends, ends) if isinstance(ends, str) else ends
    known = ("free", "pinned", "clamped")
    if not isinstance(both, Sequence) or len(both) != 2 or any(end not in known for end in both):
        raise ParameterError(f'{what}: ends must be "free", "pinned" or "clamped", or two of these, not {ends!r}')
    ends = tuple(both)
    if closed and ends != ("free", "free"):
        raise TopologyError(f"{what}: a ring has no ends that could be {ends[0]} or {ends[1]}")
    enough_nodes(what, "rod", starts, closed)
    q = unit_quaternions(f"{what}: orientations", orientations, n)
    q.flags.writeable = False
    length = np.array(per_item(f"{what}: segment_length", segment_length, len(starts) - 1, above=0.0))
    length.flags.writeable = False
    density = per_item(f"{what}: linear_density", linear_density, n, above=0.0)
    inertia = moments_of(f"{what}: inertia_density", inertia_density, n)
    given = {"friction": kept(friction), "rotational_friction": kept(rotational)}
    tensors = rod_friction(what, friction, rotational, n)
    parts = whole_number(f"{what}: rotation_parts", parts, at_least=1, at_most=1000)
    handle = Rods(
        topology, "", 0, x, q, density, inertia, tensors, parts, starts.copy(), closed, length, ends, given,
    )  # fmt: skip
    check_frames(what, x, q, handle.links, handle.kind.describe_link)
    return handle


def round_section(mass: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return radii (n,) of slices with a round section, of masses (n,) and moments (n, 3).

    I1 = m r²/4 of a thin one.
    """
    radii: np.ndarray = 2.0 * np.sqrt(inertia[:, :2].min(axis=1) / mass)
    return radii


def strains(
    links: np.ndarray, length: np.ndarray, positions: np.ndarray, orientations: np.ndarray, box: Box | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return Γ and Ω (J, 3) of joints of lengths (J,), as _kernels/forces/rods.pyx has them."""
    a, b = orientations[links.T]
    b = np.where(np.einsum("ij,ij->i", a, b)[:, None] < 0.0, -b, b)
    mean = a + b
    mean /= np.linalg.norm(mean, axis=1)[:, None]
    back = mean * [1.0, -1.0, -1.0, -1.0]
    d = displacement(positions[links[:, 0]], positions[links[:, 1]], box)
    return turned(back, d) / length[:, None], 2.0 * product(back, b - a)[:, 1:] / length[:, None]


def check_frames(what: str, x: np.ndarray, q: np.ndarray, links: np.ndarray, of: Callable[[int], str]) -> None:
    """Refuse successive nodes in one place, and third axes that point backwards; `of` names a link."""
    d = x[links[:, 1]] - x[links[:, 0]]
    here = ~d.any(axis=1)
    if here.any():
        raise TopologyError(f"{what}: {of(int(np.argmax(here)))} has both nodes in one place: its length is 0")
    third = matrices(q)[:, :, 2]
    cosine = np.einsum("jki,ji->jk", third[links], d) / np.linalg.norm(d, axis=1)[:, None]
    if (cosine <= 0.0).any():
        j, k = (int(i) for i in np.argwhere(cosine <= 0.0)[0])
        raise TopologyError(
            f"{what}: {of(j)} runs against the third axis of node {links[j, k]}: the cosine of the angle between them "
            f"is {cosine[j, k]:g}, but must be > 0. Third axes point from each node to the next"
        )


def longest_timestep(
    length: np.ndarray, mass: np.ndarray, inertia: np.ndarray, stiffness: np.ndarray, couple: np.ndarray
) -> float:
    """Return 2 over the highest frequency of straight rods, s.

    Joints have lengths (J,), masses (J,) and inertias (J, 3) of their nodes, and moduli C and B (J, 3).

    For waves exp(i k s), shear and rotation of each principal plane have the matrix ``[[C z²/l, i C z c], [-i C z c,
    B z²/l + C c² l]]`` over (mass, inertia), with z = 2 sin(k l/2) and c = cos(k l/2). Stretch and twist are not
    coupled.
    """
    rows = np.unique(np.column_stack([length, mass, inertia, stiffness, couple]), axis=0)
    l, m, i, c, b = rows[:, :1], rows[:, 1:2], rows[:, 2:5], rows[:, 5:8], rows[:, 8:11]  # noqa: E741
    half = np.linspace(0.0, 0.5 * np.pi, _WAVES)
    z, cos = 2.0 * np.sin(half), np.cos(half)
    highest = max(float((4.0 * c[:, 2:] / (l * m)).max()), float((4.0 * b[:, 2:] / (l * i[:, 2:])).max()))
    for shear, axis in ((0, 1), (1, 0)):
        across = c[:, shear, None] * z**2 / (l * m)
        turning = (b[:, axis, None] * z**2 / l + c[:, shear, None] * cos**2 * l) / i[:, axis, None]
        square = (c[:, shear, None] * z * cos) ** 2 / (m * i[:, axis, None])
        mean = 0.5 * (across + turning)
        highest = max(highest, float((mean + np.sqrt(0.25 * (across - turning) ** 2 + square)).max()))
    return 2.0 / float(np.sqrt(highest))
