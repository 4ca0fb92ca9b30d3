"""Angles between sites, and between sites and the normals of a membrane, which may be added and removed in a run."""

from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from medyanpy._kernels.core import numerics
from medyanpy._kernels.core.program import Operation
from medyanpy._kernels.forces.normal_links import NormalLinks as NormalLinksOperation
from medyanpy._kernels.selected import angles
from medyanpy._tools.images import displacement
from medyanpy._tools.types import Numbers
from medyanpy.beads import InTrianglePoints
from medyanpy.core.sites import Sites
from medyanpy.errors import TopologyError
from medyanpy.forces._arguments import Beads, Ids
from medyanpy.forces._base import Each, Given, argument, declared, number
from medyanpy.forces._stiffness import Coordinates, Start
from medyanpy.forces.links import SITES, SiteTerms
from medyanpy.forces.membrane import warn_inside_out
from medyanpy.mesh.geometry import corners_of

if TYPE_CHECKING:
    from medyanpy.core.layout import Layout

__all__ = ["AngleLinks", "DirectionLinks", "NormalLinks"]


def _turning(start: Start, a: Sites, b: Sites) -> Coordinates:
    """Return the turn of directions between sites (n,) as coordinates."""
    length = np.linalg.norm(displacement(start.site_positions(a), start.site_positions(b), start.box), axis=1)
    # Where two sites meet there is no direction, and no force.
    over = np.divide(1.0, length, out=np.zeros(len(length)), where=length > 0.0)
    return (start.sites(a) + start.sites(b)).times(over)


def _coefficients(k: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return k, p and s of the kernel, (n, 3) pN nm."""
    sine, cosine = np.empty(len(angle)), np.empty(len(angle))
    numerics.sincos(angle, sine, cosine)
    # π is not a floating-point number; the angle that is meant has no sine.
    sine[angle == np.pi] = 0.0
    return np.column_stack([k, k * cosine, k * sine])


class _Angles(SiteTerms):
    """Base of both kinds of angles, which differ in the sites that make the two directions."""

    of_positions_alone = True
    noun = "angle"
    #: The ends of the two directions, by their numbers.
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]]

    @property
    def one_for_all(self) -> np.ndarray | None:
        """k, p and s of the kernel, (3,) pN nm, of terms that a jump adds; None without one stiffness and angle."""
        values = [self._defaults[name] for name in self.changeable]
        return None if None in values else _coefficients(*np.array(values, float)[:, None])[0]

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        ends = self._ends_in(start)
        first, second = (_turning(start, ends[i], ends[j]) for i, j in self.directions)
        return start.springs(first + second, self._numbers["stiffness"])

    def _operation(self, layout: "Layout") -> Operation:
        rows = _coefficients(*(np.ascontiguousarray(self._numbers[name]) for name in self.changeable))
        return angles.Angles(self.name, self._table(layout), len(self.ends), rows)


@declared
class AngleLinks(_Angles):
    r"""Angles at one site between two others, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_t k_t \bigl(1 - \cos(\theta_t - \theta_{0t})\bigr)
              \approx \sum_t \tfrac12 k_t (\theta_t - \theta_{0t})^2

    with the angle θ, from 0 to π, at site b between the directions to a and to c: π where the three are on one line
    in the order a, b, c.

    Parameters
    ----------
    a, b, c
        The three sites of each angle, as many of each; 0 are allowed. See `Sites`: beads of any kind, places on the
        links of filaments (``filaments.sites``), in-triangle points, weighted means, places that do not move.

    Notes
    -----
    With θ0 = 0 or π the energy is smooth everywhere but where two sites of a term meet. With θ0 between them the force
    is zero at θ = 0 and π, the mean over all directions of bending. Where b meets a or c the term has the energy k and
    no force. Its sign and plane are free. Each angle has a number, as each of `Links` has. Second and third derivatives
    are offered where no site is on an oriented bead, with an arm.

    References
    ----------
    Cosine form: O. Kratky, G. Porod, Recl. Trav. Chim. Pays-Bas 68, 1106 (1949). For ½k(θ-θ0)² (OpenMM's
    HarmonicAngleForce) it has the same curvature at θ0, but a finite force at 0 and π.

    Examples
    --------
    >>> import numpy as np
    >>> import medyanpy as mp
    >>> topology = mp.Topology()
    >>> mother = topology.add_filament([[0.0, 0, 0], [50.0, 0, 0], [100.0, 0, 0]], node_mass=4e-12)
    >>> branch = topology.add_filament([[50.0, 6, 0], [50.0, 40, 0]], node_mass=4e-12)
    >>> sites = mother.sites(0, 1), mother.sites(0, 1, 0.0), branch.sites(0, 0)
    >>> mp.forces.AngleLinks(*sites, 10.0, np.deg2rad(70))
    AngleLinks(1: stiffness=10, angle=1.22173)
    """

    c: Given["Beads", Sites] = argument(SITES, attribute="The third site of each angle.")
    stiffness: Each = number(
        "pN nm", "k, per square of radians for small changes of the angle.", at_least=0.0, per="ids"
    )
    angle: Each = number("radians", "θ0.", at_least=0.0, at_most=np.pi, per="ids")
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "c")
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((1, 0), (1, 2))
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (1, 2))

    def add(
        self, a: "Beads", b: "Beads", c: "Beads", stiffness: "Numbers | None" = None, angle: "Numbers | None" = None
    ) -> np.ndarray:
        """Add angles, as `Links.add`."""
        return self._add((a, b, c), stiffness=stiffness, angle=angle)

    def move(self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None, c: "Beads | None" = None) -> None:
        """Move sites of angles, as `Links.move`."""
        self._move(ids, (a, b, c))


@declared
class DirectionLinks(_Angles):
    r"""Angles between two directions, which may be added, removed and moved while a simulation runs.

    .. math:: U = \sum_t k_t \bigl(1 - \cos(\theta_t - \theta_{0t})\bigr)

    with the angle θ, from 0 to π, between the direction from site a to b and that from c to d. They may be links of two
    filaments that a crosslinker holds at an angle.

    Parameters
    ----------
    a, b, c, d
        The four sites of each term, as many of each; 0 are allowed. The two directions may share sites.

    Notes
    -----
    As of `AngleLinks`, which has this term with the directions from b to a and from b to c. Only directions matter, not
    places: the force is a pair of couples.
    """

    c: Given["Beads", Sites] = argument(SITES, attribute="The third site of each term.")
    d: Given["Beads", Sites] = argument(SITES, attribute="The fourth site of each term.")
    stiffness: Each = number("pN nm", "The k of the energy.", at_least=0.0, per="ids")
    angle: Each = number(
        "radians", "θ0: 0 for parallel, π for antiparallel directions.", at_least=0.0, at_most=np.pi, per="ids"
    )
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "c", "d")
    directions: ClassVar[tuple[tuple[int, int], tuple[int, int]]] = ((0, 1), (2, 3))
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))

    def add(
        self, a: "Beads", b: "Beads", c: "Beads", d: "Beads", stiffness: "Numbers | None" = None,
        angle: "Numbers | None" = None,
    ) -> np.ndarray:  # fmt: skip
        """Add terms, as `Links.add`."""
        return self._add((a, b, c, d), stiffness=stiffness, angle=angle)

    def move(
        self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None, c: "Beads | None" = None,
        d: "Beads | None" = None,
    ) -> None:  # fmt: skip
        """Move sites of terms, as `Links.move`."""
        self._move(ids, (a, b, c, d))


@declared
class NormalLinks(SiteTerms):
    r"""Energies that hold directions to the normal of a membrane: proteins that stand upright in it, filaments on it.

    .. math:: U = \sum_t k_t (1 - \cos\theta_t) \approx \sum_t \tfrac12 k_t \theta_t^2

    with the angle θ between the direction from site a to site b and the normal at an in-triangle point; 0 where the
    direction leads to the side that normals point to.

    Parameters
    ----------
    a, b
        Ends of the directions, such as ``bodies.sites([[0, 0, -2.0]])`` and ``bodies.sites([[0, 0, 2.0]])``.

    Raises
    ------
    TopologyError
        Ends of different number, a bead that is not an in-triangle point, a the same bead as b, handles of different
        topologies, or (when bound) a bead that does not exist.
    ParameterError
        A number outside its domain.

    Notes
    -----
    The normal at a point with the weights λ (``normals`` of in-triangle points, where they start) is that of
    :math:`\sum_i \lambda_i G_i` over the corners of its triangle; G sums the area vectors of the triangles round a
    vertex. It is continuous over the whole membrane, with a kink at edges, as the energy is. Turned about the normal,
    and moved, directions are free: `Links` of length 0 between a site and the point keep them in place.

    The forces are exact derivatives: a couple turns the direction, its opposite turns the triangles round the three
    corners, and the point moves towards a normal along the direction: `ṗ_λ = -∂U/∂λ`. A direction without length, and a
    point whose triangles have area vectors that cancel, have the energy k and no force. Second derivatives are not
    offered. Cost: 3 µs a term, on one thread. Each term has a number, as each of `Links` has.
    """

    point: Given["Beads", Sites] = argument(
        "handle or (n,) int", "In-triangle points with the normals: one for each direction.",
        attribute="The in-triangle point of each term.",
    )  # fmt: skip
    stiffness: Each = number("pN nm", "k, per square of radians for small angles.", at_least=0.0, per="ids")
    ends: ClassVar[tuple[str, ...]] = ("a", "b", "point")
    apart: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    noun = "direction"

    def add(self, a: "Beads", b: "Beads", point: "Beads", stiffness: "Numbers | None" = None) -> np.ndarray:
        """Add terms, as `Links.add`."""
        return self._add((a, b, point), stiffness=stiffness)

    def move(
        self, ids: "Ids", a: "Beads | None" = None, b: "Beads | None" = None, point: "Beads | None" = None
    ) -> None:
        """Move sites of terms, as `Links.move`."""
        self._move(ids, (a, b, point))

    def _checked_ends(self, ends: Any, ids: Any = None, n: int | None = None) -> tuple[Sites, ...]:
        sites = super()._checked_ends(ends, ids, n)
        self._expect_points(sites[2], sites[2].handles)
        for handle in sites[2].handles:
            warn_inside_out(self.name, cast(InTrianglePoints, handle).membrane, 1.0, "normals point into it")
        return sites

    def _expect_points(self, points: Sites, handles: Any) -> None:
        beads = points.single_beads
        wrong = beads < 0
        for handle in (handle for handle in handles if not isinstance(handle, InTrianglePoints)):
            wrong |= np.isin(beads, handle.beads)
        if wrong.any():
            t = int(np.argmax(wrong))
            what = "a site that is not a single bead" if beads[t] < 0 else f"bead {beads[t]}"
            raise TopologyError(f"{self.name}: the normal of {self.noun} {t} is asked at {what}, no in-triangle point")

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        a, b, points = self._ends_in(start)
        self._expect_points(points, start.topology.handles)
        turning = _turning(start, a, b) + self._normals(start, points.single_beads)
        return start.springs(turning, self._numbers["stiffness"])

    def _normals(self, start: Start, beads: np.ndarray) -> Coordinates:
        """Bound the turn of each point's normal per displacement of each vertex and of the point, 1/nm."""
        term, row, size = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0)]
        for handle in start.topology.point_handles:
            number = np.full(start.n, -1)
            number[handle.beads] = np.arange(len(handle))
            own = np.flatnonzero(number[beads] >= 0)
            mesh, at = handle.membrane.mesh, number[beads[own]]
            triangles, weights = handle.triangles[at], handle.barycentric[at]
            vectors = 2.0 * handle.area_vectors()[at]
            places = corners_of(mesh.vertices, mesh.faces, mesh._lengths)
            edges = np.roll(places, 1, axis=1) - np.roll(places, -1, axis=1)
            lengths = np.linalg.norm(edges, axis=2)
            offsets, ring = mesh.vertex_faces
            for t, triangle, weight, sums in zip(own, triangles, weights, vectors, strict=True):
                whole = np.linalg.norm(weight @ sums)
                if whole == 0.0:
                    continue
                for v, w in zip(mesh.faces[triangle], weight, strict=True):
                    faces = ring[offsets[v] : offsets[v + 1]] // 3
                    row.append(handle.membrane.beads[mesh.faces[faces].ravel()])
                    size.append(w * lengths[faces].ravel() / whole)
                    term.append(np.full(len(row[-1]), t))
                # Moved in its triangle: by the difference of normals over the least height.
                spread = np.linalg.norm(sums - np.roll(sums, 1, axis=0), axis=1).max()
                side, area = lengths[triangle], mesh.face_areas[triangle]
                row.append(beads[[t]])
                size.append(np.array([spread / whole * side.max() / (2.0 * area)]))
                term.append(np.array([t]))
        return Coordinates(len(beads), *(np.concatenate(part) for part in (term, row, size)))

    def _operation(self, layout: "Layout") -> Operation:
        self._expect_points(self._sites[2], layout.topology.handles)
        places = layout.internal(self._sites[2].single_beads).astype(np.int32)
        stiffness = np.ascontiguousarray(self._numbers["stiffness"])
        return NormalLinksOperation(self.name, self._table(layout), layout.triangulation.triangles, places, stiffness)
