"""Soft repulsion between everything that has a shape: balls, filaments, rods, membranes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from medyanpy._kernels.selected import collisions
from medyanpy._kernels.sites import SiteTable
from medyanpy._tools.validation import whole_number
from medyanpy.beads import Balls, InTrianglePoints, Membrane
from medyanpy.beads.chains import Chains
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Domain, Force, domain_table
from medyanpy.forces._pair_force import excluded_beads, exclusion_pairs
from medyanpy.handles import Handle

__all__ = ["SoftCollisions"]

# In units of the mean radius, so that a few large balls do not make the rows of everything long; see
# tests/benchmarks/bench_collisions.py.
_SKIN = 0.8
_MAX_MASK = 2**63 - 1


class SoftCollisions(Force):
    r"""Excluded volume (soft steric repulsion) between all shapes of a system that have a thickness: balls, links of
    filaments, segments of rods and triangles of membranes.

    .. math:: U = \sum_{(a, b)} \tfrac12 k_{ab}\,(L_{ab} - r_{ab})^2 \quad\text{for}\; r_{ab} < L_{ab} = R_a + R_b,
              \qquad k_{ab} = \frac{k_a k_b}{k_a + k_b}

    where r is the distance of the closest points of two shapes; each pair once. Balls, beads and in-triangle points
    are points with a radius R, links (also those between the nodes of rods) are segments, membranes triangles:

    - point against point, against segment, and against triangle;
    - segment against segment;
    - filament against membrane: its nodes against triangles, and its links against edges;
    - membrane against membrane: the vertices of each against the triangles of the other, and edges against edges.

    The closest points of two segments jump where the segments become parallel. Between P and Q the energy is therefore

    .. math:: s\,U(\text{closest}) + (1 - s)\,\tfrac12 \sum_{\text{4 ends}} U(\text{end, segment}), \qquad
              s = \tanh\frac{\kappa\,|P \times Q|^2}{|P||Q|\,L^2}

    whose force is continuous. This is the law of MEDYAN.

    Parameters
    ----------
    shapes : handle or list of handles
        Beads, balls, filaments, rods, membranes and in-triangle points, each once.
    stiffness : float or one per handle, pN/nm, >= 0
        k of the shapes of each handle. Shapes with k = 0 repel nothing.
    radius : float or None, or one per handle, nm, > 0
        R of the shapes of each handle; of membranes half their thickness. None: those of `Balls`; other handles need
        one.
    layers, no_collide : int or one per handle, >= 0
        Sets of layers, as bits. Shapes of A and B do not collide if a layer of A is among ``no_collide`` of B, or a
        layer of B among those of A; this also decides whether the shapes of one handle collide with each other.
    self_avoiding : bool or one per handle, optional
        Whether the shapes of one handle collide with each other, where layers let them. By default all do but
        the triangles of a membrane.
    neighbors : int, >= 1
        Links of one filament do not collide if they are the same or up to `neighbors` links apart: 1 leaves out those
        that share a node. A filament thicker than its links are long, R > ℓ/2, needs more: L/ℓ rounded up.
    exclusions : (E, 2) int, optional
        Pairs of bead numbers: shapes of which one has the first and the other the second as a corner do not collide.
    switchover : float, >= 0
        κ. The larger, the nearer to parallel the law of crossing segments ends.
    skin : float, nm, >= 0, optional
        How far beyond touching neighbours are listed: a matter of speed, no bit of any result depends on it. 0.8
        times the mean radius of all beads where none is given.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Something that is not a handle, or the handle of directors; a handle given twice or of another topology; an
        exclusion of beads that do not exist.
    ParameterError
        A number outside its domain or one too many or too few; no radius though there are other shapes than balls.

    Notes
    -----
    Shapes of a membrane that share a vertex, and a point and the membrane it lives in, do not collide. A force on an
    in-triangle point is passed on to the corners of its triangle, so that a bead on a point pushes the membrane too.

    Two points in one place, a point on a segment, and segments that end on each other have no direction to push in:
    that term exerts no force, the mean over all directions. Segments that cross, and a point inside a triangle, have
    one but for its sign: the second of two segments P, Q is pushed along P × Q, and a point against the normal of the
    triangle. Up to there shapes resist with k L²/2: choose it well above kT. Nothing resists what is behind it.

    The force is continuous, its derivative jumps where shapes touch and where the closest points reach an end or edge.
    A point near an edge of a membrane touches both triangles, and is pushed by both: keep L well below the mesh width.

    Cost: linear in the number of shapes at given density. Lists are made of spheres around shapes: shapes that are
    long compared with their distances, and a few that are much larger than the others, make that slower.

    References
    ----------
    K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016), MEDYAN. V. J. Lumelsky, Inf. Process.
    Lett. 21, 55 (1985), and C. Ericson, Real-Time Collision Detection (2005), closest points.

    Examples
    --------
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> actin = topology.add_filaments([[[0.0, 0, 0], [27, 0, 0]], [[13, -10, 5.0], [13, 10, 5]]], node_mass=4e-12)
    >>> balls = topology.add_balls([[0.0, 0, 20]], radius=15.0, mass=4e-12)
    >>> system = mp.System(topology)
    >>> system.add_force(mp.forces.SoftCollisions([actin, balls], stiffness=100.0, radius=[3.0, None]))
    SoftCollisions(stiffness=100, radius=(3.0, None), switchover=8, skin=None)
    >>> context = mp.Context(system, mp.VerletIntegrator(1e-9))
    >>> round(context.get_state(energy=True).potential_energy, 9)  # (100/2)/2 (6 - 5)²
    25.0
    """

    domains = domain_table(
        stiffness=Domain("pN/nm", at_least=0.0, per="handles"),
        radius=Domain("nm", above=0.0, per="handles", optional=True),
        switchover=Domain(at_least=0.0),
        skin=Domain("nm", at_least=0.0, optional=True),
    )
    conserves_momentum = True

    def __init__(
        self,
        shapes: Any,
        stiffness: Any,
        radius: Any = None,
        *,
        layers: Any = 1,
        no_collide: Any = 0,
        self_avoiding: Any = None,
        neighbors: int = 1,
        exclusions: Any = None,
        switchover: float = 8.0,
        skin: float | None = None,
        name: str | None = None,
        group: int = 0,
    ) -> None:
        super().__init__(name=name, group=group)
        self._shapes = self._handles_of(shapes)
        self._layers = self._masks("layers", layers)
        self._no_collide = self._masks("no_collide", no_collide)
        self._self_avoiding = [not isinstance(h, Membrane) for h in self._shapes]
        if self_avoiding is not None:
            self._self_avoiding = self._each("self_avoiding", self_avoiding)
            for i, value in enumerate(self._self_avoiding):
                if not isinstance(value, bool | np.bool_):
                    raise ParameterError(f"{self.name}: self_avoiding[{i}] = {value!r} but must be True or False")
        self._neighbors = whole_number(f"{self.name}: neighbors", neighbors, at_least=1, at_most=2**31 - 1)
        self._exclusions = exclusion_pairs(self.name, exclusions)
        self._declare(stiffness=stiffness, radius=radius, switchover=switchover, skin=skin)

    @property
    def handles(self):
        return self._shapes

    @property
    def exclusions(self) -> np.ndarray:
        """(E, 2) pairs of bead numbers whose shapes do not collide."""
        return self._exclusions

    def naming(self, gone):
        return {"exclusion": gone[self._exclusions].any(axis=1)}

    def without(self, terms):
        self._exclusions = exclusion_pairs(self.name, self._exclusions[~terms["exclusion"]])
        self._was_cut = True
        self._version += 1

    def _arguments_now(self):
        return super()._arguments_now() | ({"exclusions": self._exclusions} if self._was_cut else {})

    # What is given ------------------------------------------------------------------------------------------

    def _handles_of(self, shapes: Any) -> tuple[Handle, ...]:
        given = (shapes,) if isinstance(shapes, Handle) else shapes
        if not isinstance(given, Sequence) or not len(given) or not all(isinstance(h, Handle) for h in given):
            raise TopologyError(f"{self.name}: shapes must be handles, not {shapes!r}")
        for i, handle in enumerate(given):
            if not handle.in_space:
                raise TopologyError(f"{self.name}: shapes[{i}]: {handle!r} have no place in space")
            if handle in given[:i]:
                raise TopologyError(f"{self.name}: shapes[{i}]: {handle!r} is there twice")
        return tuple(given)

    def _each(self, what: str, value: Any) -> list[Any]:
        """One value for every handle."""
        n = len(self._shapes)
        if _is_one(value):
            return [value] * n
        if len(value) != n:
            raise ParameterError(f"{self.name}: {what} must be one for all or have shape ({n},), not ({len(value)},)")
        return list(value)

    def _masks(self, what: str, value: Any) -> np.ndarray:
        masks = [
            whole_number(f"{self.name}: {what}[{i}]", mask, at_most=_MAX_MASK)
            for i, mask in enumerate(self._each(what, value))
        ]
        return np.array(masks, np.int64)

    def _in_domain(self, name: str, value: Any, n: int | None = None) -> Any:
        """Each radius may be None on its own."""
        if name != "radius":
            return super()._in_domain(name, value, n)
        domain, given = replace(self.domains[name], per=None), self._each(name, value)
        if _is_one(value):
            return domain.checked(f"{self.name}: radius", value)
        return tuple(domain.checked(f"{self.name}: radius[{i}]", r) for i, r in enumerate(given))

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        for r, handle in zip(self._each("radius", checked["radius"]), self._shapes, strict=True):
            if r is None and not isinstance(handle, Balls):
                raise ParameterError(f"{self.name}: give radius=, because {handle!r} has no radius: only balls have")
        return checked

    # The operation ------------------------------------------------------------------------------------------

    def squared_frequencies(self, start):
        # Two shapes that touch push at most with all their weight on one corner each.
        kinds, stiffness = self._classes()
        parts = [np.zeros(start.n_rows)]
        for i, a in enumerate(self._shapes):
            for b, kind in zip(self._shapes[i:], kinds[i:], strict=True):
                beads = a.beads if a is b else np.concatenate([a.beads, b.beads])
                groups = np.full(len(beads), 3) if a is b else np.repeat([1, 2], [len(a), len(b)])
                nobody = np.empty((0, 2), int)
                k = stiffness[kinds[i], kind]
                parts.append(start.contacts(start.coordinates(beads), groups, nobody, 0.0, k))
        return np.max(parts, axis=0)

    def bind(self, layout):
        kinds, stiffness = self._classes()
        radii = [
            np.broadcast_to(handle.radius if r is None else r, (len(handle),))
            for handle, r in zip(self._shapes, self._each("radius", self._numbers["radius"]), strict=True)
        ]
        points, links, edges, triangles, nodes = [], [], [], [], []
        n_chains = 0
        for handle, kind, radius in zip(self._shapes, kinds, radii, strict=True):
            place = layout.internal(handle.with_room)
            if len(place) > len(handle):
                # Of rows asleep that of those that jumps may bear, who have one.
                given = self._each("radius", self._numbers["radius"])[self._shapes.index(handle)]
                born = handle.of_all("radius") if given is None else given
                born = radius.max() if born is None else born
                radius = np.append(radius, np.full(len(place) - len(handle), born))

            def part(corners, chain=None, *, place=place, radius=radius, kind=kind):
                chain = _no_chain(len(corners)) if chain is None else chain
                return _Part(place[corners], radius[corners[:, 0]], kind, chain)

            beads = part(np.arange(len(place))[:, None])
            if isinstance(handle, Chains):
                nodes.append(beads)
                links.append(part(handle.links, _chain(handle, n_chains)))
                n_chains += handle.n_chains
            elif isinstance(handle, Membrane):
                nodes.append(beads)
                edges.append(part(layout.connectivity(handle).edges))
                triangles.append(part(layout.connectivity(handle).faces))
            else:
                points.append(beads)
        skin = self._numbers["skin"]
        if skin is None:
            all_radii = np.concatenate(radii)
            skin = _SKIN * float(all_radii.mean()) if len(all_radii) else 0.0
        meet = stiffness > 0.0
        tables = (
            _table(points, links, True, False, meet),
            _table(points + nodes, triangles, False, False, meet),
            _table(links, edges, True, True, meet),
        )
        searches = [collisions.Search(*table, skin) for table in tables]
        corner = np.concatenate([table[0] for table in tables])
        starts = np.arange(len(corner) + 1, dtype=np.int32)
        sites = SiteTable(starts, corner, np.ones(len(corner)), np.empty((0, 3)))
        operation = collisions.Collisions(
            self.name, searches, sites, np.unique(corner), skin, stiffness, self._numbers["switchover"],
            self._neighbors, *excluded_beads(self.name, self._exclusions, layout),
        )  # fmt: skip
        operation.acts_on_points = any(isinstance(h, InTrianglePoints) for h in self._shapes)
        return operation

    def _classes(self) -> tuple[list[int], np.ndarray]:
        """The class of every handle's shapes, and k of each pair of classes, 0 where they do not meet."""
        homes = {h.membrane for h in self._shapes if isinstance(h, InTrianglePoints)}
        classes: dict[tuple, int] = {}
        kinds = []
        for i, handle in enumerate(self._shapes):
            # Most handles need no class of their own.
            own = i if handle in homes or not self._self_avoiding[i] else -1
            home = -1
            if isinstance(handle, InTrianglePoints) and handle.membrane in self._shapes:
                home = self._shapes.index(handle.membrane)
            numbers = (self._layers[i], self._no_collide[i], self._numbers["stiffness"][i])
            kinds.append(classes.setdefault((*numbers, own, home, self._self_avoiding[i]), len(classes)))
        layers, no_collide, k, own, home, avoiding = (np.array(column) for column in zip(*classes, strict=True))
        apart = (layers[:, None] & no_collide != 0) | (layers & no_collide[:, None] != 0)
        apart |= (own[:, None] == own) & (own >= 0) & ~avoiding.astype(bool)
        at_home = (home[:, None] == own) & (own >= 0)
        apart |= at_home | at_home.T
        both = k[:, None] + k
        series = np.divide(k[:, None] * k, both, out=np.zeros_like(both), where=both > 0.0)
        return kinds, np.where(apart, 0.0, series)


def _is_one(value: Any) -> bool:
    """Whether it is one value for all handles."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return not isinstance(value, Sequence) or isinstance(value, str | bytes)


class _Part(NamedTuple):
    """Shapes of one handle: corners by place (n, c), radius (n,), class, and where links are (n, 3)."""

    corners: np.ndarray
    radius: np.ndarray
    kind: int
    chain: np.ndarray


def _no_chain(n: int) -> np.ndarray:
    return np.full((n, 3), -1, np.int32)


def _chain(chains: Chains, first: int) -> np.ndarray:
    """(l, 3) chain, number along it, and number of links if it is a ring, else 0."""
    starts, chain = chains.link_starts, chains.link_chains
    counts = np.diff(starts)
    along = np.arange(starts[-1]) - starts[chain]
    return np.column_stack([first + chain, along, counts[chain] * chains.closed]).astype(np.int32)


def _table(a: list[_Part], b: list[_Part], among_a: bool, among_b: bool, meet: np.ndarray) -> tuple[Any, ...]:
    """The arguments of a Search in which shapes of a meet those of b, and each other where that is said; without those
    that meet nobody."""
    in_a, in_b = (np.array(sorted({p.kind for p in parts}), int) for parts in (a, b))
    across = meet[np.ix_(in_a, in_b)].any(axis=1), meet[np.ix_(in_b, in_a)].any(axis=1)
    within = [meet[np.ix_(c, c)].any(axis=1) & among for c, among in ((in_a, among_a), (in_b, among_b))]
    kept = [
        [p for p in parts if p.kind in c[x | w]]
        for parts, c, x, w in zip((a, b), (in_a, in_b), across, within, strict=True)
    ]
    # As in NeighborList: 3 is for those that meet their like.
    groups = 3 if within[0].any() else 1, 3 if within[1].any() else 2
    group = [np.full(len(p.corners), g) for parts, g in zip(kept, groups, strict=True) for p in parts]
    parts = kept[0] + kept[1]
    if not parts:
        return np.zeros(0, np.int32), 0, 2, np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32), _no_chain(0)
    return (
        np.concatenate([p.corners.ravel() for p in parts]).astype(np.int32),
        sum(len(p.corners) for p in parts if p.corners.shape[1] == 1),
        max(2, *(p.corners.shape[1] for p in parts)),
        np.concatenate(group).astype(np.int32),
        np.concatenate([p.radius for p in parts]),
        np.repeat([p.kind for p in parts], [len(p.corners) for p in parts]).astype(np.int32),
        np.concatenate([p.chain for p in parts]),
    )
