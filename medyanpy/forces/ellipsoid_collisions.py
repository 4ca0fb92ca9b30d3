"""Repulsion between ellipsoids and all shapes: balls, filaments, rods, membranes."""

from dataclasses import InitVar
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._kernels.selected import ellipsoid_collisions
from medyanpy._tools.sums import mean
from medyanpy._tools.types import Numbers
from medyanpy.beads import InTrianglePoints, RigidBodies
from medyanpy.core.handles import Handle
from medyanpy.errors import TopologyError
from medyanpy.forces._arguments import Handles, Rows
from medyanpy.forces._base import Given, argument, declared, number
from medyanpy.forces._contact import ENDS, FORMS, expect_form
from medyanpy.forces._pair_force import excluded_beads, exclusion_pairs
from medyanpy.forces._shapes import Part, ShapeForce, corner_sites, no_chain, search_table, sheet_table

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["EllipsoidCollisions"]

# In units of the mean of the largest semi-axes; see tests/benchmarks/bench_ellipsoid_collisions.py.
_SKIN = 0.4
# Classes: ellipsoids meet shapes only.
_MEET = np.array([[0.0, 1.0], [1.0, 0.0]])


@declared
class EllipsoidCollisions(ShapeForce):
    r"""Repulsion between rigid molecules as ellipsoids and shapes, by how much the two must grow to touch.

    Shapes are links of filaments, segments of rods, triangles of membranes, balls, and points of membranes.

    .. math:: U = \sum_{i, o} \Bigl[\sum_{k \in o} V(\mu_{ik})^8\Bigr]^{1/8}, \qquad
              V(\mu) = 4 \varepsilon \left[\mu^{-12} - \mu^{-6}\right] + \varepsilon
              \;\text{for}\; \mu < 2^{1/6}, \qquad \text{or, soft,}\quad V(\mu) = \varepsilon\,(1 - \mu)^2
              \;\text{for}\; \mu < 1

    over all ellipsoids i and objects o, which are a filament, a rod, a membrane, or a bead. A shape k is swept by a
    sphere of its radius. μ is the factor by which the size of the ellipsoid and the radius of the shape grow until they
    touch: 1 where they do, less where they overlap.

    Parameters
    ----------
    radius : float or None, or one per handle, nm, >= 0

    Raises
    ------
    TopologyError
        Bodies that are not rigid bodies, shapes that are. Something that is not a handle, or the handle of directors. A
        handle given twice or of another topology. An exclusion of beads that do not exist.
    ParameterError
        A number outside its domain or of another shape; no radius though there are other shapes than balls.

    Notes
    -----
    A sphere of radius a has μ = r/(a + R), r the distance of its centre from the shape. Against beads and balls the
    energy is that of `EllipsoidRepulsion`. The sum of eighth powers is hardly more than the largest: over an edge of a
    mesh, 1.09 times the energy over a triangle; over a vertex with six, 1.25. The force is continuous everywhere but
    where the centre of a body comes to a shape.

    There WCA is infinite, and the soft form has the energy ε: it is the one for starts with overlaps. A body on the far
    side is kept there: begin on the right side of membranes. With WCA and ε = kT, the surface on which the energy is kT
    is the ellipsoid itself. Rounding errors of forces grow as (a/b)² with the ratio of the largest to the smallest
    semi-axis.

    References
    ----------
    J. W. Perram, M. S. Wertheim, J. Comput. Phys. 58, 409 (1985), the contact function; shapes: our own.
    """

    conserves_momentum = True
    bodies: InitVar["Handles"] = argument("handle or list of handles", "Rigid bodies, each handle once.")
    shapes: Given["Handles", tuple[Handle, ...]] = argument(
        "handle or list of handles", "Filaments, rods, membranes, beads, balls and in-triangle points, each once.",
        attribute="Handles with the shapes on which it acts.",
    )  # fmt: skip
    epsilon: float = number(
        "pN nm", "ε: with WCA the energy of two that touch, soft that where the centre of a body is on a shape.",
        at_least=0.0,
    )  # fmt: skip
    semi_axes: Given["Numbers", np.ndarray] = number(
        "nm", "Those of the bodies along the axes of the body frame: the same for all, or one row for each, in the "
        "order of the handles.", above=0.0, per="_body_numbers", size=3, many="(m,)",
    )  # fmt: skip
    radius: Given["Numbers | None", float | np.ndarray | None] = number(
        "nm", "R of the shapes of each handle; of membranes half their thickness. None: those of `Balls`; other "
        "handles need one.", default=None, at_least=0.0, per="shapes",
    )  # fmt: skip
    form: Given[Literal["WCA", "soft"], str] = argument(
        '"WCA" or "soft"', default="WCA", kw_only=True, attribute="The form of the energy."
    )
    exclusions: Given["Rows | None", np.ndarray] = argument(
        "(E, 2) int, optional", "Pairs of bead numbers, a body and a bead in each. The body and the shapes of which "
        "that bead is a corner do not collide; for bodies tied to a node of a filament or a vertex.",
        default=None, kw_only=True, attribute="Pairs (E, 2) of bead numbers with shapes that do not collide.",
    )  # fmt: skip
    skin: float | None = number(
        "nm", "Distance beyond the range up to which neighbours are listed. It affects speed only; results are the "
        "same to the bit. 0.4 times the mean of the largest semi-axes where none is given.",
        default=None, kw_only=True, at_least=0.0,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._form = expect_form(self.name, given["form"])
        self._bodies = self._handles_of(given["bodies"], "bodies")
        for i, handle in enumerate(self._bodies):
            if not isinstance(handle, RigidBodies):
                raise TopologyError(f"{self.name}: bodies[{i}] must be the handle of rigid bodies, not {handle!r}")
        self._shapes = self._handles_of(given["shapes"])
        for i, handle in enumerate(self._shapes):
            if isinstance(handle, RigidBodies):
                why = "are ellipsoids: those among each other are for EllipsoidRepulsion"
                raise TopologyError(f"{self.name}: shapes[{i}]: {handle!r} {why}")
        self._exclusions = exclusion_pairs(self.name, given["exclusions"])

    @property
    def handles(self) -> tuple[Handle, ...]:
        return self._bodies + self._shapes

    @property
    def _body_numbers(self) -> np.ndarray:
        return np.concatenate([handle.beads for handle in self._bodies])

    def _keys(self, per: str) -> np.ndarray | None:
        return np.concatenate([handle.ids for handle in self._bodies]) if per == "_body_numbers" else None

    @property
    def _widest_radius(self) -> float:
        return max(super()._widest_radius, float(np.max(self._numbers["semi_axes"], initial=0.0)))

    def bind(self, layout: "Layout") -> "Operation":
        end, skin = ENDS[self._form], self._numbers["skin"]
        axes = np.broadcast_to(self._numbers["semi_axes"], (len(self._body_numbers), 3))
        if skin is None:
            skin = _SKIN * mean(axes.max(axis=1)) if len(axes) else 0.0
        place, axes = self._with_room(layout, axes)
        bodies = Part(place[:, None], end * axes.max(axis=1, initial=0.0), 0, no_chain(len(place)))
        radii = self._radii()
        self._expect_width(layout)
        points, links, _, triangles, _ = self._parts(layout, [1] * len(self._shapes), radii)
        # Chains behind the single shapes: a point and a chain are two objects.
        singles = sum(len(part.corners) for part in points)
        sides = [_numbered(points) + _numbered(links, singles, chains=True), _numbered(triangles, whole=True)]
        found = [
            search_table([bodies], [p._replace(radius=end * p.radius) for p in side], False, False, _MEET > 0.0)
            for side in sides
        ]
        tables = [table for table, _ in found]
        thickness = [
            np.concatenate([np.zeros(len(place)), *(p.radius for p in side)])[: len(table[3])]
            for side, table in zip(sides, tables, strict=True)
        ]
        operation = ellipsoid_collisions.EllipsoidCollisions(
            self.name, FORMS[self._form], self._numbers["epsilon"], axes,
            (place - layout.first_oriented).astype(np.int32), thickness,
            [ellipsoid_collisions.Search(*table, skin) for table in tables], *corner_sites(tables), skin, _MEET,
            *excluded_beads(self.name, self._exclusions, layout), *sheet_table(layout, found[1][1], {}),
        )  # fmt: skip
        operation.acts_on_points = any(isinstance(h, InTrianglePoints) for h in self._shapes)
        return operation

    def _with_room(self, layout: "Layout", axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return places and semi-axes (m, 3) of all rows; rows without a body have those that jumps may add."""
        born, places, rows, first = self._number_of_all("semi_axes"), [], [], 0
        for handle in self._bodies:
            places.append(layout.internal(handle.kind.with_room))
            asleep = len(handle.kind.with_room) - len(handle)
            rows += [axes[first : first + len(handle)], np.tile(np.ones(3) if born is None else born, (asleep, 1))]
            first += len(handle)
        return np.concatenate(places), np.ascontiguousarray(np.concatenate(rows))


def _numbered(parts: list[Part], first: int = 0, *, whole: bool = False, chains: bool = False) -> list[Part]:
    """Replace the chain of each shape by the number of its object, from `first` on: the whole part, a chain, or the
    shape alone."""
    out, start = [], first
    for part in parts:
        n = len(part.corners)
        number = start + part.chain[:, 0] if chains else first + (np.zeros(n, int) if whole else np.arange(n))
        first += 1 if whole else n
        out.append(part._replace(chain=np.column_stack([number, 0 * number, 0 * number]).astype(np.int32)))
    return out
