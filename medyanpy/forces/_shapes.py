"""Base of forces between shapes: handles with shapes, their thickness, and exclusions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from medyanpy._kernels.core.sites import SiteTable
from medyanpy._kernels.core.triangles import Triangles
from medyanpy._tools.images import displacement
from medyanpy.beads import Balls, Membrane
from medyanpy.beads.chains import Chains
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError, TopologyError
from medyanpy.forces._base import Force
from medyanpy.forces._pair_force import exclusion_pairs

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["Part", "Parts", "ShapeForce", "corner_sites", "no_chain", "search_table", "sheet_table"]


def _is_one(value: Any) -> bool:
    """Tell whether this is one value for all handles."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return not isinstance(value, Sequence) or isinstance(value, str | bytes)


class Part(NamedTuple):
    """Shapes of one handle: corners by place (n, c), radius (n,), class, where links are (n, 3), and of triangles and
    edges the membrane."""

    corners: np.ndarray
    radius: np.ndarray
    kind: int
    chain: np.ndarray
    sheet: Membrane | None = None


def no_chain(n: int) -> np.ndarray:
    return np.full((n, 3), -1, np.int32)


def _links_with_room(slots: np.ndarray, radius: float, kind: int, first: int) -> Part:
    """Return the links of filaments whose nodes come and go, one between each two neighbours of places (f, n)."""
    n, width = slots.shape
    number = np.repeat(first + np.arange(n), width - 1), np.tile(np.arange(width - 1), n), np.zeros(n * (width - 1))
    corners = np.stack([slots[:, :-1], slots[:, 1:]], axis=-1).reshape(-1, 2)
    return Part(corners, np.full(len(corners), radius), kind, np.column_stack(number).astype(np.int32))


def _chain(chains: Chains, first: int) -> np.ndarray:
    """Return chain, number along it, and number of links if it is a ring, else 0, (l, 3)."""
    starts, chain = chains.kind.link_starts, chains.kind.link_chains
    counts = np.diff(starts)
    along = np.arange(starts[-1]) - starts[chain]
    return np.column_stack([first + chain, along, counts[chain] * chains.closed]).astype(np.int32)


class Parts(NamedTuple):
    """Shapes of all handles, handle by handle."""

    points: list[Part]
    links: list[Part]
    edges: list[Part]
    triangles: list[Part]
    nodes: list[Part]


class ShapeForce(Force):
    """A force on the shapes of some handles, with a radius for each; balls have their own."""

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._shapes: tuple[Handle, ...] = ()
        self._exclusions = exclusion_pairs(self.name, None)

    @property
    def handles(self) -> tuple[Handle, ...]:
        return self._shapes

    def naming(self, gone: np.ndarray) -> dict[str, np.ndarray]:
        return {"exclusion": gone[self._exclusions].any(axis=1)}

    def without(self, terms: dict[str, np.ndarray]) -> None:
        self._exclusions = exclusion_pairs(self.name, self._exclusions[~terms["exclusion"]])
        self._was_cut = True
        self._version += 1

    def _arguments_now(self) -> dict[str, Any]:
        return super()._arguments_now() | ({"exclusions": self._exclusions} if self._was_cut else {})

    def _handles_of(self, shapes: Any, called: str = "shapes") -> tuple[Handle, ...]:
        given = (shapes,) if isinstance(shapes, Handle) else shapes
        if not isinstance(given, Sequence) or not len(given) or not all(isinstance(h, Handle) for h in given):
            raise TopologyError(f"{self.name}: {called} must be handles, not {shapes!r}")
        for i, handle in enumerate(given):
            if not handle.kind.in_space:
                raise TopologyError(f"{self.name}: {called}[{i}]: {handle!r} have no place in space")
            if handle in given[:i]:
                raise TopologyError(f"{self.name}: {called}[{i}]: {handle!r} is there twice")
        return tuple(given)

    def _each(self, what: str, value: Any) -> list[Any]:
        """Return one value for every handle."""
        n = len(self._shapes)
        if _is_one(value):
            return [value] * n
        if len(value) != n:
            raise ParameterError(f"{self.name}: {what} must be one for all or have shape ({n},), not ({len(value)},)")
        return list(value)

    def _in_domain(self, name: str, value: Any, n: int | None = None) -> Any:
        """Check a number; each radius may be None on its own."""
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

    def _radii(self) -> list[np.ndarray]:
        """Return the radii of the beads of each handle, nm."""
        return [
            np.broadcast_to(handle.radius if isinstance(handle, Balls) and r is None else r, (len(handle),))
            for handle, r in zip(self._shapes, self._each("radius", self._numbers["radius"]), strict=True)
        ]

    @property
    def _widest_radius(self) -> float:
        """The largest radius of its shapes, nm."""
        return max((float(r.max(initial=0.0)) for r in self._radii()), default=0.0)

    def _expect_width(self, layout: "Layout") -> None:
        """Refuse a box too small for nearest images of shapes, by their first corners and lengths at the start."""
        longest = 0.0
        for handle in self._shapes:
            if len(joined := handle.kind.joined):
                x = cast(Any, handle).positions
                d = displacement(x[joined[:, 0]], x[joined[:, 1]], layout.box)
                longest = max(longest, float(np.linalg.norm(d, axis=1).max()))
        layout.expect_width(self.name, 2.0 * (self._widest_radius + longest))

    def _parts(self, layout: "Layout", kinds: list[int], radii: list[np.ndarray]) -> Parts:
        """List shapes by place, rows without a bead included; `kinds` has the class of each handle's shapes."""
        points, links, edges, triangles, nodes = out = Parts([], [], [], [], [])
        n_chains = 0
        for handle, kind, radius in zip(self._shapes, kinds, radii, strict=True):
            place = layout.internal(handle.kind.with_room)
            if len(place) > len(handle):
                # Rows without a bead get the radius of beads that jumps may add, which have one.
                given = self._each("radius", self._numbers["radius"])[self._shapes.index(handle)]
                born = handle.kind.of_all("radius") if given is None else given
                born = radius.max(initial=0.0) if born is None else born
                radius = np.append(radius, np.full(len(place) - len(handle), born))

            def part(
                corners: np.ndarray, chain: np.ndarray | None = None, sheet: Membrane | None = None, *,
                place: np.ndarray = place, radius: np.ndarray = radius, kind: int = kind,
            ) -> Part:  # fmt: skip
                chain = no_chain(len(corners)) if chain is None else chain
                return Part(place[corners], radius[corners[:, 0]], kind, chain, sheet)

            beads = part(np.arange(len(place))[:, None])
            if isinstance(handle, Chains):
                nodes.append(beads)
                slots = handle.kind.slots
                if slots is None:
                    links.append(part(handle.links, _chain(handle, n_chains)))
                else:
                    links.append(_links_with_room(layout.rank[slots], radius.max(initial=0.0), kind, n_chains))
                n_chains += handle.kind.n_chains if slots is None else len(slots)
            elif isinstance(handle, Membrane):
                nodes.append(beads)
                edges.append(part(layout.connectivity(handle).edges, sheet=handle))
                triangles.append(part(layout.connectivity(handle).faces, sheet=handle))
            else:
                points.append(beads)
        return out


def search_table(
    a: list[Part], b: list[Part], among_a: bool, among_b: bool, meet: np.ndarray
) -> tuple[tuple[Any, ...], dict[Membrane, int]]:
    """Return the arguments of a Search in which shapes of a meet those of b, and the first shape of each membrane.

    Those of one group also meet each other where `among_a` or `among_b` is set. Shapes that meet no others are left
    out.
    """
    in_a, in_b = (np.array(sorted({p.kind for p in parts}), int) for parts in (a, b))
    across = meet[np.ix_(in_a, in_b)].any(axis=1), meet[np.ix_(in_b, in_a)].any(axis=1)
    within = [meet[np.ix_(c, c)].any(axis=1) & among for c, among in ((in_a, among_a), (in_b, among_b))]
    sides = zip((a, b), (in_a, in_b), across, within, strict=True)
    kept = [[p for p in parts if p.kind in c[x | w]] for parts, c, x, w in sides]
    # As in NeighborList: 3 is for shapes that meet those of their own group.
    groups = 3 if within[0].any() else 1, 3 if within[1].any() else 2
    group = [np.full(len(p.corners), g) for parts, g in zip(kept, groups, strict=True) for p in parts]
    parts = kept[0] + kept[1]
    if not parts:
        none = np.zeros(0, np.int32)
        return (none, 0, 2, none, np.zeros(0), none, no_chain(0)), {}
    corners = np.concatenate([p.corners.ravel() for p in parts]).astype(np.int32)
    single = sum(len(p.corners) for p in parts if p.corners.shape[1] == 1)
    kinds = np.repeat([p.kind for p in parts], [len(p.corners) for p in parts]).astype(np.int32)
    radius, chain = (np.concatenate([getattr(p, name) for p in parts]) for name in ("radius", "chain"))
    widest, group_of = max(2, *(p.corners.shape[1] for p in parts)), np.concatenate(group).astype(np.int32)
    firsts = zip(parts, np.cumsum([0, *(len(p.corners) for p in parts)]).tolist(), strict=False)
    return (corners, single, widest, group_of, radius, kinds, chain), {p.sheet: at for p, at in firsts if p.sheet}


def sheet_table(
    layout: "Layout", triangles: dict[Membrane, int], edges: dict[Membrane, int]
) -> tuple[Triangles, np.ndarray]:
    """Return the triangles of all membranes, and (m, 7) int64 of each that has shapes what `OfShapes` takes; from the
    first triangle and the first edge of each among the shapes."""
    rows = [
        (h.first_face, len(h.mesh.faces), layout.slice_of(h).start, len(h), len(h.mesh.edges), triangles.get(h, -1),
         edges.get(h, -1))
        for h in dict.fromkeys([*triangles, *edges])
    ]  # fmt: skip
    return layout.triangulation.triangles, np.array(rows, np.int64).reshape(-1, 7)


def corner_sites(tables: Sequence[tuple[Any, ...]]) -> tuple[SiteTable, np.ndarray]:
    """Make a site for every corner of the shapes of searches, and return the places of all corners, each once."""
    corner = np.concatenate([table[0] for table in tables])
    starts = np.arange(len(corner) + 1, dtype=np.int32)
    return SiteTable(starts, corner, np.ones(len(corner)), np.empty((0, 3))), np.unique(corner)
