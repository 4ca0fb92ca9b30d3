"""Soft repulsion between all shapes: balls, filaments, rods, membranes."""

from collections.abc import Sequence
from dataclasses import InitVar
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.collisions import Collisions, Search
from medyanpy._tools.sums import mean
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import whole_number
from medyanpy.beads import InTrianglePoints, Membrane
from medyanpy.core.handles import Handle
from medyanpy.errors import ParameterError
from medyanpy.forces._arguments import Handles, Rows
from medyanpy.forces._base import Each, Given, argument, declared, number
from medyanpy.forces._pair_force import excluded_beads, exclusion_pairs
from medyanpy.forces._shapes import ShapeForce, corner_sites, search_table, sheet_table

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["SoftCollisions"]

# Times the mean radius, so that a few large balls do not make all rows long: tests/benchmarks/bench_collisions.py.
_SKIN = 0.8
_MAX_MASK = 2**63 - 1
_LAYERS = (
    "Sets of layers, as bits. Shapes of A and B do not collide if a layer of A is among ``no_collide`` of B, or a "
    "layer of B among those of A; this also decides whether the shapes of one handle collide with each other."
)


@declared
class SoftCollisions(ShapeForce):
    r"""Excluded volume (soft steric repulsion) between all shapes of a system that have a thickness.

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
    stiffness : float or one per handle, pN/nm, >= 0
    radius : float or None, or one per handle, nm, > 0

    Raises
    ------
    TopologyError
        Something that is not a handle, or the handle of directors. A handle given twice or of another topology. An
        exclusion of beads that do not exist.
    ParameterError
        A number outside its domain or one too many or too few; no radius though there are other shapes than balls.

    Notes
    -----
    Shapes of a membrane that share a vertex, and a point and the membrane it lives in, do not collide. A force on an
    in-triangle point is passed on to the corners of its triangle.

    Two points in one place, a point on a segment, and segments that end on each other have no force, the mean over all
    directions. Where segments cross, the second of P and Q is pushed along P × Q; a point inside a triangle is pushed
    against its normal. Up to there shapes resist with k L²/2: choose it well above kT. Beyond, nothing pushes them
    back.

    The derivative of the force jumps where shapes touch and where the closest points reach an end or edge. A point near
    an edge of a membrane is pushed by both triangles: keep L well below the mesh width. Cost: linear in the number of
    shapes; long shapes, and a few that are much larger than the others, make it slower.

    References
    ----------
    K. Popov, J. Komianos, G. A. Papoian, PLoS Comput. Biol. 12, e1004877 (2016), MEDYAN. V. J. Lumelsky, Inf. Process.
    Lett. 21, 55 (1985), and C. Ericson, Real-Time Collision Detection (2005), closest points.
    """

    conserves_momentum = True
    shapes: Given["Handles", tuple[Handle, ...]] = argument(
        "handle or list of handles", "Beads, balls, filaments, rods, membranes and in-triangle points, each once.",
        attribute="Handles with the shapes on which it acts.",
    )  # fmt: skip
    stiffness: Each = number(
        "pN/nm", "k of the shapes of each handle. Shapes with k = 0 repel nothing.", at_least=0.0, per="handles"
    )
    radius: Given["Numbers | Sequence[float | None] | None", float | np.ndarray | None] = number(
        "nm", "R of the shapes of each handle; of membranes half their thickness. None: those of `Balls`; other "
        "handles need one.", default=None, above=0.0, per="handles",
    )  # fmt: skip
    layers: InitVar["Numbers"] = argument("int or one per handle, >= 0", _LAYERS, default=1, kw_only=True)
    no_collide: InitVar["Numbers"] = argument("int or one per handle, >= 0", _LAYERS, default=0, kw_only=True)
    self_avoiding: InitVar[Any] = argument(
        "bool or one per handle, optional", "Whether the shapes of one handle collide with each other, where layers "
        "let them. By default all do but the triangles of a membrane.", default=None, kw_only=True,
    )  # fmt: skip
    neighbors: InitVar[int] = argument(
        "int, >= 1", "Links of one filament do not collide if they are the same or up to `neighbors` links apart: 1 "
        "leaves out those that share a node. A filament thicker than its links are long, R > ℓ/2, needs more: L/ℓ "
        "rounded up.", default=1, kw_only=True,
    )  # fmt: skip
    exclusions: Given["Rows | None", np.ndarray] = argument(
        "(E, 2) int, optional",
        "Pairs of bead numbers: shapes of which one has the first and the other the second as a corner do not collide.",
        default=None, kw_only=True, attribute="Pairs (E, 2) of bead numbers with shapes that do not collide.",
    )  # fmt: skip
    switchover: float = number(
        "", "κ. The larger, the nearer to parallel the law of crossing segments ends.",
        default=8.0, kw_only=True, at_least=0.0,
    )  # fmt: skip
    skin: float | None = number(
        "nm", "Distance beyond touching up to which neighbours are listed. It affects speed only; results are the same "
        "to the bit. 0.8 times the mean radius of all beads where none is given.",
        default=None, kw_only=True, at_least=0.0,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._shapes = self._handles_of(given["shapes"])
        self._layers = self._masks("layers", given["layers"])
        self._no_collide = self._masks("no_collide", given["no_collide"])
        self._self_avoiding = [not isinstance(h, Membrane) for h in self._shapes]
        if given["self_avoiding"] is not None:
            self._self_avoiding = self._each("self_avoiding", given["self_avoiding"])
            for i, value in enumerate(self._self_avoiding):
                if not isinstance(value, bool | np.bool_):
                    raise ParameterError(f"{self.name}: self_avoiding[{i}] = {value!r} but must be True or False")
        self._neighbors = whole_number(f"{self.name}: neighbors", given["neighbors"], at_least=1, at_most=2**31 - 1)
        self._exclusions = exclusion_pairs(self.name, given["exclusions"])

    def _masks(self, what: str, value: Any) -> np.ndarray:
        each = enumerate(self._each(what, value))
        return np.array([whole_number(f"{self.name}: {what}[{i}]", m, at_most=_MAX_MASK) for i, m in each], np.int64)

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        # Two shapes that touch push at most with all their weight on one corner each.
        kinds, stiffness = self._classes()
        parts = [np.zeros(start.n_rows)]
        for i, a in enumerate(self._shapes):
            for b, kind in zip(self._shapes[i:], kinds[i:], strict=True):
                beads = a.beads if a is b else np.concatenate([a.beads, b.beads])
                groups = np.full(len(beads), 3) if a is b else np.repeat([1, 2], [len(a), len(b)])
                none, k = np.empty((0, 2), int), stiffness[kinds[i], kind]
                parts.append(start.contacts(start.coordinates(beads), groups, none, 0.0, k))
        out: np.ndarray = np.max(parts, axis=0)
        return out

    def bind(self, layout: "Layout") -> "Operation":
        (kinds, stiffness), radii = self._classes(), self._radii()
        self._expect_width(layout)
        points, links, edges, triangles, nodes = self._parts(layout, kinds, radii)
        skin = self._numbers["skin"]
        if skin is None:
            all_radii = np.concatenate(radii)
            skin = _SKIN * mean(all_radii) if len(all_radii) else 0.0
        meet = stiffness > 0.0
        found = (
            search_table(points, links, True, False, meet),
            search_table(points + nodes, triangles, False, False, meet),
            search_table(links, edges, True, True, meet),
        )
        tables = [table for table, _ in found]
        searches = [Search(*table, skin) for table in tables]
        operation = Collisions(
            self.name, searches, *corner_sites(tables), skin, stiffness, self._numbers["switchover"],
            self._neighbors, *excluded_beads(self.name, self._exclusions, layout),
            *sheet_table(layout, found[1][1], found[2][1]),
        )  # fmt: skip
        operation.acts_on_points = any(isinstance(h, InTrianglePoints) for h in self._shapes)
        return operation

    def _classes(self) -> tuple[list[int], np.ndarray]:
        """Return the class of every handle's shapes, and k of each pair of classes, 0 where they do not meet."""
        homes = {h.membrane for h in self._shapes if isinstance(h, InTrianglePoints)}
        classes: dict[tuple[Any, ...], int] = {}
        kinds = []
        for i, handle in enumerate(self._shapes):
            # Most handles need no class of their own.
            number = i if handle in homes or not self._self_avoiding[i] else -1
            at = -1
            if isinstance(handle, InTrianglePoints) and handle.membrane in self._shapes:
                at = self._shapes.index(handle.membrane)
            numbers = (self._layers[i], self._no_collide[i], self._numbers["stiffness"][i])
            kinds.append(classes.setdefault((*numbers, number, at, self._self_avoiding[i]), len(classes)))
        layers, no_collide, k, own, home, avoiding = (np.array(column) for column in zip(*classes, strict=True))
        apart = (layers[:, None] & no_collide != 0) | (layers & no_collide[:, None] != 0)
        apart |= (own[:, None] == own) & (own >= 0) & ~avoiding.astype(bool)
        at_home = (home[:, None] == own) & (own >= 0)
        apart |= at_home | at_home.T
        both = k[:, None] + k
        series = np.divide(k[:, None] * k, both, out=np.zeros_like(both), where=both > 0.0)
        return kinds, np.where(apart, 0.0, series)
