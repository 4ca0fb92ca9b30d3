"""Energies of the Gaussian curvature of a membrane, and of the difference in area of its two sides."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from medyanpy._kernels.forces.membrane_curvatures import DihedralAreaDifference, GaussianCurvature, VertexAreaDifference
from medyanpy._tools.images import displacement
from medyanpy._tools.sums import lengths, row_products, total
from medyanpy.forces._base import Each, Given, argument, declared, number
from medyanpy.forces.membrane import _Closed, _MembraneForce, _OfCurvature
from medyanpy.mesh import TriangleMesh, geometry

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["MembraneAreaDifference", "MembraneGaussianCurvature"]


@declared
class MembraneGaussianCurvature(_MembraneForce):
    r"""Energy of the Gaussian curvature of a membrane (Helfrich).

    .. math:: U = \int \bar\kappa\, K\, dA = \sum_v \bar\kappa_v \Bigl(2\pi - \sum_{f \ni v} \theta_{fv}\Bigr)

    over the vertices v that are not on a border, with the angles θ of the triangles round each: the Gaussian curvature
    :math:`K = 1/(R_1 R_2)` of a surface of triangles sits in the angles that are missing at its vertices.

    Parameters
    ----------
    membrane
        V vertices.

    Notes
    -----
    By the theorem of Gauss and Bonnet, :math:`\int K dA = 2\pi\chi - \oint k_g ds`, which holds for these sums to
    round-off. With one modulus for all, the energy of a closed membrane is the constant 4πκ̄(1 - genus), without any
    force. That of an open one depends on its border alone, with π less the angles at each border vertex for the
    geodesic curvature :math:`k_g`. Where the modulus varies, forces act at the boundaries of phases.

    For the energy of a membrane of any shape to be bounded below, -2κ <= κ̄ <= 0. A triangle without area contributes
    no force. Flips of edges keep the sum over all vertices, and change the energy where the modulus varies. Cost: O(F).

    References
    ----------
    W. Helfrich, Z. Naturforsch. C 28, 693 (1973): the energy. M. Hu, J. J. Briguglio, M. Deserno, Biophys. J. 102, 1403
    (2012): the modulus of bilayers, measured.
    """

    modulus: Each = number(
        "pN nm", "κ̄, the Gaussian modulus (saddle-splay modulus); about -0.9 κ for lipid bilayers. Values at border "
        "vertices are not used. One for each vertex where the membrane has several phases.",
        per="membrane.beads", many="(V,)",
    )  # fmt: skip

    def bind(self, layout: "Layout") -> "Operation":
        modulus = self._inside(self._numbers["modulus"])
        return GaussianCurvature(*self._place(layout), np.ascontiguousarray(modulus))


@declared
class MembraneAreaDifference(_OfCurvature, _Closed):
    r"""Resistance of a closed bilayer to differences in area of its two leaflets (area-difference elasticity, ADE).

    .. math:: U = \frac{\kappa_r}{2} \frac{\pi}{A D^2} (\Delta A - \Delta A_0)^2, \quad
              \Delta A = 2 D \oint H\, dA

    H is the mean curvature, 1/R on a sphere, where :math:`\Delta A = 8\pi D R`.

    Parameters
    ----------
    membrane
        Closed, with normals outward.

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or a membrane with borders, round which lipids change sides.
    ParameterError
        A number outside its domain, another discretization, or a closed part of the mesh that is turned inside out.

    Notes
    -----
    ``"vertex"`` takes :math:`\oint H dA = \sum_v H_v A_v` with the H_v of `TriangleMesh.mean_curvatures`,
    ``"dihedral"`` :math:`\tfrac12 \sum_e l_e \varphi_e`, which is exact for a surface of triangles (Steiner). In the
    units of the literature, Δa0 = ΔA0/(8π D R_A) with 4π R_A² = A is 1 for a sphere.

    The energy couples all vertices: no second derivatives are offered, and `longest_timestep` is not known; the force
    is softer than bending where κ_r is of the size of κ. A triangle that has lost its area ends the run. Cost: O(V).

    References
    ----------
    L. Miao, U. Seifert, M. Wortis, H.-G. Döbereiner, Phys. Rev. E 49, 5389 (1994); W. Wiese, W. Harbich, W. Helfrich,
    J. Phys. Condens. Matter 4, 1647 (1992): the energy. U. Seifert, Adv. Phys. 46, 13 (1997): values.
    """

    _open = "lipids go from one side to the other round it"
    modulus: float = number(
        "pN nm", "κ_r, the nonlocal bending modulus; of the size of the bending modulus in phospholipids (κ_r/κ from 1 "
        "to 3).", at_least=0.0,
    )  # fmt: skip
    thickness: float = number(
        "nm", "D, the distance between the neutral surfaces of the leaflets; about 3 nm, half to three quarters of a "
        "bilayer.", above=0.0,
    )  # fmt: skip
    area_difference: float | None = number(
        "nm²", "ΔA0, the excess area of the relaxed outer leaflet; by default that of the mesh at the start.",
        default=None,
    )  # fmt: skip
    area: float | None = number(
        "nm²", "A, of the relaxed membrane; the area the mesh starts with where none is given. It is a constant.",
        default=None, above=0.0,
    )  # fmt: skip
    discretization: Given[Literal["vertex", "dihedral"], str] = argument(
        '"vertex" or "dihedral"', "Form of H on triangles.",
        default="vertex", attribute='``"vertex"`` or ``"dihedral"``.',
    )  # fmt: skip

    def _checked(self, **numbers: Any) -> dict[str, Any]:
        mesh = self.membrane.mesh
        if numbers["area"] is None:
            numbers["area"] = mesh.area
        checked: dict[str, Any] = super()._checked(**numbers)
        if checked["area_difference"] is None:
            checked["area_difference"] = 2.0 * checked["thickness"] * _total_mean_curvature(mesh, self._discretization)
        return checked

    def bind(self, layout: "Layout") -> "Operation":
        modulus, thickness, rest, area = self._named("modulus", "thickness", "area_difference", "area")
        kind = VertexAreaDifference if self._discretization == "vertex" else DihedralAreaDifference
        # In the integral of H, in place of the difference in area: D is in no other place.
        scale, reference = 2.0 * np.pi * modulus / area, 0.5 * rest / thickness
        operation: Operation = kind(*self._place(layout), scale, reference)
        return operation


def _total_mean_curvature(mesh: TriangleMesh, discretization: str) -> float:
    """Return the integral of H over a closed mesh, nm."""
    x, faces = mesh.vertices, mesh.faces
    if discretization == "vertex":
        areas = geometry.corner_sums(x, faces, np.repeat(mesh.face_areas[:, None] / 3.0, 3, axis=1))
        return total(mesh.mean_curvatures * areas)
    normals, whole = mesh.face_normals, 0.0
    for i in range(3):
        across = normals[mesh.opposite_corners[:, i] // 3]
        edge = displacement(x[faces[:, i - 2]], x[faces[:, i - 1]], mesh._lengths)
        length = lengths(edge)
        turn = row_products(edge, np.cross(normals, across))
        angle = np.arctan2(turn, length * row_products(normals, across))
        # Each edge is there twice.
        whole += 0.25 * total(length * angle)
    return whole
