"""Line tension on a membrane: of its borders, and of boundaries between its phases."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.membrane_lines import BorderTension as BorderOperation
from medyanpy._kernels.forces.membrane_lines import PhaseTension
from medyanpy._tools.images import displacement
from medyanpy.errors import TopologyError
from medyanpy.forces._base import Each, declared, number
from medyanpy.forces._stiffness import Start
from medyanpy.forces.membrane import _MembraneForce
from medyanpy.mesh.geometry import corners_of

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["BorderTension", "MembraneLineTension"]


@declared
class BorderTension(_MembraneForce):
    r"""Line tension of the borders of a membrane: the energy of a free edge, by its length.

    .. math:: U = \lambda \sum_{e} |e| \quad\text{over the edges that have one triangle}

    Parameters
    ----------
    membrane
        With borders.

    Raises
    ------
    TopologyError
        Not the handle of a membrane, or a membrane without borders.
    ParameterError
        A line tension that is not a finite number.

    Notes
    -----
    A hole of radius R in a membrane of tension σ opens above R = λ/σ, and closes below. Edges on borders are not
    flipped, so that the vertices of a border stay the same. Two vertices in one place have no force on each other.

    References
    ----------
    J. D. Litster, Phys. Lett. A 53, 193 (1975); E. Karatekin et al., Biophys. J. 84, 1734 (2003): values.
    """

    line_tension: float = number("pN", "λ; 5 to 20 pN for the edge of a lipid bilayer.")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if self.membrane.mesh.is_closed:
            raise TopologyError(f"{self.name}: {self.membrane!r} is closed: it has no border")

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        mesh, tension = self.membrane.mesh, max(self._numbers["line_tension"], 0.0)
        pairs = np.concatenate([np.column_stack([loop, np.roll(loop, -1)]) for loop in mesh.borders])
        edges = displacement(mesh.vertices[pairs[:, 0]], mesh.vertices[pairs[:, 1]], mesh._lengths)
        length = np.linalg.norm(edges, axis=1)
        return start.bonds(self.membrane.beads[pairs], tension / length)

    def bind(self, layout: "Layout") -> "Operation":
        borders = self.membrane.mesh.borders
        rows = np.concatenate([np.column_stack([loop, np.roll(loop, -1), np.roll(loop, 1)]) for loop in borders])
        places = layout.internal(self.membrane.beads[rows]).astype(np.int32)
        return BorderOperation(*self._place(layout), self._numbers["line_tension"], places)


@declared
class MembraneLineTension(_MembraneForce):
    r"""Line tension between two phases of a membrane.

    .. math:: U = \lambda \int |\nabla\phi|\, dA = \frac{\lambda}{2} \sum_f \Bigl|\sum_{i=1}^3 \phi_{fi}\, e_{fi}\Bigr|

    with φ linear in each triangle f, from the phases of its corners i, and the edges :math:`e_{fi}` opposite to them.

    Parameters
    ----------
    membrane
        V vertices.

    Notes
    -----
    Of phases 0 and 1 the energy is λ times the length of a closed line, which joins the middles of the edges between
    the two phases. Of phases between, it is the mean of the lengths of all lines φ = c, 0 < c < 1 (Federer's co-area
    formula). A boundary that is spread over several edges has the right length, to second order in these. A sharp one
    across a mesh that does not follow it is a zigzag, 1 to 1.155 times as long (1.10 in the mean over directions),
    however fine the mesh is; a fluid membrane straightens it.

    Phases belong to vertices and stay with them through flips. Give each its bending modulus, spontaneous curvature and
    Gaussian modulus by arrays over vertices: ``MembraneBending(vesicle, np.where(phases > 0.5, 120.0, 40.0))``. A
    triangle with different phases so thin that the sum vanishes has no force. Cost: O(F).

    References
    ----------
    R. Lipowsky, J. Phys. II 2, 1825 (1992); F. Jülicher, R. Lipowsky, Phys. Rev. E 53, 2670 (1996): membranes of two
    phases. H. Federer, Trans. Am. Math. Soc. 93, 418 (1959).
    """

    phases: Each = number(
        "", "φ: 0 of vertices of one phase, 1 of the other. Values between are a diffuse boundary.",
        at_least=0.0, at_most=1.0, per="membrane.beads", many="(V,)",
    )  # fmt: skip
    line_tension: float = number("pN", "λ; 0.1 to 5 pN between liquid phases of lipids.")

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        if isinstance(given["phases"], np.ndarray) and given["phases"].dtype == bool:
            given["phases"] = given["phases"].astype(float)

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        mesh, tension = self.membrane.mesh, max(self._numbers["line_tension"], 0.0)
        phase = np.broadcast_to(self._numbers["phases"], (len(self.membrane),))[mesh.faces]
        sizes = np.roll(phase, -1, axis=1) - np.roll(phase, 1, axis=1)
        corners = corners_of(mesh.vertices, mesh.faces, mesh._lengths)
        across = np.linalg.norm(np.einsum("fi,fic->fc", sizes, corners), axis=1)
        stiffness = np.divide(0.5 * tension, across, out=np.zeros(len(across)), where=across > 0.0)
        return start.springs(start.coordinates(self.membrane.beads[mesh.faces], sizes), stiffness)

    def bind(self, layout: "Layout") -> "Operation":
        phases, tension = self._named("phases", "line_tension")
        phases = np.ascontiguousarray(np.broadcast_to(phases, (len(self.membrane),)), float)
        return PhaseTension(*self._place(layout), tension, phases)
