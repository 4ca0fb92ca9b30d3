"""Repulsion that keeps a fluid membrane from folding onto itself, edge by edge."""

from typing import TYPE_CHECKING, Any

import numpy as np

from medyanpy._kernels.forces.membrane_folds import FoldRepulsion
from medyanpy._tools.images import displacement
from medyanpy.errors import ParameterError
from medyanpy.forces._base import declared, number
from medyanpy.forces._stiffness import Coordinates, Start
from medyanpy.forces.membrane import _MembraneForce

if TYPE_CHECKING:
    from medyanpy._kernels.core.program import Operation
    from medyanpy.core.layout import Layout

__all__ = ["MembraneFoldRepulsion"]


@declared
class MembraneFoldRepulsion(_MembraneForce):
    r"""Repulsion that keeps neighbouring triangles of a membrane from folding onto each other.

    .. math:: U = b \sum_{e} \frac{(X_0 - X_e)^3}{1 + X_e}\Big|_{X_e < X_0}, \qquad X_e = \cos\varphi_e,
              \quad X_0 = \cos\varphi_0

    over the edges with two triangles; φ is the angle between their normals, 0 where the membrane is flat. Below the
    onset the energy is zero, with its first and second derivatives; towards φ = π it grows without bound.

    Raises
    ------
    TopologyError
        Not the handle of a membrane.
    ParameterError
        A number outside its domain, or a mesh with two triangles that lie on each other.

    Notes
    -----
    Where two folds meet at a vertex, curvatures of opposite sign cancel: a pocket of triangles that lie on each other
    can have a bending energy lower by many kT than that of the smooth surface. With edges that flip (`jumps.EdgeFlips`)
    a membrane finds such pockets and stays in them: areas, volumes and spectra are then wrong. This force prevents
    that. It does not keep distant parts apart; pair forces between vertices or `SoftCollisions` do. Cost: O(V), a few
    nanoseconds for a vertex. A flip computes five edges.

    References
    ----------
    W. Pezeshkian, J. H. Ipsen, Nat. Commun. 15, 548 (2024): the hard limit cos φ > -1/2 of dynamically triangulated
    membranes.
    """

    strength: float = number(
        "pN nm", "b; 20 kT is usual. An angle of 143° then costs 2.6 kT, of 154° 12.5 kT.", above=0.0
    )
    onset: float = number(
        "radians", "φ0; 120° is the limit that programs with a hard one have.",
        default=2.0 * np.pi / 3.0, above=0.0, below=np.pi,
    )  # fmt: skip

    def _take(self, given: dict[str, Any]) -> None:
        super()._take(given)
        mesh = self.membrane.mesh
        corner, across = self._inner_edges()
        lies = self._flatness(corner, across) == 0.0
        if lies.any():
            e = int(np.argmax(lies))
            i, j = mesh.faces.ravel()[[corner[e] - corner[e] % 3 + (corner[e] + k) % 3 for k in (1, 2)]].tolist()
            raise ParameterError(
                f"{self.name}: triangles {corner[e] // 3} and {across[e] // 3} of {self.membrane.name!r} lie on each "
                f"other, folded at the edge from vertex {i} to {j}"
            )

    def _inner_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners (E,) opposite each edge with two triangles, the lower number first."""
        across = self.membrane.mesh.opposite_corners.ravel()
        corner = np.flatnonzero(across > np.arange(len(across)))
        return corner, across[corner]

    def _flatness(self, corner: np.ndarray, across: np.ndarray) -> np.ndarray:
        """Return 1 + X (E,)."""
        normals = self.membrane.mesh.face_normals
        out: np.ndarray = 0.5 * ((normals[corner // 3] + normals[across // 3]) ** 2).sum(axis=1)
        return out

    def squared_frequencies(self, start: Start) -> np.ndarray | None:
        mesh = self.membrane.mesh
        b, onset = self._named("strength", "onset")
        corner, across = self._inner_edges()
        flat = self._flatness(corner, across)
        s = 1.0 + np.cos(onset) - flat
        folded = s > 0.0
        corner, across, u, s = corner[folded], across[folded], flat[folded], s[folded]
        q = s / u
        first, second = b * s * q * (3.0 + q), b * q * (6.0 + 6.0 * q + 2.0 * q * q)
        sine = np.sqrt(u * (2.0 - u))
        # By the angle: the second derivative, and the first one times the angle's own second derivatives.
        stiffness = second * sine**2 + first * (1.0 + sine)
        # An angle turns by 1/h where a corner h above the edge rises; ends of the edge go the other way by its foot.
        flat_faces = mesh.faces.ravel()
        ends = np.stack([flat_faces[corner - corner % 3 + (corner + k) % 3] for k in (1, 2)], axis=1)
        x = mesh.vertices
        edge = displacement(x[ends[:, 0]], x[ends[:, 1]], mesh._lengths)
        length = np.linalg.norm(edge, axis=1)
        rows, sizes, at_ends = [], [], np.zeros(ends.shape)
        for at in (corner, across):
            bead = flat_faces[at]
            along = (displacement(x[ends[:, 0]], x[bead], mesh._lengths) * edge).sum(axis=1) / length**2
            height = 2.0 * mesh.face_areas[at // 3] / length
            rows.append(bead)
            sizes.append(1.0 / height)
            at_ends += np.abs(np.stack([1.0 - along, along], axis=1)) / height[:, None]
        n = len(corner)
        row = np.concatenate([*rows, ends[:, 0], ends[:, 1]])
        size = np.concatenate([*sizes, at_ends[:, 0], at_ends[:, 1]])
        angles = Coordinates(n, np.tile(np.arange(n), 4), self.membrane.beads[row], size)
        return start.springs(angles, stiffness)

    def bind(self, layout: "Layout") -> "Operation":
        strength, onset = self._named("strength", "onset")
        return FoldRepulsion(*self._place(layout), strength, float(np.cos(onset)))
