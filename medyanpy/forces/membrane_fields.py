"""Energies of in-triangle points by their triangle and weights: fields on a membrane, and curvature of points."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.core.accumulate import Accumulator
from medyanpy._kernels.forces.membrane_fields import PythonField, VertexField, WrittenField
from medyanpy._kernels.forces.point_curvature import PointCurvature as CurvedPoints
from medyanpy._tools.sums import mean
from medyanpy._tools.types import Numbers
from medyanpy._tools.validation import array
from medyanpy.beads import InTrianglePoints
from medyanpy.core.species import OfSpecies
from medyanpy.errors import MeshQualityWarning, ParameterError, warn_outside
from medyanpy.forces._base import Each, Given, OnHandle, argument, declared, number
from medyanpy.forces._expressions import WrittenForce
from medyanpy.forces._on_species import OnSpecies
from medyanpy.forces._stiffness import heights_over_rings
from medyanpy.forces.membrane import warn_inside_out
from medyanpy.forces.python import CallsPython
from medyanpy.surfaces.expressions import check_names

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.handles import Handle
    from medyanpy.core.layout import Layout
    from medyanpy.forces._stiffness import Start

__all__ = ["CustomMembraneField", "DirectedPointCurvature", "MembraneField", "PointCurvature", "PythonMembraneField"]

#: The mesh cannot resolve a radius of curvature below so many edges: see docs/forces/point_curvature.md.
_EDGES = 2.0


@declared
class _OnMembrane(OnSpecies, OnHandle):
    """An energy of the points of one handle, that does not change when the membrane moves with its points."""

    _on = ("points", InTrianglePoints, "in-triangle points")
    _group_names = ("points",)
    conserves_momentum = True
    points: Given[InTrianglePoints | OfSpecies, InTrianglePoints] = argument(
        "InTrianglePoints, or those of one species", "``points``, or ``points.of(name)``.",
        attribute="The points acted on.",
    )  # fmt: skip

    def _place(self, layout: "Layout") -> tuple[Any, ...]:
        """Return the first arguments of all kernels."""
        of_vertices, of_points = layout.numbers_of_membranes()
        sums = Accumulator(len(of_vertices), layout.threads, of_vertices, of_points)
        place = layout.internal(self.points.kind.with_room).astype(np.int32)
        wanted = self._of_species[0].get(self.points, -1)
        return self.name, place, layout.slice_of(self.points.membrane).start, sums, wanted


@declared
class MembraneField(_OnMembrane):
    r"""A field on a membrane: an energy of in-triangle points, given at the vertices.

    .. math:: U = \sum_p \sum_{i=1}^3 \lambda_{pi}\, u_i

    with the weights λ of each point p in its triangle, and the values u at the corners of that: linear inside
    triangles, continuous across edges.

    Parameters
    ----------
    points
        Of a membrane with V vertices.

    Notes
    -----
    The field belongs to the material of the membrane: it moves with the vertices, and a membrane that is moved, bent or
    stretched with its points has the same energy. So the force on vertices is zero; for points, :math:`\dot p_\lambda =
    -\partial U/\partial\lambda`. In equilibrium they have the density :math:`e^{-u/kT}` per area of the triangles as
    they are. For a field in space, in which points pass their force on to the membrane, see `ExternalField`.

    In `state.forces` points have the corresponding force in the plane of their triangle. Vertices have the force that
    cancels the one that points pass on to them. The force jumps where a point crosses an edge: errors of the energy
    there are those of the flight itself, see :doc:`/theory/geodesic`.
    """

    values: Each = number(
        "pN nm", "u, the energy of a point at each vertex of the membrane.", per="points.membrane.beads", many="(V,)"
    )

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        # Linear in the weights: no curvature but at edges.
        return np.zeros(start.n_rows)

    def bind(self, layout: "Layout") -> "Operation":
        return VertexField(*self._place(layout), np.ascontiguousarray(self._numbers["values"]))


class CustomMembraneField(WrittenForce, _OnMembrane):
    r"""A field on a membrane, written as an expression of quantities that are given at its vertices.

    .. math:: U = \sum_p u(a_p, b_p, \dots), \quad a_p = \sum_{i=1}^3 \lambda_{pi}\, a_i

    with the weights λ of each point p in its triangle, and the values :math:`a_i` of each quantity at the corners.

    Parameters
    ----------
    points : InTrianglePoints, or those of one species
        Of a membrane with V vertices.
    energy : str or SymPy expression
        u, pN nm, of names of quantities, with the grammar and functions of :doc:`/forces/fields`.
    name, group
        See `Force`.
    **quantities : float or (V,) float, finite
        Quantities in the expression: one number for all, or one at each vertex, linear in triangles; for the shape of
        the mesh at the start ``x=vesicle.mesh.vertices[:, 0]``. Change them with `set`.

    Raises
    ------
    TopologyError
        Not the handle of in-triangle points.
    ParameterError
        Text that is not such an expression (the message names the place), or one that is the same everywhere; a
        quantity that is missing, is not in the expression, has a name that means something else, or is not finite.

    Notes
    -----
    As of `MembraneField`, the field belongs to the material of the membrane, and acts on points by :math:`\dot
    p_\lambda = -\partial U/\partial\lambda`. The energy is continuous across edges, and follows edges that are flipped.
    The expression is read, never run. Where u is not a number, or infinite, the run stops.

    Examples
    --------
    Proteins that gather where a lipid is about as frequent as they like it:

    >>> import numpy as np, medyanpy as mp
    >>> topology = mp.Topology()
    >>> vesicle = topology.add_membrane(mp.TriangleMesh.icosphere(100.0, 2), vertex_mass=1.0)
    >>> proteins = topology.add_intriangle_points(vesicle, 50, mass=1.0, seed=1)
    >>> share = 0.5 + 0.005 * vesicle.mesh.vertices[:, 2]
    >>> mp.forces.CustomMembraneField(proteins, "k/2*(c - best)^2", k=80.0, c=share, best=0.7)
    CustomMembraneField('k/2*(c - best)^2', k=80, c=array of 162, best=0.7)
    """

    def __init__(
        self, points: InTrianglePoints | OfSpecies, energy: Any, *, name: str | None = None, group: int = 0,
        **quantities: "Numbers",
    ) -> None:  # fmt: skip
        self._read(energy, "points.membrane.beads", name, quantities)
        super().__init__(points, name=name, group=group)
        self._declare(**quantities)
        self._check_text()

    def _check_text(self) -> None:
        check_names(self.name, self._text, (), self.changeable)
        graph, u, _ = self._graph(self.changeable)
        if all(graph.value_of(graph.derivative(u, i)) == 0.0 for i in range(len(self.changeable))):
            jumps = "is constant but for jumps: it has no force"
            why = jumps if graph.jumps(u) else "is the same everywhere: it names no quantity"
            raise ParameterError(f"{self.name}: {self._text!r} {why}")

    def bind(self, layout: "Layout") -> "Operation":
        own = self._own()
        graph, u, _ = self._graph(own)
        program = graph.program([u, *(graph.along(u, i) for i in range(len(own)))])
        values = np.array([self._numbers[name] for name in own]).reshape(len(own), len(self.points.membrane))
        return WrittenField(*self._place(layout), values, program)


class _CurvedPoints(_OnMembrane):
    """Points with a curvature, and an energy of the membrane area that they cover."""

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        membrane, curvature = self.points.membrane, checked["curvature"]
        if curvature == self._values.get("curvature"):
            return checked
        c, edge = abs(curvature), mean(membrane.mesh.edge_lengths)
        if c * edge * _EDGES > 1.0:
            warn_outside(
                f"{self.name}: a curvature of {curvature:.4g} /nm is a radius of {1.0 / (c * edge):.3g} "
                f"edges of {membrane.name!r}, which are {edge:.4g} nm long: its mesh shows radii from {_EDGES:g} edges "
                f"on. Give a finer mesh, or at most {1.0 / (_EDGES * edge):.4g} /nm",
                MeshQualityWarning,
            )
        warn_inside_out(self.name, membrane, curvature, "a positive curvature bulges inward there")
        return checked

    def squared_frequencies(self, start: "Start") -> np.ndarray | None:
        # A point is a spring on the curvatures of its corners: (sum λ h)² <= sum λ h².
        membrane, (kappa, area) = self.points.membrane, self._named("bending_modulus", "area")
        heights, own = heights_over_rings(membrane)
        corners, weights = membrane.mesh.faces[self.points.triangles], self.points.barycentric
        share = np.bincount(corners.ravel(), weights.ravel(), len(membrane))
        for loop in membrane.mesh.borders:
            share[loop] = 0.0
        out: np.ndarray = start.springs(heights, share * kappa * area / own**2)
        return out

    def bind(self, layout: "Layout") -> "Operation":
        membrane = self.points.membrane
        kappa, c, area = self._named("bending_modulus", "curvature", "area")
        kT = self._numbers.get("kT", 0.0)
        borders = np.concatenate([np.empty(0, np.int32), *membrane.mesh.borders]).astype(np.int32)
        n_points = len(layout.numbers_of_membranes()[1])
        return CurvedPoints(
            *self._place(layout), layout.geometry(membrane), n_points, np.unique(borders), kappa * area, c, kT
        )


@declared
class PointCurvature(_CurvedPoints):
    r"""Points that are curved, and bend the membrane around them: proteins with a shape of their own.

    .. math:: U = \sum_p 2 \kappa a\, (H_p - c)^2

    with the mean curvature H of the membrane at each point p, smooth over edges; see Notes.

    Warns
    -----
    MeshQualityWarning
        The radius 1/c is below two edges of the mesh: it cannot have such a curvature where a point is.

    Notes
    -----
    H is that of `TriangleMesh.mean_curvatures` at the vertices, :math:`h_i`, and in a triangle

    .. math:: H = \sum_i \lambda_i h_i + \sum_i \beta_i(\lambda) D_i

    where D belongs to an edge: the deviation from linearity, over the two triangles laid flat, of the curvatures at its
    ends and at the two corners opposite to it (:doc:`/forces/point_curvature`). The second sum makes the gradient along
    the membrane continuous over edges. A vertex on a border has the mean curvature of its neighbours inside.

    Forces are :math:`\dot p_\lambda = -\partial U/\partial\lambda` on points and :math:`-\partial U/\partial R` on
    vertices, at fixed weights, in the form that `MembraneField` describes: momentum and angular momentum are kept. On a
    membrane at rest points have the density :math:`e^{-2\kappa a(H - c)^2/kT}` per area of its triangles. The energy
    comes in addition to that of the membrane. Points do not repel each other by it. For a curvature along one
    direction, see `DirectedPointCurvature`.

    A vertex whose ring is folded flat has H = 0; a triangle without area near a point ends the run. The longest
    timestep is that of vertices where points start, and does not account for points that gather later. Cost: O(points),
    and a pass over the membrane that it shares with `MembraneBending`. Flips need only the triangles around them.

    References
    ----------
    W. Pezeshkian, J. H. Ipsen, Nat. Commun. 15, 548 (2024): this energy, of proteins that sit on vertices. W. Helfrich,
    Z. Naturforsch. C 28, 693 (1973).
    """

    bending_modulus: float = number(
        "pN nm", "κ, how much stiffer than the membrane around it the patch is that a point stands for: 20 to 100 kT.",
        at_least=0.0,
    )  # fmt: skip
    curvature: float = number(
        "1/nm", "c, in the sign of H: positive where the membrane is to bulge along its normals. 1/R of a sphere; half "
        "the sum of the principal curvatures, half of what is called C0 where energies are written "
        ":math:`(\\kappa/2)(2H - C_0)^2`.",
    )  # fmt: skip
    area: float = number("nm²", "a, of the patch: 20 to 300 nm² for proteins with curved domains.", above=0.0)


@declared
class DirectedPointCurvature(_CurvedPoints):
    r"""Points with a curvature along a direction of their own in the membrane, in which they turn freely.

    .. math::

        U = \sum_p -kT \ln\Bigl\langle e^{-E_p(\theta)/kT}\Bigr\rangle_\theta,\qquad
        E = \frac{\kappa a}{2}\,(C - c)^2,\quad C = H + \sqrt{H^2 - K}\,\cos 2\theta

    with the curvature C of the membrane along the direction of a point, under the angle θ to that of the larger
    principal curvature. Directions are not part of the state: U is the potential of mean force of points that turn much
    faster than the membrane bends, with directions distributed as :math:`e^{-E/kT}`.

    Warns
    -----
    MeshQualityWarning
        The radius 1/c is below two edges of the mesh.

    Notes
    -----
    H and the Gaussian curvature K are both interpolated as `PointCurvature` has it; K at vertices is the angle deficit
    over the area of the vertex. Where that gives :math:`H^2 < K`, impossible on a smooth surface, U continues linearly
    in :math:`H^2 - K`. The mean over directions is taken at 64 of them. With :math:`s = \sqrt{H^2 - K}` and
    :math:`\kappa a s^2/2` up to 100 kT its error is below 2e-8 kT up to w = 60, 1e-4 kT up to 200, and 0.1 kT up to
    600, where :math:`w = \kappa a s\,(|H - c| - s)/kT` for :math:`|H - c| > s`, else :math:`\kappa a\,(s^2 - (H -
    c)^2)/kT`. In equilibrium points on a membrane at rest have the density :math:`e^{-U/kT}` per area. A Context warns
    where the thermostat has another temperature.

    References
    ----------
    W. Pezeshkian, J. H. Ipsen, Nat. Commun. 15, 548 (2024): energies of the curvature along a direction.
    """

    bending_modulus: float = number("pN nm", "κ, how stiff the point is along its direction.", at_least=0.0)
    curvature: float = number(
        "1/nm", "c, along the direction of the point; 1/R where it fits a tube of that radius. Positive where the "
        "membrane is to bulge along its normals.",
    )  # fmt: skip
    area: float = number("nm²", "a, of the patch.", above=0.0)
    kT: float = number("pN nm", "Of the thermostat.", above=0.0)  # noqa: N815


class PythonMembraneField(CallsPython, _OnMembrane):
    """An energy of in-triangle points by their triangle and weights, from a Python function.

    Parameters
    ----------
    points : InTrianglePoints, or those of one species
        n of them.
    function : callable (triangles, barycentric) -> (energies, derivatives)
        Called inside every step. ``triangles`` (n,) int are faces of the membrane's mesh, ``barycentric`` (n, 3) the
        weights of their corners, sum 1; both in the order of ``points.beads``, without rows that have no point, and
        read-only. With `corners`, the first are the vertices (n, 3) at the corners of the triangles. ``energies`` (n,),
        pN nm; ``derivatives`` (n, 3), pN nm, by each of the three weights as if these were independent: only their
        differences count.
    replay : bool
        As in `PythonForce`.
    corners : bool
        Give the function corners, which identify triangles where edges are flipped; flips are refused without.
    name, group
        See `Force`.

    Raises
    ------
    TopologyError
        Not the handle of in-triangle points.
    ParameterError
        A `function` that cannot be called.

    Notes
    -----
    As of `MembraneField`, the energy depends on weights, and not on the places of vertices; for that use `PythonForce`.
    Energies must be continuous across edges; with a jump there, energy is not conserved. `CustomMembraneField` needs no
    Python in the step. An exception of the function, and anything but finite numbers of these shapes, ends the run with
    a `SimulationError`.
    """

    calls_python = True

    def __init__(
        self, points: InTrianglePoints | OfSpecies, function: Callable[..., tuple[Any, Any]], *, replay: bool = True,
        corners: bool = False, name: str | None = None, group: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(points, name=name, group=group)
        self._by_corners = bool(corners)
        self._take_function(function, replay)

    @property
    def handles(self) -> "tuple[Handle, ...]":
        # Edges of the membrane cannot be flipped unasked.
        return (self.points, self.points.membrane)

    @property
    def corners(self) -> bool:
        """True if the function is given the corners of triangles."""
        return self._by_corners

    def obstacle_to_flips(self) -> str:
        return "" if self._by_corners else "its function is given triangles by number: let it take corners=True"

    def _call(self, triangles: np.ndarray, barycentric: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Call the function and check what it returns."""
        parts, n = ("energies", "derivatives"), len(triangles)
        result = self._returned(parts, triangles, barycentric)
        energies, derivatives = (
            np.ascontiguousarray(array(f"{self.name}: the {part} returned", value, shape))
            for part, value, shape in zip(parts, result, ((n,), (n, 3)), strict=True)
        )
        return energies, derivatives

    def bind(self, layout: "Layout") -> "Operation":
        first = self.points.membrane.first_face
        return PythonField(*self._place(layout), self._call, first, self._by_corners, self._replay)
