"""Forces on membranes: bending, area, volume, and pressure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy import errors
from medyanpy._kernels.selected import membrane_bending, membrane_dihedral, membrane_totals
from medyanpy._tools.domains import Domain, domain_table
from medyanpy._tools.images import displacement
from medyanpy._tools.types import Numbers
from medyanpy.beads import Membrane
from medyanpy.errors import MeshQualityWarning, ParameterError, warn_outside
from medyanpy.forces._base import AtTemperature, Each, Given, OnHandle, argument, declared, number
from medyanpy.forces._stiffness import Start, cotangent_weights, heights_over_rings, triangle_geometry
from medyanpy.forces._vertex_stars import Stars
from medyanpy.mesh import geometry
from medyanpy.pools import MoleculePool

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout
    from medyanpy.engine.worksheet import Look, Remark

__all__ = [
    "MembraneArea", "MembraneBending", "MembraneOsmoticPressure", "MembranePoolPressure", "MembranePressure",
    "MembraneTension", "MembraneVolume",
]  # fmt: skip

# Stars are folded where their area vectors add up to less than this share of their area: above it the second
# derivatives of a flat star are right to some 5 % (measured on real meshes), below it they differ soon.
_FLAT = 0.95
_STRONG = 0.5  # also where a spontaneous curvature times the root of the area of a vertex is more than this
# Stars of triangles are crumpled by heat where their flatness is less than the first, and crumpled ones of the vertex
# form are not resolved by more than the second part of the longest timestep; by the third they are.
_SHARP = 0.7
_CRUMPLED = 0.12
_RESOLVED = 0.05
_MANY = 64  # the cost of an exact star grows with the square of its triangles; one of more is stiff anyway


def warn_inside_out(force: str, membrane: Membrane, of_vertices: Any, so: str) -> None:
    """Issue a MeshQualityWarning for a quantity, not 0 at vertices, with the sign of normals that look inward."""
    mesh = membrane.mesh
    for k in mesh.inside_out:
        if np.broadcast_to(of_vertices, (len(mesh.vertices),))[mesh.faces[mesh.components[k]]].any():
            warn_outside(
                f"{force}: {mesh._described_part(k)} of {membrane.name!r} is turned inside out: its normals look "
                f"inward, so that {so}; {mesh._remedy([k])}",
                MeshQualityWarning,
            )
            return


@declared
class _MembraneForce(OnHandle):
    """A force on the vertices of one membrane, independent of direction and place in space."""

    _on = ("membrane", Membrane, "a membrane")
    conserves_momentum = True
    membrane: Membrane = argument("Membrane", attribute="The membrane acted on.")

    def _inside(self, numbers: Any) -> np.ndarray:
        """Return numbers of vertices (V,), 0 on borders."""
        return np.where(self.membrane.mesh.border_vertices, 0.0, numbers)

    def _of_area(self, start: Start, gradients: np.ndarray, stiffness: float) -> np.ndarray:
        """Return squared frequencies of the one mode that an energy of a total of all vertices makes stiff."""
        return start.one_mode(self.membrane.beads, np.linalg.norm(gradients, axis=1), stiffness)

    def _tense(self, start: Start, tension: Any) -> np.ndarray:
        """Return ω² of a tension: at most that of springs of half a cotangent, by the energy of Dirichlet."""
        mesh = self.membrane.mesh
        *_, cotangents = triangle_geometry(mesh)
        stress = np.broadcast_to(tension, (len(mesh.faces),))[:, None]
        pairs, stiffness = cotangent_weights(mesh.faces, np.maximum(stress * cotangents, 0.0))
        return start.bonds(self.membrane.beads[pairs], stiffness)

    def _place(self, layout: "Layout") -> tuple[Any, ...]:
        """Return the first arguments of every membrane kernel: the name, and the geometry that all forces share."""
        return self.name, layout.geometry(self.membrane)


class _Closed(_MembraneForce):
    """A force on a membrane that is closed, with normals outward.

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or a membrane with borders, which encloses nothing.
    ParameterError
        A number outside its domain; a closed part of the mesh that is turned inside out (`TriangleMesh.inside_out`).
    """

    #: Why borders are refused.
    _open = "it encloses no volume"
    #: Whether a part within another one, with its normals outward too, is a mistake.
    _nested_twice = False

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self.membrane._expect_closed(self.name, self._open)
        mesh, called = self.membrane.mesh, repr(self.membrane.name)
        inner = [] if mesh.closes_through_the_box or not self._nested_twice else mesh._nested
        if inner:
            warn_outside(
                f"{self.name}: {mesh._described_part(inner[0])} of {called} lies inside another one with its normals "
                f"outward, so that its volume counts twice; mesh.flipped({inner}) encloses the space between the two, "
                "and as a membrane of its own it has a volume of its own",
                MeshQualityWarning,
            )


class _OfVolume(_Closed):
    """A force by the volume of a membrane."""

    def _of_volume(self, start: Start, stiffness: float, pressure: float) -> np.ndarray:
        """Return squared frequencies of an energy with this second derivative by the volume, and minus this first."""
        mesh = self.membrane.mesh
        gradient = np.zeros_like(mesh.vertices)
        np.add.at(gradient, mesh.faces, (mesh.face_normals * mesh.face_areas[:, None] / 3.0)[:, None])
        # Under a pressure P an edge couples its ends as P/6 times the distance of the corners opposite to it.
        ends = mesh.vertices[mesh.faces.ravel()[mesh.opposite_corners.ravel()]], mesh.vertices[mesh.faces.ravel()]
        across = np.linalg.norm(displacement(*ends, mesh._lengths), axis=1)
        pairs, _ = cotangent_weights(mesh.faces, np.zeros(mesh.faces.shape))
        # Each edge occurs twice.
        coupling = abs(pressure) * across / 12.0
        out: np.ndarray = self._of_area(start, gradient, stiffness) + start.bonds(self.membrane.beads[pairs], coupling)
        return out

    def _place(self, layout: "Layout") -> tuple[Any, ...]:
        if layout.is_periodic and self.membrane.mesh.closes_through_the_box:
            raise ParameterError(
                f"{self.name}: {self.membrane.name!r} closes through the sides of the box, and encloses no volume"
            )
        return super()._place(layout)


class _OfCurvature(_MembraneForce):
    """A force by the mean curvature of a membrane, from sums at vertices or from angles at edges."""

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._discretization = given["discretization"]
        if self._discretization not in ("vertex", "dihedral"):
            raise ParameterError(
                f'{self.name}: discretization = {self._discretization!r} but must be "vertex" or "dihedral"'
            )


@declared
class MembraneBending(_OfCurvature):
    r"""Bending energy of a membrane (Helfrich), with spontaneous curvature.

    .. math:: U = \int 2 \kappa\, (H - c)^2\, dA

    on a mesh a sum over the vertices that are not on a border. H is the mean curvature
    :math:`\tfrac12 (1/R_1 + 1/R_2)`, positive where the surface bulges towards the side its normals point to: +1/R on a
    sphere with outward normals, where U → 8πκ without spontaneous curvature. Helfrich's own spontaneous curvature, of
    1/R1 + 1/R2, is twice the c used here.

    Parameters
    ----------
    membrane
        V vertices.

    Raises
    ------
    TopologyError
        Not the handle of a membrane.
    ParameterError
        A number outside its domain, another discretization, or `projected` with the dihedral one.

    Notes
    -----
    ``"vertex"``: with the gradients of the total area and volume with respect to each vertex,

    .. math:: U = \sum_v \kappa_v \frac{|\nabla_v A - 2 c_v \nabla_v V|^2}{2\, |\nabla_v V|}

    ``"dihedral"``: with the lengths l and angles φ (positive where convex) of the edges at v, and a third of the area
    of its triangles,

    .. math:: U = \sum_v 2 \kappa_v (H_v - c_v)^2 A_v,\quad H_v = \frac{1}{4 A_v} \sum_{e \ni v} l_e \varphi_e

    With `projected`, the same sum with :math:`H_v = \nabla_v A \cdot \nabla_v V / 2|\nabla_v V|^2`. On regular spheres
    the energies of all approach 8πκ with the square of the edge length. Border vertices carry no energy but feel
    forces.

    The vertex form grows without bound towards :math:`\nabla_v V = 0` (a ring folded flat), where the run ends; the
    projected form takes H_v = 0 there. At an edge folded back on itself φ jumps from π to -π. A triangle that has lost
    its area ends the run: this force does not keep triangles in shape. Cost: O(V). Second and third derivatives are
    offered, and a stiffness without negative eigenvalues. See :doc:`/forces/membrane`.

    References
    ----------
    W. Helfrich, Z. Naturforsch. C 28, 693 (1973): the energy. F. Jülicher, J. Phys. II 6, 1797 (1996): the dihedral
    form. M. Meyer, M. Desbrun, P. Schröder, A. Barr, in Visualization and Mathematics III (2003): curvature from the
    gradient of the area.

    Examples
    --------
    >>> import medyanpy as mp
    >>> vesicle = mp.Topology().add_membrane(mp.TriangleMesh.icosphere(500.0, 4), vertex_mass=4e-12)
    >>> mp.forces.MembraneBending(vesicle, bending_modulus=82.0)
    MembraneBending(bending_modulus=82, spontaneous_curvature=0)
    """

    bending_modulus: Each = number(
        "pN nm", "κ; about 20 kT = 82 pN nm for lipid bilayers. Values at border vertices are not used.",
        at_least=0.0, per="membrane.beads", many="(V,)",
    )  # fmt: skip
    spontaneous_curvature: Each = number("1/nm", "c, in the sign of H.", default=0.0, per="membrane.beads", many="(V,)")
    discretization: Given[Literal["vertex", "dihedral"], str] = argument(
        '"vertex" or "dihedral"', "The form of the energy on triangles; see Notes.", default="vertex",
        attribute='``"vertex"`` or ``"dihedral"``.',
    )  # fmt: skip
    projected: bool = argument(
        "bool", "The vertex form with the projected curvature, in which stars of triangles crumple; see Notes.",
        default=False, kw_only=True, attribute="True where the vertex form has the projected curvature.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._projected = bool(given["projected"])
        if self._projected and self._discretization != "vertex":
            raise ParameterError(
                f'{self.name}: projected = True but discretization = {self._discretization!r}, not "vertex"'
            )

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        checked = super()._checked(**numbers)
        if not np.any(self._values.get("spontaneous_curvature", 0.0)):
            so = "a positive curvature bulges inward there"
            warn_inside_out(self.name, self.membrane, checked["spontaneous_curvature"], so)
        return checked

    def _inner_moduli(self) -> np.ndarray:
        """Return κ (V,), 0 on borders, which carry no energy."""
        return self._inside(self._numbers["bending_modulus"])

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        # Where it is nearly flat a vertex has the energy κ (Lz)²/2A, with the heights z and L of two angles for each
        # edge: each vertex is a spring on the coordinate Lz.
        curvature, area = heights_over_rings(self.membrane)
        kappa = self._inner_moduli()
        folded = self._folded(area) & (kappa > 0.0)
        out = start.springs(curvature, np.where(folded, 0.0, kappa) / area)
        return out + self._of_folds(start, np.flatnonzero(folded), kappa) if folded.any() else out

    def flatness(self) -> np.ndarray:
        """Return the length of the sum of area vectors round each vertex over their total area, (V,) in [0, 1].

        It is the mean cosine of their tilt; 1 where there is no bending energy or where no vertex moves.
        """
        mesh, free = self.membrane.mesh, ~self.membrane.kind.fixed_beads & (self._inner_moduli() > 0.0)
        vectors, area = np.zeros_like(mesh.vertices), np.zeros(len(mesh.vertices))
        own = mesh.face_areas[:, None]
        np.add.at(area, mesh.faces, own)
        np.add.at(vectors, mesh.faces, (mesh.face_normals * own)[:, None])
        return np.where(free, np.linalg.norm(vectors, axis=1) / np.where(free, area, 1.0), 1.0)

    def remarks(self, look: "Look") -> "list[Remark]":
        """Return a remark on stars of triangles so sharply bent that heat crumples them."""
        row, integrator, membrane = look.row(self), look.integrator, self.membrane
        vertex = self._discretization == "vertex"
        # The plain vertex form costs the more the sharper it is bent.
        smooth = vertex and not self.projected
        if integrator.kT is None or integrator.overdamped or row.limit is None or row.share is None or smooth:
            return []
        flatness = self.flatness()
        i, n = int(np.argmin(flatness)), int(np.count_nonzero(flatness < _SHARP))
        mesh = membrane.mesh
        if not n or (vertex and row.share <= _CRUMPLED):
            return []
        if (found := geometry.flattest(mesh.vertices, mesh.faces, i, mesh._lengths)) is None:
            return []
        others = f" and {n - 1} more" if n > 1 else ""
        return [(
            errors.TimestepWarning,
            f"{self.name}: {membrane.name!r} is bent too sharply for its mesh at vertex {i}{others} (triangle "
            f"{found[0]}; the area vectors of the triangles round it add up to {flatness[i]:.2g} of their areas). "
            "Heat crumples such places, and "
            + (f"the projected form is stiffer there without bound: at {integrator.timestep:g} s single vertices get "
               f"hot. A finer or smoother mesh would do, or a timestep of {_RESOLVED * row.limit:.2g} s" if vertex else
               "where an edge is folded past 180° the dihedral form jumps: single vertices get hot, at any timestep. "
               "A finer or smoother mesh would do"),
        )]  # fmt: skip

    def _folded(self, area: np.ndarray) -> np.ndarray:
        """Mark vertices (V,) with other second derivatives: not nearly flat, where area vectors cancel, or not flat at
        rest."""
        if self._discretization != "vertex":
            return np.zeros(len(area), bool)
        flatness = self.flatness()
        curved = np.abs(self._numbers["spontaneous_curvature"]) * np.sqrt(area) > _STRONG
        few = np.diff(self.membrane.mesh.vertex_faces[0]) <= _MANY
        # Where G is zero there are no derivatives.
        out: np.ndarray = (flatness > 0.0) & ((flatness < _FLAT) | curved) & few
        return out

    def _of_folds(self, start: Start, vertices: np.ndarray, kappa: np.ndarray) -> np.ndarray:
        """Return squared frequencies (rows,) of some vertices, from their exact second derivatives."""
        mesh, out = self.membrane.mesh, np.zeros(start.n_rows)
        offsets, corners = mesh.vertex_faces
        faces, triangles = mesh.faces.ravel(), np.diff(offsets)[vertices]
        for m in np.unique(triangles):
            centre = vertices[triangles == m]
            corner = corners[offsets[centre][:, None] + np.arange(m)]
            at, base = corner % 3, corner - corner % 3
            stars = Stars(centre, faces[base + (at + 1) % 3], faces[base + (at + 2) % 3])
            beads, curvature = self.membrane.beads[stars.beads], self._numbers["spontaneous_curvature"][centre]
            numbers = kappa[centre], curvature, start.lightness[beads]
            np.add.at(out, beads, stars.squared_frequencies(mesh.vertices, *numbers, self._projected))
        return out

    def bind(self, layout: "Layout") -> "Operation":
        kappa = self._inner_moduli()
        c0 = np.ascontiguousarray(self._numbers["spontaneous_curvature"])
        if self._discretization == "vertex":
            return membrane_bending.VertexBending(*self._place(layout), kappa, c0, self._projected)
        return membrane_dihedral.DihedralBending(*self._place(layout), kappa, c0)


@declared
class MembraneArea(_MembraneForce):
    r"""Resistance of a membrane to changes of its area, as a whole or triangle by triangle.

    .. math:: U = \frac{k}{2} \frac{(A - A_0)^2}{A_0} \quad\text{or}\quad
              U = \sum_f \frac{k_f}{2} \frac{(A_f - A_{0f})^2}{A_{0f}}

    Parameters
    ----------
    membrane
        F triangles.
    area_modulus : float, pN/nm, >= 0; or (F,) float with `per_triangle`
    area : float, nm², > 0; or (F,) float with `per_triangle`, optional

    Notes
    -----
    A triangle without area contributes no force, the mean over all directions in which it could grow. Cost: O(F). Per
    triangle, second and third derivatives are offered, and as stiffness :math:`k_f\,\nabla A_f\nabla A_f^{\mathsf
    T}/A_{0f}`. The total area has them too; its stiffness is that of the present tension across triangles and
    :math:`K\,\nabla A\nabla A^{\mathsf T}/A_0`, which couples all vertices: `kicks` solve with it in O(V),
    `Context.hessian` refuses it beyond 1500 vertices.

    References
    ----------
    E. Evans, R. Skalak, Mechanics and Thermodynamics of Biomembranes (1980): the area modulus. M. Meyer, M. Desbrun,
    P. Schröder, A. Barr, in Visualization and Mathematics III (2003): the gradient of the area.
    """

    area_modulus: Each = number(
        "pN/nm", "k; 200 to 300 pN/nm for lipid bilayers, less for ones that hold a reserve of area.", at_least=0.0
    )
    area: Given["Numbers | None", float | np.ndarray | None] = number(
        "nm²", "A0; the area the mesh starts with where none is given.", default=None, above=0.0
    )
    per_triangle: bool = argument(
        "bool", "Each triangle keeps its own area. That also keeps triangles from collapsing, which the total area "
        "does not.", default=False, attribute="True if each triangle keeps its own area.",
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        self._per_triangle = bool(given["per_triangle"])
        if self._per_triangle:
            self.domains: Mapping[str, Domain] = domain_table(
                **{name: replace(domain, per="membrane.mesh.faces") for name, domain in self.domains.items()}
            )

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        if numbers["area"] is None:
            numbers["area"] = self.membrane.mesh.face_areas if self._per_triangle else self.membrane.mesh.area
        return super()._checked(**numbers)

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        mesh, (k, rest) = self.membrane.mesh, self._named("area_modulus", "area")
        if not self._per_triangle:
            stretched = k * (mesh.area - rest) / rest
            gradients = geometry.area_gradients(mesh.vertices, mesh.faces)
            out: np.ndarray = self._of_area(start, gradients, k / rest) + self._tense(start, stretched)
            return out
        area, side, _ = triangle_geometry(mesh)
        growth = start.coordinates(self.membrane.beads[mesh.faces], 0.5 * side)
        found: np.ndarray = start.springs(growth, k / rest) + self._tense(start, k * (area - rest) / rest)
        return found

    @property
    def keeps_triangles(self) -> str:
        return "MembraneArea(per_triangle=True)" if self.per_triangle else ""

    def bind(self, layout: "Layout") -> "Operation":
        k, area = self._named("area_modulus", "area")
        if self._per_triangle:
            k, area = np.ascontiguousarray(k), np.ascontiguousarray(area)
            return membrane_totals.TriangleAreas(*self._place(layout), k, area)
        return membrane_totals.TotalArea(*self._place(layout), k, area, 0.0)


@declared
class MembraneTension(_MembraneForce):
    r"""Tension of a membrane that draws on a reservoir of area.

    .. math:: U = \sigma A

    A triangle without area contributes no force, as in `MembraneArea`. Cost: O(F). Second and third derivatives are
    offered, and as stiffness the part of a positive tension across triangles.

    References
    ----------
    W. Helfrich, Z. Naturforsch. C 28, 693 (1973).
    """

    tension: float = number("pN/nm", "σ; positive pulls the membrane together. 0.003 to 0.3 pN/nm in cells.")

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        return self._tense(start, self._numbers["tension"])

    def bind(self, layout: "Layout") -> "Operation":
        # No modulus, so that the area the modulus would refer to does not matter.
        return membrane_totals.TotalArea(*self._place(layout), 0.0, 1.0, self._numbers["tension"])


@declared
class MembraneVolume(_OfVolume):
    r"""Resistance of a closed membrane to changes of the volume it encloses.

    .. math:: U = \frac{k}{2} \frac{(V - V_0)^2}{V_0}

    Parameters
    ----------
    membrane
        Closed, with normals outward.

    Notes
    -----
    V is summed from tetrahedra between each face and the membrane's first vertex, so that it is as exact far from the
    origin as near it. Cost: O(F); smooth everywhere, triangles without area included. Second and third derivatives are
    offered; they couple all vertices, as those of `MembraneArea` do. As stiffness they are :math:`U''(V)\,\nabla
    V\nabla V^{\mathsf T}`.

    References
    ----------
    M. Meyer, M. Desbrun, P. Schröder, A. Barr, in Visualization and Mathematics III (2003).
    """

    _nested_twice = True
    volume_modulus: float = number("pN/nm²", "k; the pressure inside is :math:`-k (V - V_0)/V_0`.", at_least=0.0)
    volume: float | None = number(
        "nm³", "V0; the volume the mesh starts with where none is given.", default=None, above=0.0
    )

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        if numbers["volume"] is None:
            volume = numbers["volume"] = self.membrane.mesh.volume
            if volume <= 0.0:
                raise ParameterError(f"{self.name}: the mesh has the volume {volume:g} nm³: give volume=")
        return super()._checked(**numbers)

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        k, rest = self._named("volume_modulus", "volume")
        return self._of_volume(start, k / rest, -k * (self.membrane.mesh.volume - rest) / rest)

    def bind(self, layout: "Layout") -> "Operation":
        return membrane_totals.Volume(*self._place(layout), *self._named("volume_modulus", "volume"))


@declared
class MembranePressure(_OfVolume):
    """A constant difference of pressure across a closed membrane.

    .. math:: U = -p V

    Parameters
    ----------
    membrane
        Closed, with normals outward.

    Notes
    -----
    This force does not limit growth: a membrane of tension σ (`MembraneTension`) in equilibrium at the radius R = 2σ/p
    (Laplace) is there at a maximum of its energy, and grows or shrinks from it. `MembraneOsmoticPressure` and
    `MembraneArea` make radii stable. The volume is that of `MembraneVolume`. Cost: O(F); smooth everywhere.
    """

    pressure: float = number(
        "pN/nm²", "p, by how much it is higher inside: 1 pN/nm² is 1 MPa. A cell bears 1e-4 to 1e-3."
    )

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        return self._of_volume(start, 0.0, self._numbers["pressure"])

    def bind(self, layout: "Layout") -> "Operation":
        return membrane_totals.Pressure(*self._place(layout), self._numbers["pressure"])


@declared
class _InSolution(_OfVolume):
    """A force of a membrane with particles on both of its sides."""

    _nested_twice = True
    particles: float = number(
        "", "N, number of enclosed particles: molecules or ions of all kinds together. Of V in nm³ at c mM there are "
        "6.022e-4 c V.", above=0.0,
    )  # fmt: skip
    concentration: float = number("1/nm³", "c, of particles outside: 6.022e-4 of them per nm³ are 1 mM.", above=0.0)


@declared
class MembraneOsmoticPressure(AtTemperature, _InSolution):
    r"""Osmotic pressure of particles inside a closed membrane that does not let them through, in an ideal solution.

    .. math:: U = N kT\,(q - 1 - \ln q), \quad q = c V/N, \qquad
              p = -\frac{\partial U}{\partial V} = kT \left(\frac{N}{V} - c\right)

    The pressure is that of van 't Hoff. U is zero where both sides have the same concentration: at V = N/c.

    Parameters
    ----------
    membrane
        Closed, with normals outward.

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or a membrane with borders, which encloses nothing.
    ParameterError
        A number outside its domain, or neither or both of temperature and kT; a closed part of the mesh that is turned
        inside out.

    Notes
    -----
    The stiffness against changes of the volume is N kT/V² = c kT/V: physiological 300 mM make 0.75 pN/nm² of kT c, so
    that a vesicle keeps its volume to some 1e-3 and timesteps are set by that. A membrane that is turned inside out, or
    loses its volume, ends the run; jumps that would do that have an infinite energy. Cost: O(F); smooth elsewhere.

    References
    ----------
    J. H. van 't Hoff, Z. Phys. Chem. 1, 481 (1887): the pressure. C. Zhu, C. T. Lee, P. Rangamani, Biophys. Rep. 2,
    100062 (2022): this energy in q (Mem3DG).
    """

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        n, c, kT = self._named("particles", "concentration", "kT")
        volume = self.membrane.mesh.volume
        if volume <= 0.0:
            return None
        return self._of_volume(start, n * kT / volume**2, kT * (n / volume - c))

    def bind(self, layout: "Layout") -> "Operation":
        n, c, kT = self._named("particles", "concentration", "kT")
        return membrane_totals.OsmoticPressure(*self._place(layout), n, c, kT)


@declared
class _WithPool(_OfVolume):
    """A force of a membrane with a pool inside."""

    _nested_twice = True
    pool: MoleculePool = argument("Pool", "``mp.Pool(inside=membrane, ...)``.", attribute="The pool inside.")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        pool = self._pool = given["pool"]
        if not isinstance(pool, MoleculePool) or pool.inside is not self.membrane:
            raise ParameterError(
                f"{self.name}: pool must be the inside of {self.membrane.name!r}, mp.Pool(inside=membrane, ...), not "
                f"{errors.shown(pool)}"
            )


@declared
class MembranePoolPressure(AtTemperature, _WithPool):
    r"""Pressure of the molecules of a pool on the membrane whose inside the pool is, as an ideal solution.

    .. math:: U = -N kT \ln\frac{V}{V_1}, \qquad p = -\frac{\partial U}{\partial V} = \frac{N kT}{V}

    with the number N of all molecules that are counted, as jumps change it, and the volume :math:`V_1` of the mesh.

    Parameters
    ----------
    membrane
        Closed, with normals outward.

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or a membrane with borders, which encloses nothing.
    ParameterError
        A pool that is not the inside of this membrane; neither or both of temperature and kT. A closed part of the mesh
        that is turned inside out.

    Notes
    -----
    This belongs to the weight :math:`V^N/N!` of the molecules: with it, and with rates by the volume of now, reactions
    and mesh have one joint distribution (:doc:`/pools`). Reservoirs do not press: they are the same on both sides.
    What is outside does so by `MembranePressure` with :math:`p = -kT c`. What events change of U is heat, or of
    driven jumps chemical work. A membrane that is turned inside out ends the run. Cost: O(F); smooth elsewhere.

    References
    ----------
    J. H. van 't Hoff, Z. Phys. Chem. 1, 481 (1887).
    """

    @property
    def pools(self) -> tuple[MoleculePool, ...]:
        return (self._pool,)

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        n, volume = sum(self._pool._start.values()), self._pool.cell_volume
        pressure = n * self._numbers["kT"] / volume
        return self._of_volume(start, pressure / volume, pressure)

    def bind(self, layout: "Layout") -> "Operation":
        counts, kT = layout.pools[self._pool], self._numbers["kT"]
        counts.kT = kT
        return membrane_totals.PoolPressure(*self._place(layout), counts.array[0], self._pool.cell_volume, kT)
