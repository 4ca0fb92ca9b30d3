"""Walls that repel."""

from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

import numpy as np

from medyanpy._kernels.selected import walls
from medyanpy._tools import quaternions
from medyanpy._tools.images import box_shown
from medyanpy._tools.types import Numbers
from medyanpy.beads import Balls
from medyanpy.boundaries import Boundary, Plane
from medyanpy.core.sites import Sites
from medyanpy.errors import ParameterError, TopologyError, shown
from medyanpy.forces._arguments import Beads
from medyanpy.forces._base import Given, argument, declared, number
from medyanpy.forces._contact import FORMS, expect_form
from medyanpy.forces._stiffness import Start
from medyanpy.forces.external import _SingleBeadForce
from medyanpy.surfaces import Surface

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.topology import Topology

__all__ = ["WallRepulsion"]

# Second derivatives of the energy where a shape touches the wall, over epsilon/sigma².
_STIFFNESS = {"WCA": 456.0, "soft": 2.0}


@declared
class WallRepulsion(_SingleBeadForce):
    r"""Repulsion from a wall, by how far the surface of each bead is from it.

    .. math:: U = \sum_i 4 \varepsilon \left[\mu_i^{-12} - \mu_i^{-6}\right] + \varepsilon
              \quad\text{for}\; \mu_i < 2^{1/6}, \qquad \text{or, soft,}\quad \sum_i \varepsilon\,(1 - \mu_i)^2
              \quad\text{for}\; \mu_i < 1, \qquad \mu_i = 1 + g_i/\sigma

    g is the distance of the surface of a bead from the wall. For a sphere it is that of its centre less r. For an
    ellipsoid before a plane it is g = n·(x - o) - √(n·S n), S = R diag(a²) Rᵀ, exact in any orientation.

    Raises
    ------
    ParameterError
        Not a wall; a number outside its domain or of another shape. Both radius and semi-axes; semi-axes of a bead that
        does not turn, or with a round wall. With WCA, when a Context is made, a bead that overlaps with the wall where
        it starts.
    TopologyError
        A handle of another topology, beads that do not exist or are named twice; semi-axes of sites.

    Notes
    -----
    With WCA and ε = kT the energy is kT where surfaces touch the wall. Thermal beads come about 0.1 σ behind that, and
    the repulsion begins 0.12 σ before. σ sets the timestep: U'' = 456 ε/σ² where they touch. Deeper than σ there is no
    finite force with WCA: the run ends and names the bead. The soft form has a finite one anywhere, to the side where
    beads are to be, and is the one for starts with overlaps and for minimisation.

    Starts are checked whenever a Context is made, also one that resumes a run: sizes that are set in a run with WCA
    must have room where beads started, or the run cannot be resumed. The wall takes up momentum: only that along it is
    kept.
    """

    wall: Boundary = argument(
        "boundaries.Plane, boundaries.Sphere or boundaries.Capsule", "Round ones from inside, or from outside.",
        attribute="The wall.",
    )  # fmt: skip
    beads: Given["Beads", np.ndarray | Sites] = argument(
        "handle, list of handles, (m,) int, or Sites",
        "Of any kind. Filaments, rods and membranes are kept in front of the wall by their nodes.",
    )
    epsilon: float = number(
        "pN nm", "ε: with WCA the energy of a bead that touches the wall; soft, of one that overlaps with it by σ.",
        at_least=0.0,
    )  # fmt: skip
    sigma: float = number(
        "nm", "σ: how deep the wall is. With WCA the energy begins at a gap of 0.122 σ, and no bead comes deeper than "
        "σ; soft it begins where a bead touches, with the stiffness 2ε/σ².", above=0.0,
    )  # fmt: skip
    radius: Given["Numbers | None", float | np.ndarray | None] = number(
        "nm", "r: the same for all, or one for each bead, in the order given; those of `Balls`, and 0 of others, where "
        "none is given.", default=None, kw_only=True, at_least=0.0, per="beads", many="(m,)",
    )  # fmt: skip
    semi_axes: Given["Numbers | None", np.ndarray | None] = number(
        "nm", "a, along the axes of the body frame: the beads are ellipsoids, and must be beads that turn; before a "
        "plane.", default=None, kw_only=True, above=0.0, per="beads", size=3, many="(m,)",
    )  # fmt: skip
    form: Given[Literal["WCA", "soft"], str] = argument(
        '"WCA" or "soft"', default="WCA", kw_only=True, attribute="The form of the energy."
    )

    def _take(self, given: dict[str, Any]) -> None:
        title, wall = given["name"] or type(self).__name__, given["wall"]
        if not isinstance(wall, Boundary):
            other = f"a surfaces.{type(wall).__name__}" if isinstance(wall, Surface) else shown(wall)
            raise ParameterError(
                f"{title}: wall must be a boundaries.Plane, boundaries.Sphere or boundaries.Capsule, not {other}"
            )
        self._wall, self._form = wall, expect_form(title, given["form"])
        self._seen: WeakSet[Any] = WeakSet()
        super()._take(given)
        if any(self._of_species) and self._form == "WCA":
            why = "a bead that becomes one of them may be behind the wall, where WCA has no finite energy"
            raise ParameterError(f'{title}: beads of one species: {why}: give form="soft"')

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        if checked["semi_axes"] is None:
            return checked
        if checked["radius"] is not None:
            raise ParameterError(f"{self.name}: give radius= or semi_axes=, not both")
        if isinstance(self._given, Sites):
            raise TopologyError(f"{self.name}: sites have no orientation: give radius=, not semi_axes=")
        if not isinstance(self._wall, Plane):
            why = f"how far an ellipsoid is from {self._wall!r} is not offered, only from a plane: give radius="
            raise ParameterError(f"{self.name}: {why}")
        return checked

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        if self._numbers["semi_axes"] is not None:
            return None
        # As if each bead touched the wall.
        stiffness = _STIFFNESS[self._form] * self._numbers["epsilon"] / self._numbers["sigma"] ** 2
        return start.springs(self._coordinates(start), stiffness)

    def bind(self, layout: "Layout") -> "Operation":
        self._wall._expect_space_behind(self.name, layout.box)
        if self._wall._reach < np.inf:
            # Of a round wall the image nearest to the start of a bead counts.
            layout.expect_width(self.name, self._wall._reach + self._numbers["sigma"])
        table, place, order, on_points = self._place(layout)
        radius, axes, oriented = self._sizes(layout, place, order)
        if self._form == "WCA" and layout not in self._seen:
            # Of a context that is made. Numbers that are set in its run are for where beads are then.
            self._expect_room(layout)
            self._seen.add(layout)
        epsilon, sigma = self._named("epsilon", "sigma")
        law = FORMS[self._form], epsilon, sigma
        operation = walls.Wall(self.name, table, place, *self._wall._shape, *law, radius, axes, oriented)
        operation.acts_on_points = on_points
        return operation

    def _radii(self, topology: "Topology") -> np.ndarray:
        """Return radii of spheres, 0 of ellipsoids, (m,)."""
        beads = self.beads
        given = self._numbers["radius"]
        out = np.zeros(len(beads)) if given is None else np.array(given)
        if given is None and self._numbers["semi_axes"] is None and not isinstance(beads, Sites):
            of_beads = np.zeros(topology.n_beads)
            for handle in topology.handles:
                if isinstance(handle, Balls):
                    of_beads[handle.beads] = handle.radius
            out = of_beads[beads]
        return out

    def _sizes(self, layout: "Layout", place: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return radii, semi-axes and rows of oriented beads, as `_place` orders beads."""
        radius, asleep = self._radii(layout.topology), len(order) - len(self.beads)
        if asleep:
            # Rows without a bead have the sizes of beads that jumps may add.
            born = self._number_of_all("radius") if self._numbers["radius"] is not None else None
            room = ((h.capacity - len(h), _born_with(h) if born is None else born) for h in self._handles)
            radius = np.concatenate([radius, *(np.full(n, r) for n, r in room)])
        if self._numbers["semi_axes"] is None:
            return np.ascontiguousarray(radius[order]), np.empty((0, 3)), np.empty(0, np.int32)
        axes = np.broadcast_to(self._numbers["semi_axes"], (len(self.beads), 3))
        row = place - layout.first_oriented
        upright = (row < 0) | (row >= layout.n_oriented)
        if upright.any():
            bead = int(layout.order[place[np.argmax(upright)]])
            what = f"bead {bead} of {layout.topology.handle_of(bead)!r} does not turn"
            raise ParameterError(f"{self.name}: {what}: give radius=, not semi_axes=")
        born = self._number_of_all("semi_axes")
        axes = np.concatenate([axes, np.tile(np.ones(3) if born is None else born, (asleep, 1))])
        return np.zeros(len(order)), np.ascontiguousarray(axes[order]), row.astype(np.int32)

    def _expect_room(self, layout: "Layout") -> None:
        """Refuse beads that overlap with the wall where they start."""
        topology, box = layout.topology, box_shown(layout.box)
        beads, start = self.beads, Start(topology, box=box)
        x = start.site_positions(beads) if isinstance(beads, Sites) else start.positions[beads]
        reach = self._radii(topology)
        if self._numbers["semi_axes"] is not None and not isinstance(beads, Sites):
            # Sites with semi-axes have been refused.
            normals = self._normals_in_bodies(topology, beads, x)
            reach = np.linalg.norm(self._numbers["semi_axes"] * normals, axis=1)
        gap = self._wall.distance(x, box) - reach
        # Ellipsoids placed to touch it may be behind it by rounding.
        inside = gap < -1e-9 * self._numbers["sigma"]
        if inside.any():
            i = int(np.argmax(inside))
            what = f"site {i}"
            if not isinstance(beads, Sites):
                what = f"bead {beads[i]} of {topology.handle_of(int(beads[i]))!r}"
            raise ParameterError(
                f"{self.name}: {what} at {x[i].tolist()} starts {-gap[i]:.6g} nm behind the wall {self._wall!r}"
                f"{f', counted from its surface, which reaches {reach[i]:.6g} nm' if reach[i] else ''}; move it, or "
                'begin with form="soft"'
            )

    def _normals_in_bodies(self, topology: "Topology", beads: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the normal of the wall in the frame of each bead, (m, 3)."""
        turns = np.tile([1.0, 0.0, 0.0, 0.0], (topology.n_beads, 1))
        for handle in topology.oriented_handles:
            turns[handle.beads] = handle.orientations
        out: np.ndarray = np.einsum("nij,ni->nj", quaternions.matrices(turns[beads]), self._wall.normals(x))
        return out


def _born_with(handle: Any) -> float:
    """Return the radius of beads that jumps may add."""
    if not isinstance(handle, Balls):
        return 0.0
    born = handle.kind.of_all("radius")
    return float(np.max(handle.radius, initial=0.0)) if born is None else born
